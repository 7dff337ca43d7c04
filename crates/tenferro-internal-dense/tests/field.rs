//! Arithmetic at the ends of the range.

#![cfg(feature = "faer")]

use num_complex::Complex;
use tenferro_internal_dense::Field;

#[test]
fn complex_division_neither_overflows_nor_underflows() {
    let (big, small) = (Complex::new(1e300, 1e300), Complex::new(1e-300, -1e-300));
    assert_eq!(big.divide(big), Complex::new(1.0, 0.0));
    assert_eq!(small.divide(small), Complex::new(1.0, 0.0));
    assert_eq!(Complex::new(1.0, 2.0).divide(Complex::new(0.0, 1.0)), Complex::new(2.0, -1.0));
    assert_eq!(Complex::new(3e300, 4e300).abs(), 5e300);
}
