//! Families that read and write at places that are data.

use crate::{
    args::{Arg, Args, Families, Outputs, axis, extents, lits, present},
    layout::{at_least, row_major},
};
use tenferro_core_ops::{Dim, Var, apply1, broadcast_shape, broadcast_to, ops};
use tenferro_tensor::DType;
use tenferro_testing::{Array, Elem};

pub(crate) const FAMILIES: Families = &[
    ("gather", |a| gathered(a, 1, 2)),
    ("index_add", |a| {
        let x = a.var(0)?;
        let (index, source) = (at_least(&a.var(2)?, 1), at_least(&a.var(3)?, 1));
        let wide = at_least(&x, 1);
        let dim = axis(a.int(1, "dim", 0), wide.rank());
        let alpha = a.value(a.get(4, "alpha")).unwrap_or(Var::scalar(x.dtype(), 1.0.into()));
        let added = index_add(&source, &index, dim, extents(&wide)[dim]);
        Ok(vec![as_rank(&(wide + added * alpha), x.rank())])
    }),
    ("index_put", |a| {
        let Some(Arg::List(indices)) = a.record.args.get(1) else { return Err("no indices".into()) };
        let [Arg::Constant(index)] = &indices[..] else { return Err("more than one index".into()) };
        let x = a.var(0)?;
        let positions = positions(index)?;
        let n = positions.shape[0];
        let mut shape = extents(&x);
        shape[0] = n;
        let values = broadcast_to(&a.var(2)?, &lits(&shape));
        let extent = extents(&x)[0];
        let added = index_add(&values, &present(&positions), 0, extent);
        if a.flag(3, "accumulate", false) {
            return Ok(vec![x + added]);
        }
        let hit = index_add(&values.like(1.0), &present(&positions), 0, extent);
        Ok(vec![hit.real().greater(&hit.real().like(0.0)).select(&added, &x)])
    }),
    ("index_select", |a| {
        let x = a.var(0)?;
        let wide = at_least(&x, 1);
        let dim = axis(a.int(1, "dim", 0), wide.rank());
        Ok(vec![as_rank(&wide.index_select(&a.var(2)?, dim), x.rank())])
    }),
    ("masked_fill", |a| {
        let (mask, value) = (a.var(1)?, a.var(2)?);
        Ok(vec![mask.select(&value, &a.var(0)?)])
    }),
    ("masked_select", |a| {
        let (x, mask) = (a.var(0)?, a.host(1)?);
        let shape = broadcast_shape("masked_select", &[&x.shape(), &lits(&mask.shape)]);
        let shape: Vec<usize> = shape.map_err(|e| e.to_string())?.iter().filter_map(Dim::as_lit).collect();
        let total = shape.iter().product();
        let flat = row_major(&broadcast_to(&x, &lits(&shape)), &[total]);
        // Row-major positions of the mask: its reversed axes in column-major order.
        let mask = mask.broadcast(&shape).permuted(&(0..shape.len()).rev().collect::<Vec<_>>());
        Ok(vec![flat.index_select(&present(&positions(&mask.reshape(&[total]))?), 0)])
    }),
    ("scatter", |a| {
        let (x, dim, index, source) = scattered(a)?;
        let added = scatter_add(&source, &index, dim, &extents(&x));
        let hit = scatter_add(&source.real().like(1.0), &index, dim, &extents(&x));
        let Some(Arg::Constant(host)) = a.record.args.get(2) else { return Err("no constant index".into()) };
        if repeats(host, axis(a.int(1, "dim", 0), host.rank().max(1))) {
            return Err("two values for one place".into());
        }
        Ok(vec![as_rank(&hit.greater(&hit.like(0.0)).select(&added, &x), a.x[0].rank())])
    }),
    ("scatter_add", |a| {
        let (x, dim, index, source) = scattered(a)?;
        let added = scatter_add(&source, &index, dim, &extents(&x));
        Ok(vec![as_rank(&(x + added), a.x[0].rank())])
    }),
    ("take", |a| {
        let x = a.var(0)?;
        let n = extents(&x).iter().product::<usize>();
        let index = from_the_start(a.host(1)?, n);
        Ok(vec![row_major(&x, &[n]).take_axis(&present(&index), 0)])
    }),
    ("take_along_dim", |a| {
        let x = a.var(0)?;
        let dim = axis(a.int(2, "dim", 0), x.rank());
        let index = present(&from_the_start(a.host(1)?, extents(&x)[dim]));
        // Both are broadcast along the other axes.
        let (mut own, mut places) = (extents(&x), extents(&index));
        for i in (0..own.len()).filter(|&i| i != dim) {
            let n = if own[i] == 1 { places[i] } else { own[i] };
            (own[i], places[i]) = (n, n);
        }
        Ok(vec![broadcast_to(&x, &lits(&own)).gather(&broadcast_to(&index, &lits(&places)), dim)])
    }),
];

/// Without leading axes of extent 1 beyond a rank.
fn as_rank(x: &Var, rank: usize) -> Var {
    x.squeeze(&(0..x.rank() - rank).collect::<Vec<_>>())
}

/// Positions of which PyTorch counts those below 0 from the end.
fn from_the_start(index: &Array, extent: usize) -> Array {
    index.map(DType::I64, |e| Elem::Int(if e.int() < 0 { e.int() + extent as i64 } else { e.int() }))
}

/// Where a mask is true, or the positions themselves.
fn positions(index: &Array) -> Result<Array, String> {
    if index.rank() != 1 {
        return Err(format!("index of rank {}", index.rank()));
    }
    if index.dtype != DType::Bool {
        return Ok(index.cast(DType::I64));
    }
    let at: Vec<i64> =
        (0..index.data.len()).filter(|&i| index.data[i].int() != 0).map(|i| i as i64).collect();
    Ok(Array::ints(DType::I64, &[at.len()], &at))
}

/// The part of x that the index covers along the other axes.
fn covered(x: &Var, shape: &[usize], dim: usize) -> Var {
    let mut limits = extents(x);
    for i in (0..limits.len()).filter(|&i| i != dim) {
        limits[i] = limits[i].min(shape[i]);
    }
    x.slice(&vec![0; limits.len()], &limits, &vec![1; limits.len()])
}

fn gathered(a: &Args, dim: usize, index: usize) -> Outputs {
    let x = a.var(0)?;
    let (wide, index) = (at_least(&x, 1), at_least(&a.var(index)?, 1));
    if wide.rank() != index.rank() {
        return Err(format!("index of rank {} for a tensor of rank {}", index.rank(), wide.rank()));
    }
    let dim = axis(a.int(dim, "dim", 0), wide.rank());
    let y = covered(&wide, &extents(&index), dim).gather(&index, dim);
    Ok(vec![as_rank(&y, x.rank())])
}

/// The operand, axis, index and source of a scatter; of the source, what the index covers.
fn scattered(a: &Args) -> Result<(Var, usize, Var, Var), String> {
    let (x, index) = (at_least(&a.var(0)?, 1), at_least(&a.var(2)?, 1));
    let dim = axis(a.int(1, "dim", 0), x.rank());
    let source = at_least(&a.var(3)?, 1);
    let shape = extents(&index);
    let source = source.slice(&vec![0; shape.len()], &shape, &vec![1; shape.len()]);
    Ok((x, dim, index, source))
}

/// Whether two entries along an axis are the same.
fn repeats(index: &Array, dim: usize) -> bool {
    if index.rank() == 0 {
        return false;
    }
    let mut seen = std::collections::HashSet::new();
    let mut found = false;
    Array::from_fn(DType::I64, &index.shape, |i| {
        let mut place = i.to_vec();
        place[dim] = index.at(i).int() as usize;
        found |= !seen.insert(place);
        index.at(i)
    });
    found
}

fn index_add(source: &Var, index: &Var, dim: usize, extent: usize) -> Var {
    apply1(&ops::IndexAdd { axis: dim, extent: [Dim::Lit(extent)] }, &[source, &index.cast(DType::I64)])
}

/// `source` added at the places of the index, in zeros of this shape.
fn scatter_add(source: &Var, index: &Var, dim: usize, shape: &[usize]) -> Var {
    let op = ops::ScatterAdd { axis: dim, extent: [Dim::Lit(shape[dim])] };
    let y = apply1(&op, &[source, &index.cast(DType::I64)]);
    let high: Vec<usize> = extents(&y).iter().zip(shape).map(|(n, m)| m - n).collect();
    let zero = Var::scalar(y.dtype(), 0.0.into());
    y.pad(&zero, &lits(&vec![0; shape.len()]), &lits(&high), &vec![0; shape.len()])
}
