//! The identity, whose kernel makes an operand compact.

use super::{ALL, expect, first, linear};
use crate::{
    aval::Aval,
    dim::{Dim, Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    simplify::{Rewrite, Term},
    var::Var,
};
use smallvec::smallvec;
use tenferro_tensor::Result;

/// `x` in a compact buffer of its own.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Copy;

impl Primitive for Copy {
    const NAME: &'static str = "copy";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, ALL)?;
        Ok(smallvec![x[0].clone()])
    }
    fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        linear(self, t)
    }
    fn transpose(&self, ct: &[Tangent], _: &[Arg]) -> Outs<Tangent> {
        smallvec![Some(first(ct))]
    }
    /// `x`, which a program need not have twice.
    fn simplify<'a>(&self, x: &[Term<'a>], _: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
        Some(Rewrite::Same(x[0]))
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}
