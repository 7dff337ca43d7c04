//! What is timed, and how: samples of many calls, and the median of the samples.

use crate::Result;
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// Long against the clock's resolution and short against the scheduler's slices.
const SAMPLE: Duration = Duration::from_micros(200);

/// A call that can be repeated.
pub(crate) trait Subject {
    /// The time of this many calls, the disposal of their results included.
    fn sample(&mut self, calls: u64) -> Duration;
    /// The result of one call, in row-major order.
    fn values(&mut self) -> Result<Vec<f64>>;
}

struct Timed<F, G> {
    call: F,
    read: G,
}

impl<R, F, G> Subject for Timed<F, G>
where
    F: FnMut() -> tenferro_tensor::Result<R>,
    G: Fn(R) -> tenferro_tensor::Result<Vec<f64>>,
{
    fn sample(&mut self, calls: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..calls {
            let result = (self.call)();
            // Not moved: reading back at once what was just written is no part of the call.
            if let Err(e) = black_box(&result) {
                panic!("the call has succeeded before with the same operands: {e}");
            }
        }
        start.elapsed()
    }

    fn values(&mut self) -> Result<Vec<f64>> {
        Ok((self.read)((self.call)()?)?)
    }
}

/// `call`, whose results `read` turns into numbers.
pub(crate) fn subject<R: 'static>(
    call: impl FnMut() -> tenferro_tensor::Result<R> + 'static,
    read: impl Fn(R) -> tenferro_tensor::Result<Vec<f64>> + 'static,
) -> Box<dyn Subject> {
    Box::new(Timed { call, read })
}

/// The median over samples of the time of one call.
pub(crate) fn median_ns(subject: &mut dyn Subject, budget: Duration) -> f64 {
    let mut calls = 1;
    loop {
        let elapsed = subject.sample(calls);
        if elapsed >= SAMPLE {
            break;
        }
        let scale = SAMPLE.as_nanos() / elapsed.as_nanos().max(1);
        calls *= (scale as u64).max(2);
    }
    let start = Instant::now();
    let mut samples = Vec::new();
    while samples.len() < 3 || start.elapsed() < budget {
        samples.push(subject.sample(calls).as_nanos() as f64 / calls as f64);
    }
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
