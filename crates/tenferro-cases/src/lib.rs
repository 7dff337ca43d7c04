//! Random cases for the tests of every crate: how many there are, and what they are drawn from.
//!
//! Apart from the conformance suite, since the crates below that need it, too.
//!
//! Invariant: without PROPTEST_CASES a test sees the same cases on every machine, at every run.

use proptest::test_runner::{Config, RngSeed};

/// The same `n` cases every time; with PROPTEST_CASES as many, and if these are more, others each time.
pub fn cases(n: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(n);
    Config {
        cases: asked,
        rng_seed: if asked > n { RngSeed::Random } else { RngSeed::Fixed(1) },
        failure_persistence: None,
        ..Config::default()
    }
}

/// Numbers drawn one after the other from a seed, so that each may depend on those before.
#[derive(Clone, Debug)]
pub struct Draw(pub u64);

impl Draw {
    /// Below `n`, or 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % n.max(1)
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: isize, high: isize) -> isize {
        low + self.below((high - low + 1) as usize) as isize
    }

    /// One of these, of which there is one at least.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// The numbers below `n` in some order.
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut perm: Vec<usize> = (0..n).collect();
        (1..n).rev().for_each(|i| perm.swap(i, self.below(i + 1)));
        perm
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prelude::any, strategy::Strategy, strategy::ValueTree, test_runner::TestRunner};

    #[test]
    fn cases_are_the_same_every_time() {
        let some = || {
            let mut runner = TestRunner::new(cases(u32::MAX));
            [0; 8].map(|_| any::<u64>().new_tree(&mut runner).expect("a number").current())
        };
        assert_eq!(some(), some());
    }

    #[test]
    fn draws_are_within_their_bounds_and_depend_on_the_seed_alone() {
        let list = |seed| {
            let mut d = Draw(seed);
            (0..50).map(|_| d.between(-2, 3)).collect::<Vec<_>>()
        };
        assert_eq!(list(7), list(7));
        assert!((-2..=3).all(|n| list(7).contains(&n)) && list(7).iter().all(|n| (-2..=3).contains(n)));
        let mut perm = Draw(1).permutation(9);
        perm.sort_unstable();
        assert_eq!(perm, (0..9).collect::<Vec<_>>());
        assert_eq!(Draw(1).below(0), 0);
    }
}
