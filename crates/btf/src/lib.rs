//! BTF, the type information of BPF objects and of the kernel: what the C types of keys, values, functions and
//! fields are.
//!
//! The format is the kernel's `Documentation/bpf/btf.rst` and `include/uapi/linux/btf.h`. The bytes are hostile:
//! [`Btf::parse`] checks every name and every type id once, and the queries bound their depth, because types may
//! refer to each other in circles.

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
mod value;
mod write;

pub use address::{address_bytes, prefix_bytes};
pub use error::{BtfError, ValueError, ValueProblem};
pub use ext::{BtfExt, CoreKind, CoreRelocation, ExtRecords, FuncRecord, LineRecord};
pub use special::{SpecialField, SpecialKind};
pub use value::Value;

/// Number of a type: its place in the type section, from 1; 0 is `void`.
pub type TypeId = u32;

/// Order of the bytes in multi-byte fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// The order of the machine this runs on.
    pub const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };
}

/// A name: offset in bytes into the string section, 0 for no name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Name(pub(crate) u32);

impl Name {
    /// Whether there is no name.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What an integer means beyond its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntEncoding {
    /// An unsigned number.
    Unsigned,
    /// A signed number.
    Signed,
    /// A character.
    Char,
    /// True or false.
    Bool,
}

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int {
    /// Name, such as `unsigned int`.
    pub name: Name,
    /// Bytes it takes.
    pub size: u32,
    /// What it means.
    pub encoding: IntEncoding,
    /// Offset of the value in bits; other than 0 only in bitfields of old compilers.
    pub bit_offset: u8,
    /// Bits of the value.
    pub bits: u8,
}

/// A member of a structure or union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Name; none for a nested anonymous structure or union.
    pub name: Name,
    /// Its type.
    pub ty: TypeId,
    /// Offset in bits from the start of the structure.
    pub bit_offset: u32,
    /// Width in bits of a bitfield, 0 for other members.
    pub bit_size: u8,
}

/// A structure or union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composite {
    /// Tag, none when anonymous.
    pub name: Name,
    /// Bytes it takes.
    pub size: u32,
    /// Members in order of declaration.
    pub members: Box<[Member]>,
}

/// A name of an enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enumerator {
    /// Name.
    pub name: Name,
    /// Value, sign- or zero-extended to 64 bits as the enumeration is signed or not.
    pub value: i64,
}

/// An enumeration, of kind `ENUM` or `ENUM64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enum {
    /// Tag, none when anonymous.
    pub name: Name,
    /// Bytes it takes.
    pub size: u32,
    /// Whether its values are signed.
    pub signed: bool,
    /// Whether it is of kind `ENUM64`.
    pub wide: bool,
    /// Its names in order of declaration.
    pub values: Box<[Enumerator]>,
}

/// A parameter of a function type; one of no name and type `void` at the end stands for `...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Name, if known.
    pub name: Name,
    /// Type.
    pub ty: TypeId,
}

/// How a function or variable is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolLinkage {
    /// Within the object.
    Static,
    /// Visible to other objects.
    Global,
    /// Defined elsewhere.
    Extern,
}

/// A variable in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionVar {
    /// Type id of the `VAR` (or, for externs, `FUNC`).
    pub ty: TypeId,
    /// Offset in bytes into the section.
    pub offset: u32,
    /// Bytes it takes.
    pub size: u32,
}

/// A section with the variables in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSection {
    /// Name of the section, such as `.rodata`.
    pub name: Name,
    /// Bytes it takes; compilers write 0 and leave it to the loader.
    pub size: u32,
    /// Its variables.
    pub vars: Box<[SectionVar]>,
}

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// `void`, type 0.
    Void,
    /// An integer.
    Int(Int),
    /// A pointer to a type.
    Ptr(TypeId),
    /// An array.
    Array {
        /// Type of its elements.
        element: TypeId,
        /// Type of its index.
        index: TypeId,
        /// Number of elements.
        count: u32,
    },
    /// A structure.
    Struct(Composite),
    /// A union.
    Union(Composite),
    /// An enumeration.
    Enum(Enum),
    /// A structure or union known by name only.
    Forward {
        /// Its tag.
        name: Name,
        /// Whether it is a union.
        union: bool,
    },
    /// Another name for a type.
    Typedef {
        /// The name.
        name: Name,
        /// The type.
        ty: TypeId,
    },
    /// A `volatile` type.
    Volatile(TypeId),
    /// A `const` type.
    Const(TypeId),
    /// A `restrict` pointer.
    Restrict(TypeId),
    /// A function.
    Func {
        /// Its name.
        name: Name,
        /// Its type, a [`Type::FuncProto`].
        proto: TypeId,
        /// Its linkage.
        linkage: SymbolLinkage,
    },
    /// The type of a function.
    FuncProto {
        /// What it returns.
        result: TypeId,
        /// What it takes.
        params: Box<[Param]>,
    },
    /// A variable.
    Var {
        /// Its name.
        name: Name,
        /// Its type.
        ty: TypeId,
        /// Its linkage.
        linkage: SymbolLinkage,
    },
    /// A section with variables.
    DataSection(DataSection),
    /// A floating-point number.
    Float {
        /// Its name.
        name: Name,
        /// Bytes it takes.
        size: u32,
    },
    /// `__attribute__((btf_decl_tag("...")))`
    DeclTag {
        /// Text of the tag.
        name: Name,
        /// What is tagged.
        ty: TypeId,
        /// Which member or parameter of it, -1 for the whole.
        component: i32,
    },
    /// `__attribute__((btf_type_tag("...")))`
    TypeTag {
        /// Text of the tag.
        name: Name,
        /// The type that is tagged.
        ty: TypeId,
    },
}

/// The types of an object or of a kernel.
#[derive(Clone, PartialEq)]
pub struct Btf {
    types: Vec<Type>,
    strings: Vec<u8>,
}

impl std::fmt::Debug for Btf {
    // A kernel has more than 100,000 types; nobody wants them in a message.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Btf").field("types", &self.types.len()).field("strings", &self.strings.len()).finish()
    }
}

impl Eq for Btf {}
