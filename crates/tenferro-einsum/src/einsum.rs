//! The einsum as an operation.
//!
//! On present values, and on traced ones wherever nothing is left to decide, an einsum becomes the steps of
//! its plan at once. Where the order of contraction depends on extents that only a run knows, or where
//! extents are only taken to be equal, a trace records the einsum itself: each run then plans for its own
//! extents, and the derivative is an einsum, `x̄_i = einsum(.., ȳ, ..)` with the labels of operand and output
//! exchanged, which is planned in the same way.

use crate::cache::{PlanCache, Recent, hash_bytes};
use crate::lower::{embedded, lower};
use crate::notation::{Fold, Notation};
use crate::path::Optimize;
use crate::plan::Plan;
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use tenferro_core_ops::ops::{NUMBERS, expect};
use tenferro_core_ops::{
    Arg, Aval, Dim, Extent, Extents, Fresh, Kernels, Now, Operand, Out, Outs, Primitive, Saves, Tangent, Var,
    apply1, into_tensor, with_backend,
};
use tenferro_cpu::CpuBackend;
use tenferro_tensor::{DType, Error, Result, Tensor, Value};

const OP: &str = "einsum";

/// Plans of all einsums whose order depends on extents.
static PLANS: PlanCache = PlanCache::new();

thread_local! {
    static TEXTS: RefCell<Recent<Box<str>, Einsum>> = const { RefCell::new(Recent::new()) };
    static LABELS: RefCell<Recent<(), Einsum>> = const { RefCell::new(Recent::new()) };
}

/// An einsum to apply to operands, `y[out] = Σ Π_j x_j[in_j]`: a [`Notation`], and how the order of
/// contraction is found. Clones are the same einsum.
///
/// ```
/// use tenferro_cpu::CpuBackend;
/// use tenferro_einsum::{Einsum, Optimize, prelude::*};
/// use tenferro_runtime::TypedTensor;
///
/// let chain = Einsum::parse("ij,jk,kl->il")?;
/// let shapes: [&[usize]; 3] = [&[2, 100], &[100, 100], &[100, 3]];
/// let plan = chain.plan(&shapes)?;
/// assert_eq!(plan.path(), [(0, 1), (0, 1)]);
/// assert_eq!(plan.flops(), 2.0 * (2.0 * 100.0 * 100.0 + 2.0 * 100.0 * 3.0));
/// println!("{plan}");
///
/// // Always this order, which is not looked for again.
/// let fixed = chain.optimized(Optimize::Path(plan.path().to_vec()))?;
/// let x = shapes.map(|shape| TypedTensor::full(shape, 1.0));
/// let [a, b, c] = [&x[0], &x[1], &x[2]].map(|x| x.as_ref().unwrap());
/// let y = TypedTensor::einsum(&fixed, &[a, b, c], &mut CpuBackend::new())?;
/// assert_eq!(y.as_slice()?, [10_000.0; 6]);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct Einsum(Arc<Inner>);

struct Inner {
    notation: Notation,
    optimize: Optimize,
    /// Operand and axis of the first and of another axis with the same label.
    equal: SmallVec<[[(usize, usize); 2]; 4]>,
    /// The plan, if it is the same at all extents.
    fixed: Option<Arc<Plan>>,
}

impl Einsum {
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
        let one_order = notation.inputs().len() <= 2 || matches!(optimize, Optimize::Path(_));
        let fixed = match one_order {
            true => Some(Arc::new(Plan::new(&notation, |_| 1.0, &optimize)?)),
            false => None,
        };
        Ok(Einsum(Arc::new(Inner { notation, optimize, equal, fixed })))
    }

    /// The einsum that `text` such as `"ij,jk->ik"` stands for; see [`Notation::parse`]. Texts are
    /// remembered, so that one that comes again is not parsed again.
    ///
    /// # Errors
    /// Those of [`Notation::parse`].
    pub fn parse(text: &str) -> Result<Self> {
        let hash = hash_bytes(text.as_bytes());
        if let Some(known) = TEXTS.with_borrow(|recent| recent.get(hash, |key| **key == *text)) {
            return Ok(known);
        }
        let einsum = Einsum::new(Notation::parse(text)?, Optimize::Auto)?;
        TEXTS.with_borrow_mut(|recent| recent.put(hash, text.into(), einsum.clone()));
        Ok(einsum)
    }

    /// The einsum of operands and output with these labels; see [`Notation::new`]. Remembered as texts are.
    ///
    /// # Errors
    /// Those of [`Notation::new`].
    pub fn labels(inputs: &[&[u32]], output: &[u32]) -> Result<Self> {
        let mut fold = Fold::default();
        for labels in inputs.iter().chain([&output]) {
            fold.add(labels.len() as u64);
            labels.iter().for_each(|label| fold.add(u64::from(*label)));
        }
        let known = LABELS.with_borrow(|recent| recent.get(fold.0, |_| true));
        if let Some(known) = known
            && known.notation().output() == output
            && known.notation().inputs().iter().map(|labels| &labels[..]).eq(inputs.iter().copied())
        {
            return Ok(known);
        }
        let einsum = Einsum::new(Notation::new(inputs, output)?, Optimize::Auto)?;
        LABELS.with_borrow_mut(|recent| recent.put(fold.0, (), einsum.clone()));
        Ok(einsum)
    }

    /// The same einsum with the order of contraction found in another way.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn optimized(&self, optimize: Optimize) -> Result<Self> {
        Einsum::new(self.0.notation.clone(), optimize)
    }

    /// The labels.
    pub fn notation(&self) -> &Notation {
        &self.0.notation
    }

    /// How the order of contraction is found.
    pub fn optimize(&self) -> &Optimize {
        &self.0.optimize
    }

    /// How operands of these shapes are contracted: the steps, their flops, the largest intermediate.
    ///
    /// # Errors
    /// Shapes that do not fit the notation, see [`Notation::extents`]; more operands than
    /// [`Optimize::Optimal`] takes.
    pub fn plan(&self, shapes: &[&[usize]]) -> Result<Arc<Plan>> {
        PLANS.plan(&self.0.notation, shapes, &self.0.optimize)
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
            Ok(Dim::equal(OP, "extent", a, b).is_ok())
        })?;
        if let (Some(plan), true) = (&self.0.fixed, proven) {
            return Ok(Some(plan.clone()));
        }
        let literal: Option<SmallVec<[Extents; 4]>> =
            shapes.iter().map(|shape| shape.iter().map(Dim::as_lit).collect()).collect();
        let Some(literal) = literal else { return Ok(None) };
        self.plan_at(&literal.iter().map(|shape| &shape[..]).collect::<SmallVec<[&[usize]; 4]>>()).map(Some)
    }

    fn plan_at(&self, shapes: &[&[usize]]) -> Result<Arc<Plan>> {
        match &self.0.fixed {
            Some(plan) if self.fits(shapes) => Ok(plan.clone()),
            // Where the one plan does not fit, the shapes are wrong, and planning says how.
            _ => self.plan(shapes),
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
        let op = Einsum::new(transpose.notation.clone(), optimize)?;
        x[i] = ct.clone();
        let y = einsum(&op, &x.iter().collect::<SmallVec<[&Var; 4]>>());
        Ok(embedded(y, &transpose, shape))
    }
}

/// The weight of an extent that is not known, where a plan is wanted nevertheless.
const TYPICAL: f64 = 32.0;

/// The einsum of values, which are promoted to a common dtype. Operands are not broadcast: axes with one
/// label have one extent.
pub fn einsum(op: &Einsum, x: &[&Var]) -> Var {
    let applied = || -> Result<Var> {
        let mut dtype = DType::Bool;
        for v in x {
            dtype = DType::promote(dtype, v.ok()?.dtype());
        }
        if x.iter().all(|v| v.dtype() == dtype) {
            return apply_promoted(op, x, dtype);
        }
        let x: SmallVec<[Var; 4]> = x.iter().map(|v| v.convert(dtype)).collect();
        apply_promoted(op, &x.iter().collect::<SmallVec<[&Var; 4]>>(), dtype)
    };
    applied().into()
}

fn apply_promoted(op: &Einsum, x: &[&Var], dtype: DType) -> Result<Var> {
    if !NUMBERS.contains(&dtype) {
        return Err(Error::dtype(OP, "operands", dtype, "numbers"));
    }
    // The path of small tensors: no look at extents but for the check.
    if let (Some(plan), Some(shapes)) = (&op.0.fixed, present(x))
        && op.fits(&shapes)
    {
        return Ok(lower(plan, x));
    }
    Ok(match op.plan_of(x)? {
        Some(plan) => lower(&plan, x),
        None => apply1(op, x),
    })
}

/// The shapes of values that are all present.
fn present<'a>(x: &[&'a Var]) -> Option<SmallVec<[&'a [usize]; 4]>> {
    let shape = |v: &&'a Var| match v {
        Var::Now(now) => Some(now.value().shape()),
        _ => None,
    };
    x.iter().map(shape).collect()
}

impl Primitive for Einsum {
    const NAME: &'static str = OP;

    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        let shapes: SmallVec<[&[D]; 4]> = x.iter().map(|a| &a.shape[..]).collect();
        let equal = |a: &D, b: &D| Ok(D::equal(OP, "extent", a, b).is_ok());
        let extents = self.0.notation.extents_by(&shapes, equal)?;
        expect(OP, x, x.len(), NUMBERS)?;
        for (i, a) in x.iter().enumerate() {
            if a.dtype != x[0].dtype {
                return Err(Error::dtype(
                    OP,
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
            Some(einsum(self, &x))
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
    op: &Einsum,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    _: &[Aval],
    _: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let value = |x: &mut Operand<'_>| match x.take() {
        Some(own) => Value::new(own),
        None => Value::from(x.read()),
    };
    let x: SmallVec<[Var; 4]> = x.iter_mut().map(|x| Var::Now(Now::new(value(x)))).collect();
    let refs: SmallVec<[&Var; 4]> = x.iter().collect();
    let shapes: SmallVec<[&[usize]; 4]> =
        refs.iter().map(|v| v.value().map(Value::shape)).collect::<Result<_>>()?;
    let plan = op.plan_at(&shapes)?;
    let y = with_backend(cpu, || lower(&plan, &refs)).into_value()?;
    Ok(smallvec![into_tensor(cpu, y)?])
}

impl PartialEq for Einsum {
    fn eq(&self, other: &Einsum) -> bool {
        let (a, b) = (&self.0, &other.0);
        Arc::ptr_eq(a, b) || (a.notation == b.notation && a.optimize == b.optimize)
    }
}

impl Eq for Einsum {}

impl Hash for Einsum {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // All labels: calls with equal hashes are taken to be equal, for which the digest is too short.
        let notation = &self.0.notation;
        (notation.inputs(), notation.output(), &self.0.optimize).hash(state);
    }
}

impl fmt::Display for Einsum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.notation.fmt(f)
    }
}

impl fmt::Debug for Einsum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Einsum({}, {:?})", self.0.notation, self.0.optimize)
    }
}

/// What says which einsum is meant: text such as `"ij,jk->ik"`, or an [`Einsum`] or [`Notation`] made before.
pub trait Subscripts {
    /// The einsum.
    ///
    /// # Errors
    /// Text that is no notation.
    fn einsum(&self) -> Result<Cow<'_, Einsum>>;
}

impl Subscripts for str {
    fn einsum(&self) -> Result<Cow<'_, Einsum>> {
        Einsum::parse(self).map(Cow::Owned)
    }
}

impl Subscripts for String {
    fn einsum(&self) -> Result<Cow<'_, Einsum>> {
        Subscripts::einsum(self.as_str())
    }
}

impl Subscripts for Notation {
    fn einsum(&self) -> Result<Cow<'_, Einsum>> {
        Einsum::new(self.clone(), Optimize::Auto).map(Cow::Owned)
    }
}

impl Subscripts for Einsum {
    fn einsum(&self) -> Result<Cow<'_, Einsum>> {
        Ok(Cow::Borrowed(self))
    }
}

impl<S: Subscripts + ?Sized> Subscripts for &S {
    fn einsum(&self) -> Result<Cow<'_, Einsum>> {
        (**self).einsum()
    }
}
