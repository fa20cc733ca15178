//! The checker of filters.
//!
//! The rules are those of `bpf_check_classic` and `check_load_and_stores` in `net/core/filter.c` (`sk_chk_filter` in Linux 2.0 to
//! 3.14), and of `seccomp_check_filter` in `kernel/seccomp.c`.

use super::ancillary::{ANCILLARY_OFFSET, Ancillary};
use super::insn::{AluOp, LoadFrom, MAX_INSNS, MAX_USER_INSNS, MEMORY_WORDS, Operation, SockFilter, Source};
use super::seccomp::SECCOMP_DATA_BYTES;

/// Purpose of a program, which determines the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A packet filter in the kernel: jumps are forward only.
    Socket,
    /// A packet filter in user space, as in libpcap (`pcap_validate_filter`): `ja` may jump backward, as in code for `protochain`,
    /// and programs may be longer. Scratch memory is uninitialized there, too.
    UserSpace,
    /// A filter of system calls (`struct seccomp_data`).
    Seccomp,
}

/// Reasons to refuse a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The program has no instructions or too many.
    #[error("a program has 1 to {limit} instructions, this one {len}")]
    Length {
        /// Number of instructions.
        len: usize,
        /// Maximum number of instructions.
        limit: usize,
    },
    /// An instruction violates a rule.
    #[error("instruction {index}{}: {rule}", name(.insn))]
    Insn {
        /// Index of the instruction, from 0.
        index: usize,
        /// The instruction.
        insn: SockFilter,
        /// The violated rule.
        rule: Rule,
    },
}

fn name(insn: &SockFilter) -> String {
    insn.row().map(|row| format!(" ({})", row.name)).unwrap_or_default()
}

/// A rule that an instruction violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rule {
    /// The opcode does not exist.
    #[error("there is no opcode {0:#x}")]
    Opcode(u16),
    /// Seccomp does not allow the instruction.
    #[error("seccomp does not allow this instruction")]
    NotForSeccomp,
    /// The divisor is the constant zero.
    #[error("division by the constant 0")]
    DivisionByZero,
    /// The shift count is a constant of 32 or more.
    #[error("shift by {0} bits, more than 31")]
    Shift(u32),
    /// The index of the scratch memory word is 16 or more.
    #[error("scratch memory has words 0 to 15, not {0}")]
    MemoryWord(u32),
    /// The word is uninitialized on some path.
    #[error("M[{0}] is read and not written on every path before")]
    MemoryUnset(u32),
    /// The target is outside of the program. Without [`Purpose::UserSpace`] distances are unsigned, so jumps cannot go backward.
    #[error("jumps to instruction {target} of a program of {len}")]
    JumpTarget {
        /// Target instruction.
        target: i64,
        /// Number of instructions of the program.
        len: usize,
    },
    /// An offset of -0x1000 or above that is no ancillary word.
    #[error("there is no ancillary word at SKF_AD_OFF + {0}")]
    Ancillary(u32),
    /// The last instruction is no return.
    #[error("the last instruction must be a return")]
    LastNoReturn,
    /// An offset that is no 32-bit word of `struct seccomp_data`.
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
    /// The first instruction that violates a rule, in the kernel's order of checks.
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
        check_memory(&insns, purpose).map_err(|(index, word)| broken(index, Rule::MemoryUnset(word)))?;
        Ok(Self { insns, purpose })
    }

    /// The instructions.
    #[must_use]
    pub fn insns(&self) -> &[SockFilter] {
        &self.insns
    }

    /// The purpose that the program was checked for.
    #[must_use]
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// The instructions with their operations.
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

/// Signed distance of `ja`.
pub(super) fn distance(k: u32, purpose: Purpose) -> i64 {
    if purpose == Purpose::UserSpace { k.cast_signed().into() } else { k.into() }
}

fn check_target(index: usize, distance: i64, len: usize) -> Result<(), Rule> {
    let target = index as i64 + 1 + distance;
    if (0..len as i64).contains(&target) { Ok(()) } else { Err(Rule::JumpTarget { target, len }) }
}

/// The first load of a word that may be uninitialized.
///
/// In the kernel, jumps are forward only, so one pass suffices, and the instruction after a return counts as its successor, so some programs
/// are refused that never read an uninitialized word; results must be the same as the kernel's.
fn check_memory(insns: &[SockFilter], purpose: Purpose) -> Result<(), (usize, u32)> {
    let mut known = Known { on_entry: vec![ALL; insns.len()], has_changed: true };
    while std::mem::take(&mut known.has_changed) {
        let unset = known.pass(insns, purpose);
        if !known.has_changed {
            return unset;
        }
    }
    Ok(())
}

/// Words that are written on every path to an instruction, a bit each.
struct Known {
    on_entry: Vec<u16>,
    /// Whether a jump went back to an instruction at which fewer are written than before.
    has_changed: bool,
}

const ALL: u16 = u16::MAX;

impl Known {
    fn reach(&mut self, from: usize, distance: i64, set: u16) {
        let target = usize::try_from(from as i64 + 1 + distance).ok();
        let Some((target, mask)) = target.and_then(|at| Some((at, self.on_entry.get_mut(at)?))) else {
            return;
        };
        self.has_changed |= target <= from && *mask & !set != 0;
        *mask &= set;
    }

    /// Follows all instructions in order; the first load that may read a word before it is written.
    fn pass(&mut self, insns: &[SockFilter], purpose: Purpose) -> Result<(), (usize, u32)> {
        let (mut set, mut unset) = (0, Ok(()));
        for (index, insn) in insns.iter().enumerate() {
            set &= self.on_entry[index];
            self.on_entry[index] = set;
            let word = 1u16.checked_shl(insn.k).unwrap_or(0);
            match insn.row().map(|row| row.operation) {
                Some(Operation::Store(_)) => set |= word,
                Some(Operation::Load(_, LoadFrom::Memory)) if set & word == 0 => {
                    unset = unset.and(Err((index, insn.k)));
                }
                Some(Operation::Jump) => {
                    self.reach(index, distance(insn.k, purpose), set);
                    set = ALL;
                }
                Some(Operation::JumpIf(..)) => {
                    self.reach(index, insn.jt.into(), set);
                    self.reach(index, insn.jf.into(), set);
                    set = ALL;
                }
                Some(Operation::Return | Operation::ReturnA) if purpose == Purpose::UserSpace => set = ALL,
                _ => {}
            }
        }
        unset
    }
}
