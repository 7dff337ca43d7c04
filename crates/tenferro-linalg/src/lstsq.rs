//! Least squares, `min |A X - B|` with the smallest `|X|`: `X = A^+ B` by the singular value decomposition of
//! A.
//!
//! Derivative where the rank is constant (G. H. Golub and V. Pereyra, SIAM J. Numer. Anal. 10 (1973)), with
//! `P = A^+`:
//!
//! ```text
//! dX = P dB - P dA X + P P^H dA^H (B - A X) + (1 - P A) dA^H P^H X
//! ```
//!
//! The decomposition is a hint that no rule differentiates, so this is right for multiplets of singular
//! values and for any rank; products with P and P^H are the same operation, so it holds to any order.

use crate::{
    batch::{expect_matrix, expect_stack},
    matrix::{over_columns, scale_rows},
    named::called,
    range::in_range,
    rank::Tolerance,
    stop_gradient::stop_gradient,
    svd::svd,
    system::{Kind, aligned},
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Arg, Aval, Extent, Fresh, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{FLOATS, expect},
};
use tenferro_tensor::Result;

/// `A^+ B`, or `A^+H B` if `adjoint`. Inputs: A; U, the reciprocals of the singular values that are not zero,
/// and Vh of its thin decomposition, which no rule differentiates; B.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LeastSquares {
    /// Whether B is multiplied by the adjoint of the pseudoinverse.
    pub adjoint: bool,
}

impl Primitive for LeastSquares {
    const NAME: &'static str = "lstsq";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 5, FLOATS)?;
        let [m, n] = expect_matrix(Self::NAME, x, 0)?;
        let [rows, columns] = expect_matrix(Self::NAME, x, 4)?;
        let (k, dtype, batch) = (D::min(m, n), x[0].dtype, &x[0].shape[2..]);
        expect_stack(Self::NAME, "U", x[1], dtype, &[m, &k], batch)?;
        expect_stack(Self::NAME, "reciprocals", x[2], dtype.real(), &[&k], batch)?;
        expect_stack(Self::NAME, "Vh", x[3], dtype, &[&k, n], batch)?;
        let (from, to) = if self.adjoint { (n, m) } else { (m, n) };
        D::equal(Self::NAME, "rows of the right-hand side", rows, from)?;
        expect_stack(Self::NAME, "right-hand side", x[4], dtype, &[from, columns], batch)?;
        Ok(smallvec![Aval::new(dtype, [to, columns].into_iter().chain(batch).cloned())])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let (u, w, vh, b) = (&x[1], &x[2], &x[3], &x[4]);
        Some(smallvec![if self.adjoint {
            u.matmul(&scale_rows(w, &vh.matmul(b)))
        } else {
            vh.adjoint().matmul(&scale_rows(w, &u.adjoint().matmul(b)))
        }])
    }
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let p = |b: &Var| apply1(self, &[&x[0], &x[1], &x[2], &x[3], b]);
        let Some(da) = &t[0] else { return smallvec![t[4].as_ref().map(p)] };
        let op = LeastSquares { adjoint: !self.adjoint };
        let ph = |b: &Var| apply1(&op, &[&x[0], &x[1], &x[2], &x[3], b]);
        // For the adjoint, the rule of A^H.
        let (a, da) = if self.adjoint { (x[0].adjoint(), da.adjoint()) } else { (x[0].clone(), da.clone()) };
        let (b, y) = (&x[4], &y[0]);
        let outside = da.adjoint().matmul(&ph(y));
        let residual = b - &a.matmul(y);
        let inside = &ph(&da.adjoint().matmul(&residual)) - &(da.matmul(y) + a.matmul(&outside));
        let inside = t[4].as_ref().map_or(inside.clone(), |db| db + &inside);
        smallvec![Some(p(&inside) + outside)]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let adjoint = LeastSquares { adjoint: !self.adjoint };
        let [a, u, w, vh] = [0, 1, 2, 3].map(|i| x[i].known());
        let pulled = ct[0].as_ref().map(|ct| apply1(&adjoint, &[&a, &u, &w, &vh, ct]));
        smallvec![None, None, None, None, pulled]
    }
    fn saves(&self) -> Saves {
        Saves::ALL
    }
}

/// `(X, residuals, rank, s)`: X of the smallest norm among those that minimise `|A X - B|` for an `m x n`
/// matrix A; the sum of `|A X - B|^2` over every column, real; the numerical rank of A, an i64; and its
/// singular values. If `b` has one axis, it is a vector, so is X, and the residuals are one number, for each
/// matrix of a batch; else its first two axes are a matrix of right-hand sides. Axes from 2 on are batch
/// axes, aligned there. Dtypes are promoted.
///
/// Derivatives are those at constant rank, of any order. NaN and infinities of B propagate to X and to the
/// residuals.
///
/// # Errors
/// Fewer than two axes of A; a number of rows that does not fit; an element of A that is NaN or infinite; a
/// tolerance that is negative or NaN.
pub fn lstsq(a: &Var, b: &Var, tolerance: Tolerance) -> (Var, Var, Var, Var) {
    const NAME: &str = LeastSquares::NAME;
    called(NAME, [a, b], || {
        tolerance.check(NAME)?;
        let vector = b.rank() == 1;
        let b = if vector { b.expand_dims(&[1]) } else { b.clone() };
        let x = aligned(NAME, &[(a, Kind::Matrix), (&b, Kind::Matrix)])?;
        let [a, b] = [&x[0], &x[1]];
        let (scaled, c) = in_range(a)?;
        let (u, s, vh) = svd(&scaled);
        s.ok()?;
        let [u, vh] = [&u, &vh].map(stop_gradient);
        let [inverses, rank] = tolerance.of(a, &s, &c);
        let s = s / over_columns(&c);
        let x = apply1(&LeastSquares { adjoint: false }, &[a, &u, &inverses, &vh, b]);
        x.ok()?;
        let off = &a.matmul(&x) - b;
        let squares = (&off.conj() * &off).real().reduce_sum(Some(&[0]));
        let (x, squares) = if vector { (x.squeeze(&[1]), squares.squeeze(&[0])) } else { (x, squares) };
        Ok((x, squares, rank, s))
    })
}
