//! Columns in lines of eight numbers, with real and imaginary parts in turn, so that arithmetic is that of
//! vectors of reals: no remainders, no shuffles.

use crate::{Field, Real};

/// Numbers of a line.
pub(super) const LANES: usize = 8;

/// Eight reals. A column is a sequence of these, zero after the last row; of complex columns, a line of
/// imaginary parts follows each line of real parts.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct Line<R>(pub(super) [R; LANES]);

/// The number of lines in which eight numbers are stored.
pub(super) const fn parts<T: Field>() -> usize {
    if T::COMPLEX { 2 } else { 1 }
}

/// The number of lines of a column.
pub(super) fn height<T: Field>(rows: usize) -> usize {
    rows.div_ceil(LANES) * parts::<T>()
}

/// Where in a column the line with this row begins.
#[inline(always)]
pub(super) fn line<T: Field>(row: usize) -> usize {
    row / LANES * parts::<T>()
}

#[inline(always)]
fn im<T: Field>(x: T) -> T::Real {
    // SAFETY: a complex number is an array of its two parts.
    if T::COMPLEX { unsafe { *(&raw const x).cast::<T::Real>().add(1) } } else { T::Real::ZERO }
}

#[inline(always)]
fn number<T: Field>(re: T::Real, im: T::Real) -> T {
    // SAFETY: a complex number is an array of its two parts.
    if T::COMPLEX { unsafe { std::mem::transmute_copy(&[re, im]) } } else { T::real(re) }
}

/// The element of a column in this row.
#[inline(always)]
pub(super) fn get<T: Field>(x: &[Line<T::Real>], row: usize) -> T {
    let (at, lane) = (line::<T>(row), row % LANES);
    number(x[at].0[lane], if T::COMPLEX { x[at + 1].0[lane] } else { T::Real::ZERO })
}

#[inline(always)]
pub(super) fn put<T: Field>(x: &mut [Line<T::Real>], row: usize, to: T) {
    let (at, lane) = (line::<T>(row), row % LANES);
    x[at].0[lane] = to.re();
    if T::COMPLEX {
        x[at + 1].0[lane] = im(to);
    }
}

/// Zeros before this row, in the first line of the column.
#[inline(always)]
pub(super) fn clear<T: Field>(x: &mut [Line<T::Real>], row: usize) {
    for x in &mut x[..parts::<T>()] {
        x.0[..row].fill(T::Real::ZERO);
    }
}

/// a b + c; `FMA` says that the fused operation is one instruction.
#[inline(always)]
pub(super) fn multiply_add<R: Real, const FMA: bool>(a: R, b: R, c: R) -> R {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

impl<R: Real> Line<R> {
    pub(super) const NONE: Self = Line([R::ZERO; LANES]);

    /// self + a w.
    #[inline(always)]
    fn plus<const FMA: bool>(mut self, a: &Self, w: R) -> Self {
        for i in 0..LANES {
            self.0[i] = multiply_add::<R, FMA>(a.0[i], w, self.0[i]);
        }
        self
    }

    /// self + a b.
    #[inline(always)]
    fn plus_each<const FMA: bool>(mut self, a: &Self, b: &Self) -> Self {
        for i in 0..LANES {
            self.0[i] = multiply_add::<R, FMA>(a.0[i], b.0[i], self.0[i]);
        }
        self
    }

    /// self - a b.
    #[inline(always)]
    fn minus_each<const FMA: bool>(mut self, a: &Self, b: &Self) -> Self {
        for i in 0..LANES {
            self.0[i] = multiply_add::<R, FMA>(-a.0[i], b.0[i], self.0[i]);
        }
        self
    }

    #[inline(always)]
    fn scaled(mut self, w: R) -> Self {
        for x in &mut self.0 {
            *x = *x * w;
        }
        self
    }

    #[inline(always)]
    fn total(&self) -> R {
        let [a, b, c, d, e, f, g, h] = self.0;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }
}

/// x <- x + v w.
#[inline(always)]
fn add_multiple<T: Field, const FMA: bool>(
    x: &mut [Line<T::Real>],
    v: &[Line<T::Real>],
    (re, im): (T::Real, T::Real),
) {
    if T::COMPLEX {
        let (r, i) = (x[0], x[1]);
        x[0] = r.plus::<FMA>(&v[0], re).plus::<FMA>(&v[1], -im);
        x[1] = i.plus::<FMA>(&v[0], im).plus::<FMA>(&v[1], re);
    } else {
        x[0] = x[0].plus::<FMA>(&v[0], re);
    }
}

/// The sums of the lanes. Not inlined: the compiler would choose the registers of the loops before by those
/// of the few additions here, half as wide.
#[inline(never)]
fn totals<T: Field, const N: usize>(sums: &[[Line<T::Real>; 2]; N]) -> [T; N] {
    sums.map(|[re, im]| number(re.total(), if T::COMPLEX { im.total() } else { T::Real::ZERO }))
}

/// sum + conj(v) c.
#[inline(always)]
fn accumulate<T: Field, const FMA: bool>(
    sum: &mut [Line<T::Real>; 2],
    v: &[Line<T::Real>],
    c: &[Line<T::Real>],
) {
    sum[0] = sum[0].plus_each::<FMA>(&v[0], &c[0]);
    if T::COMPLEX {
        sum[0] = sum[0].plus_each::<FMA>(&v[1], &c[1]);
        sum[1] = sum[1].plus_each::<FMA>(&v[0], &c[1]).minus_each::<FMA>(&v[1], &c[0]);
    }
}

/// The squared length.
#[inline(always)]
pub(super) fn norm2<T: Field, const FMA: bool>(x: &[Line<T::Real>]) -> T::Real {
    let mut sums = [Line::NONE; 2];
    for x in x {
        sums[0] = sums[0].plus_each::<FMA>(x, x);
    }
    totals::<T, 1>(&[sums])[0].re()
}

/// x w.
#[inline(always)]
pub(super) fn scale<T: Field>(x: &mut [Line<T::Real>], w: T) {
    let (re, im) = (w.re(), im(w));
    for x in x.chunks_exact_mut(parts::<T>()) {
        if T::COMPLEX {
            let (r, i) = (x[0], x[1]);
            x[0] = r.scaled(re).plus::<false>(&i, -im);
            x[1] = i.scaled(re).plus::<false>(&r, im);
        } else {
            x[0] = x[0].scaled(re);
        }
    }
}

/// x <- x - v w.
#[inline(always)]
pub(super) fn subtract<T: Field, const FMA: bool>(x: &mut [Line<T::Real>], v: &[Line<T::Real>], w: T) {
    let w = (-w.re(), -im(w));
    let p = parts::<T>();
    for (x, v) in x.chunks_exact_mut(p).zip(v.chunks_exact(p)) {
        add_multiple::<T, FMA>(x, v, w);
    }
}

/// Columns that are worked on at once.
pub(super) const GROUP: usize = 4;

/// z y^H, with the elements of y from row `first` on, and in z the last lines of its columns.
pub(super) struct Outer<'a, T: Field> {
    pub(super) z: &'a [Line<T::Real>],
    pub(super) y: &'a [Line<T::Real>],
    pub(super) first: usize,
}

/// C <- (I - tau v v^H) (C - `before`) for columns of `height` lines, of which v has the last ones.
#[inline(always)]
pub(super) fn reflect<T: Field, const FMA: bool>(
    v: &[Line<T::Real>],
    tau: T,
    c: &mut [Line<T::Real>],
    height: usize,
    before: Option<&Outer<T>>,
) {
    let start = height - v.len();
    let mut groups = c.chunks_exact_mut(GROUP * height);
    let mut first = 0;
    for group in &mut groups {
        let (left, right) = group.split_at_mut(2 * height);
        let ((p, q), (r, s)) = (left.split_at_mut(height), right.split_at_mut(height));
        let columns = [&mut p[start..], &mut q[start..], &mut r[start..], &mut s[start..]];
        reflect_group::<T, FMA, GROUP>(v, tau, columns, before, first);
        first += GROUP;
    }
    for column in groups.into_remainder().chunks_exact_mut(height) {
        reflect_group::<T, FMA, 1>(v, tau, [&mut column[start..]], before, first);
        first += 1;
    }
}

#[inline(always)]
fn reflect_group<T: Field, const FMA: bool, const N: usize>(
    v: &[Line<T::Real>],
    tau: T,
    columns: [&mut [Line<T::Real>]; N],
    before: Option<&Outer<T>>,
    first: usize,
) {
    let p = parts::<T>();
    let columns = columns.map(|c| &mut c[..v.len()]);
    let mut sums = [[Line::NONE; 2]; N];
    if let Some(outer) = before {
        let z = &outer.z[..v.len()];
        let y: [T; N] = std::array::from_fn(|k| -get::<T>(outer.y, outer.first + first + k).conj());
        let y = y.map(|y| (y.re(), im(y)));
        for i in (0..v.len()).step_by(p) {
            for k in 0..N {
                let c = &mut columns[k][i..i + p];
                add_multiple::<T, FMA>(c, &z[i..i + p], y[k]);
                accumulate::<T, FMA>(&mut sums[k], &v[i..i + p], c);
            }
        }
    } else {
        for i in (0..v.len()).step_by(p) {
            for k in 0..N {
                accumulate::<T, FMA>(&mut sums[k], &v[i..i + p], &columns[k][i..i + p]);
            }
        }
    }
    let weights = totals::<T, N>(&sums).map(|sum| -(tau * sum)).map(|w| (w.re(), im(w)));
    for i in (0..v.len()).step_by(p) {
        for k in 0..N {
            add_multiple::<T, FMA>(&mut columns[k][i..i + p], &v[i..i + p], weights[k]);
        }
    }
}

/// z <- A y for columns of `height` lines, of which z has the last ones.
#[inline(always)]
pub(super) fn multiply<T: Field, const FMA: bool>(
    a: &[Line<T::Real>],
    height: usize,
    y: impl Fn(usize) -> T,
    z: &mut [Line<T::Real>],
) {
    let (start, p) = (height - z.len(), parts::<T>());
    z.fill(Line::NONE);
    let mut first = 0;
    let groups = a.chunks_exact(GROUP * height);
    let rest = groups.remainder();
    for group in groups {
        let columns: [_; GROUP] = std::array::from_fn(|k| &group[k * height + start..][..z.len()]);
        let y: [T; GROUP] = std::array::from_fn(|k| y(first + k));
        let y = y.map(|y| (y.re(), im(y)));
        for i in (0..z.len()).step_by(p) {
            for k in 0..GROUP {
                add_multiple::<T, FMA>(&mut z[i..i + p], &columns[k][i..i + p], y[k]);
            }
        }
        first += GROUP;
    }
    for column in rest.chunks_exact(height) {
        subtract::<T, FMA>(z, &column[start..], -y(first));
        first += 1;
    }
}

/// The numbers of these lines.
#[inline(always)]
pub(super) fn flat<R>(x: &mut [Line<R>]) -> &mut [R] {
    // SAFETY: lines are arrays without gaps.
    unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), x.len() * LANES) }
}

/// (x, y) <- (c x + s y, c y - s x).
#[inline(always)]
pub(super) fn rotate<R: Real, const FMA: bool>(x: &mut [Line<R>], y: &mut [Line<R>], c: R, s: R) {
    for (x, y) in flat(x).iter_mut().zip(flat(y)) {
        let (a, b) = (*x, *y);
        *x = multiply_add::<R, FMA>(s, b, c * a);
        *y = multiply_add::<R, FMA>(-s, a, c * b);
    }
}
