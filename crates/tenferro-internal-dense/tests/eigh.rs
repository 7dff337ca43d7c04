//! Residuals in the units of LAPACK's test programs (a backward stable routine stays below 30) on the spectra of its
//! matrix generator, and eigenvalues known in closed form.

#![cfg(feature = "faer")]

mod common;

use common::{Rng, Sample, matrix, norm, spectrum, strided, unitary};
use num_complex::Complex;
use std::f64::consts::SQRT_2;
use tenferro_internal_dense::{DenseError, Eigh, Par};

type C64 = Complex<f64>;

fn decompose<T: Sample>(n: usize, a: &[T]) -> (Vec<T::Real>, Vec<T>) {
    let nan = T::of(f64::NAN, f64::NAN);
    let (mut w, mut v) = (vec![nan.re(); n], vec![nan; n * n]);
    // SAFETY: the buffers have the documented sizes.
    unsafe { T::eigh(n, strided(a.as_ptr(), n), w.as_mut_ptr(), v.as_mut_ptr(), Par::Seq).unwrap() };
    (w, v)
}

/// Residual and departure from a unitary matrix, in units of n eps. The elements are `scale` times those of `a`.
fn check<T: Sample>(name: &str, n: usize, a: &[C64], scale: f64) -> Vec<f64>
where
    T::Real: Sample,
{
    let given: Vec<T> = a.iter().map(|x| T::of(x.re * scale, x.im * scale)).collect();
    // Nothing above the diagonal is read, nor imaginary parts on it.
    let hidden: Vec<T> = (0..n * n)
        .map(|at| match (at % n).cmp(&(at / n)) {
            std::cmp::Ordering::Less => T::of(f64::NAN, f64::NAN),
            std::cmp::Ordering::Equal => T::of(given[at].wide().re, 7.0),
            std::cmp::Ordering::Greater => given[at],
        })
        .collect();
    let label = format!("{name} {n} x {n} scaled by {scale:e}, {}", std::any::type_name::<T>());
    let (w, v) = decompose(n, &hidden);
    let w: Vec<f64> = w.into_iter().map(|x| x.wide().re / scale).collect();
    assert!(w.windows(2).all(|w| w[0] <= w[1]), "{label}: {w:?}");
    let v: Vec<C64> = v.into_iter().map(T::wide).collect();
    let a: Vec<C64> = given.iter().map(|x| x.wide() / scale).collect();
    let size = norm(a.iter().copied());
    let unit = n as f64 * T::eps();
    let element = |i: usize, j: usize| (0..n).map(|k| a[i + k * n] * v[k + j * n]).sum::<C64>();
    let residual = norm((0..n * n).map(|at| element(at % n, at / n) - v[at] * w[at / n]));
    assert!(residual <= 30.0 * unit * size, "{label}: residual {:.1}", residual / size / unit);
    let inner = |i: usize, j: usize| (0..n).map(|k| v[k + i * n].conj() * v[k + j * n]).sum::<C64>();
    let off = norm((0..n * n).map(|at| inner(at % n, at / n) - f64::from(at % n == at / n)));
    assert!(off <= 30.0 * unit, "{label}: not unitary by {:.1}", off / unit);
    w
}

fn families<T: Sample>(n: usize, far: [f64; 2])
where
    T::Real: Sample,
{
    let mut rng = Rng(n as u64);
    let complex = T::COMPLEX;
    for scale in [1.0, far[0], far[1]] {
        for mode in 1..=6 {
            let condition = 1.0 / T::eps();
            let d = spectrum(mode, n, condition, &mut rng);
            let q = unitary(n, complex, &mut rng);
            let element =
                |i: usize, j: usize| (0..n).map(|k| q[i + k * n] * d[k] * q[j + k * n].conj()).sum();
            let a: Vec<C64> = (0..n * n).map(|at| element(at % n, at / n)).collect();
            let w = check::<T>(&format!("mode {mode}"), n, &a, scale);
            let mut d = d;
            d.sort_by(f64::total_cmp);
            let largest = d.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            for (w, d) in w.iter().zip(&d) {
                let off = (w - d).abs() / largest / n as f64 / T::eps();
                assert!(off <= 30.0, "mode {mode} {n}: got {w}, expected {d}");
            }
        }
        let of = |f: &dyn Fn(usize, usize) -> f64| -> Vec<C64> {
            (0..n * n).map(|at| f(at % n, at / n).into()).collect()
        };
        check::<T>("zero", n, &of(&|_, _| 0.0), scale);
        check::<T>("identity", n, &of(&|i, j| f64::from(i == j)), scale);
        check::<T>("diagonal", n, &of(&|i, j| f64::from(i == j) * (i as f64 - 1.5)), scale);
        check::<T>("ones", n, &of(&|_, _| 1.0), scale);
        check::<T>(
            "Wilkinson",
            n,
            &of(&|i, j| match i.abs_diff(j) {
                0 => (i as f64 - (n - 1) as f64 / 2.0).abs(),
                1 => 1.0,
                _ => 0.0,
            }),
            scale,
        );
        check::<T>(
            "glued",
            n,
            &of(&|i, j| match i.abs_diff(j) {
                0 => 1.0 + (i % 3) as f64,
                1 if j.min(i) % 3 == 2 => T::eps(),
                1 => 1.0,
                _ => 0.0,
            }),
            scale,
        );
        let grade = |i: usize| 10f64.powf(-12.0 * i as f64 / n as f64);
        check::<T>("graded down", n, &of(&|i, j| grade(i) * grade(j) / (1 + i + j) as f64), scale);
        check::<T>(
            "graded up",
            n,
            &of(&|i, j| grade(n - 1 - i) * grade(n - 1 - j) / (1 + i + j) as f64),
            scale,
        );
        check::<T>("arrow", n, &of(&|i, j| if i == j { 1.0 } else { f64::from(i.min(j) == 0) }), scale);
    }
}

#[test]
fn factors_are_backward_stable_on_the_spectra_of_the_test_programs() {
    for n in [1, 2, 3, 4, 5, 8, 11, 32, 70] {
        families::<f32>(n, [1e-33, 1e33]);
        families::<f64>(n, [1e-300, 1e300]);
        families::<Complex<f32>>(n, [1e-33, 1e33]);
        families::<Complex<f64>>(n, [1e-300, 1e300]);
    }
}

#[test]
fn divide_and_conquer_is_checked() {
    let n = 150;
    let of = |f: &dyn Fn(usize, usize) -> f64| -> Vec<C64> {
        (0..n * n).map(|at| f(at % n, at / n).into()).collect()
    };
    check::<f64>("ones", n, &of(&|_, _| 1.0), 1.0);
    check::<f32>("ones", n, &of(&|_, _| 1.0), 1.0);
    check::<Complex<f64>>("zero", n, &of(&|_, _| 0.0), 1.0);
    check::<f64>("identity", n, &of(&|i, j| f64::from(i == j)), 1.0);
    check::<Complex<f32>>("Pei", n, &of(&|i, j| 1.0 + f64::from(i == j)), 1e30);
}

/// Eigenvalues known in closed form.
#[test]
fn eigenvalues_are_those_of_matrices_with_known_ones() {
    for n in [2, 3, 7, 8, 16, 31, 64, 100] {
        // The symmetric form of Clement's matrix: n - 1, n - 3, .., 1 - n.
        let clement: Vec<C64> = (0..n * n)
            .map(|at| {
                let (i, j): (usize, usize) = (at % n, at / n);
                let k = i.max(j) as f64;
                if i.abs_diff(j) == 1 { (k * (n as f64 - k)).sqrt().into() } else { 0.0.into() }
            })
            .collect();
        let w = check::<f64>("Clement", n, &clement, 1.0);
        for (k, w) in w.iter().enumerate() {
            let expected = 2.0 * k as f64 - (n - 1) as f64;
            assert!((w - expected).abs() <= n as f64 * f64::EPSILON * (n - 1) as f64, "{n}: {w} {expected}");
        }
        // Pei's matrix, a on the diagonal and 1 beside it: a - 1, and once a - 1 + n.
        let pei: Vec<C64> = (0..n * n).map(|at| (1.0 + 2.0 * f64::from(at % n == at / n)).into()).collect();
        let w = check::<f64>("Pei", n, &pei, 1.0);
        for (k, w) in w.iter().enumerate() {
            let expected = if k + 1 == n { 2.0 + n as f64 } else { 2.0 };
            assert!((w - expected).abs() <= n as f64 * f64::EPSILON * (n + 2) as f64, "{n}: {w} {expected}");
        }
    }
}

#[test]
fn two_by_two_is_accurate_to_the_last_bits() {
    let two = f64::exp2;
    // a, b, c and the eigenvalues at 40 digits.
    let cases = [
        ([2.0, 1.0, 3.0], [1.381_966_011_250_105, 3.618_033_988_749_895]),
        ([1.0, 1.0, 1.0 + two(-40.0)], [4.547_473_508_863_607e-13, 2.000_000_000_000_454_7]),
        ([-1.0, 1.0, 1.0], [-SQRT_2, SQRT_2]),
        ([1e-20, 1e-5, 1.0], [-9.999_999_998e-11, 1.000_000_000_1]),
    ];
    for ([a, b, c], expected) in cases {
        for scale in [1.0, two(-900.0), two(1000.0)] {
            let (w, _) = decompose(2, &[a * scale, b * scale, f64::NAN, c * scale]);
            for (w, e) in w.iter().zip(expected) {
                assert!((w / scale - e).abs() <= 4e-16 * e.abs(), "{a} {b} {c}: got {w:e}, expected {e:e}");
            }
        }
    }
    let (w, v) = decompose(2, &[3.0, 0.0, 0.0, 1.0]);
    assert_eq!((w, v), (vec![1.0, 3.0], vec![0.0, 1.0, 1.0, 0.0]));
}

#[test]
fn the_first_non_finite_element_of_the_triangle_is_named() {
    let mut a: Vec<f64> = matrix(3, 3, |_, _| (1.0, 0.0));
    (a[3], a[5]) = (f64::NAN, f64::INFINITY);
    let (mut w, mut v) = ([0.0; 3], [0.0; 9]);
    // SAFETY: the buffers have the documented sizes.
    let got = unsafe { f64::eigh(3, strided(a.as_ptr(), 3), w.as_mut_ptr(), v.as_mut_ptr(), Par::Seq) };
    assert_eq!(got, Err(DenseError::NonFinite { row: 2, col: 1 }));
    assert_eq!(w, [0.0; 3]);
}

#[test]
fn an_empty_matrix_has_no_eigenvalues() {
    assert_eq!(decompose::<f64>(0, &[]), (vec![], vec![]));
}

#[test]
fn elements_below_the_normal_numbers_are_as_good_as_zero() {
    let tiny = Complex::new(0.0_f32, 1e-42);
    let a: Vec<Complex<f32>> = (0..9)
        .map(|at| match (at % 3, at / 3) {
            (i, j) if i == j => Complex::new(1.0 + i as f32, 0.0),
            (i, j) if i == j + 1 => tiny,
            _ => Complex::new(0.0, 0.0),
        })
        .collect();
    let (w, v) = decompose(3, &a);
    assert_eq!(w, [1.0, 2.0, 3.0]);
    assert!(v.iter().all(|x| x.norm() == 0.0 || x.norm() == 1.0), "{v:?}");
}

#[test]
fn a_two_by_two_matrix_of_far_apart_elements_has_vectors() {
    for a in [[1e300, 1e-130, 1e-130, 1.0], [1e-300, 1e-320, 1e-320, 1e-300]] {
        let (_, v) = decompose(2, &a);
        assert!(v.iter().all(|x: &f64| x.abs() <= 1.0), "{v:?}");
    }
}
