//! Change of dtype.

use super::elementwise::{Tiled, apply1};
use crate::loops::elementwise::Tile;
use num_complex::Complex;
use tenferro_core_ops::ops::{ALL, Cast};
use tenferro_tensor::{C32, C64, DType, dispatch};

/// A number as one of another type.
trait CastFrom<A> {
    fn cast_from(a: A) -> Self;
}

macro_rules! casts {
    ($(|$a:ident: $A:ty| -> $R:ty { $f:expr })*) => { $(
        impl CastFrom<$A> for $R {
            #[inline(always)]
            fn cast_from($a: $A) -> $R { $f }
        }
    )* };
}

/// All casts that involve `$A`, a real type.
macro_rules! from_real {
    ($($A:ty)*) => { $(
        casts! {
            |a: $A| -> f32 { a as f32 }
            |a: $A| -> f64 { a as f64 }
            |a: $A| -> i32 { a as i32 }
            |a: $A| -> i64 { a as i64 }
            |a: $A| -> bool { a != 0 as $A }
            |a: $A| -> C32 { Complex::new(a as f32, 0.0) }
            |a: $A| -> C64 { Complex::new(a as f64, 0.0) }
        }
    )* };
}
from_real! { f32 f64 i32 i64 }

macro_rules! from_complex {
    ($($A:ty)*) => { $(
        casts! {
            |a: $A| -> f32 { a.re as f32 }
            |a: $A| -> f64 { a.re as f64 }
            |a: $A| -> i32 { a.re as i32 }
            |a: $A| -> i64 { a.re as i64 }
            |a: $A| -> bool { a.re != 0.0 || a.im != 0.0 }
            |a: $A| -> C32 { Complex::new(a.re as f32, a.im as f32) }
            |a: $A| -> C64 { Complex::new(a.re as f64, a.im as f64) }
        }
    )* };
}
from_complex! { C32 C64 }

casts! {
    |a: bool| -> f32 { a as u8 as f32 }
    |a: bool| -> f64 { a as u8 as f64 }
    |a: bool| -> i32 { a as i32 }
    |a: bool| -> i64 { a as i64 }
    |a: bool| -> bool { a }
    |a: bool| -> C32 { Complex::new(a as u8 as f32, 0.0) }
    |a: bool| -> C64 { Complex::new(a as u8 as f64, 0.0) }
}

impl Tiled for Cast {
    const DTYPES: &'static [DType] = ALL;
    fn tile(&self, x: &[DType]) -> Tile {
        /// # Safety
        /// As for a [`Tile`].
        unsafe fn run<A: Copy, R: CastFrom<A>>(_: *const (), x: &[*const u8], y: *mut u8, n: usize) {
            // SAFETY: the caller's.
            unsafe {
                apply1(
                    x,
                    y,
                    n,
                    #[inline(always)]
                    |a: A| R::cast_from(a),
                )
            }
        }
        dispatch!(x[0], A => dispatch!(self.to, R => run::<A, R>))
    }
}
