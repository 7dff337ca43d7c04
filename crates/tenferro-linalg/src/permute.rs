//! Rows or columns of matrices in another order.

use crate::batch::{Matrices, Results, count, expect_matrix, expect_permutations, expect_stack, unlisted};
use smallvec::smallvec;
use tenferro_core_ops::{
    Arg, Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_tensor::{DType, Error, Result, Scalar, Tensor, dispatch_float};

/// The rows (axis 0) or columns (axis 1) of matrices in the order of permutations: entry k of the result is
/// entry `p[k]`; if `inverse`, entry `p[k]` of the result is entry k. Inputs: the matrices; p, i64 vectors,
/// one for each.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Permute {
    /// The axis, 0 or 1.
    pub axis: usize,
    /// Whether entries go back to where they were taken from.
    pub inverse: bool,
}

impl Primitive for Permute {
    const NAME: &'static str = "permute";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 2, FLOATS)?;
        let extents = expect_matrix(Self::NAME, x, 0)?;
        let Some(n) = extents.get(self.axis) else {
            return Err(Error::axis(Self::NAME, "axis", self.axis, "0 or 1"));
        };
        if let Some(length) = x[1].shape.first() {
            let what = if self.axis == 0 { "rows of the matrix" } else { "columns of the matrix" };
            D::equal(Self::NAME, what, n, length)?;
        }
        expect_stack(Self::NAME, "permutation", x[1], DType::I64, &[n], &x[0].shape[2..])?;
        Ok(smallvec![x[0].clone()])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(|t| apply1(self, &[t, &x[1]]))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let back = Permute { inverse: !self.inverse, ..self.clone() };
        smallvec![ct[0].as_ref().map(|ct| apply1(&back, &[ct, &x[1].known()])), None]
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |op, _, x, y, _| {
            let dtype = y[0].dtype;
            dispatch_float!(dtype, T => run::<T>(op, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

fn run<T: Scalar>(op: &Permute, x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let (a, p) = (x[0].read(), x[1].read());
    let [m, n] = [a.shape()[0], a.shape()[1]];
    let (from, orders) = (Matrices::<T>::new(&a)?, Matrices::<i64>::vectors(&p)?);
    let count = count(a.shape(), 2, y);
    expect_permutations(Permute::NAME, &orders, [m, n][op.axis], count)?;
    let to = Results::<T>::new(&y[0].shape, 2)?;
    for b in 0..count {
        let (a, p, to) = (from.at(b), orders.at(b), to.at(b));
        // SAFETY: i < m and j < n, the extents of matrix b of both; p is a permutation of those along the
        // axis, and k is one of them.
        unsafe {
            let place = |k: usize| *p.ptr.offset(k as isize * p.row) as usize;
            for j in 0..n {
                for i in 0..m {
                    let (k, l) = if op.axis == 0 { (place(i), j) } else { (i, place(j)) };
                    let ((fi, fj), (ti, tj)) = if op.inverse { ((i, j), (k, l)) } else { ((k, l), (i, j)) };
                    to.add(ti + tj * m).write(*a.ptr.offset(fi as isize * a.row + fj as isize * a.col));
                }
            }
        }
    }
    // SAFETY: a permutation reaches every element.
    Ok(smallvec![unsafe { to.finish() }])
}

/// The entries of an axis, 0 or 1, in the order `p`.
pub(crate) fn permuted(x: &Var, p: &Var, axis: usize) -> Var {
    apply1(&Permute { axis, inverse: false }, &[x, p])
}

/// The rows that [`permuted`] put in the order `p`, in their former places.
pub(crate) fn unpermuted(x: &Var, p: &Var) -> Var {
    apply1(&Permute { axis: 0, inverse: true }, &[x, p])
}
