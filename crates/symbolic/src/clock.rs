//! Readings of clocks.

use paceline_solver::Term;
use paceline_spec::helper::HelperId;

use crate::explorer::Explorer;
use crate::source::Source;
use crate::state::State;

/// A clock that programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    const fn is_steady(self) -> bool {
        !matches!(self, Self::Tai)
    }
}

impl Explorer<'_> {
    /// A reading of a clock: any time that is not before the last reading of it.
    pub(crate) fn time(&mut self, state: &mut State, clock: Clock) -> Term {
        let mut time = self.sources.term(&mut self.terms, Source::Time(state.drawn.times));
        state.drawn.times += 1;
        let last = state.drawn.clocks[clock as usize].filter(|_| clock.is_steady());
        if let Some(last) = last {
            let is_before = self.terms.ult(time, last);
            time = self.terms.ite(is_before, last, time);
        }
        state.drawn.clocks[clock as usize] = Some(time);
        time
    }
}
