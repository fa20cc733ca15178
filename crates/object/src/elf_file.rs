//! The relevant parts of an ELF file, validated and decoded.

use elf::endian::{AnyEndian, EndianParse};
use elf::{ElfBytes, abi};

use super::error::LoadError;
use crate::section::data_section;

/// `R_BPF_*` of LLVM's `llvm/BinaryFormat/ELFRelocs/BPF.def`.
pub(crate) mod reloc {
    pub(crate) const NONE: u32 = 0;
    pub(crate) const R_64_64: u32 = 1;
    pub(crate) const R_64_ABS64: u32 = 2;
    pub(crate) const R_64_ABS32: u32 = 3;
    pub(crate) const R_64_32: u32 = 10;
}

/// A section.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    /// `sh_type`.
    kind: u32,
    flags: u64,
    /// `sh_size`; larger than `data` for sections without contents in the file.
    pub(crate) size: u64,
    pub(crate) data: &'a [u8],
    /// Relocations of this section, sorted by offset; only for code, maps and data, and for debug information if asked for.
    pub(crate) relocations: Vec<Relocation>,
}

impl Section<'_> {
    pub(crate) fn is_code(&self) -> bool {
        self.kind == abi::SHT_PROGBITS && self.flags & u64::from(abi::SHF_EXECINSTR) != 0
    }

    pub(crate) fn is_progbits(&self) -> bool {
        self.kind == abi::SHT_PROGBITS
    }

    pub(crate) fn is_nobits(&self) -> bool {
        self.kind == abi::SHT_NOBITS
    }
}

/// Section of a symbol's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// A section of the file.
    Section(usize),
    /// Undefined.
    Undefined,
    /// A common symbol: a variable that no section has, as `-fcommon` makes it.
    Common,
    /// No meaning in BPF: absolute symbols.
    Other,
}

/// Type of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolKind {
    Function,
    Object,
    Section,
    Untyped,
    Other,
}

/// A symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol<'a> {
    pub(crate) name: &'a str,
    pub(crate) place: Place,
    pub(crate) value: u64,
    pub(crate) size: u64,
    pub(crate) kind: SymbolKind,
    pub(crate) local: bool,
    pub(crate) weak: bool,
    /// Hidden or internal visibility: global within the object only.
    pub(crate) hidden: bool,
}

/// A relocation; its addend is in the relocated bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relocation {
    /// Offset in bytes into the section.
    pub(crate) offset: u64,
    pub(crate) symbol: u32,
    /// `R_BPF_*`
    pub(crate) kind: u32,
}

/// An ELF file of BPF code in native byte order.
#[derive(Debug)]
pub(crate) struct ElfFile<'a> {
    pub(crate) sections: Vec<Section<'a>>,
    pub(crate) symbols: Vec<Symbol<'a>>,
}

impl<'a> ElfFile<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, LoadError> {
        Self::parse_with(bytes, false)
    }

    /// Parses a file, with or without the relocations of its debug information.
    pub(crate) fn parse_with(bytes: &'a [u8], debug: bool) -> Result<Self, LoadError> {
        if !bytes.starts_with(&abi::ELFMAGIC) {
            return Err(LoadError::NotElf(paceline_suggest::format_of(bytes)));
        }
        let file = ElfBytes::<AnyEndian>::minimal_parse(bytes)?;
        let (machine, kind) = (file.ehdr.e_machine, file.ehdr.e_type);
        // clang before version 4 wrote no machine number, and libbpf accepts that.
        let is_bpf = machine == abi::EM_BPF || machine == abi::EM_NONE;
        if !is_bpf || kind != abi::ET_REL || file.ehdr.class != elf::file::Class::ELF64 {
            return Err(LoadError::NotBpf { machine, kind });
        }
        let little = file.ehdr.endianness.is_little();
        if little != cfg!(target_endian = "little") {
            return Err(LoadError::ForeignByteOrder { order: if little { "little" } else { "big" } });
        }
        let mut sections = parse_sections(&file)?;
        let symbols = parse_symbols(&file, sections.len())?;
        attach_relocations(&file, &mut sections, bytes.len(), debug)?;
        Ok(Self { sections, symbols })
    }

    /// The first section with a name, and its index.
    pub(crate) fn section(&self, name: &str) -> Option<(usize, &Section<'a>)> {
        self.sections.iter().enumerate().find(|(_, s)| s.name == name)
    }

    /// The name of a section by its index.
    pub(crate) fn section_name(&self, index: usize) -> &'a str {
        self.sections.get(index).map_or("", |s| s.name)
    }

    /// The symbols defined in a section.
    pub(crate) fn symbols_in(&self, section: usize) -> impl Iterator<Item = &Symbol<'a>> {
        self.symbols.iter().filter(move |s| s.place == Place::Section(section))
    }

    /// Name of a symbol for messages: section symbols have no name of their own.
    pub(crate) fn symbol_label(&self, symbol: &Symbol<'a>) -> &'a str {
        match symbol.place {
            Place::Section(section) if symbol.name.is_empty() => self.section_name(section),
            _ => symbol.name,
        }
    }
}

/// Maximum length of names in bytes. Without a limit, a file of overlapping names takes time quadratic in its size.
const NAME_LIMIT: usize = 1024;

fn text<'a>(table: &'a [u8], offset: u32, what: &'static str, index: usize) -> Result<&'a str, LoadError> {
    let window = table.get(offset as usize..).map(|rest| rest.get(..NAME_LIMIT).unwrap_or(rest));
    let name = window.and_then(|w| w.iter().position(|&b| b == 0).and_then(|end| w.get(..end)));
    name.and_then(|name| std::str::from_utf8(name).ok()).ok_or(LoadError::Name { what, index })
}

/// The string table with an index among the section headers.
fn strings<'a>(file: &ElfBytes<'a, AnyEndian>, index: usize) -> Result<&'a [u8], LoadError> {
    let header = file.section_headers().map(|headers| headers.get(index)).transpose()?;
    Ok(match header {
        Some(header) if header.sh_type == abi::SHT_STRTAB => file.section_data(&header)?.0,
        _ => &[],
    })
}

fn parse_sections<'a>(file: &ElfBytes<'a, AnyEndian>) -> Result<Vec<Section<'a>>, LoadError> {
    let Some(headers) = file.section_headers() else { return Ok(Vec::new()) };
    let names_index = match file.ehdr.e_shstrndx {
        abi::SHN_XINDEX => headers.get(0)?.sh_link as usize,
        index => usize::from(index),
    };
    let names = strings(file, names_index)?;
    let mut sections = Vec::new();
    for (index, header) in headers.iter().enumerate() {
        let data = match header.sh_type {
            abi::SHT_NULL | abi::SHT_NOBITS => &[][..],
            // Compressed sections contain debug information, which is not used.
            _ if header.sh_flags & u64::from(abi::SHF_COMPRESSED) != 0 => &[],
            _ => file.section_data(&header)?.0,
        };
        sections.push(Section {
            name: text(names, header.sh_name, "section", index)?,
            kind: header.sh_type,
            flags: header.sh_flags,
            size: header.sh_size,
            data,
            relocations: Vec::new(),
        });
    }
    Ok(sections)
}

fn parse_symbols<'a>(
    file: &ElfBytes<'a, AnyEndian>,
    section_count: usize,
) -> Result<Vec<Symbol<'a>>, LoadError> {
    let Some((table, _)) = file.symbol_table()? else { return Ok(Vec::new()) };
    let headers = file.section_headers().into_iter().flatten();
    let link = headers.filter(|h| h.sh_type == abi::SHT_SYMTAB).map(|h| h.sh_link as usize).next();
    let names = strings(file, link.unwrap_or_default())?;
    let mut symbols = Vec::new();
    for (index, symbol) in table.iter().enumerate() {
        let place = match symbol.st_shndx {
            abi::SHN_UNDEF => Place::Undefined,
            abi::SHN_COMMON => Place::Common,
            section if usize::from(section) < section_count => Place::Section(usize::from(section)),
            _ => Place::Other,
        };
        symbols.push(Symbol {
            name: text(names, symbol.st_name, "symbol", index)?,
            place,
            value: symbol.st_value,
            size: symbol.st_size,
            kind: match symbol.st_symtype() {
                abi::STT_FUNC => SymbolKind::Function,
                abi::STT_OBJECT => SymbolKind::Object,
                abi::STT_SECTION => SymbolKind::Section,
                abi::STT_NOTYPE => SymbolKind::Untyped,
                _ => SymbolKind::Other,
            },
            local: symbol.st_bind() == abi::STB_LOCAL,
            weak: symbol.st_bind() == abi::STB_WEAK,
            hidden: matches!(symbol.st_vis(), abi::STV_HIDDEN | abi::STV_INTERNAL),
        });
    }
    Ok(symbols)
}

fn attach_relocations(
    file: &ElfBytes<'_, AnyEndian>,
    sections: &mut [Section<'_>],
    mut most: usize,
    debug: bool,
) -> Result<(), LoadError> {
    let Some(headers) = file.section_headers() else { return Ok(()) };
    for header in headers.iter().filter(|h| h.sh_type == abi::SHT_REL) {
        let Some(target) = sections.get_mut(header.sh_info as usize) else { continue };
        // Relocations of types are for linkers only.
        let is_debug = debug && target.name.starts_with(".debug_");
        if !target.is_code() && target.name != ".maps" && data_section(target.name).is_none() && !is_debug {
            continue;
        }
        // Headers that share the same bytes could request far more memory than the size of the file.
        most = most
            .checked_sub(usize::try_from(header.sh_size).unwrap_or(usize::MAX))
            .ok_or(LoadError::Elf(elf::ParseError::BadOffset(header.sh_offset)))?;
        let found = file.section_data_as_rels(&header)?;
        target.relocations.extend(found.map(|r| Relocation {
            offset: r.r_offset,
            symbol: r.r_sym,
            kind: r.r_type,
        }));
        target.relocations.sort_by_key(|r| r.offset);
    }
    Ok(())
}
