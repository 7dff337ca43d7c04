//! Elementwise functions of one input. A row is the whole operation; backends make their kernels from the
//! same rows, whose scalar formulas are methods of [`Element`](crate::element::Element).

use super::{FLOATS, NUMBERS, expect};
use crate::{
    aval::Aval,
    dim::{Extent, Fresh},
    op::{Outs, Primitive, Saves, Tangent},
    var::{Var, apply1},
};
use smallvec::smallvec;
use tenferro_tensor::Result;

/// Holomorphic functions: `Type method: scalar formula; what the derivative reads; derivative`.
#[macro_export]
macro_rules! unary_rows {
    ($m:path) => {
        $m! {
            /// Exponential, `exp(x)`.
            Exp exp: |v| v.exp(); OUTPUTS; |_x, y| y.clone();
            /// `exp(x) - 1`, accurate near 0.
            Expm1 expm1: |v| v.expm1(); OUTPUTS; |_x, y| y + 1.0;
            /// Natural logarithm, `log(x)`; for complex numbers the branch with imaginary part in (-pi, pi].
            Log log: |v| v.log(); INPUTS; |x, _y| x.recip();
            /// `log(1 + x)`, accurate near 0.
            Log1p log1p: |v| v.log1p(); INPUTS; |x, _y| (x + 1.0).recip();
            /// Sine of an angle in radians.
            Sin sin: |v| v.sin(); INPUTS; |x, _y| x.cos();
            /// Cosine of an angle in radians.
            Cos cos: |v| v.cos(); INPUTS; |x, _y| -x.sin();
            /// Tangent of an angle in radians.
            Tan tan: |v| v.tan(); OUTPUTS; |_x, y| y * y + 1.0;
            /// Hyperbolic tangent.
            Tanh tanh: |v| v.tanh(); OUTPUTS; |_x, y| (y * y) * -1.0 + 1.0;
            /// Square root; for complex numbers the root with non-negative real part.
            Sqrt sqrt: |v| v.sqrt(); OUTPUTS; |_x, y| y.like(0.5) / y;
            /// Reciprocal of the square root, `1 / sqrt(x)`.
            Rsqrt rsqrt: |v| v.rsqrt(); ALL; |x, y| (y / x) * -0.5;
        }
    };
}

macro_rules! define {
    ($($(#[$doc:meta])* $T:ident $m:ident: $f:expr; $saves:ident; $d:expr;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub struct $T;

        impl Primitive for $T {
            const NAME: &'static str = stringify!($m);
            const ELEMENTWISE: bool = true;
            fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
                expect(Self::NAME, x, 1, FLOATS)?;
                Ok(smallvec![x[0].clone()])
            }
            fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
                let d: fn(&Var, &Var) -> Var = $d;
                smallvec![t[0].as_ref().map(|t| t * &d(&x[0], &y[0]))]
            }
            fn vjp(&self, ct: &[Tangent], x: &[Var], y: &[Var], _: &[bool]) -> Option<Outs<Tangent>> {
                let d: fn(&Var, &Var) -> Var = $d;
                Some(smallvec![ct[0].as_ref().map(|ct| ct * &d(&x[0], &y[0]).conj())])
            }
            fn saves(&self) -> Saves {
                Saves::$saves
            }
        }

        impl Var {
            $(#[$doc])*
            pub fn $m(&self) -> Var {
                apply1(&$T, &[self])
            }
        }
    )* };
}
unary_rows!(define);

/// Absolute value or modulus, a real number. Its derivative at 0 is taken as 0.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Abs;

impl Primitive for Abs {
    const NAME: &'static str = "abs";
    const ELEMENTWISE: bool = true;
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, NUMBERS)?;
        Ok(smallvec![x[0].with_dtype(x[0].dtype.real())])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(|t| (t * &x[0].sign().conj()).real())]
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
}

/// `x / |x|`, and 0 at 0.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sign;

impl Primitive for Sign {
    const NAME: &'static str = "sign";
    const ELEMENTWISE: bool = true;
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, NUMBERS)?;
        Ok(smallvec![x[0].clone()])
    }
    // s = x / |x|: the part of t along s changes |x| only, the rest turns s.
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let turn = |t: &Var| {
            let along = (t * &y[0].conj()).real().complex();
            let norm = x[0].abs();
            let safe = norm.equal(&norm.like(0.0)).select(&norm.like(1.0), &norm);
            let zero = norm.equal(&norm.like(0.0));
            let turned = (t - &(&y[0] * &along)) / safe.complex();
            zero.select(&turned.like(0.0), &turned)
        };
        smallvec![if x[0].dtype().is_complex() { t[0].as_ref().map(turn) } else { None }]
    }
}

impl Var {
    /// Absolute value or modulus, a real number.
    pub fn abs(&self) -> Var {
        apply1(&Abs, &[self])
    }

    /// `x / |x|`, and 0 at 0.
    pub fn sign(&self) -> Var {
        apply1(&Sign, &[self])
    }

    /// `1 / x`.
    pub fn recip(&self) -> Var {
        &self.like(1.0) / self
    }
}
