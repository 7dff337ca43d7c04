//! LU factorization with full pivoting, P A Q = L U.
//!
//! Each step needs the largest element of all that is left, so there is nothing to block: the search is part
//! of the pass that updates the remainder. Pivots whose reciprocal overflows are divided by.

use num_complex::Complex;

use crate::simd::vectorised;
use crate::{Field, Real, Strided};

/// The factorization that reveals the rank.
pub trait LuFullPivot: Field {
    /// P A Q = L U of an m x n matrix: `packed` (m x n, column-major) receives U on and above the diagonal
    /// and the unit lower L below it; element (i, j) of P A Q is element (`rows[i]`, `columns[j]`) of A.
    ///
    /// Pivots are the largest elements by |re| + |im|: no element of L, and none of U relative to the
    /// diagonal of its row, has a modulus above sqrt(2), or 1 for real matrices. From the first pivot that is
    /// exactly zero on, U is zero, and the strict part of L, too. NaN and infinities propagate.
    ///
    /// # Safety
    /// A is readable; the outputs are writable (m and n elements in the permutations) and overlap neither A
    /// nor each other; they need not be initialised. m, n <= i32::MAX.
    unsafe fn lu_full_pivot(
        shape: (usize, usize),
        a: Strided<*const Self>,
        packed: *mut Self,
        rows: *mut i32,
        columns: *mut i32,
    );
}

macro_rules! routines {
    ($($t:ty)*) => {$(
        impl LuFullPivot for $t {
            unsafe fn lu_full_pivot(
                shape: (usize, usize),
                a: Strided<*const Self>,
                packed: *mut Self,
                rows: *mut i32,
                columns: *mut i32,
            ) {
                // SAFETY: the caller's.
                unsafe { lu_full_pivot(shape, a, packed, rows, columns) }
            }
        }
    )*};
}

routines!(f32 f64 Complex<f32> Complex<f64>);

/// See [`LuFullPivot::lu_full_pivot`].
///
/// # Safety
/// Stated there.
unsafe fn lu_full_pivot<T: Field>(
    (m, n): (usize, usize),
    a: Strided<*const T>,
    packed: *mut T,
    rows: *mut i32,
    columns: *mut i32,
) {
    // SAFETY: the caller's promise; the slices cover memory that has just been written.
    unsafe {
        for j in 0..n {
            for i in 0..m {
                packed.add(i + j * m).write(*a.ptr.offset(i as isize * a.row + j as isize * a.col));
            }
            columns.add(j).write(j as i32);
        }
        for i in 0..m {
            rows.add(i).write(i as i32);
        }
        let packed = std::slice::from_raw_parts_mut(packed, m * n);
        let (rows, columns) =
            (std::slice::from_raw_parts_mut(rows, m), std::slice::from_raw_parts_mut(columns, n));
        vectorised(|| eliminate(m, packed, rows, columns));
    }
}

/// A column and its largest element by [`Field::abs1`].
type Best<R> = (usize, R);

#[inline(always)]
fn eliminate<T: Field>(m: usize, a: &mut [T], rows: &mut [i32], columns: &mut [i32]) {
    let n = columns.len();
    if m == 0 || n == 0 {
        return;
    }
    let mut best: Best<T::Real> = (0, T::Real::ZERO);
    for (j, column) in a.chunks_exact(m).enumerate() {
        best = better(best, (j, largest(column)));
    }
    for k in 0..m.min(n) {
        let (col, size) = best;
        // Nothing is left but zeros.
        if size == T::Real::ZERO {
            return;
        }
        let row = (k..m).find(|&i| a[i + col * m].abs1() == size).unwrap_or(k);
        if col != k {
            columns.swap(k, col);
            let (left, right) = a.split_at_mut(col * m);
            left[k * m..(k + 1) * m].swap_with_slice(&mut right[..m]);
        }
        if row != k {
            rows.swap(k, row);
            a.chunks_exact_mut(m).for_each(|column| column.swap(k, row));
        }
        let (head, tail) = a.split_at_mut((k + 1) * m);
        let (pivot, below) = head[k * m + k..].split_first_mut().expect("k is below m");
        // The reciprocal of a smaller number would overflow.
        if size > T::Real::TINY * T::Real::of(8.0) {
            let inverse = T::ONE.divide(*pivot);
            below.iter_mut().for_each(|x| *x = *x * inverse);
        } else {
            below.iter_mut().for_each(|x| *x = x.divide(*pivot));
        }
        best = (k + 1, T::Real::ZERO);
        for (c, column) in tail.chunks_exact_mut(m).enumerate() {
            let (above, target) = column.split_at_mut(k + 1);
            best = better(best, (k + 1 + c, update(target, below, above[k])));
        }
    }
}

/// The first of the larger ones; NaN is no candidate.
#[inline(always)]
fn better<R: Real>(a: Best<R>, b: Best<R>) -> Best<R> {
    if b.1 > a.1 { b } else { a }
}

/// Partial maxima, so that comparisons do not wait for each other.
const LANES: usize = 8;

/// The largest element of a column.
#[inline(always)]
fn largest<T: Field>(column: &[T]) -> T::Real {
    column.iter().fold(T::Real::ZERO, |best, x| if x.abs1() > best { x.abs1() } else { best })
}

/// y <- y - x scale, and the largest element of the result.
#[inline(always)]
fn update<T: Field>(y: &mut [T], x: &[T], scale: T) -> T::Real {
    let mut best = [T::Real::ZERO; LANES];
    let (mut ys, mut xs) = (y.chunks_exact_mut(LANES), x.chunks_exact(LANES));
    for (y, x) in (&mut ys).zip(&mut xs) {
        for i in 0..LANES {
            y[i] = y[i] - x[i] * scale;
            let size = y[i].abs1();
            best[i] = if size > best[i] { size } else { best[i] };
        }
    }
    for ((y, &x), best) in ys.into_remainder().iter_mut().zip(xs.remainder()).zip(&mut best) {
        *y = *y - x * scale;
        let size = y.abs1();
        *best = if size > *best { size } else { *best };
    }
    best.into_iter().fold(T::Real::ZERO, |a, b| if b > a { b } else { a })
}
