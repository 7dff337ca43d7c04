//! Extents, strides and the like: one small number an axis, inline up to rank 6.
//!
//! Views are made by the million, so copying these is worth more care than `SmallVec`'s general paths
//! take: up to rank 6 it is a few moves, without calls or loops of unknown length.

use smallvec::SmallVec;

/// One number an axis.
pub(crate) type Dims<T> = SmallVec<[T; INLINE]>;

/// Up to this rank nothing is allocated.
pub(crate) const INLINE: usize = 6;

/// A copy.
#[inline]
pub(crate) fn copy<T: Copy>(dims: &Dims<T>) -> Dims<T> {
    if dims.spilled() {
        return SmallVec::from_slice(dims);
    }
    // SAFETY: an inline vector owns no memory, and its elements are `Copy`, so its bits are another one.
    unsafe { std::ptr::read(dims) }
}

/// The numbers of a slice.
#[inline]
pub(crate) fn from_slice<T: Copy + Default>(dims: &[T]) -> Dims<T> {
    from_fn(dims.len(), |axis| dims[axis])
}

/// Extents to be written in place.
pub(crate) const BLANK_EXTENTS: Dims<usize> = SmallVec::from_const([0; INLINE]);
/// Strides to be written in place.
pub(crate) const BLANK_STRIDES: Dims<isize> = SmallVec::from_const([0; INLINE]);

/// `dims` with another number of axes, of whatever values.
#[inline]
pub(crate) fn resized<T: Copy + Default>(dims: &mut Dims<T>, rank: usize) -> &mut [T] {
    if rank <= dims.len() {
        // SAFETY: the first `rank` of its elements stay; they own nothing.
        unsafe { dims.set_len(rank) };
    } else {
        dims.resize(rank, T::default());
    }
    dims
}

/// `to.copy_from_slice(from)`, in a few moves instead of a call if nothing is allocated for as many axes.
#[inline]
pub(crate) fn copy_to<T: Copy>(from: &[T], to: &mut [T]) {
    fn moved<T: Copy, const N: usize>(from: &[T], to: &mut [T]) {
        to[..N].copy_from_slice(&from[..N]);
    }
    debug_assert_eq!(from.len(), to.len());
    match from.len() {
        0 => (),
        1 => moved::<T, 1>(from, to),
        2 => moved::<T, 2>(from, to),
        3 => moved::<T, 3>(from, to),
        4 => moved::<T, 4>(from, to),
        5 => moved::<T, 5>(from, to),
        INLINE => moved::<T, INLINE>(from, to),
        _ => to.copy_from_slice(from),
    }
}

/// The number `f(axis)` for each axis in turn.
// Always: a call costs as much as the loop.
#[inline(always)]
pub(crate) fn from_fn<T: Copy + Default>(rank: usize, mut f: impl FnMut(usize) -> T) -> Dims<T> {
    if rank > INLINE {
        return (0..rank).map(f).collect();
    }
    let mut inline = [T::default(); INLINE];
    for (axis, slot) in inline.iter_mut().enumerate() {
        if axis == rank {
            break;
        }
        *slot = f(axis);
    }
    SmallVec::from_buf_and_len(inline, rank)
}
