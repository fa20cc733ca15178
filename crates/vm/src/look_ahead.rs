//! When look-ups are made ahead of bursts.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// Whether bursts run in stages: first the keys of the program's first look-ups are computed for all packets, and their elements brought
/// into the cache, then the program runs. Results are the same. Native code only; other engines run packet by packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LookAhead {
    /// If the maps are larger than the processor's own caches, for bursts of 8 packets or more.
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

/// Size of a processor's second-level cache in bytes, which no other processor uses: what Linux says of the first one, 1 MiB if it does not.
#[cfg(feature = "jit")]
pub(crate) fn cache_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let size = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size").ok();
        let kib = size.as_deref().and_then(|size| size.trim().strip_suffix('K')?.parse::<u64>().ok());
        kib.map_or(1 << 20, |kib| kib << 10)
    })
}
