//! The equations that the derivative of a split is made of.

use super::*;
use crate::{
    info::op,
    matrix::{stack_vectors, vectors},
};
use smallvec::SmallVec;
use tenferro_core_ops::{Var, apply_n, apply1};
use tenferro_linalg::{Couple, GramLyapunov, GramSolve, Split};

pub(super) fn list() -> Vec<OpInfo> {
    vec![split_factors(), gram_solve(), gram_lyapunov(), couple()]
}

/// Why there is nothing to compare with a decomposition.
const PARTS: &str = "it has no kernel, and no derivative through its parts";

/// U, Vh, the discarded values with 0 in place of the kept ones, the kept ones, and their reciprocals.
fn hints(a: &Array, r: usize) -> [Array; 5] {
    let ([m, n], batch) = extents(a);
    let (k, real) = (m.min(n), a.dtype.real());
    let s: Vec<Vec<f64>> = matrices(a).iter().map(|a| a.svd().1).collect();
    let of = |n: usize, f: &dyn Fn(usize, f64) -> f64| {
        let part = |s: &Vec<f64>| (0..n).map(|i| f(i, s[i])).collect();
        stack_vectors(real, n, batch, &s.iter().map(part).collect::<Vec<_>>())
    };
    [
        each_matrix(a, [m, k], |a| a.svd().0),
        each_matrix(a, [k, n], |a| a.svd().2.adjoint()),
        of(k, &|i, s| if i < r { 0.0 } else { s }),
        of(r, &|_, s| s),
        of(r, &|_, s| 1.0 / s),
    ]
}

/// The factors of rank `r`.
fn balanced(a: &Array, r: usize) -> [Array; 2] {
    let [m, n] = extents(a).0;
    let roots = |s: &[f64]| s[..r].iter().map(|s| s.sqrt()).collect::<Vec<_>>();
    let left = each_matrix(a, [m, r], |a| {
        let (u, s, _) = a.svd();
        u.scaled(&roots(&s))
    });
    let right = each_matrix(a, [r, n], |a| {
        let (_, s, v) = a.svd();
        v.scaled(&roots(&s)).adjoint()
    });
    [left, right]
}

/// Matrices and ranks that the equations of a split are checked on.
fn cases(d: DType) -> [(Array, usize); 4] {
    [
        (with_values(d, [3, 3], &[&[3.0, 2.0, 1.0]], 31), 2),
        (with_values(d, [4, 2], &[&[3.0, 1.0]], 33), 1),
        (with_values(d, [2, 3], &[&[2.0, 2.0]], 35), 2),
        (with_values(d, [3, 2], &[&[3.0, 1.0], &[2.0, 0.5]], 37), 1),
    ]
}

fn split_factors() -> OpInfo {
    let operands = |a: &Array, r| [vec![a.clone()], hints(a, r).to_vec()].concat();
    op(
        "split_factors",
        |_: &(), x: &[Var]| -> SmallVec<[Var; 1]> { apply_n(&Split, &x.iter().collect::<Vec<_>>(), 2) },
        |_, x| {
            let r = x[4].shape[0];
            let scaled = |q: Matrix, s: &[f64]| q.scaled(&s.iter().map(|s| s.sqrt()).collect::<Vec<_>>());
            let kept = vectors(&x[4]);
            let left: Vec<Matrix> =
                matrices(&x[1]).into_iter().zip(&kept).map(|(u, s)| scaled(u, s)).collect();
            let right: Vec<Matrix> = matrices(&x[2])
                .into_iter()
                .zip(&kept)
                .map(|(v, s)| scaled(v.adjoint(), s).adjoint())
                .collect();
            let ([m, n], batch) = extents(&x[0]);
            vec![stack(x[0].dtype, [m, r], batch, &left), stack(x[0].dtype, [r, n], batch, &right)]
        },
    )
    // Roots of given numbers, and scaled vectors.
    .tolerance(bound(4, 2.0))
    .each(FLOATS, |o, d| {
        o.each(cases(d), |o, (a, r)| o.sample((), operands(&a, r)))
            .sample((), operands(&any(d, &[0, 2], 1), 0))
    })
    .skip("rank_0", "a matrix is needed")
    .skip("jvp", HINTS)
    .skip("second_order", HINTS)
    .skip("decomposition", PARTS)
    .error_of("split", (), vec![any(F64, &[2, 2], 1)], &["1", "6"])
    .skip("surfaces", IN_RULES)
    .symbolic((), &[&["n", "n"], &["n", "n"], &["n", "n"], &["n"], &["m"], &["m"]])
    .each(
        [
            (1, any(F64, &[3, 3], 1), ["[3, 3]", "[3, 2]"]),
            (2, any(C64_, &[2, 2], 1), ["c64[2, 2]", "f64[2, 2]"]),
            (3, any(F64, &[3], 1), ["f64[3]", "f64[2]"]),
            (4, any(F64, &[], 1), ["0", "at least 1"]),
            (4, any(F32, &[1], 1), ["f32[1]", "f64[1]"]),
            (5, any(F64, &[2], 1), ["f64[2]", "f64[1]"]),
        ],
        |o, (i, wrong, parts)| {
            let mut x = operands(&with_values(F64, [3, 2], &[&[3.0, 1.0]], 1), 1);
            x[i] = wrong;
            o.error_of("split", (), x, &parts)
        },
    )
    .done()
}

/// (F^H F)^-1 B
fn gram_solve() -> OpInfo {
    op(
        "gram_solve",
        |_: &(), x: &[Var]| apply1(&GramSolve, &x.iter().collect::<Vec<_>>()),
        |_, x| each_pair(&x[0], &x[2], extents(&x[2]).0, |f, b| f.adjoint().times(f).solve(b)),
    )
    // 3 / 1, the larger of the ratios of kept values.
    .tolerance(bound(4, 3.0))
    .each(FLOATS, |o, d| {
        let operands = |a: &Array, r, columns| {
            let ([left, _], [.., inverse]) = (balanced(a, r), hints(a, r));
            let shape: Vec<usize> = [r, columns].iter().chain(&a.shape[2..]).copied().collect();
            vec![left, inverse, any(d, &shape, 41)]
        };
        o.each(cases(d), |o, (a, r)| o.sample((), operands(&a, r, 3)))
            .sample((), operands(&any(d, &[0, 2], 1), 0, 2))
    })
    .skip("rank_0", "a matrix is needed")
    .skip("jvp", HINTS)
    .skip("second_order", HINTS)
    .skip("decomposition", PARTS)
    .error((), vec![any(F64, &[2, 2], 1)], &["1", "3"])
    .skip("surfaces", IN_RULES)
    .symbolic((), &[&["n", "m"], &["m"], &["m", "k"]])
    .error((), vec![any(F64, &[3, 2], 1), any(F64, &[3], 2), any(F64, &[2, 1], 3)], &["f64[3]", "f64[2]"])
    .error((), vec![any(F64, &[3, 2], 1), any(F64, &[2], 2), any(F64, &[3, 1], 3)], &["[3, 1]", "[2, 1]"])
    .error((), vec![any(F64, &[3, 2], 1), any(F64, &[2], 2), any(F64, &[2], 3)], &["1", "at least 2"])
    .done()
}

/// X with F^H F X + X F^H F = C.
fn gram_lyapunov() -> OpInfo {
    op(
        "gram_lyapunov",
        |_: &(), x: &[Var]| apply1(&GramLyapunov, &x.iter().collect::<Vec<_>>()),
        |_, x| x[2].clone(),
    )
    .observe(|_, x, y| {
        vec![each_pair(&x[0], &y[0], extents(&y[0]).0, |f, y| {
            let g = f.adjoint().times(f);
            g.times(y).plus(1.0, &y.times(&g))
        })]
    })
    // 3 / 1, the larger of the ratios of kept values.
    .tolerance(bound(4, 3.0))
    .each(FLOATS, |o, d| {
        let operands = |a: &Array, r| {
            let ([left, _], [_, _, _, kept, _]) = (balanced(a, r), hints(a, r));
            let shape: Vec<usize> = [r, r].iter().chain(&a.shape[2..]).copied().collect();
            vec![left, kept, any(d, &shape, 43)]
        };
        o.each(cases(d), |o, (a, r)| o.sample((), operands(&a, r)))
            .sample((), operands(&any(d, &[0, 2], 1), 0))
    })
    .skip("rank_0", "a matrix is needed")
    .skip("jvp", HINTS)
    .skip("second_order", HINTS)
    .skip("decomposition", PARTS)
    .error((), vec![any(F64, &[2, 2], 1)], &["1", "3"])
    .skip("surfaces", IN_RULES)
    .symbolic((), &[&["n", "m", "k"], &["m", "k"], &["m", "m", "k"]])
    .error((), vec![any(F64, &[3, 2], 1), any(F64, &[3], 2), any(F64, &[2, 2], 3)], &["f64[3]", "f64[2]"])
    .error((), vec![any(F64, &[3, 2], 1), any(F64, &[2], 2), any(F64, &[2, 3], 3)], &["[2, 3]", "[2, 2]"])
    .done()
}

/// (W1, W2) with W1 - R W2^H G2^-1 = B1 and W2 - G1^-1 W1^H R = B2; of the adjoint system, or not.
fn couple() -> OpInfo {
    op(
        "couple",
        |&adjoint: &bool, x: &[Var]| -> SmallVec<[Var; 1]> {
            apply_n(&Couple { adjoint }, &x.iter().collect::<Vec<_>>(), 2)
        },
        |_, x| vec![x[8].clone(), x[9].clone()],
    )
    .observe(|&adjoint, x, y| {
        let [a, left, right] = [0, 1, 2].map(|i| matrices(&x[i]));
        let [w1, w2] = [0, 1].map(|i| matrices(&y[i]));
        let both: [Vec<Matrix>; 2] = [0, 1].map(|side| {
            (0..a.len())
                .map(|b| {
                    let residual = a[b].plus(-1.0, &left[b].times(&right[b]));
                    let grams = [left[b].adjoint().times(&left[b]), right[b].times(&right[b].adjoint())];
                    let [first, second] =
                        if adjoint { [&grams[1], &grams[0]] } else { [&grams[0], &grams[1]] };
                    if side == 0 {
                        let moved = second.solve(&w2[b].times(&residual.adjoint())).adjoint();
                        w1[b].plus(-1.0, &moved)
                    } else {
                        w2[b].plus(-1.0, &first.solve(&w1[b].adjoint().times(&residual)))
                    }
                })
                .collect()
        });
        let of = |i: usize| stack(y[i].dtype, extents(&y[i]).0, extents(&y[i]).1, &both[i]);
        vec![of(0), of(1)]
    })
    // The gap at the cut, 2 / (2 - 1), in both of the coupled equations.
    .tolerance(bound(4, 4.0))
    .each(FLOATS, |o, d| {
        let operands = |a: &Array, r| {
            let batch = &a.shape[2..];
            let with = |m: usize, n: usize| [m, n].iter().chain(batch).copied().collect::<Vec<_>>();
            let b = vec![any(d, &with(a.shape[0], r), 45), any(d, &with(r, a.shape[1]), 46)];
            [vec![a.clone()], balanced(a, r).to_vec(), hints(a, r).to_vec(), b].concat()
        };
        o.each([false, true], |o, adjoint| {
            o.each(cases(d), |o, (a, r)| o.sample(adjoint, operands(&a, r)))
                .sample(adjoint, operands(&any(d, &[0, 2], 1), 0))
        })
    })
    .skip("rank_0", "a matrix is needed")
    .skip("jvp", HINTS)
    .skip("second_order", HINTS)
    .skip("decomposition", PARTS)
    .error(false, vec![any(F64, &[2, 2], 1)], &["1", "10"])
    .skip("surfaces", IN_RULES)
    .symbolic(
        true,
        &[
            &["n", "n"],
            &["n", "m"],
            &["m", "n"],
            &["n", "n"],
            &["n", "n"],
            &["n"],
            &["m"],
            &["m"],
            &["n", "m"],
            &["m", "n"],
        ],
    )
    .done()
}
