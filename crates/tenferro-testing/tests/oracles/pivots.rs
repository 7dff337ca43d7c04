//! The row permutations of packed factors, which the records of `lu_solve` lack and a derivative gives away.
//!
//! For the solution X of `M X = B`, where M is A or its adjoint, the cotangents C of X and G of B are related
//! by `M^H G = C`, from the right by `G M^H = C`. Of all permutations of each matrix that one is taken which
//! leaves the least residual; everything else of the record is then compared as always.

use crate::args::{Args, present};
use tenferro_core_ops::Var;
use tenferro_tensor::{C64, DType};
use tenferro_testing::Array;

/// A matrix of a stack with batch axes first.
struct Matrix<'a> {
    stack: &'a Array,
    index: usize,
}

impl Matrix<'_> {
    fn extents(&self) -> [usize; 2] {
        let rank = self.stack.rank();
        [self.stack.shape[rank - 2], self.stack.shape[rank - 1]]
    }

    fn at(&self, i: usize, j: usize) -> C64 {
        let [rows, _] = self.extents();
        self.stack.data[self.index + count(self.stack, 2) * (i + rows * j)].c()
    }
}

/// How many matrices or vectors there are before so many last axes.
fn count(a: &Array, axes: usize) -> usize {
    a.shape[..a.rank() - axes].iter().product()
}

/// The permutations p, with `A[p, :] = L U`, of the factors that are the first input.
pub(crate) fn recovered(a: &Args, left: bool, adjoint: bool) -> Result<Var, String> {
    let probe = a.record.probes.first().ok_or("no probe")?;
    let g = probe.vjp.first().and_then(|vjp| vjp.arrays.get(1)).ok_or("no cotangent of B")?;
    let packed = &a.record.inputs[0];
    let n = packed.shape[packed.rank() - 1];
    let mut found = vec![];
    for index in 0..count(packed, 2) {
        let matrix = |stack| Matrix { stack, index };
        let (packed, g, c) = (matrix(packed), matrix(g), matrix(&probe.cotangents[0]));
        let product = |i: usize, j: usize| {
            let l = |k: usize| if k == i { C64::new(1.0, 0.0) } else { packed.at(i, k) };
            (0..=i.min(j)).map(|k| l(k) * packed.at(k, j)).sum::<C64>()
        };
        let residual = |p: &[usize]| {
            // A[p, :] = L U
            let row = |i: usize| p.iter().position(|&q| q == i).expect("p is a permutation");
            let mh =
                |i: usize, j: usize| if adjoint { product(row(i), j) } else { product(row(j), i).conj() };
            let [rows, columns] = c.extents();
            let term = |i: usize, k: usize, j: usize| {
                if left { mh(i, j) * g.at(j, k) } else { g.at(i, j) * mh(j, k) }
            };
            let off =
                |i: usize, k: usize| ((0..n).map(|j| term(i, k, j)).sum::<C64>() - c.at(i, k)).norm_sqr();
            (0..rows).flat_map(|i| (0..columns).map(move |k| (i, k))).map(|(i, k)| off(i, k)).sum::<f64>()
        };
        let best = permutations(n).into_iter().min_by(|p, q| residual(p).total_cmp(&residual(q)));
        found.extend(best.unwrap_or_default().into_iter().map(|i| i as i64));
    }
    let batch = &packed.shape[..packed.rank() - 2];
    let shape: Vec<usize> = [n].into_iter().chain(batch.iter().copied()).collect();
    Ok(present(&Array::ints(DType::I64, &shape, &found)))
}

/// All of them, the identity first.
fn permutations(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for _ in 0..n {
        let longer = |p: Vec<usize>| {
            let next = (0..n).filter(|i| !p.contains(i)).collect::<Vec<_>>();
            next.into_iter().map(move |i| p.iter().copied().chain([i]).collect::<Vec<_>>())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}
