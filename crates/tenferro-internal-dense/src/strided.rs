//! Where the elements of a matrix are.

/// A matrix in memory: the element (i, j) is at `ptr + i row + j col`.
#[derive(Clone, Copy, Debug)]
pub struct Strided<P> {
    /// Address of the element (0, 0).
    pub ptr: P,
    /// Distance between rows, in elements; may be negative, and zero where nothing is written.
    pub row: isize,
    /// Distance between columns, in elements; may be negative, and zero where nothing is written.
    pub col: isize,
}

/// The result of a product.
pub type Target<T> = Strided<*mut T>;

/// One factor of a product: the element (i, j) is at `ptr + i row + j col`, conjugated if `conj`.
#[derive(Clone, Copy, Debug)]
pub struct Factor<T> {
    /// Address of the element (0, 0).
    pub ptr: *const T,
    /// Distance between rows, in elements; may be zero or negative.
    pub row: isize,
    /// Distance between columns, in elements; may be zero or negative.
    pub col: isize,
    /// Whether the product uses the complex conjugate of each element.
    pub conj: bool,
}
