//! Powers, Kronecker products and traces of matrices.

use crate::{
    checked::checked,
    matrix::{checked_square, floating},
    named::called,
    solve::solve,
};
use tenferro_core_ops::{Dim, Extent, Extents, Var, align_batch, build};
use tenferro_tensor::{DType, Error, Result};

/// `A^n` for any integer n, by repeated squaring: of the inverse if n is negative, and the identity for 0.
/// Integer matrices become f64. Axes from 2 on are batch axes. For positive n, NaN and infinities propagate;
/// `A^0` does not depend on A.
///
/// # Errors
/// A matrix that is not square; for negative n, as [`solve`](crate::ops::solve).
pub fn matrix_power(a: &Var, n: i64) -> Var {
    called("matrix_power", [a], || try_matrix_power(a, n))
}

fn try_matrix_power(a: &Var, n: i64) -> Result<Var> {
    const NAME: &str = "matrix_power";
    let a = checked_square(NAME, &floating(a))?;
    let one = || build::eye(a.dtype(), &a.extent(0)).batch_like(&a);
    if n == 0 {
        // Of A, it has the order only.
        return checked(NAME, "rows of a square matrix", &one(), [&a.extent(0), &a.extent(1)]);
    }
    let (mut left, mut power) = (n.unsigned_abs(), None);
    let mut square = if n < 0 { solve(&a, &one()) } else { a.clone() };
    loop {
        if left % 2 == 1 {
            power = Some(power.map_or_else(|| square.clone(), |p: Var| p.matmul(&square)));
        }
        left /= 2;
        match power {
            Some(power) if left == 0 => return Ok(power),
            _ => square = square.matmul(&square),
        }
    }
}

/// The Kronecker product of matrices of `m x n` and `p x q`, the `m p x n q` matrix of the blocks `a_ij B`.
/// Its row is `row of B + p (row of A)`: reshaped, column-major, the axes of B stand before those of A.
/// Axes from 2 on are batch axes, aligned there: a missing one, or one of extent 1, is repeated. Dtypes are
/// promoted. NaN and infinities propagate.
///
/// # Errors
/// An operand with fewer than two axes; batch axes that do not fit.
pub fn kron(a: &Var, b: &Var) -> Var {
    called("kron", [a, b], || try_kron(a, b))
}

fn try_kron(a: &Var, b: &Var) -> Result<Var> {
    let dtype = DType::promote(a.dtype(), b.dtype());
    let (a, b) = align_batch("kron", &a.convert(dtype), &b.convert(dtype))?;
    let (sa, sb) = (a.shape(), b.shape());
    // Column-major, the index inside of a block is the fast one.
    let blocks = a.expand_dims(&[0, 2]) * b.expand_dims(&[1, 3]);
    let both = (0..2).map(|i| Extent::mul(&sa[i], &sb[i]));
    Ok(blocks.reshape(&both.chain(sa[2..].iter().cloned()).collect::<Extents<Dim>>()))
}

/// The sum of the diagonal of each matrix, which need not be square. Axes from 2 on are batch axes. NaN and
/// infinities of the diagonal propagate.
///
/// # Errors
/// Fewer than two axes.
pub fn trace(a: &Var) -> Var {
    called("trace", [a], || {
        let rank = a.rank();
        if rank < 2 {
            return Err(Error::rank("trace", "rank of the matrix", rank, "at least 2"));
        }
        Ok(a.extract_diag(0, 1).reduce_sum(Some(&[rank - 2])))
    })
}
