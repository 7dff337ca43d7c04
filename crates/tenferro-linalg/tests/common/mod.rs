//! What the tests of derivatives share: an interpreter of traced values, and comparisons with differences.
#![allow(dead_code)]

use std::collections::HashMap;
use tenferro_core_ops::{
    Aval, Dim, Env, Now, Source, Var, apply, constant, input, jvp_traced, leaf, reachable, vjp_present,
    vjp_traced, with_backend,
};
use tenferro_cpu::CpuBackend;
use tenferro_tensor::{C64, DType, Result, Tensor, TypedTensor, Value, dispatch_float};

/// A present value.
pub(crate) fn now(t: &Tensor) -> Var {
    Var::Now(Now::new(Value::new(t.duplicate().unwrap())))
}

/// The compact tensor of a present value.
pub(crate) fn tensor(v: &Var) -> Tensor {
    v.value().unwrap_or_else(|e| panic!("{e}")).duplicate().unwrap()
}

/// Runs `f` on the CPU.
pub(crate) fn on_cpu<R>(f: impl FnOnce() -> R) -> R {
    with_backend(&CpuBackend::new(), f)
}

/// Every element as a complex number.
pub(crate) fn numbers(t: &Tensor) -> Vec<C64> {
    use tenferro_tensor::Scalar;
    tenferro_tensor::dispatch!(t.dtype(), T => t.as_slice::<T>().unwrap().iter().map(|x| x.to_c64()).collect())
}

pub(crate) fn largest(t: &Tensor) -> f64 {
    numbers(t).iter().map(|z| if z.norm().is_nan() { f64::INFINITY } else { z.norm() }).fold(0.0, f64::max)
}

/// The largest difference of two elements.
pub(crate) fn distance(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
    let d = numbers(a).into_iter().zip(numbers(b)).map(|(a, b)| (a - b).norm());
    d.map(|d| if d.is_nan() { f64::INFINITY } else { d }).fold(0.0, f64::max)
}

pub(crate) fn assert_close(what: &str, a: &Tensor, b: &Tensor, tolerance: f64) {
    let (d, scale) = (distance(a, b), largest(b).max(1.0));
    assert!(
        d <= tolerance * scale,
        "{what}: difference {d:e} at scale {scale:e}, allowed {tolerance:e}\n{a}\n{b}"
    );
}

/// Uniform random numbers in [-1, 1], also for the imaginary part.
pub(crate) fn random(dtype: DType, shape: &[usize], seed: u64) -> Tensor {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    for _ in 0..20 {
        next();
    }
    from_fn(dtype, shape, |_| C64::new(next(), if dtype.is_complex() { next() } else { 0.0 }))
}

pub(crate) fn from_fn(dtype: DType, shape: &[usize], mut f: impl FnMut(&[usize]) -> C64) -> Tensor {
    use tenferro_tensor::Scalar;
    dispatch_float!(dtype, T => TypedTensor::<T>::from_fn(shape, |i| T::from_c64(f(i))).unwrap().into_tensor(),
        else panic!("a float"))
}

/// a + c b.
pub(crate) fn moved(a: &Tensor, b: &Tensor, c: f64) -> Tensor {
    on_cpu(|| tensor(&(now(a) + now(b) * c)))
}

/// Re sum(conj(a) b).
pub(crate) fn inner(a: &Tensor, b: &Tensor) -> f64 {
    numbers(a).into_iter().zip(numbers(b)).map(|(a, b)| (a.conj() * b).re).sum()
}

/// The values of traced `outputs` for given inputs; symbols are bound as they become known.
pub(crate) fn run(outputs: &[Var], inputs: &[(Var, Tensor)]) -> Result<Vec<Tensor>> {
    on_cpu(|| {
        let mut env = Env::default();
        let mut values: HashMap<(u64, usize), Var> = HashMap::new();
        let bind = |avals: &[Aval<Dim>], y: &[Var], env: &mut Env| {
            for (a, y) in avals.iter().zip(y) {
                for (d, n) in a.shape.iter().zip(y.shape()) {
                    if let (Some(atom), Dim::Lit(n)) = (d.as_atom(), n) {
                        env.bind(atom.clone(), n);
                    }
                }
            }
        };
        for (v, t) in inputs {
            let Var::Later(c, i) = v else { panic!("an input is traced") };
            bind(&[v.aval()], &[now(t)], &mut env);
            values.insert((c.id(), *i), now(t));
        }
        let value = |values: &HashMap<(u64, usize), Var>, v: &Var| match v {
            Var::Later(c, i) => values[&(c.id(), *i)].clone(),
            v => v.clone(),
        };
        for v in outputs {
            v.ok()?;
        }
        for c in reachable(outputs) {
            match c.source() {
                Source::Input => {}
                Source::Constant(v) => {
                    values.insert((c.id(), 0), Var::Now(Now::new(v.clone())));
                }
                Source::Op(op) => {
                    let x: Vec<Var> = c.inputs().iter().map(|v| value(&values, v)).collect();
                    let dims: Result<Vec<Dim>> =
                        op.dims().iter().map(|d| d.eval(&env).map(Dim::Lit)).collect();
                    let op = if op.is_symbolic() { op.with_dims(&dims?) } else { op.clone() };
                    let y = apply(&*op, &x.iter().collect::<Vec<_>>())?;
                    bind(c.outputs(), &y, &mut env);
                    for (i, y) in y.into_iter().enumerate() {
                        values.insert((c.id(), i), y);
                    }
                }
            }
        }
        outputs.iter().map(|v| value(&values, v).value()?.duplicate()).collect()
    })
}

/// An input with literal extents.
pub(crate) fn input_like(t: &Tensor) -> Var {
    input(Aval { dtype: t.dtype(), shape: t.shape().iter().map(|&n| Dim::Lit(n)).collect() })
}

/// An input whose extents are symbols.
pub(crate) fn symbolic_like(t: &Tensor, name: &str) -> Var {
    let shape = (0..t.rank()).map(|i| Dim::symbol(format!("{name}{i}"))).collect();
    input(Aval { dtype: t.dtype(), shape })
}

pub(crate) type F<'a> = &'a dyn Fn(&[Var]) -> Vec<Var>;

fn present(f: F, x: &[Tensor]) -> Vec<Tensor> {
    on_cpu(|| f(&x.iter().map(now).collect::<Vec<_>>()).iter().map(tensor).collect())
}

/// `(f(x + h d) - f(x - h d)) / 2h`, extrapolated once.
fn differences(f: F, x: &[Tensor], d: &[Tensor], h: f64) -> Vec<Tensor> {
    let at = |h: f64| -> Vec<Tensor> {
        let at = |h: f64| present(f, &x.iter().zip(d).map(|(x, d)| moved(x, d, h)).collect::<Vec<_>>());
        let scale = |t: &Tensor| moved(&moved(t, t, -1.0), t, 0.5 / h);
        at(h).iter().zip(at(-h)).map(|(a, b)| scale(&moved(a, &b, -1.0))).collect()
    };
    // The error of the pair of steps h and h/2 is of fourth order.
    let (coarse, fine) = (at(h), at(h / 2.0));
    fine.iter().zip(coarse).map(|(f, c)| moved(&moved(f, f, 1.0 / 3.0), &c, -1.0 / 3.0)).collect()
}

/// f, with its tangent for the second half of the inputs.
fn tangent<'a>(f: F<'a>) -> impl Fn(&[Var]) -> Vec<Var> + 'a {
    move |x| {
        let n = x.len() / 2;
        let slots: Vec<Var> = x[..n].iter().map(|x| input(x.aval())).collect();
        let dots: Vec<Var> = x[n..].iter().map(|x| input(x.aval())).collect();
        let y = f(&slots);
        let wrt: Vec<(Var, Var)> = slots.iter().cloned().zip(dots.iter().cloned()).collect();
        let t = jvp_traced(&y.iter().collect::<Vec<_>>(), &wrt).unwrap_or_else(|e| panic!("{e}"));
        let t: Vec<Var> = t.into_iter().zip(&y).map(|(t, y)| tenferro_core_ops::or_zero(t, y)).collect();
        replay(&t, &slots.into_iter().chain(dots).zip(x.iter().cloned()).collect::<Vec<_>>())
    }
}

/// Traced values with other values in place of inputs; shapes must be literal or agree.
fn replay(outputs: &[Var], inputs: &[(Var, Var)]) -> Vec<Var> {
    let mut values: HashMap<(u64, usize), Var> = HashMap::new();
    let mut env = Env::default();
    for (v, x) in inputs {
        let Var::Later(c, i) = v else { panic!("an input is traced") };
        values.insert((c.id(), *i), x.clone());
    }
    let value = |values: &HashMap<(u64, usize), Var>, v: &Var| match v {
        Var::Later(c, i) => values.get(&(c.id(), *i)).cloned().unwrap_or_else(|| v.clone()),
        v => v.clone(),
    };
    let mut symbols: HashMap<tenferro_core_ops::Atom, Dim> = HashMap::new();
    for c in reachable(outputs) {
        let Some(op) = c.op() else { continue };
        let x: Vec<Var> = c.inputs().iter().map(|v| value(&values, v)).collect();
        let dims: Vec<Dim> = op.dims().iter().map(|d| d.substitute(&|a| symbols.get(a).cloned())).collect();
        let op = if op.is_symbolic() { op.with_dims(&dims) } else { op.clone() };
        let y = apply(&*op, &x.iter().collect::<Vec<_>>()).unwrap_or_else(|e| panic!("{e}"));
        for (a, y) in c.outputs().iter().zip(&y) {
            for (d, n) in a.shape.iter().zip(y.shape()) {
                if let Some(atom) = d.as_atom() {
                    if let Dim::Lit(n) = n {
                        env.bind(atom.clone(), n);
                    }
                    symbols.insert(atom.clone(), n);
                }
            }
        }
        for (i, y) in y.into_iter().enumerate() {
            values.insert((c.id(), i), y);
        }
    }
    outputs.iter().map(|v| value(&values, v)).collect()
}

/// Checks the derivative of `f` at `x` up to `order`: forward against differences, reverse against forward,
/// traced and on the tape.
pub(crate) fn check(what: &str, f: F, x: &[Tensor], order: usize, tolerance: f64) {
    check_steps(what, f, x, order, tolerance, 2e-3);
}

pub(crate) fn check_steps(what: &str, f: F, x: &[Tensor], order: usize, tolerance: f64, h: f64) {
    let d: Vec<Tensor> =
        x.iter().enumerate().map(|(i, x)| random(x.dtype(), x.shape(), 77 + i as u64)).collect();
    let df = tangent(f);
    let both: Vec<Tensor> = x.iter().chain(&d).map(|t| t.duplicate().unwrap()).collect();
    let forward = present(&df, &both);
    for (i, (a, n)) in forward.iter().zip(differences(f, x, &d, h)).enumerate() {
        assert_close(&format!("{what}: tangent of output {i}"), a, &n, tolerance);
    }

    let y = present(f, x);
    let ct: Vec<Tensor> =
        y.iter().enumerate().map(|(i, y)| random(y.dtype(), y.shape(), 5 + i as u64)).collect();
    let expected: f64 = ct.iter().zip(&forward).map(|(c, t)| inner(c, t)).sum();
    let scale: f64 = ct.iter().zip(&forward).map(|(c, t)| largest(c) * largest(t)).fold(1.0, f64::max);
    let agree = |how: &str, g: Vec<Tensor>| {
        let got: f64 = g.iter().zip(&d).map(|(g, d)| inner(g, d)).sum();
        assert!(
            (got - expected).abs() <= 1e-9 * scale,
            "{what}: {how}: got {got}, forward mode gives {expected}"
        );
    };
    let tape = on_cpu(|| {
        let leaves: Vec<Var> = x.iter().map(|t| leaf(Value::new(t.duplicate().unwrap()))).collect();
        let y = f(&leaves);
        let seeds: Vec<(&Var, Var)> = y.iter().zip(ct.iter().map(now)).collect();
        let g = vjp_present(&seeds, &leaves.iter().collect::<Vec<_>>(), false)
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        g.into_iter().zip(&leaves).map(|(g, x)| tensor(&tenferro_core_ops::or_zero(g, x))).collect()
    });
    agree("tape", tape);
    let slots: Vec<Var> = x.iter().map(input_like).collect();
    let y = f(&slots);
    let seeds: Vec<(Var, Var)> =
        y.iter().cloned().zip(ct.iter().map(|c| constant(Value::new(c.duplicate().unwrap())))).collect();
    let g = vjp_traced(&seeds, &slots.iter().collect::<Vec<_>>()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let g: Vec<Var> = g.into_iter().zip(&slots).map(|(g, x)| tenferro_core_ops::or_zero(g, x)).collect();
    let inputs: Vec<(Var, Tensor)> =
        slots.iter().cloned().zip(x.iter().map(|t| t.duplicate().unwrap())).collect();
    agree("traced", run(&g, &inputs).unwrap_or_else(|e| panic!("{what}: {e}")));

    if order > 1 {
        check_steps(&format!("{what}'"), &df, &both, order - 1, tolerance * 20.0, h);
    }
}
