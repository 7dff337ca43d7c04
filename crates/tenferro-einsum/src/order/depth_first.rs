//! When each step of an order is executed.

use super::network::{Contraction, Network, Pairs};

/// The same tree, executed depth first: of two operands, the one whose making needs more room goes first
/// (Sethi and Ullman), so that few results are alive at once.
pub(super) fn depth_first(net: &Network, pairs: &[(usize, usize)]) -> Pairs {
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
