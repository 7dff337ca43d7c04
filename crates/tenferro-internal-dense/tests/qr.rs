//! QR factors by LAPACK's test ratios, |A - Q R| / (|A| max(m, n) eps) and |1 - Q^H Q| / (m eps), which are
//! below 30 for a backward stable routine.

#![cfg(feature = "faer")]

mod common;

use common::{Form, Rng, Sample, matrix, norm, of_spectrum, scales, shapes, strided};
use num_complex::Complex;
use tenferro_internal_dense::{DenseError, Par, Qr, QrForm};

const THIN: QrForm = QrForm { full: false, positive: false };

struct Factors<T> {
    q: Vec<T>,
    r: Vec<T>,
    perm: Vec<i32>,
}

fn factors<T: Sample>((m, n): (usize, usize), a: &[T], form: QrForm, pivot: bool) -> Factors<T> {
    let k = if form.full { m } else { m.min(n) };
    let (mut q, mut r) = (vec![T::ONE; m * k], vec![T::ONE; k * n]);
    let mut perm: Vec<i32> = (0..n as i32).collect();
    let to = pivot.then_some(&mut perm[..]);
    // SAFETY: the buffers have the documented sizes.
    unsafe { T::qr((m, n), strided(a.as_ptr(), m), q.as_mut_ptr(), r.as_mut_ptr(), form, to, Par::Seq) }
        .unwrap();
    Factors { q, r, perm }
}

/// The larger of the two ratios, for A divided by `scale`.
fn ratio<T: Sample>((m, n): (usize, usize), a: &[T], f: &Factors<T>, scale: f64) -> f64 {
    if m == 0 {
        return 0.0;
    }
    let k = f.q.len() / m;
    let a_ = |i: usize, j: usize| a[i + f.perm[j] as usize * m].wide() / scale;
    let mut residual = Vec::new();
    for j in 0..n {
        for i in 0..m {
            let sum: Complex<f64> =
                (0..k).map(|p| f.q[i + p * m].wide() * (f.r[p + j * k].wide() / scale)).sum();
            residual.push(sum - a_(i, j));
        }
    }
    let mut defect = Vec::new();
    for j in 0..k {
        for i in 0..k {
            let sum: Complex<f64> =
                (0..m).map(|l| f.q[l + i * m].wide().conj() * f.q[l + j * m].wide()).sum();
            defect.push(sum - f64::from(i == j));
        }
    }
    let size = norm(a.iter().map(|x| x.wide() / scale));
    let first = if size == 0.0 { 0.0 } else { norm(residual.into_iter()) / (size * m.max(n) as f64) };
    f64::max(first, norm(defect.into_iter()) / m as f64) / T::eps()
}

const SHAPES: [(usize, usize); 20] = [
    (0, 0),
    (0, 3),
    (3, 0),
    (1, 1),
    (2, 2),
    (3, 2),
    (2, 5),
    (5, 5),
    (8, 8),
    (9, 4),
    (16, 17),
    (17, 16),
    (33, 33),
    (70, 70),
    (130, 90),
    (90, 130),
    (300, 3),
    (3, 300),
    (400, 70),
    (200, 100),
];

fn check<T: Sample>((m, n): (usize, usize), form: QrForm, pivot: bool) {
    let mut rng = Rng((m + 31 * n) as u64);
    let a: Vec<T> = matrix(m, n, |_, _| (rng.next(), rng.next()));
    let f = factors((m, n), &a, form, pivot);
    let found = ratio((m, n), &a, &f, 1.0);
    assert!(found < 30.0, "{m} x {n}, {form:?}, {pivot}: {found}");
    let k = if form.full { m } else { m.min(n) };
    let mut last = f64::INFINITY;
    for j in 0..n {
        for i in 0..k {
            let x = f.r[i + j * k].wide();
            assert!(i <= j || x == Complex::new(0.0, 0.0), "R is upper triangular");
            assert!(i != j || x.im == 0.0 && (!form.positive || x.re >= 0.0), "{m} x {n}: R_{i}{i} = {x}");
            if i == j && pivot {
                assert!(x.norm() <= last * (1.0 + 10.0 * T::eps()), "{m} x {n}: |R_{i}{i}| increases");
                last = x.norm();
            }
        }
    }
    let mut seen = f.perm.clone();
    seen.sort();
    assert!(seen.iter().enumerate().all(|(i, &p)| i == p as usize));
}

fn check_all<T: Sample>() {
    for shape in SHAPES {
        for pivot in [false, true] {
            check::<T>(shape, THIN, pivot);
            check::<T>(shape, QrForm { full: false, positive: true }, pivot);
            if shape.0 <= 130 {
                check::<T>(shape, QrForm { full: true, positive: true }, pivot);
            }
        }
    }
}

#[test]
fn factors_multiply_to_the_matrix_and_q_is_unitary() {
    check_all::<f32>();
    check_all::<f64>();
    check_all::<Complex<f32>>();
    check_all::<Complex<f64>>();
}

fn check_scales<T: Sample>(scales: &[f64]) {
    for (m, n) in [(2, 2), (9, 7), (7, 9), (70, 70)] {
        for &scale in scales {
            for pivot in [false, true] {
                let mut rng = Rng((m + 31 * n) as u64);
                let a: Vec<T> = matrix(m, n, |_, _| (rng.next() * scale, rng.next() * scale));
                let found = ratio((m, n), &a, &factors((m, n), &a, THIN, pivot), scale);
                assert!(found < 30.0, "{m} x {n} at {scale:e}: {found}");
            }
        }
    }
}

#[test]
fn huge_and_tiny_matrices_lose_no_digits() {
    check_scales::<f64>(&[1e-300, 1e-160, 1e160, 1e300, 1e307]);
    check_scales::<Complex<f64>>(&[1e-300, 1e-160, 1e160, 1e300]);
    check_scales::<f32>(&[1e-30, 1e-20, 1e20, 1e30]);
    check_scales::<Complex<f32>>(&[1e-30, 1e30]);
}

fn check_spectra<T: Sample>() {
    for (m, n) in shapes() {
        let mut rng = Rng(n as u64);
        for (mode, scale) in (1..=6).flat_map(|mode| scales::<T>().map(|scale| (mode, scale))) {
            let (a, _) = of_spectrum::<T>(mode, (m, n), Form::General, scale, &mut rng);
            for (full, pivot) in [(false, false), (false, true), (true, false), (true, true)] {
                let label = format!("mode {mode} {m} x {n} at {scale:e}, full {full}, pivot {pivot}");
                let f = factors((m, n), &a, QrForm { full, positive: full }, pivot);
                let found = ratio((m, n), &a, &f, scale);
                assert!(found < 30.0, "{label}: {found}");
                if pivot {
                    let rows = f.r.len() / n;
                    let diagonal: Vec<f64> = (0..m.min(n)).map(|i| f.r[i + i * rows].wide().norm()).collect();
                    let falls = diagonal.windows(2).all(|w| w[1] <= w[0] * (1.0 + 10.0 * T::eps()));
                    assert!(falls, "{label}: {diagonal:?}");
                }
            }
        }
    }
}

#[test]
fn factors_are_backward_stable_on_the_spectra_of_the_test_programs() {
    check_spectra::<f32>();
    check_spectra::<f64>();
    check_spectra::<Complex<f32>>();
    check_spectra::<Complex<f64>>();
}

fn check_graded<T: Sample>(step: f64) {
    for (m, n) in [(4, 4), (10, 7), (70, 68)] {
        for down in [false, true] {
            let mut rng = Rng(7);
            let power = |j: usize| step.powi((if down { n - 1 - j } else { j } % 12) as i32);
            let a: Vec<T> = matrix(m, n, |_, j| (rng.next() * power(j), rng.next() * power(j)));
            let f = factors((m, n), &a, THIN, false);
            let found = ratio((m, n), &a, &f, 1.0);
            assert!(found < 30.0, "{m} x {n}: {found}");
            // Each column has its own small error.
            for j in 0..n {
                let part = Factors { q: f.q.clone(), r: f.r[j * n..][..n].to_vec(), perm: vec![0] };
                let found = ratio((m, 1), &a[j * m..][..m], &part, power(j));
                assert!(found < 30.0 * n as f64, "column {j} of {m} x {n}: {found}");
            }
        }
    }
}

#[test]
fn columns_of_any_scale_give_a_unitary_q() {
    check_graded::<f64>(1e-25);
    check_graded::<Complex<f64>>(1e-25);
    check_graded::<f32>(1e-3);
}

#[test]
fn a_matrix_of_low_rank_has_factors() {
    for (m, n) in [(5, 4), (70, 66)] {
        let rank_one: Vec<f64> = matrix(m, n, |i, j| ((i + 1) as f64 * (j + 2) as f64, 0.0));
        for a in [rank_one, vec![0.0; m * n]] {
            for pivot in [false, true] {
                let f = factors((m, n), &a, THIN, pivot);
                let found = ratio((m, n), &a, &f, 1.0);
                assert!(found < 30.0, "{m} x {n}: {found}");
            }
        }
    }
}

#[test]
fn pivoting_starts_with_the_longest_column() {
    let a = [1.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 0.0, 2.0];
    let f = factors((3, 3), &a, QrForm { full: false, positive: true }, true);
    assert_eq!(f.perm, [1, 2, 0]);
    let diagonal: Vec<f64> = (0..3).map(|i| f.r[4 * i]).collect();
    assert!((diagonal[0] - 5.0).abs() < 1e-14 && diagonal[1] == 2.0 && (diagonal[2] - 0.8).abs() < 1e-15);
}

fn check_reflectors<T: Sample>((m, n): (usize, usize), cols: usize) {
    let mut rng = Rng(5);
    let a: Vec<T> = matrix(m, n, |_, _| (rng.next(), rng.next()));
    let c: Vec<T> = matrix(m, cols, |_, _| (rng.next(), rng.next()));
    let k = m.min(n);
    let (mut packed, mut tau) = (vec![T::ZERO; m * n], vec![T::ZERO; k]);
    let (mut q, mut full) = (vec![T::ZERO; m * k], vec![T::ZERO; m * m]);
    let (mut forth, mut back) = (c.clone(), c.clone());
    // SAFETY: the buffers have the documented sizes.
    unsafe {
        T::householder((m, n), strided(a.as_ptr(), m), packed.as_mut_ptr(), &mut tau, Par::Seq).unwrap();
        let v = strided(packed.as_ptr(), m);
        T::householder_product((m, k), v, &tau, q.as_mut_ptr(), Par::Seq).unwrap();
        T::householder_product((m, m), v, &tau, full.as_mut_ptr(), Par::Seq).unwrap();
        T::householder_apply((m, cols), v, &tau, true, forth.as_mut_ptr(), Par::Seq).unwrap();
        back.copy_from_slice(&forth);
        T::householder_apply((m, cols), v, &tau, false, back.as_mut_ptr(), Par::Seq).unwrap();
    }
    let close =
        |x: T, y: Complex<f64>| assert!((x.wide() - y).norm() < 30.0 * m as f64 * T::eps(), "{m} x {n}");
    (0..m * k).for_each(|i| close(q[i], full[i].wide()));
    (0..m * cols).for_each(|i| close(back[i], c[i].wide()));
    for j in 0..cols {
        for i in 0..m {
            close(
                forth[i + j * m],
                (0..m).map(|l| full[l + i * m].wide().conj() * c[l + j * m].wide()).sum(),
            );
        }
    }
    for j in 0..n {
        for i in 0..m {
            close(
                a[i + j * m],
                (0..=j.min(k - 1)).map(|p| q[i + p * m].wide() * packed[p + j * m].wide()).sum(),
            );
        }
    }
}

#[test]
fn products_of_reflectors_are_q() {
    for shape in [(1, 1), (3, 3), (9, 4), (4, 9), (70, 70), (140, 100), (100, 140)] {
        for cols in [1, 6] {
            check_reflectors::<f32>(shape, cols);
            check_reflectors::<f64>(shape, cols);
            check_reflectors::<Complex<f32>>(shape, cols);
            check_reflectors::<Complex<f64>>(shape, cols);
        }
    }
}

#[test]
fn a_matrix_that_is_not_finite_is_an_error() {
    for n in [3, 100] {
        for bad in [f64::NAN, f64::INFINITY] {
            let mut a = vec![1.0; n * n];
            a[n + 2] = bad;
            let (mut q, mut r) = (a.clone(), a.clone());
            // SAFETY: the buffers have the documented sizes.
            let got = unsafe {
                f64::qr((n, n), strided(a.as_ptr(), n), q.as_mut_ptr(), r.as_mut_ptr(), THIN, None, Par::Seq)
            };
            assert_eq!(got, Err(DenseError::NonFinite { row: 2, col: 1 }));
        }
    }
}
