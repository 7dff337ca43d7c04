//! An einsum as the user has it, and its application to values.

use crate::binding::{Binding, Shapes};
use crate::cache::{Recent, hash_bytes};
use crate::expression::Expression;
use crate::ncon;
use crate::notation::{Fold, Notation};
use crate::op::{EinsumOp, present};
use crate::order::{Optimize, groups};
use crate::plan::Plan;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use tenferro_core_ops::Var;
use tenferro_core_ops::ops::NUMBERS;
use tenferro_tensor::{DType, Error, Result};

thread_local! {
    static TEXTS: RefCell<Recent<Box<str>, Einsum>> = const { RefCell::new(Recent::new()) };
    static LABELS: RefCell<Recent<(), Einsum>> = const { RefCell::new(Recent::new()) };
    static NETWORKS: RefCell<Recent<(), Einsum>> = const { RefCell::new(Recent::new()) };
    static BINDINGS: RefCell<Recent<(Einsum, Shapes), Arc<Binding>>> = const { RefCell::new(Recent::new()) };
}

/// An einsum to apply to operands, `y[out] = Σ Π_j x_j[in_j]`: an [`Expression`], and how the order of
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
/// let fixed = chain.optimized(Optimize::path(plan.path().iter().copied()))?;
/// let x = shapes.map(|shape| TypedTensor::full(shape, 1.0));
/// let [a, b, c] = [&x[0], &x[1], &x[2]].map(|x| x.as_ref().unwrap());
/// let y = TypedTensor::einsum(&fixed, &[a, b, c], &mut CpuBackend::new())?;
/// assert_eq!(y.as_slice()?, [10_000.0; 6]);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct Einsum(Arc<Inner>);

struct Inner {
    expression: Expression,
    optimize: Optimize,
    /// The operation, if there is no ellipsis.
    plain: Option<EinsumOp>,
}

impl Einsum {
    /// The einsum of a notation or expression, with the order of contraction found in this way. Parentheses
    /// say the order where [`Optimize::Auto`] would look for it.
    ///
    /// # Errors
    /// `Argument` for an [`Optimize::Path`] that is none for these operands.
    pub fn new(what: impl Into<Expression>, optimize: Optimize) -> Result<Self> {
        let expression = what.into();
        let optimize = match optimize {
            Optimize::Auto if expression.is_nested() => Optimize::Path(expression.path()),
            other => other,
        };
        if let Optimize::Path(path) = &optimize {
            groups(expression.operands(), path)?;
        }
        let plain =
            expression.notation().map(|notation| EinsumOp::new(notation, optimize.clone())).transpose()?;
        Ok(Einsum(Arc::new(Inner { expression, optimize, plain })))
    }

    /// The einsum that `text` such as `"ij,jk->ik"` stands for; see [`Expression::parse`]. Texts are
    /// remembered, so that one that comes again is not parsed again.
    ///
    /// # Errors
    /// Those of [`Expression::parse`].
    pub fn parse(text: &str) -> Result<Self> {
        let hash = hash_bytes(text.as_bytes());
        if let Some(known) = TEXTS.with_borrow(|recent| recent.get(hash, |key| **key == *text)) {
            return Ok(known);
        }
        let einsum = Einsum::new(Expression::parse(text)?, Optimize::Auto)?;
        TEXTS.with_borrow_mut(|recent| recent.put(hash, text.into(), einsum.clone()));
        Ok(einsum)
    }

    /// The einsum of operands and output with these labels; see [`Notation::new`]. Numbers mean what letters do:
    /// an extent 1 is repeated, too. Remembered as texts are.
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
            && let Some(plain) = &known.0.plain
            && plain.notation().output() == output
            && plain.notation().inputs().iter().map(|labels| &labels[..]).eq(inputs.iter().copied())
        {
            return Ok(known);
        }
        let einsum = Einsum::new(&Notation::new(inputs, output)?, Optimize::Auto)?;
        LABELS.with_borrow_mut(|recent| recent.put(fold.0, (), einsum.clone()));
        Ok(einsum)
    }

    /// The contraction of a tensor network labelled in the manner of ncon (arXiv:1402.0939): axes with one
    /// positive label are contracted, and axis `k` of the output is the one labelled `-1 - k`. The order is
    /// that of the labels: the two tensors with the smallest label left are contracted over all that they
    /// share, and what is not connected is multiplied last. Another order is that of
    /// [`optimized`](Self::optimized). Unlike in an einsum of letters or numbers, an extent 1 is not repeated: the
    /// two ends of a bond are alike, or it is an error. Remembered as texts are.
    ///
    /// ```
    /// use tenferro_einsum::{Einsum, Optimize};
    ///
    /// let chain = Einsum::ncon(&[&[-1, 2], &[2, 1], &[1, -2]])?;
    /// let shapes: [&[usize]; 3] = [&[2, 3], &[3, 4], &[4, 5]];
    /// assert_eq!(chain.plan(&shapes)?.path(), [(1, 2), (0, 1)]);
    /// assert_eq!(chain.optimized(Optimize::Auto)?.plan(&shapes)?.path(), [(0, 1), (0, 1)]);
    /// # Ok::<(), tenferro_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Argument` without tensors; `Label` for 0, for a positive label that is not on two axes, and for
    /// negative labels other than -1, -2, .. once each.
    pub fn ncon(labels: &[&[i32]]) -> Result<Self> {
        let mut fold = Fold::default();
        for axes in labels {
            fold.add(axes.len() as u64);
            axes.iter().for_each(|label| fold.add(*label as u64));
        }
        let known = NETWORKS.with_borrow(|recent| recent.get(fold.0, |_| true));
        if let Some(known) = known
            && known.0.plain.as_ref().is_some_and(|plain| ncon::is_of(plain.notation(), labels))
        {
            return Ok(known);
        }
        let einsum = Einsum::new(&ncon::notation(labels)?, Optimize::Path(ncon::path(labels)))?;
        NETWORKS.with_borrow_mut(|recent| recent.put(fold.0, (), einsum.clone()));
        Ok(einsum)
    }

    /// The same einsum with the order of contraction found in another way, parentheses or not.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn optimized(&self, optimize: Optimize) -> Result<Self> {
        Einsum::new(self.0.expression.unnested(), optimize)
    }

    /// What the operands and the output are labelled with.
    pub fn expression(&self) -> &Expression {
        &self.0.expression
    }

    /// The name in errors.
    pub(crate) fn name(&self) -> &'static str {
        self.0.expression.op()
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
        self.binding(Shapes::of(shapes))?.plan(shapes)
    }

    /// The binding to operands of these shapes, which is remembered.
    pub(crate) fn binding(&self, shapes: Shapes) -> Result<Arc<Binding>> {
        let hash = hash_bytes(shapes.as_bytes()).rotate_left(5).wrapping_mul(Arc::as_ptr(&self.0) as u64 | 1);
        let same = |(einsum, known): &(Einsum, Shapes)| Arc::ptr_eq(&einsum.0, &self.0) && *known == shapes;
        if let Some(known) = BINDINGS.with_borrow(|recent| recent.get(hash, same)) {
            return Ok(known);
        }
        let binding = Arc::new(Binding::new(&self.0.expression, &shapes, &self.0.optimize)?);
        BINDINGS.with_borrow_mut(|recent| recent.put(hash, (self.clone(), shapes), binding.clone()));
        Ok(binding)
    }
}

/// The einsum of values, which are promoted to a common dtype.
///
/// Axes with one label have one extent; but a literal extent 1 is repeated along the axes of other operands
/// that have the label, unless the labels are those of ncon.
pub fn einsum(op: &Einsum, x: &[&Var]) -> Var {
    if let Some(plain) = &op.0.plain
        && let (Some(shapes), Some(_)) = (present(x), common_number(x))
        && let Some(y) = plain.at_once(x, &shapes)
    {
        return y;
    }
    applied(op, x).into()
}

/// The dtype of all operands, if it is one of numbers.
fn common_number(x: &[&Var]) -> Option<DType> {
    let dtype = x.first()?.dtype();
    (NUMBERS.contains(&dtype) && x.iter().all(|v| v.dtype() == dtype)).then_some(dtype)
}

fn applied(op: &Einsum, x: &[&Var]) -> Result<Var> {
    let mut dtype = DType::Bool;
    for v in x {
        dtype = DType::promote(dtype, v.ok()?.dtype());
    }
    if !NUMBERS.contains(&dtype) {
        return Err(Error::dtype(op.name(), "operands", dtype, "numbers"));
    }
    let binding = op.binding(Shapes::of_values(x))?;
    if x.iter().all(|v| v.dtype() == dtype) {
        return Ok(binding.apply(x));
    }
    let x: SmallVec<[Var; 4]> = x.iter().map(|v| v.convert(dtype)).collect();
    Ok(binding.apply(&x.iter().collect::<SmallVec<[&Var; 4]>>()))
}

impl PartialEq for Einsum {
    fn eq(&self, other: &Einsum) -> bool {
        let (a, b) = (&self.0, &other.0);
        Arc::ptr_eq(a, b) || (a.expression == b.expression && a.optimize == b.optimize)
    }
}

impl Eq for Einsum {}

impl fmt::Display for Einsum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expression.fmt(f)
    }
}

impl fmt::Debug for Einsum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Einsum({self}, {:?})", self.0.optimize)
    }
}

/// What says which einsum is meant: text such as `"ij,jk->ik"`, or an [`Einsum`], [`Expression`],
/// [`Notation`] or [`PreparedEinsum`](crate::PreparedEinsum) made before.
pub trait Subscripts {
    /// The einsum.
    ///
    /// # Errors
    /// Text that is none.
    fn einsum(&self) -> Result<Cow<'_, Einsum>>;

    /// Whether these may be its operands. What is meant for given extents takes no others; all else is found out
    /// when the einsum is applied.
    ///
    /// # Errors
    /// Operands of another number, or of other extents, than it is prepared for.
    fn accepts(&self, _: &[&Var]) -> Result<()> {
        Ok(())
    }
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
        Einsum::new(self, Optimize::Auto).map(Cow::Owned)
    }
}

impl Subscripts for Expression {
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

    fn accepts(&self, x: &[&Var]) -> Result<()> {
        (**self).accepts(x)
    }
}
