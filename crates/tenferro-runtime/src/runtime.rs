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
    /// [`Error::Argument`] if there is a backend for the memory of this placement already.
    pub fn register_engine(&mut self, engine: EngineRegistration) -> Result<&mut Self> {
        let placement = engine.backend().placement();
        if let Some(old) = self.0.iter().find(|e| e.backend().placement().same_memory(placement)) {
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
            if !t.placement().same_memory(x[0].placement()) {
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
        let found = self.0.iter().find(|e| e.backend().placement().same_memory(placement));
        found.ok_or_else(|| {
            let all: Vec<String> = self.0.iter().map(|e| e.backend().placement().to_string()).collect();
            Error::placement(
                "run_compiled",
                "input 0",
                placement,
                format_args!("that of an engine: {}", all.join(", ")),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenferro_core_ops::{Aval, input};
    use tenferro_cpu::{CpuBackend, runtime_engine_registration};
    use tenferro_tensor::{BackendStorageHandle, DType, DeviceId, DeviceKind, MemoryKind, StorageBuffer};

    fn runtime() -> Runtime {
        let mut builder = Runtime::builder();
        builder.register_engine(runtime_engine_registration(&CpuBackend::with_threads(1)).unwrap()).unwrap();
        builder.build().unwrap()
    }

    fn on_device() -> Tensor {
        let device = Some(DeviceId { kind: DeviceKind::Gpu, ordinal: 0 });
        let placement = Placement { memory_kind: MemoryKind::Device, device, cpu_affinity: None };
        let buffer = StorageBuffer::Backend(Box::new(BackendStorageHandle::new_with_len(1, 2)));
        Tensor::from_buffer_col_major::<f64>([2], buffer, placement).unwrap()
    }

    #[test]
    fn a_placement_has_one_engine() {
        let engine = || runtime_engine_registration(&CpuBackend::with_threads(1)).unwrap();
        let mut builder = Runtime::builder();
        builder.register_engine(engine()).unwrap();
        assert!(matches!(builder.register_engine(engine()), Err(Error::Argument(_))));
        assert!(matches!(Runtime::builder().build(), Err(Error::State(_))));
    }

    #[test]
    fn inputs_choose_the_engine() {
        let (x, y) = (input(Aval::new(DType::F64, [2.into()])), input(Aval::new(DType::F64, [2.into()])));
        let p = Program::new(&[x.clone(), y.clone()], &[&x + &y]).unwrap();
        let host = Tensor::from_vec_col_major([2], vec![1.0, 2.0]).unwrap();
        let out = runtime().run_compiled(&p, &[&host, &host]).unwrap();
        assert_eq!(out[0].as_slice::<f64>().unwrap(), [2.0, 4.0]);
        for x in [[&host, &on_device()], [&on_device(), &on_device()]] {
            assert!(matches!(runtime().run_compiled(&p, &x), Err(Error::Placement(_))));
        }
    }

    #[test]
    fn without_inputs_the_first_engine_runs() {
        let one = Tensor::from_vec_col_major([1], vec![1.0]).unwrap();
        let p = Program::from_outputs(&[tenferro_core_ops::constant(one.into()).exp()]).unwrap();
        let out = runtime().run_compiled(&p, &[]).unwrap();
        assert!((out[0].as_slice::<f64>().unwrap()[0] - std::f64::consts::E).abs() < 1e-15);
        assert_eq!(runtime().backend().name(), "cpu");
    }
}
