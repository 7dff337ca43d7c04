//! Eigenvalues and eigenvectors of a square matrix, A V = V diag(w).
//!
//! 2 x 2 matrices have a closed form. Larger ones take faer, which finds the vectors by substitution in the
//! Schur form and does not report when it fails: it may not have converged, and vectors of defective matrices
//! may overflow or vanish. So the residual of each vector is checked, by one product, and the vector computed
//! anew by inverse iteration (J. H. Wilkinson, "The Algebraic Eigenvalue Problem", 1965, chapter 9) where it is
//! bad.
//!
//! The input is scaled by a power of two, so neither tiny nor huge elements lose digits.

use faer::linalg::evd::{ComputeEigenvectors, EvdParams, evd_cplx, evd_real, evd_scratch};
use faer::{ColMut, MatMut, MatRef, Par, Spec};
use num_complex::Complex;
use smallvec::SmallVec;

use crate::svd::{balance, half_of_largest_of};
use crate::workspace::{allocated, expect_room, filled, total, with_stack, with_zeros};
use crate::{Dense, DenseError, Factor, Field, Real, Strided, Target, blas};

/// Eigenvalues and eigenvectors of square matrices.
pub trait Eig: Field {
    /// A V = V diag(w) of an n x n matrix: V is n x n and column-major, its columns have length 1, and the
    /// component `rows[j]` of column j, the first one of the largest modulus up to rounding, is real and
    /// positive. Eigenvalues of a real matrix that are not real come in pairs of exact conjugates, the one with
    /// positive imaginary part first.
    ///
    /// Each column of A V - V diag(w) is a modest multiple of n eps |A|. A defective matrix has nearly or
    /// exactly dependent columns.
    ///
    /// # Errors
    /// `NonFinite` with the first such element in column-major order; `NoConvergence`; `Memory`. The outputs
    /// are then arbitrary.
    ///
    /// # Safety
    /// A is readable; w and `rows` (n each) and V (n x n) are writable and overlap neither A nor each other;
    /// they may be uninitialised.
    unsafe fn eig(
        n: usize,
        a: Strided<*const Self>,
        w: *mut Self::Complex,
        v: *mut Self::Complex,
        rows: *mut i64,
        par: Par,
    ) -> Result<(), DenseError>;

    /// The w of [`eig`](Eig::eig) without V, perhaps in another order.
    ///
    /// They are those of a matrix that differs from A by a modest multiple of n eps |A|.
    ///
    /// # Errors
    /// As for [`eig`](Eig::eig).
    ///
    /// # Safety
    /// As for [`eig`](Eig::eig), without V and `rows`.
    unsafe fn eigvals(
        n: usize,
        a: Strided<*const Self>,
        w: *mut Self::Complex,
        par: Par,
    ) -> Result<(), DenseError>;
}

macro_rules! eig {
    ($($t:ty)*) => {$(
        impl Eig for $t {
            unsafe fn eig(
                n: usize,
                a: Strided<*const Self>,
                w: *mut Self::Complex,
                v: *mut Self::Complex,
                rows: *mut i64,
                par: Par,
            ) -> Result<(), DenseError> {
                // SAFETY: the caller's.
                unsafe { eig(n, a, w, v, rows, par) }
            }

            unsafe fn eigvals(
                n: usize,
                a: Strided<*const Self>,
                w: *mut Self::Complex,
                par: Par,
            ) -> Result<(), DenseError> {
                // SAFETY: the caller's.
                unsafe { eigvals(n, a, w, par) }
            }
        }
    )*};
}

eig!(f32 f64 Complex<f32> Complex<f64>);

/// See [`Eig::eig`].
///
/// # Errors
/// Stated there.
///
/// # Safety
/// Stated there.
unsafe fn eig<T: Provider<Complex: Dense> + Dense>(
    n: usize,
    a: Strided<*const T>,
    w: *mut T::Complex,
    v: *mut T::Complex,
    rows: *mut i64,
    par: Par,
) -> Result<(), DenseError> {
    // SAFETY: the caller's promise.
    let (largest, w, v, rows) = unsafe {
        let largest = half_of_largest_of((n, n), a)?;
        w.write_bytes(0, n);
        v.write_bytes(0, n * n);
        rows.write_bytes(0, n);
        (
            largest,
            std::slice::from_raw_parts_mut(w, n),
            std::slice::from_raw_parts_mut(v, n * n),
            std::slice::from_raw_parts_mut(rows, n),
        )
    };
    // SAFETY: (i, j) lies in the matrix.
    let at = |i: usize, j: usize| unsafe { *a.ptr.offset(i as isize * a.row + j as isize * a.col) };
    let target = if n == 2 { T::Real::HEADROOM } else { 0 };
    let (factor, inverse) = balance(largest, target);
    if n == 2 {
        eig_2x2([at(0, 0), at(0, 1), at(1, 0), at(1, 1)].map(|x| x.scale(factor)), w, v);
        for (v, row) in v.chunks_exact_mut(2).zip(&mut *rows) {
            *row = normalise(v).expect("the vector of an eigenvalue is not zero") as i64;
        }
    } else if n > 0 {
        let done = with_zeros::<T, _>(total([(2 * n, n), (2, n)]), |buffer| {
            let (scaled, buffer) = buffer.split_at_mut(n * n);
            let (vectors, values) = buffer.split_at_mut(n * n);
            for (at_j, j) in scaled.chunks_exact_mut(n).zip(0..) {
                for (i, x) in at_j.iter_mut().enumerate() {
                    *x = at(i, j).scale(factor);
                }
            }
            for attempt in 0..3 {
                if attempt == 2 {
                    disturb(scaled);
                }
                let found = match attempt {
                    0 => by_lapack(scaled, values, Some(&mut *vectors))?,
                    _ => T::general_evd(scaled, values, Some(&mut *vectors), par)?,
                };
                if found {
                    T::unpack(values, w);
                    T::unpack_vectors(values, vectors, v);
                    if (Pairs { a: scaled, w, v, rows: &mut *rows }).settle(par)? {
                        return Ok(true);
                    }
                }
            }
            Ok(false)
        })??;
        if !done {
            return Err(DenseError::NoConvergence);
        }
    }
    w.iter_mut().for_each(|w| *w = w.scale(inverse));
    Ok(())
}

/// See [`Eig::eigvals`]. For [`graded`] matrices, and where the traces of the matrix and of its square belie the
/// eigenvalues, these are computed with vectors, which tell whether they are right.
///
/// # Errors
/// Stated there.
///
/// # Safety
/// Stated there.
unsafe fn eigvals<T: Provider<Complex: Dense> + Dense>(
    n: usize,
    a: Strided<*const T>,
    w: *mut T::Complex,
    par: Par,
) -> Result<(), DenseError> {
    expect_room::<T>(n, n)?;
    // SAFETY: the caller's promise, and (i, j) lies in the matrix.
    let at = |i: usize, j: usize| unsafe { *a.ptr.offset(i as isize * a.row + j as isize * a.col) };
    // SAFETY: the caller's promise.
    let (largest, values) = unsafe {
        let largest = half_of_largest_of((n, n), a)?;
        w.write_bytes(0, n);
        (largest, std::slice::from_raw_parts_mut(w, n))
    };
    let (factor, inverse) = balance(largest, if n == 2 { T::Real::HEADROOM } else { 0 });
    let done = match n {
        0 => true,
        2 => {
            let elements = [at(0, 0), at(0, 1), at(1, 0), at(1, 1)].map(|x| x.scale(factor));
            eig_2x2(elements, values, &mut [T::Complex::ZERO; 4]);
            true
        }
        _ => with_zeros::<T, _>(total([(n, n), (2, n)]), |buffer| {
            let (scaled, found) = buffer.split_at_mut(n * n);
            for (at_j, j) in scaled.chunks_exact_mut(n).zip(0..) {
                at_j.iter_mut().enumerate().for_each(|(i, x)| *x = at(i, j).scale(factor));
            }
            let mut likely = |found: &[T]| {
                T::unpack(found, values);
                traces_agree(scaled, values)
            };
            if graded(scaled, n)? {
                return Ok(false);
            }
            Ok((by_lapack(scaled, found, None)? && likely(found))
                || (T::general_evd(scaled, found, None, par)? && likely(found)))
        })??,
    };
    if done {
        values.iter_mut().for_each(|w| *w = w.scale(inverse));
        return Ok(());
    }
    let (mut v, mut rows) = (allocated([n, n], T::Complex::ZERO)?, filled([n], 0)?);
    // SAFETY: the caller's promise, and the sizes of what is allocated.
    unsafe { eig(n, a, w, v.as_mut_ptr(), rows.as_mut_ptr(), par) }
}

/// Whether a row or a column has elements, but all of them are below the rounding errors of the largest ones, which
/// are near 1. See [`disturb`] for what such a matrix may be in for; sums of powers of these eigenvalues vanish as
/// they should.
///
/// # Errors
/// `Memory`.
fn graded<T: Field>(a: &[T], n: usize) -> Result<bool, DenseError> {
    let mut rows = filled([n], T::Real::ZERO)?;
    let small = |x: T::Real| x != T::Real::ZERO && x < T::Real::EPS;
    let larger = |x: T::Real, y: T::Real| if x > y { x } else { y };
    let mut found = false;
    for column in a.chunks_exact(n) {
        let mut largest = T::Real::ZERO;
        for (row, x) in rows.iter_mut().zip(column) {
            *row = larger(*row, x.abs1());
            largest = larger(largest, x.abs1());
        }
        found |= small(largest);
    }
    Ok(found || rows.iter().any(|&row| small(row)))
}

/// Whether sums of the eigenvalues w and of their squares are the traces of A and of its square: a wrong one almost
/// surely changes these.
fn traces_agree<T: Field>(a: &[T], w: &[T::Complex]) -> bool {
    let n = w.len();
    let wide = |x: T| T::complex(x.re(), x.im());
    let mut size = T::Real::ZERO;
    let (mut first, mut second) = (T::Complex::ZERO, T::Complex::ZERO);
    for (j, (column, &w)) in a.chunks_exact(n).zip(w).enumerate() {
        // By columns: the error of a sum grows as the number of its terms does.
        let (mut squares, mut products) = (T::Real::ZERO, T::Complex::ZERO);
        for (i, &x) in column.iter().enumerate() {
            squares = squares + x.abs2();
            products = products + wide(x * a[j + i * n]);
        }
        size = size + squares;
        first = first + wide(column[j]) - w;
        second = second + products - w * w;
    }
    let unit = T::Real::of(40.0 * n as f64) * T::Real::EPS;
    first.abs() <= unit * size.sqrt() && second.abs() <= unit * size
}

/// As [`Provider::general_evd`], by LAPACK; false if there is none.
fn by_lapack<T: Provider>(a: &[T], values: &mut [T], vectors: Option<&mut [T]>) -> Result<bool, DenseError> {
    let n = values.len() / 2;
    Ok(blas::has_eig::<T>(n)
        && with_zeros::<T, _>(n * n, |copy| {
            copy.copy_from_slice(a);
            // SAFETY: the slices have the sizes that are asked for, and n is not 0.
            unsafe {
                let vectors = vectors.map(|v| v.as_mut_ptr());
                blas::eig(n, copy.as_mut_ptr(), values.as_mut_ptr(), vectors)
            }
        })??)
}

/// Changes elements, the largest of which are near 1, by less than rounding errors of these. The reduction of a
/// graded matrix may leave numbers so small that the iteration ends with false eigenvalues.
fn disturb<T: Field>(a: &mut [T]) {
    let size = T::Real::EPS * T::Real::of(0.25);
    a.iter_mut().enumerate().for_each(|(i, x)| *x = *x + T::real(size * T::Real::of(sign(i, 1))));
}

/// With p = (a - d) / 2 and z = p +- sqrt(p^2 + b c), of the sign that makes |z| the larger one, the eigenvalues
/// are d + z and d - b c / z, and their vectors (z, c) and (b, -z).
fn eig_2x2<T: Field>([a, b, c, d]: [T; 4], w: &mut [T::Complex], v: &mut [T::Complex]) {
    let half = T::Real::of(0.5);
    let wide = |x: T| T::complex(x.re(), x.im());
    let p = (a - d).scale(half);
    let product = b * c;
    let root = if T::COMPLEX {
        root(wide(p * p + product))
    } else {
        // The discriminant with the rounding error of b c.
        let (p, bc) = (p.re(), product.re());
        let square = p.mul_add(p, bc) + b.re().mul_add(c.re(), -bc);
        if square < T::Real::ZERO {
            T::complex(T::Real::ZERO, (-square).sqrt())
        } else {
            T::complex(square.sqrt(), T::Real::ZERO)
        }
    };
    let p = wide(p);
    let along = p.re() * root.re() + p.im() * root.im();
    let z = if along < T::Real::ZERO { p - root } else { p + root };
    let (zero, one) = (T::Complex::ZERO, T::Complex::ONE);
    let [a, b, c, d] = [a, b, c, d].map(wide);
    if z == zero {
        // The matrix is a plus a nilpotent one, or b c has underflowed and both are as good as zero.
        w.copy_from_slice(&[a, d]);
        let first = if c == zero || b != zero { [one, zero] } else { [zero, one] };
        let second = if c == zero && b != zero { [one, zero] } else { [zero, one] };
        v.copy_from_slice(&[first, second].concat());
        return;
    }
    let conjugate = !T::COMPLEX && z.im() != T::Real::ZERO;
    let first = d + z;
    if conjugate {
        w.copy_from_slice(&[first, first.conj()]);
        v.copy_from_slice(&[z, c, z.conj(), c]);
    } else {
        w.copy_from_slice(&[first, d - wide(product).divide(z)]);
        v.copy_from_slice(&[z, c, b, -z]);
    }
}

/// The square root with non-negative real part.
fn root<C: Field<Complex = C>>(x: C) -> C {
    let (re, im) = (x.re(), x.im());
    if x == C::ZERO {
        return x;
    }
    let large = ((x.abs() + re.abs()) * C::Real::of(0.5)).sqrt();
    let small = im / (large + large);
    if re >= C::Real::ZERO { C::complex(large, small) } else { C::complex(small.abs(), large.copysign(im)) }
}

/// Divides a vector by its length and phase, see [`Eig::eig`], and gives the row of the component that is then
/// positive; none if that cannot be done.
fn normalise<C: Field<Complex = C>>(v: &mut [C]) -> Option<usize> {
    let largest = v.iter().fold(C::Real::ZERO, |m, x| if x.abs1() > m { x.abs1() } else { m });
    if !v.iter().all(|x| x.finite()) || !largest.finite() || largest == C::Real::ZERO {
        return None;
    }
    let (factor, _) = balance(largest, 0);
    v.iter_mut().for_each(|x| *x = x.scale(factor));
    let length = v.iter().fold(C::Real::ZERO, |sum, x| sum + x.abs2()).sqrt();
    let margin = C::Real::ONE + C::Real::of(8.0) * C::Real::EPS;
    let mut row = 0;
    for i in 1..v.len() {
        if v[i].abs2() > v[row].abs2() * margin {
            row = i;
        }
    }
    let size = v[row].abs();
    let phase = v[row].conj().scale(C::Real::ONE / size);
    let inverse = C::Real::ONE / length;
    v.iter_mut().for_each(|x| *x = (*x * phase).scale(inverse));
    v[row] = C::complex(size * inverse, C::Real::ZERO);
    Some(row)
}

/// Eigenvalues, with vectors that may be bad.
struct Pairs<'a, T: Field> {
    a: &'a [T],
    w: &'a [T::Complex],
    v: &'a mut [T::Complex],
    rows: &'a mut [i64],
}

impl<T: Dense<Complex: Dense>> Pairs<'_, T> {
    /// Normalises the vectors and replaces bad ones; false if that does not help.
    fn settle(self, par: Par) -> Result<bool, DenseError> {
        let n = self.w.len();
        for (v, row) in self.v.chunks_exact_mut(n).zip(&mut *self.rows) {
            match normalise(v) {
                Some(at) => *row = at as i64,
                // The residual of such a vector is not small.
                None => v.fill(T::Complex::real(T::Real::of(f64::NAN))),
            }
        }
        let norm = self.a.iter().fold(T::Real::ZERO, |sum, a| sum + a.abs2()).sqrt();
        let unit = T::Real::of(10.0 * n as f64) * T::Real::EPS * norm;
        let mut off = filled([n], T::Real::ZERO)?;
        self.residuals(&mut off, par)?;
        // NaN is not small.
        let small = |j: usize| off[j] <= unit;
        for j in (0..n).filter(|&j| !small(j)) {
            // The vector of the conjugate eigenvalue, which precedes this one, has been settled.
            let pair = !T::COMPLEX && self.w[j].im() < T::Real::ZERO;
            let (before, v) = self.v.split_at_mut(j * n);
            if pair {
                let first = &before[(j - 1) * n..];
                v[..n].iter_mut().zip(first).for_each(|(v, x)| *v = x.conj());
                self.rows[j] = self.rows[j - 1];
                continue;
            }
            let Some((x, row)) = inverse_iteration((self.a, j), self.w[j], (norm, unit), par)? else {
                return Ok(false);
            };
            self.rows[j] = row as i64;
            v[..n].copy_from_slice(&x);
        }
        Ok(true)
    }

    /// |A v - w v| of each eigenvalue.
    fn residuals(&self, off: &mut [T::Real], par: Par) -> Result<(), DenseError> {
        let n = self.w.len();
        // A V with a real A is that of the real and the imaginary parts of V.
        let parts = if T::COMPLEX { 1 } else { 2 };
        let real = !T::COMPLEX && self.w.iter().all(|w| w.im() == T::Real::ZERO);
        with_zeros::<T, _>(total([(parts * n, n)]), |image| {
            let (to, from) = (image.as_mut_ptr(), self.v.as_ptr().cast::<T>());
            let (row, col) = (parts as isize, (parts * n) as isize);
            let a = Factor { ptr: self.a.as_ptr(), row: 1, col: n as isize, conj: false };
            for part in 0..if real { 1 } else { parts } {
                let v = Factor { ptr: from.wrapping_add(part), row, col, conj: false };
                let c = Target { ptr: to.wrapping_add(part), row, col };
                // SAFETY: a complex number is its real and its imaginary part, so the elements of V and of the
                // image lie at these strides.
                unsafe { T::gemm((n, n, n), T::ONE, a, v, T::ZERO, c, par) };
            }
            // SAFETY: the image has n x n complex numbers, and the workspace is aligned for them.
            let image = unsafe { std::slice::from_raw_parts(to.cast::<T::Complex>(), n * n) };
            for (j, off) in off.iter_mut().enumerate() {
                let pairs = image[j * n..][..n].iter().zip(&self.v[j * n..]);
                let square = |(&y, &v): (&T::Complex, &T::Complex)| (y - v * self.w[j]).abs2();
                *off = pairs.map(square).fold(T::Real::ZERO, |sum, x| sum + x).sqrt();
            }
        })
    }
}

/// A vector of eigenvalue w, the j-th, and the row of [`normalise`], with a residual up to `bound`: one step from
/// signs, other ones for each j, so that the vectors of a multiple eigenvalue are independent where they can be.
/// A second step would be of no use: near a defective matrix it loses what the first one has gained.
#[expect(clippy::type_complexity)]
fn inverse_iteration<T: Field<Complex: Dense>>(
    (a, j): (&[T], usize),
    w: T::Complex,
    (norm, bound): (T::Real, T::Real),
    par: Par,
) -> Result<Option<(SmallVec<[T::Complex; 64]>, usize)>, DenseError> {
    let n = a.len().isqrt();
    let mut packed = allocated([n, n], T::Complex::ZERO)?;
    for (to, &a) in packed.iter_mut().zip(a) {
        *to = T::complex(a.re(), a.im());
    }
    for i in 0..n {
        packed[i * (n + 1)] = packed[i * (n + 1)] - w;
    }
    let mut perm = filled([n], 0i32)?;
    let start = Strided { ptr: packed.as_ptr(), row: 1, col: n as isize };
    // SAFETY: the matrix is n x n and is factored in place, with room for n numbers of the permutation.
    unsafe { T::Complex::lu((n, n), start, packed.as_mut_ptr(), perm.as_mut_ptr(), par)? };
    // An exact eigenvalue has pivots that are zero: they count as rounding errors.
    let least = T::Real::EPS * norm;
    for i in 0..n {
        let pivot = &mut packed[i * (n + 1)];
        if pivot.abs1() < least {
            *pivot = T::Complex::real(least);
        }
    }
    let mut x = filled([n], T::Complex::ZERO)?;
    for trial in 0..5 {
        for (x, &p) in x.iter_mut().zip(&perm) {
            *x = T::Complex::real(T::Real::of(sign(p as usize, j + 2 + trial * n)));
        }
        substitute(&packed, &mut x);
        let Some(row) = normalise(&mut x) else { continue };
        let mut rest: SmallVec<[T::Complex; 64]> = filled([n], T::Complex::ZERO)?;
        rest.iter_mut().zip(&x).for_each(|(r, &x)| *r = -(x * w));
        for (a, &x) in a.chunks_exact(n).zip(&x) {
            for (r, &a) in rest.iter_mut().zip(a) {
                *r = *r + T::complex(a.re(), a.im()) * x;
            }
        }
        if rest.iter().fold(T::Real::ZERO, |sum, x| sum + x.abs2()).sqrt() <= bound {
            return Ok(Some((x, row)));
        }
    }
    Ok(None)
}

/// x becomes a multiple of (L U)^-1 x, which itself might overflow, for the factors in one matrix.
fn substitute<C: Field<Complex = C>>(packed: &[C], x: &mut [C]) {
    let n = x.len();
    let limit = C::Real::power(C::Real::HEADROOM);
    let rescale = |x: &mut [C]| {
        let largest = x.iter().fold(C::Real::ZERO, |m, x| if x.abs1() > m { x.abs1() } else { m });
        if largest > limit {
            let (factor, _) = balance(largest, 0);
            x.iter_mut().for_each(|x| *x = x.scale(factor));
        }
    };
    for (j, column) in packed.chunks_exact(n).enumerate() {
        rescale(x);
        let weight = x[j];
        for (x, &l) in x[j + 1..].iter_mut().zip(&column[j + 1..]) {
            *x = *x - l * weight;
        }
    }
    for (j, column) in packed.chunks_exact(n).enumerate().rev() {
        rescale(x);
        x[j] = x[j].divide(column[j]);
        let weight = x[j];
        for (x, &u) in x[..j].iter_mut().zip(column) {
            *x = *x - u * weight;
        }
    }
}

/// A sign that looks random.
fn sign(i: usize, seed: usize) -> f64 {
    let mixed = (i + seed * 0x51_7C_C1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    if (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 63 == 0 { 1.0 } else { -1.0 }
}

/// A number of ours that is one of faer's, with its way to store eigenvalues and vectors.
trait Provider: blas::Eigen {
    /// Finds the eigenvalues, 2 n numbers, and vectors, n columns, if there is room for them, of a column-major
    /// matrix; false without convergence.
    fn general_evd(
        a: &[Self],
        values: &mut [Self],
        vectors: Option<&mut [Self]>,
        par: Par,
    ) -> Result<bool, DenseError>;

    /// The eigenvalues that were found, as complex numbers.
    fn unpack(values: &[Self], w: &mut [Self::Complex]);

    /// Their vectors, not normalised.
    fn unpack_vectors(values: &[Self], vectors: &[Self], v: &mut [Self::Complex]);
}

macro_rules! providers {
    ($($r:ty)*) => {$(
        impl Provider for $r {
            #[inline(never)]
            fn general_evd(
                a: &[Self],
                values: &mut [Self],
                vectors: Option<&mut [Self]>,
                par: Par,
            ) -> Result<bool, DenseError> {
                let n = values.len() / 2;
                let (re, im) = values.split_at_mut(n);
                let a = MatRef::from_column_major_slice(a, n, n);
                let vectors = vectors.map(|v| MatMut::from_column_major_slice_mut(v, n, n));
                let [re, im] = [re, im].map(|x| ColMut::from_slice_mut(x).as_diagonal_mut());
                let params = Spec::<EvdParams, $r>::default();
                let right = if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
                let request = evd_scratch::<$r>(n, ComputeEigenvectors::No, right, par, params);
                with_stack(request, |stack| {
                    evd_real(a, re, im, None, vectors, par, stack, params).is_ok()
                })
            }

            fn unpack(values: &[Self], w: &mut [Self::Complex]) {
                let n = w.len();
                let (re, im) = values.split_at(n);
                let mut j = 0;
                while j < n {
                    w[j] = Complex::new(re[j], im[j]);
                    j += 1;
                    if im[j - 1] != 0.0 && j < n {
                        w[j] = w[j - 1].conj();
                        j += 1;
                    }
                }
            }

            // The real and imaginary part of a vector stand in the columns of the two eigenvalues that it
            // and its conjugate belong to.
            fn unpack_vectors(values: &[Self], vectors: &[Self], v: &mut [Self::Complex]) {
                let n = values.len() / 2;
                let im = &values[n..];
                let mut j = 0;
                while j < n {
                    let x = &vectors[j * n..];
                    if im[j] == 0.0 || j + 1 == n {
                        v[j * n..][..n].iter_mut().zip(x).for_each(|(v, &x)| *v = Complex::new(x, 0.0));
                        j += 1;
                        continue;
                    }
                    for i in 0..n {
                        let z = Complex::new(x[i], x[i + n]);
                        (v[i + j * n], v[i + (j + 1) * n]) = (z, z.conj());
                    }
                    j += 2;
                }
            }
        }

        impl Provider for Complex<$r> {
            #[inline(never)]
            fn general_evd(
                a: &[Self],
                values: &mut [Self],
                vectors: Option<&mut [Self]>,
                par: Par,
            ) -> Result<bool, DenseError> {
                let n = values.len() / 2;
                let a = MatRef::from_column_major_slice(a, n, n);
                let vectors = vectors.map(|v| MatMut::from_column_major_slice_mut(v, n, n));
                let values = ColMut::from_slice_mut(&mut values[..n]).as_diagonal_mut();
                let params = Spec::<EvdParams, Complex<$r>>::default();
                let right = if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
                let request = evd_scratch::<Complex<$r>>(n, ComputeEigenvectors::No, right, par, params);
                with_stack(request, |stack| {
                    evd_cplx(a, values, None, vectors, par, stack, params).is_ok()
                })
            }

            fn unpack(values: &[Self], w: &mut [Self]) {
                w.copy_from_slice(&values[..w.len()]);
            }

            fn unpack_vectors(_: &[Self], vectors: &[Self], v: &mut [Self]) {
                v.copy_from_slice(vectors);
            }
        }
    )*};
}

providers!(f32 f64);

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of many equal terms, whose rounding errors all have one sign.
    #[test]
    fn the_traces_of_a_constant_matrix_agree_with_its_eigenvalues() {
        for (n, x) in [(400, 0.8637), (710, 0.5123)] {
            let mut w = vec![Complex::new(0.0, 0.0); n];
            w[0].re = n as f64 * x;
            assert!(traces_agree(&vec![x; n * n], &w));
            w[1].re = 1e-9 * w[0].re;
            assert!(!traces_agree(&vec![x; n * n], &w));
        }
    }
}
