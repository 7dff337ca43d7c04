//! Functions of singular values and their derivatives.

mod common;

use common::*;
use tenferro_core_ops::Var;
use tenferro_linalg::{
    SpectralFunction,
    ops::{polar, spectral, svd},
};
use tenferro_tensor::{C64, DType, Tensor};

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
