//! Parts and conjugates of complex numbers.

use super::elementwise::{Tiled, apply1, unlisted};
use crate::loops::elementwise::Tile;
use tenferro_core_ops::{
    Number,
    ops::{self, FLOATS},
};
use tenferro_tensor::{DType, dispatch_float};

/// The parts of a number, as numbers of its real type.
trait Parts: Number {
    fn re(self) -> Self::Real;
    fn im(self) -> Self::Real;
}

macro_rules! parts {
    ($($R:ty)*) => { $(
        impl Parts for $R {
            #[inline(always)]
            fn re(self) -> $R { self }
            #[inline(always)]
            fn im(self) -> $R { 0.0 }
        }
        impl Parts for num_complex::Complex<$R> {
            #[inline(always)]
            fn re(self) -> $R { self.re }
            #[inline(always)]
            fn im(self) -> $R { self.im }
        }
    )* };
}
parts! { f32 f64 }

macro_rules! tiles {
    ($($T:ident: |$v:ident| $f:expr;)*) => { $(
        impl Tiled for ops::$T {
            const DTYPES: &'static [DType] = FLOATS;
            fn tile(&self, x: &[DType]) -> Tile {
                /// # Safety
                /// As for a [`Tile`].
                unsafe fn run<E: Parts>(_: *const (), x: &[*const u8], y: *mut u8, n: usize) {
                    // SAFETY: the caller's.
                    unsafe { apply1(x, y, n, #[inline(always)] |$v: E| $f) }
                }
                dispatch_float!(x[0], E => run::<E>, else unlisted(x[0]))
            }
        }
    )* };
}
tiles! {
    Conj: |v| v.conjugate();
    RealPart: |v| v.re();
    Imag: |v| v.im();
}
