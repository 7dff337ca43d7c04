//! Kernels by table: a backend looks up the kernel of an operation by the operation's type.
//!
//! The table fills itself: at the first miss it asks the operation for its kernels
//! ([`Primitive::kernels`]). A provider replaces rows by inserting after the defaults.

use crate::{
    aval::Aval,
    backend::{Backend, Operand, Out},
    op::{Op, Outs, Primitive},
};
use arc_swap::ArcSwap;
use std::{
    any::{Any, TypeId},
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::Arc,
};
use tenferro_tensor::{DType, Result, Tensor};

/// A kernel of primitive `P` on backend `B`: parameters, backend, inputs, the shapes and dtypes that
/// [`Primitive::infer`] gave for the outputs, and where they go.
pub type KernelFn<B, P> = fn(&P, &B, &mut [Operand<'_>], &[Aval], &mut Out<'_>) -> Result<Outs<Tensor>>;

type Erased = dyn Fn(&dyn Op, &dyn Any, &mut [Operand<'_>], &[Aval], &mut Out<'_>) -> Result<Outs<Tensor>>
    + Send
    + Sync;

/// A kernel without its types.
#[derive(Clone)]
pub struct Kernel(Arc<Erased>);

impl Kernel {
    /// Call the kernel. `op` and `backend` are of the types it was listed for.
    pub fn call(
        &self,
        op: &dyn Op,
        backend: &dyn Any,
        x: &mut [Operand<'_>],
        y: &[Aval],
        out: &mut Out<'_>,
    ) -> Result<Outs<Tensor>> {
        (self.0)(op, backend, x, y, out)
    }
}

#[derive(Clone)]
struct Row {
    kernel: Kernel,
    dtypes: &'static [DType],
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
        if self.backend() == TypeId::of::<B>() {
            let erased =
                move |op: &dyn Op, b: &dyn Any, x: &mut [Operand<'_>], y: &[Aval], out: &mut Out<'_>| {
                    let op =
                        op.as_any().downcast_ref().expect("the row was found by the type of the operation");
                    let b = b.downcast_ref().expect("the table belongs to this type of backend");
                    kernel(op, b, x, y, out)
                };
            self.insert(TypeId::of::<P>(), Kernel(Arc::new(erased)), dtypes);
        }
        self
    }
}

struct Rows {
    backend: TypeId,
    rows: ById<Option<Row>>,
}
impl Kernels for Rows {
    fn backend(&self) -> TypeId {
        self.backend
    }
    fn insert(&mut self, op: TypeId, kernel: Kernel, dtypes: &'static [DType]) {
        self.rows.insert(op, Some(Row { kernel, dtypes }));
    }
}

/// The kernels of one backend, read without locking and replaced as a whole when a row is added.
pub struct KernelTable {
    backend: TypeId,
    rows: ArcSwap<ById<Option<Row>>>,
}

impl KernelTable {
    /// A table for backend `B` with the rows that `fill` lists.
    pub fn new<B: Backend>(fill: impl FnOnce(&mut dyn Kernels)) -> Self {
        let mut rows = Rows { backend: TypeId::of::<B>(), rows: ById::default() };
        fill(&mut rows);
        KernelTable { backend: rows.backend, rows: ArcSwap::from_pointee(rows.rows) }
    }

    /// The kernel of `op` for operands of `dtype`.
    pub fn get(&self, op: &dyn Op, dtype: DType) -> Option<Kernel> {
        let id = op.as_any().type_id();
        let rows = self.rows.load();
        let row = match rows.get(&id) {
            Some(row) => row.clone(),
            None => self.install(id, op),
        };
        row.filter(|r| r.dtypes.contains(&dtype)).map(|r| r.kernel)
    }

    #[cold]
    fn install(&self, id: TypeId, op: &dyn Op) -> Option<Row> {
        self.rows.rcu(|old| {
            let mut rows = Rows { backend: self.backend, rows: (**old).clone() };
            rows.rows.insert(id, None);
            op.install(&mut rows);
            rows.rows
        });
        self.rows.load().get(&id).cloned().flatten()
    }

    /// Replace rows: what `fill` lists wins over what was there.
    pub fn replace(&self, fill: impl Fn(&mut dyn Kernels)) {
        self.rows.rcu(|old| {
            let mut rows = Rows { backend: self.backend, rows: (**old).clone() };
            fill(&mut rows);
            rows.rows
        });
    }
}
