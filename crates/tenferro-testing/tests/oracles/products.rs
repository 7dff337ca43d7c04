//! Families that sum products: matrix products, contractions, einsum.

use crate::{
    args::{Arg, Args, Families, Outputs, axis, extents},
    layout::{at_least, batch_first, batch_last},
};
use tenferro_core_ops::{Var, build};
use tenferro_einsum::Einsum;

pub(crate) const FAMILIES: Families = &[
    ("addmm addmm/decomposed baddbmm", |a| {
        let factor = |name| a.value(a.named(name)).unwrap_or(a.x[0].like(1.0).reduce_max(None));
        let product = product(&a.var(1)?, &a.var(2)?);
        let scale = |v: Var, name| match a.named(name) {
            Arg::Null => v,
            _ => v * factor(name),
        };
        Ok(vec![scale(a.var(0)?, "beta") + scale(product, "alpha")])
    }),
    ("cross", |a| {
        let dim = a.int(2, "dim", -1);
        a.binary(|x, y| {
            let dim = axis(dim, x.rank().max(y.rank()));
            let part = |v: &Var, i: usize| v.slice_axis(dim, i, i + 1);
            let minor = |i, j| part(x, i) * part(y, j) - part(x, j) * part(y, i);
            build::concatenate(&[minor(1, 2), minor(2, 0), minor(0, 1)], dim)
        })
    }),
    ("dot", |a| a.binary(|x, y| x.tensordot(y, 1))),
    ("einsum", |a| {
        let text = a.text(1, "equation").ok_or("no notation")?;
        einsum(text, &a.vars(0)?)
    }),
    ("inner", |a| {
        a.binary(|x, y| match (x.rank(), y.rank()) {
            (0, _) | (_, 0) => x * y,
            (p, q) => x.tensordot_axes(y, &[p - 1], &[q - 1]),
        })
    }),
    ("matmul mm mv", |a| a.binary(product)),
    ("multi_dot", |a| {
        let x = match a.record.args.first() {
            Some(Arg::List(_)) => a.vars(0)?,
            _ => (0..a.record.args.len()).map(|i| a.var(i)).collect::<Result<_, _>>()?,
        };
        let mut factors = x.into_iter();
        let first = factors.next().ok_or("no factors")?;
        Ok(vec![factors.fold(first, |y, x| product(&y, &x))])
    }),
    ("tensordot", |a| {
        let (x, y) = (a.var(0)?, a.var(1)?);
        Ok(vec![match a.get(2, "dims") {
            Arg::List(list) => {
                let axes = |i: usize, rank| -> Vec<usize> {
                    list[i].ints().unwrap_or_default().into_iter().map(|d| axis(d, rank)).collect()
                };
                x.tensordot_axes(&y, &axes(0, x.rank()), &axes(1, y.rank()))
            }
            n => x.tensordot(&y, n.int().ok_or("no number of axes")? as usize),
        }])
    }),
    ("vdot", |a| a.binary(|x, y| x.conj().tensordot(y, 1))),
    ("vecdot", vecdot),
];

/// The einsum of a text.
pub(crate) fn einsum(text: &str, x: &[Var]) -> Outputs {
    Ok(vec![match Einsum::parse(text) {
        Ok(op) => tenferro_einsum::einsum(&op, &x.iter().collect::<Vec<_>>()),
        Err(e) => Var::Failed(e),
    }])
}

/// PyTorch's matrix product: of vectors, matrices, and batches of matrices whose batch axes come first.
pub(crate) fn product(x: &Var, y: &Var) -> Var {
    match (x.rank(), y.rank()) {
        (1, 1) => x.tensordot(y, 1),
        (1, _) => {
            let z = product(&x.expand_dims(&[0]), y);
            z.squeeze(&[z.rank() - 2])
        }
        (_, 1) => {
            let z = product(x, &y.expand_dims(&[1]));
            z.squeeze(&[z.rank() - 1])
        }
        (p, q) => {
            let rank = p.max(q);
            let (x, y) = (batch_last(&at_least(x, rank)), batch_last(&at_least(y, rank)));
            batch_first(&x.matmul(&y))
        }
    }
}

/// `sum conj(x) y` along an axis, by an einsum over the broadcast operands.
fn vecdot(a: &Args) -> Outputs {
    let dim = a.int(2, "dim", -1);
    let (x, y) = (a.var(0)?, a.var(1)?);
    let rank = x.rank().max(y.rank());
    let dim = axis(dim, rank);
    if extents(&x) != extents(&y) {
        return Ok(vec![(x.conj() * y).reduce_sum(Some(&[dim]))]);
    }
    let all: Vec<u32> = (0..rank as u32).collect();
    let rest: Vec<u32> = all.iter().copied().filter(|&l| l as usize != dim).collect();
    let op = Einsum::labels(&[&all, &all], &rest).map_err(|e| e.to_string())?;
    Ok(vec![tenferro_einsum::einsum(&op, &[&x.conj(), &y])])
}
