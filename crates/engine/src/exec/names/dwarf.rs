//! Minimal DWARF 4 for functions and source lines of a piece of code.

use std::sync::Arc;

use crate::exec::code::Function;
use crate::exec::registry::Installed;

/// Contents of `.debug_abbrev`, `.debug_info` and `.debug_line`; all empty if no function has lines.
#[derive(Default)]
pub(super) struct Sections {
    pub(super) abbrev: Vec<u8>,
    pub(super) info: Vec<u8>,
    pub(super) line: Vec<u8>,
}

const VERSION: u16 = 4;

const DW_TAG_COMPILE_UNIT: u8 = 0x11;
const DW_TAG_SUBPROGRAM: u8 = 0x2e;
const DW_AT_NAME: u8 = 0x03;
const DW_AT_STMT_LIST: u8 = 0x10;
const DW_AT_LOW_PC: u8 = 0x11;
const DW_AT_HIGH_PC: u8 = 0x12;
const DW_AT_LANGUAGE: u8 = 0x13;
const DW_FORM_ADDR: u8 = 0x01;
const DW_FORM_DATA2: u8 = 0x05;
const DW_FORM_DATA8: u8 = 0x07;
const DW_FORM_STRING: u8 = 0x08;
const DW_FORM_SEC_OFFSET: u8 = 0x17;
const DW_LANG_C99: u16 = 0x0c;

const DW_LNS_COPY: u8 = 1;
const DW_LNS_ADVANCE_PC: u8 = 2;
const DW_LNS_ADVANCE_LINE: u8 = 3;
const DW_LNS_SET_FILE: u8 = 4;
const DW_LNE_END_SEQUENCE: u8 = 1;
const DW_LNE_SET_ADDRESS: u8 = 2;
/// Number of operands of the standard opcodes 1 to 12.
const OPERANDS: [u8; 12] = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];

pub(super) fn sections(code: &Installed) -> Sections {
    let files = files(&code.functions);
    let Some(first) = files.first() else { return Sections::default() };
    Sections { abbrev: abbrev(), info: info(code, first), line: line(code, &files) }
}

/// The source files, without duplicates.
fn files(functions: &[Function]) -> Vec<Arc<str>> {
    let mut files = Vec::new();
    for line in functions.iter().flat_map(|function| function.lines.iter()) {
        if !files.contains(&line.file) {
            files.push(Arc::clone(&line.file));
        }
    }
    files
}

fn abbrev() -> Vec<u8> {
    let mut abbrev = vec![1, DW_TAG_COMPILE_UNIT, 1];
    abbrev.extend([DW_AT_NAME, DW_FORM_STRING, DW_AT_LANGUAGE, DW_FORM_DATA2]);
    abbrev.extend([DW_AT_LOW_PC, DW_FORM_ADDR, DW_AT_HIGH_PC, DW_FORM_DATA8]);
    abbrev.extend([DW_AT_STMT_LIST, DW_FORM_SEC_OFFSET, 0, 0]);
    abbrev.extend([2, DW_TAG_SUBPROGRAM, 0, DW_AT_NAME, DW_FORM_STRING]);
    abbrev.extend([DW_AT_LOW_PC, DW_FORM_ADDR, DW_AT_HIGH_PC, DW_FORM_DATA8, 0, 0]);
    abbrev.push(0);
    abbrev
}

fn info(code: &Installed, first_file: &str) -> Vec<u8> {
    let mut unit = Vec::new();
    unit.extend(VERSION.to_ne_bytes());
    unit.extend(0_u32.to_ne_bytes());
    unit.extend([8, 1]);
    push_string(&mut unit, first_file);
    unit.extend(DW_LANG_C99.to_ne_bytes());
    unit.extend((code.range.start as u64).to_ne_bytes());
    unit.extend((code.range.len() as u64).to_ne_bytes());
    unit.extend(0_u32.to_ne_bytes());
    for function in &*code.functions {
        unit.push(2);
        push_string(&mut unit, &function.name);
        unit.extend((code.range.start as u64 + u64::from(function.start)).to_ne_bytes());
        unit.extend(u64::from(function.len).to_ne_bytes());
    }
    unit.push(0);
    with_length(unit)
}

fn line(code: &Installed, files: &[Arc<str>]) -> Vec<u8> {
    // Minimum instruction length 1, one operation per instruction, default is_stmt 1, no special opcodes.
    let mut header = vec![1, 1, 1, 0, 1, OPERANDS.len() as u8 + 1];
    header.extend(OPERANDS);
    header.push(0);
    for file in files {
        push_string(&mut header, file);
        header.extend([0, 0, 0]);
    }
    header.push(0);
    let mut unit = VERSION.to_ne_bytes().to_vec();
    unit.extend(with_length(header));
    for function in &*code.functions {
        sequence(&mut unit, code.range.start as u64, function, files);
    }
    with_length(unit)
}

/// The line table rows of one function.
fn sequence(unit: &mut Vec<u8>, start: u64, function: &Function, files: &[Arc<str>]) {
    let rows = function.rows();
    let Some(&(first, _)) = rows.first() else { return };
    unit.extend([0, 9, DW_LNE_SET_ADDRESS]);
    unit.extend((start + u64::from(first)).to_ne_bytes());
    let (mut offset, mut line) = (first, 1);
    for (next, source) in rows {
        // The caller gives all files of its functions; a row of another one is left out.
        let Some(file) = files.iter().position(|file| *file == source.file) else { continue };
        unit.push(DW_LNS_SET_FILE);
        push_unsigned(unit, file as u64 + 1);
        unit.push(DW_LNS_ADVANCE_PC);
        push_unsigned(unit, u64::from(next - offset));
        unit.push(DW_LNS_ADVANCE_LINE);
        push_signed(unit, i64::from(source.line) - line);
        unit.push(DW_LNS_COPY);
        (offset, line) = (next, i64::from(source.line));
    }
    unit.push(DW_LNS_ADVANCE_PC);
    push_unsigned(unit, u64::from(function.start.saturating_add(function.len) - offset));
    unit.extend([0, 1, DW_LNE_END_SEQUENCE]);
}

fn with_length(unit: Vec<u8>) -> Vec<u8> {
    let mut whole = (unit.len() as u32).to_ne_bytes().to_vec();
    whole.extend(unit);
    whole
}

fn push_string(bytes: &mut Vec<u8>, string: &str) {
    bytes.extend(string.bytes().take_while(|&byte| byte != 0));
    bytes.push(0);
}

/// LEB128.
fn push_unsigned(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Signed LEB128.
fn push_signed(bytes: &mut Vec<u8>, mut value: i64) {
    while !(-0x40..0x40).contains(&value) {
        bytes.push(value as u8 & 0x7f | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8 & 0x7f);
}
