//! How a system of equations is posed: which side the unknown is on, and whether the matrix is transposed;
//! and what happens to the operands before: promotion to one dtype, and one batch.
//!
//! Every form is a system with A or its adjoint from the left, on views: what is transposed is never the
//! matrix.

use crate::named::called;
use smallvec::SmallVec;
use tenferro_core_ops::{Dim, Extent, Extents, Var, ops::Axes};
use tenferro_tensor::{DType, Error, Result};

/// The form of a system with a matrix A, unknown X and right-hand side B: `op(A) X = B`, or `X op(A) = B`
/// from the right, where `op(A)` is A, its transpose or its adjoint.
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
    pub(crate) const fn with_right(self) -> System {
        System { right: true, ..self }
    }

    /// What is linear in B, such as the solution, by `f(adjoint, b)`, which is that for A or `A^H` from the
    /// left.
    pub(crate) fn on_left(self, b: &Var, f: impl Fn(bool, &Var) -> Var) -> Var {
        match (self.right, self.form) {
            (false, Form::Plain) => f(false, b),
            (false, Form::Adjoint) => f(true, b),
            (false, Form::Transposed) => f(true, &b.conj()).conj(),
            (true, Form::Plain) => f(true, &b.adjoint()).adjoint(),
            (true, Form::Adjoint) => f(false, &b.adjoint()).adjoint(),
            (true, Form::Transposed) => f(false, &b.matrix_transpose()).matrix_transpose(),
        }
    }

    pub(crate) fn is_right(self) -> bool {
        self.right
    }
}

/// What an operand with a batch is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A stack of matrices.
    Matrix,
    /// A stack of vectors.
    Vector,
    /// A stack of vectors of positions, whose dtype is that of an index.
    Positions,
}

impl Kind {
    /// The number of axes of one array of the stack.
    fn axes(self) -> usize {
        if self == Kind::Matrix { 2 } else { 1 }
    }
}

/// The operands in one floating-point dtype, but for positions, and with one batch: the axes after those of
/// an array are aligned at the first of them, and a missing one, or a literal 1, is repeated.
pub(crate) fn aligned(op: &'static str, x: &[(&Var, Kind)]) -> Result<SmallVec<[Var; 5]>> {
    let (one, mut batch, mut dtype) = (Dim::Lit(1), Extents::new(), None);
    for (v, kind) in x {
        let shape = v.ok()?.shape();
        if shape.len() < kind.axes() {
            let expected = if *kind == Kind::Matrix { "at least 2 (1 for a vector b)" } else { "at least 1" };
            return Err(Error::rank(op, "rank of an operand", shape.len(), expected));
        }
        for (i, n) in shape[kind.axes()..].iter().enumerate() {
            match batch.get_mut(i) {
                None => batch.push(n.clone()),
                Some(m) if *m == one => *m = n.clone(),
                Some(m) if *n != one => Dim::equal(op, "batch axes", n, m)?,
                Some(_) => {}
            }
        }
        if *kind != Kind::Positions {
            dtype = Some(dtype.map_or(v.dtype(), |d| DType::promote(d, v.dtype())));
        }
    }
    let dtype = dtype.filter(|d| d.is_differentiable()).unwrap_or(DType::F64);
    let repeated = |&(v, kind): &(&Var, Kind)| {
        let v = v.convert(if kind == Kind::Positions { DType::I64 } else { dtype });
        let shape = v.ok()?.shape();
        let (array, own) = shape.split_at(kind.axes());
        if *own == batch[..] {
            return Ok(v);
        }
        let target: Extents<Dim> = array.iter().chain(&batch).cloned().collect();
        v.broadcast_in_dim(&target, &(0..shape.len()).collect::<Axes>()).ok().cloned()
    };
    x.iter().map(repeated).collect()
}

/// `f` of the operands `x` and the right-hand sides B of operation `op`, [`aligned`]. If `b` has one axis, it
/// is a vector, one for all of a batch: a column, or a row if `right`; and so is the result.
pub(crate) fn posed(
    op: &'static str,
    x: &[(&Var, Kind)],
    b: &Var,
    right: bool,
    f: impl FnOnce(&[Var], &Var) -> Var,
) -> Var {
    called(op, x.iter().map(|x| x.0).chain([b]), || {
        let (vector, axis) = (b.rank() == 1, usize::from(!right));
        let b = if vector { b.expand_dims(&[axis]) } else { b.clone() };
        let all: SmallVec<[_; 5]> = x.iter().copied().chain([(&b, Kind::Matrix)]).collect();
        let all = aligned(op, &all)?;
        let (b, x) = all.split_last().expect("B is one of them");
        let y = f(x, b);
        y.ok()?;
        Ok(if vector { y.squeeze(&[axis]) } else { y })
    })
}
