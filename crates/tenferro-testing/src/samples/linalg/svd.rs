//! Singular values and vectors.

use super::*;
use crate::{
    array::Elem,
    info::{Surface, op, surface},
    matrix::{stack_scalars, stack_vectors, vectors},
};
use tenferro_core_ops::{Var, apply_n, apply1, build};
use tenferro_linalg::{LinalgOps, LinalgRecorded, PhaseWeights, SingularValueGaps, TypedLinalgOps, ops};

pub(super) fn list() -> Vec<OpInfo> {
    let svd = factors("svd", false, surface!((); LinalgOps, TypedLinalgOps; svd()));
    let full = factors("svd_full", true, surface!((); LinalgOps, TypedLinalgOps; svd_full()));
    vec![svd, full, invariants(), multiplet(), values(), nuclear_norm(), gaps(), phase_weights()]
}

fn singular_values(a: &Array) -> Array {
    let ([m, n], batch) = extents(a);
    let s: Vec<Vec<f64>> = matrices(a).iter().map(|a| a.svd().1).collect();
    stack_vectors(a.dtype.real(), m.min(n), batch, &s)
}

/// U diag(s) Vh, s, U^H U and Vh Vh^H.
fn observed(_: &(), _: &[Array], y: &[Array]) -> Vec<Array> {
    let [u, s, vh] = [&y[0], &y[1], &y[2]];
    let (m, n, k) = (u.shape[0], vh.shape[1], s.shape[0]);
    let left: Vec<Matrix> = matrices(u).iter().zip(vectors(s)).map(|(u, s)| u.scaled(&s)).collect();
    let left = stack(u.dtype, [m, k], &u.shape[2..], &left);
    let right = each_matrix(vh, [k, n], |v| v.adjoint().leading(k).adjoint());
    let (p, q) = (u.shape[1], vh.shape[0]);
    vec![
        each_pair(&left, &right, [m, n], Matrix::times),
        s.clone(),
        each_matrix(u, [p, p], |u| u.adjoint().times(&u)),
        each_matrix(vh, [q, q], |v| v.times(&v.adjoint())),
    ]
}

fn factors(name: &'static str, full: bool, methods: Surface<()>) -> OpInfo {
    let call: fn(&(), &[Var]) -> [Var; 3] =
        if full { |_, x| ops::svd_full(&x[0]).into() } else { |_, x| ops::svd(&x[0]).into() };
    let reference: fn(&(), &[Array]) -> Vec<Array> =
        if full { |_, x| expected(&x[0], true) } else { |_, x| expected(&x[0], false) };
    op(name, call, reference)
        .observe(observed)
        .surface(methods)
        // Values and products move as the matrix does.
        .tolerance(bound(40, 1.0))
        .each(FLOATS, |o, d| {
            let long = [any(d, &[5, 2], 2), any(d, &[2, 4], 3)].into_iter();
            // More than one vector that completes a basis is arbitrary.
            let o = long.fold(o, |o, a| if full { o.kink((), vec![a]) } else { o.sample((), vec![a]) });
            o.sample((), vec![any(d, &[3, 3], 1)])
                .sample((), vec![any(d, &[1, 1], 4)])
                .sample((), vec![any(d, &[3, 2, 2], 5)])
                .sample((), vec![any(d, &[2, 3, 1, 3], 6)])
                .sample((), vec![any(d, &[0, 3], 7)])
                .sample((), vec![any(d, &[3, 0], 8)])
                .sample((), vec![any(d, &[2, 2, 0], 9)])
                .kink((), vec![with_values(d, [4, 3], &[&[2.0, 2.0, 0.5]], 10)])
                .kink((), vec![with_values(d, [3, 4], &[&[2.0, 1e-5, 0.0]], 11)])
                .kink((), vec![with_values(d, [3, 3], &[&[0.0; 3], &[1.0; 3]], 12)])
                .kink((), vec![any(d, &[40, 33], 13)])
        })
        .each([I64, I32], |o, d| o.kink((), vec![any(d, &[3, 2], 14)]))
        .symbolic((), &[&["n", "m"]])
        .symbolic((), &[&["n", "3", "m"]])
        .skip("rank_0", "a matrix is needed")
        .error((), vec![any(F64, &[3], 1)], &["1", "at least 2"])
        .error_at(
            [name, "svd"],
            (),
            vec![f64s(&[2, 2], &[1.0, f64::NAN, 0.0, 1.0])],
            &["[1, 0]", "not finite"],
        )
        .error_at(
            [name, "svd"],
            (),
            vec![f64s(&[1, 2, 2], &[1.0, 1.0, 1.0, f64::INFINITY])],
            &["[0, 1] of matrix [1]", "finite"],
        )
        .first_at_multiplets()
        .done()
}

fn expected(a: &Array, full: bool) -> Vec<Array> {
    let a = a.cast(floating(a.dtype));
    let [m, n] = extents(&a).0;
    let (p, q) = if full { (m, n) } else { (m.min(n), m.min(n)) };
    vec![a.clone(), singular_values(&a), identities(&a, p), identities(&a, q)]
}

/// Whether the vectors are completed to bases; functions that do not depend on phases: U diag(s) Vh, s, and
/// U w U^H + U U^H and its like of V, with different weights w.
fn invariants() -> OpInfo {
    op(
        "svd_invariants",
        |&full: &bool, x: &[Var]| {
            let (u, s, vh) = if full { ops::svd_full(&x[0]) } else { ops::svd(&x[0]) };
            let k = s.extent(0);
            let (left, right) = (u.slice_axis(1, 0, k.clone()), vh.slice_axis(0, 0, k));
            let w = (build::iota(s.dtype(), &s.shape(), 0) + 1.0).expand_dims(&[0]);
            let v = right.adjoint();
            [
                (&left * &s.expand_dims(&[0])).matmul(&right),
                (&left * &w).matmul(&left.adjoint()) + u.matmul(&u.adjoint()),
                (&v * &w).matmul(&right) + vh.adjoint().matmul(&vh),
                s,
            ]
        },
        |&full, x| {
            let [m, n] = extents(&x[0]).0;
            let k = m.min(n);
            let w: Vec<f64> = (1..=k).map(|i| i as f64).collect();
            let side = |right: bool| {
                let n = if right { n } else { m };
                each_matrix(&x[0], [n, n], |a| {
                    let (u, _, v) = a.svd();
                    let q = if right { v } else { u };
                    let onto = if full { Matrix::identity(n) } else { q.times(&q.adjoint()) };
                    onto.plus(1.0, &q.scaled(&w).times(&q.adjoint()))
                })
            };
            vec![x[0].clone(), side(false), side(true), singular_values(&x[0])]
        },
    )
    // Vectors move by the inverse of the gap, 6 / (6 - 4), the products of three of them by more.
    .tolerance(bound(5, 4.0))
    .each(FLOATS, |o, d| {
        o.each([false, true], |o, full| {
            o.sample(full, vec![with_values(d, [3, 3], &[&[6.0, 4.0, 1.5]], 1)])
                .sample(full, vec![with_values(d, [4, 2], &[&[5.0, 2.0]], 2)])
                .sample(full, vec![with_values(d, [2, 3], &[&[5.0, 3.0]], 3)])
                .sample(full, vec![with_values(d, [1, 1], &[&[2.0]], 4)])
                .sample(full, vec![with_values(d, [3, 2], &[&[5.0, 2.0], &[3.0, 1.5]], 5)])
                .sample(full, vec![any(d, &[0, 2], 6)])
        })
    })
    .symbolic(false, &[&["n", "m"]])
    .symbolic(true, &[&["n", "m"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", COMPOSED)
    .error_of("svd", false, vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .error_of("svd_full", true, vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .done()
}

/// The projectors on the left and right vectors of the largest value, which occurs `r` times.
fn multiplet() -> OpInfo {
    op(
        "svd_multiplet",
        |&r: &usize, x: &[Var]| {
            let (u, _, vh) = ops::svd(&x[0]);
            let (u, vh) = (u.slice_axis(1, 0, r), vh.slice_axis(0, 0, r));
            [u.matmul(&u.adjoint()), vh.adjoint().matmul(&vh)]
        },
        |&r, x| {
            let [m, n] = extents(&x[0]).0;
            let onto = |q: Matrix| q.leading(r).times(&q.leading(r).adjoint());
            vec![
                each_matrix(&x[0], [m, m], |a| onto(a.svd().0)),
                each_matrix(&x[0], [n, n], |a| onto(a.svd().2)),
            ]
        },
    )
    // A projector moves by 2 s1 |dA| / (s1^2 - s2^2) in the spectral norm, which is sqrt(mn) times the largest
    // element at most: 10 sqrt(20) / (25 - 1) for the 4 x 5 matrix, whose largest element is below 3.2.
    .tolerance(bound(5, 6.0))
    .each(FLOATS, |o, d| {
        o.sample(2, vec![with_values(d, [3, 3], &[&[5.0, 5.0, 1.5]], 1)])
            .sample(2, vec![with_values(d, [4, 3], &[&[5.0, 5.0, 2.0]], 3)])
            .sample(3, vec![with_values(d, [4, 5], &[&[5.0, 5.0, 5.0, 1.0]], 5)])
            .sample(0, vec![any(d, &[0, 2], 7)])
    })
    .skip("rank_0", "a matrix is needed")
    .skip("second_order", "U, s and V do not hold what a second derivative inside a multiplet needs")
    .skip("surfaces", COMPOSED)
    .symbolic(1, &[&["n", "m"]])
    .error_of("svd", 1, vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .done()
}

fn values() -> OpInfo {
    let double =
        |d, n: usize| Array::from_fn(d, &[n, n], |i| Elem::real(if i[0] == i[1] { 2.0 } else { 0.0 }));
    let one = |d, n: usize| Array::from_fn(d, &[n, n], |i| Elem::Int((i[0] == i[1]) as i64));
    op(
        "svdvals",
        |_: &(), x: &[Var]| ops::svdvals(&x[0]),
        |_, x| singular_values(&x[0].cast(floating(x[0].dtype))),
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; svdvals()))
    // Values move as the matrix does.
    .tolerance(bound(5, 1.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![with_values(d, [3, 3], &[&[6.0, 4.0, 1.5]], 1)])
            .sample((), vec![with_values(d, [4, 2], &[&[5.0, 2.0]], 2)])
            .sample((), vec![with_values(d, [2, 3], &[&[5.0, 3.0]], 3)])
            .sample((), vec![any(d, &[1, 1], 4)])
            .sample((), vec![any(d, &[2, 0], 5)])
            .sample((), vec![any(d, &[0, 0], 6)])
            .sample((), vec![with_values(d, [2, 3], &[&[5.0, 2.0], &[3.0, 1.5]], 7)])
            .kink((), vec![with_values(d, [4, 4], &[&[1.0, 1.0, 1e-3, 0.0]], 8)])
    })
    .kink((), vec![any(I64, &[3, 2], 9)])
    .symbolic((), &[&["n", "m"]])
    .symbolic((), &[&["n", "m", "k"]])
    // The derivative of a sum of singular values, all equal, is U V^H.
    .each([F64, C64_], |o, d| {
        o.closed((), vec![double(d, 3)], f64s(&[3], &[1.0; 3]), vec![one(d, 3)]).closed(
            (),
            vec![double(d, 2).map(d, |e| Elem::real(-1.0).times(e))],
            f64s(&[2], &[0.5; 2]),
            vec![one(d, 2).map(d, |e| Elem::real(-0.5).times(e))],
        )
    })
    .skip("rank_0", "a matrix is needed")
    .error((), vec![any(F64, &[], 1)], &["0", "at least 2"])
    .first_at_multiplets()
    .done()
}

/// The sum of the singular values, which is smooth at multiplets.
fn nuclear_norm() -> OpInfo {
    op(
        "nuclear_norm",
        |_: &(), x: &[Var]| ops::svdvals(&x[0]).reduce_sum(Some(&[0])),
        |_, x| {
            let sums: Vec<_> = matrices(&x[0]).iter().map(|a| a.svd().1.iter().sum::<f64>().into()).collect();
            stack_scalars(x[0].dtype.real(), extents(&x[0]).1, &sums)
        },
    )
    // Values move as the matrix does.
    .tolerance(bound(5, 1.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![with_values(d, [3, 3], &[&[4.0, 4.0, 2.0]], 1)])
            .sample((), vec![with_values(d, [4, 2], &[&[3.0, 3.0]], 3)])
            .sample((), vec![with_values(d, [2, 3], &[&[3.0, 3.0], &[5.0, 2.0]], 5)])
            .sample((), vec![any(d, &[0, 2], 7)])
    })
    .symbolic((), &[&["n", "m"]])
    .skip("surfaces", COMPOSED)
    .error_of("svdvals", (), vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .done()
}

/// 1 / (s_j - s_i), 1 / (s_j + s_i) and 1 / s_i, with 0 in place of what has no meaning.
fn gaps() -> OpInfo {
    // Values beside vectors with these extents.
    let values = |d: DType, s: &[f64], [m, left]: [usize; 2], [right, n]: [usize; 2]| {
        vec![Array::reals(d.real(), &[s.len()], s), any(d, &[m, left], 1), any(d, &[right, n], 2)]
    };
    let square = move |d: DType, s: &[f64]| values(d, s, [s.len(); 2], [s.len(); 2]);
    let eye = |d, n: usize| Array::from_fn(d, &[n, n], |i| Elem::real((i[0] == i[1]) as u8 as f64));
    op(
        "singular_value_gaps",
        |_: &(), x: &[Var]| apply_n(&SingularValueGaps, &[&x[0], &x[1], &x[2]], 3),
        |_, x| {
            let (s, u, vh) = (&x[0], &x[1], &x[2]);
            let (d, k) = (s.dtype, s.shape[0]);
            let shape: Vec<usize> = std::iter::once(k).chain(s.shape.iter().copied()).collect();
            let beside = |at: &[usize], i: &[usize]| [at, &i[2..]].concat();
            let at = |k: usize, i: &[usize]| s.at(&beside(&[k], i)).re();
            let none = tenferro_tensor::C64::new(0.0, 0.0);
            let single = |j: usize, i: &[usize]| {
                let left =
                    (0..u.shape[0]).filter(|&k| j < u.shape[1] && u.at(&beside(&[k, j], i)).c() != none);
                let right =
                    (0..vh.shape[1]).filter(|&k| j < vh.shape[0] && vh.at(&beside(&[j, k], i)).c() != none);
                (j >= u.shape[1] || left.count() == 1) && (j >= vh.shape[0] || right.count() == 1)
            };
            let eps = if d == F32 { f32::EPSILON as f64 } else { f64::EPSILON };
            let order = u.shape[0].max(vh.shape[1]) as f64;
            vec![
                Array::from_fn(d, &shape, |i| {
                    let (a, b) = (at(i[0], i), at(i[1], i));
                    let largest = (0..k).map(|k| at(k, i)).fold(0.0, f64::max);
                    let gap = (b - a).abs();
                    let sound = gap > eps.sqrt() * 0.5 * (a + b) && gap > 10.0 * order * eps * largest;
                    let usable = gap > 0.0 && (sound || single(i[0], i) && single(i[1], i));
                    Elem::real(if usable { 1.0 / (b - a) } else { 0.0 })
                }),
                Array::from_fn(d, &shape, |i| {
                    let sum = at(i[0], i) + at(i[1], i);
                    Elem::real(if sum == 0.0 { 0.0 } else { 1.0 / sum })
                }),
                s.map(d, |e| Elem::real(if e.re() == 0.0 { 0.0 } else { 1.0 / e.re() })),
            ]
        },
    )
    .each(FLOATS, |o, d| {
        o.sample((), square(d, &[4.0, 2.5, 1.0]))
            .sample((), square(d, &[2.0]))
            .sample((), square(d, &[]))
            .sample((), values(d, &[4.0, 2.5], [3, 2], [2, 4]))
            // A square U of a tall matrix, and a square V of a wide one.
            .sample((), values(d, &[4.0, 2.5, 0.5], [3, 3], [2, 2]))
            .sample((), values(d, &[4.0, 2.5, 0.5], [2, 2], [3, 3]))
            .sample(
                (),
                vec![
                    Array::reals(d.real(), &[2, 2], &[3.0, 1.0, 5.0, 2.5]),
                    any(d, &[2, 2, 2], 2),
                    any(d, &[2, 2, 2], 3),
                ],
            )
            // Equal values, nearly equal ones, and zeros up to rounding.
            .kink((), square(d, &[2.0, 2.0, 1.0, 1.0 - 1e-12, 1e-17, 0.0]))
            // Nearly equal ones of a diagonal matrix.
            .kink(
                (),
                vec![
                    Array::reals(d.real(), &[3], &[16777218.0, 16777218.0, 16777216.0]),
                    eye(d, 3),
                    eye(d, 3),
                ],
            )
    })
    .symbolic((), &[&["n"], &["m", "n"], &["n", "k"]])
    .skip("rank_0", "an axis is needed")
    .skip("surfaces", IN_RULES)
    .error((), vec![any(I64, &[2], 1), any(F64, &[2, 2], 2), any(F64, &[2, 2], 3)], &["i64", "f32 | f64"])
    .error((), vec![any(F64, &[2], 1), any(F64, &[2], 2), any(F64, &[2, 2], 3)], &["1", "at least 2"])
    .error((), vec![any(F64, &[3], 1), any(F64, &[3, 2], 2), any(F64, &[2, 2], 3)], &["f64[3]", "f64[2]"])
    .error((), vec![any(F32, &[2], 1), any(F64, &[2, 2], 2), any(F64, &[2, 2], 3)], &["f32[2]", "f64[2]"])
    .done()
}

/// 1 / Re of the component of each column that its phase is chosen by.
fn phase_weights() -> OpInfo {
    op(
        "phase_weights",
        |_: &(), x: &[Var]| apply1(&PhaseWeights, &[&x[0]]),
        |_, x| {
            let v = &x[0];
            Array::from_fn(v.dtype.real(), &v.shape, |i| {
                let component = |k: usize| v.at(&[&[k], &i[1..]].concat()).c();
                let largest = (0..v.shape[0]).map(|k| component(k).norm()).fold(0.0, f64::max);
                let held = (0..v.shape[0]).find(|&k| component(k).norm() >= 0.999 * largest);
                let x = component(i[0]).re;
                Elem::real(if held == Some(i[0]) && x != 0.0 { 1.0 / x } else { 0.0 })
            })
        },
    )
    // Of components near 1, the reciprocal moves by their inverse squares.
    .tolerance(bound(5, 16.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![any(d, &[3, 3], 1)])
            .sample((), vec![any(d, &[4, 2, 2], 2)])
            .sample((), vec![any(d, &[0, 3], 3)])
            .sample((), vec![any(d, &[3, 0], 4)])
            // The first of nearly equal ones, a larger one, and none.
            .kink((), vec![Array::reals(d, &[3, 3], &[0.5, -0.9999, 1.0, 0.5, -1.0, 1.01, 0.0, 0.0, 0.0])])
    })
    .symbolic((), &[&["n", "m"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", IN_RULES)
    .error((), vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .error((), vec![any(I64, &[2, 2], 1)], &["i64", "f32 | f64"])
    .done()
}
