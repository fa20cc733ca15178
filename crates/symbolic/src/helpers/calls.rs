//! Helpers that go on elsewhere: tail calls and loops.

use paceline_isa::Reg;
use paceline_spec::Errno;

use crate::alu;
use crate::explorer::{Explorer, Next};
use crate::give_up::GiveUp;
use crate::state::{Callback, State};
use crate::step::clear_arguments;
use crate::value::Value;

impl Explorer<'_> {
    /// `bpf_tail_call`: the path ends in another program, or goes on where the array has none there.
    pub(crate) fn tail_call(&mut self, state: &mut State, next: usize) -> Result<Next, GiveUp> {
        let map = self.map(state, Reg::R2)?;
        let index = self.number(state, Reg::R3)?;
        let key = alu::bytes(&mut self.terms, index, 4);
        let spec = self.maps.get(map).ok_or(GiveUp::Address)?;
        for (given, _) in &spec.contents {
            // The object itself puts a program there.
            let mut same = self.terms.bool(true);
            for (byte, &value) in key.iter().zip(given) {
                let value = self.terms.constant(8, u64::from(value));
                let equal = self.terms.eq(*byte, value);
                same = self.terms.and(same, equal);
            }
            if self.decide(state, same, 0) {
                return Ok(Next::End);
            }
        }
        clear_arguments(state);
        Self::set(state, Reg::R0, Value::Unset);
        state.slot = next;
        Ok(Next::On)
    }

    /// `bpf_loop`: the callback runs as a function that is entered again after each round.
    pub(super) fn bpf_loop(&mut self, state: &mut State, next: usize) -> Result<Next, GiveUp> {
        let rounds = self.number(state, Reg::R1)?;
        let rounds = self.terms.extract(rounds, 0, 32);
        let Value::Code(start) = Self::register(state, Reg::R2) else {
            return Err(GiveUp::HelperUse("bpf_loop", "with a function that is not named"));
        };
        let argument = Self::register(state, Reg::R3);
        let flags = self.number(state, Reg::R4)?;
        if self.terms.value(flags) != Some(0) {
            return Err(GiveUp::HelperUse("bpf_loop", "with flags"));
        }
        let most = self.terms.constant(32, u64::from(paceline_spec::MAX_LOOPS));
        let is_allowed = self.terms.ule(rounds, most);
        if !self.decide(state, is_allowed, 0) {
            let failed = self.failed(Errno::E2BIG);
            clear_arguments(state);
            Self::set(state, Reg::R0, failed);
            state.slot = next;
            return Ok(Next::On);
        }
        let zero = self.terms.constant(32, 0);
        let none = self.terms.eq(rounds, zero);
        if self.decide(state, none, 0) {
            let result = self.returned(0);
            clear_arguments(state);
            Self::set(state, Reg::R0, result);
            state.slot = next;
            return Ok(Next::On);
        }
        self.begin_round(state, Callback { start, round: 0, rounds, argument }, next);
        Ok(Next::On)
    }

    pub(super) fn begin_round(&mut self, state: &mut State, callback: Callback, return_to: usize) {
        clear_arguments(state);
        state.registers[1] = Value::Number(self.terms.constant(64, callback.round));
        state.registers[2] = callback.argument;
        self.enter(state, callback.start, return_to, Some(callback));
    }

    /// A callback returns: the next round, or the end of the loop.
    pub(crate) fn after_round(&mut self, state: &mut State) -> Result<Next, GiveUp> {
        let Some(callback) = state.frames.last().and_then(|frame| frame.callback) else {
            return Err(GiveUp::Instruction("a callback without its helper"));
        };
        let result = self.number(state, Reg::R0)?;
        let zero = self.terms.constant(64, 0);
        let goes_on = self.terms.eq(result, zero);
        let done = callback.round + 1;
        let count = self.terms.constant(32, done);
        let is_last = self.terms.eq(callback.rounds, count);
        let goes_on = self.decide(state, goes_on, 0) && !self.decide(state, is_last, 1);
        if goes_on && done >= u64::from(self.options.rounds) {
            return Err(GiveUp::Rounds);
        }
        let return_to = state.frames.last().map_or(0, |frame| frame.return_to);
        self.leave_function(state);
        if goes_on {
            self.begin_round(state, Callback { round: done, ..callback }, return_to);
        } else {
            let result = self.returned(done as i64);
            Self::set(state, Reg::R0, result);
        }
        Ok(Next::On)
    }
}
