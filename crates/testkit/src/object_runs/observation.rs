//! A trial, and what a run leaves.

use std::fmt::Write;
use std::sync::Arc;

use paceline::Object;
use paceline::network::Network;

use crate::compare::{Input, Left};
use crate::hex::hex;
use crate::{AnyEngine, Contents};

/// A program of an object, and its inputs.
#[derive(Clone, Copy)]
pub struct Trial<'a> {
    /// The object, with the initial contents of its maps.
    pub object: &'a Object,
    /// Name of the program.
    pub program: &'a str,
    /// The packets.
    pub inputs: &'a [Input],
    /// Seed of random numbers and of the lengths of bursts.
    pub seed: u64,
    /// The engines; the first is the reference.
    pub engines: &'a [AnyEngine],
    /// Interfaces and routes of the host.
    pub network: Option<&'a Arc<Network>>,
    /// The CPU that runs it.
    pub cpu: usize,
}

/// Result of a run over all packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Each packet.
    pub packets: Vec<Left>,
    /// Contents of each map of the object; `None` if its elements are not bytes.
    pub maps: Vec<Option<Contents>>,
}

impl Observation {
    /// The difference from another result as text; `None` if they are equal.
    #[must_use]
    pub fn difference(&self, other: &Self, names: [&str; 2], trial: &Trial<'_>) -> Option<String> {
        let mut text = String::new();
        let mut pairs = self.packets.iter().zip(&other.packets);
        if let Some(index) = pairs.position(|(one, other)| !one.agrees(other)) {
            let _ = writeln!(text, "packet {index}: {}", input(trial, index));
            for (name, side) in names.iter().zip([self, other]) {
                let _ = writeln!(text, "  {name}: {}", left(&side.packets[index]));
            }
            return Some(text);
        }
        if self.packets.len() != other.packets.len() {
            return Some(format!("{} packets and {}", self.packets.len(), other.packets.len()));
        }
        let differ = |(one, other): (&Option<Contents>, &Option<Contents>)| {
            one.is_some() && other.is_some() && one != other
        };
        let map = self.maps.iter().zip(&other.maps).position(differ)?;
        let name = trial.object.maps().get(map).map_or("?", |spec| &spec.name);
        let _ = writeln!(text, "map {name} after the last packet");
        let side = |side: &Self| side.maps[map].clone().unwrap_or_default();
        let (one, other) = (side(self), side(other));
        for (these, those, name) in [(&one, &other, names[0]), (&other, &one, names[1])] {
            for (key, value) in these.iter().filter(|(key, value)| those.get(*key) != Some(*value)).take(4) {
                let _ = writeln!(text, "  {name}: {} => {}", digits(key), digits(value));
            }
        }
        Some(text)
    }
}

pub(super) fn input(trial: &Trial<'_>, index: usize) -> String {
    trial.inputs.get(index).map_or_else(String::new, |input| {
        format!("meta {} data {}", digits(&input.meta), digits(&input.data))
    })
}

pub(super) fn left(left: &Left) -> String {
    let mut text = format!("code {:#x}", left.code);
    if let Some(r0) = left.r0 {
        let _ = write!(text, " r0 {r0:#x}");
    }
    if let Some(redirect) = left.redirect.flatten() {
        let _ = write!(text, " redirect {redirect:?}");
    }
    let _ = write!(text, " meta {} data {}", digits(&left.meta), digits(&left.data));
    text
}

/// Digits, or `-` for nothing.
fn digits(bytes: &[u8]) -> String {
    if bytes.is_empty() { "-".to_owned() } else { hex(bytes) }
}
