//! Shapes and ranks.

use std::{fmt, ops::Deref};

use crate::{
    Error, Result,
    dims::{self, Dims},
};

/// The extents of a tensor, axis 0 first; inline up to rank 6.
///
/// ```
/// use tenferro_tensor::Shape;
/// let shape: Shape = vec![2, 3].into();
/// assert_eq!(shape, Shape::from([2, 3]));
/// assert_eq!(shape.len(), 2); // a slice of extents
/// ```
#[derive(PartialEq, Eq, Hash, Default)]
pub struct Shape(pub(crate) Dims<usize>);

impl Clone for Shape {
    #[inline]
    fn clone(&self) -> Self {
        Shape(dims::copy(&self.0))
    }
}

impl Deref for Shape {
    type Target = [usize];
    #[inline]
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl AsRef<[usize]> for Shape {
    #[inline]
    fn as_ref(&self) -> &[usize] {
        &self.0
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Vec<usize>> for Shape {
    #[inline]
    fn from(v: Vec<usize>) -> Self {
        Shape(dims::from_slice(&v))
    }
}

impl From<&[usize]> for Shape {
    #[inline]
    fn from(v: &[usize]) -> Self {
        Shape(dims::from_slice(v))
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    #[inline]
    fn from(v: [usize; N]) -> Self {
        Shape(dims::from_slice(&v))
    }
}

impl<const N: usize> From<&[usize; N]> for Shape {
    #[inline]
    fn from(v: &[usize; N]) -> Self {
        Shape(dims::from_slice(v))
    }
}

impl From<&Vec<usize>> for Shape {
    #[inline]
    fn from(v: &Vec<usize>) -> Self {
        Shape(dims::from_slice(v))
    }
}

impl From<&Shape> for Shape {
    #[inline]
    fn from(v: &Shape) -> Self {
        v.clone()
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(iter: I) -> Self {
        Shape(iter.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a Shape {
    type Item = &'a usize;
    type IntoIter = std::slice::Iter<'a, usize>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// The number of elements of a shape.
///
/// # Errors
/// [`Error::Overflow`] when that many elements of the widest dtype (16 bytes) exceed `isize::MAX` bytes.
/// A zero extent makes the number 0 whatever the others are.
#[inline]
pub fn checked_len(op: &'static str, shape: &[usize]) -> Result<usize> {
    const MOST: usize = isize::MAX as usize / 16;
    let mut len = 1_usize;
    let mut overflow = false;
    for &extent in shape {
        let (product, wrapped) = len.overflowing_mul(extent);
        overflow |= wrapped;
        len = product;
    }
    if !overflow && len <= MOST {
        return Ok(len);
    }
    if shape.contains(&0) {
        return Ok(0);
    }
    Err(Error::overflow(
        op,
        "number of elements",
        format_args!("shape {shape:?}"),
        format_args!("at most {MOST}"),
    ))
}

/// Whether two shapes are equal; for few axes faster than comparing slices, which calls the C library.
#[inline]
pub fn same_shape(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(m, n)| m == n)
}

/// A rank known at compile time ([`Ranked`]) or not ([`DynRank`]).
pub trait Rank: Send + Sync + 'static {
    /// The shape as constructors take it.
    type Shape: AsRef<[usize]>;
    /// The rank, if the type fixes it.
    const RANK: Option<usize>;
}

/// The rank is a run-time value.
#[derive(Clone, Copy, Debug)]
pub struct DynRank;

/// The rank is `N`.
#[derive(Clone, Copy, Debug)]
pub struct Ranked<const N: usize>;

impl Rank for DynRank {
    type Shape = Shape;
    const RANK: Option<usize> = None;
}

impl<const N: usize> Rank for Ranked<N> {
    type Shape = [usize; N];
    const RANK: Option<usize> = Some(N);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_checks_overflow_unless_a_zero_extent_rules() {
        assert_eq!(checked_len("t", &[]).unwrap(), 1);
        assert_eq!(checked_len("t", &[3, 4]).unwrap(), 12);
        assert_eq!(checked_len("t", &[usize::MAX, usize::MAX, 0]).unwrap(), 0);
        for shape in [&[usize::MAX][..], &[1 << 32, 1 << 32], &[1 << 62, 4], &[isize::MAX as usize / 8]] {
            assert!(matches!(checked_len("t", shape), Err(Error::Overflow(_))), "{shape:?}");
        }
    }

    #[test]
    fn shapes_beyond_the_inline_rank_work() {
        let extents: Vec<usize> = (1..=9).collect();
        assert_eq!(Shape::from(&extents[..]), extents.iter().copied().collect::<Shape>());
        assert_eq!(format!("{:?}", Shape::from([2, 3])), "[2, 3]");
        assert_eq!(Shape::default().len(), 0);
    }
}
