//! Elementwise kernels, one or a chain of them, over operands of any layout.
//!
//! A kernel is a [`Tile`]: a function over `n` dense elements that knows neither shapes nor strides. [`map`]
//! runs one over whole tensors and [`run`] a chain of them, tile by tile, so that intermediate values stay in
//! the first-level cache. Dense operands are read and written where they lie; others are gathered into and
//! scattered from scratch memory; a constant is spread over a tile once.
//!
//! Invariant: what a tile function writes never overlaps what it reads. Where an output lies on an input, the
//! step writes to scratch and the result is copied when the whole chain has read the tile.

use std::mem::MaybeUninit;

use smallvec::SmallVec;
use tenferro_core_ops::elements;

use super::Shared;
use super::copy::{copy_tile, gather_listed, scatter_listed};
use super::plan::{LoopPlan, PerOperand, Tiling, is_compact};
use crate::threads::Threads;

/// Computes `n` dense elements at `y` from as many at each `x`, which `y` does not overlap. `op` is the
/// operation's own data.
pub(crate) type Tile = unsafe fn(op: *const (), x: &[*const u8], y: *mut u8, n: usize);

/// An operand to read: the element of index 0, the element's size in bytes, strides in elements (`None`:
/// compact column-major).
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
/// distinct, and the output must not overlap an input unless both have the same pointer, size and strides.
/// `tile` must be sound for as many inputs of these element sizes, and for use from several threads with this
/// `op`.
#[inline]
pub(crate) unsafe fn map(
    threads: &Threads,
    shape: &[usize],
    (tile, op, cost): (Tile, *const (), usize),
    inputs: &[Input],
    output: Output,
) {
    const ARITY: usize = 4;
    let apart = |strides: Option<&[isize]>| strides.is_some_and(|s| !is_compact(shape, s));
    let mut x = [std::ptr::null(); ARITY];
    let (mut dense, mut in_place, mut bytes) =
        (inputs.len() <= ARITY && !apart(output.strides), false, output.size);
    for (x, input) in x.iter_mut().zip(inputs) {
        *x = input.ptr;
        bytes += input.size;
        dense &= !apart(input.strides);
        in_place |= input.ptr == output.ptr;
    }
    if dense {
        let n = elements(shape);
        if n * (bytes + cost) < crate::threads::PARALLEL_WORK {
            let x = &mut x[..inputs.len()];
            // SAFETY: all operands are dense, of n elements; the output is apart from the inputs or one of
            // them.
            return unsafe {
                if in_place { map_over(tile, op, x, inputs, output, n) } else { tile(op, x, output.ptr, n) }
            };
        }
    }
    let sources: SmallVec<[Source; 8]> = (0..inputs.len()).map(Source::Input).collect();
    let step = Step { tile, op, inputs: &sources, size: output.size, cost };
    // SAFETY: the caller's.
    unsafe { run(threads, shape, inputs, &[step], &[Output { step: 0, ..output }]) }
}

/// [`map`] for dense operands, one of which the output lies on: by way of scratch.
///
/// # Safety
/// As for [`map`]; `x` holds the pointers of `inputs`.
unsafe fn map_over(
    tile: Tile,
    op: *const (),
    x: &mut [*const u8],
    inputs: &[Input],
    output: Output,
    n: usize,
) {
    let mut scratch = MaybeUninit::<Scratch<4096>>::uninit();
    let scratch: *mut u8 = scratch.as_mut_ptr().cast();
    let limit = 4096 / output.size;
    for start in (0..n).step_by(limit) {
        let n = limit.min(n - start);
        // SAFETY: `start` is an element of all operands, and the scratch holds `limit` of them.
        unsafe {
            tile(op, x, scratch, n);
            output.ptr.add(start * output.size).copy_from_nonoverlapping(scratch, n * output.size);
        }
        for (x, input) in x.iter_mut().zip(inputs) {
            *x = x.wrapping_add(n * input.size);
        }
    }
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
        let mut needed = (0..operands).filter(|&o| plan.rank() > 1 && packed || !dense_rows(o)).count();
        let straight = |step: usize| {
            let mut to = outputs.iter().enumerate().filter(|(_, y)| y.step == step);
            let (output, y) = to.next()?;
            let alone = to.next().is_none() && inputs.iter().all(|x| x.ptr != y.ptr.cast_const());
            alone.then_some(output)
        };
        needed += (0..steps.len()).filter(|&s| straight(s).is_none()).count();
        let sizes = inputs.iter().map(|x| x.size).chain(steps.iter().map(|s| s.size));
        let size = sizes.max().unwrap_or(1);
        let limit = match needed {
            0 => RUN,
            _ => 1 << (SCRATCH / (needed * size)).max(MIN_TILE).ilog2(),
        };
        let tiling = plan.tiling(limit, packed);
        let direct = |operand: usize| {
            let [block, [s0, s1]] = [tiling.block().map(|b| b as isize), tiling.strides(&plan, operand)];
            tiling.table(operand).is_none()
                && (s0 == 1 || block[0] == 1)
                && (block[1] == 1 || s1 == block[0] && block[0] == plan.extent(0) as isize)
        };
        let mut slots = 0;
        let mut slot = || {
            slots += 1;
            slots - 1
        };
        let mut access = PerOperand::new();
        for input in 0..inputs.len() {
            let operand = outputs.len() + input;
            let constant = (0..plan.rank()).all(|axis| plan.stride(axis, operand) == 0) && plan.len() > 1;
            access.push(match direct(operand) {
                _ if constant => Access::Constant(slot()),
                true => Access::Direct,
                false => Access::Copied(slot()),
            });
        }
        let mut results: PerOperand<Result<usize, usize>> = PerOperand::new();
        // Slots of results that no later step or output needs are used again.
        let mut free: SmallVec<[usize; 8]> = SmallVec::new();
        for (k, step) in steps.iter().enumerate() {
            results.push(match straight(k).filter(|&output| direct(output)) {
                Some(output) => Err(output),
                None => Ok(free.pop().unwrap_or_else(&mut slot)),
            });
            for (i, source) in step.inputs.iter().enumerate() {
                let Source::Step(from) = *source else { continue };
                let later = steps[k + 1..].iter().flat_map(|s| s.inputs);
                let mut again = step.inputs[i + 1..].iter().chain(later);
                let dead = !again.any(|s| matches!(s, Source::Step(s) if *s == from));
                if let (true, Ok(slot)) = (dead && outputs.iter().all(|y| y.step != from), results[from]) {
                    free.push(slot);
                }
            }
        }
        let slot_size = (tiling.block()[0] * tiling.block()[1] * size).next_multiple_of(64);
        Chain { inputs, steps, outputs, plan, tiling, access, results, slots, slot_size }
    }

    /// Visits the tiles numbered `range`.
    ///
    /// # Safety
    /// As for [`run`]; no other thread may be given these tiles.
    unsafe fn run(&self, range: std::ops::Range<usize>) {
        let bytes = self.slots * self.slot_size;
        if bytes <= SCRATCH {
            let mut scratch = MaybeUninit::<Scratch<SCRATCH>>::uninit();
            // SAFETY: the scratch is large enough; the rest is the caller's.
            unsafe { self.run_in(scratch.as_mut_ptr().cast(), range) }
        } else {
            let mut scratch = Vec::<MaybeUninit<Scratch<SCRATCH>>>::with_capacity(bytes.div_ceil(SCRATCH));
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
            // SAFETY: the offsets are those of elements of the shape, a slot holds a tile, and results lie
            // apart from what their steps read, by the choice of slots.
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
pub(crate) struct Scratch<const N: usize>([u8; N]);

/// Plans the loop over outputs and inputs; operands without strides get those of a compact array.
fn plan(shape: &[usize], inputs: &[Input], outputs: &[Output]) -> LoopPlan {
    // Beside an extent of 0, the others may be of any size.
    if shape.contains(&0) {
        return LoopPlan::one_axis(outputs.len() + inputs.len(), 0, 1);
    }
    let strides = || outputs.iter().map(|y| y.strides).chain(inputs.iter().map(|x| x.strides));
    if strides().all(|s| s.is_none_or(|s| is_compact(shape, s))) {
        return LoopPlan::one_axis(outputs.len() + inputs.len(), elements(shape), 1);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::testing::{Strided, Way, indices, shapes, threads};
    use proptest::prelude::*;

    /// `x[0] + 2 x[1]` for f64.
    unsafe fn axpy(_: *const (), x: &[*const u8], y: *mut u8, n: usize) {
        for i in 0..n {
            // SAFETY: the driver passes two inputs and an output of n f64.
            unsafe { *y.cast::<f64>().add(i) = *x[0].cast::<f64>().add(i) + 2.0 * *x[1].cast::<f64>().add(i) }
        }
    }

    /// `x[0] < op` for f64, as bool.
    unsafe fn less(op: *const (), x: &[*const u8], y: *mut u8, n: usize) {
        for i in 0..n {
            // SAFETY: `op` points to an f64, and the driver passes an input of n f64 and an output of n bool.
            unsafe { *y.cast::<bool>().add(i) = *x[0].cast::<f64>().add(i) < *op.cast::<f64>() }
        }
    }

    /// `if x[0] { x[1] } else { -x[2] }`.
    unsafe fn choose(_: *const (), x: &[*const u8], y: *mut u8, n: usize) {
        for i in 0..n {
            // SAFETY: the driver passes n bool, twice n f64, and an output of n f64.
            unsafe {
                let (b, c) = (*x[1].cast::<f64>().add(i), *x[2].cast::<f64>().add(i));
                *y.cast::<f64>().add(i) = if *x[0].cast::<bool>().add(i) { b } else { -c };
            }
        }
    }

    fn input<T: Copy>(x: &Strided<T>) -> Input<'_> {
        Input { ptr: x.ptr().cast(), size: size_of::<T>(), strides: Some(&x.strides) }
    }

    fn counting() -> impl FnMut() -> f64 {
        let mut i = 0.0;
        move || {
            i += 1.0;
            i
        }
    }

    /// A chain of three steps, two of whose results are kept, against the formula.
    fn check(budget: usize, shape: &[usize], ways: [&[Way; 6]; 4]) {
        let a = Strided::new(shape, ways[0], counting());
        let b = Strided::new(shape, ways[1], counting());
        let mut mask = Strided::new(shape, &ways[2].map(Way::distinct), || false);
        let mut y = Strided::new(shape, &ways[3].map(Way::distinct), || 0.0);
        let (mut expected_mask, mut expected_y) = (mask.clone(), y.clone());
        for index in indices(shape) {
            let (a, b) = (a.get(&index), b.get(&index));
            let sum = a + 2.0 * b;
            expected_mask.set(&index, sum < 100.0);
            expected_y.set(&index, if sum < 100.0 { b } else { -sum });
        }
        let limit = 100.0f64;
        let step =
            |tile: Tile, inputs, size| Step { tile, op: (&raw const limit).cast(), inputs, size, cost: 1 };
        let steps = [
            step(axpy, &[Source::Input(0), Source::Input(1)], 8),
            step(less, &[Source::Step(0)], 1),
            step(choose, &[Source::Step(1), Source::Input(1), Source::Step(0)], 8),
        ];
        let (mask_strides, y_strides) = (mask.strides.clone(), y.strides.clone());
        let outputs = [
            Output { ptr: mask.mut_ptr().cast(), size: 1, strides: Some(&mask_strides), step: 1 },
            Output { ptr: y.mut_ptr().cast(), size: 8, strides: Some(&y_strides), step: 2 },
        ];
        // SAFETY: all arrays have an element for each index; the tiles fit the types.
        unsafe { run(&threads(budget), shape, &[input(&a), input(&b)], &steps, &outputs) };
        assert!(mask == expected_mask && y == expected_y, "{shape:?}");
    }

    proptest! {
        #![proptest_config(tenferro_cases::cases(80))]

        #[test]
        fn chains_over_any_layouts_match_the_formula(
            shape in shapes(),
            ways in prop::array::uniform4(prop::array::uniform6(Way::any())),
        ) {
            check(1, &shape, [&ways[0], &ways[1], &ways[2], &ways[3]]);
            check(1, &shape, [&ways[0], &Way::FORWARD, &Way::FORWARD, &Way::FORWARD]);
        }

        #[test]
        fn writing_over_an_input_is_safe(shape in shapes(), way in prop::array::uniform6(Way::any())) {
            let mut x = Strided::new(&shape, &way.map(Way::distinct), counting());
            let mut expected = x.clone();
            for index in indices(&shape) {
                expected.set(&index, 7.0 * x.get(&index));
            }
            let strides = x.strides.clone();
            let to = Output { ptr: x.mut_ptr().cast(), size: 8, strides: Some(&strides), step: 0 };
            let from = Input { ptr: to.ptr, size: 8, strides: Some(&strides) };
            // Later steps read the input again, so it must be whole until the last one.
            let step = |inputs| Step { tile: axpy, op: std::ptr::null(), inputs, size: 8, cost: 1 };
            let steps = [
                step(&[Source::Input(0), Source::Input(0)]),
                step(&[Source::Step(0), Source::Input(0)]),
                step(&[Source::Step(1), Source::Input(0)]),
            ];
            // SAFETY: input and output are the same array.
            unsafe { run(&threads(1), &shape, &[from], &steps, &[Output { step: 2, ..to }]) };
            prop_assert_eq!(&x, &expected);
        }
    }

    #[test]
    fn no_elements_have_extents_of_any_size() {
        let shape = [1 << 40, 1 << 40, 0];
        let (x, mut y) = ([1.0f64], [7.0f64]);
        for strides in [Some(&[0, 0, 0][..]), None] {
            let from = Input { ptr: x.as_ptr().cast(), size: 8, strides };
            let to = Output { ptr: y.as_mut_ptr().cast(), size: 8, strides: None, step: 0 };
            // SAFETY: there is nothing to read or write.
            unsafe { map(&threads(2), &shape, (axpy, std::ptr::null(), 1), &[from, from], to) };
        }
        assert_eq!(y, [7.0]);
    }

    #[test]
    fn compact_operands_without_strides_and_large_ones_on_threads() {
        for n in [0, 1, 5, 64, 300_001] {
            let (a, b): (Vec<f64>, Vec<f64>) = (0..n).map(|i| (i as f64, 0.5 * i as f64)).unzip();
            let expected: Vec<f64> = a.iter().map(|a| 2.0 * a).collect();
            for budget in [1, 2, 3] {
                let mut y = vec![0.0; n];
                let dense = |x: &[f64]| Input { ptr: x.as_ptr().cast(), size: 8, strides: None };
                let to = Output { ptr: y.as_mut_ptr().cast(), size: 8, strides: None, step: 0 };
                // SAFETY: all operands have n elements.
                unsafe {
                    map(&threads(budget), &[n], (axpy, std::ptr::null(), 1), &[dense(&a), dense(&b)], to)
                };
                assert_eq!(y, expected);
            }
        }
        for budget in [2, 3] {
            check(budget, &[300, 401], [&Way::FORWARD; 4]);
        }
    }

    #[test]
    fn more_scratch_than_the_stack_has_is_found() {
        let x: Vec<f64> = (0..1000).map(f64::from).collect();
        let mut y = vec![0.0; 1000];
        // Sixty results live at once: step k adds twice step 0 .. in a ladder read again at the end.
        let links: Vec<[Source; 2]> = (0..60)
            .map(|_| [Source::Input(0), Source::Input(0)])
            .chain(
                (0..60)
                    .map(|k| [if k == 0 { Source::Input(0) } else { Source::Step(59 + k) }, Source::Step(k)]),
            )
            .collect();
        let steps: Vec<Step> = links
            .iter()
            .map(|inputs| Step { tile: axpy, op: std::ptr::null(), inputs, size: 8, cost: 1 })
            .collect();
        let from = Input { ptr: x.as_ptr().cast(), size: 8, strides: None };
        let to = Output { ptr: y.as_mut_ptr().cast(), size: 8, strides: None, step: 119 };
        // SAFETY: both have 1000 elements.
        unsafe { run(&threads(1), &[1000], &[from], &steps, &[to]) };
        assert!(x.iter().zip(&y).all(|(x, y)| *y == (1.0 + 2.0 * 60.0 * 3.0) * x));
    }
}
