//! Where the outputs of a kernel are written: new tensors, the caller's views, or the buffer of an operand that
//! nobody reads again.

use smallvec::SmallVec;
use tenferro_core_ops::{Aval, Operand, Out, Outs};
use tenferro_tensor::{Result, Scalar, Tensor, UninitTensor};

/// One output to be written: the address of its first element and its strides in elements, which are `None`
/// when it is compact.
#[derive(Clone, Copy)]
pub struct Destination<'a> {
    ptr: *mut u8,
    strides: Option<&'a [isize]>,
    size: usize,
}

impl Destination<'_> {
    /// The address of the first element.
    pub fn ptr(&self) -> *mut u8 {
        self.ptr
    }

    /// The address of the first element, as one of type `T`.
    pub fn typed<T: Scalar>(&self) -> *mut T {
        debug_assert_eq!(self.size, size_of::<T>());
        self.ptr.cast()
    }

    /// Strides in elements, unless the output is compact.
    pub fn strides(&self) -> Option<&[isize]> {
        self.strides
    }
}

/// Below this many bytes a new buffer costs less than writing in place, which goes through scratch memory.
const IN_PLACE: usize = 1 << 18;

/// The operand whose buffer the one output of an elementwise kernel may take, and that buffer.
pub(super) fn in_place(x: &mut [Operand<'_>], y: &[Aval], out: &Out<'_>) -> Option<(usize, UninitTensor)> {
    let ([y], Out::New) = (y, out) else { return None };
    if y.len() * y.dtype.size() < IN_PLACE {
        return None;
    }
    let fits =
        |x: &Operand<'_>| matches!(x, Operand::Own(t) if t.dtype() == y.dtype && t.shape() == &y.shape[..]);
    let i = x.iter().position(fits)?;
    let taken = x[i].take()?.into_uninit();
    match taken {
        Ok(buffer) => Some((i, buffer)),
        Err(shared) => {
            x[i] = Operand::Own(shared);
            None
        }
    }
}

/// As [`with_outputs`], where the output may be the buffer of operand `.0`; `write` is told which that is.
///
/// # Safety
/// As for [`with_outputs`].
pub(super) unsafe fn with_outputs_at(
    taken: Option<(usize, UninitTensor)>,
    y: &[Aval],
    out: &mut Out<'_>,
    write: impl FnOnce(&[Destination], Option<usize>) -> Result<()>,
) -> Result<Outs<Tensor>> {
    let Some((i, buffer)) = taken else {
        // SAFETY: the caller's.
        return unsafe { with_outputs(y, out, |to| write(to, None)) };
    };
    // SAFETY: the caller's.
    unsafe { with_new(&y[0], buffer, |to| write(to, Some(i))) }
}

/// Calls `write` with the new buffer as the one destination.
///
/// # Safety
/// If `write` succeeds, it has written every element of the buffer, which is for a tensor like `y`.
#[inline]
unsafe fn with_new(
    y: &Aval,
    mut buffer: UninitTensor,
    write: impl FnOnce(&[Destination]) -> Result<()>,
) -> Result<Outs<Tensor>> {
    write(&[Destination { ptr: buffer.as_mut_byte_ptr(), strides: None, size: y.dtype.size() }])?;
    // SAFETY: the caller's.
    Ok(Outs::from_buf([unsafe { buffer.assume_init() }]))
}

/// Calls `write` with the destinations of all outputs and returns the new tensors, if new ones are wanted.
/// [`Out::Accumulate`] gets a new tensor, which the backend then adds to the view.
///
/// # Errors
/// Allocation, and what `write` returns; the views may then hold anything.
///
/// # Safety
/// If `write` succeeds, it has written every element of every destination.
pub unsafe fn with_outputs(
    y: &[Aval],
    out: &mut Out<'_>,
    write: impl FnOnce(&[Destination]) -> Result<()>,
) -> Result<Outs<Tensor>> {
    if let Out::Into(views) = out {
        let mut places: SmallVec<[Destination; 2]> = SmallVec::new();
        for v in views.iter_mut() {
            let ptr = v.host_byte_mut_ptr()?;
            let strides = (!v.is_contiguous()).then(|| v.strides());
            places.push(Destination { ptr, strides, size: v.dtype().size() });
        }
        return write(&places).map(|()| Outs::new());
    }
    if let [a] = y {
        // SAFETY: the caller's.
        return unsafe { with_new(a, Tensor::uninit(a.dtype, &a.shape)?, write) };
    }
    let mut tensors: SmallVec<[UninitTensor; 1]> = SmallVec::new();
    let mut places: SmallVec<[Destination; 2]> = SmallVec::new();
    for a in y {
        let mut t = Tensor::uninit(a.dtype, &a.shape)?;
        places.push(Destination { ptr: t.as_mut_byte_ptr(), strides: None, size: a.dtype.size() });
        tensors.push(t);
    }
    write(&places)?;
    // SAFETY: `write` has written every element, as the caller promises.
    Ok(tensors.into_iter().map(|t| unsafe { t.assume_init() }).collect())
}
