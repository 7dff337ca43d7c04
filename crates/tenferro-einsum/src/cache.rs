//! What calls leave behind for the next ones: plans by extents, and einsums by their text.

use crate::notation::{Fold, Notation};
use crate::order::Optimize;
use crate::plan::Plan;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use tenferro_tensor::Result;

/// Plans by notation, extents and optimizer, shared by threads.
///
/// A hit costs a hash of the key and one read lock that no one else holds for long. The cache holds at
/// most [`PlanCache::CAPACITY`] plans; beyond it, new plans replace the oldest of their shard.
pub struct PlanCache {
    shards: [Shard; SHARDS],
}

const SHARDS: usize = 64;
const WAYS: usize = 16;

/// A shard on its own cache lines, so that threads with different einsums do not meet.
#[repr(align(128))]
struct Shard {
    entries: RwLock<Vec<Entry>>,
    hits: AtomicU64,
    /// Also says which entry is replaced next.
    misses: AtomicU64,
}

struct Entry {
    hash: u64,
    notation: Notation,
    /// All shapes, one after the other.
    extents: SmallVec<[usize; 8]>,
    optimize: Optimize,
    plan: Arc<Plan>,
}

impl Entry {
    fn is_for(&self, notation: &Notation, shapes: &[&[usize]], optimize: &Optimize) -> bool {
        let mut rest = &self.extents[..];
        let mut inputs = notation.inputs().iter();
        // Ranks are compared apart: extents say nothing on where one shape ends.
        self.notation == *notation
            && inputs.len() == shapes.len()
            && shapes.iter().all(|shape| {
                let Some((head, tail)) = rest.split_at_checked(shape.len()) else { return false };
                rest = tail;
                head == *shape && inputs.next().is_some_and(|labels| labels.len() == shape.len())
            })
            && self.optimize == *optimize
    }
}

impl PlanCache {
    /// The largest number of plans held.
    pub const CAPACITY: usize = SHARDS * WAYS;

    /// An empty cache.
    pub const fn new() -> Self {
        PlanCache { shards: [const { Shard::new() }; SHARDS] }
    }

    /// The plan of `notation` for operands of these shapes, made if the cache lacks it.
    ///
    /// # Errors
    /// Those of [`Notation::extents`] and [`Plan::new`]; nothing is cached then.
    pub fn plan(&self, notation: &Notation, shapes: &[&[usize]], optimize: &Optimize) -> Result<Arc<Plan>> {
        let hash = hash(notation, shapes, optimize);
        let shard = &self.shards[(hash >> (64 - SHARDS.ilog2())) as usize];
        let found = |entries: &[Entry]| {
            let mut entries = entries.iter().filter(|entry| entry.hash == hash);
            entries.find(|entry| entry.is_for(notation, shapes, optimize)).map(|entry| entry.plan.clone())
        };
        if let Some(plan) = found(&shard.entries.read().unwrap_or_else(PoisonError::into_inner)) {
            shard.hits.fetch_add(1, Relaxed);
            return Ok(plan);
        }
        let extents = notation.extents(shapes)?;
        let weight = |label| extents.get(label).map_or(1.0, |extent| *extent as f64);
        // Planned without the lock: two threads may both plan, and the first to finish is kept.
        let plan = Arc::new(Plan::new(notation, weight, optimize)?);
        let mut entries = shard.entries.write().unwrap_or_else(PoisonError::into_inner);
        let misses = shard.misses.fetch_add(1, Relaxed);
        if let Some(plan) = found(&entries) {
            return Ok(plan);
        }
        let entry = Entry {
            hash,
            notation: notation.clone(),
            extents: shapes.iter().copied().flatten().copied().collect(),
            optimize: optimize.clone(),
            plan: plan.clone(),
        };
        if entries.len() < WAYS {
            entries.push(entry);
        } else {
            entries[misses as usize % WAYS] = entry;
        }
        Ok(plan)
    }

    /// How many lookups found their plan.
    pub fn hits(&self) -> u64 {
        self.shards.iter().map(|shard| shard.hits.load(Relaxed)).sum()
    }

    /// How many lookups had to plan.
    pub fn misses(&self) -> u64 {
        self.shards.iter().map(|shard| shard.misses.load(Relaxed)).sum()
    }
}

impl Default for PlanCache {
    fn default() -> Self {
        PlanCache::new()
    }
}

impl Shard {
    const fn new() -> Self {
        Shard { entries: RwLock::new(Vec::new()), hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }
}

impl Hasher for Fold {
    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.add(u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn hash(notation: &Notation, shapes: &[&[usize]], optimize: &Optimize) -> u64 {
    let mut fold = Fold::default();
    notation.hash(&mut fold);
    shapes.iter().copied().flatten().for_each(|extent| fold.write_usize(*extent));
    optimize.hash(&mut fold);
    fold.finish()
}

/// The last values that keys of one kind stood for, for one thread: a lookup takes no lock, and a key whose
/// place another one has taken is made again.
pub(crate) struct Recent<K, V> {
    places: Vec<Option<(K, V)>>,
}

impl<K, V: Clone> Recent<K, V> {
    const PLACES: usize = 256;

    pub(crate) const fn new() -> Self {
        Recent { places: Vec::new() }
    }

    /// The value of the key with this hash that `is` recognises.
    pub(crate) fn get(&self, hash: u64, is: impl FnOnce(&K) -> bool) -> Option<V> {
        match self.places.get(Self::place(hash))? {
            Some((key, value)) if is(key) => Some(value.clone()),
            _ => None,
        }
    }

    pub(crate) fn put(&mut self, hash: u64, key: K, value: V) {
        self.places.resize_with(Self::PLACES, || None);
        self.places[Self::place(hash)] = Some((key, value));
    }

    /// The upper bits of a product are the mixed ones.
    fn place(hash: u64) -> usize {
        (hash >> (64 - Self::PLACES.ilog2())) as usize
    }
}

/// A hash of bytes, eight at a time.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut fold = Fold::default();
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        fold.add(u64::from_le_bytes(word));
    }
    fold.add(bytes.len() as u64);
    fold.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_keeps_plans_by_notation_shapes_and_optimizer() {
        let cache = PlanCache::new();
        let product: Notation = "ij,jk->ik".parse().unwrap();
        let get = |shapes: &[&[usize]]| cache.plan(&product, shapes, &Optimize::Auto);
        let first = get(&[&[2, 3], &[3, 4]]).unwrap();
        assert!(Arc::ptr_eq(&first, &get(&[&[2, 3], &[3, 4]]).unwrap()));
        assert_eq!((cache.hits(), cache.misses()), (1, 1));
        assert!(!Arc::ptr_eq(&first, &get(&[&[2, 3], &[3, 5]]).unwrap()));
        cache.plan(&product, &[&[2, 3], &[3, 4]], &Optimize::Greedy).unwrap();
        assert_eq!((cache.hits(), cache.misses()), (1, 3));
        assert!(get(&[&[2], &[3, 3, 4]]).is_err());
        assert!(get(&[&[2, 3], &[5, 4]]).is_err());
        assert_eq!((cache.hits(), cache.misses()), (1, 3));
    }

    #[test]
    fn the_cache_is_bounded() {
        let cache = PlanCache::new();
        let sum: Notation = "i->".parse().unwrap();
        for extent in 0..4 * PlanCache::CAPACITY {
            cache.plan(&sum, &[&[extent]], &Optimize::Auto).unwrap();
        }
        let held = cache.shards.iter().map(|shard| shard.entries.read().unwrap().len()).sum::<usize>();
        assert!(held <= PlanCache::CAPACITY && held > PlanCache::CAPACITY / 2, "{held}");
    }

    #[test]
    fn a_taken_place_is_told_by_its_key() {
        let mut recent = Recent::<u64, &str>::new();
        assert_eq!(recent.get(1, |key| *key == 1), None);
        recent.put(1, 1, "one");
        assert_eq!(recent.get(1, |key| *key == 1), Some("one"));
        // Hashes with the same upper bits share a place.
        assert_eq!(recent.get(2, |key| *key == 2), None);
        recent.put(2, 2, "two");
        assert_eq!(recent.get(1, |key| *key == 1), None);
        assert_eq!(recent.get(2, |key| *key == 2), Some("two"));
    }
}
