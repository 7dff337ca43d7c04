//! Einstein summation.

use super::{C64 as C64_, *};
use crate::{
    array::{Elem, indices},
    info::{OpInfo, Surface, listed, op, typed},
};
use tenferro_core_ops::{Var, apply1};
use tenferro_einsum::{Einsum, EinsumOp, EinsumRecorded, EinsumTensor, Optimize, einsum as apply_einsum};
use tenferro_runtime::{EagerTensor, TracedTensor};
use tenferro_tensor::{Result, Tensor, TypedTensor, dispatch};

pub(super) fn list() -> Vec<OpInfo> {
    vec![einsum(), einsum_labels(), ncon(), einsum_optimized(), einsum_recorded()]
}

/// The labels of operands of these ranks and of the output: those of an ellipsis are digits, the last one 9,
/// and without an arrow the output has the digits and what occurs once.
fn labels(text: &str, ranks: &[usize]) -> (Vec<Vec<char>>, Vec<char>) {
    let text: String = text.chars().filter(|c| !" ()".contains(*c)).collect();
    let (inputs, output) = match text.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (&text[..], None),
    };
    let expand = |term: &str, extra: usize| -> Vec<char> {
        let digits: String = ('0'..='9').skip(10 - extra).collect();
        term.replace("...", &digits).chars().collect()
    };
    let extra = |(term, rank): (&str, &usize)| rank - term.replace("...", "").chars().count();
    let extras: Vec<usize> = inputs.split(',').zip(ranks).map(extra).collect();
    let widest = extras.iter().copied().max().unwrap_or(0);
    let inputs: Vec<Vec<char>> = inputs.split(',').zip(&extras).map(|(t, e)| expand(t, *e)).collect();
    let output = output.map(|term| expand(term, widest)).unwrap_or_else(|| {
        let mut all: Vec<char> = inputs.concat();
        all.sort_unstable();
        let count = |c: &char| all.iter().filter(|d| *d == c).count();
        let mut kept: Vec<char> =
            all.iter().copied().filter(|c| c.is_ascii_digit() || count(c) == 1).collect();
        kept.dedup();
        kept
    });
    (inputs, output)
}

/// The sum over all labels that the output lacks, one index tuple after the other. An extent 1 is repeated.
fn summed(text: &str, x: &[Array]) -> Array {
    let (inputs, output) = labels(text, &x.iter().map(|x| x.shape.len()).collect::<Vec<_>>());
    let mut seen: Vec<char> = Vec::new();
    for l in output.iter().chain(inputs.iter().flatten()) {
        if !seen.contains(l) {
            seen.push(*l);
        }
    }
    let extent = |l: &char| {
        let all = inputs.iter().zip(x).flat_map(|(labels, x)| labels.iter().zip(&x.shape));
        all.filter(|(m, n)| *m == l && **n != 1).map(|(_, n)| *n).next().unwrap_or(1)
    };
    let free: Vec<usize> = output.iter().map(extent).collect();
    let bound: Vec<char> = seen.iter().copied().filter(|l| !output.contains(l)).collect();
    let bound_extents: Vec<usize> = bound.iter().map(extent).collect();
    let zero = if x[0].dtype.is_differentiable() { Elem::real(0.0) } else { Elem::Int(0) };
    Array::from_fn(x[0].dtype, &free, |i| {
        let first = |l: &char| i[output.iter().position(|m| m == l).expect("a label of the output")];
        if output.iter().zip(i).any(|(l, i)| first(l) != *i) {
            return zero;
        }
        let term = |s: Vec<usize>| {
            let at = |l: &char| match bound.iter().position(|m| m == l) {
                Some(k) => s[k],
                None => first(l),
            };
            let factor = |(labels, x): (&Vec<char>, &Array)| {
                let index = labels.iter().zip(&x.shape).map(|(l, n)| if *n == 1 { 0 } else { at(l) });
                x.at(&index.collect::<Vec<_>>())
            };
            inputs.iter().zip(x).map(factor).reduce(Elem::times).expect("an operand")
        };
        indices(&bound_extents).map(term).fold(zero, Elem::plus)
    })
}

/// Notations and shapes of operands: products, traces, diagonals, sums, outer products, hyperedges, scalars;
/// labels that repeat in the output, implied outputs, ellipses, parentheses, repeated extents.
const CASES: &[(&str, &[&[usize]])] = &[
    ("ij,jk->ik", &[&[2, 3], &[3, 2]]),
    ("ij,kj->ki", &[&[2, 3], &[4, 3]]),
    ("i,i->", &[&[3], &[3]]),
    ("i,j->ji", &[&[2], &[3]]),
    ("ij,ij->ij", &[&[2, 3], &[2, 3]]),
    ("ij,ji->ij", &[&[2, 3], &[3, 2]]),
    ("bij,bjk->ikb", &[&[2, 2, 3], &[2, 3, 1]]),
    ("ij->ji", &[&[2, 3]]),
    ("ij->i", &[&[2, 3]]),
    ("ij->", &[&[2, 3]]),
    ("ii->i", &[&[3, 3]]),
    ("ii->", &[&[3, 3]]),
    ("iij->j", &[&[2, 2, 3]]),
    ("iji,jj->ij", &[&[2, 3, 2], &[3, 3]]),
    ("iiij->ji", &[&[2, 2, 2, 3]]),
    ("iijk->kj", &[&[2, 2, 3, 1]]),
    ("ij,k->i", &[&[2, 3], &[2]]),
    ("->", &[&[]]),
    (",->", &[&[], &[]]),
    (",ij->ji", &[&[], &[2, 3]]),
    ("ij,jk,kl->il", &[&[2, 3], &[3, 2], &[2, 2]]),
    ("ai,bi,ci->abc", &[&[2, 3], &[2, 3], &[1, 3]]),
    ("i,ij,j->", &[&[2], &[2, 3], &[3]]),
    ("ij,jk,kl,li->", &[&[2, 2], &[2, 3], &[3, 2], &[2, 2]]),
    ("ij,jk->ik", &[&[0, 3], &[3, 2]]),
    ("ij,jk->ik", &[&[2, 0], &[0, 2]]),
    ("ij,jk,kl->il", &[&[2, 3], &[3, 0], &[0, 2]]),
    ("ii->i", &[&[0, 0]]),
    ("i->ii", &[&[3]]),
    ("ij,j->jij", &[&[2, 3], &[3]]),
    ("i,i,ij->ij", &[&[2], &[2], &[2, 3]]),
    ("kj,ji", &[&[2, 3], &[3, 2]]),
    ("ji", &[&[2, 3]]),
    ("iij", &[&[2, 2, 3]]),
    ("...ij,...jk->...ik", &[&[2, 2, 3], &[3, 2]]),
    ("ij...,j...->i...", &[&[2, 3, 3, 2], &[3, 2]]),
    ("...i,...", &[&[2, 3], &[3, 1]]),
    ("i...->i", &[&[2, 3, 2]]),
    ("(ij,jk),kl->il", &[&[2, 3], &[3, 2], &[2, 2]]),
    ("ij, (jk, (kl, lm, m)) -> i", &[&[2, 2], &[2, 3], &[3, 2], &[2, 1], &[1]]),
    ("ij,jk->ik", &[&[2, 3], &[1, 2]]),
    ("ij,ij->ji", &[&[2, 1], &[1, 3]]),
    ("ii,i->i", &[&[1, 1], &[3]]),
    ("ij,j->", &[&[2, 0], &[1]]),
];

fn operands(dtype: DType, shapes: &[&[usize]]) -> Vec<Array> {
    shapes.iter().enumerate().map(|(i, shape)| any(dtype, shape, 1 + i as u64)).collect()
}

fn by_text(text: &str, x: &[Var]) -> Var {
    match Einsum::parse(text) {
        Ok(op) => apply_einsum(&op, &x.iter().collect::<Vec<_>>()),
        Err(e) => Var::Failed(e),
    }
}

fn einsum() -> OpInfo {
    type P = &'static str;
    let diagonal =
        |d: &[f64]| Array::from_fn(F64, &[2, 2], |i| Elem::real(if i[0] == i[1] { d[i[0]] } else { 0.0 }));
    op("einsum", |text: &P, x: &[Var]| by_text(text, x), |text, x| summed(text, x))
        .surface(Surface {
            direct: |&text, x, backend| listed(Tensor::einsum(text, &x.iter().collect::<Vec<_>>(), backend)),
            typed: |&text, x, backend| {
                dispatch!(x[0].dtype(), T => {
                    let x = x.iter().map(typed::<T>).collect::<Result<Vec<_>>>()?;
                    listed(TypedTensor::einsum(text, &x, backend))
                })
            },
            eager: |&text, _, x| listed(EagerTensor::einsum(text, &x.iter().collect::<Vec<_>>())),
            traced: |&text, x| listed(TracedTensor::einsum(text, &x.iter().collect::<Vec<_>>())),
        })
        // A factor that is repeated is taken out of the sum, and NaN times 0 is NaN.
        .overlooks(
            |_, x, i| x.iter().any(|x| x.data.is_empty()) && !x[i].shape.contains(&1),
            "a sum without terms is 0",
        )
        .promotes()
        .tolerance(32.0)
        .each(NUMBERS, |o, d| o.each(CASES, |o, (text, shapes)| o.sample(text, operands(d, shapes))))
        .kink("ij,jk->ik", operands(F32, &[&[33, 70], &[70, 31]]))
        .kink("ijk,kjl->li", operands(C64_, &[&[17, 5, 9], &[9, 5, 13]]))
        .symbolic("ij,jk->ik", &[&["n", "m"], &["m", "k"]])
        .symbolic("ij,jk,kl->il", &[&["n", "m"], &["m", "k"], &["k", "2"]])
        .symbolic("ai,bi,ci->abc", &[&["n", "m"], &["2", "m"], &["k", "m"]])
        .symbolic("ii,ij->j", &[&["n", "n"], &["n", "m"]])
        // Without known extents a trace holds the einsum itself, whose transpose is an einsum.
        .symbolic("iijk,kl,l->j", &[&["n", "n", "m", "k"], &["k", "2"], &["2"]])
        .symbolic("ij,k,il->l", &[&["n", "m"], &["k"], &["n", "3"]])
        .symbolic(",i,ij->", &[&[], &["n"], &["n", "m"]])
        // Extents that are only taken to be equal.
        .symbolic("ij,jk->ik", &[&["n", "m"], &["k", "n"]])
        .symbolic("ii->i", &[&["n", "m"]])
        .symbolic("iij->", &[&["n", "m", "k"]])
        .closed("ii->", vec![any(F64, &[2, 2], 1)], Array::scalar(F64, 3.0), vec![diagonal(&[3.0; 2])])
        .closed("ii->i", vec![any(F64, &[2, 2], 1)], f64s(&[2], &[3.0, 5.0]), vec![diagonal(&[3.0, 5.0])])
        .closed(
            "i,i->",
            vec![Array::complexes(C64_, &[1], &[(1.0, 2.0)]), Array::complexes(C64_, &[1], &[(0.0, 3.0)])],
            Array::complexes(C64_, &[], &[(1.0, 0.0)]),
            vec![Array::complexes(C64_, &[1], &[(0.0, -3.0)]), Array::complexes(C64_, &[1], &[(1.0, -2.0)])],
        )
        .error("ij,jk->ik", operands(F64, &[&[2, 3], &[4, 2]]), &["label 'j'", "4", "3 as in operand 0"])
        .symbolic("...ij,...jk->...ik", &[&["k", "n", "m"], &["m", "2"]])
        .symbolic("(ij,jk),kl", &[&["n", "m"], &["m", "k"], &["k", "2"]])
        .symbolic("ij->iji", &[&["n", "m"]])
        // Only a literal 1 is repeated.
        .symbolic("ij,ij,jk->ik", &[&["n", "m"], &["n", "1"], &["m", "k"]])
        .error("ij,i->", operands(F64, &[&[5, 1], &[2]]), &["label 'i'", "2", "5 as in operand 0"])
        .error("ii,i->i", operands(F64, &[&[1, 3], &[3]]), &["label 'i'", "3", "1"])
        .error("i...,...->i", operands(F64, &[&[2, 3], &[2]]), &["label '...[-1]'", "2", "3 as in operand 0"])
        .error("i...j->", operands(F64, &[&[2]]), &["rank of operand 0", "1", "at least 2"])
        .error("ii->i", operands(F64, &[&[2, 3]]), &["label 'i'", "3", "2"])
        .error("ij,jk->ik", operands(F64, &[&[2, 3]]), &["number of operands", "1", "2"])
        .error("ij,jk->ik", operands(F64, &[&[2, 3], &[3]]), &["rank of operand 1", "1", "2"])
        .error("ij,jk->ik", vec![any(Bool, &[2, 2], 1), any(Bool, &[2, 2], 2)], &["bool", "numbers"])
        .error("(ij,jk", operands(F64, &[&[2, 2], &[2, 2]]), &["position 6", "the end", "')'"])
        .error("ij->ik", operands(F64, &[&[2, 2]]), &["'k'"])
        .done()
}

/// Labels as numbers, `i` being 8.
fn einsum_labels() -> OpInfo {
    type P = (&'static [&'static [u32]], &'static [u32]);
    const PRODUCT: P = (&[&[8, 9], &[9, 10]], &[10, 8]);
    const DIAGONAL: P = (&[&[8, 8]], &[8]);
    op(
        "einsum_labels",
        |(inputs, output): &P, x: &[Var]| match Einsum::labels(inputs, output) {
            Ok(op) => apply_einsum(&op, &x.iter().collect::<Vec<_>>()),
            Err(e) => Var::Failed(e),
        },
        |p, x| summed(if p.0.len() == 2 { "ij,jk->ki" } else { "ii->i" }, x),
    )
    .surface(Surface {
        direct: |&(labels, output), x, backend| {
            listed(Tensor::einsum_labels(labels, output, &x.iter().collect::<Vec<_>>(), backend))
        },
        typed: |&(labels, output), x, backend| {
            dispatch!(x[0].dtype(), T => {
                let x = x.iter().map(typed::<T>).collect::<Result<Vec<_>>>()?;
                listed(TypedTensor::einsum_labels(labels, output, &x, backend))
            })
        },
        eager: |&(labels, output), _, x| {
            listed(EagerTensor::einsum_labels(labels, output, &x.iter().collect::<Vec<_>>()))
        },
        traced: |&(labels, output), x| {
            listed(TracedTensor::einsum_labels(labels, output, &x.iter().collect::<Vec<_>>()))
        },
    })
    .promotes()
    .tolerance(32.0)
    .each(NUMBERS, |o, d| {
        o.sample(PRODUCT, operands(d, &[&[2, 3], &[3, 2]]))
            .sample(PRODUCT, operands(d, &[&[0, 3], &[3, 2]]))
            .sample(DIAGONAL, operands(d, &[&[3, 3]]))
    })
    .skip("rank_0", "as einsum")
    .error_of("einsum", (&[&[0, 1]], &[2]), operands(F64, &[&[2, 2]]), &["output axis 0", "'c'"])
    .error_of("einsum", (&[], &[]), vec![], &["none", "at least one"])
    .symbolic(PRODUCT, &[&["n", "m"], &["m", "k"]])
    .done()
}

/// Tensor networks, with the einsum that each is.
fn ncon() -> OpInfo {
    type P = (&'static [&'static [i32]], &'static str);
    const PRODUCT: P = (&[&[-2, 1], &[1, -1]], "bi,ia->ab");
    const NETWORK: P = (&[&[1, 1, -1], &[3, 2], &[2, -2, 3], &[-3]], "iia,kj,jbk,c->abc");
    op(
        "ncon",
        |(labels, _): &P, x: &[Var]| match Einsum::ncon(labels) {
            Ok(op) => apply_einsum(&op, &x.iter().collect::<Vec<_>>()),
            Err(e) => Var::Failed(e),
        },
        |(_, text), x| summed(text, x),
    )
    .surface(Surface {
        direct: |&(labels, _), x, backend| {
            listed(Tensor::ncon(labels, &x.iter().collect::<Vec<_>>(), backend))
        },
        typed: |&(labels, _), x, backend| {
            dispatch!(x[0].dtype(), T => {
                let x = x.iter().map(typed::<T>).collect::<Result<Vec<_>>>()?;
                listed(TypedTensor::ncon(labels, &x, backend))
            })
        },
        eager: |&(labels, _), _, x| listed(EagerTensor::ncon(labels, &x.iter().collect::<Vec<_>>())),
        traced: |&(labels, _), x| listed(TracedTensor::ncon(labels, &x.iter().collect::<Vec<_>>())),
    })
    .promotes()
    .tolerance(32.0)
    .each(NUMBERS, |o, d| {
        o.sample(PRODUCT, operands(d, &[&[2, 3], &[3, 2]]))
            .sample(PRODUCT, operands(d, &[&[2, 0], &[0, 2]]))
            .sample(NETWORK, operands(d, &[&[2, 2, 3], &[2, 3], &[3, 2, 2], &[2]]))
            .sample((&[&[], &[]], ",->"), operands(d, &[&[], &[]]))
    })
    .symbolic(PRODUCT, &[&["n", "m"], &["m", "k"]])
    .symbolic(NETWORK, &[&["n", "n", "2"], &["m", "k"], &["k", "3", "m"], &["2"]])
    .error(PRODUCT, operands(F64, &[&[2, 3], &[2, 2]]), &["label 1", "2", "3 as in operand 0"])
    .error(PRODUCT, operands(F64, &[&[2, 1], &[2, 2]]), &["label 1", "2", "1 as in operand 0"])
    .error(
        (&[&[1, 2], &[2, -1]], ""),
        operands(F64, &[&[2, 2], &[2, 2]]),
        &["label 1", "on 1 axes", "on two"],
    )
    .done()
}

/// One einsum in every way to find an order of contraction.
fn einsum_optimized() -> OpInfo {
    type P = (&'static str, Optimize);
    let network: &[&[usize]] = &[&[2, 3], &[3, 2, 2], &[2, 3], &[3, 2]];
    let ways = [
        Optimize::Auto,
        Optimize::Greedy,
        Optimize::Optimal,
        Optimize::path([(0, 1), (0, 1), (0, 1)]),
        Optimize::path([(2, 3), (0, 2), (0, 1)]),
        Optimize::path([&[3][..], &[0, 2, 1], &[1, 0]]),
    ];
    op(
        "einsum_optimized",
        |(text, optimize): &P, x: &[Var]| match Einsum::parse(text)
            .and_then(|e| e.optimized(optimize.clone()))
        {
            Ok(op) => apply_einsum(&op, &x.iter().collect::<Vec<_>>()),
            Err(e) => Var::Failed(e),
        },
        |(text, _), x| summed(text, x),
    )
    .tolerance(32.0)
    .each([F64, C64_, F32, I64], |o, d| {
        o.each(ways.clone(), |o, w| {
            o.sample(("ij,jkl,km,mi->l", w.clone()), operands(d, network))
                .sample(("ij,jkl,km,mi->l", w), operands(d, &[&[2, 0], &[0, 2, 2], &[2, 2], &[2, 2]]))
        })
    })
    .each(ways, |o, w| {
        o.symbolic(("ij,jkl,km,mi->l", w), &[&["n", "m"], &["m", "k", "2"], &["k", "3"], &["3", "n"]])
    })
    // The order may change from call to call, and with it the rounding of floats.
    .sample(("ij,jkl,km,mi->l", Optimize::TreeSA), operands(I64, network))
    .skip("rank_0", "as einsum")
    .error_of(
        "einsum",
        ("ij,jk,kl->il", Optimize::path([(0, 1)])),
        operands(F64, &[&[2, 2], &[2, 2], &[2, 2]]),
        &["operands that the path leaves", "2", "1"],
    )
    .skip("surfaces", "as einsum, which takes text and Einsum alike")
    .done()
}

/// What is left of a notation when it meets its operands: labels and equal extents.
const RECORDED: &[(&str, &[&[usize]])] = &[
    ("ij,jk->ik", &[&[2, 3], &[3, 2]]),
    ("iji,jj->ij", &[&[2, 3, 2], &[3, 3]]),
    ("iijk->kj", &[&[2, 2, 3, 1]]),
    (",ij->ji", &[&[], &[2, 3]]),
    ("ij,jk,kl->il", &[&[2, 3], &[3, 2], &[2, 2]]),
    ("ai,bi,ci->abc", &[&[2, 3], &[2, 3], &[1, 3]]),
    ("ij,j->jij", &[&[2, 3], &[3]]),
    ("i,i,i->ii", &[&[2], &[2], &[2]]),
    ("->", &[&[]]),
    ("ij,jk,kl->il", &[&[2, 3], &[3, 0], &[0, 2]]),
    ("ii->i", &[&[0, 0]]),
];

/// The einsum as one operation, as a trace records it where extents are not known.
fn einsum_recorded() -> OpInfo {
    type P = &'static str;
    op(
        "einsum_recorded",
        |text: &P, x: &[Var]| match text.parse().and_then(|labels| EinsumOp::new(labels, Optimize::Auto)) {
            Ok(op) => apply1(&op, &x.iter().collect::<Vec<_>>()),
            Err(e) => Var::Failed(e),
        },
        |text, x| summed(text, x),
    )
    .tolerance(32.0)
    .each(NUMBERS, |o, d| o.each(RECORDED, |o, (text, shapes)| o.sample(text, operands(d, shapes))))
    .symbolic("ij,jk,kl->il", &[&["n", "m"], &["m", "k"], &["k", "2"]])
    .symbolic("iij,k->j", &[&["n", "n", "m"], &["k"]])
    .error_of("einsum", "ij,jk->ik", operands(F64, &[&[2, 3], &[4, 2]]), &["label 'j'", "4", "3"])
    .error_of("einsum", "ij,jk->ik", operands(F64, &[&[2, 3], &[1, 2]]), &["label 'j'", "1", "3"])
    .error_of(
        "einsum",
        "ij,jk->ik",
        vec![any(F64, &[2, 2], 1), any(C64_, &[2, 2], 2)],
        &["operand 1", "c64", "f64 as operand 0"],
    )
    .skip("surfaces", "as einsum")
    .done()
}
