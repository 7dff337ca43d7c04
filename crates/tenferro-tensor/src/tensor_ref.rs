//! [`TensorRef`]: an operand as a kernel sees it.

use crate::{
    BackendStorage, DType, Layout, Placement, Result, Scalar, Tensor, TensorRead, TensorView, TypedTensorView,
};

/// A tensor and, unless it is meant whole, the layout of a part of it: two borrowed pointers, cheap enough to
/// be made for each operand of each call. A [`TensorView`] owns its layout instead and can outlive it.
///
/// Invariant: the layout lies inside the tensor.
///
/// ```
/// use tenferro_tensor::{Tensor, TensorRef};
/// let t = Tensor::from_vec_col_major([2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
/// let turned = t.as_view().transpose_view([1, 0])?;
/// let (whole, turned) = (TensorRef::from(&t), TensorRef::from(&turned));
/// assert_eq!((whole.strides(), turned.strides()), (None, Some(&[2, 1][..])));
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TensorRef<'a> {
    tensor: &'a Tensor,
    layout: Option<&'a Layout>,
}

impl<'a> TensorRef<'a> {
    #[inline]
    pub(crate) fn trusted(tensor: &'a Tensor, layout: Option<&'a Layout>) -> Self {
        TensorRef { tensor, layout }
    }

    /// The elements of `layout` in a tensor.
    ///
    /// # Errors
    /// [`Error::Layout`](crate::Error::Layout) when an element would lie outside the tensor.
    pub fn new(tensor: &'a Tensor, layout: &'a Layout) -> Result<Self> {
        crate::erased::check_inside("TensorRef::new", tensor, layout)?;
        Ok(TensorRef { tensor, layout: Some(layout) })
    }

    #[inline]
    pub(crate) fn owner(&self) -> &'a Tensor {
        self.tensor
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.tensor.dtype()
    }

    /// The extents.
    #[inline]
    pub fn shape(&self) -> &'a [usize] {
        match self.layout {
            None => self.tensor.shape(),
            Some(layout) => layout.shape(),
        }
    }

    /// The strides in elements; `None` for a whole tensor, which is compact.
    #[inline]
    pub fn strides(&self) -> Option<&'a [isize]> {
        self.layout.map(Layout::strides)
    }

    /// The shape, strides and offset.
    #[inline]
    pub fn layout(&self) -> Layout {
        self.layout.map_or_else(|| self.tensor.layout(), Layout::clone)
    }

    /// The number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.shape().len()
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.layout.map_or_else(|| self.tensor.len(), Layout::len)
    }

    /// No elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }

    /// The elements are without gaps in column-major order.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_none_or(Layout::is_col_major_contiguous)
    }

    /// Where the elements are.
    #[inline]
    pub fn placement(&self) -> &'a Placement {
        self.tensor.placement()
    }

    /// The elements can be borrowed as host memory.
    #[inline]
    pub fn is_host(&self) -> bool {
        self.tensor.is_host()
    }

    /// The address of the first element.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) for another `T`, [`Error::Placement`](crate::Error::Placement) for
    /// elements outside host memory.
    #[inline]
    pub fn host_ptr<T: Scalar>(&self) -> Result<*const T> {
        self.tensor.check_dtype::<T>("host_ptr")?;
        self.host_byte_ptr().map(|ptr| ptr.cast())
    }

    /// The address of the first element, without its type.
    ///
    /// # Errors
    /// [`Error::Placement`](crate::Error::Placement) for elements outside host memory.
    #[inline]
    pub fn host_byte_ptr(&self) -> Result<*const u8> {
        let base = self.tensor.host_byte_ptr("host_byte_ptr")?.cast_const();
        // SAFETY: the offset is that of an element of the owner, or 0.
        Ok(self.layout.map_or(base, |layout| unsafe { base.add(layout.offset() * self.dtype().size()) }))
    }

    /// The elements, if they are without gaps in column-major order; never a copy.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType), [`Error::Layout`](crate::Error::Layout),
    /// [`Error::Placement`](crate::Error::Placement).
    #[inline]
    pub fn as_slice<T: Scalar>(&self) -> Result<&'a [T]> {
        match self.layout {
            None => self.tensor.as_slice(),
            Some(_) => self.view().as_slice(),
        }
    }

    /// As a view, with a layout of its own.
    #[inline]
    pub fn view(&self) -> TensorView<'a> {
        // Whether the tensor is borrowed to be written is not known here.
        TensorView::trusted(self.tensor, self.layout()).lent(self.layout.is_some())
    }

    /// As a view with the element type.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) for another `T`.
    #[inline]
    pub fn typed<T: Scalar>(&self) -> Result<TypedTensorView<'a, T>> {
        self.view().typed()
    }

    /// A compact copy.
    ///
    /// # Errors
    /// [`Error::Placement`](crate::Error::Placement) for elements outside host memory,
    /// [`Error::Memory`](crate::Error::Memory), [`Error::Overflow`](crate::Error::Overflow).
    pub fn to_tensor(&self) -> Result<Tensor> {
        self.read().to_tensor()
    }

    /// As an argument, with a layout of its own.
    #[inline]
    pub fn read(&self) -> TensorRead<'a> {
        match self.layout {
            None => TensorRead::Tensor(self.tensor),
            Some(_) => TensorRead::View(self.view()),
        }
    }

    /// The storage of a backend that the owner has, if it is one of elements `T`.
    pub fn backend_storage<T: Scalar>(&self) -> Option<&'a dyn BackendStorage<T>> {
        self.tensor.backend_storage()
    }
}

impl<'a> From<&'a Tensor> for TensorRef<'a> {
    #[inline]
    fn from(tensor: &'a Tensor) -> Self {
        TensorRef { tensor, layout: None }
    }
}

impl<'a> From<&'a TensorView<'_>> for TensorRef<'a> {
    #[inline]
    fn from(view: &'a TensorView<'_>) -> Self {
        TensorRef { tensor: view.base(), layout: Some(view.layout_ref()) }
    }
}

impl<'a> From<&'a TensorRead<'_>> for TensorRef<'a> {
    #[inline]
    fn from(read: &'a TensorRead<'_>) -> Self {
        match read {
            TensorRead::Tensor(tensor) => TensorRef::from(*tensor),
            TensorRead::View(view) => TensorRef::from(view),
        }
    }
}
