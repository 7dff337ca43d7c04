//! What shape rules see of a tensor: its dtype and extents, not its data.

use crate::dim::{Dim, Env, Extent};
use smallvec::SmallVec;
use std::fmt;
use tenferro_tensor::{DType, Result};

/// The extents of a tensor, inline up to rank 6.
pub type Extents<D = usize> = SmallVec<[D; 6]>;

/// An abstract value. `D` is `usize` when running and [`Dim`] while tracing.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Aval<D = usize> {
    /// Element type.
    pub dtype: DType,
    /// Extents, leftmost axis fastest in memory.
    pub shape: Extents<D>,
}

/// The number of elements of a shape that a tensor can have: beside an extent of zero, the product of the others
/// may overflow.
#[inline]
pub fn elements(shape: &[usize]) -> usize {
    shape.iter().fold(1, |n, &extent| n.wrapping_mul(extent))
}

impl<D: Extent> Clone for Aval<D> {
    #[inline]
    fn clone(&self) -> Self {
        self.with_dtype(self.dtype)
    }
}

impl<D: Extent> Aval<D> {
    /// An abstract value of this dtype and shape.
    pub fn new(dtype: DType, shape: impl IntoIterator<Item = D>) -> Self {
        Aval { dtype, shape: shape.into_iter().collect() }
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The same shape with another dtype.
    pub fn with_dtype(&self, dtype: DType) -> Self {
        Aval { dtype, shape: D::copy(&self.shape) }
    }
}

impl Aval {
    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        elements(&self.shape)
    }

    /// No elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The same with literal extents.
    pub fn symbolic(&self) -> Aval<Dim> {
        Aval { dtype: self.dtype, shape: self.shape.iter().map(|&n| Dim::Lit(n)).collect() }
    }
}

impl Aval<Dim> {
    /// Number of elements.
    pub fn count(&self) -> Dim {
        self.shape.iter().fold(Dim::Lit(1), |n, d| n.mul(d))
    }

    /// The extents under `env`.
    pub fn eval(&self, env: &Env) -> Result<Aval> {
        Ok(Aval { dtype: self.dtype, shape: self.shape.iter().map(|d| d.eval(env)).collect::<Result<_>>()? })
    }
}

impl<D: Extent> fmt::Display for Aval<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, ShapeOf(&self.shape))
    }
}

/// Shows extents as `[2, n, 3]`.
pub struct ShapeOf<'a, D>(pub &'a [D]);

impl<D: fmt::Display> fmt::Display for ShapeOf<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.0.iter().enumerate() {
            write!(f, "{}{d}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str("]")
    }
}
