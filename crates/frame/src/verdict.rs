//! Verdicts.

use std::fmt;

/// The fate of a packet: `enum xdp_action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Verdict {
    /// The program failed; the packet is dropped.
    Aborted = 0,
    /// The packet is dropped.
    Drop = 1,
    /// The packet is passed to the host's network stack.
    Pass = 2,
    /// The packet is sent back out of its input interface.
    Tx = 3,
    /// The packet is sent to the frame's redirect target.
    Redirect = 4,
}

impl Verdict {
    /// All verdicts, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Aborted, Self::Drop, Self::Pass, Self::Tx, Self::Redirect];

    /// The verdict for a program's return value; `None` for values outside of `enum xdp_action`, which the kernel treats as
    /// aborted.
    #[must_use]
    #[inline]
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.get(code as usize).copied()
    }

    /// Lower-case name, as in `--json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aborted => "aborted",
            Self::Drop => "drop",
            Self::Pass => "pass",
            Self::Tx => "tx",
            Self::Redirect => "redirect",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
