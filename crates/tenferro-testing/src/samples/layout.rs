//! Operations that move elements: order, shape, parts, surroundings, diagonals, triangles, joining.

use super::{C64 as C64_, *};
use crate::{
    array::Elem,
    info::{OpInfo, Surface, listed, op, surface, typed},
};
use tenferro_core_ops::{Dim, Extent, Var, apply1, broadcast_to, build, ops};
use tenferro_runtime::{EagerTensor, TensorExt, TracedTensor, TypedTensorExt};
use tenferro_tensor::{Result, Tensor, TypedTensor, dispatch};

fn dims(shape: &[usize]) -> Vec<Dim> {
    shape.iter().map(|&n| Dim::Lit(n)).collect()
}

type Ints = Vec<usize>;

fn transpose() -> OpInfo {
    op("transpose", |p: &Ints, x: &[Var]| x[0].transpose(p), |p, x| x[0].permuted(p))
        .surface(surface!(Ints; transpose() |p| p))
        .each(EVERY, |o, d| {
            o.sample(vec![1, 0], vec![any(d, &[3, 4], 1)])
                .sample(vec![2, 0, 1], vec![any(d, &[2, 3, 4], 2)])
                .sample(vec![1, 2, 0, 3], vec![any(d, &[2, 1, 3, 2], 3)])
                .sample(vec![0, 1], vec![any(d, &[2, 3], 4)])
                .sample(vec![], vec![any(d, &[], 5)])
                .sample(vec![1, 0], vec![any(d, &[2, 0], 6)])
        })
        .symbolic(vec![1, 0], &[&["n", "m"]])
        .symbolic(vec![2, 0, 1], &[&["n", "m", "k"]])
        .error(vec![0], vec![any(F64, &[2, 3], 1)], &["1", "2"])
        .error(vec![0, 2], vec![any(F64, &[2, 3], 1)], &["2"])
        .error(vec![1, 1], vec![any(F64, &[2, 3], 1)], &["1", "distinct"])
        .done()
}

fn matrix_forms() -> [OpInfo; 2] {
    fn swapped(x: &Array) -> Array {
        let mut perm: Vec<usize> = (0..x.rank()).collect();
        perm.swap(0, 1);
        x.permuted(&perm)
    }
    let adjoint = op(
        "adjoint",
        |_: &(), x: &[Var]| x[0].adjoint(),
        |_, x| {
            swapped(&x[0]).map(x[0].dtype, |e| match e {
                Elem::Float(z) => Elem::Float(z.conj()),
                e => e,
            })
        },
    )
    .surface(surface!((); adjoint()));
    let plain = op("matrix_transpose", |_: &(), x: &[Var]| x[0].matrix_transpose(), |_, x| swapped(&x[0]))
        .surface(surface!((); matrix_transpose()));
    [adjoint, plain].map(|o| {
        o.each(EVERY, |o, d| {
            o.sample((), vec![any(d, &[3, 4], 1)])
                .sample((), vec![any(d, &[2, 3, 2], 2)])
                .sample((), vec![any(d, &[0, 2], 3)])
        })
        .symbolic((), &[&["n", "m", "k"]])
        .skip("rank_0", "a matrix is needed")
        .error_of("matrix_transpose", (), vec![any(F64, &[2], 1)], &["1", "at least 2"])
        .done()
    })
}

fn reshape() -> OpInfo {
    op("reshape", |s: &Ints, x: &[Var]| x[0].reshape(&dims(s)), |s, x| x[0].reshape(s))
        .surface(surface!(Ints; reshape() |s| s))
        .each(EVERY, |o, d| {
            o.sample(vec![6, 2], vec![any(d, &[3, 4], 1)])
                .sample(vec![12], vec![any(d, &[2, 3, 2], 2)])
                .sample(vec![2, 2, 1, 3], vec![any(d, &[4, 3], 3)])
                .sample(vec![], vec![any(d, &[1, 1], 4)])
                .sample(vec![1], vec![any(d, &[], 5)])
                .sample(vec![0, 5], vec![any(d, &[2, 0], 6)])
        })
        .symbolic_call(&[(F64, &["n", "m"])], |x| x[0].reshape(&[x[0].extent(0).mul(&x[0].extent(1))]))
        .symbolic_call(&[(F64, &["n", "m", "k"])], |x| {
            let [n, m, k] = [0, 1, 2].map(|i| x[0].extent(i));
            x[0].transpose(&[1, 0, 2]).reshape(&[m, n.mul(&k)])
        })
        .error(vec![5], vec![any(F64, &[2, 3], 1)], &["[2, 3]", "[5]"])
        .done()
}

fn expand_squeeze() -> [OpInfo; 2] {
    let expand = op(
        "expand_dims",
        |a: &Ints, x: &[Var]| x[0].expand_dims(a),
        |a, x| {
            let mut own = x[0].shape.iter();
            let shape: Vec<usize> = (0..x[0].rank() + a.len())
                .map(|i| if a.contains(&i) { 1 } else { *own.next().expect("one per old axis") })
                .collect();
            x[0].reshape(&shape)
        },
    )
    .surface(surface!(Ints; expand_dims() |a| a))
    .each([F64, C64_, I64], |o, d| {
        o.sample(vec![0], vec![any(d, &[3, 4], 1)])
            .sample(vec![3, 1], vec![any(d, &[3, 4], 2)])
            .sample(vec![0], vec![any(d, &[], 3)])
            .sample(vec![1], vec![any(d, &[0], 4)])
    })
    .symbolic(vec![1], &[&["n", "m"]])
    .error(vec![3], vec![any(F64, &[2], 1)], &["3"])
    .error(vec![0, 0], vec![any(F64, &[2], 1)], &["0", "distinct"])
    .done();
    let squeeze = op(
        "squeeze",
        |a: &Ints, x: &[Var]| x[0].squeeze(a),
        |a, x| {
            let kept = (0..x[0].rank()).filter(|i| !a.contains(i)).map(|i| x[0].shape[i]);
            x[0].reshape(&kept.collect::<Vec<_>>())
        },
    )
    .surface(surface!(Ints; squeeze() |a| a))
    .each([F64, C64_, I64], |o, d| {
        o.sample(vec![0], vec![any(d, &[1, 4], 1)])
            .sample(vec![3, 1], vec![any(d, &[3, 1, 4, 1], 2)])
            .sample(vec![0], vec![any(d, &[1], 3)])
            .sample(vec![1], vec![any(d, &[0, 1], 4)])
    })
    .symbolic(vec![1], &[&["n", "1", "m"]])
    .error(vec![3], vec![any(F64, &[2], 1)], &["3"])
    .error(vec![0], vec![any(F64, &[2, 0], 1)], &["2", "1"])
    .error(vec![0], vec![any(F64, &[2], 1)], &["2", "1"])
    .done();
    [expand, squeeze]
}

fn broadcasts() -> Vec<OpInfo> {
    type P = (Ints, Ints);
    let in_dim = op(
        "broadcast_in_dim",
        |(s, a): &P, x: &[Var]| x[0].broadcast_in_dim(&dims(s), a),
        |(s, a), x| {
            Array::from_fn(x[0].dtype, s, |i| {
                let own = |(k, &n): (usize, &usize)| if n == 1 { 0 } else { i[a[k]] };
                x[0].at(&x[0].shape.iter().enumerate().map(own).collect::<Vec<_>>())
            })
        },
    )
    .surface(surface!(P; broadcast_in_dim() |p| &p.0, &p.1))
    .each(EVERY, |o, d| {
        let p = |s: &[usize], a: &[usize]| (s.to_vec(), a.to_vec());
        o.sample(p(&[3, 4], &[1]), vec![any(d, &[4], 1)])
            .sample(p(&[3, 4], &[0]), vec![any(d, &[3], 2)])
            .sample(p(&[4, 2, 3], &[2, 0]), vec![any(d, &[3, 4], 3)])
            .sample(p(&[3, 4], &[0, 1]), vec![any(d, &[1, 4], 4)])
            .sample(p(&[2, 5, 3], &[2, 1]), vec![any(d, &[3, 1], 5)])
            .sample(p(&[2, 3], &[]), vec![any(d, &[], 6)])
            .sample(p(&[2, 0], &[0]), vec![any(d, &[2], 7)])
            .sample(p(&[0], &[0]), vec![any(d, &[1], 8)])
            .sample(p(&[2, 1], &[0, 1]), vec![any(d, &[2, 1], 9)])
    })
    .symbolic_call(&[(F64, &["n"]), (F64, &["n", "m"])], |x| x[0].broadcast_in_dim(&x[1].shape(), &[0]))
    .symbolic_call(&[(F64, &["1", "m"]), (F64, &["n", "m"])], |x| {
        x[0].broadcast_in_dim(&x[1].shape(), &[0, 1])
    })
    .symbolic_call(&[(F64, &["m", "n"]), (F64, &["n", "k", "m"])], |x| {
        x[0].broadcast_in_dim(&x[1].shape(), &[2, 0])
    })
    .error((vec![3], vec![0]), vec![any(F64, &[2], 1)], &["2", "3"])
    .error((vec![2, 2], vec![2]), vec![any(F64, &[2], 1)], &["2"])
    .error((vec![2], vec![]), vec![any(F64, &[2], 1)], &["0", "1"])
    .error((vec![2, 2], vec![0, 0]), vec![any(F64, &[2, 2], 1)], &["0", "distinct"])
    .done();
    let to = op(
        "broadcast_to",
        |s: &Ints, x: &[Var]| broadcast_to(&x[0], &dims(s)),
        |s, x| {
            let (own, lead) = (&x[0].shape, s.len() - x[0].rank());
            Array::from_fn(x[0].dtype, s, |i| {
                x[0].at(&own
                    .iter()
                    .zip(&i[lead..])
                    .map(|(&n, &i)| if n == 1 { 0 } else { i })
                    .collect::<Ints>())
            })
        },
    )
    .surface(surface!(Ints; broadcast_to() |s| s))
    .each([F64, C64_, I32], |o, d| {
        o.sample(vec![2, 3, 4], vec![any(d, &[3, 4], 1)])
            .sample(vec![3, 4], vec![any(d, &[1, 4], 2)])
            .sample(vec![3, 0], vec![any(d, &[], 3)])
    })
    .symbolic_call(&[(F64, &["m"]), (F64, &["n", "m"])], |x| broadcast_to(&x[0], &x[1].shape()))
    .error(vec![3], vec![any(F64, &[2, 3], 1)], &["1", "at least 2"])
    .error(vec![2, 2], vec![any(F64, &[3], 1)], &["3", "2"])
    .done();
    let like = op(
        "batch_like",
        |_: &(), x: &[Var]| x[0].batch_like(&x[1]),
        |_, x| {
            let (own, model) = (x[0].rank(), &x[1].shape);
            let shape: Vec<usize> = x[0].shape.iter().chain(&model[own..]).copied().collect();
            Array::from_fn(x[0].dtype, &shape, |i| x[0].at(&i[..own]))
        },
    )
    .surface(surface!((); batch_like(1)))
    .overlooks(|_, _, i| i == 1, "only its extents are asked for")
    .each([F64, C64_, I32], |o, d| {
        o.sample((), vec![any(d, &[3, 2], 1), any(d, &[3, 2, 4], 2)])
            .sample((), vec![any(d, &[], 3), any(d, &[2], 4)])
            .sample((), vec![any(d, &[2], 5), any(d, &[5, 0], 6)])
    })
    .symbolic((), &[&["n"], &["n", "m"]])
    .error((), vec![any(F64, &[2, 3], 1), any(F64, &[2], 2)], &["1", "at least 2"])
    .skip("surfaces", IN_RULES)
    .done();
    vec![in_dim, to, like]
}

/// Starts, limits, steps.
type Range = (Ints, Ints, Ints);

fn slices() -> Vec<OpInfo> {
    let p = |a: &[usize], b: &[usize], c: &[usize]| (a.to_vec(), b.to_vec(), c.to_vec());
    let slice = op(
        "slice",
        |(a, b, c): &Range, x: &[Var]| x[0].slice(&dims(a), &dims(b), c),
        |(a, b, c), x| {
            let shape: Vec<usize> = (0..a.len()).map(|k| (a[k]..b[k]).step_by(c[k]).count()).collect();
            Array::from_fn(x[0].dtype, &shape, |i| {
                x[0].at(&(0..i.len()).map(|k| a[k] + c[k] * i[k]).collect::<Vec<_>>())
            })
        },
    )
    .surface(surface!(Range; slice() |p| &p.0, &p.1, &p.2))
    .each(EVERY, |o, d| {
        o.sample(p(&[1, 0], &[3, 4], &[1, 1]), vec![any(d, &[3, 4], 1)])
            .sample(p(&[0, 1], &[5, 7], &[2, 3]), vec![any(d, &[5, 8], 2)])
            .sample(p(&[1], &[6], &[2]), vec![any(d, &[7], 3)])
            .sample(p(&[1], &[6], &[9]), vec![any(d, &[7], 4)])
            .sample(p(&[2, 0], &[2, 3], &[1, 2]), vec![any(d, &[4, 3], 5)])
            .sample(p(&[2], &[2], &[3]), vec![any(d, &[4], 6)])
            .sample(p(&[], &[], &[]), vec![any(d, &[], 7)])
            .sample(p(&[0, 0], &[0, 2], &[1, 1]), vec![any(d, &[0, 3], 8)])
    })
    .symbolic_call(&[(F64, &["n", "m"])], |x| x[0].slice(&dims(&[0, 0]), &x[0].shape(), &[2, 3]))
    .symbolic_call(&[(F64, &["n"]), (F64, &["m"])], |x| {
        // From n to n + m of a vector of n + m elements.
        let both = build::concatenate(x, 0);
        both.slice_axis(0, x[0].extent(0), both.extent(0))
    })
    .symbolic_call(&[(F64, &["n"]), (F64, &["m"])], |x| {
        let both = build::concatenate(x, 0);
        both.slice(&[x[0].extent(0)], &[both.extent(0)], &[2])
    })
    .error(p(&[0], &[4], &[1]), vec![any(F64, &[3], 1)], &["4", "3"])
    .error(p(&[2], &[1], &[1]), vec![any(F64, &[3], 1)], &["1", "2"])
    .error(p(&[0], &[3], &[0]), vec![any(F64, &[3], 1)], &["0", "at least 1"])
    .error(p(&[0, 0], &[1, 1], &[1, 1]), vec![any(F64, &[3], 1)], &["2, 2 and 2", "1 each"])
    .error(p(&[0, 3], &[], &[1]), vec![any(F64, &[3], 1)], &["2, 0 and 1", "1 each"])
    .done();
    type P = (usize, usize, usize);
    let along = op(
        "slice_axis",
        |&(axis, a, b): &P, x: &[Var]| x[0].slice_axis(axis, a, b),
        |&(axis, a, b), x| {
            let mut shape = x[0].shape.clone();
            shape[axis] = b - a;
            Array::from_fn(x[0].dtype, &shape, |i| {
                let mut i = i.to_vec();
                i[axis] += a;
                x[0].at(&i)
            })
        },
    )
    .surface(surface!(P; slice_axis() |p| p.0, p.1, p.2))
    .each([F64, C64_, F32, Bool], |o, d| {
        o.sample((0, 1, 3), vec![any(d, &[3, 2], 1)])
            .sample((1, 0, 1), vec![any(d, &[2, 3, 2], 2)])
            .sample((0, 1, 1), vec![any(d, &[3], 3)])
    })
    .symbolic((0, 0, 2), &[&["2", "m"]])
    .skip("rank_0", "an axis is needed")
    .error((1, 0, 1), vec![any(F64, &[3], 1)], &["1"])
    .error_of("slice", (0, 0, 4), vec![any(F64, &[3], 1)], &["4", "3"])
    .done();
    vec![slice, along]
}

fn reverse() -> OpInfo {
    op(
        "reverse",
        |a: &Ints, x: &[Var]| x[0].reverse(a),
        |a, x| {
            Array::from_fn(x[0].dtype, &x[0].shape, |i| {
                let own = |(k, &i): (usize, &usize)| if a.contains(&k) { x[0].shape[k] - 1 - i } else { i };
                x[0].at(&i.iter().enumerate().map(own).collect::<Vec<_>>())
            })
        },
    )
    .surface(surface!(Ints; reverse() |a| a))
    .each(EVERY, |o, d| {
        o.sample(vec![0], vec![any(d, &[3, 4], 1)])
            .sample(vec![2, 0], vec![any(d, &[2, 3, 4], 2)])
            .sample(vec![], vec![any(d, &[], 3)])
            .sample(vec![1], vec![any(d, &[2, 0], 4)])
    })
    .symbolic(vec![1], &[&["n", "m"]])
    .error(vec![2], vec![any(F64, &[2, 3], 1)], &["2"])
    .error(vec![0, 0], vec![any(F64, &[2, 3], 1)], &["0", "distinct"])
    .done()
}

fn pad() -> OpInfo {
    let p = |a: &[usize], b: &[usize], c: &[usize]| (a.to_vec(), b.to_vec(), c.to_vec());
    op(
        "pad",
        |(a, b, c): &Range, x: &[Var]| x[0].pad(&x[1], &dims(a), &dims(b), c),
        |(a, b, c), x| {
            let shape: Vec<usize> = (0..a.len())
                .map(|k| a[k] + b[k] + x[0].shape[k] + x[0].shape[k].saturating_sub(1) * c[k])
                .collect();
            Array::from_fn(x[0].dtype, &shape, |i| {
                let own = |k: usize| {
                    let j = i[k].checked_sub(a[k])?;
                    (j % (c[k] + 1) == 0 && j / (c[k] + 1) < x[0].shape[k]).then_some(j / (c[k] + 1))
                };
                (0..i.len())
                    .map(own)
                    .collect::<Option<Vec<_>>>()
                    .map_or_else(|| x[1].at(&[]), |i| x[0].at(&i))
            })
        },
    )
    .surface(surface!(Range; pad(1) |p| &p.0, &p.1, &p.2))
    .overlooks(
        |(a, b, c), _, i| i == 1 && a.iter().chain(b).chain(c).all(|&n| n == 0),
        "there is no element between or beside those of the operand",
    )
    .each(EVERY, |o, d| {
        let with = |shape: &[usize], seed| vec![any(d, shape, seed), any(d, &[], seed + 50)];
        o.sample(p(&[1, 0], &[2, 1], &[0, 0]), with(&[2, 3], 1))
            .sample(p(&[1, 2], &[0, 1], &[2, 1]), with(&[3, 2], 2))
            .sample(p(&[0], &[0], &[3]), with(&[4], 3))
            .sample(p(&[1], &[2], &[3]), with(&[1], 4))
            .sample(p(&[2], &[1], &[1]), with(&[0], 5))
            .sample(p(&[], &[], &[]), with(&[], 6))
            .sample(p(&[0, 0], &[0, 0], &[0, 0]), with(&[2, 3], 7))
    })
    .symbolic(p(&[1, 0], &[2, 1], &[0, 0]), &[&["n", "m"], &[]])
    .symbolic(p(&[1, 2], &[0, 1], &[2, 1]), &[&["n", "m"], &[]])
    .symbolic_call(&[(F64, &["n"]), (F64, &[]), (F64, &["m"])], |x| {
        x[0].pad(&x[1], &[x[2].extent(0)], &[x[0].extent(0)], &[0])
    })
    .error(p(&[1], &[1], &[0]), vec![any(F64, &[2, 3], 1), any(F64, &[], 2)], &["1, 1 and 1", "2 each"])
    .error(p(&[0, 1], &[], &[0]), vec![any(F64, &[2], 1), any(F64, &[], 2)], &["2, 0 and 1", "1 each"])
    .error(p(&[0], &[], &[]), vec![any(F64, &[2], 1), any(F64, &[], 2)], &["1, 0 and 0", "1 each"])
    // What is inside does not reach the cotangent of the padding, however large it is.
    .closed(
        p(&[1], &[1], &[1]),
        vec![f64s(&[2], &[1.0, 2.0]), Array::scalar(F64, 0.0)],
        f64s(&[5], &[1.0, 1e20, 2.0, -1e20, 4.0]),
        vec![f64s(&[2], &[1e20, -1e20]), Array::scalar(F64, 7.0)],
    )
    .error(p(&[1], &[1], &[0]), vec![any(F64, &[2], 1), any(F64, &[1], 2)], &["[1]", "scalar"])
    .error(p(&[1], &[1], &[0]), vec![any(F64, &[2], 1), any(C64_, &[], 2)], &["c64", "f64"])
    .done()
}

fn diagonals() -> Vec<OpInfo> {
    type P = (usize, usize);
    let extract = op(
        "extract_diag",
        |&(a, b): &P, x: &[Var]| x[0].extract_diag(a, b),
        |&(a, b), x| {
            let kept: Vec<usize> = (0..x[0].rank()).filter(|i| *i != a && *i != b).collect();
            let mut shape: Vec<usize> = kept.iter().map(|&i| x[0].shape[i]).collect();
            shape.push(x[0].shape[a].min(x[0].shape[b]));
            Array::from_fn(x[0].dtype, &shape, |i| {
                let mut at = vec![i[kept.len()]; x[0].rank()];
                kept.iter().zip(i).for_each(|(&k, &i)| at[k] = i);
                x[0].at(&at)
            })
        },
    )
    .surface(surface!(P; extract_diag() |p| p.0, p.1))
    .each(EVERY, |o, d| {
        o.sample((0, 1), vec![any(d, &[3, 3], 1)])
            .sample((0, 1), vec![any(d, &[3, 5], 2)])
            .sample((2, 0), vec![any(d, &[4, 2, 3], 3)])
            .sample((1, 2), vec![any(d, &[2, 3, 3], 4)])
            .sample((0, 1), vec![any(d, &[0, 2], 5)])
    })
    .symbolic((0, 1), &[&["n", "n"]])
    .symbolic((0, 1), &[&["n", "m"]])
    .symbolic((2, 0), &[&["n", "m", "k"]])
    .skip("rank_0", "two axes are needed")
    .error((0, 0), vec![any(F64, &[2, 2], 1)], &["(0, 0)"])
    .error((0, 2), vec![any(F64, &[2, 2], 1)], &["(0, 2)", "2"])
    .done();
    let embed = op(
        "embed_diag",
        |&(a, b): &P, x: &[Var]| x[0].embed_diag(a, b),
        |&(a, b), x| {
            let (low, high) = (a.min(b), a.max(b));
            let (rest, n) = x[0].shape.split_at(x[0].rank() - 1);
            let mut shape = rest.to_vec();
            shape.insert(low, n[0]);
            shape.insert(high, n[0]);
            Array::from_fn(x[0].dtype, &shape, |i| {
                let mut at: Vec<usize> = (0..i.len()).filter(|k| *k != a && *k != b).map(|k| i[k]).collect();
                at.push(i[a]);
                if i[a] == i[b] { x[0].at(&at) } else { Elem::Int(0) }
            })
        },
    )
    .surface(surface!(P; embed_diag() |p| p.0, p.1))
    .each(EVERY, |o, d| {
        o.sample((0, 1), vec![any(d, &[3], 1)])
            .sample((2, 0), vec![any(d, &[4, 3], 2)])
            .sample((1, 2), vec![any(d, &[2, 3], 3)])
            .sample((0, 1), vec![any(d, &[0], 4)])
    })
    .symbolic((0, 1), &[&["n"]])
    .symbolic((0, 2), &[&["n", "m"]])
    .skip("rank_0", "an axis is needed")
    .error((0, 0), vec![any(F64, &[2], 1)], &["(0, 0)"])
    .error((0, 2), vec![any(F64, &[2], 1)], &["(0, 2)", "2"])
    .error((0, 1), vec![any(F64, &[], 1)], &["0"])
    .done();
    vec![extract, embed]
}

fn triangles() -> Vec<OpInfo> {
    const NO_TRIANGLE: &str = "the triangle has no elements";
    fn kept(x: &Array, f: impl Fn(isize) -> bool) -> Array {
        Array::from_fn(x.dtype, &x.shape, |i| {
            if f(i[1] as isize - i[0] as isize) { x.at(i) } else { Elem::Int(0) }
        })
    }
    let low = op("tril", |&k: &isize, x: &[Var]| x[0].tril(k), |&k, x| kept(&x[0], |d| d <= k))
        .surface(surface!(isize; tril() |k| *k))
        .overlooks(|&k, x, _| k.saturating_add_unsigned(x[0].shape[0]) <= 0, NO_TRIANGLE);
    let high = op("triu", |&k: &isize, x: &[Var]| x[0].triu(k), |&k, x| kept(&x[0], |d| d >= k))
        .surface(surface!(isize; triu() |k| *k))
        .overlooks(|&k, x, _| k >= x[0].shape[1] as isize, NO_TRIANGLE);
    [low, high]
        .map(|o| {
            o.each(NUMBERS, |o, d| {
                o.sample(0, vec![any(d, &[3, 3], 1)])
                    .sample(1, vec![any(d, &[3, 5], 2)])
                    .sample(-1, vec![any(d, &[4, 3], 3)])
                    .sample(0, vec![any(d, &[2, 3, 2], 4)])
                    .sample(-9, vec![any(d, &[2, 3], 5)])
                    .sample(9, vec![any(d, &[2, 3], 6)])
                    .sample(0, vec![any(d, &[0, 2], 7)])
                    .sample(0, vec![any(d, &[2, 0], 8)])
            })
            .kink(isize::MAX, vec![any(F64, &[2, 3], 9)])
            .kink(isize::MIN, vec![any(F64, &[2, 3], 9)])
            .symbolic(0, &[&["n", "m"]])
            .symbolic(-1, &[&["n", "m", "k"]])
            .skip("rank_0", "a matrix is needed")
            .error(0, vec![any(F64, &[2], 1)], &["1", "at least 2"])
            .error(0, vec![any(Bool, &[2, 2], 1)], &["bool"])
            .done()
        })
        .into()
}

fn joined(axis: usize, x: &[Array], dtype: DType) -> Array {
    let mut shape = x[0].shape.clone();
    shape[axis] = x.iter().map(|a| a.shape[axis]).sum();
    Array::from_fn(dtype, &shape, |i| {
        let mut i = i.to_vec();
        for a in x {
            if i[axis] < a.shape[axis] {
                return a.at(&i);
            }
            i[axis] -= a.shape[axis];
        }
        unreachable!("the extents add up")
    })
}

/// The associated function `name` of every tier on a list of tensors.
macro_rules! joining {
    ($name:ident) => {
        Surface::<usize> {
            direct: |&axis, x, backend| {
                listed(<Tensor as TensorExt>::$name(&x.iter().collect::<Vec<_>>(), axis, backend))
            },
            typed: |&axis, x, backend| {
                dispatch!(x[0].dtype(), T => {
                    let parts = x.iter().map(typed::<T>).collect::<Result<Vec<_>>>()?;
                    listed(<TypedTensor<T> as TypedTensorExt<T>>::$name(&parts, axis, backend))
                })
            },
            eager: |&axis, _, x| listed(EagerTensor::$name(&x.iter().collect::<Vec<_>>(), axis)),
            traced: |&axis, x| listed(TracedTensor::$name(&x.iter().collect::<Vec<_>>(), axis)),
        }
    };
}

fn joins() -> Vec<OpInfo> {
    let concatenate =
        op("concatenate", |&a: &usize, x: &[Var]| build::concatenate(x, a), |&a, x| joined(a, x, x[0].dtype))
            .surface(joining!(concatenate))
            .promotes()
            .each(EVERY, |o, d| {
                o.sample(0, vec![any(d, &[3, 2], 1), any(d, &[1, 2], 2)])
                    .sample(1, vec![any(d, &[3, 2], 1), any(d, &[3, 4], 2), any(d, &[3, 1], 3)])
                    .sample(1, vec![any(d, &[2, 3, 2], 4), any(d, &[2, 1, 2], 5)])
                    .sample(0, vec![any(d, &[4], 6)])
                    .sample(0, vec![any(d, &[2, 2], 7), any(d, &[0, 2], 8)])
            })
            .symbolic(0, &[&["n", "k"], &["m", "k"]])
            .symbolic(1, &[&["n", "m"], &["n", "m"]])
            .skip("rank_0", "an axis is needed")
            .error(0, vec![], &["0", "at least 1"])
            .error(2, vec![any(F64, &[3, 2], 1), any(F64, &[3, 2], 2)], &["2"])
            .error(0, vec![any(F64, &[3, 2], 1), any(F64, &[3, 3], 2)], &["[3, 3]", "[3, 2]", "axis 0"])
            .error(0, vec![any(F64, &[3, 2], 1), any(F64, &[3], 2)], &["[3]", "[3, 2]"])
            .done();
    let stack = op(
        "stack",
        |&a: &usize, x: &[Var]| build::stack(x, a),
        |&a, x| {
            let parts = x.iter().map(|x| {
                let mut shape = x.shape.clone();
                shape.insert(a, 1);
                x.reshape(&shape)
            });
            joined(a, &parts.collect::<Vec<_>>(), x[0].dtype)
        },
    )
    .surface(joining!(stack))
    .promotes()
    .each(EVERY, |o, d| {
        o.sample(0, vec![any(d, &[3, 2], 1), any(d, &[3, 2], 2)])
            .sample(2, vec![any(d, &[3, 2], 1), any(d, &[3, 2], 2), any(d, &[3, 2], 3)])
            .sample(1, vec![any(d, &[3], 1)])
            .sample(0, vec![any(d, &[], 4), any(d, &[], 5)])
            .sample(0, vec![any(d, &[0], 6), any(d, &[0], 7)])
    })
    .symbolic(1, &[&["n", "m"], &["n", "m"]])
    .error(0, vec![], &["0", "at least 1"])
    .error(2, vec![any(F64, &[3], 1)], &["2"])
    .error(0, vec![any(F64, &[3], 1), any(F64, &[2], 2)], &["[", "2]", "3]"])
    .done();
    vec![concatenate, stack]
}

fn copy() -> OpInfo {
    op("copy", |_: &(), x: &[Var]| apply1(&ops::Copy, &[&x[0]]), |_, x| x[0].clone())
        .each(EVERY, |o, d| {
            o.sample((), vec![any(d, &[3, 4, 2], 1)])
                .sample((), vec![any(d, &[], 2)])
                .sample((), vec![any(d, &[0], 3)])
        })
        .symbolic((), &[&["n", "m"]])
        .skip("errors", ANY_TENSOR)
        .skip("surfaces", IN_RULES)
        .done()
}

pub(super) fn list() -> Vec<OpInfo> {
    let mut all = vec![transpose(), reshape(), reverse(), pad(), copy()];
    all.extend(matrix_forms());
    all.extend(expand_squeeze());
    all.extend(broadcasts());
    all.extend(slices());
    all.extend(diagonals());
    all.extend(triangles());
    all.extend(joins());
    all
}
