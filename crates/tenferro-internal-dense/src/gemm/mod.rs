//! Matrix products: a BLAS if there is one, else faer, above a size threshold; own loops below it.
//!
//! faer spends 40 ns before its first multiplication, three times a whole 2 x 2 product, so matrices up to
//! 4 x 4 and vectors take plain loops, compiled for the baseline and for AVX2 + FMA and chosen at run time.
//! Up to 96 x 96, tiles in vector registers win, where the processor has such.
//!
//! Invariant: which of them computes a product depends on its layout, the processor and an installed BLAS, not on
//! the number of threads.

#[cfg(target_arch = "x86_64")]
mod pack;
#[cfg(target_arch = "x86_64")]
mod register;
mod small;
mod sum;
#[cfg(target_arch = "x86_64")]
mod tiles;
mod vector;

use faer::Par;

use crate::simd::dispatch;
use crate::{Factor, Field, Target, blas};
use small::{SMALL, Small};
pub(crate) use sum::Sum;
#[cfg(target_arch = "x86_64")]
use tiles::tiled;
use vector::MatrixVector;

/// Largest number of real matrix elements for which own products with a vector beat faer; of complex ones, they
/// never do.
const VECTOR: usize = 1 << 14;

/// Tiles need the vector instructions of x86.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn tiled<T: Sum>(_: (usize, usize, usize), _: Factor<T>, _: Factor<T>, _: Output<T>) -> bool {
    false
}

/// See [`Dense::gemm`](crate::Dense::gemm).
///
/// # Safety
/// Stated there.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn gemm<T: Sum>(
    (m, n, k): (usize, usize, usize),
    alpha: T,
    a: Factor<T>,
    b: Factor<T>,
    beta: T,
    c: Target<T>,
    par: Par,
) {
    if m == 0 || n == 0 {
        return;
    }
    let out = Output { alpha, beta, c };
    let vector = if T::COMPLEX { 0 } else { VECTOR };
    let small = |limit| m <= limit && n <= limit && k <= limit;
    // SAFETY: the caller's promises are exactly those of the callees, and their bounds on the extents hold.
    unsafe {
        if k == 0 || alpha == T::ZERO {
            out.scale(m, n);
        } else if blas::gemm((m, n, k), alpha, a, b, beta, c) {
        } else if small(3) {
            // So few operations gain nothing from wider registers and lose the call.
            Small { shape: (m, n, k), a, b, out }.tiny();
        } else if small(SMALL) {
            dispatch(Small { shape: (m, n, k), a, b, out });
        } else if n == 1 && (m == 1 || m * k <= vector) {
            dispatch(MatrixVector { m, k, a, x: b, out });
        } else if m == 1 && n * k <= vector {
            // A row of C: transpose the whole equation.
            let (a, x, c) = (b.transposed(), a.transposed(), Target { row: c.col, col: c.row, ..c });
            dispatch(MatrixVector { m: n, k, a, x, out: Output { c, ..out } });
        } else if tiled((m, n, k), a, b, out) {
        } else {
            if beta != T::ZERO && beta != T::ONE {
                out.scale(m, n);
            }
            T::product((m, n, k), alpha, a, b, beta != T::ZERO, c, par);
        }
    }
}

/// [`gemm`] by tiles whatever the shape, with AVX-512 if `wide`, else with AVX2 and FMA, if the processor has
/// that; tells whether.
///
/// # Safety
/// As for [`gemm`], and no extent is zero.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn gemm_by_tiles<T: Sum>(
    wide: bool,
    shape: (usize, usize, usize),
    alpha: T,
    a: Factor<T>,
    b: Factor<T>,
    beta: T,
    c: Target<T>,
) -> bool {
    // SAFETY: the caller's promise.
    #[cfg(target_arch = "x86_64")]
    return unsafe { tiles::by_tiles(wide, shape, a, b, Output { alpha, beta, c }) };
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (wide, shape, alpha, a, b, beta, c);
        false
    }
}

/// What happens to a finished sum: C <- alpha sum + beta C.
#[derive(Clone, Copy)]
struct Output<T> {
    alpha: T,
    beta: T,
    c: Target<T>,
}

impl<T: Sum> Output<T> {
    /// Finishes the elements C(i .. i + sums.len(), j).
    ///
    /// # Safety
    /// They lie within C.
    #[inline(always)]
    unsafe fn put(&self, i: usize, j: usize, sums: &[T]) {
        let Output { alpha, beta, c } = *self;
        // SAFETY: the caller's promise; C is only read when beta says that it holds values.
        unsafe {
            let at = c.ptr.offset(i as isize * c.row + j as isize * c.col);
            if c.row == 1 && alpha == T::ONE && beta == T::ZERO {
                for (l, &sum) in sums.iter().enumerate() {
                    *at.add(l) = sum;
                }
                return;
            }
            for (l, &sum) in sums.iter().enumerate() {
                let at = at.offset(l as isize * c.row);
                // The tests keep infinities intact: inf * (1 + 0i) has a NaN part.
                let sum = if alpha == T::ONE { sum } else { alpha * sum };
                *at = if beta == T::ZERO {
                    sum
                } else if beta == T::ONE {
                    sum + *at
                } else {
                    sum + beta * *at
                };
            }
        }
    }

    /// C <- beta C.
    ///
    /// # Safety
    /// C is an m x n matrix.
    unsafe fn scale(&self, m: usize, n: usize) {
        if self.beta == T::ONE {
            return;
        }
        for j in 0..n {
            for i in 0..m {
                // SAFETY: i < m and j < n; C is only read when beta says that it holds values.
                unsafe {
                    let c = self.c.ptr.offset(i as isize * self.c.row + j as isize * self.c.col);
                    *c = if self.beta == T::ZERO { T::ZERO } else { self.beta * *c };
                }
            }
        }
    }
}

impl<T: Field> Factor<T> {
    fn transposed(self) -> Self {
        Factor { row: self.col, col: self.row, ..self }
    }

    /// # Safety
    /// (i, j) lies within the matrix that `self` describes.
    #[inline(always)]
    unsafe fn at(&self, i: usize, j: usize) -> T {
        // SAFETY: the caller's promise puts the address within the allocation.
        let x = unsafe { *self.ptr.offset(i as isize * self.row + j as isize * self.col) };
        if self.conj { x.conj() } else { x }
    }

    /// # Safety
    /// (i, j) lies within the matrix or is one past its end.
    #[inline(always)]
    unsafe fn skip(self, i: usize, j: usize) -> Self {
        // SAFETY: the caller's promise.
        let ptr = unsafe { self.ptr.offset(i as isize * self.row + j as isize * self.col) };
        Factor { ptr, ..self }
    }
}
