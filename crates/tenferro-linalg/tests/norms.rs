//! Norms, condition numbers and ranks: outside values, extreme sizes, derivatives.

mod common;

use common::*;
use tenferro_core_ops::{Aval, Dim, Var, input, leaf, vjp_present};
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

/// The multiple is exact where numbers are normal.
#[test]
fn conditions_do_not_depend_on_the_scale() {
    for scale in [1e-310, 1e-200, 1.0, 1e200, 5e307] {
        let a = from_fn(DType::F64, &[2, 2], |i| C64::new([[3.0, 1.0], [1.0, 2.0]][i[0]][i[1]] * scale, 0.0));
        // The inverse is [2 -1; -1 3] / 5, and the singular values are (5 +- sqrt 5) / 2.
        for (norm, want) in [
            (MatrixNorm::One, 3.2),
            (MatrixNorm::Infinity, 3.2),
            (MatrixNorm::Frobenius, 3.0),
            (MatrixNorm::Nuclear, 5.0),
            (MatrixNorm::Two, (5.0 + 5f64.sqrt()) / (5.0 - 5f64.sqrt())),
        ] {
            on_cpu(|| close(number(&cond(&now(&a), norm)), want, 1e-12));
        }
    }
    let a = from_fn(DType::C32, &[2, 2], |i| C64::new(0.0, [[3e38, 1e38], [1e38, 2e38]][i[0]][i[1]]));
    on_cpu(|| close(number(&cond(&now(&a), MatrixNorm::One)), 3.2, 1e-5));
}

#[test]
fn the_nuclear_condition_is_smooth_at_multiplets() {
    for dtype in [DType::F64, DType::C64] {
        let a = on_cpu(|| tensor(&(svd(&now(&random(dtype, &[3, 3], 2))).0 * 2.0)));
        check("nuclear", &|x: &[Var]| vec![cond(&x[0], MatrixNorm::Nuclear)], &[a], 2, 1e-6);
    }
}

/// Its largest singular value is 2.5e308, and larger than any number.
#[test]
fn ranks_are_right_where_a_singular_value_overflows() {
    let columns = [1.5e308, 1.0, 1.5e308, 1.4e308];
    let a = Tensor::from_vec_col_major([2, 2], columns.to_vec()).unwrap();
    let b = Tensor::from_vec_col_major([2, 1], vec![1e308, 0.0]).unwrap();
    on_cpu(|| {
        let (a, b) = (now(&a), now(&b));
        assert_eq!(number(&matrix_rank(&a, Tolerance::default())), 2.0);
        // A^-1 = [1 / a, -1 / d; 0, 1 / d] with a = 1.5e308 and d = 1.4e308, up to 1 / a^2.
        let p = pinv(&a, Tolerance::default());
        let want = [1.0 / 1.5e308, 0.0, -1.0 / 1.4e308, 1.0 / 1.4e308];
        for (got, want) in numbers(&tensor(&p)).iter().zip(want) {
            assert!((got.re - want).abs() < 1e-13 / 1e308, "got {got:e}, expected {want:e}");
        }
        let (x, _, rank, s) = lstsq(&a, &b, Tolerance::default());
        assert_eq!(number(&rank), 2.0);
        assert_eq!(numbers(&tensor(&s))[0].re, f64::INFINITY);
        assert_close(
            "x",
            &tensor(&x),
            &Tensor::from_vec_col_major([2, 1], vec![2.0 / 3.0, 0.0]).unwrap(),
            1e-13,
        );
        // An absolute tolerance is one of A itself.
        for (atol, want) in [(1e300, 2.0), (1.5e308, 1.0)] {
            assert_eq!(number(&matrix_rank(&a, Tolerance { rtol: None, atol })), want, "{atol:e}");
        }
    });
    let a = from_fn(DType::F32, &[2, 2], |_| C64::new(3e38, 0.0));
    on_cpu(|| assert_eq!(number(&matrix_rank(&now(&a), Tolerance::default())), 1.0));
    for (scale, atol, want) in [(1e-200, 0.0, 2.0), (1e-200, 1.5e-200, 1.0), (1e-310, 0.0, 0.0)] {
        let a = from_fn(DType::F64, &[2, 2], |i| C64::new([[2.0, 0.0], [0.0, 1.0]][i[0]][i[1]] * scale, 0.0));
        on_cpu(|| assert_eq!(number(&matrix_rank(&now(&a), Tolerance { rtol: None, atol })), want));
    }
}

#[test]
fn norms_of_what_no_memory_holds_are_errors() {
    on_cpu(|| {
        let one = now(&reals(&[1.0])).reshape::<usize>(&[]);
        let many = |shape: &[usize]| {
            one.broadcast_in_dim(&shape.iter().map(|&n| Dim::Lit(n)).collect::<Vec<_>>(), &[])
        };
        for p in [2.0, 3.0, 0.5, -1.0, 1.0, 0.0, f64::INFINITY] {
            let e = vector_norm(&many(&[1 << 40]), p).ok().expect_err("is too large");
            assert_eq!(e.op(), "vector_norm", "{e}");
        }
        for norm in NORMS {
            let e = matrix_norm(&many(&[1 << 25, 1 << 25]), norm).ok().expect_err("is too large");
            assert_eq!(e.op(), "matrix_norm", "{e}");
        }
    });
}

#[test]
fn a_norm_of_unknown_extents_takes_no_more_memory_than_its_operand() {
    // Of rank 28, with one element: with one more along each axis it would have 2^28.
    let f = |x: &Var| vector_norm(x, 2.0);
    for (shape, want) in
        [(vec![1; 28], 2.0), (vec![2, 1, 3], 24f64.sqrt()), (vec![2, 0, 3], 0.0), (vec![], 2.0)]
    {
        let x = from_fn(DType::F64, &shape, |_| C64::new(2.0, 0.0));
        let input = symbolic_like(&x, "n");
        let y = run(&[f(&input)], &[(input, x)]).unwrap();
        close(numbers(&y[0])[0].re, want, 1e-15);
    }
    // Some extents are known, and some are not reduced.
    let x = from_fn(DType::F64, &[2, 3, 4, 2], |i| C64::new((i[2] + 1) as f64, 0.0));
    let dims = [Dim::Lit(2), Dim::symbol("a"), Dim::symbol("b"), Dim::symbol("c")];
    let input = input(Aval::new(DType::F64, dims));
    let y = vector_norm(&input, VectorNorm { axes: Some(vec![3, 0, 1]), ..2.0.into() });
    let y = run(&[y], &[(input, x)]).unwrap();
    for (i, y) in numbers(&y[0]).iter().enumerate() {
        close(y.re, (i + 1) as f64 * 12f64.sqrt(), 1e-15);
    }
}
