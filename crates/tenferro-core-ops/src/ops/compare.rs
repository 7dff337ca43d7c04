//! Elementwise comparison.

use super::{ALL, ORDERED, expect, expect_same};
use crate::{
    aval::Aval,
    dim::{Extent, Fresh},
    op::{Outs, Primitive, Saves, Tangent},
    var::{Var, apply1},
};
use smallvec::smallvec;
use tenferro_tensor::{DType, Result};

/// How two numbers compare. A comparison with NaN is false, except that NaN is not equal to anything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Relation {
    /// `x == y`
    Equal,
    /// `x != y`
    NotEqual,
    /// `x < y`
    Less,
    /// `x <= y`
    LessEqual,
    /// `x > y`
    Greater,
    /// `x >= y`
    GreaterEqual,
}

/// Whether a relation holds, elementwise. Complex numbers are only equal or not.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Compare {
    /// The relation.
    pub relation: Relation,
}

impl Primitive for Compare {
    const NAME: &'static str = "compare";
    const ELEMENTWISE: bool = true;
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        let equality = matches!(self.relation, Relation::Equal | Relation::NotEqual);
        let name = self.relation.name();
        expect(name, x, 2, if equality { ALL } else { ORDERED })?;
        expect_same(name, x)?;
        Ok(smallvec![x[0].with_dtype(DType::Bool)])
    }
    fn jvp(&self, _: &[Var], _: &[Var], _: &[Tangent]) -> Outs<Tangent> {
        smallvec![None]
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
}

macro_rules! relations {
    ($($(#[$doc:meta])* $m:ident $relation:ident;)*) => {
        impl Relation {
            fn name(self) -> &'static str {
                match self {
                    $(Relation::$relation => stringify!($m),)*
                }
            }
        }

        impl Var { $(
            $(#[$doc])*
            ///
            /// The operands are promoted to a common dtype and broadcast to a common shape.
            pub fn $m(&self, o: &Var) -> Var {
                let op = Compare { relation: Relation::$relation };
                match crate::surface::align(stringify!($m), self, o) {
                    Ok((a, b)) => apply1(&op, &[&a, &b]),
                    Err(e) => Var::Failed(e),
                }
            }
        )* }
    };
}
relations! {
    /// Whether `x == y`, elementwise.
    equal Equal;
    /// Whether `x != y`, elementwise.
    not_equal NotEqual;
    /// Whether `x < y`, elementwise.
    less Less;
    /// Whether `x <= y`, elementwise.
    less_equal LessEqual;
    /// Whether `x > y`, elementwise.
    greater Greater;
    /// Whether `x >= y`, elementwise.
    greater_equal GreaterEqual;
}
