//! Orders in the format of opt_einsum and JAX: positions in a list of remaining operands.

use super::network::{Contraction, Network, Pairs};
use smallvec::SmallVec;
use std::fmt;
use tenferro_tensor::{Error, Result};

/// One step of a path: positions in the list of remaining operands, which loses them and gets their
/// contraction at its end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Positions(SmallVec<[usize; 2]>);

impl Positions {
    /// The positions.
    pub fn as_slice(&self) -> &[usize] {
        &self.0
    }
}

impl FromIterator<usize> for Positions {
    fn from_iter<I: IntoIterator<Item = usize>>(positions: I) -> Self {
        Positions(positions.into_iter().collect())
    }
}

impl From<(usize,)> for Positions {
    fn from(at: (usize,)) -> Self {
        [at.0].into()
    }
}

impl From<(usize, usize)> for Positions {
    fn from(at: (usize, usize)) -> Self {
        [at.0, at.1].into()
    }
}

impl From<(usize, usize, usize)> for Positions {
    fn from(at: (usize, usize, usize)) -> Self {
        [at.0, at.1, at.2].into()
    }
}

impl<const N: usize> From<[usize; N]> for Positions {
    fn from(at: [usize; N]) -> Self {
        at.into_iter().collect()
    }
}

impl From<&[usize]> for Positions {
    fn from(at: &[usize]) -> Self {
        at.iter().copied().collect()
    }
}

impl From<Vec<usize>> for Positions {
    fn from(at: Vec<usize>) -> Self {
        at.into_iter().collect()
    }
}

/// As a tuple in Python.
impl fmt::Display for Positions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(usize::to_string).collect();
        write!(f, "({}{})", all.join(", "), if all.len() == 1 { "," } else { "" })
    }
}

/// Operands that are contracted together: `0..n` are those of the einsum, and group `k` makes `n + k`.
pub(crate) type Groups = Vec<SmallVec<[usize; 2]>>;

/// The groups of a path.
pub(crate) fn groups(n: usize, path: &[Positions]) -> Result<Groups> {
    let mut remaining: Vec<usize> = (0..n).collect();
    let mut groups: Groups = Vec::with_capacity(path.len());
    for (k, at) in path.iter().enumerate() {
        let mut sorted = at.0.clone();
        sorted.sort_unstable();
        let distinct = sorted.windows(2).all(|pair| pair[0] != pair[1]);
        if !distinct || sorted.last().is_none_or(|last| *last >= remaining.len()) {
            let expected = format!("distinct positions below {}", remaining.len());
            return Err(Error::argument("einsum", format!("step {k} of the path"), at, expected));
        }
        let group: SmallVec<[usize; 2]> = at.0.iter().map(|i| remaining[*i]).collect();
        for i in sorted.iter().rev() {
            remaining.remove(*i);
        }
        match group[..] {
            [only] => remaining.push(only),
            _ => {
                remaining.push(n + groups.len());
                groups.push(group);
            }
        }
    }
    match remaining.len() {
        1 => Ok(groups),
        left => Err(Error::argument("einsum", "operands that the path leaves", left, "1")),
    }
}

/// The pairs of groups; of a larger one, in the order found for it.
pub(super) fn along(net: &Network, groups: &Groups) -> Pairs {
    let n = net.tensors.len();
    let mut contraction = Contraction::new(net);
    let mut pairs: Pairs = Vec::with_capacity(n.saturating_sub(1));
    // The number that each group's result has among the results of pairs.
    let mut made = Vec::with_capacity(groups.len());
    for group in groups {
        let number = |x: &usize| x.checked_sub(n).map_or(*x, |group| made[group]);
        let mut ids: SmallVec<[usize; 4]> = group.iter().map(number).collect();
        let inner = match ids[..] {
            [_, _] => vec![(0, 1)],
            _ => super::automatic(&contraction.part(&ids)),
        };
        for (a, b) in inner {
            pairs.push((ids[a], ids[b]));
            ids.push(contraction.contract(ids[a], ids[b]));
        }
        made.extend(ids.last());
    }
    pairs
}

/// The path in positions that stands for `pairs`.
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
