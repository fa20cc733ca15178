//! Calls, with their facts.

use paceline_isa::{Condition, Size};
use paceline_verifier::StackFact;

use super::{Generator, STACK, exact};
use crate::arena::Key;
use crate::entity::{FuncId, Value};
use crate::function::{Target, Terminator};
use crate::op::{Address, Args, Callee, Op};
use crate::random::helpers;
use crate::random::memory::MAP_BYTES;
use crate::types::{CallFacts, Region, STACK_BYTES, Type};

impl Generator<'_> {
    /// Adds a call with its facts.
    pub(super) fn call_with(&mut self, callee: Callee, args: &[Value], read: Option<(i32, i32)>) -> Value {
        let Some(args) = Args::new(args) else { return Value::new(0) };
        self.slot += 1;
        let inst = self.function.create(Op::Call { callee, args }, Some(self.slot));
        let stack_read = read.map(|(start, end)| StackFact { start: start as i16, end: end as i16 });
        self.function.calls[inst] = CallFacts { stack_read, ..CallFacts::default() };
        let block = self.block;
        self.function.block_mut(block).insts.push(inst);
        let result = self.function.inst(inst).result;
        // A pointer is no number, since the verifier admits no sums of pointers that may be anywhere.
        if let Some(result) = result.filter(|_| callee != Callee::Helper(helpers::LOOK_UP)) {
            self.numbers.push((result, Type::I64));
        }
        result.unwrap_or(Value::new(0))
    }

    /// Accesses a value of a map, if it was found.
    pub(super) fn found(&mut self, base: Value) {
        let [found, next] = [(); 2].map(|()| self.function.add_block());
        let (condition, args) = (Condition::Ne, [base, self.constant(Type::I64, 0)]);
        let targets = [Target::to(found), Target::to(next)];
        self.function.terminate(
            self.block,
            Terminator::Branch { condition, ty: Type::I64, args, targets },
            None,
        );
        let scope = self.scope();
        self.block = found;
        let (size, value) = (self.size(), self.number(Type::I64));
        let offset = self.rng.i32(0..=MAP_BYTES as i32 - size.bytes() as i32);
        let access = exact(Region::SomeMapValue, offset);
        let loaded = self.compute(Op::Load { size, signed: false, access, base, offset });
        let value = if self.rng.bool() { value } else { loaded };
        self.emit(Op::Store { size, access, base, offset, value });
        self.function.terminate(self.block, Terminator::Jump(Target::to(next)), None);
        self.restore(&scope);
        self.block = next;
    }

    /// A word of the stack with a number in it.
    pub(super) fn stored_word(&mut self) -> (Value, i32) {
        let offset = -8 * self.rng.i32(1..=STACK / 8);
        let (base, value) = (self.emit(Op::StackAddress { offset }), self.number(Type::I64));
        let access = exact(Region::Stack, offset);
        self.emit(Op::Store { size: Size::Dw, access, base, offset: 0, value });
        (base, offset)
    }

    /// A load of a word that a helper may have written.
    pub(super) fn load_word(&mut self, base: Value, at: i32) {
        let access = exact(Region::Stack, at);
        self.compute(Op::Load { size: Size::Dw, signed: false, access, base, offset: 0 });
    }

    pub(super) fn call(&mut self) {
        let map = self.emit(Op::Address(Address::Map(0)));
        let ((word, at), flags) = (self.stored_word(), self.number(Type::I64));
        match (self.rng.u8(..8), self.context) {
            (0, _) => drop(self.call_with(Callee::Helper(helpers::RANDOM), &[], None)),
            (1, _) => {
                let args = [map, word, word, flags];
                self.call_with(Callee::Helper(helpers::UPDATE), &args, Some((at, at + 8)));
            }
            (2, Some(context)) => {
                self.call_with(Callee::Helper(helpers::ADJUST), &[context, flags], None);
                // The old pointers are numbers.
                let old = self.packet.map(|(start, end)| [(start, Type::I64), (end, Type::I64)]);
                self.numbers.extend(old.into_iter().flatten());
                self.reload();
            }
            (3, Some(context)) => {
                let size = self.constant(Type::I64, 8);
                self.call_with(
                    Callee::Helper(helpers::FIB),
                    &[context, word, size, flags],
                    Some((at, at + 8)),
                );
                self.load_word(word, at);
            }
            (6, Some(context)) => {
                let (zero, size) = (self.constant(Type::I64, 0), self.constant(Type::I64, 8));
                self.call_with(Callee::Helper(helpers::LOAD), &[context, zero, word, size], None);
                self.load_word(word, at);
            }
            (4, Some(context)) => {
                let args = [context, map, flags];
                if let Some(args) = Args::new(&args) {
                    self.emit(Op::Call { callee: Callee::TailCall, args });
                }
                self.reload();
            }
            (5, _) if self.has_callee => {
                self.function.shared |= 1 << (-at / 8 - 1);
                // What another function reads is no read of the call.
                self.call_with(Callee::Function(FuncId::new(1)), &[word, flags], None);
                // The callee may have written there, and moved the packet as far as the form says.
                self.loads.clear();
                self.reload();
            }
            _ => {
                let args = [map, word];
                let value = self.call_with(Callee::Helper(helpers::LOOK_UP), &args, Some((at, at + 4)));
                self.found(value);
            }
        }
        debug_assert!(at >= -STACK_BYTES);
    }
}
