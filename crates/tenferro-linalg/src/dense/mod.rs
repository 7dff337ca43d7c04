//! Dense factorizations of one matrix in raw column-major memory, without derivative or batch.
//!
//! Each routine picks between own loops, which win for small matrices because they start at once, and faer.
//! The kernels of the operations above loop over the batch and call down here.
//!
//! Invariants: faer is instantiated once per element type, in the four `Field` impls of this file; small
//! matrices allocate nothing in the steady state (workspace is per thread, see `workspace`); every routine
//! terminates on every input, finite or not.

mod lu;
mod solve;
mod svd;

use std::cell::RefCell;
use std::fmt::Debug;
use std::mem::MaybeUninit;
use std::ops::{Add, Div, Mul, Neg, Sub};

use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::svd::{ComputeSvdVectors, SvdParams, svd as faer_svd, svd_scratch};
use faer::linalg::{matmul, triangular_solve};
use faer::{Accum, ColMut, Conj, MatMut, MatRef, Par, Spec};
use num_complex::Complex;

pub(crate) use lu::lu;
pub(crate) use solve::{Triangle, solve_lu, triangular_solve};
pub(crate) use svd::{Vectors, svd};

/// Why a matrix could not be factored or solved with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DenseError {
    /// The pivot `index` (from zero) is exactly zero.
    Singular {
        /// Position on the diagonal.
        index: usize,
    },
    /// The element (`row`, `col`) is infinite or not a number.
    NonFinite {
        /// Row from zero.
        row: usize,
        /// Column from zero.
        col: usize,
    },
}

/// A matrix in memory: the element (i, j) is at `ptr + i row + j col`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided<P> {
    /// Address of the element (0, 0).
    pub(crate) ptr: P,
    /// Distance between rows, in elements.
    pub(crate) row: isize,
    /// Distance between columns, in elements.
    pub(crate) col: isize,
}

/// A real element type, with what the factorizations need beyond `Field`.
pub(crate) trait Real: Field<Real = Self> + PartialOrd {
    /// The distance from one to the next larger number.
    const EPS: Self;
    /// The smallest positive normal number.
    const TINY: Self;
    /// Squares of numbers near 2 to this power can be summed without overflow.
    const HEADROOM: i32;

    /// The square root.
    fn sqrt(self) -> Self;
    /// self b + c, rounded once.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// The magnitude of self with the sign of b.
    fn copysign(self, b: Self) -> Self;
    /// The nearest number.
    fn of(x: f64) -> Self;
    /// The exponent e with 2^e <= self < 2^(e + 1), for positive normal numbers; below them, that of `TINY`.
    fn exponent(self) -> i32;
    /// 2^e, for e within the normal range.
    fn power(e: i32) -> Self;
}

/// An element type of dense linear algebra: f32, f64, Complex<f32> or Complex<f64>.
pub(crate) trait Field:
    Copy
    + Debug
    + PartialEq
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + Div<Output = Self>
{
    /// The type of norms and singular values.
    type Real: Real;
    /// Whether the type has an imaginary part.
    const COMPLEX: bool;
    /// The additive identity.
    const ZERO: Self;
    /// The multiplicative identity.
    const ONE: Self;

    /// The embedding of the reals.
    fn real(x: Self::Real) -> Self;
    /// The real part.
    fn re(self) -> Self::Real;
    /// The complex conjugate.
    fn conj(self) -> Self;
    /// The product with a real number.
    fn scale(self, x: Self::Real) -> Self;
    /// The modulus of a finite number, without intermediate overflow.
    fn abs(self) -> Self::Real;
    /// The sum of the absolute values of the parts: zero exactly when self is, within sqrt(2) of `abs`.
    fn abs1(self) -> Self::Real;
    /// The squared modulus.
    fn abs2(self) -> Self::Real;
    /// self / b without intermediate overflow.
    fn divide(self, b: Self) -> Self;
    /// Whether the parts are neither infinite nor NaN.
    fn finite(self) -> bool;

    /// C <- C - A B by faer.
    ///
    /// # Safety
    /// A is m x k, B k x n, C m x n; C is writable, and overlaps neither A nor B.
    #[doc(hidden)]
    unsafe fn subtract_product(
        shape: (usize, usize, usize),
        a: Strided<*const Self>,
        b: Strided<*const Self>,
        c: Strided<*mut Self>,
        par: Par,
    );

    /// B <- op(T)^-1 B by faer, with T an n x n triangle, conjugated if `conj`.
    ///
    /// # Safety
    /// B is n x nrhs and writable, and does not overlap the triangle.
    #[doc(hidden)]
    unsafe fn substitute(
        tri: (Triangle, bool),
        conj: bool,
        a: Strided<*const Self>,
        b: Strided<*mut Self>,
        shape: (usize, usize),
        par: Par,
    );

    /// A = U diag(s) V^H by faer; false without convergence. The options are whether U and V are square (else
    /// thin), and whether large bidiagonal matrices are divided and conquered (else QR
    /// iterations throughout).
    ///
    /// # Safety
    /// A is m x n, s has min(m, n) elements, U and V have m and n rows.
    #[doc(hidden)]
    unsafe fn bidiagonal_svd(
        shape: (usize, usize),
        a: Strided<*const Self>,
        s: *mut Self,
        u: Strided<*mut Self>,
        v: Strided<*mut Self>,
        options: (bool, bool),
        par: Par,
    ) -> bool;
}

macro_rules! field {
    ($t:ty, $r:ty { $($item:item)* }) => {
        impl Field for $t {
            type Real = $r;
            $($item)*

            unsafe fn subtract_product(
                (m, n, k): (usize, usize, usize),
                a: Strided<*const Self>,
                b: Strided<*const Self>,
                c: Strided<*mut Self>,
                par: Par,
            ) {
                // SAFETY: the caller's promise.
                let (a, b, c) = unsafe {
                    (
                        MatRef::from_raw_parts(a.ptr, m, k, a.row, a.col),
                        MatRef::from_raw_parts(b.ptr, k, n, b.row, b.col),
                        MatMut::from_raw_parts_mut(c.ptr, m, n, c.row, c.col),
                    )
                };
                matmul::matmul(c, Accum::Add, a, b, -Self::ONE, par);
            }

            unsafe fn substitute(
                tri: (Triangle, bool),
                conj: bool,
                a: Strided<*const Self>,
                b: Strided<*mut Self>,
                (n, nrhs): (usize, usize),
                par: Par,
            ) {
                // SAFETY: the caller's promise.
                let (a, b) = unsafe {
                    (
                        MatRef::from_raw_parts(a.ptr, n, n, a.row, a.col),
                        MatMut::from_raw_parts_mut(b.ptr, n, nrhs, b.row, b.col),
                    )
                };
                let conj = if conj { Conj::Yes } else { Conj::No };
                use triangular_solve as tri_solve;
                match tri {
                    (Triangle::Lower, false) => {
                        tri_solve::solve_lower_triangular_in_place_with_conj(a, conj, b, par)
                    }
                    (Triangle::Lower, true) => {
                        tri_solve::solve_unit_lower_triangular_in_place_with_conj(a, conj, b, par)
                    }
                    (Triangle::Upper, false) => {
                        tri_solve::solve_upper_triangular_in_place_with_conj(a, conj, b, par)
                    }
                    (Triangle::Upper, true) => {
                        tri_solve::solve_unit_upper_triangular_in_place_with_conj(a, conj, b, par)
                    }
                }
            }

            unsafe fn bidiagonal_svd(
                (m, n): (usize, usize),
                a: Strided<*const Self>,
                s: *mut Self,
                u: Strided<*mut Self>,
                v: Strided<*mut Self>,
                (full, divide): (bool, bool),
                par: Par,
            ) -> bool {
                let k = m.min(n);
                let (vectors, mu, nv) = match full {
                    true => (ComputeSvdVectors::Full, m, n),
                    false => (ComputeSvdVectors::Thin, k, k),
                };
                // SAFETY: the caller's promise.
                let (a, s, u, v) = unsafe {
                    (
                        MatRef::from_raw_parts(a.ptr, m, n, a.row, a.col),
                        ColMut::from_raw_parts_mut(s, k, 1),
                        MatMut::from_raw_parts_mut(u.ptr, m, mu, u.row, u.col),
                        MatMut::from_raw_parts_mut(v.ptr, n, nv, v.row, v.col),
                    )
                };
                let mut params = Spec::<SvdParams, $t>::default();
                if !divide {
                    params.config.recursion_threshold = usize::MAX;
                }
                let request = svd_scratch::<$t>(m, n, vectors, vectors, par, params);
                with_stack(request, |stack| {
                    faer_svd(a, s.as_diagonal_mut(), Some(u), Some(v), par, stack, params).is_ok()
                })
            }
        }
    };
}

macro_rules! fields {
    ($r:ident, $bits:ty, $headroom:expr) => {
        impl Real for $r {
            const EPS: Self = $r::EPSILON;
            const TINY: Self = $r::MIN_POSITIVE;
            const HEADROOM: i32 = $headroom;

            #[inline(always)]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
            #[inline(always)]
            fn copysign(self, b: Self) -> Self {
                self.copysign(b)
            }
            #[inline(always)]
            fn of(x: f64) -> Self {
                x as $r
            }
            #[inline(always)]
            fn exponent(self) -> i32 {
                let biased = (self.to_bits() >> ($r::MANTISSA_DIGITS - 1)) as i32;
                biased.max(1) + $r::MIN_EXP - 2
            }
            #[inline(always)]
            fn power(e: i32) -> Self {
                $r::from_bits(((e + 2 - $r::MIN_EXP) as $bits) << ($r::MANTISSA_DIGITS - 1))
            }
        }

        field!($r, $r {
            const COMPLEX: bool = false;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            #[inline(always)]
            fn real(x: $r) -> Self {
                x
            }
            #[inline(always)]
            fn re(self) -> $r {
                self
            }
            #[inline(always)]
            fn conj(self) -> Self {
                self
            }
            #[inline(always)]
            fn scale(self, x: $r) -> Self {
                self * x
            }
            #[inline(always)]
            fn abs(self) -> $r {
                self.abs()
            }
            #[inline(always)]
            fn abs1(self) -> $r {
                self.abs()
            }
            #[inline(always)]
            fn abs2(self) -> $r {
                self * self
            }
            #[inline(always)]
            fn divide(self, b: Self) -> Self {
                self / b
            }
            #[inline(always)]
            fn finite(self) -> bool {
                self.is_finite()
            }
        });

        field!(Complex<$r>, $r {
            const COMPLEX: bool = true;
            const ZERO: Self = Complex::new(0.0, 0.0);
            const ONE: Self = Complex::new(1.0, 0.0);

            #[inline(always)]
            fn real(x: $r) -> Self {
                Complex::new(x, 0.0)
            }
            #[inline(always)]
            fn re(self) -> $r {
                self.re
            }
            #[inline(always)]
            fn conj(self) -> Self {
                Complex::new(self.re, -self.im)
            }
            #[inline(always)]
            fn scale(self, x: $r) -> Self {
                Complex::new(self.re * x, self.im * x)
            }
            #[inline(always)]
            fn abs(self) -> $r {
                let (x, y) = (self.re.abs(), self.im.abs());
                let (low, high) = if x < y { (x, y) } else { (y, x) };
                let ratio = if high == 0.0 { 0.0 } else { low / high };
                high * (1.0 + ratio * ratio).sqrt()
            }
            #[inline(always)]
            fn abs1(self) -> $r {
                self.re.abs() + self.im.abs()
            }
            #[inline(always)]
            fn abs2(self) -> $r {
                self.re * self.re + self.im * self.im
            }
            /// Smith, Algorithm 116, CACM 5 (1962).
            #[inline(always)]
            fn divide(self, b: Self) -> Self {
                if b.re.abs() >= b.im.abs() {
                    let r = if b.im == 0.0 { 0.0 } else { b.im / b.re };
                    let d = b.re + b.im * r;
                    Complex::new((self.re + self.im * r) / d, (self.im - self.re * r) / d)
                } else {
                    let r = b.re / b.im;
                    let d = b.re * r + b.im;
                    Complex::new((self.re * r + self.im) / d, (self.im * r - self.re) / d)
                }
            }
            #[inline(always)]
            fn finite(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }
        });
    };
}

fields!(f32, u32, 50);
fields!(f64, u64, 400);

/// Workspace words: sixteen bytes, so that every element type is aligned.
type Word = MaybeUninit<[u64; 2]>;

thread_local! {
    static WORKSPACE: RefCell<Vec<Vec<Word>>> = const { RefCell::new(Vec::new()) };
}

/// Larger workspaces go back to the allocator: 64 MiB.
const RETAINED: usize = 1 << 22;

/// Calls `f` on `words` words of this thread's workspace. A buffer is taken out meanwhile, so that a nested
/// call (our own, or because faer's pool runs another factorization on this thread while one waits)
/// gets another.
fn workspace<O>(words: usize, f: impl FnOnce(&mut [Word]) -> O) -> O {
    let mut buffer = WORKSPACE.with_borrow_mut(Vec::pop).unwrap_or_default();
    if buffer.len() < words {
        buffer.clear();
        buffer.resize(words, Word::uninit());
    }
    let out = f(&mut buffer[..words]);
    if buffer.len() <= RETAINED {
        WORKSPACE.with_borrow_mut(|free| free.push(buffer));
    }
    out
}

/// Calls `f` on `len` zeros in this thread's workspace.
fn with_zeros<T: Field, O>(len: usize, f: impl FnOnce(&mut [T]) -> O) -> O {
    let words = (len * size_of::<T>()).div_ceil(size_of::<Word>());
    workspace(words, |buffer| {
        let start = buffer.as_mut_ptr().cast::<T>();
        // SAFETY: the words hold at least `len` elements and are aligned for every field; all-zero bits are
        // the number zero of each.
        let zeros = unsafe {
            start.write_bytes(0, len);
            std::slice::from_raw_parts_mut(start, len)
        };
        f(zeros)
    })
}

/// Calls `f` on a stack for faer in this thread's workspace.
fn with_stack<O>(request: StackReq, f: impl FnOnce(&mut MemStack) -> O) -> O {
    let words = request.unaligned_bytes_required().div_ceil(size_of::<Word>());
    workspace(words, |buffer| f(MemStack::new_any(buffer)))
}

/// Calls `f`, compiled for AVX2 where the machine has it. `f` and what it calls must be `inline(always)`.
/// No fused operations: results are the same on every machine.
#[inline(always)]
fn vectorised<O>(f: impl FnOnce() -> O) -> O {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        unsafe fn avx2<O>(f: impl FnOnce() -> O) -> O {
            f()
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the feature is present.
            return unsafe { avx2(f) };
        }
    }
    f()
}

#[cfg(test)]
mod tests;
