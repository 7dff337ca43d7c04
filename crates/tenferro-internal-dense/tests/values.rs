//! Singular values and eigenvalues without vectors: those of the decompositions, on the spectra of LAPACK's test
//! programs.

#![cfg(feature = "faer")]

mod common;

use common::{Form, Rng, Sample, matrix, norm, of_spectrum, scales, spectrum, strided, unitary};
use num_complex::Complex;
use tenferro_internal_dense::{Dense, DenseError, Eig, Eigh, Field, Par, Strided, Vectors};

type C64 = Complex<f64>;

/// Below, at and above the orders at which methods change.
const ORDERS: [usize; 15] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 32, 64, 65, 100];

fn wide<T: Sample>(x: Vec<T>) -> Vec<C64> {
    x.into_iter().map(|x| x.wide()).collect()
}

fn svdvals<T: Sample>(m: usize, n: usize, a: &[T]) -> Vec<f64>
where
    T::Real: Sample,
{
    let mut s = vec![T::of(f64::NAN, 0.0).re(); m.min(n)];
    // SAFETY: the buffers have the documented sizes.
    unsafe { T::svdvals((m, n), strided(a.as_ptr(), m), s.as_mut_ptr(), Par::Seq).unwrap() };
    wide(s).iter().map(|s| s.re).collect()
}

fn eigvalsh<T: Sample>(n: usize, a: &[T]) -> Vec<f64>
where
    T::Real: Sample,
{
    let mut w = vec![T::of(f64::NAN, 0.0).re(); n];
    // SAFETY: the buffers have the documented sizes.
    unsafe { T::eigvalsh(n, strided(a.as_ptr(), n), w.as_mut_ptr(), Par::Seq).unwrap() };
    wide(w).iter().map(|w| w.re).collect()
}

fn eigvals<T: Sample<Complex: Sample>>(n: usize, a: &[T]) -> Vec<C64> {
    let mut w = vec![T::Complex::of(f64::NAN, 0.0); n];
    // SAFETY: the buffers have the documented sizes.
    unsafe { T::eigvals(n, strided(a.as_ptr(), n), w.as_mut_ptr(), Par::Seq).unwrap() };
    wide(w)
}

/// Within 30 `unit` of each other, relative to `size`.
fn close(label: &str, got: &[f64], expected: &[f64], unit: f64, size: f64) {
    assert_eq!(got.len(), expected.len(), "{label}");
    for (g, e) in got.iter().zip(expected) {
        assert!((g - e).abs() <= 30.0 * unit * size, "{label}: got {g:e}, expected {e:e} of {size:e}");
    }
}

fn singular<T: Sample>()
where
    T::Real: Sample,
{
    let check = |label: &str, m: usize, n: usize, a: &[T]| {
        let label = format!("{label}, {m} x {n}, {}", std::any::type_name::<T>());
        let (got, k) = (svdvals(m, n, a), m.min(n));
        let nan = T::of(f64::NAN, f64::NAN);
        let (mut u, mut s, mut vh) = (vec![nan; m * k], vec![nan.re(); k], vec![nan; k * n]);
        // SAFETY: the buffers have the documented sizes.
        unsafe {
            let to = (u.as_mut_ptr(), s.as_mut_ptr(), vh.as_mut_ptr());
            T::svd((m, n), strided(a.as_ptr(), m), to.0, to.1, to.2, Vectors::Thin, Par::Seq).unwrap();
        }
        let expected: Vec<f64> = wide(s).iter().map(|s| s.re).collect();
        let size = expected.first().copied().unwrap_or(0.0);
        close(&label, &got, &expected, m.max(n) as f64 * T::eps(), size);
        assert!(got.windows(2).all(|s| s[0] >= s[1]) && got.iter().all(|&s| s >= 0.0), "{label}: {got:?}");
        got
    };
    for n in ORDERS {
        let mut rng = Rng(n as u64);
        for (mode, scale) in (1..=6).flat_map(|mode| scales::<T>().map(|scale| (mode, scale))) {
            if n == 0 {
                assert_eq!(check("empty", 0, 3, &[]), [0.0; 0]);
                continue;
            }
            let (a, mut d) = of_spectrum::<T>(mode, (n, n), Form::General, scale, &mut rng);
            let s: Vec<f64> = check(&format!("mode {mode} at {scale:e}"), n, n, &a);
            d.iter_mut().for_each(|d| *d = d.abs());
            d.sort_by(|a, b| b.total_cmp(a));
            let s: Vec<f64> = s.iter().map(|s| s / scale).collect();
            close(&format!("mode {mode} {n} at {scale:e}"), &s, &d, n as f64 * T::eps(), 1.0);
        }
    }
    for (m, n) in [(1, 4), (6, 2), (3, 7), (40, 3), (14, 30), (200, 20), (70, 300), (130, 130)] {
        let mut rng = Rng((m * 1000 + n) as u64);
        check("random", m, n, &matrix(m, n, |_, _| (rng.next(), rng.next())));
        check("zero", m, n, &matrix(m, n, |_, _| (0.0, 0.0)));
        check("ones", m, n, &matrix(m, n, |_, _| (1.0, 0.0)));
        check("identity", m, n, &matrix(m, n, |i, j| (f64::from(i == j), 0.0)));
        check("shift", m, n, &matrix(m, n, |i, j| (f64::from(i + 1 == j), 0.0)));
        let grade = |i: usize| 10f64.powf(-30.0 * i as f64 / m as f64);
        check("graded", m, n, &matrix(m, n, |i, _| (rng.next() * grade(i), rng.next() * grade(i))));
    }
}

#[test]
fn singular_values_are_those_of_the_decomposition() {
    singular::<f32>();
    singular::<f64>();
    singular::<Complex<f32>>();
    singular::<Complex<f64>>();
}

/// `Q D Q^H` with the spectrum d, and d.
fn hermitian<T: Sample>(mode: usize, n: usize, scale: f64, rng: &mut Rng) -> (Vec<T>, Vec<f64>) {
    let d = if n == 0 { Vec::new() } else { spectrum(mode, n, 1.0 / T::eps(), rng) };
    let q = unitary(n, T::COMPLEX, rng);
    let element =
        |i: usize, j: usize| -> C64 { (0..n).map(|k| q[i + k * n] * d[k] * q[j + k * n].conj()).sum() };
    let a = matrix(n, n, |i, j| {
        let x = element(i, j);
        (x.re * scale, if i == j { 0.0 } else { x.im * scale })
    });
    (a, d)
}

fn symmetric<T: Sample>()
where
    T::Real: Sample,
{
    for n in ORDERS {
        let mut rng = Rng(n as u64);
        for (mode, scale) in (1..=6).flat_map(|mode| scales::<T>().map(|scale| (mode, scale))) {
            let label = format!("mode {mode} {n} at {scale:e}, {}", std::any::type_name::<T>());
            let (a, mut d) = hermitian::<T>(mode, n, scale, &mut rng);
            // Nothing above the diagonal is read, nor imaginary parts on it.
            let hidden: Vec<T> = (0..n * n)
                .map(|at| match (at % n).cmp(&(at / n)) {
                    std::cmp::Ordering::Less => T::of(f64::NAN, f64::NAN),
                    std::cmp::Ordering::Equal => T::of(a[at].wide().re, 7.0),
                    std::cmp::Ordering::Greater => a[at],
                })
                .collect();
            let got = eigvalsh(n, &hidden);
            let (mut w, mut v) = (vec![T::of(f64::NAN, 0.0).re(); n], vec![T::ZERO; n * n]);
            // SAFETY: the buffers have the documented sizes.
            unsafe {
                T::eigh(n, strided(hidden.as_ptr(), n), w.as_mut_ptr(), v.as_mut_ptr(), Par::Seq).unwrap();
            }
            let expected: Vec<f64> = wide(w).iter().map(|w| w.re).collect();
            let size = expected.iter().fold(0.0, |m: f64, w| m.max(w.abs()));
            close(&label, &got, &expected, n as f64 * T::eps(), size);
            assert!(got.is_sorted(), "{label}: {got:?}");
            d.sort_by(f64::total_cmp);
            let got: Vec<f64> = got.iter().map(|w| w / scale).collect();
            close(&label, &got, &d, n as f64 * T::eps(), 1.0);
        }
    }
}

#[test]
fn eigenvalues_of_hermitian_matrices_are_those_of_the_decomposition() {
    symmetric::<f32>();
    symmetric::<f64>();
    symmetric::<Complex<f32>>();
    symmetric::<Complex<f64>>();
}

/// As many eigenvalues of `a` as it has, each with a small `|A - w|`, and their sum; conjugate pairs together.
fn check_general<T: Sample<Complex: Sample>>(label: &str, n: usize, a: &[T], every: usize)
where
    <T::Complex as Field>::Real: Sample,
{
    let label = format!("{label}, {n} x {n}, {}", std::any::type_name::<T>());
    let w = eigvals(n, a);
    let scale = a.iter().fold(0.0, |m: f64, x| m.max(x.wide().norm()));
    let scale = if scale > 0.0 { scale } else { 1.0 };
    let scaled: Vec<C64> = a.iter().map(|x| x.wide() / scale).collect();
    let size = norm(scaled.iter().copied());
    let bound = 30.0 * n as f64 * T::eps() * size;
    for w in w.iter().step_by(every) {
        let shifted: Vec<C64> =
            (0..n * n).map(|at| scaled[at] - if at % n == at / n { w / scale } else { 0.0.into() }).collect();
        let least = svdvals(n, n, &shifted).pop().unwrap();
        assert!(least <= bound, "{label}: {w} is off by {least:e}, of {size:e}");
    }
    let trace: C64 = (0..n).map(|i| scaled[i * (n + 1)]).sum();
    let sum: C64 = w.iter().map(|w| w / scale).sum();
    assert!(
        (sum - trace).norm() <= bound * (n as f64).sqrt(),
        "{label}: the sum is {sum}, the trace {trace}"
    );
    if T::COMPLEX {
        return;
    }
    let mut j = 0;
    while j < n {
        if w[j].im == 0.0 {
            j += 1;
            continue;
        }
        assert!(w[j].im > 0.0 && w[j + 1] == w[j].conj(), "{label}: {w:?}");
        j += 2;
    }
}

fn general<T: Sample<Complex: Sample>>()
where
    <T::Complex as Field>::Real: Sample,
{
    for n in ORDERS {
        let mut rng = Rng(n as u64);
        let every = if n <= 10 { 1 } else { 1 + n / 6 };
        for (mode, scale) in (1..=6).flat_map(|mode| scales::<T>().map(|scale| (mode, scale))) {
            let (a, _) = hermitian::<T>(mode, n, scale, &mut rng);
            check_general(&format!("Hermitian of mode {mode} at {scale:e}"), n, &a, every);
            if n > 0 {
                let (a, _) = of_spectrum::<T>(mode, (n, n), Form::General, scale, &mut rng);
                check_general(&format!("mode {mode} at {scale:e}"), n, &a, every);
            }
        }
        let of = |f: &dyn Fn(usize, usize) -> f64| -> Vec<T> { matrix(n, n, |i, j| (f(i, j), 0.0)) };
        check_general("zero", n, &of(&|_, _| 0.0), every);
        check_general("ones", n, &of(&|_, _| 1.0), every);
        check_general("cycle", n, &of(&|i, j| f64::from((i + 1) % n == j)), every);
        check_general("nilpotent", n, &of(&|i, j| f64::from(i + 1 == j)), every);
        check_general("Jordan", n, &of(&|i, j| f64::from(i == j || i == j + 1)), every);
    }
    for (n, step) in [(20, 7), (12, 7), (20, 3), (20, 1)] {
        let graded: Vec<T> = matrix(n, n, |i, j| (10f64.powi(-((i + j) as i32) * step), 0.0));
        check_general("graded", n, &graded, 1);
    }
}

#[test]
fn eigenvalues_are_those_of_a_matrix_nearby() {
    general::<f32>();
    general::<f64>();
    general::<Complex<f32>>();
    general::<Complex<f64>>();
}

#[test]
fn the_first_non_finite_element_is_named() {
    for n in [2, 3, 40, 110] {
        let mut a = vec![1.0; n * n];
        (a[n], a[n + 1]) = (f64::INFINITY, f64::NAN);
        let at: Strided<*const f64> = strided(a.as_ptr(), n);
        let (mut real, mut complex) = (vec![0.0; n], vec![C64::new(0.0, 0.0); n]);
        // SAFETY: the buffers have the documented sizes.
        let got = unsafe {
            [
                f64::svdvals((n, n), at, real.as_mut_ptr(), Par::Seq),
                f64::eigvals(n, at, complex.as_mut_ptr(), Par::Seq),
                f64::eigvalsh(n, at, real.as_mut_ptr(), Par::Seq),
            ]
        };
        let of = |row, col| Err(DenseError::NonFinite { row, col });
        assert_eq!(got, [of(0, 1), of(0, 1), of(1, 1)]);
    }
}
