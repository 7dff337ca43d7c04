//! Labels in the manner of ncon (Pfeifer, Evenbly, Singh and Vidal, arXiv:1402.0939): integers, positive
//! where axes are contracted, negative where they are open.

use crate::letters::{MAX_SIGNED, signed};
use crate::notation::{Labels, Notation};
use crate::order::Positions;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use tenferro_tensor::{Error, Result};

/// Where a label is.
type Places = SmallVec<[(usize, usize); 2]>;

/// The notation of a network: axis `k` of the output has label `-1 - k`.
///
/// # Errors
/// `Argument` without tensors; `Label` for 0, for a positive label that is not on two axes, and for negative
/// labels other than -1, -2, .. once each.
pub(crate) fn notation(labels: &[&[i32]]) -> Result<Notation> {
    if labels.is_empty() {
        return Err(Error::argument("ncon", "operands", "none", "at least one"));
    }
    let places = places(labels)?;
    let open = places.range(..0).count() as i32;
    for (label, at) in &places {
        let wanted = if *label > 0 { 2 } else { 1 };
        if at.len() != wanted {
            let (operand, axis) = at[0];
            let what = format!("label {label}, of axis {axis} of operand {operand}");
            let expected = if *label > 0 { "on two, which are contracted" } else { "on one, which is open" };
            return Err(Error::label("ncon", what, format_args!("on {} axes", at.len()), expected));
        }
        if *label < -open {
            let expected = format!("-1 to {}, of the {open} open axes", -open);
            return Err(Error::label("ncon", "labels of open axes", label, expected));
        }
    }
    let inputs = labels.iter().map(|axes| axes.iter().map(|label| signed(*label)).collect()).collect();
    let output: Labels = (1..=open).map(|k| signed(-k)).collect();
    Ok(Notation::with(inputs, output).of_network(true))
}

fn places(labels: &[&[i32]]) -> Result<BTreeMap<i32, Places>> {
    let mut places: BTreeMap<i32, Places> = BTreeMap::new();
    for (operand, axes) in labels.iter().enumerate() {
        for (axis, label) in axes.iter().enumerate() {
            if *label == 0 || label.unsigned_abs() > MAX_SIGNED {
                let what = format!("label of axis {axis} of operand {operand}");
                let expected = format!("an integer other than 0, of size at most {MAX_SIGNED}");
                return Err(Error::label("ncon", what, label, expected));
            }
            places.entry(*label).or_default().push((operand, axis));
        }
    }
    Ok(places)
}

/// The order that the labels of a valid network ask for: the two tensors with the smallest label left are
/// contracted, over all labels that they share; what is not connected is multiplied last, in order.
pub(crate) fn path(labels: &[&[i32]]) -> Vec<Positions> {
    let n = labels.len();
    let places = places(labels).unwrap_or_default();
    // Which remaining tensor each operand has become part of, and the remaining ones in the order of a path.
    let mut part: Vec<usize> = (0..n).collect();
    let mut remaining: Vec<usize> = (0..n).collect();
    let mut path = Vec::new();
    let mut contract = |a: usize, b: usize, part: &mut Vec<usize>| {
        let at = |x: usize| remaining.iter().position(|other| *other == x).expect("it remains");
        path.push(Positions::from((at(a), at(b))));
        remaining.retain(|x| *x != a && *x != b);
        let made = n + path.len();
        remaining.push(made);
        part.iter_mut().filter(|x| **x == a || **x == b).for_each(|x| *x = made);
        remaining.clone()
    };
    let mut left = part.clone();
    for at in places.range(1..).map(|(_, at)| at) {
        let (a, b) = (part[at[0].0], part[at[1].0]);
        // A label twice on one tensor was summed with the others of its pair, or is a trace.
        if a != b {
            left = contract(a, b, &mut part);
        }
    }
    while let [a, b, ..] = left[..] {
        left = contract(a, b, &mut part);
    }
    path
}

/// Whether a notation is that of these labels.
pub(crate) fn is_of(notation: &Notation, labels: &[&[i32]]) -> bool {
    let inputs = notation.inputs();
    notation.is_network()
        && inputs.len() == labels.len()
        && inputs.iter().zip(labels).all(|(x, axes)| x.iter().copied().eq(axes.iter().map(|l| signed(*l))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(labels: &[&[i32]]) -> Vec<Vec<usize>> {
        path(labels).iter().map(|at| at.as_slice().to_vec()).collect()
    }

    #[test]
    fn labels_give_notation_and_order() {
        // Matrix product, and a chain contracted from the right.
        let product: [&[i32]; 2] = [&[-1, 1], &[1, -2]];
        assert_eq!(notation(&product).unwrap().to_string(), "{-1}{1},{1}{-2}->{-1}{-2}");
        assert_eq!(order(&product), [[0, 1]]);
        assert_eq!(order(&[&[-1, 2], &[2, 1], &[1, -2]]), [[1, 2], [0, 1]]);
        assert_eq!(order(&[&[-1, 1], &[1, 2], &[2, -2]]), [[0, 1], [1, 0]]);
        // All labels of a pair go at once.
        assert_eq!(order(&[&[1, 3, -1], &[1, 3, 2], &[2, -2]]), [[0, 1], [1, 0]]);
        // Traces need no step, and what is apart is multiplied last.
        assert_eq!(order(&[&[1, 1]]), <[[usize; 2]; 0]>::default());
        assert_eq!(order(&[&[-1], &[1, 1, -2], &[2, -3], &[2]]), [[2, 3], [0, 1], [0, 1]]);
    }

    #[test]
    fn labels_that_are_no_network() {
        let message = |labels: &[&[i32]]| notation(labels).unwrap_err().to_string();
        for (labels, part) in [
            (&[][..], "ncon: operands: got none, expected at least one"),
            (&[&[0][..]], "label of axis 0 of operand 0: got 0, expected an integer other than 0"),
            (&[&[-1, i32::MAX]], "label of axis 1 of operand 0: got 2147483647"),
            (&[&[-1, i32::MIN]], "label of axis 1 of operand 0: got -2147483648"),
            (
                &[&[-1, 1], &[2, 2]],
                "label 1, of axis 1 of operand 0: got on 1 axes, expected on two, which are contracted",
            ),
            (&[&[1, 1, 1]], "label 1, of axis 0 of operand 0: got on 3 axes"),
            (&[&[-1, -1]], "label -1, of axis 0 of operand 0: got on 2 axes, expected on one, which is open"),
            (&[&[-1, -3]], "labels of open axes: got -3, expected -1 to -2, of the 2 open axes"),
        ] {
            assert!(message(labels).contains(part), "{}\nlacks {part}", message(labels));
        }
    }
}
