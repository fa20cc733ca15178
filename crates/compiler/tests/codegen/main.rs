//! The code generator without a machine: random modules as instructions of a toy, against the interpreter of their form.

mod checker;
mod growth;
mod random;
mod toy;
