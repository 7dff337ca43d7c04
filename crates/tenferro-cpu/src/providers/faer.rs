//! Matrix products of floating-point elements: faer above a size threshold, own loops below it.
//!
//! `gemm` computes C <- alpha op(A) op(B) + beta C on memory with arbitrary signed strides. faer spends
//! 40 ns before its first multiplication, three times a whole 2 x 2 product, so matrices up to 4 x 4 and
//! vectors take plain loops, compiled for the baseline and for AVX2 + FMA and chosen at run time.
//!
//! Invariant: faer is instantiated once per element type, in the four `Element` impls below.

// Index loops of constant length over several arrays at once are what the vectoriser needs to see.
#![allow(clippy::needless_range_loop)]

use std::ops::{Add, Mul};

use super::{Factor, Target};
use faer::{Accum, Conj, MatMut, MatRef, Par};
use num_complex::Complex;

impl<T: Element> Factor<T> {
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

/// The element types of `gemm`: f32, f64, Complex<f32>, Complex<f64>.
pub(crate) trait Element:
    Copy + PartialEq + Add<Output = Self> + Mul<Output = Self> + 'static
{
    /// The additive identity.
    const ZERO: Self;
    /// The multiplicative identity.
    const ONE: Self;

    /// The complex conjugate; the value itself when real.
    fn conj(self) -> Self;

    /// Largest number of matrix elements for which own products with a vector beat faer.
    #[doc(hidden)]
    const VECTOR: usize;

    /// Adds a b to a sum kept as (sum a re b, sum a im b), which makes the complex product a pair of
    /// multiplications of contiguous reals by one real, without shuffles. `FMA` says that the fused
    /// operation is one instruction.
    #[doc(hidden)]
    fn accumulate<const FMA: bool>(sum: (Self, Self), a: Self, b: Self) -> (Self, Self);

    /// The value of a sum built by `accumulate`.
    #[doc(hidden)]
    fn total(sum: (Self, Self)) -> Self;

    /// C <- alpha A B (+ C if `add`) by faer.
    ///
    /// # Safety
    /// As for [`gemm`].
    #[doc(hidden)]
    #[allow(clippy::too_many_arguments)]
    unsafe fn product(
        shape: (usize, usize, usize),
        alpha: Self,
        a: Factor<Self>,
        b: Factor<Self>,
        add: bool,
        c: Target<Self>,
        par: Par,
    );
}

#[inline(always)]
fn multiply_add<R: Copy + Mul<Output = R> + Add<Output = R>, const FMA: bool>(
    fused: impl Fn(R, R, R) -> R,
    a: R,
    b: R,
    c: R,
) -> R {
    if FMA { fused(a, b, c) } else { a * b + c }
}

macro_rules! element {
    ($t:ty { $($item:item)* }) => {
        impl Element for $t {
            $($item)*

            #[inline(never)]
            unsafe fn product(
                (m, n, k): (usize, usize, usize),
                alpha: Self,
                a: Factor<Self>,
                b: Factor<Self>,
                add: bool,
                c: Target<Self>,
                par: Par,
            ) {
                // SAFETY: the caller of `gemm` vouches for the three memory regions, and that C
                // overlaps neither factor.
                let (lhs, rhs, dst) = unsafe {
                    (
                        MatRef::from_raw_parts(a.ptr, m, k, a.row, a.col),
                        MatRef::from_raw_parts(b.ptr, k, n, b.row, b.col),
                        MatMut::from_raw_parts_mut(c.ptr, m, n, c.row, c.col),
                    )
                };
                let accum = if add { Accum::Add } else { Accum::Replace };
                let conj = |flag| if flag { Conj::Yes } else { Conj::No };
                faer::linalg::matmul::matmul_with_conj(
                    dst, accum, lhs, conj(a.conj), rhs, conj(b.conj), alpha, par,
                );
            }
        }
    };
}

macro_rules! elements {
    ($r:ty) => {
        element!($r {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const VECTOR: usize = 1 << 14;

            #[inline(always)]
            fn conj(self) -> Self {
                self
            }

            #[inline(always)]
            fn accumulate<const FMA: bool>(sum: (Self, Self), a: Self, b: Self) -> (Self, Self) {
                (multiply_add::<$r, FMA>(<$r>::mul_add, a, b, sum.0), sum.1)
            }

            #[inline(always)]
            fn total(sum: (Self, Self)) -> Self {
                sum.0
            }
        });

        element!(Complex<$r> {
            const ZERO: Self = Complex::new(0.0, 0.0);
            const ONE: Self = Complex::new(1.0, 0.0);
            const VECTOR: usize = 0;

            #[inline(always)]
            fn conj(self) -> Self {
                Complex::new(self.re, -self.im)
            }

            #[inline(always)]
            fn accumulate<const FMA: bool>((s, t): (Self, Self), a: Self, b: Self) -> (Self, Self) {
                let f = multiply_add::<$r, FMA>;
                (
                    Complex::new(
                        f(<$r>::mul_add, a.re, b.re, s.re),
                        f(<$r>::mul_add, a.im, b.re, s.im),
                    ),
                    Complex::new(
                        f(<$r>::mul_add, a.re, b.im, t.re),
                        f(<$r>::mul_add, a.im, b.im, t.im),
                    ),
                )
            }

            #[inline(always)]
            fn total((s, t): (Self, Self)) -> Self {
                Complex::new(s.re - t.im, s.im + t.re)
            }
        });
    };
}

elements!(f32);
elements!(f64);

/// Largest extent for which own loops beat faer: at 4 by 34 to 48 ns in f64, at 5 no longer.
const SMALL: usize = 4;

/// C <- alpha op(A) op(B) + beta C with A of m x k, B of k x n, C of m x n.
///
/// With beta = 0, C is written without being read; with k = 0 or alpha = 0, A and B are not read and C
/// becomes beta C; with m = 0 or n = 0 nothing happens.
///
/// # Safety
/// Every addressed element of A and B is valid for reads and every one of C for writes (and for reads and
/// initialised if beta is not zero). The elements of C are distinct and overlap neither A nor B.
#[inline]
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn gemm<T: Element>(
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
    let small = |limit| m <= limit && n <= limit && k <= limit;
    // SAFETY: the caller's promises are exactly those of the callees, and their bounds on the extents hold.
    unsafe {
        if k == 0 || alpha == T::ZERO {
            out.scale(m, n);
        } else if small(3) {
            // So few operations gain nothing from wider registers and lose the call.
            Small { shape: (m, n, k), a, b, out }.tiny();
        } else if small(SMALL) {
            dispatch(Small { shape: (m, n, k), a, b, out });
        } else if n == 1 && (m == 1 || m * k <= T::VECTOR) {
            dispatch(MatrixVector { m, k, a, x: b, out });
        } else if m == 1 && n * k <= T::VECTOR {
            // A row of C: transpose the whole equation.
            let (a, x, c) = (b.transposed(), a.transposed(), Target { row: c.col, col: c.row, ..c });
            dispatch(MatrixVector { m: n, k, a, x, out: Output { c, ..out } });
        } else {
            if beta != T::ZERO && beta != T::ONE {
                out.scale(m, n);
            }
            T::product((m, n, k), alpha, a, b, beta != T::ZERO, c, par);
        }
    }
}

/// What happens to a finished sum: C <- alpha sum + beta C.
#[derive(Clone, Copy)]
struct Output<T> {
    alpha: T,
    beta: T,
    c: Target<T>,
}

impl<T: Element> Output<T> {
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

/// A loop nest to be compiled for several instruction sets. `FMA` says that fused multiplication-addition is
/// one instruction.
trait Loops {
    /// # Safety
    /// The memory promises of [`gemm`].
    unsafe fn run<const FMA: bool>(self);
}

#[inline(always)]
unsafe fn dispatch<L: Loops>(loops: L) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2<L: Loops>(loops: L) {
            // SAFETY: the caller's promise.
            unsafe { loops.run::<true>() }
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: the features are present; memory is the caller's promise.
            return unsafe { avx2(loops) };
        }
    }
    // SAFETY: the caller's promise.
    unsafe { loops.run::<{ cfg!(target_arch = "aarch64") }>() }
}

/// A product whose extents are all at most `SMALL`.
struct Small<T> {
    shape: (usize, usize, usize),
    a: Factor<T>,
    b: Factor<T>,
    out: Output<T>,
}

impl<T: Element> Loops for Small<T> {
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

impl<T: Element> Small<T> {
    /// # Safety
    /// The promise of [`gemm`], and no extent above three.
    #[inline(always)]
    unsafe fn tiny(&self) {
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
    /// The promise of [`gemm`], m <= W and k <= K.
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
    /// The promise of [`gemm`], m = 4, A has unit row stride and is not conjugated.
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

/// A product with a vector, m x k times k.
struct MatrixVector<T> {
    m: usize,
    k: usize,
    a: Factor<T>,
    x: Factor<T>,
    out: Output<T>,
}

impl<T: Element> Loops for MatrixVector<T> {
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

#[cfg(test)]
mod tests {
    use super::*;

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

    fn store<T: Element>(m: usize, n: usize, layout: (usize, isize, isize), value: T) -> Stored<T> {
        let (origin, row, col) = layout;
        Stored { buffer: vec![value; (2 * m + 4) * (n + 4) + 4], origin, row, col }
    }

    impl<T: Element> Stored<T> {
        fn index(&self, i: usize, j: usize) -> usize {
            (self.origin as isize + i as isize * self.row + j as isize * self.col) as usize
        }

        fn factor(&self, conj: bool) -> Factor<T> {
            let ptr = self.buffer[self.origin..].as_ptr();
            Factor { ptr, row: self.row, col: self.col, conj }
        }
    }

    /// Small integers, so that every sum is exact and can be compared for equality.
    fn check<T: Element + std::fmt::Debug>(value: impl Fn(i32, i32) -> T, nan: T) {
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
                    gemm((m, n, k), alpha, a.factor(conj_a), b.factor(conj_b), beta, target, Par::Seq);
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
            unsafe { gemm((m, n, k), 1.0, a, b, 0.0, target, Par::Seq) };
            assert_eq!(c, vec![1.5 * k as f64; m * n], "{m} x {n} x {k}");
        }
    }
}
