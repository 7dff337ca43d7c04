//! Random tensors, reproducible from a seed: the same seed, dtype and number of elements give the same
//! elements on every machine.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};
use rand_distr::{Distribution, StandardNormal};

use crate::{C64, DType, Error, Rank, Result, Scalar, Shape, Tensor, TypedTensor};

impl Tensor {
    /// Independent elements, uniform in `[0, 1)`; complex ones have real and imaginary parts so.
    ///
    /// ```
    /// use tenferro_tensor::{DType, Tensor};
    /// let a = Tensor::uniform(DType::F64, [100], 7)?;
    /// assert!(a.as_slice::<f64>()?.iter().all(|x| (0.0..1.0).contains(x)));
    /// assert_eq!(a, Tensor::uniform(DType::F64, [100], 7)?);
    /// # Ok::<(), tenferro_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DType`] for integers and `bool`, [`Error::Overflow`], [`Error::Memory`].
    pub fn uniform(dtype: DType, shape: impl Into<Shape>, seed: u64) -> Result<Self> {
        random("uniform", dtype, shape.into(), seed, uniform)
    }

    /// Independent standard normal elements, N(0, 1); complex ones have real and imaginary parts so.
    ///
    /// # Errors
    /// As [`uniform`](Tensor::uniform).
    pub fn normal(dtype: DType, shape: impl Into<Shape>, seed: u64) -> Result<Self> {
        random("normal", dtype, shape.into(), seed, |rng, _| StandardNormal.sample(rng))
    }
}

impl<T: Scalar, R: Rank> TypedTensor<T, R> {
    /// See [`Tensor::uniform`].
    ///
    /// # Errors
    /// [`Error::DType`] for integers and `bool`, [`Error::Overflow`], [`Error::Memory`].
    pub fn uniform(shape: impl Into<R::Shape>, seed: u64) -> Result<Self> {
        Tensor::uniform(T::DTYPE, shape.into().as_ref(), seed).map(TypedTensor::trusted)
    }

    /// See [`Tensor::normal`].
    ///
    /// # Errors
    /// As [`uniform`](TypedTensor::uniform).
    pub fn normal(shape: impl Into<R::Shape>, seed: u64) -> Result<Self> {
        Tensor::normal(T::DTYPE, shape.into().as_ref(), seed).map(TypedTensor::trusted)
    }
}

/// As many random bits as the mantissa of the element's real part holds, so that 1 is never reached.
fn uniform(rng: &mut ChaCha8Rng, real: DType) -> f64 {
    let bits = if real == DType::F32 { 24 } else { 53 };
    (rng.next_u64() >> (64 - bits)) as f64 * 0.5_f64.powi(bits)
}

fn random(
    op: &'static str,
    dtype: DType,
    shape: Shape,
    seed: u64,
    draw: impl Fn(&mut ChaCha8Rng, DType) -> f64,
) -> Result<Tensor> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    dispatch_float!(dtype, T => {
        let element = || {
            let re = draw(&mut rng, dtype.real());
            let im = if dtype.is_complex() { draw(&mut rng, dtype.real()) } else { 0.0 };
            T::from_c64(C64::new(re, im))
        };
        TypedTensor::<T>::from_elements(op, &shape, element).map(TypedTensor::into_tensor)
    }, else Err(Error::dtype(op, "dtype", dtype, "a real or complex floating-point type")))
}
