//! Least squares, `min |A X - B|` with the smallest `|X|`: `X = A^+ B` by the singular value decomposition of
//! A.
//!
//! Derivative where the rank is constant (G. H. Golub and V. Pereyra, SIAM J. Numer. Anal. 10 (1973)), with
//! `P = A^+`:
//!
//! ```text
//! dX = P dB - P dA X + P P^H dA^H (B - A X) + (1 - P A) dA^H P^H X
//! ```
//!
//! The decomposition is a hint that no rule differentiates, so this is right for multiplets of singular
//! values and for any rank; products with P and P^H are the same operation, so it holds to any order.

use crate::{
    batch::{Element, Matrices, Results, count, expect_matrix, expect_stack, unlisted},
    condition::Tolerance,
    matrix::{floating_of, scale_rows},
    stop_gradient::stop_gradient,
    svd::svd,
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Arg, Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, align_batch, apply_n,
    apply1,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{Field, Real};
use tenferro_tensor::{DType, Error, Result, Tensor, dispatch_real};

/// The numerical rank of an `m x n` matrix. Inputs: the matrix, of which only the extents matter, and its
/// singular values s. Outputs: 1 / s, and 0 where s counts as zero; and the number of the others, an i64.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NumericalRank {
    /// The bits of the relative tolerance, an f64; `max(m, n) eps` if `None`.
    pub rtol: Option<u64>,
    /// The bits of the absolute tolerance, an f64.
    pub atol: u64,
}

impl Primitive for NumericalRank {
    const NAME: &'static str = "numerical_rank";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        if let [a, ..] = x {
            expect(Self::NAME, &[a], 1, FLOATS)?;
        }
        if x.len() != 2 {
            return Err(Error::argument(Self::NAME, "number of operands", x.len(), 2));
        }
        let [m, n] = expect_matrix(Self::NAME, x, 0)?;
        let batch = &x[0].shape[2..];
        expect_stack(Self::NAME, "s", x[1], x[0].dtype.real(), &[&D::min(m, n)], batch)?;
        Ok(smallvec![x[1].clone(), Aval::new(DType::I64, batch.iter().cloned())])
    }
    // Its results are hints.
    fn jvp(&self, _: &[Var], _: &[Var], _: &[Tangent]) -> Outs<Tangent> {
        smallvec![None, None]
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |op, _, x, y, _| {
            let dtype = y[0].dtype;
            dispatch_real!(dtype, T => tabulate::<T>(op, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

fn tabulate<T: Element + Real>(
    op: &NumericalRank,
    x: &mut [Operand<'_>],
    y: &[Aval],
) -> Result<Outs<Tensor>> {
    let (a, s) = (x[0].read(), x[1].read());
    let largest = a.shape()[0].max(a.shape()[1]) as f64;
    let read = Matrices::<T>::vectors(&s)?;
    let inverses = Results::<T>::new(&y[0].shape, 1)?;
    let ranks = Results::<i64>::new(&y[1].shape, 0)?;
    let (zero, one) = (<T as Field>::ZERO, <T as Field>::ONE);
    let rtol = op.rtol.map_or(T::of(largest) * T::EPS, |bits| T::of(f64::from_bits(bits)));
    let atol = T::of(f64::from_bits(op.atol));
    for b in 0..count(a.shape(), 2, y) {
        let s = read.at(b);
        let mut rank = 0;
        for i in 0..y[0].shape[0] {
            // SAFETY: i is below the length of vector b, which is not empty.
            unsafe {
                let (first, s) = (*s.ptr, *s.ptr.offset(i as isize * s.row));
                // The reciprocal of a smaller number would overflow.
                let kept = s > rtol * first && s > atol && s >= T::TINY;
                *inverses.at(b).add(i) = if kept { one / s } else { zero };
                rank += i64::from(kept);
            }
        }
        // SAFETY: there is one rank for each vector.
        unsafe { *ranks.at(b) = rank };
    }
    // SAFETY: the loops have written every element.
    Ok(unsafe { smallvec![inverses.finish(), ranks.finish()] })
}

/// `A^+ B`, or `A^+H B` if `adjoint`. Inputs: A; U, the reciprocals of the singular values that are not zero,
/// and Vh of its thin decomposition, which no rule differentiates; B.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LeastSquares {
    /// Whether B is multiplied by the adjoint of the pseudoinverse.
    pub adjoint: bool,
}

impl Primitive for LeastSquares {
    const NAME: &'static str = "lstsq";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 5, FLOATS)?;
        let [m, n] = expect_matrix(Self::NAME, x, 0)?;
        let [rows, columns] = expect_matrix(Self::NAME, x, 4)?;
        let (k, dtype, batch) = (D::min(m, n), x[0].dtype, &x[0].shape[2..]);
        expect_stack(Self::NAME, "U", x[1], dtype, &[m, &k], batch)?;
        expect_stack(Self::NAME, "reciprocals", x[2], dtype.real(), &[&k], batch)?;
        expect_stack(Self::NAME, "Vh", x[3], dtype, &[&k, n], batch)?;
        let (from, to) = if self.adjoint { (n, m) } else { (m, n) };
        D::equal(Self::NAME, "rows of the right-hand side", rows, from)?;
        expect_stack(Self::NAME, "right-hand side", x[4], dtype, &[from, columns], batch)?;
        Ok(smallvec![Aval::new(dtype, [to, columns].into_iter().chain(batch).cloned())])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let (u, w, vh, b) = (&x[1], &x[2], &x[3], &x[4]);
        Some(smallvec![if self.adjoint {
            u.matmul(&scale_rows(w, &vh.matmul(b)))
        } else {
            vh.adjoint().matmul(&scale_rows(w, &u.adjoint().matmul(b)))
        }])
    }
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let p = |b: &Var| apply1(self, &[&x[0], &x[1], &x[2], &x[3], b]);
        let Some(da) = &t[0] else { return smallvec![t[4].as_ref().map(p)] };
        let op = LeastSquares { adjoint: !self.adjoint };
        let ph = |b: &Var| apply1(&op, &[&x[0], &x[1], &x[2], &x[3], b]);
        // For the adjoint, the rule of A^H.
        let (a, da) = if self.adjoint { (x[0].adjoint(), da.adjoint()) } else { (x[0].clone(), da.clone()) };
        let (b, y) = (&x[4], &y[0]);
        let outside = da.adjoint().matmul(&ph(y));
        let residual = b - &a.matmul(y);
        let inside = &ph(&da.adjoint().matmul(&residual)) - &(da.matmul(y) + a.matmul(&outside));
        let inside = t[4].as_ref().map_or(inside.clone(), |db| db + &inside);
        smallvec![Some(p(&inside) + outside)]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let adjoint = LeastSquares { adjoint: !self.adjoint };
        let [a, u, w, vh] = [0, 1, 2, 3].map(|i| x[i].known());
        let pulled = ct[0].as_ref().map(|ct| apply1(&adjoint, &[&a, &u, &w, &vh, ct]));
        smallvec![None, None, None, None, pulled]
    }
    fn saves(&self) -> Saves {
        Saves::ALL
    }
}

/// `(X, residuals, rank, s)`: X of the smallest norm among those that minimise `|A X - B|` for an `m x n`
/// matrix A; the sum of `|A X - B|^2` over every column, real; the numerical rank of A, an i64; and its
/// singular values. If `b` has one axis, it is a vector, so is X, and the residuals are one number; else its
/// first two axes are a matrix of right-hand sides. Axes from 2 on are batch axes, aligned there. Dtypes are
/// promoted.
///
/// Derivatives are those at constant rank, of any order.
///
/// # Errors
/// Fewer than two axes of A; a number of rows that does not fit; an element that is NaN or infinite; a
/// tolerance that is negative or NaN.
pub fn lstsq(a: &Var, b: &Var, tolerance: Tolerance) -> (Var, Var, Var, Var) {
    try_lstsq(a, b, tolerance).unwrap_or_else(|e| {
        let failed = || Var::Failed(e.clone());
        (failed(), failed(), failed(), failed())
    })
}

fn try_lstsq(a: &Var, b: &Var, tolerance: Tolerance) -> Result<(Var, Var, Var, Var)> {
    let name = LeastSquares::NAME;
    tolerance.check(name)?;
    let vector = b.ok()?.rank() == 1;
    let b = if vector { b.expand_dims(&[1]) } else { b.clone() };
    if a.ok()?.rank() < 2 || b.rank() < 2 {
        let rank = a.rank().min(b.rank());
        return Err(Error::rank(name, "rank of an operand", rank, "at least 2 (1 for a vector b)"));
    }
    let dtype = floating_of(a, &b);
    let (a, b) = align_batch(name, &a.convert(dtype), &b.convert(dtype))?;
    let (u, s, vh) = svd(&a);
    s.ok()?;
    let [u, values, vh] = [&u, &s, &vh].map(stop_gradient);
    let Tolerance { rtol, atol } = tolerance;
    let rtol = rtol.or((atol > 0.0).then_some(0.0)).map(f64::to_bits);
    let rank = NumericalRank { rtol, atol: atol.to_bits() };
    let hints = apply_n(&rank, &[&stop_gradient(&a), &values], 2);
    let x = apply1(&LeastSquares { adjoint: false }, &[&a, &u, &hints[0], &vh, &b]);
    x.ok()?;
    let off = &a.matmul(&x) - &b;
    let squares = (&off.conj() * &off).real().reduce_sum(Some(&[0]));
    let flat = vector && x.rank() == 2;
    let (x, squares) = if flat { (x.squeeze(&[1]), squares.squeeze(&[0])) } else { (x, squares) };
    Ok((x, squares, hints[1].clone(), s))
}
