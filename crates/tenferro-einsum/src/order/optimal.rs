//! The order of the fewest flops, by dynamic programming over subsets of the operands.

use super::network::{Cost, Network, Pairs, flops};
use crate::notation::Labels;

/// Dynamic programming over subsets of operands, each costing the best split in two.
///
/// A label is the set of operands that have it, plus one bit for the output: it is inside a subset that
/// contains that set, and open in one that meets it otherwise.
pub(super) fn optimal(net: &Network) -> Pairs {
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
