//! Truncated decompositions: ranks decided by data, derivatives that include what is discarded.

mod common;

use common::*;
use tenferro_core_ops::{Aval, Dim, Var, input, leaf, vjp_present, vjp_traced};
use tenferro_linalg::{
    Limits, Truncation,
    ops::{split, svd, svd_truncated},
};
use tenferro_tensor::{C64, DType, Tensor, Value};

const DTYPES: [DType; 2] = [DType::F64, DType::C64];

fn with_values(dtype: DType, m: usize, n: usize, values: &[f64]) -> Tensor {
    on_cpu(|| {
        let (u, _, _) = svd(&now(&random(dtype, &[m, m], 21)));
        let (v, _, _) = svd(&now(&random(dtype, &[n, n], 22)));
        let s = from_fn(dtype, &[m, n], |i| C64::new(if i[0] == i[1] { values[i[0]] } else { 0.0 }, 0.0));
        tensor(&u.matmul(&now(&s)).matmul(&v))
    })
}

fn product_of_svd(r: usize) -> impl Fn(&[Var]) -> Vec<Var> {
    move |x| {
        let (u, s, vh, w) = svd_truncated(&x[0], Truncation::max_rank(r));
        vec![(&u * &s.expand_dims(&[0])).matmul(&vh), w]
    }
}

fn product_of_split(r: usize) -> impl Fn(&[Var]) -> Vec<Var> {
    move |x| {
        let (a, b) = split(&x[0], Truncation::max_rank(r));
        // Not only the product: a loss in which the bond of each factor meets another copy of the other.
        let middle = x[1].convert(a.dtype());
        let bond = b.matmul(&middle).matmul(&a);
        vec![a.matmul(&b), bond.cubed_trace(), bond.minors()]
    }
}

/// Gauge-invariant functions of a matrix on the bond.
trait Bond {
    fn cubed_trace(&self) -> Var;
    fn minors(&self) -> Var;
}

impl Bond for Var {
    fn cubed_trace(&self) -> Var {
        self.matmul(self).matmul(self).extract_diag(0, 1).reduce_sum(None)
    }
    fn minors(&self) -> Var {
        let t = self.extract_diag(0, 1).reduce_sum(None);
        &t * &t - self.matmul(self).extract_diag(0, 1).reduce_sum(None)
    }
}

#[test]
fn factors_are_the_best_approximation() {
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        let tolerance = if dtype.real() == DType::F32 { 1e-5 } else { 1e-13 };
        let a = random(dtype, &[5, 4], 3);
        on_cpu(|| {
            let (u, s, vh, w) = svd_truncated(&now(&a), Truncation::max_rank(2));
            let best = (&u * &s.expand_dims(&[0])).matmul(&vh);
            let (l, r) = split(&now(&a), Truncation::max_rank(2));
            assert_eq!((tensor(&l).shape(), tensor(&r).shape()), (&[5, 2][..], &[2, 4][..]));
            assert_close("product", &tensor(&l.matmul(&r)), &tensor(&best), tolerance);
            let error = now(&a) - &best;
            let relative = (error.abs() * error.abs()).reduce_sum(None)
                / (now(&a).abs() * now(&a).abs()).reduce_sum(None);
            assert_close("weight", &tensor(&w), &tensor(&relative), tolerance);
        });
    }
}

#[test]
fn truncated_derivatives_include_the_discarded_vectors() {
    for dtype in DTYPES {
        for shape in [&[4, 3][..], &[3, 4], &[3, 3]] {
            for r in 1..=3 {
                let f = product_of_svd(r);
                check(&format!("svd {dtype} {shape:?} {r}"), &f, &[random(dtype, shape, 5)], 2, 1e-6);
            }
        }
    }
}

#[test]
fn split_derivatives_agree_with_differences() {
    for dtype in DTYPES {
        for shape in [[4, 3], [3, 4], [3, 3]] {
            for r in 1..=3 {
                let x = [random(dtype, &shape, 5), random(dtype, &[shape[1], shape[0]], 6)];
                let order = if shape == [3, 3] { 3 } else { 2 };
                check(&format!("split {dtype} {shape:?} {r}"), &product_of_split(r), &x, order, 1e-6);
            }
        }
    }
}

#[test]
fn split_derivatives_are_right_at_degeneracies() {
    for dtype in DTYPES {
        let middle = random(dtype, &[4, 4], 6);
        for (values, r) in [
            ([2.0, 2.0, 0.5, 0.2], 2),
            ([2.0, 2.0, 0.5, 0.5], 2),
            ([1.0, 1.0, 1.0, 0.1], 3),
            ([2.0, 1.0, 0.0, 0.0], 2),
            ([1.0, 1.0, 1.0, 1.0], 4),
        ] {
            let x = [with_values(dtype, 4, 4, &values), middle.duplicate().unwrap()];
            check(&format!("{dtype} {values:?}"), &product_of_split(r), &x, 2, 1e-6);
        }
    }
}

#[test]
fn nothing_is_nan_where_singular_values_are_zero() {
    for a in [Tensor::zeros(DType::F64, [3, 2]).unwrap(), with_values(DType::F64, 3, 2, &[1.0, 0.0])] {
        on_cpu(|| {
            let x = leaf(Value::new(a));
            let (l, r) = split(&x, Truncation::default());
            let y = l.matmul(&r);
            let g = vjp_present(&[(&y, y.like(1.0))], &[&x], false).unwrap();
            let g = g[0].as_ref().map_or(0.0, |g| largest(&tensor(g)));
            assert!(g.is_finite());
        });
    }
}

#[test]
fn batched_ranks_are_padded_with_zeros() {
    for dtype in DTYPES {
        let parts = [
            with_values(dtype, 4, 3, &[2.0, 1.0, 0.5]),
            with_values(dtype, 4, 3, &[1.0, 1e-3, 1e-4]),
            with_values(dtype, 4, 3, &[3.0, 3.0, 1e-3]),
        ];
        let all: Vec<C64> = parts.iter().flat_map(numbers).collect();
        let a = from_fn(dtype, &[4, 3, 3], |i| all[i[0] + 4 * (i[1] + 3 * i[2])]);
        let t = Truncation { abs: 0.1, ..Truncation::default() };
        let f = move |x: &[Var]| {
            let (l, r) = split(&x[0], t);
            let (u, s, vh, w) = svd_truncated(&x[0], t);
            vec![l.matmul(&r), (&u * &s.expand_dims(&[0])).matmul(&vh), w]
        };
        on_cpu(|| {
            let (l, _) = split(&now(&a), t);
            assert_eq!(tensor(&l).shape(), [4, 3, 3]);
            let y = f(&[now(&a)]);
            for (i, part) in parts.iter().enumerate() {
                for (all, one) in y.iter().zip(f(&[now(part)])) {
                    let r = all.rank() - 1;
                    let all = all.slice_axis(r, i, i + 1).squeeze(&[r]);
                    assert_close("batch", &tensor(&all), &tensor(&one), 1e-13);
                }
            }
        });
        let product = move |x: &[Var]| {
            let (l, r) = split(&x[0], t);
            vec![l.matmul(&r)]
        };
        check("batched split", &product, &[a], 2, 1e-6);
        // (U, s, Vh) have derivatives where the kept singular values differ.
        let simple: Vec<C64> = [0, 1, 1].iter().flat_map(|&i| numbers(&parts[i])).collect();
        let a = from_fn(dtype, &[4, 3, 3], |i| simple[i[0] + 4 * (i[1] + 3 * i[2])]);
        check("batched svd", &|x| f(x)[1..].to_vec(), &[a], 1, 1e-6);
    }
}

#[test]
fn one_traced_program_truncates_to_any_rank() {
    let scalar = |dtype| input(Aval::<Dim>::new(dtype, []));
    let limits = Limits {
        max_rank: scalar(DType::I64),
        rel: scalar(DType::F64),
        abs: scalar(DType::F64),
        weight: scalar(DType::F64),
    };
    let a = random(DType::C64, &[4, 5], 3);
    let x = symbolic_like(&a, "n");
    let (l, r) = split(&x, &limits);
    let (u, s, vh, w) = svd_truncated(&x, &limits);
    let y = vec![l.matmul(&r), (&u * &s.expand_dims(&[0])).matmul(&vh), w];
    let seeds: Vec<(Var, Var)> = y.iter().map(|y| (y.clone(), y.sin())).collect();
    let mut outputs = y.clone();
    outputs.extend(vjp_traced(&seeds, &[&x]).unwrap().into_iter().flatten());
    outputs.extend([l.clone(), vh.clone()]);
    assert_eq!(l.extent(1), r.extent(0));
    assert_eq!(u.extent(1), s.extent(0));

    for (t, rank) in [
        (Truncation::max_rank(2), Some(2)),
        (Truncation::max_rank(3), Some(3)),
        (Truncation { rel: 0.3, weight: 1e-3, ..Truncation::default() }, None),
    ] {
        for a in [a.duplicate().unwrap(), random(DType::C64, &[6, 3], 4)] {
            let max_rank = t.max_rank.map_or(i64::MAX, |r| r as i64);
            let inputs = [
                (x.clone(), a.duplicate().unwrap()),
                (limits.max_rank.clone(), Tensor::scalar(max_rank)),
                (limits.rel.clone(), Tensor::scalar(t.rel)),
                (limits.abs.clone(), Tensor::scalar(t.abs)),
                (limits.weight.clone(), Tensor::scalar(t.weight)),
            ];
            let got = run(&outputs, &inputs).unwrap();
            if let Some(rank) = rank {
                assert_eq!(got[4].shape(), [a.shape()[0], rank]);
            }
            on_cpu(|| {
                let x = leaf(Value::new(a));
                let (l, r) = split(&x, t);
                let (u, s, vh, w) = svd_truncated(&x, t);
                let y = [l.matmul(&r), (&u * &s.expand_dims(&[0])).matmul(&vh), w];
                let seeds: Vec<(&Var, Var)> = y.iter().map(|y| (y, y.detach().sin())).collect();
                let g = vjp_present(&seeds, &[&x], false).unwrap();
                for (a, b) in got.iter().zip(y.iter().chain(g.iter().flatten())) {
                    assert_close("traced", a, &tensor(b), 1e-11);
                }
            });
        }
    }
}

#[test]
fn limits_are_checked() {
    let a = random(DType::F64, &[3, 3], 1);
    let error = |t: Truncation| on_cpu(|| split(&now(&a), t).0.ok().unwrap_err().to_string());
    assert_eq!(error(Truncation::max_rank(0)), "split: max_rank: got 0, expected at least 1");
    let t = Truncation { weight: f64::NAN, ..Truncation::default() };
    assert_eq!(error(t), "split: weight: got NaN, expected a number of at least 0");
    let mut nan = a.duplicate().unwrap();
    nan.as_slice_mut::<f64>().unwrap()[4] = f64::NAN;
    let e = on_cpu(|| split(&now(&nan), Truncation::default()).0.ok().unwrap_err());
    assert!(e.to_string().starts_with("split: matrix: got element [1, 1]"), "{e}");
}

#[test]
fn the_discarded_weight_does_not_depend_on_the_scale() {
    for (dtype, scales) in [
        (DType::F64, &[1.0, 1e160, 1e-160, 1e-170, 5e307, 1e-300][..]),
        (DType::C64, &[1e160, 1e-170]),
        (DType::F32, &[1.0, 1e20, 1e-25, 1e38]),
        (DType::C32, &[1e20]),
    ] {
        let eps = if dtype.real() == DType::F32 { 1e-6 } else { 1e-14 };
        for &scale in scales {
            let diagonal = |i: &[usize]| if i[0] != i[1] { 0.0 } else { [3.0, 1.0][i[0]] };
            let a = from_fn(dtype, &[2, 2], |i| C64::new(diagonal(i) * scale, 0.0));
            let (w, g) = on_cpu(|| {
                let x = leaf(Value::new(a));
                let w = svd_truncated(&x, Truncation::max_rank(1)).3;
                let one = w.detach().like(1.0);
                let g = vjp_present(&[(&w, one)], &[&x], false).unwrap().remove(0).unwrap();
                (numbers(&tensor(&w))[0].re, numbers(&tensor(&g)))
            });
            assert!((w - 0.1).abs() < eps, "{dtype} {scale:e}: {w}");
            // w = y^2 / (x^2 + y^2) has the gradient 2 x y / (x^2 + y^2)^2 (-y, x).
            for (g, want) in g.iter().zip([-0.06, 0.0, 0.0, 0.18]) {
                assert!(
                    (g.re * scale - want).abs() < eps,
                    "{dtype} {scale:e}: {g:e}, expected {want} / scale"
                );
            }
        }
    }
}
