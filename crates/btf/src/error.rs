//! Errors of BTF, and of values that do not fit its types.

use crate::types::TypeId;

/// An error in BTF.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BtfError {
    /// The bytes end within a record.
    #[error("BTF ends within a record at offset {offset:#x}")]
    Truncated {
        /// Offset in bytes into the section.
        offset: usize,
    },
    /// The magic number is wrong, in both byte orders.
    #[error("BTF has magic {0:#06x}, not 0xeb9f")]
    Magic(u16),
    /// An unknown version.
    #[error("BTF has version {0}, not 1")]
    Version(u8),
    /// Types or strings are out of bounds according to the header.
    #[error("BTF header puts the {part} at {offset:#x}..{end:#x} of {len:#x} bytes", end = u64::from(*.offset) + u64::from(*.size))]
    Bounds {
        /// The part.
        part: &'static str,
        /// Its offset after the header.
        offset: u32,
        /// Its size in bytes.
        size: u32,
        /// Number of bytes after the header.
        len: usize,
    },
    /// The strings do not begin and end with a zero byte.
    #[error("BTF strings do not begin and end with a zero byte")]
    Strings,
    /// A name is out of bounds or not UTF-8.
    #[error("BTF type {ty} has a name at string offset {name:#x} that is not valid UTF-8")]
    NameOutOfRange {
        /// The type.
        ty: TypeId,
        /// The offset.
        name: u32,
    },
    /// An unknown kind.
    #[error("BTF type {ty} is of unknown kind {kind}")]
    Kind {
        /// The type.
        ty: TypeId,
        /// Its kind.
        kind: u32,
    },
    /// An invalid size for the kind.
    #[error("BTF type {ty} has an impossible size or width")]
    Width {
        /// The type.
        ty: TypeId,
    },
    /// An unknown linkage.
    #[error("BTF type {ty} has unknown linkage {linkage}")]
    Linkage {
        /// The type.
        ty: TypeId,
        /// The linkage.
        linkage: u32,
    },
    /// A reference to a nonexistent type.
    #[error("BTF type {ty} refers to type {target}, the last is {last}")]
    TypeOutOfRange {
        /// The referring type.
        ty: TypeId,
        /// The referenced type.
        target: TypeId,
        /// The last type id.
        last: TypeId,
    },
    /// The type does not exist.
    #[error("no BTF type {0}")]
    NoType(TypeId),
    /// Types with cyclic references, or nested too deep.
    #[error("BTF type {0} is nested too deep")]
    TooDeep(TypeId),
    /// A type without a size, such as `void` or a function.
    #[error("BTF type {0} has no size")]
    NoSize(TypeId),
    /// A size that does not fit 64 bits.
    #[error("the size of BTF type {0} overflows")]
    SizeOverflow(TypeId),
    /// A record size in `.BTF.ext` below the format's.
    #[error(".BTF.ext has {part} records of {size} bytes")]
    RecordSize {
        /// Kind of the records.
        part: &'static str,
        /// The record size in bytes.
        size: u32,
    },
    /// An unknown CO-RE relocation kind.
    #[error("unknown CO-RE relocation kind {0}")]
    CoreKind(u32),
}

/// A value that does not fit its type, with the position in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    /// Position in the value, such as `.ports[3].proto`; empty for the whole.
    pub path: String,
    /// The error.
    pub problem: Box<ValueProblem>,
}

impl std::fmt::Display for ValueError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for ValueError {}

/// Reasons why a value does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueProblem {
    /// The type is malformed.
    #[error(transparent)]
    Btf(#[from] BtfError),
    /// The number of bytes differs from the type's size.
    #[error("the type takes {expected} bytes, there are {found}")]
    Length {
        /// Size of the type in bytes.
        expected: u64,
        /// Number of bytes given.
        found: usize,
    },
    /// The type is larger than the maximum size of a value.
    #[error("the type takes {0} bytes, more than a value may have")]
    TooLarge(u64),
    /// The type has more parts than the maximum.
    #[error("the type has more than {0} parts")]
    TooManyParts(usize),
    /// A number that is out of the type's range.
    #[error("{value} does not fit into `{ty}` ({min} to {max})")]
    Range {
        /// The number.
        value: String,
        /// Name of the type.
        ty: String,
        /// Minimum of the type.
        min: i128,
        /// Maximum of the type.
        max: u128,
    },
    /// A value of the wrong kind.
    #[error("`{ty}` takes {expected}, not {found}")]
    Mismatch {
        /// Name of the type.
        ty: String,
        /// The expected kind.
        expected: &'static str,
        /// The kind given, or the text.
        found: String,
    },
    /// The name of an enumerator of which the types do not have the whole number ([`Enum::is_cut`](crate::Enum::is_cut)).
    #[error(
        "the types have only the low 32 bits of `{text}` of `{ty}`, which has 64: give the number (clang keeps all for `enum : unsigned long long`)"
    )]
    CutEnumerator {
        /// The text.
        text: String,
        /// Name of the type.
        ty: String,
    },
    /// A text that is neither a number nor a name of the enumeration.
    #[error("`{text}` is not a value of `{ty}`{}", suggest(.suggestion))]
    NoEnumerator {
        /// The text.
        text: String,
        /// Name of the type.
        ty: String,
        /// The closest name.
        suggestion: Option<String>,
    },
    /// A member that the structure does not have.
    #[error("`{ty}` has no member `{name}`{}", suggest(.suggestion))]
    NoMember {
        /// The member.
        name: String,
        /// Name of the structure.
        ty: String,
        /// The closest name.
        suggestion: Option<String>,
    },
    /// A member given twice.
    #[error("member `{0}` is given twice")]
    Repeated(String),
    /// Members of a union that differ in shared bytes.
    #[error("members `{first}` and `{second}` of a union disagree about the same bytes")]
    Disagreement {
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// More elements or characters than the array has.
    #[error("{found} elements do not fit into an array of {count}")]
    Count {
        /// Number of elements of the array.
        count: u32,
        /// Number of elements given.
        found: usize,
    },
    /// A type without values.
    #[error("`{0}` has no values")]
    NoValue(String),
}

fn suggest(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|s| format!("; did you mean `{s}`?")).unwrap_or_default()
}
