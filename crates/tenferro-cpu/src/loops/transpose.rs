//! Matrix transposition of elements of 1, 4, 8 or 16 bytes, by square blocks held in registers.
//!
//! With AVX-512 a block is as wide as a cache line, so each line is read and written whole; AVX2 blocks are
//! half of that. Bytes are transposed eight by eight inside 64-bit words. Everything else moves element by
//! element.

use std::ptr::{read_unaligned, write_unaligned};

/// `dst[i + j * dst_ld] = src[i * src_ld + j]` for `i < m`, `j < n`; `T` is any type of the element's size.
/// With `stream`, whole cache lines bypass the caches where possible; the caller then ends with [`fence`].
///
/// # Safety
/// Both sides must be valid for the elements named, and must not overlap.
#[inline]
pub(super) unsafe fn transpose<T: Copy>(
    src: *const T,
    src_ld: isize,
    dst: *mut T,
    dst_ld: isize,
    m: usize,
    n: usize,
    stream: bool,
) {
    let block = block_side(size_of::<T>());
    let (mb, nb) = (m - m % block, n - n % block);
    if mb > 0 && nb > 0 {
        // SAFETY: the blocks lie inside m x n, and `block_side` found the processor able.
        unsafe {
            match size_of::<T>() {
                1 => bytes(src.cast(), src_ld, dst.cast(), dst_ld, mb, nb),
                #[cfg(target_arch = "x86_64")]
                size => x86::blocks(size, block, src.cast(), src_ld, dst.cast(), dst_ld, mb, nb, stream),
                #[cfg(not(target_arch = "x86_64"))]
                _ => plain(src, src_ld, dst, dst_ld, mb, nb),
            }
        }
    }
    // SAFETY: the remaining edges also lie inside m x n.
    unsafe {
        if mb < m && nb > 0 {
            plain(src.offset(mb as isize * src_ld), src_ld, dst.add(mb), dst_ld, m - mb, nb);
        }
        if nb < n || mb == 0 {
            let from = if mb == 0 { 0 } else { nb };
            let to = dst.offset(from as isize * dst_ld);
            plain(src.add(from), src_ld, to, dst_ld, m, n - from);
        }
    }
}

/// Orders streamed stores before whatever tells other threads about them.
#[inline]
pub(super) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of the architecture.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    };
}

/// Asks for the cache line at `address` ahead of its use.
#[inline(always)]
pub(super) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect but on the caches, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(address.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The side of the blocks for this element size and processor.
#[inline(always)]
fn block_side(size: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    if size != 1 {
        return if super::simd::has_avx512() {
            64 / size
        } else if super::simd::has_avx2() {
            32 / size
        } else {
            usize::MAX
        };
    }
    8
}

/// Element by element.
#[inline(always)]
unsafe fn plain<T: Copy>(src: *const T, src_ld: isize, dst: *mut T, dst_ld: isize, m: usize, n: usize) {
    for j in 0..n as isize {
        for i in 0..m as isize {
            // SAFETY: the caller vouches for all (i, j); unaligned access because T only has the right size.
            unsafe {
                write_unaligned(dst.offset(i + j * dst_ld), read_unaligned(src.offset(i * src_ld + j)))
            };
        }
    }
}

/// Blocks of 8 x 8 bytes, each row one little-endian word; m and n are multiples of 8.
unsafe fn bytes(src: *const u8, src_ld: isize, dst: *mut u8, dst_ld: isize, m: usize, n: usize) {
    // Exchanges the part of `a` above `shift` under `mask` with the part of `b` below it.
    let swap = |rows: &mut [u64; 8], a: usize, b: usize, shift: u32, mask: u64| {
        let t = ((rows[a] >> shift) ^ rows[b]) & mask;
        rows[b] ^= t;
        rows[a] ^= t << shift;
    };
    for j in (0..n as isize).step_by(8) {
        for i in (0..m as isize).step_by(8) {
            let mut rows = [0u64; 8];
            for (k, row) in rows.iter_mut().enumerate() {
                // SAFETY: rows i.. i+8 and columns j..j+8 lie inside the source.
                let word = unsafe { read_unaligned(src.offset((i + k as isize) * src_ld + j).cast::<u64>()) };
                *row = u64::from_le(word);
            }
            for k in 0..4 {
                swap(&mut rows, k, k + 4, 32, 0x0000_0000_ffff_ffff);
            }
            for k in [0, 1, 4, 5] {
                swap(&mut rows, k, k + 2, 16, 0x0000_ffff_0000_ffff);
            }
            for k in [0, 2, 4, 6] {
                swap(&mut rows, k, k + 1, 8, 0x00ff_00ff_00ff_00ff);
            }
            for (k, row) in rows.iter().enumerate() {
                // SAFETY: as above, for the destination.
                unsafe {
                    write_unaligned(dst.offset(i + (j + k as isize) * dst_ld).cast::<u64>(), row.to_le())
                };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Transposes whole blocks; `side * size` is 64 with AVX-512 and 32 with AVX2.
    #[allow(clippy::too_many_arguments)]
    #[inline]
    pub(super) unsafe fn blocks(
        size: usize,
        side: usize,
        src: *const u8,
        src_ld: isize,
        dst: *mut u8,
        dst_ld: isize,
        m: usize,
        n: usize,
        stream: bool,
    ) {
        let (s, d) = (src_ld * size as isize, dst_ld * size as isize);
        let stream = stream && (dst as usize).is_multiple_of(64) && d % 64 == 0;
        // SAFETY: the caller vouches for the memory and, through `side`, for the instruction set.
        unsafe {
            match (size, side) {
                (4, 16) if stream => avx512_4_stream(src, s, dst, d, m, n),
                (4, 16) => avx512_4(src, s, dst, d, m, n),
                (8, 8) if stream => avx512_8_stream(src, s, dst, d, m, n),
                (8, 8) => avx512_8(src, s, dst, d, m, n),
                (16, 4) if stream => avx512_16_stream(src, s, dst, d, m, n),
                (16, 4) => avx512_16(src, s, dst, d, m, n),
                (4, 8) => avx2_4(src, s, dst, d, m, n),
                (8, 4) => avx2_8(src, s, dst, d, m, n),
                (16, 2) => avx2_16(src, s, dst, d, m, n),
                _ => unreachable!("element sizes are 1, 4, 8 and 16"),
            }
        }
    }

    /// Walks the blocks of `side` x `side` elements; leading dimensions `s` and `d` count bytes.
    macro_rules! walk {
        ($name:ident, $set:literal, $size:literal, $side:literal, $load:ident, $store:ident, $turn:ident) => {
            #[target_feature(enable = $set)]
            unsafe fn $name(src: *const u8, s: isize, dst: *mut u8, d: isize, m: usize, n: usize) {
                for j in (0..n as isize).step_by($side) {
                    for i in (0..m as isize).step_by($side) {
                        // SAFETY: all rows and columns of the block lie inside m x n.
                        unsafe {
                            let from = src.offset(i * s + j * $size);
                            let to = dst.offset(i * $size + j * d);
                            let rows = std::array::from_fn(
                                #[inline(always)]
                                |k| $load(from.offset(k as isize * s).cast()),
                            );
                            let columns: [_; $side] = $turn(rows);
                            for (k, column) in columns.into_iter().enumerate() {
                                $store(to.offset(k as isize * d).cast(), column);
                            }
                        }
                    }
                }
            }
        };
    }

    walk!(avx512_4, "avx512f", 4, 16, _mm512_loadu_si512, _mm512_storeu_si512, block512_4);
    walk!(avx512_4_stream, "avx512f", 4, 16, _mm512_loadu_si512, _mm512_stream_si512, block512_4);
    walk!(avx512_8, "avx512f", 8, 8, _mm512_loadu_si512, _mm512_storeu_si512, block512_8);
    walk!(avx512_8_stream, "avx512f", 8, 8, _mm512_loadu_si512, _mm512_stream_si512, block512_8);
    walk!(avx512_16, "avx512f", 16, 4, _mm512_loadu_si512, _mm512_storeu_si512, lanes512);
    walk!(avx512_16_stream, "avx512f", 16, 4, _mm512_loadu_si512, _mm512_stream_si512, lanes512);
    walk!(avx2_4, "avx2", 4, 8, _mm256_loadu_si256, _mm256_storeu_si256, block256_4);
    walk!(avx2_8, "avx2", 8, 4, _mm256_loadu_si256, _mm256_storeu_si256, block256_8);
    walk!(avx2_16, "avx2", 16, 2, _mm256_loadu_si256, _mm256_storeu_si256, lanes256);

    /// Transposes a 4 x 4 matrix of 16-byte lanes.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn lanes512(r: [__m512i; 4]) -> [__m512i; 4] {
        // 0x88 takes the even lanes of both arguments, 0xdd the odd ones.
        let (a, b) = (_mm512_shuffle_i64x2::<0x88>(r[0], r[1]), _mm512_shuffle_i64x2::<0x88>(r[2], r[3]));
        let (c, e) = (_mm512_shuffle_i64x2::<0xdd>(r[0], r[1]), _mm512_shuffle_i64x2::<0xdd>(r[2], r[3]));
        [
            _mm512_shuffle_i64x2::<0x88>(a, b),
            _mm512_shuffle_i64x2::<0x88>(c, e),
            _mm512_shuffle_i64x2::<0xdd>(a, b),
            _mm512_shuffle_i64x2::<0xdd>(c, e),
        ]
    }

    /// Pairs of rows are interleaved so that each lane holds one column of the pair, then lanes are
    /// transposed.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn block512_8(r: [__m512i; 8]) -> [__m512i; 8] {
        let even = lanes512([
            _mm512_unpacklo_epi64(r[0], r[1]),
            _mm512_unpacklo_epi64(r[2], r[3]),
            _mm512_unpacklo_epi64(r[4], r[5]),
            _mm512_unpacklo_epi64(r[6], r[7]),
        ]);
        let odd = lanes512([
            _mm512_unpackhi_epi64(r[0], r[1]),
            _mm512_unpackhi_epi64(r[2], r[3]),
            _mm512_unpackhi_epi64(r[4], r[5]),
            _mm512_unpackhi_epi64(r[6], r[7]),
        ]);
        [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
    }

    /// Groups of four rows are interleaved so that each lane holds one column of the group, then lanes are
    /// transposed.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn block512_4(r: [__m512i; 16]) -> [__m512i; 16] {
        let mut lanes = [[r[0]; 4]; 4];
        for g in 0..4 {
            let (a, b) = (
                _mm512_unpacklo_epi32(r[4 * g], r[4 * g + 1]),
                _mm512_unpacklo_epi32(r[4 * g + 2], r[4 * g + 3]),
            );
            let (c, e) = (
                _mm512_unpackhi_epi32(r[4 * g], r[4 * g + 1]),
                _mm512_unpackhi_epi32(r[4 * g + 2], r[4 * g + 3]),
            );
            lanes[0][g] = _mm512_unpacklo_epi64(a, b);
            lanes[1][g] = _mm512_unpackhi_epi64(a, b);
            lanes[2][g] = _mm512_unpacklo_epi64(c, e);
            lanes[3][g] = _mm512_unpackhi_epi64(c, e);
        }
        let [p, q, s, t] = [lanes512(lanes[0]), lanes512(lanes[1]), lanes512(lanes[2]), lanes512(lanes[3])];
        [p[0], q[0], s[0], t[0], p[1], q[1], s[1], t[1], p[2], q[2], s[2], t[2], p[3], q[3], s[3], t[3]]
    }

    /// Transposes a 2 x 2 matrix of 16-byte lanes.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn lanes256(r: [__m256i; 2]) -> [__m256i; 2] {
        [_mm256_permute2x128_si256::<0x20>(r[0], r[1]), _mm256_permute2x128_si256::<0x31>(r[0], r[1])]
    }

    /// As [`block512_8`].
    #[target_feature(enable = "avx2")]
    #[inline]
    fn block256_8(r: [__m256i; 4]) -> [__m256i; 4] {
        let even = lanes256([_mm256_unpacklo_epi64(r[0], r[1]), _mm256_unpacklo_epi64(r[2], r[3])]);
        let odd = lanes256([_mm256_unpackhi_epi64(r[0], r[1]), _mm256_unpackhi_epi64(r[2], r[3])]);
        [even[0], odd[0], even[1], odd[1]]
    }

    /// As [`block512_4`].
    #[target_feature(enable = "avx2")]
    #[inline]
    fn block256_4(r: [__m256i; 8]) -> [__m256i; 8] {
        let mut lanes = [[r[0]; 2]; 4];
        for g in 0..2 {
            let (a, b) = (
                _mm256_unpacklo_epi32(r[4 * g], r[4 * g + 1]),
                _mm256_unpacklo_epi32(r[4 * g + 2], r[4 * g + 3]),
            );
            let (c, e) = (
                _mm256_unpackhi_epi32(r[4 * g], r[4 * g + 1]),
                _mm256_unpackhi_epi32(r[4 * g + 2], r[4 * g + 3]),
            );
            lanes[0][g] = _mm256_unpacklo_epi64(a, b);
            lanes[1][g] = _mm256_unpackhi_epi64(a, b);
            lanes[2][g] = _mm256_unpacklo_epi64(c, e);
            lanes[3][g] = _mm256_unpackhi_epi64(c, e);
        }
        let [p, q, s, t] = [lanes256(lanes[0]), lanes256(lanes[1]), lanes256(lanes[2]), lanes256(lanes[3])];
        [p[0], q[0], s[0], t[0], p[1], q[1], s[1], t[1]]
    }

    #[cfg(test)]
    mod tests {
        use crate::loops::simd::{has_avx2, has_avx512};

        /// Each kernel this processor can run, on 3 x 2 blocks, against the definition.
        #[test]
        fn blocks_match_the_definition() {
            for (size, side) in [(4, 16), (8, 8), (16, 4), (4, 8), (8, 4), (16, 2)] {
                if !(has_avx512() || has_avx2() && size * side == 32) {
                    continue;
                }
                let (m, n) = (3 * side, 2 * side);
                let src: Vec<u8> = (0..m * n * size).map(|i| (i * 7 + i / 251) as u8).collect();
                let mut dst = vec![0; src.len()];
                // SAFETY: both hold m x n elements.
                unsafe {
                    super::blocks(
                        size,
                        side,
                        src.as_ptr(),
                        n as isize,
                        dst.as_mut_ptr(),
                        m as isize,
                        m,
                        n,
                        false,
                    )
                };
                for (i, j) in (0..m * n).map(|k| (k % m, k / m)) {
                    assert_eq!(dst[(i + j * m) * size..][..size], src[(i * n + j) * size..][..size]);
                }
            }
        }
    }
}
