//! What an operation's [`simplify`](crate::Primitive::simplify) sees of the program around a call, and what it
//! may make of the call.
//!
//! A rule is about values and the calls that made them, not about how a program keeps them: a program shows
//! itself through [`Calls`], a rule reads it through [`Term`]s.

use crate::{
    aval::Aval,
    dim::Dim,
    op::{Op, Primitive},
};
use smallvec::SmallVec;
use std::sync::Arc;
use tenferro_tensor::{C32, C64, DType, TensorRead, Value};

/// A value of a program: an output of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Ref {
    /// The number of the node.
    pub node: u32,
    /// Which of its outputs.
    pub output: u32,
}

/// The calls of a program.
pub trait Calls {
    /// Dtype and extents of a value.
    fn aval(&self, r: Ref) -> &Aval<Dim>;
    /// The operation that a value is an output of, and its operands.
    fn call(&self, r: Ref) -> Option<(&dyn Op, &[Ref])>;
    /// The value, if it is known before the program runs.
    fn constant(&self, r: Ref) -> Option<&Value>;
}

/// A value and what is known of it. Equal terms are equal values.
#[derive(Clone, Copy)]
pub struct Term<'a> {
    calls: &'a dyn Calls,
    at: Ref,
}

/// Operands of a call.
pub type Terms<'a> = SmallVec<[Term<'a>; 3]>;

impl PartialEq for Term<'_> {
    fn eq(&self, o: &Self) -> bool {
        self.at == o.at
    }
}

impl<'a> Term<'a> {
    /// The value `at` of a program.
    pub fn new(calls: &'a dyn Calls, at: Ref) -> Self {
        Term { calls, at }
    }

    /// Which value it is.
    pub fn at(self) -> Ref {
        self.at
    }

    /// Dtype and extents.
    pub fn aval(self) -> &'a Aval<Dim> {
        self.calls.aval(self.at)
    }

    /// The operation that made it and that one's operands, if it was a `P`.
    pub fn made_by<P: Primitive>(self) -> Option<(&'a P, Terms<'a>)> {
        let (op, x) = self.calls.call(self.at)?;
        let op = op.as_any().downcast_ref()?;
        Some((op, x.iter().map(|&at| Term { at, ..self }).collect()))
    }

    /// Whether every element is known to be `c`, with the sign of a floating-point zero: whether this is a view
    /// of a constant that has but one element, and no view on the way is one that a run could refuse: the rewrite
    /// that drops it must not drop a check of extents.
    pub fn is(self, c: f64) -> bool {
        let mut at = self.at;
        // Nobody spreads a number in more steps; a limit keeps compilation linear.
        for _ in 0..8 {
            if let Some(v) = self.calls.constant(at) {
                return v.owner().len() == 1 && !v.is_empty() && holds(v.read(), c);
            }
            match self.calls.call(at) {
                Some((op, x))
                    if op.is_view() && op.always_fits(self.calls.aval(x[0]), self.calls.aval(at)) =>
                {
                    at = x[0]
                }
                _ => return false,
            }
        }
        false
    }
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

/// What a call becomes.
pub enum Rewrite<'a> {
    /// A value that is there already. Where its dtype or extents are not provably those of the result, the call
    /// stays, so that a rule can't lose a check of extents.
    Same(Term<'a>),
    /// Another call with the same result.
    Call(Arc<dyn Op>, Terms<'a>),
}

impl<'a> Rewrite<'a> {
    /// The call of `op` on `x`.
    pub fn call(op: impl Primitive, x: impl IntoIterator<Item = Term<'a>>) -> Self {
        Rewrite::Call(Arc::new(op), x.into_iter().collect())
    }
}
