//! Printing, like Julia: a header, then matrices page by page, long axes cut in the middle.
//!
//! A precision in the format (`{:.3}`) fixes the number of decimals.

use std::fmt::{self, Write};

use crate::{DType, Rank, Scalar, Shape, Tensor, TensorRead, TensorView, TypedTensor, TypedTensorView};

/// An axis longer than this is cut to [`EDGE`] elements at each end.
const LONGEST: usize = 10;
const EDGE: usize = 4;

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_view().fmt(f)
    }
}

impl fmt::Display for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dispatch!(self.dtype(), T => match self.typed::<T>() {
            Ok(view) => view.fmt(f),
            Err(_) => Err(fmt::Error),
        })
    }
}

impl fmt::Display for TensorRead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl<T: Scalar, R: Rank> fmt::Display for TypedTensor<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_view().fmt(f)
    }
}

impl<T: Scalar, R: Rank> fmt::Display for TypedTensorView<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", T::DTYPE, self.shape())?;
        if self.host_ptr().is_err() {
            return write!(f, " in {}", self.placement());
        }
        match self.rank() {
            _ if self.is_empty() => Ok(()),
            0 => write!(f, " {}", element(self, &[], f.precision())),
            _ => pages(self, f),
        }
    }
}

/// Each matrix of the first two axes under its index on the others.
fn pages<T: Scalar, R: Rank>(view: &TypedTensorView<'_, T, R>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let rank = view.rank();
    let mut index = Shape::from(view.shape());
    index.0.fill(0);
    loop {
        if rank > 2 {
            write!(f, "\n[.., ..")?;
            index[2..].iter().try_for_each(|i| write!(f, ", {i}"))?;
            f.write_char(']')?;
        }
        page(view, &mut index, f)?;
        // The next page that is not cut out.
        let mut axis = 2;
        loop {
            if axis >= rank {
                return Ok(());
            }
            let extent = view.shape()[axis];
            index.0[axis] += 1;
            if extent > LONGEST && index[axis] == EDGE {
                index.0[axis] = extent - EDGE;
                write!(f, "\n...")?;
            }
            if index[axis] < extent {
                break;
            }
            index.0[axis] = 0;
            axis += 1;
        }
    }
}

fn page<T: Scalar, R: Rank>(
    view: &TypedTensorView<'_, T, R>,
    index: &mut Shape,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let rows = shown(view.shape()[0]);
    let columns = view.shape().get(1).map_or(vec![Some(0)], |&extent| shown(extent));
    let mut cells = Vec::with_capacity(rows.len() * columns.len());
    for row in &rows {
        for column in &columns {
            cells.push(match (row, column) {
                (Some(i), Some(j)) => {
                    index.0[0] = *i;
                    if view.rank() > 1 {
                        index.0[1] = *j;
                    }
                    element(view, index, f.precision())
                }
                (None, _) => ":".to_owned(),
                (_, None) => "...".to_owned(),
            });
        }
    }
    index.0[..view.rank().min(2)].fill(0);
    let width = |j: usize| cells.iter().skip(j).step_by(columns.len()).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..columns.len()).map(|j| width(j).unwrap_or(0)).collect();
    for row in cells.chunks(columns.len()) {
        f.write_char('\n')?;
        for (cell, width) in row.iter().zip(&widths) {
            write!(f, "  {cell:>width$}")?;
        }
    }
    Ok(())
}

/// The indices of an axis to print; `None` stands for those left out.
fn shown(extent: usize) -> Vec<Option<usize>> {
    if extent <= LONGEST {
        return (0..extent).map(Some).collect();
    }
    (0..EDGE).map(Some).chain([None]).chain((extent - EDGE..extent).map(Some)).collect()
}

fn element<T: Scalar, R: Rank>(
    view: &TypedTensorView<'_, T, R>,
    index: &[usize],
    precision: Option<usize>,
) -> String {
    let Some(value) = view.get(index) else { return "?".to_owned() };
    let z = value.to_c64();
    match T::DTYPE.real() {
        DType::F32 | DType::F64 if T::DTYPE.is_complex() => {
            let sign = if z.im.is_sign_negative() { '-' } else { '+' };
            format!("{}{sign}{}i", real(z.re, precision), real(z.im.abs(), precision))
        }
        DType::F32 | DType::F64 => real(z.re, precision),
        _ => value.to_string(),
    }
}

/// Six significant digits without trailing zeros, or as many decimals as asked for.
fn real(x: f64, precision: Option<usize>) -> String {
    if let Some(decimals) = precision {
        return format!("{x:.decimals$}");
    }
    if x == 0.0 || !x.is_finite() {
        return format!("{x:?}");
    }
    let exponent = x.abs().log10().floor() as i32;
    if !(-4..6).contains(&exponent) {
        let text = format!("{x:.5e}");
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{power}", trimmed(mantissa));
    }
    trimmed(&format!("{x:.*}", (5 - exponent).max(1) as usize))
}

/// Without trailing zeros, but one decimal.
fn trimmed(decimal: &str) -> String {
    let short = decimal.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}
