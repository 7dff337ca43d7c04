//! Products of many reflections as matrix products: `H_1 .. H_b = I - V T V^H` with T upper triangular (R.
//! Schreiber and C. Van Loan, SIAM J. Sci. Stat. Comput. 10 (1989)).

use faer::Par;

use super::lanes::{Columns, Lanes, height, with_lines};
use super::{Factorization, store};
use crate::simd::dispatch;
use crate::workspace::{total, with_zeros};
use crate::{DenseError, Factor, Field, Strided, Target};

/// Columns of a block: where products win over single reflections.
pub(super) const BLOCK: usize = 32;

fn columns<T>(ptr: *const T, ld: usize) -> Factor<T> {
    Factor { ptr, row: 1, col: ld as isize, conj: false }
}

fn adjoint<T>(ptr: *const T, ld: usize) -> Factor<T> {
    Factor { ptr, row: ld as isize, col: 1, conj: true }
}

/// The block of reflectors whose tails are below the diagonal of the `rows x tau.len()` matrix at `from`.
struct Block<'a, T> {
    v: &'a mut [T],
    t: &'a mut [T],
    rows: usize,
    size: usize,
}

impl<'a, T: Lanes> Block<'a, T> {
    /// The number of elements of the buffer of [`new`](Self::new), and of the workspace of
    /// [`apply`](Self::apply) to `count` columns, for blocks of up to `size` reflectors.
    fn rooms(rows: usize, size: usize, count: usize) -> [usize; 2] {
        [total([(rows, size), (size, size)]), size.saturating_mul(2).saturating_mul(count)]
    }

    /// # Safety
    /// The tails are readable.
    unsafe fn new(buffer: &'a mut [T], from: Strided<*const T>, rows: usize, tau: &[T], par: Par) -> Self {
        let size = tau.len();
        let (v, rest) = buffer.split_at_mut(rows * size);
        let t = &mut rest[..size * size];
        for (j, v) in v.chunks_exact_mut(rows).enumerate() {
            v[..j].fill(T::ZERO);
            v[j] = T::ONE;
            for (i, v) in v.iter_mut().enumerate().skip(j + 1) {
                // SAFETY: (i, j) is below the diagonal of the given matrix.
                *v = unsafe { *from.ptr.offset(i as isize * from.row + j as isize * from.col) };
            }
        }
        let target = Target { ptr: t.as_mut_ptr(), row: 1, col: size as isize };
        let (vh, v_) = (adjoint(v.as_ptr(), rows), columns(v.as_ptr(), rows));
        // SAFETY: T is size x size, V is rows x size.
        unsafe { T::product((size, size, rows), T::ONE, vh, v_, false, target, par) };
        // Column j of T above the diagonal is -tau T (V^H v_j), of which V^H v_j is there now.
        for (j, &tau) in tau.iter().enumerate() {
            let (done, rest) = t.split_at_mut(j * size);
            let column = &mut rest[..size];
            for i in 0..j {
                let sum = (i..j).fold(T::ZERO, |sum, l| sum + done[i + l * size] * column[l]);
                column[i] = -(sum * tau);
            }
            column[j] = tau;
            column[j + 1..].fill(T::ZERO);
        }
        Block { v, t, rows, size }
    }

    /// C <- (I - V T V^H) C, or its adjoint, with C of `rows x count`; for `work` see [`rooms`](Self::rooms).
    ///
    /// # Safety
    /// C is writable and initialised, and nobody else's.
    unsafe fn apply(&self, conj: bool, c: Target<T>, count: usize, work: &mut [T], par: Par) {
        let &Block { rows, size, .. } = self;
        if count == 0 {
            return;
        }
        let (w, x) = work.split_at_mut(size * count);
        let to = |w: &mut [T]| Target { ptr: w.as_mut_ptr(), row: 1, col: size as isize };
        let (v, vh) = (columns(self.v.as_ptr(), rows), adjoint(self.v.as_ptr(), rows));
        let t = if conj { adjoint(self.t.as_ptr(), size) } else { columns(self.t.as_ptr(), size) };
        let read = Factor { ptr: c.ptr.cast_const(), row: c.row, col: c.col, conj: false };
        // SAFETY: the extents are those of the buffers.
        unsafe {
            T::product((size, count, rows), T::ONE, vh, read, false, to(w), par);
            T::product((size, count, size), T::ONE, t, columns(w.as_ptr(), size), false, to(x), par);
            T::product((rows, count, size), -T::ONE, v, columns(x.as_ptr(), size), true, c, par);
        }
    }
}

/// Factors the `m x n` matrix at `packed` in place.
///
/// # Errors
/// `Memory`.
///
/// # Safety
/// It is initialised, column-major and nobody else's; `tau` has min(m, n) elements.
pub(super) unsafe fn factor<T: Lanes>(
    (m, n): (usize, usize),
    packed: *mut T,
    tau: &mut [T],
    par: Par,
) -> Result<(), DenseError> {
    // The last panel has only columns right of it that make the matrix a wide one.
    let size = tau.len().min(BLOCK);
    let rooms = if n > size { Block::<T>::rooms(m, size, n - size) } else { [0; 2] };
    with_zeros::<T, _>(rooms[0].saturating_add(rooms[1]), |buffer| {
        let (buffer, work) = buffer.split_at_mut(rooms[0]);
        let mut start = 0;
        for tau in tau.chunks_mut(BLOCK) {
            let (rows, size) = (m - start, tau.len());
            // SAFETY: the panel and the columns right of it are disjoint parts of the matrix.
            unsafe {
                let at = packed.add(start + start * m);
                let lines = height::<T>(rows);
                with_lines::<T, _>(2 * lines * size, |buffer| {
                    let (mut a, rest) = Columns::split(buffer, lines, size);
                    let (mut v, _) = Columns::split(rest, lines, size);
                    for j in 0..size {
                        let column = std::slice::from_raw_parts(at.add(j * m), rows);
                        column.iter().enumerate().for_each(|(i, &x)| a.put(i, j, x));
                    }
                    dispatch(Factorization { a: &mut a, v: &mut v, tau, pivoting: None, rows });
                    store((rows, size), &a, &v, T::Real::ONE, (at, m));
                })?;
                let left = n - start - size;
                if left > 0 {
                    let from = Strided { ptr: at.cast_const(), row: 1, col: m as isize };
                    let block = Block::new(buffer, from, rows, tau, par);
                    let c = Target { ptr: at.add(size * m), row: 1, col: m as isize };
                    block.apply(true, c, left, work, par);
                }
            }
            start += size;
        }
        Ok(())
    })?
}

/// The first `count >= k` columns of `H_1 .. H_k`, in m rows each.
///
/// # Errors
/// `Memory`.
///
/// # Safety
/// The tails of the reflectors are readable below the diagonal of `v`; `q` is writable and overlaps nothing.
pub(super) unsafe fn product<T: Lanes>(
    (m, count): (usize, usize),
    v: Strided<*const T>,
    tau: &[T],
    q: *mut T,
    par: Par,
) -> Result<(), DenseError> {
    // SAFETY: q has m count elements, of which each block changes those right of and below its start.
    unsafe {
        q.write_bytes(0, m * count);
        for j in 0..count {
            q.add(j + j * m).write(T::ONE);
        }
    }
    let rooms = Block::<T>::rooms(m, tau.len().min(BLOCK), count);
    with_zeros::<T, _>(rooms[0].saturating_add(rooms[1]), |buffer| {
        let (buffer, work) = buffer.split_at_mut(rooms[0]);
        for (b, tau) in tau.chunks(BLOCK).enumerate().rev() {
            let start = b * BLOCK;
            // SAFETY: as above.
            unsafe {
                let from = v.ptr.offset(start as isize * (v.row + v.col));
                let block = Block::new(buffer, Strided { ptr: from, ..v }, m - start, tau, par);
                let c = Target { ptr: q.add(start + start * m), row: 1, col: m as isize };
                block.apply(false, c, count - start, work, par);
            }
        }
    })
}

/// C <- `H_1 .. H_k` C, or its adjoint times C, with C of `m x count`.
///
/// # Errors
/// `Memory`.
///
/// # Safety
/// The tails of the reflectors are readable below the diagonal of `v`; C is column-major, initialised and
/// overlaps nothing.
pub(super) unsafe fn apply<T: Lanes>(
    (m, count): (usize, usize),
    v: Strided<*const T>,
    tau: &[T],
    conj: bool,
    c: *mut T,
    par: Par,
) -> Result<(), DenseError> {
    let rooms = Block::<T>::rooms(m, tau.len().min(BLOCK), count);
    with_zeros::<T, _>(rooms[0].saturating_add(rooms[1]), |buffer| {
        let (buffer, work) = buffer.split_at_mut(rooms[0]);
        let blocks = tau.len().div_ceil(BLOCK);
        for step in 0..blocks {
            let b = if conj { step } else { blocks - 1 - step };
            let start = b * BLOCK;
            let tau = &tau[start..tau.len().min(start + BLOCK)];
            // SAFETY: as the caller promises.
            unsafe {
                let from = v.ptr.offset(start as isize * (v.row + v.col));
                let block = Block::new(buffer, Strided { ptr: from, ..v }, m - start, tau, par);
                let c = Target { ptr: c.add(start), row: 1, col: m as isize };
                block.apply(conj, c, count, work, par);
            }
        }
    })
}
