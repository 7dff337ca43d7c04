//! Sums and quotients whose rounding error is kept (Dekker, "A floating-point technique for extending the
//! available precision", 1971; Knuth, "The Art of Computer Programming", vol. 2, 4.2.2).

/// `a + b` rounded, and what the rounding lost, for `|a| >= |b|` or `a = 0`.
#[inline(always)]
pub(super) fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    (s, b - (s - a))
}

/// `a + b` rounded, and what the rounding lost.
#[inline(always)]
pub(super) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let t = s - a;
    (s, (a - (s - t)) + (b - t))
}

/// The leading 26 bits: products of two such numbers, or of one and a remainder of 27 bits, are exact.
#[inline(always)]
fn head(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & !0x7ff_ffff)
}

/// `(a + da) / (b + db)` for `da` and `db` below the last place of `a` and `b`.
///
/// The head `q` of the quotient has an exact remainder, `a - q b`, and the remainder's own quotient need not
/// be accurate.
#[inline(always)]
pub(super) fn quotient((a, da): (f64, f64), (b, db): (f64, f64)) -> f64 {
    let inverse = 1.0 / b;
    let q = head(a * inverse);
    let b1 = head(b);
    let remainder = ((a - q * b1) - q * (b - b1)) + (da - q * db);
    q + remainder * inverse
}
