//! One plain loop, compiled for several instruction sets and chosen at run time.
//!
//! [`vectorized`] calls its closure inside a function compiled for AVX-512 or AVX2, whichever the processor
//! has. The closure must be written `#[inline(always)] move || ..`: inlined, its body takes on those
//! features; with `move` the compiler knows that no store of the loop changes the pointers it captured. Loops
//! over slices or raw pointers are then vectorised at that width. On other architectures the baseline is
//! already the best that may be assumed (NEON on aarch64) and the closure is called as it is.
//!
//! Invariant: the result does not depend on the instruction set. Rust neither contracts `a * b + c` to a
//! fused operation nor reorders floating-point sums, so every version does the same arithmetic in the same
//! order.

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::sync::atomic::{AtomicU8, Ordering};

    const UNKNOWN: u8 = 0;
    const BASELINE: u8 = 1;
    pub(super) const AVX2: u8 = 2;
    pub(super) const AVX512: u8 = 3;

    static LEVEL: AtomicU8 = AtomicU8::new(UNKNOWN);

    #[inline(always)]
    pub(super) fn level() -> u8 {
        // Racing threads store the same value, so no ordering is needed.
        match LEVEL.load(Ordering::Relaxed) {
            UNKNOWN => detect(),
            level => level,
        }
    }

    #[cold]
    fn detect() -> u8 {
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt");
        let avx512 = avx2
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        let level = if avx512 {
            AVX512
        } else if avx2 {
            AVX2
        } else {
            BASELINE
        };
        LEVEL.store(level, Ordering::Relaxed);
        level
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt")]
    pub(super) fn avx512<R>(f: impl FnOnce() -> R) -> R {
        f()
    }

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt")]
    pub(super) fn avx2<R>(f: impl FnOnce() -> R) -> R {
        f()
    }
}

/// `f()`, compiled for the widest instruction set of this processor.
///
/// `n` is the number of elements the loop visits: short loops run in the baseline version, which saves the
/// call.
#[inline(always)]
pub(crate) fn vectorized<R>(n: usize, f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if n >= 16 {
        match x86::level() {
            // SAFETY: `level` found every feature that this version is compiled with.
            x86::AVX512 => return unsafe { x86::avx512(f) },
            // SAFETY: as above.
            x86::AVX2 => return unsafe { x86::avx2(f) },
            _ => {}
        }
    }
    let _ = n;
    f()
}

/// Whether the AVX-512 (F, BW, CD, DQ, VL) versions are in use; the hand-written kernels ask.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn has_avx512() -> bool {
    x86::level() == x86::AVX512
}

/// Whether at least the AVX2 versions are in use.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn has_avx2() -> bool {
    x86::level() >= x86::AVX2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_rounds_products_before_adding() {
        // x * x - 1 with x = 1 + 2^-30: the product rounds to 1 + 2^-29, a fused one would keep 2^-60.
        let x = 1.0 + 2f64.powi(-30);
        let mut y = [0.0; 40];
        let z = [x; 40];
        vectorized(
            40,
            #[inline(always)]
            || {
                for (y, &z) in y.iter_mut().zip(&z) {
                    *y = z * z - 1.0;
                }
            },
        );
        assert_eq!(y, [2f64.powi(-29); 40]);
    }
}
