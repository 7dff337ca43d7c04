//! One operand alone: diagonals, sums and permutations between two lists of labels.

use crate::notation::Labels;
use smallvec::SmallVec;

/// One operand alone, brought from the labels of its axes to other labels: diagonals are taken, then
/// labels are summed, then axes are permuted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rearrange {
    /// Labels of the axes before.
    pub input: Labels,
    /// Labels of the axes after: distinct labels of `input`.
    pub output: Labels,
    /// Diagonals to take one after the other: each replaces two axes by one, appended last.
    pub diagonals: SmallVec<[(usize, usize); 2]>,
    /// Axes to sum, numbered after the diagonals.
    pub sums: SmallVec<[usize; 2]>,
    /// The axis that becomes axis `k`, numbered after the sums; `None` where nothing moves.
    pub permutation: Option<SmallVec<[usize; 6]>>,
}

impl Rearrange {
    /// From axes labelled `input` to axes labelled `output`, distinct labels of `input`.
    pub(crate) fn new(input: &[u32], output: &[u32]) -> Self {
        let mut axes = Labels::from_slice(input);
        let mut diagonals = SmallVec::new();
        let mut axis = 0;
        while axis < axes.len() {
            let label = axes[axis];
            match axes[axis + 1..].iter().position(|other| *other == label) {
                Some(offset) => {
                    let second = axis + 1 + offset;
                    diagonals.push((axis, second));
                    axes.remove(second);
                    axes.remove(axis);
                    axes.push(label);
                }
                None => axis += 1,
            }
        }
        let sums = (0..axes.len()).filter(|axis| !output.contains(&axes[*axis])).collect();
        axes.retain(|label| output.contains(label));
        let permutation = (axes[..] != *output).then(|| positions(output, &axes));
        Rearrange { input: input.into(), output: output.into(), diagonals, sums, permutation }
    }

    /// The labels after diagonals and sums, before the permutation.
    pub(crate) fn unpermuted(&self) -> Labels {
        let mut labels = self.output.clone();
        for (label, axis) in self.output.iter().zip(self.permutation.iter().flatten()) {
            labels[*axis] = *label;
        }
        labels
    }

    /// Whether nothing has to be done.
    pub fn is_identity(&self) -> bool {
        self.diagonals.is_empty() && self.sums.is_empty() && self.permutation.is_none()
    }
}

/// Where each of `labels` is in `axes`, which has them all.
pub(crate) fn positions(labels: &[u32], axes: &[u32]) -> SmallVec<[usize; 6]> {
    labels.iter().filter_map(|label| axes.iter().position(|other| other == label)).collect()
}

/// The labels, each once, in the order in which they first come.
pub(crate) fn distinct(labels: &[u32]) -> Labels {
    let mut found = Labels::new();
    for label in labels {
        if !found.contains(label) {
            found.push(*label);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rearranging_takes_diagonals_then_sums_then_permutes() {
        let all = Rearrange::new(&[0, 1, 0, 2, 0, 3], &[2, 0]);
        assert_eq!(all.diagonals[..], [(0, 2), (2, 4)]);
        assert_eq!(all.sums[..], [0, 2]);
        assert_eq!(all.permutation, None);
        assert!(Rearrange::new(&[1, 2], &[1, 2]).is_identity());
        assert_eq!(Rearrange::new(&[1, 2, 3], &[3, 1, 2]).permutation.unwrap()[..], [2, 0, 1]);
    }
}
