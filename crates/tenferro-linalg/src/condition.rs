//! How far a matrix is from a singular one: its rank and its condition number.

use crate::{
    lu::LuFactor,
    matrix::{diagonal, enlarge, expect_square_var, floating, leading, number},
    norm::{MatrixNorm, matrix_norm},
    solve::solve,
    stop_gradient::stop_gradient,
    svd::svdvals,
};
use tenferro_core_ops::{Dim, Extent, Var, apply_n, build};
use tenferro_tensor::{DType, Error, Result};

/// Which singular values count as zero: those that are not larger than `max(atol, rtol s_1)`, with the
/// largest one, `s_1`.
///
/// ```
/// use tenferro_linalg::Tolerance;
/// let t = Tolerance { atol: 1e-8, ..Tolerance::default() };
/// assert_eq!(t.rtol, None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Tolerance {
    /// Relative to the largest singular value. If `None`, `max(m, n) eps` for an `m x n` matrix with the
    /// rounding error eps of its dtype, or 0 if `atol` is given.
    pub rtol: Option<f64>,
    /// Absolute.
    pub atol: f64,
}

impl Tolerance {
    /// Only a relative tolerance.
    pub fn relative(rtol: f64) -> Self {
        Tolerance { rtol: Some(rtol), atol: 0.0 }
    }

    pub(crate) fn check(&self, op: &'static str) -> Result<()> {
        for (name, v) in [("rtol", self.rtol.unwrap_or(0.0)), ("atol", self.atol)] {
            if v.is_nan() || v < 0.0 {
                return Err(Error::argument(op, name, v, "a number of at least 0"));
            }
        }
        Ok(())
    }

    /// Which of the descending singular values `s` of `m x n` matrices count.
    pub(crate) fn counting(&self, s: &Var, [m, n]: [&Dim; 2]) -> Var {
        let k = s.extent(0);
        // Of no singular values, the largest is 0.
        let some =
            if k.as_lit().is_some_and(|k| k > 0) { s.clone() } else { enlarge(s, &[k.add(&Dim::Lit(1))]) };
        let first = leading(&some, 0, &Dim::Lit(1));
        let relative = match self.rtol {
            Some(rtol) => &first * rtol,
            None if self.atol > 0.0 => &first * 0.0,
            None => {
                let eps = if s.dtype() == DType::F32 { f32::EPSILON as f64 } else { f64::EPSILON };
                &first * &(number(s.dtype(), &Extent::max(m, n)) * eps)
            }
        };
        s.greater(&relative.maximum(&relative.like(self.atol)))
    }
}

/// The number of singular values of each matrix that do not count as zero, an i64; see [`Tolerance`]. It has
/// no derivative. Axes from 2 on are batch axes.
///
/// # Errors
/// As [`svd`](crate::ops::svd); a tolerance that is negative or NaN.
pub fn matrix_rank(a: &Var, tolerance: Tolerance) -> Var {
    let count = || {
        tolerance.check("matrix_rank")?;
        let a = stop_gradient(&floating(a));
        let s = svdvals(&a);
        s.ok()?;
        let counting = tolerance.counting(&s, [&a.extent(0), &a.extent(1)]);
        Ok(counting.cast(DType::I64).reduce_sum(Some(&[0])))
    };
    Var::from(count())
}

/// The condition number `|A| |A^-1|` of each matrix; for [`MatrixNorm::Two`] of a rectangular one, too,
/// `s_1 / s_k`, and `s_k / s_1` for [`MatrixNorm::MinusTwo`]. Of a singular matrix it is infinite, with
/// derivative 0. Axes from 2 on are batch axes.
///
/// # Errors
/// Fewer than two axes; for other norms than those two, a matrix that is not square; as
/// [`matrix_norm`](crate::ops::matrix_norm).
pub fn cond(a: &Var, norm: MatrixNorm) -> Var {
    Var::from(try_cond(a, norm))
}

fn try_cond(a: &Var, norm: MatrixNorm) -> Result<Var> {
    let a = &floating(a);
    let first: Option<&[usize]> = Some(&[0]);
    let extremes = || {
        let s = svdvals(a);
        let (most, least) = (s.reduce_max(first), s.reduce_min(first));
        most.ok()?;
        Ok::<_, Error>((most, least))
    };
    match norm {
        MatrixNorm::Two => {
            let (most, least) = extremes()?;
            Ok(quotient(&most, &least))
        }
        MatrixNorm::MinusTwo => {
            let (most, least) = extremes()?;
            Ok(quotient(&least, &most))
        }
        MatrixNorm::Nuclear => {
            expect_square_var("cond", a)?;
            let s = svdvals(a);
            let inverse = quotient(&s.like(1.0), &s).reduce_sum(first);
            Ok(s.reduce_sum(first) * inverse)
        }
        norm => {
            let n = expect_square_var("cond", a)?;
            let factors = apply_n(&LuFactor { hint: true }, &[&stop_gradient(a)], 2);
            let pivots = diagonal(&factors[0]);
            let zeros = pivots.equal(&pivots.like(0.0)).reduce_sum(first);
            let singular = zeros.greater(&zeros.like(0.0));
            let one = build::eye(a.dtype(), &n).batch_like(a);
            // In place of a singular matrix, one that has an inverse.
            let regular = singular.expand_dims(&[0, 1]).select(&one, a);
            let product = matrix_norm(&regular, norm) * matrix_norm(&solve(&regular, &one), norm);
            Ok(singular.select(&product.like(f64::INFINITY), &product))
        }
    }
}

/// `x / y`, and infinity, a constant, where y is 0.
fn quotient(x: &Var, y: &Var) -> Var {
    let zero = y.equal(&y.like(0.0));
    let y = zero.select(&y.like(1.0), y);
    zero.select(&y.like(f64::INFINITY), &(x / &y))
}
