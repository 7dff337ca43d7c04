//! A chain of elementwise operations as one, so that a backend can run it tile by tile without writing the
//! intermediates to memory.

use super::expect_shape;
use crate::{
    aval::Aval,
    dim::{Dim, Extent, Fresh},
    op::{Op, Outs, Primitive},
    var::{Var, apply1},
};
use smallvec::SmallVec;
use std::{
    any::Any,
    fmt::{self, Debug},
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};
use tenferro_tensor::{Error, Result};

/// One operation of a chain. Argument `k` is input `k` of the chain or, from there on, step
/// `k - inputs`.
// Deriving equality would move the shared operation; the one below is what it would be.
#[allow(clippy::derived_hash_with_manual_eq)]
#[derive(Clone, Eq, Hash, Debug)]
pub struct Step {
    /// An elementwise operation with one output.
    pub op: Arc<dyn Op>,
    /// What it is applied to.
    pub x: SmallVec<[u32; 3]>,
}

impl PartialEq for Step {
    fn eq(&self, o: &Step) -> bool {
        *self.op == *o.op && self.x == o.x
    }
}

/// The outputs of some steps of a chain of elementwise operations.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fused {
    inputs: usize,
    steps: Arc<[Step]>,
    outputs: SmallVec<[u32; 2]>,
    /// What a backend made of the chain at its first run, which is why the chain does not change.
    translated: Translated,
}

impl Fused {
    /// A chain of `steps` on `inputs` operands; a step uses inputs and earlier steps. `outputs` are the steps whose
    /// results are outputs.
    pub fn new(inputs: usize, steps: Arc<[Step]>, outputs: SmallVec<[u32; 2]>) -> Self {
        Fused { inputs, steps, outputs, translated: Translated::default() }
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The steps whose results are outputs.
    pub fn outputs(&self) -> &[u32] {
        &self.outputs
    }

    /// The place for what a backend makes of this chain.
    pub fn translated(&self) -> &Translated {
        &self.translated
    }
}

/// A place for what a backend made of an operation, which has no part in its identity.
#[derive(Clone, Default)]
pub struct Translated(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Translated {
    /// What is here, or `make()`, if that is a `T`.
    pub fn get_or_init<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.get_or_init(|| Arc::new(make())).downcast_ref()
    }
}

impl PartialEq for Translated {
    fn eq(&self, _: &Translated) -> bool {
        true
    }
}
impl Eq for Translated {}
impl Hash for Translated {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
impl Debug for Translated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

impl Primitive for Fused {
    const NAME: &'static str = "fused";
    const ELEMENTWISE: bool = true;
    fn infer<D: Extent>(&self, x: &[&Aval<D>], fresh: Fresh) -> Result<Outs<Aval<D>>> {
        if x.len() != self.inputs || x.is_empty() {
            let expected = format_args!("{}, which is at least 1", self.inputs).to_string();
            return Err(Error::argument(Self::NAME, "number of inputs", x.len(), expected));
        }
        let mut values: Vec<Aval<D>> = x.iter().map(|a| (*a).clone()).collect();
        for a in &values[1..] {
            expect_shape(Self::NAME, "operands", a, &values[0])?;
        }
        for step in self.steps.iter() {
            let of = |&k: &u32| {
                values.get(k as usize).ok_or_else(|| {
                    let expected = format_args!("below {}", values.len()).to_string();
                    Error::argument(Self::NAME, "argument of a step", k, expected)
                })
            };
            let x: SmallVec<[&Aval<D>; 3]> = step.x.iter().map(of).collect::<Result<_>>()?;
            let mut y = D::infer_op(&*step.op, &x, fresh)?;
            drop(x);
            let results = y.len();
            match y.pop() {
                Some(y) if results == 1 => values.push(y),
                _ => return Err(Error::argument(Self::NAME, "results of a step", results, "1")),
            }
        }
        if self.outputs.is_empty() {
            return Err(Error::argument(Self::NAME, "number of outputs", 0, "at least 1"));
        }
        if let Some(s) = self.outputs.iter().find(|&&s| s as usize >= self.steps.len()) {
            let expected = format_args!("a step below {}", self.steps.len()).to_string();
            return Err(Error::argument(Self::NAME, "output", s, expected));
        }
        Ok(self.outputs.iter().map(|&s| values[self.inputs + s as usize].clone()).collect())
    }
    fn flops(&self, _: &[&Aval<Dim>], y: &[Aval<Dim>]) -> Option<Dim> {
        Some(y[0].count().mul(&Dim::Lit(self.steps.len())))
    }
    fn chain(&self) -> Option<&Fused> {
        Some(self)
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let mut values = x.to_vec();
        for step in self.steps.iter() {
            let x: SmallVec<[&Var; 3]> = step.x.iter().map(|&k| &values[k as usize]).collect();
            let y = apply1(&*step.op, &x);
            drop(x);
            values.push(y);
        }
        Some(self.outputs.iter().map(|&s| values[self.inputs + s as usize].clone()).collect())
    }
}
