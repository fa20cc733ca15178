//! Emission of extended instructions, with forward jumps, and code common to all program types.

use paceline_isa as isa;
use paceline_isa::{Callee, Insn, Reg, SwapOrder, Width};
use paceline_spec::KfuncRef;

use super::insn::{AluOp, Condition, Register, Size};
use super::ir::Operand;

/// Assignment of the two registers of a filter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registers {
    pub(super) a: Reg,
    pub(super) x: Reg,
}

/// Target of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The code of an instruction of the filter.
    Insn(usize),
    /// The shared exit without a match.
    NoMatch,
    /// A label that is bound later.
    Label(usize),
}

/// Jumps reach 2^15 slots; the exit without a match is emitted again before the first pending jump gets out of reach.
const REACH: usize = 1 << 14;

pub(super) struct Emitter {
    insns: Vec<Insn>,
    registers: Registers,
    /// First slot of each filter instruction's code.
    places: Vec<usize>,
    labels: Vec<usize>,
    fixups: Vec<(usize, Target)>,
    /// Jumps to an exit without a match that is not yet emitted.
    no_match: Vec<usize>,
    /// Return value of that exit.
    unmatched: u32,
    /// Kernel functions that are called.
    kfuncs: Vec<KfuncRef>,
}

/// Result of the emission.
pub(super) struct Emitted {
    pub(super) insns: Vec<Insn>,
    /// First slot of each filter instruction's code.
    pub(super) places: Vec<usize>,
    pub(super) kfuncs: Vec<KfuncRef>,
}

impl Emitter {
    pub(super) fn new(filter_len: usize, registers: Registers, unmatched: u32) -> Self {
        Self {
            insns: Vec::new(),
            registers,
            places: vec![0; filter_len],
            labels: Vec::new(),
            fixups: Vec::new(),
            no_match: Vec::new(),
            unmatched,
            kfuncs: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, insn: Insn) {
        self.insns.push(insn);
    }

    pub(super) fn reg(&self, register: Register) -> Reg {
        match register {
            Register::A => self.registers.a,
            Register::X => self.registers.x,
        }
    }

    pub(super) fn operand(&self, operand: Operand) -> isa::Operand {
        match operand {
            Operand::Constant(value) => isa::Operand::Imm(value.cast_signed()),
            Operand::X => isa::Operand::Reg(self.registers.x),
        }
    }

    /// Marks the current slot as the start of a filter instruction's code.
    pub(super) fn place(&mut self, index: usize) {
        let here = self.insns.len();
        if let Some(place) = self.places.get_mut(index) {
            *place = here;
        }
    }

    /// A new label, to be bound by [`set`](Self::set).
    pub(super) fn label(&mut self) -> Target {
        self.labels.push(0);
        Target::Label(self.labels.len() - 1)
    }

    /// Binds a label to the current slot.
    pub(super) fn set(&mut self, target: Target) {
        let here = self.insns.len();
        if let Target::Label(label) = target
            && let Some(place) = self.labels.get_mut(label)
        {
            *place = here;
        }
    }

    pub(super) fn alu(&mut self, width: Width, op: isa::AluOp, dst: Reg, src: isa::Operand) {
        self.push(Insn::Alu { width, op, dst, src });
    }

    pub(super) fn constant(&mut self, dst: Reg, value: u32) {
        self.alu(Width::W32, isa::AluOp::Mov, dst, isa::Operand::Imm(value.cast_signed()));
    }

    pub(super) fn copy(&mut self, dst: Reg, src: Reg) {
        self.alu(Width::W64, isa::AluOp::Mov, dst, isa::Operand::Reg(src));
    }

    pub(super) fn add(&mut self, dst: Reg, value: u32) {
        if value != 0 {
            self.alu(Width::W64, isa::AluOp::Add, dst, isa::Operand::Imm(value.cast_signed()));
        }
    }

    pub(super) fn add_reg(&mut self, dst: Reg, src: Reg) {
        self.alu(Width::W64, isa::AluOp::Add, dst, isa::Operand::Reg(src));
    }

    /// A load in native byte order.
    pub(super) fn load(&mut self, size: isa::Size, dst: Reg, base: Reg, offset: i16) {
        self.push(Insn::Load { size, signed: false, dst, base, offset });
    }

    /// A load in network byte order: the swap follows immediately, so that compilers can fuse both.
    pub(super) fn load_network_order(&mut self, size: Size, dst: Reg, base: Reg, offset: i16) {
        self.load(isa_size(size), dst, base, offset);
        self.swap(size, dst);
    }

    pub(super) fn swap(&mut self, size: Size, dst: Reg) {
        if size != Size::B {
            self.push(Insn::Swap { order: SwapOrder::ToBe, size: isa_size(size), dst });
        }
    }

    /// `4*(value & 0xf)`
    pub(super) fn header_length(&mut self, dst: Reg) {
        self.alu(Width::W32, isa::AluOp::And, dst, isa::Operand::Imm(0xf));
        self.alu(Width::W32, isa::AluOp::Lsh, dst, isa::Operand::Imm(2));
    }

    pub(super) fn call(&mut self, helper: i32) {
        self.push(Insn::Call(Callee::Helper(helper)));
    }

    /// Calls a function that exists for converted filters only, with the context and optionally both registers.
    pub(super) fn call_function(&mut self, name: &str, context: Reg, with_registers: bool) {
        self.copy(Reg::R1, context);
        if with_registers {
            self.copy(Reg::R2, self.registers.a);
            self.copy(Reg::R3, self.registers.x);
        }
        let known = self.kfuncs.iter().position(|kfunc| kfunc.name == name);
        let index = known.unwrap_or_else(|| {
            self.kfuncs.push(KfuncRef { name: name.to_owned(), weak: false, btf_id: 0, converted: true });
            self.kfuncs.len() - 1
        });
        self.push(Insn::Call(Callee::Kfunc { btf_id: index as i32, module: 0 }));
    }

    /// Records the target of the next instruction, a jump.
    fn jump_from(&mut self, target: Target) {
        match target {
            Target::NoMatch => self.no_match.push(self.insns.len()),
            _ => self.fixups.push((self.insns.len(), target)),
        }
    }

    pub(super) fn jump(&mut self, target: Target) {
        self.jump_from(target);
        self.push(Insn::Jump { offset: 0 });
    }

    /// Jumps to `target` when the verifier's limit of loop iterations is reached.
    pub(super) fn may_goto(&mut self, target: Target) {
        self.jump_from(target);
        self.push(Insn::MayGoto { offset: 0 });
    }

    pub(super) fn jump_if(
        &mut self,
        width: Width,
        condition: isa::Condition,
        dst: Reg,
        src: isa::Operand,
        target: Target,
    ) {
        self.jump_from(target);
        self.push(Insn::JumpIf { width, condition, dst, src, offset: 0 });
    }

    /// Exits with a constant.
    pub(super) fn exit_with(&mut self, value: u32) {
        if value == self.unmatched {
            self.end_without_match();
        } else {
            self.constant(Reg::R0, value);
            self.push(Insn::Exit);
        }
    }

    /// Emits the exit without a match, the target of all pending jumps to one.
    pub(super) fn end_without_match(&mut self) {
        let here = self.insns.len();
        for slot in self.no_match.drain(..) {
            set_offset(&mut self.insns, slot, here);
        }
        self.constant(Reg::R0, self.unmatched);
        self.push(Insn::Exit);
    }

    /// Emits the exit without a match if a pending jump to it would soon be out of reach. `after_end`: the previous instruction
    /// does not fall through.
    pub(super) fn keep_in_reach(&mut self, after_end: bool) {
        let waits = self.no_match.first().map_or(0, |first| self.insns.len() - first);
        if waits < REACH {
            return;
        }
        if after_end {
            self.end_without_match();
        } else {
            let over = self.label();
            self.jump(over);
            self.end_without_match();
            self.set(over);
        }
    }

    pub(super) fn finish(mut self) -> Emitted {
        if !self.no_match.is_empty() {
            self.end_without_match();
        }
        for (slot, target) in self.fixups {
            let to = match target {
                Target::Insn(index) => self.places.get(index),
                Target::Label(label) => self.labels.get(label),
                Target::NoMatch => None,
            };
            if let Some(to) = to {
                set_offset(&mut self.insns, slot, *to);
            }
        }
        Emitted { insns: self.insns, places: self.places, kfuncs: self.kfuncs }
    }
}

/// Sets the target slot of a jump; all instructions here have one slot.
fn set_offset(insns: &mut [Insn], slot: usize, to: usize) {
    let distance = to as i64 - (slot as i64 + 1);
    match insns.get_mut(slot) {
        Some(Insn::JumpIf { offset, .. } | Insn::MayGoto { offset }) => *offset = distance as i16,
        Some(jump @ Insn::Jump { .. }) => {
            *jump = match i16::try_from(distance) {
                Ok(offset) => Insn::Jump { offset },
                Err(_) => Insn::JumpLong { offset: distance as i32 },
            };
        }
        _ => {}
    }
}

pub(super) const fn isa_size(size: Size) -> isa::Size {
    match size {
        Size::B => isa::Size::B,
        Size::H => isa::Size::H,
        Size::W => isa::Size::W,
    }
}

pub(super) const fn isa_alu(op: AluOp) -> isa::AluOp {
    match op {
        AluOp::Add => isa::AluOp::Add,
        AluOp::Sub => isa::AluOp::Sub,
        AluOp::Mul => isa::AluOp::Mul,
        AluOp::Div => isa::AluOp::Div,
        AluOp::Mod => isa::AluOp::Mod,
        AluOp::Or => isa::AluOp::Or,
        AluOp::And => isa::AluOp::And,
        AluOp::Xor => isa::AluOp::Xor,
        AluOp::Lsh => isa::AluOp::Lsh,
        AluOp::Rsh => isa::AluOp::Rsh,
    }
}

pub(super) const fn isa_condition(condition: Condition) -> isa::Condition {
    match condition {
        Condition::Eq => isa::Condition::Eq,
        Condition::Gt => isa::Condition::Gt,
        Condition::Ge => isa::Condition::Ge,
        Condition::Set => isa::Condition::Set,
    }
}

/// The opposite condition; a bit test has none.
pub(super) const fn opposite(condition: Condition) -> Option<isa::Condition> {
    match condition {
        Condition::Eq => Some(isa::Condition::Ne),
        Condition::Gt => Some(isa::Condition::Le),
        Condition::Ge => Some(isa::Condition::Lt),
        Condition::Set => None,
    }
}
