//! The core operations on all four tiers.

use crate::{EagerTensor, TracedTensor, tier::Recorded};
use tenferro_core_ops::{Dim, Extents, Var, broadcast_to, ops::DotGeneral};
use tenferro_tensor::{DType, Error, Result};

fn dims(shape: &[usize]) -> Extents<Dim> {
    let mut dims = Extents::new();
    shape.iter().for_each(|&n| dims.push(Dim::Lit(n)));
    dims
}

surfaces! {
    inherent TensorOps, TypedTensorOps;

    /// Sum, `x + y`. Operands are promoted and broadcast.
    fn add(x, y: T) -> [T] = x.add(y);
    /// Difference, `x - y`. Operands are promoted and broadcast.
    fn sub(x, y: T) -> [T] = x.sub(y);
    /// Product, `x y`, elementwise. Operands are promoted and broadcast.
    fn mul(x, y: T) -> [T] = x.mul(y);
    /// Quotient, `x / y`; of integers, an f64, which a typed call refuses. Operands are promoted and broadcast.
    fn div(x, y: T) -> [T] = x.div(y);
    /// Power, `x^y`; of integers, an f64, which a typed call refuses; of complex numbers, on the principal branch.
    /// Operands are promoted and broadcast.
    fn pow(x, y: T) -> [T] = x.pow(y);
    /// The larger of two numbers; NaN if either is. Equal numbers share the gradient. Operands are promoted and
    /// broadcast.
    fn maximum(x, y: T) -> [T] = x.maximum(y);
    /// The smaller of two numbers; NaN if either is. Equal numbers share the gradient. Operands are promoted and
    /// broadcast.
    fn minimum(x, y: T) -> [T] = x.minimum(y);
    /// `x` limited to the interval from `low` to `high`. Operands are promoted and broadcast.
    fn clamp(x, low: T, high: T) -> [T] = x.clamp(low, high);

    /// `-x`
    fn neg(x) -> [T] = -x;
    /// Absolute value or modulus. Its derivative at 0 is taken as 0.
    fn abs(x) -> [R] = x.abs();
    /// `x / |x|`, and 0 at 0.
    fn sign(x) -> [T] = x.sign();
    /// Complex conjugate; a real number is itself.
    fn conj(x) -> [T] = x.conj();
    /// Real part.
    fn real(x) -> [R] = x.real();
    /// Imaginary part; of a real number, 0.
    fn imag(x) -> [R] = x.imag();
    /// Exponential.
    fn exp(x) -> [T] = x.exp();
    /// `exp(x) - 1`, accurate near 0.
    fn expm1(x) -> [T] = x.expm1();
    /// Natural logarithm; of complex numbers, with imaginary part in (-pi, pi].
    fn log(x) -> [T] = x.log();
    /// `log(1 + x)`, accurate near 0.
    fn log1p(x) -> [T] = x.log1p();
    /// Sine of an angle in radians.
    fn sin(x) -> [T] = x.sin();
    /// Cosine of an angle in radians.
    fn cos(x) -> [T] = x.cos();
    /// Tangent of an angle in radians.
    fn tan(x) -> [T] = x.tan();
    /// Hyperbolic tangent.
    fn tanh(x) -> [T] = x.tanh();
    /// Square root; of complex numbers, the root with non-negative real part.
    fn sqrt(x) -> [T] = x.sqrt();
    /// `1 / sqrt(x)`
    fn rsqrt(x) -> [T] = x.rsqrt();

    /// Whether `x == y`, elementwise.
    fn equal(x, y: T) -> [B] = x.equal(y);
    /// Whether `x != y`, elementwise.
    fn not_equal(x, y: T) -> [B] = x.not_equal(y);
    /// Whether `x < y`, elementwise.
    fn less(x, y: T) -> [B] = x.less(y);
    /// Whether `x <= y`, elementwise.
    fn less_equal(x, y: T) -> [B] = x.less_equal(y);
    /// Whether `x > y`, elementwise.
    fn greater(x, y: T) -> [B] = x.greater(y);
    /// Whether `x >= y`, elementwise.
    fn greater_equal(x, y: T) -> [B] = x.greater_equal(y);
    /// `condition ? x : y`, elementwise.
    fn select_or(x, y: T, condition: B) -> [T] = condition.select(x, y);

    /// Sum of the elements, over all axes if `axes` is `None`; the reduced axes are gone.
    fn reduce_sum(x; axes: Option<&[usize]>) -> [T] = x.reduce_sum(axes);
    /// As `reduce_sum`; the reduced axes stay with extent 1.
    fn reduce_sum_keepdims(x; axes: Option<&[usize]>) -> [T] = x.reduce_sum_keepdims(axes);
    /// Product of the elements, over all axes if `axes` is `None`; the reduced axes are gone.
    fn reduce_prod(x; axes: Option<&[usize]>) -> [T] = x.reduce_prod(axes);
    /// As `reduce_prod`; the reduced axes stay with extent 1.
    fn reduce_prod_keepdims(x; axes: Option<&[usize]>) -> [T] = x.reduce_prod_keepdims(axes);
    /// Largest element, NaN if there is one; the reduced axes are gone. An empty axis is an error.
    fn reduce_max(x; axes: Option<&[usize]>) -> [T] = x.reduce_max(axes);
    /// As `reduce_max`; the reduced axes stay with extent 1.
    fn reduce_max_keepdims(x; axes: Option<&[usize]>) -> [T] = x.reduce_max_keepdims(axes);
    /// Smallest element, NaN if there is one; the reduced axes are gone. An empty axis is an error.
    fn reduce_min(x; axes: Option<&[usize]>) -> [T] = x.reduce_min(axes);
    /// As `reduce_min`; the reduced axes stay with extent 1.
    fn reduce_min_keepdims(x; axes: Option<&[usize]>) -> [T] = x.reduce_min_keepdims(axes);
    /// Arithmetic mean of the elements; of integers, an f64, which a typed call refuses. The reduced axes are gone.
    fn reduce_mean(x; axes: Option<&[usize]>) -> [T] = x.reduce_mean(axes);
    /// As `reduce_mean`; the reduced axes stay with extent 1.
    fn reduce_mean_keepdims(x; axes: Option<&[usize]>) -> [T] = x.reduce_mean_keepdims(axes);

    /// Axis `i` of the result is axis `perm[i]` of `x`.
    fn transpose(x; perm: &[usize]) -> [T] = x.transpose(perm);
    /// The transpose of the first two axes; batch axes follow them.
    fn matrix_transpose(x) -> [T] = x.matrix_transpose();
    /// With the further axes of `y` after its own, along which it repeats: an operand for each element of a batch.
    fn batch_like(x, y: T) -> [T] = x.batch_like(y);
    /// The conjugate transpose of the first two axes.
    fn adjoint(x) -> [T] = x.adjoint();
    /// The elements in column-major order under another shape.
    fn reshape(x; shape: &[usize]) -> [T] = x.reshape(shape);
    /// With new axes of extent 1, which are at `axes` in the result.
    fn expand_dims(x; axes: &[usize]) -> [T] = x.expand_dims(axes);
    /// Without `axes`, which must have extent 1.
    fn squeeze(x; axes: &[usize]) -> [T] = x.squeeze(axes);
    /// Axis `i` of `x` becomes axis `axes[i]` of a tensor of this shape; other axes, and those of extent 1, repeat.
    fn broadcast_in_dim(x; shape: &[usize], axes: &[usize]) -> [T] = x.broadcast_in_dim(shape, axes);
    /// Repeated to a shape this one is right-aligned with.
    fn broadcast_to(x; shape: &[usize]) -> [T] = broadcast_to(x, &dims(shape));
    /// Every `steps[i]`-th element from `starts[i]` up to, but not including, `limits[i]` along axis `i`.
    fn slice(x; starts: &[usize], limits: &[usize], steps: &[usize]) -> [T] = x.slice(starts, limits, steps);
    /// Elements `start` up to, but not including, `limit` along one axis.
    fn slice_axis(x; axis: usize, start: usize, limit: usize) -> [T] = x.slice_axis(axis, start, limit);
    /// The block of extents `shape` at `starts`, an integer vector with one entry per axis.
    fn dynamic_slice(x, starts: I; shape: &[usize]) -> [T] = x.dynamic_slice(starts, &dims(shape));
    /// `x` with the block at `starts` replaced.
    fn dynamic_update_slice(x, block: T, starts: I) -> [T] = x.dynamic_update_slice(block, starts);
    /// The elements in opposite order along `axes`.
    fn reverse(x; axes: &[usize]) -> [T] = x.reverse(axes);
    /// With `low[i]` copies of the scalar `value` before, `high[i]` after and `interior[i]` between neighbours along
    /// axis `i`.
    fn pad(x, value: T; low: &[usize], high: &[usize], interior: &[usize]) -> [T] = x.pad(value, &dims(low), &dims(high), interior);
    /// Entries of an axis by an integer vector of positions.
    fn index_select(x, index: I; axis: usize) -> [T] = x.index_select(index, axis);
    /// One entry of an axis for every position: `y[i, .., k, ..] = x[i, .., index[i, .., k, ..], ..]`.
    fn gather(x, index: I; axis: usize) -> [T] = x.gather(index, axis);
    /// Entries of an axis by an integer tensor of positions, whose axes replace it.
    fn take_axis(x, index: I; axis: usize) -> [T] = x.take_axis(index, axis);
    /// The diagonal of two axes, as a new last axis.
    fn extract_diag(x; axis1: usize, axis2: usize) -> [T] = x.extract_diag(axis1, axis2);
    /// The last axis as the diagonal of two axes, which are at these places in the result; zero elsewhere.
    fn embed_diag(x; axis1: usize, axis2: usize) -> [T] = x.embed_diag(axis1, axis2);
    /// The lower triangle of the first two axes, up to `diagonal` (0 is the main one, positive ones are above it).
    fn tril(x; diagonal: isize) -> [T] = x.tril(diagonal);
    /// The upper triangle of the first two axes, from `diagonal`.
    fn triu(x; diagonal: isize) -> [T] = x.triu(diagonal);

    /// Matrix product of the first two axes. Further axes are batch axes, aligned from axis 2 on.
    fn matmul(x, y: T) -> [T] = x.matmul(y);
    /// Sum of products over the last `n` axes of `x` and the first `n` of `y`.
    fn tensordot(x, y: T; n: usize) -> [T] = x.tensordot(y, n);
    /// Sum of products over `axes[i]` of `x` and `other_axes[i]` of `y`.
    fn tensordot_axes(x, y: T; axes: &[usize], other_axes: &[usize]) -> [T] = x.tensordot_axes(y, axes, other_axes);
    /// The contraction that `dims` describes.
    fn dot_general(x, y: T; dims: &DotGeneral) -> [T] = x.dot_general(y, dims);
}

macro_rules! recorded {
    ($($Tier:ty)*) => { $(
        impl $Tier {
            /// The elements as another dtype, losing what does not fit.
            ///
            /// # Errors
            /// None at run time: every dtype has a conversion.
            pub fn cast(&self, to: DType) -> Result<Self> {
                self.apply1("cast", &[], || self.var().cast(to))
            }

            /// The elements as a dtype above this one in the promotion order.
            ///
            /// # Errors
            /// If `to` is not above the dtype.
            pub fn convert(&self, to: DType) -> Result<Self> {
                self.apply1("convert", &[], || self.var().convert(to))
            }

            /// `self ? a : b`, elementwise, for a bool tensor.
            ///
            /// # Errors
            /// Operands of unfitting dtypes or shapes.
            pub fn select(&self, a: &Self, b: &Self) -> Result<Self> {
                self.apply1("select", &[a, b], || self.var().select(a.var(), b.var()))
            }

            /// The promoted tensors one after the other along an axis.
            ///
            /// # Errors
            /// No tensors, unfitting shapes.
            pub fn concatenate(x: &[&Self], axis: usize) -> Result<Self> {
                join("concatenate", x, |x| tenferro_core_ops::build::concatenate(x, axis))
            }

            /// The promoted tensors, all of one shape, along a new axis.
            ///
            /// # Errors
            /// No tensors, unfitting shapes.
            pub fn stack(x: &[&Self], axis: usize) -> Result<Self> {
                join("stack", x, |x| tenferro_core_ops::build::stack(x, axis))
            }
        }

        recorded!(@operators $Tier: Add add, Sub sub, Mul mul, Div div);

        impl std::ops::Neg for &$Tier {
            type Output = Result<$Tier>;
            fn neg(self) -> Result<$Tier> {
                <$Tier>::neg(self)
            }
        }
    )* };
    (@operators $Tier:ty: $($trait:ident $m:ident),*) => { $(
        impl std::ops::$trait for &$Tier {
            type Output = Result<$Tier>;
            fn $m(self, o: &$Tier) -> Result<$Tier> {
                <$Tier>::$m(self, o)
            }
        }
        impl std::ops::$trait<f64> for &$Tier {
            type Output = Result<$Tier>;
            /// With a number, which takes this tensor's dtype. An integer tensor keeps its dtype with an integral
            /// number in its range; with another one, in a quotient, and if it is bool, it is promoted to f64.
            fn $m(self, o: f64) -> Result<$Tier> {
                self.apply1(stringify!($m), &[], || std::ops::$trait::$m(self.var(), o))
            }
        }
        impl std::ops::$trait<&$Tier> for f64 {
            type Output = Result<$Tier>;
            /// A number on the left, as one on the right.
            fn $m(self, o: &$Tier) -> Result<$Tier> {
                o.apply1(stringify!($m), &[], || std::ops::$trait::$m(self, o.var()))
            }
        }
    )* };
}
recorded! { EagerTensor TracedTensor }

fn join<X: Recorded>(op: &'static str, x: &[&X], f: impl FnOnce(&[Var]) -> Var) -> Result<X> {
    let Some(first) = x.first() else { return Err(Error::argument(op, "number of inputs", 0, "at least 1")) };
    first.apply1(op, &x[1..], || f(&x.iter().map(|x| x.var().clone()).collect::<Vec<_>>()))
}
