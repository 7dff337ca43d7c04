//! What the elementwise kernels share: an operation gives a [`Tile`] for each dtype, and the driver does the
//! rest, alone or in a fused chain.

use super::destination::{in_place, with_outputs_at};
use crate::{
    CpuBackend,
    loops::elementwise::{Input, Output, Tile, map},
    threads::PARALLEL_WORK,
};
use smallvec::SmallVec;
use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::OnceLock,
};
use tenferro_core_ops::{
    Alike, Aval, Coming, Kernels, Op, Operand, Out, Outs, Prepared, Primitive, Shortcuts, ops,
};
use tenferro_tensor::{DType, Result, Tensor, TensorRef};

/// An elementwise operation with a kernel here.
pub(crate) trait Tiled: Primitive {
    /// The dtypes of its first operand.
    const DTYPES: &'static [DType];
    /// Arithmetic operations per element, roughly: when threads are worth it.
    const COST: usize = 1;
    /// How many operands it has, if alike ones give a result like them; else 0.
    const ALIKE: usize = 0;
    /// The function over a run of elements of operands of these dtypes.
    fn tile(&self, x: &[DType]) -> Tile;
}

type TileOf = fn(&dyn Op, &[DType]) -> Option<(Tile, usize)>;

fn tile_of<P: Tiled>(op: &dyn Op, x: &[DType]) -> Option<(Tile, usize)> {
    let op: &P = op.as_any().downcast_ref()?;
    P::DTYPES.contains(&x[0]).then(|| (op.tile(x), P::COST))
}

/// Runs one elementwise operation.
pub(crate) fn kernel<P: Tiled>(
    op: &P,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let mut dtypes: SmallVec<[DType; 4]> = SmallVec::new();
    x.iter().for_each(|x| dtypes.push(x.dtype()));
    let tile = op.tile(&dtypes);
    let taken = in_place(x, y, out);
    // SAFETY: every element of the one output is written.
    unsafe {
        with_outputs_at(taken, y, out, |to, taken| {
            let to = Output { ptr: to[0].ptr(), size: y[0].dtype.size(), strides: to[0].strides(), step: 0 };
            let mut inputs: SmallVec<[Input<'_>; 4]> = SmallVec::new();
            for (i, x) in x.iter().enumerate() {
                inputs.push(if taken == Some(i) {
                    Input { ptr: to.ptr, size: to.size, strides: None }
                } else {
                    let x = x.read();
                    Input { ptr: x.host_byte_ptr()?, size: x.dtype().size(), strides: x.strides() }
                });
            }
            // SAFETY: the shape rule gave all operands the shape of the output, the views are within their
            // buffers, and the output is new or borrowed mutably, so it overlaps no input but one that it took
            // the place of.
            map(cpu.domain(), &y[0].shape, (tile, std::ptr::null(), P::COST), &inputs, to);
            Ok(())
        })
    }
}

/// [`kernel`] for whole operands that are alike.
///
/// # Safety
/// As for [`Alike`].
unsafe fn alike<P: Tiled>(op: &dyn Op, cpu: &dyn Any, x: &[&Tensor]) -> Option<Result<Tensor>> {
    let (op, cpu) = (op.as_any().downcast_ref::<P>()?, cpu.downcast_ref::<CpuBackend>()?);
    if x.len() != P::ALIKE || cpu.checks_nan() {
        return None;
    }
    let (dtype, size) = (x[0].dtype(), x[0].dtype().size());
    let mut from = [std::ptr::null(); 3];
    for (from, x) in from.iter_mut().zip(x) {
        *from = TensorRef::from(*x).host_byte_ptr().ok()?;
    }
    let from = &from[..x.len()];
    let mut y = match Tensor::uninit(dtype, x[0].shape()) {
        Ok(y) => y,
        Err(e) => return Some(Err(e)),
    };
    let to = Output { ptr: y.as_mut_byte_ptr(), size, strides: None, step: 0 };
    let (tile, n) = (op.tile(&[dtype; 3][..x.len()]), x[0].len());
    // SAFETY: the operands are in host memory and have the shape of the output, which is new.
    unsafe {
        if n * (P::COST + size * (1 + x.len())) < PARALLEL_WORK {
            tile(std::ptr::null(), from, to.ptr, n);
        } else {
            let inputs: SmallVec<[Input<'_>; 4]> =
                from.iter().map(|&ptr| Input { ptr, size, strides: None }).collect();
            map(cpu.domain(), x[0].shape(), (tile, std::ptr::null(), P::COST), &inputs, to);
        }
        Some(Ok(y.assume_init()))
    }
}

/// [`kernel`] for few elements of compact operands.
fn prepare<P: Tiled>(op: &dyn Op, x: &[Coming<'_>], y: &Aval) -> Option<Prepared> {
    let n = y.len();
    if n > super::SMALL || x.iter().any(|x| x.strides.is_some()) {
        return None;
    }
    let dtypes: SmallVec<[DType; 4]> = x.iter().map(|x| x.aval.dtype).collect();
    let tile = op.as_any().downcast_ref::<P>()?.tile(&dtypes);
    // SAFETY: the shape rule gave all operands the shape of the result, and the caller of the prepared kernel
    // vouches for the addresses.
    let run = move |x: &[*const u8], y: *mut u8| unsafe { tile(std::ptr::null(), x, y, n) };
    // SAFETY: a tile writes its n elements, which are all of the result.
    Some(unsafe { Prepared::new(run) })
}

macro_rules! tiled {
    ($($T:ident)*) => {
        /// Lists the elementwise kernels.
        pub(crate) fn list(table: &mut dyn Kernels) {
            $(
                let like = <ops::$T as Tiled>::ALIKE > 0;
                let shortcuts = Shortcuts {
                    alike: like.then_some(alike::<ops::$T> as Alike),
                    prepare: Some(prepare::<ops::$T>),
                    fuses: true,
                };
                table.on_with::<CpuBackend, ops::$T>(<ops::$T as Tiled>::DTYPES, kernel, shortcuts);
            )*
        }

        fn tiles() -> &'static HashMap<TypeId, TileOf> {
            static TILES: OnceLock<HashMap<TypeId, TileOf>> = OnceLock::new();
            TILES.get_or_init(|| HashMap::from([$((TypeId::of::<ops::$T>(), tile_of::<ops::$T> as TileOf),)*]))
        }
    };
}
tiled! {
    Exp Expm1 Log Log1p Sin Cos Tan Tanh Sqrt Rsqrt Abs Sign Neg Conj RealPart Imag
    Add Sub Mul Div Pow Maximum Minimum
    Compare Select Clamp Cast
}

/// The tile function of an operation in a chain on operands of these dtypes, and its cost.
pub(crate) fn tile(op: &dyn Op, x: &[DType]) -> Option<(Tile, usize)> {
    tiles().get(&op.as_any().type_id()).and_then(|f| f(op, x))
}

/// `y[i] = f(x[i])`.
///
/// # Safety
/// As for a [`Tile`] with one operand of type `A` and a result of type `R`.
#[inline(always)]
pub(super) unsafe fn apply1<A: Copy, R>(x: &[*const u8], y: *mut u8, n: usize, f: impl Fn(A) -> R) {
    let (x, y) = (x[0].cast::<A>(), y.cast::<R>());
    crate::loops::simd::vectorized(
        n,
        #[inline(always)]
        move || {
            for i in 0..n {
                // SAFETY: the caller's.
                unsafe { y.add(i).write(f(*x.add(i))) }
            }
        },
    );
}

/// `y[i] = f(a[i], b[i])`.
///
/// # Safety
/// As for a [`Tile`] with two operands of types `A` and `B` and a result of type `R`.
#[inline(always)]
pub(super) unsafe fn apply2<A: Copy, B: Copy, R>(
    x: &[*const u8],
    y: *mut u8,
    n: usize,
    f: impl Fn(A, B) -> R,
) {
    let (a, b, y) = (x[0].cast::<A>(), x[1].cast::<B>(), y.cast::<R>());
    crate::loops::simd::vectorized(
        n,
        #[inline(always)]
        move || {
            for i in 0..n {
                // SAFETY: the caller's.
                unsafe { y.add(i).write(f(*a.add(i), *b.add(i))) }
            }
        },
    );
}

/// `y[i] = f(a[i], b[i], c[i])`.
///
/// # Safety
/// As for a [`Tile`] with three operands of types `A`, `B` and `B` and a result of type `B`.
#[inline(always)]
pub(super) unsafe fn apply3<A: Copy, B: Copy>(
    x: &[*const u8],
    y: *mut u8,
    n: usize,
    f: impl Fn(A, B, B) -> B,
) {
    let (a, b, c, y) = (x[0].cast::<A>(), x[1].cast::<B>(), x[2].cast::<B>(), y.cast::<B>());
    crate::loops::simd::vectorized(
        n,
        #[inline(always)]
        move || {
            for i in 0..n {
                // SAFETY: the caller's.
                unsafe { y.add(i).write(f(*a.add(i), *b.add(i), *c.add(i))) }
            }
        },
    );
}

/// A dtype outside of an operation's list, which the table does not let through.
#[cold]
pub(super) fn unlisted(dtype: DType) -> ! {
    unreachable!("{dtype} is not among the dtypes this kernel is listed for")
}
