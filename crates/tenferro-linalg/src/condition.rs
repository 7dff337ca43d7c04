//! How far a matrix is from a singular one.

use crate::{
    lu::LuFactor,
    matrix::{checked_square, diagonal, floating},
    named::called,
    norm::{MatrixNorm, matrix_norm},
    range::in_range,
    solve::solve,
    stop_gradient::stop_gradient,
    svd::svdvals,
};
use tenferro_core_ops::{Var, apply_n, build};
use tenferro_tensor::{Error, Result};

/// The condition number `|A| |A^-1|` of each matrix; for [`MatrixNorm::Two`] of a rectangular one, too,
/// `s_1 / s_k`, and `s_k / s_1` for [`MatrixNorm::MinusTwo`]. Of a singular matrix it is infinite, with
/// derivative 0; for `MinusTwo` it is 0. Axes from 2 on are batch axes.
///
/// For [`MatrixNorm::Two`] and [`MatrixNorm::MinusTwo`] the derivative exists where the largest and the
/// smallest singular value are single ones. The others, [`MatrixNorm::Nuclear`] with them, ask for no gaps.
///
/// # Errors
/// Fewer than two axes; for other norms than those two, a matrix that is not square; as
/// [`matrix_norm`](crate::ops::matrix_norm).
pub fn cond(a: &Var, norm: MatrixNorm) -> Var {
    called("cond", [a], || try_cond(a, norm))
}

fn try_cond(a: &Var, norm: MatrixNorm) -> Result<Var> {
    let a = floating(a);
    let two = matches!(norm, MatrixNorm::Two | MatrixNorm::MinusTwo);
    let a = if two { a } else { checked_square("cond", &a)? };
    // The number is that of any multiple of A.
    let (a, _) = &in_range(&a)?;
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
        norm => {
            let factors = apply_n(&LuFactor { hint: true }, &[&stop_gradient(a)], 2);
            let pivots = diagonal(&factors[0]);
            let zeros = pivots.equal(&pivots.like(0.0)).reduce_sum(first);
            let singular = zeros.greater(&zeros.like(0.0));
            let one = build::eye(a.dtype(), &a.extent(0)).batch_like(a);
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
