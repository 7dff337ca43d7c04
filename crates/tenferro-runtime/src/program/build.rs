//! From recorded calls to a graph: equal calls become one node, and each is simplified on the way.

use super::{
    graph::{ByHash, Definition, Graph, Node, Ref, Refs, Source},
    simplify::simplify,
};
use smallvec::{SmallVec, smallvec};
use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};
use tenferro_core_ops::{
    Atom, Aval, Call, Digest, Dim, Op, Outs, Rewrite, Source as Traced, Var, aval_of, hash_value,
};
use tenferro_tensor::{Error, Result, Value};

/// The outputs of calls that are in the graph, by the id of the call.
pub(super) type Placed = ByHash<u64, SmallVec<[Ref; 1]>>;

#[derive(Default)]
pub(super) struct Builder {
    graph: Graph,
    /// The first output of the node with this structural hash.
    known: ByHash<u128, u32>,
}

impl Builder {
    /// The graph, of which `outputs` are wanted.
    pub(super) fn finish(mut self, outputs: impl IntoIterator<Item = Ref>) -> Graph {
        self.graph.outputs = outputs.into_iter().collect();
        self.graph.pruned()
    }

    pub(super) fn aval(&self, r: Ref) -> &Aval<Dim> {
        self.graph.aval(r)
    }

    fn push(&mut self, source: Source, x: Refs, y: Outs<Aval<Dim>>) -> u32 {
        let id = u32::try_from(self.graph.nodes.len()).expect("fewer than 2^32 calls fit in memory");
        self.graph.nodes.push(Node { source, x, y });
        id
    }

    pub(super) fn input(&mut self, aval: Aval<Dim>) -> Ref {
        let node = self.push(Source::Input, smallvec![], smallvec![aval]);
        self.graph.inputs.push(node);
        Ref { node, output: 0 }
    }

    /// Constants that are told apart by `identity` alone.
    pub(super) fn constants(&mut self, values: Outs<Value>, identity: u128) -> Outs<Ref> {
        let n = values.len() as u32;
        let node = match self.known.get(&identity) {
            Some(&node) => node,
            None => {
                let y = values.iter().map(|v| aval_of(v).symbolic()).collect();
                let node = self.push(Source::Constant(values, identity), smallvec![], y);
                self.known.insert(identity, node);
                node
            }
        };
        (0..n).map(|output| Ref { node, output }).collect()
    }

    /// A present value: a number merges with equal ones, a larger tensor with itself.
    fn present(&mut self, v: &Value) -> Ref {
        let mut h = Digest::default();
        hash_value(v, &mut h);
        self.constants(smallvec![v.clone()], h.finish128())[0]
    }

    /// The outputs of `op` on `x`, whose dtypes and extents are `y`.
    pub(super) fn apply(&mut self, op: &Arc<dyn Op>, x: &[Ref], y: &[Aval<Dim>]) -> Outs<Ref> {
        let (mut op, mut x) = (op.clone(), Refs::from_slice(x));
        while let Some(better) = simplify(&self.graph, &*op, &x, y) {
            match better {
                Rewrite::Same(v) => return smallvec![v.at()],
                Rewrite::Call(o, operands) => (op, x) = (o, operands.iter().map(|v| v.at()).collect()),
            }
        }
        let mut h = Digest::default();
        op.digest(&mut h);
        let mut ordered = x.clone();
        if op.commutes() {
            ordered.sort();
        }
        for r in &ordered {
            h.write_u64((r.node as u64) << 32 | r.output as u64);
        }
        let key = h.finish128();
        let node = match self.known.get(&key) {
            Some(&node) if self.graph.nodes[node as usize].op().is_some_and(|o| **o == *op) => node,
            _ => {
                let node = self.push(Source::Op(op), x, y.into());
                self.known.insert(key, node);
                node
            }
        };
        (0..y.len() as u32).map(|output| Ref { node, output }).collect()
    }

    /// The value of `atom` is the extent of `axis` of `at`.
    pub(super) fn define(&mut self, atom: &Atom, at: Ref, axis: usize) {
        let known = |d: &Definition| d.at == at && d.axis == axis && d.atom == *atom;
        if !self.graph.definitions.iter().rev().take(8).any(known) {
            self.graph.definitions.push(Definition { at, axis, atom: atom.clone() });
        }
    }

    /// Adds calls, oldest first; those in `placed` are there already.
    ///
    /// # Errors
    /// [`Error::UnknownInput`] for a placeholder that is not in `placed`.
    pub(super) fn import(&mut self, calls: &[Arc<Call>], placed: &mut Placed) -> Result<()> {
        for c in calls {
            if placed.contains_key(&c.id()) {
                continue;
            }
            let refs = match c.source() {
                Traced::Input => {
                    let got = format!("one of {} that is not listed", c.outputs()[0]);
                    let expected = "only the listed inputs of the program";
                    return Err(Error::unknown_input("compile", "input", got, expected));
                }
                Traced::Constant(v) => {
                    let mut h = Digest::default();
                    (u64::MAX, c.id()).hash(&mut h);
                    self.constants(smallvec![v.clone()], h.finish128())
                }
                Traced::Op(op) => {
                    let x = c.inputs().iter().map(|v| self.place(v, placed)).collect::<Result<Refs>>()?;
                    let refs = self.apply(op, &x, c.outputs());
                    for (a, &r) in c.outputs().iter().zip(&refs) {
                        for (axis, d) in a.shape.iter().enumerate() {
                            if let Some(atom @ Atom::Data { call, .. }) = d.as_atom()
                                && *call == c.hash()
                            {
                                self.define(atom, r, axis);
                            }
                        }
                    }
                    refs
                }
            };
            placed.insert(c.id(), refs);
        }
        Ok(())
    }

    /// Where a value is, all of whose calls have been imported.
    pub(super) fn place(&mut self, v: &Var, placed: &Placed) -> Result<Ref> {
        match v {
            Var::Now(n) => Ok(self.present(n.value())),
            Var::Later(c, i) => Ok(placed[&c.id()][*i]),
            Var::Failed(e) => Err(e.clone()),
        }
    }
}
