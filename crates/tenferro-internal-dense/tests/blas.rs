//! Routines by BLAS and LAPACK: what is handed over means the same as what is done here.
//!
//! The reference is a BLAS of plain loops, which checks leading dimensions as the original does. With the
//! environment variable TENFERRO_BLAS, the file of a library, everything is done once more with that one.

#![cfg(feature = "faer")]

mod common;

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use common::{Rng, Sample};
use num_complex::Complex;
use tenferro_internal_dense::{
    Dense, Eigh, Factor, Field, Par, Real, Strided, Target, Triangle, Vectors,
    blas::{self, Abi, Blas},
};

/// The table is one for the process.
static TABLE: Mutex<()> = Mutex::new(());
static CALLS: AtomicUsize = AtomicUsize::new(0);

fn sample<T: Sample>(seed: usize) -> T {
    let mut rng = Rng(seed as u64 * 77 + 1);
    rng.next();
    T::of(rng.next(), rng.next())
}

fn size(n: *const i32) -> usize {
    // SAFETY: arguments are valid addresses.
    usize::try_from(unsafe { *n }).expect("an extent")
}

/// Element (i, j) of op(X).
unsafe fn at<T: Field>(x: *const T, ld: usize, op: u8, i: usize, j: usize) -> T {
    // SAFETY: the caller's.
    unsafe {
        match op {
            b'N' => *x.add(i + j * ld),
            b'T' => *x.add(j + i * ld),
            b'C' => (*x.add(j + i * ld)).conj(),
            _ => panic!("operation {op}"),
        }
    }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn gemm<T: Field>(
    op_a: *const u8,
    op_b: *const u8,
    m: *const i32,
    n: *const i32,
    k: *const i32,
    alpha: *const T,
    a: *const T,
    lda: *const i32,
    b: *const T,
    ldb: *const i32,
    beta: *const T,
    c: *mut T,
    ldc: *const i32,
) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let [m, n, k, lda, ldb, ldc] = [m, n, k, lda, ldb, ldc].map(size);
    // SAFETY: the caller describes three matrices.
    unsafe {
        assert!(
            lda >= if *op_a == b'N' { m } else { k } && ldb >= if *op_b == b'N' { k } else { n } && ldc >= m
        );
        for j in 0..n {
            for i in 0..m {
                let sum = (0..k).fold(T::ZERO, |s, p| s + at(a, lda, *op_a, i, p) * at(b, ldb, *op_b, p, j));
                let c = c.add(i + j * ldc);
                *c = if *beta == T::ZERO { *alpha * sum } else { *alpha * sum + *beta * *c };
            }
        }
    }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn trsm<T: Field>(
    side: *const u8,
    uplo: *const u8,
    op: *const u8,
    diag: *const u8,
    m: *const i32,
    n: *const i32,
    alpha: *const T,
    a: *const T,
    lda: *const i32,
    b: *mut T,
    ldb: *const i32,
) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let [m, n, lda, ldb] = [m, n, lda, ldb].map(size);
    // SAFETY: the caller describes two matrices.
    unsafe {
        let (left, unit) = (*side == b'L', *diag == b'U');
        let order = if left { m } else { n };
        assert!(lda >= order && ldb >= m && *alpha == T::ONE);
        // op(A) is lower triangular if A is and op does not transpose, or neither; from the right it acts on rows.
        let lower = ((*uplo == b'L') == (*op == b'N')) == left;
        for s in 0..if left { n } else { m } {
            let x = |i: usize| if left { b.add(i + s * ldb) } else { b.add(s + i * ldb) };
            for step in 0..order {
                let i = if lower { step } else { order - 1 - step };
                let known = if lower { 0..i } else { i + 1..order };
                let t = |i, j| if left { at(a, lda, *op, i, j) } else { at(a, lda, *op, j, i) };
                let sum = known.fold(*x(i), |sum, j| sum - t(i, j) * *x(j));
                *x(i) = if unit { sum } else { sum.divide(t(i, i)) };
            }
        }
    }
}

/// Elimination that multiplies by the reciprocals of pivots, which may overflow, as some libraries do.
unsafe extern "C" fn getrf<T: Field>(
    m: *const i32,
    n: *const i32,
    a: *mut T,
    lda: *const i32,
    pivots: *mut i32,
    info: *mut i32,
) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let [m, n, ld] = [m, n, lda].map(size);
    // SAFETY: the caller describes a matrix.
    unsafe {
        *info = 0;
        let at = |i: usize, j: usize| a.add(i + j * ld);
        for k in 0..m.min(n) {
            let larger = |p: usize, i: usize| (*at(i, k)).abs1() > (*at(p, k)).abs1();
            let pivot = (k..m).fold(k, |p, i| if larger(p, i) { i } else { p });
            *pivots.add(k) = pivot as i32 + 1;
            (0..n).filter(|_| pivot != k).for_each(|j| std::ptr::swap(at(k, j), at(pivot, j)));
            let inverse = T::ONE.divide(*at(k, k));
            for i in k + 1..m {
                *at(i, k) = *at(i, k) * inverse;
                (k + 1..n).for_each(|j| *at(i, j) = *at(i, j) - *at(i, k) * *at(k, j));
            }
        }
    }
}

/// Calls `test` with the plain BLAS, then with the one of the environment.
fn with_libraries(test: impl Fn()) {
    let _one = TABLE.lock().unwrap_or_else(|e| e.into_inner());
    let mut plain = Blas::new("plain");
    plain.min_order = 0;
    plain.s.gemm = Some(gemm);
    plain.d.gemm = Some(gemm);
    plain.c.gemm = Some(gemm);
    plain.z.gemm = Some(gemm);
    plain.s.trsm = Some(trsm);
    plain.d.trsm = Some(trsm);
    plain.c.trsm = Some(trsm);
    plain.z.trsm = Some(trsm);
    plain.s.getrf = Some(getrf);
    plain.d.getrf = Some(getrf);
    plain.c.getrf = Some(getrf);
    plain.z.getrf = Some(getrf);
    let mut libraries = vec![plain];
    if let Some(path) = std::env::var_os("TENFERRO_BLAS") {
        // SAFETY: a BLAS runs no code of consequence when it is loaded; it is never unloaded.
        let library = Box::leak(Box::new(unsafe { libloading::Library::new(path) }.expect("a library")));
        // SAFETY: the names are those of the Fortran interface.
        let mut given = unsafe {
            Blas::resolve("given", |name| {
                library.get(name.as_bytes()).map_or(std::ptr::null(), |f: libloading::Symbol<*const _>| *f)
            })
        };
        given.min_order = 0;
        assert!(given.d.gemm.is_some() && given.z.gesdd.is_some());
        libraries.push(given);
    }
    for library in libraries {
        // SAFETY: the routines above, or the library's.
        unsafe { blas::install(Some(library)) };
        test();
    }
    // SAFETY: nothing is installed.
    unsafe { blas::install(None) };
}

/// A matrix in a larger block, in one of four arrangements: columns, rows, padded columns, or with steps along both
/// axes, which BLAS cannot address.
fn arranged([m, n]: [usize; 2], kind: usize) -> (usize, isize, isize) {
    let (m, n) = (m.max(1), n.max(1));
    match kind {
        0 => (m * n, 1, m as isize),
        1 => (m * n, n as isize, 1),
        2 => ((m + 2) * n, 1, m as isize + 2),
        _ => (2 * m * n * 3, 2, 2 * m as isize * 3),
    }
}

fn close<T: Dense>(got: T, expected: T, what: &dyn std::fmt::Display) {
    let error = (got - expected).abs().to_f64();
    assert!(
        error <= 200.0 * T::Real::EPS.to_f64() * (1.0 + expected.abs().to_f64()),
        "{what}: {got:?}, {expected:?}"
    );
}

fn products<T: Dense + Abi + Sample>() {
    for (m, n, k) in [(3, 4, 5), (1, 4, 3), (4, 1, 3), (3, 4, 1), (1, 1, 1), (9, 17, 8)] {
        for kinds in 0..64 {
            let [ka, kb, kc] = [kinds % 4, kinds / 4 % 4, kinds / 16];
            for flags in 0..8 {
                let (conj_a, conj_b) = (flags & 1 == 1, flags & 2 == 2);
                let beta = if flags & 4 == 4 { sample::<T>(3) } else { T::ZERO };
                let alpha = sample::<T>(1);
                let ((la, ra, ca), (lb, rb, cb), (lc, rc, cc)) =
                    (arranged([m, k], ka), arranged([k, n], kb), arranged([m, n], kc));
                let a: Vec<T> = (0..la).map(|i| sample(i + 7)).collect();
                let b: Vec<T> = (0..lb).map(|i| sample(i + 91)).collect();
                let old: Vec<T> = (0..lc).map(|i| sample(i + 23)).collect();
                let mut c = old.clone();
                // SAFETY: the strides stay within the vectors.
                unsafe {
                    T::gemm(
                        (m, n, k),
                        alpha,
                        Factor { ptr: a.as_ptr(), row: ra, col: ca, conj: conj_a },
                        Factor { ptr: b.as_ptr(), row: rb, col: cb, conj: conj_b },
                        beta,
                        Target { ptr: c.as_mut_ptr(), row: rc, col: cc },
                        Par::Seq,
                    );
                }
                let read = |x: &[T], i: usize, j: usize, r: isize, c: isize, conj: bool| {
                    let x = x[(i as isize * r + j as isize * c) as usize];
                    if conj { x.conj() } else { x }
                };
                for j in 0..n {
                    for i in 0..m {
                        let sum = (0..k).fold(T::ZERO, |s, p| {
                            s + read(&a, i, p, ra, ca, conj_a) * read(&b, p, j, rb, cb, conj_b)
                        });
                        let expected = alpha * sum + beta * read(&old, i, j, rc, cc, false);
                        let what =
                            format_args!("({i}, {j}) of {m} x {n} x {k}, {kinds}, {flags}").to_string();
                        close(read(&c, i, j, rc, cc, false), expected, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn a_product_is_the_same_for_every_arrangement() {
    with_libraries(|| {
        CALLS.store(0, Ordering::Relaxed);
        products::<f64>();
        products::<Complex<f64>>();
        products::<f32>();
        products::<Complex<f32>>();
    });
}

fn systems<T: Dense + Abi + Sample>() {
    for (n, nrhs) in [(4, 3), (1, 2), (5, 1), (9, 12)] {
        for kinds in 0..16 {
            for flags in 0..8 {
                let (lower, unit, conj) = (flags & 1 == 1, flags & 2 == 2, flags & 4 == 4);
                let ((la, ra, ca), (lb, rb, cb)) =
                    (arranged([n, n], kinds % 4), arranged([n, nrhs], kinds / 4));
                let a: Vec<T> =
                    (0..la).map(|i| sample::<T>(i + 5).scale(T::Real::of(0.2)) + T::ONE + T::ONE).collect();
                let b: Vec<T> = (0..lb).map(|i| sample(i + 41)).collect();
                let mut x = b.clone();
                // SAFETY: the strides stay within the vectors.
                unsafe {
                    T::triangular_solve(
                        (n, nrhs),
                        (if lower { Triangle::Lower } else { Triangle::Upper }, unit),
                        Strided { ptr: a.as_ptr(), row: ra, col: ca },
                        conj,
                        Strided { ptr: x.as_mut_ptr(), row: rb, col: cb },
                        Par::Seq,
                    );
                }
                for j in 0..nrhs {
                    for i in 0..n {
                        let t = |p: usize| {
                            let t = a[(i as isize * ra + p as isize * ca) as usize];
                            let t = if conj { t.conj() } else { t };
                            let inside = if lower { p <= i } else { p >= i };
                            if p == i && unit {
                                T::ONE
                            } else if inside {
                                t
                            } else {
                                T::ZERO
                            }
                        };
                        let at = |x: &[T], i: usize| x[(i as isize * rb + j as isize * cb) as usize];
                        let scale = (0..n).fold(1.0, |s, p| s + (t(p).abs() * at(&x, p).abs()).to_f64());
                        let sum = (0..n).fold(T::ZERO, |s, p| s + t(p) * at(&x, p));
                        let error = (sum - at(&b, i)).abs().to_f64();
                        assert!(
                            error <= 40.0 * T::Real::EPS.to_f64() * scale,
                            "{n} x {nrhs}, {kinds}, {flags}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_triangular_system_is_the_same_for_every_arrangement() {
    with_libraries(|| {
        systems::<f64>();
        systems::<Complex<f64>>();
        systems::<f32>();
        systems::<Complex<f32>>();
    });
}

#[test]
fn matrices_below_the_least_order_stay() {
    let _one = TABLE.lock().unwrap_or_else(|e| e.into_inner());
    let mut library = Blas::new("plain");
    library.min_order = 6;
    library.d.gemm = Some(gemm);
    // SAFETY: the routine above.
    unsafe { blas::install(Some(library)) };
    for (n, calls) in [(5, 0), (6, 1)] {
        CALLS.store(0, Ordering::Relaxed);
        let (a, mut c) = (vec![1.0; n * n], vec![0.0; n * n]);
        let x = Factor { ptr: a.as_ptr(), row: 1, col: n as isize, conj: false };
        let target = Target { ptr: c.as_mut_ptr(), row: 1, col: n as isize };
        // SAFETY: the matrices are n x n.
        unsafe { f64::gemm((n, n, n), 1.0, x, x, 0.0, target, Par::Seq) };
        assert_eq!((c[0], CALLS.load(Ordering::Relaxed)), (n as f64, calls));
    }
    // SAFETY: nothing is installed.
    unsafe { blas::install(None) };
}

/// `|A - B| <= 30 n eps |A|` in the largest element.
fn reproduces<T: Dense>(a: &[T], b: &[T], n: usize) {
    let largest = a.iter().fold(0.0_f64, |m, x| m.max(x.abs().to_f64()));
    for (x, y) in a.iter().zip(b) {
        assert!((*x - *y).abs().to_f64() <= 30.0 * n as f64 * T::Real::EPS.to_f64() * largest, "{x:?} {y:?}");
    }
}

/// Eigenvalues alone are those with vectors: of the Hermitian matrix in the lower triangle, each; of the matrix itself,
/// which may be in another order, their sum and that of their squares.
fn spectra<T: Dense<Complex: Dense>>(n: usize, a: Strided<*const T>) {
    let (mut w, mut alone, mut v) = (vec![T::Real::ZERO; n], vec![T::Real::ZERO; n], vec![T::ZERO; n * n]);
    let zero = T::Complex::ZERO;
    let (mut z, mut lone, mut x) = (vec![zero; n], vec![zero; n], vec![zero; n * n]);
    let mut rows = vec![0; n];
    // SAFETY: the outputs have the sizes of the factors.
    unsafe {
        T::eigh(n, a, w.as_mut_ptr(), v.as_mut_ptr(), Par::Seq).unwrap();
        T::eigvalsh(n, a, alone.as_mut_ptr(), Par::Seq).unwrap();
        T::eig(n, a, z.as_mut_ptr(), x.as_mut_ptr(), rows.as_mut_ptr(), Par::Seq).unwrap();
        T::eigvals(n, a, lone.as_mut_ptr(), Par::Seq).unwrap();
    }
    let size = w[0].abs().to_f64().max(w[n - 1].abs().to_f64());
    let unit = 30.0 * n as f64 * T::Real::EPS.to_f64();
    for (w, alone) in w.iter().zip(&alone) {
        assert!((*w - *alone).abs().to_f64() <= unit * size, "{w:?} {alone:?}");
    }
    let size = z.iter().fold(0.0, |sum: f64, z| sum + z.abs().to_f64());
    let inverse = <T::Complex as Field>::Real::of(1.0 / size);
    let sums =
        |z: &[T::Complex]| z.iter().map(|z| z.scale(inverse)).fold([zero; 2], |[s, t], z| [s + z, t + z * z]);
    for (got, expected) in sums(&lone).into_iter().zip(sums(&z)) {
        assert!((got - expected).abs().to_f64() <= unit, "{got:?} {expected:?}");
    }
}

fn factorizations<T: Dense<Complex: Dense> + Abi + Sample>() {
    let tiny = T::Real::TINY.to_f64();
    for (m, n, scale) in
        [(1, 1, 1.0), (4, 4, 1.0), (7, 3, 1.0), (3, 7, 1.0), (40, 40, 1.0), (40, 40, 4.0 * tiny)]
    {
        let k = m.min(n);
        let scale = T::Real::of(scale);
        let a: Vec<T> = (0..m * n).map(|i| sample::<T>(i + 3).scale(scale)).collect();
        let read = Strided { ptr: a.as_ptr(), row: 1, col: m as isize };
        let (mut packed, mut perm) = (vec![T::ZERO; m * n], vec![0; m]);
        let (mut s, mut u, mut vh) = (vec![T::Real::ZERO; k], vec![T::ZERO; m * k], vec![T::ZERO; k * n]);
        // SAFETY: the outputs have the sizes of the factors.
        unsafe {
            T::lu((m, n), read, packed.as_mut_ptr(), perm.as_mut_ptr(), Par::Seq).unwrap();
            T::svd((m, n), read, u.as_mut_ptr(), s.as_mut_ptr(), vh.as_mut_ptr(), Vectors::Thin, Par::Seq)
                .unwrap();
        }
        let mut in_place = a.clone();
        let at = Strided { ptr: in_place.as_ptr(), ..read };
        // SAFETY: as above.
        unsafe { T::lu((m, n), at, in_place.as_mut_ptr(), perm.as_mut_ptr(), Par::Seq).unwrap() };
        assert_eq!(in_place, packed);
        let (mut permuted, mut product, mut sum) = (a.clone(), a.clone(), a.clone());
        for j in 0..n {
            for i in 0..m {
                permuted[i + j * m] = a[perm[i] as usize + j * m];
                product[i + j * m] = (0..k.min(i + 1).min(j + 1)).fold(T::ZERO, |s, p| {
                    let l = if p == i { T::ONE } else { packed[i + p * m] };
                    s + l * packed[p + j * m]
                });
                sum[i + j * m] = (0..k).fold(T::ZERO, |t, p| t + u[i + p * m].scale(s[p]) * vh[p + j * k]);
            }
        }
        reproduces(&permuted, &product, m + n);
        reproduces(&a, &sum, m + n);
        let mut values = vec![T::Real::ZERO; k];
        // SAFETY: there is room for the values.
        unsafe { T::svdvals((m, n), read, values.as_mut_ptr(), Par::Seq).unwrap() };
        for (v, s) in values.iter().zip(&s) {
            let off = (*v - *s).abs().to_f64();
            assert!(off <= 30.0 * (m + n) as f64 * T::Real::EPS.to_f64() * values[0].to_f64(), "{v:?} {s:?}");
        }
        if m == n {
            spectra(n, read);
        }
    }
}

#[test]
fn factors_reproduce_the_matrix() {
    with_libraries(|| {
        factorizations::<f64>();
        factorizations::<Complex<f64>>();
        factorizations::<f32>();
        factorizations::<Complex<f32>>();
    });
}

/// Says that it has found singular values and vectors, and gives 1 and the identity.
#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn wrong_gesdd(
    job: *const u8,
    m: *const i32,
    n: *const i32,
    _: *mut f64,
    _: *const i32,
    s: *mut f64,
    u: *mut f64,
    _: *const i32,
    vt: *mut f64,
    _: *const i32,
    work: *mut f64,
    lwork: *const i32,
    _: *mut i32,
    info: *mut i32,
) {
    let (n, one) = (size(n), size(m));
    assert_eq!(n, one);
    // SAFETY: the caller describes square matrices, or asks for the length of the workspace.
    unsafe {
        *info = 0;
        if *lwork == -1 {
            *work = 1.0;
            return;
        }
        for i in (0..n * n).filter(|_| *job != b'N') {
            let x = f64::from(u8::from(i % (n + 1) == 0));
            (*u.add(i), *vt.add(i)) = (x, x);
        }
        (0..n).for_each(|i| *s.add(i) = 1.0);
    }
    CALLS.fetch_add(1, Ordering::Relaxed);
}

/// As [`wrong_gesdd`], of eigenvalues.
#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn wrong_syevd(
    _: *const u8,
    _: *const u8,
    n: *const i32,
    v: *mut f64,
    _: *const i32,
    w: *mut f64,
    work: *mut f64,
    lwork: *const i32,
    _: *mut i32,
    _: *const i32,
    info: *mut i32,
) {
    let n = size(n);
    // SAFETY: the caller describes a square matrix, or asks for the length of the workspace.
    unsafe {
        *info = 0;
        if *lwork == -1 {
            *work = 1.0;
            return;
        }
        (0..n * n).for_each(|i| *v.add(i) = f64::from(u8::from(i % (n + 1) == 0)));
        (0..n).for_each(|i| *w.add(i) = 1.0);
    }
    CALLS.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn wrong_factors_of_a_library_are_not_taken() {
    let _one = TABLE.lock().unwrap_or_else(|e| e.into_inner());
    let mut library = Blas::new("wrong");
    library.min_order = 0;
    library.d.gesdd = Some(wrong_gesdd);
    library.d.heevd = Some(wrong_syevd);
    // SAFETY: the routines above.
    unsafe { blas::install(Some(library)) };
    for n in [2, 5, 20] {
        CALLS.store(0, Ordering::Relaxed);
        // Symmetric, with an eigenvalue and a singular value above 1.
        let a: Vec<f64> = (0..n * n).map(|i| 3.0 + f64::from(u8::from(i % (n + 1) == 0))).collect();
        let read = Strided { ptr: a.as_ptr(), row: 1, col: n as isize };
        let (mut u, mut s, mut vh) = (vec![0.0; n * n], vec![0.0; n], vec![0.0; n * n]);
        let (mut w, mut v) = (vec![0.0; n], vec![0.0; n * n]);
        // SAFETY: the outputs have the sizes of the factors.
        unsafe {
            let to = (u.as_mut_ptr(), s.as_mut_ptr(), vh.as_mut_ptr());
            f64::svd((n, n), read, to.0, to.1, to.2, Vectors::Thin, Par::Seq).unwrap();
            f64::eigh(n, read, w.as_mut_ptr(), v.as_mut_ptr(), Par::Seq).unwrap();
        }
        assert_eq!(CALLS.load(Ordering::Relaxed), 2);
        let largest = 3.0 * n as f64 + 1.0;
        assert!((s[0] - largest).abs() < 1e-12 && (w[n - 1] - largest).abs() < 1e-12, "{s:?} {w:?}");
        // SAFETY: there is room for the values.
        unsafe {
            f64::svdvals((n, n), read, s.as_mut_ptr(), Par::Seq).unwrap();
            f64::eigvalsh(n, read, w.as_mut_ptr(), Par::Seq).unwrap();
        }
        assert_eq!(CALLS.load(Ordering::Relaxed), 4);
        assert!((s[0] - largest).abs() < 1e-12 && (w[n - 1] - largest).abs() < 1e-12, "{s:?} {w:?}");
    }
    // SAFETY: nothing is installed.
    unsafe { blas::install(None) };
}
