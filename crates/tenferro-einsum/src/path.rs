//! The order in which the operands of an einsum are contracted in pairs.
//!
//! Finding the cheapest order is NP-hard. Up to [`AUTO_OPTIMAL`] operands it is found exactly, by dynamic
//! programming over subsets; larger networks get the best of a few greedy orders. Simulated annealing
//! (TreeSA, Kalachev, Panteleev and Yung, arXiv:2108.05665) is omeco's.
//!
//! Invariant: apart from annealing, equal networks get equal orders, so that results repeat bit by bit.
//! That is why greedy is not omeco's: its ties are broken by the iteration order of a hash map.

use crate::notation::Labels;
use omeco::{EinCode, NestedEinsum};
use smallvec::SmallVec;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use tenferro_tensor::{Error, Result};

/// How the contraction order is found.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Optimize {
    /// `Optimal` for a few operands, `Greedy` beyond.
    #[default]
    Auto,
    /// The best of a few greedy orders; if it is costly, its small parts are made optimal.
    Greedy,
    /// The fewest flops, then the fewest intermediate elements; up to 16 operands.
    Optimal,
    /// Simulated annealing from a greedy order by omeco: slower to find and often much cheaper to run.
    /// It runs on rayon's global threads, and equal calls may give different orders.
    TreeSA,
    /// This order: each pair gives positions in the list of remaining operands, which then lose the two
    /// and get the result at the end, the format of opt_einsum and JAX.
    Path(Vec<(usize, usize)>),
}

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

/// Networks up to this size are solved exactly by default.
const AUTO_OPTIMAL: usize = 8;
/// The exact search looks at 3^n / 2 splits, so no more than this.
const MAX_OPTIMAL: usize = 16;
/// Labels on more operands than this are not paired all with all by the greedy search.
const MAX_CLIQUE: usize = 128;
/// Flops a step above which an order is improved: a step then costs as much as looking for a better one.
const WORTH_IMPROVING: f64 = 1e5;
/// Operands of the parts of an order that are made optimal.
const PART: usize = 8;
/// Rounds of improvement; they end when one changes nothing.
const ROUNDS: usize = 8;
/// Weights of the operands' sizes against the result's in the cost of a greedy step.
const GREEDY_WEIGHTS: [f64; 4] = [1.0, 0.0, 0.5, 2.0];

pub(crate) fn order(net: &Network, optimize: &Optimize) -> Result<Pairs> {
    let n = net.tensors.len();
    let found = match optimize {
        Optimize::Path(path) => return from_path(n, path),
        _ if n <= 2 => return Ok((1..n).map(|_| (0, 1)).collect()),
        Optimize::Auto if n <= AUTO_OPTIMAL => optimal(net),
        Optimize::Optimal if n <= MAX_OPTIMAL => optimal(net),
        Optimize::Optimal => {
            let expected = format!("at most {MAX_OPTIMAL} (Greedy and TreeSA take more)");
            return Err(Error::argument("einsum", "operands of an optimal order", n, expected));
        }
        Optimize::Auto | Optimize::Greedy => greedy(net),
        Optimize::TreeSA => {
            let greedy = greedy(net);
            match annealed(net) {
                Some(pairs) if cost(net, &pairs) < cost(net, &greedy) => pairs,
                _ => greedy,
            }
        }
    };
    Ok(depth_first(net, &found))
}

/// Flops of a step over these extents: a product, and a sum if something is contracted.
pub(crate) fn flops(iterations: f64, contracts: bool) -> f64 {
    if contracts { 2.0 * iterations } else { iterations }
}

/// The path in positions that stands for `pairs`, see [`Optimize::Path`].
pub(crate) fn to_path(n: usize, pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut remaining: Vec<usize> = (0..n).collect();
    let mut path = Vec::with_capacity(pairs.len());
    for (k, (a, b)) in pairs.iter().enumerate() {
        // The list stays sorted, since results are numbered in the order in which they are appended.
        let i = remaining.partition_point(|x| x < a.min(b));
        let j = remaining.partition_point(|x| x < a.max(b));
        remaining.remove(j);
        remaining.remove(i);
        remaining.push(n + k);
        path.push((i, j));
    }
    path
}

fn from_path(n: usize, path: &[(usize, usize)]) -> Result<Pairs> {
    if path.len() + 1 != n {
        let expected = format!("{} for {n} operands", n - 1);
        return Err(Error::argument("einsum", "pairs in the path", path.len(), expected));
    }
    let mut remaining: Vec<usize> = (0..n).collect();
    let mut pairs = Vec::with_capacity(path.len());
    for (k, (i, j)) in path.iter().enumerate() {
        if i == j || *i.max(j) >= remaining.len() {
            let expected = format!("two positions below {}", remaining.len());
            return Err(Error::argument(
                "einsum",
                format!("pair {k} of the path"),
                format!("({i}, {j})"),
                expected,
            ));
        }
        pairs.push((remaining[*i], remaining[*j]));
        remaining.remove(*i.max(j));
        remaining.remove(*i.min(j));
        remaining.push(n + k);
    }
    Ok(pairs)
}

/// Total flops, then total elements of the results.
type Cost = (f64, f64);

/// Dynamic programming over subsets of operands, each costing the best split in two.
///
/// A label is the set of operands that have it, plus one bit for the output: it is inside a subset that
/// contains that set, and open in one that meets it otherwise.
fn optimal(net: &Network) -> Pairs {
    let n = net.tensors.len();
    let mut labels: Vec<(u32, f64)> = Vec::new();
    for (label, weight) in net.weight.iter().enumerate() {
        let has = |x: &Labels| x.contains(&(label as u32));
        let mut set = (net.open[label] as u32) << n;
        set |= net.tensors.iter().enumerate().map(|(i, x)| (has(x) as u32) << i).sum::<u32>();
        match labels.iter_mut().find(|(other, _)| *other == set) {
            Some((_, product)) => *product *= weight,
            None if set == 0 => {} // summed away in its operand
            None => labels.push((set, *weight)),
        }
    }
    let full = (1_u32 << n) - 1;
    let mut best: Vec<(Cost, u32)> = vec![((0.0, 0.0), 0); full as usize + 1];
    // For every subset, the product of its open labels, and product and number of the labels inside it.
    let mut sizes = vec![1.0_f64; full as usize + 1];
    let mut inside = vec![(1.0_f64, 0); full as usize + 1];
    for subset in 1..=full {
        let mut size = 1.0;
        let mut closed = (1.0, 0);
        for (label, weight) in &labels {
            if label & !subset == 0 {
                closed = (closed.0 * weight, closed.1 + 1);
            } else if label & subset != 0 {
                size *= weight;
            }
        }
        sizes[subset as usize] = size;
        inside[subset as usize] = closed;
        if subset.is_power_of_two() {
            continue;
        }
        let anchor = subset & subset.wrapping_neg();
        let rest = subset ^ anchor;
        let mut found = ((f64::INFINITY, f64::INFINITY), 0);
        // `part` runs over the proper submasks of `rest`; the left operand is the anchor and `part`.
        let mut part = rest;
        while part != 0 {
            part = (part - 1) & rest;
            let (left, right) = ((anchor | part) as usize, (rest ^ part) as usize);
            let (l, r) = (best[left].0, best[right].0);
            // What is inside the whole and in neither part is contracted here.
            let (x, y) = (inside[left], inside[right]);
            let iterations = size * (closed.0 / (x.0 * y.0));
            let cost = (l.0 + r.0 + flops(iterations, closed.1 > x.1 + y.1), l.1 + r.1 + size);
            if cost < found.0 {
                found = (cost, left as u32);
            }
        }
        // Costs beyond the range of f64 leave no winner: any split will do.
        best[subset as usize] = if found.1 == 0 { ((f64::INFINITY, f64::INFINITY), anchor) } else { found };
    }
    let mut made = Vec::new();
    let mut todo = vec![full];
    while let Some(subset) = todo.pop() {
        if !subset.is_power_of_two() {
            let left = best[subset as usize].1;
            made.push(subset);
            todo.extend([left, subset ^ left]);
        }
    }
    made.reverse();
    let id = |subset: u32| match subset.is_power_of_two() {
        true => subset.trailing_zeros() as usize,
        false => n + made.iter().position(|x| *x == subset).expect("made before it is used"),
    };
    made.iter().map(|subset| best[*subset as usize].1).zip(&made).map(|(l, s)| (id(l), id(s ^ l))).collect()
}

fn greedy(net: &Network) -> Pairs {
    let orders = GREEDY_WEIGHTS.iter().map(|alpha| greedy_with(net, *alpha));
    let costed = orders.map(|pairs| (cost(net, &pairs), pairs));
    let (cost, best) = costed.reduce(|a, b| if b.0 < a.0 { b } else { a }).expect("there are weights");
    if cost.0 < WORTH_IMPROVING * best.len() as f64 { best } else { Tree::new(net, &best).improved() }
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

/// Operands while they are contracted pair by pair.
pub(crate) struct Contraction<'a> {
    net: &'a Network,
    /// All operands and results so far; the used ones are empty.
    tensors: Vec<Labels>,
    used: Vec<bool>,
    /// For each label, how many remaining operands have it, the output counting as one.
    holders: Vec<usize>,
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

    fn size(&self, i: usize) -> f64 {
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
    fn cost(&self, a: usize, b: usize) -> Cost {
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

fn cost(net: &Network, pairs: &[(usize, usize)]) -> Cost {
    let mut contraction = Contraction::new(net);
    let mut total = (0.0, 0.0);
    for (a, b) in pairs {
        let step = contraction.cost(*a, *b);
        total = (total.0 + step.0, total.1 + step.1);
        contraction.contract(*a, *b);
    }
    total
}

/// Repeatedly contracts the two operands with a common label for which the size of the result, less
/// `alpha` times the sizes of the two, is least; then what is left, smallest first.
fn greedy_with(net: &Network, alpha: f64) -> Pairs {
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

/// An order as a tree, for changing it from inside.
struct Tree<'a> {
    net: &'a Network,
    /// Labels of every operand and result.
    sets: Vec<Labels>,
    /// What result `n + k` is made of; the last one is the root.
    children: Vec<(usize, usize)>,
}

impl<'a> Tree<'a> {
    fn new(net: &'a Network, pairs: &[(usize, usize)]) -> Self {
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
    fn improved(mut self) -> Pairs {
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

fn annealed(net: &Network) -> Option<Pairs> {
    let inputs = net.tensors.iter().map(|x| x.to_vec()).collect();
    let output = (0..net.open.len() as u32).filter(|label| net.open[*label as usize]).collect();
    let sizes: HashMap<u32, usize> =
        net.weight.iter().enumerate().map(|(label, weight)| (label as u32, *weight as usize)).collect();
    let tree = omeco::optimize_treesa(&EinCode::new(inputs, output), &sizes, &omeco::TreeSA::fast())?;
    // Children first, without recursion: an order may be as deep as it has operands.
    let mut nodes = vec![&tree];
    let mut at = 0;
    while at < nodes.len() {
        if let NestedEinsum::Node { args, .. } = nodes[at] {
            nodes.extend(args);
        }
        at += 1;
    }
    let mut made = std::collections::VecDeque::new();
    let mut pairs = Vec::new();
    for node in nodes.iter().rev() {
        match node {
            NestedEinsum::Leaf { tensor_index } => made.push_back(*tensor_index),
            NestedEinsum::Node { .. } => {
                let (b, a) = (made.pop_front()?, made.pop_front()?);
                made.push_back(net.tensors.len() + pairs.len());
                pairs.push((a, b));
            }
        }
    }
    (pairs.len() + 1 == net.tensors.len()).then_some(pairs)
}

/// The same tree, executed depth first: of two operands, the one whose making needs more room goes first
/// (Sethi and Ullman), so that few results are alive at once.
fn depth_first(net: &Network, pairs: &[(usize, usize)]) -> Pairs {
    let n = net.tensors.len();
    let mut contraction = Contraction::new(net);
    // Inputs are alive anyway.
    let mut size = vec![0.0; n];
    let mut peak = vec![0.0_f64; n];
    let mut children = Vec::with_capacity(pairs.len());
    for (a, b) in pairs {
        let result = contraction.contract(*a, *b);
        size.push(contraction.size(result));
        let (first, second) = if peak[*a] - size[*a] >= peak[*b] - size[*b] { (*a, *b) } else { (*b, *a) };
        let both = size[first] + size[second] + size[result];
        peak.push(peak[first].max(size[first] + peak[second]).max(both));
        children.push((first, second));
    }
    let mut number = vec![usize::MAX; n + pairs.len()];
    (0..n).for_each(|i| number[i] = i);
    let mut ordered = Vec::with_capacity(pairs.len());
    let mut todo = vec![n + pairs.len() - 1];
    while let Some(node) = todo.last().copied() {
        if number[node] != usize::MAX {
            todo.pop();
            continue;
        }
        let (first, second) = children[node - n];
        if number[first] == usize::MAX {
            todo.push(first);
        } else if number[second] == usize::MAX {
            todo.push(second);
        } else {
            todo.pop();
            let (a, b) = (number[first], number[second]);
            number[node] = n + ordered.len();
            ordered.push((a.min(b), a.max(b)));
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of `n` operands with chords: three labels each, of extent 4.
    fn ring(n: usize) -> Network {
        let edge = |i: usize| (i % n) as u32;
        let chord = |i: usize| (n + i % n * 7 % n * (n - i % n * 7 % n) % n) as u32;
        let mut tensors: Vec<Labels> =
            (0..n).map(|i| [edge(i), edge(i + 1), chord(i)].into_iter().collect()).collect();
        let mut holders = vec![0; 2 * n];
        for set in &mut tensors {
            set.sort_unstable();
            set.dedup();
            set.iter().for_each(|label| holders[*label as usize] += 1);
        }
        tensors.iter_mut().for_each(|set| set.retain(|label| holders[*label as usize] > 1));
        Network { tensors, open: vec![false; 2 * n], weight: vec![4.0; 2 * n] }
    }

    fn is_complete(n: usize, pairs: &[(usize, usize)]) -> bool {
        let mut used: Vec<usize> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let before = pairs.iter().enumerate().all(|(k, (a, b))| *a.max(b) < n + k);
        used.sort_unstable();
        before && used == (0..2 * n - 2).collect::<Vec<_>>()
    }

    #[test]
    fn every_search_uses_each_operand_once() {
        for n in [3, 9, 40] {
            let net = ring(n);
            for optimize in [Optimize::Auto, Optimize::Greedy, Optimize::TreeSA] {
                assert!(is_complete(n, &order(&net, &optimize).unwrap()), "{n} {optimize:?}");
            }
        }
    }

    #[test]
    fn improving_and_annealing_never_cost_more() {
        let net = ring(60);
        let of = |optimize| cost(&net, &order(&net, &optimize).unwrap());
        let plain = GREEDY_WEIGHTS.map(|alpha| cost(&net, &greedy_with(&net, alpha)).0);
        let greedy = of(Optimize::Greedy);
        assert!(plain.iter().all(|plain| greedy.0 <= *plain), "{plain:?} {greedy:?}");
        assert!(of(Optimize::TreeSA) <= greedy);
    }

    #[test]
    fn greedy_is_never_below_optimal() {
        for n in 3..9 {
            let net = ring(n);
            assert!(cost(&net, &greedy(&net)) >= cost(&net, &optimal(&net)));
        }
    }

    #[test]
    fn equal_networks_get_equal_orders() {
        assert_eq!(order(&ring(50), &Optimize::Auto).unwrap(), order(&ring(50), &Optimize::Auto).unwrap());
    }

    #[test]
    fn a_label_on_many_operands_and_unconnected_operands_are_contracted() {
        let n = 300;
        let shared = Network {
            tensors: (0..n).map(|_| [0].into_iter().collect()).collect(),
            open: vec![true],
            weight: vec![3.0],
        };
        assert!(is_complete(n, &order(&shared, &Optimize::Auto).unwrap()));
        assert_eq!(cost(&shared, &order(&shared, &Optimize::Auto).unwrap()).0, 3.0 * (n - 1) as f64);
        let scalars = Network { tensors: vec![Labels::new(); n], open: vec![], weight: vec![] };
        assert!(is_complete(n, &order(&scalars, &Optimize::Auto).unwrap()));
    }

    #[test]
    fn a_chain_is_executed_with_few_results_alive() {
        let n = 30;
        let edge = |i: usize| [(i % n) as u32, ((i + 1) % n) as u32];
        let set = |i: usize| edge(i).iter().copied().min().into_iter().chain(edge(i).iter().copied().max());
        let tensors = (0..n).map(|i| set(i).collect()).collect();
        let net = Network { tensors, open: vec![false; n], weight: vec![2.0; n] };
        // By halves, level by level: the worst way to execute a balanced tree.
        let (mut level, mut pairs): (Vec<usize>, Pairs) = ((0..n).collect(), vec![]);
        while level.len() > 1 {
            let mut next = vec![];
            for pair in level.chunks(2) {
                match pair {
                    [a, b] => {
                        next.push(n + pairs.len());
                        pairs.push((*a, *b));
                    }
                    rest => next.extend(rest),
                }
            }
            level = next;
        }
        let alive = |pairs: &[(usize, usize)]| {
            let (mut alive, mut most) = (0, 0);
            for (a, b) in pairs {
                alive += 1;
                most = most.max(alive);
                alive -= [a, b].into_iter().filter(|x| **x >= n).count();
            }
            most
        };
        let ordered = depth_first(&net, &pairs);
        assert!(is_complete(n, &ordered));
        assert_eq!(cost(&net, &ordered), cost(&net, &pairs));
        assert_eq!(alive(&pairs), 16);
        assert!(alive(&ordered) <= 6, "{}", alive(&ordered));
    }

    #[test]
    fn paths_and_pairs_are_the_same_order() {
        let path = [(1, 3), (0, 2), (0, 1)];
        let pairs = from_path(4, &path).unwrap();
        assert_eq!(pairs, [(1, 3), (0, 4), (2, 5)]);
        assert_eq!(to_path(4, &pairs), path);
    }
}
