//! Ports that entries of socket maps stand for, as the sockets of AF_XDP that an application opens: `--socket
//! MAP[@KEYS]=KIND:ARGUMENT`.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

use paceline::MapKind;
use paceline::json::JsonMap;
use serde_json::json;

use super::maps::named;
use crate::chain::Part;
use crate::common::failure::CommandError;
use crate::ports::{PortSpec, range};

/// Packets that entries of a map redirect to a port.
#[derive(Clone, Debug)]
pub(super) struct SocketSpec {
    /// MAP or MAP@KEYS, as it is written.
    text: String,
    map: String,
    /// All keys of the map without it.
    keys: Option<RangeInclusive<u32>>,
    pub(super) port: PortSpec,
}

impl FromStr for SocketSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "it must be MAP[@KEYS]=KIND:ARGUMENT, such as xsks_map@0=tap:app".to_owned();
        let (entries, port) = text.split_once('=').ok_or_else(form)?;
        let (map, keys) = match entries.split_once('@') {
            Some((map, keys)) => (map, Some(range(keys, "keys")?)),
            None => (entries, None),
        };
        if map.is_empty() {
            return Err(form());
        }
        Ok(Self {
            text: entries.to_owned(),
            map: map.to_owned(),
            keys,
            port: port.parse::<PortSpec>()?.of_option("--socket"),
        })
    }
}

/// Entries of a map cannot stand for a port.
#[derive(Debug, thiserror::Error)]
pub(super) enum SocketError {
    /// There is no such map, or several.
    #[error("--socket {map}: {cause}")]
    Map { map: String, cause: String },
    /// A map of another kind.
    #[error("--socket {map}: it is a map of type {kind}, and sockets are in one of type xskmap")]
    Kind { map: String, kind: &'static str },
    /// No entry has this key.
    #[error("--socket {map}@{key}: the map has {entries} entries, from 0 on")]
    Key { map: String, key: u32, entries: u32 },
    /// An entry would stand for two ports.
    #[error("--socket {second}: entry {key} of the map belongs to --socket {first}")]
    Twice { first: String, second: String, key: u32 },
    /// The map refuses the entry.
    #[error("--socket {map}@{key}")]
    Update { map: String, key: u32, source: paceline::json::ElementError },
}

impl CommandError for SocketError {}

/// The entries of a map that stand for a port.
struct Entries<'a> {
    spec: &'a SocketSpec,
    map: JsonMap,
    keys: RangeInclusive<u32>,
}

/// Checks that there are such entries, and that each stands for one port.
pub(super) fn check(sockets: &[SocketSpec], parts: &[Part]) -> Result<(), SocketError> {
    entries(sockets, parts).map(drop)
}

/// Stores the numbers of ports in the entries that stand for them.
pub(super) fn enter(sockets: &[SocketSpec], numbers: &[u32], parts: &[Part]) -> Result<(), SocketError> {
    entries(sockets, parts)?.iter().zip(numbers).try_for_each(|(entries, number)| entries.store(*number))
}

fn entries<'a>(sockets: &'a [SocketSpec], parts: &[Part]) -> Result<Vec<Entries<'a>>, SocketError> {
    let mut all: Vec<Entries<'a>> = Vec::with_capacity(sockets.len());
    for socket in sockets {
        let entries = socket.entries(parts)?;
        if let Some((first, key)) = all.iter().find_map(|first| Some((first, first.common_key(&entries)?))) {
            let (first, second) = (first.spec.text.clone(), socket.text.clone());
            return Err(SocketError::Twice { first, second, key });
        }
        all.push(entries);
    }
    Ok(all)
}

impl SocketSpec {
    fn entries(&self, parts: &[Part]) -> Result<Entries<'_>, SocketError> {
        let name = || self.map.clone();
        let map = named(&self.map, parts).map_err(|cause| SocketError::Map { map: name(), cause })?;
        let spec = map.map().spec();
        if spec.kind != MapKind::XskMap {
            return Err(SocketError::Kind { map: name(), kind: spec.kind.name() });
        }
        let entries = spec.max_entries;
        let keys = self.keys.clone().unwrap_or(0..=entries.saturating_sub(1));
        if *keys.end() >= entries {
            return Err(SocketError::Key { map: name(), key: *keys.end(), entries });
        }
        Ok(Entries { spec: self, map, keys })
    }
}

impl Entries<'_> {
    /// The first key that is one of both.
    fn common_key(&self, other: &Self) -> Option<u32> {
        let first = *self.keys.start().max(other.keys.start());
        let is_common = Arc::ptr_eq(self.map.map(), other.map.map());
        (is_common && first <= *self.keys.end().min(other.keys.end())).then_some(first)
    }

    fn store(&self, number: u32) -> Result<(), SocketError> {
        self.keys.clone().try_for_each(|key| {
            let stored = self.map.insert(&json!(key), &json!(number));
            stored.map_err(|source| SocketError::Update { map: self.spec.map.clone(), key, source })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_named_like_queues() {
        let spec: SocketSpec = "xsks@0-3=tap:app".parse().expect("it is right");
        assert_eq!((spec.map.as_str(), spec.keys, spec.port.text.as_str()), ("xsks", Some(0..=3), "tap:app"));
        let spec: SocketSpec = "lb:xsks=gen:size=64".parse().expect("it is right");
        assert_eq!((spec.map.as_str(), spec.keys, spec.port.text.as_str()), ("lb:xsks", None, "gen:size=64"));
    }

    #[test]
    fn wrong_ones_are_refused() {
        for (text, part) in [
            ("xsks", "MAP[@KEYS]"),
            ("=loop:", "MAP[@KEYS]"),
            ("xsks=socket:", "no kind of port"),
            ("xsks@3-1=loop:", "3 is after 1"),
            ("xsks@x=loop:", "`x` is no number"),
        ] {
            let error = text.parse::<SocketSpec>().expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
