//! Bounds-check elimination across the programs of a chain: facts about the packet's length carry over to the next programs.
//!
//! The main function is walked in slot order, over abstract register contents (the packet's start plus a displacement, its end, a
//! constant) and the proven minimum length of the packet. A comparison with the end that this minimum decides leaves one successor;
//! code that only the other one reaches is not emitted.

use paceline_graph::{Graph, Next, Node};
use paceline_isa::{AluOp, Callee, Condition, Imm64, Insn, Operand, Reg, Width};
use paceline_spec::context::FieldKind;
use paceline_spec::helper::Helper;
use paceline_verifier::FunctionFact;

use crate::context;
use crate::plan::accesses_context;
use crate::source::{Source, is_tail_call};
use paceline_graph::COUNTS;

/// Abstract contents of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// Anything else.
    Other,
    /// The packet's start plus this displacement in bytes.
    Start(i32),
    /// The address past the packet's last byte.
    End,
    /// A constant with these low bits.
    Number(u32),
}

/// The abstract state before a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    registers: [Held; 11],
    /// Proven minimum length of the packet, in bytes.
    bytes: u16,
}

impl State {
    /// The state at an exit that is reached only with known results: reachable, with nothing else to join.
    const REACHED: Self = Self { registers: [Held::Other; 11], bytes: u16::MAX };

    fn get(&self, reg: Reg) -> Held {
        self.registers.get(usize::from(reg.number())).copied().unwrap_or(Held::Other)
    }

    fn set(&mut self, reg: Reg, held: Held) {
        if let Some(place) = self.registers.get_mut(usize::from(reg.number())) {
            *place = held;
        }
    }

    /// Drops facts about the packet, which may have moved or been replaced.
    fn forget_packet(&mut self) {
        self.bytes = 0;
        for held in &mut self.registers {
            if !matches!(held, Held::Number(_)) {
                *held = Held::Other;
            }
        }
    }

    fn join(mut self, other: &Self) -> Self {
        for (held, other) in self.registers.iter_mut().zip(&other.registers) {
            if held != other {
                *held = Held::Other;
            }
        }
        self.bytes = self.bytes.min(other.bytes);
        self
    }
}

/// Result of the analysis of one program.
#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    /// The result for each slot.
    found: Vec<Narrowed>,
    /// Proven minimum length of packets for which the program returns a verdict, by verdict class; `None` if it never returns it.
    pub(crate) exits: [Option<u16>; COUNTS],
}

/// Passes over a function before the analysis gives up.
const PASSES: usize = 16;

impl Lengths {
    /// Analyzes a program for packets of at least `bytes` bytes; `None` if it does not converge within [`PASSES`].
    pub(crate) fn of(source: &Source<'_>, bytes: u16) -> Option<Self> {
        let function = source.functions.first()?;
        let mut lengths = Self { found: vec![Narrowed::Unreached; source.code.len()], exits: [None; COUNTS] };
        let mut blocks = Blocks::of(source, function);
        blocks.meet(function.start, &State { registers: [Held::Other; 11], bytes });
        let walk = Walk::new(source);
        for _ in 0..PASSES {
            lengths.exits = [None; COUNTS];
            if !lengths.pass(&walk, function, &mut blocks) {
                if walk.tail_calls {
                    // After a tail call the exit state is that of another program, and unknown.
                    lengths.exits = [Some(0); COUNTS];
                }
                return Some(lengths);
            }
        }
        None
    }

    /// One pass over the function; returns whether a state at an earlier slot changed, so that another pass is needed.
    fn pass(&mut self, walk: &Walk<'_, '_>, function: &FunctionFact, blocks: &mut Blocks) -> bool {
        let mut again = false;
        // The state after the previous instruction, for slots that are reached only by falling through.
        let mut passed: Option<State> = None;
        for (slot, insn) in walk.source.reached(function) {
            let from_before = passed.take();
            let Some(state) = blocks.at(slot).unwrap_or(from_before) else { continue };
            if let Some(place) = self.found.get_mut(slot) {
                *place = way_of(walk.source, slot, insn, &state);
            }
            walk.follow(slot, insn, state, |target, state| {
                if target > slot && blocks.at(target).is_none() {
                    passed = Some(*state);
                } else {
                    again |= self.arrive(walk.source, blocks, target, state) && target <= slot;
                }
            });
            match insn {
                Insn::Exit if state != State::REACHED => self.exit(&state),
                Insn::LoadPacket { .. } => {
                    // A load out of bounds ends the program with 0.
                    let mut state = state;
                    state.set(Reg::R0, Held::Number(0));
                    self.exit(&state);
                }
                _ => {}
            }
        }
        again
    }

    /// The result for a slot.
    pub(crate) fn narrowed(&self, slot: usize) -> Narrowed {
        self.found.get(slot).copied().unwrap_or(Narrowed::Same)
    }

    /// Propagates a state to a slot. Exits are kept apart by predecessor as long as the result is known there.
    fn arrive(&mut self, source: &Source<'_>, blocks: &mut Blocks, slot: usize, state: &State) -> bool {
        if matches!(source.code.get(slot), Some(Insn::Exit)) && matches!(state.get(Reg::R0), Held::Number(_))
        {
            self.exit(state);
            blocks.reach(slot);
            return false;
        }
        blocks.meet(slot, state)
    }

    fn exit(&mut self, state: &State) {
        let least = |old: Option<u16>| Some(old.map_or(state.bytes, |old| old.min(state.bytes)));
        match state.get(Reg::R0) {
            Held::Number(code) => {
                let class = (code as usize).min(COUNTS - 1);
                self.exits[class] = least(self.exits[class]);
            }
            _ => self.exits.iter_mut().for_each(|exit| *exit = least(*exit)),
        }
    }
}

/// States at jump targets. At any other slot the state is that after the previous instruction.
struct Blocks {
    /// Index of the state, by slot; [`NO_BLOCK`](Self::NO_BLOCK) where no jump targets the slot.
    index: Vec<u32>,
    states: Vec<Option<State>>,
}

impl Blocks {
    const NO_BLOCK: u32 = u32::MAX;

    fn of(source: &Source<'_>, function: &FunctionFact) -> Self {
        let mut blocks = Self { index: vec![Self::NO_BLOCK; source.code.len()], states: Vec::new() };
        let jumps = source.reached(function).filter_map(|(slot, insn)| insn.jump_target(slot));
        for target in jumps.filter_map(|target| usize::try_from(target).ok()).chain([function.start]) {
            if let Some(index @ &mut Self::NO_BLOCK) = blocks.index.get_mut(target) {
                *index = blocks.states.len() as u32;
                blocks.states.push(None);
            }
        }
        blocks
    }

    fn place(&mut self, slot: usize) -> Option<&mut Option<State>> {
        let index = self.index.get(slot)?;
        self.states.get_mut(*index as usize)
    }

    /// The state at a slot that begins a block.
    fn at(&self, slot: usize) -> Option<Option<State>> {
        let index = self.index.get(slot)?;
        self.states.get(*index as usize).copied()
    }

    fn meet(&mut self, slot: usize, state: &State) -> bool {
        let Some(place) = self.place(slot) else { return false };
        let joined = place.map_or(*state, |old| old.join(state));
        place.replace(joined) != Some(joined)
    }

    /// Marks an exit as reachable without joining a state.
    fn reach(&mut self, slot: usize) {
        if let Some(place @ None) = self.place(slot) {
            *place = Some(State::REACHED);
        }
    }
}

/// The decided direction of a jump, if it is always the same.
fn way_of(source: &Source<'_>, slot: usize, insn: &Insn, state: &State) -> Narrowed {
    decided(state, insn).map_or(Narrowed::Same, |taken| {
        let fact = source.fact(slot);
        let goes = if taken { fact.may_jump } else { fact.may_fall_through };
        if goes { Narrowed::Goes(taken) } else { Narrowed::Same }
    })
}

/// A fact about an instruction in addition to the verifier's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Narrowed {
    Same,
    Unreached,
    /// A jump with a decided direction: whether it is taken.
    Goes(bool),
}

/// Transfer functions of instructions.
struct Walk<'a, 'b> {
    source: &'a Source<'b>,
    /// Whether a subprogram may move or replace the packet.
    functions_change: bool,
    tail_calls: bool,
}

impl<'a, 'b> Walk<'a, 'b> {
    fn new(source: &'a Source<'b>) -> Self {
        let functions_change = functions_move_packet(source);
        let tail_calls = source.functions.iter().any(|function| function.tail_calls);
        Self { source, functions_change, tail_calls }
    }

    /// Calls `to` for each successor of an instruction, with the state there.
    fn follow(&self, slot: usize, insn: &Insn, state: State, mut to: impl FnMut(usize, &State)) {
        let target = insn.jump_target(slot).and_then(|target| usize::try_from(target).ok());
        let fact = self.source.fact(slot);
        let (falls, jumps) = match (insn.falls_through(), target) {
            (true, Some(_)) => match decided(&state, insn) {
                Some(taken) => (!taken && fact.may_fall_through, taken && fact.may_jump),
                None => (fact.may_fall_through, fact.may_jump),
            },
            (falls, target) => (falls, target.is_some()),
        };
        if falls {
            let mut next = self.step(slot, insn, state);
            next.bytes = next.bytes.max(proven(&state, insn, false));
            to(slot + insn.slots(), &next);
        }
        if let Some(target) = target.filter(|_| jumps) {
            let mut next = self.step(slot, insn, state);
            next.bytes = next.bytes.max(proven(&state, insn, true));
            to(target, &next);
        }
    }

    fn step(&self, slot: usize, insn: &Insn, mut state: State) -> State {
        match *insn {
            Insn::Load { dst, .. } => {
                let held = self.loaded(slot, insn);
                state.set(dst, held);
            }
            Insn::LoadImm64 { dst, value: Imm64::Value(value) } => state.set(dst, Held::Number(value as u32)),
            Insn::Alu { width, op, dst, src } => {
                let held = computed(&state, width, op, dst, src);
                state.set(dst, held);
            }
            Insn::Call(callee) => {
                if moves_packet(&callee) || self.functions_change && runs_functions(&callee) {
                    state.forget_packet();
                }
                (0..6).filter_map(Reg::new).for_each(|reg| state.set(reg, Held::Other));
            }
            _ => insn.writes().iter().for_each(|reg| state.set(reg, Held::Other)),
        }
        state
    }

    fn loaded(&self, slot: usize, insn: &Insn) -> Held {
        if !accesses_context(self.source, slot) {
            return Held::Other;
        }
        match context::field(self.source, slot, insn).map(|place| place.field.kind) {
            Ok(FieldKind::PacketData) => Held::Start(0),
            Ok(FieldKind::PacketEnd) => Held::End,
            _ => Held::Other,
        }
    }
}

fn computed(state: &State, width: Width, op: AluOp, dst: Reg, src: Operand) -> Held {
    match (op, src, width) {
        (AluOp::Mov, Operand::Imm(imm), _) => Held::Number(imm as u32),
        (AluOp::Mov, Operand::Reg(reg), Width::W64) => state.get(reg),
        (AluOp::Add | AluOp::Sub, Operand::Imm(imm), Width::W64) => match state.get(dst) {
            Held::Start(bytes) => {
                let moved = if op == AluOp::Add { bytes.checked_add(imm) } else { bytes.checked_sub(imm) };
                moved.map_or(Held::Other, Held::Start)
            }
            _ => Held::Other,
        },
        _ => Held::Other,
    }
}

/// A comparison with the packet's end: the length in bytes that one direction proves, and whether that direction is the taken jump.
fn comparison(state: &State, insn: &Insn) -> Option<(i32, bool)> {
    let Insn::JumpIf { width: Width::W64, condition, dst, src: Operand::Reg(src), .. } = *insn else {
        return None;
    };
    match (state.get(dst), state.get(src)) {
        (Held::Start(bytes), Held::End) => match condition {
            Condition::Gt => Some((bytes, false)),
            Condition::Ge => Some((bytes.checked_add(1)?, false)),
            Condition::Lt => Some((bytes.checked_add(1)?, true)),
            Condition::Le => Some((bytes, true)),
            _ => None,
        },
        (Held::End, Held::Start(bytes)) => match condition {
            Condition::Lt => Some((bytes, false)),
            Condition::Le => Some((bytes.checked_add(1)?, false)),
            Condition::Gt => Some((bytes.checked_add(1)?, true)),
            Condition::Ge => Some((bytes, true)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a jump is taken, if the state decides it.
fn decided(state: &State, insn: &Insn) -> Option<bool> {
    let (bytes, taken) = comparison(state, insn)?;
    (0..=i32::from(state.bytes)).contains(&bytes).then_some(taken)
}

/// Packet length in bytes that is proven if a jump is taken, or if it is not.
fn proven(state: &State, insn: &Insn, taken: bool) -> u16 {
    let found = comparison(state, insn).filter(|(_, way)| *way == taken);
    found.and_then(|(bytes, _)| u16::try_from(bytes).ok()).unwrap_or(0)
}

/// Whether a call may move or replace the packet.
pub(crate) fn may_move_packet(source: &Source<'_>, callee: &Callee) -> bool {
    moves_packet(callee) || runs_functions(callee) && functions_move_packet(source)
}

/// Whether a subprogram may move or replace the packet.
fn functions_move_packet(source: &Source<'_>) -> bool {
    let called = source.functions.iter().skip(1);
    // A program that is tail called from a subprogram returns to the subprogram's caller.
    let moves =
        |insn: &Insn| matches!(insn, Insn::Call(callee) if moves_packet(callee)) || is_tail_call(insn);
    called.flat_map(|function| source.reached(function)).any(|(_, insn)| moves(insn))
}

/// Whether the callee itself may move or replace the packet.
fn moves_packet(callee: &Callee) -> bool {
    match callee {
        // A tail call that returns has failed without effects.
        Callee::Helper(Helper::TAIL_CALL) | Callee::Subprogram(_) => false,
        Callee::Helper(id) => {
            let helper = Helper::from_imm(*id);
            helper.and_then(|helper| helper.prototype).is_none_or(|prototype| prototype.moves_packet)
        }
        Callee::Kfunc { .. } => true,
    }
}

/// Whether a call executes subprograms of the program.
fn runs_functions(callee: &Callee) -> bool {
    match callee {
        Callee::Subprogram(_) => true,
        Callee::Helper(id) => Helper::from_imm(*id).is_some_and(|helper| helper.callback().is_some()),
        Callee::Kfunc { .. } => false,
    }
}

/// Eliminates bounds checks in programs that their predecessors in a graph make redundant.
pub(crate) fn narrow(sources: &mut [Source<'_>], graph: &Graph) {
    let nodes = sources.len();
    let (mut bytes, mut found): (Vec<Option<u16>>, Vec<Option<Lengths>>) =
        (vec![None; nodes], vec![None; nodes]);
    let mut waiting = vec![Node::ENTRY];
    if let Some(first) = bytes.first_mut() {
        *first = Some(0);
    }
    let mut visits = 0;
    while let Some(node) = waiting.pop() {
        visits += 1;
        let (Some(source), Some(Some(least))) = (sources.get(node.index()), bytes.get(node.index())) else {
            continue;
        };
        let lengths = Lengths::of(source, *least);
        // Graphs with cycles that do not converge soon keep their checks.
        if visits > VISITS * nodes {
            return;
        }
        for class in 0..COUNTS {
            let Next::Program(next) = graph.after(node, class as u32) else { continue };
            let exit = match &lengths {
                Some(lengths) => lengths.exits[class],
                None => Some(0),
            };
            let (Some(exit), Some(place)) = (exit, bytes.get_mut(next.index())) else { continue };
            let joined = place.map_or(exit, |old| old.min(exit));
            if place.replace(joined) != Some(joined) && !waiting.contains(&next) {
                waiting.push(next);
            }
        }
        if let Some(place) = found.get_mut(node.index()) {
            *place = lengths;
        }
    }
    for ((source, lengths), bytes) in sources.iter_mut().zip(&found).zip(bytes) {
        if let (Some(lengths), Some(1..)) = (lengths, bytes) {
            source.narrow(lengths);
        }
    }
}

/// Average number of visits to each program after which the analysis gives up on a graph.
const VISITS: usize = 8;
