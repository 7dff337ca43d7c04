//! How a system of equations is posed: which side the unknown is on, and whether the matrix is transposed.
//!
//! Every form is a system with A or its adjoint from the left, on views: what is transposed is never the matrix.

use crate::matrix::floating_of;
use tenferro_core_ops::{Dim, Extent, Var, align_batch};
use tenferro_tensor::{Error, Result};

/// The form of a system with a matrix A, unknown X and right-hand side B: `op(A) X = B`, or `X op(A) = B` from
/// the right, where `op(A)` is A, its transpose or its adjoint.
///
/// ```
/// use tenferro_cpu::CpuBackend;
/// use tenferro_linalg::prelude::*;
/// use tenferro_runtime::{Tensor, prelude::*};
///
/// let mut cpu = CpuBackend::new();
/// let a = Tensor::from_vec_col_major([2, 2], vec![2.0, 0.0, 1.0, 4.0])?;
/// let b = Tensor::from_vec_col_major([2], vec![4.0, 4.0])?;
/// // A = [2 1; 0 4]
/// assert_eq!(a.solve(&b, &mut cpu)?.as_slice::<f64>()?, [1.5, 1.0]);
/// assert_eq!(a.solve_with(&b, System::left().transposed(), &mut cpu)?.as_slice::<f64>()?, [2.0, 0.5]);
/// assert_eq!(a.solve_with(&b, System::right(), &mut cpu)?.as_slice::<f64>()?, [2.0, 0.5]);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct System {
    right: bool,
    form: Form,
}

/// What is done to the matrix.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
enum Form {
    #[default]
    Plain,
    Transposed,
    Adjoint,
}

impl System {
    /// `A X = B`.
    pub const fn left() -> System {
        System { right: false, form: Form::Plain }
    }

    /// `X A = B`.
    pub const fn right() -> System {
        System { right: true, form: Form::Plain }
    }

    /// With the transpose of A in its place.
    pub const fn transposed(self) -> System {
        System { form: Form::Transposed, ..self }
    }

    /// With the adjoint of A in its place.
    pub const fn adjoint(self) -> System {
        System { form: Form::Adjoint, ..self }
    }

    /// With the unknown on the left of A.
    pub(crate) const fn from_right(self) -> System {
        System { right: true, ..self }
    }

    /// The solution, by `solve(adjoint, b)`, which solves `A X = B` or `A^H X = B`.
    pub(crate) fn solve(self, b: &Var, solve: impl Fn(bool, &Var) -> Var) -> Var {
        match (self.right, self.form) {
            (false, Form::Plain) => solve(false, b),
            (false, Form::Adjoint) => solve(true, b),
            (false, Form::Transposed) => solve(true, &b.conj()).conj(),
            (true, Form::Plain) => solve(true, &b.adjoint()).adjoint(),
            (true, Form::Adjoint) => solve(false, &b.adjoint()).adjoint(),
            (true, Form::Transposed) => solve(false, &b.matrix_transpose()).matrix_transpose(),
        }
    }

    pub(crate) fn is_right(self) -> bool {
        self.right
    }
}

/// Checks that B has the rows of a system with A, where what follows would take fewer of them.
pub(crate) fn expect_rows(op: &'static str, a: &Var, b: &Var) -> Result<()> {
    let (a, b) = (a.ok()?, b.ok()?);
    Dim::equal(op, "rows of the right-hand side", &b.extent(0), &a.extent(0))
}

/// `f` of the matrices and the right-hand sides in one floating-point dtype and with one batch. If `b` has one
/// axis, it is a column, or a row if `right`, and so is the result.
pub(crate) fn paired(
    op: &'static str,
    a: &Var,
    b: &Var,
    right: bool,
    f: impl FnOnce(&Var, &Var) -> Var,
) -> Var {
    Var::from(try_paired(op, a, b, right, f))
}

fn try_paired(
    op: &'static str,
    a: &Var,
    b: &Var,
    right: bool,
    f: impl FnOnce(&Var, &Var) -> Var,
) -> Result<Var> {
    let vector = b.ok()?.rank() == 1;
    let axis = usize::from(!right);
    let b = if vector { b.expand_dims(&[axis]) } else { b.clone() };
    if a.ok()?.rank() < 2 || b.rank() < 2 {
        let rank = a.rank().min(b.rank());
        return Err(Error::rank(op, "rank of an operand", rank, "at least 2 (1 for a vector b)"));
    }
    let dtype = floating_of(a, &b);
    let (a, b) = align_batch(op, &a.convert(dtype), &b.convert(dtype))?;
    let x = f(&a, &b);
    Ok(if vector && x.rank() == 2 { x.squeeze(&[axis]) } else { x })
}
