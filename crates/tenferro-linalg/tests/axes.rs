//! Thirty axes: what an operation does to three of them is what it does to a tensor of three axes, at once
//! and in a program; the other axes, of extent 1, are in the way only.

mod common;

use common::{distance, now, on_cpu, random, tensor};
use tenferro_core_ops::{Dim, Var, build, leaf, ops::DotGeneral, vjp_present, vjp_traced};
use tenferro_linalg::{Tolerance, ops::*};
use tenferro_runtime::Program;
use tenferro_tensor::{C64, DType, Tensor};

const RANK: usize = 30;
type F = Box<dyn Fn(&Var, &[usize]) -> Var>;

/// The axes of `at` first, all others behind them.
fn front(at: &[usize]) -> Vec<usize> {
    at.iter().copied().chain((0..RANK).filter(|axis| !at.contains(axis))).collect()
}

fn index(at: &[i64], rank: usize) -> Var {
    let mut shape = vec![1; rank];
    shape[0] = at.len();
    now(&Tensor::from_vec_col_major(shape, at.to_vec()).unwrap())
}

/// `v` for the axes of `at`, and `other` for the rest.
fn spread<T: Clone>(rank: usize, at: &[usize], v: [T; 3], other: T) -> Vec<T> {
    let mut all = vec![other; rank];
    at.iter().zip(v).for_each(|(&axis, v)| all[axis] = v);
    all
}

/// Operations, given which of the axes of their operand are the three.
fn cases() -> Vec<(&'static str, F)> {
    fn case(name: &'static str, f: impl Fn(&Var, &[usize]) -> Var + 'static) -> (&'static str, F) {
        (name, Box::new(f))
    }
    vec![
        case("reduce_sum", |x, a| x.reduce_sum(Some(&[a[0], a[2]]))),
        case("reduce_max", |x, a| x.reduce_max(Some(&[a[1]]))),
        case("reduce_prod, kept", |x, a| x.reduce_prod_keepdims(Some(&[a[2], a[1]]))),
        case("reduce_mean", |x, _| x.reduce_mean(None)),
        case("reverse", |x, a| x.reverse(a)),
        case("slice", |x, a| {
            let limits: Vec<Dim> = x.shape().to_vec();
            x.slice(
                &spread(x.rank(), a, [0, 1, 0].map(Dim::Lit), Dim::Lit(0)),
                &limits,
                &spread(x.rank(), a, [1, 1, 2], 1),
            )
        }),
        case("slice_axis", |x, a| x.slice_axis(a[1], 1, 3)),
        case("pad", |x, a| {
            let n = x.rank();
            let low = spread(n, a, [1, 0, 2].map(Dim::Lit), Dim::Lit(0));
            let high = spread(n, a, [0, 1, 0].map(Dim::Lit), Dim::Lit(0));
            x.pad(&Var::scalar(x.dtype(), C64::new(7.0, 0.0)), &low, &high, &spread(n, a, [1, 0, 2], 0))
        }),
        case("concatenate", |x, a| build::concatenate(&[x.clone(), x * 2.0, x.clone()], a[1])),
        case("stack", |x, a| build::stack(&[x.clone(), -x], a[2])),
        case("index_select", |x, a| x.index_select(&index(&[2, 0, 0], 1), a[1])),
        case("take_axis", |x, a| x.take_axis(&index(&[1, 0], 1), a[0])),
        case("dynamic_slice", |x, a| {
            let n = x.rank();
            let starts = now(&Tensor::from_vec_col_major([n], spread(n, a, [1, 1, 0], 0_i64)).unwrap());
            x.dynamic_slice(&starts, &spread(n, a, [1, 2, 3].map(Dim::Lit), Dim::Lit(1)))
        }),
        case("dynamic_update_slice", |x, a| {
            let n = x.rank();
            let starts = now(&Tensor::from_vec_col_major([n], spread(n, a, [0, 1, 0], 0_i64)).unwrap());
            x.dynamic_update_slice(&(x.slice_axis(a[1], 0, 2).slice_axis(a[0], 0, 1) * 5.0), &starts)
        }),
        case("gather", |x, a| x.gather(&x.less(&x.like(0.0)).cast(DType::I64), a[1])),
        case("extract_diag", |x, a| x.extract_diag(a[2], a[0])),
        case("expand and squeeze", |x, a| x.expand_dims(&[a[1]]).squeeze(&[a[1]]) * 3.0),
        case("equal", |x, a| x.reverse(&[a[1]]).less(x).select(x, &x.like(0.5))),
        case("broadcast", |x, _| {
            let shape: Vec<Dim> = [Dim::Lit(2)].into_iter().chain(x.shape()).collect();
            x.broadcast_in_dim(&shape, &(1..=x.rank()).collect::<Vec<_>>())
        }),
        case("dot_general", |x, a| {
            let dims = DotGeneral {
                lhs_contract: [a[0]][..].into(),
                rhs_contract: [a[0]][..].into(),
                lhs_batch: [a[2]][..].into(),
                rhs_batch: [a[2]][..].into(),
                ..Default::default()
            };
            x.dot_general(&x.sin(), &dims)
        }),
        case("contraction of all", |x, _| {
            let all: Vec<usize> = (0..x.rank()).collect();
            x.tensordot_axes(&x.cos(), &all, &all)
        }),
        case("outer product", |x, a| x.reduce_sum(Some(&[a[1]])).tensordot(&x.reduce_sum(Some(&[a[2]])), 0)),
    ]
}

/// The tensor of three axes at `at` among thirty.
fn wide(x: &Tensor, at: &[usize]) -> Tensor {
    let front = front(at);
    let shape: Vec<usize> = x.shape().iter().copied().chain(std::iter::repeat(1)).take(RANK).collect();
    let mut back = vec![0; RANK];
    front.iter().enumerate().for_each(|(i, &axis)| back[axis] = i);
    on_cpu(|| {
        let dims: Vec<Dim> = shape.iter().map(|&n| Dim::Lit(n)).collect();
        tensor(&now(x).reshape(&dims).transpose(&back))
    })
}

/// The gradient of the sum of `f`.
fn gradient(x: &Var, f: impl Fn(&Var) -> Var) -> Var {
    let g = match x {
        Var::Later(..) => {
            let y = f(x);
            vjp_traced(&[(y.clone(), y.like(1.0))], &[x]).unwrap()
        }
        x => {
            let x = leaf(x.value().unwrap().clone());
            let y = f(&x);
            vjp_present(&[(&y, y.like(1.0).detach())], &[&x], false).unwrap()
        }
    };
    g.into_iter().flatten().next().expect("one that is not zero")
}

/// All elements in column-major order: the axes of the three in ascending order make that the same.
fn flat(t: &Tensor) -> Tensor {
    t.duplicate().unwrap().into_shape([t.len()]).unwrap()
}

fn both(f: &dyn Fn(&Var) -> Var, x: &Tensor) -> [Tensor; 2] {
    let direct = on_cpu(|| tensor(&f(&now(x))));
    let p = common::input_like(x);
    let program = Program::new(std::slice::from_ref(&p), &[f(&p)]).unwrap();
    let run = program.run(&mut tenferro_cpu::CpuBackend::new(), &[x]).unwrap().remove(0);
    [direct, run]
}

#[test]
fn operations_with_axes() {
    for extents in [[2, 3, 3], [2, 3, 0]] {
        let x = random(DType::F64, &extents, 5);
        for at in [[0, 1, 2], [3, 17, 29], [27, 28, 29], [0, 14, 29]] {
            let y = wide(&x, &at);
            for (name, f) in cases() {
                let want = on_cpu(|| f(&now(&x), &[0, 1, 2]).value().map(|v| v.duplicate().unwrap()));
                let Ok(want) = want else {
                    assert!(on_cpu(|| f(&now(&y), &at).ok().is_err()), "{name}");
                    continue;
                };
                for got in both(&|v| f(v, &at), &y) {
                    assert_eq!(got.len(), want.len(), "{name} {at:?}");
                    // The mean of nothing is no number.
                    let nan = got.len() == 1 && common::numbers(&got)[0].re.is_nan();
                    let close = nan && x.is_empty() || distance(&flat(&got), &flat(&want)) < 1e-13;
                    assert!(close, "{name} {at:?}");
                }
            }
        }
    }
}

#[test]
fn matrices_with_twenty_eight_batch_axes() {
    let a = random(DType::F64, &[3, 3, 2], 2);
    let a = on_cpu(|| tensor(&(now(&a) + now(&Tensor::eye(DType::F64, 3).unwrap()).expand_dims(&[2]) * 4.0)));
    let y = wide(&a, &[0, 1, 19]);
    type G = fn(&Var) -> Var;
    let all: [(&str, G); 19] = [
        ("matmul", |x| x.matmul(&x.matrix_transpose())),
        ("tril", |x| x.tril(0)),
        ("triu", |x| x.triu(1)),
        ("embed", |x| x.extract_diag(0, 1).embed_diag(0, 1)),
        ("solve", |x| solve(x, &x.sin())),
        ("inv", inv),
        ("det", det),
        ("svdvals", svdvals),
        ("eigvalsh", |x| eigvalsh(&(x + &x.matrix_transpose()))),
        ("eigvals", |x| eigvals(x).abs().reduce_sum(Some(&[0]))),
        ("cholesky", |x| cholesky(&x.matmul(&x.matrix_transpose()))),
        ("r", |x| qr(x).1.abs()),
        ("l", |x| lu(x).1),
        ("u", |x| lu(x).2),
        ("rows of lu", |x| lu(x).0.cast(DType::F64)),
        ("lstsq", |x| lstsq(x, &x.cos(), Tolerance::default()).0),
        ("eigenvectors", |x| eigh(&(x + &x.matrix_transpose())).1.abs()),
        ("gradient of solve", |x| gradient(x, |x| solve(x, &x.sin()))),
        ("gradient of svd", |x| gradient(x, svdvals)),
    ];
    for (name, f) in all {
        let want = flat(&on_cpu(|| tensor(&f(&now(&a)))));
        for got in both(&f, &y) {
            assert_eq!(got.len(), want.len(), "{name}");
            assert!(distance(&flat(&got), &want) < 1e-12, "{name}");
        }
    }
}
