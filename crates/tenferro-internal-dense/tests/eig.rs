//! Residuals in the units of LAPACK's test programs (a backward stable routine stays below 30), defective matrices, and
//! eigenvalues known in closed form.

#![cfg(feature = "faer")]

mod common;

use common::{Rng, Sample, matrix, norm, spectrum, strided, unitary};
use num_complex::Complex;
use tenferro_internal_dense::{DenseError, Eig, Par};

type C64 = Complex<f64>;

fn decompose<T: Sample<Complex: Sample>>(label: &str, n: usize, a: &[T]) -> (Vec<C64>, Vec<C64>, Vec<i64>) {
    let nan = T::Complex::of(f64::NAN, f64::NAN);
    let (mut w, mut v, mut rows) = (vec![nan; n], vec![nan; n * n], vec![-1; n]);
    // SAFETY: the buffers have the documented sizes.
    unsafe {
        let (w, v) = (w.as_mut_ptr(), v.as_mut_ptr());
        let got = T::eig(n, strided(a.as_ptr(), n), w, v, rows.as_mut_ptr(), Par::Seq);
        assert_eq!(got, Ok(()), "{label}");
    };
    (w.into_iter().map(|x| x.wide()).collect(), v.into_iter().map(|x| x.wide()).collect(), rows)
}

/// Checks what is promised of the factors of `scale` times `a`, and gives the eigenvalues of `a`.
fn check<T: Sample<Complex: Sample>>(name: &str, n: usize, a: &[C64], scale: f64) -> Vec<C64> {
    let given: Vec<T> = a.iter().map(|x| T::of(x.re * scale, x.im * scale)).collect();
    let label = format!("{name} {n} x {n} scaled by {scale:e}, {}", std::any::type_name::<T>());
    let (w, v, rows) = decompose(&label, n, &given);
    let w: Vec<C64> = w.into_iter().map(|x| x / scale).collect();
    let a: Vec<C64> = given.iter().map(|x| x.wide() / scale).collect();
    let size = norm(a.iter().copied());
    let unit = n as f64 * T::eps();
    for j in 0..n {
        let v = &v[j * n..][..n];
        let image = |i: usize| (0..n).map(|k| a[i + k * n] * v[k]).sum::<C64>();
        let off = norm((0..n).map(|i| image(i) - v[i] * w[j]));
        assert!(off <= 30.0 * unit * size, "{label}: residual {:.1} of vector {j}", off / size / unit);
        assert!(
            (norm(v.iter().copied()) - 1.0).abs() <= 10.0 * unit,
            "{label}: vector {j} is not of length 1"
        );
        let row = rows[j] as usize;
        let largest = v.iter().fold(0.0, |m: f64, x| m.max(x.norm()));
        assert!(
            v[row].im == 0.0 && v[row].re >= largest * (1.0 - 10.0 * T::eps()),
            "{label}: phase of vector {j}"
        );
    }
    // Far from 1, imaginary parts underflow.
    if !T::COMPLEX && scale == 1.0 {
        let mut j = 0;
        while j < n {
            if w[j].im == 0.0 {
                assert!(v[j * n..][..n].iter().all(|x| x.im == 0.0), "{label}: a real eigenvalue");
                j += 1;
                continue;
            }
            assert!(w[j].im > 0.0 && w[j + 1] == w[j].conj(), "{label}: {w:?}");
            assert!((0..n).all(|i| v[i + (j + 1) * n] == v[i + j * n].conj()), "{label}: a pair");
            j += 2;
        }
    }
    w
}

fn families<T: Sample<Complex: Sample>>(n: usize, far: [f64; 2]) {
    let mut rng = Rng(n as u64);
    for scale in [1.0, far[0], far[1]] {
        for mode in 1..=6 {
            // A triangular matrix with this spectrum, turned.
            let d = spectrum(mode, n, 1.0 / T::eps(), &mut rng);
            let q = unitary(n, T::COMPLEX, &mut rng);
            let above: Vec<f64> = (0..n * n).map(|_| rng.next()).collect();
            let t = |i: usize, j: usize| match i.cmp(&j) {
                std::cmp::Ordering::Less => above[i + j * n],
                std::cmp::Ordering::Equal => d[i],
                std::cmp::Ordering::Greater => 0.0,
            };
            let qt: Vec<C64> =
                (0..n * n).map(|at| (0..n).map(|k| q[at % n + k * n] * t(k, at / n)).sum()).collect();
            let element = |i: usize, j: usize| (0..n).map(|k| qt[i + k * n] * q[j + k * n].conj()).sum();
            let a: Vec<C64> = (0..n * n).map(|at| element(at % n, at / n)).collect();
            check::<T>(&format!("mode {mode}"), n, &a, scale);
        }
        let random: Vec<C64> = (0..n * n).map(|_| C64::new(rng.next(), rng.next())).collect();
        check::<T>("random", n, &random, scale);
        let of = |f: &dyn Fn(usize, usize) -> f64| -> Vec<C64> {
            (0..n * n).map(|at| f(at % n, at / n).into()).collect()
        };
        check::<T>("zero", n, &of(&|_, _| 0.0), scale);
        check::<T>("identity", n, &of(&|i, j| f64::from(i == j)), scale);
        check::<T>("ones", n, &of(&|_, _| 1.0), scale);
        check::<T>("upper Jordan", n, &of(&|i, j| f64::from(i == j || i + 1 == j)), scale);
        check::<T>("lower Jordan", n, &of(&|i, j| f64::from(i == j || i == j + 1)), scale);
        check::<T>("nilpotent", n, &of(&|i, j| f64::from(i + 1 == j)), scale);
        check::<T>("cycle", n, &of(&|i, j| f64::from((i + 1) % n == j)), scale);
        check::<T>(
            "two Jordan blocks",
            n,
            &of(&|i, j| f64::from(i == j || (i + 1 == j && j != n / 2))),
            scale,
        );
        check::<T>("triangular", n, &of(&|i, j| if i <= j { 1.0 + (j - i) as f64 } else { 0.0 }), scale);
        let quarter = |i: usize, j: usize| if i / 2 == j / 2 { j as f64 - i as f64 } else { 0.0 };
        check::<T>("equal rotations", n, &of(&quarter), scale);
        let rows: Vec<f64> = (0..n).map(|i| 10f64.powf(-12.0 * i as f64 / n as f64)).collect();
        let graded = |i: usize, j: usize| rows[i] * (1.0 + ((3 * i + 5 * j) % 7) as f64);
        check::<T>("graded", n, &of(&graded), scale);
        check::<T>("graded up", n, &of(&|i, j| graded(n - 1 - i, j)), scale);
    }
}

#[test]
fn vectors_have_small_residuals() {
    for n in [1, 2, 3, 4, 5, 8, 11, 32, 80] {
        families::<f32>(n, [1e-30, 1e30]);
        families::<f64>(n, [1e-290, 1e290]);
        families::<Complex<f32>>(n, [1e-30, 1e30]);
        families::<Complex<f64>>(n, [1e-290, 1e290]);
    }
}

#[test]
fn two_by_two_is_accurate_to_the_last_bits() {
    // a, b, c, d in rows, and the eigenvalues at 40 digits.
    let cases = [
        ([1.0, 2.0, 3.0, 4.0], [(-0.372_281_323_269_014_3, 0.0), (5.372_281_323_269_014, 0.0)]),
        ([1.0, 1e8, 1e-8, 1.0], [(2.0, 0.0), (0.0, 0.0)]),
        ([1.0, -2.0, 3.0, 1.0], [(1.0, 6f64.sqrt()), (1.0, -(6f64.sqrt()))]),
        ([1e20, 1.0, 1.0, 1e-10], [(1e20, 0.0), (1e-10 - 1e-20, 0.0)]),
        ([2.0, 1.0, 0.0, 2.0], [(2.0, 0.0), (2.0, 0.0)]),
    ];
    for ([a, b, c, d], expected) in cases {
        let (w, _, _) = decompose("2 x 2", 2, &[a, c, b, d]);
        for (&(re, im), w) in expected.iter().zip(&w) {
            let e = C64::new(re, im);
            assert!((w - e).norm() <= 5e-16 * e.norm() + 1e-24, "{a} {b} {c} {d}: got {w}, expected {e}");
        }
    }
}

#[test]
fn eigenvalues_of_clement_are_integers() {
    for n in [2, 5, 12, 20] {
        let a: Vec<C64> = (0..n * n)
            .map(|at| match (at % n, at / n) {
                (i, j) if i + 1 == j => ((n - j) as f64).into(),
                (i, j) if i == j + 1 => (i as f64).into(),
                _ => 0.0.into(),
            })
            .collect();
        let mut w: Vec<f64> = check::<f64>("Clement", n, &a, 1.0).iter().map(|w| w.re).collect();
        w.sort_by(f64::total_cmp);
        for (k, w) in w.iter().enumerate() {
            let expected = 2.0 * k as f64 - (n - 1) as f64;
            assert!((w - expected).abs() <= 1e-8, "{n}: {w} {expected}");
        }
    }
}

#[test]
fn the_first_non_finite_element_is_named() {
    let mut a: Vec<f64> = matrix(3, 3, |_, _| (1.0, 0.0));
    (a[3], a[5]) = (f64::NAN, f64::INFINITY);
    let zero = C64::new(0.0, 0.0);
    let (mut w, mut v, mut rows) = ([zero; 3], [zero; 9], [0; 3]);
    // SAFETY: the buffers have the documented sizes.
    let got = unsafe {
        f64::eig(3, strided(a.as_ptr(), 3), w.as_mut_ptr(), v.as_mut_ptr(), rows.as_mut_ptr(), Par::Seq)
    };
    assert_eq!(got, Err(DenseError::NonFinite { row: 0, col: 1 }));
}

#[test]
fn an_empty_matrix_has_no_eigenvalues() {
    assert_eq!(decompose::<f64>("empty", 0, &[]), (vec![], vec![], vec![]));
}

#[test]
fn elements_whose_product_underflows_leave_independent_vectors() {
    let (w, v, _) = decompose("underflow", 2, &[1.0, 1e-300, 1e-300, 1.0]);
    assert_eq!(w, [C64::from(1.0); 2]);
    let determinant = v[0] * v[3] - v[1] * v[2];
    assert!(determinant.norm() > 0.5, "{v:?}");
}

/// Column-major integers.
fn integers(n: usize, rows: &[i32]) -> Vec<C64> {
    (0..n * n).map(|at| f64::from(rows[at % n * n + at / n]).into()).collect()
}

#[test]
fn vectors_of_defective_matrices_do_not_vanish() {
    // Substitution in the Schur form gives a zero vector for one of each.
    let a = integers(4, &[0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 0]);
    let b = integers(3, &[1, -1, 0, 1, -1, -1, 0, 0, -1]);
    for (n, a) in [(4, a), (3, b)] {
        check::<f32>("defective", n, &a, 1.0);
        check::<f64>("defective", n, &a, 1.0);
        check::<Complex<f32>>("defective", n, &a, 1.0);
        check::<Complex<f64>>("defective", n, &a, 1.0);
    }
    let mut rng = Rng(3);
    for n in [3, 5, 8] {
        for _ in 0..300 {
            let element = |at: usize, x: f64| C64::from(f64::from(at.is_multiple_of(n + 1)) + 1e-15 * x);
            let a: Vec<C64> = (0..n * n).map(|at| element(at, rng.next())).collect();
            check::<f64>("nearly the identity", n, &a, 1.0);
        }
    }
}

/// Matrices of numbers from 1e-160 to 1e150: eigenvalues of any kind beside each other.
#[test]
fn residuals_of_conjugate_pairs_do_not_hide_each_other() {
    let e = f64::EPSILON;
    let (h, t) = (1e150, 1e-160);
    let a = [
        -1.0, e, e, 1.0, 3.0, 0.0, 0.0, 3.0, t, e, 3.0, 1.0, -1.0, 1.0, -1.0, 1.0, 3.0, e, 1.0, h, e, e, 0.0,
        0.0, h, t, h, 0.0, 0.0, 3.0, 1.0, h, 1.0, 1.0, -1.0, 1.0,
    ];
    check::<f64>("far apart", 6, &a.map(C64::from), 1.0);
    let mut rng = Rng(11);
    let values = [0.0, 1.0, -1.0, 3.0, e, t, h, -h];
    for n in [3, 4, 6, 8] {
        for _ in 0..200 {
            let a: Vec<C64> =
                (0..n * n).map(|_| values[((rng.next() + 1.0) * 4.0) as usize].into()).collect();
            check::<f64>("far apart", n, &a, 1.0);
        }
    }
}

#[test]
fn graded_matrices_converge() {
    for (n, step) in [(20, 7), (12, 7), (20, 3), (20, 1)] {
        let a: Vec<C64> =
            (0..n * n).map(|at| 10f64.powi(-((at % n + at / n) as i32) * step).into()).collect();
        check::<f64>("graded", n, &a, 1.0);
        check::<Complex<f64>>("graded", n, &a, 1.0);
        check::<Complex<f32>>("graded", n, &a, 1.0);
    }
}
