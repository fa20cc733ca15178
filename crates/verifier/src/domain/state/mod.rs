//! The abstract state of the machine at one point of one path.

mod frame;
mod origin;
mod stack;
mod value;

pub use frame::{Frame, Lock, Reference, ReferenceKind, State};
pub use origin::{Mark, Origin};
pub(crate) use stack::parts;
pub use stack::{Byte, MAX_STACK, Slot, Stack};
pub use value::{
    Buffer, Dynptr, DynptrMemory, Lent, Link, Lost, MapRef, NumIterator, PacketRange, Pointer, Progress,
    Region, Scalar, Stale, Target, Value,
};
