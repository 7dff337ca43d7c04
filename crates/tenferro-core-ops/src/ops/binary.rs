//! Elementwise functions of two inputs of equal dtype and shape. Broadcasting and promotion happen at the
//! surface, before these.

use super::{FLOATS, NUMBERS, Neg, ORDERED, expect, expect_same, first, sum};
use crate::{
    aval::Aval,
    dim::{Dim, Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    simplify::{Rewrite, Term},
    var::{Var, alike, apply_long, apply1},
};
use smallvec::smallvec;
use tenferro_tensor::{DType, Result};

/// `Type method: scalar formula` of the functions of two inputs.
#[macro_export]
macro_rules! binary_rows {
    ($m:path) => {
        $m! {
            /// Sum, `x + y`.
            Add add: |a, b| a.plus(b);
            /// Difference, `x - y`.
            Sub sub: |a, b| a.minus(b);
            /// Product, `x * y`.
            Mul mul: |a, b| a.times(b);
            /// Quotient, `x / y`; of integers, an f64.
            Div div: |a, b| a.over(b);
            /// Power, `x^y`; for complex numbers `exp(y log x)` on the principal branch.
            Pow pow: |a, b| a.pow(b);
            /// The larger of two numbers; NaN if either is. Equal numbers share the gradient.
            Maximum maximum: |a, b| a.maximum(b);
            /// The smaller of two numbers; NaN if either is. Equal numbers share the gradient.
            Minimum minimum: |a, b| a.minimum(b);
        }
    };
}

/// One operation: what it is defined for, what the reverse rule reads, the three rules of its derivative, and
/// its identities.
trait Rule {
    const DTYPES: &'static [DType];
    const SAVES: Saves;
    const COMMUTES: bool = false;
    /// Tangent from x, y, the output z and the two input tangents.
    fn jvp(x: &Var, y: &Var, z: &Var, s: Tangent, t: Tangent) -> Tangent;
    /// For an operation that is linear in one or both inputs.
    fn transpose(_ct: &Var, _x: &[Arg]) -> [Tangent; 2] {
        let e = tenferro_tensor::Error::runtime_state("transpose", "the operation is not linear");
        [0, 1].map(|_| Some(Var::Failed(e.clone())))
    }
    fn vjp(_ct: &Var, _x: &[Var], _z: &Var, _need: &[bool]) -> Option<[Tangent; 2]> {
        None
    }
    /// Where it is one of its operands or another operation; see [`Primitive::simplify`].
    fn simplify<'a>(_x: Term<'a>, _y: Term<'a>) -> Option<Rewrite<'a>> {
        None
    }
}

macro_rules! define {
    ($($(#[$doc:meta])* $T:ident $m:ident: $f:expr;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub struct $T;

        impl Primitive for $T {
            const NAME: &'static str = stringify!($m);
            const ELEMENTWISE: bool = true;
            const COMMUTES: bool = <Self as Rule>::COMMUTES;
            fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
                expect(Self::NAME, x, 2, <Self as Rule>::DTYPES)?;
                expect_same(Self::NAME, x)?;
                Ok(smallvec![x[0].clone()])
            }
            fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
                smallvec![<Self as Rule>::jvp(&x[0], &x[1], &y[0], t[0].clone(), t[1].clone())]
            }
            fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
                <Self as Rule>::transpose(&first(ct), x).into_iter().collect()
            }
            fn vjp(&self, ct: &[Tangent], x: &[Var], y: &[Var], need: &[bool]) -> Option<Outs<Tangent>> {
                let g = <Self as Rule>::vjp(&first(ct), x, &y[0], need)?;
                Some(g.into_iter().zip(need).map(|(g, &n)| g.filter(|_| n)).collect())
            }
            fn simplify<'a>(&self, x: &[Term<'a>], _: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
                <Self as Rule>::simplify(x[0], x[1])
            }
            fn saves(&self) -> Saves {
                <Self as Rule>::SAVES
            }
        }
    )* };
}
binary_rows!(define);

impl Rule for Add {
    const DTYPES: &'static [DType] = NUMBERS;
    const COMMUTES: bool = true;
    const SAVES: Saves = Saves::NONE;
    fn jvp(_: &Var, _: &Var, _: &Var, s: Tangent, t: Tangent) -> Tangent {
        sum(s, t)
    }
    fn transpose(ct: &Var, x: &[Arg]) -> [Tangent; 2] {
        [0, 1].map(|i| x[i].is_linear().then(|| ct.clone()))
    }
    fn vjp(ct: &Var, _: &[Var], _: &Var, _: &[bool]) -> Option<[Tangent; 2]> {
        Some([Some(ct.clone()), Some(ct.clone())])
    }
    // x + -0 = x and x + -z = x - z. With +0 it would not keep x = -0; integers have one zero.
    fn simplify<'a>(x: Term<'a>, y: Term<'a>) -> Option<Rewrite<'a>> {
        if y.is(-0.0) {
            return Some(Rewrite::Same(x));
        }
        if x.is(-0.0) {
            return Some(Rewrite::Same(y));
        }
        let difference = |a: Term<'a>, b: Term<'a>| {
            let (_, z) = b.made_by::<Neg>()?;
            Some(Rewrite::call(Sub, [a, z[0]]))
        };
        difference(x, y).or_else(|| difference(y, x))
    }
}

impl Rule for Sub {
    const DTYPES: &'static [DType] = NUMBERS;
    const SAVES: Saves = Saves::NONE;
    fn jvp(_: &Var, _: &Var, _: &Var, s: Tangent, t: Tangent) -> Tangent {
        match (s, t) {
            (Some(s), Some(t)) => Some(&s - &t),
            (s, t) => s.or_else(|| t.map(|t| -&t)),
        }
    }
    fn transpose(ct: &Var, x: &[Arg]) -> [Tangent; 2] {
        [x[0].is_linear().then(|| ct.clone()), x[1].is_linear().then(|| -ct)]
    }
    fn vjp(ct: &Var, _: &[Var], _: &Var, need: &[bool]) -> Option<[Tangent; 2]> {
        Some([Some(ct.clone()), need[1].then(|| -ct)])
    }
    // x - 0 = x, x - -z = x + z.
    fn simplify<'a>(x: Term<'a>, y: Term<'a>) -> Option<Rewrite<'a>> {
        if y.is(0.0) {
            return Some(Rewrite::Same(x));
        }
        let (_, z) = y.made_by::<Neg>()?;
        Some(Rewrite::call(Add, [x, z[0]]))
    }
}

/// Whether this is a real 1: of complex numbers, a factor 1 + 0i makes NaN of infinities.
fn is_one(x: Term<'_>) -> bool {
    !x.aval().dtype.is_complex() && x.is(1.0)
}

impl Rule for Mul {
    const DTYPES: &'static [DType] = NUMBERS;
    const COMMUTES: bool = true;
    const SAVES: Saves = Saves::INPUTS;
    fn jvp(x: &Var, y: &Var, _: &Var, s: Tangent, t: Tangent) -> Tangent {
        sum(s.map(|s| &s * y), t.map(|t| x * &t))
    }
    fn transpose(ct: &Var, x: &[Arg]) -> [Tangent; 2] {
        if x[0].is_linear() {
            [Some(ct * &x[1].known().conj()), None]
        } else {
            [None, Some(ct * &x[0].known().conj())]
        }
    }
    fn vjp(ct: &Var, x: &[Var], _: &Var, need: &[bool]) -> Option<[Tangent; 2]> {
        Some([need[0].then(|| ct * &x[1].conj()), need[1].then(|| ct * &x[0].conj())])
    }
    // x 1 = x.
    fn simplify<'a>(x: Term<'a>, y: Term<'a>) -> Option<Rewrite<'a>> {
        if is_one(y) {
            return Some(Rewrite::Same(x));
        }
        is_one(x).then_some(Rewrite::Same(y))
    }
}

impl Rule for Div {
    const DTYPES: &'static [DType] = FLOATS;
    const SAVES: Saves = Saves::ALL;
    fn jvp(_: &Var, y: &Var, z: &Var, s: Tangent, t: Tangent) -> Tangent {
        sum(s.map(|s| &s / y), t.map(|t| &t * &-&(z / y)))
    }
    fn transpose(ct: &Var, x: &[Arg]) -> [Tangent; 2] {
        [Some(ct / &x[1].known().conj()), None]
    }
    fn vjp(ct: &Var, x: &[Var], z: &Var, need: &[bool]) -> Option<[Tangent; 2]> {
        let g = ct / &x[1].conj();
        let second = need[1].then(|| -&(&g * &z.conj()));
        Some([Some(g), second])
    }
    // x / 1 = x.
    fn simplify<'a>(x: Term<'a>, y: Term<'a>) -> Option<Rewrite<'a>> {
        is_one(y).then_some(Rewrite::Same(x))
    }
}

impl Rule for Pow {
    const DTYPES: &'static [DType] = FLOATS;
    const SAVES: Saves = Saves::ALL;
    // d(x^y) = y x^(y-1) dx + x^y log(x) dy, where the first term is 0 for x = y = 0 and the second for x = 0,
    // their limits wherever they exist.
    fn jvp(x: &Var, y: &Var, z: &Var, s: Tangent, t: Tangent) -> Tangent {
        let zero = x.equal(&x.like(0.0));
        let ds = s.map(|s| {
            // Of truth values the smaller is the conjunction.
            let origin = zero.minimum(&y.equal(&y.like(0.0)));
            let exponent = origin.select(&y.like(1.0), &(y + -1.0));
            &s * &origin.select(&y.like(0.0), &(y * &x.pow(&exponent)))
        });
        let dt = t.map(|t| {
            let log = zero.select(&x.like(1.0), x).log();
            &t * &zero.select(&x.like(0.0), &(z * &log))
        });
        sum(ds, dt)
    }
}

/// The share of the gradient that goes to `a`: 1 if it wins, 1/2 at a tie.
fn share(a: &Var, b: &Var, z: &Var) -> Var {
    let half = a.equal(b).select(&a.like(0.5), &a.like(1.0));
    a.equal(z).select(&half, &a.like(0.0))
}

impl Rule for Maximum {
    const DTYPES: &'static [DType] = ORDERED;
    const SAVES: Saves = Saves::ALL;
    fn jvp(x: &Var, y: &Var, z: &Var, s: Tangent, t: Tangent) -> Tangent {
        sum(s.map(|s| &s * &share(x, y, z)), t.map(|t| &t * &share(y, x, z)))
    }
}

impl Rule for Minimum {
    const DTYPES: &'static [DType] = ORDERED;
    const SAVES: Saves = Saves::ALL;
    fn jvp(x: &Var, y: &Var, z: &Var, s: Tangent, t: Tangent) -> Tangent {
        sum(s.map(|s| &s * &share(x, y, z)), t.map(|t| &t * &share(y, x, z)))
    }
}

/// `a op b` after promotion and broadcasting.
fn binary<P: Primitive + Rule>(op: &P, a: &Var, b: &Var) -> Var {
    if let Some(y) = alike(op, &[a, b]) {
        return y;
    }
    let defined = |v: &Var| P::DTYPES.contains(&v.dtype());
    if a.same_aval(b) && defined(a) {
        return apply_long(op, &[a, b]);
    }
    let aligned = crate::surface::align(P::NAME, a, b).map(|(a, b)| {
        // Quotients and powers of integers are those of the real numbers.
        if a.dtype().is_integer() && !defined(&a) {
            (a.convert(DType::F64), b.convert(DType::F64))
        } else {
            (a, b)
        }
    });
    match aligned {
        Ok((a, b)) => apply1(op, &[&a, &b]),
        Err(e) => Var::Failed(e),
    }
}

/// `x op c`, or `c op x` if `flip`. A dtype of `x` that does not hold the number, or that `op` is not defined for,
/// is promoted as with an f64 operand.
fn with_number<P: Primitive + Rule>(op: &P, x: &Var, c: f64, flip: bool) -> Var {
    let dtype = x.dtype();
    let stays = dtype.is_differentiable() || P::DTYPES.contains(&dtype) && dtype.holds(c.into());
    if !stays {
        return with_number(op, &x.convert(DType::F64), c, flip);
    }
    let c = x.like(c);
    apply1(op, &if flip { [&c, x] } else { [x, &c] })
}

macro_rules! methods {
    ($($(#[$doc:meta])* $T:ident $m:ident: $f:expr;)*) => {
        impl Var { $(
            $(#[$doc])*
            ///
            /// The operands are promoted to a common dtype and broadcast to a common shape.
            pub fn $m(&self, o: &Var) -> Var {
                binary(&$T, self, o)
            }
        )* }
    };
}
binary_rows!(methods);

// With a number: in the dtype of the tensor, if that is an integer dtype which holds the number, and in f64 if it does
// not or if the operation is a quotient.
macro_rules! operators {
    ($($trait:ident $m:ident $T:ident;)*) => { $(
        impl std::ops::$trait<&Var> for &Var {
            type Output = Var;
            fn $m(self, o: &Var) -> Var {
                binary(&$T, self, o)
            }
        }
        impl std::ops::$trait<Var> for Var {
            type Output = Var;
            fn $m(self, o: Var) -> Var {
                binary(&$T, &self, &o)
            }
        }
        impl std::ops::$trait<&Var> for Var {
            type Output = Var;
            fn $m(self, o: &Var) -> Var {
                binary(&$T, &self, o)
            }
        }
        impl std::ops::$trait<Var> for &Var {
            type Output = Var;
            fn $m(self, o: Var) -> Var {
                binary(&$T, self, &o)
            }
        }
        impl std::ops::$trait<f64> for &Var {
            type Output = Var;
            fn $m(self, o: f64) -> Var {
                with_number(&$T, self, o, false)
            }
        }
        impl std::ops::$trait<f64> for Var {
            type Output = Var;
            fn $m(self, o: f64) -> Var {
                with_number(&$T, &self, o, false)
            }
        }
        impl std::ops::$trait<&Var> for f64 {
            type Output = Var;
            fn $m(self, o: &Var) -> Var {
                with_number(&$T, o, self, true)
            }
        }
        impl std::ops::$trait<Var> for f64 {
            type Output = Var;
            fn $m(self, o: Var) -> Var {
                with_number(&$T, &o, self, true)
            }
        }
    )* };
}
operators! { Add add Add; Sub sub Sub; Mul mul Mul; Div div Div; }

impl std::ops::Neg for &Var {
    type Output = Var;
    fn neg(self) -> Var {
        apply1(&super::Neg, &[self])
    }
}
impl std::ops::Neg for Var {
    type Output = Var;
    fn neg(self) -> Var {
        apply1(&super::Neg, &[&self])
    }
}
