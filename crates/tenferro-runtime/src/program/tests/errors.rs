//! What callers can get wrong.

use super::*;
use tenferro_tensor::Error;

fn fails(p: &Program, x: &[&Tensor]) -> (Error, String) {
    let e = p.run(&mut CpuBackend::with_threads(1), x).unwrap_err();
    let s = e.to_string();
    (e, s)
}

#[test]
fn inputs_that_do_not_fit_are_named() {
    let (x, y) = (f64s([sym("n"), 2.into()]), f64s([sym("n").add(&Dim::Lit(1))]));
    let p = Program::new(&[x.clone(), y.clone()], &[x.reduce_sum(None) + y.reduce_sum(None)]).unwrap();
    let (a, b) = (numbers(&[3, 2]), numbers(&[4]));
    let (e, s) = fails(&p, &[&a]);
    assert!(matches!(e, Error::Argument(_)) && s.contains("got 1, expected 2"), "{s}");
    let (e, s) = fails(&p, &[&a, &Tensor::zeros(DType::F32, [4]).unwrap()]);
    assert!(matches!(e, Error::DType(_)) && s.contains("input 1"), "{s}");
    let (e, s) = fails(&p, &[&b, &b]);
    assert!(matches!(e, Error::Rank(_)) && s.contains("input 0"), "{s}");
    let (e, s) = fails(&p, &[&numbers(&[3, 5]), &b]);
    assert!(matches!(e, Error::Shape(_)) && s.contains("axis 1 of input 0: got 5, expected 2"), "{s}");
    let (e, s) = fails(&p, &[&a, &numbers(&[3])]);
    assert!(matches!(e, Error::Guard(_)) && s.contains("axis 0 of input 1: got 3, expected 4"), "{s}");
    assert!(p.run(&mut CpuBackend::with_threads(1), &[&a, &b]).is_ok());
}

#[test]
fn one_symbol_is_one_extent() {
    let (x, y) = (f64s([sym("n")]), f64s([sym("n")]));
    let p = Program::new(&[x.clone(), y.clone()], &[&x + &y]).unwrap();
    let (e, s) = fails(&p, &[&numbers(&[3]), &numbers(&[4])]);
    assert!(matches!(e, Error::Guard(_)), "{s}");
    assert!(s.contains("input 1: got 4, expected 3, the extent of axis 0 of input 0"), "{s}");
}

#[test]
fn a_guard_names_both_extents_and_the_call_and_the_program_stays_usable() {
    let (x, y) = (f64s([sym("n")]), f64s([sym("m")]));
    let p = Program::new(&[x.clone(), y.clone()], &[(&x * 2.0) + &y]).unwrap();
    let mut cpu = CpuBackend::with_threads(1);
    for _ in 0..2 {
        assert!(p.run(&mut cpu, &[&numbers(&[3]), &numbers(&[3])]).is_ok());
        let e = p.run(&mut cpu, &[&numbers(&[3]), &numbers(&[4])]).unwrap_err();
        let s = e.to_string();
        assert!(matches!(e, Error::Guard(_)), "{s}");
        // The operands of the sum are brought to one shape.
        assert!(s.contains("got 4, expected 3") && s.contains("= broadcast_in_dim(%1: f64[m])"), "{s}");
    }
}

#[test]
fn a_kernel_that_fails_midway_leaves_the_program_usable() {
    let x = f64s([sym("n")]);
    let k = apply1(&Leading, &[&x]);
    let p = Program::new(std::slice::from_ref(&x), &[&next_of(&k) + &x]).unwrap();
    let mut cpu = CpuBackend::with_threads(1);
    for _ in 0..2 {
        let good = p.run(&mut cpu, &[&tensor(&[2], &[1.0, 2.0])]).unwrap();
        assert_eq!(good[0].as_slice::<f64>().unwrap(), [3.0, 5.0]);
        assert!(p.run(&mut cpu, &[&tensor(&[2], &[1.0, -2.0])]).is_err());
    }
}

#[test]
fn compiling_names_what_is_missing() {
    let (x, y) = (f64s([sym("n")]), f64s([sym("n")]));
    let e = Program::new(std::slice::from_ref(&x), &[&x + &y]).unwrap_err();
    assert!(matches!(e, Error::UnknownInput(_)) && e.to_string().contains("f64[n]"), "{e}");
    assert!(matches!(
        Program::new(&[x.clone(), x.clone()], std::slice::from_ref(&x)),
        Err(Error::Argument(_))
    ));
    assert!(matches!(Program::new(&[x.exp()], &[x.exp()]), Err(Error::Argument(_))));
    let bad = &f64s([2.into()]) + &f64s([3.into()]);
    assert!(matches!(Program::from_outputs(&[bad]), Err(Error::Shape(_))));
}

#[test]
fn an_operation_without_kernel_or_decomposition_is_unsupported() {
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    struct Nowhere;
    impl Primitive for Nowhere {
        const NAME: &'static str = "nowhere";
        fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
            Ok(smallvec![x[0].clone()])
        }
    }
    let x = f64s([sym("n")]);
    let p = Program::new(std::slice::from_ref(&x), &[apply1(&Nowhere, &[&x])]).unwrap();
    let (e, s) = fails(&p, &[&numbers(&[1])]);
    assert!(matches!(e, Error::Unsupported(_)) && s.contains("nowhere"), "{s}");
}

#[test]
fn a_result_smaller_than_its_bound_does_not_go_into_a_view_of_the_bound() {
    use tenferro_core_ops::{Out, execute_into};
    let cpu = CpuBackend::with_threads(1);
    let x = Tensor::from_vec_col_major([4], vec![1.0, 2.0, -1.0, 3.0]).unwrap();
    let x = tenferro_tensor::Value::new(x);
    let mut y = numbers(&[4]);
    let before = y.as_slice::<f64>().unwrap().to_vec();
    let e = execute_into(&cpu, &Leading, &[&x], &mut Out::Into(vec![y.as_view_mut().unwrap()])).unwrap_err();
    assert!(matches!(e, Error::Shape(_)), "{e}");
    let mut out = Out::Accumulate { alpha: 2.0, beta: 1.0, view: y.as_view_mut().unwrap() };
    let e = execute_into(&cpu, &Leading, &[&x], &mut out).unwrap_err();
    assert!(matches!(e, Error::Shape(_)), "{e}");
    assert_eq!(y.as_slice::<f64>().unwrap(), before);
}

/// A view of the first two elements, of which its shape rule says something else.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Two {
    dtype: DType,
    extent: usize,
}

impl Primitive for Two {
    const NAME: &'static str = "two";
    const VIEW: bool = true;
    fn infer<D: Extent>(&self, _: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        Ok(smallvec![Aval::new(self.dtype, [D::lit(self.extent)])])
    }
    fn view(&self, x: &tenferro_tensor::Layout) -> Option<tenferro_tensor::Layout> {
        x.slice("two", &[0], &[2], &[1]).ok()
    }
}

#[test]
fn a_view_that_is_not_what_its_shape_rule_says_is_an_error() {
    let x = f64s([4.into()]);
    for (dtype, extent) in [(DType::F64, 4), (DType::F64, 1), (DType::C64, 2)] {
        let y = apply1(&Two { dtype, extent }, &[&x]).exp();
        let (e, s) = fails(&Program::new(std::slice::from_ref(&x), &[y]).unwrap(), &[&numbers(&[4])]);
        assert!(matches!(e, Error::Shape(_)) && s.contains("two"), "{s}");
    }
    let y = apply1(&Two { dtype: DType::F64, extent: 2 }, &[&x]).exp();
    let p = Program::new(std::slice::from_ref(&x), &[y]).unwrap();
    assert_eq!(p.run(&mut CpuBackend::with_threads(1), &[&numbers(&[4])]).unwrap()[0].shape(), [2]);
}

/// A kernel whose results are not those of the shape rule.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Other(Vec<DType>);

impl Primitive for Other {
    const NAME: &'static str = "other";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        Ok(smallvec![x[0].clone()])
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, _>(&[DType::F64], |op: &Other, _, x, _, _| {
            op.0.iter().map(|&dtype| Tensor::zeros(dtype, x[0].shape())).collect()
        });
    }
}

#[test]
fn results_of_another_dtype_or_number_are_errors() {
    use tenferro_core_ops::{Out, execute_into};
    let cpu = CpuBackend::with_threads(1);
    let x = tenferro_tensor::Value::new(numbers(&[3]));
    let mut y = numbers(&[3]);
    let before = y.as_slice::<f64>().unwrap().to_vec();
    for results in [vec![DType::F32], vec![DType::C64], vec![], vec![DType::F64; 2]] {
        let e = tenferro_core_ops::execute(&cpu, &Other(results.clone()), &[&x]).unwrap_err();
        assert!(matches!(e, Error::DType(_)), "{e}");
        if results.is_empty() {
            continue; // what a kernel returns that has written into the views itself
        }
        let mut into = Out::Into(vec![y.as_view_mut().unwrap()]);
        let e = execute_into(&cpu, &Other(results.clone()), &[&x], &mut into).unwrap_err();
        assert!(e.to_string().contains("other"), "{e}");
        let mut out = Out::Accumulate { alpha: 2.0, beta: 1.0, view: y.as_view_mut().unwrap() };
        assert!(execute_into(&cpu, &Other(results), &[&x], &mut out).is_err());
        assert_eq!(y.as_slice::<f64>().unwrap(), before);
    }
}

#[test]
fn a_chain_without_outputs_is_an_error() {
    let step = tenferro_core_ops::ops::Step {
        op: std::sync::Arc::new(tenferro_core_ops::ops::Exp),
        x: smallvec![0],
    };
    let chain = Fused::new(1, std::sync::Arc::new([step]), smallvec![]);
    let x = tenferro_tensor::Value::new(numbers(&[3]));
    let e = tenferro_core_ops::execute(&CpuBackend::with_threads(1), &chain, &[&x]).unwrap_err();
    assert!(matches!(e, Error::Argument(_)), "{e}");
}
