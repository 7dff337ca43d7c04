//! The loops under every kernel: they walk memory and know no operation.
//!
//! [`plan`] turns shapes and strides into few, long, ordered axes and cuts them into tiles; [`elementwise`],
//! [`copy`] and [`reduce`] run over such tiles; [`simd`] compiles a plain loop for the processor at hand, and
//! [`math`] has such loops for the elementary functions.
//!
//! Everything here takes raw pointers, extents and strides counted in elements: the kernels above have
//! checked shapes, dtypes and aliasing, and state that at each call.

pub(crate) mod copy;
pub(crate) mod elementwise;
pub(crate) mod math;
pub(crate) mod plan;
pub(crate) mod reduce;
pub(crate) mod simd;
#[cfg(test)]
mod testing;
mod transpose;

/// Promises that a value of raw pointers may be used by several threads: each of them touches its own
/// elements.
#[derive(Clone, Copy)]
pub(crate) struct Shared<T>(T);

// SAFETY: the loops share inputs for reading only and give each thread disjoint ranges of the outputs.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as for `Send`.
unsafe impl<T> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    pub(crate) fn new(value: T) -> Shared<T> {
        Shared(value)
    }

    /// The value; a method, so that a closure captures the wrapper and not its field.
    #[inline(always)]
    pub(crate) fn get(&self) -> T {
        self.0
    }
}
