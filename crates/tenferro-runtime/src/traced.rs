//! Tensors that stand for a computation: operations on them are recorded, compiled once and run at any extents.

use crate::{program::Program, tier::Recorded};
use smallvec::SmallVec;
use std::sync::Arc;
use tenferro_core_ops::{Aval, Call, Dim, Extents, Outs, Var, constant, input};
use tenferro_tensor::{DType, Error, Result, Scalar, Shape, Tensor, Value};

/// A value of a program that has not run yet. Clones are the same value.
///
/// The operators `+`, `-`, `*` and `/` are those of two values, and of a value and a number on either side, as for an
/// [`EagerTensor`](crate::EagerTensor).
///
/// ```
/// use tenferro_cpu::CpuBackend;
/// use tenferro_runtime::{DType, Dim, GraphCompiler, Tensor, TracedTensor};
///
/// let n = Dim::symbol("n");
/// let x = TracedTensor::input(DType::F64, &[n]);
/// let y = (&x * &x)?.reduce_sum(None)?;
/// let program = GraphCompiler::new().compile(&y)?;
/// let mut cpu = CpuBackend::new();
/// for n in [1, 3] {
///     let x = Tensor::from_vec_col_major([n], vec![2.0; n])?;
///     assert_eq!(program.run(&mut cpu, &[&x])?[0].item::<f64>()?, 4.0 * n as f64);
/// }
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TracedTensor(Var);

impl Recorded for TracedTensor {
    fn var(&self) -> &Var {
        &self.0
    }

    fn apply(
        &self,
        _: &'static str,
        _: &[&Self],
        f: impl FnOnce() -> Outs<Var>,
    ) -> Result<SmallVec<[Self; 1]>> {
        f().into_iter().map(|v| v.ok().map(|v| TracedTensor(v.clone()))).collect()
    }

    fn apply1(&self, _: &'static str, _: &[&Self], f: impl FnOnce() -> Var) -> Result<Self> {
        match f() {
            Var::Failed(e) => Err(e),
            v => Ok(TracedTensor(v)),
        }
    }
}

impl TracedTensor {
    /// An input of the program, given when it runs. Extents with the same symbol must then be equal.
    pub fn input(dtype: DType, shape: &[Dim]) -> Self {
        TracedTensor(input(Aval::new(dtype, shape.iter().cloned())))
    }

    /// A constant of the program. It has an identity: it can be differentiated with respect to, and two of them
    /// are different even if they hold the same.
    ///
    /// # Errors
    /// If `shape` does not have as many elements as `data`.
    pub fn from_vec_col_major<T: Scalar>(shape: impl Into<Shape>, data: Vec<T>) -> Result<Self> {
        Ok(Self::from_tensor(Tensor::from_vec_col_major(shape, data)?))
    }

    /// A constant of the program; see [`from_vec_col_major`](Self::from_vec_col_major).
    pub fn from_tensor(t: Tensor) -> Self {
        TracedTensor(constant(Value::new(t)))
    }

    /// A constant of one element and no axes.
    ///
    /// # Errors
    /// Allocation.
    pub fn scalar<T: Scalar>(value: T) -> Result<Self> {
        Self::from_vec_col_major(Shape::default(), vec![value])
    }

    /// A result of rules written on [`Var`].
    ///
    /// # Errors
    /// If the value is an error.
    pub fn from_var(v: Var) -> Result<Self> {
        v.ok()?;
        Ok(TracedTensor(v))
    }

    /// `f` of the values of `x`.
    ///
    /// # Errors
    /// What `f` reports in its result.
    pub fn map(x: &[&TracedTensor], f: impl FnOnce(&[&Var]) -> Var) -> Result<TracedTensor> {
        let vars: SmallVec<[&Var; 4]> = x.iter().map(|x| &x.0).collect();
        Self::from_var(f(&vars))
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.0.dtype()
    }

    /// Extents, known or symbolic.
    pub fn shape(&self) -> Extents<Dim> {
        self.0.shape()
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.0.rank()
    }

    /// The elements in column-major order under another shape, whose extents may be symbolic.
    ///
    /// # Errors
    /// If the numbers of elements are known to differ.
    pub fn reshape_dims(&self, shape: &[Dim]) -> Result<Self> {
        Self::from_var(self.0.reshape(shape))
    }

    /// Repeated to a shape this one is right-aligned with, whose extents may be symbolic.
    ///
    /// # Errors
    /// If the shapes do not fit.
    pub fn broadcast_to_dims(&self, shape: &[Dim]) -> Result<Self> {
        Self::from_var(tenferro_core_ops::broadcast_to(&self.0, shape))
    }

    /// Elements `start` up to, but not including, `limit` along an axis; both may be symbolic.
    ///
    /// # Errors
    /// An axis that does not exist, or bounds that are known not to fit.
    pub fn slice_axis_dims(&self, axis: usize, start: Dim, limit: Dim) -> Result<Self> {
        Self::from_var(self.0.slice_axis(axis, start, limit))
    }

    /// Axis `i` becomes axis `axes[i]` of a tensor of this shape, whose extents may be symbolic; other axes, and those
    /// of extent 1, repeat.
    ///
    /// # Errors
    /// Axes that do not exist or are named twice, or extents that are known not to fit.
    pub fn broadcast_in_dim_dims(&self, shape: &[Dim], axes: &[usize]) -> Result<Self> {
        Self::from_var(self.0.broadcast_in_dim(shape, axes))
    }

    /// Every `steps[i]`-th element from `starts[i]` up to, but not including, `limits[i]` along axis `i`; these may be
    /// symbolic.
    ///
    /// # Errors
    /// Not one of each for every axis, a step of 0, or bounds that are known not to fit.
    pub fn slice_dims(&self, starts: &[Dim], limits: &[Dim], steps: &[usize]) -> Result<Self> {
        Self::from_var(self.0.slice(starts, limits, steps))
    }

    /// The block of extents `shape`, which may be symbolic, at `starts`, an integer vector with one entry per axis.
    ///
    /// # Errors
    /// A dtype or shape of `starts` other than that, or extents that are known not to fit.
    pub fn dynamic_slice_dims(&self, starts: &Self, shape: &[Dim]) -> Result<Self> {
        Self::from_var(self.0.dynamic_slice(&starts.0, shape))
    }

    /// With `low[i]` copies of the scalar `value` before, `high[i]` after and `interior[i]` between neighbours along
    /// axis `i`; `low` and `high` may be symbolic.
    ///
    /// # Errors
    /// Not one of each for every axis, or a `value` that has axes or another dtype.
    pub fn pad_dims(&self, value: &Self, low: &[Dim], high: &[Dim], interior: &[usize]) -> Result<Self> {
        Self::from_var(self.0.pad(&value.0, low, high, interior))
    }

    pub(crate) fn call(&self) -> Result<&Arc<Call>> {
        match &self.0 {
            Var::Later(call, _) => Ok(call),
            Var::Failed(e) => Err(e.clone()),
            Var::Now(_) => Err(Error::unknown_input("compile", "an input", "a constant", "a traced input")),
        }
    }
}

/// Turns traced values into programs.
#[derive(Debug, Default)]
pub struct GraphCompiler {}

impl GraphCompiler {
    /// A compiler.
    pub fn new() -> Self {
        GraphCompiler {}
    }

    /// The program that computes `y` from the inputs it depends on, in the order of their creation.
    ///
    /// # Errors
    /// [`Error::Guard`](crate::Error::Guard) for a symbol that is the extent of no input it depends on, as in the
    /// gradient of a sum: give the inputs to [`compile_with`](Self::compile_with).
    pub fn compile(&mut self, y: &TracedTensor) -> Result<Program> {
        self.compile_many(&[y])
    }

    /// The program that computes all of `y` from the inputs they depend on, in the order of their creation.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_many(&mut self, y: &[&TracedTensor]) -> Result<Program> {
        let outputs: Vec<Var> = y.iter().map(|y| y.0.clone()).collect();
        Program::from_outputs(&outputs)
    }

    /// The program that computes all of `y` from `inputs`, in this order.
    ///
    /// # Errors
    /// If `y` depends on an input, or has a symbol for an extent, that is not among `inputs`; an input listed twice.
    pub fn compile_with(&mut self, inputs: &[&TracedTensor], y: &[&TracedTensor]) -> Result<Program> {
        inputs.iter().try_for_each(|x| x.call().map(drop))?;
        let inputs: Vec<Var> = inputs.iter().map(|x| x.0.clone()).collect();
        let outputs: Vec<Var> = y.iter().map(|y| y.0.clone()).collect();
        Program::new(&inputs, &outputs)
    }
}
