//! Eigenvalues and eigenvectors of square matrices.

use super::*;
use crate::{
    array::Elem,
    info::{op, surface},
};
use tenferro_core_ops::{Var, apply1};
use tenferro_linalg::{EigenvalueOrder, IndependentVectors, LinalgOps, LinalgRecorded, TypedLinalgOps, ops};

/// Why single precision is not compared with double precision.
const ORDER: &str = "eigenvalues are in no order, and two precisions may find them in different ones; the derivative \
                     is checked on eig_exponential";

pub(super) fn list() -> Vec<OpInfo> {
    vec![factors(), independent(), values(), paired(), rebuilt()]
}

/// Random matrices with separate eigenvalues; of real ones, two are a pair of conjugates.
fn separate(dtype: DType, shape: &[usize], seed: u64) -> Array {
    let x = any(dtype, shape, seed);
    Array::from_fn(dtype, shape, |i| {
        let fixed = match (i[0], i[1]) {
            (0, 1) => 2.5,
            (1, 0) => -2.5,
            (i, j) if i == j => 3.0 - 2.5 * i as f64,
            _ => 0.0,
        };
        x.at(i).times(Elem::real(0.4)).plus(Elem::real(fixed))
    })
}

/// The vector of a stack as diagonal matrices.
fn diagonals(w: &Array) -> Array {
    let n = w.shape[0];
    let shape: Vec<usize> = [&[n, n], &w.shape[1..]].concat();
    Array::from_fn(w.dtype, &shape, |i| if i[0] == i[1] { w.at(&i[1..]) } else { Elem::real(0.0) })
}

/// The traces of the powers of the matrices, up to the order: they are the eigenvalues' sums of powers.
fn power_sums(a: &Array, dtype: DType) -> Array {
    let n = a.shape[0];
    let sums: Vec<Matrix> = (matrices(a).iter())
        .map(|a| {
            let mut power = Matrix::identity(n);
            let sums: Vec<_> = (0..n)
                .map(|_| {
                    power = power.times(a);
                    power.trace()
                })
                .collect();
            Matrix::from_fn(n, 1, |i, _| sums[i])
        })
        .collect();
    stack(dtype, [n, 1], &a.shape[2..], &sums)
}

fn complex(a: &Array) -> Array {
    let a = a.cast(floating(a.dtype));
    a.cast(a.dtype.complex())
}

fn factors() -> OpInfo {
    op(
        "eig",
        |_: &(), x: &[Var]| <[Var; 2]>::from(ops::eig(&x[0])),
        |_, x| {
            let a = complex(&x[0]);
            let lengths = Array::from_fn(a.dtype, &a.shape[1..], |_| Elem::real(1.0));
            vec![a.clone(), power_sums(&a, a.dtype), lengths]
        },
    )
    // A + A V - V diag(w), sums of powers of w, and the lengths of the columns.
    .observe(|_, x, y| {
        let (a, w, v) = (complex(&x[0]), diagonals(&y[0]), &y[1]);
        let n = v.shape[0];
        let av = each_pair(&a, v, [n, n], Matrix::times);
        let vw = each_pair(v, &w, [n, n], Matrix::times);
        let rest = each_pair(&av, &vw, [n, n], |x, y| x.plus(-1.0, y));
        let lengths = Array::from_fn(v.dtype, &v.shape[1..], |j| {
            let square = |i: usize| v.at(&[&[i], j].concat()).c().norm_sqr();
            Elem::real((0..n).map(square).sum::<f64>().sqrt())
        });
        vec![each_pair(&a, &rest, [n, n], |x, y| x.plus(1.0, y)), power_sums(&w, w.dtype), lengths]
    })
    .surface(surface!((); LinalgOps, TypedLinalgOps; eig()))
    // Eigenvalues move by the condition of the vectors, the sums of their third powers by more.
    .tolerance(bound(5, 12.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![separate(d, &[3, 3], 1)])
            .sample((), vec![separate(d, &[2, 2], 2)])
            .sample((), vec![separate(d, &[1, 1], 3)])
            .sample((), vec![separate(d, &[3, 3, 2], 4)])
            .sample((), vec![any(d, &[0, 0], 5)])
            .sample((), vec![any(d, &[2, 2, 0], 6)])
            .kink((), vec![any(d, &[5, 5], 7)])
            // Zero and the identity.
            .kink(
                (),
                vec![Array::from_fn(d, &[4, 4, 2], |i| Elem::real((i[2] > 0 && i[0] == i[1]) as u8 as f64))],
            )
    })
    .each([I64, I32], |o, d| o.kink((), vec![any(d, &[3, 3], 9)]))
    .symbolic((), &[&["n", "n"]])
    .symbolic((), &[&["n", "n", "m"]])
    .skip("rank_0", "a matrix is needed")
    .skip("precision", ORDER)
    .error((), vec![any(F64, &[3], 1)], &["1", "at least 2"])
    .error((), vec![any(F64, &[3, 2], 1)], &["[3, 2]", "square"])
    .error((), vec![f64s(&[2, 2], &[1.0, f64::NAN, 0.0, 1.0])], &["[1, 0]", "not finite"])
    .error((), vec![f64s(&[1, 1, 2], &[1.0, f64::INFINITY])], &["[0, 0] of matrix [1]", "finite"])
    .first_at_multiplets()
    .done()
}

/// The inverse of vectors that are independent.
fn independent() -> OpInfo {
    let op_of = IndependentVectors { op: "eig" };
    op("independent_vectors", |op: &IndependentVectors, x: &[Var]| apply1(op, &[&x[0]]), |_, x| x[0].clone())
        .each(FLOATS, |o, d| {
            o.sample(op_of.clone(), vec![any(d, &[3, 3], 1)])
                .sample(op_of.clone(), vec![any(d, &[2, 2, 2], 2)])
                .sample(op_of.clone(), vec![any(d, &[0, 0], 3)])
        })
        .symbolic(op_of.clone(), &[&["n", "n"]])
        .skip("rank_0", "a matrix is needed")
        .skip("surfaces", IN_RULES)
        .error(op_of.clone(), vec![any(F64, &[3], 1)], &["1", "at least 2"])
        .error(op_of.clone(), vec![any(F64, &[2, 3], 1)], &["[2, 3]", "square"])
        .error_of(
            "eig",
            op_of.clone(),
            vec![f64s(&[2, 2], &[1.0, 6e6, 0.0, 6e6])],
            &["dependent to rounding", "8.5e6 of eigenvalue 1", "at most 6.7e6"],
        )
        .error_of("eig", op_of, vec![f64s(&[1, 1, 2], &[1.0, f64::NAN])], &["of matrix [1]", "at most 6.7e6"])
        .done()
}

fn values() -> OpInfo {
    op(
        "eigvals",
        |_: &(), x: &[Var]| ops::eigvals(&x[0]),
        |_, x| {
            let a = complex(&x[0]);
            power_sums(&a, a.dtype)
        },
    )
    .observe(|_, _, y| {
        let w = diagonals(&y[0]);
        vec![power_sums(&w, w.dtype)]
    })
    .surface(surface!((); LinalgOps, TypedLinalgOps; eigvals()))
    // As for eig.
    .tolerance(bound(5, 12.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![separate(d, &[3, 3], 1)])
            .sample((), vec![separate(d, &[2, 2, 2], 2)])
            .sample((), vec![any(d, &[0, 0], 3)])
            .kink((), vec![any(d, &[6, 6], 4)])
    })
    .kink((), vec![any(I64, &[3, 3], 5)])
    .symbolic((), &[&["n", "n"]])
    .skip("rank_0", "a matrix is needed")
    .skip("precision", ORDER)
    .error((), vec![any(F64, &[], 1)], &["0", "at least 2"])
    .error((), vec![any(F64, &[2, 3], 1)], &["[2, 3]", "square"])
    .error((), vec![f64s(&[1, 1], &[f64::NAN])], &["[0, 0]", "finite"])
    .first_at_multiplets()
    .done()
}

/// The places of eigenvalues among the same ones in another order.
fn paired() -> OpInfo {
    op(
        "eigenvalue_order",
        |_: &(), x: &[Var]| apply1(&EigenvalueOrder, &[&x[0], &x[1]]),
        |_, x| {
            let n = x[0].shape[0];
            Array::from_fn(I64, &x[0].shape, |k| {
                let other = |i: usize| [&[i], &k[1..]].concat();
                let distance = |i: usize| (x[0].at(k).c() - x[1].at(&other(i)).c()).norm();
                Elem::Int((0..n).min_by(|&i, &j| distance(i).total_cmp(&distance(j))).unwrap_or(0) as i64)
            })
        },
    )
    .order(0)
    .each([C32, C64_], |o, d| {
        let three = |w: [(f64, f64); 3]| Array::complexes(d, &[3], &w);
        let two = |w: [(f64, f64); 4]| Array::complexes(d, &[2, 2], &w);
        o.sample(
            (),
            vec![
                three([(1.0, 2.0), (1.0, -2.0), (0.5, 0.0)]),
                three([(0.5, 1e-5), (1.0, 2.0), (0.99999, -2.0)]),
            ],
        )
        .sample(
            (),
            vec![
                two([(1.0, 0.0), (2.0, 0.0), (0.0, 1.0), (0.0, -1.0)]),
                two([(2.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.0, -1.0)]),
            ],
        )
        .sample((), vec![any(d, &[0], 1), any(d, &[0], 2)])
    })
    .symbolic((), &[&["n"], &["n"]])
    .skip("rank_0", "a vector is needed")
    .skip("surfaces", IN_RULES)
    .error((), vec![any(C64_, &[], 1), any(C64_, &[], 2)], &["0", "at least 1"])
    .error((), vec![any(C64_, &[2], 1), any(C64_, &[3], 2)], &["c64[2]", "c64[3]"])
    .done()
}

/// A function of a matrix, V exp(w / 4) V^-1, by its eigenvalues, which depends neither on their order nor on
/// lengths and phases; also where some of them are equal.
fn rebuilt() -> OpInfo {
    op(
        "eig_exponential",
        |_: &(), x: &[Var]| {
            let (w, v) = ops::eig(&x[0]);
            let scaled = &v * &(&w * 0.25).exp().expand_dims(&[0]);
            // X = V e^w V^-1 is the solution of V^T X^T = (V e^w)^T.
            ops::solve(&v.matrix_transpose(), &scaled.matrix_transpose()).matrix_transpose()
        },
        |_, x| {
            let a = complex(&x[0]);
            let n = a.shape[0];
            // The series, whose terms vanish from the thirtieth on.
            let of = |a: Matrix| {
                let mut sum = Matrix::identity(n);
                for k in (1..40).rev() {
                    sum = Matrix::identity(n).plus(0.25 / k as f64, &a.times(&sum));
                }
                sum
            };
            each_matrix(&a, [n, n], of)
        },
    )
    .tolerance(bound(5, 12.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![separate(d, &[3, 3], 1)])
            .sample((), vec![separate(d, &[2, 2, 2], 2)])
            .sample((), vec![separate(d, &[4, 4], 3)])
            .sample((), vec![any(d, &[0, 0], 4)])
    })
    .symbolic((), &[&["n", "n"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", COMPOSED)
    .error_of("eig", (), vec![any(F64, &[2, 3], 1)], &["[2, 3]", "square"])
    .done()
}
