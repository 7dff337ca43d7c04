//! Differentiable dense linear algebra
