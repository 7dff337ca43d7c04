//! What a program keeps between runs: its bound form per backend, and states that no run is using.
//!
//! A backend is told apart by its type, which decides which kernels can be called, its identity, which changes
//! with its kernels, and its placement, where the constants are.

use super::{
    bind::bind,
    graph::Graph,
    lower::{Lowered, lower},
    run::State,
};
use std::{
    any::{Any, TypeId},
    sync::{Arc, Mutex, PoisonError},
};
use tenferro_core_ops::Backend;
use tenferro_tensor::{Placement, Result};

/// Most bound forms and idle states that are kept.
const MOST: usize = 64;

#[derive(Clone, PartialEq)]
struct Key {
    kind: TypeId,
    identity: usize,
    placement: Placement,
}

impl Key {
    fn is(&self, backend: &dyn Backend) -> bool {
        self.identity == backend.identity()
            && self.kind == (backend as &dyn Any).type_id()
            && self.placement == *backend.placement()
    }
}

/// A state and which backend it is for.
pub(super) struct Idle {
    key: Arc<Key>,
    pub(super) state: State,
}

#[derive(Default)]
struct Kept {
    idle: Vec<Idle>,
    bound: Vec<(Arc<Key>, Arc<Lowered>)>,
}

#[derive(Default)]
pub(super) struct Pool(Mutex<Kept>);

impl Pool {
    /// A state for `backend`; the lock is not held while one is made.
    pub(super) fn take(&self, graph: &Graph, backend: &dyn Backend) -> Result<Idle> {
        let known = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(k) = kept.idle.iter().rposition(|i| i.key.is(backend)) {
                return Ok(kept.idle.swap_remove(k));
            }
            kept.bound.iter().find(|(key, _)| key.is(backend)).cloned()
        };
        let (key, bound) = match known {
            Some(known) => known,
            None => self.bind(graph, backend)?,
        };
        Ok(Idle { key, state: State::new(bound) })
    }

    #[cold]
    fn bind(&self, graph: &Graph, backend: &dyn Backend) -> Result<(Arc<Key>, Arc<Lowered>)> {
        let (kind, placement) = ((backend as &dyn Any).type_id(), backend.placement().clone());
        let key = Arc::new(Key { kind, identity: backend.identity(), placement });
        let (bound, env) = bind(graph, backend)?;
        let bound = (key, Arc::new(lower(bound, env, backend)?));
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bound.len() == MOST {
            kept.bound.remove(0);
        }
        kept.bound.push(bound.clone());
        Ok(bound)
    }

    /// Gives back a state after a run that succeeded.
    pub(super) fn give(&self, idle: Idle) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.idle.len() == MOST {
            kept.idle.remove(0);
        }
        kept.idle.push(idle);
    }
}
