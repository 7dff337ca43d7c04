//! Own loops, compiled for the baseline and for wider registers, and chosen at run time.

/// Calls `f`, compiled for AVX2 where the machine has it. `f` and what it calls must be `inline(always)`.
/// No fused operations: results are the same on every machine.
#[inline(always)]
pub(crate) fn vectorised<O>(f: impl FnOnce() -> O) -> O {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        unsafe fn avx2<O>(f: impl FnOnce() -> O) -> O {
            f()
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the feature is present.
            return unsafe { avx2(f) };
        }
    }
    f()
}

/// A loop nest to be compiled for several instruction sets. `FMA` says that fused multiplication-addition is
/// one instruction.
pub(crate) trait Loops {
    /// # Safety
    /// What the implementor's memory needs.
    unsafe fn run<const FMA: bool>(self);
}

/// Runs the loops with the widest registers of the machine.
///
/// # Safety
/// As for [`Loops::run`].
#[inline(always)]
pub(crate) unsafe fn dispatch<L: Loops>(loops: L) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2<L: Loops>(loops: L) {
            // SAFETY: the caller's promise.
            unsafe { loops.run::<true>() }
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: the features are present; memory is the caller's promise.
            return unsafe { avx2(loops) };
        }
    }
    // SAFETY: the caller's promise.
    unsafe { loops.run::<{ cfg!(target_arch = "aarch64") }>() }
}
