//! Eigenproblems: what matrix is read, derivatives that have been reported wrong elsewhere, multiplets, batches.

mod common;

use common::*;
use tenferro_core_ops::{Var, leaf, vjp_present};
use tenferro_linalg::ops::{
    eig, eigh, eigh_generalized, eigvals, eigvalsh, matrix_exp, matrix_power, qr, solve, trace,
};
use tenferro_tensor::{C64, DType, Tensor, TypedTensor, Value};

const DTYPES: [DType; 2] = [DType::F64, DType::C64];

fn hermitian(x: &Var) -> Var {
    (x + &x.adjoint()) * 0.5
}

fn row_major(shape: &[usize], data: &[f64]) -> Tensor {
    TypedTensor::<f64>::from_vec_row_major(shape, data.to_vec()).unwrap().into_tensor()
}

/// The gradient of `f` at `a`.
fn gradient(a: &Tensor, f: impl Fn(&Var) -> Var) -> Tensor {
    on_cpu(|| {
        let x = leaf(Value::new(a.duplicate().unwrap()));
        let y = f(&x);
        let g = vjp_present(&[(&y, y.like(1.0))], &[&x], false).unwrap();
        tensor(g[0].as_ref().expect("depends on x"))
    })
}

#[test]
fn eigenvalues_of_a_complex_hermitian_matrix_are_real() {
    let a = from_fn(DType::C64, &[2, 2], |i| match (i[0], i[1]) {
        (0, 0) => C64::new(2.0, 0.0),
        (1, 1) => C64::new(3.0, 0.0),
        (1, 0) => C64::new(1.0, 1.0),
        _ => C64::new(1.0, -1.0),
    });
    on_cpu(|| {
        let w = tensor(&eigvalsh(&now(&a)));
        assert_close("w", &w, &row_major(&[2], &[1.0, 4.0]), 1e-15);
    });
}

#[test]
fn only_the_lower_triangle_and_the_real_diagonal_are_read() {
    for dtype in DTYPES {
        let a = on_cpu(|| tensor(&hermitian(&now(&random(dtype, &[4, 4], 1)))));
        let other = random(dtype, &[4, 4], 2);
        on_cpu(|| {
            let (lower, upper) = (now(&a).tril(0), now(&other).triu(1));
            let (w, v) = eigh(&(lower + upper));
            let rebuilt = (&v * &w.expand_dims(&[0])).matmul(&v.adjoint());
            assert_close("A", &tensor(&rebuilt), &a, 1e-14);
        });
    }
}

#[test]
fn a_cotangent_is_hermitian() {
    // The reported matrix; the gradient of sum |V| by JAX and by differences.
    let a = row_major(
        &[5, 5],
        &[
            1.93865817, 0.35509264, 0.64405863, 1.3430815, 0.92342772, //
            0.35509264, 1.30340895, 0.90821576, 0.7199631, 1.49002679, //
            0.64405863, 0.90821576, 0.50616539, 0.97171981, 0.9621489, //
            1.3430815, 0.7199631, 0.97171981, 1.27540148, 1.44715998, //
            0.92342772, 1.49002679, 0.9621489, 1.44715998, 1.75984414,
        ],
    );
    let expected = row_major(
        &[5, 5],
        &[
            -0.331_127_163_781_179_8,
            0.327_432_427_089_985_27,
            -0.187_177_895_481_094_76,
            0.643_336_659_122_746_7,
            -0.308_481_036_808_759_93,
            0.327_432_427_089_985_27,
            0.574_588_936_022_137_9,
            -0.072_788_845_020_787_42,
            -0.081_582_802_785_220_86,
            -0.502_582_747_247_281_2,
            -0.187_177_895_481_094_76,
            -0.072_788_845_020_787_42,
            -0.481_911_933_986_194_14,
            0.293_758_805_097_189_05,
            0.196_327_920_899_628_58,
            0.643_336_659_122_746_7,
            -0.081_582_802_785_220_86,
            0.293_758_805_097_189_05,
            -0.412_659_550_124_998_6,
            -0.288_047_252_994_376_8,
            -0.308_481_036_808_759_93,
            -0.502_582_747_247_281_2,
            0.196_327_920_899_628_58,
            -0.288_047_252_994_376_8,
            0.651_109_711_870_235_4,
        ],
    );
    let g = gradient(&a, |x| eigh(x).1.abs().reduce_sum(None));
    assert_close("gradient", &g, &expected, 1e-6);
}

#[test]
fn gaps_of_one_unit_in_the_last_place_count_in_a_diagonal_matrix() {
    for (dtype, first) in [(DType::F32, 2f64.powi(24)), (DType::F64, 2f64.powi(53))] {
        let a = from_fn(dtype, &[3, 3], |i| {
            C64::new(if i[0] == i[1] { first + 2.0 * i[0] as f64 } else { 0.0 }, 0.0)
        });
        let at = |v: &Var, i: usize, j: usize| v.slice_axis(0, i, i + 1).slice_axis(1, j, j + 1);
        let g = gradient(&a, |x| {
            let v = eigh(x).1;
            (&at(&v, 0, 1) * &at(&v, 1, 1)).reduce_sum(None)
        });
        let expected = from_fn(dtype, &[3, 3], |i| C64::new(if i[0] + i[1] == 1 { 0.25 } else { 0.0 }, 0.0));
        assert_close("vectors", &g, &expected, 1e-6);
        let g = gradient(&a, |x| eigvalsh(x).slice_axis(0, 1, 2).reduce_sum(None));
        let expected = from_fn(dtype, &[3, 3], |i| C64::new((i == [1, 1]) as u8 as f64, 0.0));
        assert_close("values", &g, &expected, 0.0);
    }
}

#[test]
fn non_finite_elements_are_named() {
    for (bad, place) in [(f64::NAN, "[1, 0]"), (f64::INFINITY, "[1, 0]")] {
        let a = row_major(&[2, 2], &[1.0, bad, bad, 1.0]);
        on_cpu(|| {
            for (op, y) in [("eigh", eigh(&now(&a)).1), ("eigvalsh", eigvalsh(&now(&a)))] {
                let e = y.ok().unwrap_err();
                assert_eq!(e.op(), op);
                let e = e.to_string();
                assert!(e.contains("matrix: got element") && e.contains(place), "{e}");
            }
            let e = eigvals(&now(&a)).ok().unwrap_err().to_string();
            assert!(e.starts_with("eigvals: matrix: got element [1, 0] is not finite"), "{e}");
        });
    }
}

#[test]
fn the_trace_of_a_product_has_its_gradient_in_batches() {
    let a = random(DType::F64, &[2, 2, 2], 4);
    let g = gradient(&a, |x| eigvalsh(&x.matmul(&x.matrix_transpose())).reduce_sum(None));
    assert_close("gradient", &g, &moved(&a, &a, 1.0), 1e-13);
}

#[test]
fn derivatives_agree_with_differences() {
    for dtype in DTYPES {
        let f = |x: &[Var]| {
            let (w, v) = eigh(&hermitian(&x[0]));
            let weighted = &v * &(&w * &w).sin().expand_dims(&[0]);
            vec![weighted.matmul(&v.adjoint()), w]
        };
        check(&format!("eigh {dtype}"), &f, &[random(dtype, &[3, 3, 2], 11)], 2, 1e-6);
        let f = |x: &[Var]| <[Var; 2]>::from(eigh(&hermitian(&x[0]))).to_vec();
        check(&format!("vectors of eigh {dtype}"), &f, &[random(dtype, &[3, 3], 7)], 2, 1e-6);
        check(&format!("vectors of a batch {dtype}"), &f, &[random(dtype, &[3, 3, 2], 13)], 1, 1e-6);
        let f = |x: &[Var]| {
            let b = x[1].matmul(&x[1].adjoint());
            <[Var; 2]>::from(eigh_generalized(&hermitian(&x[0]), &b)).to_vec()
        };
        let pencil = [random(dtype, &[3, 3], 7), random(dtype, &[3, 3], 8)];
        check(&format!("vectors of eigh_generalized {dtype}"), &f, &pencil, 1, 1e-5);
        // Lengths, phases and all: the vectors of eig are functions of the matrix.
        let f = |x: &[Var]| <[Var; 2]>::from(eig(&x[0])).to_vec();
        check(&format!("eig {dtype}"), &f, &[random(dtype, &[3, 3], 7)], 2, 1e-6);
        // The order of the eigenvalues may change from one matrix to the next.
        let f = |x: &[Var]| vec![eigvals(&x[0]).sin().reduce_sum(None)];
        check(&format!("eigvals {dtype}"), &f, &[random(dtype, &[4, 4], 3)], 2, 1e-6);
    }
}

#[test]
fn invariant_losses_are_right_inside_multiplets() {
    // Two pairs of equal eigenvalues of a matrix that is not normal: sums over pairs and projectors on them.
    let f = |x: &[Var]| {
        let (w, v) = eig(&x[0]);
        let spectral = |c: &Var| {
            let scaled = &v * &c.expand_dims(&[0]);
            solve(&v.matrix_transpose(), &scaled.matrix_transpose()).matrix_transpose()
        };
        let positive = w.real().greater(&w.real().like(0.0)).select(&w.like(1.0), &w.like(0.0));
        vec![spectral(&positive), w.exp().reduce_sum(None)]
    };
    let a = on_cpu(|| {
        let x = now(&random(DType::F64, &[4, 4], 5));
        let d = now(&from_fn(DType::F64, &[4, 4], |i| {
            C64::new(if i[0] == i[1] { [2.0, 2.0, -1.0, -1.0][i[0]] } else { 0.0 }, 0.0)
        }));
        tensor(&solve(&x, &d.matmul(&x)))
    });
    // Sums over all eigenvalues do not depend on how a pair splits.
    check_steps("pairs", &f, &[a], 1, 1e-5, 1e-3);
}

#[test]
fn defective_matrices_have_factors_and_no_derivative() {
    let a = row_major(&[2, 2], &[1.0, 1.0, 0.0, 1.0]);
    on_cpu(|| {
        let x = leaf(Value::new(a));
        let (w, v) = eig(&x);
        assert_close("w", &tensor(&w.real()), &row_major(&[2], &[1.0, 1.0]), 0.0);
        let e = vjp_present(&[(&v, v.like(1.0))], &[&x], false).unwrap_err();
        assert!(e.to_string().contains("singular"), "{e}");
    });
    // Two Jordan blocks, of orders 2 and 3.
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        let tolerance = if dtype.real() == DType::F32 { 1e-5 } else { 1e-14 };
        let a = from_fn(dtype, &[5, 5], |i| {
            C64::new((i[0] == i[1] || (i[0] + 1 == i[1] && i[0] != 1)) as u8 as f64, 0.0)
        });
        on_cpu(|| {
            let (w, v) = eig(&now(&a));
            let av = now(&a).convert(v.dtype()).matmul(&v);
            assert_close("A V", &tensor(&av), &tensor(&(&v * &w.expand_dims(&[0]))), tolerance);
            let lengths = tensor(&(&v.conj() * &v).real().reduce_sum(Some(&[0])));
            assert_close(
                "lengths",
                &lengths,
                &from_fn(dtype.real(), &[5], |_| C64::new(1.0, 0.0)),
                tolerance,
            );
        });
    }
}

/// `Q J Q^T` with an orthogonal Q.
fn rotated(j: &Tensor, seed: u64) -> Tensor {
    let (j, x) = (now(j), now(&random(j.dtype(), &[j.shape()[0]; 2], seed)));
    on_cpu(|| {
        let q = qr(&x).0;
        tensor(&q.matmul(&j).matmul(&q.adjoint()))
    })
}

/// What the derivative of the vectors, and that of the eigenvalues, says.
fn differentiated(a: &Tensor) -> [Result<f64, String>; 2] {
    on_cpu(|| {
        let x = leaf(Value::new(a.duplicate().unwrap()));
        let (w, v) = eig(&x);
        [&v, &w].map(|y| match vjp_present(&[(y, y.like(1.0))], &[&x], false) {
            Ok(g) => Ok(largest(&tensor(g[0].as_ref().expect("depends on x")))),
            Err(e) => Err(e.to_string()),
        })
    })
}

#[test]
fn rotated_jordan_blocks_have_no_derivative() {
    let known = row_major(&[2, 2], &[0.5, 0.5, -0.5, 1.5]);
    for e in differentiated(&known) {
        let e = e.unwrap_err();
        assert!(e.contains("dependent to rounding") || e.contains("singular"), "{e}");
    }
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        for n in 2..=4 {
            for seed in 1..=10 {
                let block = from_fn(dtype, &[n, n], |i| {
                    C64::new((i[0] == i[1] || i[0] + 1 == i[1]) as u8 as f64, 0.0)
                });
                for e in differentiated(&rotated(&block, seed)) {
                    let e = e.expect_err(&format!("{dtype}, order {n}, seed {seed}"));
                    assert!(e.contains("dependent to rounding") || e.contains("singular"), "{e}");
                }
            }
        }
    }
}

#[test]
fn the_condition_of_eigenvalues_decides_whether_there_is_a_derivative() {
    // [1, 1; 0, 1 + d] has the unit vectors (1, 0) and (1, d) / sqrt(1 + d^2): both conditions are
    // sqrt(1 + d^2) / d.
    for (dtype, eps) in [(DType::F32, f32::EPSILON as f64), (DType::C64, f64::EPSILON)] {
        let bound = 0.1 / eps.sqrt();
        for (factor, sound) in [(0.01, true), (0.5, true), (0.9, true), (1.1, false), (2.0, false)] {
            let d = 1.0 / (factor * bound);
            let a = from_fn(dtype, &[2, 2], |i| match (i[0], i[1]) {
                (1, 0) => C64::new(0.0, 0.0),
                (1, 1) => C64::new(1.0 + d, 0.0),
                _ => C64::new(1.0, 0.0),
            });
            for y in differentiated(&a) {
                assert_eq!(y.is_ok(), sound, "{dtype} {factor}: {y:?}");
                if let Err(e) = y {
                    assert!(
                        e.starts_with("eig: the eigenvectors are dependent to rounding: got condition"),
                        "{e}"
                    );
                }
            }
        }
    }
    // Vectors of normal matrices are independent however many there are.
    let n = 60;
    let shift = from_fn(DType::F32, &[n, n], |i| C64::new(((i[0] + 1) % n == i[1]) as u8 as f64, 0.0));
    assert!(differentiated(&shift).iter().all(Result::is_ok));
    // Of a batch, the matrix is named.
    let a = from_fn(DType::F64, &[2, 2, 3], |i| match (i[0], i[1], i[2]) {
        (i, j, 1) => C64::new([[1.0, 1.0], [0.0, 1.0 + 1e-9]][i][j], 0.0),
        (i, j, _) => C64::new([[1.0, 0.5], [0.25, -1.0]][i][j], 0.0),
    });
    let e = differentiated(&a)[0].clone().unwrap_err();
    assert!(e.contains("of matrix [1]"), "{e}");
}

#[test]
fn extents_may_be_known_only_when_the_program_runs() {
    let a = random(DType::F64, &[3, 3], 9);
    let x = symbolic_like(&a, "n");
    let square = x.matmul(&x.matrix_transpose());
    let outputs = vec![eigvalsh(&square), eigvals(&square).real().reduce_sum(Some(&[0]))];
    for n in [1, 2, 4] {
        let a = random(DType::F64, &[n, n], 9);
        let got = run(&outputs, &[(x.clone(), a.duplicate().unwrap())]).unwrap();
        on_cpu(|| {
            let square = now(&a).matmul(&now(&a).matrix_transpose());
            assert_close("w", &got[0], &tensor(&eigvalsh(&square)), 1e-14);
            assert_close("sum", &got[1], &tensor(&eigvalsh(&square).reduce_sum(None)), 1e-13);
        });
    }
}

#[test]
fn a_pencil_is_of_square_matrices_of_one_order() {
    let of = |shape: [usize; 2]| now(&Tensor::full(DType::F64, shape, C64::new(1.0, 0.0)).unwrap());
    for (a, b) in [([1, 3], [3, 3]), ([3, 3], [3, 1]), ([2, 2], [3, 3])] {
        let e = on_cpu(|| eigh_generalized(&of(a), &of(b)).0.ok().err());
        assert!(e.is_some_and(|e| e.to_string().contains("eigh_generalized")), "{a:?} {b:?}");
    }
}

#[test]
fn a_pencil_is_that_of_the_lower_triangles() {
    for dtype in [DType::F64, DType::C64] {
        let whole = |seed| {
            on_cpu(|| {
                let a = now(&random(dtype, &[3, 3], seed));
                tensor(&(&a + &a.adjoint()))
            })
        };
        let (a, b) =
            (whole(1), on_cpu(|| tensor(&(now(&whole(2)) + now(&Tensor::eye(dtype, 3).unwrap()) * 9.0))));
        let below = |x: &Tensor| {
            let mut x = numbers(x).into_iter();
            from_fn(dtype, &[3, 3], |i| {
                let x = x.next().unwrap();
                if i[0] < i[1] { C64::new(f64::NAN, 0.0) } else { x }
            })
        };
        let invariants = |x: &[Var]| {
            let (w, v) = eigh_generalized(&x[0], &x[1]);
            [v.matmul(&v.adjoint()), w]
        };
        on_cpu(|| {
            let want = invariants(&[now(&a), now(&b)]);
            let got = invariants(&[now(&below(&a)), now(&below(&b))]);
            assert_close("V V^H", &tensor(&got[0]), &tensor(&want[0]), 1e-13);
            assert_close("w", &tensor(&got[1]), &tensor(&want[1]), 1e-13);
        });
    }
}

#[test]
fn a_pencil_of_the_largest_numbers_has_eigenvalues() {
    for dtype in [DType::F64, DType::C64] {
        let a = now(&from_fn(dtype, &[1, 1], |_| C64::new(1e308, 0.0)));
        let w = on_cpu(|| tensor(&eigh_generalized(&a, &a).0));
        assert!((w.item::<f64>().unwrap() - 1.0).abs() < 1e-12, "{w}");
    }
}

/// The alternatives that the documentation names, where the eigenvalues are one multiplet.
#[test]
fn traces_have_the_second_derivatives_that_eigenvalues_lack() {
    let a = from_fn(DType::F64, &[2, 2], |i| C64::new(if i[0] == i[1] { 2.0 } else { 0.0 }, 0.0));
    check("tr A^2", &|x: &[Var]| vec![trace(&matrix_power(&x[0], 2))], &[a.duplicate().unwrap()], 2, 1e-6);
    check("tr exp A", &|x: &[Var]| vec![trace(&matrix_exp(&x[0]))], &[a], 2, 1e-6);
}
