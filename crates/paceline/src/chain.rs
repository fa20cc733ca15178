//! The graph of a chain: which program runs after which, by verdict; descriptions that it is made from, and drawings of it.
//!
//! A [`Graph`] names programs by index. It comes from [`Edges`], from a [`Sequence`], from the priorities and actions of xdp-tools
//! ([`Plan`]), from a tail call map ([`CallMap`]) or from a file ([`ChainFile`], which [`ChainSource`] loads with all that it names). [`Chain::load`](crate::Chain::load) makes it
//! run; a [`LiveChain`](crate::LiveChain) changes under traffic.

pub use crate::chain_graph::*;

#[cfg(feature = "json")]
pub use crate::chain_file::{
    ChainFileCause, ChainFileError, ChainLoadOptions, ChainPart, ChainSource, LoadedChain, OpenedChain,
};
