//! Elementwise functions of one input, from their rows; those of real numbers have vectorised loops.

use super::elementwise::{Tiled, apply1, unlisted};
use crate::loops::{elementwise::Tile, math};
use tenferro_core_ops::{
    Element, Number, Primitive,
    ops::{self, FLOATS, NUMBERS},
    unary_rows,
};
use tenferro_tensor::{DType, dispatch_float, dispatch_number};

macro_rules! tiles {
    ($($(#[$doc:meta])* $T:ident $m:ident: |$v:ident| $f:expr; $saves:ident; $d:expr;)*) => { $(
        impl Tiled for ops::$T {
            const DTYPES: &'static [DType] = FLOATS;
            const COST: usize = 32;
            const ALIKE: usize = 1;
            fn tile(&self, x: &[DType]) -> Tile {
                /// # Safety
                /// As for a [`Tile`].
                unsafe fn run<E: Element>(_: *const (), x: &[*const u8], y: *mut u8, n: usize) {
                    // SAFETY: the caller's.
                    unsafe { apply1(x, y, n, #[inline(always)] |$v: E| $f) }
                }
                match math::tile(Self::NAME, x[0]) {
                    Some(tile) => tile,
                    None => dispatch_float!(x[0], E => run::<E>, else unlisted(x[0])),
                }
            }
        }
    )* };
}
unary_rows!(tiles);

macro_rules! numbers {
    ($($T:ident: |$v:ident| $f:expr;)*) => { $(
        impl Tiled for ops::$T {
            const DTYPES: &'static [DType] = NUMBERS;
            fn tile(&self, x: &[DType]) -> Tile {
                /// # Safety
                /// As for a [`Tile`].
                unsafe fn run<E: Number>(_: *const (), x: &[*const u8], y: *mut u8, n: usize) {
                    // SAFETY: the caller's.
                    unsafe { apply1(x, y, n, #[inline(always)] |$v: E| $f) }
                }
                dispatch_number!(x[0], E => run::<E>, else unlisted(x[0]))
            }
        }
    )* };
}
numbers! {
    Abs: |v| v.modulus();
    Sign: |v| v.sign();
    Neg: |v| v.negate();
}
