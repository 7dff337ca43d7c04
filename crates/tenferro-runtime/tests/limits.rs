//! Calls at the limits of shapes, parameters, memory and kernels.

use std::sync::atomic::{AtomicUsize, Ordering};
use tenferro_core_ops::{Aval, Now, Out, Var, constant, input, ops, vjp_traced};
use tenferro_cpu::CpuBackend;
use tenferro_runtime::{
    EagerRuntime, Error, GraphCompiler, Tensor, TensorExt, TracedTensor, execute, prelude::*,
};
use tenferro_tensor::{DType, MemoryKind, Placement, StorageBuffer, Value};

fn cpu() -> CpuBackend {
    CpuBackend::with_threads(1)
}

fn f64s(shape: &[usize], data: &[f64]) -> Tensor {
    Tensor::from_vec_col_major(shape, data.to_vec()).unwrap()
}

#[test]
fn a_step_beyond_every_extent_takes_the_first_element() {
    let x = f64s(&[3], &[1.0, 2.0, 3.0]);
    for step in [3, usize::MAX / 2, usize::MAX - 1, usize::MAX] {
        let y = TensorOps::slice(&x, &[0], &[3], &[step], &mut cpu()).unwrap();
        assert_eq!(y.as_slice::<f64>().unwrap(), [1.0], "{step}");
    }
}

#[test]
fn a_step_without_measure_beside_no_elements_takes_none() -> tenferro_runtime::Result<()> {
    let mut cpu = cpu();
    for shape in [[0, 3], [3, 0], [usize::MAX, 0], [1 << 63, 0]] {
        for step in [1, 2, 1 << 62, isize::MAX as usize, 1 << 63, usize::MAX] {
            let taken = shape.map(|n: usize| n.div_ceil(step));
            let x = Tensor::zeros(DType::F64, shape)?;
            let y = TensorOps::slice(&x, &[0, 0], &shape, &[step, step], &mut cpu)?;
            assert_eq!(y.shape(), taken, "{shape:?} by {step}");
            // Of a view, and of a slice that has a stride already.
            let turned = x.transpose(&[1, 0], &mut cpu)?;
            let y = TensorOps::slice(&turned, &[0, 0], &[shape[1], shape[0]], &[step; 2], &mut cpu)?;
            let y = TensorOps::slice(&y, &[0, 0], &[taken[1], taken[0]], &[step; 2], &mut cpu)?;
            assert!(y.is_empty());
            let p = TracedTensor::input(DType::F64, &[Dim::symbol("n"), Dim::symbol("m")]);
            let y = p.slice(&[0, 0], &[0, 0], &[step; 2])?;
            let program = GraphCompiler::new().compile_with(&[&p], &[&y])?;
            assert_eq!(program.run(&mut cpu, &[&x])?[0].shape(), [0, 0]);
            let p = TracedTensor::input(DType::F64, &shape.map(Dim::Lit));
            let program = GraphCompiler::new().compile(&p.slice(&[0, 0], &shape, &[step; 2])?)?;
            assert_eq!(program.run(&mut cpu, &[&x])?[0].shape(), taken, "{shape:?} by {step}");
        }
    }
    // Of an extent that is known when the program runs.
    let n = Dim::symbol("n");
    let p = TracedTensor::input(DType::F64, std::slice::from_ref(&n));
    for step in [2, 1 << 62, isize::MAX as usize, 1 << 63, usize::MAX] {
        let y = p.slice_dims(&[0.into()], std::slice::from_ref(&n), &[step])?;
        let program = GraphCompiler::new().compile(&(&y + 1.0)?)?;
        let out = program.run(&mut cpu, &[&f64s(&[5], &[1.0, 2.0, 3.0, 4.0, 5.0])])?;
        assert_eq!(out[0].shape(), [5_usize.div_ceil(step)], "{step}");
        assert_eq!(out[0].as_slice::<f64>()?[0], 2.0);
    }
    // The cotangent of a slice is a pad, and that of a pad a slice.
    let x = input(Aval::new(DType::F64, [Dim::Lit(3), Dim::Lit(2)]));
    for gap in [1, 1 << 62, (1 << 63) - 1, 1 << 63, usize::MAX - 1] {
        let y = x.slice(&[1_usize, 0], &[2, 2], &[gap + 1, 1]);
        let cotangent = constant(Value::new(f64s(&[1, 2], &[1.0, 2.0])));
        let back: Vec<Var> = vjp_traced(&[(y, cotangent)], &[&x])?.into_iter().flatten().collect();
        let program = Program::new(std::slice::from_ref(&x), &back)?;
        let out = program.run(&mut cpu, &[&f64s(&[3, 2], &[0.0; 6])])?;
        assert_eq!(out[0].as_slice::<f64>()?, [0.0, 1.0, 0.0, 0.0, 2.0, 0.0], "{gap}");
    }
    Ok(())
}

#[test]
fn literals_beyond_the_range_of_symbols_stand_beside_symbols() -> tenferro_runtime::Result<()> {
    let (mut cpu, n) = (cpu(), Dim::symbol("n"));
    let x = input(Aval::new(DType::F64, [n.clone()]));
    let ones = |n: usize| f64s(&[n], &vec![1.0; n]);
    for step in [1 << 62, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, usize::MAX - 1, usize::MAX] {
        // The extent is used: by the sum with a number, and by the cotangent.
        let y = &x.slice(&[Dim::Lit(0)], std::slice::from_ref(&n), &[step]) + 1.0;
        let sum = y.reduce_sum(None);
        let back: Vec<Var> =
            vjp_traced(&[(sum.clone(), sum.like(1.0))], &[&x])?.into_iter().flatten().collect();
        let program = Program::new(std::slice::from_ref(&x), &[y, back[0].clone()])?;
        for n in [0, 1, 2, 5] {
            let out = program.run(&mut cpu, &[&ones(n)])?;
            let first: Vec<f64> = (0..n).map(|i| if i == 0 { 1.0 } else { 0.0 }).collect();
            assert_eq!(out[0].as_slice::<f64>()?, vec![2.0; n.min(1)], "{step} of {n}");
            assert_eq!(out[1].as_slice::<f64>()?, first, "{step} of {n}");
        }
    }
    // Not the n - 1 elements that arithmetic modulo 2^64 would give.
    let zero = Var::full(&Aval::new(DType::F64, []), 0.0.into());
    let padded = x.pad(&zero, &[Dim::Lit(usize::MAX)], &[Dim::Lit(0)], &[0]);
    let fewer = x.slice_axis(0, 1, n.clone());
    assert!((&padded + &fewer).ok().is_err());
    let wide = x.broadcast_in_dim(&[n, Dim::Lit(usize::MAX)], &[0]);
    let program = Program::new(std::slice::from_ref(&x), &[wide.reduce_sum(None)])?;
    assert!(matches!(program.run(&mut cpu, &[&ones(3)]), Err(Error::Overflow(_))));
    Ok(())
}

#[test]
fn positions_without_end_are_an_error() {
    for shape in [&[usize::MAX][..], &[1 << 40], &[1 << 40, 1 << 40]] {
        let e = <Tensor as TensorExt>::iota(DType::F64, shape, 0, &mut cpu()).unwrap_err();
        assert!(matches!(e, Error::Overflow(_) | Error::Memory(_)), "{shape:?}: {e}");
    }
    let none = <Tensor as TensorExt>::iota(DType::F64, &[1 << 40, 0], 0, &mut cpu()).unwrap();
    assert_eq!(none.shape(), [1 << 40, 0]);
}

#[test]
fn empty_tensors_of_huge_extents_work() {
    let shape = [1 << 40, 1 << 40, 0];
    let x = Tensor::zeros(DType::F64, shape).unwrap();
    let mut cpu = cpu();
    for y in [
        x.add(&x, &mut cpu),
        x.exp(&mut cpu),
        x.transpose(&[2, 0, 1], &mut cpu),
        x.reverse(&[1], &mut cpu),
        x.tril(0, &mut cpu),
        x.less(&x, &mut cpu),
        x.matmul(&x.transpose(&[1, 0, 2], &mut cpu).unwrap(), &mut cpu),
    ] {
        assert!(y.unwrap().is_empty());
    }
    for y in [
        x.reduce_prod(Some(&[2]), &mut cpu),
        x.reshape(&[0, 1 << 62, 1 << 62], &mut cpu),
        x.broadcast_to(&[1 << 62, 1 << 40, 1 << 40, 0], &mut cpu),
        <Tensor as TensorExt>::concatenate(&[&x, &x], 1, &mut cpu),
    ] {
        drop(y);
    }
    let one = Tensor::scalar(1.0);
    let e = one.broadcast_to(&[1 << 62, 1 << 62], &mut cpu).unwrap_err();
    assert!(matches!(e, Error::Overflow(_)), "{e}");
    let sum = x.reduce_sum(Some(&[0, 1]), &mut cpu).unwrap();
    assert_eq!(sum.shape(), [0]);
    let p = TracedTensor::input(DType::F64, &shape.map(Dim::Lit));
    let y = (&(&p * &p).unwrap() + 1.0).unwrap().tril(0).unwrap();
    let program = GraphCompiler::new().compile_with(&[&p], &[&y]).unwrap();
    assert_eq!(program.run(&mut cpu, &[&x]).unwrap()[0].shape(), shape);
}

#[test]
fn small_contractions_with_batch_axes_and_no_free_ones_fit_their_result() {
    // y[b] = sum over k of a[b, k] c[k, b], directly and in a program, where the result is inside.
    let dims = ops::DotGeneral {
        lhs_contract: [1][..].into(),
        rhs_contract: [0][..].into(),
        lhs_batch: [0][..].into(),
        rhs_batch: [1][..].into(),
        ..Default::default()
    };
    let mut cpu = cpu();
    for (b, k) in [(1, 1), (3, 2), (10, 1), (4, 0)] {
        let a = f64s(&[b, k], &(0..b * k).map(|i| 1.0 + i as f64).collect::<Vec<_>>());
        let c = f64s(&[k, b], &(0..b * k).map(|i| 2.0 - i as f64).collect::<Vec<_>>());
        let term = |i: usize, j: usize| (1.0 + (i + b * j) as f64) * (2.0 - (j + k * i) as f64);
        let want: Vec<f64> = (0..b).map(|i| (0..k).map(|j| term(i, j)).sum()).collect();
        let y = a.dot_general(&c, &dims, &mut cpu).unwrap();
        assert_eq!(y.as_slice::<f64>().unwrap(), want);
        let [p, q] = [&a, &c].map(|x| {
            TracedTensor::input(DType::F64, &x.shape().iter().map(|&n| Dim::Lit(n)).collect::<Vec<_>>())
        });
        let y = p.dot_general(&q, &dims).unwrap().reduce_sum(None).unwrap();
        let program = GraphCompiler::new().compile_with(&[&p, &q], &[&y]).unwrap();
        for _ in 0..2 {
            let y = program.run(&mut cpu, &[&a, &c]).unwrap();
            assert_eq!(y[0].item::<f64>().unwrap(), want.iter().sum::<f64>());
        }
    }
}

#[test]
fn integers_are_accumulated_with_integer_factors_only() {
    let x = Tensor::from_vec_col_major([2, 2], vec![1_i64, 2, 3, 4]).unwrap();
    let mut y = Tensor::from_vec_col_major([2, 2], vec![1_i64; 4]).unwrap();
    let dot =
        ops::DotGeneral { lhs_contract: [1][..].into(), rhs_contract: [0][..].into(), ..Default::default() };
    let mut run = |alpha, beta| {
        let out = Out::Accumulate { alpha, beta, view: y.as_view_mut().unwrap() };
        let result = execute(&dot, &[(&x).into(), (&x).into()], out, &mut cpu()).map(drop);
        (result, y.as_slice::<i64>().unwrap().to_vec())
    };
    let (result, untouched) = run(0.5, 1.0);
    assert!(matches!(result, Err(Error::Argument(m)) if m.op == "dot_general" && m.got == "0.5"));
    assert_eq!(untouched, [1; 4]);
    assert_eq!(run(2.0, -1.0).1, [13, 19, 29, 43]);
}

#[test]
fn locked_host_memory_is_host_memory_on_every_tier() {
    let placement = Placement { memory_kind: MemoryKind::PinnedHost, device: None, cpu_affinity: None };
    let make = || {
        let data = StorageBuffer::Host(vec![1.0, 2.0]);
        Tensor::from_buffer_col_major([2], data, placement.clone()).unwrap()
    };
    let mut cpu = cpu();
    let x = make();
    assert_eq!(x.add(&x, &mut cpu).unwrap().as_slice::<f64>().unwrap(), [2.0, 4.0]);
    let e = EagerRuntime::new(&cpu).tensor(make()).unwrap();
    assert_eq!((&e + &e).unwrap().to_tensor().unwrap().as_slice::<f64>().unwrap(), [2.0, 4.0]);
    let p = TracedTensor::input(DType::F64, &[Dim::Lit(2)]);
    let program = GraphCompiler::new().compile_with(&[&p], &[&(&p + &p).unwrap()]).unwrap();
    assert_eq!(program.run(&mut cpu, &[&x]).unwrap()[0].as_slice::<f64>().unwrap(), [2.0, 4.0]);
}

#[test]
fn a_kernel_that_replaces_another_is_called_everywhere() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let mut cpu = cpu();
    let x = f64s(&[2], &[1.0, 2.0]);
    let p = TracedTensor::input(DType::F64, &[Dim::Lit(2)]);
    // Fused with what is around it, and prepared.
    let y = (&(&p.exp().unwrap() * &p).unwrap() + 1.0).unwrap().reduce_sum(None).unwrap();
    let y = (&y + &p.exp().unwrap()).unwrap();
    let program = GraphCompiler::new().compile_with(&[&p], &[&y]).unwrap();
    let before = program.run(&mut cpu, &[&x]).unwrap();
    assert_eq!(CALLS.load(Ordering::Relaxed), 0);
    cpu.replace_kernels(|table| {
        table.on::<CpuBackend, ops::Exp>(ops::FLOATS, |_, _, x, _, _| {
            CALLS.fetch_add(1, Ordering::Relaxed);
            let e: Vec<f64> = x[0].read().to_tensor()?.as_slice::<f64>()?.iter().map(|v| v.exp()).collect();
            Ok([Tensor::from_vec_col_major(x[0].shape(), e)?].into_iter().collect())
        });
    });
    let after = program.run(&mut cpu, &[&x]).unwrap();
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);
    let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-14 * a.abs());
    assert!(close(before[0].as_slice().unwrap(), after[0].as_slice().unwrap()));
    x.exp(&mut cpu).unwrap();
    assert_eq!(CALLS.load(Ordering::Relaxed), 2);
}

#[test]
fn an_error_names_the_method_that_was_called() {
    let mut cpu = cpu();
    let (a, b) = (f64s(&[2, 3], &[0.0; 6]), f64s(&[2, 2], &[0.0; 4]));
    let flags = Tensor::from_vec_col_major([2, 2], vec![true; 4]).unwrap();
    let z = Tensor::zeros(DType::C64, [2, 2]).unwrap();
    let cases = [
        ("matmul", a.matmul(&a, &mut cpu)),
        ("matmul", flags.matmul(&flags, &mut cpu)),
        ("tensordot", a.tensordot(&a, 1, &mut cpu)),
        ("tensordot", a.tensordot_axes(&b, &[0, 1], &[0], &mut cpu)),
        ("tril", flags.tril(0, &mut cpu)),
        ("triu", f64s(&[2], &[0.0; 2]).triu(0, &mut cpu)),
        ("less", z.less(&z, &mut cpu)),
        ("greater_equal", z.greater_equal(&z, &mut cpu)),
    ];
    for (name, result) in cases {
        assert_eq!(result.unwrap_err().op(), name);
    }
}

#[test]
fn a_tensor_may_be_every_operand() {
    let mut cpu = cpu();
    let x = f64s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let p = TracedTensor::input(DType::F64, &[Dim::symbol("n"), Dim::symbol("n")]);
    let q = TracedTensor::input(DType::F64, &[Dim::symbol("n"), Dim::symbol("n")]);
    let y = (&p.matmul(&q).unwrap() + &p).unwrap().select_or(&p, &p.less(&q).unwrap()).unwrap();
    let y = TracedTensor::concatenate(&[&y, &p, &q], 1).unwrap();
    let program = GraphCompiler::new().compile_with(&[&p, &q], &[&y, &p, &p]).unwrap();
    for _ in 0..3 {
        let out = program.run(&mut cpu, &[&x, &x]).unwrap();
        let want = [1.0, 2.0, 3.0, 4.0].repeat(3);
        assert_eq!(out[0].as_slice::<f64>().unwrap(), want);
        // Each output is a buffer of its own, also of the same input.
        let own: Vec<usize> = [&x, &out[1], &out[2]].map(|t| t.host_ptr::<f64>().unwrap().addr()).to_vec();
        assert!(own[0] != own[1] && own[1] != own[2] && own[0] != own[2]);
    }
    assert_eq!(x.as_slice::<f64>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let y = x.clamp(&x, &x, &mut cpu).unwrap();
    assert_eq!(y.as_slice::<f64>().unwrap(), x.as_slice::<f64>().unwrap());
    let flags = Tensor::from_vec_col_major([2], vec![true, false]).unwrap();
    let y = TensorExt::select(&flags, &flags, &flags, &mut cpu).unwrap();
    assert_eq!(y.as_slice::<bool>().unwrap(), [true, false]);
    let at = Tensor::from_vec_col_major([3], vec![2_i64, 0, 1]).unwrap();
    assert_eq!(at.gather(&at, 0, &mut cpu).unwrap().as_slice::<i64>().unwrap(), [1, 2, 0]);
}

#[test]
fn an_operand_is_never_a_destination() {
    // The borrow checker keeps views of one handle apart; of a shared tensor there is no view to write.
    let mut x = f64s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let other = x.share();
    assert!(matches!(x.as_view_mut(), Err(Error::State(_))));
    drop(other);
    assert!(x.as_view_mut().is_ok());
    // A destination beside its operand, in the same buffer, and one that an operand was copied from.
    let (left, right) = x.as_view_mut().unwrap().split_at(1, 1).unwrap();
    let copy = left.as_view().to_tensor().unwrap();
    execute(&ops::Neg, &[left.as_view().into()], Out::Into(vec![right]), &mut cpu()).unwrap();
    assert_eq!(copy.as_slice::<f64>().unwrap(), [1.0, 2.0]);
    assert_eq!(x.as_slice::<f64>().unwrap(), [1.0, 2.0, -1.0, -2.0]);
}

#[test]
fn any_lists_of_inputs_and_outputs_give_a_program_or_an_error() {
    let place = || input(Aval::new(DType::F64, [Dim::Lit(2)]));
    let (x, y) = (place(), place());
    let value = || Value::new(f64s(&[2], &[5.0, 6.0]));
    let (now, later) = (Var::Now(Now::new(value())), constant(value()));
    let failed = Var::Failed(Error::argument("t", "what", 1, 2));
    // What the value depends on, and the value, where the placeholders are (1, 2) and (3, 4).
    let all: [(Var, &[usize], [f64; 2]); 8] = [
        (x.clone(), &[0], [1.0, 2.0]),
        (y.clone(), &[1], [3.0, 4.0]),
        (&x + &y, &[0, 1], [4.0, 6.0]),
        (-&x, &[0], [-1.0, -2.0]),
        (now, &[], [5.0, 6.0]),
        (later.clone(), &[], [5.0, 6.0]),
        (&later * &later, &[], [25.0, 36.0]),
        (failed, &[], [0.0; 2]),
    ];
    let lists = |most: usize| -> Vec<Vec<usize>> {
        let longer = |lists: &Vec<Vec<usize>>| {
            lists.iter().flat_map(|l| (0..all.len()).map(|k| [&l[..], &[k]].concat())).collect()
        };
        let by_length = std::iter::successors(Some(vec![vec![]]), |lists| Some(longer(lists)));
        by_length.take(most + 1).flatten().collect()
    };
    let mut cpu = cpu();
    for inputs in lists(3) {
        let vars = |list: &[usize]| list.iter().map(|&k| all[k].0.clone()).collect::<Vec<_>>();
        let distinct = (1..inputs.len()).all(|i| !inputs[..i].contains(&inputs[i]));
        let placeholders = distinct && inputs.iter().all(|&k| k < 2);
        let tensors: Vec<Tensor> = inputs.iter().map(|&k| f64s(&[2], &all[k].2)).collect();
        for outputs in lists(2) {
            let known = outputs.iter().all(|&k| k < 7 && all[k].1.iter().all(|x| inputs.contains(x)));
            let program = Program::new(&vars(&inputs), &vars(&outputs));
            assert_eq!(program.is_ok(), placeholders && known, "{inputs:?} {outputs:?}");
            let Ok(program) = program else { continue };
            let got = program.run(&mut cpu, &tensors.iter().collect::<Vec<_>>()).unwrap();
            for (t, &k) in got.iter().zip(&outputs) {
                assert_eq!(t.as_slice::<f64>().unwrap(), all[k].2, "{inputs:?} {outputs:?}");
            }
        }
    }
}
