//! No routine leaves the upper halves of the vector registers of its thread in use, which would slow what runs after it down.

#![cfg(all(feature = "faer", target_arch = "x86_64"))]

mod common;

use common::{Rng, Sample, matrix, strided};
use std::arch::x86_64::{_mm256_zeroupper, _xgetbv};
use tenferro_internal_dense::{Factor, Par, Target, Triangle, Vectors};

/// Whether the upper halves of ymm0 to ymm15, or of zmm0 to zmm15, are in use, as far as the processor tells
/// (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, section 13.3: XINUSE).
#[target_feature(enable = "xsave")]
fn in_use() -> bool {
    // SAFETY: the caller has seen that XGETBV can be asked for XINUSE.
    unsafe { _xgetbv(1) & (1 << 2 | 1 << 6) != 0 }
}

#[target_feature(enable = "avx")]
fn clear() {
    _mm256_zeroupper();
}

#[target_feature(enable = "avx")]
fn fill() {
    // SAFETY: the register is named as written; nothing else changes.
    unsafe { std::arch::asm!("vcmpps ymm0, ymm0, ymm0, 15", out("ymm0") _, options(nomem, nostack)) };
}

/// Runs `f` with clear registers; whether it leaves them so.
fn clears(f: impl FnOnce()) -> bool {
    // SAFETY: `processor_tells` has seen both features.
    unsafe {
        clear();
        f();
        !in_use()
    }
}

/// Whether AVX is there and XGETBV tells XINUSE (CPUID function 13, leaf 1, EAX, bit 2), clear and in use.
fn processor_tells() -> bool {
    let features = is_x86_feature_detected!("avx") && is_x86_feature_detected!("xsave");
    // SAFETY: AVX is there.
    let tells = || clears(|| ()) && !clears(|| unsafe { fill() });
    features && std::arch::x86_64::__cpuid_count(13, 1).eax & (1 << 2) != 0 && tells()
}

fn check<T: Sample>(n: usize) {
    let mut rng = Rng(n as u64);
    // Hermitian and positive definite.
    let a: Vec<T> =
        matrix(n, n, |i, j| (if i == j { 2.0 * n as f64 } else { 1.0 / (1 + i + j) as f64 }, 0.0));
    let b: Vec<T> = matrix(n, n, |_, _| (rng.next(), rng.next()));
    let (mut c, mut d, mut perm) = (a.clone(), a.clone(), vec![0; n]);
    let mut s: Vec<T::Real> = Vec::with_capacity(n);
    let mut e: Vec<T::Complex> = Vec::with_capacity(n * n + n);
    let mut rows = vec![0; n];
    let read = strided(a.as_ptr(), n);
    let factor = |x: &[T]| Factor { ptr: x.as_ptr(), row: 1, col: n as isize, conj: false };
    let whole = |x: &mut [T]| x.as_mut_ptr();
    // SAFETY: the buffers have the documented sizes.
    unsafe {
        assert!(clears(|| {
            let c = Target { ptr: c.as_mut_ptr(), row: 1, col: n as isize };
            T::gemm((n, n, n), T::ONE, factor(&a), factor(&b), T::ZERO, c, Par::Seq);
        }));
        assert!(clears(|| {
            let side = (Triangle::Lower, false);
            T::triangular_solve((n, n), side, read, false, strided(c.as_mut_ptr(), n), Par::Seq);
        }));
        assert!(clears(|| T::lu((n, n), read, whole(&mut c), perm.as_mut_ptr(), Par::Seq).unwrap()));
        assert!(clears(|| T::cholesky(n, read, whole(&mut c), Par::Seq).unwrap()));
        assert!(clears(|| T::eigh(n, read, s.as_mut_ptr(), whole(&mut c), Par::Seq).unwrap()));
        assert!(clears(|| {
            let (u, s, v) = (c.as_mut_ptr(), s.as_mut_ptr(), d.as_mut_ptr());
            T::svd((n, n), read, u, s, v, Vectors::Thin, Par::Seq).unwrap();
        }));
        assert!(clears(|| {
            let (w, v) = (e.as_mut_ptr().add(n * n), e.as_mut_ptr());
            T::eig(n, strided(b.as_ptr(), n), w, v, rows.as_mut_ptr(), Par::Seq).unwrap();
        }));
    }
}

#[test]
fn the_upper_halves_of_the_registers_are_clear_after_every_routine() {
    if !processor_tells() {
        eprintln!("this processor does not tell which registers are in use");
        return;
    }
    for n in [3, 40, 160] {
        check::<f32>(n);
        check::<f64>(n);
        check::<num_complex::Complex<f32>>(n);
        check::<num_complex::Complex<f64>>(n);
    }
}
