//! Reading the text of an einsum.
//!
//! ```text
//! einsum  = list [ "->" term ]
//! list    = item { "," item }
//! item    = term | "(" list ")"
//! term    = { letter } [ "..." { letter } ]
//! ```
//!
//! White space may be anywhere but inside an arrow or an ellipsis. There is no recursion: parentheses nest as
//! deep as the text is long.

use crate::expression::{Expression, Term};
use crate::letters::{Quoted, label_of};
use crate::notation::one_of;
use smallvec::SmallVec;
use std::fmt::Display;
use tenferro_tensor::{Error, Result};

impl Expression {
    /// Reads text such as `"ij,jk->ik"`.
    ///
    /// - Each letter labels an axis; operands are separated by commas, and one without labels is a scalar.
    ///   White space is ignored.
    /// - After `->` come the labels of the output. All others are summed. A label that repeats there makes
    ///   the output a diagonal, zero elsewhere: `"i->ii"`.
    /// - Without an arrow the output has the ellipsis, if there is one, then the labels that occur just once,
    ///   in the order of their letters (`A` to `Z` before `a`): `"ii"` is a trace, `"ji"` a transpose.
    /// - `...` stands for any number of axes, once in an operand. Operands may have different numbers of
    ///   them: they are aligned at the last one, as elementwise operations align shapes, and are summed if
    ///   the output is given without an ellipsis.
    /// - Parentheses say what is contracted first: `"(ij,jk),kl->il"`. Where they enclose three operands or
    ///   more, the order inside is looked for.
    ///
    /// # Errors
    /// `Label`, naming the position (counted in characters from 0), for text that is none, and for an output
    /// label that no operand has.
    pub fn parse(text: &str) -> Result<Self> {
        let mut reader = Reader { text, ..Reader::default() };
        let mut chars = text.chars().enumerate();
        while let Some((at, c)) = chars.next() {
            match c {
                ',' => reader.comma(at)?,
                '(' => reader.open(at)?,
                ')' => reader.close(at)?,
                '-' => match chars.next() {
                    Some((_, '>')) => reader.arrow(at)?,
                    next => return Err(reader.got(next, "'>' after '-'")),
                },
                '.' => {
                    for _ in 0..2 {
                        match chars.next() {
                            Some((_, '.')) => {}
                            next => return Err(reader.got(next, "an ellipsis of three dots")),
                        }
                    }
                    reader.ellipsis(at)?;
                }
                c => match label_of(c) {
                    Some(label) => reader.label(at, label)?,
                    None if c.is_whitespace() => {}
                    None => return Err(reader.got(Some((at, c)), reader.expected())),
                },
            }
        }
        reader.end()
    }
}

#[derive(Default)]
struct Reader<'a> {
    text: &'a str,
    terms: SmallVec<[Term; 3]>,
    term: Term,
    /// Instead of the term, something in parentheses was read.
    closed: bool,
    /// Where each open parenthesis is, its first operand, and its items so far.
    open: Vec<(usize, usize, usize)>,
    /// Items outside of all parentheses.
    items: usize,
    arrow: bool,
    /// Where the labels of the output are.
    places: SmallVec<[usize; 6]>,
}

impl Reader<'_> {
    fn error(&self, at: usize, got: impl Display, expected: impl Display) -> Error {
        Error::label("einsum", format!("position {at} of {:?}", self.text), got, expected)
    }

    /// An error for a character, or the end, that something else was expected at.
    fn got(&self, found: Option<(usize, char)>, expected: &str) -> Error {
        match found {
            Some((at, c)) => self.error(at, format_args!("{c:?}"), expected),
            None => self.error(self.text.chars().count(), "the end", expected),
        }
    }

    /// What may come next.
    fn expected(&self) -> &'static str {
        match (self.arrow, self.closed, self.open.is_empty()) {
            (true, ..) => "a letter, '...' or the end",
            (_, true, true) => "',' or '->' after ')'",
            (_, true, false) => "',' or ')' after ')'",
            (_, false, true) => "a letter, '...', ',', '(' or '->'",
            (_, false, false) => "a letter, '...', ',', '(' or ')'",
        }
    }

    fn item(&mut self) {
        if !std::mem::take(&mut self.closed) {
            self.terms.push(std::mem::take(&mut self.term));
        }
        match self.open.last_mut() {
            Some((.., items)) => *items += 1,
            None => self.items += 1,
        }
    }

    fn comma(&mut self, at: usize) -> Result<()> {
        if self.arrow {
            return Err(self.error(at, "','", "a letter, since there is one output"));
        }
        self.item();
        Ok(())
    }

    fn open(&mut self, at: usize) -> Result<()> {
        if self.arrow {
            return Err(self.error(at, "'('", self.expected()));
        }
        if self.closed || self.term != Term::default() {
            return Err(self.error(at, "'('", "',' before '('"));
        }
        self.open.push((at, self.terms.len(), 0));
        Ok(())
    }

    fn close(&mut self, at: usize) -> Result<()> {
        if self.open.is_empty() {
            return Err(self.error(at, "')'", "a '(' before it"));
        }
        self.item();
        if let Some((_, first, items)) = self.open.pop()
            && items > 1
        {
            self.enclose(first, 1);
        }
        self.closed = true;
        Ok(())
    }

    /// Adds parentheses from operand `first` to the last, or takes them away.
    fn enclose(&mut self, first: usize, by: isize) {
        self.terms[first].opens = self.terms[first].opens.wrapping_add_signed(by);
        let last = self.terms.len() - 1;
        self.terms[last].closes = self.terms[last].closes.wrapping_add_signed(by);
    }

    fn arrow(&mut self, at: usize) -> Result<()> {
        if self.arrow {
            return Err(self.error(at, "a second arrow", self.expected()));
        }
        self.inputs(Some(at))?;
        self.arrow = true;
        Ok(())
    }

    /// The operands end, at the arrow or at the end.
    fn inputs(&mut self, arrow: Option<usize>) -> Result<()> {
        if let Some((place, ..)) = self.open.last() {
            let (at, got) = match arrow {
                Some(at) => (at, "'->'"),
                None => (self.text.chars().count(), "the end"),
            };
            return Err(self.error(at, got, format_args!("')' for the '(' at position {place}")));
        }
        self.item();
        // Parentheses around everything say nothing about the order.
        if self.items == 1 && self.terms.len() > 1 {
            self.enclose(0, -1);
        }
        Ok(())
    }

    fn ellipsis(&mut self, at: usize) -> Result<()> {
        if self.closed {
            return Err(self.error(at, "'...'", self.expected()));
        }
        if self.term.ellipsis.is_some() {
            return Err(self.error(at, "a second '...'", "one in an operand"));
        }
        if self.arrow && self.terms.iter().all(|term| term.ellipsis.is_none()) {
            return Err(self.error(at, "'...'", "letters, since no operand has an ellipsis"));
        }
        self.term.ellipsis = Some(self.term.labels.len());
        Ok(())
    }

    fn label(&mut self, at: usize, label: u32) -> Result<()> {
        if self.closed {
            let got = Quoted(label).to_string();
            return Err(self.error(at, got, self.expected()));
        }
        self.term.labels.push(label);
        if self.arrow {
            self.places.push(at);
        }
        Ok(())
    }

    fn end(mut self) -> Result<Expression> {
        if !self.arrow {
            self.inputs(None)?;
            return Ok(Expression { terms: self.terms, output: None, network: false });
        }
        let known = || self.terms.iter().flat_map(|term| &term.labels);
        for (at, label) in self.places.iter().zip(&self.term.labels) {
            if known().all(|other| other != label) {
                return Err(self.error(*at, Quoted(*label), one_of(known())));
            }
        }
        Ok(Expression { terms: self.terms, output: Some(self.term), network: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::Notation;

    fn parse(text: &str) -> Expression {
        Expression::parse(text).unwrap()
    }

    #[test]
    fn text_round_trips() {
        for text in [
            "ij,jk->ik",
            ",->",
            "->",
            "",
            ",",
            "ii->i",
            "i->ii",
            "aA,µβ,×->aµβ",
            "日本,本->日",
            "abc,,c->",
            "ij,jk",
            "...",
            "i...j,...j->...i",
            "(ij,jk),kl->il",
            "ij,(jk,(kl,lm)),mn->in",
            "(a,b),(c,d)",
            "(,),",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
        assert_eq!(parse(" i j , ( j k,kl )\n->\ti l "), parse("ij,(jk,kl)->il"));
    }

    #[test]
    fn parentheses_around_one_item_or_all_are_idle() {
        for (text, same) in [
            ("((ij,jk))->ik", "ij,jk->ik"),
            ("(ij),((jk))->ik", "ij,jk->ik"),
            ("(((a,b)),c)", "(a,b),c"),
            ("()", ""),
            ("((a,b),(c,d))", "(a,b),(c,d)"),
        ] {
            assert_eq!(parse(text).to_string(), same);
        }
    }

    #[test]
    fn nesting_is_as_deep_as_the_text_is_long() {
        let n = 20_000;
        let text = "(".repeat(n) + "a" + &",a)".repeat(n);
        let expression = parse(&text);
        assert_eq!(expression.terms.len(), n + 1);
        assert_eq!(parse(&expression.to_string()), expression);
        assert!(Expression::parse(&"(".repeat(n)).is_err());
    }

    #[test]
    fn the_output_is_implied_as_in_numpy() {
        for (text, same) in [
            ("ii", "ii->"),
            ("ji", "ji->ij"),
            ("ij,jk", "ij,jk->ik"),
            ("ba,C", "ba,C->Cab"),
            ("i,i", "i,i->"),
            ("", "->"),
            ("bi,i,a", "bi,i,a->ab"),
        ] {
            assert_eq!(parse(text).notation(), Some(same.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn ellipses_become_labels_aligned_at_the_last() {
        let of = |text: &str, ranks: &[usize]| parse(text).notation_for(ranks).unwrap().to_string();
        assert_eq!(of("...i,i...->...", &[3, 2]), "...[-2]...[-1]i,i...[-1]->...[-2]...[-1]");
        assert_eq!(of("j...i", &[3]), "j...[-1]i->...[-1]ij");
        assert_eq!(of("...i->i", &[2]), "...[-1]i->i");
        assert_eq!(of("i...,i...->i...", &[1, 1]), "i,i->i");
        assert_eq!(parse("...").notation(), None);
        let message = |text: &str, ranks: &[usize]| parse(text).notation_for(ranks).unwrap_err().to_string();
        assert!(
            message("i...j->", &[1]).contains("rank of operand 0: got 1, expected at least 2, the labels")
        );
        assert!(
            message("ij,...->", &[3, 0]).contains("rank of operand 0: got 3, expected 2, the labels \"ij\"")
        );
        assert!(message("ij,...->", &[2]).contains("number of operands: got 1, expected 2 for \"ij,...->\""));
    }

    #[test]
    fn parentheses_are_paths() {
        let of = |text: &str| parse(text).path().iter().map(|at| at.as_slice().to_vec()).collect::<Vec<_>>();
        assert_eq!(of("(ij,jk),kl->il"), [[0, 1], [0, 1]]);
        assert_eq!(of("ij,(jk,kl)->il"), [[1, 2], [0, 1]]);
        assert_eq!(of("(a,b),(c,d)"), [[0, 1], [0, 1], [0, 1]]);
        assert_eq!(of("a,(b,(c,d,e)),f"), [vec![2, 3, 4], vec![1, 3], vec![0, 1, 2]]);
        assert!(of("a").is_empty());
    }

    #[test]
    fn errors_name_position_got_and_expected() {
        for (text, expected) in [
            ("ij;jk->ik", "position 2 of \"ij;jk->ik\": got ';', expected a letter, '...', ',', '(' or '->'"),
            ("ij-ik", "position 3 of \"ij-ik\": got 'i', expected '>' after '-'"),
            ("ij-", "position 3 of \"ij-\": got the end, expected '>' after '-'"),
            (
                "ij->i->j",
                "position 5 of \"ij->i->j\": got a second arrow, expected a letter, '...' or the end",
            ),
            ("ij->i,j", "got ',', expected a letter, since there is one output"),
            (
                "i j -> i k",
                "position 9 of \"i j -> i k\": got 'k', expected a label of an operand, one of \"ij\"",
            ),
            ("i..j->ij", "position 3 of \"i..j->ij\": got 'j', expected an ellipsis of three dots"),
            ("i.", "position 2 of \"i.\": got the end, expected an ellipsis of three dots"),
            ("...i...->", "position 4 of \"...i...->\": got a second '...', expected one in an operand"),
            (
                "i->...i",
                "position 3 of \"i->...i\": got '...', expected letters, since no operand has an ellipsis",
            ),
            ("(ij,jk->ik", "position 6 of \"(ij,jk->ik\": got '->', expected ')' for the '(' at position 0"),
            ("a,((b,c)", "position 8 of \"a,((b,c)\": got the end, expected ')' for the '(' at position 2"),
            ("ij)->", "position 2 of \"ij)->\": got ')', expected a '(' before it"),
            ("i(j,k)", "position 1 of \"i(j,k)\": got '(', expected ',' before '('"),
            ("(i,j)k", "position 5 of \"(i,j)k\": got 'k', expected ',' or '->' after ')'"),
            ("((i,j)...)", "position 6 of \"((i,j)...)\": got '...', expected ',' or ')' after ')'"),
            ("i->(i)", "position 3 of \"i->(i)\": got '(', expected a letter, '...' or the end"),
            ("é1->", "position 1 of \"é1->\": got '1'"),
        ] {
            let got = Expression::parse(text).unwrap_err().to_string();
            assert!(got.starts_with("einsum: ") && got.contains(expected), "{got}\nlacks {expected}");
        }
        assert!("ij->k".parse::<Notation>().is_err());
    }
}
