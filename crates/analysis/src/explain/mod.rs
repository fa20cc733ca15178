//! Explanations of single packets.
//!
//! An [`Explainer`] runs a program over a packet on the plain interpreter and records the path ([`Explanation`]): the branches with the
//! packet fields, map values and results of helpers that they compare, the calls, and the programs that are tail called. The decision is
//! found by a backward slice from the returned value over the dependences of the run: its nearest branch whose other side was possible.
//! The packet runs again with that branch inverted to see whether it could have been otherwise. Changes that such a run makes to maps are
//! undone.
//!
//! Where a value comes from is tracked beside the machine: each register, and all memory that the run wrote, has the sources of its value.

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
mod otherwise;
mod reasons;
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
pub use reasons::{Reason, Reasons};
pub use trace::{At, Branch, Call, Cause, CauseKind, Event, Explanation, Fact, FactKind};
pub use writes::Writes;
