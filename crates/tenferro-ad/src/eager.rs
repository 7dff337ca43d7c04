//! Derivatives of eager tensors: by their tape, or as transforms of functions.

use crate::traced::{differentiable, fits};
use tenferro_core_ops::{
    Node, Now, Var, argument, backward, is_recording, or_zero, unit_cotangent, vjp_present, with_backend,
    with_grad,
};
use tenferro_runtime::{EagerRuntime, EagerTensor, Error, Result, tier::Recorded};

/// Reverse mode on the tape of an eager tensor.
///
/// ```
/// use tenferro_ad::EagerTensorAdExt;
/// use tenferro_cpu::CpuBackend;
/// use tenferro_runtime::EagerRuntime;
///
/// let runtime = EagerRuntime::new(&CpuBackend::new());
/// let x = runtime.from_vec_col_major([3], vec![1.0, 2.0, 3.0])?.requires_grad()?;
/// (&x * &x)?.reduce_sum(None)?.backward()?;
/// assert_eq!(x.grad().unwrap().to_tensor()?.as_slice::<f64>()?, [2.0, 4.0, 6.0]);
/// # Ok::<(), tenferro_runtime::Error>(())
/// ```
pub trait EagerTensorAdExt: Sized {
    /// Adds the gradient of this real scalar to every leaf it depends on.
    ///
    /// # Errors
    /// If this is not one real number, nothing it depends on requires a gradient, or an operation on the way has no
    /// derivative; then no gradient is changed.
    fn backward(&self) -> Result<()>;

    /// Adds the cotangents for the cotangent `ct` of this value to every leaf it depends on.
    ///
    /// # Errors
    /// If `ct` does not have the dtype and shape of this value, nothing it depends on requires a gradient, or an
    /// operation on the way has no derivative; then no gradient is changed.
    fn backward_with(&self, ct: &Self) -> Result<()>;

    /// The gradient collected by this leaf so far; `None` before the first, and of what is no leaf: the result of an
    /// operation becomes one by [`requires_grad`](EagerTensor::requires_grad).
    fn grad(&self) -> Option<Self>;

    /// Forgets the gradient of this leaf.
    fn clear_grad(&self);

    /// The gradients of this real scalar with respect to `wrt`, which any values on its tape may be; zero for those
    /// it does not depend on. With `create_graph` the gradients are on the tape themselves, so that they can
    /// be differentiated.
    ///
    /// # Errors
    /// As [`backward`](Self::backward).
    fn gradients(&self, wrt: &[&Self], create_graph: bool) -> Result<Vec<Self>>;

    /// As [`gradients`](Self::gradients), for the cotangent `ct` of a value of any shape.
    ///
    /// # Errors
    /// As [`backward_with`](Self::backward_with).
    fn cotangents(&self, ct: &Self, wrt: &[&Self], create_graph: bool) -> Result<Vec<Self>>;
}

impl EagerTensorAdExt for EagerTensor {
    fn backward(&self) -> Result<()> {
        tracked("backward", self)?;
        within(self, || backward(self.var(), unit_cotangent("backward", self.var())?))
    }

    fn backward_with(&self, ct: &Self) -> Result<()> {
        self.runtime().check("backward_with", &[ct])?;
        fits("backward_with", "cotangent", ct.var(), self.var())?;
        tracked("backward_with", self)?;
        within(self, || backward(self.var(), ct.var().detach()))
    }

    fn grad(&self) -> Option<Self> {
        let gradient = node(self.var())?.gradient()?;
        self.runtime().wrap(gradient).ok()
    }

    fn clear_grad(&self) {
        if let Some(n) = node(self.var()) {
            n.clear_gradient();
        }
    }

    fn gradients(&self, wrt: &[&Self], create_graph: bool) -> Result<Vec<Self>> {
        let ct = unit("gradients", self)?;
        self.runtime().check("gradients", wrt)?;
        tracked("gradients", self)?;
        pull("gradients", self, &ct, wrt, create_graph)
    }

    fn cotangents(&self, ct: &Self, wrt: &[&Self], create_graph: bool) -> Result<Vec<Self>> {
        self.runtime().check("cotangents", &[ct])?;
        self.runtime().check("cotangents", wrt)?;
        fits("cotangents", "cotangent", ct.var(), self.var())?;
        tracked("cotangents", self)?;
        pull("cotangents", self, ct, wrt, create_graph)
    }
}

/// The cotangent of the real scalar `y` whose product is its gradient.
fn unit(op: &'static str, y: &EagerTensor) -> Result<EagerTensor> {
    y.runtime().run(|| unit_cotangent(op, y.var()).into())
}

/// The cotangents of `wrt` for the cotangent `ct` of `y`, with their histories if `create_graph`; zero where `y`
/// does not depend on them.
fn pull(
    op: &'static str,
    y: &EagerTensor,
    ct: &EagerTensor,
    wrt: &[&EagerTensor],
    create_graph: bool,
) -> Result<Vec<EagerTensor>> {
    fits(op, "cotangent", ct.var(), y.var())?;
    let vars: Vec<&Var> = wrt.iter().map(|w| w.var()).collect();
    vars.iter().try_for_each(|w| differentiable(op, w))?;
    within(y, || {
        let ct = if create_graph { ct.var().clone() } else { ct.var().detach() };
        let found = vjp_present(&[(y.var(), ct)], &vars, create_graph)?;
        found.into_iter().zip(&vars).map(|(g, w)| y.runtime().wrap(or_zero(g, w))).collect()
    })
}

/// That a gradient flows from `y` to somewhere: asking for it otherwise is a mistake that would go unnoticed.
fn tracked(op: &'static str, y: &EagerTensor) -> Result<()> {
    if y.tracks_gradient() {
        return Ok(());
    }
    Err(Error::runtime_state(
        op,
        "nothing that this was computed from requires a gradient (see requires_grad)",
    ))
}

fn node(v: &Var) -> Option<&Node> {
    match v {
        Var::Now(n) => Now::node(n).map(|(n, _)| &**n),
        _ => None,
    }
}

fn within<R>(x: &EagerTensor, f: impl FnOnce() -> R) -> R {
    with_backend(&**x.runtime().backend(), f)
}

/// Derivatives of functions of eager tensors. The function is called once, on a new tensor made of the argument.
///
/// They nest to any order: where a gradient flows through the argument, a tangent or cotangent, or something that the
/// function captured, it flows through the results, too. What the function makes is its own, also if it keeps it for
/// later calls.
///
/// What the function does not depend on, or only through [`no_grad`](crate::no_grad) or
/// [`detach`](EagerTensor::detach), has derivative zero.
///
/// ```
/// use tenferro_ad::EagerRuntimeAdExt;
/// use tenferro_cpu::CpuBackend;
/// use tenferro_runtime::{EagerRuntime, EagerTensor, Result};
///
/// let runtime = EagerRuntime::new(&CpuBackend::new());
/// let cubes = |x: &EagerTensor| -> Result<EagerTensor> { (&(x * x)? * x)?.reduce_sum(None) };
/// let x = runtime.from_vec_col_major([2], vec![1.0, 2.0])?;
/// let v = runtime.from_vec_col_major([2], vec![1.0, -1.0])?;
/// assert_eq!(runtime.grad(cubes, &x)?.to_tensor()?.as_slice::<f64>()?, [3.0, 12.0]);
/// assert_eq!(runtime.jvp(cubes, &x, &v)?.1.item::<f64>()?, -9.0);
/// assert_eq!(runtime.hvp(cubes, &x, &v)?.to_tensor()?.as_slice::<f64>()?, [6.0, -12.0]);
///
/// // The gradient of half the squared norm of the gradient, 3 x^2: of 9/2 x^4.
/// let steepness = |x: &EagerTensor| {
///     let g = runtime.grad(cubes, x)?;
///     (&(&g * &g)? * 0.5)?.reduce_sum(None)
/// };
/// assert_eq!(runtime.grad(steepness, &x)?.to_tensor()?.as_slice::<f64>()?, [18.0, 144.0]);
/// # Ok::<(), tenferro_runtime::Error>(())
/// ```
pub trait EagerRuntimeAdExt {
    /// The gradient of the real scalar `f(x)`.
    ///
    /// # Errors
    /// What `f` reports; if `f(x)` is not one real number; an operation without a derivative.
    fn grad(
        &self,
        f: impl FnOnce(&EagerTensor) -> Result<EagerTensor>,
        x: &EagerTensor,
    ) -> Result<EagerTensor>;

    /// The real scalar `f(x)` and its gradient.
    ///
    /// # Errors
    /// As [`grad`](Self::grad).
    fn value_and_grad(
        &self,
        f: impl FnOnce(&EagerTensor) -> Result<EagerTensor>,
        x: &EagerTensor,
    ) -> Result<(EagerTensor, EagerTensor)>;

    /// `f(x)` and the cotangent `J^H ct` of `x`.
    ///
    /// # Errors
    /// As [`grad`](Self::grad); if `ct` does not have the dtype and shape of `f(x)`.
    fn vjp(
        &self,
        f: impl FnOnce(&EagerTensor) -> Result<EagerTensor>,
        x: &EagerTensor,
        ct: &EagerTensor,
    ) -> Result<(EagerTensor, EagerTensor)>;

    /// `f(x)` and its tangent `J t`.
    ///
    /// # Errors
    /// As [`grad`](Self::grad); if `t` does not have the dtype and shape of `x`.
    fn jvp(
        &self,
        f: impl FnOnce(&EagerTensor) -> Result<EagerTensor>,
        x: &EagerTensor,
        t: &EagerTensor,
    ) -> Result<(EagerTensor, EagerTensor)>;

    /// The product of the Hessian of the real scalar `f(x)` with `v`.
    ///
    /// # Errors
    /// As [`grad`](Self::grad); if `v` does not have the dtype and shape of `x`.
    fn hvp(
        &self,
        f: impl FnOnce(&EagerTensor) -> Result<EagerTensor>,
        x: &EagerTensor,
        v: &EagerTensor,
    ) -> Result<EagerTensor>;
}

/// A function called on a new argument made of `x`.
struct Called {
    x: EagerTensor,
    y: EagerTensor,
    /// Whether the value keeps its history, because a gradient flows through the argument or something that the
    /// function captured.
    captured: bool,
    /// Whether derivatives keep theirs: for that reason, or because it flows through another operand.
    keep: bool,
}

impl Called {
    /// `f(x)` where `others` are the further operands of the transform `op`.
    fn new(
        runtime: &EagerRuntime,
        op: &'static str,
        f: impl FnOnce(&EagerTensor) -> Result<EagerTensor>,
        x: &EagerTensor,
        others: &[&EagerTensor],
    ) -> Result<Called> {
        runtime.check(op, &[x])?;
        runtime.check(op, others)?;
        differentiable(op, x.var())?;
        let x = match x.var() {
            Var::Now(x) => runtime.wrap(argument(x))?,
            x => runtime.wrap(x.clone())?,
        };
        let y = with_grad(|| f(&x))?;
        runtime.check(op, &[&y])?;
        // What the function itself makes is newer than its argument.
        let older = |y: &Node, x: &Node| y.oldest() < x.id();
        let captured = node(y.var()).zip(node(x.var())).is_some_and(|(y, x)| older(y, x)) && is_recording();
        let keep = captured || is_recording() && others.iter().any(|o| o.tracks_gradient());
        Ok(Called { x, y, captured, keep })
    }

    /// The cotangent of the argument for the cotangent `ct` of the result.
    fn pull(&self, op: &'static str, ct: &EagerTensor) -> Result<EagerTensor> {
        Ok(pull(op, &self.y, ct, &[&self.x], self.keep)?.remove(0))
    }

    /// The result of the function.
    fn value(self) -> EagerTensor {
        if self.captured { self.y } else { self.y.detach() }
    }
}

impl EagerRuntimeAdExt for EagerRuntime {
    fn grad(
        &self,
        f: impl FnOnce(&EagerTensor) -> Result<EagerTensor>,
        x: &EagerTensor,
    ) -> Result<EagerTensor> {
        Ok(self.value_and_grad(f, x)?.1)
    }

    fn value_and_grad(
        &self,
        f: impl FnOnce(&EagerTensor) -> Result<EagerTensor>,
        x: &EagerTensor,
    ) -> Result<(EagerTensor, EagerTensor)> {
        let c = Called::new(self, "grad", f, x, &[])?;
        let g = c.pull("grad", &unit("grad", &c.y)?)?;
        Ok((c.value(), g))
    }

    fn vjp(
        &self,
        f: impl FnOnce(&EagerTensor) -> Result<EagerTensor>,
        x: &EagerTensor,
        ct: &EagerTensor,
    ) -> Result<(EagerTensor, EagerTensor)> {
        let c = Called::new(self, "vjp", f, x, &[ct])?;
        let g = c.pull("vjp", ct)?;
        Ok((c.value(), g))
    }

    // The map from a cotangent u to J^H u is linear, and its transpose is J: one more reverse sweep through the
    // first one, which nothing has to be saved for beyond what reverse mode saves anyway.
    fn jvp(
        &self,
        f: impl FnOnce(&EagerTensor) -> Result<EagerTensor>,
        x: &EagerTensor,
        t: &EagerTensor,
    ) -> Result<(EagerTensor, EagerTensor)> {
        fits("jvp", "tangent", t.var(), x.var())?;
        let c = Called::new(self, "jvp", f, x, &[t])?;
        let u = self.run(|| or_zero(None, c.y.var()))?.requires_grad()?;
        let pulled = pull("jvp", &c.y, &u, &[&c.x], true)?.remove(0);
        let dy = pull("jvp", &pulled, t, &[&u], c.keep)?.remove(0);
        Ok((c.value(), dy))
    }

    fn hvp(
        &self,
        f: impl FnOnce(&EagerTensor) -> Result<EagerTensor>,
        x: &EagerTensor,
        v: &EagerTensor,
    ) -> Result<EagerTensor> {
        fits("hvp", "vector", v.var(), x.var())?;
        let c = Called::new(self, "hvp", f, x, &[v])?;
        let g = pull("hvp", &c.y, &unit("hvp", &c.y)?, &[&c.x], true)?.remove(0);
        // The Hessian is symmetric, so its transpose times v is what is wanted.
        Ok(pull("hvp", &g, v, &[&c.x], c.keep)?.remove(0))
    }
}
