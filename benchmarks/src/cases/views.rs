//! Transposes and slices, which move no elements.

use super::{Case, Goal};
use crate::{Result, subject::subject};
use std::hint::black_box;
use tenferro_cpu::CpuBackend;
use tenferro_runtime::{EagerRuntime, prelude::*};

const BORROWED: Goal = Goal::Nanoseconds(30.0);
const EAGER: Goal = Goal::Nanoseconds(60.0);

pub(super) fn group() -> Result<Vec<Case>> {
    let mut cases = rank::<2>()?;
    cases.extend(rank::<6>()?);
    Ok(cases)
}

/// Views of a tensor with `N` axes of extent 2.
fn rank<const N: usize>() -> Result<Vec<Case>> {
    let len = 1 << N;
    // Element number i in row-major order is i, so its index is the binary expansion of i.
    let x = TypedTensor::from_vec_row_major([2; N], (0..len).map(f64::from).collect())?;
    let reversed = |i: u32| f64::from(i.reverse_bits() >> (u32::BITS - N as u32));
    let transposed: Vec<f64> = (0..len as u32).map(reversed).collect();
    // Index 1 on the first axis, everything on the others.
    let upper: Vec<f64> = (len / 2..len).map(f64::from).collect();

    let mut perm = [0; N];
    let mut starts = [0; N];
    perm.iter_mut().rev().enumerate().for_each(|(i, p)| *p = i);
    starts[0] = 1;
    // Unknown to the compiler, but not copied again with each call.
    let (perm, starts, limits) = black_box((perm, starts, [2; N]));
    let (steps, signed) = black_box(([1_usize; N], [1_isize; N]));

    let runtime = EagerRuntime::new(&CpuBackend::with_threads(1));
    let e = runtime.tensor(x.duplicate()?.into_tensor())?;
    let sliced = e.clone();
    // Views borrow, and a case keeps what it borrows from.
    let view = Box::leak(Box::new(x)).as_view();
    let same = view.clone();

    let name = |what: &str, tier: &str| format!("{what}, rank {N}: {tier}");
    let peer = (N == 2).then(|| "transpose_view_2x2".to_owned());
    let operands = if N == 2 { vec![view.duplicate()?] } else { Vec::new() };
    let borrowed = subject(move || black_box(&view).transpose_view(perm), |v| v.to_vec_row_major());
    let borrowed = Case::new(name("transpose", "borrowed"), BORROWED, borrowed);
    let slice =
        subject(move || black_box(&same).slice_view(starts, limits, signed), |v| v.to_vec_row_major());
    let eager = subject(move || black_box(&e).transpose(&perm), |v| v.to_tensor()?.to_vec_row_major());
    let eager_slice = subject(
        move || black_box(&sliced).slice(&starts, &limits, &steps),
        |v| v.to_tensor()?.to_vec_row_major(),
    );
    Ok(vec![
        Case { peer, operands, ..borrowed.expecting(transposed.clone()) },
        Case::new(name("slice", "borrowed"), BORROWED, slice).expecting(upper.clone()),
        Case::new(name("transpose", "eager"), EAGER, eager).expecting(transposed),
        Case::new(name("slice", "eager"), EAGER, eager_slice).expecting(upper),
    ])
}
