//! Slices whose position is data.

use super::{ALL, expect, first};
use crate::{
    aval::{Aval, Extents},
    dim::{Dim, Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    var::{Var, apply1},
};
use smallvec::smallvec;
use tenferro_tensor::{DType, Error, Result};

/// The block of extents `shape` at `starts`, an i64 vector with one entry per axis. Inputs: operand, starts.
/// A block that does not fit is an error.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DynamicSlice {
    /// Extents of the block.
    pub shape: Extents<Dim>,
}

/// The operand with the block at `starts` replaced. Inputs: operand, block, starts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DynamicUpdateSlice;

fn expect_starts<D: Extent>(op: &'static str, starts: &Aval<D>, rank: usize) -> Result<()> {
    if starts.dtype != DType::I64 || starts.rank() != 1 {
        return Err(Error::shape(op, "starts", starts, format_args!("i64[{rank}]")));
    }
    D::equal(op, "number of starts", &starts.shape[0], &D::lit(rank))
}

impl Primitive for DynamicSlice {
    const NAME: &'static str = "dynamic_slice";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 2, ALL)?;
        expect_starts(Self::NAME, x[1], x[0].rank())?;
        if self.shape.len() != x[0].rank() {
            return Err(Error::axis(Self::NAME, "number of extents", self.shape.len(), x[0].rank()));
        }
        let shape: Extents<D> = self.shape.iter().map(D::of).collect::<Result<_>>()?;
        for (s, n) in shape.iter().zip(&x[0].shape) {
            if let (Some(s), Some(n)) = (s.as_lit(), n.as_lit())
                && s > n
            {
                return Err(Error::shape(Self::NAME, "extent of the block", s, format_args!("at most {n}")));
            }
        }
        Ok(smallvec![Aval { dtype: x[0].dtype, shape }])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(|t| apply1(self, &[t, &x[1]]))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let zero = Var::full(&x[0].aval(), tenferro_tensor::C64::new(0.0, 0.0));
        smallvec![Some(apply1(&DynamicUpdateSlice, &[&zero, &first(ct), &x[1].known()])), None]
    }
    fn dims(&self) -> &[Dim] {
        &self.shape
    }
    fn with_dims(&self, dims: &[Dim]) -> Self {
        DynamicSlice { shape: dims.into() }
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
}

impl Primitive for DynamicUpdateSlice {
    const NAME: &'static str = "dynamic_update_slice";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 3, ALL)?;
        if x[1].dtype != x[0].dtype {
            return Err(Error::dtype(Self::NAME, "block", x[1].dtype, x[0].dtype));
        }
        if x[1].rank() != x[0].rank() {
            return Err(Error::shape(Self::NAME, "block", x[1], format_args!("the rank of {}", x[0])));
        }
        expect_starts(Self::NAME, x[2], x[0].rank())?;
        Ok(smallvec![x[0].clone()])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        if t[0].is_none() && t[1].is_none() {
            return smallvec![None];
        }
        let [a, b] = [0, 1].map(|i| t[i].clone().unwrap_or_else(|| x[i].like(0.0)));
        smallvec![Some(apply1(self, &[&a, &b, &x[2]]))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let (ct, block, starts) = (first(ct), x[1].aval(), x[2].known());
        let outside = x[0].is_linear().then(|| {
            let zero = Var::full(&block, tenferro_tensor::C64::new(0.0, 0.0));
            apply1(self, &[&ct, &zero, &starts])
        });
        let inside =
            x[1].is_linear().then(|| apply1(&DynamicSlice { shape: block.shape.clone() }, &[&ct, &starts]));
        smallvec![outside, inside, None]
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
}

impl Var {
    /// The block of extents `shape` at `starts`, an integer vector with one entry per axis.
    pub fn dynamic_slice(&self, starts: &Var, shape: &[Dim]) -> Var {
        apply1(&DynamicSlice { shape: shape.into() }, &[self, &starts.raised(DType::I64)])
    }

    /// `self` with the block at `starts` replaced by `block`.
    pub fn dynamic_update_slice(&self, block: &Var, starts: &Var) -> Var {
        apply1(&DynamicUpdateSlice, &[self, &block.raised(self.dtype()), &starts.raised(DType::I64)])
    }
}
