//! Derivatives on exact integers. An einsum is linear in each operand, so its tangent is its definition with
//! a tangent in an operand's place, and central differences of a gradient that is linear are exact.

mod common;

use common::{Case, Exact, case, copies, inner, naive, random, thirty};
use proptest::prelude::*;
use tenferro_ad::{EagerRuntimeAdExt, EagerTensorAdExt, TracedTensorAdExt};
use tenferro_cpu::CpuBackend;
use tenferro_einsum::prelude::*;
use tenferro_runtime::{EagerRuntime, EagerTensor, GraphCompiler, TracedTensor, prelude::*};
use tenferro_tensor::{C64, Tensor, TypedTensor};

fn first_order<T: Exact>(case: &Case) -> Result<(), TestCaseError> {
    let mut cpu = CpuBackend::new();
    let mut seed = case.seed ^ 1;
    let x = case.operands::<T>();
    let d: Vec<TypedTensor<T>> = x.iter().map(|x| random(x.shape(), &mut seed)).collect();
    let shape = naive(&case.notation, &x.iter().collect::<Vec<_>>()).shape().to_vec();
    let ct: TypedTensor<T> = random(&shape, &mut seed);
    // The tangent for a tangent of operand i alone.
    let tangents: Vec<TypedTensor<T>> = (0..x.len())
        .map(|i| {
            let moved = x.iter().zip(&d).enumerate().map(|(j, (x, d))| if i == j { d } else { x });
            naive(&case.notation, &moved.collect::<Vec<_>>())
        })
        .collect();
    let is_transpose = |g: &[Tensor]| {
        for ((g, d), t) in g.iter().zip(&d).zip(&tangents) {
            prop_assert_eq!(inner(&ct, t), inner(g.as_typed::<T>().unwrap(), d));
        }
        Ok(())
    };

    let runtime = EagerRuntime::new(&cpu);
    let leaves: Vec<EagerTensor> = copies(&x).into_iter().map(|x| runtime.variable(x).unwrap()).collect();
    let leaves: Vec<&EagerTensor> = leaves.iter().collect();
    let y = EagerTensor::einsum(&case.notation, &leaves).unwrap();
    let seed = runtime.tensor(ct.duplicate().unwrap().into_tensor()).unwrap();
    let g = y.cotangents(&seed, &leaves, false).unwrap();
    is_transpose(&g.iter().map(|g| g.to_tensor().unwrap()).collect::<Vec<_>>())?;

    for symbolic in [false, true] {
        let x_in = case.inputs(symbolic, T::DTYPE);
        let d_in = case.inputs(symbolic, T::DTYPE);
        let y = TracedTensor::einsum(&case.notation, &x_in.iter().collect::<Vec<_>>()).unwrap();
        let ct_in = TracedTensor::input(T::DTYPE, &y.shape());
        let mut outputs: Vec<TracedTensor> =
            x_in.iter().zip(&d_in).map(|(x, d)| y.jvp(x, d).unwrap()).collect();
        outputs.extend(x_in.iter().map(|x| y.vjp(x, &ct_in).unwrap()));
        let all: Vec<&TracedTensor> = x_in.iter().chain(&d_in).chain([&ct_in]).collect();
        let program = GraphCompiler::new().compile_with(&all, &outputs.iter().collect::<Vec<_>>()).unwrap();
        let values = [copies(&x), copies(&d), copies(std::slice::from_ref(&ct))].concat_all();
        let out = program.run(&mut cpu, &values.iter().collect::<Vec<_>>()).unwrap();
        let (forward, reverse) = out.split_at(x.len());
        for (t, expected) in forward.iter().zip(&tangents) {
            prop_assert_eq!(t.as_typed::<T>().unwrap(), expected);
        }
        is_transpose(reverse)?;
    }
    Ok(())
}

trait ConcatAll {
    fn concat_all(self) -> Vec<Tensor>;
}

impl<const N: usize> ConcatAll for [Vec<Tensor>; N] {
    fn concat_all(self) -> Vec<Tensor> {
        self.into_iter().flatten().collect()
    }
}

/// `H v` of the loss `Σ y²`, `y` the einsum, for the first operand: the loss is quadratic in it.
fn second_order(case: &Case) -> Result<(), TestCaseError> {
    let mut cpu = CpuBackend::new();
    let mut seed = case.seed ^ 2;
    let x = case.operands::<f64>();
    let v: TypedTensor<f64> = random(x[0].shape(), &mut seed);
    let runtime = EagerRuntime::new(&cpu);
    let eager = |x: Tensor| runtime.tensor(x).unwrap();
    let others: Vec<EagerTensor> = copies(&x[1..]).into_iter().map(eager).collect();
    let loss = |x: &EagerTensor| {
        let y = EagerTensor::einsum(&case.notation, &[x].into_iter().chain(&others).collect::<Vec<_>>())?;
        (&y * &y)?.reduce_sum(None)
    };
    let moved = |sign: f64| {
        let moved = |i: &[usize]| *x[0].get(i).unwrap() + sign * *v.get(i).unwrap();
        eager(<TypedTensor<f64>>::from_fn(x[0].shape(), moved).unwrap().into_tensor())
    };
    let [plus, minus] = [1.0, -1.0].map(|sign| runtime.grad(loss, &moved(sign)).unwrap());
    let expected = (&(&plus - &minus).unwrap() * 0.5).unwrap().to_tensor().unwrap();
    let [x0, v0] = [&x[0], &v].map(|t| eager(t.duplicate().unwrap().into_tensor()));
    let hvp = runtime.hvp(loss, &x0, &v0).unwrap().to_tensor().unwrap();
    prop_assert_eq!(hvp.as_typed::<f64>().unwrap(), expected.as_typed::<f64>().unwrap());

    for symbolic in [false, true] {
        let x_in = case.inputs(symbolic, DType::F64);
        let v_in = TracedTensor::input(DType::F64, &x_in[0].shape());
        let y = TracedTensor::einsum(&case.notation, &x_in.iter().collect::<Vec<_>>()).unwrap();
        let loss = (&y * &y).unwrap().reduce_sum(None).unwrap();
        let hvp = loss.hvp(&x_in[0], &v_in).unwrap();
        let all: Vec<&TracedTensor> = x_in.iter().chain([&v_in]).collect();
        let program = GraphCompiler::new().compile_with(&all, &[&hvp]).unwrap();
        let values = [copies(&x), copies(std::slice::from_ref(&v))].concat_all();
        let out = program.run(&mut cpu, &values.iter().collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(out[0].as_typed::<f64>().unwrap(), expected.as_typed::<f64>().unwrap());
    }
    Ok(())
}

#[test]
fn operands_have_thirty_axes() {
    first_order::<f64>(&thirty()).unwrap();
    first_order::<C64>(&thirty()).unwrap();
}

proptest! {
    #![proptest_config(tenferro_cases::cases(40))]

    #[test]
    fn tangents_and_cotangents_of_f64(case in case()) {
        first_order::<f64>(&case)?;
    }

    #[test]
    fn tangents_and_cotangents_of_c64(case in case()) {
        first_order::<C64>(&case)?;
    }

    #[test]
    fn hessians(case in case()) {
        second_order(&case)?;
    }
}

#[test]
fn an_operand_used_twice_collects_both_terms() {
    let runtime = EagerRuntime::new(&CpuBackend::new());
    let a = runtime.from_vec_col_major([2, 2], vec![1.0, 2.0, 3.0, 5.0]).unwrap();
    let x = runtime.from_vec_col_major([2], vec![1.0, -2.0]).unwrap().requires_grad().unwrap();
    let y = EagerTensor::einsum("i,ij,j->", &[&x, &a, &x]).unwrap();
    let g = y.gradients(&[&x], true).unwrap().remove(0);
    // (A + A^T) x, whose derivative is A + A^T.
    assert_eq!(g.to_tensor().unwrap().as_slice::<f64>().unwrap(), [2.0 - 10.0, 5.0 - 20.0]);
    let unit = runtime.from_vec_col_major([2], vec![1.0, 0.0]).unwrap();
    let column = g.cotangents(&unit, &[&x], false).unwrap().remove(0);
    assert_eq!(column.to_tensor().unwrap().as_slice::<f64>().unwrap(), [2.0, 5.0]);
}

#[test]
fn a_real_operand_among_complex_ones_has_a_real_gradient() {
    let runtime = EagerRuntime::new(&CpuBackend::new());
    let x = runtime.from_vec_col_major([2], vec![1.0, 2.0]).unwrap().requires_grad().unwrap();
    let z = runtime.from_vec_col_major([2], vec![C64::new(1.0, 2.0), C64::new(0.0, -3.0)]).unwrap();
    let y = EagerTensor::einsum("i,i->", &[&x, &z]).unwrap();
    let ct = runtime.scalar(C64::new(0.0, 1.0)).unwrap();
    // Re(conj(i) z) = Im z.
    let g = y.cotangents(&ct, &[&x], false).unwrap().remove(0);
    assert_eq!(g.to_tensor().unwrap().as_slice::<f64>().unwrap(), [2.0, -3.0]);
}

#[test]
fn gradients_of_a_program_hold_at_any_extents() {
    let [n, m] = ["n", "m"].map(Dim::symbol);
    let x = TracedTensor::input(DType::F64, &[n.clone(), m.clone()]);
    let a = TracedTensor::input(DType::F64, &[m.clone(), m]);
    // Σ_ijk x_ij a_jk x_ik: its gradient is x (a + a^T).
    let y = TracedTensor::einsum("ij,jk,ik->", &[&x, &a, &x]).unwrap();
    let g = y.grad(&x).unwrap();
    let program = GraphCompiler::new().compile_with(&[&x, &a], &[&g]).unwrap();
    for (n, m) in [(2, 3), (4, 1)] {
        let mut seed = n as u64;
        let (x, a) = (random::<f64>(&[n, m], &mut seed), random::<f64>(&[m, m], &mut seed));
        let [left, right] = ["ij,jk->ik", "ij,kj->ik"].map(|text| naive(&text.parse().unwrap(), &[&x, &a]));
        let [x, a] = [x, a].map(TypedTensor::into_tensor);
        let out = program.run(&mut CpuBackend::new(), &[&x, &a]).unwrap();
        let expected = left.as_slice().unwrap().iter().zip(right.as_slice().unwrap()).map(|(l, r)| l + r);
        assert!(out[0].as_slice::<f64>().unwrap().iter().copied().eq(expected));
    }
}
