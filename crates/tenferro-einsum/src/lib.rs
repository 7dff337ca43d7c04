//! Einstein summation: notation, contraction planning and lowering
