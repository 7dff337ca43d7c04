//! Direct, eager and traced execution of tensor operations
