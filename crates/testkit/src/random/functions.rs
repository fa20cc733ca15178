//! The functions of a program, with their prologues and epilogues.

use paceline_isa::{AluOp, AtomicOp, Callee, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use paceline_spec::Linkage;

use super::generator::Generator;
use super::insns::{alu, load, mov};
use super::layout::{Function, Step};
use super::maps::{FORGETFUL_WORD, GLOBALS};
use super::model::{CELLS, Cell, Kind, Part, Source};
use super::plan::{CELLS_OF_CALLEES, FunctionPlan};
use super::types::{self, Parameter};

/// Number of `bpf_loop`.
const LOOP: i32 = 181;

/// The words of stack that steps of a function access, as bits from the frame pointer down. Dynptrs and iterators are below
/// them.
#[must_use]
pub fn cells(function: usize) -> u64 {
    (1 << if function == 0 { CELLS } else { CELLS_OF_CALLEES }) - 1
}

impl Generator<'_> {
    fn plan_here(&self) -> &FunctionPlan {
        &self.plan.functions[self.index]
    }

    /// Stack slots that this function may use.
    pub(super) fn cells(&self) -> usize {
        self.plan_here().cells
    }

    pub(super) fn moves_packet(&self) -> bool {
        self.plan_here().moves_packet
    }

    pub(super) fn is_main(&self) -> bool {
        self.index == 0
    }

    /// Generates the whole function.
    pub(super) fn function(mut self) -> Function {
        self.begin();
        for _ in 0..self.plan_here().steps {
            self.step();
        }
        // Functions without callers make a program invalid.
        for callee in 1..self.plan.functions.len() {
            if self.plan.functions[callee].parent == self.index && !self.called.contains(&callee) {
                self.call_of(callee);
            }
        }
        self.reach_end();
        let before = std::mem::take(&mut self.steps);
        self.finish();
        let here = self.plan_here();
        let is_global = self.is_main() || here.signature.is_some();
        let btf_id = match (self.plan.is_typed, here.signature) {
            (false, _) => 0,
            (true, Some(signature)) => types::global(self.plan.kind, signature),
            (true, None) if self.is_main() => types::main(self.plan.kind),
            (true, None) => types::local(),
        };
        let linkage = if is_global { Linkage::Global } else { Linkage::Static };
        Function { steps: before, end: std::mem::take(&mut self.steps), linkage, btf_id }
    }

    fn begin(&mut self) {
        let is_global = self.plan_here().signature.is_some();
        let parameters = self.plan_here().parameters.clone();
        for (reg, parameter) in Reg::ALL.into_iter().skip(1).zip(parameters) {
            let kind = match parameter {
                Parameter::Number => Kind::NUMBER,
                Parameter::Context => Kind::Context,
                Parameter::Memory(room) if is_global => {
                    Kind::Nullable { room, source: Source::Caller, id: self.model.new_id() }
                }
                Parameter::Memory(room) => Kind::Bytes { back: 0, room, source: Source::Caller },
                Parameter::Packet(bytes) => {
                    let group = self.model.new_group();
                    self.model.learn_range(group, bytes);
                    Kind::Packet { group, at: 0, from: Part::Inside }
                }
                Parameter::PacketEnd => Kind::End,
            };
            self.model.set(reg, kind);
        }
        self.keep_context();
        // Some other registers survive calls as well.
        for reg in [Reg::R1, Reg::R2, Reg::R3] {
            let kind = self.model.get(reg);
            if kind != Kind::Unset
                && self.rng.bool()
                && let Some(kept) = self.saved_place(&[])
            {
                self.emit(vec![mov(kept, Operand::Reg(reg))]);
                self.model.set(kept, kind);
            }
        }
        if is_global && (self.moves_packet() || self.rng.bool()) {
            self.use_lent();
        }
        if self.rng.bool() {
            self.set_number(Reg::R0, 2);
        }
        if !self.one_in(3) {
            self.load_packet_pointers();
        }
    }

    /// Accesses memory that the caller passes, perhaps after the packet moved, of which it may be a part.
    fn use_lent(&mut self) {
        let is_lent = |kind| matches!(kind, Kind::Nullable { source: Source::Caller, .. });
        let Some(reg) = self.find_saved(is_lent) else { return };
        let Kind::Nullable { room, id, .. } = self.model.get(reg) else { return };
        self.note("lent memory used by a global function");
        self.branch(Width::W64, Condition::Eq, reg, Operand::Imm(0), false, |this| {
            this.model.not_null(id);
            if this.moves_packet() && this.model.get(Reg::R6) == Kind::Context && !this.one_in(3) {
                this.note("lent memory used after the packet moved");
                this.move_packet();
            }
            if this.model.get(reg) != (Kind::Bytes { back: 0, room, source: Source::Caller }) {
                return;
            }
            this.model.set(Reg::R2, Kind::NUMBER);
            let number = mov(Reg::R2, Operand::Imm(this.rng.i32(0..64)));
            let offset = 8 * this.rng.i16(0..room / 8);
            let access = match this.rng.u8(..3) {
                0 => load(Size::Dw, Reg::R2, reg, offset),
                1 => Insn::Store { size: Size::Dw, base: reg, offset, src: Operand::Reg(Reg::R2) },
                _ => {
                    let op = AtomicOp::Add { fetch: false };
                    Insn::Atomic { width: Width::W64, op, base: reg, offset, src: Reg::R2 }
                }
            };
            this.emit(vec![number, access]);
            this.keep_number(Reg::R2);
        });
    }

    /// The context stays in r6, which legacy packet loads require.
    fn keep_context(&mut self) {
        if let Some(reg) = self.context() {
            self.emit(vec![mov(Reg::R6, Operand::Reg(reg))]);
            self.model.set(Reg::R6, Kind::Context);
            self.model.lock(Reg::R6);
        }
    }

    /// The final steps, which are the target of jumps to the end.
    fn finish(&mut self) {
        if self.plan_here().folds {
            self.fold_stack();
        }
        if self.plan_here().is_round {
            // Other results are refused. The last round is the one with 1.
            let last = if self.one_in(3) { 0 } else { 1 };
            self.emit(vec![alu(Width::W64, AluOp::And, Reg::R0, Operand::Imm(last))]);
        }
        if self.is_main() && self.is_for_engines() {
            // Folds all 64 bits, because a kernel's test run returns only the low half.
            let address = Imm64::MapValueIndex { index: i32::from(GLOBALS), offset: 0 };
            let op = AtomicOp::Add { fetch: false };
            self.emit(vec![
                Insn::LoadImm64 { dst: Reg::R1, value: address },
                Insn::Atomic { width: Width::W64, op, base: Reg::R1, offset: 0, src: Reg::R0 },
            ]);
        }
        if self.is_main() && !self.is_filter() && self.rng.bool() {
            self.emit(vec![alu(Width::W64, AluOp::And, Reg::R0, Operand::Imm(3))]);
        }
    }

    /// Folds all stack words that hold numbers into the return value, so that differences in the stack become visible.
    fn fold_stack(&mut self) {
        for (index, cell) in self.model.cells.into_iter().enumerate() {
            let at = -8 * (index as i16 + 1);
            let fold = |this: &mut Self, size: Size, offset: i16| {
                this.emit(vec![
                    load(size, Reg::R1, Reg::R10, offset),
                    alu(Width::W64, AluOp::Mul, Reg::R0, Operand::Imm(31)),
                    alu(Width::W64, AluOp::Add, Reg::R0, Operand::Reg(Reg::R1)),
                ]);
            };
            if cell.is_whole_number() {
                fold(self, Size::Dw, at);
            } else if !cell.kind.is_pointer() {
                (0..8)
                    .filter(|byte| cell.init >> byte & 1 != 0)
                    .for_each(|byte| fold(self, Size::B, at + byte));
            }
        }
        self.model.set(Reg::R1, Kind::NUMBER);
        self.model.set(Reg::R0, Kind::NUMBER);
    }

    /// Calls a random function, if one may be called.
    pub(super) fn call(&mut self) {
        let callable: Vec<usize> = (1..self.plan.functions.len())
            .filter(|&callee| self.plan.may_call(self.index, callee))
            .filter(|&callee| !(self.in_loop && self.plan.functions[callee].moves_packet))
            .collect();
        match self.rng.choice(callable) {
            Some(callee) => self.call_of(callee),
            None => self.arithmetic(),
        }
    }

    fn call_of(&mut self, callee: usize) {
        let parameters = self.plan.functions[callee].parameters.clone();
        let wants = |wanted: fn(&Parameter) -> bool| parameters.iter().any(wanted);
        let needs_end = wants(|p| matches!(p, Parameter::PacketEnd));
        let needed = parameters
            .iter()
            .filter_map(|p| if let Parameter::Packet(n) = p { Some(*n) } else { None })
            .max();
        if (needs_end || needed.is_some()) && !self.has_packet(needed.unwrap_or(0)) {
            if self.in_loop || self.holding {
                return;
            }
            self.load_packet_pointers_of(needed.unwrap_or(1));
        }
        let mut insns = Vec::new();
        let is_global = self.plan.functions[callee].signature.is_some();
        // Functions that move the packet get packet memory as often as other memory.
        let lent = parameters.iter().find_map(|p| if let Parameter::Memory(n) = p { Some(*n) } else { None });
        if let Some(bytes) = lent.filter(|_| is_global && self.plan.functions[callee].moves_packet)
            && !self.has_packet(bytes)
            && !(self.in_loop || self.holding)
            && self.rng.bool()
        {
            self.load_packet_pointers_of(bytes);
        }
        for (reg, parameter) in Reg::ALL.into_iter().skip(1).zip(&parameters) {
            match *parameter {
                Parameter::Memory(bytes) if is_global && self.rng.bool() => {
                    self.lend_anything(reg, bytes, &mut insns);
                }
                parameter => self.argument(reg, parameter, &mut insns),
            }
        }
        let calls = if self.plan.functions[callee].is_round {
            self.call_in_rounds(&mut insns, callee)
        } else {
            insns.push(Insn::Call(Callee::Subprogram(0)));
            vec![(insns.len() - 1, callee)]
        };
        self.steps.push(Step { insns, targets: Vec::new(), calls });
        self.called.push(callee);
        self.model.call(Kind::NUMBER);
        if self.plan.functions[callee].moves_packet {
            self.model.packet_moved();
        }
    }

    /// Calls a function by `bpf_loop`: its arguments, of which the first is not for the helper, are set. Returns where the function is named.
    fn call_in_rounds(&mut self, insns: &mut Vec<Insn>, callee: usize) -> Vec<(usize, usize)> {
        self.note("function called in rounds");
        insns.push(mov(Reg::R3, Operand::Reg(Reg::R2)));
        match self.find_saved(Kind::is_number).filter(|_| self.rng.bool()) {
            Some(number) => insns.extend([
                mov(Reg::R1, Operand::Reg(number)),
                alu(Width::W64, AluOp::And, Reg::R1, Operand::Imm(7)),
            ]),
            None => insns.push(mov(Reg::R1, Operand::Imm(self.rng.i32(0..10)))),
        }
        let flags = i32::from(self.one_in(16));
        insns.push(mov(Reg::R4, Operand::Imm(flags)));
        let address = Insn::LoadImm64 { dst: Reg::R2, value: Imm64::Code { offset: 0 } };
        insns.extend([address, Insn::Call(Callee::Helper(LOOP))]);
        vec![(insns.len() - 2, callee)]
    }

    fn has_packet(&self, bytes: i16) -> bool {
        let kept = || [Reg::R6, Reg::R7, Reg::R8, Reg::R9].into_iter().map(|reg| self.model.get(reg));
        kept().any(|kind| kind == Kind::End) && kept().any(|kind| self.is_checked_packet(kind, bytes))
    }

    fn is_checked_packet(&self, kind: Kind, bytes: i16) -> bool {
        matches!(kind, Kind::Packet { group, at, from: Part::Data | Part::Inside } if at >= 0 && self.model.room(group, at) >= bytes)
    }

    /// Moves an argument into its register. Arguments come from callee-saved registers, so that no argument overwrites
    /// another.
    fn argument(&mut self, reg: Reg, parameter: Parameter, insns: &mut Vec<Insn>) {
        if self.slips() {
            let any = Reg::ALL[self.rng.usize(..11)];
            return insns.push(mov(reg, Operand::Reg(any)));
        }
        let kept = match parameter {
            Parameter::Number => self.find_saved(Kind::is_number),
            Parameter::Context => Some(Reg::R6),
            Parameter::Memory(bytes) => {
                let fits = move |kind| matches!(kind, Kind::Bytes { room, source: Source::Map | Source::Caller, .. } if room >= bytes);
                let found = self.find_saved(fits);
                if found.is_none() || self.rng.bool() {
                    return self.stack_argument(reg, bytes, insns);
                }
                found
            }
            Parameter::Packet(bytes) => {
                let model = self.model.clone();
                self.find_saved(|kind| {
                    matches!(kind, Kind::Packet { group, at, from: Part::Data | Part::Inside } if at >= 0 && model.room(group, at) >= bytes)
                })
            }
            Parameter::PacketEnd => self.find_saved(|kind| kind == Kind::End),
        };
        match kept {
            Some(kept) => insns.push(mov(reg, Operand::Reg(kept))),
            None => insns.push(mov(reg, Operand::Imm(self.rng.i32(0..20)))),
        }
    }

    /// Passes a global function memory of a kind that it cannot know: the packet, a slice, memory of any alignment.
    fn lend_anything(&mut self, reg: Reg, bytes: i16, insns: &mut Vec<Insn>) {
        let model = self.model.clone();
        let fits = move |kind| match kind {
            Kind::Packet { group, at, from: Part::Data | Part::Inside } => {
                at >= 0 && model.room(group, at) >= bytes
            }
            Kind::Bytes { room, source: Source::Map | Source::Caller, .. } => room >= bytes,
            _ => false,
        };
        match self.find_saved(fits) {
            Some(kept) => {
                self.note("packet or a found value lent to a global function");
                insns.push(mov(reg, Operand::Reg(kept)));
                if let Kind::Packet { group, at, .. } = self.model.get(kept) {
                    let further = self.rng.i32(0..=i32::from(self.model.room(group, at) - bytes).min(16));
                    insns.push(super::insns::add(reg, further));
                }
            }
            None if self.rng.bool() => {
                self.note("a value at any address lent to a global function");
                let offset = self.rng.u32(0..=FORGETFUL_WORD - 16);
                let value = Imm64::MapValueIndex { index: i32::from(GLOBALS), offset };
                insns.push(Insn::LoadImm64 { dst: reg, value });
            }
            None => {
                self.note("stack at any address lent to a global function");
                self.stack_argument(reg, bytes + 8, insns);
                insns.push(super::insns::add(reg, self.rng.i32(0..8)));
            }
        }
    }

    /// Passes memory on this function's stack.
    fn stack_argument(&mut self, reg: Reg, bytes: i16, insns: &mut Vec<Insn>) {
        let cells = (bytes / 8) as usize;
        let first = self.rng.usize(..=self.cells() - cells);
        for index in first..first + cells {
            let Some(cell) = self.model.cells.get_mut(index) else { continue };
            if !cell.is_whole_number() {
                let offset = -8 * (index as i16 + 1);
                insns.push(Insn::Store {
                    size: Size::Dw,
                    base: Reg::R10,
                    offset,
                    src: Operand::Imm(self.rng.i32(-2..9)),
                });
            }
            *cell = Cell::NUMBER;
        }
        let lowest = -8 * (first + cells) as i32;
        insns.extend([mov(reg, Operand::Reg(Reg::R10)), super::insns::add(reg, lowest)]);
    }
}
