//! Conformance suite, finite differences and oracle replay
