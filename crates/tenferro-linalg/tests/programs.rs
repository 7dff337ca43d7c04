//! Random programs give the same everywhere: applied at once, on a tape, by an interpreter of the trace,
//! compiled at fixed extents, and compiled once for all extents; and so do their gradients.
//!
//! A recipe is drawn on symbolic values, so that it holds at any extents. Recipes of the exact kind consist
//! of operations whose elements do not depend on the order of a sum: all bits agree. Those of the smooth
//! kind have sums, products and factorizations and no kinks: they agree to rounding, and with central
//! differences.

mod common;

use common::{distance, inner, largest, moved, numbers, on_cpu, random, tensor};
use proptest::{prelude::*, test_runner::TestRunner};
use std::cell::Cell;
use tenferro_cases::{Draw, cases};
use tenferro_core_ops::{
    Aval, Dim, Env, Now, Var, build, constant, input, leaf, or_zero, unit_cotangent, vjp_present, vjp_traced,
};
use tenferro_cpu::CpuBackend;
use tenferro_linalg::{Tolerance, ops::*};
use tenferro_runtime::Program;
use tenferro_tensor::{C64, DType, Error, Result, Tensor, Value};

/// Computes a value from those before.
type Rule = Box<dyn Fn(&[Var]) -> Var>;
/// Computes a value from two.
type Pair = Box<dyn Fn(&Var, &Var) -> Var>;

struct Step {
    what: String,
    rule: Rule,
}

/// What a recipe is made of.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Exact,
    Smooth,
}

struct Recipe {
    inputs: Vec<Aval<Dim>>,
    steps: Vec<Step>,
    /// Values that no step uses.
    outputs: Vec<usize>,
}

impl std::fmt::Debug for Recipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (k, x) in self.inputs.iter().enumerate() {
            writeln!(f, "%{k}: {x}")?;
        }
        for (k, s) in self.steps.iter().enumerate() {
            writeln!(f, "%{} = {}", self.inputs.len() + k, s.what)?;
        }
        write!(f, "outputs {:?}", self.outputs)
    }
}

/// The most elements of a value at extents 4.
const MOST: usize = 600;

fn size(v: &Var) -> Option<usize> {
    let mut env = Env::default();
    for name in ["n", "m"] {
        env.bind(Dim::symbol(name).as_atom()?.clone(), 4);
    }
    let shape = v.shape();
    shape.iter().try_fold(1_usize, |len, d| len.checked_mul(d.eval(&env).ok()?))
}

fn product(shape: &[Dim]) -> Dim {
    shape.iter().fold(Dim::Lit(1), |p, d| &p * d)
}

fn lits(n: &[usize]) -> Vec<Dim> {
    n.iter().map(|&n| Dim::Lit(n)).collect()
}

fn index(at: &[i64]) -> Var {
    Var::Now(Now::new(Value::new(Tensor::from_vec_col_major([at.len()], at.to_vec()).unwrap())))
}

/// A square matrix, or a batch of them, made regular.
fn shifted(a: &Var) -> Var {
    // Symbols that are not the same may be different extents.
    let lit = |axis| a.extent(axis).as_lit().is_some();
    if a.rank() < 2 || a.extent(0) != a.extent(1) && !(lit(0) && lit(1)) {
        return Var::Failed(Error::shape("shifted", "extents", a.aval(), "a square matrix"));
    }
    &(a.tanh() * 0.2) + &scalar_matrix(a, 4.0)
}

/// c times the identity, for each matrix of `a`.
fn scalar_matrix(a: &Var, c: f64) -> Var {
    let n = a.rank();
    let one = a.extract_diag(0, 1).like(c).embed_diag(n - 2, n - 1);
    // The diagonal stands last: back to the front.
    let perm: Vec<usize> = [n - 2, n - 1].into_iter().chain(0..n - 2).collect();
    one.transpose(&perm)
}

/// A A^H.
fn gram(a: &Var) -> Var {
    a.matmul(&a.adjoint())
}

/// A A^H + 1, of moderate size.
fn definite(a: &Var) -> Var {
    let a = gram(&shifted(a)) * 0.1;
    if a.ok().is_err() { a } else { &a + &scalar_matrix(&a, 1.0) }
}

/// The Hermitian part of a regular matrix, from its eigenvalues and eigenvectors, plus the sum of the squares
/// of the eigenvalues: functions of the matrix even where eigenvalues are equal.
fn composed(a: &Var) -> Var {
    let a = shifted(a);
    let (w, v) = eigh(&(&a + &a.adjoint()));
    let squares = (&w * &w).reduce_sum_keepdims(Some(&[0])).expand_dims(&[1]);
    let scaled = &v * &w.expand_dims(&[0]);
    &scaled.matmul(&v.adjoint()) + &squares
}

impl Recipe {
    fn draw(kind: Kind, seed: u64, steps: usize) -> Recipe {
        let d = &mut Draw(seed);
        let (n, m) = (Dim::symbol("n"), Dim::symbol("m"));
        let aval = |dtype, shape: &[&Dim]| Aval::new(dtype, shape.iter().map(|d| (*d).clone()));
        let two = Dim::Lit(2);
        let mut inputs = vec![
            aval(DType::F64, &[&n, &m]),
            aval(DType::F64, &[&m]),
            aval(DType::F64, &[&n, &n]),
            aval(DType::F64, &[&m, &n, &two]),
            aval(DType::F64, &[]),
        ];
        if kind == Kind::Exact {
            inputs.extend([
                aval(DType::I64, &[&n, &m]),
                aval(DType::F32, &[&n]),
                aval(DType::C64, &[&m, &n]),
                aval(DType::Bool, &[&n, &m]),
            ]);
        } else {
            inputs.push(aval(DType::C64, &[&n, &n]));
        }
        let mut values: Vec<Var> = inputs.iter().cloned().map(input).collect();
        let mut used = vec![false; inputs.len()];
        let mut recipe = Recipe { inputs, steps: vec![], outputs: vec![] };
        for _ in 0..4 * steps {
            if recipe.steps.len() == steps {
                break;
            }
            let (what, operands, rule) = Recipe::step(kind, d, &values);
            let y = rule(&values);
            if y.ok().is_err() || y.rank() > 6 || size(&y).is_none_or(|len| len > MOST) {
                continue;
            }
            values.push(y);
            used.push(false);
            operands.iter().for_each(|&k| used[k] = true);
            recipe.steps.push(Step { what, rule });
        }
        recipe.outputs = (0..values.len()).filter(|&k| !used[k]).collect();
        recipe
    }

    /// An operation on values that are there, which may refuse them.
    fn step(kind: Kind, d: &mut Draw, values: &[Var]) -> (String, Vec<usize>, Rule) {
        // Later values are taken more often, so that chains form.
        let some = |d: &mut Draw| d.below(values.len()).max(d.below(values.len()));
        let i = some(d);
        let x = &values[i];
        let rank = x.rank();
        let fit = |d: &mut Draw, same: &dyn Fn(&Var) -> bool| -> usize {
            let all: Vec<usize> = (0..values.len()).filter(|&k| same(&values[k])).collect();
            if all.is_empty() { i } else { d.pick(&all) }
        };
        // What broadcasts at any extents: equal shapes, scalars, literal ones.
        let beside = |v: &Var| {
            let (s, t) = (v.shape(), x.shape());
            let one = Dim::Lit(1);
            s.iter().rev().zip(t.iter().rev()).all(|(a, b)| a == b || *a == one || *b == one)
        };
        let one = |what: String, f: Box<dyn Fn(&Var) -> Var>| -> (String, Vec<usize>, Rule) {
            (format!("{what} %{i}"), vec![i], Box::new(move |v: &[Var]| f(&v[i])))
        };
        let two = |what: &str, j: usize, f: Pair| -> (String, Vec<usize>, Rule) {
            (format!("{what} %{i} %{j}"), vec![i, j], Box::new(move |v: &[Var]| f(&v[i], &v[j])))
        };
        let axis = d.below(rank);
        let axes: Vec<usize> = (0..rank).filter(|_| d.below(2) == 0).collect();
        let named = |what: &str| format!("{what} {axes:?} {axis}");
        let (a, ax) = (axis, axes.clone());
        // Half of the operations are elementwise, a third moves elements.
        match d.below(12) {
            0..=2 if kind == Kind::Exact => {
                type F = fn(&Var) -> Var;
                let all: [(&str, F); 16] = [
                    ("neg", |x| -x),
                    ("abs", Var::abs),
                    ("sign", Var::sign),
                    ("conj", Var::conj),
                    ("real", Var::real),
                    ("imag", Var::imag),
                    ("exp", Var::exp),
                    ("expm1", Var::expm1),
                    ("log", Var::log),
                    ("log1p", Var::log1p),
                    ("sin", Var::sin),
                    ("cos", Var::cos),
                    ("tanh", Var::tanh),
                    ("sqrt", Var::sqrt),
                    ("rsqrt", Var::rsqrt),
                    ("square", |x| x * x),
                ];
                let (what, f) = d.pick(&all);
                one(what.into(), Box::new(f))
            }
            3 | 4 if kind == Kind::Exact => {
                type F = fn(&Var, &Var) -> Var;
                let all: [(&str, F); 13] = [
                    ("add", |x, y| x + y),
                    ("sub", |x, y| x - y),
                    ("mul", |x, y| x * y),
                    ("div", |x, y| x / y),
                    ("pow", Var::pow),
                    ("maximum", Var::maximum),
                    ("minimum", Var::minimum),
                    ("less", Var::less),
                    ("equal", Var::equal),
                    ("greater_equal", Var::greater_equal),
                    ("x + 2 y", |x, y| x + &(y * 2.0)),
                    ("x y + x", |x, y| &(x * y) + x),
                    ("1 x + 0 y", |x, y| &(x * 1.0) + &(y * 0.0)),
                ];
                let (what, f) = d.pick(&all);
                two(what, fit(d, &beside), Box::new(f))
            }
            5 if kind == Kind::Exact => match d.below(3) {
                0 => {
                    let to = d.pick(DType::ALL);
                    one(format!("cast {to}"), Box::new(move |x| x.cast(to)))
                }
                1 => {
                    let j = fit(d, &|v| v.dtype() == DType::Bool && v.shape() == x.shape());
                    let k = fit(d, &|v| v.shape() == x.shape() && v.dtype() == x.dtype());
                    let rule: Rule = Box::new(move |v| v[j].select(&v[i], &v[k]));
                    (format!("select %{j} %{i} %{k}"), vec![i, j, k], rule)
                }
                _ => one("clamp".into(), Box::new(|x| x.clamp(&x.like(-0.5), &x.like(0.75)))),
            },
            6 if kind == Kind::Exact => match d.below(4) {
                0 => one(named("reduce_max"), Box::new(move |x| x.reduce_max(Some(&ax)))),
                1 => one(named("reduce_min_keepdims"), Box::new(move |x| x.reduce_min_keepdims(Some(&ax)))),
                2 if x.dtype().is_integer() => one("reduce_prod".into(), Box::new(|x| x.reduce_prod(None))),
                _ => one(
                    named("integer reduce_sum"),
                    Box::new(move |x| x.cast(DType::I64).reduce_sum(Some(&ax))),
                ),
            },
            0..=2 => {
                type F = fn(&Var) -> Var;
                let all: [(&str, F); 9] = [
                    ("neg", |x| -x),
                    ("sin", |x| if x.dtype().is_complex() { x * 0.5 } else { x.sin() }),
                    ("cos", |x| if x.dtype().is_complex() { x.conj() } else { x.cos() }),
                    ("tanh", |x| if x.dtype().is_complex() { x.imag() } else { x.tanh() }),
                    ("expm1", |x| if x.dtype().is_complex() { x.real() } else { x.tanh().expm1() }),
                    ("log", |x| if x.dtype().is_complex() { x + 1.0 } else { (x * x + 0.5).log() }),
                    ("rsqrt", |x| if x.dtype().is_complex() { -x } else { (x * x + 0.5).rsqrt() }),
                    ("square", |x| if x.dtype().is_complex() { x.clone() } else { x.tanh() * x.sin() }),
                    ("complex", |x| if x.dtype().is_complex() { x * 0.25 } else { x.complex() }),
                ];
                let (what, f) = d.pick(&all);
                one(what.into(), Box::new(f))
            }
            3 | 4 => {
                type F = fn(&Var, &Var) -> Var;
                let all: [(&str, F); 5] = [
                    ("add", |x, y| (x + y) * 0.5),
                    ("sub", |x, y| (x - y) * 0.5),
                    ("mul", |x, y| (x * y) * 0.5),
                    ("div", |x, y| if y.dtype().is_complex() { x - y } else { x / (y * y + 1.0) }),
                    ("pow", |x, y| {
                        if x.dtype().is_complex() || y.dtype().is_complex() {
                            x + y
                        } else {
                            (x.sin() + 1.5).pow(&y.cos())
                        }
                    }),
                ];
                let (what, f) = d.pick(&all);
                two(what, fit(d, &beside), Box::new(f))
            }
            5 => match d.below(4) {
                0 => {
                    let j = fit(d, &|v| v.rank() == 2 && rank >= 1 && v.extent(1) == x.extent(0));
                    let f = |x: &Var, y: &Var| y.tensordot(x, 1) * 0.3;
                    two("tensordot", j, Box::new(f))
                }
                1 => one("gram".into(), Box::new(|x| x.matmul(&x.adjoint()) * 0.2)),
                2 => one("gram, transposed".into(), Box::new(|x| x.matrix_transpose().matmul(x) * 0.2)),
                _ => {
                    let j = fit(d, &|v| v.rank() == 2 && rank == 2 && v.extent(0) == x.extent(1));
                    two("matmul", j, Box::new(|x, y| x.matmul(y) * 0.3))
                }
            },
            6 => match d.below(11) {
                0 => one(named("reduce_sum"), Box::new(move |x| x.reduce_sum(Some(&ax)) * 0.3)),
                1 => one(named("sum, kept"), Box::new(move |x| x.reduce_sum_keepdims(Some(&ax)) * 0.3)),
                2 => one("total".into(), Box::new(|x| x.reduce_sum(None) * 0.1)),
                3 => one(named("mean of 1"), Box::new(move |x| x.expand_dims(&[a]).reduce_mean(Some(&[a])))),
                4 => {
                    let j = fit(d, &|v| {
                        v.rank() >= 1 && rank >= 2 && v.rank() == 2 && v.extent(0) == x.extent(0)
                    });
                    two("solve", j, Box::new(|x, y| solve(&shifted(x), y)))
                }
                5 => one("inv".into(), Box::new(|x| inv(&shifted(x)))),
                // What does not depend on a choice of signs and vectors.
                6 => one("qr".into(), Box::new(|x| gram(&qr(&shifted(x)).0.slice_axis(1, 0, 1)) * 0.5)),
                7 => one("cholesky".into(), Box::new(|x| cholesky(&definite(x)) * 0.5)),
                8 => one("eigh".into(), Box::new(|x| composed(x) * 0.2)),
                9 => {
                    let j = fit(d, &|v| v.rank() == 2 && rank == 2 && v.extent(0) == x.extent(0));
                    let f = |x: &Var, y: &Var| lstsq(&shifted(x), y, Tolerance::default()).0;
                    two("lstsq", j, Box::new(f))
                }
                _ => one("svdvals".into(), Box::new(|x| svdvals(&shifted(x)).reduce_sum(Some(&[0])) * 0.1)),
            },
            _ => match d.below(19) {
                0 | 1 => {
                    let perm = d.permutation(rank);
                    one(format!("transpose {perm:?}"), Box::new(move |x| x.transpose(&perm)))
                }
                2 => one(named("reverse"), Box::new(move |x| x.reverse(&ax))),
                3 => one("flat".into(), Box::new(|x| x.reshape(&[product(&x.shape())]))),
                4 if rank >= 2 => one(
                    "merged".into(),
                    Box::new(|x| {
                        let s = x.shape();
                        let shape: Vec<Dim> =
                            [&s[0] * &s[1]].into_iter().chain(s[2..].iter().cloned()).collect();
                        x.reshape(&shape)
                    }),
                ),
                5 => one(named("expand_dims"), Box::new(move |x| x.expand_dims(&[a]))),
                6 => one(
                    "repeated".into(),
                    Box::new(|x| {
                        let shape: Vec<Dim> = x.shape().iter().cloned().chain([Dim::Lit(2)]).collect();
                        x.broadcast_in_dim(&shape, &(0..x.rank()).collect::<Vec<_>>())
                    }),
                ),
                7 if rank >= 1 => {
                    one(named("all but the first"), Box::new(move |x| x.slice_axis(a, 1, x.extent(a))))
                }
                8 if rank >= 1 => one(named("the first"), Box::new(move |x| x.slice_axis(a, 0, 1))),
                9 => one(
                    "every other".into(),
                    Box::new(|x| {
                        let rank = x.rank();
                        x.slice(&vec![Dim::Lit(0); rank], &x.shape(), &vec![2; rank])
                    }),
                ),
                10 => {
                    let [low, high, inside] =
                        [2, 2, 2].map(|n| (0..rank).map(|_| d.below(n)).collect::<Vec<_>>());
                    one(
                        format!("pad {low:?} {high:?} {inside:?}"),
                        Box::new(move |x| {
                            let value = Var::scalar(x.dtype(), C64::new(0.5, 0.0));
                            x.pad(&value, &lits(&low), &lits(&high), &inside)
                        }),
                    )
                }
                11 if rank >= 1 => {
                    let j = fit(d, &|v| {
                        v.rank() == rank && (0..rank).all(|k| k == a || v.extent(k) == x.extent(k))
                    });
                    let f = move |x: &Var, y: &Var| build::concatenate(&[x.clone(), y.clone(), x.clone()], a);
                    two("concatenate", j, Box::new(f))
                }
                12 => {
                    let j = fit(d, &|v| v.shape() == x.shape());
                    two("stack", j, Box::new(move |x, y| build::stack(&[x.clone(), y.clone()], a)))
                }
                13 => {
                    let k = d.below(3) as isize - 1;
                    one(format!("tril {k}"), Box::new(move |x| x.tril(k)))
                }
                14 if rank >= 2 => one("extract_diag".into(), Box::new(|x| x.extract_diag(0, 1))),
                15 if rank >= 1 => one("embed_diag".into(), Box::new(|x| x.embed_diag(0, 1))),
                16 if rank >= 1 => {
                    let at: Vec<i64> = (0..1 + d.below(3)).map(|_| d.below(2) as i64).collect();
                    one(format!("index_select {at:?} {a}"), Box::new(move |x| x.index_select(&index(&at), a)))
                }
                17 if rank >= 1 => one(
                    named("gather"),
                    Box::new(move |x| {
                        let zeros = Aval { dtype: DType::I64, shape: x.shape() };
                        x.gather(&Var::full(&zeros, C64::new(0.0, 0.0)), a)
                    }),
                ),
                18 if rank >= 1 => one(
                    "dynamic_slice".into(),
                    Box::new(move |x| x.dynamic_slice(&index(&vec![1; rank]), &vec![Dim::Lit(1); rank])),
                ),
                _ => one("triu".into(), Box::new(|x| x.triu(0))),
            },
        }
    }

    /// The outputs, or the first error.
    fn apply(&self, x: &[Var]) -> Result<Vec<Var>> {
        let mut values = x.to_vec();
        for s in &self.steps {
            let y = (s.rule)(&values);
            y.ok()?;
            values.push(y);
        }
        Ok(self.outputs.iter().map(|&k| values[k].clone()).collect())
    }

    /// The sum of the squares of the outputs.
    fn loss(&self, x: &[Var]) -> Result<Var> {
        let mut loss = Var::scalar(DType::F64, C64::new(0.0, 0.0));
        for y in self.apply(x)? {
            let y = if y.dtype().is_differentiable() { y } else { continue };
            loss = &loss + &(&(&y * &y.conj()).real().cast(DType::F64).reduce_sum(None) * 0.5);
        }
        loss.ok().cloned()
    }

    fn at(&self, n: usize, m: usize, seed: u64) -> Vec<Tensor> {
        let mut env = Env::default();
        for (name, n) in [("n", n), ("m", m)] {
            env.bind(Dim::symbol(name).as_atom().unwrap().clone(), n);
        }
        let one = |k: usize, x: &Aval<Dim>| {
            let shape: Vec<usize> = x.shape.iter().map(|d| d.eval(&env).unwrap()).collect();
            if x.dtype.is_differentiable() {
                return random(x.dtype, &shape, seed + k as u64);
            }
            // Integers from -4 to 4, and both truth values.
            let t = random(DType::F64, &shape, seed + k as u64);
            let times = if x.dtype == DType::Bool { 1.0 } else { 4.99 };
            on_cpu(|| {
                let v = common::now(&t) * times;
                let v = if x.dtype == DType::Bool { v.less(&v.like(0.0)) } else { v.cast(x.dtype) };
                tensor(&v)
            })
        };
        self.inputs.iter().enumerate().map(|(k, x)| one(k, x)).collect()
    }
}

fn fixed(x: &[Tensor]) -> Vec<Var> {
    x.iter().map(common::input_like).collect()
}

fn compiled(p: &Result<Program>, x: &[Tensor]) -> Result<Vec<Tensor>> {
    p.as_ref().map_err(Clone::clone)?.run(&mut CpuBackend::new(), &x.iter().collect::<Vec<_>>())
}

fn interpreted(inputs: &[Var], y: &Result<Vec<Var>>, x: &[Tensor]) -> Result<Vec<Tensor>> {
    let y = y.as_ref().map_err(Clone::clone)?;
    // An output that is present is a constant of the program.
    let y: Vec<Var> = y.iter().map(later).collect();
    common::run(&y, &inputs.iter().cloned().zip(x.iter().map(|t| t.duplicate().unwrap())).collect::<Vec<_>>())
}

fn later(v: &Var) -> Var {
    match v {
        Var::Now(n) => constant(n.value().clone()),
        v => v.clone(),
    }
}

fn direct(recipe: &Recipe, x: &[Tensor]) -> Result<Vec<Tensor>> {
    on_cpu(|| {
        let x: Vec<Var> = x.iter().map(common::now).collect();
        recipe.apply(&x)?.into_iter().map(|y| y.value()?.duplicate()).collect()
    })
}

fn same_bits(a: &Tensor, b: &Tensor) -> bool {
    let equal = |x: f64, y: f64| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
    (a.dtype(), a.shape()) == (b.dtype(), b.shape())
        && numbers(a).iter().zip(numbers(b)).all(|(a, b)| equal(a.re, b.re) && equal(a.im, b.im))
        && (a.dtype() != DType::I64 || a.as_slice::<i64>().unwrap() == b.as_slice::<i64>().unwrap())
}

fn close(a: &Tensor, b: &Tensor) -> bool {
    (a.dtype(), a.shape()) == (b.dtype(), b.shape())
        && (a.is_empty() || !largest(a).is_finite() || distance(a, b) <= 1e-10 * largest(a).max(1.0))
}

type Agree = fn(&Tensor, &Tensor) -> bool;

/// How many results there were to compare, and how many were compared.
#[derive(Default)]
struct Count {
    all: Cell<usize>,
    compared: Cell<usize>,
}

impl Count {
    /// A program that fails at once proves nothing, nor does one whose results are no numbers.
    fn add(&self, want: &Result<Vec<Tensor>>, exact: bool) {
        let tells = |t: &Tensor| exact || t.is_empty() || largest(t).is_finite();
        let compared = want.as_ref().is_ok_and(|y| y.iter().any(tells));
        self.all.set(self.all.get() + 1);
        self.compared.set(self.compared.get() + usize::from(compared));
    }

    fn expect_most(&self, what: &str) {
        let (all, compared) = (self.all.get(), self.compared.get());
        assert!(2 * compared >= all, "{what}: only {compared} of {all} were compared");
    }
}

fn compare(
    what: &str,
    want: &Result<Vec<Tensor>>,
    got: Result<Vec<Tensor>>,
    agree: Agree,
) -> std::result::Result<(), String> {
    match (want, got) {
        (Ok(want), Ok(got)) => {
            for (k, (w, g)) in want.iter().zip(&got).enumerate() {
                if !agree(w, g) {
                    return Err(format!("{what}: output {k} is {g}, directly {w}"));
                }
            }
            if want.len() == got.len() { Ok(()) } else { Err(format!("{what}: {} outputs", got.len())) }
        }
        (Ok(_), Err(e)) => Err(format!("{what} fails: {e}")),
        // A program does not run what its outputs do not depend on, and so may work where the whole fails.
        (Err(_), _) => Ok(()),
    }
}

fn check(
    kind: Kind,
    seed: u64,
    steps: usize,
    sizes: &[(usize, usize)],
    [values, slopes]: [&Count; 2],
) -> std::result::Result<(), String> {
    let recipe = Recipe::draw(kind, seed, steps);
    let agree: Agree = if kind == Kind::Exact { same_bits } else { close };
    let holes: Vec<Var> = recipe.inputs.iter().cloned().map(input).collect();
    let outputs = recipe.apply(&holes);
    let symbolic = outputs.clone().and_then(|y| Program::new(&holes, &y));
    let wrt: Vec<usize> = (0..holes.len()).filter(|&k| recipe.inputs[k].dtype.is_differentiable()).collect();
    let gradients = |x: &[Var]| -> Result<Vec<Var>> {
        let loss = recipe.loss(x)?;
        let targets: Vec<&Var> = wrt.iter().map(|&k| &x[k]).collect();
        let found = match &loss {
            Var::Now(_) => vjp_present(&[(&loss, unit_cotangent("t", &loss)?)], &targets, false)?,
            loss => vjp_traced(&[(loss.clone(), unit_cotangent("t", loss)?)], &targets)?,
        };
        found.into_iter().zip(&targets).map(|(g, x)| or_zero(g, x).ok().cloned()).collect()
    };
    let symbolic_gradients = gradients(&holes).and_then(|g| Program::new(&holes, &g));
    let run = |n: usize, m: usize| -> std::result::Result<(), String> {
        let x = recipe.at(n, m, seed);
        let before: Vec<Tensor> = x.iter().map(|t| t.duplicate().unwrap()).collect();
        let want = direct(&recipe, &x);
        values.add(&want, kind == Kind::Exact);
        let slots = fixed(&x);
        let traced = recipe.apply(&slots);
        compare("interpreted", &want, interpreted(&slots, &traced, &x), agree)?;
        let program = traced.and_then(|y| Program::new(&slots, &y));
        compare("compiled", &want, compiled(&program, &x), agree)?;
        compare("interpreted, symbolic", &want, interpreted(&holes, &outputs, &x), agree)?;
        compare("compiled, symbolic", &want, compiled(&symbolic, &x), agree)?;
        compare("again", &want, compiled(&symbolic, &x), agree)?;

        let eager = on_cpu(|| {
            let mut x: Vec<Var> = x.iter().map(common::now).collect();
            wrt.iter().for_each(|&k| x[k] = leaf(x[k].value().unwrap().clone()));
            gradients(&x)?.into_iter().map(|g| g.value()?.duplicate()).collect::<Result<Vec<_>>>()
        });
        slopes.add(&eager, false);
        let traced = gradients(&slots).and_then(|g| Program::new(&slots, &g));
        compare("gradient", &eager, compiled(&traced, &x), close)?;
        compare("gradient, symbolic", &eager, compiled(&symbolic_gradients, &x), close)?;
        if let (Kind::Smooth, Ok(g)) = (kind, &eager) {
            let way: Vec<Tensor> = x.iter().map(|t| random(t.dtype(), t.shape(), seed + 99)).collect();
            let at = |h: f64| -> f64 {
                let x: Vec<Tensor> = x.iter().zip(&way).map(|(x, w)| moved(x, w, h)).collect();
                on_cpu(|| {
                    let x: Vec<Var> = x.iter().map(common::now).collect();
                    let loss = recipe.loss(&x).unwrap();
                    tensor(&loss).item::<f64>().unwrap()
                })
            };
            let along: f64 = wrt.iter().zip(g).map(|(&k, g)| inner(g, &way[k])).sum();
            let scale = at(0.0).abs() + along.abs() + 1.0;
            let slope = |h: f64| (at(h) - at(-h)) / (2.0 * h);
            let fits = |h: f64| (slope(h) - along).abs() <= 1e-6 * scale;
            if !fits(1e-4) && !fits(1e-5) && !fits(1e-6) {
                return Err(format!("differences give {} and gradients {along}", slope(1e-5)));
            }
        }
        let untouched = x.iter().zip(&before).all(|(a, b)| same_bits(a, b));
        if untouched { Ok(()) } else { Err("an input was written".into()) }
    };
    for &(n, m) in sizes {
        run(n, m).map_err(|e| format!("n = {n}, m = {m}: {e}\n{recipe:?}"))?;
    }
    Ok(())
}

fn sizes() -> impl Strategy<Value = Vec<(usize, usize)>> {
    proptest::collection::vec((0_usize..5, 0_usize..5), 2..4)
}

fn check_all(kind: Kind) {
    let (values, slopes) = (Count::default(), Count::default());
    let drawn = (any::<u64>(), 1_usize..31, sizes());
    let run = TestRunner::new(cases(300)).run(&drawn, |(seed, steps, sizes)| {
        check(kind, seed, steps, &sizes, [&values, &slopes]).map_err(TestCaseError::fail)
    });
    run.unwrap_or_else(|e| panic!("{e}"));
    values.expect_most("values");
    slopes.expect_most("gradients");
}

#[test]
fn exact_programs_give_the_same_bits() {
    check_all(Kind::Exact);
}

#[test]
fn smooth_programs_and_their_gradients_agree() {
    check_all(Kind::Smooth);
}
