//! Packets by their numbers, which start at 1.

use std::fmt;
use std::str::FromStr;

/// The time of an event in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// While that packet ran.
    In(u64),
    /// When a timer fired, that packet being the last one before.
    After(u64),
}

impl When {
    /// Packets that have their verdicts.
    pub(crate) fn done(self) -> u64 {
        match self {
            Self::In(packet) => packet.saturating_sub(1),
            Self::After(packet) => packet,
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::In(packet) => write!(f, "packet {packet}"),
            Self::After(packet) => write!(f, "a timer after packet {packet}"),
        }
    }
}

/// The state of the packets before a failure.
pub(crate) fn processed(packets: u64) -> Option<String> {
    let text = match packets {
        0 => return None,
        1 => "the packet before it has its verdict, and outputs are whole up to there".to_owned(),
        n => format!("the {n} packets before it have their verdicts, and outputs are whole up to there"),
    };
    Some(text)
}

/// A selection of packets: `1,5-7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packets(Vec<(u64, u64)>);

impl Packets {
    /// The first so many.
    pub(crate) fn first(packets: u64) -> Self {
        Self(vec![(1, packets)])
    }

    /// The first of them that is none of the first so many, but for those of a range that has some of these.
    pub(crate) fn beyond(&self, packets: u64) -> Option<u64> {
        self.0.iter().map(|(first, _)| *first).filter(|first| *first > packets).min()
    }

    /// The last of them.
    pub(crate) fn last(&self) -> u64 {
        self.0.iter().map(|(_, last)| *last).max().unwrap_or(0)
    }

    /// Whether a packet is among them.
    pub(crate) fn contains(&self, packet: u64) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&packet))
    }
}

impl FromStr for Packets {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((number(first)?, number(last)?)).filter(|(first, last)| first <= last)
        };
        let ranges: Option<_> = text.split(',').map(range).collect();
        ranges.map(Self).ok_or("packets are numbers from 1, such as 1,5-7")
    }
}
