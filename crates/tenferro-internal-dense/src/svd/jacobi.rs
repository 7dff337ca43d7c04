//! One-sided Jacobi after a pivoted QR factorization; its iteration never fails.

// Index loops over several columns at once are clearer than zipped iterators here.
#![allow(clippy::needless_range_loop)]

use std::cmp::Ordering;

use super::{Job, balance, negligible};
use crate::householder::Reflection;
use crate::simd::{Loops, dispatch};
use crate::workspace::{filled, total, with_zeros};
use crate::{DenseError, Field, Real};

impl<T: Field> Job<T> {
    /// By Jacobi on the triangular factor; succeeds whenever there is memory.
    ///
    /// # Errors
    /// `Memory`.
    ///
    /// # Safety
    /// The promise of [`svd`](super::svd), or of [`svdvals`](super::svdvals).
    pub(super) unsafe fn by_jacobi(&self) -> Result<(), DenseError> {
        let wide = self.m < self.n;
        let (rows, k) = (self.m.max(self.n), self.m.min(self.n));
        // Not zero even for an empty matrix, which has no columns of this length.
        let ld = k.max(1).next_multiple_of(4);
        let (mut permutation, mut norms) = (filled([k], 0u32)?, filled([k], T::Real::ZERO)?);
        let lists = (&mut permutation[..], &mut norms[..]);
        let sides = if self.vectors.is_some() { 2 } else { 1 };
        with_zeros::<T, _>(total([(rows, k), (sides * ld, k), (2, k), (1, rows)]), |buffer| {
            // SAFETY: the caller's promise.
            unsafe { dispatch(Jacobi { job: self, buffer, lists, shape: (rows, k), wide, ld }) };
        })
    }

    /// Works on the tall one of A and A^H, of rows x k:
    /// A P = Q R, R^H W = X diag(s), so A = (Q W) diag(s) (P X)^H. Without vectors, W is left out.
    ///
    /// # Safety
    /// The promise of [`svd`](super::svd), or of [`svdvals`](super::svdvals); `buffer` is zero and large enough.
    #[inline(always)]
    unsafe fn jacobi<const LD: usize>(
        &self,
        buffer: &mut [T],
        (permutation, norms): (&mut [u32], &mut [T::Real]),
        (rows, k): (usize, usize),
        wide: bool,
        ld: usize,
    ) {
        let ld = if LD > 0 { LD } else { ld };
        let (factor, inverse) = balance(self.largest, T::Real::HEADROOM);
        let (qr, buffer) = buffer.split_at_mut(rows * k);
        let (x, buffer) = buffer.split_at_mut(ld * k);
        let (w, buffer) = buffer.split_at_mut(if self.vectors.is_some() { ld * k } else { 0 });
        let (tau, buffer) = buffer.split_at_mut(k);
        let (values, z) = buffer.split_at_mut(k);
        permutation.iter_mut().zip(0..).for_each(|(p, i)| *p = i);
        for j in 0..k {
            for i in 0..rows {
                // SAFETY: (i, j) lies in the tall one of A and A^H.
                qr[i + j * rows] = unsafe { self.at(i, j, wide) }.scale(factor);
            }
        }
        pivoted_qr(qr, rows, tau, permutation);
        for j in 0..k {
            for i in 0..=j {
                x[j + i * ld] = qr[i + j * rows].conj();
            }
        }
        orthogonalise(x, w, ld, norms);
        if self.vectors.is_none() {
            // SAFETY: the caller's promise.
            return unsafe { self.write_lengths(x, norms, ld, inverse) };
        }
        sort_and_normalise(x, w, values, ld);
        // U of the tall matrix is Q [W; 0], with unit columns appended to W if it is to be square.
        let columns = if self.full() { rows } else { k };
        let (left, right) = if wide { (self.vh, self.u) } else { (self.u, self.vh) };
        // SAFETY: the outputs have the promised sizes. U of a wide matrix is P X and its Vh is (Q W)^H.
        unsafe {
            for (j, v) in values.iter().enumerate() {
                self.s.add(j).write(v.re() * inverse);
            }
            for j in 0..k {
                for (i, &p) in permutation.iter().enumerate() {
                    let z = x[i + j * ld];
                    let p = p as usize;
                    if wide { right.add(p + j * k).write(z) } else { right.add(j + p * k).write(z.conj()) }
                }
            }
            // Q is applied to contiguous columns; for a wide matrix these go to the rows of Vh afterwards.
            if wide {
                for j in 0..columns {
                    apply(qr, tau, (w, ld), j, z);
                    for (i, z) in z.iter().enumerate() {
                        left.add(j + i * columns).write(z.conj());
                    }
                }
            } else {
                for j in 0..columns {
                    let column = left.add(j * rows);
                    column.write_bytes(0, rows);
                    apply(qr, tau, (w, ld), j, std::slice::from_raw_parts_mut(column, rows));
                }
            }
        }
    }
}

impl<T: Field> Job<T> {
    /// The lengths of the orthogonal columns of X, descending, times `factor`; see [`sort_and_normalise`].
    ///
    /// # Safety
    /// The promise of [`svdvals`](super::svdvals).
    #[inline(always)]
    unsafe fn write_lengths(&self, x: &[T], lengths: &mut [T::Real], ld: usize, factor: T::Real) {
        for (length, x) in lengths.iter_mut().zip(x.chunks_exact(ld)) {
            *length = length_of(x);
        }
        lengths.sort_unstable_by(|a, b| b.partial_cmp(a).unwrap_or(Ordering::Equal));
        for (j, &length) in lengths.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { self.s.add(j).write(length * factor) };
        }
    }
}

/// The length of a vector, and 0 where its squares underflow.
#[inline(always)]
fn length_of<T: Field>(x: &[T]) -> T::Real {
    let square = norm2(x);
    if negligible(square) { T::Real::ZERO } else { square.sqrt() }
}

/// The task of [`Job::by_jacobi`].
struct Jacobi<'a, T: Field> {
    job: &'a Job<T>,
    buffer: &'a mut [T],
    lists: (&'a mut [u32], &'a mut [T::Real]),
    shape: (usize, usize),
    wide: bool,
    ld: usize,
}

impl<T: Field> Loops for Jacobi<'_, T> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(self) {
        let Jacobi { job, buffer, lists, shape, wide, ld } = self;
        // SAFETY: the caller's promise.
        unsafe {
            match ld {
                4 => job.jacobi::<4>(buffer, lists, shape, wide, ld),
                8 => job.jacobi::<8>(buffer, lists, shape, wide, ld),
                _ => job.jacobi::<0>(buffer, lists, shape, wide, ld),
            }
        }
    }
}

/// z <- Q [W; 0] e_j, or the unit vector Q e_j for the columns that W does not have.
#[inline(always)]
fn apply<T: Field>(qr: &[T], tau: &[T], (w, ld): (&[T], usize), j: usize, z: &mut [T]) {
    let (rows, k) = (z.len(), tau.len());
    z.fill(T::ZERO);
    if j < k {
        z[..k].copy_from_slice(&w[j * ld..j * ld + k]);
    } else {
        z[j] = T::ONE;
    }
    for c in (0..k).rev() {
        reflect(&qr[c * rows + c + 1..(c + 1) * rows], tau[c], &mut z[c..]);
    }
}

/// y <- (I - tau v v^H) y with v = (1, `tail`).
#[inline(always)]
fn reflect<T: Field>(tail: &[T], tau: T, y: &mut [T]) {
    if tau == T::ZERO {
        return;
    }
    let (head, y) = y.split_first_mut().expect("v has a first element");
    let weight = tau * (*head + dot(tail, y));
    *head = *head - weight;
    for (y, &v) in y.iter_mut().zip(tail) {
        *y = *y - v * weight;
    }
}

/// x^H y, in four interleaved sums, which the compiler keeps in one register.
#[inline(always)]
pub(crate) fn dot<T: Field>(x: &[T], y: &[T]) -> T {
    let mut sums = [T::ZERO; 4];
    let (xs, ys) = (x.chunks_exact(4), y.chunks_exact(4));
    let rest = xs.remainder().iter().zip(ys.remainder());
    let rest = rest.fold(T::ZERO, |sum, (x, &y)| sum + x.conj() * y);
    for (x, y) in xs.zip(ys) {
        for l in 0..4 {
            sums[l] = sums[l] + x[l].conj() * y[l];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

#[inline(always)]
pub(crate) fn norm2<T: Field>(x: &[T]) -> T::Real {
    let mut sums = [T::Real::ZERO; 4];
    let chunks = x.chunks_exact(4);
    let rest = chunks.remainder().iter().fold(T::Real::ZERO, |sum, x| sum + x.abs2());
    for x in chunks {
        for l in 0..4 {
            sums[l] = sums[l] + x[l].abs2();
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

/// Householder QR with column pivoting, in place: R on and above the diagonal (real there), the reflectors
/// below it, their factors in `tau`.
#[inline(always)]
fn pivoted_qr<T: Field>(qr: &mut [T], rows: usize, tau: &mut [T], permutation: &mut [u32]) {
    let k = tau.len();
    for c in 0..k {
        // Norms are computed anew in each step: at these sizes cheaper than to update them safely.
        let mut pivot = (c, T::Real::ZERO);
        for j in c..k {
            let norm = norm2(&qr[j * rows + c..(j + 1) * rows]);
            if norm > pivot.1 {
                pivot = (j, norm);
            }
        }
        let (done, rest) = qr.split_at_mut((c + 1) * rows);
        let column = &mut done[c * rows..];
        if pivot.0 != c {
            permutation.swap(c, pivot.0);
            column.swap_with_slice(&mut rest[(pivot.0 - c - 1) * rows..][..rows]);
        }
        let (head, tail) = column[c..].split_first_mut().expect("rows >= k");
        if negligible(pivot.1) {
            tail.fill(T::ZERO);
            *head = T::ZERO;
            tau[c] = T::ZERO;
            continue;
        }
        let reflection = Reflection::new(*head, pivot.1.sqrt());
        tau[c] = reflection.tau;
        tail.iter_mut().for_each(|x| *x = *x * reflection.scale);
        *head = T::real(reflection.beta);
        let adjoint = tau[c].conj();
        for column in rest.chunks_exact_mut(rows) {
            reflect(tail, adjoint, &mut column[c..]);
        }
    }
}

/// Pairs of columns that are turned at once: they are disjoint, and the processor works on their roots and
/// quotients together.
const PAIRS: usize = 4;

/// One-sided Jacobi: multiplies the k columns of X by plane rotations from the right until they are
/// orthogonal to working precision, and accumulates the rotations in W. Columns are `ld` apart and
/// padded with zeros. W may be empty: it is then left out.
#[inline(always)]
fn orthogonalise<T: Field>(x: &mut [T], w: &mut [T], ld: usize, norms: &mut [T::Real]) {
    // Quadratic convergence ends in 4 to 8 sweeps; the bound only guards against cycling on rounding errors.
    const SWEEPS: usize = 40;
    let k = norms.len();
    for (j, w) in w.chunks_exact_mut(ld).enumerate() {
        w[j] = T::ONE;
    }
    let tolerance = T::Real::of(k as f64).sqrt() * T::Real::EPS;
    for _ in 0..SWEEPS {
        // Between rotations norms are updated, so that a sweep without any has seen exact ones.
        for (norm, x) in norms.iter_mut().zip(x.chunks_exact(ld)) {
            *norm = norm2(x);
        }
        let mut rotated = false;
        // Pairs with equal p + q modulo k are disjoint.
        for round in 0..k {
            let below = (0..round.div_ceil(2)).map(|p| (p, round - p));
            let above = (round + 1..(round + k).div_ceil(2)).map(|p| (p, round + k - p));
            let mut pairs = [(0, 0); PAIRS];
            let mut count = 0;
            for pair in below.chain(above) {
                pairs[count] = pair;
                count += 1;
                if count == PAIRS {
                    rotated |= turn(x, w, norms, ld, &pairs, tolerance);
                    count = 0;
                }
            }
            if count > 0 {
                rotated |= turn(x, w, norms, ld, &pairs[..count], tolerance);
            }
        }
        if !rotated {
            break;
        }
    }
}

/// Makes the columns of each pair orthogonal, if they are not within the tolerance; false if all are.
#[inline(always)]
fn turn<T: Field>(
    x: &mut [T],
    w: &mut [T],
    norms: &mut [T::Real],
    ld: usize,
    pairs: &[(usize, usize)],
    tolerance: T::Real,
) -> bool {
    let (zero, one) = (T::Real::ZERO, T::Real::ONE);
    let (mut a, mut b, mut g) = ([zero; PAIRS], [zero; PAIRS], [T::ZERO; PAIRS]);
    for (i, &(p, q)) in pairs.iter().enumerate() {
        (a[i], b[i]) = (norms[p], norms[q]);
        g[i] = dot(&x[p * ld..][..ld], &x[q * ld..][..ld]);
    }
    let size = g.map(|g| g.abs());
    let (mut t, mut c) = ([zero; PAIRS], [one; PAIRS]);
    let mut rotated = false;
    for i in 0..PAIRS {
        let bound = tolerance * a[i].sqrt() * b[i].sqrt();
        let turned = (size[i] > bound) & !negligible(a[i]) & !negligible(b[i]);
        let zeta = (b[i] - a[i]) / (size[i] + size[i]);
        let root = (one + zeta * zeta).sqrt();
        // The square would overflow for columns of very different length.
        let root = if zeta.abs() * T::Real::EPS > one { zeta.abs() } else { root };
        let tangent = one.copysign(zeta) / (zeta.abs() + root);
        t[i] = if turned { tangent } else { zero };
        c[i] = one / (one + t[i] * t[i]).sqrt();
        rotated |= turned;
    }
    if !rotated {
        return false;
    }
    for (i, &(p, q)) in pairs.iter().enumerate() {
        if t[i] == zero {
            continue;
        }
        let phase = g[i].scale(one / size[i]);
        let sides = [&mut *x, &mut *w];
        for m in sides.into_iter().filter(|m| !m.is_empty()) {
            let (x, y) = columns(m, ld, p, q);
            rotate(x, y, c[i], c[i] * t[i], phase);
        }
        let moved = t[i] * size[i];
        for (j, old, new) in [(p, a[i], a[i] - moved), (q, b[i], b[i] + moved)] {
            // Digits have cancelled.
            let lost = new < old * T::Real::of(0.1);
            norms[j] = if lost { norm2(&x[j * ld..][..ld]) } else { new };
        }
    }
    true
}

#[inline(always)]
fn columns<T>(x: &mut [T], ld: usize, p: usize, q: usize) -> (&mut [T], &mut [T]) {
    let (left, right) = x.split_at_mut(q * ld);
    (&mut left[p * ld..][..ld], &mut right[..ld])
}

/// (x, y) <- (c x - s conj(phase) y, s x + c conj(phase) y).
#[inline(always)]
fn rotate<T: Field>(x: &mut [T], y: &mut [T], c: T::Real, s: T::Real, phase: T) {
    let sign = if T::COMPLEX {
        y.iter_mut().for_each(|y| *y = *y * phase.conj());
        T::Real::ONE
    } else {
        phase.re()
    };
    let (c_y, s_y) = (c * sign, s * sign);
    for (x, y) in x.iter_mut().zip(y) {
        let (a, b) = (*x, *y);
        *x = a.scale(c) - b.scale(s_y);
        *y = a.scale(s) + b.scale(c_y);
    }
}

/// Sorts the orthogonal columns of X by descending norm, W along with them, and divides them by their norms,
/// which are the singular values. Columns whose squares have underflowed count as zero and are replaced by an
/// orthonormal complement.
#[inline(always)]
fn sort_and_normalise<T: Field>(x: &mut [T], w: &mut [T], values: &mut [T], ld: usize) {
    let k = values.len();
    for (v, x) in values.iter_mut().zip(x.chunks_exact(ld)) {
        *v = T::real(length_of(x));
    }
    // Selection sort: k exchanges of columns at most.
    for j in 0..k {
        let mut best = j;
        for i in j + 1..k {
            if values[i].re() > values[best].re() {
                best = i;
            }
        }
        if best != j {
            values.swap(j, best);
            for m in [&mut *x, &mut *w] {
                let (a, b) = columns(m, ld, j, best);
                a.swap_with_slice(b);
            }
        }
        if values[j] != T::ZERO {
            let inverse = T::Real::ONE / values[j].re();
            x[j * ld..][..k].iter_mut().for_each(|x| *x = x.scale(inverse));
        } else {
            complete(x, ld, k, j);
        }
    }
}

/// Makes column j of X a unit vector orthogonal to the columns before it: the coordinate vector farthest from
/// their span, orthogonalised twice.
fn complete<T: Field>(x: &mut [T], ld: usize, k: usize, j: usize) {
    let (done, rest) = x.split_at_mut(j * ld);
    let target = &mut rest[..k];
    let inside = |i: usize| done.chunks_exact(ld).fold(T::Real::ZERO, |sum, c| sum + c[i].abs2());
    let mut axis = (0, inside(0));
    for i in 1..k {
        let size = inside(i);
        if size < axis.1 {
            axis = (i, size);
        }
    }
    target.fill(T::ZERO);
    target[axis.0] = T::ONE;
    for _ in 0..2 {
        for c in done.chunks_exact(ld) {
            let weight = dot(&c[..k], target);
            for (t, &c) in target.iter_mut().zip(c) {
                *t = *t - c * weight;
            }
        }
        let inverse = T::Real::ONE / norm2(target).sqrt();
        target.iter_mut().for_each(|t| *t = t.scale(inverse));
    }
}
