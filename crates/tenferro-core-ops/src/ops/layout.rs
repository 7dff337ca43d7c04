//! Operations that only change which element is where. On present values they are O(rank): the result is
//! another layout over the same buffer.

use super::{ALL, Axes, expect, expect_axes, first, linear};
use crate::{
    aval::{Aval, Extents, ShapeOf},
    dim::{Dim, Extent, Fresh},
    op::{Arg, Outs, Primitive, Saves, Tangent},
    simplify::{Rewrite, Term},
    var::{Var, apply1},
};
use smallvec::{SmallVec, smallvec};
use tenferro_tensor::{Error, Layout, Result};

/// Axis `i` of the result is axis `perm[i]` of the operand.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Transpose {
    /// The permutation.
    pub perm: Axes,
}

impl Primitive for Transpose {
    const NAME: &'static str = "transpose";
    const VIEW: bool = true;
    fn always_fits(&self, _: &Aval<Dim>, _: &Aval<Dim>) -> bool {
        true
    }
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, ALL)?;
        if self.perm.len() != x[0].rank() {
            return Err(Error::axis(Self::NAME, "length of the permutation", self.perm.len(), x[0].rank()));
        }
        expect_axes(Self::NAME, &self.perm, x[0].rank())?;
        Ok(smallvec![Aval::new(x[0].dtype, self.perm.iter().map(|&p| x[0].shape[p].clone()))])
    }
    fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        linear(self, t)
    }
    fn transpose(&self, ct: &[Tangent], _: &[Arg]) -> Outs<Tangent> {
        let mut inverse: Axes = smallvec![0; self.perm.len()];
        for (i, &p) in self.perm.iter().enumerate() {
            inverse[p] = i;
        }
        smallvec![Some(first(ct).transpose(&inverse))]
    }
    fn view(&self, x: &Layout) -> Option<Layout> {
        x.transpose(Self::NAME, &self.perm).ok()
    }
    /// By the identity, `x`; of a transpose, one transpose.
    fn simplify<'a>(&self, x: &[Term<'a>], _: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
        if is_identity(&self.perm) {
            return Some(Rewrite::Same(x[0]));
        }
        let (inner, x) = x[0].made_by::<Transpose>()?;
        Some(Rewrite::call(Transpose { perm: self.perm.iter().map(|&p| inner.perm[p]).collect() }, x))
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

/// The elements in column-major order under another shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reshape {
    /// The extents of the result.
    pub shape: Extents<Dim>,
}

impl Primitive for Reshape {
    const NAME: &'static str = "reshape";
    const VIEW: bool = true;
    fn always_fits(&self, x: &Aval<Dim>, y: &Aval<Dim>) -> bool {
        x.count() == y.count()
    }
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, ALL)?;
        let shape: Extents<D> = self.shape.iter().map(D::of).collect::<Result<_>>()?;
        let product = |s: &[D]| s.iter().fold(D::lit(1), |p, n| p.mul(n));
        D::equal(Self::NAME, "number of elements", &product(&x[0].shape), &product(&shape)).map_err(
            |_| {
                Error::shape(
                    Self::NAME,
                    "number of elements",
                    x[0],
                    format_args!("as many as {}", ShapeOf(&shape)),
                )
            },
        )?;
        Ok(smallvec![Aval { dtype: x[0].dtype, shape }])
    }
    fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        linear(self, t)
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        smallvec![Some(first(ct).reshape(&x[0].aval().shape))]
    }
    fn view(&self, x: &Layout) -> Option<Layout> {
        x.reshape(Self::NAME, &literals(&self.shape)?).ok().flatten()
    }
    fn dims(&self) -> &[Dim] {
        &self.shape
    }
    fn with_dims(&self, dims: &[Dim]) -> Self {
        Reshape { shape: dims.into() }
    }
    /// To its own shape, `x`; of a reshape, the last one. The number of elements of the inner operand, which the
    /// inner call checks, must be known to be right.
    fn simplify<'a>(&self, x: &[Term<'a>], y: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
        let a = x[0].aval();
        if *a == y[0] {
            return Some(Rewrite::Same(x[0]));
        }
        let (_, x) = x[0].made_by::<Reshape>()?;
        (x[0].aval().count() == a.count()).then(|| Rewrite::call(self.clone(), x))
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

/// Axis `i` of the operand becomes axis `axes[i]` of the result; the elements repeat along the other axes and
/// along operand axes of literal extent 1. A symbolic extent never repeats, whatever it turns out to be.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BroadcastInDim {
    shape: Extents<Dim>,
    axes: Axes,
    repeated: Axes,
}

impl BroadcastInDim {
    /// Broadcast an operand of extents `operand` to `shape` with its axis `i` at `axes[i]`.
    pub fn new(operand: &[Dim], shape: Extents<Dim>, axes: &[usize]) -> Self {
        let repeats = |i: &usize| {
            operand[*i] == Dim::Lit(1)
                && axes.get(*i).and_then(|&a| shape.get(a)).is_some_and(|d| *d != Dim::Lit(1))
        };
        let repeated = (0..operand.len()).filter(repeats).collect();
        BroadcastInDim { shape, axes: axes.into(), repeated }
    }
}

impl Primitive for BroadcastInDim {
    const NAME: &'static str = "broadcast_in_dim";
    const VIEW: bool = true;
    fn always_fits(&self, x: &Aval<Dim>, _: &Aval<Dim>) -> bool {
        let fits = |(i, n): (usize, &Dim)| self.repeated.contains(&i) || *n == self.shape[self.axes[i]];
        x.shape.iter().enumerate().all(fits)
    }
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, ALL)?;
        if self.axes.len() != x[0].rank() {
            return Err(Error::axis(Self::NAME, "number of axes", self.axes.len(), x[0].rank()));
        }
        expect_axes(Self::NAME, &self.axes, self.shape.len())?;
        let shape: Extents<D> = self.shape.iter().map(D::of).collect::<Result<_>>()?;
        for (i, (n, &a)) in x[0].shape.iter().zip(&self.axes).enumerate() {
            let expected = if self.repeated.contains(&i) { D::lit(1) } else { shape[a].clone() };
            D::equal(Self::NAME, "extent of the operand", n, &expected)?;
        }
        Ok(smallvec![Aval { dtype: x[0].dtype, shape }])
    }
    fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        linear(self, t)
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let operand = x[0].aval().shape;
        // What was repeated is summed.
        let kept =
            |axis: usize| self.axes.iter().position(|&a| a == axis).filter(|i| !self.repeated.contains(i));
        let summed: Axes = (0..self.shape.len()).filter(|&a| kept(a).is_none()).collect();
        let sum = first(ct).reduce_sum(Some(&summed));
        let order: Axes = (0..self.shape.len()).filter_map(kept).collect();
        let mut sorted = order.clone();
        sorted.sort();
        let perm: Axes = sorted
            .iter()
            .map(|i| order.iter().position(|o| o == i).expect("the same axes, sorted"))
            .collect();
        smallvec![Some(sum.transpose(&perm).reshape(&operand))]
    }
    fn view(&self, x: &Layout) -> Option<Layout> {
        let shape = literals(&self.shape)?;
        // A layout repeats any axis of extent 1, the operation those it was made to.
        let fits = |(i, &a): (usize, &usize)| {
            self.repeated.contains(&i) || x.shape().get(i).is_some_and(|n| shape.get(a) == Some(n))
        };
        let fits = self.axes.iter().enumerate().all(fits);
        fits.then(|| x.broadcast(Self::NAME, &shape, &self.axes).ok()).flatten()
    }
    fn dims(&self) -> &[Dim] {
        &self.shape
    }
    fn with_dims(&self, dims: &[Dim]) -> Self {
        BroadcastInDim { shape: dims.into(), axes: self.axes.clone(), repeated: self.repeated.clone() }
    }
    /// With every axis in its place and the extent it has, `x`.
    fn simplify<'a>(&self, x: &[Term<'a>], _: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
        is_identity(&self.axes).then(|| Rewrite::Same(x[0]))
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

/// Every `step`-th element from `start` up to, but not including, `limit`, along each axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slice {
    /// Starts, then limits.
    bounds: SmallVec<[Dim; 12]>,
    steps: Axes,
}

impl Slice {
    /// A slice with one start, limit and step for each axis.
    pub fn new<D: Extent>(starts: &[D], limits: &[D], steps: &[usize]) -> Self {
        let mut bounds = SmallVec::new();
        starts.iter().for_each(|d| bounds.push(d.to_dim()));
        limits.iter().for_each(|d| bounds.push(d.to_dim()));
        Slice { bounds, steps: Axes::from_slice(steps) }
    }
}

impl Primitive for Slice {
    const NAME: &'static str = "slice";
    const VIEW: bool = true;
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, ALL)?;
        let rank = x[0].rank();
        if self.bounds.len() != 2 * rank || self.steps.len() != rank {
            return Err(Error::axis(
                Self::NAME,
                "number of starts, limits and steps",
                self.steps.len(),
                rank,
            ));
        }
        let (starts, limits) = self.bounds.split_at(rank);
        let mut y = x[0].clone();
        for i in 0..rank {
            let (start, limit, step) = (D::of(&starts[i])?, D::of(&limits[i])?, self.steps[i]);
            if step == 0 {
                return Err(Error::argument(Self::NAME, "step", 0, "at least 1"));
            }
            if let (Some(l), Some(n)) = (limit.as_lit(), x[0].shape[i].as_lit())
                && l > n
            {
                return Err(Error::argument(Self::NAME, "limit", l, format_args!("at most {n} on axis {i}")));
            }
            let length = limit.sub(&start, Self::NAME)?;
            y.shape[i] = match (length.as_lit(), step) {
                (Some(length), step) => D::lit(length.div_ceil(step)),
                (None, 1) => length,
                (None, step) => {
                    // Symbols are computed with as i64, where the sum is cut off for a longer step.
                    let step = step.min(i64::MAX as usize);
                    length.add(&D::lit(step - 1)).floor_div(&D::lit(step))
                }
            };
        }
        Ok(smallvec![y])
    }
    fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        linear(self, t)
    }
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let ct = first(ct);
        let (operand, taken) = (x[0].aval().shape, ct.shape());
        let (mut low, mut high) = (Extents::new(), Extents::new());
        for (i, &step) in self.steps.iter().enumerate() {
            let start = &self.bounds[i];
            let rest = super::pad::spread(&taken[i], step - 1)
                .and_then(|covered| operand[i].sub(start, Self::NAME)?.sub(&covered, Self::NAME));
            match rest {
                Ok(rest) => high.push(rest),
                Err(e) => return smallvec![Some(Var::Failed(e))],
            }
            low.push(start.clone());
        }
        let gaps: Axes = self.steps.iter().map(|s| s - 1).collect();
        let zero = Var::scalar(ct.dtype(), tenferro_tensor::C64::new(0.0, 0.0));
        smallvec![Some(ct.pad(&zero, &low, &high, &gaps))]
    }
    fn view(&self, x: &Layout) -> Option<Layout> {
        let (starts, limits) = self.bounds.split_at_checked(self.steps.len())?;
        x.slice_forward(Self::NAME, &literals(starts)?, &literals(limits)?, &self.steps).ok()
    }
    fn dims(&self) -> &[Dim] {
        &self.bounds
    }
    fn with_dims(&self, dims: &[Dim]) -> Self {
        Slice { bounds: dims.into(), steps: self.steps.clone() }
    }
    /// Of everything, `x`.
    fn simplify<'a>(&self, x: &[Term<'a>], _: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
        let shape = &x[0].aval().shape;
        let (starts, limits) = self.bounds.split_at(shape.len());
        let full = starts.iter().all(|s| *s == Dim::Lit(0)) && limits == &shape[..];
        full.then(|| Rewrite::Same(x[0]))
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

/// The elements in opposite order along some axes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reverse {
    /// The axes.
    pub axes: Axes,
}

impl Primitive for Reverse {
    const NAME: &'static str = "reverse";
    const VIEW: bool = true;
    fn always_fits(&self, _: &Aval<Dim>, _: &Aval<Dim>) -> bool {
        true
    }
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, ALL)?;
        expect_axes(Self::NAME, &self.axes, x[0].rank())?;
        Ok(smallvec![x[0].clone()])
    }
    fn jvp(&self, _: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        linear(self, t)
    }
    fn transpose(&self, ct: &[Tangent], _: &[Arg]) -> Outs<Tangent> {
        smallvec![Some(first(ct).reverse(&self.axes))]
    }
    fn view(&self, x: &Layout) -> Option<Layout> {
        x.reverse(Self::NAME, &self.axes).ok()
    }
    /// Along no axes, `x`; of a reverse, one along the axes that only one of the two reverses.
    fn simplify<'a>(&self, x: &[Term<'a>], _: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
        if self.axes.is_empty() {
            return Some(Rewrite::Same(x[0]));
        }
        let (inner, x) = x[0].made_by::<Reverse>()?;
        let only = |a: &Axes, b: &Axes| a.iter().filter(|i| !b.contains(i)).copied().collect::<Axes>();
        let mut axes = only(&self.axes, &inner.axes);
        axes.extend(only(&inner.axes, &self.axes));
        axes.sort();
        Some(Rewrite::call(Reverse { axes }, x))
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

fn is_identity(perm: &[usize]) -> bool {
    perm.iter().enumerate().all(|(i, &p)| i == p)
}

/// The extents, if all are known.
fn literals(extents: &[Dim]) -> Option<Extents> {
    let mut known = Extents::new();
    for d in extents {
        known.push(d.as_lit()?);
    }
    Some(known)
}

fn dims<D: Extent>(extents: &[D]) -> Extents<Dim> {
    extents.iter().map(D::to_dim).collect()
}

impl Var {
    /// Axis `i` of the result is axis `perm[i]` of `self`.
    #[inline]
    pub fn transpose(&self, perm: &[usize]) -> Var {
        if perm.len() == self.rank() && is_identity(perm) {
            return self.clone();
        }
        self.view_now(|x| x.transpose(Transpose::NAME, perm).ok())
            .unwrap_or_else(|| self.transpose_long(perm))
    }

    /// [`transpose`](Self::transpose) after its shortcut has declined.
    #[inline(never)]
    fn transpose_long(&self, perm: &[usize]) -> Var {
        apply1(&Transpose { perm: Axes::from_slice(perm) }, &[self])
    }

    /// The conjugate transpose of the first two axes.
    pub fn adjoint(&self) -> Var {
        self.matrix_transpose().conj()
    }

    /// The transpose of the first two axes; batch axes follow them.
    pub fn matrix_transpose(&self) -> Var {
        let mut perm: Axes = (0..self.rank()).collect();
        if perm.len() < 2 {
            let e = Error::shape("matrix_transpose", "rank", self.rank(), "at least 2");
            return Var::Failed(self.ok().err().unwrap_or(e));
        }
        perm.swap(0, 1);
        self.transpose(&perm)
    }

    /// The elements in column-major order under another shape with as many elements.
    #[inline]
    pub fn reshape<D: Extent>(&self, shape: &[D]) -> Var {
        self.view_now(|x| x.reshape(Reshape::NAME, &D::literals(shape)?).ok().flatten())
            .unwrap_or_else(|| self.reshape_long(&dims(shape)))
    }

    /// [`reshape`](Self::reshape) after its shortcut has declined.
    #[inline(never)]
    fn reshape_long(&self, shape: &[Dim]) -> Var {
        if &self.shape()[..] == shape {
            return self.clone();
        }
        apply1(&Reshape { shape: shape.into() }, &[self])
    }

    /// Axis `i` of `self` becomes axis `axes[i]` of the result; other axes, and those of extent 1, repeat.
    #[inline]
    pub fn broadcast_in_dim<D: Extent>(&self, shape: &[D], axes: &[usize]) -> Var {
        self.view_now(|x| x.broadcast(BroadcastInDim::NAME, &D::literals(shape)?, axes).ok())
            .unwrap_or_else(|| self.broadcast_long(&dims(shape), axes))
    }

    /// [`broadcast_in_dim`](Self::broadcast_in_dim) after its shortcut has declined.
    #[inline(never)]
    fn broadcast_long(&self, shape: &[Dim], axes: &[usize]) -> Var {
        if axes.len() == self.rank() && is_identity(axes) && &self.shape()[..] == shape {
            return self.clone();
        }
        apply1(&BroadcastInDim::new(&self.shape(), shape.into(), axes), &[self])
    }

    /// Every `steps[i]`-th element from `starts[i]` up to, but not including, `limits[i]` along axis `i`.
    #[inline]
    pub fn slice<D: Extent>(&self, starts: &[D], limits: &[D], steps: &[usize]) -> Var {
        self.view_now(|x| x.slice(Slice::NAME, &D::literals(starts)?, &D::literals(limits)?, steps).ok())
            .unwrap_or_else(|| self.slice_long(starts, limits, steps))
    }

    /// [`slice`](Self::slice) after its shortcut has declined.
    #[inline(never)]
    fn slice_long<D: Extent>(&self, starts: &[D], limits: &[D], steps: &[usize]) -> Var {
        let lengths = [starts.len(), limits.len(), steps.len()];
        match self.one_per_axis(Slice::NAME, "number of starts, limits and steps", lengths) {
            Ok(()) => apply1(&Slice::new(starts, limits, steps), &[self]),
            Err(e) => Var::Failed(e),
        }
    }

    /// Checks that three lists of parameters have an entry for every axis.
    pub(super) fn one_per_axis(&self, op: &'static str, what: &str, lengths: [usize; 3]) -> Result<()> {
        let rank = self.ok()?.rank();
        if lengths == [rank; 3] {
            return Ok(());
        }
        let [a, b, c] = lengths;
        Err(Error::axis(op, what, format_args!("{a}, {b} and {c}"), format_args!("{rank} each")))
    }

    /// Elements `start` up to, but not including, `limit` along one axis.
    pub fn slice_axis(&self, axis: usize, start: impl Into<Dim>, limit: impl Into<Dim>) -> Var {
        let mut limits = self.shape();
        if axis >= limits.len() {
            let e = Error::axis(
                "slice_axis",
                "axis out of range",
                axis,
                format_args!("an axis below {}", limits.len()),
            );
            return Var::Failed(self.ok().err().unwrap_or(e));
        }
        let mut starts: Extents<Dim> = smallvec![Dim::Lit(0); limits.len()];
        let steps: Axes = smallvec![1; limits.len()];
        starts[axis] = start.into();
        limits[axis] = limit.into();
        self.slice(&starts, &limits, &steps)
    }

    /// The elements in opposite order along `axes`.
    #[inline]
    pub fn reverse(&self, axes: &[usize]) -> Var {
        self.view_now(|x| x.reverse(Reverse::NAME, axes).ok())
            .unwrap_or_else(|| apply1(&Reverse { axes: axes.into() }, &[self]))
    }

    /// With new axes of extent 1, which are at `axes` in the result.
    pub fn expand_dims(&self, axes: &[usize]) -> Var {
        let rank = self.rank() + axes.len();
        if let Err(e) = self.ok().map(drop).and_then(|()| expect_axes("expand_dims", axes, rank)) {
            return Var::Failed(e);
        }
        let mut old = self.shape().into_iter();
        let shape: Extents<Dim> = (0..rank)
            .map(|i| if axes.contains(&i) { Dim::Lit(1) } else { old.next().unwrap_or(Dim::Lit(1)) })
            .collect();
        self.reshape(&shape)
    }

    /// Without `axes`, which must have extent 1.
    pub fn squeeze(&self, axes: &[usize]) -> Var {
        let shape = self.shape();
        if let Err(e) = self.ok().map(drop).and_then(|()| expect_axes("squeeze", axes, shape.len())) {
            return Var::Failed(e);
        }
        let one = Dim::Lit(1);
        if let Some(a) = axes.iter().find(|&&a| Dim::equal("squeeze", "extent", &shape[a], &one).is_err()) {
            let what = format!("extent of axis {a}");
            return Var::Failed(Error::shape("squeeze", what, &shape[*a], one));
        }
        let kept: Extents<Dim> =
            shape.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, d)| d.clone()).collect();
        self.reshape(&kept)
    }

    /// Repeated along new axes at the end, which are those of `y` after the axes of `self`.
    pub fn batch_like(&self, y: &Var) -> Var {
        if let Some(failed) = Var::failed([self, y]) {
            return failed;
        }
        let (shape, axes) = (y.shape(), (0..self.rank()).collect::<Axes>());
        let own = self.shape();
        if shape.len() < own.len() {
            let e = Error::shape(
                "batch_like",
                "rank of the model",
                shape.len(),
                format_args!("at least {}", own.len()),
            );
            return Var::Failed(e);
        }
        let target: Extents<Dim> = own.iter().chain(&shape[own.len()..]).cloned().collect();
        self.broadcast_in_dim(&target, &axes)
    }
}
