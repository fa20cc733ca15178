//! Control flow: the checks that need no abstract values, and register liveness.

use std::collections::BTreeSet;

use paceline_isa::{Callee, Code, Insn, Reg, RegSet};
use paceline_spec::helper::{Helper, HelperId};
use paceline_spec::kfunc::IteratorStep;
use paceline_spec::{Linkage, ProgramSpec};

use crate::error::{Cause, Refusal};
use crate::limits::MAX_FUNCTIONS;

/// A function of the program.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// Its first slot.
    pub(crate) start: usize,
    /// The slot after its last.
    pub(crate) end: usize,
    /// Whether it is verified on its own.
    pub(crate) is_global: bool,
    /// Whether it may move the packet, directly or in a callee.
    pub(crate) moves_packet: bool,
}

/// Control flow of a program.
#[derive(Debug)]
pub(crate) struct ControlFlow {
    /// Its functions by rising start; the main program first.
    pub(crate) functions: Vec<Function>,
    /// Registers whose value may still be read, before each slot.
    pub(crate) live: Vec<RegSet>,
    /// Where states are compared.
    pub(crate) meetings: Vec<PrunePoint>,
    /// Whether any of these is [`PrunePoint::Round`].
    pub(crate) has_rounds: bool,
}

/// Whether the states at a slot are compared with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PrunePoint {
    /// No.
    #[default]
    Never,
    /// At conditional jumps, jump targets, calls of functions and the instruction after any call, as in the kernel:
    /// compared with some of the earlier states.
    Sometimes,
    /// At instructions that repeat code (helpers with callbacks, iterator steps, `may_goto`): compared with all earlier
    /// states, since the loop converges only here.
    Round,
}

impl ControlFlow {
    /// Checks the shape of a program.
    pub(crate) fn of(program: &ProgramSpec, code: &Code) -> Result<Self, Box<Refusal>> {
        let functions = functions(program, code)?;
        for function in &functions {
            check_function(function, code)?;
        }
        let mut flow = Self {
            functions,
            live: vec![RegSet::EMPTY; code.len()],
            meetings: vec![PrunePoint::Never; code.len()],
            has_rounds: false,
        };
        flow.check_reachable(code)?;
        flow.find_meetings(program, code);
        flow.find_live(program, code);
        flow.find_moves(code);
        Ok(flow)
    }

    /// The index of the function that a slot belongs to.
    pub(crate) fn function_at(&self, slot: usize) -> usize {
        self.functions.partition_point(|f| f.start <= slot).saturating_sub(1)
    }

    /// The index of the function that starts at a slot.
    pub(crate) fn function_starting(&self, slot: usize) -> Option<usize> {
        self.functions.binary_search_by_key(&slot, |f| f.start).ok()
    }

    fn check_reachable(&self, code: &Code) -> Result<(), Box<Refusal>> {
        let mut reached = vec![false; code.len()];
        let mut work = vec![0];
        while let Some(slot) = work.pop() {
            let Some(insn) = code.get(slot) else { continue };
            if std::mem::replace(&mut reached[slot], true) {
                continue;
            }
            work.extend(successors(insn, slot));
            work.extend(insn.subprogram_target(slot).map(|target| target as usize));
        }
        match code.iter().find(|&(slot, _)| !reached[slot]) {
            Some((slot, _)) => Err(Refusal::at(slot, Cause::Unreachable)),
            None => Ok(()),
        }
    }

    fn find_meetings(&mut self, program: &ProgramSpec, code: &Code) {
        for (slot, insn) in code.iter() {
            if makes_rounds(program, insn) {
                self.mark_meeting(slot, PrunePoint::Round);
                self.has_rounds = true;
            }
            if let Some(target) = insn.jump_target(slot) {
                self.mark_meeting(target as usize, PrunePoint::Sometimes);
                if insn.falls_through() {
                    self.mark_meeting(slot, PrunePoint::Sometimes);
                }
            }
            if insn.is_call() {
                self.mark_meeting(slot + 1, PrunePoint::Sometimes);
            }
            if let (Insn::Call(Callee::Subprogram(_)), Some(target)) = (insn, insn.subprogram_target(slot)) {
                self.mark_meeting(slot, PrunePoint::Sometimes);
                self.mark_meeting(target as usize, PrunePoint::Sometimes);
            }
        }
    }

    fn mark_meeting(&mut self, slot: usize, meeting: PrunePoint) {
        if let Some(mark) = self.meetings.get_mut(slot) {
            *mark = meeting.max(*mark);
        }
    }

    /// Backward data flow: a register is live if some path reads it before writing it. An instruction is visited again only
    /// when one of its dependencies changed, at most once for each register.
    fn find_live(&mut self, program: &ProgramSpec, code: &Code) {
        let dependents = self.dependents(code);
        let mut work: Vec<usize> = code.iter().map(|(slot, _)| slot).collect();
        let mut waits = vec![true; code.len()];
        while let Some(slot) = work.pop() {
            waits[slot] = false;
            let Some(insn) = code.get(slot) else { continue };
            let after = successors(insn, slot).fold(RegSet::EMPTY, |all, next| all.union(self.live[next]));
            let live = after.minus(insn.writes()).union(self.reads(program, insn, slot));
            if std::mem::replace(&mut self.live[slot], live) != live {
                let changed = dependents.of(slot).filter(|&slot| !std::mem::replace(&mut waits[slot], true));
                work.extend(changed);
            }
        }
    }

    /// The dependents of each instruction's live registers: its predecessors, and the callers of a static function for the
    /// function's start.
    fn dependents(&self, code: &Code) -> Dependents {
        let mut dependents = Dependents::new(code.len());
        for (slot, insn) in code.iter() {
            successors(insn, slot).for_each(|next| dependents.add(next, slot));
            if let Insn::Call(Callee::Subprogram(_)) = insn
                && let Some(callee) = self.callee(insn, slot)
            {
                dependents.add(self.functions[callee].start, slot);
            }
        }
        dependents
    }

    /// The function that an instruction calls, or whose address it loads.
    pub(crate) fn callee(&self, insn: &Insn, slot: usize) -> Option<usize> {
        let target = insn.subprogram_target(slot).and_then(|target| usize::try_from(target).ok());
        target.and_then(|target| self.function_starting(target))
    }

    /// Registers that an instruction reads; a call reads only the callee's arguments.
    fn reads(&self, program: &ProgramSpec, insn: &Insn, slot: usize) -> RegSet {
        match insn {
            Insn::Call(Callee::Helper(id)) => {
                let prototype = helper(*id).and_then(|h| h.prototype);
                prototype.map_or(RegSet::ARGUMENTS, |p| first_arguments(p.args.len()))
            }
            Insn::Call(Callee::Kfunc { btf_id, .. }) => {
                program.kfunc(*btf_id).map_or(RegSet::ARGUMENTS, |kfunc| first_arguments(kfunc.args.len()))
            }
            Insn::Call(Callee::Subprogram(_)) => {
                match self.callee(insn, slot).and_then(|index| self.functions.get(index)) {
                    Some(f) if !f.is_global => self.live[f.start].intersection(RegSet::ARGUMENTS),
                    _ => RegSet::ARGUMENTS,
                }
            }
            _ => insn.reads(),
        }
    }

    /// Marks the functions that move the packet, directly or in callees (`check_cfg` in the kernel).
    fn find_moves(&mut self, code: &Code) {
        let mut moves = vec![false; self.functions.len()];
        for (slot, insn) in code.iter() {
            moves[self.function_at(slot)] |= match insn {
                // The called program may move the packet before it returns to the function's caller.
                _ if is_tail_call(insn) => true,
                Insn::Call(Callee::Helper(id)) => {
                    helper(*id).and_then(|h| h.prototype).is_some_and(|p| p.moves_packet)
                }
                _ => false,
            };
        }
        let calls: Vec<Vec<usize>> = (0..self.functions.len())
            .map(|function| {
                self.calls_of(code, function, |_, _| true).into_iter().map(|(_, to)| to).collect()
            })
            .collect();
        for (function, moves) in self.functions.iter_mut().zip(reaching(moves, &calls)) {
            function.moves_packet = moves;
        }
    }

    /// The functions that a function calls or whose addresses it loads, if `wanted`, with the slot of the first such
    /// instruction; each callee once.
    pub(crate) fn calls_of(
        &self,
        code: &Code,
        function: usize,
        wanted: impl Fn(&Insn, usize) -> bool,
    ) -> Vec<(usize, usize)> {
        let Some(function) = self.functions.get(function) else { return Vec::new() };
        let mut known = vec![false; self.functions.len()];
        let insns = (function.start..function.end).filter_map(|slot| Some((slot, code.get(slot)?)));
        let calls = insns.filter_map(|(slot, insn)| Some((slot, insn, self.callee(insn, slot)?)));
        let calls = calls.filter(|&(_, insn, callee)| wanted(insn, callee));
        calls
            .filter(|&(_, _, callee)| !std::mem::replace(&mut known[callee], true))
            .map(|(slot, _, callee)| (slot, callee))
            .collect()
    }
}

/// For each instruction, the instructions whose live registers depend on it.
struct Dependents {
    /// By slot of the other one, the last of its edges.
    last: Vec<Option<u32>>,
    /// A dependent instruction, and the edge before it of the same list.
    edges: Vec<(usize, Option<u32>)>,
}

impl Dependents {
    fn new(slots: usize) -> Self {
        Self { last: vec![None; slots], edges: Vec::with_capacity(slots + slots / 4) }
    }

    fn add(&mut self, on: usize, dependent: usize) {
        let before = self.last[on].replace(self.edges.len() as u32);
        self.edges.push((dependent, before));
    }

    fn of(&self, slot: usize) -> impl Iterator<Item = usize> {
        let mut edge = self.last.get(slot).copied().flatten();
        std::iter::from_fn(move || {
            let &(dependent, before) = self.edges.get(edge? as usize)?;
            edge = before;
            Some(dependent)
        })
    }
}

/// Closure over callees: for each function whether it is in `marked` or calls such a function, directly or indirectly.
pub(crate) fn reaching(mut marked: Vec<bool>, calls: &[Vec<usize>]) -> Vec<bool> {
    let mut callers = vec![Vec::new(); calls.len()];
    for (caller, callees) in calls.iter().enumerate() {
        callees.iter().for_each(|&callee| callers[callee].push(caller));
    }
    let mut work: Vec<usize> = (0..marked.len()).filter(|&function| marked[function]).collect();
    while let Some(function) = work.pop() {
        for &caller in &callers[function] {
            if !std::mem::replace(&mut marked[caller], true) {
                work.push(caller);
            }
        }
    }
    marked
}

fn helper(id: i32) -> Option<&'static Helper> {
    Helper::from_imm(id)
}

fn first_arguments(count: usize) -> RegSet {
    Reg::ALL.into_iter().skip(1).take(count).collect()
}

/// Whether an instruction is the head of a loop whose number of rounds is bounded by something else than its counter.
fn makes_rounds(program: &ProgramSpec, insn: &Insn) -> bool {
    match insn {
        Insn::MayGoto { .. } => true,
        Insn::Call(Callee::Helper(id)) => helper(*id).is_some_and(|h| h.callback().is_some()),
        Insn::Call(Callee::Kfunc { btf_id, .. }) => {
            program.kfunc(*btf_id).is_some_and(|kfunc| kfunc.iterator == Some(IteratorStep::Next))
        }
        _ => false,
    }
}

/// The slots that may run after an instruction, in the same function.
pub(crate) fn successors(insn: &Insn, slot: usize) -> impl Iterator<Item = usize> {
    let next = insn.falls_through().then_some(slot + insn.slots());
    let target = insn.jump_target(slot).and_then(|target| usize::try_from(target).ok());
    next.into_iter().chain(target)
}

/// The functions: the main program, and every call target.
fn functions(program: &ProgramSpec, code: &Code) -> Result<Vec<Function>, Box<Refusal>> {
    let mut starts = BTreeSet::from([0]);
    let mut add = |start: usize, slot: usize| {
        starts.insert(start);
        let count = starts.len();
        if count > MAX_FUNCTIONS { Err(Refusal::at(slot, Cause::TooManyFunctions)) } else { Ok(()) }
    };
    for (slot, insn) in code.iter() {
        let Some(target) = insn.subprogram_target(slot) else { continue };
        match usize::try_from(target) {
            Ok(start) if code.get(start).is_some() => add(start, slot)?,
            _ => return Err(Refusal::at(slot, Cause::CallOutOfRange { target })),
        }
    }
    program.functions.iter().try_for_each(|function| add(function.start, function.start))?;
    let starts: Vec<usize> = starts.into_iter().collect();
    let ends = starts.iter().skip(1).copied().chain([code.len()]);
    let function = |(&start, end)| {
        let info = program.functions.iter().find(|f| f.start == start);
        let is_global = start != 0 && info.is_some_and(|f| f.linkage == Linkage::Global && f.btf_id != 0);
        Function { start, end, is_global, moves_packet: false }
    };
    Ok(starts.iter().zip(ends).map(function).collect())
}

fn check_function(function: &Function, code: &Code) -> Result<(), Box<Refusal>> {
    let range = function.start..function.end;
    let mut last = function.start;
    for slot in range.clone() {
        let Some(insn) = code.get(slot) else { continue };
        last = slot;
        let Some(target) = insn.jump_target(slot) else { continue };
        match usize::try_from(target) {
            Ok(target) if range.contains(&target) && code.get(target).is_some() => {}
            Ok(target) if range.contains(&target) => {
                return Err(Refusal::at(slot, Cause::JumpIntoImmediate { target }));
            }
            _ => return Err(Refusal::at(slot, Cause::JumpOutOfRange { target })),
        }
    }
    match code.get(last) {
        Some(insn) if !insn.falls_through() => Ok(()),
        _ => Err(Refusal::at(last, Cause::FallsOff)),
    }
}

/// Whether an instruction calls `bpf_tail_call`.
pub(crate) fn is_tail_call(insn: &Insn) -> bool {
    let Insn::Call(Callee::Helper(id)) = insn else { return false };
    HelperId::TailCall.is(*id)
}
