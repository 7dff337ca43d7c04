//! The pseudo-inverse.
//!
//! Derivative of `P = A^+` where the rank is constant (G. H. Golub and V. Pereyra, "The differentiation of
//! pseudo-inverses and nonlinear least squares problems whose variables separate", SIAM J. Numer. Anal. 10,
//! 1973):
//!
//! ```text
//! dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P
//! ```
//!
//! It asks for no gaps between singular values, so it is right at every degeneracy, and it holds in a
//! neighbourhood, so it may be differentiated again. `P` here is the pseudo-inverse of what is left of A when
//! the singular values that count as zero are zero.

use crate::{
    batch::expect_matrix,
    matrix::{floating, scale_columns},
    named::called,
    range::in_range,
    rank::Tolerance,
    svd::svd,
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Outs, Primitive, Real, Saves, Tangent, Var, apply1,
    ops::{FLOATS, expect},
};
use tenferro_tensor::Result;

/// `A^+ = V s^-1 U^H` over the singular values that count; see [`Tolerance`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pinv {
    /// [`Tolerance::rtol`].
    pub rtol: Option<Real>,
    /// [`Tolerance::atol`].
    pub atol: Real,
}

impl Primitive for Pinv {
    const NAME: &'static str = "pinv";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        let [m, n] = expect_matrix(Self::NAME, x, 0)?;
        Ok(smallvec![Aval::new(x[0].dtype, [n, m].into_iter().chain(&x[0].shape[2..]).cloned())])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let (scaled, c) = match in_range(&x[0]) {
            Ok(both) => both,
            Err(e) => return Some(smallvec![Var::Failed(e)]),
        };
        let (u, s, vh) = svd(&scaled);
        let tolerance = Tolerance { rtol: self.rtol.map(|r| r.0), atol: self.atol.0 };
        let [inverse, _] = tolerance.of(&x[0], &s, &c);
        Some(smallvec![scale_columns(&vh.adjoint(), &inverse).matmul(&u.adjoint())])
    }
    // In the order of products that is best for a tall matrix.
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let Some(da) = &t[0] else { return smallvec![None] };
        let (a, p) = (&x[0], &y[0]);
        let (dah, ph) = (da.adjoint(), p.adjoint());
        let inside = p.matmul(da).matmul(p);
        let rows = &dah - &dah.matmul(a).matmul(p);
        let turned = dah.matmul(&ph).matmul(p);
        let columns = &turned - &p.matmul(a).matmul(&turned);
        smallvec![Some(p.matmul(&ph).matmul(&rows) + columns - inside)]
    }
    fn saves(&self) -> Saves {
        Saves::ALL
    }
}

/// The pseudo-inverse `A^+` of Moore and Penrose, `n x m` for an `m x n` matrix. Singular values that count
/// as zero by `tolerance` are left out; the derivative is that at constant rank, as if they were zero, and is a
/// number where the elements of `A^+ A^+^H` are. Axes from 2 on are batch axes.
///
/// # Errors
/// As [`svd`](crate::ops::svd); a tolerance that is negative or NaN.
pub fn pinv(a: &Var, tolerance: Tolerance) -> Var {
    called(Pinv::NAME, [a], || {
        tolerance.check(Pinv::NAME)?;
        let a = floating(a);
        let op = Pinv { rtol: tolerance.rtol.map(Real), atol: Real(tolerance.atol) };
        let extents = || (a.extent(0).as_lit(), a.extent(1).as_lit());
        let wide = a.rank() >= 2 && matches!(extents(), (Some(m), Some(n)) if m < n);
        Ok(if wide { apply1(&op, &[&a.adjoint()]).adjoint() } else { apply1(&op, &[&a]) })
    })
}
