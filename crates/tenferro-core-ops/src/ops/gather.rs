//! Reading and adding at positions that are data. An index outside of its axis is an error.

use super::{ALL, NUMBERS, expect, expect_axes, first};
use crate::{
    aval::{Aval, Extents},
    dim::{Dim, Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    var::{Var, apply1},
};
use smallvec::smallvec;
use tenferro_tensor::{DType, Error, Result};

/// Entries of an axis by an i64 vector of positions: `y[.., k, ..] = x[.., index[k], ..]`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IndexSelect {
    /// The axis.
    pub axis: usize,
}

/// The transpose of [`IndexSelect`]: `y[.., index[k], ..] += x[.., k, ..]`, starting from zero.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IndexAdd {
    /// The axis.
    pub axis: usize,
    /// Its extent in the result.
    pub extent: [Dim; 1],
}

/// One entry of an axis for every position: `y[i, .., k, ..] = x[i, .., index[i, .., k, ..], ..]`. The index has
/// the shape of the operand except along the axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Gather {
    /// The axis.
    pub axis: usize,
}

/// The transpose of [`Gather`]: `y[i, .., index[i, .., k, ..], ..] += x[i, .., k, ..]`, starting from zero.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ScatterAdd {
    /// The axis.
    pub axis: usize,
    /// Its extent in the result.
    pub extent: [Dim; 1],
}

fn expect_index<D: Extent>(op: &'static str, index: &Aval<D>, rank: usize) -> Result<()> {
    if index.dtype != DType::I64 {
        return Err(Error::dtype(op, "index", index.dtype, DType::I64));
    }
    if index.rank() != rank {
        return Err(Error::shape(op, "rank of the index", index.rank(), rank));
    }
    Ok(())
}

fn expect_beside<D: Extent>(op: &'static str, index: &Aval<D>, x: &Aval<D>, axis: usize) -> Result<()> {
    expect_index(op, index, x.rank())?;
    let fits =
        (0..x.rank()).all(|i| i == axis || D::equal(op, "index", &index.shape[i], &x.shape[i]).is_ok());
    if fits {
        Ok(())
    } else {
        Err(Error::shape(op, "index", index, format_args!("{x} except along axis {axis}")))
    }
}

impl Primitive for IndexSelect {
    const NAME: &'static str = "index_select";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 2, ALL)?;
        expect_axes(Self::NAME, &[self.axis], x[0].rank())?;
        expect_index(Self::NAME, x[1], 1)?;
        let mut y = x[0].clone();
        y.shape[self.axis] = x[1].shape[0].clone();
        Ok(smallvec![y])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(|t| apply1(self, &[t, &x[1]]))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let extent = [x[0].aval().shape[self.axis].clone()];
        smallvec![Some(apply1(&IndexAdd { axis: self.axis, extent }, &[&first(ct), &x[1].known()])), None]
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
}

impl Primitive for IndexAdd {
    const NAME: &'static str = "index_add";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 2, NUMBERS)?;
        expect_axes(Self::NAME, &[self.axis], x[0].rank())?;
        expect_index(Self::NAME, x[1], 1)?;
        D::equal(Self::NAME, "length of the index", &x[1].shape[0], &x[0].shape[self.axis])?;
        let mut y = x[0].clone();
        y.shape[self.axis] = D::of(&self.extent[0])?;
        Ok(smallvec![y])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(|t| apply1(self, &[t, &x[1]]))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        smallvec![Some(apply1(&IndexSelect { axis: self.axis }, &[&first(ct), &x[1].known()])), None]
    }
    fn dims(&self) -> &[Dim] {
        &self.extent
    }
    fn with_dims(&self, dims: &[Dim]) -> Self {
        IndexAdd { axis: self.axis, extent: [dims[0].clone()] }
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
}

impl Primitive for Gather {
    const NAME: &'static str = "gather";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 2, ALL)?;
        expect_axes(Self::NAME, &[self.axis], x[0].rank())?;
        expect_beside(Self::NAME, x[1], x[0], self.axis)?;
        Ok(smallvec![x[1].with_dtype(x[0].dtype)])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(|t| apply1(self, &[t, &x[1]]))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let extent = [x[0].aval().shape[self.axis].clone()];
        smallvec![Some(apply1(&ScatterAdd { axis: self.axis, extent }, &[&first(ct), &x[1].known()])), None]
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
}

impl Primitive for ScatterAdd {
    const NAME: &'static str = "scatter_add";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 2, NUMBERS)?;
        expect_axes(Self::NAME, &[self.axis], x[0].rank())?;
        expect_index(Self::NAME, x[1], x[0].rank())?;
        super::expect_shape(Self::NAME, "index", x[1], x[0])?;
        let mut y = x[0].clone();
        y.shape[self.axis] = D::of(&self.extent[0])?;
        Ok(smallvec![y])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(|t| apply1(self, &[t, &x[1]]))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        smallvec![Some(apply1(&Gather { axis: self.axis }, &[&first(ct), &x[1].known()])), None]
    }
    fn dims(&self) -> &[Dim] {
        &self.extent
    }
    fn with_dims(&self, dims: &[Dim]) -> Self {
        ScatterAdd { axis: self.axis, extent: [dims[0].clone()] }
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
}

impl Var {
    /// Entries of an axis by an integer vector of positions.
    pub fn index_select(&self, index: &Var, axis: usize) -> Var {
        apply1(&IndexSelect { axis }, &[self, &index.raised(DType::I64)])
    }

    /// One entry of an axis for every position: `y[i, .., k, ..] = x[i, .., index[i, .., k, ..], ..]`.
    pub fn gather(&self, index: &Var, axis: usize) -> Var {
        apply1(&Gather { axis }, &[self, &index.raised(DType::I64)])
    }

    /// Entries of an axis by an integer tensor of positions, whose axes replace it.
    pub fn take_axis(&self, index: &Var, axis: usize) -> Var {
        let (own, places) = (self.shape(), index.shape());
        if let Err(e) = self.ok().map(drop).and_then(|()| expect_axes("take_axis", &[axis], own.len())) {
            return Var::Failed(e);
        }
        let count = places.iter().fold(Dim::Lit(1), |p, n| p.mul(n));
        let shape: Extents<Dim> =
            own[..axis].iter().chain(&places).chain(&own[axis + 1..]).cloned().collect();
        self.index_select(&index.reshape(&[count]), axis).reshape(&shape)
    }
}
