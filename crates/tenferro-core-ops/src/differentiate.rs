//! Reverse mode from forward rules.
//!
//! An operation states its derivative once, as [`Primitive::jvp`]. To pull a cotangent back through it, its
//! rule is fed unknown tangents: the calls this records are linear in the unknowns, and are transposed from
//! the last to the first. What a rule computes from known values alone happens outside of them, because
//! those operands are known: it runs when they are present and is recorded when they are traced.
//! (The decomposition of reverse mode into linearization and transposition: Radul, Paszke, Frostig, Johnson,
//! Maclaurin, "You Only Linearize Once", POPL 2023.)

use crate::{
    dim::Dim,
    op::{Arg, Op, Outs, Primitive, Tangent},
    ops::Add,
    tape::{self, Node},
    var::{Call, Var, apply, apply1, input, next_id, reachable, unknown},
};
use smallvec::{SmallVec, smallvec};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};
use tenferro_tensor::{Error, Result};

fn accumulate(slot: &mut Tangent, v: Var) {
    *slot = Some(match slot.take() {
        Some(old) => apply1(&Add, &[&old, &v]),
        None => v,
    });
}

/// A call or a node: something with an id larger than those of the steps it depends on.
trait Step {
    fn id(&self) -> u64;
    fn outputs(&self) -> usize;
    fn is_leaf(&self) -> bool;
}
impl Step for Call {
    fn id(&self) -> u64 {
        Call::id(self)
    }
    fn outputs(&self) -> usize {
        Call::outputs(self).len()
    }
    fn is_leaf(&self) -> bool {
        self.op().is_none()
    }
}
impl Step for Node {
    fn id(&self) -> u64 {
        Node::id(self)
    }
    fn outputs(&self) -> usize {
        Node::outputs(self)
    }
    fn is_leaf(&self) -> bool {
        Node::is_leaf(self)
    }
}

type Link<S> = Option<(Arc<S>, usize)>;
/// Leaves, and what arrived at them.
type Arrived<S> = Vec<(Arc<S>, Var)>;

/// Hand every step, newest first, its output cotangents; `pull` sends each of its input cotangents to the
/// step the input came from. Returns what arrived at the leaves.
fn sweep<S: Step>(
    seeds: impl IntoIterator<Item = (Link<S>, Var)>,
    mut pull: impl FnMut(&Arc<S>, &[Tangent], &mut dyn FnMut(&Link<S>, Var)) -> Result<()>,
) -> Result<Arrived<S>> {
    let mut todo: BTreeMap<u64, (Arc<S>, Outs<Tangent>)> = BTreeMap::new();
    let mut leaves = Vec::new();
    let send = |todo: &mut BTreeMap<u64, (Arc<S>, Outs<Tangent>)>, to: &Link<S>, ct: Var| {
        if let Some((s, i)) = to {
            let (_, cts) = todo.entry(s.id()).or_insert_with(|| (s.clone(), smallvec![None; s.outputs()]));
            accumulate(&mut cts[*i], ct);
        }
    };
    for (to, ct) in seeds {
        send(&mut todo, &to, ct);
    }
    while let Some((_, (s, mut cts))) = todo.pop_last() {
        if s.is_leaf() {
            leaves.extend(cts.pop().flatten().map(|ct| (s, ct)));
        } else {
            pull(&s, &cts, &mut |to, ct| send(&mut todo, to, ct))?;
        }
    }
    Ok(leaves)
}

/// Pull the cotangents `ct` of the outputs `y` back through `op` to the inputs marked in `need`.
pub fn vjp(op: &dyn Op, x: &[Var], y: &[Var], ct: &[Tangent], need: &[bool]) -> Result<Outs<Tangent>> {
    if ct.iter().all(Option::is_none) {
        return Ok(smallvec![None; x.len()]);
    }
    if let Some(g) = op.vjp(ct, x, y, need) {
        g.iter().flatten().try_for_each(|g| g.ok().map(drop))?;
        return Ok(g);
    }
    let scope = next_id();
    let linear = |v: &Var| v.scope() > scope;
    let t: SmallVec<[Tangent; 3]> = x
        .iter()
        .zip(need)
        .map(|(x, &n)| (n && x.dtype().is_differentiable()).then(|| unknown(x.aval())))
        .collect();
    let dy = op.jvp(x, y, &t);
    let mut seeds: SmallVec<[(Link<Call>, Var); 1]> = smallvec![];
    for (t, ct) in dy.iter().zip(ct) {
        if let (Some(t), Some(ct)) = (t, ct)
            && linear(t.ok()?)
        {
            seeds.push((link(t), ct.clone()));
        }
    }
    let leaves = sweep(seeds, |c, cts, send| {
        let x: SmallVec<[Arg; 3]> = c
            .inputs()
            .iter()
            .map(|v| if linear(v) { Arg::Linear(v.aval()) } else { Arg::Known(v.clone()) })
            .collect();
        let op = c.op().expect("leaves are not pulled through");
        for (v, g) in c.inputs().iter().zip(op.transpose(cts, &x)) {
            if let Some(g) = g
                && linear(v)
            {
                send(&link(v), g.ok()?.clone());
            }
        }
        Ok(())
    })?;
    let mut by_id: HashMap<u64, Var> = leaves.into_iter().map(|(c, ct)| (c.id(), ct)).collect();
    Ok(t.iter().map(|t| link(t.as_ref()?).and_then(|(c, _)| by_id.remove(&c.id()))).collect())
}

fn link(v: &Var) -> Link<Call> {
    match v {
        Var::Later(c, i) => Some((c.clone(), *i)),
        _ => None,
    }
}

/// Forward mode through the decomposition of `op`: trace it once, then apply each call together with its
/// tangent.
pub(crate) fn jvp_of_decomposition<P: Primitive>(op: &P, x: &[Var], t: &[Tangent]) -> Outs<Tangent> {
    let slots: Vec<Var> = x.iter().map(|x| input(x.aval())).collect();
    let Some(y) = op.decompose(&slots) else {
        let e = Error::unsupported(P::NAME, x[0].dtype(), "differentiation");
        return smallvec![Some(Var::Failed(e))];
    };
    replay(&slots, x, t, &y).unwrap_or_else(|e| smallvec![Some(Var::Failed(e)); y.len()])
}

fn replay(slots: &[Var], x: &[Var], t: &[Tangent], y: &[Var]) -> Result<Outs<Tangent>> {
    let mut env: HashMap<(u64, usize), (Var, Tangent)> = HashMap::new();
    for ((s, x), t) in slots.iter().zip(x).zip(t) {
        env.insert(key(s), (x.clone(), t.clone()));
    }
    for c in reachable(y) {
        let Some(op) = c.op() else { continue };
        let (x, t): (Vec<Var>, Vec<Tangent>) = c.inputs().iter().map(|v| dual(&env, v)).unzip();
        let y = apply(&**op, &x.iter().collect::<Vec<_>>())?;
        let dy = if t.iter().any(Option::is_some) { op.jvp(&x, &y, &t) } else { smallvec![None; y.len()] };
        for (i, (y, t)) in y.into_iter().zip(dy).enumerate() {
            env.insert((c.id(), i), (y, t));
        }
    }
    Ok(y.iter().map(|v| dual(&env, v).1).collect())
}

fn key(v: &Var) -> (u64, usize) {
    match v {
        Var::Later(c, i) => (c.id(), *i),
        _ => (0, 0),
    }
}

fn dual(env: &HashMap<(u64, usize), (Var, Tangent)>, v: &Var) -> (Var, Tangent) {
    match v {
        Var::Failed(_) => (v.clone(), Some(v.clone())),
        v => env.get(&key(v)).cloned().unwrap_or_else(|| (v.clone(), None)),
    }
}

fn traced_id(op: &'static str, v: &Var) -> Result<u64> {
    match v {
        Var::Later(c, _) => Ok(c.id()),
        Var::Failed(e) => Err(e.clone()),
        Var::Now(_) => Err(Error::runtime_state(op, "the value is not traced")),
    }
}

/// Among the calls of `program`, those that depend on the values `wrt`.
fn active(program: &[Arc<Call>], wrt: &HashSet<(u64, usize)>) -> HashSet<u64> {
    let mut on = HashSet::new();
    for c in program {
        let depends =
            |v: &Var| matches!(v, Var::Later(p, i) if on.contains(&p.id()) || wrt.contains(&(p.id(), *i)));
        if c.inputs().iter().any(depends) {
            on.insert(c.id());
        }
    }
    on
}

/// Cotangents of the traced values `wrt` for cotangents `seeds` of traced values, as further calls; zero
/// where nothing depends on them.
pub fn vjp_traced(seeds: &[(Var, Var)], wrt: &[&Var]) -> Result<Vec<Tangent>> {
    let mut targets = HashSet::new();
    for w in wrt {
        traced_id("vjp", w)?;
        targets.insert(key(w));
    }
    for (y, ct) in seeds {
        y.ok()?;
        ct.ok()?;
    }
    let program = reachable(seeds.iter().map(|(y, _)| y));
    let on = active(&program, &targets);
    let mut found: HashMap<(u64, usize), Tangent> = HashMap::new();
    let enter = |v: &Var| link(v).filter(|(c, _)| on.contains(&c.id()));
    let mut arrive = |v: &Var, ct: &Var| {
        if targets.contains(&key(v)) {
            accumulate(found.entry(key(v)).or_default(), ct.clone());
        }
    };
    for (y, ct) in seeds {
        arrive(y, ct);
    }
    let seeds: Vec<_> = seeds.iter().map(|(y, ct)| (enter(y), ct.clone())).collect();
    sweep(seeds, |c, cts, send| {
        let y: Vec<Var> = (0..c.outputs().len()).map(|i| Var::Later(c.clone(), i)).collect();
        let need: Vec<bool> =
            c.inputs().iter().map(|v| enter(v).is_some() || targets.contains(&key(v))).collect();
        let op = c.op().expect("an active call applies an operation");
        for (v, g) in c.inputs().iter().zip(vjp(&**op, c.inputs(), &y, cts, &need)?) {
            if let Some(g) = g {
                arrive(v, &g);
                send(&enter(v), g);
            }
        }
        Ok(())
    })?;
    wrt.iter().map(|w| found.get(&key(w)).cloned().flatten()).map(Ok).collect()
}

/// Tangents of the traced values `y` for tangents of the traced values `wrt`, as further calls; zero where
/// they do not depend on them.
pub fn jvp_traced(y: &[&Var], wrt: &[(Var, Var)]) -> Result<Vec<Tangent>> {
    let mut t: HashMap<(u64, usize), Tangent> = HashMap::new();
    for (w, dw) in wrt {
        traced_id("jvp", w)?;
        dw.ok()?;
        t.insert(key(w), Some(dw.clone()));
    }
    for y in y {
        y.ok()?;
    }
    let program = reachable(y.iter().copied());
    let on = active(&program, &t.keys().copied().collect());
    for c in program.iter().filter(|c| on.contains(&c.id())) {
        let op = c.op().expect("an active call applies an operation");
        let x: SmallVec<[Tangent; 3]> =
            c.inputs().iter().map(|v| t.get(&key(v)).cloned().flatten()).collect();
        let y: SmallVec<[Var; 3]> = (0..c.outputs().len()).map(|i| Var::Later(c.clone(), i)).collect();
        for (i, dy) in op.jvp(c.inputs(), &y, &x).into_iter().enumerate() {
            if let Some(dy) = &dy {
                dy.ok()?;
            }
            t.entry((c.id(), i)).or_insert(dy);
        }
    }
    Ok(y.iter().map(|y| t.get(&key(y)).cloned().flatten()).collect())
}

/// The tape's reverse sweep from present values with cotangents: what arrives at each leaf, and at the
/// values `wrt` in `found`. With `wrt`, nothing older than the oldest of them is visited, for that cannot depend on
/// them. With `create_graph` the sweep itself is recorded.
fn sweep_tape(
    seeds: &[(&Var, Var)],
    wrt: Option<&[&Var]>,
    create_graph: bool,
) -> Result<(Arrived<Node>, Vec<Tangent>)> {
    let node = |v: &Var| match v {
        Var::Now(n) => n.node().cloned(),
        _ => None,
    };
    let targets: SmallVec<[Link<Node>; 2]> = wrt.into_iter().flatten().map(|w| node(w)).collect();
    let oldest = match wrt {
        Some(_) => targets.iter().flatten().map(|(n, _)| n.id()).min().unwrap_or(u64::MAX),
        None => 0,
    };
    let visited = |(n, _): &(Arc<Node>, usize)| n.id() >= oldest;
    let mut found: Vec<Tangent> = vec![None; targets.len()];
    let mut arrive = |to: &Link<Node>, ct: &Var| {
        let Some((n, i)) = to else { return };
        for (target, slot) in targets.iter().zip(&mut found) {
            if matches!(target, Some((m, j)) if m.id() == n.id() && i == j) {
                accumulate(slot, ct.clone());
            }
        }
    };
    let run = || {
        let mut start = Vec::with_capacity(seeds.len());
        for (y, ct) in seeds {
            let to = node(y).filter(visited);
            arrive(&to, ct.ok()?);
            start.push((to, ct.clone()));
        }
        sweep(start, |n, cts, send| {
            let op = n.op().expect("leaves are not pulled through");
            let (x, y) = n.values(create_graph);
            let need: SmallVec<[bool; 3]> = n.parents().map(|p| p.is_some_and(visited)).collect();
            if !need.contains(&true) {
                return Ok(());
            }
            for ((p, g), &need) in n.parents().zip(vjp(op, &x, &y, cts, &need)?).zip(&need) {
                if let (Some(p), Some(g), true) = (p, g, need) {
                    let to = Some(p.clone());
                    arrive(&to, &g);
                    send(&to, g);
                }
            }
            Ok(())
        })
    };
    let leaves = if create_graph { tape::with_grad(run) } else { tape::no_grad(run) }?;
    found.iter().flatten().try_for_each(|g| g.ok().map(drop))?;
    Ok((leaves, found))
}

/// Cotangents of the present values `wrt` for cotangents of present values `seeds`, by the tape.
pub fn vjp_present(seeds: &[(&Var, Var)], wrt: &[&Var], create_graph: bool) -> Result<Vec<Tangent>> {
    Ok(sweep_tape(seeds, Some(wrt), create_graph)?.1)
}

/// Adds to the gradient of every leaf that `y` depends on. Nothing is added if anything fails.
pub fn backward(y: &Var, ct: Var) -> Result<()> {
    tape::accumulate(&sweep_tape(&[(y, ct)], None, false)?.0)
}

/// The tangent, or zeros of the shape of `like`.
pub fn or_zero(t: Tangent, like: &Var) -> Var {
    t.unwrap_or_else(|| Var::full(&like.aval(), tenferro_tensor::C64::new(0.0, 0.0)))
}

/// One in the shape of the scalar `y`.
///
/// # Errors
/// If `y` has axes, is not a real number, or is an error itself.
pub fn unit_cotangent(op: &'static str, y: &Var) -> Result<Var> {
    let a = y.ok()?.aval();
    if a.shape.iter().any(|d| *d != Dim::Lit(1)) || !a.dtype.is_float() {
        return Err(Error::non_scalar(op, "the differentiated value", a, "one real number"));
    }
    Ok(y.like(1.0))
}
