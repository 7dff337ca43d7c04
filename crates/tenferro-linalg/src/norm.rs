//! Norms of vectors and matrices.
//!
//! Powers are taken of the elements over the largest (for p < 0 the smallest), a constant to derivatives, for
//! the norm does not depend on it: nothing overflows or underflows that the norm itself does not.
//!
//! Derivatives are those of the norm wherever it has one, to any order. Elsewhere: at 0 they are 0, a
//! subgradient of every norm; an element that is 0 contributes nothing where p < 2 makes its modulus a kink;
//! of elements, columns, rows or singular values that are all the largest or smallest, each has its share.

use crate::{matrix::floating, named::called, stop_gradient::stop_gradient, svd::svdvals};
use smallvec::smallvec;
use tenferro_core_ops::{
    Dim, Extents, Var,
    ops::{Axes, expect_axes},
};
use tenferro_tensor::{C64, Error, Result};

/// Which norm of vectors, and which axes they lie along.
///
/// ```
/// use tenferro_linalg::VectorNorm;
/// let columns = VectorNorm { axes: Some(vec![0]), ..VectorNorm::from(1.0) };
/// assert_eq!(columns.p, 1.0);
/// assert!(!columns.keepdims);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct VectorNorm {
    /// `(sum |x|^p)^(1/p)` for any real p but 0, infinity, the largest modulus; minus infinity, the smallest;
    /// 0, the number of elements that are not 0. For p < 1 this is no norm in the mathematical sense.
    pub p: f64,
    /// The axes of one vector; all of them if `None`.
    pub axes: Option<Vec<usize>>,
    /// Whether these axes stay, with extent 1.
    pub keepdims: bool,
}

impl Default for VectorNorm {
    /// The Euclidean norm of all elements.
    fn default() -> Self {
        VectorNorm { p: 2.0, axes: None, keepdims: false }
    }
}

impl From<f64> for VectorNorm {
    /// The p-norm of all elements.
    fn from(p: f64) -> Self {
        VectorNorm { p, ..VectorNorm::default() }
    }
}

impl From<&VectorNorm> for VectorNorm {
    fn from(norm: &VectorNorm) -> Self {
        norm.clone()
    }
}

/// Which norm of a matrix. Those with `Minus` take the smallest where the others take the largest, and are no
/// norms in the mathematical sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixNorm {
    /// `(sum |a_ij|^2)^1/2`.
    Frobenius,
    /// The sum of the singular values.
    Nuclear,
    /// The largest sum of moduli of a column.
    One,
    /// The smallest sum of moduli of a column.
    MinusOne,
    /// The largest singular value.
    Two,
    /// The smallest singular value.
    MinusTwo,
    /// The largest sum of moduli of a row.
    Infinity,
    /// The smallest sum of moduli of a row.
    MinusInfinity,
}

/// Integer powers up to this one are taken as products, faster than others. The derivatives of the even ones
/// are right at 0 to every order.
const LARGEST_PRODUCT: f64 = 64.0;

/// The norm of vectors along some axes: `(sum |x|^p)^(1/p)`, and its limits; see [`VectorNorm`]. The result
/// is real. Of nothing, the norm is 0. With NaN among its elements it is NaN, and with infinities it is
/// infinite, or for p < 0 as if they had no part; for p = 0 both count as elements that are not 0.
///
/// # Errors
/// A p that is NaN; axes that do not exist or are repeated; for infinite or negative p, no elements.
pub fn vector_norm(a: &Var, norm: impl Into<VectorNorm>) -> Var {
    called("vector_norm", [a], || try_vector_norm(a, &norm.into()))
}

fn try_vector_norm(a: &Var, norm: &VectorNorm) -> Result<Var> {
    const NAME: &str = "vector_norm";
    let a = floating(a);
    let rank = a.ok()?.rank();
    if norm.p.is_nan() {
        return Err(Error::argument(NAME, "p", norm.p, "a number"));
    }
    let axes: Axes = norm.axes.as_ref().map_or_else(|| (0..rank).collect(), |axes| axes[..].into());
    expect_axes(NAME, &axes, rank)?;
    let y = p_norm(&a, norm.p, &axes);
    Ok(if norm.keepdims { y.expand_dims(&axes) } else { y })
}

fn p_norm(a: &Var, p: f64, axes: &[usize]) -> Var {
    let over = Some(axes);
    match p {
        0.0 => a.not_equal(&a.like(0.0)).cast(a.dtype().real()).reduce_sum(over),
        1.0 => a.abs().reduce_sum(over),
        f64::INFINITY => a.abs().reduce_max(over),
        f64::NEG_INFINITY => a.abs().reduce_min(over),
        p => scaled_norm(a, p, axes),
    }
}

fn scaled_norm(a: &Var, p: f64, axes: &[usize]) -> Var {
    let moduli = stop_gradient(a).abs();
    let extreme = if p > 0.0 { largest(&moduli, axes) } else { moduli.reduce_min(Some(axes)) };
    let (none, unit) = (extreme.like(0.0), extreme.like(1.0));
    let zero = extreme.equal(&none);
    let infinite = extreme.equal(&extreme.like(f64::INFINITY));
    let scale = infinite.select(&unit, &zero.select(&unit, &extreme));
    let sum = powers(a, &scale.expand_dims(axes), p).reduce_sum(Some(axes));
    // Where the norm is 0, the root must have a derivative all the same, for 0 times it to be 0.
    let sum = zero.select(&unit, &sum);
    let root = if p == 2.0 { sum.sqrt() } else { sum.pow(&Var::scalar(sum.dtype(), C64::new(1.0 / p, 0.0))) };
    zero.select(&none, &(root * scale))
}

/// The largest of non-negative numbers; of none, 0.
pub(crate) fn largest(x: &Var, axes: &[usize]) -> Var {
    if x.ok().is_err() {
        return x.clone();
    }
    let shape = x.shape();
    let of = |i: &usize| shape[*i].as_lit();
    if axes.iter().any(|i| of(i) == Some(0)) {
        return x.reduce_sum(Some(axes));
    }
    let (known, unknown): (Axes, Axes) = axes.iter().copied().partition(|i| of(i).is_some());
    let mut y = if known.is_empty() { x.clone() } else { x.reduce_max(Some(&known)) };
    // One at a time, last first, because an extent that may be 0 gets a zero more.
    let mut left: Axes = unknown.iter().map(|&i| i - known.iter().filter(|&&k| k < i).count()).collect();
    left.sort();
    for &i in left.iter().rev() {
        let rank = y.rank();
        let low: Extents<Dim> = smallvec![Dim::Lit(0); rank];
        let high: Extents<Dim> = (0..rank).map(|axis| Dim::Lit(usize::from(axis == i))).collect();
        let zero = Var::scalar(x.dtype(), C64::new(0.0, 0.0));
        y = y.pad(&zero, &low, &high, &vec![0; rank]).reduce_max(Some(&[i]));
        if y.ok().is_err() {
            break;
        }
    }
    y
}

/// `|x / scale|^p`; of 0, 0, which stands for no contribution where a derivative is meant. The scale is real,
/// and so are the quotients: an infinite complex number divided by another one is NaN.
fn powers(x: &Var, scale: &Var, p: f64) -> Var {
    if (2.0..=LARGEST_PRODUCT).contains(&p) && p.fract() == 0.0 {
        let square = if x.dtype().is_complex() {
            let (re, im) = (&x.real() / scale, &x.imag() / scale);
            &re * &re + &im * &im
        } else {
            let x = x / scale;
            &x * &x
        };
        let even = (1..p as usize / 2).fold(square.clone(), |power, _| &power * &square);
        return if p % 2.0 == 0.0 { even } else { even * (&x.abs() / scale) };
    }
    let modulus = &x.abs() / scale;
    let zero = modulus.equal(&modulus.like(0.0));
    let safe = zero.select(&modulus.like(1.0), &modulus);
    zero.select(&modulus.like(0.0), &safe.pow(&Var::scalar(safe.dtype(), C64::new(p, 0.0))))
}

/// The norm of each matrix, axes 0 and 1; see [`MatrixNorm`]. The result is real, and has the batch axes.
///
/// The derivative of the largest or smallest singular value exists where that is a single one, and that of
/// the nuclear norm where none is 0; elsewhere it is a subgradient.
///
/// Where no singular values are needed, NaN in a matrix makes its norm NaN, and an infinite element makes the
/// sum it is part of infinite.
///
/// # Errors
/// Fewer than two axes; no singular values, columns or rows to take the largest or smallest of; where
/// singular values are needed, as [`svd`](crate::ops::svd).
pub fn matrix_norm(a: &Var, norm: MatrixNorm) -> Var {
    called("matrix_norm", [a], || try_matrix_norm(a, norm))
}

fn try_matrix_norm(a: &Var, norm: MatrixNorm) -> Result<Var> {
    let a = floating(a);
    if a.rank() < 2 {
        return Err(Error::rank("matrix_norm", "rank of the matrix", a.rank(), "at least 2"));
    }
    // The modulus makes the derivative 0 where the value is.
    let values = || svdvals(&a).abs();
    let sums = |axis: usize| a.abs().reduce_sum(Some(&[axis]));
    let first: Option<&[usize]> = Some(&[0]);
    Ok(match norm {
        MatrixNorm::Frobenius => p_norm(&a, 2.0, &[0, 1]),
        MatrixNorm::Nuclear => values().reduce_sum(first),
        MatrixNorm::Two => values().reduce_max(first),
        MatrixNorm::MinusTwo => values().reduce_min(first),
        MatrixNorm::One => sums(0).reduce_max(first),
        MatrixNorm::MinusOne => sums(0).reduce_min(first),
        MatrixNorm::Infinity => sums(1).reduce_max(first),
        MatrixNorm::MinusInfinity => sums(1).reduce_min(first),
    })
}
