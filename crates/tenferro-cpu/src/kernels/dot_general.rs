//! Contraction as matrix products over the operands' own strides: no operand is transposed when its free axes,
//! and its summed axes, each fold into one stride.

use super::{
    copy::{Strides, strides_of, strides_to},
    destination::with_outputs,
    elementwise::unlisted,
};
use crate::{
    CpuBackend,
    loops::Shared,
    providers::{self, Factor, Target},
    threads::Par,
};
use smallvec::SmallVec;
use tenferro_core_ops::{
    Aval, Coming, KernelFn, Kernels, Number, Op, Operand, Out, Outs, Prepared, Shortcuts, elements,
    ops::{Axes, DotGeneral, NUMBERS},
};
use tenferro_tensor::{Result, Scalar, Tensor, TensorRef, dispatch_number};

pub(super) fn list(table: &mut dyn Kernels) {
    let kernel: KernelFn<CpuBackend, DotGeneral> = |op, cpu, x, y, out| {
        let dtype = y[0].dtype;
        dispatch_number!(dtype, T => dot_general::<T>(op, cpu, x, y, out), else unlisted(dtype))
    };
    table.on_with(NUMBERS, kernel, Shortcuts { prepare: Some(prepare), ..Shortcuts::default() });
}

/// The provider of matrix products of each dtype.
pub(crate) trait Gemm: Number {
    /// `C = alpha op(A) op(B) + beta C`; `beta = 0` does not read C.
    ///
    /// # Safety
    /// All elements reached are valid, those of C are distinct and apart from A and B.
    unsafe fn gemm(
        mnk: (usize, usize, usize),
        alpha: Self,
        a: Factor<Self>,
        b: Factor<Self>,
        beta: Self,
        c: Target<Self>,
        par: Par,
    );
}

macro_rules! provide {
    ($provider:ident: $($T:ty)*) => { $(
        impl Gemm for $T {
            #[inline]
            unsafe fn gemm(
                mnk: (usize, usize, usize),
                alpha: Self,
                a: Factor<Self>,
                b: Factor<Self>,
                beta: Self,
                c: Target<Self>,
                par: Par,
            ) {
                // SAFETY: the caller's.
                unsafe { providers::$provider::gemm(mnk, alpha, a, b, beta, c, par.into()) }
            }
        }
    )* };
}
provide! { naive: i32 i64 }
#[cfg(any(feature = "cpu-faer", feature = "cpu-blas"))]
provide! { dense: f32 f64 tenferro_tensor::C32 tenferro_tensor::C64 }
#[cfg(not(any(feature = "cpu-faer", feature = "cpu-blas")))]
provide! { naive: f32 f64 tenferro_tensor::C32 tenferro_tensor::C64 }

/// The number of positions along several axes.
fn extent(axes: &[usize], shape: &[usize]) -> usize {
    axes.iter().fold(1, |n, &a| n.wrapping_mul(shape[a]))
}

/// Several axes as one: the number of its positions and its stride, if there is one.
fn fold(axes: &[usize], shape: &[usize], strides: &[isize]) -> (usize, Option<isize>) {
    let n = extent(axes, shape);
    let mut one: Option<(usize, isize)> = None;
    for &a in axes.iter().filter(|&&a| shape[a] != 1) {
        one = match one {
            None => Some((shape[a], strides[a])),
            // Wraps only beside an extent of 0, and then no element is visited.
            Some((len, s)) if strides[a] == s.wrapping_mul(len as isize) => {
                Some((len.wrapping_mul(shape[a]), s))
            }
            Some(_) => return (n, None),
        };
    }
    (n, Some(one.map_or(0, |(_, s)| s)))
}

/// An operand as a batch of matrices with rows along `rows` and columns along `cols`.
struct Side<'a> {
    read: TensorRef<'a>,
    copy: Option<Tensor>,
    row: isize,
    col: isize,
    batch: Strides,
}

impl<'a> Side<'a> {
    /// The operand where it lies if its axes fold, else a compact copy with them side by side.
    fn new(
        cpu: &CpuBackend,
        read: TensorRef<'a>,
        rows: &[usize],
        cols: &[usize],
        batch: &[usize],
    ) -> Result<Side<'a>> {
        let (strides, shape) = (strides_of(&read), read.shape());
        let (_, row) = fold(rows, shape, &strides);
        let (_, col) = fold(cols, shape, &strides);
        if let (Some(row), Some(col)) = (row, col) {
            let batch = batch.iter().map(|&a| strides[a]).collect();
            return Ok(Side { read, copy: None, row, col, batch });
        }
        let order: Axes = rows.iter().chain(cols).chain(batch).copied().collect();
        let copy = tenferro_core_ops::contiguous(cpu, (&read.view().transpose_view(&order)?).into())?;
        let (m, n) = (rows.len(), cols.len());
        let strides = super::copy::compact(copy.shape());
        let col = elements(&copy.shape()[..m]) as isize;
        let (row, batch) = (1, strides[m + n..].into());
        Ok(Side { read, copy: Some(copy), row, col, batch })
    }

    fn ptr<T: Scalar>(&self) -> Result<*const T> {
        match &self.copy {
            Some(t) => t.host_ptr::<T>(),
            None => self.read.host_ptr::<T>(),
        }
    }
}

/// Matrix products over a batch, into a destination whose axes fold.
struct Job<'a, T> {
    extents: (usize, usize, usize),
    batch: &'a [usize],
    a: (Factor<T>, &'a [isize]),
    b: (Factor<T>, &'a [isize]),
    c: (Target<T>, &'a [isize]),
    alpha: T,
    beta: T,
}

/// A product of this many multiplications is worth all threads on its own.
const LARGE: usize = 1 << 21;

impl<T: Gemm> Job<'_, T> {
    /// # Safety
    /// As for [`Gemm::gemm`], for every index of the batch.
    unsafe fn run(&self, cpu: &CpuBackend) {
        let count = elements(self.batch);
        let (m, n, k) = self.extents;
        let one = m.saturating_mul(n).saturating_mul(k.max(1));
        let shared = Shared::new(self);
        if count == 1 || one >= LARGE {
            for i in 0..count {
                // SAFETY: the caller's.
                cpu.parallel(one, |par| unsafe { shared.get().product(i, par) });
            }
        } else {
            cpu.parallel(one.saturating_mul(count), |par| {
                par.for_each_chunk(count, 1, |range| {
                    for i in range {
                        // SAFETY: the caller's; the products of a batch are apart.
                        unsafe { shared.get().product(i, Par::Seq) }
                    }
                });
            });
        }
    }

    /// # Safety
    /// As for [`run`](Self::run).
    unsafe fn product(&self, i: usize, par: Par) {
        let (mut rest, mut a, mut b, mut c) = (i, 0, 0, 0);
        for (axis, &extent) in self.batch.iter().enumerate() {
            let at = (rest % extent) as isize;
            rest /= extent;
            a += at * self.a.1[axis];
            b += at * self.b.1[axis];
            c += at * self.c.1[axis];
        }
        let moved = |m: Factor<T>, by: isize| Factor { ptr: m.ptr.wrapping_offset(by), ..m };
        let to = Target { ptr: self.c.0.ptr.wrapping_offset(c), ..self.c.0 };
        // SAFETY: the caller's.
        unsafe {
            T::gemm(self.extents, self.alpha, moved(self.a.0, a), moved(self.b.0, b), self.beta, to, par)
        }
    }
}

/// A contraction so small that it costs less than preparing one for the provider: a batch of products of
/// matrices, all with one stride each way.
#[derive(Clone, Copy)]
struct Small {
    /// Free axes of the operands, summed axes, batch.
    extents: [usize; 4],
    sides: [SmallSide; 2],
}

/// Strides of an operand along its free axes, the summed ones and the batch.
#[derive(Clone, Copy)]
struct SmallSide {
    free: isize,
    summed: isize,
    batch: isize,
    conj: bool,
}

impl Small {
    /// `None` for any other contraction.
    fn new(op: &DotGeneral, x: [(&[usize], Option<&[isize]>); 2]) -> Option<Small> {
        let few = |n: usize| n <= super::SMALL;
        // The product of two matrices, which most calls are, needs no folding.
        if let ([ka], [kb], []) = (&op.lhs_contract[..], &op.rhs_contract[..], &op.lhs_batch[..])
            && let ([_, _], [_, _]) = (x[0].0, x[1].0)
        {
            let side = |(shape, strides): (&[usize], Option<&[isize]>), summed: usize, conj| {
                let s = strides.map_or([1, shape[0] as isize], |s| [s[0], s[1]]);
                let side = SmallSide { free: s[1 - summed], summed: s[summed], batch: 0, conj };
                (shape[1 - summed], shape[summed], side)
            };
            let ((m, k, a), (n, _, b)) = (side(x[0], *ka, op.conj_lhs), side(x[1], *kb, op.conj_rhs));
            let small = Small { extents: [m, n, k, 1], sides: [a, b] };
            return few(m.saturating_mul(n).saturating_mul(k)).then_some(small);
        }
        let work = |shape: &[usize], without: &[usize], work: usize| {
            let axes = shape.iter().enumerate().filter(|(axis, _)| !without.contains(axis));
            axes.fold(work, |work, (_, n)| work.saturating_mul(*n))
        };
        // All axes of one operand, and the free ones of the other.
        let shared: Axes = op.rhs_contract.iter().chain(&op.rhs_batch).copied().collect();
        if !few(work(x[1].0, &shared, work(x[0].0, &[], 1))) {
            return None;
        }
        let side =
            |(shape, strides): (&[usize], Option<&[isize]>), summed: &[usize], batch: &[usize], conj| {
                let strides = strides.map_or_else(|| super::copy::compact(shape), Strides::from_slice);
                let taken = |axis: &usize| summed.contains(axis) || batch.contains(axis);
                let free: Axes = (0..shape.len()).filter(|axis| !taken(axis)).collect();
                let [(m, free), (k, summed), (count, batch)] =
                    [&free[..], summed, batch].map(|axes| fold(axes, shape, &strides));
                let side = SmallSide { free: free?, summed: summed?, batch: batch?, conj };
                Some(([m, k, count], side))
            };
        let ([m, k, count], a) = side(x[0], &op.lhs_contract, &op.lhs_batch, op.conj_lhs)?;
        let ([n, ..], b) = side(x[1], &op.rhs_contract, &op.rhs_batch, op.conj_rhs)?;
        Some(Small { extents: [m, n, k, count], sides: [a, b] })
    }

    /// # Safety
    /// The operands have these extents and strides, and `y` room for the compact result.
    unsafe fn multiply<T: Gemm>(&self, a: *const T, b: *const T, y: *mut T) {
        let ([m, n, k, count], [left, right]) = (self.extents, self.sides);
        // The other extents may then be of any size.
        if m == 0 || n == 0 || count == 0 {
            return;
        }
        let conj = |v: T, conj: bool| if conj { v.conjugate() } else { v };
        for c in 0..count {
            let (a, b) =
                (a.wrapping_offset(c as isize * left.batch), b.wrapping_offset(c as isize * right.batch));
            for j in 0..n {
                for i in 0..m {
                    let mut sum = T::zero();
                    for p in 0..k as isize {
                        // SAFETY: i < m, j < n and p < k.
                        let (u, v) = unsafe {
                            (
                                *a.offset(i as isize * left.free + p * left.summed),
                                *b.offset(j as isize * right.free + p * right.summed),
                            )
                        };
                        sum = sum.plus(conj(u, left.conj).times(conj(v, right.conj)));
                    }
                    // SAFETY: i < m, j < n and c < count.
                    unsafe { y.add(i + m * (j + n * c)).write(sum) };
                }
            }
        }
    }
}

fn prepare(op: &dyn Op, x: &[Coming<'_>], y: &Aval) -> Option<Prepared> {
    let [a, b] = x else { return None };
    let operands = [a, b].map(|x| (&x.aval.shape[..], x.strides));
    let small = Small::new(op.as_any().downcast_ref()?, operands)?;
    dispatch_number!(y.dtype, T => {
        // SAFETY: the caller of the prepared kernel vouches for the addresses.
        let run = move |x: &[*const u8], y: *mut u8| unsafe {
            small.multiply::<T>(x[0].cast(), x[1].cast(), y.cast())
        };
        // SAFETY: made for operands of these shapes, it writes every element of their product.
        Some(unsafe { Prepared::new(run) })
    }, else None)
}

fn dot_general<T: Gemm>(
    op: &DotGeneral,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let (a, b) = (x[0].read(), x[1].read());
    if let Out::New = out
        && let Some(small) = Small::new(op, [(a.shape(), a.strides()), (b.shape(), b.strides())])
    {
        let mut to = Tensor::uninit(y[0].dtype, &y[0].shape)?;
        // SAFETY: the shape rule checked the extents, and the layouts are within their buffers.
        return unsafe {
            small.multiply(a.host_ptr::<T>()?, b.host_ptr::<T>()?, to.as_mut_ptr());
            Ok(Outs::from_buf([to.assume_init()]))
        };
    }
    let (fa, fb) = (op.lhs_free(a.rank()), op.rhs_free(b.rank()));
    let extents = (extent(&fa, a.shape()), extent(&fb, b.shape()), extent(&op.lhs_contract, a.shape()));
    let batch: SmallVec<[usize; 6]> = op.lhs_batch.iter().map(|&i| a.shape()[i]).collect();
    let lhs = Side::new(cpu, a, &fa, &op.lhs_contract, &op.lhs_batch)?;
    let rhs = Side::new(cpu, b, &op.rhs_contract, &fb, &op.rhs_batch)?;
    let (pa, pb) = (lhs.ptr::<T>()?, rhs.ptr::<T>()?);
    // Writes to a destination under these strides; false if its axes do not fold.
    let multiply = |to: *mut T, strides: &[isize], alpha: T, beta: T| {
        let axes: Axes = (0..y[0].rank()).collect();
        let (rows, rest) = axes.split_at(fa.len());
        let folded = |axes: &[usize]| fold(axes, &y[0].shape, strides).1;
        let (Some(row), Some(col)) = (folded(rows), folded(&rest[..fb.len()])) else { return false };
        let job = Job {
            extents,
            batch: &batch,
            a: (Factor { ptr: pa, row: lhs.row, col: lhs.col, conj: op.conj_lhs }, &lhs.batch),
            b: (Factor { ptr: pb, row: rhs.row, col: rhs.col, conj: op.conj_rhs }, &rhs.batch),
            c: (Target { ptr: to, row, col }, &strides[fa.len() + fb.len()..]),
            alpha,
            beta,
        };
        // SAFETY: the shape rule checked the extents, the layouts are within their buffers, and the destination
        // is new or borrowed mutably, with distinct elements.
        unsafe { job.run(cpu) };
        true
    };
    let written = match out {
        Out::Accumulate { alpha, beta, view } => {
            let (to, strides) = (view.host_mut_ptr::<T>()?, Strides::from_slice(view.strides()));
            multiply(to, &strides, T::from_f64(*alpha), T::from_f64(*beta))
        }
        Out::Into(views) => {
            let (to, strides) = (views[0].host_mut_ptr::<T>()?, Strides::from_slice(views[0].strides()));
            multiply(to, &strides, T::one(), T::zero())
        }
        Out::New => false,
    };
    if written {
        return Ok(Outs::new());
    }
    // SAFETY: the products write every element of the output, which is compact, so its axes fold.
    unsafe {
        with_outputs(y, &mut Out::New, |to| {
            multiply(to[0].typed(), &strides_to(&to[0], &y[0].shape), T::one(), T::zero());
            Ok(())
        })
    }
}
