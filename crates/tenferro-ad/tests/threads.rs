//! Threads that share a backend, a runtime, a program and leaves get what one thread alone gets, whatever the
//! others do.

use std::sync::atomic::{AtomicUsize, Ordering};
use tenferro_ad::prelude::*;
use tenferro_core_ops::ops;
use tenferro_cpu::CpuBackend;
use tenferro_runtime::{
    DType, Dim, EagerRuntime, EagerTensor, Error, GraphCompiler, Program, Result, Tensor, TracedTensor,
};

const THREADS: usize = 10;
const EACH: usize = 300;
const SIZES: usize = 7;

/// Whole numbers, so that sums of gradients are exact.
fn whole(shape: &[usize], shift: usize) -> Tensor {
    let len: usize = shape.iter().product();
    Tensor::from_vec_col_major(shape, (0..len).map(|i| ((i * 7 + shift) % 5) as f64 - 2.0).collect()).unwrap()
}

fn positions(n: usize, first: i64) -> Tensor {
    Tensor::from_vec_col_major([2], vec![first, n as i64 - 1]).unwrap()
}

/// Products, chains, reductions, and rows by position, at any n.
fn program() -> Program {
    let n = Dim::symbol("n");
    let x = TracedTensor::input(DType::F64, &[n.clone(), n]);
    let at = TracedTensor::input(DType::I64, &[Dim::Lit(2)]);
    let y = x.matmul(&(&x * 0.25).unwrap()).unwrap().tanh().unwrap();
    let rows = y.neg().unwrap().index_select(&at, 0).unwrap();
    let loss = (&rows * &rows).unwrap().reduce_sum(None).unwrap();
    let g = loss.grad(&x).unwrap();
    GraphCompiler::new().compile_with(&[&x, &at], &[&rows, &loss, &g]).unwrap()
}

fn eager(runtime: &EagerRuntime, x: &Tensor) -> Result<Tensor> {
    let x = runtime.tensor(x.duplicate()?)?;
    let y = (&x.matmul(&x.transpose(&[1, 0])?)? * 0.125)?.sin()?.neg()?;
    let y = EagerTensor::concatenate(&[&y, &x], 1)?.reduce_sum_keepdims(Some(&[1]))?;
    (&y - &x)?.into_tensor()
}

/// A function of the leaf whose gradient is whole numbers.
fn loss(w: &EagerTensor, x: &Tensor) -> Result<EagerTensor> {
    let x = w.runtime().tensor(x.duplicate()?)?;
    x.matmul(&(w * w)?.neg()?)?.reduce_sum(None)
}

fn same(a: &Tensor, b: &Tensor) {
    assert_eq!(a.shape(), b.shape());
    assert_eq!(a.as_slice::<f64>().unwrap(), b.as_slice::<f64>().unwrap());
}

/// Another kernel of negation, which gives the same.
fn replace(cpu: &CpuBackend) {
    cpu.replace_kernels(|table| {
        table.on::<CpuBackend, ops::Neg>(&[DType::F64], |_, _, x, _, _| {
            let y: Vec<f64> = x[0].read().to_tensor()?.as_slice::<f64>()?.iter().map(|v| -v).collect();
            Ok([Tensor::from_vec_col_major(x[0].shape(), y)?].into_iter().collect())
        });
    });
}

#[test]
fn ten_threads_get_what_one_gets() {
    let cpu = CpuBackend::with_threads(2);
    let runtime = EagerRuntime::new(&cpu);
    let program = program();
    let sizes = || 1..=SIZES;
    let x: Vec<Tensor> = sizes().map(|n| whole(&[n, n], n)).collect();
    let at: Vec<Tensor> = sizes().map(|n| positions(n, 0)).collect();
    let run = |i: usize| program.run(&mut cpu.clone(), &[&x[i], &at[i]]);
    let programs: Vec<Vec<Tensor>> = (0..SIZES).map(|i| run(i).unwrap()).collect();
    let eagers: Vec<Tensor> = x.iter().map(|x| eager(&runtime, x).unwrap()).collect();
    let leaves: Vec<EagerTensor> = sizes().map(|n| runtime.variable(whole(&[n, 3], 1)).unwrap()).collect();
    let gradients: Vec<Tensor> = (leaves.iter().zip(&x))
        .map(|(w, x)| loss(w, x).unwrap().gradients(&[w], false).unwrap().remove(0).into_tensor().unwrap())
        .collect();
    let added: Vec<AtomicUsize> = sizes().map(|_| AtomicUsize::new(0)).collect();

    std::thread::scope(|s| {
        for thread in 0..THREADS {
            let (cpu, runtime, program) = (&cpu, &runtime, &program);
            let (x, at, programs, eagers) = (&x, &at, &programs, &eagers);
            let (leaves, gradients, added) = (&leaves, &gradients, &added);
            s.spawn(move || {
                for k in 0..EACH {
                    let i = (k * 5 + thread) % SIZES;
                    match (k + thread) % 8 {
                        0 | 1 => {
                            let y = program.run(&mut cpu.clone(), &[&x[i], &at[i]]).unwrap();
                            y.iter().zip(&programs[i]).for_each(|(a, b)| same(a, b));
                        }
                        // An error of a kernel, one of the inputs, and one of shapes.
                        2 => {
                            let outside = positions(i + 1, 100);
                            assert!(program.run(&mut cpu.clone(), &[&x[i], &outside]).is_err());
                            let other = whole(&[2, 3], 0);
                            assert!(program.run(&mut cpu.clone(), &[&other, &at[i]]).is_err());
                            let bad = leaves[i].matmul(&leaves[i].transpose(&[0, 1]).unwrap());
                            assert!(i + 1 == 3 || matches!(bad, Err(Error::Shape(_))));
                        }
                        3 => same(&eager(runtime, &x[i]).unwrap(), &eagers[i]),
                        4 => {
                            let g = loss(&leaves[i], &x[i]).unwrap().gradients(&[&leaves[i]], false).unwrap();
                            same(&g[0].to_tensor().unwrap(), &gradients[i]);
                        }
                        5 => {
                            loss(&leaves[i], &x[i]).unwrap().backward().unwrap();
                            added[i].fetch_add(1, Ordering::Relaxed);
                        }
                        // A backward pass that fails adds nothing.
                        6 => assert!((&leaves[i] * 2.0).unwrap().backward().is_err()),
                        _ if thread % 2 == 0 => cpu.set_nan_check(k % 3 == 0),
                        _ => replace(cpu),
                    }
                }
            });
        }
    });
    for ((w, g), n) in leaves.iter().zip(&gradients).zip(&added) {
        let n = n.load(Ordering::Relaxed) as f64;
        let want: Vec<f64> = g.as_slice::<f64>().unwrap().iter().map(|g| g * n).collect();
        assert_eq!(w.grad().unwrap().to_tensor().unwrap().as_slice::<f64>().unwrap(), want);
    }
    for (i, want) in programs.iter().enumerate() {
        run(i).unwrap().iter().zip(want).for_each(|(a, b)| same(a, b));
    }
}
