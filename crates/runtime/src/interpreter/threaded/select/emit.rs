//! The machine: what is selected becomes operations.

use crate::machine::{FRAME_POINTER, REGISTERS};
use paceline_compiler::codegen::lir::{Function as Lir, Reg, RegSet, Vreg};
use paceline_compiler::codegen::{Frame, Label, Machine, Ways};
use paceline_compiler::internal::Internal;
use paceline_compiler::ir::uses::Uses;
use paceline_compiler::ir::{Block, Function, Value};

use super::choose::Choice;
use super::{Draft, Selector};
use crate::interpreter::op::{DST, SCRATCH, SRC};
use crate::interpreter::threaded::kind::{Kind, Reach, Source};

impl Machine for Selector<'_> {
    type Op = Draft;

    fn registers(&self) -> RegSet {
        RegSet((1 << SCRATCH) - 1)
    }

    fn scratch(&self) -> Reg {
        Reg(SCRATCH)
    }

    fn select(
        &mut self,
        function: &Function,
        uses: &Uses,
        block: Block,
        out: &mut Lir<Draft>,
    ) -> Result<(), Internal> {
        Choice::new(self, function, out).block(uses, block);
        Ok(())
    }

    fn argument(
        &mut self,
        function: &Function,
        value: Value,
        out: &mut Lir<Draft>,
    ) -> Result<Vreg, Internal> {
        Ok(Choice::new(self, function, out).value(value))
    }

    fn end(
        &mut self,
        function: &Function,
        uses: &Uses,
        block: Block,
        out: &mut Lir<Draft>,
    ) -> Result<(), Internal> {
        Choice::new(self, function, out).end(uses, block);
        Ok(())
    }

    fn begin(&mut self, frame: &Frame) -> Result<(), Internal> {
        self.current.window = REGISTERS + frame.slots as usize;
        if self.current.zeroed != 0 {
            self.code.push(Kind::Zero, [0; 8], 0);
            self.code.push_data(self.current.zeroed, 0);
        }
        if self.current.rounds {
            self.code.push(Kind::AllowRounds, [0; 8], 0);
        }
        Ok(())
    }

    fn emit(
        &mut self,
        draft: &Draft,
        _: Option<u32>,
        assigned: &[Reg],
        ways: Ways<'_>,
    ) -> Result<(), Internal> {
        let Some(kind) = draft.kind else { return Ok(()) };
        if draft.value.is_some_and(|value| self.current.asked[value] == 0) {
            return Ok(());
        }
        let bytes = draft.bytes(kind, assigned);
        match (kind, ways.targets) {
            (Kind::Goto, &[target]) if Some(target) == ways.next => {}
            (Kind::Goto, &[target]) => self.jump(target),
            (_, &[first, second]) if Some(first) == ways.next => {
                self.branch(draft, kind.opposite(), bytes, second);
            }
            (_, &[first, second]) => {
                self.branch(draft, kind, bytes, first);
                if Some(second) != ways.next {
                    self.jump(second);
                }
            }
            _ => self.operation(draft, kind, bytes),
        }
        Ok(())
    }

    fn copy(&mut self, to: Reg, from: Reg) -> Result<(), Internal> {
        self.code.push(Kind::Move, registers(&[(DST, to), (SRC, from)]), 0);
        Ok(())
    }

    fn spill(&mut self, slot: u32, from: Reg) -> Result<(), Internal> {
        self.code.push(Kind::Spill, with_imm(registers(&[(SRC, from)]), word_of(slot)), 0);
        Ok(())
    }

    fn reload(&mut self, to: Reg, slot: u32) -> Result<(), Internal> {
        self.code.push(Kind::Reload, with_imm(registers(&[(DST, to)]), word_of(slot)), 0);
        Ok(())
    }

    fn jump(&mut self, to: Label) {
        self.code.push_jump(Kind::Goto, [0; 8], to);
    }

    fn bind(&mut self, label: Label) {
        self.code.bind(label);
    }
}

fn word_of(slot: u32) -> i32 {
    (REGISTERS as u32 + slot).cast_signed()
}

fn registers(list: &[(u8, Reg)]) -> [u8; 8] {
    let mut bytes = [0; 8];
    list.iter().for_each(|(place, reg)| bytes[usize::from(*place)] = reg.0);
    bytes
}

fn with_imm(mut bytes: [u8; 8], imm: i32) -> [u8; 8] {
    bytes[4..].copy_from_slice(&imm.to_ne_bytes());
    bytes
}

impl Draft {
    /// The operands in their bytes.
    fn bytes(&self, kind: Kind, assigned: &[Reg]) -> [u8; 8] {
        let mut bytes = with_imm([0; 8], self.imm);
        if self.offset != 0 {
            bytes[2..4].copy_from_slice(&self.offset.to_ne_bytes());
        }
        let mut places = kind.places();
        let args = &self.args[..];
        let is_start =
            matches!(kind, Kind::Load { reach: Reach::Start, .. } | Kind::Store { reach: Reach::Start, .. });
        match kind {
            Kind::CallHelper | Kind::CallFunction | Kind::CallBack(_) => {
                if let Some((result, _)) = assigned.split_last() {
                    bytes[usize::from(DST)] = result.0;
                }
                places = &args[..assigned.len() - 1];
            }
            Kind::TailCall => places = args,
            _ if self.in_stack => {
                bytes[usize::from(places[0])] = FRAME_POINTER;
                places = &places[1..];
            }
            _ if is_start => places = &places[1..],
            _ => {}
        }
        places.iter().zip(assigned).for_each(|(place, reg)| bytes[usize::from(*place)] = reg.0);
        bytes
    }
}

impl Selector<'_> {
    fn branch(&mut self, draft: &Draft, kind: Kind, bytes: [u8; 8], to: Label) {
        self.code.push_jump(kind, bytes, to);
        if kind.len() > 1 {
            self.code.push_data(0, draft.imm);
        }
    }

    /// An operation that is no jump.
    fn operation(&mut self, draft: &Draft, kind: Kind, bytes: [u8; 8]) {
        let uses = draft.value.map_or(u32::MAX, |value| self.current.asked[value]);
        self.code.push(kind, bytes, uses);
        match kind {
            Kind::CallFunction => self.code.push_data(self.current.window as u64, 0),
            Kind::CallBack(_) => {
                let result = registers(&[(DST, Reg(bytes[usize::from(DST)]))]);
                self.code.push(Kind::CalledBack, with_imm(result, self.current.window as i32), 0);
            }
            _ if kind.len() > 1 => self.code.push_data(draft.word, 0),
            _ => {}
        }
        if let Some(function) = draft.function {
            self.code.refer(function);
        }
    }

    /// The end of a function with a result.
    pub(super) fn return_kind(&self, src: Source) -> Kind {
        if self.current.is_main { Kind::End(src) } else { Kind::Exit(src) }
    }
}
