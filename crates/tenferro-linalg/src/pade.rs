//! The exponential of one matrix, by scaling and squaring of its Pade approximants `r_m = q(-A)^-1 q(A)`.
//!
//! Degree and scaling are those of N. J. Higham, "The scaling and squaring method for the matrix exponential
//! revisited", SIAM J. Matrix Anal. Appl. 26 (2005), by the 1-norm of A, up to degree 9; beyond, those of A.
//! H. Al-Mohy and N. J. Higham, "A new scaling and squaring algorithm for the matrix exponential", SIAM J.
//! Matrix Anal. Appl. 31 (2009), by norms of powers of A, which a matrix far from normal needs: scaled by its
//! own norm, it would lose all digits. Before, a similarity makes elements small: see [`Balance`].
//!
//! Derivatives come from the same computation in [`Jet`]s. All powers are taken of a matrix of norm at most
//! 1, and scaled by powers of two, which is exact: nothing overflows that the result does not.

use crate::balance::Balance;
use tenferro_internal_dense::{Dense, DenseError, Factor, Field, Par, Strided, Target, allocated};
use tenferro_tensor::{C64, Scalar};

/// The real and the complex numbers of double precision.
pub(crate) trait Double: Dense + Field<Real = f64> + Scalar {}
impl<D: Dense + Field<Real = f64> + Scalar> Double for D {}

/// A polynomial in numbers e_1, e_2, .. whose squares are 0, with matrices as coefficients: that of the
/// product of a set of them is at the set's bits, `None` if zero. It multiplies as the block matrix
/// `[[X, X_1], [0, X]]` does, nested once for each number, with as few products as there are.
///
/// The coefficient of all in `exp(A + e_1 E1 + e_2 E2 + ..)` is the derivative along E1, E2, ...
struct Jet<D>(Vec<Option<Vec<D>>>);

/// Degrees, the norms up to which they are exact, and the coefficients of q.
const SMALL: [(f64, &[f64]); 4] = [
    (1.495585217958292e-2, &[120.0, 60.0, 12.0, 1.0]),
    (2.53939833006323e-1, &[30240.0, 15120.0, 3360.0, 420.0, 30.0, 1.0]),
    (9.504178996162932e-1, &[17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0]),
    (
        2.097847961257068,
        &[
            17643225600.0,
            8821612800.0,
            2075673600.0,
            302702400.0,
            30270240.0,
            2162160.0,
            110880.0,
            3960.0,
            90.0,
            1.0,
        ],
    ),
];

/// The coefficients of q of degree 13.
const LARGE: [f64; 14] = [
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
];

/// The size of A, by its powers, up to which degree 13 is exact.
const LARGE_SIZE: f64 = 4.25;

/// The reciprocal of the leading coefficient of its backward error.
const LARGE_ERROR: f64 = 113250775606021113483283660800000000.0;

/// The unit roundoff.
const ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// A matrix is never scaled up by more than `2^FARTHEST` from norm 1, so that its powers do not overflow.
const FARTHEST: i32 = 100;

/// `D^n exp(A)[E1, .., En]` of `order x order` column-major operands, A and the n directions, finite numbers.
///
/// # Errors
/// A singular denominator, which no finite matrix should have; no memory.
pub(crate) fn exponential<D: Double>(
    order: usize,
    mut operands: Vec<Vec<D>>,
    par: Par,
) -> Result<Vec<D>, DenseError> {
    let directions = operands.len() - 1;
    if directions == 0 && is_diagonal(order, &operands[0]) {
        let mut y = operands.swap_remove(0);
        y.iter_mut().step_by(order + 1).for_each(|z| *z = D::from_c64(z.to_c64().exp()));
        return Ok(y);
    }
    let balance = Balance::new(order, &operands[0])?;
    // That an element of D^-1 X D has over one of X.
    let shift = |i: usize, j: usize| match &balance {
        Some(balance) => balance.exponents[j] - balance.exponents[i],
        None => 0,
    };
    let position = |at: usize| (at % order, at / order);
    // The derivative is linear in each direction. Its size is taken as that of A, but as 1 at least: the
    // approximation is exact relative to the whole exponential, of which the derivative along small ones is
    // little.
    let exponents: Vec<i32> = match &balance {
        None => operands.iter().map(|x| exponent(x)).collect(),
        Some(_) => operands.iter().map(|x| shifted_exponent(order, x, shift)).collect(),
    };
    let unit = exponents[0].max(0);
    let bound = |e: i32| e + (order as f64).log2().ceil() as i32;
    let shrink = bound(exponents[0]).max(0);
    let mut parts: Vec<Option<Vec<D>>> = (0..1 << directions).map(|_| None).collect();
    for (i, mut x) in operands.into_iter().enumerate() {
        let by = -shrink - if i == 0 { 0 } else { exponents[i] - unit };
        match &balance {
            None => scale(&mut x, by),
            Some(_) => x.iter_mut().enumerate().for_each(|(at, z)| {
                let (i, j) = position(at);
                *z = times_power(*z, by + shift(i, j));
            }),
        }
        let set = if i == 0 { 0 } else { 1 << (i - 1) };
        parts[set] = Some(x).filter(|x| i == 0 || x.iter().any(|z| z.abs1() > 0.0));
    }
    let algebra = Algebra { order, par };
    let mut y = algebra.exponential(Jet(parts), shrink)?;
    let mut top = match y.0.pop().flatten() {
        Some(top) => top,
        None => allocated([order, order], D::real(0.0))?,
    };
    let by = exponents[1..].iter().map(|e| e - unit).sum();
    match &balance {
        None => scale(&mut top, by),
        Some(balance) => top.iter_mut().enumerate().for_each(|(at, z)| {
            let (i, j) = position(at);
            // A rounding error there would be scaled up. Directions may have elements where A has no path.
            let zero = directions == 0 && balance.is_zero(i, j);
            *z = if zero { D::real(0.0) } else { times_power(*z, by - shift(i, j)) };
        }),
    }
    Ok(top)
}

fn is_diagonal<D: Double>(order: usize, x: &[D]) -> bool {
    x.iter().enumerate().all(|(i, z)| i % (order + 1) == 0 || z.to_c64() == C64::new(0.0, 0.0))
}

/// The least e with all parts of all elements at most `2^e`; of zeros, 0.
fn exponent<D: Double>(x: &[D]) -> i32 {
    let largest = x.iter().map(|z| z.to_c64()).map(|z| z.re.abs().max(z.im.abs())).fold(0.0, f64::max);
    // Half a step more for the modulus.
    if largest == 0.0 { 0 } else { largest.log2().ceil() as i32 + D::COMPLEX as i32 }
}

/// [`exponent`] of the elements times `2^shift(i, j)`.
fn shifted_exponent<D: Double>(order: usize, x: &[D], shift: impl Fn(usize, usize) -> i32) -> i32 {
    let exponents = x.iter().enumerate().filter(|(_, z)| z.abs1() > 0.0);
    let exponents = exponents.map(|(at, z)| exponent(&[*z]) + shift(at % order, at / order));
    exponents.max().unwrap_or(0)
}

/// Times `2^e`, in steps that are numbers of the type.
fn scale<D: Double>(x: &mut [D], e: i32) {
    let mut left = e;
    while left != 0 {
        let step = left.clamp(-1000, 1000);
        let factor = 2f64.powi(step);
        x.iter_mut().for_each(|z| *z = z.scale(factor));
        left -= step;
    }
}

fn times_power<D: Double>(z: D, e: i32) -> D {
    let mut one = [z];
    scale(&mut one, e);
    one[0]
}

/// What is common to all matrices of a computation.
struct Algebra {
    order: usize,
    par: Par,
}

impl Algebra {
    /// The exponential of `2^shrink` times x, whose norm is about 1 at most.
    fn exponential<D: Double>(&self, x: Jet<D>, shrink: i32) -> Result<Jet<D>, DenseError> {
        let size = self.norm(&x) * 2f64.powi(shrink);
        let x2 = self.product(&x, &x)?;
        for (i, (limit, q)) in SMALL.into_iter().enumerate() {
            if size <= limit {
                let mut even = vec![x2.scaled(2 * shrink)];
                let x = x.scaled(shrink);
                while even.len() <= i {
                    even.push(self.product(&even[0], &even[even.len() - 1])?);
                }
                let part = |first: usize| {
                    let terms = even.iter().zip(q[first..].iter().skip(2).step_by(2));
                    self.sum(&terms.map(|(x, &c)| (c, x)).collect::<Vec<_>>(), q[first])
                };
                return self.quotient(&self.product(&x, &part(1)?)?, &part(0)?);
            }
        }
        let x4 = self.product(&x2, &x2)?;
        let x6 = self.product(&x2, &x4)?;
        let squarings = self.squarings(&x, &x4, &x6, shrink);
        let by = shrink - squarings;
        let (x, x2, x4, x6) = (x.scaled(by), x2.scaled(2 * by), x4.scaled(4 * by), x6.scaled(6 * by));
        let b = &LARGE;
        let half = |first: usize| {
            let high = self.sum(&[(b[first + 12], &x6), (b[first + 10], &x4), (b[first + 8], &x2)], 0.0)?;
            let high = self.product(&x6, &high)?;
            let low = [(1.0, &high), (b[first + 6], &x6), (b[first + 4], &x4), (b[first + 2], &x2)];
            self.sum(&low, b[first])
        };
        let mut y = self.quotient(&self.product(&x, &half(1)?)?, &half(0)?)?;
        for _ in 0..squarings {
            y = self.product(&y, &y)?;
        }
        Ok(y)
    }

    /// How often to halve `2^shrink` times x, whose powers are given, for degree 13.
    fn squarings<D: Double>(&self, x: &Jet<D>, x4: &Jet<D>, x6: &Jet<D>, shrink: i32) -> i32 {
        let (n4, n6) = (self.norm(x4), self.norm(x6));
        let (d4, d6) = (n4.powf(0.25), n6.powf(1.0 / 6.0));
        // The norm of the tenth power by those of two factors; d8 is at most d4.
        let d10 = (n4.powf(0.5) * n6.powf(0.5)).powf(0.2);
        let size = d4.max(d6).min(d4.max(d10));
        let s = if size == 0.0 { 0.0 } else { (size / LARGE_SIZE).log2() + shrink as f64 };
        let s = (s.ceil().max(0.0) as i32).max(shrink - FARTHEST);
        // What rounding of the powers may add, by the norm of |A|^27.
        let (power, norm) = (self.norm_of_modulus(x, 27), self.norm(x));
        if power == 0.0 {
            return s;
        }
        let error = (power / norm).log2() + 26.0 * (shrink - s) as f64 - LARGE_ERROR.log2();
        s + ((error - ROUNDOFF.log2()) / 26.0).ceil().max(0.0) as i32
    }

    /// The 1-norm, for several parts a bound of that of the block matrix.
    fn norm<D: Double>(&self, x: &Jet<D>) -> f64 {
        let column = |c: &[D]| c.iter().map(|z| z.abs()).sum::<f64>();
        x.parts().map(|(_, x)| x.chunks(self.order).map(column).fold(0.0, f64::max)).sum()
    }

    /// The 1-norm of the n-th power of the matrix of moduli: the largest sum of a column.
    fn norm_of_modulus<D: Double>(&self, x: &Jet<D>, n: usize) -> f64 {
        let mut sums = vec![vec![0.0; self.order]; x.0.len()];
        sums[0].fill(1.0);
        for _ in 0..n {
            let mut next = vec![vec![0.0; self.order]; sums.len()];
            for (set, sum) in next.iter_mut().enumerate() {
                for (part, x) in x.parts().filter(|(part, _)| part & !set == 0) {
                    let v = &sums[set ^ part];
                    for (s, c) in sum.iter_mut().zip(x.chunks(self.order)) {
                        *s += c.iter().zip(v).map(|(z, v)| z.abs() * v).sum::<f64>();
                    }
                }
            }
            sums = next;
        }
        (0..self.order).map(|j| sums.iter().map(|s| s[j]).sum()).fold(0.0, f64::max)
    }

    fn product<D: Double>(&self, x: &Jet<D>, y: &Jet<D>) -> Result<Jet<D>, DenseError> {
        let part = |set: usize| {
            let mut sum = None;
            for (part, x) in x.parts().filter(|(part, _)| part & !set == 0) {
                if let Some(y) = &y.0[set ^ part] {
                    self.add_product(&mut sum, x, y, 1.0)?;
                }
            }
            Ok(sum)
        };
        (0..x.0.len()).map(part).collect::<Result<_, _>>().map(Jet)
    }

    /// `sum <- sum + c x y`.
    fn add_product<D: Double>(
        &self,
        sum: &mut Option<Vec<D>>,
        x: &[D],
        y: &[D],
        c: f64,
    ) -> Result<(), DenseError> {
        let (n, one) = (self.order, D::real(1.0));
        let beta = if sum.is_some() { one } else { D::real(0.0) };
        let sum = self.or_zeros(sum)?;
        let factor = |x: &[D]| Factor { ptr: x.as_ptr(), row: 1, col: n as isize, conj: false };
        let target = Target { ptr: sum.as_mut_ptr(), row: 1, col: n as isize };
        // SAFETY: all three are n x n and column-major, and the sum is borrowed exclusively.
        unsafe { D::gemm((n, n, n), D::real(c), factor(x), factor(y), beta, target, self.par) };
        Ok(())
    }

    /// The matrix, which is zero if there was none.
    fn or_zeros<'a, D: Double>(&self, x: &'a mut Option<Vec<D>>) -> Result<&'a mut Vec<D>, DenseError> {
        if x.is_none() {
            *x = Some(allocated([self.order, self.order], D::real(0.0))?);
        }
        Ok(x.as_mut().expect("there is one now"))
    }

    /// The sum of the multiples, and of `constant` times the identity.
    fn sum<D: Double>(&self, terms: &[(f64, &Jet<D>)], constant: f64) -> Result<Jet<D>, DenseError> {
        let parts = terms[0].1.0.len();
        let mut total: Vec<Option<Vec<D>>> = (0..parts).map(|_| None).collect();
        for (c, x) in terms {
            for (set, x) in x.parts() {
                let sum = self.or_zeros(&mut total[set])?;
                sum.iter_mut().zip(x).for_each(|(s, &x)| *s = *s + x.scale(*c));
            }
        }
        let whole = self.or_zeros(&mut total[0])?;
        whole.iter_mut().step_by(self.order + 1).for_each(|z| *z = *z + D::real(constant));
        Ok(Jet(total))
    }

    /// `(even - odd)^-1 (even + odd)`.
    fn quotient<D: Double>(&self, odd: &Jet<D>, even: &Jet<D>) -> Result<Jet<D>, DenseError> {
        let n = self.order;
        let (above, below) =
            (self.sum(&[(1.0, even), (1.0, odd)], 0.0)?, self.sum(&[(1.0, even), (-1.0, odd)], 0.0)?);
        let (mut packed, mut perm) = (allocated([n, n], D::real(0.0))?, allocated([n], 0)?);
        let whole = below.0[0].as_ref().expect("the sum has a part without numbers");
        let a = Strided { ptr: whole.as_ptr(), row: 1, col: n as isize };
        // SAFETY: A is n x n and column-major; the factors and the permutation have as much room.
        unsafe { D::lu((n, n), a, packed.as_mut_ptr(), perm.as_mut_ptr(), self.par)? };
        let factors = Strided { ptr: packed.as_ptr(), row: 1, col: n as isize };
        let mut y: Jet<D> = Jet((0..above.0.len()).map(|_| None).collect());
        for (set, right) in above.0.into_iter().enumerate() {
            let mut right = right;
            for (part, x) in below.parts().filter(|&(part, _)| part != 0 && part & !set == 0) {
                if let Some(y) = &y.0[set ^ part] {
                    self.add_product(&mut right, x, y, -1.0)?;
                }
            }
            if let Some(right) = &mut right {
                let b = Strided { ptr: right.as_mut_ptr(), row: 1, col: n as isize };
                // SAFETY: the factors are those of an n x n matrix, and B is n x n and column-major.
                unsafe { D::solve_lu((n, n), factors, perm.as_ptr(), false, b, self.par)? };
            }
            y.0[set] = right;
        }
        Ok(y)
    }
}

impl<D: Double> Jet<D> {
    /// The parts that are not zero, and their sets.
    fn parts(&self) -> impl Iterator<Item = (usize, &Vec<D>)> {
        self.0.iter().enumerate().filter_map(|(set, x)| x.as_ref().map(|x| (set, x)))
    }

    /// Times `2^e`.
    fn scaled(mut self, e: i32) -> Self {
        self.0.iter_mut().flatten().for_each(|x| scale(x, e));
        self
    }
}
