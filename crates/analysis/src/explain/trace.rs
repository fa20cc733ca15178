//! The record of a run.

use std::sync::Arc;

use paceline_engine::Outcome;
use paceline_spec::{LineInfo, ProgramSpec};

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
    /// Value as text; for an element `present`, `absent`, or `matched by` and the prefix of a trie.
    pub value: String,
    /// Other values that it was compared with and does not have, where that decided.
    pub not: Vec<String>,
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

/// A decision that the outcome depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The instruction that decided: the branch, the tail call, or the one that made the returned value.
    pub at: At,
    /// Where a jump led to it and it has no line, as compilers leave it where they make one of what several lines do: the last instruction
    /// before it that has one.
    pub after: Option<At>,
    /// Kind.
    pub kind: CauseKind,
    /// What it depended on; of all branches of a condition that is compiled to several.
    pub facts: Vec<Fact>,
    /// The local variables that it compared.
    pub variables: Vec<Fact>,
    /// Its events in [`Explanation::events`], rising: branches, or a tail call.
    pub events: Vec<usize>,
}

/// Kind of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CauseKind {
    /// A condition.
    Condition,
    /// A value from outside that the program returned.
    Value,
    /// A tail call of an entry of a program array, which had a program or not; the facts are about its index.
    TailCall {
        /// The entry: `jumps[1]`.
        entry: String,
        /// Whether it had a program.
        is_there: bool,
    },
    /// A load outside of the packet, which ends the program.
    Load,
}

/// Record of one run of a program, with the decisions that made its outcome.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The programs that ran: the one that was called first, then those that were tail called.
    pub programs: Vec<Arc<ProgramSpec>>,
    /// Events of the run, in order.
    pub events: Vec<Event>,
    /// The decisions that the outcome depends on, nearest first; only the first one unless all were asked for. Empty if none was
    /// found: see [`is_known`](Self::is_known).
    pub causes: Vec<Cause>,
    /// Whether all that the outcome depends on was followed: without a cause, no branch decides.
    pub is_known: bool,
    /// The sentence of the packet if the decision had been another one, where it would have fared the same: two checks may both drop it. Only
    /// looked for if all causes were asked for.
    pub otherwise: Option<String>,
    /// The instruction that ended the run.
    pub end: At,
    /// Outcome of the packet.
    pub outcome: Outcome,
    /// Target of a redirected packet: `interface 3`, `ports[2]`.
    pub target: Option<String>,
    /// Whether the run had more events than are kept.
    pub truncated: bool,
}

impl Explanation {
    /// The source line of an instruction, where the object has it.
    #[must_use]
    pub fn line(&self, at: At) -> Option<&LineInfo> {
        self.programs.get(at.program)?.line_of(at.slot).filter(|line| line.line > 0)
    }

    /// The decision that made the outcome.
    #[must_use]
    pub fn cause(&self) -> Option<&Cause> {
        self.causes.first()
    }

    /// The instruction that decided, or else the one that ended the run; one before it where it has no line.
    #[must_use]
    pub fn decided_at(&self) -> At {
        self.cause().map_or(self.end, |cause| cause.after.unwrap_or(cause.at))
    }

    /// The program that ended the run.
    #[must_use]
    pub fn last_program(&self) -> Option<&Arc<ProgramSpec>> {
        self.programs.get(self.end.program)
    }
}
