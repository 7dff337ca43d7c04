//! `view = alpha result + beta view`, for kernels that do not accumulate themselves, and for results that are not
//! needed.
//!
//! Factors are what they are in the dtype of the result. As in BLAS, what a factor of 0 stands before is not read;
//! and a factor of 1 multiplies nothing, since `inf * (1 + 0i)` has a NaN part.

use crate::{CpuBackend, loops::elementwise};
use smallvec::SmallVec;
use tenferro_core_ops::Number;
use tenferro_tensor::{DType, Error, Result, Scalar, Tensor, TensorViewMut, dispatch_number};

struct Factors<T> {
    result: T,
    old: T,
}

/// # Safety
/// As for a [`elementwise::Tile`] whose data are [`Factors`] of `T`; the operands are the result and what the view
/// holds, less those whose factor is zero.
unsafe fn tile<T: Number>(op: *const (), x: &[*const u8], y: *mut u8, n: usize) {
    // SAFETY: the caller's.
    let factors = unsafe { &*op.cast::<Factors<T>>() };
    let mut x = x.iter().map(|x| x.cast::<T>());
    let mut read = |factor: T| if factor == T::zero() { None } else { x.next() };
    let (result, old, y) = (read(factors.result), read(factors.old), y.cast::<T>());
    // SAFETY: the caller's.
    let at = |x: *const T, i: usize| unsafe { *x.add(i) };
    let scaled = |factor: T, v: T| if factor == T::one() { v } else { factor.times(v) };
    for i in 0..n {
        let value = match (result, old) {
            (Some(r), Some(old)) => scaled(factors.result, at(r, i)).plus(scaled(factors.old, at(old, i))),
            (Some(r), None) => scaled(factors.result, at(r, i)),
            (None, Some(old)) => scaled(factors.old, at(old, i)),
            (None, None) => T::zero(),
        };
        // SAFETY: the caller's.
        unsafe { y.add(i).write(value) };
    }
}

/// Whether this factor is zero as a number of the dtype.
pub(crate) fn is_zero(dtype: DType, factor: f64) -> bool {
    dispatch_number!(dtype, T => <T as Scalar>::from_f64(factor) == T::zero(), else false)
}

/// Accumulates `result`, which may be missing if `alpha` is zero.
pub(crate) fn store(
    cpu: &CpuBackend,
    op: &'static str,
    result: Option<&Tensor>,
    alpha: f64,
    beta: f64,
    mut view: TensorViewMut<'_>,
) -> Result<()> {
    let dtype = view.dtype();
    dispatch_number!(dtype, T => {
        let factors = Factors { result: <T as Scalar>::from_f64(alpha), old: <T as Scalar>::from_f64(beta) };
        let result = result.filter(|_| factors.result != T::zero());
        if result.is_none() && factors.old == T::one() {
            return Ok(());
        }
        let (ptr, strides, shape) = (view.host_byte_mut_ptr()?, view.strides().to_vec(), view.shape().to_vec());
        let size = size_of::<T>();
        let mut x: SmallVec<[elementwise::Input<'_>; 2]> = SmallVec::new();
        if let Some(result) = result {
            x.push(elementwise::Input { ptr: result.as_bytes()?.as_ptr(), size, strides: None });
        }
        if factors.old != T::zero() {
            x.push(elementwise::Input { ptr, size, strides: Some(&strides) });
        }
        let y = elementwise::Output { ptr, size, strides: Some(&strides), step: 0 };
        let data = std::ptr::from_ref(&factors).cast();
        // SAFETY: the caller checked that the result has the shape of the view; the view is read where it is written,
        // under the same layout.
        unsafe { elementwise::map(cpu.domain(), &shape, (tile::<T>, data, 2), &x, y) };
        Ok(())
    }, else Err(Error::dtype(op, "accumulation", dtype, "a number")))
}
