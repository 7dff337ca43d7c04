//! Whether vectors are independent, which a derivative asks for that divides by them.

use crate::batch::{Element, Matrices, count, expect_square, of_matrix, unlisted};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{Field, Real};
use tenferro_tensor::{Error, Result, Tensor, TensorRef, dispatch_float};

/// The identity on the inverse of a matrix of eigenvectors of length 1, where these are independent beyond
/// rounding errors; an error elsewhere.
///
/// The length of row j of the inverse is the condition of eigenvalue j, 1 for a normal matrix: how much it
/// moves as the matrix does. Of a double eigenvalue with one vector, a rounding error eps makes two that are
/// about sqrt(eps) apart, as their vectors are, and conditions of about `0.5 / sqrt(eps)`; more of a higher
/// order. So `0.1 / sqrt(eps)` is the bound. What is below it has derivatives that are wrong by a fraction of
/// about the square of the condition times eps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IndependentVectors {
    /// The operation that its error names.
    pub op: &'static str,
}

impl Primitive for IndependentVectors {
    const NAME: &'static str = "independent_vectors";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        expect_square(Self::NAME, x, 0)?;
        Ok(smallvec![x[0].clone()])
    }
    fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].clone()]
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |op, _, x, y, _| {
            let dtype = y[0].dtype;
            dispatch_float!(dtype, T => run::<T>(op, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

fn run<T: Element>(op: &IndependentVectors, x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    check::<T>(op, &x[0].read(), y)?;
    let same = match x[0].take() {
        Some(x) => x,
        None => x[0].read().to_tensor()?,
    };
    Ok(smallvec![same])
}

fn check<T: Element>(op: &IndependentVectors, inverse: &TensorRef<'_>, y: &[Aval]) -> Result<()> {
    let n = inverse.shape()[0];
    let read = Matrices::<T>::new(inverse)?;
    let bound = 0.1 / <<T as Field>::Real as Real>::EPS.to_f64().sqrt();
    for b in 0..count(inverse.shape(), 2, y) {
        let rows = read.at(b);
        for i in 0..n {
            // SAFETY: i and j are below n, the order of matrix b.
            let square =
                |j: usize| unsafe { *rows.ptr.offset(i as isize * rows.row + j as isize * rows.col) };
            let condition = (0..n).map(|j| square(j).abs2().to_f64()).sum::<f64>().sqrt();
            // NaN is no condition.
            if condition <= bound {
                continue;
            }
            let of = of_matrix(b, inverse.shape());
            return Err(Error::numeric(
                op.op,
                "the eigenvectors are dependent to rounding",
                format_args!("condition {condition:.1e} of eigenvalue {i}{of}"),
                format_args!("at most {bound:.1e}"),
            ));
        }
    }
    Ok(())
}
