//! Diagonals of pairs of axes.

use super::{ALL, Axes, expect, expect_axes, first, linear};
use crate::{
    aval::Aval,
    dim::{Dim, Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    var::{Var, apply1},
};
use smallvec::smallvec;
use tenferro_tensor::{Error, Layout, Result};

/// `y[.., i] = x[.., i, .., i, ..]`: the diagonal of two axes as a new last axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExtractDiag {
    /// The two axes, the smaller first.
    pub axes: (usize, usize),
}

/// The transpose of [`ExtractDiag`]: the last axis becomes the diagonal of two axes, zero elsewhere.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EmbedDiag {
    /// Where the two axes are in the result, the smaller first.
    pub axes: (usize, usize),
}

fn expect_pair(op: &'static str, axes: (usize, usize), rank: usize) -> Result<()> {
    if axes.0 >= axes.1 || axes.1 >= rank {
        let got = format_args!("{axes:?}").to_string();
        return Err(Error::axis(op, "axes", got, format_args!("two increasing axes below {rank}")));
    }
    Ok(())
}

impl Primitive for ExtractDiag {
    const NAME: &'static str = "extract_diag";
    const VIEW: bool = true;
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, ALL)?;
        let (a, b) = self.axes;
        expect_pair(Self::NAME, self.axes, x[0].rank())?;
        let n = D::min(&x[0].shape[a], &x[0].shape[b]);
        let kept = (0..x[0].rank()).filter(|&i| i != a && i != b).map(|i| x[0].shape[i].clone());
        Ok(smallvec![Aval::new(x[0].dtype, kept.chain([n]))])
    }
    fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        linear(self, t)
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let y = apply1(&EmbedDiag { axes: self.axes }, &[&first(ct)]);
        // A rectangle is longer than its diagonal along one of the two axes.
        let operand = x[0].aval().shape;
        let have = y.shape();
        if have.len() != operand.len() {
            return smallvec![Some(y)];
        }
        let low: crate::aval::Extents<Dim> = smallvec![Dim::Lit(0); operand.len()];
        let high: Result<crate::aval::Extents<Dim>> =
            operand.iter().zip(&have).map(|(n, h)| n.sub(h, Self::NAME)).collect();
        let gaps: Axes = smallvec![0; operand.len()];
        smallvec![Some(match high {
            Ok(high) =>
                y.pad(&Var::scalar(y.dtype(), tenferro_tensor::C64::new(0.0, 0.0)), &low, &high, &gaps),
            Err(e) => Var::Failed(e),
        })]
    }
    fn view(&self, x: &Layout) -> Option<Layout> {
        x.diagonal(Self::NAME, self.axes.0, self.axes.1).ok()
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

impl Primitive for EmbedDiag {
    const NAME: &'static str = "embed_diag";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, ALL)?;
        expect_axes(Self::NAME, &[0], x[0].rank())?;
        expect_pair(Self::NAME, self.axes, x[0].rank() + 1)?;
        let (rest, n) = x[0].shape.split_at(x[0].rank() - 1);
        let mut shape: crate::aval::Extents<D> = rest.iter().cloned().collect();
        shape.insert(self.axes.0, n[0].clone());
        shape.insert(self.axes.1, n[0].clone());
        Ok(smallvec![Aval { dtype: x[0].dtype, shape }])
    }
    fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        linear(self, t)
    }
    fn transpose(&self, ct: &[Tangent], _: &[Arg]) -> Outs<Tangent> {
        smallvec![Some(apply1(&ExtractDiag { axes: self.axes }, &[&first(ct)]))]
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

impl Var {
    /// The diagonal of two axes, as a new last axis of the smaller of their extents.
    #[inline]
    pub fn extract_diag(&self, axis1: usize, axis2: usize) -> Var {
        let axes = (axis1.min(axis2), axis1.max(axis2));
        self.view_now(|x| x.diagonal(ExtractDiag::NAME, axes.0, axes.1).ok())
            .unwrap_or_else(|| apply1(&ExtractDiag { axes }, &[self]))
    }

    /// The last axis as the diagonal of two axes, which are at `axis1` and `axis2` in the result; zero
    /// elsewhere.
    pub fn embed_diag(&self, axis1: usize, axis2: usize) -> Var {
        apply1(&EmbedDiag { axes: (axis1.min(axis2), axis1.max(axis2)) }, &[self])
    }
}
