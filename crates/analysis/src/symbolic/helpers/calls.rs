//! Helpers that go on elsewhere: tail calls and loops.

use crate::solver::Term;
use paceline_isa::Reg;
use paceline_spec::Errno;

use crate::symbolic::explorer::{Explorer, Next};
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::goal::CallResult;
use crate::symbolic::source::Source;
use crate::symbolic::state::{Callback, Redirect, State};
use crate::symbolic::step::clear_arguments;
use crate::symbolic::value::Value;

impl Explorer<'_> {
    /// `bpf_tail_call`: another program runs in place of the function, or the path goes on, if the array has none there or if there were
    /// too many such calls. User space may add and remove programs; the array of an input has those of the object.
    pub(crate) fn tail_call(&mut self, state: &mut State, next: usize) -> Result<Next, GiveUp> {
        let map = self.map(state, Reg::R2)?;
        let index = self.number(state, Reg::R3)?;
        let index = self.terms.extract(index, 0, 32);
        let entries = self.maps.get(map).ok_or(GiveUp::Address)?.max_entries;
        let entries = self.terms.constant(32, u64::from(entries));
        let is_within = self.terms.ult(index, entries);
        if state.frames.len() > 1 && self.terms.value(is_within) != Some(0) {
            // The result of the other program would be that of the function, and the packet what it makes of it.
            self.leave_callers(state, GiveUp::HelperUse("bpf_tail_call", "in a function that returns"));
        }
        let given = self.given_program(state, map, index)?;
        // Where all paths are followed, user space may have put a program there.
        if given.is_some() || self.follows_all() && self.decide(state, is_within, 0) {
            let fails = Source::TailCallFails(state.drawn.failed_calls);
            let fails = self.sources.term(&mut self.terms, fails);
            if !self.decide(state, fails, 0) {
                if let Some(given) = given {
                    self.called(state, state.slot, CallResult::Program(given));
                }
                self.end(state);
                state.is_elsewhere |= given.is_none();
                let flags = self.terms.constant(32, 0);
                state.tail = Some(Redirect { map: Some(map), number: index, flags });
                return self.ended(state);
            }
            state.drawn.failed_calls += 1;
        }
        self.called(state, state.slot, CallResult::Other);
        clear_arguments(state);
        Self::set(state, Reg::R0, Value::Unset);
        state.slot = next;
        Ok(Next::On)
    }

    /// The index as a number, if the object itself puts a program there.
    fn given_program(&mut self, state: &mut State, map: usize, index: Term) -> Result<Option<u32>, GiveUp> {
        let maps = self.maps;
        let spec = maps.get(map).ok_or(GiveUp::Address)?;
        for (given, _) in &spec.contents {
            let given: [u8; 4] = given.as_slice().try_into().map_err(|_| GiveUp::Address)?;
            let given = u32::from_ne_bytes(given);
            let number = self.terms.constant(32, u64::from(given));
            let same = self.terms.eq(index, number);
            if self.decide(state, same, 0) {
                return Ok(Some(given));
            }
        }
        Ok(None)
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
            return Ok(self.end_loop(state, failed, next));
        }
        let zero = self.terms.constant(32, 0);
        let none = self.terms.eq(rounds, zero);
        if self.decide(state, none, 0) {
            let result = self.returned(0);
            return Ok(self.end_loop(state, result, next));
        }
        self.begin_round(state, Callback { start, round: 0, rounds, argument }, next);
        Ok(Next::On)
    }

    /// Goes on behind a loop, at the slot after the call.
    fn end_loop(&self, state: &mut State, result: Value, next: usize) -> Next {
        self.called(state, next - 1, self.result_of(result));
        clear_arguments(state);
        Self::set(state, Reg::R0, result);
        state.slot = next;
        Next::On
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
            return Ok(self.end_loop(state, result, return_to));
        }
        Ok(Next::On)
    }
}
