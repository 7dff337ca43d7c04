//! Immediate execution with gradients: the tape and the transforms of functions.

use tenferro_ad::{EagerRuntimeAdExt, EagerTensorAdExt};
use tenferro_cpu::CpuBackend;
use tenferro_linalg::prelude::*;
use tenferro_runtime::{EagerRuntime, EagerTensor, Result};

fn main() -> Result<()> {
    let runtime = EagerRuntime::new(&CpuBackend::new());

    // Gradient descent on |A x - b|^2, whose minimum is the solution of A x = b.
    let a = runtime.from_vec_col_major([2, 2], vec![2.0, 0.5, 0.5, 1.0])?;
    let b = runtime.from_vec_col_major([2, 1], vec![1.0, 2.0])?;
    let mut x = runtime.from_vec_col_major([2, 1], vec![0.0, 0.0])?.requires_grad()?;
    let mut loss = f64::INFINITY;
    for _ in 0..200 {
        let residual = (&a.matmul(&x)? - &b)?;
        let squares = (&residual * &residual)?.reduce_sum(None)?;
        squares.backward()?;
        let gradient = x.grad().expect("the loss depends on x");
        loss = squares.item()?;
        x = (&x.detach() - &(&gradient * 0.15)?)?.requires_grad()?;
    }
    assert!(loss < 1e-24, "the loss is {loss}");
    let solution = a.solve(&b)?;
    assert_close(&x, solution.to_tensor()?.as_slice()?, 1e-10)?;

    // Gradients add up over calls, until they are cleared.
    let y = runtime.from_vec_col_major([2], vec![3.0, -1.0])?.requires_grad()?;
    for _ in 0..2 {
        (&y * &y)?.reduce_sum(None)?.backward()?;
    }
    assert_close(&y.grad().expect("collected twice"), &[12.0, -4.0], 0.0)?;
    y.clear_grad();
    assert!(y.grad().is_none());

    // Transforms of a function. The sum of the singular values of a positive definite matrix is its trace, so its
    // gradient is the identity.
    let trace_norm = |a: &EagerTensor| a.svd()?.1.reduce_sum(None);
    let (value, gradient) = runtime.value_and_grad(trace_norm, &a)?;
    assert_close(&value, &[3.0], 1e-12)?;
    assert_close(&gradient, &[1.0, 0.0, 0.0, 1.0], 1e-12)?;

    // f(y) = y^3: the Jacobian is diagonal with 3 y^2, the Hessian of its sum with 6 y.
    let cube = |y: &EagerTensor| &(y * y)? * y;
    let t = runtime.from_vec_col_major([2], vec![1.0, 10.0])?;
    let y = y.detach();
    assert_close(&runtime.jvp(cube, &y, &t)?.1, &[27.0, 30.0], 1e-12)?;
    assert_close(&runtime.vjp(cube, &y, &t)?.1, &[27.0, 30.0], 1e-12)?;
    assert_close(&runtime.hvp(|y| cube(y)?.reduce_sum(None), &y, &t)?, &[18.0, -60.0], 1e-12)?;

    println!("solution {:?}", solution.to_tensor()?.as_slice::<f64>()?);
    Ok(())
}

fn assert_close(actual: &EagerTensor, expected: &[f64], tolerance: f64) -> Result<()> {
    let actual = actual.to_tensor()?;
    let actual = actual.as_slice::<f64>()?;
    assert_eq!(actual.len(), expected.len());
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance;
    assert!(actual.iter().zip(expected).all(close), "got {actual:?}, expected {expected:?}");
    Ok(())
}
