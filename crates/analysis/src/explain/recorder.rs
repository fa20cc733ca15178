//! Records a run.

use std::rc::Rc;
use std::sync::Arc;

use paceline_engine::{Location, Observed};
use paceline_frame::RedirectTarget;
use paceline_isa::{AluOp, Callee, Condition, Imm64, Insn, Operand, Reg, Size, SwapOrder, Width, eval};
use paceline_maps::Map;
use paceline_spec::ProgramSpec;
use paceline_spec::context::FieldKind;
use paceline_spec::helper::{Arg, Helper, HelperId, Return};

use super::writers::StepId;
use crate::explain::fact::FactWriter;
use crate::explain::flows::Flows;
use crate::explain::jump::{Jump, Jumps, Leave};
use crate::explain::origin::{Element, Origin, PacketBits, Source};
use crate::explain::shadow::Shadow;
use crate::explain::steps::Steps;
use crate::explain::trace::{At, Branch, Call, Event};
use crate::explain::variables::variables;

/// Result of a redirect that found its entry (`XDP_REDIRECT`).
const REDIRECTED: u64 = 4;

/// Opcode of a load that takes two slots.
const LOAD_IMM64: u8 = 0x18;

/// Most events that are kept of a run.
const MOST_EVENTS: usize = 1 << 17;

/// A register whose new value is known at the next instruction.
enum Pending {
    /// The value of a look-up: its address, or 0.
    Element { map: Arc<Map>, key: Vec<u8>, is_certain: bool },
    /// The result of a redirect to an entry of a map.
    Entry { map: Arc<Map>, key: Vec<u8> },
    /// The address of a map's only value, plus an offset.
    OnlyValue { dst: Reg, map: Arc<Map>, offset: u64 },
    /// A field of the context.
    Context { dst: Reg, name: &'static str },
    /// The result of a call.
    Result { name: &'static str },
}

/// What is known of a run when it has ended.
pub(crate) struct Record {
    pub(crate) steps: Steps,
    pub(crate) jumps: Jumps,
    pub(crate) programs: Vec<Arc<ProgramSpec>>,
    pub(crate) events: Vec<Event>,
    /// Origin of the value that it returned.
    pub(crate) returned: Origin,
    pub(crate) instructions: u64,
    pub(crate) end: At,
    /// Whether it had more events than are kept.
    pub(crate) is_truncated: bool,
    /// Names of the maps to whose entries it redirected, by their numbers.
    redirects: Vec<(u32, String)>,
}

/// Most instructions before one without a line that are looked at.
const MOST_BEFORE: u32 = 64;

impl Record {
    /// For a step without a line to which a jump led, or that comes after a branch: the last instruction before that has one.
    pub(crate) fn after(&self, step: StepId) -> Option<At> {
        let of = self.steps.get(step)?;
        let before = (step.saturating_sub(MOST_BEFORE)..=step).rev().filter_map(|step| self.steps.get(step));
        let mut before = before.filter(|before| before.activation == of.activation);
        let is_branch = |at: At| {
            matches!(self.steps.flow(at).and_then(|flow| flow.insn(at.slot)), Some(Insn::JumpIf { .. }))
        };
        let has_line = |at: At| {
            let lines = self.programs.get(at.program).map_or(&[][..], |program| &program.lines);
            let entry = lines.partition_point(|line| line.slot < at.slot);
            lines.get(entry).is_some_and(|line| line.slot == at.slot && line.line > 0)
        };
        let found = before.find(|before| has_line(before.at))?.at;
        let line = |at: At| self.programs.get(at.program)?.line_of(at.slot).map(|line| line.slot);
        (line(found) != line(of.at) || (found != of.at && is_branch(found))).then_some(found)
    }

    /// The target of a redirect in words.
    pub(crate) fn target(&self, target: RedirectTarget) -> String {
        match target {
            RedirectTarget::Interface { ifindex } => format!("interface {ifindex}"),
            RedirectTarget::Map { map, key } => {
                let name = self.redirects.iter().find(|(id, _)| *id == map).map_or("map", |(_, name)| name);
                format!("{name}[{key}]")
            }
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
    tail_call: Option<(At, StepId)>,
    line: Option<(usize, usize)>,
    /// Program, depth and slot of the instruction before.
    last: Option<(usize, usize, usize)>,
    programs: Vec<Arc<ProgramSpec>>,
    events: Vec<Event>,
    steps: Steps,
    jumps: Jumps,
    /// Conditional jumps so far.
    jump_count: u64,
    flows: &'a mut Flows,
    redirects: Vec<(u32, String)>,
    instructions: u64,
    end: At,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(writer: FactWriter<'a>, flows: &'a mut Flows) -> Self {
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
            steps: Steps::new(),
            jumps: Jumps::default(),
            jump_count: 0,
            flows,
            redirects: Vec::new(),
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
        if self.steps.see(observed, at) {
            // A helper gives a function arguments of its own.
            self.shadow.clear_arguments();
        }
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

    /// Ends the record.
    pub(crate) fn finish(self) -> Record {
        let Self { steps, jumps, programs, events, shadow, instructions, end, redirects, .. } = self;
        let is_truncated = events.len() == MOST_EVENTS;
        let returned = shadow.get(Reg::R0);
        Record { steps, jumps, programs, events, returned, instructions, end, is_truncated, redirects }
    }

    fn at(&mut self, observed: &Observed<'_>) -> At {
        let id = observed.program_id();
        let program = match self.ids.iter().position(|known| *known == id) {
            Some(index) => index,
            None => {
                self.ids.push(id);
                self.programs.push(Arc::clone(observed.program()));
                self.steps.flows.push(self.flows.of(observed));
                self.ids.len() - 1
            }
        };
        if let Some((call, step)) = self.tail_call.take()
            && (call.program != program || observed.slot == 0)
        {
            let event = self.push(Event::TailCall { at: call, to: program });
            self.jumps.entered(step, event);
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
            Some(Pending::Element { map, key, is_certain }) => {
                let address = value(Reg::R0);
                self.set_result(address);
                let is_own = self.steps.has_changed(&map, &key);
                let element = Element { map, key: Some(key), address, is_certain };
                // Whether the run made or deleted it is no matter of what was before.
                let mut origin =
                    if is_own { Origin::default() } else { Origin::of(Source::Element(element.clone())) };
                origin.element = Some(Rc::new(element));
                self.shadow.set(Reg::R0, origin);
            }
            Some(Pending::Entry { map, key }) => {
                let result = value(Reg::R0);
                self.set_result(result);
                // Other results are the fallback that the program gave.
                let address = u64::from(result == REDIRECTED);
                let element = Element { map, key: Some(key), address, is_certain: false };
                self.shadow.set(Reg::R0, Origin::of(Source::Element(element)));
            }
            Some(Pending::OnlyValue { dst, map, offset }) => {
                let address = value(dst).wrapping_sub(offset);
                let element = Some(Rc::new(Element { map, key: None, address, is_certain: true }));
                self.shadow.set(dst, Origin { sources: Vec::new(), element });
            }
            Some(Pending::Context { dst, name }) => {
                self.shadow.set(dst, Origin::of(Source::Context { name, value: value(dst) }));
            }
            Some(Pending::Result { name }) => {
                self.set_result(value(Reg::R0));
                let origin = Origin::of(Source::Result { name, value: value(Reg::R0) });
                self.shadow.set(Reg::R0, if is_given(name) { Origin::default() } else { origin });
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
            Insn::LoadPacket { size, index, offset } => self.load_packet(observed, index, offset, size),
            Insn::JumpIf { width, condition, dst, src, .. } => {
                self.branch(observed, at, (width, condition), dst, src);
            }
            Insn::Call(Callee::Helper(Helper::TAIL_CALL)) => self.tail_call(observed, at),
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

    fn branch(
        &mut self,
        observed: &Observed<'_>,
        at: At,
        (width, condition): (Width, Condition),
        dst: Reg,
        src: Operand,
    ) {
        let value = |reg: Reg| observed.registers.get(usize::from(reg.number())).copied().unwrap_or(0);
        let left = (self.shadow.get(dst), value(dst));
        let right = match src {
            Operand::Reg(reg) => (self.shadow.get(reg), value(reg)),
            Operand::Imm(imm) => (Origin::default(), imm as u64),
        };
        let taken = eval::compare(width, condition, left.1, right.1);
        let facts = self.writer.facts(&left.0.merged(&right.0).sources);
        let variables = variables(observed, [Some(dst), src.reg()], &facts);
        let event = self.push(Event::Branch(Branch { at, taken, facts, variables }));
        self.jump_count += 1;
        self.jumps.push(Jump {
            step: self.steps.end,
            number: self.jump_count,
            event,
            taken,
            frame: observed.registers[10],
            condition,
            left,
            right,
            packet: observed.packet().map_or([0, 0], |[_, data, end]| [data, end]),
        });
    }

    fn tail_call(&mut self, observed: &Observed<'_>, at: At) {
        let step = self.steps.end;
        let index = observed.registers[3] as u32;
        let map = observed.map(observed.registers[2]).map_or("", |map| &map.spec().name);
        let (entry, index) =
            (format!("{map}[{index}]"), self.writer.facts(&self.shadow.get(Reg::R3).sources));
        self.jumps.leave(step, Leave::TailCall { entry, index, event: None, is_there: false });
        self.tail_call = Some((at, step));
        self.pending = Some(Pending::Result { name: "bpf_tail_call" });
    }

    fn load_packet(&mut self, observed: &Observed<'_>, index: Option<Reg>, offset: i32, size: Size) {
        self.jumps.leave(self.steps.end, Leave::Load);
        let index = index.map_or(0, |reg| observed.registers[usize::from(reg.number())] as u32 as i32);
        let packet = self.packet(observed);
        let origin = match usize::try_from(i64::from(index) + i64::from(offset)) {
            Ok(at) if at + size.bytes() <= packet.len() => {
                let bits = PacketBits::new(packet, at, size.bytes());
                bits.reversed(size.bytes()).map_or(Source::Memory, Source::Packet)
            }
            _ => Source::Memory,
        };
        self.shadow.set(Reg::R0, Origin::of(origin));
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
            Location::Packet(_) | Location::Other if self.shadow.has(address, len as u64) => {
                self.shadow.load(address, len as u64)
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
        let Some(element) = pointer.element else { return Origin::of(Source::Memory) };
        let offset = address.wrapping_sub(element.address);
        let is_inside = element.address != 0 && offset < u64::from(element.map.spec().value_size);
        let Some(bytes) = is_inside.then(|| observed.read(address, len)).flatten() else {
            return Origin::of(Source::Memory).merged(&Origin { sources: pointer.sources, element: None });
        };
        // What a table of constants says follows from the index.
        if element.map.spec().is_constant() && !pointer.sources.is_empty() {
            return Origin { sources: pointer.sources, element: None };
        }
        Origin::of(Source::Value { element: Element::clone(&element), offset: offset as usize, bytes })
    }

    fn store(&mut self, observed: &Observed<'_>, base: Reg, offset: i16, size: Size, src: Operand) {
        let address = observed.registers[usize::from(base.number())].wrapping_add(offset as u64);
        let origin = match src {
            Operand::Reg(reg) => self.shadow.get(reg),
            Operand::Imm(_) => Origin::default(),
        };
        self.shadow.store(address, size.bytes() as u64, origin);
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
        let entry = (helper.id == HelperId::RedirectMap)
            .then(|| (observed.registers[2] as u32).to_ne_bytes().to_vec());
        let is_certain =
            argument(Arg::MapKey).is_some_and(|address| self.is_certain(map.as_deref(), address));
        let element =
            map.zip(key.or(entry)).map(|(map, key)| Element { map, key: Some(key), address: 0, is_certain });
        let text = element.as_ref().map(|element| self.writer.element(element));
        self.push(Event::Call(Call { at, name: helper.name.to_owned(), element: text, result: None }));
        self.note_written(observed, helper);
        if helper.prototype.as_ref().is_some_and(|prototype| prototype.moves_packet)
            && let Some(bytes) = observed.packet()
        {
            self.shadow.forget(bytes[0].saturating_sub(512)..bytes[2] + 512);
        }
        self.shadow.clear_arguments();
        let returns = helper.prototype.as_ref().map(|prototype| prototype.returns);
        self.pending = Some(match element {
            Some(Element { map, key: Some(key), .. }) if returns == Some(Return::MapValueOrNull) => {
                Pending::Element { map, key, is_certain }
            }
            Some(Element { map, key: Some(key), .. }) if helper.id == HelperId::RedirectMap => {
                self.redirects.push((map.id(), map.spec().name.clone()));
                Pending::Entry { map, key }
            }
            _ => Pending::Result { name: helper.name },
        });
    }

    /// Whether the key of an array at an address lies inside whatever the packet is.
    fn is_certain(&self, map: Option<&Map>, address: u64) -> bool {
        let Some(map) = map else { return false };
        let origin = self.shadow.load(address, u64::from(map.spec().key_size));
        match origin.sources.as_slice() {
            [] => true,
            _ => only_packet(&origin).is_some_and(|bits| bits.greatest() < u64::from(map.spec().max_entries)),
        }
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
            if len == 0 {
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

/// Whether the result of a function is what the program asked for, and tells nothing.
fn is_given(name: &str) -> bool {
    let redirects = [HelperId::Redirect, HelperId::RedirectNeigh, HelperId::RedirectPeer];
    redirects.iter().any(|id| id.row().name == name) || name.starts_with("bpf_iter_num_")
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
