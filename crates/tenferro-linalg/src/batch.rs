//! Kernels over stacks of matrices: axes 0 and 1 are a matrix, every further axis counts matrices.
//!
//! An operand is read where it lies, whatever its strides; outputs are new and compact. One matrix may use
//! all threads; of many, each thread takes some.

use smallvec::{SmallVec, smallvec};
use std::sync::Mutex;
use tenferro_core_ops::{Aval, Extent, Operand, Outs, elements, ops};
use tenferro_cpu::{CpuBackend, Par};
use tenferro_internal_dense::{self as dense, Dense, DenseError, Field, Strided, filled};
use tenferro_tensor::{DType, Error, Result, Scalar, Tensor, TensorRef, UninitTensor};

/// The element types of dense linear algebra, as tensors hold them.
pub(crate) trait Element: Dense<Real: Scalar, Complex: Scalar> + Scalar {}
impl<T: Dense<Real: Scalar, Complex: Scalar> + Scalar> Element for T {}

/// Checks that operand `i` is a stack of matrices and gives the extents of one.
pub(crate) fn expect_matrix<'a, D: Extent>(
    op: &'static str,
    x: &[&'a Aval<D>],
    i: usize,
) -> Result<[&'a D; 2]> {
    match &x[i].shape[..] {
        [m, n, ..] => Ok([m, n]),
        short => Err(Error::rank(op, "rank of the matrix", short.len(), "at least 2")),
    }
}

/// Checks that the matrices of operand `i` are square.
pub(crate) fn expect_square<D: Extent>(op: &'static str, x: &[&Aval<D>], i: usize) -> Result<()> {
    let [m, n] = expect_matrix(op, x, i)?;
    D::equal(op, "matrix", m, n).map_err(|_| Error::shape(op, "matrix", x[i], "a square matrix"))
}

/// Checks that operands `i` and `j` have the same dtype and batch extents.
pub(crate) fn expect_batch<D: Extent>(op: &'static str, x: &[&Aval<D>], i: usize, j: usize) -> Result<()> {
    if x[i].dtype != x[j].dtype {
        return Err(Error::dtype(op, "operands", x[j].dtype, x[i].dtype));
    }
    let (a, b) = (&x[i].shape, &x[j].shape);
    let equal = a.len() == b.len()
        && a[2..].iter().zip(&b[2..]).all(|(p, q)| D::equal(op, "batch axes", p, q).is_ok());
    if equal { Ok(()) } else { Err(Error::shape(op, "batch axes", x[j], format_args!("those of {}", x[i]))) }
}

/// Checks that `x` is of `dtype` and has the extents `array`, and after them `batch`.
pub(crate) fn expect_stack<D: Extent>(
    op: &'static str,
    what: &'static str,
    x: &Aval<D>,
    dtype: DType,
    array: &[&D],
    batch: &[D],
) -> Result<()> {
    let expected = || array.iter().copied().chain(batch);
    let fits = x.dtype == dtype
        && x.rank() == array.len() + batch.len()
        && x.shape.iter().zip(expected()).all(|(a, b)| D::equal(op, what, a, b).is_ok());
    if fits { Ok(()) } else { Err(Error::shape(op, what, x, Aval::new(dtype, expected().cloned()))) }
}

/// Checks that every vector of a stack is a permutation of `0..n`.
pub(crate) fn expect_permutations(op: &'static str, p: &Matrices<i64>, n: usize, count: usize) -> Result<()> {
    // SAFETY: the vectors of the stack have n elements.
    if count == 0 || (n <= 64 && (0..count).all(|b| unsafe { is_short_permutation(p.at(b), n) })) {
        return Ok(());
    }
    let mut seen = filled([n.div_ceil(64)], 0u64).map_err(|why| failed(op, why))?;
    for b in 0..count {
        let p = p.at(b);
        seen.fill(0);
        for k in 0..n {
            // SAFETY: k is below the length of vector b.
            let i = unsafe { *p.ptr.offset(k as isize * p.row) };
            let word = usize::try_from(i).ok().filter(|&i| i < n).map(|i| (&mut seen[i / 64], 1 << (i % 64)));
            match word {
                Some((word, bit)) if *word & bit == 0 => *word |= bit,
                _ => {
                    let got = format_args!("{i} at position {k} of vector {b}");
                    return Err(Error::argument(
                        op,
                        "permutation",
                        got,
                        format_args!("a permutation of 0..{n}"),
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Whether the n elements, at most 64, are those of `0..n`, without saying which is not.
///
/// # Safety
/// `p` has n readable elements.
unsafe fn is_short_permutation(p: Strided<*const i64>, n: usize) -> bool {
    let (mut inside, mut seen) = (true, 0u64);
    for k in 0..n {
        // SAFETY: k is below n.
        let i = unsafe { *p.ptr.offset(k as isize * p.row) } as u64;
        inside &= i < n as u64;
        seen |= 1 << (i % 64);
    }
    inside && seen.count_ones() as usize == n
}

/// A stack of matrices to be read. Of a stack of vectors, the second axis is left out and has extent 1, of a
/// stack of numbers both are.
pub(crate) struct Matrices<T> {
    first: *const T,
    rows: isize,
    columns: isize,
    extents: SmallVec<[usize; 4]>,
    strides: SmallVec<[isize; 4]>,
}

// SAFETY: the elements are borrowed from an operand for as long as its kernel runs, and only read.
unsafe impl<T: Sync> Send for Matrices<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Matrices<T> {}

impl<T: Scalar> Matrices<T> {
    /// The matrices of `x`, which has two axes at least.
    pub(crate) fn new(x: &TensorRef<'_>) -> Result<Self> {
        Self::after(x, 2)
    }

    /// The vectors of `x`, which has one axis at least.
    pub(crate) fn vectors(x: &TensorRef<'_>) -> Result<Self> {
        Self::after(x, 1)
    }

    /// The numbers of `x`, whose axes are all of the stack.
    pub(crate) fn numbers(x: &TensorRef<'_>) -> Result<Self> {
        Self::after(x, 0)
    }

    fn after(x: &TensorRef<'_>, axes: usize) -> Result<Self> {
        let layout = x.layout();
        let (extents, strides) = (layout.shape(), layout.strides());
        Ok(Matrices {
            first: x.host_ptr::<T>()?,
            rows: if axes > 0 { strides[0] } else { 0 },
            columns: if axes == 2 { strides[1] } else { 0 },
            extents: SmallVec::from_slice(&extents[axes..]),
            strides: SmallVec::from_slice(&strides[axes..]),
        })
    }

    /// Matrix `b` in column-major order of the batch axes.
    pub(crate) fn at(&self, mut b: usize) -> Strided<*const T> {
        let mut offset = 0;
        for (&n, &s) in self.extents.iter().zip(&self.strides) {
            offset += (b % n) as isize * s;
            b /= n;
        }
        Strided { ptr: self.first.wrapping_offset(offset), row: self.rows, col: self.columns }
    }
}

/// A new compact stack of arrays of `size` elements each.
pub(crate) struct Results<T> {
    tensor: UninitTensor,
    first: *mut T,
    size: usize,
}

// SAFETY: the storage belongs to the tensor; kernels write disjoint arrays of it.
unsafe impl<T: Send> Send for Results<T> {}
// SAFETY: as above; only addresses are handed out.
unsafe impl<T: Send> Sync for Results<T> {}

impl<T: Scalar> Results<T> {
    /// Of the shape `y`, whose first `axes` axes are one array.
    pub(crate) fn new(shape: &[usize], axes: usize) -> Result<Self> {
        let mut tensor = Tensor::uninit(T::DTYPE, shape)?;
        let first = tensor.as_mut_ptr::<T>();
        Ok(Results { tensor, first, size: elements(&shape[..axes]) })
    }

    /// The address of array `b`.
    pub(crate) fn at(&self, b: usize) -> *mut T {
        self.first.wrapping_add(b * self.size)
    }

    /// The tensor.
    ///
    /// # Safety
    /// Every element of every array has been written.
    pub(crate) unsafe fn finish(self) -> Tensor {
        // SAFETY: the caller's promise.
        unsafe { self.tensor.assume_init() }
    }
}

/// Copies a matrix into compact memory.
///
/// # Safety
/// `a` has m x n readable elements, `to` room for as many.
pub(crate) unsafe fn copy_matrix<T: Copy>((m, n): (usize, usize), a: Strided<*const T>, to: *mut T) {
    for j in 0..n {
        for i in 0..m {
            // SAFETY: i < m and j < n.
            unsafe { *to.add(i + j * m) = *a.ptr.offset(i as isize * a.row + j as isize * a.col) };
        }
    }
}

/// A matrix of the stack could not be handled.
pub(crate) struct Failure {
    batch: usize,
    why: DenseError,
}

impl Failure {
    /// The error of `op` on a stack of extents `shape`.
    #[cold]
    pub(crate) fn error(self, op: &'static str, shape: &[usize]) -> Error {
        let of = of_matrix(self.batch, shape);
        match self.why {
            DenseError::Singular { index } => Error::numeric(
                op,
                "singular matrix",
                format_args!("pivot {index}{of} is zero"),
                "a matrix with an inverse",
            ),
            DenseError::NonFinite { row, col } => Error::numeric(
                op,
                "matrix",
                format_args!("element [{row}, {col}]{of} is not finite"),
                "finite elements",
            ),
            DenseError::NoConvergence => Error::numeric(
                op,
                "iteration",
                format_args!("no convergence{}", of.replacen(" of", " for", 1)),
                "eigenvalues that the iteration finds",
            ),
            DenseError::Overflow => Error::numeric(
                op,
                "elimination",
                format_args!("an overflow{of}"),
                "elements further below the largest number",
            ),
            DenseError::Memory { bytes } => {
                Error::memory(op, "bytes of a workspace", bytes, "as much as the system has")
            }
            DenseError::NotPositiveDefinite { order } => Error::numeric(
                op,
                "matrix",
                format_args!("the leading minor of order {order}{of} is not positive"),
                "a positive definite matrix",
            ),
        }
    }
}

/// ` of matrix [..]` for matrix `b` of a stack of extents `shape`; nothing if it is the only one.
pub(crate) fn of_matrix(mut b: usize, shape: &[usize]) -> String {
    let index: Vec<usize> = shape[2..]
        .iter()
        .map(|&n| {
            let i = b % n;
            b /= n;
            i
        })
        .collect();
    if index.is_empty() { String::new() } else { format!(" of matrix {index:?}") }
}

/// The error of `op` that is not one of a certain matrix.
pub(crate) fn failed(op: &'static str, why: DenseError) -> Error {
    Failure { batch: 0, why }.error(op, &[0, 0])
}

/// Calls `f` for each matrix of a stack. `work` is that of one matrix. The failure is the first one.
pub(crate) fn for_each(
    cpu: &CpuBackend,
    count: usize,
    work: usize,
    f: impl Fn(usize, dense::Par) -> Result<(), DenseError> + Send + Sync,
) -> Result<(), Failure> {
    cpu.parallel(work.saturating_mul(count), |par| {
        let inner = match par {
            Par::Rayon(n) if count < n.get() => dense::Par::Rayon(n),
            _ => dense::Par::Seq,
        };
        if inner != dense::Par::Seq || par == Par::Seq {
            return (0..count).try_for_each(|b| f(b, inner).map_err(|why| Failure { batch: b, why }));
        }
        let first: Mutex<Option<Failure>> = Mutex::new(None);
        par.for_each_chunk(count, 1, |range| {
            for b in range {
                if let Err(why) = f(b, dense::Par::Seq) {
                    let mut first = first.lock().unwrap_or_else(|e| e.into_inner());
                    if first.as_ref().is_none_or(|old| b < old.batch) {
                        *first = Some(Failure { batch: b, why });
                    }
                    break;
                }
            }
        });
        first.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
    })
}

/// Checks that a matrix has no NaN and no infinity.
///
/// # Safety
/// `a` has m x n readable elements.
pub(crate) unsafe fn expect_finite<T: Field>(
    (m, n): (usize, usize),
    a: Strided<*const T>,
) -> Result<(), DenseError> {
    for col in 0..n {
        for row in 0..m {
            // SAFETY: row < m and col < n.
            if !unsafe { *a.ptr.offset(row as isize * a.row + col as isize * a.col) }.finite() {
                return Err(DenseError::NonFinite { row, col });
            }
        }
    }
    Ok(())
}

/// Checks that the m x n factors of a finite matrix are finite.
///
/// # Safety
/// `factors` has m x n readable elements without gaps.
pub(crate) unsafe fn expect_no_overflow<T: Field>(
    (m, n): (usize, usize),
    factors: *const T,
) -> Result<(), DenseError> {
    // SAFETY: the caller's promise.
    let finite = unsafe { std::slice::from_raw_parts(factors, m * n) }.iter().all(|x| x.finite());
    if finite { Ok(()) } else { Err(DenseError::Overflow) }
}

/// The number of arrays in a stack of extents `shape`, whose first `axes` are one array, for results `y`. If
/// none of these has an element, there is nothing to do for any number of arrays, which may be too large for
/// `usize`, of any size: operands that repeat an element may be longer than memory.
pub(crate) fn count(shape: &[usize], axes: usize, y: &[Aval]) -> usize {
    if y.iter().all(|y| y.shape.contains(&0)) { 0 } else { elements(&shape[axes..]) }
}

/// Checks that extents of the matrices of a stack, which has `count` of them, fit the integers that
/// permutations are computed in. Before anything is allocated, because an operand that repeats an element may
/// have any extent.
pub(crate) fn expect_positions<const N: usize>(
    op: &'static str,
    count: usize,
    extents: [(&'static str, usize); N],
) -> Result<()> {
    match extents.into_iter().find(|&(_, n)| count > 0 && i32::try_from(n).is_err()) {
        Some((what, n)) => Err(Error::overflow(op, what, n, format_args!("at most {}", i32::MAX))),
        None => Ok(()),
    }
}

/// The product of `factors`, or the largest number: the extents of a matrix of an empty stack are arbitrary.
pub(crate) fn work(factors: [usize; 4]) -> usize {
    factors.into_iter().fold(1, usize::saturating_mul)
}

/// The error for a dtype that the kernel was not listed for.
pub(crate) fn unlisted(op: &'static str, dtype: DType) -> Error {
    debug_assert!(!ops::FLOATS.contains(&dtype));
    Error::unsupported(op, dtype, "cpu")
}

/// The kernel of an operation with one vector for each matrix of its operand: `f` gets the matrix and the address of the
/// vector. `work` is that of one matrix.
///
/// # Safety
/// `f` reads nothing but the matrix, and writes all of the vector, which has the length that the shape rule gave,
/// unless it fails.
pub(crate) unsafe fn vector_of_each<T: Scalar, R: Scalar>(
    op: &'static str,
    cpu: &CpuBackend,
    x: &Operand<'_>,
    y: &[Aval],
    work: usize,
    f: impl Fn(Strided<*const T>, *mut R, dense::Par) -> Result<(), DenseError> + Send + Sync,
) -> Result<Outs<Tensor>> {
    let a = x.read();
    let read = Matrices::<T>::new(&a)?;
    let results = Results::<R>::new(&y[0].shape, 1)?;
    for_each(cpu, count(a.shape(), 2, y), work, |b, par| f(read.at(b), results.at(b), par))
        .map_err(|e| e.error(op, a.shape()))?;
    // SAFETY: every matrix succeeded, and then its vector is written in full.
    Ok(smallvec![unsafe { results.finish() }])
}
