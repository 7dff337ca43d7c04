//! Linear algebra as methods of all four kinds of tensor, and of the CPU session.

// A row with one result needs no `?` around its last step.
#![allow(clippy::needless_question_mark)]

use crate::{Limits, SpectralFunction, Svd, ops};
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
    /// `(w, V)` with `A = V diag(w) V^H` for the Hermitian matrix of which the lower triangle is given: w real and
    /// ascending, V unitary. Axes from 2 on are batch axes. Tangents count by their Hermitian parts, cotangents
    /// are Hermitian. NaN and infinities are errors.
    fn eigh(a) -> [R, T] = paired(ops::eigh(a));
    /// The eigenvalues of `eigh`, ascending. Their derivative needs no gaps between them.
    fn eigvalsh(a) -> [R] = ops::eigvalsh(a);
    /// `(w, V)` with `A V = V diag(w)`, both complex: columns of V have length 1 and a positive component of
    /// the largest modulus; w is in no order, but pairs of conjugates stand together. Axes from 2 on are batch
    /// axes. NaN and infinities are errors; defective matrices have no derivative.
    fn eig(a) -> [C, C] = paired(ops::eig(a));
    /// The eigenvalues of `eig`. Their derivative needs no gaps between them.
    fn eigvals(a) -> [C] = ops::eigvals(a);
    /// `(p, L, U)` with `A[p, :] = L U`: p an i64 vector, L `m x k` lower triangular with diagonal 1, U
    /// `k x n` upper triangular.
    fn lu(a) -> [I, T, T] = listed(ops::lu(a));
    /// The solution of `A X = B`. If `b` has one axis, it is a vector, and so is the solution. A singular
    /// matrix is an error.
    fn solve(a, b: T) -> [T] = ops::solve(a, b);
    /// `f(A) = U f(s) V^H`, with derivatives that are right at every degeneracy.
    fn spectral(a; f: &SpectralFunction) -> [T] = ops::spectral(a, f);
}

fn paired((a, b): (Var, Var)) -> [Var; 2] {
    [a, b]
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
