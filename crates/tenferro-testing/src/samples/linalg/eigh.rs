//! Eigenvalues and eigenvectors of Hermitian matrices.
//!
//! The operations read one triangle, and their derivatives are those of functions of Hermitian matrices. So
//! derivatives are compared with differences for functions that take the Hermitian part of a matrix first.

use super::{
    cholesky::{definite, hermitian_part},
    *,
};
use crate::{
    array::Elem,
    info::{op, surface},
    matrix::{stack_vectors, vectors},
};
use tenferro_core_ops::{Var, apply1, build};
use tenferro_linalg::{EigenvalueGaps, Hermitian, LinalgOps, LinalgRecorded, TypedLinalgOps, ops};

pub(super) fn list() -> Vec<OpInfo> {
    vec![
        factors(),
        values(),
        invariants(),
        eigenvectors(),
        multiplet(),
        generalized(),
        generalized_invariants(),
        completed_triangle(),
        gaps(),
    ]
}

/// Why differences do not apply.
const TRIANGLE: &str = "one triangle is read, and the derivative is that of a function of Hermitian matrices; \
                        it is checked on eigh_invariants";

/// The Hermitian matrix with the lower triangle of `a`.
fn completed(a: &Matrix) -> Matrix {
    Matrix::from_fn(a.rows, a.columns, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => a.at(j, i).conj(),
        std::cmp::Ordering::Equal => a.at(i, i).re.into(),
        std::cmp::Ordering::Greater => a.at(i, j),
    })
}

fn part(x: &Var) -> Var {
    (x + &x.adjoint()) * 0.5
}

fn hermitian_half(a: &Matrix) -> Matrix {
    a.plus(1.0, &a.adjoint()).halved()
}

/// Random Hermitian matrices with these eigenvalues, one for each list.
fn with_eigenvalues(dtype: DType, values: &[&[f64]], seed: u64) -> Array {
    let n = values[0].len();
    let parts: Vec<Matrix> = (values.iter().enumerate())
        .map(|(b, w)| {
            let q = matrices(&any(dtype, &[n, n], seed + b as u64))[0].basis();
            q.scaled(w).times(&q.adjoint())
        })
        .collect();
    let batch = if values.len() == 1 { vec![] } else { vec![values.len()] };
    stack(dtype, [n, n], &batch, &parts)
}

fn eigenvalues(a: &Array, of: fn(&Matrix) -> Matrix) -> Array {
    let w: Vec<Vec<f64>> = matrices(a).iter().map(|a| of(a).eigh().0).collect();
    stack_vectors(a.dtype.real(), a.shape[0], &a.shape[2..], &w)
}

fn factors() -> OpInfo {
    op(
        "eigh",
        |_: &(), x: &[Var]| <[Var; 2]>::from(ops::eigh(&x[0])),
        |_, x| {
            let a = x[0].cast(floating(x[0].dtype));
            let n = a.shape[0];
            vec![each_matrix(&a, [n, n], |a| completed(&a)), eigenvalues(&a, completed), identities(&a, n)]
        },
    )
    // V diag(w) V^H, w and V^H V.
    .observe(|_, _, y| {
        let (w, v) = (&y[0], &y[1]);
        let n = v.shape[0];
        let scaled: Vec<Matrix> = matrices(v).iter().zip(vectors(w)).map(|(v, w)| v.scaled(&w)).collect();
        let scaled = stack(v.dtype, [n, n], &v.shape[2..], &scaled);
        vec![
            each_pair(&scaled, v, [n, n], |x, v| x.times(&v.adjoint())),
            w.clone(),
            each_matrix(v, [n, n], |v| v.adjoint().times(&v)),
        ]
    })
    .surface(surface!((); LinalgOps, TypedLinalgOps; eigh()))
    // Values and products move as the matrix does.
    .tolerance(bound(40, 1.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![any(d, &[3, 3], 1)])
            .sample((), vec![any(d, &[1, 1], 2)])
            .sample((), vec![any(d, &[2, 2, 2], 3)])
            .sample((), vec![any(d, &[4, 4, 1, 3], 4)])
            .sample((), vec![any(d, &[0, 0], 5)])
            .sample((), vec![any(d, &[2, 2, 0], 6)])
            .kink((), vec![with_eigenvalues(d, &[&[-1.0, 2.0, 2.0, 2.0]], 7)])
            .kink((), vec![with_eigenvalues(d, &[&[0.0; 3], &[1.0; 3]], 8)])
            .kink((), vec![with_eigenvalues(d, &[&[1e-8, 1.0, 1.0 + 1e-8]], 9)])
            .kink((), vec![any(d, &[40, 40], 10)])
    })
    .each([I64, I32], |o, d| o.kink((), vec![any(d, &[3, 3], 11)]))
    .symbolic((), &[&["n", "n"]])
    .symbolic((), &[&["n", "n", "m"]])
    .skip("rank_0", "a matrix is needed")
    .skip("jvp", TRIANGLE)
    .skip("second_order", TRIANGLE)
    .error((), vec![any(F64, &[3], 1)], &["1", "at least 2"])
    .error((), vec![any(F64, &[3, 2], 1)], &["[3, 2]", "square"])
    .error((), vec![f64s(&[2, 2], &[1.0, f64::NAN, 0.0, 1.0])], &["[1, 0]", "not finite"])
    .error((), vec![f64s(&[1, 1, 2], &[1.0, f64::INFINITY])], &["[0, 0] of matrix [1]", "finite"])
    .first_at_multiplets()
    .done()
}

fn values() -> OpInfo {
    let eye =
        |d, n: usize, x: f64| Array::from_fn(d, &[n, n], |i| Elem::real(if i[0] == i[1] { x } else { 0.0 }));
    op(
        "eigvalsh",
        |_: &(), x: &[Var]| ops::eigvalsh(&x[0]),
        |_, x| eigenvalues(&x[0].cast(floating(x[0].dtype)), completed),
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; eigvalsh()))
    // Values move as the matrix does.
    .tolerance(bound(5, 1.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![any(d, &[3, 3], 1)])
            .sample((), vec![any(d, &[2, 2, 3], 2)])
            .sample((), vec![any(d, &[1, 1], 3)])
            .sample((), vec![any(d, &[0, 0], 4)])
            .kink((), vec![with_eigenvalues(d, &[&[1.0, 1.0, 1e-3, 0.0]], 5)])
    })
    .kink((), vec![any(I64, &[3, 3], 6)])
    .symbolic((), &[&["n", "n"]])
    .symbolic((), &[&["n", "n", "m"]])
    // The derivative of the trace is the identity, also where all eigenvalues are equal.
    .each([F64, C64_], |o, d| {
        o.closed((), vec![eye(d, 3, 2.0)], f64s(&[3], &[1.0; 3]), vec![eye(d, 3, 1.0)]).closed(
            (),
            vec![eye(d, 2, -1.0)],
            f64s(&[2], &[0.5; 2]),
            vec![eye(d, 2, 0.5)],
        )
    })
    .skip("rank_0", "a matrix is needed")
    .skip("jvp", TRIANGLE)
    .skip("second_order", TRIANGLE)
    .error((), vec![any(F64, &[], 1)], &["0", "at least 2"])
    .error((), vec![any(F64, &[2, 3], 1)], &["[2, 3]", "square"])
    .error((), vec![f64s(&[1, 1], &[f64::NAN])], &["[0, 0]", "finite"])
    .first_at_multiplets()
    .done()
}

/// Functions of the Hermitian part that do not depend on phases: V diag(w) V^H, w, and V diag(1, 2, ..) V^H.
fn invariants() -> OpInfo {
    op(
        "eigh_invariants",
        |_: &(), x: &[Var]| {
            let (w, v) = ops::eigh(&part(&x[0]));
            let weights = build::iota(w.dtype(), &w.shape(), 0) + 1.0;
            let with = |w: &Var| (&v * &w.expand_dims(&[0])).matmul(&v.adjoint());
            [with(&w), with(&weights), w]
        },
        |_, x| {
            let n = x[0].shape[0];
            let weights: Vec<f64> = (1..=n).map(|i| i as f64).collect();
            vec![
                each_matrix(&x[0], [n, n], |a| hermitian_half(&a)),
                each_matrix(&x[0], [n, n], |a| {
                    let v = hermitian_half(&a).eigh().1;
                    v.scaled(&weights).times(&v.adjoint())
                }),
                eigenvalues(&x[0], hermitian_half),
            ]
        },
    )
    // Vectors move by the inverse of the gap, 6 / (6 - 4), the products of three of them by more.
    .tolerance(bound(5, 4.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![with_eigenvalues(d, &[&[-1.5, 4.0, 6.0]], 1)])
            .sample((), vec![with_eigenvalues(d, &[&[2.0, 5.0]], 2)])
            .sample((), vec![with_eigenvalues(d, &[&[2.0]], 3)])
            .sample((), vec![with_eigenvalues(d, &[&[2.0, 5.0], &[-3.0, 1.5]], 4)])
            .sample((), vec![any(d, &[0, 0], 5)])
    })
    .symbolic((), &[&["n", "n"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", COMPOSED)
    .error_of("eigh", (), vec![f64s(&[1, 1], &[f64::NAN])], &["[0, 0]", "finite"])
    .done()
}

/// The vectors of the Hermitian part, with their phases.
fn eigenvectors() -> OpInfo {
    op(
        "eigh_vectors",
        |_: &(), x: &[Var]| ops::eigh(&part(&x[0])).1,
        |_, x| {
            let n = x[0].shape[0];
            each_matrix(&x[0], [n, n], |a| {
                let v = hermitian_half(&a).eigh().1;
                Matrix::from_fn(n, n, |i, j| {
                    let largest = (0..n).map(|k| v.at(k, j).norm()).fold(0.0, f64::max);
                    let held = (0..n).map(|k| v.at(k, j)).find(|x| x.norm() >= 0.999 * largest);
                    let held = held.expect("one is the largest");
                    v.at(i, j) * held.conj() / held.norm()
                })
            })
        },
    )
    // Vectors move by the inverse of the gap, 6 / (6 - 4).
    .tolerance(bound(5, 4.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![with_eigenvalues(d, &[&[-1.5, 4.0, 6.0]], 1)])
            .sample((), vec![with_eigenvalues(d, &[&[2.0, 5.0]], 2)])
            .sample((), vec![with_eigenvalues(d, &[&[2.0]], 3)])
            .sample((), vec![with_eigenvalues(d, &[&[2.0, 5.0], &[-3.0, 1.5]], 4)])
            .sample((), vec![any(d, &[0, 0], 5)])
            // Vectors with components of the same modulus.
            .kink((), vec![Array::reals(d, &[2, 2], &[1.0, 2.0, 2.0, 1.0])])
    })
    .symbolic((), &[&["n", "n"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", COMPOSED)
    .error_of("eigh", (), vec![f64s(&[1, 1], &[f64::NAN])], &["[0, 0]", "finite"])
    .done()
}

/// The projector on the vectors of the `r` largest eigenvalues, which are equal, and the sum of these.
fn multiplet() -> OpInfo {
    op(
        "eigh_multiplet",
        |&r: &usize, x: &[Var]| {
            // Those of -A come first.
            let (w, v) = ops::eigh(&-&part(&x[0]));
            let (w, v) = (w.slice_axis(0, 0, r), v.slice_axis(1, 0, r));
            [v.matmul(&v.adjoint()), -&w.reduce_sum(Some(&[0]))]
        },
        |&r, x| {
            let n = x[0].shape[0];
            let onto = |a: Matrix| {
                let (_, v) = hermitian_half(&a).eigh();
                let v = Matrix::from_fn(n, r, |i, j| v.at(i, n - r + j));
                v.times(&v.adjoint())
            };
            let sums: Vec<_> = (matrices(&x[0]).iter())
                .map(|a| hermitian_half(a).eigh().0[n - r..].iter().sum::<f64>().into())
                .collect();
            let batch = &x[0].shape[2..];
            vec![
                each_matrix(&x[0], [n, n], onto),
                crate::matrix::stack_scalars(x[0].dtype.real(), batch, &sums),
            ]
        },
    )
    // 5 / (5 - 2)
    .tolerance(bound(5, 2.0))
    .each(FLOATS, |o, d| {
        o.sample(2, vec![with_eigenvalues(d, &[&[1.5, 5.0, 5.0]], 1)])
            .sample(3, vec![with_eigenvalues(d, &[&[-2.0, 0.0, 5.0, 5.0, 5.0]], 2)])
            // Also among themselves degenerate, and zero but for rounding errors.
            .sample(2, vec![with_eigenvalues(d, &[&[0.0, 0.0, 0.0, 3.0, 3.0]], 3)])
            .sample(0, vec![any(d, &[0, 0], 4)])
    })
    .skip("rank_0", "a matrix is needed")
    .skip("second_order", "w and V do not hold what a second derivative inside a multiplet needs")
    .skip("surfaces", COMPOSED)
    .symbolic(1, &[&["n", "n"]])
    .error_of("eigh", 1, vec![f64s(&[1, 1], &[f64::NAN])], &["[0, 0]", "finite"])
    .done()
}

/// `(w, V)` with `A V = B V diag(w)`, of A and B^-1/2 A B^-1/2, whose eigenvectors are B^1/2 V.
fn generalized_reference(a: &Matrix, b: &Matrix) -> (Vec<f64>, Matrix) {
    let (s, q) = completed(b).eigh();
    let inverse: Vec<f64> = s.iter().map(|s| 1.0 / s.sqrt()).collect();
    let root = q.scaled(&inverse).times(&q.adjoint());
    let (w, v) = root.times(&completed(a)).times(&root).eigh();
    (w, root.times(&v))
}

fn generalized_values(a: &Array, b: &Array) -> Array {
    let pairs = matrices(a).into_iter().zip(matrices(b));
    let w: Vec<Vec<f64>> = pairs.map(|(a, b)| generalized_reference(&a, &b).0).collect();
    stack_vectors(a.dtype.real(), a.shape[0], &a.shape[2..], &w)
}

/// Matrices, and positive definite ones.
fn pairs(dtype: DType, shape: &[usize], seed: u64) -> Vec<Array> {
    vec![any(dtype, shape, seed), hermitian_part(&definite(dtype, shape, seed + 100))]
}

fn generalized() -> OpInfo {
    op(
        "eigh_generalized",
        |_: &(), x: &[Var]| <[Var; 2]>::from(ops::eigh_generalized(&x[0], &x[1])),
        |_, x| {
            let (a, b) = (x[0].cast(floating(x[0].dtype)), x[1].cast(floating(x[1].dtype)));
            let n = a.shape[0];
            let whole = each_matrix(&a, [n, n], |a| completed(&a));
            vec![whole, generalized_values(&a, &b), identities(&a, n)]
        },
    )
    // A + A V - B V diag(w), w and V^H B V.
    .observe(|_, x, y| {
        let (w, v) = (&y[0], &y[1]);
        let n = v.shape[0];
        let of = |x: &Array, f: fn(&Matrix) -> Matrix| each_matrix(&x.cast(v.dtype), [n, n], |a| f(&a));
        let (a, b) = (of(&x[0], completed), of(&x[1], completed));
        let scaled: Vec<Matrix> = matrices(v).iter().zip(vectors(w)).map(|(v, w)| v.scaled(&w)).collect();
        let scaled = stack(v.dtype, [n, n], &v.shape[2..], &scaled);
        let (av, bv) = (each_pair(&a, v, [n, n], Matrix::times), each_pair(&b, v, [n, n], Matrix::times));
        let bvw = each_pair(&b, &scaled, [n, n], Matrix::times);
        let rest = each_pair(&av, &bvw, [n, n], |x, y| x.plus(-1.0, y));
        vec![
            each_pair(&a, &rest, [n, n], |x, y| x.plus(1.0, y)),
            w.clone(),
            each_pair(v, &bv, [n, n], |v, bv| v.adjoint().times(bv)),
        ]
    })
    .surface(surface!((); LinalgOps, TypedLinalgOps; eigh_generalized(1)))
    .promotes()
    // The condition of B.
    .tolerance(bound(5, 8.0))
    .each(FLOATS, |o, d| {
        o.sample((), pairs(d, &[3, 3], 1))
            .sample((), pairs(d, &[1, 1], 2))
            .sample((), pairs(d, &[2, 2, 3], 3))
            .sample((), pairs(d, &[0, 0], 4))
            .sample((), pairs(d, &[2, 2, 0], 5))
            .kink((), vec![identities(&any(d, &[3, 3], 6), 3), identities(&any(d, &[3, 3], 6), 3)])
    })
    .kink((), vec![any(I64, &[2, 2], 7), Array::ints(I64, &[2, 2], &[4, 2, 2, 3])])
    .symbolic_call(&[(F64, &["n", "n"]), (F64, &["n", "n"])], |x| {
        let b = x[1].matmul(&x[1].adjoint()) + build::eye(F64, &x[1].extent(0));
        ops::eigh_generalized(&x[0], &b).0
    })
    .skip("rank_0", "a matrix is needed")
    .skip("jvp", "tangents count by their Hermitian parts; see eigh_generalized_invariants")
    .skip("second_order", "tangents count by their Hermitian parts; see eigh_generalized_invariants")
    .error((), vec![any(F64, &[3], 1), any(F64, &[3, 3], 1)], &["1", "at least 2"])
    .error_at(
        ["eigh_generalized", "cholesky"],
        (),
        vec![f64s(&[2, 2], &[1.0, 0.0, 0.0, 1.0]), f64s(&[2, 2], &[1.0, 0.0, 0.0, -1.0])],
        &["order 2", "positive definite"],
    )
    .error((), vec![any(F64, &[2, 2], 1), f64s(&[1, 1], &[1.0])], &["2", "1"])
    .first_at_multiplets()
    .done()
}

/// The Hermitian matrix of a lower triangle; its derivative is that of the Hermitian part.
fn completed_triangle() -> OpInfo {
    op(
        "hermitian",
        |_: &(), x: &[Var]| apply1(&Hermitian, &[&x[0]]),
        |_, x| each_matrix(&x[0], extents(&x[0]).0, |a| completed(&a)),
    )
    .each(FLOATS, |o, d| {
        o.sample((), vec![hermitian_part(&any(d, &[3, 3], 1))])
            .sample((), vec![hermitian_part(&any(d, &[2, 2, 2], 2))])
            .sample((), vec![any(d, &[0, 0], 3)])
    })
    .value((), vec![f64s(&[2, 2], &[1.0, 2.0, f64::NAN, 3.0])], f64s(&[2, 2], &[1.0, 2.0, 2.0, 3.0]))
    .symbolic((), &[&["1", "1"]])
    .skip("rank_0", "a matrix is needed")
    .skip("decomposition", "tangents count by their Hermitian parts; see eigh_generalized_invariants")
    .skip("jvp", "tangents count by their Hermitian parts; see eigh_generalized_invariants")
    .skip("second_order", "tangents count by their Hermitian parts; see eigh_generalized_invariants")
    .skip("surfaces", IN_RULES)
    .error((), vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .error((), vec![any(F64, &[2, 3], 1)], &["[2, 3]", "square"])
    .done()
}

/// w and V diag(1, 2, ..) V^H of A and of B B^H + 4.
fn generalized_invariants() -> OpInfo {
    op(
        "eigh_generalized_invariants",
        |_: &(), x: &[Var]| {
            if x.iter().take(2).any(|x| x.ok().is_ok() && x.rank() < 2) {
                return <[Var; 2]>::from(ops::eigh_generalized(&x[0], &x[1]));
            }
            let n = x[1].extent(0);
            let four = (build::eye(x[1].dtype(), &n) * 4.0).batch_like(&x[1]);
            let a = part(&x[0]);
            let (w, v) = ops::eigh_generalized(&a, &(x[1].matmul(&x[1].adjoint()) + four));
            let weights = build::iota(w.dtype(), &w.shape(), 0) + 1.0;
            [(&v * &weights.expand_dims(&[0])).matmul(&v.adjoint()), w]
        },
        |_, x| {
            let n = x[0].shape[0];
            let weights: Vec<f64> = (1..=n).map(|i| i as f64).collect();
            let far = |b: &Matrix| b.times(&b.adjoint()).plus(4.0, &Matrix::identity(n));
            let half = each_matrix(&x[0], [n, n], |a| hermitian_half(&a));
            let b = each_matrix(&x[1], [n, n], |b| far(&b));
            vec![
                each_pair(&half, &b, [n, n], |a, b| {
                    let v = generalized_reference(a, b).1;
                    v.scaled(&weights).times(&v.adjoint())
                }),
                generalized_values(&half, &b),
            ]
        },
    )
    .tolerance(bound(5, 8.0))
    .each(FLOATS, |o, d| {
        o.sample((), vec![with_eigenvalues(d, &[&[-8.0, 1.5, 20.0]], 1), any(d, &[3, 3], 2)])
            .sample((), vec![with_eigenvalues(d, &[&[-8.0, 5.0], &[2.0, 15.0]], 3), any(d, &[2, 2, 2], 4)])
            .sample((), vec![any(d, &[0, 0], 5), any(d, &[0, 0], 6)])
    })
    .symbolic((), &[&["n", "n"], &["n", "n"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", COMPOSED)
    .error_of("eigh_generalized", (), vec![any(F64, &[3], 1), any(F64, &[3, 3], 1)], &["1", "at least 2"])
    .done()
}

/// 1 / (w_j - w_i), and 0 where that has no meaning.
fn gaps() -> OpInfo {
    let eye = |d, n: usize| Array::from_fn(d, &[n, n], |i| Elem::real((i[0] == i[1]) as u8 as f64));
    let values = |d: DType, w: &[f64]| vec![Array::reals(d, &[w.len()], w), any(d, &[w.len(), w.len()], 1)];
    op(
        "eigenvalue_gaps",
        |_: &(), x: &[Var]| apply1(&EigenvalueGaps, &[&x[0], &x[1]]),
        |_, x| {
            let (w, v) = (&x[0], &x[1]);
            let n = w.shape[0];
            let eps = if w.dtype.real() == F32 { f32::EPSILON as f64 } else { f64::EPSILON };
            Array::from_fn(w.dtype, &v.shape, |i| {
                let beside = |k: &[usize]| [k, &i[2..]].concat();
                let at = |k: usize| w.at(&beside(&[k])).c();
                let single = |j: usize| {
                    (0..n)
                        .filter(|&k| v.at(&beside(&[k, j])).c() != tenferro_tensor::C64::new(0.0, 0.0))
                        .count()
                        == 1
                };
                let (a, b) = (at(i[0]), at(i[1]));
                let largest = (0..n).map(|k| at(k).norm()).fold(0.0, f64::max);
                let gap = (b - a).norm();
                let sound =
                    gap > eps.sqrt() * 0.5 * (a.norm() + b.norm()) && gap > 10.0 * n as f64 * eps * largest;
                let usable = gap > 0.0 && (sound || (single(i[0]) && single(i[1])));
                Elem::Float(if usable { 1.0 / (b - a) } else { 0.0.into() })
            })
        },
    )
    .each([F64, F32], |o, d| {
        o.sample((), values(d, &[4.0, 2.5, -1.0]))
            .sample((), values(d, &[2.0]))
            .sample((), values(d, &[]))
            .sample((), vec![Array::reals(d, &[2, 2], &[3.0, 1.0, 5.0, 2.5]), any(d, &[2, 2, 2], 2)])
            // Complex vectors of real eigenvalues.
            .sample((), vec![Array::reals(d, &[2], &[1.0, -1.0]), any(d.complex(), &[2, 2], 3)])
            // Equal values, nearly equal ones, and zeros up to rounding.
            .kink((), values(d, &[2.0, 2.0, 1.0, 1.0 - 1e-12, 0.0, 1e-17]))
            // Nearly equal ones of a diagonal matrix.
            .kink((), vec![Array::reals(d, &[3], &[16777216.0, 16777218.0, 16777218.0]), eye(d, 3)])
    })
    .each([C64_, C32], |o, d| {
        o.sample(
            (),
            vec![Array::complexes(d, &[3], &[(1.0, 2.0), (1.0, -2.0), (0.0, 0.5)]), any(d, &[3, 3], 4)],
        )
    })
    .symbolic((), &[&["n"], &["n", "n"]])
    .skip("rank_0", "an axis is needed")
    .skip("surfaces", IN_RULES)
    .error((), vec![any(I64, &[2], 1), any(F64, &[2, 2], 1)], &["i64", "f64"])
    .error((), vec![any(F64, &[2], 1), any(F64, &[2, 3], 1)], &["[2, 3]", "square"])
    .error((), vec![any(F64, &[3], 1), any(F64, &[2, 2], 1)], &["f64[3]", "f64[2]"])
    .done()
}
