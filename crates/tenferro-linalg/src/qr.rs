//! QR factorization, `A = Q R`, with or without exchanged columns.
//!
//! Derivative (S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions with
//! application in optimum experimental design", arXiv:1001.1654; for the wide case J. Roberts and S. Roberts,
//! arXiv:2009.10071): with R1 the leading square block of R, `X = dA1 R1^-1` and `M = Q^H X`,
//!
//! ```text
//! Q^H dQ  = L - L^H        L = M below the diagonal, M / 2 on it
//! dR1     = (M - Q^H dQ) R1
//! dR2     = Q^H dA2 - Q^H dQ R2
//! ```
//!
//! and the part of dQ outside the span of Q is `X - Q M`. This keeps the diagonal of R real, as it is in both
//! gauges, and its signs are locally constant. What completes Q to a basis is arbitrary: its rule turns the
//! basis no more than it must, so derivatives of what does not depend on the completion are right to any
//! order.
//!
//! R1 must be regular, in the wide case for every loss, of Q or R alone, too. Otherwise neither factor has a
//! derivative, and asking for one is an error if a diagonal element is exactly zero.

use crate::{
    batch::{Element, Matrices, Results, count, expect_matrix, expect_positions, for_each, unlisted, work},
    matrix::{enlarge, floating, leading},
    named::{called, outputs},
    permute::permuted,
    triangular::TriangularSolve,
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1, build,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{QrForm, filled};
use tenferro_tensor::{DType, Result, Tensor, dispatch_float};

/// Which of the factorizations of a matrix.
///
/// ```
/// use tenferro_linalg::QrOptions;
/// let unique = QrOptions { positive: true, ..QrOptions::default() };
/// assert!(!unique.full);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct QrOptions {
    /// Whether Q is completed to a unitary `m x m` matrix, and R to `m x n`; else they are `m x k` and `k x
    /// n` with `k = min(m, n)`.
    pub full: bool,
    /// Whether the diagonal of R is not negative, which makes the thin factors of a matrix of full rank
    /// unique; else it is real with the signs of Householder's reflections, as in LAPACK.
    pub positive: bool,
}

/// The factors of `A = Q R`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Qr {
    /// Sizes and signs.
    pub options: QrOptions,
}

/// The factors of `A[:, p] = Q R` with `|R_ii|` not increasing. Outputs: Q, R and p, an i64 vector.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PivotedQr {
    /// Sizes and signs.
    pub options: QrOptions,
}

fn infer<D: Extent>(op: &'static str, full: bool, x: &[&Aval<D>]) -> Result<Outs<Aval<D>>> {
    expect(op, x, 1, FLOATS)?;
    let [m, n] = expect_matrix(op, x, 0)?;
    let k = if full { m.clone() } else { D::min(m, n) };
    let stack =
        |extents: [&D; 2]| Aval::new(x[0].dtype, extents.into_iter().chain(&x[0].shape[2..]).cloned());
    Ok(smallvec![stack([m, &k]), stack([&k, n])])
}

impl Primitive for Qr {
    const NAME: &'static str = "qr";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        infer(Self::NAME, self.options.full, x)
    }
    fn jvp(&self, _: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let Some(da) = &t[0] else { return smallvec![None, None] };
        let (dq, dr) = tangents(&y[0], &y[1], da);
        smallvec![Some(dq), Some(dr)]
    }
    fn saves(&self) -> Saves {
        Saves::OUTPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |op, cpu, x, y, _| {
            let dtype = y[0].dtype;
            dispatch_float!(dtype, T => run::<T>(Self::NAME, op.options, cpu, x, y),
                else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

impl Primitive for PivotedQr {
    const NAME: &'static str = "qr_pivoted";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        let mut y = infer(Self::NAME, self.options.full, x)?;
        y.push(Aval::new(DType::I64, x[0].shape[1..].iter().cloned()));
        Ok(y)
    }
    // The permutation is locally constant.
    fn jvp(&self, _: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let Some(da) = &t[0] else { return smallvec![None, None, None] };
        let (dq, dr) = tangents(&y[0], &y[1], &permuted(da, &y[2], 1));
        smallvec![Some(dq), Some(dr), None]
    }
    fn saves(&self) -> Saves {
        Saves::OUTPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |op, cpu, x, y, _| {
            let dtype = y[0].dtype;
            dispatch_float!(dtype, T => run::<T>(Self::NAME, op.options, cpu, x, y),
                else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

/// `B R^-1` with an upper triangular R.
pub(crate) fn right_solve(b: &Var, r: &Var) -> Var {
    let op = TriangularSolve { lower: false, unit_diagonal: false, adjoint: true };
    apply1(&op, &[r, &b.adjoint()]).adjoint()
}

/// (dQ, dR) from the factors, thin or full.
pub(crate) fn tangents(q: &Var, r: &Var, da: &Var) -> (Var, Var) {
    let (m, columns, n) = (q.extent(0), q.extent(1), r.extent(1));
    let k = Extent::min(&m, &n);
    let square = leading(&leading(r, 0, &k), 1, &k);
    let x = right_solve(&leading(da, 1, &k), &square);
    let inside = q.adjoint().matmul(&x);
    let lower = match inside.dtype().is_complex() {
        true => (inside.tril(-1) + inside.tril(0)) * 0.5,
        false => inside.tril(-1),
    };
    let lower = if k == columns { lower } else { enlarge(&lower, &[columns.clone(), columns.clone()]) };
    let turn = &lower - &lower.adjoint();
    let turned = q.matmul(&turn);
    let dq = if columns == m { turned } else { turned + (&x - &q.matmul(&inside)) };

    let growth = (&leading(&inside, 0, &k) - &leading(&leading(&turn, 0, &k), 1, &k)).triu(0);
    let mut dr = growth.matmul(&square);
    if k != columns {
        dr = enlarge(&dr, &[columns, k.clone()]);
    }
    if n != k {
        let beside = |x: &Var| x.slice_axis(1, k.clone(), n.clone());
        let right = &q.adjoint().matmul(&beside(da)) - &turn.matmul(&beside(r));
        dr = build::concatenate(&[dr, right], 1);
    }
    (dq, dr)
}

/// With the permutation, if the outputs have one.
fn run<T: Element>(
    name: &'static str,
    options: QrOptions,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
) -> Result<Outs<Tensor>> {
    let a = x[0].read();
    let (m, n) = (a.shape()[0], a.shape()[1]);
    let count = count(a.shape(), 2, y);
    if y.len() > 2 {
        expect_positions(name, count, [("columns", n)])?;
    }
    let form = QrForm { full: options.full, positive: options.positive };
    let read = Matrices::<T>::new(&a)?;
    let q = Results::<T>::new(&y[0].shape, 2)?;
    let r = Results::<T>::new(&y[1].shape, 2)?;
    let perm = y.get(2).map(|p| Results::<i64>::new(&p.shape, 1)).transpose()?;
    let columns = y[0].shape[1];
    for_each(cpu, count, work([2, m, n.max(columns), m.min(n)]), |b, par| {
        let mut p = filled([if perm.is_some() { n } else { 0 }], 0i32)?;
        let to = perm.is_some().then_some(&mut p[..]);
        // SAFETY: matrix b of the operand is readable; the arrays b of the outputs are new memory of the
        // sizes that the shape rule gave, written by this call alone.
        unsafe {
            T::qr((m, n), read.at(b), q.at(b), r.at(b), form, to, par)?;
            if let Some(perm) = &perm {
                p.iter().enumerate().for_each(|(i, &p)| *perm.at(b).add(i) = p as i64);
            }
        }
        Ok(())
    })
    .map_err(|e| e.error(name, a.shape()))?;
    // SAFETY: every matrix succeeded, and then its factors are written in full.
    Ok(unsafe { [q.finish(), r.finish()].into_iter().chain(perm.map(|p| p.finish())).collect() })
}

/// `(Q, R)` with `A = Q R` for an `m x n` matrix and `k = min(m, n)`: Q is `m x k` with orthonormal columns,
/// R is `k x n`, upper triangular with a real diagonal, whose signs are those of Householder's reflections.
/// Axes from 2 on are batch axes.
///
/// # Errors
/// Fewer than two axes; an element that is NaN or infinite. A matrix whose first k columns are dependent has
/// factors, but its derivative is an error if R has a zero on its diagonal.
pub fn qr(a: &Var) -> (Var, Var) {
    factors(Qr::NAME, a, QrOptions::default())
}

/// As [`qr`], with Q completed to a unitary `m x m` matrix and R to `m x n`.
pub fn qr_full(a: &Var) -> (Var, Var) {
    factors("qr_full", a, QrOptions { full: true, ..QrOptions::default() })
}

/// As [`qr`], of the sizes and signs of `options`.
pub fn qr_with(a: &Var, options: QrOptions) -> (Var, Var) {
    factors("qr_with", a, options)
}

fn factors(op: &'static str, a: &Var, options: QrOptions) -> (Var, Var) {
    called(op, [a], || Ok(outputs(&Qr { options }, &[&floating(a)]).into()))
}

/// `(Q, R, p)` with `A[:, p] = Q R`: the factors of [`qr`] for columns in the order of the i64 vector p, in
/// which `|R_ii|` does not increase, up to rounding: each step takes the longest of the remaining columns.
///
/// # Errors
/// As [`qr`]; more than `i32::MAX` columns.
pub fn qr_pivoted(a: &Var) -> (Var, Var, Var) {
    pivoted(PivotedQr::NAME, a, QrOptions::default())
}

/// As [`qr_pivoted`], of the sizes and signs of `options`.
pub fn qr_pivoted_with(a: &Var, options: QrOptions) -> (Var, Var, Var) {
    pivoted("qr_pivoted_with", a, options)
}

fn pivoted(op: &'static str, a: &Var, options: QrOptions) -> (Var, Var, Var) {
    called(op, [a], || Ok(outputs(&PivotedQr { options }, &[&floating(a)]).into()))
}
