//! How a present value came about, kept only while something upstream wants a gradient.

use crate::{
    aval::Aval,
    dim::Dim,
    op::{KeptOp, Op, Outs},
    ops::Copy,
    var::{Now, Var, apply1, next_id},
};
use smallvec::{SmallVec, smallvec};
use std::{
    cell::Cell,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tenferro_tensor::{DType, Result, Shape, Value, same_shape};

/// One operation that ran, with what its reverse rule reads, or a leaf that collects a gradient.
pub struct Node {
    id: u64,
    /// The smallest id of a leaf this depends on: what tells whether something older than a function's argument
    /// flows into its result, without a walk.
    oldest: u64,
    kind: Kind,
}

// Nearly every node is a call: a box would cost each of them an allocation.
#[allow(clippy::large_enum_variant)]
enum Kind {
    Leaf(Mutex<Gradient>),
    Call(Record),
}

/// What a leaf has collected, and how often that has changed.
#[derive(Default)]
struct Gradient {
    changes: u64,
    sum: Option<Var>,
}

struct Record {
    op: KeptOp,
    /// Those of [`Kept::Shape`], each once: often inputs and outputs have one shape.
    shapes: SmallVec<[Shape; 1]>,
    x: SmallVec<[Input; 2]>,
    y: Outs<Kept>,
}

/// An input: its value if the reverse rule reads it, else its shape; and the node it came from.
struct Input {
    kept: Kept,
    node: Option<(Arc<Node>, usize)>,
}

enum Kept {
    Value(Value),
    /// Only the dtype, and which of the shapes.
    Shape(DType, usize),
}

thread_local! {
    static OFF: Cell<bool> = const { Cell::new(false) };
}

/// Whether what is applied in this thread is recorded, where a gradient is wanted.
pub fn is_recording() -> bool {
    !OFF.get()
}

/// Runs `f` without recording, in this thread. Derivatives of functions inside of it record what they need.
pub fn no_grad<R>(f: impl FnOnce() -> R) -> R {
    with_off(true, f)
}

/// Runs `f` with recording, in this thread, also inside of [`no_grad`].
pub fn with_grad<R>(f: impl FnOnce() -> R) -> R {
    with_off(false, f)
}

fn with_off<R>(off: bool, f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            OFF.set(self.0);
        }
    }
    let _restore = Restore(OFF.replace(off));
    f()
}

/// A value whose gradient is wanted.
pub fn leaf(value: Value) -> Var {
    let id = next_id();
    let node = Arc::new(Node { id, oldest: id, kind: Kind::Leaf(Mutex::default()) });
    Var::Now(Now::with_node(value, node, 0))
}

/// `x` as the argument of a function that is to be differentiated, which is not `x` itself: the function may have
/// captured that. A new leaf, or, if a gradient flows through `x` and recording is on, a new node on it, so that it
/// flows through what the function gives.
pub fn argument(x: &Now) -> Var {
    if x.node().is_some() && is_recording() {
        record1(&Copy, &[x], x.value().clone())
    } else {
        leaf(x.value().clone())
    }
}

/// The results of `op` as values that came about by it.
pub(crate) fn record(op: &dyn Op, x: &[&Now], y: Outs<Value>) -> Outs<Var> {
    match y.into_inner() {
        Ok([only]) => Outs::from_buf([record1(op, x, only)]),
        Err(y) => {
            let node = node(op, x, &y);
            y.into_iter().enumerate().map(|(i, v)| output(v, node.clone(), i)).collect()
        }
    }
}

/// The only result of `op`, likewise.
#[inline]
pub(crate) fn record1(op: &dyn Op, x: &[&Now], y: Value) -> Var {
    let node = node(op, x, std::slice::from_ref(&y));
    output(y, node, 0)
}

/// No gradient flows through integers, so nothing upstream need be kept for them.
#[inline]
fn output(v: Value, node: Arc<Node>, i: usize) -> Var {
    Var::Now(if v.dtype().is_differentiable() { Now::with_node(v, node, i) } else { Now::new(v) })
}

fn node(op: &dyn Op, x: &[&Now], y: &[Value]) -> Arc<Node> {
    let saves = op.saves();
    let kind =
        Kind::Call(Record { op: op.keep(), shapes: SmallVec::new(), x: SmallVec::new(), y: Outs::new() });
    let node = Arc::new(Node { id: next_id(), oldest: u64::MAX, kind });
    // Filled where it stays: one that is made elsewhere and moved is read back before it has left the store buffer.
    // SAFETY: nobody else has this node yet, and `node` is not used while it is borrowed.
    let Node { oldest, kind, .. } = unsafe { &mut *Arc::as_ptr(&node).cast_mut() };
    if let Kind::Call(r) = kind {
        for n in x {
            let node = n.node().cloned();
            *oldest = node.as_ref().map_or(*oldest, |(n, _)| n.oldest.min(*oldest));
            let kept = r.kept(n.value(), saves.inputs);
            r.x.push(Input { kept, node });
        }
        for v in y {
            let kept = r.kept(v, saves.outputs);
            r.y.push(kept);
        }
    }
    node
}

impl Record {
    #[inline(always)]
    fn kept(&mut self, v: &Value, save: bool) -> Kept {
        if save {
            return Kept::Value(v.clone());
        }
        let known = self.shapes.iter().position(|s| same_shape(s, v.shape()));
        Kept::Shape(
            v.dtype(),
            known.unwrap_or_else(|| {
                self.shapes.push(v.shape().into());
                self.shapes.len() - 1
            }),
        )
    }

    fn var(&self, kept: &Kept, node: Option<(Arc<Node>, usize)>) -> Var {
        match kept {
            Kept::Value(v) => Var::Now(match node {
                Some((n, i)) => Now::with_node(v.clone(), n, i),
                None => Now::new(v.clone()),
            }),
            Kept::Shape(dtype, shape) => {
                let extents = self.shapes[*shape].iter().map(|&n| Dim::Lit(n));
                crate::var::input(Aval::new(*dtype, extents))
            }
        }
    }
}

impl Node {
    /// Larger than the ids of the nodes it depends on.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The smallest id of a leaf this depends on; of a leaf, its own.
    pub fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Whether this collects a gradient rather than passing it on.
    pub fn is_leaf(&self) -> bool {
        matches!(self.kind, Kind::Leaf(_))
    }

    /// The operation that ran.
    pub fn op(&self) -> Option<&dyn Op> {
        match &self.kind {
            Kind::Call(r) => Some(&*r.op),
            Kind::Leaf(_) => None,
        }
    }

    pub(crate) fn outputs(&self) -> usize {
        match &self.kind {
            Kind::Call(r) => r.y.len(),
            Kind::Leaf(_) => 1,
        }
    }

    /// The node that input `i` came from.
    pub(crate) fn parents(&self) -> impl Iterator<Item = Option<&(Arc<Node>, usize)>> {
        let x = match &self.kind {
            Kind::Call(r) => &r.x[..],
            Kind::Leaf(_) => &[],
        };
        x.iter().map(|i| i.node.as_ref())
    }

    /// Inputs and outputs for the reverse rule: those it does not read are placeholders. With `history`,
    /// they carry their nodes, so that the rule itself is recorded.
    pub(crate) fn values(self: &Arc<Node>, history: bool) -> (SmallVec<[Var; 3]>, SmallVec<[Var; 3]>) {
        let Kind::Call(r) = &self.kind else { return (smallvec![], smallvec![]) };
        let x = r.x.iter().map(|i| r.var(&i.kept, i.node.clone().filter(|_| history))).collect();
        let y = r.y.iter().enumerate().map(|(i, y)| r.var(y, history.then(|| (self.clone(), i)))).collect();
        (x, y)
    }

    fn collected(&self) -> Option<MutexGuard<'_, Gradient>> {
        match &self.kind {
            Kind::Leaf(slot) => Some(slot.lock().unwrap_or_else(PoisonError::into_inner)),
            Kind::Call(_) => None,
        }
    }

    /// The gradient collected so far.
    pub fn gradient(&self) -> Option<Var> {
        self.collected()?.sum.clone()
    }

    /// Forget the gradient.
    pub fn clear_gradient(&self) {
        if let Some(mut gradient) = self.collected() {
            *gradient = Gradient { changes: gradient.changes + 1, sum: None };
        }
    }
}

/// Adds gradients to what leaves have collected: to all of them, or after an error to none. No lock is held while
/// a sum is computed; if another thread has added to a leaf meanwhile, that sum is computed again.
pub(crate) fn accumulate(gradients: &[(Arc<Node>, Var)]) -> Result<()> {
    let mut sums: Vec<Option<(u64, Var)>> = gradients.iter().map(|_| None).collect();
    loop {
        for ((node, g), sum) in gradients.iter().zip(&mut sums) {
            let Some((changes, old)) = node.collected().map(|c| (c.changes, c.sum.clone())) else { continue };
            if sum.as_ref().is_none_or(|(at, _)| *at != changes) {
                let new = old.map_or_else(|| g.clone(), |old| apply1(&crate::ops::Add, &[&old, g]));
                new.ok()?;
                *sum = Some((changes, new));
            }
        }
        // The order of the list is that of the ids, so two threads do not wait for each other.
        let mut slots: Vec<_> = gradients.iter().map(|(node, _)| node.collected()).collect();
        let current = |(slot, sum): (&Option<MutexGuard<'_, Gradient>>, &Option<(u64, Var)>)| {
            slot.as_ref().map(|s| s.changes) == sum.as_ref().map(|(at, _)| *at)
        };
        if slots.iter().zip(&sums).all(current) {
            for (slot, sum) in slots.iter_mut().zip(sums) {
                if let (Some(slot), Some((at, sum))) = (slot, sum) {
                    **slot = Gradient { changes: at + 1, sum: Some(sum) };
                }
            }
            return Ok(());
        }
    }
}

// The nodes this came from are named, not shown, as for calls.
impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.parents().map(|p| p.map(|(n, i)| format!("%{}.{i}", n.id))).collect::<Vec<_>>();
        f.debug_struct("Node").field("id", &self.id).field("op", &self.op()).field("inputs", &from).finish()
    }
}

impl Drop for Node {
    // As for calls: a long chain is dropped in a loop.
    fn drop(&mut self) {
        let Kind::Call(r) = &mut self.kind else { return };
        // Parents that others hold, too, outlive this, so nothing nests.
        let here = |n: &Arc<Node>| {
            r.x.iter().filter(|i| matches!(&i.node, Some((m, _)) if Arc::ptr_eq(m, n))).count()
        };
        let outlives = |i: &Input| i.node.as_ref().is_none_or(|(n, _)| Arc::strong_count(n) > here(n));
        if r.x.len() <= 4 && r.x.iter().all(outlives) {
            return;
        }
        let mut stack = std::mem::take(&mut r.x);
        while let Some(input) = stack.pop() {
            if let Some((node, _)) = input.node
                && let Some(mut node) = Arc::into_inner(node)
                && let Kind::Call(r) = &mut node.kind
            {
                stack.append(&mut r.x);
            }
        }
    }
}
