//! Where the elements of a view lie in its owner: shape, signed strides and offset.
//!
//! Element `(i0, i1, ..)` is at `offset + i0 * strides[0] + i1 * strides[1] + ..`, in elements. Every
//! method here costs O(rank) and validates its arguments. A layout alone touches no memory, so its sums
//! may wrap; [`fits`](Layout::fits), which decides whether a tensor takes it, computes without wrapping.
//! Invariant: an operation on a layout that stays inside a buffer gives a layout that stays inside it; an
//! empty layout has offset 0.

use smallvec::SmallVec;

use crate::{
    Error, Result, Shape, checked_len,
    dims::{self, INLINE},
};

/// Signed strides in elements; inline up to rank 6.
pub type Strides = SmallVec<[isize; INLINE]>;

/// Shape, strides and offset of a view.
///
/// ```
/// use tenferro_tensor::Layout;
/// let a = Layout::contiguous(&[2, 3]);
/// let t = a.transpose("example", &[1, 0])?;
/// assert_eq!((t.shape(), t.strides()), (&[3, 2][..], &[2, 1][..]));
/// assert!(!t.is_col_major_contiguous());
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(PartialEq, Eq, Debug)]
pub struct Layout {
    shape: Shape,
    strides: Strides,
    offset: usize,
}

impl crate::shared::Pointee for Layout {}

impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Self {
        Layout { shape: self.shape.clone(), strides: dims::copy(&self.strides), offset: self.offset }
    }
}

impl Layout {
    /// Column-major, without gaps, from offset 0. A shape too large for memory gives a layout that no
    /// tensor takes.
    #[inline]
    pub fn contiguous(shape: &[usize]) -> Self {
        Layout { shape: shape.into(), strides: compact_strides(shape), offset: 0 }
    }

    /// From its parts, for backends whose storage is not compact.
    ///
    /// # Errors
    /// [`Error::Rank`] when the ranks differ, [`Error::Overflow`] when an offset leaves `0..=isize::MAX`.
    pub fn new(op: &'static str, shape: &[usize], strides: &[isize], offset: usize) -> Result<Self> {
        if shape.len() != strides.len() {
            return Err(Error::rank(op, "number of strides", strides.len(), shape.len()));
        }
        checked_len(op, shape)?;
        let mut layout = Layout { shape: shape.into(), strides: dims::from_slice(strides), offset };
        layout.settle(offset);
        let (min, max) = layout.ends();
        if min < 0 || max > isize::MAX as i128 {
            let got = format!("{min} to {max}");
            return Err(Error::overflow(op, "offsets", got, "offsets in 0..=isize::MAX"));
        }
        Ok(layout)
    }

    /// The smallest and the greatest offset of an element, whatever the numbers; the offset when empty.
    fn ends(&self) -> (i128, i128) {
        let (mut min, mut max) = (self.offset as i128, self.offset as i128);
        if !self.is_empty() {
            for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
                let reach = (extent as i128 - 1) * stride as i128;
                let end = if reach < 0 { &mut min } else { &mut max };
                *end = end.saturating_add(reach);
            }
        }
        (min, max)
    }

    /// The extents.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The strides, in elements.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Where element `(0, 0, ..)` is, in elements.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        // Cannot overflow but with a zero extent, where it wraps to the right 0.
        self.shape.iter().fold(1, |len, &extent| len.wrapping_mul(extent))
    }

    /// No elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Column-major without gaps, from any offset. Axes of extent 1 don't matter; empty layouts are.
    #[inline]
    pub fn is_col_major_contiguous(&self) -> bool {
        is_compact(&self.shape, &self.strides)
    }

    /// The smallest and the greatest offset of an element; `(offset, offset)` when there is none.
    #[inline]
    pub fn span(&self) -> (usize, usize) {
        let (min, max) = self.ends();
        (min.max(0) as usize, usize::try_from(max).unwrap_or(usize::MAX))
    }

    /// Every element fits in a buffer of `len` elements.
    #[inline]
    pub fn fits(&self, len: usize) -> bool {
        self.fits_small(len).unwrap_or_else(|| {
            let (min, max) = self.ends();
            self.is_empty() || (min >= 0 && max < len as i128)
        })
    }

    /// [`fits`](Layout::fits) in machine words, unless they overflow.
    #[inline]
    fn fits_small(&self, len: usize) -> Option<bool> {
        let (mut min, mut max) = (self.offset as isize, self.offset as isize);
        let mut overflow = min < 0;
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            if extent == 0 {
                return Some(true);
            }
            let (reach, wrapped) = (extent as isize).wrapping_sub(1).overflowing_mul(stride);
            let (low, below) = min.overflowing_add(reach.min(0));
            let (high, above) = max.overflowing_add(reach.max(0));
            (min, max) = (low, high);
            overflow |= (extent as isize) < 0 || wrapped || below || above;
        }
        (!overflow).then_some(min >= 0 && (max as usize) < len)
    }

    /// Two indices never share an element. Conservative: `false` when unsure.
    pub fn is_injective(&self) -> bool {
        if self.is_empty() {
            return true;
        }
        let mut axes: SmallVec<[(usize, usize); 6]> = self
            .shape
            .iter()
            .zip(&self.strides)
            .filter(|&(&extent, _)| extent > 1)
            .map(|(&extent, &stride)| (stride.unsigned_abs(), extent))
            .collect();
        axes.sort_unstable();
        // Injective when each stride steps over everything the smaller strides reach.
        let mut reach = 0_usize;
        axes.iter().all(|&(stride, extent)| {
            let steps_over = stride > reach;
            reach = reach.saturating_add(stride.saturating_mul(extent - 1));
            steps_over
        })
    }

    /// The offset of an element, or `None` outside the shape or for another number of indices.
    #[inline]
    pub fn offset_of(&self, index: &[usize]) -> Option<usize> {
        if index.len() != self.rank() {
            return None;
        }
        let mut offset = self.offset as isize;
        for ((&i, &extent), &stride) in index.iter().zip(self.shape.iter()).zip(&self.strides) {
            if i >= extent {
                return None;
            }
            offset = offset.wrapping_add((i as isize).wrapping_mul(stride));
        }
        Some(offset as usize)
    }

    /// Axis `i` of the result is axis `perm[i]`.
    ///
    /// # Errors
    /// [`Error::Axis`] unless `perm` is a permutation of the axes.
    #[inline]
    pub fn transpose(&self, op: &'static str, perm: &[usize]) -> Result<Self> {
        let mut result = Layout::BLANK;
        result.set_transpose(op, &self.parts(), perm)?;
        Ok(result)
    }

    /// The elements `starts[i]..limits[i]` of each axis, every `|steps[i]|`-th of them: from the start
    /// when the step is positive, from the last backwards when it is negative.
    ///
    /// # Errors
    /// [`Error::Rank`] for another number of bounds than axes, [`Error::Argument`] for bounds out of
    /// order or range, or a zero step.
    #[inline]
    pub fn slice(
        &self,
        op: &'static str,
        starts: &[usize],
        limits: &[usize],
        steps: &[isize],
    ) -> Result<Self> {
        let mut result = Layout::BLANK;
        result.set_slice(op, &self.parts(), starts, limits, steps)?;
        Ok(result)
    }

    /// [`slice`](Layout::slice) with forward steps, of any size.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn slice_forward(
        &self,
        op: &'static str,
        starts: &[usize],
        limits: &[usize],
        steps: &[usize],
    ) -> Result<Self> {
        let mut result = Layout::BLANK;
        result.set_slice(op, &self.parts(), starts, limits, steps)?;
        Ok(result)
    }

    /// The named axes run backwards.
    ///
    /// # Errors
    /// [`Error::Axis`] for an axis out of range or named twice.
    #[inline]
    pub fn reverse(&self, op: &'static str, axes: &[usize]) -> Result<Self> {
        let mut result = Layout::BLANK;
        result.set_reverse(op, &self.parts(), axes)?;
        Ok(result)
    }

    /// The axis `i` becomes axis `dims[i]` of `shape`; an axis of extent 1, and every axis of the result
    /// that is not named, repeats (stride 0).
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Axis`] for axes of the result out of range or named twice,
    /// [`Error::Shape`] for extents that are neither 1 nor equal, [`Error::Overflow`].
    #[inline]
    pub fn broadcast(&self, op: &'static str, shape: &[usize], dims: &[usize]) -> Result<Self> {
        let mut result = Layout::BLANK;
        result.set_broadcast(op, &self.parts(), shape, dims)?;
        Ok(result)
    }

    /// The same elements in column-major order under another shape; `None` where that needs a copy.
    ///
    /// # Errors
    /// [`Error::Shape`] when the numbers of elements differ, [`Error::Overflow`].
    #[inline]
    pub fn reshape(&self, op: &'static str, shape: &[usize]) -> Result<Option<Self>> {
        let mut result = Layout::BLANK;
        Ok(result.set_reshape(op, &self.parts(), shape)?.then_some(result))
    }

    /// The elements with equal indices on two axes, as a new last axis of the smaller extent.
    ///
    /// # Errors
    /// [`Error::Axis`] for equal axes or an axis out of range.
    #[inline]
    pub fn diagonal(&self, op: &'static str, axis1: usize, axis2: usize) -> Result<Self> {
        let mut result = Layout::BLANK;
        result.set_diagonal(op, &self.parts(), axis1, axis2)?;
        Ok(result)
    }

    /// Without an axis: the elements whose index there is `index`.
    ///
    /// # Errors
    /// [`Error::Axis`] for an axis out of range, [`Error::Argument`] for such an index.
    pub fn index_axis(&self, op: &'static str, axis: usize, index: usize) -> Result<Self> {
        self.check_distinct(op, &[axis])?;
        if index >= self.shape[axis] {
            let expected = format_args!("below {}", self.shape[axis]);
            return Err(Error::argument(op, format!("index of axis {axis}"), index, expected));
        }
        let mut result = self.clone();
        if !self.is_empty() {
            let reach = (index as isize).wrapping_mul(self.strides[axis]);
            result.offset = self.offset.wrapping_add_signed(reach);
        }
        result.shape.0.remove(axis);
        result.strides.remove(axis);
        Ok(result)
    }

    /// With an axis of extent 1 put in at `axis`.
    ///
    /// # Errors
    /// [`Error::Axis`] for an axis above the rank.
    pub fn insert_axis(&self, op: &'static str, axis: usize) -> Result<Self> {
        if axis > self.rank() {
            return Err(Error::axis(op, "axis", axis, format_args!("at most {}", self.rank())));
        }
        let mut result = self.clone();
        result.shape.0.insert(axis, 1);
        result.strides.insert(axis, 1);
        Ok(result)
    }

    /// To be written, once, by one of the methods below.
    pub(crate) const BLANK: Layout =
        Layout { shape: Shape(dims::BLANK_EXTENTS), strides: dims::BLANK_STRIDES, offset: 0 };

    /// What a layout says, to derive another.
    #[inline]
    pub(crate) fn parts(&self) -> Parts<'_> {
        Parts { shape: &self.shape, strides: Some(&self.strides), offset: self.offset }
    }

    /// Extents and strides of so many axes: zeros, if they are the first.
    #[inline]
    fn of_rank(&mut self, rank: usize) -> (&mut [usize], &mut [isize]) {
        (dims::resized(&mut self.shape.0, rank), dims::resized(&mut self.strides, rank))
    }

    /// Becomes the [`transpose`](Layout::transpose) of `from`. Writes where the layout is: one that is made elsewhere
    /// and moved is read back before its parts have left the store buffer, which costs as much as making it.
    #[inline]
    pub(crate) fn set_transpose(&mut self, op: &'static str, from: &Parts<'_>, perm: &[usize]) -> Result<()> {
        let rank = from.shape.len();
        if perm.len() != rank || (rank > 64 && !is_permutation(perm, rank)) {
            return Err(bad_permutation(op, perm, rank));
        }
        let mut compact = dims::BLANK_STRIDES;
        let old = &from.strides(&mut compact)[..rank];
        let (shape, strides) = self.of_rank(rank);
        let mut seen = 0_u64;
        for ((&axis, extent), stride) in perm.iter().zip(shape).zip(strides) {
            if axis >= rank {
                return Err(bad_permutation(op, perm, rank));
            }
            seen |= 1 << (axis % 64);
            (*extent, *stride) = (from.shape[axis], old[axis]);
        }
        // Checked on the way, which for a small tensor saves a fifth of the time.
        if rank <= 64 && seen.count_ones() as usize != rank {
            return Err(bad_permutation(op, perm, rank));
        }
        self.offset = from.offset;
        Ok(())
    }

    /// Becomes the [`slice`](Layout::slice) of `from`, where it is.
    #[inline]
    pub(crate) fn set_slice<S: Step>(
        &mut self,
        op: &'static str,
        from: &Parts<'_>,
        starts: &[usize],
        limits: &[usize],
        steps: &[S],
    ) -> Result<()> {
        let rank = from.shape.len();
        if starts.len() != rank || limits.len() != rank || steps.len() != rank {
            let got = format!("{} starts, {} limits, {} steps", starts.len(), limits.len(), steps.len());
            return Err(Error::rank(op, "slice bounds", got, format_args!("{rank} of each")));
        }
        let (shape, strides) = self.of_rank(rank);
        // As long as the loop, so that it checks no index.
        let (shape, strides) = (&mut shape[..rank], &mut strides[..rank]);
        let (starts, limits, steps) = (&starts[..rank], &limits[..rank], &steps[..rank]);
        let old = from.strides.map(|strides| &strides[..rank]);
        // Products wrap only where the result is empty, or has one element along the axis and so no use
        // for its stride.
        let (mut compact, mut offset, mut empty) = (1_isize, from.offset as isize, false);
        for axis in 0..rank {
            let (start, limit, extent) = (starts[axis], limits[axis], from.shape[axis]);
            let (step, backwards) = steps[axis].parts();
            if start > limit || limit > extent || step == 0 {
                return Err(bad_slice(op, axis, start..limit, (step, backwards), extent));
            }
            let stride = old.map_or(compact, |strides| strides[axis]);
            compact = compact.wrapping_mul(extent as isize);
            let first = if backwards { limit.saturating_sub(1) } else { start };
            offset = offset.wrapping_add((first as isize).wrapping_mul(stride));
            // Most steps are 1, and a division is slow.
            let length = limit - start;
            shape[axis] = if step == 1 { length } else { length.div_ceil(step) };
            let stride = stride.wrapping_mul(step as isize);
            strides[axis] = if backwards { stride.wrapping_neg() } else { stride };
            empty |= length == 0;
        }
        self.offset = if empty { 0 } else { offset as usize };
        Ok(())
    }

    /// Becomes the [`reverse`](Layout::reverse) of `from`, where it is.
    #[inline]
    pub(crate) fn set_reverse(&mut self, op: &'static str, from: &Parts<'_>, axes: &[usize]) -> Result<()> {
        let rank = from.shape.len();
        check_distinct(op, axes, rank)?;
        let (shape, strides) = self.of_rank(rank);
        from.copy_to(shape, strides);
        let mut offset = from.offset;
        for &axis in axes {
            let last = shape[axis].wrapping_sub(1) as isize;
            offset = offset.wrapping_add_signed(last.wrapping_mul(strides[axis]));
            strides[axis] = strides[axis].wrapping_neg();
        }
        self.settle(offset);
        Ok(())
    }

    /// Becomes the [`broadcast`](Layout::broadcast) of `from`, where it is.
    #[inline]
    pub(crate) fn set_broadcast(
        &mut self,
        op: &'static str,
        from: &Parts<'_>,
        to: &[usize],
        dims: &[usize],
    ) -> Result<()> {
        if dims.len() != from.shape.len() {
            return Err(Error::rank(op, "broadcast axes", dims.len(), from.shape.len()));
        }
        let len = checked_len(op, to)?;
        if to.len() > 64 {
            check_distinct(op, dims, to.len())?;
        }
        let (shape, strides) = self.of_rank(to.len());
        dims::copy_to(to, shape);
        let old = from.strides.map(|strides| &strides[..dims.len()]);
        let (mut compact, mut seen) = (1_isize, 0_u64);
        for (axis, (&dim, &extent)) in dims.iter().zip(from.shape).enumerate() {
            let Some(&wanted) = to.get(dim) else { return check_distinct(op, dims, to.len()) };
            let stride = old.map_or(compact, |strides| strides[axis]);
            compact = compact.wrapping_mul(extent as isize);
            seen |= 1 << (dim % 64);
            if extent == wanted {
                strides[dim] = stride;
            } else if extent != 1 {
                check_distinct(op, dims, to.len())?;
                return Err(bad_broadcast(op, axis, extent, dim, to));
            }
        }
        // Checked on the way, as for a transpose.
        if to.len() <= 64 && seen.count_ones() as usize != dims.len() {
            return check_distinct(op, dims, to.len());
        }
        self.offset = if len == 0 { 0 } else { from.offset };
        Ok(())
    }

    /// Becomes the [`reshape`](Layout::reshape) of `from`, where it is; false, with a layout of no meaning, where
    /// that needs a copy.
    #[inline]
    pub(crate) fn set_reshape(&mut self, op: &'static str, from: &Parts<'_>, to: &[usize]) -> Result<bool> {
        let (len, wanted) = (checked_len(op, from.shape)?, checked_len(op, to)?);
        if len != wanted {
            return Err(bad_reshape(op, (from.shape, len), (to, wanted)));
        }
        let (shape, strides) = self.of_rank(to.len());
        dims::copy_to(to, shape);
        if from.is_col_major_contiguous() {
            set_compact(shape, strides);
        } else if !split_runs(from, to, strides) {
            return Ok(false);
        }
        self.offset = if len == 0 { 0 } else { from.offset };
        Ok(true)
    }

    /// Becomes the [`diagonal`](Layout::diagonal) of `from`, where it is.
    #[inline]
    pub(crate) fn set_diagonal(
        &mut self,
        op: &'static str,
        from: &Parts<'_>,
        axis1: usize,
        axis2: usize,
    ) -> Result<()> {
        let rank = from.shape.len();
        check_distinct(op, &[axis1, axis2], rank)?;
        let (shape, strides) = self.of_rank(rank - 1);
        let (mut compact, mut along, mut next) = (1_isize, 0_isize, 0);
        for (axis, &extent) in from.shape.iter().enumerate() {
            let stride = from.strides.map_or(compact, |strides| strides[axis]);
            compact = compact.wrapping_mul(extent as isize);
            if axis == axis1 || axis == axis2 {
                along = along.wrapping_add(stride);
            } else {
                (shape[next], strides[next]) = (extent, stride);
                next += 1;
            }
        }
        let extent = from.shape[axis1].min(from.shape[axis2]);
        shape[next] = extent;
        strides[next] = if extent > 1 { along } else { 1 };
        self.settle(from.offset);
        Ok(())
    }

    /// With this offset, or 0 when empty, so that a pointer to the first element is always inside the buffer.
    #[inline]
    fn settle(&mut self, offset: usize) {
        self.offset = if self.is_empty() { 0 } else { offset };
    }

    fn check_distinct(&self, op: &'static str, axes: &[usize]) -> Result<()> {
        check_distinct(op, axes, self.rank())
    }
}

/// Column-major without gaps.
#[inline]
fn is_compact(shape: &[usize], strides: &[isize]) -> bool {
    let mut expected = 1_isize;
    for (&extent, &stride) in shape.iter().zip(strides) {
        if extent != 1 && stride != expected {
            return shape.contains(&0);
        }
        expected = expected.wrapping_mul(extent as isize);
    }
    true
}

/// The strides of a column-major tensor without gaps.
#[inline]
fn compact_strides(shape: &[usize]) -> Strides {
    let mut stride = 1_isize;
    dims::from_fn(shape.len(), |axis| {
        let own = stride;
        // Wraps only for empty shapes, where no stride is ever used.
        stride = stride.wrapping_mul(shape[axis] as isize);
        own
    })
}

/// The same, where they are.
#[inline]
fn set_compact(shape: &[usize], strides: &mut [isize]) {
    let mut stride = 1_isize;
    for (own, &extent) in strides.iter_mut().zip(shape) {
        *own = stride;
        stride = stride.wrapping_mul(extent as isize);
    }
}

/// The strides of `from` under another shape of as many elements, at least one; false where that needs a copy.
fn split_runs(from: &Parts<'_>, shape: &[usize], strides: &mut [isize]) -> bool {
    // Runs of input axes that walk one arithmetic sequence merge into (extent, stride); the output axes must
    // fill the runs exactly, one after the other.
    let mut runs: SmallVec<[(usize, isize); 6]> = SmallVec::new();
    let mut compact = dims::BLANK_STRIDES;
    let old = from.strides(&mut compact);
    for (&extent, &stride) in from.shape.iter().zip(old).filter(|&(&e, _)| e > 1) {
        match runs.last_mut() {
            Some((run, step)) if stride == step.wrapping_mul(*run as isize) => *run *= extent,
            _ => runs.push((extent, stride)),
        }
    }
    let mut runs = runs.into_iter();
    let (mut left, mut stride) = runs.next().unwrap_or((1, 1));
    for (&extent, own) in shape.iter().zip(strides) {
        if left == 1 && extent > 1 {
            (left, stride) = runs.next().expect("both shapes have the same number of elements");
        }
        if left % extent != 0 {
            return false;
        }
        *own = stride;
        left /= extent;
        stride = stride.wrapping_mul(extent as isize);
    }
    true
}

/// A step of a slice: forward, or of either sign.
pub(crate) trait Step: Copy {
    /// How far, and whether backwards.
    fn parts(self) -> (usize, bool);
}

impl Step for usize {
    #[inline]
    fn parts(self) -> (usize, bool) {
        (self, false)
    }
}

impl Step for isize {
    #[inline]
    fn parts(self) -> (usize, bool) {
        (self.unsigned_abs(), self < 0)
    }
}

/// Where elements lie: a layout, or without strides a compact one.
pub(crate) struct Parts<'a> {
    pub(crate) shape: &'a [usize],
    pub(crate) strides: Option<&'a [isize]>,
    pub(crate) offset: usize,
}

impl Parts<'_> {
    /// The strides, computed in `compact` if they are not written down.
    #[inline]
    fn strides<'s>(&'s self, compact: &'s mut Strides) -> &'s [isize] {
        match self.strides {
            Some(strides) => strides,
            None => {
                let strides = dims::resized(compact, self.shape.len());
                set_compact(self.shape, strides);
                strides
            }
        }
    }

    /// Writes extents and strides.
    #[inline]
    fn copy_to(&self, shape: &mut [usize], strides: &mut [isize]) {
        dims::copy_to(self.shape, shape);
        match self.strides {
            Some(own) => dims::copy_to(own, strides),
            None => set_compact(self.shape, strides),
        }
    }

    #[inline]
    fn is_col_major_contiguous(&self) -> bool {
        self.strides.is_none_or(|strides| is_compact(self.shape, strides))
    }
}

#[cold]
fn bad_broadcast(op: &'static str, axis: usize, extent: usize, dim: usize, to: &[usize]) -> Error {
    let expected = format_args!("1 or {}, the extent of axis {dim} of {to:?}", to[dim]);
    Error::shape(op, format!("extent of axis {axis}"), extent, expected)
}

#[cold]
fn bad_reshape(op: &'static str, from: (&[usize], usize), to: (&[usize], usize)) -> Error {
    let ((shape, len), (wanted, count)) = (from, to);
    let got = format_args!("{shape:?} of {len}");
    Error::shape(op, "number of elements", got, format_args!("{wanted:?} of {count}"))
}

#[cold]
fn bad_permutation(op: &'static str, perm: &[usize], rank: usize) -> Error {
    let expected = format_args!("a permutation of {rank} axes");
    Error::axis(op, "axis permutation", format_args!("{perm:?}"), expected)
}

#[cold]
fn bad_slice(
    op: &'static str,
    axis: usize,
    range: std::ops::Range<usize>,
    (step, backwards): (usize, bool),
    extent: usize,
) -> Error {
    let sign = if backwards { "-" } else { "" };
    let expected = format!("start <= limit <= {extent} and a step that is not 0");
    Error::argument(
        op,
        format!("slice of axis {axis}"),
        format_args!("{range:?} step {sign}{step}"),
        expected,
    )
}

#[inline]
fn is_permutation(perm: &[usize], rank: usize) -> bool {
    perm.len() == rank && first_bad_axis(perm, rank).is_none()
}

/// The position of the first axis that is out of range or a repetition.
#[inline]
fn first_bad_axis(axes: &[usize], rank: usize) -> Option<usize> {
    if rank <= 64 {
        let mut seen = 0_u64;
        axes.iter().position(|&axis| {
            let bad = axis >= rank || seen >> axis & 1 == 1;
            seen |= 1_u64.checked_shl(axis as u32).unwrap_or(0);
            bad
        })
    } else {
        (0..axes.len()).find(|&i| axes[i] >= rank || axes[..i].contains(&axes[i]))
    }
}

fn check_distinct(op: &'static str, axes: &[usize], rank: usize) -> Result<()> {
    match first_bad_axis(axes, rank) {
        None => Ok(()),
        Some(i) => {
            let expected = format!("distinct axes below {rank}, in {axes:?}");
            Err(Error::axis(op, "axis", axes[i], expected))
        }
    }
}
