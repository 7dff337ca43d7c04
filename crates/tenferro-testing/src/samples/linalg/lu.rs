//! Factors of elimination for repeated solves, and full pivoting.

use super::{
    systems::{FORMS, Form, eliminated, packed, posed, system},
    *,
};
use crate::info::{op, surface};
use tenferro_core_ops::{Var, apply_n};
use tenferro_linalg::{LinalgOps, LinalgRecorded, LuFull, TypedLinalgOps, ops};

pub(super) fn list() -> Vec<OpInfo> {
    vec![lu_factor(), lu_solve(), lu_full(), lu_full_factors(), lu_full_packed(), lu_full_solve()]
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
    .error_of("lu", (), vec![any(F64, &[3], 1)], &["1", "at least 2"])
    .done()
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
            let ([n, _], batch) = extents(&x[0]);
            let p: Vec<usize> = x[1].data.iter().map(|e| e.int() as usize).collect();
            let orders = || p.chunks(n.max(1)).chain(std::iter::repeat(&[][..]));
            let a: Vec<Matrix> = matrices(&x[0]).iter().zip(orders()).map(|(a, p)| product(a, p)).collect();
            let a = stack(x[0].dtype, [n, n], batch, &a);
            with_batch(&a, &x[2], f.0, |a, b| posed(f, a, b))
        },
    )
    .surface(surface!(Form; LinalgOps, TypedLinalgOps; lu_solve(1, 2) |p| system(*p)))
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
        .sample((false, 2), x(&[], &[0, 0], &[0, 2], 11))
        .sample((false, 2), x(&[0, 1], &[2, 2], &[2, 0], 13))
    })
    // The positions are all 0, which is a permutation of one.
    .symbolic_of((false, 0), &[(F64, &["1", "1", "n"]), (I64, &["1", "n"]), (F64, &["1", "m", "n"])])
    .symbolic_of((true, 0), &[(F64, &["1", "1"]), (I64, &["1"]), (F64, &["m", "1"])])
    .skip("rank_0", "a matrix is needed")
    .error((false, 0), vec![any(F64, &[2], 1), i64s(&[0, 1]), any(F64, &[2], 2)], &["1", "at least 2"])
    .error_of(
        "triangular_solve",
        (false, 0),
        vec![f64s(&[2, 2], &[1.0, 0.0, 1.0, 0.0]), i64s(&[0, 1]), any(F64, &[2], 2)],
        &["pivot 1", "zero"],
    )
    .error((true, 1), vec![any(F64, &[2, 2], 1), i64s(&[0, 1]), any(F64, &[2, 3], 2)], &["3", "2"])
    .error((false, 0), vec![any(F64, &[2, 2], 1), i64s(&[0, 1]), any(F64, &[3, 2], 2)], &["3", "2"])
    .error_of(
        "index_select",
        (false, 0),
        vec![any(F64, &[2, 2], 1), i64s(&[0, 2]), any(F64, &[2, 1], 2)],
        &["2"],
    )
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
        order(m, |a| a.lu_full().0),
        order(n, |a| a.lu_full().1),
        each_matrix(&a, [m, k], |a| a.lu_full().2),
        each_matrix(&a, [k, n], |a| a.lu_full().3),
    ]
}

fn lu_full() -> OpInfo {
    op("lu_full", |_: &(), x: &[Var]| <[Var; 4]>::from(ops::lu_full(&x[0])), |_, x| fully(&x[0]).to_vec())
        .surface(surface!((); LinalgOps, TypedLinalgOps; lu_full()))
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
fn lu_full_factors() -> OpInfo {
    op(
        "lu_full_factors",
        |_: &(), x: &[Var]| {
            let (_, _, l, u) = ops::lu_full(&x[0]);
            [l, u]
        },
        |_, x| fully(&x[0])[2..].to_vec(),
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
    .error_of("lu_full", (), vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .done()
}

/// The factors in one matrix.
fn lu_full_packed() -> OpInfo {
    op(
        "lu_full_packed",
        |_: &(), x: &[Var]| apply_n(&LuFull, &[&x[0]], 3),
        |_, x| {
            let [p, q, ..] = fully(&x[0]);
            let both = |a: Matrix| {
                let (_, _, l, u) = a.lu_full();
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
    .error_of("lu_full", (), vec![any(I64, &[2, 2], 1)], &["i64", "f32 | f64"])
    .done()
}

fn lu_full_solve() -> OpInfo {
    op(
        "lu_full_solve",
        |_: &(), x: &[Var]| ops::lu_full_solve(&x[0], &x[1], &x[2], &x[3], &x[4]),
        |_, x| {
            // Elimination knows where it exchanged rows and columns: of the product with both undone.
            let ([n, _], batch) = extents(&x[0]);
            let place = |x: &Array, b: usize| -> Vec<usize> {
                let p: Vec<usize> = x.data[b * n..(b + 1) * n].iter().map(|e| e.int() as usize).collect();
                (0..n).map(|i| p.iter().position(|&k| k == i).expect("a permutation")).collect()
            };
            let part = |a: &Matrix, lower: bool| {
                Matrix::from_fn(n, n, |i, j| match i.cmp(&j) {
                    std::cmp::Ordering::Equal if lower => 1.0.into(),
                    std::cmp::Ordering::Greater if !lower => 0.0.into(),
                    std::cmp::Ordering::Less if lower => 0.0.into(),
                    _ => a.at(i, j),
                })
            };
            let (l, u) = (matrices(&x[0]), matrices(&x[1]));
            let of = |b: usize| {
                let lu = part(&l[b], true).times(&part(&u[b], false)).permuted(&place(&x[2], b));
                lu.transposed().permuted(&place(&x[3], b)).transposed()
            };
            let a: Vec<Matrix> = (0..l.len()).map(of).collect();
            with_batch(&stack(x[0].dtype, [n, n], batch, &a), &x[4], false, Matrix::solve)
        },
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; lu_full_solve(1, 2, 3, 4)))
    .tolerance(bound(5, 10.0))
    .each(FLOATS, |o, d| {
        let x = |p: &[i64], q: &[i64], a: &[usize], b: &[usize], seed| {
            let shape: Vec<usize> = std::iter::once(a[0]).chain(a[2..].iter().copied()).collect();
            let order = |p| Array::ints(I64, &shape, p);
            vec![dominant(d, a, seed), dominant(d, a, seed + 1), order(p), order(q), any(d, b, seed + 2)]
        };
        o.sample((), x(&[2, 0, 1], &[1, 2, 0], &[3, 3], &[3, 2], 1))
            .sample((), x(&[1, 0], &[0, 1], &[2, 2], &[2], 4))
            .sample((), x(&[1, 0, 0, 1], &[1, 0, 1, 0], &[2, 2, 2], &[2, 1, 2], 7))
            .sample((), x(&[], &[], &[0, 0], &[0, 2], 10))
    })
    .symbolic_of(
        (),
        &[(F64, &["1", "1"]), (F64, &["1", "1"]), (I64, &["1"]), (I64, &["1"]), (F64, &["1", "n"])],
    )
    .skip("rank_0", "a matrix is needed")
    .error(
        (),
        vec![any(F64, &[2], 1), any(F64, &[2, 2], 1), i64s(&[0, 1]), i64s(&[0, 1]), any(F64, &[2], 2)],
        &["1", "at least 2"],
    )
    .error(
        (),
        vec![any(F64, &[2, 2], 1), any(F64, &[2, 2], 1), i64s(&[0, 1]), i64s(&[0, 1]), any(F64, &[3], 2)],
        &["3", "2"],
    )
    .done()
}
