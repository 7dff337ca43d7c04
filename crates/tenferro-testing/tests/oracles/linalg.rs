//! Families of linear algebra. The data have batch axes first; every adapter moves them last and back.

use crate::{
    args::{Args, Families, axis, extents},
    layout::{batch_first, batch_last, moved, row_major},
};
use tenferro_core_ops::Var;
use tenferro_linalg::ops;

pub(crate) const FAMILIES: Families = &[
    ("cond", |a| {
        a.unary(|x| {
            let s = ops::svdvals(&batch_last(x));
            s.reduce_max(Some(&[0])) / s.reduce_min(Some(&[0]))
        })
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
            let wide = |v: &Var| batch_last(&crate::layout::at_least(v, rank));
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
