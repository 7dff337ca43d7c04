//! Linear systems by given LU factors.

use faer::Par;

use crate::provider::Provider;
use crate::triangular::triangular_solve;
use crate::workspace::with_zeros;
use crate::{DenseError, Field, Strided, Triangle};

/// Order up to which a column is permuted on the stack.
const SMALL: usize = 16;

/// See [`Dense::solve_lu`](crate::Dense::solve_lu).
///
/// # Errors
/// Stated there.
///
/// # Safety
/// Stated there.
pub(crate) unsafe fn solve_lu<T: Provider>(
    (n, nrhs): (usize, usize),
    packed: Strided<*const T>,
    perm: *const i32,
    adjoint: bool,
    b: Strided<*mut T>,
    par: Par,
) -> Result<(), DenseError> {
    // SAFETY: the caller's promise; `perm` is a permutation of 0 .. n.
    unsafe {
        let zero = |&i: &usize| *packed.ptr.offset(i as isize * (packed.row + packed.col)) == T::ZERO;
        if let Some(index) = (0..n).find(zero) {
            return Err(DenseError::Singular { index });
        }
        let perm = std::slice::from_raw_parts(perm, n);
        let a = packed;
        let transposed = Strided { ptr: a.ptr, row: a.col, col: a.row };
        if !adjoint {
            permute(perm, b, nrhs, true)?;
            triangular_solve((n, nrhs), (Triangle::Lower, true), a, false, b, par);
            triangular_solve((n, nrhs), (Triangle::Upper, false), a, false, b, par);
        } else {
            triangular_solve((n, nrhs), (Triangle::Lower, false), transposed, true, b, par);
            triangular_solve((n, nrhs), (Triangle::Upper, true), transposed, true, b, par);
            permute(perm, b, nrhs, false)?;
        }
        Ok(())
    }
}

/// B <- P B, or P^T B if not `forward`, with row i of P B being row perm[i] of B.
///
/// # Errors
/// `Memory`.
///
/// # Safety
/// B has as many rows as `perm`, which is a permutation.
unsafe fn permute<T: Field>(
    perm: &[i32],
    b: Strided<*mut T>,
    nrhs: usize,
    forward: bool,
) -> Result<(), DenseError> {
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
    if n <= SMALL {
        run(&mut [T::ZERO; SMALL][..n]);
        Ok(())
    } else {
        with_zeros(n, run)
    }
}
