//! The exploration of all paths: the worklist, pruning, convergence of loops, the budget.
//!
//! One state is carried along one path; at a branch that may go both ways the state for the jump waits on a stack
//! while the path falls through. Where paths meet, states are kept as checkpoints, and a path whose state an earlier,
//! finished one covers ends there.

mod backedges;
mod budget;
mod checkpoints;
mod path;
mod prune;
mod walk;

pub(crate) use walk::Exploration;
