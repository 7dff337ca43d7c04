//! Errors name the operation that was called, not what it is made of; those of operands keep their names.

mod common;

use common::{now, on_cpu, random};
use std::collections::BTreeSet;
use tenferro_core_ops::Var;
use tenferro_linalg::{
    MatrixNorm, QrOptions, SpectralFunction, System, Tolerance, Triangular, Truncation, ops::*,
};
use tenferro_tensor::DType;

/// A call with a first operand, and others that fit a 2 x 2 matrix.
type Call = Box<dyn Fn(&Var) -> Var>;

fn calls() -> Vec<(&'static str, Call)> {
    fn case(name: &'static str, f: impl Fn(&Var) -> Var + 'static) -> (&'static str, Call) {
        (name, Box::new(f))
    }
    let float = |shape: &[usize]| now(&random(DType::F64, shape, 5));
    let (a, b, tau) = (float(&[2, 2]), float(&[2, 1]), float(&[2]));
    let p = now(&tenferro_tensor::Tensor::from_vec_col_major([2], vec![1_i64, 0]).unwrap());
    macro_rules! with {
        ($($v:ident)*; $f:expr) => {{
            $(let $v = $v.clone();)*
            move |x: &Var| { $(let $v = &$v;)* $f(x $(, $v)*) }
        }};
    }
    let (left, tolerance) = (System::left(), Tolerance::default());
    vec![
        case("svd", |x| svd(x).0),
        case("svd_full", |x| svd_full(x).2),
        case("svdvals", svdvals),
        case("svd_truncated", |x| svd_truncated(x, Truncation::max_rank(1)).3),
        case("split", |x| split(x, Truncation::max_rank(1)).1),
        case("eigh", |x| eigh(x).1),
        case("eigvalsh", eigvalsh),
        case("eigh_generalized", with!(a; |x: &Var, a: &Var| eigh_generalized(x, a).0)),
        case("eig", |x| eig(x).1),
        case("eigvals", eigvals),
        case("lu", |x| lu(x).2),
        case("lu_factor", |x| lu_factor(x).1),
        case("lu_solve", with!(p b; move |x: &Var, p: &Var, b: &Var| lu_solve(x, p, b, left))),
        case("lu_full_pivot", |x| lu_full_pivot(x).3),
        case(
            "lu_full_pivot_solve",
            with!(a p b; move |x: &Var, a: &Var, p: &Var, b: &Var| lu_full_pivot_solve(x, a, p, p, b, left)),
        ),
        case("qr", |x| qr(x).1),
        case("qr_full", |x| qr_full(x).1),
        case("qr_with", |x| qr_with(x, QrOptions { positive: true, ..QrOptions::default() }).1),
        case("qr_pivoted", |x| qr_pivoted(x).2),
        case("qr_pivoted_with", |x| qr_pivoted_with(x, QrOptions::default()).2),
        case("householder", |x| householder(x).1),
        case("householder_product", with!(tau; householder_product)),
        case(
            "householder_apply",
            with!(tau b; move |x: &Var, t: &Var, b: &Var| householder_apply(x, t, b, left)),
        ),
        case("householder_append", with!(tau b; |x: &Var, t: &Var, b: &Var| householder_append(x, t, b).1)),
        case("lstsq", with!(b; move |x: &Var, b: &Var| lstsq(x, b, tolerance).1)),
        case("solve", with!(b; solve)),
        case("solve_with", with!(b; move |x: &Var, b: &Var| solve_with(x, b, left))),
        case("triangular_solve", with!(b; |x: &Var, b: &Var| triangular_solve(x, b, Triangular::lower()))),
        case("inv", inv),
        case("det", det),
        case("slogdet", |x| slogdet(x).1),
        case("cholesky", cholesky),
        case("cholesky_solve", with!(b; move |x: &Var, b: &Var| cholesky_solve(x, b, left))),
        case("spectral", |x| spectral(x, &SpectralFunction::power(0.5))),
        case("matrix_norm", |x| matrix_norm(x, MatrixNorm::Two)),
        case("cond", |x| cond(x, MatrixNorm::One)),
        case("matrix_rank", move |x| matrix_rank(x, tolerance)),
        case("pinv", move |x| pinv(x, tolerance)),
        case("polar", |x| polar(x).1),
        case("matrix_exp", matrix_exp),
        case("matrix_power", |x| matrix_power(x, -2)),
        case("kron", with!(a; kron)),
        case("trace", trace),
    ]
}

/// The rows of the table of methods.
fn methods() -> BTreeSet<&'static str> {
    let rows = include_str!("../src/surface.rs").lines().filter_map(|l| l.strip_prefix("    fn "));
    rows.filter_map(|l| l.split('(').next()).filter(|&name| name != "svd_read").collect()
}

#[test]
fn every_method_is_tried() {
    // A norm of vectors takes every shape: its axes are tried below.
    let tried: BTreeSet<&str> = calls().into_iter().map(|c| c.0).chain(["vector_norm"]).collect();
    assert_eq!(tried, methods());
}

#[test]
fn errors_name_the_operation_that_was_called() {
    let shapes: [&[usize]; 5] = [&[], &[2], &[2, 3], &[3, 2], &[3, 3, 3]];
    for (name, f) in calls() {
        let mut failed = 0;
        for shape in shapes {
            for dtype in [DType::F64, DType::C32] {
                let x = random(dtype, shape, 1);
                for y in [on_cpu(|| f(&now(&x))), f(&common::input_like(&x))] {
                    if let Err(e) = y.ok() {
                        assert_eq!(e.op(), name, "{shape:?}: {e}");
                        failed += 1;
                    }
                }
            }
        }
        assert!(failed >= 8, "{name}: ranks 0 and 1 are errors");
        // Of elements.
        let x =
            now(&tenferro_tensor::Tensor::full(DType::F64, [2, 2], tenferro_tensor::C64::new(f64::NAN, 0.0))
                .unwrap());
        if let Err(e) = on_cpu(|| f(&x)).ok() {
            assert_eq!(e.op(), name, "{e}");
        }
    }
    let norm = tenferro_linalg::VectorNorm { axes: Some(vec![2]), ..1.0.into() };
    let e = on_cpu(|| vector_norm(&now(&random(DType::F64, &[2, 2], 1)), norm)).ok().err();
    assert_eq!(e.expect("there is no axis 2").op(), "vector_norm");
}

#[test]
fn errors_of_operands_keep_their_names() {
    for (name, f) in calls() {
        let y =
            on_cpu(|| f(&now(&random(DType::F64, &[2, 3], 1)).matmul(&now(&random(DType::F64, &[2, 3], 1)))));
        assert_eq!(y.ok().expect_err(name).op(), "matmul", "{name}");
    }
}

/// Elements and limits that only a run finds wrong, in the parts that an operation is made of.
#[test]
fn errors_met_while_running_name_the_operation_that_was_called() {
    let of = |shape: &[usize], data: &[f64]| {
        now(&tenferro_tensor::Tensor::from_vec_col_major(shape, data.to_vec()).unwrap())
    };
    on_cpu(|| {
        let (singular, regular) = (of(&[2, 2], &[1.0; 4]), of(&[2, 2], &[2.0, 1.0, 1.0, 2.0]));
        let (none, column) = (of(&[0, 0], &[]), of(&[2, 1], &[1.0, 1.0]));
        let weight = Truncation { weight: -1.0, ..Truncation::default() };
        let p = now(&tenferro_tensor::Tensor::from_vec_col_major([2], vec![0_i64, 0]).unwrap());
        for (name, y) in [
            ("matrix_power", matrix_power(&singular, -1)),
            ("inv", inv(&singular)),
            ("solve", solve(&singular, &column)),
            ("solve_with", solve_with(&singular, &column, System::left().adjoint())),
            ("eigh_generalized", eigh_generalized(&regular, &singular).0),
            ("cholesky", cholesky(&singular)),
            ("cholesky_solve", cholesky_solve(&of(&[2, 2], &[0.0; 4]), &column, System::left())),
            ("lu_solve", lu_solve(&singular, &p, &column, System::left())),
            ("lu_full_pivot_solve", lu_full_pivot_solve(&regular, &regular, &p, &p, &column, System::left())),
            ("triangular_solve", triangular_solve(&of(&[2, 2], &[0.0; 4]), &column, Triangular::lower())),
            ("svd_truncated", svd_truncated(&regular, Truncation::max_rank(0)).3),
            ("split", split(&regular, weight).0),
            ("vector_norm", vector_norm(&none, f64::INFINITY)),
            ("vector_norm", vector_norm(&none, -1.0)),
            ("matrix_norm", matrix_norm(&none, MatrixNorm::Two)),
            ("cond", cond(&none, MatrixNorm::MinusTwo)),
            ("householder_append", householder_append(&regular, &of(&[1], &[1.0]), &column).0),
        ] {
            assert_eq!(y.ok().expect_err(name).op(), name);
        }
    });
}
