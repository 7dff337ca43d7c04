//! Functions of singular values, `f(A) = U f(s) V^H`.
//!
//! With f continued as an odd function, this is a block of f of the Hermitian matrix
//! `H = [[0, A], [A^H, 0]]`, whose eigenvalues are `+-s_i` and, for a rectangular A, zeros. The derivatives
//! of a function of a Hermitian matrix are sums over its eigenvectors with divided differences of f (Daleckii
//! and Krein, 1965; Higham, "Functions of Matrices", 2008, theorem 3.11 and its extension to order n):
//!
//! ```text
//! D^n f(H)[E1, .., En]_ij = sum over permutations p and over k1, .., k(n-1) of
//!                           f[h_i, h_k1, .., h_j] (E_p1)_ik1 (E_p2)_k1k2 .. (E_pn)_k(n-1)j
//! ```
//!
//! Divided differences are smooth where eigenvalues meet, so these are right at every degeneracy. `D^n f` is
//! symmetric in its directions and self-adjoint in each, so [`SpectralDerivative`] is closed under
//! differentiation and transposition.
//!
//! What is orthogonal to A and to every direction takes no part: with orthonormal bases L of the columns of
//! `[A, E1, .., En]` and R of those of `[A, E1, .., En]^H`, the derivative is that of `L^H A R` along the
//! `L^H Ei R`, times L and R^H. So a tall matrix of `k` columns is one of `(n + 1) k` rows at most. The bases
//! depend on the directions, but stand in the evaluation only, which no rule sees.

use crate::{
    batch::{Matrices, Results, count, expect_matrix, expect_stack, failed, unlisted},
    divided::SpectralFunction,
    matrix::{floating, scale_columns},
    named::{called, outputs},
    qr::{Qr, QrOptions},
    stop_gradient::stop_gradient,
    svd::svd,
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Arg, Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1, build,
    ops::{FLOATS, expect, expect_same},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{DenseError, allocated};
use tenferro_tensor::{C64, DType, Error, Result, Scalar, Tensor, dispatch_float};

/// `D^n f(A)[E1, .., En]`, for n = 0 `f(A) = U f(s) V^H`. Inputs: A; U, s and Vh of its singular value
/// decomposition, which no rule differentiates; the n directions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SpectralDerivative {
    /// The function.
    pub f: SpectralFunction,
}

const ZERO: C64 = C64::new(0.0, 0.0);

/// The operands before the directions.
const BASE: usize = 4;

/// The highest order: a derivative of it takes far longer than anyone waits for, and sets of directions are
/// bits of a `u32`.
const ORDER: usize = 16;

fn expect_order(op: &'static str, order: usize) -> Result<()> {
    if order <= ORDER {
        return Ok(());
    }
    Err(Error::argument(op, "number of directions", order, format_args!("at most {ORDER}")))
}

impl Primitive for SpectralDerivative {
    const NAME: &'static str = "spectral";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, x.len().max(BASE), FLOATS)?;
        expect_order(Self::NAME, x.len() - BASE)?;
        let [m, n] = expect_matrix(Self::NAME, x, 0)?;
        let (dtype, batch) = (x[0].dtype, &x[0].shape[2..]);
        let k = &D::min(m, n);
        expect_stack(Self::NAME, "U", x[1], dtype, &[m, k], batch)?;
        expect_stack(Self::NAME, "s", x[2], dtype.real(), &[k], batch)?;
        expect_stack(Self::NAME, "Vh", x[3], dtype, &[k, n], batch)?;
        for e in &x[BASE..] {
            expect_same(Self::NAME, &[x[0], e])?;
        }
        Ok(smallvec![x[0].clone()])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let [u, s, vh] = [&x[1], &x[2], &x[3]];
        let core = SpectralCore { f: self.f.clone() };
        if x.len() == BASE {
            return Some(smallvec![scale_columns(u, &apply1(&core, &[s])).matmul(vh)]);
        }
        let directions = &x[BASE..];
        let left = basis(u, directions.iter().cloned());
        let right = basis(&vh.adjoint(), directions.iter().map(Var::adjoint));
        let (lh, rh) = (left.adjoint(), right.adjoint());
        let e: Vec<Var> = directions.iter().map(|e| lh.matmul(&e.matmul(&right))).collect();
        let operands: Vec<&Var> = std::iter::once(s).chain(&e).collect();
        Some(smallvec![left.matmul(&apply1(&core, &operands).matmul(&rh))])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let along = t[0].as_ref().map(|da| apply1(self, &x.iter().chain([da]).collect::<Vec<_>>()));
        let terms = (BASE..x.len()).filter_map(|i| t[i].as_ref().map(|d| self.with_direction(x, i, d)));
        smallvec![along.into_iter().chain(terms).reduce(|a, b| a + b)]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let ct = ct[0].as_ref().expect("rules with one output are called with its cotangent");
        let i = (BASE..x.len()).find(|&i| x[i].is_linear()).unwrap_or(BASE);
        let known: Vec<Var> =
            x.iter().enumerate().map(|(j, x)| if i == j { ct.clone() } else { x.known() }).collect();
        let mut pulled: Outs<Tangent> = smallvec![None; x.len()];
        pulled[i] = Some(self.with_direction(&known, i, ct));
        pulled
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
}

impl SpectralDerivative {
    fn with_direction(&self, x: &[Var], i: usize, e: &Var) -> Var {
        apply1(self, &x.iter().enumerate().map(|(j, x)| if i == j { e } else { x }).collect::<Vec<_>>())
    }
}

/// The columns of `w`, which are orthonormal, completed to an orthonormal basis of their span and that of the
/// columns of `e`.
fn basis(w: &Var, e: impl Iterator<Item = Var>) -> Var {
    if w.extent(0) == w.extent(1) {
        return w.clone();
    }
    let finite = |e: Var| {
        // What is not finite has no basis: it makes the result so, by the products of the whole direction.
        let zero = &e * 0.0;
        zero.equal(&zero).select(&e, &e.like(0.0))
    };
    let all: Vec<Var> = std::iter::once(w.clone()).chain(e.map(finite)).collect();
    // With a positive diagonal, the first columns of Q are those of `w`.
    let options = QrOptions { positive: true, ..QrOptions::default() };
    let [q, _] = outputs(&Qr { options }, &[&build::concatenate(&all, 1)]);
    q
}

/// [`SpectralDerivative`] in orthonormal bases that begin with the singular vectors. Inputs: s, and the
/// directions there; without directions, the output is f(s).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SpectralCore {
    /// The function.
    pub f: SpectralFunction,
}

impl Primitive for SpectralCore {
    const NAME: &'static str = "spectral_core";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, x.len().max(1), &[DType::F32, DType::F64])?;
        let [k, batch @ ..] = &x[0].shape[..] else {
            return Err(Error::rank(Self::NAME, "rank of the singular values", 0, "at least 1"));
        };
        let Some(first) = x.get(1) else { return Ok(smallvec![x[0].clone()]) };
        expect_order(Self::NAME, x.len() - 1)?;
        let [m, n] = expect_matrix(Self::NAME, x, 1)?;
        if first.dtype.real() != x[0].dtype || !first.dtype.is_differentiable() {
            return Err(Error::dtype(
                Self::NAME,
                "direction",
                first.dtype,
                format_args!("that of s, {}", x[0].dtype),
            ));
        }
        D::equal(Self::NAME, "number of singular values", k, &D::min(m, n))?;
        for e in &x[1..] {
            expect_stack(Self::NAME, "direction", e, first.dtype, &[m, n], batch)?;
        }
        Ok(smallvec![(*first).clone()])
    }
    // It only stands inside of a decomposition, which is never differentiated.
    fn jvp(&self, _: &[Var], _: &[Var], _: &[Tangent]) -> Outs<Tangent> {
        let e = Error::runtime_state(Self::NAME, "the derivative is that of the operation it is a part of");
        smallvec![Some(Var::Failed(e))]
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(&[DType::F32, DType::F64], |op, _, x, y, _| {
            dispatch_float!(y[0].dtype, T => run::<T>(&op.f, x, y), else Err(unlisted(Self::NAME, y[0].dtype)))
        });
    }
}

fn run<T: Scalar>(f: &SpectralFunction, x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let s = x[0].read();
    let (k, batch) = (s.shape()[0], count(s.shape(), 1, y));
    let values = Matrices::<T::Real>::vectors(&s)?;
    let axes = if x.len() == 1 { 1 } else { 2 };
    let result = Results::<T>::new(&y[0].shape, axes)?;
    let directions: Vec<Matrices<T>> =
        x[1..].iter().map(|e| Matrices::new(&e.read())).collect::<Result<_>>()?;
    for b in 0..batch {
        let s = values.at(b);
        // SAFETY: i is below the length of vector b.
        let s: Vec<f64> = (0..k).map(|i| unsafe { *s.ptr.offset(i as isize * s.row) }.to_c64().re).collect();
        if directions.is_empty() {
            for (i, &s) in s.iter().enumerate() {
                // SAFETY: i is below the length of vector b.
                unsafe { *result.at(b).add(i) = T::from_f64(f.coefficient(0, s)) };
            }
            continue;
        }
        let (m, n) = (y[0].shape[0], y[0].shape[1]);
        // Rounding errors in place of a singular value that is 0 have differences of f that are rounding
        // errors over rounding errors.
        let unit = if T::DTYPE.real() == DType::F32 { f32::EPSILON as f64 } else { f64::EPSILON };
        let noise =
            if f.has_scale() { unit * (m + n) as f64 * s.iter().copied().fold(0.0, f64::max) } else { 0.0 };
        let s: Vec<f64> = s.into_iter().map(|s| if s <= noise { 0.0 } else { s }).collect();
        if let Some((order, s)) = f.unknown(&s, directions.len()) {
            let got = format_args!("derivative {order} at {s} is not known");
            return Err(Error::numeric(SpectralCore::NAME, "function", got, "a finite derivative"));
        }
        let read = |e: &Matrices<T>| {
            let (e, mut copy) = (e.at(b), allocated([m, n], ZERO)?);
            let all = (0..n).flat_map(|j| (0..m).map(move |i| (i, j)));
            for (to, (i, j)) in copy.iter_mut().zip(all) {
                // SAFETY: i < m and j < n.
                *to = unsafe { *e.ptr.offset(i as isize * e.row + j as isize * e.col) }.to_c64();
            }
            Ok(copy)
        };
        let derived =
            || derivative(f, &s, (m, n), &directions.iter().map(read).collect::<Result<Vec<_>, _>>()?);
        let derived = derived().map_err(|why| failed(SpectralCore::NAME, why))?;
        for (i, z) in derived.into_iter().enumerate() {
            // SAFETY: the derivative has m n elements, as matrix b of the result.
            unsafe { *result.at(b).add(i) = T::from_c64(z) };
        }
    }
    // SAFETY: the loop has written every element.
    Ok(smallvec![unsafe { result.finish() }])
}

/// One eigenvector of H: that of `sign s_i`, or one of the zeros beyond, which is in the rows only or in the
/// columns only.
#[derive(Clone, Copy)]
struct Level {
    value: f64,
    row: Option<usize>,
    column: Option<usize>,
    sign: f64,
}

fn levels(s: &[f64], (m, n): (usize, usize)) -> Vec<Level> {
    let mut all = Vec::with_capacity(m + n);
    for (i, &value) in s.iter().enumerate() {
        all.push(Level { value, row: Some(i), column: Some(i), sign: 1.0 });
        all.push(Level { value: -value, row: Some(i), column: Some(i), sign: -1.0 });
    }
    all.extend((s.len()..m).map(|i| Level { value: 0.0, row: Some(i), column: None, sign: 0.0 }));
    all.extend((s.len()..n).map(|j| Level { value: 0.0, row: None, column: Some(j), sign: 0.0 }));
    all
}

impl Level {
    /// Its components along row and column: (u, sign v) / sqrt 2, or one of them alone.
    fn components(&self) -> (f64, f64) {
        match (self.row, self.column) {
            (Some(_), Some(_)) => {
                (std::f64::consts::FRAC_1_SQRT_2, self.sign * std::f64::consts::FRAC_1_SQRT_2)
            }
            (row, column) => (row.is_some() as u8 as f64, column.is_some() as u8 as f64),
        }
    }
}

/// The sum of the module's head, in the basis of the singular vectors: column-major, `m x n`.
fn derivative(
    f: &SpectralFunction,
    s: &[f64],
    (m, n): (usize, usize),
    e: &[Vec<C64>],
) -> Result<Vec<C64>, DenseError> {
    let mut result = allocated([m, n], ZERO)?;
    if result.is_empty() {
        // The other extent is arbitrary.
        return Ok(result);
    }
    let levels = levels(s, (m, n));
    let size = levels.len();
    // The directions among the levels.
    let dilated: Vec<Vec<C64>> = e
        .iter()
        .map(|e| {
            let element = |a: &Level, b: &Level| {
                let mut z = ZERO;
                if let (Some(i), Some(j)) = (a.row, b.column) {
                    z += e[i + j * m] * (a.components().0 * b.components().1);
                }
                if let (Some(j), Some(i)) = (a.column, b.row) {
                    z += e[i + j * m].conj() * (a.components().1 * b.components().0);
                }
                z
            };
            let mut whole = allocated([size, size], ZERO)?;
            let all = levels.iter().flat_map(|b| levels.iter().map(move |a| (a, b)));
            whole.iter_mut().zip(all).for_each(|(to, (a, b))| *to = element(a, b));
            Ok(whole)
        })
        .collect::<Result<_, _>>()?;
    let mut path = Path { f, levels: &levels, e: &dilated, size, points: Vec::new() };
    for (a, from) in levels.iter().enumerate() {
        let Some(i) = from.row else { continue };
        for (b, to) in levels.iter().enumerate() {
            let Some(j) = to.column else { continue };
            let z = path.sum(a, b, 0, C64::new(1.0, 0.0));
            result[i + j * m] += z * (from.components().0 * to.components().1);
        }
    }
    Ok(result)
}

/// A path through the levels, one step for each direction in any order.
struct Path<'a> {
    f: &'a SpectralFunction,
    levels: &'a [Level],
    e: &'a [Vec<C64>],
    size: usize,
    points: Vec<f64>,
}

impl Path<'_> {
    /// The sum over all ways to go on from level `at` to `end` with the directions not yet in the set `used`.
    fn sum(&mut self, at: usize, end: usize, used: u32, product: C64) -> C64 {
        self.points.push(self.levels[at].value);
        let left = self.e.len() - used.count_ones() as usize;
        let mut total = C64::new(0.0, 0.0);
        for p in (0..self.e.len()).filter(|p| used & (1 << p) == 0) {
            let steps = if left == 1 { end..end + 1 } else { 0..self.size };
            for next in steps {
                let product = product * self.e[p][at + next * self.size];
                if product == C64::new(0.0, 0.0) {
                    continue;
                }
                total += if left == 1 {
                    let mut points = self.points.clone();
                    points.push(self.levels[end].value);
                    product * self.f.divided_difference(&mut points)
                } else {
                    self.sum(next, end, used | 1 << p, product)
                };
            }
        }
        self.points.pop();
        total
    }
}

/// `f(A) = U f(s) V^H` from the singular value decomposition of A, with derivatives of any order that are
/// right at every degeneracy. Axes from 2 on are batch axes.
///
/// At singular values that are 0, f must be 0 for this to be well defined; a derivative of f that is infinite
/// there counts as 0. Derivatives take a singular value that is 0 within rounding errors for 0, if f is no
/// power.
///
/// For `k = min(m, n)`, the value takes `O(m n k)` operations and `O(m n)` memory. The derivative of order d,
/// in forward and in reverse mode, takes a QR factorization of the directions, `O(d^2 m n k)` operations and
/// `O(d m n)` memory, unless the matrix is square; then, in a basis of these, `O(p^(d + 1))` operations and
/// `O(d p^2)` memory with `p = min(m + n, (d + 2) k)`.
///
/// # Errors
/// As [`svd`](crate::ops::svd); in derivatives, one of a [custom](SpectralFunction::custom) function that is not known.
pub fn spectral(a: &Var, f: &SpectralFunction) -> Var {
    called(SpectralDerivative::NAME, [a], || {
        let a = floating(a);
        let (u, s, vh) = svd(&stop_gradient(&a));
        Ok(apply1(&SpectralDerivative { f: f.clone() }, &[&a, &u, &s, &vh]))
    })
}
