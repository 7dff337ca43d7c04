//! Products of small matrices.

// Index loops of constant length over several arrays at once are what the vectoriser needs to see.
#![allow(clippy::needless_range_loop)]

use super::{Output, Sum};
use crate::Factor;
use crate::simd::Loops;

/// Largest extent for which own loops beat faer: at 4 by 34 to 48 ns in f64, at 5 no longer.
pub(super) const SMALL: usize = 4;

/// A product whose extents are all at most `SMALL`.
pub(super) struct Small<T> {
    pub(super) shape: (usize, usize, usize),
    pub(super) a: Factor<T>,
    pub(super) b: Factor<T>,
    pub(super) out: Output<T>,
}

impl<T: Sum> Loops for Small<T> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(self) {
        // SAFETY: the callees have the promise of `run`, and no extent exceeds SMALL = 4.
        unsafe {
            match self.shape {
                (4, 4, 4) if self.a.row == 1 && !self.a.conj => self.four_rows::<FMA>(4, 4),
                (4, n, k) if self.a.row == 1 && !self.a.conj => self.four_rows::<FMA>(n, k),
                shape => self.columns::<FMA, 4, 4>(shape),
            }
        }
    }
}

impl<T: Sum> Small<T> {
    /// # Safety
    /// The promise of [`gemm`](super::gemm), and no extent above three.
    #[inline(always)]
    pub(super) unsafe fn tiny(&self) {
        // SAFETY: the caller's promise; 2 and 3 bound the extents in their arms.
        unsafe {
            match self.shape {
                (2, 2, 2) => self.columns::<false, 2, 2>((2, 2, 2)),
                (3, 3, 3) => self.columns::<false, 3, 3>((3, 3, 3)),
                (m, n, k) => {
                    for j in 0..n {
                        for i in 0..m {
                            let mut sum = self.a.at(i, 0) * self.b.at(0, j);
                            for p in 1..k {
                                sum = sum + self.a.at(i, p) * self.b.at(p, j);
                            }
                            self.out.put(i, j, &[sum]);
                        }
                    }
                }
            }
        }
    }

    /// Columns of C as combinations of the columns of A, which are first copied and padded to `W` rows so
    /// that the inner loop has a constant length.
    ///
    /// # Safety
    /// The promise of [`gemm`](super::gemm), m <= W and k <= K.
    #[inline(always)]
    unsafe fn columns<const FMA: bool, const W: usize, const K: usize>(
        &self,
        (m, n, k): (usize, usize, usize),
    ) {
        let mut panel = [[T::ZERO; W]; K];
        for p in 0..k {
            for i in 0..m {
                // SAFETY: i < m and p < k.
                panel[p][i] = unsafe { self.a.at(i, p) };
            }
        }
        for j in 0..n {
            let mut sum = [(T::ZERO, T::ZERO); W];
            for p in 0..k {
                // SAFETY: p < k and j < n.
                let b = unsafe { self.b.at(p, j) };
                for i in 0..W {
                    sum[i] = T::accumulate::<FMA>(sum[i], panel[p][i], b);
                }
            }
            // SAFETY: m rows of column j.
            unsafe { self.out.put(0, j, &sum.map(T::total)[..m]) };
        }
    }

    /// Four contiguous rows of A in registers.
    ///
    /// # Safety
    /// The promise of [`gemm`](super::gemm), m = 4, A has unit row stride and is not conjugated.
    #[inline(always)]
    unsafe fn four_rows<const FMA: bool>(&self, n: usize, k: usize) {
        for j in 0..n {
            let mut sum = [(T::ZERO, T::ZERO); 4];
            for p in 0..k {
                // SAFETY: four rows, p < k and j < n.
                unsafe {
                    let b = self.b.at(p, j);
                    let column = self.a.ptr.offset(p as isize * self.a.col);
                    for i in 0..4 {
                        sum[i] = T::accumulate::<FMA>(sum[i], *column.add(i), b);
                    }
                }
            }
            // SAFETY: four rows of column j.
            unsafe { self.out.put(0, j, &sum.map(T::total)) };
        }
    }
}
