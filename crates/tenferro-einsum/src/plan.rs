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

use crate::notation::{Fold, Labels, Notation, Rearrange, positions};
use crate::path::{Contraction, Network, Optimize, flops, order, to_path};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use tenferro_tensor::Result;

/// An axis number for each of some labels.
pub type Axes = SmallVec<[usize; 6]>;

/// The steps of an einsum, see the [module](self) for the conventions.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    operands: usize,
    steps: Vec<Step>,
    finish: Rearrange,
    path: Vec<(usize, usize)>,
    flops: f64,
    largest: f64,
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
    /// A contraction; the result has lhs free axes, rhs free axes, batch axes.
    Dot {
        /// Axes of lhs that are summed with `rhs_contracting`, pair by pair.
        lhs_contracting: Axes,
        /// Axes of rhs that are summed with `lhs_contracting`.
        rhs_contracting: Axes,
        /// Batch axes of lhs, in the result's order.
        lhs_batch: Axes,
        /// Batch axes of rhs, in the result's order.
        rhs_batch: Axes,
    },
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

        let mut plan = Plan {
            operands: inputs.len(),
            steps: Vec::with_capacity(pairs.len()),
            finish: Rearrange::new(&inputs[0], notation.output()),
            path: to_path(inputs.len(), &pairs),
            flops: 0.0,
            largest: 0.0,
        };
        // Axis labels of every number: of the operands, what is left after diagonals and sums.
        let mut axes: Vec<Labels> = Vec::with_capacity(inputs.len() + pairs.len());
        for (input, kept) in inputs.iter().zip(&net.tensors) {
            let prepare = Rearrange::new(input, &named(kept));
            plan.flops += if prepare.sums.is_empty() { 0.0 } else { size(&distinct(input)) };
            axes.push(prepare.unpermuted());
        }
        let mut parts = Vec::with_capacity(pairs.len());
        let mut contraction = Contraction::new(&net);
        for (a, b) in &pairs {
            parts.push(Parts::new(&contraction, *a, *b, &named));
            contraction.contract(*a, *b);
        }
        arrange(&mut parts, &axes, notation.output());
        for part in parts {
            let step = part.step(&axes, inputs);
            let iterations = size(&step.output) * size(&step.contracted);
            plan.flops += flops(iterations, !step.contracted.is_empty());
            plan.largest = plan.largest.max(size(&step.output));
            axes.push(step.output.clone());
            plan.steps.push(step);
        }
        if let Some(last) = plan.steps.last() {
            plan.finish = Rearrange::new(&last.output, notation.output());
        } else {
            plan.largest = size(notation.output());
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
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, step) in self.steps.iter().enumerate() {
            let slot = self.operands + k;
            writeln!(f, "{slot} = {}({}, {})", step.notation(), step.lhs.slot, step.rhs.slot)?;
        }
        write!(f, "flops {:.3e}, largest intermediate {:.3e}", self.flops, self.largest)
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

fn distinct(labels: &[u32]) -> Labels {
    let mut found = Labels::new();
    for label in labels {
        if !found.contains(label) {
            found.push(*label);
        }
    }
    found
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
        part.output = match part.contracted.is_empty() {
            true => order,
            false => [&*lhs, &*rhs, &part.batch].into_iter().flatten().copied().collect(),
        };
        let [lhs_slot, rhs_slot] = part.slots;
        let child = |groups: [&Labels; 3]| groups.into_iter().flatten().copied().collect::<Labels>();
        let (lhs_order, rhs_order) = match part.contracted.is_empty() {
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
        }
    }

    /// The step, with `axes` the axis labels of every number and `inputs` the operands' unprepared ones.
    fn step(self, axes: &[Labels], inputs: &[Labels]) -> Step {
        let [lhs_slot, rhs_slot] = self.slots;
        let [lhs_free, rhs_free] = self.free;
        let multiply = self.contracted.is_empty();
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
            false => Kind::Dot {
                lhs_contracting: positions(&self.contracted, &lhs.1),
                rhs_contracting: positions(&self.contracted, &rhs.1),
                lhs_batch: positions(&self.batch, &lhs.1),
                rhs_batch: positions(&self.batch, &rhs.1),
            },
        };
        let [lhs, rhs] = [lhs, rhs].map(|(slot, wanted)| Operand {
            slot,
            prepare: Rearrange::new(inputs.get(slot).unwrap_or(&axes[slot]), &wanted),
        });
        let Parts { contracted, batch, output, .. } = self;
        Step { lhs, rhs, output, batch, contracted, lhs_free, rhs_free, kind }
    }
}

/// Plans by notation, extents and optimizer, shared by threads.
///
/// A hit costs a hash of the key and one read lock that no one else holds for long. The cache holds at
/// most [`PlanCache::CAPACITY`] plans; beyond it, new plans replace the oldest of their shard.
pub struct PlanCache {
    shards: [Shard; SHARDS],
}

const SHARDS: usize = 64;
const WAYS: usize = 16;

/// A shard on its own cache lines, so that threads with different einsums do not meet.
#[repr(align(128))]
struct Shard {
    entries: RwLock<Vec<Entry>>,
    hits: AtomicU64,
    /// Also says which entry is replaced next.
    misses: AtomicU64,
}

struct Entry {
    hash: u64,
    notation: Notation,
    /// All shapes, one after the other.
    extents: SmallVec<[usize; 8]>,
    optimize: Optimize,
    plan: Arc<Plan>,
}

impl Entry {
    fn is_for(&self, notation: &Notation, shapes: &[&[usize]], optimize: &Optimize) -> bool {
        let mut rest = &self.extents[..];
        let mut inputs = notation.inputs().iter();
        // Ranks are compared apart: extents say nothing on where one shape ends.
        self.notation == *notation
            && inputs.len() == shapes.len()
            && shapes.iter().all(|shape| {
                let Some((head, tail)) = rest.split_at_checked(shape.len()) else { return false };
                rest = tail;
                head == *shape && inputs.next().is_some_and(|labels| labels.len() == shape.len())
            })
            && self.optimize == *optimize
    }
}

impl PlanCache {
    /// The largest number of plans held.
    pub const CAPACITY: usize = SHARDS * WAYS;

    /// An empty cache.
    pub const fn new() -> Self {
        PlanCache { shards: [const { Shard::new() }; SHARDS] }
    }

    /// The plan of `notation` for operands of these shapes, made if the cache lacks it.
    ///
    /// # Errors
    /// Those of [`Notation::extents`] and [`Plan::new`]; nothing is cached then.
    pub fn plan(&self, notation: &Notation, shapes: &[&[usize]], optimize: &Optimize) -> Result<Arc<Plan>> {
        let hash = hash(notation, shapes, optimize);
        let shard = &self.shards[(hash >> (64 - SHARDS.ilog2())) as usize];
        let found = |entries: &[Entry]| {
            let mut entries = entries.iter().filter(|entry| entry.hash == hash);
            entries.find(|entry| entry.is_for(notation, shapes, optimize)).map(|entry| entry.plan.clone())
        };
        if let Some(plan) = found(&shard.entries.read().unwrap_or_else(PoisonError::into_inner)) {
            shard.hits.fetch_add(1, Relaxed);
            return Ok(plan);
        }
        let extents = notation.extents(shapes)?;
        let weight = |label| extents.get(label).map_or(1.0, |extent| *extent as f64);
        // Planned without the lock: two threads may both plan, and the first to finish is kept.
        let plan = Arc::new(Plan::new(notation, weight, optimize)?);
        let mut entries = shard.entries.write().unwrap_or_else(PoisonError::into_inner);
        let misses = shard.misses.fetch_add(1, Relaxed);
        if let Some(plan) = found(&entries) {
            return Ok(plan);
        }
        let entry = Entry {
            hash,
            notation: notation.clone(),
            extents: shapes.iter().copied().flatten().copied().collect(),
            optimize: optimize.clone(),
            plan: plan.clone(),
        };
        if entries.len() < WAYS {
            entries.push(entry);
        } else {
            entries[misses as usize % WAYS] = entry;
        }
        Ok(plan)
    }

    /// How many lookups found their plan.
    pub fn hits(&self) -> u64 {
        self.shards.iter().map(|shard| shard.hits.load(Relaxed)).sum()
    }

    /// How many lookups had to plan.
    pub fn misses(&self) -> u64 {
        self.shards.iter().map(|shard| shard.misses.load(Relaxed)).sum()
    }
}

impl Default for PlanCache {
    fn default() -> Self {
        PlanCache::new()
    }
}

impl Shard {
    const fn new() -> Self {
        Shard { entries: RwLock::new(Vec::new()), hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }
}

impl Hasher for Fold {
    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.add(u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn hash(notation: &Notation, shapes: &[&[usize]], optimize: &Optimize) -> u64 {
    let mut fold = Fold::default();
    notation.hash(&mut fold);
    shapes.iter().copied().flatten().for_each(|extent| fold.write_usize(*extent));
    optimize.hash(&mut fold);
    fold.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A tensor of integers, column-major: exact, so that any order of summation gives the same.
    #[derive(Clone, PartialEq, Debug)]
    struct Dense {
        shape: Vec<usize>,
        data: Vec<i64>,
    }

    impl Dense {
        fn from_fn(shape: &[usize], mut f: impl FnMut(&[usize]) -> i64) -> Dense {
            let mut data = Vec::new();
            let mut index = vec![0; shape.len()];
            for _ in 0..shape.iter().product() {
                data.push(f(&index));
                for (i, extent) in index.iter_mut().zip(shape) {
                    *i += 1;
                    if *i < *extent {
                        break;
                    }
                    *i = 0;
                }
            }
            Dense { shape: shape.to_vec(), data }
        }

        fn offset(&self, index: &[usize]) -> usize {
            index.iter().zip(&self.shape).rev().fold(0, |offset, (i, extent)| offset * extent + i)
        }

        fn at(&self, index: &[usize]) -> i64 {
            self.data[self.offset(index)]
        }

        fn random(shape: &[usize], seed: &mut u64) -> Dense {
            Dense::from_fn(shape, |_| {
                *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (*seed >> 33) as i64 % 7 - 3
            })
        }

        fn dot(&self, other: &Dense) -> i64 {
            assert_eq!(self.shape, other.shape);
            self.data.iter().zip(&other.data).map(|(a, b)| a * b).sum()
        }

        /// Sums over `axes`.
        fn sum(&self, axes: &[usize]) -> Dense {
            let kept: Vec<usize> = (0..self.shape.len()).filter(|axis| !axes.contains(axis)).collect();
            let shape: Vec<usize> = kept.iter().map(|axis| self.shape[*axis]).collect();
            let mut out = Dense::from_fn(&shape, |_| 0);
            Dense::from_fn(&self.shape, |index| {
                let at = out.offset(&kept.iter().map(|axis| index[*axis]).collect::<Vec<_>>());
                out.data[at] += self.at(index);
                0
            });
            out
        }

        /// What the axes of a [`Rearrange`] say, in its order.
        fn rearrange(&self, by: &Rearrange) -> Dense {
            let mut x = self.clone();
            for (a, b) in &by.diagonals {
                assert_eq!(x.shape[*a], x.shape[*b]);
                let mut shape = x.shape.clone();
                let extent = shape.remove(*b);
                shape.remove(*a);
                shape.push(extent);
                x = Dense::from_fn(&shape, |index| {
                    let (i, rest) = index.split_last().unwrap();
                    let mut index = rest.to_vec();
                    index.insert(*a, *i);
                    index.insert(*b, *i);
                    x.at(&index)
                });
            }
            x = x.sum(&by.sums);
            match &by.permutation {
                None => x,
                Some(permutation) => {
                    let shape: Vec<usize> = permutation.iter().map(|axis| x.shape[*axis]).collect();
                    Dense::from_fn(&shape, |index| {
                        let mut source = vec![0; index.len()];
                        permutation.iter().zip(index).for_each(|(axis, i)| source[*axis] = *i);
                        x.at(&source)
                    })
                }
            }
        }
    }

    /// `Σ_contracting lhs · rhs` with axes lhs free, rhs free, batch, from the axes alone.
    fn dot_general(x: &Dense, y: &Dense, contracting: [&Axes; 2], batch: [&Axes; 2]) -> Dense {
        let free = |t: &Dense, side: usize| -> Vec<usize> {
            let taken = |axis: &usize| contracting[side].contains(axis) || batch[side].contains(axis);
            (0..t.shape.len()).filter(|axis| !taken(axis)).collect()
        };
        let (lhs_free, rhs_free) = (free(x, 0), free(y, 1));
        let lhs_axes = lhs_free.iter().chain(batch[0]);
        let mut shape: Vec<usize> = lhs_free.iter().map(|axis| x.shape[*axis]).collect();
        shape.extend(rhs_free.iter().map(|axis| y.shape[*axis]));
        shape.extend(batch[0].iter().map(|axis| x.shape[*axis]));
        assert_eq!(lhs_axes.count() + rhs_free.len(), shape.len());
        let inner: Vec<usize> = contracting[0].iter().map(|axis| x.shape[*axis]).collect();
        Dense::from_fn(&shape, |index| {
            let (mut i, mut j) = (vec![0; x.shape.len()], vec![0; y.shape.len()]);
            let (left, rest) = index.split_at(lhs_free.len());
            let (right, both) = rest.split_at(rhs_free.len());
            lhs_free.iter().zip(left).for_each(|(axis, at)| i[*axis] = *at);
            rhs_free.iter().zip(right).for_each(|(axis, at)| j[*axis] = *at);
            batch[0].iter().zip(both).for_each(|(axis, at)| i[*axis] = *at);
            batch[1].iter().zip(both).for_each(|(axis, at)| j[*axis] = *at);
            let mut total = 0;
            Dense::from_fn(&inner, |inner| {
                contracting[0].iter().zip(inner).for_each(|(axis, at)| i[*axis] = *at);
                contracting[1].iter().zip(inner).for_each(|(axis, at)| j[*axis] = *at);
                total += x.at(&i) * y.at(&j);
                0
            });
            total
        })
    }

    fn multiply(x: &Dense, y: &Dense, x_axes: &Axes, y_axes: &Axes) -> Dense {
        let mut shape = vec![usize::MAX; x_axes.len().max(y_axes.len())];
        for (axes, t) in [(x_axes, x), (y_axes, y)] {
            for (axis, extent) in axes.iter().zip(&t.shape) {
                shape.resize(shape.len().max(axis + 1), usize::MAX);
                shape[*axis] = *extent;
            }
        }
        Dense::from_fn(&shape, |index| {
            let pick = |axes: &Axes| axes.iter().map(|axis| index[*axis]).collect::<Vec<_>>();
            x.at(&pick(x_axes)) * y.at(&pick(y_axes))
        })
    }

    /// Runs a plan by its axes, checking that every number is used once.
    fn run(plan: &Plan, operands: &[Dense]) -> Dense {
        let mut slots: Vec<Option<Dense>> = operands.iter().cloned().map(Some).collect();
        for step in plan.steps() {
            let x = slots[step.lhs.slot].take().unwrap().rearrange(&step.lhs.prepare);
            let y = slots[step.rhs.slot].take().unwrap().rearrange(&step.rhs.prepare);
            slots.push(Some(match &step.kind {
                Kind::Dot { lhs_contracting, rhs_contracting, lhs_batch, rhs_batch } => {
                    dot_general(&x, &y, [lhs_contracting, rhs_contracting], [lhs_batch, rhs_batch])
                }
                Kind::Multiply { lhs_axes, rhs_axes } => multiply(&x, &y, lhs_axes, rhs_axes),
            }));
        }
        let last = slots.pop().flatten().unwrap();
        assert!(slots.iter().all(Option::is_none));
        last.rearrange(plan.finish())
    }

    /// The definition: loops over all labels.
    fn direct(notation: &Notation, operands: &[Dense], extents: &BTreeMap<u32, usize>) -> Dense {
        let of = |labels: &[u32]| labels.iter().map(|label| extents[label]).collect::<Vec<_>>();
        let mut all = Labels::from_slice(notation.output());
        for label in notation.inputs().iter().flatten() {
            if !all.contains(label) {
                all.push(*label);
            }
        }
        let mut out = Dense::from_fn(&of(notation.output()), |_| 0);
        Dense::from_fn(&of(&all), |index| {
            let pick = |labels: &[u32]| -> Vec<usize> {
                labels.iter().map(|l| index[all.iter().position(|x| x == l).unwrap()]).collect()
            };
            let factors = notation.inputs().iter().zip(operands);
            let at = out.offset(&pick(notation.output()));
            out.data[at] += factors.map(|(labels, x)| x.at(&pick(labels))).product::<i64>();
            0
        });
        out
    }

    #[derive(Clone, Debug)]
    struct Case {
        notation: Notation,
        extents: BTreeMap<u32, usize>,
        operands: Vec<Dense>,
        seed: u64,
    }

    impl Case {
        fn new(inputs: &[Vec<u32>], output: &[u32], extents: &[usize], mut seed: u64) -> Case {
            let inputs: Vec<&[u32]> = inputs.iter().map(Vec::as_slice).collect();
            let notation = Notation::new(&inputs, output).unwrap();
            let extents: BTreeMap<u32, usize> = (0..).zip(extents.iter().copied()).collect();
            let shape = |x: &Labels| x.iter().map(|label| extents[label]).collect::<Vec<_>>();
            let operands = notation.inputs().iter().map(|x| Dense::random(&shape(x), &mut seed)).collect();
            Case { notation, extents, operands, seed }
        }

        fn plan(&self, optimize: Optimize) -> Plan {
            Plan::new(&self.notation, |label| self.extents[&label] as f64, &optimize).unwrap()
        }

        fn direct(&self) -> Dense {
            direct(&self.notation, &self.operands, &self.extents)
        }
    }

    const LABELS: u32 = 7;

    fn case() -> impl Strategy<Value = Case> {
        let operand = prop::collection::vec(0..LABELS, 0..5);
        let inputs = prop::collection::vec(operand, 1..6);
        let extents =
            prop::collection::vec(prop_oneof![1 => Just(0_usize), 19 => 1_usize..4], LABELS as usize);
        let output = (Just((0..LABELS).collect::<Vec<_>>()).prop_shuffle(), 0..=LABELS as usize);
        (inputs, output, extents, any::<u64>()).prop_map(|(inputs, (order, rank), extents, seed)| {
            let known = order.into_iter().filter(|label| inputs.iter().any(|x| x.contains(label)));
            Case::new(&inputs, &known.take(rank).collect::<Vec<_>>(), &extents, seed)
        })
    }

    fn any_path(n: usize, mut seed: u64) -> Optimize {
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % below
        };
        let pair = |n: usize| {
            let i = next(n);
            (i, (i + 1 + next(n - 1)) % n)
        };
        Optimize::Path((2..=n).rev().map(pair).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn plans_compute_the_einsum(case in case()) {
            let expected = case.direct();
            let path = any_path(case.operands.len(), case.seed);
            for optimize in [Optimize::Auto, Optimize::Greedy, path] {
                prop_assert_eq!(&run(&case.plan(optimize), &case.operands), &expected);
            }
        }

        #[test]
        fn only_a_permutation_is_left_after_the_steps(case in case()) {
            let plan = case.plan(Optimize::Auto);
            prop_assert_eq!(plan.steps().len() + 1, case.operands.len());
            prop_assert_eq!(plan.path().len() + 1, case.operands.len());
            if !plan.steps().is_empty() {
                prop_assert!(plan.finish().diagonals.is_empty() && plan.finish().sums.is_empty());
            }
            let again = case.plan(Optimize::Path(plan.path().to_vec()));
            prop_assert_eq!(again, plan);
        }

        #[test]
        fn transposes_are_adjoint(case in case()) {
            let mut seed = case.seed;
            let y = case.direct();
            let ct = Dense::random(&y.shape, &mut seed);
            for (i, x) in case.operands.iter().enumerate() {
                let transpose = case.notation.transpose(i).unwrap();
                let mut operands = case.operands.clone();
                operands[i] = ct.clone();
                let inner = direct(&transpose.notation, &operands, &case.extents);
                let axes = transpose.broadcast_axes();
                let shape: Vec<usize> =
                    transpose.embed.output.iter().map(|label| case.extents[label]).collect();
                let wide = Dense::from_fn(&shape, |index| {
                    inner.at(&axes.iter().map(|axis| index[*axis]).collect::<Vec<_>>())
                });
                // <embed(wide), x> = <wide, extract(x)>: embedding is the adjoint of taking the diagonals.
                prop_assert_eq!(ct.dot(&y), wide.dot(&x.rearrange(&transpose.embed)));
                prop_assert!(transpose.embed.sums.is_empty());
            }
        }

        #[test]
        fn auto_finds_the_fewest_flops(case in case()) {
            prop_assume!(case.extents.values().all(|extent| *extent > 0));
            let mut least = f64::INFINITY;
            let mut paths = vec![vec![]];
            while let Some(path) = paths.pop() {
                let left = case.operands.len() - path.len();
                if left == 1 {
                    least = least.min(case.plan(Optimize::Path(path)).flops());
                } else {
                    let pairs = (0..left).flat_map(|j| (0..j).map(move |i| (i, j)));
                    paths.extend(pairs.map(|pair| path.iter().copied().chain([pair]).collect()));
                }
            }
            prop_assert_eq!(case.plan(Optimize::Auto).flops(), least);
        }
    }

    fn plan(text: &str, extent: usize) -> Plan {
        Plan::new(&text.parse().unwrap(), |_| extent as f64, &Optimize::Auto).unwrap()
    }

    #[test]
    fn layouts_that_fit_need_no_permutation() {
        for text in [
            "ij,jk->ik",
            "ij,jk->ki",
            "ji,jk->ik",
            "ijb,jkb->ikb",
            "ijb,jkb->kib",
            "ij,j->i",
            "j,ij->i",
            "i,i->i",
            "i,ij->ij",
            "bi,bj->bij",
            "i,j->ji",
            "ij,jk,kl->il",
            "ij,jk,kl->li",
            "abc,cd->abd",
            "aibj,cd->cdaibj",
        ] {
            let plan = plan(text, 4);
            assert!(plan.finish().is_identity(), "{text}: {plan:#?}");
            for operand in plan.steps().iter().flat_map(|step| [&step.lhs, &step.rhs]) {
                assert!(operand.prepare.is_identity(), "{text}: {plan:#?}");
            }
        }
    }

    #[test]
    fn interleaved_groups_leave_a_permutation() {
        let plan = plan("bij,bjk->bik", 4);
        assert_eq!(plan.steps()[0].notation().to_string(), "bij,bjk->ikb");
        assert_eq!(plan.finish().permutation.as_deref(), Some(&[2, 0, 1][..]));
    }

    #[test]
    fn a_plan_states_its_cost() {
        let sizes = [30.0, 35.0, 15.0, 5.0, 10.0, 20.0, 25.0];
        let chain = "ab,bc,cd,de,ef,fg->ag".parse().unwrap();
        // Cormen et al., Introduction to Algorithms, section on matrix-chain multiplication: 15,125
        // multiplications in the order (a(bc))((de)f).
        let best = Plan::new(&chain, |label| sizes[label as usize], &Optimize::Auto).unwrap();
        assert_eq!((best.flops(), best.largest_intermediate()), (2.0 * 15125.0, 750.0));
        let trace = plan("ii->", 4);
        assert_eq!((trace.flops(), trace.largest_intermediate(), trace.steps().len()), (4.0, 1.0, 0));
        assert!(trace.path().is_empty());
    }

    #[test]
    fn paths_that_are_none_are_errors() {
        let chain = "ab,bc,cd->ad".parse().unwrap();
        let message = |path: &[(usize, usize)]| {
            Plan::new(&chain, |_| 2.0, &Optimize::Path(path.to_vec())).unwrap_err().to_string()
        };
        assert!(message(&[(0, 1)]).contains("pairs in the path: got 1, expected 2 for 3 operands"));
        assert!(
            message(&[(0, 1), (1, 1)]).contains("pair 1 of the path: got (1, 1), expected two positions")
        );
        assert!(
            message(&[(0, 3), (0, 1)]).contains("pair 0 of the path: got (0, 3), expected two positions")
        );
        let many = vec![&[0_u32][..]; 17];
        let many = Notation::new(&many, &[]).unwrap();
        let error = Plan::new(&many, |_| 2.0, &Optimize::Optimal).unwrap_err().to_string();
        assert!(error.contains("got 17, expected at most 16"), "{error}");
    }

    #[test]
    fn the_cache_keeps_plans_by_notation_shapes_and_optimizer() {
        let cache = PlanCache::new();
        let product: Notation = "ij,jk->ik".parse().unwrap();
        let get = |shapes: &[&[usize]]| cache.plan(&product, shapes, &Optimize::Auto);
        let first = get(&[&[2, 3], &[3, 4]]).unwrap();
        assert!(Arc::ptr_eq(&first, &get(&[&[2, 3], &[3, 4]]).unwrap()));
        assert_eq!((cache.hits(), cache.misses()), (1, 1));
        assert!(!Arc::ptr_eq(&first, &get(&[&[2, 3], &[3, 5]]).unwrap()));
        cache.plan(&product, &[&[2, 3], &[3, 4]], &Optimize::Greedy).unwrap();
        assert_eq!((cache.hits(), cache.misses()), (1, 3));
        assert!(get(&[&[2], &[3, 3, 4]]).is_err());
        assert!(get(&[&[2, 3], &[5, 4]]).is_err());
        assert_eq!((cache.hits(), cache.misses()), (1, 3));
    }

    #[test]
    fn the_cache_is_bounded() {
        let cache = PlanCache::new();
        let sum: Notation = "i->".parse().unwrap();
        for extent in 0..4 * PlanCache::CAPACITY {
            cache.plan(&sum, &[&[extent]], &Optimize::Auto).unwrap();
        }
        let held = cache.shards.iter().map(|shard| shard.entries.read().unwrap().len()).sum::<usize>();
        assert!(held <= PlanCache::CAPACITY && held > PlanCache::CAPACITY / 2, "{held}");
    }
}
