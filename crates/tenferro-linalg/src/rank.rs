//! Which singular values of a matrix count as zero, in one place: the rank of a matrix, its pseudo-inverse
//! and least squares agree about it.

use crate::{
    batch::{Element, Matrices, Results, count, expect_matrix, expect_stack, unlisted},
    matrix::floating,
    named::{called, outputs},
    range::in_range,
    stop_gradient::stop_gradient,
    svd::svdvals,
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Real as Parameter, Saves, Tangent, Var,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{Field, Real};
use tenferro_tensor::{DType, Error, Result, Tensor, dispatch_real};

/// Which singular values count as zero: those that are not larger than `max(atol, rtol s_1)`, with the
/// largest one, `s_1`, and those below the normal numbers of the dtype, whose reciprocals may be infinite.
///
/// ```
/// use tenferro_linalg::Tolerance;
/// let t = Tolerance { atol: 1e-8, ..Tolerance::default() };
/// assert_eq!(t.rtol, None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Tolerance {
    /// Relative to the largest singular value. If `None`, `max(m, n) eps` for an `m x n` matrix with the
    /// rounding error eps of its dtype, or 0 if `atol` is given.
    pub rtol: Option<f64>,
    /// Absolute.
    pub atol: f64,
}

impl Tolerance {
    /// Only a relative tolerance.
    pub fn relative(rtol: f64) -> Self {
        Tolerance { rtol: Some(rtol), atol: 0.0 }
    }

    pub(crate) fn check(&self, op: &'static str) -> Result<()> {
        for (name, v) in [("rtol", self.rtol.unwrap_or(0.0)), ("atol", self.atol)] {
            if v.is_nan() || v < 0.0 {
                return Err(Error::argument(op, name, v, "a number of at least 0"));
            }
        }
        Ok(())
    }

    /// The reciprocals of the singular values of `a`, 0 for those that count as zero, and the number of the
    /// others, where `s` are those of `c a`. Neither has a derivative.
    pub(crate) fn of(&self, a: &Var, s: &Var, c: &Var) -> [Var; 2] {
        let rtol = self.rtol.or((self.atol > 0.0).then_some(0.0)).map(Parameter);
        let op = NumericalRank { rtol, atol: Parameter(self.atol) };
        outputs(&op, &[&stop_gradient(a), &stop_gradient(s), c])
    }
}

/// The numerical rank of an `m x n` matrix. Inputs: the matrix, of which only the extents matter; the
/// singular values s of c times the matrix, and c, which is a positive number for each. Outputs: the
/// reciprocals c / s of its singular values, and 0 where one counts as zero; and the number of the others, an
/// i64.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NumericalRank {
    /// The relative tolerance; `max(m, n) eps` if `None`.
    pub rtol: Option<Parameter>,
    /// The absolute tolerance.
    pub atol: Parameter,
}

impl Primitive for NumericalRank {
    const NAME: &'static str = "numerical_rank";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        if let [a, ..] = x {
            expect(Self::NAME, &[a], 1, FLOATS)?;
        }
        if x.len() != 3 {
            return Err(Error::argument(Self::NAME, "number of operands", x.len(), 3));
        }
        let [m, n] = expect_matrix(Self::NAME, x, 0)?;
        let batch = &x[0].shape[2..];
        expect_stack(Self::NAME, "s", x[1], x[0].dtype.real(), &[&D::min(m, n)], batch)?;
        expect_stack(Self::NAME, "c", x[2], x[0].dtype.real(), &[], batch)?;
        Ok(smallvec![x[1].clone(), Aval::new(DType::I64, batch.iter().cloned())])
    }
    // Its results are hints.
    fn jvp(&self, _: &[Var], _: &[Var], _: &[Tangent]) -> Outs<Tangent> {
        smallvec![None, None]
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |op, _, x, y, _| {
            let dtype = y[0].dtype;
            dispatch_real!(dtype, T => tabulate::<T>(op, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

fn tabulate<T: Element + Real>(
    op: &NumericalRank,
    x: &mut [Operand<'_>],
    y: &[Aval],
) -> Result<Outs<Tensor>> {
    let [a, s, c] = [0, 1, 2].map(|i| x[i].read());
    let largest = a.shape()[0].max(a.shape()[1]) as f64;
    let (read, factors) = (Matrices::<T>::vectors(&s)?, Matrices::<T>::numbers(&c)?);
    let inverses = Results::<T>::new(&y[0].shape, 1)?;
    let ranks = Results::<i64>::new(&y[1].shape, 0)?;
    let rtol = op.rtol.map_or(T::of(largest) * T::EPS, |rtol| T::of(rtol.0));
    let atol = T::of(op.atol.0);
    for b in 0..count(a.shape(), 2, y) {
        let s = read.at(b);
        // SAFETY: there is one factor for each vector.
        let c = unsafe { *factors.at(b).ptr };
        let mut rank = 0;
        for i in 0..y[0].shape[0] {
            // SAFETY: i is below the length of vector b, which is not empty.
            unsafe {
                let (first, s) = (*s.ptr, *s.ptr.offset(i as isize * s.row));
                // See `Tolerance`.
                let kept = s > rtol * first && s > atol * c && s >= T::TINY * c;
                *inverses.at(b).add(i) = if kept { c / s } else { <T as Field>::ZERO };
                rank += i64::from(kept);
            }
        }
        // SAFETY: there is one rank for each vector.
        unsafe { *ranks.at(b) = rank };
    }
    // SAFETY: the loops have written every element.
    Ok(unsafe { smallvec![inverses.finish(), ranks.finish()] })
}

/// The number of singular values of each matrix that do not count as zero, an i64; see [`Tolerance`]. It has
/// no derivative. Axes from 2 on are batch axes.
///
/// # Errors
/// As [`svd`](crate::ops::svd); a tolerance that is negative or NaN.
pub fn matrix_rank(a: &Var, tolerance: Tolerance) -> Var {
    const NAME: &str = "matrix_rank";
    called(NAME, [a], || {
        tolerance.check(NAME)?;
        let a = stop_gradient(&floating(a));
        let (scaled, c) = in_range(&a)?;
        let [_, rank] = tolerance.of(&a, &svdvals(&scaled), &c);
        Ok(rank)
    })
}
