//! BTF: the types of an object or of a kernel, and values by them.
//!
//! [`Object::btf`](crate::Object) has those of an object, [`kernel::types`](crate::kernel::types) reads those of a kernel. A
//! [`Btf`] finds types by number and by name, and turns the bytes of a key or value into a [`Value`] and back.

pub use paceline_btf::{
    Btf, BtfError, ByteOrder, Composite, DataSection, Enum, Enumerator, Int, IntEncoding, Member, Name,
    Param, SectionVar, SpecialField, SpecialKind, SymbolLinkage, Type, TypeId, Value, ValueError,
    ValueProblem, address_bytes, prefix_bytes,
};
