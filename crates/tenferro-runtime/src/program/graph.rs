//! The calls of a program as a list.
//!
//! Invariant: a node's operands, and the calls whose data decide an extent it is parametrised by, stand
//! before it. So every pass is one walk over the list, forwards or backwards, and nothing recurses.

use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
pub(super) use tenferro_core_ops::Ref;
use tenferro_core_ops::{Atom, Aval, Dim, Op, Outs};
use tenferro_tensor::Value;

/// Operands of a node.
pub(super) type Refs = SmallVec<[Ref; 3]>;

/// Where the outputs of a node come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Given at each run.
    Input,
    /// Known before the first run, one value per output; the number tells constants apart.
    Constant(Outs<Value>, u128),
    /// An operation on the operands.
    Op(Arc<dyn Op>),
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) source: Source,
    pub(super) x: Refs,
    pub(super) y: Outs<Aval<Dim>>,
}

/// The extent that decides the value of an atom once the node has run.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) at: Ref,
    pub(super) axis: usize,
    pub(super) atom: Atom,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// The nodes of the program inputs, in order.
    pub(super) inputs: Vec<u32>,
    pub(super) outputs: Vec<Ref>,
    pub(super) definitions: Vec<Definition>,
}

/// A map whose keys are hashes already.
pub(super) type ByHash<K, V> = HashMap<K, V, BuildHasherDefault<FoldHasher>>;

/// Mixes words with one multiplication each; the keys are ids and structural hashes, which nobody chooses.
#[derive(Default)]
pub(super) struct FoldHasher(u64);

impl Hasher for FoldHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, n: u64) {
        let p = (self.0 ^ n ^ 0x9e37_79b9_7f4a_7c15) as u128 * 0xa076_1d64_78bd_642f;
        self.0 = p as u64 ^ (p >> 64) as u64;
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n as u64)
    }
    fn write_u128(&mut self, n: u128) {
        self.write_u64(n as u64 ^ (n >> 64) as u64)
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64)
    }
}

impl Node {
    pub(super) fn op(&self) -> Option<&Arc<dyn Op>> {
        match &self.source {
            Source::Op(op) => Some(op),
            _ => None,
        }
    }
}

impl Graph {
    pub(super) fn aval(&self, r: Ref) -> &Aval<Dim> {
        &self.nodes[r.node as usize].y[r.output as usize]
    }

    /// The dtype that kernels of a node are listed under.
    pub(super) fn dtype(&self, node: &Node) -> tenferro_tensor::DType {
        node.x.first().map_or(node.y[0].dtype, |&r| self.aval(r).dtype)
    }

    /// Which node decides an atom.
    pub(super) fn defined(&self) -> HashMap<&Atom, u32> {
        self.definitions.iter().map(|d| (&d.atom, d.at.node)).collect()
    }

    /// The graph without what no output needs. Inputs stay.
    pub(super) fn pruned(mut self) -> Graph {
        let mut live = vec![false; self.nodes.len()];
        for r in &self.outputs {
            live[r.node as usize] = true;
        }
        for &i in &self.inputs {
            live[i as usize] = true;
        }
        let defined = self.defined();
        for i in (0..self.nodes.len()).rev() {
            if !live[i] {
                continue;
            }
            let node = &self.nodes[i];
            for r in &node.x {
                live[r.node as usize] = true;
            }
            for_each_atom(node, &mut |a| {
                if let Some(&d) = defined.get(a) {
                    live[d as usize] = true;
                }
            });
        }
        if live.iter().all(|&l| l) {
            return self;
        }
        let mut at = vec![u32::MAX; self.nodes.len()];
        let mut nodes = Vec::new();
        for (i, node) in self.nodes.drain(..).enumerate() {
            if live[i] {
                at[i] = nodes.len() as u32;
                nodes.push(node);
            }
        }
        self.nodes = nodes;
        self.renumber(&at);
        self
    }

    /// Node `i` is now node `at[i]`; what refers to a node that is gone goes too.
    fn renumber(&mut self, at: &[u32]) {
        let moved = |r: &mut Ref| r.node = at[r.node as usize];
        self.nodes.iter_mut().flat_map(|n| &mut n.x).for_each(moved);
        self.outputs.iter_mut().for_each(moved);
        self.definitions.iter_mut().for_each(|d| moved(&mut d.at));
        self.definitions.retain(|d| d.at.node != u32::MAX);
        self.inputs.iter_mut().for_each(|i| *i = at[*i as usize]);
    }
}

/// Calls `f` on the atoms of the extents that parametrise a node.
pub(super) fn for_each_atom(node: &Node, f: &mut dyn FnMut(&Atom)) {
    if let Some(op) = node.op() {
        op.dims().iter().for_each(|d| d.for_each_atom(f));
    }
}
