//! What a program did with a packet, and why: the path, the values at its branches, and the branch that decided.

pub use paceline_explain::{
    At, Branch, Call, ChainExplainer, ChainExplanation, Event, Explainer, Explanation, Fact, FactKind,
    LineCount, LineCounts, Outcome, Packet, Writes,
};
