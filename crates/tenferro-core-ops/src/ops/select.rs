//! Choice between values, elementwise.

use super::{ALL, ORDERED, expect, expect_same, expect_shape, first};
use crate::{
    aval::Aval,
    dim::{Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    var::{Var, apply1},
};
use smallvec::smallvec;
use tenferro_tensor::{DType, Result};

/// `condition ? x : y`, elementwise.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Select;

impl Primitive for Select {
    const NAME: &'static str = "select";
    const ELEMENTWISE: bool = true;
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 3, &[DType::Bool])?;
        expect(Self::NAME, &x[1..], 2, ALL)?;
        expect_same(Self::NAME, &x[1..])?;
        expect_shape(Self::NAME, "condition", x[0], x[1])?;
        Ok(smallvec![x[1].clone()])
    }
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        if t[1].is_none() && t[2].is_none() {
            return smallvec![None];
        }
        let zero = y[0].like(0.0);
        let [a, b] = [&t[1], &t[2]].map(|t| t.clone().unwrap_or_else(|| zero.clone()));
        smallvec![Some(apply1(self, &[&x[0], &a, &b]))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let (ct, condition) = (first(ct), x[0].known());
        let zero = ct.like(0.0);
        let a = x[1].is_linear().then(|| condition.select(&ct, &zero));
        let b = x[2].is_linear().then(|| condition.select(&zero, &ct));
        smallvec![None, a, b]
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
}

/// `x` limited to the interval from `low` to `high`, elementwise. At an end of the interval the gradient is
/// shared, as for `minimum(maximum(x, low), high)`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Clamp;

impl Primitive for Clamp {
    const NAME: &'static str = "clamp";
    const ELEMENTWISE: bool = true;
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 3, ORDERED)?;
        expect_same(Self::NAME, x)?;
        Ok(smallvec![x[0].clone()])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        Some(smallvec![x[0].maximum(&x[1]).minimum(&x[2])])
    }
}

impl Var {
    /// `self ? a : b`, elementwise, for a bool `self`; all three are broadcast, `a` and `b` promoted.
    pub fn select(&self, a: &Var, b: &Var) -> Var {
        if a.same_aval(b) && self.shape() == a.shape() {
            return apply1(&Select, &[self, a, b]);
        }
        let aligned = crate::surface::align("select", a, b)
            .and_then(|(a, b)| crate::surface::broadcast_all("select", &[self, &a, &b]));
        match aligned {
            Ok(x) => apply1(&Select, &[&x[0], &x[1], &x[2]]),
            Err(e) => Var::Failed(e),
        }
    }

    /// `self` limited to the interval from `low` to `high`; all three are broadcast and promoted.
    pub fn clamp(&self, low: &Var, high: &Var) -> Var {
        let dtype = DType::promote(DType::promote(self.dtype(), low.dtype()), high.dtype());
        let x = [self, low, high].map(|v| v.convert(dtype));
        let aligned = crate::surface::broadcast_all("clamp", &[&x[0], &x[1], &x[2]]);
        match aligned {
            Ok(x) => apply1(&Clamp, &[&x[0], &x[1], &x[2]]),
            Err(e) => Var::Failed(e),
        }
    }
}
