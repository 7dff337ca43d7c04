//! The [`s!`](crate::s) notation for parts of a tensor.
//!
//! One item an axis, as in Python and ndarray: a range keeps the axis, an integer drops it, [`NewAxis`]
//! adds one of extent 1. Negative bounds count from the end. A negative step walks the range from its
//! last element backwards (ndarray's rule). Axes after the last item are kept whole.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use smallvec::SmallVec;

use crate::{Error, Layout, Result};

/// What to take of one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceItem {
    /// One index; the axis goes.
    Index(isize),
    /// The elements `start..end`, every `|step|`-th.
    Range {
        /// The first element; negative from the end.
        start: isize,
        /// One after the last element; negative from the end; `None` is the end.
        end: Option<isize>,
        /// How far apart; negative walks from the last element backwards.
        step: isize,
    },
    /// A new axis of extent 1.
    NewAxis,
}

/// A new axis of extent 1 in [`s!`](crate::s).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewAxis;

/// What to take of each axis, as [`s!`](crate::s) makes it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SliceSpec(SmallVec<[SliceItem; 6]>);

impl AsRef<[SliceItem]> for SliceSpec {
    fn as_ref(&self) -> &[SliceItem] {
        &self.0
    }
}

impl FromIterator<SliceItem> for SliceSpec {
    fn from_iter<I: IntoIterator<Item = SliceItem>>(items: I) -> Self {
        SliceSpec(items.into_iter().collect())
    }
}

impl<const N: usize> From<[SliceItem; N]> for SliceSpec {
    fn from(items: [SliceItem; N]) -> Self {
        items.into_iter().collect()
    }
}

impl SliceItem {
    /// The item with a step; an index or new axis has none and stays.
    pub fn step_by(self, by: isize) -> Self {
        match self {
            SliceItem::Range { start, end, .. } => SliceItem::Range { start, end, step: by },
            other => other,
        }
    }
}

/// Says which part of a tensor to take, one item an axis.
///
/// ```
/// use tenferro_tensor::{NewAxis, TypedTensor, s};
/// let t = TypedTensor::<i32>::from_fn([4, 5, 6], |i| (100 * i[0] + 10 * i[1] + i[2]) as i32)?;
/// let part = t.slice(s![1..3, -1, ..;2])?; // rows 1 and 2, last column, every other page
/// assert_eq!(part.shape(), &[2, 3]);
/// assert_eq!(part.get(&[0, 1]), Some(&142));
/// let reversed = t.slice(s![..;-1])?; // other axes whole
/// assert_eq!(reversed.get(&[0, 4, 5]), Some(&345));
/// assert_eq!(t.slice(s![0, NewAxis, .., 2..=3])?.shape(), &[1, 5, 2]);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[macro_export]
macro_rules! s {
    ($($item:expr $(; $step:expr)?),* $(,)?) => {
        $crate::SliceSpec::from([$($crate::SliceItem::from($item)$(.step_by($step))?),*])
    };
}

impl From<NewAxis> for SliceItem {
    fn from(_: NewAxis) -> Self {
        SliceItem::NewAxis
    }
}

impl From<RangeFull> for SliceItem {
    fn from(_: RangeFull) -> Self {
        SliceItem::Range { start: 0, end: None, step: 1 }
    }
}

/// A bound as `isize`; one too large for it is out of range of any axis, and so is `isize::MAX`.
trait Bound: Copy {
    fn bound(self) -> isize;
}

macro_rules! slice_bounds {
    ($($t:ty)*) => { $(
        impl Bound for $t {
            fn bound(self) -> isize {
                isize::try_from(self).unwrap_or(isize::MAX)
            }
        }
        impl From<$t> for SliceItem {
            fn from(i: $t) -> Self {
                SliceItem::Index(i.bound())
            }
        }
        impl From<Range<$t>> for SliceItem {
            fn from(r: Range<$t>) -> Self {
                SliceItem::Range { start: r.start.bound(), end: Some(r.end.bound()), step: 1 }
            }
        }
        impl From<RangeFrom<$t>> for SliceItem {
            fn from(r: RangeFrom<$t>) -> Self {
                SliceItem::Range { start: r.start.bound(), end: None, step: 1 }
            }
        }
        impl From<RangeTo<$t>> for SliceItem {
            fn from(r: RangeTo<$t>) -> Self {
                SliceItem::Range { start: 0, end: Some(r.end.bound()), step: 1 }
            }
        }
        impl From<RangeInclusive<$t>> for SliceItem {
            fn from(r: RangeInclusive<$t>) -> Self {
                SliceItem::Range { start: r.start().bound(), end: after(r.end().bound()), step: 1 }
            }
        }
        impl From<RangeToInclusive<$t>> for SliceItem {
            fn from(r: RangeToInclusive<$t>) -> Self {
                SliceItem::Range { start: 0, end: after(r.end.bound()), step: 1 }
            }
        }
    )* };
}
slice_bounds!(i32 isize usize);

/// The exclusive end after an inclusive one; after -1, the last element, that is the end of the axis.
fn after(last: isize) -> Option<isize> {
    if last == -1 { None } else { Some(last.saturating_add(1)) }
}

impl Layout {
    /// The part that a specification names.
    ///
    /// # Errors
    /// [`Error::Rank`] for more items than axes, [`Error::Argument`] for bounds outside an axis, an end
    /// before its start, or a zero step.
    pub fn slice_spec(&self, op: &'static str, spec: &[SliceItem]) -> Result<Layout> {
        let named = spec.iter().filter(|item| !matches!(item, SliceItem::NewAxis)).count();
        if named > self.rank() {
            return Err(Error::rank(op, "slice items", named, format_args!("at most {}", self.rank())));
        }
        let mut starts: SmallVec<[usize; 6]> = SmallVec::from_elem(0, self.rank());
        let mut limits: SmallVec<[usize; 6]> = SmallVec::from_slice(self.shape());
        let mut steps: SmallVec<[isize; 6]> = SmallVec::from_elem(1, self.rank());
        let items = spec.iter().filter(|item| !matches!(item, SliceItem::NewAxis));
        for (axis, item) in items.enumerate() {
            let extent = self.shape()[axis];
            match *item {
                SliceItem::Index(index) => {
                    let at = from_end(index, extent);
                    if at.is_none_or(|at| at >= extent) {
                        return Err(Error::argument(
                            op,
                            format!("index of axis {axis}"),
                            index,
                            format_args!("-{extent} <= index < {extent}"),
                        ));
                    }
                    starts[axis] = at.unwrap_or(0);
                    limits[axis] = starts[axis] + 1;
                }
                SliceItem::Range { start, end, step } => {
                    let limit = end.map_or(Some(extent), |end| from_end(end, extent));
                    let (Some(start), Some(limit)) = (from_end(start, extent), limit) else {
                        let got = format!("{item:?}");
                        let expected = format_args!("bounds from -{extent} to {extent}");
                        return Err(Error::argument(op, format!("slice of axis {axis}"), got, expected));
                    };
                    (starts[axis], limits[axis], steps[axis]) = (start, limit, step);
                }
                SliceItem::NewAxis => unreachable!("filtered out"),
            }
        }
        let mut result = self.slice(op, &starts, &limits, &steps)?;
        let mut axis = 0;
        for item in spec {
            match item {
                SliceItem::Index(_) => result = result.index_axis(op, axis, 0)?,
                SliceItem::Range { .. } => axis += 1,
                SliceItem::NewAxis => {
                    result = result.insert_axis(op, axis)?;
                    axis += 1;
                }
            }
        }
        Ok(result)
    }
}

/// A bound counted from the start; `None` when it lies before it.
fn from_end(bound: isize, extent: usize) -> Option<usize> {
    if bound < 0 { extent.checked_sub(bound.unsigned_abs()) } else { Some(bound as usize) }
}
