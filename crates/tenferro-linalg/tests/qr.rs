//! QR factors and reflectors: their defining properties, derivatives, gauges, errors, batches.

mod common;

use common::*;
use tenferro_core_ops::{Var, build};
use tenferro_linalg::{
    QrOptions, System,
    ops::{
        householder, householder_append, householder_apply, householder_product, qr, qr_full, qr_pivoted,
        qr_with,
    },
};
use tenferro_tensor::{C64, DType, Tensor};

const DTYPES: [DType; 2] = [DType::F64, DType::C64];
const ALL: [DType; 4] = [DType::F32, DType::F64, DType::C32, DType::C64];
const POSITIVE: QrOptions = QrOptions { full: false, positive: true };

/// Matrices with a large diagonal, whose pivots are far from exchanging.
fn regular(dtype: DType, shape: &[usize]) -> Tensor {
    let mut a = numbers(&random(dtype, shape, 3)).into_iter();
    from_fn(dtype, shape, |i| a.next().unwrap() + if i[0] == i[1] { 3.0 + 2.0 * i[0] as f64 } else { 0.0 })
}

fn close(dtype: DType) -> f64 {
    if dtype.real() == DType::F32 { 1e-5 } else { 1e-13 }
}

fn unitary(what: &str, q: &Var, tolerance: f64) {
    let gram = q.adjoint().matmul(q);
    let one = build::eye(q.dtype(), &q.extent(1)).batch_like(&gram) + gram.like(0.0);
    assert_close(what, &tensor(&gram), &tensor(&one), tolerance);
}

#[test]
fn factors_multiply_to_the_matrix() {
    let shapes =
        [&[3, 3][..], &[5, 2], &[2, 5], &[1, 1], &[33, 20], &[0, 3], &[3, 0], &[4, 2, 3], &[2, 3, 0]];
    for (dtype, shape) in ALL.iter().flat_map(|d| shapes.map(|s| (*d, s))) {
        let (a, k) = (random(dtype, shape, 3), shape[0].min(shape[1]));
        on_cpu(|| {
            let x = now(&a);
            let full = QrOptions { full: true, positive: true };
            let cases = [
                (qr(&x), k),
                (qr_full(&x), shape[0]),
                (qr_with(&x, POSITIVE), k),
                (qr_with(&x, full), shape[0]),
            ];
            for ((q, r), columns) in cases {
                assert_eq!(
                    (&q.value().unwrap().shape()[..2], r.value().unwrap().shape()[0]),
                    (&[shape[0], columns][..], columns)
                );
                assert_close("Q R", &tensor(&q.matmul(&r)), &a, close(dtype));
                assert_close("upper", &tensor(&r.tril(-1)), &tensor(&r.like(0.0)), 0.0);
                unitary("Q", &q, close(dtype));
            }
        });
    }
}

#[test]
fn the_diagonal_of_r_is_real_and_of_the_sign_asked_for() {
    for dtype in DTYPES {
        for shape in [[4, 4], [4, 2], [2, 4]] {
            let a = random(dtype, &shape, 5);
            on_cpu(|| {
                for (r, positive) in [(qr(&now(&a)).1, false), (qr_with(&now(&a), POSITIVE).1, true)] {
                    for z in numbers(&tensor(&r.extract_diag(0, 1))) {
                        assert!(z.im == 0.0 && (!positive || z.re > 0.0), "{z}");
                    }
                }
            });
        }
    }
}

#[test]
fn pivoted_factors_multiply_to_exchanged_columns() {
    for dtype in ALL {
        for shape in [[4, 4], [5, 3], [3, 5], [0, 2], [2, 0]] {
            let a = random(dtype, &shape, 9);
            on_cpu(|| {
                let (q, r, p) = qr_pivoted(&now(&a));
                assert_close(
                    "Q R",
                    &tensor(&q.matmul(&r)),
                    &tensor(&now(&a).index_select(&p, 1)),
                    close(dtype),
                );
                let d: Vec<f64> = numbers(&tensor(&r.extract_diag(0, 1))).iter().map(|z| z.norm()).collect();
                assert!(d.windows(2).all(|d| d[1] <= d[0] * (1.0 + 1e-6)), "{d:?}");
            });
        }
    }
}

#[test]
fn thin_factors_have_derivatives() {
    let f = |x: &[Var]| <[Var; 2]>::from(qr(&x[0])).to_vec();
    let g = |x: &[Var]| <[Var; 2]>::from(qr_with(&x[0], POSITIVE)).to_vec();
    for dtype in DTYPES {
        for shape in [&[3, 3][..], &[4, 2], &[2, 4], &[3, 2, 2], &[1, 1], &[2, 1]] {
            let a = regular(dtype, shape);
            check(&format!("qr {dtype} {shape:?}"), &f, &[a.duplicate().unwrap()], 2, 1e-7);
            check(&format!("positive qr {dtype} {shape:?}"), &g, &[a], 2, 1e-7);
        }
        check("third order", &f, &[regular(dtype, &[3, 2])], 3, 1e-6);
    }
}

#[test]
fn a_loss_of_one_factor_alone_has_a_derivative() {
    let q = |x: &[Var]| vec![qr(&x[0]).0];
    let r = |x: &[Var]| vec![qr(&x[0]).1];
    for dtype in DTYPES {
        for shape in [[3, 3], [4, 2], [2, 4]] {
            check("Q", &q, &[regular(dtype, &shape)], 1, 1e-7);
            check("R", &r, &[regular(dtype, &shape)], 1, 1e-7);
        }
    }
}

#[test]
fn pivoted_factors_have_derivatives() {
    let f = |x: &[Var]| {
        let (q, r, _) = qr_pivoted(&x[0]);
        vec![q, r]
    };
    for dtype in DTYPES {
        for shape in [&[3, 3][..], &[4, 2], &[2, 4], &[2, 2, 2]] {
            check(&format!("pivoted {dtype} {shape:?}"), &f, &[regular(dtype, shape)], 2, 1e-7);
        }
    }
}

#[test]
fn functions_of_full_factors_that_do_not_depend_on_the_completion_have_derivatives() {
    // The projector on the complement, weighted by a fixed matrix, and the span itself.
    let f = |x: &[Var]| {
        let (q, r) = qr_full(&x[0]);
        let k = x[0].extent(1);
        let (span, rest) = (q.slice_axis(1, 0, k.clone()), q.slice_axis(1, k, q.extent(0)));
        vec![rest.matmul(&rest.adjoint()), span, r]
    };
    for dtype in DTYPES {
        check(&format!("full {dtype}"), &f, &[regular(dtype, &[4, 2])], 2, 1e-7);
        check(&format!("full {dtype}"), &f, &[regular(dtype, &[3, 2, 2])], 2, 1e-7);
    }
    let square = |x: &[Var]| <[Var; 2]>::from(qr_full(&x[0])).to_vec();
    for dtype in DTYPES {
        check("square", &square, &[regular(dtype, &[3, 3])], 2, 1e-7);
        check("wide", &square, &[regular(dtype, &[2, 3])], 2, 1e-7);
    }
}

#[test]
fn a_derivative_without_full_rank_is_an_error() {
    use tenferro_core_ops::{leaf, vjp_present};
    use tenferro_tensor::Value;
    let a = Tensor::from_vec_col_major([3, 2], vec![0.0; 6]).unwrap();
    on_cpu(|| {
        let x = leaf(Value::new(a));
        let (q, r) = qr(&x);
        assert_close("R", &tensor(&r), &tensor(&r.like(0.0)), 0.0);
        unitary("Q", &q, 0.0);
        let e = vjp_present(&[(&r, r.detach())], &[&x], false).unwrap_err().to_string();
        assert!(e.contains("pivot 0") && e.contains("zero"), "{e}");
    });
}

#[test]
fn reflectors_give_the_factors() {
    for dtype in ALL {
        for shape in [&[4, 4][..], &[5, 3], &[3, 5], &[70, 40], &[3, 2, 2], &[0, 2], &[2, 0]] {
            let (a, c) = (random(dtype, shape, 3), random(dtype, &[&[shape[0], 2], &shape[2..]].concat(), 4));
            on_cpu(|| {
                let (packed, tau) = householder(&now(&a));
                let (q, r) = qr(&now(&a));
                let (k, tolerance) = (r.extent(0), close(dtype));
                assert_close("R", &tensor(&packed.slice_axis(0, 0, k).triu(0)), &tensor(&r), tolerance);
                assert_close("Q", &tensor(&householder_product(&packed, &tau)), &tensor(&q), tolerance);
                let there = householder_apply(&packed, &tau, &now(&c), System::left().adjoint());
                let back = householder_apply(&packed, &tau, &there, System::left());
                assert_close("Q Q^H C", &tensor(&back), &c, tolerance);
                let rows = there.slice_axis(0, 0, q.extent(1));
                assert_close("Q^H C", &tensor(&rows), &tensor(&q.adjoint().matmul(&now(&c))), tolerance);
            });
        }
    }
}

#[test]
fn reflectors_have_derivatives() {
    let f = |x: &[Var]| <[Var; 2]>::from(householder(&x[0])).to_vec();
    for dtype in DTYPES {
        for shape in [&[3, 3][..], &[4, 2], &[2, 4], &[2, 2, 2]] {
            check(&format!("householder {dtype} {shape:?}"), &f, &[regular(dtype, shape)], 2, 1e-6);
        }
    }
}

#[test]
fn products_of_any_reflections_have_derivatives() {
    let product = |x: &[Var]| vec![householder_product(&x[0], &x[1])];
    let apply = |x: &[Var]| vec![householder_apply(&x[0], &x[1], &x[2], System::left())];
    let adjoint = |x: &[Var]| vec![householder_apply(&x[0], &x[1], &x[2], System::left().adjoint())];
    for dtype in DTYPES {
        for (shape, k) in [([4, 3], 3), ([3, 3], 3), ([4, 3], 2), ([3, 4], 3), ([3, 3], 0)] {
            let x = || [random(dtype, &shape, 3), random(dtype, &[k], 4), random(dtype, &[shape[0], 2], 5)];
            let [v, tau, _] = x();
            check(&format!("product {dtype} {shape:?} {k}"), &product, &[v, tau], 2, 1e-7);
            check(&format!("apply {dtype} {shape:?} {k}"), &apply, &x(), 2, 1e-7);
            check(&format!("adjoint {dtype} {shape:?} {k}"), &adjoint, &x(), 2, 1e-7);
        }
        let x = [random(dtype, &[3, 2, 2], 3), random(dtype, &[2, 2], 4)];
        check("batch", &product, &x, 1, 1e-7);
    }
}

#[test]
fn a_reflection_with_tau_zero_is_the_identity_and_has_a_derivative() {
    let a = Tensor::from_vec_col_major([2, 1], vec![1.0, 2.0]).unwrap();
    let tau = Tensor::from_vec_col_major([1], vec![0.0]).unwrap();
    let f = |x: &[Var]| vec![householder_product(&x[0], &x[1])];
    on_cpu(|| {
        assert_eq!(numbers(&tensor(&f(&[now(&a), now(&tau)])[0])), [C64::new(1.0, 0.0), C64::new(0.0, 0.0)])
    });
    check("tau = 0", &f, &[a, tau], 2, 1e-7);
}

#[test]
fn appended_columns_give_the_reflectors_of_all() {
    for dtype in ALL {
        for (m, n, p) in [(5, 2, 2), (5, 3, 4), (4, 4, 2), (3, 5, 2), (4, 0, 2), (4, 2, 0), (80, 50, 20)] {
            let (a, b) = (random(dtype, &[m, n], 3), random(dtype, &[m, p], 4));
            on_cpu(|| {
                let (packed, tau) = householder(&now(&a));
                let (packed, tau) = householder_append(&packed, &tau, &now(&b));
                let all = build::concatenate(&[now(&a), now(&b)], 1);
                let (expected, factors) = householder(&all);
                let tolerance = close(dtype) * m as f64;
                assert_close("packed", &tensor(&packed), &tensor(&expected), tolerance);
                assert_close("tau", &tensor(&tau), &tensor(&factors), tolerance);
            });
        }
    }
}

#[test]
fn appending_has_derivatives() {
    let f = |x: &[Var]| {
        let (packed, tau) = householder(&x[0]);
        <[Var; 2]>::from(householder_append(&packed, &tau, &x[1])).to_vec()
    };
    for dtype in DTYPES {
        let x = [regular(dtype, &[4, 2]), random(dtype, &[4, 1], 8)];
        check(&format!("append {dtype}"), &f, &x, 2, 1e-6);
    }
}

#[test]
fn bad_operands_are_named() {
    on_cpu(|| {
        let of = |shape: &[usize]| now(&random(DType::F64, shape, 1));
        let error = |v: &Var| v.ok().unwrap_err().to_string();
        let infinite = Tensor::from_vec_col_major([2, 2, 1], vec![1.0, f64::INFINITY, 0.0, 1.0]).unwrap();
        let expected = "matrix: got element [1, 0] of matrix [0] is not finite, expected finite elements";
        assert_eq!(error(&qr(&now(&infinite)).0), format!("qr: {expected}"));
        assert_eq!(error(&qr_pivoted(&now(&infinite)).2), format!("qr_pivoted: {expected}"));
        assert_eq!(error(&householder(&now(&infinite)).1), format!("householder: {expected}"));
        assert!(error(&qr(&of(&[3])).1).starts_with("qr: rank of the matrix"));
        let e = error(&householder_product(&of(&[3, 2]), &of(&[3])));
        assert_eq!(e, "householder_product: number of reflectors: got 3, expected at most 2");
        let e = error(&householder_append(&of(&[3, 2]), &of(&[1]), &of(&[3, 1])).0);
        assert!(e.starts_with("householder_append: length of tau"), "{e}");
        assert!(
            error(&householder_apply(&of(&[3, 2]), &of(&[2]), &of(&[2, 1]), System::left()))
                .contains("rows of the factor")
        );
    });
}
