//! Objects of the kernel that programs are given pointers to: sockets, tracked connections, maps, the kernel's context. A program reads
//! their fields, by a table for each kind, and must give back those that it acquired.

mod kind;
mod types;

pub use kind::{ObjectField, ObjectKind, is_context_structure, is_structure};
pub use types::types;
