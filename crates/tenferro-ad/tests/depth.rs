//! A million calls deep: recorded, compiled, run, differentiated and dropped on a small stack.

use tenferro_ad::prelude::*;
use tenferro_cpu::CpuBackend;
use tenferro_runtime::{DType, Dim, EagerRuntime, GraphCompiler, Tensor, TracedTensor};

const DEPTH: usize = 1_000_000;

/// Nothing that recurses once per call fits here.
fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(f).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// `y <- sin(y) + x` so often that there are `depth` calls, and its derivative.
fn expected(x: f64, depth: usize) -> (f64, f64) {
    (0..depth / 2).fold((x, 1.0), |(y, dy), _| (y.sin() + x, y.cos() * dy + 1.0))
}

fn assert_close(got: f64, want: f64) {
    assert!((got - want).abs() <= 1e-12 * want.abs(), "{got} {want}");
}

#[test]
fn a_trace() {
    on_a_small_stack(|| {
        let x = TracedTensor::input(DType::F64, &[]);
        let y = (0..DEPTH / 2).fold(x.clone(), |y, _| (&y.sin().unwrap() + &x).unwrap());
        let program = GraphCompiler::new().compile(&y).unwrap();
        drop((x, y));
        let mut cpu = CpuBackend::with_threads(1);
        for at in [0.5, 0.25] {
            let out = program.run(&mut cpu, &[&Tensor::scalar(at)]).unwrap();
            assert_close(out[0].item().unwrap(), expected(at, DEPTH).0);
        }
    });
}

#[test]
fn derivatives_of_a_trace() {
    on_a_small_stack(|| {
        let x = TracedTensor::input(DType::F64, &[]);
        let y = (0..DEPTH / 2).fold(x.clone(), |y, _| (&y.sin().unwrap() + &x).unwrap());
        let (g, dy) = (y.grad(&x).unwrap(), y.jvp(&x, &x).unwrap());
        let program = GraphCompiler::new().compile_with(&[&x], &[&g, &dy]).unwrap();
        drop((x, y, g, dy));
        let out = program.run(&mut CpuBackend::with_threads(1), &[&Tensor::scalar(0.5)]).unwrap();
        let slope = expected(0.5, DEPTH).1;
        assert_close(out[0].item().unwrap(), slope);
        assert_close(out[1].item().unwrap(), slope * 0.5);
    });
}

#[test]
fn a_tape() {
    on_a_small_stack(|| {
        let runtime = EagerRuntime::new(&CpuBackend::with_threads(1));
        let x = runtime.scalar(0.5).unwrap().requires_grad().unwrap();
        let y = (0..DEPTH / 2).fold(x.clone(), |y, _| (&y.sin().unwrap() + &x).unwrap());
        let (want, slope) = expected(0.5, DEPTH);
        assert_close(y.item().unwrap(), want);
        for _ in 0..2 {
            y.backward().unwrap();
            assert_close(x.grad().unwrap().item().unwrap(), slope);
            x.clear_grad();
        }
        drop(y);
        // The tape of a gradient, which is deeper still.
        let y = (0..DEPTH / 2).fold(x.clone(), |y, _| (&y.sin().unwrap() + &x).unwrap());
        let g = y.gradients(&[&x], true).unwrap().remove(0);
        drop(y);
        let h = g.gradients(&[&x], false).unwrap().remove(0);
        let step = 1e-5;
        let [above, below] = [0.5 + step, 0.5 - step].map(|x| expected(x, DEPTH).1);
        let want = (above - below) / (2.0 * step);
        assert!((h.item::<f64>().unwrap() - want).abs() < 1e-6 * want.abs());
    });
}

#[test]
fn constants() {
    on_a_small_stack(|| {
        let x = TracedTensor::scalar(0.5).unwrap();
        let y = (0..DEPTH / 2).fold(x.clone(), |y, _| (&y.sin().unwrap() + &x).unwrap());
        let program = GraphCompiler::new().compile(&y).unwrap();
        let out = program.run(&mut CpuBackend::with_threads(1), &[]).unwrap();
        assert_close(out[0].item().unwrap(), expected(0.5, DEPTH).0);
    });
}

#[test]
fn extents_that_grow_beyond_every_number() {
    // n, 2 n, 4 n, ..: a polynomial whose coefficient overflows is an error or a program that says so.
    let x = TracedTensor::input(DType::F64, &[Dim::symbol("n")]);
    let mut y = x.clone();
    for _ in 0..70 {
        match TracedTensor::concatenate(&[&y, &y], 0) {
            Ok(next) => y = next,
            Err(_) => break,
        }
    }
    let one = Tensor::from_vec_col_major([1], vec![1.0]).unwrap();
    let none = Tensor::from_vec_col_major([0], Vec::<f64>::new()).unwrap();
    if let Ok(program) = GraphCompiler::new().compile_with(&[&x], &[&y]) {
        // Not with one element: there is memory for the first of the doublings.
        let empty = program.run(&mut CpuBackend::with_threads(1), &[&none]);
        assert!(empty.is_err() || empty.unwrap()[0].is_empty());
    }
    // n, n^2, n^4, ..
    let mut y = x.clone();
    for _ in 0..7 {
        let n = y.shape()[0].clone();
        let Ok(square) = y.broadcast_to_dims(&[n.clone(), n.clone()]) else { break };
        match square.reshape_dims(&[&n * &n]) {
            Ok(next) => y = next,
            Err(_) => break,
        }
    }
    if let Ok(program) = GraphCompiler::new().compile_with(&[&x], &[&y]) {
        let out = program.run(&mut CpuBackend::with_threads(1), &[&one]).unwrap();
        assert_eq!(out[0].as_slice::<f64>().unwrap(), [1.0]);
        let two = Tensor::from_vec_col_major([2], vec![1.0, 2.0]).unwrap();
        assert!(program.run(&mut CpuBackend::with_threads(1), &[&two]).is_err());
    }
}

#[test]
fn printing() {
    // What a value came from is named, not shown: it may be a million calls deep, or two to the sixtieth many.
    on_a_small_stack(|| {
        let runtime = EagerRuntime::new(&CpuBackend::with_threads(1));
        let x = runtime.scalar(0.5).unwrap().requires_grad().unwrap();
        let p = TracedTensor::input(DType::F64, &[]);
        let deep =
            (0..DEPTH / 10).fold((x.clone(), p.clone()), |(x, p), _| (x.sin().unwrap(), p.sin().unwrap()));
        let many = (0..60).fold((x, p), |(x, p), _| ((&x + &x).unwrap(), (&p + &p).unwrap()));
        for (x, p) in [&deep, &many] {
            for text in [format!("{x:?}"), format!("{p:?}"), format!("{x:#?}"), format!("{p:#?}")] {
                assert!(text.len() < 2000, "{text}");
            }
        }
        assert!(format!("{:?}", many.0).contains("Add") && format!("{:?}", many.1).contains("Add"));
    });
}
