//! The order in which the operands of an einsum are contracted in pairs.
//!
//! Finding the cheapest order is NP-hard. Up to [`AUTO_OPTIMAL`] operands it is found exactly, by dynamic
//! programming over subsets; larger networks get the best of a few greedy orders. Simulated annealing
//! (TreeSA, Kalachev, Panteleev and Yung, arXiv:2108.05665) is omeco's.
//!
//! Invariant: apart from annealing, equal networks get equal orders, so that results repeat bit by bit.
//! That is why greedy is not omeco's: its ties are broken by the iteration order of a hash map.

mod anneal;
mod depth_first;
mod greedy;
mod network;
mod optimal;
mod path;
mod tree;

pub(crate) use network::{Contraction, Network, Pairs, flops};
pub use path::Positions;
pub(crate) use path::{groups, to_path};

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
    /// This order, in the format of opt_einsum and JAX: each step gives positions in the list of remaining
    /// operands, which then loses them and gets their contraction at the end. Of three operands or more in
    /// one step the order is found as by `Auto`; one operand only goes to the end. See [`Optimize::path`].
    Path(Vec<Positions>),
}

impl Optimize {
    /// The order of a path, given as tuples, arrays or vectors of positions.
    ///
    /// ```
    /// use tenferro_einsum::{Einsum, Optimize};
    ///
    /// let chain = Einsum::parse("ij,jk,kl->il")?;
    /// let shapes: [&[usize]; 3] = [&[2, 3], &[3, 4], &[4, 5]];
    /// let plan = chain.optimized(Optimize::path([(1, 2), (0, 1)]))?.plan(&shapes)?;
    /// assert_eq!(plan.path(), [(1, 2), (0, 1)]);
    /// # Ok::<(), tenferro_tensor::Error>(())
    /// ```
    pub fn path(steps: impl IntoIterator<Item = impl Into<Positions>>) -> Optimize {
        Optimize::Path(steps.into_iter().map(Into::into).collect())
    }
}

/// Networks up to this size are solved exactly by default.
const AUTO_OPTIMAL: usize = 8;
/// The exact search looks at 3^n / 2 splits, so no more than this.
const MAX_OPTIMAL: usize = 16;

pub(crate) fn order(net: &Network, optimize: &Optimize) -> Result<Pairs> {
    let n = net.tensors.len();
    let found = match optimize {
        Optimize::Path(path) => return Ok(path::along(net, &groups(n, path)?)),
        Optimize::Optimal if n > MAX_OPTIMAL => {
            let expected = format!("at most {MAX_OPTIMAL} (Greedy and TreeSA take more)");
            return Err(Error::argument("einsum", "operands of an optimal order", n, expected));
        }
        Optimize::Optimal => optimal::optimal(net),
        Optimize::TreeSA if n > 2 => {
            let greedy = greedy::greedy(net);
            match anneal::annealed(net) {
                Some(pairs) if network::cost(net, &pairs) < network::cost(net, &greedy) => pairs,
                _ => greedy,
            }
        }
        Optimize::Greedy if n > 2 => greedy::greedy(net),
        _ => return Ok(automatic(net)),
    };
    Ok(depth_first::depth_first(net, &found))
}

/// As [`Optimize::Auto`].
fn automatic(net: &Network) -> Pairs {
    let found = match net.tensors.len() {
        n @ 0..=2 => return (1..n).map(|_| (0, 1)).collect(),
        0..=AUTO_OPTIMAL => optimal::optimal(net),
        _ => greedy::greedy(net),
    };
    depth_first::depth_first(net, &found)
}

#[cfg(test)]
mod tests;
