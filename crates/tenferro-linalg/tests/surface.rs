//! The methods of the four tiers give the same numbers, and one compiled program truncates to any rank.

mod common;

use common::{assert_close, random, tensor};
use tenferro_core_ops::{Dim, leaf, vjp_present, vjp_traced};
use tenferro_cpu::{CpuBackend, with_cpu_exec_session};
use tenferro_linalg::prelude::*;
use tenferro_runtime::{Program, TensorRead, prelude::*, tier::Recorded};
use tenferro_tensor::{Result, Value};

#[test]
fn tiers_agree() -> Result<()> {
    let mut cpu = CpuBackend::new();
    let a = random(DType::F64, &[3, 3], 1);
    let (u, s, vh) = a.svd(&mut cpu)?;

    let typed = a.as_typed::<f64>().expect("an f64 tensor");
    let (tu, ts, tvh): (TypedTensor<f64>, TypedTensor<f64>, TypedTensor<f64>) = typed.svd(&mut cpu)?;
    let runtime = EagerRuntime::new(&cpu);
    let eager = runtime.tensor(a.duplicate()?)?;
    let (eu, es, evh) = eager.svd()?;
    let traced = TracedTensor::from_tensor(a.duplicate()?);
    let (ru, rs, rvh) = traced.svd()?;
    let run = GraphCompiler::new().compile_many(&[&ru, &rs, &rvh])?.run(&mut cpu, &[])?;
    let session = cpu
        .with_backend_session(|s| {
            with_cpu_exec_session(s, |s| s.svd_read(TensorRead::from_view(a.as_view())))
        })
        .expect("the session of a CPU backend")?;
    for (i, expected) in [&u, &s, &vh].into_iter().enumerate() {
        assert_close("typed", [&tu, &ts, &tvh][i].as_tensor(), expected, 0.0);
        assert_close("eager", &[&eu, &es, &evh][i].to_tensor()?, expected, 0.0);
        assert_close("traced", &run[i], expected, 0.0);
        assert_close("session", &session[i], expected, 0.0);
    }

    let x = a.solve(&s, &mut cpu)?;
    assert_close("eager", &eager.solve(&runtime.tensor(s.duplicate()?)?)?.to_tensor()?, &x, 0.0);
    let f = SpectralFunction::power(1.0);
    assert_close("spectral", &eager.spectral(&f)?.to_tensor()?, &a, 1e-14);
    Ok(())
}

#[test]
fn a_compiled_gradient_truncates_to_any_rank() -> Result<()> {
    let mut cpu = CpuBackend::new();
    let a = TracedTensor::input(DType::F64, &[Dim::symbol("m"), Dim::symbol("n")]);
    let max_rank = TracedTensor::input(DType::I64, &[]);
    let [rel, abs, weight] = [0.0, 0.0, 0.0].map(|x| TracedTensor::scalar(x).expect("a scalar"));
    let (left, right) = a.split(Limits::of(&max_rank, &rel, &abs, &weight))?;
    let y = left.matmul(&right)?.sin()?;
    let ct = y.cos()?;
    let g = vjp_traced(&[(y.var().clone(), ct.var().clone())], &[a.var()])?.remove(0).expect("depends on a");
    let inputs = [a.var().clone(), max_rank.var().clone()];
    let program = Program::new(&inputs, &[y.var().clone(), g, left.var().clone()])?;
    for (m, n, r) in [(4, 3, 2), (5, 6, 3), (3, 3, 3), (4, 4, 1)] {
        let value = random(DType::F64, &[m, n], 7);
        let got = program.run(&mut cpu, &[&value, &Tensor::scalar(r as i64)])?;
        assert_eq!(got[2].shape(), [m, r]);
        common::on_cpu(|| {
            let x = leaf(Value::new(value));
            let (left, right) = tenferro_linalg::ops::split(&x, Truncation::max_rank(r));
            let y = left.matmul(&right).sin();
            let ct = y.detach().cos();
            let g = vjp_present(&[(&y, ct)], &[&x], false).expect("differentiable").remove(0);
            assert_close("value", &got[0], &tensor(&y), 1e-13);
            assert_close("gradient", &got[1], &tensor(&g.expect("depends on x")), 1e-12);
        });
    }
    Ok(())
}
