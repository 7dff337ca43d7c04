//! Tensors whose operations run at once, remembering how they came about while a gradient is wanted.

use crate::tier::Recorded;
use smallvec::SmallVec;
use std::sync::Arc;
use tenferro_core_ops::{Backend, Now, Outs, Target, Var, into_tensor, leaf, with_backend};
use tenferro_tensor::{DType, Error, Result, Scalar, Shape, Tensor, TensorRead, Value};

/// A backend for eager tensors; clones are the same runtime.
#[derive(Clone)]
pub struct EagerRuntime(Arc<dyn Backend>);

impl EagerRuntime {
    /// A runtime on a backend or session. Tensors of different runtimes do not mix.
    pub fn new(target: &(impl Target + ?Sized)) -> Self {
        EagerRuntime(target.backend().share())
    }

    /// The backend.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.0
    }

    /// A tensor of this runtime. Nothing is copied.
    ///
    /// # Errors
    /// If `t` is placed elsewhere.
    pub fn tensor(&self, t: Tensor) -> Result<EagerTensor> {
        if !t.placement().same_memory(self.0.placement()) {
            return Err(Error::placement("tensor", "placement", t.placement(), self.0.placement()));
        }
        Ok(EagerTensor { var: Var::Now(Now::new(Value::new(t))), runtime: self.clone() })
    }

    /// A tensor of this runtime whose gradient is wanted.
    ///
    /// # Errors
    /// If `t` is placed elsewhere, or holds neither real nor complex floating-point numbers.
    pub fn variable(&self, t: Tensor) -> Result<EagerTensor> {
        self.tensor(t)?.requires_grad()
    }

    /// A tensor of the given elements in column-major order.
    ///
    /// # Errors
    /// If `shape` does not have as many elements as `data`.
    pub fn from_vec_col_major<T: Scalar>(
        &self,
        shape: impl Into<Shape>,
        data: Vec<T>,
    ) -> Result<EagerTensor> {
        self.tensor(Tensor::from_vec_col_major(shape, data)?)
    }

    /// A tensor of one element and no axes.
    ///
    /// # Errors
    /// Allocation.
    pub fn scalar<T: Scalar>(&self, value: T) -> Result<EagerTensor> {
        self.from_vec_col_major(Shape::default(), vec![value])
    }

    /// The result of rules written on [`Var`], run on this backend.
    ///
    /// # Errors
    /// What `f` reports in its result.
    pub fn run(&self, f: impl FnOnce() -> Var) -> Result<EagerTensor> {
        self.wrap(with_backend(&*self.0, f))
    }

    /// A present value as a tensor of this runtime.
    ///
    /// # Errors
    /// If the value is traced or an error.
    #[inline]
    pub fn wrap(&self, v: Var) -> Result<EagerTensor> {
        match v {
            Var::Now(now) => Ok(EagerTensor { var: Var::Now(now), runtime: self.clone() }),
            v => Err(v.into_value().expect_err("it is not present")),
        }
    }

    /// That tensors are of this runtime.
    ///
    /// # Errors
    /// [`Error::State`] of the operation `op` if one is not.
    #[inline]
    pub fn check(&self, op: &'static str, x: &[&EagerTensor]) -> Result<()> {
        if x.iter().all(|x| x.runtime.same(self)) {
            return Ok(());
        }
        Err(Error::runtime_state(op, "the operands belong to different runtimes"))
    }

    /// Whether both are the same runtime.
    pub fn same(&self, o: &EagerRuntime) -> bool {
        Arc::ptr_eq(&self.0, &o.0)
    }
}

impl std::fmt::Debug for EagerRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EagerRuntime({})", self.0.name())
    }
}

/// An immutable tensor of an [`EagerRuntime`]. Clones are the same value; views of it are O(rank).
///
/// The operators `+`, `-`, `*` and `/` are those of two tensors, and of a tensor and a number on either side, which takes
/// the dtype of the tensor. An integer tensor keeps its dtype beside an integral number in its range; beside another
/// one, in a quotient, and if it is bool, it is promoted to f64. An integer above 2^53 keeps its digits as a tensor
/// ([`EagerRuntime::scalar`]).
///
/// ```
/// use tenferro_cpu::CpuBackend;
/// use tenferro_runtime::EagerRuntime;
///
/// let runtime = EagerRuntime::new(&CpuBackend::new());
/// let x = runtime.from_vec_col_major([2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
/// let y = x.transpose(&[1, 0])?.matmul(&x)?;
/// assert_eq!(y.to_tensor()?.as_slice::<f64>()?, [5.0, 11.0, 11.0, 25.0]);
///
/// let z = (2.0 / &(1.0 + &x)?)?;
/// assert_eq!(z.to_tensor()?.as_slice::<f64>()?, [1.0, 2.0 / 3.0, 0.5, 0.4]);
/// let n = runtime.from_vec_col_major([2], vec![1_i64, 3])?;
/// assert_eq!((10.0 - &n)?.to_tensor()?.as_slice::<i64>()?, [9, 7]);
/// assert_eq!((0.5 * &n)?.to_tensor()?.as_slice::<f64>()?, [0.5, 1.5]);
/// assert_eq!(format!("{:.1}", x.slice_axis(0, 0, 1)?), "f64[1, 2]\n  1.0  3.0");
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct EagerTensor {
    var: Var,
    runtime: EagerRuntime,
}

/// The elements, as a [`Tensor`] prints them.
impl std::fmt::Display for EagerTensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.read().fmt(f)
    }
}

impl Recorded for EagerTensor {
    fn var(&self) -> &Var {
        &self.var
    }

    fn apply(
        &self,
        op: &'static str,
        others: &[&Self],
        f: impl FnOnce() -> Outs<Var>,
    ) -> Result<SmallVec<[Self; 1]>> {
        self.runtime.check(op, others)?;
        with_backend(&*self.runtime.0, f).into_iter().map(|v| self.runtime.wrap(v)).collect()
    }

    // Inlined always: see `with_backend`.
    #[inline(always)]
    fn apply1(&self, op: &'static str, others: &[&Self], f: impl FnOnce() -> Var) -> Result<Self> {
        self.runtime.check(op, others)?;
        self.runtime.wrap(with_backend(&*self.runtime.0, f))
    }
}

impl EagerTensor {
    /// The runtime.
    pub fn runtime(&self) -> &EagerRuntime {
        &self.runtime
    }

    fn value(&self) -> &Value {
        self.var.value().expect("an eager tensor is present")
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.value().dtype()
    }

    /// Extents.
    pub fn shape(&self) -> &[usize] {
        self.value().shape()
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape().len()
    }

    /// The data, to be read.
    pub fn read(&self) -> TensorRead<'_> {
        self.value().read()
    }

    /// A compact copy of the data.
    ///
    /// # Errors
    /// Allocation.
    pub fn to_tensor(&self) -> Result<Tensor> {
        tenferro_core_ops::contiguous(&*self.runtime.0, self.value().by_ref())
    }

    /// The compact data: moved out if this is the only handle, else copied.
    ///
    /// # Errors
    /// Allocation.
    pub fn into_tensor(self) -> Result<Tensor> {
        into_tensor(&*self.runtime.0, self.var.into_value()?)
    }

    /// The only element.
    ///
    /// # Errors
    /// If there are more or fewer, or they are not of type `T`.
    pub fn item<T: Scalar>(&self) -> Result<T> {
        self.to_tensor()?.item()
    }

    /// The same value as a new leaf that collects a gradient.
    ///
    /// # Errors
    /// If the elements are neither real nor complex floating-point numbers.
    pub fn requires_grad(&self) -> Result<EagerTensor> {
        if !self.dtype().is_differentiable() {
            let expected = "a real or complex floating-point dtype";
            return Err(Error::dtype("requires_grad", "dtype", self.dtype(), expected));
        }
        self.runtime.wrap(leaf(self.value().clone()))
    }

    /// Whether a gradient flows through this value.
    pub fn tracks_gradient(&self) -> bool {
        matches!(&self.var, Var::Now(n) if n.node().is_some())
    }

    /// The same value without its history.
    pub fn detach(&self) -> EagerTensor {
        EagerTensor { var: self.var.detach(), runtime: self.runtime.clone() }
    }
}
