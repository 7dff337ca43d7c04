//! Rewrites of one call that keep every bit of the result, signed zeros and infinities included; a NaN stays
//! one, of whatever sign.
//!
//! A call is only replaced by a value of provably the same extents, so no guard is lost.

use super::graph::{Graph, Ref, Refs, Source};
use smallvec::smallvec;
use std::sync::Arc;
use tenferro_core_ops::{
    Aval, Dim, Extent, Op,
    ops::{
        Add, Axes, BroadcastInDim, Cast, Conj, Copy, Div, DotGeneral, Mul, Neg, RealPart, ReduceMax,
        ReduceMin, ReduceProd, ReduceSum, Reshape, Reverse, Select, Slice, Sub, Transpose,
    },
};
use tenferro_tensor::{C32, C64, DType, TensorRead};

/// What a call becomes.
pub(super) enum Rewrite {
    /// A value that is there already.
    Same(Ref),
    /// Another call with the same result.
    Call(Arc<dyn Op>, Refs),
}
use Rewrite::{Call, Same};

fn of<T: 'static>(op: &dyn Op) -> Option<&T> {
    op.as_any().downcast_ref()
}

/// The operation of the call that `r` is the only output of, and its operands.
fn made_by<T: 'static>(g: &Graph, r: Ref) -> Option<(&T, &Refs)> {
    Some((of(&**g.op(r)?)?, &g.nodes[r.node as usize].x))
}

/// A better form of `op` on `x`, if there is one.
pub(super) fn simplify(g: &Graph, op: &dyn Op, x: &[Ref], y: &[Aval<Dim>]) -> Option<Rewrite> {
    if op.is_view() {
        return layout(g, op, x, &y[0]);
    }
    if let Some(dot) = of::<DotGeneral>(op) {
        return contraction(g, dot, x);
    }
    if of::<Copy>(op).is_some() || reduces_nothing(op) {
        return Some(Same(x[0]));
    }
    if op.is_elementwise() { elementwise(g, op, x, &y[0]) } else { None }
}

fn reduces_nothing(op: &dyn Op) -> bool {
    let axes = of::<ReduceSum>(op).map(|r| &r.axes);
    let axes = axes.or_else(|| of::<ReduceProd>(op).map(|r| &r.axes));
    let axes = axes.or_else(|| of::<ReduceMax>(op).map(|r| &r.axes));
    let axes = axes.or_else(|| of::<ReduceMin>(op).map(|r| &r.axes));
    axes.is_some_and(|a| a.is_empty())
}

fn elementwise(g: &Graph, op: &dyn Op, x: &[Ref], y: &Aval<Dim>) -> Option<Rewrite> {
    // A rewrite drops operands, and with one of another extent its guard.
    if x.iter().any(|&r| g.aval(r).shape != y.shape) {
        return None;
    }
    let same = |r: Ref| (g.aval(r) == y).then_some(Same(r));
    if of::<Neg>(op).is_some() {
        return same(made_by::<Neg>(g, x[0])?.1[0]);
    }
    if of::<Conj>(op).is_some() {
        return same(made_by::<Conj>(g, x[0])?.1[0]);
    }
    if of::<RealPart>(op).is_some() {
        return same(made_by::<Cast>(g, x[0])?.1[0]);
    }
    if of::<Cast>(op).is_some() {
        return same(x[0]);
    }
    if of::<Select>(op).is_some() {
        return if x[1] == x[2] { same(x[1]) } else { None };
    }
    let [a, b] = *x else { return None };
    if of::<Add>(op).is_some() {
        // x + (-0) is x; -0 + 0 is 0, so only integers have other zeros to drop.
        return if is(g, b, -0.0) {
            same(a)
        } else if is(g, a, -0.0) {
            same(b)
        } else {
            let difference = |a, (_, n): (&Neg, &Refs)| Call(Arc::new(Sub), smallvec![a, n[0]]);
            (made_by(g, b).map(|n| difference(a, n))).or_else(|| made_by(g, a).map(|n| difference(b, n)))
        };
    }
    if of::<Sub>(op).is_some() {
        return if is(g, b, 0.0) {
            same(a)
        } else {
            made_by::<Neg>(g, b).map(|(_, n)| Call(Arc::new(Add), smallvec![a, n[0]]))
        };
    }
    // Of complex numbers, a factor 1 + 0i makes NaN of infinities.
    if y.dtype.is_complex() {
        return None;
    }
    if of::<Mul>(op).is_some() {
        return if is(g, b, 1.0) {
            same(a)
        } else if is(g, a, 1.0) {
            same(b)
        } else {
            None
        };
    }
    if of::<Div>(op).is_some() && is(g, b, 1.0) {
        return same(a);
    }
    None
}

/// Whether every element of `r` is known to be `c`, with the sign of a floating-point zero.
fn is(g: &Graph, r: Ref, c: f64) -> bool {
    let mut at = r;
    // Nobody spreads a number in more steps; a limit keeps compilation linear.
    for _ in 0..8 {
        let node = &g.nodes[at.node as usize];
        match &node.source {
            Source::Constant(v, _) => {
                let v = &v[at.output as usize];
                return v.owner().len() == 1 && !v.is_empty() && holds(v.read(), c);
            }
            Source::Op(op) if of::<BroadcastInDim>(&**op).is_some() || of::<Reshape>(&**op).is_some() => {
                at = node.x[0]
            }
            _ => return false,
        }
    }
    false
}

fn holds(x: TensorRead<'_>, c: f64) -> bool {
    let bits = |v: f64| v == c && v.is_sign_negative() == c.is_sign_negative();
    let both = |v: C64| bits(v.re) && v.im == 0.0 && v.im.is_sign_negative() == c.is_sign_negative();
    let v = x.view();
    match x.dtype() {
        DType::F32 => v.item::<f32>().is_ok_and(|v| bits(v as f64)),
        DType::F64 => v.item::<f64>().is_ok_and(bits),
        DType::C32 => v.item::<C32>().is_ok_and(|v| both(C64::new(v.re as f64, v.im as f64))),
        DType::C64 => v.item::<C64>().is_ok_and(both),
        DType::I32 => v.item::<i32>().is_ok_and(|v| v as f64 == c),
        DType::I64 => v.item::<i64>().is_ok_and(|v| v as f64 == c),
        _ => false,
    }
}

fn is_identity(perm: &[usize]) -> bool {
    perm.iter().enumerate().all(|(i, &p)| i == p)
}

fn layout(g: &Graph, op: &dyn Op, x: &[Ref], y: &Aval<Dim>) -> Option<Rewrite> {
    let (x, a) = (x[0], g.aval(x[0]));
    if let Some(t) = of::<Transpose>(op) {
        if is_identity(&t.perm) {
            return Some(Same(x));
        }
        let (inner, refs) = made_by::<Transpose>(g, x)?;
        let perm: Axes = t.perm.iter().map(|&p| inner.perm[p]).collect();
        return Some(Call(Arc::new(Transpose { perm }), refs.clone()));
    }
    if of::<Reshape>(op).is_some() {
        if a == y {
            return Some(Same(x));
        }
        let (_, refs) = made_by::<Reshape>(g, x)?;
        let count = |a: &Aval<Dim>| a.shape.iter().fold(Dim::Lit(1), |n, d| n.mul(d));
        return (count(g.aval(refs[0])) == count(a)).then(|| Call(op.share(), refs.clone()));
    }
    if let Some(r) = of::<Reverse>(op) {
        if r.axes.is_empty() {
            return Some(Same(x));
        }
        let (inner, refs) = made_by::<Reverse>(g, x)?;
        let only = |a: &Axes, b: &Axes| a.iter().filter(|i| !b.contains(i)).copied().collect::<Axes>();
        let mut axes = only(&r.axes, &inner.axes);
        axes.extend(only(&inner.axes, &r.axes));
        axes.sort();
        return Some(Call(Arc::new(Reverse { axes }), refs.clone()));
    }
    if a != y {
        return None;
    }
    if of::<BroadcastInDim>(op).is_some() {
        let axes: Axes = (0..a.rank()).collect();
        return op.same(&BroadcastInDim::new(&a.shape, y.shape.clone(), &axes)).then_some(Same(x));
    }
    if of::<Slice>(op).is_some() {
        let (starts, limits) = op.dims().split_at(a.rank());
        let full = starts.iter().all(|s| *s == Dim::Lit(0)) && limits == &a.shape[..];
        return full.then_some(Same(x));
    }
    None
}

/// Transposes and conjugates of the operands become part of the contraction.
fn contraction(g: &Graph, dot: &DotGeneral, x: &[Ref]) -> Option<Rewrite> {
    for side in 0..2 {
        let mut better = dot.clone();
        let mut refs = Refs::from_slice(x);
        if let Some((_, inner)) = made_by::<Conj>(g, x[side]) {
            refs[side] = inner[0];
            let conj = if side == 0 { &mut better.conj_lhs } else { &mut better.conj_rhs };
            *conj = !*conj;
            return Some(Call(Arc::new(better), refs));
        }
        let Some((t, inner)) = made_by::<Transpose>(g, x[side]) else { continue };
        let rank = t.perm.len();
        let free = if side == 0 { dot.lhs_free(rank) } else { dot.rhs_free(rank) };
        // The free axes of the result stand in the order of the operand's own.
        if !free.windows(2).all(|w| t.perm[w[0]] < t.perm[w[1]]) {
            continue;
        }
        refs[side] = inner[0];
        let (contract, batch) = match side {
            0 => (&mut better.lhs_contract, &mut better.lhs_batch),
            _ => (&mut better.rhs_contract, &mut better.rhs_batch),
        };
        contract.iter_mut().chain(batch).for_each(|a| *a = t.perm[*a]);
        return Some(Call(Arc::new(better), refs));
    }
    None
}
