//! [`Shared`]: the counted pointer inside a tensor.
//!
//! What `Arc` is, less weak pointers. Most tensors have one owner all their life, and that case costs no
//! atomic read-modify-write here: a handle that sees a count of 1 is the only one, and as only it could
//! make another, a load settles it. Its memory comes from the [pool](crate::pool), so that a small tensor
//! is made and dropped without the system's allocator.

use std::{
    fmt,
    ops::Deref,
    process::abort,
    ptr::NonNull,
    sync::atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
        fence,
    },
};

use crate::pool;

/// What can be behind a [`Shared`].
pub(crate) trait Pointee {
    /// Bytes of memory of its own that follow it in its block.
    #[inline]
    fn tail(&self) -> usize {
        0
    }
}

/// One of the owners of a `T`.
pub(crate) struct Shared<T: Pointee>(NonNull<Counted<T>>);

struct Counted<T> {
    owners: AtomicUsize,
    value: T,
}

// SAFETY: as for `Arc`: owners on several threads share `&T` and the last one drops the `T`.
unsafe impl<T: Pointee + Send + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Pointee + Send + Sync> Sync for Shared<T> {}

impl<T: Pointee> Shared<T> {
    /// Where in a block the tail begins.
    const TAIL: usize = size_of::<Counted<T>>().next_multiple_of(pool::ALIGN);
    const FITS: () = assert!(align_of::<Counted<T>>() <= pool::ALIGN);

    #[inline]
    pub(crate) fn new(value: T) -> Self {
        debug_assert_eq!(value.tail(), 0);
        Self::with_tail(0, |_| value)
    }

    /// `make(tail)`, where `tail` is the address of as many bytes as its [`Pointee::tail`] will say, aligned
    /// to [`pool::ALIGN`] and uninitialised. They live as long as the value is behind this pointer.
    #[inline]
    pub(crate) fn with_tail(bytes: usize, make: impl FnOnce(NonNull<u8>) -> T) -> Self {
        const { Self::FITS };
        let block = pool::alloc_small(Self::TAIL + bytes);
        // SAFETY: the block is larger than `TAIL`.
        let value = make(unsafe { block.add(Self::TAIL) });
        debug_assert_eq!(value.tail(), bytes);
        let block = block.cast();
        // SAFETY: the block is larger than a `Counted<T>`, aligned to more than `T` needs, and unused.
        unsafe { block.write(Counted { owners: AtomicUsize::new(1), value }) };
        Shared(block)
    }

    /// Gives back the block of a value that was dropped or moved out, and that had this tail.
    ///
    /// # Safety
    /// Nothing uses the block any more.
    #[inline]
    unsafe fn free(block: NonNull<Counted<T>>, tail: usize) {
        // SAFETY: the caller's; `with_tail` took the block with this size.
        unsafe { pool::free_small(block.cast(), Self::TAIL + tail) }
    }

    #[inline]
    fn owners(&self) -> &AtomicUsize {
        // SAFETY: the block lives while an owner does; the count is only used through shared references.
        unsafe { &(*self.0.as_ptr()).owners }
    }

    /// Another owner.
    #[inline]
    pub(crate) fn share(&self) -> Self {
        // Relaxed as in `Arc`: whoever gets the new handle gets it by some synchronised way.
        if self.owners().fetch_add(1, Relaxed) > isize::MAX as usize {
            abort(); // handles were leaked until the count is about to wrap
        }
        Shared(self.0)
    }

    /// This is the only owner now. Of use where the handle is borrowed mutably; else only a hint.
    #[inline]
    pub(crate) fn is_unique(&self) -> bool {
        // Acquire pairs with the release of other owners' drops: what they did happened before.
        self.owners().load(Acquire) == 1
    }

    /// The value to write, for the only owner.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: this handle is the only one, and while it is borrowed mutably nothing makes another.
        self.is_unique().then(|| unsafe { &mut (*self.0.as_ptr()).value })
    }

    /// The value, from its only owner, if it has no tail, which would not move with it.
    pub(crate) fn try_unwrap(self) -> Result<T, Self> {
        if !self.is_unique() || self.tail() > 0 {
            return Err(self);
        }
        let block = self.0;
        std::mem::forget(self);
        // SAFETY: the handle was the only one and is gone, so the value can be moved out and its block freed.
        unsafe {
            let value = std::ptr::read(&raw const (*block.as_ptr()).value);
            Self::free(block, 0);
            Ok(value)
        }
    }

    /// Equal for owners of the same value, and for these only.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        self.0.addr().get()
    }
}

impl<T: Pointee> Deref for Shared<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value lives while an owner does, and is written only through `get_mut`.
        unsafe { &(*self.0.as_ptr()).value }
    }
}

impl<T: Pointee + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Pointee> Drop for Shared<T> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_unique() {
            if self.owners().fetch_sub(1, Release) != 1 {
                return;
            }
            fence(Acquire); // the last of several: see what the others did before their drops
        }
        let tail = self.tail();
        // SAFETY: no other owner is left.
        unsafe {
            std::ptr::drop_in_place(&raw mut (*self.0.as_ptr()).value);
            Self::free(self.0, tail);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::AtomicUsize};

    use super::*;

    struct Counter(Arc<AtomicUsize>);

    impl Pointee for Counter {}

    impl Drop for Counter {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn the_value_is_dropped_once_by_the_last_owner() {
        let drops = Arc::new(AtomicUsize::new(0));
        let mut a = Shared::new(Counter(drops.clone()));
        assert!(a.get_mut().is_some());
        let b = a.share();
        assert!(a.get_mut().is_none() && a.address() == b.address());
        drop(a);
        assert_eq!(drops.load(Relaxed), 0);
        let value = b.try_unwrap().unwrap_or_else(|_| panic!("unique"));
        assert_eq!(drops.load(Relaxed), 0);
        drop(value);
        assert_eq!(drops.load(Relaxed), 1);
        drop(Shared::new(Counter(drops.clone())));
        assert_eq!(drops.load(Relaxed), 2);
    }

    #[test]
    fn owners_on_many_threads_drop_it_once() {
        let drops = Arc::new(AtomicUsize::new(0));
        for round in 1..=100 {
            let first = Shared::new(Counter(drops.clone()));
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    let mine = first.share();
                    scope.spawn(move || drop((mine.share(), mine)));
                }
                drop(first);
            });
            assert_eq!(drops.load(Relaxed), round);
        }
    }
}
