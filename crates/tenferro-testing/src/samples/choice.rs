//! Comparison, choice and change of dtype.

use super::{C64 as C64_, *};
use crate::{
    array::Elem,
    info::{OpInfo, Surface, listed, op, surface, typed},
};
use tenferro_core_ops::Var;
use tenferro_runtime::{SelectExt, TensorExt, TypedTensorExt};
use tenferro_tensor::dispatch;

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

fn truth(x: &[Array], f: impl Fn(Elem, Elem) -> bool) -> Array {
    Array::from_fn(Bool, &x[0].shape, |i| Elem::Int(f(x[0].at(i), x[1].at(i)) as i64))
}

/// `a < b` of ordered elements, `None` if one is NaN.
fn order(a: Elem, b: Elem) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (Elem::Int(a), Elem::Int(b)) => Some(a.cmp(&b)),
        (a, b) => a.re().partial_cmp(&b.re()),
    }
}

macro_rules! relation {
    ($name:ident, $dtypes:expr, $reference:expr, $of_nan:expr; $($more:tt)*) => {
        op(stringify!($name), |_: &(), x: &[Var]| x[0].$name(&x[1]), |_, x| truth(x, $reference))
            .surface(surface!((); $name(1)))
            .broadcasts()
            .order(0)
            .each($dtypes, |o, d| {
                // Few values, so that some are equal.
                let pair = |shape: &[usize], seed: u64| {
                    [0, 1].map(|k| Array::uniform(I64, shape, seed + k, -1.0, 1.0).cast(d)).to_vec()
                };
                o.sample((), pair(&[3, 4], 1)).sample((), pair(&[], 3)).sample((), pair(&[0, 2], 5))
            })
            // Integers that are equal as f64.
            .sample((), vec![i64s(&[(1 << 60) + 1, 1 << 60]), i64s(&[1 << 60, (1 << 60) + 1])])
            .value((), vec![f64s(&[3], &[NAN, 1.0, NAN]), f64s(&[3], &[1.0, NAN, NAN])],
                Array::ints(Bool, &[3], &[$of_nan; 3]))
            .symbolic((), &[&["n", "m"], &["m"]])
            .error((), vec![any(F64, &[2, 3], 1), any(F64, &[2, 4], 2)], &["[2, 3]", "[2, 4]"])
            $($more)*
            .done()
    };
}

macro_rules! ordering {
    ($name:ident, $reference:expr) => {
        relation!($name, ORDERED, $reference, 0;
            .error((), vec![any(C64_, &[2], 1), any(C64_, &[2], 2)],
                &["c64", "f32 | f64 | i32 | i64 | bool"]))
    };
}

fn relations() -> Vec<OpInfo> {
    fn equal(a: Elem, b: Elem) -> bool {
        match (a, b) {
            (Elem::Int(a), Elem::Int(b)) => a == b,
            (a, b) => a.re() == b.re() && a.c().im == b.c().im,
        }
    }
    vec![
        relation!(equal, EVERY, equal, 0;),
        relation!(not_equal, EVERY, |a, b| !equal(a, b), 1;),
        ordering!(less, |a, b| order(a, b).is_some_and(|o| o.is_lt())),
        ordering!(less_equal, |a, b| order(a, b).is_some_and(|o| o.is_le())),
        ordering!(greater, |a, b| order(a, b).is_some_and(|o| o.is_gt())),
        ordering!(greater_equal, |a, b| order(a, b).is_some_and(|o| o.is_ge())),
    ]
}

fn select() -> OpInfo {
    op(
        "select",
        |_: &(), x: &[Var]| x[0].select(&x[1], &x[2]),
        |_, x| {
            Array::from_fn(x[1].dtype, &x[1].shape, |i| {
                if x[0].at(i).int() != 0 { x[1].at(i) } else { x[2].at(i) }
            })
        },
    )
    .surface(Surface {
        direct: |_, x, backend| listed(TensorExt::select(&x[0], &x[1], &x[2], backend)),
        typed: |_, x, backend| {
            let condition = typed::<bool>(&x[0])?;
            dispatch!(x[1].dtype(), T => {
                listed(condition.select::<T>(typed(&x[1])?, typed(&x[2])?, backend))
            })
        },
        eager: |_, _, x| listed(x[0].select(&x[1], &x[2])),
        traced: |_, x| listed(x[0].select(&x[1], &x[2])),
    })
    .overlooks(|_, x, i| x[0].data.iter().all(|c| i == if c.int() != 0 { 2 } else { 1 }), "none is chosen")
    .broadcasts()
    .each(EVERY, |o, d| {
        let three = |shape: &[usize]| vec![any(Bool, shape, 1), any(d, shape, 2), any(d, shape, 3)];
        o.sample((), three(&[3, 4]))
            .sample((), three(&[2, 3, 2]))
            .sample((), three(&[]))
            .sample((), three(&[2, 0]))
    })
    // What is not chosen does not matter.
    .value(
        (),
        vec![Array::ints(Bool, &[2], &[1, 0]), f64s(&[2], &[1.0, NAN]), f64s(&[2], &[INF, 2.0])],
        f64s(&[2], &[1.0, 2.0]),
    )
    .symbolic_of((), &[(Bool, &["n", "m"]), (F64, &["n", "m"]), (F64, &["n", "m"])])
    .symbolic_of((), &[(Bool, &["n", "1"]), (F64, &["m"]), (F64, &[])])
    .error((), vec![any(F64, &[2], 1), any(F64, &[2], 2), any(F64, &[2], 3)], &["f64", "bool"])
    .error((), vec![any(Bool, &[3], 1), any(F64, &[2], 2), any(F64, &[2], 3)], &["[3]", "[2]"])
    .done()
}

fn select_or() -> OpInfo {
    op(
        "select_or",
        |_: &(), x: &[Var]| x[2].select(&x[0], &x[1]),
        |_, x| {
            Array::from_fn(x[0].dtype, &x[0].shape, |i| x[if x[2].at(i).int() != 0 { 0 } else { 1 }].at(i))
        },
    )
    .surface(surface!((); select_or(1, 2)))
    .overlooks(|_, x, i| x[2].data.iter().all(|c| i == if c.int() != 0 { 1 } else { 0 }), "none is chosen")
    .each([F64, C64_, I32], |o, d| {
        let three = |shape: &[usize]| vec![any(d, shape, 1), any(d, shape, 2), any(Bool, shape, 3)];
        o.sample((), three(&[3, 4])).sample((), three(&[])).sample((), three(&[2, 0]))
    })
    .symbolic_of((), &[(F64, &["n", "m"]), (F64, &["n", "m"]), (Bool, &["n", "m"])])
    .error_of("select", (), vec![any(F64, &[2], 1), any(F64, &[2], 2), any(F64, &[2], 3)], &["f64", "bool"])
    .done()
}

fn clamp() -> OpInfo {
    let of = |x: &[f64], low: &[f64], high: &[f64]| [x, low, high].map(|a| f64s(&[a.len()], a)).to_vec();
    op(
        "clamp",
        |_: &(), x: &[Var]| x[0].clamp(&x[1], &x[2]),
        |_, x| {
            Array::from_fn(x[0].dtype, &x[0].shape, |i| {
                let (v, low, high) = (x[0].at(i), x[1].at(i), x[2].at(i));
                let v = if order(v, low).is_some_and(|o| o.is_lt()) { low } else { v };
                if order(v, high).is_some_and(|o| o.is_gt()) { high } else { v }
            })
        },
    )
    .surface(surface!((); clamp(1, 2)))
    .broadcasts()
    .each(ORDERED, |o, d| {
        let three = |shape: &[usize]| {
            let scale = if d.is_integer() { 5.0 } else { 1.0 };
            let of = |seed, low: f64, high: f64| Array::uniform(d, shape, seed, low * scale, high * scale);
            vec![of(1, -1.0, 1.0), of(2, -0.6, -0.1), of(3, 0.1, 0.6)]
        };
        o.sample((), three(&[3, 4])).sample((), three(&[])).sample((), three(&[2, 0]))
    })
    .value(
        (),
        of(&[NAN, 1.0, 1.0, 5.0], &[0.0, NAN, 0.0, 3.0], &[1.0, 2.0, NAN, 2.0]),
        f64s(&[4], &[NAN, NAN, NAN, 2.0]),
    )
    // At an end of the interval the gradient is shared, as by maximum and minimum.
    .closed(
        (),
        of(&[0.0, 1.0, -1.0, 0.5, 2.0], &[0.0; 5], &[1.0; 5]),
        f64s(&[5], &[1.0; 5]),
        vec![
            f64s(&[5], &[0.5, 0.5, 0.0, 1.0, 0.0]),
            f64s(&[5], &[0.5, 0.0, 1.0, 0.0, 0.0]),
            f64s(&[5], &[0.0, 0.5, 0.0, 0.0, 1.0]),
        ],
    )
    .symbolic((), &[&["n", "m"], &["m"], &[]])
    .error((), vec![any(C64_, &[2], 1), any(C64_, &[2], 2), any(C64_, &[2], 3)], &["c64", "f32 | f64"])
    .error((), vec![any(F64, &[2], 1), any(F64, &[3], 2), any(F64, &[2], 3)], &["[2]", "[3]"])
    .done()
}

fn cast() -> OpInfo {
    let wide = |d| f64s(&[8], &[1e20, -1e20, NAN, INF, -INF, 2.9, -2.9, 0.5]).cast(d);
    let saturated = |low: i64, high: i64| [high, low, 0, high, low, 2, -2, 0];
    op("cast", |d: &DType, x: &[Var]| x[0].cast(*d), |d, x| x[0].cast(*d))
        .surface(Surface {
            direct: |d, x, backend| listed(TensorExt::cast(&x[0], *d, backend)),
            typed: |d, x, backend| {
                dispatch!(x[0].dtype(), T => dispatch!(*d, U => {
                    listed(TypedTensorExt::<T>::cast::<U>(typed(&x[0])?, backend))
                }))
            },
            eager: |d, _, x| listed(x[0].cast(*d)),
            traced: |d, x| listed(x[0].cast(*d)),
        })
        .each(EVERY, |o, from| {
            o.each(EVERY, |o, to| {
                o.sample(to, vec![any(from, &[3, 4], 1)])
                    .sample(to, vec![any(from, &[], 2)])
                    .sample(to, vec![any(from, &[0, 2], 3)])
            })
        })
        .value(I64, vec![wide(F64)], i64s(&saturated(i64::MIN, i64::MAX)))
        .value(I64, vec![wide(F32)], i64s(&saturated(i64::MIN, i64::MAX)))
        .value(I32, vec![wide(F64)], Array::ints(I32, &[8], &saturated(i32::MIN as i64, i32::MAX as i64)))
        .value(Bool, vec![f64s(&[4], &[0.0, -0.0, NAN, 1e-300])], Array::ints(Bool, &[4], &[0, 0, 1, 1]))
        .value(
            Bool,
            vec![Array::complexes(C64_, &[2], &[(0.0, 1.0), (0.0, 0.0)])],
            Array::ints(Bool, &[2], &[1, 0]),
        )
        .value(F64, vec![Array::complexes(C64_, &[1], &[(2.5, 7.0)])], f64s(&[1], &[2.5]))
        .value(I32, vec![i64s(&[1 << 32, (1 << 31) + 5])], Array::ints(I32, &[2], &[0, i32::MIN as i64 + 5]))
        .symbolic(C64_, &[&["n", "m"]])
        .skip("errors", ANY_TENSOR)
        .done()
}

fn convert() -> OpInfo {
    op("convert", |d: &DType, x: &[Var]| x[0].convert(*d), |d, x| x[0].cast(*d))
        .surface(Surface {
            direct: |d, x, backend| listed(TensorExt::convert(&x[0], *d, backend)),
            typed: |d, x, backend| {
                dispatch!(x[0].dtype(), T => dispatch!(*d, U => {
                    listed(TypedTensorExt::<T>::convert::<U>(typed(&x[0])?, backend))
                }))
            },
            eager: |d, _, x| listed(x[0].convert(*d)),
            traced: |d, x| listed(x[0].convert(*d)),
        })
        .each(EVERY, |o, from| {
            let above = EVERY.into_iter().filter(|&to| from.can_convert_to(to));
            o.each(above, |o, to| {
                o.sample(to, vec![any(from, &[3, 2], 1)])
                    .sample(to, vec![any(from, &[], 2)])
                    .sample(to, vec![any(from, &[0], 3)])
            })
        })
        .symbolic(C64_, &[&["n", "m"]])
        .error(F32, vec![any(F64, &[2], 1)], &["f64", "f32"])
        .error(F64, vec![any(C64_, &[2], 1)], &["c64", "f64"])
        .error(I64, vec![any(F32, &[2], 1)], &["f32", "i64"])
        .skip("precision", "no conversion leads from double precision back to a single one")
        .done()
}

pub(super) fn list() -> Vec<OpInfo> {
    relations().into_iter().chain([select(), select_or(), clamp(), cast(), convert()]).collect()
}
