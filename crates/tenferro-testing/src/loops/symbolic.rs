//! A program over symbolic extents gives, at any extents, what a direct run gives there; so do its
//! derivatives, but for results with an extent that only the run finds: no cotangent can have it.

use super::{Outcome, all, directions, during, input_directions, near};
use crate::{
    array::{Array, Elem},
    info::{OpInfo, Symbolic},
    run,
};
use std::mem::discriminant;
use tenferro_core_ops::{Atom, Aval, Dim, Env, Var, input};
use tenferro_runtime::Program;
use tenferro_tensor::{DType, Error, Result};

/// Values of the symbols, among them equal ones, and those where formulas for extents may go wrong.
const SIZES: &[[usize; 3]] = &[[3, 4, 2], [5, 2, 3], [1, 3, 2], [2, 1, 1], [2, 2, 2], [0, 2, 2], [2, 0, 0]];

fn env(sizes: &[usize; 3]) -> Env {
    let mut env = Env::default();
    for (name, &n) in ["n", "m", "k"].iter().zip(sizes) {
        env.bind(Atom::Symbol((*name).into()), n);
    }
    env
}

/// Inputs of these sizes. Integers are positions on any axis that is not empty.
fn arrays(s: &Symbolic, sizes: &[usize; 3]) -> Result<Vec<Array>> {
    let env = env(sizes);
    let of = |(i, (dtype, shape)): (usize, &(DType, Vec<Dim>))| {
        let shape = shape.iter().map(|d| d.eval(&env)).collect::<Result<Vec<_>>>()?;
        let positive = Array::uniform(*dtype, &shape, 31 + i as u64, 0.3, 0.9);
        Ok(if dtype.is_integer() { positive.map(*dtype, |_| Elem::Int(0)) } else { positive })
    };
    s.inputs.iter().enumerate().map(of).collect()
}

fn placeholders(s: &Symbolic) -> Vec<Var> {
    s.inputs.iter().map(|(dtype, shape)| input(Aval::new(*dtype, shape.iter().cloned()))).collect()
}

fn like(y: &[Var]) -> Vec<Var> {
    y.iter().map(|y| input(y.aval())).collect()
}

pub(super) fn check(info: &OpInfo) -> Outcome {
    all(info.symbolic.iter().map(|s| one(info, s).map_err(|e| format!("{}: {e}", s.label))))
}

fn one(info: &OpInfo, s: &Symbolic) -> Outcome {
    let x = placeholders(s);
    let y = (s.call)(&x);
    let program = during("compile", Program::new(&x, &y))?;
    let derivatives = |y: &[Var]| -> Result<Option<(Program, Program)>> {
        let wrt: Vec<usize> = (0..x.len()).filter(|&i| x[i].dtype().is_differentiable()).collect();
        let known = env(&SIZES[0]);
        let found = y.iter().any(|y| y.shape().iter().any(|d| d.eval(&known).is_err()));
        if info.order == 0 || wrt.is_empty() || y.is_empty() || found {
            return Ok(None);
        }
        let (ct, t) = (like(y), like(&wrt.iter().map(|&i| x[i].clone()).collect::<Vec<_>>()));
        let pulled = run::cotangents(y, &x, &wrt, &ct)?;
        let pushed = run::tangents(y, &x, &wrt, &t)?;
        let with = |more: &[Var]| x.iter().chain(more).cloned().collect::<Vec<_>>();
        Ok(Some((Program::new(&with(&ct), &pulled)?, Program::new(&with(&t), &pushed)?)))
    };
    let call = run::differentiable_outputs(&s.call);
    let derivatives = during("derivatives", derivatives(&call(&x)))?;
    let mut ran = 0;
    all(SIZES.iter().map(|sizes| {
        let what = format!("at n, m, k = {sizes:?}");
        let x = during(&what, arrays(s, sizes))?;
        let want = match agreed(&what, run::run(&program, &x), run::direct(&s.call, &x), info.tolerance)? {
            Some(want) => want,
            None => return Ok(()),
        };
        ran += 1;
        let Some((vjp, jvp)) = &derivatives else { return Ok(()) };
        let want: Vec<Array> = want.into_iter().filter(|y| y.dtype.is_differentiable()).collect();
        let (ct, t) = (directions(&want, 41), input_directions(&x, 42));
        let with = |more: &[Array]| x.iter().chain(more).cloned().collect::<Vec<_>>();
        let tolerance = 8.0 * info.tolerance;
        agreed(&format!("vjp {what}"), run::run(vjp, &with(&ct)), run::eager_vjp(&call, &x, &ct), tolerance)?;
        agreed(&format!("jvp {what}"), run::run(jvp, &with(&t)), run::jvp(&call, &x, &t), tolerance)?;
        Ok(())
    }))?;
    if ran > 0 { Ok(()) } else { Err("fails at every size".into()) }
}

/// Both fail in the same operation, or, because a program knows the parts of an operation only, for a reason
/// of the same kind; or both give the same, which is returned.
fn agreed(
    what: &str,
    symbolic: Result<Vec<Array>, Error>,
    concrete: Result<Vec<Array>, Error>,
    tolerance: f64,
) -> Result<Option<Vec<Array>>, String> {
    match (symbolic, concrete) {
        (Ok(got), Ok(want)) => near(what, &got, &want, tolerance).map(|()| Some(want)),
        (Err(a), Err(b)) if a.op() == b.op() || discriminant(&a) == discriminant(&b) => Ok(None),
        // A shape that a run refuses is a guard of its program.
        (Err(Error::Guard(_)), Err(Error::Shape(_))) => Ok(None),
        (Err(a), Err(b)) => Err(format!("{what}: the symbolic program says {a}, the direct run {b}")),
        (Err(e), _) => Err(format!("{what}: only the symbolic program fails: {e}")),
        (_, Err(e)) => Err(format!("{what}: only the direct run fails: {e}")),
    }
}
