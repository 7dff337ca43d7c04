//! Elementwise functions that are linear over the reals: each is its own tangent map.
//!
//! A row says which operation it `undoes`: `-(-x)`, `conj(conj(x))` and the real part of a real `x` as a complex
//! number are `x`.

use super::{Cast, FLOATS, NUMBERS, expect, first, linear};
use crate::{
    aval::Aval,
    dim::{Dim, Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    simplify::{Rewrite, Term},
    var::{Var, apply1},
};
use smallvec::smallvec;
use tenferro_tensor::{C64, Result};

macro_rules! linear {
    ($(
        $(#[$doc:meta])*
        $T:ident $m:ident $dtypes:ident real=$real:literal $(undoes=$Inner:ident)?; $transpose:expr;
    )*) => { $(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub struct $T;

        impl Primitive for $T {
            const NAME: &'static str = stringify!($m);
            const ELEMENTWISE: bool = true;
            fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
                expect(Self::NAME, x, 1, $dtypes)?;
                Ok(smallvec![if $real { x[0].with_dtype(x[0].dtype.real()) } else { x[0].clone() }])
            }
            fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
                linear(self, t)
            }
            fn transpose(&self, ct: &[Tangent], _: &[Arg]) -> Outs<Tangent> {
                let transpose: fn(Var) -> Var = $transpose;
                smallvec![Some(transpose(first(ct)))]
            }
            fn vjp(&self, ct: &[Tangent], _: &[Var], _: &[Var], _: &[bool]) -> Option<Outs<Tangent>> {
                Some(Primitive::transpose(self, ct, &[]))
            }
            $(fn simplify<'a>(&self, x: &[Term<'a>], _: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
                let (_, x) = x[0].made_by::<$Inner>()?;
                Some(Rewrite::Same(x[0]))
            })?
            fn saves(&self) -> Saves {
                Saves::NONE
            }
        }
    )* };
}

linear! {
    /// Negation, `-x`.
    Neg neg NUMBERS real=false undoes=Neg; |ct| -&ct;
    /// Complex conjugate.
    Conj conj FLOATS real=false undoes=Conj; |ct| ct.conj();
    // These two are only applied to complex numbers: of a real one, `Var::real` is itself and `Var::imag` 0.
    /// Real part of a complex number.
    RealPart real FLOATS real=true undoes=Cast; |ct| ct.complex();
    // imag(t) = Re(conj(i) t), so its adjoint is multiplication by i.
    /// Imaginary part of a complex number.
    Imag imag FLOATS real=true; |ct| {
        let z = ct.complex();
        let i = Var::full(&z.aval(), C64::new(0.0, 1.0));
        &z * &i
    };
}

impl Var {
    /// Complex conjugate; a real number is itself.
    pub fn conj(&self) -> Var {
        if self.dtype().is_complex() { apply1(&Conj, &[self]) } else { self.clone() }
    }

    /// Real part; a real number is itself.
    pub fn real(&self) -> Var {
        if self.dtype().is_complex() { apply1(&RealPart, &[self]) } else { self.clone() }
    }

    /// Imaginary part; of a real number, 0.
    pub fn imag(&self) -> Var {
        if self.dtype().is_complex() { apply1(&Imag, &[self]) } else { self.like(0.0) }
    }

    /// The number as a complex one.
    pub fn complex(&self) -> Var {
        self.cast(self.dtype().complex())
    }
}
