//! A plan as operations on values: diagonals, sums, permutations, contractions and products.
//!
//! The same steps run on present values and are recorded on traced ones, so that a program sees them one by
//! one, and their derivatives are contractions again.

use crate::notation::Transpose;
use crate::plan::{Axes, Kind, Operand, Plan, Step};
use crate::rearrange::Rearrange;
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;
use tenferro_core_ops::ops::{Copy, DotGeneral, Mul};
use tenferro_core_ops::{Backend, Dim, Extents, Op, Out, Var, apply1, execute_into};
use tenferro_tensor::{Result, TensorViewMut, dispatch};

/// What `plan` makes of operands of one dtype.
pub(crate) fn lower(plan: &Plan, x: &[&Var]) -> Var {
    let mut made: SmallVec<[Option<Var>; 4]> = SmallVec::new();
    for step in plan.steps() {
        let y = step_of(step, x, &mut made).apply();
        made.push(Some(y));
    }
    let last = made.pop().flatten().map_or(Cow::Borrowed(x[0]), Cow::Owned);
    let y = rearranged(last, plan.finish()).into_owned();
    match plan.embed() {
        Some(embed) => embedded(y, embed),
        None => y,
    }
}

/// As [`lower`] on present values, with the result going to `out`, which the last step writes itself where it
/// can.
pub(crate) fn lower_into(backend: &dyn Backend, plan: &Plan, x: &[&Var], mut out: Out<'_>) -> Result<()> {
    let Some((last, before)) = plan.steps().split_last().filter(|_| plan.embed().is_none()) else {
        let y = lower(plan, x).into_value()?;
        return execute_into(backend, &Copy, &[&y], &mut out).map(drop);
    };
    let mut made: SmallVec<[Option<Var>; 4]> = SmallVec::new();
    for step in before {
        let y = step_of(step, x, &mut made).apply();
        made.push(Some(y));
    }
    let call = step_of(last, x, &mut made);
    let mut out = match &plan.finish().permutation {
        Some(permutation) => unpermuted(out, permutation)?,
        None => out,
    };
    let (op, lhs, rhs): (&dyn Op, _, _) = match &call {
        Call::Dot(dot, lhs, rhs) => (*dot, lhs.value()?, rhs.value()?),
        Call::Multiply(lhs, rhs) => (&Mul, lhs.value()?, rhs.value()?),
    };
    execute_into(backend, op, &[lhs, rhs], &mut out).map(drop)
}

/// The destination of the result that this permutation is made of.
fn unpermuted<'a>(out: Out<'a>, permutation: &[usize]) -> Result<Out<'a>> {
    let mut inverse: Axes = smallvec![0; permutation.len()];
    permutation.iter().enumerate().for_each(|(k, axis)| inverse[*axis] = k);
    let turned = |view: TensorViewMut<'a>| -> Result<TensorViewMut<'a>> {
        dispatch!(view.dtype(), T => Ok(view.into_typed::<T>()?.transpose_view(&inverse)?.into()))
    };
    Ok(match out {
        Out::New => Out::New,
        Out::Into(views) => Out::Into(views.into_iter().map(turned).collect::<Result<_>>()?),
        Out::Accumulate { alpha, beta, view } => Out::Accumulate { alpha, beta, view: turned(view)? },
    })
}

/// A step with its operands.
enum Call<'a> {
    Dot(&'a DotGeneral, Cow<'a, Var>, Cow<'a, Var>),
    Multiply(Cow<'a, Var>, Cow<'a, Var>),
}

impl Call<'_> {
    fn apply(&self) -> Var {
        match self {
            Call::Dot(dot, lhs, rhs) => apply1(*dot, &[lhs, rhs]),
            Call::Multiply(lhs, rhs) => apply1(&Mul, &[lhs, rhs]),
        }
    }
}

fn step_of<'a>(step: &'a Step, x: &[&'a Var], made: &mut [Option<Var>]) -> Call<'a> {
    let lhs = prepared(&step.lhs, x, made);
    let rhs = prepared(&step.rhs, x, made);
    match &step.kind {
        Kind::Dot(dot) => Call::Dot(dot, lhs, rhs),
        Kind::Multiply { lhs_axes, rhs_axes } => aligned(lhs, rhs, lhs_axes, rhs_axes),
    }
}

fn prepared<'a>(operand: &Operand, x: &[&'a Var], made: &mut [Option<Var>]) -> Cow<'a, Var> {
    let value = match operand.slot.checked_sub(x.len()) {
        None => Cow::Borrowed(x[operand.slot]),
        Some(step) => Cow::Owned(made[step].take().expect("a result is used once, after it was made")),
    };
    rearranged(value, &operand.prepare)
}

fn rearranged<'a>(x: Cow<'a, Var>, by: &Rearrange) -> Cow<'a, Var> {
    if by.is_identity() {
        return x;
    }
    let mut x = x.into_owned();
    for &(a, b) in &by.diagonals {
        x = square(&x, a, b).extract_diag(a, b);
    }
    if !by.sums.is_empty() {
        x = x.reduce_sum(Some(&by.sums));
    }
    if let Some(permutation) = &by.permutation {
        x = x.transpose(permutation);
    }
    Cow::Owned(x)
}

/// `x`, of which the extents of two axes were taken to be equal. A diagonal does not ask that they are, so a
/// shape that says it is asked for, which the run checks.
fn square(x: &Var, a: usize, b: usize) -> Var {
    let (n, m) = (x.extent(a), x.extent(b));
    if n == m {
        return x.clone();
    }
    let common = certain(n, m);
    let mut shape = x.shape();
    for axis in [a, b] {
        if let Some(extent) = shape.get_mut(axis) {
            *extent = common.clone();
        }
    }
    x.broadcast_in_dim(&shape, &(0..x.rank()).collect::<Axes>())
}

/// Of two extents taken to be equal, the one that is known. A literal 1 is not to be repeated to a symbol.
fn certain(a: Dim, b: Dim) -> Dim {
    if b.as_lit().is_some() { b } else { a }
}

/// The elementwise product of operands whose axes are these axes of the result.
fn aligned<'a>(lhs: Cow<'a, Var>, rhs: Cow<'a, Var>, lhs_axes: &[usize], rhs_axes: &[usize]) -> Call<'a> {
    if lhs_axes == rhs_axes && lhs_axes.iter().enumerate().all(|(i, axis)| i == *axis) {
        return Call::Multiply(lhs, rhs);
    }
    let rank = lhs_axes.iter().chain(rhs_axes).max().map_or(0, |axis| axis + 1);
    let mut shape: Extents<Dim> = smallvec![Dim::Lit(1); rank];
    for (i, axis) in lhs_axes.iter().enumerate() {
        shape[*axis] = lhs.extent(i);
    }
    for (i, axis) in rhs_axes.iter().enumerate() {
        let shared = lhs_axes.contains(axis);
        let extent = rhs.extent(i);
        shape[*axis] =
            if shared { certain(std::mem::replace(&mut shape[*axis], Dim::Lit(1)), extent) } else { extent };
    }
    let [lhs, rhs] =
        [(lhs, lhs_axes), (rhs, rhs_axes)].map(|(v, axes)| Cow::Owned(v.broadcast_in_dim(&shape, axes)));
    Call::Multiply(lhs, rhs)
}

/// The cotangent of an operand of extents `shape`, from the value of the einsum of its [`Transpose`].
pub(crate) fn pulled(y: Var, by: &Transpose, shape: &[Dim]) -> Var {
    let embed = &by.embed;
    let extent = |label: &u32| {
        let axis = embed.input.iter().position(|other| other == label).expect("a label of the operand");
        shape[axis].clone()
    };
    let distinct: Extents<Dim> = embed.output.iter().map(extent).collect();
    embedded(y.broadcast_in_dim(&distinct, &by.broadcast_axes()), embed)
}

/// The tensor that is zero but where `embed`, which sums nothing, takes `y` from.
fn embedded(mut y: Var, embed: &Rearrange) -> Var {
    if let Some(permutation) = &embed.permutation {
        let mut inverse: Axes = smallvec![0; permutation.len()];
        permutation.iter().enumerate().for_each(|(k, axis)| inverse[*axis] = k);
        y = y.transpose(&inverse);
    }
    for &(a, b) in embed.diagonals.iter().rev() {
        y = y.embed_diag(a, b);
    }
    y
}
