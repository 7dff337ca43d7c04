//! Matrices of very large or very small elements, brought to where neither singular values nor inverses leave
//! the range of their dtype.

use crate::{batch::expect_matrix, norm::largest, stop_gradient::stop_gradient};
use tenferro_core_ops::Var;
use tenferro_tensor::{DType, Result};

/// `(c A, c)` with a power of two c for each matrix, real, that no derivative sees: 1, but for matrices whose
/// largest element is beyond the square root of the range.
pub(crate) fn in_range(a: &Var) -> Result<(Var, Var)> {
    expect_matrix("in_range", &[&a.ok()?.aval()], 0)?;
    let size = largest(&stop_gradient(a).abs(), &[0, 1]);
    let half = if size.dtype() == DType::F32 { 64 } else { 512 };
    let (small, large) = (size.like(2f64.powi(-half)), size.like(2f64.powi(half)));
    let up = size.less(&small).select(&large, &size.like(1.0));
    let factor = size.greater(&large).select(&small, &up);
    factor.ok()?;
    Ok((a * &factor.expand_dims(&[0, 1]), factor))
}
