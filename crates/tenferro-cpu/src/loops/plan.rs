//! From shapes and strides to few, long axes, and from those to tiles.
//!
//! A [`LoopPlan`] describes one loop over several operands of one shape, operand 0 being the output. Axes of
//! extent 1 are dropped; axes that run backwards are turned round; the rest are sorted so that the output is
//! walked forwards in memory; neighbours that form one longer axis in every operand are merged. A [`Tiling`]
//! then cuts the space into tiles of at most two axes, which the kernels work on: when the axis along which
//! an input is dense differs from the output's, tiles extend along both, so that each cache line loaded is
//! used up.
//!
//! Invariant: the tiles cover each index once, and the tiles and their order depend on the plan and the
//! limits given, not on the threads that visit them.

use std::ops::Range;

use smallvec::SmallVec;
use tenferro_core_ops::elements;

/// One value per operand; inline for all but large fused groups.
pub(crate) type PerOperand<T> = SmallVec<[T; 8]>;

/// Whether these strides are those of a compact column-major array (axes of extent 1 are free).
#[inline]
pub(crate) fn is_compact(shape: &[usize], strides: &[isize]) -> bool {
    let mut dense = 1isize;
    for (&extent, &stride) in shape.iter().zip(strides) {
        if extent != 1 {
            if stride != dense {
                return false;
            }
            // Wraps only beside an extent of zero, as everywhere in this file.
            dense = dense.wrapping_mul(extent as isize);
        }
    }
    true
}

/// Whether an axis of `extent` steps followed by one with the strides `after` is one axis in every operand.
#[inline(always)]
fn mergeable(before: &[isize], extent: usize, after: &[isize]) -> bool {
    before.iter().zip(after).all(|(&a, &b)| b == a.wrapping_mul(extent as isize))
}

#[inline(always)]
fn magnitudes(strides: &[isize]) -> impl Iterator<Item = usize> {
    strides.iter().map(|s| s.unsigned_abs())
}

/// The offsets of every index over `(extent, stride)` pairs from `start` on, in column-major order.
pub(crate) fn offsets(start: isize, axes: impl IntoIterator<Item = (usize, isize)>) -> Vec<isize> {
    let mut all = vec![start];
    for (extent, stride) in axes {
        all = (0..extent as isize).flat_map(|i| all.iter().map(move |o| o + i * stride)).collect();
    }
    all
}

/// The axes of one loop, sorted and merged. Strides and offsets count elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoopPlan {
    operands: usize,
    extents: SmallVec<[usize; 6]>,
    /// `strides[axis * operands + operand]`.
    strides: SmallVec<[isize; 24]>,
    /// Where the first element visited lies from each operand's first logical element.
    start: PerOperand<isize>,
}

impl LoopPlan {
    /// The plan for `operands`, each given by its strides along the axes of `shape`.
    #[inline]
    pub(crate) fn new(shape: &[usize], operands: &[&[isize]]) -> LoopPlan {
        let count = operands.len();
        debug_assert!(count > 0 && operands.iter().all(|s| s.len() == shape.len()));
        if operands.iter().all(|s| is_compact(shape, s)) {
            return LoopPlan::one_axis(count, elements(shape), 1);
        }
        let mut plan = LoopPlan {
            operands: count,
            extents: SmallVec::from_elem(0, shape.len()),
            strides: SmallVec::from_elem(0, shape.len() * count),
            start: SmallVec::from_elem(0, count),
        };
        let (extents, strides, start) = (&mut plan.extents[..], &mut plan.strides[..], &mut plan.start[..]);
        let mut rank = 0;
        let mut sorted = true;
        for (axis, &extent) in shape.iter().enumerate() {
            if extent == 1 {
                continue;
            }
            if extent == 0 {
                return LoopPlan::one_axis(count, 0, 0);
            }
            let (head, tail) = strides.split_at_mut(rank * count);
            let this = &mut tail[..count];
            for (to, from) in this.iter_mut().zip(operands) {
                *to = from[axis];
            }
            if this.iter().find(|&&s| s != 0).is_some_and(|&s| s < 0) {
                for (start, stride) in start.iter_mut().zip(this.iter_mut()) {
                    let reach = stride.wrapping_mul((extent as isize).wrapping_sub(1));
                    *start = start.wrapping_add(reach);
                    *stride = stride.wrapping_neg();
                }
            }
            if rank > 0 {
                let before = &head[(rank - 1) * count..];
                if mergeable(before, extents[rank - 1], this) {
                    // Wraps only where another extent is 0, and so no element is visited.
                    extents[rank - 1] = extents[rank - 1].wrapping_mul(extent);
                    continue;
                }
                sorted &= magnitudes(before).le(magnitudes(this));
            }
            extents[rank] = extent;
            rank += 1;
        }
        plan.extents.truncate(rank);
        plan.strides.truncate(rank * count);
        if !sorted {
            plan.sort();
        }
        plan
    }

    /// The plan of one axis with the same stride in all operands.
    pub(crate) fn one_axis(operands: usize, extent: usize, stride: isize) -> LoopPlan {
        LoopPlan {
            operands,
            extents: SmallVec::from_elem(extent, 1),
            strides: SmallVec::from_elem(stride, operands),
            start: SmallVec::from_elem(0, operands),
        }
    }

    /// Sorts the axes by stride magnitude: in the output, then in each input; then merges those that became
    /// neighbours.
    #[inline(never)]
    fn sort(&mut self) {
        let mut order: SmallVec<[usize; 6]> = (0..self.rank()).collect();
        for i in 1..order.len() {
            let mut j = i;
            while j > 0 && magnitudes(self.strides(order[j])).lt(magnitudes(self.strides(order[j - 1]))) {
                order.swap(j, j - 1);
                j -= 1;
            }
        }
        let (from, count) = (self.clone(), self.operands);
        let mut rank = 0;
        for axis in order {
            let (strides, extent) = (from.strides(axis), from.extents[axis]);
            if rank > 0 && mergeable(self.strides(rank - 1), self.extents[rank - 1], strides) {
                self.extents[rank - 1] *= extent;
            } else {
                self.extents[rank] = extent;
                self.strides[rank * count..][..count].copy_from_slice(strides);
                rank += 1;
            }
        }
        self.extents.truncate(rank);
        self.strides.truncate(rank * count);
    }

    /// The number of axes left.
    pub(crate) fn rank(&self) -> usize {
        self.extents.len()
    }

    /// The number of elements visited.
    pub(crate) fn len(&self) -> usize {
        elements(&self.extents)
    }

    /// Extents, innermost axis first.
    #[cfg(test)]
    pub(crate) fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Strides of `axis`, one per operand.
    #[inline]
    pub(crate) fn strides(&self, axis: usize) -> &[isize] {
        &self.strides[axis * self.operands..][..self.operands]
    }

    /// The stride of `operand` along `axis`; 0 for an axis that the plan does not have.
    #[inline]
    pub(crate) fn stride(&self, axis: usize, operand: usize) -> isize {
        if axis < self.rank() { self.strides[axis * self.operands + operand] } else { 0 }
    }

    /// The extent of `axis`; 1 for an axis that the plan does not have.
    #[inline]
    pub(crate) fn extent(&self, axis: usize) -> usize {
        self.extents.get(axis).copied().unwrap_or(1)
    }

    /// Where the first element visited lies from each operand's first logical element.
    pub(crate) fn start(&self) -> &[isize] {
        &self.start
    }

    /// Where the element of each index lies from the operand's first logical one, in the order of the axes.
    pub(crate) fn offsets(&self, operand: usize) -> Vec<isize> {
        let axes = (0..self.rank()).map(|axis| (self.extent(axis), self.stride(axis, operand)));
        offsets(self.start[operand], axes)
    }

    /// The axis along which the first operand that is not dense along axis 0 is denser; `None` if axis 0
    /// suits all.
    fn conflicting_axis(&self) -> Option<usize> {
        (0..self.operands).find_map(|operand| {
            let own = self.stride(0, operand).unsigned_abs();
            (1..self.rank())
                .filter(|&axis| self.extents[axis] > 1)
                .map(|axis| (self.stride(axis, operand).unsigned_abs(), axis))
                .filter(|&(stride, _)| stride != 0 && own != 0 && stride < own)
                .min()
                .map(|(_, axis)| axis)
        })
    }

    /// Tiles of at most `limit` elements (a power of two, at least 64). With `packed`, short axes are taken
    /// together to fill a tile; without, tiles have one axis unless operands are dense along different ones.
    pub(crate) fn tiling(&self, limit: usize, packed: bool) -> Tiling {
        let first = self.extent(0);
        if self.rank() < 2 {
            return Tiling::new(self, 1, [first.min(limit), 1]);
        }
        let (second, block) = match self.conflicting_axis() {
            Some(second) => {
                // Square, unless one side is shorter than that: then the other takes the rest.
                let side = 1 << (limit.ilog2() / 2);
                let other = self.extent(second);
                let block = if other < side {
                    [first.min(limit / other), other]
                } else {
                    let first = first.min(side);
                    [first, other.min(limit / first)]
                };
                (second, block)
            }
            None => {
                let first = first.min(limit);
                let pack = packed && first == self.extent(0);
                (1, [first, if pack { self.extent(1).min(limit / first) } else { 1 }])
            }
        };
        if packed && self.rank() > 2 && block[0] * block[1] < SMALL_TILE {
            Tiling::scattered(self, limit)
        } else {
            Tiling::new(self, second, block)
        }
    }

    /// Tiles of at most `limit` elements along axis 0 only.
    pub(crate) fn lines(&self, limit: usize) -> Tiling {
        Tiling::new(self, 1, [self.extent(0).min(limit), 1])
    }

    /// Axes with the sides of their blocks, ordered so that lines of all operands are used up soon after they
    /// are loaded: by the smallest step any operand takes.
    fn by_locality(&self, block: impl Fn(usize) -> usize) -> SmallVec<[Blocks; 6]> {
        let mut axes: SmallVec<[Blocks; 6]> = SmallVec::new();
        let step = |b: &Blocks| {
            magnitudes(self.strides(b.axis))
                .filter(|&s| s != 0)
                .min()
                .unwrap_or(usize::MAX)
                .saturating_mul(b.size)
        };
        for axis in 0..self.rank() {
            let size = block(axis).max(1);
            axes.push(Blocks { axis, size, count: self.extents[axis].div_ceil(size) });
            let mut i = axes.len() - 1;
            while i > 0 && step(&axes[i]) < step(&axes[i - 1]) {
                axes.swap(i, i - 1);
                i -= 1;
            }
        }
        axes
    }
}

/// Tiles of two axes with fewer elements than this cost more to visit than to work on.
const SMALL_TILE: usize = 32;

/// A plan cut into tiles: either of up to `block[0]` steps along axis 0 and `block[1]` along axis `second`,
/// or, when all axes are short, of several whole axes, whose elements are listed in a table.
#[derive(Clone, Debug)]
pub(crate) struct Tiling {
    second: usize,
    block: [usize; 2],
    /// How tiles follow each other: first axis fastest. Axes that are not cut are left out.
    axes: SmallVec<[Blocks; 6]>,
    tiles: usize,
    /// Offsets of the elements of a tile from its first: `table[operand * block[0] + i]`. Empty for regular
    /// tiles.
    table: Vec<isize>,
}

/// How one axis is cut.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    axis: usize,
    size: usize,
    count: usize,
}

impl Tiling {
    fn new(plan: &LoopPlan, second: usize, block: [usize; 2]) -> Tiling {
        let mut axes = plan.by_locality(|axis| match axis {
            0 => block[0],
            axis if axis == second => block[1],
            _ => 1,
        });
        axes.retain(|b| b.count != 1);
        let tiles = axes.iter().map(|b| b.count).product();
        Tiling { second, block, axes, tiles, table: Vec::new() }
    }

    /// As many whole axes as fit into `limit` elements.
    fn scattered(plan: &LoopPlan, limit: usize) -> Tiling {
        let mut axes = plan.by_locality(|_| 1);
        let mut table: Vec<isize> = vec![0; plan.operands];
        let mut len = 1;
        while let Some(&Blocks { axis, count, .. }) = axes.first().filter(|b| len * b.count <= limit) {
            let strides = plan.strides(axis).iter().enumerate();
            table = strides
                .flat_map(|(operand, &stride)| {
                    let inner = &table[operand * len..][..len];
                    (0..count as isize).flat_map(move |i| inner.iter().map(move |o| o + i * stride))
                })
                .collect();
            len *= count;
            axes.remove(0);
        }
        let tiles = axes.iter().map(|b| b.count).product();
        Tiling { second: usize::MAX, block: [len, 1], axes, tiles, table }
    }

    /// The offsets of the elements of a tile from its first, for tiles that are not regular.
    pub(crate) fn table(&self, operand: usize) -> Option<&[isize]> {
        let len = self.block[0];
        (!self.table.is_empty()).then(|| &self.table[operand * len..][..len])
    }

    /// The number of tiles.
    pub(crate) fn tiles(&self) -> usize {
        self.tiles
    }

    /// The extents of a whole tile; those at the end of an axis may be shorter.
    pub(crate) fn block(&self) -> [usize; 2] {
        self.block
    }

    /// The strides of `operand` along the two axes of a tile.
    pub(crate) fn strides(&self, plan: &LoopPlan, operand: usize) -> [isize; 2] {
        [plan.stride(0, operand), plan.stride(self.second, operand)]
    }

    /// Visits the tiles numbered `range`: `f(offsets, extents)` with the offset of each operand's first
    /// element.
    #[inline]
    pub(crate) fn for_each(
        &self,
        plan: &LoopPlan,
        range: Range<usize>,
        mut f: impl FnMut(&[isize], [usize; 2]),
    ) {
        if range.is_empty() {
            return;
        }
        let mut offsets: PerOperand<isize> = SmallVec::from_slice(&plan.start);
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, self.axes.len());
        let mut rest = range.start;
        for (i, b) in index.iter_mut().zip(&self.axes) {
            *i = rest % b.count;
            rest /= b.count;
            advance(&mut offsets, plan.strides(b.axis), (*i * b.size) as isize);
        }
        // Only the last block of an axis may be shorter.
        let cut = |axis: usize| self.axes.iter().position(|b| b.axis == axis && b.size > 1);
        let cuts = if self.table.is_empty() { [cut(0), cut(self.second)] } else { [None; 2] };
        let ends = [plan.extent(0), plan.extent(self.second)];
        for _ in range {
            let mut extents = self.block;
            for side in 0..2 {
                if let Some(at) = cuts[side] {
                    extents[side] = self.block[side].min(ends[side] - index[at] * self.block[side]);
                }
            }
            f(&offsets, extents);
            for (i, b) in index.iter_mut().zip(&self.axes) {
                let strides = plan.strides(b.axis);
                *i += 1;
                if *i < b.count {
                    advance(&mut offsets, strides, b.size as isize);
                    break;
                }
                *i = 0;
                advance(&mut offsets, strides, -(((b.count - 1) * b.size) as isize));
            }
        }
    }
}

#[inline(always)]
fn advance(offsets: &mut [isize], strides: &[isize], steps: isize) {
    for (offset, stride) in offsets.iter_mut().zip(strides) {
        *offset += stride * steps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::testing::indices;

    fn extents(shape: &[usize], operands: &[&[isize]]) -> Vec<usize> {
        LoopPlan::new(shape, operands).extents().to_vec()
    }

    #[test]
    fn compact_operands_become_one_axis() {
        assert_eq!(extents(&[4, 1, 5, 6], &[&[1, 9, 4, 20], &[1, 0, 4, 20]]), [120]);
        assert!(is_compact(&[4, 1, 5, 6], &[1, 9, 4, 20]));
        assert!(!is_compact(&[4, 5], &[5, 1]));
    }

    #[test]
    fn row_major_operands_are_sorted_then_merged() {
        assert_eq!(extents(&[4, 5, 6], &[&[30, 6, 1], &[30, 6, 1]]), [120]);
    }

    #[test]
    fn reversed_output_is_walked_forwards() {
        let plan = LoopPlan::new(&[4, 5], &[&[-1, -4], &[1, 4]]);
        assert_eq!(
            (plan.extents(), plan.strides(0), plan.start()),
            (&[20][..], &[1, -1][..], &[-19, 19][..])
        );
    }

    #[test]
    fn a_broadcast_input_keeps_its_axis_apart() {
        assert_eq!(extents(&[4, 5, 6], &[&[1, 4, 20], &[0, 1, 5]]), [4, 30]);
    }

    #[test]
    fn unit_and_empty_shapes_have_plans() {
        assert_eq!(extents(&[], &[&[]]), [1]);
        assert_eq!(extents(&[1; 30], &[&[7; 30]]), [1]);
        assert_eq!(LoopPlan::new(&[3, 0, 2], &[&[1, 3, 0]]).len(), 0);
        assert_eq!(LoopPlan::new(&[3, 0, 2], &[&[1, 3, 0]]).tiling(64, true).tiles(), 0);
    }

    #[test]
    fn tiles_cover_every_index_once_in_any_split() {
        let cases: [(&[usize], &[&[isize]]); 6] = [
            (&[37, 41, 3], &[&[1, 37, 1517], &[41 * 3, 3, 1]]),
            (&[5, 7, 9], &[&[1, 5, 35], &[9, 45, 1]]),
            (&[100], &[&[1], &[0]]),
            (&[2, 100], &[&[1, 4], &[100, 1]]),
            (&[], &[&[], &[]]),
            (&[2, 3, 2, 3, 2, 3], &[&[1, 2, 6, 12, 36, 72], &[108, 36, 18, 6, 3, 1]]),
        ];
        for (shape, operands) in cases {
            let plan = LoopPlan::new(shape, operands);
            for (limit, packed) in [(64, false), (64, true), (1 << 20, true)] {
                let tiling = plan.tiling(limit, packed);
                let mut seen = Vec::new();
                let (tiles, middle) = (tiling.tiles(), tiling.tiles() / 3);
                for range in [0..middle, middle..tiles] {
                    tiling.for_each(&plan, range, |offsets, [n0, n1]| {
                        assert!(n0 * n1 <= limit);
                        let [a, b] = tiling.strides(&plan, 0);
                        if let Some(table) = tiling.table(0) {
                            return seen.extend(table.iter().map(|o| offsets[0] + o));
                        }
                        for i in 0..n0 * n1 {
                            let (i, j) = ((i % n0) as isize, (i / n0) as isize);
                            seen.push(offsets[0] + i * a + j * b);
                        }
                    });
                }
                seen.sort();
                let at = |index: Vec<usize>| {
                    index.iter().zip(operands[0]).map(|(&i, s)| i as isize * s).sum::<isize>()
                };
                let mut all: Vec<isize> = indices(shape).map(at).collect();
                all.sort();
                assert_eq!(seen, all);
            }
        }
    }
}
