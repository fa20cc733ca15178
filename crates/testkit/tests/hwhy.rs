#[path = "it/decisions.rs"]
mod decisions;
#[path = "it/rewrites.rs"]
mod rewrites;
#[path = "it/explanations.rs"]
mod explanations;
#[path = "it/reasons.rs"]
mod reasons;
