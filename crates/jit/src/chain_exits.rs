//! Exits of a program in a loop: the edge to another program, or the verdict.

use paceline_frame::{Frame, Verdict};
use paceline_graph::COUNTS;
use paceline_graph::{Next, Node};
use paceline_isa::{Insn, Reg, RegSet};
use paceline_spec::Actions;

use crate::burst::{Block, BlockKind};
use crate::defer::Value;
use crate::emitter::{Emitter, Leave};
use crate::plan::{FRAME, Needs};
use crate::x64::{Alu, Cond, Gpr, Label, Mem, OpSize, Width};

/// The class of all values that are no verdict.
const NONE: u32 = Verdict::ALL.len() as u32;

/// The greatest verdict.
const LAST: i32 = Verdict::ALL.len() as i32 - 1;

const VERDICT: Mem = Mem::at(FRAME, Frame::OFFSET_VERDICT as i32);
const REDIRECT: Mem = Mem::at(FRAME, Frame::OFFSET_REDIRECT as i32);

/// Longest sequence of jumps to an exit that is followed.
const HOPS: usize = 4;

impl Emitter<'_> {
    /// Whether a slot leads to an exit through unconditional jumps only.
    fn leads_to_exit(&self, target: i64) -> bool {
        let mut target = target;
        for _ in 0..HOPS {
            let slot = usize::try_from(target).unwrap_or(usize::MAX);
            match self.source.code.get(slot) {
                Some(Insn::Exit) => return true,
                Some(insn @ (Insn::Jump { .. } | Insn::JumpLong { .. })) => {
                    target = insn.jump_target(slot).unwrap_or(-1);
                }
                _ => return false,
            }
        }
        false
    }

    /// Whether all results of a program have the same successor, and results are not counted.
    pub(crate) fn has_one_end(&self) -> bool {
        let Some(looped) = &self.looped else { return false };
        let graph = looped.graph.filter(|_| !looped.counted);
        graph.is_some_and(|graph| {
            (0..=NONE).all(|code| graph.after(self.node, code) == graph.after(self.node, 0))
        })
    }

    /// Whether a program is done at a slot: the rest only computes a result that is not used.
    pub(crate) fn is_done(&self, slot: usize) -> bool {
        self.one_end && self.returns.is_quiet(slot)
    }

    /// Target of a jump that leads to an exit, in a loop.
    pub(crate) fn exit_target(&mut self, target: i64) -> Option<Label> {
        if usize::try_from(target).is_ok_and(|slot| self.is_done(slot)) {
            return self.exit_label(0);
        }
        if !matches!(self.leave, Leave::Edge) || !self.leads_to_exit(target) {
            return None;
        }
        Some(self.block(BlockKind::Exit))
    }

    /// The label of an exit block, which is queued for emission.
    fn block(&mut self, what: BlockKind) -> Label {
        let (node, label) = (self.node, self.asm.new_label());
        let Some(looped) = &mut self.looped else { return label };
        let same = |block: &&Block| (block.node, block.what) == (node, what);
        if let Some(block) = looped.waiting.iter().find(same) {
            return block.label;
        }
        looped.waiting.push(Block { label, node, what });
        label
    }

    /// The shared end of packets with a verdict.
    fn end(&mut self, verdict: Verdict) -> Label {
        let known =
            self.looped.as_ref().and_then(|looped| looped.ends.get(verdict as usize).copied().flatten());
        if let Some(label) = known {
            return label;
        }
        let label = self.block(BlockKind::End(verdict));
        if let Some(place) = self.looped.as_mut().and_then(|looped| looped.ends.get_mut(verdict as usize)) {
            *place = Some(label);
        }
        label
    }

    /// The program's result, if a slot is an exit within a loop and the result is known there.
    pub(crate) fn known_result(&self, slot: usize) -> Option<u64> {
        if !matches!(self.leave, Leave::Edge) {
            return None;
        }
        match self.deferred.get(Reg::R0) {
            Value::Const(value) => Some(value),
            _ => self.returns.before(slot),
        }
    }

    /// The frame's verdict for a result.
    pub(crate) fn code(&self, result: u64) -> u32 {
        self.source.kind.rules().meaning.code(result)
    }

    /// The verdict of a jump to an exit with a known result.
    pub(crate) fn exits_with(&self, slot: usize, insn: &Insn) -> Option<u32> {
        let known = self.known_result(slot)?;
        insn.jump_target(slot).is_some_and(|target| self.leads_to_exit(target)).then_some(self.code(known))
    }

    /// Registers without `r0` where its value is known: no code reads the register then.
    pub(crate) fn without_known_result(&self, slot: usize, registers: RegSet) -> RegSet {
        let known = matches!(self.leave, Leave::Edge) && self.returns.before(slot).is_some();
        if known { registers.minus(RegSet::of(Reg::R0)) } else { registers }
    }

    /// At a jump target: restores the known value of `r0`.
    pub(crate) fn recall_result(&mut self, slot: usize) {
        if matches!(self.leave, Leave::Edge)
            && let Some(value) = self.returns.before(slot)
        {
            self.deferred.set(Reg::R0, Value::Const(value));
        }
    }

    /// Materializes the registers that are live at a jump's target. Returns them.
    pub(crate) fn flush_before_jump(&mut self, slot: usize, insn: &Insn, registers: RegSet) -> RegSet {
        let target = insn.jump_target(slot).and_then(|target| usize::try_from(target).ok());
        let registers = match target {
            Some(target) if self.is_done(target) => RegSet::EMPTY,
            Some(_) if self.exits_with(slot, insn).is_some() => registers.minus(RegSet::of(Reg::R0)),
            Some(target) => self.without_known_result(target, registers),
            None => registers,
        };
        self.flush(registers);
        registers
    }

    /// Target of a jump to an exit with a known result.
    pub(crate) fn known_exit(&mut self, slot: usize, insn: &Insn) -> Option<Label> {
        let code = self.exits_with(slot, insn)?;
        self.exit_label(code)
    }

    /// Leaves the program with its result in `rax`.
    pub(crate) fn leave_by_value(&mut self) {
        let exit = self.block(BlockKind::Exit);
        self.asm.jmp(exit);
    }

    /// Leaves the program with a known result.
    pub(crate) fn leave_with(&mut self, code: u32) {
        self.bind_waiting(|block, node| block.node == node && block.what == BlockKind::KnownExit(code));
        self.check_fault();
        self.end_run();
        let Some(looped) = &mut self.looped else { return self.internal("no loop over a burst is open") };
        let Some(graph) = looped.graph else {
            self.asm.store_imm(OpSize::D32, VERDICT, code.cast_signed());
            return self.next_packet();
        };
        let index = self.node.index() * COUNTS + code.min(NONE) as usize;
        match graph.after(self.node, code) {
            Next::Program(next) => {
                let label = looped.lead_to(next);
                self.count_at(index);
                label.into_iter().for_each(|label| self.asm.jmp(label));
            }
            Next::End(verdict) => {
                self.count_at(index);
                self.bind_end(verdict);
                self.end_with(verdict);
            }
        }
    }

    /// Binds the shared end with a verdict here, unless it was bound before.
    fn bind_end(&mut self, verdict: Verdict) {
        let _ = self.end(verdict);
        self.bind_waiting(|block, _| block.what == BlockKind::End(verdict));
    }

    /// Binds a matching queued block here, if one exists: the code that follows is its code.
    fn bind_waiting(&mut self, is: impl Fn(&Block, Node) -> bool) {
        let Some(looped) = &mut self.looped else { return self.internal("no loop over a burst is open") };
        if let Some(index) = looped.waiting.iter().position(|block| is(block, self.node)) {
            let block = looped.waiting.remove(index);
            self.asm.bind(block.label);
        }
    }

    pub(crate) fn end_with(&mut self, verdict: Verdict) {
        self.asm.store_imm(OpSize::D32, VERDICT, verdict as i32);
        if verdict != Verdict::Redirect && self.looped.as_ref().is_some_and(|looped| looped.redirects) {
            self.asm.store_imm(OpSize::D32, REDIRECT, 0);
        }
        self.next_packet();
    }

    /// The end of a packet for which too many programs would run.
    pub(crate) fn end_overrun(&mut self) {
        self.count_at(self.parts.len() * COUNTS);
        self.end_with(Verdict::Aborted);
    }

    /// Whether a function of the program has a need.
    fn any_function(&self, need: impl Fn(&Needs) -> bool) -> bool {
        self.parts.get(self.node.index()).is_some_and(|part| part.any(need))
    }

    /// Calls the runtime for work that a run defers to its end. Preserves the result in `rax`.
    fn end_run(&mut self) {
        let Some(host) = self.looped.as_ref().map(|looped| looped.plan.host) else { return };
        if !self.any_function(|needs| needs.waits_for_end) {
            return;
        }
        // Pushed twice to keep the stack aligned to 16 bytes.
        (0..2).for_each(|_| self.asm.push(Gpr::Rax));
        self.asm.mov_rr(Width::Q64, Gpr::Rdi, host);
        self.call_runtime(self.links.end);
        (0..2).for_each(|_| self.asm.pop(Gpr::Rax));
    }

    /// Target of an exit with a known result: the successor itself, if the exit has nothing else to do.
    fn exit_label(&mut self, code: u32) -> Option<Label> {
        let checks = self.any_function(|needs| needs.tail_calls || needs.waits_for_end);
        let node = self.node;
        let looped = self.looped.as_mut()?;
        let next = looped.graph.filter(|_| !checks && !looped.counted).map(|graph| graph.after(node, code));
        match next {
            Some(Next::Program(next)) => looped.lead_to(next),
            Some(Next::End(verdict)) => Some(self.end(verdict)),
            None => Some(self.block(BlockKind::KnownExit(code))),
        }
    }

    /// Dispatches on the result in `rax` by the actions of the program type.
    fn branch_on_action(&mut self, actions: &Actions) {
        for action in actions.list.iter().filter(|action| action.verdict != actions.other) {
            let label = self.exit_label(action.verdict as u32);
            self.asm.alu_ri(Alu::Cmp, Width::D32, Gpr::Rax, action.value.cast_signed());
            label.into_iter().for_each(|label| self.asm.jcc(Cond::E, label));
        }
        self.leave_with(actions.other as u32);
    }

    /// Dispatches on the result in `rax`.
    pub(crate) fn branch_on_verdict(&mut self) {
        self.check_fault();
        self.end_run();
        if let Some(actions) = self.source.kind.rules().meaning.translated() {
            return if self.one_end { self.leave_with(0) } else { self.branch_on_action(actions) };
        }
        let Some(looped) = &self.looped else { return self.internal("no loop over a burst is open") };
        let (counted, redirects) = (looped.counted, looped.redirects);
        let Some(graph) = looped.graph else {
            self.asm.store(OpSize::D32, VERDICT, Gpr::Rax);
            return self.next_packet();
        };
        let node = self.node;
        let next = |code: u32| graph.after(node, code);
        let is_own = |code: u32| match next(code) {
            Next::End(verdict) => verdict as u32 == code,
            Next::Program(_) => false,
        };
        if self.one_end {
            return self.leave_with(0);
        }
        let own_is_rest = !counted && (0..NONE).any(is_own);
        let apart: Vec<u32> = (0..NONE).filter(|&code| !(own_is_rest && is_own(code))).collect();
        for code in apart {
            let label = self.exit_label(code);
            self.asm.alu_ri(Alu::Cmp, Width::D32, Gpr::Rax, code.cast_signed());
            label.into_iter().for_each(|label| self.asm.jcc(Cond::E, label));
        }
        if !own_is_rest {
            return self.leave_with(NONE);
        }
        let none = self.exit_label(NONE);
        self.asm.alu_ri(Alu::Cmp, Width::D32, Gpr::Rax, LAST);
        none.into_iter().for_each(|none| self.asm.jcc(Cond::A, none));
        self.asm.store(OpSize::D32, VERDICT, Gpr::Rax);
        if redirects {
            let keep = self.asm.new_label();
            if is_own(Verdict::Redirect as u32) {
                self.asm.jcc(Cond::E, keep);
            }
            self.asm.store_imm(OpSize::D32, REDIRECT, 0);
            self.asm.bind(keep);
        }
        self.next_packet();
    }
}
