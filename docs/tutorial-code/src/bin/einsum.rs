//! Einstein summation: letters, numbers and ncon labels, the order of contraction, prepared plans,
//! derivatives.

use tenferro_ad::EagerTensorAdExt;
use tenferro_cpu::CpuBackend;
use tenferro_einsum::prelude::*;
use tenferro_runtime::{EagerRuntime, EagerTensor, TypedTensor, TypedTensorOps};
use tenferro_tensor::{Error, Result};

fn main() -> Result<()> {
    let mut cpu = CpuBackend::new();
    notations(&mut cpu)?;
    orders(&mut cpu)?;
    prepared(&mut cpu)?;
    gradient(&cpu)
}

/// One contraction in three notations, and what letters can say.
fn notations(cpu: &mut CpuBackend) -> Result<()> {
    let a = TypedTensor::from_vec_row_major([2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    let b = TypedTensor::from_vec_row_major([3, 2], vec![7.0, 8.0, 9.0, 10.0, 11.0, 12.0])?;
    let product = TypedTensor::einsum("ij,jk->ik", &[&a, &b], cpu)?;
    assert_eq!(product.as_slice()?, [58.0, 139.0, 64.0, 154.0]);
    // Numbers are labels made by a program; ncon contracts positive labels and leaves -1, -2, .. open.
    assert_eq!(TypedTensor::einsum_labels(&[&[0, 7], &[7, 1]], &[0, 1], &[&a, &b], cpu)?, product);
    assert_eq!(TypedTensor::ncon(&[&[-1, 1], &[1, -2]], &[&a, &b], cpu)?, product);

    // A trace, a diagonal, a sum; axes that are not named stand in the ellipsis.
    assert_eq!(TypedTensor::einsum("ii->", &[&product], cpu)?.item()?, 212.0);
    assert_eq!(TypedTensor::einsum("ii->i", &[&product], cpu)?.as_slice()?, [58.0, 154.0]);
    assert_eq!(TypedTensor::einsum("ij->j", &[&a], cpu)?.as_slice()?, [5.0, 7.0, 9.0]);
    assert_eq!(TypedTensor::einsum("...j->j...", &[&a], cpu)?, a.transpose(&[1, 0], cpu)?);

    // What does not fit is an error that names the label. An extent 1 is repeated, but not in a network.
    let one = TypedTensor::from_vec_col_major([1, 2], vec![1.0, 10.0])?;
    assert_eq!(TypedTensor::einsum("ij,jk->ik", &[&a, &one], cpu)?.as_slice()?, [6.0, 15.0, 60.0, 150.0]);
    let error = TypedTensor::ncon(&[&[-1, 1], &[1, -2]], &[&a, &one], cpu).unwrap_err();
    assert!(matches!(error, Error::Shape(_)));
    assert_eq!(error.to_string(), "ncon: extent of label 1 in operand 1: got 1, expected 3 as in operand 0");
    Ok(())
}

/// The order of contraction is looked for, written down, or said by parentheses.
fn orders(cpu: &mut CpuBackend) -> Result<()> {
    let shapes: [&[usize]; 3] = [&[100, 100], &[100, 100], &[100, 1]];
    let chain = Einsum::parse("ij,jk,kl->il")?;
    let best = chain.plan(&shapes)?;
    assert_eq!(best.path(), [(1, 2), (0, 1)]);
    println!("{best}");
    let from_the_left = Einsum::parse("(ij,jk),kl->il")?;
    assert_eq!(from_the_left.plan(&shapes)?.path(), [(0, 1), (0, 1)]);
    assert!(from_the_left.plan(&shapes)?.flops() > 50.0 * best.flops());
    // The same by a path, as opt_einsum and JAX have it; other ways are `Greedy`, `Optimal` and `TreeSA`.
    let path = chain.optimized(Optimize::path([(0, 1), (0, 1)]))?;
    let x = shapes.map(|shape| TypedTensor::<f64>::full(shape, 0.1));
    let [a, b, c] = [&x[0], &x[1], &x[2]].map(|x| x.as_ref().expect("it fits in memory"));
    let y = [&chain, &from_the_left, &path].map(|einsum| TypedTensor::einsum(einsum, &[a, b, c], cpu));
    for y in y {
        assert!(y?.as_slice()?.iter().all(|v| (v - 10.0).abs() < 1e-12));
    }
    Ok(())
}

/// What depends on labels and extents alone is done once; results go into new tensors, or are added up.
fn prepared(cpu: &mut CpuBackend) -> Result<()> {
    let product = Einsum::parse("ij,jk->ik")?.prepare(&[&[2, 2], &[2, 2]])?;
    println!("{product}");
    assert_eq!(product.plan().flops(), 16.0);
    let a = TypedTensor::from_vec_col_major([2, 2], vec![0.0, 1.0, 1.0, 0.0])?;
    let mut y = TypedTensor::from_vec_col_major([2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
    for _ in 0..2 {
        y = product.run_typed(&[&a, &y], cpu)?;
    }
    assert_eq!(y.as_slice()?, [1.0, 2.0, 3.0, 4.0]);
    // y <- 2 a a - y.
    product.accumulate(2.0, &[(&a).into(), (&a).into()], -1.0, y.as_view_mut()?.into(), cpu)?;
    assert_eq!(y.as_slice()?, [1.0, -2.0, -3.0, -2.0]);
    Ok(())
}

/// Einsums are differentiable, to any order.
fn gradient(cpu: &CpuBackend) -> Result<()> {
    let runtime = EagerRuntime::new(cpu);
    let a = runtime.from_vec_col_major([2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
    let x = runtime.from_vec_col_major([2], vec![1.0, 1.0])?.requires_grad()?;
    // x^T A x has the gradient (A + A^T) x.
    EagerTensor::einsum("i,ij,j->", &[&x, &a, &x])?.backward()?;
    let gradient = x.grad().expect("the form depends on x").to_tensor()?;
    assert_eq!(gradient.as_slice::<f64>()?, [7.0, 13.0]);
    println!("gradient {:?}", gradient.as_slice::<f64>()?);
    Ok(())
}
