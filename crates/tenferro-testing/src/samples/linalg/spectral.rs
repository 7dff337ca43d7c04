//! Functions of singular values.

use super::*;
use crate::{
    array::Elem,
    info::{op, surface},
    matrix::{stack_vectors, vectors},
};
use tenferro_core_ops::{Var, apply1};
use tenferro_linalg::{
    LinalgOps, LinalgRecorded, SpectralCore, SpectralDerivative, SpectralFunction, TypedLinalgOps, ops,
};

pub(super) fn list() -> Vec<OpInfo> {
    vec![spectral(), derivative(), core()]
}

/// A function of a number, with its derivatives as the library is told and as the reference computes it.
#[derive(Clone, Copy, Debug)]
enum F {
    Power(f64),
    Exp(f64),
    Sine,
}

impl F {
    fn function(self) -> SpectralFunction {
        match self {
            F::Power(p) => SpectralFunction::power(p),
            F::Exp(c) => SpectralFunction::exp(c),
            F::Sine => SpectralFunction::custom(|n, x| (x + n as f64 * std::f64::consts::FRAC_PI_2).sin()),
        }
    }

    fn at(self, x: f64) -> f64 {
        match self {
            F::Power(p) => x.powf(p),
            F::Exp(c) => (c * x).exp(),
            F::Sine => x.sin(),
        }
    }

    fn of_matrix(self, a: &Matrix) -> Matrix {
        let (u, s, v) = a.svd();
        u.scaled(&s.iter().map(|&s| self.at(s)).collect::<Vec<_>>()).times(&v.adjoint())
    }
}

fn spectral() -> OpInfo {
    // The derivative of A A^H A at any A, degenerate or not, is self-adjoint.
    let cube = |a: &Array, ct: &Array| vec![cubed(&[a, a, a], ct)];
    op(
        "spectral",
        |f: &F, x: &[Var]| ops::spectral(&x[0], &f.function()),
        |f, x| {
            let a = x[0].cast(floating(x[0].dtype));
            each_matrix(&a, extents(&a).0, |a| f.of_matrix(&a))
        },
    )
    .surface(surface!(F; LinalgOps, TypedLinalgOps; spectral() |f| &f.function()))
    .highest(16)
    // x f'(x) / f, which is 3 for the cube, and for the sine at 3.
    .tolerance(bound(5, 3.0))
    .each(FLOATS, |o, d| {
        let of = |shape, values: &[&[f64]], seed| vec![with_values(d, shape, values, seed)];
        o.each([F::Power(0.5), F::Power(3.0), F::Exp(-0.5), F::Sine], |o, f| {
            o.sample(f, of([3, 3], &[&[3.0, 2.0, 1.5]], 1)).sample(f, of([1, 1], &[&[2.0]], 2))
        })
        .sample(F::Power(0.5), of([3, 2], &[&[3.0, 1.5]], 3))
        .sample(F::Sine, of([2, 3], &[&[3.0, 1.5]], 4))
        .sample(F::Power(-1.0), of([2, 2], &[&[3.0, 1.5], &[2.5, 2.5]], 5))
        .sample(F::Power(3.0), of([0, 2], &[&[]], 6))
        // Equal and nearly equal values, and, of functions that are smooth there, zeros.
        .sample(F::Power(0.5), of([3, 3], &[&[2.0, 2.0, 1.5]], 7))
        .sample(F::Exp(-0.5), of([2, 2], &[&[2.0, 2.0 - 1e-9]], 8))
        .sample(F::Sine, of([3, 3], &[&[2.0, 0.0, 0.0]], 9))
        .sample(F::Sine, of([3, 2], &[&[0.0, 0.0]], 10))
        .sample(F::Power(3.0), of([2, 3], &[&[1.0, 0.0]], 11))
    })
    .kink(F::Power(3.0), vec![any(I64, &[2, 2], 12)])
    .symbolic(F::Power(3.0), &[&["n", "m"]])
    .symbolic(F::Sine, &[&["n", "n"]])
    .symbolic(F::Exp(0.5), &[&["n", "n", "2"]])
    .each([F64, C64_], |o, d| {
        let degenerate: [([usize; 2], &[f64]); 7] = [
            ([3, 3], &[1.0, 1.0, 1.0]),
            ([3, 3], &[2.0, 2.0, 0.5]),
            ([3, 3], &[2.0, 0.0, 0.0]),
            ([3, 2], &[1.0, 1.0]),
            ([2, 3], &[0.0, 0.0]),
            ([7, 2], &[1.0, 0.0]),
            ([2, 7], &[1.0, 1.0]),
        ];
        o.each(degenerate, |o, (shape, s)| {
            let (a, ct) = (with_values(d, shape, &[s], 13), any(d, &shape, 14));
            o.closed(F::Power(3.0), vec![a.clone()], ct.clone(), cube(&a, &ct)).closed(
                F::Power(1.0),
                vec![a],
                ct.clone(),
                vec![ct],
            )
        })
    })
    .skip("rank_0", "a matrix is needed")
    .error(F::Power(3.0), vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .done()
}

/// The sum of the products `X Y^H Z` in which one of the three `a` is replaced by `e`.
fn cubed(a: &[&Array; 3], e: &Array) -> Array {
    each_pair(a[0], e, extents(e).0, |a, e| cube_along(a, std::slice::from_ref(e)))
}

/// The derivative of `A A^H A` along directions: the sum over the ways to put each in one place.
fn cube_along(a: &Matrix, e: &[Matrix]) -> Matrix {
    let mut total = Matrix::diagonal(a.rows, a.columns, &[]);
    // A place holds a direction, counted from 1, or A.
    for code in 0..(e.len() + 1).pow(3) {
        let places = [0, 1, 2].map(|i| code / (e.len() + 1).pow(i) % (e.len() + 1));
        if (1..=e.len()).all(|k| places.iter().filter(|&&p| p == k).count() == 1) {
            let [x, y, z] = places.map(|p| if p == 0 { a } else { &e[p - 1] });
            total = total.plus(1.0, &x.times(&y.adjoint()).times(z));
        }
    }
    total
}

/// D^n f(A)[E1, .., En] of f = x^3 from A, U, s, Vh and the directions.
fn derivative() -> OpInfo {
    op(
        "spectral_derivative",
        |_: &(), x: &[Var]| {
            let f = SpectralFunction::power(3.0);
            apply1(&SpectralDerivative { f }, &x.iter().collect::<Vec<_>>())
        },
        |_, x| {
            let directions: Vec<Vec<Matrix>> = x[4..].iter().map(matrices).collect();
            let parts: Vec<Matrix> = (matrices(&x[0]).iter().enumerate())
                .map(|(b, a)| cube_along(a, &directions.iter().map(|e| e[b].clone()).collect::<Vec<_>>()))
                .collect();
            stack(x[0].dtype, extents(&x[0]).0, &x[0].shape[2..], &parts)
        },
    )
    // A cube, of the matrix and up to three directions.
    .tolerance(bound(3, 4.0))
    .each(FLOATS, |o, d| {
        let operands = |a: Array, directions: u64| {
            let ([m, n], batch) = extents(&a);
            let k = m.min(n);
            let s: Vec<Vec<f64>> = matrices(&a).iter().map(|a| a.svd().1).collect();
            let mut x = vec![
                a.clone(),
                each_matrix(&a, [m, k], |a| a.svd().0),
                stack_vectors(d.real(), k, batch, &s),
                each_matrix(&a, [k, n], |a| a.svd().2.adjoint()),
            ];
            x.extend((0..directions).map(|k| any(d, &a.shape, 20 + k)));
            x
        };
        o.each(0..4, |o, n| {
            o.sample((), operands(with_values(d, [2, 2], &[&[2.0, 1.0]], 1), n))
                .sample((), operands(with_values(d, [3, 2], &[&[2.0, 1.0]], 3), n))
                .sample((), operands(with_values(d, [1, 2], &[&[2.0]], 5), n))
                // Of more rows, or columns, than the directions span.
                .sample((), operands(with_values(d, [9, 2], &[&[2.0, 1.0]], 11), n))
                .sample((), operands(with_values(d, [1, 6], &[&[1.5]], 13), n))
        })
        .sample((), operands(with_values(d, [5, 2], &[&[2.0, 2.0], &[1.0, 0.0]], 15), 1))
        .sample((), operands(with_values(d, [2, 2], &[&[2.0, 2.0], &[1.0, 0.5]], 7), 2))
        .sample((), operands(any(d, &[0, 2], 9), 1))
    })
    .skip("rank_0", "a matrix is needed")
    .skip("jvp", HINTS)
    .skip("second_order", HINTS)
    .skip("decomposition", "it has no kernel, and no derivative through its parts")
    .error_of(
        "spectral",
        (),
        vec![any(F64, &[2, 2], 1), any(F64, &[2, 2], 2), any(F64, &[2], 3)],
        &["3", "4"],
    )
    .skip("surfaces", IN_RULES)
    .symbolic((), &[&["n", "n"], &["n", "n"], &["n"], &["n", "n"]])
    .symbolic((), &[&["n", "n"], &["n", "n"], &["n"], &["n", "n"], &["n", "n"]])
    .each(
        [
            ([[3, 3], [2, 2]], 2, ["[3, 3]", "[3, 2]"]),
            ([[3, 2], [2, 3]], 2, ["[2, 3]", "[2, 2]"]),
            ([[3, 2], [2, 2]], 3, ["f64[3]", "f64[2]"]),
        ],
        |o, ([u, vh], k, parts)| {
            let x = vec![any(F64, &[3, 2], 1), any(F64, &u, 2), any(F64, &[k], 3), any(F64, &vh, 4)];
            o.error_of("spectral", (), x, &parts)
        },
    )
    .error_of(
        "spectral",
        (),
        [vec![any(F64, &[1, 1], 1); 2], vec![any(F64, &[1], 1)], vec![any(F64, &[1, 1], 1); 18]].concat(),
        &["17", "at most 16"],
    )
    .done()
}

/// f(s), or the derivative in the basis of the singular vectors, of f = x^3, from s and the directions.
fn core() -> OpInfo {
    const PART: &str = "it stands inside of a decomposition, which is never differentiated";
    op(
        "spectral_core",
        |_: &(), x: &[Var]| {
            let f = SpectralFunction::power(3.0);
            apply1(&SpectralCore { f }, &x.iter().collect::<Vec<_>>())
        },
        |_, x| {
            let Some(e) = x.get(1) else {
                return x[0].map(x[0].dtype, |e| Elem::real(e.re().powi(3)));
            };
            let directions: Vec<Vec<Matrix>> = x[1..].iter().map(matrices).collect();
            let ([m, n], batch) = extents(e);
            let parts: Vec<Matrix> = (vectors(&x[0]).iter().enumerate())
                .map(|(b, s)| {
                    let e: Vec<Matrix> = directions.iter().map(|e| e[b].clone()).collect();
                    cube_along(&Matrix::diagonal(m, n, s), &e)
                })
                .collect();
            stack(e.dtype, [m, n], batch, &parts)
        },
    )
    .order(0)
    // A cube.
    .tolerance(bound(3, 3.0))
    .each([F64, F32], |o, d| {
        o.sample((), vec![Array::reals(d, &[3], &[2.0, 1.0, 0.0])]).sample((), vec![any(d, &[0], 1)])
    })
    .each(FLOATS, |o, d| {
        o.each(1..4, |o, n| {
            let with = |s: &[f64], shape: &[usize]| {
                let s = Array::reals(d.real(), &[s.len()], s);
                std::iter::once(s).chain((0..n).map(|k| any(d, shape, 2 + k))).collect::<Vec<_>>()
            };
            o.sample((), with(&[2.0, 1.0], &[2, 2]))
                .sample((), with(&[2.0, 2.0], &[2, 3]))
                .sample((), with(&[1.5, 0.0], &[3, 2]))
                .sample((), with(&[], &[0, 2]))
        })
    })
    .skip("rank_0", "an axis is needed")
    .skip("flat", PART)
    .skip("surfaces", IN_RULES)
    .symbolic((), &[&["n"]])
    .symbolic((), &[&["n"], &["n", "n"], &["n", "n"]])
    .each(
        [
            (vec![any(F64, &[], 1)], ["0", "at least 1"]),
            (vec![any(F64, &[2], 1), any(F64, &[2], 2)], ["1", "at least 2"]),
            (vec![any(F64, &[2], 1), any(F32, &[2, 2], 2)], ["f32", "f64"]),
            (vec![any(F64, &[2], 1), any(F64, &[2, 1], 2)], ["2", "1"]),
            (vec![any(F64, &[2], 1), any(F64, &[2, 2, 3], 2)], ["[2, 2, 3]", "[2, 2]"]),
            (vec![any(F64, &[2], 1), any(F64, &[2, 2], 2), any(F64, &[2, 3], 3)], ["[2, 3]", "[2, 2]"]),
            (vec![any(F64, &[1], 1); 18], ["17", "at most 16"]),
        ],
        |o, (x, parts)| o.error((), x, &parts),
    )
    .done()
}
