//! Counters, put into the instructions of a program.

use paceline_isa::{
    AluOp, AtomicOp, Code, DecodeError, EncodeError, Imm64, Insn, Operand, Reg, RegSet, Size, Width, decode,
};
use paceline_spec::{FunctionInfo, LineInfo, Poison, ProgramSpec, Variable};

use crate::blocks::{Block, blocks};
use crate::liveness::{free_stack, live_at_starts};

/// Bytes of a counter.
const COUNTER: usize = 8;

/// Registers for counters, in the order of preference: those that calls change cost no prologue.
const CANDIDATES: [Reg; 10] =
    [Reg::R5, Reg::R4, Reg::R3, Reg::R2, Reg::R0, Reg::R1, Reg::R9, Reg::R8, Reg::R7, Reg::R6];

/// How counters are incremented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// By a load, an addition and a store: exact while one thread runs programs of the map.
    #[default]
    Plain,
    /// By an atomic addition: exact whatever runs.
    Atomic,
}

/// A program cannot be instrumented.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstrumentError {
    /// An invalid instruction.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// An instruction without an encoding.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A jump leads out of the program.
    #[error("a jump leads out of the program")]
    Jump,
    /// All registers have values that are read later, and the stack is full.
    #[error("instruction {0}: no registers and no stack are free for a counter")]
    NoRoom(usize),
    /// With the counters a jump is longer than its offset can say.
    #[error("instruction {0}: with counters the jump is too long")]
    TooLong(usize),
}

/// The counters of a program.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) code: Code,
    pub(crate) blocks: Vec<Block>,
    /// Counter of the edge from a block to the next one, for blocks whose next one has other entries.
    pub(crate) edges: Vec<Option<usize>>,
    /// The program as it was.
    pub(crate) spec: ProgramSpec,
    counters: usize,
}

impl Plan {
    /// Bytes of all counters: one number of 64 bits each.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.counters * COUNTER
    }

    /// The program as it was.
    #[must_use]
    pub fn program(&self) -> &ProgramSpec {
        &self.spec
    }
}

/// The program with counters, which are in the only value of the array map of an index, from an offset in bytes on.
///
/// # Errors
/// [`InstrumentError`].
pub fn instrument(
    spec: &ProgramSpec,
    map: usize,
    offset: usize,
    counting: Counting,
) -> Result<(ProgramSpec, Plan), InstrumentError> {
    let code = decode(&spec.insns)?;
    let functions: Vec<_> = spec.functions.iter().map(|function| function.start).collect();
    let blocks = blocks(&code, &functions).ok_or(InstrumentError::Jump)?;
    let live = live_at_starts(&code, &blocks);
    let mut counters = blocks.len();
    let edges: Vec<_> = blocks
        .iter()
        .map(|block| {
            let next = block.next.and_then(|next| blocks.get(next));
            let needs = block.branches(&code) && next.is_some_and(|next| next.entries > 1);
            needs.then(|| {
                counters += 1;
                counters - 1
            })
        })
        .collect();
    let mut rewriter = Rewriter {
        spec,
        code: &code,
        counting,
        map: map as i32,
        offset,
        rewritten: Vec::new(),
        slots: 0,
        labels: vec![0; code.len() + 1],
        places: vec![0; code.len() + 1],
    };
    for (index, block) in blocks.iter().enumerate() {
        let live = live.get(index).copied().unwrap_or(RegSet::ALL);
        let edge = index.checked_sub(1).and_then(|before| edges.get(before).copied().flatten());
        rewriter.block(block, index, edge, live)?;
    }
    let insns = rewriter.resolved()?;
    let rewritten = rewriter.spec_with(insns);
    Ok((rewritten, Plan { code: code.clone(), blocks, edges, spec: spec.clone(), counters }))
}

/// Two registers for a counter, and the places on the stack of those whose values are kept there meanwhile.
type Registers = (Reg, Reg, Vec<(Reg, i16)>);

/// An instruction of the rewritten program, and the slot that it had, if any.
type Rewritten = (Insn, Option<usize>);

struct Rewriter<'a> {
    spec: &'a ProgramSpec,
    code: &'a Code,
    counting: Counting,
    map: i32,
    offset: usize,
    rewritten: Vec<Rewritten>,
    slots: usize,
    /// New slot that jumps and calls to an old slot lead to.
    labels: Vec<usize>,
    /// New slot of the instruction of an old slot.
    places: Vec<usize>,
}

impl Rewriter<'_> {
    fn push(&mut self, insn: Insn, old: Option<usize>) {
        self.slots += insn.slots();
        self.rewritten.push((insn, old));
    }

    /// The counter of the edge that falls into a block, the block's own counter, and its instructions.
    fn block(
        &mut self,
        block: &Block,
        index: usize,
        edge: Option<usize>,
        live: RegSet,
    ) -> Result<(), InstrumentError> {
        if let Some(edge) = edge {
            self.count(edge, block.start, live)?;
        }
        set(&mut self.labels, block.start, self.slots);
        self.count(index, block.start, live)?;
        for slot in block.start..block.end {
            set(&mut self.places, slot, self.slots);
            // Within a block nothing but its start is a target.
            if slot != block.start {
                set(&mut self.labels, slot, self.slots);
            }
            if let Some(insn) = self.code.get(slot) {
                self.push(*insn, Some(slot));
            }
        }
        Ok(())
    }

    /// Adds one to a counter.
    fn count(&mut self, counter: usize, slot: usize, live: RegSet) -> Result<(), InstrumentError> {
        let (address, number, spilled) = self.registers(slot, live)?;
        let offset = (self.offset + counter * COUNTER) as u32;
        let value = Imm64::MapValueIndex { index: self.map, offset };
        let (size, base) = (Size::Dw, address);
        for &(reg, at) in &spilled {
            self.push(Insn::Store { size, base: Reg::R10, offset: at, src: Operand::Reg(reg) }, None);
        }
        self.push(Insn::LoadImm64 { dst: address, value }, None);
        let (width, one) = (Width::W64, Operand::Imm(1));
        match self.counting {
            Counting::Plain => {
                self.push(Insn::Load { size, signed: false, dst: number, base, offset: 0 }, None);
                self.push(Insn::Alu { width, op: AluOp::Add, dst: number, src: one }, None);
                self.push(Insn::Store { size, base, offset: 0, src: Operand::Reg(number) }, None);
            }
            Counting::Atomic => {
                self.push(Insn::Alu { width, op: AluOp::Mov, dst: number, src: one }, None);
                let op = AtomicOp::Add { fetch: false };
                self.push(Insn::Atomic { width, op, base, offset: 0, src: number }, None);
            }
        }
        for (reg, at) in spilled {
            self.push(Insn::Load { size, signed: false, dst: reg, base: Reg::R10, offset: at }, None);
        }
        Ok(())
    }

    /// Dead registers where there are two.
    fn registers(&self, slot: usize, live: RegSet) -> Result<Registers, InstrumentError> {
        let dead: Vec<Reg> = CANDIDATES.into_iter().filter(|reg| !live.contains(*reg)).take(2).collect();
        if let [address, number] = dead[..] {
            return Ok((address, number, Vec::new()));
        }
        // Arguments that count as live may have no value that could be kept; these registers have one if they are live.
        let kept = [Reg::R6, Reg::R7].into_iter().filter(|reg| !dead.contains(reg));
        let all: Vec<Reg> = dead.iter().copied().chain(kept).take(2).collect();
        let free = free_stack(self.spec, self.code, slot).ok_or(InstrumentError::NoRoom(slot))?;
        let spilled = all.iter().zip([free, free + 8]).filter(|(reg, _)| live.contains(**reg));
        match all[..] {
            [address, number] => Ok((address, number, spilled.map(|(reg, at)| (*reg, at)).collect())),
            _ => Err(InstrumentError::NoRoom(slot)),
        }
    }

    /// The instructions, with the offsets of jumps and calls for the new slots.
    fn resolved(&self) -> Result<Code, InstrumentError> {
        let mut code = Code::default();
        for &(insn, old) in &self.rewritten {
            let at = code.len();
            let moved = match old {
                Some(old) => self.moved(insn, old, at)?,
                None => insn,
            };
            code.push(moved);
        }
        Ok(code)
    }

    fn moved(&self, insn: Insn, old: usize, at: usize) -> Result<Insn, InstrumentError> {
        let target = insn.jump_target(old).or_else(|| insn.subprogram_target(old));
        let Some(target) = target else { return Ok(insn) };
        let label = usize::try_from(target).ok().and_then(|target| self.labels.get(target));
        let label = *label.ok_or(InstrumentError::Jump)?;
        let distance = label as i64 - at as i64 - 1;
        let long = i32::try_from(distance).map_err(|_| InstrumentError::TooLong(old))?;
        let short = i16::try_from(distance).map_err(|_| InstrumentError::TooLong(old));
        Ok(match insn {
            Insn::Jump { .. } => {
                short.map_or(Insn::JumpLong { offset: long }, |offset| Insn::Jump { offset })
            }
            Insn::JumpLong { .. } => Insn::JumpLong { offset: long },
            Insn::JumpIf { width, condition, dst, src, .. } => {
                Insn::JumpIf { width, condition, dst, src, offset: short? }
            }
            Insn::MayGoto { .. } => Insn::MayGoto { offset: short? },
            Insn::Call(paceline_isa::Callee::Subprogram(_)) => {
                Insn::Call(paceline_isa::Callee::Subprogram(long))
            }
            Insn::LoadImm64 { dst, .. } => Insn::LoadImm64 { dst, value: Imm64::Code { offset: long } },
            other => other,
        })
    }

    /// The program with the new instructions, and everything that names slots.
    fn spec_with(&self, code: Code) -> ProgramSpec {
        let label = |slot: usize| self.labels.get(slot).copied().unwrap_or(slot);
        let place = |slot: usize| self.places.get(slot).copied().unwrap_or(slot);
        let function = |f: &FunctionInfo| FunctionInfo { start: label(f.start), ..f.clone() };
        let line = |line: &LineInfo| LineInfo { slot: label(line.slot), ..line.clone() };
        let variable = |variable: &Variable| Variable {
            slots: label(variable.slots.start)..label(variable.slots.end),
            ..variable.clone()
        };
        let poison = |poison: &Poison| Poison { slot: place(poison.slot), ..poison.clone() };
        ProgramSpec {
            // Every instruction was decoded, and the counters have encodings.
            insns: code.encode().unwrap_or_default(),
            functions: self.spec.functions.iter().map(function).collect(),
            lines: self.spec.lines.iter().map(line).collect(),
            variables: self.spec.variables.iter().map(variable).collect(),
            poisoned: self.spec.poisoned.iter().map(poison).collect(),
            ..self.spec.clone()
        }
    }
}

fn set(places: &mut [usize], slot: usize, place: usize) {
    if let Some(entry) = places.get_mut(slot) {
        *entry = place;
    }
}
