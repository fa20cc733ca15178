//! Checks that a run is consistent with the verifier's facts and states.
//!
//! Two kinds of information are checked at each instruction: the facts of the normal walk, which the code generators rely
//! on, and the states of an exact walk (without pruning), one of which must contain the machine's state. Facts reveal wrong
//! pruning, states reveal a wrong simulation of an instruction.

use std::cell::RefCell;
use std::sync::Arc;

use paceline::{Burst, Host, Map, Program};
use paceline_btf::Btf;
use paceline_engine::{FaultKind, Observed};
use paceline_isa::{Code, Insn, Operand, Reg, decode, eval};
use paceline_spec::{MapSpec, ProgramSpec};
use paceline_verifier::state::{Byte, Link, PacketRange, Pointer, Region, Scalar, State, Target, Value};
use paceline_verifier::{Base, Cause, KeyFact, MemoryFact, Observer, Options, Verified, verify_observed};

/// Maximum instructions of an exact walk; programs that need more are only checked against facts.
const EXACT_LIMIT: usize = 20_000;

/// The states of an exact walk, by slot.
pub struct States(Vec<Vec<State>>);

impl Observer for States {
    fn instruction(&mut self, slot: usize, state: &State) {
        if let Some(states) = self.0.get_mut(slot) {
            states.push(state.clone());
        }
    }
}

impl States {
    /// Walks a program exactly; `None` if that exceeds the limit.
    ///
    /// # Errors
    /// The walk refuses the program, although the usual one accepts it.
    pub fn of(program: &ProgramSpec, maps: &[MapSpec], btf: Option<&Btf>) -> Result<Option<Self>, String> {
        let mut states = Self(vec![Vec::new(); program.insns.len()]);
        let options = Options::default().exact(true).max_instructions(EXACT_LIMIT);
        match verify_observed(program, maps, btf, &options, &mut states) {
            Ok(_) => Ok(Some(states)),
            Err(refusal) if refusal.cause.is_too_complex() => Ok(None),
            // A load of part of a pointer is refused at a constant offset and accepted at a variable one, as in the kernel.
            // Therefore a path may be refused although the path that covers it was accepted.
            Err(refusal) if matches!(refusal.cause, Cause::PartialSpill(_)) => Ok(None),
            Err(refusal) => {
                Err(format!("only the exact walk refuses instruction {}: {refusal}", refusal.slot))
            }
        }
    }
}

/// The facts and states of a program.
pub struct Witness<'a> {
    verified: &'a Verified,
    states: Option<States>,
    maps: &'a [Arc<Map>],
    /// For each slot the state after the last match: loops meet states in the order of the walk.
    next: RefCell<Vec<usize>>,
}

impl<'a> Witness<'a> {
    /// The checker of a verified program over the maps that it runs with.
    #[must_use]
    pub fn new(verified: &'a Verified, states: Option<States>, maps: &'a [Arc<Map>]) -> Self {
        let next = RefCell::new(vec![0; verified.program().insns.len()]);
        Self { verified, states, maps, next }
    }

    /// Runs the program on the first frame of a burst. Returns the number of instructions executed.
    ///
    /// # Errors
    /// A fault, or the first instruction at which the machine is in no state of the verifier.
    pub fn run(&self, program: &Program, burst: &mut Burst, host: &mut Host) -> Result<u64, String> {
        let mut wrong = None;
        let observe = |machine: &Observed<'_>| {
            if wrong.is_none() {
                wrong = self.objection(machine).map(|text| format!("instruction {}: {text}", machine.slot));
            }
        };
        let exit = program.run_observed(&mut burst.frame_mut(0), host, observe);
        // The first contradiction is more informative than the fault that follows from it.
        match (wrong, exit) {
            (Some(wrong), _) => Err(wrong),
            (None, Err(fault)) => match fault.kind {
                FaultKind::Budget(instructions) if self.may_take_long() => Ok(instructions),
                _ => Err(fault.to_string()),
            },
            (None, Ok(exit)) => Ok(exit.instructions),
        }
    }

    /// Whether the program has a loop that only `may_goto` bounds, with 8,388,608 iterations: more than the budget of a run.
    fn may_take_long(&self) -> bool {
        let insns = decode(&self.verified.program().insns).unwrap_or_default();
        insns.iter().any(|(_, insn)| matches!(insn, Insn::MayGoto { .. }))
    }

    fn objection(&self, machine: &Observed<'_>) -> Option<String> {
        self.against_facts(machine).or_else(|| self.against_states(machine))
    }

    fn against_states(&self, machine: &Observed<'_>) -> Option<String> {
        let states = self.states.as_ref()?.0.get(machine.slot)?;
        let mut next = self.next.borrow_mut();
        let next = next.get_mut(machine.slot)?;
        let (before, after) = states.split_at((*next).min(states.len()));
        let fits = |state: &State| Membership::new(machine, self.maps).state(state);
        if let Some(index) = after.iter().chain(before).position(fits) {
            *next = (*next + index) % states.len() + 1;
            return None;
        }
        let mut text = format!("in none of {} states:", states.len());
        for (i, value) in machine.registers.iter().enumerate() {
            text.push_str(&format!(" r{i}={value:#x}"));
        }
        for state in states.iter().filter(|state| outer_frames(machine, state).is_some()).take(3) {
            text.push_str("\n   ");
            for (i, value) in state.top().registers().iter().enumerate().filter(|(_, v)| !v.is_unset()) {
                let mut membership = Membership::new(machine, self.maps);
                membership.outer = outer_frames(machine, state).unwrap_or(0);
                let mark = if membership.value(value, machine.registers[i]) { "" } else { "!" };
                text.push_str(&format!(" {mark}r{i}=[{value}]"));
            }
        }
        Some(text)
    }

    fn against_facts(&self, machine: &Observed<'_>) -> Option<String> {
        let fact = self.verified.fact(machine.slot);
        if !fact.reached {
            return Some("reached, which was found impossible".to_owned());
        }
        let insn = instruction(self.verified.code(), machine.slot)?;
        if let Insn::JumpIf { width, condition, dst, src, .. } = insn {
            let other = match src {
                Operand::Reg(reg) => register(machine, reg),
                Operand::Imm(imm) => i64::from(imm) as u64,
            };
            let taken = eval::compare(width, condition, register(machine, dst), other);
            if !(if taken { fact.may_jump } else { fact.may_fall_through }) {
                let way = if taken { "jumps" } else { "falls through" };
                return Some(format!("{way}, which was found impossible"));
            }
        }
        if let (Some(memory), Some((base, offset, size))) = (fact.memory, access(insn)) {
            let address = register(machine, base).wrapping_add(i64::from(offset) as u64);
            if !self.accesses(machine, memory, address, size) {
                return Some(format!("accesses {address:#x}, which is not within {memory:?}"));
            }
        }
        match fact.key {
            Some(KeyFact::Always(key)) => {
                let found = stack_u32(machine, register(machine, Reg::R2))?;
                (found != key).then(|| format!("looks up {found}, not {key}"))
            }
            _ => None,
        }
    }

    fn accesses(&self, machine: &Observed<'_>, fact: MemoryFact, address: u64, size: u64) -> bool {
        let within = |start: u64| {
            let offset = address.wrapping_sub(start) as i64;
            (fact.min_offset..=fact.max_offset).contains(&offset)
        };
        let contains = |map: &Arc<Map>| map.for_programs().contains(address as usize, size as usize);
        match fact.base {
            Base::Context => within(machine.context()),
            Base::OwnStack => within(machine.frame_pointer(machine.depth())),
            Base::CallerStack => (0..machine.depth()).any(|depth| within(machine.frame_pointer(depth))),
            Base::MapValue(map) if map.inner => true,
            Base::MapValue(map) => self.maps.get(map.index as usize).is_some_and(contains),
            Base::SomeMapValue => self.maps.iter().any(contains),
            Base::Packet => machine.packet().is_some_and(|[meta, data, end]| {
                (within(data) || within(meta)) && address >= meta && address + size <= end
            }),
            Base::Memory | Base::Mixed => true,
        }
    }
}

fn register(machine: &Observed<'_>, reg: Reg) -> u64 {
    machine.registers[usize::from(reg.number())]
}

fn instruction(code: &Code, slot: usize) -> Option<Insn> {
    code.get(slot).copied()
}

/// Base register, offset and size of an access.
fn access(insn: Insn) -> Option<(Reg, i16, u64)> {
    match insn {
        Insn::Load { size, base, offset, .. }
        | Insn::LoadAcquire { size, base, offset, .. }
        | Insn::Store { size, base, offset, .. }
        | Insn::StoreRelease { size, base, offset, .. } => Some((base, offset, size.bytes() as u64)),
        Insn::Atomic { width, base, offset, .. } => {
            Some((base, offset, if width == paceline_isa::Width::W64 { 8 } else { 4 }))
        }
        _ => None,
    }
}

/// Four aligned bytes of the stack of any frame.
fn stack_u32(machine: &Observed<'_>, address: u64) -> Option<u32> {
    (0..=machine.depth()).find_map(|depth| {
        let below = machine.frame_pointer(depth).checked_sub(address).filter(|b| (4..=512).contains(b))?;
        let word = machine.stack_word(depth, (below as usize - 1) / 8)?.to_ne_bytes();
        let at = (8 - below % 8) as usize % 8;
        word.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
    })
}

/// Whether the machine is in a state. Relations between several values are recorded from one value to the next.
struct Membership<'a> {
    machine: &'a Observed<'a>,
    maps: &'a [Arc<Map>],
    /// Number of the machine's frames below the state's outermost one.
    outer: usize,
    /// Bases of groups of linked numbers.
    links: Vec<(u32, u64)>,
    /// Their low halves.
    low_links: Vec<(u32, u64)>,
    /// Variable parts of packet pointers, and whether nullable pointers are null.
    ids: Vec<(u32, u64)>,
}

impl<'a> Membership<'a> {
    fn new(machine: &'a Observed<'a>, maps: &'a [Arc<Map>]) -> Self {
        Self { machine, maps, outer: 0, links: Vec::new(), low_links: Vec::new(), ids: Vec::new() }
    }

    fn state(&mut self, state: &State) -> bool {
        let Some(outer) = outer_frames(self.machine, state) else { return false };
        self.outer = outer;
        let registers = state.top().registers().iter().zip(self.machine.registers);
        registers.into_iter().all(|(value, &found)| self.value(value, found))
            && (0..=state.depth()).all(|depth| self.stack(state, depth))
    }

    fn stack(&mut self, state: &State, depth: usize) -> bool {
        let Some(frame) = state.frame(depth) else { return true };
        frame.stack.slots().iter().enumerate().all(|(index, slot)| {
            let Some(word) = self.machine.stack_word(self.outer + depth, index) else { return false };
            let bytes = word.to_ne_bytes();
            let zeros = slot.bytes.iter().zip(bytes).all(|(byte, found)| *byte != Byte::Zero || found == 0);
            zeros && self.spilled(&slot.value, slot.spilled_bytes(), word)
        })
    }

    fn spilled(&mut self, value: &Value, bytes: usize, word: u64) -> bool {
        match (bytes, value) {
            (0, _) => true,
            (8, _) => self.value(value, word),
            // The low bytes of the number, which are at the slot's start.
            (bytes, Value::Scalar(scalar)) if cfg!(target_endian = "little") => {
                let bits = bytes as u32 * 8;
                scalar.number.zero_extend(bits).contains(word & (u64::MAX >> (64 - bits)))
            }
            _ => true,
        }
    }

    fn value(&mut self, value: &Value, found: u64) -> bool {
        match value {
            Value::Unset | Value::Iterator(_) | Value::Dynptr(_) => true,
            Value::Scalar(scalar) => self.number(scalar, found),
            Value::Pointer(pointer) if pointer.nullable => {
                let is_null = found == 0;
                agrees(&mut self.ids, pointer.id, u64::from(is_null))
                    && (is_null || self.pointer(pointer, found))
            }
            Value::Pointer(pointer) => self.pointer(pointer, found),
        }
    }

    fn number(&mut self, scalar: &Scalar, found: u64) -> bool {
        scalar.link.is_none_or(|link| self.linked(link, found)) && scalar.number.contains(found)
    }

    fn linked(&mut self, link: Link, found: u64) -> bool {
        let base = found.wrapping_sub(link.delta as u64);
        let extended =
            if link.low { u32::try_from(found).is_ok() } else { agrees(&mut self.links, link.id, base) };
        extended && agrees(&mut self.low_links, link.id, base & u64::from(u32::MAX))
    }

    fn pointer(&mut self, pointer: &Pointer, found: u64) -> bool {
        // End of the variable part.
        let variable_end = found.wrapping_sub(i64::from(pointer.fixed) as u64);
        let within = |base: u64| pointer.variable.contains(variable_end.wrapping_sub(base));
        match pointer.target {
            Target::Context => within(self.machine.context()),
            Target::Stack { frame } => within(self.machine.frame_pointer(self.outer + usize::from(frame))),
            Target::Map(map) | Target::MapValue(map) if map.inner => true,
            Target::Map(map) => {
                self.maps.get(map.index as usize).is_some_and(|map| within(Arc::as_ptr(map) as u64))
            }
            Target::MapValue(map) => self.maps.get(map.index as usize).is_some_and(|map| {
                let Some(variable) = pointer.variable.as_constant() else { return true };
                let (start, len) = (variable_end.wrapping_sub(variable), map.spec().value_size);
                map.for_programs().contains(start as usize, len as usize)
            }),
            Target::Packet { region, range } => {
                let Some([meta, data, end]) = self.machine.packet() else { return false };
                let (start, end) = if region == Region::Data { (data, end) } else { (meta, data) };
                let enough = match range {
                    PacketRange::Bytes(bytes) => {
                        bytes == 0 || variable_end.checked_add(bytes.into()).is_some_and(|e| e <= end)
                    }
                    PacketRange::AtEnd => found >= end,
                    PacketRange::BeyondEnd => found > end,
                };
                enough && within(start) && agrees(&mut self.ids, pointer.id, variable_end.wrapping_sub(start))
            }
            Target::PacketEnd => self.machine.packet().is_some_and(|[_, _, end]| within(end)),
            Target::Record { size } => {
                let Some(variable) = pointer.variable.as_constant() else { return true };
                let start = variable_end.wrapping_sub(variable) as usize;
                self.maps.iter().any(|map| {
                    map.ring_buffer().is_some() && map.for_programs().contains(start, size as usize)
                })
            }
            Target::Object(kind) => self.machine.has_object(kind, variable_end),
            Target::Memory { .. } | Target::Slice { .. } | Target::Dynptr { .. } | Target::Code { .. } => {
                true
            }
        }
    }
}

/// Number of the machine's frames that the state lacks, because it is a state of a global function, which is verified
/// separately; `None` if the calls of the two differ.
fn outer_frames(machine: &Observed<'_>, state: &State) -> Option<usize> {
    let outer = machine.depth().checked_sub(state.depth())?;
    // The outermost function of a state is the main program or a global function.
    let is_main = state.frames().next().is_some_and(|frame| frame.function == 0);
    let same = state.frames().skip(1).map(|frame| frame.call_slot).eq(machine.calls().skip(outer));
    (same && is_main == (outer == 0)).then_some(outer)
}

/// Whether a group has the same value as before; id 0 means no group.
fn agrees(groups: &mut Vec<(u32, u64)>, id: u32, value: u64) -> bool {
    if id == 0 {
        return true;
    }
    match groups.iter().find(|(known, _)| *known == id) {
        Some((_, known)) => *known == value,
        None => {
            groups.push((id, value));
            true
        }
    }
}
