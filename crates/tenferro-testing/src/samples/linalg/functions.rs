//! Functions of matrices.

use super::*;
use crate::{
    array::Elem,
    info::{op, surface},
};
use tenferro_core_ops::{Var, apply1};
use tenferro_linalg::{LinalgOps, LinalgRecorded, MatrixExp, Tolerance, TypedLinalgOps, ops};
use tenferro_tensor::C64;

pub(super) fn list() -> Vec<OpInfo> {
    vec![pinv(), polar(), matrix_exp(), derivative(), matrix_power(), kron(), trace()]
}

fn pinv() -> OpInfo {
    let usual = Tolerance::default();
    let reference = |t: &Tolerance, x: &[Array]| {
        let a = x[0].cast(floating(x[0].dtype));
        let [m, n] = extents(&a).0;
        each_matrix(&a, [n, m], |a| {
            let (u, s, v) = a.svd();
            let floor = t.rtol.unwrap_or(1e-4) * s.first().copied().unwrap_or(0.0);
            let inverse: Vec<f64> = s.iter().map(|&s| if s > floor { 1.0 / s } else { 0.0 }).collect();
            v.scaled(&inverse).times(&u.adjoint())
        })
    };
    op("pinv", |&t: &Tolerance, x: &[Var]| ops::pinv(&x[0], t), reference)
        .surface(surface!(Tolerance; LinalgOps, TypedLinalgOps; pinv() |t| *t))
        // The largest condition, and its square for derivatives; that of the random symbolic ones is below
        // 300.
        .tolerance(bound(5, 300.0))
        .each(FLOATS, |o, d| {
            o.sample(usual, vec![with_values(d, [3, 3], &[&[6.0, 4.0, 1.5]], 1)])
                .sample(usual, vec![with_values(d, [4, 2], &[&[5.0, 2.0]], 3)])
                .sample(usual, vec![with_values(d, [2, 3], &[&[5.0, 2.0], &[3.0, 1.5]], 5)])
                .sample(usual, vec![with_values(d, [1, 1], &[&[2.0]], 7)])
                .sample(usual, vec![any(d, &[0, 2], 8)])
                .sample(usual, vec![any(d, &[2, 0], 9)])
                .sample(usual, vec![any(d, &[2, 2, 0], 9)])
                // Multiplets.
                .sample(usual, vec![with_values(d, [3, 3], &[&[4.0, 4.0, 2.0]], 10)])
                .sample(usual, vec![with_values(d, [4, 3], &[&[2.0, 2.0, 2.0]], 11)])
                // Where the rank is not that of all matrices nearby.
                .kink(usual, vec![with_values(d, [3, 3], &[&[4.0, 2.0, 0.0]], 12)])
                .kink(usual, vec![with_values(d, [2, 2], &[&[0.0, 0.0], &[3.0, 2.0]], 13)])
                .kink(Tolerance::relative(0.5), vec![with_values(d, [3, 2], &[&[4.0, 1.0]], 14)])
        })
        .kink(usual, vec![any(I64, &[3, 2], 15)])
        .each([F64, C64_], |o, d| {
            // With the pseudo-inverse diag(1/2, 0) of diag(2, 0).
            let a = Array::reals(d, &[2, 2], &[2.0, 0.0, 0.0, 0.0]);
            let ct = any(d, &[2, 2], 16);
            let quarter = |c: C64, sign: f64| Elem::Float(c * (0.25 * sign));
            let expected = Array::from_fn(d, &[2, 2], |i| match i {
                [0, 0] => quarter(ct.at(&[0, 0]).c(), -1.0),
                [1, 1] => Elem::real(0.0),
                i => quarter(ct.at(&[i[1], i[0]]).c().conj(), 1.0),
            });
            o.closed(usual, vec![a], ct, vec![expected]).closed(
                usual,
                vec![Array::reals(d, &[2, 2], &[0.0; 4])],
                any(d, &[2, 2], 17),
                vec![Array::reals(d, &[2, 2], &[0.0; 4])],
            )
        })
        .skip("decomposition", "through its parts, singular vectors, the derivative is wrong at multiplets")
        .symbolic(usual, &[&["n", "m"]])
        .symbolic(Tolerance::relative(1e-3), &[&["n", "n", "k"]])
        .skip("rank_0", "a matrix is needed")
        .error(usual, vec![any(F64, &[3], 1)], &["1", "at least 2"])
        .error(Tolerance::relative(f64::NAN), vec![any(F64, &[2, 2], 1)], &["rtol", "NaN", "at least 0"])
        .error_at(["pinv", "svd"], usual, vec![f64s(&[1, 1], &[f64::INFINITY])], &["[0, 0]", "not finite"])
        .done()
}

fn polar() -> OpInfo {
    let reference = |_: &(), x: &[Array]| {
        let a = x[0].cast(floating(x[0].dtype));
        let [m, n] = extents(&a).0;
        let factors = |a: Matrix| {
            let (u, s, v) = a.svd();
            [u.times(&v.adjoint()), v.scaled(&s).times(&v.adjoint())]
        };
        let of = |shape, i: usize| each_matrix(&a, shape, |a| factors(a)[i].clone());
        vec![of([m, n], 0), of([n, n], 1)]
    };
    op("polar", |_: &(), x: &[Var]| -> [Var; 2] { ops::polar(&x[0]).into() }, reference)
        .surface(surface!((); LinalgOps, TypedLinalgOps; polar()))
        .highest(16)
        // U moves by the inverse of the sum of the two smallest values; that of the random symbolic ones is 1
        // / 300.
        .tolerance(bound(5, 300.0))
        .each(FLOATS, |o, d| {
            o.sample((), vec![with_values(d, [3, 3], &[&[6.0, 4.0, 1.5]], 1)])
                .sample((), vec![with_values(d, [4, 2], &[&[5.0, 2.0]], 3)])
                .sample((), vec![with_values(d, [2, 3], &[&[5.0, 2.0]], 5)])
                .sample((), vec![with_values(d, [2, 2], &[&[5.0, 2.0], &[3.0, 1.5]], 7)])
                .sample((), vec![with_values(d, [1, 1], &[&[2.0]], 9)])
                .sample((), vec![any(d, &[0, 2], 10)])
                // Multiplets.
                .sample((), vec![with_values(d, [3, 3], &[&[4.0, 4.0, 2.0]], 11)])
                .sample((), vec![with_values(d, [3, 2], &[&[2.0, 2.0]], 13)])
        })
        .kink((), vec![Array::ints(I64, &[2, 2], &[3, 1, 0, 2])])
        .symbolic((), &[&["n", "m"]])
        .symbolic((), &[&["n", "n", "2"]])
        .skip("rank_0", "a matrix is needed")
        .error((), vec![any(F64, &[3], 1)], &["1", "at least 2"])
        .done()
}

/// By the series, of the matrix over a power of two, and squares.
fn exponential(a: &Matrix) -> Matrix {
    const HALVINGS: i32 = 6;
    let a = Matrix::from_fn(a.rows, a.rows, |i, j| a.at(i, j) * 0.5f64.powi(HALVINGS));
    let (mut term, mut sum) = (Matrix::identity(a.rows), Matrix::identity(a.rows));
    for k in 1..20 {
        term = term.times(&a);
        term = Matrix::from_fn(a.rows, a.rows, |i, j| term.at(i, j) / k as f64);
        sum = sum.plus(1.0, &term);
    }
    (0..HALVINGS).fold(sum, |x, _| x.times(&x))
}

fn matrix_exp() -> OpInfo {
    op(
        "matrix_exp",
        |_: &(), x: &[Var]| ops::matrix_exp(&x[0]),
        |_, x| {
            let a = x[0].cast(floating(x[0].dtype));
            each_matrix(&a, extents(&a).0, |a| exponential(&a))
        },
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; matrix_exp()))
    .highest(8)
    // It moves by its norm as the matrix does by its own, which is below 20.
    .tolerance(bound(5, 20.0))
    .each(FLOATS, |o, d| {
        // A norm for each degree, and for squaring.
        o.each([0.002, 0.05, 0.2, 0.4, 1.0, 3.0], |o, size| {
            o.sample((), vec![Array::uniform(d, &[3, 3], 1, -size, size)])
        })
        .sample((), vec![any(d, &[2, 2, 2], 2)])
        .sample((), vec![any(d, &[1, 1], 3)])
        .sample((), vec![Array::reals(d, &[2, 2], &[0.5, 0.0, 0.0, -1.0])])
        .sample((), vec![Array::reals(d, &[2, 2], &[0.0; 4])])
        .sample((), vec![Array::reals(d, &[3, 3], &[0.0, 0.0, 0.0, 9.0, 0.0, 0.0, -4.0, 8.0, 0.0])])
        .sample((), vec![any(d, &[0, 0], 4)])
        .sample((), vec![any(d, &[2, 2, 0], 5)])
    })
    .kink((), vec![any(I64, &[2, 2], 6)])
    .symbolic((), &[&["n", "n"]])
    .symbolic((), &[&["n", "n", "k"]])
    .skip("rank_0", "a matrix is needed")
    .error((), vec![any(F64, &[3], 1)], &["1", "at least 2"])
    .error((), vec![any(F64, &[2, 3], 1)], &["[2, 3]", "square"])
    .error((), vec![f64s(&[1, 1], &[f64::NAN])], &["[0, 0]", "not finite"])
    .done()
}

/// The blocks `[[x, e], [0, x]]`, with e along the diagonal of its block if it is smaller.
fn nested(x: &Matrix, e: &Matrix) -> Matrix {
    let (n, k) = (x.rows, e.rows);
    Matrix::from_fn(2 * n, 2 * n, |i, j| match (i < n, j < n) {
        (true, true) => x.at(i, j),
        (false, false) => x.at(i - n, j - n),
        (true, false) if i / k == (j - n) / k => e.at(i % k, j % k),
        _ => C64::new(0.0, 0.0),
    })
}

/// D^n exp(A)[E1, .., En] from A and the directions: a block of the exponential of the blocks nested.
fn derivative() -> OpInfo {
    op(
        "matrix_exp_derivative",
        |_: &(), x: &[Var]| apply1(&MatrixExp, &x.iter().collect::<Vec<_>>()),
        |_, x| {
            let all: Vec<Vec<Matrix>> = x.iter().map(matrices).collect();
            let parts: Vec<Matrix> = (0..all[0].len())
                .map(|b| {
                    let n = all[0][b].rows;
                    let y = exponential(&all[1..].iter().fold(all[0][b].clone(), |x, e| nested(&x, &e[b])));
                    Matrix::from_fn(n, n, |i, j| y.at(i, y.columns - n + j))
                })
                .collect();
            stack(x[0].dtype, extents(&x[0]).0, extents(&x[0]).1, &parts)
        },
    )
    // As for the exponential, of a larger matrix.
    .tolerance(bound(16, 8.0))
    .each(FLOATS, |o, d| {
        let with = |n: u64, size: f64, shape: &[usize]| {
            let a = Array::uniform(d, shape, 1, -size, size);
            std::iter::once(a).chain((0..n).map(|k| any(d, shape, 2 + k))).collect::<Vec<_>>()
        };
        o.each(1..4, |o, n| {
            o.each([0.002, 0.1, 0.3, 1.0], |o, size| o.sample((), with(n, size, &[2, 2])))
                .sample((), with(n, 1.0, &[1, 1, 2]))
                .sample((), with(n, 1.0, &[0, 0]))
        })
        .sample((), with(1, 3.0, &[2, 2]))
        // Differences see too little of high derivatives.
        .each([2, 3, 4], |o, n| o.kink((), with(n, 3.0, &[2, 2])))
        .sample((), vec![any(d, &[2, 2], 1), Array::reals(d, &[2, 2], &[0.0; 4])])
    })
    .symbolic((), &[&["n", "n"], &["n", "n"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", IN_RULES)
    .error_of("matrix_exp", (), vec![any(F64, &[2, 2], 1), any(F64, &[2, 3], 2)], &["[2, 3]", "[2, 2]"])
    .error_of("matrix_exp", (), vec![any(F64, &[1, 1], 1); 10], &["9", "at most 8"])
    .done()
}

fn matrix_power() -> OpInfo {
    op(
        "matrix_power",
        |&n: &i64, x: &[Var]| ops::matrix_power(&x[0], n),
        |&n, x| {
            let a = x[0].cast(floating(x[0].dtype));
            each_matrix(&a, extents(&a).0, |a| {
                let one = Matrix::identity(a.rows);
                (0..n.abs()).fold(one, |x, _| if n < 0 { a.solve(&x) } else { a.times(&x) })
            })
        },
    )
    .surface(surface!(i64; LinalgOps, TypedLinalgOps; matrix_power() |n| *n))
    .overlooks(|&n, _, _| n == 0, "A^0 is the identity for every A")
    // Up to five factors, of the condition that `dominant` says; that of the random symbolic ones is below
    // 300.
    .tolerance(bound(5, 300.0))
    .each(FLOATS, |o, d| {
        o.each([1, 2, 3, 5, -1, -2, -3], |o, n| o.sample(n, vec![dominant(d, &[3, 3], 1)]))
            .sample(3, vec![any(d, &[2, 2, 2], 2)])
            .sample(-2, vec![dominant(d, &[1, 1], 3)])
            .sample(2, vec![any(d, &[0, 0], 4)])
            .sample(-1, vec![any(d, &[0, 0], 5)])
            .kink(0, vec![any(d, &[3, 3, 2], 6)])
    })
    .kink(2, vec![any(I64, &[2, 2], 7)])
    .value(i64::MIN, vec![f64s(&[1, 1], &[-1.0])], f64s(&[1, 1], &[1.0]))
    .symbolic(3, &[&["n", "n"]])
    .symbolic(0, &[&["n", "n", "k"]])
    .symbolic(-1, &[&["n", "n"]])
    .skip("rank_0", "a matrix is needed")
    .error(2, vec![any(F64, &[3], 1)], &["1", "at least 2"])
    .error(0, vec![any(F64, &[2, 3], 1)], &["[2, 3]", "square"])
    .error_at(
        ["matrix_power", "solve"],
        -1,
        vec![f64s(&[2, 2], &[1.0, 2.0, 2.0, 4.0])],
        &["pivot 1", "inverse"],
    )
    .done()
}

fn kron() -> OpInfo {
    op(
        "kron",
        |_: &(), x: &[Var]| ops::kron(&x[0], &x[1]),
        |_, x| {
            let dtype = DType::promote(x[0].dtype, x[1].dtype);
            let ([m, n], [p, q]) = (extents(&x[0]).0, extents(&x[1]).0);
            let (a, b) = (extents(&x[0]).1, extents(&x[1]).1);
            let extent = |k| match (a.get(k), b.get(k)) {
                (Some(&1) | None, Some(&n)) | (Some(&n), _) => n,
                (None, None) => 1,
            };
            let batch: Vec<usize> = (0..a.len().max(b.len())).map(extent).collect();
            Array::from_fn(dtype, &[&[m * p, n * q], &batch[..]].concat(), |i| {
                let of = |x: &Array, row, column| {
                    let batch = x.shape[2..].iter().zip(&i[2..]).map(|(&n, &k)| k.min(n - 1));
                    x.at(&[row, column].into_iter().chain(batch).collect::<Vec<_>>())
                };
                of(&x[0], i[0] / p, i[1] / q).times(of(&x[1], i[0] % p, i[1] % q))
            })
        },
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; kron(1)))
    .promotes()
    .each(NUMBERS, |o, d| {
        o.sample((), vec![any(d, &[2, 3], 1), any(d, &[3, 2], 2)])
            .sample((), vec![any(d, &[1, 1], 3), any(d, &[2, 2], 4)])
            .sample((), vec![any(d, &[2, 2, 2], 5), any(d, &[1, 2], 6)])
            .sample((), vec![any(d, &[2, 1, 1, 2], 7), any(d, &[1, 2, 3], 8)])
            .sample((), vec![any(d, &[0, 2], 9), any(d, &[2, 2], 10)])
            .sample((), vec![any(d, &[2, 1], 11), any(d, &[2, 0], 12)])
    })
    .symbolic((), &[&["n", "m"], &["m", "k"]])
    .symbolic((), &[&["n", "2", "k"], &["m", "n", "k"]])
    .skip("rank_0", "matrices are needed")
    .error((), vec![any(F64, &[3], 1), any(F64, &[2, 2], 2)], &["1", "at least 2"])
    .error((), vec![any(F64, &[1, 1, 2], 1), any(F64, &[1, 1, 3], 2)], &["2", "3"])
    .done()
}

fn trace() -> OpInfo {
    op(
        "trace",
        |_: &(), x: &[Var]| ops::trace(&x[0]),
        |_, x| {
            let [m, n] = extents(&x[0]).0;
            let zero = if x[0].dtype.is_differentiable() { Elem::real(0.0) } else { Elem::Int(0) };
            Array::from_fn(x[0].dtype, extents(&x[0]).1, |b| {
                let at = |i| x[0].at(&[&[i, i], b].concat());
                (0..m.min(n)).map(at).fold(zero, Elem::plus)
            })
        },
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; trace()))
    .each(NUMBERS, |o, d| {
        o.sample((), vec![any(d, &[3, 3], 1)])
            .sample((), vec![any(d, &[2, 4], 2)])
            .sample((), vec![any(d, &[4, 2, 3], 3)])
            .sample((), vec![any(d, &[0, 0], 4)])
            .sample((), vec![any(d, &[2, 0, 2], 5)])
    })
    .symbolic((), &[&["n", "n"]])
    .symbolic((), &[&["n", "m", "k"]])
    .error((), vec![any(F64, &[3], 1)], &["1", "at least 2"])
    .done()
}
