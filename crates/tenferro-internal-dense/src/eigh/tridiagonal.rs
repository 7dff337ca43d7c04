//! Reduction to tridiagonal form and implicit QL iterations.

// Index loops over several columns at once are clearer than zipped iterators here.
#![allow(clippy::needless_range_loop)]

use smallvec::SmallVec;

use super::{Job, element};
use crate::householder::Reflection;
use crate::simd::vectorised;
use crate::svd::jacobi::{dot, norm2};
use crate::svd::{balance, negligible};
use crate::workspace::{total, with_zeros};
use crate::{DenseError, Field, Real};

/// Columns begin at multiples of this many elements, and loops over their ends begin there, too, so that no
/// loop has a remainder.
const BLOCK: usize = 4;

/// Real numbers of one matrix: diagonal and what stands beside it.
type Band<R> = SmallVec<[R; 64]>;

impl<T: Field> Job<T> {
    /// By tridiagonal form; false if an iteration was given up.
    ///
    /// # Errors
    /// `Memory`.
    ///
    /// # Safety
    /// The promise of [`eigh`](super::eigh).
    pub(super) unsafe fn by_tridiagonal(&self) -> Result<bool, DenseError> {
        // Not zero even for an empty matrix.
        let ld = self.n.max(1).next_multiple_of(BLOCK);
        let matrices = if self.v.is_some() { 2 } else { 1 };
        with_zeros::<T, _>(total([(matrices * ld, self.n), (2, ld)]), |buffer| {
            // SAFETY: the caller's promise.
            vectorised(|| unsafe {
                match ld {
                    4 => self.tridiagonal::<4>(buffer, ld),
                    8 => self.tridiagonal::<8>(buffer, ld),
                    _ => self.tridiagonal::<0>(buffer, ld),
                }
            })
        })
    }

    /// # Safety
    /// The promise of [`eigh`](super::eigh); `buffer` is zero and large enough.
    #[inline(always)]
    unsafe fn tridiagonal<const LD: usize>(&self, buffer: &mut [T], ld: usize) -> bool {
        let n = self.n;
        let ld = if LD > 0 { LD } else { ld };
        let (factor, inverse) = balance(self.largest, T::Real::HEADROOM);
        let (a, buffer) = buffer.split_at_mut(ld * n);
        let (q, buffer) = buffer.split_at_mut(if self.v.is_some() { ld * n } else { 0 });
        let (p, tau) = buffer.split_at_mut(ld);
        for j in 0..n {
            for i in j..n {
                // SAFETY: (i, j) lies in the triangle.
                let x = unsafe { element(self.a, i, j) }.scale(factor);
                a[i + j * ld] = x;
                a[j + i * ld] = x.conj();
            }
        }
        let zeros = || Band::<T::Real>::from_elem(T::Real::ZERO, n);
        let (mut d, mut e) = (zeros(), zeros());
        reduce(a, ld, &mut d, &mut e, tau, p);
        if self.v.is_some() {
            accumulate(a, ld, tau, q);
        }
        // The iteration finds small eigenvalues at the top first.
        if n > 1 && d[0].abs() > d[n - 1].abs() {
            d.reverse();
            e[..n - 1].reverse();
            for j in (0..n / 2).filter(|_| self.v.is_some()) {
                let (left, right) = q.split_at_mut((n - 1 - j) * ld);
                left[j * ld..][..ld].swap_with_slice(&mut right[..ld]);
            }
        }
        if !iterate(&mut d, &mut e, q, ld) {
            return false;
        }
        let mut order = SmallVec::<[u32; 64]>::new();
        order.extend(0..n as u32);
        order.sort_unstable_by(|&i, &j| {
            d[i as usize].partial_cmp(&d[j as usize]).unwrap_or(std::cmp::Ordering::Equal)
        });
        for (j, &from) in order.iter().enumerate() {
            let from = from as usize;
            // SAFETY: the caller's promise on the outputs.
            unsafe {
                self.w.add(j).write(d[from] * inverse);
                if let Some(v) = self.v {
                    std::ptr::copy_nonoverlapping(q[from * ld..].as_ptr(), v.add(j * n), n);
                }
            }
        }
        true
    }
}

/// T = Q^H A Q with a real symmetric tridiagonal T, of diagonal `d` and `e` below it, and Q = H_0 H_1 .., where
/// H_k = I - tau_k v_k v_k^H. Column k of `a` receives v_k, from the last multiple of [`BLOCK`] up to k + 1 on.
/// Both triangles of `a` are given; `p` is scratch of one column.
#[inline(always)]
fn reduce<T: Field>(
    a: &mut [T],
    ld: usize,
    d: &mut [T::Real],
    e: &mut [T::Real],
    tau: &mut [T],
    p: &mut [T],
) {
    let n = d.len();
    for k in 0..n {
        let (left, right) = a.split_at_mut((k + 1) * ld);
        let v = &mut left[k * ld..];
        d[k] = v[k].re();
        if k + 1 == n {
            break;
        }
        let start = (k + 1) / BLOCK * BLOCK;
        (e[k], tau[k]) = reflector(&mut v[k + 1..n]);
        if tau[k] == T::ZERO {
            continue;
        }
        v[start..=k].fill(T::ZERO);
        let (v, p) = (&v[start..], &mut p[start..]);
        let columns = || (k + 1..n).zip(right.chunks_exact(ld));
        p.fill(T::ZERO);
        for (j, column) in columns() {
            let weight = v[j - start];
            for (p, &a) in p.iter_mut().zip(&column[start..]) {
                *p = *p + a * weight;
            }
        }
        // Above the block, columns hold what is not part of it any more.
        p[..k + 1 - start].fill(T::ZERO);
        p.iter_mut().for_each(|p| *p = *p * tau[k]);
        // H^H A H = A - v p^H - p v^H + |tau|^2 (v^H A v) v v^H.
        let half = (tau[k].conj() * dot(v, p)).scale(T::Real::of(0.5));
        for (p, &v) in p.iter_mut().zip(v) {
            *p = *p - v * half;
        }
        for (j, column) in (k + 1..n).zip(right.chunks_exact_mut(ld)) {
            let (x, y) = (p[j - start].conj(), v[j - start].conj());
            for ((a, &v), &p) in column[start..].iter_mut().zip(v).zip(p.iter()) {
                *a = *a - (v * x + p * y);
            }
        }
    }
}

/// H^H x = (beta, 0) with real beta; x becomes v with v_0 = 1. Gives beta and tau.
#[inline(always)]
fn reflector<T: Field>(x: &mut [T]) -> (T::Real, T) {
    let (head, tail) = x.split_first_mut().expect("a column has a part below the diagonal");
    let alpha = *head;
    let rest = norm2(tail);
    if negligible(rest) {
        tail.fill(T::ZERO);
        let (beta, tau) = Reflection::of_head(alpha);
        // Without a reflection, the column stays what the matrix has there.
        if tau != T::ZERO {
            *head = T::ONE;
        }
        return (beta, tau);
    }
    let Reflection { beta, tau, scale } = Reflection::new(alpha, (alpha.abs2() + rest).sqrt());
    tail.iter_mut().for_each(|x| *x = *x * scale);
    *head = T::ONE;
    (beta, tau)
}

/// Q from the reflections that [`reduce`] has left in `a`; `q` is zero.
#[inline(always)]
fn accumulate<T: Field>(a: &[T], ld: usize, tau: &[T], q: &mut [T]) {
    let n = q.len() / ld;
    for j in 0..n {
        q[j + j * ld] = T::ONE;
    }
    for k in (0..n.saturating_sub(1)).rev() {
        if tau[k] == T::ZERO {
            continue;
        }
        let start = (k + 1) / BLOCK * BLOCK;
        let v = &a[k * ld + start..(k + 1) * ld];
        for column in q[(k + 1) * ld..].chunks_exact_mut(ld) {
            let column = &mut column[start..];
            let weight = tau[k] * dot(v, column);
            for (q, &v) in column.iter_mut().zip(v) {
                *q = *q - v * weight;
            }
        }
    }
}

/// Diagonalises the tridiagonal matrix by implicit QL iterations with Wilkinson's shift, which converge
/// globally (B. N. Parlett, "The Symmetric Eigenvalue Problem", 1980, chapter 8), and multiplies Q by their
/// rotations, unless it is empty. False if too many were needed.
#[inline(always)]
fn iterate<T: Field>(d: &mut [T::Real], e: &mut [T::Real], q: &mut [T], ld: usize) -> bool {
    // About 1.7 are needed for each eigenvalue; the bound only guards against cycling on rounding errors.
    let mut left = 40 * d.len();
    let (zero, one, two) = (T::Real::ZERO, T::Real::ONE, T::Real::of(2.0));
    let n = d.len();
    for l in 0..n {
        loop {
            let mut m = l;
            while m + 1 < n {
                let beside = d[m].abs() + d[m + 1].abs();
                if e[m].abs() <= T::Real::EPS * beside || negligible(e[m] * e[m]) {
                    break;
                }
                m += 1;
            }
            if m == l {
                break;
            }
            if left == 0 {
                return false;
            }
            left -= 1;
            let g = (d[l + 1] - d[l]) / (two * e[l]);
            let r = (one + g * g).sqrt();
            let mut g = d[m] - d[l] + e[l] / (g + r.copysign(g));
            let (mut s, mut c, mut p) = (one, one, zero);
            let mut split = false;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let square = f * f + g * g;
                if negligible(square) {
                    // An element beside the diagonal has vanished: the matrix falls into two.
                    e[i + 1] = zero;
                    d[i + 1] = d[i + 1] - p;
                    e[m] = zero;
                    split = true;
                    break;
                }
                let r = square.sqrt();
                e[i + 1] = r;
                let inverse = one / r;
                (s, c) = (f * inverse, g * inverse);
                g = d[i + 1] - p;
                let r = (d[i] - g) * s + two * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                if q.is_empty() {
                    continue;
                }
                let (left, right) = q.split_at_mut((i + 1) * ld);
                for (x, y) in left[i * ld..].iter_mut().zip(&mut right[..ld]) {
                    let (a, b) = (*x, *y);
                    *x = a.scale(c) - b.scale(s);
                    *y = a.scale(s) + b.scale(c);
                }
            }
            if !split {
                d[l] = d[l] - p;
                e[l] = g;
                e[m] = zero;
            }
        }
    }
    true
}
