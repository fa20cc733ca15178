//! Errors of loading objects.

use paceline_btf::BtfError;

/// Reasons why an object cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The bytes do not start with ELF's magic number.
    #[error("not an ELF file{}", .0.map(|format| format!(" but {format}")).unwrap_or_default())]
    NotElf(
        /// The format of the file, with its article, where it is known.
        Option<&'static str>,
    ),
    /// ELF structures that are out of bounds or inconsistent.
    #[error("malformed ELF: {}", in_words(.0))]
    Elf(elf::ParseError),
    /// An ELF file for another machine, or an executable or shared library.
    #[error("not a BPF object: ELF machine {machine}{}, type {kind} (a BPF object has machine 247, type 1)", machine_name(*.machine))]
    NotBpf {
        /// `e_machine`.
        machine: u16,
        /// `e_type`.
        kind: u16,
    },
    /// An object of the other byte order. The byte order is compiled into its code, so it cannot be converted.
    #[error("compiled for {order}-endian machines, this one is not; compile with `-target bpf`")]
    ForeignByteOrder {
        /// Byte order of the object.
        order: &'static str,
    },
    /// A name in the ELF string tables that is not UTF-8, or exceeds the maximum length.
    #[error("the name of {what} {index} is not UTF-8 text of at most 1024 bytes")]
    Name {
        /// Section or symbol.
        what: &'static str,
        /// Its index.
        index: usize,
    },
    /// Malformed BTF.
    #[error("section {section}")]
    Btf {
        /// `.BTF` or `.BTF.ext`.
        section: &'static str,
        /// The error.
        source: BtfError,
    },
    /// A file without types where they are required.
    #[error("it has no BTF (section .BTF)")]
    NoTypes,
    /// A function symbol that is out of its section's bounds or not at an instruction.
    #[error(
        "section {section}: function {function} at {offset:#x}, {size} bytes long, is not within the section's code"
    )]
    FunctionBounds {
        /// The section.
        section: String,
        /// The function.
        function: String,
        /// Offset in bytes.
        offset: u64,
        /// Size in bytes.
        size: u64,
    },
    /// More code than the limit for programs.
    #[error("function {function}: programs of more than {limit} instruction slots in total")]
    TooLarge {
        /// The function that exceeds the limit.
        function: String,
        /// The limit.
        limit: usize,
    },
    /// A call or function pointer whose target is not the start of a function.
    #[error("section {section}, offset {offset:#x}: no function starts at {target_section}+{target:#x}")]
    NoFunction {
        /// Section of the call.
        section: String,
        /// Offset of the call in bytes.
        offset: u64,
        /// Target section.
        target_section: String,
        /// Target offset in bytes.
        target: i64,
    },
    /// A relocation of an instruction without relocatable field, or of an unknown type.
    #[error(
        "section {section}, offset {offset:#x}: relocation of type {kind} against `{symbol}` cannot be applied to opcode {opcode:#04x}"
    )]
    Relocation {
        /// The section.
        section: String,
        /// Offset in bytes.
        offset: u64,
        /// Type of the relocation (`R_BPF_*`).
        kind: u32,
        /// Name of the symbol or its section.
        symbol: String,
        /// Opcode of the instruction.
        opcode: u8,
    },
    /// A relocation that is out of its section's bounds, not at an instruction, or against a nonexistent symbol.
    #[error("section {section}: relocation at {offset:#x} against symbol {symbol} has no valid target")]
    RelocationNowhere {
        /// The section.
        section: String,
        /// Offset in bytes.
        offset: u64,
        /// Index of the symbol.
        symbol: u32,
    },
    /// A reference to a symbol in a section that is neither code, data nor maps.
    #[error(
        "section {section}, offset {offset:#x}: `{symbol}` in section {target} is neither code, data nor a map"
    )]
    RelocationTarget {
        /// The section.
        section: String,
        /// Offset in bytes.
        offset: u64,
        /// Name of the symbol.
        symbol: String,
        /// Section of the symbol.
        target: String,
    },
    /// A reference to an offset of a map section at which no map starts.
    #[error("section {section}, offset {offset:#x}: no map starts at {target}+{at:#x}")]
    NoMap {
        /// The section.
        section: String,
        /// Offset in bytes.
        offset: u64,
        /// The map section.
        target: String,
        /// Offset into it in bytes.
        at: u64,
    },
    /// A variable without a section.
    #[error(
        "section {section}, offset {offset:#x}: the variable `{name}` is in no section of the object (a common symbol); compile with \
         -fno-common, or give it a value"
    )]
    Common {
        /// The section.
        section: String,
        /// Offset in bytes.
        offset: u64,
        /// The variable.
        name: String,
    },
    /// An undefined symbol.
    #[error("section {section}, offset {offset:#x}: `{name}` is not defined{hint}")]
    Undefined {
        /// The section.
        section: String,
        /// Offset in bytes.
        offset: u64,
        /// The name.
        name: String,
        /// A hint how to define it.
        hint: &'static str,
    },
    /// A kernel configuration option whose variable's type cannot represent its value.
    #[error("kernel configuration `{name}`: {problem}")]
    Config {
        /// The option.
        name: String,
        /// The error.
        problem: &'static str,
    },
    /// A `.maps` section without the types that describe it.
    #[error("section .maps needs BTF (section .BTF); compile with `-g`")]
    MapsWithoutTypes,
    /// A map with an invalid definition.
    #[error("map {map}: {problem}")]
    Map {
        /// The map.
        map: String,
        /// The error.
        problem: MapProblem,
    },
    /// A legacy `maps` section whose size does not fit its number of maps.
    #[error("section maps: {size} bytes cannot contain {count} definitions")]
    LegacyMaps {
        /// Size of the section in bytes.
        size: u64,
        /// Number of symbols in it.
        count: usize,
    },
    /// A data section larger than the maximum size of a map value.
    #[error("section {section}: {size} bytes exceed the maximum size of a map value")]
    DataTooLarge {
        /// The section.
        section: String,
        /// Size of the section in bytes.
        size: u64,
    },
    /// An invalid or ambiguous CO-RE relocation.
    #[error("section {section}, offset {offset:#x}: CO-RE relocation {kind} of `{ty}`: {problem}")]
    Core {
        /// The section.
        section: String,
        /// Offset in bytes.
        offset: u32,
        /// The kind of relocation.
        kind: &'static str,
        /// Name of the type.
        ty: String,
        /// The error.
        problem: CoreProblem,
    },
}

/// Errors of CO-RE relocations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CoreProblem {
    /// Malformed BTF.
    #[error(transparent)]
    Btf(#[from] BtfError),
    /// An access path that does not exist in the object's own types.
    #[error("access path `{0}` does not fit the type")]
    Access(String),
    /// A path or type with too many levels.
    #[error("types are nested too deep")]
    TooDeep,
    /// Type comparisons exceed the limit.
    #[error("types are too complex to compare")]
    TooComplex,
    /// A type without a name, for which no candidates can be found.
    #[error("the type has no name")]
    Anonymous,
    /// The relocation is not at the start of an instruction.
    #[error("it is not at an instruction")]
    Misplaced,
    /// Candidates in the target types have the field at different offsets.
    #[error("candidates in the target's types have it at bit {first} and at bit {second}")]
    OffsetAmbiguity {
        /// One offset in bits.
        first: u64,
        /// The other.
        second: u64,
    },
    /// Candidates in the target types give different values.
    #[error("candidates in the target's types give different results")]
    Ambiguity,
    /// A relocation kind that is invalid for an array element.
    #[error("it refers to an array element")]
    Element,
    /// A value that does not fit the instruction, or a field that no single load can cover.
    #[error("the result is out of range")]
    OutOfRange,
    /// A field whose size a load or store cannot be adapted to.
    #[error("a load or store of {old} bytes cannot become one of {new}")]
    Size {
        /// Size in the object in bytes.
        old: u64,
        /// Size in the target in bytes.
        new: u64,
    },
    /// The instruction's value differs from the one in the object's own types.
    #[error("the instruction holds {found}, the object's types say {expected}")]
    Unexpected {
        /// The instruction's value.
        found: u64,
        /// The expected value.
        expected: u64,
    },
    /// An instruction without a relocatable field.
    #[error("it cannot be applied to opcode {0:#04x}")]
    Instruction(u8),
}

/// The name of the commonest machines that objects are compiled for by mistake.
fn machine_name(machine: u16) -> &'static str {
    match machine {
        3 => " (x86)",
        40 => " (Arm)",
        62 => " (x86-64)",
        183 => " (arm64)",
        243 => " (RISC-V)",
        _ => "",
    }
}

/// The commonest error is that the file ends too early.
fn in_words(error: &elf::ParseError) -> String {
    match error {
        elf::ParseError::SliceReadError((start, end)) => {
            format!("bytes {start} to {end} lie behind the end of the file: it is cut off, or damaged")
        }
        error => error.to_string(),
    }
}

impl From<elf::ParseError> for LoadError {
    fn from(error: elf::ParseError) -> Self {
        match error {
            elf::ParseError::BadMagic(_) => Self::NotElf(None),
            error => Self::Elf(error),
        }
    }
}

/// Errors in the definition of a map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapProblem {
    /// Malformed BTF.
    #[error(transparent)]
    Btf(#[from] BtfError),
    /// The variable is not a structure.
    #[error("its type is not a struct")]
    NotStruct,
    /// A member whose type does not have the form of `__uint`, `__type`, `__array` or `__ulong`.
    #[error("member `{member}` is not as __{form} makes it")]
    Form {
        /// The member.
        member: String,
        /// The expected macro.
        form: &'static str,
    },
    /// An unknown member.
    #[error("unknown member `{0}`")]
    UnknownMember(String),
    /// Conflicting definitions of the key or value size.
    #[error("conflicting {what} sizes {first} and {second}")]
    SizeConflict {
        /// `key` or `value`.
        what: &'static str,
        /// One size.
        first: u64,
        /// The other.
        second: u64,
    },
    /// A key or value of 4 GiB or more.
    #[error("{what} of {size} bytes")]
    Size {
        /// `key` or `value`.
        what: &'static str,
        /// Its size.
        size: u64,
    },
    /// A map type that the kernel does not know, or 0.
    #[error("unknown map type {0}")]
    UnknownKind(u32),
    /// The map type is missing.
    #[error("has no type")]
    NoKind,
    /// Two programs that are tagged for one entry, or one beside an initial value.
    #[error("entry {0} is given two programs")]
    TwoPrograms(u32),
    /// A value of `pinning` that libbpf does not know.
    #[error("unknown pinning {0}")]
    Pinning(u32),
    /// Initial elements or inner maps in a map whose kind does not allow them.
    #[error("maps of type {0} have no `values`")]
    Values(&'static str),
    /// A map of maps, or a pinned map, as inner map.
    #[error("its inner maps may not have inner maps or be pinned")]
    Inner,
    /// An inner map that the definition does not describe.
    #[error("no inner map {0}")]
    NoInner(u32),
    /// An initial element outside of `values`, or that is not the map or program that the kind requires.
    #[error("initial value at offset {0:#x} is not a map or program that it can hold")]
    Initial(u64),
    /// A definition that is out of its section's bounds.
    #[error("its definition lies outside of the section")]
    Bounds,
    /// A legacy definition with unknown nonzero members.
    #[error("unknown members in its definition at offset {0:#x}")]
    Unknown(usize),
}
