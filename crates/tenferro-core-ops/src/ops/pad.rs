//! Padding, the transpose of slicing.

use super::{ALL, Axes, expect, first};
use crate::{
    aval::{Aval, Extents},
    dim::{Dim, Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    var::{Var, apply1},
};
use smallvec::smallvec;
use tenferro_tensor::{C64, Error, Result};

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
}

/// The extent of `n` elements with `gap` between neighbours: nothing for no element.
pub(super) fn spread<D: Extent>(n: &D, gap: usize) -> Result<D> {
    if gap == 0 {
        return Ok(n.clone());
    }
    let gaps = D::max(n, &D::lit(1)).sub(&D::lit(1), Pad::NAME)?;
    Ok(n.add(&gaps.mul(&D::lit(gap))))
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
            let edges = D::of(&self.edges[i])?.add(&D::of(&self.edges[rank + i])?);
            y.shape[i] = edges.add(&spread(&x[0].shape[i], self.interior[i])?);
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
        let end = |(i, l): (usize, &Dim)| Ok(l.add(&spread(&n[i], self.interior[i])?));
        let limits: Result<Extents<Dim>> = self.low().iter().enumerate().map(end).collect();
        let limits = match limits {
            Ok(l) => l,
            Err(e) => return x.iter().map(|a| a.is_linear().then(|| Var::Failed(e.clone()))).collect(),
        };
        let steps: Axes = self.interior.iter().map(|g| g.saturating_add(1)).collect();
        let inside = ct.slice(self.low(), &limits, &steps);
        // Everything less the inside would cancel: the surroundings are summed by a mask.
        let value = x[1].is_linear().then(|| {
            let full = |a: &Aval<Dim>, c: f64| Var::full(a, C64::new(c, 0.0));
            let outside = apply1(self, &[&full(&x[0].aval(), 0.0), &full(&x[1].aval(), 1.0)]);
            (&ct * &outside).reduce_sum(None)
        });
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
        let lengths = [low.len(), high.len(), interior.len()];
        if let Err(e) = self.one_per_axis(Pad::NAME, "number of low, high and interior", lengths) {
            return Var::Failed(e);
        }
        if let Err(e) = value.ok() {
            return Var::Failed(e);
        }
        if interior.iter().all(|&g| g == 0) && low.iter().chain(high).all(|d| *d == Dim::Lit(0)) {
            return self.clone();
        }
        apply1(&Pad::new(low, high, interior), &[self, &value.raised(self.dtype())])
    }
}
