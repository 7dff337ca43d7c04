//! Singular value decomposition: factors, derivatives, degeneracies, batches.

mod common;

use common::*;
use tenferro_core_ops::Var;
use tenferro_linalg::ops::{svd, svd_full, svdvals};
use tenferro_tensor::{C64, DType, Tensor};

const DTYPES: [DType; 2] = [DType::F64, DType::C64];

fn rebuilt(u: &Var, s: &Var, vh: &Var) -> Var {
    (u * &s.expand_dims(&[0])).matmul(vh)
}

#[test]
fn factors_multiply_to_the_matrix() {
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        let tolerance = if dtype.real() == DType::F32 { 1e-5 } else { 1e-13 };
        for shape in [&[3, 3][..], &[5, 2], &[2, 5], &[1, 4], &[40, 30], &[3, 4, 2, 3]] {
            let a = random(dtype, shape, 3);
            on_cpu(|| {
                let (u, s, vh) = svd(&now(&a));
                assert_close("A", &tensor(&rebuilt(&u, &s, &vh)), &a, tolerance);
                let one = tensor(&u.adjoint().matmul(&u));
                let k = shape[0].min(shape[1]);
                let eye = from_fn(dtype, one.shape(), |i| C64::new((i[0] == i[1]) as u8 as f64, 0.0));
                assert_close("U^H U", &one, &eye, tolerance);
                assert_eq!(&s.value().unwrap().shape()[..1], [k]);
            });
        }
    }
}

#[test]
fn zero_size_matrices_have_empty_factors() {
    for shape in [&[0, 3][..], &[3, 0], &[0, 0], &[2, 2, 0]] {
        on_cpu(|| {
            let (u, s, vh) = svd(&now(&random(DType::F64, shape, 1)));
            assert_eq!(tensor(&s).len(), 0);
            assert_eq!(tensor(&rebuilt(&u, &s, &vh)).shape(), shape);
        });
    }
    on_cpu(|| {
        let (u, _, vh) = svd_full(&now(&random(DType::F64, &[0, 3], 1)));
        assert_eq!((tensor(&u).shape(), tensor(&vh).shape()), (&[0, 0][..], &[3, 3][..]));
        assert_close("Vh", &tensor(&vh.matmul(&vh.adjoint())), &Tensor::eye(DType::F64, 3).unwrap(), 1e-14);
    });
}

#[test]
fn a_non_finite_element_is_named() {
    let mut a = random(DType::F64, &[3, 2, 2], 1);
    a.as_slice_mut::<f64>().unwrap()[6 + 4] = f64::NAN;
    let e = on_cpu(|| svdvals(&now(&a)).ok().unwrap_err());
    assert_eq!(
        e.to_string(),
        "svdvals: matrix: got element [1, 1] of matrix [1] is not finite, expected finite elements"
    );
}

/// Invariant under the phases (signs) of pairs of singular vectors.
fn invariant(x: &[Var]) -> Vec<Var> {
    let (u, s, vh) = svd(&x[0]);
    let weighted = &u * &(&s * &s).exp().expand_dims(&[0]);
    vec![rebuilt(&u, &s.sin(), &vh), weighted.matmul(&u.adjoint()), s]
}

#[test]
fn derivatives_agree_with_differences() {
    for dtype in DTYPES {
        for shape in [&[3, 3][..], &[4, 2], &[2, 4], &[1, 3], &[2, 3, 2]] {
            check(&format!("svd {dtype} {shape:?}"), &invariant, &[random(dtype, shape, 11)], 2, 1e-7);
        }
        let f = |x: &[Var]| vec![svdvals(&x[0])];
        check("svdvals", &f, &[random(dtype, &[3, 4], 4)], 2, 1e-7);
    }
}

/// Checks that of those components of a vector whose moduli are nearly the largest, the first is positive.
fn expect_phase(what: &str, v: &[C64]) {
    let largest = v.iter().map(|x| x.norm()).fold(0.0, f64::max);
    let held = v.iter().find(|x| x.norm() >= 0.999 * largest).expect("a component");
    assert!(held.re > 0.0 && held.im == 0.0, "{what}: {v:?}");
}

#[test]
fn the_largest_component_of_each_vector_is_positive() {
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        let tolerance = if dtype.real() == DType::F32 { 1e-4 } else { 1e-12 };
        for shape in [[1, 1], [2, 2], [3, 3], [5, 2], [2, 5], [12, 12], [40, 30], [130, 110]] {
            let a = random(dtype, &shape, 5);
            for full in [false, true] {
                on_cpu(|| {
                    let (u, s, vh) = if full { svd_full(&now(&a)) } else { svd(&now(&a)) };
                    let k = s.extent(0);
                    let (u0, v0) = (u.slice_axis(1, 0, k.clone()), vh.slice_axis(0, 0, k.clone()));
                    assert_close("A", &tensor(&rebuilt(&u0, &s, &v0)), &a, tolerance);
                    let (u, rest) = (tensor(&u), tensor(&vh.adjoint().slice_axis(1, k, vh.extent(0))));
                    for (v, order) in [(&u, shape[0]), (&rest, shape[1])] {
                        for v in numbers(v).chunks_exact(order) {
                            expect_phase(&format!("{dtype} {shape:?} {full}"), v);
                        }
                    }
                });
            }
        }
    }
}

#[test]
fn rounding_does_not_choose_between_components() {
    // Vectors (1, 1) and (1, -1), of matrices with rounding errors in all elements.
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        let eps = if dtype.real() == DType::F32 { 1e-6 } else { 1e-15 };
        for seed in 0..20 {
            let noise = numbers(&random(dtype, &[2, 2], seed));
            let a = from_fn(dtype, &[2, 2], |i| {
                C64::new(if i[0] == i[1] { -2.0 } else { 1.0 }, 0.0) + noise[i[0] + 2 * i[1]] * eps
            });
            let (u, vh) = on_cpu(|| {
                let (u, _, vh) = svd(&now(&a));
                (tensor(&u), tensor(&vh))
            });
            let half = 0.5f64.sqrt();
            let expected =
                |t: &[f64; 4]| from_fn(dtype, &[2, 2], |i| C64::new(t[i[0] + 2 * i[1]] * half, 0.0));
            assert_close("U", &u, &expected(&[1.0, -1.0, 1.0, 1.0]), 1e4 * eps);
            assert_close("Vh", &vh, &expected(&[-1.0, -1.0, 1.0, -1.0]), 1e4 * eps);
        }
    }
}

#[test]
fn vectors_themselves_have_derivatives() {
    let thin = |x: &[Var]| <[Var; 3]>::from(svd(&x[0])).to_vec();
    let full = |x: &[Var]| <[Var; 3]>::from(svd_full(&x[0])).to_vec();
    for dtype in DTYPES {
        check(&format!("thin {dtype}"), &thin, &[random(dtype, &[4, 3], 2)], 2, 1e-6);
        check(&format!("wide {dtype}"), &thin, &[random(dtype, &[2, 4], 2)], 2, 1e-6);
        check(&format!("batch {dtype}"), &thin, &[random(dtype, &[3, 3, 2], 5)], 1, 1e-6);
        // One vector more is determined by the others.
        for shape in [[3, 2], [2, 3], [3, 3]] {
            check(&format!("full {dtype} {shape:?}"), &full, &[random(dtype, &shape, 8)], 2, 1e-6);
        }
    }
}

#[test]
fn a_loss_of_phases_has_the_derivative_of_the_fixed_ones() {
    // By hand: the matrix is a vector a, whose first component is the largest, so U = a / |a| and Vh = [1]
    // turned by the phase of that: with a = r (cos t, i sin t) e^(i p), the phase p goes to Vh.
    let (r, t, p) = (2.0, 0.3f64, 0.7);
    let turned = C64::from_polar(r, p);
    let a = from_fn(DType::C64, &[2, 1], |i| turned * [t.cos().into(), C64::new(0.0, t.sin())][i[0]]);
    let x = tenferro_core_ops::leaf(tenferro_tensor::Value::new(a));
    on_cpu(|| {
        let (u, _, vh) = svd(&x);
        let of = |t: &Var| numbers(&tensor(t));
        assert!((of(&vh)[0] - C64::from_polar(1.0, p)).norm() < 1e-15);
        assert!((of(&u)[1] - C64::new(0.0, t.sin())).norm() < 1e-15);
        // The loss Im log Vh = p is the argument of the first component: dp = Im(conj(a_1) da_1) / |a_1|^2.
        let loss = (vh.imag() * vh.detach().real() - vh.real() * vh.detach().imag()).reduce_sum(None);
        let g = tenferro_core_ops::vjp_present(&[(&loss, loss.like(1.0))], &[&x], false).unwrap();
        let g = of(g[0].as_ref().unwrap());
        let first = C64::from_polar(r * t.cos(), p);
        let expected = C64::new(0.0, 1.0) * first / first.norm_sqr();
        assert!((g[0] - expected).norm() < 1e-14 && g[1].norm() < 1e-14, "{g:?} {expected}");
    });
}

#[test]
fn full_vectors_have_derivatives() {
    let f = |x: &[Var]| {
        let (u, s, vh) = svd_full(&x[0]);
        let k = s.extent(0);
        let part = |b: bool| {
            let u0 = if b { u.slice_axis(1, k.clone(), u.extent(1)) } else { u.slice_axis(1, 0, k.clone()) };
            let v0 =
                if b { vh.slice_axis(0, k.clone(), vh.extent(0)) } else { vh.slice_axis(0, 0, k.clone()) };
            (u0.matmul(&u0.adjoint()), v0.adjoint().matmul(&v0))
        };
        let ((p, q), (r, t)) = (part(true), part(false));
        let first = u.slice_axis(1, 0, 1);
        vec![p, q, r, t, s, first.matmul(&first.adjoint())]
    };
    for dtype in DTYPES {
        for shape in [[4, 2], [2, 3], [3, 3]] {
            check(&format!("full {dtype} {shape:?}"), &f, &[random(dtype, &shape, 8)], 1, 1e-6);
        }
    }
}

/// A matrix with given singular values.
fn with_values(dtype: DType, m: usize, n: usize, values: &[f64]) -> Tensor {
    on_cpu(|| {
        let (u, _, _) = svd(&now(&random(dtype, &[m, m], 21)));
        let (v, _, _) = svd(&now(&random(dtype, &[n, n], 22)));
        let s = from_fn(dtype, &[m, n], |i| C64::new(if i[0] == i[1] { values[i[0]] } else { 0.0 }, 0.0));
        tensor(&u.matmul(&now(&s)).matmul(&v))
    })
}

#[test]
fn invariant_losses_are_right_inside_multiplets() {
    // A function of the matrix that does not see how a multiplet is rotated: the projector on the leading pair,
    // and the sum of its values.
    let f = |x: &[Var]| {
        let (u, s, vh) = svd(&x[0]);
        let (u, s, vh) = (u.slice_axis(1, 0, 2), s.slice_axis(0, 0, 2), vh.slice_axis(0, 0, 2));
        vec![u.matmul(&u.adjoint()), vh.adjoint().matmul(&vh), s.reduce_sum(None)]
    };
    for dtype in DTYPES {
        check("pair", &f, &[with_values(dtype, 4, 3, &[2.0, 2.0, 0.7])], 1, 1e-6);
        check("pairs", &f, &[with_values(dtype, 4, 4, &[2.0, 2.0, 0.7, 0.7])], 1, 1e-6);
    }
    let nuclear = |x: &[Var]| vec![svdvals(&x[0]).reduce_sum(None)];
    check("identity", &nuclear, &[Tensor::eye(DType::F64, 3).unwrap()], 1, 1e-8);
    // Everything is finite where the vectors are not defined at all.
    for a in [Tensor::eye(DType::C64, 3).unwrap(), Tensor::zeros(DType::C64, [3, 2]).unwrap()] {
        let x = tenferro_core_ops::leaf(tenferro_tensor::Value::new(a));
        on_cpu(|| {
            let (u, s, vh) = svd(&x);
            for y in [&u, &s, &vh] {
                let g = tenferro_core_ops::vjp_present(&[(y, y.like(1.0))], &[&x], false).unwrap();
                assert!(largest(&tensor(g[0].as_ref().unwrap())).is_finite());
            }
        });
    }
}

#[test]
fn batches_are_loops() {
    for dtype in DTYPES {
        let a = random(dtype, &[3, 2, 2, 2], 6);
        on_cpu(|| {
            let all = invariant(&[now(&a)]);
            for i in 0..2 {
                for j in 0..2 {
                    let part = |x: &Var| {
                        let r = x.rank();
                        let x = x.slice_axis(r - 2, i, i + 1).slice_axis(r - 1, j, j + 1);
                        x.squeeze(&[r - 2, r - 1])
                    };
                    for (one, all) in invariant(&[part(&now(&a))]).iter().zip(&all) {
                        assert_close("batch", &tensor(&part(all)), &tensor(one), 1e-14);
                    }
                }
            }
        });
    }
}

#[test]
fn extents_may_be_known_only_when_the_program_runs() {
    let a = random(DType::F64, &[4, 3], 9);
    let x = symbolic_like(&a, "n");
    let y = invariant(std::slice::from_ref(&x));
    let ct: Vec<(Var, Var)> = y.iter().map(|y| (y.clone(), y.cos())).collect();
    let mut outputs = y.clone();
    outputs.extend(tenferro_core_ops::vjp_traced(&ct, &[&x]).unwrap().into_iter().flatten());
    for a in [a, random(DType::F64, &[2, 5], 9), random(DType::F64, &[3, 3], 9)] {
        let got = run(&outputs, &[(x.clone(), a.duplicate().unwrap())]).unwrap();
        on_cpu(|| {
            let leaf = tenferro_core_ops::leaf(tenferro_tensor::Value::new(a));
            let y = invariant(std::slice::from_ref(&leaf));
            let seeds: Vec<(&Var, Var)> = y.iter().map(|y| (y, y.cos().detach())).collect();
            let g = tenferro_core_ops::vjp_present(&seeds, &[&leaf], false).unwrap();
            for (a, b) in got.iter().zip(y.iter().chain(g.iter().flatten())) {
                assert_close("symbolic", a, &tensor(b), 1e-12);
            }
        });
    }
}
