//! The examples of the documents in the root, compiled and run with those of the documentation.

#[doc = include_str!("../../../README.md")]
struct Readme;

#[doc = include_str!("../../../CONTRIBUTING.md")]
struct Contributing;

#[doc = include_str!("../../../docs/design/0007-blas.md")]
struct Blas;
