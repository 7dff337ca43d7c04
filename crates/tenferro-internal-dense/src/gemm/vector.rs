//! Products with a vector.

// Index loops of constant length over several arrays at once are what the vectoriser needs to see.
#![allow(clippy::needless_range_loop)]

use super::{Output, Sum};
use crate::Factor;
use crate::simd::Loops;

/// A product with a vector, m x k times k.
pub(super) struct MatrixVector<T> {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) a: Factor<T>,
    pub(super) x: Factor<T>,
    pub(super) out: Output<T>,
}

impl<T: Sum> Loops for MatrixVector<T> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(self) {
        const LANES: usize = 16;
        let MatrixVector { m, k, a, x, out } = self;
        // SAFETY: i < m and p < k in every access.
        unsafe {
            let mut i = 0;
            // Contiguous columns: a strip of rows stays in registers while the columns pass.
            while a.row == 1 && i + LANES <= m {
                let mut sum = [(T::ZERO, T::ZERO); LANES];
                for p in 0..k {
                    let b = x.at(p, 0);
                    let strip = Factor { row: 1, ..a.skip(i, p) };
                    for l in 0..LANES {
                        sum[l] = T::accumulate::<FMA>(sum[l], strip.at(l, 0), b);
                    }
                }
                out.put(i, 0, &sum.map(T::total));
                i += LANES;
            }
            // The other rows are inner products; partial sums break the dependency between additions.
            let unit = a.col == 1 && x.row == 1;
            for i in i..m {
                let row = a.skip(i, 0);
                let mut sum = [(T::ZERO, T::ZERO); LANES];
                let mut p = 0;
                while p + LANES <= k {
                    let (mut r, mut y) = (row.skip(0, p), x.skip(p, 0));
                    if unit {
                        (r.col, y.row) = (1, 1);
                        for l in 0..LANES {
                            sum[l] = T::accumulate::<FMA>(sum[l], r.at(0, l), y.at(l, 0));
                        }
                    } else {
                        for l in 0..LANES {
                            sum[l] = T::accumulate::<FMA>(sum[l], r.at(0, l), y.at(l, 0));
                        }
                    }
                    p += LANES;
                }
                while p < k {
                    sum[0] = T::accumulate::<FMA>(sum[0], row.at(0, p), x.at(p, 0));
                    p += 1;
                }
                let total = sum.into_iter().fold(T::ZERO, |t, s| t + T::total(s));
                out.put(i, 0, &[total]);
            }
        }
    }
}
