//! Analyses of programs: explanations of runs, coverage, symbolic execution, a solver.
//!
//! | module | what it does |
//! |---|---|
//! | [`explain`] | one run, recorded: the path, the values at its branches and their sources, the branch that decides |
//! | [`coverage`] | what engines count of a program: lines, functions and branches |
//! | [`symbolic`] | verified programs run over unknown inputs: an input for each side of a branch, two programs compared, properties proved |
//! | [`solver`] | conditions over numbers of a fixed width: terms, a bit-blaster, models |
#![forbid(unsafe_code)]

pub mod coverage;
pub mod explain;
pub mod solver;
pub mod symbolic;
