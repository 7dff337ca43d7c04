//! An operation made ready for operands of known dtypes and shapes, for calls that repeat: its shape rule is
//! applied once, and its kernel is looked for once.

use crate::{
    aval::Aval,
    backend::{Backend, Operand, Out},
    kernels::{Coming, Kernel, Prepared},
    op::Op,
};
use smallvec::SmallVec;
use std::{
    any::{Any, TypeId},
    sync::{Arc, OnceLock},
};
use tenferro_tensor::{Error, Result, Tensor, TensorRef, same_shape};

/// An operation of one result, with what its operands will be.
#[derive(Debug)]
pub struct Ready {
    op: Arc<dyn Op>,
    x: SmallVec<[Aval; 2]>,
    y: Aval,
    found: OnceLock<Box<Found>>,
}

/// For so many backends the kernel is kept; more, which come and go, look for it at each call.
const BACKENDS: usize = 8;

/// The kernel of a backend.
struct Found {
    backend: (TypeId, usize),
    kernel: Kernel,
    /// For compact operands.
    prepared: Option<Prepared>,
    /// That of the backend that came next.
    next: OnceLock<Box<Found>>,
}

impl std::fmt::Debug for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Found({}prepared)", if self.prepared.is_some() { "" } else { "not " })
    }
}

fn key(backend: &dyn Backend) -> (TypeId, usize) {
    ((backend as &dyn Any).type_id(), backend.identity())
}

impl Ready {
    /// `op` for operands like `x`.
    ///
    /// # Errors
    /// What the shape rule reports, and an operation of several results.
    pub fn new(op: &dyn Op, x: &[&Aval]) -> Result<Ready> {
        let mut y = op.infer_now(x)?;
        let results = y.len();
        match y.pop() {
            Some(y) if results == 1 => {
                let x = x.iter().map(|a| (*a).clone()).collect();
                Ok(Ready { op: op.share(), x, y, found: OnceLock::new() })
            }
            _ => Err(Error::argument(op.name(), "results", results, "1")),
        }
    }

    /// Dtype and shape of the result.
    pub fn output(&self) -> &Aval {
        &self.y
    }

    /// The result for operands that are like those it was made for; `None` if the backend has no kernel for
    /// the operation, which is then to be decomposed.
    ///
    /// # Errors
    /// Operands of another number, dtype or shape; what the kernel reports.
    pub fn run(&self, backend: &dyn Backend, x: &[TensorRef<'_>]) -> Result<Option<Tensor>> {
        let alike = |(r, a): (&TensorRef<'_>, &Aval)| r.dtype() == a.dtype && same_shape(r.shape(), &a.shape);
        if x.len() != self.x.len() || !x.iter().zip(&self.x).all(alike) {
            return Err(self.unlike(x));
        }
        let looked;
        let (kernel, prepared) = match self.found(backend) {
            Some(found) => (&found.kernel, found.prepared.as_ref()),
            None => {
                let Some(kernel) = self.kernel(backend) else { return Ok(None) };
                looked = kernel;
                (&looked, None)
            }
        };
        let compact = || x.iter().all(|r| r.strides().is_none() && r.is_host());
        match prepared {
            Some(prepared) if backend.takes_shortcuts() && compact() => {
                let to = Tensor::uninit(self.y.dtype, &self.y.shape)?;
                // SAFETY: the operands have the dtypes and shapes that the kernel was prepared for, are
                // compact and in host memory; the result is as the shape rule says.
                unsafe { prepared.run(x.iter().map(TensorRef::host_byte_ptr), to) }.map(Some)
            }
            _ => self.call(backend, kernel, x).map(Some),
        }
    }

    /// The kernel for a backend, looked for when it first comes; `None` if there is none or no room.
    #[inline]
    fn found(&self, backend: &dyn Backend) -> Option<&Found> {
        let key = key(backend);
        let mut at = &self.found;
        for _ in 0..BACKENDS {
            let found = match at.get() {
                Some(found) => found,
                None => {
                    let kernel = self.kernel(backend)?;
                    let prepared = self.prepare(&kernel);
                    // Another backend may be first.
                    at.get_or_init(|| {
                        Box::new(Found { backend: key, kernel, prepared, next: OnceLock::new() })
                    })
                }
            };
            if found.backend == key {
                return Some(found);
            }
            at = &found.next;
        }
        None
    }

    fn kernel(&self, backend: &dyn Backend) -> Option<Kernel> {
        backend.kernel(&*self.op, self.x.first().unwrap_or(&self.y).dtype)
    }

    fn prepare(&self, kernel: &Kernel) -> Option<Prepared> {
        let coming: SmallVec<[Coming<'_>; 2]> =
            self.x.iter().map(|aval| Coming { aval, strides: None }).collect();
        kernel.prepare(&*self.op, &coming, &self.y)
    }

    fn call(&self, backend: &dyn Backend, kernel: &Kernel, x: &[TensorRef<'_>]) -> Result<Tensor> {
        let mut operands: SmallVec<[Operand<'_>; 2]> = x.iter().map(|r| Operand::Read(*r)).collect();
        let y = std::slice::from_ref(&self.y);
        // SAFETY: `y` is what the shape rule gave for operands of these dtypes and shapes.
        let mut results = unsafe { backend.run(kernel, &*self.op, &mut operands, y, &mut Out::New) }?;
        Ok(results.pop().expect("the operation has one result"))
    }

    #[cold]
    fn unlike(&self, x: &[TensorRef<'_>]) -> Error {
        let list = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join(", ");
        let got = list(&mut x.iter().map(|r| Aval::new(r.dtype(), r.shape().iter().copied()).to_string()));
        Error::shape(self.op.name(), "operands", got, list(&mut self.x.iter().map(Aval::to_string)))
    }
}
