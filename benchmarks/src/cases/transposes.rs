//! Transposed copies, in units of a plain copy of as many bytes.

use super::{Case, Goal, row_major};
use crate::{Result, subject::subject};
use std::hint::black_box;
use tenferro_cpu::CpuBackend;
use tenferro_runtime::prelude::*;

pub(super) fn groups() -> Result<Vec<Vec<Case>>> {
    let square = of("2048x2048", "transpose_copy_2048", &[2048, 2048], &[1, 0])?;
    Ok(vec![square, of("16^6, axes rotated", "rotate_copy_16", &[16; 6], &[5, 0, 1, 2, 3, 4])?])
}

/// A plain copy into memory that was written before, and the copy with axes in the order `perm`.
fn of(name: &str, peer: &str, shape: &[usize], perm: &'static [usize]) -> Result<Vec<Case>> {
    let x = TypedTensor::normal(shape.to_vec(), 4)?;
    let source = x.as_slice()?.to_vec();
    let mut target = vec![1.0; source.len()];
    let copy = subject(
        move || {
            target.copy_from_slice(black_box(&source));
            Ok(black_box(target[0]))
        },
        |first| Ok(vec![first]),
    );
    let first = x.as_slice()?[0];
    let expected = x.as_view().transpose_view(perm)?.to_tensor()?.to_vec_row_major()?;
    let (operand, mut cpu) = (x.duplicate()?, CpuBackend::with_threads(1));
    let call = subject(move || black_box(&operand).transpose(perm, &mut cpu), row_major);
    Ok(vec![
        Case::new(format!("unit: copy, {name}"), Goal::Unit, copy).expecting([first]),
        Case::new(format!("transposed copy, {name}"), Goal::Units(2.0), call)
            .expecting(expected)
            .beside(peer, &[&x])?,
    ])
}
