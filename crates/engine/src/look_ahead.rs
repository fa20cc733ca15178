//! When look-ups are made ahead of bursts.
//!
//! Not looked up ahead: inner maps of maps of maps, prefixes of other sizes than IPv4's, keys of more than 64 bytes, programs on
//! interpreters, and the programs of a chain behind its first. A program without a slice has the reason (`NoSlice`); a slice that
//! the verifier refuses costs time only.

use std::fmt;
use std::str::FromStr;

/// Whether bursts run in stages: first the keys of the program's first look-ups are computed for all packets, and their elements brought
/// into the cache, then the program runs. Results are the same. Native code only; other engines run packet by packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LookAhead {
    /// If look-ups in one of the maps reach 8 MiB or more, arrays with all elements and other maps with those in use, for bursts of 8 packets or
    /// more, and as long as bursts are faster so: both ways are tried now and then.
    #[default]
    Auto,
    /// Always, if the program has look-ups whose keys can be computed ahead.
    Always,
    /// Never.
    Never,
}

/// There is no setting of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no setting {0} (available: auto, always, never)")]
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

/// Why a program has no look-ups ahead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSlice {
    /// The setting or the engine rules them out.
    #[error("not asked for")]
    NotAsked,
    /// There is no look-up in a map that may be large, with a key that can be computed ahead.
    #[error("no look-up in a map that may be large has a key that can be computed ahead")]
    NoLookUp,
    /// The slice is not a valid program or has effects: a fault of Paceline. Results are not affected.
    #[error("the slice is refused: {0}")]
    Refused(String),
    /// The slice cannot be compiled.
    #[error("the slice cannot be compiled: {0}")]
    Compile(String),
}

impl NoSlice {
    /// Whether Paceline is at fault, and not the program or the setting. Tests fail then.
    #[must_use]
    pub const fn is_fault(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Compile(_))
    }
}

/// Size of maps in bytes from which look-ups ahead save more than they cost: the memory that the 2,048 entries of a processor's
/// second-level TLB reach, in pages of 4 KiB. `paceline-bench lookahead` measures tables on both sides.
#[cfg(feature = "jit")]
pub(crate) const LARGE: u64 = 2048 * 4096;
