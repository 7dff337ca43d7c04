//! The notation of Einstein summation: the label that each axis carries.
//!
//! An einsum multiplies operands axis by axis and sums every label that is absent from the output,
//! `y[out] = Σ Π_j x_j[in_j]`. A label may repeat inside one operand (a diagonal) or in the output (a
//! diagonal outside of which the output is zero), occur in any number of operands (a hyperedge), or occur in
//! one operand alone (a sum).
//!
//! Invariant: a [`Notation`] has at least one operand, and its output labels are labels of the operands.
//! Everything after construction relies on it.

use crate::expression::Expression;
use crate::letters::{Quoted, Text};
use crate::rearrange::{Rearrange, distinct, positions};
use smallvec::SmallVec;
use std::fmt::{self, Display};
use std::hash::{Hash, Hasher};
use tenferro_tensor::{Error, Result};

const OP: &str = "einsum";

/// The labels of the axes of one tensor, in axis order.
pub type Labels = SmallVec<[u32; 6]>;

/// Which labels the axes of the operands and of the output carry.
///
/// Labels are numbers; in text, `a`-`z` are 0-25, `A`-`Z` 26-51 and other letters follow from `À`
/// (U+00C0) = 52 on, the numbering of opt_einsum.
///
/// ```
/// # use tenferro_einsum::Notation;
/// let product = Notation::parse("ij,jk->ik")?;
/// assert_eq!(product, Notation::new(&[&[8, 9], &[9, 10]], &[8, 10])?);
/// assert_eq!(product.to_string(), "ij,jk->ik");
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notation {
    /// Hash of the rest: a notation is the key of the plan cache. First, so that it is compared first.
    digest: u64,
    inputs: SmallVec<[Labels; 3]>,
    output: Labels,
    /// A network in the manner of ncon: no extent is repeated.
    network: bool,
}

impl Notation {
    /// Reads text without an ellipsis and without parentheses, such as `"ij,jk->ik"`; see
    /// [`Expression::parse`].
    ///
    /// # Errors
    /// Those of [`Expression::parse`], and `Label` for an ellipsis or parentheses.
    pub fn parse(text: &str) -> Result<Self> {
        let expression = Expression::parse(text)?;
        match expression.notation() {
            Some(notation) if !expression.is_nested() => Ok(notation),
            _ => Err(Error::label(OP, "labels", format_args!("{text:?}"), "no ellipsis and no parentheses")),
        }
    }

    /// The notation with these labels of the operands and of the output.
    ///
    /// # Errors
    /// `Argument` without operands; `Label` for an output label that no operand has.
    pub fn new(inputs: &[&[u32]], output: &[u32]) -> Result<Self> {
        if inputs.is_empty() {
            return Err(Error::argument(OP, "operands", "none", "at least one"));
        }
        let inputs = inputs.iter().map(|x| Labels::from_slice(x)).collect();
        let notation = Notation::with(inputs, Labels::from_slice(output));
        match notation.output.iter().position(|label| !notation.has(*label)) {
            None => Ok(notation),
            Some(axis) => {
                let got = Quoted(notation.output[axis]);
                let expected = one_of(notation.inputs.iter().flatten());
                Err(Error::label(OP, format!("output axis {axis}"), got, expected))
            }
        }
    }

    /// The notation with these labels, of which those of the output are labels of operands.
    pub(crate) fn with(inputs: SmallVec<[Labels; 3]>, output: Labels) -> Self {
        let mut digest = Fold::default();
        for labels in inputs.iter().chain([&output]) {
            digest.add(labels.len() as u64);
            labels.iter().for_each(|label| digest.add(u64::from(*label)));
        }
        Notation { digest: digest.0, inputs, output, network: false }
    }

    /// The same labels, of a network or not.
    pub(crate) fn of_network(self, network: bool) -> Self {
        Notation { network, ..self }
    }

    pub(crate) fn is_network(&self) -> bool {
        self.network
    }

    /// The name of the operation in errors.
    pub(crate) fn op(&self) -> &'static str {
        if self.network { "ncon" } else { OP }
    }

    /// Whether an operand has this label.
    fn has(&self, label: u32) -> bool {
        self.inputs.iter().any(|x| x.contains(&label))
    }

    /// The labels of each operand.
    pub fn inputs(&self) -> &[Labels] {
        &self.inputs
    }

    /// The labels of the output.
    pub fn output(&self) -> &[u32] {
        &self.output
    }

    /// The extent of every label in operands of these shapes.
    ///
    /// # Errors
    /// `Argument` for another number of operands, `Rank` for another rank of one, and `Shape`, naming
    /// label and both operands, where two axes with one label differ.
    pub fn extents<D: Clone + PartialEq + Display>(&self, shapes: &[&[D]]) -> Result<Extents<D>> {
        self.extents_by(shapes, |a, b| Ok(a == b))
    }

    /// [`extents`](Self::extents) where `equal` decides whether two extents agree: symbolic extents may
    /// be equal without looking alike, or by a condition that is checked later.
    ///
    /// # Errors
    /// Those of [`extents`](Self::extents) and of `equal`.
    pub fn extents_by<D: Clone + Display>(
        &self,
        shapes: &[&[D]],
        mut equal: impl FnMut(&D, &D) -> Result<bool>,
    ) -> Result<Extents<D>> {
        if shapes.len() != self.inputs.len() {
            let expected = format!("{} for \"{self}\"", self.inputs.len());
            return Err(Error::argument(self.op(), "number of operands", shapes.len(), expected));
        }
        let mut axes: SmallVec<[(u32, usize, usize); 12]> = SmallVec::new();
        for (operand, (labels, shape)) in self.inputs.iter().zip(shapes).enumerate() {
            if labels.len() != shape.len() {
                let expected = format!("{}, the labels \"{}\"", labels.len(), Text(labels));
                let what = format!("rank of operand {operand}");
                return Err(Error::rank(self.op(), what, shape.len(), expected));
            }
            axes.extend(labels.iter().enumerate().map(|(axis, label)| (*label, operand, axis)));
        }
        axes.sort_unstable();
        let mut extents = Extents { entries: SmallVec::new() };
        let mut first = 0;
        for (label, operand, axis) in axes {
            let extent = &shapes[operand][axis];
            match extents.entries.last() {
                Some((last, known)) if *last == label => {
                    if !equal(known, extent)? {
                        let what = format!("extent of label {} in operand {operand}", Quoted(label));
                        let expected = format!("{known} as in operand {first}");
                        return Err(Error::shape(self.op(), what, extent, expected));
                    }
                }
                _ => {
                    extents.entries.push((label, extent.clone()));
                    first = operand;
                }
            }
        }
        Ok(extents)
    }

    /// The cotangent of operand `i` as an einsum.
    ///
    /// Of `y[out] = Σ Π_j x_j[in_j]` it is `x̄_i[in_i] = Σ ȳ[out] Π_{j≠i} conj(x_j)[in_j]`: the same
    /// einsum with operand `i` replaced by `ȳ` and the labels `in_i` and `out` exchanged. What an einsum
    /// cannot express is left to the two other fields of [`Transpose`]. `None` if there is no operand `i`.
    pub fn transpose(&self, i: usize) -> Option<Transpose> {
        let target = self.inputs.get(i)?;
        let mut inputs = self.inputs.clone();
        inputs[i] = self.output.clone();
        let distinct = distinct(target);
        let (kept, broadcast) =
            distinct.iter().copied().partition(|label| inputs.iter().any(|x| x.contains(label)));
        let notation = Notation::with(inputs, kept);
        Some(Transpose { notation, broadcast, embed: Rearrange::new(target, &distinct) })
    }
}

impl Hash for Notation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.digest);
    }
}

impl Display for Notation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, labels) in self.inputs.iter().enumerate() {
            write!(f, "{}{}", if i > 0 { "," } else { "" }, Text(labels))?;
        }
        write!(f, "->{}", Text(&self.output))
    }
}

impl std::str::FromStr for Notation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Notation::parse(text)
    }
}

/// The extent of every label of a notation.
#[derive(Clone, PartialEq, Debug)]
pub struct Extents<D> {
    /// Sorted by label.
    entries: SmallVec<[(u32, D); 8]>,
}

impl<D: Clone> Extents<D> {
    /// The extent of `label`, if the notation has it.
    pub fn get(&self, label: u32) -> Option<&D> {
        let at = self.entries.binary_search_by_key(&label, |entry| entry.0).ok()?;
        Some(&self.entries[at].1)
    }

    /// The extents of `labels`, in order; labels that the notation lacks have none.
    pub fn of<C: FromIterator<D>>(&self, labels: &[u32]) -> C {
        labels.iter().filter_map(|label| self.get(*label)).cloned().collect()
    }
}

/// The cotangent of one operand of an einsum, `x̄ = embed(broadcast(einsum(.., ȳ, ..)))`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transpose {
    /// The einsum over the other operands, conjugated, with `ȳ` in the place of operand `i`. Its output
    /// has the distinct labels of the operand, in the operand's order, less [`broadcast`](Self::broadcast).
    pub notation: Notation,
    /// Labels that operand `i` alone has: they were summed away, so the cotangent is constant along them.
    /// Broadcasting inserts them, giving the labels `embed.output`.
    pub broadcast: Labels,
    /// Takes the distinct labels out of a tensor of the operand's shape. The cotangent is zero but on
    /// that view. The identity unless the operand has repeated labels.
    pub embed: Rearrange,
}

impl Transpose {
    /// For each axis of the einsum's output, its axis after broadcasting.
    pub fn broadcast_axes(&self) -> SmallVec<[usize; 6]> {
        positions(self.notation.output(), &self.embed.output)
    }
}

/// Multiply and rotate, as FxHash: keys are small integers that no adversary chooses.
#[derive(Default)]
pub(crate) struct Fold(pub(crate) u64);

impl Fold {
    pub(crate) fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

/// What is expected of a label of the output.
pub(crate) fn one_of<'a>(known: impl Iterator<Item = &'a u32>) -> String {
    let known = distinct(&known.copied().collect::<Labels>());
    format!("a label of an operand, one of \"{}\"", Text(&known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_labels_have_letters() {
        let many: Vec<u32> = (0..140).collect();
        let chain = Notation::new(&[&many], &many).unwrap();
        assert_eq!(Notation::parse(&chain.to_string()).unwrap(), chain);
    }

    #[test]
    fn errors_name_axis_got_and_expected() {
        assert!(Notation::new(&[], &[]).unwrap_err().to_string().contains("got none, expected at least one"));
        let got = Notation::new(&[&[0]], &[0, 1]).unwrap_err().to_string();
        assert!(
            got.contains("output axis 1: got 'b', expected a label of an operand, one of \"a\""),
            "{got}"
        );
        for text in ["...i->i", "(ij,jk),kl->il"] {
            let got = Notation::parse(text).unwrap_err().to_string();
            assert!(got.contains("expected no ellipsis and no parentheses"), "{got}");
        }
    }

    #[test]
    fn extents_agree_or_name_label_and_operands() {
        let product = Notation::parse("ij,jk->ik").unwrap();
        let extents = product.extents(&[&[2, 3], &[3, 4]]).unwrap();
        assert_eq!(extents.of::<Vec<usize>>(product.output()), [2, 4]);
        assert_eq!(extents.get(3), None);
        let message = |shapes: &[&[usize]]| product.extents(shapes).unwrap_err().to_string();
        assert_eq!(
            message(&[&[2, 3], &[5, 4]]),
            "einsum: extent of label 'j' in operand 1: got 5, expected 3 as in operand 0"
        );
        assert!(message(&[&[2, 3]]).contains("number of operands: got 1, expected 2"));
        assert!(
            message(&[&[2, 3], &[3]]).contains("rank of operand 1: got 1, expected 2, the labels \"jk\"")
        );
        let square = Notation::parse("ii->").unwrap();
        assert!(square.extents(&[&[2, 3]]).unwrap_err().to_string().contains("expected 2 as in operand 0"));
    }

    #[test]
    fn transposes_exchange_the_labels_of_operand_and_output() {
        let of = |text: &str, i: usize| Notation::parse(text).unwrap().transpose(i).unwrap();
        assert_eq!(of("ij,jk->ik", 0).notation.to_string(), "ik,jk->ij");
        assert_eq!(of("ij,jk->ik", 1).notation.to_string(), "ij,ik->jk");
        let sum = of("ij->i", 0);
        assert_eq!((sum.notation.to_string(), &sum.broadcast[..]), ("i->i".into(), &[9][..]));
        assert_eq!(sum.broadcast_axes()[..], [0]);
        assert_eq!(of("i->ii", 0).notation.to_string(), "ii->i");
        let trace = of("ii->", 0);
        assert_eq!((trace.notation.to_string(), &trace.embed.diagonals[..]), ("->".into(), &[(0, 1)][..]));
        assert!(Notation::parse("ij->i").unwrap().transpose(1).is_none());
    }
}
