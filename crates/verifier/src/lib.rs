//! Verifies that a program is safe to run natively: every path terminates, every access is in bounds, every call has valid
//! arguments. [`verify`] returns [`Verified`] with the proven facts, or a [`Refusal`] with the reason.
//!
//! # How it works
//!
//! The verifier is an abstract interpreter. It carries a [`State`](state::State) along every path: for each register and
//! stack byte a value, numbers as sets ([`domain::Number`]), pointers as target and offset ([`state::Pointer`]). Each
//! instruction is a transfer function (`step`); each branch refines the state on both sides. Static functions are walked at
//! each call with the caller's state, global ones once by their BTF types.
//!
//! Checkpoints (`prune`) bound the walk: states kept where paths meet. A path ends when an earlier state covers it in all
//! live, read and precise values. Precision is found during the walk: each number carries a mark of its origin, and a
//! number that determines an address, a branch or a size makes its mark and all origins precise (`precision`). The kernel
//! walks back over the instructions instead.
//!
//! # What it accepts
//!
//! The programs that the kernel (6.18, privileged loader) accepts; the sources are `kernel/bpf/verifier.c` and
//! `net/core/filter.c`. Reads of stack bytes that were never written are accepted, as in the kernel; they read as zero on
//! every engine.
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

/// Maximum number of instructions of a program, and of simulated instructions (`BPF_COMPLEXITY_LIMIT_INSNS`).
pub const MAX_INSTRUCTIONS: usize = 1_000_000;

/// Maximum number of maps of a program (`MAX_USED_MAPS`).
pub const MAX_USED_MAPS: usize = 64;

/// Maximum number of steps of comparing and keeping states: a thousand per instruction of the limit, and a hundred times
/// the largest real programs.
pub const MAX_WORK: usize = 1_000_000_000;

/// Maximum number of bytes of kept states: a hundred times the largest real programs.
pub const MAX_BYTES: usize = 1 << 30;

/// Options of [`verify`], set one after the other: `Options::default().max_instructions(10_000)`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Maximum number of simulated instructions.
    pub max_instructions: usize,
    /// Maximum number of steps of comparing and keeping states; see [`Stats::work`]. The kernel has no such limit.
    pub max_work: usize,
    /// Maximum number of bytes of kept states. The kernel is limited by its memory only.
    pub max_bytes: usize,
    /// Whether a path ends only at an identical state: slower, but then the observer sees, at each instruction, a state
    /// that covers every run. For tests.
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
/// The reason why the program is refused.
pub fn verify(
    program: &ProgramSpec,
    maps: &[MapSpec],
    btf: Option<&Btf>,
    options: &Options,
) -> Result<Verified, Box<Refusal>> {
    verify_with(program, maps, btf, options, None)
}

/// Like [`verify`], with an observer of the walk.
///
/// # Errors
/// The reason why the program is refused.
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

/// The refusal of a slot that does not decode.
fn malformed(error: DecodeError) -> Box<Refusal> {
    /// An indirect call as clang before 19 encodes it, with the register in a reserved field.
    const CALL_REGISTER: u8 = 0x8d;
    let is_call = matches!(error, DecodeError::Reserved { opcode: CALL_REGISTER, .. });
    let mut refusal = Refusal::at(error.slot(), Cause::Decode(error));
    refusal.hint = is_call.then_some(Hint::Optimize);
    refusal
}

/// Walks the main program, then every global function that was called and every timer callback.
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
        // The printed addresses may be derived from numbers, so any byte of the frame may be read.
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
