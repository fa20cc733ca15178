//! Ends of blocks.

use paceline_compiler::codegen::low::same;
use paceline_compiler::ir::uses::Uses;
use paceline_compiler::ir::{BinaryOp, Block, Op, Terminator, Type, Value};
use paceline_frame::Frame;
use paceline_isa::Condition;

use super::Draft;
use super::choose::{Choice, used};
use crate::interpreter::threaded::kind::{Kind, Source};

impl Choice<'_, '_> {
    pub(super) fn end(&mut self, uses: &Uses, block: Block) {
        match self.function.block(block).terminator {
            Terminator::Jump(_) => self.push(Draft::new(Kind::Goto), &[]),
            Terminator::Branch { condition, ty, args, .. } => self.branch(uses, condition, ty, args),
            Terminator::MayGoto(_) => {
                self.selector.current.rounds = true;
                self.push(Draft::new(Kind::MayGoto { exhausted: true }), &[]);
            }
            Terminator::Return(value) => match self.immediate(Type::I64, value) {
                Some(imm) => {
                    let kind = self.selector.return_kind(Source::Imm);
                    self.push(Draft::new(kind).imm(imm), &[]);
                }
                None => {
                    let value = self.value(value);
                    let kind = self.selector.return_kind(Source::Reg);
                    self.push(Draft::new(kind), &[used(value)]);
                }
            },
            Terminator::Stop | Terminator::Unset => {
                self.selector.lacks("the end of a block of a chain");
                self.push(Draft::new(Kind::End(Source::Imm)), &[]);
            }
        }
    }

    fn branch(&mut self, uses: &Uses, condition: Condition, ty: Type, args: [Value; 2]) {
        if self.packet_end(condition, args) || self.mask(uses, condition, ty, args) {
            return;
        }
        self.jump_if(condition, true, ty, args);
    }

    fn jump_if(&mut self, condition: Condition, holds: bool, ty: Type, args: [Value; 2]) {
        let (condition, src, imm, args) = self.compared(condition, ty, args);
        let draft = |src| Draft::new(Kind::JumpIf { width: ty.width(), condition, holds, src });
        let draft = match (src, u16::try_from(imm)) {
            (Source::Imm, Ok(short)) => Draft { offset: short.cast_signed(), ..draft(Source::Imm) },
            (Source::Imm, Err(_)) => draft(Source::Wide).imm(imm),
            _ => draft(Source::Reg),
        };
        self.push_each(draft, args.into_iter().flatten().map(used));
    }

    /// A comparison with the packet's end. Returns whether it is one.
    fn packet_end(&mut self, mut condition: Condition, [mut a, mut b]: [Value; 2]) -> bool {
        if self.is_current(a, Frame::OFFSET_DATA_END) {
            (condition, a, b) = (condition.exchanged(), b, a);
        }
        if !self.is_current(b, Frame::OFFSET_DATA_END) {
            return false;
        }
        // From the end on, or behind it.
        let (before, more) = match condition {
            Condition::Gt => (true, 0),
            Condition::Ge => (true, 1),
            Condition::Le => (false, 0),
            Condition::Lt => (false, 1),
            _ => return false,
        };
        let short = |distance: i32| u16::try_from(distance.checked_add(more)?).ok();
        if let Some(distance) = self.packet_offset(a).and_then(short) {
            let draft = Draft::new(Kind::JumpLen { shorter: before });
            self.push(Draft { offset: distance.cast_signed(), ..draft }, &[]);
            return true;
        }
        let (base, distance) = self.based(a);
        let (base, distance) = short(distance).map_or((a, more as u16), |distance| (base, distance));
        let base = self.value(base);
        let draft = Draft::new(Kind::JumpEnd { before });
        self.push(Draft { offset: distance.cast_signed(), ..draft }, &[used(base)]);
        true
    }

    /// A value as a sum of one that is in a register and a number.
    fn based(&self, value: Value) -> (Value, i32) {
        match self.function.op_of(value) {
            Some(&Op::Binary { op: BinaryOp::Add, ty: Type::I64, args: [base, number] }) => {
                self.immediate(Type::I64, number).map_or((value, 0), |number| (base, number))
            }
            _ => (value, 0),
        }
    }

    /// A test of bits. Returns whether it is one.
    fn mask(&mut self, uses: &Uses, condition: Condition, ty: Type, [a, b]: [Value; 2]) -> bool {
        let holds = match condition {
            Condition::Ne => true,
            Condition::Eq => false,
            _ => return false,
        };
        let Some(&Op::Binary { op: BinaryOp::And, ty: of, args: [x, y] }) = self.function.op_of(a) else {
            return false;
        };
        if of != ty || self.immediate(ty, b) != Some(0) || uses.count(a) != 1 {
            return false;
        }
        self.jump_if(Condition::Set, holds, ty, [x, y]);
        // The operation itself asks for nothing any more.
        for arg in [x, y] {
            if self.immediate(ty, arg).is_none() {
                self.selector.current.asked[same(self.function, arg)] -= 1;
            }
        }
        true
    }
}
