//! Who multiplies matrices: faer for floating point, plain loops for the rest.

#[cfg(feature = "cpu-faer")]
pub(crate) mod faer;
pub(crate) mod naive;

/// One factor of a product: the element (i, j) is at `ptr + i row + j col`, conjugated if `conj`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factor<T> {
    /// Address of the element (0, 0).
    pub(crate) ptr: *const T,
    /// Distance between rows, in elements; may be zero or negative.
    pub(crate) row: isize,
    /// Distance between columns, in elements; may be zero or negative.
    pub(crate) col: isize,
    /// Whether the product uses the complex conjugate of each element.
    pub(crate) conj: bool,
}

/// The result of a product: the element (i, j) is at `ptr + i row + j col`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<T> {
    /// Address of the element (0, 0).
    pub(crate) ptr: *mut T,
    /// Distance between rows, in elements; may be negative.
    pub(crate) row: isize,
    /// Distance between columns, in elements; may be negative.
    pub(crate) col: isize,
}
