//! Families that sum, multiply, or choose along axes, and running ones.

use crate::{
    args::{Arg, Args, Families, Outputs, axis, extents},
    elementwise::logaddexp,
    layout::moved,
};
use tenferro_core_ops::{Var, build};
use tenferro_linalg::{
    MatrixNorm, VectorNorm,
    ops::{self, stop_gradient, vector_norm},
};
use tenferro_tensor::DType;

pub(crate) const FAMILIES: Families = &[
    ("amax", |a| extreme(a, Var::reduce_max, Var::reduce_max_keepdims)),
    ("amin", |a| extreme(a, Var::reduce_min, Var::reduce_min_keepdims)),
    ("cdist", |a| {
        let p = a.number(2, "p", 2.0);
        a.binary(|x, y| {
            let (rx, ry) = (x.rank(), y.rank());
            let difference = x.expand_dims(&[rx - 1]) - y.expand_dims(&[ry - 2]);
            let last = difference.rank() - 1;
            norm(&difference, p, Some(&[last]), false)
        })
    }),
    ("corrcoef", |a| {
        a.unary(|x| {
            let c = covariance(x, None, 1.0);
            if c.rank() == 0 {
                return c.div(&c);
            }
            let d = c.extract_diag(0, 1).real().sqrt();
            &c / d.expand_dims(&[1]) / d.expand_dims(&[0])
        })
    }),
    ("cov", |a| {
        let weights = match (a.get(2, "fweights"), a.get(3, "aweights")) {
            (Arg::Null, Arg::Null) => None,
            (f, Arg::Null) => Some((a.value(f)?.cast(DType::F64), None)),
            (Arg::Null, w) => Some((a.value(w)?, Some(a.value(w)?))),
            (f, w) => {
                // PyTorch rounds the product to the dtype of the weights.
                let w = a.value(w)?;
                Some((a.value(f)?.cast(w.dtype()) * &w, Some(w)))
            }
        };
        let correction = a.number(1, "correction", 1.0);
        a.unary(|x| covariance(x, weights.as_ref(), correction))
    }),
    ("cummax", |a| scan(a, Var::maximum)),
    ("cummin", |a| scan(a, Var::minimum)),
    ("cumprod", |a| scan(a, Var::mul)),
    ("cumsum", |a| scan(a, Var::add)),
    ("dist", |a| {
        let p = a.number(2, "p", 2.0);
        a.binary(|x, y| norm(&(x - y), p, None, false))
    }),
    ("log_softmax log_softmax/with_dtype", |a| softmax(a, |x, dim| x - logsumexp(x, &[dim], true))),
    ("logcumsumexp", |a| scan(a, logaddexp)),
    ("logsumexp", |a| {
        let x = a.var(0)?;
        if x.rank() == 0 {
            return Ok(vec![logsumexp(&x, &[], true)]);
        }
        let axes: Vec<usize> = a.ints(1, "dim")?.into_iter().map(|d| axis(d, x.rank())).collect();
        Ok(vec![logsumexp(&x, &axes, a.flag(2, "keepdim", false))])
    }),
    ("mean", |a| reduced(a, Var::reduce_mean, Var::reduce_mean_keepdims)),
    ("nanmean", |a| {
        let number = |x: &Var| x.equal(x);
        let axes = a.axes(1, "dim", a.x[0].rank());
        let keep = a.flag(2, "keepdim", false);
        a.unary(|x| {
            let count = sum(&number(x).cast(x.dtype()), axes.as_deref(), keep);
            sum(&number(x).select(x, &x.like(0.0)), axes.as_deref(), keep) / count
        })
    }),
    ("nansum", |a| {
        let axes = a.axes(1, "dim", a.x[0].rank());
        let keep = a.flag(2, "keepdim", false);
        a.unary(|x| sum(&x.equal(x).select(x, &x.like(0.0)), axes.as_deref(), keep))
    }),
    ("norm", |a| {
        let x = a.var(0)?;
        let order = a.get(1, "ord");
        let axes = a.axes(2, "dim", x.rank());
        let keep = a.flag(3, "keepdim", false);
        let matrix = match (order, &axes) {
            (Arg::Null, _) => return Ok(vec![norm(&x, 2.0, axes.as_deref(), keep)]),
            (Arg::Text(_), None) if x.rank() != 2 => return Err(format!("{order:?} of rank {}", x.rank())),
            (_, None) => x.rank() == 2,
            (_, Some(axes)) => axes.len() == 2,
        };
        match (matrix, order) {
            (true, _) => matrix_norm(&x, order, &axes.unwrap_or(vec![0, 1]), keep),
            (false, Arg::Number(p)) => Ok(vec![norm(&x, *p, axes.as_deref(), keep)]),
            _ => Err(format!("{order:?} of a vector")),
        }
    }),
    ("matrix_norm", |a| {
        let x = a.var(0)?;
        let axes = a.axes(2, "dim", x.rank()).unwrap_or(vec![x.rank() - 2, x.rank() - 1]);
        matrix_norm(&x, a.get(1, "ord"), &axes, a.flag(3, "keepdim", false))
    }),
    ("prod", |a| {
        let wanted = match a.text(3, "dtype") {
            Some(name) => Some(dtype(name)?),
            None => None,
        };
        let cast = |x: &Var| x.cast(wanted.unwrap_or(x.dtype()));
        let axes = a.axes(1, "dim", a.x[0].rank());
        let keep = a.flag(2, "keepdim", false);
        a.unary(|x| match keep {
            true => cast(x).reduce_prod_keepdims(axes.as_deref()),
            false => cast(x).reduce_prod(axes.as_deref()),
        })
    }),
    ("renorm", |a| {
        let (p, dim, most) = (a.number(1, "p", 2.0), a.int(2, "dim", 0), a.number(3, "maxnorm", 1.0));
        a.unary(|x| {
            let dim = axis(dim, x.rank());
            let others: Vec<usize> = (0..x.rank()).filter(|&i| i != dim).collect();
            let n = norm(x, p, Some(&others), true);
            let scale = n.greater(&n.like(most)).select(&((&n + 1e-7).recip() * most), &n.like(1.0));
            x * scale
        })
    }),
    ("softmax softmax/with_dtype", |a| softmax(a, |x, dim| (x - logsumexp(x, &[dim], true)).exp())),
    ("std std_unbiased", |a| variance(a, |v| v.sqrt())),
    ("sum", |a| reduced(a, Var::reduce_sum, Var::reduce_sum_keepdims)),
    ("trace", |a| a.unary(ops::trace)),
    ("trapezoid", trapezoid),
    ("var var_unbiased", |a| variance(a, |v| v)),
    ("vector_norm", |a| {
        let (p, keep) = (a.number(1, "ord", 2.0), a.flag(3, "keepdim", false));
        let axes = a.axes(2, "dim", a.x[0].rank());
        a.unary(|x| norm(x, p, axes.as_deref(), keep))
    }),
];

type Reduction = fn(&Var, Option<&[usize]>) -> Var;

/// A reduction of PyTorch's arguments `dim` and `keepdim`.
fn reduced(a: &Args, f: Reduction, keepdims: Reduction) -> Outputs {
    let axes = a.axes(1, "dim", a.x[0].rank());
    let f = if a.flag(2, "keepdim", false) { keepdims } else { f };
    a.unary(|x| f(x, axes.as_deref()))
}

fn extreme(a: &Args, f: Reduction, keepdims: Reduction) -> Outputs {
    reduced(a, f, keepdims)
}

fn sum(x: &Var, axes: Option<&[usize]>, keep: bool) -> Var {
    if keep { x.reduce_sum_keepdims(axes) } else { x.reduce_sum(axes) }
}

pub(crate) fn dtype(name: &str) -> Result<DType, String> {
    Ok(match name.rsplit('.').next().unwrap_or(name) {
        "float32" => DType::F32,
        "float64" => DType::F64,
        "complex64" => DType::C32,
        "complex128" => DType::C64,
        other => return Err(format!("dtype {other}")),
    })
}

/// The outputs of a running `f` along an axis.
fn scan(a: &Args, f: impl Fn(&Var, &Var) -> Var) -> Outputs {
    let mut x = a.var(0)?;
    if let Some(name) = a.text(2, "dtype") {
        x = x.cast(dtype(name)?);
    }
    if x.rank() == 0 {
        return Ok(vec![x]);
    }
    let dim = axis(a.int(1, "dim", 0), x.rank());
    let mut slices: Vec<Var> = vec![];
    for i in 0..extents(&x)[dim] {
        let next = x.slice_axis(dim, i, i + 1);
        let next = slices.last().map_or(next.clone(), |last| f(last, &next));
        slices.push(next);
    }
    Ok(vec![build::concatenate(&slices, dim)])
}

/// The p-norm of the elements along axes.
fn norm(x: &Var, p: f64, axes: Option<&[usize]>, keep: bool) -> Var {
    vector_norm(x, VectorNorm { p, axes: axes.map(<[usize]>::to_vec), keepdims: keep })
}

/// The norm of the matrices of two axes, of rows and of columns.
fn matrix_norm(x: &Var, order: &Arg, axes: &[usize], keep: bool) -> Outputs {
    let norm = match (order, order.number()) {
        (Arg::Text(name), _) if name == "fro" => MatrixNorm::Frobenius,
        (Arg::Text(name), _) if name == "nuc" => MatrixNorm::Nuclear,
        (_, Some(1.0)) => MatrixNorm::One,
        (_, Some(-1.0)) => MatrixNorm::MinusOne,
        (_, Some(2.0)) => MatrixNorm::Two,
        (_, Some(-2.0)) => MatrixNorm::MinusTwo,
        (_, Some(f64::INFINITY)) => MatrixNorm::Infinity,
        (_, Some(f64::NEG_INFINITY)) => MatrixNorm::MinusInfinity,
        _ => return Err(format!("norm of order {order:?}")),
    };
    let y = ops::matrix_norm(&moved(x, axes, &[0, 1]), norm);
    let mut at = axes.to_vec();
    at.sort_unstable();
    Ok(vec![if keep { y.expand_dims(&at) } else { y }])
}

fn logsumexp(x: &Var, axes: &[usize], keep: bool) -> Var {
    if extents(x).contains(&0) {
        return sum(&x.exp(), Some(axes), keep).log();
    }
    let top = stop_gradient(&x.real().reduce_max_keepdims(Some(axes))).cast(x.dtype());
    let total = (x - &top).exp().reduce_sum_keepdims(Some(axes)).log() + &top;
    if keep { total } else { total.squeeze(axes) }
}

fn softmax(a: &Args, f: impl Fn(&Var, usize) -> Var) -> Outputs {
    let mut x = a.var(0)?;
    if let Some(name) = a.text(2, "dtype") {
        x = x.cast(dtype(name)?);
    }
    if x.rank() == 0 {
        let one = f(&x.expand_dims(&[0]), 0);
        return Ok(vec![one.squeeze(&[0])]);
    }
    let dim = axis(a.int(1, "dim", -1), x.rank());
    Ok(vec![f(&x, dim)])
}

/// Variance with PyTorch's arguments: `unbiased` alone, or `dim` and a `correction`.
fn variance(a: &Args, f: impl Fn(Var) -> Var) -> Outputs {
    let x = a.var(0)?;
    let unbiased = match (a.record.args.get(1), a.named("unbiased")) {
        (Some(Arg::Flag(b)), _) | (_, Arg::Flag(b)) => Some(*b),
        _ => None,
    };
    let correction = a.named("correction").number();
    let correction = correction.unwrap_or(unbiased.map_or(1.0, |u| u as i64 as f64));
    let axes = a.named("dim").ints().filter(|d| !d.is_empty());
    let axes: Vec<usize> = match axes {
        Some(axes) if x.rank() > 0 => axes.into_iter().map(|d| axis(d, x.rank())).collect(),
        _ => (0..x.rank()).collect(),
    };
    let shape = extents(&x);
    let count: usize = axes.iter().map(|&i| shape[i]).product();
    let centred = &x - x.reduce_mean_keepdims(Some(&axes));
    let squares = sum(&(&centred * centred.conj()).real(), Some(&axes), a.flag(9, "keepdim", false));
    let degrees = (count as f64 - correction).max(0.0);
    Ok(vec![f(squares / degrees)])
}

/// The covariance matrix of the rows, with weights of the columns and which of these are no counts.
fn covariance(x: &Var, weights: Option<&(Var, Option<Var>)>, correction: f64) -> Var {
    let x = if x.rank() < 2 {
        x.reshape(&crate::args::lits(&[1, extents(x).iter().product()]))
    } else {
        x.clone()
    };
    let n = extents(&x)[1] as f64;
    let (mean, scaled, degrees) = match weights {
        None => (x.reduce_mean_keepdims(Some(&[1])), None, x.real().like(n - correction).reduce_max(None)),
        Some((w, analytic)) => {
            let total = w.reduce_sum(None);
            let mean = (&x * w).reduce_sum_keepdims(Some(&[1])) / &total;
            let degrees = match analytic {
                None => &total - correction,
                Some(a) => &total - (w * a).reduce_sum(None) / &total * correction,
            };
            (mean, Some(w), degrees)
        }
    };
    let centred = &x - mean;
    let right = scaled.map_or(centred.clone(), |w| &centred * w);
    let c = centred.matmul(&right.adjoint()) / degrees;
    if extents(&c) == [1, 1] { c.squeeze(&[0, 1]) } else { c }
}

fn trapezoid(a: &Args) -> Outputs {
    let y = a.var(0)?;
    let dim = axis(a.int(2, "dim", -1), y.rank());
    let n = extents(&y)[dim];
    let ends = |v: &Var, dim: usize, n: usize| (v.slice_axis(dim, 0, n - 1), v.slice_axis(dim, 1, n));
    let (low, high) = ends(&y, dim, n);
    let middle = (low + high) * 0.5;
    let areas = match a.record.args.get(1) {
        Some(Arg::Null) | None => middle * a.number(9, "dx", 1.0),
        Some(x) => {
            let x = a.value(x)?;
            let along = if x.rank() == 1 { 0 } else { dim };
            let (low, high) = ends(&x, along, n);
            let mut steps = high - low;
            if x.rank() == 1 {
                let mut shape = vec![1; y.rank()];
                shape[dim] = n - 1;
                steps = steps.reshape(&crate::args::lits(&shape));
            }
            middle * steps
        }
    };
    Ok(vec![areas.reduce_sum(Some(&[dim]))])
}
