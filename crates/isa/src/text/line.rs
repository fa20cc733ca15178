//! The shapes of lines: what is instruction, and what a listing puts around it.

use super::cursor::is_word;

/// A piece of a line and the byte where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part<'a> {
    pub(super) at: usize,
    pub(super) text: &'a str,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement<'a> {
    /// `out:` or `<out>:`
    Label(Part<'a>),
    /// `Disassembly of section xdp:`: slots are counted anew.
    Section(Part<'a>),
    /// An instruction.
    Insn(InsnLine<'a>),
    /// `R_BPF_64_64 counters`: the instruction before refers to this symbol.
    Relocation(Part<'a>),
}

/// An instruction and what a listing puts before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InsnLine<'a> {
    pub(super) part: Part<'a>,
    /// The slot, where the line begins with it.
    pub(super) slot: Option<u64>,
    /// The opcode, where bpftool shows it.
    pub(super) opcode: Option<u8>,
    /// The 8 or 16 bytes in little-endian order, where llvm-objdump shows them.
    pub(super) bytes: Option<Vec<u8>>,
}

/// Takes a line apart.
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
    /// What is left after the first `len` bytes.
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

    /// Without llvm-objdump's remark on a target, as ` <out+0x8>`.
    fn without_remark(self) -> Self {
        match self.text.rfind(" <") {
            Some(start) if self.text.ends_with('>') => self.take(start).trimmed(),
            _ => self,
        }
    }

    /// The text up to the first character that is not `wanted`, and the rest.
    fn split_while(self, wanted: impl Fn(char) -> bool) -> (Self, Self) {
        let end = self.text.find(|c| !wanted(c)).unwrap_or(self.text.len());
        (self.take(end), self.skip(end))
    }
}

/// Lines that belong to a listing and hold no instruction; the inner option is what they say.
fn heading(line: Part<'_>) -> Option<Option<Statement<'_>>> {
    if let Some(section) = line.strip_prefix("Disassembly of section ").and_then(|s| s.strip_suffix(":")) {
        return Some(Some(Statement::Section(section)));
    }
    if let Some(symbol) = symbol_heading(line) {
        return Some(Some(Statement::Label(symbol)));
    }
    let is_file = line.text.contains("file format elf64-bpf");
    // With BTF, bpftool heads every function with its prototype.
    let is_prototype = line.text.ends_with("):");
    // `bpftool prog dump xlated opcodes` shows the bytes on a line of their own.
    let is_bytes = hex_bytes(line).is_some_and(|(_, rest)| rest.text.is_empty());
    (is_file || is_prototype || is_bytes).then_some(None)
}

/// `0000000000000070 <name>:` or `<name>:`
fn symbol_heading(line: Part<'_>) -> Option<Part<'_>> {
    let (_, rest) = line.split_while(|c| c.is_ascii_hexdigit());
    rest.trimmed().strip_prefix("<")?.strip_suffix(">:")
}

/// A label at the start, and what follows it. A number with a colon is a slot.
fn label(line: Part<'_>) -> Option<(Part<'_>, Part<'_>)> {
    let (name, rest) = line.split_while(is_word);
    let is_name = name.text.starts_with(|c: char| !c.is_ascii_digit());
    let rest = rest.strip_prefix(":")?;
    is_name.then(|| (name, rest.trimmed()))
}

/// An instruction or a relocation, with or without what listings put before it; nothing if it is a CO-RE relocation,
/// which the loader applies.
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

/// `12:`, in hexadecimal before relocations.
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

/// `b7 00 00 00 02 00 00 00`, or 16 such bytes.
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
