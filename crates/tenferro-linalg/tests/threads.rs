//! Any number of threads: one matrix that all share, many of which each takes some, and a few, fewer than
//! threads. Two runs give the same bits; all give factors of backward stable algorithms, in the ratios of
//! LAPACK's test programs, and the error of the first matrix that fails.

mod common;

use common::{from_fn, now, numbers, random, tensor};
use tenferro_core_ops::{Var, with_backend};
use tenferro_cpu::CpuBackend;
use tenferro_linalg::ops::*;
use tenferro_tensor::{C64, DType, Tensor};

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C32, DType::C64];
const THREADS: [usize; 3] = [1, 2, 3];
/// Order and number of matrices. Those of order 16 are enough work for all operations to share.
const STACKS: [(usize, usize); 5] = [(150, 1), (300, 1), (3, 500), (16, 500), (100, 2)];
const PROBES: usize = 4;

/// A matrix in double precision.
struct Matrix {
    rows: usize,
    data: Vec<C64>,
}

impl Matrix {
    fn columns(&self) -> usize {
        self.data.len() / self.rows
    }

    fn norm(&self) -> f64 {
        self.data.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt()
    }

    fn adjoint(&self) -> Matrix {
        let (m, n) = (self.rows, self.columns());
        Matrix { rows: n, data: (0..m * n).map(|q| self.data[q / n + q % n * m].conj()).collect() }
    }

    fn identity(n: usize) -> Matrix {
        Matrix::diagonal(&vec![C64::new(1.0, 0.0); n])
    }

    fn diagonal(d: &[C64]) -> Matrix {
        let n = d.len();
        let element = |q: usize| if q % n == q / n { d[q % n] } else { C64::new(0.0, 0.0) };
        Matrix { rows: n, data: (0..n * n).map(element).collect() }
    }

    fn times(&self, x: &Matrix) -> Matrix {
        let m = self.rows;
        let mut y = vec![C64::new(0.0, 0.0); m * x.columns()];
        for (y, x) in y.chunks_exact_mut(m).zip(x.data.chunks_exact(x.rows)) {
            for (a, x) in self.data.chunks_exact(m).zip(x) {
                y.iter_mut().zip(a).for_each(|(y, a)| *y += a * x);
            }
        }
        Matrix { rows: m, data: y }
    }
}

/// Checks that two products of matrices agree to `30 n eps size` in the Frobenius norm, which a few random
/// vectors estimate.
fn agree(what: &str, left: &[&Matrix], right: &[&Matrix], size: f64, eps: f64) {
    let n = left[left.len() - 1].columns();
    let x = Matrix { rows: n, data: numbers(&random(DType::F64, &[n, PROBES], 8)) };
    let apply = |product: &[&Matrix]| {
        let x = Matrix { rows: n, data: x.data.clone() };
        product.iter().rev().fold(x, |x, a| a.times(&x))
    };
    let (left, right) = (apply(left), apply(right));
    let off = left.data.iter().zip(&right.data).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>().sqrt();
    let ratio = off / x.norm() * (n as f64).sqrt() / (n as f64 * eps * size);
    assert!(ratio <= 30.0, "{what}: {ratio:.1}");
}

fn unitary(what: &str, q: &Matrix, eps: f64) {
    agree(what, &[&q.adjoint(), q], &[&Matrix::identity(q.columns())], 1.0, eps);
}

/// An operation, and what its operands and results for one matrix fulfil.
struct Case {
    name: &'static str,
    run: fn(&[Var]) -> Vec<Var>,
    /// Which of the operands it takes.
    takes: &'static [Operand],
    check: fn(&str, &[Matrix], &[Matrix], f64),
}

#[derive(Clone, Copy, Debug)]
enum Operand {
    General,
    Other,
    Hermitian,
    Definite,
}
use Operand::{Definite, General, Hermitian, Other};

fn operand(which: Operand, dtype: DType, n: usize, count: usize) -> Tensor {
    let x = numbers(&random(dtype, &[n, n, count], if matches!(which, Other) { 6 } else { 5 }));
    from_fn(dtype, &[n, n, count], |i| {
        let at = |r: usize, c: usize| x[r + n * (c + n * i[2])];
        let hermitian = (at(i[0], i[1]) + at(i[1], i[0]).conj()) * 0.5;
        match which {
            General | Other => at(i[0], i[1]),
            Hermitian => hermitian,
            Definite => hermitian + if i[0] == i[1] { 2.0 * n as f64 } else { 0.0 },
        }
    })
}

const CASES: [Case; 9] = [
    Case {
        name: "svd",
        run: |x| {
            let (u, s, vh) = svd(&x[0]);
            vec![u, s, vh]
        },
        takes: &[General],
        check: |what, x, y, eps| {
            let s = Matrix::diagonal(&y[1].data);
            agree(what, &[&x[0]], &[&y[0], &s, &y[2]], x[0].norm(), eps);
            unitary(what, &y[0], eps);
            unitary(what, &y[2].adjoint(), eps);
        },
    },
    Case {
        name: "eigh",
        run: |x| {
            let (w, v) = eigh(&x[0]);
            vec![w, v]
        },
        takes: &[Hermitian],
        check: |what, x, y, eps| {
            agree(what, &[&x[0], &y[1]], &[&y[1], &Matrix::diagonal(&y[0].data)], x[0].norm(), eps);
            unitary(what, &y[1], eps);
        },
    },
    Case {
        name: "eig",
        run: |x| {
            let (w, v) = eig(&x[0]);
            vec![w, v]
        },
        takes: &[General],
        check: |what, x, y, eps| {
            agree(what, &[&x[0], &y[1]], &[&y[1], &Matrix::diagonal(&y[0].data)], x[0].norm(), eps);
            for v in y[1].data.chunks_exact(y[1].rows) {
                let length = v.iter().map(|v| v.norm_sqr()).sum::<f64>().sqrt();
                assert!((length - 1.0).abs() <= 30.0 * v.len() as f64 * eps, "{what}: length {length}");
            }
        },
    },
    Case {
        name: "qr",
        run: |x| {
            let (q, r) = qr(&x[0]);
            vec![q, r]
        },
        takes: &[General],
        check: |what, x, y, eps| {
            agree(what, &[&x[0]], &[&y[0], &y[1]], x[0].norm(), eps);
            unitary(what, &y[0], eps);
        },
    },
    Case {
        name: "lu",
        run: |x| {
            let (p, l, u) = lu(&x[0]);
            vec![permuted(&x[0], &p), l, u]
        },
        takes: &[General],
        check: |what, x, y, eps| agree(what, &[&y[0]], &[&y[1], &y[2]], x[0].norm(), eps),
    },
    Case {
        name: "cholesky",
        run: |x| vec![cholesky(&x[0])],
        takes: &[Definite],
        check: |what, x, y, eps| agree(what, &[&x[0]], &[&y[0], &y[0].adjoint()], x[0].norm(), eps),
    },
    Case {
        name: "solve",
        run: |x| vec![solve(&x[0], &x[1])],
        takes: &[General, Other],
        check: |what, x, y, eps| {
            agree(what, &[&x[0], &y[0]], &[&x[1]], x[0].norm() * y[0].norm(), eps);
        },
    },
    Case {
        name: "inv",
        run: |x| vec![inv(&x[0])],
        takes: &[General],
        check: |what, x, y, eps| {
            let one = Matrix::identity(x[0].rows);
            agree(what, &[&x[0], &y[0]], &[&one], x[0].norm() * y[0].norm(), eps);
        },
    },
    Case {
        name: "matmul",
        run: |x| vec![x[0].matmul(&x[1])],
        takes: &[General, Other],
        check: |what, x, y, eps| {
            agree(what, &[&y[0]], &[&x[0], &x[1]], x[0].norm() * x[1].norm(), eps);
        },
    },
];

/// The rows of each matrix in the order of each permutation.
fn permuted(a: &Var, p: &Var) -> Var {
    a.gather(&p.broadcast_in_dim(&a.shape(), &[0, 2]), 0)
}

/// Matrix `b` of a stack, or vector `b` as a column.
fn part(t: &Tensor, values: &[C64], count: usize, b: usize) -> Matrix {
    let len = values.len() / count;
    Matrix { rows: t.shape()[0], data: values[b * len..][..len].to_vec() }
}

fn bits(t: &Tensor) -> Vec<[u64; 2]> {
    numbers(t).iter().map(|z| [z.re.to_bits(), z.im.to_bits()]).collect()
}

fn check(case: &Case, dtype: DType) {
    let eps = if dtype.real() == DType::F32 { f32::EPSILON as f64 } else { f64::EPSILON };
    for (n, count) in STACKS {
        let x: Vec<Tensor> = case.takes.iter().map(|&which| operand(which, dtype, n, count)).collect();
        let wide = |t: &[Tensor]| t.iter().map(numbers).collect::<Vec<_>>();
        let given = wide(&x);
        for threads in THREADS {
            let what = format!("{} {dtype} {n} x {n} x {count}, {threads} threads", case.name);
            let cpu = CpuBackend::with_threads(threads);
            let run = || {
                let operands: Vec<Var> = x.iter().map(now).collect();
                with_backend(&cpu, || (case.run)(&operands).iter().map(tensor).collect::<Vec<Tensor>>())
            };
            let (y, again) = (run(), run());
            assert!(y.iter().map(bits).eq(again.iter().map(bits)), "{what}: other bits in a second run");
            let found = wide(&y);
            let of = |t: &[Tensor], values: &[Vec<C64>], b| {
                t.iter().zip(values).map(|(t, v)| part(t, v, count, b)).collect::<Vec<Matrix>>()
            };
            for b in 0..count {
                (case.check)(&format!("{what}, matrix {b}"), &of(&x, &given, b), &of(&y, &found, b), eps);
            }
        }
    }
}

#[test]
fn results_are_reproducible_and_backward_stable() {
    for case in &CASES {
        DTYPES.iter().for_each(|&dtype| check(case, dtype));
    }
}

#[test]
fn the_error_is_that_of_the_first_matrix() {
    let bad = |a: &Tensor, at: &[usize], with: f64| {
        let x = numbers(a);
        let [n, _, _] = a.shape() else { panic!("a stack") };
        from_fn(a.dtype(), a.shape(), |i| {
            if at.contains(&i[2]) { C64::new(with, 0.0) } else { x[i[0] + n * (i[1] + n * i[2])] }
        })
    };
    for dtype in [DType::F64, DType::C32] {
        for threads in THREADS {
            let cpu = CpuBackend::with_threads(threads);
            let error = |run: fn(&[Var]) -> Vec<Var>, x: &[Tensor]| {
                let x: Vec<Var> = x.iter().map(now).collect();
                let failed = with_backend(&cpu, || run(&x).iter().find_map(|y| y.ok().err()));
                failed.map(|e| e.to_string())
            };
            for case in &CASES {
                let x: Vec<Tensor> = case.takes.iter().map(|&o| operand(o, dtype, 16, 500)).collect();
                for (with, fails) in [
                    (f64::NAN, case.name != "matmul"),
                    (0.0, ["solve", "inv", "cholesky"].contains(&case.name)),
                ] {
                    for (at, first) in [(&[7, 300][..], 7), (&[499], 499)] {
                        let mut x: Vec<Tensor> = x.iter().map(|t| t.duplicate().unwrap()).collect();
                        x[0] = bad(&x[0], at, with);
                        let what = format!("{} {dtype} of {with}, {threads} threads", case.name);
                        match error(case.run, &x) {
                            Some(e) => {
                                assert!(e.contains(&format!("of matrix [{first}]")), "{what}: {e}");
                                assert!(fails, "{what}: {e}");
                            }
                            None => assert!(!fails, "{what}: no error"),
                        }
                    }
                }
            }
        }
    }
}
