//! Changes of a chain, and their errors.

use crate::chain_graph::{CallMap, CallMapError, Calls, Place, PlanError, RunConfig, SequenceError};
use paceline_engine::{ChainError, UpdateError};
use paceline_frame::Verdict;

use super::member::Member;

/// Order of the programs of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// The order of the members: each runs when the verdict of the one before is one of its actions.
    Given,
    /// libxdp's: by priority, and pass after the last ([`Plan::by_priority`](crate::chain_graph::Plan::by_priority)).
    Priority,
    /// Edges, by the names of members.
    Links {
        /// The member where packets enter.
        first: String,
        /// Links of each member; a target that is not a member ends the chain with its verdict.
        links: Vec<(String, Vec<Link>)>,
    },
    /// The chain-call map, by the ids of programs.
    Calls {
        /// The program where packets enter.
        first: u32,
        /// Calls of each member.
        map: CallMap,
    },
}

/// Link: the successor after a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The verdict; `None` for all that have no link of their own.
    pub after: Option<Verdict>,
    /// Successor.
    pub target: LinkTarget,
}

/// LinkTarget of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    /// To a member, by its name.
    Program(String),
    /// To the end, with this verdict.
    End(Verdict),
}

/// A change of a chain.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change {
    /// Adds a member: in a given order at a place, otherwise last. Nothing leads to it yet in a chain of links.
    Add {
        /// The member.
        member: Member,
        /// Position, if members are in a given order.
        place: Option<Place<String>>,
    },
    /// Removes a member. Links that lead to it must go before.
    Remove {
        /// Its name.
        name: String,
    },
    /// Replaces a member by another, which gets its links.
    Replace {
        /// Name of the other.
        name: String,
        /// The member; it may have the same name.
        member: Member,
    },
    /// Takes a member to another place, in a given order.
    Reorder {
        /// Its name.
        name: String,
        /// New position.
        place: Place<String>,
    },
    /// Changes a member's priority and actions.
    Configure {
        /// Its name.
        name: String,
        /// New run configuration.
        config: RunConfig,
    },
    /// Replaces the links of a member, in a chain of links.
    Link {
        /// Its name.
        name: String,
        /// All its links.
        links: Vec<Link>,
    },
    /// Changes an entry of the chain-call map.
    Call {
        /// The program, by its id.
        program: u32,
        /// New calls.
        calls: Calls,
    },
    /// Replaces the order.
    Arrange(Order),
    /// Changes everything.
    All {
        /// The members, in order.
        members: Vec<Member>,
        /// New order.
        order: Order,
    },
}

/// A change was not made.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// There was another change, or the order does not allow it.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// There is no member of this name.
    #[error("no program {name} in the chain (available: {})", .names.join(", "))]
    NoMember {
        /// The name.
        name: String,
        /// The names there are.
        names: Vec<String>,
    },
    /// There is no member with this id.
    #[error("no program with id {0} in the chain")]
    NoId(u32),
    /// Two members would have one name.
    #[error("a program named {0} is in the chain already")]
    NameTaken(String),
    /// Places are for members in a given order.
    #[error("programs have no places in a chain that is ordered by priority or by edges")]
    NoPlaces,
    /// Links are for chains of links.
    #[error("the chain is not ordered by edges")]
    NoLinks,
    /// Packets enter at the member, or links lead to it.
    #[error("program {name} is needed: {}", match .by { Some(by) => format!("an edge of {by} leads to it"), None => "packets enter there".to_owned() })]
    Needed {
        /// Its name.
        name: String,
        /// The member whose link leads to it; `None` if it is the entry.
        by: Option<String>,
    },
    /// A verdict has two links.
    #[error("program {name} has two edges after {}", .after.map_or("*", Verdict::name))]
    TwoLinks {
        /// The member.
        name: String,
        /// The verdict, `None` for all others.
        after: Option<Verdict>,
    },
    /// Invalid chain-call map.
    #[error(transparent)]
    CallMap(#[from] CallMapError),
    /// There is no graph.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The chain cannot be made.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The chain cannot be published.
    #[error(transparent)]
    Update(#[from] UpdateError),
}
