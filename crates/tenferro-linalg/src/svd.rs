//! Singular value decomposition, `A = U diag(s) Vh`.
//!
//! Derivative (J. Townsend, "Differentiating the singular value decomposition", 2016; for complex matrices
//! Z.-Q. Wan and S.-X. Zhang, arXiv:1909.02659): with E = U^H dA V, split into its Hermitian part H and its
//! anti-Hermitian part N,
//!
//! ```text
//! ds      = Re diag(E)
//! U^H dU  = F o H + G o N      F_ij = 1 / (s_j - s_i), 0 on the diagonal and inside a multiplet
//! V^H dV  = F o H - G o N      G_ij = 1 / (s_j + s_i), 0 where both are 0
//! ```
//!
//! ([`SingularValueGaps`](crate::SingularValueGaps) says where a multiplet begins) and the parts of dU and dV
//! outside the spans of U and V are (1 - U U^H) dA V / s and (1 - V V^H) dA^H U / s. The diagonal of N, which
//! a complex matrix has, is what turns the phases of a pair against each other: U^H dU and V^H dV get half of
//! it each. What turns them together is such that the phases stay as [`phase`](crate::phase) chooses them.
//!
//! Inside a multiplet the vectors are arbitrary up to a rotation. A loss that does not see how they are
//! rotated, even when the values of the multiplet split (it uses projectors on the multiplet, sums over it),
//! has no use for F there, and 0 makes its first derivative right and finite. (U, s, V) do not hold what a
//! second derivative needs at a multiplet, nor the first one of `U f(s) V^H`, a limit of `0 / 0` there: use
//! [`spectral`](crate::ops::spectral) or [`split`](crate::ops::split), whose derivatives are right to any
//! order.

use crate::{
    batch::{Element, Matrices, Results, count, expect_matrix, for_each, unlisted, vector_of_each, work},
    gaps::SingularValueGaps,
    matrix::{diagonal, enlarge, floating, leading, scale_columns, scale_rows},
    named::{Named, called, outputs},
    phase,
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Dim, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1, build,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{Field, Vectors};
use tenferro_tensor::{Result, Tensor, dispatch_float};

/// The factors of `A = U diag(s) Vh` of an `m x n` matrix with `k = min(m, n)`: U is `m x k`, s has length k,
/// is real, non-negative and descending, Vh is `k x n`. If `full`, U is `m x m` and Vh `n x n`, both unitary.
/// Columns of U, and rows of Vh that none of these belongs to, have the phases of
/// [`PhaseWeights`](crate::PhaseWeights).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Svd {
    /// Whether the singular vectors are completed to bases.
    pub full: bool,
}

impl Primitive for Svd {
    const NAME: &'static str = "svd";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        let [m, n] = expect_matrix(Self::NAME, x, 0)?;
        let k = D::min(m, n);
        let (p, q) = if self.full { (m, n) } else { (&k, &k) };
        let batch = || x[0].shape[2..].iter();
        let dtype = x[0].dtype;
        Ok(smallvec![
            Aval::new(dtype, [m, p].into_iter().chain(batch()).cloned()),
            Aval::new(dtype.real(), [&k].into_iter().chain(batch()).cloned()),
            Aval::new(dtype, [q, n].into_iter().chain(batch()).cloned()),
        ])
    }
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let Some(da) = &t[0] else { return smallvec![None, None, None] };
        let (m, n) = (x[0].extent(0), x[0].extent(1));
        let [u, s, vh] = [&y[0], &y[1], &y[2]];
        let k = s.extent(0);
        let (uh, v) = (u.adjoint(), vh.adjoint());
        let da_v = da.matmul(&v);
        let e = uh.matmul(&da_v);
        let ds = diagonal(&e).real();
        let (mut du, mut dvh);
        if self.full {
            // The vectors beyond k have the singular value 0.
            let all = Extent::max(&m, &n);
            let (p, q, _) = rotations(&enlarge(&e, &[all.clone(), all.clone()]), &enlarge(s, &[all]), u, vh);
            let part = |x: Var, n: &Dim| leading(&leading(&x, 0, n), 1, n);
            du = u.matmul(&part(&p + &q, &m));
            dvh = part(&q - &p, &n).matmul(vh);
        } else {
            let (p, q, inverse) = rotations(&e, s, u, vh);
            let (inside_u, inside_v) = (u.matmul(&(&p + &q)), (&q - &p).matmul(vh));
            du = if m == k { inside_u } else { inside_u + scale_columns(&(&da_v - &u.matmul(&e)), &inverse) };
            dvh = if n == k {
                inside_v
            } else {
                inside_v + scale_rows(&inverse, &(&uh.matmul(da) - &e.matmul(vh)))
            };
        }
        if u.dtype().is_complex() {
            let turned = phase::turn(u, &du);
            du = du - scale_columns(u, &turned);
            let turned = if self.full {
                // The first k have the phases of U.
                let own = |x: &Var| x.slice_axis(1, k.clone(), n.clone());
                let own = phase::turn(&own(&v), &own(&dvh.adjoint()));
                build::concatenate(&[leading(&turned, 0, &k), own], 0)
            } else {
                turned
            };
            dvh = dvh + scale_rows(&turned, vh);
        }
        smallvec![Some(du), Some(ds), Some(dvh)]
    }
    // A loss of the singular values alone needs none of the rotations.
    fn vjp(&self, ct: &[Tangent], x: &[Var], y: &[Var], _: &[bool]) -> Option<Outs<Tangent>> {
        let (None, Some(ds), None) = (&ct[0], &ct[1], &ct[2]) else { return None };
        let k = y[1].extent(0);
        let (u, vh) = (leading(&y[0], 1, &k), leading(&y[2], 0, &k));
        debug_assert_eq!(x.len(), 1);
        Some(smallvec![Some(scale_columns(&u, ds).matmul(&vh))])
    }
    fn saves(&self) -> Saves {
        Saves::OUTPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |op, cpu, x, y, _| {
            let dtype = y[0].dtype;
            dispatch_float!(dtype, T => run::<T>(op, cpu, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

/// The singular values of [`Svd`] without vectors, which the derivative computes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SingularValues;

impl SingularValues {
    /// U, s and Vh, with errors of this operation.
    fn decomposed(a: &Var) -> [Var; 3] {
        outputs::<3>(&Svd { full: false }, &[a]).map(|y| y.of(Self::NAME))
    }
}

impl Primitive for SingularValues {
    const NAME: &'static str = "svdvals";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        let [m, n] = expect_matrix(Self::NAME, x, 0)?;
        let s = std::iter::once(D::min(m, n)).chain(x[0].shape[2..].iter().cloned());
        Ok(smallvec![Aval::new(x[0].dtype.real(), s)])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let [_, s, _] = Self::decomposed(&x[0]);
        Some(smallvec![s])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(|da| {
            let [u, _, vh] = Self::decomposed(&x[0]);
            diagonal(&u.adjoint().matmul(&da.matmul(&vh.adjoint()))).real()
        })]
    }
    fn vjp(&self, ct: &[Tangent], x: &[Var], _: &[Var], _: &[bool]) -> Option<Outs<Tangent>> {
        let ds = ct[0].as_ref()?;
        let [u, _, vh] = Self::decomposed(&x[0]);
        Some(smallvec![Some(scale_columns(&u, ds).matmul(&vh))])
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, cpu, x, y, _| {
            let dtype = x[0].dtype();
            dispatch_float!(dtype, T => run_values::<T>(cpu, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

/// F o H, G o N and 1/s, for E = U^H dA V.
fn rotations(e: &Var, s: &Var, u: &Var, vh: &Var) -> (Var, Var, Var) {
    let gaps: [Var; 3] = outputs(&SingularValueGaps, &[s, u, vh]);
    let half = e * 0.5;
    let adjoint = half.adjoint();
    (&(&half + &adjoint) * &gaps[0], &(&half - &adjoint) * &gaps[1], gaps[2].clone())
}

fn run<T: Element>(op: &Svd, cpu: &CpuBackend, x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let a = x[0].read();
    let (m, n) = (a.shape()[0], a.shape()[1]);
    let vectors = if op.full { Vectors::Full } else { Vectors::Thin };
    let read = Matrices::<T>::new(&a)?;
    let u = Results::<T>::new(&y[0].shape, 2)?;
    let s = Results::<<T as Field>::Real>::new(&y[1].shape, 1)?;
    let vh = Results::<T>::new(&y[2].shape, 2)?;
    for_each(cpu, count(a.shape(), 2, y), work([20, m, n, m.min(n)]), |b, par| {
        // SAFETY: matrix b of the operand is readable; the arrays b of the outputs are new memory of the sizes
        // that the shape rule gave, written by this call alone.
        unsafe {
            T::svd((m, n), read.at(b), u.at(b), s.at(b), vh.at(b), vectors, par)?;
            phase::fix_pairs((m, y[0].shape[1]), u.at(b), (y[2].shape[0], n), vh.at(b), m.min(n));
        }
        Ok(())
    })
    .map_err(|e| e.error(Svd::NAME, a.shape()))?;
    // SAFETY: every matrix succeeded, and then its factors are written in full.
    Ok(unsafe { smallvec![u.finish(), s.finish(), vh.finish()] })
}

fn run_values<T: Element>(cpu: &CpuBackend, x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let (m, n) = (x[0].shape()[0], x[0].shape()[1]);
    let work = work([4, m, n, m.min(n)]);
    // SAFETY: `svdvals` writes the min(m, n) values of an m x n matrix.
    unsafe {
        vector_of_each(SingularValues::NAME, cpu, &x[0], y, work, |a, s, par| T::svdvals((m, n), a, s, par))
    }
}

/// `(U, s, Vh)` with `A = U diag(s) Vh` and `k = min(m, n)` singular values; see [`Svd`]. Axes from 2 on are
/// batch axes.
///
/// Phases, of real vectors signs, are fixed: in each column of U the component of the largest modulus is real
/// and positive, the first one if there are several within 1e-3 of it, and the row of Vh has the phase that
/// belongs to it. So the vectors are functions of the matrix, and every loss has a derivative, where the
/// singular values are distinct, none is 0 and the component is not about to change for another one. The
/// vectors themselves are not differentiable at multiplets, at zeros and where the component changes, the
/// ties of this rule.
///
/// Values are distinct if they differ by more than sqrt(eps) of their mean, 3.5e-4 in single and 1.5e-8 in
/// double precision, and by more than `10 max(m, n) eps` of the largest one; or if their vectors have one
/// component each, as those of a diagonal matrix. All others are members of a multiplet, even where rounding
/// tells them apart, and a loss that tells them apart gets a derivative without what couples them. Inside a
/// multiplet the basis is arbitrary, and what couples its vectors counts as 0. First derivatives are right
/// there for losses that do not depend on the basis even when the values of the multiplet split, such as
/// those of projectors on it and of sums over it. The first derivative of `U diag(f(s)) Vh` is not, nor is
/// any second derivative: use [`spectral`](crate::ops::spectral) or [`split`](crate::ops::split).
///
/// # Errors
/// Fewer than two axes; an element that is NaN or infinite.
pub fn svd(a: &Var) -> (Var, Var, Var) {
    factors(Svd::NAME, a, false)
}

/// As [`svd`], with U and Vh completed to unitary matrices. The columns of U, or rows of Vh, that are added
/// belong to no row, or column, of the other one: the largest component of each is real and positive. If
/// there are several, they are an arbitrary basis.
pub fn svd_full(a: &Var) -> (Var, Var, Var) {
    factors("svd_full", a, true)
}

/// The singular values of [`svd`], descending, to rounding errors of a modest multiple of `max(m, n) eps s_1`.
/// No vectors are computed, which most of the time of `svd` goes into: about `8/3 n^3` operations are left for a
/// square matrix. A derivative computes them, by `svd`, beside the values.
///
/// The first derivative needs no gaps between them:
/// `ds = Re diag(U^H dA V)`.
///
/// The second one does: inside a multiplet what couples its members counts as 0, which is wrong even for
/// symmetric functions such as the sum of `f(s)`. There, use `Re tr(U^H F)` with U of
/// [`polar`](crate::ops::polar) and `F = U f(s) V^H` of [`spectral`](crate::ops::spectral), or a
/// [`matrix_norm`](crate::ops::matrix_norm): the Frobenius and the nuclear norm are right.
pub fn svdvals(a: &Var) -> Var {
    called(SingularValues::NAME, [a], || Ok(apply1(&SingularValues, &[&floating(a)])))
}

fn factors(op: &'static str, a: &Var, full: bool) -> (Var, Var, Var) {
    called(op, [a], || Ok(outputs(&Svd { full }, &[&floating(a)]).into()))
}
