//! Singular value decomposition A = U diag(s) V^H.
//!
//! Small matrices take one-sided Jacobi after a pivoted QR factorization (Drmac and Veselic, SIAM J. Matrix
//! Anal. Appl. 29 (2008)): fewer operations than reduction to bidiagonal form at these sizes, and small
//! singular values of graded matrices keep their relative accuracy. Larger ones take faer, whose result is
//! checked on one vector; if it did not converge or fails the check, Jacobi does the work. Jacobi stops after
//! a fixed number of sweeps, so every path ends.
//!
//! The input is scaled by a power of two, so neither tiny nor huge elements lose digits.

// Index loops over several columns at once are clearer than zipped iterators here.
#![allow(clippy::needless_range_loop)]

use faer::Par;

use super::{DenseError, Field, Real, Strided, vectorised, with_zeros};

/// How many singular vectors to compute for an m x n matrix with k = min(m, n).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vectors {
    /// U is m x k, Vh is k x n.
    Thin,
    /// U is m x m, Vh is n x n: unitary.
    Full,
}

/// Largest min(m, n) for which Jacobi beats faer, for real and for complex elements.
const JACOBI: [usize; 2] = [8, 6];

/// Largest number of elements for which the one-vector loops of Jacobi's QR beat faer's blocks.
const JACOBI_ELEMENTS: usize = 1024;

/// A = U diag(s) Vh with s descending and non-negative: U is m x k (m x m if full), s has k = min(m, n)
/// elements, Vh is k x n (n x n if full), all column-major.
///
/// |A - U diag(s) Vh| and the departures of U and Vh from orthonormality are a modest multiple of
/// max(m, n) eps, the first relative to s(0).
///
/// # Errors
/// `NonFinite` with the first such element in column-major order; nothing is then written.
///
/// # Safety
/// A is readable; the outputs are writable and overlap neither A nor each other; they may be
/// uninitialised.
pub(crate) unsafe fn svd<T: Field>(
    (m, n): (usize, usize),
    a: Strided<*const T>,
    u: *mut T,
    s: *mut T::Real,
    vh: *mut T,
    vectors: Vectors,
    par: Par,
) -> Result<(), DenseError> {
    let mut largest = T::Real::ZERO;
    let mut finite = true;
    for j in 0..n {
        for i in 0..m {
            // SAFETY: i < m and j < n.
            let x = unsafe { *a.ptr.offset(i as isize * a.row + j as isize * a.col) };
            // abs1 may overflow where the parts do not; its half cannot.
            let size = x.scale(T::Real::of(0.5)).abs1();
            largest = if size > largest { size } else { largest };
            finite &= x.finite();
        }
    }
    if !finite {
        // SAFETY: the caller's promise.
        return Err(unsafe { first_non_finite((m, n), a) });
    }
    // SAFETY: the caller's promise.
    unsafe {
        if (m, n) == (2, 2) && !T::COMPLEX {
            svd_2x2(a, largest, u, s, vh);
            return Ok(());
        }
        let job = Job { m, n, a, largest, u, s, vh, full: vectors == Vectors::Full };
        let small = m.min(n) <= JACOBI[usize::from(T::COMPLEX)] && m * n <= JACOBI_ELEMENTS;
        if small || !(job.by_faer(true, par) || job.by_faer(false, par)) {
            job.by_jacobi();
        }
    }
    Ok(())
}

/// # Safety
/// A is readable.
#[cold]
unsafe fn first_non_finite<T: Field>((m, n): (usize, usize), a: Strided<*const T>) -> DenseError {
    let mut elements = (0..n).flat_map(|j| (0..m).map(move |i| (i, j)));
    let (row, col) = elements
        // SAFETY: i < m and j < n.
        .find(|&(i, j)| !unsafe { *a.ptr.offset(i as isize * a.row + j as isize * a.col) }.finite())
        .expect("the caller has met a non-finite element");
    DenseError::NonFinite { row, col }
}

/// The factor 2^-e that brings numbers near `largest` close to 2^`target`, and its reciprocal. Both are
/// normal numbers, so for the extreme magnitudes they stop short of the target.
fn balance<R: Real>(largest: R, target: i32) -> (R, R) {
    let limit = -R::TINY.exponent() - 2;
    let e = (largest.exponent() - target).clamp(-limit, limit);
    (R::power(-e), R::power(e))
}

/// The arguments of [`svd`], checked.
struct Job<T: Field> {
    m: usize,
    n: usize,
    a: Strided<*const T>,
    largest: T::Real,
    u: *mut T,
    s: *mut T::Real,
    vh: *mut T,
    full: bool,
}

impl<T: Field> Job<T> {
    /// The element (i, j) of A, or of A^H if `wide`.
    ///
    /// # Safety
    /// It exists.
    #[inline(always)]
    unsafe fn at(&self, i: usize, j: usize, wide: bool) -> T {
        let (row, col) = if wide { (j, i) } else { (i, j) };
        // SAFETY: the caller's promise.
        let x = unsafe { *self.a.ptr.offset(row as isize * self.a.row + col as isize * self.a.col) };
        if wide { x.conj() } else { x }
    }

    /// By faer, with divide and conquer (for min(m, n) >= 128) or by QR iterations only; false if the result
    /// is unusable. Divide and conquer gives NaN or false factors for some matrices with many equal or zero
    /// singular values.
    ///
    /// # Safety
    /// The promise of [`svd`].
    unsafe fn by_faer(&self, divide: bool, par: Par) -> bool {
        let &Job { m, n, u, s, vh, full, .. } = self;
        let k = m.min(n);
        let cols = if full { n } else { k };
        let (factor, inverse) = balance(self.largest, 0);
        with_zeros::<T, _>(m * n + n * cols + k, |buffer| {
            let (scaled, buffer) = buffer.split_at_mut(m * n);
            let (v, values) = buffer.split_at_mut(n * cols);
            // SAFETY: the sizes of the outputs are those that the caller promised.
            unsafe {
                for j in 0..n {
                    for i in 0..m {
                        scaled[i + j * m] = self.at(i, j, false).scale(factor);
                    }
                }
                let a = Strided { ptr: scaled.as_ptr(), row: 1, col: m as isize };
                // faer leaves the upper right block of a square U or V untouched when it reduces by QR first.
                if full {
                    u.write_bytes(0, m * m);
                }
                let to_u = Strided { ptr: u, row: 1, col: m as isize };
                let to_v = Strided { ptr: v.as_mut_ptr(), row: 1, col: n as isize };
                if !T::bidiagonal_svd((m, n), a, values.as_mut_ptr(), to_u, to_v, (full, divide), par) {
                    return false;
                }
                let ordered = values.windows(2).all(|w| w[0].re() >= w[1].re());
                if !ordered || values[k - 1].re() < T::Real::ZERO || !self.plausible(scaled, values, v) {
                    return false;
                }
                for (i, x) in values.iter().enumerate() {
                    s.add(i).write(x.re() * inverse);
                }
                for (j, v) in v.chunks_exact(n).enumerate() {
                    for (i, x) in v.iter().enumerate() {
                        vh.add(j + i * cols).write(x.conj());
                    }
                }
                true
            }
        })
    }

    /// Whether |A x - U s V^H x| and |V^H x| = |x|, |U y| = |y| hold for one vector x and y = V^H x, which
    /// costs O(mn) and exposes a wrong factor almost surely.
    ///
    /// # Safety
    /// U has been written.
    unsafe fn plausible(&self, a: &[T], values: &[T], v: &[T]) -> bool {
        let &Job { m, n, u, .. } = self;
        let k = values.len();
        // SAFETY: U has at least k columns of m elements.
        let u = unsafe { std::slice::from_raw_parts(u, m * k) };
        let x = |i: usize| T::Real::of(if (i.wrapping_mul(0x9E37_79B9) >> 7) & 1 == 0 { 1.0 } else { -1.0 });
        let mut y = smallvec::SmallVec::<[T; 64]>::new();
        for v in v.chunks_exact(n).take(k) {
            y.push(v.iter().enumerate().fold(T::ZERO, |sum, (i, v)| sum + v.conj().scale(x(i))));
        }
        let mut residual = smallvec::SmallVec::<[T; 64]>::new();
        residual.resize(m, T::ZERO);
        let mut image = residual.clone();
        for (j, a) in a.chunks_exact(m).enumerate() {
            for (r, &a) in residual.iter_mut().zip(a) {
                *r = *r + a.scale(x(j));
            }
        }
        for ((u, &y), s) in u.chunks_exact(m).zip(&y).zip(values) {
            let weight = y.scale(s.re());
            for ((r, i), &u) in residual.iter_mut().zip(&mut image).zip(u) {
                *r = *r - u * weight;
                *i = *i + u * y;
            }
        }
        let norm2 = |x: &[T]| x.iter().fold(T::Real::ZERO, |sum, x| sum + x.abs2());
        let size = T::Real::of(n as f64);
        let (y2, image2) = (norm2(&y), norm2(&image));
        let eps = T::Real::of(20.0 * m.max(n) as f64) * T::Real::EPS;
        let close = |a: T::Real, b: T::Real| a - b <= eps * size && b - a <= eps * size;
        let sigma = values[0].re();
        // V^H x is as long as x only if V is square.
        (m < n && y2 <= size * (T::Real::ONE + eps) || close(y2, size))
            && close(image2, y2)
            && norm2(&residual).sqrt() <= eps * sigma * size.sqrt()
    }

    /// By Jacobi on the triangular factor; always succeeds.
    ///
    /// # Safety
    /// The promise of [`svd`].
    unsafe fn by_jacobi(&self) {
        let wide = self.m < self.n;
        let (rows, k) = (self.m.max(self.n), self.m.min(self.n));
        // Not zero even for an empty matrix, which has no columns of this length.
        let ld = k.max(1).next_multiple_of(4);
        with_zeros::<T, _>(rows * k + 2 * ld * k + 2 * k, |buffer| {
            // SAFETY: the caller's promise.
            vectorised(|| unsafe {
                match ld {
                    4 => self.jacobi::<4>(buffer, (rows, k), wide, ld),
                    8 => self.jacobi::<8>(buffer, (rows, k), wide, ld),
                    _ => self.jacobi::<0>(buffer, (rows, k), wide, ld),
                }
            })
        });
    }

    /// Works on the tall one of A and A^H, of rows x k:
    /// A P = Q R, R^H W = X diag(s), so A = (Q W) diag(s) (P X)^H.
    ///
    /// # Safety
    /// The promise of [`svd`]; `buffer` is zero and large enough.
    #[inline(always)]
    unsafe fn jacobi<const LD: usize>(
        &self,
        buffer: &mut [T],
        (rows, k): (usize, usize),
        wide: bool,
        ld: usize,
    ) {
        let ld = if LD > 0 { LD } else { ld };
        let (factor, inverse) = balance(self.largest, T::Real::HEADROOM);
        let (qr, buffer) = buffer.split_at_mut(rows * k);
        let (x, buffer) = buffer.split_at_mut(ld * k);
        let (w, buffer) = buffer.split_at_mut(ld * k);
        let (tau, values) = buffer.split_at_mut(k);
        let mut permutation = smallvec::SmallVec::<[u32; 32]>::new();
        permutation.extend(0..k as u32);
        for j in 0..k {
            for i in 0..rows {
                // SAFETY: (i, j) lies in the tall one of A and A^H.
                qr[i + j * rows] = unsafe { self.at(i, j, wide) }.scale(factor);
            }
        }
        pivoted_qr(qr, rows, tau, &mut permutation);
        for j in 0..k {
            for i in 0..=j {
                x[j + i * ld] = qr[i + j * rows].conj();
            }
        }
        orthogonalise(x, w, ld, k);
        sort_and_normalise(x, w, values, ld);
        // U of the tall matrix is Q [W; 0], with unit columns appended to W if it is to be square.
        let columns = if self.full { rows } else { k };
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
            let apply = |j: usize, z: &mut [T]| {
                z.fill(T::ZERO);
                if j < k {
                    z[..k].copy_from_slice(&w[j * ld..j * ld + k]);
                } else {
                    z[j] = T::ONE;
                }
                for c in (0..k).rev() {
                    reflect(&qr[c * rows + c + 1..(c + 1) * rows], tau[c], &mut z[c..]);
                }
            };
            if wide {
                let mut z = smallvec::SmallVec::<[T; 64]>::from_elem(T::ZERO, rows);
                for j in 0..columns {
                    apply(j, &mut z);
                    for (i, z) in z.iter().enumerate() {
                        left.add(j + i * columns).write(z.conj());
                    }
                }
            } else {
                for j in 0..columns {
                    let column = left.add(j * rows);
                    column.write_bytes(0, rows);
                    apply(j, std::slice::from_raw_parts_mut(column, rows));
                }
            }
        }
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
fn dot<T: Field>(x: &[T], y: &[T]) -> T {
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
fn norm2<T: Field>(x: &[T]) -> T::Real {
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
        let norm = pivot.1.sqrt();
        if negligible(pivot.1) {
            tail.fill(T::ZERO);
            *head = T::ZERO;
            tau[c] = T::ZERO;
            continue;
        }
        // H^H (alpha, tail) = (beta, 0) with real beta (LAPACK xLARFG).
        let alpha = *head;
        let beta = if alpha.re() > T::Real::ZERO { -norm } else { norm };
        tau[c] = T::ONE - alpha.scale(T::Real::ONE / beta);
        let inverse = T::ONE.divide(alpha - T::real(beta));
        tail.iter_mut().for_each(|x| *x = *x * inverse);
        *head = T::real(beta);
        let adjoint = tau[c].conj();
        for column in rest.chunks_exact_mut(rows) {
            reflect(tail, adjoint, &mut column[c..]);
        }
    }
}

/// One-sided Jacobi: multiplies the k columns of X by plane rotations from the right until they are
/// orthogonal to working precision, and accumulates the rotations in W. Columns are `ld` apart and
/// padded with zeros.
#[inline(always)]
fn orthogonalise<T: Field>(x: &mut [T], w: &mut [T], ld: usize, k: usize) {
    // Quadratic convergence ends in 4 to 8 sweeps; the bound only guards against cycling on rounding errors.
    const SWEEPS: usize = 40;
    for j in 0..k {
        w[j * ld + j] = T::ONE;
    }
    let tolerance = T::Real::of(k as f64).sqrt() * T::Real::EPS;
    for _ in 0..SWEEPS {
        let mut rotated = false;
        // Pairs with equal p + q modulo k are disjoint, so that the processor overlaps their rotations.
        for round in 0..k {
            for p in 0..k {
                let q = if p <= round { round - p } else { round + k - p };
                if q <= p {
                    continue;
                }
                let (x, y) = columns(x, ld, p, q);
                let (a, b, g) = (norm2(x), norm2(y), dot(x, y));
                let size = g.abs();
                let bound = tolerance * a.sqrt() * b.sqrt();
                if size <= bound || negligible(a) || negligible(b) {
                    continue;
                }
                rotated = true;
                let zeta = (b - a) / (size + size);
                let t = if zeta.abs() * T::Real::EPS > T::Real::ONE {
                    // The square would overflow for columns of very different length.
                    T::Real::of(0.5) / zeta
                } else {
                    T::Real::ONE.copysign(zeta) / (zeta.abs() + (T::Real::ONE + zeta * zeta).sqrt())
                };
                let c = T::Real::ONE / (T::Real::ONE + t * t).sqrt();
                let phase = g.scale(T::Real::ONE / size);
                rotate(x, y, c, c * t, phase);
                let (x, y) = columns(w, ld, p, q);
                rotate(x, y, c, c * t, phase);
            }
        }
        if !rotated {
            break;
        }
    }
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

/// Squared lengths below this have lost digits to underflow; such vectors count as zero. At the scale that
/// the input is brought to, they are smaller than its largest element by a factor of at least 1e250 (1e28 in
/// single precision).
#[inline(always)]
fn negligible<R: Real>(norm2: R) -> bool {
    norm2 < R::TINY / R::EPS
}

/// Sorts the orthogonal columns of X by descending norm, W along with them, and divides them by their norms,
/// which are the singular values. Columns whose squares have underflowed count as zero and are replaced by an
/// orthonormal complement.
#[inline(always)]
fn sort_and_normalise<T: Field>(x: &mut [T], w: &mut [T], values: &mut [T], ld: usize) {
    let k = values.len();
    for (v, x) in values.iter_mut().zip(x.chunks_exact(ld)) {
        let size = norm2(x);
        *v = T::real(if negligible(size) { T::Real::ZERO } else { size.sqrt() });
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

/// Real 2 x 2 in closed form. With A = R(alpha) diag(s0, +-s1) R(beta)^T, the vectors (a + d, c - b) and
/// (a - d, c + b) have the angles alpha -+ beta and the lengths s0 +- s1. Their components are exact up to
/// one rounding, and s1 = |det A| / s0 with Kahan's determinant, so both singular values are accurate to a
/// few units in the last place whatever their ratio.
///
/// # Safety
/// The promise of [`svd`] for m = n = 2.
#[inline]
unsafe fn svd_2x2<T: Field>(m: Strided<*const T>, largest: T::Real, u: *mut T, s: *mut T::Real, vh: *mut T) {
    let (zero, one, half) = (T::Real::ZERO, T::Real::ONE, T::Real::of(0.5));
    let (factor, inverse) = balance(largest, 0);
    // SAFETY: indices are below 2.
    let at = |i: isize, j: isize| unsafe { *m.ptr.offset(i * m.row + j * m.col) }.re() * factor;
    let (a, b, c, d) = (at(0, 0), at(0, 1), at(1, 0), at(1, 1));
    let (x, y) = ((a + d, c - b), (a - d, c + b));
    let length = |v: (T::Real, T::Real)| {
        let size = v.0 * v.0 + v.1 * v.1;
        if negligible(size) { zero } else { size.sqrt() }
    };
    let (p, q) = (length(x), length(y));
    let unit = |v: (T::Real, T::Real), l: T::Real| if l > zero { (v.0 / l, v.1 / l) } else { (one, zero) };
    let (e, f) = (unit(x, p), unit(y, q));
    // exp(2 i alpha) = e f; half the angle on the side without cancellation.
    let (cos, sin) = (e.0 * f.0 - e.1 * f.1, e.0 * f.1 + e.1 * f.0);
    let (ca, sa) = if cos >= zero {
        let ca = ((one + cos) * half).sqrt();
        (ca, half * sin / ca)
    } else {
        let sa = ((one - cos) * half).sqrt();
        (half * sin / sa, sa)
    };
    // beta = alpha - (alpha - beta).
    let (cb, sb) = (ca * e.0 + sa * e.1, sa * e.0 - ca * e.1);
    let s0 = (p + q) * half;
    // a d - b c with the rounding error of b c added back.
    let bc = b * c;
    let det = a.mul_add(d, -bc) + (-b).mul_add(c, bc);
    let s1 = if s0 > zero { det.abs() / s0 } else { zero };
    let sign = one.copysign(det);
    // SAFETY: the caller's promise on the outputs.
    unsafe {
        for (i, z) in [ca, sa, -sa, ca].into_iter().enumerate() {
            u.add(i).write(T::real(z));
        }
        for (i, z) in [cb, -sb * sign, sb, cb * sign].into_iter().enumerate() {
            vh.add(i).write(T::real(z));
        }
        s.write(s0 * inverse);
        // Rounding must not break the order.
        s.add(1).write((if s1 > s0 { s0 } else { s1 }) * inverse);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jacobi_alone_handles_sizes_that_faer_usually_takes() {
        let (m, n) = (30, 21);
        // Three distinct rows: rank 3, so most of the right vectors come from completion.
        let a: Vec<f64> = (0..m * n).map(|q| ((q % m % 3 + 1) * (q / m + 2) % 7) as f64).collect();
        let (mut u, mut s, mut vh) = (vec![f64::NAN; m * n], vec![f64::NAN; n], vec![f64::NAN; n * n]);
        let (out_u, out_s, out_vh) = (u.as_mut_ptr(), s.as_mut_ptr(), vh.as_mut_ptr());
        let a_ref = Strided { ptr: a.as_ptr(), row: 1, col: m as isize };
        let job = Job { m, n, a: a_ref, largest: 6.0, u: out_u, s: out_s, vh: out_vh, full: false };
        // SAFETY: the buffers have the documented sizes.
        unsafe { job.by_jacobi() };
        assert!(s[2] > 1.0 && s[3] < 1e-12);
        for q in 0..m * n {
            let sum: f64 = (0..n).map(|p| u[q % m + p * m] * s[p] * vh[p + q / m * n]).sum();
            assert!((sum - a[q]).abs() < 1e-12);
        }
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let v: f64 = (0..n).map(|p| vh[i + p * n] * vh[j + p * n]).sum();
            let u: f64 = (0..m).map(|p| u[p + i * m] * u[p + j * m]).sum();
            let expected = f64::from(i == j);
            assert!((v - expected).abs() < 1e-13 && (u - expected).abs() < 1e-13, "({i}, {j}): {u} {v}");
        }
    }
}
