//! The calls into faer.

use faer::linalg::matmul::matmul_with_conj;
use faer::linalg::svd::{ComputeSvdVectors, SvdParams, svd, svd_scratch};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place_with_conj, solve_unit_lower_triangular_in_place_with_conj,
    solve_unit_upper_triangular_in_place_with_conj, solve_upper_triangular_in_place_with_conj,
};
use faer::traits::ComplexField;
use faer::{Accum, ColMut, Conj, MatMut, MatRef, Par, Spec};

use crate::simd::clearing;
use crate::workspace::with_stack;
use crate::{DenseError, Factor, Strided, Target, Triangle, blas};

/// A number of ours that is one of faer's.
pub(crate) trait Provider: blas::Svd {
    /// C <- alpha op(A) op(B) (+ C if `add`).
    ///
    /// # Safety
    /// A is m x k, B k x n, C m x n; C is writable, initialised if `add`, and overlaps neither A nor B.
    unsafe fn product(
        shape: (usize, usize, usize),
        alpha: Self,
        a: Factor<Self>,
        b: Factor<Self>,
        add: bool,
        c: Target<Self>,
        par: Par,
    );

    /// B <- op(T)^-1 B, with T an n x n triangle, conjugated if `conj`.
    ///
    /// # Safety
    /// B is n x nrhs and writable, and does not overlap the triangle.
    unsafe fn substitute(
        tri: (Triangle, bool),
        conj: bool,
        a: Strided<*const Self>,
        b: Strided<*mut Self>,
        shape: (usize, usize),
        par: Par,
    );

    /// A = U diag(s) V^H; false without convergence. With `to` go U, V, and whether they are square (else
    /// thin); without, only the values are computed. `divide` says whether large bidiagonal matrices are divided
    /// and conquered (else QR iterations throughout).
    ///
    /// # Errors
    /// `Memory`.
    ///
    /// # Safety
    /// A is m x n, s has min(m, n) elements, U and V have m and n rows.
    unsafe fn bidiagonal_svd(
        shape: (usize, usize),
        a: Strided<*const Self>,
        s: *mut Self,
        to: Option<(Strided<*mut Self>, Strided<*mut Self>, bool)>,
        divide: bool,
        par: Par,
    ) -> Result<bool, DenseError>;
}

fn conjugated(flag: bool) -> Conj {
    if flag { Conj::Yes } else { Conj::No }
}

impl<T: blas::Svd + ComplexField> Provider for T {
    // One copy per type, however many callers take part in it.
    #[inline(never)]
    unsafe fn product(
        (m, n, k): (usize, usize, usize),
        alpha: Self,
        a: Factor<Self>,
        b: Factor<Self>,
        add: bool,
        c: Target<Self>,
        par: Par,
    ) {
        // SAFETY: the caller vouches for the three memory regions, and that C overlaps neither factor.
        let (lhs, rhs, dst) = unsafe {
            (
                MatRef::from_raw_parts(a.ptr, m, k, a.row, a.col),
                MatRef::from_raw_parts(b.ptr, k, n, b.row, b.col),
                MatMut::from_raw_parts_mut(c.ptr, m, n, c.row, c.col),
            )
        };
        let accum = if add { Accum::Add } else { Accum::Replace };
        clearing(|| {
            matmul_with_conj(dst, accum, lhs, conjugated(a.conj), rhs, conjugated(b.conj), alpha, par)
        });
    }

    #[inline(never)]
    unsafe fn substitute(
        tri: (Triangle, bool),
        conj: bool,
        a: Strided<*const Self>,
        b: Strided<*mut Self>,
        (n, nrhs): (usize, usize),
        par: Par,
    ) {
        // SAFETY: the caller's promise.
        let (a, b) = unsafe {
            (
                MatRef::from_raw_parts(a.ptr, n, n, a.row, a.col),
                MatMut::from_raw_parts_mut(b.ptr, n, nrhs, b.row, b.col),
            )
        };
        let conj = conjugated(conj);
        clearing(|| match tri {
            (Triangle::Lower, false) => solve_lower_triangular_in_place_with_conj(a, conj, b, par),
            (Triangle::Lower, true) => solve_unit_lower_triangular_in_place_with_conj(a, conj, b, par),
            (Triangle::Upper, false) => solve_upper_triangular_in_place_with_conj(a, conj, b, par),
            (Triangle::Upper, true) => solve_unit_upper_triangular_in_place_with_conj(a, conj, b, par),
        });
    }

    #[inline(never)]
    unsafe fn bidiagonal_svd(
        (m, n): (usize, usize),
        a: Strided<*const Self>,
        s: *mut Self,
        to: Option<(Strided<*mut Self>, Strided<*mut Self>, bool)>,
        divide: bool,
        par: Par,
    ) -> Result<bool, DenseError> {
        let k = m.min(n);
        let vectors = match to {
            None => ComputeSvdVectors::No,
            Some((.., false)) => ComputeSvdVectors::Thin,
            Some((.., true)) => ComputeSvdVectors::Full,
        };
        // SAFETY: the caller's promise.
        let (a, s) = unsafe {
            (MatRef::from_raw_parts(a.ptr, m, n, a.row, a.col), ColMut::from_raw_parts_mut(s, k, 1))
        };
        // SAFETY: as above.
        let matrix = |x: Strided<*mut Self>, rows: usize, full: bool| unsafe {
            MatMut::from_raw_parts_mut(x.ptr, rows, if full { rows } else { k }, x.row, x.col)
        };
        let (u, v) = match to {
            Some((u, v, full)) => (Some(matrix(u, m, full)), Some(matrix(v, n, full))),
            None => (None, None),
        };
        let mut params = Spec::<SvdParams, T>::default();
        if !divide {
            params.config.recursion_threshold = usize::MAX;
        }
        let request = svd_scratch::<T>(m, n, vectors, vectors, par, params);
        with_stack(request, |stack| svd(a, s.as_diagonal_mut(), u, v, par, stack, params).is_ok())
    }
}
