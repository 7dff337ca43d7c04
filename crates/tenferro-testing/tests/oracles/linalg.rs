//! Families of linear algebra. The data have batch axes first; every adapter moves them last and back.

use crate::{
    args::{Args, Families, axis, extents, lits},
    layout::{at_least, batch_first, batch_last, moved, row_major},
};
use tenferro_core_ops::{Var, build};
use tenferro_linalg::ops;

pub(crate) const FAMILIES: Families = &[
    ("cond", |a| {
        a.unary(|x| {
            let s = ops::svdvals(&batch_last(x));
            s.reduce_max(Some(&[0])) / s.reduce_min(Some(&[0]))
        })
    }),
    ("inv inv_ex", |a| a.unary(|x| batch_first(&inverse(&batch_last(x))))),
    ("lu_factor lu_factor_ex", |a| {
        a.unary(|x| {
            let (_, l, u) = ops::lu(&batch_last(x));
            let [m, n] = [extents(&l)[0], extents(&u)[1]];
            let grown = |v: &Var| {
                let mut high = vec![0; v.rank()];
                (high[0], high[1]) = (m - extents(v)[0], n - extents(v)[1]);
                let zero = Var::scalar(v.dtype(), 0.0.into());
                v.pad(&zero, &lits(&vec![0; v.rank()]), &lits(&high), &vec![0; v.rank()])
            };
            batch_first(&(grown(&l.tril(-1)) + grown(&u)))
        })
    }),
    ("lu_solve", |a| {
        let (left, adjoint) = (a.flag(2, "left", true), a.flag(3, "adjoint", false));
        if a.x.iter().all(|x| !extents(x).contains(&0)) {
            return Err("the record has the packed factors, but not the pivots".into());
        }
        a.binary(|x, b| {
            sided(x, b, left, |packed, b| {
                let one = build::eye(packed.dtype(), &packed.extent(0)).batch_like(packed);
                let x = (packed.tril(-1) + one).matmul(&packed.triu(0));
                let x = if adjoint { x.adjoint() } else { x };
                ops::solve(&if left { x } else { x.matrix_transpose() }, b)
            })
        })
    }),
    ("matrix_power", |a| {
        let n = a.int(1, "n", 1);
        a.unary(|x| {
            let x = batch_last(x);
            let base = if n < 0 { inverse(&x) } else { x.clone() };
            let one = x.like(0.0) + build::eye(x.dtype(), &x.extent(0)).batch_like(&x);
            batch_first(&(0..n.abs()).fold(one, |y, _| y.matmul(&base)))
        })
    }),
    ("solve_triangular", |a| {
        let (upper, left) = (a.flag(2, "upper", false), a.flag(3, "left", true));
        let unit = a.flag(4, "unitriangular", false);
        a.binary(|x, b| {
            sided(x, b, left, |x, b| match left {
                true => triangular_solve(x, b, upper, unit),
                false => triangular_solve(&x.matrix_transpose(), b, !upper, unit),
            })
        })
    }),
    ("tensorinv", |a| {
        let (x, kept) = (a.var(0)?, a.int(1, "ind", 2) as usize);
        let shape = extents(&x);
        let n = shape[..kept].iter().product();
        let shape: Vec<usize> = shape[kept..].iter().chain(&shape[..kept]).copied().collect();
        Ok(vec![row_major(&inverse(&row_major(&x, &[n, n])), &shape)])
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
    ("svd__gauge_ill_defined", |_| Err("svd documents a gauge, so every loss has a derivative".into())),
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

fn inverse(x: &Var) -> Var {
    ops::solve(x, &build::eye(x.dtype(), &x.extent(0)))
}

/// By elimination, which leaves a triangular matrix as it is.
fn triangular_solve(x: &Var, b: &Var, upper: bool, unit: bool) -> Var {
    let (part, diagonal) = if upper { (x.triu(1), x.triu(0)) } else { (x.tril(-1), x.tril(0)) };
    let t = if unit { part + build::eye(x.dtype(), &x.extent(0)).batch_like(x) } else { diagonal };
    ops::solve(&t, b)
}

/// The solution of `A X = B`, or of `X A = B`: then `solve` gets the transpose of B and solves with that of A.
fn sided(x: &Var, b: &Var, left: bool, solve: impl Fn(&Var, &Var) -> Var) -> Var {
    let rank = x.rank().max(b.rank());
    let [x, b] = [x, b].map(|v| batch_last(&at_least(v, rank)));
    if left {
        return batch_first(&solve(&x, &b));
    }
    batch_first(&solve(&x, &b.matrix_transpose()).matrix_transpose())
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
