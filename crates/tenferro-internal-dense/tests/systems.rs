//! LU factors and solutions, by residuals in the units of LAPACK's test programs (a backward stable routine stays
//! below 30).

#![cfg(feature = "faer")]

mod common;

use common::{Rng, Sample, matrix, norm, strided};
use num_complex::Complex;
use tenferro_internal_dense::{Dense, DenseError, Par, Strided};

fn check_lu<T: Sample>(m: usize, n: usize) {
    let mut rng = Rng((m + 31 * n) as u64);
    let a: Vec<T> = matrix(m, n, |_, _| (rng.next(), rng.next()));
    let (mut packed, mut perm) = (vec![T::ZERO; m * n], vec![-1; m]);
    // SAFETY: the buffers have the documented sizes.
    unsafe { T::lu((m, n), strided(a.as_ptr(), m), packed.as_mut_ptr(), perm.as_mut_ptr(), Par::Seq) };
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
        unsafe { f64::lu((n, n), strided(a.as_ptr(), n), packed.as_mut_ptr(), perm.as_mut_ptr(), Par::Seq) };
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
            T::lu((n, n), from, packed.as_mut_ptr(), perm.as_mut_ptr(), Par::Seq);
            T::solve_lu((n, nrhs), packed.as_ptr(), perm.as_ptr(), adjoint, target, Par::Seq).unwrap();
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
            f64::lu((n, n), strided(a.as_ptr(), n), packed.as_mut_ptr(), perm.as_mut_ptr(), Par::Seq);
            f64::solve_lu((n, 1), packed.as_ptr(), perm.as_ptr(), false, strided(b.as_mut_ptr(), n), Par::Seq)
        };
        assert_eq!(got, Err(DenseError::Singular { index: n - 1 }));
        assert_eq!(b, vec![7.0; n]);
    }
}
