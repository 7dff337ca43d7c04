//! Extents that must be equal, checked again by every run of a program.
//!
//! The shape rule of an operation is asked when a call is recorded and when it runs. A function that is no
//! operation is only called while recording, where two symbols may stand for the same extent or not: it
//! passes an operand on through [`checked`], which leaves the question to the run.

use smallvec::smallvec;
use tenferro_core_ops::{
    Arg, Aval, Dim, Extent, Fresh, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{ALL, expect},
};
use tenferro_tensor::{Layout, Result};

/// The identity, where two extents are equal; an error elsewhere. Derivatives are checked, too.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EqualExtents {
    /// The operation that its error names.
    pub op: &'static str,
    /// What the first extent is.
    pub what: &'static str,
    /// The extent that is given, and the one that is expected.
    pub extents: [Dim; 2],
}

impl Primitive for EqualExtents {
    const NAME: &'static str = "equal_extents";
    const VIEW: bool = true;
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, ALL)?;
        let [got, expected] = &self.extents;
        D::equal(self.op, self.what, &D::of(got)?, &D::of(expected)?)?;
        Ok(smallvec![x[0].clone()])
    }
    fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(|t| apply1(self, &[t]))]
    }
    fn transpose(&self, ct: &[Tangent], _: &[Arg]) -> Outs<Tangent> {
        smallvec![ct[0].as_ref().map(|ct| apply1(self, &[ct]))]
    }
    fn view(&self, x: &Layout) -> Option<Layout> {
        let [got, expected] = &self.extents;
        (got == expected).then(|| x.clone())
    }
    fn dims(&self) -> &[Dim] {
        &self.extents
    }
    fn with_dims(&self, dims: &[Dim]) -> Self {
        EqualExtents { extents: [dims[0].clone(), dims[1].clone()], ..self.clone() }
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

/// `x`, if the extent `got` is `expected`, for the operation `op`.
pub(crate) fn checked(
    op: &'static str,
    what: &'static str,
    x: &Var,
    [got, expected]: [&Dim; 2],
) -> Result<Var> {
    if got == expected {
        return x.ok().cloned();
    }
    let op = EqualExtents { op, what, extents: [got.clone(), expected.clone()] };
    apply1(&op, &[x]).ok().cloned()
}
