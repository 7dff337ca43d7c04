//! Families of linear algebra. The data have batch axes first; every adapter moves them last and back.

use crate::{
    args::{Args, Families, axis, extents, lits},
    layout::{at_least, batch_first, batch_last, moved, row_major},
    pivots,
};
use tenferro_core_ops::{Var, build};
use tenferro_linalg::{MatrixNorm, System, Tolerance, Triangular, ops};

pub(crate) const FAMILIES: Families = &[
    // A function of the lower triangle; the records are of `A + A^H`, as those of all Hermitian families.
    ("cholesky cholesky_ex", |a| {
        let upper = a.flag(9, "upper", false);
        a.unary(|x| {
            let l = ops::cholesky(&hermitian(x));
            batch_first(&if upper { l.adjoint() } else { l })
        })
    }),
    ("cholesky_inverse", |a| {
        let upper = a.flag(1, "upper", false);
        a.unary(|x| {
            let l = lower_factor(x, upper);
            batch_first(&ops::cholesky_solve(&l, &build::eye(l.dtype(), &l.extent(0)), System::left()))
        })
    }),
    ("cholesky_solve", |a| {
        let upper = a.flag(2, "upper", false);
        a.binary(|b, x| {
            batch_first(&ops::cholesky_solve(&lower_factor(x, upper), &batch_last(b), System::left()))
        })
    }),
    ("cond", |a| a.unary(|x| ops::cond(&batch_last(x), MatrixNorm::Two))),
    ("det", |a| a.unary(|x| ops::det(&batch_last(x)))),
    // In the order of LAPACK, which is ours for these matrices.
    ("eig__values_vectors_abs", |a| {
        let (w, v) = ops::eig(&batch_last(&a.var(0)?));
        Ok(vec![vector_first(&w), batch_first(&v.abs())])
    }),
    ("eigvals", |a| a.unary(|x| vector_first(&ops::eigvals(&batch_last(x))))),
    ("eigh__values_vectors_abs", |a| {
        let (w, v) = ops::eigh(&hermitian(&a.var(0)?));
        Ok(vec![vector_first(&w), batch_first(&v.abs())])
    }),
    ("eigvalsh", |a| a.unary(|x| vector_first(&ops::eigvalsh(&hermitian(x))))),
    ("householder_product", |a| {
        a.binary(|x, tau| batch_first(&ops::householder_product(&batch_last(x), &vector_last(tau))))
    }),
    ("inv inv_ex", |a| a.unary(|x| batch_first(&ops::inv(&batch_last(x))))),
    ("lstsq lstsq_grad_oriented lstsq/grad_oriented", |a| {
        let (a0, b) = (batch_last(&a.var(0)?), batch_last(&a.var(1)?));
        let (x, residuals, _, _) = ops::lstsq(&a0, &b, Tolerance::default());
        // PyTorch has no residuals of square and wide matrices, nor with some of its drivers.
        let none = a.record.probes.iter().any(|p| p.cotangents.get(1).is_some_and(|ct| ct.shape == [0]));
        let residuals = match none {
            true => residuals.reshape(&lits(&[extents(&residuals).iter().product()])).slice_axis(0, 0, 0),
            false => vector_first(&residuals),
        };
        Ok(vec![batch_first(&x), residuals])
    }),
    ("lu_factor lu_factor_ex", |a| a.unary(|x| batch_first(&ops::lu_factor(&batch_last(x)).0))),
    ("lu_solve", |a| {
        let (left, adjoint) = (a.flag(2, "left", true), a.flag(3, "adjoint", false));
        let p = pivots::recovered(a, left, adjoint)?;
        let system = if left { System::left() } else { System::right() };
        let system = if adjoint { system.adjoint() } else { system };
        a.binary(|packed, b| batch_first(&ops::lu_solve(&batch_last(packed), &p, &batch_last(b), system)))
    }),
    ("matrix_exp", |a| a.unary(|x| batch_first(&ops::matrix_exp(&batch_last(x))))),
    ("matrix_power", |a| {
        let n = a.int(1, "n", 1);
        a.unary(|x| batch_first(&ops::matrix_power(&batch_last(x), n)))
    }),
    ("pinv", |a| {
        let tolerance = Tolerance { rtol: a.named("rtol").number(), ..Tolerance::default() };
        a.unary(|x| batch_first(&ops::pinv(&batch_last(x), tolerance)))
    }),
    ("pinv_hermitian pinv/hermitian", |a| {
        a.unary(|x| batch_first(&ops::pinv(&hermitian(x), Tolerance::default())))
    }),
    ("pinv_singular pinv/singular", |a| {
        a.binary(|x, y| {
            let product = batch_last(x).matmul(&batch_last(y).matrix_transpose());
            batch_first(&ops::pinv(&product, Tolerance::default()))
        })
    }),
    ("qr", |a| {
        let (q, r) = ops::qr(&batch_last(&a.var(0)?));
        Ok(vec![batch_first(&q), batch_first(&r)])
    }),
    ("slogdet", |a| {
        let (sign, log) = ops::slogdet(&batch_last(&a.var(0)?));
        Ok(vec![sign, log])
    }),
    ("solve_triangular", |a| {
        let form = if a.flag(2, "upper", false) { Triangular::upper() } else { Triangular::lower() };
        let form = if a.flag(4, "unitriangular", false) { form.unit_diagonal() } else { form };
        let form = if a.flag(3, "left", true) { form } else { form.right() };
        a.binary(|x, b| {
            let rank = x.rank().max(b.rank());
            let [x, b] = [x, b].map(|v| batch_last(&at_least(v, rank)));
            batch_first(&ops::triangular_solve(&x, &b, form))
        })
    }),
    ("tensorinv", |a| {
        let (x, kept) = (a.var(0)?, a.int(1, "ind", 2) as usize);
        let shape = extents(&x);
        let n = shape[..kept].iter().product();
        let shape: Vec<usize> = shape[kept..].iter().chain(&shape[..kept]).copied().collect();
        Ok(vec![row_major(&ops::inv(&row_major(&x, &[n, n])), &shape)])
    }),
    ("lu", |a| {
        let (_, l, u) = ops::lu(&batch_last(&a.var(0)?));
        Ok(vec![batch_first(&l), batch_first(&u)])
    }),
    ("solve solve_ex", |a| {
        a.binary(|x, b| {
            // A vector for every matrix, or matrices.
            let vectors = b.rank() + 1 == x.rank() && extents(x)[..b.rank()] == extents(b)[..];
            if vectors && b.rank() > 1 {
                let y = ops::solve(&batch_last(x), &batch_last(&b.expand_dims(&[b.rank()])));
                let y = batch_first(&y);
                return y.squeeze(&[y.rank() - 1]);
            }
            if vectors || b.rank() == 1 {
                return ops::solve(&batch_last(x), b);
            }
            let rank = x.rank().max(b.rank());
            let wide = |v: &Var| batch_last(&at_least(v, rank));
            batch_first(&ops::solve(&wide(x), &wide(b)))
        })
    }),
    ("svdvals", |a| a.unary(|x| vector_first(&ops::svdvals(&batch_last(x))))),
    ("svd__s", |a| {
        let [_, s, _] = svd(a)?;
        Ok(vec![vector_first(&s)])
    }),
    ("svd__u_abs", |a| {
        let [u, _, _] = svd(a)?;
        Ok(vec![batch_first(&u.abs())])
    }),
    ("svd__vh_abs", |a| {
        let [_, s, vh] = svd(a)?;
        Ok(vec![vector_first(&s), batch_first(&vh.abs())])
    }),
    ("svd__uvh_product", |a| {
        let [u, s, vh] = svd(a)?;
        Ok(vec![vector_first(&s), batch_first(&u.matmul(&vh))])
    }),
    ("tensorsolve", |a| {
        let (x, b) = (a.var(0)?, a.var(1)?);
        let x = match a.get(2, "dims").ints() {
            Some(dims) => {
                let from: Vec<usize> = dims.into_iter().map(|d| axis(d, x.rank())).collect();
                let to: Vec<usize> = (x.rank() - from.len()..x.rank()).collect();
                moved(&x, &from, &to)
            }
            None => x,
        };
        let shape = extents(&x);
        let unknown = &shape[b.rank()..];
        let n = unknown.iter().product();
        let y = ops::solve(&row_major(&x, &[n, n]), &row_major(&b, &[n]));
        Ok(vec![row_major(&y, unknown)])
    }),
];

/// `A + A^H` with batch axes last.
fn hermitian(x: &Var) -> Var {
    let x = batch_last(x);
    &x + x.adjoint()
}

/// L with batch axes last, from itself or from its adjoint.
fn lower_factor(x: &Var, upper: bool) -> Var {
    let x = batch_last(x);
    if upper { x.adjoint() } else { x }
}

/// Vectors with batch axes first as vectors with batch axes last.
fn vector_last(s: &Var) -> Var {
    moved(s, &[s.rank() - 1], &[0])
}

/// Vectors with batch axes last as vectors with batch axes first.
fn vector_first(s: &Var) -> Var {
    moved(s, &[0], &[s.rank() - 1])
}

/// U, s and Vh, cut to as many columns and rows as there are singular values.
fn svd(a: &Args) -> Result<[Var; 3], String> {
    let x = batch_last(&a.var(0)?);
    let full = a.flag(1, "full_matrices", true);
    let (u, s, vh) = if full { ops::svd_full(&x) } else { ops::svd(&x) };
    let k = extents(&s)[0];
    Ok([u.slice_axis(1, 0, k), s, vh.slice_axis(0, 0, k)])
}
