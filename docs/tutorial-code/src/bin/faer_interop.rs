//! faer on the memory of tensors: both are column-major, so nothing is copied.

use faer::{
    Accum, Mat, MatMut, MatRef, Par,
    linalg::{matmul::matmul, solvers::Solve},
};
use tenferro_cpu::{CpuBackend, FaerParallelismExt};
use tenferro_tensor::{
    BackendStorage, BackendStorageHandle, DeviceId, DeviceKind, MemoryKind, Placement, Result, StorageBuffer,
    TypedTensor, TypedTensorView,
};

fn main() -> Result<()> {
    product_of_borrowed_matrices()?;
    scaling_in_place()?;
    solution_of_a_system()?;
    a_transposed_view_is_not_a_slice()?;
    memory_of_a_device_is_not_borrowed()?;
    the_threads_of_a_session()?;
    println!("faer works on the tensors' memory");
    Ok(())
}

/// The matrix [[1, 2, 3], [4, 5, 6]].
fn two_by_three() -> Result<TypedTensor<f64>> {
    TypedTensor::from_vec_col_major([2, 3], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0])
}

/// A matrix as faer sees it.
fn borrowed(a: &TypedTensor<f64>) -> Result<MatRef<'_, f64>> {
    Ok(MatRef::from_column_major_slice(a.as_slice()?, a.shape()[0], a.shape()[1]))
}

fn product_of_borrowed_matrices() -> Result<()> {
    let a = two_by_three()?;
    let b = TypedTensor::from_vec_col_major([3, 2], vec![7.0, 9.0, 11.0, 8.0, 10.0, 12.0])?;
    // What `as_slice` asks for, and where the memory is.
    assert!(a.is_col_major_contiguous()?);
    assert_eq!(a.placement().memory_kind, MemoryKind::UnpinnedHost);

    let (left, right) = (borrowed(&a)?, borrowed(&b)?);
    assert_eq!(left.as_ptr(), a.as_slice()?.as_ptr());
    assert_eq!(left[(1, 2)], 6.0);
    let mut c = Mat::zeros(2, 2);
    matmul(c.as_mut(), Accum::Replace, left, right, 1.0, Par::Seq);
    for (i, j, expected) in [(0, 0, 58.0), (1, 0, 139.0), (0, 1, 64.0), (1, 1, 154.0)] {
        assert_close(c[(i, j)], expected);
    }
    Ok(())
}

fn scaling_in_place() -> Result<()> {
    let mut x = TypedTensor::<f64>::from_vec_col_major([2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
    let view: MatMut<'_, f64> = MatMut::from_column_major_slice_mut(x.host_data_mut()?, 2, 2);
    for column in view.col_iter_mut() {
        column.iter_mut().for_each(|element| *element *= 2.0);
    }
    // The view is gone, so the tensor can be read again: it holds what was written.
    assert_eq!(x.as_slice()?, [2.0, 4.0, 6.0, 8.0]);
    Ok(())
}

fn solution_of_a_system() -> Result<()> {
    let a = TypedTensor::from_vec_col_major([2, 2], vec![3.0, 1.0, 1.0, 2.0])?;
    let mut x = TypedTensor::<f64>::from_vec_col_major([2, 1], vec![5.0, 4.0])?;
    let matrix = borrowed(&a)?;
    // The right-hand side becomes the solution, in the tensor's memory.
    matrix.partial_piv_lu().solve_in_place(MatMut::from_column_major_slice_mut(x.host_data_mut()?, 2, 1));
    let x = x.as_slice()?;
    assert_close(x[0], 1.2);
    assert_close(x[1], 1.4);
    assert_close(matrix[(0, 0)] * x[0] + matrix[(0, 1)] * x[1], 5.0);
    assert_close(matrix[(1, 0)] * x[0] + matrix[(1, 1)] * x[1], 4.0);
    Ok(())
}

fn a_transposed_view_is_not_a_slice() -> Result<()> {
    let a = two_by_three()?;
    let transposed: TypedTensorView<'_, f64> = a.as_view().transpose_view([1, 0])?;
    assert!(!transposed.is_col_major_contiguous()?);
    let refused = transposed.as_slice().unwrap_err().to_string();
    assert!(refused.contains("not slice-contiguous"), "{refused}");

    // Who wants compact memory asks for the copy.
    let read = transposed.into_tensor_read()?;
    let compact = CpuBackend::new().with_backend_session(|session| session.to_contiguous_read(read))?;
    let compact = compact.as_typed::<f64>().expect("a copy has the dtype of the original");
    assert!(compact.is_col_major_contiguous()?);
    assert_eq!(compact.as_slice()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    Ok(())
}

fn memory_of_a_device_is_not_borrowed() -> Result<()> {
    let buffer: Box<dyn BackendStorage<f64>> = Box::new(BackendStorageHandle::<f64>::new_with_len(1, 4));
    let elsewhere = Placement {
        memory_kind: MemoryKind::Device,
        device: Some(DeviceId { kind: DeviceKind::Other("somewhere".into()), ordinal: 0 }),
        cpu_affinity: None,
    };
    let a: TypedTensor<f64> =
        TypedTensor::from_buffer_col_major([2, 2], StorageBuffer::Backend(buffer), elsewhere)?;
    assert_eq!(a.placement().memory_kind, MemoryKind::Device);
    let refused = a.as_slice().unwrap_err().to_string();
    assert!(refused.contains("backend storage cannot be borrowed as host data"), "{refused}");
    Ok(())
}

fn the_threads_of_a_session() -> Result<()> {
    let n = 64;
    let a = TypedTensor::<f64>::from_fn([n, n], |i| (i[0] + 2 * i[1]) as f64)?;
    for threads in [1, 2] {
        let mut c = TypedTensor::<f64>::zeros([n, n])?;
        let product = MatMut::from_column_major_slice_mut(c.host_data_mut()?, n, n);
        let a = borrowed(&a)?;
        // faer works in the backend's pool, on no more threads than the backend has.
        CpuBackend::with_threads(threads).with_backend_session(|session| {
            session.with_faer_parallelism(|parallel| {
                assert_eq!(parallel.degree(), threads);
                matmul(product, Accum::Replace, a, a, 1.0, parallel);
                Ok(())
            })
        })?;
        let expected: usize = (0..n).map(|k| (1 + 2 * k) * (k + 4)).sum();
        assert_close(c.as_slice()?[1 + 2 * n], expected as f64);
    }
    Ok(())
}

fn assert_close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-12, "got {actual}, expected {expected}");
}
