//! Truncated singular value decomposition: svd, then a rank chosen from the singular values, then slices, so
//! that the derivative includes the coupling to the discarded vectors.
//!
//! The rank is data: while tracing it is a symbol that all slices share, and the limits it is chosen by are
//! operands, which may be inputs of the program.

use crate::{
    batch::{Matrices, count, failed, unlisted},
    matrix::{leading, over_columns, over_rows},
    named::called,
    norm::largest,
    stop_gradient::stop_gradient,
    svd::svd,
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Dim, Extent, Fresh, Kernels, Now, Operand, Out, Outs, Primitive, Saves, Tangent, Var, apply_n,
    build, ops::expect,
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::allocated;
use tenferro_tensor::{DType, Error, Result, Scalar, Tensor, TensorRef, Value, dispatch_real};

/// Where to cut the descending singular values `s_1 >= .. >= s_k` of a matrix.
///
/// The rank is the largest r that all four limits allow:
/// - `r <= max_rank`, if given;
/// - `s_r > rel s_1`;
/// - `s_r > abs`;
/// - r is not larger than it must be for the discarded weight, `sum_{i > r} s_i^2 <= weight sum_i s_i^2`.
///   With weight 0 nothing but zeros is discarded for this reason.
///
/// A singular value that is exactly 0 is never kept, so the zero matrix has rank 0; of any other, one
/// singular value at least is kept.
///
/// A cut never splits a multiplet: while `s_r - s_{r+1}` is less than 1e-6 `s_r` (single precision: 1e-4), or
/// than 16 eps `s_1`, which rounding may make of equal numbers, r is lowered. If that would keep nothing,
/// because the multiplet starts at `s_1`, it is kept as a whole if `max_rank` allows it; else the first
/// `max_rank` of its vectors are kept, an arbitrary choice, whose derivative then is arbitrary, too.
///
/// ```
/// use tenferro_linalg::Truncation;
/// let t = Truncation { max_rank: Some(16), weight: 1e-12, ..Truncation::default() };
/// assert_eq!(t.rel, 0.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Truncation {
    /// The largest rank; no limit if `None`.
    pub max_rank: Option<usize>,
    /// Singular values must be larger than this times the largest.
    pub rel: f64,
    /// Singular values must be larger than this.
    pub abs: f64,
    /// The fraction of the sum of squares that may be discarded.
    pub weight: f64,
}

impl Truncation {
    /// Only a largest rank; fewer are kept where it would cut a multiplet.
    pub fn max_rank(r: usize) -> Self {
        Truncation { max_rank: Some(r), ..Truncation::default() }
    }
}

/// A [`Truncation`] whose limits are scalar values, so that they can be inputs of a program. An integer
/// `max_rank` without limit is `i64::MAX`.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest rank, an integer of at least 1.
    pub max_rank: Var,
    /// See [`Truncation::rel`].
    pub rel: Var,
    /// See [`Truncation::abs`].
    pub abs: Var,
    /// See [`Truncation::weight`].
    pub weight: Var,
}

impl From<&Truncation> for Limits {
    fn from(t: &Truncation) -> Limits {
        fn scalar<T: Scalar>(x: T) -> Var {
            Var::Now(Now::new(Value::new(Tensor::scalar(x))))
        }
        let max_rank = t.max_rank.map_or(i64::MAX, |r| i64::try_from(r).unwrap_or(i64::MAX));
        Limits {
            max_rank: scalar(max_rank),
            rel: scalar(t.rel),
            abs: scalar(t.abs),
            weight: scalar(t.weight),
        }
    }
}

impl From<Truncation> for Limits {
    fn from(t: Truncation) -> Limits {
        Limits::from(&t)
    }
}

impl From<&Limits> for Limits {
    fn from(t: &Limits) -> Limits {
        t.clone()
    }
}

/// The rank of a truncation. Inputs: singular values with batch axes, and the four scalars of [`Limits`].
/// Outputs: the positions 0, 1, .. up to the largest rank of the batch, whose extent is found at run time,
/// and the rank of every matrix.
///
/// Its results are always new tensors: a destination would have to be of an extent that only the run finds,
/// so one that is given is an error.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rank;

impl Primitive for Rank {
    const NAME: &'static str = "truncate";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], fresh: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 5, &[DType::F32, DType::F64])?;
        let [k, batch @ ..] = &x[0].shape[..] else {
            return Err(Error::rank(Self::NAME, "rank of the singular values", 0, "at least 1"));
        };
        let limits =
            [("max_rank", DType::I64), ("rel", DType::F64), ("abs", DType::F64), ("weight", DType::F64)];
        for ((name, dtype), a) in limits.into_iter().zip(&x[1..]) {
            if a.dtype != dtype || a.rank() != 0 {
                return Err(Error::shape(Self::NAME, name, a, Aval::<D>::new(dtype, [])));
            }
        }
        let r = D::data(fresh, 0, 0, k);
        Ok(smallvec![Aval::new(DType::I64, [r]), Aval::new(DType::I64, batch.iter().cloned())])
    }
    fn jvp(&self, _: &[Var], _: &[Var], _: &[Tangent]) -> Outs<Tangent> {
        smallvec![None, None]
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(&[DType::F32, DType::F64], |_, _, x, y, out| {
            if !matches!(out, Out::New) {
                let expected = "new tensors, for the run finds the extent";
                return Err(Error::argument(Self::NAME, "destination", "a view", expected));
            }
            let dtype = x[0].dtype();
            dispatch_real!(dtype, T => run::<T>(x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

fn run<T: Scalar>(x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let t = limits(&x[1..])?;
    let s = x[0].read();
    let (k, batch) = (s.shape()[0], count(s.shape(), 1, &y[1..]));
    let read = Matrices::<T>::vectors(&s)?;
    let exact = T::DTYPE == DType::F64;
    // Of no vectors, even long ones take no memory.
    let mut values =
        allocated([if batch == 0 { 0 } else { k }], 0.0).map_err(|why| failed(Rank::NAME, why))?;
    let mut ranks = Tensor::zeros(DType::I64, &y[1].shape[..])?;
    let mut largest = 0;
    for (b, rank) in ranks.as_slice_mut::<i64>()?.iter_mut().enumerate() {
        let s = read.at(b);
        for (i, v) in values.iter_mut().enumerate() {
            // SAFETY: i is below the length of vector b.
            *v = unsafe { *s.ptr.offset(i as isize * s.row) }.to_c64().re;
        }
        *rank = t.rank(&values, exact) as i64;
        largest = largest.max(*rank);
    }
    let kept = Tensor::from_vec_col_major([largest as usize], (0..largest).collect())?;
    Ok(smallvec![kept, ranks])
}

fn limits(x: &[Operand<'_>]) -> Result<Truncation> {
    let item = |x: &TensorRef<'_>| x.view().item::<f64>();
    let r = x[0].read().view().item::<i64>()?;
    if r < 1 {
        return Err(Error::argument(Rank::NAME, "max_rank", r, "at least 1"));
    }
    let [rel, abs, weight] = [1, 2, 3].map(|i| item(&x[i].read()));
    let t = Truncation {
        max_rank: Some(usize::try_from(r).unwrap_or(usize::MAX)),
        rel: rel?,
        abs: abs?,
        weight: weight?,
    };
    for (name, v) in [("rel", t.rel), ("abs", t.abs), ("weight", t.weight)] {
        if v.is_nan() || v < 0.0 {
            return Err(Error::argument(Rank::NAME, name, v, "a number of at least 0"));
        }
    }
    Ok(t)
}

impl Truncation {
    /// The rank for these descending singular values, in double precision if `exact`.
    fn rank(&self, s: &[f64], exact: bool) -> usize {
        let max_rank = self.max_rank.unwrap_or(usize::MAX);
        let Some(&largest) = s.first().filter(|&&s| s > 0.0) else { return 0 };
        let floor = self.abs.max(self.rel * largest).max(0.0);
        let above = s.iter().take_while(|&&s| s > floor).count();
        let r = above.min(self.light(s, largest)).min(max_rank).max(1);
        let (gap, noise) = if exact { (1e-6, f64::EPSILON) } else { (1e-4, f32::EPSILON as f64) };
        let joined = |r: usize| s[r - 1] - s[r] < (gap * s[r - 1]).max(16.0 * noise * largest);
        let cut = |mut r: usize| {
            while r > 0 && r < s.len() && joined(r) {
                r -= 1;
            }
            r
        };
        match cut(r) {
            0 => {
                let whole = (1..s.len()).find(|&r| !joined(r)).unwrap_or(s.len());
                if whole <= max_rank { whole } else { max_rank }
            }
            r => r,
        }
    }

    /// The smallest rank whose discarded weight is allowed.
    fn light(&self, s: &[f64], largest: f64) -> usize {
        let square = |s: f64| (s / largest) * (s / largest);
        let total: f64 = s.iter().rev().map(|&s| square(s)).sum();
        let mut discarded = 0.0;
        for r in (0..s.len()).rev() {
            discarded += square(s[r]);
            // A square may underflow where its root is not zero.
            if discarded > self.weight * total || (self.weight == 0.0 && s[r] > 0.0) {
                return r + 1;
            }
        }
        0
    }
}

/// What a truncation keeps of given singular values.
pub(crate) struct Kept {
    /// The largest rank of the batch.
    pub(crate) r: Dim,
    /// The rank of each matrix.
    pub(crate) ranks: Var,
    /// Position along the singular values, over the batch: i64 of the shape of s.
    positions: Var,
}

impl Kept {
    pub(crate) fn new(s: &Var, limits: &Limits) -> Result<Kept> {
        let t = limits;
        let real = |v: &Var| v.cast(DType::F64);
        let x = [s, &t.max_rank.convert(DType::I64), &real(&t.rel), &real(&t.abs), &real(&t.weight)];
        let y = apply_n(&Rank, &x, 2);
        let r = y[0].ok()?.extent(0);
        Ok(Kept { r, ranks: y[1].clone(), positions: build::iota(DType::I64, &s.ok()?.shape(), 0) })
    }

    /// Whether all matrices have the same rank because there is only one.
    fn single(&self) -> bool {
        self.ranks.rank() == 0
    }

    /// Whether a singular value is kept.
    fn mask(&self) -> Var {
        self.positions.less(&over_columns(&self.ranks))
    }

    /// The kept singular values, the first r; 0 where a matrix of the batch has a smaller rank.
    pub(crate) fn kept(&self, s: &Var) -> Var {
        let s = if self.single() { s.clone() } else { self.mask().select(s, &s.like(0.0)) };
        leading(&s, 0, &self.r)
    }

    /// All singular values, with 0 in place of the kept ones.
    pub(crate) fn discarded(&self, s: &Var) -> Var {
        self.mask().select(&s.like(0.0), s)
    }

    /// The vectors of the kept singular values along `axis`.
    fn vectors(&self, x: &Var, axis: usize) -> Var {
        let x = leading(x, axis, &self.r);
        if self.single() {
            return x;
        }
        let mask = leading(&self.mask(), 0, &self.r);
        let mask = if axis == 1 { over_columns(&mask) } else { over_rows(&mask) };
        mask.select(&x, &x.like(0.0))
    }

    /// `sum of discarded s^2 / sum of s^2`, and 0 for a zero matrix.
    pub(crate) fn weight(&self, s: &Var) -> Var {
        // Of ratios to the largest, whose squares neither overflow nor vanish. No derivative sees it.
        let largest = largest(&stop_gradient(s), &[0]);
        let zero = largest.equal(&largest.like(0.0));
        let s = s / &over_columns(&zero.select(&largest.like(1.0), &largest));
        let sum = |s: &Var| (s * s).reduce_sum(Some(&[0]));
        let total = sum(&s);
        sum(&self.discarded(&s)) / zero.select(&total.like(1.0), &total)
    }
}

/// `(U, s, Vh, w)`: the r largest singular values that `t` allows, with their vectors, `m x r` and `r x n`,
/// and the discarded weight `w = sum_{i > r} s_i^2 / sum_i s_i^2`, one number for each matrix of a batch.
///
/// In a batch r is the largest rank that one of its matrices needs; the others have zeros beyond theirs. The
/// vectors have the phases of [`svd`](crate::ops::svd).
///
/// # Errors
/// As [`svd`](crate::ops::svd); a `max_rank` below 1, a limit that is negative or NaN.
pub fn svd_truncated(a: &Var, t: impl Into<Limits>) -> (Var, Var, Var, Var) {
    called("svd_truncated", [a], || {
        let (u, s, vh) = svd(a);
        let kept = Kept::new(&s, &t.into())?;
        Ok((kept.vectors(&u, 1), kept.kept(&s), kept.vectors(&vh, 0), kept.weight(&s)))
    })
}

#[cfg(test)]
mod tests {
    use super::Truncation;

    fn rank(t: Truncation, s: &[f64]) -> usize {
        t.rank(s, true)
    }

    const ALL: Truncation = Truncation { max_rank: None, rel: 0.0, abs: 0.0, weight: 0.0 };

    #[test]
    fn every_limit_cuts_where_it_says() {
        let s = [4.0, 2.0, 1.0, 0.5, 0.0];
        assert_eq!(rank(ALL, &s), 4);
        assert_eq!(rank(Truncation { max_rank: Some(3), ..ALL }, &s), 3);
        assert_eq!(rank(Truncation { rel: 0.25, ..ALL }, &s), 2);
        assert_eq!(rank(Truncation { rel: 0.249, ..ALL }, &s), 3);
        assert_eq!(rank(Truncation { abs: 0.5, ..ALL }, &s), 3);
        // Squares 16, 4, 1, 1/4: discarding the last two loses 1.25 of 21.25.
        assert_eq!(rank(Truncation { weight: 1.25 / 21.25 + 1e-12, ..ALL }, &s), 2);
        assert_eq!(rank(Truncation { weight: 1.25 / 21.25 - 1e-12, ..ALL }, &s), 3);
    }

    #[test]
    fn a_multiplet_is_kept_or_discarded_as_a_whole() {
        let s = [3.0, 1.0, 1.0 - 1e-9, 0.5, 0.5];
        assert_eq!(rank(Truncation::max_rank(2), &s), 1);
        assert_eq!(rank(Truncation::max_rank(3), &s), 3);
        assert_eq!(rank(Truncation::max_rank(4), &s), 3);
        assert_eq!(rank(Truncation::max_rank(5), &s), 5);
        assert_eq!(rank(Truncation { rel: 0.4, ..ALL }, &[1.0, 0.5, 0.4 + 1e-9, 0.4]), 2);
    }

    #[test]
    fn a_leading_multiplet_is_split_only_by_max_rank() {
        let s = [1.0, 1.0, 1.0, 0.1];
        assert_eq!(rank(Truncation { abs: 2.0, ..ALL }, &s), 3);
        assert_eq!(rank(Truncation { weight: 1.0, ..ALL }, &s), 3);
        assert_eq!(rank(Truncation::max_rank(2), &s), 2);
        assert_eq!(rank(Truncation::max_rank(2), &[1.0; 2]), 2);
    }

    #[test]
    fn zero_has_rank_zero_and_anything_else_does_not() {
        assert_eq!(rank(ALL, &[0.0, 0.0]), 0);
        assert_eq!(rank(ALL, &[]), 0);
        assert_eq!(rank(ALL, &[1e-300, 0.0]), 1);
        assert_eq!(rank(Truncation { rel: 2.0, ..ALL }, &[1.0, 0.5]), 1);
        assert_eq!(rank(ALL, &[1.0, 1e-200, 0.0]), 1, "rounding may have made this of a zero");
    }
}
