//! Sets of verdicts.

use std::fmt;

use paceline_frame::Verdict;

/// The verdicts after which a chain continues with the next program: libxdp's chain call actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Actions(u8);

impl Actions {
    /// The empty set: the chain ends here.
    pub const NONE: Self = Self(0);

    /// [`Verdict::Pass`] only, libxdp's default (`XDP_DEFAULT_CHAIN_CALL_ACTIONS` in `xdp_helpers.h`).
    pub const PASS: Self = Self(1 << Verdict::Pass as u32);

    /// The set with a verdict added or removed.
    #[must_use]
    pub fn with(self, verdict: Verdict, is_in: bool) -> Self {
        let bit = 1 << verdict as u32;
        Self(if is_in { self.0 | bit } else { self.0 & !bit })
    }

    /// Whether a verdict is in the set.
    #[must_use]
    pub fn contains(self, verdict: Verdict) -> bool {
        self.0 & (1 << verdict as u32) != 0
    }

    /// The verdicts, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = Verdict> {
        Verdict::ALL.into_iter().filter(move |verdict| self.contains(*verdict))
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The bit mask of libxdp's dispatcher: the bit of a verdict is its number.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.0.into()
    }
}

impl FromIterator<Verdict> for Actions {
    fn from_iter<T: IntoIterator<Item = Verdict>>(verdicts: T) -> Self {
        verdicts.into_iter().fold(Self::NONE, |set, verdict| set.with(verdict, true))
    }
}

impl fmt::Display for Actions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Verdict::name).collect();
        f.pad(&if names.is_empty() { "none".to_owned() } else { names.join(", ") })
    }
}
