//! Tensors made of their positions.

use super::{NUMBERS, expect_axes};
use crate::{
    aval::{Aval, Extents},
    dim::{Dim, Extent, Fresh},
    op::{Outs, Primitive, Saves, Tangent},
    var::{Var, apply1},
};
use smallvec::smallvec;
use tenferro_tensor::{C64, DType, Error, Result};

/// The position along an axis: `y[.., k, ..] = k`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Iota {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Extents<Dim>,
    /// The axis that is counted.
    pub axis: usize,
}

impl Primitive for Iota {
    const NAME: &'static str = "iota";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        if !x.is_empty() {
            return Err(Error::argument(Self::NAME, "number of inputs", x.len(), 0));
        }
        if !NUMBERS.contains(&self.dtype) {
            return Err(Error::dtype(Self::NAME, "dtype", self.dtype, "a number"));
        }
        expect_axes(Self::NAME, &[self.axis], self.shape.len())?;
        let shape = self.shape.iter().map(D::of).collect::<Result<_>>()?;
        Ok(smallvec![Aval { dtype: self.dtype, shape }])
    }
    fn jvp(&self, _: &[Var], _: &[Var], _: &[Tangent]) -> Outs<Tangent> {
        smallvec![None]
    }
    fn dims(&self) -> &[Dim] {
        &self.shape
    }
    fn with_dims(&self, dims: &[Dim]) -> Self {
        Iota { shape: dims.into(), ..self.clone() }
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

/// The position along `axis` in every element.
pub fn iota(dtype: DType, shape: &[Dim], axis: usize) -> Var {
    apply1(&Iota { dtype, shape: shape.into(), axis }, &[])
}

/// The `n x n` identity matrix.
pub fn eye(dtype: DType, n: &Dim) -> Var {
    Var::full(&Aval::new(dtype, [n.clone()]), C64::new(1.0, 0.0)).embed_diag(0, 1)
}

/// `n` numbers from `start` to `stop`, both included, evenly spaced: `start + k (stop - start) / (n - 1)`.
pub fn linspace(dtype: DType, start: f64, stop: f64, n: &Dim) -> Var {
    if !dtype.is_differentiable() {
        return Var::Failed(Error::dtype("linspace", "dtype", dtype, "a floating-point or complex dtype"));
    }
    let k = iota(dtype, std::slice::from_ref(n), 0);
    let steps = match n {
        Dim::Lit(0 | 1) => return k.like(start),
        Dim::Lit(n) => Var::scalar(dtype, C64::new((n - 1) as f64, 0.0)),
        n => {
            let count = iota(DType::F64, std::slice::from_ref(n), 0).like(1.0).reduce_sum(None);
            // One number is the start: no position is equal to 1.
            (&count + -1.0).maximum(&count.like(1.0)).cast(dtype)
        }
    };
    let y = &(&k * &(steps.like(stop - start) / &steps)) + start;
    // The end is exact, as the start is, whatever the step rounds to.
    k.equal(&steps).select(&y.like(stop), &y)
}
