//! Explanations of single packets.
//!
//! An [`Explainer`] runs a program over a packet on the plain interpreter and records the path ([`Explanation`]): the branches with the
//! packet fields, map values and results of helpers that they compare, the calls, and the programs that are tail called. The deciding branch is
//! found by experiment: the packet runs again with one branch inverted, from the last branch to the first, until the outcome is another
//! one. Changes that such a run makes to maps are undone.
//!
//! Where a value comes from is tracked beside the machine: each register and each slot of the stack has the sources of its value.
#![forbid(unsafe_code)]

mod cause;
mod chain;
mod condition;
mod explainer;
mod fact;
mod field;
mod flow;
mod flows;
mod journal;
mod jump;
mod line_counts;
mod origin;
mod recorder;
mod sentence;
mod shadow;
mod slice;
mod steps;
mod trace;
mod variables;
mod writers;
mod writes;

pub use chain::{ChainExplainer, ChainExplanation};
pub use explainer::Explainer;
pub use line_counts::{LineCount, LineCounts};
pub use trace::{At, Branch, Call, Cause, CauseKind, Event, Explanation, Fact, FactKind};
pub use writes::Writes;
