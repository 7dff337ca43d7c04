//! Running one operation on present values: shape rule, then a view, a kernel, or the decomposition.

use crate::{
    aval::Aval,
    backend::{Backend, Operand, Out, with_backend},
    op::{Op, Outs},
    ops::Copy,
    var::{Now, Var},
};
use smallvec::{SmallVec, smallvec};
use tenferro_tensor::{DType, Error, Result, Tensor, TensorRef, Value, checked_len, same_shape};

/// Dtype and extents of a present value.
#[inline]
pub fn aval_of(v: &Value) -> Aval {
    Aval { dtype: v.dtype(), shape: SmallVec::from_slice(v.shape()) }
}

/// The outputs of `op` applied to `x` on `backend`.
///
/// # Errors
/// What the shape rule or the kernel reports, an operand placed elsewhere, or an operation that `backend` has
/// neither a kernel nor a decomposition for.
pub fn execute(backend: &dyn Backend, op: &dyn Op, x: &[&Value]) -> Result<Outs<Value>> {
    if op.is_view() {
        return Ok(smallvec![view(backend, op, x)?]);
    }
    let y = infer(op, x)?;
    let dtype = x.first().map_or(y[0].dtype, |v| v.dtype());
    let Some(kernel) = backend.kernel(op, dtype) else { return decomposed(backend, op, x, dtype) };
    // SAFETY: `y` is what `infer` gave.
    let mut results =
        with_operands(x, |operands| unsafe { backend.run(&kernel, op, operands, &y, &mut Out::New) })?;
    if results.len() != y.len() || results.iter().zip(&y).any(|(t, a)| t.dtype() != a.dtype) {
        return Err(unlike(op, &results, &y));
    }
    Ok(match results.pop() {
        Some(only) if results.is_empty() => Outs::from_buf([Value::new(only)]),
        last => results.into_iter().chain(last).map(Value::new).collect(),
    })
}

/// The error of a kernel whose results are not those of the shape rule.
#[cold]
fn unlike(op: &dyn Op, results: &[Tensor], y: &[Aval]) -> Error {
    let list = |dtypes: SmallVec<[DType; 2]>| format!("{dtypes:?}");
    let got = list(results.iter().map(Tensor::dtype).collect());
    Error::dtype(op.name(), "results of the kernel", got, list(y.iter().map(|a| a.dtype).collect()))
}

/// The shape rule on present values. Elementwise operations on operands alike, which small programs are full
/// of, describe the operand only once.
#[inline]
fn infer(op: &dyn Op, x: &[&Value]) -> Result<Outs<Aval>> {
    if let (true, [first, rest @ ..]) = (x.len() <= 3 && op.is_elementwise(), x)
        && rest.iter().all(|v| v.dtype() == first.dtype() && same_shape(v.shape(), first.shape()))
    {
        let a = aval_of(first);
        return op.infer_now(&[&a, &a, &a][..x.len()]);
    }
    match x {
        [a] => op.infer_now(&[&aval_of(a)]),
        [a, b] => op.infer_now(&[&aval_of(a), &aval_of(b)]),
        x => {
            let avals: SmallVec<[Aval; 3]> = x.iter().map(|v| aval_of(v)).collect();
            op.infer_now(&avals.iter().collect::<SmallVec<[&Aval; 3]>>())
        }
    }
}

/// `f` of the values as operands to be read.
#[inline]
fn with_operands<R>(x: &[&Value], f: impl FnOnce(&mut [Operand<'_>]) -> R) -> R {
    match x {
        [a] => f(&mut [Operand::Read(a.by_ref())]),
        [a, b] => f(&mut [Operand::Read(a.by_ref()), Operand::Read(b.by_ref())]),
        x => f(&mut x.iter().map(|v| Operand::Read(v.by_ref())).collect::<SmallVec<[Operand<'_>; 4]>>()),
    }
}

/// As [`execute`], with the outputs going to `out`: new tensors only for [`Out::New`].
///
/// # Errors
/// As [`execute`]; also views of another dtype, shape or number than the outputs. The views are written only
/// after everything was checked.
pub fn execute_into(
    backend: &dyn Backend,
    op: &dyn Op,
    x: &[&Value],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let y = infer(op, x)?;
    check_destination(op.name(), &y, out)?;
    let dtype = x.first().map_or(y[0].dtype, |v| v.dtype());
    let kernel = if op.is_view() { None } else { backend.kernel(op, dtype) };
    if let Some(kernel) = kernel {
        // SAFETY: `y` is what `infer` gave, and the destinations were checked.
        return with_operands(x, |operands| unsafe { backend.run(&kernel, op, operands, &y, out) });
    }
    let results =
        if op.is_view() { smallvec![view(backend, op, x)?] } else { decomposed(backend, op, x, dtype)? };
    for (r, a) in results.iter().zip(&y) {
        if aval_of(r) != *a {
            return Err(Error::shape(op.name(), "result of the decomposition", aval_of(r), a));
        }
    }
    match out {
        Out::Into(views) => {
            for (v, r) in std::mem::take(views).into_iter().zip(&results) {
                copy(backend, r.by_ref(), &mut Out::Into(vec![v]))?;
            }
            Ok(Outs::new())
        }
        _ => results.iter().try_fold(Outs::new(), |mut tensors, r| {
            tensors.extend(copy(backend, r.by_ref(), out)?);
            Ok(tensors)
        }),
    }
}

/// Copies `x` to `out`, whose views are like it.
fn copy(backend: &dyn Backend, x: TensorRef<'_>, out: &mut Out<'_>) -> Result<Outs<Tensor>> {
    let y = Aval { dtype: x.dtype(), shape: SmallVec::from_slice(x.shape()) };
    let kernel = backend
        .kernel(&Copy, x.dtype())
        .ok_or_else(|| Error::unsupported("copy", x.dtype(), backend.name()))?;
    // SAFETY: a copy is like its operand.
    unsafe { backend.run(&kernel, &Copy, &mut [Operand::Read(x)], &[y], out) }
}

fn check_destination(op: &'static str, y: &[Aval], out: &Out<'_>) -> Result<()> {
    let views: SmallVec<[_; 2]> = match out {
        Out::New => return Ok(()),
        Out::Into(views) => views.iter().collect(),
        Out::Accumulate { view, .. } => smallvec![view],
    };
    if views.len() != y.len() {
        return Err(Error::argument(op, "number of destinations", views.len(), y.len()));
    }
    if let Out::Accumulate { alpha, beta, .. } = out
        && !y[0].dtype.is_differentiable()
        && let Some(factor) = [alpha, beta].into_iter().find(|f| f.fract() != 0.0)
    {
        return Err(Error::argument(op, "factor", factor, format_args!("an integer for {}", y[0].dtype)));
    }
    for (v, a) in views.iter().zip(y) {
        if v.dtype() != a.dtype {
            return Err(Error::dtype(op, "destination", v.dtype(), a.dtype));
        }
        if v.shape() != &a.shape[..] {
            return Err(Error::shape(
                op,
                "destination",
                format_args!("{:?}", v.shape()),
                format_args!("{:?}", a.shape),
            ));
        }
    }
    Ok(())
}

/// A view operation on a present value: another layout over the same buffer, after a copy if its strides do not
/// allow the view.
fn view(backend: &dyn Backend, op: &dyn Op, x: &[&Value]) -> Result<Value> {
    if let [x] = x
        && let Some(y) = view_of(op, x)
    {
        return y;
    }
    for y in infer(op, x)? {
        checked_len(op.name(), &y.shape)?;
    }
    let x = Value::new(contiguous(backend, x[0].by_ref())?);
    view_of(op, &x).unwrap_or_else(|| {
        let got = format_args!("{:?}", x.layout()).to_string();
        Err(Error::layout(op.name(), "view", got, "a view of a compact operand that fits the shape rule"))
    })
}

/// The result of a view operation, if its operand fits and need not be copied.
#[inline]
pub(crate) fn view_of(op: &dyn Op, x: &Value) -> Option<Result<Value>> {
    op.view(&x.layout()).map(|layout| x.try_with_layout(layout))
}

/// A compact copy of `x`.
///
/// # Errors
/// If `x` is not placed on `backend`.
pub fn contiguous(backend: &dyn Backend, x: TensorRef<'_>) -> Result<Tensor> {
    Ok(copy(backend, x, &mut Out::New)?.pop().expect("copy has one output"))
}

/// The compact tensor of a value: moved out if nobody else holds it, else copied.
///
/// # Errors
/// If the value is not placed on `backend`.
pub fn into_tensor(backend: &dyn Backend, v: Value) -> Result<Tensor> {
    match v.try_into_unique() {
        Ok(t) => Ok(t),
        Err(v) => contiguous(backend, v.by_ref()),
    }
}

#[cold]
fn decomposed(backend: &dyn Backend, op: &dyn Op, x: &[&Value], dtype: DType) -> Result<Outs<Value>> {
    let x: SmallVec<[Var; 3]> = x.iter().map(|v| Var::Now(Now::new((*v).clone()))).collect();
    let y = with_backend(backend, || op.decompose(&x))
        .ok_or_else(|| Error::unsupported(op.name(), dtype, backend.name()))?;
    y.into_iter().map(|v| v.into_value()).collect()
}
