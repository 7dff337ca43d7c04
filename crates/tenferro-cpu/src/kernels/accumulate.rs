//! `view = alpha result + beta view`, for kernels that do not accumulate themselves.

use crate::{CpuBackend, loops::elementwise};
use tenferro_core_ops::Number;
use tenferro_tensor::{Error, Result, Scalar, Tensor, TensorViewMut, dispatch_number};

struct Factors<T>(T, T);

/// # Safety
/// As for a [`elementwise::Tile`] whose data are [`Factors`] of `T`; the second operand is not read if its
/// factor is zero.
unsafe fn tile<T: Number>(op: *const (), x: &[*const u8], y: *mut u8, n: usize) {
    // SAFETY: the caller's.
    let factors = unsafe { &*op.cast::<Factors<T>>() };
    let (r, old, y) = (x[0].cast::<T>(), x.get(1).map(|x| x.cast::<T>()), y.cast::<T>());
    for i in 0..n {
        // SAFETY: the caller's.
        unsafe {
            let scaled = factors.0.times(*r.add(i));
            y.add(i).write(old.map_or(scaled, |old| scaled.plus(factors.1.times(*old.add(i)))));
        }
    }
}

pub(crate) fn store(
    cpu: &CpuBackend,
    op: &'static str,
    result: &Tensor,
    alpha: f64,
    beta: f64,
    mut view: TensorViewMut<'_>,
) -> Result<()> {
    let dtype = result.dtype();
    dispatch_number!(dtype, T => {
        let factors = Factors(<T as Scalar>::from_f64(alpha), <T as Scalar>::from_f64(beta));
        let (ptr, strides, shape) = (view.host_byte_mut_ptr()?, view.strides().to_vec(), view.shape().to_vec());
        let x = [
            elementwise::Input { ptr: result.as_bytes()?.as_ptr(), size: size_of::<T>(), strides: None },
            elementwise::Input { ptr, size: size_of::<T>(), strides: Some(&strides) },
        ];
        let used = if beta == 0.0 { 1 } else { 2 };
        let y = elementwise::Output { ptr, size: size_of::<T>(), strides: Some(&strides), step: 0 };
        let data = std::ptr::from_ref(&factors).cast();
        // SAFETY: the result has the shape of the view, which was checked; the view is read where it is written,
        // under the same layout.
        unsafe { elementwise::map(cpu.domain(), &shape, (tile::<T>, data, 2), &x[..used], y) };
        Ok(())
    }, else Err(Error::dtype(op, "accumulation", dtype, "a number")))
}
