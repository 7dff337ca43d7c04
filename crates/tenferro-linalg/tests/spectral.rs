//! Functions of singular values and their derivatives.

mod common;

use common::*;
use tenferro_core_ops::{Var, apply1, leaf, vjp_present};
use tenferro_linalg::{
    SpectralDerivative, SpectralFunction,
    ops::{polar, spectral, svd},
};
use tenferro_tensor::{C64, DType, Tensor, Value};

fn with_values(dtype: DType, m: usize, n: usize, values: &[f64]) -> Tensor {
    on_cpu(|| {
        let (u, _, _) = svd(&now(&random(dtype, &[m, m], 21)));
        let (v, _, _) = svd(&now(&random(dtype, &[n, n], 22)));
        let s = from_fn(dtype, &[m, n], |i| C64::new(if i[0] == i[1] { values[i[0]] } else { 0.0 }, 0.0));
        tensor(&u.matmul(&now(&s)).matmul(&v))
    })
}

/// `A A^H A`, a polynomial that needs no decomposition.
fn cube(x: &[Var]) -> Vec<Var> {
    vec![x[0].matmul(&x[0].adjoint()).matmul(&x[0])]
}

type Function<'a> = &'a dyn Fn(&[Var]) -> Vec<Var>;

#[test]
fn the_cube_is_a_product() {
    let f = SpectralFunction::power(3.0);
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        let tolerance = if dtype.real() == DType::F32 { 1e-4 } else { 1e-13 };
        for shape in [&[3, 3][..], &[4, 2], &[2, 4], &[2, 2, 3]] {
            let a = random(dtype, shape, 3);
            on_cpu(|| {
                let y = tensor(&spectral(&now(&a), &f));
                assert_close("cube", &y, &tensor(&cube(&[now(&a)])[0]), tolerance);
            });
        }
    }
}

#[test]
fn derivatives_agree_with_differences() {
    let root = SpectralFunction::power(0.5);
    let f = move |x: &[Var]| vec![spectral(&x[0], &root)];
    let cubed = SpectralFunction::power(3.0);
    let g = move |x: &[Var]| vec![spectral(&x[0], &cubed)];
    for dtype in [DType::F64, DType::C64] {
        for shape in [[3, 3], [3, 2], [2, 3]] {
            let a = with_values(dtype, shape[0], shape[1], &[1.7, 1.0, 0.6]);
            check(&format!("root {dtype} {shape:?}"), &f, &[a], 3, 1e-6);
            let a = random(dtype, &shape, 8);
            check(&format!("cube {dtype} {shape:?}"), &g, &[a], 2, 1e-6);
        }
    }
    check("batch", &g, &[random(DType::C64, &[2, 2, 2], 8)], 2, 1e-6);
}

#[test]
fn derivatives_are_right_at_degeneracies() {
    let root = SpectralFunction::power(0.5);
    let f = move |x: &[Var]| vec![spectral(&x[0], &root)];
    for dtype in [DType::F64, DType::C64] {
        for values in [[1.0, 1.0, 1.0], [2.0, 2.0, 0.7], [2.0, 1.0, 1.0 - 1e-9]] {
            check(&format!("{values:?}"), &f, &[with_values(dtype, 3, 3, &values)], 2, 1e-6);
        }
    }
    // A zero singular value, where the cube is smooth.
    let cubed = SpectralFunction::power(3.0);
    let g = move |x: &[Var]| vec![spectral(&x[0], &cubed)];
    check("zero", &g, &[with_values(DType::F64, 3, 3, &[1.0, 0.0, 0.0])], 2, 1e-6);
}

/// The coefficients of the product of two polynomials in t, as far as those of the factors go.
fn times(a: &[Var], b: &[Var]) -> Vec<Var> {
    let coefficient = |k: usize| (0..=k).map(|i| a[i].matmul(&b[k - i])).reduce(|x, y| x + y).unwrap();
    (0..a.len()).map(coefficient).collect()
}

/// The sine of singular values is the odd series of A, which is products: of `A + t E`, a polynomial in t.
#[test]
fn derivatives_of_any_order_are_right_at_small_singular_values() {
    const ORDER: usize = 4;
    let sine = SpectralFunction::custom(|n, x| match n % 4 {
        0 => x.sin(),
        1 => x.cos(),
        2 => -x.sin(),
        _ => -x.cos(),
    });
    let cases: [(usize, usize, &[f64]); 9] = [
        (3, 3, &[1.0, 0.5, 0.2]),
        (3, 3, &[1.0, 3e-3, 1e-3]),
        (3, 3, &[1.0, 3e-8, 1e-8]),
        (3, 3, &[1.0, 1e-8, 0.0]),
        (4, 3, &[1.0, 3e-8, 1e-11]),
        (3, 4, &[1.0, 1e-13, 1e-13]),
        (2, 2, &[1.0, 1e-6]),
        (3, 3, &[1e-5, 1e-5, 1e-5]),
        (2, 3, &[2e-8, 1e-8]),
    ];
    for (dtype, (m, n, s)) in [DType::F64, DType::C64].into_iter().flat_map(|d| cases.map(|case| (d, case))) {
        on_cpu(|| {
            let (a, e) = (now(&with_values(dtype, m, n, s)), now(&random(dtype, &[m, n], 5)));
            let at: Vec<Var> =
                [a.clone(), e.clone()].into_iter().chain((1..ORDER).map(|_| &a * 0.0)).collect();
            let square = times(&at.iter().map(Var::adjoint).collect::<Vec<_>>(), &at);
            let (mut power, mut sum, mut factor) = (at.clone(), at, 1.0);
            for k in 1..14 {
                power = times(&power, &square);
                factor /= -f64::from(2 * k * (2 * k + 1));
                sum = sum.iter().zip(&power).map(|(sum, x)| sum + &(x * factor)).collect();
            }
            let (u, s_, vh) = svd(&a);
            let mut factorial = 1.0;
            for (order, coefficient) in sum.iter().enumerate() {
                factorial *= order.max(1) as f64;
                let operands: Vec<&Var> = [&a, &u, &s_, &vh].into_iter().chain(vec![&e; order]).collect();
                let y = tensor(&apply1(&SpectralDerivative { f: sine.clone() }, &operands));
                let what = format!("{dtype} {m}x{n} {s:?} order {order}");
                assert_close(&what, &y, &tensor(&(coefficient * factorial)), 1e-12);
            }
        });
    }
}

#[test]
fn equal_functions_of_equal_values_are_one_call() {
    let x = input_like(&random(DType::F64, &[2, 2], 1));
    let f = |f: &SpectralFunction| match spectral(&x, f) {
        Var::Later(c, _) => c.hash(),
        v => panic!("{v:?}"),
    };
    assert_eq!(f(&SpectralFunction::power(0.5)), f(&SpectralFunction::power(0.5)));
    assert_ne!(f(&SpectralFunction::power(0.5)), f(&SpectralFunction::exp(0.5)));
}

/// What the documentation of `svdvals` names for sums of `f(s)`, whose second derivatives `s` lacks at
/// multiplets.
#[test]
fn sums_over_singular_values_have_second_derivatives_at_multiplets() {
    for dtype in [DType::F64, DType::C64] {
        let a = on_cpu(|| tensor(&(svd(&now(&random(dtype, &[3, 2], 2))).0 * 2.0)));
        let f = |x: &[Var]| {
            let (u, _) = polar(&x[0]);
            let f = spectral(&x[0], &SpectralFunction::power(3.0));
            vec![(u.conj() * f).real().reduce_sum(None)]
        };
        let sum = on_cpu(|| numbers(&tensor(&f(&[now(&a)])[0]))[0].re);
        assert!((sum - 16.0).abs() < 1e-12, "{sum}");
        check(&format!("{dtype}"), &f, &[a], 2, 1e-6);
    }
}

/// `D^n f(A)[E1, .., En]`.
fn along(f: &SpectralFunction, a: &Var, e: &[Var]) -> Var {
    let (u, s, vh) = svd(a);
    let operands: Vec<&Var> = [a, &u, &s, &vh].into_iter().chain(e).collect();
    apply1(&SpectralDerivative { f: f.clone() }, &operands)
}

fn gradient(f: impl Fn(&Var) -> Var, a: &Tensor, ct: &Tensor) -> Tensor {
    let a = leaf(Value::new(a.duplicate().unwrap()));
    let g = vjp_present(&[(&f(&a), now(ct))], &[&a], false).unwrap();
    tensor(g[0].as_ref().unwrap())
}

fn sine() -> SpectralFunction {
    SpectralFunction::custom(|n, x| (x + n as f64 * std::f64::consts::FRAC_PI_2).sin())
}

#[test]
fn a_derivative_that_is_not_known_is_an_error() {
    let known = |orders: usize| {
        SpectralFunction::custom(move |n, x| match n {
            n if n >= orders => f64::NAN,
            0 => x.powi(3),
            1 => 3.0 * x * x,
            _ => 6.0 * x,
        })
    };
    for (values, shape) in
        [([1.0, 2.0], [2, 2]), ([2.0, 2.0], [2, 2]), ([2.0, 0.0], [2, 2]), ([1.0, 2.0], [5, 2])]
    {
        let a = with_values(DType::F64, shape[0], shape[1], &values);
        on_cpu(|| {
            let e: Vec<Var> = (0..3).map(|k| now(&random(DType::F64, &shape, 50 + k))).collect();
            for order in 1..=3 {
                for orders in 1..=3 {
                    let y = along(&known(orders), &now(&a), &e[..order]);
                    if order >= orders {
                        let error = y.ok().unwrap_err().to_string();
                        assert!(error.contains(&format!("derivative {orders}")), "{error}");
                    } else {
                        let cube = along(&SpectralFunction::power(3.0), &now(&a), &e[..order]);
                        assert_close(&format!("{values:?} {order}"), &tensor(&y), &tensor(&cube), 1e-12);
                    }
                }
            }
        });
    }
}

/// A square matrix needs no basis of its directions; with zeros beside it, a tall one is square.
#[test]
fn derivatives_of_tall_and_wide_matrices_are_those_with_zeros_beside_them() {
    let f = sine();
    for dtype in [DType::F64, DType::C64] {
        for values in [[1.7, 0.6], [1.0, 1.0], [1.2, 0.0], [0.0, 0.0]] {
            let a = with_values(dtype, 9, 2, &values);
            on_cpu(|| {
                let square = |x: &Var| enlarged(x, 9);
                for order in 1..4 {
                    let e: Vec<Var> = (0..order).map(|k| now(&random(dtype, &[9, 2], 40 + k))).collect();
                    let expected = along(&f, &square(&now(&a)), &e.iter().map(square).collect::<Vec<_>>());
                    let (tall, expected) = (square(&along(&f, &now(&a), &e)), tensor(&expected));
                    assert_close(&format!("{values:?} {order}"), &tensor(&tall), &expected, 1e-12);
                    let turned: Vec<Var> = e.iter().map(Var::adjoint).collect();
                    let wide = along(&f, &now(&a).adjoint(), &turned).adjoint();
                    assert_close(&format!("{values:?}^H {order}"), &tensor(&square(&wide)), &expected, 1e-12);
                }
            });
        }
    }
}

/// `x` with zeros appended, up to `n` columns.
fn enlarged(x: &Var, n: usize) -> Var {
    let t = tensor(x);
    let values = numbers(&t);
    let (rows, columns) = (t.shape()[0], t.shape()[1]);
    let at = |i: &[usize]| if i[1] < columns { values[i[0] + i[1] * rows] } else { C64::new(0.0, 0.0) };
    now(&from_fn(t.dtype(), &[rows, n], at))
}

#[test]
fn derivatives_of_tall_and_wide_matrices_agree_with_differences() {
    let root = SpectralFunction::power(0.5);
    let f = move |x: &[Var]| vec![spectral(&x[0], &root)];
    // Infinite at 0, where the rows beyond the span of the columns are.
    let inverse = SpectralFunction::power(-1.0);
    let g = move |x: &[Var]| vec![spectral(&x[0], &inverse)];
    let h = |x: &[Var]| <[Var; 2]>::from(polar(&x[0])).into();
    let functions: [(&str, Function<'_>); 3] = [("root", &f), ("inverse", &g), ("polar", &h)];
    for (name, f) in functions {
        for (m, n) in [(12, 2), (2, 12), (7, 1), (1, 7)] {
            for dtype in [DType::F64, DType::C64] {
                let a = with_values(dtype, m, n, &[1.4, 0.9]);
                check(&format!("{name} {m}x{n} {dtype}"), f, &[a], 2, 1e-6);
            }
        }
    }
    let cubed = SpectralFunction::power(3.0);
    let g = move |x: &[Var]| vec![spectral(&x[0], &cubed)];
    for shape in [&[7, 2, 3][..], &[2, 7, 3], &[0, 2], &[5, 0], &[3, 2, 0]] {
        check(&format!("{shape:?}"), &g, &[random(DType::C64, shape, 8)], 2, 1e-6);
    }
}

const MANY: usize = 25_000;

/// Of `(I, I, ..) diag(s)`, all over the root of their number: directions that are equal in each part turn it
/// as they turn `diag(s)`, and those of alternating sign are orthogonal to it.
#[test]
fn polar_factors_of_long_matrices_have_gradients() {
    let (s, root) = ([2.0, 0.5], (MANY as f64).sqrt());
    let (w, z) = ([[0.3, -1.1], [0.7, 0.4]], [[1.3, 0.2], [-0.8, 0.9]]);
    let long = |f: &dyn Fn(f64, usize, usize) -> f64| {
        from_fn(DType::F64, &[2 * MANY, 2], |i| {
            let sign = if i[0] / 2 % 2 == 0 { 1.0 } else { -1.0 };
            C64::new(f(sign, i[0] % 2, i[1]) / root, 0.0)
        })
    };
    let a = long(&|_, i, j| if i == j { s[i] } else { 0.0 });
    let ct = long(&|sign, i, j| w[i][j] + sign * z[i][j]);
    let expected = long(&|sign, i, j| (w[i][j] - w[j][i]) / (s[i] + s[j]) + sign * z[i][j] / s[j]);
    on_cpu(|| {
        let u = tensor(&polar(&now(&a)).0);
        assert_close("U", &u, &long(&|_, i, j| (i == j) as u8 as f64), 1e-14);
        let g = gradient(|a| polar(a).0, &a, &ct);
        assert!(distance(&g, &expected) * root < 1e-10, "{:e}", distance(&g, &expected) * root);
        let turned = |t: &Tensor| tensor(&now(t).adjoint());
        let g = gradient(|a| spectral(a, &SpectralFunction::sign()), &turned(&a), &turned(&ct));
        assert!(distance(&turned(&g), &expected) * root < 1e-10);
    });
}

#[test]
fn cubes_of_long_matrices_have_second_derivatives() {
    for dtype in [DType::F64, DType::C64] {
        let of = |seed| now(&random(dtype, &[2 * MANY, 2], seed));
        on_cpu(|| {
            // Columns of lengths 1 and 2 or so.
            let (a, e, d) = (of(1) * 0.01, of(2) * 0.01, of(3) * 0.01);
            let product = |x: &Var, y: &Var, z: &Var| x.matmul(&y.adjoint().matmul(z));
            let halves = product(&a, &e, &d) + product(&e, &a, &d) + product(&e, &d, &a);
            let expected = halves + product(&a, &d, &e) + product(&d, &a, &e) + product(&d, &e, &a);
            let y = along(&SpectralFunction::power(3.0), &a, &[e, d]);
            let (y, expected) = (tensor(&y), tensor(&expected));
            assert!(distance(&y, &expected) < 1e-12 * largest(&expected), "{:e}", distance(&y, &expected));
        });
    }
}

#[test]
fn what_is_not_finite_in_a_cotangent_is_in_the_gradient() {
    for dtype in [DType::F64, DType::C64] {
        for shape in [[5, 2], [2, 5]] {
            let bad = |x| from_fn(dtype, &shape, |i| C64::new(if i == [1, 1] { x } else { 1.0 }, 0.0));
            for x in [f64::NAN, f64::INFINITY] {
                let a = random(dtype, &shape, 3);
                let g = on_cpu(|| gradient(|a| polar(a).0, &a, &bad(x)));
                assert!(numbers(&g).iter().any(|z| z.norm().is_nan()), "{g}");
            }
        }
    }
}
