//! Reciprocals of the gaps between eigenvalues, with 0 in place of what cannot be used.

use crate::batch::{Element, Matrices, Results, count, expect_square, expect_stack, unlisted};
use crate::matrix::{over_columns, over_rows};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{Field, Real};
use tenferro_tensor::{Result, Tensor, dispatch_float};

/// The table `1 / (w_j - w_i)` of eigenvalues w with vectors V, the second input. It is 0 on the diagonal, and
/// where the gap is less than sqrt(eps) relative to the mean modulus of the two, or less than 10 n eps of the
/// largest modulus, which is what the eigenvalues may be wrong by.
///
/// Two vectors with one component each belong to 1 x 1 blocks of a matrix. Such eigenvalues have no error, and
/// any gap between them counts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EigenvalueGaps;

impl Primitive for EigenvalueGaps {
    const NAME: &'static str = "eigenvalue_gaps";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 2, FLOATS)?;
        expect_square(Self::NAME, x, 1)?;
        let (n, batch) = (&x[1].shape[0], &x[1].shape[2..]);
        // Real eigenvalues may have complex vectors.
        let dtype = if x[0].dtype.is_float() { x[1].dtype.real() } else { x[1].dtype };
        expect_stack(Self::NAME, "eigenvalues", x[0], dtype, &[n], batch)?;
        Ok(smallvec![Aval::new(x[0].dtype, x[1].shape.iter().cloned())])
    }
    // The derivative of 1/z is -1/z^2 dz, and where 1/z was replaced by 0, so is its derivative.
    fn jvp(&self, _: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let d = t[0].as_ref().map(|dw| &-&(&y[0] * &y[0]) * &(&over_columns(dw) - &over_rows(dw)));
        smallvec![d]
    }
    fn saves(&self) -> Saves {
        Saves::OUTPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, _, x, y, _| {
            let dtype = x[1].dtype();
            dispatch_float!(dtype, V => if x[0].dtype() == dtype {
                tabulate::<V, V, _>(x, y)
            } else {
                tabulate::<<V as Field>::Real, V, _>(x, y)
            }, else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

fn tabulate<T: Element + Field<Real = R>, V: Element, R: Real>(
    x: &[Operand<'_>],
    y: &[Aval],
) -> Result<Outs<Tensor>> {
    let (w, v) = (x[0].read(), x[1].read());
    let n = w.shape()[0];
    let (values, vectors) = (Matrices::<T>::vectors(&w)?, Matrices::<V>::new(&v)?);
    let table = Results::<T>::new(&y[0].shape, 2)?;
    for b in 0..count(v.shape(), 2, y) {
        let (w, v, table) = (values.at(b), vectors.at(b), table.at(b));
        // SAFETY: i is below n, the length of vector b.
        let w: Vec<T> = (0..n).map(|i| unsafe { *w.ptr.offset(i as isize * w.row) }).collect();
        let exact: Vec<bool> = (0..n)
            .map(|j| {
                // SAFETY: i and j are below n, the order of matrix b.
                let at = |i: usize| unsafe { *v.ptr.offset(i as isize * v.row + j as isize * v.col) };
                (0..n).filter(|&i| at(i) != <V as Field>::ZERO).count() == 1
            })
            .collect();
        let size: Vec<R> = w.iter().map(|w| w.abs()).collect();
        let largest = size.iter().fold(R::ZERO, |m, &x| if x > m { x } else { m });
        let error = largest * R::of(10.0 * n as f64) * R::EPS;
        let relative = R::EPS.sqrt() * R::of(0.5);
        for j in 0..n {
            for i in 0..n {
                let gap = w[j] - w[i];
                let wide = gap.abs();
                let sound = wide > (size[i] + size[j]) * relative && wide > error;
                // Below the normal range, the reciprocal may be infinite.
                let usable = (sound || (exact[i] && exact[j])) && wide >= R::TINY;
                let inverse = if usable { <T as Field>::ONE.divide(gap) } else { <T as Field>::ZERO };
                // SAFETY: i and j are below n; the table has n rows and n columns.
                unsafe { *table.add(i + j * n) = inverse };
            }
        }
    }
    // SAFETY: the loops have written every element.
    Ok(smallvec![unsafe { table.finish() }])
}
