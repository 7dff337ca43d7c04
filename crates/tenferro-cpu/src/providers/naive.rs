//! Matrix products over any semiring, for the element types that no dense provider covers (i32, i64).
//!
//! The loops are blocked so that a panel of A stays in the first-level cache while the columns of B pass,
//! and their innermost loop is an axpy on contiguous memory, which the compiler vectorises.

/// Addition and multiplication with their identities.
pub(crate) trait Semiring: Copy + PartialEq {
    /// The identity of `plus`, and annihilator of `times`.
    const ZERO: Self;

    /// The sum.
    fn plus(self, other: Self) -> Self;

    /// The product.
    fn times(self, other: Self) -> Self;
}

macro_rules! wrapping {
    ($($t:ty),*) => {$(
        /// Arithmetic modulo 2^bits, as everywhere on integer tensors.
        impl Semiring for $t {
            const ZERO: Self = 0;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    )*};
}

wrapping!(i32, i64);

/// Rows and columns of the packed panel of A: 64 x 32 elements of 8 bytes are 16 KiB.
const ROWS: usize = 64;
const COLS: usize = 32;

/// C <- alpha A B + beta C with A of m x k, B of k x n, C of m x n; each matrix is a pointer to its element
/// (0, 0) and its (row, column) strides in elements, which may be zero (in A and B) or negative.
///
/// With beta = 0, C is written without being read.
///
/// # Safety
/// Every addressed element of A and B is valid for reads and every one of C for writes (and for reads and
/// initialised if beta is not zero). The elements of C are distinct and overlap neither A nor B.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn gemm<T: Semiring>(
    (m, n, k): (usize, usize, usize),
    alpha: T,
    (a, ars, acs): (*const T, isize, isize),
    (b, brs, bcs): (*const T, isize, isize),
    beta: T,
    (c, crs, ccs): (*mut T, isize, isize),
) {
    let at = |i: usize, rs: isize, j: usize, cs: isize| i as isize * rs + j as isize * cs;
    for j in 0..n {
        for i in 0..m {
            // SAFETY: i < m and j < n; C is only read when beta says that it holds values.
            unsafe {
                let c = c.offset(at(i, crs, j, ccs));
                *c = if beta == T::ZERO { T::ZERO } else { beta.times(*c) };
            }
        }
    }
    if alpha == T::ZERO {
        return;
    }
    let mut panel = [T::ZERO; ROWS * COLS];
    for i0 in (0..m).step_by(ROWS) {
        let rows = ROWS.min(m - i0);
        for p0 in (0..k).step_by(COLS) {
            let cols = COLS.min(k - p0);
            for p in 0..cols {
                for i in 0..rows {
                    // SAFETY: i0 + i < m and p0 + p < k.
                    panel[p * ROWS + i] = unsafe { *a.offset(at(i0 + i, ars, p0 + p, acs)) };
                }
            }
            for j in 0..n {
                let mut sum = [T::ZERO; ROWS];
                for p in 0..cols {
                    // SAFETY: p0 + p < k and j < n.
                    let scale = alpha.times(unsafe { *b.offset(at(p0 + p, brs, j, bcs)) });
                    for (s, &x) in sum[..rows].iter_mut().zip(&panel[p * ROWS..]) {
                        *s = s.plus(x.times(scale));
                    }
                }
                for (i, s) in sum[..rows].iter().enumerate() {
                    // SAFETY: i0 + i < m and j < n; the element was written above.
                    unsafe {
                        let c = c.offset(at(i0 + i, crs, j, ccs));
                        *c = (*c).plus(*s);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Semiring + std::fmt::Debug>(value: impl Fn(usize) -> T) {
        for (m, n, k) in [(0, 3, 2), (3, 0, 2), (2, 2, 0), (1, 1, 1), (3, 5, 4), (70, 3, 33), (65, 2, 100)] {
            let a: Vec<T> = (0..m * k).map(&value).collect();
            let b: Vec<T> = (0..k * n).map(|i| value(i + 17)).collect();
            for beta in [T::ZERO, value(1), value(3)] {
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
                        (a.as_ptr().wrapping_add(ap), ki, -1),
                        (b.as_ptr().wrapping_add(bp), -1, ki),
                        beta,
                        (c.as_mut_ptr(), 1, mi),
                    );
                }
                for j in 0..n {
                    for i in 0..m {
                        let sum = (0..k)
                            .fold(T::ZERO, |s, p| s.plus(a[i * k + k - 1 - p].times(b[j * k + k - 1 - p])));
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
