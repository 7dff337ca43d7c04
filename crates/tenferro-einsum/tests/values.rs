//! Values on all four tiers against the definition, exactly.

mod common;

use common::{Case, Exact, case, copies, naive, random, thirty};
use proptest::prelude::*;
use tenferro_core_ops::{Aval, Primitive, Var, input};
use tenferro_cpu::CpuBackend;
use tenferro_einsum::{Einsum, EinsumOp, Notation, Optimize, prelude::*};
use tenferro_runtime::{EagerRuntime, EagerTensor, GraphCompiler, Out, TracedTensor, execute, prelude::*};
use tenferro_tensor::{C64, Tensor, TypedTensor};

fn traced(case: &Case, symbolic: bool, dtype: DType) -> (Vec<TracedTensor>, TracedTensor) {
    let inputs = case.inputs(symbolic, dtype);
    let y = TracedTensor::einsum(&case.notation, &inputs.iter().collect::<Vec<_>>()).unwrap();
    (inputs, y)
}

fn every_tier<T: Exact>(case: &Case) -> Result<(), TestCaseError> {
    let mut cpu = CpuBackend::new();
    let x = case.operands::<T>();
    let refs: Vec<&TypedTensor<T>> = x.iter().collect();
    let expected = naive(&case.notation, &refs);
    let check = |y: &Tensor| {
        prop_assert_eq!(y.as_typed::<T>().unwrap(), &expected);
        Ok(())
    };
    prop_assert_eq!(&TypedTensor::einsum(&case.notation, &refs, &mut cpu).unwrap(), &expected);
    let labels: Vec<&[u32]> = case.notation.inputs().iter().map(|labels| &labels[..]).collect();
    prop_assert_eq!(
        &TypedTensor::einsum_labels(&labels, case.notation.output(), &refs, &mut cpu).unwrap(),
        &expected
    );

    let tensors = copies(&x);
    let refs: Vec<&Tensor> = tensors.iter().collect();
    let op = Einsum::new(&case.notation, Optimize::Greedy).unwrap();
    check(&Tensor::einsum(&op, &refs, &mut cpu).unwrap())?;

    // Operands that are views with their axes in opposite order in memory.
    let runtime = EagerRuntime::new(&cpu);
    let backwards = |x: &Tensor| {
        let reversed: Vec<usize> = (0..x.rank()).rev().collect();
        let turned = x.transpose(&reversed, &mut CpuBackend::new()).unwrap();
        runtime.tensor(turned).unwrap().transpose(&reversed).unwrap()
    };
    let eager: Vec<EagerTensor> = tensors.iter().map(backwards).collect();
    let y = EagerTensor::einsum(&case.notation, &eager.iter().collect::<Vec<_>>()).unwrap();
    check(&y.to_tensor().unwrap())?;

    for symbolic in [false, true] {
        let (inputs, y) = traced(case, symbolic, T::DTYPE);
        let inputs: Vec<&TracedTensor> = inputs.iter().collect();
        let program = GraphCompiler::new().compile_with(&inputs, &[&y]).unwrap();
        check(&program.run(&mut cpu, &refs).unwrap()[0])?;
    }
    Ok(())
}

#[test]
fn operands_have_thirty_axes() {
    every_tier::<f64>(&thirty()).unwrap();
    every_tier::<i64>(&thirty()).unwrap();
    every_tier::<C64>(&thirty()).unwrap();
}

proptest! {
    #![proptest_config(tenferro_cases::cases(60))]

    #[test]
    fn every_tier_computes_f64(case in case()) {
        every_tier::<f64>(&case)?;
    }

    #[test]
    fn every_tier_computes_c64(case in case()) {
        every_tier::<C64>(&case)?;
    }

    #[test]
    fn every_tier_computes_i64(case in case()) {
        every_tier::<i64>(&case)?;
    }
}

/// A tensor whose element `i` is `i + 1`, in column-major order.
fn counting(shape: &[usize]) -> TypedTensor<f64> {
    let n = shape.iter().product();
    TypedTensor::from_vec_col_major(shape, (0..n).map(|i: usize| (i + 1) as f64).collect::<Vec<_>>()).unwrap()
}

fn compute(text: &str, x: &[&TypedTensor<f64>]) -> TypedTensor<f64> {
    TypedTensor::einsum(text, x, &mut CpuBackend::new()).unwrap()
}

#[test]
fn diagonals_sums_scalars_and_hyperedges() {
    let a = counting(&[2, 2]);
    let (v, s) = (counting(&[2]), counting(&[]));
    assert_eq!(compute("ij->ji", &[&a]).as_slice().unwrap(), [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(compute("ii->i", &[&a]).as_slice().unwrap(), [1.0, 4.0]);
    assert_eq!(compute("ii->", &[&a]).item().unwrap(), 5.0);
    assert_eq!(compute("ij->j", &[&a]).as_slice().unwrap(), [3.0, 7.0]);
    assert_eq!(compute("->", &[&s]).item().unwrap(), 1.0);
    assert_eq!(compute(",ij,->ij", &[&s, &a, &s]), a);
    assert_eq!(compute("i,i,i->i", &[&v, &v, &v]).as_slice().unwrap(), [1.0, 8.0]);
    assert_eq!(compute("i,i,i,ij->", &[&v, &v, &v, &a]).item().unwrap(), 4.0 + 8.0 * 6.0);
    assert_eq!(compute("iii->i", &[&counting(&[2, 2, 2])]).as_slice().unwrap(), [1.0, 8.0]);
}

#[test]
fn nothing_to_sum_gives_zeros_and_nothing_to_keep_gives_nothing() {
    let (a, b) = (counting(&[2, 0]), counting(&[0, 3]));
    assert_eq!(compute("ij,jk->ik", &[&a, &b]), <TypedTensor<f64>>::zeros([2, 3]).unwrap());
    assert_eq!(compute("ij,jk->jk", &[&a, &b]).shape(), [0, 3]);
    assert_eq!(compute("ij->", &[&a]).item().unwrap(), 0.0);
    assert_eq!(compute("ij,jk,ik->", &[&a, &b, &counting(&[2, 3])]).item().unwrap(), 0.0);
}

#[test]
fn a_long_chain_is_the_product_of_its_matrices() {
    let n = 40;
    let mut seed = 7;
    let x: Vec<TypedTensor<f64>> = (0..n).map(|_| random(&[2, 2], &mut seed)).collect();
    let x: Vec<&TypedTensor<f64>> = x.iter().collect();
    let labels: Vec<[u32; 2]> = (0..n).map(|i| [i, i + 1]).collect();
    let labels: Vec<&[u32]> = labels.iter().map(|pair| &pair[..]).collect();
    let step: Notation = "ij,jk->ik".parse().unwrap();
    let product = x[1..].iter().fold(x[0].duplicate().unwrap(), |left, right| naive(&step, &[&left, right]));
    let mut cpu = CpuBackend::new();
    let scale = product.as_slice().unwrap().iter().fold(0.0_f64, |m, y| m.max(y.abs()));
    let open = TypedTensor::einsum_labels(&labels, &[0, n], &x, &mut cpu).unwrap();
    assert!(open.allclose(&product, 0.0, 1e-13 * scale).unwrap(), "{open}\n{product}");
    // Closed to a ring.
    let ring: Vec<[u32; 2]> = (0..n).map(|i| [i, (i + 1) % n]).collect();
    let ring: Vec<&[u32]> = ring.iter().map(|pair| &pair[..]).collect();
    let trace = TypedTensor::einsum_labels(&ring, &[], &x, &mut cpu).unwrap().item().unwrap();
    assert!((trace - product[[0, 0]] - product[[1, 1]]).abs() <= 1e-13 * scale);
}

#[test]
fn one_program_runs_at_any_extents_each_in_its_best_order() {
    let text = "ij,jk,kl,l->i";
    let dim = |c: char| Dim::symbol(c.to_string());
    let inputs: Vec<TracedTensor> = ["ij", "jk", "kl", "l"]
        .map(|labels| TracedTensor::input(DType::F64, &labels.chars().map(dim).collect::<Vec<_>>()))
        .into();
    let inputs: Vec<&TracedTensor> = inputs.iter().collect();
    let y = TracedTensor::einsum(text, &inputs).unwrap();
    let program = GraphCompiler::new().compile_with(&inputs, &[&y]).unwrap();
    let mut cpu = CpuBackend::new();
    let mut paths = vec![];
    for [i, j, k, l] in [[2, 3, 4, 5], [7, 1, 3, 2], [1, 9, 9, 9], [3, 0, 2, 2]] {
        let shapes: [&[usize]; 4] = [&[i, j], &[j, k], &[k, l], &[l]];
        let mut seed = (i * j) as u64;
        let x: Vec<TypedTensor<f64>> = shapes.iter().map(|shape| random(shape, &mut seed)).collect();
        let expected = naive(&text.parse().unwrap(), &x.iter().collect::<Vec<_>>());
        let x = copies(&x);
        let out = program.run(&mut cpu, &x.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(out[0].as_typed::<f64>().unwrap(), &expected);
        paths.push(Einsum::parse(text).unwrap().plan(&shapes).unwrap().path().to_vec());
    }
    assert_ne!(paths[0], paths[2]);
}

#[test]
fn a_trace_records_contractions_where_nothing_is_left_to_decide() {
    let names = |text: &str, symbolic: bool| {
        let dim = |c: char| if symbolic { Dim::symbol(c.to_string()) } else { 2.into() };
        let (operands, _) = text.split_once("->").unwrap();
        let inputs: Vec<TracedTensor> = operands
            .split(',')
            .map(|labels| TracedTensor::input(DType::F64, &labels.chars().map(dim).collect::<Vec<_>>()))
            .collect();
        let y = TracedTensor::einsum(text, &inputs.iter().collect::<Vec<_>>()).unwrap();
        GraphCompiler::new().compile(&y).unwrap().explain()
    };
    for (text, symbolic) in [("ij,jk->ik", false), ("ij,jk->ik", true), ("ij,jk,kl->il", false)] {
        let program = names(text, symbolic);
        assert!(program.contains("dot_general") && !program.contains("einsum"), "{program}");
    }
    assert!(names("ij,jk,kl->il", true).contains("einsum"));
}

#[test]
fn results_go_into_views_and_are_added_to_them() {
    let mut cpu = CpuBackend::new();
    let op = EinsumOp::new("ij,jk,k->ik".parse().unwrap(), Optimize::Auto).unwrap();
    let (a, v) = (counting(&[2, 2]), counting(&[2]));
    let reads = || [(&a).into(), (&a).into(), (&v).into()];
    let once = compute("ij,jk,k->ik", &[&a, &a, &v]);
    let mut y = Tensor::zeros(DType::F64, &[2, 2][..]).unwrap();
    execute(&op, &reads(), Out::Into(vec![y.as_view_mut().unwrap()]), &mut cpu).unwrap();
    assert_eq!(y.as_typed::<f64>().unwrap(), &once);
    let out = Out::Accumulate { alpha: 2.0, beta: -1.0, view: y.as_view_mut().unwrap() };
    execute(&op, &reads(), out, &mut cpu).unwrap();
    assert_eq!(y.as_typed::<f64>().unwrap(), &once);
}

#[test]
fn dynamic_operands_are_promoted() {
    let mut cpu = CpuBackend::new();
    let flags = Tensor::from_vec_col_major([2], vec![true, false]).unwrap();
    let counts = Tensor::from_vec_col_major([2], vec![3_i32, 5]).unwrap();
    let floats = Tensor::from_vec_col_major([2], vec![0.5_f32, 4.0]).unwrap();
    let complex = Tensor::from_vec_col_major([2], vec![C64::new(0.0, 1.0); 2]).unwrap();
    let y = Tensor::einsum("i,i->i", &[&flags, &counts], &mut cpu).unwrap();
    assert_eq!(y.as_slice::<i32>().unwrap(), [3, 0]);
    let y = Tensor::einsum("i,i,i->", &[&flags, &counts, &floats], &mut cpu).unwrap();
    assert_eq!(y.item::<f64>().unwrap(), 1.5);
    let y = Tensor::einsum("i,i->", &[&complex, &floats], &mut cpu).unwrap();
    assert_eq!(y.item::<C64>().unwrap(), C64::new(0.0, 4.5));
}

#[test]
fn every_order_gives_the_same() {
    let text = "abc,bcd,de,ea->d";
    let mut seed = 11;
    let shapes: [&[usize]; 4] = [&[2, 3, 2], &[3, 2, 2], &[2, 3], &[3, 2]];
    let x: Vec<TypedTensor<i64>> = shapes.iter().map(|shape| random(shape, &mut seed)).collect();
    let x: Vec<&TypedTensor<i64>> = x.iter().collect();
    let expected = naive(&text.parse().unwrap(), &x);
    let einsum = Einsum::parse(text).unwrap();
    let path = Optimize::path([(0, 3), (0, 1), (0, 1)]);
    let triple = Optimize::path([&[2][..], &[0, 3, 1], &[1, 0]]);
    for optimize in [Optimize::Auto, Optimize::Greedy, Optimize::Optimal, Optimize::TreeSA, path, triple] {
        let einsum = einsum.optimized(optimize).unwrap();
        assert_eq!(TypedTensor::einsum(&einsum, &x, &mut CpuBackend::new()).unwrap(), expected, "{einsum:?}");
    }
}

#[test]
fn a_backend_without_a_kernel_runs_the_decomposition_and_its_guards() {
    let mut cpu = CpuBackend::new();
    let mut seed = 3;
    let x = random::<f64>(&[2, 2, 3], &mut seed);
    let w = random::<f64>(&[3, 2], &mut seed);
    let v = random::<f64>(&[2], &mut seed);
    let expected = naive(&"iij,ji,i->ji".parse().unwrap(), &[&x, &w, &v]);
    // Every axis has a symbol of its own, so that every label is a guard.
    let symbols = |name: &str, rank| (0..rank).map(|i| Dim::symbol(format!("{name}{i}"))).collect::<Vec<_>>();
    let inputs: Vec<Var> = [("x", 3), ("w", 2), ("v", 1)]
        .map(|(name, rank)| input(Aval::new(DType::F64, symbols(name, rank))))
        .into();
    let op = EinsumOp::new("iij,ji,i->ji".parse().unwrap(), Optimize::Auto).unwrap();
    let y = Primitive::decompose(&op, &inputs).unwrap();
    let program = Program::new(&inputs, &y).unwrap();
    assert!(!program.explain().contains("einsum"));
    let [x, w, v] = [x, w, v].map(TypedTensor::into_tensor);
    let out = program.run(&mut cpu, &[&x, &w, &v]).unwrap();
    assert_eq!(out[0].as_typed::<f64>().unwrap(), &expected);
    for (x_shape, w_shape, v_shape) in [
        ([2, 3, 3], [3, 2], [2]),
        ([2, 2, 3], [4, 2], [2]),
        ([2, 2, 3], [3, 2], [1]),
        ([2, 2, 1], [3, 2], [2]),
    ] {
        let x = Tensor::zeros(DType::F64, &x_shape[..]).unwrap();
        let w = Tensor::zeros(DType::F64, &w_shape[..]).unwrap();
        let v = Tensor::zeros(DType::F64, &v_shape[..]).unwrap();
        assert!(program.run(&mut cpu, &[&x, &w, &v]).is_err(), "{x_shape:?} {w_shape:?} {v_shape:?}");
    }
}
