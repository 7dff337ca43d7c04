//! The pool. Its numbers are the process's, so the tests of this file take turns.

use std::{
    cell::RefCell,
    sync::{Mutex, PoisonError},
};

use tenferro_tensor::{DType, Error, Tensor, pool};

/// The bytes of a tensor's own description.
const OWN: usize = 128;

/// Runs a test alone, on a thread that has ended, with its lists, before the next one starts.
fn alone(test: fn()) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    pool::set_limit(None);
    pool::trim();
    if let Err(panic) = std::thread::spawn(test).join() {
        std::panic::resume_unwind(panic);
    }
}

fn buffer(bytes: usize) -> Tensor {
    Tensor::zeros(DType::Bool, [bytes]).unwrap()
}

fn address(t: &Tensor) -> usize {
    t.host_ptr::<bool>().unwrap().addr()
}

#[test]
fn a_dropped_buffer_is_used_again() {
    alone(|| {
        for bytes in [1, 200, 5000, 1 << 20, 5 << 20] {
            let first = buffer(bytes);
            let was = address(&first);
            drop(first);
            let before = pool::stats();
            let second = buffer(bytes);
            let after = pool::stats();
            assert_eq!(address(&second), was, "{bytes}");
            // A few elements are in the buffer of the description.
            let buffers = if bytes <= 128 { 1 } else { 2 };
            assert_eq!((after.hits, after.misses), (before.hits + buffers, before.misses), "{bytes}");
        }
    });
}

#[test]
fn live_buffers_never_overlap() {
    alone(|| {
        let sizes = [1, 64, 65, 128, 129, 200, 256, 257, 320, 321, 1000, 4096, 70_000, 300_000, 3 << 20];
        let mut live: Vec<Tensor> = Vec::new();
        for round in 0..4 {
            live.extend(sizes.iter().map(|&bytes| buffer(bytes)));
            let mut ranges: Vec<(usize, usize)> =
                live.iter().map(|t| (address(t), address(t) + t.len())).collect();
            ranges.sort_unstable();
            assert!(ranges.windows(2).all(|w| w[0].1 <= w[1].0));
            assert!(ranges.iter().all(|(start, _)| start % pool::ALIGN == 0));
            let mut keep = round;
            live.retain(|_| {
                keep += 1;
                keep % 3 == 0
            });
        }
    });
}

#[test]
fn numbers_add_up() {
    alone(|| {
        let before = pool::stats();
        assert_eq!(before.cached_bytes, 0);
        let (small, large) = (buffer(1000), buffer(1 << 20));
        let during = pool::stats();
        assert_eq!(during.bytes_in_use, before.bytes_in_use + 1024 + (1 << 20) + 2 * OWN);
        assert!(during.peak_bytes >= during.bytes_in_use);
        drop((small, large));
        let after = pool::stats();
        assert_eq!(
            (after.bytes_in_use, after.cached_bytes),
            (before.bytes_in_use, 1024 + (1 << 20) + 2 * OWN)
        );
        pool::trim();
        assert_eq!(pool::stats().cached_bytes, 0);
        pool::reset_peak();
        assert_eq!(pool::stats().peak_bytes, before.bytes_in_use);
    });
}

#[test]
fn the_limit_holds_and_recovers() {
    alone(|| {
        let kept = buffer(1 << 20);
        drop(buffer(2 << 20)); // cached: released rather than in the way
        pool::set_limit(Some(pool::stats().bytes_in_use + (3 << 20)));
        let second = buffer(3 << 20);
        let refused = Tensor::uninit(DType::Bool, &[1 << 20]);
        assert!(matches!(refused, Err(Error::Memory(_))));
        assert!(
            matches!(Tensor::zeros(DType::F64, [1000]), Err(Error::Memory(_))),
            "small buffers count too"
        );
        assert_eq!(Tensor::scalar(1.0_f64).item::<f64>().unwrap(), 1.0, "a scalar is in its description");
        drop(second);
        let third = buffer(1 << 20);
        assert_eq!(pool::stats().limit, Some(pool::stats().bytes_in_use + (2 << 20) - OWN));
        drop((kept, third));
        pool::set_limit(None);
        drop(buffer(5 << 20));
    });
}

#[test]
fn buffers_may_be_freed_on_another_thread() {
    alone(|| {
        let before = pool::stats();
        let tensors: Vec<Tensor> = [10, 10_000, 1 << 20].iter().map(|&bytes| buffer(bytes)).collect();
        std::thread::spawn(move || {
            let more: Vec<Tensor> = (0..100).map(|_| buffer(100)).collect();
            drop(tensors);
            drop(more);
        })
        .join()
        .unwrap();
        // The thread is gone, and its lists with it; the large buffer is there for anyone.
        let after = pool::stats();
        assert_eq!((after.bytes_in_use, after.cached_bytes), (before.bytes_in_use, 1 << 20));
        assert_eq!(
            after.misses,
            before.misses + 2 * 2 + 101,
            "100 of 100 bytes and one of 10 are one buffer each"
        );
    });
}

#[test]
fn tensors_in_thread_locals_outlive_the_lists() {
    alone(|| {
        let before = pool::stats();
        std::thread::spawn(|| {
            thread_local!(static KEPT: RefCell<Vec<Tensor>> = const { RefCell::new(Vec::new()) });
            KEPT.with_borrow_mut(|kept| kept.extend([buffer(10), buffer(100_000)]));
        })
        .join()
        .unwrap();
        assert_eq!(pool::stats().bytes_in_use, before.bytes_in_use);
    });
}

#[test]
fn many_threads_trade_buffers() {
    alone(|| {
        let before = pool::stats();
        let (send, receive) = std::sync::mpsc::channel::<Tensor>();
        let mut threads: Vec<_> = (0..3_usize)
            .map(|seed| {
                let send = send.clone();
                std::thread::spawn(move || {
                    for i in 0..60 {
                        let bytes = 1 + (i * 7919 + seed * 104_729) % 400_000;
                        let mut t = Tensor::uninit(DType::Bool, &[bytes]).unwrap();
                        let value = std::mem::MaybeUninit::new(i % 2 == 0);
                        t.as_uninit_slice_mut::<bool>().unwrap().fill(value);
                        // SAFETY: the line above wrote every element.
                        send.send(unsafe { t.assume_init() }).unwrap();
                    }
                })
            })
            .collect();
        drop(send);
        threads.push(std::thread::spawn(move || {
            for t in receive {
                let elements = t.as_slice::<bool>().unwrap();
                assert!(elements.iter().all(|&x| x == elements[0]));
            }
        }));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(pool::stats().bytes_in_use, before.bytes_in_use);
        pool::trim();
        assert_eq!(pool::stats().cached_bytes, 0);
    });
}
