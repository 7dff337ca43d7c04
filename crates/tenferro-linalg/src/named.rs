//! Results under the name of the operation that was called, whatever other operations it is made of.

use tenferro_core_ops::{Op, Var, apply_n};
use tenferro_tensor::{Error, Result};

/// The results of an operation.
pub(crate) trait Named: Sized {
    /// The error in place of each of them.
    fn failed(e: Error) -> Self;
    /// The same; an error is one of the operation `op`.
    fn of(self, op: &'static str) -> Self;
}

impl Named for Var {
    fn failed(e: Error) -> Self {
        Var::Failed(e)
    }
    fn of(self, op: &'static str) -> Self {
        match self {
            Var::Failed(e) => Var::Failed(e.of(op)),
            v => v,
        }
    }
}

macro_rules! tuples {
    ($(($($v:ident),*);)*) => {$(
        impl Named for ($(tuples!(@ $v Var)),*) {
            fn failed(e: Error) -> Self {
                ($(tuples!(@ $v Var::Failed(e.clone()))),*)
            }
            fn of(self, op: &'static str) -> Self {
                let ($($v),*) = self;
                ($($v.of(op)),*)
            }
        }
    )*};
    (@ $v:ident $($t:tt)*) => { $($t)* };
}

tuples! {
    (a, b);
    (a, b, c);
    (a, b, c, d);
}

/// What `f` computes from the operands `x`, as the results of operation `op`: their errors name it, but for
/// those of operands, which have a name already.
pub(crate) fn called<'a, R: Named>(
    op: &'static str,
    x: impl IntoIterator<Item = &'a Var>,
    f: impl FnOnce() -> Result<R>,
) -> R {
    match x.into_iter().find_map(|v| v.ok().err()) {
        Some(e) => R::failed(e),
        None => f().map_or_else(|e| R::failed(e.of(op)), |y| y.of(op)),
    }
}

/// The first outputs of an operation.
pub(crate) fn outputs<const N: usize>(op: &dyn Op, x: &[&Var]) -> [Var; N] {
    let mut y = apply_n(op, x, N).into_iter();
    std::array::from_fn(|_| y.next().expect("an operation has the outputs that are asked for"))
}
