//! Readings of clocks.

use crate::solver::Term;

use crate::symbolic::bounds::Assumption;
use crate::symbolic::clock::Clock;
use crate::symbolic::explorer::Explorer;
use crate::symbolic::source::Source;
use crate::symbolic::state::State;

impl Explorer<'_> {
    /// A reading of a clock: any time that is not before the last reading of it.
    pub(super) fn time(&mut self, state: &mut State, clock: Clock) -> Term {
        let mut time = self.sources.term(&mut self.terms, Source::Time(clock, state.drawn.times));
        state.drawn.times += 1;
        let last = state.drawn.clocks[clock as usize].filter(|_| clock.is_steady());
        if let Some(last) = last {
            self.assume(Assumption::RisingClocks);
            let is_before = self.terms.ult(time, last);
            time = self.terms.ite(is_before, last, time);
        }
        state.drawn.clocks[clock as usize] = Some(time);
        time
    }
}
