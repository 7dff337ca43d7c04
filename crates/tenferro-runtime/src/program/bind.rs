//! What happens to a program when it first meets a backend: calls without a kernel there are expanded, calls
//! on constants run, elementwise calls are fused, kernels are looked up.

use super::{
    build::{Builder, Placed},
    fuse::fuse,
    graph::{ByHash, Graph, Node, Ref, Refs, Source},
};
use smallvec::SmallVec;
use std::{collections::HashMap, hash::Hasher, sync::Arc};
use tenferro_core_ops::{
    Atom, Aval, Backend, Digest, Dim, Env, Op, Operand, Out, Outs, execute, input,
    ops::{Fused, Step},
    reachable,
};
use tenferro_tensor::{DType, Error, Result, Tensor, Value};

/// How deep a decomposition may use operations that have none but a decomposition themselves.
const DEEPEST: usize = 64;

/// The graph as `backend` runs it, and the values of the atoms that constants decide.
pub(super) fn bind(graph: &Graph, backend: &dyn Backend) -> Result<(Graph, Env)> {
    let mut expanded = None;
    for _ in 0..DEEPEST {
        match expand(expanded.as_ref().unwrap_or(graph), backend)? {
            Some(g) => expanded = Some(g),
            None => {
                let mut env = Env::default();
                let g = fold(expanded.unwrap_or_else(|| graph.clone()), backend, &mut env)?.pruned();
                let mut probe = Probe { backend, known: ByHash::default(), empty: HashMap::new() };
                return Ok((fuse(&g, |g, op, x| probe.can_run(g, op, x)), env));
            }
        }
    }
    Err(Error::runtime_state("compile", format!("decompositions nest more than {DEEPEST} deep")))
}

/// The graph with calls that `backend` has no kernel for replaced by their decompositions; `None` if it has
/// all.
fn expand(g: &Graph, backend: &dyn Backend) -> Result<Option<Graph>> {
    let runs = |n: &Node| n.op().is_none_or(|op| op.is_view() || backend.kernel(&**op, g.dtype(n)).is_some());
    if g.nodes.iter().all(runs) {
        return Ok(None);
    }
    let mut b = Builder::default();
    let mut at: Vec<Outs<Ref>> = Vec::with_capacity(g.nodes.len());
    let mut definitions: ByHash<u32, SmallVec<[usize; 1]>> = ByHash::default();
    for (i, d) in g.definitions.iter().enumerate() {
        definitions.entry(d.at.node).or_default().push(i);
    }
    // What the extents of an expanded call are in terms of those of its decomposition.
    let mut renamed: HashMap<Atom, Dim> = HashMap::new();
    for (i, node) in g.nodes.iter().enumerate() {
        let own = definitions.get(&(i as u32)).into_iter().flatten().map(|&d| &g.definitions[d]);
        let x: Refs = node.x.iter().map(|r| at[r.node as usize][r.output as usize]).collect();
        let y = match &node.source {
            Source::Input => SmallVec::from_iter([b.input(node.y[0].clone())]),
            Source::Constant(v, identity) => b.constants(v.clone(), *identity),
            Source::Op(op) if runs(node) => {
                let y = b.apply(&rename_op(op, &renamed), &x, &rename(&node.y, &renamed));
                own.for_each(|d| b.define(&d.atom, y[d.at.output as usize], d.axis));
                y
            }
            Source::Op(op) => {
                let y = decompose(&mut b, &rename_op(op, &renamed), &x, g.dtype(node), backend)?;
                if y.len() != node.y.len() {
                    let what = "outputs of the decomposition";
                    return Err(Error::argument(op.name(), what, y.len(), node.y.len()));
                }
                for d in own {
                    let extent = b.aval(y[d.at.output as usize]).shape[d.axis].clone();
                    renamed.insert(d.atom.clone(), extent);
                }
                y
            }
        };
        at.push(y);
    }
    let outputs = g.outputs.iter().map(|r| at[r.node as usize][r.output as usize]).collect::<Vec<_>>();
    Ok(Some(b.finish(outputs)))
}

fn rename(y: &[Aval<Dim>], to: &HashMap<Atom, Dim>) -> Outs<Aval<Dim>> {
    if to.is_empty() {
        return y.into();
    }
    y.iter()
        .map(|a| Aval::new(a.dtype, a.shape.iter().map(|d| d.substitute(&|a| to.get(a).cloned()))))
        .collect()
}

fn rename_op(op: &Arc<dyn Op>, to: &HashMap<Atom, Dim>) -> Arc<dyn Op> {
    if to.is_empty() || !op.is_symbolic() {
        return op.clone();
    }
    let dims: Vec<Dim> = op.dims().iter().map(|d| d.substitute(&|a| to.get(a).cloned())).collect();
    op.with_dims(&dims)
}

fn decompose(
    b: &mut Builder,
    op: &Arc<dyn Op>,
    x: &[Ref],
    dtype: DType,
    backend: &dyn Backend,
) -> Result<Outs<Ref>> {
    let vars: SmallVec<[_; 3]> = x.iter().map(|&r| input(b.aval(r).clone())).collect();
    let y = op.decompose(&vars).ok_or_else(|| Error::unsupported(op.name(), dtype, backend.name()))?;
    let mut placed = Placed::default();
    for (v, &r) in reachable(&vars).iter().zip(x) {
        placed.insert(v.id(), SmallVec::from_iter([r]));
    }
    b.import(&reachable(&y), &mut placed)?;
    y.iter().map(|v| b.place(v, &placed)).collect()
}

/// Runs the calls that depend on constants alone. They keep their places, as constants.
fn fold(mut g: Graph, backend: &dyn Backend, env: &mut Env) -> Result<Graph> {
    for i in 0..g.nodes.len() {
        let node = &g.nodes[i];
        let source = match &node.source {
            Source::Input => continue,
            Source::Constant(v, identity) => {
                if v.iter().all(|v| v.placement().same_memory(backend.placement())) {
                    continue;
                }
                let here = v.iter().map(|v| moved_to(v, backend)).collect::<Result<_>>()?;
                Source::Constant(here, *identity)
            }
            Source::Op(op) => {
                let constant = |r: &Ref| matches!(g.nodes[r.node as usize].source, Source::Constant(..));
                if !node.x.iter().all(constant) {
                    continue;
                }
                let Some(op) = with_values(op, env) else { continue };
                let x: SmallVec<[&Value; 3]> = node.x.iter().filter_map(|&r| constant_at(&g, r)).collect();
                let y = execute(backend, &*op, &x)?;
                for d in g.definitions.iter().filter(|d| d.at.node == i as u32) {
                    env.bind(d.atom.clone(), y[d.at.output as usize].shape()[d.axis]);
                }
                let mut h = Digest::default();
                op.digest(&mut h);
                for r in &node.x {
                    if let Source::Constant(_, identity) = &g.nodes[r.node as usize].source {
                        h.write_u128(*identity);
                        h.write_u32(r.output);
                    }
                }
                Source::Constant(y, h.finish128())
            }
        };
        g.nodes[i].source = source;
        g.nodes[i].x.clear();
    }
    Ok(g)
}

fn constant_at(g: &Graph, r: Ref) -> Option<&Value> {
    match &g.nodes[r.node as usize].source {
        Source::Constant(v, _) => Some(&v[r.output as usize]),
        _ => None,
    }
}

/// The operation with its symbolic parameters replaced by their values, if all are known.
fn with_values(op: &Arc<dyn Op>, env: &Env) -> Option<Arc<dyn Op>> {
    if !op.is_symbolic() {
        return Some(op.clone());
    }
    let dims: Option<Vec<Dim>> = op.dims().iter().map(|d| d.eval(env).ok().map(Dim::Lit)).collect();
    Some(op.with_dims(&dims?))
}

/// A constant of the host, copied to the backend once; other memories are an error when the call runs.
fn moved_to(v: &Value, backend: &dyn Backend) -> Result<Value> {
    if v.placement().same_memory(backend.placement()) || !v.owner().is_host() {
        return Ok(v.clone());
    }
    Ok(Value::new(backend.upload(v.owner())?).with_layout(v.layout()))
}

/// Finds out whether a backend runs a chain of calls, by running it on no elements.
struct Probe<'a> {
    backend: &'a dyn Backend,
    known: ByHash<u128, bool>,
    empty: HashMap<DType, Tensor>,
}

impl Probe<'_> {
    fn can_run(&mut self, g: &Graph, op: &dyn Op, x: &[Ref]) -> bool {
        let dtypes: SmallVec<[DType; 4]> = x.iter().map(|&r| g.aval(r).dtype).collect();
        if op.chain().is_some() {
            return self.runs(op, &dtypes);
        }
        if !self.backend.kernel(op, dtypes[0]).is_some_and(|k| k.shortcuts().fuses) {
            return false;
        }
        let mut h = Digest::default();
        op.digest(&mut h);
        dtypes.iter().for_each(|&d| h.write_u64(d as u64));
        let key = h.finish128();
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let steps = [Step { op: op.share(), x: (0..x.len() as u32).collect() }];
        let alone = Fused::new(x.len(), Arc::new(steps), SmallVec::from_slice(&[0]));
        let runs = self.runs(&alone, &dtypes);
        self.known.insert(key, runs);
        runs
    }

    fn runs(&mut self, op: &dyn Op, dtypes: &[DType]) -> bool {
        let Some(kernel) = self.backend.kernel(op, dtypes[0]) else { return false };
        for &d in dtypes {
            if !self.empty.contains_key(&d) {
                let none = Tensor::zeros(d, &[0][..]).and_then(|t| self.backend.upload(&t));
                let Ok(none) = none else { return false };
                self.empty.insert(d, none);
            }
        }
        let avals: SmallVec<[Aval; 4]> = dtypes.iter().map(|&d| Aval::new(d, [0])).collect();
        let refs: SmallVec<[&Aval; 4]> = avals.iter().collect();
        let Ok(y) = op.infer_now(&refs) else { return false };
        let mut x: SmallVec<[Operand<'_>; 4]> =
            dtypes.iter().map(|d| Operand::Read((&self.empty[d]).into())).collect();
        // SAFETY: `y` is what the shape rule gave for these operands.
        unsafe { self.backend.run(&kernel, op, &mut x, &y, &mut Out::New) }.is_ok()
    }
}
