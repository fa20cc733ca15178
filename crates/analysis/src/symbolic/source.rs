//! What the variables stand for.
//!
//! Numbers that no input can give (another CPU, an address, the size of the buffer, a tail call that fails) are variables too, so
//! that proofs hold for all of them. An input has the one that a run has, or is given up.

use std::collections::HashMap;

use crate::solver::{Term, Terms, Var};

use crate::symbolic::clock::Clock;

/// A part of what the network answers to the look-up of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum RoutePart {
    /// The outcome.
    Outcome,
    /// Index of the interface that the route leads to.
    Interface,
    /// The most bytes that fit there.
    Mtu,
    /// The route's metric.
    Metric,
    /// Whether there is a gateway.
    HasGateway,
    /// Whether the gateway of an IPv4 route has an IPv6 address.
    GatewayIsV6,
    /// A byte of its address.
    Gateway(u8),
    /// A byte of the interface's own hardware address.
    SourceMac(u8),
    /// A byte of the next hop's hardware address.
    DestinationMac(u8),
}

impl RoutePart {
    const fn width(self) -> u32 {
        match self {
            Self::Interface | Self::Mtu | Self::Metric => 32,
            Self::Outcome | Self::Gateway(_) | Self::SourceMac(_) | Self::DestinationMac(_) => 8,
            Self::HasGateway | Self::GatewayIsV6 => 1,
        }
    }
}

/// Something that an input gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Source {
    /// The packet's length in bytes, of 16 bits.
    Length,
    /// A byte of the packet as it came in.
    Packet(u32),
    /// A byte of the packet as it came in, at an offset that is a term and no number: one of those by number, as the conditions say that are
    /// made for an input ([`crate::symbolic::settle`]).
    PacketAt(Term),
    /// A product whose clauses are many, where two programs are compared: the term of it, and its bits ([`crate::symbolic::product`]).
    Product(Term, u32),
    /// A byte of a value to which no program writes, where two are compared: the value's number ([`crate::symbolic::fixed`]).
    Fixed { value: usize, byte: u32 },
    /// A number in the context, by its offset; a field has its low bits.
    Context(u16),
    /// A byte of the program's own memory in the context, by its offset.
    Scratch(u16),
    /// Whether a map has an element from the start: those that the program asks for are numbered.
    Present { map: usize, element: usize },
    /// A byte of an element's value from the start.
    Value { map: usize, element: usize, byte: u32 },
    /// A reading of a clock in nanoseconds, in the order in which a path reads clocks.
    Time(Clock, usize),
    /// A random number, in the order in which they are drawn.
    Random(usize),
    /// Whether a tail call to a program that the object itself puts into the array fails, in the order of such calls.
    TailCallFails(usize),
    /// Whether there is no room for a record of a ring buffer, in the order of reservations.
    ReserveFails(usize),
    /// A byte of such a record before it is written.
    Record { record: usize, byte: u32 },
    /// Most bytes of packet that fit behind the ordinary headroom.
    Capacity,
    /// The CPU that the program runs on.
    Cpu,
    /// The NUMA node of that CPU.
    Node,
    /// A part of what the network answers to the look-up of a route.
    Route(RoutePart),
    /// Address of a region, which are numbered.
    Address(usize),
    /// A number that is known to the machine alone, in the order of its helper calls, with what it is.
    Machine(usize, &'static str),
}

impl Source {
    pub(crate) const fn width(self) -> u32 {
        match self {
            Self::Length => 16,
            Self::Packet(_) | Self::PacketAt(_) | Self::Fixed { .. } | Self::Scratch(_) => 8,
            Self::Product(_, bits) => bits,
            Self::Value { .. } | Self::Record { .. } => 8,
            Self::Random(_) | Self::Cpu | Self::Node | Self::Capacity => 32,
            Self::Route(part) => part.width(),
            Self::Present { .. } | Self::TailCallFails(_) | Self::ReserveFails(_) => 1,
            Self::Context(_) | Self::Time(..) | Self::Machine(..) | Self::Address(_) => 64,
        }
    }
}

/// Variables and what they stand for: a variable for each source, shared by all paths.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    terms: HashMap<Source, Term>,
    sources: Vec<Source>,
}

impl Sources {
    /// The variable of a source.
    pub(crate) fn term(&mut self, terms: &mut Terms, source: Source) -> Term {
        if let Some(&term) = self.terms.get(&source) {
            return term;
        }
        let term = terms.var(source.width());
        self.terms.insert(source, term);
        self.sources.push(source);
        term
    }

    /// The variable of a source, if some path asked for it.
    pub(crate) fn known(&self, source: Source) -> Option<Term> {
        self.terms.get(&source).copied()
    }

    /// All sources, with their variables.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Source, Term)> + '_ {
        self.sources.iter().filter_map(|source| Some((*source, *self.terms.get(source)?)))
    }

    /// What a variable stands for.
    pub(crate) fn of(&self, var: Var) -> Option<Source> {
        self.sources.get(var.number()).copied()
    }
}
