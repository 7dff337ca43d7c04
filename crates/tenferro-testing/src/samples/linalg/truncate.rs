//! Truncation of singular values.

use super::*;
use crate::{
    info::{Listing, op, surface},
    matrix::{stack_scalars, stack_vectors, vectors},
};
use tenferro_core_ops::{Var, apply_n, build};
use tenferro_linalg::{Limits, LinalgOps, LinalgRecorded, Rank, Truncation, TypedLinalgOps, ops};
use tenferro_runtime::tier::IntoVars;

pub(super) fn list() -> Vec<OpInfo> {
    vec![truncate(), svd_truncated(), svd_truncated_invariants()]
}

/// Why a loop that needs extents before a run does not apply.
const FOUND: &str = "the rank is an extent that only a run finds";

/// The most of the singular values that a truncation keeps, from its definition: the limits, then no cut
/// through a multiplet.
fn rank(t: &Truncation, s: &[f64], dtype: DType) -> usize {
    let square = |s: &[f64]| s.iter().map(|s| s * s).sum::<f64>();
    let Some(&first) = s.first().filter(|&&s| s > 0.0) else { return 0 };
    let light = (0..=s.len()).find(|&r| square(&s[r..]) <= t.weight * square(s)).unwrap_or(s.len());
    let allowed = |r: usize| {
        r == 1
            || (t.max_rank.is_none_or(|max| r <= max)
                && s[r - 1] > t.rel * first
                && s[r - 1] > t.abs
                && s[r - 1] > 0.0
                && r <= light)
    };
    let limit = (1..=s.len()).filter(|&r| allowed(r)).max().unwrap_or(0);
    let (gap, eps) = if dtype == F32 { (1e-4, f32::EPSILON as f64) } else { (1e-6, f64::EPSILON) };
    let cuts_nothing =
        |r: usize| r == s.len() || s[r - 1] - s[r] >= f64::max(gap * s[r - 1], 16.0 * eps * first);
    let whole = (1..=s.len()).find(|&r| cuts_nothing(r)).unwrap_or(s.len());
    match (1..=limit).rev().find(|&r| cuts_nothing(r)) {
        Some(r) => r,
        None => whole.min(t.max_rank.unwrap_or(whole)),
    }
}

fn truncate() -> OpInfo {
    let limits = |t: Truncation| {
        let max = t.max_rank.map_or(i64::MAX, |r| r as i64);
        let mut x = vec![Array::ints(I64, &[], &[max])];
        x.extend([t.rel, t.abs, t.weight].map(|v| Array::scalar(F64, v)));
        x
    };
    let with = |s: Array, t: Truncation| [vec![s], limits(t)].concat();
    let line = |d, s: &[f64]| Array::reals(d, &[s.len()], s);
    let all = Truncation::default();
    let cuts = [
        all,
        Truncation::max_rank(3),
        Truncation { rel: 0.25, ..all },
        Truncation { rel: 0.249, ..all },
        Truncation { abs: 0.5, ..all },
        Truncation { abs: 9.0, ..all },
        Truncation { weight: 0.06, ..all },
        Truncation { weight: 0.05, rel: 1e-3, abs: 1e-3, max_rank: Some(4) },
    ];
    op(
        "truncate",
        |_: &(), x: &[Var]| apply_n(&Rank, &x.iter().collect::<Vec<_>>(), 2),
        |_, x| {
            let t = Truncation {
                max_rank: usize::try_from(x[1].data[0].int()).ok(),
                rel: x[2].data[0].re(),
                abs: x[3].data[0].re(),
                weight: x[4].data[0].re(),
            };
            let ranks: Vec<i64> = vectors(&x[0]).iter().map(|s| rank(&t, s, x[0].dtype) as i64).collect();
            let largest = ranks.iter().copied().max().unwrap_or(0);
            vec![
                Array::ints(I64, &[largest as usize], &(0..largest).collect::<Vec<_>>()),
                Array::ints(I64, &x[0].shape[1..], &ranks),
            ]
        },
    )
    .order(0)
    .each([F64, F32], |o, d| {
        o.each(cuts, |o, t| {
            o.sample((), with(line(d, &[4.0, 2.0, 1.0, 0.5, 0.0]), t))
                .sample((), with(Array::reals(d, &[3, 2], &[3.0, 2.0, 1.0, 1.0, 1e-3, 0.0]), t))
        })
        // Multiplets inside, in front, and at the end.
        .each(1..=5, |o, r| {
            o.sample((), with(line(d, &[3.0, 1.0, 1.0, 0.5, 0.5]), Truncation::max_rank(r)))
                .sample((), with(line(d, &[1.0, 1.0, 1.0, 0.1, 0.0]), Truncation::max_rank(r)))
                .sample((), with(line(d, &[2.0, 1.0, 1.0 - 1e-7, 0.25]), Truncation::max_rank(r)))
        })
        .sample((), with(line(d, &[]), all))
        .sample((), with(line(d, &[0.0, 0.0]), all))
        .sample((), with(Array::reals(d, &[2, 0], &[]), all))
    })
    .skip("shape", FOUND)
    .skip("into", FOUND)
    .error((), with(any(F64, &[2], 1), Truncation::max_rank(0)), &["max_rank", "0", "at least 1"])
    .error((), with(any(F64, &[2], 1), Truncation { rel: -1.0, ..all }), &["rel", "-1"])
    .error((), with(any(F64, &[2], 1), Truncation { weight: f64::NAN, ..all }), &["weight", "NaN"])
    .error((), with(any(F64, &[], 1), all), &["0", "at least 1"])
    .error((), with(any(C64_, &[2], 1), all), &["c64", "f32 | f64"])
    .skip("surfaces", IN_RULES)
    .symbolic_call(&[(F64, &["n", "m"]), (I64, &[]), (F64, &[])], |x| {
        let zero = x[2].like(0.0);
        apply_n(&Rank, &[&x[0], &(&x[1] + 2.0), &x[2], &zero, &zero], 2)[1].clone()
    })
    .done()
}

/// A matrix cut to a rank: U and V of what is kept, its values, and those that are discarded.
pub(super) struct Cut {
    pub(super) u: Matrix,
    pub(super) s: Vec<f64>,
    pub(super) v: Matrix,
    discarded: Vec<f64>,
}

/// The cut of every matrix of a stack, and the largest rank.
pub(super) fn cuts(t: &Truncation, a: &Array) -> (Vec<Cut>, usize) {
    let cut = |a_b: &Matrix| {
        let (u, s, v) = a_b.svd();
        let r = rank(t, &s, a.dtype.real());
        Cut { u: u.leading(r), v: v.leading(r), s: s[..r].to_vec(), discarded: s[r..].to_vec() }
    };
    let all: Vec<Cut> = matrices(a).iter().map(cut).collect();
    let r = all.iter().map(|c| c.s.len()).max().unwrap_or(0);
    (all, r)
}

impl Cut {
    pub(super) fn product(&self) -> Matrix {
        self.u.scaled(&self.s).times(&self.v.adjoint())
    }

    /// The discarded fraction of the sum of squares.
    fn weight(&self) -> f64 {
        let square = |s: &[f64]| s.iter().map(|s| s * s).sum::<f64>();
        let (lost, kept) = (square(&self.discarded), square(&self.s));
        if lost == 0.0 { 0.0 } else { lost / (lost + kept) }
    }

    pub(super) fn roots(&self) -> Vec<f64> {
        self.s.iter().map(|s| s.sqrt()).collect()
    }
}

fn svd_truncated() -> OpInfo {
    fn observed(_: &Truncation, _: &[Array], y: &[Array]) -> Vec<Array> {
        let [u, s, vh, w] = [&y[0], &y[1], &y[2], &y[3]];
        let r = s.shape[0];
        let left: Vec<Matrix> = matrices(u).iter().zip(vectors(s)).map(|(u, s)| u.scaled(&s)).collect();
        let left = stack(u.dtype, extents(u).0, extents(u).1, &left);
        vec![
            each_pair(&left, vh, [u.shape[0], vh.shape[1]], Matrix::times),
            s.clone(),
            each_matrix(u, [r, r], |u| u.adjoint().times(&u)),
            each_matrix(vh, [r, r], |v| v.times(&v.adjoint())),
            w.clone(),
        ]
    }
    let listing = op(
        "svd_truncated",
        |t: &Truncation, x: &[Var]| -> [Var; 4] { ops::svd_truncated(&x[0], t).into() },
        |t, x| {
            let a = x[0].cast(floating(x[0].dtype));
            let (cuts, r) = cuts(t, &a);
            let (shape, batch) = extents(&a);
            let padded = |c: &Cut, f: fn(f64) -> f64| {
                (0..r).map(|i| c.s.get(i).map_or(0.0, |&s| f(s))).collect::<Vec<_>>()
            };
            let s: Vec<Vec<f64>> = cuts.iter().map(|c| padded(c, |s| s)).collect();
            let ones: Vec<Matrix> =
                cuts.iter().map(|c| Matrix::diagonal(r, r, &padded(c, |_| 1.0))).collect();
            let ones = stack(a.dtype, [r, r], batch, &ones);
            vec![
                stack(a.dtype, shape, batch, &cuts.iter().map(Cut::product).collect::<Vec<_>>()),
                stack_vectors(a.dtype.real(), r, batch, &s),
                ones.clone(),
                ones,
                stack_scalars(
                    a.dtype.real(),
                    batch,
                    &cuts.iter().map(|c| c.weight().into()).collect::<Vec<_>>(),
                ),
            ]
        },
    )
    .surface(surface!(Truncation; LinalgOps, TypedLinalgOps; svd_truncated() |t| *t))
    .observe(observed);
    raw("svd_truncated", listing)
}

/// Samples and errors of a truncated factorization whose results depend on a gauge and have the rank as an
/// extent.
pub(super) fn raw<V: IntoVars + 'static>(
    name: &'static str,
    o: Listing<Truncation, V, Vec<Array>>,
) -> OpInfo {
    let all = Truncation::default();
    o
        // Products and values move as the matrix does, the discarded weight twice as much.
        .tolerance(bound(4, 2.0))
        .each(FLOATS, |o, d| {
            o.sample(Truncation::max_rank(2), vec![with_values(d, [3, 3], &[&[6.0, 4.0, 1.5]], 1)])
                .sample(Truncation::max_rank(1), vec![with_values(d, [4, 2], &[&[5.0, 2.0]], 3)])
                .sample(all, vec![with_values(d, [2, 4], &[&[5.0, 2.0]], 5)])
                .sample(Truncation { rel: 0.3, ..all }, vec![with_values(d, [3, 4], &[&[6.0, 4.0, 1.5]], 7)])
                .sample(Truncation { abs: 1.0, ..all }, vec![with_values(d, [1, 1], &[&[2.0]], 9)])
                .sample(
                    Truncation { abs: 1.0, ..all },
                    vec![with_values(d, [3, 2], &[&[3.0, 0.5], &[4.0, 2.0], &[2.0, 0.25]], 11)],
                )
                .sample(all, vec![any(d, &[0, 2], 17)])
                .sample(all, vec![any(d, &[2, 2, 0], 18)])
                // Of a zero matrix nothing is kept.
                .kink(all, vec![Array::reals(d, &[2, 3], &[0.0; 6])])
        })
        .kink(Truncation::max_rank(1), vec![Array::ints(I64, &[2, 2], &[3, 0, 0, 1])])
        .skip("rank_0", "a matrix is needed")
        .skip("shape", FOUND)
        .symbolic(Truncation::max_rank(2), &[&["n", "m"]])
        .symbolic(Truncation { rel: 0.1, ..all }, &[&["n", "m", "2"]])
        .skip("precision", "vectors and factors have a gauge; the derivative is checked on the invariants")
        .skip("jvp", "vectors and factors have a gauge; the derivative is checked on the invariants")
        .skip("second_order", "vectors and factors have a gauge; the derivative is checked on the invariants")
        .error_at(
            [name, "truncate"],
            Truncation { abs: -1.0, ..all },
            vec![any(F64, &[2, 2], 1)],
            &["abs", "-1"],
        )
        .error_at(
            [name, "truncate"],
            Truncation { max_rank: Some(0), ..all },
            vec![any(F64, &[2, 2], 1)],
            &["max_rank"],
        )
        .error(all, vec![any(F64, &[2], 1)], &["1", "at least 2"])
        .error_at([name, "svd"], all, vec![f64s(&[1, 1], &[f64::NAN])], &["[0, 0]", "not finite"])
        .done()
}

/// U diag(s) Vh, U w U^H with different weights w, the discarded weight, and the sum of squares.
fn svd_truncated_invariants() -> OpInfo {
    let all = Truncation::default();
    op(
        "svd_truncated_invariants",
        |t: &Truncation, x: &[Var]| {
            let (u, s, vh, lost) = ops::svd_truncated(&x[0], t);
            let w = (build::iota(s.dtype(), &s.shape(), 0) + 1.0).expand_dims(&[0]);
            [
                (&u * &s.expand_dims(&[0])).matmul(&vh),
                (&u * &w).matmul(&u.adjoint()),
                (&s * &s).reduce_sum(Some(&[0])),
                lost,
            ]
        },
        |t, x| {
            let (cuts, _) = cuts(t, &x[0]);
            let ([m, n], batch) = extents(&x[0]);
            let d = x[0].dtype;
            let weighted = |c: &Cut| {
                let w: Vec<f64> = (1..=c.s.len()).map(|i| i as f64).collect();
                c.u.scaled(&w).times(&c.u.adjoint())
            };
            let numbers = |f: &dyn Fn(&Cut) -> f64| {
                stack_scalars(d.real(), batch, &cuts.iter().map(|c| f(c).into()).collect::<Vec<_>>())
            };
            vec![
                stack(d, [m, n], batch, &cuts.iter().map(Cut::product).collect::<Vec<_>>()),
                stack(d, [m, m], batch, &cuts.iter().map(weighted).collect::<Vec<_>>()),
                numbers(&|c| c.s.iter().map(|s| s * s).sum()),
                numbers(&Cut::weight),
            ]
        },
    )
    // Vectors move by the inverse of the gap, 6 / (6 - 4), the products of three of them by more.
    .tolerance(bound(5, 4.0))
    .each(FLOATS, |o, d| {
        o.sample(Truncation::max_rank(2), vec![with_values(d, [3, 3], &[&[6.0, 4.0, 1.5]], 1)])
            .sample(Truncation::max_rank(1), vec![with_values(d, [4, 2], &[&[5.0, 2.0]], 3)])
            .sample(Truncation { weight: 0.2, ..all }, vec![with_values(d, [2, 4], &[&[6.0, 2.0]], 5)])
            .sample(all, vec![with_values(d, [1, 1], &[&[2.0]], 7)])
            .sample(
                Truncation { abs: 1.0, ..all },
                vec![with_values(d, [3, 2], &[&[5.0, 0.5], &[6.0, 3.0]], 9)],
            )
            .sample(all, vec![any(d, &[2, 0], 11)])
    })
    .symbolic(Truncation::max_rank(2), &[&["n", "m"]])
    .symbolic(Truncation { rel: 0.1, ..all }, &[&["n", "m"]])
    .symbolic(Truncation { rel: 0.1, ..all }, &[&["n", "m", "2"]])
    // Limits that are inputs of the program.
    .symbolic_call(&[(F64, &["n", "m"]), (I64, &[]), (F64, &[])], |x| {
        let (u, s, vh, _) = ops::svd_truncated(&x[0], limits(&x[1], &x[2]));
        (&u * &s.expand_dims(&[0])).matmul(&vh)
    })
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", COMPOSED)
    .error_of("svd_truncated", all, vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .done()
}

/// At most two more than `r`, larger than a hundredth of `rel`.
pub(super) fn limits(r: &Var, rel: &Var) -> Limits {
    Limits { max_rank: r + 2.0, rel: rel * 0.01, ..Limits::from(Truncation::default()) }
}
