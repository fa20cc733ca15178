//! What can be wrong with BTF, and with values that are to fit its types.

use crate::TypeId;

/// What is wrong with BTF.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BtfError {
    /// The bytes end within a record.
    #[error("BTF ends within a record at offset {offset:#x}")]
    Truncated {
        /// Offset in bytes into the section.
        offset: usize,
    },
    /// The first two bytes are not BTF's, in either order.
    #[error("BTF has magic {0:#06x}, not 0xeb9f")]
    Magic(u16),
    /// A version that this reader does not know.
    #[error("BTF has version {0}, not 1")]
    Version(u8),
    /// The header says that types or strings lie outside the bytes.
    #[error("BTF header puts the {part} at {offset:#x}..{end:#x} of {len:#x} bytes", end = u64::from(*.offset) + u64::from(*.size))]
    Bounds {
        /// Which part.
        part: &'static str,
        /// Its offset after the header.
        offset: u32,
        /// Its size in bytes.
        size: u32,
        /// The bytes after the header.
        len: usize,
    },
    /// The strings do not begin and end with a zero byte.
    #[error("BTF strings do not begin and end with a zero byte")]
    Strings,
    /// A name lies outside the strings or is not UTF-8.
    #[error("BTF type {ty} has a name at string offset {name:#x} that is no text")]
    NameOutOfRange {
        /// The type.
        ty: TypeId,
        /// The offset.
        name: u32,
    },
    /// A kind that this reader does not know.
    #[error("BTF type {ty} is of unknown kind {kind}")]
    Kind {
        /// The type.
        ty: TypeId,
        /// Its kind.
        kind: u32,
    },
    /// A size that no type of its kind has.
    #[error("BTF type {ty} has an impossible size or width")]
    Width {
        /// The type.
        ty: TypeId,
    },
    /// A linkage that this reader does not know.
    #[error("BTF type {ty} has unknown linkage {linkage}")]
    Linkage {
        /// The type.
        ty: TypeId,
        /// The linkage.
        linkage: u32,
    },
    /// A type refers to one that is not there.
    #[error("BTF type {ty} refers to type {target}, the last is {last}")]
    TypeOutOfRange {
        /// The type that refers.
        ty: TypeId,
        /// The type it refers to.
        target: TypeId,
        /// The last type there is.
        last: TypeId,
    },
    /// There is no such type.
    #[error("there is no BTF type {0}")]
    NoType(TypeId),
    /// Types refer to each other in a circle, or nearly so.
    #[error("BTF type {0} is nested too deep")]
    TooDeep(TypeId),
    /// A type that has no size, such as `void` or a function.
    #[error("BTF type {0} has no size")]
    NoSize(TypeId),
    /// A size that does not fit 64 bits.
    #[error("the size of BTF type {0} overflows")]
    SizeOverflow(TypeId),
    /// A record size in `.BTF.ext` smaller than the format's.
    #[error(".BTF.ext has {part} records of {size} bytes")]
    RecordSize {
        /// Which records.
        part: &'static str,
        /// The size.
        size: u32,
    },
    /// A CO-RE relocation kind that this reader does not know.
    #[error("unknown CO-RE relocation kind {0}")]
    CoreKind(u32),
}

/// A value that does not fit its type, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    /// Place in the value, such as `.ports[3].proto`; empty for the whole.
    pub path: String,
    /// What is wrong there.
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

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueProblem {
    /// The type itself is broken.
    #[error(transparent)]
    Btf(#[from] BtfError),
    /// There are fewer or more bytes than the type takes.
    #[error("the type takes {expected} bytes, there are {found}")]
    Length {
        /// Bytes of the type.
        expected: u64,
        /// Bytes there are.
        found: usize,
    },
    /// The type takes more bytes than a value may have.
    #[error("the type takes {0} bytes, more than a value may have")]
    TooLarge(u64),
    /// The type has more parts than are worth showing.
    #[error("the type has more than {0} parts")]
    TooManyParts(usize),
    /// A number outside the range of its type.
    #[error("{value} does not fit into `{ty}` ({min} to {max})")]
    Range {
        /// The number.
        value: String,
        /// Name of the type.
        ty: String,
        /// Smallest number of the type.
        min: i128,
        /// Largest number of the type.
        max: u128,
    },
    /// A value of another kind than the type's.
    #[error("`{ty}` takes {expected}, not {found}")]
    Mismatch {
        /// Name of the type.
        ty: String,
        /// What it takes.
        expected: &'static str,
        /// What was given.
        found: &'static str,
    },
    /// A text that is neither a number nor a name of the enumeration.
    #[error("`{text}` is not a value of `{ty}`{}", suggest(.suggestion))]
    NoEnumerator {
        /// The text.
        text: String,
        /// Name of the type.
        ty: String,
        /// A name that is close.
        suggestion: Option<String>,
    },
    /// A member that the structure does not have.
    #[error("`{ty}` has no member `{name}`{}", suggest(.suggestion))]
    NoMember {
        /// The member.
        name: String,
        /// Name of the structure.
        ty: String,
        /// A name that is close.
        suggestion: Option<String>,
    },
    /// A member given twice.
    #[error("member `{0}` is given twice")]
    Repeated(String),
    /// Members of a union that would put different bytes in the same place.
    #[error("members `{first}` and `{second}` of a union disagree about the same bytes")]
    Disagreement {
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// More elements, or characters, than the array has.
    #[error("{found} elements do not fit into an array of {count}")]
    Count {
        /// Elements of the array.
        count: u32,
        /// Elements given.
        found: usize,
    },
    /// A type that holds nothing.
    #[error("`{0}` holds no value")]
    NoValue(String),
}

fn suggest(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|s| format!("; did you mean `{s}`?")).unwrap_or_default()
}
