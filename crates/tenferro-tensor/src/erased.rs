//! Views whose element type is a run-time value: [`TensorView`], [`TensorViewMut`], [`TensorRead`].

use crate::{
    BackendStorage, DType, Error, Layout, Placement, Rank, Result, Scalar, SliceSpec, Tensor, TypedTensor,
    TypedTensorView, TypedTensorViewMut, Value,
    slice::SliceItem,
    view::{not_contiguous, reshape},
    view_mut::{disjoint_slices, split},
};

macro_rules! define_views {
    (($d:tt) $($group:ident { $($V:ident: $t:ty, $R:ident $r:ty, $C:ident $c:ty;)* })*) => {
        /// A [`TypedTensorView`] of any element type.
        ///
        /// ```
        /// use tenferro_tensor::{Tensor, TensorView};
        /// let t = Tensor::from_vec_col_major([2, 2], vec![1_i64, 2, 3, 4])?;
        /// let TensorView::I64(v) = t.as_view().transpose_view([1, 0])? else { panic!("i64") };
        /// assert_eq!(v.get(&[0, 1]), Some(&2));
        /// # Ok::<(), tenferro_tensor::Error>(())
        /// ```
        #[derive(Clone, Debug)]
        pub enum TensorView<'a> {
            $($(#[doc = concat!("Elements `", stringify!($t), "`.")] $V(TypedTensorView<'a, $t>),)*)*
        }

        /// A [`TypedTensorViewMut`] of any element type.
        #[derive(Debug)]
        pub enum TensorViewMut<'a> {
            $($(#[doc = concat!("Elements `", stringify!($t), "`.")] $V(TypedTensorViewMut<'a, $t>),)*)*
        }

        impl<'a> TensorView<'a> {
            /// Under a layout that lies inside the base.
            #[inline]
            pub(crate) fn trusted(base: &'a Tensor, layout: Layout) -> Self {
                match base.dtype() {
                    $($(DType::$V => TensorView::$V(TypedTensorView::trusted(base, layout)),)*)*
                }
            }

            /// Under another layout that lies inside the base.
            #[inline]
            fn with(&self, layout: Layout) -> Self {
                match self { $($(TensorView::$V(v) => TensorView::$V(v.with(layout)),)*)* }
            }

            /// The same, of a base that may be borrowed to be written.
            #[inline]
            pub(crate) fn lent(self, lent: bool) -> Self {
                match self { $($(TensorView::$V(v) => TensorView::$V(v.lent(lent)),)*)* }
            }

            #[inline]
            fn is_lent(&self) -> bool {
                match self { $($(TensorView::$V(v) => v.is_lent(),)*)* }
            }

            #[inline]
            pub(crate) fn base(&self) -> &'a Tensor {
                match self { $($(TensorView::$V(v) => v.base(),)*)* }
            }

            #[inline]
            pub(crate) fn layout_ref(&self) -> &Layout {
                match self { $($(TensorView::$V(v) => v.layout(),)*)* }
            }
        }

        impl<'a> TensorViewMut<'a> {
            /// Under the conditions of [`TypedTensorViewMut::trusted`].
            #[inline]
            pub(crate) fn trusted(base: &'a Tensor, layout: Layout) -> Self {
                match base.dtype() {
                    $($(DType::$V => TensorViewMut::$V(TypedTensorViewMut::trusted(base, layout)),)*)*
                }
            }

            #[inline]
            fn base(&self) -> &Tensor {
                match self { $($(TensorViewMut::$V(v) => v.base(),)*)* }
            }

            #[inline]
            fn layout_ref(&self) -> &Layout {
                match self { $($(TensorViewMut::$V(v) => v.layout(),)*)* }
            }

            #[inline]
            fn into_parts(self) -> (&'a Tensor, Layout) {
                match self { $($(TensorViewMut::$V(v) => v.into_parts(),)*)* }
            }
        }
    };
}

dtype_table!(define_views);

/// The getters that both kinds of view share.
macro_rules! getters {
    () => {
        /// The element type.
        #[inline]
        pub fn dtype(&self) -> DType {
            self.base().dtype()
        }

        /// The extents.
        #[inline]
        pub fn shape(&self) -> &[usize] {
            self.layout_ref().shape()
        }

        /// The strides, in elements.
        #[inline]
        pub fn strides(&self) -> &[isize] {
            self.layout_ref().strides()
        }

        /// Where the first element is in the owner, in elements.
        #[inline]
        pub fn offset(&self) -> usize {
            self.layout_ref().offset()
        }

        /// The shape, strides and offset.
        #[inline]
        pub fn layout(&self) -> Layout {
            self.layout_ref().clone()
        }

        /// The number of axes.
        #[inline]
        pub fn rank(&self) -> usize {
            self.layout_ref().rank()
        }

        /// The number of elements.
        #[inline]
        pub fn len(&self) -> usize {
            self.layout_ref().len()
        }

        /// No elements.
        #[inline]
        pub fn is_empty(&self) -> bool {
            self.layout_ref().is_empty()
        }

        /// The elements are without gaps in column-major order.
        #[inline]
        pub fn is_contiguous(&self) -> bool {
            self.layout_ref().is_col_major_contiguous()
        }

        /// The elements can be borrowed as host memory.
        #[inline]
        pub fn is_host(&self) -> bool {
            self.base().is_host()
        }

        /// The storage of a backend that the owner has, if it is one of elements `T`.
        pub fn backend_storage<T: Scalar>(&self) -> Option<&dyn BackendStorage<T>> {
            self.base().backend_storage()
        }
    };
}

impl<'a> TensorView<'a> {
    getters!();

    /// Of a tensor under a layout.
    ///
    /// # Errors
    /// [`Error::Layout`] when an element would lie outside the tensor.
    pub fn new(base: &'a Tensor, layout: Layout) -> Result<Self> {
        check_inside("TensorView::new", base, &layout)?;
        Ok(TensorView::trusted(base, layout))
    }

    /// Where the elements are.
    pub fn placement(&self) -> &'a Placement {
        self.base().placement()
    }

    /// The same with the element type.
    ///
    /// # Errors
    /// [`Error::DType`] for another `T`.
    #[inline]
    pub fn typed<T: Scalar>(&self) -> Result<TypedTensorView<'a, T>> {
        self.base().check_dtype::<T>("typed")?;
        Ok(TypedTensorView::trusted(self.base(), self.layout()).lent(self.is_lent()))
    }

    /// The address of the first element.
    ///
    /// # Errors
    /// [`Error::DType`] for another `T`, [`Error::Placement`] for elements outside host memory.
    #[inline]
    pub fn host_ptr<T: Scalar>(&self) -> Result<*const T> {
        let base = self.base().host_ptr_for::<T>("host_ptr")?;
        // SAFETY: the offset is that of an element of the owner, or 0.
        Ok(unsafe { base.add(self.offset()) })
    }

    /// The elements, if they are without gaps in column-major order; never a copy.
    ///
    /// # Errors
    /// [`Error::DType`], [`Error::Layout`], [`Error::Placement`].
    pub fn as_slice<T: Scalar>(&self) -> Result<&'a [T]> {
        self.typed::<T>()?.as_slice()
    }

    /// Axis `i` of the result is axis `perm[i]`.
    ///
    /// # Errors
    /// [`Error::Axis`] unless `perm` is a permutation of the axes.
    pub fn transpose_view(&self, perm: impl AsRef<[usize]>) -> Result<Self> {
        let layout = self.layout_ref().transpose("transpose_view", perm.as_ref())?;
        Ok(self.with(layout))
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
        let (starts, limits, steps) = (starts.as_ref(), limits.as_ref(), steps.as_ref());
        let layout = self.layout_ref().slice("slice_view", starts, limits, steps)?;
        Ok(self.with(layout))
    }

    /// The named axes backwards.
    ///
    /// # Errors
    /// [`Error::Axis`] for an axis out of range or named twice.
    pub fn reverse_view(&self, axes: impl AsRef<[usize]>) -> Result<Self> {
        let layout = self.layout_ref().reverse("reverse_view", axes.as_ref())?;
        Ok(self.with(layout))
    }

    /// Axis `i` as axis `dims[i]` of `shape`, repeated along the others; see [`Layout::broadcast`].
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Axis`], [`Error::Shape`], [`Error::Overflow`].
    pub fn broadcast_view(&self, shape: impl AsRef<[usize]>, dims: impl AsRef<[usize]>) -> Result<Self> {
        let layout = self.layout_ref().broadcast("broadcast_view", shape.as_ref(), dims.as_ref())?;
        Ok(self.with(layout))
    }

    /// The same elements in column-major order under another shape.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of elements, [`Error::Layout`] where it needs a copy.
    pub fn reshape_view(&self, shape: impl AsRef<[usize]>) -> Result<Self> {
        Ok(self.with(reshape(self.layout_ref(), shape.as_ref())?))
    }

    /// The elements with equal indices on two axes, as a new last axis.
    ///
    /// # Errors
    /// [`Error::Axis`] for equal axes or an axis out of range.
    pub fn diagonal_view(&self, axis1: usize, axis2: usize) -> Result<Self> {
        let layout = self.layout_ref().diagonal("diagonal_view", axis1, axis2)?;
        Ok(self.with(layout))
    }

    /// A part; see [`s!`](crate::s).
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Argument`] for a specification that does not fit the shape.
    pub fn slice(&self, spec: impl AsRef<[SliceItem]>) -> Result<Self> {
        let layout = self.layout_ref().slice_spec("slice", spec.as_ref())?;
        Ok(self.with(layout))
    }

    /// The only element.
    ///
    /// # Errors
    /// [`Error::NonScalar`], [`Error::DType`], [`Error::Placement`].
    pub fn item<T: Scalar>(&self) -> Result<T> {
        self.typed::<T>()?.item()
    }

    /// A compact copy.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory, [`Error::Memory`], [`Error::Overflow`].
    pub fn to_tensor(&self) -> Result<Tensor> {
        dispatch!(self.dtype(), T => self.typed::<T>()?.to_tensor().map(TypedTensor::into_tensor))
    }

    /// A compact copy; the same as [`to_tensor`](TensorView::to_tensor).
    ///
    /// # Errors
    /// As [`to_tensor`](TensorView::to_tensor).
    pub fn duplicate(&self) -> Result<Tensor> {
        self.to_tensor()
    }

    /// As the argument of an operation.
    ///
    /// # Errors
    /// None for the views there are; callers are ready for backends that refuse.
    #[inline]
    pub fn into_tensor_read(self) -> Result<TensorRead<'a>> {
        Ok(TensorRead::View(self))
    }
}

impl<'a> TensorViewMut<'a> {
    getters!();

    /// Where the elements are.
    pub fn placement(&self) -> &Placement {
        self.base().placement()
    }

    /// The same with the element type.
    ///
    /// # Errors
    /// [`Error::DType`] for another `T`.
    pub fn into_typed<T: Scalar>(self) -> Result<TypedTensorViewMut<'a, T>> {
        self.base().check_dtype::<T>("into_typed")?;
        let (base, layout) = self.into_parts();
        Ok(TypedTensorViewMut::trusted(base, layout))
    }

    /// The same with the element type, for a shorter time.
    ///
    /// # Errors
    /// [`Error::DType`] for another `T`.
    pub fn typed_mut<T: Scalar>(&mut self) -> Result<TypedTensorViewMut<'_, T>> {
        self.reborrow().into_typed()
    }

    /// The same elements for a shorter time.
    pub fn reborrow(&mut self) -> TensorViewMut<'_> {
        TensorViewMut::trusted(self.base(), self.layout())
    }

    /// The same elements to read. An operation on them copies them first, as their storage cannot be shared.
    pub fn as_view(&self) -> TensorView<'_> {
        TensorView::trusted(self.base(), self.layout()).lent(true)
    }

    /// The address of the first element, to write.
    ///
    /// # Errors
    /// [`Error::DType`] for another `T`, [`Error::Placement`] for elements outside host memory.
    #[inline]
    pub fn host_mut_ptr<T: Scalar>(&mut self) -> Result<*mut T> {
        let base = self.base().host_ptr_for::<T>("host_mut_ptr")?.cast_mut();
        // SAFETY: the offset is that of an element of the owner, or 0.
        Ok(unsafe { base.add(self.offset()) })
    }

    /// The address of the first element, without its type.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory.
    #[inline]
    pub fn host_byte_mut_ptr(&mut self) -> Result<*mut u8> {
        let base = self.base().host_byte_ptr("host_byte_mut_ptr")?;
        // SAFETY: the offset is that of an element of the owner, or 0.
        Ok(unsafe { base.add(self.offset() * self.dtype().size()) })
    }

    /// The elements, if they are without gaps in column-major order.
    ///
    /// # Errors
    /// [`Error::DType`], [`Error::Layout`], [`Error::Placement`].
    pub fn as_slice_mut<T: Scalar>(&mut self) -> Result<&mut [T]> {
        if !self.is_contiguous() {
            return Err(not_contiguous(self.layout_ref()));
        }
        self.typed_mut::<T>()?.into_slice_mut()
    }

    /// Axis `i` of the result is axis `perm[i]`.
    ///
    /// # Errors
    /// [`Error::Axis`] unless `perm` is a permutation of the axes.
    pub fn transpose_view(self, perm: impl AsRef<[usize]>) -> Result<Self> {
        let (base, layout) = self.into_parts();
        Ok(TensorViewMut::trusted(base, layout.transpose("transpose_view", perm.as_ref())?))
    }

    /// The named axes backwards.
    ///
    /// # Errors
    /// [`Error::Axis`] for an axis out of range or named twice.
    pub fn reverse_view(self, axes: impl AsRef<[usize]>) -> Result<Self> {
        let (base, layout) = self.into_parts();
        Ok(TensorViewMut::trusted(base, layout.reverse("reverse_view", axes.as_ref())?))
    }

    /// The same elements in column-major order under another shape.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of elements, [`Error::Layout`] where it needs a copy.
    pub fn reshape_view(self, shape: impl AsRef<[usize]>) -> Result<Self> {
        let (base, layout) = self.into_parts();
        Ok(TensorViewMut::trusted(base, reshape(&layout, shape.as_ref())?))
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
        let (base, layout) = self.into_parts();
        let layout = layout.slice("slice_view", starts.as_ref(), limits.as_ref(), steps.as_ref())?;
        Ok(TensorViewMut::trusted(base, layout))
    }

    /// The elements with equal indices on two axes, as a new last axis.
    ///
    /// # Errors
    /// [`Error::Axis`] for equal axes or an axis out of range.
    pub fn diagonal_view(self, axis1: usize, axis2: usize) -> Result<Self> {
        let (base, layout) = self.into_parts();
        Ok(TensorViewMut::trusted(base, layout.diagonal("diagonal_view", axis1, axis2)?))
    }

    /// A part; see [`s!`](crate::s).
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Argument`] for a specification that does not fit the shape.
    pub fn slice(self, spec: impl AsRef<[SliceItem]>) -> Result<Self> {
        let (base, layout) = self.into_parts();
        Ok(TensorViewMut::trusted(base, layout.slice_spec("slice", spec.as_ref())?))
    }

    /// The elements before and from index `at` of an axis, as two views.
    ///
    /// # Errors
    /// [`Error::Axis`] for an axis out of range, [`Error::Argument`] for `at` above its extent.
    pub fn split_at(self, axis: usize, at: usize) -> Result<(Self, Self)> {
        let (base, layout) = self.into_parts();
        let (before, after) = split(&layout, axis, at)?;
        Ok((TensorViewMut::trusted(base, before), TensorViewMut::trusted(base, after)))
    }

    /// Several parts at once; see [`s!`](crate::s).
    ///
    /// # Errors
    /// [`Error::Argument`] when two parts share an element; as [`slice`](Self::slice).
    pub fn slices_mut(self, specs: &[SliceSpec]) -> Result<Vec<Self>> {
        let (base, layout) = self.into_parts();
        let layouts = disjoint_slices(&layout, specs)?;
        Ok(layouts.into_iter().map(|layout| TensorViewMut::trusted(base, layout)).collect())
    }

    /// Copies a view of the same dtype and shape into this one.
    ///
    /// # Errors
    /// [`Error::DType`], [`Error::Shape`], [`Error::Placement`].
    pub fn assign(&mut self, source: &TensorView<'_>) -> Result<()> {
        dispatch!(self.dtype(), T => self.typed_mut::<T>()?.assign(&source.typed::<T>()?))
    }

    /// Sets all elements to `value`, rounded to the precision of the dtype; of bool, to whether it is not zero.
    ///
    /// # Errors
    /// [`Error::Argument`] if the dtype does not [hold](DType::holds) `value`; [`Error::Placement`] for elements
    /// outside host memory.
    pub fn fill(&mut self, value: impl Into<crate::C64>) -> Result<()> {
        let value = value.into();
        self.dtype().check_holds("fill", value)?;
        dispatch!(self.dtype(), T => self.typed_mut::<T>()?.fill(T::from_c64(value)))
    }
}

/// The argument of an operation: a whole tensor or a view.
///
/// ```
/// use tenferro_tensor::{TensorRead, TypedTensor};
/// let a = TypedTensor::<f64>::zeros([2, 3])?;
/// let whole: TensorRead = (&a).into();
/// let turned: TensorRead = a.as_view().transpose_view([1, 0])?.into();
/// assert!(whole.is_contiguous() && !turned.is_contiguous());
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum TensorRead<'a> {
    /// All of a tensor, compact.
    Tensor(&'a Tensor),
    /// A view.
    View(TensorView<'a>),
}

impl<'a> TensorRead<'a> {
    /// From a view.
    #[inline]
    pub fn from_view(view: TensorView<'a>) -> Self {
        TensorRead::View(view)
    }

    /// From a whole tensor.
    #[inline]
    pub fn from_tensor(tensor: &'a Tensor) -> Self {
        TensorRead::Tensor(tensor)
    }

    #[inline]
    fn base(&self) -> &'a Tensor {
        match self {
            TensorRead::Tensor(tensor) => tensor,
            TensorRead::View(view) => view.base(),
        }
    }

    /// Of a tensor that is borrowed to be written, whose storage must not be shared.
    #[inline]
    pub(crate) fn is_lent(&self) -> bool {
        matches!(self, TensorRead::View(view) if view.is_lent())
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.base().dtype()
    }

    /// The extents.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        match self {
            TensorRead::Tensor(tensor) => tensor.shape(),
            TensorRead::View(view) => view.shape(),
        }
    }

    /// The shape, strides and offset.
    #[inline]
    pub fn layout(&self) -> Layout {
        match self {
            TensorRead::Tensor(tensor) => tensor.layout(),
            TensorRead::View(view) => view.layout(),
        }
    }

    /// The number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.shape().len()
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            TensorRead::Tensor(tensor) => tensor.len(),
            TensorRead::View(view) => view.len(),
        }
    }

    /// No elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }

    /// The elements are without gaps in column-major order.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        match self {
            TensorRead::Tensor(_) => true,
            TensorRead::View(view) => view.is_contiguous(),
        }
    }

    /// Where the elements are.
    #[inline]
    pub fn placement(&self) -> &'a Placement {
        self.base().placement()
    }

    /// The elements can be borrowed as host memory.
    #[inline]
    pub fn is_host(&self) -> bool {
        self.base().is_host()
    }

    /// The address of the first element.
    ///
    /// # Errors
    /// [`Error::DType`] for another `T`, [`Error::Placement`] for elements outside host memory.
    #[inline]
    pub fn host_ptr<T: Scalar>(&self) -> Result<*const T> {
        match self {
            TensorRead::Tensor(tensor) => tensor.host_ptr(),
            TensorRead::View(view) => view.host_ptr(),
        }
    }

    /// The address of the first element, without its type.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory.
    #[inline]
    pub fn host_byte_ptr(&self) -> Result<*const u8> {
        let base = self.base().host_byte_ptr("host_byte_ptr")?.cast_const();
        match self {
            TensorRead::Tensor(_) => Ok(base),
            // SAFETY: the offset is that of an element of the owner, or 0.
            TensorRead::View(view) => Ok(unsafe { base.add(view.offset() * view.dtype().size()) }),
        }
    }

    /// The strides in elements; `None` for a whole tensor, which is compact.
    #[inline]
    pub fn strides(&self) -> Option<&[isize]> {
        match self {
            TensorRead::Tensor(_) => None,
            TensorRead::View(view) => Some(view.strides()),
        }
    }

    /// The elements, if they are without gaps in column-major order; never a copy.
    ///
    /// # Errors
    /// [`Error::DType`], [`Error::Layout`], [`Error::Placement`].
    #[inline]
    pub fn as_slice<T: Scalar>(&self) -> Result<&'a [T]> {
        match self {
            TensorRead::Tensor(tensor) => tensor.as_slice(),
            TensorRead::View(view) => view.as_slice(),
        }
    }

    /// As a view.
    #[inline]
    pub fn view(&self) -> TensorView<'a> {
        match self {
            TensorRead::Tensor(tensor) => tensor.as_view(),
            TensorRead::View(view) => view.clone(),
        }
    }

    /// As a view with the element type.
    ///
    /// # Errors
    /// [`Error::DType`] for another `T`.
    #[inline]
    pub fn typed<T: Scalar>(&self) -> Result<TypedTensorView<'a, T>> {
        self.base().check_dtype::<T>("typed")?;
        Ok(TypedTensorView::trusted(self.base(), self.layout()).lent(self.is_lent()))
    }

    /// A compact copy.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory, [`Error::Memory`], [`Error::Overflow`].
    pub fn to_tensor(&self) -> Result<Tensor> {
        match self {
            TensorRead::Tensor(tensor) => tensor.duplicate(),
            TensorRead::View(view) => view.to_tensor(),
        }
    }

    /// The storage of a backend that the owner has, if it is one of elements `T`.
    pub fn backend_storage<T: Scalar>(&self) -> Option<&'a dyn BackendStorage<T>> {
        self.base().backend_storage()
    }
}

impl<'a> From<&'a Tensor> for TensorRead<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        TensorRead::Tensor(tensor)
    }
}

impl<'a> From<TensorView<'a>> for TensorRead<'a> {
    fn from(view: TensorView<'a>) -> Self {
        TensorRead::View(view)
    }
}

impl<'a, T: Scalar, R: Rank> From<&'a TypedTensor<T, R>> for TensorRead<'a> {
    fn from(tensor: &'a TypedTensor<T, R>) -> Self {
        TensorRead::Tensor(tensor.as_tensor())
    }
}

impl<'a, T: Scalar, R: Rank> From<TypedTensorView<'a, T, R>> for TensorRead<'a> {
    fn from(view: TypedTensorView<'a, T, R>) -> Self {
        TensorRead::View(T::erase(view.into_dyn()))
    }
}

impl<'a, T: Scalar, R: Rank> From<TypedTensorView<'a, T, R>> for TensorView<'a> {
    fn from(view: TypedTensorView<'a, T, R>) -> Self {
        T::erase(view.into_dyn())
    }
}

impl<'a, T: Scalar, R: Rank> From<TypedTensorViewMut<'a, T, R>> for TensorViewMut<'a> {
    fn from(view: TypedTensorViewMut<'a, T, R>) -> Self {
        T::erase_mut(view.into_dyn())
    }
}

impl<'a> From<&'a Value> for TensorRead<'a> {
    fn from(value: &'a Value) -> Self {
        value.read()
    }
}

/// Every element of the layout is one of the tensor's.
pub(crate) fn check_inside(op: &'static str, base: &Tensor, layout: &Layout) -> Result<()> {
    if layout.fits(base.len()) {
        return Ok(());
    }
    let (_, last) = layout.span();
    Err(Error::layout(op, "last element of the layout", last, format_args!("below {}", base.len())))
}
