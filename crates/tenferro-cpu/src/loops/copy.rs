//! Strided copies: permutations, slices, broadcasts and fills of elements of 1, 4, 8 or 16 bytes.
//!
//! [`copy`] plans and threads a whole copy; [`copy_tile`] is its inner loop over two axes, which the
//! elementwise driver also uses to gather and scatter tiles. The element type never matters, only its size.

use std::ptr::{copy_nonoverlapping, read_unaligned, write_unaligned};

use smallvec::SmallVec;
use tenferro_core_ops::elements;

use super::plan::{LoopPlan, is_compact};
use super::transpose::{fence, prefetch, transpose};
use super::{Shared, simd::vectorized};
use crate::threads::Threads;

/// Elements of a tile of a transposing copy: blocks of 64 x 64.
const TILE: usize = 1 << 12;
/// Bytes from which on a transposed output is written past the caches.
const STREAM: usize = 4 << 20;
/// Elements of a copy that is over before it would be planned.
const FEW: usize = 64;
/// Elements of a tile of any other copy, the grain of its distribution over threads.
const RUN: usize = 1 << 16;

/// `dst[i] = src[i]` for every index `i` of `shape`; `size` is the size of an element in bytes.
///
/// # Safety
/// `src` and `dst` point to the element of index 0; every element that `shape` and the strides (in elements)
/// reach must be valid, no two of `dst` may be the same and none may be among those of `src`.
pub(crate) unsafe fn copy(
    threads: &Threads,
    size: usize,
    shape: &[usize],
    (src, src_strides): (*const u8, &[isize]),
    (dst, dst_strides): (*mut u8, &[isize]),
) {
    if is_compact(shape, src_strides) && is_compact(shape, dst_strides) {
        let bytes = elements(shape) * size;
        // SAFETY: both are one dense range of that many bytes.
        return unsafe { copy_dense(threads, src, dst, bytes) };
    }
    let len = elements(shape);
    if len == 0 {
        return;
    }
    if len <= FEW {
        let (mut s, mut d) = ([0; FEW], [0; FEW]);
        let n = offsets(shape, [src_strides, dst_strides], [&mut s, &mut d]);
        // SAFETY: these are the offsets of all elements of `shape`.
        return unsafe { copy_listed(size, src, &s[..n], dst, &d[..n]) };
    }
    let plan = LoopPlan::new(shape, &[dst_strides, src_strides]);
    if plan.rank() == 1 && plan.strides(0) == [1, 1] {
        // SAFETY: the only axis is dense on both sides; `start` leads to its first element.
        return unsafe {
            let (to, from) = (plan.start()[0] * size as isize, plan.start()[1] * size as isize);
            copy_dense(threads, src.offset(from), dst.offset(to), plan.len() * size)
        };
    }
    if plan.rank() <= 2 && plan.len() <= TILE {
        let (to, from) = (plan.start()[0] * size as isize, plan.start()[1] * size as isize);
        let strides = |operand| [plan.stride(0, operand), plan.stride(1, operand)];
        let extents = [plan.extent(0), plan.extent(1)];
        // SAFETY: the caller's; these are all the axes.
        return unsafe { copy_tile(size, src.offset(from), strides(1), dst.offset(to), strides(0), extents) };
    }
    let transposing = plan.tiling(TILE, true);
    let tiling = if transposing.block()[1] > 1 { transposing } else { plan.tiling(RUN, true) };
    let (d, s) = (tiling.strides(&plan, 0), tiling.strides(&plan, 1));
    let ends = Shared::new((src, dst));
    let stream = size * plan.len() >= STREAM;
    // Short runs of the source are too many for the processor to foresee.
    let ahead = stream && s[1] == 1 && tiling.block()[1] * size <= 256;
    threads.parallel(2 * size * plan.len(), |par| {
        par.for_each_chunk(tiling.tiles(), 1, |range| {
            let (src, dst) = ends.get();
            let one = |from: *const u8, to: *mut u8, extents| {
                // SAFETY: the offsets are those of elements of `shape`, and tiles are disjoint.
                unsafe {
                    match (tiling.table(1), tiling.table(0)) {
                        (Some(s), Some(d)) => copy_listed(size, from, s, to, d),
                        _ => sized_tile(size, from, s, to, d, extents, stream),
                    }
                }
            };
            let mut pending: Option<(*const u8, *mut u8, [usize; 2])> = None;
            tiling.for_each(&plan, range, |offsets, extents| {
                let from = src.wrapping_offset(offsets[1] * size as isize);
                let to = dst.wrapping_offset(offsets[0] * size as isize);
                if !ahead {
                    return one(from, to, extents);
                }
                for i in 0..extents[0] as isize {
                    let row = from.wrapping_offset(i * s[0] * size as isize);
                    (0..extents[1] * size).step_by(64).for_each(|byte| prefetch(row.wrapping_add(byte)));
                }
                if let Some((from, to, extents)) = pending.replace((from, to, extents)) {
                    one(from, to, extents);
                }
            });
            if let Some((from, to, extents)) = pending {
                one(from, to, extents);
            }
            if stream {
                fence();
            }
        });
    });
}

/// Lists the offsets of the elements of a shape that has one to [`FEW`], in column-major order; says how many.
fn offsets(shape: &[usize], strides: [&[isize]; 2], lists: [&mut [isize; FEW]; 2]) -> usize {
    let mut count = 1;
    for (strides, list) in strides.into_iter().zip(lists) {
        count = 1;
        for (&extent, &stride) in shape.iter().zip(strides) {
            for i in 1..extent {
                for j in 0..count {
                    list[i * count + j] = list[j] + i as isize * stride;
                }
            }
            count *= extent;
        }
    }
    count
}

/// Copies dense bytes, by several threads if there are many.
///
/// # Safety
/// Both ranges must be valid and must not overlap.
unsafe fn copy_dense(threads: &Threads, src: *const u8, dst: *mut u8, bytes: usize) {
    let ends = Shared::new((src, dst));
    threads.parallel(2 * bytes, |par| {
        par.for_each_chunk(bytes, RUN, |range| {
            let (src, dst) = ends.get();
            // SAFETY: the range lies inside both, and ranges are disjoint.
            unsafe { copy_nonoverlapping(src.add(range.start), dst.add(range.start), range.len()) };
        });
    });
}

/// Sets every element of `dst` to the `size` bytes at `value`.
///
/// # Safety
/// As for [`copy`], with `value` in place of the elements of `src`.
pub(crate) unsafe fn fill(
    threads: &Threads,
    size: usize,
    shape: &[usize],
    value: *const u8,
    (dst, dst_strides): (*mut u8, &[isize]),
) {
    let still: SmallVec<[isize; 8]> = SmallVec::from_elem(0, shape.len());
    // SAFETY: with strides of 0 the only element of the source is the value.
    unsafe { copy(threads, size, shape, (value, &still), (dst, dst_strides)) }
}

/// `dst[i d0 + j d1] = src[i s0 + j s1]` for `i < n0`, `j < n1`; strides count elements of `size` bytes.
///
/// # Safety
/// All elements named must be valid, and none of `dst` may be among those of `src`.
#[inline]
pub(crate) unsafe fn copy_tile(
    size: usize,
    src: *const u8,
    s: [isize; 2],
    dst: *mut u8,
    d: [isize; 2],
    n: [usize; 2],
) {
    // SAFETY: the caller's.
    unsafe { sized_tile(size, src, s, dst, d, n, false) }
}

/// [`copy_tile`], with streaming stores on demand: see [`transpose`].
#[inline]
unsafe fn sized_tile(
    size: usize,
    src: *const u8,
    s: [isize; 2],
    dst: *mut u8,
    d: [isize; 2],
    n: [usize; 2],
    stream: bool,
) {
    // The types stand for any element of their size; accesses do not assume their alignment.
    // SAFETY: the caller's.
    unsafe {
        match size {
            1 => tile::<u8>(src.cast(), s, dst.cast(), d, n, stream),
            4 => tile::<u32>(src.cast(), s, dst.cast(), d, n, stream),
            8 => tile::<u64>(src.cast(), s, dst.cast(), d, n, stream),
            16 => tile::<[u64; 2]>(src.cast(), s, dst.cast(), d, n, stream),
            _ => unreachable!("element sizes are 1, 4, 8 and 16"),
        }
    }
}

/// `dst[d[i]] = src[s[i]]` for every `i` in the lists.
///
/// # Safety
/// As for [`copy_tile`].
unsafe fn copy_listed(size: usize, src: *const u8, s: &[isize], dst: *mut u8, d: &[isize]) {
    let n = s.len().min(d.len());
    // SAFETY: the caller's.
    unsafe {
        listed(
            size,
            src,
            #[inline(always)]
            |i| s[i],
            dst,
            #[inline(always)]
            |i| d[i],
            n,
        )
    }
}

/// `dst[i] = src[s[i]]` for every `i` in the list.
///
/// # Safety
/// As for [`copy_tile`].
pub(crate) unsafe fn gather_listed(size: usize, src: *const u8, s: &[isize], dst: *mut u8) {
    // SAFETY: the caller's.
    unsafe {
        listed(
            size,
            src,
            #[inline(always)]
            |i| s[i],
            dst,
            #[inline(always)]
            |i| i as isize,
            s.len(),
        )
    }
}

/// `dst[d[i]] = src[i]` for every `i` in the list.
///
/// # Safety
/// As for [`copy_tile`].
pub(crate) unsafe fn scatter_listed(size: usize, src: *const u8, dst: *mut u8, d: &[isize]) {
    // SAFETY: the caller's.
    unsafe {
        listed(
            size,
            src,
            #[inline(always)]
            |i| i as isize,
            dst,
            #[inline(always)]
            |i| d[i],
            d.len(),
        )
    }
}

#[inline(always)]
unsafe fn listed(
    size: usize,
    src: *const u8,
    s: impl Fn(usize) -> isize,
    dst: *mut u8,
    d: impl Fn(usize) -> isize,
    n: usize,
) {
    macro_rules! each {
        ($T:ty) => {
            for i in 0..n {
                let value = read_unaligned(src.cast::<$T>().offset(s(i)));
                write_unaligned(dst.cast::<$T>().offset(d(i)), value);
            }
        };
    }
    // SAFETY: the caller's.
    unsafe {
        match size {
            1 => each!(u8),
            4 => each!(u32),
            8 => each!(u64),
            16 => each!([u64; 2]),
            _ => unreachable!("element sizes are 1, 4, 8 and 16"),
        }
    }
}

unsafe fn tile<T: Copy>(
    src: *const T,
    s: [isize; 2],
    dst: *mut T,
    d: [isize; 2],
    n: [usize; 2],
    stream: bool,
) {
    // SAFETY: each branch names the same elements as the definition; the caller vouches for those.
    unsafe {
        if d[0] == 1 && s[0] == 1 {
            rows(src, s[1], dst, d[1], n);
        } else if d[0] == 1 && s[1] == 1 && n[1] > 1 {
            transpose(src, s[0], dst, d[1], n[0], n[1], stream);
        } else if d[1] == 1 && s[0] == 1 && n[1] > 1 {
            transpose(src, s[1], dst, d[0], n[1], n[0], stream);
        } else if n[0] < n[1] && n[0] < 16 {
            // Short rows: run along the other axis.
            strided(src, [s[1], s[0]], dst, [d[1], d[0]], [n[1], n[0]]);
        } else {
            strided(src, s, dst, d, n);
        }
    }
}

/// Rows that are dense on both sides.
#[inline]
unsafe fn rows<T: Copy>(src: *const T, s1: isize, dst: *mut T, d1: isize, [n0, n1]: [usize; 2]) {
    // SAFETY: as for `tile`.
    unsafe {
        if n1 == 1 || (s1 == n0 as isize && d1 == s1) {
            return copy_nonoverlapping(src.cast::<u8>(), dst.cast(), n0 * n1 * size_of::<T>());
        }
        for j in 0..n1 as isize {
            let (src, dst) = (src.offset(j * s1), dst.offset(j * d1));
            if n0 * size_of::<T>() <= 64 {
                // A call of memcpy costs more than the few moves.
                for i in 0..n0 {
                    write_unaligned(dst.add(i), read_unaligned(src.add(i)));
                }
            } else {
                copy_nonoverlapping(src.cast::<u8>(), dst.cast(), n0 * size_of::<T>());
            }
        }
    }
}

/// Any strides. Those that the compiler can vectorise when it knows them are told to it.
#[inline]
unsafe fn strided<T: Copy>(src: *const T, s: [isize; 2], dst: *mut T, d: [isize; 2], n: [usize; 2]) {
    // SAFETY: as for `tile`.
    unsafe {
        match (d[0], s[0]) {
            (1, 0) => fill_rows(src, s[1], dst, d[1], n),
            (1, -1) => each(src, [-1, s[1]], dst, [1, d[1]], n),
            (1, 2) => each(src, [2, s[1]], dst, [1, d[1]], n),
            _ => each(src, s, dst, d, n),
        }
    }
}

#[inline(always)]
unsafe fn each<T: Copy>(src: *const T, s: [isize; 2], dst: *mut T, d: [isize; 2], [n0, n1]: [usize; 2]) {
    vectorized(
        n0,
        #[inline(always)]
        move || {
            for j in 0..n1 as isize {
                for i in 0..n0 as isize {
                    // SAFETY: as for `tile`.
                    unsafe {
                        let value = read_unaligned(src.offset(i * s[0] + j * s[1]));
                        write_unaligned(dst.offset(i * d[0] + j * d[1]), value);
                    }
                }
            }
        },
    );
}

/// Dense rows of one value each.
#[inline(always)]
unsafe fn fill_rows<T: Copy>(src: *const T, s1: isize, dst: *mut T, d1: isize, [n0, n1]: [usize; 2]) {
    vectorized(
        n0,
        #[inline(always)]
        move || {
            for j in 0..n1 as isize {
                // SAFETY: as for `tile`.
                unsafe {
                    let value = read_unaligned(src.offset(j * s1));
                    let dst = dst.offset(j * d1);
                    for i in 0..n0 {
                        write_unaligned(dst.add(i), value);
                    }
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::testing::{Strided, Way, compact, indices, shapes, threads};
    use proptest::prelude::*;

    fn copied<T: Copy>(budget: usize, shape: &[usize], x: &Strided<T>, y: &mut Strided<T>) {
        let (strides, size) = (y.strides.clone(), size_of::<T>());
        let to = (y.mut_ptr().cast(), &strides[..]);
        // SAFETY: both arrays have an element for each index.
        unsafe { copy(&threads(budget), size, shape, (x.ptr().cast(), &x.strides), to) };
    }

    fn check<T: Copy + PartialEq + std::fmt::Debug>(
        shape: &[usize],
        (x_way, y_way): (&[Way; 6], &[Way; 6]),
        value: impl Fn(u64) -> T,
    ) {
        let mut i = 0;
        let mut next = || {
            i += 1;
            value(i)
        };
        let x = Strided::new(shape, x_way, &mut next);
        let mut y = Strided::new(shape, &y_way.map(Way::distinct), next);
        let mut expected = y.clone();
        indices(shape).for_each(|index| expected.set(&index, x.get(&index)));
        copied(1, shape, &x, &mut y);
        assert_eq!(y, expected);
        indices(shape).for_each(|index| expected.set(&index, value(0)));
        let strides = y.strides.clone();
        let to = (y.mut_ptr().cast(), &strides[..]);
        // SAFETY: the array has an element for each index.
        unsafe { fill(&threads(1), size_of::<T>(), shape, (&value(0) as *const T).cast(), to) };
        assert_eq!(y, expected);
    }

    proptest! {
        #![proptest_config(tenferro_cases::cases(80))]

        #[test]
        fn any_layouts_match_an_index_walk_and_leave_gaps_alone(
            shape in shapes(),
            x in prop::array::uniform6(Way::any()),
            y in prop::array::uniform6(Way::any()),
        ) {
            check(&shape, (&x, &y), |i| i as u8);
            check(&shape, (&x, &y), |i| i as f32);
            check(&shape, (&x, &y), |i| i);
            check(&shape, (&x, &y), |i| [i, !i]);
        }
    }

    #[test]
    fn large_permutations_are_right_with_any_number_of_threads() {
        for shape in [vec![517, 1030], vec![3, 200_001], vec![7, 64, 65, 20], vec![2; 19], vec![400_000]] {
            let len = shape.iter().product::<usize>();
            let x = Strided { data: (0..len as u64).collect(), offset: 0, strides: compact(&shape) };
            let reversed: Vec<usize> = shape.iter().rev().copied().collect();
            let strides = compact(&reversed).into_iter().rev().collect();
            let zero = Strided { data: vec![0; len], offset: 0, strides };
            let mut expected = zero.clone();
            indices(&shape).for_each(|index| expected.set(&index, x.get(&index)));
            for budget in [1, 2, 3] {
                let mut y = zero.clone();
                copied(budget, &shape, &x, &mut y);
                assert!(y == expected, "{shape:?} on {budget} threads");
            }
        }
    }

    #[test]
    fn rank_30_is_like_any_other() {
        let shape: Vec<usize> = (0..30).map(|i| 1 + (i % 3 == 0) as usize).collect();
        let backwards: Vec<usize> = shape.iter().rev().copied().collect();
        let strides = compact(&backwards).into_iter().rev().collect();
        let x = Strided { data: (0..1024u32).collect(), offset: 0, strides: compact(&shape) };
        let mut y = Strided { data: vec![0u32; 1024], offset: 0, strides };
        copied(1, &shape, &x, &mut y);
        // The 10 binary digits of the position, reversed.
        let reversed: Vec<u32> = (0..1024u32).map(|i| i.reverse_bits() >> 22).collect();
        assert_eq!(y.data, reversed);
    }
}
