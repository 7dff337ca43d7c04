//! LU factorization and linear systems: residuals, derivatives, errors, batches.

mod common;

use common::*;
use tenferro_core_ops::Var;
use tenferro_linalg::ops::{lu, lu_full_pivot, solve};
use tenferro_tensor::{C64, DType, Tensor};

const DTYPES: [DType; 2] = [DType::F64, DType::C64];

/// Matrices with a large diagonal.
fn regular(dtype: DType, shape: &[usize]) -> Tensor {
    let mut a = numbers(&random(dtype, shape, 3)).into_iter();
    from_fn(dtype, shape, |i| a.next().unwrap() + if i[0] == i[1] { 3.0 } else { 0.0 })
}

/// The last pivot of [[c, c], [-c, c]] is 2 c.
#[test]
fn an_elimination_that_overflows_is_an_error() {
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        let c = 2f64.powi(if dtype.real() == DType::F32 { 127 } else { 1023 });
        let a = from_fn(dtype, &[2, 2], |i| C64::new(if i[0] > i[1] { -c } else { c }, 0.0));
        on_cpu(|| {
            let a = now(&a);
            for y in [lu(&a).0, lu(&a).2, lu_full_pivot(&a).0, solve(&a, &a)] {
                let e = y.ok().unwrap_err().to_string();
                assert!(e.contains("overflow"), "{e}");
            }
            let half = &a * 0.5;
            assert_close(
                "half",
                &tensor(&solve(&half, &half)),
                &tensor(&solve(&(&half / c), &(&half / c))),
                1e-6,
            );
        });
    }
}

#[test]
fn factors_multiply_to_the_permuted_matrix() {
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        let tolerance = if dtype.real() == DType::F32 { 1e-5 } else { 1e-13 };
        for shape in [[3, 3], [5, 2], [2, 5], [1, 1], [33, 20], [0, 3], [3, 0]] {
            let a = random(dtype, &shape, 3);
            on_cpu(|| {
                let (p, l, u) = lu(&now(&a));
                let k = shape[0].min(shape[1]);
                assert_eq!(
                    (tensor(&l).shape(), tensor(&u).shape()),
                    (&[shape[0], k][..], &[k, shape[1]][..])
                );
                assert_close("P A", &tensor(&l.matmul(&u)), &tensor(&now(&a).index_select(&p, 0)), tolerance);
                assert_close("upper", &tensor(&u.tril(-1)), &tensor(&u.like(0.0)), 0.0);
            });
        }
    }
}

#[test]
fn factors_have_derivatives() {
    let f = |x: &[Var]| {
        let (_, l, u) = lu(&x[0]);
        vec![l, u]
    };
    for dtype in DTYPES {
        for shape in [&[3, 3][..], &[4, 2], &[2, 4], &[2, 2, 3]] {
            // The pivots stay the same under differences.
            let a = regular(dtype, shape);
            check(&format!("lu {dtype} {shape:?}"), &f, &[a], 2, 1e-7);
        }
    }
}

#[test]
fn solutions_solve() {
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        let tolerance = if dtype.real() == DType::F32 { 1e-3 } else { 1e-11 };
        for (n, nrhs) in [(1, 1), (2, 2), (3, 5), (25, 3), (0, 2), (2, 0)] {
            let (a, b) = (random(dtype, &[n, n], 3), random(dtype, &[n, nrhs], 4));
            on_cpu(|| {
                let x = solve(&now(&a), &now(&b));
                assert_close("A X", &tensor(&now(&a).matmul(&x)), &b, tolerance);
            });
        }
    }
}

#[test]
fn a_right_hand_side_with_one_axis_is_a_vector() {
    let (a, b) = (random(DType::F64, &[3, 3], 3), random(DType::F64, &[3], 4));
    on_cpu(|| {
        let x = solve(&now(&a), &now(&b));
        assert_eq!(tensor(&x).shape(), [3]);
        assert_close("A x", &tensor(&now(&a).tensordot(&x, 1)), &b, 1e-12);
    });
}

#[test]
fn batches_are_aligned_and_repeated() {
    let (a, b) = (random(DType::C64, &[3, 3, 2], 3), random(DType::F64, &[3, 2], 4));
    on_cpu(|| {
        let x = solve(&now(&a), &now(&b));
        assert_eq!(tensor(&x).shape(), [3, 2, 2]);
        for i in 0..2 {
            let part = |x: &Var| x.slice_axis(2, i, i + 1).squeeze(&[2]);
            let one = solve(&part(&now(&a)), &now(&b));
            assert_close("batch", &tensor(&part(&x)), &tensor(&one), 1e-14);
        }
    });
}

#[test]
fn solutions_have_derivatives() {
    let f = |x: &[Var]| vec![solve(&x[0], &x[1])];
    for dtype in DTYPES {
        let x = [regular(dtype, &[3, 3]), random(dtype, &[3, 2], 4)];
        check(&format!("solve {dtype}"), &f, &x, 3, 1e-6);
        let x = [regular(dtype, &[2, 2, 2]), random(dtype, &[2, 1], 4)];
        check(&format!("batched solve {dtype}"), &f, &x, 2, 1e-6);
    }
    let x = [regular(DType::F64, &[3, 3]), random(DType::F64, &[3], 4)];
    check("vector", &f, &x, 2, 1e-6);
}

#[test]
fn bad_matrices_are_named() {
    let error = |a: Tensor, b: &[usize]| {
        on_cpu(|| solve(&now(&a), &now(&random(DType::F64, b, 1))).ok().unwrap_err().to_string())
    };
    let singular =
        Tensor::from_vec_col_major([2, 2, 2], vec![1.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 4.0]).unwrap();
    assert_eq!(
        error(singular, &[2, 1, 2]),
        "solve: singular matrix: got pivot 1 of matrix [1] is zero, expected a matrix with an inverse"
    );
    let infinite = Tensor::from_vec_col_major([2, 2], vec![1.0, f64::INFINITY, 0.0, 1.0]).unwrap();
    assert_eq!(
        error(infinite, &[2, 1]),
        "solve: matrix: got element [1, 0] is not finite, expected finite elements"
    );
    assert!(error(random(DType::F64, &[2, 3], 1), &[2, 1]).starts_with("solve: "));
    assert!(error(random(DType::F64, &[2, 2], 1), &[3, 1]).starts_with("solve: rows of the right-hand side"));
    assert!(error(random(DType::F64, &[2], 1), &[2, 1]).starts_with("solve: rank of an operand"));
}
