//! Eager transforms inside of each other, against closed forms and traced programs.

use tenferro_ad::{no_grad, prelude::*};
use tenferro_core_ops::Var;
use tenferro_cpu::CpuBackend;
use tenferro_runtime::{
    DType, Dim, EagerRuntime, EagerTensor, Error, GraphCompiler, Result, Tensor, TracedTensor, tier::Recorded,
};
use tenferro_tensor::C64;

const X: [f64; 3] = [0.5, -1.25, 2.0];
const V: [f64; 3] = [1.0, 0.5, -0.75];

fn runtime() -> EagerRuntime {
    EagerRuntime::new(&CpuBackend::with_threads(1))
}

fn vector(r: &EagerRuntime, x: [f64; 3]) -> EagerTensor {
    r.from_vec_col_major([3], x.to_vec()).unwrap()
}

/// That `found` is `f(x, v)` in every element.
fn is(found: Result<EagerTensor>, f: impl Fn(f64, f64) -> f64) {
    let found = found.unwrap().to_tensor().unwrap();
    for ((found, x), v) in found.as_slice::<f64>().unwrap().iter().zip(X).zip(V) {
        let want = f(x, v);
        assert!((found - want).abs() <= 1e-13 * want.abs().max(1.0), "{found} at {x}, {v}, not {want}");
    }
}

fn total(x: Result<EagerTensor>) -> Result<EagerTensor> {
    x?.reduce_sum(None)
}

/// `x^n`
fn power(x: &EagerTensor, n: usize) -> Result<EagerTensor> {
    (1..n).try_fold(x.clone(), |y, _| &y * x)
}

fn fifth(x: &EagerTensor) -> Result<EagerTensor> {
    total(power(x, 5))
}

#[test]
fn gradients_of_gradients_to_the_third_order() {
    let r = runtime();
    let x = vector(&r, X);
    let second = |x: &EagerTensor| total(r.grad(fifth, x));
    let third = |x: &EagerTensor| total(r.grad(second, x));
    is(r.grad(second, &x), |x, _| 20.0 * x.powi(3));
    is(r.grad(third, &x), |x, _| 60.0 * x.powi(2));
    is(r.grad(|x| total(r.grad(third, x)), &x), |x, _| 120.0 * x);
}

#[test]
fn every_transform_inside_every_other() {
    let r = runtime();
    let (x, v) = (vector(&r, X), vector(&r, V));
    let sine = |x: &EagerTensor| x * &x.sin()?;
    let (d1, d2) = (|x: f64| x.sin() + x * x.cos(), |x: f64| 2.0 * x.cos() - x * x.sin());
    let d3 = |x: f64| -3.0 * x.sin() - x * x.cos();
    let grad = |x: &EagerTensor| r.grad(|x| total(sine(x)), x);
    let jvp = |x: &EagerTensor| Ok(r.jvp(sine, x, &v)?.1);
    let vjp = |x: &EagerTensor| Ok(r.vjp(sine, x, &v)?.1);
    let hvp = |x: &EagerTensor| r.hvp(|x| total(sine(x)), x, &v);
    is(grad(&x), |x, _| d1(x));
    is(jvp(&x), |x, v| d1(x) * v);
    is(vjp(&x), |x, v| d1(x) * v);
    is(hvp(&x), |x, v| d2(x) * v);
    type Map<'a> = &'a dyn Fn(&EagerTensor) -> Result<EagerTensor>;
    type Scale = fn(f64) -> f64;
    // Each, and the factor that its own direction gives its derivative.
    let inner: [(Map, Scale); 4] = [(&grad, |_| 1.0), (&jvp, |v| v), (&vjp, |v| v), (&hvp, |v| v)];
    for (i, (f, scale)) in inner.into_iter().enumerate() {
        let derivative = |x: f64| if i == 3 { d3(x) } else { d2(x) };
        is(r.grad(|x| total(f(x)), &x), |x, v| derivative(x) * scale(v));
        is(r.jvp(f, &x, &v).map(|y| y.1), |x, v| derivative(x) * scale(v) * v);
        is(r.vjp(f, &x, &v).map(|y| y.1), |x, v| derivative(x) * scale(v) * v);
        if i < 3 {
            is(r.hvp(|x| total(f(x)), &x, &v), |x, v| d3(x) * scale(v) * v);
        }
    }
    // In their values.
    is(r.grad(|x| total(r.value_and_grad(fifth, x).map(|y| y.0)), &x), |x, _| 5.0 * x.powi(4));
    is(r.grad(|x| total(r.jvp(sine, x, &v).map(|y| y.0)), &x), |x, _| d1(x));
    is(r.grad(|x| total(r.vjp(sine, x, &v).map(|y| y.0)), &x), |x, _| d1(x));
    // In the direction, of which they are linear functions.
    is(r.grad(|v| total(r.jvp(sine, &x, v).map(|y| y.1)), &v), |x, _| d1(x));
    is(r.grad(|v| total(r.vjp(sine, &x, v).map(|y| y.1)), &v), |x, _| d1(x));
    is(r.grad(|v| total(r.hvp(|x| total(sine(x)), &x, v)), &v), |x, _| d2(x));
}

#[test]
fn a_captured_variable_is_tracked_through_an_inner_gradient() {
    let r = runtime();
    let x = vector(&r, X);
    // d/dx of w^2 x^3, whose derivative by w is 6 w x^2.
    let inner = |w: &EagerTensor| r.grad(|x| total(&power(w, 2)? * &power(x, 3)?), &x);
    is(r.grad(|w| total(inner(w)), &vector(&r, V)), |x, v| 6.0 * v * x * x);
    let w = vector(&r, V).requires_grad().unwrap();
    let g = inner(&w).unwrap();
    assert!(g.tracks_gradient());
    g.reduce_sum(None).unwrap().backward().unwrap();
    is(Ok(w.grad().unwrap()), |x, v| 6.0 * v * x * x);
}

#[test]
fn what_was_captured_is_not_the_argument() {
    let r = runtime();
    let x = vector(&r, X);
    // The inner derivatives are 1, x and 2 x x, where only the last depends on the point.
    is(r.grad(|x| total(x * &r.grad(|y| total(x + y), x)?), &x), |_, _| 1.0);
    is(r.grad(|x| total(r.grad(|y| total(y * x), x)), &x), |_, _| 1.0);
    is(r.grad(|x| total(r.grad(|y| total(&power(y, 2)? * x), x)), &x), |x, _| 4.0 * x);
    is(r.grad(|x| total(r.jvp(|y| y * x, x, x).map(|y| y.1)), &x), |x, _| 2.0 * x);
}

#[test]
fn results_have_a_history_only_where_one_is_wanted() {
    let r = runtime();
    let x = vector(&r, X);
    let all = |x: &EagerTensor, v: &EagerTensor| -> Vec<EagerTensor> {
        let (y, g) = r.value_and_grad(fifth, x).unwrap();
        let square = |x: &EagerTensor| x * x;
        let ((p, dp), (q, dq)) = (r.jvp(square, x, v).unwrap(), r.vjp(square, x, v).unwrap());
        vec![y, g, p, dp, q, dq, r.hvp(fifth, x, v).unwrap()]
    };
    assert!(all(&x, &x).iter().all(|y| !y.tracks_gradient()));
    let w = x.requires_grad().unwrap();
    assert!(all(&w, &x).iter().all(EagerTensor::tracks_gradient));
    // The value and the gradient do not depend on the vector.
    let kept: Vec<bool> = all(&x, &w).iter().map(EagerTensor::tracks_gradient).collect();
    assert_eq!(kept, [false, false, false, true, false, true, true]);
    no_grad(|| assert!(all(&w, &w).iter().all(|y| !y.tracks_gradient())));
    // Something the function made itself is not outside of it.
    let own = |x: &EagerTensor| total(x * &x.detach().requires_grad()?);
    assert!(!r.grad(own, &x).unwrap().tracks_gradient());
    // A cotangent with a history does not bring it into what is asked for without.
    let y = (&w * &w).unwrap();
    assert!(!y.cotangents(&w, &[&w], false).unwrap()[0].tracks_gradient());
    assert!(y.cotangents(&w, &[&w], true).unwrap()[0].tracks_gradient());
}

#[test]
fn a_function_without_a_history_has_derivative_zero_and_a_value_without_one_is_refused() {
    let r = runtime();
    let x = vector(&r, X);
    let cut = |x: &EagerTensor| no_grad(|| x * x);
    is(r.grad(|x| total(cut(x)), &x), |_, _| 0.0);
    is(r.jvp(cut, &x, &x).map(|y| y.1), |_, _| 0.0);
    is(r.vjp(|_| Ok(x.clone()), &x, &x).map(|y| y.1), |_, _| 0.0);
    is(r.hvp(|x| total(cut(x)), &x, &x), |_, _| 0.0);
    let w = x.requires_grad().unwrap();
    let y = no_grad(|| total(&w * &w)).unwrap();
    for (name, e) in [
        ("backward", y.backward().unwrap_err()),
        ("gradients", y.gradients(&[&w], false).unwrap_err()),
        ("cotangents", y.cotangents(&y, &[&w], true).unwrap_err()),
    ] {
        assert!(matches!(e, Error::State(_)) && e.op() == name, "{name}: {e}");
    }
}

/// A real loss of a matrix and captured weights, real or complex.
fn loss<X: Recorded>(x: &X, w: &X) -> Result<X> {
    x.apply1("loss", &[w], || {
        let (x, w) = (x.var(), w.var());
        let y: Var = w.matmul(x).tanh() / (&(x * &x.conj()) + 1.0);
        (&y * &y.conj()).real().reduce_sum(None)
    })
}

/// The squared norm of a gradient.
fn steepness<X: Recorded>(g: &X) -> Result<X> {
    g.apply1("steepness", &[], || (g.var() * &g.var().conj()).real().reduce_sum(None))
}

fn complex(t: &Tensor) -> Vec<C64> {
    match t.as_slice::<f64>() {
        Ok(x) => x.iter().map(|&x| x.into()).collect(),
        Err(_) => t.as_slice::<C64>().unwrap().to_vec(),
    }
}

fn close(found: &Tensor, want: &Tensor) {
    assert_eq!((found.dtype(), found.shape()), (want.dtype(), want.shape()));
    for (f, w) in complex(found).iter().zip(complex(want)) {
        assert!((f - w).norm() < 1e-11 * (1.0 + w.norm()), "{f}, not {w}");
    }
}

fn matrix(dtype: DType, seed: f64) -> Tensor {
    let number = |i: usize| ((i as f64 + seed) * 1.7).sin();
    match dtype {
        DType::F64 => Tensor::from_vec_col_major([2, 2], (0..4).map(number).collect()),
        _ => Tensor::from_vec_col_major(
            [2, 2],
            (0..4).map(|i| C64::new(number(i), number(i + 9))).collect::<Vec<_>>(),
        ),
    }
    .unwrap()
}

#[test]
fn nested_transforms_equal_traced_programs() {
    for dtype in [DType::F64, DType::C64] {
        let (x0, w0, v0) = (matrix(dtype, 0.3), matrix(dtype, 1.1), matrix(dtype, 2.9));
        let [x, w, v] = [0; 3].map(|_| TracedTensor::input(dtype, &[Dim::symbol("n"), Dim::symbol("n")]));
        let y = loss(&x, &w).unwrap();
        let s = steepness(&y.grad(&x).unwrap()).unwrap();
        let outputs = [
            s.grad(&x).unwrap(),
            s.grad(&w).unwrap(),
            y.grad(&x).unwrap().jvp(&w, &v).unwrap(),
            y.jvp(&x, &v).unwrap().grad(&w).unwrap(),
            s.hvp(&w, &v).unwrap(),
            steepness(&s.grad(&w).unwrap()).unwrap().grad(&x).unwrap(),
        ];
        let program =
            GraphCompiler::new().compile_with(&[&x, &w, &v], &outputs.iter().collect::<Vec<_>>()).unwrap();
        let want = program.run(&mut CpuBackend::with_threads(1), &[&x0, &w0, &v0]).unwrap();

        let r = runtime();
        let [x, w, v] = [x0, w0, v0].map(|t| r.tensor(t).unwrap());
        let inner = |x: &EagerTensor, w: &EagerTensor| r.grad(|x| loss(x, w), x);
        let s = |x: &EagerTensor, w: &EagerTensor| steepness(&inner(x, w)?);
        let found: [Result<EagerTensor>; 6] = [
            r.grad(|x| s(x, &w), &x),
            r.grad(|w| s(&x, w), &w),
            r.jvp(|w| inner(&x, w), &w, &v).map(|y| y.1),
            r.grad(|w| Ok(r.jvp(|x| loss(x, w), &x, &v)?.1), &w),
            r.hvp(|w| s(&x, w), &w, &v),
            r.grad(|x| steepness(&r.grad(|w| s(x, w), &w)?), &x),
        ];
        for (found, want) in found.into_iter().zip(&want) {
            close(&found.unwrap().to_tensor().unwrap(), want);
        }
    }
}
