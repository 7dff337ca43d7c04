//! Columns in whole cache lines, with real and imaginary parts apart, so that arithmetic is that of vectors
//! of reals: no remainders, no shuffles.

use num_complex::Complex;

use crate::provider::Provider;
use crate::workspace::with_zeros;
use crate::{DenseError, Field, Real};

/// `N` reals.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Reals<R, const N: usize>([R; N]);

/// `N` complex numbers.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Complexes<R, const N: usize> {
    re: [R; N],
    im: [R; N],
}

/// A number with its lines. `FMA` says that the fused operation is one instruction.
pub(crate) trait Lanes: Provider {
    /// The length of a line.
    const LANES: usize;
    /// `LANES` numbers in 64 bytes, for which zero bits are zeros.
    type Line: Copy;
    /// Zeros.
    const NONE: Self::Line;

    fn get(line: &Self::Line, i: usize) -> Self;
    fn set(line: &mut Self::Line, i: usize, x: Self);
    /// sum + conj(v) c, lane by lane.
    fn dot<const FMA: bool>(sum: Self::Line, v: &Self::Line, c: &Self::Line) -> Self::Line;
    /// c - v w, lane by lane.
    fn subtract<const FMA: bool>(c: &Self::Line, v: &Self::Line, w: Self) -> Self::Line;
    /// v w, lane by lane.
    fn scaled(v: &Self::Line, w: Self) -> Self::Line;
    /// The sum of the lanes.
    fn total(sum: Self::Line) -> Self;
}

#[inline(always)]
fn multiply_add<R: Real, const FMA: bool>(a: R, b: R, c: R) -> R {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// The sum of 4, 8 or 16 numbers by halves.
#[inline(always)]
fn sum<R: Real, const N: usize>(mut x: [R; N]) -> R {
    let mut n = N;
    while n > 1 {
        n /= 2;
        for i in 0..n {
            x[i] = x[i] + x[i + n];
        }
    }
    x[0]
}

macro_rules! lanes {
    ($($r:ident $n:literal $half:literal;)*) => {$(
        impl Lanes for $r {
            const LANES: usize = $n;
            type Line = Reals<$r, $n>;
            const NONE: Self::Line = Reals([0.0; $n]);

            #[inline(always)]
            fn get(line: &Self::Line, i: usize) -> Self {
                line.0[i]
            }
            #[inline(always)]
            fn set(line: &mut Self::Line, i: usize, x: Self) {
                line.0[i] = x;
            }
            #[inline(always)]
            fn dot<const FMA: bool>(mut sum: Self::Line, v: &Self::Line, c: &Self::Line) -> Self::Line {
                for i in 0..$n {
                    sum.0[i] = multiply_add::<$r, FMA>(v.0[i], c.0[i], sum.0[i]);
                }
                sum
            }
            #[inline(always)]
            fn subtract<const FMA: bool>(c: &Self::Line, v: &Self::Line, w: Self) -> Self::Line {
                let mut y = *c;
                for i in 0..$n {
                    y.0[i] = multiply_add::<$r, FMA>(-w, v.0[i], y.0[i]);
                }
                y
            }
            #[inline(always)]
            fn scaled(v: &Self::Line, w: Self) -> Self::Line {
                Reals(v.0.map(|v| v * w))
            }
            #[inline(always)]
            fn total(line: Self::Line) -> Self {
                sum(line.0)
            }
        }

        impl Lanes for Complex<$r> {
            const LANES: usize = $half;
            type Line = Complexes<$r, $half>;
            const NONE: Self::Line = Complexes { re: [0.0; $half], im: [0.0; $half] };

            #[inline(always)]
            fn get(line: &Self::Line, i: usize) -> Self {
                Complex::new(line.re[i], line.im[i])
            }
            #[inline(always)]
            fn set(line: &mut Self::Line, i: usize, x: Self) {
                (line.re[i], line.im[i]) = (x.re, x.im);
            }
            #[inline(always)]
            fn dot<const FMA: bool>(mut sum: Self::Line, v: &Self::Line, c: &Self::Line) -> Self::Line {
                let f = multiply_add::<$r, FMA>;
                for i in 0..$half {
                    sum.re[i] = f(v.im[i], c.im[i], f(v.re[i], c.re[i], sum.re[i]));
                    sum.im[i] = f(-v.im[i], c.re[i], f(v.re[i], c.im[i], sum.im[i]));
                }
                sum
            }
            #[inline(always)]
            fn subtract<const FMA: bool>(c: &Self::Line, v: &Self::Line, w: Self) -> Self::Line {
                let f = multiply_add::<$r, FMA>;
                let mut y = *c;
                for i in 0..$half {
                    y.re[i] = f(w.im, v.im[i], f(-w.re, v.re[i], y.re[i]));
                    y.im[i] = f(-w.im, v.re[i], f(-w.re, v.im[i], y.im[i]));
                }
                y
            }
            #[inline(always)]
            fn scaled(v: &Self::Line, w: Self) -> Self::Line {
                let mut y = *v;
                for i in 0..$half {
                    y.re[i] = v.re[i] * w.re - v.im[i] * w.im;
                    y.im[i] = v.re[i] * w.im + v.im[i] * w.re;
                }
                y
            }
            #[inline(always)]
            fn total(line: Self::Line) -> Self {
                Complex::new(sum(line.re), sum(line.im))
            }
        }
    )*};
}

lanes! {
    f32 16 8;
    f64 8 4;
}

/// A matrix in lines: `height` of them for each column, zero below the last row.
pub(super) struct Columns<'a, T: Lanes> {
    pub(super) lines: &'a mut [T::Line],
    pub(super) height: usize,
}

/// The number of lines of a column.
pub(super) fn height<T: Lanes>(rows: usize) -> usize {
    rows.div_ceil(T::LANES)
}

impl<'a, T: Lanes> Columns<'a, T> {
    /// The first `count` columns of a buffer, and the rest of it.
    pub(super) fn split(lines: &'a mut [T::Line], height: usize, count: usize) -> (Self, &'a mut [T::Line]) {
        let (lines, rest) = lines.split_at_mut(height * count);
        (Columns { lines, height }, rest)
    }

    #[inline(always)]
    pub(super) fn at(&self, i: usize, j: usize) -> T {
        T::get(&self.lines[j * self.height + i / T::LANES], i % T::LANES)
    }

    #[inline(always)]
    pub(super) fn put(&mut self, i: usize, j: usize, x: T) {
        T::set(&mut self.lines[j * self.height + i / T::LANES], i % T::LANES, x);
    }

    #[inline(always)]
    pub(super) fn column(&self, j: usize) -> &[T::Line] {
        &self.lines[j * self.height..(j + 1) * self.height]
    }

    #[inline(always)]
    pub(super) fn column_mut(&mut self, j: usize) -> &mut [T::Line] {
        &mut self.lines[j * self.height..(j + 1) * self.height]
    }
}

/// Calls `f` on zero lines in this thread's workspace.
///
/// # Errors
/// `Memory`.
pub(super) fn with_lines<T: Lanes, O>(
    count: usize,
    f: impl FnOnce(&mut [T::Line]) -> O,
) -> Result<O, DenseError> {
    with_zeros::<T, _>(count.saturating_add(1).saturating_mul(T::LANES), |buffer| {
        // SAFETY: a line is an array of the reals that the numbers consist of, for which zero bits are zeros.
        let (_, lines, _) = unsafe { buffer.align_to_mut::<T::Line>() };
        f(&mut lines[..count])
    })
}

const _: () = {
    assert!(size_of::<Reals<f64, 8>>() == 64 && size_of::<Complexes<f32, 8>>() == 64);
    assert!(size_of::<Reals<f32, 16>>() == 64 && size_of::<Complexes<f64, 4>>() == 64);
};

/// The sums of the lanes. Not inlined: the compiler would choose the registers of the loops before by those
/// of the last few additions here, half as wide.
#[inline(never)]
pub(super) fn totals<T: Lanes, const N: usize>(sums: &[T::Line; N]) -> [T; N] {
    sums.map(T::total)
}

/// The sum of the squared moduli.
#[inline(always)]
pub(super) fn norm2<T: Lanes, const FMA: bool>(x: &[T::Line]) -> <T as Field>::Real {
    totals::<T, 1>(&[x.iter().fold(T::NONE, |sum, x| T::dot::<FMA>(sum, x, x))])[0].re()
}
