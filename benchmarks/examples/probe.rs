use tenferro_cpu::CpuBackend;
use tenferro_runtime::prelude::*;
fn main() -> tenferro_runtime::Result<()> {
    let a = TracedTensor::input(DType::F64, &[Dim::Lit(2), Dim::Lit(2)]);
    let b = TracedTensor::input(DType::F64, &[Dim::Lit(2), Dim::Lit(2)]);
    for k in 0..3 {
        let mut y = a.clone();
        for i in 0..8 {
            y = match k { 0 => if i % 2 == 0 { y.tril(0)? } else { y.triu(0)? }, 1 => y.matmul(&b)?, _ => if i % 2 == 0 { (&y - &b)? } else { (&y * &b)? } };
        }
        println!("{}", GraphCompiler::new().compile_with(&[&a, &b], &[&y])?.explain());
    }
    let mut cpu = CpuBackend::with_threads(1);
    let which = std::env::args().nth(1).unwrap_or_default();
    let x = TypedTensor::<f64>::from_vec_col_major([1], vec![1.0])?;
    let y = TypedTensor::<f64>::from_vec_col_major([1], vec![2.0])?;
    let m = TypedTensor::<f64>::from_vec_col_major([2,2], vec![2.0;4])?;
    let e = EagerRuntime::new(&cpu).tensor(m.duplicate()?.into_tensor())?;
    let mut z = a.clone();
    for i in 0..64 { z = if i % 2 == 0 { z.tril(0)? } else { z.triu(0)? } }
    let p = GraphCompiler::new().compile_with(&[&a, &b], &[&z])?;
    for _ in 0..3_000_000 / if which == "prog" { 50 } else { 1 } {
        match &which[..] {
            "add" => drop(std::hint::black_box(x.add(&y, &mut cpu)?)),
            "matmul" => drop(std::hint::black_box(m.matmul(&m, &mut cpu)?)),
            "transpose" => drop(std::hint::black_box(e.transpose(&[1, 0])?)),
            "prog" => drop(std::hint::black_box(p.run(&mut cpu, &[m.as_tensor(), m.as_tensor()])?)),
            _ => break,
        }
    }
    Ok(())
}
