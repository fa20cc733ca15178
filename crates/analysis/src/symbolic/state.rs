//! The state of a path.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::solver::{Evaluator, Model, Term, Terms};
use paceline_spec::format::Piece;

use crate::symbolic::clock::Clock;
use crate::symbolic::give_up::Place;
use crate::symbolic::goal::{Call, Edge, Side};
use crate::symbolic::memory::Memory;
use crate::symbolic::room::Room;
use crate::symbolic::value::Value;

/// A function that is being called.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) stack: Rc<Memory>,
    /// `r6` to `r9` of the caller.
    pub(crate) saved: [Value; 4],
    /// Slot at which the caller goes on.
    pub(crate) return_to: usize,
    /// Rounds of `bpf_loop` whose callback this is.
    pub(crate) callback: Option<Callback>,
    /// The slot, as of the last instruction, and the rounds of the loops that it is in, the outermost first.
    pub(crate) at: usize,
    pub(crate) rounds: Vec<u32>,
}

/// A callback that a helper calls again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Callback {
    pub(crate) start: usize,
    /// Number of the running call.
    pub(crate) round: u64,
    /// Calls in all.
    pub(crate) rounds: Term,
    pub(crate) argument: Value,
}

/// The packet, as far as the program moved its ends. Offsets are from where it began when it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) start: i64,
    pub(crate) meta: i64,
    /// A number of 64 bits.
    pub(crate) end: Term,
    pub(crate) written: Rc<Memory>,
    /// The least end that the packet had before its end was moved back; bytes from there on are zero unless they were written.
    pub(crate) floor: Option<Term>,
}

/// An object that pointers lead to.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) written: Memory,
    pub(crate) initial: Initial,
}

impl Object {
    /// The value that an element of a map has from the start.
    pub(crate) fn of_element(map: usize, element: usize) -> Self {
        Self { written: Memory::default(), initial: Initial::Element { map, element } }
    }
}

/// Where a packet is redirected to, or a tail call leads to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redirect {
    /// The map; none for an interface.
    pub(crate) map: Option<usize>,
    /// The interface's index, or a key or index in the map, of 32 bits.
    pub(crate) number: Term,
    /// Flags of 32 bits that decide what becomes of the packet.
    pub(crate) flags: Term,
}

/// What a program sent to a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// To the reader of a map: bytes, and so many bytes of the packet as it was then.
    Event { map: usize, data: Vec<Term>, captured: Option<(Packet, Term)> },
    /// To the log: a format without its end, and its arguments.
    Trace { pieces: Vec<Piece>, arguments: Vec<Term> },
}

/// The bytes of an object that were not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Initial {
    /// Zeros.
    Zero,
    /// Known bytes, and zeros after them.
    Bytes(Rc<[u8]>),
    /// The value that an element of a map has from the start.
    Element { map: usize, element: usize },
    /// A record of a ring buffer, by its number: what was there before.
    Record(usize),
}

/// What is known of an element now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Now {
    /// As from the start, which was not decided yet.
    Initial,
    /// It is there: the object of its value.
    There(usize),
    /// It is not there.
    Absent,
}

/// An element that the program asked for.
#[derive(Clone, Debug)]
pub(crate) struct ElementState {
    /// The bytes of its key.
    pub(crate) key: Vec<Term>,
    pub(crate) now: Now,
    /// Whether it is there from the start.
    pub(crate) was_there: bool,
    /// Whether the map may have given it up to make room for another one.
    pub(crate) may_be_gone: bool,
}

/// The elements that were asked for on a path: their keys differ.
#[derive(Clone, Debug, Default)]
pub(crate) struct MapState {
    pub(crate) elements: Vec<ElementState>,
    pub(crate) room: Room,
    /// Slots of elements that were replaced or removed: they are not free before the run ends.
    pub(crate) retired: u32,
}

/// A model of the conditions of a path, with what was evaluated under it. Copies begin without that: most of them wait in the queue.
#[derive(Debug, Default)]
pub(crate) struct Assignment {
    pub(crate) model: Rc<Model>,
    values: RefCell<Evaluator>,
}

impl Clone for Assignment {
    fn clone(&self) -> Self {
        Self { model: Rc::clone(&self.model), values: RefCell::default() }
    }
}

impl Assignment {
    pub(crate) fn new(model: Model) -> Self {
        Self { model: Rc::new(model), values: RefCell::default() }
    }

    /// Drops what was evaluated.
    pub(crate) fn forget(&mut self) {
        self.values = RefCell::default();
    }

    pub(crate) fn value(&self, terms: &Terms, term: Term) -> u64 {
        self.values.borrow_mut().value(terms, &self.model, term)
    }
}

/// The sides of the branches that a path took, the newest first.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) side: Side,
    pub(crate) before: Option<Rc<Taken>>,
}

/// The helper calls of a path, the newest first.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) call: Call,
    pub(crate) before: Option<Rc<Called>>,
}

/// The look-up of a route, and what the network answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) is_v4: bool,
    /// Index of the interface that is asked for, of 32 bits.
    pub(crate) ingress: Term,
    /// The bytes of the address that is asked for.
    pub(crate) destination: Vec<Term>,
    /// The outcome as a number of 8 bits, or 9 if the interface does not exist.
    pub(crate) outcome: Term,
    /// Index of the interface that the route leads to, of 32 bits.
    pub(crate) interface: Term,
    /// Its MTU, of 32 bits.
    pub(crate) mtu: Term,
}

/// A record of a ring buffer that was reserved, and not given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) map: usize,
    pub(crate) object: usize,
    /// In bytes.
    pub(crate) size: usize,
}

/// Numbers that a path took from the host so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drawn {
    /// Random numbers.
    pub(crate) randoms: usize,
    /// Results of helpers that are the machine's alone.
    pub(crate) results: usize,
    /// Bytes of ring buffers that records took.
    pub(crate) records: u64,
    /// Records that were reserved in all, and those of them that were not given back.
    pub(crate) reserved: usize,
    pub(crate) reservations: Vec<Reservation>,
    /// Readings of clocks.
    pub(crate) times: usize,
    /// The last reading of each clock, by its number.
    pub(crate) clocks: [Option<Term>; Clock::COUNT],
    /// Tail calls to programs that the object itself puts into an array, and that failed.
    pub(crate) failed_calls: usize,
    /// The look-up of a route, if there was one.
    pub(crate) route: Option<Box<Route>>,
}

/// What the first of two programs left.
#[derive(Debug)]
pub(crate) struct First {
    pub(crate) result: Term,
    pub(crate) packet: Packet,
    pub(crate) objects: Vec<Rc<Object>>,
    pub(crate) maps: Vec<Rc<MapState>>,
    pub(crate) redirect: Option<Redirect>,
    pub(crate) tail: Option<Redirect>,
    pub(crate) context: Rc<HashMap<u16, Term>>,
    pub(crate) sent: Rc<Vec<Sent>>,
    /// How many others were left before.
    pub(crate) number: u64,
}

/// The state of a path.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) slot: usize,
    pub(crate) registers: [Value; 11],
    pub(crate) frames: Vec<Frame>,
    pub(crate) packet: Packet,
    pub(crate) context: Rc<HashMap<u16, Term>>,
    pub(crate) objects: Vec<Rc<Object>>,
    pub(crate) maps: Vec<Rc<MapState>>,
    /// Conditions that hold on the path.
    pub(crate) path: Vec<Term>,
    /// A model of them, but for `pending`.
    pub(crate) assignment: Assignment,
    /// A condition, the last of the path, that was not checked yet.
    pub(crate) pending: bool,
    pub(crate) taken: Option<Rc<Taken>>,
    /// Helper calls, where paths are looked for.
    pub(crate) called: Option<Rc<Called>>,
    /// The jump whose comparison is at an edge on this path, where inputs at the boundaries of whole paths are looked for.
    pub(crate) at: Option<(usize, Edge)>,
    /// How often the path took each side.
    pub(crate) rounds: Rc<HashMap<Side, u32>>,
    pub(crate) drawn: Drawn,
    /// What the packet was redirected to last.
    pub(crate) redirect: Option<Redirect>,
    /// The tail call that the path ended with, where two programs are compared.
    pub(crate) tail: Option<Redirect>,
    /// Whether that, or the one of the first program, leads to a program that is not in the object.
    pub(crate) is_elsewhere: bool,
    /// Events and traces, where two programs are compared.
    pub(crate) sent: Rc<Vec<Sent>>,
    /// Whether the program has ended, and what it left is to be looked at.
    pub(crate) has_ended: bool,
    /// What the first of two programs left, where the second one runs.
    pub(crate) first: Option<Rc<First>>,
    /// Where the path went on although it may go otherwise in a way that is not modelled: an input that does is no fault.
    pub(crate) guess: Option<Place>,
    pub(crate) instructions: u64,
    /// How unlikely the path is to be worth following: choices of offsets, and rounds of loops.
    pub(crate) cost: u32,
}

impl State {
    pub(crate) fn object_mut(&mut self, index: usize) -> Option<&mut Object> {
        self.objects.get_mut(index).map(Rc::make_mut)
    }

    /// The sides that the path took, the first one first.
    pub(crate) fn sides(&self) -> Vec<Side> {
        let mut sides = Vec::new();
        let mut taken = self.taken.as_ref();
        while let Some(here) = taken {
            sides.push(here.side);
            taken = here.before.as_ref();
        }
        sides.reverse();
        sides
    }

    /// The helper calls of the path, the first one first.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let mut calls = Vec::new();
        let mut called = self.called.as_ref();
        while let Some(here) = called {
            calls.push(here.call);
            called = here.before.as_ref();
        }
        calls.reverse();
        calls
    }

    /// The element of a map at a key by numbers, which is added if the path did not ask for it.
    pub(crate) fn element_at(&mut self, map: usize, key: Vec<Term>) -> usize {
        let elements = &mut Rc::make_mut(&mut self.maps[map]).elements;
        if let Some(index) = elements.iter().position(|element| element.key == key) {
            return index;
        }
        elements.push(ElementState { key, now: Now::Initial, was_there: false, may_be_gone: false });
        elements.len() - 1
    }

    pub(crate) fn new_object(&mut self, initial: Initial) -> usize {
        self.objects.push(Rc::new(Object { written: Memory::default(), initial }));
        self.objects.len() - 1
    }
}
