//! What a call costs beyond its arithmetic, in units of two allocations and one addition.

use super::{Case, Goal, matrix, other_matrix, row_major};
use crate::{Result, subject::subject};
use std::hint::black_box;
use tenferro_cpu::CpuBackend;
use tenferro_runtime::{EagerRuntime, EagerTensor, prelude::*};

pub(super) fn group() -> Result<Vec<Case>> {
    let [x, y] = [1.5, 2.25].map(|v| TypedTensor::from_vec_col_major([1], vec![v]));
    let (x, y) = (x?, y?);
    let (a, b) = (matrix()?, other_matrix()?);
    let sum = [3.75];
    let product = [1.6, -3.2, 1.55, 0.2];

    let unit =
        subject(|| Ok(Box::new(vec![black_box(1.5) + black_box(2.25)])), |sum: Box<Vec<f64>>| Ok(*sum));
    let mut cases = vec![Case::new("unit: two allocations and an addition", Goal::Unit, unit).expecting(sum)];
    let mut add = |name: &str, units, subject| -> Result<()> {
        let case = Case::new(format!("add, 1 element: {name}"), Goal::Units(units), subject).expecting(sum);
        cases.push(case.beside("add_1", &[&x, &y])?);
        Ok(())
    };
    add("typed", 3.0, typed(&x, &y, |x, y, cpu| x.add(y, cpu))?)?;
    add("dynamic", 3.0, dynamic(&x, &y, |x, y, cpu| x.add(y, cpu))?)?;
    add("eager", 5.0, eager(&x, &y, false, EagerTensor::add)?)?;
    add("recorded", 8.0, eager(&x, &y, true, EagerTensor::add)?)?;
    let mut matmul = |name: &str, subject| -> Result<()> {
        let case = Case::new(format!("matmul, 2x2: {name}"), Goal::None, subject).expecting(product);
        cases.push(case.beside("matmul_2x2", &[&a, &b])?);
        Ok(())
    };
    matmul("typed", typed(&a, &b, |a, b, cpu| a.matmul(b, cpu))?)?;
    matmul("dynamic", dynamic(&a, &b, |a, b, cpu| a.matmul(b, cpu))?)?;
    matmul("eager", eager(&a, &b, false, EagerTensor::matmul)?)?;
    matmul("recorded", eager(&a, &b, true, EagerTensor::matmul)?)?;
    Ok(cases)
}

type Call = Box<dyn crate::subject::Subject>;

fn typed(
    x: &TypedTensor<f64>,
    y: &TypedTensor<f64>,
    f: impl Fn(&TypedTensor<f64>, &TypedTensor<f64>, &mut CpuBackend) -> tenferro_tensor::Result<TypedTensor<f64>>
    + 'static,
) -> Result<Call> {
    let (x, y, mut cpu) = (x.duplicate()?, y.duplicate()?, CpuBackend::with_threads(1));
    Ok(subject(move || f(black_box(&x), black_box(&y), &mut cpu), row_major))
}

fn dynamic(
    x: &TypedTensor<f64>,
    y: &TypedTensor<f64>,
    f: impl Fn(&Tensor, &Tensor, &mut CpuBackend) -> tenferro_tensor::Result<Tensor> + 'static,
) -> Result<Call> {
    let (x, y, mut cpu) =
        (x.duplicate()?.into_tensor(), y.duplicate()?.into_tensor(), CpuBackend::with_threads(1));
    Ok(subject(move || f(black_box(&x), black_box(&y), &mut cpu), |z| z.to_vec_row_major()))
}

/// With `record`, both operands want a gradient.
fn eager(
    x: &TypedTensor<f64>,
    y: &TypedTensor<f64>,
    record: bool,
    f: impl Fn(&EagerTensor, &EagerTensor) -> tenferro_tensor::Result<EagerTensor> + 'static,
) -> Result<Call> {
    let runtime = EagerRuntime::new(&CpuBackend::with_threads(1));
    let operand = |x: &TypedTensor<f64>| {
        let x = x.duplicate()?.into_tensor();
        if record { runtime.variable(x) } else { runtime.tensor(x) }
    };
    let (x, y) = (operand(x)?, operand(y)?);
    Ok(subject(move || f(black_box(&x), black_box(&y)), |z| z.to_tensor()?.to_vec_row_major()))
}
