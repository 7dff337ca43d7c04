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

/// Calls `f`, a routine of faer, and clears the upper halves of the vector registers of this thread.
///
/// faer's products are assembly that leaves them in use. From then on every SSE instruction of the thread, such as
/// those of code that is compiled for the baseline, has to wait for the old content of the register that it writes
/// (Intel 64 and IA-32 Architectures Optimization Reference Manual, "Mixing AVX Code with SSE Code"), so that small
/// operations would take half as long again until something else clears them.
#[inline(always)]
pub(crate) fn clearing<O>(f: impl FnOnce() -> O) -> O {
    let out = f();
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx")]
        fn clear() {
            std::arch::x86_64::_mm256_zeroupper();
        }
        if std::arch::is_x86_feature_detected!("avx") {
            // SAFETY: the feature is present.
            unsafe { clear() };
        }
    }
    out
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
