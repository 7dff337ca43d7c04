//! Matrices of the references: products, elimination and singular values by plain loops in double precision.

use crate::array::{Array, Elem};
use std::iter::once;
use tenferro_tensor::{C64, DType};

const ZERO: C64 = C64::new(0.0, 0.0);
const ONE: C64 = C64::new(1.0, 0.0);

/// A complex matrix in column-major order.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    data: Vec<C64>,
}

impl Matrix {
    pub(crate) fn from_fn(rows: usize, columns: usize, f: impl Fn(usize, usize) -> C64) -> Matrix {
        let data = (0..columns).flat_map(|j| (0..rows).map(move |i| (i, j))).map(|(i, j)| f(i, j)).collect();
        Matrix { rows, columns, data }
    }

    /// The diagonal matrix of real numbers.
    pub(crate) fn diagonal(rows: usize, columns: usize, d: &[f64]) -> Matrix {
        Matrix::from_fn(rows, columns, |i, j| if i == j && i < d.len() { d[i].into() } else { ZERO })
    }

    pub(crate) fn identity(n: usize) -> Matrix {
        Matrix::diagonal(n, n, &vec![1.0; n])
    }

    pub(crate) fn at(&self, i: usize, j: usize) -> C64 {
        self.data[i + j * self.rows]
    }

    fn set(&mut self, i: usize, j: usize, z: C64) {
        self.data[i + j * self.rows] = z;
    }

    fn column(&self, j: usize) -> &[C64] {
        &self.data[j * self.rows..(j + 1) * self.rows]
    }

    pub(crate) fn adjoint(&self) -> Matrix {
        Matrix::from_fn(self.columns, self.rows, |i, j| self.at(j, i).conj())
    }

    pub(crate) fn transposed(&self) -> Matrix {
        Matrix::from_fn(self.columns, self.rows, |i, j| self.at(j, i))
    }

    /// `self o`
    pub(crate) fn times(&self, o: &Matrix) -> Matrix {
        assert_eq!(self.columns, o.rows, "a product of fitting matrices");
        Matrix::from_fn(self.rows, o.columns, |i, j| (0..o.rows).map(|k| self.at(i, k) * o.at(k, j)).sum())
    }

    /// `self + c o`
    pub(crate) fn plus(&self, c: f64, o: &Matrix) -> Matrix {
        Matrix::from_fn(self.rows, self.columns, |i, j| self.at(i, j) + c * o.at(i, j))
    }

    /// `self / 2`
    pub(crate) fn halved(&self) -> Matrix {
        Matrix::from_fn(self.rows, self.columns, |i, j| self.at(i, j) / 2.0)
    }

    /// `self diag(d)`, of the columns that `d` has an entry for.
    pub(crate) fn scaled(&self, d: &[f64]) -> Matrix {
        Matrix::from_fn(self.rows, d.len(), |i, j| self.at(i, j) * d[j])
    }

    /// The first `n` columns.
    pub(crate) fn leading(&self, n: usize) -> Matrix {
        Matrix::from_fn(self.rows, n, |i, j| self.at(i, j))
    }

    /// The rows in the order `p`.
    pub(crate) fn permuted(&self, p: &[usize]) -> Matrix {
        Matrix::from_fn(p.len(), self.columns, |i, j| self.at(p[i], j))
    }

    pub(crate) fn trace(&self) -> C64 {
        (0..self.rows.min(self.columns)).map(|i| self.at(i, i)).sum()
    }

    /// `(U, s, V)` with `A = U diag(s) V^H`, by rotations of pairs of columns until all are orthogonal (M. R.
    /// Hestenes, "Inversion of matrices by biorthogonalization", 1958). Columns of U for values 0 are 0.
    pub(crate) fn svd(&self) -> (Matrix, Vec<f64>, Matrix) {
        if self.rows < self.columns {
            let (v, s, u) = self.adjoint().svd();
            return (u, s, v);
        }
        let (mut a, mut v) = (self.clone(), Matrix::identity(self.columns));
        let n = self.columns;
        for _ in 0..60 {
            let mut rotated = false;
            for (p, q) in (0..n).flat_map(|q| (0..q).map(move |p| (p, q))) {
                let square = |j: usize| a.column(j).iter().map(|z| z.norm_sqr()).sum::<f64>();
                let (alpha, beta) = (square(p), square(q));
                let gamma: C64 = a.column(p).iter().zip(a.column(q)).map(|(x, y)| x.conj() * y).sum();
                if gamma.norm() <= 1e-17 * (alpha * beta).sqrt() {
                    continue;
                }
                rotated = true;
                let phase = gamma / gamma.norm();
                let zeta = (beta - alpha) / (2.0 * gamma.norm());
                let t = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                let c = 1.0 / (1.0 + t * t).sqrt();
                for m in [&mut a, &mut v] {
                    for i in 0..m.rows {
                        let (x, y) = (m.at(i, p), m.at(i, q) * phase.conj());
                        m.set(i, p, c * x - c * t * y);
                        m.set(i, q, c * t * x + c * y);
                    }
                }
            }
            if !rotated {
                break;
            }
        }
        let norms: Vec<f64> =
            (0..n).map(|j| a.column(j).iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt()).collect();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&i, &j| norms[j].total_cmp(&norms[i]));
        let s: Vec<f64> = order.iter().map(|&j| norms[j]).collect();
        let u =
            Matrix::from_fn(self.rows, n, |i, j| if s[j] > 0.0 { a.at(i, order[j]) / s[j] } else { ZERO });
        (u, s, Matrix::from_fn(n, n, |i, j| v.at(i, order[j])))
    }

    /// `(w, V)` with `A = V diag(w) V^H` of a Hermitian matrix, w ascending. Adding a bound of its eigenvalues to
    /// the diagonal makes V the singular vectors; the quotients `v^H A v / v^H v` lose no digits
    /// to the bound.
    pub(crate) fn eigh(&self) -> (Vec<f64>, Matrix) {
        let n = self.rows;
        let shift = self.data.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
        let (_, _, v) = self.plus(shift, &Matrix::identity(n)).svd();
        let v = Matrix::from_fn(n, n, |i, j| v.at(i, n - 1 - j));
        let (above, below) = (v.adjoint().times(self).times(&v), v.adjoint().times(&v));
        let mut w: Vec<f64> = (0..n).map(|i| above.at(i, i).re / below.at(i, i).re).collect();
        w.sort_by(f64::total_cmp);
        (w, v)
    }

    /// `(p, L, U)` with `A[p, :] = L U`, L with diagonal 1, by elimination below the largest pivots, by |re| +
    /// |im| as in LAPACK.
    pub(crate) fn lu(&self) -> (Vec<usize>, Matrix, Matrix) {
        let (m, n) = (self.rows, self.columns);
        let (mut a, mut p) = (self.clone(), (0..m).collect::<Vec<_>>());
        for k in 0..m.min(n) {
            let size = |i: usize| a.at(i, k).re.abs() + a.at(i, k).im.abs();
            let pivot = (k..m).fold(k, |best, i| if size(i) > size(best) { i } else { best });
            p.swap(k, pivot);
            for j in 0..n {
                let (x, y) = (a.at(k, j), a.at(pivot, j));
                a.set(k, j, y);
                a.set(pivot, j, x);
            }
            for i in k + 1..m {
                let factor = a.at(i, k) / a.at(k, k);
                a.set(i, k, factor);
                for j in k + 1..n {
                    a.set(i, j, a.at(i, j) - factor * a.at(k, j));
                }
            }
        }
        let k = m.min(n);
        let l = Matrix::from_fn(m, k, |i, j| {
            if i == j {
                ONE
            } else if i > j {
                a.at(i, j)
            } else {
                ZERO
            }
        });
        (p, l, Matrix::from_fn(k, n, |i, j| if i <= j { a.at(i, j) } else { ZERO }))
    }

    /// `(p, q, L, U)` with `A[p, :][:, q] = L U`, by elimination with the largest of all elements that are
    /// left.
    pub(crate) fn lu_full_pivot(&self) -> (Vec<usize>, Vec<usize>, Matrix, Matrix) {
        let k = self.rows.min(self.columns);
        let (mut a, mut l) = (self.clone(), Matrix::diagonal(self.rows, k, &[]));
        let (mut p, mut q): (Vec<usize>, Vec<usize>) =
            ((0..self.rows).collect(), (0..self.columns).collect());
        for step in 0..k {
            let size = |&(i, j): &(usize, usize)| a.at(p[i], q[j]).re.abs() + a.at(p[i], q[j]).im.abs();
            let places = (step..self.columns).flat_map(|j| (step..self.rows).map(move |i| (i, j)));
            let (i, j) =
                places.reduce(|x, y| if size(&y) > size(&x) { y } else { x }).expect("some are left");
            p.swap(step, i);
            q.swap(step, j);
            l.set(p[step], step, ONE);
            for &row in &p[step + 1..] {
                let c = a.at(row, q[step]) / a.at(p[step], q[step]);
                l.set(row, step, c);
                for &column in &q[step + 1..] {
                    a.set(row, column, a.at(row, column) - c * a.at(p[step], column));
                }
            }
        }
        let u = Matrix::from_fn(k, self.columns, |i, j| if i <= j { a.at(p[i], q[j]) } else { ZERO });
        (p.clone(), q, l.permuted(&p), u)
    }

    /// The matrix without row i and column j.
    fn minor(&self, i: usize, j: usize) -> Matrix {
        let skip = |k: usize, at: usize| if k < at { k } else { k + 1 };
        Matrix::from_fn(self.rows - 1, self.columns - 1, |r, c| self.at(skip(r, i), skip(c, j)))
    }

    /// The determinant, by expansion along the first column, or of the factors where that takes too long.
    pub(crate) fn det(&self) -> C64 {
        match self.rows {
            0 => ONE,
            1..6 => (0..self.rows).map(|i| self.at(i, 0) * self.cofactor(i, 0)).sum(),
            n => {
                let (mut p, _, u) = self.lu();
                let mut sign = 1.0;
                for i in 0..n {
                    while p[i] != i {
                        let j = p[i];
                        p.swap(i, j);
                        sign = -sign;
                    }
                }
                (0..n).map(|i| u.at(i, i)).product::<C64>() * sign
            }
        }
    }

    fn cofactor(&self, i: usize, j: usize) -> C64 {
        self.minor(i, j).det() * if (i + j).is_multiple_of(2) { 1.0 } else { -1.0 }
    }

    /// The derivatives of the determinant by the elements.
    pub(crate) fn cofactors(&self) -> Matrix {
        Matrix::from_fn(self.rows, self.columns, |i, j| self.cofactor(i, j))
    }

    /// `A^-1 b`
    pub(crate) fn solve(&self, b: &Matrix) -> Matrix {
        let (p, l, u) = self.lu();
        let mut x = b.permuted(&p);
        for j in 0..x.columns {
            for i in 0..x.rows {
                let below: C64 = (0..i).map(|k| l.at(i, k) * x.at(k, j)).sum();
                x.set(i, j, x.at(i, j) - below);
            }
            for i in (0..x.rows).rev() {
                let above: C64 = (i + 1..x.rows).map(|k| u.at(i, k) * x.at(k, j)).sum();
                x.set(i, j, (x.at(i, j) - above) / u.at(i, i));
            }
        }
        x
    }

    /// L with `A = L L^H`, row by row, from the lower triangle of a positive definite matrix.
    pub(crate) fn cholesky(&self) -> Matrix {
        let mut l = Matrix::diagonal(self.rows, self.rows, &[]);
        for i in 0..self.rows {
            for j in 0..=i {
                let known: C64 = (0..j).map(|k| l.at(i, k) * l.at(j, k).conj()).sum();
                let rest = self.at(i, j) - known;
                l.set(i, j, if i == j { rest.re.sqrt().into() } else { rest / l.at(j, j) });
            }
        }
        l
    }

    /// An orthonormal basis that begins with the orthonormalized columns, by projections, done twice for
    /// rounding.
    pub(crate) fn basis(&self) -> Matrix {
        let n = self.rows;
        let mut q: Vec<Vec<C64>> = Vec::new();
        let units = (0..n).map(|k| (0..n).map(|i| if i == k { ONE } else { ZERO }).collect());
        for mut x in (0..self.columns).map(|j| self.column(j).to_vec()).chain(units) {
            let norm = |x: &[C64]| x.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
            let before = norm(&x);
            for _ in 0..2 {
                for q in &q {
                    let along: C64 = q.iter().zip(&x).map(|(q, x)| q.conj() * x).sum();
                    x.iter_mut().zip(q).for_each(|(x, q)| *x -= along * q);
                }
            }
            let after = norm(&x);
            if q.len() < n && after > 1e-6 * before {
                q.push(x.into_iter().map(|z| z / after).collect());
            }
        }
        Matrix { rows: n, columns: n, data: q.concat() }
    }
}

/// The matrices of a stack: axes 0 and 1, for all positions along the others.
pub(crate) fn matrices(a: &Array) -> Vec<Matrix> {
    let (m, n) = (a.shape[0], a.shape[1]);
    let data: Vec<C64> = a.data.iter().map(|e| e.c()).collect();
    let count: usize = a.shape[2..].iter().product();
    (0..count)
        .map(|b| Matrix { rows: m, columns: n, data: data[b * m * n..(b + 1) * m * n].to_vec() })
        .collect()
}

/// The real vectors of a stack: axis 0, for all positions along the others.
pub(crate) fn vectors(a: &Array) -> Vec<Vec<f64>> {
    let count: usize = a.shape[1..].iter().product();
    (0..count).map(|b| (0..a.shape[0]).map(|i| a.data[i + b * a.shape[0]].re()).collect()).collect()
}

/// The stack of matrices of `shape`, along batch axes `batch`.
pub(crate) fn stack(dtype: DType, shape: [usize; 2], batch: &[usize], parts: &[Matrix]) -> Array {
    let shape: Vec<usize> = shape.iter().chain(batch).copied().collect();
    of(dtype, &shape, parts.iter().flat_map(|m| m.data.iter().copied()))
}

/// The stack of vectors of length `n`.
pub(crate) fn stack_vectors(dtype: DType, n: usize, batch: &[usize], parts: &[Vec<f64>]) -> Array {
    let shape: Vec<usize> = once(&n).chain(batch).copied().collect();
    of(dtype, &shape, parts.iter().flatten().map(|&x| x.into()))
}

/// The stack of numbers.
pub(crate) fn stack_scalars(dtype: DType, batch: &[usize], parts: &[C64]) -> Array {
    of(dtype, batch, parts.iter().copied())
}

fn of(dtype: DType, shape: &[usize], mut data: impl Iterator<Item = C64>) -> Array {
    Array::from_fn(dtype, shape, |_| Elem::Float(data.next().expect("as many elements as the shape has")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: &Matrix, b: &Matrix) -> f64 {
        a.plus(-1.0, b).data.iter().map(|z| z.norm()).fold(0.0, f64::max)
    }

    #[test]
    fn factors_have_the_matrix_as_their_product() {
        for shape in [[4, 4], [5, 3], [3, 5], [1, 1]] {
            let a = &matrices(&Array::uniform(DType::C64, &shape, 3, -1.0, 1.0))[0];
            let (u, s, v) = a.svd();
            assert!(distance(&u.scaled(&s).times(&v.adjoint()), a) < 1e-14, "{shape:?}");
            assert!(distance(&u.adjoint().times(&u), &Matrix::identity(s.len())) < 1e-14, "{shape:?}");
            let (p, l, upper) = a.lu();
            assert!(distance(&l.times(&upper), &a.permuted(&p)) < 1e-14, "{shape:?}");
            if shape[0] == shape[1] {
                let h = a.plus(1.0, &a.adjoint());
                let (w, v) = h.eigh();
                assert!(distance(&v.scaled(&w).times(&v.adjoint()), &h) < 1e-14, "{shape:?}");
                assert!(w.windows(2).all(|w| w[0] <= w[1]), "{shape:?}");
            }
            let (p, q, l, upper) = a.lu_full_pivot();
            let turned = a.permuted(&p).transposed().permuted(&q).transposed();
            assert!(distance(&l.times(&upper), &turned) < 1e-14, "{shape:?}");
            let q = u.basis();
            assert!(distance(&q.times(&q.adjoint()), &Matrix::identity(shape[0])) < 1e-14, "{shape:?}");
            if shape[0] == shape[1] {
                let identity = Matrix::identity(shape[0]);
                let adjugate = a.cofactors().transposed();
                let scaled = Matrix::from_fn(shape[0], shape[0], |i, j| identity.at(i, j) * a.det());
                assert!(distance(&a.times(&adjugate), &scaled) < 1e-13, "{shape:?}");
                let gram = a.times(&a.adjoint());
                let l = gram.cholesky();
                assert!(distance(&l.times(&l.adjoint()), &gram) < 1e-13, "{shape:?}");
                assert!(distance(&a.times(&a.solve(&u)), &u) < 1e-13, "{shape:?}");
            }
        }
    }
}
