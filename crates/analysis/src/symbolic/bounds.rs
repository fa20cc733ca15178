//! What a proof holds for: the packets, and what is taken for granted.

use std::collections::BTreeSet;
use std::fmt;

/// Something that is taken for granted of runs, where the paths that were followed depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Assumption {
    /// The packet is in one buffer, of a program that gets others as well.
    OneBuffer,
    /// The packet comes in without metadata.
    NoMetadata,
    /// The packet comes in with its VLAN tags in it, and none beside it.
    TagsInPacket,
    /// Constants have the values of the object.
    Constants,
    /// No other CPU changes maps during the run.
    StillMaps,
    /// A map has memory for 15 elements that are replaced or removed during the run, whose values stay.
    FewReplaced,
    /// Maps of maps have the maps that the object puts there.
    InnerMaps,
    /// A clock does not go back between two readings.
    RisingClocks,
    /// Interfaces have indices from 1.
    Interfaces,
    /// Bytes of the stack are zero until they are written.
    ZeroStack,
    /// No address is in the first or last 64 KiB, or has low 32 bits of zero.
    Addresses,
    /// The run begins with the program, and not with another one that calls it.
    First,
}

impl Assumption {
    /// Whether it is about the packet that comes in.
    const fn is_about_packet(self) -> bool {
        matches!(self, Self::OneBuffer | Self::NoMetadata | Self::TagsInPacket)
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneBuffer => "in one buffer",
            Self::NoMetadata => "without metadata",
            Self::TagsInPacket => "without VLAN tags beside them",
            Self::Constants => "constants as given",
            Self::StillMaps => "maps that no other CPU changes",
            Self::FewReplaced => "at most 15 replaced elements, whose values stay",
            Self::InnerMaps => "maps of maps as the object fills them",
            Self::RisingClocks => "clocks that do not go back",
            Self::Interfaces => "interfaces with indices from 1",
            Self::ZeroStack => "a stack of zeros",
            Self::Addresses => {
                "addresses beyond the first and last 64 KiB, with low 32 bits that are not zero"
            }
            Self::First => "runs that begin with this program",
        })
    }
}

/// What a proof holds for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Length of packets in bytes: the least and the greatest.
    pub length: (u16, u16),
    /// What is taken for granted.
    pub assumptions: BTreeSet<Assumption>,
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, greatest) = self.length;
        write!(f, "packets of {least} to {greatest} bytes")?;
        for assumption in &self.assumptions {
            let separator = if assumption.is_about_packet() { "" } else { "," };
            write!(f, "{separator} {assumption}")?;
        }
        Ok(())
    }
}
