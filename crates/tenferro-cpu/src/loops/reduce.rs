//! Reductions over any axes of strided arrays.
//!
//! A [`Reducer`] says how one element enters an accumulator and how two accumulators merge; [`reduce`] does
//! the rest. If the input is dense along a reduced axis, each result is computed from runs of elements in
//! several interleaved accumulators; if it is dense along a kept axis, whole rows of results are accumulated
//! side by side. Either way blocks of some 10^3 elements (or rows) are merged pairwise, so the rounding error
//! of a sum of n terms grows like log n beyond one block.
//!
//! Invariant: how the elements are grouped depends on shapes and strides only, so that results are bitwise
//! the same for any number of threads and any instruction set.

use std::marker::PhantomData;
use std::ops::Range;

use num_complex::Complex;
use smallvec::SmallVec;
use tenferro_core_ops::elements;

use super::plan::{LoopPlan, Tiling};
use super::{Shared, simd::vectorized};
use crate::threads::{PARALLEL_WORK, Threads};

/// An associative (up to rounding) and commutative reduction.
pub(crate) trait Reducer: Copy + Send + Sync {
    /// An element of the input.
    type In: Copy;
    /// An accumulator, and an element of the output.
    type Acc: Copy + Send;
    /// The value of an empty reduction; neutral in [`Reducer::merge`].
    fn init(self) -> Self::Acc;
    /// `acc` with one more element.
    fn add(self, acc: Self::Acc, x: Self::In) -> Self::Acc;
    /// The accumulator of all elements of both.
    fn merge(self, a: Self::Acc, b: Self::Acc) -> Self::Acc;
}

/// Elements that are accumulated in one go, before pairwise merging.
const BLOCK: usize = 2048;
/// As [`BLOCK`] for rows, which have one accumulator an element.
const ROWS: usize = 128;
/// Reductions over fewer elements than this are done for many results side by side.
const SHORT: usize = 32;
/// Compact arrays of at most this many elements are reduced without a plan.
const SMALL: usize = 1 << 14;
/// Results accumulated side by side.
const WIDTH: usize = 256;
/// Rows of fewer elements than this are taken several at a time.
const NARROW: usize = 64;
/// Parts that a large reduction to few results is cut into, whatever the number of threads.
const PARTS: usize = 32;

/// `y[k] = r` over the elements `x[k, i]`, `k` being the index along the axes with `reduced` false and `i`
/// along the others. The strides of `y` along reduced axes are ignored.
///
/// # Safety
/// `x` and `y` point to the elements of index 0, aligned; every element that the shape and the strides (in
/// elements) reach must be valid, those of `y` distinct and apart from `x`.
pub(crate) unsafe fn reduce<R: Reducer>(
    threads: &Threads,
    r: R,
    shape: &[usize],
    reduced: &[bool],
    (x, x_strides): (*const R::In, &[isize]),
    (y, y_strides): (*mut R::Acc, &[isize]),
) {
    if let Some(extents) = compact(shape, reduced, x_strides, y_strides) {
        // SAFETY: the caller's; both arrays are compact.
        return unsafe { reduce_compact(r, extents, x, y) };
    }
    // SAFETY: the caller's.
    unsafe { Job { r, x, y, plan: Plan::new(shape, reduced, x_strides, y_strides) }.run(threads) }
}

/// A reduction of few elements, planned once for any addresses. Terms are added in the order of [`reduce`].
pub(crate) enum Few {
    /// Inner, reduced and outer extents of compact arrays.
    Compact([usize; 3]),
    /// The offsets of the terms of a result, and those of each result's first term and of itself.
    Terms(Box<[isize]>, Box<[(isize, isize)]>),
}

impl Few {
    /// `None` where [`reduce`] does not add one term after the other.
    pub(crate) fn new(
        shape: &[usize],
        reduced: &[bool],
        x_strides: &[isize],
        y_strides: &[isize],
    ) -> Option<Few> {
        if let Some(extents) = compact(shape, reduced, x_strides, y_strides) {
            return Some(Few::Compact(extents));
        }
        let plan = Plan::new(shape, reduced, x_strides, y_strides);
        // Terms along two axes are in one tile, which is walked in the order of the axes.
        let one_by_one = plan.along_rows() && plan.inner.len() <= ROWS && plan.inner.rank() <= 2;
        let places = || plan.kept.offsets(0).into_iter().zip(plan.kept.offsets(1)).collect();
        one_by_one.then(|| Few::Terms(plan.inner.offsets(0).into(), places()))
    }

    /// # Safety
    /// As for [`reduce`].
    pub(crate) unsafe fn run<R: Reducer>(&self, r: R, x: *const R::In, y: *mut R::Acc) {
        // SAFETY: the caller's.
        unsafe {
            match self {
                Few::Compact(extents) => reduce_compact(r, *extents, x, y),
                Few::Terms(terms, places) => {
                    for &(from, to) in places {
                        let x = x.wrapping_offset(from);
                        let sum = terms.iter().fold(r.init(), |sum, &o| r.add(sum, *x.offset(o)));
                        y.offset(to).write(sum);
                    }
                }
            }
        }
    }
}

/// The extents before, of and after the reduced axes, of compact arrays that are small enough to do without a plan.
fn compact(shape: &[usize], reduced: &[bool], x: &[isize], y: &[isize]) -> Option<[usize; 3]> {
    adjacent(shape, reduced, x, y).filter(|&[inner, terms, outer]| {
        terms <= if inner == 1 { BLOCK } else { ROWS }
            && (1..=SMALL).contains(&elements(&[inner, terms, outer]))
    })
}

/// # Safety
/// `x` is compact with the extents inner, terms and outer, `y` with inner and outer.
unsafe fn reduce_compact<R: Reducer>(
    r: R,
    [inner, terms, outer]: [usize; 3],
    x: *const R::In,
    y: *mut R::Acc,
) {
    for o in 0..outer {
        // SAFETY: the caller's.
        unsafe {
            let (x, y) = (x.add(o * inner * terms), y.add(o * inner));
            if inner == 1 {
                y.write(run(r, x, [1, 0], [terms, 1]));
            } else {
                (0..inner).for_each(|i| y.add(i).write(r.init()));
                add_rows(r, std::slice::from_raw_parts_mut(y, inner), x, 1, inner as isize, terms);
            }
        }
    }
}

/// The extents before, of and after the reduced axes, if those are neighbours and both arrays are compact.
#[inline]
fn adjacent(shape: &[usize], reduced: &[bool], x: &[isize], y: &[isize]) -> Option<[usize; 3]> {
    let mut extents = [1; 3];
    let mut part = 0;
    for axis in 0..shape.len() {
        let (extent, reduced) = (shape[axis], reduced[axis]);
        if extent == 1 {
            continue;
        }
        if reduced != (part == 1) {
            part += 1;
        }
        let [inner, _, outer] = extents;
        let dense = x[axis] as usize == elements(&extents)
            && (reduced || y[axis] as usize == elements(&[inner, outer]));
        if part > 2 || !dense {
            return None;
        }
        extents[part] = extents[part].wrapping_mul(extent);
    }
    Some(extents)
}

/// `kept` has the operands x and y, `inner` (the reduced axes) only x.
struct Plan {
    kept: LoopPlan,
    inner: LoopPlan,
}

impl Plan {
    fn new(shape: &[usize], reduced: &[bool], x: &[isize], y: &[isize]) -> Plan {
        type Part<T> = SmallVec<[T; 6]>;
        let pick = |kept: bool| (0..shape.len()).filter(move |&axis| reduced[axis] != kept);
        let extents = |kept| pick(kept).map(|axis| shape[axis]).collect::<Part<usize>>();
        let strides = |kept, strides: &[isize]| pick(kept).map(|axis| strides[axis]).collect::<Part<isize>>();
        Plan {
            kept: LoopPlan::new(&extents(true), &[&strides(true, x), &strides(true, y)]),
            inner: LoopPlan::new(&extents(false), &[&strides(false, x)]),
        }
    }

    /// Whether many results are accumulated side by side.
    fn along_rows(&self) -> bool {
        let (k, i) = (self.kept.stride(0, 0).unsigned_abs(), self.inner.stride(0, 0).unsigned_abs());
        // Rows of a few elements pay only when they follow each other and are taken several at a time.
        let worth = self.kept.extent(0) >= 8 || (k == 1 && i == self.kept.extent(0));
        self.kept.rank() > 0 && (self.inner.len() < SHORT || (k < i && worth))
    }
}

/// A planned reduction at its addresses.
struct Job<R: Reducer> {
    r: R,
    x: *const R::In,
    y: *mut R::Acc,
    plan: Plan,
}

impl<R: Reducer> Job<R> {
    unsafe fn run(&self, threads: &Threads) {
        let (results, terms) = (self.plan.kept.len(), self.plan.inner.len());
        if results == 0 {
            return;
        }
        let work = results * terms * size_of::<R::In>();
        // SAFETY: the caller's.
        unsafe { if self.plan.along_rows() { self.rows(threads, work) } else { self.runs(threads, work) } }
    }

    /// One result after the other.
    unsafe fn runs(&self, threads: &Threads, work: usize) {
        let tiling = self.plan.inner.tiling(BLOCK, true);
        let (results, tiles) = (self.plan.kept.len(), tiling.tiles());
        let lines = self.plan.kept.lines(PARTS);
        let shared = Shared::new((self, &tiling, &lines));
        threads.parallel(work, |par| {
            if results >= PARTS || tiles < 2 || work < PARALLEL_WORK {
                return par.for_each_chunk(lines.tiles(), 1, |range| {
                    let (job, tiling, lines) = shared.get();
                    // SAFETY: lines of results are disjoint.
                    unsafe { job.each_result(lines, range, |x| job.one(tiling, x, 0..tiles)) }
                });
            }
            let (job, tiling, lines) = shared.get();
            let parts = tiles.min(PARTS);
            let in_parts = |x: *const R::In| {
                let mut partial = [job.r.init(); PARTS];
                let shared = Shared::new((job, tiling, x, partial.as_mut_ptr()));
                par.for_each_chunk(parts, 1, |range| {
                    let (job, tiling, x, partial) = shared.get();
                    for part in range {
                        // SAFETY: each part has its own slot.
                        unsafe { partial.add(part).write(job.one(tiling, x, share(tiles, part, parts))) };
                    }
                });
                halve(job.r, partial)
            };
            // SAFETY: the results are written one after the other.
            unsafe { job.each_result(lines, 0..lines.tiles(), in_parts) };
        });
    }

    /// Writes `f(x)` for each result in the lines `range`, `x` being its first term.
    unsafe fn each_result(&self, lines: &Tiling, range: Range<usize>, f: impl Fn(*const R::In) -> R::Acc) {
        let (x0, y0) = (self.plan.kept.stride(0, 0), self.plan.kept.stride(0, 1));
        lines.for_each(&self.plan.kept, range, |offsets, [n, _]| {
            for i in 0..n as isize {
                // SAFETY: the offsets are those of elements of the operands.
                unsafe {
                    let value = f(self.x.wrapping_offset(offsets[0] + i * x0));
                    self.y.offset(offsets[1] + i * y0).write(value);
                }
            }
        });
    }

    /// The result of the terms from `x` on in the tiles `range` of the reduced axes.
    unsafe fn one(&self, tiling: &Tiling, x: *const R::In, range: Range<usize>) -> R::Acc {
        let s = tiling.strides(&self.plan.inner, 0);
        let mut sums: SmallVec<[(R::Acc, u32); 16]> = SmallVec::new();
        tiling.for_each(&self.plan.inner, range, |offsets, n| {
            let x = x.wrapping_offset(offsets[0]);
            // SAFETY: all terms of the tile are elements of the input.
            let mut sum = unsafe {
                match tiling.table(0) {
                    Some(table) => table.iter().fold(self.r.init(), |acc, &o| self.r.add(acc, *x.offset(o))),
                    None => run(self.r, x, s, n),
                }
            };
            let mut level = 0;
            while let Some(&(before, _)) = sums.last().filter(|last| last.1 == level) {
                sums.pop();
                sum = self.r.merge(before, sum);
                level += 1;
            }
            sums.push((sum, level));
        });
        let last = sums.pop().map_or(self.r.init(), |(sum, _)| sum);
        sums.into_iter().rev().fold(last, |sum, (before, _)| self.r.merge(before, sum))
    }

    /// Lines of results side by side.
    unsafe fn rows(&self, threads: &Threads, work: usize) {
        let lines = self.plan.kept.lines(WIDTH);
        let width = lines.block()[0];
        let tiling = self.plan.inner.tiling(if width < NARROW { BLOCK } else { ROWS }, true);
        let tiles = tiling.tiles();
        let parts = if lines.tiles() >= PARTS || work < PARALLEL_WORK { 1 } else { tiles.clamp(1, PARTS) };
        let partial_len = if parts > 1 { lines.tiles() * parts * width } else { 0 };
        let mut partial = vec![self.r.init(); partial_len];
        let shared = Shared::new((self, &tiling, &lines, partial.as_mut_ptr()));
        threads.parallel(work, |par| {
            par.for_each_chunk(lines.tiles() * parts, 1, |range| {
                let (job, tiling, lines, partial) = shared.get();
                let mut sums = Rows::new(job.r);
                for item in range {
                    let (line, part) = (item / parts, item % parts);
                    lines.for_each(&job.plan.kept, line..line + 1, |offsets, [n, _]| {
                        // SAFETY: each item has its own results or its own row of `partial`.
                        unsafe {
                            job.sum_rows(&mut sums, offsets[0], n, tiling, share(tiles, part, parts));
                            match parts {
                                1 => job.store(offsets[1], sums.result()),
                                _ => partial
                                    .add(item * width)
                                    .copy_from_nonoverlapping(sums.result().as_ptr(), n),
                            }
                        }
                    });
                }
            });
        });
        if parts > 1 {
            let mut of_line = partial.chunks_exact_mut(parts * width);
            lines.for_each(&self.plan.kept, 0..lines.tiles(), |offsets, [n, _]| {
                let rows = of_line.next().expect("one chunk per line");
                for step in (0..).map(|i| 1 << i).take_while(|&step| step < parts) {
                    for part in (0..parts - step).step_by(2 * step) {
                        let (a, b) = rows.split_at_mut((part + step) * width);
                        merge_rows(self.r, &mut a[part * width..][..n], &b[..n]);
                    }
                }
                // SAFETY: the offsets are those of elements of the output.
                unsafe { self.store(offsets[1], &rows[..n]) };
            });
        }
    }

    /// Accumulates, for the `n` results that start at `offset`, the rows in the tiles `range` of the reduced
    /// axes.
    unsafe fn sum_rows(
        &self,
        sums: &mut Rows<R>,
        offset: isize,
        n: usize,
        tiling: &Tiling,
        range: Range<usize>,
    ) {
        let x0 = self.plan.kept.stride(0, 0);
        let [s0, s1] = tiling.strides(&self.plan.inner, 0);
        sums.start(n);
        tiling.for_each(&self.plan.inner, range, |offsets, [rows, m]| {
            let x = self.x.wrapping_offset(offset + offsets[0]);
            let acc = sums.push();
            // SAFETY: all terms are elements of the input.
            unsafe {
                match tiling.table(0) {
                    Some(table) => table.iter().for_each(|&o| add_rows(self.r, acc, x.offset(o), x0, 0, 1)),
                    None => (0..m as isize)
                        .for_each(|j| add_rows(self.r, acc, x.wrapping_offset(j * s1), x0, s0, rows)),
                }
            }
            sums.merge();
        });
    }

    /// Writes consecutive results from `offset` on.
    unsafe fn store(&self, offset: isize, results: &[R::Acc]) {
        let y0 = self.plan.kept.stride(0, 1);
        for (i, &value) in results.iter().enumerate() {
            // SAFETY: the caller passes results of one line and its offset.
            unsafe { self.y.offset(offset + i as isize * y0).write(value) };
        }
    }
}

/// The tiles of part `part` of `parts`.
fn share(tiles: usize, part: usize, parts: usize) -> Range<usize> {
    part * tiles / parts..(part + 1) * tiles / parts
}

/// Rows of accumulators that are merged pairwise: a stack whose levels halve in number as they rise.
struct Rows<R: Reducer> {
    r: R,
    n: usize,
    /// The rows, one after the other.
    values: Vec<R::Acc>,
    levels: SmallVec<[u32; 32]>,
}

impl<R: Reducer> Rows<R> {
    fn new(r: R) -> Rows<R> {
        Rows { r, n: 0, values: Vec::new(), levels: SmallVec::new() }
    }

    fn start(&mut self, n: usize) {
        self.n = n;
        self.values.clear();
        self.levels.clear();
    }

    /// A new row.
    fn push(&mut self) -> &mut [R::Acc] {
        let at = self.values.len();
        self.values.resize(at + self.n, self.r.init());
        self.levels.push(0);
        &mut self.values[at..]
    }

    /// Merges the last rows while they stand for equally many blocks.
    fn merge(&mut self) {
        while let [.., a, b] = self.levels[..]
            && a == b
        {
            self.merge_last();
            *self.levels.last_mut().expect("a row is left") += 1;
        }
    }

    fn merge_last(&mut self) {
        self.levels.pop();
        let last = self.values.len() - self.n;
        let (head, tail) = self.values.split_at_mut(last);
        merge_rows(self.r, &mut head[last - self.n..], tail);
        self.values.truncate(last);
    }

    /// Everything merged into one row.
    fn result(&mut self) -> &[R::Acc] {
        if self.levels.is_empty() {
            self.push();
        }
        while self.levels.len() > 1 {
            self.merge_last();
        }
        &self.values
    }
}

fn merge_rows<R: Reducer>(r: R, a: &mut [R::Acc], b: &[R::Acc]) {
    vectorized(
        a.len(),
        #[inline(always)]
        move || {
            for (a, &b) in a.iter_mut().zip(b) {
                *a = r.merge(*a, b);
            }
        },
    );
}

/// Adds to each `acc[k]` the elements `x[k * x0 + i * s]`, `i < rows`.
///
/// # Safety
/// The elements must be valid.
unsafe fn add_rows<R: Reducer>(r: R, acc: &mut [R::Acc], x: *const R::In, x0: isize, s: isize, rows: usize) {
    let n = acc.len();
    let together = 1 << (WIDTH / n).max(1).ilog2();
    if n < NARROW && x0 == 1 && s == n as isize && rows >= 2 * together {
        // Narrow rows that follow each other: several of them are one wide row.
        let mut wide = [r.init(); WIDTH];
        let wide = &mut wide[..together * n];
        // SAFETY: the same elements.
        unsafe {
            add_rows(r, wide, x, 1, wide.len() as isize, rows / together);
            let done = rows / together * together;
            add_rows(r, acc, x.add(done * n), 1, s, rows - done);
        }
        let mut half = wide.len() / 2;
        while half >= n {
            let (a, b) = wide[..2 * half].split_at_mut(half);
            merge_rows(r, a, b);
            half /= 2;
        }
        return merge_rows(r, acc, &wide[..n]);
    }
    vectorized(
        n,
        #[inline(always)]
        move || {
            if x0 != 1 {
                for (k, acc) in acc.iter_mut().enumerate() {
                    let x = x.wrapping_offset(k as isize * x0);
                    // SAFETY: the caller's.
                    *acc = (0..rows as isize).fold(*acc, |acc, i| r.add(acc, unsafe { *x.offset(i * s) }));
                }
                return;
            }
            let row = |i: isize| {
                // SAFETY: the caller vouches for n elements of each row.
                unsafe { std::slice::from_raw_parts(x.wrapping_offset(i * s), n) }
            };
            let whole = (rows - rows % 4) as isize;
            // Four rows at a time, so that accumulators are loaded and stored less often.
            for i in (0..whole).step_by(4) {
                let (x0, x1, x2, x3) = (row(i), row(i + 1), row(i + 2), row(i + 3));
                for k in 0..n {
                    acc[k] = r.add(r.add(r.add(r.add(acc[k], x0[k]), x1[k]), x2[k]), x3[k]);
                }
            }
            for i in whole..rows as isize {
                for (acc, &x) in acc.iter_mut().zip(row(i)) {
                    *acc = r.add(*acc, x);
                }
            }
        },
    );
}

/// The reduction of `x[i s0 + j s1]` over `i < n0`, `j < n1`.
///
/// # Safety
/// The elements must be valid.
#[inline]
unsafe fn run<R: Reducer>(r: R, x: *const R::In, s: [isize; 2], n: [usize; 2]) -> R::Acc {
    // SAFETY: the caller's.
    unsafe {
        match (s[0], size_of::<R::In>()) {
            (1, 0..=1) if n[0] >= 256 => dense::<R, 256>(r, x, s[1], n),
            (1, 2..=4) if n[0] >= 64 => dense::<R, 64>(r, x, s[1], n),
            (1, 5..=8) if n[0] >= 32 => dense::<R, 32>(r, x, s[1], n),
            (1, 9..) if n[0] >= 16 => dense::<R, 16>(r, x, s[1], n),
            _ => scattered(r, x, s, n),
        }
    }
}

/// [`run`] over dense rows, in `L` interleaved accumulators: a few vector registers.
#[inline(always)]
unsafe fn dense<R: Reducer, const L: usize>(
    r: R,
    x: *const R::In,
    s1: isize,
    [n0, n1]: [usize; 2],
) -> R::Acc {
    vectorized(
        n0,
        #[inline(always)]
        move || {
            // Every index below is a constant, so that the accumulators stay in registers.
            let (mut lanes, mut few, mut last) = ([r.init(); L], [r.init(); 4], r.init());
            for j in 0..n1 as isize {
                // SAFETY: the caller vouches for the rows.
                let row = unsafe { std::slice::from_raw_parts(x.offset(j * s1), n0) };
                let (blocks, rest) = row.as_chunks::<L>();
                for block in blocks {
                    for k in 0..L {
                        lanes[k] = r.add(lanes[k], block[k]);
                    }
                }
                let (blocks, rest) = rest.as_chunks::<4>();
                for block in blocks {
                    for k in 0..4 {
                        few[k] = r.add(few[k], block[k]);
                    }
                }
                last = rest.iter().fold(last, |last, &x| r.add(last, x));
            }
            r.merge(halve(r, lanes), r.merge(halve(r, few), last))
        },
    )
}

/// [`run`] for short or scattered rows.
#[inline(always)]
unsafe fn scattered<R: Reducer>(r: R, x: *const R::In, s: [isize; 2], [n0, n1]: [usize; 2]) -> R::Acc {
    let (mut lanes, mut last) = ([r.init(); 4], r.init());
    let whole = (n0 - n0 % 4) as isize;
    for j in 0..n1 as isize {
        // SAFETY: the caller's.
        let at = |i: isize| unsafe { *x.offset(i * s[0] + j * s[1]) };
        for i in (0..whole).step_by(4) {
            lanes = std::array::from_fn(|k| r.add(lanes[k], at(i + k as isize)));
        }
        last = (whole..n0 as isize).fold(last, |last, i| r.add(last, at(i)));
    }
    r.merge(halve(r, lanes), last)
}

/// Merges pairwise; `L` is a power of two.
#[inline(always)]
fn halve<R: Reducer, const L: usize>(r: R, mut lanes: [R::Acc; L]) -> R::Acc {
    let mut half = L / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = r.merge(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// The sum; integers wrap.
pub(crate) struct Sum<T>(PhantomData<T>);
/// The product; integers wrap.
pub(crate) struct Prod<T>(PhantomData<T>);
/// The largest element (of bools, whether any is true); NaN if there is one; the least value of the type if there
/// is no element.
pub(crate) struct Max<T>(PhantomData<T>);
/// The smallest element (of bools, whether all are true); NaN if there is one; the greatest value of the type if
/// there is no element.
pub(crate) struct Min<T>(PhantomData<T>);

/// One row per reduction: its neutral value and how two values become one.
macro_rules! reducers {
    ($($name:ident { $($T:ty: $init:expr, |$a:ident, $b:ident| $merge:expr;)* })*) => { $(
        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<T> {}
        impl<T> Default for $name<T> {
            fn default() -> Self {
                $name(PhantomData)
            }
        }
        $(impl Reducer for $name<$T> {
            type In = $T;
            type Acc = $T;
            #[inline(always)]
            fn init(self) -> $T {
                $init
            }
            #[inline(always)]
            fn add(self, $a: $T, $b: $T) -> $T {
                $merge
            }
            #[inline(always)]
            fn merge(self, $a: $T, $b: $T) -> $T {
                $merge
            }
        })*
    )* };
}

type C32 = Complex<f32>;
type C64 = Complex<f64>;

// A NaN compares false, so it is kept once it is in `a`, and taken over from `b` by `b != b`.
#[rustfmt::skip]
reducers! {
    Sum {
        f32: 0.0, |a, b| a + b;
        f64: 0.0, |a, b| a + b;
        C32: C32::new(0.0, 0.0), |a, b| a + b;
        C64: C64::new(0.0, 0.0), |a, b| a + b;
        i32: 0, |a, b| a.wrapping_add(b);
        i64: 0, |a, b| a.wrapping_add(b);
    }
    Prod {
        f32: 1.0, |a, b| a * b;
        f64: 1.0, |a, b| a * b;
        C32: C32::new(1.0, 0.0), |a, b| a * b;
        C64: C64::new(1.0, 0.0), |a, b| a * b;
        i32: 1, |a, b| a.wrapping_mul(b);
        i64: 1, |a, b| a.wrapping_mul(b);
    }
    Max {
        f32: f32::NEG_INFINITY, |a, b| if b > a || b.is_nan() { b } else { a };
        f64: f64::NEG_INFINITY, |a, b| if b > a || b.is_nan() { b } else { a };
        i32: i32::MIN, |a, b| a.max(b);
        i64: i64::MIN, |a, b| a.max(b);
        bool: false, |a, b| a | b;
    }
    Min {
        f32: f32::INFINITY, |a, b| if b < a || b.is_nan() { b } else { a };
        f64: f64::INFINITY, |a, b| if b < a || b.is_nan() { b } else { a };
        i32: i32::MAX, |a, b| a.min(b);
        i64: i64::MAX, |a, b| a.min(b);
        bool: true, |a, b| a & b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::testing::{Strided, Way, compact, indices, shapes, threads};
    use proptest::prelude::*;

    /// Reduces with [`reduce`] and gives the results in column-major order of the kept axes.
    fn reduced<R: Reducer<Acc: Default>>(
        budget: usize,
        r: R,
        shape: &[usize],
        axes: &[bool],
        x: &Strided<R::In>,
    ) -> Vec<R::Acc> {
        let kept: Vec<usize> = shape.iter().zip(axes).map(|(&e, &r)| if r { 1 } else { e }).collect();
        let mut y = vec![R::Acc::default(); kept.iter().product()];
        let strides = compact(&kept);
        // SAFETY: `y` has an element for each kept index, `x` one for each index.
        unsafe {
            reduce(&threads(budget), r, shape, axes, (x.ptr(), &x.strides), (y.as_mut_ptr(), &strides))
        };
        y
    }

    /// The same sum by [`Few`], if it takes it.
    fn few(shape: &[usize], axes: &[bool], x: &Strided<f64>) -> Option<Vec<f64>> {
        let kept: Vec<usize> = shape.iter().zip(axes).map(|(&e, &r)| if r { 1 } else { e }).collect();
        let mut y = vec![0.0; kept.iter().product()];
        let few = Few::new(shape, axes, &x.strides, &compact(&kept))?;
        // SAFETY: `y` has an element for each kept index, `x` one for each index.
        unsafe { few.run(Sum::<f64>::default(), x.ptr(), y.as_mut_ptr()) };
        Some(y)
    }

    /// The same by walking over the indices.
    fn naive<R: Reducer>(r: R, shape: &[usize], axes: &[bool], x: &Strided<R::In>) -> Vec<R::Acc> {
        let kept: Vec<usize> = shape.iter().zip(axes).map(|(&e, &r)| if r { 1 } else { e }).collect();
        let mut y = vec![r.init(); kept.iter().product()];
        for index in indices(shape) {
            let (mut at, mut stride) = (0, 1);
            for ((&i, &e), &reduced) in index.iter().zip(&kept).zip(axes) {
                at += if reduced { 0 } else { i * stride };
                stride *= e;
            }
            y[at] = r.add(y[at], x.get(&index));
        }
        y
    }

    proptest! {
        #![proptest_config(tenferro_cases::cases(80))]

        #[test]
        fn any_axes_of_any_layout_match_an_index_walk(
            shape in shapes(),
            way in prop::array::uniform6(Way::any()),
            axes in prop::array::uniform6(any::<bool>()),
        ) {
            let axes = &axes[..shape.len()];
            let mut value = 0i64;
            let x = Strided::new(&shape, &way, || { value += 7; value % 1009 - 500 });
            prop_assert_eq!(
                reduced(1, Sum::<i64>::default(), &shape, axes, &x),
                naive(Sum::<i64>::default(), &shape, axes, &x)
            );
            let f = x.map(|v| v as f32);
            prop_assert_eq!(
                reduced(1, Max::<f32>::default(), &shape, axes, &f),
                naive(Max::<f32>::default(), &shape, axes, &f)
            );
            let thirds = x.map(|v| v as f64 / 3.0);
            if let Some(got) = few(&shape, axes, &thirds) {
                prop_assert_eq!(got, reduced(1, Sum::<f64>::default(), &shape, axes, &thirds));
            }
            let b = x.map(|v| v % 3 == 0);
            prop_assert_eq!(
                reduced(1, Max::<bool>::default(), &shape, axes, &b),
                naive(Max::<bool>::default(), &shape, axes, &b)
            );
        }
    }

    #[test]
    fn large_reductions_are_right_and_independent_of_the_threads() {
        let cases: [(&[usize], &[bool]); 7] = [
            (&[300_007], &[true]),
            (&[700, 501], &[true, false]),
            (&[700, 501], &[false, true]),
            (&[3, 100_003], &[false, true]),
            (&[100_003, 3], &[true, false]),
            (&[20, 5, 3001], &[false, true, true]),
            (&[20, 5, 3001], &[true, false, true]),
        ];
        for (shape, axes) in cases {
            let mut state = 1u64;
            let x = Strided::new(shape, &Way::FORWARD, || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) as f64 / 2f64.powi(31) - 0.5
            });
            let one = reduced(1, Sum::<f64>::default(), shape, axes, &x);
            for budget in [2, 3] {
                assert_eq!(one, reduced(budget, Sum::<f64>::default(), shape, axes, &x));
            }
            for (a, b) in one.iter().zip(naive(Sum::<f64>::default(), shape, axes, &x)) {
                assert!((a - b).abs() < 1e-9, "{a} {b}");
            }
            let max = reduced(2, Max::<f64>::default(), shape, axes, &x);
            assert_eq!(max, naive(Max::<f64>::default(), shape, axes, &x));
        }
    }

    #[test]
    fn the_error_of_a_long_sum_stays_near_one_rounding() {
        // Adding 0.1f32 one by one loses 2 % here.
        let n = 1 << 22;
        for (shape, axes) in [(vec![n], vec![true]), (vec![16, n / 16], vec![true, true])] {
            let x = Strided::new(&shape, &Way::FORWARD, || 0.1f32);
            let sum = reduced(1, Sum::<f32>::default(), &shape, &axes, &x)[0] as f64;
            let exact = n as f64 * 0.1f32 as f64;
            assert!((sum - exact).abs() < 8.0 * f32::EPSILON as f64 * exact);
        }
        let x = Strided::new(&[2, n / 2], &Way::FORWARD, || 0.1f32);
        for sum in reduced(1, Sum::<f32>::default(), &[2, n / 2], &[false, true], &x) {
            let exact = (n / 2) as f64 * 0.1f32 as f64;
            assert!((sum as f64 - exact).abs() < 8.0 * f32::EPSILON as f64 * exact);
        }
    }

    #[test]
    fn nan_wins_wherever_it_is() {
        for at in [0, 1, 31, 32, 63, 99] {
            for shape in [[100, 1], [1, 100], [10, 10]] {
                let mut i = 0;
                let x = Strided::new(&shape, &Way::FORWARD, || {
                    i += 1;
                    if i - 1 == at { f64::NAN } else { i as f64 }
                });
                let axes = [true, true];
                assert!(reduced(1, Max::<f64>::default(), &shape, &axes, &x)[0].is_nan());
                assert!(reduced(1, Min::<f64>::default(), &shape, &axes, &x)[0].is_nan());
            }
        }
    }

    #[test]
    fn empty_reductions_give_the_neutral_value() {
        let x = Strided::new(&[0, 3], &Way::FORWARD, || 1.0f64);
        assert_eq!(reduced(1, Prod::<f64>::default(), &[0, 3], &[true, false], &x), [1.0; 3]);
        assert_eq!(reduced(1, Sum::<f64>::default(), &[0, 3], &[false, true], &x), []);
        assert_eq!(reduced(1, Max::<f64>::default(), &[0, 3], &[true, true], &x), [f64::NEG_INFINITY]);
    }
}
