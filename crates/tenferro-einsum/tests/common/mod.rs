//! What the tests of values and derivatives share: the definition of an einsum as loops over all its labels,
//! and random einsums of small integers, on which floating-point arithmetic is exact.
#![allow(dead_code)]

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::{Add, Mul};
use tenferro_einsum::Notation;
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

/// The definition: loops over all labels.
pub(crate) fn naive<T: Exact>(notation: &Notation, x: &[&TypedTensor<T>]) -> TypedTensor<T> {
    let mut extents = BTreeMap::new();
    for (labels, x) in notation.inputs().iter().zip(x) {
        extents.extend(labels.iter().copied().zip(x.shape().iter().copied()));
    }
    let summed: Vec<(u32, usize)> =
        extents.iter().map(|(l, n)| (*l, *n)).filter(|(l, _)| !notation.output().contains(l)).collect();
    let shape: Vec<usize> = notation.output().iter().map(|label| extents[label]).collect();
    let count: usize = summed.iter().map(|(_, n)| n).product();
    TypedTensor::from_fn(&shape[..], |index| {
        let mut at: BTreeMap<u32, usize> =
            notation.output().iter().copied().zip(index.iter().copied()).collect();
        let mut sum = T::zero();
        for mut rest in 0..count {
            for (label, n) in &summed {
                at.insert(*label, rest % n);
                rest /= n;
            }
            let factor = |(labels, x): (&tenferro_einsum::Labels, &&TypedTensor<T>)| {
                *x.get(&labels.iter().map(|label| at[label]).collect::<Vec<_>>()).unwrap()
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
    pub(crate) seed: u64,
}

impl Case {
    pub(crate) fn shapes(&self) -> Vec<Vec<usize>> {
        self.notation.inputs().iter().map(|x| x.iter().map(|l| self.extents[*l as usize]).collect()).collect()
    }

    pub(crate) fn operands<T: Exact>(&self) -> Vec<TypedTensor<T>> {
        let mut seed = self.seed;
        self.shapes().iter().map(|shape| random(shape, &mut seed)).collect()
    }

    pub(crate) fn output_shape(&self) -> Vec<usize> {
        self.notation.output().iter().map(|l| self.extents[*l as usize]).collect()
    }
}

const LABELS: u32 = 6;

/// Up to four operands of rank up to three: diagonals, hyperedges, sums, scalars, and now and then an extent
/// 0.
pub(crate) fn case() -> impl Strategy<Value = Case> {
    let operand = prop::collection::vec(0..LABELS, 0..4);
    let inputs = prop::collection::vec(operand, 1..5);
    let extents = prop::collection::vec(prop_oneof![1 => Just(0_usize), 19 => 1_usize..4], LABELS as usize);
    let output = (Just((0..LABELS).collect::<Vec<_>>()).prop_shuffle(), 0..=LABELS as usize);
    (inputs, output, extents, any::<u64>()).prop_map(|(inputs, (order, rank), extents, seed)| {
        let known = order.into_iter().filter(|label| inputs.iter().any(|x| x.contains(label)));
        let inputs: Vec<&[u32]> = inputs.iter().map(Vec::as_slice).collect();
        let output: Vec<u32> = known.take(rank).collect();
        Case { notation: Notation::new(&inputs, &output).unwrap(), extents, seed }
    })
}

pub(crate) fn copies<T: Scalar>(x: &[TypedTensor<T>]) -> Vec<Tensor> {
    x.iter().map(|x| x.duplicate().unwrap().into_tensor()).collect()
}
