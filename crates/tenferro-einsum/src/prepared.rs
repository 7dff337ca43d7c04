//! An einsum prepared for given extents: bound, planned and, for small tensors, with its kernels at hand.

use crate::binding::{Binding, Shapes};
use crate::einsum::{Einsum, Subscripts, einsum};
use crate::lower::lower_into;
use crate::order::Optimize;
use crate::plan::{Kind, Plan};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use tenferro_core_ops::ops::NUMBERS;
use tenferro_core_ops::{
    Aval, Backend, Dim, Now, Out, Ready, ShapeOf, Target, Var, into_tensor, with_backend,
};
use tenferro_runtime::tier::{Lower, run_direct1};
use tenferro_tensor::{
    DType, Error, Result, Scalar, Tensor, TensorRead, TensorRef, TensorViewMut, TypedTensor, Value,
    same_shape,
};

/// An [`Einsum`] prepared for operands of given shapes: what depends on labels and extents alone is done
/// once.
///
/// It gives new tensors, or writes into a destination, or adds to one. On eager and traced tensors it is used
/// in place of text, and takes the extents that it is prepared for alone, there as everywhere; for symbolic
/// extents take [`einsum`](Self::einsum), which has the same order. Its `Display` is the plan's report.
///
/// ```
/// use tenferro_cpu::CpuBackend;
/// use tenferro_einsum::{Einsum, prelude::*};
/// use tenferro_runtime::{Tensor, TypedTensor};
///
/// let mut cpu = CpuBackend::new();
/// let product = Einsum::parse("ij,jk->ik")?.prepare(&[&[2, 2], &[2, 1]])?;
/// let a = TypedTensor::from_vec_col_major([2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
/// let b = TypedTensor::from_vec_col_major([2, 1], vec![1.0, 1.0])?;
/// assert_eq!(product.run_typed(&[&a, &b], &mut cpu)?.as_slice()?, [4.0, 6.0]);
///
/// let mut y: TypedTensor<f64> = TypedTensor::from_vec_col_major([2, 1], vec![1.0, 1.0])?;
/// product.accumulate(1.0, &[(&a).into(), (&b).into()], -1.0, y.as_view_mut()?.into(), &mut cpu)?;
/// assert_eq!(y.as_slice()?, [3.0, 5.0]);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct PreparedEinsum(Arc<Inner>);

struct Inner {
    /// With the order of the plan.
    einsum: Einsum,
    shapes: SmallVec<[SmallVec<[usize; 6]>; 4]>,
    output: SmallVec<[usize; 6]>,
    binding: Arc<Binding>,
    plan: Arc<Plan>,
    /// For each dtype, the steps as operations, if at most a permutation is to be done beside them.
    steps: [OnceLock<Option<Vec<Ready>>>; DType::ALL.len()],
}

impl Einsum {
    /// Prepares the einsum for operands of these shapes.
    ///
    /// # Errors
    /// Shapes that do not fit, see [`plan`](Self::plan).
    pub fn prepare(&self, shapes: &[&[usize]]) -> Result<PreparedEinsum> {
        let plan = self.plan(shapes)?;
        let einsum = match self.optimize() {
            Optimize::Path(_) => self.clone(),
            _ => self.optimized(Optimize::path(plan.path().iter().copied()))?,
        };
        let binding = einsum.binding(Shapes::of(shapes))?;
        let output = binding.output(shapes)?;
        let shapes = shapes.iter().map(|shape| SmallVec::from_slice(shape)).collect();
        let steps = [const { OnceLock::new() }; DType::ALL.len()];
        Ok(PreparedEinsum(Arc::new(Inner { einsum, shapes, output, binding, plan, steps })))
    }
}

impl PreparedEinsum {
    /// How it is carried out, and what that costs.
    pub fn plan(&self) -> &Plan {
        &self.0.plan
    }

    /// The einsum, in the order of the plan.
    pub fn einsum(&self) -> &Einsum {
        &self.0.einsum
    }

    /// The einsum of tensors of one type.
    ///
    /// # Errors
    /// Other shapes than those it is prepared for; operands that are no numbers, or are placed elsewhere.
    pub fn run_typed<T: Scalar>(
        &self,
        x: &[&TypedTensor<T>],
        backend: &mut (impl Target + ?Sized),
    ) -> Result<TypedTensor<T>> {
        let tensors: SmallVec<[&Tensor; 4]> = x.iter().map(|x| x.as_tensor()).collect();
        Lower::lower("einsum", self.run(&tensors, backend)?)
    }

    /// The einsum of tensors, which are promoted to a common dtype.
    ///
    /// # Errors
    /// Other shapes than those it is prepared for; operands that are no numbers, or are placed elsewhere.
    pub fn run(&self, x: &[&Tensor], backend: &mut (impl Target + ?Sized)) -> Result<Tensor> {
        self.check(x.iter().map(|x| x.shape()), same_shape)?;
        if let Some(steps) = self.steps(x)
            && let Some(y) = run_steps(steps, x, &self.0.plan, backend.backend())?
        {
            return match &self.0.plan.finish().permutation {
                None => Ok(y),
                Some(order) => into_tensor(backend.backend(), Value::new(y).transpose("einsum", order)?),
            };
        }
        let values: SmallVec<[Var; 4]> =
            x.iter().map(|x| present(&TensorRead::from(*x))).collect::<Result<_>>()?;
        let refs: SmallVec<[&Var; 4]> = values.iter().collect();
        run_direct1(backend, || einsum(&self.0.einsum, &refs))
    }

    /// The einsum of tensors and views, promoted to a common dtype, written into a tensor or view of that
    /// dtype.
    ///
    /// # Errors
    /// As [`run`](Self::run); a destination of another dtype or shape than the result.
    pub fn run_into(
        &self,
        x: &[TensorRead<'_>],
        y: TensorViewMut<'_>,
        backend: &mut (impl Target + ?Sized),
    ) -> Result<()> {
        self.write(x, y, |y| Out::Into(vec![y]), backend)
    }

    /// `y = alpha * einsum(x) + beta * y`. As in BLAS, and whatever the last step is, `alpha = 0` does not read
    /// `x`, `beta = 0` does not read `y`, and a factor of 1 multiplies nothing; see [`Out::Accumulate`]. For
    /// integers `alpha` and `beta` are whole.
    ///
    /// # Errors
    /// As [`run_into`](Self::run_into).
    pub fn accumulate(
        &self,
        alpha: f64,
        x: &[TensorRead<'_>],
        beta: f64,
        y: TensorViewMut<'_>,
        backend: &mut (impl Target + ?Sized),
    ) -> Result<()> {
        self.write(x, y, |view| Out::Accumulate { alpha, beta, view }, backend)
    }

    fn write<'a>(
        &self,
        x: &[TensorRead<'_>],
        y: TensorViewMut<'a>,
        out: impl FnOnce(TensorViewMut<'a>) -> Out<'a>,
        backend: &mut (impl Target + ?Sized),
    ) -> Result<()> {
        self.check(x.iter().map(|x| x.shape()), same_shape)?;
        let backend = backend.backend();
        with_backend(backend, || {
            let dtype = x.iter().fold(DType::Bool, |dtype, x| DType::promote(dtype, x.dtype()));
            if !NUMBERS.contains(&dtype) {
                return Err(Error::dtype(self.name(), "operands", dtype, "numbers"));
            }
            self.check_destination(&y, dtype)?;
            let values: SmallVec<[Var; 4]> =
                x.iter().map(|x| Ok(present(x)?.convert(dtype))).collect::<Result<_>>()?;
            let values = self.0.binding.squeezed(&values.iter().collect::<SmallVec<[&Var; 4]>>());
            let values: SmallVec<[&Var; 4]> = values.iter().collect();
            lower_into(backend, &self.0.plan, &values, out(y)).map_err(|e| e.of(self.name()))
        })
    }

    /// Whether the result fits its destination, which lowering may see with its axes in another order.
    fn check_destination(&self, y: &TensorViewMut<'_>, dtype: DType) -> Result<()> {
        if y.dtype() != dtype {
            return Err(Error::dtype(self.name(), "destination", y.dtype(), dtype));
        }
        if !same_shape(y.shape(), &self.0.output) {
            let (got, expected) = (format_args!("{:?}", y.shape()), format_args!("{:?}", self.0.output));
            return Err(Error::shape(self.name(), "shape of the destination", got, expected));
        }
        Ok(())
    }

    /// Whether the operands have the shapes that it is prepared for, as `same` sees it.
    #[inline]
    fn check<S: AsRef<[D]>, D: fmt::Display>(
        &self,
        shapes: impl ExactSizeIterator<Item = S>,
        same: impl Fn(&[D], &[usize]) -> bool,
    ) -> Result<()> {
        if shapes.len() != self.0.shapes.len() {
            let (got, expected) = (shapes.len(), self.0.shapes.len());
            return Err(Error::argument(self.name(), "number of operands", got, expected));
        }
        for (operand, (shape, prepared)) in shapes.zip(&self.0.shapes).enumerate() {
            if !same(shape.as_ref(), prepared) {
                return Err(self.unlike(operand, &ShapeOf(shape.as_ref())));
            }
        }
        Ok(())
    }

    #[cold]
    fn unlike(&self, operand: usize, got: &dyn fmt::Display) -> Error {
        let expected = format_args!("{:?}, which it is prepared for", self.0.shapes[operand]);
        Error::shape(self.name(), format!("shape of operand {operand}"), got, expected)
    }

    /// The name in errors.
    fn name(&self) -> &'static str {
        self.0.einsum.name()
    }

    /// The steps for operands of one dtype, if the plan is contractions and at most a permutation after them.
    fn steps(&self, x: &[&Tensor]) -> Option<&[Ready]> {
        let dtype = x.first()?.dtype();
        if x.iter().any(|x| x.dtype() != dtype) {
            return None;
        }
        self.0.steps[dtype as usize].get_or_init(|| self.0.contractions(dtype)).as_deref()
    }
}

impl Inner {
    fn contractions(&self, dtype: DType) -> Option<Vec<Ready>> {
        if !self.binding.dropped.is_empty() || self.plan.embed().is_some() || self.plan.steps().is_empty() {
            return None;
        }
        let mut avals: Vec<Aval> =
            self.shapes.iter().map(|shape| Aval::new(dtype, shape.iter().copied())).collect();
        let mut steps = Vec::new();
        for step in self.plan.steps() {
            let Kind::Dot(dot) = &step.kind else { return None };
            if !step.lhs.prepare.is_identity() || !step.rhs.prepare.is_identity() {
                return None;
            }
            let ready = Ready::new(dot, &[&avals[step.lhs.slot], &avals[step.rhs.slot]]).ok()?;
            avals.push(ready.output().clone());
            steps.push(ready);
        }
        Some(steps)
    }
}

/// The result of steps that are nothing but contractions; `None` if the backend has no kernel for them.
fn run_steps(steps: &[Ready], x: &[&Tensor], plan: &Plan, backend: &dyn Backend) -> Result<Option<Tensor>> {
    if let [only] = steps {
        let step = &plan.steps()[0];
        return only.run(backend, &[TensorRef::from(x[step.lhs.slot]), TensorRef::from(x[step.rhs.slot])]);
    }
    let mut made: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
    for (ready, step) in steps.iter().zip(plan.steps()) {
        let slots = [step.lhs.slot, step.rhs.slot];
        // What a step reads is dead after it.
        let taken = slots.map(|slot| made.get_mut(slot.checked_sub(x.len())?)?.take());
        let operand =
            |k: usize| taken[k].as_ref().map_or_else(|| TensorRef::from(x[slots[k]]), TensorRef::from);
        match ready.run(backend, &[operand(0), operand(1)])? {
            Some(y) => made.push(Some(y)),
            None => return Ok(None),
        }
    }
    Ok(made.pop().flatten())
}

fn present(x: &TensorRead<'_>) -> Result<Var> {
    Ok(Var::Now(Now::new(Value::of(x)?)))
}

impl Subscripts for PreparedEinsum {
    fn einsum(&self) -> Result<Cow<'_, Einsum>> {
        Ok(Cow::Borrowed(&self.0.einsum))
    }

    fn accepts(&self, x: &[&Var]) -> Result<()> {
        // What failed before has no shape, and says why when it is used.
        x.iter().try_for_each(|v| v.ok().map(drop))?;
        let same = |shape: &[Dim], prepared: &[usize]| {
            shape.len() == prepared.len() && shape.iter().zip(prepared).all(|(d, n)| d.as_lit() == Some(*n))
        };
        self.check(x.iter().map(|v| v.shape()), same)
    }
}

impl fmt::Display for PreparedEinsum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shapes: Vec<String> = self.0.shapes.iter().map(|shape| format!("{shape:?}")).collect();
        write!(f, "{} of {}\n{}", self.0.einsum, shapes.join(", "), self.0.plan)
    }
}

impl fmt::Debug for PreparedEinsum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PreparedEinsum({self})")
    }
}
