//! Vector registers of real numbers: AVX-512 and AVX2.

use std::arch::x86_64::*;

use crate::Real;

/// A register of `LANES` numbers `T`.
///
/// The methods are instructions of one instruction set: they are only to be called from a function that
/// [`enable`](Register::enable) calls.
pub(crate) trait Register<T: Real>: Copy {
    /// Which lanes take part in a load or a store.
    type Mask: Copy;
    /// Numbers in a register.
    const LANES: usize;
    /// Registers in a column of the largest tile.
    const HEIGHT: usize;
    /// Columns of the largest tile. Its sums, `HEIGHT` registers of A and one of B leave a register free, without
    /// which the compiler moves sums to memory and back.
    const WIDTH: usize;
    /// Whether a load under a mask costs no more than one without.
    const FREE_MASK: bool;

    /// Whether the processor has the instructions.
    fn present() -> bool;

    /// Calls `f`, compiled for the instruction set. `f` and what it calls must be `inline(always)`.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn enable<O>(f: impl FnOnce() -> O) -> O;

    /// The first `lanes` lanes.
    ///
    /// # Safety
    /// As for all of them.
    unsafe fn mask(lanes: usize) -> Self::Mask;

    /// `x` in all lanes.
    ///
    /// # Safety
    /// As for all of them.
    unsafe fn splat(x: T) -> Self;

    /// The `LANES` numbers at `from`.
    ///
    /// # Safety
    /// They can be read.
    unsafe fn load(from: *const T) -> Self;

    /// The numbers at `from` that the mask names, zero in the other lanes.
    ///
    /// # Safety
    /// They can be read.
    unsafe fn load_masked(from: *const T, mask: Self::Mask) -> Self;

    /// Writes all lanes to `to`.
    ///
    /// # Safety
    /// They can be written.
    unsafe fn store(self, to: *mut T);

    /// Writes the lanes that the mask names to `to`.
    ///
    /// # Safety
    /// They can be written.
    unsafe fn store_masked(self, to: *mut T, mask: Self::Mask);

    /// self b + c, rounded once.
    ///
    /// # Safety
    /// As for all of them.
    unsafe fn mul_add(self, b: Self, c: Self) -> Self;

    /// self + i t, of complex numbers in pairs of lanes.
    ///
    /// # Safety
    /// As for all of them.
    unsafe fn add_i(self, t: Self) -> Self;
}

/// The registers for a real type.
pub(crate) trait Registers: Real {
    type Avx512: Register<Self>;
    type Avx2: Register<Self>;
}

impl Registers for f64 {
    type Avx512 = __m512d;
    type Avx2 = __m256d;
}

impl Registers for f32 {
    type Avx512 = __m512;
    type Avx2 = __m256;
}

macro_rules! registers {
    (
        $t:ty, $register:ty, [$($feature:tt)*], $enable:literal,
        $lanes:literal, $height:literal x $width:literal, $free:literal, $mask:ty, $mask_of:expr,
        $splat:ident $load:ident $load_masked:ident $store:ident $store_masked:ident $mul_add:ident
        $add_i:expr
    ) => {
        impl Register<$t> for $register {
            type Mask = $mask;
            const LANES: usize = $lanes;
            const HEIGHT: usize = $height;
            const WIDTH: usize = $width;
            const FREE_MASK: bool = $free;

            #[inline(always)]
            fn present() -> bool {
                $(is_x86_feature_detected!($feature))&&*
            }

            #[inline(always)]
            unsafe fn enable<O>(f: impl FnOnce() -> O) -> O {
                // Not inlined: a tile is compiled once, however many places call it.
                #[inline(never)]
                #[target_feature(enable = $enable)]
                unsafe fn enabled<O>(f: impl FnOnce() -> O) -> O {
                    f()
                }
                // SAFETY: the caller's promise.
                unsafe { enabled(f) }
            }

            // The masks of AVX-512 are numbers, for which nothing is unsafe.
            #[allow(unused_unsafe)]
            #[inline(always)]
            unsafe fn mask(lanes: usize) -> Self::Mask {
                // SAFETY: the caller's promise.
                unsafe { ($mask_of)(lanes) }
            }

            #[inline(always)]
            unsafe fn splat(x: $t) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $splat(x) }
            }

            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $load(from) }
            }

            #[inline(always)]
            unsafe fn load_masked(from: *const $t, mask: Self::Mask) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $load_masked(mask, from) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                // SAFETY: the caller's promise.
                unsafe { $store(to, self) }
            }

            #[inline(always)]
            unsafe fn store_masked(self, to: *mut $t, mask: Self::Mask) {
                // SAFETY: the caller's promise.
                unsafe { $store_masked(to, mask, self) }
            }

            #[inline(always)]
            unsafe fn mul_add(self, b: Self, c: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $mul_add(self, b, c) }
            }

            #[inline(always)]
            unsafe fn add_i(self, t: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { ($add_i)(self, t) }
            }
        }
    };
}

/// `_mm256_maskload_pd` with its arguments in the order of AVX-512.
#[inline(always)]
unsafe fn load4(mask: __m256i, from: *const f64) -> __m256d {
    // SAFETY: the caller's promise.
    unsafe { _mm256_maskload_pd(from, mask) }
}

/// As [`load4`].
#[inline(always)]
unsafe fn load8(mask: __m256i, from: *const f32) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe { _mm256_maskload_ps(from, mask) }
}

registers!(
    f64, __m512d, ["avx512f" "avx2" "fma"], "avx512f",
    8, 4 x 6, true, __mmask8, |lanes: usize| 0xff >> (8 - lanes),
    _mm512_set1_pd _mm512_loadu_pd _mm512_maskz_loadu_pd _mm512_storeu_pd _mm512_mask_storeu_pd
    _mm512_fmadd_pd
    |s: Self, t: Self| _mm512_fmaddsub_pd(s, _mm512_set1_pd(1.0), _mm512_permute_pd::<0b0101_0101>(t))
);
registers!(
    f32, __m512, ["avx512f" "avx2" "fma"], "avx512f",
    16, 4 x 6, true, __mmask16, |lanes: usize| 0xffff >> (16 - lanes),
    _mm512_set1_ps _mm512_loadu_ps _mm512_maskz_loadu_ps _mm512_storeu_ps _mm512_mask_storeu_ps
    _mm512_fmadd_ps
    |s: Self, t: Self| _mm512_fmaddsub_ps(s, _mm512_set1_ps(1.0), _mm512_permute_ps::<0b10_11_00_01>(t))
);
registers!(
    f64, __m256d, ["avx2" "fma"], "avx2,fma",
    4, 2 x 6, false, __m256i,
    |lanes: usize| _mm256_cmpgt_epi64(_mm256_set1_epi64x(lanes as i64), _mm256_set_epi64x(3, 2, 1, 0)),
    _mm256_set1_pd _mm256_loadu_pd load4 _mm256_storeu_pd _mm256_maskstore_pd _mm256_fmadd_pd
    |s: Self, t: Self| _mm256_addsub_pd(s, _mm256_permute_pd::<0b0101>(t))
);
registers!(
    f32, __m256, ["avx2" "fma"], "avx2,fma",
    8, 2 x 6, false, __m256i,
    |lanes: usize| {
        _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes as i32), _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0))
    },
    _mm256_set1_ps _mm256_loadu_ps load8 _mm256_storeu_ps _mm256_maskstore_ps _mm256_fmadd_ps
    |s: Self, t: Self| _mm256_addsub_ps(s, _mm256_permute_ps::<0b10_11_00_01>(t))
);
