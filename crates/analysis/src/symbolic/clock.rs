//! The clocks that programs read.

use paceline_spec::helper::HelperId;

/// A clock that programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Clock {
    Monotonic,
    Coarse,
    Boot,
    Tai,
}

impl Clock {
    pub(crate) const COUNT: usize = 4;

    /// The clock that a helper reads.
    pub(crate) const fn of(helper: HelperId) -> Option<Self> {
        match helper {
            HelperId::KtimeGetNs | HelperId::Jiffies64 => Some(Self::Monotonic),
            HelperId::KtimeGetCoarseNs => Some(Self::Coarse),
            HelperId::KtimeGetBootNs => Some(Self::Boot),
            HelperId::KtimeGetTaiNs => Some(Self::Tai),
            _ => None,
        }
    }

    /// Whether it never goes back: TAI may be set.
    pub(crate) const fn is_steady(self) -> bool {
        !matches!(self, Self::Tai)
    }
}
