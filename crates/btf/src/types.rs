//! The types of BTF, as a section describes them.

/// Type id: the position in the type section, from 1; 0 is `void`.
pub type TypeId = u32;

/// Byte order of multi-byte fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// The byte order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };
}

/// A name: byte offset into the string section, 0 for no name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Name(pub(crate) u32);

impl Name {
    /// Whether the name is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Interpretation of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntEncoding {
    /// An unsigned number.
    Unsigned,
    /// A signed number.
    Signed,
    /// A character.
    Char,
    /// A truth value.
    Bool,
}

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int {
    /// Name, such as `unsigned int`.
    pub name: Name,
    /// Size in bytes.
    pub size: u32,
    /// Interpretation.
    pub encoding: IntEncoding,
    /// Offset of the value in bits; nonzero only in bitfields of old compilers.
    pub bit_offset: u8,
    /// Width of the value in bits.
    pub bits: u8,
}

/// A member of a structure or union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Name; empty for a nested anonymous structure or union.
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
    /// Tag, empty if anonymous.
    pub name: Name,
    /// Size in bytes.
    pub size: u32,
    /// Members in order of declaration.
    pub members: Box<[Member]>,
}

/// An enumerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enumerator {
    /// Name.
    pub name: Name,
    /// Value, sign- or zero-extended to 64 bits depending on the signedness of the enumeration.
    pub value: i64,
}

/// An enumeration, of kind `ENUM` or `ENUM64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enum {
    /// Tag, empty if anonymous.
    pub name: Name,
    /// Size in bytes.
    pub size: u32,
    /// Whether its values are signed.
    pub signed: bool,
    /// Whether its kind is `ENUM64`.
    pub wide: bool,
    /// Enumerators in order of declaration.
    pub values: Box<[Enumerator]>,
}

impl Enum {
    /// Whether its type has more bits than its kind keeps of an enumerator: clang writes `enum x : __u64` so, with the low 32 bits, and
    /// `enum x : unsigned long long` whole. Names mean no number then.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.size > 4 && !self.wide
    }
}

/// A parameter of a function type; an unnamed last one of type `void` stands for `...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Name, if known.
    pub name: Name,
    /// Type.
    pub ty: TypeId,
}

/// Linkage of a function or variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolLinkage {
    /// Internal to the object.
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
    /// Size in bytes.
    pub size: u32,
}

/// A section and its variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSection {
    /// Name of the section, such as `.rodata`.
    pub name: Name,
    /// Size in bytes; compilers write 0, and the loader fills it in.
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
    /// A forward declaration of a structure or union.
    Forward {
        /// Its tag.
        name: Name,
        /// Whether it is a union.
        union: bool,
    },
    /// An alias of a type.
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
        /// Return type.
        result: TypeId,
        /// Parameters.
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
        /// Size in bytes.
        size: u32,
    },
    /// `__attribute__((btf_decl_tag("...")))`
    DeclTag {
        /// Text of the tag.
        name: Name,
        /// The tagged type.
        ty: TypeId,
        /// Index of the tagged member or parameter, -1 for the type itself.
        component: i32,
    },
    /// `__attribute__((btf_type_tag("...")))`
    TypeTag {
        /// Text of the tag.
        name: Name,
        /// The tagged type.
        ty: TypeId,
    },
}

/// The types of an object or of a kernel.
#[derive(Clone, PartialEq)]
pub struct Btf {
    pub(crate) types: Vec<Type>,
    pub(crate) strings: Vec<u8>,
}

impl std::fmt::Debug for Btf {
    // A kernel has more than 100,000 types, too many for a message.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Btf").field("types", &self.types.len()).field("strings", &self.strings.len()).finish()
    }
}

impl Eq for Btf {}
