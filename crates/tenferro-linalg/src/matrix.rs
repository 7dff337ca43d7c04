//! What derivative rules say about matrices and their batch axes.

use crate::{batch::expect_square, checked::checked};
use tenferro_core_ops::{Dim, Extent, Var, ops::Axes};
use tenferro_tensor::{C64, DType, Result};

/// `x diag(s)`: column j of `x` times `s[j]`.
pub(crate) fn scale_columns(x: &Var, s: &Var) -> Var {
    x * &over_columns(s)
}

/// `diag(s) x`: row i of `x` times `s[i]`.
pub(crate) fn scale_rows(s: &Var, x: &Var) -> Var {
    &over_rows(s) * x
}

/// `s` as a matrix with one row.
pub(crate) fn over_columns(s: &Var) -> Var {
    if s.ok().is_err() { s.clone() } else { s.expand_dims(&[0]) }
}

/// `s` as a matrix with one column.
pub(crate) fn over_rows(s: &Var) -> Var {
    if s.ok().is_err() { s.clone() } else { s.expand_dims(&[1]) }
}

/// The diagonal of a matrix, before the batch axes.
pub(crate) fn diagonal(x: &Var) -> Var {
    let d = x.extract_diag(0, 1);
    let last = match d.rank().checked_sub(1) {
        Some(last) => last,
        None => return d,
    };
    d.transpose(&std::iter::once(last).chain(0..last).collect::<Axes>())
}

/// The first `n` rows (axis 0) or columns (axis 1).
pub(crate) fn leading(x: &Var, axis: usize, n: &Dim) -> Var {
    if x.extent(axis) == *n { x.clone() } else { x.slice_axis(axis, 0, n.clone()) }
}

/// `x` with zeros appended, up to extents `to` of its leading axes.
pub(crate) fn enlarge(x: &Var, to: &[Dim]) -> Var {
    let shape = x.shape();
    let mut high: Vec<Dim> = vec![Dim::Lit(0); shape.len()];
    for ((h, n), to) in high.iter_mut().zip(&shape).zip(to) {
        match to.sub(n, "pad") {
            Ok(d) => *h = d,
            Err(e) => return Var::Failed(e),
        }
    }
    let low = vec![Dim::Lit(0); shape.len()];
    x.pad(&Var::scalar(x.dtype(), C64::new(0.0, 0.0)), &low, &high, &vec![0; shape.len()])
}

/// A matrix of floating-point numbers: integers become f64.
pub(crate) fn floating(a: &Var) -> Var {
    if a.dtype().is_differentiable() { a.clone() } else { a.convert(DType::F64) }
}

/// The stack of square matrices `a`, which is one when a program runs, too.
pub(crate) fn checked_square(op: &'static str, a: &Var) -> Result<Var> {
    let aval = a.ok()?.aval();
    expect_square(op, &[&aval], 0)?;
    checked(op, "rows of a square matrix", a, [&aval.shape[0], &aval.shape[1]])
}
