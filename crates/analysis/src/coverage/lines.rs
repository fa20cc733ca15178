//! How often each source line ran.
//!
//! Line information gives each instruction a line and a column, and nothing says which instructions are one statement: the compiler copies
//! statements (inlining, unrolling) and mixes those of neighbouring lines. So instructions of one line, column and operation are copies of
//! one part of the line. A part runs as often as all its copies together, and the line as often as the part that runs most often: the
//! condition of a loop's head, the whole of a line with one statement. `llvm-cov` counts lines alike, by the regions of their source.
//!
//! Line information holds until its next entry. At a join, instructions without an entry of their own belong to no line: LLVM's
//! copies for phi nodes have none, and would count for whichever line stands before them.

use std::collections::{BTreeMap, HashMap, HashSet};

use paceline_isa::{AluOp, Callee, Condition, Imm64, Insn, Operand, Reg, Width};
use paceline_spec::{LineInfo, ProgramSpec};

use crate::coverage::counts::{BlockCount, Counts};

/// File and line of an instruction.
pub(crate) type Place<'a> = (&'a str, u32);

/// File and line of an entry of the line information.
pub(crate) fn place(entry: &LineInfo) -> Place<'_> {
    (&entry.file, entry.line)
}

/// The entry of a slot; compilers use line 0 for code without a line.
fn entry(spec: &ProgramSpec, slot: usize) -> Option<&LineInfo> {
    spec.line_of(slot).filter(|line| line.line > 0)
}

/// The entry of the line information that each slot belongs to. An entry holds until the next one. Instructions that the compiler made
/// without a line have none of their own: at the start of a block they belong to a line if control can come from that line only.
pub(crate) fn entries(counts: &Counts) -> Vec<Option<&LineInfo>> {
    let spec = &counts.program;
    let mut entries: Vec<_> = (0..counts.insns.len()).map(|slot| entry(spec, slot)).collect();
    // Code without a line may follow code without one.
    while without_line(counts, &mut entries) {}
    entries
}

/// Takes the line from code that has none; whether there was some.
fn without_line(counts: &Counts, entries: &mut [Option<&LineInfo>]) -> bool {
    let mut found = false;
    for block in &counts.blocks {
        let Some(inherited) = entries.get(block.start).copied().flatten() else { continue };
        let comes_from = |(from, _): &(usize, u64)| {
            let from = counts.blocks.get(*from)?;
            entries.get(from.last).copied().flatten().map(place)
        };
        let is_line = |from: &(usize, u64)| comes_from(from) == Some(place(inherited));
        if inherited.slot == block.start || block.from.iter().all(is_line) {
            continue;
        }
        let slots = entries.get_mut(block.start..block.end).into_iter().flatten();
        let without = slots.take_while(|entry| entry.is_some_and(|entry| entry.slot == inherited.slot));
        without.for_each(|entry| *entry = None);
        found = true;
    }
    found
}

/// A part of a line: its place and column, and its operation without registers, offsets and targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Part<'a> {
    place: Place<'a>,
    column: u32,
    operation: Insn,
}

/// An instruction as a part of its line: the part, and what it is but for the registers that it computes in.
type Exact<'a> = (Part<'a>, Insn);

/// The last entry of a block: its slot, and what it has up to there.
#[derive(Clone, Debug)]
struct LastEntry<'a> {
    slot: usize,
    parts: HashSet<Part<'a>>,
    instructions: HashSet<Exact<'a>>,
}

impl<'a> LastEntry<'a> {
    fn of(entry: &LineInfo) -> Self {
        Self { slot: entry.slot, parts: HashSet::new(), instructions: HashSet::new() }
    }

    /// Whether an instruction with which the entry goes on in a further block is no copy of what it has.
    fn goes_on(&self, entry: &LineInfo, of: &Exact<'a>) -> bool {
        let is_copy = is_effect(&of.1) && self.instructions.contains(of);
        self.slot == entry.slot && self.parts.contains(&of.0) && !is_copy
    }
}

/// How often the lines of a program ran; `entries` are those of its slots.
pub(crate) fn line_counts<'a>(counts: &Counts, entries: &[Option<&'a LineInfo>]) -> BTreeMap<Place<'a>, u64> {
    let mut parts: HashMap<Part<'a>, u64> = HashMap::new();
    let mut before: Option<LastEntry<'a>> = None;
    for (index, block) in counts.blocks.iter().enumerate() {
        let (copies, last) = copies(counts, entries, block, before);
        for (part, times) in copies {
            let within = if is_branch(&part.operation) { within(counts, entries, index, &part) } else { 0 };
            *parts.entry(part).or_default() += times * block.count.saturating_sub(within);
        }
        before = last;
    }
    // Constants and copies of registers may be anywhere before their use: they count where a line has nothing else.
    let (mut lines, mut moves) = (BTreeMap::new(), BTreeMap::new());
    for (Part { place, operation, .. }, count) in parts {
        let lines = if is_move(&operation) { &mut moves } else { &mut lines };
        let line: &mut u64 = lines.entry(place).or_default();
        *line = count.max(*line);
    }
    for (place, count) in moves {
        lines.entry(place).or_insert(count);
    }
    lines
}

/// The parts in a block, each with its number of copies there.
///
/// Two accesses or calls that are equal to the last bit are copies: once would do for one statement. Others are copies if they have
/// entries of their own: one statement may load at several offsets, and shift and combine what it loads. So it is where an entry goes on
/// in a further block.
fn copies<'a>(
    counts: &Counts,
    entries: &[Option<&'a LineInfo>],
    block: &BlockCount,
    before: Option<LastEntry<'a>>,
) -> (HashMap<Part<'a>, u64>, Option<LastEntry<'a>>) {
    // The copies of an instruction, and the slot of the entry of the last one.
    let mut same: HashMap<Exact<'a>, (u64, usize)> = HashMap::new();
    let mut last = before.clone();
    for slot in block.start..block.end {
        let Some(insn) = counts.code.get(slot) else { continue };
        let Some(entry) = entries.get(slot).copied().flatten() else {
            last = None;
            continue;
        };
        let part = Part { place: place(entry), column: entry.column, operation: operation(insn) };
        let exact = (part, exact(insn));
        let here = last.get_or_insert_with(|| LastEntry::of(entry));
        if here.slot != entry.slot {
            *here = LastEntry::of(entry);
        }
        here.parts.insert(part);
        here.instructions.insert(exact);
        if before.as_ref().is_some_and(|before| before.goes_on(entry, &exact)) {
            continue;
        }
        let (copies, of) = same.entry(exact).or_insert((0, usize::MAX));
        if is_effect(insn) || *of != entry.slot {
            (*copies, *of) = (*copies + 1, entry.slot);
        }
    }
    let mut parts = HashMap::new();
    for ((part, _), (copies, _)) in same {
        let most: &mut u64 = parts.entry(part).or_default();
        *most = copies.max(*most);
    }
    (parts, last)
}

/// How often control comes to the branch of a block from an earlier one of the same part, and stays in the line: a `switch` is a row of them.
fn within(counts: &Counts, entries: &[Option<&LineInfo>], index: usize, part: &Part<'_>) -> u64 {
    let Some(block) = counts.blocks.get(index) else { return 0 };
    let at = |slot: usize| entries.get(slot).copied().flatten();
    if !(block.start..block.end).all(|slot| at(slot).is_some_and(|entry| place(entry) == part.place)) {
        return 0;
    }
    let is_same = |from: usize| {
        let branch = counts.blocks.get(from).map(|from| from.last).filter(|_| from < index);
        branch.is_some_and(|slot| {
            counts.code.get(slot).is_some_and(is_branch)
                && at(slot).is_some_and(|entry| place(entry) == part.place && entry.column == part.column)
        })
    };
    block.from.iter().filter(|(from, _)| is_same(*from)).map(|(_, times)| times).sum()
}

fn is_branch(insn: &Insn) -> bool {
    matches!(insn, Insn::JumpIf { .. })
}

/// Whether an instruction accesses memory or calls.
fn is_effect(insn: &Insn) -> bool {
    matches!(
        insn,
        Insn::Load { .. }
            | Insn::Store { .. }
            | Insn::Atomic { .. }
            | Insn::LoadAcquire { .. }
            | Insn::StoreRelease { .. }
            | Insn::LoadPacket { .. }
            | Insn::Call(_)
            | Insn::CallReg(_)
    )
}

/// Whether an instruction computes nothing: it moves a value into a register or control to another place, or keeps a register on the stack.
fn is_move(operation: &Insn) -> bool {
    match operation {
        Insn::Alu { op: AluOp::Mov, .. } | Insn::LoadImm64 { .. } => true,
        Insn::Load { base, .. } | Insn::Store { base, .. } => *base == Reg::R10,
        Insn::Jump { .. } | Insn::JumpLong { .. } | Insn::MayGoto { .. } | Insn::Exit => true,
        _ => false,
    }
}

/// The operation of an instruction: what its copies have in common. Registers, offsets of accesses and targets differ between copies; so
/// do the conditions of a loop before its first round and after others.
fn operation(insn: &Insn) -> Insn {
    let any = Reg::R0;
    let number = |src: Operand| match src {
        Operand::Reg(_) => Operand::Reg(any),
        imm => imm,
    };
    // Accesses to the stack may be those of registers that are kept there.
    let on = |base: Reg| if base == Reg::R10 { base } else { any };
    match *insn {
        Insn::Alu { width, op, src, .. } => Insn::Alu { width, op, dst: any, src: number(src) },
        Insn::Neg { width, .. } => Insn::Neg { width, dst: any },
        Insn::MovSx { width, from, .. } => Insn::MovSx { width, from, dst: any, src: any },
        Insn::AddrSpaceCast { to, from, .. } => Insn::AddrSpaceCast { dst: any, src: any, to, from },
        Insn::Swap { order, size, .. } => Insn::Swap { order, size, dst: any },
        Insn::Load { size, signed, base, .. } => {
            Insn::Load { size, signed, dst: any, base: on(base), offset: 0 }
        }
        Insn::Store { size, base, src, .. } => {
            Insn::Store { size, base: on(base), offset: 0, src: number(src) }
        }
        Insn::Atomic { width, op, .. } => Insn::Atomic { width, op, base: any, offset: 0, src: any },
        Insn::LoadAcquire { size, .. } => Insn::LoadAcquire { size, dst: any, base: any, offset: 0 },
        Insn::StoreRelease { size, .. } => Insn::StoreRelease { size, base: any, offset: 0, src: any },
        Insn::LoadPacket { size, .. } => Insn::LoadPacket { size, index: None, offset: 0 },
        Insn::JumpIf { .. } => {
            let (width, condition, src) = (Width::W64, Condition::Eq, Operand::Imm(0));
            Insn::JumpIf { width, condition, dst: any, src, offset: 0 }
        }
        Insn::MayGoto { .. } => Insn::MayGoto { offset: 0 },
        Insn::Jump { .. } | Insn::JumpLong { .. } => Insn::Jump { offset: 0 },
        Insn::LoadImm64 { .. } => Insn::LoadImm64 { dst: any, value: Imm64::Value(0) },
        Insn::Call(Callee::Subprogram(_)) => Insn::Call(Callee::Subprogram(0)),
        Insn::Call(_) | Insn::CallReg(_) | Insn::Exit => *insn,
    }
}

/// An instruction without the registers that it computes in.
fn exact(insn: &Insn) -> Insn {
    let any = Reg::R0;
    match *insn {
        Insn::Load { size, signed, base, offset, .. } => Insn::Load { size, signed, dst: any, base, offset },
        Insn::Store { size, base, offset, src: Operand::Reg(_) } => {
            Insn::Store { size, base, offset, src: Operand::Reg(any) }
        }
        Insn::Atomic { width, op, base, offset, .. } => Insn::Atomic { width, op, base, offset, src: any },
        Insn::Store { .. } => *insn,
        _ => operation(insn),
    }
}
