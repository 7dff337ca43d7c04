//! Families that act on every element alone; functions that are not operations, as compositions of operations.

use crate::args::{Arg, Args, Families, Outputs};
use std::f64::consts::{LN_2, LN_10, PI};
use tenferro_core_ops::Var;
use tenferro_tensor::{C64, DType};

pub(crate) const FAMILIES: Families = &[
    ("abs", |a| a.unary(Var::abs)),
    ("acos", |a| a.unary(acos)),
    ("acosh", |a| a.unary(|x| (x + (x - 1.0).sqrt() * (x + 1.0).sqrt()).log())),
    ("add __radd__", |a| scaled(a, |x, y| x + y)),
    ("addcdiv", |a| added(a, |x, y| x / y)),
    ("addcmul", |a| added(a, |x, y| x * y)),
    ("angle", |a| a.unary(|x| x.complex().log().imag())),
    ("asin", |a| a.unary(|x| atan2(x, &((x * -1.0 + 1.0) * (x + 1.0)).sqrt()))),
    ("asinh", |a| a.unary(|x| x.sign() * (x.abs() + (x * x + 1.0).sqrt()).log())),
    ("atan", |a| a.unary(|x| atan2(x, &x.like(1.0)))),
    ("atan2", |a| a.binary(atan2)),
    ("atanh", |a| a.unary(|x| (x.log1p() - (-x).log1p()) * 0.5)),
    ("cdouble", |a| a.unary(|x| x.cast(DType::C64))),
    ("clamp_max min_binary minimum fmin", |a| a.binary(Var::minimum)),
    ("clamp_min max_binary maximum fmax", |a| a.binary(Var::maximum)),
    ("complex", |a| a.binary(complex)),
    ("conj conj_physical", |a| a.unary(Var::conj)),
    ("copysign", copysign),
    ("cos", |a| a.unary(Var::cos)),
    ("cosh", |a| a.unary(|x| (x.exp() + (-x).exp()) * 0.5)),
    ("div_no_rounding_mode true_divide", |a| a.binary(Var::div)),
    ("__rdiv__", |a| a.binary(|x, y| y / x)),
    ("double", |a| a.unary(|x| x.cast(DType::F64))),
    ("exp", |a| a.unary(Var::exp)),
    ("exp2", |a| a.unary(|x| (x * LN_2).exp())),
    ("expm1", |a| a.unary(Var::expm1)),
    ("fill", |a| {
        let value = a.number(1, "value", f64::NAN);
        a.unary(|x| x * 0.0 + value)
    }),
    ("float_power", |a| a.binary(|x, y| double(x).pow(&double(y)))),
    ("hypot", |a| a.binary(|x, y| complex(x, y).abs())),
    ("imag", |a| a.unary(Var::imag)),
    ("ldexp", |a| a.binary(|x, y| x * (y * LN_2).exp())),
    ("lerp", |a| {
        let (x, y, weight) = (a.var(0)?, a.var(1)?, a.var(2)?);
        Ok(vec![&x + weight * (y - &x)])
    }),
    ("log", |a| a.unary(Var::log)),
    ("log10", |a| a.unary(|x| x.log() / LN_10)),
    ("log1p", |a| a.unary(Var::log1p)),
    ("log2", |a| a.unary(|x| x.log() / LN_2)),
    ("logaddexp", |a| a.binary(logaddexp)),
    ("logit", |a| match a.get(1, "eps").number() {
        Some(e) => a.unary(|x| logit(&x.clamp(&x.like(e), &x.like(1.0 - e)))),
        None => a.unary(logit),
    }),
    ("mul __rmul__", |a| a.binary(Var::mul)),
    ("nan_to_num", |a| a.unary(nan_to_num)),
    ("neg", |a| a.unary(|x| -x)),
    ("nn_functional_celu", |a| {
        let alpha = a.number(1, "alpha", 1.0);
        a.unary(|x| elu(x, alpha, alpha))
    }),
    ("nn_functional_elu", |a| {
        let alpha = a.number(1, "alpha", 1.0);
        a.unary(|x| elu(x, alpha, 1.0))
    }),
    ("nn_functional_hardshrink", |a| {
        let l = a.number(1, "lambd", 0.5);
        a.unary(|x| x.abs().greater(&x.like(l)).select(x, &x.like(0.0)))
    }),
    ("nn_functional_hardsigmoid", |a| a.unary(|x| (x + 3.0).clamp(&x.like(0.0), &x.like(6.0)) / 6.0)),
    ("nn_functional_hardtanh", |a| {
        let (low, high) = (a.number(1, "min_val", -1.0), a.number(2, "max_val", 1.0));
        a.unary(|x| x.clamp(&x.like(low), &x.like(high)))
    }),
    ("nn_functional_logsigmoid", |a| a.unary(|x| -softplus(&-x))),
    ("nn_functional_mish", |a| a.unary(|x| x * softplus(x).tanh())),
    ("nn_functional_prelu", prelu),
    ("nn_functional_relu", |a| a.unary(|x| x.greater(&x.like(0.0)).select(x, &x.like(0.0)))),
    ("nn_functional_relu6", |a| a.unary(|x| x.clamp(&x.like(0.0), &x.like(6.0)))),
    ("nn_functional_rrelu", |a| {
        if a.flag(3, "training", false) {
            return Err("random numbers".into());
        }
        let slope = (a.number(1, "lower", 1.0 / 8.0) + a.number(2, "upper", 1.0 / 3.0)) / 2.0;
        a.unary(|x| x.less(&x.like(0.0)).select(&(x * slope), x))
    }),
    ("nn_functional_selu", |a| a.unary(|x| elu(x, SELU_ALPHA, 1.0) * SELU_SCALE)),
    ("nn_functional_silu", |a| a.unary(|x| x * sigmoid(x))),
    ("nn_functional_softplus", |a| {
        let (beta, threshold) = (a.number(1, "beta", 1.0), a.number(2, "threshold", 20.0));
        a.unary(|x| {
            let scaled = x * beta;
            scaled.greater(&x.like(threshold)).select(x, &(softplus(&scaled) / beta))
        })
    }),
    ("nn_functional_softshrink", |a| {
        let l = a.number(1, "lambd", 0.5);
        a.unary(|x| {
            let low = x.less(&x.like(-l)).select(&(x + l), &x.like(0.0));
            x.greater(&x.like(l)).select(&(x - l), &low)
        })
    }),
    ("nn_functional_softsign", |a| a.unary(|x| x / (x.abs() + 1.0))),
    ("nn_functional_tanhshrink", |a| a.unary(|x| x - x.tanh())),
    ("nn_functional_threshold", |a| {
        let (threshold, value) = (a.number(1, "threshold", 0.0), a.number(2, "value", 0.0));
        a.unary(|x| x.greater(&x.like(threshold)).select(x, &x.like(value)))
    }),
    ("polar", |a| a.binary(|r, angle| complex(&(r * angle.cos()), &(r * angle.sin())))),
    ("positive", |a| a.unary(Var::clone)),
    ("pow", |a| a.binary(Var::pow)),
    ("__rpow__", |a| a.binary(|x, y| y.pow(x))),
    ("real", |a| a.unary(Var::real)),
    ("reciprocal", |a| a.unary(Var::recip)),
    ("rsqrt", |a| a.unary(Var::rsqrt)),
    ("rsub __rsub__", |a| {
        let alpha = a.number(2, "alpha", 1.0);
        a.binary(|x, y| y - x * alpha)
    }),
    ("sgn sign", |a| a.unary(Var::sign)),
    ("sigmoid", |a| a.unary(sigmoid)),
    ("sin", |a| a.unary(Var::sin)),
    ("sinc", |a| a.unary(sinc)),
    ("sinh", |a| a.unary(|x| (x.exp() - (-x).exp()) * 0.5)),
    ("special_entr", |a| {
        a.unary(|x| {
            let inside = xlog(x, x, Var::log) * -1.0;
            x.less(&x.like(0.0)).select(&x.like(f64::NEG_INFINITY), &inside)
        })
    }),
    ("special_xlog1py", |a| a.binary(|x, y| xlog(x, y, Var::log1p))),
    ("sqrt", |a| a.unary(Var::sqrt)),
    ("square", |a| a.unary(|x| x * x)),
    ("sub", |a| scaled(a, |x, y| x - y)),
    ("tan", |a| a.unary(Var::tan)),
    ("where", |a| {
        let condition = a.var(1)?;
        Ok(vec![condition.select(&a.var(0)?, &a.var(2)?)])
    }),
    ("xlogy", |a| a.binary(|x, y| xlog(x, y, Var::log))),
];

// The constants of G. Klambauer et al., "Self-normalizing neural networks" (NIPS 2017).
const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

/// `f(x, alpha y)`
fn scaled(a: &Args, f: impl Fn(&Var, &Var) -> Var) -> Outputs {
    match a.get(2, "alpha") {
        Arg::Null => a.binary(f),
        alpha => {
            let alpha = a.value(alpha)?;
            a.binary(|x, y| f(x, &(y * &alpha)))
        }
    }
}

/// `x + value f(y, z)`
fn added(a: &Args, f: impl Fn(&Var, &Var) -> Var) -> Outputs {
    let term = f(&a.var(1)?, &a.var(2)?);
    Ok(vec![match a.named("value") {
        Arg::Null => a.var(0)? + term,
        value => a.var(0)? + a.value(value)? * term,
    }])
}

/// `x i`, of a complex x.
fn times_i(x: &Var) -> Var {
    x * Var::scalar(x.dtype(), C64::new(0.0, 1.0))
}

pub(crate) fn complex(re: &Var, im: &Var) -> Var {
    re.complex() + times_i(&im.complex())
}

/// The argument of `x + i y`.
fn atan2(y: &Var, x: &Var) -> Var {
    complex(x, y).log().imag()
}

fn acos(x: &Var) -> Var {
    let other = (x * -1.0 + 1.0).sqrt() * (x + 1.0).sqrt();
    if x.dtype().is_complex() {
        return times_i(&(x + times_i(&other)).log()) * -1.0;
    }
    atan2(&other, x)
}

fn copysign(a: &Args) -> Outputs {
    let (x, y) = (a.var(0)?, a.var(1)?);
    // The sign bit counts, even of zero.
    let negative = y.like(1.0).div(&y).less(&y.like(0.0));
    let sign = negative.select(&y.like(-1.0), &y.like(1.0));
    Ok(vec![x.abs() * sign])
}

fn double(x: &Var) -> Var {
    x.cast(if x.dtype().is_complex() { DType::C64 } else { DType::F64 })
}

pub(crate) fn logaddexp(x: &Var, y: &Var) -> Var {
    if x.dtype().is_complex() {
        // Of the logarithms, which differ by multiples of 2 pi i, PyTorch's is the one near the larger operand.
        let first = x.real().greater_equal(&y.real());
        let (large, small) = (first.select(x, y), first.select(y, x));
        return (small - &large).exp().log1p() + large;
    }
    x.maximum(y) + (-(x - y).abs()).exp().log1p()
}

fn logit(x: &Var) -> Var {
    x.log() - (-x).log1p()
}

fn sigmoid(x: &Var) -> Var {
    ((-x).exp() + 1.0).recip()
}

/// `log(1 + exp(x))`
fn softplus(x: &Var) -> Var {
    x.maximum(&x.like(0.0)) + (-x.abs()).exp().log1p()
}

/// `x` above 0 and `alpha (exp(x / width) - 1)` below.
fn elu(x: &Var, alpha: f64, width: f64) -> Var {
    let below = x.minimum(&x.like(0.0));
    x.greater(&x.like(0.0)).select(x, &((below / width).expm1() * alpha))
}

fn nan_to_num(x: &Var) -> Var {
    let most = if x.dtype() == DType::F32 { f32::MAX as f64 } else { f64::MAX };
    x.equal(x).select(&x.clamp(&x.like(-most), &x.like(most)), &x.like(0.0))
}

/// The weight, one for each channel, belongs to axis 1.
fn prelu(a: &Args) -> Outputs {
    let (x, weight) = (a.var(0)?, a.var(1)?);
    let mut shape = vec![1; x.rank()];
    if weight.rank() == 1 && x.rank() > 1 {
        shape[1] = crate::args::extents(&weight)[0];
    }
    let weight = if weight.rank() == 1 { weight.reshape(&crate::args::lits(&shape)) } else { weight };
    Ok(vec![x.greater(&x.like(0.0)).select(&x, &(weight * &x))])
}

fn sinc(x: &Var) -> Var {
    let zero = x.equal(&x.like(0.0));
    let angle = zero.select(&x.like(1.0), x) * PI;
    zero.select(&x.like(1.0), &(angle.sin() / angle))
}

/// `x f(y)`, and 0 where x is 0.
fn xlog(x: &Var, y: &Var, f: impl Fn(&Var) -> Var) -> Var {
    let zero = x.equal(&x.like(0.0));
    let safe = zero.select(&y.like(1.0), y);
    zero.select(&y.like(0.0), &(x * f(&safe)))
}
