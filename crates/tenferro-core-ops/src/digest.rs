//! A 128-bit structural hash: equal calls have equal digests, and unequal ones differ for all practical
//! purposes, so that common subexpressions and data-dependent extents can be named by it.

use std::hash::Hasher;

/// Two independent multiply-fold lanes (the mixing step of wyhash: 64x64 -> 128 bit product, folded).
#[derive(Clone, Copy, Debug)]
pub struct Digest(u64, u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03)
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let p = a as u128 * b as u128;
    p as u64 ^ (p >> 64) as u64
}

impl Digest {
    /// The digest so far.
    pub fn finish128(&self) -> u128 {
        let a = fold(self.0 ^ 0xe703_7ed1_a0b4_28db, self.1 | 1);
        let b = fold(self.1 ^ 0x8ebc_6af0_9c88_c6e3, self.0 | 1);
        (a as u128) << 64 | b as u128
    }
}

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        self.finish128() as u64
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
        self.write_u64(bytes.len() as u64);
    }
    fn write_u8(&mut self, n: u8) {
        self.write_u64(n as u64)
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n as u64)
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = fold(self.0 ^ n, 0xa076_1d64_78bd_642f);
        self.1 = fold(self.1.rotate_left(29) ^ n, 0x5895_76c3_5f6d_91a5);
    }
    fn write_u128(&mut self, n: u128) {
        self.write_u64(n as u64);
        self.write_u64((n >> 64) as u64);
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64)
    }
}
