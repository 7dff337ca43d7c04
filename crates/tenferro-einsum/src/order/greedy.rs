//! Greedy orders, cheap to find for any number of operands.

use super::network::{Contraction, Network, Pairs, cost};
use super::tree::Tree;
use smallvec::SmallVec;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Labels on more operands than this are not paired all with all by the greedy search.
const MAX_CLIQUE: usize = 128;
/// Flops a step above which an order is improved: a step then costs as much as looking for a better one.
const WORTH_IMPROVING: f64 = 1e5;
/// Weights of the operands' sizes against the result's in the cost of a greedy step.
pub(super) const GREEDY_WEIGHTS: [f64; 4] = [1.0, 0.0, 0.5, 2.0];

pub(super) fn greedy(net: &Network) -> Pairs {
    let orders = GREEDY_WEIGHTS.iter().map(|alpha| greedy_with(net, *alpha));
    let costed = orders.map(|pairs| (cost(net, &pairs), pairs));
    let (cost, best) = costed.reduce(|a, b| if b.0 < a.0 { b } else { a }).expect("there are weights");
    if cost.0 < WORTH_IMPROVING * best.len() as f64 { best } else { Tree::new(net, &best).improved() }
}

/// Repeatedly contracts the two operands with a common label for which the size of the result, less
/// `alpha` times the sizes of the two, is least; then what is left, smallest first.
pub(super) fn greedy_with(net: &Network, alpha: f64) -> Pairs {
    let mut state = Contraction::new(net);
    let mut carriers: Vec<SmallVec<[usize; 4]>> = vec![SmallVec::new(); net.weight.len()];
    let mut sizes: Vec<f64> = (0..net.tensors.len()).map(|i| state.size(i)).collect();
    for (i, labels) in net.tensors.iter().enumerate() {
        labels.iter().for_each(|label| carriers[*label as usize].push(i));
    }
    let candidate = |state: &Contraction, sizes: &[f64], a: usize, b: usize| {
        Reverse(Candidate(state.cost(a, b).1 - alpha * (sizes[a] + sizes[b]), a, b))
    };
    let mut heap = BinaryHeap::new();
    let mut pairs = Vec::with_capacity(net.tensors.len());
    for carriers in &carriers {
        let reach = if carriers.len() > MAX_CLIQUE { 1 } else { MAX_CLIQUE };
        for (k, a) in carriers.iter().enumerate() {
            heap.extend(carriers[k + 1..].iter().take(reach).map(|b| candidate(&state, &sizes, *a, *b)));
        }
    }
    while let Some(Reverse(Candidate(_, a, b))) = heap.pop() {
        if state.used[a] || state.used[b] {
            continue;
        }
        let result = state.contract(a, b);
        pairs.push((a, b));
        sizes.push(state.size(result));
        let mut neighbours: SmallVec<[usize; 16]> = SmallVec::new();
        for label in &state.tensors[result] {
            let carriers = &mut carriers[*label as usize];
            carriers.retain(|x| !state.used[*x]);
            let reach = if carriers.len() > MAX_CLIQUE { 1 } else { MAX_CLIQUE };
            neighbours.extend(carriers.iter().copied().take(reach));
            carriers.push(result);
        }
        neighbours.sort_unstable();
        neighbours.dedup();
        heap.extend(neighbours.iter().map(|x| candidate(&state, &sizes, *x, result)));
    }
    let mut rest: BinaryHeap<_> =
        (0..sizes.len()).filter(|i| !state.used[*i]).map(|i| Reverse(Candidate(sizes[i], i, 0))).collect();
    while let (Some(Reverse(a)), Some(Reverse(b))) = (rest.pop(), rest.pop()) {
        let result = state.contract(a.1, b.1);
        pairs.push((a.1, b.1));
        rest.push(Reverse(Candidate(state.size(result), result, 0)));
    }
    pairs
}

/// A cost that sorts: smaller first, ties by the numbers of the operands.
#[derive(PartialEq)]
struct Candidate(f64, usize, usize);

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1)).then(self.2.cmp(&other.2))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
