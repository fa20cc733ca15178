//! What a run leaves besides verdict and packet.

use std::collections::BTreeMap;

use paceline_frame::{Redirect, RedirectTarget};

use crate::load::Collection;

/// Where a packet was redirected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An interface.
    Interface {
        /// Its index.
        index: u32,
        /// The flags of the redirection, such as `BPF_F_INGRESS`.
        flags: u32,
    },
    /// An element of a device, CPU or socket map.
    Element {
        /// The map's name.
        map: String,
        /// Key of the element.
        key: u32,
    },
}

impl Target {
    /// The target of a redirect, which names a map of a collection.
    pub(super) fn of(collection: &Collection, redirect: Redirect) -> Self {
        match redirect.target {
            RedirectTarget::Interface { ifindex } => {
                Self::Interface { index: ifindex, flags: redirect.flags }
            }
            RedirectTarget::Map { map, key } => {
                let map = collection.maps().iter().find(|own| own.id() == map);
                Self::Element { map: map.map(|map| map.spec().name.clone()).unwrap_or_default(), key }
            }
        }
    }
}

/// An event of a program for the reader of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// The map's name.
    pub map: String,
    /// The program's data.
    pub data: Vec<u8>,
    /// Bytes of the packet behind them.
    pub captured: Vec<u8>,
}

/// Elements of maps that a run changed, by map and key: their values afterwards. `None`: removed.
pub(super) type Changes = BTreeMap<(usize, Vec<u8>), Option<Vec<u8>>>;

/// A tail call, and what the program that is called finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The program array's name.
    pub map: String,
    /// Index in it.
    pub index: u32,
    /// The packet's bytes.
    pub bytes: Vec<u8>,
    /// Its metadata.
    pub metadata: Vec<u8>,
    /// The bytes before it, metadata included.
    pub headroom: Vec<u8>,
    /// Where it is redirected to if the verdict will say so.
    pub redirect: Option<Target>,
    /// The elements of maps that were changed so far.
    pub changes: Changes,
    /// The events so far.
    pub events: Vec<Event>,
    /// The traces so far.
    pub traces: Vec<u8>,
}
