//! Triangles of matrices.

use super::{NUMBERS, expect, first, linear};
use crate::{
    aval::Aval,
    dim::{Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    var::{Var, apply1},
};
use smallvec::smallvec;
use tenferro_tensor::{Error, Result};

/// The operand on and below (`lower`), or on and above, the `diagonal`-th diagonal of its first two axes;
/// zero elsewhere. Diagonal 0 is the main one, positive ones are above it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Triangle {
    /// Which side is kept.
    pub lower: bool,
    /// The diagonal that bounds it.
    pub diagonal: isize,
}

impl Primitive for Triangle {
    const NAME: &'static str = "triangle";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        let name = if self.lower { "tril" } else { "triu" };
        expect(name, x, 1, NUMBERS)?;
        if x[0].rank() < 2 {
            return Err(Error::shape(name, "rank", x[0].rank(), "at least 2"));
        }
        Ok(smallvec![x[0].clone()])
    }
    fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        linear(self, t)
    }
    fn transpose(&self, ct: &[Tangent], _: &[Arg]) -> Outs<Tangent> {
        smallvec![Some(apply1(self, &[&first(ct)]))]
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

impl Var {
    /// The lower triangle of the first two axes, up to `diagonal`.
    pub fn tril(&self, diagonal: isize) -> Var {
        apply1(&Triangle { lower: true, diagonal }, &[self])
    }

    /// The upper triangle of the first two axes, from `diagonal`.
    pub fn triu(&self, diagonal: isize) -> Var {
        apply1(&Triangle { lower: false, diagonal }, &[self])
    }
}
