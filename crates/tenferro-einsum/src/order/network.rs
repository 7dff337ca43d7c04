//! Operands as sets of labels, and what contracting them costs.

use crate::notation::Labels;
use std::cmp::Ordering;

/// Pairs in the order of execution. Operands are `0..n`; pair `k` makes operand `n + k`, and each operand
/// but the last is used once.
pub(crate) type Pairs = Vec<(usize, usize)>;

/// Operands as sets of labels: sorted, distinct, none that could be summed away in its operand alone.
pub(crate) struct Network {
    pub(crate) tensors: Vec<Labels>,
    /// For each label, whether the output has it.
    pub(crate) open: Vec<bool>,
    /// For each label, its extent, at least 1.
    pub(crate) weight: Vec<f64>,
}

/// Total flops, then total elements of the results.
pub(crate) type Cost = (f64, f64);

/// Flops of a step over these extents: a product, and a sum if something is contracted.
pub(crate) fn flops(iterations: f64, contracts: bool) -> f64 {
    if contracts { 2.0 * iterations } else { iterations }
}

pub(crate) fn cost(net: &Network, pairs: &[(usize, usize)]) -> Cost {
    let mut contraction = Contraction::new(net);
    let mut total = (0.0, 0.0);
    for (a, b) in pairs {
        let step = contraction.cost(*a, *b);
        total = (total.0 + step.0, total.1 + step.1);
        contraction.contract(*a, *b);
    }
    total
}

/// Operands while they are contracted pair by pair.
pub(crate) struct Contraction<'a> {
    net: &'a Network,
    /// All operands and results so far; the used ones are empty.
    pub(crate) tensors: Vec<Labels>,
    pub(crate) used: Vec<bool>,
    /// For each label, how many remaining operands have it, the output counting as one.
    pub(crate) holders: Vec<usize>,
}

impl<'a> Contraction<'a> {
    pub(crate) fn new(net: &'a Network) -> Self {
        let mut holders: Vec<usize> = net.open.iter().map(|open| *open as usize).collect();
        for label in net.tensors.iter().flatten() {
            holders[*label as usize] += 1;
        }
        let tensors = net.tensors.clone();
        Contraction { net, used: vec![false; tensors.len()], tensors, holders }
    }

    pub(crate) fn size(&self, i: usize) -> f64 {
        self.tensors[i].iter().map(|label| self.net.weight[*label as usize]).product()
    }

    /// Calls `visit` with the labels of two operands in order, with whose they are (`Less`: of `a` alone,
    /// `Greater`: of `b` alone, `Equal`: of both), and with whether the result keeps them.
    pub(crate) fn union(&self, a: usize, b: usize, mut visit: impl FnMut(u32, Ordering, bool)) {
        let (x, y) = (&self.tensors[a], &self.tensors[b]);
        let (mut i, mut j) = (0, 0);
        while i < x.len() || j < y.len() {
            let order = match (x.get(i), y.get(j)) {
                (Some(l), Some(r)) => l.cmp(r),
                (Some(_), None) => Ordering::Less,
                _ => Ordering::Greater,
            };
            let label = if order.is_le() { x[i] } else { y[j] };
            i += order.is_le() as usize;
            j += order.is_ge() as usize;
            visit(label, order, self.holders[label as usize] > 1 + order.is_eq() as usize);
        }
    }

    /// Flops of contracting two operands, and the number of elements of the result.
    pub(crate) fn cost(&self, a: usize, b: usize) -> Cost {
        let (mut iterations, mut size) = (1.0, 1.0);
        let mut contracts = false;
        self.union(a, b, |label, _, kept| {
            let weight = self.net.weight[label as usize];
            iterations *= weight;
            size *= if kept { weight } else { 1.0 };
            contracts |= !kept;
        });
        (flops(iterations, contracts), size)
    }

    /// Some of the operands as a network of their own, whose output has what the others, or the output, have.
    pub(crate) fn part(&self, ids: &[usize]) -> Network {
        let mut names: Vec<u32> = ids.iter().flat_map(|i| &self.tensors[*i]).copied().collect();
        names.sort_unstable();
        names.dedup();
        let number = |label: &u32| names.binary_search(label).expect("a label of an operand") as u32;
        let inside = |label: &u32| ids.iter().filter(|i| self.tensors[**i].contains(label)).count();
        Network {
            tensors: ids.iter().map(|i| self.tensors[*i].iter().map(number).collect()).collect(),
            open: names.iter().map(|label| self.holders[*label as usize] > inside(label)).collect(),
            weight: names.iter().map(|label| self.net.weight[*label as usize]).collect(),
        }
    }

    /// Contracts two operands, returning the number of the result.
    pub(crate) fn contract(&mut self, a: usize, b: usize) -> usize {
        let mut result = Labels::new();
        self.union(a, b, |label, _, kept| {
            if kept {
                result.push(label);
            }
        });
        for i in [a, b] {
            for label in std::mem::take(&mut self.tensors[i]) {
                self.holders[label as usize] -= 1;
            }
            self.used[i] = true;
        }
        for label in &result {
            self.holders[*label as usize] += 1;
        }
        self.tensors.push(result);
        self.used.push(false);
        self.tensors.len() - 1
    }
}
