//! Explanations of a packet's verdict: the path, the values at its branches, and the branch that decided.

pub use paceline_analysis::explain::{
    At, Branch, Call, Cause, CauseKind, ChainExplainer, ChainExplanation, Event, Explainer, Explanation,
    Fact, FactKind, LineCount, LineCounts, Reason, Reasons, Writes,
};
