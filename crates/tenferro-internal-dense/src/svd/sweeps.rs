//! The implicit QR iteration on a real bidiagonal matrix (J. Demmel and W. Kahan, SIAM J. Sci. Stat. Comput.
//! 11 (1990)).

use super::lines::{Line, multiply_add, rotate};
use super::negligible;
use crate::Real;

/// The exponent of numbers whose fourth powers are safely within the range.
pub(super) const fn scale<R: Real>() -> i32 {
    R::HEADROOM * 2 / 5
}

/// Columns that are turned along with the bidiagonal matrix B: B stays U^H A V. None if they are empty.
pub(super) struct Turned<'a, R> {
    pub(super) u: &'a mut [Line<R>],
    pub(super) v: &'a mut [Line<R>],
    pub(super) height: usize,
}

/// Diagonalises the upper bidiagonal matrix with the diagonal `d`, whose signs remain, and `e` beside it;
/// false if too many sweeps were needed. Its largest element is near 2^`scale`.
#[inline(always)]
pub(super) fn diagonalise<R: Real, const FMA: bool>(d: &mut [R], e: &mut [R], turned: Turned<R>) -> bool {
    let Turned { u, v, height } = turned;
    // About 1.7 are needed for each singular value; the bound only guards against cycling on rounding errors.
    let mut left = 40 * d.len();
    let mut high = d.len() - 1;
    // The last block, and whether it is swept upwards.
    let (mut block, mut upwards) = ((usize::MAX, 0), false);
    while high > 0 {
        let (mut least, mut most) = (d[high].abs(), d[high].abs());
        let mut low = high;
        while low > 0 {
            let (beside, above) = (e[low - 1].abs(), d[low - 1].abs());
            let below = d[low].abs();
            let smaller = if above < below { above } else { below };
            if beside <= R::EPS * smaller || negligible(beside * beside) {
                e[low - 1] = R::ZERO;
                break;
            }
            least = if above < least { above } else { least };
            most = if above > most { above } else { most };
            most = if beside > most { beside } else { most };
            low -= 1;
        }
        if low == high {
            high -= 1;
            continue;
        }
        if left == 0 {
            return false;
        }
        left -= 1;
        // From large elements to small ones, which then converge at the end; decided once for each block.
        if low > block.1 || high < block.0 {
            upwards = d[low].abs() < d[high].abs();
        }
        block = (low, high);
        let (u, v) = if upwards { (&mut *v, &mut *u) } else { (&mut *u, &mut *v) };
        let mut sweep = Sweep { d, e, u, v, height, low, high, upwards };
        let shift = sweep.shift();
        let smallest = if least < shift { least } else { shift };
        if smallest <= R::of(SHIFT) * most {
            sweep.without_shift::<FMA>();
        } else {
            sweep.with_shift::<FMA>(shift);
        }
    }
    true
}

/// Bounds of the smallest singular value of a block, relative to its largest element, up to which a shift
/// would cost digits of the small singular values.
const SHIFT: f64 = 1e-3;

/// The block from `low` to `high`. Reversed and transposed, an upper bidiagonal matrix is upper bidiagonal
/// again, so that a sweep upwards is one downwards with U and V exchanged and indices counted from the end.
struct Sweep<'a, R> {
    d: &'a mut [R],
    e: &'a mut [R],
    u: &'a mut [Line<R>],
    v: &'a mut [Line<R>],
    height: usize,
    low: usize,
    high: usize,
    upwards: bool,
}

impl<R: Real> Sweep<'_, R> {
    #[inline(always)]
    fn at(&self, i: usize) -> usize {
        if self.upwards { self.high - i } else { self.low + i }
    }

    /// Where in `e` the element between the diagonal's i and i + 1 is.
    #[inline(always)]
    fn beside(&self, i: usize) -> usize {
        if self.upwards { self.high - i - 1 } else { self.low + i }
    }

    /// The smaller singular value of the last 2 x 2 block (LAPACK xLAS2).
    #[inline(always)]
    fn shift(&self) -> R {
        let last = self.high - self.low;
        let (f, g, h) = (self.d[self.at(last - 1)], self.e[self.beside(last - 1)], self.d[self.at(last)]);
        let (f, g, h) = (f.abs(), g.abs(), h.abs());
        let (least, most) = if f < h { (f, h) } else { (h, f) };
        if least == R::ZERO {
            return R::ZERO;
        }
        let (one, two) = (R::ONE, R::of(2.0));
        let sum = one + least / most;
        let difference = (most - least) / most;
        if g < most {
            let square = (g / most) * (g / most);
            let c = two / ((sum * sum + square).sqrt() + (difference * difference + square).sqrt());
            least * c
        } else {
            let ratio = most / g;
            let (s, t) = (sum * ratio, difference * ratio);
            let c = one / ((one + s * s).sqrt() + (one + t * t).sqrt());
            two * (least * c) * ratio
        }
    }

    /// Turns columns of V and of U in the plane of i and i + 1.
    #[inline(always)]
    fn turn<const FMA: bool>(&mut self, i: usize, right: (R, R), left: (R, R)) {
        if self.u.is_empty() {
            return;
        }
        let (p, q) = (self.at(i), self.at(i + 1));
        let h = self.height;
        let (one, half, fma) = (R::ONE, R::of(0.5), multiply_add::<R, FMA>);
        for (m, (c, s)) in [(&mut *self.v, right), (&mut *self.u, left)] {
            // One Newton step to c^2 + s^2 = 1: rounding errors of many rotations add up.
            let off = fma(-c, c, fma(-s, s, one)) * half;
            let (c, s) = (fma(c, off, c), fma(s, off, s));
            let low = if p < q { p } else { q };
            let (a, b) = m[low * h..(low + 2) * h].split_at_mut(h);
            if p < q { rotate::<R, FMA>(a, b, c, s) } else { rotate::<R, FMA>(b, a, c, s) }
        }
    }

    /// One QR step with the shift, from the first row to the last.
    #[inline(always)]
    fn with_shift<const FMA: bool>(&mut self, shift: R) {
        let fma = multiply_add::<R, FMA>;
        let count = self.high - self.low;
        let first = self.d[self.at(0)];
        let mut f = (first.abs() - shift) * (R::ONE.copysign(first) + shift / first);
        let mut g = self.e[self.beside(0)];
        let (mut d, mut e) = (first, g);
        for i in 0..count {
            let next = self.d[self.at(i + 1)];
            let beyond = if i + 1 < count { self.e[self.beside(i + 1)] } else { R::ZERO };
            // The rotation of columns makes (f, g) into (r, 0); the one of rows annihilates what it brings
            // below the diagonal. Lengths are divided out last, so that the two roots do not wait for each
            // other.
            let (down, right) = (fma(f, d, g * e), fma(f, e, -(g * d)));
            let (below, corner) = (g * next, f * next);
            let (of_columns, of_rows) = (fma(f, f, g * g), fma(down, down, below * below));
            let (turn_v, turn_u, r);
            if negligible(of_columns) || negligible(of_rows) {
                let (c, s, length) = rotation::<R, FMA>(f, g);
                (turn_v, r) = ((c, s), length);
                (f, g) = (fma(c, d, s * e), s * next);
                (e, d) = (fma(c, e, -(s * d)), c * next);
                let (c, s, length) = rotation::<R, FMA>(f, g);
                turn_u = (c, s);
                let at = self.at(i);
                self.d[at] = length;
                (f, d) = (fma(c, e, s * d), fma(c, d, -(s * e)));
                (g, e) = (s * beyond, c * beyond);
            } else {
                let length = of_rows.sqrt();
                r = of_columns.sqrt();
                let (a, b) = (r * (R::ONE / of_columns), length * (R::ONE / of_rows));
                let (c, s) = (down * b, below * b);
                (turn_v, turn_u) = ((f * a, g * a), (c, s));
                let at = self.at(i);
                self.d[at] = a * length;
                let scale = a * b;
                (g, e) = (s * beyond, c * beyond);
                f = fma(down, right, below * corner) * scale;
                d = fma(down, corner, -(below * right)) * scale;
            }
            if i > 0 {
                let at = self.beside(i - 1);
                self.e[at] = r;
            }
            self.turn::<FMA>(i, turn_v, turn_u);
        }
        let (at, beside) = (self.at(count), self.beside(count - 1));
        self.d[at] = d;
        self.e[beside] = f;
    }

    /// One step of Demmel and Kahan's QR without shift, in which no digits cancel.
    #[inline(always)]
    fn without_shift<const FMA: bool>(&mut self) {
        let count = self.high - self.low;
        let (mut c, mut c_u, mut s_u) = (R::ONE, R::ONE, R::ZERO);
        for i in 0..count {
            let (at, beside) = (self.at(i), self.beside(i));
            let (c_v, s_v, r) = rotation::<R, FMA>(self.d[at] * c, self.e[beside]);
            if i > 0 {
                let before = self.beside(i - 1);
                self.e[before] = s_u * r;
            }
            let next = self.d[self.at(i + 1)] * s_v;
            (c_u, s_u, self.d[at]) = rotation::<R, FMA>(c_u * r, next);
            c = c_v;
            self.turn::<FMA>(i, (c_v, s_v), (c_u, s_u));
        }
        let (at, beside) = (self.at(count), self.beside(count - 1));
        let h = self.d[at] * c;
        self.d[at] = h * c_u;
        self.e[beside] = h * s_u;
    }
}

/// (c, s, r) with c f + s g = r and c g = s f.
#[inline(always)]
fn rotation<R: Real, const FMA: bool>(f: R, g: R) -> (R, R, R) {
    let square = multiply_add::<R, FMA>(f, f, g * g);
    if negligible(square) {
        return (R::ONE, R::ZERO, f);
    }
    // The root and the quotient do not wait for each other.
    let r = square.sqrt();
    let inverse = r * (R::ONE / square);
    (f * inverse, g * inverse, r)
}
