//! The split of a matrix over a bond.

use super::{
    truncate::{Cut, cuts, limits, raw},
    *,
};
use crate::{
    info::{op, surface},
    matrix::stack_scalars,
};
use tenferro_core_ops::Var;
use tenferro_linalg::{LinalgOps, LinalgRecorded, Truncation, TypedLinalgOps, ops};
use tenferro_tensor::C64;

pub(super) fn list() -> Vec<OpInfo> {
    vec![split(), split_invariants(), split_product()]
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
    raw("split", listing)
}

/// The product of the factors, and, of `B = A2 M A1` on the bond, the traces of B and of its square.
fn split_invariants() -> OpInfo {
    fn trace(x: &Var) -> Var {
        let d = x.extract_diag(0, 1);
        let last = d.rank().saturating_sub(1);
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
    // The gap at the cut, 2 / (2 - 1), for each of two factors; the trace of their square cancels.
    .tolerance(bound(4, 8.0))
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
        let (left, right) = ops::split(&x[0], limits(&x[1], &x[2]));
        left.matmul(&right)
    })
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", COMPOSED)
    .error_of("split", all, vec![any(F64, &[2], 1), any(F64, &[2, 2], 1)], &["1", "at least 2"])
    .done()
}

/// The best approximation of rank `r`, where its derivative is known in closed form at multiplets.
fn split_product() -> OpInfo {
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
    // The gap at the cut, 2 / (2 - 1), for each of two factors.
    .tolerance(bound(4, 4.0))
    .each([F64, C64_], |o, d| {
        o.each(DEGENERATE, |o, &(shape, s, r)| {
            let (a, ct) = (with_values(d, shape, &[s], 21), any(d, &shape, 23));
            let pulled = cut_along(&a, r, &ct);
            let o = o.closed(r, vec![a.clone()], ct, vec![pulled]);
            // Where nothing is cut, the product is linear: a second derivative is nothing but rounding.
            if r == s.len() { o.kink(r, vec![a]) } else { o.sample(r, vec![a]) }
        })
    })
    .sample(1, vec![any(F64, &[2, 0], 1)])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", COMPOSED)
    .symbolic(1, &[&["n", "m"]])
    .error_of("split", 1, vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .done()
}
