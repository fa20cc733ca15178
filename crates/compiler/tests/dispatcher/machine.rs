//! Interpreter of the instructions that dispatchers use, after the Intel SDM. Any other instruction is a failure.

use std::collections::BTreeMap;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use paceline_compiler::native::TokenArgument;

/// Result of a run of the dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: u64,
    /// The new token, if it changed.
    pub(crate) token: Option<u64>,
    /// Increment of the host's counter.
    pub(crate) counted: u32,
}

pub(crate) struct Machine<'a> {
    bytes: &'a [u8],
    start: u64,
    registers: BTreeMap<Register, u64>,
    /// Operands of the last comparison.
    flags: (i64, i64),
    token: Register,
    counted: u32,
    /// Number of comparisons so far.
    pub(crate) compared: usize,
}

/// Initial contents of registers without an argument.
const ARGUMENT: u64 = 0x1111_2222_3333_4444;
const ARGUMENTS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];

impl<'a> Machine<'a> {
    pub(crate) fn new(bytes: &'a [u8], start: u64, key: u64) -> Self {
        Self::with_token(bytes, start, key, TokenArgument::Second)
    }

    pub(crate) fn with_token(bytes: &'a [u8], start: u64, key: u64, token: TokenArgument) -> Self {
        let mut registers: BTreeMap<_, _> =
            ARGUMENTS.into_iter().map(|register| (register, ARGUMENT)).collect();
        registers.insert(Register::RCX, key);
        let token = match token {
            TokenArgument::Second => Register::RSI,
            TokenArgument::Third => Register::RDX,
        };
        Self { bytes, start, registers, flags: (0, 0), token, counted: 0, compared: 0 }
    }

    pub(crate) fn run(&mut self) -> Place {
        let key = self.registers[&Register::RCX];
        let mut pc = self.start;
        let mut returns = None;
        let mut steps = 0;
        let address = loop {
            steps += 1;
            assert!(steps < 1000, "it comes to no end");
            let Some(bytes) = pc.checked_sub(self.start).and_then(|at| self.bytes.get(at as usize..)) else {
                break pc;
            };
            if bytes.is_empty() {
                break pc;
            }
            let insn = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode();
            match insn.mnemonic() {
                // A retpoline: the return address is overwritten before the return.
                Mnemonic::Call => {
                    returns = Some(insn.next_ip());
                    pc = insn.near_branch_target();
                    continue;
                }
                Mnemonic::Ret => break returns.expect("a call before"),
                Mnemonic::Mov if insn.memory_base() == Register::RSP => {
                    assert!(returns.is_some());
                    returns = Some(self.register(insn.op1_register()));
                }
                Mnemonic::Jmp if insn.op0_kind() == OpKind::Register => {
                    break self.register(insn.op0_register());
                }
                _ => {
                    pc = self.step(&insn);
                    continue;
                }
            }
            pc = insn.next_ip();
        };
        let mut token = None;
        for register in ARGUMENTS {
            let expected = if register == Register::RCX { key } else { ARGUMENT };
            let found = self.registers[&register];
            if register == self.token && found != expected {
                token = Some(found);
            } else {
                assert_eq!(found, expected, "{register:?}");
            }
        }
        Place { address, token, counted: self.counted }
    }

    fn step(&mut self, insn: &Instruction) -> u64 {
        let (left, right) = self.flags;
        let taken = match insn.mnemonic() {
            Mnemonic::Jmp => true,
            Mnemonic::Je => left == right,
            Mnemonic::Jg => left > right,
            Mnemonic::Cmp => {
                self.flags = (self.register(insn.op0_register()) as i64, self.value(insn) as i64);
                self.compared += 1;
                false
            }
            Mnemonic::Add => {
                let sum = self.register(insn.op0_register()).wrapping_add(self.value(insn));
                self.registers.insert(insn.op0_register(), sum);
                false
            }
            Mnemonic::Mov => {
                let value = self.value(insn);
                self.registers.insert(insn.op0_register().full_register(), value);
                false
            }
            Mnemonic::Inc => {
                assert_eq!(
                    (insn.memory_base(), insn.memory_displacement32()),
                    (Register::R9, super::COUNT as u32)
                );
                self.counted += 1;
                false
            }
            other => panic!("{other:?} at {:#x}", insn.ip()),
        };
        if taken { insn.near_branch_target() } else { insn.next_ip() }
    }

    /// Value of the second operand.
    fn value(&self, insn: &Instruction) -> u64 {
        match insn.op1_kind() {
            OpKind::Register => self.register(insn.op1_register()),
            _ => insn.immediate(1),
        }
    }

    fn register(&self, register: Register) -> u64 {
        *self.registers.get(&register).unwrap_or_else(|| panic!("{register:?} was not set"))
    }
}
