//! One row, four tiers: the table that generates the methods of every kind of tensor.

/// Methods on typed, dynamic, eager and traced tensors from one table.
///
/// A row is `/// doc` and `fn name(x, y: K; p: P) -> [K, ..] = body;`. `x` is the receiver, `y` further tensors, `p`
/// parameters, and the body computes one [`Var`](tenferro_core_ops::Var) or an array of them from them. The kinds
/// `K` say what a typed call takes and gives: `T` the receiver's element type, `R` its real type, `C` the complex
/// type that holds it, `B` bool, `I` i64; the other tiers ignore them. Typed and dynamic calls take the backend as their last argument.
///
/// `inherent` puts the methods on eager and traced tensors themselves, and those of the others in two traits;
/// `traits` makes three traits, for operations of another crate.
///
/// ```
/// use tenferro_cpu::CpuBackend;
/// use tenferro_runtime::{EagerRuntime, EagerTensor, Tensor, prelude::*};
///
/// tenferro_runtime::surfaces! {
///     traits SquareRecorded, SquareTensor, SquareTyped;
///     /// The square of every element.
///     fn square(x) -> [T] = x * x;
/// }
///
/// let mut cpu = CpuBackend::new();
/// let x = Tensor::from_vec_col_major([2], vec![2.0, 3.0])?;
/// assert_eq!(x.square(&mut cpu)?.as_slice::<f64>()?, [4.0, 9.0]);
/// let runtime = EagerRuntime::new(&cpu);
/// assert_eq!(runtime.tensor(x)?.square()?.to_tensor()?.as_slice::<f64>()?, [4.0, 9.0]);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[macro_export]
macro_rules! surfaces {
    (inherent $Direct:ident, $Typed:ident; $($rows:tt)*) => {
        impl $crate::EagerTensor { $crate::surfaces!(@recorded pub, $($rows)*); }
        impl $crate::TracedTensor { $crate::surfaces!(@recorded pub, $($rows)*); }
        $crate::surfaces!(@direct $Direct, $Typed; $($rows)*);
    };
    (traits $Recorded:ident, $Direct:ident, $Typed:ident; $($rows:tt)*) => {
        /// Methods of eager and traced tensors.
        pub trait $Recorded: $crate::tier::Recorded { $crate::surfaces!(@recorded , $($rows)*); }
        impl<X: $crate::tier::Recorded> $Recorded for X {}
        $crate::surfaces!(@direct $Direct, $Typed; $($rows)*);
    };

    (@recorded $vis:vis, $(
        $(#[$doc:meta])*
        fn $name:ident($x:ident $(, $y:ident: $K:ident)* $(; $($p:ident: $P:ty),+)?) -> [$($R:ident),+] = $body:expr;
    )*) => { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// Operands of unfitting dtypes or shapes, and what the computation itself reports.
        #[allow(unused_parens, clippy::needless_question_mark)]
        #[inline]
        $vis fn $name(&self $(, $y: &Self)* $($(, $p: $P)+)?) -> $crate::tier::Result<($($crate::surfaces!(@self $R)),+)> {
            let others: &[&Self] = &[$($y),*];
            $crate::surfaces!(@recorded_results $name [$($R),+] self, others, {
                let $x = $crate::tier::Recorded::var(self);
                $(let $y = $crate::tier::Recorded::var($y);)*
                $body
            })
        }
    )* };

    (@direct $Direct:ident, $Typed:ident; $(
        $(#[$doc:meta])*
        fn $name:ident($x:ident $(, $y:ident: $K:ident)* $(; $($p:ident: $P:ty),+)?) -> [$($R:ident),+] = $body:expr;
    )*) => {
        /// Methods of dynamic tensors, which run on the backend they are given.
        #[allow(unused_parens, clippy::needless_question_mark)]
        pub trait $Direct { $(
            $(#[$doc])*
            ///
            /// # Errors
            /// Operands of unfitting dtypes, shapes or placements, and what the computation itself reports.
            fn $name(
                &self $(, $y: &$crate::surfaces!(@tensor $K))* $($(, $p: $P)+)?,
                backend: &mut (impl $crate::tier::Target + ?Sized),
            ) -> $crate::tier::Result<($($crate::surfaces!(@tensor $R)),+)>;
        )* }
        #[allow(unused_parens, clippy::needless_question_mark)]
        impl $Direct for $crate::Tensor { $(
            fn $name(
                &self $(, $y: &$crate::surfaces!(@tensor $K))* $($(, $p: $P)+)?,
                backend: &mut (impl $crate::tier::Target + ?Sized),
            ) -> $crate::tier::Result<($($crate::surfaces!(@tensor $R)),+)> {
                let $x: &$crate::tier::Var = &$crate::tier::Direct::lift(self);
                $(let $y: &$crate::tier::Var = &$crate::tier::Direct::lift($y);)*
                $crate::surfaces!(@tensor_results [$($R),+] backend, $body)
            }
        )* }

        /// Methods of typed tensors, which run on the backend they are given.
        #[allow(unused_parens, clippy::needless_question_mark)]
        pub trait $Typed<T: $crate::tier::Scalar> { $(
            $(#[$doc])*
            ///
            /// # Errors
            /// Operands of unfitting shapes or placements, an element type the operation is not defined on, and
            /// what the computation itself reports.
            fn $name(
                &self $(, $y: &$crate::surfaces!(@typed $K))* $($(, $p: $P)+)?,
                backend: &mut (impl $crate::tier::Target + ?Sized),
            ) -> $crate::tier::Result<($($crate::surfaces!(@typed $R)),+)>;
        )* }
        #[allow(unused_parens, clippy::needless_question_mark)]
        impl<T: $crate::tier::Scalar> $Typed<T> for $crate::TypedTensor<T> { $(
            fn $name(
                &self $(, $y: &$crate::surfaces!(@typed $K))* $($(, $p: $P)+)?,
                backend: &mut (impl $crate::tier::Target + ?Sized),
            ) -> $crate::tier::Result<($($crate::surfaces!(@typed $R)),+)> {
                let $x: &$crate::tier::Var = &$crate::tier::Direct::lift(self);
                $(let $y: &$crate::tier::Var = &$crate::tier::Direct::lift($y);)*
                $crate::surfaces!(@typed_results $name [$($R),+] backend, $body)
            }
        )* }
    };

    // One result is not put into a list to be taken out again.
    (@recorded_results $name:ident [$R:ident] $self:ident, $others:ident, $body:expr) => {
        $crate::tier::Recorded::apply1($self, stringify!($name), $others, || $crate::tier::IntoVars::into_var($body))
    };
    (@recorded_results $name:ident [$($R:ident),+] $self:ident, $others:ident, $body:expr) => {{
        let results = $crate::tier::Recorded::apply($self, stringify!($name), $others, || $crate::tier::IntoVars::into_vars($body))?;
        let mut results = results.into_iter();
        Ok(($($crate::surfaces!(@next results $R)),+))
    }};
    (@tensor_results [$R:ident] $backend:ident, $body:expr) => {
        $crate::tier::run_direct1($backend, || $crate::tier::IntoVars::into_var($body))
    };
    (@tensor_results [$($R:ident),+] $backend:ident, $body:expr) => {{
        let mut results =
            $crate::tier::run_direct($backend, || $crate::tier::IntoVars::into_vars($body))?.into_iter();
        Ok(($($crate::surfaces!(@next results $R)),+))
    }};
    (@typed_results $name:ident [$R:ident] $backend:ident, $body:expr) => {
        $crate::tier::Lower::lower(
            stringify!($name),
            $crate::tier::run_direct1($backend, || $crate::tier::IntoVars::into_var($body))?,
        )
    };
    (@typed_results $name:ident [$($R:ident),+] $backend:ident, $body:expr) => {{
        let mut results =
            $crate::tier::run_direct($backend, || $crate::tier::IntoVars::into_vars($body))?.into_iter();
        Ok(($($crate::tier::next_typed::<$crate::surfaces!(@typed $R)>(stringify!($name), &mut results)?),+))
    }};

    (@self $R:ident) => { Self };
    (@tensor $R:ident) => { $crate::Tensor };
    (@typed T) => { $crate::TypedTensor<T> };
    (@typed R) => { $crate::TypedTensor<<T as $crate::tier::Scalar>::Real> };
    (@typed C) => { $crate::TypedTensor<<T as $crate::tier::Scalar>::Complex> };
    (@typed B) => { $crate::TypedTensor<bool> };
    (@typed I) => { $crate::TypedTensor<i64> };
    (@next $results:ident $R:ident) => { $crate::tier::next(&mut $results)? };
}
