//! Walking the elements of a strided layout in column-major order.

use std::{iter::FusedIterator, marker::PhantomData};

use smallvec::SmallVec;

use crate::Layout;

/// The elements' distances from the first one, in column-major order.
#[derive(Clone, Debug)]
pub(crate) struct Offsets {
    /// Extent, stride and position of each axis.
    axes: SmallVec<[(usize, isize, usize); 6]>,
    current: isize,
    left: usize,
}

impl Offsets {
    pub(crate) fn new(layout: &Layout) -> Self {
        Offsets::over(layout.shape(), layout.strides(), layout.len())
    }

    fn over(shape: &[usize], strides: &[isize], len: usize) -> Self {
        let axes = shape.iter().zip(strides).map(|(&extent, &stride)| (extent, stride, 0)).collect();
        Offsets { axes, current: 0, left: len }
    }
}

impl Iterator for Offsets {
    type Item = isize;

    #[inline]
    fn next(&mut self) -> Option<isize> {
        self.left = self.left.checked_sub(1)?;
        let result = self.current;
        for (extent, stride, position) in &mut self.axes {
            *position += 1;
            if position < extent {
                self.current += *stride;
                break;
            }
            *position = 0;
            self.current -= *stride * (*extent as isize - 1);
        }
        Some(result)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// Splits a layout in its innermost axis (extent and stride) and the offsets of the others.
pub(crate) fn runs(layout: &Layout) -> (usize, isize, Offsets) {
    match (layout.shape(), layout.strides()) {
        ([extent, shape @ ..], [stride, strides @ ..]) => {
            let len = layout.len().checked_div(*extent).unwrap_or(0);
            (*extent, *stride, Offsets::over(shape, strides, len))
        }
        _ => (1, 1, Offsets::over(&[], &[], 1)),
    }
}

/// Copies a layout's elements to compact column-major storage; `layout.offset()` is applied.
///
/// # Safety
/// The layout's elements lie in initialised memory at `base`, `to` is valid for `layout.len()` writes,
/// and the two don't overlap.
pub(crate) unsafe fn copy_to_compact<T: Copy>(base: *const T, layout: &Layout, to: *mut T) {
    let len = layout.len();
    // SAFETY: an offset inside (or, empty, at the start of) the memory at `base`; the runs cover exactly
    // the layout's elements, and `done` counts what has been written, at most `len`.
    unsafe {
        let from = base.add(layout.offset());
        if layout.is_col_major_contiguous() {
            to.copy_from_nonoverlapping(from, len);
            return;
        }
        let (extent, stride, offsets) = runs(layout);
        let mut done = 0;
        for offset in offsets {
            let run = from.offset(offset);
            if stride == 1 {
                to.add(done).copy_from_nonoverlapping(run, extent);
            } else {
                for i in 0..extent {
                    *to.add(done + i) = *run.offset(i as isize * stride);
                }
            }
            done += extent;
        }
    }
}

/// The elements of a view in column-major order.
#[derive(Clone, Debug)]
pub struct Iter<'a, T> {
    first: *const T,
    offsets: Offsets,
    elements: PhantomData<&'a [T]>,
}

// SAFETY: an `Iter` stands for `&'a [T]`.
unsafe impl<T: Sync> Send for Iter<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Iter<'_, T> {}

impl<T> Iter<'_, T> {
    /// # Safety
    /// `first` is the address of the layout's first element, and all its elements are initialised and not
    /// written for the iterator's lifetime.
    pub(crate) unsafe fn new(first: *const T, layout: &Layout) -> Self {
        Iter { first, offsets: Offsets::new(layout), elements: PhantomData }
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        // SAFETY: every offset is that of an element, see `new`.
        self.offsets.next().map(|offset| unsafe { &*self.first.offset(offset) })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.offsets.size_hint()
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}
impl<T> FusedIterator for Iter<'_, T> {}
