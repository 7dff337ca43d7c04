//! The element types as Rust types.

use std::fmt::{Debug, Display};

use num_complex::Complex;
use num_traits::Zero;

use crate::{DType, TensorView, TensorViewMut, TypedTensorView, TypedTensorViewMut};

/// Complex of two `f32`.
pub type C32 = Complex<f32>;
/// Complex of two `f64`.
pub type C64 = Complex<f64>;

/// An element type of tensors: `f32`, `f64`, [`C32`], [`C64`], `i32`, `i64`, `bool`.
///
/// Sealed: storage relies on [`DTYPE`](Scalar::DTYPE) naming exactly this type.
///
/// ```
/// use tenferro_tensor::{C64, DType, Scalar};
/// assert_eq!(f32::DTYPE, DType::F32);
/// assert_eq!(i32::from_c64(C64::new(2.9, 1.0)), 2);
/// ```
pub trait Scalar:
    Copy + Send + Sync + Debug + Display + PartialEq + Default + sealed::Sealed + 'static
{
    /// The element type as a value.
    const DTYPE: DType;
    /// The type of the real part.
    type Real: Scalar<Real = Self::Real>;
    /// The complex type that holds it ([`DType::complex`]).
    type Complex: Scalar<Complex = Self::Complex>;

    /// Forgets the element type of a view.
    fn erase(view: TypedTensorView<'_, Self>) -> TensorView<'_>;
    /// Forgets the element type of a mutable view.
    fn erase_mut(view: TypedTensorViewMut<'_, Self>) -> TensorViewMut<'_>;
    /// As a complex double (integers beyond 2^53 round).
    fn to_c64(self) -> C64;
    /// From a double: rounds to `f32`, truncates and saturates to integers, `x != 0` for `bool`.
    fn from_f64(x: f64) -> Self;
    /// From a complex double like [`from_f64`](Scalar::from_f64); real types drop the imaginary part,
    /// `bool` is `z != 0`.
    fn from_c64(z: C64) -> Self;
    /// Zero (`false`).
    fn zero() -> Self;
    /// One (`true`).
    fn one() -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! impl_scalar {
    (($d:tt) $($group:ident { $($V:ident: $t:ty, $R:ident $r:ty, $C:ident $c:ty;)* })*) => { $($(
        impl sealed::Sealed for $t {}

        impl Scalar for $t {
            const DTYPE: DType = DType::$V;
            type Real = $r;
            type Complex = $c;

            fn erase(view: TypedTensorView<'_, Self>) -> TensorView<'_> {
                TensorView::$V(view)
            }
            fn erase_mut(view: TypedTensorViewMut<'_, Self>) -> TensorViewMut<'_> {
                TensorViewMut::$V(view)
            }
            #[inline]
            fn to_c64(self) -> C64 {
                Numeric::to_c64(self)
            }
            #[inline]
            fn from_f64(x: f64) -> Self {
                <Self as Numeric>::from_c64(C64::new(x, 0.0))
            }
            #[inline]
            fn from_c64(z: C64) -> Self {
                <Self as Numeric>::from_c64(z)
            }
            #[inline]
            fn zero() -> Self {
                <Self as Default>::default()
            }
            #[inline]
            fn one() -> Self {
                <Self as Numeric>::from_c64(C64::new(1.0, 0.0))
            }
        }
    )*)* };
}

dtype_table!(impl_scalar);

/// The conversions, which are arithmetic and so differ by kind.
trait Numeric: Copy {
    fn to_c64(self) -> C64;
    fn from_c64(z: C64) -> Self;
}

macro_rules! real_numeric {
    ($($t:ty)*) => { $(impl Numeric for $t {
        #[inline]
        fn to_c64(self) -> C64 { C64::new(self as f64, 0.0) }
        #[inline]
        fn from_c64(z: C64) -> Self { z.re as $t }
    })* };
}
real_numeric!(f32 f64 i32 i64);

impl Numeric for C32 {
    #[inline]
    fn to_c64(self) -> C64 {
        C64::new(self.re.into(), self.im.into())
    }
    #[inline]
    fn from_c64(z: C64) -> Self {
        C32::new(z.re as f32, z.im as f32)
    }
}

impl Numeric for C64 {
    #[inline]
    fn to_c64(self) -> C64 {
        self
    }
    #[inline]
    fn from_c64(z: C64) -> Self {
        z
    }
}

impl Numeric for bool {
    #[inline]
    fn to_c64(self) -> C64 {
        C64::new(self.into(), 0.0)
    }
    #[inline]
    fn from_c64(z: C64) -> Self {
        !z.is_zero()
    }
}
