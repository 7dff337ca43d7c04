//! How an einsum is carried out: binary contractions in an order, with the axis order of each result.
//!
//! A plan says all that can be known from the labels, so that running it is a loop over [`Plan::steps`]
//! that looks at axes only. It does not depend on extents but through the order chosen for them: a plan
//! is right for any.
//!
//! Axis orders are chosen from the output back to the operands. A contraction gives lhs free axes, rhs
//! free axes, batch axes; which operand is lhs, and the order inside the three groups, are free, and are
//! taken from what the step that uses the result would like to see: free and contracted axes adjacent,
//! contracted axes in the order of the other operand. A permutation is left over only where the output
//! wants the groups interleaved.
//!
//! Invariant: operands are numbered `0..n` and step `k` makes number `n + k`; each number is used once, so
//! what a step reads is dead after it.

use crate::notation::{Labels, Notation};
use crate::order::{Contraction, Network, Optimize, flops, order, to_path};
use crate::rearrange::{Rearrange, distinct, positions};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;
use tenferro_core_ops::ops::DotGeneral;
use tenferro_tensor::Result;

/// An axis number for each of some labels.
pub type Axes = SmallVec<[usize; 6]>;

/// The steps of an einsum: operands are numbered `0..n`, step `k` makes number `n + k`, and each number is
/// used once. Its `Display` is a report of the steps and of what they cost.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    operands: usize,
    steps: Vec<Step>,
    finish: Rearrange,
    embed: Option<Rearrange>,
    path: Vec<(usize, usize)>,
    flops: f64,
    largest: f64,
    written: f64,
}

/// One binary contraction, `out[output] = Σ_contracted lhs · rhs`.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The left operand.
    pub lhs: Operand,
    /// The right operand.
    pub rhs: Operand,
    /// Labels of the result, in axis order.
    pub output: Labels,
    /// Labels of both operands and of the result.
    pub batch: Labels,
    /// Labels of both operands that are summed away.
    pub contracted: Labels,
    /// Labels of the left operand and of the result, in the result's order.
    pub lhs_free: Labels,
    /// Labels of the right operand and of the result, in the result's order.
    pub rhs_free: Labels,
    /// The same in axes of the operands.
    pub kind: Kind,
    /// Arithmetic operations at the planned extents: a multiplication, and an addition where labels are
    /// contracted, for each element of the iteration space.
    pub flops: f64,
    /// Elements of the result at the planned extents.
    pub elements: f64,
}

/// What an operand of a [`Step`] is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operand {
    /// The number of an operand of the einsum or of an earlier step's result.
    pub slot: usize,
    /// What is done to it before: diagonals and sums of labels that it has alone, and a permutation where
    /// its free axes are not in the order of the result.
    pub prepare: Rearrange,
}

/// The operation of a [`Step`], in axes of the prepared operands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A contraction, or an outer product; the result has lhs free axes, rhs free axes, batch axes.
    Dot(DotGeneral),
    /// Nothing is summed: an elementwise product of the operands broadcast to the result, whose axes have
    /// just the order wanted.
    Multiply {
        /// For each axis of lhs, its axis in the result.
        lhs_axes: Axes,
        /// For each axis of rhs, its axis in the result.
        rhs_axes: Axes,
    },
}

impl Plan {
    /// Plans `notation` for labels whose extents are `weight`; for a symbolic extent, give a typical one.
    ///
    /// One or two operands need no search.
    ///
    /// # Errors
    /// `Argument` for an [`Optimize::Path`] that is none for these operands, or too many operands for
    /// [`Optimize::Optimal`].
    pub fn new(notation: &Notation, weight: impl Fn(u32) -> f64, optimize: &Optimize) -> Result<Plan> {
        let inputs = notation.inputs();
        let (names, net) = network(notation, &weight);
        let named = |labels: &[u32]| -> Labels { labels.iter().map(|l| names[*l as usize]).collect() };
        let size = |labels: &[u32]| -> f64 { labels.iter().map(|l| weight(*l)).product() };
        let pairs = order(&net, optimize)?;

        let output = distinct(notation.output());
        let embed = (output[..] != *notation.output()).then(|| Rearrange::new(notation.output(), &output));
        let mut plan = Plan {
            operands: inputs.len(),
            steps: Vec::with_capacity(pairs.len()),
            finish: Rearrange::new(&inputs[0], &output),
            embed,
            path: to_path(inputs.len(), &pairs),
            flops: 0.0,
            largest: size(notation.output()),
            written: 0.0,
        };
        // Axis labels of every number: of the operands, what is left after diagonals and sums.
        let mut axes: Vec<Labels> = Vec::with_capacity(inputs.len() + pairs.len());
        for (input, kept) in inputs.iter().zip(&net.tensors) {
            let prepare = Rearrange::new(input, &named(kept));
            if !prepare.sums.is_empty() {
                plan.flops += size(&distinct(input));
                plan.written += size(&prepare.output);
            }
            axes.push(prepare.unpermuted());
        }
        let mut parts = Vec::with_capacity(pairs.len());
        let mut contraction = Contraction::new(&net);
        for (a, b) in &pairs {
            parts.push(Parts::new(&contraction, *a, *b, &named));
            contraction.contract(*a, *b);
        }
        arrange(&mut parts, &axes, &output);
        for part in parts {
            let step = part.step(&axes, inputs, &size);
            plan.flops += step.flops;
            plan.largest = plan.largest.max(step.elements);
            plan.written += step.elements;
            axes.push(step.output.clone());
            plan.steps.push(step);
        }
        if let Some(last) = plan.steps.last() {
            plan.finish = Rearrange::new(&last.output, &output);
        }
        // A result of its own is the output; a view is copied.
        let is_own =
            plan.finish.permutation.is_none() && !(plan.steps.is_empty() && plan.finish.sums.is_empty());
        match (&plan.embed, is_own) {
            (Some(_), _) | (None, false) => plan.written += size(notation.output()),
            (None, true) => {}
        }
        Ok(plan)
    }

    /// How many operands the einsum has.
    pub fn operands(&self) -> usize {
        self.operands
    }

    /// The binary contractions, in order; none for one operand.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What is left to do to the last result, or to a single operand: with two operands or more, at most
    /// a permutation.
    pub fn finish(&self) -> &Rearrange {
        &self.finish
    }

    /// Where the output repeats labels, what takes the result out of it: all else of the output is zero.
    pub fn embed(&self) -> Option<&Rearrange> {
        self.embed.as_ref()
    }

    /// The order of the steps as in opt_einsum and JAX, see [`Optimize::Path`].
    pub fn path(&self) -> &[(usize, usize)] {
        &self.path
    }

    /// Arithmetic operations at the planned extents: a multiplication for each element of a step's
    /// iteration space, an addition too where it contracts, and the sums of single operands.
    pub fn flops(&self) -> f64 {
        self.flops
    }

    /// Base-2 logarithm of [`flops`](Self::flops).
    pub fn log2_flops(&self) -> f64 {
        self.flops.log2()
    }

    /// Elements of the largest result of a step, the output included, at the planned extents.
    pub fn largest_intermediate(&self) -> f64 {
        self.largest
    }

    /// Elements written at the planned extents: the results of sums of single operands and of all steps, and
    /// the output once more if it is a copy of the last of them. What a contraction copies to see its
    /// operands as matrices is not counted.
    pub fn elements_written(&self) -> f64 {
        self.written
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, step) in self.steps.iter().enumerate() {
            let slot = self.operands + k;
            write!(f, "[{slot}] = {}([{}], [{}]): ", step.notation(), step.lhs.slot, step.rhs.slot)?;
            writeln!(f, "{} flops, {} elements", Count(step.flops), Count(step.elements))?;
        }
        write!(
            f,
            "total: {} flops, {} elements written, largest intermediate {} elements",
            Count(self.flops),
            Count(self.written),
            Count(self.largest)
        )
    }
}

/// A whole number, rounded where it is large.
struct Count(f64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1e7 { write!(f, "{}", self.0) } else { write!(f, "{:.3e}", self.0) }
    }
}

impl Step {
    /// The contraction of the prepared operands as an einsum.
    pub fn notation(&self) -> Notation {
        Notation::new(&[&self.lhs.prepare.output, &self.rhs.prepare.output], &self.output)
            .expect("the result's labels are distinct labels of the operands")
    }
}

/// Labels numbered from 0 in increasing order (the first list maps back), and operands as sets of them.
fn network(notation: &Notation, weight: &impl Fn(u32) -> f64) -> (Vec<u32>, Network) {
    let mut names: Vec<u32> = notation.inputs().iter().flatten().copied().collect();
    names.sort_unstable();
    names.dedup();
    let number = |label: &u32| names.binary_search(label).expect("a label of an operand") as u32;
    let mut open = vec![false; names.len()];
    notation.output().iter().for_each(|label| open[number(label) as usize] = true);
    let mut holders = vec![0_usize; names.len()];
    let mut tensors: Vec<Labels> = Vec::with_capacity(notation.inputs().len());
    for input in notation.inputs() {
        let mut set: Labels = input.iter().map(number).collect();
        set.sort_unstable();
        set.dedup();
        set.iter().for_each(|label| holders[*label as usize] += 1);
        tensors.push(set);
    }
    for set in &mut tensors {
        set.retain(|label| open[*label as usize] || holders[*label as usize] > 1);
    }
    // No weight below 1, and no NaN: comparisons of costs need order, and a product of zero hides all else.
    let weight = names.iter().map(|label| weight(*label).max(1.0)).collect();
    (names, Network { tensors, open, weight })
}

/// Chooses operand order and axis orders of all steps, from the last to the first.
fn arrange(parts: &mut [Parts], axes: &[Labels], output: &[u32]) {
    let n = axes.len();
    let mut wanted = vec![Labels::new(); n + parts.len()];
    if let Some(last) = wanted[n..].last_mut() {
        *last = output.into();
    }
    for (k, part) in parts.iter_mut().enumerate().rev() {
        let order = std::mem::take(&mut wanted[n + k]);
        let side = |label| part.free.iter().position(|free| free.contains(label));
        if order.iter().find_map(side) == Some(1) {
            part.slots.swap(0, 1);
            part.free.swap(0, 1);
        }
        let [lhs, rhs] = &mut part.free;
        for group in [&mut *lhs, &mut *rhs, &mut part.batch] {
            group.sort_by_key(|label| order.iter().position(|other| other == label));
        }
        // An operand's order is given, so the other side follows it.
        if let Some(given) = part.slots.iter().find(|slot| **slot < n) {
            part.contracted.sort_by_key(|label| axes[*given].iter().position(|other| other == label));
        }
        let grouped: Labels = [&*lhs, &*rhs, &part.batch].into_iter().flatten().copied().collect();
        // An outer product in the order wanted is a contraction over nothing, which needs no broadcasting.
        let outer = part.batch.is_empty() && !lhs.is_empty() && !rhs.is_empty() && grouped == order;
        part.multiplies = part.contracted.is_empty() && !outer;
        part.output = if part.multiplies { order } else { grouped };
        let [lhs_slot, rhs_slot] = part.slots;
        let child = |groups: [&Labels; 3]| groups.into_iter().flatten().copied().collect::<Labels>();
        let (lhs_order, rhs_order) = match part.multiplies {
            true => {
                let of = |free: &Labels| {
                    part.output
                        .iter()
                        .filter(|l| free.contains(l) || part.batch.contains(l))
                        .copied()
                        .collect()
                };
                (of(lhs), of(rhs))
            }
            false => {
                (child([lhs, &part.contracted, &part.batch]), child([&part.contracted, rhs, &part.batch]))
            }
        };
        wanted[lhs_slot] = lhs_order;
        wanted[rhs_slot] = rhs_order;
    }
}

/// A step before the axis orders are known.
struct Parts {
    slots: [usize; 2],
    free: [Labels; 2],
    contracted: Labels,
    batch: Labels,
    output: Labels,
    /// An elementwise product.
    multiplies: bool,
}

impl Parts {
    fn new(contraction: &Contraction, a: usize, b: usize, named: &impl Fn(&[u32]) -> Labels) -> Parts {
        let mut free = [Labels::new(), Labels::new()];
        let (mut contracted, mut batch) = (Labels::new(), Labels::new());
        contraction.union(a, b, |label, side, kept| match (side, kept) {
            (Ordering::Less, _) => free[0].push(label),
            (Ordering::Greater, _) => free[1].push(label),
            (Ordering::Equal, true) => batch.push(label),
            (Ordering::Equal, false) => contracted.push(label),
        });
        Parts {
            slots: [a, b],
            free: free.map(|labels| named(&labels)),
            contracted: named(&contracted),
            batch: named(&batch),
            output: Labels::new(),
            multiplies: false,
        }
    }

    /// The step, with `axes` the axis labels of every number and `inputs` the operands' unprepared ones;
    /// `size` is the product of the extents of labels.
    fn step(self, axes: &[Labels], inputs: &[Labels], size: &impl Fn(&[u32]) -> f64) -> Step {
        let [lhs_slot, rhs_slot] = self.slots;
        let [lhs_free, rhs_free] = self.free;
        let multiply = self.multiplies;
        let operand = |slot: usize, free: &Labels, tail: [&Labels; 2], front: Option<&Labels>| {
            let in_order = axes[slot].iter().filter(|label| free.contains(label)).eq(free.iter());
            let wanted: Labels = match in_order || multiply {
                true => axes[slot].clone(),
                false => front.into_iter().chain([free]).chain(tail).flatten().copied().collect(),
            };
            (slot, wanted)
        };
        let none = Labels::new();
        let lhs = operand(lhs_slot, &lhs_free, [&self.contracted, &self.batch], None);
        let rhs = operand(rhs_slot, &rhs_free, [&none, &self.batch], Some(&self.contracted));
        let kind = match multiply {
            true => Kind::Multiply {
                lhs_axes: positions(&lhs.1, &self.output),
                rhs_axes: positions(&rhs.1, &self.output),
            },
            false => Kind::Dot(DotGeneral {
                lhs_contract: positions(&self.contracted, &lhs.1),
                rhs_contract: positions(&self.contracted, &rhs.1),
                lhs_batch: positions(&self.batch, &lhs.1),
                rhs_batch: positions(&self.batch, &rhs.1),
                ..DotGeneral::default()
            }),
        };
        let [lhs, rhs] = [lhs, rhs].map(|(slot, wanted)| Operand {
            slot,
            prepare: Rearrange::new(inputs.get(slot).unwrap_or(&axes[slot]), &wanted),
        });
        let Parts { contracted, batch, output, .. } = self;
        let elements = size(&output);
        let flops = flops(elements * size(&contracted), !contracted.is_empty());
        Step { lhs, rhs, output, batch, contracted, lhs_free, rhs_free, kind, flops, elements }
    }
}

#[cfg(test)]
mod tests;
