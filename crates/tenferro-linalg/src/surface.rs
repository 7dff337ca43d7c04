//! Linear algebra as methods of all four kinds of tensor, and of the CPU session.

// A row with one result needs no `?` around its last step.
#![allow(clippy::needless_question_mark)]

use crate::{
    Limits, MatrixNorm, QrOptions, SpectralFunction, Svd, System, Tolerance, Triangular, VectorNorm, ops,
};
use tenferro_core_ops::{Out, Var};
use tenferro_cpu::CpuExecSession;
use tenferro_runtime::{Tensor, TensorRead, execute, surfaces, tier::Recorded};
use tenferro_tensor::Result;

surfaces! {
    traits LinalgRecorded, LinalgOps, TypedLinalgOps;

    /// `(U, s, Vh)` with `A = U diag(s) Vh` for an `m x n` matrix and `k = min(m, n)`: U is `m x k`, s real
    /// and descending, Vh is `k x n`; in each column of U the largest component is real and positive. Axes
    /// from 2 on are batch axes. NaN and infinities are errors. Inside a multiplet only first derivatives are
    /// right, and of what does not depend on its basis even when it splits; see [`svd`](crate::ops::svd).
    fn svd(a) -> [T, R, T] = listed(ops::svd(a));
    /// As `svd`, with U and Vh completed to unitary matrices, `m x m` and `n x n`.
    fn svd_full(a) -> [T, R, T] = listed(ops::svd_full(a));
    /// The singular values, descending, without vectors. Their first derivative needs no gaps between them; the
    /// second one is wrong inside of a multiplet, see [`svdvals`](crate::ops::svdvals).
    fn svdvals(a) -> [R] = ops::svdvals(a);
    /// `(U, s, Vh, w)`: the singular values that `limits` (a [`Truncation`](crate::Truncation), or
    /// [`Limits`]) keep, their vectors, and the discarded fraction of the sum of squares, w. A multiplet is
    /// cut only if it is the first and has more members than the largest rank; a batch has one rank: see
    /// [`svd_truncated`](crate::ops::svd_truncated).
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
    /// `(w, V)` with `A = V diag(w) V^H` for the Hermitian matrix of which the lower triangle is given: w
    /// real and ascending, V unitary; in each column of V the largest component is real and positive. Axes
    /// from 2 on are batch axes. Tangents count by their Hermitian parts, cotangents are Hermitian. NaN and
    /// infinities are errors. Inside a multiplet only first derivatives are right, and of what does not
    /// depend on its basis even when it splits; see [`eigh`](crate::ops::eigh).
    fn eigh(a) -> [R, T] = paired(ops::eigh(a));
    /// The eigenvalues of `eigh`, ascending, without vectors. Their first derivative needs no gaps between them;
    /// the second one is wrong inside of a multiplet, see [`eigvalsh`](crate::ops::eigvalsh).
    fn eigvalsh(a) -> [R] = ops::eigvalsh(a);
    /// `(w, V)` with `A V = B V diag(w)` and `V^H B V = 1` for a Hermitian A and a positive definite B: w
    /// real and ascending. Batch axes are aligned, dtypes promoted. Of both, the lower triangle is given;
    /// tangents count by their Hermitian parts.
    fn eigh_generalized(a, b: T) -> [R, T] = paired(ops::eigh_generalized(a, b));
    /// `(w, V)` with `A V = V diag(w)`, both complex: columns of V have length 1 and a positive component of
    /// the largest modulus; w is in no order, but pairs of conjugates stand together. Axes from 2 on are
    /// batch axes. NaN and infinities are errors; defective matrices have no derivative. Inside a multiplet
    /// only first derivatives are right, and of what does not depend on its basis even when it splits; see
    /// [`eig`](crate::ops::eig).
    fn eig(a) -> [C, C] = paired(ops::eig(a));
    /// The eigenvalues of `eig`, without vectors and perhaps in another order. Their first derivative needs no
    /// gaps between them; the second one is wrong inside of a multiplet, see [`eigvals`](crate::ops::eigvals).
    fn eigvals(a) -> [C] = ops::eigvals(a);
    /// `(p, L, U)` with `A[p, :] = L U`: p an i64 vector, L `m x k` lower triangular with diagonal 1, U
    /// `k x n` upper triangular.
    fn lu(a) -> [I, T, T] = listed(ops::lu(a));
    /// `(packed, p)`: the factors of `lu` in one matrix, L below the diagonal and U on and above it, and the
    /// permutation.
    fn lu_factor(a) -> [T, I] = {
        let (packed, p) = ops::lu_factor(a);
        [packed, p]
    };
    /// The solution of the system with A from its packed factors and permutation.
    fn lu_solve(packed, p: I, b: T; system: System) -> [T] = ops::lu_solve(packed, p, b, system);
    /// `(L, U, p, q)` with `A[p, :][:, q] = L U`: L `m x k` lower triangular with diagonal 1, U `k x n` upper
    /// triangular, whose diagonal falls to zero after the rank of A; p and q i64 vectors.
    fn lu_full_pivot(a) -> [T, T, I, I] = {
        let (l, u, p, q) = ops::lu_full_pivot(a);
        [l, u, p, q]
    };
    /// The solution of the system with A from `l`, `u`, `p` and `q` with `A[p, :][:, q] = L U`.
    fn lu_full_pivot_solve(l, u: T, p: I, q: I, b: T; system: System) -> [T] =
        ops::lu_full_pivot_solve(l, u, p, q, b, system);
    /// `(Q, R)` with `A = Q R` for an `m x n` matrix and `k = min(m, n)`: Q is `m x k` with orthonormal
    /// columns, R `k x n`, upper triangular with a real diagonal of either sign.
    fn qr(a) -> [T, T] = <[Var; 2]>::from(ops::qr(a));
    /// As `qr`, with Q completed to a unitary `m x m` matrix and R to `m x n`.
    fn qr_full(a) -> [T, T] = <[Var; 2]>::from(ops::qr_full(a));
    /// As `qr`, of the sizes and signs of `options`.
    fn qr_with(a; options: QrOptions) -> [T, T] = <[Var; 2]>::from(ops::qr_with(a, options));
    /// `(Q, R, p)` with `A[:, p] = Q R`: p an i64 vector, `|R_ii|` not increasing.
    fn qr_pivoted(a) -> [T, T, I] = listed(ops::qr_pivoted(a));
    /// As `qr_pivoted`, of the sizes and signs of `options`.
    fn qr_pivoted_with(a; options: QrOptions) -> [T, T, I] = listed(ops::qr_pivoted_with(a, options));
    /// `(packed, tau)`: R on and above the diagonal, below it the reflectors of `Q = H_1 .. H_k`, `H_i = I -
    /// tau_i v_i v_i^H`, as LAPACK keeps them.
    fn householder(a) -> [T, T] = <[Var; 2]>::from(ops::householder(a));
    /// The first min(m, n) columns of `H_1 .. H_k` for reflectors below the diagonal of an `m x n` matrix.
    fn householder_product(packed, tau: T) -> [T] = ops::householder_product(packed, tau);
    /// `Q C` with the unitary `Q = H_1 .. H_k`, or with its transpose or adjoint, or with it on the right, as
    /// `system` says. If `c` has one axis, it is a vector, and so is the product.
    fn householder_apply(packed, tau: T, c: T; system: System) -> [T] =
        ops::householder_apply(packed, tau, c, system);
    /// `householder` of `[A B]` from that of A and new columns B, without repeating the work on A. If `b` has
    /// one axis, it is one column.
    fn householder_append(packed, tau: T, b: T) -> [T, T] =
        <[Var; 2]>::from(ops::householder_append(packed, tau, b));
    /// `(X, residuals, rank, s)`: X of the smallest norm among those that minimise `|A X - B|`, the sums of
    /// `|A X - B|^2` over columns, the numerical rank of A, an i64, and its singular values. If `b` has one
    /// axis, it is a vector, and so is X, for every matrix of a batch.
    fn lstsq(a, b: T; tolerance: Tolerance) -> [T, R, I, R] = <[Var; 4]>::from(ops::lstsq(a, b, tolerance));
    /// The solution of `A X = B`. If `b` has one axis, it is a vector, and so is the solution, for every
    /// matrix of a batch. A singular matrix is an error.
    fn solve(a, b: T) -> [T] = ops::solve(a, b);
    /// As `solve`, with the unknown on either side, and the transpose or the adjoint of A in its place.
    fn solve_with(a, b: T; system: System) -> [T] = ops::solve_with(a, b, system);
    /// The solution of `T X = B`, or of another form of the system, for a triangle T of a matrix, of which
    /// nothing else is read.
    fn triangular_solve(t, b: T; form: Triangular) -> [T] = ops::triangular_solve(t, b, form);
    /// `A^-1`. A singular matrix is an error.
    fn inv(a) -> [T] = ops::inv(a);
    /// The determinant, with derivatives up to the ninth that are right at singular matrices.
    fn det(a) -> [T] = ops::det(a);
    /// `(sign, log)` with `det A = sign exp(log)`: the sign is 1 or -1, or a phase, the logarithm real. For a
    /// singular matrix they are 0 and -infinity.
    fn slogdet(a) -> [T, R] = {
        let (sign, log) = ops::slogdet(a);
        [sign, log]
    };
    /// The lower triangular L, with positive diagonal, of `A = L L^H`. Only the lower triangle of A is read,
    /// but the derivative is that of the factor of `(A + A^H) / 2`. A matrix that is not positive definite is
    /// an error.
    fn cholesky(a) -> [T] = ops::cholesky(a);
    /// The solution of the system with A from the factor `l` of `A = L L^H`.
    fn cholesky_solve(l, b: T; system: System) -> [T] = ops::cholesky_solve(l, b, system);
    /// `f(A) = U f(s) V^H`, a function of the singular values s (not of eigenvalues: for a Hermitian A with
    /// eigenvalues below 0, f is continued as an odd function), with derivatives that are right at every
    /// degeneracy. Where a singular value is 0, f must be 0.
    fn spectral(a; f: &SpectralFunction) -> [T] = ops::spectral(a, f);
    /// The norm of vectors along some axes, `(sum |x|^p)^(1/p)` and its limits; a number p is that norm of
    /// all elements. See [`VectorNorm`](crate::VectorNorm).
    fn vector_norm(a; norm: impl Into<VectorNorm>) -> [R] = ops::vector_norm(a, norm);
    /// The norm of each matrix.
    fn matrix_norm(a; norm: MatrixNorm) -> [R] = ops::matrix_norm(a, norm);
    /// The condition number `|A| |A^-1|` of each matrix, infinite for a singular one (but 0 in the norm
    /// [`MinusTwo`](crate::MatrixNorm::MinusTwo)). In the norms
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
    /// The matrix exponential, with derivatives up to the eighth.
    fn matrix_exp(a) -> [T] = ops::matrix_exp(a);
    /// `A^n` for any integer n: a power of the inverse if n is negative, and the identity for 0.
    fn matrix_power(a; n: i64) -> [T] = ops::matrix_power(a, n);
    /// The Kronecker product, the matrix of the blocks `a_ij B`. Axes from 2 on are batch axes.
    fn kron(a, b: T) -> [T] = ops::kron(a, b);
    /// The sum of the diagonal of each matrix.
    fn trace(a) -> [T] = ops::trace(a);
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
