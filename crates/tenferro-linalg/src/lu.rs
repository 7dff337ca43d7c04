//! LU factorization with partial pivoting, `P A = L U`.
//!
//! Derivative of a square matrix: with `B = L^-1 P dA U^-1`, `dL = L tril(B, -1)` and `dU = triu(B) U`. What
//! a tall matrix has below the square, and a wide one to its right, follows by substitution. The permutation
//! is locally constant.

use crate::{
    batch::{
        Element, Matrices, Results, copy_matrix, count, expect_finite, expect_matrix, expect_no_overflow,
        expect_positions, for_each, unlisted, work,
    },
    matrix::{enlarge, floating, leading},
    named::{called, outputs},
    permute::{permuted, unpermuted},
    qr::right_solve,
    system::{Kind, System, posed},
    triangular::{Triangular, TriangularSolve, triangle_solve},
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Dim, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1, build,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{DenseError, Field, Par, Real, Strided, filled};
use tenferro_tensor::{DType, Result, Tensor, dispatch_float};

/// The factors of `P A = L U` of an `m x n` matrix. Outputs: L and U in one `m x n` matrix, U on and above
/// its diagonal and L, whose diagonal is 1, below; and the permutation, an i64 vector: row i of `P A` is row
/// `p[i]` of A. A singular matrix has factors, too.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LuFactor {
    /// Whether the factors only serve to solve systems, whose rule does not differentiate them.
    pub hint: bool,
}

impl LuFactor {
    fn name(&self) -> &'static str {
        if self.hint { "solve" } else { Self::NAME }
    }
}

impl Primitive for LuFactor {
    const NAME: &'static str = "lu";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(self.name(), x, 1, FLOATS)?;
        let [m, _] = expect_matrix(self.name(), x, 0)?;
        let p = Aval::new(DType::I64, [m].into_iter().chain(&x[0].shape[2..]).cloned());
        Ok(smallvec![x[0].clone(), p])
    }
    fn jvp(&self, _: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let d = t[0].as_ref().filter(|_| !self.hint).map(|da| packed_tangent(&y[0], &permuted(da, &y[1], 0)));
        smallvec![d, None]
    }
    fn saves(&self) -> Saves {
        Saves::OUTPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |op, cpu, x, y, _| {
            dispatch_float!(y[0].dtype, T => run::<T>(op, cpu, x, y), else Err(unlisted(op.name(), y[0].dtype)))
        });
    }
}

/// The tangent of the packed factors from the tangent of the matrix with its rows, or columns, permuted.
pub(crate) fn packed_tangent(packed: &Var, da: &Var) -> Var {
    let (m, n) = (packed.extent(0), packed.extent(1));
    let k = Extent::min(&m, &n);
    let square = leading(&leading(packed, 0, &k), 1, &k);
    let left = |b: &Var| {
        apply1(&TriangularSolve { lower: true, unit_diagonal: true, adjoint: false }, &[&square, b])
    };
    let right = |b: &Var| right_solve(b, &square);
    let b = right(&left(&leading(&leading(da, 0, &k), 1, &k)));
    let (strict, upper) = (b.tril(-1), b.triu(0));
    let dl = &square.tril(-1).matmul(&strict) + &strict;
    let mut d = dl + upper.matmul(&square.triu(0));
    if n != k {
        let beside = |x: &Var| leading(x, 0, &k).slice_axis(1, k.clone(), n.clone());
        let du = &left(&beside(da)) - &strict.matmul(&beside(packed));
        // dU = L^-1 (dA - dL U), where L^-1 dL is the strict part of B.
        d = build::concatenate(&[d, du], 1);
    }
    if m != k {
        let below = |x: &Var| leading(x, 1, &k).slice_axis(0, k.clone(), m.clone());
        let dl = &right(&below(da)) - &below(packed).matmul(&upper);
        d = build::concatenate(&[d, enlarge_columns(&dl, &n)], 0);
    }
    d
}

/// Only one of the two blocks beside the square is not empty; the corner that both leave is.
fn enlarge_columns(x: &Var, n: &Dim) -> Var {
    if x.extent(1) == *n { x.clone() } else { enlarge(x, &[x.extent(0), n.clone()]) }
}

/// The factors of `c A` of a square A, for a power of two c, whose exponent is returned: 0, unless elimination
/// on A itself leaves the range of the dtype, which would make wrong numbers of finite ones.
///
/// # Safety
/// `a` has n n readable elements, `packed` n n and `p` n writable ones; n fits an i32.
pub(crate) unsafe fn factor_in_range<T: Element>(
    n: usize,
    a: Strided<*const T>,
    packed: &mut [T],
    p: &mut [i32],
    par: Par,
) -> Result<i32, DenseError> {
    // SAFETY: the caller's promise.
    unsafe {
        expect_finite((n, n), a)?;
        T::lu((n, n), a, packed.as_mut_ptr(), p.as_mut_ptr(), par)?;
    }
    if packed.iter().all(|x| x.finite()) {
        return Ok(0);
    }
    // Elements grow by a factor of 2 with each row at most, in practice far less. Small ones are to be kept.
    let exponent = -(n.min(62) as i32) - 2;
    let mut copy = filled([n, n], <T as Field>::ZERO)?;
    // SAFETY: the caller's promise; the copy has n n elements.
    unsafe { copy_matrix((n, n), a, copy.as_mut_ptr()) };
    copy.iter_mut().for_each(|x| *x = x.scale(<T as Field>::Real::power(exponent)));
    let copy = Strided { ptr: copy.as_ptr(), row: 1, col: n as isize };
    // SAFETY: the copy has n n elements; the others are the caller's promise.
    unsafe { T::lu((n, n), copy, packed.as_mut_ptr(), p.as_mut_ptr(), par)? };
    Ok(exponent)
}

fn run<T: Element>(
    op: &LuFactor,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
) -> Result<Outs<Tensor>> {
    let a = x[0].read();
    let (m, n) = (a.shape()[0], a.shape()[1]);
    let count = count(a.shape(), 2, y);
    expect_positions(op.name(), count, [("rows", m)])?;
    let read = Matrices::<T>::new(&a)?;
    let packed = Results::<T>::new(&y[0].shape, 2)?;
    let perm = Results::<i64>::new(&y[1].shape, 1)?;
    for_each(cpu, count, work([1, m, n, m.min(n)]), |b, par| {
        let mut p = filled([m], 0i32)?;
        // SAFETY: matrix b of the operand is readable; the arrays b of the outputs are new memory of m n and
        // m elements.
        unsafe {
            expect_finite((m, n), read.at(b))?;
            T::lu((m, n), read.at(b), packed.at(b), p.as_mut_ptr(), par)?;
            expect_no_overflow((m, n), packed.at(b))?;
            for (i, &p) in p.iter().enumerate() {
                *perm.at(b).add(i) = p as i64;
            }
        }
        Ok(())
    })
    .map_err(|e| e.error(op.name(), a.shape()))?;
    // SAFETY: every matrix was factored.
    Ok(unsafe { smallvec![packed.finish(), perm.finish()] })
}

/// L and U from one matrix.
pub(crate) fn unpacked(packed: &Var) -> Result<(Var, Var)> {
    packed.ok()?;
    let (m, n) = (packed.extent(0), packed.extent(1));
    let k = Extent::min(&m, &n);
    let below = leading(packed, 1, &k).tril(-1);
    let mut one = build::eye(packed.dtype(), &k);
    if m != k {
        one = enlarge(&one, &[m, k.clone()]);
    }
    Ok((&below + &one.batch_like(&below), leading(packed, 0, &k).triu(0)))
}

/// `(p, L, U)` with `A[p, :] = L U`, for an `m x n` matrix with `k = min(m, n)`: p is an i64 vector of length
/// m, L is `m x k`, lower triangular with diagonal 1, U is `k x n`, upper triangular. Axes from 2 on are
/// batch axes.
///
/// # Errors
/// Fewer than two axes; more than `i32::MAX` rows; an element that is NaN or infinite, or so large that
/// elimination overflows. A singular matrix has factors, but its derivative is an error.
pub fn lu(a: &Var) -> (Var, Var, Var) {
    called(LuFactor::NAME, [a], || {
        let [packed, p] = factors(a);
        let (l, u) = unpacked(&packed)?;
        Ok((p, l, u))
    })
}

/// `(packed, p)`: the factors of [`lu`] in one `m x n` matrix, U on and above its diagonal and L, whose
/// diagonal is 1, below; and the permutation.
///
/// # Errors
/// As for [`lu`].
pub fn lu_factor(a: &Var) -> (Var, Var) {
    called("lu_factor", [a], || Ok(factors(a).into()))
}

fn factors(a: &Var) -> [Var; 2] {
    outputs(&LuFactor { hint: false }, &[&floating(a)])
}

/// The solution of `A X = B`, or of another form of the system, from the factors of [`lu_factor`] of a square
/// A, in which it is differentiable. Vectors, batch axes and dtypes are as for [`solve`](crate::ops::solve).
/// NaN and infinities propagate; a quotient by an infinite pivot is 0.
///
/// # Errors
/// Factors that are not square, or with a zero on the diagonal of U; a number of rows, or columns from the
/// right, that does not fit; a `p` that is no permutation.
pub fn lu_solve(packed: &Var, p: &Var, b: &Var, system: System) -> Var {
    let x = [(packed, Kind::Matrix), (p, Kind::Positions)];
    posed("lu_solve", &x, b, system.is_right(), |x, b| {
        let (packed, p) = (&x[0], &x[1]);
        let (l, u) = (Triangular::lower().unit_diagonal(), Triangular::upper());
        system.on_left(b, |adjoint, b| {
            if adjoint {
                let y = triangle_solve(packed, b, u.adjoint());
                unpermuted(&triangle_solve(packed, &y, l.adjoint()), p)
            } else {
                triangle_solve(packed, &triangle_solve(packed, &permuted(b, p, 0), l), u)
            }
        })
    })
}
