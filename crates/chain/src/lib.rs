//! Chains: which program runs after which, by verdict (seed 001).
//!
//! A [`Graph`] says it: its nodes are programs, known by their index alone, and an edge leads from a program and a
//! verdict to the next program or to the end. What makes graphs and what runs them are elsewhere.
#![forbid(unsafe_code)]

mod graph;

pub use graph::{Edges, Graph, GraphError, MAX_RUNS, Next, Node};
