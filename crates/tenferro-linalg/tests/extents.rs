//! Stacks without elements may have extents of any size: their results are empty, or an error says that there
//! is no memory for them.

use tenferro_core_ops::{Op, Out};
use tenferro_cpu::CpuBackend;
use tenferro_linalg::{
    Cholesky, Det, DetDerivative, Householder, HouseholderApply, HouseholderProduct, Inverse, LuFactor,
    LuFullPivot, LuSolve, MatrixExp, PivotedQr, Qr, QrOptions, Rank, SingularValueGaps, SpectralCore,
    SpectralFunction, Svd, TriangularSolve,
};
use tenferro_runtime::execute;
use tenferro_tensor::{C64, DType, Result, Tensor};

const LONG: usize = 1 << 40;
const WIDE: usize = 1 << 31;

/// The shapes of the results for operands of these dtypes and shapes, of ones.
fn shapes(op: &dyn Op, x: &[(DType, &[usize])]) -> Result<Vec<Vec<usize>>> {
    let x = x
        .iter()
        .map(|(d, shape)| Tensor::full(*d, *shape, C64::new(1.0, 0.0)))
        .collect::<Result<Vec<_>>>()?;
    let x: Vec<_> = x.iter().map(Into::into).collect();
    let y = execute(op, &x, Out::New, &mut CpuBackend::new())?;
    Ok(y.iter().map(|y| y.shape().to_vec()).collect())
}

/// As `shapes`, of f64.
fn of(op: &dyn Op, x: &[&[usize]]) -> Result<Vec<Vec<usize>>> {
    shapes(op, &x.iter().map(|&s| (DType::F64, s)).collect::<Vec<_>>())
}

#[test]
fn long_stacks_of_empty_matrices_have_empty_results() -> Result<()> {
    let (svd, lu) = (Svd { full: false }, LuFactor { hint: false });
    assert_eq!(of(&svd, &[&[0, 2, LONG]])?, [vec![0, 0, LONG], vec![0, LONG], vec![0, 2, LONG]]);
    assert_eq!(of(&lu, &[&[0, 0, LONG]])?, [vec![0, 0, LONG], vec![0, LONG]]);
    for op in [&Cholesky as &dyn Op, &Inverse, &DetDerivative] {
        assert_eq!(of(op, &[&[0, 0, LONG]])?, [[0, 0, LONG]]);
    }
    assert_eq!(of(&LuFullPivot, &[&[0, 0, LONG]])?, [vec![0, 0, LONG], vec![0, LONG], vec![0, LONG]]);
    let options = QrOptions::default();
    assert_eq!(of(&Qr { options }, &[&[0, 2, LONG]])?, [[0, 0, LONG], [0, 2, LONG]]);
    let pivoted = of(&PivotedQr { options }, &[&[0, 0, LONG]])?;
    assert_eq!(pivoted, [vec![0, 0, LONG], vec![0, 0, LONG], vec![0, LONG]]);
    assert_eq!(of(&Householder, &[&[2, 0, LONG]])?, [vec![2, 0, LONG], vec![0, LONG]]);
    assert_eq!(of(&HouseholderProduct, &[&[2, 0, LONG], &[0, LONG]])?, [[2, 0, LONG]]);
    let apply = HouseholderApply { adjoint: true };
    assert_eq!(of(&apply, &[&[0, 2, LONG], &[0, LONG], &[0, 2, LONG]])?, [[0, 2, LONG]]);
    let lower = TriangularSolve { lower: true, unit_diagonal: true, adjoint: false };
    assert_eq!(of(&lower, &[&[0, 0, LONG], &[0, 2, LONG]])?, [[0, 2, LONG]]);
    let (a, p) = ((DType::F64, &[0, 0, LONG][..]), (DType::I64, &[0, LONG][..]));
    assert_eq!(shapes(&LuSolve { adjoint: true }, &[a, a, p, a])?, [[0, 0, LONG]]);
    let gaps = of(&SingularValueGaps, &[&[0, LONG], &[0, 0, LONG], &[0, 0, LONG]])?;
    assert_eq!(gaps, [vec![0, 0, LONG], vec![0, 0, LONG], vec![0, LONG]]);
    let core = SpectralCore { f: SpectralFunction::power(2.0) };
    assert_eq!(of(&core, &[&[0, LONG]])?, [[0, LONG]]);
    assert_eq!(of(&core, &[&[0, LONG], &[0, 2, LONG]])?, [[0, 2, LONG]]);
    assert_eq!(of(&MatrixExp, &[&[0, 0, LONG], &[0, 0, LONG]])?, [[0, 0, LONG]]);
    Ok(())
}

#[test]
fn large_matrices_of_an_empty_stack_have_empty_results() -> Result<()> {
    // Their number of elements is that of the stack, 0.
    let Ok(_) = Tensor::zeros(DType::F64, [WIDE, WIDE, 0]) else { return Ok(()) };
    let stack = [WIDE, WIDE, 0];
    assert_eq!(of(&Svd { full: true }, &[&stack])?, [stack.to_vec(), vec![WIDE, 0], stack.to_vec()]);
    assert_eq!(of(&LuFactor { hint: false }, &[&stack])?, [stack.to_vec(), vec![WIDE, 0]]);
    for op in [&Cholesky as &dyn Op, &Inverse, &DetDerivative] {
        assert_eq!(of(op, &[&stack])?, [stack]);
    }
    assert_eq!(of(&Det, &[&stack])?, [[0]]);
    let upper = TriangularSolve { lower: false, unit_diagonal: false, adjoint: false };
    assert_eq!(of(&upper, &[&stack, &stack])?, [stack]);
    assert_eq!(of(&MatrixExp, &[&stack])?, [stack]);
    let core = SpectralCore { f: SpectralFunction::power(2.0) };
    assert_eq!(of(&core, &[&[WIDE, 0], &stack])?, [stack]);
    let gaps = of(&SingularValueGaps, &[&[WIDE, 0], &stack, &stack])?;
    assert_eq!(gaps, [stack.to_vec(), stack.to_vec(), vec![WIDE, 0]]);
    let float = (DType::F64, &[][..]);
    let limits = [(DType::F64, &[LONG, 0][..]), (DType::I64, &[]), float, float, float];
    assert_eq!(shapes(&Rank, &limits)?, [[0], [0]]);
    Ok(())
}

#[test]
fn reflectors_that_repeat_act_on_no_columns() -> Result<()> {
    const ROWS: usize = 1 << 58;
    let one = Tensor::full(DType::F64, [1, 1], C64::new(1.0, 0.0))?;
    let tau = Tensor::full(DType::F64, [1], C64::new(1.0, 0.0))?;
    let packed = one.as_view().broadcast_view([ROWS, 1], [0, 1])?;
    let none = Tensor::full(DType::F64, [ROWS, 0], C64::new(1.0, 0.0))?;
    let op = HouseholderApply { adjoint: false };
    let x = [packed.into(), (&tau).into(), (&none).into()];
    let y = execute(&op, &x, Out::New, &mut CpuBackend::new())?;
    assert_eq!(y[0].shape(), [ROWS, 0]);
    Ok(())
}

#[test]
fn results_that_no_memory_holds_are_errors() {
    assert!(of(&Svd { full: true }, &[&[WIDE, 0]]).is_err());
}
