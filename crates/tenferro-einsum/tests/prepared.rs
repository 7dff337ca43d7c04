//! Prepared einsums give what the einsum gives, in all forms.

mod common;

use common::{Exact, case, copies, naive, random};
use proptest::prelude::*;
use tenferro_core_ops::ops::{DotGeneral, NUMBERS};
use tenferro_cpu::CpuBackend;
use tenferro_einsum::{Einsum, Optimize, prelude::*};
use tenferro_runtime::{EagerRuntime, EagerTensor, GraphCompiler, TracedTensor, prelude::*};
use tenferro_tensor::{C64, Error, Tensor, TensorRead, TypedTensor};

fn in_all_forms<T: Exact>(case: &common::Case) -> Result<(), TestCaseError> {
    let mut cpu = CpuBackend::new();
    let x = case.operands::<T>();
    let refs: Vec<&TypedTensor<T>> = x.iter().collect();
    let expected = naive(&case.notation, &refs);
    let shapes = case.shapes();
    let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    let prepared = Einsum::new(&case.notation, Optimize::Auto).unwrap().prepare(&shapes).unwrap();
    // Twice: the first call looks for kernels.
    for _ in 0..2 {
        prop_assert_eq!(&prepared.run_typed(&refs, &mut cpu).unwrap(), &expected);
    }
    let tensors = copies(&x);
    let y = prepared.run(&tensors.iter().collect::<Vec<_>>(), &mut cpu).unwrap();
    prop_assert_eq!(y.as_typed::<T>().unwrap(), &expected);

    // Into every second element of a larger tensor, whose others stay.
    let wide: Vec<usize> = expected.shape().iter().map(|n| 2 * n).collect();
    let mut seed = case.seed ^ 3;
    let mut y: TypedTensor<T> = random(&wide, &mut seed);
    let before = y.duplicate().unwrap();
    let reads: Vec<TensorRead<'_>> = tensors.iter().map(Into::into).collect();
    let zeros = vec![0; wide.len()];
    let steps = vec![2_isize; wide.len()];
    let view = y.as_view_mut().unwrap().slice_view(&zeros, &wide, &steps).unwrap();
    prepared.run_into(&reads, view.into(), &mut cpu).unwrap();
    let written = |index: &[usize]| {
        let inside = index.iter().all(|i| i % 2 == 0);
        let half: Vec<usize> = index.iter().map(|i| i / 2).collect();
        inside.then(|| *expected.get(&half).unwrap())
    };
    let once: TypedTensor<T> =
        TypedTensor::from_fn(&wide[..], |i| written(i).unwrap_or_else(|| *before.get(i).unwrap())).unwrap();
    prop_assert_eq!(&y, &once);

    // 2 einsum - y is the einsum again.
    let view = y.as_view_mut().unwrap().slice_view(&zeros, &wide, &steps).unwrap();
    prepared.accumulate(2.0, &reads, -1.0, view.into(), &mut cpu).unwrap();
    prop_assert_eq!(&y, &once);
    Ok(())
}

proptest! {
    #![proptest_config(tenferro_cases::cases(60))]

    #[test]
    fn all_forms_of_f64(case in case()) {
        in_all_forms::<f64>(&case)?;
    }

    #[test]
    fn all_forms_of_c64(case in case()) {
        in_all_forms::<C64>(&case)?;
    }

    #[test]
    fn all_forms_of_i64(case in case()) {
        in_all_forms::<i64>(&case)?;
    }
}

#[test]
fn eager_and_traced_tensors_take_it_in_place_of_text() {
    let mut seed = 5;
    let shapes: [&[usize]; 3] = [&[2, 3], &[3, 4], &[4, 2]];
    let x = shapes.map(|shape| random::<f64>(shape, &mut seed));
    let expected = naive(&"ij,jk,kl->il".parse().unwrap(), &[&x[0], &x[1], &x[2]]);
    let prepared = Einsum::parse("ij,jk,kl->il").unwrap().prepare(&shapes).unwrap();
    let mut cpu = CpuBackend::new();
    let runtime = EagerRuntime::new(&cpu);
    let eager: Vec<EagerTensor> = copies(&x).into_iter().map(|x| runtime.tensor(x).unwrap()).collect();
    let y = EagerTensor::einsum(&prepared, &eager.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(y.to_tensor().unwrap().as_typed::<f64>().unwrap(), &expected);
    let inputs =
        shapes.map(|s| TracedTensor::input(DType::F64, &s.iter().map(|n| Dim::Lit(*n)).collect::<Vec<_>>()));
    let inputs: Vec<&TracedTensor> = inputs.iter().collect();
    let y = TracedTensor::einsum(&prepared, &inputs).unwrap();
    let program = GraphCompiler::new().compile_with(&inputs, &[&y]).unwrap();
    let out = program.run(&mut cpu, &copies(&x).iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(out[0].as_typed::<f64>().unwrap(), &expected);
}

#[test]
fn operands_are_promoted_and_destinations_have_the_common_dtype() {
    let mut cpu = CpuBackend::new();
    let prepared = Einsum::parse("i,i->i").unwrap().prepare(&[&[2], &[1]]).unwrap();
    let counts = Tensor::from_vec_col_major([2], vec![3_i32, 5]).unwrap();
    let half = Tensor::from_vec_col_major([1], vec![0.5_f32]).unwrap();
    let y = prepared.run(&[&counts, &half], &mut cpu).unwrap();
    assert_eq!(y.as_slice::<f64>().unwrap(), [1.5, 2.5]);
    let reads = [(&counts).into(), (&half).into()];
    let mut y = Tensor::zeros(DType::F64, &[2][..]).unwrap();
    prepared.accumulate(2.0, &reads, 1.0, y.as_view_mut().unwrap(), &mut cpu).unwrap();
    assert_eq!(y.as_slice::<f64>().unwrap(), [3.0, 5.0]);
    let mut y = Tensor::zeros(DType::F32, &[2][..]).unwrap();
    let e = prepared.run_into(&reads, y.as_view_mut().unwrap(), &mut cpu).unwrap_err();
    assert!(matches!(e, Error::DType(_)), "{e}");
    let flags = Tensor::from_vec_col_major([1], vec![true]).unwrap();
    let one = Einsum::parse("i->i").unwrap().prepare(&[&[1]]).unwrap();
    assert!(matches!(one.run(&[&flags], &mut cpu), Err(Error::DType(_))));
    assert!(matches!(
        one.run_into(&[(&flags).into()], y.as_view_mut().unwrap(), &mut cpu),
        Err(Error::DType(_))
    ));
}

#[test]
fn other_shapes_than_the_prepared_are_errors() {
    let mut cpu = CpuBackend::new();
    let product = Einsum::parse("bij,bjk->bik").unwrap().prepare(&[&[4, 2, 3], &[4, 3, 2]]).unwrap();
    let zeros = |shape: &[usize]| Tensor::zeros(DType::F64, shape).unwrap();
    let (a, b) = (zeros(&[4, 2, 3]), zeros(&[4, 3, 2]));
    let e = product.run(&[&a, &a], &mut cpu).unwrap_err();
    assert!(matches!(e, Error::Shape(_)));
    assert_eq!(
        e.to_string(),
        "einsum: shape of operand 1: got [4, 2, 3], expected [4, 3, 2], which it is prepared for"
    );
    assert!(matches!(product.run(&[&a], &mut cpu), Err(Error::Argument(_))));
    let reads = [(&a).into(), (&b).into()];
    for shape in [&[2, 2, 4][..], &[4, 2], &[4, 2, 2, 1]] {
        let mut y = zeros(shape);
        let e = product.run_into(&reads, y.as_view_mut().unwrap(), &mut cpu).unwrap_err();
        let expected = format!("einsum: shape of the destination: got {shape:?}, expected [4, 2, 2]");
        assert_eq!(e.to_string(), expected);
    }
    assert!(Einsum::parse("ij,jk->ik").unwrap().prepare(&[&[2, 3], &[2, 3]]).is_err());
}

#[test]
fn every_tier_refuses_other_shapes_than_the_prepared_with_one_error() {
    let mut cpu = CpuBackend::new();
    let runtime = EagerRuntime::new(&cpu);
    let shapes: [&[usize]; 2] = [&[2, 1], &[1, 4]];
    let text = Einsum::parse("ij,jk->ik").unwrap().prepare(&shapes).unwrap();
    let network = Einsum::ncon(&[&[-1, 1], &[1, -2]]).unwrap().prepare(&shapes).unwrap();
    let zeros = |shape: &[usize]| Tensor::zeros(DType::F64, shape).unwrap();
    let eager = |shape| runtime.tensor(zeros(shape)).unwrap();
    let traced = |shape: &[Dim]| TracedTensor::input(DType::F64, shape);
    // Fits the labels, or would with an extent repeated, or is of another rank.
    for (name, prepared) in [("einsum", &text), ("ncon", &network)] {
        for other in [&[3, 4][..], &[1, 5], &[1]] {
            let [a, b] = [&[2, 1], other].map(zeros);
            let [p, q] = [&[2, 1], other].map(eager);
            let dims = |shape: &[usize]| traced(&shape.iter().map(|n| Dim::Lit(*n)).collect::<Vec<_>>());
            let [u, v] = [&[2, 1], other].map(dims);
            let errors = [
                prepared.run(&[&a, &b], &mut cpu).unwrap_err(),
                Tensor::einsum(prepared, &[&a, &b], &mut cpu).unwrap_err(),
                EagerTensor::einsum(prepared, &[&p, &q]).unwrap_err(),
                TracedTensor::einsum(prepared, &[&u, &v]).unwrap_err(),
            ];
            for e in errors {
                assert!(matches!(e, Error::Shape(_)), "{e:?}");
                let expected = format!(
                    "{name}: shape of operand 1: got {other:?}, expected [1, 4], which it is prepared for"
                );
                assert_eq!(e.to_string(), expected);
            }
            let e = EagerTensor::einsum(prepared, &[&p]).unwrap_err();
            assert!(matches!(e, Error::Argument(_)), "{e:?}");
        }
    }
    // Extents that only a run knows are not those either, but the einsum in this order takes them.
    let [u, v] = [traced(&[2.into(), Dim::symbol("n")]), traced(&[Dim::symbol("n"), 4.into()])];
    let e = TracedTensor::einsum(&text, &[&u, &v]).unwrap_err().to_string();
    assert_eq!(e, "einsum: shape of operand 0: got [2, n], expected [2, 1], which it is prepared for");
    let larger = Einsum::parse("ij,jk->ik").unwrap().prepare(&[&[2, 3], &[3, 4]]).unwrap();
    assert!(TracedTensor::einsum(larger.einsum(), &[&u, &v]).is_ok());
}

#[test]
fn any_backend_runs_it_and_views_and_other_dtypes_do_not_disturb_it() {
    let product = Einsum::parse("ij,jk->ik").unwrap().prepare(&[&[2, 2], &[2, 2]]).unwrap();
    let x = Tensor::from_vec_col_major([2, 2], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
    let n = Tensor::from_vec_col_major([2, 2], vec![1_i64, 2, 3, 4]).unwrap();
    let expected = [7.0, 10.0, 15.0, 22.0];
    let mut backends: Vec<CpuBackend> = (0..12).map(|_| CpuBackend::with_threads(1)).collect();
    // More than kernels are kept for, each again and in another order.
    for k in (0..12).chain((0..12).rev()) {
        let mut cpu = backends[k].clone();
        assert_eq!(product.run(&[&x, &x], &mut cpu).unwrap().as_slice::<f64>().unwrap(), expected);
        assert_eq!(product.run(&[&n, &n], &mut cpu).unwrap().as_slice::<i64>().unwrap(), [7, 10, 15, 22]);
        assert_eq!(product.run(&[&x, &n], &mut cpu).unwrap().as_slice::<f64>().unwrap(), expected);
        let turned = x.as_view().transpose_view([1, 0]).unwrap();
        let mut y = Tensor::zeros(DType::F64, &[2, 2][..]).unwrap();
        let reads = [turned.into(), (&x).into()];
        product.run_into(&reads, y.as_view_mut().unwrap(), &mut cpu).unwrap();
        assert_eq!(y.as_slice::<f64>().unwrap(), [5.0, 11.0, 11.0, 25.0]);
    }
    // A kernel that replaces the one that was kept is the one that runs, on its backend alone.
    for k in [0, 11] {
        backends[k].replace_kernels(|table| {
            table.on::<CpuBackend, DotGeneral>(NUMBERS, |_, _, _, y, _| {
                Ok([Tensor::full(y[0].dtype, &y[0].shape[..], C64::ONE)?].into_iter().collect())
            });
        });
        assert_eq!(product.run(&[&x, &x], &mut backends[k]).unwrap().as_slice::<f64>().unwrap(), [1.0; 4]);
    }
    assert_eq!(product.run(&[&x, &x], &mut backends[1]).unwrap().as_slice::<f64>().unwrap(), expected);
}

#[test]
fn threads_with_backends_of_their_own_share_one_plan() {
    let product = Einsum::parse("ij,jk->ik").unwrap().prepare(&[&[2, 2], &[2, 2]]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut cpu = CpuBackend::with_threads(1);
                let x = Tensor::from_vec_col_major([2, 2], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
                for _ in 0..100 {
                    let y = product.run(&[&x, &x], &mut cpu).unwrap();
                    assert_eq!(y.as_slice::<f64>().unwrap(), [7.0, 10.0, 15.0, 22.0]);
                }
            });
        }
    });
}

#[test]
fn the_report_names_shapes_steps_and_totals() {
    let chain = Einsum::parse("ij,jk,kl->il").unwrap();
    let prepared = chain.prepare(&[&[2, 100], &[100, 100], &[100, 3]]).unwrap();
    assert_eq!(
        prepared.to_string(),
        "ij,jk,kl->il of [2, 100], [100, 100], [100, 3]\n\
         [3] = ij,jk->ik([0], [1]): 40000 flops, 200 elements\n\
         [4] = ik,kl->il([3], [2]): 1200 flops, 6 elements\n\
         total: 41200 flops, 206 elements written, largest intermediate 200 elements"
    );
    assert_eq!(prepared.einsum().optimize(), &Optimize::path([(0, 1), (0, 1)]));
}

#[test]
fn the_plan_of_one_product_tells_what_it_costs() -> tenferro_tensor::Result<()> {
    let einsum = Einsum::parse("ij,jk->ik")?;
    let shapes: [&[usize]; 2] = [&[2, 3], &[3, 4]];
    let larger: [&[usize]; 2] = [&[20, 30], &[30, 40]];
    assert_eq!(einsum.plan(&shapes)?.flops() * 1000.0, einsum.plan(&larger)?.flops());
    assert_eq!(einsum.plan(&shapes)?.elements_written(), 8.0);
    assert_eq!(einsum.prepare(&larger)?.plan().elements_written(), 800.0);
    Ok(())
}
