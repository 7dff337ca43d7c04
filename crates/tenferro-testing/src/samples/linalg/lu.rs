//! Factors of elimination for repeated solves, and full pivoting.

use super::{
    systems::{FORMS, Form, eliminated, packed, posed, system},
    *,
};
use crate::{
    array::Elem,
    info::{op, surface},
};
use tenferro_core_ops::{Var, apply_n, apply1};
use tenferro_linalg::{LinalgOps, LinalgRecorded, LuFullPivot, Permute, TypedLinalgOps, ops};

pub(super) fn list() -> Vec<OpInfo> {
    vec![
        lu_factor(),
        lu_solve(),
        permute(),
        lu_full_pivot(),
        lu_full_pivot_factors(),
        lu_full_pivot_packed(),
        lu_full_pivot_solve(),
    ]
}

fn lu_factor() -> OpInfo {
    op(
        "lu_factor",
        |_: &(), x: &[Var]| <[Var; 2]>::from(ops::lu_factor(&x[0])),
        |_, x| vec![packed(&x[0].cast(floating(x[0].dtype))), eliminated(&x[0])[0].clone()],
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; lu_factor()))
    .tolerance(bound(4, 2.5))
    .each(FLOATS, |o, d| {
        o.sample((), vec![dominant(d, &[3, 3], 1)])
            .sample((), vec![dominant(d, &[4, 2], 2)])
            .sample((), vec![dominant(d, &[2, 4, 2], 3)])
            .sample((), vec![any(d, &[0, 2], 4)])
    })
    .kink((), vec![Array::ints(I64, &[2, 2], &[3, 1, 1, 2])])
    .symbolic((), &[&["n", "m"]])
    .skip("rank_0", "a matrix is needed")
    .error((), vec![any(F64, &[3], 1)], &["1", "at least 2"])
    .error_at(["lu_factor", "lu"], (), vec![f64s(&[1, 1], &[f64::NAN])], &["[0, 0]", "not finite"])
    .done()
}

/// The permutations as matrices, whose rows are those of the identity in their order.
fn permutations(p: &Array) -> Array {
    let n = p.shape[0];
    Array::from_fn(F64, &[&[n], &p.shape[..]].concat(), |i| {
        let at = p.at(&[&[i[0]], &i[2..]].concat()).int();
        Elem::real((at == i[1] as i64) as u8 as f64)
    })
}

fn positions(p: &Matrix) -> Vec<usize> {
    let place = |i: usize| (0..p.columns).find(|&j| p.at(i, j).re == 1.0).expect("a permutation");
    (0..p.rows).map(place).collect()
}

/// What the packed factors are those of.
fn product(packed: &Matrix, p: &[usize]) -> Matrix {
    let n = packed.rows;
    let part = |keep: fn(usize, usize) -> bool, unit: bool| {
        Matrix::from_fn(n, n, |i, j| match (i == j && unit, keep(i, j)) {
            (true, _) => 1.0.into(),
            (_, true) => packed.at(i, j),
            _ => 0.0.into(),
        })
    };
    let back: Vec<usize> = (0..n).map(|i| p.iter().position(|&k| k == i).expect("a permutation")).collect();
    part(|i, j| i > j, true).times(&part(|i, j| i <= j, false)).permuted(&back)
}

fn lu_solve() -> OpInfo {
    op(
        "lu_solve",
        |&p: &Form, x: &[Var]| ops::lu_solve(&x[0], &x[1], &x[2], system(p)),
        |&f, x| {
            let d = floating(DType::promote(x[0].dtype, x[2].dtype));
            let p = permutations(&x[1]).cast(d);
            let moved = with_batch(&p, &x[0].cast(d), false, |p, a| product(a, &positions(p)));
            with_batch(&moved, &x[2].cast(d), f.0, |a, b| posed(f, a, b))
        },
    )
    .surface(surface!(Form; LinalgOps, TypedLinalgOps; lu_solve(1, 2) |p| system(*p)))
    .promotes()
    // The condition of two triangles; see `dominant`.
    .tolerance(bound(5, 6.0))
    .each(FLOATS, |o, d| {
        let x = |p: &[i64], a: &[usize], b: &[usize], seed| {
            let shape: Vec<usize> = std::iter::once(a[0]).chain(a[2..].iter().copied()).collect();
            vec![dominant(d, a, seed), Array::ints(I64, &shape, p), any(d, b, seed + 1)]
        };
        o.each(FORMS, |o, f| {
            let b: &[usize] = if f.0 { &[2, 3] } else { &[3, 2] };
            o.sample(f, x(&[2, 0, 1], &[3, 3], b, 1))
                .sample(f, x(&[1, 0, 0, 1], &[2, 2, 2], &[2, 2, 2], 3))
                .sample(f, x(&[1, 0], &[2, 2], &[2], 5))
        })
        .sample((false, 0), x(&[1, 0, 0, 1], &[2, 2, 2], &[2, 1], 7))
        .sample((true, 0), x(&[1, 0], &[2, 2], &[1, 2, 3], 9))
        .sample((true, 2), x(&[1, 0, 0, 1], &[2, 2, 2], &[2], 15))
        // A permutation for each matrix of a batch that nothing else has.
        .sample(
            (false, 1),
            vec![dominant(d, &[2, 2], 17), Array::ints(I64, &[2, 2], &[1, 0, 0, 1]), any(d, &[2, 1], 18)],
        )
        .sample((false, 0), vec![dominant(d, &[2, 2, 3], 19), i64s(&[1, 0]), any(d, &[2], 20)])
        .sample((false, 2), x(&[], &[0, 0], &[0, 2], 11))
        .sample((false, 2), x(&[0, 1], &[2, 2], &[2, 0], 13))
    })
    // The positions are all 0, which is a permutation of one.
    .symbolic_of((false, 0), &[(F64, &["1", "1", "n"]), (I64, &["1", "n"]), (F64, &["1", "m", "n"])])
    .symbolic_of((true, 0), &[(F64, &["1", "1"]), (I64, &["1"]), (F64, &["m", "1"])])
    .skip("rank_0", "a matrix is needed")
    .error((false, 0), vec![any(F64, &[2], 1), i64s(&[0, 1]), any(F64, &[2], 2)], &["1", "at least 2"])
    .error_at(
        ["lu_solve", "triangular_solve"],
        (false, 0),
        vec![f64s(&[2, 2], &[1.0, 0.0, 1.0, 0.0]), i64s(&[0, 1]), any(F64, &[2], 2)],
        &["pivot 1", "zero"],
    )
    .error((true, 1), vec![any(F64, &[2, 2], 1), i64s(&[0, 1]), any(F64, &[2, 3], 2)], &["3", "2"])
    .error((false, 0), vec![any(F64, &[2, 2], 1), i64s(&[0, 1]), any(F64, &[3, 2], 2)], &["3", "2"])
    .error((false, 0), vec![any(F64, &[2, 2], 1), i64s(&[0, 1, 2]), any(F64, &[2, 1], 2)], &["3", "2"])
    .each(NO_PERMUTATIONS, |o, (p, message)| {
        o.each([(false, 0), (false, 2)], |o, f| {
            let x = vec![dominant(F64, &[2, 2], 1), i64s(&p), any(F64, &[2, 1], 2)];
            o.error_at(["lu_solve", "permute"], f, x, &[message, "permutation of 0..2"])
        })
    })
    .done()
}

/// Vectors that are none, and what is wrong with them.
const NO_PERMUTATIONS: [([i64; 2], &str); 3] =
    [([0, 2], "2 at position 1"), ([-1, 0], "-1 at position 0"), ([1, 1], "1 at position 1")];

/// The axis, and whether entries go back.
fn permute() -> OpInfo {
    type P = (usize, bool);
    op(
        "permute",
        |&(axis, inverse): &P, x: &[Var]| apply1(&Permute { axis, inverse }, &[&x[0], &x[1]]),
        |&(axis, inverse), x| {
            let p = permutations(&x[1]).cast(x[0].dtype);
            each_pair(&p, &x[0], extents(&x[0]).0, |p, a| {
                let p = positions(p);
                let back: Vec<usize> =
                    (0..p.len()).map(|i| p.iter().position(|&k| k == i).expect("a permutation")).collect();
                let p = if inverse { back } else { p };
                Matrix::from_fn(
                    a.rows,
                    a.columns,
                    |i, j| if axis == 0 { a.at(p[i], j) } else { a.at(i, p[j]) },
                )
            })
        },
    )
    .each(FLOATS, |o, d| {
        let of = |p: &[i64], a: &[usize], axis: usize| {
            let shape: Vec<usize> = std::iter::once(a[axis]).chain(a[2..].iter().copied()).collect();
            vec![any(d, a, 1), Array::ints(I64, &shape, p)]
        };
        o.each([false, true], |o, inverse| {
            o.sample((0, inverse), of(&[2, 0, 1], &[3, 2], 0))
                .sample((1, inverse), of(&[2, 0, 1], &[2, 3], 1))
                .sample((0, inverse), of(&[1, 0, 0, 1], &[2, 1, 2], 0))
                .sample((1, inverse), of(&[], &[2, 0], 1))
                .sample((0, inverse), of(&[1, 0], &[2, 0], 0))
        })
    })
    // The positions are all 0, which is a permutation of one.
    .symbolic_of((0, false), &[(F64, &["1", "n"]), (I64, &["1"])])
    .symbolic_of((1, true), &[(F64, &["n", "1"]), (I64, &["1"])])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", IN_RULES)
    .error((0, false), vec![any(F64, &[2], 1), i64s(&[0, 1])], &["1", "at least 2"])
    .error((2, false), vec![any(F64, &[2, 2], 1), i64s(&[0, 1])], &["2", "0 or 1"])
    .error((1, false), vec![any(F64, &[2, 3], 1), i64s(&[0, 1])], &["3", "2"])
    .error((0, false), vec![any(F64, &[2, 2, 1], 1), i64s(&[0, 1])], &["i64[2]", "i64[2, 1]"])
    .error((0, false), vec![any(F64, &[2, 2], 1), Array::ints(I32, &[2], &[0, 1])], &["i32[2]", "i64[2]"])
    .each(NO_PERMUTATIONS, |o, (p, message)| {
        o.error((0, true), vec![any(F64, &[2, 2], 1), i64s(&p)], &[message, "permutation of 0..2"])
    })
    .done()
}

fn fully(a: &Array) -> [Array; 4] {
    let a = a.cast(floating(a.dtype));
    let ([m, n], batch) = extents(&a);
    let k = m.min(n);
    let order = |n: usize, of: fn(&Matrix) -> Vec<usize>| {
        let p: Vec<i64> = matrices(&a).iter().flat_map(of).map(|i| i as i64).collect();
        let shape: Vec<usize> = std::iter::once(n).chain(batch.iter().copied()).collect();
        Array::ints(I64, &shape, &p)
    };
    [
        each_matrix(&a, [m, k], |a| a.lu_full_pivot().2),
        each_matrix(&a, [k, n], |a| a.lu_full_pivot().3),
        order(m, |a| a.lu_full_pivot().0),
        order(n, |a| a.lu_full_pivot().1),
    ]
}

fn lu_full_pivot() -> OpInfo {
    op(
        "lu_full_pivot",
        |_: &(), x: &[Var]| <[Var; 4]>::from(ops::lu_full_pivot(&x[0])),
        |_, x| fully(&x[0]).to_vec(),
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; lu_full_pivot()))
    .tolerance(bound(17, 10.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![any(d, &[4, 4], 1)])
            .sample((), vec![any(d, &[5, 3], 2)])
            .sample((), vec![any(d, &[2, 4], 3)])
            .sample((), vec![any(d, &[1, 1], 4)])
            .sample((), vec![any(d, &[3, 2, 2], 5)])
            .sample((), vec![any(d, &[0, 3], 6)])
            .sample((), vec![any(d, &[3, 0], 7)])
            .sample((), vec![any(d, &[2, 2, 0], 8)])
            .kink((), vec![dominant(d, &[17, 17], 9)])
    })
    .kink((), vec![Array::ints(I64, &[2, 2], &[1, 5, 2, 3])])
    .symbolic((), &[&["n", "m"]])
    .skip("rank_0", "a matrix is needed")
    .error((), vec![any(F64, &[3], 1)], &["1", "at least 2"])
    .error((), vec![f64s(&[2, 2], &[1.0, f64::NAN, 0.0, 1.0])], &["[1, 0]", "not finite"])
    .done()
}

/// The differentiable results alone.
fn lu_full_pivot_factors() -> OpInfo {
    op(
        "lu_full_pivot_factors",
        |_: &(), x: &[Var]| {
            let (l, u, _, _) = ops::lu_full_pivot(&x[0]);
            [l, u]
        },
        |_, x| fully(&x[0])[..2].to_vec(),
    )
    .tolerance(bound(5, 10.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![dominant(d, &[3, 3], 1)])
            .sample((), vec![dominant(d, &[4, 2], 2)])
            .sample((), vec![dominant(d, &[2, 4], 3)])
            .sample((), vec![dominant(d, &[2, 2, 2], 5)])
            .sample((), vec![dominant(d, &[2, 0], 6)])
    })
    .symbolic((), &[&["n", "m"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", COMPOSED)
    .error_of("lu_full_pivot", (), vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .done()
}

/// The factors in one matrix.
fn lu_full_pivot_packed() -> OpInfo {
    op(
        "lu_full_pivot_packed",
        |_: &(), x: &[Var]| apply_n(&LuFullPivot, &[&x[0]], 3),
        |_, x| {
            let [_, _, p, q] = fully(&x[0]);
            let both = |a: Matrix| {
                let (_, _, l, u) = a.lu_full_pivot();
                Matrix::from_fn(a.rows, a.columns, |i, j| if i > j { l.at(i, j) } else { u.at(i, j) })
            };
            vec![each_matrix(&x[0], extents(&x[0]).0, both), p, q]
        },
    )
    .tolerance(bound(5, 10.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![dominant(d, &[3, 3], 1)])
            .sample((), vec![any(d, &[4, 2], 2)])
            .sample((), vec![any(d, &[2, 4, 2], 3)])
            .sample((), vec![any(d, &[0, 2], 4)])
    })
    .symbolic((), &[&["n", "m"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", IN_RULES)
    .error_of("lu_full_pivot", (), vec![any(I64, &[2, 2], 1)], &["i64", "f32 | f64"])
    .done()
}

fn lu_full_pivot_solve() -> OpInfo {
    op(
        "lu_full_pivot_solve",
        |&f: &Form, x: &[Var]| ops::lu_full_pivot_solve(&x[0], &x[1], &x[2], &x[3], &x[4], system(f)),
        |&f, x| {
            // Elimination knows where it exchanged rows and columns: A is P^T L U Q^T.
            let d = floating([0, 1, 4].iter().fold(x[0].dtype, |d, &i| DType::promote(d, x[i].dtype)));
            let part = |a: &Matrix, lower: bool| {
                Matrix::from_fn(a.rows, a.rows, |i, j| match i.cmp(&j) {
                    std::cmp::Ordering::Equal if lower => 1.0.into(),
                    std::cmp::Ordering::Greater if !lower => 0.0.into(),
                    std::cmp::Ordering::Less if lower => 0.0.into(),
                    _ => a.at(i, j),
                })
            };
            let (p, q) = (permutations(&x[2]).cast(d), permutations(&x[3]).cast(d));
            let lu =
                with_batch(&x[0].cast(d), &x[1].cast(d), false, |l, u| part(l, true).times(&part(u, false)));
            let plu = with_batch(&p, &lu, false, |p, a| p.transposed().times(a));
            let a = with_batch(&plu, &q, false, |a, q| a.times(q));
            with_batch(&a, &x[4].cast(d), f.0, |a, b| posed(f, a, b))
        },
    )
    .surface(surface!(Form; LinalgOps, TypedLinalgOps; lu_full_pivot_solve(1, 2, 3, 4) |p| system(*p)))
    .promotes()
    .tolerance(bound(5, 10.0))
    .each(FLOATS, |o, d| {
        let x = |p: &[i64], q: &[i64], a: &[usize], b: &[usize], seed| {
            let shape: Vec<usize> = std::iter::once(a[0]).chain(a[2..].iter().copied()).collect();
            let order = |p| Array::ints(I64, &shape, p);
            vec![dominant(d, a, seed), dominant(d, a, seed + 1), order(p), order(q), any(d, b, seed + 2)]
        };
        let plain = || x(&[1, 0], &[0, 1], &[2, 2], &[2, 1], 4);
        let with = |i: usize, a: Array| {
            let mut x = plain();
            x[i] = a;
            x
        };
        let two = |p: &[i64]| Array::ints(I64, &[2, 2], p);
        o.each(FORMS, |o, f| {
            let b: &[usize] = if f.0 { &[2, 3] } else { &[3, 2] };
            o.sample(f, x(&[2, 0, 1], &[1, 2, 0], &[3, 3], b, 1))
                .sample(f, x(&[1, 0], &[0, 1], &[2, 2], &[2], 4))
                .sample(f, x(&[1, 0, 0, 1], &[1, 0, 1, 0], &[2, 2, 2], &[2], 7))
        })
        .sample((false, 0), x(&[1, 0, 0, 1], &[1, 0, 1, 0], &[2, 2, 2], &[2, 1, 2], 7))
        .sample((false, 0), x(&[], &[], &[0, 0], &[0, 2], 10))
        .sample((false, 0), x(&[1, 0], &[1, 0], &[2, 2], &[2, 0], 13))
        // A batch that one of the operands has alone.
        .sample((false, 0), with(0, dominant(d, &[2, 2, 2], 16)))
        .sample((false, 0), with(1, dominant(d, &[2, 2, 2], 17)))
        .sample((false, 0), with(2, two(&[1, 0, 0, 1])))
        .sample((false, 0), with(3, two(&[0, 1, 1, 0])))
        .sample((false, 0), with(4, any(d, &[2, 1, 3], 18)))
    })
    .symbolic_of(
        (false, 0),
        &[(F64, &["1", "1"]), (F64, &["1", "1"]), (I64, &["1"]), (I64, &["1"]), (F64, &["1", "n"])],
    )
    .skip("rank_0", "a matrix is needed")
    .error(
        (false, 0),
        vec![any(F64, &[2], 1), any(F64, &[2, 2], 1), i64s(&[0, 1]), i64s(&[0, 1]), any(F64, &[2], 2)],
        &["1", "at least 2"],
    )
    .error(
        (false, 0),
        vec![any(F64, &[2, 2], 1), any(F64, &[2, 2], 1), i64s(&[0, 1]), i64s(&[0, 1]), any(F64, &[3], 2)],
        &["3", "2"],
    )
    .each(NO_PERMUTATIONS, |o, (p, message)| {
        o.each([0, 1], |o, which| {
            let (l, b) = (dominant(F64, &[2, 2], 1), any(F64, &[2], 2));
            let right = i64s(&[1, 0]);
            let (p, q) = if which == 0 { (i64s(&p), right) } else { (right, i64s(&p)) };
            let parts = [message, "permutation of 0..2"];
            o.error_at(["lu_full_pivot_solve", "permute"], (false, 0), vec![l.clone(), l, p, q, b], &parts)
        })
    })
    .done()
}
