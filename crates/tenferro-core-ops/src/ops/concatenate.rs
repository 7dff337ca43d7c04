//! Joining tensors along an axis.

use super::{ALL, expect, expect_axes, expect_shape, first};
use crate::{
    aval::Aval,
    dim::{Dim, Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    var::{Var, apply1},
};
use smallvec::{SmallVec, smallvec};
use tenferro_tensor::{DType, Error, Result};

/// The inputs one after the other along an axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Concatenate {
    /// The axis.
    pub axis: usize,
}

impl Primitive for Concatenate {
    const NAME: &'static str = "concatenate";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        if x.is_empty() {
            return Err(Error::argument(Self::NAME, "number of inputs", 0, "at least 1"));
        }
        expect(Self::NAME, x, x.len(), ALL)?;
        expect_axes(Self::NAME, &[self.axis], x[0].rank())?;
        let mut y = x[0].clone();
        for b in &x[1..] {
            if b.dtype != y.dtype {
                return Err(Error::dtype(Self::NAME, "operands", b.dtype, y.dtype));
            }
            let fits = b.rank() == y.rank()
                && (0..y.rank()).all(|i| {
                    i == self.axis || D::equal(Self::NAME, "operands", &b.shape[i], &y.shape[i]).is_ok()
                });
            if !fits {
                let expected = format_args!("{} except along axis {}", x[0], self.axis).to_string();
                return Err(Error::shape(Self::NAME, "operands", b, expected));
            }
            y.shape[self.axis] = y.shape[self.axis].add(&b.shape[self.axis]);
        }
        Ok(smallvec![y])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        if t.iter().all(Option::is_none) {
            return smallvec![None];
        }
        let parts: Vec<Var> =
            t.iter().zip(x).map(|(t, x)| t.clone().unwrap_or_else(|| x.like(0.0))).collect();
        smallvec![Some(apply1(self, &parts.iter().collect::<Vec<_>>()))]
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let ct = first(ct);
        let mut start = Dim::Lit(0);
        x.iter()
            .map(|a| {
                let limit = start.add(&a.aval().shape[self.axis]);
                let from = std::mem::replace(&mut start, limit.clone());
                a.is_linear().then(|| ct.slice_axis(self.axis, from, limit))
            })
            .collect()
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

fn promoted(op: &'static str, x: &[Var]) -> Result<SmallVec<[Var; 4]>> {
    let Some(first) = x.first() else { return Err(Error::argument(op, "number of inputs", 0, "at least 1")) };
    let dtype = x[1..].iter().fold(first.dtype(), |d, v| DType::promote(d, v.dtype()));
    x.iter().map(|v| v.convert(dtype)).map(|v| v.ok().cloned()).collect()
}

/// The promoted tensors one after the other along `axis`.
pub fn concatenate(x: &[Var], axis: usize) -> Var {
    match promoted(Concatenate::NAME, x) {
        Ok(x) => apply1(&Concatenate { axis }, &x.iter().collect::<SmallVec<[&Var; 4]>>()),
        Err(e) => Var::Failed(e),
    }
}

/// The promoted tensors, all of one shape, along a new axis.
pub fn stack(x: &[Var], axis: usize) -> Var {
    const NAME: &str = "stack";
    let parts = || -> Result<Vec<Var>> {
        let x = promoted(NAME, x)?;
        let model = x[0].aval();
        if axis > model.rank() {
            return Err(Error::axis(NAME, "axis", axis, format_args!("at most {}", model.rank())));
        }
        x[1..].iter().try_for_each(|v| expect_shape(NAME, "operands", &v.aval(), &model))?;
        Ok(x.iter().map(|v| v.expand_dims(&[axis])).collect())
    };
    match parts() {
        Ok(parts) => concatenate(&parts, axis),
        Err(e) => Var::Failed(e),
    }
}
