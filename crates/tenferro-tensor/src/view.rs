//! [`TypedTensorView`]: part of a tensor, rearranged without a copy.
//!
//! Invariant: the owner has dtype `T::DTYPE`, and every element of the layout lies inside it; so all the
//! operations of [`Layout`], which keep a layout inside its buffer, are safe here.

use std::{fmt, marker::PhantomData};

use crate::{
    BackendStorage, DynRank, Error, Iter, Layout, Placement, Rank, Ranked, Result, Scalar, Tensor,
    TensorRead, TypedTensor, iter::copy_to_compact, slice::SliceItem, tensor::non_scalar,
};

/// Elements of a tensor under a shape, signed strides and an offset.
///
/// Transposing, slicing, reversing, broadcasting, reshaping where possible cost O(rank) and copy nothing;
/// [`to_tensor`](TypedTensorView::to_tensor) copies.
///
/// ```
/// use tenferro_tensor::TypedTensor;
/// let a = TypedTensor::<f64>::from_vec_col_major([2, 3], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0])?;
/// let t = a.as_view().transpose_view([1, 0])?;
/// assert_eq!(t.get(&[2, 1]), Some(&6.0));
/// assert!(t.as_slice().is_err());
/// assert_eq!(t.to_tensor()?.as_slice()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
pub struct TypedTensorView<'a, T, R = DynRank> {
    base: &'a Tensor,
    layout: Layout,
    /// Of a base that is borrowed to be written, whose storage must not be shared.
    lent: bool,
    kind: PhantomData<fn() -> (T, R)>,
}

impl<T, R> Clone for TypedTensorView<'_, T, R> {
    fn clone(&self) -> Self {
        TypedTensorView { layout: self.layout.clone(), ..*self }
    }
}

impl<'a, T, R> TypedTensorView<'a, T, R> {
    /// Of a base whose dtype was checked, under a layout inside it.
    #[inline]
    pub(crate) fn trusted(base: &'a Tensor, layout: Layout) -> Self {
        debug_assert!(layout.fits(base.len()));
        TypedTensorView { base, layout, lent: false, kind: PhantomData }
    }

    /// The same, of a base that may be borrowed to be written.
    #[inline]
    pub(crate) fn lent(mut self, lent: bool) -> Self {
        self.lent |= lent;
        self
    }

    #[inline]
    pub(crate) fn is_lent(&self) -> bool {
        self.lent
    }

    #[inline]
    pub(crate) fn base(&self) -> &'a Tensor {
        self.base
    }

    /// The shape, strides and offset.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// What it is.
impl<'a, T: Scalar, R: Rank> TypedTensorView<'a, T, R> {
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

    /// The elements are without gaps in column-major order, so that [`as_slice`](Self::as_slice) works.
    ///
    /// # Errors
    /// None for the views there are; callers are ready for backends that refuse.
    #[inline]
    pub fn is_col_major_contiguous(&self) -> Result<bool> {
        Ok(self.layout.is_col_major_contiguous())
    }

    /// The storage of a backend that the owner has.
    pub fn backend_storage(&self) -> Option<&'a dyn BackendStorage<T>> {
        self.base.backend_storage()
    }
}

/// Rearranged.
impl<'a, T: Scalar, R: Rank> TypedTensorView<'a, T, R> {
    #[inline]
    pub(crate) fn with<Q: Rank>(&self, layout: Layout) -> TypedTensorView<'a, T, Q> {
        TypedTensorView::trusted(self.base, layout).lent(self.lent)
    }

    /// Axis `i` of the result is axis `perm[i]`.
    ///
    /// # Errors
    /// [`Error::Axis`] unless `perm` is a permutation of the axes.
    #[inline]
    pub fn transpose_view(&self, perm: impl AsRef<[usize]>) -> Result<Self> {
        self.layout.transpose("transpose_view", perm.as_ref()).map(|layout| self.with(layout))
    }

    /// `starts[i]..limits[i]` of each axis with steps; see [`Layout::slice`].
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Argument`].
    pub fn slice_view(
        &self,
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
    pub fn reverse_view(&self, axes: impl AsRef<[usize]>) -> Result<Self> {
        self.layout.reverse("reverse_view", axes.as_ref()).map(|layout| self.with(layout))
    }

    /// Axis `i` as axis `dims[i]` of `shape`, repeated along the others; see [`Layout::broadcast`].
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Axis`], [`Error::Shape`], [`Error::Overflow`].
    pub fn broadcast_view(
        &self,
        shape: impl AsRef<[usize]>,
        dims: impl AsRef<[usize]>,
    ) -> Result<TypedTensorView<'a, T>> {
        let layout = self.layout.broadcast("broadcast_view", shape.as_ref(), dims.as_ref())?;
        Ok(self.with(layout))
    }

    /// The same elements in column-major order under another shape.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of elements, [`Error::Layout`] where it needs a copy.
    pub fn reshape_view(&self, shape: impl AsRef<[usize]>) -> Result<TypedTensorView<'a, T>> {
        let layout = reshape(&self.layout, shape.as_ref())?;
        Ok(self.with(layout))
    }

    /// The elements with equal indices on two axes, as a new last axis.
    ///
    /// # Errors
    /// [`Error::Axis`] for equal axes or an axis out of range.
    pub fn diagonal_view(&self, axis1: usize, axis2: usize) -> Result<TypedTensorView<'a, T>> {
        self.layout.diagonal("diagonal_view", axis1, axis2).map(|layout| self.with(layout))
    }

    /// A part; see [`s!`](crate::s).
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Argument`] for a specification that does not fit the shape.
    pub fn slice(&self, spec: impl AsRef<[SliceItem]>) -> Result<TypedTensorView<'a, T>> {
        self.layout.slice_spec("slice", spec.as_ref()).map(|layout| self.with(layout))
    }

    /// With rank `N` in the type.
    ///
    /// # Errors
    /// [`Error::Rank`] for another rank.
    pub fn into_rank<const N: usize>(self) -> Result<TypedTensorView<'a, T, Ranked<N>>> {
        if self.rank() != N {
            return Err(Error::rank("into_rank", "rank", self.rank(), N));
        }
        Ok(TypedTensorView::trusted(self.base, self.layout).lent(self.lent))
    }

    /// Without the rank in the type.
    #[inline]
    pub fn into_dyn(self) -> TypedTensorView<'a, T> {
        TypedTensorView::trusted(self.base, self.layout).lent(self.lent)
    }

    /// As the argument of an operation.
    ///
    /// # Errors
    /// None for the views there are; callers are ready for backends that refuse.
    #[inline]
    pub fn into_tensor_read(self) -> Result<TensorRead<'a>> {
        Ok(TensorRead::View(T::erase(self.into_dyn())))
    }
}

/// Its elements.
impl<'a, T: Scalar, R: Rank> TypedTensorView<'a, T, R> {
    /// The address of the first element; the others are at the strides from it.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory.
    #[inline]
    pub fn host_ptr(&self) -> Result<*const T> {
        self.first("host_ptr")
    }

    #[inline]
    fn first(&self, op: &'static str) -> Result<*const T> {
        let base = self.base.host_ptr_for::<T>(op)?;
        // SAFETY: the offset is that of an element of the owner, or 0.
        Ok(unsafe { base.add(self.layout.offset()) })
    }

    /// The elements, if they are without gaps in column-major order; never a copy.
    ///
    /// # Errors
    /// [`Error::Layout`] for other strides, [`Error::Placement`] for elements outside host memory.
    #[inline]
    pub fn as_slice(&self) -> Result<&'a [T]> {
        if !self.layout.is_col_major_contiguous() {
            return Err(not_contiguous(&self.layout));
        }
        let first = self.first("as_slice")?;
        // SAFETY: the elements are consecutive, initialised, inside the owner, which nothing writes for 'a.
        Ok(unsafe { std::slice::from_raw_parts(first, self.len()) })
    }

    /// The element at an index; `None` outside the shape or outside host memory.
    #[inline]
    pub fn get(&self, index: &[usize]) -> Option<&'a T> {
        let offset = self.layout.offset_of(index)?;
        let base = self.base.host_ptr_for::<T>("get").ok()?;
        // SAFETY: the offset is that of an initialised element; nothing writes the owner for 'a.
        Some(unsafe { &*base.add(offset) })
    }

    /// The elements in column-major order.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory.
    pub fn iter(&self) -> Result<Iter<'a, T>> {
        let first = self.first("iter")?;
        // SAFETY: the layout's elements are initialised, inside the owner, and not written for 'a.
        Ok(unsafe { Iter::new(first, &self.layout) })
    }

    /// The only element.
    ///
    /// # Errors
    /// [`Error::NonScalar`] unless there is exactly one, [`Error::Placement`].
    pub fn item(&self) -> Result<T> {
        let mut elements = self.iter()?;
        match (elements.next(), elements.next()) {
            (Some(element), None) => Ok(*element),
            _ => Err(non_scalar(self.shape())),
        }
    }

    /// Applies `f` to each element, in column-major order.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory, [`Error::Memory`].
    pub fn map<U: Scalar>(&self, mut f: impl FnMut(T) -> U) -> Result<TypedTensor<U, R>> {
        let mut elements = self.iter()?;
        TypedTensor::from_elements("map", self.shape(), || {
            f(*elements.next().expect("as many as the shape says"))
        })
    }

    /// A compact copy.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory, [`Error::Memory`], and [`Error::Overflow`]
    /// for a broadcast of more elements than memory can have.
    pub fn to_tensor(&self) -> Result<TypedTensor<T, R>> {
        let base = self.base.host_ptr_for::<T>("to_tensor")?;
        let mut out = Tensor::uninit_for("to_tensor", T::DTYPE, self.shape())?;
        // SAFETY: the layout's elements are initialised and inside the owner; `out` is another allocation
        // with room for all of them, and the copy writes all.
        unsafe {
            copy_to_compact(base, &self.layout, out.as_mut_ptr());
            Ok(TypedTensor::trusted(out.assume_init()))
        }
    }

    /// A compact copy; the same as [`to_tensor`](Self::to_tensor).
    ///
    /// # Errors
    /// As [`to_tensor`](Self::to_tensor).
    pub fn duplicate(&self) -> Result<TypedTensor<T, R>> {
        self.to_tensor()
    }

    /// A copy of the elements in row-major order (last axis fastest).
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory.
    pub fn to_vec_row_major(&self) -> Result<Vec<T>> {
        let axes: crate::Shape = (0..self.rank()).rev().collect();
        Ok(self.transpose_view(axes)?.into_dyn().iter()?.copied().collect())
    }
}

/// [`Layout::reshape`], where a copy is no alternative.
pub(crate) fn reshape(layout: &Layout, shape: &[usize]) -> Result<Layout> {
    layout.reshape("reshape_view", shape)?.ok_or_else(|| {
        let got = format!("{:?} to {shape:?} with strides {:?}", layout.shape(), layout.strides());
        Error::layout("reshape_view", "reshape", got, "a shape that needs no copy, or a duplicate()")
    })
}

#[cold]
pub(crate) fn not_contiguous(layout: &Layout) -> Error {
    let got = format!("strides {:?} for shape {:?}", layout.strides(), layout.shape());
    let expected = "column-major strides without gaps, or an explicit copy";
    Error::layout("as_slice", "view is not slice-contiguous", got, expected)
}

impl<T: Scalar, R: Rank> fmt::Debug for TypedTensorView<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedTensorView").field("base", self.base).field("layout", &self.layout).finish()
    }
}
