//! Workspace for LAPACK.

use crate::{DenseError, Field, Real, workspace::with_zeros};

/// Calls `routine(work, lwork, info)` for the length of its workspace, and again with one; whether it succeeded.
///
/// # Errors
/// `Memory`.
pub(super) fn with_work<T: Field>(
    mut routine: impl FnMut(*mut T, *const i32, *mut i32),
) -> Result<bool, DenseError> {
    let (mut best, mut info) = (T::ZERO, 0);
    routine(&mut best, &-1, &mut info);
    // A length is an integer that was rounded to an element, perhaps downwards.
    let length = best.re().to_f64() * (1.0 + 1e-6);
    if info != 0 || !(0.0..f64::from(i32::MAX)).contains(&length) {
        return Ok(false);
    }
    let length = (length.ceil() as usize).max(1);
    with_zeros(length, |work: &mut [T]| routine(work.as_mut_ptr(), &(length as i32), &mut info))?;
    Ok(info == 0)
}
