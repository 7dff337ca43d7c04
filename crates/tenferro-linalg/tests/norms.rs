//! Norms, condition numbers and ranks: outside values, extreme sizes, derivatives.

mod common;

use common::*;
use tenferro_core_ops::{Var, leaf, vjp_present};
use tenferro_linalg::{
    MatrixNorm, Tolerance, VectorNorm,
    ops::{cond, lstsq, matrix_norm, matrix_rank, pinv, svd, vector_norm},
};
use tenferro_tensor::{C64, DType, Tensor, Value};

fn reals(data: &[f64]) -> Tensor {
    Tensor::from_vec_col_major([data.len()], data.to_vec()).unwrap()
}

fn number(v: &Var) -> f64 {
    numbers(&tensor(v))[0].re
}

fn close(got: f64, want: f64, tolerance: f64) {
    assert!((got - want).abs() <= tolerance * want.abs(), "got {got:e}, expected {want:e}");
}

fn hilbert(n: usize) -> Tensor {
    from_fn(DType::F64, &[n, n], |i| C64::new(1.0 / (i[0] + i[1] + 1) as f64, 0.0))
}

/// The gradient of a function with one number as its value.
fn gradient(f: impl Fn(&Var) -> Var, x: &Tensor) -> Vec<f64> {
    on_cpu(|| {
        let x = leaf(Value::new(x.duplicate().unwrap()));
        let y = f(&x);
        let one = y.detach().like(1.0);
        let g = vjp_present(&[(&y, one)], &[&x], false).unwrap().remove(0).expect("depends on x");
        numbers(&tensor(&g)).iter().map(|z| z.re).collect()
    })
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

#[test]
fn extreme_sizes_neither_overflow_nor_vanish() {
    for scale in [1e300, 1.0, 1e-300, 1e-308] {
        let x = reals(&[3.0 * scale, 4.0 * scale]);
        for (p, want) in
            [(2.0, 5.0), (3.0, 91f64.cbrt()), (0.5, 7.0 + 2.0 * 12f64.sqrt()), (-1.0, 12.0 / 7.0)]
        {
            on_cpu(|| close(number(&vector_norm(&now(&x), p)), want * scale, 1e-14));
            let g = gradient(|x| vector_norm(x, p), &x);
            // The derivative by x_i is (|x_i| / |x|)^(p - 1).
            close(g[0], (3.0 / want).powf(p - 1.0), 1e-13);
            close(g[1], (4.0 / want).powf(p - 1.0), 1e-13);
        }
    }
}

#[test]
fn a_norm_of_zero_has_derivative_zero() {
    for p in [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, -1.0, f64::INFINITY] {
        assert_eq!(gradient(|x| vector_norm(x, p), &reals(&[0.0, -0.0])), [0.0, 0.0], "{p}");
    }
    let zero = from_fn(DType::F64, &[3, 2], |_| C64::new(0.0, 0.0));
    for norm in NORMS {
        assert_eq!(gradient(|x| matrix_norm(x, norm), &zero), [0.0; 6], "{norm:?}");
    }
}

#[test]
fn even_powers_are_smooth_at_elements_that_are_zero() {
    for dtype in [DType::F64, DType::C64] {
        let x = from_fn(dtype, &[3], |i| C64::new([1.0, 0.0, -2.0][i[0]], 0.0));
        for p in [2.0, 4.0] {
            let f = |x: &[Var]| vec![vector_norm(&x[0], p)];
            check(&format!("{p} {dtype}"), &f, &[x.duplicate().unwrap()], 3, 1e-5);
        }
        // The first derivative of other powers above 1 is right there, too.
        let f = |x: &[Var]| vec![vector_norm(&x[0], 3.0)];
        check(&format!("3 {dtype}"), &f, &[x], 1, 1e-5);
    }
}

#[test]
fn derivatives_of_vector_norms_agree_with_differences() {
    for dtype in [DType::F64, DType::C64] {
        for p in [2.0, 1.0, 3.0, 2.5, 0.5, -1.0, -2.5] {
            let far = |i: &[usize]| C64::new(1.0 + i[0] as f64, if dtype.is_complex() { 0.5 } else { 0.0 });
            let x = from_fn(dtype, &[3, 2], far);
            let f = |x: &[Var]| vec![vector_norm(&x[0], VectorNorm { axes: Some(vec![0]), ..p.into() })];
            check(&format!("{p} {dtype}"), &f, &[x], 3, 1e-6);
        }
    }
}

#[test]
fn derivatives_of_matrix_norms_agree_with_differences() {
    for dtype in [DType::F64, DType::C64] {
        for norm in NORMS {
            let f = |x: &[Var]| vec![matrix_norm(&x[0], norm)];
            check(&format!("{norm:?} {dtype}"), &f, &[random(dtype, &[3, 2], 4)], 2, 1e-5);
        }
    }
}

#[test]
fn the_nuclear_norm_is_smooth_at_multiplets() {
    for dtype in [DType::F64, DType::C64] {
        let a = on_cpu(|| tensor(&(svd(&now(&random(dtype, &[3, 3], 2))).0 * 2.0)));
        check("nuclear", &|x: &[Var]| vec![matrix_norm(&x[0], MatrixNorm::Nuclear)], &[a], 2, 1e-6);
    }
}

/// Of the Hilbert matrix of order 5, computed with mpmath 1.3 at 60 digits.
#[test]
fn hilbert_matrices_have_known_norms_and_conditions() {
    let a = hilbert(5);
    on_cpu(|| {
        close(number(&cond(&now(&a), MatrixNorm::Two)), 476607.2502425608, 1e-9);
        close(number(&cond(&now(&a), MatrixNorm::MinusTwo)), 1.0 / 476607.2502425608, 1e-9);
        close(number(&cond(&now(&a), MatrixNorm::One)), 943656.0, 1e-9);
        close(number(&cond(&now(&a), MatrixNorm::Infinity)), 943656.0, 1e-9);
        close(number(&matrix_norm(&now(&a), MatrixNorm::Nuclear)), 1.7873015873015874, 1e-14);
        close(number(&matrix_norm(&now(&a), MatrixNorm::Frobenius)), 1.580906263272022, 1e-14);
    });
}

#[test]
fn conditions_have_derivatives() {
    for dtype in [DType::F64, DType::C64] {
        for norm in NORMS {
            let a = on_cpu(|| tensor(&(now(&random(dtype, &[3, 3], 5)) + spread(dtype))));
            check(&format!("{norm:?} {dtype}"), &|x: &[Var]| vec![cond(&x[0], norm)], &[a], 2, 1e-5);
        }
    }
}

/// A diagonal matrix of distinct numbers.
fn spread(dtype: DType) -> Var {
    now(&from_fn(dtype, &[3, 3], |i| C64::new(if i[0] == i[1] { 3.0 + i[0] as f64 } else { 0.0 }, 0.0)))
}

#[test]
fn one_singular_matrix_of_a_batch_has_an_infinite_condition() {
    let data = vec![1.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 4.0];
    let a = Tensor::from_vec_col_major([2, 2, 2], data).unwrap();
    on_cpu(|| {
        let c = numbers(&tensor(&cond(&now(&a), MatrixNorm::One)));
        assert_eq!((c[0].re, c[1].re), (1.0, f64::INFINITY));
    });
    let g = gradient(|a| cond(a, MatrixNorm::Frobenius).slice_axis(0, 0, 1), &a);
    assert!(g.iter().all(|g| g.is_finite()), "{g:?}");
}

#[test]
fn ranks_count_what_is_above_the_tolerance() {
    let rank = |a: &Tensor, t| on_cpu(|| number(&matrix_rank(&now(a), t)));
    let usual = Tolerance::default();
    assert_eq!(rank(&hilbert(5), usual), 5.0);
    // Its singular values fall off below rounding from about the 13th on.
    assert!((12.0..15.0).contains(&rank(&hilbert(20), usual)));
    assert_eq!(rank(&hilbert(5), Tolerance::relative(1e-3)), 3.0);
    assert_eq!(rank(&hilbert(5), Tolerance { rtol: None, atol: 1e-1 }), 2.0);
    assert_eq!(rank(&from_fn(DType::C32, &[3, 4], |_| C64::new(1.0, 2.0)), usual), 1.0);
    assert_eq!(rank(&from_fn(DType::F32, &[3, 3], |_| C64::new(0.0, 0.0)), usual), 0.0);
}

#[test]
fn ranks_pseudo_inverses_and_least_squares_agree_about_tiny_values() {
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        let normal = if dtype.real() == DType::F32 { f32::MIN_POSITIVE as f64 } else { f64::MIN_POSITIVE };
        let values = [8.0 * normal, 4.0 * normal, normal / 4.0];
        let a = from_fn(dtype, &[3, 3], |i| C64::new(if i[0] == i[1] { values[i[0]] } else { 0.0 }, 0.0));
        for (t, rank) in [
            (Tolerance::relative(0.0), 2),
            (Tolerance { rtol: None, atol: 6.0 * normal }, 1),
            (Tolerance { rtol: None, atol: normal / 8.0 }, 2),
            (Tolerance::default(), 2),
        ] {
            on_cpu(|| {
                let a = now(&a);
                assert_eq!(number(&matrix_rank(&a, t)), rank as f64, "{dtype} {t:?}");
                let kept = numbers(&tensor(&pinv(&a, t))).iter().filter(|x| x.norm() > 0.0).count();
                assert_eq!(kept, rank, "{dtype} {t:?}");
                let least = lstsq(&a, &now(&Tensor::eye(dtype, 3).unwrap()), t).2;
                assert_eq!(number(&least), rank as f64, "{dtype} {t:?}");
            });
        }
    }
}
