//! An in-memory symbol file for one piece of installed code: an ELF object whose text is at the code's address.

use super::dwarf;
use crate::exec::registry::Installed;

/// The ELF machine number of the code's architecture.
pub(super) const MACHINE: u16 = if cfg!(target_arch = "x86_64") {
    62
} else if cfg!(target_arch = "aarch64") {
    183
} else if cfg!(target_arch = "s390x") {
    22
} else if cfg!(target_arch = "riscv64") {
    243
} else {
    0
};

const HEADER_LEN: usize = 64;
const SECTION_LEN: u16 = 64;
const SYMBOL_LEN: u64 = 24;
/// An executable: symbols have addresses instead of section offsets.
const ET_EXEC: u16 = 2;
const SHT_PROGBITS: u32 = 1;
const SHT_SYMTAB: u32 = 2;
const SHT_STRTAB: u32 = 3;
const SHT_NOBITS: u32 = 8;
const SHF_ALLOC_EXECINSTR: u64 = 0x2 | 0x4;
/// `STB_GLOBAL`, `STT_FUNC`.
const GLOBAL_FUNCTION: u8 = 1 << 4 | 2;
/// Section indices, in the order of the table in [`image`].
const TEXT: u16 = 1;
const STRTAB: u32 = 3;
const SHSTRTAB: u16 = 4;

struct Section {
    name: &'static str,
    kind: u32,
    data: Vec<u8>,
    /// Index of the string table, for the symbol table.
    link: u32,
}

/// The complete file.
pub(super) fn image(code: &Installed) -> Vec<u8> {
    let (symbols, strings) = symbols(code);
    let debug = dwarf::sections(code);
    let data = |name, kind, data| Section { name, kind, data, link: 0 };
    let mut sections = [
        data(".text", SHT_NOBITS, Vec::new()),
        Section { name: ".symtab", kind: SHT_SYMTAB, data: symbols, link: STRTAB },
        data(".strtab", SHT_STRTAB, strings),
        data(".shstrtab", SHT_STRTAB, Vec::new()),
        data(".debug_abbrev", SHT_PROGBITS, debug.abbrev),
        data(".debug_info", SHT_PROGBITS, debug.info),
        data(".debug_line", SHT_PROGBITS, debug.line),
    ];
    let mut names = vec![0];
    let name_offsets: Vec<u32> = sections.iter().map(|section| push_name(&mut names, section.name)).collect();
    sections[usize::from(SHSTRTAB) - 1].data = names;

    let mut body = Vec::new();
    let mut table = vec![0; SECTION_LEN.into()];
    for (section, name) in sections.iter().zip(name_offsets) {
        let is_text = section.kind == SHT_NOBITS;
        let size = if is_text { code.range.len() } else { section.data.len() };
        let is_symbols = section.kind == SHT_SYMTAB;
        for word in [name, section.kind] {
            table.extend(word.to_ne_bytes());
        }
        let (flags, address) = if is_text { (SHF_ALLOC_EXECINSTR, code.range.start) } else { (0, 0) };
        for long in [flags, address as u64, (HEADER_LEN + body.len()) as u64, size as u64] {
            table.extend(long.to_ne_bytes());
        }
        // `sh_info`: the number of local symbols, which is the empty one.
        for word in [section.link, u32::from(is_symbols)] {
            table.extend(word.to_ne_bytes());
        }
        let (align, entry) = if is_symbols { (8, SYMBOL_LEN) } else { (1_u64, 0) };
        for long in [align, entry] {
            table.extend(long.to_ne_bytes());
        }
        body.extend(&section.data);
        body.resize(body.len().next_multiple_of(8), 0);
    }
    let count = sections.len() as u16 + 1;
    let mut file = header((HEADER_LEN + body.len()) as u64, count);
    file.extend(body);
    file.extend(table);
    file
}

fn header(section_table: u64, sections: u16) -> Vec<u8> {
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    let mut header = vec![0x7f, b'E', b'L', b'F', 2, order, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header.extend(ET_EXEC.to_ne_bytes());
    header.extend(MACHINE.to_ne_bytes());
    header.extend(1_u32.to_ne_bytes());
    for long in [0, 0, section_table] {
        header.extend(u64::to_ne_bytes(long));
    }
    header.extend(0_u32.to_ne_bytes());
    for half in [HEADER_LEN as u16, 0, 0, SECTION_LEN, sections, SHSTRTAB] {
        header.extend(half.to_ne_bytes());
    }
    header
}

/// Symbol table and string table: one symbol per function.
fn symbols(code: &Installed) -> (Vec<u8>, Vec<u8>) {
    let mut symbols = vec![0; SYMBOL_LEN as usize];
    let mut strings = vec![0];
    for function in &*code.functions {
        symbols.extend(push_name(&mut strings, &function.name).to_ne_bytes());
        symbols.extend([GLOBAL_FUNCTION, 0]);
        symbols.extend(TEXT.to_ne_bytes());
        symbols.extend((code.range.start as u64 + u64::from(function.start)).to_ne_bytes());
        symbols.extend(u64::from(function.len).to_ne_bytes());
    }
    (symbols, strings)
}

/// Adds a null-terminated string, and returns its offset.
fn push_name(strings: &mut Vec<u8>, name: &str) -> u32 {
    let place = strings.len() as u32;
    strings.extend(name.bytes().take_while(|&byte| byte != 0));
    strings.push(0);
    place
}
