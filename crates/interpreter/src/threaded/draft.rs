//! Operations before layout.

use std::sync::Arc;

use paceline_isa::{Operand, Reg};

use super::Operations;
use super::fuse::{fuse, reorder};
use super::handlers::HANDLERS;
use super::kind::{Fused, Kind};
use super::op::{Note, Op};
use super::{known, live};

/// Target of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// To the operation of a slot.
    Slot(usize),
    /// To the entry of the function that starts at a slot.
    Function(usize),
    /// To the draft of an index.
    Draft(usize),
}

/// An operation before layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draft {
    pub(super) kind: Kind,
    pub(super) dst: u8,
    pub(super) src: u8,
    pub(super) offset: i16,
    pub(super) imm: i32,
    /// The 64-bit operand, for kinds with a second part.
    pub(super) word: Option<u64>,
    /// The immediate of the second part.
    pub(super) second: i32,
    /// Target of jumps and of function addresses.
    pub(super) target: Option<Target>,
    /// Number of instructions that the operation stands for.
    pub(super) weight: u32,
    /// Whether the operation has predecessors other than the previous one.
    pub(super) leads: bool,
    /// The fused operation that starts here, if any.
    pub(super) fused: Option<Fused>,
}

impl Draft {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            dst: 0,
            src: 0,
            offset: 0,
            imm: 0,
            word: None,
            second: 0,
            target: None,
            weight: 1,
            leads: false,
            fused: None,
        }
    }

    pub(super) fn with_word(kind: Kind, word: u64) -> Self {
        Self { word: Some(word), ..Self::new(kind) }
    }

    pub(super) fn dst(self, register: Reg) -> Self {
        Self { dst: register.number(), ..self }
    }

    pub(super) fn src(self, register: Reg) -> Self {
        Self { src: register.number(), ..self }
    }

    pub(super) fn offset(self, offset: i16) -> Self {
        Self { offset, ..self }
    }

    pub(super) fn imm(self, imm: i32) -> Self {
        Self { imm, ..self }
    }

    pub(super) fn operand(self, operand: Operand) -> Self {
        match operand {
            Operand::Reg(register) => self.src(register),
            Operand::Imm(imm) => self.imm(imm),
        }
    }

    fn parts(&self) -> usize {
        1 + usize::from(self.word.is_some())
    }

    /// Whether the operation may have a successor other than the next one.
    pub(super) fn ends_block(&self) -> bool {
        self.target.is_some()
            || !self.falls_through()
            || matches!(
                self.kind,
                Kind::TailCall | Kind::CallBack(_) | Kind::CalledBack | Kind::LoadPacket { .. }
            )
    }

    /// Whether the next operation may be a successor.
    pub(super) fn falls_through(&self) -> bool {
        !matches!(self.kind, Kind::Goto | Kind::Exit | Kind::End | Kind::Return(_))
    }

    /// Whether the target is a successor, and not only an operand.
    pub(super) fn jumps(&self) -> bool {
        self.target.is_some() && !matches!(self.kind, Kind::CallSubprogram | Kind::LoadFunction)
    }
}

/// The operations of a program, in order.
pub(super) struct Drafts {
    pub(super) drafts: Vec<Draft>,
    /// Index of the first draft of each slot.
    of_slot: Vec<usize>,
    /// Index of the first draft of each function, by its first slot: the set-up of the stack comes before the slot's draft.
    of_function: Vec<(usize, usize)>,
    /// Slots that are targets of jumps.
    leaders: Vec<bool>,
    /// Whether the next draft has predecessors other than the last one.
    leads: bool,
    /// Instructions that were left out since the last draft.
    skipped: u32,
}

impl Drafts {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            drafts: Vec::with_capacity(slots),
            of_slot: vec![usize::MAX; slots],
            of_function: Vec::new(),
            leaders: vec![false; slots],
            leads: true,
            skipped: 0,
        }
    }

    /// Marks a slot as a target.
    pub(super) fn lead(&mut self, slot: usize) {
        if let Some(leads) = self.leaders.get_mut(slot) {
            *leads = true;
        }
    }

    pub(super) fn enter_function(&mut self, slot: usize) {
        self.leads = true;
        self.of_function.push((slot, self.drafts.len()));
    }

    pub(super) fn start_slot(&mut self, slot: usize) {
        if self.leaders.get(slot) == Some(&true) {
            self.count_skipped();
            self.leads = true;
        }
        if let Some(place) = self.of_slot.get_mut(slot) {
            *place = self.drafts.len();
        }
    }

    /// Index of the next draft.
    pub(super) fn next(&self) -> usize {
        self.drafts.len()
    }

    pub(super) fn push(&mut self, mut draft: Draft) {
        draft.weight += std::mem::take(&mut self.skipped);
        draft.leads = std::mem::take(&mut self.leads);
        self.drafts.push(draft);
    }

    /// Leaves out an instruction without effect, which still counts.
    pub(super) fn skip(&mut self) {
        match self.drafts.last_mut() {
            Some(last) if !self.leads && !last.ends_block() => last.weight += 1,
            _ => self.skipped += 1,
        }
    }

    /// An instruction that was left out belongs to no operation when the next one is also jumped to.
    fn count_skipped(&mut self) {
        if self.skipped > 0 {
            self.push(Draft { weight: 0, ..Draft::new(Kind::Nop) });
        }
    }

    /// Index of a target's draft; `None` if there is no code.
    pub(super) fn index(&self, target: Target) -> Option<usize> {
        let index = match target {
            Target::Slot(slot) => *self.of_slot.get(slot)?,
            Target::Function(slot) => self.of_function.iter().find(|(start, _)| *start == slot)?.1,
            Target::Draft(index) => index,
        };
        (index < self.drafts.len()).then_some(index)
    }

    /// Names all targets by index.
    fn resolve(&mut self) {
        for index in 0..self.drafts.len() {
            let Some(target) = self.drafts[index].target else { continue };
            // Unreachable targets have no code.
            let target = self.index(target).unwrap_or(self.drafts.len());
            self.drafts[index].target = Some(Target::Draft(target));
            if let Some(draft) = self.drafts.get_mut(target) {
                draft.leads = true;
            }
        }
    }

    /// Fuses operations: the first one gets the handler of all.
    fn fuse(&mut self) {
        let mut rest = self.drafts.as_mut_slice();
        while let [first, ..] = rest {
            first.fused = None;
            let fused = fuse(rest);
            rest[0].fused = fused.map(|(fused, _)| fused);
            rest = &mut rest[fused.map_or(1, |(_, len)| len)..];
        }
    }

    pub(super) fn finish(mut self) -> Operations {
        self.count_skipped();
        self.resolve();
        known::rewrite(&mut self.drafts);
        live::remove_dead(&mut self.drafts);
        reorder(&mut self.drafts);
        self.fuse();
        let mut places = Vec::with_capacity(self.drafts.len() + 1);
        let end = self.drafts.iter().fold(0, |place, draft| {
            places.push(place);
            place + draft.parts()
        });
        let (mut ops, mut notes) = (Vec::with_capacity(end + 1), Vec::with_capacity(end + 1));
        for draft in &self.drafts {
            let here = ops.len();
            let target = match draft.target {
                Some(Target::Draft(index)) => places.get(index).copied().unwrap_or(end),
                _ => here,
            };
            emit(draft, target, &mut ops, &mut notes);
        }
        // Unreachable, and defined nevertheless.
        emit(&Draft::new(Kind::End), 0, &mut ops, &mut notes);
        Operations::new(&ops, 0, Arc::from(notes))
    }
}

/// Encodes an operation with the distance to its target, as its kind requires.
fn emit(draft: &Draft, target: usize, ops: &mut Vec<Op>, notes: &mut Vec<Note>) {
    let (alone, fused) = (draft.kind.code(), draft.fused.map_or(draft.kind, Kind::Fused).code());
    let mut op = Op {
        dst: draft.dst,
        src: draft.src,
        offset: draft.offset,
        imm: draft.imm,
        ..Op::new(HANDLERS[usize::from(fused)])
    };
    let distance = target as i64 - ops.len() as i64;
    let mut word = draft.word;
    match draft.kind {
        Kind::Goto | Kind::CallSubprogram | Kind::LoadFunction => op.imm = distance as i32,
        Kind::JumpIf { .. } | Kind::MayGoto | Kind::JumpLen { .. } | Kind::JumpEnd { .. } => {
            op.offset = distance as i16;
        }
        Kind::Test { .. } => word = Some((target * size_of::<Op>()) as u64),
        _ => {}
    }
    ops.push(op);
    notes.push(Note::new(fused, alone, draft.weight));
    if let Some(word) = word {
        ops.push(Op::data(word, draft.second));
        notes.push(Note::second());
    }
}
