//! Calls and their derivatives in each of the ways they can run.

use crate::array::Array;
use std::sync::{Arc, OnceLock};
use tenferro_core_ops::{
    Aval, Dim, Now, Op, Var, input, into_tensor, jvp_traced, leaf, or_zero, vjp_present, vjp_traced,
    with_backend,
};
use tenferro_cpu::CpuBackend;
use tenferro_runtime::Program;
use tenferro_tensor::{Result, Tensor, Value};

/// An operation with its parameters.
pub type Calls = Arc<dyn Fn(&[Var]) -> Vec<Var> + Send + Sync>;

/// The call without those of its outputs that have no derivatives, as positions have none. One that failed
/// stays, whatever it would have been.
pub(crate) fn differentiable_outputs(call: &Calls) -> Calls {
    let call = call.clone();
    Arc::new(move |x| {
        let mut y = call(x);
        y.retain(|y| y.ok().is_err() || y.dtype().is_differentiable());
        y
    })
}

/// Cotangents of the differentiable inputs, or their derivatives.
pub type Pulled = Vec<Array>;

/// The backend under test.
pub(crate) fn cpu() -> CpuBackend {
    static CPU: OnceLock<CpuBackend> = OnceLock::new();
    CPU.get_or_init(CpuBackend::new).clone()
}

pub(crate) fn values(x: &[Array]) -> Vec<Value> {
    x.iter().map(|a| Value::new(a.to_tensor())).collect()
}

fn read(v: Var) -> Result<Array> {
    Ok(Array::from_tensor(&into_tensor(&cpu(), v.into_value()?)?))
}

fn checked(y: Vec<Var>) -> Result<Vec<Var>> {
    y.iter().try_for_each(|v| v.ok().map(drop))?;
    Ok(y)
}

/// Positions of the inputs that have derivatives.
pub(crate) fn differentiable(x: &[Array]) -> Vec<usize> {
    (0..x.len()).filter(|&i| x[i].dtype.is_differentiable()).collect()
}

/// Runs the call on present values.
pub(crate) fn present(call: &Calls, x: &[Value]) -> Result<Vec<Array>> {
    let x: Vec<Var> = x.iter().map(|v| Var::Now(Now::new(v.clone()))).collect();
    with_backend(&cpu(), || call(&x)).into_iter().map(read).collect()
}

/// Runs the call on the arrays.
///
/// # Errors
/// What an operation reports.
pub fn direct(call: &Calls, x: &[Array]) -> Result<Vec<Array>> {
    present(call, &values(x))
}

/// Placeholders of these dtypes and extents.
pub(crate) fn placeholders(x: &[Array]) -> Vec<Var> {
    x.iter().map(|a| input(Aval::new(a.dtype, a.shape.iter().map(|&n| Dim::Lit(n))))).collect()
}

/// Compiles what `build` records and runs it.
pub(crate) fn traced(x: &[Array], build: impl FnOnce(&[Var]) -> Result<Vec<Var>>) -> Result<Vec<Array>> {
    let vars = placeholders(x);
    let program = Program::new(&vars, &build(&vars)?)?;
    run(&program, x)
}

/// Runs a program.
pub(crate) fn run(program: &Program, x: &[Array]) -> Result<Vec<Array>> {
    let tensors: Vec<Tensor> = x.iter().map(Array::to_tensor).collect();
    let y = program.run(&mut cpu(), &tensors.iter().collect::<Vec<_>>())?;
    Ok(y.iter().map(Array::from_tensor).collect())
}

/// The call by a compiled program.
///
/// # Errors
/// What an operation reports.
pub fn compiled(call: &Calls, x: &[Array]) -> Result<Vec<Array>> {
    traced(x, |x| checked(call(x)))
}

/// Tangents of the outputs for tangents `t` of the inputs `wrt`.
pub(crate) fn tangents(y: &[Var], x: &[Var], wrt: &[usize], t: &[Var]) -> Result<Vec<Var>> {
    let seeds: Vec<(Var, Var)> = wrt.iter().zip(t).map(|(&i, t)| (x[i].clone(), t.clone())).collect();
    let dy = jvp_traced(&y.iter().collect::<Vec<_>>(), &seeds)?;
    checked(dy.into_iter().zip(y).map(|(d, y)| or_zero(d, y)).collect())
}

/// Cotangents of the inputs `wrt` for cotangents `ct` of the outputs.
pub(crate) fn cotangents(y: &[Var], x: &[Var], wrt: &[usize], ct: &[Var]) -> Result<Vec<Var>> {
    let seeds: Vec<(Var, Var)> = y.iter().cloned().zip(ct.iter().cloned()).collect();
    let targets: Vec<&Var> = wrt.iter().map(|&i| &x[i]).collect();
    let g = vjp_traced(&seeds, &targets)?;
    checked(g.into_iter().zip(&targets).map(|(g, x)| or_zero(g, x)).collect())
}

fn joined(x: &[Array], more: &[Array]) -> Vec<Array> {
    x.iter().chain(more).cloned().collect()
}

/// `J t` by the forward rules, traced.
///
/// # Errors
/// What an operation reports.
pub fn jvp(call: &Calls, x: &[Array], t: &[Array]) -> Result<Vec<Array>> {
    let wrt = differentiable(x);
    traced(&joined(x, t), |v| {
        let (x, t) = v.split_at(x.len());
        tangents(&checked(call(x))?, x, &wrt, t)
    })
}

/// `J^H ct`, traced.
///
/// # Errors
/// What an operation reports.
pub fn vjp(call: &Calls, x: &[Array], ct: &[Array]) -> Result<Pulled> {
    let wrt = differentiable(x);
    traced(&joined(x, ct), |v| {
        let (x, ct) = v.split_at(x.len());
        cotangents(&checked(call(x))?, x, &wrt, ct)
    })
}

/// The derivative of `J^H ct` along `t`: forward over reverse, traced.
///
/// # Errors
/// What an operation reports.
pub fn hvp(call: &Calls, x: &[Array], ct: &[Array], t: &[Array]) -> Result<Pulled> {
    let wrt = differentiable(x);
    traced(&joined(&joined(x, ct), t), |v| {
        let (x, rest) = v.split_at(x.len());
        let (ct, t) = rest.split_at(ct.len());
        let g = cotangents(&checked(call(x))?, x, &wrt, ct)?;
        tangents(&g, x, &wrt, t)
    })
}

fn tracked(x: &[Array]) -> Vec<Var> {
    let var = |a: &Array| {
        let v = Value::new(a.to_tensor());
        if a.dtype.is_differentiable() { leaf(v) } else { Var::Now(Now::new(v)) }
    };
    x.iter().map(var).collect()
}

fn constants(x: &[Array]) -> Vec<Var> {
    values(x).into_iter().map(|v| Var::Now(Now::new(v))).collect()
}

/// Cotangents by the tape, for every value of `wrt`.
fn pull(y: &[Var], ct: &[Var], wrt: &[&Var], create_graph: bool) -> Result<Vec<Var>> {
    let seeds: Vec<(&Var, Var)> = y.iter().zip(ct.iter().cloned()).collect();
    let g = vjp_present(&seeds, wrt, create_graph)?;
    checked(g.into_iter().zip(wrt).map(|(g, x)| or_zero(g, x)).collect())
}

/// The call on a tape.
///
/// # Errors
/// What an operation reports.
pub fn eager(call: &Calls, x: &[Array]) -> Result<Vec<Array>> {
    with_backend(&cpu(), || call(&tracked(x)).into_iter().map(|v| read(v.detach())).collect())
}

/// `J^H ct` by the tape.
///
/// # Errors
/// What an operation reports.
pub fn eager_vjp(call: &Calls, x: &[Array], ct: &[Array]) -> Result<Pulled> {
    with_backend(&cpu(), || {
        let vars = tracked(x);
        let wrt: Vec<&Var> = differentiable(x).into_iter().map(|i| &vars[i]).collect();
        let y = checked(call(&vars))?;
        pull(&y, &constants(ct), &wrt, false)?.into_iter().map(read).collect()
    })
}

/// `J t` by the tape: the transpose of the map from `ct` to `J^H ct`.
///
/// # Errors
/// What an operation reports.
pub fn eager_jvp(call: &Calls, x: &[Array], t: &[Array]) -> Result<Vec<Array>> {
    with_backend(&cpu(), || {
        let vars = tracked(x);
        let wrt: Vec<&Var> = differentiable(x).into_iter().map(|i| &vars[i]).collect();
        let y = checked(call(&vars))?;
        let ct: Vec<Var> =
            y.iter().map(|y| Ok(leaf(or_zero(None, y).into_value()?))).collect::<Result<_>>()?;
        let g = pull(&y, &ct, &wrt, true)?;
        pull(&g, &constants(t), &ct.iter().collect::<Vec<_>>(), false)?.into_iter().map(read).collect()
    })
}

/// The derivative of `J^H ct` along `t` by the tape: reverse over reverse.
///
/// # Errors
/// What an operation reports.
pub fn eager_hvp(call: &Calls, x: &[Array], ct: &[Array], t: &[Array]) -> Result<Pulled> {
    with_backend(&cpu(), || {
        let vars = tracked(x);
        let wrt: Vec<&Var> = differentiable(x).into_iter().map(|i| &vars[i]).collect();
        let y = checked(call(&vars))?;
        let g = pull(&y, &constants(ct), &wrt, true)?;
        pull(&g, &constants(t), &wrt, false)?.into_iter().map(read).collect()
    })
}

/// The primitive, if the call is one application of it to the inputs as they are.
pub(crate) fn primitive(call: &Calls, x: &[Array]) -> Option<Arc<dyn Op>> {
    let vars = placeholders(x);
    let y = call(&vars);
    let Some(Var::Later(c, 0)) = y.first() else { return None };
    let same =
        |(a, b): (&Var, &Var)| matches!((a, b), (Var::Later(a, _), Var::Later(b, _)) if a.id() == b.id());
    let all = c.inputs().len() == vars.len() && c.inputs().iter().zip(&vars).all(same);
    c.op().filter(|_| all && y.len() == c.outputs().len()).cloned()
}
