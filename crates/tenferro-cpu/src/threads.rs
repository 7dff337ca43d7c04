//! The thread budget of a backend, and the one door through which anything runs in parallel.
//!
//! [`Threads::parallel`] decides whether work is worth more than one thread. Small work, and work that
//! already runs inside someone's rayon worker, stays on the caller's thread, so nesting never oversubscribes
//! and never deadlocks. The pool is created by the first call that needs it.
//!
//! Invariant: a loop cuts its range at places that depend on its length and the budget only, never on timing,
//! so results are bitwise reproducible for a fixed number of threads.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

/// Work below this many units (bytes moved plus arithmetic operations) runs on the caller's thread.
///
/// Entering the pool from outside and waking its threads costs about 10 us, in which one core moves or
/// computes some 10^5 units.
pub const PARALLEL_WORK: usize = 1 << 19;

/// How a piece of work may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Par {
    /// On this thread.
    Seq,
    /// On this many threads of the rayon pool that the current thread belongs to.
    Rayon(NonZeroUsize),
}

impl Par {
    /// The number of threads to share the work between.
    pub fn threads(self) -> usize {
        match self {
            Par::Seq => 1,
            Par::Rayon(n) => n.get(),
        }
    }

    /// Calls `f` on disjoint ranges that cover `0..n`, possibly on several threads at once.
    ///
    /// Every range but the last has a length that is a multiple of `grain`.
    #[inline]
    pub fn for_each_chunk(self, n: usize, grain: usize, f: impl Fn(Range<usize>) + Send + Sync) {
        match self {
            Par::Seq if n == 0 => {}
            Par::Seq => f(0..n),
            Par::Rayon(threads) => split(threads.get(), n, grain.max(1), &f),
        }
    }
}

/// More chunks than threads, so that a thread held up elsewhere does not hold up the rest.
const CHUNKS_PER_THREAD: usize = 4;

fn split(threads: usize, n: usize, grain: usize, f: &(impl Fn(Range<usize>) + Send + Sync)) {
    let grains = n.div_ceil(grain);
    let chunk = grains.div_ceil(threads.saturating_mul(CHUNKS_PER_THREAD)).max(1) * grain;
    (0..n.div_ceil(chunk)).into_par_iter().with_max_len(1).for_each(|i| f(i * chunk..n.min((i + 1) * chunk)));
}

#[cfg(any(feature = "cpu-faer", feature = "cpu-blas"))]
impl From<Par> for tenferro_internal_dense::Par {
    fn from(par: Par) -> tenferro_internal_dense::Par {
        match par {
            Par::Seq => tenferro_internal_dense::Par::Seq,
            Par::Rayon(n) => tenferro_internal_dense::Par::Rayon(n),
        }
    }
}

/// A thread budget with its own pool; clones share both.
#[derive(Clone, Debug)]
pub struct Threads(Arc<Domain>);

#[derive(Debug)]
struct Domain {
    budget: NonZeroUsize,
    /// `None` inside when the system refused to create threads: everything then runs on the caller's.
    pool: OnceLock<Option<rayon::ThreadPool>>,
}

impl Default for Threads {
    fn default() -> Threads {
        Threads::new()
    }
}

impl Threads {
    /// The default budget: `RAYON_NUM_THREADS` if it is a positive number, else the cores available to this
    /// process.
    pub fn new() -> Threads {
        let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|n| n.trim().parse().ok());
        let budget = asked.or_else(|| std::thread::available_parallelism().ok());
        Threads::with_budget(budget.unwrap_or(NonZeroUsize::MIN))
    }

    /// A budget of `n` threads.
    pub fn with_budget(n: NonZeroUsize) -> Threads {
        Threads(Arc::new(Domain { budget: n, pool: OnceLock::new() }))
    }

    /// The number of threads that work started here may use.
    pub fn budget(&self) -> NonZeroUsize {
        self.0.budget
    }

    /// Runs `f` once and hands it the parallelism it may use.
    ///
    /// `work` estimates the bytes moved plus the arithmetic operations. `f` gets [`Par::Seq`] on the caller's
    /// thread when that is less than [`PARALLEL_WORK`], when the budget is one thread, or when the caller is
    /// itself a rayon worker; otherwise it runs inside the pool. A panic of `f` reaches the caller and leaves
    /// the pool usable.
    #[inline]
    pub fn parallel<R: Send>(&self, work: usize, f: impl FnOnce(Par) -> R + Send) -> R {
        if work < PARALLEL_WORK || self.0.budget.get() == 1 { f(Par::Seq) } else { self.enter(f) }
    }

    #[cold]
    fn enter<R: Send>(&self, f: impl FnOnce(Par) -> R + Send) -> R {
        if rayon::current_thread_index().is_some() {
            return f(Par::Seq);
        }
        match self.0.pool.get_or_init(|| pool(self.0.budget)) {
            Some(pool) => pool.install(|| f(Par::Rayon(self.0.budget))),
            None => f(Par::Seq),
        }
    }
}

/// Bytes of a worker's stack. OpenBLAS 0.3 factorizes in parallel by a recursion of half a megabyte a level, which
/// the usual two megabytes do not hold.
const STACK: usize = 16 << 20;

fn pool(budget: NonZeroUsize) -> Option<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(budget.get())
        .stack_size(STACK)
        .thread_name(|i| format!("tenferro-cpu-{i}"))
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn threads(n: usize) -> Threads {
        Threads::with_budget(NonZeroUsize::new(n).unwrap())
    }

    #[test]
    fn small_nested_and_foreign_work_stays_on_the_caller() {
        let t = threads(3);
        let me = std::thread::current().id();
        t.parallel(10, |par| {
            assert_eq!(par, Par::Seq);
            assert_eq!(std::thread::current().id(), me);
        });
        t.parallel(usize::MAX, |par| {
            assert_eq!(par, Par::Rayon(t.budget()));
            assert_eq!(t.parallel(usize::MAX, |inner| inner), Par::Seq);
            assert_eq!(threads(2).parallel(usize::MAX, |inner| inner), Par::Seq);
        });
        assert_eq!(threads(1).parallel(usize::MAX, |par| par), Par::Seq);
        let other = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        assert_eq!(other.install(|| t.parallel(usize::MAX, |par| par)), Par::Seq);
    }

    #[test]
    fn no_number_of_threads_is_too_large() {
        let sum = std::sync::atomic::AtomicUsize::new(0);
        let add = |range: Range<usize>| {
            sum.fetch_add(range.sum(), std::sync::atomic::Ordering::Relaxed);
        };
        Par::Rayon(NonZeroUsize::new(1 << 62).unwrap()).for_each_chunk(10, 1, add);
        assert_eq!(sum.into_inner(), 45);
    }

    #[test]
    fn chunks_cover_the_range_once_and_the_same_way_each_time() {
        for budget in [1, 2, 3] {
            for (n, grain) in [(0, 4), (1, 4), (1000, 1), (1003, 16), (5, 100)] {
                let ranges = || {
                    let seen = Mutex::new(Vec::new());
                    threads(budget).parallel(usize::MAX, |par| {
                        par.for_each_chunk(n, grain, |r| seen.lock().unwrap().push((r.start, r.end)))
                    });
                    let mut seen = seen.into_inner().unwrap();
                    seen.sort();
                    seen
                };
                let seen = ranges();
                assert_eq!(seen, ranges());
                let mut at = 0;
                for &(lo, hi) in &seen {
                    assert_eq!(lo, at);
                    assert!(hi == n || (hi - lo) % grain == 0);
                    at = hi;
                }
                assert_eq!(at, n);
            }
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_survives() {
        let t = threads(2);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            t.parallel(usize::MAX, |par| par.for_each_chunk(100, 1, |r| assert!(!r.contains(&57))));
        }));
        assert!(caught.is_err());
        assert_eq!(t.parallel(usize::MAX, |par| par.threads()), 2);
    }
}
