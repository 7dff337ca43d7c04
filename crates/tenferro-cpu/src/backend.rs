//! The CPU backend: a kernel table and a thread budget behind a shared handle.

use crate::{
    kernels,
    threads::{Par, Threads},
};
use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use tenferro_core_ops::{
    Aval, Backend, EngineRegistration, Kernel, KernelTable, Kernels, Op, Operand, Out, Outs, Session, ops,
};
use tenferro_tensor::{DType, Error, Placement, Result, Tensor, TensorViewMut};

/// Runs operations on host memory. Clones share the kernels and the thread pool.
///
/// ```
/// use tenferro_cpu::CpuBackend;
///
/// let backend = CpuBackend::with_threads(2);
/// assert_eq!(backend.threads(), 2);
/// ```
#[derive(Clone)]
pub struct CpuBackend(Arc<Shared>);

struct Shared {
    table: KernelTable,
    threads: Threads,
    placement: Placement,
    nan_check: AtomicBool,
    /// Changes when kernels are replaced, so that programs look them up again.
    identity: AtomicUsize,
}

/// A number that was not given before.
fn new_identity() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Default for CpuBackend {
    fn default() -> Self {
        CpuBackend::new()
    }
}

impl CpuBackend {
    /// A backend with the default thread budget: `RAYON_NUM_THREADS`, or the cores available to this process.
    pub fn new() -> Self {
        Self::on(Threads::new())
    }

    /// A backend whose operations use at most `n` threads; 0 counts as 1.
    pub fn with_threads(n: usize) -> Self {
        Self::on(Threads::with_budget(NonZeroUsize::new(n).unwrap_or(NonZeroUsize::MIN)))
    }

    fn on(threads: Threads) -> Self {
        let table = KernelTable::new::<CpuBackend>(kernels::core);
        CpuBackend(Arc::new(Shared {
            table,
            threads,
            placement: Placement::host(),
            nan_check: AtomicBool::new(false),
            identity: AtomicUsize::new(new_identity()),
        }))
    }

    /// The thread budget.
    pub fn threads(&self) -> usize {
        self.0.threads.budget().get()
    }

    pub(crate) fn domain(&self) -> &Threads {
        &self.0.threads
    }

    /// Runs `f` with a session of this backend and hands back what it returns.
    pub fn with_backend_session<R>(&mut self, f: impl FnOnce(&mut Session<'_>) -> R) -> R {
        f(&mut Session::new(self))
    }

    /// Runs `f` with the parallelism that `work`, in bytes moved plus arithmetic operations, deserves: sequential
    /// on the caller's thread if it is little or the caller is a worker already, else in this backend's pool.
    pub fn parallel<R: Send>(&self, work: usize, f: impl FnOnce(Par) -> R + Send) -> R {
        self.0.threads.parallel(work, f)
    }

    /// Makes every operation whose result has a NaN an error that names it, on all handles of this backend. For
    /// finding where a NaN comes from: each result is read once more.
    ///
    /// ```
    /// use tenferro_cpu::CpuBackend;
    /// use tenferro_runtime::{Tensor, TensorOps};
    ///
    /// let mut cpu = CpuBackend::new();
    /// cpu.set_nan_check(true);
    /// let x = Tensor::from_vec_col_major([2], vec![1.0, -1.0])?;
    /// let error = x.log(&mut cpu).unwrap_err();
    /// assert_eq!(error.op(), "log");
    /// # Ok::<(), tenferro_tensor::Error>(())
    /// ```
    pub fn set_nan_check(&self, on: bool) {
        self.0.nan_check.store(on, Ordering::Relaxed);
    }

    pub(crate) fn checks_nan(&self) -> bool {
        self.0.nan_check.load(Ordering::Relaxed)
    }

    /// Replaces kernels: the rows that `fill` lists win over those that are there.
    pub fn replace_kernels(&self, fill: impl Fn(&mut dyn Kernels)) {
        self.0.table.replace(fill);
        self.0.identity.store(new_identity(), Ordering::Release);
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn placement(&self) -> &Placement {
        &self.0.placement
    }

    fn kernel(&self, op: &dyn Op, dtype: DType) -> Option<Kernel> {
        self.0.table.get(op, dtype)
    }

    unsafe fn run(
        &self,
        kernel: &Kernel,
        op: &dyn Op,
        x: &mut [Operand<'_>],
        y: &[Aval],
        out: &mut Out<'_>,
    ) -> Result<Outs<Tensor>> {
        for operand in x.iter() {
            if !operand.is_host() {
                let expected = "a host tensor (download it from its own backend)";
                return Err(Error::placement(op.name(), "operand", operand.placement(), expected));
            }
        }
        if let Out::Accumulate { alpha, .. } = out
            && kernels::accumulate::is_zero(y[0].dtype, *alpha)
        {
            return self.store(op.name(), Outs::new(), y, out);
        }
        let checked = self.checks_nan();
        if checked && let Some(chain) = op.chain() {
            // Step by step, so that the error names the one that made the NaN.
            return self.store(op.name(), kernels::nan::steps(self, chain, x)?, y, out);
        }
        // SAFETY: the caller's; the operands are in host memory.
        let results = unsafe { kernel.call(op, self, x, y, out) }?;
        if checked {
            kernels::nan::check(op.name(), &results, out)?;
        }
        if results.is_empty() || matches!(out, Out::New) {
            return Ok(results);
        }
        self.store(op.name(), results, y, out)
    }

    fn takes_shortcuts(&self) -> bool {
        !self.checks_nan()
    }

    fn upload(&self, host: &Tensor) -> Result<Tensor> {
        host.duplicate()
    }

    fn download(&self, device: &Tensor) -> Result<Tensor> {
        device.duplicate()
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn share(&self) -> Arc<dyn Backend> {
        Arc::new(self.clone())
    }

    fn identity(&self) -> usize {
        self.0.identity.load(Ordering::Acquire)
    }
}

impl CpuBackend {
    /// Puts the results of a kernel that does not write into views where they belong; none if all that is wanted is
    /// a multiple of what the view holds.
    fn store(
        &self,
        op: &'static str,
        results: Outs<Tensor>,
        y: &[Aval],
        out: &mut Out<'_>,
    ) -> Result<Outs<Tensor>> {
        let copy = |t: &Tensor, a: &Aval, view: TensorViewMut<'_>| {
            kernels::copy::copy(
                &ops::Copy,
                self,
                &mut [Operand::Read(t.into())],
                std::slice::from_ref(a),
                &mut Out::Into(vec![view]),
            )
        };
        if !results.is_empty() && results.len() != y.len() {
            return Err(Error::argument(op, "number of results", results.len(), y.len()));
        }
        // The views have the bounds of what an operation finds while it runs.
        let unlike = |(t, a): &(&Tensor, &Aval)| t.dtype() != a.dtype || t.shape() != &a.shape[..];
        if let Some((t, a)) = results.iter().zip(y).find(unlike) {
            let got = Aval::new(t.dtype(), t.shape().iter().copied());
            return Err(Error::shape(op, "result for a destination", got, a));
        }
        match std::mem::replace(out, Out::New) {
            Out::New => return Ok(results),
            Out::Into(views) => {
                for ((t, a), view) in results.iter().zip(y).zip(views) {
                    copy(t, a, view)?;
                }
            }
            Out::Accumulate { alpha, beta, view } => {
                kernels::accumulate::store(self, op, results.first(), alpha, beta, view)?
            }
        }
        Ok(Outs::new())
    }
}

/// The CPU session behind a backend session.
pub struct CpuExecSession<'a> {
    backend: &'a CpuBackend,
}

impl<'a> CpuExecSession<'a> {
    /// The backend.
    pub fn backend(&self) -> &'a CpuBackend {
        self.backend
    }
}

impl tenferro_core_ops::Target for CpuExecSession<'_> {
    fn backend(&self) -> &dyn Backend {
        self.backend
    }
}

/// Runs `f` with the CPU session behind `session`; `None` if it is a session of another backend.
pub fn with_cpu_exec_session<R>(
    session: &mut Session<'_>,
    f: impl FnOnce(&mut CpuExecSession<'_>) -> R,
) -> Option<R> {
    let backend = session.downcast::<CpuBackend>()?;
    Some(f(&mut CpuExecSession { backend }))
}

/// Gives direct calls of faer the parallelism of a session.
#[cfg(feature = "cpu-faer")]
pub trait FaerParallelismExt {
    /// Runs `f` with [`faer::Par::rayon`] of the session's thread budget inside its pool, or with
    /// [`faer::Par::Seq`] if the budget is one thread or the caller is a worker already.
    ///
    /// # Errors
    /// What `f` returns, and a session of another backend.
    fn with_faer_parallelism<R: Send>(&mut self, f: impl FnOnce(faer::Par) -> Result<R> + Send) -> Result<R>;
}

#[cfg(feature = "cpu-faer")]
impl FaerParallelismExt for Session<'_> {
    fn with_faer_parallelism<R: Send>(&mut self, f: impl FnOnce(faer::Par) -> Result<R> + Send) -> Result<R> {
        let Some(backend) = self.downcast::<CpuBackend>() else {
            return Err(Error::runtime_state(
                "with_faer_parallelism",
                "the session is not one of the CPU backend",
            ));
        };
        backend.parallel(usize::MAX, |par| f(par.into()))
    }
}

#[cfg(feature = "cpu-faer")]
impl FaerParallelismExt for CpuExecSession<'_> {
    fn with_faer_parallelism<R: Send>(&mut self, f: impl FnOnce(faer::Par) -> Result<R> + Send) -> Result<R> {
        self.backend.parallel(usize::MAX, |par| f(par.into()))
    }
}

/// This backend as an engine of a runtime.
///
/// # Errors
/// None; the signature is that of every backend's registration, and others can fail.
pub fn runtime_engine_registration(backend: &CpuBackend) -> Result<EngineRegistration> {
    Ok(EngineRegistration::new(Arc::new(backend.clone())))
}

#[cfg(all(test, feature = "cpu-faer"))]
mod tests {
    use super::*;

    #[test]
    fn a_session_gives_faer_its_threads_and_nested_calls_none() {
        for threads in [1, 3] {
            let mut cpu = CpuBackend::with_threads(threads);
            let inner = cpu.clone();
            cpu.with_backend_session(|session| {
                let seen = |par: faer::Par| (par.degree(), rayon::current_num_threads());
                let expected = (threads, if threads == 1 { rayon::current_num_threads() } else { threads });
                assert_eq!(session.with_faer_parallelism(|par| Ok(seen(par))).unwrap(), expected);
                let nested = |_| Session::new(&inner).with_faer_parallelism(|par| Ok(par.degree()));
                assert_eq!(session.with_faer_parallelism(nested).unwrap(), 1);
                let of_cpu = with_cpu_exec_session(session, |session| {
                    session.with_faer_parallelism(|par| Ok(par.degree()))
                });
                assert_eq!(of_cpu.unwrap().unwrap(), threads);
                let refused = |_| Err::<(), _>(Error::runtime_state("test", "refused"));
                assert!(session.with_faer_parallelism(refused).is_err());
            });
        }
    }
}
