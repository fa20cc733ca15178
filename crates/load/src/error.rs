//! What can be wrong with an object.

use paceline_btf::BtfError;

/// Why an object cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The bytes do not start with ELF's magic number.
    #[error("not an ELF file")]
    NotElf,
    /// The ELF structures lie outside of the file or contradict each other.
    #[error("malformed ELF: {0}")]
    Elf(elf::ParseError),
    /// An ELF file of another machine, or an executable or shared library.
    #[error("not a BPF object: ELF machine {machine}, type {kind} (a BPF object has machine 247, type 1)")]
    NotBpf {
        /// `e_machine`.
        machine: u16,
        /// `e_type`.
        kind: u16,
    },
    /// An object for machines of the other byte order. Its code has the order compiled in, so it cannot be converted.
    #[error("compiled for {order}-endian machines, this one is not; compile with `-target bpf`")]
    ForeignByteOrder {
        /// The object's order.
        order: &'static str,
    },
    /// A name in the ELF string tables that is not UTF-8, or longer than any.
    #[error("the name of {what} {index} is not a text of at most 1024 bytes")]
    Name {
        /// Section or symbol.
        what: &'static str,
        /// Its index.
        index: usize,
    },
    /// The types are broken.
    #[error("section {section}: {source}")]
    Btf {
        /// `.BTF` or `.BTF.ext`.
        section: &'static str,
        /// What is wrong.
        source: BtfError,
    },
    /// A file that should have types and has none.
    #[error("it has no types (section .BTF)")]
    NoTypes,
    /// A function's symbol lies outside of its section or between instructions.
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
    /// More code than any program may have.
    #[error("function {function}: programs of more than {limit} instruction slots in total")]
    TooLarge {
        /// The function that was one too many.
        function: String,
        /// The limit.
        limit: usize,
    },
    /// A call or function pointer that does not lead to the start of a function.
    #[error("section {section}, offset {offset:#x}: no function starts at {target_section}+{target:#x}")]
    NoFunction {
        /// Section of the call.
        section: String,
        /// Offset of the call in bytes.
        offset: u64,
        /// Section it leads to.
        target_section: String,
        /// Offset in bytes it leads to.
        target: i64,
    },
    /// A relocation against an instruction that takes none, or of an unknown type.
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
    /// A relocation outside of its section, between instructions, or against a symbol that is not there.
    #[error("section {section}: relocation at {offset:#x} against symbol {symbol} leads nowhere")]
    RelocationNowhere {
        /// The section.
        section: String,
        /// Offset in bytes.
        offset: u64,
        /// Index of the symbol.
        symbol: u32,
    },
    /// A reference to something in a section that is neither code, data nor maps.
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
        /// The section of the symbol.
        target: String,
    },
    /// A reference to a place in a map section at which no map starts.
    #[error("section {section}, offset {offset:#x}: no map starts at {target}+{at:#x}")]
    NoMap {
        /// The section.
        section: String,
        /// Offset in bytes.
        offset: u64,
        /// The map section.
        target: String,
        /// Offset in bytes into it.
        at: u64,
    },
    /// A name that neither the object nor the options define.
    #[error("section {section}, offset {offset:#x}: `{name}` is not defined{hint}")]
    Undefined {
        /// The section.
        section: String,
        /// Offset in bytes.
        offset: u64,
        /// The name.
        name: String,
        /// What would define it.
        hint: &'static str,
    },
    /// A configuration option of the kernel of a type that cannot hold its value.
    #[error("kernel configuration `{name}`: {problem}")]
    Config {
        /// The option.
        name: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// A `.maps` section without the types that describe it.
    #[error("section .maps needs types (section .BTF); compile with `-g`")]
    MapsWithoutTypes,
    /// A map whose definition cannot be understood.
    #[error("map {map}: {problem}")]
    Map {
        /// The map.
        map: String,
        /// What is wrong.
        problem: MapProblem,
    },
    /// A legacy `maps` section whose size is not that of its maps.
    #[error("section maps: {size} bytes do not hold {count} definitions")]
    LegacyMaps {
        /// Bytes of the section.
        size: u64,
        /// Symbols in it.
        count: usize,
    },
    /// A data section larger than a map value can be.
    #[error("section {section}: {size} bytes are more than a map value can have")]
    DataTooLarge {
        /// The section.
        section: String,
        /// Bytes of the section.
        size: u64,
    },
    /// A CO-RE relocation that cannot be understood or has several answers.
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
        /// What is wrong.
        problem: CoreProblem,
    },
}

/// What is wrong with a CO-RE relocation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CoreProblem {
    /// The types are broken.
    #[error(transparent)]
    Btf(#[from] BtfError),
    /// A path that does not lead through the object's own types.
    #[error("access path `{0}` does not fit the type")]
    Access(String),
    /// A path or type of too many levels.
    #[error("types are nested too deep")]
    TooDeep,
    /// Comparing the types takes too long.
    #[error("types are too complex to compare")]
    TooComplex,
    /// A type without a name, which cannot be searched for.
    #[error("the type has no name")]
    Anonymous,
    /// It is not at the start of an instruction.
    #[error("it is not at an instruction")]
    Misplaced,
    /// Target types of the name have the field in different places.
    #[error("candidates in the target's types have it at bit {first} and at bit {second}")]
    OffsetAmbiguity {
        /// One place.
        first: u64,
        /// The other.
        second: u64,
    },
    /// Target types of the name give different answers.
    #[error("candidates in the target's types give different answers")]
    Ambiguity,
    /// A question that cannot be asked of an array's element.
    #[error("it is about an element of an array")]
    Element,
    /// An answer that does not fit the instruction, or a field that no load can reach.
    #[error("the answer is out of range")]
    OutOfRange,
    /// A field whose size a load or store cannot have.
    #[error("a load or store of {old} bytes cannot become one of {new}")]
    Size {
        /// Bytes where the object was compiled.
        old: u64,
        /// Bytes in the target.
        new: u64,
    },
    /// The instruction does not hold what the object's own types say.
    #[error("the instruction holds {found}, the object's types say {expected}")]
    Unexpected {
        /// What it holds.
        found: u64,
        /// What it should hold.
        expected: u64,
    },
    /// An instruction that takes no answer.
    #[error("it cannot be applied to opcode {0:#04x}")]
    Instruction(u8),
}

impl From<elf::ParseError> for LoadError {
    fn from(error: elf::ParseError) -> Self {
        match error {
            elf::ParseError::BadMagic(_) => Self::NotElf,
            error => Self::Elf(error),
        }
    }
}

/// What is wrong with the definition of a map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapProblem {
    /// The types are broken.
    #[error(transparent)]
    Btf(#[from] BtfError),
    /// The variable is no structure.
    #[error("its type is not a structure")]
    NotStruct,
    /// A member that is not of the form of `__uint`, `__type`, `__array` or `__ulong`.
    #[error("member `{member}` is not as __{form} makes it")]
    Form {
        /// The member.
        member: String,
        /// The macro.
        form: &'static str,
    },
    /// A member that no map has.
    #[error("unknown member `{0}`")]
    UnknownMember(String),
    /// Sizes of the key or value given twice and differently.
    #[error("conflicting {what} sizes {first} and {second}")]
    SizeConflict {
        /// Key or value.
        what: &'static str,
        /// One size.
        first: u64,
        /// The other.
        second: u64,
    },
    /// A key or value of 4 GiB or more.
    #[error("{what} of {size} bytes")]
    Size {
        /// Key or value.
        what: &'static str,
        /// Its size.
        size: u64,
    },
    /// No type, or one that the kernel does not know.
    #[error("unknown map type {0}")]
    UnknownKind(u32),
    /// No type.
    #[error("has no type")]
    NoKind,
    /// A value of `pinning` that libbpf does not know.
    #[error("unknown pinning {0}")]
    Pinning(u32),
    /// Initial elements or inner maps in a map whose kind has none.
    #[error("maps of type {0} have no `values`")]
    Values(&'static str),
    /// A map of maps within a map of maps.
    #[error("its inner maps may not have inner maps or be pinned")]
    Inner,
    /// An inner map that the definition does not describe.
    #[error("no inner map {0}")]
    NoInner(u32),
    /// An initial element outside of `values`, or that is no map or program as the kind needs.
    #[error("initial value at offset {0:#x} is not a map or program that it can hold")]
    Initial(u64),
    /// A definition that reaches outside of its section.
    #[error("its definition lies outside of the section")]
    Bounds,
    /// A legacy definition with members that nobody knows.
    #[error("unknown members in its definition at offset {0:#x}")]
    Unknown(usize),
}
