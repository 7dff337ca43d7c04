//! Elementwise functions of two inputs, from their rows.

use super::elementwise::{Tiled, apply2, unlisted};
use crate::loops::elementwise::Tile;
use tenferro_core_ops::{
    Element, Number, Ordered, binary_rows,
    ops::{self, FLOATS, NUMBERS, ORDERED},
};
use tenferro_tensor::{DType, dispatch_float, dispatch_number, dispatch_ordered};

macro_rules! tile {
    ($T:ident, $dtypes:ident, $class:ident, $dispatch:ident, $a:ident, $b:ident, $f:expr) => {
        impl Tiled for ops::$T {
            const DTYPES: &'static [DType] = $dtypes;
            const ALIKE: usize = 2;
            fn tile(&self, x: &[DType]) -> Tile {
                /// # Safety
                /// As for a [`Tile`].
                unsafe fn run<E: $class>(_: *const (), x: &[*const u8], y: *mut u8, n: usize) {
                    // SAFETY: the caller's.
                    unsafe { apply2(x, y, n, #[inline(always)] |$a: E, $b: E| $f) }
                }
                $dispatch!(x[0], E => run::<E>, else unlisted(x[0]))
            }
        }
    };
}

/// The class of numbers each row is defined on.
macro_rules! tiles {
    ($($(#[$doc:meta])* $T:ident $m:ident: |$a:ident, $b:ident| $f:expr;)*) => {
        $(tiles!(@ $m $T $a $b $f);)*
    };
    (@ div $T:ident $a:ident $b:ident $f:expr) => { tile!($T, FLOATS, Element, dispatch_float, $a, $b, $f); };
    (@ pow $T:ident $a:ident $b:ident $f:expr) => { tile!($T, FLOATS, Element, dispatch_float, $a, $b, $f); };
    (@ maximum $T:ident $a:ident $b:ident $f:expr) => { tile!($T, ORDERED, Ordered, dispatch_ordered, $a, $b, $f); };
    (@ minimum $T:ident $a:ident $b:ident $f:expr) => { tile!($T, ORDERED, Ordered, dispatch_ordered, $a, $b, $f); };
    (@ $m:ident $T:ident $a:ident $b:ident $f:expr) => { tile!($T, NUMBERS, Number, dispatch_number, $a, $b, $f); };
}
binary_rows!(tiles);
