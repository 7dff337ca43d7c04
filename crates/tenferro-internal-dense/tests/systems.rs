//! LU factors and solutions, by residuals in the units of LAPACK's test programs (a backward stable routine stays
//! below 30).

#![cfg(feature = "faer")]

mod common;

use common::{Form, ORDERS, Rng, Sample, matrix, norm, of_spectrum, scales, shapes, strided};
use num_complex::Complex;
use tenferro_internal_dense::{Cholesky, Dense, DenseError, Par, Strided};

fn check_lu<T: Sample>(m: usize, n: usize) {
    let mut rng = Rng((m + 31 * n) as u64);
    let a: Vec<T> = matrix(m, n, |_, _| (rng.next(), rng.next()));
    let (mut packed, mut perm) = (vec![T::ZERO; m * n], vec![-1; m]);
    // SAFETY: the buffers have the documented sizes.
    unsafe { T::lu((m, n), strided(a.as_ptr(), m), packed.as_mut_ptr(), perm.as_mut_ptr(), Par::Seq) }
        .unwrap();
    let k = m.min(n);
    for j in 0..n {
        for i in 0..m {
            let mut sum = Complex::new(0.0, 0.0);
            for p in 0..k.min(i + 1).min(j + 1) {
                let l = if p == i { Complex::new(1.0, 0.0) } else { packed[i + p * m].wide() };
                assert!(l.norm() < 1.5, "partial pivoting bounds L");
                sum += l * packed[p + j * m].wide();
            }
            let error = (sum - a[perm[i] as usize + j * m].wide()).norm();
            assert!(error < 30.0 * k as f64 * T::eps(), "{m} x {n}: {error:e} at ({i}, {j})");
        }
    }
}

#[test]
fn lu_reproduces_the_permuted_matrix() {
    for (m, n) in [(1, 1), (2, 2), (3, 5), (5, 3), (8, 8), (9, 9), (17, 17), (40, 33), (30, 50)] {
        check_lu::<f32>(m, n);
        check_lu::<f64>(m, n);
        check_lu::<Complex<f32>>(m, n);
        check_lu::<Complex<f64>>(m, n);
    }
}

#[test]
fn lu_leaves_a_zero_pivot_and_stays_finite() {
    // Columns 0 and 1 are equal; 20 columns take the recursive path.
    for n in [3, 20] {
        let a: Vec<f64> =
            matrix(n, n, |i, j| (((i * j.max(1) + 1) % 5) as f64 + f64::from(i == j && j > 1), 0.0));
        let (mut packed, mut perm) = (vec![0.0; n * n], vec![0; n]);
        // SAFETY: the buffers have the documented sizes.
        unsafe { f64::lu((n, n), strided(a.as_ptr(), n), packed.as_mut_ptr(), perm.as_mut_ptr(), Par::Seq) }
            .unwrap();
        assert_eq!((0..n).find(|i| packed[i + i * n] == 0.0), Some(1));
        assert!(packed.iter().all(|x| x.is_finite()));
    }
}

fn check_solve<T: Sample>(n: usize, nrhs: usize, row_major: bool) {
    let mut rng = Rng((n * 7 + nrhs) as u64);
    let a: Vec<T> = matrix(n, n, |i, j| (rng.next() + 2.0 * f64::from(i == j), rng.next()));
    let b: Vec<T> = matrix(n, nrhs, |_, _| (rng.next(), rng.next()));
    let at = |i: usize, j: usize| if row_major { i * nrhs + j } else { i + j * n };
    let (mut packed, mut perm) = (vec![T::ZERO; n * n], vec![0; n]);
    for adjoint in [false, true] {
        let mut x = b.clone();
        (0..n * nrhs).for_each(|q| x[at(q % n, q / n)] = b[q]);
        let (row, col) = if row_major { (nrhs as isize, 1) } else { (1, n as isize) };
        let target = Strided { ptr: x.as_mut_ptr(), row, col };
        // SAFETY: the buffers have the documented sizes.
        unsafe {
            let from = strided(a.as_ptr(), n);
            T::lu((n, n), from, packed.as_mut_ptr(), perm.as_mut_ptr(), Par::Seq).unwrap();
            let factors = strided(packed.as_ptr(), n);
            T::solve_lu((n, nrhs), factors, perm.as_ptr(), adjoint, target, Par::Seq).unwrap();
        }
        for (q, b) in b.iter().enumerate() {
            let (i, j) = (q % n, q / n);
            let element = |p: usize| if adjoint { a[p + i * n].wide().conj() } else { a[i + p * n].wide() };
            let sum: Complex<f64> = (0..n).map(|p| element(p) * x[at(p, j)].wide()).sum();
            let size = norm(x.iter().map(|x| x.wide()));
            let error = (sum - b.wide()).norm();
            assert!(error < 30.0 * n as f64 * T::eps() * size, "{n}, {nrhs}, {adjoint}: {error:e}");
        }
    }
}

#[test]
fn solutions_satisfy_their_equations() {
    for (n, nrhs) in [(1, 1), (2, 1), (2, 3), (3, 2), (8, 1), (11, 11), (16, 1), (17, 1), (33, 5)] {
        for row_major in [false, true] {
            check_solve::<f32>(n, nrhs, row_major);
            check_solve::<f64>(n, nrhs, row_major);
            check_solve::<Complex<f32>>(n, nrhs, row_major);
            check_solve::<Complex<f64>>(n, nrhs, row_major);
        }
    }
}

#[test]
fn singular_systems_are_errors_and_leave_the_right_side_alone() {
    for n in [1, 2, 3, 20] {
        let a: Vec<f64> = matrix(n, n, |i, j| (if i + 1 == n { 0.0 } else { f64::from(i == j) }, 0.0));
        let mut b = vec![7.0; n];
        let (mut packed, mut perm) = (vec![0.0; n * n], vec![0; n]);
        // SAFETY: the buffers have the documented sizes.
        let got = unsafe {
            f64::lu((n, n), strided(a.as_ptr(), n), packed.as_mut_ptr(), perm.as_mut_ptr(), Par::Seq)
                .unwrap();
            f64::solve_lu(
                (n, 1),
                strided(packed.as_ptr(), n),
                perm.as_ptr(),
                false,
                strided(b.as_mut_ptr(), n),
                Par::Seq,
            )
        };
        assert_eq!(got, Err(DenseError::Singular { index: n - 1 }));
        assert_eq!(b, vec![7.0; n]);
    }
}

fn check_spectra<T: Sample>() {
    let wide = |x: &[T], scale: f64| x.iter().map(|x| x.wide() / scale).collect::<Vec<_>>();
    for n in ORDERS {
        let mut rng = Rng(n as u64);
        let unit = 30.0 * n as f64 * T::eps();
        for (mode, scale) in (1..=6).flat_map(|mode| scales::<T>().map(|scale| (mode, scale))) {
            let label = format!("mode {mode} {n} at {scale:e}, {}", std::any::type_name::<T>());
            let (a, _) = of_spectrum::<T>(mode, (n, n), Form::General, scale, &mut rng);
            let x: Vec<Complex<f64>> = (0..n).map(|_| T::of(rng.next(), rng.next()).wide()).collect();
            let ax = |i: usize| (0..n).map(|k| a[i + k * n].wide() * x[k]).sum::<Complex<f64>>();
            let b: Vec<T> = (0..n).map(|i| T::of(ax(i).re, ax(i).im)).collect();
            let (mut packed, mut perm, mut y) = (vec![T::ZERO; n * n], vec![-1; n], b.clone());
            // SAFETY: the buffers have the documented sizes.
            unsafe {
                let to = (packed.as_mut_ptr(), perm.as_mut_ptr());
                T::lu((n, n), strided(a.as_ptr(), n), to.0, to.1, Par::Seq).unwrap();
                let factors = strided(packed.as_ptr(), n);
                let to = strided(y.as_mut_ptr(), n);
                T::solve_lu((n, 1), factors, perm.as_ptr(), false, to, Par::Seq).unwrap();
            }
            let (given, b) = (wide(&a, scale), wide(&b, scale));
            let size = norm(given.iter().copied());
            let l = |i: usize, p: usize| if i == p { 1.0.into() } else { packed[i + p * n].wide() };
            let element = |i: usize, j: usize| -> Complex<f64> {
                (0..=i.min(j)).map(|p| l(i, p) * (packed[p + j * n].wide() / scale)).sum()
            };
            let off =
                norm((0..n * n).map(|q| element(q % n, q / n) - given[perm[q % n] as usize + q / n * n]));
            assert!(off <= unit * size, "{label}: LU off by {:.1}", off / unit / size * 30.0);
            let y = wide(&y, 1.0);
            let sum = |i: usize| (0..n).map(|k| given[i + k * n] * y[k]).sum::<Complex<f64>>();
            let off = norm((0..n).map(|i| sum(i) - b[i]));
            let most = unit * size * norm(y.iter().copied());
            assert!(off <= most, "{label}: solution off by {:.1}", off / most * 30.0);

            let (a, _) = of_spectrum::<T>(mode, (n, n), Form::Definite, scale, &mut rng);
            let mut l = vec![T::ZERO; n * n];
            // SAFETY: both have n n elements.
            let done = unsafe { T::cholesky(n, strided(a.as_ptr(), n), l.as_mut_ptr(), Par::Seq) };
            assert_eq!(done, Ok(()), "{label}");
            let (given, l) = (wide(&a, scale), wide(&l, scale.sqrt()));
            let element = |i: usize, j: usize| -> Complex<f64> {
                (0..=i.min(j)).map(|p| l[i + p * n] * l[j + p * n].conj()).sum()
            };
            let off = norm((0..n * n).map(|q| element(q % n, q / n) - given[q]));
            let most = unit * norm(given.iter().copied());
            assert!(off <= most, "{label}: Cholesky off by {:.1}", off / most * 30.0);
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

/// A positive definite matrix with rows and columns scaled by `scale(i)`.
fn definite<T: Sample>(n: usize, scale: impl Fn(usize) -> f64) -> Vec<T> {
    let mut rng = Rng(n as u64 + 5);
    let b: Vec<Complex<f64>> = (0..n * n).map(|_| T::of(rng.next(), rng.next()).wide()).collect();
    matrix(n, n, |i, j| {
        let sum: Complex<f64> = (0..n).map(|k| b[i + k * n] * b[j + k * n].conj()).sum();
        let x = (sum + if i == j { 0.1 } else { 0.0 }) * scale(i) * scale(j);
        (x.re, if i == j { 0.0 } else { x.im })
    })
}

fn check_cholesky<T: Sample>(n: usize, scale: impl Fn(usize) -> f64) {
    let a: Vec<T> = definite(n, &scale);
    let mut l = vec![T::of(7.0, 7.0); n * n];
    // SAFETY: both have n n elements.
    unsafe { T::cholesky(n, strided(a.as_ptr(), n), l.as_mut_ptr(), Par::Seq).unwrap() };
    for j in 0..n {
        assert!((0..j).all(|i| l[i + j * n] == T::ZERO));
        assert!(l[j + j * n].wide().re > 0.0 && l[j + j * n].wide().im == 0.0);
        for i in j..n {
            // Rows divided by the square roots of the diagonal have norm 1.
            let row = |i: usize, k: usize| l[i + k * n].wide() / a[i + i * n].wide().re.sqrt();
            let sum: Complex<f64> = (0..=j).map(|k| row(i, k) * row(j, k).conj()).sum();
            let root = |i: usize| a[i + i * n].wide().re.sqrt();
            let error = (sum - a[i + j * n].wide() / root(i) / root(j)).norm();
            assert!(error < 30.0 * n.max(1) as f64 * T::eps(), "{n}: {error:e} at ({i}, {j})");
        }
    }
}

#[test]
fn cholesky_factors_reproduce_the_matrix_at_any_scale() {
    for n in [0, 1, 2, 3, 8, 24, 25, 33, 70, 150] {
        check_cholesky::<f32>(n, |_| 1.0);
        check_cholesky::<f64>(n, |_| 1.0);
        check_cholesky::<Complex<f32>>(n, |_| 1.0);
        check_cholesky::<Complex<f64>>(n, |_| 1.0);
        // Diagonal elements from 1e-300 to 1e300, and 1e-36 to 1e36.
        let graded = |k: f64| move |i: usize| 10f64.powf(k * (((i * 7) % 13) as f64 / 6.0 - 1.0));
        check_cholesky::<f64>(n, graded(149.0));
        check_cholesky::<Complex<f64>>(n, graded(149.0));
        check_cholesky::<f32>(n, graded(17.0));
        check_cholesky::<Complex<f32>>(n, graded(17.0));
    }
}

#[test]
fn the_first_minor_that_is_not_positive_is_named() {
    for n in [3, 20, 40, 130] {
        for bad in [0, 1, n / 2, n - 1] {
            for value in [-1.0, 0.0] {
                let a: Vec<f64> =
                    matrix(n, n, |i, j| (f64::from(i == j) * if i == bad { value } else { 1.0 }, 0.0));
                let mut l = vec![0.0; n * n];
                // SAFETY: both have n n elements.
                let got = unsafe { f64::cholesky(n, strided(a.as_ptr(), n), l.as_mut_ptr(), Par::Seq) };
                assert_eq!(got, Err(DenseError::NotPositiveDefinite { order: bad + 1 }));
            }
        }
        let mut a: Vec<f64> = matrix(n, n, |i, j| (f64::from(i == j), 0.0));
        a[n] = f64::NAN;
        let mut l = vec![0.0; n * n];
        // SAFETY: both have n n elements.
        unsafe { f64::cholesky(n, strided(a.as_ptr(), n), l.as_mut_ptr(), Par::Seq).unwrap() };
        (a[n - 1], a[2]) = (f64::INFINITY, f64::NAN);
        // SAFETY: both have n n elements.
        let got = unsafe { f64::cholesky(n, strided(a.as_ptr(), n), l.as_mut_ptr(), Par::Seq) };
        assert_eq!(got, Err(DenseError::NonFinite { row: 2, col: 0 }));
        // An overflow on the way is no factor: |a_21|^2 is larger than a_11 a_22.
        let a: Vec<f64> = matrix(n, n, |i, j| (if i == j { 1e-300 } else { 1e300 }, 0.0));
        // SAFETY: both have n n elements.
        let got = unsafe { f64::cholesky(n, strided(a.as_ptr(), n), l.as_mut_ptr(), Par::Seq) };
        assert_eq!(got, Err(DenseError::NotPositiveDefinite { order: 2 }));
    }
}

fn check_lu_full<T: Sample>(m: usize, n: usize, rank: usize, scale: f64) {
    let mut rng = Rng((m + 31 * n + rank) as u64);
    let mut part = |m, n| -> Vec<T> { matrix(m, n, |_, _| (rng.next(), rng.next())) };
    let (b, c) = (part(m, rank), part(rank, n));
    let a: Vec<T> = matrix(m, n, |i, j| {
        let x: Complex<f64> = (0..rank).map(|k| b[i + k * m].wide() * c[k + j * rank].wide()).sum();
        (x.re * scale, x.im * scale)
    });
    let k = m.min(n);
    let (mut packed, mut rows, mut columns) = (vec![T::ZERO; m * n], vec![-1; m], vec![-1; n]);
    // SAFETY: the buffers have the documented sizes.
    unsafe {
        let to = (packed.as_mut_ptr(), rows.as_mut_ptr(), columns.as_mut_ptr());
        T::lu_full_pivot((m, n), strided(a.as_ptr(), m), to.0, to.1, to.2);
    }
    let at = |i: usize, j: usize| packed[i + j * m].wide() / scale;
    let l = |i: usize, p: usize| if p == i { Complex::new(1.0, 0.0) } else { at(i, p) * scale };
    for j in 0..n {
        for i in 0..m {
            let sum: Complex<f64> = (0..k.min(i + 1).min(j + 1)).map(|p| l(i, p) * at(p, j)).sum();
            let error = (sum - a[rows[i] as usize + columns[j] as usize * m].wide() / scale).norm();
            assert!(error < 30.0 * k as f64 * T::eps(), "{m} x {n}: {error:e} at ({i}, {j})");
            let bound = if i > j { 1.0 } else { at(i.min(k - 1), i.min(k - 1)).norm() };
            let size = if i > j { l(i, j) } else { at(i, j) };
            assert!(size.norm() <= 1.5 * bound, "full pivoting bounds L, and U by its diagonal");
        }
    }
    // The rank shows.
    let tiny = (rank..k).map(|i| at(i, i).norm()).fold(0.0, f64::max);
    assert!(tiny < 30.0 * k as f64 * T::eps(), "{tiny:e} beyond the rank");
    for mut p in [rows, columns] {
        p.sort_unstable();
        assert!(p.iter().enumerate().all(|(i, &p)| i == p as usize));
    }
}

#[test]
fn full_pivoting_reproduces_the_matrix_and_reveals_its_rank() {
    for (m, n, rank) in
        [(1, 1, 1), (2, 2, 1), (3, 5, 3), (5, 3, 2), (8, 8, 8), (17, 17, 9), (40, 33, 33), (4, 4, 0)]
    {
        for scale in [1.0, 1e30, 1e-30] {
            check_lu_full::<f32>(m, n, rank, scale);
            check_lu_full::<Complex<f32>>(m, n, rank, scale);
        }
        for scale in [1.0, 1e300, 1e-300] {
            check_lu_full::<f64>(m, n, rank, scale);
            check_lu_full::<Complex<f64>>(m, n, rank, scale);
        }
    }
}

/// The factors of matrices of any extents with given singular values, of one pivot a column and of full
/// pivoting.
fn check_rectangular<T: Sample>() {
    for (m, n) in shapes() {
        let (k, mut rng) = (m.min(n), Rng((m + 100 * n) as u64));
        for (mode, scale) in (1..=6).flat_map(|mode| scales::<T>().map(|scale| (mode, scale))) {
            let (a, _) = of_spectrum::<T>(mode, (m, n), Form::General, scale, &mut rng);
            let size = norm(a.iter().map(|x| x.wide() / scale));
            for full in [false, true] {
                let label = format!("mode {mode} {m} x {n} at {scale:e}, full {full}");
                let (mut packed, mut rows) = (vec![T::ZERO; m * n], vec![-1; m]);
                let mut columns: Vec<i32> = (0..n as i32).collect();
                // SAFETY: the buffers have the documented sizes.
                unsafe {
                    let (from, to) = (strided(a.as_ptr(), m), (packed.as_mut_ptr(), rows.as_mut_ptr()));
                    if full {
                        T::lu_full_pivot((m, n), from, to.0, to.1, columns.as_mut_ptr());
                    } else {
                        T::lu((m, n), from, to.0, to.1, Par::Seq).unwrap();
                    }
                }
                let l = |i: usize, p: usize| if i == p { 1.0.into() } else { packed[i + p * m].wide() };
                let u = |p: usize, j: usize| packed[p + j * m].wide() / scale;
                let off = norm((0..m * n).map(|q| {
                    let (i, j) = (q % m, q / m);
                    let sum: Complex<f64> = (0..k.min(i + 1).min(j + 1)).map(|p| l(i, p) * u(p, j)).sum();
                    sum - a[rows[i] as usize + columns[j] as usize * m].wide() / scale
                }));
                let ratio = off / (size * m.max(n) as f64 * T::eps());
                assert!(ratio < 30.0, "{label}: off by {ratio:.1}");
            }
        }
    }
}

#[test]
fn factors_of_any_extents_are_backward_stable_on_these_spectra() {
    check_rectangular::<f32>();
    check_rectangular::<f64>();
    check_rectangular::<Complex<f32>>();
    check_rectangular::<Complex<f64>>();
}
