//! Whatever operands an operation is applied to, it gives an error or results as its shape rule says, and
//! never panics.
//!
//! Each sample is changed in one way at a time: the number of operands, ranks, extents, dtypes, layout,
//! elements, placement, destinations. A change may leave the operands fit for the operation; then it runs.

use super::{Outcome, all};
use crate::{
    array::{Array, Elem},
    info::{OpInfo, Sample},
    run,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tenferro_core_ops::{Aval, Backend, Dim, Op, Outs, Var, apply_n};
use tenferro_runtime::{Out, execute};
use tenferro_tensor::{
    BackendStorageHandle, DType, DeviceId, DeviceKind, Error, MemoryKind, Placement, Result, StorageBuffer,
    Tensor, TensorRead, dispatch,
};

/// Operands that are changed hold at most this many elements: nothing else depends on it but time.
const LARGEST: usize = 64;

/// A change of operands, in words, and the operands.
type Case = (String, Vec<Array>);

pub(super) fn check(info: &OpInfo) -> Outcome {
    let small = |s: &&Sample| s.inputs.iter().all(|a| a.data.len() <= LARGEST);
    all(info.samples.iter().filter(small).map(|s| {
        let failed = |e: String| format!("{}: {e}", s.label);
        match run::primitive(&s.call, &s.inputs) {
            Some(op) => of_primitive(&*op, s).map_err(failed),
            // A call of several operations takes its operands by position.
            None => all(changed(&s.inputs)
                .into_iter()
                .map(|(what, x)| guarded(&what, || run::direct(&s.call, &x)).map(drop)))
            .map_err(failed),
        }
    }))
}

fn of_primitive(op: &dyn Op, s: &Sample) -> Outcome {
    let counted = counted(&s.inputs);
    all(changed(&s.inputs).iter().chain(&counted).map(|(what, x)| applied(op, what, x)))?;
    placed(op, &s.inputs)?;
    destinations(op, &s.inputs)
}

/// The call, whose panics name the case.
fn guarded<T>(what: &str, f: impl FnOnce() -> T) -> std::result::Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        format!("{what}: panicked: {text}")
    })
}

/// Applies `op`, and compares what it gives with its shape rule on numbers, and that with the one on symbols.
fn applied(op: &dyn Op, what: &str, x: &[Array]) -> Outcome {
    let what = format!("{what}, {}", x.iter().map(|a| aval(a).to_string()).collect::<Vec<_>>().join(", "));
    let avals: Vec<Aval> = x.iter().map(aval).collect();
    let now = guarded(&what, || op.infer_now(&avals.iter().collect::<Vec<_>>()))?;
    let later = guarded(&what, || recorded(op, x))?;
    let ran = guarded(&what, || executed(op, x, Out::New))?;
    let wrong = |e: String| Err(format!("{what}: {e}"));
    match (now, later, ran) {
        (Err(_), Err(_), Err(_)) => Ok(()),
        (Ok(now), Ok(later), ran) => {
            if !now.iter().zip(&later).all(|(n, l)| agree(n, l)) || now.len() != later.len() {
                return wrong(format!("inferred {now:?} of numbers and {later:?} of symbols"));
            }
            let Ok(y) = ran else { return Ok(()) };
            let got: Vec<Aval> = y.iter().map(|y| Aval::new(y.dtype(), y.shape().iter().copied())).collect();
            let fits = |((y, bound), rule): ((&Aval, &Aval), &Aval<Dim>)| {
                let found = |((n, bound), rule): ((&usize, &usize), &Dim)| match rule.as_lit() {
                    Some(_) => n == bound,
                    None => n <= bound,
                };
                y.dtype == bound.dtype
                    && y.rank() == bound.rank()
                    && y.shape.iter().zip(&bound.shape).zip(&rule.shape).all(found)
            };
            if got.len() == now.len() && got.iter().zip(&now).zip(&later).all(fits) {
                Ok(())
            } else {
                wrong(format!("inferred {now:?}, computed {got:?}"))
            }
        }
        (now, later, ran) => wrong(format!(
            "of numbers {:?}, of symbols {:?}, run {:?}",
            now.err(),
            later.err(),
            ran.map(drop)
        )),
    }
}

/// What the shape rule gives on symbolic extents, in a trace.
fn recorded(op: &dyn Op, x: &[Array]) -> Result<Vec<Aval<Dim>>> {
    if x.is_empty() {
        // There is nothing that would make it a trace.
        return Ok(op.infer_now(&[])?.iter().map(Aval::symbolic).collect());
    }
    let y = apply_n(op, &run::placeholders(x).iter().collect::<Vec<_>>(), 1);
    y.iter().map(|v| v.ok().map(Var::aval)).collect()
}

/// Whether the rule on symbols gives what the one on numbers gives, but for extents that only a run finds.
fn agree(now: &Aval, later: &Aval<Dim>) -> bool {
    now.dtype == later.dtype
        && now.rank() == later.rank()
        && now.shape.iter().zip(&later.shape).all(|(n, d)| d.as_lit().is_none_or(|d| d == *n))
}

fn aval(a: &Array) -> Aval {
    Aval::new(a.dtype, a.shape.iter().copied())
}

fn executed(op: &dyn Op, x: &[Array], out: Out<'_>) -> Result<Outs<Tensor>> {
    let x: Vec<Tensor> = x.iter().map(Array::to_tensor).collect();
    execute(op, &x.iter().map(TensorRead::from).collect::<Vec<_>>(), out, &mut run::cpu())
}

/// `a` with another dtype and shape, its elements repeated.
fn refilled(a: &Array, dtype: DType, shape: &[usize]) -> Array {
    let mut elements = a.data.iter().copied().cycle();
    Array::from_fn(dtype, shape, |_| elements.next().unwrap_or(Elem::Int(1)))
}

/// One operand, changed in each of the ways.
fn variants(a: &Array) -> Vec<(String, Array)> {
    let mut all: Vec<(String, Array)> = Vec::new();
    let shaped = |shape: &[usize]| refilled(a, a.dtype, shape);
    let with = |axis: usize, n: usize| {
        let mut shape = a.shape.clone();
        shape[axis] = n;
        shaped(&shape)
    };
    all.push(("without axes".into(), shaped(&[])));
    for n in [1, 2] {
        all.push((format!("with a last axis of {n}"), shaped(&[&a.shape[..], &[n]].concat())));
        all.push((format!("with a first axis of {n}"), shaped(&[&[n], &a.shape[..]].concat())));
    }
    for (axis, &n) in a.shape.iter().enumerate() {
        let other = [Some(n + 1), n.checked_sub(1), Some(0)];
        all.extend(
            other.into_iter().flatten().map(|n| (format!("with {n} along axis {axis}"), with(axis, n))),
        );
        let mut less = a.shape.clone();
        less.remove(axis);
        all.push((format!("without axis {axis}"), shaped(&less)));
    }
    let others = DType::ALL.iter().filter(|d| **d != a.dtype);
    all.extend(others.map(|&d| (format!("as {d}"), refilled(a, d, &a.shape))));
    let back: Vec<usize> = (0..a.rank()).rev().collect();
    all.push(("transposed".into(), a.permuted(&back)));
    let elements: &[Elem] = match a.dtype {
        DType::Bool => &[],
        DType::I32 | DType::I64 => &[Elem::Int(0), Elem::Int(-1), Elem::Int(i64::MIN), Elem::Int(i64::MAX)],
        _ => &[NUMBER_0, NUMBER_NAN, NUMBER_INF],
    };
    // An integer that i32 lacks wraps around.
    all.extend(elements.iter().map(|&e| (format!("of {e:?}"), a.map(a.dtype, |_| e))));
    all
}

const fn number(re: f64) -> Elem {
    Elem::Float(tenferro_tensor::C64::new(re, 0.0))
}
const NUMBER_0: Elem = number(0.0);
const NUMBER_NAN: Elem = number(f64::NAN);
const NUMBER_INF: Elem = number(f64::INFINITY);

/// As many operands: each of them changed, and all of them.
fn changed(x: &[Array]) -> Vec<Case> {
    let one = |i: usize| {
        variants(&x[i]).into_iter().map(move |(what, a)| {
            let mut x = x.to_vec();
            x[i] = a;
            (format!("operand {i} {what}"), x)
        })
    };
    let mut cases: Vec<Case> = (0..x.len()).flat_map(one).collect();
    let each = |what: &str, f: &dyn Fn(&Array) -> Array| (what.to_string(), x.iter().map(f).collect());
    cases.push(each("all empty", &|a| refilled(a, a.dtype, &vec![0; a.rank()])));
    cases.push(each("all without axes", &|a| refilled(a, a.dtype, &[])));
    cases.push(each("all with a last axis", &|a| refilled(a, a.dtype, &[&a.shape[..], &[2]].concat())));
    cases.extend(DType::ALL.iter().map(|&d| each(&format!("all {d}"), &|a| refilled(a, d, &a.shape))));
    cases.extend((1..x.len()).map(|i| {
        let mut x = x.to_vec();
        x.swap(i - 1, i);
        (format!("operands {} and {i} exchanged", i - 1), x)
    }));
    cases
}

/// Other numbers of operands.
fn counted(x: &[Array]) -> Vec<Case> {
    let without = |i: usize| (format!("without operand {i}"), [&x[..i], &x[i + 1..]].concat());
    let twice = |i: usize| (format!("operand {i} twice"), [&x[..=i], &x[i..]].concat());
    let mut cases: Vec<Case> = (0..x.len()).flat_map(|i| [without(i), twice(i)]).collect();
    cases.push(("no operands".into(), vec![]));
    cases.push(("one more operand".into(), [x, &[Array::scalar(DType::F64, 1.0)]].concat()));
    cases
}

/// An operand in memory of another backend is refused, by an error that names the operation. A view takes it,
/// since it knows no more than the layout. An operation computed by others takes it if none of these reads it,
/// and else the error names the one that does.
fn placed(op: &dyn Op, x: &[Array]) -> Outcome {
    if op.is_view() {
        return Ok(());
    }
    let composed = x.first().is_some_and(|a| run::cpu().kernel(op, a.dtype).is_none());
    all((0..x.len()).map(|i| {
        let what = format!("operand {i} elsewhere");
        let held: Vec<Tensor> =
            x.iter().enumerate().map(|(k, a)| if k == i { elsewhere(a) } else { a.to_tensor() }).collect();
        let reads: Vec<TensorRead> = held.iter().map(TensorRead::from).collect();
        match guarded(&what, || execute(op, &reads, Out::New, &mut run::cpu()))? {
            Err(e @ Error::Placement(_)) if composed || e.op() == op.name() => Ok(()),
            Ok(_) if composed => Ok(()),
            Err(e) => Err(format!("{what}: {e}")),
            Ok(_) => Err(format!("{what}: accepted")),
        }
    }))
}

/// A tensor like `a` whose elements a backend keeps that nothing here knows.
fn elsewhere(a: &Array) -> Tensor {
    let device = Some(DeviceId { kind: DeviceKind::Other("example".into()), ordinal: 0 });
    let placement = Placement { memory_kind: MemoryKind::Device, device, cpu_affinity: None };
    dispatch!(a.dtype, T => {
        let handle = BackendStorageHandle::<T>::new_with_len(1, a.data.len());
        Tensor::from_buffer_col_major::<T>(&a.shape[..], StorageBuffer::Backend(Box::new(handle)), placement)
    })
    .expect("as many elements as the shape has")
}

/// Destinations that are not those of the results are refused, by an error that names the operation; for
/// results of which only a run finds the extents, all are.
fn destinations(op: &dyn Op, x: &[Array]) -> Outcome {
    let avals: Vec<Aval> = x.iter().map(aval).collect();
    let (Ok(y), Ok(rule)) = (op.infer_now(&avals.iter().collect::<Vec<_>>()), recorded(op, x)) else {
        return Ok(());
    };
    let right: Vec<Array> = y.iter().map(|y| Array::uniform(y.dtype, &y.shape, 5, 0.0, 1.0)).collect();
    let mut cases = counted(&right);
    for i in 0..right.len() {
        for other in [
            refilled(&right[i], right[i].dtype, &[&right[i].shape[..], &[1]].concat()),
            refilled(
                &right[i],
                DType::ALL[(right[i].dtype as usize + 1) % DType::ALL.len()],
                &right[i].shape,
            ),
        ] {
            let mut views = right.clone();
            views[i] = other;
            cases.push((format!("destination {i} like {}", aval(&views[i])), views));
        }
    }
    // Without operands there is no "operand twice" of one result, which is as many destinations as results.
    cases.retain(|(_, views)| {
        views.len() != right.len() || views.iter().zip(&right).any(|(a, b)| aval(a) != aval(b))
    });
    if rule.iter().any(|y| y.shape.iter().any(|d| d.as_lit().is_none())) {
        cases.push(("the destinations of the largest results".into(), right));
    }
    all(cases.into_iter().map(|(what, views)| {
        let mut held: Vec<Tensor> = views.iter().map(Array::to_tensor).collect();
        let before = held.iter().map(Array::from_tensor).collect::<Vec<_>>();
        let ran = guarded(&what, || {
            let views = held.iter_mut().map(|t| t.as_view_mut()).collect::<Result<Vec<_>>>()?;
            executed(op, x, Out::Into(views))
        })?;
        let refused = |e: &Error| e.op() == op.name();
        match ran {
            Err(e) if refused(&e) && held.iter().map(Array::from_tensor).eq(before) => Ok(()),
            Err(e) => Err(format!("destinations, {what}: {e}")),
            Ok(_) => Err(format!("destinations, {what}: accepted")),
        }
    }))
}
