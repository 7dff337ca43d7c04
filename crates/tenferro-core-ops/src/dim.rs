//! Extents of axes, known now or when a program runs.
//!
//! A shape rule is written once over [`Extent`]: running code instantiates it with `usize`, tracing with
//! [`Dim`], a polynomial with integer coefficients over [`Atom`]s.
//!
//! Invariant: a `Dim` is in normal form (sorted monomials, no zero coefficient, a non-negative constant is
//! `Lit`), so extents that are equal as polynomials compare equal.

use crate::{
    aval::Aval,
    aval::Extents,
    op::{Op, Outs},
};
use smallvec::SmallVec;
use std::{borrow::Cow, collections::HashMap, fmt, sync::Arc};
use tenferro_tensor::{Error, Result};

/// An extent: a literal, or a polynomial over symbols.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dim {
    /// Known while tracing.
    Lit(usize),
    /// Known when the program runs.
    Expr(Arc<Poly>),
}

/// The terms of a [`Dim`] that is not a literal.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Poly(Vec<(Monomial, i64)>);

type Monomial = SmallVec<[Atom; 1]>;

/// What a polynomial extent is made of.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// Extent of a program input, by name.
    Symbol(Arc<str>),
    /// Extent found by a kernel: axis `axis` of output `output` of the call with this structural hash.
    Data {
        /// Structural hash of the call, so equal calls have equal extents.
        call: u128,
        /// Which output.
        output: u8,
        /// Which axis of it.
        axis: u8,
    },
    /// The smaller of two extents.
    Min(Dim, Dim),
    /// The larger of two extents.
    Max(Dim, Dim),
    /// Quotient rounded down.
    Div(Dim, Dim),
}

impl Dim {
    /// The extent of program inputs that is called `name`; equal names are equal extents.
    pub fn symbol(name: impl AsRef<str>) -> Dim {
        Dim::atom(Atom::Symbol(name.as_ref().into()))
    }

    fn atom(a: Atom) -> Dim {
        Dim::Expr(Arc::new(Poly(vec![(SmallVec::from_iter([a]), 1)])))
    }

    /// The literal, if this is one.
    pub fn as_lit(&self) -> Option<usize> {
        match self {
            Dim::Lit(n) => Some(*n),
            Dim::Expr(_) => None,
        }
    }

    /// The atom, if this extent is exactly one.
    pub fn as_atom(&self) -> Option<&Atom> {
        match self {
            Dim::Expr(p) => match &p.0[..] {
                [(m, 1)] if m.len() == 1 => Some(&m[0]),
                _ => None,
            },
            Dim::Lit(_) => None,
        }
    }

    fn terms(&self) -> Vec<(Monomial, i64)> {
        match self {
            Dim::Lit(0) => vec![],
            // No tensor has elements along an extent that is cut here.
            Dim::Lit(n) => vec![(Monomial::new(), i64::try_from(*n).unwrap_or(i64::MAX))],
            Dim::Expr(p) => p.0.clone(),
        }
    }

    fn from_terms(mut terms: Vec<(Monomial, i64)>) -> Dim {
        terms.sort();
        let mut sum: Vec<(Monomial, i64)> = Vec::with_capacity(terms.len());
        for (m, c) in terms {
            match sum.last_mut() {
                Some(last) if last.0 == m => last.1 = last.1.saturating_add(c),
                _ => sum.push((m, c)),
            }
        }
        sum.retain(|(_, c)| *c != 0);
        match &sum[..] {
            [] => Dim::Lit(0),
            [(m, c)] if m.is_empty() && *c >= 0 => Dim::Lit(*c as usize),
            _ => Dim::Expr(Arc::new(Poly(sum))),
        }
    }

    fn constant(&self) -> Option<i64> {
        match self {
            Dim::Lit(n) => i64::try_from(*n).ok(),
            Dim::Expr(p) => match &p.0[..] {
                [(m, c)] if m.is_empty() => Some(*c),
                _ => None,
            },
        }
    }

    /// The value under `env`; an error names an extent that is not known yet or is negative.
    pub fn eval(&self, env: &Env) -> Result<usize> {
        match self {
            Dim::Lit(n) => Ok(*n),
            Dim::Expr(_) => {
                let v = self.eval_signed(env)?;
                usize::try_from(v).map_err(|_| {
                    Error::guard("extent", format!("value of {self}"), v, "a non-negative extent")
                })
            }
        }
    }

    fn eval_signed(&self, env: &Env) -> Result<i64> {
        let Dim::Expr(p) = self else { return Ok(self.constant().unwrap_or(i64::MAX)) };
        // A difference may be small where its terms are not, so they are wider.
        let mut sum = 0i128;
        for (m, c) in &p.0 {
            let mut product = i128::from(*c);
            for a in m {
                product = product.saturating_mul(i128::from(a.eval(env)?));
            }
            sum = sum.saturating_add(product);
        }
        Ok(sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    /// Replace atoms by extents; an atom that `f` does not know stays.
    pub fn substitute(&self, f: &dyn Fn(&Atom) -> Option<Dim>) -> Dim {
        let Dim::Expr(p) = self else { return self.clone() };
        let mut sum = Dim::Lit(0);
        for (m, c) in &p.0 {
            let mut product = Dim::from_terms(vec![(Monomial::new(), *c)]);
            for a in m {
                let a = f(a).unwrap_or_else(|| match a {
                    Atom::Min(x, y) => Extent::min(&x.substitute(f), &y.substitute(f)),
                    Atom::Max(x, y) => Extent::max(&x.substitute(f), &y.substitute(f)),
                    Atom::Div(x, y) => x.substitute(f).floor_div(&y.substitute(f)),
                    a => Dim::atom(a.clone()),
                });
                product = Extent::mul(&product, &a);
            }
            sum = Extent::add(&sum, &product);
        }
        sum
    }

    /// Calls `f` on every atom, nested ones included.
    pub fn for_each_atom(&self, f: &mut dyn FnMut(&Atom)) {
        let Dim::Expr(p) = self else { return };
        for a in p.0.iter().flat_map(|(m, _)| m) {
            f(a);
            if let Atom::Min(x, y) | Atom::Max(x, y) | Atom::Div(x, y) = a {
                x.for_each_atom(f);
                y.for_each_atom(f);
            }
        }
    }
}

impl Atom {
    fn eval(&self, env: &Env) -> Result<i64> {
        Ok(match self {
            Atom::Min(a, b) => a.eval_signed(env)?.min(b.eval_signed(env)?),
            Atom::Max(a, b) => a.eval_signed(env)?.max(b.eval_signed(env)?),
            Atom::Div(a, b) => {
                let (x, y) = (a.eval_signed(env)?, b.eval_signed(env)?);
                x.checked_div_euclid(y)
                    .ok_or_else(|| Error::guard("extent", format!("divisor {b}"), y, "non-zero"))?
            }
            _ => env.get(self).ok_or_else(|| {
                Error::guard("extent", "a symbol", self, "one that is bound by an input or an earlier result")
            })? as i64,
        })
    }
}

/// Values of atoms.
#[derive(Clone, Debug, Default)]
pub struct Env(HashMap<Atom, usize>);

impl Env {
    /// The value bound to `a`.
    pub fn get(&self, a: &Atom) -> Option<usize> {
        self.0.get(a).copied()
    }

    /// Bind `a`, returning the value it had.
    pub fn bind(&mut self, a: Atom, n: usize) -> Option<usize> {
        self.0.insert(a, n)
    }
}

/// Names the call whose data decide an extent. See [`Extent::data`].
#[derive(Clone, Copy, Debug)]
pub struct Fresh(pub(crate) u128);

/// What a shape rule computes with: `usize` when running, [`Dim`] while tracing.
pub trait Extent: Clone + PartialEq + fmt::Debug + fmt::Display + Sized + 'static {
    /// The extent `n`.
    fn lit(n: usize) -> Self;
    /// The values of several, if all are known.
    fn literals(extents: &[Self]) -> Option<Cow<'_, [usize]>> {
        extents.iter().map(Self::as_lit).collect::<Option<Vec<usize>>>().map(Cow::Owned)
    }
    /// A copy of several.
    fn copy(extents: &[Self]) -> Extents<Self> {
        extents.iter().cloned().collect()
    }
    /// `d` in this representation; an error if it is symbolic and `Self` is not.
    fn of(d: &Dim) -> Result<Self>;
    /// This extent as a [`Dim`].
    fn to_dim(&self) -> Dim;
    /// The value, where it is known.
    fn as_lit(&self) -> Option<usize>;
    /// Sum.
    fn add(&self, o: &Self) -> Self;
    /// Difference; an error if it is known to be negative.
    fn sub(&self, o: &Self, op: &'static str) -> Result<Self>;
    /// Product.
    fn mul(&self, o: &Self) -> Self;
    /// Quotient rounded down; `o` is not zero.
    fn floor_div(&self, o: &Self) -> Self;
    /// The smaller.
    fn min(a: &Self, b: &Self) -> Self;
    /// The larger.
    fn max(a: &Self, b: &Self) -> Self;
    /// An extent that only the kernel knows: for `usize` its `bound`, for [`Dim`] a symbol.
    fn data(fresh: Fresh, output: usize, axis: usize, bound: &Self) -> Self;
    /// An error if `a` and `b` are known to differ. What cannot be decided while tracing is decided by the
    /// same rule over `usize` when the program runs.
    fn equal(op: &'static str, what: &str, a: &Self, b: &Self) -> Result<()>;
    /// The shape rule of an operation behind its object-safe face.
    fn infer_op(op: &dyn Op, x: &[&Aval<Self>], fresh: Fresh) -> Result<Outs<Aval<Self>>>;
}

impl Extent for usize {
    fn lit(n: usize) -> Self {
        n
    }
    #[inline]
    fn literals(extents: &[Self]) -> Option<Cow<'_, [usize]>> {
        Some(Cow::Borrowed(extents))
    }
    #[inline]
    fn copy(extents: &[Self]) -> Extents<Self> {
        Extents::from_slice(extents)
    }
    fn of(d: &Dim) -> Result<Self> {
        d.as_lit()
            .ok_or_else(|| Error::guard("extent", "a value is needed", d, "an extent that is already known"))
    }
    fn to_dim(&self) -> Dim {
        Dim::Lit(*self)
    }
    fn as_lit(&self) -> Option<usize> {
        Some(*self)
    }
    fn add(&self, o: &Self) -> Self {
        self.saturating_add(*o)
    }
    fn sub(&self, o: &Self, op: &'static str) -> Result<Self> {
        self.checked_sub(*o)
            .ok_or_else(|| Error::shape(op, "negative extent", format_args!("{self} - {o}"), "at least 0"))
    }
    fn mul(&self, o: &Self) -> Self {
        self.saturating_mul(*o)
    }
    fn floor_div(&self, o: &Self) -> Self {
        self / o
    }
    fn min(a: &Self, b: &Self) -> Self {
        *a.min(b)
    }
    fn max(a: &Self, b: &Self) -> Self {
        *a.max(b)
    }
    fn data(_: Fresh, _: usize, _: usize, bound: &Self) -> Self {
        *bound
    }
    fn equal(op: &'static str, what: &str, a: &Self, b: &Self) -> Result<()> {
        if a == b { Ok(()) } else { Err(Error::shape(op, what, a, b)) }
    }
    fn infer_op(op: &dyn Op, x: &[&Aval<Self>], _: Fresh) -> Result<Outs<Aval<Self>>> {
        op.infer_now(x)
    }
}

impl Extent for Dim {
    fn lit(n: usize) -> Self {
        Dim::Lit(n)
    }
    fn of(d: &Dim) -> Result<Self> {
        Ok(d.clone())
    }
    fn to_dim(&self) -> Dim {
        self.clone()
    }
    fn as_lit(&self) -> Option<usize> {
        Dim::as_lit(self)
    }
    fn add(&self, o: &Self) -> Self {
        if let (Dim::Lit(a), Dim::Lit(b)) = (self, o) {
            return Dim::Lit(a.saturating_add(*b));
        }
        let mut t = self.terms();
        t.extend(o.terms());
        Dim::from_terms(t)
    }
    fn sub(&self, o: &Self, op: &'static str) -> Result<Self> {
        if let (Dim::Lit(a), Dim::Lit(b)) = (self, o) {
            return Ok(Dim::Lit(a.sub(b, op)?));
        }
        let mut t = self.terms();
        t.extend(o.terms().into_iter().map(|(m, c)| (m, -c)));
        Ok(Dim::from_terms(t))
    }
    fn mul(&self, o: &Self) -> Self {
        if let (Dim::Lit(a), Dim::Lit(b)) = (self, o) {
            return Dim::Lit(a.saturating_mul(*b));
        }
        let mut t = Vec::new();
        for (a, x) in self.terms() {
            for (b, y) in o.terms() {
                let mut m = a.clone();
                m.extend(b);
                m.sort();
                t.push((m, x.saturating_mul(y)));
            }
        }
        Dim::from_terms(t)
    }
    fn floor_div(&self, o: &Self) -> Self {
        match (self, o) {
            (Dim::Lit(a), Dim::Lit(b)) => Dim::Lit(a / b),
            (a, Dim::Lit(1)) => a.clone(),
            (a, b) if a == b => Dim::Lit(1),
            (a, b) => match divide_by_monomial(a, b) {
                Some(q) => q,
                None => Dim::atom(Atom::Div(a.clone(), b.clone())),
            },
        }
    }
    fn min(a: &Self, b: &Self) -> Self {
        match (a, b) {
            (Dim::Lit(a), Dim::Lit(b)) => Dim::Lit(*a.min(b)),
            (Dim::Lit(0), _) | (_, Dim::Lit(0)) => Dim::Lit(0),
            (a, b) if a == b => a.clone(),
            (a, b) if a <= b => Dim::atom(Atom::Min(a.clone(), b.clone())),
            (a, b) => Dim::atom(Atom::Min(b.clone(), a.clone())),
        }
    }
    fn max(a: &Self, b: &Self) -> Self {
        match (a, b) {
            (Dim::Lit(a), Dim::Lit(b)) => Dim::Lit(*a.max(b)),
            (a, b) if a == b => a.clone(),
            (a, b) if a <= b => Dim::atom(Atom::Max(a.clone(), b.clone())),
            (a, b) => Dim::atom(Atom::Max(b.clone(), a.clone())),
        }
    }
    fn data(fresh: Fresh, output: usize, axis: usize, _: &Self) -> Self {
        Dim::atom(Atom::Data { call: fresh.0, output: output as u8, axis: axis as u8 })
    }
    fn equal(op: &'static str, what: &str, a: &Self, b: &Self) -> Result<()> {
        if a == b {
            return Ok(());
        }
        match a.sub(b, op).map(|d| d.constant()) {
            Ok(None) => Ok(()),
            Ok(Some(_)) | Err(_) => Err(Error::shape(op, what, a, b)),
        }
    }
    fn infer_op(op: &dyn Op, x: &[&Aval<Self>], fresh: Fresh) -> Result<Outs<Aval<Self>>> {
        op.infer_later(x, fresh)
    }
}

/// `a / b` when `b` is one monomial that divides every term of `a`.
fn divide_by_monomial(a: &Dim, b: &Dim) -> Option<Dim> {
    let [(divisor, k)] = &b.terms()[..] else { return None };
    let mut quotient = Vec::new();
    for (mut m, c) in a.terms() {
        for d in divisor {
            let at = m.iter().position(|x| x == d)?;
            m.remove(at);
        }
        if c % k != 0 {
            return None;
        }
        quotient.push((m, c / k));
    }
    Some(Dim::from_terms(quotient))
}

impl From<usize> for Dim {
    fn from(n: usize) -> Dim {
        Dim::Lit(n)
    }
}

impl std::ops::Add for &Dim {
    type Output = Dim;
    fn add(self, o: &Dim) -> Dim {
        Extent::add(self, o)
    }
}

impl std::ops::Mul for &Dim {
    type Output = Dim;
    fn mul(self, o: &Dim) -> Dim {
        Extent::mul(self, o)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = match self {
            Dim::Lit(n) => return write!(f, "{n}"),
            Dim::Expr(p) => p,
        };
        for (i, (m, c)) in p.0.iter().enumerate() {
            if i > 0 {
                f.write_str(if *c < 0 { " - " } else { " + " })?;
            } else if *c < 0 {
                f.write_str("-")?;
            }
            let c = c.unsigned_abs();
            if m.is_empty() || c != 1 {
                write!(f, "{c}{}", if m.is_empty() { "" } else { "*" })?;
            }
            for (k, a) in m.iter().enumerate() {
                write!(f, "{}{a}", if k > 0 { "*" } else { "" })?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Symbol(name) => f.write_str(name),
            Atom::Data { call, output, axis } => write!(f, "k{:04x}.{output}.{axis}", (*call >> 64) as u16),
            Atom::Min(a, b) => write!(f, "min({a}, {b})"),
            Atom::Max(a, b) => write!(f, "max({a}, {b})"),
            Atom::Div(a, b) => write!(f, "floor(({a})/({b}))"),
        }
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Poly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n() -> Dim {
        Dim::symbol("n")
    }

    #[test]
    fn equal_polynomials_compare_equal() {
        let (n, m) = (n(), Dim::symbol("m"));
        let a = n.add(&m).mul(&n.add(&m));
        let b = n.mul(&n).add(&m.mul(&n).mul(&Dim::Lit(2))).add(&m.mul(&m));
        assert_eq!(a, b);
        assert_eq!(a.sub(&b, "t").unwrap(), Dim::Lit(0));
        assert_eq!(n.mul(&m).floor_div(&m), n);
        assert_eq!(Extent::min(&n, &m), Extent::min(&m, &n));
    }

    #[test]
    fn equality_is_proved_refuted_or_left_to_the_run() {
        let m = Dim::symbol("m");
        assert!(Dim::equal("t", "x", &n().add(&m), &m.add(&n())).is_ok());
        assert!(Dim::equal("t", "x", &n().add(&Dim::Lit(1)), &n()).is_err());
        assert!(Dim::equal("t", "x", &n(), &m).is_ok());
        assert!(Dim::equal("t", "x", &Dim::Lit(2), &Dim::Lit(3)).is_err());
    }

    #[test]
    fn evaluation_names_what_is_missing_or_negative() {
        let mut env = Env::default();
        let d = n().mul(&n()).sub(&Dim::Lit(5), "t").unwrap();
        assert!(d.eval(&env).unwrap_err().to_string().contains('n'));
        env.bind(Atom::Symbol("n".into()), 3);
        assert_eq!(d.eval(&env).unwrap(), 4);
        env.bind(Atom::Symbol("n".into()), 2);
        assert!(d.eval(&env).is_err());
        assert_eq!(d.to_string(), "-5 + n*n");
    }
}
