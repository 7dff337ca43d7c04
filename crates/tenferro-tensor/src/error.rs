//! The one error of the stack.
//!
//! The variant is the kind of failure, so a caller can branch on it; the payload says which operation,
//! what was wrong, what was got and what was expected. Payloads are boxed: a `Result` stays small and
//! the successful path moves no error around.

use std::{error::Error as StdError, fmt, sync::Arc};

use crate::DType;

/// `Result` with the stack's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// When a runtime failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorPhase {
    /// While recording a graph.
    GraphBuild,
    /// While compiling a graph to a program.
    Compile,
    /// While running a program.
    Execution,
}

/// What an operation got and what it expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The operation.
    pub op: &'static str,
    /// The thing that is wrong: "axis", "lhs contracting extent", ..
    pub what: String,
    /// What was got; empty, with `expected`, where `what` says it all.
    pub got: String,
    /// What is needed.
    pub expected: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { op, what, got, expected } = self;
        if got.is_empty() && expected.is_empty() {
            write!(f, "{op}: {what}")
        } else {
            write!(f, "{op}: {what}: got {got}, expected {expected}")
        }
    }
}

/// An operation that a backend has no kernel for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedCall {
    /// The operation.
    pub op: &'static str,
    /// The element type asked for.
    pub dtype: DType,
    /// The backend's name.
    pub backend: String,
}

impl fmt::Display for UnsupportedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unsupported {} for {} on {}", self.op, self.dtype, self.backend)
    }
}

/// A runtime used in a state that does not allow it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{op}: {what}")]
pub struct StateFailure {
    /// The operation.
    pub op: &'static str,
    /// When it failed, if in a runtime's life cycle.
    pub phase: Option<ErrorPhase>,
    /// What is wrong.
    pub what: String,
    /// The error below it.
    pub source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// A failure reported by a backend's own library.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{op}: {source}")]
pub struct BackendFailure {
    /// The operation.
    pub op: &'static str,
    /// The library's error.
    pub source: Arc<dyn StdError + Send + Sync>,
}

macro_rules! mismatches {
    ($($(#[$doc:meta])* $variant:ident $constructor:ident;)*) => {
        /// A failure of any crate of the stack: the variant is its kind, the payload says what and where.
        ///
        /// ```
        /// use tenferro_tensor::{Error, TypedTensor};
        /// let error = TypedTensor::<f64>::from_vec_col_major([2, 2], vec![1.0]).unwrap_err();
        /// assert!(matches!(error, Error::Shape(_)));
        /// let message = "from_vec_col_major: number of elements: got 1, expected 4 for shape [2, 2]";
        /// assert_eq!(error.to_string(), message);
        /// ```
        #[derive(Clone, Debug, thiserror::Error)]
        #[non_exhaustive]
        pub enum Error {
            $($(#[$doc])* #[error("{0}")] $variant(Box<Mismatch>),)*
            /// A backend has no kernel for this operation and dtype.
            #[error("{0}")]
            Unsupported(Box<UnsupportedCall>),
            /// A runtime, session or handle is not in a state to do this.
            #[error(transparent)]
            State(Box<StateFailure>),
            /// A backend's library failed.
            #[error(transparent)]
            Backend(Box<BackendFailure>),
        }

        impl Error {
            $(
                $(#[$doc])*
                #[cold]
                pub fn $constructor(
                    op: &'static str,
                    what: impl Into<String>,
                    got: impl fmt::Display,
                    expected: impl fmt::Display,
                ) -> Self {
                    Error::$variant(mismatch(op, what.into(), &got, &expected))
                }
            )*

            /// The same error of the operation `op`, which another one was part of.
            #[cold]
            pub fn of(mut self, op: &'static str) -> Self {
                match &mut self {
                    $(Error::$variant(m) => m.op = op,)*
                    Error::Unsupported(u) => u.op = op,
                    Error::State(s) => s.op = op,
                    Error::Backend(b) => b.op = op,
                }
                self
            }

            /// The operation that failed.
            pub fn op(&self) -> &str {
                match self {
                    $(Error::$variant(m) => m.op,)*
                    Error::Unsupported(u) => u.op,
                    Error::State(s) => s.op,
                    Error::Backend(b) => b.op,
                }
            }
        }
    };
}

mismatches! {
    /// A shape or extent does not fit.
    Shape shape;
    /// A dtype does not fit.
    DType dtype;
    /// An axis is out of range or repeated.
    Axis axis;
    /// A rank does not fit.
    Rank rank;
    /// A parameter is invalid.
    Argument argument;
    /// A label or notation is invalid.
    Label label;
    /// Data is in a memory that cannot be used here.
    Placement placement;
    /// A memory layout does not allow this.
    Layout layout;
    /// A numerical failure: singular, not finite, not converged.
    Numeric numeric;
    /// One element was needed.
    NonScalar non_scalar;
    /// A value is not an input of this graph.
    UnknownInput unknown_input;
    /// A condition recorded while tracing does not hold for these inputs.
    Guard guard;
    /// A size or index overflows.
    Overflow overflow;
    /// Memory could not be had, or its limit would be passed.
    Memory memory;
}

#[cold]
fn mismatch(
    op: &'static str,
    what: String,
    got: &dyn fmt::Display,
    expected: &dyn fmt::Display,
) -> Box<Mismatch> {
    Box::new(Mismatch { op, what, got: got.to_string(), expected: expected.to_string() })
}

impl Error {
    /// [`Error::Argument`] said in words: `"{op}: {arg}: {what}"`.
    #[cold]
    pub fn invalid_argument(op: &'static str, arg: &'static str, what: impl Into<String>) -> Self {
        Error::argument(op, format!("{arg}: {}", what.into()), "", "")
    }

    /// [`Error::State`] without a source.
    #[cold]
    pub fn runtime_state(op: &'static str, what: impl Into<String>) -> Self {
        Error::State(Box::new(StateFailure { op, phase: None, what: what.into(), source: None }))
    }

    /// [`Error::State`] of a phase, with the error that led to it.
    #[cold]
    pub fn runtime_state_source(
        op: &'static str,
        phase: ErrorPhase,
        source: impl StdError + Send + Sync + 'static,
    ) -> Self {
        let what = source.to_string();
        Error::State(Box::new(StateFailure { op, phase: Some(phase), what, source: Some(Arc::new(source)) }))
    }

    /// [`Error::Backend`] around a library's error.
    #[cold]
    pub fn backend_source(op: &'static str, source: impl StdError + Send + Sync + 'static) -> Self {
        Error::Backend(Box::new(BackendFailure { op, source: Arc::new(source) }))
    }

    /// [`Error::Unsupported`].
    #[cold]
    pub fn unsupported(op: &'static str, dtype: DType, backend: &str) -> Self {
        Error::Unsupported(Box::new(UnsupportedCall { op, dtype, backend: backend.to_owned() }))
    }
}

const _: () = assert!(size_of::<Error>() <= 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_operation_got_and_expected() {
        let error = Error::axis("sum", "axis", 3, "an axis below 2");
        assert_eq!(error.to_string(), "sum: axis: got 3, expected an axis below 2");
        assert_eq!(error.op(), "sum");
        assert_eq!(
            Error::invalid_argument("solve", "tolerance", "must be positive").to_string(),
            "solve: tolerance: must be positive"
        );
        assert_eq!(
            Error::unsupported("svd", DType::I32, "cpu").to_string(),
            "unsupported svd for i32 on cpu"
        );
    }

    #[test]
    fn sources_survive_a_clone() {
        let io = std::io::Error::other("disk");
        let error = Error::runtime_state_source("run", ErrorPhase::Execution, io).clone();
        assert_eq!(StdError::source(&error).expect("has a source").to_string(), "disk");
        let backend = Error::backend_source("gemm", std::fmt::Error);
        assert!(StdError::source(&backend).is_some());
        assert!(backend.to_string().starts_with("gemm: "));
    }
}
