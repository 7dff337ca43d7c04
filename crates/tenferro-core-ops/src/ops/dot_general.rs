//! Contraction of two tensors, the operation all matrix products and einsums become.

use super::{Axes, Conj, NUMBERS, Transpose, expect, expect_axes, first, sum};
use crate::{
    aval::{Aval, Extents},
    dim::{Dim, Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    simplify::{Rewrite, Term},
    var::{Var, apply1},
};
use smallvec::{SmallVec, smallvec};
use tenferro_tensor::{DType, Error, Result};

/// `y[l.., r.., b..] = sum over c of lhs[l.., c.., b..] rhs[r.., c.., b..]`, wherever those axes stand in the
/// operands: `lhs_contract[i]` is summed with `rhs_contract[i]`, `lhs_batch[i]` runs with `rhs_batch[i]`, and
/// the rest are free. The result has the free axes of lhs, then those of rhs, then the batch axes.
/// An operand may be conjugated.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct DotGeneral {
    /// Axes of lhs that are summed.
    pub lhs_contract: Axes,
    /// Axes of rhs that are summed.
    pub rhs_contract: Axes,
    /// Axes of lhs that are kept in both.
    pub lhs_batch: Axes,
    /// Axes of rhs that are kept in both.
    pub rhs_batch: Axes,
    /// Whether lhs is conjugated.
    pub conj_lhs: bool,
    /// Whether rhs is conjugated.
    pub conj_rhs: bool,
}

impl DotGeneral {
    /// Axes of lhs that are neither summed nor batch, in order.
    pub fn lhs_free(&self, rank: usize) -> Axes {
        free(rank, &self.lhs_contract, &self.lhs_batch)
    }

    /// Axes of rhs that are neither summed nor batch, in order.
    pub fn rhs_free(&self, rank: usize) -> Axes {
        free(rank, &self.rhs_contract, &self.rhs_batch)
    }

    /// Where operand `i`, `x`, is `conj(z)`: the same contraction with `z` instead, and `z`.
    fn without_conj<'a>(&self, i: usize, x: Term<'a>) -> Option<(Self, Term<'a>)> {
        let (_, z) = x.made_by::<Conj>()?;
        let mut op = self.clone();
        let conj = if i == 0 { &mut op.conj_lhs } else { &mut op.conj_rhs };
        *conj = !*conj;
        Some((op, z[0]))
    }

    /// Where operand `i`, `x`, is a transpose of `z`: the same contraction with `z` instead, and `z`.
    fn without_transpose<'a>(&self, i: usize, x: Term<'a>) -> Option<(Self, Term<'a>)> {
        let (Transpose { perm }, z) = x.made_by()?;
        let free = if i == 0 { self.lhs_free(perm.len()) } else { self.rhs_free(perm.len()) };
        // The free axes of the result stand in the order of the operand's own.
        if !free.windows(2).all(|w| perm[w[0]] < perm[w[1]]) {
            return None;
        }
        let mut op = self.clone();
        let (contract, batch) = match i {
            0 => (&mut op.lhs_contract, &mut op.lhs_batch),
            _ => (&mut op.rhs_contract, &mut op.rhs_batch),
        };
        contract.iter_mut().chain(batch).for_each(|a| *a = perm[*a]);
        Some((op, z[0]))
    }
}

fn free(rank: usize, contract: &[usize], batch: &[usize]) -> Axes {
    let mut axes = Axes::new();
    for a in 0..rank {
        if !contract.contains(&a) && !batch.contains(&a) {
            axes.push(a);
        }
    }
    axes
}

fn concatenated(a: &[usize], b: &[usize]) -> Axes {
    let mut axes = Axes::from_slice(a);
    axes.extend_from_slice(b);
    axes
}

/// `axes` in the ascending order of their partners: as a product leaves them that sums over all other axes of
/// the partners' operand.
fn by_partner(axes: &[usize], partners: &[usize]) -> Axes {
    let mut pairs: SmallVec<[(usize, usize); 6]> =
        partners.iter().copied().zip(axes.iter().copied()).collect();
    pairs.sort();
    pairs.into_iter().map(|(_, axis)| axis).collect()
}

/// `y`, whose axes are those of an operand in the order `axes`, with them in place.
fn in_place(y: &Var, axes: [&[usize]; 3]) -> Var {
    let mut perm: Axes = smallvec![0; axes.iter().map(|a| a.len()).sum()];
    for (at, &axis) in axes.into_iter().flatten().enumerate() {
        perm[axis] = at;
    }
    y.transpose(&perm)
}

impl Primitive for DotGeneral {
    const NAME: &'static str = "dot_general";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 2, NUMBERS)?;
        if x[1].dtype != x[0].dtype {
            return Err(Error::dtype(Self::NAME, "rhs", x[1].dtype, x[0].dtype));
        }
        let (a, b) = (&x[0].shape, &x[1].shape);
        let pairs = [
            ("contracted axes", &self.lhs_contract, &self.rhs_contract),
            ("batch axes", &self.lhs_batch, &self.rhs_batch),
        ];
        for (what, l, r) in pairs {
            if l.len() != r.len() {
                return Err(Error::axis(
                    Self::NAME,
                    what,
                    format_args!("{} and {}", l.len(), r.len()),
                    "as many of lhs as of rhs",
                ));
            }
        }
        expect_axes(Self::NAME, &concatenated(&self.lhs_contract, &self.lhs_batch), a.len())?;
        expect_axes(Self::NAME, &concatenated(&self.rhs_contract, &self.rhs_batch), b.len())?;
        for (what, l, r) in pairs {
            for (&i, &j) in l.iter().zip(r) {
                D::equal(Self::NAME, what, &a[i], &b[j]).map_err(|_| {
                    let got =
                        format_args!("{} of lhs axis {i} and {} of rhs axis {j}", a[i], b[j]).to_string();
                    Error::shape(
                        Self::NAME,
                        what,
                        got,
                        format_args!("equal extents in {} and {}", x[0], x[1]),
                    )
                })?;
            }
        }
        let mut shape = Extents::new();
        self.lhs_free(a.len()).iter().for_each(|&i| shape.push(a[i].clone()));
        self.rhs_free(b.len()).iter().for_each(|&i| shape.push(b[i].clone()));
        self.lhs_batch.iter().for_each(|&i| shape.push(a[i].clone()));
        Ok(smallvec![Aval { dtype: x[0].dtype, shape }])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let a = t[0].as_ref().map(|s| apply1(self, &[s, &x[1]]));
        smallvec![sum(a, t[1].as_ref().map(|s| apply1(self, &[&x[0], s])))]
    }
    // With y = L R, <ct, dL R> = <ct conj(R), dL> and <ct, conj(dL) R> = <conj(ct) R, dL>: the cotangent is
    // contracted with the other operand over that one's free axes, and the axes are put back in place.
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let ct = first(ct);
        let (ra, rb) = (x[0].aval().rank(), x[1].aval().rank());
        let (fa, fb) = (self.lhs_free(ra), self.rhs_free(rb));
        let (na, nb) = (fa.len(), fb.len());
        let batch: Axes = (na + nb..na + nb + self.lhs_batch.len()).collect();
        if x[0].is_linear() {
            let product = DotGeneral {
                lhs_contract: (na..na + nb).collect(),
                rhs_contract: fb.clone(),
                lhs_batch: batch,
                rhs_batch: self.rhs_batch.clone(),
                conj_lhs: self.conj_lhs,
                conj_rhs: self.conj_lhs == self.conj_rhs,
            };
            let y = apply1(&product, &[&ct, &x[1].known()]);
            let summed = by_partner(&self.lhs_contract, &self.rhs_contract);
            smallvec![Some(in_place(&y, [&fa, &summed, &self.lhs_batch])), None]
        } else {
            let product = DotGeneral {
                lhs_contract: fa.clone(),
                rhs_contract: (0..na).collect(),
                lhs_batch: self.lhs_batch.clone(),
                rhs_batch: batch,
                conj_lhs: self.conj_lhs == self.conj_rhs,
                conj_rhs: self.conj_rhs,
            };
            let y = apply1(&product, &[&x[0].known(), &ct]);
            let summed = by_partner(&self.rhs_contract, &self.lhs_contract);
            smallvec![None, Some(in_place(&y, [&summed, &fb, &self.rhs_batch]))]
        }
    }
    fn vjp(&self, ct: &[Tangent], x: &[Var], _: &[Var], need: &[bool]) -> Option<Outs<Tangent>> {
        let pull = |(i, &wanted): (usize, &bool)| {
            let arg = |j: usize| if i == j { Arg::Linear(x[j].aval()) } else { Arg::Known(x[j].clone()) };
            wanted.then(|| Primitive::transpose(self, ct, &[arg(0), arg(1)]).swap_remove(i)).flatten()
        };
        Some(need.iter().enumerate().map(pull).collect())
    }
    /// Conjugates and transposes of the operands become part of the contraction.
    fn simplify<'a>(&self, x: &[Term<'a>], _: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
        let side = |i: usize| {
            let (op, z) = self.without_conj(i, x[i]).or_else(|| self.without_transpose(i, x[i]))?;
            Some(Rewrite::call(op, if i == 0 { [z, x[1]] } else { [x[0], z] }))
        };
        side(0).or_else(|| side(1))
    }
    /// A product and a sum for each element of the result and each index that is summed.
    fn flops(&self, x: &[&Aval<Dim>], y: &[Aval<Dim>]) -> Option<Dim> {
        let summed = self.lhs_contract.iter().fold(Dim::Lit(2), |n, &a| n.mul(&x[0].shape[a]));
        Some(summed.mul(&y[0].count()))
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
}

impl Var {
    /// The contraction `op` of `self` and `o`, promoted to a common dtype.
    pub fn dot_general(&self, o: &Var, op: &DotGeneral) -> Var {
        if self.dtype() == o.dtype() {
            return apply1(op, &[self, o]);
        }
        let dtype = DType::promote(self.dtype(), o.dtype());
        apply1(op, &[&self.convert(dtype), &o.convert(dtype)])
    }

    /// Matrix product of the first two axes, `y[i, j, ..] = sum over k of x[i, k, ..] o[k, j, ..]`. Further axes are
    /// batch axes, aligned from axis 2 on: a missing one, or one of extent 1, is repeated.
    pub fn matmul(&self, o: &Var) -> Var {
        let (ra, rb) = (self.rank(), o.rank());
        if let Some(failed) = Var::failed([self, o]) {
            return failed;
        }
        if ra < 2 || rb < 2 {
            return Var::Failed(Error::shape("matmul", "rank of an operand", ra.min(rb), "at least 2"));
        }
        if Dim::equal("matmul", "inner extents", &self.extent(1), &o.extent(0)).is_err() {
            let got = format_args!("{} and {}", self.aval(), o.aval()).to_string();
            let expected = "as many columns of the first as rows of the second";
            return Var::Failed(Error::shape("matmul", "inner extents", got, expected));
        }
        let product = |batch: Axes| DotGeneral {
            lhs_contract: Axes::from_slice(&[1]),
            rhs_contract: Axes::from_slice(&[0]),
            lhs_batch: batch.clone(),
            rhs_batch: batch,
            ..DotGeneral::default()
        };
        if ra == 2 && rb == 2 {
            return self.dot_general(o, &product(Axes::new())).of("matmul");
        }
        match crate::surface::align_batch("matmul", self, o) {
            Ok((a, b)) => a.dot_general(&b, &product((2..a.rank()).collect())).of("matmul"),
            Err(e) => Var::Failed(e),
        }
    }

    /// Sum of products over the last `n` axes of `self` and the first `n` of `o`, in order.
    pub fn tensordot(&self, o: &Var, n: usize) -> Var {
        if let Some(failed) = Var::failed([self, o]) {
            return failed;
        }
        if n > self.rank() || n > o.rank() {
            let (a, b) = (self.rank(), o.rank());
            return Var::Failed(Error::axis(
                "tensordot",
                "number of summed axes",
                n,
                format_args!("at most {}", a.min(b)),
            ));
        }
        let axes: Axes = (self.rank() - n..self.rank()).collect();
        self.tensordot_axes(o, &axes, &(0..n).collect::<Axes>())
    }

    /// Sum of products over `axes[i]` of `self` and `other_axes[i]` of `o`.
    pub fn tensordot_axes(&self, o: &Var, axes: &[usize], other_axes: &[usize]) -> Var {
        let op = DotGeneral {
            lhs_contract: axes.into(),
            rhs_contract: other_axes.into(),
            ..DotGeneral::default()
        };
        Var::failed([self, o]).unwrap_or_else(|| self.dot_general(o, &op).of("tensordot"))
    }
}
