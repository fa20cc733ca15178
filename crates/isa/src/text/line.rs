//! Syntax of lines: instructions, and the additions of listings.

use super::cursor::is_word;

/// A piece of a line and the byte where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part<'a> {
    pub(super) at: usize,
    pub(super) text: &'a str,
}

/// A statement in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement<'a> {
    /// `out:` or `<out>:`
    Label(Part<'a>),
    /// `Disassembly of section xdp:`: slot numbers restart.
    Section(Part<'a>),
    /// An instruction.
    Insn(InsnLine<'a>),
    /// `R_BPF_64_64 counters`: a relocation of the previous instruction against this symbol.
    Relocation(Part<'a>),
}

/// An instruction with the columns of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InsnLine<'a> {
    pub(super) part: Part<'a>,
    /// The slot number, if the line begins with one.
    pub(super) slot: Option<u64>,
    /// The opcode, as printed by bpftool.
    pub(super) opcode: Option<u8>,
    /// The 8 or 16 bytes in little-endian order, as printed by llvm-objdump.
    pub(super) bytes: Option<Vec<u8>>,
}

/// Splits a line into statements.
pub(super) fn statements(line: &str) -> Vec<Statement<'_>> {
    let mut found = Vec::new();
    let mut rest = Part { at: 0, text: line }.without_comment().trimmed();
    if let Some(heading) = heading(rest) {
        found.extend(heading);
        return found;
    }
    while let Some((label, after)) = label(rest) {
        found.push(Statement::Label(label));
        rest = after;
    }
    if !rest.text.is_empty() {
        found.extend(instruction(rest));
    }
    found
}

impl<'a> Part<'a> {
    /// The rest after the first `len` bytes.
    fn skip(self, len: usize) -> Self {
        Self { at: self.at + len, text: self.text.get(len..).unwrap_or("") }
    }

    fn take(self, len: usize) -> Self {
        Self { text: self.text.get(..len).unwrap_or(self.text), ..self }
    }

    fn trimmed(self) -> Self {
        let start = self.text.len() - self.text.trim_start().len();
        let after = self.skip(start);
        Self { text: after.text.trim_end(), ..after }
    }

    fn strip_prefix(self, prefix: &str) -> Option<Self> {
        self.text.starts_with(prefix).then(|| self.skip(prefix.len()))
    }

    fn strip_suffix(self, suffix: &str) -> Option<Self> {
        Some(Self { text: self.text.strip_suffix(suffix)?, ..self })
    }

    fn without_comment(self) -> Self {
        let end = [";", "#", "//"].iter().filter_map(|mark| self.text.find(mark)).min();
        self.take(end.unwrap_or(self.text.len()))
    }

    /// Without llvm-objdump's annotation of a target, ` <out+0x8>`.
    fn without_remark(self) -> Self {
        match self.text.rfind(" <") {
            Some(start) if self.text.ends_with('>') => self.take(start).trimmed(),
            _ => self,
        }
    }

    /// Splits after the longest prefix of `wanted` characters.
    fn split_while(self, wanted: impl Fn(char) -> bool) -> (Self, Self) {
        let end = self.text.find(|c| !wanted(c)).unwrap_or(self.text.len());
        (self.take(end), self.skip(end))
    }
}

/// Lines of a listing without an instruction; the inner option is the statement, if any.
fn heading(line: Part<'_>) -> Option<Option<Statement<'_>>> {
    if let Some(section) = line.strip_prefix("Disassembly of section ").and_then(|s| s.strip_suffix(":")) {
        return Some(Some(Statement::Section(section)));
    }
    if let Some(symbol) = symbol_heading(line) {
        return Some(Some(Statement::Label(symbol)));
    }
    let is_file = line.text.contains("file format elf64-bpf");
    // With BTF, bpftool prints each function's prototype before it.
    let is_prototype = line.text.ends_with("):");
    // `bpftool prog dump xlated opcodes` prints the bytes on a separate line.
    let is_bytes = hex_bytes(line).is_some_and(|(_, rest)| rest.text.is_empty());
    (is_file || is_prototype || is_bytes).then_some(None)
}

/// `0000000000000070 <name>:` or `<name>:`
fn symbol_heading(line: Part<'_>) -> Option<Part<'_>> {
    let (_, rest) = line.split_while(|c| c.is_ascii_hexdigit());
    rest.trimmed().strip_prefix("<")?.strip_suffix(">:")
}

/// A leading label, and the rest. A number with a colon is a slot number.
fn label(line: Part<'_>) -> Option<(Part<'_>, Part<'_>)> {
    let (name, rest) = line.split_while(is_word);
    let is_name = name.text.starts_with(|c: char| !c.is_ascii_digit());
    let rest = rest.strip_prefix(":")?;
    is_name.then(|| (name, rest.trimmed()))
}

/// An instruction or relocation, with optional columns of a listing; `None` for a CO-RE relocation, which the loader applies.
fn instruction(line: Part<'_>) -> Option<Statement<'_>> {
    let (address, rest) = address(line);
    if rest.text.starts_with("R_BPF_") {
        let (_, symbol) = rest.split_while(is_word);
        return Some(Statement::Relocation(symbol.trimmed()));
    }
    if rest.text.starts_with("CO-RE ") {
        return None;
    }
    let (bytes, rest) = hex_bytes(rest).map_or((None, rest), |(bytes, rest)| (Some(bytes), rest));
    let (opcode, rest) = opcode(rest).map_or((None, rest), |(opcode, rest)| (Some(opcode), rest));
    let slot = address.and_then(|address| address.text.parse().ok());
    Some(Statement::Insn(InsnLine { part: rest.without_remark(), slot, opcode, bytes }))
}

/// `12:`, hexadecimal in relocations.
fn address(line: Part<'_>) -> (Option<Part<'_>>, Part<'_>) {
    let (number, rest) = line.split_while(|c| c.is_ascii_hexdigit());
    match rest.strip_prefix(":") {
        Some(rest) if !number.text.is_empty() => (Some(number), rest.trimmed()),
        _ => (None, line),
    }
}

/// `(b7)`
fn opcode(line: Part<'_>) -> Option<(u8, Part<'_>)> {
    let (number, rest) = line.strip_prefix("(")?.split_while(|c| c.is_ascii_hexdigit());
    let opcode = u8::from_str_radix(number.text, 16).ok()?;
    Some((opcode, rest.strip_prefix(")")?.trimmed()))
}

/// `b7 00 00 00 02 00 00 00`, or 16 bytes in this format.
fn hex_bytes(line: Part<'_>) -> Option<(Vec<u8>, Part<'_>)> {
    let mut bytes = Vec::new();
    let mut rest = line;
    while bytes.len() < 16 {
        let (number, after) = rest.split_while(|c| c.is_ascii_hexdigit());
        if number.text.len() != 2 || after.text.starts_with(|c: char| !c.is_whitespace()) {
            break;
        }
        bytes.push(u8::from_str_radix(number.text, 16).ok()?);
        rest = after.trimmed();
    }
    matches!(bytes.len(), 8 | 16).then_some((bytes, rest))
}
