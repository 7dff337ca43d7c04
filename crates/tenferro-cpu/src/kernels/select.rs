//! Choice between values, elementwise.

use super::elementwise::{Tiled, apply3, unlisted};
use crate::loops::elementwise::Tile;
use tenferro_core_ops::{
    Ordered,
    ops::{Clamp, ORDERED, Select},
};
use tenferro_tensor::{DType, dispatch_ordered};

/// # Safety
/// As for a [`Tile`] on a condition and two operands of the size of `E`.
unsafe fn select<E: Copy>(_: *const (), x: &[*const u8], y: *mut u8, n: usize) {
    // SAFETY: the caller's.
    unsafe {
        apply3(
            x,
            y,
            n,
            #[inline(always)]
            |c: bool, a: E, b: E| if c { a } else { b },
        )
    }
}

impl Tiled for Select {
    const DTYPES: &'static [DType] = &[DType::Bool];
    // Only the size of what is chosen matters. A complex number of two f64 is moved as one of 16 bytes, whose
    // alignment of 8 is that of `[u64; 2]`.
    fn tile(&self, x: &[DType]) -> Tile {
        match x[1].size() {
            1 => select::<u8>,
            4 => select::<u32>,
            8 => select::<[u32; 2]>,
            _ => select::<[u64; 2]>,
        }
    }
}

impl Tiled for Clamp {
    const DTYPES: &'static [DType] = ORDERED;
    const ALIKE: usize = 3;
    fn tile(&self, x: &[DType]) -> Tile {
        /// # Safety
        /// As for a [`Tile`].
        unsafe fn run<E: Ordered>(_: *const (), x: &[*const u8], y: *mut u8, n: usize) {
            // SAFETY: the caller's.
            unsafe {
                apply3(
                    x,
                    y,
                    n,
                    #[inline(always)]
                    |v: E, low: E, high: E| v.maximum(low).minimum(high),
                )
            }
        }
        dispatch_ordered!(x[0], E => run::<E>, else unlisted(x[0]))
    }
}
