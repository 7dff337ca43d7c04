//! The properties, one a file.

mod broadcast;
mod closed;
mod completeness;
mod decomposition;
mod errors;
mod hostile;
mod inputs;
mod into;
mod jvp;
mod not_finite;
mod precision;
mod promotion;
mod second_order;
mod shape;
mod sizes;
mod surfaces;
mod symbolic;
mod tiers;
mod transpose;
mod upstream;
mod value;
mod views;

pub use completeness::COMPLETENESS;

use crate::{
    array::Array,
    info::{OpInfo, Sample},
};
use tenferro_tensor::{DType, Error};

/// What a check finds wrong, in words.
pub type Outcome = Result<(), String>;

/// A property of operations.
pub struct Loop {
    /// As tests are named.
    pub name: &'static str,
    relevant: fn(&OpInfo) -> bool,
    /// Checks it on all samples of an operation.
    pub check: fn(&OpInfo) -> Outcome,
}

impl Loop {
    /// Whether there is something to check.
    pub fn applies(&self, info: &OpInfo) -> bool {
        (self.relevant)(info) && info.skips.iter().all(|(name, _)| *name != self.name)
    }
}

fn differentiable(info: &OpInfo) -> bool {
    let real = |s: &Sample| s.inputs.iter().any(|a| a.dtype.is_differentiable());
    info.order > 0 && info.samples.iter().any(real)
}

fn several_inputs(info: &OpInfo) -> bool {
    info.samples.iter().any(|s| s.inputs.len() > 1)
}

/// All properties.
pub const LOOPS: &[Loop] = &[
    Loop { name: "shape", relevant: |_| true, check: shape::check },
    Loop { name: "value", relevant: |_| true, check: value::check },
    Loop { name: "sizes", relevant: |_| true, check: sizes::check },
    Loop { name: "views", relevant: |i| i.samples.iter().any(|s| !s.inputs.is_empty()), check: views::check },
    Loop { name: "into", relevant: into::relevant, check: into::check },
    Loop { name: "broadcast", relevant: |i| i.broadcasts && several_inputs(i), check: broadcast::check },
    Loop { name: "promotion", relevant: |i| i.promotes && several_inputs(i), check: promotion::check },
    Loop { name: "tiers", relevant: |_| true, check: tiers::check },
    Loop {
        name: "surfaces",
        relevant: |i| i.samples.iter().any(|s| s.surface.is_some()),
        check: surfaces::check,
    },
    Loop { name: "symbolic", relevant: |i| !i.symbolic.is_empty(), check: symbolic::check },
    Loop { name: "decomposition", relevant: decomposition::relevant, check: decomposition::check },
    Loop { name: "jvp", relevant: differentiable, check: jvp::check },
    Loop { name: "flat", relevant: |i| i.order == 0, check: jvp::check_flat },
    Loop { name: "precision", relevant: precision::relevant, check: precision::check },
    Loop { name: "transpose", relevant: differentiable, check: transpose::check },
    Loop { name: "second_order", relevant: |i| i.order > 1 && differentiable(i), check: second_order::check },
    Loop { name: "closed_derivative", relevant: |i| !i.closed.is_empty(), check: closed::check },
    Loop { name: "errors", relevant: |i| !i.errors.is_empty(), check: errors::check },
    Loop {
        name: "hostile",
        relevant: |i| i.samples.iter().any(|s| !s.inputs.is_empty()),
        check: hostile::check,
    },
    Loop { name: "not_finite", relevant: not_finite::relevant, check: not_finite::check },
    Loop {
        name: "upstream",
        relevant: |i| i.samples.iter().any(|s| !s.inputs.is_empty()),
        check: upstream::check,
    },
    Loop { name: "inputs_untouched", relevant: |_| true, check: inputs::check },
];

/// A check of the list of operations itself.
pub struct Completeness {
    /// As tests are named.
    pub name: &'static str,
    /// Checks it.
    pub check: fn(&[OpInfo]) -> Outcome,
}

/// Checks every sample and reports all that fail.
fn each(info: &OpInfo, f: impl Fn(&Sample) -> Outcome) -> Outcome {
    all(info.samples.iter().map(|s| f(s).map_err(|e| format!("{}: {e}", s.label))))
}

/// All that failed.
fn all(outcomes: impl Iterator<Item = Outcome>) -> Outcome {
    let failures: Vec<String> = outcomes.filter_map(Result::err).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// An error of a run, and during what.
fn during<T>(what: &str, r: Result<T, Error>) -> Result<T, String> {
    r.map_err(|e| format!("{what}: {e}"))
}

fn close(what: &str, got: &[Array], want: &[Array], rtol: f64, atol: f64) -> Outcome {
    if got.len() != want.len() {
        return Err(format!("{what}: got {} outputs, expected {}", got.len(), want.len()));
    }
    all(got.iter().zip(want).map(|(g, w)| g.close(w, rtol, atol).map_err(|e| format!("{what}: {e}"))))
}

/// Equal, NaN for NaN.
fn equal(what: &str, got: &[Array], want: &[Array]) -> Outcome {
    close(what, got, want, 0.0, 0.0)
}

/// Rounding error of a dtype.
fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F32 | DType::C32 => f32::EPSILON as f64,
        _ => f64::EPSILON,
    }
}

/// Close up to the tolerance of the operation and `factor`, relative to the largest finite element.
fn near(what: &str, got: &[Array], want: &[Array], tolerance: f64) -> Outcome {
    near_above(0.0, what, got, want, tolerance)
}

/// As [`near`], for derivatives: of a smaller one that is the sum of terms which cancel, all is rounding.
fn near_derivative(what: &str, got: &[Array], want: &[Array], tolerance: f64) -> Outcome {
    near_above(crate::difference::SMALLEST, what, got, want, tolerance)
}

fn near_above(floor: f64, what: &str, got: &[Array], want: &[Array], tolerance: f64) -> Outcome {
    all(got.iter().zip(want).map(|(g, w)| {
        let finite =
            |a: &Array| a.data.iter().map(|e| e.c().norm()).filter(|x| x.is_finite()).fold(0.0, f64::max);
        let eps = tolerance * epsilon(w.dtype);
        close(what, std::slice::from_ref(g), std::slice::from_ref(w), eps, eps * finite(w).clamp(floor, 1e3))
    }))
    .and(if got.len() == want.len() { Ok(()) } else { Err(format!("{what}: {} outputs", got.len())) })
}

/// Cotangents for the outputs that have derivatives, zero for the others.
fn directions(like: &[Array], seed: u64) -> Vec<Array> {
    like.iter().enumerate().map(|(i, a)| a.direction(seed + i as u64)).collect()
}

/// Directions for the differentiable inputs.
fn input_directions(x: &[Array], seed: u64) -> Vec<Array> {
    let wrt = crate::run::differentiable(x);
    directions(&wrt.iter().map(|&i| x[i].clone()).collect::<Vec<_>>(), seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{array::Elem, info::op};
    use smallvec::smallvec;
    use tenferro_core_ops::{Arg, Aval, Extent, Fresh, Outs, Primitive, Tangent, Var, apply1};

    /// The square of a complex number, with one fact about it stated wrongly.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    enum Square {
        Right,
        WrongShape,
        WrongTangent,
        WrongAdjoint,
    }

    impl Primitive for Square {
        const NAME: &'static str = "square";
        fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> tenferro_tensor::Result<Outs<Aval<D>>> {
            Ok(smallvec![if *self == Square::WrongShape { Aval::new(x[0].dtype, []) } else { x[0].clone() }])
        }
        fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
            Some(smallvec![&x[0] * &x[0]])
        }
        fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
            let factor = &x[0] * if *self == Square::WrongTangent { 2.000001 } else { 2.0 };
            smallvec![t[0].as_ref().map(|t| t * &factor)]
        }
        fn transpose(&self, _: &[Tangent], _: &[Arg]) -> Outs<Tangent> {
            smallvec![None]
        }
        fn vjp(&self, ct: &[Tangent], x: &[Var], _: &[Var], _: &[bool]) -> Option<Outs<Tangent>> {
            // The conjugate is missing.
            (*self == Square::WrongAdjoint)
                .then(|| smallvec![ct[0].as_ref().map(|ct| &(ct * &x[0]) * &x[0].like(2.0))])
        }
    }

    /// What the loop `name` says of the square alone, and of the square beside a result without derivatives.
    fn says(name: &str, fact: Square) -> [Outcome; 2] {
        let z = || vec![Array::complexes(DType::C64, &[2], &[(0.6, 0.8), (-0.3, 1.1)])];
        let alone = op(
            "square",
            |p: &Square, x: &[Var]| apply1(p, &[&x[0]]),
            |_, x| x[0].map(x[0].dtype, |e| e.times(e)),
        );
        let beside = op(
            "square and sign",
            |p: &Square, x: &[Var]| -> Outs<Var> {
                smallvec![x[0].real().sign().cast(DType::I64), apply1(p, &[&x[0]])]
            },
            |_, x| {
                let sign = x[0].map(DType::I64, |e| Elem::Int(e.c().re.signum() as i64));
                vec![sign, x[0].map(x[0].dtype, |e| e.times(e))]
            },
        );
        let property = LOOPS.iter().find(|l| l.name == name).expect("a loop of this name");
        [alone.sample(fact.clone(), z()).done(), beside.sample(fact, z()).done()]
            .map(|i| (property.check)(&i))
    }

    #[test]
    fn the_loops_find_what_is_stated_wrongly() {
        let wrong = [
            ("shape", Square::WrongShape),
            ("jvp", Square::WrongTangent),
            ("transpose", Square::WrongAdjoint),
            ("tiers", Square::WrongAdjoint),
        ];
        for (name, fact) in wrong {
            assert_eq!(says(name, Square::Right), [Ok(()), Ok(())], "{name}");
            assert!(says(name, fact.clone()).iter().all(|said| said.is_err()), "{name} of {fact:?}");
        }
    }
}
