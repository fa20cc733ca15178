//! The packets that are explained.

use std::str::FromStr;

use paceline::Verdict;

use crate::common::packets::Packets;

/// Packets by their numbers, or by their verdict: `1,5-7`, `drop`, `drop:10`, `drop:all`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    Numbers(Packets),
    /// The first so many with a verdict; where no number is given, the first one, or all where they are counted.
    Verdict(Verdict, Option<u64>),
    All,
}

impl Selection {
    /// Whether to look at more packets, after so many of which some were selected.
    pub(super) fn goes_on(&self, packets: u64, selected: u64, counts: bool) -> bool {
        match self {
            Self::Numbers(numbers) => numbers.last() > packets,
            Self::Verdict(_, most) => selected < most.unwrap_or(if counts { u64::MAX } else { 1 }),
            Self::All => true,
        }
    }

    /// Whether a packet has to be explained before it is known whether it is one of them.
    pub(super) fn may_contain(&self, packet: u64) -> bool {
        match self {
            Self::Numbers(numbers) => numbers.contains(packet),
            Self::Verdict(..) | Self::All => true,
        }
    }

    /// Whether a packet that may be one of them is, by its verdict.
    pub(super) fn has(&self, verdict: Verdict) -> bool {
        !matches!(self, Self::Verdict(wanted, _) if *wanted != verdict)
    }
}

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, most) = text.split_once(':').map_or((text, None), |(name, most)| (name, Some(most)));
        let Some(verdict) = Verdict::ALL.into_iter().find(|verdict| verdict.name() == name) else {
            let names = Verdict::ALL.map(Verdict::name).join(", ");
            return match text.starts_with(|first: char| first.is_ascii_digit()) {
                true => text.parse().map(Self::Numbers).map_err(str::to_owned),
                false => Err(format!("packets are numbers from 1, such as `1,5-7`, or a verdict: {names}")),
            };
        };
        match (most, most.map(str::parse)) {
            (None, _) => Ok(Self::Verdict(verdict, None)),
            (Some("all"), _) => Ok(Self::Verdict(verdict, Some(u64::MAX))),
            (_, Some(Ok(most))) if most > 0 => Ok(Self::Verdict(verdict, Some(most))),
            _ => Err(format!("after `{name}:` comes a number of packets from 1, or `all`")),
        }
    }
}
