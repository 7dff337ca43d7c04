//! Products against their definition.

#![cfg(feature = "faer")]

use num_complex::Complex;
use tenferro_internal_dense::{Dense, Factor, Par, Target};

/// A matrix in a buffer with the given strides: its elements, and where (0, 0) is.
struct Stored<T> {
    buffer: Vec<T>,
    origin: usize,
    row: isize,
    col: isize,
}

/// Column-major, row-major, spread out with reversed rows, and reversed columns.
fn layouts(m: usize, n: usize) -> [(usize, isize, isize); 4] {
    let (mi, ni) = (m.max(1) as isize, n.max(1) as isize);
    let (last_row, last_col) = (m.saturating_sub(1), n.saturating_sub(1));
    [(0, 1, mi), (0, ni, 1), (2 * last_row, -2, 2 * mi + 1), (last_col * (m.max(1) + 3), 1, -(mi + 3))]
}

fn store<T: Dense>(m: usize, n: usize, layout: (usize, isize, isize), value: T) -> Stored<T> {
    let (origin, row, col) = layout;
    Stored { buffer: vec![value; (2 * m + 4) * (n + 4) + 4], origin, row, col }
}

impl<T: Dense> Stored<T> {
    fn index(&self, i: usize, j: usize) -> usize {
        (self.origin as isize + i as isize * self.row + j as isize * self.col) as usize
    }

    fn factor(&self, conj: bool) -> Factor<T> {
        let ptr = self.buffer[self.origin..].as_ptr();
        Factor { ptr, row: self.row, col: self.col, conj }
    }
}

/// Small integers, so that every sum is exact and can be compared for equality.
fn check<T: Dense>(value: impl Fn(i32, i32) -> T, nan: T) {
    let shapes = [
        (0, 2, 3),
        (2, 0, 3),
        (2, 3, 0),
        (1, 1, 1),
        (2, 2, 2),
        (3, 3, 3),
        (4, 4, 4),
        (1, 3, 2),
        (4, 2, 3),
        (3, 4, 1),
        (5, 6, 7),
        (1, 1, 40),
        (37, 1, 21),
        (1, 19, 33),
        (17, 18, 1),
        (20, 13, 17),
    ];
    for (case, (m, n, k)) in shapes.into_iter().enumerate() {
        for mode in 0..16 {
            let mut seed = case as i32 * 16 + mode;
            let mut next = || {
                seed = (seed * 37 + 11) % 101;
                value(seed % 7 - 3, seed % 5 - 2)
            };
            let layout = |m, n, shift| layouts(m, n)[(mode as usize + shift) % 4];
            let mut a = store(m, k, layout(m, k, 0), nan);
            let mut b = store(k, n, layout(k, n, mode as usize / 4), nan);
            let mut c = store(m, n, layout(m, n, mode as usize / 8), nan);
            let (conj_a, conj_b) = (mode & 1 == 1, mode & 2 == 2);
            let alpha = [T::ONE, value(2, -1), T::ONE, T::ZERO][mode as usize % 4];
            let beta = [T::ZERO, value(3, 1), T::ONE][mode as usize % 3];
            for (matrix, rows, cols) in [(&mut a, m, k), (&mut b, k, n)] {
                for j in 0..cols {
                    for i in 0..rows {
                        let at = matrix.index(i, j);
                        matrix.buffer[at] = next();
                    }
                }
            }
            if beta != T::ZERO {
                for j in 0..n {
                    for i in 0..m {
                        let at = c.index(i, j);
                        c.buffer[at] = next();
                    }
                }
            }
            let mut expected = Vec::new();
            for j in 0..n {
                for i in 0..m {
                    let conj = |x: T, flag| if flag { x.conj() } else { x };
                    let sum = (0..k).fold(T::ZERO, |sum, p| {
                        let (x, y) = (a.buffer[a.index(i, p)], b.buffer[b.index(p, j)]);
                        sum + conj(x, conj_a) * conj(y, conj_b)
                    });
                    let old = c.buffer[c.index(i, j)];
                    let kept = if beta == T::ZERO { T::ZERO } else { beta * old };
                    expected.push((c.index(i, j), alpha * sum + kept));
                }
            }
            let target = Target { ptr: c.buffer[c.origin..].as_mut_ptr(), row: c.row, col: c.col };
            // SAFETY: the layouts stay within the buffers, which are distinct.
            unsafe {
                T::gemm((m, n, k), alpha, a.factor(conj_a), b.factor(conj_b), beta, target, Par::Seq);
            }
            for (at, value) in expected {
                assert_eq!(c.buffer[at], value, "{m} x {n} x {k}, mode {mode}");
            }
            // NaN, which fills the rest of the buffer, differs from itself.
            #[allow(clippy::eq_op)]
            let touched = c.buffer.iter().filter(|&&x| x == x).count();
            assert!(touched <= m * n, "wrote outside of C: {m} x {n} x {k}, mode {mode}");
        }
    }
}

#[test]
fn product_equals_its_definition_for_all_layouts_and_scalars() {
    check(|x, _| x as f32, f32::NAN);
    check(|x, _| x as f64, f64::NAN);
    check(|x, y| Complex::new(x as f32, y as f32), Complex::new(f32::NAN, f32::NAN));
    check(|x, y| Complex::new(x as f64, y as f64), Complex::new(f64::NAN, f64::NAN));
}

#[test]
fn zero_strides_broadcast_a_factor() {
    for (m, n, k) in [(2, 2, 2), (4, 3, 4), (9, 10, 11), (1, 1, 50), (30, 1, 20)] {
        let (x, y) = (3.0, 0.5);
        let a = Factor { ptr: &raw const x, row: 0, col: 0, conj: false };
        let b = Factor { ptr: &raw const y, row: 0, col: 0, conj: false };
        let mut c = vec![f64::NAN; m * n];
        let target = Target { ptr: c.as_mut_ptr(), row: 1, col: m as isize };
        // SAFETY: every index addresses the one element of each factor.
        unsafe { f64::gemm((m, n, k), 1.0, a, b, 0.0, target, Par::Seq) };
        assert_eq!(c, vec![1.5 * k as f64; m * n], "{m} x {n} x {k}");
    }
}
