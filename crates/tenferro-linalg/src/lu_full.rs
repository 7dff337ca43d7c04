//! LU factorization with full pivoting, `P A Q = L U`, which reveals the rank.
//!
//! The derivative is that of partial pivoting at `P dA Q`; both permutations are locally constant.

use crate::{
    batch::{Element, Matrices, Results, count, expect_finite, expect_matrix, for_each, unlisted, work},
    lu::{packed_tangent, unpacked},
    matrix::{floating, permuted, unpermuted},
    system::{expect_rows, paired},
    triangular::{Triangular, triangle_solve},
};
use smallvec::{SmallVec, smallvec};
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply_n,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_tensor::{DType, Result, Tensor, dispatch_float};

/// The factors of `P A Q = L U` of an `m x n` matrix. Outputs: L and U in one `m x n` matrix, as in
/// [`LuFactor`](crate::LuFactor), and the permutations, two i64 vectors: element (i, j) of `P A Q` is element
/// `(p[i], q[j])` of A. A singular matrix has factors, too.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LuFull;

impl Primitive for LuFull {
    const NAME: &'static str = "lu_full";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        let [m, n] = expect_matrix(Self::NAME, x, 0)?;
        let order = |k: &D| Aval::new(DType::I64, [k].into_iter().chain(&x[0].shape[2..]).cloned());
        Ok(smallvec![x[0].clone(), order(m), order(n)])
    }
    fn jvp(&self, _: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let d = t[0].as_ref().map(|da| packed_tangent(&y[0], &permuted(&permuted(da, &y[1], 0), &y[2], 1)));
        smallvec![d, None, None]
    }
    fn saves(&self) -> Saves {
        Saves::OUTPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, cpu, x, y, _| {
            let dtype = y[0].dtype;
            dispatch_float!(dtype, T => run::<T>(cpu, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

fn run<T: Element>(cpu: &CpuBackend, x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let a = x[0].read();
    let (m, n) = (a.shape()[0], a.shape()[1]);
    let read = Matrices::<T>::new(&a)?;
    let packed = Results::<T>::new(&y[0].shape, 2)?;
    let (rows, columns) = (Results::<i64>::new(&y[1].shape, 1)?, Results::<i64>::new(&y[2].shape, 1)?);
    for_each(cpu, count(a.shape(), 2, y), work([1, m, n, m.min(n)]), |b, _| {
        let (mut p, mut q): (SmallVec<[i32; 64]>, SmallVec<[i32; 64]>) = (smallvec![0; m], smallvec![0; n]);
        // SAFETY: matrix b of the operand is readable; the arrays b of the outputs are new memory of m n, m and n
        // elements.
        unsafe {
            expect_finite((m, n), read.at(b))?;
            T::lu_full((m, n), read.at(b), packed.at(b), p.as_mut_ptr(), q.as_mut_ptr());
            (0..m).for_each(|i| *rows.at(b).add(i) = i64::from(p[i]));
            (0..n).for_each(|j| *columns.at(b).add(j) = i64::from(q[j]));
        }
        Ok(())
    })
    .map_err(|e| e.error(LuFull::NAME, a.shape()))?;
    // SAFETY: every matrix was factored.
    Ok(unsafe { smallvec![packed.finish(), rows.finish(), columns.finish()] })
}

/// `(p, q, L, U)` with `A[p, :][:, q] = L U`, for an `m x n` matrix with `k = min(m, n)`: p and q are i64 vectors
/// of lengths m and n, L is `m x k`, lower triangular with diagonal 1, U is `k x n`, upper triangular, and its
/// diagonal falls to zero, or to rounding errors, after the rank of A. Axes from 2 on are batch axes.
///
/// # Errors
/// Fewer than two axes; an element that is NaN or infinite. A singular matrix has factors, but its derivative
/// is an error.
pub fn lu_full(a: &Var) -> (Var, Var, Var, Var) {
    let y = apply_n(&LuFull, &[&floating(a)], 3);
    let (l, u) = unpacked(&y[0]);
    (y[1].clone(), y[2].clone(), l, u)
}

/// The solution of `A X = B` from the factors of [`lu_full`] of a square A. Vectors, batch axes and dtypes are as
/// for [`solve`](crate::ops::solve).
///
/// # Errors
/// Factors that are not square, or a U with a zero on its diagonal; a number of rows that does not fit; indices
/// outside of an axis. That none is repeated is the caller's promise.
pub fn lu_full_solve(l: &Var, u: &Var, p: &Var, q: &Var, b: &Var) -> Var {
    paired("lu_full_solve", l, b, false, |l, b| {
        paired("lu_full_solve", u, b, false, |u, b| {
            if let Err(e) = expect_rows("lu_full_solve", l, b) {
                return Var::Failed(e);
            }
            let lower = Triangular::lower().unit_diagonal();
            let y = triangle_solve(l, &permuted(b, p, 0), lower);
            unpermuted(&triangle_solve(u, &y, Triangular::upper()), q)
        })
    })
}
