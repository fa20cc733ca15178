//! The checker: which programs are filters.
//!
//! The rules are those of `bpf_check_classic` and `check_load_and_stores` in `net/core/filter.c`, in Linux 2.0 to 3.14
//! `sk_chk_filter`, and of `seccomp_check_filter` in `kernel/seccomp.c`.

use super::ancillary::{ANCILLARY_OFFSET, Ancillary};
use super::insn::{AluOp, LoadFrom, MAX_INSNS, MAX_USER_INSNS, MEMORY_WORDS, Operation, SockFilter, Source};
use super::seccomp::SECCOMP_DATA_BYTES;

/// What a program is for, which decides what it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Looking at packets, in the kernel: jumps lead forward.
    Socket,
    /// Looking at packets outside of the kernel, as libpcap does (its `pcap_validate_filter`): `ja` may lead back, as in what
    /// it makes of `protochain`, programs may be longer, and scratch memory that nothing was stored to is 0.
    UserSpace,
    /// Looking at system calls (`struct seccomp_data`).
    Seccomp,
}

/// Why a program is no filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// It has no instructions or too many.
    #[error("a program has 1 to {limit} instructions, this one {len}")]
    Length {
        /// How many it has.
        len: usize,
        /// How many it may have.
        limit: usize,
    },
    /// An instruction breaks a rule.
    #[error("instruction {index}{}: {rule}", name(.insn))]
    Insn {
        /// Index of the instruction, from 0.
        index: usize,
        /// The instruction.
        insn: SockFilter,
        /// The rule.
        rule: Rule,
    },
}

fn name(insn: &SockFilter) -> String {
    insn.row().map(|row| format!(" ({})", row.name)).unwrap_or_default()
}

/// A rule that an instruction broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    /// No instruction has this opcode.
    #[error("there is no opcode {0:#x}")]
    Opcode(u16),
    /// Seccomp does not have this instruction.
    #[error("seccomp does not allow this instruction")]
    NotForSeccomp,
    /// The constant is zero.
    #[error("division by the constant 0")]
    DivisionByZero,
    /// The constant is 32 or more.
    #[error("shift by {0} bits, more than 31")]
    Shift(u32),
    /// The index is 16 or more.
    #[error("scratch memory has words 0 to 15, not {0}")]
    MemoryWord(u32),
    /// On some path nothing was stored to the word.
    #[error("M[{0}] is read and not written on every path before")]
    MemoryUnset(u32),
    /// The target is outside of the program, or leads back where it may not: distances have no sign then.
    #[error("jumps to instruction {target} of a program of {len}")]
    JumpTarget {
        /// Instruction that it leads to.
        target: i64,
        /// Instructions of the program.
        len: usize,
    },
    /// A negative offset from -0x1000 on that is no ancillary word.
    #[error("there is no ancillary word at SKF_AD_OFF + {0}")]
    Ancillary(u32),
    /// The last instruction goes on.
    #[error("the last instruction must be a return")]
    LastNoReturn,
    /// An offset that is not of a 32-bit word in `struct seccomp_data`.
    #[error("offset {0} is not that of a word in the {SECCOMP_DATA_BYTES} bytes of seccomp_data")]
    SeccompOffset(u32),
}

/// A program that passed the checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    insns: Vec<SockFilter>,
    purpose: Purpose,
}

impl Filter {
    /// Checks a program.
    ///
    /// # Errors
    /// The first instruction that breaks a rule, in the order in which the kernel looks.
    pub fn new(insns: Vec<SockFilter>, purpose: Purpose) -> Result<Self, CheckError> {
        let limit = if purpose == Purpose::UserSpace { MAX_USER_INSNS } else { MAX_INSNS };
        if !(1..=limit).contains(&insns.len()) {
            return Err(CheckError::Length { len: insns.len(), limit });
        }
        let broken = |index: usize, rule| CheckError::Insn { index, insn: insns[index], rule };
        for (index, insn) in insns.iter().enumerate() {
            check_insn(*insn, index, insns.len(), purpose).map_err(|rule| broken(index, rule))?;
        }
        let last = insns.len() - 1;
        match insns[last].row().map(|row| row.operation) {
            Some(Operation::Return | Operation::ReturnA) => {}
            _ => return Err(broken(last, Rule::LastNoReturn)),
        }
        if purpose != Purpose::UserSpace {
            check_memory(&insns).map_err(|(index, word)| broken(index, Rule::MemoryUnset(word)))?;
        }
        Ok(Self { insns, purpose })
    }

    /// Its instructions.
    #[must_use]
    pub fn insns(&self) -> &[SockFilter] {
        &self.insns
    }

    /// What it was checked for.
    #[must_use]
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Its instructions with what each does.
    pub(super) fn operations(&self) -> impl Iterator<Item = (SockFilter, Operation)> {
        self.insns.iter().filter_map(|insn| Some((*insn, insn.row()?.operation)))
    }
}

fn check_insn(insn: SockFilter, index: usize, len: usize, purpose: Purpose) -> Result<(), Rule> {
    let row = insn.row().ok_or(Rule::Opcode(insn.code))?;
    let SockFilter { jt, jf, k, .. } = insn;
    match row.operation {
        Operation::Alu(AluOp::Div | AluOp::Mod, Source::K) if k == 0 => return Err(Rule::DivisionByZero),
        Operation::Alu(AluOp::Lsh | AluOp::Rsh, Source::K) if k >= 32 => return Err(Rule::Shift(k)),
        Operation::Load(_, LoadFrom::Memory) | Operation::Store(_) if k as usize >= MEMORY_WORDS => {
            return Err(Rule::MemoryWord(k));
        }
        Operation::Jump => check_target(index, distance(k, purpose), len)?,
        Operation::JumpIf(..) => {
            check_target(index, jt.into(), len)?;
            check_target(index, jf.into(), len)?;
        }
        Operation::Load(_, LoadFrom::Absolute(_)) if purpose == Purpose::Seccomp => {
            let is_word = k < SECCOMP_DATA_BYTES && k.is_multiple_of(4);
            return match (row.seccomp, is_word) {
                (false, _) => Err(Rule::NotForSeccomp),
                (true, false) => Err(Rule::SeccompOffset(k)),
                (true, true) => Ok(()),
            };
        }
        Operation::Load(_, LoadFrom::Absolute(_))
            if purpose == Purpose::Socket && k >= ANCILLARY_OFFSET && Ancillary::at(k).is_none() =>
        {
            return Err(Rule::Ancillary(k - ANCILLARY_OFFSET));
        }
        _ => {}
    }
    if purpose == Purpose::Seccomp && !row.seccomp {
        return Err(Rule::NotForSeccomp);
    }
    Ok(())
}

/// How far `ja` leads.
pub(super) fn distance(k: u32, purpose: Purpose) -> i64 {
    if purpose == Purpose::UserSpace { k.cast_signed().into() } else { k.into() }
}

fn check_target(index: usize, distance: i64, len: usize) -> Result<(), Rule> {
    let target = index as i64 + 1 + distance;
    if (0..len as i64).contains(&target) { Ok(()) } else { Err(Rule::JumpTarget { target, len }) }
}

/// The first load of a word that need not have been stored to. Jumps go forward only, so one pass will do.
///
/// As in the kernel what follows a return is taken to come after it, so that some programs are refused that never
/// read an unset word; verdicts are to be the kernel's.
fn check_memory(insns: &[SockFilter]) -> Result<(), (usize, u32)> {
    const ALL: u16 = u16::MAX;
    let mut on_entry = vec![ALL; insns.len()];
    let mut set = 0;
    for (index, insn) in insns.iter().enumerate() {
        set &= on_entry[index];
        let word = 1u16.checked_shl(insn.k).unwrap_or(0);
        let mut reach = |distance: usize| {
            if let Some(mask) = on_entry.get_mut(index + 1 + distance) {
                *mask &= set;
            }
        };
        match insn.row().map(|row| row.operation) {
            Some(Operation::Store(_)) => set |= word,
            Some(Operation::Load(_, LoadFrom::Memory)) if set & word == 0 => return Err((index, insn.k)),
            Some(Operation::Jump) => {
                reach(insn.k as usize);
                set = ALL;
            }
            Some(Operation::JumpIf(..)) => {
                reach(insn.jt.into());
                reach(insn.jf.into());
                set = ALL;
            }
            _ => {}
        }
    }
    Ok(())
}
