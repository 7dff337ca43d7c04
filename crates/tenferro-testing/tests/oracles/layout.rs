//! Families that move elements to places known beforehand.

use crate::args::{Arg, Args, Families, Outputs, axis, extents, lits};
use tenferro_core_ops::{Var, broadcast_to, build};

pub(crate) const FAMILIES: Families = &[
    ("broadcast_to expand", |a| {
        let shape = a.ints(1, "size")?;
        let x = a.var(0)?;
        let own = extents(&x);
        let skip = shape.len() - own.len();
        let extent = |(i, n): (usize, &i64)| if *n < 0 { own[i - skip] } else { *n as usize };
        let shape: Vec<usize> = shape.iter().enumerate().map(extent).collect();
        Ok(vec![broadcast_to(&x, &lits(&shape))])
    }),
    ("cat", |a| {
        // PyTorch lets an empty vector stand beside tensors of any rank.
        let x: Vec<Var> = a.vars(0)?;
        let rank = x.iter().map(Var::rank).max().unwrap_or(0);
        if x.iter().any(|v| v.rank() != rank) {
            return Err("ranks differ".into());
        }
        Ok(vec![build::concatenate(&x, axis(a.int(1, "dim", 0), rank))])
    }),
    ("constant_pad_nd nn.functional.pad/constant", |a| {
        let value = match a.record.args.last() {
            Some(v @ (Arg::Number(_) | Arg::Complex(_))) => a.value(v)?,
            _ => Var::scalar(a.x[0].dtype(), 0.0.into()),
        };
        pad(a, |x, dim, low, high| {
            let (mut lows, mut highs) = (vec![0; x.rank()], vec![0; x.rank()]);
            (lows[dim], highs[dim]) = (low, high);
            x.pad(&value, &lits(&lows), &lits(&highs), &vec![0; x.rank()])
        })
    }),
    ("nn.functional.pad/circular", |a| {
        pad(a, |x, dim, low, high| {
            let n = extents(x)[dim];
            build::concatenate(&[x.slice_axis(dim, n - low, n), x.clone(), x.slice_axis(dim, 0, high)], dim)
        })
    }),
    ("nn.functional.pad/reflect", |a| {
        pad(a, |x, dim, low, high| {
            let n = extents(x)[dim];
            let before = x.slice_axis(dim, 1, low + 1).reverse(&[dim]);
            let after = x.slice_axis(dim, n - 1 - high, n - 1).reverse(&[dim]);
            build::concatenate(&[before, x.clone(), after], dim)
        })
    }),
    ("nn.functional.pad/replicate", |a| {
        pad(a, |x, dim, low, high| {
            let n = extents(x)[dim];
            let mut pieces = vec![x.slice_axis(dim, 0, 1); low];
            pieces.push(x.clone());
            pieces.extend(vec![x.slice_axis(dim, n - 1, n); high]);
            build::concatenate(&pieces, dim)
        })
    }),
    ("diag", |a| {
        let offset = a.int(1, "diagonal", 0);
        a.unary(|x| match x.rank() {
            1 => embedded(x, offset),
            _ => diagonal(x, offset, 0, 1),
        })
    }),
    ("diag_embed", |a| {
        let offset = a.int(1, "offset", 0);
        let x = a.var(0)?;
        let rank = x.rank() + 1;
        let (to1, to2) = (axis(a.int(2, "dim1", -2), rank), axis(a.int(3, "dim2", -1), rank));
        Ok(vec![moved(&embedded(&x, offset), &[rank - 2, rank - 1], &[to1, to2])])
    }),
    ("diagonal diagonal_copy", |a| {
        let x = a.var(0)?;
        let (dim1, dim2) = (axis(a.int(2, "dim1", 0), x.rank()), axis(a.int(3, "dim2", 1), x.rank()));
        Ok(vec![diagonal(&x, a.int(1, "offset", 0), dim1, dim2)])
    }),
    ("diagonal_scatter", |a| {
        let (x, d) = (a.var(0)?, a.var(1)?);
        let (dim1, dim2) = (axis(a.int(3, "dim1", 0), x.rank()), axis(a.int(4, "dim2", 1), x.rank()));
        let offset = a.int(2, "offset", 0);
        let placed = placed_diagonal(&d, &extents(&x), offset, dim1, dim2);
        let mask = placed_diagonal(&d.like(1.0), &extents(&x), offset, dim1, dim2);
        Ok(vec![mask.not_equal(&mask.like(0.0)).select(&placed, &x)])
    }),
    ("diff", |a| {
        let x = a.var(0)?;
        let dim = axis(a.int(2, "dim", -1), x.rank());
        let mut ends: Vec<Var> = vec![];
        for (i, name) in [(3, "prepend"), (9, ""), (4, "append")] {
            match (name, a.get(i, name)) {
                ("", _) => ends.push(x.clone()),
                (_, Arg::Null) => {}
                (_, v) => ends.push(a.value(v)?),
            }
        }
        let mut y = if ends.len() > 1 { build::concatenate(&ends, dim) } else { x };
        for _ in 0..a.int(1, "n", 1) {
            let n = extents(&y)[dim];
            let less = n.saturating_sub(1);
            y = y.slice_axis(dim, n - less, n) - y.slice_axis(dim, 0, less);
        }
        Ok(vec![y])
    }),
    ("fft.fftshift", |a| shifted(a, |n| n / 2)),
    ("fft.ifftshift", |a| shifted(a, |n| n - n / 2)),
    ("flip", |a| {
        let x = a.var(0)?;
        let axes = a.axes(1, "dims", x.rank()).unwrap_or_default();
        Ok(vec![x.reverse(&axes)])
    }),
    ("hstack", |a| {
        let x: Vec<Var> = a.vars(0)?.iter().map(|v| at_least(v, 1)).collect();
        let dim = if x[0].rank() == 1 { 0 } else { 1 };
        Ok(vec![build::concatenate(&x, dim)])
    }),
    ("movedim", |a| {
        let x = a.var(0)?;
        let axes = |i, name| -> Result<Vec<usize>, String> {
            Ok(a.ints(i, name)?.into_iter().map(|d| axis(d, x.rank())).collect())
        };
        Ok(vec![moved(&x, &axes(1, "source")?, &axes(2, "destination")?)])
    }),
    ("narrow", |a| {
        let (dim, start, length) = (a.int(1, "dim", 0), a.int(2, "start", 0), a.int(3, "length", 0));
        a.unary(|x| {
            let dim = axis(dim, x.rank());
            let start = axis(start, extents(x)[dim]);
            x.slice_axis(dim, start, start + length as usize)
        })
    }),
    ("permute", |a| {
        let x = a.var(0)?;
        let perm: Vec<usize> = a.ints(1, "dims")?.into_iter().map(|d| axis(d, x.rank())).collect();
        Ok(vec![x.transpose(&perm)])
    }),
    ("repeat tile", |a| {
        let x = a.var(0)?;
        let mut counts: Vec<usize> = a.ints(1, "dims")?.into_iter().map(|n| n as usize).collect();
        let mut y = at_least(&x, counts.len());
        while counts.len() < y.rank() {
            counts.insert(0, 1);
        }
        for (dim, n) in counts.into_iter().enumerate() {
            y = match n {
                0 => y.slice_axis(dim, 0, 0),
                _ => build::concatenate(&vec![y; n], dim),
            };
        }
        Ok(vec![y])
    }),
    ("reshape", |a| {
        let x = a.var(0)?;
        let total: usize = extents(&x).iter().product();
        let shape = a.ints(1, "shape")?;
        let known: i64 = shape.iter().filter(|&&n| n >= 0).product();
        let extent = |n: &i64| if *n < 0 { total / known as usize } else { *n as usize };
        Ok(vec![row_major(&x, &shape.iter().map(extent).collect::<Vec<_>>())])
    }),
    ("roll", |a| {
        let x = a.var(0)?;
        let shifts = a.ints(1, "shifts")?;
        let Some(dims) = a.get(2, "dims").ints() else {
            let flat = row_major(&x, &[extents(&x).iter().product()]);
            return Ok(vec![row_major(&rolled(&flat, 0, shifts[0]), &extents(&x))]);
        };
        let roll = |y: Var, (s, d): (i64, i64)| rolled(&y, axis(d, x.rank()), s);
        Ok(vec![shifts.into_iter().zip(dims).fold(x.clone(), roll)])
    }),
    ("rot90", |a| {
        let x = a.var(0)?;
        let dims = a.get(2, "dims").ints().unwrap_or(vec![0, 1]);
        let (from, to) = (axis(dims[0], x.rank()), axis(dims[1], x.rank()));
        let mut perm: Vec<usize> = (0..x.rank()).collect();
        perm.swap(from, to);
        let turn = |y: Var, _| y.reverse(&[to]).transpose(&perm);
        Ok(vec![(0..a.int(1, "k", 1).rem_euclid(4)).fold(x, turn)])
    }),
    ("select", |a| {
        let (dim, index) = (a.int(1, "dim", 0), a.int(2, "index", 0));
        a.unary(|x| {
            let dim = axis(dim, x.rank());
            let i = axis(index, extents(x)[dim]);
            x.slice_axis(dim, i, i + 1).squeeze(&[dim])
        })
    }),
    ("select_scatter", |a| {
        let (x, part) = (a.var(0)?, a.var(1)?);
        let dim = axis(a.int(2, "dim", 0), x.rank());
        let n = extents(&x)[dim];
        let i = axis(a.int(3, "index", 0), n);
        let pieces = [x.slice_axis(dim, 0, i), part.expand_dims(&[dim]), x.slice_axis(dim, i + 1, n)];
        Ok(vec![build::concatenate(&pieces, dim)])
    }),
    ("split split/list_args", |a| {
        let x = a.var(0)?;
        let dim = axis(a.int(2, "dim", 0), x.rank());
        let n = extents(&x)[dim] as i64;
        let sizes = match a.get(1, "split_size") {
            Arg::List(_) => a.ints(1, "split_size")?,
            size => {
                let size = size.int().ok_or("no size")?;
                (0..(n + size - 1) / size).map(|i| size.min(n - i * size)).collect()
            }
        };
        let mut start = 0;
        let piece = |size: i64| {
            start += size as usize;
            x.slice_axis(dim, start - size as usize, start)
        };
        Ok(sizes.into_iter().map(piece).collect())
    }),
    ("squeeze squeeze/multiple", |a| {
        let x = a.var(0)?;
        let shape = extents(&x);
        let wanted: Vec<usize> = match a.get(1, "dim").ints() {
            Some(_) if x.rank() == 0 => vec![],
            Some(dims) => dims.into_iter().map(|d| axis(d, x.rank())).collect(),
            None => (0..x.rank()).collect(),
        };
        let axes: Vec<usize> = wanted.into_iter().filter(|&i| shape[i] == 1).collect();
        Ok(vec![x.squeeze(&axes)])
    }),
    ("stack", |a| {
        let x = a.vars(0)?;
        let dim = axis(a.int(1, "dim", 0), x[0].rank() + 1);
        Ok(vec![build::stack(&x, dim)])
    }),
    ("transpose", |a| {
        let x = a.var(0)?;
        let mut perm: Vec<usize> = (0..x.rank()).collect();
        if x.rank() > 0 {
            perm.swap(axis(a.int(1, "dim0", 0), x.rank()), axis(a.int(2, "dim1", 0), x.rank()));
        }
        Ok(vec![x.transpose(&perm)])
    }),
    ("tril", |a| {
        let k = a.int(1, "diagonal", 0) as isize;
        a.unary(|x| batch_first(&batch_last(x).tril(k)))
    }),
    ("triu", |a| {
        let k = a.int(1, "diagonal", 0) as isize;
        a.unary(|x| batch_first(&batch_last(x).triu(k)))
    }),
    ("unfold", |a| {
        let x = at_least(&a.var(0)?, 1);
        let (dim, size, step) = (a.int(1, "dim", 0), a.int(2, "size", 1) as usize, a.int(3, "step", 1));
        if a.x[0].rank() == 0 {
            return Ok(vec![x]);
        }
        let dim = axis(dim, x.rank());
        let count = (extents(&x)[dim] - size) / step as usize + 1;
        let window = |i: usize| {
            let part = x.slice_axis(dim, i * step as usize, i * step as usize + size);
            moved(&part, &[dim], &[x.rank() - 1]).expand_dims(&[dim])
        };
        Ok(vec![build::concatenate(&(0..count).map(window).collect::<Vec<_>>(), dim)])
    }),
    ("unsqueeze", |a| {
        let x = a.var(0)?;
        Ok(vec![x.expand_dims(&[axis(a.int(1, "dim", 0), x.rank() + 1)])])
    }),
    ("vander", |a| {
        let x = at_least(&a.var(0)?, 1);
        let last = x.rank();
        let n = a.int(1, "N", extents(&x)[last - 1] as i64);
        let mut columns = vec![x.like(1.0)];
        while columns.len() < n as usize {
            columns.push(&columns[columns.len() - 1] * &x);
        }
        Ok(vec![build::stack(&columns, last)])
    }),
    ("view_as_complex", |a| {
        let x = a.var(0)?;
        let last = x.rank() - 1;
        let part = |i: usize| x.slice_axis(last, i, i + 1).squeeze(&[last]);
        Ok(vec![crate::elementwise::complex(&part(0), &part(1))])
    }),
    ("vstack", |a| {
        let x: Vec<Var> = a.vars(0)?.iter().map(|v| at_least(v, 2)).collect();
        Ok(vec![build::concatenate(&x, 0)])
    }),
];

/// With axes of extent 1 before its own until there are this many.
pub(crate) fn at_least(x: &Var, rank: usize) -> Var {
    let missing: Vec<usize> = (0..rank.saturating_sub(x.rank())).collect();
    if missing.is_empty() { x.clone() } else { x.expand_dims(&missing) }
}

/// With the axes `from` at the places `to`, the others in their order.
pub(crate) fn moved(x: &Var, from: &[usize], to: &[usize]) -> Var {
    let mut others = (0..x.rank()).filter(|i| !from.contains(i));
    let at = |i: usize| match to.iter().position(|&t| t == i) {
        Some(k) => from[k],
        None => others.next().expect("as many axes remain as places"),
    };
    x.transpose(&(0..x.rank()).map(at).collect::<Vec<_>>())
}

/// Matrices whose two axes come first, from the data's order of batch axes first.
pub(crate) fn batch_last(x: &Var) -> Var {
    moved(x, &[x.rank() - 2, x.rank() - 1], &[0, 1])
}

/// The inverse of [`batch_last`].
pub(crate) fn batch_first(x: &Var) -> Var {
    moved(x, &[0, 1], &[x.rank() - 2, x.rank() - 1])
}

/// Reshape with the last axis as the fastest.
pub(crate) fn row_major(x: &Var, shape: &[usize]) -> Var {
    let reversed = |rank: usize| (0..rank).rev().collect::<Vec<_>>();
    let target: Vec<usize> = shape.iter().rev().copied().collect();
    x.transpose(&reversed(x.rank())).reshape(&lits(&target)).transpose(&reversed(shape.len()))
}

/// The diagonal `offset` above the main one of two axes, as a new last axis.
fn diagonal(x: &Var, offset: i64, dim1: usize, dim2: usize) -> Var {
    let skip = |x: &Var, dim: usize, n: i64| {
        let extent = extents(x)[dim];
        x.slice_axis(dim, extent.min(n.max(0) as usize), extent)
    };
    skip(&skip(x, dim1, -offset), dim2, offset).extract_diag(dim1, dim2)
}

/// The last axis as the diagonal `offset` above the main one of two new last axes.
fn embedded(x: &Var, offset: i64) -> Var {
    let rank = x.rank() + 1;
    padded(&x.embed_diag(rank - 2, rank - 1), rank - 2, rank - 1, offset, [0, 0])
}

fn padded(x: &Var, dim1: usize, dim2: usize, offset: i64, after: [usize; 2]) -> Var {
    let (mut low, mut high) = (vec![0; x.rank()], vec![0; x.rank()]);
    let by = offset.unsigned_abs() as usize;
    // The square moves right by an offset above 0, down by one below.
    if offset > 0 {
        (low[dim2], high[dim1]) = (by, by);
    } else {
        (low[dim1], high[dim2]) = (by, by);
    }
    high[dim1] += after[0];
    high[dim2] += after[1];
    let zero = Var::scalar(x.dtype(), 0.0.into());
    x.pad(&zero, &lits(&low), &lits(&high), &vec![0; x.rank()])
}

/// A diagonal in an array of zeros of this shape.
fn placed_diagonal(d: &Var, shape: &[usize], offset: i64, dim1: usize, dim2: usize) -> Var {
    let full = d.embed_diag(dim1, dim2);
    let n = extents(d)[d.rank() - 1];
    let by = offset.unsigned_abs() as usize;
    let grown = padded(
        &full,
        dim1,
        dim2,
        offset,
        [shape[dim1].saturating_sub(n + by), shape[dim2].saturating_sub(n + by)],
    );
    let zeros = vec![0; shape.len()];
    grown.slice(&zeros, shape, &vec![1; shape.len()])
}

pub(crate) fn rolled(x: &Var, dim: usize, shift: i64) -> Var {
    let n = extents(x)[dim];
    if n == 0 {
        return x.clone();
    }
    let cut = n - shift.rem_euclid(n as i64) as usize;
    build::concatenate(&[x.slice_axis(dim, cut, n), x.slice_axis(dim, 0, cut)], dim)
}

fn shifted(a: &Args, by: fn(usize) -> usize) -> Outputs {
    let x = a.var(0)?;
    let dims = a.axes(1, "dim", x.rank()).unwrap_or((0..x.rank()).collect());
    let roll = |y: Var, dim: usize| rolled(&y, dim, by(extents(&x)[dim]) as i64);
    Ok(vec![dims.into_iter().fold(x.clone(), roll)])
}

/// PyTorch's padding: pairs for the last axis, the one before it, and so on; negative ones cut.
fn pad(a: &Args, f: impl Fn(&Var, usize, usize, usize) -> Var) -> Outputs {
    let mut x = a.var(0)?;
    let pairs = a.ints(1, "pad")?;
    for (k, pair) in pairs.chunks(2).enumerate() {
        let dim = x.rank() - 1 - k;
        let n = extents(&x)[dim];
        let cut = |p: i64| p.min(0).unsigned_abs() as usize;
        x = x.slice_axis(dim, cut(pair[0]), n - cut(pair[1]));
        x = f(&x, dim, pair[0].max(0) as usize, pair[1].max(0) as usize);
    }
    Ok(vec![x])
}
