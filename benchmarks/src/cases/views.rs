//! Transposes and slices, which move no elements.

use super::{Case, Goal};
use crate::{Result, subject::subject};
use std::hint::black_box;
use tenferro_cpu::CpuBackend;
use tenferro_runtime::{EagerRuntime, EagerTensor, prelude::*};

const BORROWED: Goal = Goal::Nanoseconds(30.0);
const EAGER: Goal = Goal::Nanoseconds(60.0);

pub(super) fn group() -> Result<Vec<Case>> {
    let mut cases = rank::<2>()?;
    cases.extend(rank::<6>()?);
    cases.push(large()?);
    Ok(cases)
}

/// A view on both tiers, which has the elements `expected` in row-major order. Of matrices, peers have it, too, but for a
/// reshape in column-major order.
fn both(
    name: &str,
    (x, e): &(Operand, EagerTensor),
    expected: Vec<f64>,
    borrowed: impl Fn(&Operand) -> tenferro_tensor::Result<Operand> + 'static,
    eager: impl Fn(&EagerTensor) -> tenferro_tensor::Result<EagerTensor> + 'static,
) -> Result<[Case; 2]> {
    let rank = x.shape().len();
    let (operand, x, e) = (x.clone(), x.clone(), e.clone());
    let borrowed = subject(move || borrowed(black_box(&x)), |v| v.to_vec_row_major());
    let eager = subject(move || eager(black_box(&e)), |v| v.to_tensor()?.to_vec_row_major());
    let case = |tier, goal, subject| Case::new(format!("{name}, rank {rank}: {tier}"), goal, subject);
    let pair = [case("borrowed", BORROWED, borrowed), case("eager", EAGER, eager)];
    let pair = pair.map(|c| c.expecting(expected.clone()));
    if rank != 2 || name == "reshape" {
        return Ok(pair);
    }
    let (peer, operand, [borrowed, eager]) = (format!("{name}_view_2x2"), operand.duplicate()?, pair);
    Ok([borrowed.beside(&peer, &[&operand])?, eager.beside(&peer, &[&operand])?])
}

/// Views cost the same for any number of elements.
fn large() -> Result<Case> {
    let (side, half) = black_box((1 << 12, 1 << 11));
    let runtime = EagerRuntime::new(&CpuBackend::with_threads(1));
    let x = runtime.tensor(Tensor::zeros(DType::F64, [side * side, 2])?)?;
    let views = move || {
        let halves = black_box(&x).reshape(&[side, side, 2])?.transpose(&[1, 0, 2])?;
        halves.slice(&[half, 0, 0], &[side, 1, 1], &[half, 1, 1])
    };
    let views = subject(views, |v| v.to_tensor()?.to_vec_row_major());
    let name = "reshape, transpose and slice of 2^25 elements: eager";
    Ok(Case::new(name, Goal::Nanoseconds(5000.0), views).expecting([0.0]))
}

type Operand = TypedTensorView<'static, f64>;

/// Views of a tensor with `N` axes of extent 2.
fn rank<const N: usize>() -> Result<Vec<Case>> {
    let len = 1 << N;
    let runtime = EagerRuntime::new(&CpuBackend::with_threads(1));
    // Views borrow, and a case keeps what it borrows from.
    let operand = |x: TypedTensor<f64>| -> Result<(Operand, EagerTensor)> {
        let e = runtime.tensor(x.duplicate()?.into_tensor())?;
        Ok((Box::leak(Box::new(x)).as_view(), e))
    };
    // Element number i in row-major order is i, so its index is the binary expansion of i.
    let x = operand(TypedTensor::from_vec_row_major([2; N], (0..len).map(f64::from).collect())?)?;
    let mut unit = [2; N];
    unit[0] = 1;
    let thin = operand(TypedTensor::from_vec_row_major(unit, (0..len / 2).map(f64::from).collect())?)?;

    let reversed = |i: i32| f64::from((i as u32).reverse_bits() >> (u32::BITS - N as u32));
    let column_major: Vec<f64> = (0..len).map(reversed).collect();
    let upper = (len / 2..len).map(f64::from).collect();
    let flipped = (0..len).map(|i| f64::from(i ^ (len / 2))).collect();
    let three = (0..3).flat_map(|_| (0..len / 2).map(f64::from)).collect();
    let diagonal = (0..len / 4).flat_map(|i| [i, len / 2 + len / 4 + i]).map(f64::from).collect();

    let mut perm = [0; N];
    let mut starts = [0; N];
    let mut wide = [2; N];
    let mut axes = [0; N];
    perm.iter_mut().rev().enumerate().for_each(|(i, p)| *p = i);
    axes.iter_mut().enumerate().for_each(|(i, p)| *p = i);
    starts[0] = 1;
    wide[0] = 3;
    // Unknown to the compiler, but not copied again with each call.
    let (perm, starts, limits, wide) = black_box((perm, starts, [2; N], wide));
    let (steps, signed, axes, flat) = black_box(([1_usize; N], [1_isize; N], axes, [len as usize]));

    let transpose = move |x: &Operand| x.transpose_view(perm);
    let mut cases =
        Vec::from(both("transpose", &x, column_major.clone(), transpose, move |x| x.transpose(&perm))?);
    let slice = move |x: &Operand| x.slice_view(starts, limits, signed);
    cases.extend(both("slice", &x, upper, slice, move |x| x.slice(&starts, &limits, &steps))?);
    cases.extend(both("reverse", &x, flipped, |x| x.reverse_view([0]), |x| x.reverse(&[0]))?);
    let broadcast = move |x: &Operand| x.broadcast_view(wide, axes);
    cases.extend(both("broadcast", &thin, three, broadcast, move |x| x.broadcast_in_dim(&wide, &axes))?);
    let reshape = move |x: &Operand| x.reshape_view(flat);
    cases.extend(both("reshape", &x, column_major, reshape, move |x| x.reshape(&flat))?);
    cases.extend(both("diagonal", &x, diagonal, |x| x.diagonal_view(0, 1), |x| x.extract_diag(0, 1))?);
    Ok(cases)
}
