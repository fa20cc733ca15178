//! Flags of updates.

use paceline_spec::Errno;

/// `BPF_NOEXIST`, among the flags of an update.
pub(crate) const NO_EXIST: u64 = 1;
/// `BPF_EXIST`
pub(crate) const EXIST: u64 = 2;
/// `BPF_F_LOCK`: hold the value's spin lock meanwhile.
pub(crate) const LOCK: u64 = 4;

/// When an update of a map may happen: the low bits of its flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdateMode {
    /// Always: an element that is there is replaced (`BPF_ANY`).
    #[default]
    Any,
    /// Only if the key has no element (`BPF_NOEXIST`).
    NoExist,
    /// Only if the key has an element (`BPF_EXIST`).
    Exist,
}

impl UpdateMode {
    /// The flags of `bpf(2)`, as [`Map::update_raw`](crate::Map::update_raw) takes them.
    #[must_use]
    pub fn flags(self) -> u64 {
        match self {
            Self::Any => 0,
            Self::NoExist => NO_EXIST,
            Self::Exist => EXIST,
        }
    }

    /// `EINVAL` for unknown flags, [`LOCK`] among them.
    pub(crate) fn from_flags(flags: u64) -> Result<Self, Errno> {
        match flags {
            0 => Ok(Self::Any),
            NO_EXIST => Ok(Self::NoExist),
            EXIST => Ok(Self::Exist),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Whether an element that is there (or is not) may be updated (or made).
    pub(crate) fn check(self, exists: bool) -> Result<(), Errno> {
        match (self, exists) {
            (Self::NoExist, true) => Err(Errno::EEXIST),
            (Self::Exist, false) => Err(Errno::ENOENT),
            _ => Ok(()),
        }
    }
}
