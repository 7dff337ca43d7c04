//! The polar decomposition, `A = U P`.
//!
//! `U = V W^H` for `A = V s W^H`: the function 1 of the singular values, whose divided differences
//! `2 / (s_i + s_j)` solve the Lyapunov equation of its derivative. So this is right at every degeneracy.

use crate::{
    divided::SpectralFunction, hermitian::hermitian_part, matrix::floating, named::called, spectral::spectral,
};
use tenferro_core_ops::Var;

/// `(U, P)` with `A = U P` for an `m x n` matrix: `P = (A^H A)^1/2`, `n x n`, is Hermitian and positive
/// semidefinite; the columns of U are orthonormal if `m >= n`, its rows if `m <= n`. Axes from 2 on are batch
/// axes.
///
/// Derivatives exist where A has full rank, at any multiplicity of its singular values.
///
/// For `k = min(m, n)`, U takes `O(m n k)` operations and `O(m n)` memory, and P the `m n^2` and `n^2` of a
/// product. A derivative of U costs as much as one of [`spectral`](crate::ops::spectral): of order 1, in
/// forward and in reverse mode, `O(m n k)` operations and `O(m n)` memory.
///
/// # Errors
/// As [`svd`](crate::ops::svd).
pub fn polar(a: &Var) -> (Var, Var) {
    called("polar", [a], || {
        let a = floating(a);
        let u = spectral(&a, &SpectralFunction::sign());
        let p = u.adjoint().matmul(&a);
        Ok((u, hermitian_part(&p)))
    })
}
