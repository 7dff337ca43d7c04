//! The einsum as an operation.
//!
//! On present values, and on traced ones wherever nothing is left to decide, an einsum becomes the steps of
//! its plan at once. Where the order of contraction depends on extents that only a run knows, or where
//! extents are only taken to be equal, a trace records the einsum itself: each run then plans for its own
//! extents, and the derivative is an einsum, `x̄_i = einsum(.., ȳ, ..)` with the labels of operand and output
//! exchanged, which is planned in the same way.

use crate::cache::PlanCache;
use crate::lower::{lower, pulled};
use crate::notation::Notation;
use crate::order::Optimize;
use crate::plan::Plan;
use smallvec::{SmallVec, smallvec};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use tenferro_core_ops::ops::{NUMBERS, expect};
use tenferro_core_ops::{
    Arg, Aval, Dim, Extent, Extents, Fresh, Kernels, Now, Operand, Out, Outs, Primitive, Saves, Tangent, Var,
    apply1, into_tensor, with_backend,
};
use tenferro_cpu::CpuBackend;
use tenferro_tensor::{Error, Result, Tensor, Value};

const OP: &str = "einsum";

/// Plans of all einsums whose order depends on extents.
static PLANS: PlanCache = PlanCache::new();

/// The einsum of labels alone as an operation: its operands have one dtype and equal extents where they have
/// equal labels. What an [`Einsum`](crate::Einsum) becomes when it is applied. Clones are the same operation.
#[derive(Clone)]
pub struct EinsumOp(Arc<Inner>);

struct Inner {
    notation: Notation,
    optimize: Optimize,
    /// Operand and axis of the first and of another axis with the same label.
    equal: SmallVec<[[(usize, usize); 2]; 4]>,
    /// The plan, if it is the same at all extents.
    fixed: Option<Arc<Plan>>,
}

impl EinsumOp {
    /// The einsum of a notation, with the order of contraction found in this way.
    ///
    /// # Errors
    /// `Argument` for an [`Optimize::Path`] that is none for these operands.
    pub fn new(notation: Notation, optimize: Optimize) -> Result<Self> {
        let mut seen: SmallVec<[(u32, (usize, usize)); 8]> = SmallVec::new();
        let mut equal = SmallVec::new();
        for (operand, labels) in notation.inputs().iter().enumerate() {
            for (axis, label) in labels.iter().enumerate() {
                match seen.iter().find(|(other, _)| other == label) {
                    Some((_, first)) => equal.push([*first, (operand, axis)]),
                    None => seen.push((*label, (operand, axis))),
                }
            }
        }
        let one_order = match &optimize {
            Optimize::Path(path) => path.iter().all(|at| at.as_slice().len() <= 2),
            _ => notation.inputs().len() <= 2,
        };
        let fixed = match one_order {
            true => Some(Arc::new(Plan::new(&notation, |_| 1.0, &optimize)?)),
            false => None,
        };
        Ok(EinsumOp(Arc::new(Inner { notation, optimize, equal, fixed })))
    }

    /// The labels.
    pub fn notation(&self) -> &Notation {
        &self.0.notation
    }

    /// The result on present values of these shapes, if the plan is the same at all extents and they fit: the
    /// path of small tensors, without a look at extents but for the check.
    pub(crate) fn at_once(&self, x: &[&Var], shapes: &[&[usize]]) -> Option<Var> {
        let plan = self.0.fixed.as_ref()?;
        self.fits(shapes).then(|| lower(plan, x))
    }

    /// The einsum of operands of one dtype.
    pub(crate) fn apply(&self, x: &[&Var]) -> Var {
        match self.plan_of(x) {
            Ok(Some(plan)) => lower(&plan, x),
            Ok(None) => apply1(self, x),
            Err(e) => Var::Failed(e),
        }
    }

    /// Whether the shapes fit; [`Notation::extents`] says why they do not.
    fn fits(&self, shapes: &[&[usize]]) -> bool {
        let inputs = self.0.notation.inputs();
        shapes.len() == inputs.len()
            && shapes.iter().zip(inputs).all(|(shape, labels)| shape.len() == labels.len())
            && self.0.equal.iter().all(|[(i, a), (j, b)]| shapes[*i][*a] == shapes[*j][*b])
    }

    /// The plan for operands whose extents are known, or do not matter; `None` if a run has something to
    /// decide.
    fn plan_of(&self, x: &[&Var]) -> Result<Option<Arc<Plan>>> {
        if let Some(shapes) = present(x) {
            return self.plan_at(&shapes).map(Some);
        }
        let shapes: SmallVec<[Extents<Dim>; 4]> = x.iter().map(|v| v.shape()).collect();
        let shapes: SmallVec<[&[Dim]; 4]> = shapes.iter().map(|shape| &shape[..]).collect();
        let mut proven = true;
        self.0.notation.extents_by(&shapes, |a, b| {
            proven &= a == b;
            Ok(Dim::equal(self.0.notation.op(), "extent", a, b).is_ok())
        })?;
        if let (Some(plan), true) = (&self.0.fixed, proven) {
            return Ok(Some(plan.clone()));
        }
        let literal: Option<SmallVec<[Extents; 4]>> =
            shapes.iter().map(|shape| shape.iter().map(Dim::as_lit).collect()).collect();
        let Some(literal) = literal else { return Ok(None) };
        self.plan_at(&literal.iter().map(|shape| &shape[..]).collect::<SmallVec<[&[usize]; 4]>>()).map(Some)
    }

    /// The plan with what its steps cost at these extents.
    pub(crate) fn costed_plan(&self, shapes: &[&[usize]]) -> Result<Arc<Plan>> {
        PLANS.plan(&self.0.notation, shapes, &self.0.optimize)
    }

    pub(crate) fn plan_at(&self, shapes: &[&[usize]]) -> Result<Arc<Plan>> {
        match &self.0.fixed {
            Some(plan) if self.fits(shapes) => Ok(plan.clone()),
            // Where the one plan does not fit, the shapes are wrong, and planning says how.
            _ => PLANS.plan(&self.0.notation, shapes, &self.0.optimize),
        }
    }

    /// A plan for extents of which some are not known.
    fn typical_plan(&self, x: &[Var]) -> Result<Arc<Plan>> {
        if let Some(plan) = &self.0.fixed {
            return Ok(plan.clone());
        }
        let shapes: SmallVec<[Extents<Dim>; 4]> = x.iter().map(Var::shape).collect();
        let shapes: SmallVec<[&[Dim]; 4]> = shapes.iter().map(|shape| &shape[..]).collect();
        let extents = self.0.notation.extents_by(&shapes, |_, _| Ok(true))?;
        let weight = |label| extents.get(label).and_then(Dim::as_lit).map_or(TYPICAL, |n| n as f64);
        Ok(Arc::new(Plan::new(&self.0.notation, weight, &self.0.optimize)?))
    }

    /// The cotangent of operand `i`, of extents `shape`, from that of the output, `ct`, which takes the
    /// operand's place among `x`.
    fn pulled(&self, i: usize, shape: &[Dim], ct: &Var, mut x: SmallVec<[Var; 4]>) -> Result<Var> {
        let transpose = self.0.notation.transpose(i).expect("there is an operand i");
        // The best order of this einsum is not that one's.
        let optimize = match &self.0.optimize {
            Optimize::Path(_) => Optimize::Auto,
            other => other.clone(),
        };
        let op = EinsumOp::new(transpose.notation.clone(), optimize)?;
        x[i] = ct.clone();
        let y = op.apply(&x.iter().collect::<SmallVec<[&Var; 4]>>());
        Ok(pulled(y, &transpose, shape))
    }
}

/// The weight of an extent that is not known, where a plan is wanted nevertheless.
const TYPICAL: f64 = 32.0;

/// The shapes of values that are all present.
pub(crate) fn present<'a>(x: &[&'a Var]) -> Option<SmallVec<[&'a [usize]; 4]>> {
    let shape = |v: &&'a Var| match v {
        Var::Now(now) => Some(now.value().shape()),
        _ => None,
    };
    x.iter().map(shape).collect()
}

impl Primitive for EinsumOp {
    const NAME: &'static str = OP;

    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        let op = self.0.notation.op();
        let shapes: SmallVec<[&[D]; 4]> = x.iter().map(|a| &a.shape[..]).collect();
        let equal = |a: &D, b: &D| Ok(D::equal(op, "extent", a, b).is_ok());
        let extents = self.0.notation.extents_by(&shapes, equal)?;
        expect(op, x, x.len(), NUMBERS)?;
        for (i, a) in x.iter().enumerate() {
            if a.dtype != x[0].dtype {
                return Err(Error::dtype(
                    op,
                    format!("operand {i}"),
                    a.dtype,
                    format!("{} as operand 0", x[0].dtype),
                ));
            }
        }
        let shape: Extents<D> = extents.of(self.0.notation.output());
        Ok(smallvec![Aval { dtype: x[0].dtype, shape }])
    }

    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let refs: SmallVec<[&Var; 4]> = x.iter().collect();
        let plan = self.plan_of(&refs).and_then(|plan| plan.map_or_else(|| self.typical_plan(x), Ok));
        Some(smallvec![plan.map(|plan| lower(&plan, &refs)).into()])
    }

    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let with = |(i, t): (usize, &Tangent)| {
            let t = t.as_ref()?;
            let x: SmallVec<[&Var; 4]> =
                x.iter().enumerate().map(|(j, x)| if i == j { t } else { x }).collect();
            Some(self.apply(&x))
        };
        smallvec![t.iter().enumerate().filter_map(with).reduce(|a, b| &a + &b)]
    }

    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let Some(ct) = &ct[0] else { return smallvec![None; x.len()] };
        let known: SmallVec<[Var; 4]> =
            x.iter().map(|a| if a.is_linear() { ct.clone() } else { a.known().conj() }).collect();
        let pulled = |(i, a): (usize, &Arg)| {
            a.is_linear().then(|| Var::from(self.pulled(i, &a.aval().shape, ct, known.clone())))
        };
        x.iter().enumerate().map(pulled).collect()
    }

    fn vjp(&self, ct: &[Tangent], x: &[Var], _: &[Var], need: &[bool]) -> Option<Outs<Tangent>> {
        let ct = ct[0].as_ref()?;
        let conj: SmallVec<[Var; 4]> = x.iter().map(Var::conj).collect();
        let pulled =
            |(i, x): (usize, &Var)| need[i].then(|| Var::from(self.pulled(i, &x.shape(), ct, conj.clone())));
        Some(x.iter().enumerate().map(pulled).collect())
    }

    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(NUMBERS, planned);
    }

    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
}

/// Plans for the extents of this run and carries the plan out.
fn planned(
    op: &EinsumOp,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    _: &[Aval],
    _: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let value = |x: &mut Operand<'_>| match x.take() {
        Some(own) => Value::new(own),
        // SAFETY: dropped before this kernel returns.
        None => unsafe { Value::borrowed(x.read()) },
    };
    let x: SmallVec<[Var; 4]> = x.iter_mut().map(|x| Var::Now(Now::new(value(x)))).collect();
    let refs: SmallVec<[&Var; 4]> = x.iter().collect();
    let shapes: SmallVec<[&[usize]; 4]> =
        refs.iter().map(|v| v.value().map(Value::shape)).collect::<Result<_>>()?;
    let plan = op.plan_at(&shapes)?;
    let y = with_backend(cpu, || lower(&plan, &refs)).into_value()?;
    Ok(smallvec![into_tensor(cpu, y)?])
}

impl PartialEq for EinsumOp {
    fn eq(&self, other: &EinsumOp) -> bool {
        let (a, b) = (&self.0, &other.0);
        Arc::ptr_eq(a, b) || (a.notation == b.notation && a.optimize == b.optimize)
    }
}

impl Eq for EinsumOp {}

impl Hash for EinsumOp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // All labels: calls with equal hashes are taken to be equal, for which the digest is too short.
        let notation = &self.0.notation;
        (notation.inputs(), notation.output(), &self.0.optimize).hash(state);
    }
}

impl fmt::Display for EinsumOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.notation.fmt(f)
    }
}

impl fmt::Debug for EinsumOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EinsumOp({}, {:?})", self.0.notation, self.0.optimize)
    }
}
