//! Operands that repeat one element, and so have any extent without memory: what is too large is an error
//! before anything is done, and nothing to do is nothing, whatever the extents are.

mod common;

use common::on_cpu;
use tenferro_core_ops::{Dim, Now, Var};
use tenferro_linalg::{MatrixNorm, System, Tolerance, Triangular, ops::*};
use tenferro_tensor::{C64, DType, Error, Tensor, Value};

/// One more than the integers of permutations. No layout has the square of it as its number of elements.
const LONG: usize = 1 << 31;
/// The square of it is nearly as many as a layout may have.
const ORDER: usize = 1 << 29;
/// The square of it is more elements than any machine has.
const LARGE: usize = 1 << 24;

fn repeated(dtype: DType, shape: &[usize]) -> Var {
    let one = Tensor::full(dtype, [1], C64::new(1.0, 0.0)).unwrap();
    let shape: Vec<Dim> = shape.iter().map(|&n| Dim::Lit(n)).collect();
    Var::Now(Now::new(Value::new(one))).reshape::<usize>(&[]).broadcast_in_dim(&shape, &[])
}

fn of(shape: &[usize]) -> Var {
    repeated(DType::F64, shape)
}

#[test]
fn extents_beyond_those_of_permutations_are_errors() {
    on_cpu(|| {
        let (tall, wide) = (of(&[LONG, 1]), of(&[1, LONG]));
        let cases = [
            ("lu", "rows", lu(&tall).0),
            ("lu_factor", "rows", lu_factor(&tall).0),
            ("lu_full_pivot", "rows", lu_full_pivot(&tall).0),
            ("lu_full_pivot", "columns", lu_full_pivot(&wide).0),
            ("qr_pivoted", "columns", qr_pivoted(&wide).0),
            ("qr_pivoted_with", "columns", qr_pivoted_with(&wide, Default::default()).0),
        ];
        for (op, what, y) in cases {
            match y.ok() {
                Err(Error::Overflow(e)) => {
                    assert_eq!((e.op, &e.what[..], &e.got[..]), (op, what, "2147483648"), "{e}");
                }
                y => panic!("{op}: {y:?}"),
            }
        }
    });
}

#[test]
fn workspaces_that_no_memory_holds_are_errors() {
    on_cpu(|| {
        for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
            let a = repeated(dtype, &[LARGE, LARGE]);
            let tolerance = Tolerance::default();
            let cases = [
                ("det", det(&a)),
                ("slogdet", slogdet(&a).0),
                ("inv", inv(&a)),
                ("lu", lu(&a).1),
                ("lu_factor", lu_factor(&a).0),
                ("lu_full_pivot", lu_full_pivot(&a).0),
                ("qr", qr(&a).0),
                ("qr_pivoted", qr_pivoted(&a).0),
                ("householder", householder(&a).0),
                ("svd", svd(&a).0),
                ("svdvals", svdvals(&a)),
                ("eigh", eigh(&a).0),
                ("eigvalsh", eigvalsh(&a)),
                ("eigvals", eigvals(&a)),
                ("cholesky", cholesky(&a)),
                ("matrix_exp", matrix_exp(&a)),
                ("matrix_rank", matrix_rank(&a, tolerance)),
                ("pinv", pinv(&a, tolerance)),
                ("polar", polar(&a).0),
                ("cond", cond(&a, MatrixNorm::Two)),
                ("matrix_norm", matrix_norm(&a, MatrixNorm::Nuclear)),
                ("solve", solve(&a, &repeated(dtype, &[LARGE]))),
                ("lstsq", lstsq(&a, &repeated(dtype, &[LARGE]), tolerance).0),
                ("eigh_generalized", eigh_generalized(&a, &a).0),
            ];
            for (op, y) in cases {
                match y.ok() {
                    Err(Error::Memory(e)) => assert_eq!(e.op, op, "{e}"),
                    y => panic!("{op} of {dtype}: {y:?}"),
                }
            }
        }
    });
}

#[test]
fn positions_that_repeat_are_no_permutation() {
    on_cpu(|| {
        let (a, p) = (of(&[LARGE, LARGE]), repeated(DType::I64, &[LARGE]));
        let b = of(&[LARGE]);
        for y in
            [lu_solve(&a, &p, &b, System::left()), lu_full_pivot_solve(&a, &a, &p, &p, &b, System::left())]
        {
            let e = y.ok().unwrap_err();
            assert!(e.to_string().contains("1 at position 1 of vector 0"), "{e}");
        }
    });
}

/// Triangles, of which the factors are, take no time by their columns, either.
#[test]
fn matrices_without_rows_are_no_work() {
    on_cpu(|| {
        let wide = 1usize << 50;
        let a = of(&[0, wide]);
        let (_, l, u) = lu(&a);
        let (upper, repeated) = (a.triu(0), (&a + &a).tril(1));
        for (y, shape) in [(l, [0, 0]), (u, [0, wide]), (upper, [0, wide]), (repeated, [0, wide])] {
            assert_eq!(y.value().unwrap().duplicate().unwrap().shape(), shape);
        }
    });
}

#[test]
fn no_right_hand_sides_are_no_work() {
    on_cpu(|| {
        let (a, b, row) = (of(&[ORDER, ORDER]), of(&[ORDER, 0]), of(&[0, ORDER]));
        let (p, tau) = (repeated(DType::I64, &[ORDER]), of(&[ORDER]));
        for system in
            [System::left(), System::left().adjoint(), System::right(), System::right().transposed()]
        {
            let right = [System::right(), System::right().transposed()].contains(&system);
            let b = if right { &row } else { &b };
            let form = if right { Triangular::lower().right() } else { Triangular::upper() };
            let all = [
                ("triangular_solve", triangular_solve(&a, b, form)),
                ("cholesky_solve", cholesky_solve(&a, b, system)),
                ("lu_solve", lu_solve(&a, &p, b, system)),
                ("lu_full_pivot_solve", lu_full_pivot_solve(&a, &a, &p, &p, b, system)),
                ("householder_apply", householder_apply(&a, &tau, b, system)),
            ];
            for (op, y) in all {
                let y = y.value().unwrap_or_else(|e| panic!("{op}: {e}")).duplicate().unwrap();
                assert_eq!(y.shape(), if right { [0, ORDER] } else { [ORDER, 0] }, "{op}");
            }
        }
        assert_eq!(householder_product(&of(&[ORDER, 0]), &of(&[0])).shape().len(), 2);
    });
}
