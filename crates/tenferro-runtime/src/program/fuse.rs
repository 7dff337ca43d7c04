//! Elementwise fusion: calls over one index space become one [`Fused`] call, whose intermediates never reach
//! memory.
//!
//! Give every call a stage: an elementwise call has the largest of its operands' stages, any other call that
//! reads an elementwise result comes one stage later. Then no path leads from an elementwise call of a stage
//! through a call of another kind back to the same stage, so the elementwise calls of one stage that are
//! linked by operands can run at once. Each is first moved to the latest stage its readers allow, so that it
//! meets them there. A group larger than [`MOST`] is cut in its order of calls, which makes no cycle either.

use super::graph::{Graph, Node, Ref, Refs, Source, for_each_atom};
use smallvec::SmallVec;
use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};
use tenferro_core_ops::{
    Op, Outs,
    ops::{Fused, Step},
};

/// Most steps of a group: enough to hide the traffic to memory, few enough for their tiles to stay in cache.
const MOST: usize = 32;

/// Whether a node could be a step: one result, of the extents of every operand.
fn is_elementwise(g: &Graph, node: &Node) -> bool {
    let Source::Op(op) = &node.source else { return false };
    op.is_elementwise()
        && node.y.len() == 1
        && !node.x.is_empty()
        && op.dims().is_empty()
        && op.chain().is_none()
        && node.x.iter().all(|&r| g.aval(r).shape == node.y[0].shape)
}

/// The stage of every node.
fn stages(g: &Graph, fusible: &[bool]) -> Vec<u32> {
    let defined = g.defined();
    let mut stage = vec![0u32; g.nodes.len()];
    for (i, node) in g.nodes.iter().enumerate() {
        let mut first = 0;
        let mut after = |n: u32| {
            first = first.max(stage[n as usize] + u32::from(fusible[n as usize] && !fusible[i]));
        };
        node.x.iter().for_each(|r| after(r.node));
        if !defined.is_empty() {
            for_each_atom(node, &mut |a| defined.get(a).into_iter().for_each(|&n| after(n)));
        }
        stage[i] = first;
    }
    let mut latest = vec![u32::MAX; g.nodes.len()];
    for r in &g.outputs {
        latest[r.node as usize] = stage[r.node as usize];
    }
    for (i, node) in g.nodes.iter().enumerate().rev() {
        if fusible[i] && latest[i] != u32::MAX {
            stage[i] = latest[i];
        }
        let allowed = if fusible[i] { stage[i] } else { stage[i].saturating_sub(1) };
        for r in &node.x {
            let l = &mut latest[r.node as usize];
            *l = allowed.min(*l);
        }
    }
    stage
}

/// The group of every node, by the number of its first member; a node alone is its own group.
fn groups(g: &Graph, fusible: &[bool]) -> Vec<u32> {
    let stage = stages(g, fusible);
    let mut parent: Vec<u32> = (0..g.nodes.len() as u32).collect();
    fn root(parent: &mut [u32], mut i: u32) -> u32 {
        while parent[i as usize] != i {
            parent[i as usize] = parent[parent[i as usize] as usize];
            i = parent[i as usize];
        }
        i
    }
    for (i, node) in g.nodes.iter().enumerate().filter(|(i, _)| fusible[*i]) {
        for r in &node.x {
            if fusible[r.node as usize] && stage[r.node as usize] == stage[i] {
                let (a, b) = (root(&mut parent, r.node), root(&mut parent, i as u32));
                parent[a.max(b) as usize] = a.min(b);
            }
        }
    }
    // Cut into pieces of at most MOST members.
    let mut pieces: Vec<(u32, usize)> = vec![(0, 0); g.nodes.len()];
    (0..g.nodes.len() as u32)
        .map(|i| {
            let (first, size) = &mut pieces[root(&mut parent, i) as usize];
            if *size % MOST == 0 {
                *first = i;
            }
            *size += 1;
            *first
        })
        .collect()
}

/// The graph with its elementwise calls in groups; `can_run` says which calls, and which groups, the backend
/// can run so.
pub(super) fn fuse(g: &Graph, mut can_run: impl FnMut(&Graph, &dyn Op, &[Ref]) -> bool) -> Graph {
    let fusible: Vec<bool> = (g.nodes.iter())
        .map(|n| is_elementwise(g, n) && n.op().is_some_and(|op| can_run(g, &**op, &n.x)))
        .collect();
    let mut group = groups(g, &fusible);
    let mut members: Vec<SmallVec<[u32; 1]>> = vec![SmallVec::new(); g.nodes.len()];
    for (i, &first) in group.iter().enumerate() {
        members[first as usize].push(i as u32);
    }
    let mut needed = vec![false; g.nodes.len()];
    for r in (g.outputs.iter()).chain(g.definitions.iter().map(|d| &d.at)) {
        needed[r.node as usize] = true;
    }
    for (i, node) in g.nodes.iter().enumerate() {
        for r in node.x.iter().filter(|r| group[r.node as usize] != group[i]) {
            needed[r.node as usize] = true;
        }
    }
    let mut fused: Vec<Option<Node>> = vec![None; g.nodes.len()];
    for first in 0..g.nodes.len() {
        if members[first].len() < 2 {
            continue;
        }
        let node = merge(g, &members[first], &needed);
        if can_run(g, &**node.op().expect("a group is an operation"), &node.x) {
            fused[first] = Some(node);
        } else {
            for m in std::mem::take(&mut members[first]) {
                group[m as usize] = m;
                members[m as usize].push(m);
            }
        }
    }
    arrange(g, &group, &members, fused, &needed)
}

/// One node for the calls `members`, with those results as outputs that are `needed` elsewhere.
fn merge(g: &Graph, members: &[u32], needed: &[bool]) -> Node {
    let inside = |r: Ref| members.binary_search(&r.node).ok();
    let mut inputs = Refs::new();
    for r in members.iter().flat_map(|&m| &g.nodes[m as usize].x) {
        if inside(*r).is_none() && !inputs.contains(r) {
            inputs.push(*r);
        }
    }
    let argument = |r: &Ref| match inside(*r) {
        Some(step) => (inputs.len() + step) as u32,
        None => inputs.iter().position(|i| i == r).expect("the list of what is outside") as u32,
    };
    let steps: Arc<[Step]> = (members.iter())
        .map(|&m| {
            let node = &g.nodes[m as usize];
            Step {
                op: node.op().expect("members are operations").clone(),
                x: node.x.iter().map(argument).collect(),
            }
        })
        .collect();
    let outputs: SmallVec<[u32; 2]> =
        (0..members.len()).filter(|&s| needed[members[s] as usize]).map(|s| s as u32).collect();
    let y: Outs<_> = outputs.iter().map(|&s| g.nodes[members[s as usize] as usize].y[0].clone()).collect();
    Node { source: Source::Op(Arc::new(Fused::new(inputs.len(), steps, outputs))), x: inputs, y }
}

/// The groups in an order in which operands come first, otherwise as they were recorded.
fn arrange(
    g: &Graph,
    group: &[u32],
    members: &[SmallVec<[u32; 1]>],
    mut fused: Vec<Option<Node>>,
    needed: &[bool],
) -> Graph {
    let n = g.nodes.len();
    let defined = g.defined();
    let mut waits = vec![0u32; n];
    let mut readers: Vec<SmallVec<[u32; 4]>> = vec![SmallVec::new(); n];
    for (i, node) in g.nodes.iter().enumerate() {
        let mut link = |from: u32| {
            let (from, to) = (group[from as usize], group[i]);
            if from != to {
                readers[from as usize].push(to);
                waits[to as usize] += 1;
            }
        };
        node.x.iter().for_each(|r| link(r.node));
        if !defined.is_empty() {
            for_each_atom(node, &mut |a| {
                defined.get(a).into_iter().for_each(|&d| link(d));
            });
        }
    }
    let last = |first: u32| *members[first as usize].last().expect("a group has a first member");
    let mut ready: BinaryHeap<Reverse<(u32, u32)>> = (0..n as u32)
        .filter(|&i| group[i as usize] == i && waits[i as usize] == 0)
        .map(|i| Reverse((last(i), i)))
        .collect();
    let mut at = vec![Ref { node: u32::MAX, output: 0 }; n];
    let mut out = Graph::default();
    while let Some(Reverse((_, first))) = ready.pop() {
        let id = out.nodes.len() as u32;
        let mut node = match fused[first as usize].take() {
            Some(node) => {
                let results = members[first as usize].iter().filter(|&&m| needed[m as usize]);
                for (output, &m) in results.enumerate() {
                    at[m as usize] = Ref { node: id, output: output as u32 };
                }
                node
            }
            None => {
                at[first as usize] = Ref { node: id, output: 0 };
                g.nodes[first as usize].clone()
            }
        };
        node.x.iter_mut().for_each(|r| *r = moved(&at, *r));
        out.nodes.push(node);
        for &r in &readers[first as usize] {
            waits[r as usize] -= 1;
            if waits[r as usize] == 0 {
                ready.push(Reverse((last(r), r)));
            }
        }
    }
    out.inputs = g.inputs.iter().map(|&i| at[i as usize].node).collect();
    out.outputs = g.outputs.iter().map(|&r| moved(&at, r)).collect();
    out.definitions = g.definitions.clone();
    out.definitions.iter_mut().for_each(|d| d.at = moved(&at, d.at));
    out
}

fn moved(at: &[Ref], r: Ref) -> Ref {
    let to = at[r.node as usize];
    Ref { node: to.node, output: to.output + r.output }
}
