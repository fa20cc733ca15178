//! Native code, instruction by instruction, in the syntax of binutils, as bpftool prints the kernel's.

use std::io::{self, Write};
use std::ops::Range;

use iced_x86::{
    Decoder, DecoderOptions, Formatter, GasFormatter, Instruction, Mnemonic, SymbolResolver, SymbolResult,
};
use paceline::{DispatcherCode, NativeCode, NativeFunction};
use serde_json::{Value as Json, json};

/// The native code of a program.
pub(crate) struct Native {
    /// Its address in memory.
    pub(super) address: u64,
    /// Bytes, the space between functions included.
    pub(super) len: usize,
    /// By rising offset.
    pub(super) functions: Vec<Function>,
}

/// A function of a program.
pub(super) struct Function {
    pub(super) name: String,
    /// Its place, in bytes from the start of the code.
    pub(super) range: Range<u32>,
    pub(super) insns: Vec<Insn>,
}

/// An instruction.
pub(super) struct Insn {
    /// In bytes from the start of the code.
    pub(super) offset: u32,
    pub(super) bytes: Vec<u8>,
    pub(super) text: String,
    /// The slot of its BPF instruction; none in prologue and epilogue.
    pub(super) slot: Option<usize>,
}

/// Code, whatever it is of.
struct Code<'a> {
    address: u64,
    bytes: &'a [u8],
    functions: &'a [NativeFunction],
    /// The name of an address outside of the code.
    symbol: &'a dyn Fn(u64) -> Option<String>,
}

impl Native {
    pub(super) fn new(code: &NativeCode<'_>) -> Self {
        let (address, bytes, functions) = (code.address(), code.bytes(), code.functions());
        Self::of(&Code { address, bytes, functions, symbol: &|address| code.symbol(address) })
    }

    pub(super) fn of_dispatcher(code: &DispatcherCode) -> Self {
        let (address, bytes, functions) = (code.address(), code.bytes(), code.functions());
        Self::of(&Code { address, bytes, functions, symbol: &|address| code.symbol(address) })
    }

    fn of(code: &Code<'_>) -> Self {
        let functions = code.functions.iter().map(|function| decode(code, function)).collect();
        Self { address: code.address, len: code.bytes.len(), functions }
    }

    pub(super) fn to_json(&self) -> Json {
        json!({
            "address": format!("{:#x}", self.address),
            "length": self.len,
            "functions": self.functions.iter().map(Function::to_json).collect::<Json>(),
        })
    }
}

impl Function {
    fn to_json(&self) -> Json {
        json!({
            "name": self.name,
            "offset": self.range.start,
            "length": self.range.len(),
            "instructions": self.insns.iter().map(Insn::to_json).collect::<Json>(),
        })
    }
}

impl Insn {
    pub(super) fn write(&self, out: &mut dyn Write, opcodes: bool) -> io::Result<()> {
        write!(out, "{:6x}: ", self.offset)?;
        if opcodes {
            let bytes: Vec<_> = self.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            write!(out, "{:<29}  ", bytes.join(" "))?;
        }
        writeln!(out, "{}", self.text)
    }

    fn to_json(&self) -> Json {
        let bytes: String = self.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut json = json!({ "offset": self.offset, "bytes": bytes, "text": self.text });
        if let Some(slot) = self.slot {
            json["slot"] = slot.into();
        }
        json
    }
}

fn decode(code: &Code<'_>, function: &NativeFunction) -> Function {
    let range = function.start..function.start.saturating_add(function.len);
    let bytes = code.bytes.get(range.start as usize..range.end as usize).unwrap_or_default();
    let insns =
        if cfg!(target_arch = "x86_64") { decoded(code, function, bytes) } else { words(function, bytes) };
    Function { name: function.name.clone(), range, insns }
}

/// The instructions of a machine for which there is no decoder here, in the assembler's directive for them. All have four bytes.
fn words(function: &NativeFunction, bytes: &[u8]) -> Vec<Insn> {
    let insn = |(offset, bytes): (u32, &[u8])| {
        let word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        let slot = function.map.slot(offset).map(|slot| slot as usize);
        // Zeros pad the space between functions.
        (word != 0).then(|| Insn {
            offset,
            bytes: bytes.to_vec(),
            text: format!(".inst  {word:#010x}"),
            slot,
        })
    };
    (function.start..).step_by(4).zip(bytes.chunks(4)).filter_map(insn).collect()
}

fn decoded(code: &Code<'_>, function: &NativeFunction, bytes: &[u8]) -> Vec<Insn> {
    let start = code.address + u64::from(function.start);
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut formatter = formatter(Names::of(code));
    let mut insns = Vec::new();
    let mut insn = Instruction::default();
    while decoder.can_decode() {
        let start = decoder.position();
        decoder.decode_out(&mut insn);
        // Padding before aligned targets, never reached.
        if insn.mnemonic() == Mnemonic::Int3 {
            continue;
        }
        let bytes = bytes.get(start..decoder.position()).unwrap_or_default();
        let mut text = String::new();
        formatter.format(&insn, &mut text);
        let offset = function.start + start as u32;
        let slot = function.map.slot(offset).map(|slot| slot as usize);
        insns.push(Insn { offset, bytes: bytes.to_vec(), text, slot });
    }
    insns
}

fn formatter(names: Names) -> GasFormatter {
    let mut formatter = GasFormatter::with_options(Some(Box::new(names)), None);
    let options = formatter.options_mut();
    options.set_first_operand_char_index(7);
    options.set_uppercase_hex(false);
    options.set_signed_immediate_operands(true);
    formatter
}

/// Names in the place of addresses.
struct Names {
    code: Range<u64>,
    functions: Vec<(u64, String)>,
    outside: Vec<(u64, String)>,
}

impl Names {
    /// The formatter borrows its symbols, so all addresses are looked up first.
    fn of(code: &Code<'_>) -> Self {
        let start = code.address;
        let function = |function: &NativeFunction| (start + u64::from(function.start), function.name.clone());
        Self {
            code: start..start + code.bytes.len() as u64,
            functions: code.functions.iter().map(function).collect(),
            outside: addresses(code).filter_map(|address| Some((address, (code.symbol)(address)?))).collect(),
        }
    }
}

/// All addresses in the code that are none of its own.
fn addresses(code: &Code<'_>) -> impl Iterator<Item = u64> {
    let insns = Decoder::with_ip(64, code.bytes, code.address, DecoderOptions::NONE);
    insns.into_iter().flat_map(|insn| {
        let immediates = (0..insn.op_count()).filter_map(move |operand| insn.try_immediate(operand).ok());
        immediates.chain([insn.near_branch_target(), insn.memory_displacement64()])
    })
}

impl SymbolResolver for Names {
    fn symbol(
        &mut self,
        _: &Instruction,
        _: u32,
        _: Option<u32>,
        address: u64,
        _: u32,
    ) -> Option<SymbolResult<'_>> {
        let named = self.functions.iter().chain(&self.outside).find(|(known, _)| *known == address);
        let text = match named {
            Some((_, name)) => name.clone(),
            // Jump targets are shown by the line numbers of the listing.
            None if self.code.contains(&address) => format!("{:x}", address - self.code.start),
            None => return None,
        };
        Some(SymbolResult::with_string(address, text))
    }
}
