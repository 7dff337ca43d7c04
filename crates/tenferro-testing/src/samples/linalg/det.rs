//! Inverses and determinants.

use super::*;
use crate::{
    info::{op, surface},
    matrix::stack_scalars,
};
use tenferro_core_ops::{Var, apply1};
use tenferro_linalg::{DetDerivative, LinalgOps, LinalgRecorded, TypedLinalgOps, ops};
use tenferro_tensor::C64 as Number;

pub(super) fn list() -> Vec<OpInfo> {
    vec![inv(), det(), det_derivative(), slogdet()]
}

fn inv() -> OpInfo {
    op(
        "inv",
        |_: &(), x: &[Var]| ops::inv(&x[0]),
        |_, x| {
            let a = x[0].cast(floating(x[0].dtype));
            each_matrix(&a, extents(&a).0, |a| a.solve(&Matrix::identity(a.rows)))
        },
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; inv()))
    // See `dominant`.
    .tolerance(bound(33, 2.5))
    .each(FLOATS, |o, d| {
        o.sample((), vec![dominant(d, &[3, 3], 1)])
            .sample((), vec![dominant(d, &[1, 1], 2)])
            .sample((), vec![dominant(d, &[2, 2, 3], 3)])
            .sample((), vec![dominant(d, &[2, 2, 1, 2], 4)])
            .sample((), vec![dominant(d, &[0, 0], 5)])
            .sample((), vec![dominant(d, &[2, 2, 0], 6)])
            .kink((), vec![dominant(d, &[33, 33], 7)])
    })
    .kink((), vec![Array::ints(I64, &[2, 2], &[2, 1, 1, 3])])
    .symbolic((), &[&["n", "n"]])
    .symbolic((), &[&["n", "n", "m"]])
    // The derivative of 1/x is -1/x^2; of a diagonal matrix, -ct_ij / (a_i a_j).
    .closed(
        (),
        vec![f64s(&[2, 2], &[2.0, 0.0, 0.0, 4.0])],
        f64s(&[2, 2], &[1.0, 0.0, 1.0, 1.0]),
        vec![f64s(&[2, 2], &[-0.25, 0.0, -0.125, -0.0625])],
    )
    .skip("rank_0", "a matrix is needed")
    .error((), vec![f64s(&[2, 2], &[1.0, 2.0, 2.0, 4.0])], &["pivot 1", "zero", "inverse"])
    .error((), vec![any(F64, &[2, 3], 1)], &["[2, 3]", "square"])
    .error((), vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .error((), vec![f64s(&[1, 1], &[f64::NAN])], &["[0, 0]", "not finite"])
    .done()
}

fn determinants(a: &Array) -> Vec<Number> {
    matrices(&a.cast(floating(a.dtype))).iter().map(Matrix::det).collect()
}

fn det() -> OpInfo {
    op(
        "det",
        |_: &(), x: &[Var]| ops::det(&x[0]),
        |_, x| stack_scalars(floating(x[0].dtype), extents(&x[0]).1, &determinants(&x[0])),
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; det()))
    .highest(9)
    // A determinant of order n moves n times as much as the matrix.
    .tolerance(bound(17, 17.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![dominant(d, &[3, 3], 1)])
            .sample((), vec![dominant(d, &[4, 4, 2], 2)])
            // Linear, so that a second derivative is nothing but rounding.
            .kink((), vec![any(d, &[1, 1], 3)])
            .sample((), vec![dominant(d, &[2, 2, 1, 3], 4)])
            .kink((), vec![any(d, &[0, 0], 5)])
            .kink((), vec![any(d, &[0, 0, 2], 6)])
            .sample((), vec![any(d, &[2, 2, 0], 7)])
            .kink((), vec![dominant(d, &[17, 17], 8)])
            // Rank 1, and a permutation.
            .sample((), vec![Array::reals(d, &[2, 2], &[1.0, 2.0, 2.0, 4.0])])
            .sample((), vec![Array::reals(d, &[3, 3], &[0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0])])
    })
    .each([I64, I32], |o, d| o.kink((), vec![Array::ints(d, &[2, 2], &[1, 2, 3, 4])]))
    .symbolic((), &[&["n", "n"]])
    .symbolic((), &[&["n", "n", "m"]])
    // The cofactors, at any rank.
    .each(
        [
            (2, vec![1.0, 2.0, 2.0, 4.0], vec![4.0, -2.0, -2.0, 1.0]),
            (1, vec![0.0], vec![1.0]),
            (3, vec![1.0; 9], vec![0.0; 9]),
            (
                3,
                vec![1.0, 4.0, 7.0, 2.0, 5.0, 8.0, 3.0, 6.0, 9.0],
                vec![-3.0, 6.0, -3.0, 6.0, -12.0, 6.0, -3.0, 6.0, -3.0],
            ),
            (4, vec![0.0; 16], vec![0.0; 16]),
        ],
        |o, (n, a, g)| o.closed((), vec![f64s(&[n, n], &a)], f64s(&[], &[1.0]), vec![f64s(&[n, n], &g)]),
    )
    .closed(
        (),
        vec![Array::complexes(C64_, &[2, 2], &[(0.0, 1.0), (0.0, 0.0), (0.0, 0.0), (2.0, 0.0)])],
        Array::complexes(C64_, &[], &[(1.0, 0.0)]),
        // det = 2i: the conjugates of the cofactors 2 and i.
        vec![Array::complexes(C64_, &[2, 2], &[(2.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, -1.0)])],
    )
    .skip("rank_0", "a matrix is needed")
    .error((), vec![any(F64, &[2, 3], 1)], &["[2, 3]", "square"])
    .error((), vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .error((), vec![f64s(&[1, 1, 2], &[1.0, f64::NAN])], &["[0, 0] of matrix [1]", "not finite"])
    .done()
}

/// Cofactors are polynomials, of degree 2 at most if the order is 3 at most, so that differences are exact.
fn det_derivative() -> OpInfo {
    op(
        "det_derivative",
        |_: &(), x: &[Var]| apply1(&DetDerivative, &x.iter().collect::<Vec<_>>()),
        |_, x| {
            let all: Vec<Vec<Matrix>> = x.iter().map(matrices).collect();
            let at = |b: usize, c: &[f64]| {
                (all[1..].iter().zip(c)).fold(all[0][b].clone(), |a, (e, c)| a.plus(*c, &e[b])).cofactors()
            };
            let of = |b: usize| match all.len() {
                1 => at(b, &[]),
                2 => at(b, &[0.5]).plus(-1.0, &at(b, &[-0.5])),
                _ => {
                    let mixed = at(b, &[1.0, 1.0]).plus(-1.0, &at(b, &[1.0, 0.0]));
                    mixed.plus(-1.0, &at(b, &[0.0, 1.0])).plus(1.0, &at(b, &[0.0, 0.0]))
                }
            };
            let ([n, _], batch) = extents(&x[0]);
            stack(x[0].dtype, [n, n], batch, &(0..all[0].len()).map(of).collect::<Vec<_>>())
        },
    )
    .tolerance(bound(5, 10.0))
    .each(FLOATS, |o, d| {
        let x = |shape: &[usize], directions: u64| (0..=directions).map(|i| any(d, shape, 20 + i)).collect();
        o.sample((), x(&[3, 3], 0))
            .sample((), x(&[3, 3], 1))
            .kink((), x(&[3, 3], 2))
            .sample((), x(&[3, 3, 2], 1))
            .kink((), x(&[2, 2], 0))
            .kink((), x(&[2, 2], 1))
            .kink((), x(&[1, 1], 0))
            .kink((), x(&[1, 1], 1))
            .kink((), x(&[0, 0], 1))
            .kink((), x(&[2, 2, 0], 1))
            // Of rank 1, and 0.
            .kink((), vec![Array::reals(d, &[3, 3], &[1.0; 9]), any(d, &[3, 3], 31), any(d, &[3, 3], 32)])
            .kink((), vec![Array::reals(d, &[3, 3], &[1.0; 9]), any(d, &[3, 3], 33)])
            .kink((), vec![Array::reals(d, &[3, 3], &[0.0; 9]), any(d, &[3, 3], 34), any(d, &[3, 3], 35)])
    })
    .symbolic((), &[&["n", "n"]])
    .symbolic((), &[&["n", "n"], &["n", "n"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", IN_RULES)
    .error((), vec![any(F64, &[2, 3], 1)], &["[2, 3]", "square"])
    .error((), vec![any(F64, &[2, 2], 1), any(F64, &[3, 3], 1)], &["[3, 3]", "[2, 2]"])
    .error((), vec![any(F64, &[2, 2], 1); 10], &["9", "at most 8"])
    .error((), vec![f64s(&[1, 1], &[1.0]), f64s(&[1, 1], &[f64::NAN])], &["[0, 0]", "not finite"])
    .done()
}

fn slogdet() -> OpInfo {
    op(
        "slogdet",
        |_: &(), x: &[Var]| <[Var; 2]>::from(ops::slogdet(&x[0])),
        |_, x| {
            let (d, batch) = (floating(x[0].dtype), extents(&x[0]).1);
            let dets = determinants(&x[0]);
            let signs: Vec<Number> =
                dets.iter().map(|z| if z.norm() > 0.0 { z / z.norm() } else { *z }).collect();
            let logs: Vec<Number> = dets.iter().map(|z| z.norm().ln().into()).collect();
            vec![stack_scalars(d, batch, &signs), stack_scalars(d.real(), batch, &logs)]
        },
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; slogdet()))
    .tolerance(bound(33, 2.5))
    .each(FLOATS, |o, d| {
        o.sample((), vec![dominant(d, &[3, 3], 1)])
            .sample((), vec![dominant(d, &[1, 1], 2)])
            .sample((), vec![dominant(d, &[4, 4, 2], 3)])
            .sample((), vec![dominant(d, &[2, 2, 1, 3], 4)])
            .kink((), vec![any(d, &[0, 0], 5)])
            .sample((), vec![any(d, &[2, 2, 0], 6)])
            .kink((), vec![dominant(d, &[17, 17], 7)])
            // Signs -1, 1 and -1.
            .kink((), vec![Array::reals(d, &[1, 1, 2], &[-0.01, -0.5])])
            .kink((), vec![Array::reals(d, &[2, 2], &[-0.25, 0.0, 0.0, -0.25])])
            .kink((), vec![Array::reals(d, &[2, 2], &[0.0, 2.0, 2.0, 0.0])])
    })
    .kink((), vec![Array::ints(I64, &[2, 2], &[1, 2, 3, 4])])
    .symbolic((), &[&["n", "n"]])
    .skip("rank_0", "a matrix is needed")
    .error((), vec![any(F64, &[2, 3], 1)], &["[2, 3]", "square"])
    .error((), vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .error((), vec![f64s(&[1, 1], &[f64::INFINITY])], &["[0, 0]", "not finite"])
    .done()
}
