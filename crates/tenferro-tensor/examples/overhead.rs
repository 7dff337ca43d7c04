//! Prints what views and small tensors cost, in nanoseconds: `cargo run --release --example overhead`.

use std::{hint::black_box, time::Instant};

use tenferro_tensor::{DType, Error, Tensor, TypedTensor, Value};

fn time(what: &str, mut f: impl FnMut()) {
    const CALLS: u32 = 1_000_000;
    let nanoseconds = || {
        let start = Instant::now();
        (0..CALLS).for_each(|_| f());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    let best = std::iter::repeat_with(nanoseconds).take(7).fold(f64::INFINITY, f64::min);
    println!("{best:8.1} ns  {what}");
}

fn main() -> Result<(), Error> {
    let t = TypedTensor::<f64>::zeros([2; 6])?;
    let erased = TypedTensor::<f64>::zeros([2; 6])?.into_tensor();
    let view = t.as_view();
    let value = Value::new(TypedTensor::<f64>::zeros([2; 6])?.into_tensor());
    time("as_view, rank 6", || drop(black_box(black_box(&t).as_view())));
    time("Tensor::as_view, rank 6", || drop(black_box(black_box(&erased).as_view())));
    time("transpose_view, rank 6", || {
        drop(black_box(black_box(&view).transpose_view(black_box([5, 4, 3, 2, 1, 0]))));
    });
    time("slice_view, rank 6", || {
        drop(black_box(black_box(&view).slice_view(black_box([0; 6]), black_box([1; 6]), black_box([1; 6]))));
    });
    time("reshape_view, rank 6 to 2", || drop(black_box(black_box(&view).reshape_view(black_box([8, 8])))));
    time("Value::clone", || drop(black_box(black_box(&value).clone())));
    time("uninit + assume_init + drop, 1 element", || {
        let out = Tensor::uninit(black_box(DType::F64), black_box(&[1]));
        // SAFETY: the element is dropped unread.
        drop(black_box(out.map(|out| unsafe { out.assume_init() })));
    });
    time("two Box::new + drop of 112 and 8 bytes", || {
        drop(black_box((Box::new(black_box([0_u64; 14])), Box::new(black_box(0_u64)))));
    });
    time("uninit + assume_init + drop, 4 MiB", || {
        let out = Tensor::uninit(black_box(DType::F64), black_box(&[1 << 19]));
        // SAFETY: the elements are dropped unread.
        drop(black_box(out.map(|out| unsafe { out.assume_init() })));
    });
    Ok(())
}
