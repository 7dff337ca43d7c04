//! Linear systems by given LU factors, and triangular systems.

use faer::Par;

use super::{DenseError, Field, Strided, vectorised, with_zeros};

/// Which triangle of a matrix is meant; the other one is never read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Triangle {
    /// On and below the diagonal.
    Lower,
    /// On and above the diagonal.
    Upper,
}

/// Order up to which a triangular system takes own loops for any number of right-hand sides.
const SMALL: usize = 16;

/// B <- T^-1 B, or conj(T)^-1 B if `conj`, with T the given triangle of an n x n matrix, taken with a unit
/// diagonal if the flag beside it says so, and B of n x nrhs.
///
/// A transposed system is the other triangle with exchanged strides. A zero on the diagonal gives infinities.
///
/// # Safety
/// The triangle is readable, B is readable and writable, and they do not overlap.
pub(crate) unsafe fn triangular_solve<T: Field>(
    (n, nrhs): (usize, usize),
    (triangle, unit): (Triangle, bool),
    a: Strided<*const T>,
    conj: bool,
    b: Strided<*mut T>,
    par: Par,
) {
    if n == 0 || nrhs == 0 {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        if b.row == 1 && (nrhs == 1 || n * nrhs <= 25) {
            vectorised(|| {
                for j in 0..nrhs {
                    let b = std::slice::from_raw_parts_mut(b.ptr.offset(j as isize * b.col), n);
                    substitute((triangle, unit), a, conj, b);
                }
            });
        } else {
            T::substitute((triangle, unit), conj, a, b, (n, nrhs), par);
        }
    }
}

/// One right-hand side: by columns of T (subtract what is known) if they are contiguous, else by rows (inner
/// products).
///
/// # Safety
/// The triangle has the order of `b`.
#[inline(always)]
unsafe fn substitute<T: Field>(
    (triangle, unit): (Triangle, bool),
    a: Strided<*const T>,
    conj: bool,
    b: &mut [T],
) {
    let n = b.len();
    let lower = triangle == Triangle::Lower;
    let maybe_conj = |x: T| if conj { x.conj() } else { x };
    // SAFETY: every index is below n.
    unsafe {
        let at = |i: usize, j: usize| maybe_conj(*a.ptr.offset(i as isize * a.row + j as isize * a.col));
        for step in 0..n {
            let j = if lower { step } else { n - 1 - step };
            // The unknowns that depend on j, and those it depends on.
            let (later, earlier) = if lower { (j + 1..n, 0..j) } else { (0..j, j + 1..n) };
            if a.row == 1 {
                let x = if unit { b[j] } else { b[j].divide(at(j, j)) };
                b[j] = x;
                let start = a.ptr.offset(later.start as isize + j as isize * a.col);
                let column = std::slice::from_raw_parts(start, later.len());
                for (y, &l) in b[later].iter_mut().zip(column) {
                    *y = *y - maybe_conj(l) * x;
                }
            } else {
                // Four partial sums break the dependency between additions.
                let mut sums = [T::ZERO; 4];
                for (i, l) in earlier.enumerate() {
                    let p = if lower { i } else { j + 1 + i };
                    sums[i % 4] = sums[i % 4] + at(j, p) * b[p];
                    debug_assert_eq!(l, p);
                }
                let x = b[j] - ((sums[0] + sums[1]) + (sums[2] + sums[3]));
                b[j] = if unit { x } else { x.divide(at(j, j)) };
            }
        }
    }
}

/// B <- A^-1 B, or A^-H B if `adjoint`, from the factors of [`lu`](super::lu): A = P^T L U with `packed` n x n
/// column-major, B n x nrhs.
///
/// # Errors
/// `Singular` if a diagonal element of U is exactly zero; B is then unchanged.
///
/// # Safety
/// The factors are readable (n numbers in `perm`), B is readable and writable and overlaps neither.
pub(crate) unsafe fn solve_lu<T: Field>(
    (n, nrhs): (usize, usize),
    packed: *const T,
    perm: *const i32,
    adjoint: bool,
    b: Strided<*mut T>,
    par: Par,
) -> Result<(), DenseError> {
    // SAFETY: the caller's promise; `perm` is a permutation of 0 .. n.
    unsafe {
        if let Some(index) = (0..n).find(|&i| *packed.add(i + i * n) == T::ZERO) {
            return Err(DenseError::Singular { index });
        }
        let perm = std::slice::from_raw_parts(perm, n);
        let a = Strided { ptr: packed, row: 1, col: n as isize };
        let transposed = Strided { ptr: packed, row: n as isize, col: 1 };
        if !adjoint {
            permute(perm, b, nrhs, true);
            triangular_solve((n, nrhs), (Triangle::Lower, true), a, false, b, par);
            triangular_solve((n, nrhs), (Triangle::Upper, false), a, false, b, par);
        } else {
            triangular_solve((n, nrhs), (Triangle::Lower, false), transposed, true, b, par);
            triangular_solve((n, nrhs), (Triangle::Upper, true), transposed, true, b, par);
            permute(perm, b, nrhs, false);
        }
        Ok(())
    }
}

/// B <- P B, or P^T B if not `forward`, with row i of P B being row perm[i] of B.
///
/// # Safety
/// B has as many rows as `perm`, which is a permutation.
unsafe fn permute<T: Field>(perm: &[i32], b: Strided<*mut T>, nrhs: usize, forward: bool) {
    let n = perm.len();
    let run = |column: &mut [T]| {
        for j in 0..nrhs {
            // SAFETY: all rows are below n, and column j is B's.
            unsafe {
                let at = |i: usize| b.ptr.offset(i as isize * b.row + j as isize * b.col);
                for (i, x) in column.iter_mut().enumerate() {
                    *x = *at(i);
                }
                for (i, &p) in perm.iter().enumerate() {
                    let (to, from) = if forward { (i, p as usize) } else { (p as usize, i) };
                    *at(to) = column[from];
                }
            }
        }
    };
    if n <= SMALL { run(&mut [T::ZERO; SMALL][..n]) } else { with_zeros(n, run) }
}
