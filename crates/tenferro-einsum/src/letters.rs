//! Labels as text: letters in the numbering of opt_einsum, and what stands for labels without a letter.
//!
//! Invariant: the letters, the axes of an ellipsis and the labels of ncon have ranges of numbers of their
//! own, so that they never meet.

use std::fmt::{self, Display, Write};

/// Labels from here on are the letters between the ASCII ones and U+00C0, which have no place in the
/// numbering of opt_einsum.
const OUTSIDE: u32 = 0x11_0000;
/// Label of U+00C0 is 52.
const SHIFT: u32 = 0xC0 - 52;
/// Labels skip the surrogates, which are no characters.
const SURROGATES: std::ops::Range<u32> = 0xD800..0xE000;
/// Labels of the axes of an ellipsis, counted from the last one back.
const ELLIPSIS: std::ops::Range<u32> = 0xE000_0000..0xE800_0000;
/// The label of an integer is this plus the integer.
const SIGNED: u32 = 0xF000_0000;
/// Integers up to this size have labels.
pub(crate) const MAX_SIGNED: u32 = 0x0700_0000;

/// Letters, and the two signs (`×`, `÷`) that the numbering has among the first letters.
pub(crate) fn label_of(c: char) -> Option<u32> {
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

pub(crate) fn letter_of(label: u32) -> Option<char> {
    let c = match label {
        0..26 => char::from(b'a' + label as u8),
        26..52 => char::from(b'A' + (label - 26) as u8),
        OUTSIDE.. => char::from_u32(label - OUTSIDE)?,
        _ if label + SHIFT >= SURROGATES.start => char::from_u32(label + SHIFT + SURROGATES.len() as u32)?,
        _ => char::from_u32(label + SHIFT)?,
    };
    (label_of(c) == Some(label)).then_some(c)
}

/// The label of the axis of an ellipsis that `after` others follow.
pub(crate) fn ellipsis_axis(after: usize) -> u32 {
    ELLIPSIS.start + after as u32
}

/// The label of an integer of at most [`MAX_SIGNED`].
pub(crate) fn signed(number: i32) -> u32 {
    SIGNED.wrapping_add_signed(number)
}

/// Labels as letters; what has no letter shows so that it does not parse: axis `-1` of an ellipsis as
/// `...[-1]`, numbers as `{number}`.
pub(crate) struct Text<'a>(pub(crate) &'a [u32]);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for label in self.0 {
            match (letter_of(*label), label.wrapping_sub(SIGNED) as i32) {
                (Some(c), _) => f.write_char(c)?,
                (None, number) if number.unsigned_abs() <= MAX_SIGNED => write!(f, "{{{number}}}")?,
                _ if ELLIPSIS.contains(label) => write!(f, "...[-{}]", label - ELLIPSIS.start + 1)?,
                _ => write!(f, "{{{label}}}")?,
            }
        }
        Ok(())
    }
}

/// One label as errors name it: quoted, or a number.
pub(crate) struct Quoted(pub(crate) u32);

impl Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.wrapping_sub(SIGNED) as i32 {
            number if number.unsigned_abs() <= MAX_SIGNED && letter_of(self.0).is_none() => {
                write!(f, "{number}")
            }
            _ => write!(f, "'{}'", Text(&[self.0])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(labels.last().is_some_and(|label| *label < ELLIPSIS.start));
        assert_eq!([label_of('a'), label_of('Z'), label_of('À')], [Some(0), Some(51), Some(52)]);
    }

    #[test]
    fn labels_without_a_letter_show_what_they_are() {
        let all = [u32::MAX, 0, ellipsis_axis(0), signed(-3), signed(12)];
        assert_eq!(Text(&all).to_string(), "{4294967295}a...[-1]{-3}{12}");
        let quoted = all.map(|label| Quoted(label).to_string());
        assert_eq!(quoted, ["'{4294967295}'", "'a'", "'...[-1]'", "-3", "12"]);
    }
}
