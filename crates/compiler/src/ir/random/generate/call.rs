//! Calls, with their facts.

use paceline_isa::{Condition, Size};
use paceline_verifier::{CallbackFact, StackFact};

use super::{Generator, STACK, exact};
use crate::ir::arena::Key;
use crate::ir::entity::Value;
use crate::ir::function::{Target, Terminator};
use crate::ir::op::{Address, Args, BinaryOp, Callee, Op};
use crate::ir::random::helpers;
use crate::ir::random::memory::MAP_BYTES;
use crate::ir::types::{Access, CallFacts, Region, STACK_BYTES, Span, Type};

/// Bytes of the stack that a call reads.
const fn read(at: i32, bytes: i32) -> StackFact {
    StackFact { start: at as i16, end: (at + bytes) as i16 }
}

impl Generator<'_> {
    /// Adds a call with its facts.
    fn call_with(&mut self, callee: Callee, args: &[Value], facts: CallFacts) -> Value {
        let Some(args) = Args::new(args) else { return Value::new(0) };
        self.slot += 1;
        let inst = self.function.create(Op::Call { callee, args }, Some(self.slot));
        self.function.calls[inst] = facts;
        let block = self.block;
        self.function.block_mut(block).insts.push(inst);
        self.function.inst(inst).result.unwrap_or(Value::new(0))
    }

    /// Adds a call of a helper whose result is a number. A pointer is none, since the verifier admits no sums of pointers that may be
    /// anywhere.
    fn call_helper(&mut self, helper: i32, args: &[Value], facts: CallFacts) {
        let result = self.call_with(Callee::Helper(helper), args, facts);
        self.numbers.push((result, Type::I64));
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

    /// A word of the stack with a number in it, at an offset that may not be constant.
    fn lent_word(&mut self) -> (Value, Span) {
        let (word, at) = self.stored_word();
        if at == -8 || self.rng.bool() {
            return (word, Span { min: at, max: at });
        }
        let (value, access) = (self.number(Type::I64), exact(Region::Stack, at + 8));
        self.emit(Op::Store { size: Size::Dw, access, base: word, offset: 8, value });
        let index = self.index(2, Size::Dw);
        let word = self.emit(Op::Binary { op: BinaryOp::Add, ty: Type::I64, args: [word, index] });
        (word, Span { min: at, max: at + 8 })
    }

    /// Calls a function with a word of the stack, or with memory of a function further out.
    pub(super) fn call_function(&mut self) {
        let other = self.pick(self.others);
        // Only those that do not know it either are given memory that the function does not know.
        let knows = self.lent == Region::CallerStack || other.global;
        let given = self.memory.filter(|_| knows && self.rng.bool());
        let mut facts = CallFacts::default();
        let (memory, access) = match given {
            Some(memory) => (memory, Access::to(self.lent)),
            None => {
                let (memory, Span { min, max }) = self.lent_word();
                if other.global {
                    facts.stack_read = Some(read(min, max + 8 - min));
                } else {
                    // What another function reads is no read of the call.
                    let words = (min..=max).step_by(8).map(|at| 1 << (-at / 8 - 1));
                    self.function.shared |= words.fold(0, |all, word: u64| all | word);
                }
                (memory, Access { span: Some(Span { min, max }), ..Access::to(Region::Stack) })
            }
        };
        let number = self.number(Type::I64);
        let result = if other.back {
            facts.callback = Some(CallbackFact::Always(other.slot()));
            let function = self.emit(Op::Address(Address::Function(other.id)));
            let zero = self.constant(Type::I64, 0);
            self.call_with(Callee::Helper(helpers::LOOP), &[number, function, memory, zero], facts)
        } else {
            self.call_with(Callee::Function(other.id), &[memory, number], facts)
        };
        // It may have written there, and moved the packet as far as the form says.
        self.loads.clear();
        self.reload();
        if !other.returns_memory {
            return self.numbers.push((result, Type::I64));
        }
        let value = self.number(Type::I64);
        let (size, base, offset) = (Size::Dw, result, 0);
        self.compute(Op::Load { size, signed: false, access, base, offset });
        self.emit(Op::Store { size, access, base, offset, value });
    }

    pub(super) fn call(&mut self) {
        let map = self.emit(Op::Address(Address::Map(0)));
        let ((word, at), flags) = (self.stored_word(), self.number(Type::I64));
        // A fact is about the stack of the function itself.
        let given = self.memory.filter(|_| self.rng.u8(..3) == 0);
        let word = given.unwrap_or(word);
        let reads = |bytes: i32| match given {
            Some(_) => CallFacts::default(),
            None => CallFacts { stack_read: Some(read(at, bytes)), ..CallFacts::default() },
        };
        match (self.rng.u8(..8), self.context) {
            (0, _) => self.call_helper(helpers::RANDOM, &[], CallFacts::default()),
            (1, _) => {
                let args = [map, word, word, flags];
                self.call_helper(helpers::UPDATE, &args, reads(8));
            }
            (2, Some(context)) => {
                self.call_helper(helpers::ADJUST, &[context, flags], CallFacts::default());
                // The old pointers are numbers.
                let old = self.packet.map(|(start, end)| [(start, Type::I64), (end, Type::I64)]);
                self.numbers.extend(old.into_iter().flatten());
                self.reload();
            }
            (3, Some(context)) => {
                let size = self.constant(Type::I64, 8);
                self.call_helper(helpers::FIB, &[context, word, size, flags], reads(8));
                self.load_word(word, at);
            }
            (6, Some(context)) => {
                let (zero, size) = (self.constant(Type::I64, 0), self.constant(Type::I64, 8));
                self.call_helper(helpers::LOAD, &[context, zero, word, size], CallFacts::default());
                self.load_word(word, at);
            }
            (4, Some(context)) => {
                let args = [context, map, flags];
                if let Some(args) = Args::new(&args) {
                    self.emit(Op::Call { callee: Callee::TailCall, args });
                }
                self.reload();
            }
            _ => {
                let args = [map, word];
                let value = self.call_with(Callee::Helper(helpers::LOOK_UP), &args, reads(4));
                self.found(value);
            }
        }
        debug_assert!(at >= -STACK_BYTES);
    }
}
