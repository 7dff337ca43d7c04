//! Copies of matrices to contiguous columns.

use std::arch::x86_64::*;
use std::array::from_fn;

use crate::{Factor, Field};

/// Copies an m x k matrix, unconjugated, to contiguous columns: the element (i, p) to `to + i + p ld`.
///
/// # Safety
/// The elements of `from` can be read, those at `to` written, m <= ld, the two do not overlap, and the
/// processor has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn pack<T: Field>((m, k): (usize, usize), from: Factor<T>, to: *mut T, ld: usize) {
    let shape = ((0, m), (0, k));
    // SAFETY: a `Complex<f32>` moves as an f64 does, which is never accessed as if it were aligned. The rest
    // is the caller's promise.
    unsafe {
        match size_of::<T>() {
            _ if from.row == 1 => {
                for p in 0..k {
                    to.add(p * ld).copy_from_nonoverlapping(from.ptr.offset(p as isize * from.col), m);
                }
            }
            4 if from.col == 1 => rows::<f32, 8, 4>((m, k), from.ptr.cast(), from.row, to.cast(), ld),
            8 if from.col == 1 => rows::<f64, 4, 2>((m, k), from.ptr.cast(), from.row, to.cast(), ld),
            _ => elements(shape, from, to, ld),
        }
    }
}

/// Copies contiguous rows, `row` elements apart, by blocks of R x P elements.
///
/// # Safety
/// As for [`pack`].
#[inline(always)]
unsafe fn rows<T: Block<R>, const R: usize, const P: usize>(
    (m, k): (usize, usize),
    from: *const T,
    row: isize,
    to: *mut T,
    ld: usize,
) {
    let (whole_m, whole_k) = (m - m % R, k - k % P);
    // SAFETY: the blocks and what is left of the rows and columns divide the matrix.
    unsafe {
        for i in (0..whole_m).step_by(R) {
            let starts: [_; R] = from_fn(
                #[inline(always)]
                |r| from.offset((i + r) as isize * row),
            );
            for p in (0..whole_k).step_by(P) {
                T::transpose(
                    from_fn(
                        #[inline(always)]
                        |r| starts[r].add(p),
                    ),
                    to.add(i + p * ld),
                    ld,
                );
            }
        }
        let from = Factor { ptr: from, row, col: 1, conj: false };
        elements(((0, whole_m), (whole_k, k)), from, to, ld);
        elements(((whole_m, m), (0, k)), from, to, ld);
    }
}

/// Copies a range of rows and columns element by element.
///
/// # Safety
/// As for [`pack`].
#[inline(always)]
unsafe fn elements<T: Copy>(
    ((top, bottom), (left, right)): ((usize, usize), (usize, usize)),
    from: Factor<T>,
    to: *mut T,
    ld: usize,
) {
    for p in left..right {
        for i in top..bottom {
            // SAFETY: (i, p) lies within the matrix.
            unsafe {
                let at = from.ptr.offset(i as isize * from.row + p as isize * from.col);
                to.add(i + p * ld).write_unaligned(at.read_unaligned());
            }
        }
    }
}

/// A type whose blocks of R rows are transposed in registers. The halves of a register are loaded from
/// different rows, so that nothing has to cross between them.
trait Block<const R: usize>: Copy {
    /// Copies sixteen bytes of each row to columns `ld` elements apart.
    ///
    /// # Safety
    /// They can be read and written; the processor has AVX2.
    unsafe fn transpose(rows: [*const Self; R], to: *mut Self, ld: usize);
}

impl Block<4> for f64 {
    #[inline(always)]
    unsafe fn transpose(rows: [*const f64; 4], to: *mut f64, ld: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let x = _mm256_loadu2_m128d(rows[2], rows[0]);
            let y = _mm256_loadu2_m128d(rows[3], rows[1]);
            _mm256_storeu_pd(to, _mm256_unpacklo_pd(x, y));
            _mm256_storeu_pd(to.add(ld), _mm256_unpackhi_pd(x, y));
        }
    }
}

impl Block<8> for f32 {
    #[inline(always)]
    unsafe fn transpose(rows: [*const f32; 8], to: *mut f32, ld: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let [x, y, z, w]: [__m256d; 4] = from_fn(
                #[inline(always)]
                |r| _mm256_castps_pd(_mm256_loadu2_m128(rows[r + 4], rows[r])),
            );
            // Rows 0 and 2, then 1 and 3, by pairs of columns; then single columns.
            let [xz, xz_high] = [_mm256_unpacklo_pd(x, z), _mm256_unpackhi_pd(x, z)];
            let [yw, yw_high] = [_mm256_unpacklo_pd(y, w), _mm256_unpackhi_pd(y, w)];
            for (pair, (xz, yw)) in [(xz, yw), (xz_high, yw_high)].into_iter().enumerate() {
                // (x0 x1 z0 z1) and (y0 y1 w0 w1).
                let (xz, yw) = (_mm256_castpd_ps(xz), _mm256_castpd_ps(yw));
                let even = _mm256_shuffle_ps::<0b10_00_10_00>(xz, yw);
                let odd = _mm256_shuffle_ps::<0b11_01_11_01>(xz, yw);
                // (x0 z0 y0 w0): the middle ones change places.
                _mm256_storeu_ps(to.add(2 * pair * ld), _mm256_permute_ps::<0b11_01_10_00>(even));
                _mm256_storeu_ps(to.add((2 * pair + 1) * ld), _mm256_permute_ps::<0b11_01_10_00>(odd));
            }
        }
    }
}
