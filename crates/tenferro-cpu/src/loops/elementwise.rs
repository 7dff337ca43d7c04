//! Elementwise kernels, one or a chain of them, over operands of any layout.
//!
//! A kernel is a [`Tile`]: a function over `n` dense elements that knows neither shapes nor strides. [`map`] runs one
//! over whole tensors and [`run`] a chain of them, tile by tile, so that intermediate values stay in the first-level
//! cache. Dense operands are read and written where they lie; others are gathered into and scattered from scratch
//! memory; a constant is spread over a tile once.
//!
//! Invariant: what a tile function writes never overlaps what it reads. Where an output lies on an input, the step
//! writes to scratch and the result is copied when the whole chain has read the tile.

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use super::Shared;
use super::copy::{copy_tile, gather_listed, scatter_listed};
use super::plan::{LoopPlan, PerOperand, Tiling, is_compact};
use crate::threads::Threads;

/// Computes `n` dense elements at `y` from as many at each `x`, which `y` does not overlap. `op` is the operation's
/// own data.
pub(crate) type Tile = unsafe fn(op: *const (), x: &[*const u8], y: *mut u8, n: usize);

/// An operand to read: the element of index 0, the element's size in bytes, strides in elements (`None`: compact
/// column-major).
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub(crate) ptr: *const u8,
    pub(crate) size: usize,
    pub(crate) strides: Option<&'a [isize]>,
}

/// Where the result of step `step` goes; the rest as for [`Input`].
#[derive(Clone, Copy)]
pub(crate) struct Output<'a> {
    pub(crate) ptr: *mut u8,
    pub(crate) size: usize,
    pub(crate) strides: Option<&'a [isize]>,
    pub(crate) step: usize,
}

/// What a step reads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// An input of the chain.
    Input(usize),
    /// The result of an earlier step.
    Step(usize),
}

/// One kernel of a chain.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) tile: Tile,
    pub(crate) op: *const (),
    pub(crate) inputs: &'a [Source],
    /// Bytes of an element of the result.
    pub(crate) size: usize,
    /// Arithmetic operations an element takes, for the choice of threads.
    pub(crate) cost: usize,
}

/// Scratch memory of a thread: with room for the operands that are read in place, it stays in a 32 KiB cache.
const SCRATCH: usize = 24 << 10;
/// Elements of a tile when no scratch is needed: the grain of the distribution over threads.
const RUN: usize = 1 << 16;
/// Fewest elements of a tile.
const MIN_TILE: usize = 64;

/// `output[i] = tile(inputs[i])` for every index `i` of `shape`; `output.step` is ignored.
///
/// # Safety
/// Every element that `shape` and the strides reach must be valid and aligned; elements of the output must be
/// distinct, and the output must not overlap an input unless both have the same pointer, size and strides. `tile`
/// must be sound for as many inputs of these element sizes, and for use from several threads with this `op`.
#[inline]
pub(crate) unsafe fn map(
    threads: &Threads,
    shape: &[usize],
    (tile, op, cost): (Tile, *const (), usize),
    inputs: &[Input],
    output: Output,
) {
    const ARITY: usize = 4;
    let dense = |strides: Option<&[isize]>| strides.is_none_or(|s| is_compact(shape, s));
    if inputs.len() <= ARITY && dense(output.strides) && inputs.iter().all(|x| dense(x.strides)) {
        let n = shape.iter().product::<usize>();
        let work = n * (inputs.iter().map(|x| x.size).sum::<usize>() + output.size + cost);
        if work < crate::threads::PARALLEL_WORK && inputs.iter().all(|x| x.ptr != output.ptr) {
            let mut x = [std::ptr::null(); ARITY];
            for (x, input) in x.iter_mut().zip(inputs) {
                *x = input.ptr;
            }
            // SAFETY: all operands are dense, of n elements, and the output is apart from the inputs.
            return unsafe { tile(op, &x[..inputs.len()], output.ptr, n) };
        }
    }
    let sources: SmallVec<[Source; 8]> = (0..inputs.len()).map(Source::Input).collect();
    let step = Step { tile, op, inputs: &sources, size: output.size, cost };
    // SAFETY: the caller's.
    unsafe { run(threads, shape, inputs, &[step], &[Output { step: 0, ..output }]) }
}

/// Runs the steps in order on every element of `shape`, then stores the results that `outputs` name.
///
/// # Safety
/// As for [`map`], for each step and output; different outputs must not overlap.
pub(crate) unsafe fn run(
    threads: &Threads,
    shape: &[usize],
    inputs: &[Input],
    steps: &[Step],
    outputs: &[Output],
) {
    let chain = Chain::new(shape, inputs, steps, outputs);
    let per_element = inputs.iter().map(|x| x.size).sum::<usize>()
        + outputs.iter().map(|y| y.size).sum::<usize>()
        + steps.iter().map(|s| s.cost).sum::<usize>();
    let shared = Shared::new(&chain);
    threads.parallel(per_element * chain.plan.len(), |par| {
        // SAFETY: the caller's; tiles are disjoint.
        par.for_each_chunk(chain.tiling.tiles(), 1, |range| unsafe { shared.get().run(range) });
    });
}

/// How the elements of an operand in a tile are reached.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Access {
    /// They are dense: where they lie.
    Direct,
    /// They are all the same one: a scratch slot filled once.
    Constant(usize),
    /// Through a scratch slot filled for, or emptied after, each tile.
    Copied(usize),
}

/// A chain bound to its operands.
struct Chain<'a> {
    inputs: &'a [Input<'a>],
    steps: &'a [Step<'a>],
    outputs: &'a [Output<'a>],
    /// Operands: the outputs, then the inputs.
    plan: LoopPlan,
    tiling: Tiling,
    /// Per input.
    access: PerOperand<Access>,
    /// Per step: where its result goes; `Err(output)`: straight to that output.
    results: PerOperand<Result<usize, usize>>,
    slots: usize,
    /// Bytes of a slot.
    slot_size: usize,
}

impl<'a> Chain<'a> {
    fn new(
        shape: &[usize],
        inputs: &'a [Input<'a>],
        steps: &'a [Step<'a>],
        outputs: &'a [Output<'a>],
    ) -> Chain<'a> {
        let plan = plan(shape, inputs, outputs);
        let operands = outputs.len() + inputs.len();
        // Rows long enough are taken one by one, which leaves dense ones where they are.
        let dense_rows = |operand: usize| plan.rank() == 0 || plan.stride(0, operand) == 1;
        let packed = plan.extent(0) < 2 * MIN_TILE || !(0..operands).all(dense_rows);
        let mut slots = (0..operands).filter(|&o| plan.rank() > 1 && packed || !dense_rows(o)).count();
        let straight = |step: usize| {
            let mut to = outputs.iter().enumerate().filter(|(_, y)| y.step == step);
            let (output, y) = to.next()?;
            let alone = to.next().is_none() && inputs.iter().all(|x| x.ptr != y.ptr.cast_const());
            alone.then_some(output)
        };
        slots += (0..steps.len()).filter(|&s| straight(s).is_none()).count();
        let sizes = inputs.iter().map(|x| x.size).chain(steps.iter().map(|s| s.size));
        let size = sizes.max().unwrap_or(1);
        let limit = match slots {
            0 => RUN,
            _ => 1 << (SCRATCH / (slots * size)).max(MIN_TILE).ilog2(),
        };
        let tiling = plan.tiling(limit, packed);
        let direct = |operand: usize| {
            let [block, [s0, s1]] = [tiling.block().map(|b| b as isize), tiling.strides(&plan, operand)];
            tiling.table(operand).is_none()
                && (s0 == 1 || block[0] == 1)
                && (block[1] == 1 || s1 == block[0] && block[0] == plan.extent(0) as isize)
        };
        let mut chain = Chain {
            inputs,
            steps,
            outputs,
            access: PerOperand::new(),
            results: PerOperand::new(),
            slots: 0,
            slot_size: (tiling.block()[0] * tiling.block()[1] * size).next_multiple_of(64),
            tiling: tiling.clone(),
            plan: plan.clone(),
        };
        let mut slot = || {
            chain.slots += 1;
            chain.slots - 1
        };
        for input in 0..inputs.len() {
            let operand = outputs.len() + input;
            let constant = (0..plan.rank()).all(|axis| plan.stride(axis, operand) == 0) && plan.len() > 1;
            chain.access.push(match direct(operand) {
                _ if constant => Access::Constant(slot()),
                true => Access::Direct,
                false => Access::Copied(slot()),
            });
        }
        // Slots of results that no later step or output needs are used again.
        let mut free: SmallVec<[usize; 8]> = SmallVec::new();
        for step in 0..steps.len() {
            let result = straight(step).filter(|&output| direct(output));
            chain.results.push(match result {
                Some(output) => Err(output),
                None => Ok(free.pop().unwrap_or_else(&mut slot)),
            });
            for (i, source) in steps[step].inputs.iter().enumerate() {
                let Source::Step(from) = *source else { continue };
                let again = steps[step].inputs[i + 1..].iter().chain(steps[step + 1..].iter().flat_map(|s| s.inputs));
                let dead = !again.into_iter().any(|s| matches!(s, Source::Step(s) if *s == from));
                if let (true, Ok(slot)) = (dead && outputs.iter().all(|y| y.step != from), chain.results[from]) {
                    free.push(slot);
                }
            }
        }
        chain
    }

    /// Visits the tiles numbered `range`.
    ///
    /// # Safety
    /// As for [`run`]; no other thread may be given these tiles.
    unsafe fn run(&self, range: std::ops::Range<usize>) {
        let bytes = self.slots * self.slot_size;
        if bytes <= SCRATCH {
            let mut scratch = MaybeUninit::<Scratch>::uninit();
            // SAFETY: the scratch is large enough; the rest is the caller's.
            unsafe { self.run_in(scratch.as_mut_ptr().cast(), range) }
        } else {
            let mut scratch = Vec::<MaybeUninit<Scratch>>::with_capacity(bytes.div_ceil(SCRATCH));
            // SAFETY: as above.
            unsafe { self.run_in(scratch.as_mut_ptr().cast(), range) }
        }
    }

    /// [`Chain::run`] with scratch for all slots.
    ///
    /// # Safety
    /// As there.
    unsafe fn run_in(&self, scratch: *mut u8, range: std::ops::Range<usize>) {
        // SAFETY: slots lie one after the other in the scratch.
        let slot = |i: usize| unsafe { scratch.add(i * self.slot_size) };
        let [block, width] = self.tiling.block();
        let outputs = self.outputs.len();
        // Where the current tile of each input and of each result is found.
        let mut reads: PerOperand<*const u8> = self
            .access
            .iter()
            .map(|a| match *a {
                Access::Direct => std::ptr::null(),
                Access::Constant(s) | Access::Copied(s) => slot(s).cast_const(),
            })
            .collect();
        let mut results: PerOperand<*mut u8> =
            self.results.iter().map(|r| r.map_or(std::ptr::null_mut(), slot)).collect();
        for (i, input) in self.inputs.iter().enumerate() {
            if let Access::Constant(s) = self.access[i] {
                // SAFETY: the constant is an element of the input, and a slot holds a tile.
                unsafe {
                    let from = input.ptr.offset(self.plan.start()[outputs + i] * input.size as isize);
                    copy_tile(input.size, from, [0, 0], slot(s), [1, 0], [block * width, 1]);
                }
            }
        }
        let mut x: PerOperand<*const u8> = PerOperand::new();
        self.tiling.for_each(&self.plan, range, |offsets, n| {
            // SAFETY: the offsets are those of elements of the shape, a slot holds a tile, and results lie apart
            // from what their steps read, by the choice of slots.
            unsafe {
                for (i, input) in self.inputs.iter().enumerate() {
                    let from = || input.ptr.offset(offsets[outputs + i] * input.size as isize);
                    match self.access[i] {
                        Access::Constant(_) => {}
                        Access::Direct => reads[i] = from(),
                        Access::Copied(s) => self.gather(outputs + i, input.size, from(), slot(s), n),
                    }
                }
                for (i, step) in self.steps.iter().enumerate() {
                    if let Err(output) = self.results[i] {
                        let y = &self.outputs[output];
                        results[i] = y.ptr.offset(offsets[output] * y.size as isize);
                    }
                    x.clear();
                    x.extend(step.inputs.iter().map(|source| match *source {
                        Source::Input(i) => reads[i],
                        Source::Step(i) => results[i].cast_const(),
                    }));
                    (step.tile)(step.op, &x, results[i], n[0] * n[1]);
                }
                for (i, y) in self.outputs.iter().enumerate() {
                    if self.results[y.step].is_ok() {
                        let to = y.ptr.offset(offsets[i] * y.size as isize);
                        self.scatter(i, y.size, results[y.step], to, n);
                    }
                }
            }
        });
    }

    /// Makes a tile of an operand dense.
    ///
    /// # Safety
    /// As for [`copy_tile`].
    unsafe fn gather(&self, operand: usize, size: usize, from: *const u8, to: *mut u8, n: [usize; 2]) {
        // SAFETY: the caller's; a dense tile has the strides 1 and n0.
        unsafe {
            match self.tiling.table(operand) {
                Some(table) => gather_listed(size, from, table, to),
                None => {
                    let strides = self.tiling.strides(&self.plan, operand);
                    copy_tile(size, from, strides, to, [1, n[0] as isize], n)
                }
            }
        }
    }

    /// Spreads a dense tile over an operand.
    ///
    /// # Safety
    /// As for [`copy_tile`].
    unsafe fn scatter(&self, operand: usize, size: usize, from: *const u8, to: *mut u8, n: [usize; 2]) {
        // SAFETY: as for `gather`.
        unsafe {
            match self.tiling.table(operand) {
                Some(table) => scatter_listed(size, from, to, table),
                None => {
                    let strides = self.tiling.strides(&self.plan, operand);
                    copy_tile(size, from, [1, n[0] as isize], to, strides, n)
                }
            }
        }
    }
}

/// Scratch memory, aligned to cache lines.
#[repr(align(64))]
struct Scratch([u8; SCRATCH]);

/// Plans the loop over outputs and inputs; operands without strides get those of a compact array.
fn plan(shape: &[usize], inputs: &[Input], outputs: &[Output]) -> LoopPlan {
    let strides = || outputs.iter().map(|y| y.strides).chain(inputs.iter().map(|x| x.strides));
    if strides().all(|s| s.is_none_or(|s| is_compact(shape, s))) {
        let unit: PerOperand<&[isize]> = strides().map(|_| &[1isize][..]).collect();
        return LoopPlan::new(&[shape.iter().product()], &unit);
    }
    let compact: SmallVec<[isize; 8]> = shape
        .iter()
        .scan(1, |len, &extent| {
            let stride = *len;
            *len *= extent as isize;
            Some(stride)
        })
        .collect();
    let all: PerOperand<&[isize]> = strides().map(|s| s.unwrap_or(&compact)).collect();
    LoopPlan::new(shape, &all)
}
