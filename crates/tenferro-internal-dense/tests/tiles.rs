//! Products by tiles, with each instruction set of the processor, against their definition.

#![cfg(feature = "faer")]

use num_complex::Complex;
use tenferro_internal_dense::{Dense, Factor, Target};

/// A matrix within a longer buffer.
struct Stored<T> {
    buffer: Vec<T>,
    origin: isize,
    row: isize,
    col: isize,
}

impl<T: Dense> Stored<T> {
    /// An m x n matrix of values of `next`, with the other places of the buffer filled by `guard`. Layout 0
    /// is column-major with two rows to spare, 1 row-major with a column to spare; 2 and 3 have negative
    /// strides, 4 has strides above 1, and 5 and 6 repeat a column and a row.
    fn new((m, n): (usize, usize), layout: usize, guard: T, mut next: impl FnMut() -> T) -> Self {
        let (m, n) = (m as isize, n as isize);
        let (row, col) = [(1, m + 2), (n + 1, 1), (-1, m), (n, -1), (2, 2 * m + 3), (1, 0), (0, 1)][layout];
        let origin = 8 + if row < 0 { m - 1 } else { 0 } + if col < 0 { n - 1 } else { 0 };
        let len = origin + row.max(0) * (m - 1) + col.max(0) * (n - 1) + 9;
        let mut stored = Stored { buffer: vec![guard; len as usize], origin, row, col };
        for j in 0..n as usize {
            for i in 0..m as usize {
                let at = stored.index(i, j);
                stored.buffer[at] = next();
            }
        }
        stored
    }

    fn index(&self, i: usize, j: usize) -> usize {
        (self.origin + i as isize * self.row + j as isize * self.col) as usize
    }

    fn at(&self, i: usize, j: usize) -> T {
        self.buffer[self.index(i, j)]
    }

    fn factor(&self, conj: bool) -> Factor<T> {
        let ptr = self.buffer[self.origin as usize..].as_ptr();
        Factor { ptr, row: self.row, col: self.col, conj }
    }

    fn target(&mut self) -> Target<T> {
        let ptr = self.buffer[self.origin as usize..].as_mut_ptr();
        Target { ptr, row: self.row, col: self.col }
    }
}

/// Calls `check` with the names of the instruction sets of this processor.
fn on_each(check: impl Fn(bool)) {
    #[cfg(target_arch = "x86_64")]
    for wide in [false, true] {
        let present = match wide {
            false => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            true => is_x86_feature_detected!("avx512f"),
        };
        if present {
            check(wide);
        }
    }
    let _ = check;
}

/// Numbers below `bound`, the same in every run.
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |bound| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % bound
    }
}

/// Small integers and halves of them, so that every sum is exact and can be compared for equality.
fn sampled<T: Dense>(wide: bool, number: impl Fn(f64, f64) -> T, nan: T) {
    let mut pick = random(1);
    for case in 0..400 {
        let (m, n, k) = match case {
            // Several panels of the largest tiles.
            0 => (65, 63, 64),
            1 => (130, 7, 3),
            2 => (7, 100, 3),
            _ => (1 + pick(40), 1 + pick(40), 1 + pick(40)),
        };
        let mut value = random(case + 2);
        let mut next = || number(value(7) as f64 - 3.0, value(5) as f64 - 2.0);
        let a = Stored::new((m, k), pick(7), nan, &mut next);
        let b = Stored::new((k, n), pick(7), nan, &mut next);
        let scalars = [T::ZERO, T::ONE, number(2.5, 0.5)];
        let (alpha, beta) = (scalars[1 + pick(2)], scalars[pick(3)]);
        let mut c = Stored::new((m, n), pick(5), nan, || {
            if beta == T::ZERO { nan } else { number(value(9) as f64, 1.0) }
        });
        let (conj_a, conj_b) = (pick(2) == 1, pick(2) == 1);
        let conj = |x: T, flag| if flag { x.conj() } else { x };
        let mut expected = c.buffer.clone();
        for j in 0..n {
            for i in 0..m {
                let term = |p| conj(a.at(i, p), conj_a) * conj(b.at(p, j), conj_b);
                let sum = alpha * (0..k).fold(T::ZERO, |sum, p| sum + term(p));
                let old = &mut expected[c.index(i, j)];
                *old = if beta == T::ZERO { sum } else { sum + beta * *old };
            }
        }
        let (left, right, target) = (a.factor(conj_a), b.factor(conj_b), c.target());
        // SAFETY: the buffers are distinct and hold the matrices.
        let done = unsafe { T::gemm_by_tiles(wide, (m, n, k), alpha, left, right, beta, target) };
        assert!(done);
        for (at, (x, y)) in c.buffer.iter().zip(&expected).enumerate() {
            // NaN around the matrix, and only there, differs from itself.
            #[allow(clippy::eq_op)]
            let same = x == y || x != x && y != y;
            assert!(same, "case {case}: {m} x {n} x {k}, AVX-512: {wide}, place {at}: {x:?} for {y:?}");
        }
    }
}

#[test]
fn products_of_all_shapes_layouts_and_scalars_are_exact() {
    on_each(|wide| {
        sampled(wide, |x, _| x as f32, f32::NAN);
        sampled(wide, |x, _| x, f64::NAN);
        sampled(wide, |x, y| Complex::new(x as f32, y as f32), Complex::new(f32::NAN, f32::NAN));
        sampled(wide, Complex::new, Complex::new(f64::NAN, f64::NAN));
    });
}

/// One element of A or B is `special`: its row or column of C is what the definition says, the rest is
/// finite.
fn propagates<T: Dense>(wide: bool, special: T, reaches: impl Fn(T) -> bool) {
    for (m, n, k) in [(3, 2, 5), (8, 6, 8), (21, 13, 17), (40, 11, 9)] {
        for in_a in [true, false] {
            let mut a = Stored::new((m, k), 0, T::ONE, || T::ONE);
            let mut b = Stored::new((k, n), 0, T::ONE, || T::ONE);
            let mut c = Stored::new((m, n), 0, T::ONE, || T::ONE);
            let (i, j, p) = (m - 1, n - 1, k / 2);
            if in_a {
                let at = a.index(i, p);
                a.buffer[at] = special;
            } else {
                let at = b.index(p, j);
                b.buffer[at] = special;
            }
            let (left, right, target) = (a.factor(false), b.factor(false), c.target());
            // SAFETY: the buffers are distinct and hold the matrices.
            assert!(unsafe { T::gemm_by_tiles(wide, (m, n, k), T::ONE, left, right, T::ONE, target) });
            for y in 0..n {
                for x in 0..m {
                    let special = if in_a { x == i } else { y == j };
                    assert_eq!(reaches(c.at(x, y)), special, "{m} x {n} x {k} at ({x}, {y})");
                    assert_eq!(c.at(x, y).finite(), !special, "{m} x {n} x {k} at ({x}, {y})");
                }
            }
        }
    }
}

#[test]
fn nan_and_infinities_reach_their_row_or_column_and_no_other() {
    on_each(|wide| {
        propagates(wide, f32::NAN, f32::is_nan);
        propagates(wide, f64::NAN, f64::is_nan);
        propagates(wide, f32::NEG_INFINITY, |x| x == f32::NEG_INFINITY);
        propagates(wide, f64::INFINITY, |x| x == f64::INFINITY);
        propagates(wide, Complex::new(f32::NAN, 0.0), |x| x.re.is_nan());
        propagates(wide, Complex::new(0.0, f64::NAN), |x| x.im.is_nan());
    });
}
