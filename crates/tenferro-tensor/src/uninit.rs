//! Tensors whose elements are still to be written.

use std::mem::MaybeUninit;

use crate::{DType, Error, Result, Scalar, Tensor};

/// Unique host storage for the elements of a tensor that a kernel is about to write.
///
/// ```
/// use tenferro_tensor::{DType, Tensor};
/// let mut out = Tensor::uninit(DType::F64, &[3])?;
/// for (i, slot) in out.as_uninit_slice_mut::<f64>()?.iter_mut().enumerate() {
///     slot.write(i as f64);
/// }
/// // SAFETY: the loop wrote every element.
/// let t = unsafe { out.assume_init() };
/// assert_eq!(t.as_slice::<f64>()?, [0.0, 1.0, 2.0]);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct UninitTensor(pub(crate) Tensor);

impl UninitTensor {
    /// The extents.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.0.dtype()
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// No elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The address of the first element, aligned to 64 bytes unless it is that of an adopted vector;
    /// valid for [`len`](UninitTensor::len) elements.
    ///
    /// # Panics
    /// When `T` is not the element type, which is an error of the kernel.
    #[inline]
    #[track_caller]
    pub fn as_mut_ptr<T: Scalar>(&mut self) -> *mut T {
        assert_eq!(T::DTYPE, self.dtype(), "as_mut_ptr: the kernel's element type is not the tensor's");
        self.as_mut_byte_ptr().cast()
    }

    /// [`as_mut_ptr`](UninitTensor::as_mut_ptr) without the element type.
    #[inline]
    pub fn as_mut_byte_ptr(&mut self) -> *mut u8 {
        self.0.host_byte_ptr("as_mut_byte_ptr").expect("uninitialised tensors are in host memory")
    }

    /// The elements to write.
    ///
    /// # Errors
    /// [`Error::DType`] when `T` is not the element type.
    pub fn as_uninit_slice_mut<T: Scalar>(&mut self) -> Result<&mut [MaybeUninit<T>]> {
        if T::DTYPE != self.dtype() {
            return Err(Error::dtype("as_uninit_slice_mut", "dtype", T::DTYPE, self.dtype()));
        }
        let len = self.len();
        // SAFETY: the unique owner is borrowed mutably, and its storage has room for `len` elements.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.as_mut_byte_ptr().cast(), len) })
    }

    /// The tensor.
    ///
    /// # Safety
    /// Every element has been written (those of [`Tensor::into_uninit`] still are), `bool`s with 0 or 1.
    #[inline]
    pub unsafe fn assume_init(self) -> Tensor {
        self.0
    }
}
