//! Linear algebra as methods of all four kinds of tensor, and of the CPU session.

// A row with one result needs no `?` around its last step.
#![allow(clippy::needless_question_mark)]

use crate::{Limits, MatrixNorm, SpectralFunction, Svd, Tolerance, VectorNorm, ops};
use tenferro_core_ops::{Out, Var};
use tenferro_cpu::CpuExecSession;
use tenferro_runtime::{Tensor, TensorRead, execute, surfaces, tier::Recorded};
use tenferro_tensor::Result;

surfaces! {
    traits LinalgRecorded, LinalgOps, TypedLinalgOps;

    /// `(U, s, Vh)` with `A = U diag(s) Vh` for an `m x n` matrix and `k = min(m, n)`: U is `m x k`, s real
    /// and descending, Vh is `k x n`. Axes from 2 on are batch axes. NaN and infinities are errors.
    fn svd(a) -> [T, R, T] = listed(ops::svd(a));
    /// As `svd`, with U and Vh completed to unitary matrices, `m x m` and `n x n`.
    fn svd_full(a) -> [T, R, T] = listed(ops::svd_full(a));
    /// The singular values, descending. Their derivative needs no gaps between them.
    fn svdvals(a) -> [R] = ops::svdvals(a);
    /// `(U, s, Vh, w)`: the singular values that `limits` (a [`Truncation`](crate::Truncation), or
    /// [`Limits`]) keep, their vectors, and the discarded fraction of the sum of squares, w.
    fn svd_truncated(a; limits: impl Into<Limits>) -> [T, R, T, R] = {
        let (u, s, vh, w) = ops::svd_truncated(a, limits);
        [u, s, vh, w]
    };
    /// `(A1, A2)` with `A ~ A1 A2`, `A1 = U s^1/2` and `A2 = s^1/2 V^H` for the singular values that `limits`
    /// keep. The basis of the bond is a gauge: derivatives of what does not depend on it are right at every
    /// degeneracy.
    fn split(a; limits: impl Into<Limits>) -> [T, T] = {
        let (left, right) = ops::split(a, limits);
        [left, right]
    };
    /// `(p, L, U)` with `A[p, :] = L U`: p an i64 vector, L `m x k` lower triangular with diagonal 1, U
    /// `k x n` upper triangular.
    fn lu(a) -> [I, T, T] = listed(ops::lu(a));
    /// The solution of `A X = B`. If `b` has one axis, it is a vector, and so is the solution. A singular
    /// matrix is an error.
    fn solve(a, b: T) -> [T] = ops::solve(a, b);
    /// `f(A) = U f(s) V^H`, with derivatives that are right at every degeneracy.
    fn spectral(a; f: &SpectralFunction) -> [T] = ops::spectral(a, f);
    /// The norm of vectors along some axes, `(sum |x|^p)^(1/p)` and its limits; a number p is that norm of
    /// all elements. See [`VectorNorm`](crate::VectorNorm).
    fn vector_norm(a; norm: impl Into<VectorNorm>) -> [R] = ops::vector_norm(a, norm);
    /// The norm of each matrix.
    fn matrix_norm(a; norm: MatrixNorm) -> [R] = ops::matrix_norm(a, norm);
    /// The condition number `|A| |A^-1|` of each matrix, infinite for a singular one. In the norms
    /// [`Two`](crate::MatrixNorm::Two) and [`MinusTwo`](crate::MatrixNorm::MinusTwo) a rectangular matrix has
    /// one, too: the quotient of the largest and the smallest singular value, and its reciprocal.
    fn cond(a; norm: MatrixNorm) -> [R] = ops::cond(a, norm);
    /// The number of singular values of each matrix that do not count as zero.
    fn matrix_rank(a; tolerance: Tolerance) -> [I] = ops::matrix_rank(a, tolerance);
    /// The pseudo-inverse `A^+` of Moore and Penrose, without the singular values that count as zero. Its
    /// derivative is that at constant rank.
    fn pinv(a; tolerance: Tolerance) -> [T] = ops::pinv(a, tolerance);
    /// `(U, P)` with `A = U P`: `P = (A^H A)^1/2`, and orthonormal columns (rows, if they are fewer) of U.
    fn polar(a) -> [T, T] = {
        let (u, p) = ops::polar(a);
        [u, p]
    };
    /// The matrix exponential.
    fn matrix_exp(a) -> [T] = ops::matrix_exp(a);
    /// `A^n` for any integer n: a power of the inverse if n is negative, and the identity for 0.
    fn matrix_power(a; n: i64) -> [T] = ops::matrix_power(a, n);
    /// The Kronecker product, the matrix of the blocks `a_ij B`. Axes from 2 on are batch axes.
    fn kron(a, b: T) -> [T] = ops::kron(a, b);
    /// The sum of the diagonal of each matrix.
    fn trace(a) -> [T] = ops::trace(a);
}

fn listed((a, b, c): (Var, Var, Var)) -> [Var; 3] {
    [a, b, c]
}

impl Limits {
    /// Limits that are tensors, such as inputs of a program: scalars, `max_rank` an integer.
    pub fn of<X: Recorded>(max_rank: &X, rel: &X, abs: &X, weight: &X) -> Limits {
        let [max_rank, rel, abs, weight] = [max_rank, rel, abs, weight].map(|x| x.var().clone());
        Limits { max_rank, rel, abs, weight }
    }
}

/// Linear algebra on tensors and views of a CPU session.
pub trait CpuLinalgExt {
    /// `[U, s, Vh]`; see [`svd`](LinalgOps::svd).
    ///
    /// # Errors
    /// Fewer than two axes, another placement, an element that is NaN or infinite.
    fn svd_read(&mut self, a: TensorRead<'_>) -> Result<Vec<Tensor>>;
}

impl CpuLinalgExt for CpuExecSession<'_> {
    fn svd_read(&mut self, a: TensorRead<'_>) -> Result<Vec<Tensor>> {
        execute(&Svd { full: false }, &[a], Out::New, self).map(|y| y.into_vec())
    }
}
