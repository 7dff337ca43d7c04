//! Change of dtype.

use super::{ALL, expect, first};
use crate::{
    aval::Aval,
    dim::{Dim, Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    simplify::{Rewrite, Term},
    var::{Var, apply1},
};
use smallvec::smallvec;
use tenferro_tensor::{DType, Error, Result};

/// The elements as another dtype: a complex number loses its imaginary part, a float is truncated towards
/// zero (saturating, NaN gives 0), an integer keeps the bits that fit, anything non-zero is true.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cast {
    /// The dtype of the result.
    pub to: DType,
}

impl Primitive for Cast {
    const NAME: &'static str = "cast";
    const ELEMENTWISE: bool = true;
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, ALL)?;
        Ok(smallvec![x[0].with_dtype(self.to)])
    }
    fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().filter(|_| self.to.is_differentiable()).map(|t| apply1(self, &[t]))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        smallvec![Some(first(ct).cast(x[0].aval().dtype))]
    }
    /// To its own dtype, `x`.
    fn simplify<'a>(&self, x: &[Term<'a>], _: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
        (x[0].aval().dtype == self.to).then(|| Rewrite::Same(x[0]))
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

impl Var {
    /// The elements as `to`, losing what does not fit; see [`Cast`].
    pub fn cast(&self, to: DType) -> Var {
        if self.dtype() == to { self.clone() } else { apply1(&Cast { to }, &[self]) }
    }

    /// The elements as `to` if that loses nothing, else as they are, for the shape rule to refuse in the name of its
    /// operation.
    pub(super) fn raised(&self, to: DType) -> Var {
        if self.dtype().can_convert_to(to) { self.cast(to) } else { self.clone() }
    }

    /// The elements as `to`, without loss of kind: only up the promotion lattice.
    pub fn convert(&self, to: DType) -> Var {
        if self.ok().is_err() {
            self.clone()
        } else if self.dtype().can_convert_to(to) {
            self.cast(to)
        } else {
            let expected = "a dtype above it in the promotion order (use cast to lose information)";
            Var::Failed(Error::dtype("convert", format!("from {}", self.dtype()), to, expected))
        }
    }
}
