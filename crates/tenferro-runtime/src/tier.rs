//! What the four tiers of tensors have in common: each lifts itself to a [`Var`], and a result is lowered back.
//!
//! Eager and traced tensors carry what they need to run or record ([`Recorded`]); typed and dynamic tensors are
//! given a backend with each call ([`Direct`]). Every method of every tier is a row of
//! [`surfaces!`](crate::surfaces) over these two traits.

use smallvec::SmallVec;
use std::{marker::PhantomData, mem::ManuallyDrop};
use tenferro_core_ops::{Now, Outs, into_tensor, with_backend};
use tenferro_tensor::{Error, Rank, Tensor, TypedTensor, Value};

pub use tenferro_core_ops::{Target, Var};
pub use tenferro_tensor::{Result, Scalar};

/// An eager or traced tensor.
pub trait Recorded: Clone {
    /// This tensor as the value rules compute with.
    fn var(&self) -> &Var;

    /// Applies `f`, the body of method `op`, where this tensor and `others` live and wraps the results.
    ///
    /// # Errors
    /// What `f` reports in its results, and tensors that do not live together.
    fn apply(
        &self,
        op: &'static str,
        others: &[&Self],
        f: impl FnOnce() -> Outs<Var>,
    ) -> Result<SmallVec<[Self; 1]>>;

    /// As [`apply`](Self::apply), for one result.
    ///
    /// # Errors
    /// As there.
    fn apply1(&self, op: &'static str, others: &[&Self], f: impl FnOnce() -> Var) -> Result<Self>;
}

/// A typed or dynamic tensor, which is given a backend with each call.
pub trait Direct {
    /// This tensor as the value rules compute with. Nothing is copied.
    fn lift(&self) -> Lifted<'_>;
}

/// A borrowed tensor as a [`Var`]: of the handle's bits, without counting another owner, which for a small
/// tensor would cost as much as the operation.
pub struct Lifted<'a>(ManuallyDrop<Var>, PhantomData<&'a Tensor>);

impl std::ops::Deref for Lifted<'_> {
    type Target = Var;
    #[inline]
    fn deref(&self) -> &Var {
        &self.0
    }
}

impl Direct for Tensor {
    #[inline]
    fn lift(&self) -> Lifted<'_> {
        // SAFETY: the copy is never dropped and, lent as `&Var` only, is used as a tensor at most as long as
        // `self` is borrowed; a clone of it counts as an owner of its own.
        let alias = unsafe { std::ptr::read(self) };
        Lifted(ManuallyDrop::new(Var::Now(Now::new(Value::new(alias)))), PhantomData)
    }
}

impl<T: Scalar, R: Rank> Direct for TypedTensor<T, R> {
    #[inline]
    fn lift(&self) -> Lifted<'_> {
        self.as_tensor().lift()
    }
}

/// The next result of a call. An error in place of several results is the first and only one, and was
/// reported before this is called.
///
/// # Errors
/// If there is none.
pub fn next<X>(results: &mut impl Iterator<Item = X>) -> Result<X> {
    results.next().ok_or_else(too_few)
}

#[cold]
fn too_few() -> Error {
    Error::runtime_state("surfaces", "an operation gave fewer results than its row names")
}

/// As [`next`], as a typed tensor.
///
/// # Errors
/// Also if it has another dtype.
pub fn next_typed<X: Lower>(op: &'static str, results: &mut impl Iterator<Item = Tensor>) -> Result<X> {
    X::lower(op, next(results)?)
}

/// A typed result of a direct call.
pub trait Lower: Sized {
    /// The tensor itself.
    ///
    /// # Errors
    /// If it has another dtype.
    fn lower(op: &'static str, t: Tensor) -> Result<Self>;
}

impl<T: Scalar> Lower for TypedTensor<T> {
    fn lower(op: &'static str, t: Tensor) -> Result<Self> {
        t.into_typed().map_err(|t| Error::dtype(op, "result of a typed call", t.dtype(), T::DTYPE))
    }
}

/// Applies `f` on a backend and takes the results out.
///
/// # Errors
/// What `f` reports in its results.
pub fn run_direct(
    target: &mut (impl Target + ?Sized),
    f: impl FnOnce() -> Outs<Var>,
) -> Result<SmallVec<[Tensor; 1]>> {
    let backend = target.backend();
    with_backend(backend, f).into_iter().map(|v| into_tensor(backend, v.into_value()?)).collect()
}

/// As [`run_direct`], for one result.
///
/// # Errors
/// As there.
#[inline]
pub fn run_direct1(target: &mut (impl Target + ?Sized), f: impl FnOnce() -> Var) -> Result<Tensor> {
    let backend = target.backend();
    into_tensor(backend, with_backend(backend, f).into_value()?)
}

/// What the body of a row gives: one or several results.
pub trait IntoVars: Sized {
    /// The results in order.
    fn into_vars(self) -> Outs<Var>;

    /// The first result, which is the only one.
    fn into_var(self) -> Var {
        let mut results = self.into_vars();
        if results.is_empty() { Var::Failed(too_few()) } else { results.swap_remove(0) }
    }
}

impl IntoVars for Var {
    fn into_vars(self) -> Outs<Var> {
        Outs::from_buf([self])
    }
    #[inline]
    fn into_var(self) -> Var {
        self
    }
}

impl<const N: usize> IntoVars for [Var; N] {
    fn into_vars(self) -> Outs<Var> {
        self.into_iter().collect()
    }
}

impl IntoVars for Outs<Var> {
    fn into_vars(self) -> Outs<Var> {
        self
    }
}

/// An error stands for the one result there would be, and for each of several.
impl<V: IntoVars> IntoVars for Result<V> {
    fn into_vars(self) -> Outs<Var> {
        match self {
            Ok(v) => v.into_vars(),
            Err(e) => smallvec::smallvec![Var::Failed(e)],
        }
    }
    #[inline]
    fn into_var(self) -> Var {
        match self {
            Ok(v) => v.into_var(),
            Err(e) => Var::Failed(e),
        }
    }
}
