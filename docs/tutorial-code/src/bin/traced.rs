//! Programs: traced once, differentiated and compiled once, and run on data of any extent.

use tenferro_ad::TracedTensorAdExt;
use tenferro_cpu::{CpuBackend, runtime_engine_registration};
use tenferro_runtime::{DType, Dim, GraphCompiler, Runtime, Tensor, TracedTensor};

fn main() -> tenferro_runtime::Result<()> {
    // The energy of a chain of n sites in a quartic well, sum(x^4 / 4 - x^2 / 2), and its derivatives.
    let sites = [Dim::symbol("n")];
    let x = TracedTensor::input(DType::F64, &sites);
    let v = TracedTensor::input(DType::F64, &sites);
    let square = (&x * &x)?;
    let energy = (&(&(&square * &square)? * 0.25)? - &(&square * 0.5)?)?.reduce_sum(None)?;
    let force = energy.grad(&x)?;
    let curvature = energy.hvp(&x, &v)?;
    let program = GraphCompiler::new().compile_with(&[&x, &v], &[&energy, &force, &curvature])?;

    let mut builder = Runtime::builder();
    builder.register_engine(runtime_engine_registration(&CpuBackend::new())?)?;
    let runtime = builder.build()?;

    for positions in [vec![1.0, 2.0], vec![-1.0, 0.5, 0.0, 3.0]] {
        let ones = Tensor::from_vec_col_major([positions.len()], vec![1.0; positions.len()])?;
        let x = Tensor::from_vec_col_major([positions.len()], positions.clone())?;
        let out = runtime.run_compiled(&program, &[&x, &ones])?;
        // By hand: x^4 / 4 - x^2 / 2, x^3 - x and 3 x^2 - 1.
        let by_hand = |f: fn(f64) -> f64| positions.iter().map(|&x| f(x)).collect::<Vec<_>>();
        let energies = by_hand(|x| x.powi(4) / 4.0 - x * x / 2.0);
        assert_close(&[out[0].item()?], &[energies.iter().sum()]);
        assert_close(out[1].as_slice()?, &by_hand(|x| x.powi(3) - x));
        assert_close(out[2].as_slice()?, &by_hand(|x| 3.0 * x * x - 1.0));
        println!("{} sites: energy {:.6}", positions.len(), out[0].item::<f64>()?);
    }

    // A directional derivative of a constant, without inputs: d/dt sum(sin(y + t w)) at t = 0.
    let y = TracedTensor::from_vec_col_major([2], vec![0.0_f64, 1.0])?;
    let w = TracedTensor::from_vec_col_major([2], vec![2.0_f64, -1.0])?;
    let slope = y.sin()?.reduce_sum(None)?.jvp(&y, &w)?;
    let slope = GraphCompiler::new().compile(&slope)?.run(&mut CpuBackend::new(), &[])?.remove(0);
    assert_close(&[slope.item()?], &[2.0 - 1.0_f64.cos()]);
    Ok(())
}

fn assert_close(actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len());
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
    assert!(actual.iter().zip(expected).all(close), "got {actual:?}, expected {expected:?}");
}
