//! The CPU backend: sessions, threads, loop planner, kernels and dense providers
