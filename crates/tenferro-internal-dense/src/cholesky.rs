//! Cholesky factorization of a positive definite matrix, A = L L^H.

use faer::Par;
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::traits::ComplexField;
use faer::{MatMut, Spec};
use num_complex::Complex;

use crate::simd::vectorised;
use crate::workspace::with_stack;
use crate::{DenseError, Field, Real, Strided, blas};

/// Order up to which plain loops win.
const SMALL: usize = 24;

/// The factorization of positive definite matrices.
pub trait Cholesky: Field {
    /// A = L L^H of a Hermitian n x n matrix, of which only the lower triangle is read, and the real part
    /// alone of its diagonal. `l` (n x n, column-major) receives L, with zeros above the diagonal, which is
    /// positive.
    ///
    /// # Errors
    /// `NonFinite` with the first such element of the triangle in column-major order; `NotPositiveDefinite`
    /// with the order of the first leading minor that is not positive in floating-point numbers; `Memory`.
    /// What is in `l` is then meaningless, but initialised up to the first element that is not finite.
    ///
    /// # Safety
    /// The triangle is readable; `l` is writable and does not overlap it; it need not be initialised.
    unsafe fn cholesky(n: usize, a: Strided<*const Self>, l: *mut Self, par: Par) -> Result<(), DenseError>;
}

macro_rules! routines {
    ($($t:ty)*) => {$(
        impl Cholesky for $t {
            unsafe fn cholesky(
                n: usize,
                a: Strided<*const Self>,
                l: *mut Self,
                par: Par,
            ) -> Result<(), DenseError> {
                // SAFETY: the caller's.
                unsafe { cholesky(n, a, l, par) }
            }
        }
    )*};
}

routines!(f32 f64 Complex<f32> Complex<f64>);

/// See [`Cholesky::cholesky`].
///
/// # Errors
/// Stated there.
///
/// # Safety
/// Stated there.
unsafe fn cholesky<T: blas::Library + ComplexField>(
    n: usize,
    a: Strided<*const T>,
    l: *mut T,
    par: Par,
) -> Result<(), DenseError> {
    // SAFETY: the caller's promise; the columns of `l` are written one by one before they are made slices of.
    unsafe {
        for j in 0..n {
            let mut finite = true;
            for i in 0..j {
                l.add(i + j * n).write(T::ZERO);
            }
            for i in j..n {
                let x = *a.ptr.offset(i as isize * a.row + j as isize * a.col);
                // The imaginary part of the diagonal is not read.
                let x = if i == j { <T as Field>::real(x.re()) } else { x };
                finite &= x.finite();
                l.add(i + j * n).write(x);
            }
            if !finite {
                let bad = (j..n).find(|&i| !(*l.add(i + j * n)).finite());
                return Err(DenseError::NonFinite { row: bad.unwrap_or(j), col: j });
            }
        }
        if let Some(factored) = blas::cholesky(n, l) {
            return factored.map_err(|index| DenseError::NotPositiveDefinite { order: index + 1 });
        }
        let factored = if n <= SMALL {
            vectorised(|| eliminate(std::slice::from_raw_parts_mut(l, n * n), n))
        } else {
            blocked(n, l, par)?
        };
        factored.map_err(|index| DenseError::NotPositiveDefinite { order: index + 1 })
    }
}

/// Right-looking elimination in the lower triangle, column by column. The error is the index of the pivot
/// that is not positive.
///
/// No overflow makes a wrong factor: |a_ij|^2 < a_ii a_jj bounds what a positive definite matrix needs, and
/// an infinite element makes a later pivot of its row negative or NaN.
#[inline(always)]
fn eliminate<T: Field>(l: &mut [T], n: usize) -> Result<(), usize> {
    for j in 0..n {
        let (head, tail) = l.split_at_mut((j + 1) * n);
        let column = &mut head[j * n + j..];
        let pivot = column[0].re();
        // Negated so that NaN is refused, too.
        #[allow(clippy::neg_cmp_op_on_partial_ord)]
        if !(pivot > T::Real::ZERO) || !pivot.finite() {
            return Err(j);
        }
        let root = pivot.sqrt();
        let inverse = T::Real::ONE / root;
        column[0] = T::real(root);
        let below = &mut column[1..];
        below.iter_mut().for_each(|x| *x = x.scale(inverse));
        for (c, target) in tail.chunks_exact_mut(n).enumerate() {
            let scale = below[c].conj();
            for (y, &x) in target[j + 1 + c..].iter_mut().zip(&below[c..]) {
                *y = *y - x * scale;
            }
            // x conj(x) is real; its rounded imaginary part need not be zero where products are fused.
            target[j + 1 + c] = T::real(target[j + 1 + c].re());
        }
    }
    Ok(())
}

/// The same by faer.
///
/// # Errors
/// `Memory`.
///
/// # Safety
/// `l` has n x n initialised elements.
#[inline(never)]
unsafe fn blocked<T: Field + ComplexField>(
    n: usize,
    l: *mut T,
    par: Par,
) -> Result<Result<(), usize>, DenseError> {
    let params = Spec::default();
    // SAFETY: the caller's promise.
    let matrix = unsafe { MatMut::from_raw_parts_mut(l, n, n, 1, n as isize) };
    let request = cholesky_in_place_scratch::<T>(n, par, params);
    let factored =
        with_stack(request, |stack| cholesky_in_place(matrix, Default::default(), par, stack, params))?;
    if let Err(LltError::NonPositivePivot { index }) = factored {
        return Ok(Err(index));
    }
    for j in 0..n {
        // SAFETY: all indices are below n.
        unsafe {
            // The upper triangle was workspace.
            std::slice::from_raw_parts_mut(l.add(j * n), j).fill(T::ZERO);
            let diagonal = l.add(j + j * n);
            *diagonal = <T as Field>::real((*diagonal).re());
        }
    }
    Ok(Ok(()))
}
