//! QR factorization by Householder reflections, `A = Q R` with `Q = H_1 .. H_k`, `H_i = I - tau_i v_i v_i^H`.
//!
//! Small matrices and panels take one reflection after the other on columns padded to whole cache lines;
//! larger ones are blocks of reflections, applied by products, which go to faer. Own loops throughout,
//! because R has a real diagonal, any rank is fine, and columns of any scale give a unitary Q.

mod blocked;
mod lanes;
mod reflect;

use faer::Par;
use num_complex::Complex;

use crate::simd::{Loops, dispatch};
use crate::svd::{balance, half_of_largest_of};
use crate::workspace::{filled, total, with_zeros};
use crate::{DenseError, Field, Real, Strided, blas};
use lanes::{Columns, Lanes, height, with_lines};
use reflect::Pivoting;

/// Which factors of an `m x n` matrix with `k = min(m, n)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QrForm {
    /// Q is `m x m` and R is `m x n`; else they are `m x k` and `k x n`.
    pub full: bool,
    /// The diagonal of R is not negative; else its signs are those that the reflections leave.
    pub positive: bool,
}

/// QR factorizations, and products with their reflectors.
///
/// Reflectors are kept as in LAPACK: `v_i` is zero above row i, 1 in it, and below it is column i of a matrix
/// below the diagonal.
pub trait Qr: Field {
    /// A = Q R of an m x n matrix, or A\[:, perm\] = Q R: `q` and `r` as `form` says, column-major, the
    /// diagonal of R real. With `perm`, of n elements, columns are exchanged so that |R_ii| does not
    /// increase.
    ///
    /// # Errors
    /// `NonFinite` with the first such element in column-major order; `Memory`. The outputs are then
    /// arbitrary.
    ///
    /// # Safety
    /// A is readable; the outputs are writable and overlap neither A nor each other; they may be
    /// uninitialised. n <= i32::MAX if there is a permutation.
    unsafe fn qr(
        shape: (usize, usize),
        a: Strided<*const Self>,
        q: *mut Self,
        r: *mut Self,
        form: QrForm,
        perm: Option<&mut [i32]>,
        par: Par,
    ) -> Result<(), DenseError>;

    /// R on and above the diagonal of `packed` (m x n, column-major), the reflectors below it, and `tau`, of
    /// min(m, n) elements.
    ///
    /// # Errors
    /// As for [`qr`](Qr::qr).
    ///
    /// # Safety
    /// As for [`qr`](Qr::qr).
    unsafe fn householder(
        shape: (usize, usize),
        a: Strided<*const Self>,
        packed: *mut Self,
        tau: &mut [Self],
        par: Par,
    ) -> Result<(), DenseError>;

    /// The first n columns of `H_1 .. H_k`, with k = `tau.len()` <= n <= m, to `q` (m x n, column-major).
    ///
    /// # Errors
    /// `Memory`; the output is then arbitrary.
    ///
    /// # Safety
    /// `v` is readable below its diagonal in m rows and k columns; `q` is writable and overlaps nothing; it
    /// may be uninitialised.
    unsafe fn householder_product(
        shape: (usize, usize),
        v: Strided<*const Self>,
        tau: &[Self],
        q: *mut Self,
        par: Par,
    ) -> Result<(), DenseError>;

    /// C <- `H_1 .. H_k` C, or its adjoint times C, for C of m x n, column-major, with k = `tau.len()` <= m.
    ///
    /// # Errors
    /// `Memory`; C is then unchanged.
    ///
    /// # Safety
    /// `v` is readable below its diagonal in m rows and k columns; C is readable and writable, and overlaps
    /// nothing.
    unsafe fn householder_apply(
        shape: (usize, usize),
        v: Strided<*const Self>,
        tau: &[Self],
        adjoint: bool,
        c: *mut Self,
        par: Par,
    ) -> Result<(), DenseError>;
}

/// Largest number of reflections, and of elements, for which one after the other beats blocks.
const SMALL: (usize, usize) = (64, 1 << 14);

fn small(m: usize, k: usize, columns: usize) -> bool {
    k <= SMALL.0 && m.saturating_mul(columns) <= SMALL.1
}

/// The power of two that A is multiplied by, so that sums of squares do not overflow, and its reciprocal.
///
/// # Safety
/// A is readable.
unsafe fn scales<T: Field>(
    shape: (usize, usize),
    a: Strided<*const T>,
) -> Result<(T::Real, T::Real), DenseError> {
    // SAFETY: the caller's promise.
    let largest = unsafe { half_of_largest_of(shape, a)? };
    let one = T::Real::ONE;
    Ok(if largest.exponent().abs() <= T::Real::HEADROOM { (one, one) } else { balance(largest, 0) })
}

/// The factorization of columns in lines.
struct Factorization<'a, 'b, T: Lanes> {
    a: &'a mut Columns<'b, T>,
    v: &'a mut Columns<'b, T>,
    tau: &'a mut [T],
    pivoting: Option<Pivoting<'a, T::Real>>,
    rows: usize,
}

impl<T: Lanes> Loops for Factorization<'_, '_, T> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(self) {
        match self.pivoting {
            None => reflect::factor::<T, FMA>(self.a, self.v, self.tau),
            Some(p) => reflect::factor_pivoted::<T, FMA>(self.a, self.v, self.tau, p, self.rows),
        }
    }
}

/// Q and R of a small matrix, all of it in lines.
struct Whole<'a, T: Lanes> {
    shape: (usize, usize),
    a: Strided<*const T>,
    scales: (T::Real, T::Real),
    lines: &'a mut [T::Line],
    q: *mut T,
    r: *mut T,
    form: QrForm,
    pivoting: Option<Pivoting<'a, T::Real>>,
}

impl<T: Lanes> Loops for Whole<'_, T> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(self) {
        let (m, n) = self.shape;
        let (k, h) = (m.min(n), height::<T>(m));
        let columns = if self.form.full { m } else { k };
        let (mut a, rest) = Columns::<T>::split(self.lines, h, n);
        let (mut v, rest) = Columns::<T>::split(rest, h, k);
        let (mut q, _) = Columns::<T>::split(rest, h, columns);
        let mut tau = smallvec::SmallVec::<[T; 64]>::from_elem(T::ZERO, k);
        // SAFETY: the caller of `qr` promises the memory of A, Q and R.
        unsafe {
            load((m, n), self.a, self.scales.0, &mut a);
            let pivoting = self.pivoting;
            let job = Factorization { a: &mut a, v: &mut v, tau: &mut tau, pivoting, rows: m };
            job.run::<FMA>();
            reflect::product::<T, FMA>(&v, &tau, &mut q);
            let negative = |i: usize| self.form.positive && a.at(i, i).re() < T::Real::ZERO;
            for j in 0..columns {
                let flip = j < k && negative(j);
                for i in 0..m {
                    let x = q.at(i, j);
                    self.q.add(i + j * m).write(if flip { -x } else { x });
                }
            }
            for j in 0..n {
                for i in 0..columns {
                    let x = if i <= j && i < k { a.at(i, j).scale(self.scales.1) } else { T::ZERO };
                    let flip = i < k && negative(i);
                    self.r.add(i + j * columns).write(if flip { -x } else { x });
                }
            }
        }
    }
}

/// # Safety
/// A is readable, and has the extents of the columns.
#[inline(always)]
unsafe fn load<T: Lanes>((m, n): (usize, usize), a: Strided<*const T>, factor: T::Real, to: &mut Columns<T>) {
    for j in 0..n {
        for i in 0..m {
            // SAFETY: i < m and j < n.
            let x = unsafe { *a.ptr.offset(i as isize * a.row + j as isize * a.col) };
            to.put(i, j, x.scale(factor));
        }
    }
}

/// Writes R, times `inverse`, and below it the reflectors, to the `m x n` matrix `to` with its leading
/// dimension.
///
/// # Safety
/// It is writable.
unsafe fn store<T: Lanes>(
    (m, n): (usize, usize),
    a: &Columns<T>,
    v: &Columns<T>,
    inverse: T::Real,
    (to, ld): (*mut T, usize),
) {
    for j in 0..n {
        for i in 0..m {
            let x = if i > j { v.at(i, j) } else { a.at(i, j).scale(inverse) };
            // SAFETY: i < m and j < n.
            unsafe { to.add(i + j * ld).write(x) };
        }
    }
}

/// See [`Qr::qr`].
///
/// # Errors
/// Stated there.
///
/// # Safety
/// Stated there.
unsafe fn qr<T: Lanes>(
    (m, n): (usize, usize),
    a: Strided<*const T>,
    q: *mut T,
    r: *mut T,
    form: QrForm,
    mut perm: Option<&mut [i32]>,
    par: Par,
) -> Result<(), DenseError> {
    let k = m.min(n);
    let columns = if form.full { m } else { k };
    // SAFETY: the caller's promise.
    unsafe {
        let scales = scales((m, n), a)?;
        if let Some(perm) = &mut perm {
            (0i32..).zip(perm.iter_mut()).for_each(|(i, p)| *p = i);
        }
        let mut lengths =
            filled([perm.as_ref().map_or(0, |perm| perm.len())], (T::Real::ZERO, T::Real::ZERO))?;
        let pivoting = perm.map(|perm| Pivoting { perm, lengths: &mut lengths });
        let lapack = pivoting.is_none() && k > 0 && blas::has_qr::<T>(m.max(n));
        if !lapack && small(m, k, n.max(columns)) {
            return with_lines::<T, _>(height::<T>(m) * (n + k + columns), |lines| {
                dispatch(Whole { shape: (m, n), a, scales, lines, q, r, form, pivoting });
            });
        }
        with_zeros::<T, _>(total([(m, n), (1, k)]), |buffer| {
            let (packed, tau) = buffer.split_at_mut(m * n);
            let (v, tau) = (packed.as_mut_ptr(), &mut tau[..k]);
            if !(lapack && factors_by_lapack((m, n), a, scales, v, tau)?) {
                packed_factors((m, n), a, scales, v, tau, pivoting, par)?;
            }
            let at = |i: usize, j: usize| packed[i + j * m];
            for j in 0..n {
                for i in 0..columns {
                    r.add(i + j * columns).write(if i <= j && i < k { at(i, j) } else { T::ZERO });
                }
            }
            let v = Strided { ptr: packed.as_ptr(), row: 1, col: m as isize };
            if !(lapack && product_by_lapack((m, columns), packed, tau, q)?) {
                householder_product((m, columns), v, tau, q, par)?;
            }
            for i in (0..k).filter(|&i| form.positive && at(i, i).re() < T::Real::ZERO) {
                (0..m).map(|l| q.add(l + i * m)).for_each(|x| *x = -*x);
                (i..n).map(|j| r.add(i + j * columns)).for_each(|x| *x = -*x);
            }
            Ok(())
        })?
    }
}

/// # Safety
/// As for [`Qr::householder`]; a permutation is the identity.
unsafe fn packed_factors<T: Lanes>(
    (m, n): (usize, usize),
    a: Strided<*const T>,
    scales: (T::Real, T::Real),
    packed: *mut T,
    tau: &mut [T],
    pivoting: Option<Pivoting<T::Real>>,
    par: Par,
) -> Result<(), DenseError> {
    let k = m.min(n);
    // SAFETY: the caller's promise.
    unsafe {
        if pivoting.is_some() || small(m, k, n) {
            let h = height::<T>(m);
            return with_lines::<T, _>(total([(h, n), (h, k)]), |lines| {
                let (mut a_, rest) = Columns::<T>::split(lines, h, n);
                let (mut v, _) = Columns::<T>::split(rest, h, k);
                load((m, n), a, scales.0, &mut a_);
                dispatch(Factorization { a: &mut a_, v: &mut v, tau, pivoting, rows: m });
                store((m, n), &a_, &v, scales.1, (packed, m));
            });
        }
        copy_scaled((m, n), a, scales.0, packed);
        blocked::factor((m, n), packed, tau, par)?;
        rescale((m, n), packed, scales.1);
    }
    Ok(())
}

/// # Safety
/// `a` is a readable m x n matrix, `packed` has room for one.
unsafe fn copy_scaled<T: Field>(
    (m, n): (usize, usize),
    a: Strided<*const T>,
    factor: T::Real,
    packed: *mut T,
) {
    for j in 0..n {
        for i in 0..m {
            // SAFETY: i < m and j < n.
            unsafe {
                let x = *a.ptr.offset(i as isize * a.row + j as isize * a.col);
                packed.add(i + j * m).write(x.scale(factor));
            }
        }
    }
}

/// R times `inverse`.
///
/// # Safety
/// `packed` is an m x n matrix.
unsafe fn rescale<T: Field>((m, n): (usize, usize), packed: *mut T, inverse: T::Real) {
    if inverse == T::Real::ONE {
        return;
    }
    for j in 0..n {
        for i in 0..m.min(j + 1) {
            // SAFETY: i < m and j < n.
            unsafe {
                let x = packed.add(i + j * m);
                *x = (*x).scale(inverse);
            }
        }
    }
}

/// [`packed_factors`] by LAPACK, whose reflectors are the same; false if there are none.
///
/// # Safety
/// As there.
unsafe fn factors_by_lapack<T: Lanes>(
    shape: (usize, usize),
    a: Strided<*const T>,
    scales: (T::Real, T::Real),
    packed: *mut T,
    tau: &mut [T],
) -> Result<bool, DenseError> {
    // SAFETY: the caller's promise.
    unsafe {
        copy_scaled(shape, a, scales.0, packed);
        let done = blas::reflectors(shape, packed, tau)?;
        rescale(shape, packed, scales.1);
        Ok(done)
    }
}

/// [`householder_product`] by LAPACK; false if there is none.
///
/// # Safety
/// As there, with reflectors in compact columns.
unsafe fn product_by_lapack<T: Lanes>(
    (m, n): (usize, usize),
    packed: &[T],
    tau: &[T],
    q: *mut T,
) -> Result<bool, DenseError> {
    let reflectors = &packed[..m * tau.len()];
    // SAFETY: the caller's promise; n is not less than the number of reflectors.
    unsafe {
        q.write_bytes(0, m * n);
        q.copy_from_nonoverlapping(reflectors.as_ptr(), reflectors.len());
        blas::reflections((m, n), q, tau)
    }
}

/// See [`Qr::householder_product`].
///
/// # Safety
/// Stated there.
unsafe fn householder_product<T: Lanes>(
    (m, n): (usize, usize),
    v: Strided<*const T>,
    tau: &[T],
    q: *mut T,
    par: Par,
) -> Result<(), DenseError> {
    let (k, h) = (tau.len(), height::<T>(m));
    // SAFETY: the caller's promise.
    unsafe {
        if !small(m, k, n) {
            return blocked::product((m, n), v, tau, q, par);
        }
        with_lines::<T, _>(h * (n + k), |lines| {
            let (mut to, rest) = Columns::<T>::split(lines, h, n);
            let (mut tails, _) = Columns::<T>::split(rest, h, k);
            load_tails((m, k), v, &mut tails);
            dispatch(Product { v: &tails, tau, q: &mut to });
            unload((m, n), &to, q);
        })
    }
}

/// See [`Qr::householder_apply`].
///
/// # Safety
/// Stated there.
unsafe fn householder_apply<T: Lanes>(
    (m, n): (usize, usize),
    v: Strided<*const T>,
    tau: &[T],
    adjoint: bool,
    c: *mut T,
    par: Par,
) -> Result<(), DenseError> {
    let (k, h) = (tau.len(), height::<T>(m));
    // SAFETY: the caller's promise.
    unsafe {
        if !small(m, k, n.max(k)) {
            return blocked::apply((m, n), v, tau, adjoint, c, par);
        }
        with_lines::<T, _>(h * (n + k), |lines| {
            let (mut work, rest) = Columns::<T>::split(lines, h, n);
            let (mut tails, _) = Columns::<T>::split(rest, h, k);
            load_tails((m, k), v, &mut tails);
            let from = Strided { ptr: c.cast_const(), row: 1, col: m as isize };
            load((m, n), from, T::Real::ONE, &mut work);
            dispatch(Application { v: &tails, tau, adjoint, c: &mut work });
            unload((m, n), &work, c);
        })
    }
}

struct Product<'a, 'b, T: Lanes> {
    v: &'a Columns<'b, T>,
    tau: &'a [T],
    q: &'a mut Columns<'b, T>,
}

impl<T: Lanes> Loops for Product<'_, '_, T> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(self) {
        reflect::product::<T, FMA>(self.v, self.tau, self.q);
    }
}

struct Application<'a, 'b, T: Lanes> {
    v: &'a Columns<'b, T>,
    tau: &'a [T],
    adjoint: bool,
    c: &'a mut Columns<'b, T>,
}

impl<T: Lanes> Loops for Application<'_, '_, T> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(self) {
        reflect::apply::<T, FMA>(self.v, self.tau, self.adjoint, self.c);
    }
}

/// # Safety
/// The part of `v` below its diagonal is readable.
unsafe fn load_tails<T: Lanes>((m, k): (usize, usize), v: Strided<*const T>, to: &mut Columns<T>) {
    for j in 0..k {
        to.put(j, j, T::ONE);
        for i in j + 1..m {
            // SAFETY: i > j, below the diagonal.
            to.put(i, j, unsafe { *v.ptr.offset(i as isize * v.row + j as isize * v.col) });
        }
    }
}

/// # Safety
/// `to` has room for m x n elements.
unsafe fn unload<T: Lanes>((m, n): (usize, usize), from: &Columns<T>, to: *mut T) {
    for j in 0..n {
        for i in 0..m {
            // SAFETY: i < m and j < n.
            unsafe { to.add(i + j * m).write(from.at(i, j)) };
        }
    }
}

macro_rules! routines {
    ($($t:ty)*) => {$(
        impl Qr for $t {
            unsafe fn qr(
                shape: (usize, usize),
                a: Strided<*const Self>,
                q: *mut Self,
                r: *mut Self,
                form: QrForm,
                perm: Option<&mut [i32]>,
                par: Par,
            ) -> Result<(), DenseError> {
                // SAFETY: the caller's.
                unsafe { qr(shape, a, q, r, form, perm, par) }
            }

            unsafe fn householder(
                shape: (usize, usize),
                a: Strided<*const Self>,
                packed: *mut Self,
                tau: &mut [Self],
                par: Par,
            ) -> Result<(), DenseError> {
                // SAFETY: the caller's.
                unsafe {
                    let scales = scales(shape, a)?;
                    packed_factors(shape, a, scales, packed, tau, None, par)
                }
            }

            unsafe fn householder_product(
                shape: (usize, usize),
                v: Strided<*const Self>,
                tau: &[Self],
                q: *mut Self,
                par: Par,
            ) -> Result<(), DenseError> {
                // SAFETY: the caller's.
                unsafe { householder_product(shape, v, tau, q, par) }
            }

            unsafe fn householder_apply(
                shape: (usize, usize),
                v: Strided<*const Self>,
                tau: &[Self],
                adjoint: bool,
                c: *mut Self,
                par: Par,
            ) -> Result<(), DenseError> {
                // SAFETY: the caller's.
                unsafe { householder_apply(shape, v, tau, adjoint, c, par) }
            }
        }
    )*};
}

routines!(f32 f64 Complex<f32> Complex<f64>);
