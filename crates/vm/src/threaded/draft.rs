//! Operations while their places are not yet known.

use std::sync::Arc;

use paceline_isa::{Operand, Reg};

use super::Operations;
use super::fuse::{MOST_FUSED, fuse};
use super::handlers::HANDLERS;
use super::kind::{Fused, Kind};
use super::op::{Note, Op};

/// Where a jump leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// To the operation of a slot.
    Slot(usize),
    /// To the entry of the function that starts at a slot.
    Function(usize),
    /// So many operations on, each of one part.
    Ahead(i32),
}

/// An operation whose place is not yet known.
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
    /// For jumps.
    pub(super) target: Option<Target>,
    /// Instructions that it stands for.
    pub(super) weight: u16,
    /// Whether it can be come to from elsewhere than the one before, or not only from there.
    pub(super) starts_block: bool,
    /// What it does beside its own, together with those that follow.
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
            starts_block: false,
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

    /// Whether execution may go on elsewhere than at the operation that follows.
    fn ends_block(&self) -> bool {
        self.target.is_some()
            || matches!(self.kind, Kind::Exit | Kind::End | Kind::TailCall | Kind::LoadPacket { .. })
    }
}

/// The operations of a program, in order.
pub(super) struct Drafts {
    drafts: Vec<Draft>,
    /// The draft that each slot's code starts with.
    of_slot: Vec<usize>,
    /// The same for functions, by their first slot; what sets up their stack is before the slot's code.
    of_function: Vec<(usize, usize)>,
    /// Slots that jumps lead to.
    leaders: Vec<bool>,
    /// Whether the last draft is followed by the next in any case, and the next comes from nowhere else.
    in_block: bool,
    /// Instructions that were left out since.
    skipped: u16,
}

impl Drafts {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            drafts: Vec::with_capacity(slots),
            of_slot: vec![usize::MAX; slots],
            of_function: Vec::new(),
            leaders: vec![false; slots],
            in_block: false,
            skipped: 0,
        }
    }

    /// Says that a jump leads to a slot.
    pub(super) fn lead(&mut self, slot: usize) {
        if let Some(leads) = self.leaders.get_mut(slot) {
            *leads = true;
        }
    }

    pub(super) fn enter_function(&mut self, slot: usize) {
        self.in_block = false;
        self.of_function.push((slot, self.drafts.len()));
    }

    pub(super) fn start_slot(&mut self, slot: usize) {
        if self.leaders.get(slot) == Some(&true) {
            self.count_skipped();
            self.in_block = false;
        }
        if let Some(place) = self.of_slot.get_mut(slot) {
            *place = self.drafts.len();
        }
    }

    pub(super) fn push(&mut self, mut draft: Draft) {
        draft.weight += std::mem::take(&mut self.skipped);
        draft.starts_block = !self.in_block;
        self.in_block = !draft.ends_block();
        self.drafts.push(draft);
    }

    /// Leaves out an instruction that does nothing. It still counts.
    pub(super) fn skip(&mut self) {
        match self.drafts.last_mut() {
            Some(last) if self.in_block => last.weight += 1,
            _ => self.skipped += 1,
        }
    }

    /// What was left out belongs to no operation when the next one is also jumped to.
    fn count_skipped(&mut self) {
        if self.skipped > 0 {
            self.push(Draft { weight: 0, ..Draft::new(Kind::Nop) });
        }
    }

    /// The operations of the block that the draft at an index is in, from there on, as far as they may be fused.
    fn block(&self, index: usize) -> &[Draft] {
        let rest = self.drafts.get(index..).unwrap_or_default();
        let rest = &rest[..rest.len().min(MOST_FUSED)];
        let len = rest.iter().skip(1).position(|draft| draft.starts_block).map_or(rest.len(), |len| len + 1);
        &rest[..len]
    }

    /// Gives the operations that are executed in one go to the first of them.
    fn fuse(&mut self) {
        let mut index = 0;
        while index < self.drafts.len() {
            let Some((fused, len)) = fuse(self.block(index)) else {
                index += 1;
                continue;
            };
            let weight =
                self.drafts[index..index + len].iter_mut().map(|draft| std::mem::take(&mut draft.weight));
            let weight = weight.sum();
            self.drafts[index].weight = weight;
            self.drafts[index].fused = Some(fused);
            index += len;
        }
    }

    pub(super) fn finish(mut self) -> Operations {
        self.fuse();
        let mut places = Vec::with_capacity(self.drafts.len() + 1);
        let end = self.drafts.iter().fold(0, |place, draft| {
            places.push(place);
            place + draft.parts()
        });
        places.push(end);
        let place_of = |index: Option<&usize>| index.and_then(|index| places.get(*index)).copied();
        let (mut ops, mut notes) = (Vec::with_capacity(end + 1), Vec::with_capacity(end + 1));
        for draft in &self.drafts {
            let here = ops.len();
            let target = draft.target.map_or(here, |target| match target {
                Target::Slot(slot) => place_of(self.of_slot.get(slot)).unwrap_or(end),
                Target::Function(slot) => {
                    let entry = self.of_function.iter().find(|(start, _)| *start == slot);
                    place_of(entry.map(|(_, index)| index)).unwrap_or(end)
                }
                Target::Ahead(operations) => here + operations as usize,
            });
            emit(draft, target as i64 - here as i64, &mut ops, &mut notes);
        }
        // Nothing comes here, but what if.
        emit(&Draft::new(Kind::End), 0, &mut ops, &mut notes);
        Operations { ops: Arc::from(ops), notes: Arc::from(notes) }
    }
}

/// Writes an operation whose target is so many operations on.
fn emit(draft: &Draft, distance: i64, ops: &mut Vec<Op>, notes: &mut Vec<Note>) {
    let code = draft.fused.map_or(draft.kind, Kind::Fused).code();
    let mut op = Op {
        dst: draft.dst,
        src: draft.src,
        offset: draft.offset,
        imm: draft.imm,
        ..Op::new(HANDLERS[usize::from(code)])
    };
    match draft.kind {
        Kind::Goto | Kind::CallSubprogram => op.imm = distance as i32,
        Kind::JumpIf { .. } => op.offset = distance as i16,
        _ => {}
    }
    ops.push(op);
    notes.push(Note::new(code, draft.weight));
    if let Some(word) = draft.word {
        ops.push(Op::data(word, draft.second));
        notes.push(Note::second());
    }
}
