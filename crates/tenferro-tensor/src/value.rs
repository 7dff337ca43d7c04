//! [`Value`]: a tensor as interpreters hold it.
//!
//! Cloning shares the owner; a transpose or slice is another layout of the same owner. Invariant: a
//! layout, where there is one, lies inside the owner and is not the owner's own.

use crate::{
    DType, Error, Layout, Placement, Result, Scalar, Tensor, TensorRead, TensorRef, TensorView, TypedTensor,
    erased::check_inside, layout::Parts, same_shape, shared::Shared,
};

/// A shared handle on a tensor and a layout of its elements.
///
/// ```
/// use tenferro_tensor::{Tensor, Value};
/// let value = Value::new(Tensor::from_vec_col_major([2, 3], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0])?);
/// let turned = value.with_layout(value.layout().transpose("example", &[1, 0])?);
/// assert_eq!(turned.shape(), [3, 2]);
/// assert!(turned.clone().into_tensor().is_err()); // strided: a copy must be asked for
/// assert_eq!(turned.duplicate()?.as_slice::<f64>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct Value {
    owner: Tensor,
    layout: Option<Shared<Layout>>,
}

impl Clone for Value {
    #[inline]
    fn clone(&self) -> Self {
        Value { owner: self.owner.share(), layout: self.layout.as_ref().map(Shared::share) }
    }
}

impl Value {
    /// All of a tensor.
    #[inline]
    pub fn new(owner: Tensor) -> Self {
        Value { owner, layout: None }
    }

    /// The elements of an operand. Nothing is copied but a part of a tensor that is borrowed to be written.
    ///
    /// # Errors
    /// Where it is copied, those of [`TensorRead::to_tensor`].
    pub fn of(operand: &TensorRead<'_>) -> Result<Value> {
        if operand.is_lent() {
            return operand.to_tensor().map(Value::new);
        }
        // SAFETY: the tensor is not borrowed to be written.
        Ok(unsafe { Value::borrowed(operand.into()) })
    }

    /// The elements of an operand. Nothing is copied.
    ///
    /// # Safety
    /// If the operand is part of a tensor that is borrowed to be written, the value and all that share its owner
    /// are dropped before the operand's borrow ends.
    pub unsafe fn borrowed(operand: TensorRef<'_>) -> Value {
        let owner = Value::new(operand.owner().share());
        match operand.strides() {
            None => owner,
            Some(_) => owner.with_layout(operand.layout()),
        }
    }

    /// Other elements of the owner, or the same in another order: `layout` is relative to the owner, as
    /// [`layout`](Value::layout) is.
    ///
    /// # Panics
    /// When the layout reaches outside the owner, which layouts derived from this value's own do not.
    /// [`try_with_layout`](Value::try_with_layout) gives an error instead.
    #[track_caller]
    pub fn with_layout(&self, layout: Layout) -> Value {
        self.try_with_layout(layout).expect("a layout derived from the value's own")
    }

    /// [`with_layout`](Value::with_layout) for a layout from elsewhere.
    ///
    /// # Errors
    /// [`Error::Layout`] when the layout reaches outside the owner.
    #[inline]
    pub fn try_with_layout(&self, layout: Layout) -> Result<Value> {
        check_inside("with_layout", &self.owner, &layout)?;
        Ok(self.derived(Shared::new(layout)))
    }

    /// Axis `i` of the result is axis `perm[i]`.
    ///
    /// # Errors
    /// [`Error::Axis`] unless `perm` is a permutation of the axes.
    #[inline]
    pub fn transpose(&self, op: &'static str, perm: &[usize]) -> Result<Value> {
        self.derived_by(|layout, from| layout.set_transpose(op, from, perm))
    }

    /// `starts[i]..limits[i]` of each axis with forward steps; see [`Layout::slice`].
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Argument`].
    #[inline]
    pub fn slice(
        &self,
        op: &'static str,
        starts: &[usize],
        limits: &[usize],
        steps: &[usize],
    ) -> Result<Value> {
        self.derived_by(|layout, from| layout.set_slice(op, from, starts, limits, steps))
    }

    /// The axes run backwards.
    ///
    /// # Errors
    /// [`Error::Axis`] for an axis out of range or named twice.
    #[inline]
    pub fn reverse(&self, op: &'static str, axes: &[usize]) -> Result<Value> {
        self.derived_by(|layout, from| layout.set_reverse(op, from, axes))
    }

    /// Axis `i` becomes axis `dims[i]` of `shape`; see [`Layout::broadcast`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn broadcast(&self, op: &'static str, shape: &[usize], dims: &[usize]) -> Result<Value> {
        self.derived_by(|layout, from| layout.set_broadcast(op, from, shape, dims))
    }

    /// The diagonal of two axes, as a new last axis; see [`Layout::diagonal`].
    ///
    /// # Errors
    /// [`Error::Axis`] for equal axes or an axis out of range.
    #[inline]
    pub fn diagonal(&self, op: &'static str, axis1: usize, axis2: usize) -> Result<Value> {
        self.derived_by(|layout, from| layout.set_diagonal(op, from, axis1, axis2))
    }

    /// The elements in column-major order under another shape; `None` where that needs a copy.
    ///
    /// # Errors
    /// [`Error::Shape`] when the numbers of elements differ, [`Error::Overflow`].
    #[inline]
    pub fn reshape(&self, op: &'static str, shape: &[usize]) -> Result<Option<Value>> {
        let mut layout = Shared::new(Layout::BLANK);
        let to = layout.get_mut().expect("it has one owner so far");
        Ok(to.set_reshape(op, &self.parts(), shape)?.then(|| self.derived(layout)))
    }

    /// With the layout that `set` makes of the value's own, inside the owner.
    // Inlined always: a value that is returned through memory is read back before it is written there.
    #[inline(always)]
    fn derived_by(&self, set: impl FnOnce(&mut Layout, &Parts<'_>) -> Result<()>) -> Result<Value> {
        let mut layout = Shared::new(Layout::BLANK);
        set(layout.get_mut().expect("it has one owner so far"), &self.parts())?;
        Ok(self.derived(layout))
    }

    #[inline(always)]
    fn parts(&self) -> Parts<'_> {
        match &self.layout {
            None => Parts { shape: self.owner.shape(), strides: None, offset: 0 },
            Some(layout) => layout.parts(),
        }
    }

    /// With a layout that lies inside the owner.
    #[inline]
    fn derived(&self, layout: Shared<Layout>) -> Value {
        debug_assert!(layout.fits(self.owner.len()));
        let compact = layout.offset() == 0 && layout.is_col_major_contiguous();
        let whole = compact && same_shape(self.owner.shape(), layout.shape());
        Value { owner: self.owner.share(), layout: (!whole).then_some(layout) }
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.owner.dtype()
    }

    /// The extents.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        match &self.layout {
            None => self.owner.shape(),
            Some(layout) => layout.shape(),
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
        self.layout.as_ref().map_or_else(|| self.owner.len(), |layout| layout.len())
    }

    /// No elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }

    /// The shape, strides and offset in the owner.
    #[inline]
    pub fn layout(&self) -> Layout {
        match &self.layout {
            None => self.owner.layout(),
            Some(layout) => Layout::clone(layout),
        }
    }

    /// Where the elements are.
    #[inline]
    pub fn placement(&self) -> &Placement {
        self.owner.placement()
    }

    /// As the argument of an operation.
    #[inline]
    pub fn read(&self) -> TensorRead<'_> {
        match &self.layout {
            None => TensorRead::Tensor(&self.owner),
            Some(layout) => TensorRead::View(TensorView::trusted(&self.owner, Layout::clone(layout))),
        }
    }

    /// The tensor, if all of it is meant, in its own shape.
    #[inline]
    pub fn whole(&self) -> Option<&Tensor> {
        self.layout.is_none().then_some(&self.owner)
    }

    /// As an operand of a kernel.
    #[inline]
    pub fn by_ref(&self) -> TensorRef<'_> {
        TensorRef::trusted(&self.owner, self.layout.as_deref())
    }

    /// The elements are exactly the owner's, in its order (under whatever shape).
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.layout.as_ref().is_none_or(|layout| {
            layout.is_col_major_contiguous() && layout.offset() == 0 && layout.len() == self.owner.len()
        })
    }

    /// The tensor whose elements these are.
    #[inline]
    pub fn owner(&self) -> &Tensor {
        &self.owner
    }

    /// No other value or tensor shares the owner.
    #[inline]
    pub fn is_unique(&self) -> bool {
        self.owner.is_unique()
    }

    /// The address of the owner: equal exactly for values that share it.
    #[inline]
    pub fn ptr_id(&self) -> usize {
        self.owner.ptr_id()
    }

    /// The tensor, moved out.
    ///
    /// # Errors
    /// [`Error::State`] when the owner is shared, [`Error::Layout`] when the elements are not exactly the
    /// owner's in its order; both name `duplicate()`.
    pub fn into_tensor(self) -> Result<Tensor> {
        self.try_into_unique().map_err(|value| {
            if value.is_contiguous() {
                return Error::runtime_state("into_tensor", "the storage is shared; use duplicate() to copy");
            }
            let got = format!("{:?}", value.layout());
            let expected = "all of the storage in column-major order; use duplicate() to copy";
            Error::layout("into_tensor", "layout", got, expected)
        })
    }

    /// The tensor, moved out, when it is unique and [`is_contiguous`](Value::is_contiguous); else the value
    /// back.
    pub fn try_into_unique(mut self) -> Result<Tensor, Value> {
        if !self.is_contiguous() || self.owner.check_unique("into_tensor").is_err() {
            return Err(self);
        }
        let Value { owner, layout } = self;
        match layout {
            None => Ok(owner),
            Some(layout) => {
                Ok(owner.into_shape(layout.shape()).expect("unique, and the layout has as many elements"))
            }
        }
    }

    /// A compact copy.
    ///
    /// # Errors
    /// [`Error::Placement`] for elements outside host memory, [`Error::Memory`], [`Error::Overflow`].
    pub fn duplicate(&self) -> Result<Tensor> {
        self.read().to_tensor()
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Value::new(tensor)
    }
}

impl<T: Scalar> From<TypedTensor<T>> for Value {
    fn from(tensor: TypedTensor<T>) -> Self {
        Value::new(tensor.into_tensor())
    }
}
