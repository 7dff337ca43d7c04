//! From a bound graph to instructions over numbered values.
//!
//! Values are numbered program inputs first, then constants, then the results of instructions, each of which
//! has a slot for a tensor. A view has a number of its own, but its elements are in the slot of another value
//! unless it had to be copied. Liveness counts a use of a view as a use of that other value.

use super::graph::{Graph, Source};
use smallvec::SmallVec;
use std::sync::Arc;
use tenferro_core_ops::{Atom, Aval, Backend, Dim, Env, Kernel, Op};
use tenferro_tensor::{Error, Result, Value};

/// An operand of an instruction.
#[derive(Clone, Copy)]
pub(super) struct Arg {
    pub(super) value: u32,
    /// Nobody reads these elements again, and no other operand does: their buffer may be taken.
    pub(super) last: bool,
}

/// How an instruction runs.
pub(super) enum Step {
    /// Another layout of the operand's elements.
    View,
    /// A kernel.
    Kernel(Kernel),
}

pub(super) struct Instruction {
    pub(super) op: Arc<dyn Op>,
    pub(super) step: Step,
    pub(super) x: SmallVec<[Arg; 3]>,
    /// Number of the first result.
    pub(super) y: u32,
    pub(super) outputs: u32,
    /// Parameters are replaced by their values before the shape rule runs.
    pub(super) symbolic: bool,
    /// Extents that only the kernel knows: output, axis, atom.
    pub(super) decides: Vec<(u32, usize, Atom)>,
    /// It has one result, of extents known before, whose buffer is no output's.
    pub(super) inner: bool,
    /// Values whose slots are emptied afterwards.
    pub(super) dead: SmallVec<[u32; 2]>,
    /// What an error calls it.
    pub(super) node: u32,
}

/// An output of the program.
pub(super) struct Output {
    pub(super) value: u32,
    /// The tensor may be moved out: no later output has these elements.
    pub(super) last: bool,
}

/// An extent of an input.
pub(super) struct Axis {
    pub(super) input: usize,
    pub(super) axis: usize,
    pub(super) extent: Dim,
}

pub(super) struct Lowered {
    pub(super) inputs: Vec<Aval<Dim>>,
    /// Input axes that bind a symbol first, then those that are checked.
    pub(super) axes: Vec<Axis>,
    pub(super) constants: Vec<Value>,
    pub(super) instructions: Vec<Instruction>,
    pub(super) outputs: Vec<Output>,
    /// Values whose slots are emptied after the outputs have been taken.
    pub(super) at_end: Vec<u32>,
    /// Number of values.
    pub(super) values: usize,
    /// Number of the first value that has a slot.
    pub(super) first_slot: u32,
    /// Atoms that constants decide.
    pub(super) env: Env,
    pub(super) graph: Graph,
}

const NEVER: u32 = u32::MAX;
const AT_END: u32 = u32::MAX - 1;

pub(super) fn lower(graph: Graph, env: Env, backend: &dyn Backend) -> Result<Lowered> {
    let inputs: Vec<Aval<Dim>> = graph.inputs.iter().map(|&i| graph.nodes[i as usize].y[0].clone()).collect();
    let mut number = vec![0u32; graph.nodes.len()];
    for (k, &i) in graph.inputs.iter().enumerate() {
        number[i as usize] = k as u32;
    }
    let mut constants = Vec::new();
    for (i, node) in graph.nodes.iter().enumerate() {
        if let Source::Constant(v, _) = &node.source {
            number[i] = (inputs.len() + constants.len()) as u32;
            constants.extend(v.iter().cloned());
        }
    }
    let first_slot = (inputs.len() + constants.len()) as u32;
    let mut values = first_slot;
    let mut instructions = Vec::new();
    // The value whose slot has the elements of value i.
    let mut root: Vec<u32> = (0..first_slot).collect();
    for (i, node) in graph.nodes.iter().enumerate() {
        let Source::Op(op) = &node.source else { continue };
        let x: SmallVec<[Arg; 3]> =
            (node.x.iter()).map(|r| Arg { value: number[r.node as usize] + r.output, last: false }).collect();
        let step = if op.is_view() {
            Step::View
        } else {
            let dtype = graph.dtype(node);
            let kernel = backend.kernel(&**op, dtype);
            Step::Kernel(kernel.ok_or_else(|| Error::unsupported(op.name(), dtype, backend.name()))?)
        };
        number[i] = values;
        for k in 0..node.y.len() as u32 {
            root.push(if op.is_view() { root[x[0].value as usize] } else { values + k });
        }
        instructions.push(Instruction {
            op: op.clone(),
            step,
            x,
            y: values,
            outputs: node.y.len() as u32,
            symbolic: op.is_symbolic(),
            decides: Vec::new(),
            inner: false,
            dead: SmallVec::new(),
            node: i as u32,
        });
        values += node.y.len() as u32;
    }
    for d in &graph.definitions {
        let y = number[d.at.node as usize];
        if let Ok(k) = instructions.binary_search_by_key(&y, |i: &Instruction| i.y) {
            instructions[k].decides.push((d.at.output, d.axis, d.atom.clone()));
        }
    }
    let mut outputs: Vec<Output> = (graph.outputs.iter())
        .map(|r| Output { value: number[r.node as usize] + r.output, last: false })
        .collect();
    let mut last = vec![NEVER; values as usize];
    let mut moved = std::collections::HashSet::new();
    for o in outputs.iter_mut().rev() {
        let r = root[o.value as usize];
        o.last = moved.insert(r);
        last[o.value as usize] = AT_END;
        last[r as usize] = AT_END;
    }
    for k in (0..instructions.len()).rev() {
        let i = &instructions[k];
        let now = k as u32;
        // The walk is backwards, but what a view of a copy needs may be later than what comes after the view.
        let mark = |last: &mut [u32], v: u32, at: u32| {
            let l = &mut last[v as usize];
            *l = if *l == NEVER { at } else { at.max(*l) };
        };
        (i.y..i.y + i.outputs).for_each(|v| mark(&mut last, v, now));
        // A view that was copied lives as long as the views of it.
        let until = if matches!(i.step, Step::View) { last[i.y as usize] } else { now };
        for a in &i.x {
            mark(&mut last, a.value, until);
            mark(&mut last, root[a.value as usize], now);
        }
    }
    for (k, i) in instructions.iter_mut().enumerate() {
        for at in 0..i.x.len() {
            let v = i.x[at].value;
            let r = root[v as usize];
            let shared = |(b, a): (usize, &Arg)| b != at && root[a.value as usize] == r;
            let done = [v, r].iter().all(|&v| last[v as usize] == k as u32);
            i.x[at].last = done && !i.x.iter().enumerate().any(shared);
        }
        i.inner = i.outputs == 1 && i.decides.is_empty() && last[i.y as usize] != AT_END;
    }
    let mut at_end = Vec::new();
    for v in first_slot..values {
        match last[v as usize] {
            AT_END => at_end.push(v),
            k => instructions[k as usize].dead.push(v),
        }
    }
    let axes = axes(&inputs);
    let values = values as usize;
    Ok(Lowered { inputs, axes, constants, instructions, outputs, at_end, values, first_slot, env, graph })
}

/// The axes of the inputs, those that bind a symbol before those that are checked with its value.
fn axes(inputs: &[Aval<Dim>]) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    for (input, a) in inputs.iter().enumerate() {
        axes.extend(a.shape.iter().enumerate().map(|(axis, d)| Axis { input, axis, extent: d.clone() }));
    }
    axes.sort_by_key(|a| !matches!(a.extent.as_atom(), Some(Atom::Symbol(_))));
    axes
}
