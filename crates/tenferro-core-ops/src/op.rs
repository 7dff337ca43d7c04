//! What an operation is.
//!
//! One `impl Primitive` states an operation's shape rule, its derivative (once, in forward mode) or its
//! decomposition, and how to transpose it where it is linear. [`Op`] is the object-safe face of that trait,
//! implemented for every primitive, wherever it is defined. There is no list of operations to add it to.

use crate::{
    aval::Aval,
    differentiate,
    digest::Digest,
    dim::{Dim, Extent, Fresh},
    kernels::Kernels,
    ops::Fused,
    simplify::{Rewrite, Term},
    var::Var,
};
use smallvec::SmallVec;
use std::{
    any::Any,
    fmt::Debug,
    hash::{Hash, Hasher},
    sync::Arc,
};
use tenferro_tensor::{Layout, Result};

/// Outputs of a call; nearly always one.
pub type Outs<T> = SmallVec<[T; 1]>;

/// The tangent or cotangent of a value; `None` is zero.
pub type Tangent = Option<Var>;

/// An input of a linear call: the unknown, of which only the shape is known, or a known value.
#[derive(Clone, Debug)]
pub enum Arg {
    /// The call is linear in this input.
    Linear(Aval<Dim>),
    /// A coefficient.
    Known(Var),
}

impl Arg {
    /// The coefficient; [`Var::Failed`] if the call was expected not to be linear in this input.
    pub fn known(&self) -> Var {
        match self {
            Arg::Known(v) => v.clone(),
            Arg::Linear(_) => Var::Failed(tenferro_tensor::Error::runtime_state(
                "transpose",
                "the call is not linear in its unknowns",
            )),
        }
    }

    /// Whether the call is linear in this input.
    pub fn is_linear(&self) -> bool {
        matches!(self, Arg::Linear(_))
    }

    /// Dtype and extents.
    pub fn aval(&self) -> Aval<Dim> {
        match self {
            Arg::Linear(a) => a.clone(),
            Arg::Known(v) => v.aval(),
        }
    }
}

/// Which values the reverse sweep reads, so that the others can be freed after the forward call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saves {
    /// The inputs.
    pub inputs: bool,
    /// The outputs.
    pub outputs: bool,
}

impl Saves {
    /// Inputs and outputs.
    pub const ALL: Saves = Saves { inputs: true, outputs: true };
    /// Inputs only.
    pub const INPUTS: Saves = Saves { inputs: true, outputs: false };
    /// Outputs only.
    pub const OUTPUTS: Saves = Saves { inputs: false, outputs: true };
    /// Shapes are enough.
    pub const NONE: Saves = Saves { inputs: false, outputs: false };
}

/// An operation. [`NAME`](Self::NAME) and [`infer`](Self::infer) are required; give a
/// [`decompose`](Self::decompose) or a derivative and kernels.
pub trait Primitive: Clone + Eq + Hash + Debug + Send + Sync + 'static {
    /// The name in errors, listings and coverage tables.
    const NAME: &'static str;
    /// The result is its input's buffer under another layout; see [`view`](Self::view).
    const VIEW: bool = false;
    /// Element `i` of the output depends on elements `i` of the inputs only, which all have its shape.
    const ELEMENTWISE: bool = false;

    /// The result, to the last bit, does not depend on the order of the inputs.
    const COMMUTES: bool = false;

    /// Dtypes and shapes of the outputs, once for concrete and symbolic extents.
    fn infer<D: Extent>(&self, x: &[&Aval<D>], fresh: Fresh) -> Result<Outs<Aval<D>>>;

    /// The operation in terms of others. Stands in for a missing kernel and derivative.
    fn decompose(&self, _x: &[Var]) -> Option<Outs<Var>> {
        None
    }

    /// Output tangents, written with ordinary operations on inputs `x` and outputs `y`, linear in `t`.
    fn jvp(&self, x: &[Var], _y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        differentiate::jvp_of_decomposition(self, x, t)
    }

    /// Input cotangents of a call that is linear in its [`Arg::Linear`] inputs: the adjoint for the inner
    /// product `Re sum(conj(a) b)`.
    fn transpose(&self, _ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let e = tenferro_tensor::Error::runtime_state(Self::NAME, "the operation is not linear");
        x.iter().map(|a| a.is_linear().then(|| Var::Failed(e.clone()))).collect()
    }

    /// A shortcut to the reverse rule; `None` derives it from [`jvp`](Self::jvp) and
    /// [`transpose`](Self::transpose). Cotangents are wanted for the inputs marked in `need`.
    fn vjp(&self, _ct: &[Tangent], _x: &[Var], _y: &[Var], _need: &[bool]) -> Option<Outs<Tangent>> {
        None
    }

    /// For a [`VIEW`](Self::VIEW) operation without symbolic parameters: the layout of the result over the
    /// buffer of its input, or `None` if `x` must be made contiguous first or is not fit for the operation, of
    /// which [`infer`](Self::infer) then tells why.
    fn view(&self, _x: &Layout) -> Option<Layout> {
        None
    }

    /// Parameters that may be symbolic.
    fn dims(&self) -> &[Dim] {
        &[]
    }

    /// The operation with other values of [`dims`](Self::dims).
    fn with_dims(&self, _dims: &[Dim]) -> Self {
        self.clone()
    }

    /// A better form of the call that makes `y` of `x`, if there is one: the same result to the last bit, signed
    /// zeros and infinities included (a NaN stays one, of whatever sign), and the same inputs refused. The new
    /// call is simplified in turn, so each must be better than the one before. An
    /// [`ELEMENTWISE`](Self::ELEMENTWISE) operation is only asked where all operands provably have the shape of
    /// the result.
    fn simplify<'a>(&self, _x: &[Term<'a>], _y: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
        None
    }

    /// Floating-point operations of the call that makes `y` of `x`, where there is a rule; by default one for every
    /// element if it is [`ELEMENTWISE`](Self::ELEMENTWISE).
    fn flops(&self, _x: &[&Aval<Dim>], y: &[Aval<Dim>]) -> Option<Dim> {
        Self::ELEMENTWISE.then(|| y[0].count())
    }

    /// Whether its shape rule, for a view that is traced from `x` to `y`, leaves nothing for a run to check, so that a
    /// rewrite may drop the call.
    fn always_fits(&self, _x: &Aval<Dim>, _y: &Aval<Dim>) -> bool {
        false
    }

    /// The operation as a chain of others, if it is one, for who looks at its steps.
    fn chain(&self) -> Option<&Fused> {
        None
    }

    /// Lists the kernels of this operation, for every backend its crate knows. Called at the first use on
    /// each backend.
    fn kernels(_table: &mut dyn Kernels) {}

    /// What the reverse sweep reads.
    fn saves(&self) -> Saves {
        Saves::ALL
    }
}

/// The object-safe face of [`Primitive`].
pub trait Op: Debug + Send + Sync + Any {
    /// [`Primitive::NAME`].
    fn name(&self) -> &'static str;
    /// [`Primitive::VIEW`].
    fn is_view(&self) -> bool;
    /// [`Primitive::ELEMENTWISE`].
    fn is_elementwise(&self) -> bool;
    /// [`Primitive::COMMUTES`].
    fn commutes(&self) -> bool;
    /// Whether a parameter is symbolic.
    fn is_symbolic(&self) -> bool;
    /// [`Primitive::infer`] on concrete extents.
    fn infer_now(&self, x: &[&Aval]) -> Result<Outs<Aval>>;
    /// [`Primitive::infer`] on symbolic extents.
    fn infer_later(&self, x: &[&Aval<Dim>], fresh: Fresh) -> Result<Outs<Aval<Dim>>>;
    /// [`Primitive::decompose`].
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>>;
    /// [`Primitive::jvp`].
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent>;
    /// [`Primitive::transpose`].
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent>;
    /// [`Primitive::vjp`].
    fn vjp(&self, ct: &[Tangent], x: &[Var], y: &[Var], need: &[bool]) -> Option<Outs<Tangent>>;
    /// [`Primitive::view`].
    fn view(&self, x: &Layout) -> Option<Layout>;
    /// [`Primitive::dims`].
    fn dims(&self) -> &[Dim];
    /// [`Primitive::with_dims`].
    fn with_dims(&self, dims: &[Dim]) -> Arc<dyn Op>;
    /// [`Primitive::simplify`].
    fn simplify<'a>(&self, x: &[Term<'a>], y: &[Aval<Dim>]) -> Option<Rewrite<'a>>;
    /// [`Primitive::flops`].
    fn flops(&self, x: &[&Aval<Dim>], y: &[Aval<Dim>]) -> Option<Dim>;
    /// [`Primitive::always_fits`].
    fn always_fits(&self, x: &Aval<Dim>, y: &Aval<Dim>) -> bool;
    /// [`Primitive::chain`].
    fn chain(&self) -> Option<&Fused>;
    /// [`Primitive::kernels`].
    fn install(&self, table: &mut dyn Kernels);
    /// [`Primitive::saves`].
    fn saves(&self) -> Saves;
    /// For downcasting to the primitive.
    fn as_any(&self) -> &dyn Any;
    /// Whether `other` is the same primitive with equal parameters.
    fn same(&self, other: &dyn Op) -> bool;
    /// Feeds the identity of the primitive and its parameters to `h`.
    fn digest(&self, h: &mut Digest);
    /// A shared copy.
    fn share(&self) -> Arc<dyn Op>;
    /// A copy to be kept.
    fn keep(&self) -> KeptOp;
}

/// An operation that is kept: without an allocation if it has no parameters.
#[derive(Debug)]
pub enum KeptOp {
    /// An operation without parameters.
    Unit(&'static dyn Op),
    /// Any other.
    Shared(Arc<dyn Op>),
}

impl std::ops::Deref for KeptOp {
    type Target = dyn Op;
    #[inline]
    fn deref(&self) -> &dyn Op {
        match self {
            KeptOp::Unit(op) => *op,
            KeptOp::Shared(op) => &**op,
        }
    }
}

impl<P: Primitive> Op for P {
    fn name(&self) -> &'static str {
        P::NAME
    }
    fn is_view(&self) -> bool {
        P::VIEW
    }
    fn is_elementwise(&self) -> bool {
        P::ELEMENTWISE
    }
    fn commutes(&self) -> bool {
        P::COMMUTES
    }
    fn is_symbolic(&self) -> bool {
        Primitive::dims(self).iter().any(|d| d.as_lit().is_none())
    }
    fn infer_now(&self, x: &[&Aval]) -> Result<Outs<Aval>> {
        self.infer(x, Fresh(0))
    }
    fn infer_later(&self, x: &[&Aval<Dim>], fresh: Fresh) -> Result<Outs<Aval<Dim>>> {
        self.infer(x, fresh)
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        Primitive::decompose(self, x)
    }
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        Primitive::jvp(self, x, y, t)
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        Primitive::transpose(self, ct, x)
    }
    fn vjp(&self, ct: &[Tangent], x: &[Var], y: &[Var], need: &[bool]) -> Option<Outs<Tangent>> {
        Primitive::vjp(self, ct, x, y, need)
    }
    fn view(&self, x: &Layout) -> Option<Layout> {
        Primitive::view(self, x)
    }
    fn dims(&self) -> &[Dim] {
        Primitive::dims(self)
    }
    fn with_dims(&self, dims: &[Dim]) -> Arc<dyn Op> {
        Arc::new(Primitive::with_dims(self, dims))
    }
    fn simplify<'a>(&self, x: &[Term<'a>], y: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
        Primitive::simplify(self, x, y)
    }
    fn flops(&self, x: &[&Aval<Dim>], y: &[Aval<Dim>]) -> Option<Dim> {
        Primitive::flops(self, x, y)
    }
    fn always_fits(&self, x: &Aval<Dim>, y: &Aval<Dim>) -> bool {
        Primitive::always_fits(self, x, y)
    }
    fn chain(&self) -> Option<&Fused> {
        Primitive::chain(self)
    }
    fn install(&self, table: &mut dyn Kernels) {
        P::kernels(table)
    }
    fn saves(&self) -> Saves {
        Primitive::saves(self)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn same(&self, other: &dyn Op) -> bool {
        other.as_any().downcast_ref::<P>() == Some(self)
    }
    fn digest(&self, h: &mut Digest) {
        std::any::TypeId::of::<P>().hash(h);
        self.hash(h);
    }
    fn share(&self) -> Arc<dyn Op> {
        Arc::new(self.clone())
    }
    fn keep(&self) -> KeptOp {
        if size_of::<P>() == 0 {
            // A box of nothing has no memory that could leak.
            return KeptOp::Unit(Box::leak(Box::new(self.clone())));
        }
        KeptOp::Shared(self.share())
    }
}

impl PartialEq for dyn Op {
    fn eq(&self, other: &dyn Op) -> bool {
        self.same(other)
    }
}
impl Eq for dyn Op {}
impl Hash for dyn Op {
    fn hash<H: Hasher>(&self, h: &mut H) {
        let mut d = Digest::default();
        self.digest(&mut d);
        h.write_u128(d.finish128());
    }
}

/// An `f64` parameter that compares and hashes by its bits.
#[derive(Clone, Copy, Debug)]
pub struct Real(pub f64);

impl PartialEq for Real {
    fn eq(&self, o: &Real) -> bool {
        self.0.to_bits() == o.0.to_bits()
    }
}
impl Eq for Real {}
impl Hash for Real {
    fn hash<H: Hasher>(&self, h: &mut H) {
        self.0.to_bits().hash(h)
    }
}
