//! Filters as text.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::super::ancillary::Ancillary;
use super::super::insn::{LoadFrom, Operation, Register, Size, SockFilter};
use super::super::table::{Form, Row};

const LENGTH_TO_X: Operation = Operation::Load(Register::X, LoadFrom::Length);

/// The format of `tcpdump -d`, byte for byte.
#[must_use]
pub fn to_listing(insns: &[SockFilter]) -> String {
    let mut text = String::new();
    for (index, insn) in insns.iter().enumerate() {
        let (name, operand) = match insn.row() {
            // libpcap executes this one but has no name for it.
            Some(row) if row.operation == LENGTH_TO_X => ("unimp", format!("{:#x}", insn.code)),
            Some(row) => (row.name, operand(row, insn, index, false)),
            None => ("unimp", format!("{:#x}", insn.code)),
        };
        let _ = write!(text, "({index:03}) {name:<8} ");
        let next = index + 1;
        let _ = match insn.row().map(|row| row.operation) {
            Some(Operation::JumpIf(..)) => {
                let (jt, jf) = (next + usize::from(insn.jt), next + usize::from(insn.jf));
                writeln!(text, "{operand:<16} jt {jt}\tjf {jf}")
            }
            _ => writeln!(text, "{operand}"),
        };
    }
    text
}

/// The C array format of `tcpdump -dd`, byte for byte.
#[must_use]
pub fn to_c_array(insns: &[SockFilter]) -> String {
    insns.iter().fold(String::new(), |mut text, SockFilter { code, jt, jf, k }| {
        let _ = writeln!(text, "{{ {code:#x}, {jt}, {jf}, {k:#010x} }},");
        text
    })
}

/// The decimal format of `tcpdump -ddd`, byte for byte.
#[must_use]
pub fn to_decimal(insns: &[SockFilter]) -> String {
    let start = format!("{}\n", insns.len());
    insns.iter().fold(start, |mut text, SockFilter { code, jt, jf, k }| {
        let _ = writeln!(text, "{code} {jt} {jf} {k}");
        text
    })
}

/// The language of bpf_asm, which [`assemble`](super::assemble) can parse; labels are `l` and the index.
#[must_use]
pub fn to_asm(insns: &[SockFilter]) -> String {
    let targets: BTreeSet<usize> = insns.iter().enumerate().flat_map(|(i, insn)| targets(i, insn)).collect();
    let mut text = String::new();
    for (index, insn) in insns.iter().enumerate() {
        let label = if targets.contains(&index) { format!("l{index}:") } else { String::new() };
        let _ = write!(text, "{label:<8}");
        let Some(row) = insn.row() else {
            let _ = writeln!(text, "; no opcode {:#x}", insn.code);
            continue;
        };
        let _ = write!(text, "{}", row.name);
        let operand = operand(row, insn, index, true);
        let _ = match row.operation {
            _ if operand.is_empty() => writeln!(text),
            Operation::JumpIf(..) => {
                let next = index + 1;
                let (jt, jf) = (next + usize::from(insn.jt), next + usize::from(insn.jf));
                writeln!(text, " {operand}, l{jt}, l{jf}")
            }
            _ => writeln!(text, " {operand}"),
        };
    }
    text
}

fn targets(index: usize, insn: &SockFilter) -> Vec<usize> {
    let next = index + 1;
    match insn.row().map(|row| row.operation) {
        Some(Operation::Jump) => vec![next + insn.k as usize],
        Some(Operation::JumpIf(..)) => vec![next + usize::from(insn.jt), next + usize::from(insn.jf)],
        _ => Vec::new(),
    }
}

/// The operand in libpcap's syntax, or in bpf_asm's.
fn operand(row: &Row, insn: &SockFilter, index: usize, asm: bool) -> String {
    let k = insn.k;
    let signed = k.cast_signed();
    match row.form {
        Form::None => String::new(),
        Form::A if asm => "a".to_owned(),
        Form::A => String::new(),
        Form::X => "x".to_owned(),
        Form::Decimal => format!("#{signed}"),
        Form::Hex => format!("#{k:#x}"),
        Form::Length if asm => "#len".to_owned(),
        Form::Length => "#pktlen".to_owned(),
        Form::Absolute => match Ancillary::at(k) {
            Some(word) if !asm => format!("[{}]", word.listing_name()),
            Some(word) if is_word(row) => format!("#{}", word.name()),
            _ => format!("[{signed}]"),
        },
        Form::Indirect => format!("[x + {signed}]"),
        Form::HeaderLength => format!("4*([{signed}]&0xf)"),
        Form::Memory => format!("M[{signed}]"),
        Form::Target if asm => format!("l{}", index + 1 + k as usize),
        Form::Target => format!("{}", (index as u32 + 1).wrapping_add(k).cast_signed()),
    }
}

/// Whether it is the load that the assembler generates for an ancillary word's name.
fn is_word(row: &Row) -> bool {
    matches!(row.operation, Operation::Load(_, LoadFrom::Absolute(Size::W)))
}
