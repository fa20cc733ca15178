//! When look-ups are made ahead of bursts.

use std::fmt;
use std::str::FromStr;

/// Whether bursts run in stages: first the keys of the program's first look-ups are computed for all packets, and their elements brought
/// into the cache, then the program runs. Results are the same. Native code only; other engines run packet by packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LookAhead {
    /// If the maps are large, 8 MiB or more in use, for bursts of 8 packets or more.
    #[default]
    Auto,
    /// Always, if the program has look-ups whose keys can be computed ahead.
    Always,
    /// Never.
    Never,
}

/// There is no setting of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no setting {0}; there is: auto, always, never")]
pub struct NoSuchLookAhead(pub String);

impl LookAhead {
    /// All settings.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Always, Self::Never];

    /// Its name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

impl fmt::Display for LookAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LookAhead {
    type Err = NoSuchLookAhead;

    fn from_str(name: &str) -> Result<Self, NoSuchLookAhead> {
        let found = Self::ALL.into_iter().find(|setting| setting.name() == name);
        found.ok_or_else(|| NoSuchLookAhead(name.to_owned()))
    }
}

/// Size of maps in bytes from which look-ups ahead save more than they cost: the memory that the 2,048 entries of a processor's
/// second-level TLB reach, in pages of 4 KiB. Measured by `paceline-bench lookahead`: a table of 2 MB is slower with them, one of 20 MB faster.
#[cfg(feature = "jit")]
pub(crate) const LARGE: u64 = 2048 * 4096;
