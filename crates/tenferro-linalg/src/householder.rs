//! Products of Householder reflections, `Q = H_1 .. H_k` with `H_i = I - tau_i v_i v_i^H`, in the packed form
//! of LAPACK: v_i is zero above row i, 1 in it, and below it is column i of a matrix below the diagonal.
//!
//! With `S = V^H V` above the diagonal and `D = diag(tau)`, `Q = I - V T V^H` for `T = (I + D S)^-1 D` (the
//! compact WY form of R. Schreiber and C. Van Loan, SIAM J. Sci. Stat. Comput. 10 (1989)), a rational
//! function of V, V^H and tau without poles. It stands in for the derivative of the products.
//!
//! That of the factorization goes the other way: `[I; 0] - Q = V (T V1^H)` is a factorization in L U, whose
//! pivots are tau, so V and tau follow from Q (G. Ballard et al., "Reconstructing Householder vectors from
//! tall-skinny QR", 2015).

use crate::{
    batch::{
        Element, Matrices, Results, copy_matrix, count, expect_batch, expect_matrix, expect_stack, for_each,
        unlisted, work,
    },
    checked::checked,
    lu::packed_tangent,
    matrix::{diagonal, enlarge, floating, leading, scale_columns, scale_rows},
    named::{called, outputs},
    qr::tangents,
    system::{Kind, System, aligned, posed},
    triangular::TriangularSolve,
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Dim, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1, build,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{Field, Strided, filled};
use tenferro_tensor::{Error, Result, Tensor, dispatch_float};

/// The reflectors of `A = Q R`. Outputs: R on and above the diagonal of an `m x n` matrix and the reflectors
/// below it; tau, a vector of length min(m, n).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Householder;

impl Primitive for Householder {
    const NAME: &'static str = "householder";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        let [m, n] = expect_matrix(Self::NAME, x, 0)?;
        let tau = Aval::new(x[0].dtype, [D::min(m, n)].into_iter().chain(x[0].shape[2..].iter().cloned()));
        Ok(smallvec![x[0].clone(), tau])
    }
    fn jvp(&self, _: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let Some(da) = &t[0] else { return smallvec![None, None] };
        let (packed, tau) = (&y[0], &y[1]);
        let (m, n, k) = (packed.extent(0), packed.extent(1), tau.extent(0));
        let tails = leading(packed, 1, &k);
        let q = apply1(&HouseholderProduct, &[&tails, tau]);
        let (dq, dr) = tangents(&q, &leading(packed, 0, &k).triu(0), da);
        // Where tau is 0, the reflection is the identity nearby, too, or there is no derivative.
        let none = tau.equal(&tau.like(0.0));
        let one = identity(packed, &k);
        let (v, _) = basis(&tails, tau);
        let v1 = leading(&v, 0, &k);
        let lower = TriangularSolve { lower: true, unit_diagonal: true, adjoint: false };
        let w = apply1(&lower, &[&v1, &(&one - &leading(&q, 0, &k))]).triu(0);
        let w = w + scale_columns(&one, &none.select(&tau.like(1.0), &tau.like(0.0)));
        let w = if m == k { w } else { enlarge(&w, &[m.clone(), k.clone()]) };
        let d = packed_tangent(&(tails.tril(-1) + w), &-&dq);
        let dtau = none.select(&tau.like(0.0), &diagonal(&leading(&d, 0, &k)));
        let below = d.tril(-1);
        let below = if n == k { below } else { enlarge(&below, &[m.clone(), n.clone()]) };
        let dr = if m == k { dr } else { enlarge(&dr, &[m, n]) };
        smallvec![Some(below + dr), Some(dtau)]
    }
    fn saves(&self) -> Saves {
        Saves::OUTPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, cpu, x, y, _| {
            dispatch_float!(y[0].dtype, T => factor::<T>(cpu, x, y), else Err(unlisted(Self::NAME, y[0].dtype)))
        });
    }
}

/// The identity for every matrix of the batch of `x`.
fn identity(x: &Var, n: &Dim) -> Var {
    let one = build::eye(x.dtype(), n);
    if x.rank() == 2 {
        return one;
    }
    let shape: Vec<Dim> = [n.clone(), n.clone()].into_iter().chain(x.shape()[2..].iter().cloned()).collect();
    one.broadcast_in_dim(&shape, &[0, 1])
}

/// V, and `D S`, of which only what is above the diagonal counts.
fn basis(tails: &Var, tau: &Var) -> (Var, Var) {
    let (m, k) = (tails.extent(0), tau.extent(0));
    let one = identity(tails, &k);
    let one = if m == k { one } else { enlarge(&one, &[m, k]) };
    let v = tails.tril(-1) + one;
    let s = scale_rows(tau, &v.adjoint().matmul(&v));
    (v, s)
}

/// `T x`, or `T^H x`.
fn times_t(s: &Var, tau: &Var, adjoint: bool, x: &Var) -> Var {
    let op = TriangularSolve { lower: false, unit_diagonal: true, adjoint };
    if adjoint {
        scale_rows(&tau.conj(), &apply1(&op, &[s, x]))
    } else {
        apply1(&op, &[s, &scale_rows(tau, x)])
    }
}

fn factor<T: Element>(cpu: &CpuBackend, x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let a = x[0].read();
    let (m, n) = (a.shape()[0], a.shape()[1]);
    let k = m.min(n);
    let read = Matrices::<T>::new(&a)?;
    let packed = Results::<T>::new(&y[0].shape, 2)?;
    let tau = Results::<T>::new(&y[1].shape, 1)?;
    for_each(cpu, count(a.shape(), 2, y), work([1, m, n, k]), |b, par| {
        let mut t = filled([k], <T as Field>::ZERO)?;
        // SAFETY: matrix b of the operand is readable; the arrays b of the outputs are new memory of m n and
        // k elements.
        unsafe {
            T::householder((m, n), read.at(b), packed.at(b), &mut t, par)?;
            t.iter().enumerate().for_each(|(i, &t)| *tau.at(b).add(i) = t);
        }
        Ok(())
    })
    .map_err(|e| e.error(Householder::NAME, a.shape()))?;
    // SAFETY: every matrix was factored.
    Ok(unsafe { smallvec![packed.finish(), tau.finish()] })
}

/// Checks the reflectors and their factors, inputs 0 and 1, and gives the extents of the matrix.
fn expect_reflectors<'a, D: Extent>(op: &'static str, x: &[&'a Aval<D>]) -> Result<[&'a D; 2]> {
    let [m, n] = expect_matrix(op, x, 0)?;
    let Some(k) = x[1].shape.first() else {
        return Err(Error::rank(op, "rank of tau", 0, "at least 1"));
    };
    let most = D::min(m, n);
    most.sub(k, op)
        .map_err(|_| Error::argument(op, "number of reflectors", k, format_args!("at most {most}")))?;
    expect_stack(op, "tau", x[1], x[0].dtype, &[k], &x[0].shape[2..])?;
    Ok([m, n])
}

/// The first min(m, n) columns of `H_1 .. H_k`. Inputs: an `m x n` matrix with the reflectors below its
/// diagonal, the rest of which is not read, and tau, a vector of length k <= min(m, n).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HouseholderProduct;

impl Primitive for HouseholderProduct {
    const NAME: &'static str = "householder_product";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 2, FLOATS)?;
        let [m, n] = expect_reflectors(Self::NAME, x)?;
        let batch = x[0].shape[2..].iter().cloned();
        Ok(smallvec![Aval::new(x[0].dtype, [m.clone(), D::min(m, n)].into_iter().chain(batch))])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let (m, k) = (x[0].extent(0), x[1].extent(0));
        let columns = Extent::min(&m, &x[0].extent(1));
        let (v, s) = basis(&leading(&x[0], 1, &k), &x[1]);
        let moved = v.matmul(&times_t(&s, &x[1], false, &leading(&v, 0, &columns).adjoint()));
        let one = identity(&x[0], &columns);
        let one = if m == columns { one } else { enlarge(&one, &[m, columns]) };
        Some(smallvec![&one - &moved])
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, cpu, x, y, _| {
            dispatch_float!(y[0].dtype, T => multiply::<T>(Self::NAME, None, cpu, x, y),
                else Err(unlisted(Self::NAME, y[0].dtype)))
        });
    }
}

/// `Q C`, or `Q^H C` if `adjoint`, with the unitary `Q = H_1 .. H_k` of order m. Inputs: those of
/// [`HouseholderProduct`], and C, of m rows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HouseholderApply {
    /// Whether C is multiplied by the adjoint.
    pub adjoint: bool,
}

impl Primitive for HouseholderApply {
    const NAME: &'static str = "householder_apply";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 3, FLOATS)?;
        let [m, _] = expect_reflectors(Self::NAME, x)?;
        let [rows, _] = expect_matrix(Self::NAME, x, 2)?;
        D::equal(Self::NAME, "rows of the factor", rows, m)?;
        expect_batch(Self::NAME, x, 0, 2)?;
        Ok(smallvec![x[2].clone()])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let (v, s) = basis(&leading(&x[0], 1, &x[1].extent(0)), &x[1]);
        let inside = times_t(&s, &x[1], self.adjoint, &v.adjoint().matmul(&x[2]));
        Some(smallvec![&x[2] - &v.matmul(&inside)])
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |op, cpu, x, y, _| {
            dispatch_float!(y[0].dtype, T => multiply::<T>(Self::NAME, Some(op.adjoint), cpu, x, y),
                else Err(unlisted(Self::NAME, y[0].dtype)))
        });
    }
}

/// The product of the reflections with the third operand, or its adjoint; without `adjoint`, with the
/// identity.
fn multiply<T: Element>(
    name: &'static str,
    adjoint: Option<bool>,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
) -> Result<Outs<Tensor>> {
    let (packed, tau) = (x[0].read(), x[1].read());
    let (m, columns, k) = (y[0].shape[0], y[0].shape[1], tau.shape()[0]);
    let (tails, factors) = (Matrices::<T>::new(&packed)?, Matrices::<T>::vectors(&tau)?);
    let right = if adjoint.is_some() { Some(x[2].read()) } else { None };
    let right = right.as_ref().map(Matrices::<T>::new).transpose()?;
    let result = Results::<T>::new(&y[0].shape, 2)?;
    for_each(cpu, count(packed.shape(), 2, y), work([2, m, columns, k]), |b, par| {
        let (v, t) = (tails.at(b), factors.at(b));
        let mut tau = filled([k], <T as Field>::ZERO)?;
        // SAFETY: matrices b of the operands are readable and fit each other, by the shape rule; the result
        // is new memory of m columns elements.
        unsafe {
            for (i, tau) in tau.iter_mut().enumerate() {
                *tau = *t.ptr.offset(i as isize * t.row);
            }
            let v = Strided { ptr: v.ptr, row: v.row, col: v.col };
            match (&right, adjoint) {
                (Some(right), Some(adjoint)) => {
                    copy_matrix((m, columns), right.at(b), result.at(b));
                    T::householder_apply((m, columns), v, &tau, adjoint, result.at(b), par)
                }
                _ => T::householder_product((m, columns), v, &tau, result.at(b), par),
            }
        }
    })
    .map_err(|e| e.error(name, packed.shape()))?;
    // SAFETY: every product was written.
    Ok(smallvec![unsafe { result.finish() }])
}

/// `(packed, tau)`: R of `A = Q R` on and above the diagonal of `packed`, an `m x n` matrix, and below it the
/// Householder reflectors of `Q = H_1 .. H_k`, `H_i = I - tau_i v_i v_i^H`, `k = min(m, n)`; v_i is 1 in row
/// i and zero above. The diagonal of R is real. Axes from 2 on are batch axes.
///
/// The derivative is that of [`qr`](crate::ops::qr), carried over to the reflectors; that of a reflector
/// which is the identity, tau = 0, counts as zero.
///
/// # Errors
/// As [`qr`](crate::ops::qr).
pub fn householder(a: &Var) -> (Var, Var) {
    called(Householder::NAME, [a], || Ok(outputs(&Householder, &[&floating(a)]).into()))
}

/// The first min(m, n) columns of `H_1 .. H_k` with the reflectors of [`householder`], or any others:
/// `packed` is `m x n`, and only what is below its diagonal is read; `tau` has length `k <= min(m, n)`. Axes
/// of `packed` from 2 on, and of `tau` from 1 on, are batch axes, aligned there: a missing one, or one of
/// extent 1, is repeated. Dtypes are promoted. NaN and infinities of what is read propagate.
///
/// # Errors
/// A `packed` of fewer than two axes; a `tau` that is too long; batch axes that do not fit.
pub fn householder_product(packed: &Var, tau: &Var) -> Var {
    const NAME: &str = HouseholderProduct::NAME;
    called(NAME, [packed, tau], || {
        let x = aligned(NAME, &[(packed, Kind::Matrix), (tau, Kind::Vector)])?;
        Ok(apply1(&HouseholderProduct, &[&x[0], &x[1]]))
    })
}

/// `Q C` with the unitary `m x m` matrix `Q = H_1 .. H_k` of [`householder`], which is not formed, or what
/// `system` says: with the transpose or the adjoint of Q in its place, and with Q on the right, `C Q`. If `c`
/// has one axis, it is a vector, and so is the product. Batch axes and dtypes are as for
/// [`householder_product`]. NaN and infinities of what is read propagate.
///
/// # Errors
/// As [`householder_product`]; a C that has not m rows, or columns for a Q on the right.
pub fn householder_apply(packed: &Var, tau: &Var, c: &Var, system: System) -> Var {
    let x = [(packed, Kind::Matrix), (tau, Kind::Vector)];
    posed(HouseholderApply::NAME, &x, c, system.is_right(), |x, c| {
        system.on_left(c, |adjoint, c| apply1(&HouseholderApply { adjoint }, &[&x[0], &x[1], c]))
    })
}

/// What [`householder`] gives of `[A B]`, from what it gave of A and new columns B. The work is that on B:
/// the columns of A, and their reflectors, stay as they are. If `b` has one axis, it is one column. Batch
/// axes and dtypes are as for [`householder_product`]. Where A has no fewer columns than rows, NaN and
/// infinities propagate.
///
/// # Errors
/// As [`householder_apply`]; a `tau` that is not of length min(m, n); where there are new reflectors, an
/// element of `Q^H B` that they are made of and that is NaN or infinite.
pub fn householder_append(packed: &Var, tau: &Var, b: &Var) -> (Var, Var) {
    const NAME: &str = "householder_append";
    called(NAME, [packed, tau, b], || {
        let b = if b.rank() == 1 { b.expand_dims(&[1]) } else { b.clone() };
        let x = aligned(NAME, &[(packed, Kind::Matrix), (tau, Kind::Vector), (&b, Kind::Matrix)])?;
        let [packed, tau, b] = [&x[0], &x[1], &x[2]];
        let (m, k) = (packed.extent(0), tau.extent(0));
        let packed = &checked(NAME, "length of tau", packed, [&k, &Extent::min(&m, &packed.extent(1))])?;
        let below = apply1(&HouseholderApply { adjoint: true }, &[packed, tau, b]);
        below.ok()?;
        let (rest, more) = householder(&below.slice_axis(0, k.clone(), m));
        let right = build::concatenate(&[leading(&below, 0, &k), rest], 0);
        let packed = build::concatenate(&[packed.clone(), right], 1);
        Ok((packed, build::concatenate(&[tau.clone(), more], 0)))
    })
}
