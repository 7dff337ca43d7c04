//! Truncation of singular values, and the split of a matrix over a bond.

use super::*;
use crate::{
    info::{op, surface},
    matrix::{stack_scalars, stack_vectors, vectors},
};
use smallvec::SmallVec;
use tenferro_core_ops::{Var, apply_n, apply1, build};
use tenferro_linalg::{
    Couple, GramLyapunov, GramSolve, Limits, LinalgOps, LinalgRecorded, Rank, Split, Truncation,
    TypedLinalgOps, ops,
};
use tenferro_tensor::C64;

pub(super) fn list() -> Vec<OpInfo> {
    let mut all = vec![truncate(), svd_truncated(), svd_truncated_invariants(), split(), split_invariants()];
    all.extend([cut_product(), split_factors(), gram_solve(), gram_lyapunov(), couple()]);
    all
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
    .done()
}

/// A matrix cut to a rank: U and V of what is kept, its values, and those that are discarded.
struct Cut {
    u: Matrix,
    s: Vec<f64>,
    v: Matrix,
    discarded: Vec<f64>,
}

/// The cut of every matrix of a stack, and the largest rank.
fn cuts(t: &Truncation, a: &Array) -> (Vec<Cut>, usize) {
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
    fn product(&self) -> Matrix {
        self.u.scaled(&self.s).times(&self.v.adjoint())
    }

    /// The discarded fraction of the sum of squares.
    fn weight(&self) -> f64 {
        let square = |s: &[f64]| s.iter().map(|s| s * s).sum::<f64>();
        let (lost, kept) = (square(&self.discarded), square(&self.s));
        if lost == 0.0 { 0.0 } else { lost / (lost + kept) }
    }

    fn roots(&self) -> Vec<f64> {
        self.s.iter().map(|s| s.sqrt()).collect()
    }
}

/// What a cut to rank `r` pulls `ct` back to, which is its derivative along `ct`: between kept and discarded
/// vectors of values s and t, `s (s ct_12 + t conj(ct_21)) / (s^2 - t^2)`.
fn cut_along(a: &Array, r: usize, ct: &Array) -> Array {
    each_pair(a, ct, extents(a).0, |a, ct| {
        let (u, s, v) = a.svd();
        let (u, v) = (u.basis(), v.basis());
        let at = |i: usize| s.get(i).copied().unwrap_or(0.0);
        let g = u.adjoint().times(ct).times(&v);
        let mixed = |z: C64, other: C64, s: f64, t: f64| s * (s * z + t * other.conj()) / (s * s - t * t);
        let inside = |i: usize, j: usize| i < g.rows && j < g.columns;
        let pulled = Matrix::from_fn(g.rows, g.columns, |i, j| {
            let other = if inside(j, i) { g.at(j, i) } else { 0.0.into() };
            match (i < r, j < r) {
                (true, true) => g.at(i, j),
                (true, false) => mixed(g.at(i, j), other, at(i), at(j)),
                (false, true) => mixed(g.at(i, j), other, at(j), at(i)),
                (false, false) => 0.0.into(),
            }
        });
        u.times(&pulled).times(&v.adjoint())
    })
}

/// Matrices of one multiplet among the kept or the discarded values, and where to cut them.
const DEGENERATE: &[([usize; 2], &[f64], usize)] = &[
    ([3, 3], &[2.0, 2.0, 1.0], 2),
    ([3, 3], &[3.0, 1.0, 1.0], 1),
    ([3, 4], &[2.0, 2.0, 0.0], 2),
    ([4, 3], &[2.0, 2.0, 1.0], 2),
    ([2, 2], &[1.5, 1.5], 2),
];

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
    raw(listing)
}

/// Samples and errors of a truncated factorization whose results depend on a gauge and have the rank as an
/// extent.
fn raw<V: tenferro_runtime::tier::IntoVars + 'static>(
    o: crate::info::Listing<Truncation, V, Vec<Array>>,
) -> OpInfo {
    let all = Truncation::default();
    o.tolerance(128.0)
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
        .skip("jvp", "vectors and factors have a gauge; the derivative is checked on the invariants")
        .skip("second_order", "vectors and factors have a gauge; the derivative is checked on the invariants")
        .error_of("truncate", Truncation { abs: -1.0, ..all }, vec![any(F64, &[2, 2], 1)], &["abs", "-1"])
        .error_of(
            "truncate",
            Truncation { max_rank: Some(0), ..all },
            vec![any(F64, &[2, 2], 1)],
            &["max_rank"],
        )
        .error_of("svd", all, vec![any(F64, &[2], 1)], &["1", "at least 2"])
        .error_of("svd", all, vec![f64s(&[1, 1], &[f64::NAN])], &["[0, 0]", "not finite"])
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
    .tolerance(256.0)
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
        let (u, s, vh, _) = ops::svd_truncated(&x[0], &limits(&x[1], &x[2]));
        (&u * &s.expand_dims(&[0])).matmul(&vh)
    })
    .skip("rank_0", "a matrix is needed")
    .done()
}

/// At most two more than `r`, larger than a hundredth of `rel`.
fn limits(r: &Var, rel: &Var) -> Limits {
    Limits { max_rank: r + 2.0, rel: rel * 0.01, ..Limits::from(Truncation::default()) }
}

fn split() -> OpInfo {
    let listing = op(
        "split",
        |t: &Truncation, x: &[Var]| -> [Var; 2] { ops::split(&x[0], t).into() },
        |t, x| {
            let a = x[0].cast(floating(x[0].dtype));
            let (cuts, r) = cuts(t, &a);
            let (shape, batch) = extents(&a);
            let grams: Vec<Matrix> = cuts.iter().map(|c| Matrix::diagonal(r, r, &c.s)).collect();
            let grams = stack(a.dtype, [r, r], batch, &grams);
            let products: Vec<Matrix> = cuts.iter().map(Cut::product).collect();
            vec![stack(a.dtype, shape, batch, &products), grams.clone(), grams]
        },
    )
    .surface(surface!(Truncation; LinalgOps, TypedLinalgOps; split() |t| *t))
    .observe(|_, _, y| {
        let (m, r, n) = (y[0].shape[0], y[0].shape[1], y[1].shape[1]);
        vec![
            each_pair(&y[0], &y[1], [m, n], Matrix::times),
            each_matrix(&y[0], [r, r], |a| a.adjoint().times(&a)),
            each_matrix(&y[1], [r, r], |a| a.times(&a.adjoint())),
        ]
    });
    raw(listing)
}

/// The product of the factors, and, of `B = A2 M A1` on the bond, the traces of B and of its square.
fn split_invariants() -> OpInfo {
    fn trace(x: &Var) -> Var {
        let d = x.extract_diag(0, 1);
        let last = d.rank() - 1;
        d.reduce_sum(Some(&[last]))
    }
    let all = Truncation::default();
    op(
        "split_invariants",
        |t: &Truncation, x: &[Var]| {
            let (left, right) = ops::split(&x[0], t);
            let bond = right.matmul(&x[1]).matmul(&left);
            [left.matmul(&right), trace(&bond), trace(&bond.matmul(&bond))]
        },
        |t, x| {
            let (cuts, _) = cuts(t, &x[0]);
            let ([m, n], batch) = extents(&x[0]);
            let d = x[0].dtype;
            let bonds: Vec<Matrix> = (cuts.iter().zip(matrices(&x[1])))
                .map(|(c, middle)| {
                    let (left, right) = (c.u.scaled(&c.roots()), c.v.scaled(&c.roots()).adjoint());
                    right.times(&middle).times(&left)
                })
                .collect();
            let traces: Vec<C64> = bonds.iter().map(Matrix::trace).collect();
            let squares: Vec<C64> = bonds.iter().map(|b| b.times(b).trace()).collect();
            vec![
                stack(d, [m, n], batch, &cuts.iter().map(Cut::product).collect::<Vec<_>>()),
                stack_scalars(d, batch, &traces),
                stack_scalars(d, batch, &squares),
            ]
        },
    )
    .tolerance(256.0)
    .each(FLOATS, |o, d| {
        let of = |[m, n]: [usize; 2], values: &[&[f64]], seed| {
            let a = with_values(d, [m, n], values, seed);
            let shape: Vec<usize> = [n, m].iter().chain(&a.shape[2..]).copied().collect();
            vec![a, any(d, &shape, seed + 90)]
        };
        o.sample(Truncation::max_rank(2), of([3, 3], &[&[6.0, 4.0, 1.5]], 1))
            .sample(Truncation::max_rank(1), of([4, 2], &[&[5.0, 2.0]], 3))
            .sample(all, of([2, 4], &[&[5.0, 2.0]], 5))
            .sample(all, of([1, 1], &[&[2.0]], 7))
            .sample(Truncation { abs: 1.0, ..all }, of([3, 2], &[&[5.0, 0.5], &[6.0, 3.0]], 9))
            .sample(all, vec![any(d, &[0, 2], 11), any(d, &[2, 0], 12)])
            // Nothing that does not depend on the basis of the bond sees a multiplet.
            .each(DEGENERATE, |o, &(shape, s, r)| o.sample(Truncation::max_rank(r), of(shape, &[s], 13)))
    })
    .symbolic(Truncation::max_rank(2), &[&["n", "m"], &["m", "n"]])
    .symbolic(Truncation { rel: 0.1, ..all }, &[&["n", "m", "2"], &["m", "n", "2"]])
    .symbolic_call(&[(F64, &["n", "m"]), (I64, &[]), (F64, &[])], |x| {
        let (left, right) = ops::split(&x[0], &limits(&x[1], &x[2]));
        left.matmul(&right)
    })
    .skip("rank_0", "a matrix is needed")
    .done()
}

/// The best approximation of rank `r`, where its derivative is known in closed form at multiplets.
fn cut_product() -> OpInfo {
    op(
        "split_product",
        |&r: &usize, x: &[Var]| {
            let (left, right) = ops::split(&x[0], Truncation::max_rank(r));
            left.matmul(&right)
        },
        |&r, x| {
            let (cuts, _) = cuts(&Truncation::max_rank(r), &x[0]);
            let (shape, batch) = extents(&x[0]);
            stack(x[0].dtype, shape, batch, &cuts.iter().map(Cut::product).collect::<Vec<_>>())
        },
    )
    .tolerance(128.0)
    .each([F64, C64_], |o, d| {
        o.each(DEGENERATE, |o, &(shape, s, r)| {
            let (a, ct) = (with_values(d, shape, &[s], 21), any(d, &shape, 23));
            let pulled = cut_along(&a, r, &ct);
            let o = o.closed(r, vec![a.clone()], ct, vec![pulled]);
            // Where nothing is cut, the product is the matrix, and a second derivative is nothing but rounding.
            if r == s.len() { o.kink(r, vec![a]) } else { o.sample(r, vec![a]) }
        })
    })
    .sample(1, vec![any(F64, &[2, 0], 1)])
    .skip("rank_0", "a matrix is needed")
    .done()
}

/// U, Vh, the discarded values with 0 in place of the kept ones, the kept ones, and their reciprocals.
fn hints(a: &Array, r: usize) -> [Array; 5] {
    let ([m, n], batch) = extents(a);
    let (k, real) = (m.min(n), a.dtype.real());
    let s: Vec<Vec<f64>> = matrices(a).iter().map(|a| a.svd().1).collect();
    let of = |n: usize, f: &dyn Fn(usize, f64) -> f64| {
        let part = |s: &Vec<f64>| (0..n).map(|i| f(i, s[i])).collect();
        stack_vectors(real, n, batch, &s.iter().map(part).collect::<Vec<_>>())
    };
    [
        each_matrix(a, [m, k], |a| a.svd().0),
        each_matrix(a, [k, n], |a| a.svd().2.adjoint()),
        of(k, &|i, s| if i < r { 0.0 } else { s }),
        of(r, &|_, s| s),
        of(r, &|_, s| 1.0 / s),
    ]
}

/// The factors of rank `r`.
fn balanced(a: &Array, r: usize) -> [Array; 2] {
    let [m, n] = extents(a).0;
    let roots = |s: &[f64]| s[..r].iter().map(|s| s.sqrt()).collect::<Vec<_>>();
    let left = each_matrix(a, [m, r], |a| {
        let (u, s, _) = a.svd();
        u.scaled(&roots(&s))
    });
    let right = each_matrix(a, [r, n], |a| {
        let (_, s, v) = a.svd();
        v.scaled(&roots(&s)).adjoint()
    });
    [left, right]
}

/// Matrices and ranks that the equations of a split are checked on.
fn cases(d: DType) -> [(Array, usize); 4] {
    [
        (with_values(d, [3, 3], &[&[3.0, 2.0, 1.0]], 31), 2),
        (with_values(d, [4, 2], &[&[3.0, 1.0]], 33), 1),
        (with_values(d, [2, 3], &[&[2.0, 2.0]], 35), 2),
        (with_values(d, [3, 2], &[&[3.0, 1.0], &[2.0, 0.5]], 37), 1),
    ]
}

fn split_factors() -> OpInfo {
    let operands = |a: &Array, r| [vec![a.clone()], hints(a, r).to_vec()].concat();
    op(
        "split_factors",
        |_: &(), x: &[Var]| -> SmallVec<[Var; 1]> { apply_n(&Split, &x.iter().collect::<Vec<_>>(), 2) },
        |_, x| {
            let r = x[4].shape[0];
            let scaled = |q: Matrix, s: &[f64]| q.scaled(&s.iter().map(|s| s.sqrt()).collect::<Vec<_>>());
            let kept = vectors(&x[4]);
            let left: Vec<Matrix> =
                matrices(&x[1]).into_iter().zip(&kept).map(|(u, s)| scaled(u, s)).collect();
            let right: Vec<Matrix> = matrices(&x[2])
                .into_iter()
                .zip(&kept)
                .map(|(v, s)| scaled(v.adjoint(), s).adjoint())
                .collect();
            let ([m, n], batch) = extents(&x[0]);
            vec![stack(x[0].dtype, [m, r], batch, &left), stack(x[0].dtype, [r, n], batch, &right)]
        },
    )
    .tolerance(64.0)
    .each(FLOATS, |o, d| {
        o.each(cases(d), |o, (a, r)| o.sample((), operands(&a, r)))
            .sample((), operands(&any(d, &[0, 2], 1), 0))
    })
    .skip("rank_0", "a matrix is needed")
    .skip("jvp", HINTS)
    .skip("second_order", HINTS)
    .skip("decomposition", "it has no kernel, and no derivative through its parts")
    .error_of("split", (), vec![any(F64, &[2, 2], 1)], &["1", "6"])
    .done()
}

/// (F^H F)^-1 B
fn gram_solve() -> OpInfo {
    op(
        "gram_solve",
        |_: &(), x: &[Var]| apply1(&GramSolve, &x.iter().collect::<Vec<_>>()),
        |_, x| each_pair(&x[0], &x[2], extents(&x[2]).0, |f, b| f.adjoint().times(f).solve(b)),
    )
    .tolerance(64.0)
    .each(FLOATS, |o, d| {
        let operands = |a: &Array, r, columns| {
            let ([left, _], [.., inverse]) = (balanced(a, r), hints(a, r));
            let shape: Vec<usize> = [r, columns].iter().chain(&a.shape[2..]).copied().collect();
            vec![left, inverse, any(d, &shape, 41)]
        };
        o.each(cases(d), |o, (a, r)| o.sample((), operands(&a, r, 3)))
            .sample((), operands(&any(d, &[0, 2], 1), 0, 2))
    })
    .skip("rank_0", "a matrix is needed")
    .skip("jvp", HINTS)
    .skip("second_order", HINTS)
    .skip("decomposition", "it has no kernel, and no derivative through its parts")
    .error((), vec![any(F64, &[2, 2], 1)], &["1", "3"])
    .done()
}

/// X with F^H F X + X F^H F = C.
fn gram_lyapunov() -> OpInfo {
    op(
        "gram_lyapunov",
        |_: &(), x: &[Var]| apply1(&GramLyapunov, &x.iter().collect::<Vec<_>>()),
        |_, x| x[2].clone(),
    )
    .observe(|_, x, y| {
        vec![each_pair(&x[0], &y[0], extents(&y[0]).0, |f, y| {
            let g = f.adjoint().times(f);
            g.times(y).plus(1.0, &y.times(&g))
        })]
    })
    .tolerance(64.0)
    .each(FLOATS, |o, d| {
        let operands = |a: &Array, r| {
            let ([left, _], [_, _, _, kept, _]) = (balanced(a, r), hints(a, r));
            let shape: Vec<usize> = [r, r].iter().chain(&a.shape[2..]).copied().collect();
            vec![left, kept, any(d, &shape, 43)]
        };
        o.each(cases(d), |o, (a, r)| o.sample((), operands(&a, r)))
            .sample((), operands(&any(d, &[0, 2], 1), 0))
    })
    .skip("rank_0", "a matrix is needed")
    .skip("jvp", HINTS)
    .skip("second_order", HINTS)
    .skip("decomposition", "it has no kernel, and no derivative through its parts")
    .error((), vec![any(F64, &[2, 2], 1)], &["1", "3"])
    .done()
}

/// (W1, W2) with W1 - R W2^H G2^-1 = B1 and W2 - G1^-1 W1^H R = B2; of the adjoint system, or not.
fn couple() -> OpInfo {
    op(
        "couple",
        |&adjoint: &bool, x: &[Var]| -> SmallVec<[Var; 1]> {
            apply_n(&Couple { adjoint }, &x.iter().collect::<Vec<_>>(), 2)
        },
        |_, x| vec![x[8].clone(), x[9].clone()],
    )
    .observe(|&adjoint, x, y| {
        let [a, left, right] = [0, 1, 2].map(|i| matrices(&x[i]));
        let [w1, w2] = [0, 1].map(|i| matrices(&y[i]));
        let both: [Vec<Matrix>; 2] = [0, 1].map(|side| {
            (0..a.len())
                .map(|b| {
                    let residual = a[b].plus(-1.0, &left[b].times(&right[b]));
                    let grams = [left[b].adjoint().times(&left[b]), right[b].times(&right[b].adjoint())];
                    let [first, second] =
                        if adjoint { [&grams[1], &grams[0]] } else { [&grams[0], &grams[1]] };
                    if side == 0 {
                        let moved = second.solve(&w2[b].times(&residual.adjoint())).adjoint();
                        w1[b].plus(-1.0, &moved)
                    } else {
                        w2[b].plus(-1.0, &first.solve(&w1[b].adjoint().times(&residual)))
                    }
                })
                .collect()
        });
        let of = |i: usize| stack(y[i].dtype, extents(&y[i]).0, extents(&y[i]).1, &both[i]);
        vec![of(0), of(1)]
    })
    .tolerance(64.0)
    .each(FLOATS, |o, d| {
        let operands = |a: &Array, r| {
            let batch = &a.shape[2..];
            let with = |m: usize, n: usize| [m, n].iter().chain(batch).copied().collect::<Vec<_>>();
            let b = vec![any(d, &with(a.shape[0], r), 45), any(d, &with(r, a.shape[1]), 46)];
            [vec![a.clone()], balanced(a, r).to_vec(), hints(a, r).to_vec(), b].concat()
        };
        o.each([false, true], |o, adjoint| {
            o.each(cases(d), |o, (a, r)| o.sample(adjoint, operands(&a, r)))
                .sample(adjoint, operands(&any(d, &[0, 2], 1), 0))
        })
    })
    .skip("rank_0", "a matrix is needed")
    .skip("jvp", HINTS)
    .skip("second_order", HINTS)
    .skip("decomposition", "it has no kernel, and no derivative through its parts")
    .error(false, vec![any(F64, &[2, 2], 1)], &["1", "10"])
    .done()
}
