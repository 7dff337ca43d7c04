//! Contractions.

use super::{C64 as C64_, *};
use crate::{
    array::{Elem, indices},
    info::{OpInfo, op, surface},
};
use tenferro_core_ops::{Var, apply1, ops};

/// The contraction as a sum over index tuples.
fn contracted(p: &ops::DotGeneral, x: &[Array]) -> Array {
    let (a, b) = (&x[0], &x[1]);
    let free = |rank: usize, used: [&[usize]; 2]| -> Vec<usize> {
        (0..rank).filter(|i| !used[0].contains(i) && !used[1].contains(i)).collect()
    };
    let (fa, fb) =
        (free(a.rank(), [&p.lhs_contract, &p.lhs_batch]), free(b.rank(), [&p.rhs_contract, &p.rhs_batch]));
    let pick = |x: &Array, axes: &[usize]| axes.iter().map(|&i| x.shape[i]).collect::<Vec<_>>();
    let shape = [pick(a, &fa), pick(b, &fb), pick(a, &p.lhs_batch)].concat();
    let summed = pick(a, &p.lhs_contract);
    let place = |x: &Array, parts: [(&[usize], &[usize]); 3], conj: bool| {
        let mut at = vec![0; x.rank()];
        parts.iter().for_each(|(axes, i)| axes.iter().zip(*i).for_each(|(&a, &i)| at[a] = i));
        match x.at(&at) {
            Elem::Float(z) if conj => Elem::Float(z.conj()),
            e => e,
        }
    };
    Array::from_fn(a.dtype, &shape, |i| {
        let (ia, rest) = i.split_at(fa.len());
        let (ib, batch) = rest.split_at(fb.len());
        let term = |s: Vec<usize>| {
            let l = place(a, [(&fa, ia), (&p.lhs_contract, &s), (&p.lhs_batch, batch)], p.conj_lhs);
            let r = place(b, [(&fb, ib), (&p.rhs_contract, &s), (&p.rhs_batch, batch)], p.conj_rhs);
            l.times(r)
        };
        let zero = if a.dtype.is_differentiable() { Elem::real(0.0) } else { Elem::Int(0) };
        indices(&summed).map(term).fold(zero, Elem::plus)
    })
}

fn dot(contract: [&[usize]; 2], batch: [&[usize]; 2], conj: [bool; 2]) -> ops::DotGeneral {
    ops::DotGeneral {
        lhs_contract: contract[0].into(),
        rhs_contract: contract[1].into(),
        lhs_batch: batch[0].into(),
        rhs_batch: batch[1].into(),
        conj_lhs: conj[0],
        conj_rhs: conj[1],
    }
}

/// Every way three axes of lhs and of rhs can be one free, one summed and one batch axis.
fn arrangements() -> Vec<([usize; 3], [usize; 3])> {
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    ORDERS.iter().flat_map(|&l| ORDERS.iter().map(move |&r| (l, r))).collect()
}

fn dot_general() -> OpInfo {
    const PLAIN: [bool; 2] = [false, false];
    // Extents of free, summed and batch axes.
    let shaped = |order: [usize; 3], free: usize| {
        let mut shape = [0; 3];
        shape[order[0]] = free;
        shape[order[1]] = 3;
        shape[order[2]] = 2;
        shape
    };
    op("dot_general", |p: &ops::DotGeneral, x: &[Var]| x[0].dot_general(&x[1], p), contracted)
        .surface(surface!(ops::DotGeneral; dot_general(1) |p| p))
        .promotes()
        .tolerance(32.0)
        .each(NUMBERS, |o, d| {
            let two = |a: &[usize], b: &[usize], seed| vec![any(d, a, seed), any(d, b, seed + 1)];
            o.sample(dot([&[1], &[0]], [&[], &[]], PLAIN), two(&[3, 4], &[4, 2], 1))
                .sample(dot([&[0], &[0]], [&[], &[]], PLAIN), two(&[4, 3], &[4, 2], 3))
                .sample(dot([&[0, 2], &[1, 0]], [&[], &[]], PLAIN), two(&[2, 3, 4], &[4, 2, 5], 5))
                .sample(dot([&[2, 0], &[0, 1]], [&[], &[]], PLAIN), two(&[2, 3, 4], &[4, 2, 5], 7))
                .sample(dot([&[], &[]], [&[], &[]], PLAIN), two(&[3], &[2, 2], 9))
                .sample(dot([&[], &[]], [&[0], &[1]], PLAIN), two(&[3, 2], &[4, 3], 11))
                .sample(dot([&[0], &[0]], [&[], &[]], PLAIN), two(&[5], &[5], 13))
                .sample(dot([&[], &[]], [&[], &[]], PLAIN), two(&[], &[3], 15))
                .sample(dot([&[], &[]], [&[], &[]], PLAIN), two(&[], &[], 16))
                .sample(dot([&[1], &[0]], [&[], &[]], PLAIN), two(&[3, 0], &[0, 2], 17))
                .sample(dot([&[1], &[0]], [&[], &[]], PLAIN), two(&[0, 3], &[3, 2], 19))
                .sample(dot([&[0], &[2]], [&[3, 1], &[0, 3]], PLAIN), two(&[2, 3, 4, 2], &[2, 3, 2, 3], 21))
                .sample(dot([&[2, 0], &[0, 3]], [&[1], &[2]], PLAIN), two(&[2, 3, 4], &[4, 5, 3, 2], 23))
        })
        .each(arrangements(), |o, (l, r)| {
            let p = |conj| dot([&[l[1]], &[r[1]]], [&[l[2]], &[r[2]]], conj);
            let x = |d| vec![any(d, &shaped(l, 4), 31), any(d, &shaped(r, 5), 32)];
            let conj = [[false, true], [true, false], [true, true]][(l[0] + r[1]) % 3];
            o.sample(p(PLAIN), x(F64)).sample(p(PLAIN), x(C64_)).sample(p(conj), x(C64_))
        })
        .each([[true, false], [false, true], [true, true]], |o, conj| {
            o.sample(
                dot([&[1], &[0]], [&[], &[]], conj),
                vec![any(C64_, &[3, 4], 41), any(C64_, &[4, 2], 42)],
            )
            .sample(dot([&[1], &[0]], [&[], &[]], conj), vec![any(C32, &[3, 4], 41), any(C32, &[4, 2], 42)])
            .sample(
                dot([&[0, 1], &[1, 0]], [&[], &[]], conj),
                vec![any(C64_, &[3, 4], 43), any(C64_, &[4, 3, 2], 44)],
            )
            .sample(dot([&[], &[]], [&[0], &[0]], conj), vec![any(C64_, &[3, 2], 45), any(C64_, &[3], 46)])
        })
        // Larger than the blocks of matrix kernels.
        .kink(dot([&[1], &[0]], [&[], &[]], PLAIN), vec![any(F64, &[67, 70], 51), any(F64, &[70, 33], 52)])
        .value(
            dot([&[0], &[0]], [&[], &[]], PLAIN),
            vec![i64s(&[i64::MAX, 1]), i64s(&[2, 1])],
            Array::ints(I64, &[], &[-1]),
        )
        .symbolic(dot([&[1], &[0]], [&[], &[]], PLAIN), &[&["n", "m"], &["m", "k"]])
        .symbolic(dot([&[2], &[1]], [&[0], &[2]], PLAIN), &[&["n", "k", "m"], &["k", "m", "n"]])
        .error(
            dot([&[1], &[0]], [&[], &[]], PLAIN),
            vec![any(F64, &[2, 3], 1), any(F64, &[4, 2], 2)],
            &["3 of lhs axis 1", "4 of rhs axis 0"],
        )
        .error(
            dot([&[], &[]], [&[0], &[0]], PLAIN),
            vec![any(F64, &[2, 3], 1), any(F64, &[4, 2], 2)],
            &["2 of lhs axis 0", "4 of rhs axis 0"],
        )
        .error(
            dot([&[1], &[]], [&[], &[]], PLAIN),
            vec![any(F64, &[2, 3], 1), any(F64, &[3], 2)],
            &["1 and 0"],
        )
        .error(dot([&[2], &[0]], [&[], &[]], PLAIN), vec![any(F64, &[2, 3], 1), any(F64, &[3], 2)], &["2"])
        .error(
            dot([&[1], &[0]], [&[1], &[1]], PLAIN),
            vec![any(F64, &[2, 3], 1), any(F64, &[3, 3], 2)],
            &["1", "distinct"],
        )
        .error(dot([&[0], &[0]], [&[], &[]], PLAIN), vec![any(Bool, &[2], 1), any(Bool, &[2], 2)], &["bool"])
        .done()
}

/// Equal dtypes only: what the primitive itself refuses.
fn dot_general_primitive() -> OpInfo {
    let p = dot([&[1], &[0]], [&[], &[]], [false, false]);
    op("dot_general_primitive", |p: &ops::DotGeneral, x: &[Var]| apply1(p, &[&x[0], &x[1]]), contracted)
        .sample(p.clone(), vec![any(F64, &[2, 3], 1), any(F64, &[3, 2], 2)])
        .skip("rank_0", "as dot_general")
        .skip("zero_size", "as dot_general")
        .error_of("dot_general", p, vec![any(F64, &[2, 3], 1), any(C64_, &[3, 2], 2)], &["c64", "f64"])
        .skip("symbolic", "as dot_general")
        .skip("surfaces", "as dot_general")
        .done()
}

fn matmul() -> OpInfo {
    op(
        "matmul",
        |_: &(), x: &[Var]| x[0].matmul(&x[1]),
        |_, x| {
            let rank = x[0].rank().max(x[1].rank());
            let extent = |a: &Array, i: usize| a.shape.get(i).copied().unwrap_or(1);
            let batch = (2..rank).map(|i| match (extent(&x[0], i), extent(&x[1], i)) {
                (1, n) => n,
                (n, _) => n,
            });
            let shape: Vec<usize> = [x[0].shape[0], x[1].shape[1]].into_iter().chain(batch).collect();
            Array::from_fn(x[0].dtype, &shape, |i| {
                let at = |a: &Array, row: usize, col: usize| {
                    let batch = (2..a.rank()).map(|k| if a.shape[k] == 1 { 0 } else { i[k] });
                    a.at(&[row, col].into_iter().chain(batch).collect::<Vec<_>>())
                };
                let zero = if x[0].dtype.is_differentiable() { Elem::real(0.0) } else { Elem::Int(0) };
                (0..x[0].shape[1])
                    .map(|k| at(&x[0], i[0], k).times(at(&x[1], k, i[1])))
                    .fold(zero, Elem::plus)
            })
        },
    )
    .surface(surface!((); matmul(1)))
    .promotes()
    .tolerance(32.0)
    .each(NUMBERS, |o, d| {
        let two = |a: &[usize], b: &[usize], seed| vec![any(d, a, seed), any(d, b, seed + 1)];
        o.sample((), two(&[3, 4], &[4, 2], 1))
            .sample((), two(&[3, 4, 2], &[4, 2, 2], 3))
            .sample((), two(&[3, 4, 5], &[4, 2], 5))
            .sample((), two(&[3, 4, 1, 2], &[4, 2, 3], 7))
            .sample((), two(&[3, 0], &[0, 2], 9))
            .sample((), two(&[2, 2, 0], &[2, 2], 11))
            .sample((), two(&[1, 4], &[4, 1], 13))
    })
    .symbolic((), &[&["n", "m"], &["m", "k"]])
    .symbolic((), &[&["n", "m", "k"], &["m", "2", "k"]])
    .symbolic((), &[&["n", "m", "k"], &["m", "2"]])
    .symbolic((), &[&["n", "m", "1"], &["m", "2", "k"]])
    .skip("rank_0", "matrices are needed")
    .error((), vec![any(F64, &[2, 3], 1), any(F64, &[4, 2], 2)], &["f64[2, 3]", "f64[4, 2]"])
    .error((), vec![any(F64, &[2], 1), any(F64, &[2, 2], 2)], &["1", "at least 2"])
    .error((), vec![any(F64, &[2, 2, 3], 1), any(F64, &[2, 2, 4], 2)], &["3", "4"])
    .done()
}

fn tensordots() -> Vec<OpInfo> {
    let last = op(
        "tensordot",
        |&n: &usize, x: &[Var]| x[0].tensordot(&x[1], n),
        |&n, x| {
            let axes: Vec<usize> = (x[0].rank() - n..x[0].rank()).collect();
            let others: Vec<usize> = (0..n).collect();
            contracted(&dot([&axes, &others], [&[], &[]], [false, false]), x)
        },
    )
    .surface(surface!(usize; tensordot(1) |n| *n))
    .promotes()
    .tolerance(32.0)
    .each(NUMBERS, |o, d| {
        o.sample(1, vec![any(d, &[3, 4], 1), any(d, &[4, 2], 2)])
            .sample(2, vec![any(d, &[2, 3, 4], 3), any(d, &[3, 4, 2], 4)])
            .sample(0, vec![any(d, &[2], 5), any(d, &[3], 6)])
            .sample(2, vec![any(d, &[2, 3], 7), any(d, &[2, 3], 8)])
            .sample(1, vec![any(d, &[2, 0], 9), any(d, &[0, 3], 10)])
    })
    .symbolic(1, &[&["n", "m"], &["m", "k"]])
    .symbolic(2, &[&["n", "m"], &["n", "m"]])
    .error(2, vec![any(F64, &[2], 1), any(F64, &[2, 2], 2)], &["2", "at most 1"])
    .done();
    type P = (Vec<usize>, Vec<usize>);
    let chosen = op(
        "tensordot_axes",
        |(a, b): &P, x: &[Var]| x[0].tensordot_axes(&x[1], a, b),
        |(a, b), x| contracted(&dot([a, b], [&[], &[]], [false, false]), x),
    )
    .surface(surface!(P; tensordot_axes(1) |p| &p.0, &p.1))
    .promotes()
    .tolerance(32.0)
    .each(NUMBERS, |o, d| {
        o.sample((vec![0], vec![1]), vec![any(d, &[4, 3], 1), any(d, &[2, 4], 2)])
            .sample((vec![2, 0], vec![0, 2]), vec![any(d, &[2, 3, 4], 3), any(d, &[4, 3, 2], 4)])
            .sample((vec![], vec![]), vec![any(d, &[], 5), any(d, &[0], 6)])
    })
    .symbolic((vec![0], vec![0]), &[&["n", "m"], &["n", "k"]])
    .error_of("tensordot", (vec![0], vec![]), vec![any(F64, &[2], 1), any(F64, &[2], 2)], &["1 and 0"])
    .done();
    vec![last, chosen]
}

pub(super) fn list() -> Vec<OpInfo> {
    let mut all = vec![dot_general(), dot_general_primitive(), matmul()];
    all.extend(tensordots());
    all
}
