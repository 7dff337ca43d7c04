//! The matrix exponential.
//!
//! The n-th derivative along directions E1, .., En is, with the sum over permutations p and the integral over
//! all `t_0 + .. + t_n = 1` with `t_i >= 0`,
//!
//! ```text
//! D^n exp(A)[E1, .., En] = sum over p of  integral  exp(t_0 A) E_p1 exp(t_1 A) .. E_pn exp(t_n A)
//! ```
//!
//! It is symmetric in its directions, and its adjoint in each is the same derivative at A^H, of the adjoints
//! of the others. So [`MatrixExp`] is closed under differentiation and transposition. For n = 1 it is the
//! block above the diagonal of `exp [[A, E], [0, A]]`, and for larger n that of the blocks nested (N. J.
//! Higham and S. D. Relton, "Higher order Frechet derivatives of matrix functions and the level-2 condition
//! number", SIAM J. Matrix Anal. Appl. 35, 2014).

use crate::{
    batch::{
        Element, Matrices, Results, count, expect_finite, expect_positions, expect_square, for_each,
        unlisted, work,
    },
    matrix::floating,
    named::called,
    pade::{Double, exponential},
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Arg, Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{FLOATS, expect, expect_same},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::allocated;
use tenferro_tensor::{C32, C64, DType, Error, Result, Tensor};

/// `D^n exp(A)[E1, .., En]`, for n = 0 `exp(A)`. Inputs: A, and the n directions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MatrixExp;

/// The highest order: it takes `2^n` matrices, and `3^n` products for each one of the exponential.
const ORDER: usize = 8;

impl Primitive for MatrixExp {
    const NAME: &'static str = "matrix_exp";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, x.len().max(1), FLOATS)?;
        let order = x.len() - 1;
        if order > ORDER {
            let expected = format_args!("at most {ORDER}");
            return Err(Error::argument(Self::NAME, "number of directions", order, expected));
        }
        expect_square(Self::NAME, x, 0)?;
        expect_same(Self::NAME, x)?;
        Ok(smallvec![x[0].clone()])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let along = t[0].as_ref().map(|da| apply1(self, &x.iter().chain([da]).collect::<Vec<_>>()));
        let terms = (1..x.len()).filter_map(|i| t[i].as_ref().map(|d| with_direction(x, i, d)));
        smallvec![along.into_iter().chain(terms).reduce(|a, b| a + b)]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let ct = ct[0].as_ref().expect("rules with one output are called with its cotangent");
        let i = (1..x.len()).find(|&i| x[i].is_linear()).unwrap_or(0);
        let adjoints =
            x.iter().enumerate().map(|(j, x)| if i == j { ct.clone() } else { x.known().adjoint() });
        let adjoints: Vec<Var> = adjoints.collect();
        let mut pulled: Outs<Tangent> = smallvec![None; x.len()];
        pulled[i] = Some(apply1(self, &adjoints.iter().collect::<Vec<_>>()));
        pulled
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        // In double precision: rounding errors grow by squaring.
        table.on::<CpuBackend, Self>(FLOATS, |_, cpu, x, y, _| match y[0].dtype {
            DType::F32 => run::<f32, f64>(cpu, x, y),
            DType::F64 => run::<f64, f64>(cpu, x, y),
            DType::C32 => run::<C32, C64>(cpu, x, y),
            DType::C64 => run::<C64, C64>(cpu, x, y),
            dtype => Err(unlisted(Self::NAME, dtype)),
        });
    }
}

fn with_direction(x: &[Var], i: usize, e: &Var) -> Var {
    apply1(&MatrixExp, &x.iter().enumerate().map(|(j, x)| if i == j { e } else { x }).collect::<Vec<_>>())
}

fn run<T: Element, D: Double>(cpu: &CpuBackend, x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let (shape, n) = (&y[0].shape, y[0].shape[0]);
    let count = count(shape, 2, y);
    expect_positions(MatrixExp::NAME, count, [("rows", n)])?;
    let read: Vec<Matrices<T>> = x.iter().map(|x| Matrices::new(&x.read())).collect::<Result<_>>()?;
    let result = Results::<T>::new(shape, 2)?;
    for_each(cpu, count, work([20, n, n, n]), |b, par| {
        let copy = |x: &Matrices<T>| {
            let x = x.at(b);
            let mut copy = allocated([n, n], D::real(0.0))?;
            let all = (0..n).flat_map(|j| (0..n).map(move |i| (i, j)));
            // SAFETY: matrix b of an operand is readable, i < n and j < n.
            unsafe {
                expect_finite((n, n), x)?;
                let at = |(i, j)| *x.ptr.offset(i as isize * x.row + j as isize * x.col);
                copy.iter_mut().zip(all).for_each(|(to, ij)| *to = D::from_c64(at(ij).to_c64()));
            }
            Ok(copy)
        };
        let operands = read.iter().map(copy).collect::<Result<Vec<Vec<D>>, _>>()?;
        for (i, z) in exponential(n, operands, par)?.into_iter().enumerate() {
            // SAFETY: array b of the result is new memory of n n elements, as many as the exponential has.
            unsafe { *result.at(b).add(i) = T::from_c64(z.to_c64()) };
        }
        Ok(())
    })
    .map_err(|e| e.error(MatrixExp::NAME, shape))?;
    // SAFETY: every exponential was written in full.
    Ok(smallvec![unsafe { result.finish() }])
}

/// The exponential `1 + A + A^2 / 2 + ..` of square matrices, by scaling and squaring of a rational
/// approximation, with derivatives of any order up to 8. Axes from 2 on are batch axes. Elements that exceed
/// the range of the dtype become infinite, and then others may be NaN.
///
/// # Errors
/// Fewer than two axes; a matrix that is not square; an element that is NaN or infinite.
pub fn matrix_exp(a: &Var) -> Var {
    called(MatrixExp::NAME, [a], || Ok(apply1(&MatrixExp, &[&floating(a)])))
}
