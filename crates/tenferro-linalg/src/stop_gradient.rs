//! A value without its derivative.

use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{ALL, expect},
};
use tenferro_tensor::{Layout, Result};

/// The identity with derivative zero: for values that a rule reads as hints, without differentiating how
/// they were found.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StopGradient;

impl Primitive for StopGradient {
    const NAME: &'static str = "stop_gradient";
    const VIEW: bool = true;
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, ALL)?;
        Ok(smallvec![x[0].clone()])
    }
    fn jvp(&self, _: &[Var], _: &[Var], _: &[Tangent]) -> Outs<Tangent> {
        smallvec![None]
    }
    fn view(&self, x: &Layout) -> Option<Layout> {
        Some(x.clone())
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

/// `x`, taken as a constant by every derivative.
pub fn stop_gradient(x: &Var) -> Var {
    match x {
        Var::Later(..) => apply1(&StopGradient, &[x]),
        x => x.detach(),
    }
}
