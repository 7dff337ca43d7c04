//! Positive definite matrices.

use super::{
    systems::{FORMS, Form, posed, system},
    *,
};
use crate::info::{op, surface};
use tenferro_core_ops::{Var, build};
use tenferro_linalg::{LinalgOps, LinalgRecorded, TypedLinalgOps, ops};

pub(super) fn list() -> Vec<OpInfo> {
    vec![cholesky(), hermitian(), solve()]
}

/// Random matrices whose Hermitian part is positive definite, of a condition below 4.
pub(super) fn definite(dtype: DType, shape: &[usize], seed: u64) -> Array {
    let x = any(dtype, shape, seed);
    Array::from_fn(dtype, shape, |i| {
        let far = if i[0] == i[1] { 2.0 * shape[0] as f64 } else { 0.0 };
        x.at(i).plus(crate::array::Elem::real(far))
    })
}

pub(super) fn hermitian_part(a: &Array) -> Array {
    each_matrix(a, extents(a).0, |a| {
        Matrix::from_fn(a.rows, a.columns, |i, j| (a.at(i, j) + a.at(j, i).conj()) * 0.5)
    })
}

fn factor(a: &Array) -> Array {
    let a = a.cast(floating(a.dtype));
    each_matrix(&a, extents(&a).0, |a| a.cholesky())
}

fn cholesky() -> OpInfo {
    let part = "the derivative is that of the Hermitian part, which is checked on cholesky_hermitian";
    op("cholesky", |_: &(), x: &[Var]| ops::cholesky(&x[0]), |_, x| factor(&x[0]))
        .surface(surface!((); LinalgOps, TypedLinalgOps; cholesky()))
        .tolerance(bound(40, 4.0))
        .each(FLOATS, |o, d| {
            let a = |shape: &[usize], seed| vec![hermitian_part(&definite(d, shape, seed))];
            o.sample((), a(&[3, 3], 1))
                .sample((), a(&[1, 1], 2))
                .sample((), a(&[4, 4, 2], 3))
                .sample((), a(&[2, 2, 1, 3], 4))
                .sample((), a(&[0, 0], 5))
                .sample((), a(&[2, 2, 0], 6))
                .sample((), a(&[0, 0, 2], 7))
                .kink((), a(&[40, 40], 8))
        })
        .kink((), vec![Array::ints(I64, &[2, 2], &[4, 2, 2, 3])])
        // What is above the diagonal is not read, nor the imaginary part of the diagonal.
        .value((), vec![f64s(&[2, 2], &[4.0, 2.0, f64::NAN, 10.0])], f64s(&[2, 2], &[2.0, 1.0, 0.0, 3.0]))
        .value(
            (),
            vec![Array::complexes(C64_, &[1, 1], &[(9.0, 5.0)])],
            Array::complexes(C64_, &[1, 1], &[(3.0, 0.0)]),
        )
        // The gradient of log det A is A^-1: here [3 -1; -1 4] / 11.
        .closed(
            (),
            vec![f64s(&[2, 2], &[4.0, 1.0, 1.0, 3.0])],
            f64s(&[2, 2], &[1.0, 0.0, 0.0, 2.0 / 2.75f64.sqrt()]),
            vec![f64s(&[2, 2], &[3.0 / 11.0, -1.0 / 11.0, -1.0 / 11.0, 4.0 / 11.0])],
        )
        .symbolic((), &[&["n", "n"]])
        .symbolic((), &[&["n", "n", "m"]])
        .skip("rank_0", "a matrix is needed")
        .skip("jvp", part)
        .skip("second_order", part)
        .error((), vec![f64s(&[2, 2], &[1.0, 5.0, 5.0, 1.0])], &["minor of order 2", "positive definite"])
        .error((), vec![f64s(&[1, 1], &[0.0])], &["minor of order 1", "positive definite"])
        .error(
            (),
            vec![f64s(&[1, 1, 3], &[1.0, -1.0, -2.0])],
            &["minor of order 1 of matrix [1]", "positive definite"],
        )
        .error(
            (),
            vec![Array::complexes(C64_, &[2, 2], &[(1.0, 0.0), (0.0, 2.0), (0.0, -2.0), (1.0, 0.0)])],
            &["minor of order 2", "positive definite"],
        )
        .error((), vec![f64s(&[2, 2], &[1.0, f64::NAN, 0.0, 1.0])], &["[1, 0]", "not finite"])
        .error((), vec![any(F64, &[2, 3], 1)], &["[2, 3]", "square"])
        .error((), vec![any(F64, &[2], 1)], &["1", "at least 2"])
        .done()
}

/// The factor of the Hermitian part.
fn hermitian() -> OpInfo {
    op(
        "cholesky_hermitian",
        |_: &(), x: &[Var]| ops::cholesky(&((&x[0] + &x[0].adjoint()) * 0.5)),
        |_, x| factor(&hermitian_part(&x[0])),
    )
    .tolerance(bound(4, 4.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![definite(d, &[3, 3], 1)])
            .sample((), vec![definite(d, &[1, 1], 2)])
            .sample((), vec![definite(d, &[2, 2, 2], 3)])
            .sample((), vec![definite(d, &[0, 0], 4)])
    })
    .symbolic_call(&[(F64, &["n", "m"])], |x| {
        let gram = x[0].matmul(&x[0].adjoint());
        ops::cholesky(&(&gram + &build::eye(F64, &x[0].extent(0))))
    })
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", COMPOSED)
    .error_of("cholesky", (), vec![f64s(&[1, 1], &[-1.0])], &["minor of order 1", "positive definite"])
    .done()
}

fn solve() -> OpInfo {
    op(
        "cholesky_solve",
        |&f: &Form, x: &[Var]| ops::cholesky_solve(&x[0], &x[1], system(f)),
        |&f, x| {
            let d = floating(DType::promote(x[0].dtype, x[1].dtype));
            with_batch(&x[0].cast(d), &x[1].cast(d), f.0, |l, b| {
                let l = Matrix::from_fn(l.rows, l.rows, |i, j| if i < j { 0.0.into() } else { l.at(i, j) });
                posed(f, &l.times(&l.adjoint()), b)
            })
        },
    )
    .surface(surface!(Form; LinalgOps, TypedLinalgOps; cholesky_solve(1) |p| system(*p)))
    .promotes()
    // Twice the factor's.
    .tolerance(bound(33, 6.0))
    .each(FLOATS, |o, d| {
        let ab = |a: &[usize], b: &[usize], seed| vec![dominant(d, a, seed), any(d, b, seed + 1)];
        const LEFT: Form = (false, 0);
        o.sample(LEFT, ab(&[3, 3], &[3, 2], 1))
            .each(FORMS, |o, f| {
                let b: &[usize] = if f.0 { &[2, 3] } else { &[3, 2] };
                o.sample(f, ab(&[3, 3], b, 1)).sample(f, ab(&[2, 2, 2], &[2], 3))
            })
            .sample(LEFT, ab(&[3, 3], &[3], 3))
            .sample(LEFT, ab(&[2, 2, 3], &[2, 1, 3], 5))
            .sample(LEFT, ab(&[2, 2, 2], &[2, 1], 7))
            .sample(LEFT, ab(&[2, 2], &[2, 2, 3], 9))
            .sample(LEFT, ab(&[0, 0], &[0, 2], 11))
            .sample(LEFT, ab(&[2, 2], &[2, 0], 13))
            .sample(LEFT, ab(&[2, 2, 0], &[2, 1, 0], 15))
            .kink(LEFT, ab(&[33, 33], &[33, 5], 17))
    })
    .kink((false, 0), vec![Array::ints(I64, &[2, 2], &[2, 1, 0, 1]), Array::ints(I64, &[2], &[1, 4])])
    .symbolic((false, 0), &[&["n", "n"], &["n", "m"]])
    .symbolic((true, 1), &[&["n", "n"], &["n"]])
    .skip("rank_0", "a matrix is needed")
    .error((false, 0), vec![any(F64, &[2], 1), any(F64, &[2], 2)], &["1", "at least 2"])
    .error_at(
        ["cholesky_solve", "triangular_solve"],
        (false, 0),
        vec![f64s(&[2, 2], &[1.0, 0.0, 0.0, 0.0]), any(F64, &[2, 1], 1)],
        &["pivot 1", "zero"],
    )
    .error((false, 0), vec![any(F64, &[2, 3], 1), any(F64, &[2], 2)], &["[2, 3]", "square"])
    .error((true, 0), vec![any(F64, &[2, 2], 1), any(F64, &[3], 2)], &["3", "2"])
    .done()
}
