//! What the text of an einsum says: labels, an ellipsis, parentheses, and the output.
//!
//! An [`Expression`] knows no ranks. With them the ellipsis becomes labels of its own, and what is left is a
//! [`Notation`].
//!
//! Invariant: output labels are labels of operands, the output has an ellipsis only if an operand has one,
//! and parentheses are balanced and enclose at least two operands, but not all of them.

use crate::letters::{Text, ellipsis_axis, letter_of};
use crate::notation::{Labels, Notation};
use crate::order::Positions;
use smallvec::SmallVec;
use std::fmt::{self, Display};
use tenferro_tensor::{Error, Result};

/// The text of an einsum, read. Its `Display` is the same text without white space and idle parentheses.
///
/// ```
/// # use tenferro_einsum::Expression;
/// let text = Expression::parse("(...ij, ...jk), kl -> ...il")?;
/// assert_eq!(text.to_string(), "(...ij,...jk),kl->...il");
/// assert_eq!(Expression::parse(&text.to_string())?, text);
/// // Without an arrow the output is what NumPy takes it to be.
/// assert_eq!(Expression::parse("ji,jk")?.notation(), Some("ji,jk->ik".parse()?));
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expression {
    pub(crate) terms: SmallVec<[Term; 3]>,
    pub(crate) output: Option<Term>,
    /// A network in the manner of ncon: no extent is repeated.
    pub(crate) network: bool,
}

/// One operand, or the output.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Term {
    pub(crate) labels: Labels,
    /// How many labels come before the ellipsis, if there is one.
    pub(crate) ellipsis: Option<usize>,
    /// Parentheses opened before the operand and closed after it.
    pub(crate) opens: usize,
    pub(crate) closes: usize,
}

impl Term {
    /// The labels of a tensor with `extra` axes in the ellipsis.
    fn with_ellipsis(&self, extra: usize) -> Labels {
        let (before, after) = self.labels.split_at(self.ellipsis.unwrap_or(0));
        let between = (0..extra).rev().map(ellipsis_axis);
        before.iter().copied().chain(between).chain(after.iter().copied()).collect()
    }

    /// How many axes the ellipsis of a tensor of this rank stands for.
    fn extra(&self, op: &'static str, operand: usize, rank: usize) -> Result<usize> {
        let named = self.labels.len();
        let at_least = if self.ellipsis.is_some() { "at least " } else { "" };
        match rank.checked_sub(named) {
            Some(extra) if extra == 0 || self.ellipsis.is_some() => Ok(extra),
            _ => {
                let expected = format_args!("{at_least}{named}, the labels \"{}\"", Text(&self.labels));
                let expected = expected.to_string();
                Err(Error::rank(op, format!("rank of operand {operand}"), rank, expected))
            }
        }
    }
}

impl Expression {
    /// The labels of all operands, once each that occurs once, in the order of their letters: the output of
    /// NumPy where none is given.
    fn implicit(&self) -> Labels {
        let mut all: Labels = self.terms.iter().flat_map(|term| term.labels.iter().copied()).collect();
        // Letters are numbered from `a`, but come from `A`.
        all.sort_unstable_by_key(|label| (letter_of(*label), *label));
        let once = |(i, label): (usize, &u32)| {
            let next_to = [i.checked_sub(1), Some(i + 1)];
            !next_to.iter().flatten().any(|j| all.get(*j) == Some(label))
        };
        all.iter().enumerate().filter(|at| once(*at)).map(|(_, label)| *label).collect()
    }

    /// The labels for operands of these ranks. The axes of the ellipses are aligned at the last one.
    ///
    /// # Errors
    /// `Argument` for another number of operands, `Rank` for a rank that does not fit the labels.
    pub fn notation_for(&self, ranks: &[usize]) -> Result<Notation> {
        if ranks.len() != self.terms.len() {
            let expected = format!("{} for \"{self}\"", self.terms.len());
            return Err(Error::argument(self.op(), "number of operands", ranks.len(), expected));
        }
        let (mut inputs, mut widest) = (SmallVec::new(), 0);
        for (operand, (term, rank)) in self.terms.iter().zip(ranks).enumerate() {
            let extra = term.extra(self.op(), operand, *rank)?;
            inputs.push(term.with_ellipsis(extra));
            widest = widest.max(extra);
        }
        let output = match &self.output {
            Some(term) if term.ellipsis.is_some() => term.with_ellipsis(widest),
            Some(term) => term.labels.clone(),
            None => Term { labels: self.implicit(), ..Term::default() }.with_ellipsis(widest),
        };
        Ok(Notation::with(inputs, output).of_network(self.network))
    }

    /// The labels, if there is no ellipsis.
    pub fn notation(&self) -> Option<Notation> {
        if self.terms.iter().any(|term| term.ellipsis.is_some()) {
            return None;
        }
        let ranks: SmallVec<[usize; 4]> = self.terms.iter().map(|term| term.labels.len()).collect();
        self.notation_for(&ranks).ok()
    }

    /// The name of the operation in errors.
    pub(crate) fn op(&self) -> &'static str {
        if self.network { "ncon" } else { "einsum" }
    }

    /// How many operands there are.
    pub fn operands(&self) -> usize {
        self.terms.len()
    }

    /// The same without parentheses.
    pub(crate) fn unnested(&self) -> Expression {
        let term = |term: &Term| Term { opens: 0, closes: 0, ..term.clone() };
        let terms = self.terms.iter().map(term).collect();
        Expression { terms, output: self.output.clone(), network: self.network }
    }

    /// Whether parentheses say something about the order of contraction.
    pub fn is_nested(&self) -> bool {
        self.terms.iter().any(|term| term.opens > 0)
    }

    /// The order of contraction that the parentheses ask for, in the positions of
    /// [`Optimize::Path`](crate::Optimize::Path): what is inside a pair of them is contracted before anything
    /// else is done to it.
    pub(crate) fn path(&self) -> Vec<Positions> {
        let n = self.terms.len();
        let mut remaining: Vec<usize> = (0..n).collect();
        let mut path: Vec<Positions> = Vec::new();
        let mut open: Vec<Vec<usize>> = vec![Vec::new()];
        let mut contract = |group: Vec<usize>| {
            // The list stays sorted, since results are numbered in the order in which they are appended.
            let mut at: Vec<usize> = group.iter().map(|x| remaining.partition_point(|y| y < x)).collect();
            at.sort_unstable();
            let made = n + path.len();
            remaining.retain(|x| !group.contains(x));
            remaining.push(made);
            path.push(at.into());
            made
        };
        for (operand, term) in self.terms.iter().enumerate() {
            open.extend((0..term.opens).map(|_| Vec::new()));
            open.last_mut().expect("the outermost is never closed").push(operand);
            for _ in 0..term.closes {
                let made = contract(open.pop().expect("parentheses are balanced"));
                open.last_mut().expect("the outermost is never closed").push(made);
            }
        }
        let outermost = open.pop().expect("the outermost is never closed");
        if outermost.len() > 1 {
            contract(outermost);
        }
        path
    }
}

impl From<Notation> for Expression {
    fn from(notation: Notation) -> Self {
        Expression::from(&notation)
    }
}

impl From<&Notation> for Expression {
    fn from(notation: &Notation) -> Self {
        let term = |labels: &[u32]| Term { labels: labels.into(), ..Term::default() };
        let terms = notation.inputs().iter().map(|labels| term(labels)).collect();
        Expression { terms, output: Some(term(notation.output())), network: notation.is_network() }
    }
}

impl Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let repeated = |f: &mut fmt::Formatter<'_>, c, n| (0..n).try_for_each(|_| f.write_str(c));
        repeated(f, "(", self.opens)?;
        let (before, after) = self.labels.split_at(self.ellipsis.unwrap_or(0));
        let ellipsis = if self.ellipsis.is_some() { "..." } else { "" };
        write!(f, "{}{ellipsis}{}", Text(before), Text(after))?;
        repeated(f, ")", self.closes)
    }
}

impl Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.terms.iter().enumerate() {
            write!(f, "{}{term}", if i > 0 { "," } else { "" })?;
        }
        match &self.output {
            Some(output) => write!(f, "->{output}"),
            None => Ok(()),
        }
    }
}

impl std::str::FromStr for Expression {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Expression::parse(text)
    }
}
