use super::depth_first::depth_first;
use super::greedy::{GREEDY_WEIGHTS, greedy, greedy_with};
use super::network::cost;
use super::optimal::optimal;
use super::*;
use crate::notation::Labels;

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
    let pairs = order(&ring(4), &Optimize::path(path)).unwrap();
    assert_eq!(pairs, [(1, 3), (0, 4), (2, 5)]);
    assert_eq!(to_path(4, &pairs), path);
}

#[test]
fn a_step_of_a_path_takes_any_number_of_operands() {
    let net = ring(9);
    for path in [
        Optimize::path([[0, 1, 2, 3, 4, 5, 6, 7, 8]]),
        Optimize::path([&[4, 2, 8][..], &[0], &[0, 1, 2, 3, 4, 5], &[1, 0]]),
        Optimize::path([(0, 1, 2); 4]),
    ] {
        assert!(is_complete(9, &order(&net, &path).unwrap()), "{path:?}");
    }
    let all = Optimize::path([[0, 1, 2, 3, 4, 5, 6]]);
    assert_eq!(order(&ring(7), &all).unwrap(), order(&ring(7), &Optimize::Auto).unwrap());
    // Of a lone operand nothing is left to contract.
    assert!(order(&ring(1), &Optimize::path([(0,)])).unwrap().is_empty());
}

#[test]
fn a_part_keeps_what_the_others_have() {
    // ab, bc, cd, with d open.
    let set = |labels: &[u32]| Labels::from_slice(labels);
    let net = Network {
        tensors: vec![set(&[0, 1]), set(&[1, 2]), set(&[2, 3])],
        open: vec![false, false, false, true],
        weight: vec![2.0; 4],
    };
    let part = Contraction::new(&net).part(&[1, 2]);
    assert_eq!(part.tensors, [set(&[0, 1]), set(&[1, 2])]);
    assert_eq!(part.open, [true, false, true]);
}
