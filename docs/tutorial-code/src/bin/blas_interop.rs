//! CBLAS and LAPACK on tenferro's storage, and tenferro's own operations on the same library.
//!
//! Needs a library to link with: `--features blas-openblas` builds OpenBLAS; with one that is installed,
//!
//! ```text
//! RUSTFLAGS='-l dylib=openblas -l dylib=lapack' \
//!     cargo run --no-default-features --features cpu-blas --bin blas_interop
//! ```

// Named so that cargo links the library that its build script has made: it has no Rust interface.
#[cfg(feature = "blas-openblas")]
use openblas_src as _;

use cblas_sys::{CBLAS_LAYOUT, CBLAS_TRANSPOSE};
use tenferro_cpu::{CpuBackend, blas};
use tenferro_linalg::prelude::*;
use tenferro_runtime::prelude::*;
use tenferro_tensor::{Error, Result, Tensor, TypedTensor};

fn main() -> Result<()> {
    product()?;
    cholesky()?;
    provider()?;
    factorizations()
}

/// BLAS takes 32-bit extents.
fn int(n: usize) -> Result<i32> {
    i32::try_from(n).map_err(|_| Error::argument("blas_interop", "extent", n, "one of 32 bits"))
}

/// `C = A B` by `dgemm`, which writes into a tensor's storage.
fn product() -> Result<()> {
    let a = TypedTensor::<f64>::from_vec_row_major([2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    let b = TypedTensor::<f64>::from_vec_row_major([3, 2], vec![7.0, 8.0, 9.0, 10.0, 11.0, 12.0])?;
    let mut c = TypedTensor::<f64>::from_vec_col_major([2, 2], vec![0.0; 4])?;
    // Column-major and compact: the leading dimension is the number of rows.
    assert!(a.is_col_major_contiguous()? && b.is_col_major_contiguous()?);
    let ([m, k], n) = ([int(a.shape()[0])?, int(a.shape()[1])?], int(b.shape()[1])?);
    let (left, right) = (a.as_slice()?, b.as_slice()?);
    // SAFETY: the slices hold m k, k n and m n elements, and only C is written.
    unsafe {
        cblas_sys::cblas_dgemm(
            CBLAS_LAYOUT::CblasColMajor,
            CBLAS_TRANSPOSE::CblasNoTrans,
            CBLAS_TRANSPOSE::CblasNoTrans,
            m,
            n,
            k,
            1.0,
            left.as_ptr(),
            m,
            right.as_ptr(),
            k,
            0.0,
            c.host_data_mut()?.as_mut_ptr(),
            m,
        );
    }
    assert_eq!(c.as_slice()?, [58.0, 139.0, 64.0, 154.0]);
    Ok(())
}

/// `A = L L^T` by `dpotrf`, in place: L is left in the lower triangle.
fn cholesky() -> Result<()> {
    let mut a = TypedTensor::<f64>::from_vec_col_major([2, 2], vec![4.0, 2.0, 2.0, 5.0])?;
    let (n, mut info) = (int(a.shape()[0])?, 0);
    // SAFETY: the buffer holds n n elements.
    unsafe { lapack::dpotrf(b'L', n, a.host_data_mut()?, n, &mut info) };
    assert_eq!(info, 0);
    let l = a.as_slice()?;
    assert_eq!((l[0], l[1], l[3]), (2.0, 1.0, 2.0));
    Ok(())
}

/// tenferro's own operations use the library, too, for matrices that are worth a call.
fn provider() -> Result<()> {
    assert_eq!(blas::installed().map(|library| library.name), Some("linked"));
    let mut cpu = CpuBackend::new();
    let n = 100;
    let a = Tensor::from_vec_col_major([n, n], (0..n * n).map(|i| (i % 7) as f64).collect::<Vec<_>>())?;
    let product = a.matmul(&a, &mut cpu)?;
    // A library in use can be taken away, or exchanged for function pointers of a host's.
    let library = blas::installed().copied();
    // SAFETY: without a library, no pointer is called.
    unsafe { blas::install(None) };
    assert!(product.allclose(&a.matmul(&a, &mut cpu)?, 1e-12, 0.0)?);
    // SAFETY: these are the linked routines.
    unsafe { blas::install(library) };
    Ok(())
}

/// The factorizations of LAPACK, too, in all four dtypes: each factors what it was given.
fn factorizations() -> Result<()> {
    let cpu = &mut CpuBackend::new();
    let n = 100;
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        let tolerance = if dtype.real() == DType::F32 { 1e-3 } else { 1e-10 };
        let close = |x: &Tensor, y: &Tensor| {
            assert!(x.allclose(y, tolerance, tolerance)?, "a factorization of {dtype}");
            Ok(())
        };
        let a = Tensor::normal(dtype, [n, n], 1)?;
        let b = Tensor::normal(dtype, [n, 2], 2)?;
        // A row of numbers multiplies the columns.
        let (u, s, vh) = a.svd(cpu)?;
        close(&u.mul(&s, cpu)?.matmul(&vh, cpu)?, &a)?;
        let (q, r) = a.qr(cpu)?;
        close(&q.matmul(&r, cpu)?, &a)?;
        close(&a.matmul(&a.solve(&b, cpu)?, cpu)?, &b)?;
        let (w, v) = a.eig(cpu)?;
        close(&a.cast(v.dtype(), cpu)?.matmul(&v, cpu)?, &v.mul(&w, cpu)?)?;
        let square = a.matmul(&adjoint(&a, cpu)?, cpu)?;
        let (w, v) = square.eigh(cpu)?;
        close(&v.mul(&w, cpu)?.matmul(&adjoint(&v, cpu)?, cpu)?, &square)?;
        let l = square.cholesky(cpu)?;
        close(&l.matmul(&adjoint(&l, cpu)?, cpu)?, &square)?;
    }
    Ok(())
}

fn adjoint(a: &Tensor, cpu: &mut CpuBackend) -> Result<Tensor> {
    a.conj(cpu)?.transpose(&[1, 0], cpu)
}
