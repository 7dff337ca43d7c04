//! Whatever goes wrong in the middle of a run, everything is usable afterwards and nothing is lost: inputs,
//! programs, runtimes and the pool, which has as many bytes in use as before.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};
use tenferro_ad::prelude::*;
use tenferro_core_ops::ops;
use tenferro_cpu::CpuBackend;
use tenferro_linalg::prelude::*;
use tenferro_runtime::{DType, Dim, EagerRuntime, Error, GraphCompiler, Program, Tensor, TracedTensor};
use tenferro_tensor::pool;

/// The pool is the process's, so the tests of this file take turns. What `f` made is gone after it, but for
/// what is made once.
fn alone(f: impl Fn()) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    f();
    let before = pool::stats().bytes_in_use;
    f();
    assert_eq!(pool::stats().bytes_in_use, before, "bytes that nobody holds");
}

fn matrix(n: usize, f: impl Fn(usize, usize) -> f64) -> Tensor {
    Tensor::from_vec_col_major([n, n], (0..n * n).map(|k| f(k % n, k / n)).collect()).unwrap()
}

fn regular(n: usize) -> Tensor {
    matrix(n, |i, j| if i == j { 4.0 } else { 1.0 / (1 + i + 2 * j) as f64 })
}

fn singular(n: usize) -> Tensor {
    matrix(n, |i, j| ((i + 1) * (j + 1)) as f64)
}

fn elements(t: &Tensor) -> Vec<f64> {
    t.as_slice::<f64>().unwrap().to_vec()
}

fn bits(y: &[Tensor]) -> Vec<Vec<u64>> {
    y.iter().map(|t| elements(t).iter().map(|x| x.to_bits()).collect()).collect()
}

/// A solution between other calls, and its gradient.
fn program() -> Program {
    let n = Dim::symbol("n");
    let [a, b] = [0, 1].map(|_| TracedTensor::input(DType::F64, &[n.clone(), n.clone()]));
    let x = (&a * 2.0).unwrap().solve(&b.tanh().unwrap()).unwrap();
    let y = x.exp().unwrap().matmul(&a).unwrap();
    let loss = y.reduce_sum(None).unwrap();
    let g = loss.grad(&a).unwrap();
    GraphCompiler::new().compile_with(&[&a, &b], &[&y, &g]).unwrap()
}

#[test]
fn a_singular_system() {
    alone(|| {
        let mut cpu = CpuBackend::with_threads(2);
        let program = program();
        for n in [2, 5, 40, 200] {
            let (good, bad) = (regular(n), singular(n));
            let first = bits(&program.run(&mut cpu, &[&good, &good]).unwrap());
            for _ in 0..5 {
                let before = elements(&bad);
                assert!(program.run(&mut cpu, &[&bad, &good]).is_err());
                assert_eq!(elements(&bad), before);
                assert_eq!(bits(&program.run(&mut cpu, &[&good, &good]).unwrap()), first);
            }
            let runtime = EagerRuntime::new(&cpu);
            let w = runtime.variable(good.duplicate().unwrap()).unwrap();
            let s = runtime.tensor(bad).unwrap();
            assert!((&s * &w).unwrap().exp().unwrap().matmul(&s).is_ok());
            assert!((&s * 2.0).unwrap().solve(&w).is_err());
            let loss =
                (&w * 2.0).unwrap().solve(&w.tanh().unwrap()).unwrap().exp().unwrap().matmul(&w).unwrap();
            loss.reduce_sum(None).unwrap().backward().unwrap();
            let g = w.grad().unwrap().to_tensor().unwrap();
            let want = program.run(&mut cpu, &[&good, &good]).unwrap();
            // The program differentiates by the first of its inputs only.
            assert_eq!(g.shape(), want[1].shape());
        }
    });
}

#[test]
fn a_kernel_that_fails_or_panics_in_a_backward_pass() {
    static MOOD: AtomicU8 = AtomicU8::new(0);
    alone(|| {
        let cpu = CpuBackend::with_threads(1);
        cpu.replace_kernels(|table| {
            table.on::<CpuBackend, ops::Cos>(ops::FLOATS, |_, _, x, _, _| {
                match MOOD.load(Ordering::Relaxed) {
                    0 => {}
                    1 => return Err(Error::runtime_state("cos", "out of order")),
                    _ => panic!("out of order"),
                }
                let t = x[0].read().to_tensor()?;
                let y = t.as_slice::<f64>()?.iter().map(|v| v.cos()).collect();
                Ok([Tensor::from_vec_col_major(x[0].shape(), y)?].into_iter().collect())
            });
        });
        let runtime = EagerRuntime::new(&cpu);
        let data = [0.5, 1.0, 1.5];
        let make = || Tensor::from_vec_col_major([3], data.to_vec()).unwrap();
        let w = runtime.variable(make()).unwrap();
        let p = TracedTensor::input(DType::F64, &[Dim::symbol("n")]);
        let loss = p.sin().unwrap().reduce_sum(None).unwrap();
        let program = GraphCompiler::new().compile_with(&[&p], &[&loss.grad(&p).unwrap()]).unwrap();
        let want = data.map(f64::cos);
        let quiet = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        for mood in [0, 1, 0, 2, 0, 2, 1, 0] {
            MOOD.store(mood, Ordering::Relaxed);
            let x = make();
            let loss = (&w.sin().unwrap() + &w).unwrap().reduce_sum(None).unwrap();
            let eager = catch_unwind(AssertUnwindSafe(|| loss.backward()));
            let run = catch_unwind(AssertUnwindSafe(|| program.run(&mut cpu.clone(), &[&x])));
            assert_eq!(elements(&x), data);
            match mood {
                0 => {
                    eager.unwrap().unwrap();
                    let g = w.grad().unwrap().to_tensor().unwrap();
                    assert_eq!(elements(&g), want.map(|c| c + 1.0));
                    w.clear_grad();
                    assert_eq!(elements(&run.unwrap().unwrap()[0]), want);
                }
                1 => {
                    assert!(eager.unwrap().is_err() && run.unwrap().is_err());
                    assert!(w.grad().is_none());
                }
                _ => {
                    assert!(eager.is_err() && run.is_err());
                    assert!(w.grad().is_none());
                }
            }
        }
        std::panic::set_hook(quiet);
    });
}

#[test]
fn memory_that_is_not_there() {
    alone(|| {
        let mut cpu = CpuBackend::with_threads(1);
        let n = Dim::symbol("n");
        let x = TracedTensor::input(DType::F64, &[n.clone(), n.clone()]);
        let y = x.exp().unwrap().matmul(&x).unwrap();
        let z = y.matrix_transpose().unwrap().matmul(&y.sin().unwrap()).unwrap();
        let program = GraphCompiler::new().compile_with(&[&x], &[&z, &y]).unwrap();
        let a = matrix(300, |i, j| if i == j { 0.5 } else { 1e-3 });
        let first = bits(&program.run(&mut cpu, &[&a]).unwrap());
        let runtime = EagerRuntime::new(&cpu);
        let w = runtime.variable(a.duplicate().unwrap()).unwrap();
        let loss = |w: &tenferro_runtime::EagerTensor| w.exp()?.matmul(w)?.sin()?.reduce_sum(None);
        let gradient = |w| -> tenferro_tensor::Result<Tensor> {
            loss(w)?.gradients(&[w], false)?.remove(0).into_tensor()
        };
        let slope = elements(&gradient(&w).unwrap());
        // Room for every number of buffers that is not enough, and then some more.
        let (mut failed, mut worked) = (0, 0);
        for room in 0..14 {
            pool::trim();
            pool::set_limit(Some(pool::stats().bytes_in_use + pool::stats().cached_bytes + room * 800_000));
            let (y, g) = (program.run(&mut cpu, &[&a]), gradient(&w));
            pool::set_limit(None);
            for e in [y.as_ref().err(), g.as_ref().err()].into_iter().flatten() {
                assert!(matches!(e, Error::Memory(_)), "{e}");
            }
            failed += usize::from(y.is_err()) + usize::from(g.is_err());
            worked += usize::from(y.is_ok()) + usize::from(g.is_ok());
            if let Ok(y) = y {
                assert_eq!(bits(&y), first);
            }
            if let Ok(g) = g {
                assert_eq!(elements(&g), slope);
            }
            assert_eq!(bits(&program.run(&mut cpu, &[&a]).unwrap()), first);
            assert_eq!(elements(&gradient(&w).unwrap()), slope);
        }
        assert!(failed > 3 && worked > 3, "{failed} {worked}");
    });
}

#[test]
fn extents_that_no_memory_has() {
    alone(|| {
        let mut cpu = CpuBackend::with_threads(1);
        let x = TracedTensor::input(DType::F64, &[Dim::symbol("n")]);
        // The second of three calls.
        let y = x.exp().unwrap().broadcast_to_dims(&[Dim::Lit(1 << 45), Dim::symbol("n")]).unwrap();
        let y = y.matrix_transpose().unwrap().tanh().unwrap();
        let program = GraphCompiler::new().compile_with(&[&x], &[&y]).unwrap();
        let none = Tensor::from_vec_col_major([0], Vec::<f64>::new()).unwrap();
        let one = Tensor::from_vec_col_major([1], vec![1.0]).unwrap();
        for _ in 0..3 {
            let e = program.run(&mut cpu, &[&one]).unwrap_err();
            assert!(matches!(e, Error::Memory(_) | Error::Overflow(_)), "{e}");
            assert_eq!(program.run(&mut cpu, &[&none]).unwrap()[0].shape(), [0, 1 << 45]);
        }
        let w = EagerRuntime::new(&cpu).variable(one).unwrap();
        let huge = w.broadcast_to(&[1 << 45, 1]).unwrap();
        assert!(huge.exp().is_err());
        w.exp().unwrap().reduce_sum(None).unwrap().backward().unwrap();
        assert_eq!(w.grad().unwrap().item::<f64>().unwrap(), 1f64.exp());
    });
}
