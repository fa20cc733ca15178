//! Verifies that a program is safe to run natively: every path ends, every access stays within what it may touch,
//! every call gets what it wants. [`verify`] gives [`Verified`], which says what was proven, or a [`Refusal`], which
//! says why not.
//!
//! # How it works
//!
//! The verifier runs the program on all inputs at once. It carries an abstract [`State`](state::State) along every
//! path: what each register and each stack byte holds, numbers as sets ([`domain::Number`]), pointers as what they
//! point to and how far in ([`state::Pointer`]). Each instruction is a rule about that state (`step`); each branch
//! splits it into what holds on either side. Static functions are walked with the state of each caller, global ones
//! once by their types.
//!
//! What keeps that from taking for ever are checkpoints (`prune`): states kept where paths meet. A path ends when
//! an earlier state covers it in all that mattered. What matters is found by exploring: numbers carry marks of where
//! their origin, and a number that decides something makes its mark and all origins precise (`precision`). The
//! kernel finds the same by walking back over the instructions.
//!
//! # What it accepts
//!
//! What the kernel (6.18, privileged loader) accepts; the sources are `kernel/bpf/verifier.c` and `net/core/filter.c`.
//! Reading stack bytes that were never written is accepted as there, and they read as zero on every engine.
#![forbid(unsafe_code)]

mod cfg;
mod compare;
mod converge;
mod depth;
pub mod domain;
mod error;
mod facts;
mod lend;
mod observe;
mod precision;
mod prune;
mod reads;
mod retry;
pub mod state;
mod step;
mod walk;

use paceline_btf::Btf;
use paceline_isa::{Code, DecodeError, decode};
use paceline_spec::{MapSpec, ProgramSpec};

pub use error::{Branch, Cause, Hint, OffsetRange, Refusal, RegName};
pub use facts::{
    Base, CallbackFact, FunctionFact, InsnFact, KeyFact, MapFact, MemoryFact, StackFact, Stats, Verified,
};
pub use observe::{Observer, PathEnd};

use cfg::ControlFlow;
use facts::is_tail_call;
use walk::Walk;

/// Most instructions a program may have, and most that are simulated (`BPF_COMPLEXITY_LIMIT_INSNS`).
pub const MAX_INSTRUCTIONS: usize = 1_000_000;

/// Most maps that a program may use (`MAX_USED_MAPS`).
pub const MAX_USED_MAPS: usize = 64;

/// Most steps that comparing and keeping states may take: a thousand times the instructions, and a hundred times what
/// the largest real programs take.
pub const MAX_WORK: usize = 1_000_000_000;

/// Most bytes of states that are kept: a hundred times what the largest real programs take.
pub const MAX_BYTES: usize = 1 << 30;

/// Options of [`verify`], set one after the other: `Options::default().max_instructions(10_000)`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Instructions that are simulated at most.
    pub max_instructions: usize,
    /// Steps that comparing and keeping states may take at most; see [`Stats::work`]. The kernel has no such limit.
    pub max_work: usize,
    /// Bytes of states that are kept at most. The kernel has no such limit but its memory.
    pub max_bytes: usize,
    /// Whether a path ends only at a state that is the same in everything: slower, but then every state that some
    /// run has at an instruction is covered by one that was seen there. For tests.
    pub exact: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_instructions: MAX_INSTRUCTIONS, max_work: MAX_WORK, max_bytes: MAX_BYTES, exact: false }
    }
}

impl Options {
    /// Sets the maximum number of simulated instructions.
    #[must_use]
    pub const fn max_instructions(mut self, instructions: usize) -> Self {
        self.max_instructions = instructions;
        self
    }

    /// Sets the maximum number of steps that comparing and keeping states may take; see [`Stats::work`].
    #[must_use]
    pub const fn max_work(mut self, steps: usize) -> Self {
        self.max_work = steps;
        self
    }

    /// Sets the maximum size of all kept states.
    #[must_use]
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Ends paths only at equal states; see [`exact`](Self#structfield.exact).
    #[must_use]
    pub const fn exact(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }
}

/// Verifies a program. `maps` are those of its object, `btf` the object's types, which global functions need.
///
/// # Errors
/// Why the program may not run.
pub fn verify(
    program: &ProgramSpec,
    maps: &[MapSpec],
    btf: Option<&Btf>,
    options: &Options,
) -> Result<Verified, Box<Refusal>> {
    verify_with(program, maps, btf, options, None)
}

/// The same, with somebody who is told what the walk does.
///
/// # Errors
/// Why the program may not run.
pub fn verify_observed(
    program: &ProgramSpec,
    maps: &[MapSpec],
    btf: Option<&Btf>,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Verified, Box<Refusal>> {
    verify_with(program, maps, btf, options, Some(observer))
}

fn verify_with(
    program: &ProgramSpec,
    maps: &[MapSpec],
    btf: Option<&Btf>,
    options: &Options,
    observer: Option<&mut dyn Observer>,
) -> Result<Verified, Box<Refusal>> {
    let slots = program.insns.len();
    if slots == 0 || slots > MAX_INSTRUCTIONS {
        return Err(Refusal::at(0, Cause::Length { slots }));
    }
    let code = decode(&program.insns).map_err(malformed)?;
    step::check_license(program, &code)?;
    let flow = ControlFlow::of(program, &code)?;
    let mut walk = Walk::new(program, &code, maps, btf, options, &flow);
    walk.observer = observer.map(|observer| observer as &mut dyn Observer);
    walk.check_immediates()?;
    walk_functions(&mut walk)?;
    step::check_loans(&mut walk)?;
    let functions = function_facts(&code, &flow, &walk);
    depth::check_stack_depth(&code, &flow, &functions, &walk.roots)?;
    let stats = walk.stats();
    let facts = walk.facts.into_insns();
    Ok(Verified::new(program.clone(), facts::kept_maps(maps), code, facts, functions, stats))
}

/// A refusal of what is no instruction.
fn malformed(error: DecodeError) -> Box<Refusal> {
    /// A call through a register as clang before 19 writes it, with the register where nobody looks for it.
    const CALL_REGISTER: u8 = 0x8d;
    let is_call = matches!(error, DecodeError::Reserved { opcode: CALL_REGISTER, .. });
    let mut refusal = Refusal::at(error.slot(), Cause::Decode(error));
    refusal.hint = is_call.then_some(Hint::Optimize);
    refusal
}

/// Walks the main program, then every global function that was called, and every function that a timer may call.
fn walk_functions(walk: &mut Walk<'_>) -> Result<(), Box<Refusal>> {
    let mut done = 0;
    while let Some(&root) = walk.roots.get(done) {
        let state = step::entry_state(walk, root)?;
        walk.root = root;
        let start = walk.flow.functions.get(root.function()).map_or(0, |f| f.start);
        walk.explore(state, start)?;
        done += 1;
    }
    Ok(())
}

fn function_facts(code: &Code, flow: &ControlFlow, walk: &Walk<'_>) -> Vec<FunctionFact> {
    let fact = |(index, function): (usize, &cfg::Function)| {
        let (start, end) = (function.start, function.end);
        let insns = || (start..end).filter_map(|slot| code.get(slot));
        let stack = walk.stack_used.get(index).copied().unwrap_or_default();
        let prints = walk.prints.get(index).copied().unwrap_or_default();
        // The addresses of what it prints may be numbers, so that it is any bytes of the frame.
        let printed = if prints { u64::MAX } else { 0 };
        FunctionFact {
            start,
            end,
            stack,
            zeroed: walk.reads.zeroed(index) | printed,
            shared: walk.stack_shared.get(index).copied().unwrap_or_default() | printed,
            prints,
            saved: facts::saved_registers(code, start, end),
            is_callback: walk.is_callback.get(index).copied().unwrap_or_default(),
            tail_calls: insns().any(is_tail_call),
            calls: insns().any(|insn| insn.is_call() && !is_tail_call(insn)),
        }
    };
    flow.functions.iter().enumerate().map(fact).collect()
}
