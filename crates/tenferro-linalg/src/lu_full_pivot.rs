//! LU factorization with full pivoting, `P A Q = L U`, which reveals the rank.
//!
//! The derivative is that of partial pivoting at `P dA Q`; both permutations are locally constant.

use crate::{
    batch::{
        Element, Matrices, Results, count, expect_finite, expect_matrix, expect_no_overflow,
        expect_positions, for_each, unlisted, work,
    },
    lu::{packed_tangent, unpacked},
    matrix::floating,
    named::{called, outputs},
    permute::{permuted, unpermuted},
    system::{Kind, System, posed},
    triangular::{Triangular, triangle_solve},
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::filled;
use tenferro_tensor::{DType, Result, Tensor, dispatch_float};

/// The factors of `P A Q = L U` of an `m x n` matrix. Outputs: L and U in one `m x n` matrix, as in
/// [`LuFactor`](crate::LuFactor), and the permutations, two i64 vectors: element (i, j) of `P A Q` is element
/// `(p[i], q[j])` of A. A singular matrix has factors, too.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LuFullPivot;

impl Primitive for LuFullPivot {
    const NAME: &'static str = "lu_full_pivot";
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
    let count = count(a.shape(), 2, y);
    expect_positions(LuFullPivot::NAME, count, [("rows", m), ("columns", n)])?;
    let read = Matrices::<T>::new(&a)?;
    let packed = Results::<T>::new(&y[0].shape, 2)?;
    let (rows, columns) = (Results::<i64>::new(&y[1].shape, 1)?, Results::<i64>::new(&y[2].shape, 1)?);
    for_each(cpu, count, work([1, m, n, m.min(n)]), |b, _| {
        let (mut p, mut q) = (filled([m], 0i32)?, filled([n], 0i32)?);
        // SAFETY: matrix b of the operand is readable; the arrays b of the outputs are new memory of m n, m
        // and n elements.
        unsafe {
            expect_finite((m, n), read.at(b))?;
            T::lu_full_pivot((m, n), read.at(b), packed.at(b), p.as_mut_ptr(), q.as_mut_ptr());
            expect_no_overflow((m, n), packed.at(b))?;
            (0..m).for_each(|i| *rows.at(b).add(i) = i64::from(p[i]));
            (0..n).for_each(|j| *columns.at(b).add(j) = i64::from(q[j]));
        }
        Ok(())
    })
    .map_err(|e| e.error(LuFullPivot::NAME, a.shape()))?;
    // SAFETY: every matrix was factored.
    Ok(unsafe { smallvec![packed.finish(), rows.finish(), columns.finish()] })
}

/// `(L, U, p, q)` with `A[p, :][:, q] = L U`, for an `m x n` matrix with `k = min(m, n)`: p and q are i64
/// vectors of lengths m and n, L is `m x k`, lower triangular with diagonal 1, U is `k x n`, upper
/// triangular, and its diagonal falls to zero, or to rounding errors, after the rank of A. Axes from 2 on are
/// batch axes.
///
/// # Errors
/// Fewer than two axes; more than `i32::MAX` rows or columns; an element that is NaN or infinite, or so large
/// that elimination overflows. A singular matrix has factors, but its derivative is an error.
pub fn lu_full_pivot(a: &Var) -> (Var, Var, Var, Var) {
    called(LuFullPivot::NAME, [a], || {
        let [packed, p, q] = outputs(&LuFullPivot, &[&floating(a)]);
        let (l, u) = unpacked(&packed)?;
        Ok((l, u, p, q))
    })
}

/// The solution of `A X = B`, or of another form of the system, from the factors of [`lu_full_pivot`] of a
/// square A, in which it is differentiable. Vectors, batch axes and dtypes are as for
/// [`solve`](crate::ops::solve). NaN and infinities propagate; a quotient by an infinite pivot is 0.
///
/// # Errors
/// Factors that are not square, or a U with a zero on its diagonal; a number of rows, or columns from the
/// right, that does not fit; a `p` or `q` that is no permutation.
pub fn lu_full_pivot_solve(l: &Var, u: &Var, p: &Var, q: &Var, b: &Var, system: System) -> Var {
    let x = [(l, Kind::Matrix), (u, Kind::Matrix), (p, Kind::Positions), (q, Kind::Positions)];
    posed("lu_full_pivot_solve", &x, b, system.is_right(), |x, b| {
        let (l, u, p, q) = (&x[0], &x[1], &x[2], &x[3]);
        let (lower, upper) = (Triangular::lower().unit_diagonal(), Triangular::upper());
        system.on_left(b, |adjoint, b| {
            if adjoint {
                let y = triangle_solve(u, &permuted(b, q, 0), upper.adjoint());
                unpermuted(&triangle_solve(l, &y, lower.adjoint()), p)
            } else {
                let y = triangle_solve(l, &permuted(b, p, 0), lower);
                unpermuted(&triangle_solve(u, &y, upper), q)
            }
        })
    })
}
