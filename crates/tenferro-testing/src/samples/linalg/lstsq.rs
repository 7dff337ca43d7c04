//! Least squares.

use super::*;
use crate::{
    array::Elem,
    info::{op, surface},
    matrix::{stack_vectors, vectors},
};
use tenferro_core_ops::{Real, Var, apply_n, apply1};
use tenferro_linalg::{
    LeastSquares, LinalgOps, LinalgRecorded, NumericalRank, Tolerance, TypedLinalgOps, ops,
};

pub(super) fn list() -> Vec<OpInfo> {
    vec![lstsq(), smooth(), least_squares(), numerical_rank()]
}

const EXACT: Tolerance = Tolerance { rtol: None, atol: 0.0 };
const ROUGH: Tolerance = Tolerance { rtol: Some(0.1), atol: 0.0 };

/// U, the reciprocals of the singular values that are not small, and V.
fn parts(a: &Matrix, rtol: f64) -> (Matrix, Vec<f64>, Matrix) {
    let (u, s, v) = a.svd();
    let w = s.iter().map(|&x| if x > rtol * s[0] && x > 0.0 { 1.0 / x } else { 0.0 }).collect();
    (u, w, v)
}

/// V diag(w) U^H.
fn inverse(a: &Matrix, rtol: f64) -> Matrix {
    let (u, w, v) = parts(a, rtol);
    v.scaled(&w).times(&u.adjoint())
}

/// Larger than the rounding of every dtype, and smaller than any singular value of a sample.
fn tolerance(o: &Tolerance) -> f64 {
    o.rtol.unwrap_or(1e-5)
}

/// X, residuals, rank and singular values.
fn expected(o: &Tolerance, x: &[Array]) -> Vec<Array> {
    let d = floating(x[0].dtype);
    let (a, b) = (x[0].cast(d), x[1].cast(d));
    let vector = b.rank() == 1;
    let b = if vector { b.reshape(&[b.shape[0], 1]) } else { b };
    // A right-hand side without batch axes is the same for every matrix.
    let b = if b.rank() == 2 && a.rank() > 2 {
        let long = b.reshape(&[&b.shape[..], &vec![1; a.rank() - 2]].concat());
        long.broadcast(&[&b.shape[..], &a.shape[2..]].concat())
    } else {
        b
    };
    let ([m, n], batch, columns) = (extents(&a).0, extents(&a).1, b.shape[1]);
    let solution = each_pair(&a, &b, [n, columns], |a, b| inverse(a, tolerance(o)).times(b));
    let all = || matrices(&a).into_iter().zip(matrices(&b)).zip(matrices(&solution));
    let squares: Vec<Vec<f64>> = all()
        .map(|((a, b), x)| {
            let off = a.times(&x).plus(-1.0, &b);
            (0..columns).map(|j| (0..m).map(|i| off.at(i, j).norm_sqr()).sum()).collect()
        })
        .collect();
    let s: Vec<Vec<f64>> = matrices(&a).iter().map(|a| a.svd().1).collect();
    let rank = |a: &Matrix| parts(a, tolerance(o)).1.iter().filter(|&&w| w > 0.0).count() as i64;
    let ranks: Vec<i64> = matrices(&a).iter().map(rank).collect();
    let squares = stack_vectors(d.real(), columns, batch, &squares);
    let flat = vector && batch.is_empty();
    vec![
        if flat { solution.reshape(&[n]) } else { solution },
        if flat { squares.reshape(&[]) } else { squares },
        Array::ints(I64, batch, &ranks),
        stack_vectors(d.real(), m.min(n), batch, &s),
    ]
}

/// With the largest square of `b`, at least 1, added to the residuals, which otherwise are nothing but rounding
/// where there is a solution.
fn beside_squares(b: &Array, mut y: Vec<Array>) -> Vec<Array> {
    let largest = b.data.iter().map(|e| e.c().norm_sqr()).fold(1.0, f64::max);
    y[1] = y[1].map(y[1].dtype, |e| e.plus(Elem::real(largest)));
    y
}

fn lstsq() -> OpInfo {
    op(
        "lstsq",
        |o: &Tolerance, x: &[Var]| <[Var; 4]>::from(ops::lstsq(&x[0], &x[1], *o)),
        |o, x| beside_squares(&x[1], expected(o, x)),
    )
    .observe(|_, x, y| beside_squares(&x[1], y.to_vec()))
    .surface(surface!(Tolerance; LinalgOps, TypedLinalgOps; lstsq(1) |o| *o))
    .promotes()
    // The square of the condition, 2.
    .tolerance(bound(5, 4.0))
    .each(FLOATS, |o, d| {
        let of =
            |shape: [usize; 2], s: &[f64], b: &[usize]| vec![with_values(d, shape, &[s], 1), any(d, b, 2)];
        o.sample(EXACT, of([3, 3], &[2.0, 1.5, 1.0], &[3, 2]))
            .sample(EXACT, of([4, 2], &[2.0, 1.0], &[4]))
            .sample(EXACT, of([2, 4], &[2.0, 1.0], &[2, 1]))
            .sample(EXACT, vec![with_values(d, [3, 2], &[&[2.0, 1.0], &[1.5, 1.0]], 3), any(d, &[3, 1], 4)])
            .sample(EXACT, of([0, 2], &[], &[0, 2]))
            .sample(EXACT, of([2, 0], &[], &[2]))
            .sample(EXACT, of([2, 2], &[2.0, 1.0], &[2, 0]))
            .kink(EXACT, of([4, 3], &[2.0, 1.0, 0.0], &[4, 2]))
            .kink(EXACT, of([2, 2], &[0.0, 0.0], &[2]))
            .kink(ROUGH, of([3, 3], &[2.0, 1.0, 0.05], &[3, 1]))
    })
    .kink(EXACT, vec![Array::ints(I64, &[2, 1], &[1, 1]), Array::ints(I64, &[2], &[1, 3])])
    .symbolic(EXACT, &[&["n", "m"], &["n", "k"]])
    .symbolic(EXACT, &[&["n", "m"], &["n"]])
    .skip("rank_0", "a matrix is needed")
    .error(EXACT, vec![any(F64, &[2, 2], 1), any(F64, &[3], 2)], &["3", "2"])
    .error(EXACT, vec![any(F64, &[2], 1), any(F64, &[2], 2)], &["1", "at least 2"])
    .error(EXACT, vec![any(F64, &[2, 2, 2], 1), any(F64, &[2, 1, 3], 2)], &["3", "2"])
    .error(
        Tolerance::relative(f64::NAN),
        vec![any(F64, &[2, 2], 1), any(F64, &[2], 2)],
        &["NaN", "at least 0"],
    )
    .error_at(
        ["lstsq", "svd"],
        EXACT,
        vec![f64s(&[1, 1], &[f64::NAN]), any(F64, &[1], 2)],
        &["[0, 0]", "not finite"],
    )
    .done()
}

/// The differentiable results alone, of a product, whose rank does not depend on its factors.
fn smooth() -> OpInfo {
    op(
        "lstsq_of_product",
        |_: &(), x: &[Var]| {
            let (y, squares, _, _) = ops::lstsq(&x[0].matmul(&x[1]), &x[2], EXACT);
            [y, squares]
        },
        |_, x| {
            let [m, _] = extents(&x[0]).0;
            let a = each_pair(&x[0], &x[1], [m, x[1].shape[1]], Matrix::times);
            expected(&EXACT, &[a, x[2].clone()])[..2].to_vec()
        },
    )
    // The square of the condition, which is that of two factors.
    .tolerance(bound(5, 16.0))
    .each(FLOATS, |o, d| {
        let of = |[m, r, n]: [usize; 3]| {
            vec![
                with_values(d, [m, r], &[&[2.0, 1.0][..r]], 1),
                with_values(d, [r, n], &[&[1.5, 1.0][..r]], 3),
                any(d, &[m, 2], 5),
            ]
        };
        o.sample((), of([4, 2, 3]))
            .sample((), of([3, 1, 3]))
            .sample((), of([3, 2, 2]))
            .sample((), of([3, 0, 2]))
            // Equal singular values.
            .sample(
                (),
                vec![
                    with_values(d, [3, 2], &[&[2.0, 2.0]], 6),
                    with_values(d, [2, 2], &[&[1.0, 1.0]], 8),
                    any(d, &[3, 1], 10),
                ],
            )
    })
    .symbolic((), &[&["n", "1"], &["1", "m"], &["n", "k"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", COMPOSED)
    .error_of(
        "lstsq",
        (),
        vec![any(F64, &[2, 2], 1), any(F64, &[2, 2], 1), any(F64, &[3, 1], 2)],
        &["3", "2"],
    )
    .done()
}

/// A^+ B, or A^+H B, from A, U, the reciprocals, Vh and B.
fn least_squares() -> OpInfo {
    op(
        "least_squares",
        |&adjoint: &bool, x: &[Var]| apply1(&LeastSquares { adjoint }, &x.iter().collect::<Vec<_>>()),
        |&adjoint, x| {
            let rows = if adjoint { x[0].shape[0] } else { x[0].shape[1] };
            each_pair(&x[0], &x[4], [rows, x[4].shape[1]], |a, b| {
                let p = inverse(a, 1e-5);
                if adjoint { p.adjoint().times(b) } else { p.times(b) }
            })
        },
    )
    // The condition.
    .tolerance(bound(5, 4.0))
    .each(FLOATS, |o, d| {
        o.each([false, true], |o, adjoint| {
            let operands = |a: Array| {
                let ([m, n], batch) = (extents(&a).0, extents(&a).1.to_vec());
                let k = m.min(n);
                let w: Vec<Vec<f64>> = matrices(&a).iter().map(|a| parts(a, 1e-5).1).collect();
                let rows = if adjoint { n } else { m };
                let b = any(d, &[&[rows, 2], &batch[..]].concat(), 7);
                vec![
                    a.clone(),
                    each_matrix(&a, [m, k], |a| parts(&a, 1e-5).0.leading(k)),
                    stack_vectors(d.real(), k, &batch, &w),
                    each_matrix(&a, [k, n], |a| parts(&a, 1e-5).2.leading(k).adjoint()),
                    b,
                ]
            };
            o.sample(adjoint, operands(with_values(d, [3, 3], &[&[2.0, 1.5, 1.0]], 1)))
                .sample(adjoint, operands(with_values(d, [4, 2], &[&[2.0, 1.0]], 2)))
                .sample(adjoint, operands(with_values(d, [2, 3], &[&[2.0, 1.0], &[1.5, 1.0]], 3)))
                .sample(adjoint, operands(any(d, &[0, 2], 4)))
        })
    })
    .symbolic(false, &[&["n", "n"], &["n", "n"], &["n"], &["n", "n"], &["n", "m"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", IN_RULES)
    .skip("jvp", HINTS)
    .skip("second_order", HINTS)
    .skip("decomposition", HINTS)
    .error_of(
        "lstsq",
        false,
        vec![
            any(F64, &[2, 2], 1),
            any(F64, &[2, 2], 2),
            any(F64, &[2], 3),
            any(F64, &[2, 2], 4),
            any(F64, &[3, 1], 5),
        ],
        &["3", "2"],
    )
    .error_of(
        "lstsq",
        true,
        vec![
            any(F64, &[2, 2], 1),
            any(F64, &[2, 1], 2),
            any(F64, &[2], 3),
            any(F64, &[2, 2], 4),
            any(F64, &[2, 1], 5),
        ],
        &["f64[2, 1]", "f64[2, 2]"],
    )
    .done()
}

/// c / s, or 0, and the number of those that are not.
fn numerical_rank() -> OpInfo {
    let of = |rtol: f64| NumericalRank { rtol: Some(Real(rtol)), atol: Real(0.0) };
    op(
        "numerical_rank",
        |op: &NumericalRank, x: &[Var]| apply_n(op, &[&x[0], &x[1], &x[2]], 2),
        |op, x| {
            let eps = if x[1].dtype == F32 { f32::EPSILON as f64 } else { f64::EPSILON };
            let order = x[0].shape[0].max(x[0].shape[1]) as f64;
            let rtol = op.rtol.map_or(order * eps, |rtol| rtol.0);
            let atol = op.atol.0;
            let kept = |s: &Vec<f64>, c: f64| -> Vec<f64> {
                s.iter().map(|&x| if x > rtol * s[0] && x > c * atol { c / x } else { 0.0 }).collect()
            };
            let w: Vec<Vec<f64>> =
                vectors(&x[1]).iter().zip(&x[2].data).map(|(s, c)| kept(s, c.re())).collect();
            let ranks: Vec<i64> = w.iter().map(|w| w.iter().filter(|&&w| w > 0.0).count() as i64).collect();
            let batch = extents(&x[0]).1;
            vec![stack_vectors(x[1].dtype, x[1].shape[0], batch, &w), Array::ints(I64, batch, &ranks)]
        },
    )
    .order(0)
    .each(FLOATS, |o, d| {
        let two = |a: &[usize], s: &[f64]| {
            let shape = [&[a[0].min(a[1])], &a[2..]].concat();
            let c =
                Array::from_fn(d.real(), &a[2..], |i| Elem::real([1.0, 4.0][i.first().map_or(0, |i| i % 2)]));
            vec![any(d, a, 1), Array::reals(d.real(), &shape, s), c]
        };
        o.sample(of(0.2), two(&[3, 4], &[4.0, 1.0, 0.5]))
            .sample(NumericalRank { rtol: None, atol: Real(0.0) }, two(&[2, 2], &[4.0, 1e-20]))
            .sample(NumericalRank { rtol: None, atol: Real(0.5) }, two(&[2, 2, 2], &[4.0, 1.0, 4.0, 1.0]))
            .sample(of(0.0), two(&[2, 3, 2], &[4.0, 0.0, 0.0, 0.0]))
            .sample(of(0.1), two(&[0, 2], &[]))
    })
    .symbolic(of(0.1), &[&["n", "n"], &["n"], &[]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", IN_RULES)
    .error(of(0.1), vec![any(F64, &[2, 2], 1), any(F64, &[3], 2), any(F64, &[], 3)], &["f64[3]", "f64[2]"])
    .error(of(0.1), vec![any(F64, &[2], 1), any(F64, &[2], 2), any(F64, &[], 3)], &["1", "at least 2"])
    .error(of(0.1), vec![any(F64, &[2, 2], 1), any(F64, &[2], 2), any(F64, &[1], 3)], &["f64[1]", "f64[]"])
    .done()
}
