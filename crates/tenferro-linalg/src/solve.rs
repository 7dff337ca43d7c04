//! Linear systems, `A X = B`.
//!
//! A is factored once; the derivative, which is a system with A or its adjoint, uses the same factors:
//! `dX = A^-1 (dB - dA X)`. The factors are operands beside A that no rule differentiates, so the rule holds
//! to any order.

use crate::{
    batch::{
        Element, Matrices, Results, copy_matrix, count, expect_batch, expect_matrix, expect_permutations,
        expect_positions, expect_square, expect_stack, for_each, unlisted, work,
    },
    lu::LuFactor,
    named::outputs,
    system::{Kind, System, posed},
};
use smallvec::{SmallVec, smallvec};
use tenferro_core_ops::{
    Arg, Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{DotGeneral, FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{Strided, filled};
use tenferro_tensor::{DType, Result, Tensor, dispatch_float};

/// `X = A^-1 B`, or `A^-H B` if `adjoint`. Inputs: A, the two outputs of [`LuFactor`] on A, B.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LuSolve {
    /// Whether the system is that of the adjoint.
    pub adjoint: bool,
}

impl LuSolve {
    /// The cotangent of A from that of B, `g`: with `op(A) dX = dB - op(dA) X`, it is `-g X^H`, or its
    /// adjoint.
    fn pulled_to_matrix(&self, g: &Var, x: &Var) -> Var {
        let (a, b) = if self.adjoint { (x, g) } else { (g, x) };
        let batch: SmallVec<[usize; 6]> = (2..a.rank()).collect();
        let outer = DotGeneral {
            lhs_contract: smallvec![1],
            rhs_contract: smallvec![1],
            lhs_batch: batch.clone(),
            rhs_batch: batch,
            conj_lhs: false,
            conj_rhs: a.dtype().is_complex(),
        };
        -&apply1(&outer, &[a, b])
    }
}

impl Primitive for LuSolve {
    const NAME: &'static str = "solve";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 4, FLOATS)?;
        expect_square(Self::NAME, x, 0)?;
        let [rows, _] = expect_matrix(Self::NAME, x, 3)?;
        let (n, batch) = (&x[0].shape[0], &x[0].shape[2..]);
        D::equal(Self::NAME, "rows of the right-hand side", rows, n)?;
        expect_stack(Self::NAME, "factors", x[1], x[0].dtype, &[n, n], batch)?;
        expect_stack(Self::NAME, "pivots", x[2], DType::I64, &[n], batch)?;
        expect_batch(Self::NAME, x, 0, 3)?;
        Ok(smallvec![x[3].clone()])
    }
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let moved = t[0].as_ref().map(|da| {
            let da = if self.adjoint { da.adjoint() } else { da.clone() };
            -&da.matmul(&y[0])
        });
        let db = match (moved, &t[3]) {
            (Some(a), Some(b)) => Some(b + &a),
            (a, b) => a.or_else(|| b.clone()),
        };
        smallvec![db.map(|db| apply1(self, &[&x[0], &x[1], &x[2], &db]))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let adjoint = LuSolve { adjoint: !self.adjoint };
        let [a, packed, p] = [0, 1, 2].map(|i| x[i].known());
        smallvec![None, None, None, ct[0].as_ref().map(|ct| apply1(&adjoint, &[&a, &packed, &p, ct]))]
    }
    fn vjp(&self, ct: &[Tangent], x: &[Var], y: &[Var], need: &[bool]) -> Option<Outs<Tangent>> {
        let adjoint = LuSolve { adjoint: !self.adjoint };
        let g = apply1(&adjoint, &[&x[0], &x[1], &x[2], ct[0].as_ref()?]);
        let da = need[0].then(|| self.pulled_to_matrix(&g, &y[0]));
        Some(smallvec![da, None, None, need[3].then_some(g)])
    }
    fn saves(&self) -> Saves {
        Saves::ALL
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |op, cpu, x, y, _| {
            let dtype = y[0].dtype;
            dispatch_float!(dtype, T => run::<T>(op, cpu, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

fn run<T: Element>(
    op: &LuSolve,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
) -> Result<Outs<Tensor>> {
    let [packed, p, b] = [1, 2, 3].map(|i| x[i].read());
    let (n, nrhs) = (b.shape()[0], b.shape()[1]);
    let (factors, right) = (Matrices::<T>::new(&packed)?, Matrices::<T>::new(&b)?);
    let perm = Matrices::<i64>::vectors(&p)?;
    let systems = count(packed.shape(), 2, y);
    expect_positions(LuSolve::NAME, systems, [("rows", n)])?;
    expect_permutations(LuSolve::NAME, &perm, n, systems)?;
    let solution = Results::<T>::new(&y[0].shape, 2)?;
    for_each(cpu, systems, work([2, n, n, nrhs]), |i, par| {
        let (f, p) = (factors.at(i), perm.at(i));
        let mut positions = filled([n], 0i32)?;
        // SAFETY: matrices i of the operands are readable and fit each other, by the shape rule, and p is a
        // permutation, whose n numbers fit an i32; the solution is new memory of n nrhs elements.
        unsafe {
            for (k, position) in positions.iter_mut().enumerate() {
                *position = *p.ptr.offset(k as isize * p.row) as i32;
            }
            copy_matrix((n, nrhs), right.at(i), solution.at(i));
            let x = Strided { ptr: solution.at(i), row: 1, col: n as isize };
            T::solve_lu((n, nrhs), f, positions.as_ptr(), op.adjoint, x, par)
        }
    })
    .map_err(|e| e.error(LuSolve::NAME, packed.shape()))?;
    // SAFETY: every system was solved.
    Ok(smallvec![unsafe { solution.finish() }])
}

/// The solution of `A X = B` for a square A. If `b` has one axis, it is a vector, and so is the solution, for
/// every matrix of a batch; else its first two axes are a matrix of right-hand sides. Axes from 2 on are
/// batch axes, aligned there: a missing one, or one of extent 1, is repeated. Dtypes are promoted. NaN and
/// infinities of B propagate to X.
///
/// # Errors
/// A matrix that is not square, or singular (elimination met a pivot that is exactly zero), or has an element
/// that is NaN or infinite, or so large that elimination overflows; a number of rows that does not fit.
pub fn solve(a: &Var, b: &Var) -> Var {
    solved(LuSolve::NAME, a, b, System::left())
}

/// As [`solve`], from either side and with the transpose or the adjoint of A in its place, which is not
/// formed. A vector on the left of A is a row. NaN and infinities of B propagate to X; those of A are errors.
pub fn solve_with(a: &Var, b: &Var, system: System) -> Var {
    solved("solve_with", a, b, system)
}

fn solved(op: &'static str, a: &Var, b: &Var, system: System) -> Var {
    posed(op, &[(a, Kind::Matrix)], b, system.is_right(), |a, b| {
        let [packed, p]: [Var; 2] = outputs(&LuFactor { hint: true }, &[&a[0].detach()]);
        system.on_left(b, |adjoint, b| apply1(&LuSolve { adjoint }, &[&a[0], &packed, &p, b]))
    })
}
