//! Programs as text.

use super::graph::{Graph, Node, Ref, Source};
use smallvec::SmallVec;
use std::fmt::Write;
use tenferro_core_ops::{Aval, Dim, Extent, Op, ops::Fused};

pub(super) fn explain(g: &Graph) -> String {
    let mut s = String::from("program(");
    for (k, &i) in g.inputs.iter().enumerate() {
        let comma = if k > 0 { ", " } else { "" };
        write!(s, "{comma}%{i}: {}", g.nodes[i as usize].y[0]).expect("a string can be written to");
    }
    let (mut calls, mut flops, mut bytes) = (0, Dim::Lit(0), Dim::Lit(0));
    s.push_str(")\n");
    for (i, node) in g.nodes.iter().enumerate() {
        let y: Vec<String> = node.y.iter().map(Aval::to_string).collect();
        match &node.source {
            Source::Input => continue,
            Source::Constant(..) => writeln!(s, "%{i} = constant : {}", y.join(", ")),
            Source::Op(op) => {
                calls += 1;
                let x: Vec<String> = node.x.iter().map(|&r| name(g, r)).collect();
                let cost = match cost(g, node, &**op) {
                    _ if op.is_view() => "view".to_owned(),
                    (f, b) => {
                        bytes = bytes.add(&b);
                        let known = f.map(|f| {
                            flops = flops.add(&f);
                            format!("{f} flops, ")
                        });
                        format!("{}{b} bytes", known.unwrap_or_default())
                    }
                };
                let written =
                    writeln!(s, "%{i} = {}({}) : {}  [{cost}]", op.name(), x.join(", "), y.join(", "));
                if let Some(f) = op.chain() {
                    steps(&mut s, g, node, f);
                }
                written
            }
        }
        .expect("a string can be written to");
    }
    let outputs: Vec<String> = g.outputs.iter().map(|&r| name(g, r)).collect();
    let total = format!("{calls} calls, {flops} flops, {bytes} bytes");
    writeln!(s, "return {}  [{total}]", outputs.join(", ")).expect("a string can be written to");
    s
}

fn name(g: &Graph, r: Ref) -> String {
    match g.nodes[r.node as usize].y.len() {
        1 => format!("%{}", r.node),
        _ => format!("%{}.{}", r.node, r.output),
    }
}

/// The steps of a group; `.k` is step `k`.
fn steps(s: &mut String, g: &Graph, node: &Node, f: &Fused) {
    for (k, step) in f.steps().iter().enumerate() {
        let x: Vec<String> = (step.x.iter())
            .map(|&a| match node.x.get(a as usize) {
                Some(&r) => name(g, r),
                None => format!(".{}", a as usize - f.inputs()),
            })
            .collect();
        let output = f.outputs().iter().position(|&o| o as usize == k);
        let output = output.map_or(String::new(), |o| format!("  -> output {o}"));
        writeln!(s, "    .{k} = {}({}){output}", step.op.name(), x.join(", "))
            .expect("a string can be written to");
    }
}

/// Floating-point operations, where there is a rule, and bytes read and written.
fn cost(g: &Graph, node: &Node, op: &dyn Op) -> (Option<Dim>, Dim) {
    let x: SmallVec<[&Aval<Dim>; 3]> = node.x.iter().map(|&r| g.aval(r)).collect();
    let size = |a: &Aval<Dim>| a.count().mul(&Dim::Lit(a.dtype.size()));
    let bytes = x.iter().copied().chain(&node.y).fold(Dim::Lit(0), |n, a| n.add(&size(a)));
    (op.flops(&x, &node.y), bytes)
}
