//! Engines.

use std::fmt;
use std::str::FromStr;

/// An engine. All engines return the same results; the plain interpreter also runs unverified programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// Native code.
    Jit,
    /// The interpreter of pre-decoded operations, each of which jumps to the next.
    Threaded,
    /// The interpreter that checks everything and counts instructions.
    Plain,
}

/// No engine has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no engine {0} (available: jit, threaded, plain)")]
pub struct NoSuchEngine(pub String);

impl Engine {
    /// All engines, the fastest first.
    pub const ALL: [Self; 3] = [Self::Jit, Self::Threaded, Self::Plain];

    /// The fastest on this machine for verified programs.
    #[must_use]
    pub const fn best() -> Self {
        if Self::Jit.is_available() { Self::Jit } else { Self::Threaded }
    }

    /// Whether this build and machine have it: native code needs the feature `jit`, and x86-64 or arm64 (in little-endian order).
    #[must_use]
    pub const fn is_available(self) -> bool {
        match self {
            Self::Jit => {
                let arm64 = cfg!(all(target_arch = "aarch64", target_endian = "little"));
                cfg!(feature = "jit") && (cfg!(target_arch = "x86_64") || arm64)
            }
            Self::Threaded | Self::Plain => true,
        }
    }

    /// Its name in options and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jit => "jit",
            Self::Threaded => "threaded",
            Self::Plain => "plain",
        }
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::best()
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = NoSuchEngine;

    fn from_str(name: &str) -> Result<Self, NoSuchEngine> {
        Self::ALL
            .into_iter()
            .find(|engine| engine.name() == name)
            .ok_or_else(|| NoSuchEngine(name.to_owned()))
    }
}
