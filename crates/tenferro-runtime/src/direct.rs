//! What typed and dynamic tensors can do beyond the common table: change of dtype, choice, joining, and running
//! any operation into a destination.

use crate::tier::{Direct, Lower, Target, run_direct1};
use smallvec::SmallVec;
use tenferro_core_ops::{Dim, Op, Out, Outs, Var, build, execute_into};
use tenferro_tensor::{DType, Result, Scalar, Tensor, TensorRead, TypedTensor, Value};

/// Runs any operation on tensors or views of one backend: new tensors are returned, or the results go into, or
/// are added to, the views of `out`.
///
/// ```
/// use tenferro_core_ops::{Out, ops::DotGeneral};
/// use tenferro_cpu::CpuBackend;
/// use tenferro_runtime::{Tensor, execute};
///
/// let mut cpu = CpuBackend::new();
/// let x = Tensor::from_vec_col_major([2], vec![1.0, 2.0])?;
/// let mut y = Tensor::from_vec_col_major([2, 2], vec![1.0; 4])?;
/// let outer = Out::Accumulate { alpha: 2.0, beta: 1.0, view: y.as_view_mut()? };
/// execute(&DotGeneral::default(), &[(&x).into(), (&x).into()], outer, &mut cpu)?;
/// assert_eq!(y.as_slice::<f64>()?, [3.0, 5.0, 5.0, 9.0]);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
///
/// # Errors
/// What the shape rule or the kernel reports, operands placed elsewhere, and destinations of another dtype or
/// shape than the results. Nothing is written before all of that is checked, except that a kernel that finds
/// unfitting data may have begun to write into views.
pub fn execute(
    op: &dyn Op,
    x: &[TensorRead<'_>],
    mut out: Out<'_>,
    backend: &mut (impl Target + ?Sized),
) -> Result<Outs<Tensor>> {
    let values: SmallVec<[Value; 3]> = x.iter().map(Value::of).collect::<Result<_>>()?;
    let refs: SmallVec<[&Value; 3]> = values.iter().collect();
    execute_into(backend.backend(), op, &refs, &mut out)
}

/// Methods of dynamic tensors beyond the common table.
pub trait TensorExt: Sized {
    /// The elements as another dtype, losing what does not fit.
    ///
    /// # Errors
    /// A tensor of another backend.
    fn cast(&self, to: DType, backend: &mut (impl Target + ?Sized)) -> Result<Self>;
    /// The elements as a dtype above this one in the promotion order.
    ///
    /// # Errors
    /// If `to` is not above the dtype.
    fn convert(&self, to: DType, backend: &mut (impl Target + ?Sized)) -> Result<Self>;
    /// `self ? a : b`, elementwise, for a bool tensor.
    ///
    /// # Errors
    /// Operands of unfitting dtypes or shapes.
    fn select(&self, a: &Self, b: &Self, backend: &mut (impl Target + ?Sized)) -> Result<Self>;
    /// The promoted tensors one after the other along an axis.
    ///
    /// # Errors
    /// No tensors, unfitting shapes.
    fn concatenate(x: &[&Self], axis: usize, backend: &mut (impl Target + ?Sized)) -> Result<Self>;
    /// The promoted tensors, all of one shape, along a new axis.
    ///
    /// # Errors
    /// No tensors, unfitting shapes.
    fn stack(x: &[&Self], axis: usize, backend: &mut (impl Target + ?Sized)) -> Result<Self>;
    /// The position along `axis` in every element.
    ///
    /// # Errors
    /// An axis that does not exist, bool.
    fn iota(dtype: DType, shape: &[usize], axis: usize, backend: &mut (impl Target + ?Sized))
    -> Result<Self>;
    /// `n` numbers from `start` to `stop`, both included, evenly spaced.
    ///
    /// # Errors
    /// A dtype that is neither floating-point nor complex.
    fn linspace(
        dtype: DType,
        start: f64,
        stop: f64,
        n: usize,
        backend: &mut (impl Target + ?Sized),
    ) -> Result<Self>;
}

fn lifted(x: &[&impl Direct]) -> Vec<Var> {
    x.iter().map(|x| x.lift().clone()).collect()
}

impl TensorExt for Tensor {
    fn cast(&self, to: DType, backend: &mut (impl Target + ?Sized)) -> Result<Self> {
        run_direct1(backend, || self.lift().cast(to))
    }
    fn convert(&self, to: DType, backend: &mut (impl Target + ?Sized)) -> Result<Self> {
        run_direct1(backend, || self.lift().convert(to))
    }
    fn select(&self, a: &Self, b: &Self, backend: &mut (impl Target + ?Sized)) -> Result<Self> {
        run_direct1(backend, || self.lift().select(&a.lift(), &b.lift()))
    }
    fn concatenate(x: &[&Self], axis: usize, backend: &mut (impl Target + ?Sized)) -> Result<Self> {
        run_direct1(backend, || build::concatenate(&lifted(x), axis))
    }
    fn stack(x: &[&Self], axis: usize, backend: &mut (impl Target + ?Sized)) -> Result<Self> {
        run_direct1(backend, || build::stack(&lifted(x), axis))
    }
    fn iota(
        dtype: DType,
        shape: &[usize],
        axis: usize,
        backend: &mut (impl Target + ?Sized),
    ) -> Result<Self> {
        let shape: Vec<Dim> = shape.iter().map(|&n| Dim::Lit(n)).collect();
        run_direct1(backend, || build::iota(dtype, &shape, axis))
    }
    fn linspace(
        dtype: DType,
        start: f64,
        stop: f64,
        n: usize,
        backend: &mut (impl Target + ?Sized),
    ) -> Result<Self> {
        run_direct1(backend, || build::linspace(dtype, start, stop, &Dim::Lit(n)))
    }
}

/// Methods of typed tensors beyond the common table.
pub trait TypedTensorExt<T: Scalar>: Sized {
    /// The elements as another type, losing what does not fit.
    ///
    /// # Errors
    /// A tensor of another backend.
    fn cast<U: Scalar>(&self, backend: &mut (impl Target + ?Sized)) -> Result<TypedTensor<U>>;
    /// The elements as a type above this one in the promotion order.
    ///
    /// # Errors
    /// If `U` is not above `T`.
    fn convert<U: Scalar>(&self, backend: &mut (impl Target + ?Sized)) -> Result<TypedTensor<U>>;
    /// The tensors one after the other along an axis.
    ///
    /// # Errors
    /// No tensors, unfitting shapes.
    fn concatenate(x: &[&Self], axis: usize, backend: &mut (impl Target + ?Sized)) -> Result<Self>;
    /// The tensors, all of one shape, along a new axis.
    ///
    /// # Errors
    /// No tensors, unfitting shapes.
    fn stack(x: &[&Self], axis: usize, backend: &mut (impl Target + ?Sized)) -> Result<Self>;
    /// The position along `axis` in every element.
    ///
    /// # Errors
    /// An axis that does not exist, bool.
    fn iota(shape: &[usize], axis: usize, backend: &mut (impl Target + ?Sized)) -> Result<Self>;
    /// `n` numbers from `start` to `stop`, both included, evenly spaced.
    ///
    /// # Errors
    /// An element type that is neither floating-point nor complex.
    fn linspace(start: f64, stop: f64, n: usize, backend: &mut (impl Target + ?Sized)) -> Result<Self>;
}

impl<T: Scalar> TypedTensorExt<T> for TypedTensor<T> {
    fn cast<U: Scalar>(&self, backend: &mut (impl Target + ?Sized)) -> Result<TypedTensor<U>> {
        Lower::lower("cast", run_direct1(backend, || self.lift().cast(U::DTYPE))?)
    }
    fn convert<U: Scalar>(&self, backend: &mut (impl Target + ?Sized)) -> Result<TypedTensor<U>> {
        Lower::lower("convert", run_direct1(backend, || self.lift().convert(U::DTYPE))?)
    }
    fn concatenate(x: &[&Self], axis: usize, backend: &mut (impl Target + ?Sized)) -> Result<Self> {
        Lower::lower("concatenate", run_direct1(backend, || build::concatenate(&lifted(x), axis))?)
    }
    fn stack(x: &[&Self], axis: usize, backend: &mut (impl Target + ?Sized)) -> Result<Self> {
        Lower::lower("stack", run_direct1(backend, || build::stack(&lifted(x), axis))?)
    }
    fn iota(shape: &[usize], axis: usize, backend: &mut (impl Target + ?Sized)) -> Result<Self> {
        Lower::lower("iota", <Tensor as TensorExt>::iota(T::DTYPE, shape, axis, backend)?)
    }
    fn linspace(start: f64, stop: f64, n: usize, backend: &mut (impl Target + ?Sized)) -> Result<Self> {
        Lower::lower("linspace", <Tensor as TensorExt>::linspace(T::DTYPE, start, stop, n, backend)?)
    }
}

/// Choice by a typed condition.
pub trait SelectExt {
    /// `self ? a : b`, elementwise.
    ///
    /// # Errors
    /// Operands of unfitting shapes.
    fn select<T: Scalar>(
        &self,
        a: &TypedTensor<T>,
        b: &TypedTensor<T>,
        backend: &mut (impl Target + ?Sized),
    ) -> Result<TypedTensor<T>>;
}

impl SelectExt for TypedTensor<bool> {
    fn select<T: Scalar>(
        &self,
        a: &TypedTensor<T>,
        b: &TypedTensor<T>,
        backend: &mut (impl Target + ?Sized),
    ) -> Result<TypedTensor<T>> {
        Lower::lower("select", run_direct1(backend, || self.lift().select(&a.lift(), &b.lift()))?)
    }
}
