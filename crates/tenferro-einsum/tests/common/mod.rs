//! What the tests of values and derivatives share: the definition of an einsum as loops over all its labels,
//! and random einsums of small integers, on which floating-point arithmetic is exact.
#![allow(dead_code)]

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::{Add, Mul};
use tenferro_einsum::Notation;
use tenferro_runtime::{DType, Dim, TracedTensor};
use tenferro_tensor::{C64, Scalar, Tensor, TypedTensor};

/// An element type with exact arithmetic on small integers.
pub(crate) trait Exact: Scalar + Add<Output = Self> + Mul<Output = Self> {
    fn small(next: &mut dyn FnMut() -> i64) -> Self;
    fn real_product(self, other: Self) -> f64;
}

impl Exact for i64 {
    fn small(next: &mut dyn FnMut() -> i64) -> Self {
        next()
    }
    fn real_product(self, other: Self) -> f64 {
        (self * other) as f64
    }
}

impl Exact for f64 {
    fn small(next: &mut dyn FnMut() -> i64) -> Self {
        next() as f64
    }
    fn real_product(self, other: Self) -> f64 {
        self * other
    }
}

impl Exact for C64 {
    fn small(next: &mut dyn FnMut() -> i64) -> Self {
        C64::new(next() as f64, next() as f64)
    }
    fn real_product(self, other: Self) -> f64 {
        (self.conj() * other).re
    }
}

/// Integers in [-3, 3], also as imaginary parts.
pub(crate) fn random<T: Exact>(shape: &[usize], seed: &mut u64) -> TypedTensor<T> {
    let mut next = || {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*seed >> 33) as i64 % 7 - 3
    };
    TypedTensor::from_fn(shape, |_| T::small(&mut next)).unwrap()
}

/// `Re sum(conj(a) b)`.
pub(crate) fn inner<T: Exact>(a: &TypedTensor<T>, b: &TypedTensor<T>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    a.as_slice().unwrap().iter().zip(b.as_slice().unwrap()).map(|(a, b)| a.real_product(*b)).sum()
}

/// The definition: loops over all labels. An extent 1 is repeated, and outside of the diagonal that the
/// output repeats a label for there is zero.
pub(crate) fn naive<T: Exact>(notation: &Notation, x: &[&TypedTensor<T>]) -> TypedTensor<T> {
    let mut extents = BTreeMap::new();
    for (labels, x) in notation.inputs().iter().zip(x) {
        for (label, n) in labels.iter().zip(x.shape()) {
            let known = extents.entry(*label).or_insert(1);
            if *n != 1 {
                *known = *n;
            }
        }
    }
    let summed: Vec<(u32, usize)> =
        extents.iter().map(|(l, n)| (*l, *n)).filter(|(l, _)| !notation.output().contains(l)).collect();
    let shape: Vec<usize> = notation.output().iter().map(|label| extents[label]).collect();
    let count: usize = summed.iter().map(|(_, n)| n).product();
    TypedTensor::from_fn(&shape[..], |index| {
        let mut at: BTreeMap<u32, usize> = BTreeMap::new();
        for (label, i) in notation.output().iter().zip(index) {
            if at.insert(*label, *i).is_some_and(|other| other != *i) {
                return T::zero();
            }
        }
        let mut sum = T::zero();
        for mut rest in 0..count {
            for (label, n) in &summed {
                at.insert(*label, rest % n);
                rest /= n;
            }
            let factor = |(labels, x): (&tenferro_einsum::Labels, &&TypedTensor<T>)| {
                let index =
                    labels.iter().zip(x.shape()).map(|(label, n)| if *n == 1 { 0 } else { at[label] });
                *x.get(&index.collect::<Vec<_>>()).unwrap()
            };
            sum = sum + notation.inputs().iter().zip(x).map(factor).fold(T::one(), |a, b| a * b);
        }
        sum
    })
    .unwrap()
}

/// A random einsum and extents for its labels.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) notation: Notation,
    pub(crate) extents: Vec<usize>,
    /// For each operand, the labels for which its extent is 1 instead.
    pub(crate) units: Vec<Vec<u32>>,
    pub(crate) seed: u64,
}

/// Thirty labels of an operand, of which three have an extent other than 1: two are summed over with another
/// operand, the third one stays, and the others stand in opposite order in the result.
pub(crate) fn thirty() -> Case {
    let (all, other) = ((0..30).collect::<Vec<u32>>(), [29, 30, 3]);
    let output: Vec<u32> = (0..31).rev().filter(|label| ![3, 29].contains(label)).collect();
    let extents = (0..31).map(|label| [(3, 2), (17, 3), (29, 2), (30, 2)].iter().find(|e| e.0 == label));
    Case {
        notation: Notation::new(&[&all, &other], &output).unwrap(),
        extents: extents.map(|e| e.map_or(1, |e| e.1)).collect(),
        units: vec![vec![], vec![]],
        seed: 3,
    }
}

impl Case {
    /// Extents of the operands.
    pub(crate) fn shapes(&self) -> Vec<Vec<usize>> {
        self.map_axes(|label| self.extents[label as usize], 1)
    }

    /// `f` of the label of each axis of each operand, or `unit` where its extent is 1 instead.
    pub(crate) fn map_axes<D: Clone>(&self, f: impl Fn(u32) -> D, unit: D) -> Vec<Vec<D>> {
        let operands = self.notation.inputs().iter().zip(&self.units);
        operands
            .map(|(labels, units)| {
                labels.iter().map(|l| if units.contains(l) { unit.clone() } else { f(*l) }).collect()
            })
            .collect()
    }

    /// The operands of a trace, with a symbol for each label or literal extents.
    pub(crate) fn inputs(&self, symbolic: bool, dtype: DType) -> Vec<TracedTensor> {
        let dim = |label: u32| match symbolic {
            true => Dim::symbol(format!("n{label}")),
            false => self.extents[label as usize].into(),
        };
        let shapes = self.map_axes(dim, Dim::Lit(1));
        shapes.iter().map(|shape| TracedTensor::input(dtype, shape)).collect()
    }

    pub(crate) fn operands<T: Exact>(&self) -> Vec<TypedTensor<T>> {
        let mut seed = self.seed;
        self.shapes().iter().map(|shape| random(shape, &mut seed)).collect()
    }
}

const LABELS: u32 = 6;

/// Up to four operands of rank up to three: diagonals, hyperedges, sums, scalars, repeated labels in the
/// output, extents that are repeated, and now and then an extent 0.
pub(crate) fn case() -> impl Strategy<Value = Case> {
    let operand = prop::collection::vec(0..LABELS, 0..4);
    let inputs = prop::collection::vec(operand, 1..5);
    let extents = prop::collection::vec(prop_oneof![1 => Just(0_usize), 19 => 1_usize..4], LABELS as usize);
    let output = (Just((0..LABELS).collect::<Vec<_>>()).prop_shuffle(), 0..=LABELS as usize, 0..4_usize);
    let units = prop::collection::vec(prop::collection::vec(0..3 * LABELS, 0..2), 4);
    (inputs, output, extents, units, any::<u64>()).prop_map(|(inputs, output, extents, units, seed)| {
        let (order, rank, again) = output;
        let known = order.into_iter().filter(|label| inputs.iter().any(|x| x.contains(label)));
        let mut output: Vec<u32> = known.take(rank).collect();
        if let (Some(label), 1) = (output.first(), again) {
            output.push(*label);
        }
        let units = units.into_iter().take(inputs.len()).collect();
        let inputs: Vec<&[u32]> = inputs.iter().map(Vec::as_slice).collect();
        Case { notation: Notation::new(&inputs, &output).unwrap(), extents, units, seed }
    })
}

pub(crate) fn copies<T: Scalar>(x: &[TypedTensor<T>]) -> Vec<Tensor> {
    x.iter().map(|x| x.duplicate().unwrap().into_tensor()).collect()
}
