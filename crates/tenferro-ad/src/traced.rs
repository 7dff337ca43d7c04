//! Derivatives of traced values: further traced values of the same program.

use tenferro_core_ops::{Var, jvp_traced, or_zero, unit_cotangent, vjp_traced};
use tenferro_runtime::{Error, Result, TracedTensor, tier::Recorded};

/// Derivatives of a traced value. Where it does not depend on `wrt`, they are zero.
///
/// ```
/// use tenferro_ad::TracedTensorAdExt;
/// use tenferro_cpu::CpuBackend;
/// use tenferro_runtime::{DType, Dim, GraphCompiler, Tensor, TracedTensor};
///
/// // y = sum(x^3), so grad = 3 x^2 and hvp = 6 x v.
/// let [x, v] = [0, 1].map(|_| TracedTensor::input(DType::F64, &[Dim::symbol("n")]));
/// let y = (&(&x * &x)? * &x)?.reduce_sum(None)?;
/// let program = GraphCompiler::new().compile_with(&[&x, &v], &[&y.grad(&x)?, &y.hvp(&x, &v)?])?;
/// let x = Tensor::from_vec_col_major([2], vec![1.0, 2.0])?;
/// let v = Tensor::from_vec_col_major([2], vec![1.0, -1.0])?;
/// let out = program.run(&mut CpuBackend::new(), &[&x, &v])?;
/// assert_eq!(out[0].as_slice::<f64>()?, [3.0, 12.0]);
/// assert_eq!(out[1].as_slice::<f64>()?, [6.0, -12.0]);
/// # Ok::<(), tenferro_runtime::Error>(())
/// ```
pub trait TracedTensorAdExt: Sized {
    /// The gradient of this real scalar.
    ///
    /// # Errors
    /// If this is not one real number, or an operation on the way has no derivative.
    fn grad(&self, wrt: &Self) -> Result<Self>;

    /// The gradients of this real scalar with respect to several values, in one sweep.
    ///
    /// # Errors
    /// As [`grad`](Self::grad).
    fn grads(&self, wrt: &[&Self]) -> Result<Vec<Self>>;

    /// This real scalar and its gradient.
    ///
    /// # Errors
    /// As [`grad`](Self::grad).
    fn value_and_grad(&self, wrt: &Self) -> Result<(Self, Self)>;

    /// The cotangent of `wrt` for the cotangent `ct` of this value, `J^H ct`.
    ///
    /// # Errors
    /// If `ct` does not have the dtype and shape of this value, or an operation on the way has no derivative.
    fn vjp(&self, wrt: &Self, ct: &Self) -> Result<Self>;

    /// The tangent of this value for the tangent `t` of `wrt`, `J t`.
    ///
    /// # Errors
    /// If `t` does not have the dtype and shape of `wrt`, or an operation on the way has no derivative.
    fn jvp(&self, wrt: &Self, t: &Self) -> Result<Self>;

    /// The product of the Hessian of this real scalar with `v`: the tangent of the gradient.
    ///
    /// # Errors
    /// As [`grad`](Self::grad) and [`jvp`](Self::jvp).
    fn hvp(&self, wrt: &Self, v: &Self) -> Result<Self>;
}

impl TracedTensorAdExt for TracedTensor {
    fn grad(&self, wrt: &Self) -> Result<Self> {
        pull("grad", self, &unit_cotangent("grad", self.var())?, wrt)
    }

    fn grads(&self, wrt: &[&Self]) -> Result<Vec<Self>> {
        let seed = (self.var().clone(), unit_cotangent("grads", self.var())?);
        let vars: Vec<&Var> = wrt.iter().map(|w| w.var()).collect();
        vars.iter().try_for_each(|w| differentiable("grads", w))?;
        let cts = vjp_traced(&[seed], &vars)?;
        cts.into_iter().zip(wrt).map(|(ct, w)| TracedTensor::from_var(or_zero(ct, w.var()))).collect()
    }

    fn value_and_grad(&self, wrt: &Self) -> Result<(Self, Self)> {
        Ok((self.clone(), self.grad(wrt)?))
    }

    fn vjp(&self, wrt: &Self, ct: &Self) -> Result<Self> {
        fits("vjp", "cotangent", ct.var(), self.var())?;
        pull("vjp", self, ct.var(), wrt)
    }

    fn jvp(&self, wrt: &Self, t: &Self) -> Result<Self> {
        differentiable("jvp", wrt.var())?;
        fits("jvp", "tangent", t.var(), wrt.var())?;
        let dy = jvp_traced(&[self.var()], &[(wrt.var().clone(), t.var().clone())])?.pop().flatten();
        TracedTensor::from_var(or_zero(dy, self.var()))
    }

    fn hvp(&self, wrt: &Self, v: &Self) -> Result<Self> {
        self.grad(wrt)?.jvp(wrt, v)
    }
}

fn pull(op: &'static str, y: &TracedTensor, ct: &Var, wrt: &TracedTensor) -> Result<TracedTensor> {
    differentiable(op, wrt.var())?;
    let g = vjp_traced(&[(y.var().clone(), ct.clone())], &[wrt.var()])?.pop().flatten();
    TracedTensor::from_var(or_zero(g, wrt.var()))
}

pub(crate) fn differentiable(op: &'static str, wrt: &Var) -> Result<()> {
    if wrt.ok()?.dtype().is_differentiable() {
        return Ok(());
    }
    Err(Error::dtype(
        op,
        "what to differentiate with respect to",
        wrt.dtype(),
        "a real or complex floating-point dtype",
    ))
}

pub(crate) fn fits(op: &'static str, what: &str, t: &Var, model: &Var) -> Result<()> {
    let (t, model) = (t.ok()?.aval(), model.ok()?.aval());
    if t == model { Ok(()) } else { Err(Error::shape(op, what, t, model)) }
}
