//! What the suite knows of an operation.

use crate::{array::Array, run::Calls};
use std::{fmt::Debug, sync::Arc};
use tenferro_core_ops::{Dim, Var};
use tenferro_cpu::CpuBackend;
use tenferro_runtime::{EagerRuntime, EagerTensor, TracedTensor, tier::IntoVars};
use tenferro_tensor::{DType, Error, Result, Scalar, Tensor, TypedTensor};

/// An operation: samples with an independent reference, errors, and how often it is differentiable.
#[derive(Default)]
pub struct OpInfo {
    /// The operation, as tests are named.
    pub name: &'static str,
    /// Inputs that every property is checked on.
    pub samples: Vec<Sample>,
    /// Calls with symbolic extents.
    pub symbolic: Vec<Symbolic>,
    /// Derivatives known in closed form, for points where differences say nothing: ties, kinks, zeros.
    pub closed: Vec<Closed>,
    /// Bad inputs and what their errors say.
    pub errors: Vec<Failure>,
    /// Derivatives that are checked: 0 for an operation without one (its tangent is zero), 2 for any order.
    pub order: u32,
    /// The highest derivative that the operation has, if that is not any.
    pub highest: Option<u32>,
    /// Where values coincide, only the first derivative is right.
    pub first_at_multiplets: bool,
    /// Relative to the reference, in units of the rounding error of the dtype.
    pub tolerance: f64,
    /// Inputs broadcast against each other.
    pub broadcasts: bool,
    /// Inputs of different dtypes are promoted.
    pub promotes: bool,
    /// Infinite inputs are errors, or seen in the results, as NaN is; elsewhere `1 / x` and the like make finite
    /// results of them.
    pub infinite: bool,
    /// Loops that do not apply, and why.
    pub skips: Vec<(&'static str, &'static str)>,
}

/// Expected outputs from inputs.
pub type Reference = Arc<dyn Fn(&[Array]) -> Vec<Array> + Send + Sync>;

/// What is compared of outputs, from inputs and outputs.
pub type Observe = Arc<dyn Fn(&[Array], &[Array]) -> Vec<Array> + Send + Sync>;

/// Inputs of a call.
pub struct Sample {
    /// Parameters, dtypes and shapes.
    pub label: String,
    /// The inputs.
    pub inputs: Vec<Array>,
    /// The operation with its parameters.
    pub call: Calls,
    /// The expected outputs, by other code.
    pub reference: Reference,
    /// What the reference gives instead of the outputs, where these are free up to a choice, as singular
    /// vectors of a multiplet are up to a rotation.
    pub observe: Option<Observe>,
    /// Differentiable at these inputs.
    pub smooth: bool,
    /// The same call by the methods of the tiers.
    pub surface: Option<SurfaceCalls>,
    /// For each input, why its elements have no say in the results, if they have none.
    pub overlooks: Vec<Option<&'static str>>,
}

impl Sample {
    /// Whether the inputs are of double precision, so that differences can be taken.
    pub(crate) fn double(&self) -> bool {
        self.inputs.iter().all(|a| !matches!(a.dtype, DType::F32 | DType::C32))
    }

    /// What the reference gives, of outputs `y` at inputs `x`.
    pub(crate) fn observed(&self, x: &[Array], y: Vec<Array>) -> Vec<Array> {
        match &self.observe {
            Some(observe) => observe(x, &y),
            None => y,
        }
    }
}

/// A call on inputs with symbolic extents.
pub struct Symbolic {
    /// Parameters, dtypes and shapes.
    pub label: String,
    /// Dtype and extents of the inputs.
    pub inputs: Vec<(DType, Vec<Dim>)>,
    /// The operation with its parameters.
    pub call: Calls,
}

/// A cotangent and what it is pulled back to.
pub struct Closed {
    /// Parameters, dtypes and shapes.
    pub label: String,
    /// The inputs.
    pub inputs: Vec<Array>,
    /// The operation with its parameters.
    pub call: Calls,
    /// Cotangent of the output.
    pub ct: Array,
    /// Cotangents of the differentiable inputs.
    pub expected: Vec<Array>,
}

/// A call that must fail.
pub struct Failure {
    /// Parameters, dtypes and shapes.
    pub label: String,
    /// The inputs.
    pub inputs: Vec<Array>,
    /// The operation with its parameters.
    pub call: Calls,
    /// The operation that the error names.
    pub op: &'static str,
    /// The operation that it names when a program meets it as it runs: a part of the other one has no other
    /// name there.
    pub part: &'static str,
    /// What the message contains: what was got, what was expected.
    pub parts: Vec<&'static str>,
}

/// A method with parameters `P` that is given a backend.
pub type OnBackend<P> = fn(&P, &[Tensor], &mut CpuBackend) -> Result<Vec<Tensor>>;

/// One call as methods of dynamic, typed, eager and traced tensors.
pub struct Surface<P> {
    /// On a backend.
    pub direct: OnBackend<P>,
    /// On a backend, of the element type of the operands, or of the parameters if there are none.
    pub typed: OnBackend<P>,
    /// On an eager runtime.
    pub eager: fn(&P, &EagerRuntime, &[EagerTensor]) -> Result<Vec<EagerTensor>>,
    /// Recorded.
    pub traced: fn(&P, &[TracedTensor]) -> Result<Vec<TracedTensor>>,
}

impl<P> Clone for Surface<P> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<P> Copy for Surface<P> {}

type Direct = Arc<dyn Fn(&[Tensor], &mut CpuBackend) -> Result<Vec<Tensor>> + Send + Sync>;
type Eager = Arc<dyn Fn(&EagerRuntime, &[EagerTensor]) -> Result<Vec<EagerTensor>> + Send + Sync>;
type Traced = Arc<dyn Fn(&[TracedTensor]) -> Result<Vec<TracedTensor>> + Send + Sync>;

/// A [`Surface`] with its parameters.
#[derive(Clone)]
pub struct SurfaceCalls {
    /// On a backend.
    pub direct: Direct,
    /// On a backend, of the element type of the operands, or of the parameters if there are none.
    pub typed: Direct,
    /// On an eager runtime.
    pub eager: Eager,
    /// Recorded.
    pub traced: Traced,
}

/// `surface!(P; name(1, 2) |p| args..)`: the method `name` of input 0 with inputs 1 and 2 and arguments from
/// `p`; `surface!(P; Direct, Typed; name(..) ..)`: that of other traits than the core's.
macro_rules! surface {
    ($P:ty; $Direct:ident, $Typed:ident; $name:ident($($i:literal),*) $(|$p:ident| $($arg:expr),+)?) => {
        $crate::info::Surface::<$P> {
            direct: |_p, x, backend| {
                $(let $p = _p;)?
                $crate::info::listed($Direct::$name(&x[0], $(&x[$i],)* $($($arg,)+)? backend))
            },
            typed: |_p, x, backend| {
                $(let $p = _p;)?
                tenferro_tensor::dispatch!(x[0].dtype(), T => $crate::info::listed($Typed::<T>::$name(
                    $crate::info::typed(&x[0])?, $($crate::info::typed(&x[$i])?,)* $($($arg,)+)? backend
                )))
            },
            eager: |_p, _, x| {
                $(let $p = _p;)?
                $crate::info::listed(x[0].$name($(&x[$i],)* $($($arg),+)?))
            },
            traced: |_p, x| {
                $(let $p = _p;)?
                $crate::info::listed(x[0].$name($(&x[$i],)* $($($arg),+)?))
            },
        }
    };
    ($P:ty; $name:ident $($call:tt)*) => {
        surface!($P; TensorOps, TypedTensorOps; $name $($call)*)
    };
}
pub(crate) use surface;

/// The tensor as the type a method takes.
pub(crate) fn typed<T: Scalar>(t: &Tensor) -> Result<&TypedTensor<T>> {
    t.as_typed().ok_or_else(|| Error::dtype("surfaces", "operand", t.dtype(), T::DTYPE))
}

/// What a method gives: one tensor or several.
pub(crate) trait Results<X> {
    /// Appends them.
    fn list(self, all: &mut Vec<X>);
}

impl Results<Tensor> for Tensor {
    fn list(self, all: &mut Vec<Tensor>) {
        all.push(self);
    }
}

impl<T: Scalar> Results<Tensor> for TypedTensor<T> {
    fn list(self, all: &mut Vec<Tensor>) {
        all.push(self.into_tensor());
    }
}

impl Results<EagerTensor> for EagerTensor {
    fn list(self, all: &mut Vec<EagerTensor>) {
        all.push(self);
    }
}

impl Results<TracedTensor> for TracedTensor {
    fn list(self, all: &mut Vec<TracedTensor>) {
        all.push(self);
    }
}

macro_rules! several_results {
    ($($R:ident)*) => {
        impl<X, $($R: Results<X>),*> Results<X> for ($($R,)*) {
            #[allow(non_snake_case)]
            fn list(self, all: &mut Vec<X>) {
                let ($($R,)*) = self;
                $($R.list(all);)*
            }
        }
    };
}
several_results!(A B);
several_results!(A B C);
several_results!(A B C D);

/// The results in order.
pub(crate) fn listed<X>(y: Result<impl Results<X>>) -> Result<Vec<X>> {
    let mut all = Vec::new();
    y?.list(&mut all);
    Ok(all)
}

/// What a reference gives: one array or several.
pub trait Outputs {
    /// All of them.
    fn outputs(self) -> Vec<Array>;
}

impl Outputs for Array {
    fn outputs(self) -> Vec<Array> {
        vec![self]
    }
}

impl Outputs for Vec<Array> {
    fn outputs(self) -> Vec<Array> {
        self
    }
}

/// An operation with parameters `P`, while its samples are listed.
pub(crate) struct Listing<P, V, A> {
    info: OpInfo,
    call: fn(&P, &[Var]) -> V,
    reference: fn(&P, &[Array]) -> A,
    observe: Option<ObserveWith<P>>,
    surface: Option<Surface<P>>,
    overlooks: Option<(OverlooksOf<P>, &'static str)>,
}

type OverlooksOf<P> = fn(&P, &[Array], usize) -> bool;
type ObserveWith<P> = fn(&P, &[Array], &[Array]) -> Vec<Array>;

/// Starts the listing of an operation.
pub(crate) fn op<P, V: IntoVars, A: Outputs>(
    name: &'static str,
    call: fn(&P, &[Var]) -> V,
    reference: fn(&P, &[Array]) -> A,
) -> Listing<P, V, A> {
    let info = OpInfo { name, order: 2, tolerance: 8.0, ..OpInfo::default() };
    Listing { info, call, reference, observe: None, surface: None, overlooks: None }
}

impl<P, V, A> Listing<P, V, A>
where
    P: Clone + Debug + Send + Sync + 'static,
    V: IntoVars + 'static,
    A: Outputs + 'static,
{
    fn calls(&self, p: &P) -> Calls {
        let (call, p) = (self.call, p.clone());
        Arc::new(move |x| call(&p, x).into_vars().into_vec())
    }

    fn listed(mut self, p: P, inputs: Vec<Array>, smooth: bool) -> Self {
        let call = self.calls(&p);
        let label = label(&p, &inputs);
        let surface = self.surface.map(|s| {
            let [a, b, c, d] = [(); 4].map(|()| p.clone());
            SurfaceCalls {
                direct: Arc::new(move |x, backend| (s.direct)(&a, x, backend)),
                typed: Arc::new(move |x, backend| (s.typed)(&b, x, backend)),
                eager: Arc::new(move |runtime, x| (s.eager)(&c, runtime, x)),
                traced: Arc::new(move |x| (s.traced)(&d, x)),
            }
        });
        let why = |i| self.overlooks.filter(|(of, _)| of(&p, &inputs, i)).map(|(_, why)| why);
        let overlooks = (0..inputs.len()).map(why).collect();
        let q = p.clone();
        let observe = self.observe.map(|f| -> Observe { Arc::new(move |x, y| f(&q, x, y)) });
        let f = self.reference;
        let reference = Arc::new(move |x: &[Array]| f(&p, x).outputs());
        let sample = Sample { label, inputs, call, reference, observe, smooth, surface, overlooks };
        self.info.samples.push(sample);
        self
    }

    /// Differentiable inputs.
    pub(crate) fn sample(self, p: P, inputs: Vec<Array>) -> Self {
        self.listed(p, inputs, true)
    }

    /// Inputs where differences do not approach a derivative.
    pub(crate) fn kink(self, p: P, inputs: Vec<Array>) -> Self {
        self.listed(p, inputs, false)
    }

    /// Inputs with known outputs.
    pub(crate) fn value(mut self, p: P, inputs: Vec<Array>, expected: Array) -> Self {
        self = self.listed(p, inputs, false);
        let last = self.info.samples.last_mut().expect("pushed above");
        last.reference = Arc::new(move |_| vec![expected.clone()]);
        last.label = format!("known value of {}", last.label);
        self
    }

    /// A call on f64 inputs whose extents are the symbols `n`, `m`, `k`, or numbers.
    pub(crate) fn symbolic(self, p: P, shapes: &[&[&str]]) -> Self {
        let inputs: Vec<(DType, &[&str])> = shapes.iter().map(|&s| (DType::F64, s)).collect();
        self.symbolic_of(p, &inputs)
    }

    /// As [`symbolic`](Self::symbolic), of any dtypes.
    pub(crate) fn symbolic_of(mut self, p: P, inputs: &[(DType, &[&str])]) -> Self {
        let call = self.calls(&p);
        self.info.symbolic.push(symbolic(format!("{p:?}"), inputs, call));
        self
    }

    /// A symbolic call that takes its parameters from the extents of its inputs.
    pub(crate) fn symbolic_call(mut self, inputs: &[(DType, &[&str])], call: fn(&[Var]) -> Var) -> Self {
        self.info.symbolic.push(symbolic(
            "symbolic parameters".into(),
            inputs,
            Arc::new(move |x| vec![call(x)]),
        ));
        self
    }

    /// The cotangents of the differentiable inputs for the cotangent `ct`.
    pub(crate) fn closed(mut self, p: P, inputs: Vec<Array>, ct: Array, expected: Vec<Array>) -> Self {
        let (call, label) = (self.calls(&p), label(&p, &inputs));
        self.info.closed.push(Closed { label, inputs, call, ct, expected });
        self
    }

    /// A call that fails with an error of operation `op` that says `parts`.
    pub(crate) fn error_of(self, op: &'static str, p: P, inputs: Vec<Array>, parts: &[&'static str]) -> Self {
        self.error_at([op, op], p, inputs, parts)
    }

    /// A call that fails because of elements, with an error of the first operation; of the second one, a part
    /// of the first, when a program runs.
    pub(crate) fn error_at(
        mut self,
        [op, part]: [&'static str; 2],
        p: P,
        inputs: Vec<Array>,
        parts: &[&'static str],
    ) -> Self {
        let (call, label) = (self.calls(&p), label(&p, &inputs));
        self.info.errors.push(Failure { label, inputs, call, op, part, parts: parts.to_vec() });
        self
    }

    /// A call that fails with an error of this operation that says `parts`.
    pub(crate) fn error(self, p: P, inputs: Vec<Array>, parts: &[&'static str]) -> Self {
        let name = self.info.name;
        self.error_of(name, p, inputs, parts)
    }

    /// The methods of the tiers, for the samples listed after this.
    pub(crate) fn surface(mut self, s: Surface<P>) -> Self {
        self.surface = Some(s);
        self
    }

    /// What the reference gives, from parameters, inputs and outputs, for the samples listed after this; see
    /// [`Sample::observe`].
    pub(crate) fn observe(mut self, f: ObserveWith<P>) -> Self {
        self.observe = Some(f);
        self
    }

    /// Whether the elements of an input have no say in the results, and why, for the samples listed after this;
    /// see [`Sample::overlooks`].
    pub(crate) fn overlooks(mut self, of: OverlooksOf<P>, why: &'static str) -> Self {
        self.overlooks = Some((of, why));
        self
    }

    /// See [`OpInfo::order`].
    pub(crate) fn order(mut self, order: u32) -> Self {
        self.info.order = order;
        self
    }

    /// See [`OpInfo::tolerance`].
    pub(crate) fn tolerance(mut self, tolerance: f64) -> Self {
        self.info.tolerance = tolerance;
        self
    }

    /// Inputs broadcast against each other and are promoted.
    pub(crate) fn broadcasts(mut self) -> Self {
        self.info.broadcasts = true;
        self.promotes()
    }

    /// Inputs of different dtypes are promoted.
    pub(crate) fn promotes(mut self) -> Self {
        self.info.promotes = true;
        self
    }

    /// Derivatives above this one are errors.
    pub(crate) fn highest(mut self, order: u32) -> Self {
        self.info.highest = Some(order);
        self
    }

    /// See [`OpInfo::first_at_multiplets`].
    pub(crate) fn first_at_multiplets(mut self) -> Self {
        self.info.first_at_multiplets = true;
        self
    }

    /// A loop that does not apply, and why.
    pub(crate) fn skip(mut self, name: &'static str, why: &'static str) -> Self {
        self.info.skips.push((name, why));
        self
    }

    /// Changes the listing by `f`, as in a loop over dtypes.
    pub(crate) fn each<X>(self, items: impl IntoIterator<Item = X>, f: impl Fn(Self, X) -> Self) -> Self {
        items.into_iter().fold(self, f)
    }

    /// The finished listing.
    pub(crate) fn done(self) -> OpInfo {
        self.info
    }
}

fn label<P: Debug>(p: &P, inputs: &[Array]) -> String {
    let avals: Vec<String> = inputs.iter().map(|a| format!("{}{:?}", a.dtype, a.shape)).collect();
    format!("{p:?} on {}", avals.join(", "))
}

fn symbolic(label: String, inputs: &[(DType, &[&str])], call: Calls) -> Symbolic {
    let dim = |s: &&str| s.parse().map_or_else(|_| Dim::symbol(s), Dim::Lit);
    let of = |&(dtype, shape): &(DType, &[&str])| (dtype, shape.iter().map(dim).collect());
    let shapes: Vec<&[&str]> = inputs.iter().map(|x| x.1).collect();
    Symbolic { label: format!("{label} on {shapes:?}"), inputs: inputs.iter().map(of).collect(), call }
}
