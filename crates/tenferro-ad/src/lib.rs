//! Automatic differentiation of eager and traced tensors
