//! The Hermitian matrix of which one triangle is given.

use crate::batch::expect_square;
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{FLOATS, expect},
};
use tenferro_tensor::Result;

/// The Hermitian matrix that has the lower triangle of a matrix, and the real parts of its diagonal; nothing
/// else is read. As for [`Eigh`](crate::Eigh), a tangent counts by its Hermitian part, and a cotangent is
/// Hermitian.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Hermitian;

impl Primitive for Hermitian {
    const NAME: &'static str = "hermitian";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        expect_square(Self::NAME, x, 0)?;
        Ok(smallvec![x[0].clone()])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let (below, diagonal) = (x[0].tril(-1), x[0].tril(0).triu(0));
        let diagonal = if x[0].dtype().is_complex() { diagonal.real().complex() } else { diagonal };
        Some(smallvec![&(&below + &below.adjoint()) + &diagonal])
    }
    fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(hermitian_part)]
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

/// `(A + A^H) / 2`, of halves: their sum does not overflow.
pub(crate) fn hermitian_part(a: &Var) -> Var {
    let half = a * 0.5;
    &half + &half.adjoint()
}

/// See [`Hermitian`].
pub(crate) fn hermitian(a: &Var) -> Var {
    apply1(&Hermitian, &[a])
}
