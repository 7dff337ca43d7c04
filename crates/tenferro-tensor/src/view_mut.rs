//! [`TypedTensorViewMut`]: part of a tensor to write.
//!
//! Invariant: as for [`TypedTensorView`](crate::TypedTensorView), and no two indices share an element, and
//! no two live mutable views (nor a mutable and a shared one) do. It holds because a mutable view starts
//! as all elements of a unique owner, borrowed mutably; because each operation selects among the elements
//! without repeating one (there is no broadcast); and because views that exist side by side come from
//! checked partitions.

use std::{fmt, marker::PhantomData};

use crate::{
    BackendStorage, DynRank, Error, Layout, Placement, Rank, Result, Scalar, SliceSpec, Tensor,
    TypedTensorView,
    iter::{Offsets, runs},
    slice::SliceItem,
    view::{not_contiguous, reshape},
};

/// Elements of a tensor under a shape, signed strides and an offset, to write.
///
/// Rearranging takes the view by value; [`reborrow`](TypedTensorViewMut::reborrow) keeps it for later.
///
/// ```
/// use tenferro_tensor::{TypedTensor, s};
/// let mut a = TypedTensor::<f64>::zeros([2, 4])?;
/// let (mut left, right) = a.as_view_mut()?.split_at(1, 2)?;
/// left.fill(1.0)?;
/// right.slice(s![0, ..])?.fill(2.0)?;
/// assert_eq!(a.as_slice()?, [1.0, 1.0, 1.0, 1.0, 2.0, 0.0, 2.0, 0.0]);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
pub struct TypedTensorViewMut<'a, T, R = DynRank> {
    /// Elements are reached through the storage's own pointer, never through this reference: it is never
    /// handed out, and only says where the storage is.
    base: &'a Tensor,
    layout: Layout,
    elements: PhantomData<&'a mut [T]>,
    rank: PhantomData<fn() -> R>,
}

impl<'a, T, R> TypedTensorViewMut<'a, T, R> {
    /// Of a base whose dtype and uniqueness were checked, borrowed mutably for 'a, under an injective
    /// layout inside it, whose elements no other view has.
    #[inline]
    pub(crate) fn trusted(base: &'a Tensor, layout: Layout) -> Self {
        debug_assert!(layout.fits(base.len()));
        TypedTensorViewMut { base, layout, elements: PhantomData, rank: PhantomData }
    }

    #[inline]
    pub(crate) fn into_parts(self) -> (&'a Tensor, Layout) {
        (self.base, self.layout)
    }

    #[inline]
    pub(crate) fn base(&self) -> &Tensor {
        self.base
    }

    /// The shape, strides and offset.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// What it is.
impl<'a, T: Scalar, R: Rank> TypedTensorViewMut<'a, T, R> {
    /// The extents.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// The strides, in elements.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        self.layout.strides()
    }

    /// Where the first element is in the owner, in elements.
    #[inline]
    pub fn offset(&self) -> usize {
        self.layout.offset()
    }

    /// The number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.layout.rank()
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// No elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// Where the elements are.
    #[inline]
    pub fn placement(&self) -> &'a Placement {
        self.base.placement()
    }

    /// The elements are without gaps in column-major order.
    ///
    /// # Errors
    /// None for the views there are; callers are ready for backends that refuse.
    #[inline]
    pub fn is_col_major_contiguous(&self) -> Result<bool> {
        Ok(self.layout.is_col_major_contiguous())
    }

    /// The storage of a backend that the owner has.
    pub fn backend_storage(&self) -> Option<&dyn BackendStorage<T>> {
        self.base.backend_storage()
    }

    /// The same elements to read. An operation on them copies them first, as their storage cannot be shared.
    #[inline]
    pub fn as_view(&self) -> TypedTensorView<'_, T, R> {
        TypedTensorView::trusted(self.base, self.layout.clone()).lent(true)
    }

    /// The same elements for a shorter time.
    #[inline]
    pub fn reborrow(&mut self) -> TypedTensorViewMut<'_, T, R> {
        TypedTensorViewMut::trusted(self.base, self.layout.clone())
    }

    /// Without the rank in the type.
    #[inline]
    pub fn into_dyn(self) -> TypedTensorViewMut<'a, T> {
        TypedTensorViewMut::trusted(self.base, self.layout)
    }
}

/// Rearranged and divided.
impl<'a, T: Scalar, R: Rank> TypedTensorViewMut<'a, T, R> {
    #[inline]
    fn with<Q: Rank>(self, layout: Layout) -> TypedTensorViewMut<'a, T, Q> {
        TypedTensorViewMut::trusted(self.base, layout)
    }

    /// Axis `i` of the result is axis `perm[i]`.
    ///
    /// # Errors
    /// [`Error::Axis`] unless `perm` is a permutation of the axes.
    pub fn transpose_view(self, perm: impl AsRef<[usize]>) -> Result<Self> {
        let layout = self.layout.transpose("transpose_view", perm.as_ref())?;
        Ok(self.with(layout))
    }

    /// `starts[i]..limits[i]` of each axis with steps; see [`Layout::slice`].
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Argument`].
    pub fn slice_view(
        self,
        starts: impl AsRef<[usize]>,
        limits: impl AsRef<[usize]>,
        steps: impl AsRef<[isize]>,
    ) -> Result<Self> {
        let layout = self.layout.slice("slice_view", starts.as_ref(), limits.as_ref(), steps.as_ref())?;
        Ok(self.with(layout))
    }

    /// The named axes backwards.
    ///
    /// # Errors
    /// [`Error::Axis`] for an axis out of range or named twice.
    pub fn reverse_view(self, axes: impl AsRef<[usize]>) -> Result<Self> {
        let layout = self.layout.reverse("reverse_view", axes.as_ref())?;
        Ok(self.with(layout))
    }

    /// The same elements in column-major order under another shape.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of elements, [`Error::Layout`] where it needs a copy.
    pub fn reshape_view(self, shape: impl AsRef<[usize]>) -> Result<TypedTensorViewMut<'a, T>> {
        let layout = reshape(&self.layout, shape.as_ref())?;
        Ok(self.with(layout))
    }

    /// The elements with equal indices on two axes, as a new last axis.
    ///
    /// # Errors
    /// [`Error::Axis`] for equal axes or an axis out of range.
    pub fn diagonal_view(self, axis1: usize, axis2: usize) -> Result<TypedTensorViewMut<'a, T>> {
        let layout = self.layout.diagonal("diagonal_view", axis1, axis2)?;
        Ok(self.with(layout))
    }

    /// A part; see [`s!`](crate::s).
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Argument`] for a specification that does not fit the shape.
    pub fn slice(self, spec: impl AsRef<[SliceItem]>) -> Result<TypedTensorViewMut<'a, T>> {
        let layout = self.layout.slice_spec("slice", spec.as_ref())?;
        Ok(self.with(layout))
    }

    /// The elements before and from index `at` of an axis, as two views.
    ///
    /// # Errors
    /// [`Error::Axis`] for an axis out of range, [`Error::Argument`] for `at` above its extent.
    pub fn split_at(self, axis: usize, at: usize) -> Result<(Self, Self)> {
        let (before, after) = split(&self.layout, axis, at)?;
        let base = self.base;
        Ok((TypedTensorViewMut::trusted(base, before), TypedTensorViewMut::trusted(base, after)))
    }

    /// Several parts at once; see [`s!`](crate::s).
    ///
    /// # Errors
    /// [`Error::Argument`] when two parts share an element; as [`slice`](Self::slice).
    pub fn slices_mut(self, specs: &[SliceSpec]) -> Result<Vec<TypedTensorViewMut<'a, T>>> {
        let layouts = disjoint_slices(&self.layout, specs)?;
        Ok(layouts.into_iter().map(|layout| TypedTensorViewMut::trusted(self.base, layout)).collect())
    }
}

/// Its elements.
impl<'a, T: Scalar, R: Rank> TypedTensorViewMut<'a, T, R> {
    #[inline]
    fn first(&self, op: &'static str) -> Result<*mut T> {
        let base = self.base.host_ptr_for::<T>(op)?.cast_mut();
        // SAFETY: the offset is that of an element of the owner, or 0.
        Ok(unsafe { base.add(self.layout.offset()) })
    }

    /// The address of the first element; the others are at the strides from it.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory.
    #[inline]
    pub fn host_mut_ptr(&mut self) -> Result<*mut T> {
        self.first("host_mut_ptr")
    }

    /// The elements, if they are without gaps in column-major order.
    ///
    /// # Errors
    /// [`Error::Layout`] for other strides, [`Error::Placement`] for elements outside host memory.
    pub fn into_slice_mut(self) -> Result<&'a mut [T]> {
        if !self.layout.is_col_major_contiguous() {
            return Err(not_contiguous(&self.layout));
        }
        let first = self.first("into_slice_mut")?;
        // SAFETY: the elements are consecutive, initialised, inside the owner, and this view, which is used
        // up, is the only access to them for 'a.
        Ok(unsafe { std::slice::from_raw_parts_mut(first, self.len()) })
    }

    /// [`into_slice_mut`](Self::into_slice_mut) that leaves the view for later.
    ///
    /// # Errors
    /// As [`into_slice_mut`](Self::into_slice_mut).
    pub fn as_slice_mut(&mut self) -> Result<&mut [T]> {
        self.reborrow().into_slice_mut()
    }

    /// The element at an index; `None` outside the shape or outside host memory.
    pub fn get(&self, index: &[usize]) -> Option<&T> {
        self.as_view().get(index)
    }

    /// The element at an index, to write; `None` outside the shape or outside host memory.
    pub fn get_mut(&mut self, index: &[usize]) -> Option<&mut T> {
        let offset = self.layout.offset_of(index)?;
        let base = self.base.host_ptr_for::<T>("get_mut").ok()?.cast_mut();
        // SAFETY: the offset is that of an initialised element, which only this view, borrowed mutably,
        // gives access to.
        Some(unsafe { &mut *base.add(offset) })
    }

    /// Sets all elements.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.update(|element| *element = value)
    }

    /// Calls `f` with each element, in column-major order.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory.
    pub fn update(&mut self, mut f: impl FnMut(&mut T)) -> Result<()> {
        let first = self.first("update")?;
        let (extent, stride, offsets) = runs(&self.layout);
        for offset in offsets {
            for i in 0..extent {
                // SAFETY: the runs cover exactly the layout's elements, each once; they are initialised and
                // only this view, borrowed mutably, gives access to them.
                f(unsafe { &mut *first.offset(offset + i as isize * stride) });
            }
        }
        Ok(())
    }

    /// Copies a view of the same shape into this one.
    ///
    /// # Errors
    /// [`Error::Shape`] for another shape, [`Error::Placement`] for elements outside host memory.
    pub fn assign<Q: Rank>(&mut self, source: &TypedTensorView<'_, T, Q>) -> Result<()> {
        if source.shape() != self.shape() {
            let (got, expected) = (format!("{:?}", source.shape()), format!("{:?}", self.shape()));
            return Err(Error::shape("assign", "shape of the source", got, expected));
        }
        let (to, from) = (self.first("assign")?, source.host_ptr()?);
        for (t, f) in Offsets::new(&self.layout).zip(Offsets::new(source.layout())) {
            // SAFETY: both offsets are those of initialised elements of their views; the borrow rules keep
            // the source's elements apart from this view's.
            unsafe { *to.offset(t) = *from.offset(f) };
        }
        Ok(())
    }
}

pub(crate) fn split(layout: &Layout, axis: usize, at: usize) -> Result<(Layout, Layout)> {
    let Some(&extent) = layout.shape().get(axis) else {
        return Err(Error::axis("split_at", "axis", axis, format_args!("below {}", layout.rank())));
    };
    if at > extent {
        return Err(Error::argument(
            "split_at",
            format!("index of axis {axis}"),
            at,
            format_args!("at most {extent}"),
        ));
    }
    let part = |from: usize, to: usize| {
        let mut starts = vec![0; layout.rank()];
        let mut limits = layout.shape().to_vec();
        (starts[axis], limits[axis]) = (from, to);
        layout.slice("split_at", &starts, &limits, &vec![1; layout.rank()])
    };
    Ok((part(0, at)?, part(at, extent)?))
}

/// The parts that the specifications name, if no two share an element.
pub(crate) fn disjoint_slices(layout: &Layout, specs: &[SliceSpec]) -> Result<Vec<Layout>> {
    let op = "slices_mut";
    let picks = |spec: &SliceSpec| -> Result<Vec<Progression>> {
        let axes = spec.as_ref().iter().filter(|item| !matches!(item, SliceItem::NewAxis));
        let rest = std::iter::repeat(&SliceItem::Range { start: 0, end: None, step: 1 });
        let mut picked = Vec::with_capacity(layout.rank());
        for (&extent, item) in layout.shape().iter().zip(axes.chain(rest)) {
            // The same rule that makes the layout, applied to an axis of unit stride.
            let axis = Layout::contiguous(&[extent]).slice_spec(op, std::slice::from_ref(item))?;
            picked.push(Progression::of(&axis));
        }
        Ok(picked)
    };
    let layouts =
        specs.iter().map(|spec| layout.slice_spec(op, spec.as_ref())).collect::<Result<Vec<_>>>()?;
    let picked = specs.iter().map(picks).collect::<Result<Vec<_>>>()?;
    for (j, b) in picked.iter().enumerate() {
        for (i, a) in picked[..j].iter().enumerate() {
            // A view's layout is injective: parts share an element when they share an index on every axis.
            if a.iter().zip(b).all(|(x, y)| x.meets(y)) {
                let got = format!("parts {i} and {j} of {layout:?}");
                return Err(Error::argument(op, "overlapping parts", got, "parts without a common element"));
            }
        }
    }
    Ok(layouts)
}

/// The indices that a slice takes of one axis: `first, first + step, ..`, `count` of them.
#[derive(Clone, Copy, Debug)]
struct Progression {
    first: usize,
    step: usize,
    count: usize,
}

impl Progression {
    /// The offsets of a layout of rank 0 or 1.
    fn of(layout: &Layout) -> Self {
        let (first, _) = layout.span();
        let step = layout.strides().first().map_or(1, |stride| stride.unsigned_abs());
        Progression { first, step, count: layout.len() }
    }

    fn last(&self) -> usize {
        self.first + (self.count - 1) * self.step
    }

    /// The two have an index in common.
    fn meets(&self, other: &Self) -> bool {
        if self.count == 0 || other.count == 0 {
            return false;
        }
        let (low, high) = (self.first.max(other.first), self.last().min(other.last()));
        if low > high {
            return false;
        }
        // Walk the sparser one over the common range; after as many steps as the other one's step is long
        // the remainders repeat.
        let (walked, met) = if self.step >= other.step { (self, other) } else { (other, self) };
        let start = walked.first + (low - walked.first).div_ceil(walked.step) * walked.step;
        (0..met.step)
            .map_while(|k| start.checked_add(k.checked_mul(walked.step)?).filter(|&at| at <= high))
            .any(|at| (at - met.first) % met.step == 0)
    }
}

impl<T: Scalar, R: Rank> fmt::Debug for TypedTensorViewMut<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedTensorViewMut").field("base", self.base).field("layout", &self.layout).finish()
    }
}
