//! Triangular systems.

use faer::Par;

use crate::provider::Provider;
use crate::simd::vectorised;
use crate::{Field, Strided, blas};

/// Which triangle of a matrix is meant; the other one is never read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// On and below the diagonal.
    Lower,
    /// On and above the diagonal.
    Upper,
}

/// See [`Dense::triangular_solve`](crate::Dense::triangular_solve).
///
/// # Safety
/// Stated there.
pub(crate) unsafe fn triangular_solve<T: Provider>(
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
        if blas::trsm((n, nrhs), (triangle, unit), a, conj, b) {
            return;
        }
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
