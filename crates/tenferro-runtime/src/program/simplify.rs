//! Rewrites of one call, as its operation knows them.
//!
//! Invariant: they keep every check of extents. A call only becomes a value of provably the same extents, and an
//! elementwise call is only rewritten where its operands provably have the extents of the result, as a rewrite may
//! drop any of them.

use super::graph::{Graph, Ref, Source};
use tenferro_core_ops::{Aval, Calls, Dim, Op, Rewrite, Term, Terms};
use tenferro_tensor::Value;

impl Calls for Graph {
    fn aval(&self, r: Ref) -> &Aval<Dim> {
        self.aval(r)
    }
    fn call(&self, r: Ref) -> Option<(&dyn Op, &[Ref])> {
        let node = &self.nodes[r.node as usize];
        Some((&**node.op()?, &node.x))
    }
    fn constant(&self, r: Ref) -> Option<&Value> {
        match &self.nodes[r.node as usize].source {
            Source::Constant(v, _) => Some(&v[r.output as usize]),
            _ => None,
        }
    }
}

/// A better form of `op` on `x`, if there is one.
pub(super) fn simplify<'a>(g: &'a Graph, op: &dyn Op, x: &[Ref], y: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
    if op.is_elementwise() && x.iter().any(|&r| g.aval(r).shape != y[0].shape) {
        return None;
    }
    let x: Terms<'a> = x.iter().map(|&r| Term::new(g, r)).collect();
    let better = op.simplify(&x, y)?;
    match &better {
        Rewrite::Same(v) if y != std::slice::from_ref(v.aval()) => None,
        _ => Some(better),
    }
}
