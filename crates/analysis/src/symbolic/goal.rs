//! What is looked for, and inputs that meet it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use paceline_frame::Verdict;

use crate::symbolic::give_up::Place;

/// A side of a conditional jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Side {
    /// Slot of the jump.
    pub slot: usize,
    /// Whether the jump is taken.
    pub taken: bool,
}

/// What a map operation meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Meets {
    /// An element of the key.
    Found,
    /// No element of the key, or an index beyond the map.
    NotFound,
    /// No element of the key, and no room for one.
    Full,
}

/// The numbers that a comparison compares, as seen from where its outcome changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edge {
    /// They are equal.
    Equal,
    /// The first is greater by one.
    Above,
    /// The first is less by one.
    Below,
    /// With signs they are in another order than without.
    Signs,
}

/// Something that an input is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Goal {
    /// A side of a branch is taken.
    Side(Side),
    /// The program returns a verdict at an exit.
    Return {
        /// Slot of the exit.
        slot: usize,
        /// The verdict.
        verdict: Verdict,
    },
    /// A map operation meets something.
    Operation {
        /// Slot of the call.
        slot: usize,
        /// What it meets.
        meets: Meets,
    },
    /// A whole path is taken, that of the input.
    Path {
        /// Its number, in the order in which paths end.
        number: u32,
        /// Slot of its last instruction.
        slot: usize,
    },
}

impl Goal {
    /// The slot at which it is met.
    #[must_use]
    pub const fn slot(&self) -> usize {
        match self {
            Self::Side(Side { slot, .. })
            | Self::Return { slot, .. }
            | Self::Operation { slot, .. }
            | Self::Path { slot, .. } => *slot,
        }
    }
}

impl From<Side> for Goal {
    fn from(side: Side) -> Self {
        Self::Side(side)
    }
}

/// The kind of goals that are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goals {
    /// Each side of each conditional jump.
    #[default]
    Sides,
    /// Each path, up to so many.
    Paths(u32),
    /// Each verdict at each exit of the program.
    Verdicts,
    /// Each look-up, update, deletion and redirection by a map, with all that it may meet.
    Operations,
}

/// An element of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its key; an index in native order for arrays.
    pub key: Vec<u8>,
    /// Its value: of the first CPU where each has one.
    pub value: Vec<u8>,
}

/// The look-up of a route, and what the network says (`bpf_fib_lookup`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Index of the interface that the packet came in on, as the program says.
    pub ingress: u32,
    /// The address that is asked for.
    pub destination: IpAddr,
    /// The outcome.
    pub outcome: RouteOutcome,
    /// Index of the interface that the route leads to.
    pub interface: u32,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// The route's metric.
    pub metric: u32,
    /// The gateway; none if the address is on the link.
    pub gateway: Option<IpAddr>,
    /// The interface's own hardware address.
    pub source_mac: [u8; 6],
    /// That of the next hop.
    pub destination_mac: [u8; 6],
}

/// Outcomes of the look-up of a route, by their numbers (`BPF_FIB_LKUP_RET_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteOutcome {
    /// There is a next hop, with its address.
    Success,
    /// The route is a black hole.
    Blackhole,
    /// The route says that there is no way.
    Unreachable,
    /// The route says that it is forbidden.
    Prohibited,
    /// There is no route, or the packet is for this host.
    NotForwarded,
    /// The interface that the packet came in on does not forward packets.
    ForwardingDisabled,
    /// The route leads into a tunnel.
    Tunnel,
    /// The hardware address of the next hop is not known.
    NoNeighbor,
    /// The packet is longer than the MTU.
    FragmentationNeeded,
    /// The interface that the packet came in on does not exist: the look-up is an error.
    NoInterface,
}

impl RouteOutcome {
    /// All of them, by number.
    pub const ALL: [Self; 10] = [
        Self::Success,
        Self::Blackhole,
        Self::Unreachable,
        Self::Prohibited,
        Self::NotForwarded,
        Self::ForwardingDisabled,
        Self::Tunnel,
        Self::NoNeighbor,
        Self::FragmentationNeeded,
        Self::NoInterface,
    ];

    /// The outcome of a number.
    pub(crate) fn of(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// An input of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// The packet's bytes.
    pub packet: Vec<u8>,
    /// Elements that maps have before the run, by the maps' indices.
    pub maps: BTreeMap<usize, Vec<Element>>,
    /// The time in nanoseconds; 0 if it does not matter.
    pub time_ns: u64,
    /// Seed of the random numbers, if they matter.
    pub seed: Option<u64>,
    /// Index of the interface that the packet comes in on; 1 if it does not matter.
    pub ingress: u32,
    /// Queue that it comes in on.
    pub queue: u16,
    /// The answer of the network to the look-up of a route, if there is one.
    pub route: Option<Route>,
    /// The sides that it takes, from the first branch to where the goal is met.
    pub sides: Vec<Side>,
    /// The helper calls that it makes on this way, if paths are looked for.
    pub calls: Vec<Call>,
    /// Where it may go another way all the same, for a reason that is not modelled.
    pub guess: Option<Place>,
}

/// A helper call of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// Slot of the call.
    pub slot: usize,
    /// What it leads to.
    pub result: CallResult,
}

/// What a helper call leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallResult {
    /// It returns this number on all runs of the path.
    Number(u64),
    /// It returns an address, such as that of an element.
    Address,
    /// A number that is not the same on all runs of the path, or none.
    Other,
    /// The program at this index runs in the place of the caller.
    Program(u32),
}

/// What was found out about a goal.
#[derive(Clone, Debug)]
pub enum Fate {
    /// This input meets it.
    Reached(Box<Input>),
    /// No input does. `by_verifier` says that the verifier found no way to it; otherwise all ways to it were followed.
    Unreachable {
        /// Whether the verifier's walk tells it.
        by_verifier: bool,
    },
    /// It is not known.
    GivenUp(Place),
}

/// What the conditions of a path are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// Bytes of the packet, by offset.
    pub packet: BTreeSet<usize>,
    /// Bytes of values of maps: map, key and offset.
    pub values: BTreeSet<(usize, Vec<u8>, usize)>,
    /// Whether they are about anything else: time, interface, queue.
    pub other: bool,
}

/// An input at the boundary of a comparison.
#[derive(Clone, Debug)]
pub struct Boundary {
    /// The side that it takes.
    pub side: Side,
    /// Where it is.
    pub edge: Edge,
    /// The path that it takes to its end, if paths are looked for.
    pub path: Option<Goal>,
    /// The input.
    pub input: Input,
    /// What must stay so that it is at the boundary.
    pub decided: Decided,
}
