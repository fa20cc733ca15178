//! Keys of the parts of a function.

use crate::ir::arena::key;

key! {
    /// A value.
    Value, "v"
}
key! {
    /// An instruction: an operation with its place and its result.
    Inst, "inst"
}
key! {
    /// A basic block.
    Block, "block"
}
key! {
    /// A function of a module.
    FuncId, "function "
}
