//! Elementwise functions of one input.

use super::{C64 as C64_, any, f64s, *};
use crate::{
    array::Elem,
    info::{OpInfo, op, surface},
};
use tenferro_core_ops::Var;
use tenferro_tensor::C64;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// `f` of real and `g` of complex elements.
fn elementwise(x: &[Array], f: fn(f64) -> f64, g: fn(C64) -> C64) -> Array {
    let of = |e: Elem| if x[0].dtype.is_complex() { Elem::Float(g(e.c())) } else { Elem::real(f(e.re())) };
    x[0].map(x[0].dtype, of)
}

/// A function defined on floats, with samples between `low` and `high`.
macro_rules! function {
    ($name:ident, $low:expr, $high:expr, $f:expr, $g:expr; $($more:tt)*) => {
        op(stringify!($name), |_: &(), x: &[Var]| x[0].$name(), |_, x| elementwise(x, $f, $g))
            .surface(surface!((); $name()))
            .each(FLOATS, |o, d| {
                o.sample((), vec![Array::uniform(d, &[3, 4], 1, $low, $high)])
                    .sample((), vec![Array::uniform(d, &[2, 1, 5], 2, $low, $high)])
                    .sample((), vec![Array::uniform(d, &[], 3, $low, $high)])
                    .sample((), vec![Array::uniform(d, &[0], 4, $low, $high)])
                    .sample((), vec![Array::uniform(d, &[2, 0, 3], 5, $low, $high)])
            })
            // Longer than the tiles of vector kernels, and not a multiple of them.
            .kink((), vec![Array::uniform(F64, &[1031], 6, $low, $high)])
            .kink((), vec![Array::uniform(F32, &[1031], 7, $low, $high)])
            .symbolic((), &[&["n", "m"]])
            .error((), vec![Array::ints(I64, &[2], &[1, 2])], &["i64", "f32 | f64 | c32 | c64"])
            .error((), vec![Array::ints(Bool, &[2], &[1, 0])], &["bool", "f32 | f64 | c32 | c64"])
            $($more)*
            .done()
    };
}

/// The value of a function at one real number.
fn at(x: f64) -> Vec<Array> {
    vec![Array::scalar(F64, x)]
}

/// The value at one complex number.
fn at_c(re: f64, im: f64) -> Vec<Array> {
    vec![c(re, im)]
}

fn r(x: f64) -> Array {
    Array::scalar(F64, x)
}

fn c(re: f64, im: f64) -> Array {
    Array::complexes(C64_, &[], &[(re, im)])
}

/// Functions of floats.
fn functions() -> Vec<OpInfo> {
    use std::f64::consts::{FRAC_PI_2, LN_2, PI};
    vec![
        function!(exp, -2.0, 2.0, f64::exp, |z| C64::from_polar(z.re.exp(), z.im);
            .value((), at(-INF), r(0.0)).value((), at(710.0), r(INF)).value((), at(NAN), r(NAN))
            .value((), at_c(0.0, PI), c(-1.0, 1.2246467991473532e-16))),
        function!(expm1, -1.0, 1.0, |x| x.exp_m1(), |z| {
            // (e^a cos b - 1) + i e^a sin b, without cancellation by half angles.
            let half = (0.5 * z.im).sin();
            C64::new(z.re.exp_m1() * z.im.cos() - 2.0 * half * half, z.re.exp() * z.im.sin())
        };
            .value((), at(1e-10), r(1.00000000005e-10)).value((), at(-INF), r(-1.0))
            .value((), at_c(1e-10, 1e-10), c(1e-10, 1.0000000001e-10))),
        function!(log, 0.3, 2.0, f64::ln,
            |z| C64::new(0.5 * (z.re * z.re + z.im * z.im).ln(), z.im.atan2(z.re));
            .value((), at(0.0), r(-INF)).value((), at(-1.0), r(NAN)).value((), at(INF), r(INF))
            .value((), at_c(-1.0, 0.0), c(0.0, PI)).value((), at_c(-1.0, -0.0), c(0.0, -PI))
            .value((), at_c(1.0, 1e-9), c(5e-19, 1e-9)).value((), at_c(0.0, 2.0), c(LN_2, FRAC_PI_2))
            .value((), at_c(1e200, 1e200), c(200.0 * std::f64::consts::LN_10 + 0.5 * LN_2, 0.5 * FRAC_PI_2))),
        function!(log1p, -0.4, 1.0, |x| x.ln_1p(), |z| {
            let w = z + 1.0;
            C64::new(0.5 * (z.re * (2.0 + z.re) + z.im * z.im).ln_1p(), w.im.atan2(w.re))
        };
            .value((), at(1e-10), r(9.9999999995e-11)).value((), at(-1.0), r(-INF))
            .value((), at_c(1e-10, 0.0), c(9.9999999995e-11, 0.0))),
        function!(sin, -3.0, 3.0, f64::sin, |z| {
            C64::new(z.re.sin() * z.im.cosh(), z.re.cos() * z.im.sinh())
        }; .value((), at(FRAC_PI_2), r(1.0)).value((), at(INF), r(NAN))
            .value((), at(1e5), r(0.03574879797201651))),
        function!(cos, -3.0, 3.0, f64::cos, |z| {
            C64::new(z.re.cos() * z.im.cosh(), -z.re.sin() * z.im.sinh())
        }; .value((), at(0.0), r(1.0)).value((), at(PI), r(-1.0))),
        function!(tan, -1.2, 1.2, f64::tan, |z| z.sin() / z.cos();
            .value((), at(0.0), r(0.0)).value((), at_c(0.0, 400.0), c(0.0, 1.0))),
        function!(tanh, -1.2, 1.2, f64::tanh, |z| z.sinh() / z.cosh();
            .value((), at(INF), r(1.0)).value((), at(-800.0), r(-1.0))
            .value((), at_c(800.0, 0.3), c(1.0, 0.0))
            .value((), at(1e-12), r(1e-12))),
        function!(sqrt, 0.2, 2.0, f64::sqrt, |z| {
            C64::from_polar(z.norm().sqrt(), 0.5 * z.im.atan2(z.re))
        };
            .value((), at(-1.0), r(NAN)).value((), at(0.0), r(0.0)).value((), at_c(-4.0, 0.0), c(0.0, 2.0))
            .value((), at_c(-4.0, -0.0), c(0.0, -2.0)).value((), at_c(0.0, 2.0), c(1.0, 1.0))
            .value((), at_c(0.0, 0.0), c(0.0, 0.0)).value((), at_c(3e300, 4e300), c(2e150, 1e150))),
        function!(rsqrt, 0.3, 2.0, |x| 1.0 / x.sqrt(), |z| {
            C64::from_polar(1.0 / z.norm().sqrt(), -0.5 * z.im.atan2(z.re))
        };
            .value((), at(0.0), r(INF)).value((), at(4.0), r(0.5)).value((), at_c(-4.0, 0.0), c(0.0, -0.5))),
    ]
}

/// Samples of every number dtype, away from zero.
macro_rules! on_numbers {
    ($name:ident, $dtypes:expr, $call:expr, $reference:expr) => {
        op(stringify!($name), |_: &(), x: &[Var]| $call(&x[0]), $reference)
            .surface(surface!((); $name()))
            .each($dtypes, |o, d| {
                let away = |shape: &[usize], seed| {
                    any(d, shape, seed).map(d, |e| match e {
                        Elem::Float(z) if d.is_complex() => Elem::Float(z + z / z.norm()),
                        Elem::Float(z) => Elem::real(z.re + z.re.signum()),
                        e => e,
                    })
                };
                o.sample((), vec![away(&[3, 4], 1)])
                    .sample((), vec![away(&[2, 3, 2], 2)])
                    .sample((), vec![away(&[], 3)])
                    .sample((), vec![away(&[0, 3], 4)])
            })
            .symbolic((), &[&["n", "m"]])
    };
}

fn modulus(e: Elem) -> Elem {
    match e {
        Elem::Int(i) => Elem::Int(i.wrapping_abs()),
        Elem::Float(z) => Elem::real((z.re * z.re + z.im * z.im).sqrt()),
    }
}

fn direction(e: Elem) -> Elem {
    match e {
        Elem::Int(i) => Elem::Int((i > 0) as i64 - (i < 0) as i64),
        Elem::Float(z) if z.norm() == 0.0 => Elem::real(0.0),
        Elem::Float(z) => Elem::Float(C64::from_polar(1.0, z.im.atan2(z.re))),
    }
}

/// Functions of any numbers.
fn numbers() -> Vec<OpInfo> {
    let zeros = || f64s(&[4], &[-2.0, 0.0, -0.0, 3.0]);
    let ones = || f64s(&[4], &[1.0; 4]);
    let complex_zeros = || Array::complexes(C64_, &[3], &[(0.0, 0.0), (3.0, 4.0), (0.0, -2.0)]);
    let complex_ones = || Array::complexes(C64_, &[3], &[(1.0, 0.0); 3]);
    vec![
        on_numbers!(neg, NUMBERS, |x: &Var| -x, |_, x| x[0].map(x[0].dtype, |e| Elem::Int(-1).times(e)))
            .value(
                (),
                vec![Array::ints(I32, &[1], &[i32::MIN as i64])],
                Array::ints(I32, &[1], &[i32::MIN as i64]),
            )
            .value((), vec![i64s(&[i64::MIN])], i64s(&[i64::MIN]))
            .error((), vec![Array::ints(Bool, &[2], &[1, 0])], &["bool", "f32 | f64 | c32 | c64 | i32 | i64"])
            .done(),
        on_numbers!(abs, NUMBERS, Var::abs, |_, x| x[0].map(x[0].dtype.real(), modulus))
            .kink((), vec![zeros()])
            .kink((), vec![complex_zeros()])
            .value((), vec![f64s(&[3], &[NAN, -INF, -0.0])], f64s(&[3], &[NAN, INF, 0.0]))
            .value((), vec![Array::complexes(C64_, &[1], &[(3e300, 4e300)])], f64s(&[1], &[5e300]))
            .value((), vec![i64s(&[i64::MIN, -7])], i64s(&[i64::MIN, 7]))
            // sign(0) = 0, so abs'(0) = 0.
            .closed((), vec![zeros()], ones(), vec![f64s(&[4], &[-1.0, 0.0, 0.0, 1.0])])
            .closed(
                (),
                vec![complex_zeros()],
                f64s(&[3], &[1.0; 3]),
                vec![Array::complexes(C64_, &[3], &[(0.0, 0.0), (0.6, 0.8), (0.0, -1.0)])],
            )
            .error((), vec![Array::ints(Bool, &[2], &[1, 0])], &["bool", "i32 | i64"])
            .done(),
        on_numbers!(sign, NUMBERS, Var::sign, |_, x| x[0].map(x[0].dtype, direction))
            .kink((), vec![zeros()])
            .kink((), vec![complex_zeros()])
            .value((), vec![f64s(&[3], &[NAN, -INF, 1e-300])], f64s(&[3], &[NAN, -1.0, 1.0]))
            .closed((), vec![zeros()], ones(), vec![f64s(&[4], &[0.0; 4])])
            // At 3+4i the part of 1 across 0.6+0.8i, over 5: 1 - 0.6 (0.6+0.8i) = 0.64-0.48i.
            .closed(
                (),
                vec![complex_zeros()],
                complex_ones(),
                vec![Array::complexes(C64_, &[3], &[(0.0, 0.0), (0.128, -0.096), (0.5, 0.0)])],
            )
            .error((), vec![Array::ints(Bool, &[2], &[1, 0])], &["bool", "i32 | i64"])
            .done(),
        on_numbers!(conj, EVERY, Var::conj, |_, x| x[0].map(x[0].dtype, |e| match e {
            Elem::Float(z) => Elem::Float(z.conj()),
            e => e,
        }))
        .skip("errors", ANY_TENSOR)
        .done(),
        on_numbers!(real, EVERY, Var::real, |_, x| x[0].map(x[0].dtype.real(), |e| match e {
            Elem::Float(z) => Elem::real(z.re),
            e => e,
        }))
        .skip("errors", ANY_TENSOR)
        .done(),
        on_numbers!(imag, EVERY, Var::imag, |_, x| x[0].map(x[0].dtype.real(), |e| match e {
            Elem::Float(z) => Elem::real(z.im),
            Elem::Int(_) => Elem::Int(0),
        }))
        .skip("errors", ANY_TENSOR)
        .skip("not_finite", "of real numbers it is 0")
        .done(),
        op("recip", |_: &(), x: &[Var]| x[0].recip(), |_, x| elementwise(x, |x| 1.0 / x, |z| z.inv()))
            .each(FLOATS, |o, d| {
                o.sample((), vec![Array::uniform(d, &[3, 2], 1, 0.3, 2.0)])
                    .sample((), vec![Array::uniform(d, &[], 1, 0.3, 2.0)])
                    .sample((), vec![any(d, &[0], 1)])
            })
            .value((), at(0.0), r(INF))
            .value((), at_c(1e300, 1e300), c(5e-301, -5e-301))
            .symbolic((), &[&["n"]])
            .skip("surfaces", COMPOSED)
            .error_of("div", (), vec![Array::ints(Bool, &[2], &[1, 0])], &["bool"])
            .done(),
        op("complex", |_: &(), x: &[Var]| x[0].complex(), |_, x| x[0].cast(x[0].dtype.complex()))
            .each(EVERY, |o, d| {
                o.sample((), vec![any(d, &[3, 2], 1)])
                    .sample((), vec![any(d, &[], 2)])
                    .sample((), vec![any(d, &[2, 0], 2)])
            })
            .symbolic((), &[&["n"]])
            .skip("errors", ANY_TENSOR)
            .skip("surfaces", IN_RULES)
            .done(),
    ]
}

pub(super) fn list() -> Vec<OpInfo> {
    functions().into_iter().chain(numbers()).collect()
}
