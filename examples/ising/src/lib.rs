//! The square-lattice Ising model by a differentiable tensor renormalization group, beside Onsager's exact
//! solution: ln Z, and by differentiation the energy and the specific heat.

pub mod comparison;
pub mod csv;
pub mod exact;
pub mod options;
pub mod plot;
pub mod report;
pub mod temperatures;
pub mod trg;
