//! [`TypedTensor`]: the owner whose element type, and if wanted rank, are in its type.
//!
//! Invariant: the tensor inside has dtype `T::DTYPE`, and rank `N` where `R = Ranked<N>`.

use std::{
    fmt,
    marker::PhantomData,
    ops::{Deref, Index, IndexMut},
};

use crate::{
    DynRank, Error, Placement, Rank, Ranked, Result, Scalar, Shape, StorageBuffer, Tensor, TensorRead,
    TypedTensorView, TypedTensorViewMut, slice::SliceItem,
};

/// An n-dimensional array of `T`: compact, column-major, one pointer wide.
///
/// `R` is [`DynRank`] or [`Ranked<N>`](Ranked); one with a rank in its type may be used wherever one without is asked
/// for by reference. It owns its elements and is not `Clone`; [`duplicate`](TypedTensor::duplicate) copies.
///
/// ```
/// use tenferro_tensor::{Ranked, TypedTensor};
/// let mut a = TypedTensor::<f64>::from_fn([2, 2], |i| (i[0] + 10 * i[1]) as f64)?;
/// a[[0, 1]] += 0.5;
/// assert_eq!(a.as_slice()?, [0.0, 1.0, 10.5, 11.0]);
/// let fixed = TypedTensor::<f64, Ranked<2>>::zeros([2, 2])?; // a rank in the type
/// assert_eq!(fixed.shape(), [2, 2]);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[repr(transparent)]
pub struct TypedTensor<T, R = DynRank> {
    erased: Tensor,
    kind: PhantomData<fn() -> (T, R)>,
}

const _: () = assert!(size_of::<Option<TypedTensor<f64>>>() == size_of::<usize>());

impl<T, R> TypedTensor<T, R> {
    /// Around a tensor whose dtype and rank were checked.
    #[inline]
    pub(crate) fn trusted(erased: Tensor) -> Self {
        TypedTensor { erased, kind: PhantomData }
    }
}

/// Makers.
impl<T: Scalar, R: Rank> TypedTensor<T, R> {
    /// From elements in column-major order; the vector is taken over, not copied.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `data` has exactly the shape's number of elements, [`Error::Overflow`].
    pub fn from_vec_col_major(shape: impl Into<R::Shape>, data: Vec<T>) -> Result<Self> {
        Tensor::from_vec_col_major(shape.into().as_ref(), data).map(Self::trusted)
    }

    /// From elements in row-major order (last axis fastest), which are permuted into a new buffer.
    ///
    /// # Errors
    /// As [`from_vec_col_major`](TypedTensor::from_vec_col_major), and [`Error::Memory`].
    pub fn from_vec_row_major(shape: impl Into<R::Shape>, data: Vec<T>) -> Result<Self> {
        Tensor::from_vec_row_major(shape.into().as_ref(), data).map(Self::trusted)
    }

    /// From a host vector (taken over) or a backend's storage, with its placement.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of elements, [`Error::Placement`] for a host vector said to
    /// be in device memory, [`Error::Overflow`].
    pub fn from_buffer_col_major(
        shape: impl Into<R::Shape>,
        buffer: StorageBuffer<T>,
        placement: Placement,
    ) -> Result<Self> {
        Tensor::from_buffer_col_major(shape.into().as_ref(), buffer, placement).map(Self::trusted)
    }

    /// The element at each index is `f(index)`; called in column-major order.
    ///
    /// # Errors
    /// [`Error::Overflow`], [`Error::Memory`].
    pub fn from_fn(shape: impl Into<R::Shape>, mut f: impl FnMut(&[usize]) -> T) -> Result<Self> {
        let shape = shape.into();
        let shape = shape.as_ref();
        let mut index = Shape::from(shape);
        index.0.fill(0);
        Self::from_elements("from_fn", shape, || {
            let element = f(&index);
            for (i, &extent) in index.0.iter_mut().zip(shape) {
                *i += 1;
                if *i < extent {
                    break;
                }
                *i = 0;
            }
            element
        })
    }

    /// From a function called once for each element, in column-major order.
    pub(crate) fn from_elements(
        op: &'static str,
        shape: &[usize],
        mut next: impl FnMut() -> T,
    ) -> Result<Self> {
        let mut out = Tensor::uninit_for(op, T::DTYPE, shape)?;
        for slot in out.as_uninit_slice_mut::<T>()? {
            slot.write(next());
        }
        // SAFETY: the loop wrote every element.
        Ok(Self::trusted(unsafe { out.assume_init() }))
    }

    /// All elements zero (`false`).
    ///
    /// # Errors
    /// [`Error::Overflow`], [`Error::Memory`].
    pub fn zeros(shape: impl Into<R::Shape>) -> Result<Self> {
        Tensor::zeros(T::DTYPE, shape.into().as_ref()).map(Self::trusted)
    }

    /// All elements `value`.
    ///
    /// # Errors
    /// [`Error::Overflow`], [`Error::Memory`].
    pub fn full(shape: impl Into<R::Shape>, value: T) -> Result<Self> {
        Self::from_elements("full", shape.into().as_ref(), || value)
    }
}

impl<T: Scalar> TypedTensor<T> {
    /// The identity matrix of order `n`.
    ///
    /// # Errors
    /// [`Error::Overflow`], [`Error::Memory`].
    pub fn eye(n: usize) -> Result<Self> {
        let mut out = Tensor::zeros_for("eye", T::DTYPE, [n, n].into()).map(Self::trusted)?;
        for row in out.host_data_mut()?.iter_mut().step_by(n.saturating_add(1)) {
            *row = T::one();
        }
        Ok(out)
    }

    /// The rank-0 tensor of one element.
    pub fn scalar(value: T) -> Self {
        Self::trusted(Tensor::scalar(value))
    }
}

/// What it is.
impl<T: Scalar, R: Rank> TypedTensor<T, R> {
    /// The extents.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.erased.shape()
    }

    /// The number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.erased.rank()
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.erased.len()
    }

    /// No elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.erased.is_empty()
    }

    /// Where the elements are.
    #[inline]
    pub fn placement(&self) -> &Placement {
        self.erased.placement()
    }

    /// Always true of an owner; views answer by their strides.
    ///
    /// # Errors
    /// None; a `Result` because it shares its form with views of all kinds.
    #[inline]
    pub fn is_col_major_contiguous(&self) -> Result<bool> {
        Ok(true)
    }
}

/// Its elements.
impl<T: Scalar, R: Rank> TypedTensor<T, R> {
    /// The elements in column-major order.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory: they are never downloaded to borrow them.
    #[inline]
    pub fn host_data(&self) -> Result<&[T]> {
        self.erased.as_slice()
    }

    /// The elements in column-major order; the same as [`host_data`](TypedTensor::host_data).
    ///
    /// # Errors
    /// As [`host_data`](TypedTensor::host_data).
    #[inline]
    pub fn as_slice(&self) -> Result<&[T]> {
        self.erased.as_slice()
    }

    /// The elements in column-major order, to write.
    ///
    /// # Errors
    /// As [`host_data`](TypedTensor::host_data), and [`Error::State`] when the storage is shared.
    #[inline]
    pub fn host_data_mut(&mut self) -> Result<&mut [T]> {
        self.erased.as_slice_mut()
    }

    /// The element at an index; `None` outside the shape or outside host memory.
    #[inline]
    pub fn get(&self, index: &[usize]) -> Option<&T> {
        let offset = compact_offset(self.shape(), index)?;
        self.host_data().ok()?.get(offset)
    }

    /// The element at an index, to write; `None` also when the storage is shared.
    #[inline]
    pub fn get_mut(&mut self, index: &[usize]) -> Option<&mut T> {
        let offset = compact_offset(self.shape(), index)?;
        self.host_data_mut().ok()?.get_mut(offset)
    }

    /// The only element.
    ///
    /// # Errors
    /// [`Error::NonScalar`] unless there is exactly one, [`Error::Placement`].
    pub fn item(&self) -> Result<T> {
        self.erased.item()
    }

    /// Applies `f` to each element, in column-major order.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory, [`Error::Memory`].
    pub fn map<U: Scalar>(&self, mut f: impl FnMut(T) -> U) -> Result<TypedTensor<U, R>> {
        let mut elements = self.host_data()?.iter();
        TypedTensor::from_elements("map", self.shape(), || {
            f(*elements.next().expect("as many as the shape says"))
        })
    }

    /// A copy with storage of its own.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory, [`Error::Memory`].
    pub fn duplicate(&self) -> Result<Self> {
        self.erased.duplicate().map(Self::trusted)
    }

    /// The elements as a vector; see [`Tensor::into_vec_col_major`].
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory.
    pub fn into_vec_col_major(self) -> Result<Vec<T>> {
        self.erased.into_vec_col_major()
    }

    /// A copy of the elements in row-major order (last axis fastest).
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory.
    pub fn to_vec_row_major(&self) -> Result<Vec<T>> {
        self.erased.to_vec_row_major()
    }
}

/// As something else.
impl<T: Scalar, R: Rank> TypedTensor<T, R> {
    /// A view of all elements.
    #[inline]
    pub fn as_view(&self) -> TypedTensorView<'_, T, R> {
        TypedTensorView::trusted(&self.erased, self.erased.layout())
    }

    /// A view of all elements, to write.
    ///
    /// # Errors
    /// [`Error::State`] when the storage is shared.
    pub fn as_view_mut(&mut self) -> Result<TypedTensorViewMut<'_, T, R>> {
        self.erased.check_unique("as_view_mut")?;
        let layout = self.erased.layout();
        Ok(TypedTensorViewMut::trusted(&self.erased, layout))
    }

    /// A part of it; see [`s!`](crate::s).
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Argument`] for a specification that does not fit the shape.
    pub fn slice(&self, spec: impl AsRef<[SliceItem]>) -> Result<TypedTensorView<'_, T>> {
        self.as_view().slice(spec)
    }

    /// As the argument of an operation.
    #[inline]
    pub fn read(&self) -> TensorRead<'_> {
        TensorRead::Tensor(&self.erased)
    }

    /// Without the element type.
    #[inline]
    pub fn as_tensor(&self) -> &Tensor {
        &self.erased
    }

    /// Without the element type.
    #[inline]
    pub fn into_tensor(self) -> Tensor {
        self.erased
    }

    /// With rank `N` in the type.
    ///
    /// # Errors
    /// [`Error::Rank`] for another rank.
    pub fn into_rank<const N: usize>(self) -> Result<TypedTensor<T, Ranked<N>>> {
        if self.rank() != N {
            return Err(Error::rank("into_rank", "rank", self.rank(), N));
        }
        Ok(TypedTensor::trusted(self.erased))
    }

    /// Without the rank in the type.
    #[inline]
    pub fn into_dyn(self) -> TypedTensor<T> {
        TypedTensor::trusted(self.erased)
    }

    /// The same elements in column-major order under another shape; nothing is copied.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of elements, [`Error::State`] when the storage is shared.
    pub fn into_shape(self, shape: impl Into<Shape>) -> Result<TypedTensor<T>> {
        self.erased.into_shape(shape).map(TypedTensor::trusted)
    }
}

/// A tensor whose rank is in the type is an operand of every operation; results have theirs at run time
/// ([`into_rank`](TypedTensor::into_rank)).
impl<T, const N: usize> Deref for TypedTensor<T, Ranked<N>> {
    type Target = TypedTensor<T>;

    #[inline]
    fn deref(&self) -> &TypedTensor<T> {
        // SAFETY: both are transparent around the same tensor, and the result promises less about it.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }
}

impl<T: Scalar, R: Rank> From<TypedTensor<T, R>> for Tensor {
    fn from(tensor: TypedTensor<T, R>) -> Self {
        tensor.erased
    }
}

/// The offset of an index in compact storage of the shape.
#[inline]
fn compact_offset(shape: &[usize], index: &[usize]) -> Option<usize> {
    if index.len() != shape.len() {
        return None;
    }
    let (mut offset, mut stride) = (0_usize, 1_usize);
    for (&i, &extent) in index.iter().zip(shape) {
        if i >= extent {
            return None;
        }
        offset = offset.wrapping_add(i.wrapping_mul(stride));
        stride = stride.wrapping_mul(extent);
    }
    Some(offset)
}

#[cold]
#[track_caller]
fn bad_index(shape: &[usize], index: &[usize], placement: &Placement) -> ! {
    panic!("index {index:?} is not one of a tensor of shape {shape:?} in {placement} that can be borrowed")
}

/// Like a slice's: panics outside the shape (and outside host memory). [`get`](TypedTensor::get) does not.
impl<T: Scalar, R: Rank> Index<&[usize]> for TypedTensor<T, R> {
    type Output = T;
    #[inline]
    #[track_caller]
    fn index(&self, index: &[usize]) -> &T {
        match self.get(index) {
            Some(element) => element,
            None => bad_index(self.shape(), index, self.placement()),
        }
    }
}

/// Like a slice's: panics outside the shape (and outside host memory, and when the storage is shared).
/// [`get_mut`](TypedTensor::get_mut) does not.
impl<T: Scalar, R: Rank> IndexMut<&[usize]> for TypedTensor<T, R> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, index: &[usize]) -> &mut T {
        if self.get(index).is_none() || !self.erased.is_unique() {
            bad_index(self.shape(), index, self.placement());
        }
        self.get_mut(index).expect("unique, in host memory, and inside the shape")
    }
}

impl<T: Scalar, R: Rank, const N: usize> Index<[usize; N]> for TypedTensor<T, R> {
    type Output = T;
    #[inline]
    #[track_caller]
    fn index(&self, index: [usize; N]) -> &T {
        &self[&index[..]]
    }
}

impl<T: Scalar, R: Rank, const N: usize> IndexMut<[usize; N]> for TypedTensor<T, R> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, index: [usize; N]) -> &mut T {
        &mut self[&index[..]]
    }
}

impl<T: Scalar, R: Rank> fmt::Debug for TypedTensor<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.erased.fmt(f)
    }
}
