//! The table of classic instructions, with all their properties.
//!
//! The checker, converter, assembler and disassemblers use it. Opcodes are those of `chk_code_allowed` in `net/core/filter.c`; the
//! last column is the subset of `seccomp_check_filter` in `kernel/seccomp.c`.

use super::insn::{AluOp, Condition, LoadFrom, Operation, Register, Size, SockFilter, Source};

/// Syntax of an instruction's operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// No operand.
    None,
    /// `a`, which libpcap omits.
    A,
    /// `x`
    X,
    /// `#12`
    Decimal,
    /// `#0xc`
    Hex,
    /// `#pktlen`, or `#len` in bpf_asm.
    Length,
    /// `[12]`
    Absolute,
    /// `[x + 12]`
    Indirect,
    /// `4*([14]&0xf)`
    HeaderLength,
    /// `M[3]`
    Memory,
    /// The target of `ja`.
    Target,
}

/// One instruction of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Opcode.
    pub code: u16,
    /// Mnemonic.
    pub name: &'static str,
    /// Syntax of the operand.
    pub form: Form,
    /// Operation.
    pub operation: Operation,
    /// Whether seccomp's checker allows it; the socket filter's allows all.
    pub seccomp: bool,
}

const fn row(code: u16, name: &'static str, form: Form, operation: Operation, seccomp: bool) -> Row {
    Row { code, name, form, operation, seccomp }
}

/// The opcode bit for the index register as operand (`BPF_X`).
const X: u16 = 0x08;

const fn alu(code: u16, name: &'static str, op: AluOp, source: Source, form: Form) -> Row {
    row(code, name, form, Operation::Alu(op, source), !matches!(op, AluOp::Mod))
}

const fn jump(code: u16, name: &'static str, condition: Condition, source: Source) -> Row {
    let form = if matches!(source, Source::X) { Form::X } else { Form::Hex };
    row(code, name, form, Operation::JumpIf(condition, source), true)
}

/// Rows of arithmetic with a constant and with the index register.
macro_rules! alu {
    ($($code:literal $name:literal $op:ident $form:ident;)*) => {
        [$(
            alu($code, $name, AluOp::$op, Source::K, Form::$form),
            alu($code | X, $name, AluOp::$op, Source::X, Form::X),
        )*]
    };
}

macro_rules! jumps {
    ($($code:literal $name:literal $condition:ident;)*) => {
        [$(
            jump($code, $name, Condition::$condition, Source::K),
            jump($code | X, $name, Condition::$condition, Source::X),
        )*]
    };
}

static LOADS: &[Row] = &[
    row(0x20, "ld", Form::Absolute, Operation::Load(Register::A, LoadFrom::Absolute(Size::W)), true),
    row(0x28, "ldh", Form::Absolute, Operation::Load(Register::A, LoadFrom::Absolute(Size::H)), false),
    row(0x30, "ldb", Form::Absolute, Operation::Load(Register::A, LoadFrom::Absolute(Size::B)), false),
    row(0x40, "ld", Form::Indirect, Operation::Load(Register::A, LoadFrom::Indirect(Size::W)), false),
    row(0x48, "ldh", Form::Indirect, Operation::Load(Register::A, LoadFrom::Indirect(Size::H)), false),
    row(0x50, "ldb", Form::Indirect, Operation::Load(Register::A, LoadFrom::Indirect(Size::B)), false),
    row(0x80, "ld", Form::Length, Operation::Load(Register::A, LoadFrom::Length), true),
    row(0x00, "ld", Form::Hex, Operation::Load(Register::A, LoadFrom::Immediate), true),
    row(0x60, "ld", Form::Memory, Operation::Load(Register::A, LoadFrom::Memory), true),
    row(0x81, "ldx", Form::Length, Operation::Load(Register::X, LoadFrom::Length), true),
    row(0x01, "ldx", Form::Hex, Operation::Load(Register::X, LoadFrom::Immediate), true),
    row(0x61, "ldx", Form::Memory, Operation::Load(Register::X, LoadFrom::Memory), true),
    row(0xb1, "ldxb", Form::HeaderLength, Operation::Load(Register::X, LoadFrom::HeaderLength), false),
];

static ARITHMETIC: &[Row] = &alu! {
    0x04 "add" Add Decimal;
    0x14 "sub" Sub Decimal;
    0x24 "mul" Mul Decimal;
    0x34 "div" Div Decimal;
    0x94 "mod" Mod Decimal;
    0x44 "or" Or Hex;
    0x54 "and" And Hex;
    0xa4 "xor" Xor Hex;
    0x64 "lsh" Lsh Decimal;
    0x74 "rsh" Rsh Decimal;
};

static JUMPS: &[Row] = &jumps! {
    0x15 "jeq" Eq;
    0x25 "jgt" Gt;
    0x35 "jge" Ge;
    0x45 "jset" Set;
};

static OTHERS: &[Row] = &[
    row(0x02, "st", Form::Memory, Operation::Store(Register::A), true),
    row(0x03, "stx", Form::Memory, Operation::Store(Register::X), true),
    row(0x84, "neg", Form::None, Operation::Negate, true),
    row(0x05, "ja", Form::Target, Operation::Jump, true),
    row(0x06, "ret", Form::Decimal, Operation::Return, true),
    row(0x16, "ret", Form::A, Operation::ReturnA, true),
    row(0x07, "tax", Form::None, Operation::Tax, true),
    row(0x87, "txa", Form::None, Operation::Txa, true),
];

/// All instructions.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    [LOADS, ARITHMETIC, JUMPS, OTHERS].into_iter().flatten()
}

impl SockFilter {
    /// The instruction's row in the table; `None` for opcodes that do not exist.
    #[must_use]
    pub fn row(self) -> Option<&'static Row> {
        row_of(self.code)
    }
}

/// The row with an opcode.
#[must_use]
pub fn row_of(code: u16) -> Option<&'static Row> {
    rows().find(|row| row.code == code)
}

#[cfg(test)]
mod tests {
    use super::{row_of, rows};

    #[test]
    fn opcodes_are_told_apart() {
        for row in rows() {
            assert_eq!(row_of(row.code), Some(row));
        }
    }
}
