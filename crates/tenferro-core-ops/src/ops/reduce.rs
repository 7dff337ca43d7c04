//! Reductions over axes.

use super::{Axes, NUMBERS, ORDERED, expect, expect_axes, first, linear};
use crate::{
    aval::Aval,
    dim::{Dim, Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    simplify::{Rewrite, Term},
    var::{Var, apply1},
};
use smallvec::smallvec;
use tenferro_tensor::{C64, DType, Error, Result};

macro_rules! reductions {
    ($($(#[$doc:meta])* $T:ident $name:literal $dtypes:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub struct $T {
            /// The axes, ascending.
            pub axes: Axes,
        }

        impl $T {
            const DTYPES: &'static [DType] = $dtypes;

            fn reduced<D: Extent>(&self, x: &[&Aval<D>]) -> Result<Outs<Aval<D>>> {
                expect($name, x, 1, Self::DTYPES)?;
                expect_axes($name, &self.axes, x[0].rank())?;
                let kept = (0..x[0].rank()).filter(|i| !self.axes.contains(i));
                Ok(smallvec![Aval::new(x[0].dtype, kept.map(|i| x[0].shape[i].clone()))])
            }
        }
    )* };
}
reductions! {
    /// Sum; of nothing, 0.
    ReduceSum "reduce_sum" NUMBERS;
    /// Product; of nothing, 1.
    ReduceProd "reduce_prod" NUMBERS;
    /// Largest element, NaN if there is one. Equal largest elements share the gradient.
    ReduceMax "reduce_max" ORDERED;
    /// Smallest element, NaN if there is one. Equal smallest elements share the gradient.
    ReduceMin "reduce_min" ORDERED;
}

/// `y` with the reduced axes of `x` put back, repeated.
fn restore(y: &Var, x: &Aval<Dim>, axes: &[usize]) -> Var {
    let kept: Axes = (0..x.rank()).filter(|i| !axes.contains(i)).collect();
    y.broadcast_in_dim(&x.shape, &kept)
}

/// A reduction over no axes is its operand.
fn unreduced<'a>(axes: &[usize], x: &[Term<'a>]) -> Option<Rewrite<'a>> {
    axes.is_empty().then(|| Rewrite::Same(x[0]))
}

impl Primitive for ReduceSum {
    const NAME: &'static str = "reduce_sum";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        self.reduced(x)
    }
    fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        linear(self, t)
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        smallvec![Some(restore(&first(ct), &x[0].aval(), &self.axes))]
    }
    fn vjp(&self, ct: &[Tangent], x: &[Var], _: &[Var], _: &[bool]) -> Option<Outs<Tangent>> {
        Some(smallvec![Some(restore(&first(ct), &x[0].aval(), &self.axes))])
    }
    fn simplify<'a>(&self, x: &[Term<'a>], _: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
        unreduced(&self.axes, x)
    }
    fn flops(&self, x: &[&Aval<Dim>], _: &[Aval<Dim>]) -> Option<Dim> {
        Some(x[0].count())
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

impl Primitive for ReduceProd {
    const NAME: &'static str = "reduce_prod";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        self.reduced(x)
    }
    // Multiplying by the product of the others, rather than dividing by the element, is right at zeros.
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let others = apply1(&ExclusiveProd { axes: self.axes.clone() }, &[&x[0]]);
        smallvec![t[0].as_ref().map(|t| (t * &others).reduce_sum(Some(&self.axes)))]
    }
    fn simplify<'a>(&self, x: &[Term<'a>], _: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
        unreduced(&self.axes, x)
    }
    fn flops(&self, x: &[&Aval<Dim>], _: &[Aval<Dim>]) -> Option<Dim> {
        Some(x[0].count())
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
}

/// The product over some axes of all elements but the one in this place.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExclusiveProd {
    /// The axes, ascending.
    pub axes: Axes,
}

impl Primitive for ExclusiveProd {
    const NAME: &'static str = "exclusive_prod";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, NUMBERS)?;
        expect_axes(Self::NAME, &self.axes, x[0].rank())?;
        Ok(smallvec![x[0].clone()])
    }
    // Element i is the product over j of row i of the matrix with x_j off its diagonal and 1 on it.
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let (kept, n) = (x[0].rank() - self.axes.len(), x[0].shape());
        let kept_axes: Axes = (0..x[0].rank()).filter(|i| !self.axes.contains(i)).collect();
        let order: Axes = kept_axes.iter().chain(&self.axes).copied().collect();
        let rows = x[0].transpose(&order);
        let moved = rows.shape();
        let count = self.axes.iter().fold(Dim::Lit(1), |p, &a| p.mul(&n[a]));
        let mut flat: crate::aval::Extents<Dim> = moved[..kept].into();
        flat.push(count.clone());
        let rows = rows.reshape(&flat);
        flat.push(count.clone());
        let off = rows.broadcast_in_dim(&flat, &(0..=kept).collect::<Axes>());
        let [i, j] = [kept, kept + 1].map(|axis| super::iota::iota(DType::I64, &flat, axis));
        let all = i.equal(&j).select(&off.like(1.0), &off).reduce_prod(Some(&[kept]));
        let mut inverse: Axes = smallvec![0; order.len()];
        for (at, &axis) in order.iter().enumerate() {
            inverse[axis] = at;
        }
        Some(smallvec![all.reshape(&moved).transpose(&inverse)])
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
}

macro_rules! extremum {
    ($($T:ident $name:literal;)*) => { $(
        impl Primitive for $T {
            const NAME: &'static str = $name;
            fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
                let y = self.reduced(x)?;
                for &a in &self.axes {
                    if x[0].shape[a].as_lit() == Some(0) {
                        return Err(Error::shape($name, "extent of a reduced axis", 0, "at least 1"));
                    }
                }
                Ok(y)
            }
            fn simplify<'a>(&self, x: &[Term<'a>], _: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
                unreduced(&self.axes, x)
            }
            fn flops(&self, x: &[&Aval<Dim>], _: &[Aval<Dim>]) -> Option<Dim> {
                Some(x[0].count())
            }
            fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
                smallvec![t[0].as_ref().map(|t| {
                    let hit = x[0].equal(&restore(&y[0], &x[0].aval(), &self.axes)).cast(x[0].dtype());
                    let sum = |v: &Var| v.reduce_sum(Some(&self.axes));
                    sum(&(t * &hit)) / sum(&hit)
                })]
            }
        }
    )* };
}
extremum! { ReduceMax "reduce_max"; ReduceMin "reduce_min"; }

impl Var {
    fn reduction_axes(&self, op: &'static str, axes: Option<&[usize]>) -> Result<Axes> {
        let rank = self.ok()?.rank();
        let mut axes: Axes = axes.map_or_else(|| (0..rank).collect(), Axes::from);
        expect_axes(op, &axes, rank)?;
        axes.sort();
        Ok(axes)
    }

    fn keepdims(&self, axes: Result<Axes>, reduced: impl FnOnce(&[usize]) -> Var) -> Var {
        match axes {
            Ok(axes) => reduced(&axes).expand_dims(&axes),
            Err(e) => Var::Failed(e),
        }
    }

    /// Number of elements along `axes`.
    fn count(&self, axes: &[usize]) -> Var {
        let shape = self.shape();
        let n = axes.iter().fold(Dim::Lit(1), |p, &a| p.mul(&shape[a]));
        match n {
            Dim::Lit(n) => Var::scalar(self.dtype(), C64::new(n as f64, 0.0)),
            // The extent becomes a number as the sum of as many ones.
            n => (super::iota::iota(DType::I64, std::slice::from_ref(&n), 0).like(1.0))
                .reduce_sum(None)
                .cast(self.dtype()),
        }
    }
}

macro_rules! methods {
    ($($(#[$doc:meta])* $m:ident $keep:ident $T:ident;)*) => {
        impl Var { $(
            $(#[$doc])*
            /// Over all axes if `axes` is `None`; the reduced axes are gone.
            pub fn $m(&self, axes: Option<&[usize]>) -> Var {
                match self.reduction_axes($T::NAME, axes) {
                    // Truth values are counted.
                    Ok(axes) if !$T::DTYPES.contains(&self.dtype()) && self.dtype() == DType::Bool => {
                        apply1(&$T { axes }, &[&self.convert(DType::I64)])
                    }
                    Ok(axes) => apply1(&$T { axes }, &[self]),
                    Err(e) => Var::Failed(e),
                }
            }

            $(#[$doc])*
            /// Over all axes if `axes` is `None`; the reduced axes stay with extent 1.
            pub fn $keep(&self, axes: Option<&[usize]>) -> Var {
                self.keepdims(self.reduction_axes($T::NAME, axes), |axes| self.$m(Some(axes)))
            }
        )* }
    };
}
methods! {
    /// Sum of the elements.
    reduce_sum reduce_sum_keepdims ReduceSum;
    /// Product of the elements.
    reduce_prod reduce_prod_keepdims ReduceProd;
    /// Largest element; NaN if there is one. An empty axis is an error.
    reduce_max reduce_max_keepdims ReduceMax;
    /// Smallest element; NaN if there is one. An empty axis is an error.
    reduce_min reduce_min_keepdims ReduceMin;
}

impl Var {
    /// Arithmetic mean of the elements; of integers, an f64. Over all axes if `axes` is `None`; the reduced axes
    /// are gone.
    pub fn reduce_mean(&self, axes: Option<&[usize]>) -> Var {
        if !self.dtype().is_differentiable() {
            return self.convert(DType::F64).reduce_mean(axes);
        }
        match self.reduction_axes("reduce_mean", axes) {
            Ok(axes) => self.reduce_sum(Some(&axes)) / self.count(&axes),
            Err(e) => Var::Failed(e),
        }
    }

    /// Arithmetic mean of the elements; of integers, an f64. Over all axes if `axes` is `None`; the reduced axes
    /// stay with extent 1.
    pub fn reduce_mean_keepdims(&self, axes: Option<&[usize]>) -> Var {
        self.keepdims(self.reduction_axes("reduce_mean", axes), |axes| self.reduce_mean(Some(axes)))
    }
}
