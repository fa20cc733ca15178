//! Records a run.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use paceline_isa::{AluOp, Callee, Imm64, Insn, Operand, Reg, Size, SwapOrder, Width, eval};
use paceline_maps::Map;
use paceline_spec::ProgramSpec;
use paceline_spec::context::FieldKind;
use paceline_spec::helper::{Arg, Helper, HelperId, Return};
use paceline_vm::{Location, Observed};

use crate::fact::FactWriter;
use crate::origin::{Element, Origin, PacketBits, Source};
use crate::shadow::Shadow;
use crate::trace::{At, Branch, Call, Event};
use crate::variables::variables;

/// Most branches that are inverted to find the one that decides.
const MOST_TRIALS: usize = 256;

/// Opcode of a load that takes two slots.
const LOAD_IMM64: u8 = 0x18;

/// Most events that are kept of a run.
const MOST_EVENTS: usize = 1 << 17;

/// A register whose new value is known at the next instruction.
enum Pending {
    /// The value of a look-up: its address, or 0.
    Element { map: Arc<Map>, key: Vec<u8> },
    /// The address of a map's only value, plus an offset.
    OnlyValue { dst: Reg, map: Arc<Map>, offset: u64 },
    /// A field of the context.
    Context { dst: Reg, name: &'static str },
    /// The result of a call.
    Result { name: &'static str },
}

/// A conditional jump that ran.
pub(crate) struct Jump {
    /// Its number among all conditional jumps of the run, from 1.
    pub(crate) number: u64,
    /// Its event, where that is kept.
    pub(crate) event: Option<usize>,
    pub(crate) compares: Compares,
}

/// Origin of the operands of a conditional jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compares {
    /// Values that do not come from outside: they follow from the path.
    Constants,
    /// The packet's length: mostly a check of bounds.
    Length,
    /// Anything else.
    Input,
}

impl Compares {
    fn of(origin: &Origin) -> Self {
        match origin.sources.as_slice() {
            [] => Self::Constants,
            sources if sources.iter().any(|source| matches!(**source, Source::Length(_))) => Self::Length,
            _ => Self::Input,
        }
    }
}

/// Watches a run, instruction by instruction.
pub(crate) struct Recorder<'a> {
    writer: FactWriter<'a>,
    shadow: Shadow,
    pending: Option<Pending>,
    /// The packet's bytes at the last load.
    packet: Rc<[u8]>,
    ids: Vec<u32>,
    tail_call: Option<At>,
    line: Option<(usize, usize)>,
    /// Program, depth and slot of the instruction before.
    last: Option<(usize, usize, usize)>,
    pub(crate) programs: Vec<Arc<ProgramSpec>>,
    pub(crate) events: Vec<Event>,
    /// The last conditional jumps that ran and compared anything but constants, oldest first.
    pub(crate) branches: VecDeque<Jump>,
    /// Conditional jumps so far.
    jumps: u64,
    pub(crate) instructions: u64,
    pub(crate) end: At,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(writer: FactWriter<'a>) -> Self {
        Self {
            writer,
            shadow: Shadow::default(),
            pending: None,
            packet: Rc::from([]),
            ids: Vec::new(),
            tail_call: None,
            line: None,
            last: None,
            programs: Vec::new(),
            events: Vec::new(),
            branches: VecDeque::new(),
            jumps: 0,
            instructions: 0,
            end: At { program: 0, slot: 0 },
        }
    }

    /// Records the next instruction.
    pub(crate) fn see(&mut self, observed: &Observed<'_>) {
        self.instructions += 1;
        self.settle(observed);
        self.shadow.enter(observed.program_id(), observed.depth());
        let at = self.at(observed);
        self.end = at;
        self.note_line(observed, at);
        if let Some(insn) = observed.insn().copied() {
            self.execute(observed, insn, at);
        }
    }

    fn push(&mut self, event: Event) -> Option<usize> {
        let has_room = self.events.len() < MOST_EVENTS;
        has_room.then(|| {
            self.events.push(event);
            self.events.len() - 1
        })
    }

    pub(crate) fn is_truncated(&self) -> bool {
        self.events.len() == MOST_EVENTS
    }

    fn at(&mut self, observed: &Observed<'_>) -> At {
        let id = observed.program_id();
        let program = match self.ids.iter().position(|known| *known == id) {
            Some(index) => index,
            None => {
                self.ids.push(id);
                self.programs.push(Arc::clone(observed.program()));
                self.ids.len() - 1
            }
        };
        if let Some(call) = self.tail_call.take()
            && (call.program != program || observed.slot == 0)
        {
            self.push(Event::TailCall { at: call, to: program });
        }
        At { program, slot: observed.slot }
    }

    /// Records a line that control comes to. An entry of the line information holds up to the next one for instructions that follow
    /// each other; one that a jump leads to and that has no entry of its own belongs to no line.
    fn note_line(&mut self, observed: &Observed<'_>, at: At) {
        let before = self.last.replace((at.program, observed.depth(), at.slot));
        let lines = &observed.program().lines;
        let next = lines.partition_point(|line| line.slot <= at.slot);
        let entry = next.checked_sub(1).and_then(|index| lines.get(index)).filter(|line| line.line > 0);
        let has_own = entry.is_some_and(|line| line.slot == at.slot);
        let follows = before.is_some_and(|(program, depth, slot)| {
            let width = if observed.program().insns.get(slot).is_some_and(|insn| insn.opcode == LOAD_IMM64) {
                2
            } else {
                1
            };
            // After a call the line goes on.
            program == at.program && (slot + width == at.slot || depth > observed.depth())
        });
        if !has_own && !follows {
            self.line = None;
            return;
        }
        // Entries of one source line follow each other where the compiler moves code.
        let place = entry.map(|line| (at.program, line.line as usize));
        if has_own && place.is_some() && place != self.line {
            self.line = place;
            self.push(Event::Line(at));
        }
    }

    /// Takes the value of a register that the last instruction set.
    fn settle(&mut self, observed: &Observed<'_>) {
        let value = |reg: Reg| observed.registers.get(usize::from(reg.number())).copied().unwrap_or(0);
        match self.pending.take() {
            None => {}
            Some(Pending::Element { map, key }) => {
                let address = value(Reg::R0);
                self.set_result(address);
                let element = Element { map, key: Some(key), address };
                let mut origin = Origin::of(Source::Element(element.clone()));
                origin.element = Some(Rc::new(element));
                self.shadow.set(Reg::R0, origin);
            }
            Some(Pending::OnlyValue { dst, map, offset }) => {
                let address = value(dst).wrapping_sub(offset);
                let element = Some(Rc::new(Element { map, key: None, address }));
                self.shadow.set(dst, Origin { sources: Vec::new(), element });
            }
            Some(Pending::Context { dst, name }) => {
                self.shadow.set(dst, Origin::of(Source::Context { name, value: value(dst) }));
            }
            Some(Pending::Result { name }) => {
                self.set_result(value(Reg::R0));
                self.shadow.set(Reg::R0, Origin::of(Source::Result { name, value: value(Reg::R0) }));
            }
        }
    }

    fn set_result(&mut self, value: u64) {
        if let Some(Event::Call(call)) = self.events.last_mut() {
            call.result = Some(value);
        }
    }

    fn execute(&mut self, observed: &Observed<'_>, insn: Insn, at: At) {
        match insn {
            Insn::Alu { op, dst, src, .. } => self.compute(op, dst, src),
            Insn::Swap { order, size, dst } => self.swap(order, size, dst),
            Insn::MovSx { dst, src, .. } => self.shadow.set(dst, self.shadow.get(src)),
            Insn::Load { size, dst, base, offset, .. } | Insn::LoadAcquire { size, dst, base, offset } => {
                self.load(observed, dst, base, offset, size);
            }
            Insn::Store { size, base, offset, src } => self.store(observed, base, offset, size, src),
            Insn::StoreRelease { size, base, offset, src } => {
                self.store(observed, base, offset, size, Operand::Reg(src));
            }
            Insn::Atomic { width, base, offset, .. } => {
                let size = if width == Width::W32 { Size::W } else { Size::Dw };
                if let Some(dst) = insn.writes().iter().next() {
                    self.load(observed, dst, base, offset, size);
                }
            }
            Insn::LoadImm64 { dst, value } => {
                self.shadow.set(dst, Origin::default());
                if let Imm64::MapValueIndex { index, offset } = value
                    && let Some(map) = observed.map_at(index).cloned()
                {
                    self.pending = Some(Pending::OnlyValue { dst, map, offset: u64::from(offset) });
                }
            }
            Insn::LoadPacket { .. } => self.shadow.set(Reg::R0, Origin::default()),
            Insn::JumpIf { width, condition, dst, src, .. } => {
                let value = |reg: Reg| observed.registers[usize::from(reg.number())];
                let (right, other) = match src {
                    Operand::Reg(reg) => (value(reg), self.shadow.get(reg)),
                    Operand::Imm(imm) => (imm as u64, Origin::default()),
                };
                let taken = eval::compare(width, condition, value(dst), right);
                let origin = self.shadow.get(dst).merged(&other);
                let facts = self.writer.facts(&origin.sources);
                let variables = variables(observed, [Some(dst), src.reg()], &facts);
                let event = self.push(Event::Branch(Branch { at, taken, facts, variables }));
                self.jumps += 1;
                self.keep(Jump { number: self.jumps, event, compares: Compares::of(&origin) });
            }
            Insn::Call(Callee::Helper(Helper::TAIL_CALL)) => {
                self.tail_call = Some(at);
                self.pending = Some(Pending::Result { name: "bpf_tail_call" });
            }
            Insn::Call(Callee::Helper(id)) => self.call(observed, id, at),
            Insn::Call(Callee::Kfunc { btf_id, .. }) => {
                let name = observed.program().kfunc(btf_id).map_or("kernel function", |kfunc| kfunc.name);
                self.push(Event::Call(Call { at, name: name.to_owned(), element: None, result: None }));
                self.shadow.clear_arguments();
                self.pending = Some(Pending::Result { name });
            }
            _ => {}
        }
    }

    /// Keeps a jump that may decide, and forgets the oldest one if there are more than can be tried.
    fn keep(&mut self, jump: Jump) {
        if jump.compares == Compares::Constants {
            return;
        }
        if self.branches.len() == MOST_TRIALS {
            self.branches.pop_front();
        }
        self.branches.push_back(jump);
    }

    fn compute(&mut self, op: AluOp, dst: Reg, src: Operand) {
        let origin = match (op, src) {
            (AluOp::Mov, Operand::Reg(reg)) => self.shadow.get(reg),
            (AluOp::Mov, Operand::Imm(_)) => Origin::default(),
            (_, Operand::Reg(reg)) => self.shadow.get(dst).merged(&self.shadow.get(reg)),
            (op, Operand::Imm(imm)) => {
                let origin = self.shadow.get(dst);
                let narrowed = only_packet(&origin).and_then(|bits| bits.after(op, imm as u64));
                narrowed.map_or(origin, |bits| Origin::of(Source::Packet(bits)))
            }
        };
        self.shadow.set(dst, origin);
    }

    fn swap(&mut self, order: SwapOrder, size: Size, dst: Reg) {
        if order == SwapOrder::ToLe {
            return;
        }
        let origin = self.shadow.get(dst);
        if let Some(bits) = only_packet(&origin).and_then(|bits| bits.reversed(size.bytes())) {
            self.shadow.set(dst, Origin::of(Source::Packet(bits)));
        }
    }

    fn load(&mut self, observed: &Observed<'_>, dst: Reg, base: Reg, offset: i16, size: Size) {
        let address = observed.registers[usize::from(base.number())].wrapping_add(offset as u64);
        let len = size.bytes();
        let origin = match observed.location(address) {
            Location::Context(at) => {
                let field = observed.program().kind.context_field(at, len as u64, false);
                match field.map(|field| (field.kind, field.name)) {
                    Some((FieldKind::Number, name)) => {
                        self.pending = Some(Pending::Context { dst, name });
                        Origin::default()
                    }
                    Some((FieldKind::PacketEnd, _)) => {
                        Origin::of(Source::Length(self.packet(observed).len()))
                    }
                    _ => Origin::default(),
                }
            }
            Location::Packet(at) => {
                Origin::of(Source::Packet(PacketBits::new(self.packet(observed), at, len)))
            }
            Location::Stack => self.shadow.load(address, len as u64),
            Location::Other => self.load_value(observed, base, address, len),
        };
        self.shadow.set(dst, origin);
    }

    /// The packet's bytes now.
    fn packet(&mut self, observed: &Observed<'_>) -> Rc<[u8]> {
        let bytes = observed.packet_bytes().unwrap_or_default();
        if *self.packet != *bytes {
            self.packet = Rc::from(bytes);
        }
        Rc::clone(&self.packet)
    }

    fn load_value(&self, observed: &Observed<'_>, base: Reg, address: u64, len: usize) -> Origin {
        let pointer = self.shadow.get(base);
        let Some(element) = pointer.element else { return Origin::default() };
        let offset = address.wrapping_sub(element.address);
        let is_inside = element.address != 0 && offset < u64::from(element.map.spec().value_size);
        let Some(bytes) = is_inside.then(|| observed.read(address, len)).flatten() else {
            return Origin { sources: pointer.sources, element: None };
        };
        Origin::of(Source::Value { element: Element::clone(&element), offset: offset as usize, bytes })
    }

    fn store(&mut self, observed: &Observed<'_>, base: Reg, offset: i16, size: Size, src: Operand) {
        let address = observed.registers[usize::from(base.number())].wrapping_add(offset as u64);
        if observed.location(address) == Location::Stack {
            let origin = match src {
                Operand::Reg(reg) => self.shadow.get(reg),
                Operand::Imm(_) => Origin::default(),
            };
            self.shadow.store(address, size.bytes() as u64, origin);
        }
    }

    fn call(&mut self, observed: &Observed<'_>, id: i32, at: At) {
        let Some(helper) = Helper::from_imm(id) else { return };
        let args = helper.prototype.as_ref().map_or(&[][..], |prototype| prototype.args);
        let argument = |wanted: Arg| {
            let index = args.iter().position(|arg| *arg == wanted)?;
            observed.registers.get(index + 1).copied()
        };
        let map = argument(Arg::Map).and_then(|handle| observed.map(handle)).cloned();
        let key =
            map.as_ref().and_then(|map| observed.read(argument(Arg::MapKey)?, map.spec().key_size as usize));
        let element = map.zip(key).map(|(map, key)| Element { map, key: Some(key), address: 0 });
        let text = element.as_ref().map(|element| self.writer.element(element));
        self.push(Event::Call(Call { at, name: helper.name.to_owned(), element: text, result: None }));
        self.note_written(observed, helper);
        self.shadow.clear_arguments();
        let returns = helper.prototype.as_ref().map(|prototype| prototype.returns);
        self.pending = Some(match element {
            Some(Element { map, key: Some(key), .. }) if returns == Some(Return::MapValueOrNull) => {
                Pending::Element { map, key }
            }
            _ => Pending::Result { name: helper.name },
        });
    }

    /// Memory that a helper writes comes from it, and bytes of the packet from there.
    fn note_written(&mut self, observed: &Observed<'_>, helper: &'static Helper) {
        let args = helper.prototype.as_ref().map_or(&[][..], |prototype| prototype.args);
        for (index, arg) in args.iter().enumerate() {
            let (Some(&address), next) =
                (observed.registers.get(index + 1), observed.registers.get(index + 2))
            else {
                continue;
            };
            let len = match arg {
                Arg::WriteMem | Arg::WriteMemOrNull | Arg::ReadWriteMem => next.copied().unwrap_or(0),
                Arg::WriteBytes(len) | Arg::ReadWriteBytes(len) => u64::from(*len),
                _ => continue,
            };
            if observed.location(address) != Location::Stack || len == 0 {
                continue;
            }
            let offset = observed.registers[2] as usize;
            match helper.id {
                HelperId::XdpLoadBytes | HelperId::SkbLoadBytes => {
                    let packet = self.packet(observed);
                    // Byte by byte: the program reads the fields that it wants.
                    for (at, address) in (offset..).zip(address..address.saturating_add(len)) {
                        let bits = PacketBits::new(Rc::clone(&packet), at, 1);
                        self.shadow.store(address, 1, Origin::of(Source::Packet(bits)));
                    }
                }
                _ => self.shadow.store(
                    address,
                    len,
                    Origin::of(Source::Result { name: helper.name, value: 0 }),
                ),
            }
        }
    }
}

/// The bits of the packet that a value is.
fn only_packet(origin: &Origin) -> Option<&PacketBits> {
    match origin.sources.as_slice() {
        [only] => match &**only {
            Source::Packet(bits) => Some(bits),
            _ => None,
        },
        _ => None,
    }
}
