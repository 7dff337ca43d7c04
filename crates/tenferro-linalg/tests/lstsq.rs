//! Least squares: normal equations, minimal norm, derivatives at constant rank, errors.

mod common;

use common::*;
use tenferro_core_ops::Var;
use tenferro_linalg::{Tolerance, ops::lstsq};
use tenferro_tensor::{DType, Tensor};

const DTYPES: [DType; 2] = [DType::F64, DType::C64];
const ALL: [DType; 4] = [DType::F32, DType::F64, DType::C32, DType::C64];

fn solved(a: &Var, b: &Var) -> (Var, Var, Var, Var) {
    lstsq(a, b, Tolerance::default())
}

/// `m x r` times `r x n`.
fn of_rank(dtype: DType, [m, n]: [usize; 2], r: usize) -> Tensor {
    on_cpu(|| tensor(&now(&random(dtype, &[m, r], 21)).matmul(&now(&random(dtype, &[r, n], 22)))))
}

#[test]
fn solutions_satisfy_the_normal_equations_and_are_shortest() {
    for dtype in ALL {
        let tolerance = if dtype.real() == DType::F32 { 1e-4 } else { 1e-12 };
        for (m, n, r) in
            [(4, 2, 2), (2, 4, 2), (3, 3, 3), (5, 4, 2), (4, 5, 2), (3, 3, 0), (0, 2, 0), (2, 0, 0)]
        {
            let (a, b) = (of_rank(dtype, [m, n], r), random(dtype, &[m, 2], 4));
            on_cpu(|| {
                let (a, b) = (now(&a), now(&b));
                let (x, squares, rank, s) = solved(&a, &b);
                assert_eq!(tensor(&rank).item::<i64>().unwrap(), r as i64, "{m} x {n}");
                assert_eq!(tensor(&s).shape(), [m.min(n)]);
                let off = &a.matmul(&x) - &b;
                let ah = a.adjoint();
                let zero = ah.matmul(&off);
                assert_close("A^H (A X - B)", &tensor(&zero), &tensor(&zero.like(0.0)), tolerance);
                // X is in the range of A^H: the shortest solution of A^H Y = X reproduces it.
                let y = solved(&ah, &x).0;
                assert_close("A^H Y", &tensor(&ah.matmul(&y)), &tensor(&x), tolerance);
                let sum = (&off * &off.conj()).real().reduce_sum(Some(&[0]));
                assert_close("residuals", &tensor(&squares), &tensor(&sum), tolerance);
            });
        }
    }
}

#[test]
fn a_line_is_fitted_to_points() {
    // y = 1 + 2 t and an error of +1, -2, +1, which is orthogonal to both columns.
    let a = Tensor::from_vec_col_major([3, 2], vec![1.0, 1.0, 1.0, -1.0, 0.0, 1.0]).unwrap();
    let b = Tensor::from_vec_col_major([3], vec![0.0, -1.0, 4.0]).unwrap();
    on_cpu(|| {
        let (x, squares, _, s) = solved(&now(&a), &now(&b));
        let expected = Tensor::from_vec_col_major([2], vec![1.0, 2.0]).unwrap();
        assert_close("x", &tensor(&x), &expected, 1e-14);
        assert_close("residual", &tensor(&squares), &Tensor::scalar(6.0), 1e-14);
        let expected = Tensor::from_vec_col_major([2], vec![3f64.sqrt(), 2f64.sqrt()]).unwrap();
        assert_close("s", &tensor(&s), &expected, 1e-14);
    });
}

#[test]
fn a_larger_tolerance_lowers_the_rank() {
    let a = Tensor::from_vec_col_major([2, 2], vec![4.0, 0.0, 0.0, 1.0]).unwrap();
    let b = Tensor::from_vec_col_major([2], vec![4.0, 3.0]).unwrap();
    let of = |rtol| on_cpu(|| numbers(&tensor(&lstsq(&now(&a), &now(&b), Tolerance::relative(rtol)).0)));
    assert_eq!(of(0.2).iter().map(|z| z.re).collect::<Vec<_>>(), [1.0, 3.0]);
    assert_eq!(of(0.3).iter().map(|z| z.re).collect::<Vec<_>>(), [1.0, 0.0]);
}

#[test]
fn solutions_have_derivatives() {
    let f = |x: &[Var]| {
        let (y, squares, _, s) = solved(&x[0], &x[1]);
        vec![y, squares, s]
    };
    for dtype in DTYPES {
        for shape in [[4, 2], [2, 4], [3, 3]] {
            let x = [random(dtype, &shape, 3), random(dtype, &[shape[0], 2], 4)];
            check(&format!("lstsq {dtype} {shape:?}"), &f, &x, 2, 1e-6);
        }
        let x = [random(dtype, &[3, 2, 2], 3), random(dtype, &[3, 1], 4)];
        check("batch", &f, &x, 2, 1e-6);
        check("vector", &f, &[random(dtype, &[3, 2], 3), random(dtype, &[3], 4)], 2, 1e-6);
        let g = |x: &[Var]| vec![solved(&x[0], &x[1]).0];
        check("third order", &g, &[random(dtype, &[3, 2], 3), random(dtype, &[3, 1], 4)], 3, 1e-5);
    }
}

#[test]
fn solutions_have_derivatives_at_constant_rank_and_in_multiplets() {
    // The factors vary, the rank does not.
    let f = |x: &[Var]| vec![solved(&x[0].matmul(&x[1]), &x[2]).0];
    for dtype in DTYPES {
        let x = [random(dtype, &[4, 2], 3), random(dtype, &[2, 3], 4), random(dtype, &[4, 1], 5)];
        check(&format!("deficient {dtype}"), &f, &x, 2, 1e-6);
        let g = |x: &[Var]| vec![solved(&x[0], &x[1]).0];
        let double = from_fn(dtype, &[3, 2], |i| if i[0] == i[1] { 2.0.into() } else { 0.0.into() });
        check(&format!("multiplet {dtype}"), &g, &[double, random(dtype, &[3, 1], 5)], 3, 1e-6);
    }
}

#[test]
fn bad_operands_are_named() {
    on_cpu(|| {
        let of = |shape: &[usize]| now(&random(DType::F64, shape, 1));
        let error = |a: Var, b: Var| solved(&a, &b).0.ok().unwrap_err().to_string();
        assert!(error(of(&[2, 2]), of(&[3, 1])).starts_with("lstsq: rows of the right-hand side"));
        assert!(error(of(&[2]), of(&[2, 1])).starts_with("lstsq: rank of an operand"));
        assert!(error(of(&[2, 2, 2]), of(&[2, 1, 3])).starts_with("lstsq: "));
        let negative = lstsq(&of(&[2, 2]), &of(&[2]), Tolerance::relative(-1.0));
        let e = negative.2.ok().unwrap_err().to_string();
        assert_eq!(e, "lstsq: rtol: got -1, expected a number of at least 0");
    });
}
