//! BLAS and LAPACK in front of the routines of this crate.
//!
//! A [`Blas`] is a table of function pointers. With the feature `blas` it holds the symbols that the program is
//! linked with; a host that brings its own library [`install`]s a table while the program runs. Every routine
//! of [`Dense`](crate::Dense) asks the table first, and does the work itself where the table has no pointer,
//! where the matrix is smaller than [`Blas::min_order`], or where its strides are none that BLAS can address.
//!
//! Invariant: nothing here decides what a routine means. Inputs are checked, scaled and copied by the caller
//! as for the own routines, and a routine of LAPACK that reports failure is one that was not there.

mod abi;
mod eigen;
mod factor;
mod product;
mod symbols;
mod work;

use std::sync::atomic::{AtomicPtr, Ordering};

use num_complex::Complex;

pub(crate) use eigen::{Eigen, eig, eigh, has_eig, has_eigh};
pub(crate) use factor::{Svd, cholesky, has_lu, has_qr, has_svd, lu, reflections, reflectors, svd};
pub(crate) use product::{gemm, trsm};

pub use abi::{
    Abi, ComplexGeev, ComplexGesdd, ComplexHeevd, Gemm, Geqrf, Getrf, Orgqr, Potrf, RealGeev, RealGesdd,
    RealHeevd, Trsm,
};

/// The routines of one element type. What is missing is done without.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Routines<T: Abi> {
    /// Products of matrices.
    pub gemm: Option<Gemm<T>>,
    /// Triangular systems.
    pub trsm: Option<Trsm<T>>,
    /// LU factorization with partial pivoting.
    pub getrf: Option<Getrf<T>>,
    /// Cholesky factorization.
    pub potrf: Option<Potrf<T>>,
    /// QR factorization; used with `orgqr` only.
    pub geqrf: Option<Geqrf<T>>,
    /// The Q of a QR factorization.
    pub orgqr: Option<Orgqr<T>>,
    /// Singular value decomposition.
    pub gesdd: Option<T::Gesdd>,
    /// Eigenvalues and vectors of Hermitian matrices.
    pub heevd: Option<T::Heevd>,
    /// Eigenvalues and vectors of general matrices.
    pub geev: Option<T::Geev>,
}

impl<T: Abi> Routines<T> {
    /// None.
    pub const NONE: Self = Routines {
        gemm: None,
        trsm: None,
        getrf: None,
        potrf: None,
        geqrf: None,
        orgqr: None,
        gesdd: None,
        heevd: None,
        geev: None,
    };
}

/// A BLAS and LAPACK library: for each element type, what it has.
///
/// # Safety
/// Whoever makes a table that is [`install`]ed vouches that each pointer is the routine of its field's name, with
/// 32-bit integers, callable from any thread at any time.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Blas {
    /// What it is called in messages.
    pub name: &'static str,
    /// Matrices whose largest extent is smaller are not handed over: own loops are faster.
    pub min_order: usize,
    /// Of `f32`.
    pub s: Routines<f32>,
    /// Of `f64`.
    pub d: Routines<f64>,
    /// Of `Complex<f32>`.
    pub c: Routines<Complex<f32>>,
    /// Of `Complex<f64>`.
    pub z: Routines<Complex<f64>>,
}

impl Blas {
    /// A library without routines, to be filled in.
    pub const fn new(name: &'static str) -> Self {
        let min_order = MIN_ORDER;
        Blas { name, min_order, s: Routines::NONE, d: Routines::NONE, c: Routines::NONE, z: Routines::NONE }
    }
}

impl Blas {
    /// The library whose symbols (`dgemm_`, `zgetrf_`, ..) `find` gives the addresses of, null for those it lacks.
    ///
    /// # Safety
    /// Each address is that of the Fortran routine of that name, with 32-bit integers, callable from any thread for
    /// as long as the process lives.
    pub unsafe fn resolve(
        name: &'static str,
        mut find: impl FnMut(&'static str) -> *const std::ffi::c_void,
    ) -> Blas {
        // SAFETY: the caller's promise.
        unsafe { symbols::resolve(name, &mut find) }
    }
}

/// Below this order the own loops are faster than any library, whose calls check and dispatch first.
const MIN_ORDER: usize = 32;

#[cfg(feature = "blas")]
static TABLE: AtomicPtr<Blas> = AtomicPtr::new((&raw const symbols::LINKED).cast_mut());
#[cfg(not(feature = "blas"))]
static TABLE: AtomicPtr<Blas> = AtomicPtr::new(std::ptr::null_mut());

/// From now on every routine asks `blas` first; `None` takes the present library away. A table lives as long as
/// the process, since calls may be under way.
///
/// # Safety
/// As [`Blas`] says.
pub unsafe fn install(blas: Option<Blas>) {
    let table = blas.map_or(std::ptr::null_mut(), |blas| std::ptr::from_mut(Box::leak(Box::new(blas))));
    TABLE.store(table, Ordering::Release);
}

/// The library in use.
#[inline]
pub fn installed() -> Option<&'static Blas> {
    // SAFETY: the pointer is null or that of a table that is never freed or written.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }
}

/// An element type with its part of the table.
pub(crate) trait Library: Abi {
    fn routines(blas: &'static Blas) -> &'static Routines<Self>;
}

macro_rules! library {
    ($($t:ty, $field:ident;)*) => {$(
        impl Library for $t {
            #[inline]
            fn routines(blas: &'static Blas) -> &'static Routines<Self> {
                &blas.$field
            }
        }
    )*};
}

library!(f32, s; f64, d; Complex<f32>, c; Complex<f64>, z;);

/// The routines for a matrix whose largest extent is `order`, if there are any.
#[inline]
fn routines<T: Library>(order: usize) -> Option<&'static Routines<T>> {
    installed().filter(|blas| order >= blas.min_order).map(T::routines)
}

/// Extents as BLAS takes them.
fn ints<const N: usize>(extents: [usize; N]) -> Option<[i32; N]> {
    let mut ints = [0; N];
    for (to, from) in ints.iter_mut().zip(extents) {
        *to = i32::try_from(from).ok()?;
    }
    Some(ints)
}
