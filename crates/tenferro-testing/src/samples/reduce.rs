//! Reductions over axes.

use super::{C64 as C64_, *};
use crate::{
    array::{Elem, indices},
    info::{OpInfo, op, surface},
};
use tenferro_core_ops::{Var, apply1, ops};
use tenferro_tensor::C64;

const NAN: f64 = f64::NAN;

type Axes = Option<Vec<usize>>;

fn some(axes: &[usize]) -> Axes {
    Some(axes.to_vec())
}

/// The elements that reduce to each kept index, reduced by `f`.
fn reduced(axes: &Axes, x: &Array, dtype: DType, f: impl Fn(Vec<Elem>) -> Elem) -> Array {
    let over = |i: &usize| axes.as_ref().is_none_or(|a| a.contains(i));
    let (sum, kept): (Vec<usize>, Vec<usize>) = (0..x.rank()).partition(over);
    let pick = |axes: &[usize]| axes.iter().map(|&a| x.shape[a]).collect::<Vec<_>>();
    Array::from_fn(dtype, &pick(&kept), |k| {
        let at = |s: Vec<usize>| {
            let mut i = vec![0; x.rank()];
            kept.iter().zip(k).for_each(|(&a, &v)| i[a] = v);
            sum.iter().zip(s).for_each(|(&a, v)| i[a] = v);
            x.at(&i)
        };
        f(indices(&pick(&sum)).map(at).collect())
    })
}

/// The reduced axes put back with extent 1.
fn keepdims(axes: &Axes, x: &Array, y: Array) -> Array {
    let over = |i: usize| axes.as_ref().is_none_or(|a| a.contains(&i));
    let shape: Vec<usize> = (0..x.rank()).map(|i| if over(i) { 1 } else { x.shape[i] }).collect();
    y.reshape(&shape)
}

fn zero(dtype: DType) -> Elem {
    if dtype.is_differentiable() { Elem::real(0.0) } else { Elem::Int(0) }
}

fn one(dtype: DType) -> Elem {
    if dtype.is_differentiable() { Elem::real(1.0) } else { Elem::Int(1) }
}

fn counted(dtype: DType) -> DType {
    if dtype == Bool { I64 } else { dtype }
}

fn sum(axes: &Axes, x: &[Array]) -> Array {
    let d = counted(x[0].dtype);
    reduced(axes, &x[0], d, |v| v.into_iter().fold(zero(d), Elem::plus))
}

fn prod(axes: &Axes, x: &[Array]) -> Array {
    let d = counted(x[0].dtype);
    reduced(axes, &x[0], d, |v| v.into_iter().fold(one(d), Elem::times))
}

fn mean(axes: &Axes, x: &[Array]) -> Array {
    let d = if x[0].dtype.is_differentiable() { x[0].dtype } else { F64 };
    reduced(axes, &x[0], d, |v| {
        let n = v.len() as f64;
        let total: C64 = v.into_iter().map(Elem::c).sum();
        Elem::Float(C64::new(total.re / n, total.im / n))
    })
}

fn extreme(axes: &Axes, x: &[Array], larger: bool) -> Array {
    reduced(axes, &x[0], x[0].dtype, |v| {
        if v.iter().any(|e| e.re().is_nan()) {
            return Elem::real(NAN);
        }
        let wins = |a: Elem, b: Elem| match (a, b) {
            (Elem::Int(a), Elem::Int(b)) => (a > b) == larger,
            (a, b) => (a.re() > b.re()) == larger,
        };
        v.into_iter().reduce(|a, b| if wins(a, b) { a } else { b }).expect("not empty")
    })
}

fn larger(axes: &Axes, x: &[Array]) -> Array {
    extreme(axes, x, true)
}

fn smaller(axes: &Axes, x: &[Array]) -> Array {
    extreme(axes, x, false)
}

/// One reduction, with and without its axes kept. Reductions of nothing are samples where they have a value.
macro_rules! reduction {
    ($name:ident, $keep:ident, $dtypes:expr, $reference:expr, empty: $empty:expr; $($more:tt)*) => {{
        let list = |name, call: fn(&Axes, &[Var]) -> Var, reference: fn(&Axes, &[Array]) -> Array, s| {
            op(name, call, reference)
                .surface(s)
                // Long sums in any order.
                .tolerance(64.0)
                .each($dtypes, |o, d| {
                    let o = o
                        .sample(some(&[0]), vec![any(d, &[3, 4], 1)])
                        .sample(some(&[1]), vec![any(d, &[3, 4], 2)])
                        .sample(None, vec![any(d, &[3, 4], 3)])
                        .sample(some(&[2, 0]), vec![any(d, &[2, 3, 4], 4)])
                        .sample(some(&[]), vec![any(d, &[2, 3], 5)])
                        .sample(some(&[1, 3]), vec![any(d, &[2, 3, 1, 2], 6)])
                        .sample(None, vec![any(d, &[], 7)])
                        .sample(some(&[1]), vec![any(d, &[0, 3], 8)]);
                    if $empty {
                        o.kink(some(&[0]), vec![any(d, &[0, 3], 8)]).kink(None, vec![any(d, &[2, 0], 9)])
                    } else {
                        o
                    }
                })
                .kink(None, vec![any(F64, &[1031], 10)])
                .kink(some(&[0]), vec![any(F32, &[1031, 2], 11)])
                .kink(some(&[1]), vec![any(F64, &[67, 129], 12)])
                .symbolic(some(&[0]), &[&["n", "m"]])
                .symbolic(some(&[1]), &[&["n", "m"]])
                .symbolic(None, &[&["n", "2", "m"]])
                .error(some(&[2]), vec![any(F64, &[2, 3], 1)], &["2"])
                .error(some(&[0, 0]), vec![any(F64, &[2, 3], 1)], &["repeated", "distinct"])
        };
        let plain = list(stringify!($name), |a, x| x[0].$name(a.as_deref()), $reference,
            surface!(Axes; $name() |axes| axes.as_deref()));
        let kept = list(stringify!($keep), |a, x| x[0].$keep(a.as_deref()),
            |a, x| keepdims(a, &x[0], $reference(a, x)),
            surface!(Axes; $keep() |axes| axes.as_deref()));
        // Errors name the reduction, not the form of it.
        let mut kept = kept.done();
        kept.errors.iter_mut().for_each(|e| (e.op, e.part) = (stringify!($name), stringify!($name)));
        [plain $($more)* .done(), kept]
    }};
}

fn exclusive_prod() -> OpInfo {
    op(
        "exclusive_prod",
        |axes: &Vec<usize>, x: &[Var]| apply1(&ops::ExclusiveProd { axes: axes[..].into() }, &[&x[0]]),
        |axes, x| {
            Array::from_fn(x[0].dtype, &x[0].shape, |i| {
                let others = indices(&x[0].shape)
                    .filter(|j| j != i && (0..i.len()).all(|a| axes.contains(&a) || i[a] == j[a]));
                others.map(|j| x[0].at(&j)).fold(one(x[0].dtype), Elem::times)
            })
        },
    )
    .tolerance(32.0)
    .each(NUMBERS, |o, d| {
        o.sample(vec![0], vec![any(d, &[3, 2], 1)])
            .sample(vec![0, 2], vec![any(d, &[2, 3, 2], 2)])
            .sample(vec![1], vec![any(d, &[2, 4], 3)])
            .sample(vec![], vec![any(d, &[], 4)])
            .sample(vec![0], vec![any(d, &[0, 2], 5)])
            .sample(vec![], vec![any(d, &[2, 3], 6)])
    })
    .sample(vec![0], vec![f64s(&[4], &[2.0, 0.0, 3.0, 0.0])])
    .symbolic(vec![0], &[&["n", "m"]])
    .symbolic(vec![0, 1], &[&["n", "2", "m"]])
    .error(vec![1], vec![any(F64, &[2], 1)], &["1"])
    .skip("surfaces", IN_RULES)
    .done()
}

pub(super) fn list() -> Vec<OpInfo> {
    const SUMMED: [DType; 7] = EVERY;
    let row = |x: &[f64]| vec![f64s(&[1, x.len()], x)];
    let line = |x: &[f64]| f64s(&[1, x.len()], x);
    let one = || f64s(&[1], &[1.0]);
    let first = || some(&[1]);
    let mut all: Vec<OpInfo> = vec![];
    all.extend(reduction!(reduce_sum, reduce_sum_keepdims, SUMMED, sum, empty: true;
        .value(None, vec![i64s(&[i64::MAX, 1])], Array::ints(I64, &[], &[i64::MIN]))
        .value(None, vec![Array::ints(I32, &[2], &[i32::MAX as i64, 1])],
            Array::ints(I32, &[], &[i32::MIN as i64]))
        .value(None, vec![Array::ints(Bool, &[3], &[1, 1, 0])], Array::ints(I64, &[], &[2]))));
    all.extend(reduction!(reduce_prod, reduce_prod_keepdims, SUMMED, prod, empty: true;
        // Derivatives are products of the others, with one zero and with two.
        .closed(first(), row(&[2.0, 0.0, 3.0]), one(), vec![line(&[0.0, 6.0, 0.0])])
        .closed(first(), row(&[2.0, 0.0, 0.0, 3.0]), one(), vec![line(&[0.0; 4])])
        .closed(None, row(&[0.0, 5.0]), Array::scalar(F64, 1.0), vec![line(&[5.0, 0.0])])
        .sample(first(), row(&[2.0, 0.0, 3.0]))
        .sample(first(), row(&[2.0, 0.0, 0.0, 3.0]))
        .sample(first(), vec![Array::complexes(C64_, &[1, 3], &[(0.0, 0.0), (1.0, 2.0), (0.0, 0.0)])])));
    all.extend(reduction!(reduce_max, reduce_max_keepdims, ORDERED, larger, empty: false;
        .value(first(), vec![f64s(&[2, 2], &[1.0, NAN, 2.0, 3.0])], f64s(&[2], &[2.0, NAN]))
        .value(first(), vec![f64s(&[2, 2], &[1.0, 3.0, 2.0, NAN])], f64s(&[2], &[2.0, NAN]))
        .value(None, vec![f64s(&[2], &[f64::NEG_INFINITY; 2])], Array::scalar(F64, f64::NEG_INFINITY))
        .closed(first(), row(&[1.0, 3.0, 3.0, 2.0]), one(), vec![line(&[0.0, 0.5, 0.5, 0.0])])
        .error(some(&[0]), vec![any(F64, &[0, 2], 1)], &["0", "at least 1"])
        .error(None, vec![any(F64, &[2, 0], 1)], &["0", "at least 1"])
        .error(None, vec![any(C64_, &[2], 1)], &["c64", "f32 | f64"])));
    all.extend(reduction!(reduce_min, reduce_min_keepdims, ORDERED, smaller, empty: false;
        .value(first(), vec![f64s(&[2, 2], &[1.0, NAN, 2.0, 3.0])], f64s(&[2], &[1.0, NAN]))
        .value(None, vec![f64s(&[2], &[f64::INFINITY; 2])], Array::scalar(F64, f64::INFINITY))
        .closed(first(), row(&[2.0, 1.0, 1.0, 1.0]), f64s(&[1], &[3.0]), vec![line(&[0.0, 1.0, 1.0, 1.0])])
        .error(some(&[0]), vec![any(F64, &[0, 2], 1)], &["0", "at least 1"])
        .error(None, vec![any(C64_, &[2], 1)], &["c64", "f32 | f64"])));
    all.extend(reduction!(reduce_mean, reduce_mean_keepdims, EVERY, mean, empty: true;
        .value(None, vec![i64s(&[1, 2])], Array::scalar(F64, 1.5))
        .value(None, vec![f64s(&[0], &[])], Array::scalar(F64, NAN))));
    all.push(exclusive_prod());
    all
}
