//! Any number of threads: one matrix that all share, many of which each takes some, and a few, fewer than
//! threads. Two runs give the same bits; all give factors of backward stable algorithms, in the ratios of
//! LAPACK's test programs, values that another number of threads gives up to rounding, and the error of the
//! first matrix that fails.

mod common;

use common::{from_fn, now, numbers, random, tensor};
use tenferro_core_ops::{Var, with_backend};
use tenferro_cpu::CpuBackend;
use tenferro_linalg::{System, Tolerance, Triangular, ops::*};
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
    /// The same, but where values are compared its rows are moved, so that elimination exchanges them.
    Rows,
    /// The columns are moved.
    Columns,
    Other,
    Hermitian,
    Definite,
    /// [`apart`], wherever it is used.
    Apart,
}
use Operand::{Apart, Columns, Definite, General, Hermitian, Other, Rows};

fn elements(which: Operand, dtype: DType, n: usize, count: usize) -> Vec<C64> {
    numbers(&random(dtype, &[n, n, count], if matches!(which, Other) { 6 } else { 5 }))
}

fn operand(which: Operand, dtype: DType, n: usize, count: usize) -> Tensor {
    let x = elements(which, dtype, n, count);
    from_fn(dtype, &[n, n, count], |i| {
        let at = |r: usize, c: usize| x[r + n * (c + n * i[2])];
        let hermitian = (at(i[0], i[1]) + at(i[1], i[0]).conj()) * 0.5;
        match which {
            General | Rows | Columns | Other => at(i[0], i[1]),
            Hermitian => hermitian,
            Definite => hermitian + if i[0] == i[1] { 2.0 * n as f64 } else { 0.0 },
            Apart => near(n, i[0], i[1], at(i[0], i[1])),
        }
    })
}

/// The greatest condition of an [`apart`] matrix of order n, and of its vectors: the norm over the smallest
/// value, and over the smallest gap.
fn condition(n: usize) -> f64 {
    2.5 * n as f64
}

/// Element (r, c) of `e / n (diag(n, n - 1, .., 1) + E)` for an element of E between -1 and 1, or complex.
///
/// The norm of E is below 0.3 for the elements here, so singular and eigenvalues are 0.4 e / n apart at
/// least, no choice of a pivot or a phase is between nearly equal elements, and no power of a determinant or
/// of an exponential leaves the range of f32.
fn near(n: usize, r: usize, c: usize, x: C64) -> C64 {
    let diagonal = if r == c { (n - r) as f64 } else { 0.0 };
    (x / (8.0 * (n as f64).sqrt()) + diagonal) * std::f64::consts::E / n as f64
}

/// Matrices whose values and vectors any order of rounding gives, up to `n eps condition(n)`.
fn apart(which: Operand, dtype: DType, n: usize, count: usize) -> Tensor {
    let x = elements(which, dtype, n, count);
    from_fn(dtype, &[n, n, count], |i| {
        let at = |r: usize, c: usize| near(n, r, c, x[r + n * (c + n * i[2])]);
        let moved = |r: usize| (r + n / 2) % n;
        match which {
            General | Apart => at(i[0], i[1]),
            Rows => at(moved(i[0]), i[1]),
            Columns => at(i[0], moved(i[1])),
            Other => x[i[0] + n * (i[1] + n * i[2])],
            Hermitian | Definite => (at(i[0], i[1]) + at(i[1], i[0]).conj()) * 0.5,
        }
    })
}

const CASES: [Case; 17] = [
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
            vec![permuted(&x[0], &p, 0), l, u]
        },
        takes: &[Rows],
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
        takes: &[Rows, Other],
        check: |what, x, y, eps| {
            agree(what, &[&x[0], &y[0]], &[&x[1]], x[0].norm() * y[0].norm(), eps);
        },
    },
    Case {
        name: "inv",
        run: |x| vec![inv(&x[0])],
        takes: &[Rows],
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
    Case {
        name: "qr_pivoted",
        run: |x| {
            let (q, r, p) = qr_pivoted(&x[0]);
            vec![permuted(&x[0], &p, 1), q, r]
        },
        takes: &[Columns],
        check: |what, x, y, eps| {
            agree(what, &[&y[0]], &[&y[1], &y[2]], x[0].norm(), eps);
            unitary(what, &y[1], eps);
        },
    },
    Case {
        name: "householder",
        run: |x| {
            let (packed, tau) = householder(&x[0]);
            let product = householder_product(&packed, &tau);
            let [applied, back] = [System::left(), System::right().adjoint()]
                .map(|system| householder_apply(&packed, &tau, &x[1], system));
            vec![product, packed.triu(0), applied, back, packed, tau]
        },
        takes: &[General, Other],
        check: |what, x, y, eps| {
            agree(what, &[&x[0]], &[&y[0], &y[1]], x[0].norm(), eps);
            unitary(what, &y[0], eps);
            agree(what, &[&y[2]], &[&y[0], &x[1]], x[1].norm(), eps);
            agree(what, &[&y[3]], &[&x[1], &y[0].adjoint()], x[1].norm(), eps);
        },
    },
    Case {
        name: "triangular_solve",
        run: |x| vec![triangular_solve(&x[0], &x[1], Triangular::lower()), x[0].tril(0)],
        takes: &[Definite, Other],
        check: |what, x, y, eps| {
            agree(what, &[&y[1], &y[0]], &[&x[1]], y[1].norm() * y[0].norm(), eps);
        },
    },
    Case {
        name: "lu_full_pivot",
        run: |x| {
            let (l, u, p, q) = lu_full_pivot(&x[0]);
            vec![permuted(&permuted(&x[0], &p, 0), &q, 1), l, u]
        },
        takes: &[Rows],
        check: |what, x, y, eps| agree(what, &[&y[0]], &[&y[1], &y[2]], x[0].norm(), eps),
    },
    Case {
        name: "determinant",
        run: |x| {
            let (sign, log) = slogdet(&x[0]);
            vec![det(&x[0]), sign, log]
        },
        takes: &[Apart],
        check: |what, x, y, eps| {
            let n = x[0].rows;
            let [got, sign, log] = [0, 1, 2].map(|i| y[i].data[0]);
            let expected = determinant(&x[0]);
            let most = n as f64 * eps * condition(n) * expected.norm();
            for got in [got, sign * log.re.exp()] {
                assert!((got - expected).norm() <= most, "{what}: {got}, expected {expected}");
            }
        },
    },
    Case {
        name: "matrix_exp",
        run: |x| vec![matrix_exp(&x[0]), matrix_exp(&-&x[0])],
        takes: &[Apart],
        check: |what, x, y, eps| {
            agree(what, &[&y[0], &y[1]], &[&Matrix::identity(x[0].rows)], y[0].norm() * y[1].norm(), eps);
        },
    },
    Case {
        name: "lstsq",
        run: |x| {
            let a = tall(&x[0]);
            let (y, squares, rank, s) = lstsq(&a, &x[1], Tolerance::default());
            vec![y, squares, rank, s, a]
        },
        takes: &[Apart, Other],
        check: |what, x, y, eps| {
            let (solution, a, b) = (&y[0], &y[4], &x[1]);
            let size = a.norm() * (a.norm() * solution.norm() + b.norm());
            agree(what, &[&a.adjoint(), a, solution], &[&a.adjoint(), b], size, eps);
            assert_eq!(y[2].data[0].re, a.columns() as f64, "{what}: rank");
        },
    },
    Case {
        name: "pinv",
        run: |x| {
            let a = tall(&x[0]);
            vec![pinv(&a, Tolerance::default()), a]
        },
        takes: &[Apart],
        check: |what, _, y, eps| {
            let (p, a) = (&y[0], &y[1]);
            agree(what, &[a, p, a], &[a], a.norm() * a.norm() * p.norm(), eps);
            agree(what, &[p, a], &[&Matrix::identity(a.columns())], a.norm() * p.norm(), eps);
        },
    },
];

/// The first half of the columns of each matrix, and one more.
fn tall(a: &Var) -> Var {
    let half = a.shape()[1].as_lit().expect("a present value") / 2 + 1;
    a.slice_axis(1, 0, half)
}

/// The rows, or for axis 1 the columns, of each matrix in the order of each permutation.
fn permuted(a: &Var, p: &Var, axis: usize) -> Var {
    a.gather(&p.broadcast_in_dim(&a.shape(), &[axis, 2]), axis)
}

/// The determinant by elimination of an [`apart`] matrix, whose diagonal elements are its pivots.
fn determinant(a: &Matrix) -> C64 {
    let (n, mut a) = (a.rows, a.data.clone());
    let mut product = C64::new(1.0, 0.0);
    for k in 0..n {
        let pivot = a[k + k * n];
        product *= pivot;
        for j in k + 1..n {
            let factor = a[k + j * n] / pivot;
            for i in k + 1..n {
                let l = a[i + k * n];
                a[i + j * n] -= l * factor;
            }
        }
    }
    product
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

/// The values of one matrix. Eigenvalues that are in no order, here apart in their real parts, are put in one,
/// with their vectors.
fn ordered(name: &str, mut y: Vec<Matrix>) -> Vec<Matrix> {
    if name == "eig" {
        let (n, w) = (y[1].rows, y[0].data.clone());
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&i, &j| w[i].re.total_cmp(&w[j].re));
        y[0].data = order.iter().map(|&i| w[i]).collect();
        y[1].data = order.iter().flat_map(|&i| y[1].data[i * n..][..n].to_vec()).collect();
    }
    y
}

/// What 2 and 3 threads give is what one thread gives, up to what rounding may do to matrices of that
/// condition.
#[test]
fn values_do_not_depend_on_the_number_of_threads() {
    for (case, dtype) in CASES.iter().flat_map(|case| DTYPES.map(|dtype| (case, dtype))) {
        let eps = if dtype.real() == DType::F32 { f32::EPSILON as f64 } else { f64::EPSILON };
        for (n, count) in STACKS {
            let x: Vec<Tensor> = case.takes.iter().map(|&which| apart(which, dtype, n, count)).collect();
            let run = |threads| {
                let operands: Vec<Var> = x.iter().map(now).collect();
                with_backend(&CpuBackend::with_threads(threads), || {
                    (case.run)(&operands).iter().map(tensor).collect::<Vec<Tensor>>()
                })
            };
            let values = |y: &[Tensor]| {
                let all: Vec<Vec<C64>> = y.iter().map(numbers).collect();
                let of = |b| y.iter().zip(&all).map(|(t, v)| part(t, v, count, b)).collect();
                (0..count).map(|b| ordered(case.name, of(b))).collect::<Vec<_>>()
            };
            let one = run(1);
            let expected = values(&one);
            for threads in [2, 3] {
                for (b, (got, expected)) in values(&run(threads)).iter().zip(&expected).enumerate() {
                    for (k, (got, expected)) in got.iter().zip(expected).enumerate() {
                        let exact = one[k].dtype().is_integer();
                        let most = if exact { 0.0 } else { n as f64 * eps * condition(n) };
                        let size = expected.data.iter().map(|x| x.norm()).fold(0.0, f64::max);
                        let pairs = got.data.iter().zip(&expected.data);
                        let off = pairs.map(|(x, y)| (x - y).norm());
                        let off = off.map(|d| if d.is_nan() { f64::INFINITY } else { d }).fold(0.0, f64::max);
                        assert!(
                            off <= most * size,
                            "{} {dtype} {n} x {n} x {count}, {threads} threads, matrix {b}, result {k}: off by \
                             {off:e} of {size:e}, allowed {most:e}",
                            case.name
                        );
                    }
                }
            }
        }
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
                    (f64::NAN, !["matmul", "triangular_solve"].contains(&case.name)),
                    (0.0, ["solve", "inv", "cholesky", "triangular_solve"].contains(&case.name)),
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
