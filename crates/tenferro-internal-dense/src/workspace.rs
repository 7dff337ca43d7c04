//! Memory for the time of one call, kept per thread, so that small matrices allocate nothing in the steady state.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use faer::dyn_stack::{MemStack, StackReq};

use crate::Field;

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

/// Calls `f` on memory for `len` numbers in this thread's workspace.
pub(crate) fn with_uninit<T: Field, O>(len: usize, f: impl FnOnce(&mut [MaybeUninit<T>]) -> O) -> O {
    let bytes = len.checked_mul(size_of::<T>()).expect("a workspace that memory could hold");
    let words = bytes.div_ceil(size_of::<Word>());
    workspace(words, |buffer| {
        // SAFETY: the words hold at least `len` elements and are aligned for every field.
        f(unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast(), len) })
    })
}

/// Calls `f` on `len` zeros in this thread's workspace.
pub(crate) fn with_zeros<T: Field, O>(len: usize, f: impl FnOnce(&mut [T]) -> O) -> O {
    with_uninit::<T, O>(len, |memory| {
        // SAFETY: all-zero bits are the number zero of every field.
        f(unsafe {
            memory.as_mut_ptr().write_bytes(0, len);
            memory.assume_init_mut()
        })
    })
}

/// Calls `f` on a stack for faer in this thread's workspace.
pub(crate) fn with_stack<O>(request: StackReq, f: impl FnOnce(&mut MemStack) -> O) -> O {
    let words = request.unaligned_bytes_required().div_ceil(size_of::<Word>());
    workspace(words, |buffer| f(MemStack::new_any(buffer)))
}
