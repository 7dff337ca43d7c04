//! Matrix products of any numbers, for the element types that no dense provider covers.
//!
//! The loops are blocked so that a panel of A stays in the first-level cache while the columns of B pass,
//! and their innermost loop is an axpy on contiguous memory, which the compiler vectorises.

use super::{Factor, Target};
use crate::threads::Par;
use tenferro_core_ops::Number;

/// Rows and columns of the packed panel of A: 64 x 32 elements of 8 bytes are 16 KiB.
const ROWS: usize = 64;
const COLS: usize = 32;

/// C <- alpha op(A) op(B) + beta C with A of m x k, B of k x n, C of m x n. With alpha = 0, A and B are not read; with
/// beta = 0, C is written without being read; and a factor of 1 multiplies nothing.
///
/// # Safety
/// Every addressed element of A and B is valid for reads and every one of C for writes (and for reads and
/// initialised if beta is not zero). The elements of C are distinct and overlap neither A nor B.
pub(crate) unsafe fn gemm<T: Number>(
    (m, n, k): (usize, usize, usize),
    alpha: T,
    a: Factor<T>,
    b: Factor<T>,
    beta: T,
    c: Target<T>,
    _: Par,
) {
    // SAFETY: the caller's, for i and j within the matrix.
    let read = |x: Factor<T>, i: usize, j: usize| unsafe {
        let x_ij = *x.ptr.offset(i as isize * x.row + j as isize * x.col);
        if x.conj { x_ij.conjugate() } else { x_ij }
    };
    let at = |i: usize, j: usize| c.ptr.wrapping_offset(i as isize * c.row + j as isize * c.col);
    let scaled = |factor: T, v: T| if factor == T::one() { v } else { factor.times(v) };
    for j in 0..n {
        for i in 0..m {
            // SAFETY: i < m and j < n; C is only read when beta says that it holds values.
            unsafe { *at(i, j) = if beta == T::zero() { T::zero() } else { scaled(beta, *at(i, j)) } };
        }
    }
    if alpha == T::zero() {
        return;
    }
    let mut panel = [T::zero(); ROWS * COLS];
    for i0 in (0..m).step_by(ROWS) {
        let rows = ROWS.min(m - i0);
        for p0 in (0..k).step_by(COLS) {
            let cols = COLS.min(k - p0);
            for p in 0..cols {
                for i in 0..rows {
                    panel[p * ROWS + i] = read(a, i0 + i, p0 + p);
                }
            }
            for j in 0..n {
                let mut sum = [T::zero(); ROWS];
                for p in 0..cols {
                    let scale = scaled(alpha, read(b, p0 + p, j));
                    for (s, &x) in sum[..rows].iter_mut().zip(&panel[p * ROWS..]) {
                        *s = s.plus(x.times(scale));
                    }
                }
                for (i, s) in sum[..rows].iter().enumerate() {
                    // SAFETY: i0 + i < m and j < n; the element was written above.
                    unsafe { *at(i0 + i, j) = (*at(i0 + i, j)).plus(*s) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Number>(value: impl Fn(usize) -> T) {
        for (m, n, k) in [(0, 3, 2), (3, 0, 2), (2, 2, 0), (1, 1, 1), (3, 5, 4), (70, 3, 33), (65, 2, 100)] {
            let a: Vec<T> = (0..m * k).map(&value).collect();
            let b: Vec<T> = (0..k * n).map(|i| value(i + 17)).collect();
            for beta in [T::zero(), value(1), value(3)] {
                // A is row-major with reversed columns, B column-major with its rows reversed.
                let (ap, bp) = (k.saturating_sub(1), k.saturating_sub(1));
                let old: Vec<T> = (0..m * n).map(|i| value(i + 5)).collect();
                let mut c = old.clone();
                let (alpha, mi, ki) = (value(11), m as isize, k as isize);
                // SAFETY: the strides stay within the vectors.
                unsafe {
                    gemm(
                        (m, n, k),
                        alpha,
                        Factor { ptr: a.as_ptr().wrapping_add(ap), row: ki, col: -1, conj: false },
                        Factor { ptr: b.as_ptr().wrapping_add(bp), row: -1, col: ki, conj: false },
                        beta,
                        Target { ptr: c.as_mut_ptr(), row: 1, col: mi },
                        Par::Seq,
                    );
                }
                for j in 0..n {
                    for i in 0..m {
                        let sum = (0..k)
                            .fold(T::zero(), |s, p| s.plus(a[i * k + k - 1 - p].times(b[j * k + k - 1 - p])));
                        let expected = alpha.times(sum).plus(beta.times(old[i + j * m]));
                        assert_eq!(c[i + j * m], expected, "({i}, {j}) of {m} x {n} x {k}");
                    }
                }
            }
        }
    }

    #[test]
    fn product_equals_its_definition_modulo_two_to_the_bits() {
        check(|i| (i as i32).wrapping_mul(1_640_531_527).wrapping_sub(12_345));
        check(|i| (i as i64).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64));
    }
}
