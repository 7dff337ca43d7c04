//! Typed tensors whose rank is in their type are operands of every operation.

use tenferro_cpu::CpuBackend;
use tenferro_runtime::prelude::*;
use tenferro_tensor::{Ranked, Result};

#[test]
fn a_rank_in_the_type_is_no_obstacle() -> Result<()> {
    let cpu = &mut CpuBackend::with_threads(1);
    let a = TypedTensor::<f64, Ranked<2>>::from_vec_col_major([2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
    let b = TypedTensor::<f64, Ranked<1>>::from_vec_col_major([2], vec![10.0, 20.0])?;
    assert_eq!(a.matmul(&a, cpu)?.as_slice()?, [7.0, 10.0, 15.0, 22.0]);
    assert_eq!(a.add(&b, cpu)?.as_slice()?, [11.0, 12.0, 23.0, 24.0]);
    assert_eq!(a.add(&a.duplicate()?.into_dyn(), cpu)?.as_slice()?, [2.0, 4.0, 6.0, 8.0]);
    let sums: TypedTensor<f64, Ranked<1>> = a.reduce_sum(Some(&[0]), cpu)?.into_rank()?;
    assert_eq!(sums.as_slice()?, [3.0, 7.0]);
    assert!(sums.into_dyn().into_rank::<2>().is_err());
    Ok(())
}
