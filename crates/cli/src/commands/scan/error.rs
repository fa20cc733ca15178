//! Errors of scans.

use paceline::filter::{CheckError, FilterError, Missing};
use paceline_archive::{Error, MergeError, Totals};

use crate::common::failure::CommandError;

/// The reason why captures cannot be scanned, or only in part.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScanError {
    #[error(transparent)]
    Archive(#[from] Error),
    #[error("{0}")]
    Libpcap(Missing),
    #[error("the expression: {0}")]
    Check(CheckError),
    #[error("the expression")]
    Filter(#[source] Box<FilterError>),
    #[error("--out: the packets of {first} have link type {one}, those of {second} have {other}")]
    LinkTypes {
        first: String,
        one: paceline::capture::LinkType,
        second: String,
        other: paceline::capture::LinkType,
    },
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error("{captures} of the captures {}: {} bytes gave no packets", if *captures == 1 { "is damaged" } else { "are damaged" }, bytes)]
    Damaged { captures: usize, bytes: u64 },
}

impl ScanError {
    /// The error of what was lost, if anything was.
    pub(super) fn of_losses(captures: &[Totals]) -> Option<Self> {
        let damaged = captures.iter().filter(|totals| !totals.lost.is_empty());
        let bytes = captures.iter().flat_map(|totals| &totals.lost).map(|lost| lost.to - lost.from).sum();
        match damaged.count() {
            0 => None,
            captures => Some(Self::Damaged { captures, bytes }),
        }
    }
}

impl CommandError for ScanError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Libpcap(_) => "install it (Debian: apt install libpcap0.8)",
            Self::LinkTypes { .. } => {
                "a pcap has packets of one link type; scan these captures one after the other"
            }
            Self::Merge(MergeError::NoRule { map }) => {
                return Some(format!(
                    "say --merge {map}=sum for counters, {map}=union for a set, {map}=fixed if programs only read it, or \
                     --workers 1"
                ));
            }
            Self::Merge(MergeError::Kind { .. } | MergeError::Rule { .. } | MergeError::Value { .. }) => {
                "--workers 1 runs all packets on the same maps"
            }
            Self::Damaged { .. } => "all other packets are in the result; what is lost is above",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
