//! Elementwise comparison.

use super::elementwise::{Tiled, apply2, unlisted};
use crate::loops::elementwise::Tile;
use tenferro_core_ops::{
    Ordered,
    ops::{ALL, Compare, Relation},
};
use tenferro_tensor::{DType, Scalar, dispatch, dispatch_ordered};

macro_rules! relation {
    ($dtype:expr, $dispatch:ident, $class:ident, |$a:ident, $b:ident| $f:expr $(, else $other:expr)?) => {{
        /// # Safety
        /// As for a [`Tile`].
        unsafe fn run<E: $class>(_: *const (), x: &[*const u8], y: *mut u8, n: usize) {
            // SAFETY: the caller's.
            unsafe { apply2(x, y, n, #[inline(always)] |$a: E, $b: E| $f) }
        }
        $dispatch!($dtype, E => run::<E> $(, else $other)?)
    }};
}

impl Tiled for Compare {
    const DTYPES: &'static [DType] = ALL;
    fn tile(&self, x: &[DType]) -> Tile {
        let dtype = x[0];
        match self.relation {
            Relation::Equal => relation!(dtype, dispatch, Scalar, |a, b| a == b),
            Relation::NotEqual => relation!(dtype, dispatch, Scalar, |a, b| a != b),
            Relation::Less => {
                relation!(dtype, dispatch_ordered, Ordered, |a, b| a.less(b), else unlisted(dtype))
            }
            Relation::LessEqual => {
                relation!(dtype, dispatch_ordered, Ordered, |a, b| a.less_equal(b), else unlisted(dtype))
            }
            Relation::Greater => {
                relation!(dtype, dispatch_ordered, Ordered, |a, b| b.less(a), else unlisted(dtype))
            }
            Relation::GreaterEqual => {
                relation!(dtype, dispatch_ordered, Ordered, |a, b| b.less_equal(a), else unlisted(dtype))
            }
        }
    }
}
