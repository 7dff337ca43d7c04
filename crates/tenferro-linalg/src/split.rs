//! A matrix split into two factors of low rank, `A = A1 A2 + R`, as tensor networks split a tensor.
//!
//! The factors are `A1 = U s^1/2` and `A2 = s^1/2 V^H` of a truncated singular value decomposition, but their
//! derivative is that of the factors up to a unitary basis of the bond between them, which is a gauge: it is
//! transported along without ever asking how the kept singular values differ. So it is right at every
//! degeneracy of the kept ones among themselves, and of the discarded ones; only the gap at the cut matters.
//!
//! What characterises the factors, in any such gauge, is `A1^H R = 0`, `R A2^H = 0` and the balance
//! `A1^H A1 = A2 A2^H`: the metric of the bond matters to whatever truncates it next. With the
//! pseudo-inverses, the projectors `P = A1 A1^+` and `Q = A2^+ A2` and the Gram matrices `G1 = A1^H A1` and
//! `G2 = A2 A2^H`, both G,
//!
//! ```text
//! dA1 = A1 X + W1        X + Y = A1^+ dA A2^+        W1 - R W2^H G2^-1 = (1 - P) dA A2^+
//! dA2 = Y A2 + W2        G X = Y G                   W2 - G1^-1 W1^H R = A1^+ dA (1 - Q)
//! ```
//!
//! where the two equations in the middle are the Lyapunov equation `G X + X G = A1^+ dA A2^+ G`.
//! All hold in a neighbourhood, so they may be differentiated again. Where they are evaluated, both Gram
//! matrices are `diag(s)` and R is diagonal in the discarded singular vectors, so [`GramSolve`],
//! [`GramLyapunov`] and [`Couple`] solve their equations by division. The vectors and values are operands
//! that no rule differentiates.

use crate::{
    batch::{expect_matrix, expect_stack},
    matrix::{floating, leading, over_columns, over_rows, scale_columns, scale_rows},
    named::{called, outputs},
    stop_gradient::stop_gradient,
    svd::svd,
    truncate::{Kept, Limits},
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Arg, Aval, Extent, Fresh, Outs, Primitive, Saves, Tangent, Var, apply_n, apply1,
    ops::{FLOATS, expect},
    or_zero,
};
use tenferro_tensor::{Error, Result};

/// The factors of `A = A1 A2 + R`. Inputs: A; then, found without differentiation, U and Vh of its singular
/// value decomposition, the discarded singular values with 0 in place of the kept ones, the r kept ones, and
/// their reciprocals (0 where they are 0). Outputs: A1, `m x r`, and A2, `r x n`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Split;

impl Primitive for Split {
    const NAME: &'static str = "split";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 6, FLOATS)?;
        let [m, n] = expect_matrix(Self::NAME, x, 0)?;
        expect_vectors(Self::NAME, x, [1, 2, 3])?;
        let r = expect_kept(Self::NAME, x, [4, 5])?;
        let of = |p, q| Aval::new(x[0].dtype, [p, q].into_iter().chain(&x[0].shape[2..]).cloned());
        Ok(smallvec![of(m, r), of(r, n)])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let (r, root) = (x[4].extent(0), x[4].sqrt());
        Some(smallvec![
            scale_columns(&leading(&x[1], 1, &r), &root),
            scale_rows(&root, &leading(&x[2], 0, &r))
        ])
    }
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let Some(da) = &t[0] else { return smallvec![None, None] };
        let [a, u, vh, discarded, kept, inverse] = [0, 1, 2, 3, 4, 5].map(|i| &x[i]);
        let [left, right] = [&y[0], &y[1]];
        let solve = |f: &Var, b: &Var| apply1(&GramSolve, &[f, inverse, b]);
        // dA A2^+, A1^+ dA and A1^+ dA A2^+.
        let da_right = solve(&right.adjoint(), &right.matmul(&da.adjoint())).adjoint();
        let left_da = solve(left, &left.adjoint().matmul(da));
        let middle = solve(left, &left.adjoint().matmul(&da_right));
        let (b1, b2) = (&da_right - &left.matmul(&middle), &left_da - &middle.matmul(right));
        let gram = left.adjoint().matmul(left);
        let turn = apply1(&GramLyapunov, &[left, kept, &middle.matmul(&gram)]);
        let (inside1, inside2) = (left.matmul(&turn), (&middle - &turn).matmul(right));
        let w = apply_n(
            &Couple { adjoint: false },
            &[a, left, right, u, vh, discarded, kept, inverse, &b1, &b2],
            2,
        );
        smallvec![Some(&w[0] + &inside1), Some(&w[1] + &inside2)]
    }
    fn saves(&self) -> Saves {
        Saves::ALL
    }
}

/// Checks U, Vh and the discarded singular values of the matrices of operand 0: the operands `[u, vh, s]`.
fn expect_vectors<D: Extent>(op: &'static str, x: &[&Aval<D>], [u, vh, s]: [usize; 3]) -> Result<()> {
    let [m, n] = expect_matrix(op, x, 0)?;
    let (dtype, batch, k) = (x[0].dtype, &x[0].shape[2..], &D::min(m, n));
    expect_stack(op, "U", x[u], dtype, &[m, k], batch)?;
    expect_stack(op, "Vh", x[vh], dtype, &[k, n], batch)?;
    expect_stack(op, "discarded singular values", x[s], dtype.real(), &[k], batch)
}

/// Checks the kept singular values of the matrices of operand 0 and their reciprocals, the operands `at`, and
/// gives their number.
fn expect_kept<'a, D: Extent>(op: &'static str, x: &[&'a Aval<D>], at: [usize; 2]) -> Result<&'a D> {
    let Some(r) = x[at[0]].shape.first() else {
        return Err(Error::rank(op, "rank of the kept singular values", 0, "at least 1"));
    };
    let (dtype, batch) = (x[0].dtype.real(), &x[0].shape[2..]);
    expect_stack(op, "kept singular values", x[at[0]], dtype, &[r], batch)?;
    expect_stack(op, "reciprocals of the kept singular values", x[at[1]], dtype, &[r], batch)?;
    Ok(r)
}

/// `X = (F^H F)^-1 B` where `F^H F` is diagonal. Inputs: F, the reciprocals of the diagonal, which no rule
/// differentiates, and B.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GramSolve;

impl Primitive for GramSolve {
    const NAME: &'static str = "gram_solve";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 3, FLOATS)?;
        let [_, r] = expect_matrix(Self::NAME, x, 0)?;
        let [_, columns] = expect_matrix(Self::NAME, x, 2)?;
        let (dtype, batch) = (x[0].dtype, &x[0].shape[2..]);
        expect_stack(Self::NAME, "reciprocals", x[1], dtype.real(), &[r], batch)?;
        expect_stack(Self::NAME, "right-hand side", x[2], dtype, &[r, columns], batch)?;
        Ok(smallvec![x[2].clone()])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        Some(smallvec![scale_rows(&x[1], &x[2])])
    }
    // G X = B gives G dX = dB - dG X with dG = dF^H F + F^H dF.
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let db = match (&t[0], &t[2]) {
            (Some(df), db) => Some(minus(db, &gram_tangent(&x[0], df, &y[0]))),
            (None, db) => db.clone(),
        };
        smallvec![db.map(|db| apply1(self, &[&x[0], &x[1], &db]))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let pulled = ct[0].as_ref().map(|ct| apply1(self, &[&x[0].known(), &x[1].known(), ct]));
        smallvec![None, None, pulled]
    }
    fn saves(&self) -> Saves {
        Saves::ALL
    }
}

/// `X` with `F^H F X + X F^H F = C` where `F^H F` is diagonal. Inputs: F, the diagonal, which no rule
/// differentiates, and C.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GramLyapunov;

impl Primitive for GramLyapunov {
    const NAME: &'static str = "gram_lyapunov";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 3, FLOATS)?;
        let [_, r] = expect_matrix(Self::NAME, x, 0)?;
        let (dtype, batch) = (x[0].dtype, &x[0].shape[2..]);
        expect_stack(Self::NAME, "diagonal", x[1], dtype.real(), &[r], batch)?;
        expect_stack(Self::NAME, "right-hand side", x[2], dtype, &[r, r], batch)?;
        Ok(smallvec![x[2].clone()])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let sum = &over_rows(&x[1]) + &over_columns(&x[1]);
        let zero = sum.equal(&sum.like(0.0));
        let inverse = zero.select(&sum.like(0.0), &zero.select(&sum.like(1.0), &sum).recip());
        Some(smallvec![&x[2] * &inverse])
    }
    // G dX + dX G = dC - dG X - X dG
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let dc = match &t[0] {
            Some(df) => {
                let left = gram_tangent(&x[0], df, &y[0]);
                let right = gram_tangent(&x[0], df, &y[0].adjoint()).adjoint();
                Some(minus(&t[2], &(&left + &right)))
            }
            None => t[2].clone(),
        };
        smallvec![dc.map(|dc| apply1(self, &[&x[0], &x[1], &dc]))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let pulled = ct[0].as_ref().map(|ct| apply1(self, &[&x[0].known(), &x[1].known(), ct]));
        smallvec![None, None, pulled]
    }
    fn saves(&self) -> Saves {
        Saves::ALL
    }
}

/// `(dF^H F + F^H dF) X`.
fn gram_tangent(f: &Var, df: &Var, x: &Var) -> Var {
    &df.adjoint().matmul(&f.matmul(x)) + &f.adjoint().matmul(&df.matmul(x))
}

fn minus(a: &Tangent, b: &Var) -> Var {
    match a {
        Some(a) => a - b,
        None => -b,
    }
}

/// The solution (W1, W2) of
///
/// ```text
/// W1 - R W2^H G2^-1 = B1
/// W2 - G1^-1 W1^H R = B2
/// ```
///
/// with `R = A - A1 A2`; if `adjoint`, of the adjoint system, in which G1 and G2 change places. It is linear
/// over the reals in (B1, B2). Inputs: A, A1, A2; U, Vh, the discarded and the kept singular values and the
/// reciprocals of those as for [`Split`], which no rule differentiates; B1, B2.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Couple {
    /// Whether the system is the adjoint one.
    pub adjoint: bool,
}

impl Primitive for Couple {
    const NAME: &'static str = "couple";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 10, FLOATS)?;
        let [m, n] = expect_matrix(Self::NAME, x, 0)?;
        expect_vectors(Self::NAME, x, [3, 4, 5])?;
        let r = expect_kept(Self::NAME, x, [6, 7])?;
        for (left, right) in [(1, 2), (8, 9)] {
            expect_stack(Self::NAME, "left factor", x[left], x[0].dtype, &[m, r], &x[0].shape[2..])?;
            expect_stack(Self::NAME, "right factor", x[right], x[0].dtype, &[r, n], &x[0].shape[2..])?;
        }
        Ok(smallvec![x[8].clone(), x[9].clone()])
    }
    // In the basis of the singular vectors, with t_i discarded and s_j kept, and p = t_i / s_j, the elements
    // w1 = u_i^H W1 e_j and w2 = conj(e_j^H W2 v_i) obey w1 - p w2 = b1 and w2 - p w1 = b2.
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let [u, vh, discarded, kept, inverse, b1, b2] = [3, 4, 5, 6, 7, 8, 9].map(|i| &x[i]);
        let (t, s) = (over_rows(discarded), over_columns(kept));
        let ratio = &t * &over_columns(inverse);
        let gap = &(&s - &t) * &over_columns(inverse);
        // A cut through a multiplet is arbitrary: no coupling keeps the derivative finite.
        let apart = gap.greater(&gap.like(0.0));
        let denominator = &gap * &(&ratio + 1.0);
        let factor =
            apart.select(&(&ratio / &apart.select(&denominator, &denominator.like(1.0))), &gap.like(0.0));
        let c1 = u.adjoint().matmul(b1);
        let c2 = vh.matmul(&b2.adjoint());
        let d1 = &factor * &(&(&ratio * &c1) + &c2);
        let d2 = &factor * &(&(&ratio * &c2) + &c1);
        Some(smallvec![b1 + &u.matmul(&d1), b2 + &d2.adjoint().matmul(vh)])
    }
    // The system for (dW1, dW2) has what changes in it, applied to (W1, W2), on its right-hand side.
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let [a, left, right, inverse] = [0, 1, 2, 7].map(|i| &x[i]);
        let (w1, w2) = (&y[0], &y[1]);
        let (mut b1, mut b2) = (t[8].clone(), t[9].clone());
        let dr = residual_tangent(left, right, t);
        if dr.is_some() || t[1].is_some() || t[2].is_some() {
            let right_h = right.adjoint();
            let d_right_h = t[2].as_ref().map(Var::adjoint);
            let grams = [(left, &t[1]), (&right_h, &d_right_h)];
            let [second, first] = if self.adjoint { [grams[1], grams[0]] } else { grams };
            let solve = |f: &Var, b: &Var| apply1(&GramSolve, &[f, inverse, b]);
            let z2 = solve(first.0, w2).adjoint();
            let z1 = solve(second.0, &w1.adjoint());
            let r = a - &left.matmul(right);
            let add = |b: &mut Tangent, v: Var| *b = Some(b.as_ref().map_or(v.clone(), |b| b + &v));
            if let Some(dr) = &dr {
                add(&mut b1, dr.matmul(&z2));
                add(&mut b2, z1.matmul(dr));
            }
            if let Some(df) = first.1 {
                let moved = gram_tangent(first.0, df, &r.matmul(&z2).adjoint());
                add(&mut b1, -&solve(first.0, &moved).adjoint());
            }
            if let Some(df) = second.1 {
                add(&mut b2, -&solve(second.0, &gram_tangent(second.0, df, &z1.matmul(&r))));
            }
        }
        if b1.is_none() && b2.is_none() {
            return smallvec![None, None];
        }
        self.solve(|i| x[i].clone(), or_zero(b1, w1), or_zero(b2, w2)).into_iter().map(Some).collect()
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let adjoint = Couple { adjoint: !self.adjoint };
        let zero = |i: usize| Var::full(&x[i].aval(), tenferro_tensor::C64::new(0.0, 0.0));
        let [c1, c2] = [0, 1].map(|i| ct[i].clone().unwrap_or_else(|| zero(8 + i)));
        let mut g = adjoint.solve(|i| x[i].known(), c1, c2).into_iter();
        let mut pulled: Outs<Tangent> = smallvec![None; 8];
        pulled.extend([8, 9].map(|i| g.next().filter(|_| x[i].is_linear())));
        pulled
    }
    fn saves(&self) -> Saves {
        Saves::ALL
    }
}

impl Couple {
    fn solve(&self, x: impl Fn(usize) -> Var, b1: Var, b2: Var) -> Outs<Var> {
        let x = [0, 1, 2, 3, 4, 5, 6, 7].map(x);
        let mut operands: Vec<&Var> = x.iter().collect();
        operands.extend([&b1, &b2]);
        apply_n(self, &operands, 2)
    }
}

/// `dA - dA1 A2 - A1 dA2`.
fn residual_tangent(left: &Var, right: &Var, t: &[Tangent]) -> Tangent {
    let mut dr = t[0].clone();
    if let Some(d) = &t[1] {
        dr = Some(minus(&dr, &d.matmul(right)));
    }
    if let Some(d) = &t[2] {
        dr = Some(minus(&dr, &left.matmul(d)));
    }
    dr
}

/// `(A1, A2)` with `A ~ A1 A2`, the best approximation of the rank r that `t` chooses: `A1 = U s^1/2` is
/// `m x r`, `A2 = s^1/2 V^H` is `r x n`.
///
/// A loss must not depend on the basis of the bond, that is on which unitary T turns the factors into
/// `A1 T^H` and `T A2` (contracting the bond, or splitting over it again, here or later, removes it); then
/// its derivatives of any order are right, whatever the degeneracies of the singular values, except for a cut
/// through a multiplet, see
/// [`Truncation`](crate::Truncation). In a batch r is the largest rank that one of the matrices needs; the
/// factors of the others have zeros beyond theirs.
///
/// # Errors
/// As [`svd_truncated`](crate::ops::svd_truncated).
pub fn split(a: &Var, t: impl Into<Limits>) -> (Var, Var) {
    called(Split::NAME, [a], || {
        let a = floating(a);
        let (u, s, vh) = svd(&stop_gradient(&a));
        let cut = Kept::new(&s, &t.into())?;
        let kept = cut.kept(&s);
        let zero = kept.equal(&kept.like(0.0));
        let inverse = zero.select(&kept.like(0.0), &zero.select(&kept.like(1.0), &kept).recip());
        Ok(outputs(&Split, &[&a, &u, &vh, &cut.discarded(&s), &kept, &inverse]).into())
    })
}
