//! Householder reflections of columns in lines, one after the other.
//!
//! Squares of small numbers underflow: where the sum of squares is not safely normal, a column is brought to
//! the scale of its largest element first, so that Q is unitary whatever the scales of the columns are.

use super::lanes::{Columns, Lanes, norm2, totals};
use crate::householder::Reflection;
use crate::svd::balance;
use crate::{Field, Real};

/// Sums of squares below this may have lost digits to underflow.
#[inline(always)]
fn unsafe_sum<R: Real>(sum: R) -> bool {
    sum < R::TINY / (R::EPS * R::EPS)
}

/// `H = I - tau v v^H` with `H^H x = (beta, 0, ..)` and beta real, for the part of the column `x` from row
/// `row` on: writes v, which is 1 in that row and zero above, and gives beta and tau. H is I
/// where x is real in its first row and zero below.
#[inline(always)]
fn reflector<T: Lanes, const FMA: bool>(x: &[T::Line], v: &mut [T::Line], row: usize) -> (T::Real, T) {
    let (start, lane) = (row / T::LANES, row % T::LANES);
    let (x, v) = (&x[start..], &mut v[start..]);
    v.copy_from_slice(x);
    let alpha = T::get(&v[0], lane);
    for i in 0..=lane {
        T::set(&mut v[0], i, T::ZERO);
    }
    let tail = norm2::<T, FMA>(v);
    let (beta, tau) = if unsafe_sum(tail) {
        small_reflector(alpha, v)
    } else {
        let Reflection { beta, tau, scale } = Reflection::new(alpha, (alpha.abs2() + tail).sqrt());
        v.iter_mut().for_each(|v| *v = T::scaled(v, scale));
        (beta, tau)
    };
    T::set(&mut v[0], lane, T::ONE);
    (beta, tau)
}

/// The reflector of (`alpha`, `v`) where the squares of v are small, or zero.
#[cold]
fn small_reflector<T: Lanes>(alpha: T, v: &mut [T::Line]) -> (T::Real, T) {
    let largest = largest::<T>(v);
    if largest == T::Real::ZERO && alpha == T::real(alpha.re()) {
        return (alpha.re(), T::ZERO);
    }
    let size = alpha.abs1();
    let (factor, inverse) = balance(if size > largest { size } else { largest }, 0);
    let alpha = alpha.scale(factor);
    v.iter_mut().for_each(|v| *v = T::scaled(v, T::real(factor)));
    let norm = (alpha.abs2() + norm2::<T, false>(v)).sqrt();
    let Reflection { beta, tau, scale } = Reflection::new(alpha, norm);
    v.iter_mut().for_each(|v| *v = T::scaled(v, scale));
    (beta * inverse, tau)
}

/// The largest sum of absolute parts.
fn largest<T: Lanes>(v: &[T::Line]) -> T::Real {
    let elements = v.iter().flat_map(|v| (0..T::LANES).map(move |i| T::get(v, i).abs1()));
    elements.fold(T::Real::ZERO, |a, b| if b > a { b } else { a })
}

/// C <- (I - tau v v^H) C for the columns of C, each `height` lines, of which v has the last ones.
#[inline(always)]
fn reflect<T: Lanes, const FMA: bool>(v: &[T::Line], tau: T, c: &mut [T::Line], height: usize) {
    if tau == T::ZERO {
        return;
    }
    let start = height - v.len();
    let mut groups = c.chunks_exact_mut(4 * height);
    for group in &mut groups {
        let (left, right) = group.split_at_mut(2 * height);
        let ((p, q), (r, s)) = (left.split_at_mut(height), right.split_at_mut(height));
        reflect_group::<T, FMA, 4>(
            v,
            tau,
            [&mut p[start..], &mut q[start..], &mut r[start..], &mut s[start..]],
        );
    }
    for column in groups.into_remainder().chunks_exact_mut(height) {
        reflect_group::<T, FMA, 1>(v, tau, [&mut column[start..]]);
    }
}

#[inline(always)]
fn reflect_group<T: Lanes, const FMA: bool, const N: usize>(
    v: &[T::Line],
    tau: T,
    columns: [&mut [T::Line]; N],
) {
    let columns = columns.map(|c| &mut c[..v.len()]);
    let mut sums = [T::NONE; N];
    for i in 0..v.len() {
        for k in 0..N {
            sums[k] = T::dot::<FMA>(sums[k], &v[i], &columns[k][i]);
        }
    }
    let weights = totals::<T, N>(&sums).map(|sum| tau * sum);
    for i in 0..v.len() {
        for k in 0..N {
            columns[k][i] = T::subtract::<FMA>(&columns[k][i], &v[i], weights[k]);
        }
    }
}

/// `A = Q R` in place: R on and above the diagonal of `a`, whose rest is left undefined; the reflectors in
/// `v`, which is zero before, and `tau`.
#[inline(always)]
pub(super) fn factor<T: Lanes, const FMA: bool>(a: &mut Columns<T>, v: &mut Columns<T>, tau: &mut [T]) {
    for (j, tau) in tau.iter_mut().enumerate() {
        eliminate::<T, FMA>(a, v, j, tau);
    }
}

/// Step j: the reflector of column j, applied to what is right of it.
#[inline(always)]
fn eliminate<T: Lanes, const FMA: bool>(a: &mut Columns<T>, v: &mut Columns<T>, j: usize, tau: &mut T) {
    let height = a.height;
    let (done, rest) = a.lines.split_at_mut((j + 1) * height);
    let (x, v) = (&mut done[j * height..], v.column_mut(j));
    let (beta, t) = reflector::<T, FMA>(x, v, j);
    *tau = t;
    T::set(&mut x[j / T::LANES], j % T::LANES, T::real(beta));
    reflect::<T, FMA>(&v[j / T::LANES..], t.conj(), rest, height);
}

/// The exchanged columns of [`factor_pivoted`], and workspace of as many elements.
pub(super) struct Pivoting<'a, R> {
    pub(super) perm: &'a mut [i32],
    /// The length of each column from row j on, and when it was last computed from the elements.
    pub(super) lengths: &'a mut [(R, R)],
}

/// As [`factor`], each step with the longest of the remaining columns, `perm` permuted along with them.
/// Lengths are updated, and computed anew where too many digits have cancelled (Z. Drmac and Z. Bujanovic,
/// ACM Trans. Math. Softw. 35 (2008), as in LAPACK xLAQP2).
#[inline(always)]
pub(super) fn factor_pivoted<T: Lanes, const FMA: bool>(
    a: &mut Columns<T>,
    v: &mut Columns<T>,
    tau: &mut [T],
    Pivoting { perm, lengths }: Pivoting<T::Real>,
    rows: usize,
) {
    let (zero, one) = (T::Real::ZERO, T::Real::ONE);
    for (c, lengths) in lengths.iter_mut().enumerate() {
        let length = length::<T, FMA>(a.column(c), 0);
        *lengths = (length, length);
    }
    let (height, cancelled) = (a.height, T::Real::EPS.sqrt());
    for (j, tau) in tau.iter_mut().enumerate() {
        let longest = (j..perm.len()).fold(j, |p, c| if lengths[c].0 > lengths[p].0 { c } else { p });
        if longest != j {
            let (left, right) = a.lines.split_at_mut(longest * height);
            left[j * height..][..height].swap_with_slice(&mut right[..height]);
            perm.swap(j, longest);
            lengths.swap(j, longest);
        }
        eliminate::<T, FMA>(a, v, j, tau);
        for (c, length_of) in lengths.iter_mut().enumerate().skip(j + 1) {
            let (now, computed) = *length_of;
            if now == zero {
                continue;
            }
            let gone = a.at(j, c).abs() / now;
            let left = (one - gone) * (one + gone);
            let left = if left > zero { left } else { zero };
            let ratio = now / computed;
            *length_of = if left * (ratio * ratio) > cancelled {
                (now * left.sqrt(), computed)
            } else if j + 1 < rows {
                let new = length::<T, FMA>(a.column(c), j + 1);
                (new, new)
            } else {
                (zero, zero)
            };
        }
    }
}

/// The length of the column from `row` on.
#[inline(always)]
fn length<T: Lanes, const FMA: bool>(x: &[T::Line], row: usize) -> T::Real {
    let (start, lane) = (row / T::LANES, row % T::LANES);
    let Some((first, rest)) = x[start..].split_first() else { return T::Real::ZERO };
    let mut first = *first;
    for i in 0..lane {
        T::set(&mut first, i, T::ZERO);
    }
    let sum = norm2::<T, FMA>(&[first]) + norm2::<T, FMA>(rest);
    if unsafe_sum(sum) { small_length::<T>(first, rest) } else { sum.sqrt() }
}

#[cold]
fn small_length<T: Lanes>(first: T::Line, rest: &[T::Line]) -> T::Real {
    let (a, b) = (largest::<T>(&[first]), largest::<T>(rest));
    let (factor, inverse) = balance(if a > b { a } else { b }, 0);
    let square = |x: &T::Line| norm2::<T, false>(&[T::scaled(x, T::real(factor))]);
    rest.iter().fold(square(&first), |sum, x| sum + square(x)).sqrt() * inverse
}

/// The first columns of `H_1 .. H_k`, as many as `q` has, which is zero before.
#[inline(always)]
pub(super) fn product<T: Lanes, const FMA: bool>(v: &Columns<T>, tau: &[T], q: &mut Columns<T>) {
    let (k, height) = (tau.len(), q.height);
    for j in k..q.lines.len().checked_div(height).unwrap_or(0) {
        q.put(j, j, T::ONE);
    }
    for (j, &tau) in tau.iter().enumerate().rev() {
        let start = j / T::LANES;
        let v = &v.column(j)[start..];
        let (done, rest) = q.lines.split_at_mut((j + 1) * height);
        reflect::<T, FMA>(v, tau, rest, height);
        let column = &mut done[j * height + start..];
        for (q, v) in column.iter_mut().zip(v) {
            *q = T::scaled(v, -tau);
        }
        T::set(&mut column[0], j % T::LANES, T::ONE - tau);
    }
}

/// C <- Q C, or Q^H C if `adjoint`, with `Q = H_1 .. H_k`.
#[inline(always)]
pub(super) fn apply<T: Lanes, const FMA: bool>(v: &Columns<T>, tau: &[T], adjoint: bool, c: &mut Columns<T>) {
    let k = tau.len();
    for step in 0..k {
        let j = if adjoint { step } else { k - 1 - step };
        let t = if adjoint { tau[j].conj() } else { tau[j] };
        reflect::<T, FMA>(&v.column(j)[j / T::LANES..], t, c.lines, c.height);
    }
}
