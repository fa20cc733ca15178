//! The record of a run.

use std::sync::Arc;

use paceline_spec::{LineInfo, ProgramSpec};
use paceline_vm::Outcome;

/// An instruction of one of the programs that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Index in [`Explanation::programs`].
    pub program: usize,
    /// Slot.
    pub slot: usize,
}

/// Kind of a value's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FactKind {
    /// Bytes of the packet.
    Packet,
    /// A field of the context.
    Context,
    /// Whether a map has an element.
    Element,
    /// A value in a map, or a global variable.
    Value,
    /// The result of a helper or kernel function.
    Result,
    /// A local variable.
    Variable,
}

/// A value that a branch depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Kind.
    pub kind: FactKind,
    /// Name: `tcp.dport`, `rules[{port: 22}].action`, `bpf_fib_lookup`.
    pub name: String,
    /// Value as text; for an element `present` or `absent`.
    pub value: String,
}

/// A conditional jump that was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The jump.
    pub at: At,
    /// Whether it jumped.
    pub taken: bool,
    /// The sources of the values that it compared, without constants.
    pub facts: Vec<Fact>,
    /// The local variables that it compared, as far as the program has them ([`ProgramSpec::variables`]).
    pub variables: Vec<Fact>,
}

/// A call of a helper or kernel function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The instruction.
    pub at: At,
    /// Name of the function.
    pub name: String,
    /// The element of a map that it is about: `rules[{port: 22}]`.
    pub element: Option<String>,
    /// `r0` afterwards, as far as it was seen; for an element 0 if there is none.
    pub result: Option<u64>,
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Another source line.
    Line(At),
    /// A conditional jump.
    Branch(Branch),
    /// A call.
    Call(Call),
    /// Another program runs in place of this one: its index in [`Explanation::programs`].
    TailCall {
        /// The call.
        at: At,
        /// The program.
        to: usize,
    },
}

/// Record of one run of a program, with the branch that decided.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The programs that ran: the one that was called first, then those that were tail called.
    pub programs: Vec<Arc<ProgramSpec>>,
    /// Events of the run, in order.
    pub events: Vec<Event>,
    /// Index in `events` of the last branch without which the outcome would be another one.
    pub decision: Option<usize>,
    /// The instruction that ended the run.
    pub end: At,
    /// Outcome of the packet.
    pub outcome: Outcome,
    /// Whether the run had more events than are kept.
    pub truncated: bool,
}

impl Explanation {
    /// The source line of an instruction, where the object has it.
    #[must_use]
    pub fn line(&self, at: At) -> Option<&LineInfo> {
        self.programs.get(at.program)?.line_of(at.slot).filter(|line| line.line > 0)
    }

    /// The branch that decided.
    #[must_use]
    pub fn deciding(&self) -> Option<&Branch> {
        match self.events.get(self.decision?)? {
            Event::Branch(branch) => Some(branch),
            _ => None,
        }
    }

    /// The program that ended the run.
    #[must_use]
    pub fn last_program(&self) -> Option<&Arc<ProgramSpec>> {
        self.programs.get(self.end.program)
    }
}
