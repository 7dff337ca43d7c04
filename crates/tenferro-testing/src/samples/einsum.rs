//! Einstein summation.

use super::{C64 as C64_, *};
use crate::{
    array::{Elem, indices},
    info::{OpInfo, Surface, listed, op, typed},
};
use tenferro_core_ops::{Var, apply1};
use tenferro_einsum::{Einsum, EinsumRecorded, EinsumTensor, Optimize, einsum as apply_einsum};
use tenferro_runtime::{EagerTensor, TracedTensor};
use tenferro_tensor::{Result, Tensor, TypedTensor, dispatch};

pub(super) fn list() -> Vec<OpInfo> {
    vec![einsum(), einsum_labels(), einsum_optimized(), einsum_recorded()]
}

/// The sum over all labels that the output lacks, one index tuple after the other.
fn summed(text: &str, x: &[Array]) -> Array {
    let (inputs, output) = text.split_once("->").expect("an arrow");
    let inputs: Vec<Vec<char>> = inputs.split(',').map(|labels| labels.chars().collect()).collect();
    let output: Vec<char> = output.chars().collect();
    let mut labels = output.clone();
    labels.extend(inputs.iter().flatten());
    let mut seen = Vec::new();
    labels.retain(|l| {
        !seen.contains(l) && {
            seen.push(*l);
            true
        }
    });
    let extent = |l: &char| {
        let (i, axis) = (inputs.iter().enumerate())
            .find_map(|(i, labels)| Some((i, labels.iter().position(|m| m == l)?)))
            .expect("a label of an operand");
        x[i].shape[axis]
    };
    let free: Vec<usize> = labels[..output.len()].iter().map(extent).collect();
    let bound: Vec<usize> = labels[output.len()..].iter().map(extent).collect();
    let zero = if x[0].dtype.is_differentiable() { Elem::real(0.0) } else { Elem::Int(0) };
    Array::from_fn(x[0].dtype, &free, |i| {
        let term = |s: Vec<usize>| {
            let at: Vec<usize> = i.iter().copied().chain(s).collect();
            let factor = |(labels, x): (&Vec<char>, &Array)| {
                let index: Vec<usize> = (labels.iter())
                    .map(|l| at[seen.iter().position(|m| m == l).expect("listed above")])
                    .collect();
                x.at(&index)
            };
            inputs.iter().zip(x).map(factor).reduce(Elem::times).expect("an operand")
        };
        indices(&bound).map(term).fold(zero, Elem::plus)
    })
}

/// Notations and shapes of operands: products, traces, diagonals, sums, outer products, hyperedges, scalars.
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
        .error("ij,jk->ik", operands(F64, &[&[2, 3], &[1, 2]]), &["label 'j'", "1", "3 as in operand 0"])
        .error("ii->i", operands(F64, &[&[2, 3]]), &["label 'i'", "3", "2"])
        .error("ij,jk->ik", operands(F64, &[&[2, 3]]), &["number of operands", "1", "2"])
        .error("ij,jk->ik", operands(F64, &[&[2, 3], &[3]]), &["rank of operand 1", "1", "2"])
        .error("ij,jk->ik", vec![any(Bool, &[2, 2], 1), any(Bool, &[2, 2], 2)], &["bool", "numbers"])
        .error("ij,jk", operands(F64, &[&[2, 2], &[2, 2]]), &["'->'"])
        .error("ij->ik", operands(F64, &[&[2, 2]]), &["'k'"])
        .error("ij->ii", operands(F64, &[&[2, 2]]), &["'i'"])
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

/// One einsum in every way to find an order of contraction.
fn einsum_optimized() -> OpInfo {
    type P = (&'static str, Optimize);
    let network: &[&[usize]] = &[&[2, 3], &[3, 2, 2], &[2, 3], &[3, 2]];
    let ways = [
        Optimize::Auto,
        Optimize::Greedy,
        Optimize::Optimal,
        Optimize::Path(vec![(0, 1), (0, 1), (0, 1)]),
        Optimize::Path(vec![(2, 3), (0, 2), (0, 1)]),
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
        ("ij,jk,kl->il", Optimize::Path(vec![(0, 1)])),
        operands(F64, &[&[2, 2], &[2, 2], &[2, 2]]),
        &["pairs in the path", "1", "2"],
    )
    .skip("surfaces", "as einsum, which takes text and Einsum alike")
    .done()
}

/// The einsum as one operation, as a trace records it where extents are not known.
fn einsum_recorded() -> OpInfo {
    type P = &'static str;
    op(
        "einsum_recorded",
        |text: &P, x: &[Var]| match Einsum::parse(text) {
            Ok(op) => apply1(&op, &x.iter().collect::<Vec<_>>()),
            Err(e) => Var::Failed(e),
        },
        |text, x| summed(text, x),
    )
    .tolerance(32.0)
    .each(NUMBERS, |o, d| o.each(CASES, |o, (text, shapes)| o.sample(text, operands(d, shapes))))
    .symbolic("ij,jk,kl->il", &[&["n", "m"], &["m", "k"], &["k", "2"]])
    .symbolic("iij,k->j", &[&["n", "n", "m"], &["k"]])
    .error_of("einsum", "ij,jk->ik", operands(F64, &[&[2, 3], &[4, 2]]), &["label 'j'", "4", "3"])
    .error_of(
        "einsum",
        "ij,jk->ik",
        vec![any(F64, &[2, 2], 1), any(C64_, &[2, 2], 2)],
        &["operand 1", "c64", "f64 as operand 0"],
    )
    .skip("surfaces", "as einsum")
    .done()
}
