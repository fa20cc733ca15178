//! The emitter: generates the code of a program, function by function.

use paceline_graph::Node;
use paceline_isa::{Callee, Imm64, Insn, Reg, RegSet};
use paceline_spec::helper::Helper;
use paceline_verifier::FunctionFact;

use crate::burst::Loop;
use crate::chain_program::ChainProgram;
use crate::checked::Stubs;
use crate::const_exit::ConstExits;
use crate::defer::Deferred;
use crate::entry;
use crate::error::CompileError;
use crate::links::Links;
use crate::liveness::Liveness;
use crate::plan::{FRAME, Place, Plan};
use crate::settings::Settings;
use crate::source::Source;
use crate::x64::{Alu, Assembler, Gpr, Held, Label, Mem, Width};

/// Registers with constant contents throughout: the host's, and in a loop those of the frame, the packet's start and the end of the
/// burst.
const RESERVED: usize = 4;

/// Exit sequence of a function, with its result in `rax`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leave {
    /// Epilogue and return.
    Return,
    /// Jump to code that shares the stack frame.
    Jump(Label),
    /// Follow the edge of the loop's graph.
    Edge,
}

pub(crate) struct Emitter<'a> {
    pub(crate) asm: Assembler,
    pub(crate) settings: &'a Settings,
    /// The programs, by node.
    pub(crate) parts: &'a [ChainProgram<'a>],
    /// Node of the program that is being emitted; the next fields belong to it.
    pub(crate) node: Node,
    pub(crate) source: &'a Source<'a>,
    pub(crate) links: &'a Links,
    /// Liveness of registers by instruction.
    pub(crate) liveness: &'a Liveness,
    /// The plan of the function that is being emitted.
    pub(crate) plan: Plan,
    /// Its exit sequence.
    pub(crate) leave: Leave,
    /// Its slots.
    pub(crate) function: FunctionFact,
    /// Entries of functions, by node and first slot.
    entries: Vec<Vec<(usize, Label)>>,
    /// Jump targets, by slot.
    targets: Vec<Option<Label>>,
    /// Deferred values of registers.
    pub(crate) deferred: Deferred,
    /// Registers that are live after the current instruction.
    pub(crate) after: RegSet,
    /// Contents of registers that no BPF register is assigned to and that instructions must preserve.
    reserved: [Option<Held>; RESERVED],
    /// A register whose value was read although it was considered dead.
    pub(crate) dead_read: Option<Reg>,
    /// Slot of an instruction that was emitted together with the previous one.
    pub(crate) skipped: Option<usize>,
    /// Functions whose address is taken, by node and first slot, and their callback entries.
    pub(crate) callbacks: Vec<(Node, usize, Label)>,
    /// The loop that contains the program.
    pub(crate) looped: Option<Loop<'a>>,
    /// The first inconsistent state, see [`internal`](Self::internal).
    internal: Option<&'static str>,
    /// Whether all results of the program have the same successor.
    pub(crate) one_end: bool,
    /// Known constant result at each slot of the program in a loop.
    pub(crate) returns: &'a ConstExits,
    /// The stubs of checked code.
    pub(crate) stubs: Option<Stubs>,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(parts: &'a [ChainProgram<'a>], settings: &'a Settings) -> Result<Self, CompileError> {
        let mut asm = Assembler::new();
        let entries = parts
            .iter()
            .map(|part| part.functions.iter().map(|(f, _)| (f.start, asm.new_label())).collect())
            .collect();
        let none = CompileError::JumpTarget { slot: 0, target: 0 };
        let first = parts.first().ok_or(none.clone())?;
        let (function, plan) = first.plan(0, settings).ok_or(none)?;
        let mut emitter = Self {
            asm,
            settings,
            parts,
            node: Node::ENTRY,
            source: &first.source,
            links: first.links,
            liveness: &first.liveness,
            plan,
            leave: Leave::Return,
            function,
            entries,
            targets: vec![None; first.source.code.len()],
            deferred: Deferred::default(),
            after: RegSet::EMPTY,
            reserved: [None; RESERVED],
            dead_read: None,
            skipped: None,
            callbacks: Vec::new(),
            looped: None,
            internal: None,
            one_end: false,
            returns: &first.returns,
            stubs: None,
        };
        if settings.checked {
            for (function, _) in &first.functions {
                emitter.find_targets(function)?;
            }
        }
        Ok(emitter)
    }

    /// Switches to another program.
    pub(crate) fn enter_node(&mut self, node: Node) {
        let Some(part) = self.parts.get(node.index()) else { return self.internal("a node has no program") };
        (self.node, self.source, self.links, self.liveness) =
            (node, &part.source, part.links, &part.liveness);
    }

    fn find_targets(&mut self, function: &FunctionFact) -> Result<(), CompileError> {
        for (slot, insn) in self.source.reached(function) {
            let Some(target) = insn.jump_target(slot) else { continue };
            let own = function.start..function.end;
            let inside =
                |t: &usize| (self.settings.checked || own.contains(t)) && self.source.code.get(*t).is_some();
            let found = usize::try_from(target).ok().filter(inside);
            let place = found.and_then(|target| self.targets.get_mut(target));
            let Some(place) = place else { return Err(CompileError::JumpTarget { slot, target }) };
            if place.is_none() {
                *place = Some(self.asm.new_block_label());
            }
        }
        // In checked code control may fall through into the next function.
        if self.settings.checked
            && let Some(place) = self.targets.get_mut(function.end)
            && place.is_none()
        {
            *place = Some(self.asm.new_block_label());
        }
        Ok(())
    }

    /// Records a state that the code generator excludes. Emission goes on, and [`check_internal`](Self::check_internal) fails.
    pub(crate) fn internal(&mut self, what: &'static str) {
        self.internal.get_or_insert(what);
    }

    /// Fails after [`internal`](Self::internal).
    pub(crate) fn check_internal(&self) -> Result<(), CompileError> {
        self.internal.map_or(Ok(()), |what| Err(CompileError::Internal(what)))
    }

    /// Label of a function's entry.
    pub(crate) fn entry_of(&self, start: usize) -> Option<Label> {
        let entries = self.entries.get(self.node.index())?;
        let index = entries.binary_search_by_key(&start, |entry| entry.0).ok()?;
        entries.get(index).map(|entry| entry.1)
    }

    /// Whether a slot is a jump target.
    pub(crate) fn is_target(&self, slot: usize) -> bool {
        self.targets.get(slot).is_some_and(Option::is_some)
    }

    /// Label of a jump's target.
    pub(crate) fn target(&mut self, slot: usize, target: Option<i64>) -> Result<Label, CompileError> {
        let target = target.unwrap_or(-1);
        if let Some(label) = self.exit_target(target) {
            return Ok(label);
        }
        let label = usize::try_from(target).ok().and_then(|t| self.targets.get(t).copied().flatten());
        label.ok_or(CompileError::JumpTarget { slot, target })
    }

    /// Emits the instructions of the current function.
    pub(crate) fn body(&mut self) -> Result<(), CompileError> {
        let function = self.function;
        let mut last: Option<&Insn> = None;
        let mut follows = false;
        self.skipped = None;
        self.dead_read = None;
        if !self.settings.checked {
            self.targets.clear();
            self.targets.resize(self.source.code.len(), None);
            self.find_targets(&function)?;
        }
        if !self.settings.checked {
            self.start_block(function.start);
            if function.start == 0 {
                let given = RegSet::of(Reg::R1).union(RegSet::of(Reg::R2));
                self.zero_unset(self.liveness.before(0).minus(given));
            }
        }
        if matches!(self.leave, Leave::Edge) {
            self.enter_with_context();
        }
        for (slot, insn) in self.source.reached(&function) {
            // In a loop jumps to an exit go to the exit's target directly.
            let is_exit = matches!(self.leave, Leave::Edge) && matches!(insn, Insn::Exit);
            if is_exit && slot != function.start && !follows {
                continue;
            }
            if self.is_done(slot) {
                if follows || slot == function.start {
                    self.leave_with(0);
                }
                follows = false;
                continue;
            }
            let label = self.targets.get(slot).copied().flatten().filter(|_| !is_exit);
            if label.is_some() && !self.settings.checked && follows {
                self.meet(slot);
            }
            self.asm.mark(slot as u32);
            if let Some(label) = label {
                self.asm.bind(label);
                if !self.settings.checked {
                    self.start_block(slot);
                    self.recall_result(slot);
                }
            }
            if self.settings.checked {
                self.count(slot);
                self.insn(slot, insn)?;
            } else if self.skipped != Some(slot) {
                let before = self.asm.len();
                self.deferred(slot, insn)?;
                if insn.is_call() {
                    let after = self.liveness.after(self.source, slot, insn);
                    self.zero_unset(after.intersection(RegSet::CALLER_SAVED.minus(RegSet::of(Reg::R0))));
                }
                // No code was emitted, so nothing was overwritten.
                if self.asm.len() != before {
                    self.check_reserved();
                }
            }
            if let Some(register) = self.dead_read {
                return Err(CompileError::DeadValue { slot, register });
            }
            follows = insn.falls_through()
                && (insn.jump_target(slot).is_none() || self.source.fact(slot).may_fall_through);
            last = Some(insn);
        }
        if self.settings.checked && last.is_some_and(Insn::falls_through) {
            let next = self.target(function.end, Some(function.end as i64))?;
            self.asm.jmp(next);
        }
        Ok(())
    }

    /// Zeroes registers that an unverified program reads before it writes them: the host's contents must not leak to it.
    fn zero_unset(&mut self, registers: RegSet) {
        if self.source.has_facts() {
            return;
        }
        for reg in registers.minus(RegSet::of(Reg::R10)).iter() {
            let gpr = self.gpr(reg);
            self.set(gpr, 0);
            self.hold(reg, 64);
        }
    }

    /// Records the contents of reserved registers: the host's and the loop's.
    pub(crate) fn reserve(&mut self) {
        let mut reserved = [self.plan.reserved_host(), None, None, None];
        if let (Some(looped), Leave::Edge) = (&self.looped, self.leave) {
            let end = match looped.plan.end {
                Place::Register(gpr) => Some(gpr),
                Place::Stack(_) => None,
            };
            reserved = [reserved[0], Some(FRAME), looped.plan.start, end];
        }
        self.reserved = reserved.map(|gpr| gpr.map(|gpr| self.asm.hold(gpr)));
    }

    /// Checks that an instruction preserved the reserved registers.
    fn check_reserved(&mut self) {
        for held in self.reserved.iter().flatten() {
            self.asm.held(*held);
        }
    }

    /// Emits an instruction with materialized operands.
    pub(crate) fn insn(&mut self, slot: usize, insn: &Insn) -> Result<(), CompileError> {
        match *insn {
            Insn::Alu { width, op, dst, src } => self.alu(width, op, dst, src),
            Insn::Neg { width, dst } => {
                let dst = self.gpr(dst);
                self.asm.neg(crate::plan::native(width), dst);
            }
            Insn::MovSx { width, from, dst, src } => self.move_signed(width, from, dst, src),
            Insn::Swap { order, size, dst } => self.swap(order, size, dst),
            Insn::Load { .. } | Insn::LoadAcquire { .. } => self.load(slot, insn)?,
            Insn::Store { .. } | Insn::StoreRelease { .. } => self.store(slot, insn)?,
            Insn::Atomic { width, op, base, offset, src } => {
                let mem = self.address(slot, base, offset);
                self.atomic(width, op, mem, src);
            }
            Insn::LoadImm64 { dst, value } => self.load_imm64(slot, insn, dst, value)?,
            Insn::LoadPacket { size, index, offset } => self.load_packet(slot, size, index, offset),
            Insn::Jump { .. } | Insn::JumpLong { .. } => {
                let target = self.target(slot, insn.jump_target(slot))?;
                self.asm.jmp(target);
            }
            Insn::JumpIf { width, condition, dst, src, .. } => {
                self.jump_if(slot, insn, width, condition, dst, src)?;
            }
            Insn::Call(Callee::Subprogram(_)) => self.call_subprogram(slot, insn)?,
            Insn::Call(Callee::Helper(id)) if self.settings.checked && calls_back(id) => self.call_back(slot),
            Insn::Call(_) if self.settings.checked => self.execute(slot),
            Insn::Call(Callee::Helper(Helper::TAIL_CALL)) => self.tail_call(slot)?,
            Insn::Call(Callee::Helper(id)) => self.call_helper(slot, id)?,
            Insn::Exit => self.exit(),
            Insn::Call(Callee::Kfunc { btf_id, .. }) => self.call_kfunc(slot, insn, btf_id)?,
            Insn::MayGoto { .. } => self.may_goto(slot, insn)?,
            Insn::AddrSpaceCast { .. } | Insn::CallReg(_) => {
                return Err(CompileError::Unsupported { slot, insn: *insn });
            }
        }
        Ok(())
    }

    /// Emits the function's exit sequence.
    pub(crate) fn exit(&mut self) {
        match self.leave {
            Leave::Return => {
                self.epilogue();
                self.asm.ret();
            }
            Leave::Jump(label) => self.asm.jmp(label),
            Leave::Edge => self.leave_by_value(),
        }
    }

    /// The native register of `r0` to `r9`, or of `r10` if it has one.
    pub(crate) fn gpr(&self, reg: Reg) -> Gpr {
        self.plan.gpr(reg)
    }

    /// A native register with the value of a BPF register. For `r10` without one it is `scratch`, which receives the address.
    pub(crate) fn value(&mut self, reg: Reg, scratch: Gpr) -> Gpr {
        if reg != Reg::R10 {
            return self.gpr(reg);
        }
        match self.plan.frame_register() {
            Some(gpr) => gpr,
            None => {
                self.asm.lea(Width::Q64, scratch, self.plan.stack(0));
                scratch
            }
        }
    }

    /// A memory operand, in code that is not checked.
    pub(crate) fn mem(&self, base: Reg, offset: i16) -> Mem {
        if base == Reg::R10 {
            self.plan.stack(i32::from(offset))
        } else {
            Mem::at(self.gpr(base), i32::from(offset))
        }
    }

    /// Sets a register to a constant; clobbers the flags.
    pub(crate) fn set(&mut self, dst: Gpr, value: u64) {
        if value == 0 {
            self.asm.alu_rr(Alu::Xor, Width::D32, dst, dst);
        } else {
            self.asm.mov_ri(dst, value);
        }
    }

    fn load_imm64(&mut self, slot: usize, insn: &Insn, dst: Reg, value: Imm64) -> Result<(), CompileError> {
        let gpr = self.gpr(dst);
        if let Some(value) = self.constant(slot, value)? {
            self.set(gpr, value);
            return Ok(());
        }
        // Checked code identifies functions by slot, and validates it at the call.
        if self.settings.checked {
            self.set(gpr, insn.subprogram_target(slot).unwrap_or(-1) as u64);
            return Ok(());
        }
        let start = self.function_at(slot, insn)?;
        self.set_function(start, gpr);
        Ok(())
    }

    /// First slot of the function that an instruction calls or takes the address of.
    pub(crate) fn function_at(&self, slot: usize, insn: &Insn) -> Result<usize, CompileError> {
        let target = insn.subprogram_target(slot).unwrap_or(-1);
        let start = usize::try_from(target).ok().filter(|&start| self.entry_of(start).is_some());
        start.ok_or(CompileError::JumpTarget { slot, target })
    }

    /// Sets a register to the callback address of a function.
    pub(crate) fn set_function(&mut self, start: usize, gpr: Gpr) {
        if let Some(callback) = self.callback_of(start) {
            self.asm.lea(Width::Q64, gpr, Mem::Label(callback));
        }
    }

    /// The value of a 64-bit immediate; `None` for functions.
    pub(crate) fn constant(&self, slot: usize, value: Imm64) -> Result<Option<u64>, CompileError> {
        let map = |index: i32, what| {
            let found = usize::try_from(index).ok().and_then(|i| self.links.maps.get(i));
            found.ok_or(CompileError::Map { slot, index, what })
        };
        Ok(Some(match value {
            Imm64::Value(value) => value,
            Imm64::MapIndex(index) => map(index, "map")?.handle,
            Imm64::MapValueIndex { index, offset } => {
                let what = "memory";
                let base = map(index, what)?.value.ok_or(CompileError::Map { slot, index, what })?;
                base.wrapping_add(u64::from(offset))
            }
            Imm64::Code { .. } => return Ok(None),
            Imm64::MapFd(_) | Imm64::MapValueFd { .. } | Imm64::Variable { .. } => {
                let insn = Insn::LoadImm64 { dst: Reg::R0, value };
                return Err(CompileError::Unsupported { slot, insn });
            }
        }))
    }

    /// Calls a function of the runtime. Only callee-saved registers are preserved.
    pub(crate) fn call_runtime(&mut self, address: u64) {
        entry::call_runtime(&mut self.asm, self.links, address);
    }
}

/// Whether a helper calls callbacks.
fn calls_back(id: i32) -> bool {
    Helper::from_imm(id).is_some_and(|helper| helper.callback().is_some())
}
