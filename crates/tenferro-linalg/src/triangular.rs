//! Systems with a triangular matrix.

use crate::{
    batch::{
        Element, Matrices, Results, copy_matrix, count, expect_batch, expect_matrix, expect_square, for_each,
        unlisted, work,
    },
    system::{Kind, System, posed},
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Arg, Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{DenseError, Field, Strided, Triangle};
use tenferro_tensor::{Result, Tensor, dispatch_float};

/// `X = T^-1 B`, or `T^-H B` if `adjoint`, where T is a triangle of the square first input; the other
/// triangle is not read. Inputs: T, B.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TriangularSolve {
    /// Which triangle.
    pub lower: bool,
    /// Whether its diagonal is taken as 1, and not read.
    pub unit_diagonal: bool,
    /// Whether the system is that of the adjoint.
    pub adjoint: bool,
}

impl TriangularSolve {
    fn triangle(&self, t: &Var) -> Var {
        match (self.lower, self.unit_diagonal as isize) {
            (true, unit) => t.tril(-unit),
            (false, unit) => t.triu(unit),
        }
    }
}

impl Primitive for TriangularSolve {
    const NAME: &'static str = "triangular_solve";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 2, FLOATS)?;
        expect_square(Self::NAME, x, 0)?;
        let [rows, _] = expect_matrix(Self::NAME, x, 1)?;
        D::equal(Self::NAME, "rows of the right-hand side", rows, &x[0].shape[0])?;
        expect_batch(Self::NAME, x, 0, 1)?;
        Ok(smallvec![x[1].clone()])
    }
    // T X = B gives T dX = dB - dT X.
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let right = |dt: &Var| {
            let dt = self.triangle(dt);
            -&(if self.adjoint { dt.adjoint() } else { dt }).matmul(&y[0])
        };
        let db = match (t[0].as_ref().map(right), &t[1]) {
            (Some(a), Some(b)) => Some(b + &a),
            (a, b) => a.or_else(|| b.clone()),
        };
        smallvec![db.map(|db| apply1(self, &[&x[0], &db]))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let adjoint = TriangularSolve { adjoint: !self.adjoint, ..self.clone() };
        smallvec![None, ct[0].as_ref().map(|ct| apply1(&adjoint, &[&x[0].known(), ct]))]
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |op, cpu, x, y, _| {
            let dtype = y[0].dtype;
            dispatch_float!(dtype, T => run::<T>(op, cpu, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
    fn saves(&self) -> Saves {
        Saves::ALL
    }
}

fn run<T: Element>(
    op: &TriangularSolve,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
) -> Result<Outs<Tensor>> {
    let (t, b) = (x[0].read(), x[1].read());
    let (n, nrhs) = (b.shape()[0], b.shape()[1]);
    let (triangles, right) = (Matrices::<T>::new(&t)?, Matrices::<T>::new(&b)?);
    let solution = Results::<T>::new(&y[0].shape, 2)?;
    for_each(cpu, count(t.shape(), 2, y), work([1, n, n, nrhs]), |i, par| {
        let mut t = triangles.at(i);
        // SAFETY: matrices i of the operands are readable and fit each other; the solution is new memory.
        unsafe {
            if !op.unit_diagonal {
                let zero = |j: &usize| *t.ptr.offset(*j as isize * (t.row + t.col)) == <T as Field>::ZERO;
                if let Some(index) = (0..n).find(zero) {
                    return Err(DenseError::Singular { index });
                }
            }
            copy_matrix((n, nrhs), right.at(i), solution.at(i));
            // The adjoint of a lower triangle is an upper one.
            if op.adjoint {
                (t.row, t.col) = (t.col, t.row);
            }
            let triangle = if op.lower != op.adjoint { Triangle::Lower } else { Triangle::Upper };
            let x = Strided { ptr: solution.at(i), row: 1, col: n as isize };
            T::triangular_solve((n, nrhs), (triangle, op.unit_diagonal), t, op.adjoint, x, par);
        }
        Ok(())
    })
    .map_err(|e| e.error(TriangularSolve::NAME, t.shape()))?;
    // SAFETY: every system was solved.
    Ok(smallvec![unsafe { solution.finish() }])
}

/// Which triangle of a matrix a system has, and how it is posed.
///
/// ```
/// use tenferro_cpu::CpuBackend;
/// use tenferro_linalg::prelude::*;
/// use tenferro_runtime::{Tensor, prelude::*};
///
/// let mut cpu = CpuBackend::new();
/// // T = [2 0; 1 4]; what is not of the triangle is not read.
/// let t = Tensor::from_vec_col_major([2, 2], vec![2.0, 1.0, f64::NAN, 4.0])?;
/// let b = Tensor::from_vec_col_major([2], vec![4.0, 4.0])?;
/// assert_eq!(t.triangular_solve(&b, Triangular::lower(), &mut cpu)?.as_slice::<f64>()?, [2.0, 0.5]);
/// let unit = Triangular::lower().unit_diagonal();
/// assert_eq!(t.triangular_solve(&b, unit, &mut cpu)?.as_slice::<f64>()?, [4.0, 0.0]);
/// assert_eq!(t.triangular_solve(&b, unit.right(), &mut cpu)?.as_slice::<f64>()?, [0.0, 4.0]);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Triangular {
    lower: bool,
    unit_diagonal: bool,
    system: System,
}

impl Triangular {
    /// `T X = B` with T on and below the diagonal.
    pub const fn lower() -> Triangular {
        Triangular { lower: true, unit_diagonal: false, system: System::left() }
    }

    /// `T X = B` with T on and above the diagonal.
    pub const fn upper() -> Triangular {
        Triangular { lower: false, ..Triangular::lower() }
    }

    /// With a diagonal of 1 in place of what is there.
    pub const fn unit_diagonal(self) -> Triangular {
        Triangular { unit_diagonal: true, ..self }
    }

    /// `X T = B`.
    pub const fn right(self) -> Triangular {
        Triangular { system: self.system.with_right(), ..self }
    }

    /// With the transpose of T in its place.
    pub const fn transposed(self) -> Triangular {
        Triangular { system: self.system.transposed(), ..self }
    }

    /// With the adjoint of T in its place.
    pub const fn adjoint(self) -> Triangular {
        Triangular { system: self.system.adjoint(), ..self }
    }
}

/// The solution for operands of one dtype and one batch.
pub(crate) fn triangle_solve(t: &Var, b: &Var, form: Triangular) -> Var {
    let Triangular { lower, unit_diagonal, system } = form;
    system.on_left(b, |adjoint, b| apply1(&TriangularSolve { lower, unit_diagonal, adjoint }, &[t, b]))
}

/// The solution of `T X = B`, or of the form that the last argument says, for a triangle T of a square
/// matrix, of which nothing else is read. Vectors, batch axes and dtypes are as for
/// [`solve_with`](crate::ops::solve_with). NaN and infinities propagate; a quotient by an infinite pivot is
/// 0.
///
/// # Errors
/// A matrix that is not square, or has a zero on its diagonal; a number of rows, or columns from the right,
/// that does not fit.
pub fn triangular_solve(t: &Var, b: &Var, form: Triangular) -> Var {
    posed(TriangularSolve::NAME, &[(t, Kind::Matrix)], b, form.system.is_right(), |t, b| {
        triangle_solve(&t[0], b, form)
    })
}
