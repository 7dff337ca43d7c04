//! Where operations run: the interface of a backend, what its kernels are given, and the thread's scope.

use crate::{
    aval::Aval,
    kernels::Kernel,
    op::{Op, Outs},
};
use std::{
    any::Any,
    cell::Cell,
    ptr::NonNull,
    sync::{Arc, OnceLock},
};
use tenferro_tensor::{DType, Placement, Result, Tensor, TensorRead, TensorRef, TensorViewMut};

/// An input of a kernel.
#[derive(Debug)]
pub enum Operand<'a> {
    /// To be read.
    Read(TensorRef<'a>),
    /// A compact operand that nobody reads again: its buffer may be taken for the output.
    Own(Tensor),
}

impl Operand<'_> {
    /// The operand as something to read.
    #[inline]
    pub fn read(&self) -> TensorRef<'_> {
        match self {
            Operand::Read(r) => *r,
            Operand::Own(t) => TensorRef::from(t),
        }
    }

    /// Element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.read().dtype()
    }

    /// Extents.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.read().shape()
    }

    /// The tensor of an operand that nobody reads again; an empty one is left in its place.
    pub fn take(&mut self) -> Option<Tensor> {
        static EMPTY: OnceLock<Tensor> = OnceLock::new();
        if let Operand::Read(_) = self {
            return None;
        }
        let empty =
            EMPTY.get_or_init(|| Tensor::zeros(DType::Bool, &[0usize][..]).expect("no elements to allocate"));
        match std::mem::replace(self, Operand::Read(empty.into())) {
            Operand::Own(t) => Some(t),
            Operand::Read(_) => None,
        }
    }

    /// Whether the data are in host memory.
    #[inline]
    pub fn is_host(&self) -> bool {
        self.read().is_host()
    }

    /// Where the data are.
    #[inline]
    pub fn placement(&self) -> &Placement {
        self.read().placement()
    }
}

/// Where the outputs of a kernel go. A kernel that does not know how to write into a view returns new
/// tensors all the same, and the table copies them.
#[derive(Debug)]
pub enum Out<'a> {
    /// New tensors are returned.
    New,
    /// Written into these views, one per output; nothing is returned.
    Into(Vec<TensorViewMut<'a>>),
    /// `view = alpha * result + beta * view` for the one output.
    ///
    /// The factors are taken in the dtype of the output, and mean what they mean in BLAS whatever the operation:
    /// with `alpha = 0` the result does not count, with `beta = 0` the view is not read, so that a NaN or an
    /// infinity there is gone; and a factor of 1 multiplies nothing, so that an infinite complex number stays
    /// what it is. The one exception are complex matrix products, where a provider may multiply its sums by 1,
    /// and a view in which neither rows nor columns are contiguous: what is infinite then gets a NaN part.
    /// Integers take integer factors.
    Accumulate {
        /// Factor of the result.
        alpha: f64,
        /// Factor of what the view holds.
        beta: f64,
        /// The destination.
        view: TensorViewMut<'a>,
    },
}

/// A backend: a cheap handle, shared by all who run on it.
pub trait Backend: Any + Send + Sync {
    /// Its name in errors.
    fn name(&self) -> &'static str;
    /// Where its tensors live.
    fn placement(&self) -> &Placement;
    /// The kernel of an operation for operands of this dtype, if there is one.
    fn kernel(&self, op: &dyn Op, dtype: DType) -> Option<Kernel>;
    /// Run a kernel of this backend, after checking that every operand is placed here.
    ///
    /// # Safety
    /// `y` is what the shape rule of `op` gives for `x`, and the views of `out` are like `y`.
    unsafe fn run(
        &self,
        kernel: &Kernel,
        op: &dyn Op,
        x: &mut [Operand<'_>],
        y: &[Aval],
        out: &mut Out<'_>,
    ) -> Result<Outs<Tensor>>;
    /// Whether programs may call [`Prepared`](crate::Prepared) kernels instead of [`run`](Self::run): not while a
    /// backend watches its results.
    fn takes_shortcuts(&self) -> bool {
        true
    }
    /// Copy a host tensor to this backend.
    fn upload(&self, host: &Tensor) -> Result<Tensor>;
    /// Copy a tensor of this backend to the host.
    fn download(&self, device: &Tensor) -> Result<Tensor>;
    /// Wait for all work given so far.
    fn synchronize(&self) -> Result<()>;
    /// This handle behind a reference count.
    fn share(&self) -> Arc<dyn Backend>;
    /// A number that the clones of a handle share, and no other handle of its type ever has. It changes when
    /// kernels are replaced.
    fn identity(&self) -> usize;
}

/// What calls accept as `&mut backend`: a backend or a session of one.
pub trait Target {
    /// The backend that runs the call.
    fn backend(&self) -> &dyn Backend;
}

impl<B: Backend> Target for B {
    fn backend(&self) -> &dyn Backend {
        self
    }
}

/// A backend behind a borrow. Entering one costs nothing and hops no thread.
pub struct Session<'a>(&'a dyn Backend);

impl<'a> Session<'a> {
    /// A session of `backend`.
    pub fn new(backend: &'a dyn Backend) -> Self {
        Session(backend)
    }

    /// The backend, if it is a `B`.
    pub fn downcast<B: Backend>(&self) -> Option<&'a B> {
        (self.0 as &dyn Any).downcast_ref::<B>()
    }

    /// A compact copy of `x` on this backend.
    ///
    /// # Errors
    /// If `x` is placed elsewhere: nothing is transferred implicitly.
    pub fn to_contiguous_read(&mut self, x: TensorRead<'_>) -> Result<Tensor> {
        crate::execute::contiguous(self.0, (&x).into())
    }
}

impl Target for Session<'_> {
    fn backend(&self) -> &dyn Backend {
        self.0
    }
}

/// A backend as it is given to a runtime.
#[derive(Clone)]
pub struct EngineRegistration(Arc<dyn Backend>);

impl EngineRegistration {
    /// Wraps a backend.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        EngineRegistration(backend)
    }

    /// The backend.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.0
    }
}

thread_local! {
    static SCOPE: Cell<Option<NonNull<dyn Backend>>> = const { Cell::new(None) };
}

/// Runs `f` with `backend` as the one that present values run on, in this thread.
// Inlined always, as are its callers down to the user's: what is returned through memory is read back in other
// widths than it was written, before it is written there, and small operations wait longer for that than they work.
#[inline(always)]
pub fn with_backend<R>(backend: &dyn Backend, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<NonNull<dyn Backend>>);
    impl Drop for Restore {
        #[inline(always)]
        fn drop(&mut self) {
            SCOPE.set(self.0);
        }
    }
    // SAFETY: only the lifetime of the reference is erased. The pointer is read by `current` alone, while `f`
    // runs, and `backend` outlives this call; the guard restores the previous scope even when `f` panics.
    let erased = unsafe {
        std::mem::transmute::<NonNull<dyn Backend + '_>, NonNull<dyn Backend>>(NonNull::from(backend))
    };
    let _restore = Restore(SCOPE.replace(Some(erased)));
    f()
}

/// The backend of the current scope.
pub(crate) fn with_current<R>(f: impl FnOnce(Option<&dyn Backend>) -> R) -> R {
    // SAFETY: a pointer in the scope was made from a reference that lives until the scope is restored, and the
    // reference made here ends with `f`, inside that scope.
    f(SCOPE.get().map(|b| unsafe { &*b.as_ptr() }))
}
