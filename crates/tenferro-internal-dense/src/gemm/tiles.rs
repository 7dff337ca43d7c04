//! Products of middle size, by tiles of C whose sums stay in registers.
//!
//! A tile is a few registers high and a few columns wide. For each p its rows of column p of A are loaded and
//! multiplied by B(p, j) in all lanes, added to the sums of column j. B is read where it lies, A too if its
//! columns are contiguous; there is no blocking for caches.
//!
//! Complex columns of A are real ones of twice the length, and a column of B is two: its real parts and its
//! imaginary parts. The sums s of A re(b) and t of A im(b) make s + i t; conjugation is a matter of signs at
//! the end.
//!
//! Invariant: each element of C is one sum over p = 0, 1, .. of fused operations, whatever the tile it lies
//! in.

// Index loops of constant length over several arrays at once are what is unrolled into registers.
#![allow(clippy::needless_range_loop)]

use std::mem::MaybeUninit;

use super::pack::pack;
use super::register::{Register, Registers};
use super::{Output, Sum};
use crate::workspace::with_uninit;
use crate::{Factor, Field, Target};

/// Most elements of each of the three matrices: 96 x 96. Beyond, faer's blocking for the caches wins, by 10
/// to 20 % at 16 x 16 x 1000, 300 x 2 x 300 and 300 x 300 x 2, or its division among threads. Within, tiles
/// take 0.35 to 1.0 of its time in one thread, but for real matrices of less than a register of rows: 1.15 at
/// 2 x 20 x 20, 1.3 at 7 x 100 x 3.
const LARGEST: usize = 96 * 96;

/// Columns that are a multiple of so many bytes apart fall on a quarter of the first level of the caches or
/// less, and displace one another if there are more than `CROWD` of them; a copy of a panel that more than
/// `REUSE` tiles read takes less time than that.
const CROWDED: usize = 1024;
const CROWD: usize = 32;
const REUSE: usize = 4;

/// Multiplies by tiles, if the processor has the registers and the matrices are not too large; tells whether.
///
/// # Safety
/// The promise of [`gemm`](super::gemm), and no extent is zero.
pub(super) unsafe fn tiled<T: Sum>(
    (m, n, k): (usize, usize, usize),
    a: Factor<T>,
    b: Factor<T>,
    out: Output<T>,
) -> bool {
    let small = |x: usize, y: usize| x.checked_mul(y).is_some_and(|len| len <= LARGEST);
    if !(small(m, n) && small(m, k) && small(k, n)) {
        return false;
    }
    // SAFETY: the caller's promise.
    unsafe { by_tiles(true, (m, n, k), a, b, out) || by_tiles(false, (m, n, k), a, b, out) }
}

/// Multiplies by tiles with AVX-512 if `wide`, else with AVX2 and FMA, if the processor has that and memory for
/// a copy can be had; tells whether.
///
/// # Safety
/// The promise of [`gemm`](super::gemm), and no extent is zero.
pub(super) unsafe fn by_tiles<T: Sum>(
    wide: bool,
    (m, n, k): (usize, usize, usize),
    a: Factor<T>,
    b: Factor<T>,
    out: Output<T>,
) -> bool {
    let present = match wide {
        true => <T::Real as Registers>::Avx512::present(),
        false => <T::Real as Registers>::Avx2::present(),
    };
    if !present {
        return false;
    }
    let c = out.c;
    let product = if c.row != 1 && c.col == 1 {
        // Columns of the transposed equation are contiguous.
        let out = Output { c: Target { row: c.col, col: c.row, ..c }, ..out };
        Tiles { shape: (n, m, k), a: b.transposed(), b: a.transposed(), out }
    } else {
        Tiles { shape: (m, n, k), a, b, out }
    };
    // SAFETY: the processor has the instructions; the rest is the caller's promise.
    unsafe {
        match wide {
            true => product.run::<<T::Real as Registers>::Avx512>(),
            false => product.run::<<T::Real as Registers>::Avx2>(),
        }
    }
}

/// A product of matrices.
pub(super) struct Tiles<T> {
    pub(super) shape: (usize, usize, usize),
    pub(super) a: Factor<T>,
    pub(super) b: Factor<T>,
    pub(super) out: Output<T>,
}

/// Divides `len` into the fewest pieces of at most `most`, as equal as possible, and calls `f` with the start
/// and the length of each.
#[inline(always)]
fn evenly(len: usize, most: usize, mut f: impl FnMut(usize, usize)) {
    let pieces = len.div_ceil(most);
    let (short, longer) = (len / pieces, len % pieces);
    let mut at = 0;
    for piece in 0..pieces {
        let size = short + usize::from(piece < longer);
        f(at, size);
        at += size;
    }
}

impl<T: Sum> Tiles<T> {
    /// Reals in a number.
    const PARTS: usize = 1 + T::COMPLEX as usize;

    /// Tells whether there was memory for it.
    ///
    /// # Safety
    /// The promise of [`gemm`](super::gemm), no extent is zero, and the processor has the instructions of V.
    unsafe fn run<V: Register<T::Real>>(self) -> bool {
        let (m, n, k) = self.shape;
        let most = V::HEIGHT * V::LANES / Self::PARTS;
        let rows = m * Self::PARTS;
        let panels = |copy: Option<*mut T>| {
            evenly(rows.div_ceil(V::LANES), V::HEIGHT, |top, height| {
                let i = top * V::LANES / Self::PARTS;
                let last = (rows - (top + height - 1) * V::LANES).min(V::LANES);
                // SAFETY: the tiles divide C; the copy has `most` elements for each of k columns, and a
                // processor with either instruction set has AVX2. The rest is the caller's promise.
                unsafe {
                    let mut a = self.a.skip(i, 0);
                    if let Some(copy) = copy {
                        let ld = height * V::LANES / Self::PARTS;
                        pack((ld.min(m - i), k), a, copy, ld);
                        a = Factor { ptr: copy, row: 1, col: ld as isize, ..a };
                    }
                    evenly(n, V::WIDTH / Self::PARTS, |j, width| {
                        self.tile::<V>(a, (i, j), (height, width * Self::PARTS), last);
                    });
                }
            });
        };
        let crowded = self.a.col.unsigned_abs().wrapping_mul(size_of::<T>()).is_multiple_of(CROWDED)
            && k > CROWD
            && n * Self::PARTS > REUSE * V::WIDTH;
        if m == 1 || (self.a.row == 1 && !crowded) {
            panels(None);
            return true;
        }
        // Used for one panel of rows after the other, the copy remains in the first level of the caches.
        with_uninit::<T, _>(most * k, |copy| panels(Some(copy.as_mut_ptr().cast()))).is_ok()
    }

    /// The tile at `at`, whose rows of A are `a`, of `height` registers, `last` lanes of the last one taken,
    /// and `width` real columns.
    ///
    /// # Safety
    /// As for `run`, and the tile lies within C.
    #[inline(always)]
    unsafe fn tile<V: Register<T::Real>>(
        &self,
        a: Factor<T>,
        at: (usize, usize),
        (height, width): (usize, usize),
        last: usize,
    ) {
        macro_rules! widths {
            ($height:literal: $($width:literal)*) => {
                match width {
                    $($width => {
                        if V::HEIGHT >= $height && V::WIDTH >= $width && $width % Self::PARTS == 0 {
                            // SAFETY: the caller's promise.
                            unsafe {
                                if V::FREE_MASK || last < V::LANES {
                                    self.sums::<V, $height, $width, true>(a, at, last)
                                } else {
                                    self.sums::<V, $height, $width, false>(a, at, last)
                                }
                            }
                        }
                    })*
                    _ => unreachable!(),
                }
            };
        }
        match height {
            1 => widths!(1: 1 2 3 4 5 6),
            2 => widths!(2: 1 2 3 4 5 6),
            3 => widths!(3: 1 2 3 4 5 6),
            4 => widths!(4: 1 2 3 4 5 6),
            _ => unreachable!(),
        }
    }

    /// # Safety
    /// As for `tile`.
    #[inline(always)]
    unsafe fn sums<V: Register<T::Real>, const H: usize, const W: usize, const MASKED: bool>(
        &self,
        a: Factor<T>,
        (i, j): (usize, usize),
        last: usize,
    ) {
        // SAFETY: the processor has the instructions.
        let compiled = |f| unsafe { V::enable(f) };
        compiled(
            #[inline(always)]
            || {
                // SAFETY: reals of the numbers A(i .., p) and B(p, j ..) of the tile, with p < k.
                unsafe {
                    let mask = V::mask(last);
                    let parts = Self::PARTS as isize;
                    let b = self.b.skip(0, j);
                    let columns: [*const T::Real; W] = std::array::from_fn(
                        #[inline(always)]
                        |w| b.skip(0, w / Self::PARTS).ptr.cast::<T::Real>().add(w % Self::PARTS),
                    );
                    let (mut from, step) = (a.ptr.cast::<T::Real>(), a.col.wrapping_mul(parts));
                    let zero = V::splat(T::Real::ZERO);
                    let mut sum = [[zero; H]; W];
                    let mut p = 0_isize;
                    for _ in 0..self.shape.2 {
                        let mut column = [zero; H];
                        for h in 0..H {
                            let from = from.add(h * V::LANES);
                            column[h] =
                                if MASKED && h + 1 == H { V::load_masked(from, mask) } else { V::load(from) };
                        }
                        for w in 0..W {
                            let b = V::splat(*columns[w].wrapping_offset(p));
                            for h in 0..H {
                                sum[w][h] = column[h].mul_add(b, sum[w][h]);
                            }
                        }
                        from = from.wrapping_offset(step);
                        p = p.wrapping_add(self.b.row.wrapping_mul(parts));
                    }
                    if T::COMPLEX {
                        self.complex::<V, H, W>(&mut sum);
                    }
                    let Output { alpha, beta, c } = self.out;
                    if alpha == T::ONE && beta == T::ZERO && c.row == 1 {
                        for w in 0..W / Self::PARTS {
                            let to = c.ptr.offset(i as isize + (j + w) as isize * c.col).cast::<T::Real>();
                            for h in 0..H {
                                let to = to.add(h * V::LANES);
                                if MASKED && h + 1 == H {
                                    sum[w][h].store_masked(to, mask);
                                } else {
                                    sum[w][h].store(to);
                                }
                            }
                        }
                    } else {
                        // In memory only here: a sum whose address is taken would not stay in a register.
                        let mut stored = [const { MaybeUninit::<[V; H]>::uninit() }; W];
                        for w in 0..W / Self::PARTS {
                            stored[w].write(sum[w]);
                        }
                        let rows = ((H - 1) * V::LANES + last) / Self::PARTS;
                        let stride = H * V::LANES / Self::PARTS;
                        self.finish::<V>((i, j), (rows, W / Self::PARTS), stored.as_ptr().cast(), stride);
                    }
                }
            },
        )
    }

    /// Makes one column of complex numbers of the sums with the real and those with the imaginary parts of B.
    ///
    /// # Safety
    /// The processor has the instructions of V.
    #[inline(always)]
    unsafe fn complex<V: Register<T::Real>, const H: usize, const W: usize>(&self, sum: &mut [[V; H]; W]) {
        let (zero, one) = (T::Real::ZERO, T::Real::ONE);
        // SAFETY: the caller's promise; a register holds at most 16 numbers.
        unsafe {
            if self.a.conj || self.b.conj {
                let signs: [T::Real; 16] =
                    std::array::from_fn(|l| if self.a.conj && l % 2 == 1 { -one } else { one });
                let signs = V::load(signs.as_ptr());
                let turn = V::splat(if self.b.conj { -one } else { one });
                let zero = V::splat(zero);
                for w in 0..W {
                    for h in 0..H {
                        let x = sum[w][h].mul_add(signs, zero);
                        sum[w][h] = if w % 2 == 1 { x.mul_add(turn, zero) } else { x };
                    }
                }
            }
            for w in 0..W / 2 {
                for h in 0..H {
                    sum[w][h] = sum[2 * w][h].add_i(sum[2 * w + 1][h]);
                }
            }
        }
    }

    /// Puts the sums of a tile, whose columns are `stride` numbers apart, into C.
    ///
    /// # Safety
    /// The tile lies within C, `sums` has its columns, and the processor has the instructions of V.
    unsafe fn finish<V: Register<T::Real>>(
        &self,
        (i, j): (usize, usize),
        (rows, cols): (usize, usize),
        sums: *const T,
        stride: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            V::enable(
                #[inline(always)]
                || {
                    for w in 0..cols {
                        let column = std::slice::from_raw_parts(sums.add(w * stride), rows);
                        self.out.put(i, j + w, column);
                    }
                },
            );
        }
    }
}
