//! The notation of Einstein summation: the label that each axis carries.
//!
//! An einsum multiplies operands axis by axis and sums every label that is absent from the output,
//! `y[out] = Σ Π_j x_j[in_j]`. A label may repeat inside one operand (a diagonal), occur in any number
//! of operands (a hyperedge), or occur in one operand alone (a sum).
//!
//! Invariant: a [`Notation`] has at least one operand, and its output labels are distinct labels of
//! the operands. Everything after construction relies on it.

use smallvec::SmallVec;
use std::fmt::{self, Display, Write};
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
}

impl Notation {
    /// Reads `"ij,jk->ik"`: labels are letters, operands are separated by commas, the arrow is required.
    ///
    /// An operand without labels is a scalar (`",->"` multiplies two); white space is ignored.
    ///
    /// # Errors
    /// `Label`, naming the position (counted in characters from 0), for any other character, a missing
    /// or second arrow, and an output label that no operand has or that repeats.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = |at: usize, got: &dyn Display, expected: &str| {
            Error::label(OP, format!("position {at} of {text:?}"), got, expected)
        };
        let mut inputs = SmallVec::new();
        let mut labels = Labels::new();
        let mut arrow = false;
        let mut chars = text.chars().enumerate();
        while let Some((at, c)) = chars.next() {
            match c {
                ',' if arrow => return Err(bad(at, &"','", "a letter, since there is one output")),
                ',' => inputs.push(std::mem::take(&mut labels)),
                '-' if arrow => return Err(bad(at, &"a second arrow", "a letter or the end")),
                '-' => match chars.next() {
                    Some((_, '>')) => {
                        inputs.push(std::mem::take(&mut labels));
                        arrow = true;
                    }
                    Some((at, c)) => return Err(bad(at, &format!("{c:?}"), "'>' after '-'")),
                    None => return Err(bad(at + 1, &"the end", "'>' after '-'")),
                },
                c => match label_of(c) {
                    Some(label) => labels.push(label),
                    None if c.is_whitespace() => {}
                    None if arrow => return Err(bad(at, &format!("{c:?}"), "a letter or the end")),
                    None => return Err(bad(at, &format!("{c:?}"), "a letter, ',' or '->'")),
                },
            }
        }
        if !arrow {
            return Err(bad(text.chars().count(), &"the end", "'->' and the output labels"));
        }
        let notation = Notation::with(inputs, labels);
        match notation.fault() {
            None => Ok(notation),
            Some(fault) => {
                let mut letters = text.chars().enumerate().filter(|(_, c)| label_of(*c).is_some());
                let before = notation.inputs.iter().map(|x| x.len()).sum::<usize>();
                let at = letters.nth(before + fault.axis).map_or(0, |(at, _)| at);
                Err(bad(at, &fault.got, &fault.expected))
            }
        }
    }

    /// The notation with these labels of the operands and of the output.
    ///
    /// # Errors
    /// `Argument` without operands; `Label` for an output label that no operand has or that repeats.
    pub fn new(inputs: &[&[u32]], output: &[u32]) -> Result<Self> {
        if inputs.is_empty() {
            return Err(Error::argument(OP, "operands", "none", "at least one"));
        }
        let inputs = inputs.iter().map(|x| Labels::from_slice(x)).collect();
        let notation = Notation::with(inputs, Labels::from_slice(output));
        match notation.fault() {
            None => Ok(notation),
            Some(fault) => {
                let what = format!("output axis {}", fault.axis);
                Err(Error::label(OP, what, fault.got, fault.expected))
            }
        }
    }

    fn with(inputs: SmallVec<[Labels; 3]>, output: Labels) -> Self {
        let mut digest = Fold::default();
        for labels in inputs.iter().chain([&output]) {
            digest.add(labels.len() as u64);
            labels.iter().for_each(|label| digest.add(u64::from(*label)));
        }
        Notation { digest: digest.0, inputs, output }
    }

    /// The first output axis that breaks the invariant.
    fn fault(&self) -> Option<Fault> {
        for (axis, label) in self.output.iter().enumerate() {
            if self.output[..axis].contains(label) {
                let got = format!("a second {}", Quoted(*label));
                return Some(Fault { axis, got, expected: "each output label once".into() });
            }
            if !self.inputs.iter().any(|x| x.contains(label)) {
                let mut known = Labels::new();
                for label in self.inputs.iter().flatten() {
                    if !known.contains(label) {
                        known.push(*label);
                    }
                }
                let expected = format!("a label of an operand, one of \"{}\"", Text(&known));
                return Some(Fault { axis, got: Quoted(*label).to_string(), expected });
            }
        }
        None
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
            return Err(Error::argument(OP, "number of operands", shapes.len(), expected));
        }
        let mut axes: SmallVec<[(u32, usize, usize); 12]> = SmallVec::new();
        for (operand, (labels, shape)) in self.inputs.iter().zip(shapes).enumerate() {
            if labels.len() != shape.len() {
                let expected = format!("{}, the labels \"{}\"", labels.len(), Text(labels));
                return Err(Error::rank(OP, format!("rank of operand {operand}"), shape.len(), expected));
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
                        return Err(Error::shape(OP, what, extent, expected));
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
        let mut distinct = Labels::new();
        for label in target {
            if !distinct.contains(label) {
                distinct.push(*label);
            }
        }
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

/// Multiply and rotate, as FxHash: keys are small integers that no adversary chooses.
#[derive(Default)]
pub(crate) struct Fold(pub(crate) u64);

impl Fold {
    pub(crate) fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

struct Fault {
    axis: usize,
    got: String,
    expected: String,
}

/// Labels from here on are the letters between the ASCII ones and U+00C0, which have no place in the
/// numbering of opt_einsum.
const OUTSIDE: u32 = 0x11_0000;
/// Label of U+00C0 is 52.
const SHIFT: u32 = 0xC0 - 52;
/// Labels skip the surrogates, which are no characters.
const SURROGATES: std::ops::Range<u32> = 0xD800..0xE000;

/// Letters, and the two signs (`×`, `÷`) that the numbering has among the first letters.
fn label_of(c: char) -> Option<u32> {
    let code = c as u32;
    match c {
        'a'..='z' => Some(code - 'a' as u32),
        'A'..='Z' => Some(code - 'A' as u32 + 26),
        _ if !c.is_alphabetic() && c != '×' && c != '÷' => None,
        _ if code < 0xC0 => Some(OUTSIDE + code),
        _ if code >= SURROGATES.end => Some(code - SHIFT - SURROGATES.len() as u32),
        _ => Some(code - SHIFT),
    }
}

fn letter_of(label: u32) -> Option<char> {
    let c = match label {
        0..26 => char::from(b'a' + label as u8),
        26..52 => char::from(b'A' + (label - 26) as u8),
        OUTSIDE.. => char::from_u32(label - OUTSIDE)?,
        _ if label + SHIFT >= SURROGATES.start => char::from_u32(label + SHIFT + SURROGATES.len() as u32)?,
        _ => char::from_u32(label + SHIFT)?,
    };
    (label_of(c) == Some(label)).then_some(c)
}

/// Labels as letters; a label without a letter shows as `{number}`, which does not parse.
struct Text<'a>(&'a [u32]);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for label in self.0 {
            match letter_of(*label) {
                Some(c) => f.write_char(c)?,
                None => write!(f, "{{{label}}}")?,
            }
        }
        Ok(())
    }
}

struct Quoted(u32);

impl Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", Text(&[self.0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        Notation::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn text_round_trips() {
        for text in ["ij,jk->ik", ",->", "->", "ii->i", "aA,µβ,×->aµβ", "日本,本->日", "abc,,c->"] {
            assert_eq!(Notation::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Notation::parse(" i j , j k -> i k ").unwrap(), "ij,jk->ik".parse().unwrap());
        let many: Vec<u32> = (0..140).collect();
        let chain = Notation::new(&[&many], &many).unwrap();
        assert_eq!(Notation::parse(&chain.to_string()).unwrap(), chain);
    }

    #[test]
    fn every_letter_has_its_own_label() {
        let mut labels: Vec<u32> = ('\0'..=char::MAX)
            .filter_map(|c| {
                let label = label_of(c)?;
                assert_eq!(letter_of(label), Some(c));
                Some(label)
            })
            .collect();
        let count = labels.len();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), count);
        assert_eq!([label_of('a'), label_of('Z'), label_of('À')], [Some(0), Some(51), Some(52)]);
    }

    #[test]
    fn a_label_without_a_letter_shows_its_number() {
        assert_eq!(Notation::new(&[&[u32::MAX, 0]], &[0]).unwrap().to_string(), "{4294967295}a->a");
    }

    #[test]
    fn errors_name_position_got_and_expected() {
        for (text, expected) in [
            ("ij,jk", "position 5 of \"ij,jk\": got the end, expected '->' and the output labels"),
            ("ij;jk->ik", "position 2 of \"ij;jk->ik\": got ';', expected a letter, ',' or '->'"),
            ("ij-ik", "position 3 of \"ij-ik\": got 'i', expected '>' after '-'"),
            ("ij-", "position 3 of \"ij-\": got the end, expected '>' after '-'"),
            ("ij->i->j", "position 5 of \"ij->i->j\": got a second arrow, expected a letter or the end"),
            ("ij->i,j", "got ',', expected a letter, since there is one output"),
            (
                "i j -> i k",
                "position 9 of \"i j -> i k\": got 'k', expected a label of an operand, one of \"ij\"",
            ),
            ("ij->ii", "position 5 of \"ij->ii\": got a second 'i', expected each output label once"),
            ("i..j->ij", "position 1 of \"i..j->ij\": got '.', expected a letter, ',' or '->'"),
        ] {
            let got = message(text);
            assert!(got.starts_with("einsum: ") && got.contains(expected), "{got}\nlacks {expected}");
        }
        assert!(Notation::new(&[], &[]).unwrap_err().to_string().contains("got none, expected at least one"));
        let got = Notation::new(&[&[0]], &[0, 1]).unwrap_err().to_string();
        assert!(got.contains("output axis 1: got 'b', expected a label of an operand"), "{got}");
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
        let trace = of("ii->", 0);
        assert_eq!((trace.notation.to_string(), &trace.embed.diagonals[..]), ("->".into(), &[(0, 1)][..]));
        assert!(Notation::parse("ij->i").unwrap().transpose(1).is_none());
    }

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
