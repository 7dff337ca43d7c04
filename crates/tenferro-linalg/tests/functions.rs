//! Pseudo-inverse, polar decomposition, exponential, powers and products: outside values, laws, derivatives.

mod common;

use common::*;
use tenferro_core_ops::{Var, apply1};
use tenferro_linalg::{
    MatrixExp, Tolerance,
    ops::{kron, matrix_exp, matrix_power, pinv, polar, svd, trace},
};
use tenferro_tensor::{C64, DType, Tensor};

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C32, DType::C64];

/// The square matrix with these rows.
fn rows<const N: usize>(rows: [[f64; N]; N]) -> Tensor {
    from_fn(DType::F64, &[N, N], |i| C64::new(rows[i[0]][i[1]], 0.0))
}

fn with_values(dtype: DType, m: usize, n: usize, values: &[f64]) -> Tensor {
    on_cpu(|| {
        let (u, _, _) = svd(&now(&random(dtype, &[m, m], 21)));
        let (v, _, _) = svd(&now(&random(dtype, &[n, n], 22)));
        let s = from_fn(dtype, &[m, n], |i| C64::new(if i[0] == i[1] { values[i[0]] } else { 0.0 }, 0.0));
        tensor(&u.matmul(&now(&s)).matmul(&v))
    })
}

fn rounding(dtype: DType) -> f64 {
    if dtype.real() == DType::F32 { 1e-5 } else { 1e-13 }
}

/// Computed with mpmath 1.3 at 60 digits.
#[test]
fn exponentials_have_known_values() {
    let a = rows([[1.0, 2.0, 0.0], [-3.0, 0.5, 4.0], [0.25, -1.0, 2.0]]);
    let want = rows([
        [0.6651982930261152, -0.2542501111178956, 6.335342409262305],
        [1.1732929678346316, -2.4389103838255632, 2.659170982395361],
        [2.640941315017798, -0.2688338450199463, 3.309785541519426],
    ]);
    let e = rows([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]);
    let along = rows([
        [2.267039189585956, -1.0805280777157198, 0.639635306658972],
        [1.700746529905951, -0.8231925933868048, -5.136034762292054],
        [1.8423528940287694, 0.7264016128953454, -3.7066531305883434],
    ]);
    let wide = rows([[0.0, 6.0, 0.0], [-6.0, 0.0, 0.0], [1.0, 2.0, -30.0]]);
    let of_wide = rows([
        [0.960170286650366, -0.27941549819892586, 0.0],
        [0.27941549819892586, 0.960170286650366, 0.0],
        [0.05920468904065539, 0.04285656469525623, 9.357622968840175e-14],
    ]);
    on_cpu(|| {
        assert_close("exp", &tensor(&matrix_exp(&now(&a))), &want, 1e-14);
        assert_close("derivative", &tensor(&apply1(&MatrixExp, &[&now(&a), &now(&e)])), &along, 1e-14);
        assert_close("exp", &tensor(&matrix_exp(&now(&wide))), &of_wide, 1e-14);
    });
}

/// The first fails where a quotient of sinh(x) / x overflows, the second where a matrix is scaled by its
/// norm.
#[test]
fn exponentials_of_badly_scaled_matrices_are_accurate() {
    let steep = rows([[-247.044225955, 0.0], [6283.1853, -6283.1853]]);
    // In closed form, with mpmath.
    let want = [5.129273793069993e-108, 5.339202199045946e-108, 0.0, 0.0];
    let got = on_cpu(|| numbers(&tensor(&matrix_exp(&now(&steep)))));
    for (got, want) in got.iter().zip(want) {
        assert!((got.re - want).abs() <= 1e-11 * want, "{got} {want}");
    }
    // C. Moler's; with mpmath at 120 digits.
    let moler = rows([
        [0.0, 1e-8, 0.0],
        [-20066666666.666668, -3.0, 2e10],
        [66.66666666666667, 0.0, -66.66666666666667],
    ]);
    let want = rows([
        [0.4468494682831738, 1.5404415738395202e-09, 0.4628114535587736],
        [-5743067.779479561, -0.01528300386868225, -4526542.712784101],
        [0.44772297784949333, 1.5427048451959122e-09, 0.46348063884765006],
    ]);
    let got = on_cpu(|| tensor(&matrix_exp(&now(&moler))));
    assert_close("Moler", &got, &want, 1e-10);
    for i in [0, 2, 6, 8] {
        assert!((numbers(&got)[i] - numbers(&want)[i]).norm() < 1e-7, "{got}");
    }
}

/// `[[1, b], [0, 2]]` and what it becomes when permuted, or with a small number instead of zero.
#[test]
fn exponentials_of_matrices_far_from_normal_are_accurate() {
    let (e, e2) = (1f64.exp(), 2f64.exp());
    for power in [0, 5, 16, 30, 50, 100, 155, 250, 300] {
        let b = 10f64.powi(power);
        let want = [[e, b * (e2 - e)], [0.0, e2]];
        let close = |got: &[C64], want: [[f64; 2]; 2]| {
            for (at, z) in got.iter().enumerate() {
                let want = want[at % 2][at / 2];
                assert!((z - want).norm() <= 1e-14 * want, "{power}: {got:?}");
            }
        };
        let exp = |a: Tensor| on_cpu(|| numbers(&tensor(&matrix_exp(&now(&a)))));
        close(&exp(rows([[1.0, b], [0.0, 2.0]])), want);
        close(&exp(rows([[2.0, 0.0], [b, 1.0]])), [[e2, 0.0], [want[0][1], e]]);
        // The similarity by diag(b, 1) of [[1, 1], [1, 1]], whose exponential has (e^2 +- 1) / 2.
        let (plus, minus) = ((e2 + 1.0) / 2.0, (e2 - 1.0) / 2.0);
        close(&exp(rows([[1.0, b], [1.0 / b, 1.0]])), [[plus, b * minus], [minus / b, plus]]);
        // No path leads from the first row to the last one.
        let apart = exp(rows([[1.0, b, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]));
        close(&[apart[0], apart[1], apart[3], apart[4]], want);
        assert_eq!([2, 5, 6, 7].map(|at| apart[at]), [C64::new(0.0, 0.0); 4]);
    }
}

/// `D exp(A)[E] = D L D^-1` for `L = D exp(D^-1 A D)[D^-1 E D]`, which is exact with powers of two.
#[test]
fn derivatives_far_from_normal_are_those_of_a_similar_matrix() {
    let b = 2f64.powi(166);
    let directions = [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]];
    for direction in directions {
        let along = |b: f64| {
            let e = rows([[direction[0][0], b * direction[0][1]], [direction[1][0] / b, direction[1][1]]]);
            let a = rows([[1.0, b], [0.0, 2.0]]);
            on_cpu(|| numbers(&tensor(&apply1(&MatrixExp, &[&now(&a), &now(&e)]))))
        };
        let (got, near) = (along(b), along(1.0));
        for at in 0..4 {
            let want = near[at] * [1.0, 1.0 / b, b, 1.0][at];
            assert!((got[at] - want).norm() <= 1e-13 * want.norm(), "{direction:?}: {got:?} {near:?}");
        }
    }
}

#[test]
fn exponentials_of_extreme_matrices_are_what_they_must_be() {
    on_cpu(|| {
        let exp = |a: &Tensor| tensor(&matrix_exp(&now(a)));
        let nilpotent = rows([[0.0, 1e200], [0.0, 0.0]]);
        assert_eq!(numbers(&exp(&nilpotent)), numbers(&rows([[1.0, 1e200], [0.0, 1.0]])));
        let diagonal = rows([[1e4, 0.0], [0.0, -1e308]]);
        assert_eq!(numbers(&exp(&diagonal)), numbers(&rows([[f64::INFINITY, 0.0], [0.0, 0.0]])));
        let tiny = rows([[0.0, 1e-300], [1e-300, 0.0]]);
        assert_eq!(numbers(&exp(&tiny)), numbers(&rows([[1.0, 1e-300], [1e-300, 1.0]])));
        let (s, c) = 1000f64.sin_cos();
        assert_close("turns", &exp(&rows([[0.0, 1e3], [-1e3, 0.0]])), &rows([[c, s], [-s, c]]), 1e-11);
    });
}

#[test]
fn an_exponential_times_that_of_the_opposite_is_one() {
    for dtype in DTYPES {
        for (shape, size) in [(&[4, 4][..], 1e-3), (&[4, 4], 0.2), (&[3, 3, 2], 1.0), (&[2, 2], 3.0)] {
            on_cpu(|| {
                let a = now(&random(dtype, shape, 3)) * size;
                let one = matrix_power(&a, 0);
                let product = matrix_exp(&a).matmul(&matrix_exp(&-&a));
                assert_close("product", &tensor(&product), &tensor(&one), 100.0 * rounding(dtype));
            });
        }
    }
}

#[test]
fn exponentials_have_derivatives_of_every_order() {
    let f = |x: &[Var]| vec![matrix_exp(&x[0])];
    for dtype in [DType::F64, DType::C64] {
        check("exp", &f, &[random(dtype, &[3, 3], 4)], 3, 1e-6);
    }
    check("batch", &f, &[random(DType::C64, &[2, 2, 2], 4)], 2, 1e-6);
    check("zero", &f, &[from_fn(DType::F64, &[2, 2], |_| C64::new(0.0, 0.0))], 3, 1e-6);
    check("nilpotent", &f, &[rows([[0.0, 9.0], [0.0, 0.0]])], 2, 1e-6);
}

#[test]
fn a_derivative_does_not_depend_on_the_size_of_its_direction() {
    on_cpu(|| {
        let (a, e) = (now(&random(DType::F64, &[3, 3], 4)), now(&random(DType::F64, &[3, 3], 5)));
        let along = |size: f64| tensor(&(apply1(&MatrixExp, &[&a, &(&e * size)]) * (1.0 / size)));
        for size in [1e-250, 1e-9, 1e9, 1e250] {
            assert_close("direction", &along(size), &along(1.0), 1e-14);
        }
    });
}

#[test]
fn pseudo_inverses_fulfil_the_conditions_of_penrose() {
    for dtype in DTYPES {
        for (m, n, s) in
            [(3, 3, &[3.0, 1.0, 0.5][..]), (4, 2, &[2.0, 0.0]), (2, 4, &[2.0, 2.0]), (3, 3, &[0.0; 3])]
        {
            let a = with_values(dtype, m, n, s);
            on_cpu(|| {
                let a = now(&a);
                let p = pinv(&a, Tolerance::relative(1e-4));
                let close = |what: &str, x: &Var, y: &Var| {
                    assert_close(what, &tensor(x), &tensor(y), 10.0 * rounding(dtype));
                };
                close("A P A", &a.matmul(&p).matmul(&a), &a);
                close("P A P", &p.matmul(&a).matmul(&p), &p);
                close("A P", &a.matmul(&p).adjoint(), &a.matmul(&p));
                close("P A", &p.matmul(&a).adjoint(), &p.matmul(&a));
            });
        }
    }
}

#[test]
fn pseudo_inverses_have_derivatives_where_the_rank_is_constant() {
    let full = |x: &[Var]| vec![pinv(&x[0], Tolerance::default())];
    // A product of two factors has their rank.
    let deficient = |x: &[Var]| vec![pinv(&x[0].matmul(&x[1]), Tolerance::relative(1e-6))];
    for dtype in [DType::F64, DType::C64] {
        for (m, n, s) in [(3, 3, &[2.0, 2.0, 0.7][..]), (4, 2, &[1.0, 1.0]), (2, 3, &[1.5, 0.8])] {
            check(&format!("{dtype} {s:?}"), &full, &[with_values(dtype, m, n, s)], 3, 1e-6);
        }
        let factors = [with_values(dtype, 4, 2, &[1.5, 1.0]), with_values(dtype, 2, 3, &[1.0, 1.0])];
        check(&format!("deficient {dtype}"), &deficient, &factors, 2, 1e-6);
    }
}

#[test]
fn polar_factors_are_an_isometry_and_positive() {
    for dtype in DTYPES {
        for (m, n, s) in
            [(3, 3, &[3.0, 1.0, 0.5][..]), (4, 2, &[2.0, 0.0]), (2, 4, &[2.0, 2.0]), (3, 3, &[0.0; 3])]
        {
            let a = with_values(dtype, m, n, s);
            on_cpu(|| {
                let (u, p) = polar(&now(&a));
                let close = |what: &str, x: &Var, y: &Var| {
                    assert_close(what, &tensor(x), &tensor(y), 10.0 * rounding(dtype));
                };
                close("U P", &u.matmul(&p), &now(&a));
                let square = if m < n { u.matmul(&u.adjoint()) } else { u.adjoint().matmul(&u) };
                close("isometry", &square, &matrix_power(&square, 0));
                close("Hermitian", &p.adjoint(), &p);
                // Its trace is the sum of the singular values.
                let total = from_fn(dtype, &[], |_| C64::new(s.iter().sum(), 0.0));
                assert_close("trace", &tensor(&trace(&p)), &total, 10.0 * rounding(dtype));
            });
        }
    }
}

#[test]
fn polar_factors_have_derivatives_at_multiplets() {
    let f = |x: &[Var]| {
        let (u, p) = polar(&x[0]);
        vec![u, p]
    };
    for dtype in [DType::F64, DType::C64] {
        for (m, n, s) in
            [(2, 2, &[2.0, 2.0][..]), (3, 3, &[2.0, 2.0, 0.7]), (3, 2, &[1.0, 1.0]), (2, 3, &[1.5, 0.8])]
        {
            check(&format!("{dtype} {s:?}"), &f, &[with_values(dtype, m, n, s)], 2, 1e-6);
        }
    }
}

#[test]
fn powers_are_products() {
    let a = with_values(DType::C64, 3, 3, &[1.2, 1.0, 0.8]);
    on_cpu(|| {
        let a = now(&a);
        for n in 1..9 {
            let product = (1..n).fold(a.clone(), |x, _| x.matmul(&a));
            assert_close("power", &tensor(&matrix_power(&a, n)), &tensor(&product), 1e-13);
            let one = product.matmul(&matrix_power(&a, -n));
            assert_close("inverse", &tensor(&one), &tensor(&matrix_power(&a, 0)), 1e-12);
        }
    });
    check("power", &|x: &[Var]| vec![matrix_power(&x[0], -3)], &[a], 2, 1e-6);
}

#[test]
fn products_of_kronecker_products_are_those_of_products() {
    for dtype in DTYPES {
        on_cpu(|| {
            let of = |shape: &[usize], seed| now(&random(dtype, shape, seed));
            let (a, b) = (of(&[2, 3, 2], 1), of(&[3, 2, 2], 2));
            let (c, d) = (of(&[3, 4, 2], 3), of(&[2, 2], 4));
            let (left, right) = (kron(&a, &b).matmul(&kron(&c, &d)), kron(&a.matmul(&c), &b.matmul(&d)));
            assert_close("product", &tensor(&left), &tensor(&right), rounding(dtype));
            let square = of(&[3, 3, 2], 5);
            let (traced, product) = (trace(&kron(&square, &d)), trace(&square) * trace(&d));
            assert_close("trace", &tensor(&traced), &tensor(&product), rounding(dtype));
        });
    }
    let integers = Tensor::from_vec_col_major([1, 2], vec![2i64, 3]).unwrap();
    on_cpu(|| {
        let y = tensor(&kron(&now(&integers), &now(&integers)));
        assert_eq!((y.shape(), y.as_slice::<i64>().unwrap()), (&[1, 4][..], &[4, 6, 6, 9][..]));
    });
}

#[test]
fn polar_factors_near_the_largest_number_are_finite() {
    on_cpu(|| {
        for (dtype, x) in [(DType::F64, 1e308), (DType::C64, 1e308), (DType::F32, 2e38)] {
            let a = from_fn(dtype, &[1, 1], |_| C64::new(x, 0.0));
            assert_close("P", &tensor(&polar(&now(&a)).1), &a, 1e-6);
        }
    });
}
