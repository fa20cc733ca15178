//! `bpf_loop` as an inline loop, if the callback is known.

use paceline_isa::{Callee, Insn, Reg};
use paceline_spec::{Errno, MAX_LOOPS};
use paceline_verifier::CallbackFact;

use crate::defer::{StackStores, Value};
use crate::emitter::Emitter;
use crate::error::CompileError;
use crate::x64::{Alu, Cond, Gpr, Label, Width};

const LOOP: i32 = 181;

/// Iteration number, number of iterations, and callback context. The registers belong to the running function, so they are saved
/// and restored; the last one keeps the stack aligned.
const KEPT: [Gpr; 4] = [ROUND, COUNT, GIVEN, Gpr::R15];
const ROUND: Gpr = Gpr::Rbx;
const COUNT: Gpr = Gpr::R13;
const GIVEN: Gpr = Gpr::R14;

impl Emitter<'_> {
    /// Entry of the known callback of a `bpf_loop` call. `None` if the program makes tail calls: one in the callback could fault,
    /// which only the helper checks.
    pub(crate) fn loop_callback(&self, slot: usize, insn: &Insn) -> Option<Label> {
        let (Insn::Call(Callee::Helper(LOOP)), Some(CallbackFact::Always(start))) =
            (insn, self.source.fact(slot).callback)
        else {
            return None;
        };
        let tail_calls = self.source.functions.iter().any(|function| function.tail_calls);
        self.entry_of(start as usize).filter(|_| !tail_calls)
    }

    /// Same semantics as the helper: iterates until the callback returns nonzero, at most as often as `r1` says.
    pub(crate) fn count_rounds(&mut self, insn: &Insn, entry: Label) -> Result<(), CompileError> {
        let has_flags = self.deferred.get(Reg::R4) != Value::Const(0);
        let may_be_many = match self.deferred.get(Reg::R1) {
            Value::Const(count) => count as u32 > MAX_LOOPS,
            _ => true,
        };
        self.flush_memory();
        self.end_store();
        self.deferred.stores = StackStores::default();
        for reg in [Reg::R1, Reg::R3].into_iter().chain(has_flags.then_some(Reg::R4)) {
            self.materialize(reg);
        }
        for reg in insn.writes().iter() {
            self.before_write(reg);
        }
        let out = self.asm.new_label();
        if has_flags {
            let flags = self.home(Reg::R4);
            self.asm.test_rr(Width::Q64, flags, flags);
            self.asm.mov_ri(Gpr::Rax, Errno::EINVAL.to_return());
            self.asm.jcc(Cond::Ne, out);
        }
        let count = self.home(Reg::R1);
        if may_be_many {
            self.asm.alu_ri(Alu::Cmp, Width::D32, count, MAX_LOOPS.cast_signed());
            self.asm.mov_ri(Gpr::Rax, Errno::E2BIG.to_return());
            self.asm.jcc(Cond::A, out);
        }
        KEPT.into_iter().for_each(|gpr| self.asm.push(gpr));
        self.asm.mov_rr(Width::D32, COUNT, count);
        let given = self.home(Reg::R3);
        self.asm.mov_rr(Width::Q64, GIVEN, given);
        self.rounds(entry);
        KEPT.into_iter().rev().for_each(|gpr| self.asm.pop(gpr));
        self.asm.bind(out);
        insn.writes().iter().for_each(|reg| self.hold(reg, 64));
        Ok(())
    }

    fn rounds(&mut self, entry: Label) {
        let (again, done) = (self.asm.new_label(), self.asm.new_label());
        let (number, given) = (self.gpr(Reg::R1), self.gpr(Reg::R2));
        self.set(ROUND, 0);
        self.asm.bind(again);
        self.asm.alu_rr(Alu::Cmp, Width::D32, ROUND, COUNT);
        self.asm.jcc(Cond::Ae, done);
        self.asm.mov_rr(Width::D32, number, ROUND);
        self.asm.mov_rr(Width::Q64, given, GIVEN);
        self.asm.alu_ri(Alu::Add, Width::D32, ROUND, 1);
        self.asm.call(entry);
        self.asm.test_rr(Width::Q64, Gpr::Rax, Gpr::Rax);
        self.asm.jcc(Cond::E, again);
        self.asm.bind(done);
        self.asm.mov_rr(Width::D32, Gpr::Rax, ROUND);
    }
}
