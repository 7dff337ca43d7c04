//! Equality up to rounding.

use crate::{DType, Error, Rank, Result, Scalar, Tensor, TypedTensor, TypedTensorView};

impl Tensor {
    /// `|a - b| <= atol + rtol |b|` for all elements, the moduli of complex ones. NaN is close to nothing,
    /// an infinity only to itself.
    ///
    /// # Errors
    /// [`Error::DType`] or [`Error::Shape`] when these differ, [`Error::Placement`] outside host memory.
    pub fn allclose(&self, other: &Tensor, rtol: f64, atol: f64) -> Result<bool> {
        if self.dtype() != other.dtype() {
            return Err(Error::dtype("allclose", "dtype", other.dtype(), self.dtype()));
        }
        dispatch!(self.dtype(), T => {
            self.as_view().typed::<T>()?.allclose(&other.as_view().typed::<T>()?, rtol, atol)
        })
    }
}

impl<T: Scalar, R: Rank> TypedTensor<T, R> {
    /// See [`Tensor::allclose`].
    ///
    /// # Errors
    /// [`Error::Shape`] when the shapes differ, [`Error::Placement`] outside host memory.
    pub fn allclose<Q: Rank>(&self, other: &TypedTensor<T, Q>, rtol: f64, atol: f64) -> Result<bool> {
        self.as_view().allclose(&other.as_view(), rtol, atol)
    }
}

impl<T: Scalar, R: Rank> TypedTensorView<'_, T, R> {
    /// See [`Tensor::allclose`].
    ///
    /// # Errors
    /// [`Error::Shape`] when the shapes differ, [`Error::Placement`] outside host memory.
    pub fn allclose<Q: Rank>(&self, other: &TypedTensorView<'_, T, Q>, rtol: f64, atol: f64) -> Result<bool> {
        if self.shape() != other.shape() {
            let (got, expected) = (format!("{:?}", other.shape()), format!("{:?}", self.shape()));
            return Err(Error::shape("allclose", "shape", got, expected));
        }
        Ok(self.iter()?.zip(other.iter()?).all(|(&a, &b)| close(a, b, rtol, atol)))
    }
}

fn close<T: Scalar>(a: T, b: T, rtol: f64, atol: f64) -> bool {
    if a == b {
        return true;
    }
    let (x, y) = (a.to_c64(), b.to_c64());
    let mut distance = (x - y).norm();
    if T::DTYPE == DType::I64 && distance < 1.0 {
        // Different integers that round to the same double are at least 1 apart.
        distance = 1.0;
    }
    x.is_finite() && y.is_finite() && distance <= atol + rtol * y.norm()
}

impl<T: Scalar, R: Rank, Q: Rank> PartialEq<TypedTensor<T, Q>> for TypedTensor<T, R> {
    /// Equal shapes and elements. Tensors outside host memory are equal only when they share storage.
    fn eq(&self, other: &TypedTensor<T, Q>) -> bool {
        self.shape() == other.shape()
            && match (self.host_data(), other.host_data()) {
                (Ok(a), Ok(b)) => a == b,
                _ => self.as_tensor().ptr_id() == other.as_tensor().ptr_id(),
            }
    }
}

impl PartialEq for Tensor {
    /// Equal dtypes, shapes and elements. Tensors outside host memory are equal only when they share
    /// storage.
    fn eq(&self, other: &Tensor) -> bool {
        self.dtype() == other.dtype()
            && dispatch!(self.dtype(), T => self.as_typed::<T>() == other.as_typed::<T>())
    }
}
