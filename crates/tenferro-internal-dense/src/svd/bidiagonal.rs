//! Reduction to bidiagonal form by reflections (G. Golub and W. Kahan, J. SIAM Numer. Anal. B 2 (1965)),
//! after a QR factorization if the matrix is not square.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::lines::{
    GROUP, LANES, Line, Outer, clear, get, height, line, multiply, norm2, put, reflect, scale, subtract,
};
use super::sweeps::{Turned, diagonalise, scale as iterated};
use super::{Job, OWN, balance, negligible};
use crate::householder::Reflection;
use crate::simd::{Loops, dispatch};
use crate::workspace::with_zeros;
use crate::{DenseError, Field, Real};

/// Numbers of one matrix: diagonal, factors of reflections.
type Diagonal<R> = SmallVec<[R; OWN]>;

impl<T: Field> Job<T> {
    /// By bidiagonal form; false if an iteration was given up.
    ///
    /// # Errors
    /// `Memory`.
    ///
    /// # Safety
    /// The promise of [`svd`](super::svd), or of [`svdvals`](super::svdvals).
    pub(super) unsafe fn by_bidiagonal(&self) -> Result<bool, DenseError> {
        let (rows, k) = (self.m.max(self.n), self.m.min(self.n));
        let (tall, square) = (height::<T>(rows), height::<T>(k));
        // The second half of each is for vectors.
        let vectors = usize::from(self.vectors.is_some());
        let first = if rows > k { tall * (k + vectors * GROUP) } else { 0 };
        let lines = first + square * (2 * k + 1 + vectors * 2 * k);
        with_zeros::<T::Real, _>((lines + 1) * LANES, |buffer| {
            // SAFETY: a line is an array of reals, for which zero bits are zeros.
            let (_, buffer, _) = unsafe { buffer.align_to_mut::<Line<T::Real>>() };
            let mut done = false;
            let (first, rest) = buffer[..lines].split_at_mut(first);
            let work = Work { job: self, wide: self.m < self.n, rows, k, first, rest, done: &mut done };
            // SAFETY: the caller's promise.
            unsafe { dispatch(work) };
            done
        })
    }
}

/// The task of [`Job::by_bidiagonal`]: on the tall one of A and A^H, of rows x k. `first` is for its QR
/// factorization, `rest` for the square that is left.
struct Work<'a, T: Field> {
    job: &'a Job<T>,
    wide: bool,
    rows: usize,
    k: usize,
    first: &'a mut [Line<T::Real>],
    rest: &'a mut [Line<T::Real>],
    done: &'a mut bool,
}

impl<T: Field> Loops for Work<'_, T> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(self) {
        let Work { job, wide, rows, k, first, rest, done } = self;
        let (tall, square) = (height::<T>(rows), height::<T>(k));
        let (factor, inverse) = balance(job.largest, T::Real::HEADROOM);
        let (a, rest) = rest.split_at_mut(square * k);
        let (y, rest) = rest.split_at_mut(square * k);
        let (z, rest) = rest.split_at_mut(square);
        let (u, v) = rest.split_at_mut(rest.len() / 2);
        // SAFETY: (i, j) lies in the tall one of A and A^H.
        let element = |i: usize, j: usize| unsafe { job.at(i, j, wide) }.scale(factor);
        let (q, columns) = first.split_at_mut(if rows > k { tall * k } else { 0 });
        let mut tau_q = Diagonal::<T>::new();
        if rows > k {
            for (j, q) in q.chunks_exact_mut(tall).enumerate() {
                (0..rows).for_each(|i| put(q, i, element(i, j)));
            }
            factor_qr::<T, FMA>(q, tall, a, square, &mut tau_q);
        } else {
            for (j, a) in a.chunks_exact_mut(square).enumerate() {
                (0..k).for_each(|i| put(a, i, element(i, j)));
            }
        }
        let zeros = || Diagonal::<T::Real>::from_elem(T::Real::ZERO, k);
        let (mut d, mut e) = (zeros(), zeros());
        let (mut tau_u, mut tau_v) = (Diagonal::<T>::new(), Diagonal::<T>::new());
        reduce::<T, FMA>(a, y, z, square, (&mut d, &mut e), (&mut tau_u, &mut tau_v));
        if job.vectors.is_some() {
            accumulate::<T, FMA>(a, square, &tau_u, u, 0);
            put(v, 0, T::ONE);
            accumulate::<T, FMA>(y, square, &tau_v, v, 1);
        }
        // Fourth powers of the elements are next.
        let excess = T::Real::HEADROOM - iterated::<T::Real>();
        d.iter_mut().chain(&mut e).for_each(|x| *x = *x * T::Real::power(-excess));
        if !diagonalise::<T::Real, FMA>(&mut d, &mut e, Turned { u, v, height: square }) {
            return;
        }
        let mut order = SmallVec::<[usize; OWN]>::new();
        order.extend(0..k);
        // Without allocation; unstable, but the same for the same input.
        order.sort_unstable_by(|&i, &j| d[j].abs().partial_cmp(&d[i].abs()).unwrap_or(Ordering::Equal));
        let (left, right) = if wide { (job.vh, job.u) } else { (job.u, job.vh) };
        // U of the tall matrix is Q [U; 0], with unit columns appended if it is to be square.
        let count = if job.full() { rows } else { k };
        // SAFETY: the outputs have the promised sizes. U of a wide matrix is V of the tall one and vice
        // versa.
        unsafe {
            let write_left = |j: usize, column: &[Line<T::Real>]| {
                for i in 0..rows {
                    let x: T = get(column, i);
                    if wide {
                        left.add(j + i * count).write(x.conj())
                    } else {
                        left.add(i + j * rows).write(x)
                    }
                }
            };
            for (j, &from) in order.iter().enumerate() {
                job.s.add(j).write(d[from].abs() * T::Real::power(excess) * inverse);
                if job.vectors.is_none() {
                    continue;
                }
                let column = &v[from * square..][..square];
                let negative = d[from] < T::Real::ZERO;
                for i in 0..k {
                    let x: T = get(column, i);
                    let x = if negative { -x } else { x };
                    if wide { right.add(i + j * k).write(x) } else { right.add(j + i * k).write(x.conj()) }
                }
                if rows == k {
                    write_left(j, &u[from * square..][..square]);
                }
            }
            if rows > k && job.vectors.is_some() {
                for start in (0..count).step_by(GROUP) {
                    columns.fill(Line::NONE);
                    let size = GROUP.min(count - start);
                    for (j, column) in columns.chunks_exact_mut(tall).enumerate().take(size) {
                        match order.get(start + j) {
                            Some(&from) => column[..square].copy_from_slice(&u[from * square..][..square]),
                            None => put(column, start + j, T::ONE),
                        }
                    }
                    for c in (0..k).rev() {
                        let reflector = &q[c * tall + line::<T>(c)..(c + 1) * tall];
                        reflect::<T, FMA>(reflector, tau_q[c], columns, tall, None);
                    }
                    for (j, column) in columns.chunks_exact(tall).enumerate().take(size) {
                        write_left(start + j, column);
                    }
                }
            }
        }
        *done = true;
    }
}

/// Q R in place of the tall matrix: R goes to the square `r`, the reflectors stay.
#[inline(always)]
fn factor_qr<T: Field, const FMA: bool>(
    a: &mut [Line<T::Real>],
    tall: usize,
    r: &mut [Line<T::Real>],
    square: usize,
    tau: &mut Diagonal<T>,
) {
    for (c, r) in r.chunks_exact_mut(square).enumerate() {
        let (left, right) = a.split_at_mut((c + 1) * tall);
        let column = &mut left[c * tall..];
        (0..c).for_each(|i| put(r, i, get::<T>(column, i)));
        let v = &mut column[line::<T>(c)..];
        let (beta, t) = reflector::<T, FMA>(v, c % LANES);
        put(r, c, T::real(beta));
        tau.push(t);
        reflect::<T, FMA>(v, t.conj(), right, tall, None);
    }
}

/// B = Q^H A P with a real upper bidiagonal B, of diagonal `d` and `e` beside it, and products Q and P of
/// reflections, whose vectors are left in the columns of `a` from row c on, and in those of `y` from row
/// c + 1 on. `z` is scratch of one column.
#[inline(always)]
fn reduce<T: Field, const FMA: bool>(
    a: &mut [Line<T::Real>],
    y: &mut [Line<T::Real>],
    z: &mut [Line<T::Real>],
    height: usize,
    (d, e): (&mut [T::Real], &mut [T::Real]),
    (tau_u, tau_v): (&mut Diagonal<T>, &mut Diagonal<T>),
) {
    let k = d.len();
    for c in 0..k {
        let (left, right) = a.split_at_mut((c + 1) * height);
        let start = line::<T>(c);
        let v = &mut left[c * height + start..];
        let (done, rest) = y.split_at_mut(c * height);
        // The reflection of rows of the step before, A <- A - z y^H, goes along with this step's of columns.
        let before = c.checked_sub(1).map(|c| &done[c * height..]);
        if let Some(y) = before {
            subtract::<T, FMA>(v, &z[start..], get::<T>(y, c).conj());
        }
        let (beta, tau) = reflector::<T, FMA>(v, c % LANES);
        d[c] = beta;
        tau_u.push(tau);
        if c + 1 == k {
            break;
        }
        let before = before.map(|y| Outer { z: &z[start..], y, first: c + 1 });
        reflect::<T, FMA>(v, tau.conj(), right, height, before.as_ref());
        let row = &mut rest[..height];
        for (j, column) in right.chunks_exact(height).enumerate() {
            put(row, c + 1 + j, get::<T>(column, c).conj());
        }
        let start = line::<T>(c + 1);
        let (beta, tau) = reflector::<T, FMA>(&mut row[start..], (c + 1) % LANES);
        e[c] = beta;
        tau_v.push(tau);
        let z = &mut z[start..];
        multiply::<T, FMA>(right, height, |j| tau * get::<T>(row, c + 1 + j), z);
        clear::<T>(z, (c + 1) % LANES);
    }
}

/// H = I - tau v v^H with H^H x = (beta, 0) and real beta, for the part of a column x from row `row` <
/// [`LANES`] on, which becomes v: 1 in that row and zero before. Gives beta and tau.
#[inline(always)]
fn reflector<T: Field, const FMA: bool>(x: &mut [Line<T::Real>], row: usize) -> (T::Real, T) {
    let alpha: T = get(x, row);
    clear::<T>(x, row + 1);
    let rest = norm2::<T, FMA>(x);
    let (beta, tau) = if negligible(rest) {
        x.fill(Line::NONE);
        Reflection::of_head(alpha)
    } else {
        let reflection = Reflection::new(alpha, (alpha.abs2() + rest).sqrt());
        scale(x, reflection.scale);
        (reflection.beta, reflection.tau)
    };
    put(x, row, T::ONE);
    (beta, tau)
}

/// The product of the reflections whose vectors are in the columns of `v`, from row c + `offset` on; `q` is
/// zero in the columns from `offset` on.
#[inline(always)]
fn accumulate<T: Field, const FMA: bool>(
    v: &[Line<T::Real>],
    height: usize,
    tau: &[T],
    q: &mut [Line<T::Real>],
    offset: usize,
) {
    for (c, &tau) in tau.iter().enumerate().rev() {
        let row = c + offset;
        let start = line::<T>(row);
        let v = &v[c * height + start..(c + 1) * height];
        let (left, right) = q.split_at_mut((row + 1) * height);
        reflect::<T, FMA>(v, tau, right, height, None);
        let column = &mut left[row * height + start..];
        subtract::<T, FMA>(column, v, tau);
        put(column, row % LANES, T::ONE - tau);
    }
}
