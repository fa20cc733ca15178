//! The plan of a program: which functions it has, and what they may do.

use fastrand::Rng;
use paceline_spec::{ProgramKind, XdpAttach};

use super::model::CELLS;
use super::types::{Parameter, SIGNATURES};

/// Purpose of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For verdicts: every feature of the verifier, with mistakes in some programs.
    Verdict,
    /// For runs on several engines: no mistakes, only features of the engines, and no results that differ between runs.
    Run,
}

/// Stack slots of subprograms.
pub(super) const CELLS_OF_CALLEES: usize = 8;

/// Plan of a program, drawn before its steps.
pub(super) struct Plan {
    pub(super) kind: ProgramKind,
    pub(super) purpose: Purpose,
    /// The main program first; each other function has a caller before it, and perhaps more.
    pub(super) functions: Vec<FunctionPlan>,
    /// Whether all functions have types, so that some may be global.
    pub(super) is_typed: bool,
}

/// Plan of a function.
pub(super) struct FunctionPlan {
    pub(super) parameters: Vec<Parameter>,
    /// Its signature, if it is global.
    pub(super) signature: Option<usize>,
    /// A caller of the function.
    pub(super) parent: usize,
    pub(super) depth: usize,
    /// Whether it or a callee may move the packet.
    pub(super) moves_packet: bool,
    /// Stack slots that it may use.
    pub(super) cells: usize,
    pub(super) steps: usize,
    /// Whether its return value depends on the contents of its stack.
    pub(super) folds: bool,
    /// Whether `bpf_loop` calls it: with the number of the round, and memory.
    pub(super) is_round: bool,
}

impl Plan {
    pub(super) fn new(rng: &mut Rng, purpose: Purpose) -> Self {
        let kind = match rng.u8(..4) {
            0 => ProgramKind::SocketFilter,
            1 => ProgramKind::SchedCls,
            _ => ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false },
        };
        let count = if rng.u8(..3) == 0 { rng.usize(1..5) } else { 0 };
        let is_typed = count > 0 && rng.bool();
        let most = if rng.bool() { 8 } else { 20 };
        let main = FunctionPlan {
            parameters: vec![Parameter::Context],
            signature: None,
            parent: 0,
            depth: 0,
            moves_packet: true,
            cells: CELLS,
            steps: rng.usize(2..=most),
            folds: purpose == Purpose::Run || rng.u8(..4) == 0,
            is_round: false,
        };
        let mut plan = Self { kind, purpose, functions: vec![main], is_typed };
        for _ in 0..count {
            let function = plan.function(rng);
            plan.functions.push(function);
        }
        plan.carry_moves();
        plan
    }

    pub(super) fn function(&self, rng: &mut Rng) -> FunctionPlan {
        let parent = rng.usize(..self.functions.len());
        let has_context = self.functions[parent].parameters.contains(&Parameter::Context);
        let is_round = rng.u8(..4) == 0;
        let signature = (self.is_typed && !is_round && rng.bool()).then(|| {
            let usable: Vec<usize> = (0..SIGNATURES.len())
                .filter(|&s| has_context || !SIGNATURES[s].contains(&Parameter::Context))
                .collect();
            rng.choice(usable).unwrap_or(0)
        });
        let parameters = match signature {
            Some(signature) => SIGNATURES[signature].to_vec(),
            None if is_round => vec![Parameter::Number, Parameter::Memory(8 * rng.i16(1..=3))],
            None => (0..rng.usize(1..4)).map(|_| self.parameter(rng, has_context)).collect(),
        };
        let moves = self.kind != ProgramKind::SocketFilter
            && parameters.contains(&Parameter::Context)
            && self.functions[parent].moves_packet
            && rng.u8(..3) == 0;
        FunctionPlan {
            parameters,
            signature,
            parent,
            depth: self.functions[parent].depth + 1,
            moves_packet: moves,
            cells: CELLS_OF_CALLEES,
            steps: rng.usize(1..8),
            folds: self.purpose == Purpose::Run || rng.u8(..4) == 0,
            is_round,
        }
    }

    pub(super) fn parameter(&self, rng: &mut Rng, has_context: bool) -> Parameter {
        let packets = has_context && self.kind != ProgramKind::SocketFilter;
        match rng.u8(..8) {
            0..=1 if has_context => Parameter::Context,
            2 if packets => Parameter::Packet(rng.i16(1..=14)),
            3 if packets => Parameter::PacketEnd,
            4..=5 => Parameter::Memory(8 * rng.i16(1..=3)),
            _ => Parameter::Number,
        }
    }

    /// A caller of a function that moves the packet moves the packet as well.
    pub(super) fn carry_moves(&mut self) {
        for index in (1..self.functions.len()).rev() {
            if self.functions[index].moves_packet {
                let parent = self.functions[index].parent;
                self.functions[parent].moves_packet = true;
            }
        }
    }

    /// Whether one function may call another.
    pub(super) fn may_call(&self, caller: usize, callee: usize) -> bool {
        let (Some(from), Some(to)) = (self.functions.get(caller), self.functions.get(callee)) else {
            return false;
        };
        let needs_context =
            |p: &Parameter| matches!(p, Parameter::Context | Parameter::Packet(_) | Parameter::PacketEnd);
        to.parent == caller
            || callee > caller
                && from.depth < to.depth
                && (from.moves_packet || !to.moves_packet)
                && (from.parameters.contains(&Parameter::Context) || !to.parameters.iter().any(needs_context))
    }
}
