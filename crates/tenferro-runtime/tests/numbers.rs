//! Operators of a tensor and a number: the dtypes and values that promotion gives.

use tenferro_cpu::CpuBackend;
use tenferro_runtime::{
    DType, Dim, EagerRuntime, EagerTensor, Error, GraphCompiler, Result, Tensor, TracedTensor,
};
use tenferro_tensor::C64;

fn runtime() -> EagerRuntime {
    EagerRuntime::new(&CpuBackend::with_threads(1))
}

/// `f` of an eager tensor and of a traced one, which are to be equal.
macro_rules! both {
    ($x:expr, |$v:ident| $f:expr) => {{
        let x: &Tensor = $x;
        let $v = &runtime().tensor(x.duplicate().unwrap()).unwrap();
        let eager: EagerTensor = $f.unwrap();
        let $v = &TracedTensor::input(x.dtype(), &[Dim::symbol("n")]);
        let traced: TracedTensor = $f.unwrap();
        assert_eq!(traced.dtype(), eager.dtype());
        let program = GraphCompiler::new().compile(&traced).unwrap();
        let run = program.run(&mut CpuBackend::with_threads(1), &[x]).unwrap().remove(0);
        let eager = eager.to_tensor().unwrap();
        assert_eq!(run.to_string(), eager.to_string());
        eager
    }};
}

fn i32s() -> Tensor {
    Tensor::from_vec_col_major([3], vec![1_i32, -2, 7]).unwrap()
}

fn i64s() -> Tensor {
    Tensor::from_vec_col_major([3], vec![1_i64, -2, 7]).unwrap()
}

#[test]
fn an_integer_tensor_is_promoted_by_a_number_it_cannot_hold() {
    for x in [i32s(), i64s()] {
        let half = both!(&x, |x| x * 0.5);
        assert_eq!(half.as_slice::<f64>().unwrap(), [0.5, -1.0, 3.5]);
        let sum = both!(&x, |x| x + 2.5);
        assert_eq!(sum.as_slice::<f64>().unwrap(), [3.5, 0.5, 9.5]);
        let difference = both!(&x, |x| x - 0.25);
        assert_eq!(difference.as_slice::<f64>().unwrap(), [0.75, -2.25, 6.75]);
        let infinite = both!(&x, |x| x * f64::INFINITY);
        assert_eq!(infinite.as_slice::<f64>().unwrap(), [1.0, -1.0, 1.0].map(|s| s * f64::INFINITY));
        let quotient = both!(&x, |x| x / 2.0);
        assert_eq!(quotient.as_slice::<f64>().unwrap(), [0.5, -1.0, 3.5]);
    }
    // Beyond the range of one integer dtype and inside of the other.
    let large = 2f64.powi(31);
    let sum = both!(&i32s(), |x| x + large);
    assert_eq!(sum.as_slice::<f64>().unwrap(), [1.0, -2.0, 7.0].map(|x| x + large));
    assert_eq!(
        both!(&i64s(), |x| x + large).as_slice::<i64>().unwrap(),
        [1, -2, 7].map(|x| x + (1_i64 << 31))
    );
    let larger = 2f64.powi(63);
    assert_eq!(
        both!(&i64s(), |x| x * larger).as_slice::<f64>().unwrap(),
        [1.0, -2.0, 7.0].map(|x| x * larger)
    );
}

#[test]
fn a_number_that_fits_keeps_the_dtype() {
    assert_eq!(both!(&i32s(), |x| x * 3.0).as_slice::<i32>().unwrap(), [3, -6, 21]);
    assert_eq!(both!(&i64s(), |x| x - 1.0).as_slice::<i64>().unwrap(), [0, -3, 6]);
    assert_eq!(both!(&i64s(), |x| x + -0.0).as_slice::<i64>().unwrap(), [1, -2, 7]);
    let single = Tensor::from_vec_col_major([2], vec![1_f32, 2.0]).unwrap();
    assert_eq!(both!(&single, |x| x * 0.1).as_slice::<f32>().unwrap(), [0.1_f32, 0.2]);
    let complex = Tensor::from_vec_col_major([1], vec![C64::I]).unwrap();
    assert_eq!(both!(&complex, |x| x / 2.0).as_slice::<C64>().unwrap(), [C64::new(0.0, 0.5)]);
    let truth = Tensor::from_vec_col_major([2], vec![true, false]).unwrap();
    assert_eq!(both!(&truth, |x| x * 2.0).as_slice::<f64>().unwrap(), [2.0, 0.0]);
}

#[test]
fn a_number_may_be_on_the_left() {
    let x = Tensor::from_vec_col_major([2], vec![2.0, -4.0]).unwrap();
    assert_eq!(both!(&x, |x| 1.0 + x).as_slice::<f64>().unwrap(), [3.0, -3.0]);
    assert_eq!(both!(&x, |x| 1.0 - x).as_slice::<f64>().unwrap(), [-1.0, 5.0]);
    assert_eq!(both!(&x, |x| 3.0 * x).as_slice::<f64>().unwrap(), [6.0, -12.0]);
    assert_eq!(both!(&x, |x| 1.0 / x).as_slice::<f64>().unwrap(), [0.5, -0.25]);
    assert_eq!(both!(&i64s(), |x| 3.0 - x).as_slice::<i64>().unwrap(), [2, 5, -4]);
    assert_eq!(both!(&i32s(), |x| 0.5 - x).as_slice::<f64>().unwrap(), [-0.5, 2.5, -6.5]);
    assert_eq!(both!(&i32s(), |x| 7.0 / x).as_slice::<f64>().unwrap(), [7.0, -3.5, 1.0]);
}

#[test]
fn full_refuses_a_number_that_the_dtype_does_not_hold() -> Result<()> {
    for (dtype, value) in [(DType::I64, C64::new(2.5, 0.0)), (DType::F64, C64::I)] {
        for e in [
            runtime().full(dtype, &[2], value).unwrap_err(),
            TracedTensor::full(dtype, &[Dim::symbol("n")], value).unwrap_err(),
        ] {
            assert!(matches!(e, Error::Argument(_)) && e.op() == "full", "{e}");
        }
    }
    let n = (1_i64 << 53) + 1;
    assert_eq!(runtime().scalar(n)?.broadcast_to(&[2])?.to_tensor()?.as_slice::<i64>()?, [n; 2]);
    Ok(())
}
