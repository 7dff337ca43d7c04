//! Eager and traced tensors made from nothing but numbers.

use crate::{EagerRuntime, EagerTensor, TracedTensor};
use tenferro_core_ops::{Aval, Dim, Var, build};
use tenferro_tensor::{C64, DType, Result};

fn dims(shape: &[usize]) -> Vec<Dim> {
    shape.iter().map(|&n| Dim::Lit(n)).collect()
}

impl EagerRuntime {
    /// `value` in every element, without storing it more than once. An integer above 2^53 keeps its digits in
    /// [`scalar`](Self::scalar), which can be broadcast.
    ///
    /// # Errors
    /// A dtype that does not [hold](DType::holds) `value`; allocation.
    pub fn full(&self, dtype: DType, shape: &[usize], value: impl Into<C64>) -> Result<EagerTensor> {
        let value = value.into();
        self.run(|| Var::full(&Aval::new(dtype, dims(shape)), value))
    }

    /// The `n x n` identity matrix.
    ///
    /// # Errors
    /// Allocation.
    pub fn eye(&self, dtype: DType, n: usize) -> Result<EagerTensor> {
        self.run(|| build::eye(dtype, &Dim::Lit(n)))
    }

    /// The position along `axis` in every element.
    ///
    /// # Errors
    /// An axis that does not exist, bool.
    pub fn iota(&self, dtype: DType, shape: &[usize], axis: usize) -> Result<EagerTensor> {
        self.run(|| build::iota(dtype, &dims(shape), axis))
    }

    /// `n` numbers from `start` to `stop`, both included, evenly spaced.
    ///
    /// # Errors
    /// A dtype that is neither floating-point nor complex.
    pub fn linspace(&self, dtype: DType, start: f64, stop: f64, n: usize) -> Result<EagerTensor> {
        self.run(|| build::linspace(dtype, start, stop, &Dim::Lit(n)))
    }
}

impl TracedTensor {
    /// `value` in every element; extents may be symbolic. An integer above 2^53 keeps its digits in
    /// [`scalar`](Self::scalar), which can be broadcast.
    ///
    /// # Errors
    /// A dtype that does not [hold](DType::holds) `value`; allocation.
    pub fn full(dtype: DType, shape: &[Dim], value: impl Into<C64>) -> Result<Self> {
        Self::lazily(Var::full(&Aval::new(dtype, shape.iter().cloned()), value.into()))
    }

    /// The `n x n` identity matrix; `n` may be symbolic.
    ///
    /// # Errors
    /// Allocation.
    pub fn eye(dtype: DType, n: &Dim) -> Result<Self> {
        Self::lazily(build::eye(dtype, n))
    }

    /// The position along `axis` in every element; extents may be symbolic.
    ///
    /// # Errors
    /// An axis that does not exist, bool.
    pub fn iota(dtype: DType, shape: &[Dim], axis: usize) -> Result<Self> {
        Self::lazily(build::iota(dtype, shape, axis))
    }

    /// `n` numbers from `start` to `stop`, both included, evenly spaced; `n` may be symbolic.
    ///
    /// # Errors
    /// A dtype that is neither floating-point nor complex.
    pub fn linspace(dtype: DType, start: f64, stop: f64, n: &Dim) -> Result<Self> {
        Self::lazily(build::linspace(dtype, start, stop, n))
    }

    /// A traced value; one that is present already becomes a constant.
    fn lazily(v: Var) -> Result<Self> {
        match v {
            Var::Now(n) => Self::from_var(tenferro_core_ops::constant(n.value().clone())),
            v => Self::from_var(v),
        }
    }
}
