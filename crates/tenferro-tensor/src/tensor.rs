//! [`Tensor`]: the dtype-erased owner.
//!
//! Invariant: the storage holds exactly the elements of the shape, of the dtype, compact and
//! column-major; in host memory they are initialised. The storage is written only through a unique
//! owner, so `&Tensor` means that nothing writes.

use std::{any::Any, fmt};

use crate::{
    BackendStorage, C64, DType, Error, Layout, MemoryKind, Placement, Result, Scalar, Shape, StorageBuffer,
    TensorRead, TensorView, TensorViewMut, TypedTensor, UninitTensor, checked_len,
    iter::copy_to_compact,
    shared::{Pointee, Shared},
    slice::SliceItem,
    storage::{HostBuffer, Storage},
};

/// An n-dimensional array of a dtype known at run time: compact, column-major, one pointer wide.
///
/// A tensor owns its elements and is not `Clone`; [`duplicate`](Tensor::duplicate) copies.
///
/// ```
/// use tenferro_tensor::{DType, Tensor};
/// let t = Tensor::from_vec_row_major([2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
/// assert_eq!(t.dtype(), DType::F64);
/// assert_eq!(t.as_slice::<f64>()?, [1.0, 3.0, 2.0, 4.0]); // column-major
/// assert!(t.as_slice::<f32>().is_err());
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[repr(transparent)]
pub struct Tensor(Shared<Inner>);

struct Inner {
    dtype: DType,
    shape: Shape,
    /// `None` is ordinary host memory.
    placement: Option<Box<Placement>>,
    data: Storage,
}

impl Pointee for Inner {
    #[inline]
    fn tail(&self) -> usize {
        match &self.data {
            Storage::Host(buffer) if buffer.is_inline() => HostBuffer::INLINE,
            _ => 0,
        }
    }
}

const _: () = assert!(size_of::<Option<Tensor>>() == size_of::<usize>());

static HOST: Placement = Placement::host();

/// Makers.
impl Tensor {
    /// From elements in column-major order; the vector is taken over, not copied.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `data` has exactly the shape's number of elements, [`Error::Overflow`].
    pub fn from_vec_col_major<T: Scalar>(shape: impl Into<Shape>, data: Vec<T>) -> Result<Self> {
        let shape = shape.into();
        check_count("from_vec_col_major", &shape, data.len())?;
        Ok(Tensor::from_host(T::DTYPE, shape, HostBuffer::adopt(data)))
    }

    /// From elements in row-major order (last axis fastest), which are permuted into a new buffer.
    ///
    /// # Errors
    /// As [`from_vec_col_major`](Tensor::from_vec_col_major), and [`Error::Memory`].
    pub fn from_vec_row_major<T: Scalar>(shape: impl Into<Shape>, data: Vec<T>) -> Result<Self> {
        let shape = shape.into();
        check_count("from_vec_row_major", &shape, data.len())?;
        let reversed: Shape = shape.iter().rev().copied().collect();
        let axes: Shape = (0..shape.len()).rev().collect();
        let order = Layout::contiguous(&reversed).transpose("from_vec_row_major", &axes)?;
        let mut out = Tensor::uninit_for("from_vec_row_major", T::DTYPE, &shape)?;
        // SAFETY: `order` is a permutation of `data`'s elements, as many as `out` has room for; after the
        // copy all are initialised.
        unsafe {
            copy_to_compact(data.as_ptr(), &order, out.as_mut_ptr());
            Ok(out.assume_init())
        }
    }

    /// From a host vector (taken over) or a backend's storage, with its placement.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of elements, [`Error::Placement`] for a host vector said to
    /// be in device memory, [`Error::Overflow`].
    pub fn from_buffer_col_major<T: Scalar>(
        shape: impl Into<Shape>,
        buffer: StorageBuffer<T>,
        placement: Placement,
    ) -> Result<Self> {
        let op = "from_buffer_col_major";
        let shape = shape.into();
        check_count(op, &shape, buffer.len())?;
        let data = match buffer {
            StorageBuffer::Host(_) if placement.memory_kind == MemoryKind::Device => {
                return Err(Error::placement(op, "placement of a host vector", placement, "host memory"));
            }
            StorageBuffer::Host(data) => Storage::Host(HostBuffer::adopt(data)),
            StorageBuffer::Backend(storage) => Storage::Device(Box::new(storage)),
        };
        let placement = (placement != HOST).then(|| Box::new(placement));
        Ok(Tensor(Shared::new(Inner { dtype: T::DTYPE, shape, placement, data })))
    }

    /// All elements zero (`false`).
    ///
    /// # Errors
    /// [`Error::Overflow`], [`Error::Memory`].
    pub fn zeros(dtype: DType, shape: impl Into<Shape>) -> Result<Self> {
        Tensor::zeros_for("zeros", dtype, shape.into())
    }

    /// [`zeros`](Tensor::zeros), for the constructor `op`.
    pub(crate) fn zeros_for(op: &'static str, dtype: DType, shape: Shape) -> Result<Self> {
        let mut out = Tensor::uninit_for(op, dtype, &shape)?;
        let bytes = out.len() * dtype.size();
        // SAFETY: the buffer has room for `len` elements of this dtype, for all of which zero bits are a
        // valid zero; they initialise every element.
        unsafe {
            out.as_mut_byte_ptr().write_bytes(0, bytes);
            Ok(out.assume_init())
        }
    }

    /// All elements `value`, rounded to the precision of `dtype`; of bool, whether it is not zero.
    ///
    /// A larger integer than 2^53, beyond which an f64 does not hold every one, keeps its digits in
    /// [`TypedTensor::full`].
    ///
    /// ```
    /// use tenferro_tensor::{C64, DType, Tensor};
    ///
    /// assert_eq!(Tensor::full(DType::F32, [2], 1.5)?.as_slice::<f32>()?, [1.5; 2]);
    /// assert_eq!(Tensor::full(DType::C64, [1], C64::I)?.as_slice::<C64>()?, [C64::I]);
    /// assert!(Tensor::full(DType::I64, [2], 1.5).is_err());
    /// # Ok::<(), tenferro_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] if `dtype` does not [hold](DType::holds) `value`; [`Error::Overflow`], [`Error::Memory`].
    pub fn full(dtype: DType, shape: impl Into<Shape>, value: impl Into<C64>) -> Result<Self> {
        let (shape, value) = (shape.into(), value.into());
        dtype.check_holds("full", value)?;
        dispatch!(dtype, T => TypedTensor::<T>::full(shape, T::from_c64(value)).map(TypedTensor::into_tensor))
    }

    /// The rank-0 tensor of one element.
    pub fn scalar<T: Scalar>(value: T) -> Self {
        let out = Tensor::small(T::DTYPE, Shape::default());
        let Storage::Host(buffer) = &out.0.data else { unreachable!("made for the host") };
        // SAFETY: the buffer has room for one `T`, is aligned to 64 bytes, and nobody else has the tensor.
        unsafe { buffer.ptr().cast().write(value) };
        out
    }

    /// The identity matrix of order `n`.
    ///
    /// # Errors
    /// [`Error::Overflow`], [`Error::Memory`].
    pub fn eye(dtype: DType, n: usize) -> Result<Self> {
        dispatch!(dtype, T => TypedTensor::<T>::eye(n).map(TypedTensor::into_tensor))
    }

    /// A tensor whose elements are yet to be written.
    ///
    /// # Errors
    /// [`Error::Overflow`], [`Error::Memory`].
    #[inline]
    pub fn uninit(dtype: DType, shape: &[usize]) -> Result<UninitTensor> {
        Tensor::uninit_for("uninit", dtype, shape)
    }

    /// [`uninit`](Tensor::uninit), for the constructor `op`.
    #[inline]
    pub(crate) fn uninit_for(op: &'static str, dtype: DType, shape: &[usize]) -> Result<UninitTensor> {
        let bytes = checked_len(op, shape)? * dtype.size();
        if (1..=HostBuffer::INLINE).contains(&bytes) {
            return Ok(UninitTensor(Tensor::small(dtype, shape.into())));
        }
        let buffer = HostBuffer::uninit(op, bytes)?;
        Ok(UninitTensor(Tensor::from_host(dtype, shape.into(), buffer)))
    }

    /// With room for [`HostBuffer::INLINE`] uninitialised bytes in its own block.
    #[inline]
    fn small(dtype: DType, shape: Shape) -> Self {
        let inner = |tail| {
            let data = Storage::Host(HostBuffer::inline(tail));
            Inner { dtype, shape, placement: None, data }
        };
        Tensor(Shared::with_tail(HostBuffer::INLINE, inner))
    }

    #[inline]
    fn from_host(dtype: DType, shape: Shape, buffer: HostBuffer) -> Self {
        Tensor(Shared::new(Inner { dtype, shape, placement: None, data: Storage::Host(buffer) }))
    }
}

/// What it is.
impl Tensor {
    /// The extents.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// The number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.0.shape.len()
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        // Cannot overflow but with a zero extent, where it wraps to the right 0.
        self.0.shape.iter().fold(1, |len, &extent| len.wrapping_mul(extent))
    }

    /// No elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.shape.contains(&0)
    }

    /// Where the elements are.
    #[inline]
    pub fn placement(&self) -> &Placement {
        self.0.placement.as_deref().unwrap_or(&HOST)
    }

    /// The elements can be borrowed as host memory.
    #[inline]
    pub fn is_host(&self) -> bool {
        matches!(self.0.data, Storage::Host(_))
    }

    /// The column-major layout of the shape.
    #[inline]
    pub fn layout(&self) -> Layout {
        Layout::contiguous(self.shape())
    }

    /// No one shares the storage: it can be written or moved out.
    #[inline]
    pub fn is_unique(&self) -> bool {
        self.0.is_unique()
    }

    /// Another owner of the same storage, for values inside interpreters; neither can then be written.
    #[doc(hidden)]
    #[inline]
    pub fn share(&self) -> Self {
        Tensor(self.0.share())
    }

    /// An address that two tensors have in common exactly while they share storage.
    #[doc(hidden)]
    #[inline]
    pub fn ptr_id(&self) -> usize {
        self.0.address()
    }
}

/// Its elements.
impl Tensor {
    /// The elements in column-major order.
    ///
    /// # Errors
    /// [`Error::DType`] for another `T`, [`Error::Placement`] for elements outside host memory.
    #[inline]
    pub fn as_slice<T: Scalar>(&self) -> Result<&[T]> {
        let ptr = self.host_ptr_for("as_slice")?;
        // SAFETY: a host tensor of this dtype holds `len` initialised elements, aligned for it, and is not
        // written while it is borrowed.
        Ok(unsafe { std::slice::from_raw_parts(ptr, self.len()) })
    }

    /// The elements in column-major order, to write.
    ///
    /// # Errors
    /// As [`as_slice`](Tensor::as_slice), and [`Error::State`] when the storage is shared.
    #[inline]
    pub fn as_slice_mut<T: Scalar>(&mut self) -> Result<&mut [T]> {
        self.check_unique("as_slice_mut")?;
        let ptr = self.host_ptr_for::<T>("as_slice_mut")?.cast_mut();
        // SAFETY: as in `as_slice`; the owner is unique and borrowed mutably, so this is the only access.
        // The pointer comes from an allocation that the tensor owns, not from a shared borrow.
        Ok(unsafe { std::slice::from_raw_parts_mut(ptr, self.len()) })
    }

    /// The address of the first element.
    ///
    /// # Errors
    /// As [`as_slice`](Tensor::as_slice).
    #[inline]
    pub fn host_ptr<T: Scalar>(&self) -> Result<*const T> {
        self.host_ptr_for("host_ptr")
    }

    #[inline]
    pub(crate) fn host_ptr_for<T: Scalar>(&self, op: &'static str) -> Result<*const T> {
        self.check_dtype::<T>(op)?;
        self.host_byte_ptr(op).map(|ptr| ptr.cast::<T>().cast_const())
    }

    /// The bytes of the elements in column-major order, for hashing and transfers.
    ///
    /// # Errors
    /// [`Error::Placement`] outside host memory.
    pub fn as_bytes(&self) -> Result<&[u8]> {
        let ptr = self.host_byte_ptr("as_bytes")?;
        // SAFETY: the buffer holds `len` initialised elements, no dtype has padding, and the borrow of `self`
        // keeps the buffer.
        Ok(unsafe { std::slice::from_raw_parts(ptr, self.len() * self.dtype().size()) })
    }

    #[inline]
    pub(crate) fn host_byte_ptr(&self, op: &'static str) -> Result<*mut u8> {
        match &self.0.data {
            Storage::Host(buffer) => Ok(buffer.ptr().as_ptr()),
            Storage::Device(_) => {
                let what = "backend storage cannot be borrowed as host data";
                Err(Error::placement(op, what, self.placement(), "host memory (download it explicitly)"))
            }
        }
    }

    #[inline]
    pub(crate) fn check_dtype<T: Scalar>(&self, op: &'static str) -> Result<()> {
        if self.dtype() == T::DTYPE { Ok(()) } else { Err(Error::dtype(op, "dtype", T::DTYPE, self.dtype())) }
    }

    /// Mutably borrowed, because only then does the answer stay true.
    #[inline]
    pub(crate) fn check_unique(&mut self, op: &'static str) -> Result<()> {
        if self.0.is_unique() {
            return Ok(());
        }
        Err(Error::runtime_state(op, "the storage is shared; write to a duplicate() of it"))
    }

    /// The only element of a tensor of any rank.
    ///
    /// # Errors
    /// [`Error::NonScalar`] unless there is exactly one; as [`as_slice`](Tensor::as_slice).
    pub fn item<T: Scalar>(&self) -> Result<T> {
        match self.as_slice::<T>()? {
            [value] => Ok(*value),
            _ => Err(non_scalar(self.shape())),
        }
    }

    /// The element at an index.
    ///
    /// # Errors
    /// [`Error::Argument`] outside the shape; as [`as_slice`](Tensor::as_slice).
    pub fn get<T: Scalar>(&self, index: &[usize]) -> Result<T> {
        let elements = self.as_slice::<T>()?;
        match self.layout().offset_of(index) {
            Some(offset) => Ok(elements[offset]),
            None => {
                let expected = format_args!("an index in {:?}", self.shape());
                Err(Error::argument("get", "index", format_args!("{index:?}"), expected))
            }
        }
    }

    /// The elements as a vector in column-major order: the tensor's own where it was made of a vector and
    /// is unique, else a copy.
    ///
    /// # Errors
    /// As [`as_slice`](Tensor::as_slice).
    pub fn into_vec_col_major<T: Scalar>(self) -> Result<Vec<T>> {
        self.as_slice::<T>()?;
        let len = self.len();
        let inner = match self.0.try_unwrap() {
            Ok(inner) => inner,
            Err(shared) => return Ok(Tensor(shared).as_slice::<T>()?.to_vec()),
        };
        let Storage::Host(buffer) = inner.data else { unreachable!("as_slice checked the storage") };
        // SAFETY: the tensor held `len` initialised elements of `T`, as `as_slice` checked.
        match unsafe { buffer.into_vec(len) } {
            Ok(vec) => Ok(vec),
            // SAFETY: as above; the buffer lives until the copy is made.
            Err(buffer) => Ok(unsafe {
                std::slice::from_raw_parts(buffer.ptr().as_ptr().cast_const().cast::<T>(), len).to_vec()
            }),
        }
    }

    /// A copy of the elements in row-major order (last axis fastest).
    ///
    /// # Errors
    /// As [`as_slice`](Tensor::as_slice).
    pub fn to_vec_row_major<T: Scalar>(&self) -> Result<Vec<T>> {
        self.as_view().typed::<T>()?.to_vec_row_major()
    }

    /// A copy with storage of its own.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory, [`Error::Memory`].
    pub fn duplicate(&self) -> Result<Self> {
        let from = self.host_byte_ptr("duplicate")?;
        let mut out = Tensor::uninit_for("duplicate", self.dtype(), self.shape())?;
        // SAFETY: both hold `len` elements of this dtype, the source's are initialised, and the buffers are
        // two allocations.
        unsafe {
            out.as_mut_byte_ptr().copy_from_nonoverlapping(from, self.len() * self.dtype().size());
            Ok(out.assume_init())
        }
    }

    /// The storage of a backend, if it is one of elements `T`.
    pub fn backend_storage<T: Scalar>(&self) -> Option<&dyn BackendStorage<T>> {
        match &self.0.data {
            Storage::Host(_) => None,
            Storage::Device(any) => any.downcast_ref::<Box<dyn BackendStorage<T>>>().map(AsRef::as_ref),
        }
    }

    /// [`backend_storage`](Tensor::backend_storage), mutably; `None` also when shared.
    pub fn backend_storage_mut<T: Scalar>(&mut self) -> Option<&mut dyn BackendStorage<T>> {
        match &mut self.0.get_mut()?.data {
            Storage::Host(_) => None,
            Storage::Device(any) => {
                let any: &mut dyn Any = any.as_mut();
                any.downcast_mut::<Box<dyn BackendStorage<T>>>().map(AsMut::as_mut)
            }
        }
    }
}

/// As something else.
impl Tensor {
    /// As a typed tensor, if `T` is the element type.
    #[inline]
    pub fn as_typed<T: Scalar>(&self) -> Option<&TypedTensor<T>> {
        // SAFETY: `TypedTensor` is a transparent wrapper; the dtype, its one condition, is checked.
        (self.dtype() == T::DTYPE).then(|| unsafe { &*std::ptr::from_ref(self).cast() })
    }

    /// As a typed tensor to write, if `T` is the element type.
    #[inline]
    pub fn as_typed_mut<T: Scalar>(&mut self) -> Option<&mut TypedTensor<T>> {
        // SAFETY: as in `as_typed`; whatever is put in its place is a `TypedTensor<T>`, so still a tensor.
        (self.dtype() == T::DTYPE).then(|| unsafe { &mut *std::ptr::from_mut(self).cast() })
    }

    /// Into a typed tensor, or itself back if `T` is not the element type.
    #[inline]
    pub fn into_typed<T: Scalar>(self) -> Result<TypedTensor<T>, Tensor> {
        if self.dtype() == T::DTYPE { Ok(TypedTensor::trusted(self)) } else { Err(self) }
    }

    /// A view of all elements.
    #[inline]
    pub fn as_view(&self) -> TensorView<'_> {
        TensorView::trusted(self, self.layout())
    }

    /// A view of all elements, to write.
    ///
    /// # Errors
    /// [`Error::State`] when the storage is shared.
    pub fn as_view_mut(&mut self) -> Result<TensorViewMut<'_>> {
        self.check_unique("as_view_mut")?;
        let layout = self.layout();
        Ok(TensorViewMut::trusted(self, layout))
    }

    /// As the argument of an operation.
    #[inline]
    pub fn read(&self) -> TensorRead<'_> {
        TensorRead::Tensor(self)
    }

    /// A part of it; see [`s!`](crate::s).
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Argument`] for a specification that does not fit the shape.
    pub fn slice(&self, spec: impl AsRef<[SliceItem]>) -> Result<TensorView<'_>> {
        self.as_view().slice(spec)
    }

    /// The same elements in column-major order under another shape; nothing is copied.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of elements, [`Error::State`] when the storage is shared.
    pub fn into_shape(mut self, shape: impl Into<Shape>) -> Result<Self> {
        let shape = shape.into();
        let len = checked_len("into_shape", &shape)?;
        if len != self.len() {
            let got = format_args!("{len} for shape {shape:?}");
            return Err(Error::shape("into_shape", "number of elements", got, self.len()));
        }
        match self.0.get_mut() {
            Some(inner) => inner.shape = shape,
            None => {
                return Err(Error::runtime_state(
                    "into_shape",
                    "the storage is shared; reshape a duplicate()",
                ));
            }
        }
        Ok(self)
    }

    /// The storage for another result of the same size: when unique and in host memory, a tensor to be
    /// written that still holds the elements; else itself back.
    #[inline]
    pub fn into_uninit(mut self) -> Result<UninitTensor, Tensor> {
        match self.0.get_mut() {
            Some(Inner { data: Storage::Host(_), .. }) => Ok(UninitTensor(self)),
            _ => Err(self),
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor")
            .field("dtype", &self.dtype())
            .field("shape", &self.0.shape)
            .field("placement", self.placement())
            .field("storage", &self.0.data)
            .finish()
    }
}

fn check_count(op: &'static str, shape: &Shape, got: usize) -> Result<()> {
    let expected = checked_len(op, shape)?;
    if got == expected {
        return Ok(());
    }
    Err(Error::shape(op, "number of elements", got, format_args!("{expected} for shape {shape:?}")))
}

#[cold]
pub(crate) fn non_scalar(shape: &[usize]) -> Error {
    Error::non_scalar("item", "number of elements", format_args!("shape {shape:?}"), "exactly one element")
}
