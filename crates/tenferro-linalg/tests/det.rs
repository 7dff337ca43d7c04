//! Determinants at singular matrices and at any scale, inverses, signs.

mod common;

use common::*;
use tenferro_core_ops::{Var, leaf, vjp_present};
use tenferro_linalg::System;
use tenferro_linalg::ops::{
    cholesky, det, inv, lu_factor, lu_full_pivot, lu_full_pivot_solve, lu_solve, slogdet,
};
use tenferro_tensor::{C64, DType, Tensor, Value};

fn real(shape: &[usize], x: &[f64]) -> Tensor {
    Tensor::from_vec_col_major(shape, x.to_vec()).unwrap()
}

/// A matrix of order n and rank r.
fn of_rank(dtype: DType, n: usize, r: usize) -> Tensor {
    on_cpu(|| tensor(&now(&random(dtype, &[n, r], 1)).matmul(&now(&random(dtype, &[r, n], 2)))))
}

/// J. H. Wilkinson's matrix, whose elements elimination doubles with every row, beside a unit matrix, at a
/// scale where that overflows.
#[test]
fn elimination_that_overflows_does_not_make_wrong_numbers() {
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        let (exponent, tolerance) = if dtype.real() == DType::F32 { (126, 1e-5) } else { (1022, 1e-13) };
        let c = 2f64.powi(exponent);
        for n in [3, 4, 9, 17, 33] {
            for ones in [0, 1, n] {
                let element = |i: &[usize]| match (i[0], i[1]) {
                    (i, j) if i >= n || j >= n => f64::from(u8::from(i == j)),
                    (i, j) if i == j || j == n - 1 => c,
                    (i, j) if i > j => -c,
                    _ => 0.0,
                };
                let size = [n + ones, n + ones];
                let a = from_fn(dtype, &size, |i| C64::new(element(i), 0.0));
                on_cpu(|| {
                    let what = format!("{dtype} {n} {ones}");
                    let (sign, log) = slogdet(&now(&a));
                    let expected = ((n - 1) as f64 + n as f64 * f64::from(exponent)) * 2f64.ln();
                    assert_eq!(numbers(&tensor(&sign)), [C64::new(1.0, 0.0)], "{what}");
                    let log = numbers(&tensor(&log))[0].re;
                    assert!((log - expected).abs() <= tolerance * expected, "{what}: {log} {expected}");
                    // Columns brought to scale, which is exact.
                    let inverse = inv(&now(&a));
                    let scale = |j: usize| if j < n { c } else { 1.0 };
                    let unit = from_fn(dtype, &size, |i| C64::new(element(i) / scale(i[1]), 0.0));
                    let rows = from_fn(dtype, &size, |i| C64::new(scale(i[0]), 0.0));
                    let product = now(&unit).matmul(&(&inverse * &now(&rows)));
                    let one = from_fn(dtype, &size, |i| C64::new(f64::from(u8::from(i[0] == i[1])), 0.0));
                    assert_close(&what, &tensor(&product), &one, tolerance * 100.0);
                });
            }
        }
    }
    // The product of 4 2^3066 and 2^-3060.
    let (c, d) = (2f64.powi(1022), 2f64.powi(-1020));
    let blocks = |i: &[usize]| match (i[0], i[1]) {
        (i, j) if i == j && i >= 3 => d,
        (i, j) if i >= 3 || j >= 3 => 0.0,
        (i, j) if i == j || j == 2 => c,
        (i, j) if i > j => -c,
        _ => 0.0,
    };
    let a = from_fn(DType::F64, &[6, 6], |i| C64::new(blocks(i), 0.0));
    assert_eq!(on_cpu(|| tensor(&det(&now(&a)))).item::<f64>().unwrap(), 256.0);
}

#[test]
fn determinants_have_derivatives_of_any_order_at_any_rank() {
    let f = |x: &[Var]| vec![det(&x[0])];
    for dtype in [DType::F64, DType::C64] {
        for r in 0..=3 {
            check(&format!("rank {r} {dtype}"), &f, &[of_rank(dtype, 3, r)], 3, 1e-7);
        }
        check("rank 2 of 4", &f, &[of_rank(dtype, 4, 2)], 2, 1e-7);
        check("batch", &f, &[random(dtype, &[2, 2, 3], 5)], 2, 1e-7);
    }
}

#[test]
fn gradients_at_singular_matrices_are_cofactors() {
    let cases: [(usize, &[f64], &[f64]); 5] = [
        (4, &[0.0; 16], &[0.0; 16]),
        (2, &[1.0, 2.0, 2.0, 4.0], &[4.0, -2.0, -2.0, 1.0]),
        (
            3,
            &[1.0, 4.0, 7.0, 2.0, 5.0, 8.0, 3.0, 6.0, 9.0],
            &[-3.0, 6.0, -3.0, 6.0, -12.0, 6.0, -3.0, 6.0, -3.0],
        ),
        (3, &[1.0; 9], &[0.0; 9]),
        (1, &[0.0], &[1.0]),
    ];
    for (n, a, expected) in cases {
        on_cpu(|| {
            let x = leaf(Value::new(real(&[n, n], a)));
            let y = det(&x);
            let g = vjp_present(&[(&y, y.like(1.0))], &[&x], false).unwrap().remove(0).unwrap();
            assert_close("cofactors", &tensor(&g), &real(&[n, n], expected), 1e-14);
        });
    }
}

#[test]
fn only_a_determinant_that_is_too_large_overflows() {
    on_cpu(|| {
        let d = |x: &[f64]| {
            let n = x.len();
            let a = from_fn(DType::F64, &[n, n], |i| C64::new(if i[0] == i[1] { x[i[0]] } else { 0.0 }, 0.0));
            tensor(&det(&now(&a))).as_slice::<f64>().unwrap()[0]
        };
        let (large, small) = (2f64.powi(1000), 2f64.powi(-1000));
        assert_eq!(d(&[large, large, small, small, 3.0]), 3.0);
        assert_eq!(d(&[1e-200, 1e-200]), 0.0);
        assert_eq!(d(&[1e200, -1e200]), f64::NEG_INFINITY);
    });
}

#[test]
fn signs_follow_the_order() {
    on_cpu(|| {
        for n in 1..=5 {
            let a =
                from_fn(DType::F64, &[n, n, 2], |i| C64::new(if i[0] == i[1] { -0.01 } else { 0.0 }, 0.0));
            let (sign, log) = slogdet(&now(&a));
            let s = if n % 2 == 1 { -1.0 } else { 1.0 };
            assert_close("sign", &tensor(&sign), &real(&[2], &[s, s]), 0.0);
            let l = n as f64 * 0.01f64.ln();
            assert_close("log", &tensor(&log), &real(&[2], &[l, l]), 1e-15);
        }
        let (sign, log) = slogdet(&now(&real(&[2, 2], &[0.0, 1.0, 1.0, 0.0])));
        assert_close("sign", &tensor(&sign), &real(&[], &[-1.0]), 0.0);
        assert_close("log", &tensor(&log), &real(&[], &[0.0]), 0.0);
        for dtype in [DType::F64, DType::C64] {
            let (sign, log) = slogdet(&now(&Tensor::zeros(dtype, [2, 2]).unwrap()));
            assert_eq!(numbers(&tensor(&sign)), [C64::new(0.0, 0.0)]);
            assert_eq!(numbers(&tensor(&log)), [C64::new(f64::NEG_INFINITY, 0.0)]);
        }
        // Beyond the range of determinants.
        let a = from_fn(DType::C64, &[4, 4], |i| C64::new(0.0, if i[0] == i[1] { 1e300 } else { 0.0 }));
        let (sign, log) = slogdet(&now(&a));
        assert_close("sign", &tensor(&sign), &tensor(&sign.like(1.0)), 1e-15);
        assert_close("log", &tensor(&log), &real(&[], &[1200.0 * 10f64.ln()]), 1e-15);
    });
}

#[test]
fn inverses_and_logarithms_have_derivatives() {
    let f = |x: &[Var]| {
        let (sign, log) = slogdet(&x[0]);
        vec![inv(&x[0]), sign, log]
    };
    for dtype in [DType::F64, DType::C64] {
        let a = on_cpu(|| tensor(&(now(&random(dtype, &[3, 3, 2], 4)) + now(&identity(dtype, 3)))));
        check(&format!("{dtype}"), &f, &[a], 2, 1e-6);
    }
}

fn identity(dtype: DType, n: usize) -> Tensor {
    from_fn(dtype, &[n, n, 1], |i| C64::new(if i[0] == i[1] { 3.0 } else { 0.0 }, 0.0))
}

/// LAPACK's test ratio `|A X - B| / (|A| |X| n eps)`, of entries near 1e300 and 1e-300.
#[test]
fn residuals_are_small_at_any_scale() {
    for dtype in [DType::F64, DType::C64] {
        for (n, scale) in [(3, 1e300), (3, 1e-300), (12, 1e300), (12, 1e-300), (40, 1e-300)] {
            let unit = random(dtype, &[n, n], 3);
            let scaled = |x: &Tensor| on_cpu(|| tensor(&(now(x) * scale)));
            let a = scaled(&unit);
            let b = random(dtype, &[n, 2], 4);
            let ratio = |what: &str, x: &Tensor| {
                let x = scaled(x);
                let rest = on_cpu(|| tensor(&(now(&unit).matmul(&now(&x)) - now(&b))));
                let ratio = largest(&rest) / (largest(&unit) * largest(&x) * n as f64 * f64::EPSILON);
                assert!(ratio < 30.0, "{what}, {dtype}, {n}, {scale:e}: {ratio}");
            };
            on_cpu(|| {
                let (packed, p) = lu_factor(&now(&a));
                ratio("lu_solve", &tensor(&lu_solve(&packed, &p, &now(&b), System::left())));
                let (l, u, p, q) = lu_full_pivot(&now(&a));
                ratio(
                    "lu_full_pivot_solve",
                    &tensor(&lu_full_pivot_solve(&l, &u, &p, &q, &now(&b), System::left())),
                );
                ratio("solve", &tensor(&tenferro_linalg::ops::solve(&now(&a), &now(&b))));
                ratio("inv", &tensor(&inv(&now(&a)).matmul(&now(&b))));
            });
        }
        // A positive definite matrix with elements from 1e-280 to 1e280, and its factor, both divided by the
        // square roots of the diagonal.
        for n in [4, 30] {
            on_cpu(|| {
                let g = now(&random(dtype, &[n, n], 9));
                let gram = g.matmul(&g.adjoint()) + now(&Tensor::eye(dtype, n).unwrap());
                let d = graded(dtype, n, 140.0);
                let (row, column) = (now(&d).expand_dims(&[1]), now(&d).expand_dims(&[0]));
                let l = &cholesky(&(&(&gram * &row) * &column)) / &row;
                let ratio = distance(&tensor(&l.matmul(&l.adjoint())), &tensor(&gram))
                    / (largest(&tensor(&gram)) * n as f64 * f64::EPSILON);
                assert!(ratio < 30.0, "cholesky, {dtype}, {n}: {ratio}");
            });
        }
    }
}

/// Numbers from 10^-decades to 10^decades.
fn graded(dtype: DType, n: usize, decades: f64) -> Tensor {
    from_fn(dtype, &[n], |i| C64::new(10f64.powf(decades * ((i[0] * 7 % 5) as f64 / 2.0 - 1.0)), 0.0))
}

#[test]
fn full_pivoting_shows_the_rank_and_solves() {
    on_cpu(|| {
        for dtype in [DType::F64, DType::C64] {
            let a = of_rank(dtype, 6, 4);
            let (l, u, p, q) = lu_full_pivot(&now(&a));
            let rebuilt = l.matmul(&u);
            let turned = now(&a).index_select(&p, 0).index_select(&q, 1);
            assert_close("P A Q", &tensor(&rebuilt), &tensor(&turned), 1e-14);
            let pivots = numbers(&tensor(&u.extract_diag(0, 1)));
            assert!(
                pivots[..4].iter().all(|x| x.norm() > 1e-3) && pivots[4..].iter().all(|x| x.norm() < 1e-14)
            );
        }
    });
    let f = |x: &[Var]| {
        let (l, u, p, q) = lu_full_pivot(&x[0]);
        let (packed, r) = lu_factor(&x[0]);
        vec![
            lu_full_pivot_solve(&l, &u, &p, &q, &x[1], System::left()),
            lu_solve(&packed, &r, &x[1], System::left().adjoint()),
        ]
    };
    for dtype in [DType::F64, DType::C64] {
        let x = [random(dtype, &[3, 3, 2], 5), random(dtype, &[3, 2], 6)];
        check(&format!("solutions {dtype}"), &f, &x, 2, 1e-5);
    }
}

#[test]
fn signs_are_exact() {
    for k in 1..200 {
        let x = f64::from(k);
        for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
            for sign in [1.0, -1.0] {
                let a = from_fn(dtype, &[1, 1], |_| C64::new(sign * x, 0.0));
                on_cpu(|| {
                    assert_eq!(numbers(&tensor(&slogdet(&now(&a)).0))[0], C64::new(sign, 0.0), "{x} {dtype}")
                });
            }
        }
        // Of 3-4-5 triangles, the phase is exact to rounding.
        let a = from_fn(DType::C64, &[1, 1], |_| C64::new(3.0 * x, -4.0 * x));
        let phase = on_cpu(|| numbers(&tensor(&slogdet(&now(&a)).0))[0]);
        assert!((phase - C64::new(0.6, -0.8)).norm() < 2e-16, "{phase}");
    }
}
