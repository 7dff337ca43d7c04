//! Bugs that were reported of other libraries, as tests: the reports are named.

mod common;

use common::naive;
use tenferro_cpu::CpuBackend;
use tenferro_einsum::{Einsum, EinsumOp, Notation, Optimize, prelude::*};
use tenferro_runtime::{EagerRuntime, EagerTensor, Out, TracedTensor, execute, prelude::*};
use tenferro_tensor::{Error, TypedTensor};

fn counting(shape: &[usize], first: f64) -> TypedTensor<f64> {
    let n = shape.iter().product::<usize>();
    TypedTensor::from_vec_row_major(shape, (0..n).map(|i| first + i as f64).collect::<Vec<_>>()).unwrap()
}

/// The einsum on every tier that needs no program.
#[track_caller]
fn compute(text: &str, x: &[&TypedTensor<f64>]) -> TypedTensor<f64> {
    let mut cpu = CpuBackend::new();
    let y = TypedTensor::einsum(text, x, &mut cpu).unwrap();
    let runtime = EagerRuntime::new(&cpu);
    let eager: Vec<EagerTensor> =
        x.iter().map(|x| runtime.tensor(x.duplicate().unwrap().into_tensor()).unwrap()).collect();
    let eager = EagerTensor::einsum(text, &eager.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(eager.to_tensor().unwrap().as_typed::<f64>().unwrap(), &y);
    y
}

#[track_caller]
fn gives(text: &str, x: &[&TypedTensor<f64>], shape: &[usize], row_major: &[f64]) {
    let y = compute(text, x);
    assert_eq!((y.shape(), &y.to_vec_row_major().unwrap()[..]), (shape, row_major), "{text}");
}

/// tinygrad 18207.
#[test]
fn a_repeated_label_that_is_not_last() {
    let a = counting(&[2, 2, 4], 0.0);
    let v = TypedTensor::from_vec_col_major([4], vec![1.0, 10.0, 100.0, 1000.0]).unwrap();
    gives("iij->ij", &[&a], &[2, 4], &[0.0, 1.0, 2.0, 3.0, 12.0, 13.0, 14.0, 15.0]);
    gives("iij->i", &[&a], &[2], &[6.0, 54.0]);
    gives("iij,j->ij", &[&a, &v], &[2, 4], &[0.0, 10.0, 200.0, 3000.0, 12.0, 130.0, 1400.0, 15000.0]);
    gives("iij->ji", &[&a], &[4, 2], &[0.0, 12.0, 1.0, 13.0, 2.0, 14.0, 3.0, 15.0]);
}

/// TensorFlow 24374.
#[test]
fn a_trace_without_an_arrow() {
    let a = counting(&[3, 3], 1.0);
    gives("ii", &[&a], &[], &[15.0]);
    gives("ii->", &[&a], &[], &[15.0]);
    gives("ij->", &[&a], &[], &[45.0]);
    gives("ji", &[&a], &[3, 3], &[1.0, 4.0, 7.0, 2.0, 5.0, 8.0, 3.0, 6.0, 9.0]);
}

/// NumPy 14692, psi4 1465.
#[test]
fn crossed_pairs_of_labels() {
    let a = counting(&[2, 2, 2, 2], 0.0);
    for text in ["ijij->", "ijji->", "iijj->"] {
        gives(text, &[&a], &[], &[30.0]);
    }
    gives("ijij->ji", &[&a], &[2, 2], &[0.0, 10.0, 5.0, 15.0]);
}

/// NumPy 11541, JAX 3645.
#[test]
fn extents_that_differ_are_refused_on_every_path() {
    let (a, b) = (TypedTensor::<f64>::full([5, 1], 1.0).unwrap(), counting(&[2], 1.0));
    let mut cpu = CpuBackend::new();
    let is_refused = |e: Error| {
        assert!(matches!(e, Error::Shape(_)), "{e:?}");
        assert!(e.to_string().contains("label 'i' in operand 1: got 2, expected 5 as in operand 0"), "{e}");
    };
    is_refused(TypedTensor::einsum("ij,i->", &[&a, &b], &mut cpu).unwrap_err());
    let shapes: [&[usize]; 2] = [&[5, 1], &[2]];
    let einsum = Einsum::parse("ij,i->").unwrap();
    for optimize in [Optimize::Auto, Optimize::Greedy, Optimize::Optimal, Optimize::path([(0, 1)])] {
        let einsum = einsum.optimized(optimize).unwrap();
        is_refused(TypedTensor::einsum(&einsum, &[&a, &b], &mut cpu).unwrap_err());
        is_refused(einsum.plan(&shapes).unwrap_err());
        is_refused(einsum.prepare(&shapes).unwrap_err());
    }
    let runtime = EagerRuntime::new(&cpu);
    let [x, y] = [&a, &b].map(|x| runtime.tensor(x.duplicate().unwrap().into_tensor()).unwrap());
    is_refused(EagerTensor::einsum("ij,i->", &[&x, &y]).unwrap_err());
    let [p, q] = shapes.map(|shape| {
        TracedTensor::input(DType::F64, &shape.iter().map(|n| Dim::Lit(*n)).collect::<Vec<_>>())
    });
    is_refused(TracedTensor::einsum("ij,i->", &[&p, &q]).unwrap_err());
    let op = EinsumOp::new("ij,i->".parse().unwrap(), Optimize::Auto).unwrap();
    is_refused(execute(&op, &[(&a).into(), (&b).into()], Out::New, &mut cpu).unwrap_err());
}

/// NumPy 30349: the ellipsis is summed where the output lacks it.
#[test]
fn an_ellipsis_that_the_output_lacks_is_summed() {
    let x = counting(&[3, 3, 3], 0.0);
    gives("i...->i", &[&x], &[3], &[36.0, 117.0, 198.0]);
    let turned = compute("...ij->...ji", &[&x]);
    assert_eq!(turned, compute("bij->bji", &[&x]));
    assert_eq!(turned.to_vec_row_major().unwrap()[..6], [0.0, 3.0, 6.0, 1.0, 4.0, 7.0]);
}

/// tenferro-rs 539, PyTorch 31421, TVM 19578, TBLIS 15: with memory of the pool that holds NaN.
#[test]
fn a_sum_over_nothing_is_zero() {
    for _ in 0..3 {
        for n in 1..64 {
            drop(TypedTensor::<f64>::full([n], f64::NAN).unwrap());
        }
        let zeros = |text: &str, shapes: &[&[usize]], shape: &[usize]| {
            let x: Vec<TypedTensor<f64>> = shapes.iter().map(|s| counting(s, 1.0)).collect();
            let y = compute(text, &x.iter().collect::<Vec<_>>());
            assert_eq!(y, TypedTensor::<f64>::zeros(shape).unwrap(), "{text}");
            let prepared = Einsum::parse(text).unwrap().prepare(shapes).unwrap();
            let reads: Vec<_> = x.iter().map(Into::into).collect();
            let mut y = TypedTensor::<f64>::full(shape, f64::NAN).unwrap();
            let mut cpu = CpuBackend::new();
            prepared.run_into(&reads, y.as_view_mut().unwrap().into(), &mut cpu).unwrap();
            prepared.accumulate(2.0, &reads, 0.0, y.as_view_mut().unwrap().into(), &mut cpu).unwrap();
            assert_eq!(y, TypedTensor::<f64>::zeros(shape).unwrap(), "{text}");
        };
        zeros("i,i->", &[&[0], &[0]], &[]);
        zeros("ij,jk->ik", &[&[2, 0], &[0, 3]], &[2, 3]);
        zeros("bij,bjk->bik", &[&[3, 2, 0], &[3, 0, 3]], &[3, 2, 3]);
        zeros("jnbf,menf->jbme", &[&[2, 0, 6, 8], &[2, 6, 0, 8]], &[2, 6, 2, 6]);
        zeros("ij->i", &[&[3, 0]], &[3]);
    }
}

/// opt_einsum 8: twice the best is the bound, which opt_einsum counts without the factor 2 of a sum.
#[test]
fn a_tetrahedron_is_contracted_in_pairs() {
    let shapes: [&[usize]; 4] = [&[20; 3]; 4];
    for optimize in [Optimize::Auto, Optimize::Greedy, Optimize::Optimal] {
        let plan =
            Einsum::parse("abc,cfd,dbe,efa").unwrap().optimized(optimize).unwrap().plan(&shapes).unwrap();
        assert_eq!(plan.steps().len(), 3);
        assert!(plan.flops() <= 2.0 * 12_816_000.0, "{plan}");
        assert!(plan.largest_intermediate() <= 160_000.0, "{plan}");
    }
}

/// NumPy 9775: as in opt_einsum the best order takes 1,641,875 flops.
#[test]
fn labels_on_three_operands_and_more_are_planned_well() {
    let text = "ab,ac,bc,ad,bd,ae,ce,de->";
    let shapes: [&[usize]; 8] = [&[25, 25]; 8];
    for optimize in [Optimize::Auto, Optimize::Greedy, Optimize::Optimal] {
        let plan = Einsum::parse(text).unwrap().optimized(optimize).unwrap().plan(&shapes).unwrap();
        assert!(plan.flops() <= 2.0 * 1_641_875.0, "{plan}");
    }
    // Of matrices of zeros and ones, small enough for loops over all labels.
    let matrix = |seed: usize| {
        TypedTensor::from_fn([3, 3], |i| f64::from(u8::from((i[0] * 5 + i[1] * 3 + seed) % 4 < 2))).unwrap()
    };
    let x: Vec<TypedTensor<f64>> = (0..8).map(matrix).collect();
    let refs: Vec<&TypedTensor<f64>> = x.iter().collect();
    let notation: Notation = text.parse().unwrap();
    assert_eq!(compute(text, &refs), naive(&notation, &refs));
}
