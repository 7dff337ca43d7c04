//! Residuals in the units of LAPACK's test programs (a backward stable routine stays below 30), and singular values
//! computed at 300 digits.

#![cfg(feature = "faer")]

mod common;

use common::{Form, Rng, Sample, matrix, norm, of_spectrum, scales, shapes, strided};
use num_complex::Complex;
use tenferro_internal_dense::{Dense, DenseError, Par, Strided, Vectors};

/// A product of column-major matrices in double precision, the first conjugate-transposed if `adjoint`.
fn multiply(a: &[Complex<f64>], b: &[Complex<f64>], inner: usize, adjoint: bool) -> Vec<Complex<f64>> {
    let (m, n) = (a.len() / inner, b.len() / inner);
    let at = |i: usize, p: usize| if adjoint { a[p + i * inner].conj() } else { a[i + p * m] };
    let element = |q: usize| (0..inner).map(|p| at(q % m, p) * b[p + q / m * inner]).sum();
    (0..m * n).map(element).collect()
}

fn decompose<T: Sample>(m: usize, n: usize, a: &[T], vectors: Vectors) -> (Vec<T>, Vec<T::Real>, Vec<T>) {
    let k = m.min(n);
    let (columns, rows) = if vectors == Vectors::Full { (m, n) } else { (k, k) };
    let nan = T::of(f64::NAN, f64::NAN);
    let (mut u, mut s, mut vh) = (vec![nan; m * columns], vec![nan.re(); k], vec![nan; rows * n]);
    // SAFETY: the buffers have the documented sizes.
    unsafe {
        let (u, s, vh) = (u.as_mut_ptr(), s.as_mut_ptr(), vh.as_mut_ptr());
        T::svd((m, n), strided(a.as_ptr(), m), u, s, vh, vectors, Par::Seq).unwrap();
    }
    (u, s, vh)
}

fn check_svd<T: Sample>(name: &str, m: usize, n: usize, a: &[T])
where
    T::Real: Sample,
{
    for vectors in [Vectors::Thin, Vectors::Full] {
        let (u, s, vh) = decompose(m, n, a, vectors);
        let label = format!("{name} {m} x {n} {vectors:?} {}", std::any::type_name::<T>());
        let s: Vec<f64> = s.into_iter().map(|x| x.wide().re).collect();
        assert!(s.windows(2).all(|w| w[0] >= w[1]) && s.iter().all(|&x| x >= 0.0), "{label}: {s:?}");
        let wide = |x: &[T]| x.iter().map(|x| x.wide()).collect::<Vec<_>>();
        let (u, vh, a) = (wide(&u), wide(&vh), wide(a));
        let unit = if s[0] > 0.0 { 1.0 / s[0] } else { 1.0 };
        let rows = vh.len() / n;
        let scaled: Vec<_> =
            u.iter().take(m * s.len()).enumerate().map(|(q, x)| x * s[q / m] * unit).collect();
        let top: Vec<_> = (0..s.len() * n).map(|q| vh[q % s.len() + q / s.len() * rows]).collect();
        let product = multiply(&scaled, &top, s.len(), false);
        let residual = norm(product.iter().zip(&a).map(|(x, a)| x - a * unit));
        assert!(residual < 30.0 * m.max(n) as f64 * T::eps(), "{label}: residual {residual:e}");
        let v: Vec<_> = (0..rows * n).map(|q| vh[q / n + q % n * rows].conj()).collect();
        for (q, length) in [(&u, m), (&v, n)] {
            let count = q.len() / length;
            let gram = multiply(q, q, length, true);
            let identity = |at: usize| if at % count == at / count { 1.0 } else { 0.0 };
            let error = norm(gram.iter().enumerate().map(|(at, x)| x - identity(at)));
            assert!(error < 30.0 * length as f64 * T::eps(), "{label}: not orthonormal by {error:e}");
        }
    }
}

fn families<T: Sample>(m: usize, n: usize)
where
    T::Real: Sample,
{
    let mut rng = Rng((m * 1000 + n) as u64);
    let mut random = || (rng.next(), rng.next());
    let scale = |(x, y): (f64, f64), s: f64| (x * s, y * s);
    check_svd::<T>("random", m, n, &matrix(m, n, |_, _| random()));
    check_svd::<T>("zero", m, n, &matrix(m, n, |_, _| (0.0, 0.0)));
    check_svd::<T>("ones", m, n, &matrix(m, n, |_, _| (1.0, 0.0)));
    check_svd::<T>("phases", m, n, &matrix(m, n, |i, j| (((i + j) as f64).cos(), ((i + j) as f64).sin())));
    check_svd::<T>("identity", m, n, &matrix(m, n, |i, j| (f64::from(i == j), 0.0)));
    check_svd::<T>("shift", m, n, &matrix(m, n, |i, j| (f64::from(i + 1 == j), 0.0)));
    check_svd::<T>("Hilbert", m, n, &matrix(m, n, |i, j| (1.0 / (i + j + 1) as f64, 0.0)));
    let kahan = |i: usize, j: usize| match i.cmp(&j) {
        std::cmp::Ordering::Less => (-0.36 * 0.93f64.powi(i as i32), 0.0),
        std::cmp::Ordering::Equal => (0.93f64.powi(i as i32), 0.0),
        std::cmp::Ordering::Greater => (0.0, 0.0),
    };
    check_svd::<T>("Kahan", m, n, &matrix(m, n, kahan));
    let grade = |i: usize| 10f64.powf(-30.0 * i as f64 / m as f64);
    check_svd::<T>("graded rows", m, n, &matrix(m, n, |i, _| scale(random(), grade(i))));
    check_svd::<T>("rank 2", m, n, &matrix(m, n, |i, j| (i as f64 + 2.0 * j as f64 - 3.0, 0.0)));
    check_svd::<T>("zero columns", m, n, &matrix(m, n, |_, j| scale(random(), (j % 2) as f64)));
    let sign = |i: usize, j: usize| if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
    check_svd::<T>("equal", m, n, &matrix(m, n, |i, j| (sign(i, j), 0.0)));
}

#[test]
fn svd_is_backward_stable_on_hard_families() {
    for (m, n) in
        [(1, 1), (2, 2), (3, 3), (5, 5), (8, 8), (1, 4), (6, 2), (3, 7), (12, 12), (40, 3), (14, 30)]
    {
        families::<f32>(m, n);
        families::<f64>(m, n);
        families::<Complex<f32>>(m, n);
        families::<Complex<f64>>(m, n);
    }
}

fn check_spectra<T: Sample>()
where
    T::Real: Sample,
{
    for (m, n) in shapes() {
        let mut rng = Rng(n as u64);
        for (mode, scale) in (1..=6).flat_map(|mode| scales::<T>().map(|scale| (mode, scale))) {
            let (a, mut d) = of_spectrum::<T>(mode, (m, n), Form::General, scale, &mut rng);
            check_svd(&format!("mode {mode} at {scale:e}"), m, n, &a);
            d.iter_mut().for_each(|d| *d = d.abs());
            d.sort_by(|a, b| b.total_cmp(a));
            for (s, d) in decompose(m, n, &a, Vectors::Thin).1.iter().zip(&d) {
                let off = (s.wide().re / scale - d).abs();
                assert!(
                    off <= 30.0 * m.max(n) as f64 * T::eps(),
                    "mode {mode} {m} x {n} at {scale:e}: got {s:?}, expected {d}"
                );
            }
        }
    }
}

#[test]
fn svd_is_backward_stable_on_the_spectra_of_the_test_programs() {
    check_spectra::<f32>();
    check_spectra::<f64>();
    check_spectra::<Complex<f32>>();
    check_spectra::<Complex<f64>>();
}

#[test]
fn svd_survives_divide_and_conquer_breaking_down() {
    let n = 128;
    let (u, s, vh) = decompose::<f32>(n, n, &vec![1.0; n * n], Vectors::Thin);
    assert!((s[0] - 128.0).abs() < 1e-3 && s[1] < 1e-3);
    assert!(u.iter().chain(&vh).all(|x| x.is_finite()));
}

#[test]
fn svd_is_accurate_at_any_scale() {
    for scale in [1e-310, 1e-300, 1e-160, 1e160, 1e300] {
        for n in [2, 3, 6, 20] {
            let element = |i: usize, j: usize| 1.0 / (1.0 + i as f64 + 2.0 * j as f64);
            let plain: Vec<f64> = matrix(n, n, |i, j| (element(i, j), 0.0));
            let scaled: Vec<f64> = plain.iter().map(|x| x * scale).collect();
            let (s, t) =
                (decompose(n, n, &plain, Vectors::Thin).1, decompose(n, n, &scaled, Vectors::Thin).1);
            for (s, t) in s.iter().zip(&t) {
                // The elements themselves are rounded, coarsely below the normal range.
                let unit = f64::EPSILON.max(5e-324 / scale);
                assert!((t / scale - s).abs() <= 30.0 * n as f64 * unit, "{n} at {scale:e}: {t} {s}");
            }
        }
    }
}

#[test]
fn small_singular_values_keep_relative_accuracy() {
    let two = f64::exp2;
    let cases: [(usize, Vec<f64>, &[f64], f64); 5] = [
        (2, vec![1.0, 3.0, 2.0, 4.0], &[5.464_985_704_219_043, 0.365_966_190_626_257_8], 1e-15),
        (
            2,
            vec![1.0, 1.0, 1.0, 1.0 + two(-40.0)],
            &[2.000_000_000_000_454_7, 4.547_473_508_863_607e-13],
            1e-15,
        ),
        (
            2,
            vec![3.0, two(-60.0), 1.0, two(-61.0)],
            &[3.162_277_660_168_379_5, 1.371_419_323_662_774e-19],
            1e-15,
        ),
        (
            5,
            matrix(5, 5, |i, j| (((i * i + 3 * j * j + i * j) % 7 + 1) as f64 * two(-30.0 * i as f64), 0.0)),
            &[
                12.288_205_727_444_508,
                3.889_730_763_986_246e-9,
                4.684_502_165_391_3e-18,
                1.275_929_809_991_977e-27,
                2.441_727_166_597_309_3e-36,
            ],
            1e-13,
        ),
        (
            6,
            matrix(6, 6, |i, j| (1.0 / (i + j + 1) as f64, 0.0)),
            &[
                1.618_899_858_924_339,
                0.242_360_870_575_209_55,
                0.016_321_521_319_875_826,
                0.000_615_748_354_182_645_2,
                1.257_075_712_263_703e-5,
                1.082_799_484_481_101e-7,
            ],
            1e-9,
        ),
    ];
    for (n, a, expected, tolerance) in cases {
        let s = decompose(n, n, &a, Vectors::Thin).1;
        for (s, e) in s.iter().zip(expected) {
            assert!((s - e).abs() <= tolerance * e, "{n}: got {s:e}, expected {e:e}");
        }
    }
}

#[test]
fn svd_names_the_first_non_finite_element() {
    let mut a = [1.0; 12];
    (a[7], a[9]) = (f64::NAN, f64::INFINITY);
    let mut out = [0.0; 24];
    let [u, s, vh] = [0, 12, 15].map(|at| out.as_mut_ptr().wrapping_add(at));
    // SAFETY: 12 + 3 + 9 elements of output.
    let got = unsafe { f64::svd((4, 3), strided(a.as_ptr(), 4), u, s, vh, Vectors::Thin, Par::Seq) };
    assert_eq!(got, Err(DenseError::NonFinite { row: 3, col: 1 }));
}

#[test]
fn empty_matrices_have_identities_as_full_vectors() {
    let (u, s, vh) = decompose::<f64>(0, 3, &[], Vectors::Full);
    assert!(u.is_empty() && s.is_empty());
    assert_eq!(vh, matrix::<f64>(3, 3, |i, j| (f64::from(i == j), 0.0)));
    let (u, s, vh) = decompose::<f64>(2, 0, &[], Vectors::Thin);
    assert!(u.is_empty() && s.is_empty() && vh.is_empty());
}

#[test]
fn jacobi_alone_handles_sizes_that_faer_usually_takes() {
    let (m, n) = (30, 21);
    // Three distinct rows: rank 3, so most of the right vectors come from completion.
    let a: Vec<f64> = (0..m * n).map(|q| ((q % m % 3 + 1) * (q / m + 2) % 7) as f64).collect();
    let (mut u, mut s, mut vh) = (vec![f64::NAN; m * n], vec![f64::NAN; n], vec![f64::NAN; n * n]);
    let (out_u, out_s, out_vh) = (u.as_mut_ptr(), s.as_mut_ptr(), vh.as_mut_ptr());
    let a_ref = Strided { ptr: a.as_ptr(), row: 1, col: m as isize };
    // SAFETY: the buffers have the documented sizes.
    unsafe { f64::svd_by_jacobi((m, n), a_ref, out_u, out_s, out_vh).unwrap() };
    assert!(s[2] > 1.0 && s[3] < 1e-12);
    for q in 0..m * n {
        let sum: f64 = (0..n).map(|p| u[q % m + p * m] * s[p] * vh[p + q / m * n]).sum();
        assert!((sum - a[q]).abs() < 1e-12);
    }
    for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let v: f64 = (0..n).map(|p| vh[i + p * n] * vh[j + p * n]).sum();
        let u: f64 = (0..m).map(|p| u[p + i * m] * u[p + j * m]).sum();
        let expected = f64::from(i == j);
        assert!((v - expected).abs() < 1e-13 && (u - expected).abs() < 1e-13, "({i}, {j}): {u} {v}");
    }
}
