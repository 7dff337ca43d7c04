//! Dense linear algebra.
//!
//! Singular vectors of a multiplet and the factors of a split are free up to a gauge, a unitary basis of the
//! multiplet or of the bond. What is compared of them is their defining properties, and derivatives there are
//! those of functions that do not depend on the gauge. The operations that rules are made of take values that no
//! rule differentiates, hints, beside the operands; they are checked as what they compute for right hints,
//! and their derivatives as part of the operations that they serve.

mod bond;
mod cholesky;
mod det;
mod eig;
mod eigh;
mod functions;
mod lstsq;
mod lu;
mod norm;
mod qr;
mod spectral;
mod split;
mod svd;
mod systems;
mod truncate;

use super::{C64 as C64_, *};
use crate::{
    info::OpInfo,
    matrix::{Matrix, matrices, stack},
};

/// The tolerance where a result of a matrix of this `order`, the larger of its extents or of the sizes that
/// its symbolic calls are run at, moves by `condition` times as much as the matrix, both relative to their
/// largest element. A stable algorithm errs as if each element of the matrix were off by at most `order`
/// rounding errors.
fn bound(order: usize, condition: f64) -> f64 {
    order as f64 * condition
}

/// Why a loop that moves the operands does not apply to an operation with hints.
const HINTS: &str = "hints do not move with the operands; the derivative is that of the operation it serves";

pub(super) fn list() -> Vec<OpInfo> {
    let families = [
        svd::list(),
        eigh::list(),
        eig::list(),
        systems::list(),
        lu::list(),
        cholesky::list(),
        det::list(),
        qr::list(),
        lstsq::list(),
        spectral::list(),
        truncate::list(),
        split::list(),
        bond::list(),
        norm::list(),
        functions::list(),
    ];
    families.into_iter().flatten().map(|i| OpInfo { infinite: true, ..i }).collect()
}

/// Random `m x n` matrices with these singular values, one for each list, along one batch axis if there are
/// several.
fn with_values(dtype: DType, [m, n]: [usize; 2], values: &[&[f64]], seed: u64) -> Array {
    let parts: Vec<Matrix> = (values.iter().enumerate())
        .map(|(b, s)| {
            let basis = |n: usize, k| matrices(&any(dtype, &[n, n], seed + 2 * b as u64 + k))[0].basis();
            basis(m, 0).times(&Matrix::diagonal(m, n, s)).times(&basis(n, 1))
        })
        .collect();
    let batch = if values.len() == 1 { vec![] } else { vec![values.len()] };
    stack(dtype, [m, n], &batch, &parts)
}

/// Random matrices far from singular ones: the condition of a square one is below 2.5.
fn dominant(dtype: DType, shape: &[usize], seed: u64) -> Array {
    let x = any(dtype, shape, seed);
    Array::from_fn(dtype, shape, |i| {
        let far = if i[0] == i[1] { f64::max(3.0, shape[0] as f64) } else { 0.0 };
        x.at(i).plus(crate::array::Elem::real(far))
    })
}

/// The extents of one matrix, and of the batch.
fn extents(a: &Array) -> ([usize; 2], &[usize]) {
    ([a.shape[0], a.shape[1]], &a.shape[2..])
}

/// `f` of every matrix of a stack, of extents `shape`.
fn each_matrix(a: &Array, shape: [usize; 2], f: impl Fn(Matrix) -> Matrix) -> Array {
    let parts: Vec<Matrix> = matrices(a).into_iter().map(f).collect();
    stack(a.dtype, shape, &a.shape[2..], &parts)
}

/// `f` of the matrices of two stacks with one batch, of extents `shape`.
fn each_pair(a: &Array, b: &Array, shape: [usize; 2], f: impl Fn(&Matrix, &Matrix) -> Matrix) -> Array {
    let parts: Vec<Matrix> = matrices(a).iter().zip(&matrices(b)).map(|(a, b)| f(a, b)).collect();
    stack(a.dtype, shape, &a.shape[2..], &parts)
}

/// The identity for every matrix of the batch of `a`.
fn identities(a: &Array, n: usize) -> Array {
    each_matrix(a, [n, n], |_| Matrix::identity(n))
}

/// The dtype in which matrices of `dtype` are decomposed.
fn floating(dtype: DType) -> DType {
    if dtype.is_differentiable() { dtype } else { F64 }
}

/// The batch in which these align: a missing extent, or one of 1, is repeated.
fn common_batch<const N: usize>(batches: [&[usize]; N]) -> Vec<usize> {
    let rank = batches.iter().map(|b| b.len()).max().unwrap_or(0);
    let at = |b: &&[usize], i: usize| b.get(i).copied().unwrap_or(1);
    (0..rank).map(|i| batches.iter().map(|b| at(b, i)).find(|&n| n != 1).unwrap_or(1)).collect()
}

/// Arrays of `axes` axes, repeated over a batch that theirs aligns with.
fn repeated(a: &Array, axes: usize, batch: &[usize]) -> Array {
    let mut shape = a.shape.clone();
    shape.resize(axes + batch.len(), 1);
    a.reshape(&shape).broadcast(&[&a.shape[..axes], batch].concat())
}

/// `f` of the matrices and right-hand sides of a system, whose batch axes align from axis 2 on. A vector is a
/// column, or a row if `right`, and so is its result.
fn with_batch(a: &Array, b: &Array, right: bool, f: impl Fn(&Matrix, &Matrix) -> Matrix) -> Array {
    let vector = b.rank() == 1;
    let b = match (vector, right) {
        (false, _) => b.clone(),
        (true, false) => b.reshape(&[b.shape[0], 1]),
        (true, true) => b.reshape(&[1, b.shape[0]]),
    };
    let batch = common_batch([&a.shape[2..], &b.shape[2..]]);
    let y = each_pair(&repeated(a, 2, &batch), &repeated(&b, 2, &batch), extents(&b).0, f);
    let long = y.shape[usize::from(right)];
    if vector { y.reshape(&[&[long], &batch[..]].concat()) } else { y }
}
