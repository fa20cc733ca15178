//! The dynamic dependences of a run: for each instruction that ran, the instructions that made the values it read, and the branch that it
//! is control dependent on (Agrawal and Horgan; the branch is found online, as by Xin and Zhang).
//!
//! The last 262,144 instructions of a run are kept. A branch is the last one whose sides have not come together, by the immediate
//! post-dominators of `flow`. A function that a helper calls depends on the call; what follows a tail call that failed depends on
//! it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use paceline_engine::Observed;
use paceline_isa::{AluOp, Callee, Insn, Operand, Reg, RegSet, Size, Width};
use paceline_maps::Map;
use paceline_spec::helper::{Arg, Helper, HelperId};

use crate::explain::flow::Flow;
use crate::explain::trace::At;
use crate::explain::writers::Writers;
pub(crate) use crate::explain::writers::{NONE, StepId};

/// Most instructions that are kept of a run, the last ones.
const MOST_STEPS: usize = 1 << 18;

/// Bytes of the stack of a function.
const FRAME: u64 = 512;

/// A value that an instruction read, and the instruction that made it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    /// A register.
    Register { reg: Reg, def: StepId },
    /// Bytes of memory.
    Memory { address: u64, len: u64, def: StepId },
    /// What a call left that is no value of the program's: whether a map has an element, the result of a function.
    Effect { def: StepId },
}

impl Use {
    pub(crate) fn def(self) -> StepId {
        match self {
            Self::Register { def, .. } | Self::Memory { def, .. } | Self::Effect { def } => def,
        }
    }
}

/// An instruction that ran.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) at: At,
    /// Number of the call of the function that it belongs to.
    pub(crate) activation: u32,
    /// The branch, tail call or call that it is control dependent on.
    pub(crate) control: StepId,
    /// The instruction that made the value, where this one only moves it.
    pub(crate) moves: StepId,
    pub(crate) uses: Vec<Use>,
}

/// A branch whose sides have not come together yet, or a tail call that failed, after which they never do.
#[derive(Clone, Copy)]
struct Open {
    step: StepId,
    join: Option<usize>,
}

/// A call of a function that has not returned.
struct Activation {
    number: u32,
    depth: usize,
    defs: [StepId; 11],
    open: Vec<Open>,
    /// What the first instruction is control dependent on.
    call: StepId,
    /// The last instruction, which may be a call.
    last: StepId,
    /// The exit of the last function that a helper called from here.
    returned: Option<StepId>,
}

/// How the instruction before hands over control.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Plain,
    Calls,
    /// A helper, which may call back.
    Helper,
    TailCalls,
    /// A load that ends the function if it is outside of the packet.
    LoadsPacket,
    Exits,
}

/// Records dependences, instruction by instruction.
pub(crate) struct Steps {
    first: StepId,
    kept: VecDeque<Step>,
    activations: Vec<Activation>,
    calls: u32,
    last: Last,
    memory: Writers,
    /// Elements that the run changed.
    elements: HashMap<(u32, Vec<u8>), StepId>,
    /// A look-up whose result is not known yet: size of the value, and the change of the element.
    looked_up: Option<(u64, StepId)>,
    /// The instruction that ended the run.
    pub(crate) end: StepId,
    pub(crate) flows: Vec<Arc<Flow>>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self {
            first: 0,
            kept: VecDeque::new(),
            activations: Vec::new(),
            calls: 0,
            last: Last::Calls,
            memory: Writers::default(),
            elements: HashMap::new(),
            looked_up: None,
            end: NONE,
            flows: Vec::new(),
        }
    }

    /// A step, if it is kept.
    pub(crate) fn get(&self, id: StepId) -> Option<&Step> {
        self.kept.get(id.checked_sub(self.first)? as usize)
    }

    pub(crate) fn next_id(&self) -> StepId {
        self.first + self.kept.len() as StepId
    }

    pub(crate) fn is_kept(&self, id: StepId) -> bool {
        id >= self.first
    }

    pub(crate) fn flow(&self, at: At) -> Option<&Flow> {
        self.flows.get(at.program).map(|flow| &**flow)
    }

    /// Records the next instruction. Whether it is the first of a function that a helper calls.
    pub(crate) fn see(&mut self, observed: &Observed<'_>, at: At) -> bool {
        let is_called_back = self.hand_over(observed);
        self.record(observed, at);
        is_called_back
    }

    fn record(&mut self, observed: &Observed<'_>, at: At) {
        if let Some((len, def)) = self.looked_up.take() {
            self.memory.set(observed.registers[0], len, def);
        }
        let Some(flow) = self.flows.get(at.program).cloned() else { return };
        let Some(activation) = self.activations.last_mut() else { return };
        activation.close(at.slot);
        let Some(insn) = observed.insn() else { return };
        let uses = self.uses(observed, insn);
        let moves = self.moved(insn, &uses);
        let step = self.push(at, moves, uses);
        self.end = step;
        self.define(observed, insn, step);
        if let Some(activation) = self.activations.last_mut() {
            activation.last = step;
            if matches!(
                insn,
                Insn::JumpIf { .. } | Insn::LoadPacket { .. } | Insn::Call(Callee::Helper(Helper::TAIL_CALL))
            ) {
                activation.open.push(Open { step, join: flow.join(at.slot) });
            }
        }
        self.last = match insn {
            Insn::Exit => Last::Exits,
            Insn::LoadPacket { .. } => Last::LoadsPacket,
            Insn::Call(Callee::Subprogram(_)) => Last::Calls,
            Insn::Call(Callee::Helper(Helper::TAIL_CALL)) => Last::TailCalls,
            Insn::Call(_) => Last::Helper,
            _ => Last::Plain,
        };
    }

    fn push(&mut self, at: At, moves: StepId, uses: Vec<Use>) -> StepId {
        if self.kept.len() == MOST_STEPS {
            self.kept.drain(..MOST_STEPS / 4);
            self.first += (MOST_STEPS / 4) as StepId;
        }
        let id = self.next_id();
        let (activation, control) =
            self.activations.last().map_or((0, NONE), |activation| (activation.number, activation.control()));
        self.kept.push_back(Step { at, activation, control, moves, uses });
        id
    }

    /// Follows calls and returns up to the function of the instruction that runs next; whether a helper calls that.
    fn hand_over(&mut self, observed: &Observed<'_>) -> bool {
        match std::mem::replace(&mut self.last, Last::Plain) {
            Last::Plain => {}
            Last::Calls => self.enter(observed),
            Last::Helper => return self.enter_callback(observed),
            Last::TailCalls => {
                // Programs begin at their first slot, and no function of a program can be called from a tail call's place.
                let before = self.activations.last();
                let has_failed = before.is_some_and(|before| {
                    self.get(before.last).is_some_and(|call| observed.slot == call.at.slot + 1)
                });
                if !has_failed {
                    let call = self.activations.pop().map_or(NONE, |left| left.last);
                    self.start(observed, call, [NONE; 11]);
                }
            }
            Last::LoadsPacket
                if self.activations.last().is_none_or(|last| observed.depth() >= last.depth) => {}
            Last::Exits | Last::LoadsPacket => {
                let Some(left) = self.activations.pop() else { return false };
                self.leave(&left);
                if self.enter_callback(observed) {
                    return true;
                }
                self.returned();
            }
        }
        false
    }

    fn enter(&mut self, observed: &Observed<'_>) {
        let Some(caller) = self.activations.last() else {
            self.start(observed, NONE, [NONE; 11]);
            return;
        };
        let (call, at) = (caller.last, self.get(caller.last).map(|step| step.at));
        let mut defs = [NONE; 11];
        for reg in RegSet::ARGUMENTS.iter() {
            let def = self.def(reg);
            // An argument is a copy, so that what it was made of is told apart from the other arguments.
            if let Some(at) = at.filter(|_| def != NONE) {
                defs[usize::from(reg.number())] = self.push(at, def, vec![Use::Register { reg, def }]);
            }
        }
        self.start(observed, call, defs);
    }

    /// Enters a function that a helper calls, if the instruction is one of a function further in.
    fn enter_callback(&mut self, observed: &Observed<'_>) -> bool {
        let Some(caller) = self.activations.last().filter(|caller| observed.depth() > caller.depth) else {
            return false;
        };
        self.start(observed, caller.last, [NONE; 11]);
        true
    }

    fn start(&mut self, observed: &Observed<'_>, call: StepId, defs: [StepId; 11]) {
        let frame = observed.registers[10];
        self.memory.clear(frame.wrapping_sub(FRAME), FRAME);
        self.calls += 1;
        self.activations.push(Activation {
            number: self.calls,
            depth: observed.depth(),
            defs,
            open: Vec::new(),
            call,
            last: NONE,
            returned: None,
        });
    }

    fn leave(&mut self, left: &Activation) {
        let Some(caller) = self.activations.last_mut() else { return };
        for reg in RegSet::CALLER_SAVED.iter() {
            caller.defs[usize::from(reg.number())] = NONE;
        }
        caller.returned = Some(left.last);
        // What follows a tail call that failed would not have run otherwise, also in the callers.
        let ends = left.open.iter().filter(|open| open.join.is_none());
        let tail = ends.rev().find(|open| {
            let call = open.step.checked_sub(self.first).and_then(|index| self.kept.get(index as usize));
            call.is_some_and(|step| {
                let insn = self.flows.get(step.at.program).and_then(|flow| flow.insn(step.at.slot));
                matches!(insn, Some(Insn::Call(Callee::Helper(Helper::TAIL_CALL))))
            })
        });
        if let Some(tail) = tail {
            caller.open.insert(0, *tail);
        }
    }

    /// The result of a call is that of the function's exit.
    fn returned(&mut self) {
        let Some(caller) = self.activations.last_mut() else { return };
        let (call, Some(exit)) = (caller.last, caller.returned.take()) else { return };
        let Some(at) = self.get(call).map(|step| step.at) else { return };
        let calls_back = self
            .flow(at)
            .and_then(|flow| flow.insn(at.slot))
            .is_some_and(|insn| matches!(insn, Insn::Call(Callee::Helper(_))));
        let mut uses = vec![Use::Register { reg: Reg::R0, def: exit }];
        uses.extend(calls_back.then_some(Use::Effect { def: call }));
        let result = self.push(at, if calls_back { NONE } else { exit }, uses);
        if let Some(caller) = self.activations.last_mut() {
            caller.defs[0] = result;
        }
    }

    fn def(&self, reg: Reg) -> StepId {
        let defs = self.activations.last().map(|activation| &activation.defs);
        defs.and_then(|defs| defs.get(usize::from(reg.number()))).copied().unwrap_or(NONE)
    }

    /// The definition of the value that an instruction moves without changing it.
    fn moved(&self, insn: &Insn, uses: &[Use]) -> StepId {
        match insn {
            Insn::Alu { op: AluOp::Mov, src: Operand::Reg(reg), .. }
            | Insn::Store { src: Operand::Reg(reg), .. }
            | Insn::MovSx { src: reg, .. } => self.def(*reg),
            Insn::Exit => self.def(Reg::R0),
            Insn::Load { .. } => {
                let mut writers = uses.iter().filter(|used| matches!(used, Use::Memory { .. }));
                match (writers.next(), writers.next()) {
                    (Some(only), None) => only.def(),
                    _ => NONE,
                }
            }
            _ => NONE,
        }
    }

    fn uses(&self, observed: &Observed<'_>, insn: &Insn) -> Vec<Use> {
        let (mut uses, mut registers) = (Vec::new(), insn.reads());
        match insn {
            Insn::Call(Callee::Helper(id)) => {
                let args = arguments(*id);
                registers = RegSet::ARGUMENTS.iter().take(args.len()).collect();
                self.read_arguments(observed, args, &mut uses);
            }
            Insn::Call(Callee::Subprogram(_)) => registers = RegSet::EMPTY,
            Insn::Load { size, base, offset, .. } | Insn::LoadAcquire { size, base, offset, .. } => {
                self.read(address(observed, *base, *offset), size.bytes() as u64, &mut uses);
            }
            Insn::Atomic { width, base, offset, .. } => {
                self.read(address(observed, *base, *offset), bytes_of(*width), &mut uses);
            }
            _ => {}
        }
        let registers = registers.iter().filter(|reg| *reg != Reg::R10);
        uses.extend(
            registers.map(|reg| Use::Register { reg, def: self.def(reg) }).filter(|used| used.def() != NONE),
        );
        uses
    }

    fn read(&self, address: u64, len: u64, uses: &mut Vec<Use>) {
        uses.extend(self.memory.of(address, len).into_iter().map(|def| Use::Memory { address, len, def }));
    }

    fn read_arguments(&self, observed: &Observed<'_>, args: &[Arg], uses: &mut Vec<Use>) {
        let map = map_argument(observed, args);
        for (index, arg) in args.iter().enumerate() {
            let value = |index: usize| observed.registers.get(index + 1).copied().unwrap_or(0);
            let (address, spec) = (value(index), map.map(|map| map.spec()));
            let len = match arg {
                Arg::MapKey => spec.map_or(0, |spec| u64::from(spec.key_size)),
                Arg::MapValue => spec.map_or(0, |spec| u64::from(spec.value_size)),
                Arg::ReadMem | Arg::ReadMemOrNull | Arg::ReadWriteMem => value(index + 1),
                Arg::ReadBytes(len) | Arg::ReadWriteBytes(len) => u64::from(*len),
                _ => 0,
            };
            self.read(address, len, uses);
        }
        if let Some((map, key)) = map.zip(key_argument(observed, args))
            && let Some(&def) = self.elements.get(&(map.id(), key))
        {
            uses.push(Use::Effect { def });
        }
    }

    fn define(&mut self, observed: &Observed<'_>, insn: &Insn, step: StepId) {
        match insn {
            Insn::Store { size, base, offset, .. } | Insn::StoreRelease { size, base, offset, .. } => {
                self.memory.set(address(observed, *base, *offset), size.bytes() as u64, step);
            }
            Insn::Atomic { width, base, offset, .. } => {
                self.memory.set(address(observed, *base, *offset), bytes_of(*width), step);
            }
            Insn::Call(Callee::Helper(id)) => self.define_by_helper(observed, *id, step),
            _ => {}
        }
        let Some(activation) = self.activations.last_mut() else { return };
        for reg in insn.writes().iter() {
            let is_result =
                !insn.is_call() || (reg == Reg::R0 && !matches!(insn, Insn::Call(Callee::Subprogram(_))));
            if let Some(def) = activation.defs.get_mut(usize::from(reg.number())) {
                // The arguments of a call are read when its function begins.
                let is_kept = matches!(insn, Insn::Call(Callee::Subprogram(_)));
                *def = if is_result {
                    step
                } else if is_kept {
                    *def
                } else {
                    NONE
                };
            }
        }
    }

    fn define_by_helper(&mut self, observed: &Observed<'_>, id: i32, step: StepId) {
        let args = arguments(id);
        for (index, arg) in args.iter().enumerate() {
            let value = |index: usize| observed.registers.get(index + 1).copied().unwrap_or(0);
            let len = match arg {
                Arg::WriteMem | Arg::WriteMemOrNull | Arg::ReadWriteMem => value(index + 1),
                Arg::WriteBytes(len) | Arg::ReadWriteBytes(len) => u64::from(*len),
                _ => continue,
            };
            self.memory.set(value(index), len, step);
        }
        let Some((map, key)) = map_argument(observed, args).zip(key_argument(observed, args)) else { return };
        if HelperId::MapUpdateElem.is(id) || HelperId::MapDeleteElem.is(id) {
            self.elements.insert((map.id(), key), step);
        } else if let Some(&def) = self.elements.get(&(map.id(), key))
            && HelperId::MapLookupElem.is(id)
        {
            self.looked_up = Some((u64::from(map.spec().value_size), def));
        }
    }

    /// Whether the run changed an element before.
    pub(crate) fn has_changed(&self, map: &Map, key: &[u8]) -> bool {
        self.elements.contains_key(&(map.id(), key.to_vec()))
    }
}

impl Activation {
    fn control(&self) -> StepId {
        self.open.last().map_or(self.call, |open| open.step)
    }

    /// Ends the branches whose sides come together at a slot.
    fn close(&mut self, slot: usize) {
        while self.open.last().is_some_and(|open| open.join == Some(slot)) {
            self.open.pop();
        }
    }
}

fn address(observed: &Observed<'_>, base: Reg, offset: i16) -> u64 {
    let base = observed.registers.get(usize::from(base.number())).copied().unwrap_or(0);
    base.wrapping_add_signed(i64::from(offset))
}

fn bytes_of(width: Width) -> u64 {
    let size = if width == Width::W32 { Size::W } else { Size::Dw };
    size.bytes() as u64
}

/// The types of a helper's arguments.
pub(crate) fn arguments(id: i32) -> &'static [Arg] {
    let prototype = Helper::from_imm(id).and_then(|helper| helper.prototype.as_ref());
    prototype.map_or(&[], |prototype| prototype.args)
}

/// The map that a helper is given.
pub(crate) fn map_argument<'a>(observed: &'a Observed<'_>, args: &[Arg]) -> Option<&'a Arc<Map>> {
    let index = args.iter().position(|arg| *arg == Arg::Map)?;
    observed.map(*observed.registers.get(index + 1)?)
}

/// The key that a helper is given for its map.
pub(crate) fn key_argument(observed: &Observed<'_>, args: &[Arg]) -> Option<Vec<u8>> {
    let index = args.iter().position(|arg| *arg == Arg::MapKey)?;
    let map = map_argument(observed, args)?;
    observed.read(*observed.registers.get(index + 1)?, map.spec().key_size as usize)
}
