//! Elementwise functions of two inputs.

use super::{C64 as C64_, *};
use crate::{
    array::Elem,
    info::{OpInfo, op, surface},
};
use tenferro_core_ops::Var;
use tenferro_tensor::C64;

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

fn zip(x: &[Array], dtype: DType, f: impl Fn(Elem, Elem) -> Elem) -> Array {
    Array::from_fn(dtype, &x[0].shape, |i| f(x[0].at(i), x[1].at(i)))
}

/// Samples of these dtypes and shapes between `low` and `high`.
macro_rules! function {
    ($name:ident, $dtypes:expr, $low:expr, $high:expr, $reference:expr; $($more:tt)*) => {
        op(stringify!($name), |_: &(), x: &[Var]| x[0].$name(&x[1]), $reference)
            .surface(surface!((); $name(1)))
            .broadcasts()
            .each($dtypes, |o, d| {
                let pair = |shape: &[usize], seed: u64| {
                    let stretch = if d.is_integer() { 5.0 } else { 1.0 };
                    let (low, high): (f64, f64) = ($low, $high);
                    let of = |k| Array::uniform(d, shape, seed + k, low * stretch, high * stretch);
                    [0, 1].map(of).to_vec()
                };
                o.sample((), pair(&[3, 4], 1))
                    .sample((), pair(&[2, 3, 2], 3))
                    .sample((), pair(&[], 5))
                    .sample((), pair(&[0], 7))
                    .sample((), pair(&[2, 0], 9))
            })
            .kink((), [0, 1].map(|k| Array::uniform(F64, &[1031], 30 + k, $low, $high)).to_vec())
            .symbolic((), &[&["n", "m"], &["n", "m"]])
            .symbolic((), &[&["n", "m"], &["m"]])
            .symbolic((), &[&["1", "m"], &["n", "1"]])
            .symbolic((), &[&["n"], &[]])
            .error((), vec![any(F64, &[2, 3], 1), any(F64, &[2, 4], 2)], &["[2, 3]", "[2, 4]", "broadcast"])
            $($more)*
            .done()
    };
}

fn pair(a: &[f64], b: &[f64]) -> Vec<Array> {
    vec![f64s(&[a.len()], a), f64s(&[b.len()], b)]
}

fn ones(n: usize) -> Array {
    f64s(&[n], &vec![1.0; n])
}

fn r(x: &[f64]) -> Array {
    f64s(&[x.len()], x)
}

fn power(a: Elem, b: Elem, complex: bool) -> Elem {
    if !complex {
        return Elem::real(a.re().powf(b.re()));
    }
    let (a, b) = (a.c(), b.c());
    let log = C64::new(a.norm().ln(), a.im.atan2(a.re)) * b;
    Elem::Float(C64::from_polar(log.re.exp(), log.im))
}

pub(super) fn list() -> Vec<OpInfo> {
    let (big, small) = (i64::MAX, i64::MIN);
    let bools = || vec![Array::ints(Bool, &[2], &[1, 0]), Array::ints(Bool, &[2], &[1, 1])];
    // The larger is NaN if either is; equal numbers share the gradient.
    let nans = || pair(&[NAN, 1.0, NAN, -INF, 0.0], &[1.0, NAN, NAN, 2.0, -0.0]);
    let ties = || pair(&[1.0, 2.0, 3.0, 2.0], &[1.0, 1.0, 3.0, 5.0]);
    vec![
        function!(add, NUMBERS, -1.0, 1.0, |_, x| zip(x, x[0].dtype, Elem::plus);
            .value((), vec![i64s(&[big, small]), i64s(&[1, -1])], i64s(&[small, big]))
            .error((), bools(), &["bool", "i32 | i64"])),
        function!(sub, NUMBERS, -1.0, 1.0, |_, x| zip(x, x[0].dtype, |a, b| a.plus(Elem::Int(-1).times(b)));
            .value((), vec![i64s(&[small]), i64s(&[1])], i64s(&[big]))
            .value((), vec![Array::ints(I32, &[1], &[i32::MIN as i64]), Array::ints(I32, &[1], &[1])],
                Array::ints(I32, &[1], &[i32::MAX as i64]))
            .error((), bools(), &["bool", "i32 | i64"])),
        function!(mul, NUMBERS, -1.0, 1.0, |_, x| zip(x, x[0].dtype, Elem::times);
            .value((), vec![i64s(&[big]), i64s(&[2])], i64s(&[-2]))
            .value((), vec![Array::ints(I32, &[1], &[65536]), Array::ints(I32, &[1], &[65537])],
                Array::ints(I32, &[1], &[65536]))
            .error((), bools(), &["bool", "i32 | i64"])),
        function!(div, FLOATS, 0.4, 2.0, |_, x| zip(x, x[0].dtype, |a, b| Elem::Float(a.c() / b.c()));
            .value((), pair(&[1.0, -1.0, 0.0], &[0.0, 0.0, 0.0]), r(&[INF, -INF, NAN]))
            .value((), vec![i64s(&[1, -7, 3]), i64s(&[2, 2, 0])], r(&[0.5, -3.5, INF]))
            .value((), [1e300, 2e300].map(|x| Array::complexes(C64_, &[1], &[(x, x)])).to_vec(),
                Array::complexes(C64_, &[1], &[(0.5, 0.0)]))),
        function!(pow, FLOATS, 0.3, 1.7,
            |_, x| zip(x, x[0].dtype, |a, b| power(a, b, x[0].dtype.is_complex()));
            .sample((), pair(&[1.5, 2.0, 0.5], &[2.0, -1.0, 0.0]))
            .value((), pair(&[0.0, 0.0, -2.0, -2.0, 2.0], &[0.0, 3.0, 3.0, 0.5, -1.0]),
                r(&[1.0, 0.0, -8.0, NAN, 0.5]))
            .value((), vec![i64s(&[2, 3, 2]), i64s(&[10, 0, -1])], r(&[1024.0, 1.0, 0.5]))
            .value((), vec![Array::complexes(C64_, &[3], &[(0.0, 0.0), (0.0, 0.0), (-1.0, 0.0)]),
                    Array::complexes(C64_, &[3], &[(0.0, 0.0), (2.0, 0.0), (0.5, 0.0)])],
                Array::complexes(C64_, &[3], &[(1.0, 0.0), (0.0, 0.0), (0.0, 1.0)]))
            // d(x^y)/dx = y x^(y-1), also at x = 0; d(x^y)/dy = x^y log x, taken as 0 at x = 0.
            .closed((), pair(&[0.0, 0.0, 0.0, 2.0], &[0.0, 1.0, 2.0, 0.0]), ones(4),
                vec![r(&[0.0, 1.0, 0.0, 0.0]), r(&[0.0, 0.0, 0.0, std::f64::consts::LN_2])])),
        function!(maximum, ORDERED, -1.0, 1.0, |_, x| zip(x, x[0].dtype, |a, b| match (a, b) {
            (Elem::Int(a), Elem::Int(b)) => Elem::Int(if a > b { a } else { b }),
            (a, b) if a.re().is_nan() || b.re().is_nan() => Elem::real(NAN),
            (a, b) => Elem::real(if a.re() > b.re() { a.re() } else { b.re() }),
        });
            .value((), nans(), r(&[NAN, NAN, NAN, 2.0, 0.0]))
            .closed((), ties(), ones(4), vec![r(&[0.5, 1.0, 0.5, 0.0]), r(&[0.5, 0.0, 0.5, 1.0])])
            .error((), vec![any(C64_, &[2], 1), any(C64_, &[2], 2)],
                &["c64", "f32 | f64 | i32 | i64 | bool"])),
        function!(minimum, ORDERED, -1.0, 1.0, |_, x| zip(x, x[0].dtype, |a, b| match (a, b) {
            (Elem::Int(a), Elem::Int(b)) => Elem::Int(if a < b { a } else { b }),
            (a, b) if a.re().is_nan() || b.re().is_nan() => Elem::real(NAN),
            (a, b) => Elem::real(if a.re() < b.re() { a.re() } else { b.re() }),
        });
            .value((), nans(), r(&[NAN, NAN, NAN, -INF, 0.0]))
            .closed((), ties(), ones(4), vec![r(&[0.5, 0.0, 0.5, 1.0]), r(&[0.5, 1.0, 0.5, 0.0])])
            .error((), vec![any(C64_, &[2], 1), any(C64_, &[2], 2)],
                &["c64", "f32 | f64 | i32 | i64 | bool"])),
    ]
}
