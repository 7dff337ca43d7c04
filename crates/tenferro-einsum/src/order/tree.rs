//! An order improved from inside: its small parts are made optimal.

use super::network::{Contraction, Network, Pairs, cost};
use super::optimal::optimal;
use crate::notation::Labels;

/// Operands of the parts of an order that are made optimal.
const PART: usize = 8;
/// Rounds of improvement; they end when one changes nothing.
const ROUNDS: usize = 8;

/// An order as a tree, for changing it from inside.
pub(super) struct Tree<'a> {
    net: &'a Network,
    /// Labels of every operand and result.
    sets: Vec<Labels>,
    /// What result `n + k` is made of; the last one is the root.
    children: Vec<(usize, usize)>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(net: &'a Network, pairs: &[(usize, usize)]) -> Self {
        let mut sets = net.tensors.clone();
        let mut contraction = Contraction::new(net);
        for (a, b) in pairs {
            let result = contraction.contract(*a, *b);
            sets.push(contraction.tensors[result].clone());
        }
        Tree { net, sets, children: pairs.to_vec() }
    }

    fn size(&self, node: usize) -> f64 {
        self.sets[node].iter().map(|label| self.net.weight[*label as usize]).product()
    }

    /// Makes the parts below every node optimal, repeatedly.
    pub(super) fn improved(mut self) -> Pairs {
        let n = self.net.tensors.len();
        for _ in 0..ROUNDS {
            let mut changed = false;
            for node in (n..self.sets.len()).rev() {
                changed |= self.improve(node);
            }
            if !changed {
                break;
            }
        }
        self.pairs()
    }

    /// Replaces the part of the tree from `node` down to at most [`PART`] nodes, split where they are
    /// largest, by the best one with the same ends. Says whether it was better.
    fn improve(&mut self, node: usize) -> bool {
        let n = self.net.tensors.len();
        let (mut inner, mut ends) = (vec![], vec![node]);
        while ends.len() < PART {
            let inside = ends.iter().enumerate().filter(|(_, end)| **end >= n);
            let largest = inside.max_by(|a, b| self.size(*a.1).total_cmp(&self.size(*b.1)));
            let Some((at, _)) = largest else { break };
            let split = ends.remove(at);
            let (a, b) = self.children[split - n];
            ends.extend([a, b]);
            inner.push(split);
        }
        if ends.len() < 3 {
            return false;
        }
        let mut names: Vec<u32> = ends.iter().flat_map(|end| &self.sets[*end]).copied().collect();
        names.sort_unstable();
        names.dedup();
        let number = |label: &u32| names.binary_search(label).expect("a label of an end") as u32;
        let part = Network {
            tensors: ends.iter().map(|end| self.sets[*end].iter().map(number).collect()).collect(),
            open: names.iter().map(|label| self.sets[node].contains(label)).collect(),
            weight: names.iter().map(|label| self.net.weight[*label as usize]).collect(),
        };
        // The present part in the numbers of the new network: parents were split before children.
        let id = |x: usize| match ends.iter().position(|end| *end == x) {
            Some(at) => at,
            None => ends.len() + inner.iter().rev().position(|y| *y == x).expect("an end or inside"),
        };
        let present: Pairs =
            inner.iter().rev().map(|x| self.children[x - n]).map(|(a, b)| (id(a), id(b))).collect();
        let better = optimal(&part);
        if cost(&part, &better) >= cost(&part, &present) {
            return false;
        }
        // `node` was split first, so it is the last of the results and keeps its place.
        let ids: Vec<usize> = ends.iter().chain(inner.iter().rev()).copied().collect();
        let mut contraction = Contraction::new(&part);
        for (a, b) in better {
            let result = contraction.contract(a, b);
            let labels = contraction.tensors[result].iter().map(|label| names[*label as usize]);
            self.sets[ids[result]] = labels.collect();
            self.children[ids[result] - n] = (ids[a], ids[b]);
        }
        true
    }

    /// The results in an order in which each comes after what it is made of.
    fn pairs(&self) -> Pairs {
        let n = self.net.tensors.len();
        let mut number: Vec<usize> = (0..n).chain(self.children.iter().map(|_| usize::MAX)).collect();
        let mut order = vec![self.sets.len() - 1];
        for at in 0.. {
            match order.get(at) {
                Some(node) => {
                    let (a, b) = self.children[*node - n];
                    order.extend([a, b].into_iter().filter(|x| *x >= n));
                }
                None => break,
            }
        }
        let mut pairs = Vec::with_capacity(order.len());
        for node in order.into_iter().rev() {
            let (a, b) = self.children[node - n];
            number[node] = n + pairs.len();
            pairs.push((number[a], number[b]));
        }
        pairs
    }
}
