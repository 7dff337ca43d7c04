//! What a trace cannot decide about its symbolic extents, its runs do: wherever present operands are refused,
//! so are those of a program.

mod common;

use common::{input_like, on_cpu, random, symbolic_like};
use tenferro_core_ops::{Var, vjp_traced};
use tenferro_cpu::CpuBackend;
use tenferro_linalg::{MatrixNorm, System, Tolerance, Triangular, ops::*};
use tenferro_runtime::Program;
use tenferro_tensor::{DType, Result, Tensor};

type Call = fn(&[Var]) -> Var;

fn matrix(m: usize, n: usize) -> Tensor {
    random(DType::F64, &[m, n], 3)
}

fn vector(n: usize) -> Tensor {
    random(DType::F64, &[n], 4)
}

fn order(n: usize) -> Tensor {
    Tensor::from_vec_col_major([n], (0..n as i64).collect()).unwrap()
}

/// Each call with operands that do not fit.
fn misfits() -> Vec<(&'static str, Call, Vec<Tensor>)> {
    let (square, wide, three) = (|| matrix(2, 2), || matrix(2, 3), || matrix(3, 1));
    vec![
        ("lu_solve", |x| lu_solve(&x[0], &x[1], &x[2], System::left()), vec![square(), order(2), three()]),
        (
            "lu_solve",
            |x| lu_solve(&x[0], &x[1], &x[2], System::left().adjoint()),
            vec![square(), order(2), three()],
        ),
        ("lu_solve", |x| lu_solve(&x[0], &x[1], &x[2], System::right()), vec![square(), order(3), wide()]),
        (
            "lu_full_pivot_solve",
            |x| lu_full_pivot_solve(&x[0], &x[0], &x[1], &x[1], &x[2], System::left()),
            vec![square(), order(2), three()],
        ),
        (
            "lu_full_pivot_solve",
            |x| lu_full_pivot_solve(&x[0], &x[1], &x[2], &x[2], &x[3], System::left()),
            vec![square(), matrix(3, 3), order(2), matrix(2, 1)],
        ),
        (
            "householder_append",
            |x| householder_append(&x[0], &x[1], &x[2]).0,
            vec![square(), vector(1), square()],
        ),
        (
            "householder_append",
            |x| householder_append(&x[0], &x[1], &x[2]).1,
            vec![square(), vector(1), square()],
        ),
        (
            "householder_append",
            |x| householder_append(&x[0], &x[1], &x[2]).0,
            vec![square(), vector(3), square()],
        ),
        (
            "householder_apply",
            |x| householder_apply(&x[0], &x[1], &x[2], System::left()),
            vec![square(), vector(2), three()],
        ),
        ("householder_product", |x| householder_product(&x[0], &x[1]), vec![square(), vector(3)]),
        ("matrix_power", |x| matrix_power(&x[0], 0), vec![wide()]),
        ("matrix_power", |x| matrix_power(&x[0], 1), vec![wide()]),
        ("matrix_power", |x| matrix_power(&x[0], 2), vec![wide()]),
        ("matrix_power", |x| matrix_power(&x[0], -1), vec![wide()]),
        ("cond", |x| cond(&x[0], MatrixNorm::Nuclear), vec![wide()]),
        ("cond", |x| cond(&x[0], MatrixNorm::One), vec![matrix(3, 2)]),
        ("eigh", |x| eigh(&x[0]).0, vec![wide()]),
        ("eigh_generalized", |x| eigh_generalized(&x[0], &x[1]).0, vec![square(), wide()]),
        ("eigh_generalized", |x| eigh_generalized(&x[0], &x[1]).0, vec![square(), matrix(3, 3)]),
        ("eigvals", |x| eigvals(&x[0]), vec![wide()]),
        ("solve", |x| solve(&x[0], &x[1]), vec![square(), three()]),
        ("solve", |x| solve(&x[0], &x[1]), vec![square(), vector(3)]),
        ("cholesky_solve", |x| cholesky_solve(&x[0], &x[1], System::left()), vec![square(), three()]),
        (
            "triangular_solve",
            |x| triangular_solve(&x[0], &x[1], Triangular::upper()),
            vec![square(), three()],
        ),
        ("lstsq", |x| lstsq(&x[0], &x[1], Tolerance::default()).0, vec![square(), three()]),
        ("inv", |x| inv(&x[0]), vec![wide()]),
        ("det", |x| det(&x[0]), vec![wide()]),
        ("slogdet", |x| slogdet(&x[0]).0, vec![wide()]),
        ("cholesky", |x| cholesky(&x[0]), vec![wide()]),
        ("matrix_exp", |x| matrix_exp(&x[0]), vec![wide()]),
        (
            "kron",
            |x| kron(&x[0], &x[1]),
            vec![random(DType::F64, &[1, 1, 2], 1), random(DType::F64, &[1, 1, 3], 1)],
        ),
        (
            "solve",
            |x| solve(&x[0], &x[1]),
            vec![random(DType::F64, &[1, 1, 2], 1), random(DType::F64, &[1, 1, 3], 1)],
        ),
    ]
}

/// As [`program`], with the extents of one operand known while tracing.
fn mixed(f: Call, x: &[Tensor], known: usize) -> Result<()> {
    let of = |(k, x): (usize, &Tensor)| {
        if k == known { input_like(x) } else { symbolic_like(x, &format!("x{k}")) }
    };
    let inputs: Vec<Var> = x.iter().enumerate().map(of).collect();
    let y = f(&inputs);
    Program::new(&inputs, &[y])?.run(&mut CpuBackend::new(), &x.iter().collect::<Vec<_>>()).map(drop)
}

/// The program of `f` for any extents, run on `x`.
fn program(f: Call, x: &[Tensor]) -> Result<()> {
    let inputs: Vec<Var> = x.iter().enumerate().map(|(k, x)| symbolic_like(x, &format!("x{k}"))).collect();
    let y = f(&inputs);
    Program::new(&inputs, &[y])?.run(&mut CpuBackend::new(), &x.iter().collect::<Vec<_>>()).map(drop)
}

#[test]
fn programs_refuse_what_present_operands_are_refused_for() {
    for (k, (name, f, x)) in misfits().into_iter().enumerate() {
        let shapes: Vec<&[usize]> = x.iter().map(Tensor::shape).collect();
        let present = on_cpu(|| f(&x.iter().map(common::now).collect::<Vec<_>>()));
        assert!(present.ok().is_err(), "{k}: {name} of present {shapes:?}");
        assert!(program(f, &x).is_err(), "{k}: {name} of {shapes:?} in a program");
        // An extent that is known beside one that is not.
        for known in 0..x.len() {
            assert!(mixed(f, &x, known).is_err(), "{k}: {name} of {shapes:?}, operand {known} known");
        }
    }
}

#[test]
fn programs_take_operands_that_fit() -> Result<()> {
    program(|x| matrix_power(&x[0], 0), &[matrix(2, 2)])?;
    program(|x| matrix_power(&x[0], 1), &[matrix(2, 2)])?;
    program(|x| cond(&x[0], MatrixNorm::Nuclear), &[matrix(2, 2)])?;
    program(|x| householder_append(&x[0], &x[1], &x[2]).0, &[matrix(3, 2), vector(2), matrix(3, 1)])
}

#[test]
fn gradients_are_refused_as_well() {
    let f: Call = |x| {
        let y = matrix_power(&x[0], 1);
        let g = vjp_traced(&[(y.clone(), y.like(1.0))], &[&x[0]]).expect("differentiable").remove(0);
        g.expect("depends on x")
    };
    assert!(program(f, &[matrix(2, 3)]).is_err());
    assert!(program(f, &[matrix(2, 2)]).is_ok());
}
