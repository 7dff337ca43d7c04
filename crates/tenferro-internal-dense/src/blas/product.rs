//! Products and triangular systems by BLAS.

use super::{Gemm, Library, Trsm, ints, routines};
use crate::{Factor, Strided, Target, Triangle};

/// A matrix as BLAS addresses it: column-major with leading dimension `ld`, to be read as `op` says.
struct Addressed {
    op: u8,
    ld: usize,
}

/// How BLAS reads an m x n matrix with these strides, conjugated or not; `None` if it cannot.
fn addressed((m, n): (usize, usize), row: isize, col: isize, conj: bool) -> Option<Addressed> {
    // The stride along an axis of one element does not matter.
    let ld = |stride: isize, extent: usize, least: usize| match usize::try_from(stride) {
        Ok(stride) if stride >= least.max(1) => Some(stride),
        _ if extent <= 1 => Some(least.max(1)),
        _ => None,
    };
    let unit = |stride: isize, extent: usize| stride == 1 || extent <= 1;
    if !conj && unit(row, m) {
        ld(col, n, m).map(|ld| Addressed { op: b'N', ld })
    } else if unit(col, n) {
        ld(row, m, n).map(|ld| Addressed { op: if conj { b'C' } else { b'T' }, ld })
    } else {
        None
    }
}

/// C <- alpha op(A) op(B) + beta C; false if it was not done.
///
/// # Safety
/// As for [`gemm`](crate::Dense::gemm), and m, n and k are not 0.
#[inline]
pub(crate) unsafe fn gemm<T: Library>(
    (m, n, k): (usize, usize, usize),
    alpha: T,
    a: Factor<T>,
    b: Factor<T>,
    beta: T,
    c: Target<T>,
) -> bool {
    match routines::<T>(m.max(n).max(k)).and_then(|routines| routines.gemm) {
        None => false,
        // SAFETY: the caller's promise.
        Some(gemm) => unsafe { gemm_by(gemm, (m, n, k), alpha, a, b, beta, c) },
    }
}

/// # Safety
/// As for [`gemm`].
#[inline(never)]
unsafe fn gemm_by<T: Library>(
    gemm: Gemm<T>,
    (m, n, k): (usize, usize, usize),
    alpha: T,
    a: Factor<T>,
    b: Factor<T>,
    beta: T,
    c: Target<T>,
) -> bool {
    let call = || {
        let target = addressed((m, n), c.row, c.col, false)?;
        let read = |x: Factor<T>, shape| addressed(shape, x.row, x.col, x.conj && T::COMPLEX);
        // A C in rows is the transpose of one in columns: C^T = B^T A^T.
        let (m, n, a, b, x, y) = if target.op == b'N' {
            (m, n, a, b, read(a, (m, k))?, read(b, (k, n))?)
        } else {
            let (x, y) = (Factor { row: b.col, col: b.row, ..b }, Factor { row: a.col, col: a.row, ..a });
            (n, m, x, y, read(x, (n, k))?, read(y, (k, m))?)
        };
        let [m, n, k, lda, ldb, ldc] = ints([m, n, k, x.ld, y.ld, target.ld])?;
        // SAFETY: the caller's promise; the leading dimensions and operations describe its strides.
        unsafe { gemm(&x.op, &y.op, &m, &n, &k, &alpha, a.ptr, &lda, b.ptr, &ldb, &beta, c.ptr, &ldc) };
        Some(())
    };
    call().is_some()
}

/// B <- op(T)^-1 B; false if it was not done.
///
/// # Safety
/// As for [`triangular_solve`](crate::Dense::triangular_solve), and n and nrhs are not 0.
#[inline]
pub(crate) unsafe fn trsm<T: Library>(
    shape: (usize, usize),
    tri: (Triangle, bool),
    a: Strided<*const T>,
    conj: bool,
    b: Strided<*mut T>,
) -> bool {
    match routines::<T>(shape.0.max(shape.1)).and_then(|routines| routines.trsm) {
        None => false,
        // SAFETY: the caller's promise.
        Some(trsm) => unsafe { trsm_by(trsm, shape, tri, a, conj, b) },
    }
}

/// # Safety
/// As for [`trsm`].
#[inline(never)]
unsafe fn trsm_by<T: Library>(
    trsm: Trsm<T>,
    (n, nrhs): (usize, usize),
    (triangle, unit): (Triangle, bool),
    a: Strided<*const T>,
    conj: bool,
    b: Strided<*mut T>,
) -> bool {
    let call = || {
        let conj = conj && T::COMPLEX;
        let target = addressed((n, nrhs), b.row, b.col, false)?;
        let left = target.op == b'N';
        // B in rows: B^T <- B^T op(T)^-T, the system from the right with the transpose of op(T).
        let (row, col) = if left { (a.row, a.col) } else { (a.col, a.row) };
        let matrix = addressed((n, n), row, col, conj)?;
        // Which triangle of the matrix as BLAS addresses it.
        let lower = (triangle == Triangle::Lower) == ((matrix.op == b'N') == left);
        let (side, uplo) = (if left { b'L' } else { b'R' }, if lower { b'L' } else { b'U' });
        let diag = if unit { b'U' } else { b'N' };
        let [n, nrhs, lda, ldb] = ints([n, nrhs, matrix.ld, target.ld])?;
        let (rows, columns) = if left { (n, nrhs) } else { (nrhs, n) };
        let op = matrix.op;
        // SAFETY: the caller's promise; the leading dimensions and operations describe its strides.
        unsafe {
            trsm(&side, &uplo, &op, &diag, &rows, &columns, &T::ONE, a.ptr, &lda, b.ptr, &ldb);
        }
        Some(())
    };
    call().is_some()
}
