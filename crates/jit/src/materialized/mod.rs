//! Code for instructions whose operands are in their native registers. `defer` comes first, and selects instructions for values that are
//! not materialized.

pub(crate) mod alu;
pub(crate) mod branch;
pub(crate) mod memory;
