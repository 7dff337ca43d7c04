//! Norms, condition numbers and ranks.

use super::*;
use crate::{
    array::{Elem, indices},
    info::{op, surface},
    matrix::stack_scalars,
};
use tenferro_core_ops::Var;
use tenferro_linalg::{LinalgOps, LinalgRecorded, MatrixNorm, Tolerance, TypedLinalgOps, VectorNorm, ops};

pub(super) fn list() -> Vec<OpInfo> {
    vec![vector_norm(), matrix_norm(), cond(), matrix_rank()]
}

/// Numbers with parts between 0.3 and 1.
fn away_from_zero(dtype: DType, shape: &[usize], seed: u64) -> Array {
    Array::uniform(dtype, shape, seed, 0.3, 1.0)
}

fn along(p: f64, axes: &[usize]) -> VectorNorm {
    VectorNorm { p, axes: Some(axes.to_vec()), keepdims: false }
}

/// The p-norm of moduli.
fn of_moduli(p: f64, x: &[f64]) -> f64 {
    if p == 0.0 {
        x.iter().filter(|&&x| x != 0.0).count() as f64
    } else if p.is_infinite() {
        x.iter().copied().reduce(if p > 0.0 { f64::max } else { f64::min }).expect("some elements")
    } else {
        x.iter().map(|x| x.powf(p)).sum::<f64>().powf(1.0 / p)
    }
}

fn vector_norm() -> OpInfo {
    let reference = |norm: &VectorNorm, x: &[Array]| {
        let x = x[0].cast(floating(x[0].dtype));
        let over = |i: &usize| norm.axes.as_ref().is_none_or(|a| a.contains(i));
        let (sum, kept): (Vec<usize>, Vec<usize>) = (0..x.rank()).partition(over);
        let pick = |axes: &[usize]| axes.iter().map(|&a| x.shape[a]).collect::<Vec<_>>();
        let y = Array::from_fn(x.dtype.real(), &pick(&kept), |k| {
            let at = |s: Vec<usize>| {
                let mut i = vec![0; x.rank()];
                kept.iter().zip(k).for_each(|(&a, &v)| i[a] = v);
                sum.iter().zip(s).for_each(|(&a, v)| i[a] = v);
                x.at(&i).c().norm()
            };
            Elem::real(of_moduli(norm.p, &indices(&pick(&sum)).map(at).collect::<Vec<_>>()))
        });
        let stay: Vec<usize> = (0..x.rank()).map(|i| if over(&i) { 1 } else { x.shape[i] }).collect();
        if norm.keepdims { y.reshape(&stay) } else { y }
    };
    let all = VectorNorm::from;
    let row = |x: &[f64]| vec![f64s(&[x.len()], x)];
    let unit = || Array::scalar(F64, 1.0);
    let inf = f64::INFINITY;
    op("vector_norm", |norm: &VectorNorm, x: &[Var]| ops::vector_norm(&x[0], norm), reference)
        .surface(surface!(VectorNorm; LinalgOps, TypedLinalgOps; vector_norm() |norm| norm))
        .overlooks(|norm, _, _| norm.p == 0.0, "all that is not 0 counts")
        // Powers, whose rounding errors are multiplied by p or 1 / p.
        .tolerance(32.0)
        .each(FLOATS, |o, d| {
            o.each([2.0, 1.0, 3.0, 4.0, 0.5, 2.5, -1.0, -2.0, inf, -inf], |o, p| {
                o.sample(all(p), vec![away_from_zero(d, &[5], 1)])
            })
            .sample(along(2.0, &[0]), vec![any(d, &[3, 2], 2)])
            .sample(along(3.0, &[1]), vec![away_from_zero(d, &[2, 3], 3)])
            .sample(along(2.0, &[2, 0]), vec![any(d, &[2, 3, 2], 4)])
            .sample(VectorNorm { keepdims: true, ..along(2.0, &[1]) }, vec![any(d, &[2, 3], 5)])
            .sample(along(2.0, &[]), vec![away_from_zero(d, &[2], 6)])
            .sample(all(2.0), vec![away_from_zero(d, &[], 7)])
            .sample(along(3.0, &[1]), vec![any(d, &[0, 3], 8)])
            .kink(all(0.0), vec![Array::reals(d, &[4], &[0.0, 2.0, 0.0, -1.0])])
            .kink(all(2.0), vec![any(d, &[0, 3], 9)])
            .kink(along(3.0, &[0]), vec![any(d, &[0, 2], 9)])
            .kink(all(3.0), vec![Array::reals(d, &[2], &[0.0, 0.0])])
            // An element that is 0 is no kink for p = 2.
            .sample(all(2.0), vec![Array::reals(d, &[3], &[1.0, 0.0, -2.0])])
            .sample(all(4.0), vec![Array::reals(d, &[3], &[1.0, 0.0, -2.0])])
        })
        .kink(all(2.0), vec![any(I64, &[3], 10)])
        .value(all(2.0), row(&[3e300, -4e300]), Array::scalar(F64, 5e300))
        .value(all(2.0), row(&[3e-300, -4e-300]), Array::scalar(F64, 5e-300))
        .value(all(3.0), row(&[1e-150, -1e-150]), Array::scalar(F64, 1.259921049894873e-150))
        .value(all(-1.0), row(&[2e-300, 2e-300]), Array::scalar(F64, 1e-300))
        .value(all(-2.0), row(&[0.0, 1.0]), Array::scalar(F64, 0.0))
        .value(all(2.0), row(&[inf, 1.0]), Array::scalar(F64, inf))
        .value(all(2.0), row(&[f64::NAN, 1.0]), Array::scalar(F64, f64::NAN))
        .closed(all(2.0), row(&[3.0, -4.0]), unit(), row(&[0.6, -0.8]))
        .each([2.0, 1.0, 3.0, 4.0, 0.5, -1.0, inf], |o, p| {
            o.closed(all(p), row(&[0.0, 0.0]), unit(), row(&[0.0, 0.0]))
        })
        .closed(all(1.0), row(&[2.0, 0.0, -3.0]), unit(), row(&[1.0, 0.0, -1.0]))
        .closed(all(3.0), row(&[0.0, -2.0]), unit(), row(&[0.0, -1.0]))
        .closed(all(0.5), row(&[0.0, 2.0]), unit(), row(&[0.0, 1.0]))
        .closed(all(inf), row(&[-2.0, 1.0, 2.0]), unit(), row(&[-0.5, 0.0, 0.5]))
        .closed(all(-inf), row(&[2.0, -1.0, 1.0, 1.0]), Array::scalar(F64, 3.0), row(&[0.0, -1.0, 1.0, 1.0]))
        .symbolic(all(2.0), &[&["n", "m"]])
        .symbolic(along(3.0, &[0]), &[&["n", "2", "m"]])
        .symbolic(along(-2.0, &[1]), &[&["n", "m"]])
        .symbolic(VectorNorm { keepdims: true, ..along(2.5, &[1]) }, &[&["n", "m"]])
        .symbolic(along(inf, &[1]), &[&["n", "m"]])
        .error(along(2.0, &[2]), vec![any(F64, &[2, 3], 1)], &["2"])
        .error(along(2.0, &[0, 0]), vec![any(F64, &[2, 3], 1)], &["repeated", "distinct"])
        .error(all(f64::NAN), vec![any(F64, &[2], 1)], &["NaN", "a number"])
        .error(all(inf), vec![any(F64, &[0], 1)], &["0", "at least 1"])
        .done()
}

const NORMS: [MatrixNorm; 8] = [
    MatrixNorm::Frobenius,
    MatrixNorm::Nuclear,
    MatrixNorm::One,
    MatrixNorm::MinusOne,
    MatrixNorm::Two,
    MatrixNorm::MinusTwo,
    MatrixNorm::Infinity,
    MatrixNorm::MinusInfinity,
];

fn of_matrix(norm: MatrixNorm, a: &Matrix) -> f64 {
    let columns = |a: &Matrix| {
        let sum = |j| (0..a.rows).map(|i| a.at(i, j).norm()).sum();
        (0..a.columns).map(sum).collect::<Vec<f64>>()
    };
    let (p, x) = match norm {
        MatrixNorm::Frobenius => (2.0, a.svd().1),
        MatrixNorm::Nuclear => (1.0, a.svd().1),
        MatrixNorm::Two => (f64::INFINITY, a.svd().1),
        MatrixNorm::MinusTwo => (f64::NEG_INFINITY, a.svd().1),
        MatrixNorm::One => (f64::INFINITY, columns(a)),
        MatrixNorm::MinusOne => (f64::NEG_INFINITY, columns(a)),
        MatrixNorm::Infinity => (f64::INFINITY, columns(&a.adjoint())),
        MatrixNorm::MinusInfinity => (f64::NEG_INFINITY, columns(&a.adjoint())),
    };
    of_moduli(p, &x)
}

/// A number for every matrix of a stack, of the real dtype.
fn each_number(a: &Array, f: impl Fn(Matrix) -> f64) -> Array {
    let a = a.cast(floating(a.dtype));
    let parts: Vec<_> = matrices(&a).into_iter().map(|a| f(a).into()).collect();
    stack_scalars(a.dtype.real(), extents(&a).1, &parts)
}

fn matrix_norm() -> OpInfo {
    let square = |x: &[f64]| vec![f64s(&[2, 2], x)];
    let unit = || Array::scalar(F64, 1.0);
    op(
        "matrix_norm",
        |&norm: &MatrixNorm, x: &[Var]| ops::matrix_norm(&x[0], norm),
        |&norm, x| each_number(&x[0], |a| of_matrix(norm, &a)),
    )
    .surface(surface!(MatrixNorm; LinalgOps, TypedLinalgOps; matrix_norm() |norm| *norm))
    // They move as the matrix does.
    .tolerance(bound(12, 1.0))
    .each(FLOATS, |o, d| {
        o.each(NORMS, |o, norm| {
            o.sample(norm, vec![with_values(d, [3, 3], &[&[6.0, 4.0, 1.5]], 1)])
                .sample(norm, vec![with_values(d, [4, 2], &[&[5.0, 2.0]], 3)])
                .sample(norm, vec![with_values(d, [2, 3], &[&[5.0, 2.0], &[3.0, 1.5]], 5)])
                .sample(norm, vec![away_from_zero(d, &[1, 1], 7)])
        })
        .sample(MatrixNorm::Frobenius, vec![any(d, &[2, 2, 0], 8)])
        .each([MatrixNorm::Frobenius, MatrixNorm::Nuclear], |o, norm| {
            o.kink(norm, vec![any(d, &[0, 2], 8)]).kink(norm, vec![any(d, &[2, 0], 9)])
        })
        .kink(MatrixNorm::One, vec![any(d, &[0, 2], 8)])
        .kink(MatrixNorm::Infinity, vec![any(d, &[2, 0], 8)])
        // Multiplets, where the nuclear norm is smooth.
        .sample(MatrixNorm::Nuclear, vec![with_values(d, [3, 3], &[&[4.0, 4.0, 2.0]], 10)])
    })
    .kink(MatrixNorm::Nuclear, vec![any(I64, &[3, 2], 11)])
    .value(MatrixNorm::Frobenius, square(&[3e300, 0.0, 0.0, -4e300]), Array::scalar(F64, 5e300))
    .each([MatrixNorm::Frobenius, MatrixNorm::Nuclear, MatrixNorm::Two], |o, norm| {
        o.closed(norm, square(&[0.0; 4]), unit(), square(&[0.0; 4]))
    })
    .closed(MatrixNorm::Nuclear, square(&[2.0, 0.0, 0.0, -2.0]), unit(), square(&[1.0, 0.0, 0.0, -1.0]))
    .closed(MatrixNorm::Nuclear, square(&[2.0, 0.0, 0.0, 0.0]), unit(), square(&[1.0, 0.0, 0.0, 0.0]))
    .closed(MatrixNorm::Two, square(&[2.0, 0.0, 0.0, -2.0]), unit(), square(&[0.5, 0.0, 0.0, -0.5]))
    .closed(MatrixNorm::One, square(&[1.0, -2.0, 3.0, 0.0]), unit(), square(&[0.5, -0.5, 0.5, 0.0]))
    .symbolic(MatrixNorm::Frobenius, &[&["n", "m"]])
    .symbolic(MatrixNorm::Nuclear, &[&["n", "m", "k"]])
    .symbolic(MatrixNorm::Two, &[&["n", "m"]])
    .symbolic(MatrixNorm::MinusInfinity, &[&["n", "m"]])
    .error(MatrixNorm::One, vec![any(F64, &[3], 1)], &["1", "at least 2"])
    .error_at(
        ["matrix_norm", "svdvals"],
        MatrixNorm::Two,
        vec![f64s(&[2, 2], &[1.0, f64::NAN, 0.0, 1.0])],
        &["[1, 0]", "not finite"],
    )
    .done()
}

fn cond() -> OpInfo {
    let reference = |&norm: &MatrixNorm, x: &[Array]| {
        each_number(&x[0], |a| match norm {
            MatrixNorm::Two => of_matrix(MatrixNorm::Two, &a) / of_matrix(MatrixNorm::MinusTwo, &a),
            MatrixNorm::MinusTwo => of_matrix(MatrixNorm::MinusTwo, &a) / of_matrix(MatrixNorm::Two, &a),
            norm => of_matrix(norm, &a) * of_matrix(norm, &a.solve(&Matrix::identity(a.rows))),
        })
    };
    let infinite = || Array::scalar(F64, f64::INFINITY);
    op("cond", |&norm: &MatrixNorm, x: &[Var]| ops::cond(&x[0], norm), reference)
        .surface(surface!(MatrixNorm; LinalgOps, TypedLinalgOps; cond() |norm| *norm))
        // The condition of the condition is itself, 4 in the 2-norm; of the random symbolic ones, below 300.
        .tolerance(bound(5, 300.0))
        .each(FLOATS, |o, d| {
            o.each(NORMS, |o, norm| {
                o.sample(norm, vec![with_values(d, [3, 3], &[&[6.0, 4.0, 1.5]], 1)])
                    .sample(norm, vec![with_values(d, [2, 2], &[&[5.0, 2.0], &[3.0, 1.5]], 3)])
            })
            .each([MatrixNorm::Two, MatrixNorm::MinusTwo], |o, norm| {
                o.sample(norm, vec![with_values(d, [4, 2], &[&[5.0, 2.0]], 5)])
                    .sample(norm, vec![with_values(d, [2, 3], &[&[5.0, 2.0]], 7)])
            })
            .sample(MatrixNorm::One, vec![any(d, &[2, 2, 0], 9)])
        })
        .kink(MatrixNorm::Two, vec![Array::ints(I64, &[2, 2], &[3, 1, 0, 2])])
        .value(MatrixNorm::Two, vec![f64s(&[2, 2], &[0.0; 4])], infinite())
        .value(MatrixNorm::MinusTwo, vec![f64s(&[2, 2], &[2.0, 0.0, 0.0, 0.0])], Array::scalar(F64, 0.0))
        .each([MatrixNorm::One, MatrixNorm::Infinity, MatrixNorm::Frobenius], |o, norm| {
            let singular = || f64s(&[2, 2], &[1.0, 2.0, 2.0, 4.0]);
            o.value(norm, vec![singular()], infinite()).closed(
                norm,
                vec![singular()],
                Array::scalar(F64, 1.0),
                vec![f64s(&[2, 2], &[0.0; 4])],
            )
        })
        .symbolic(MatrixNorm::Two, &[&["n", "m"]])
        .symbolic(MatrixNorm::Nuclear, &[&["n", "n"]])
        .symbolic(MatrixNorm::One, &[&["n", "n", "k"]])
        .error(MatrixNorm::One, vec![any(F64, &[2, 3], 1)], &["[2, 3]", "square"])
        .error(MatrixNorm::Two, vec![any(F64, &[3], 1)], &["1", "at least 2"])
        .done()
}

fn matrix_rank() -> OpInfo {
    let reference = |t: &Tolerance, x: &[Array]| {
        let a = x[0].cast(floating(x[0].dtype));
        let eps = if a.dtype.real() == F32 { f32::EPSILON as f64 } else { f64::EPSILON };
        let usual = if t.atol > 0.0 { 0.0 } else { a.shape[0].max(a.shape[1]) as f64 * eps };
        let ranks: Vec<i64> = (matrices(&a).iter())
            .map(|a| {
                let s = a.svd().1;
                let floor = t.atol.max(t.rtol.unwrap_or(usual) * s.first().copied().unwrap_or(0.0));
                s.iter().filter(|&&s| s > floor).count() as i64
            })
            .collect();
        Array::ints(I64, extents(&a).1, &ranks)
    };
    let usual = Tolerance::default();
    op("matrix_rank", |&t: &Tolerance, x: &[Var]| ops::matrix_rank(&x[0], t), reference)
        .surface(surface!(Tolerance; LinalgOps, TypedLinalgOps; matrix_rank() |t| *t))
        .order(0)
        .each(FLOATS, |o, d| {
            o.sample(usual, vec![any(d, &[3, 3], 1)])
                .sample(usual, vec![with_values(d, [3, 4], &[&[2.0, 1.0, 0.1]], 2)])
                .sample(
                    Tolerance::relative(0.2),
                    vec![with_values(d, [3, 3], &[&[2.0, 0.5, 0.3], &[2.0, 1.0, 0.5]], 3)],
                )
                .sample(
                    Tolerance { rtol: None, atol: 0.4 },
                    vec![with_values(d, [3, 3], &[&[2.0, 0.5, 0.3]], 3)],
                )
                .sample(usual, vec![any(d, &[0, 3], 5)])
                .sample(usual, vec![any(d, &[2, 0], 6)])
        })
        .value(usual, vec![f64s(&[2, 2], &[0.0; 4])], Array::ints(I64, &[], &[0]))
        .value(usual, vec![f64s(&[2, 2], &[1.0, 2.0, 2.0, 4.0])], Array::ints(I64, &[], &[1]))
        .value(usual, vec![Array::ints(I64, &[2, 2], &[1, 2, 2, 5])], Array::ints(I64, &[], &[2]))
        .symbolic(usual, &[&["n", "m"]])
        .symbolic(Tolerance::relative(0.1), &[&["n", "m", "k"]])
        .error(Tolerance::relative(-1.0), vec![any(F64, &[2, 2], 1)], &["rtol", "-1", "at least 0"])
        .error(Tolerance { rtol: None, atol: f64::NAN }, vec![any(F64, &[2, 2], 1)], &["atol", "NaN"])
        .error(usual, vec![any(F64, &[2], 1)], &["1", "at least 2"])
        .done()
}
