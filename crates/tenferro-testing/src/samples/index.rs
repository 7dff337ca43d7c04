//! Reading, adding and replacing at positions that are data.

use super::{C64 as C64_, *};
use crate::{
    array::Elem,
    info::{OpInfo, op, surface},
};
use tenferro_core_ops::{Dim, Var, apply1, ops};

/// `i` with entry `axis` replaced.
fn replaced(i: &[usize], axis: usize, k: usize) -> Vec<usize> {
    let mut i = i.to_vec();
    i[axis] = k;
    i
}

/// Repeated positions, out of order.
fn positions() -> Array {
    i64s(&[2, 0, 2, 1])
}

fn index_select() -> OpInfo {
    op(
        "index_select",
        |&axis: &usize, x: &[Var]| x[0].index_select(&x[1], axis),
        |&axis, x| {
            let mut shape = x[0].shape.clone();
            shape[axis] = x[1].shape[0];
            Array::from_fn(x[0].dtype, &shape, |i| {
                x[0].at(&replaced(i, axis, x[1].at(&[i[axis]]).int() as usize))
            })
        },
    )
    .surface(surface!(usize; index_select(1) |axis| *axis))
    .each(EVERY, |o, d| {
        o.sample(0, vec![any(d, &[3, 2], 1), positions()])
            .sample(1, vec![any(d, &[2, 3, 2], 2), positions()])
            .sample(0, vec![any(d, &[3], 3), i64s(&[])])
            .sample(1, vec![any(d, &[0, 3], 4), positions()])
    })
    .sample(0, vec![any(F64, &[3], 5), Array::ints(I32, &[2], &[2, 1])])
    .symbolic_of(0, &[(F64, &["n", "m"]), (I64, &["k"])])
    .symbolic_of(1, &[(F64, &["n", "m"]), (I64, &["k"])])
    .skip("rank_0", "an axis is needed")
    .error(0, vec![any(F64, &[3], 1), i64s(&[0, 3])], &["3", "up to, but not including, 3"])
    .error(0, vec![any(F64, &[3], 1), i64s(&[-1])], &["-1", "3"])
    .error(1, vec![any(F64, &[3], 1), i64s(&[0])], &["1"])
    .error(0, vec![any(F64, &[3], 1), any(F64, &[2], 2)], &["f64", "i64"])
    .error(0, vec![any(F64, &[3], 1), Array::ints(I64, &[1, 1], &[0])], &["2", "1"])
    .done()
}

fn index_add() -> OpInfo {
    op(
        "index_add",
        |&(axis, n): &(usize, usize), x: &[Var]| {
            apply1(&ops::IndexAdd { axis, extent: [Dim::Lit(n)] }, &[&x[0], &x[1]])
        },
        |&(axis, n), x| {
            let mut shape = x[0].shape.clone();
            shape[axis] = n;
            Array::from_fn(x[0].dtype, &shape, |i| {
                let hits = (0..x[0].shape[axis]).filter(|&k| x[1].at(&[k]).int() as usize == i[axis]);
                hits.map(|k| x[0].at(&replaced(i, axis, k))).fold(Elem::Int(0), Elem::plus)
            })
        },
    )
    .each(NUMBERS, |o, d| {
        o.sample((0, 3), vec![any(d, &[4, 2], 1), positions()])
            .sample((1, 5), vec![any(d, &[2, 4, 2], 2), positions()])
            .sample((0, 2), vec![any(d, &[0], 3), i64s(&[])])
            .sample((1, 3), vec![any(d, &[0, 4], 4), positions()])
    })
    .symbolic_call(&[(F64, &["k", "m"]), (I64, &["k"]), (F64, &["n"])], |x| {
        apply1(&ops::IndexAdd { axis: 0, extent: [x[2].extent(0)] }, &[&x[0], &x[1]])
    })
    .skip("rank_0", "an axis is needed")
    .error((0, 2), vec![any(F64, &[4], 1), positions()], &["2", "up to, but not including, 2"])
    .error((0, 3), vec![any(F64, &[3], 1), positions()], &["3", "4"])
    .error((0, 3), vec![any(Bool, &[4], 1), positions()], &["bool"])
    .skip("surfaces", IN_RULES)
    .done()
}

/// One position for every element of this shape, along an axis of extent 3.
fn beside(shape: &[usize]) -> Array {
    Array::uniform(I64, shape, 77, 0.0, 2.0)
}

fn gather() -> OpInfo {
    op(
        "gather",
        |&axis: &usize, x: &[Var]| x[0].gather(&x[1], axis),
        |&axis, x| {
            Array::from_fn(x[0].dtype, &x[1].shape, |i| {
                x[0].at(&replaced(i, axis, x[1].at(i).int() as usize))
            })
        },
    )
    .surface(surface!(usize; gather(1) |axis| *axis))
    .each(EVERY, |o, d| {
        o.sample(0, vec![any(d, &[3, 2], 1), beside(&[5, 2])])
            .sample(1, vec![any(d, &[2, 3, 2], 2), beside(&[2, 4, 2])])
            .sample(0, vec![any(d, &[3], 3), beside(&[0])])
            .sample(1, vec![any(d, &[0, 3], 4), beside(&[0, 2])])
    })
    .symbolic_of(0, &[(F64, &["n", "m"]), (I64, &["k", "m"])])
    .skip("rank_0", "an axis is needed")
    .error(0, vec![any(F64, &[3], 1), i64s(&[0, 3])], &["3", "up to, but not including, 3"])
    .error(0, vec![any(F64, &[3, 2], 1), beside(&[5, 3])], &["[5, 3]", "[3, 2]"])
    .error(2, vec![any(F64, &[3, 2], 1), beside(&[5, 2])], &["2"])
    .error(0, vec![any(F64, &[3, 2], 1), beside(&[5])], &["1", "2"])
    .error(0, vec![any(F64, &[3], 1), any(F64, &[2], 2)], &["f64", "i64"])
    .done()
}

fn scatter_add() -> OpInfo {
    op(
        "scatter_add",
        |&(axis, n): &(usize, usize), x: &[Var]| {
            apply1(&ops::ScatterAdd { axis, extent: [Dim::Lit(n)] }, &[&x[0], &x[1]])
        },
        |&(axis, n), x| {
            let mut shape = x[0].shape.clone();
            shape[axis] = n;
            Array::from_fn(x[0].dtype, &shape, |i| {
                let hits = (0..x[0].shape[axis]).map(|k| replaced(i, axis, k));
                let hits = hits.filter(|j| x[1].at(j).int() as usize == i[axis]);
                hits.map(|j| x[0].at(&j)).fold(Elem::Int(0), Elem::plus)
            })
        },
    )
    .each(NUMBERS, |o, d| {
        o.sample((0, 3), vec![any(d, &[5, 2], 1), beside(&[5, 2])])
            .sample((1, 4), vec![any(d, &[2, 4, 2], 2), beside(&[2, 4, 2])])
            .sample((0, 2), vec![any(d, &[0], 3), beside(&[0])])
    })
    .symbolic_call(&[(F64, &["k", "m"]), (I64, &["k", "m"]), (F64, &["n"])], |x| {
        apply1(&ops::ScatterAdd { axis: 0, extent: [x[2].extent(0)] }, &[&x[0], &x[1]])
    })
    .skip("rank_0", "an axis is needed")
    .error((0, 2), vec![any(F64, &[3], 1), i64s(&[0, 1, 2])], &["2", "up to, but not including, 2"])
    .error((0, 3), vec![any(F64, &[3], 1), i64s(&[0, 1])], &["[2]", "[3]"])
    .skip("surfaces", IN_RULES)
    .done()
}

fn take_axis() -> OpInfo {
    op(
        "take_axis",
        |&axis: &usize, x: &[Var]| x[0].take_axis(&x[1], axis),
        |&axis, x| {
            let (own, places) = (&x[0].shape, &x[1].shape);
            let shape = [&own[..axis], places, &own[axis + 1..]].concat();
            Array::from_fn(x[0].dtype, &shape, |i| {
                let k = x[1].at(&i[axis..axis + places.len()]).int() as usize;
                x[0].at(&[&i[..axis], &[k], &i[axis + places.len()..]].concat())
            })
        },
    )
    .surface(surface!(usize; take_axis(1) |axis| *axis))
    .each(EVERY, |o, d| {
        o.sample(0, vec![any(d, &[3, 2], 1), beside(&[2, 2])])
            .sample(1, vec![any(d, &[2, 3, 2], 2), beside(&[2, 1, 3])])
            .sample(1, vec![any(d, &[2, 3], 3), Array::ints(I64, &[], &[2])])
            .sample(0, vec![any(d, &[3], 4), beside(&[0, 2])])
    })
    .symbolic_of(0, &[(F64, &["n", "m"]), (I64, &["k", "2"])])
    .error(2, vec![any(F64, &[3, 2], 1), beside(&[2])], &["2"])
    .error_of("index_select", 0, vec![any(F64, &[3], 1), i64s(&[4])], &["4", "3"])
    .done()
}

/// Whether `i` is in the block at `starts`, and where.
fn inside(i: &[usize], starts: &Array, block: &[usize]) -> Option<Vec<usize>> {
    let at = |k: usize| i[k].checked_sub(starts.at(&[k]).int() as usize).filter(|&j| j < block[k]);
    (0..i.len()).map(at).collect()
}

fn dynamic_slice() -> OpInfo {
    fn dims(shape: &[usize]) -> Vec<Dim> {
        shape.iter().map(|&n| Dim::Lit(n)).collect()
    }
    op(
        "dynamic_slice",
        |shape: &Vec<usize>, x: &[Var]| x[0].dynamic_slice(&x[1], &dims(shape)),
        |shape, x| {
            Array::from_fn(x[0].dtype, shape, |i| {
                x[0].at(&(0..i.len()).map(|k| i[k] + x[1].at(&[k]).int() as usize).collect::<Vec<_>>())
            })
        },
    )
    .surface(surface!(Vec<usize>; dynamic_slice(1) |shape| shape))
    .each(EVERY, |o, d| {
        o.sample(vec![2, 3], vec![any(d, &[4, 5], 1), i64s(&[2, 1])])
            .sample(vec![2], vec![any(d, &[2], 2), i64s(&[0])])
            .sample(vec![], vec![any(d, &[], 3), i64s(&[])])
            .sample(vec![0, 2], vec![any(d, &[3, 2], 4), i64s(&[3, 0])])
    })
    .symbolic_of(vec![1, 1], &[(F64, &["n", "m"]), (I64, &["2"])])
    .symbolic_call(&[(F64, &["n", "m"]), (I64, &["2"])], |x| x[0].dynamic_slice(&x[1], &x[0].shape()))
    .error(vec![2], vec![any(F64, &[4], 1), i64s(&[3])], &["3", "2", "4"])
    .error(vec![2], vec![any(F64, &[4], 1), i64s(&[-1])], &["-1"])
    .error(vec![5], vec![any(F64, &[4], 1), i64s(&[0])], &["5", "at most 4"])
    .error(vec![2, 2], vec![any(F64, &[4], 1), i64s(&[0])], &["2", "1"])
    .error(vec![2], vec![any(F64, &[4], 1), i64s(&[0, 0])], &["2", "1"])
    .error(vec![2], vec![any(F64, &[4], 1), any(F64, &[1], 1)], &["f64", "i64"])
    .done()
}

fn dynamic_update_slice() -> OpInfo {
    op(
        "dynamic_update_slice",
        |_: &(), x: &[Var]| x[0].dynamic_update_slice(&x[1], &x[2]),
        |_, x| {
            Array::from_fn(x[0].dtype, &x[0].shape, |i| match inside(i, &x[2], &x[1].shape) {
                Some(j) => x[1].at(&j),
                None => x[0].at(i),
            })
        },
    )
    .surface(surface!((); dynamic_update_slice(1, 2)))
    .overlooks(|_, x, i| i == 0 && x[0].shape == x[1].shape, "all of it is replaced")
    .each(EVERY, |o, d| {
        o.sample((), vec![any(d, &[4, 5], 1), any(d, &[2, 3], 2), i64s(&[2, 1])])
            .sample((), vec![any(d, &[2], 3), any(d, &[2], 4), i64s(&[0])])
            .sample((), vec![any(d, &[], 5), any(d, &[], 6), i64s(&[])])
            .sample((), vec![any(d, &[3, 2], 7), any(d, &[0, 2], 8), i64s(&[3, 0])])
    })
    .symbolic_of((), &[(F64, &["n", "m"]), (F64, &["1", "1"]), (I64, &["2"])])
    .symbolic_of((), &[(F64, &["n", "m"]), (F64, &["n", "m"]), (I64, &["2"])])
    .error((), vec![any(F64, &[4], 1), any(F64, &[2], 2), i64s(&[3])], &["3", "2", "4"])
    .error((), vec![any(F64, &[4], 1), any(F64, &[1, 1], 2), i64s(&[3])], &["[1, 1]", "[4]"])
    .error((), vec![any(F64, &[4], 1), any(C64_, &[2], 2), i64s(&[0])], &["c64", "f64"])
    .done()
}

pub(super) fn list() -> Vec<OpInfo> {
    vec![
        index_select(),
        index_add(),
        gather(),
        scatter_add(),
        take_axis(),
        dynamic_slice(),
        dynamic_update_slice(),
    ]
}
