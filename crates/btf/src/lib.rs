//! BTF, the type information of BPF objects and of the kernel: the C types of keys, values, functions and fields.
//!
//! The format is that of the kernel's `Documentation/bpf/btf.rst` and `include/uapi/linux/btf.h`. The bytes may be hostile:
//! [`Btf::parse`] checks every name and every type id once, and queries limit their depth, because types may have cyclic
//! references.

#![forbid(unsafe_code)]

mod address;
mod decode;
mod encode;
mod error;
mod ext;
mod number;
mod overlay;
mod parse;
mod query;
mod reader;
mod special;
mod types;
mod value;
mod write;
mod written;

pub use address::{address_bytes, prefix_bytes, prefix_form};
pub use error::{BtfError, ValueError, ValueProblem};
pub use ext::{BtfExt, CoreKind, CoreRelocation, ExtRecords, FuncRecord, LineRecord};
pub use special::{SpecialField, SpecialKind};
pub use types::{
    Btf, ByteOrder, Composite, DataSection, Enum, Enumerator, Int, IntEncoding, Member, Name, Param,
    SectionVar, SymbolLinkage, Type, TypeId,
};
pub use value::Value;
