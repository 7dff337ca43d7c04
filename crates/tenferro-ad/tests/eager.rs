//! Gradients of eager tensors across threads and runtimes.

use tenferro_ad::prelude::*;
use tenferro_cpu::CpuBackend;
use tenferro_runtime::{DType, Dim, EagerRuntime, EagerTensor, Error, Result, TracedTensor};

fn runtime() -> EagerRuntime {
    EagerRuntime::new(&CpuBackend::with_threads(1))
}

#[test]
fn threads_that_share_a_leaf_lose_no_gradient() {
    let x = runtime().from_vec_col_major([3], vec![1.0, 2.0, 3.0]).unwrap().requires_grad().unwrap();
    const EACH: usize = 200;
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..EACH {
                    (&x * 2.0).unwrap().reduce_sum(None).unwrap().backward().unwrap();
                }
            });
        }
    });
    let sum = 4.0 * EACH as f64 * 2.0;
    assert_eq!(x.grad().unwrap().to_tensor().unwrap().as_slice::<f64>().unwrap(), [sum; 3]);
}

#[test]
fn a_failed_backward_adds_nothing() {
    let x = runtime().from_vec_col_major([2], vec![1.0, 2.0]).unwrap().requires_grad().unwrap();
    x.reduce_sum(None).unwrap().backward().unwrap();
    assert!(matches!((&x * 2.0).unwrap().backward(), Err(Error::NonScalar(_))));
    assert_eq!(x.grad().unwrap().to_tensor().unwrap().as_slice::<f64>().unwrap(), [1.0; 2]);
}

#[test]
fn asking_for_a_gradient_that_nobody_wants_is_an_error() {
    let x = runtime().from_vec_col_major([2], vec![1.0, 2.0]).unwrap();
    let e = x.reduce_sum(None).unwrap().backward().unwrap_err();
    assert!(matches!(e, Error::State(_)) && e.op() == "backward", "{e}");
}

#[test]
fn a_gradient_of_a_function_records_inside_no_grad() {
    let r = runtime();
    let x = r.scalar(3.0).unwrap();
    let square = |x: &EagerTensor| x * x;
    tenferro_core_ops::no_grad(|| {
        assert_eq!(r.grad(square, &x).unwrap().item::<f64>().unwrap(), 6.0);
        assert_eq!(r.hvp(square, &x, &x).unwrap().item::<f64>().unwrap(), 6.0);
        assert!(!(&x.requires_grad().unwrap() * 2.0).unwrap().tracks_gradient());
    });
    assert!((&x.requires_grad().unwrap() * 2.0).unwrap().tracks_gradient());
}

#[test]
fn tensors_of_two_runtimes_do_not_mix() {
    let (a, b) = (runtime(), runtime());
    let x = a.from_vec_col_major([2], vec![1.0, 2.0]).unwrap();
    let t = b.from_vec_col_major([2], vec![1.0, 2.0]).unwrap();
    let one = b.scalar(1.0).unwrap();
    let f = |x: &EagerTensor| -> Result<EagerTensor> { (x * x)?.reduce_sum(None) };
    let y = f(&x.requires_grad().unwrap()).unwrap();
    let cases: [(&str, Result<()>); 8] = [
        ("add", x.add(&t).map(drop)),
        ("backward_with", y.backward_with(&one)),
        ("cotangents", y.cotangents(&one, &[&x], false).map(drop)),
        ("gradients", y.gradients(&[&t], false).map(drop)),
        ("grad", b.grad(f, &x).map(drop)),
        ("vjp", a.vjp(f, &x, &one).map(drop)),
        ("jvp", a.jvp(f, &x, &t).map(drop)),
        ("hvp", a.hvp(f, &x, &t).map(drop)),
    ];
    for (name, result) in cases {
        let e = result.unwrap_err();
        assert!(matches!(e, Error::State(_)) && e.op() == name, "{name}: {e}");
    }
}

#[test]
fn integers_have_no_gradient() {
    let x = TracedTensor::input(DType::I64, &[Dim::Lit(2)]);
    let y = x.cast(DType::F64).unwrap().reduce_sum(None).unwrap();
    assert!(matches!(y.grads(&[&x]), Err(Error::DType(m)) if m.op == "grads"));
    let n = runtime().from_vec_col_major([2], vec![1_i64, 2]).unwrap();
    let f = |n: &EagerTensor| n.cast(DType::F64)?.reduce_sum(None);
    assert!(matches!(runtime().grad(f, &n), Err(Error::State(_))));
    let e = n.runtime().grad(f, &n).unwrap_err();
    assert!(matches!(e, Error::DType(_)) && e.op() == "grad", "{e}");
}
