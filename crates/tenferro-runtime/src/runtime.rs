//! Running programs where their inputs are.

use crate::Program;
use std::sync::Arc;
use tenferro_core_ops::{Backend, EngineRegistration};
use tenferro_tensor::{Error, Placement, Result, Tensor};

/// One backend per placement. Cloning shares them.
#[derive(Clone)]
pub struct Runtime(Arc<[EngineRegistration]>);

/// Collects the backends of a [`Runtime`].
#[derive(Default)]
pub struct RuntimeBuilder(Vec<EngineRegistration>);

impl RuntimeBuilder {
    /// Adds a backend. The first one also runs the programs that have no inputs.
    ///
    /// # Errors
    /// [`Error::Argument`] if there is a backend with this placement already.
    pub fn register_engine(&mut self, engine: EngineRegistration) -> Result<&mut Self> {
        let placement = engine.backend().placement();
        if let Some(old) = self.0.iter().find(|e| e.backend().placement() == placement) {
            let got = format_args!("a second engine, {}, for {placement}", engine.backend().name());
            let expected = format_args!("one; {} is registered", old.backend().name());
            return Err(Error::argument("register_engine", "engine", got, expected));
        }
        self.0.push(engine);
        Ok(self)
    }

    /// The runtime of the backends registered so far.
    ///
    /// # Errors
    /// [`Error::State`] if there are none.
    pub fn build(self) -> Result<Runtime> {
        if self.0.is_empty() {
            return Err(Error::runtime_state("build", "no engine is registered; call register_engine first"));
        }
        Ok(Runtime(self.0.into()))
    }
}

impl Runtime {
    /// A builder without backends.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// The outputs of `program` for the inputs `x`, on the backend whose placement they have.
    ///
    /// # Errors
    /// [`Error::Placement`] if the inputs have different placements, or one that no engine has; and as
    /// [`Program::run`].
    pub fn run_compiled(&self, program: &Program, x: &[&Tensor]) -> Result<Vec<Tensor>> {
        let engine = match x.first() {
            Some(t) => self.engine(t.placement())?,
            None => &self.0[0],
        };
        for (k, t) in x.iter().enumerate().skip(1) {
            if !same_memory(t.placement(), x[0].placement()) {
                let expected = format_args!("{}, the placement of input 0", x[0].placement());
                return Err(Error::placement("run_compiled", format!("input {k}"), t.placement(), expected));
            }
        }
        program.run_on(&**engine.backend(), x)
    }

    /// The backend that was registered first.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        self.0[0].backend()
    }

    fn engine(&self, placement: &Placement) -> Result<&EngineRegistration> {
        let found = self.0.iter().find(|e| same_memory(e.backend().placement(), placement));
        found.ok_or_else(|| {
            let all: Vec<String> = self.0.iter().map(|e| e.backend().placement().to_string()).collect();
            Error::placement("run_compiled", "input 0", placement, format_args!("that of an engine: {}", all.join(", ")))
        })
    }
}

/// Whether both are memory of the same device; which processors are near it does not matter.
fn same_memory(a: &Placement, b: &Placement) -> bool {
    a.memory_kind == b.memory_kind && a.device == b.device
}
