//! Kernels by table: a backend looks up the kernel of an operation by the operation's type.
//!
//! The table fills itself: at the first miss it asks the operation for its kernels
//! ([`Primitive::kernels`]). A provider replaces rows by inserting after the defaults.

use crate::{
    aval::Aval,
    backend::{Backend, Operand, Out},
    op::{Op, Outs, Primitive},
};
use std::{
    any::{Any, TypeId},
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    ptr::NonNull,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicPtr, Ordering},
    },
};
use tenferro_tensor::{DType, Result, Tensor, UninitTensor};

/// A kernel of primitive `P` on backend `B`: parameters, backend, inputs, the shapes and dtypes that
/// [`Primitive::infer`] gave for the outputs, and where they go. It may rely on what the shape rule checked:
/// whoever calls a [`Kernel`] promises that it did.
pub type KernelFn<B, P> = fn(&P, &B, &mut [Operand<'_>], &[Aval], &mut Out<'_>) -> Result<Outs<Tensor>>;

/// A shortcut for an elementwise operation on whole tensors of one dtype and shape, which its result has, too:
/// without shape rule, placement check and destinations. `None` leaves the call to the kernel.
///
/// # Safety
/// The tensors have equal shapes and one dtype, which the kernel is listed for.
pub type Alike = unsafe fn(&dyn Op, &dyn Any, &[&Tensor]) -> Option<Result<Tensor>>;

/// An operand that is to come: what a kernel is prepared for.
#[derive(Clone, Copy, Debug)]
pub struct Coming<'a> {
    /// Dtype and extents.
    pub aval: &'a Aval,
    /// Strides in elements, unless it is compact.
    pub strides: Option<&'a [isize]>,
}

/// A kernel for operands of known dtypes, shapes and strides in host memory, for calls so small that finding
/// out about the operands would take longer than computing.
pub struct Prepared(Box<Addressed>);

type Addressed = dyn Fn(&[*const u8], *mut u8) + Send + Sync;

/// Most operands of a prepared kernel.
const MOST: usize = 6;

impl Prepared {
    /// `f`, which is given the addresses of operands and of a compact result.
    ///
    /// # Safety
    /// For operands and a result like those of [`Coming`] and the shape rule that it is made for, `f` reads no other
    /// elements and writes every element of the result.
    pub unsafe fn new(f: impl Fn(&[*const u8], *mut u8) + Send + Sync + 'static) -> Self {
        Prepared(Box::new(f))
    }

    /// Runs the kernel on operands whose first elements are at these addresses, with the result in a buffer.
    ///
    /// # Errors
    /// Those of the addresses.
    ///
    /// # Safety
    /// The operands are, in order, like the ones it was prepared for by [`Kernel::prepare`], and the buffer
    /// is like the result.
    #[inline]
    pub unsafe fn run(
        &self,
        x: impl Iterator<Item = Result<*const u8>>,
        mut y: UninitTensor,
    ) -> Result<Tensor> {
        let (mut at, mut n) = ([std::ptr::null(); MOST], 0);
        for (at, address) in at.iter_mut().zip(x) {
            *at = address?;
            n += 1;
        }
        (self.0)(&at[..n], y.as_mut_byte_ptr());
        // SAFETY: the kernel has written every element of a result like the buffer, as the caller promises,
        // which nobody else uses.
        Ok(unsafe { y.assume_init() })
    }
}

/// Prepares a kernel with one result; `None` if that is not worth it.
pub type Prepare = fn(&dyn Op, &[Coming<'_>], &Aval) -> Option<Prepared>;

/// Ways around a kernel, for small calls.
#[derive(Clone, Copy, Default)]
pub struct Shortcuts {
    /// For present values.
    pub alike: Option<Alike>,
    /// For programs.
    pub prepare: Option<Prepare>,
    /// The backend has other code of its own for this operation inside a fused chain.
    pub fuses: bool,
}

/// A kernel without its types: two function pointers, the second of which knows the type of the first.
#[derive(Clone, Copy)]
pub struct Kernel {
    kernel: fn(),
    call: Called,
    shortcuts: Shortcuts,
}

/// A call of the kernel given first.
type Called =
    unsafe fn(fn(), &dyn Op, &dyn Any, &mut [Operand<'_>], &[Aval], &mut Out<'_>) -> Result<Outs<Tensor>>;

impl Kernel {
    fn new<B: Backend, P: Primitive>(kernel: KernelFn<B, P>) -> Kernel {
        // SAFETY: function pointers are of one size, and `called` turns this one back before calling it.
        let kernel = unsafe { std::mem::transmute::<KernelFn<B, P>, fn()>(kernel) };
        Kernel { kernel, call: called::<B, P>, shortcuts: Shortcuts::default() }
    }

    /// The ways around it.
    #[inline]
    pub fn shortcuts(&self) -> Shortcuts {
        self.shortcuts
    }

    /// The kernel prepared for operands like these and a result like `y`, if that is worth it.
    pub fn prepare(&self, op: &dyn Op, x: &[Coming<'_>], y: &Aval) -> Option<Prepared> {
        self.shortcuts.prepare.filter(|_| x.len() <= MOST)?(op, x, y)
    }

    /// Call the kernel. `op` and `backend` are of the types it was listed for.
    ///
    /// # Safety
    /// `y` is what the shape rule of `op` gives for `x`, which the backend of the kernel can read, and the views
    /// of `out` are like `y`.
    #[inline]
    pub unsafe fn call(
        &self,
        op: &dyn Op,
        backend: &dyn Any,
        x: &mut [Operand<'_>],
        y: &[Aval],
        out: &mut Out<'_>,
    ) -> Result<Outs<Tensor>> {
        // SAFETY: `new` put the two pointers together.
        unsafe { (self.call)(self.kernel, op, backend, x, y, out) }
    }
}

/// # Safety
/// `kernel` is a `KernelFn<B, P>`.
unsafe fn called<B: Backend, P: Primitive>(
    kernel: fn(),
    op: &dyn Op,
    backend: &dyn Any,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    // SAFETY: the caller's.
    let kernel = unsafe { std::mem::transmute::<fn(), KernelFn<B, P>>(kernel) };
    let op = op.as_any().downcast_ref().expect("the row was found by the type of the operation");
    let backend = backend.downcast_ref().expect("the table belongs to this type of backend");
    kernel(op, backend, x, y, out)
}

/// A kernel and the set of dtypes it is for, one bit each.
#[derive(Clone, Copy)]
struct Row {
    kernel: Kernel,
    dtypes: u32,
}

fn bit(dtype: DType) -> u32 {
    1 << dtype as u32
}

/// Hash of a `TypeId`, which is already a hash.
#[derive(Default)]
struct IdHasher(u64);
impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = self.0.rotate_left(8) ^ b as u64;
        }
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}
type ById<V> = HashMap<TypeId, V, BuildHasherDefault<IdHasher>>;

/// What [`Primitive::kernels`] writes to. See [`on`](#method.on).
pub trait Kernels {
    /// The type of the backend this table belongs to.
    fn backend(&self) -> TypeId;
    /// Add or replace the row of an operation type.
    fn insert(&mut self, op: TypeId, kernel: Kernel, dtypes: &'static [DType]);
}

impl dyn Kernels + '_ {
    /// The kernel of `P` for these dtypes of its first input (of its output, if it has none). Does nothing if
    /// the table belongs to another backend, so an operation lists its kernels for every backend it knows.
    pub fn on<B: Backend, P: Primitive>(
        &mut self,
        dtypes: &'static [DType],
        kernel: KernelFn<B, P>,
    ) -> &mut Self {
        self.on_with(dtypes, kernel, Shortcuts::default())
    }

    /// As [`on`](#method.on), for a kernel with shortcuts.
    pub fn on_with<B: Backend, P: Primitive>(
        &mut self,
        dtypes: &'static [DType],
        kernel: KernelFn<B, P>,
        shortcuts: Shortcuts,
    ) -> &mut Self {
        if self.backend() == TypeId::of::<B>() {
            self.insert(TypeId::of::<P>(), Kernel { shortcuts, ..Kernel::new(kernel) }, dtypes);
        }
        self
    }
}

type Rows = ById<Option<Row>>;

struct Filling {
    backend: TypeId,
    rows: Rows,
}
impl Kernels for Filling {
    fn backend(&self) -> TypeId {
        self.backend
    }
    fn insert(&mut self, op: TypeId, kernel: Kernel, dtypes: &'static [DType]) {
        let dtypes = dtypes.iter().fold(0, |set, &d| set | bit(d));
        self.rows.insert(op, Some(Row { kernel, dtypes }));
    }
}

/// The kernels of one backend, looked up with one atomic load and replaced as a whole when a row is added.
///
/// Invariant: `current` points into a box of `all`. Every map that ever was current is kept, for a reader may
/// still be looking; there is one for each first use of an operation, or replacement.
pub struct KernelTable {
    backend: TypeId,
    current: AtomicPtr<Rows>,
    all: Mutex<Vec<NonNull<Rows>>>,
}

// SAFETY: the maps are owned by the table and only read until it is dropped; rows are `Send` and `Sync`.
unsafe impl Send for KernelTable {}
// SAFETY: as above.
unsafe impl Sync for KernelTable {}

impl KernelTable {
    /// A table for backend `B` with the rows that `fill` lists.
    pub fn new<B: Backend>(fill: impl Fn(&mut dyn Kernels)) -> Self {
        let current = AtomicPtr::new(std::ptr::null_mut());
        let table = KernelTable { backend: TypeId::of::<B>(), current, all: Mutex::default() };
        table.update(|filling| fill(filling));
        table
    }

    /// The kernel of `op` for operands of `dtype`.
    #[inline]
    pub fn get(&self, op: &dyn Op, dtype: DType) -> Option<Kernel> {
        let id = op.as_any().type_id();
        let row = match self.rows().get(&id) {
            Some(row) => *row,
            None => self.install(id, op),
        };
        row.filter(|r| r.dtypes & bit(dtype) != 0).map(|r| r.kernel)
    }

    #[inline]
    fn rows(&self) -> &Rows {
        // SAFETY: the current map is never null after `new`, and lives as long as the table.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    fn maps(&self) -> MutexGuard<'_, Vec<NonNull<Rows>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the current map one with what `fill` adds, which runs again if another thread came first.
    fn update(&self, fill: impl Fn(&mut Filling)) {
        loop {
            let old = self.current.load(Ordering::Acquire);
            // SAFETY: as in `rows`; null only in `new`.
            let rows = unsafe { old.as_ref() }.cloned().unwrap_or_default();
            let mut filling = Filling { backend: self.backend, rows };
            fill(&mut filling);
            let mut maps = self.maps();
            if self.current.load(Ordering::Relaxed) == old {
                let map = NonNull::from(Box::leak(Box::new(filling.rows)));
                maps.push(map);
                self.current.store(map.as_ptr(), Ordering::Release);
                return;
            }
        }
    }

    #[cold]
    fn install(&self, id: TypeId, op: &dyn Op) -> Option<Row> {
        self.update(|filling| {
            filling.rows.insert(id, None);
            op.install(filling);
        });
        self.rows().get(&id).copied().flatten()
    }

    /// Replace rows: what `fill` lists wins over what was there.
    pub fn replace(&self, fill: impl Fn(&mut dyn Kernels)) {
        self.update(|filling| fill(filling));
    }
}

impl Drop for KernelTable {
    fn drop(&mut self) {
        for map in self.maps().drain(..) {
            // SAFETY: `update` leaked it from a box, and nobody looks any more.
            drop(unsafe { Box::from_raw(map.as_ptr()) });
        }
    }
}
