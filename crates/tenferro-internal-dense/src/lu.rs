//! LU factorization with partial pivoting, P A = L U.
//!
//! Recursive on column halves (Toledo, SIAM J. Matrix Anal. Appl. 18 (1997)): all but the narrow leaves is
//! triangular solves and products, which go to faer. The leaves are own loops because they must handle exact
//! zero pivots (nothing to eliminate) and pivots whose reciprocal overflows, which faer's turn into NaN.

use faer::Par;

use crate::provider::Provider;
use crate::simd::vectorised;
use crate::triangular::triangular_solve;
use crate::workspace::{filled, with_zeros};
use crate::{DenseError, Factor, Field, Real, Strided, Triangle, blas};

/// Columns below which a panel is factored by plain loops.
const LEAF: usize = 8;

/// See [`Dense::lu`](crate::Dense::lu).
///
/// # Errors
/// Stated there.
///
/// # Safety
/// Stated there.
pub(crate) unsafe fn lu<T: Provider>(
    (m, n): (usize, usize),
    a: Strided<*const T>,
    packed: *mut T,
    perm: *mut i32,
    par: Par,
) -> Result<(), DenseError> {
    // SAFETY: the caller's promise; each slice below covers memory that has just been written.
    unsafe {
        if !std::ptr::eq(a.ptr, packed) {
            copy((m, n), a, packed);
        }
        if m > 0 && n > 0 && by_library((m, n), a, packed, perm)? {
            return Ok(());
        }
        for i in 0..m {
            perm.add(i).write(i as i32);
        }
        let perm = std::slice::from_raw_parts_mut(perm, m);
        let k = m.min(n);
        factor(Panel { a: packed, ld: m, rows: m, cols: k }, perm, par)?;
        if n > k {
            // The columns right of a wide matrix's square: follow the permutation, then U = L^-1 A.
            let right = packed.add(k * m);
            with_zeros(m, |column| {
                for j in 0..n - k {
                    let target = std::slice::from_raw_parts_mut(right.add(j * m), m);
                    column.copy_from_slice(target);
                    for (x, &from) in target.iter_mut().zip(perm.iter()) {
                        *x = column[from as usize];
                    }
                }
            })?;
            let l = Strided { ptr: packed.cast_const(), row: 1, col: m as isize };
            let b = Strided { ptr: right, row: 1, col: m as isize };
            triangular_solve((k, n - k), (Triangle::Lower, true), l, false, b, par);
        }
    }
    Ok(())
}

/// # Safety
/// A is a readable m x n matrix, `packed` has room for one.
unsafe fn copy<T: Field>((m, n): (usize, usize), a: Strided<*const T>, packed: *mut T) {
    for j in 0..n {
        for i in 0..m {
            // SAFETY: i < m and j < n.
            unsafe { packed.add(i + j * m).write(*a.ptr.offset(i as isize * a.row + j as isize * a.col)) };
        }
    }
}

/// By a library; false, with A in `packed`, if there is none, or its factors are not finite: some multiply by
/// the reciprocals of pivots, which may overflow.
///
/// # Errors
/// `Memory`.
///
/// # Safety
/// As for [`lu`]; A has been copied, and is not empty.
unsafe fn by_library<T: Provider>(
    (m, n): (usize, usize),
    a: Strided<*const T>,
    packed: *mut T,
    perm: *mut i32,
) -> Result<bool, DenseError> {
    if !blas::has_lu::<T>(m.max(n)) {
        return Ok(false);
    }
    let call = || {
        // SAFETY: the caller's promise; `packed` is initialised.
        Ok(unsafe {
            blas::lu((m, n), packed, perm)?
                && std::slice::from_raw_parts(packed, m * n).iter().all(|x| x.finite())
        })
    };
    if !std::ptr::eq(a.ptr, packed) {
        let good = call()?;
        if !good {
            // SAFETY: the caller's promise.
            unsafe { copy((m, n), a, packed) };
        }
        return Ok(good);
    }
    with_zeros::<T, _>(m * n, |saved| {
        // SAFETY: `packed` has m n elements, and the workspace is apart from it.
        unsafe {
            saved.as_mut_ptr().copy_from_nonoverlapping(packed, m * n);
            let good = call()?;
            if !good {
                packed.copy_from_nonoverlapping(saved.as_ptr(), m * n);
            }
            Ok(good)
        }
    })?
}

/// A column-major block with rows >= cols.
#[derive(Clone, Copy)]
struct Panel<T> {
    a: *mut T,
    ld: usize,
    rows: usize,
    cols: usize,
}

impl<T: Provider> Panel<T> {
    /// # Safety
    /// j < cols.
    #[inline(always)]
    unsafe fn column<'a>(self, j: usize) -> &'a mut [T] {
        // SAFETY: `lu` has initialised the memory; callers hold one column at a time, or two distinct ones.
        unsafe { std::slice::from_raw_parts_mut(self.a.add(j * self.ld), self.rows) }
    }

    fn at(self, i: usize, j: usize) -> Strided<*mut T> {
        Strided { ptr: self.a.wrapping_add(i + j * self.ld), row: 1, col: self.ld as isize }
    }
}

/// Factors the panel in place, with `perm` permuted along with its rows.
///
/// # Errors
/// `Memory`.
///
/// # Safety
/// The panel is initialised and nobody else's; `perm` has its rows' length.
unsafe fn factor<T: Provider>(panel: Panel<T>, perm: &mut [i32], par: Par) -> Result<(), DenseError> {
    let Panel { rows, cols, .. } = panel;
    let mut pivots = filled([cols], 0u32)?;
    // SAFETY: the caller's promise.
    unsafe { recurse(panel, &mut pivots, par) };
    debug_assert!(cols <= rows);
    for (j, &p) in pivots.iter().enumerate() {
        perm.swap(j, p as usize);
    }
    Ok(())
}

/// # Safety
/// As for `factor`; `pivots` has the columns' length.
unsafe fn recurse<T: Provider>(panel: Panel<T>, pivots: &mut [u32], par: Par) {
    let Panel { a, ld, rows, cols } = panel;
    if cols <= LEAF {
        // SAFETY: the caller's promise.
        return vectorised(|| unsafe { leaf(panel, pivots) });
    }
    let half = (cols / 2).next_multiple_of(8);
    let (first, second) = pivots.split_at_mut(half);
    // SAFETY: the blocks are parts of the panel, and disjoint in each call.
    unsafe {
        let left = Panel { cols: half, ..panel };
        let right = Panel { a: a.add(half * ld), cols: cols - half, ..panel };
        recurse(left, first, par);
        exchange(right, first);
        let (l11, l21) = (panel.at(0, 0), panel.at(half, 0));
        let (u12, a22) = (panel.at(0, half), panel.at(half, half));
        let read = |s: Strided<*mut T>| Strided { ptr: s.ptr.cast_const(), row: s.row, col: s.col };
        triangular_solve((half, cols - half), (Triangle::Lower, true), read(l11), false, u12, par);
        let factor =
            |s: Strided<*mut T>| Factor { ptr: s.ptr.cast_const(), row: s.row, col: s.col, conj: false };
        let shape = (rows - half, cols - half, half);
        T::product(shape, -T::ONE, factor(l21), factor(u12), true, a22, par);
        let below = Panel { a: a22.ptr, rows: rows - half, cols: cols - half, ld };
        recurse(below, second, par);
        exchange(Panel { a: l21.ptr, rows: rows - half, ..left }, second);
    }
    for p in second {
        *p += half as u32;
    }
}

/// Exchanges row j with row pivots[j], in order.
///
/// # Safety
/// The panel is initialised and nobody else's; the pivots are below its rows.
unsafe fn exchange<T: Provider>(panel: Panel<T>, pivots: &[u32]) {
    for j in 0..panel.cols {
        // SAFETY: j < cols.
        let column = unsafe { panel.column(j) };
        for (i, &p) in pivots.iter().enumerate() {
            column.swap(i, p as usize);
        }
    }
}

/// Right-looking elimination, column by column.
///
/// # Safety
/// As for `recurse`.
#[inline(always)]
unsafe fn leaf<T: Provider>(panel: Panel<T>, pivots: &mut [u32]) {
    for j in 0..panel.cols {
        // SAFETY: the two columns held together are j and a later one.
        unsafe {
            let column = panel.column(j);
            let (mut largest, mut pivot) = (column[j].abs1(), j);
            for (i, x) in column.iter().enumerate().skip(j + 1) {
                // Negated so that a NaN is taken as pivot and shows in the result.
                #[allow(clippy::neg_cmp_op_on_partial_ord)]
                if !(x.abs1() <= largest) {
                    (largest, pivot) = (x.abs1(), i);
                }
            }
            pivots[j] = pivot as u32;
            if pivot != j {
                for c in 0..panel.cols {
                    panel.column(c).swap(j, pivot);
                }
            }
            let (above, below) = column.split_at_mut(j + 1);
            let diagonal = above[j];
            if diagonal == T::ZERO {
                continue;
            }
            // The reciprocal of a smaller number would overflow.
            if T::COMPLEX && largest > T::Real::TINY * T::Real::of(8.0) {
                let inverse = T::ONE.divide(diagonal);
                below.iter_mut().for_each(|x| *x = *x * inverse);
            } else {
                below.iter_mut().for_each(|x| *x = x.divide(diagonal));
            }
            for c in j + 1..panel.cols {
                let (above, target) = panel.column(c).split_at_mut(j + 1);
                let scale = above[j];
                for (y, &l) in target.iter_mut().zip(below.iter()) {
                    *y = *y - l * scale;
                }
            }
        }
    }
}
