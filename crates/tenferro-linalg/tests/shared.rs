//! Factorizations, and their gradients, on threads that share a backend, a runtime, leaves and programs: each
//! gets the bits that one thread alone gets, whatever the others do.

mod common;

use common::random;
use tenferro_ad::prelude::*;
use tenferro_cpu::CpuBackend;
use tenferro_linalg::prelude::*;
use tenferro_runtime::{
    DType, Dim, EagerRuntime, EagerTensor, Error, GraphCompiler, Program, Result, Tensor, TracedTensor,
};

const THREADS: usize = 10;
const EACH: usize = 40;
/// The last is enough work for the pool.
const ORDERS: [usize; 4] = [1, 3, 8, 40];
const LOSSES: usize = 3;

fn matrix(n: usize) -> Tensor {
    random(DType::F64, &[n, n], n as u64)
}

fn right(n: usize) -> Tensor {
    random(DType::F64, &[n, 2], 50 + n as u64)
}

/// A number from factors of the leaf, and its gradient.
fn eager(which: usize, w: &EagerTensor, b: &Tensor) -> Result<Vec<Tensor>> {
    let loss = match which {
        0 => {
            let (u, s, vh) = w.svd()?;
            (&(&u * &vh)?.reduce_sum(None)? + &s.tanh()?.reduce_sum(None)?)?
        }
        1 => w.solve(&w.runtime().tensor(b.duplicate()?)?)?.sin()?.reduce_sum(None)?,
        _ => {
            let (values, v) = (w + &w.transpose(&[1, 0])?)?.eigh()?;
            (&(&(&v * &v)? * &v)?.reduce_sum(None)? + &values.sin()?.reduce_sum(None)?)?
        }
    };
    let g = loss.gradients(&[w], false)?.remove(0);
    Ok(vec![loss.to_tensor()?, g.to_tensor()?])
}

/// The same of all three at any order.
fn program() -> Program {
    let n = Dim::symbol("n");
    let x = TracedTensor::input(DType::F64, &[n.clone(), n.clone()]);
    let b = TracedTensor::input(DType::F64, &[n, Dim::Lit(2)]);
    let (u, s, vh) = x.svd().unwrap();
    let (values, v) = (&x + &x.transpose(&[1, 0]).unwrap()).unwrap().eigh().unwrap();
    let parts = [(&u * &vh).unwrap(), (&v * &v).unwrap(), x.solve(&b).unwrap(), s, values];
    let sums = parts.map(|p| p.sin().unwrap().reduce_sum(None).unwrap());
    let loss = sums.into_iter().reduce(|a, b| (&a + &b).unwrap()).unwrap();
    let g = loss.grad(&x).unwrap();
    GraphCompiler::new().compile_with(&[&x, &b], &[&loss, &g]).unwrap()
}

fn bits(y: &[Tensor]) -> Vec<u64> {
    y.iter().flat_map(|t| t.as_slice::<f64>().unwrap().iter().map(|x| x.to_bits())).collect()
}

#[test]
fn ten_threads_get_what_one_gets() {
    let cpu = CpuBackend::with_threads(2);
    let runtime = EagerRuntime::new(&cpu);
    let program = program();
    let leaves = ORDERS.map(|n| runtime.variable(matrix(n)).unwrap());
    let (x, b) = (ORDERS.map(matrix), ORDERS.map(right));
    let run = |i: usize| program.run(&mut cpu.clone(), &[&x[i], &b[i]]);
    let programs: Vec<Vec<u64>> = (0..ORDERS.len()).map(|i| bits(&run(i).unwrap())).collect();
    let eagers: Vec<Vec<Vec<u64>>> = (0..ORDERS.len())
        .map(|i| (0..LOSSES).map(|k| bits(&eager(k, &leaves[i], &b[i]).unwrap())).collect())
        .collect();
    assert!(programs.iter().chain(eagers.iter().flatten()).flatten().all(|&x| f64::from_bits(x).is_finite()));

    std::thread::scope(|s| {
        for thread in 0..THREADS {
            let (leaves, b, run, programs, eagers) = (&leaves, &b, &run, &programs, &eagers);
            let runtime = &runtime;
            s.spawn(move || {
                for k in 0..EACH {
                    let i = (k * 3 + thread) % ORDERS.len();
                    match (k + thread) % 5 {
                        which @ 0..LOSSES => {
                            let y = eager(which, &leaves[i], &b[i]).unwrap();
                            assert_eq!(bits(&y), eagers[i][which], "loss {which} of order {}", ORDERS[i]);
                        }
                        3 => assert_eq!(bits(&run(i).unwrap()), programs[i], "order {}", ORDERS[i]),
                        _ => {
                            let n = ORDERS[i];
                            let zero = runtime.variable(Tensor::zeros(DType::F64, [n, n]).unwrap()).unwrap();
                            assert!(matches!(eager(1, &zero, &b[i]), Err(Error::Numeric(_))));
                        }
                    }
                }
            });
        }
    });
}
