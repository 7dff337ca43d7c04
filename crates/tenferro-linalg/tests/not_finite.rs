//! What becomes of an element that is NaN or infinite where it is no error: it is seen in the results.

mod common;

use common::{from_fn, now, numbers, on_cpu, random, tensor};
use tenferro_core_ops::Var;
use tenferro_linalg::{MatrixNorm, System, Tolerance, Triangular, VectorNorm, ops::*};
use tenferro_tensor::{DType, Tensor};

type Call = fn(&[Var]) -> Vec<Var>;

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C32, DType::C64];
/// Orders of small kernels, of those of vectors, and of blocks.
const ORDERS: [usize; 6] = [1, 2, 3, 8, 20, 70];
const NUMBERS: [f64; 2] = [f64::NAN, f64::INFINITY];

/// Far from singular, and so are its triangles.
fn matrix(dtype: DType, n: usize, seed: u64) -> Tensor {
    let x = numbers(&random(dtype, &[n, n], seed));
    from_fn(dtype, &[n, n], |i| x[i[0] + n * i[1]] + if i[0] == i[1] { n as f64 + 2.0 } else { 0.0 })
}

fn order(n: usize) -> Tensor {
    Tensor::from_vec_col_major([n], (0..n as i64).rev().collect()).unwrap()
}

/// `t` with element `at` of its memory replaced.
fn with(t: &Tensor, at: usize, z: f64) -> Tensor {
    let mut left = numbers(t).into_iter().enumerate().map(|(i, x)| if i == at { z.into() } else { x });
    from_fn(t.dtype(), t.shape(), |_| left.next().expect("as many"))
}

/// Operands with `z` in place of element `at` of operand `which`.
fn changed(x: &[Tensor], which: usize, at: usize, z: f64) -> Vec<Tensor> {
    let of = |(i, t): (usize, &Tensor)| if i == which { with(t, at, z) } else { t.duplicate().unwrap() };
    x.iter().enumerate().map(of).collect()
}

fn results(call: Call, x: &[Tensor]) -> Result<Vec<Tensor>, String> {
    on_cpu(|| {
        let y = call(&x.iter().map(now).collect::<Vec<_>>());
        match y.iter().find_map(|y| y.ok().err()) {
            Some(e) => Err(e.to_string()),
            None => Ok(y.iter().map(tensor).collect()),
        }
    })
}

fn finite(y: &[Tensor]) -> bool {
    y.iter().all(|t| numbers(t).iter().all(|z| z.re.is_finite() && z.im.is_finite()))
}

/// Checks that the results are finite, and are not with NaN, or infinity if `infinite`, at any of these places.
fn seen(what: &str, call: Call, x: &[Tensor], which: usize, places: &[usize], infinite: bool) {
    assert!(finite(&results(call, x).unwrap_or_else(|e| panic!("{what}: {e}"))), "{what}");
    for &at in places {
        for z in NUMBERS.into_iter().take(1 + usize::from(infinite)) {
            let y = results(call, &changed(x, which, at, z)).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(!finite(&y), "{what}: {z} at {at} of operand {which} is lost");
        }
    }
}

fn each(f: impl Fn(DType, usize)) {
    DTYPES.into_iter().for_each(|dtype| ORDERS.into_iter().for_each(|n| f(dtype, n)));
}

#[test]
fn solutions_show_the_right_hand_side_and_given_factors() {
    // Which of them read A as factors.
    let calls: [(&str, bool, Call); 8] = [
        ("solve", false, |x| vec![solve(&x[0], &x[1])]),
        ("solve_with", false, |x| vec![solve_with(&x[0], &x[1], System::right().transposed())]),
        ("lstsq", false, |x| {
            let (y, squares, _, _) = lstsq(&x[0], &x[1], Tolerance::default());
            vec![y, squares]
        }),
        ("householder_apply", false, |x| {
            let (packed, tau) = householder(&x[0]);
            vec![householder_apply(&packed, &tau, &x[1], System::left().adjoint())]
        }),
        ("lu_solve", true, |x| vec![lu_solve(&x[0], &x[2], &x[1], System::left())]),
        ("cholesky_solve", true, |x| vec![cholesky_solve(&x[0], &x[1], System::left())]),
        ("lu_full_pivot_solve", true, |x| {
            vec![lu_full_pivot_solve(&x[0], &x[0], &x[2], &x[2], &x[1], System::right())]
        }),
        ("triangular_solve", true, |x| vec![triangular_solve(&x[0], &x[1], Triangular::lower())]),
    ];
    each(|dtype, n| {
        let x = [matrix(dtype, n, 1), random(dtype, &[n, n], 2), order(n)];
        for (name, factors, call) in calls {
            let what = format!("{name} {dtype} {n}");
            seen(&what, call, &x, 1, &[0, n - 1, n * n / 2, n * n - 1], true);
            if factors {
                // On the diagonal and below; an infinite pivot makes zeros.
                seen(&what, call, &x, 0, &[0, n - 1, (n / 2) * n + n - 1, n * n - 1], false);
            } else if name != "householder_apply" {
                for z in NUMBERS {
                    let e = results(call, &changed(&x, 0, n - 1, z)).expect_err(&what);
                    assert!(e.contains("not finite"), "{what}: {e}");
                }
            }
        }
    });
}

#[test]
fn products_of_reflectors_show_reflectors() {
    let product: Call = |x| vec![householder_product(&x[0], &x[1])];
    let applied: Call = |x| vec![householder_apply(&x[0], &x[1], &x[0], System::left())];
    let appended: Call = |x| {
        let (packed, tau) = householder_append(&x[0], &x[1], &x[2]);
        vec![packed, tau]
    };
    each(|dtype, n| {
        let m = n + 1;
        let x = [random(dtype, &[m, n], 1), random(dtype, &[n], 2), random(dtype, &[m, 2], 3)];
        for (name, call) in [("householder_product", product), ("householder_apply", applied)] {
            let what = format!("{name} {dtype} {n}");
            seen(&what, call, &x, 0, &[m - 1, m * n - 1], true);
            seen(&what, call, &x, 1, &[0, n - 1], true);
        }
        // New reflectors are made of what is not finite, or there are none.
        for (which, at, z) in [(0, m - 1), (1, 0), (2, 0), (2, 2 * m - 1)]
            .into_iter()
            .flat_map(|(which, at)| NUMBERS.map(|z| (which, at, z)))
        {
            let what = format!("householder_append {dtype} {n}, {z} at {at} of operand {which}");
            let e = results(appended, &changed(&x, which, at, z)).expect_err(&what);
            assert!(e.contains("not finite") && e.contains("householder"), "{what}: {e}");
        }
        let whole = [random(dtype, &[n, n], 1), random(dtype, &[n], 2), random(dtype, &[n, 2], 3)];
        let what = format!("householder_append {dtype} {n} without reflectors");
        seen(&what, appended, &whole, 2, &[0, n - 1, 2 * n - 1], true);
    });
}

#[test]
fn products_and_traces_show_every_element_that_they_read() {
    let calls: [(&str, Call); 4] = [
        ("matrix_power 1", |x| vec![matrix_power(&x[0], 1)]),
        ("matrix_power 2", |x| vec![matrix_power(&x[0], 2)]),
        ("matrix_power 5", |x| vec![matrix_power(&x[0], 5)]),
        ("kron", |x| vec![kron(&x[0], &x[1])]),
    ];
    for (dtype, n) in DTYPES.into_iter().flat_map(|dtype| [1, 2, 3, 8].map(|n| (dtype, n))) {
        let x = [random(dtype, &[n, n], 1), random(dtype, &[2, 3], 2)];
        for (name, call) in calls {
            seen(&format!("{name} {dtype} {n}"), call, &x, 0, &[0, n - 1, n * n - 1], true);
        }
        seen(&format!("kron {dtype} {n}"), calls[3].1, &x, 1, &[0, 5], true);
        let diagonal: Vec<usize> = (0..n).map(|i| i * (n + 1)).collect();
        seen(&format!("trace {dtype} {n}"), |x| vec![trace(&x[0])], &x, 0, &diagonal, true);
        let x = changed(&x, 0, n - 1, f64::NAN);
        assert!(n == 1 || finite(&results(|x| vec![trace(&x[0])], &x).unwrap()), "trace {dtype} {n}");
        assert!(finite(&results(|x| vec![matrix_power(&x[0], 0)], &x).unwrap()), "A^0 {dtype} {n}");
        let e = results(|x| vec![matrix_power(&x[0], -1)], &x).expect_err("an inverse");
        assert!(e.contains("not finite"), "{e}");
    }
}

#[test]
fn norms_are_those_of_nan_and_infinities() {
    for (dtype, n) in DTYPES.into_iter().flat_map(|dtype| [1, 2, 7, 40].map(|n| (dtype, n))) {
        let x = random(dtype, &[n, n], 1);
        for (at, z) in [0, n / 2, n * n - 1].into_iter().flat_map(|at| NUMBERS.map(|z| (at, z))) {
            let x = with(&x, at, z);
            let of = |norm: &dyn Fn(&Var) -> Var| numbers(&on_cpu(|| tensor(&norm(&now(&x)))))[0].re;
            for p in [0.5, 1.0, 2.0, 3.0, 4.5, f64::INFINITY, -1.0, -2.5, f64::NEG_INFINITY] {
                let got = of(&|x| vector_norm(x, VectorNorm::from(p)));
                let what = format!("{p}-norm {dtype} {n}, {z} at {at}: {got}");
                if z.is_nan() {
                    assert!(got.is_nan(), "{what}");
                } else {
                    // Of the smallest moduli, one of many that is infinite is none.
                    assert_eq!(got == f64::INFINITY, p > 0.0 || n == 1, "{what}");
                }
            }
            let count = of(&|x| vector_norm(x, VectorNorm::from(0.0)));
            assert_eq!(count, (n * n) as f64, "all but zeros count, {dtype} {n}, {z}");
            for norm in [MatrixNorm::Frobenius, MatrixNorm::One, MatrixNorm::Infinity] {
                let got = of(&|x| matrix_norm(x, norm));
                let right = if z.is_nan() { got.is_nan() } else { got == f64::INFINITY };
                assert!(right, "{norm:?} {dtype} {n}, {z} at {at}: {got}");
            }
            for norm in [MatrixNorm::MinusOne, MatrixNorm::MinusInfinity] {
                let got = of(&|x| matrix_norm(x, norm));
                let right = if z.is_nan() { got.is_nan() } else { (got == f64::INFINITY) == (n == 1) };
                assert!(right, "{norm:?} {dtype} {n}, {z} at {at}: {got}");
            }
            for norm in [MatrixNorm::Two, MatrixNorm::MinusTwo, MatrixNorm::Nuclear] {
                let e = on_cpu(|| matrix_norm(&now(&x), norm).ok().unwrap_err().to_string());
                assert!(e.contains("not finite"), "{norm:?}: {e}");
            }
        }
    }
}
