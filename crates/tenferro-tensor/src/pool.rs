//! Memory of host tensors, reused between tensors.
//!
//! Buffers come in size classes four to an octave, are 64-byte aligned and uninitialised. Up to
//! [`SMALL`] bytes a class has a free list per thread: taking and giving back is a few instructions
//! without atomics. Larger buffers have lists shared by all threads behind a lock, which is little
//! beside the work done on them, so a buffer made on one thread and dropped on another is reused; on
//! Linux those of 2 MiB and more ask for huge pages. A buffer may be freed on any thread. A thread that
//! ends gives its lists back to the system.
//!
//! What is counted where: the bytes held from the system are counted whenever they change, that is on
//! the slow path only; hits, misses and cached bytes of small buffers are counted per thread and summed
//! by [`stats`]. Each tensor's own description, with its elements if they take no more than 128 bytes, is a
//! buffer of 128 or 256 bytes, which the limit never refuses. Vectors given by the user are not the pool's
//! and not counted.
//!
//! ```
//! use tenferro_tensor::{Tensor, DType, pool};
//! let t = Tensor::zeros(DType::F64, [100, 100])?;
//! assert!(pool::stats().bytes_in_use >= 80_000);
//! drop(t);
//! pool::trim(); // gives unused buffers back to the system
//! # Ok::<(), tenferro_tensor::Error>(())
//! ```

use std::{
    alloc,
    cell::Cell,
    ptr::{self, NonNull},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use crate::{Error, Result};

/// Alignment of every buffer: a cache line, and the widest vector register.
pub const ALIGN: usize = 64;
/// Buffers up to this many bytes are cached per thread.
pub const SMALL: usize = 256 * 1024;
/// A thread caches at most this many bytes of small buffers.
const THREAD_CACHE: usize = 32 << 20;
/// All threads together cache at most this many bytes of large buffers.
const SHARED_CACHE: usize = 1 << 30;
/// From this size on a buffer is aligned for, and asks for, huge pages.
const HUGE: usize = 2 << 20;
/// The largest buffer: its class is the last whose size fits an `isize`.
const LARGEST: usize = 1 << 62;
const SMALL_CLASSES: usize = class_of(SMALL) as usize + 1;
const LARGE_CLASSES: usize = class_of(LARGEST) as usize + 1 - SMALL_CLASSES;

/// The size class of a buffer of `bytes > 0`: multiples of 64 up to 256, then four steps an octave.
#[inline]
const fn class_of(bytes: usize) -> u8 {
    let last = (bytes - 1) / ALIGN;
    if last < 4 {
        return last as u8;
    }
    let octave = last.ilog2() as usize;
    (4 * (octave - 1) + ((last >> (octave - 2)) & 3)) as u8
}

/// The bytes of a buffer of a class.
#[inline]
const fn class_bytes(class: u8) -> usize {
    let class = class as usize;
    if class < 4 {
        return (class + 1) * ALIGN;
    }
    ((4 + class % 4 + 1) << (class / 4 - 1)) * ALIGN
}

fn system_layout(class: u8) -> alloc::Layout {
    let bytes = class_bytes(class);
    let align = if bytes >= HUGE { HUGE } else { ALIGN };
    alloc::Layout::from_size_align(bytes, align).expect("the last class fits an isize")
}

/// Takes a buffer of at least `bytes > 0` bytes; gives its class, which [`free`] needs.
#[inline]
pub(crate) fn alloc(op: &'static str, bytes: usize) -> Result<(NonNull<u8>, u8)> {
    debug_assert!(bytes > 0);
    if bytes <= SMALL {
        let class = class_of(bytes);
        if let Ok(Some(block)) = THREAD.try_with(|cache| cache.pop(class)) {
            return Ok((block, class));
        }
    }
    alloc_slow(op, bytes, LIMIT.load(Relaxed))
}

/// Takes a small buffer for a tensor's own description: never refused by the limit, and without a failure to
/// handle, as any other small allocation of a program.
#[inline]
pub(crate) fn alloc_small(bytes: usize) -> NonNull<u8> {
    let class = const_class(bytes);
    if let Ok(Some(block)) = THREAD.try_with(|cache| cache.pop(class)) {
        return block;
    }
    match alloc_slow("alloc", bytes, usize::MAX) {
        Ok((block, _)) => block,
        Err(_) => alloc::handle_alloc_error(system_layout(class)),
    }
}

/// Gives back a buffer of [`alloc_small`].
///
/// # Safety
/// It was taken with the same `bytes`, and nothing uses it any more.
#[inline]
pub(crate) unsafe fn free_small(block: NonNull<u8>, bytes: usize) {
    // SAFETY: passed on from the caller; equal sizes have equal classes.
    unsafe { free(block, const_class(bytes)) }
}

#[inline]
const fn const_class(bytes: usize) -> u8 {
    assert!(0 < bytes && bytes <= SMALL);
    class_of(bytes)
}

#[cold]
#[inline(never)]
fn alloc_slow(op: &'static str, bytes: usize, limit: usize) -> Result<(NonNull<u8>, u8)> {
    if bytes > LARGEST {
        return Err(Error::overflow(op, "bytes of a buffer", bytes, format_args!("at most {LARGEST}")));
    }
    let class = class_of(bytes);
    if bytes > SMALL
        && let Some(block) = shared().pop(class)
    {
        return Ok((block, class));
    }
    if bytes <= SMALL {
        let _ = THREAD.try_with(ThreadCache::register);
    }
    let size = class_bytes(class);
    if reserve(size, limit).is_err() {
        trim();
        reserve(size, limit).map_err(|held| {
            let expected = format!("at most the limit of {limit}, {held} of which are held");
            Error::memory(op, "bytes of a new buffer", size, expected)
        })?;
    }
    let layout = system_layout(class);
    // SAFETY: every class has a size above 0.
    let mut block = unsafe { alloc::alloc(layout) };
    if block.is_null() {
        trim();
        // SAFETY: as above.
        block = unsafe { alloc::alloc(layout) };
    }
    let Some(block) = NonNull::new(block) else {
        HELD.fetch_sub(size, Relaxed);
        return Err(Error::memory(op, "bytes of a new buffer", size, "as much as the system has"));
    };
    if size >= HUGE {
        advise_huge_pages(block, size);
    }
    record_peak(&shared());
    Ok((block, class))
}

/// Gives back a buffer.
///
/// # Safety
/// `block` and `class` come from one call of [`alloc`], and nothing uses the buffer any more.
#[inline]
pub(crate) unsafe fn free(block: NonNull<u8>, class: u8) {
    // SAFETY: passed on from the caller.
    let keep = |cache: &ThreadCache| unsafe { cache.push(block, class) };
    if usize::from(class) < SMALL_CLASSES && THREAD.try_with(keep) == Ok(true) {
        return;
    }
    // SAFETY: passed on from the caller; the thread's lists did not take the buffer.
    unsafe { free_slow(block, class) }
}

/// # Safety
/// As for [`free`].
#[cold]
#[inline(never)]
unsafe fn free_slow(block: NonNull<u8>, class: u8) {
    if usize::from(class) >= SMALL_CLASSES && shared().push(block, class) {
        return;
    }
    // SAFETY: passed on from the caller; the buffer went to no list.
    unsafe { release(block, class) }
}

/// Gives a buffer back to the system.
///
/// # Safety
/// As for [`free`].
unsafe fn release(block: NonNull<u8>, class: u8) {
    // SAFETY: `alloc_slow` allocated it with the layout of its class.
    unsafe { alloc::dealloc(block.as_ptr(), system_layout(class)) };
    HELD.fetch_sub(class_bytes(class), Relaxed);
}

#[cfg(all(target_os = "linux", not(miri)))]
fn advise_huge_pages(block: NonNull<u8>, bytes: usize) {
    // SAFETY: the range is inside one live allocation, its start is page-aligned (`HUGE`), and the advice
    // changes no contents. Failing is harmless: the pages stay small.
    unsafe { libc::madvise(block.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise_huge_pages(_: NonNull<u8>, _: usize) {}

/// Bytes held from the system, in use or cached.
static HELD: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Counts calls of [`trim`]: a thread that sees a new number empties its lists.
static TRIMS: AtomicUsize = AtomicUsize::new(0);
static SHARED: Mutex<SharedCache> = Mutex::new(SharedCache::new());
static REGISTRY: Mutex<Registry> = Mutex::new(Registry { threads: Vec::new(), hits: 0, misses: 0 });

thread_local! {
    static THREAD: ThreadCache = const { ThreadCache::new() };
}

/// Counts bytes about to be held; `Err` with the bytes held now when that would pass the limit.
fn reserve(bytes: usize, limit: usize) -> Result<usize, usize> {
    HELD.fetch_update(Relaxed, Relaxed, |held| held.checked_add(bytes).filter(|&sum| sum <= limit))
}

fn record_peak(shared: &SharedCache) {
    PEAK.fetch_max(HELD.load(Relaxed).saturating_sub(shared.cached), Relaxed);
}

/// The caches hold no invariant that a panic could break half-way, so a poisoned lock is used on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn shared() -> MutexGuard<'static, SharedCache> {
    lock(&SHARED)
}

/// Free large buffers of all threads.
struct SharedCache {
    lists: [Vec<Block>; LARGE_CLASSES],
    cached: usize,
    hits: u64,
    misses: u64,
}

struct Block(NonNull<u8>);

// SAFETY: a free buffer is owned by the list it is in, and memory may be used and freed on any thread.
unsafe impl Send for Block {}

impl SharedCache {
    const fn new() -> Self {
        SharedCache { lists: [const { Vec::new() }; LARGE_CLASSES], cached: 0, hits: 0, misses: 0 }
    }

    fn pop(&mut self, class: u8) -> Option<NonNull<u8>> {
        let Some(Block(block)) = self.lists[usize::from(class) - SMALL_CLASSES].pop() else {
            self.misses += 1;
            return None;
        };
        self.hits += 1;
        self.cached -= class_bytes(class);
        record_peak(self);
        Some(block)
    }

    fn push(&mut self, block: NonNull<u8>, class: u8) -> bool {
        let room = self.cached + class_bytes(class) <= SHARED_CACHE;
        if room {
            self.lists[usize::from(class) - SMALL_CLASSES].push(Block(block));
            self.cached += class_bytes(class);
        }
        room
    }
}

/// What a thread counts: written by it alone, read by [`stats`].
struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    cached: AtomicUsize,
}

/// The counters of a live thread's [`ThreadCache`].
struct CountersRef(NonNull<Counters>);

// SAFETY: the counters are atomics, and are in the registry only while their thread's cache lives: its
// drop takes them out, under the registry's lock, which every reader holds.
unsafe impl Send for CountersRef {}

impl CountersRef {
    fn get(&self) -> &Counters {
        // SAFETY: see `Send`; the borrow is one of the locked registry.
        unsafe { self.0.as_ref() }
    }
}

/// One writer, so a load and a store make an increment.
#[inline]
fn increment(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

struct Registry {
    threads: Vec<CountersRef>,
    /// Of threads that ended.
    hits: u64,
    misses: u64,
}

/// A thread's free small buffers: per class a list linked through the buffers' first words.
struct ThreadCache {
    heads: [Cell<*mut Link>; SMALL_CLASSES],
    /// 0 until the thread is in the registry, then [`THREAD_CACHE`].
    room: Cell<usize>,
    trims: Cell<usize>,
    counters: Counters,
}

struct Link {
    next: *mut Link,
}

impl ThreadCache {
    const fn new() -> Self {
        let counters =
            Counters { hits: AtomicU64::new(0), misses: AtomicU64::new(0), cached: AtomicUsize::new(0) };
        ThreadCache {
            heads: [const { Cell::new(ptr::null_mut()) }; SMALL_CLASSES],
            room: Cell::new(0),
            trims: Cell::new(0),
            counters,
        }
    }

    #[inline]
    fn pop(&self, class: u8) -> Option<NonNull<u8>> {
        let list = &self.heads[usize::from(class)];
        let Some(link) = NonNull::new(list.get()) else {
            increment(&self.counters.misses);
            return None;
        };
        // SAFETY: the list holds free buffers whose first word `push` wrote.
        list.set(unsafe { link.read() }.next);
        increment(&self.counters.hits);
        let cached = &self.counters.cached;
        cached.store(cached.load(Relaxed) - class_bytes(class), Relaxed);
        Some(link.cast())
    }

    /// # Safety
    /// As for [`free`].
    #[inline]
    unsafe fn push(&self, block: NonNull<u8>, class: u8) -> bool {
        let cached = &self.counters.cached;
        let sum = cached.load(Relaxed) + class_bytes(class);
        if (sum > self.room.get() || self.trims.get() != TRIMS.load(Relaxed)) && !self.make_room() {
            return false;
        }
        let list = &self.heads[usize::from(class)];
        // SAFETY: a buffer has at least 64 bytes, aligned to 64, and nothing else uses it.
        unsafe { block.cast().write(Link { next: list.get() }) };
        list.set(block.as_ptr().cast());
        cached.store(sum, Relaxed);
        true
    }

    /// Whether the buffer at hand may go to the lists, which are emptied if they are full (rather than only
    /// turning this buffer away: what fills them may be of sizes that are not used any more).
    #[cold]
    fn make_room(&self) -> bool {
        if self.register() {
            return true;
        }
        self.flush();
        false
    }

    /// Enters the registry, at the first use that is slow anyway; `true` if it was not in it.
    fn register(&self) -> bool {
        let new = self.room.replace(THREAD_CACHE) == 0;
        if new {
            lock(&REGISTRY).threads.push(CountersRef(NonNull::from(&self.counters)));
            self.trims.set(TRIMS.load(Relaxed));
        }
        new
    }

    /// Gives every buffer back to the system.
    #[cold]
    fn flush(&self) {
        for (class, list) in self.heads.iter().enumerate() {
            while let Some(link) = NonNull::new(list.get()) {
                // SAFETY: as in `pop`; the buffer leaves the list before it is released.
                unsafe {
                    list.set(link.read().next);
                    release(link.cast(), class as u8);
                }
            }
        }
        self.counters.cached.store(0, Relaxed);
        self.trims.set(TRIMS.load(Relaxed));
    }
}

impl Drop for ThreadCache {
    fn drop(&mut self) {
        self.flush();
        let mut registry = lock(&REGISTRY);
        registry.threads.retain(|counters| !ptr::eq(counters.get(), &self.counters));
        registry.hits += self.counters.hits.load(Relaxed);
        registry.misses += self.counters.misses.load(Relaxed);
    }
}

/// What the pool holds and how often it could help.
///
/// Sizes are those of the classes, up to a quarter above what was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Bytes of buffers that tensors use.
    pub bytes_in_use: usize,
    /// The most bytes held at once, not counting cached large buffers (cached small ones count), since
    /// the start or [`reset_peak`].
    pub peak_bytes: usize,
    /// Bytes of buffers waiting to be used again.
    pub cached_bytes: usize,
    /// Buffers that came from a list.
    pub hits: u64,
    /// Buffers that came from the system.
    pub misses: u64,
    /// The limit, if one is set.
    pub limit: Option<usize>,
}

/// The pool's numbers. Numbers of different threads are read one after the other, so while other
/// threads work they are approximate.
pub fn stats() -> PoolStats {
    let registry = lock(&REGISTRY);
    let shared = shared();
    let sum = |counter: fn(&Counters) -> &AtomicU64| -> u64 {
        registry.threads.iter().map(|c| counter(c.get()).load(Relaxed)).sum()
    };
    let cached_by_threads: usize = registry.threads.iter().map(|c| c.get().cached.load(Relaxed)).sum();
    let cached_bytes = shared.cached + cached_by_threads;
    let limit = LIMIT.load(Relaxed);
    PoolStats {
        bytes_in_use: HELD.load(Relaxed).saturating_sub(cached_bytes),
        peak_bytes: PEAK.load(Relaxed),
        cached_bytes,
        hits: registry.hits + shared.hits + sum(|c| &c.hits),
        misses: registry.misses + shared.misses + sum(|c| &c.misses),
        limit: (limit != usize::MAX).then_some(limit),
    }
}

/// Limits the bytes that the pool holds, in use and cached together; `None` lifts the limit.
///
/// An allocation that would pass it first releases cached buffers as [`trim`] does, and is
/// [`Error::Memory`] if that is not enough. Buffers in use are not touched.
pub fn set_limit(bytes: Option<usize>) {
    LIMIT.store(bytes.unwrap_or(usize::MAX), Relaxed);
}

/// Starts a new measurement of [`PoolStats::peak_bytes`].
pub fn reset_peak() {
    let shared = shared();
    PEAK.store(0, Relaxed);
    record_peak(&shared);
}

/// Gives cached buffers back to the system: the large ones and this thread's small ones now, those of
/// another thread (at most 32 MiB) when it next drops a small tensor.
pub fn trim() {
    TRIMS.fetch_add(1, Relaxed);
    let _ = THREAD.try_with(ThreadCache::flush);
    let mut shared = shared();
    for class in 0..LARGE_CLASSES {
        for Block(block) in std::mem::take(&mut shared.lists[class]) {
            // SAFETY: the buffer was free in the list of its class, and has left it.
            unsafe { release(block, (class + SMALL_CLASSES) as u8) };
        }
    }
    shared.cached = 0;
}
