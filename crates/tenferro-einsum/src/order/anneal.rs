//! Simulated annealing by omeco.

use super::network::{Network, Pairs};
use omeco::{EinCode, NestedEinsum};
use std::collections::HashMap;

pub(super) fn annealed(net: &Network) -> Option<Pairs> {
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
