//! Random strided arrays for the tests of the loops.

use std::num::NonZeroUsize;

use proptest::prelude::*;

use crate::threads::Threads;

/// A budget of `n` threads.
pub(crate) fn threads(n: usize) -> Threads {
    Threads::with_budget(NonZeroUsize::new(n).expect("positive"))
}

/// How an array lies along one axis: its place in memory order, and its step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    rank: u8,
    step: isize,
}

impl Way {
    /// Compact column-major.
    pub(crate) const FORWARD: [Way; 6] = [Way { rank: 0, step: 1 }; 6];

    pub(crate) fn any() -> impl Strategy<Value = Way> {
        (0u8..6, prop_oneof![8 => Just(1), 2 => Just(-1), 1 => Just(2), 1 => Just(-3), 1 => Just(0)])
            .prop_map(|(rank, step)| Way { rank, step })
    }

    /// The same without broadcasting, as outputs need.
    pub(crate) fn distinct(self) -> Way {
        Way { step: if self.step == 0 { 1 } else { self.step }, ..self }
    }
}

/// Shapes of rank 0 to 6 with up to some 10^3 elements.
pub(crate) fn shapes() -> impl Strategy<Value = Vec<usize>> {
    let extent = prop_oneof![2 => Just(1usize), 6 => 2usize..6, 2 => 30usize..75, 1 => Just(0)];
    prop::collection::vec(extent, 0..=6).prop_filter("few elements", |s| s.iter().product::<usize>() <= 6_000)
}

/// All indices, column-major.
pub(crate) fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    (0..shape.iter().product::<usize>()).map(|mut k| {
        let digit = |&extent: &usize| {
            let i = k % extent;
            k /= extent;
            i
        };
        shape.iter().map(digit).collect()
    })
}

/// The strides of a compact column-major array.
pub(crate) fn compact(shape: &[usize]) -> Vec<isize> {
    (0..shape.len()).map(|axis| shape[..axis].iter().product::<usize>() as isize).collect()
}

/// An array of any strides inside its own buffer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Strided<T> {
    pub(crate) data: Vec<T>,
    pub(crate) offset: usize,
    pub(crate) strides: Vec<isize>,
}

impl<T: Copy> Strided<T> {
    /// Lies in memory as `way` says; the buffer is filled with `values`.
    pub(crate) fn new(shape: &[usize], way: &[Way; 6], values: impl FnMut() -> T) -> Strided<T> {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        order.sort_by_key(|&axis| way[axis].rank);
        let mut strides = vec![0; shape.len()];
        let (mut len, mut offset) = (1, 0);
        for axis in order {
            let step = way[axis].step;
            strides[axis] = step * len;
            if step != 0 {
                len *= step.abs() * shape[axis].max(1) as isize;
            }
            if step < 0 {
                offset += -strides[axis] * (shape[axis].max(1) as isize - 1);
            }
        }
        let data = std::iter::repeat_with(values).take(len as usize).collect();
        Strided { data, offset: offset as usize, strides }
    }

    /// The element of index 0.
    pub(crate) fn ptr(&self) -> *const T {
        self.data.as_ptr().wrapping_add(self.offset)
    }

    pub(crate) fn mut_ptr(&mut self) -> *mut T {
        self.data.as_mut_ptr().wrapping_add(self.offset)
    }

    fn at(&self, index: &[usize]) -> usize {
        let steps = index.iter().zip(&self.strides).map(|(&i, s)| i as isize * s);
        (self.offset as isize + steps.sum::<isize>()) as usize
    }

    pub(crate) fn get(&self, index: &[usize]) -> T {
        self.data[self.at(index)]
    }

    pub(crate) fn set(&mut self, index: &[usize], value: T) {
        let at = self.at(index);
        self.data[at] = value;
    }

    pub(crate) fn map<U>(&self, f: impl FnMut(T) -> U) -> Strided<U> {
        let data = self.data.iter().copied().map(f).collect();
        Strided { data, offset: self.offset, strides: self.strides.clone() }
    }
}
