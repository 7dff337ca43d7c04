//! The value every rule and every program is written in.
//!
//! Applying an operation to present values runs it, on the backend in scope; applying it to a traced value,
//! or with no backend in scope, records it. [`apply`] is the only way an operation ever happens.

use crate::{
    aval::{Aval, Extents},
    backend::with_current,
    digest::Digest,
    dim::{Atom, Dim, Fresh},
    execute,
    op::{Op, Outs},
    ops,
    tape::{self, Node},
};
use smallvec::{SmallVec, smallvec};
use std::{
    collections::BTreeMap,
    fmt,
    hash::{Hash, Hasher},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};
use tenferro_tensor::{C64, DType, Error, Result, Tensor, Value, same_shape};

/// A tensor, or an output of a call that has not been run yet, or the error that stands in its place so that
/// rules read like mathematics.
#[derive(Clone, Debug)]
pub enum Var {
    /// Present.
    Now(Now),
    /// Output `.1` of a recorded call.
    Later(Arc<Call>, usize),
    /// What went wrong; applying anything to it gives the same error.
    Failed(Error),
}

/// A present value and, if something upstream wants a gradient, how it came about.
#[derive(Clone, Debug)]
pub struct Now {
    value: Value,
    node: Option<(Arc<Node>, usize)>,
}

impl Now {
    /// A value without a history.
    pub fn new(value: Value) -> Now {
        Now { value, node: None }
    }

    pub(crate) fn with_node(value: Value, node: Arc<Node>, output: usize) -> Now {
        Now { value, node: Some((node, output)) }
    }

    /// The tensor.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The tape node that this is output `.1` of.
    pub fn node(&self) -> Option<&(Arc<Node>, usize)> {
        self.node.as_ref()
    }
}

/// One recorded application. Calls are immutable and point at their inputs, so a program is the calls
/// reachable from its outputs, in the order of their ids.
pub struct Call {
    id: u64,
    scope: u64,
    hash: u128,
    source: Source,
    x: SmallVec<[Var; 2]>,
    /// The calls that decide extents the operation's parameters are made of: needed to run it, like inputs.
    deciders: Vec<Arc<Call>>,
    y: Outs<Aval<Dim>>,
}

/// Where the outputs of a [`Call`] come from.
#[derive(Debug)]
pub enum Source {
    /// An operation on the inputs.
    Op(Arc<dyn Op>),
    /// Given when the program runs.
    Input,
    /// A tensor given while tracing. It has an identity: two of them never merge, whatever they hold.
    Constant(Value),
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A number larger than all that were given before.
pub(crate) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

impl Call {
    fn leaf(source: Source, scope: u64, aval: Aval<Dim>) -> Var {
        let id = next_id();
        let mut h = Digest::default();
        id.hash(&mut h);
        let scope = if scope == u64::MAX { id } else { scope };
        Var::Later(
            Arc::new(Call {
                id,
                scope,
                hash: h.finish128(),
                source,
                x: smallvec![],
                deciders: vec![],
                y: smallvec![aval],
            }),
            0,
        )
    }

    /// Larger than the ids of the inputs.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Equal for equal operations on equal inputs.
    pub fn hash(&self) -> u128 {
        self.hash
    }

    /// What is applied.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The operation, unless this is a leaf.
    pub fn op(&self) -> Option<&Arc<dyn Op>> {
        match &self.source {
            Source::Op(op) => Some(op),
            _ => None,
        }
    }

    /// To what.
    pub fn inputs(&self) -> &[Var] {
        &self.x
    }

    /// Dtypes and extents of the outputs.
    pub fn outputs(&self) -> &[Aval<Dim>] {
        &self.y
    }
}

// Inputs are named, not shown: what they came from is as deep, and by as many ways, as the program.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |v: &Var| match v {
            Var::Later(c, i) => format!("%{}.{i}", c.id),
            v => format!("{}", v.aval()),
        };
        f.debug_struct("Call")
            .field("id", &self.id)
            .field("source", &self.source)
            .field("inputs", &self.x.iter().map(name).collect::<Vec<_>>())
            .field("outputs", &self.y)
            .finish()
    }
}

impl Drop for Call {
    // A chain of a million calls must not be dropped by a million nested drops.
    fn drop(&mut self) {
        let mut stack = std::mem::take(&mut self.x);
        stack.extend(self.deciders.drain(..).map(|c| Var::Later(c, 0)));
        while let Some(v) = stack.pop() {
            if let Var::Later(call, _) = v
                && let Some(mut call) = Arc::into_inner(call)
            {
                stack.append(&mut call.x);
                stack.extend(call.deciders.drain(..).map(|c| Var::Later(c, 0)));
            }
        }
    }
}

/// A program input.
pub fn input(aval: Aval<Dim>) -> Var {
    Call::leaf(Source::Input, 0, aval)
}

/// An unknown of a new linearization, whose scope is its id.
pub(crate) fn unknown(aval: Aval<Dim>) -> Var {
    Call::leaf(Source::Input, u64::MAX, aval)
}

/// A tensor as a traced value.
pub fn constant(value: Value) -> Var {
    let aval = execute::aval_of(&value).symbolic();
    Call::leaf(Source::Constant(value), 0, aval)
}

/// The outputs of `op` applied to `x`.
pub fn apply(op: &dyn Op, x: &[&Var]) -> Result<Outs<Var>> {
    let mut now: SmallVec<[&Now; 4]> = SmallVec::new();
    let mut values: SmallVec<[&Value; 4]> = SmallVec::new();
    let mut wanted = false;
    for v in x {
        match v {
            Var::Now(n) => {
                now.push(n);
                values.push(&n.value);
                wanted |= n.node.is_some();
            }
            Var::Later(..) => {}
            Var::Failed(e) => return Err(e.clone()),
        }
    }
    if now.len() < x.len() || op.is_symbolic() {
        return record(op, x);
    }
    with_current(|backend| {
        let Some(backend) = backend else { return record(op, x) };
        let mut y = execute::execute(backend, op, &values)?;
        if wanted && tape::is_recording() {
            return Ok(tape::record(op, &now, y));
        }
        Ok(match y.pop() {
            Some(only) if y.is_empty() => Outs::from_buf([Var::Now(Now::new(only))]),
            last => y.into_iter().chain(last).map(|v| Var::Now(Now::new(v))).collect(),
        })
    })
}

/// The result of an elementwise operation by the shortcut of [`Alike`](crate::Alike), if its inputs are such.
#[inline]
pub(crate) fn alike(op: &dyn Op, x: &[&Var]) -> Option<Var> {
    let Some(Var::Now(first)) = x.first() else { return None };
    let tensor = first.value.whole()?;
    let (mut now, mut tensors) = ([first; 3], [tensor; 3]);
    for (i, v) in x.iter().enumerate() {
        let Var::Now(n) = v else { return None };
        let t = n.value.whole()?;
        if t.dtype() != tensor.dtype() || !same_shape(t.shape(), tensor.shape()) {
            return None;
        }
        *now.get_mut(i)? = n;
        tensors[i] = t;
    }
    let (now, tensors) = (&now[..x.len()], &tensors[..x.len()]);
    let y = with_current(|backend| {
        let backend = backend?;
        let alike = backend.kernel(op, tensor.dtype())?.shortcuts().alike?;
        // SAFETY: the tensors are alike, and the kernel is listed for their dtype.
        unsafe { alike(op, backend, tensors) }
    });
    y.map(|y| finished(op, now, y.map(Value::new)))
}

/// The result of a view operation that need not copy.
#[inline]
fn viewed(op: &dyn Op, x: &[&Var]) -> Option<Var> {
    let (true, [Var::Now(n)]) = (op.is_view(), x) else { return None };
    with_current(|backend| backend.map(drop))?;
    execute::view_of(op, &n.value).map(|y| finished(op, &[n], y))
}

impl Var {
    /// A view of a present value that wants no gradient, by `f`, which is asked before an operation is made: `None`
    /// if it declines, or there is no such value.
    #[inline]
    pub(crate) fn view_now(&self, f: impl FnOnce(&Value) -> Option<Value>) -> Option<Var> {
        let Var::Now(Now { value, node: None }) = self else { return None };
        with_current(|backend| backend.map(drop))?;
        outlined(value, f).map(|v| Var::Now(Now::new(v)))
    }
}

/// `f(value)`, returned in two registers, so that what is inlined into callers is small.
#[inline(never)]
fn outlined(value: &Value, f: impl FnOnce(&Value) -> Option<Value>) -> Option<Value> {
    f(value)
}

/// A result, recorded if an input wants a gradient.
#[inline]
fn finished(op: &dyn Op, x: &[&Now], y: Result<Value>) -> Var {
    match y {
        Ok(y) if tape::is_recording() && x.iter().any(|n| n.node.is_some()) => tape::record1(op, x, y),
        Ok(y) => Var::Now(Now::new(y)),
        Err(e) => Var::Failed(e),
    }
}

/// The only output of `op`, or the error in its place.
pub fn apply1(op: &dyn Op, x: &[&Var]) -> Var {
    let shortcut = if op.is_elementwise() { alike(op, x) } else { viewed(op, x) };
    shortcut.unwrap_or_else(|| apply_long(op, x))
}

/// [`apply1`] after its shortcuts have declined.
pub(crate) fn apply_long(op: &dyn Op, x: &[&Var]) -> Var {
    match apply(op, x) {
        Ok(mut y) => y.swap_remove(0),
        Err(e) => Var::Failed(e),
    }
}

/// The outputs of `op`, or `n` times the error in their place.
pub fn apply_n(op: &dyn Op, x: &[&Var], n: usize) -> Outs<Var> {
    apply(op, x).unwrap_or_else(|e| smallvec![Var::Failed(e); n])
}

fn record(op: &dyn Op, x: &[&Var]) -> Result<Outs<Var>> {
    let mut h = Digest::default();
    op.digest(&mut h);
    let mut scope = 0;
    for v in x {
        match v {
            Var::Later(c, i) => {
                scope = scope.max(c.scope);
                h.write_u128(c.hash);
                h.write_usize(*i);
            }
            Var::Now(n) => hash_value(&n.value, &mut h),
            Var::Failed(e) => return Err(e.clone()),
        }
    }
    let hash = h.finish128();
    let avals: SmallVec<[Aval<Dim>; 3]> = x.iter().map(|v| v.aval()).collect();
    let refs: SmallVec<[&Aval<Dim>; 3]> = avals.iter().collect();
    let y = op.infer_later(&refs, Fresh(hash))?;
    let x = x.iter().map(|v| (*v).clone()).collect();
    let n = y.len();
    let deciders = if op.is_symbolic() { deciders(op) } else { vec![] };
    let call = Arc::new(Call { id: next_id(), scope, hash, source: Source::Op(op.share()), x, deciders, y });
    if decides(&call) {
        let mut live = lock();
        if live.len().is_power_of_two() {
            live.retain(|_, calls| calls.iter().any(|c| c.strong_count() > 0));
        }
        let equal = live.entry(hash).or_default();
        equal.retain(|c| c.strong_count() > 0);
        equal.push(Arc::downgrade(&call));
    }
    Ok((0..n).map(|i| Var::Later(call.clone(), i)).collect())
}

/// The live calls that decide extents, by structural hash: an extent names its call, but does not hold it.
static DECIDERS: Mutex<BTreeMap<u128, Vec<Weak<Call>>>> = Mutex::new(BTreeMap::new());

fn lock() -> MutexGuard<'static, BTreeMap<u128, Vec<Weak<Call>>>> {
    DECIDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an extent of an output is found by the kernel of this call.
fn decides(call: &Call) -> bool {
    let own = |d: &Dim| matches!(d.as_atom(), Some(Atom::Data { call: c, .. }) if *c == call.hash);
    call.y.iter().any(|a| a.shape.iter().any(own))
}

/// The live calls that decide extents in the parameters of `op`.
fn deciders(op: &dyn Op) -> Vec<Arc<Call>> {
    let mut found: Vec<Arc<Call>> = vec![];
    for d in op.dims() {
        d.for_each_atom(&mut |a| {
            if let Atom::Data { call, .. } = a
                && found.iter().all(|c| c.hash != *call)
            {
                found.extend(lock().get(call).and_then(|calls| calls.iter().find_map(Weak::upgrade)));
            }
        });
    }
    found
}

/// Scalars by content, larger tensors by identity: the call keeps them alive, so an address is not reused
/// while a hash that contains it can be compared.
pub fn hash_value(v: &Value, h: &mut Digest) {
    v.dtype().hash(h);
    if v.owner().len() == 1
        && let Ok(bytes) = v.owner().as_bytes()
    {
        v.shape().hash(h);
        h.write(bytes);
    } else {
        v.ptr_id().hash(h);
        let l = v.layout();
        (l.shape(), l.strides(), l.offset()).hash(h);
    }
}

/// The calls that `outputs` are computed from, oldest first.
pub fn reachable<'a>(outputs: impl IntoIterator<Item = &'a Var>) -> Vec<Arc<Call>> {
    collect(outputs, false)
}

/// The calls that `outputs` are computed from and those that decide their extents, oldest first: what a program
/// has to run.
pub fn program<'a>(outputs: impl IntoIterator<Item = &'a Var>) -> Vec<Arc<Call>> {
    collect(outputs, true)
}

fn collect<'a>(outputs: impl IntoIterator<Item = &'a Var>, deciders: bool) -> Vec<Arc<Call>> {
    let mut seen = std::collections::HashSet::new();
    let mut stack: Vec<Var> = outputs.into_iter().cloned().collect();
    let mut calls = vec![];
    while let Some(v) = stack.pop() {
        if let Var::Later(c, _) = v
            && seen.insert(c.id)
        {
            stack.extend(c.x.iter().filter(|v| matches!(v, Var::Later(..))).cloned());
            if deciders {
                stack.extend(c.deciders.iter().map(|c| Var::Later(c.clone(), 0)));
            }
            calls.push(c);
        }
    }
    calls.sort_by_key(|c| c.id);
    calls
}

impl Var {
    /// The error, if this is one.
    pub fn ok(&self) -> Result<&Var> {
        match self {
            Var::Failed(e) => Err(e.clone()),
            v => Ok(v),
        }
    }

    /// The first of several operands that is an error.
    pub(crate) fn failed(x: [&Var; 2]) -> Option<Var> {
        x.into_iter().find(|v| matches!(v, Var::Failed(_))).cloned()
    }

    /// The result of a method `op` on operands that are no errors: if it is one, `op` is its operation, whatever
    /// other operation it is made of.
    pub(crate) fn of(self, op: &'static str) -> Var {
        match self {
            Var::Failed(e) => Var::Failed(e.of(op)),
            v => v,
        }
    }

    /// Dtype and extents; of a failed value, those of an f64 scalar (nothing will be computed with them).
    pub fn aval(&self) -> Aval<Dim> {
        match self {
            Var::Now(n) => {
                Aval { dtype: n.value.dtype(), shape: n.value.shape().iter().map(|&n| Dim::Lit(n)).collect() }
            }
            Var::Later(c, i) => c.y[*i].clone(),
            Var::Failed(_) => Aval { dtype: DType::F64, shape: Extents::new() },
        }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        match self {
            Var::Now(n) => n.value.dtype(),
            Var::Later(c, i) => c.y[*i].dtype,
            Var::Failed(_) => DType::F64,
        }
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        match self {
            Var::Now(n) => n.value.shape().len(),
            Var::Later(c, i) => c.y[*i].shape.len(),
            Var::Failed(_) => 0,
        }
    }

    /// Extents.
    pub fn shape(&self) -> Extents<Dim> {
        self.aval().shape
    }

    /// The extent of an axis that exists.
    pub fn extent(&self, axis: usize) -> Dim {
        match self {
            Var::Now(n) => Dim::Lit(n.value.shape()[axis]),
            Var::Later(c, i) => c.y[*i].shape[axis].clone(),
            Var::Failed(_) => Dim::Lit(1),
        }
    }

    /// Whether both have the same dtype and the same extents.
    pub fn same_aval(&self, o: &Var) -> bool {
        match (self, o) {
            (Var::Now(a), Var::Now(b)) => {
                a.value.dtype() == b.value.dtype() && same_shape(a.value.shape(), b.value.shape())
            }
            (Var::Later(a, i), Var::Later(b, j)) => a.y[*i] == b.y[*j],
            (a, b) => a.aval() == b.aval(),
        }
    }

    /// The innermost linearization this value is an unknown of, or zero.
    pub(crate) fn scope(&self) -> u64 {
        match self {
            Var::Later(c, _) => c.scope,
            _ => 0,
        }
    }

    /// The present value.
    ///
    /// # Errors
    /// If it is traced, or failed.
    pub fn value(&self) -> Result<&Value> {
        match self {
            Var::Now(n) => Ok(&n.value),
            Var::Later(..) => {
                Err(Error::runtime_state("value", "a traced value has no data before its program runs"))
            }
            Var::Failed(e) => Err(e.clone()),
        }
    }

    /// As [`value`](Self::value), by value.
    pub fn into_value(self) -> Result<Value> {
        match self {
            Var::Now(n) => Ok(n.value),
            v => v.value().cloned(),
        }
    }

    /// The value without its history.
    pub fn detach(&self) -> Var {
        match self {
            Var::Now(n) => Var::Now(Now::new(n.value.clone())),
            v => v.clone(),
        }
    }

    /// A scalar of this dtype; an error if it does not [hold](DType::holds) `c`.
    pub fn scalar(dtype: DType, c: C64) -> Var {
        match Tensor::full(dtype, &[][..], c) {
            Ok(t) => Var::Now(Now::new(Value::new(t))),
            Err(e) => Var::Failed(e),
        }
    }

    /// `c`, which its dtype must hold, in this value's dtype and shape, without storing it more than once.
    pub fn like(&self, c: f64) -> Var {
        if let Var::Failed(_) = self {
            return self.clone();
        }
        Var::full(&self.aval(), C64::new(c, 0.0))
    }

    /// `c` in a dtype and shape, without storing it more than once.
    pub fn full(aval: &Aval<Dim>, c: C64) -> Var {
        let s = Var::scalar(aval.dtype, c);
        if aval.shape.is_empty() {
            s
        } else {
            apply1(&ops::BroadcastInDim::new(&[], aval.shape.clone(), &[]), &[&s])
        }
    }
}

impl From<Result<Var>> for Var {
    fn from(r: Result<Var>) -> Var {
        r.unwrap_or_else(Var::Failed)
    }
}
