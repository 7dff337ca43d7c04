//! Tensors without differentiation: each call takes the backend that it runs on.

use tenferro_cpu::{CpuBackend, with_cpu_exec_session};
use tenferro_linalg::prelude::*;
use tenferro_runtime::{TensorRead, TensorView, prelude::*};

fn main() -> tenferro_runtime::Result<()> {
    let mut cpu = CpuBackend::new();

    // Column-major: the first column is [4, 3], the second [0, -5].
    let a = TypedTensor::<f64>::from_vec_col_major([2, 2], vec![4.0, 3.0, 0.0, -5.0])?;
    let gram = a.transpose(&[1, 0], &mut cpu)?.matmul(&a, &mut cpu)?;
    assert_eq!(gram.host_data()?, [25.0, -15.0, -15.0, 25.0]);

    // The squares of the singular values of A are the eigenvalues of its Gram matrix, 40 and 10.
    let (_, s, _) = a.svd(&mut cpu)?;
    assert_close(s.as_slice()?, &[40.0_f64.sqrt(), 10.0_f64.sqrt()]);

    // The same on a borrowed view, which is not copied, in a session of the backend.
    let factors = cpu.with_backend_session(|session| {
        with_cpu_exec_session(session, |exec| {
            exec.svd_read(TensorRead::from_view(TensorView::F64(gram.as_view())))
        })
        .expect("a session of a CpuBackend has a CPU execution session")
    })?;
    assert_eq!(factors.iter().map(Tensor::shape).collect::<Vec<_>>(), [&[2, 2][..], &[2], &[2, 2]]);
    assert_close(factors[1].as_slice::<f64>()?, &[40.0, 10.0]);

    // The element type may also be known at run time only.
    let b = Tensor::from_vec_col_major([2], vec![8.0, -4.0])?;
    let x = a.into_tensor().solve(&b.into_shape([2, 1])?, &mut cpu)?;
    assert_close(x.as_slice::<f64>()?, &[2.0, 2.0]);

    println!("singular values {:?}, solution {:?}", s.as_slice()?, x.as_slice::<f64>()?);
    Ok(())
}

fn assert_close(actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len());
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
    assert!(actual.iter().zip(expected).all(close), "got {actual:?}, expected {expected:?}");
}
