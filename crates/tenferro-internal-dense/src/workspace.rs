//! Memory for the time of one call, kept per thread, so that small matrices allocate nothing in the steady state.
//!
//! Invariant: memory whose size depends on extents is had from here, and where there is none, that is an
//! error: an operand may repeat one element, and be as large as extents can say.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use faer::dyn_stack::{MemStack, StackReq};
use smallvec::SmallVec;

use crate::simd::clearing;
use crate::{DenseError, Field};

/// Workspace words: sixteen bytes, so that every element type is aligned.
type Word = MaybeUninit<[u64; 2]>;

thread_local! {
    static WORKSPACE: RefCell<Vec<Vec<Word>>> = const { RefCell::new(Vec::new()) };
}

/// Larger workspaces go back to the allocator: 64 MiB.
const RETAINED: usize = 1 << 22;

/// Calls `f` on a workspace of this thread of `bytes` bytes at least. A buffer is taken out meanwhile, so
/// that a nested call (our own, or because faer's pool runs another factorization on this thread while one
/// waits) gets another.
///
/// # Errors
/// `Memory`.
fn workspace<O>(bytes: usize, f: impl FnOnce(&mut [Word]) -> O) -> Result<O, DenseError> {
    let words = bytes.div_ceil(size_of::<Word>());
    let mut buffer = WORKSPACE.with_borrow_mut(Vec::pop).unwrap_or_default();
    if buffer.len() < words {
        buffer.clear();
        buffer.try_reserve_exact(words).map_err(|_| DenseError::Memory { bytes })?;
        buffer.resize(words, Word::uninit());
    }
    let out = f(&mut buffer[..words]);
    if buffer.len() <= RETAINED {
        WORKSPACE.with_borrow_mut(|free| free.push(buffer));
    }
    Ok(out)
}

/// The sum of products of two extents, or the largest number where it is larger.
pub(crate) fn total<const N: usize>(parts: [(usize, usize); N]) -> usize {
    parts.into_iter().fold(0, |sum, (m, n)| sum.saturating_add(m.saturating_mul(n)))
}

/// Calls `f` on memory for `len` numbers in this thread's workspace.
///
/// # Errors
/// `Memory`.
pub(crate) fn with_uninit<T: Field, O>(
    len: usize,
    f: impl FnOnce(&mut [MaybeUninit<T>]) -> O,
) -> Result<O, DenseError> {
    workspace(len.saturating_mul(size_of::<T>()), |buffer| {
        // SAFETY: the words hold at least `len` elements, whose bytes were not more than a buffer can have, and
        // are aligned for every field.
        f(unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast(), len) })
    })
}

/// Whether there is memory for a copy of an m x n matrix, told before its elements are looked at: an operand that
/// repeats one of them may have more than a lifetime suffices for, and small results are allocated all the same.
/// Copies that a workspace is kept for are not asked about.
///
/// # Errors
/// `Memory`.
pub(crate) fn expect_room<T: Field>(m: usize, n: usize) -> Result<(), DenseError> {
    let len = m.saturating_mul(n);
    if len <= RETAINED { Ok(()) } else { with_uninit::<T, ()>(len, |_| ()) }
}

/// Calls `f` on `len` zeros in this thread's workspace.
///
/// # Errors
/// `Memory`.
pub(crate) fn with_zeros<T: Field, O>(len: usize, f: impl FnOnce(&mut [T]) -> O) -> Result<O, DenseError> {
    with_uninit::<T, O>(len, |memory| {
        // SAFETY: all-zero bits are the number zero of every field.
        f(unsafe {
            memory.as_mut_ptr().write_bytes(0, len);
            memory.assume_init_mut()
        })
    })
}

/// Calls `f`, a routine of faer, on a stack in this thread's workspace.
///
/// # Errors
/// `Memory`.
pub(crate) fn with_stack<O>(request: StackReq, f: impl FnOnce(&mut MemStack) -> O) -> Result<O, DenseError> {
    workspace(request.unaligned_bytes_required(), |buffer| clearing(|| f(MemStack::new_any(buffer))))
}

/// An array of these extents, of up to 64 elements without allocation, filled with `x`.
///
/// # Errors
/// `Memory`.
pub fn filled<T: Copy, const N: usize>(extents: [usize; N], x: T) -> Result<SmallVec<[T; 64]>, DenseError> {
    let len = extents.into_iter().fold(1, usize::saturating_mul);
    let mut array = SmallVec::new();
    array
        .try_reserve_exact(len)
        .map_err(|_| DenseError::Memory { bytes: len.saturating_mul(size_of::<T>()) })?;
    array.resize(len, x);
    Ok(array)
}

/// As [`filled`], on the heap.
///
/// # Errors
/// `Memory`.
pub fn allocated<T: Copy, const N: usize>(extents: [usize; N], x: T) -> Result<Vec<T>, DenseError> {
    let len = extents.into_iter().fold(1, usize::saturating_mul);
    let mut array = Vec::new();
    array
        .try_reserve_exact(len)
        .map_err(|_| DenseError::Memory { bytes: len.saturating_mul(size_of::<T>()) })?;
    array.resize(len, x);
    Ok(array)
}
