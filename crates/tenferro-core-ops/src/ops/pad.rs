//! Padding, the transpose of slicing.

use super::{ALL, Axes, expect, first};
use crate::{
    aval::{Aval, Extents},
    dim::{Dim, Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    var::{Var, apply1},
};
use smallvec::smallvec;
use tenferro_tensor::{Error, Result};

/// The operand surrounded by copies of a scalar: along axis `i`, `low[i]` before, `high[i]` after and
/// `interior[i]` between neighbours. Inputs: operand, value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pad {
    /// Low, then high.
    edges: Extents<Dim>,
    interior: Axes,
}

impl Pad {
    /// Padding of each axis.
    pub fn new(low: &[Dim], high: &[Dim], interior: &[usize]) -> Self {
        Pad { edges: low.iter().chain(high).cloned().collect(), interior: interior.into() }
    }

    /// Elements before the operand, along each axis.
    pub fn low(&self) -> &[Dim] {
        &self.edges[..self.interior.len()]
    }

    /// Elements between neighbours, along each axis.
    pub fn interior(&self) -> &[usize] {
        &self.interior
    }

    fn covered(&self, axis: usize, n: &Dim) -> Result<Dim> {
        match (n, self.interior[axis]) {
            (n, 0) => Ok(n.clone()),
            (Dim::Lit(0), _) => Ok(Dim::Lit(0)),
            (n, gap) => n.mul(&Dim::Lit(gap + 1)).sub(&Dim::Lit(gap), Self::NAME),
        }
    }
}

impl Primitive for Pad {
    const NAME: &'static str = "pad";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 2, ALL)?;
        if x[1].dtype != x[0].dtype {
            return Err(Error::dtype(Self::NAME, "padding value", x[1].dtype, x[0].dtype));
        }
        if x[1].rank() != 0 {
            return Err(Error::shape(Self::NAME, "padding value", x[1], "a scalar"));
        }
        let rank = x[0].rank();
        if self.interior.len() != rank || self.edges.len() != 2 * rank {
            return Err(Error::axis(
                Self::NAME,
                "number of low, high and interior",
                self.interior.len(),
                rank,
            ));
        }
        let mut y = x[0].clone();
        for i in 0..rank {
            let (n, gap) = (&x[0].shape[i], self.interior[i]);
            let edges = D::of(&self.edges[i])?.add(&D::of(&self.edges[rank + i])?);
            let covered = match (n.as_lit(), gap) {
                (_, 0) => n.clone(),
                (Some(0), _) => D::lit(0),
                _ => n.mul(&D::lit(gap + 1)).sub(&D::lit(gap), Self::NAME)?,
            };
            y.shape[i] = edges.add(&covered);
        }
        Ok(smallvec![y])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        if t[0].is_none() && t[1].is_none() {
            return smallvec![None];
        }
        let [a, b] = [0, 1].map(|i| t[i].clone().unwrap_or_else(|| x[i].like(0.0)));
        smallvec![Some(apply1(self, &[&a, &b]))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let ct = first(ct);
        let n = x[0].aval().shape;
        let limits: Result<Extents<Dim>> =
            self.low().iter().enumerate().map(|(i, l)| Ok(l.add(&self.covered(i, &n[i])?))).collect();
        let limits = match limits {
            Ok(l) => l,
            Err(e) => return x.iter().map(|a| a.is_linear().then(|| Var::Failed(e.clone()))).collect(),
        };
        let steps: Axes = self.interior.iter().map(|g| g + 1).collect();
        let inside = ct.slice(self.low(), &limits, &steps);
        let value = x[1].is_linear().then(|| ct.reduce_sum(None) - inside.reduce_sum(None));
        smallvec![x[0].is_linear().then_some(inside), value]
    }
    fn dims(&self) -> &[Dim] {
        &self.edges
    }
    fn with_dims(&self, dims: &[Dim]) -> Self {
        Pad { edges: dims.into(), interior: self.interior.clone() }
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

impl Var {
    /// `self` with `low[i]` copies of the scalar `value` before, `high[i]` after and `interior[i]` between
    /// neighbours along axis `i`.
    pub fn pad(&self, value: &Var, low: &[Dim], high: &[Dim], interior: &[usize]) -> Var {
        if interior.iter().all(|&g| g == 0)
            && low.iter().chain(high).all(|d| *d == Dim::Lit(0))
            && low.len() == self.rank()
        {
            return self.clone();
        }
        apply1(&Pad::new(low, high, interior), &[self, &value.convert(self.dtype())])
    }
}
