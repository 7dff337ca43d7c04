//! What a tensor's elements are kept in, and where that is.
//!
//! Host elements are a [`HostBuffer`]: memory of the [pool](crate::pool) or an adopted vector. Elements of
//! other memories are a backend's own [`BackendStorage`]; nothing here reads them.

use std::{alloc, any::Any, fmt, marker::PhantomData, mem::ManuallyDrop, ptr::NonNull};

use crate::{Result, Scalar, pool};

/// The kind of memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Memory of a device, not addressable by the host.
    Device,
    /// Host memory locked for transfers.
    PinnedHost,
    /// Ordinary host memory.
    UnpinnedHost,
    /// Memory that migrates between host and device.
    Managed,
}

/// The kind of device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// The host's processor.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// Another, by name.
    Other(String),
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceId {
    /// Its kind.
    pub kind: DeviceKind,
    /// Its number among those of its kind.
    pub ordinal: usize,
}

/// The NUMA node that a host buffer belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CpuAffinity {
    /// The node's number.
    pub numa_node: usize,
}

/// Where a tensor's elements are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    /// The kind of memory.
    pub memory_kind: MemoryKind,
    /// The device, if it is the memory of one.
    pub device: Option<DeviceId>,
    /// The processors near it, if known.
    pub cpu_affinity: Option<CpuAffinity>,
}

impl Placement {
    /// Ordinary host memory.
    pub const fn host() -> Self {
        Placement { memory_kind: MemoryKind::UnpinnedHost, device: None, cpu_affinity: None }
    }
}

impl Placement {
    /// Whether both are memory of the same device. Which processors are near it does not matter, nor whether
    /// host memory is locked.
    pub fn same_memory(&self, o: &Placement) -> bool {
        let host = |p: &Placement| matches!(p.memory_kind, MemoryKind::UnpinnedHost | MemoryKind::PinnedHost);
        (self.memory_kind == o.memory_kind || host(self) && host(o)) && self.device == o.device
    }
}

impl Default for Placement {
    fn default() -> Self {
        Placement::host()
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = match self.memory_kind {
            MemoryKind::Device => "device memory",
            MemoryKind::PinnedHost => "pinned host memory",
            MemoryKind::UnpinnedHost => "host memory",
            MemoryKind::Managed => "managed memory",
        };
        f.write_str(memory)?;
        match &self.device {
            None => Ok(()),
            Some(DeviceId { kind: DeviceKind::Cpu, ordinal }) => write!(f, " of cpu {ordinal}"),
            Some(DeviceId { kind: DeviceKind::Gpu, ordinal }) => write!(f, " of gpu {ordinal}"),
            Some(DeviceId { kind: DeviceKind::Other(name), ordinal }) => write!(f, " of {name} {ordinal}"),
        }
    }
}

/// Elements of type `T` in a backend's memory. The backend that made it finds its own type again
/// through [`Any`].
pub trait BackendStorage<T>: Any + Send + Sync + fmt::Debug {
    /// The number of elements.
    fn len(&self) -> usize;

    /// No elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: 'static> dyn BackendStorage<T> {
    /// For a backend to downcast to its own storage.
    pub fn as_any(&self) -> &dyn Any {
        self
    }

    /// For a backend to downcast to its own storage, to write.
    pub fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// Names a buffer of a backend that keeps its buffers itself.
#[derive(Debug)]
pub struct BackendStorageHandle<T> {
    id: u64,
    len: usize,
    element: PhantomData<fn() -> T>,
}

impl<T> BackendStorageHandle<T> {
    /// The buffer `id` of `len` elements.
    pub fn new_with_len(id: u64, len: usize) -> Self {
        Self { id, len, element: PhantomData }
    }

    /// The backend's name for the buffer.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl<T: fmt::Debug + 'static> BackendStorage<T> for BackendStorageHandle<T> {
    fn len(&self) -> usize {
        self.len
    }
}

/// Elements to make a tensor of.
#[derive(Debug)]
pub enum StorageBuffer<T> {
    /// In host memory.
    Host(Vec<T>),
    /// In a backend's memory.
    Backend(Box<dyn BackendStorage<T>>),
}

impl<T: 'static> StorageBuffer<T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            StorageBuffer::Host(v) => v.len(),
            StorageBuffer::Backend(b) => b.len(),
        }
    }

    /// No elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The elements of a tensor.
#[derive(Debug)]
pub(crate) enum Storage {
    Host(HostBuffer),
    /// A `Box<dyn BackendStorage<T>>` of the tensor's element type.
    Device(Box<dyn Any + Send + Sync>),
}

/// Untyped host memory. It does not know how many elements are in it or whether they are initialised:
/// its tensor does.
pub(crate) struct HostBuffer {
    ptr: NonNull<u8>,
    origin: Origin,
}

enum Origin {
    /// Nothing to free.
    Empty,
    /// A buffer of the pool, of this size class.
    Pool(u8),
    /// The tail of the tensor's own block: [`HostBuffer::INLINE`] bytes that are freed with it.
    Inline,
    /// An adopted vector: its element's alignment, and its capacity in bytes.
    Vec { align_log2: u8, bytes: usize },
}

// SAFETY: the buffer owns its memory, which has no ties to a thread; access goes through `&` and `&mut`
// of the tensor around it. The elements are `Scalar`s, which are `Send + Sync`.
unsafe impl Send for HostBuffer {}
// SAFETY: as above.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    /// Uninitialised memory of the pool, aligned to [`pool::ALIGN`].
    #[inline]
    pub(crate) fn uninit(op: &'static str, bytes: usize) -> Result<Self> {
        if bytes == 0 {
            let aligned = std::num::NonZero::new(pool::ALIGN).expect("an alignment is not 0");
            return Ok(HostBuffer { ptr: NonNull::without_provenance(aligned), origin: Origin::Empty });
        }
        let (ptr, class) = pool::alloc(op, bytes)?;
        Ok(HostBuffer { ptr, origin: Origin::Pool(class) })
    }

    /// Up to this many bytes are kept in the tensor's own block, which halves the cost of a small tensor.
    pub(crate) const INLINE: usize = 128;

    /// The tail of a block.
    #[inline]
    pub(crate) fn inline(tail: NonNull<u8>) -> Self {
        HostBuffer { ptr: tail, origin: Origin::Inline }
    }

    /// Whether this is the tail of a block.
    #[inline]
    pub(crate) fn is_inline(&self) -> bool {
        matches!(self.origin, Origin::Inline)
    }

    /// Takes over a vector's memory.
    pub(crate) fn adopt<T: Scalar>(data: Vec<T>) -> Self {
        let mut data = ManuallyDrop::new(data);
        let ptr = NonNull::new(data.as_mut_ptr()).expect("a vector's pointer is not null").cast();
        let bytes = data.capacity() * size_of::<T>();
        let origin = match bytes {
            0 => Origin::Empty,
            _ => Origin::Vec { align_log2: align_of::<T>().ilog2() as u8, bytes },
        };
        HostBuffer { ptr, origin }
    }

    #[inline]
    pub(crate) fn ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    /// The memory as a vector of `len` elements again, if it came from a vector of such elements.
    ///
    /// # Safety
    /// The first `len` elements are initialised `T`s.
    pub(crate) unsafe fn into_vec<T: Scalar>(self, len: usize) -> Result<Vec<T>, Self> {
        let capacity = match self.origin {
            Origin::Vec { align_log2, bytes }
                if 1 << align_log2 == align_of::<T>() && bytes % size_of::<T>() == 0 =>
            {
                bytes / size_of::<T>()
            }
            _ => return Err(self),
        };
        debug_assert!(len <= capacity);
        let buffer = ManuallyDrop::new(self);
        // SAFETY: a vector with this alignment and capacity in bytes made the allocation, and the
        // `ManuallyDrop` passes its ownership on; the caller says that `len` elements are initialised.
        Ok(unsafe { Vec::from_raw_parts(buffer.ptr.as_ptr().cast(), len, capacity) })
    }
}

impl Drop for HostBuffer {
    #[inline]
    fn drop(&mut self) {
        match self.origin {
            Origin::Empty | Origin::Inline => {}
            // SAFETY: pointer and class come from `pool::alloc` in `uninit`; the buffer is its only owner.
            Origin::Pool(class) => unsafe { pool::free(self.ptr, class) },
            Origin::Vec { align_log2, bytes } => {
                // SAFETY: the vector that made the allocation used this size and alignment; scalars need
                // no drop of their own.
                unsafe {
                    let layout = alloc::Layout::from_size_align_unchecked(bytes, 1 << align_log2);
                    alloc::dealloc(self.ptr.as_ptr(), layout);
                }
            }
        }
    }
}

impl fmt::Debug for HostBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin {
            Origin::Empty => f.write_str("empty"),
            Origin::Pool(_) => f.write_str("pool"),
            Origin::Inline => f.write_str("inline"),
            Origin::Vec { .. } => f.write_str("vec"),
        }
    }
}
