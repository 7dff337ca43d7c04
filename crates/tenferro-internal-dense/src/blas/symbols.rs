//! The names that Fortran compilers give the routines of [`abi`](super::abi): linked with the program, or looked
//! up while it runs.

use std::{ffi::c_void, mem::transmute};

use num_complex::Complex;

use super::{Blas, MIN_ORDER, Routines};

/// What finds the address of a symbol, or null.
type Find<'a> = &'a mut dyn FnMut(&'static str) -> *const c_void;

/// The routines of an element type by their names.
macro_rules! named {
    ($resolve:ident, $table:ident: $t:ty; $($field:ident = $name:ident($($arg:ty),*),)*) => {
        #[cfg(feature = "blas")]
        unsafe extern "C" {
            $(fn $name($(_: $arg),*);)*
        }
        #[cfg(feature = "blas")]
        const $table: Routines<$t> = Routines { $($field: Some($name)),* };

        /// # Safety
        /// As for [`Blas::resolve`].
        unsafe fn $resolve(find: Find<'_>) -> Routines<$t> {
            // SAFETY: an `Option` of a function pointer is a pointer that may be null, and the caller vouches that
            // what is found is the routine.
            unsafe {
                Routines {
                    $($field: transmute::<*const c_void, Option<unsafe extern "C" fn($($arg),*)>>(find(
                        stringify!($name),
                    ))),*
                }
            }
        }
    };
}

type Text = *const u8;
type Int = *const i32;
type Info = *mut i32;

/// Those of a real and of its complex type, which differ in workspace.
macro_rules! precision {
    ($r:ty;
     $real:ident $REAL:ident $gemm:ident $trsm:ident $getrf:ident $potrf:ident $geqrf:ident $orgqr:ident
     $gesdd:ident $syevd:ident $geev:ident;
     $complex:ident $COMPLEX:ident $cgemm:ident $ctrsm:ident $cgetrf:ident $cpotrf:ident $cgeqrf:ident $cungqr:ident
     $cgesdd:ident $cheevd:ident $cgeev:ident) => {
        precision! { @same $r, $real, $REAL;
            $gemm $trsm $getrf $potrf $geqrf $orgqr;
            gesdd = $gesdd(Text, Int, Int, *mut $r, Int, *mut $r, *mut $r, Int, *mut $r, Int, *mut $r, Int, Info, Info),
            heevd = $syevd(Text, Text, Int, *mut $r, Int, *mut $r, *mut $r, Int, Info, Int, Info),
            geev = $geev(
                Text, Text, Int, *mut $r, Int, *mut $r, *mut $r, *mut $r, Int, *mut $r, Int, *mut $r, Int, Info
            ),
        }
        precision! { @same Complex<$r>, $complex, $COMPLEX;
            $cgemm $ctrsm $cgetrf $cpotrf $cgeqrf $cungqr;
            gesdd = $cgesdd(
                Text, Int, Int, *mut Complex<$r>, Int, *mut $r, *mut Complex<$r>, Int, *mut Complex<$r>, Int,
                *mut Complex<$r>, Int, *mut $r, Info, Info
            ),
            heevd = $cheevd(
                Text, Text, Int, *mut Complex<$r>, Int, *mut $r, *mut Complex<$r>, Int, *mut $r, Int, Info, Int, Info
            ),
            geev = $cgeev(
                Text, Text, Int, *mut Complex<$r>, Int, *mut Complex<$r>, *mut Complex<$r>, Int, *mut Complex<$r>, Int,
                *mut Complex<$r>, Int, *mut $r, Info
            ),
        }
    };
    (@same $t:ty, $resolve:ident, $table:ident;
     $gemm:ident $trsm:ident $getrf:ident $potrf:ident $geqrf:ident $orgqr:ident; $($rest:tt)*) => {
        named! { $resolve, $table: $t;
            gemm = $gemm(
                Text, Text, Int, Int, Int, *const $t, *const $t, Int, *const $t, Int, *const $t, *mut $t, Int
            ),
            trsm = $trsm(Text, Text, Text, Text, Int, Int, *const $t, *const $t, Int, *mut $t, Int),
            getrf = $getrf(Int, Int, *mut $t, Int, Info, Info),
            potrf = $potrf(Text, Int, *mut $t, Int, Info),
            geqrf = $geqrf(Int, Int, *mut $t, Int, *mut $t, *mut $t, Int, Info),
            orgqr = $orgqr(Int, Int, Int, *mut $t, Int, *const $t, *mut $t, Int, Info),
            $($rest)*
        }
    };
}

precision! { f32;
    single S sgemm_ strsm_ sgetrf_ spotrf_ sgeqrf_ sorgqr_ sgesdd_ ssyevd_ sgeev_;
    complex_single C cgemm_ ctrsm_ cgetrf_ cpotrf_ cgeqrf_ cungqr_ cgesdd_ cheevd_ cgeev_
}
precision! { f64;
    double D dgemm_ dtrsm_ dgetrf_ dpotrf_ dgeqrf_ dorgqr_ dgesdd_ dsyevd_ dgeev_;
    complex_double Z zgemm_ ztrsm_ zgetrf_ zpotrf_ zgeqrf_ zungqr_ zgesdd_ zheevd_ zgeev_
}

/// The library that the program is linked with.
#[cfg(feature = "blas")]
pub(super) static LINKED: Blas = Blas { name: "linked", min_order: MIN_ORDER, s: S, d: D, c: C, z: Z };

/// See [`Blas::resolve`].
///
/// # Safety
/// Stated there.
pub(super) unsafe fn resolve(name: &'static str, find: Find<'_>) -> Blas {
    // SAFETY: the caller's promise.
    unsafe {
        let (s, d, c, z) = (single(find), double(find), complex_single(find), complex_double(find));
        Blas { name, min_order: MIN_ORDER, s, d, c, z }
    }
}
