//! Helpers, as far as they are modelled.

use std::rc::Rc;

use paceline_isa::Reg;
use paceline_solver::Term;
use paceline_spec::Errno;
use paceline_spec::helper::{Helper, HelperId};

use crate::alu;
use crate::csum;
use crate::explorer::{Explorer, Next};
use crate::give_up::GiveUp;
use crate::source::Source;
use crate::state::{Callback, State};
use crate::step::clear_arguments;
use crate::value::{Pointer, Region, Value};

/// Bytes before the packet that hold its frame (`sizeof(struct xdp_frame)`), and the headroom with them.
const KEPT: i64 = 40;
const HEADROOM: i64 = 256;
/// Shortest packet that helpers leave, and the most bytes of packet and tail behind the headroom of an ordinary buffer.
const SHORTEST: u64 = 14;
const CAPACITY: u64 = 3520;
const REDIRECT: u64 = 4;

impl Explorer<'_> {
    /// Calls a helper.
    pub(crate) fn helper(&mut self, state: &mut State, id: i32, next: usize) -> Result<Next, GiveUp> {
        let helper = Helper::from_imm(id).ok_or(GiveUp::Instruction("an unknown helper"))?;
        let result = match helper.id {
            HelperId::Loop => return self.bpf_loop(state, next),
            id => self.result(state, id, helper.name)?,
        };
        clear_arguments(state);
        Self::set(state, Reg::R0, result);
        state.slot = next;
        Ok(Next::On)
    }

    fn result(&mut self, state: &mut State, id: HelperId, name: &'static str) -> Result<Value, GiveUp> {
        match id {
            HelperId::MapLookupElem => {
                let (map, key) = self.map_and_key(state)?;
                let found = self.look_up(state, map, key)?;
                let zero = self.terms.constant(64, 0);
                Ok(match found {
                    Some(object) => Value::Pointer(Pointer { region: Region::Object(object), offset: zero }),
                    None => Value::Number(zero),
                })
            }
            HelperId::MapUpdateElem => {
                let (map, key) = self.map_and_key(state)?;
                let size = self.maps.get(map).map_or(0, |map| map.value_size as usize);
                let value = self.pointer(state, Reg::R3)?;
                let value = self.read_numbers(state, value, size)?;
                let flags = self.number(state, Reg::R4)?;
                let flags = self.concrete(state, flags);
                let result = self.update(state, map, key, &value, flags)?;
                Ok(self.returned(result))
            }
            HelperId::MapDeleteElem => {
                let (map, key) = self.map_and_key(state)?;
                let result = self.delete(state, map, key)?;
                Ok(self.returned(result))
            }
            HelperId::KtimeGetNs | HelperId::KtimeGetBootNs | HelperId::KtimeGetCoarseNs | HelperId::KtimeGetTaiNs => {
                Ok(Value::Number(self.time(state)))
            }
            HelperId::Jiffies64 => {
                let time = self.time(state);
                let tick = self.terms.constant(64, 4_000_000);
                Ok(Value::Number(self.terms.udiv(time, tick)))
            }
            HelperId::GetPrandomU32 => {
                let number = self.sources.term(&mut self.terms, Source::Random(state.drawn));
                state.drawn += 1;
                Ok(Value::Number(self.terms.resize(number, 64)))
            }
            HelperId::GetSmpProcessorId => {
                let number = self.sources.term(&mut self.terms, Source::Cpu);
                Ok(Value::Number(self.terms.resize(number, 64)))
            }
            HelperId::GetNumaNodeId => Ok(self.returned(0)),
            HelperId::CsumDiff => self.csum_diff(state),
            HelperId::Redirect => self.redirect(state),
            HelperId::RedirectMap => self.redirect_map(state),
            HelperId::XdpAdjustHead => self.adjust_head(state),
            HelperId::XdpAdjustMeta => self.adjust_meta(state),
            HelperId::XdpAdjustTail => self.adjust_tail(state),
            HelperId::XdpGetBuffLen => Ok(Value::Number(self.packet_length(state))),
            HelperId::XdpLoadBytes => self.load_bytes(state),
            HelperId::SkbLoadBytes => self.skb_load_bytes(state),
            HelperId::SkbStoreBytes => {
                let flags = self.number(state, Reg::R5)?;
                match self.terms.value(flags) {
                    Some(0 | 1) => self.store_bytes(state),
                    _ => Err(GiveUp::HelperUse(name, "with such flags")),
                }
            }
            HelperId::XdpStoreBytes => self.store_bytes(state),
            HelperId::L3CsumReplace => self.l3_csum_replace(state, name),
            // What they return is the machine's, and mostly not looked at.
            HelperId::TracePrintk | HelperId::PerfEventOutput | HelperId::RingbufOutput => {
                let number = self.sources.term(&mut self.terms, Source::Machine(state.drawn, name));
                state.drawn += 1;
                Ok(Value::Number(number))
            }
            _ => Err(GiveUp::Helper(name)),
        }
    }

    fn returned(&mut self, result: i64) -> Value {
        Value::Number(self.terms.constant(64, result.cast_unsigned()))
    }

    fn failed(&mut self, errno: Errno) -> Value {
        Value::Number(self.terms.constant(64, errno.to_return()))
    }

    pub(crate) fn pointer(&self, state: &State, reg: Reg) -> Result<Pointer, GiveUp> {
        match Self::register(state, reg) {
            Value::Pointer(pointer) => Ok(pointer),
            _ => Err(GiveUp::Address),
        }
    }

    fn map(&self, state: &State, reg: Reg) -> Result<usize, GiveUp> {
        match Self::register(state, reg) {
            Value::Map(map) if map < self.maps.len() => Ok(map),
            _ => Err(GiveUp::Address),
        }
    }

    fn map_and_key(&mut self, state: &mut State) -> Result<(usize, Vec<Term>), GiveUp> {
        let map = self.map(state, Reg::R1)?;
        let size = self.maps.get(map).map_or(0, |map| map.key_size as usize);
        let key = self.pointer(state, Reg::R2)?;
        Ok((map, self.read_numbers(state, key, size)?))
    }

    /// The time, which stands still during a run: up to a year, which is what the times in test files can tell to a nanosecond.
    fn time(&mut self, state: &mut State) -> Term {
        const LATEST: u64 = 1 << 53;
        let time = self.sources.term(&mut self.terms, Source::Time);
        let latest = self.terms.constant(64, LATEST);
        let is_before = self.terms.ult(time, latest);
        if !state.path.contains(&is_before) {
            state.path.push(is_before);
        }
        time
    }

    fn packet_length(&mut self, state: &State) -> Term {
        let start = self.terms.constant(64, state.packet.start as u64);
        self.terms.sub(state.packet.end, start)
    }

    /// Memory of a known size, or none where a pointer is null.
    fn memory(&mut self, state: &mut State, at: Reg, size: Reg) -> Result<Vec<Term>, GiveUp> {
        let size = self.number(state, size)?;
        let low = self.terms.extract(size, 0, 32);
        let size = self.concrete(state, low) as usize;
        match Self::register(state, at) {
            _ if size == 0 => Ok(Vec::new()),
            Value::Number(_) => Ok(Vec::new()),
            _ => {
                let pointer = self.pointer(state, at)?;
                self.read_numbers(state, pointer, size)
            }
        }
    }

    fn csum_diff(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        let from = self.memory(state, Reg::R1, Reg::R2)?;
        let to = self.memory(state, Reg::R3, Reg::R4)?;
        let seed = self.number(state, Reg::R5)?;
        Ok(Value::Number(csum::diff(&mut self.terms, &from, &to, seed)))
    }

    /// `bpf_redirect` of XDP.
    fn redirect(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        let flags = self.number(state, Reg::R2)?;
        let zero = self.terms.constant(64, 0);
        let is_zero = self.terms.eq(flags, zero);
        let is_xdp = matches!(self.verified.program().kind, paceline_spec::ProgramKind::Xdp { .. });
        match is_xdp {
            true => {
                let redirect = self.terms.constant(64, REDIRECT);
                Ok(Value::Number(self.terms.ite(is_zero, redirect, zero)))
            }
            // TC_ACT_REDIRECT and TC_ACT_SHOT.
            false if self.terms.value(flags).is_some_and(|flags| flags <= 1) => Ok(self.returned(7)),
            false => Err(GiveUp::HelperUse("bpf_redirect", "with such flags")),
        }
    }

    fn redirect_map(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        const ACTIONS: u64 = 3;
        let map = self.map(state, Reg::R1)?;
        let (key, flags) = (self.number(state, Reg::R2)?, self.number(state, Reg::R3)?);
        let flags = self.concrete(state, flags);
        if flags & !ACTIONS != 0 {
            return Err(GiveUp::HelperUse("bpf_redirect_map", "with such flags"));
        }
        let key = alu::bytes(&mut self.terms, key, 4);
        let found = self.has_target(state, map, key)?;
        Ok(self.returned(if found { REDIRECT } else { flags } as i64))
    }

    /// A signed number of 32 bits as a concrete one.
    fn delta(&mut self, state: &mut State) -> Result<i64, GiveUp> {
        let delta = self.number(state, Reg::R2)?;
        let low = self.terms.extract(delta, 0, 32);
        Ok(i64::from(self.concrete(state, low) as u32 as i32))
    }

    fn adjust_head(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        let delta = self.delta(state)?;
        let meta = state.packet.start - state.packet.meta;
        let start = state.packet.start + delta;
        if start + HEADROOM < KEPT + meta {
            return Ok(self.failed(Errno::EINVAL));
        }
        let least = self.terms.constant(64, (start as u64).wrapping_add(SHORTEST));
        let fits = self.terms.sle(least, state.packet.end);
        if !self.decide(state, fits, 0) {
            return Ok(self.failed(Errno::EINVAL));
        }
        if meta > 0 {
            return Err(GiveUp::HelperUse("bpf_xdp_adjust_head", "with metadata"));
        }
        (state.packet.start, state.packet.meta) = (start, start);
        Ok(self.returned(0))
    }

    fn adjust_meta(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        const LONGEST: i64 = 255;
        let delta = self.delta(state)?;
        let meta = state.packet.meta + delta;
        if meta + HEADROOM < KEPT || meta > state.packet.start {
            return Ok(self.failed(Errno::EINVAL));
        }
        let len = state.packet.start - meta;
        if len % 4 != 0 || len > LONGEST {
            return Ok(self.failed(Errno::EACCES));
        }
        state.packet.meta = meta;
        Ok(self.returned(0))
    }

    fn adjust_tail(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        let delta = self.number(state, Reg::R2)?;
        let low = self.terms.extract(delta, 0, 32);
        let by = self.terms.sign_extend(low, 64);
        let old = state.packet.end;
        let end = self.terms.add(old, by);
        let capacity = self.terms.constant(64, CAPACITY);
        let least = self.terms.constant(64, (state.packet.start as u64).wrapping_add(SHORTEST));
        let (has_room, is_long) = (self.terms.sle(end, capacity), self.terms.sle(least, end));
        let fits = self.terms.and(has_room, is_long);
        if !self.decide(state, fits, 0) {
            return Ok(self.failed(Errno::EINVAL));
        }
        let grows = self.terms.slt(old, end);
        if self.decide(state, grows, 0) {
            // The bytes that are added are zero, also where some were written before.
            let floor = match state.packet.floor {
                Some(floor) => {
                    let is_less = self.terms.ult(old, floor);
                    self.terms.ite(is_less, old, floor)
                }
                None => old,
            };
            state.packet.floor = Some(floor);
            let zero = self.terms.constant(8, 0);
            let terms = &mut self.terms;
            Rc::make_mut(&mut state.packet.written).map_numbers(|offset, byte| {
                let place = terms.constant(64, offset as u64);
                let is_below = terms.slt(place, old);
                terms.ite(is_below, byte, zero)
            });
        }
        state.packet.end = end;
        Ok(self.returned(0))
    }

    /// The offset of `bpf_xdp_load_bytes` and its like, and whether the bytes are in the packet.
    fn span(&mut self, state: &mut State) -> Result<Result<(i64, usize), Errno>, GiveUp> {
        const FARTHEST: u64 = 0xffff;
        let (offset, size) = (self.number(state, Reg::R2)?, self.number(state, Reg::R4)?);
        let (offset, size) = (self.terms.extract(offset, 0, 32), self.terms.extract(size, 0, 32));
        let size = self.concrete(state, size);
        let offset = self.terms.resize(offset, 64);
        let farthest = self.terms.constant(64, FARTHEST);
        let is_near = self.terms.ule(offset, farthest);
        if !self.decide(state, is_near, 0) {
            return Ok(Err(Errno::EFAULT));
        }
        let len = self.terms.constant(64, size);
        let end = self.terms.add(offset, len);
        let length = self.packet_length(state);
        let fits = self.terms.ule(end, length);
        if !self.decide(state, fits, 0) {
            return Ok(Err(Errno::EINVAL));
        }
        let offset = self.concrete(state, offset);
        Ok(Ok((state.packet.start + offset as i64, size as usize)))
    }

    fn load_bytes(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        let (start, len) = match self.span(state)? {
            Ok(span) => span,
            Err(errno) => return Ok(self.failed(errno)),
        };
        self.copy_from_packet(state, start, len)
    }

    /// `bpf_skb_load_bytes`: zeros where the packet does not have all bytes.
    fn skb_load_bytes(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        let (start, len) = match self.span(state)? {
            Ok(span) => span,
            Err(_) => {
                let size = self.number(state, Reg::R4)?;
                let low = self.terms.extract(size, 0, 32);
                let len = self.concrete(state, low) as usize;
                let zeros = vec![self.terms.constant(8, 0); len];
                let to = self.pointer(state, Reg::R3)?;
                self.write_numbers(state, to, &zeros)?;
                return Ok(self.failed(Errno::EFAULT));
            }
        };
        self.copy_from_packet(state, start, len)
    }

    /// `bpf_l3_csum_replace`: two bytes that are not followed further.
    fn l3_csum_replace(&mut self, state: &mut State, name: &'static str) -> Result<Value, GiveUp> {
        const FARTHEST: u64 = 0xffff;
        const SIZE: u64 = 0xf;
        let (offset, flags) = (self.number(state, Reg::R2)?, self.number(state, Reg::R5)?);
        let low = self.terms.extract(offset, 0, 32);
        let offset = self.concrete(state, low);
        let is_sized = self.terms.value(flags).is_some_and(|flags| matches!(flags & SIZE, 2 | 4) && flags <= SIZE);
        if !is_sized || offset > FARTHEST || offset % 2 != 0 {
            return Err(GiveUp::HelperUse(name, "with such arguments"));
        }
        let (end, length) = (self.terms.constant(64, offset + 2), self.packet_length(state));
        let fits = self.terms.ule(end, length);
        if !self.decide(state, fits, 0) {
            return Ok(self.failed(Errno::EFAULT));
        }
        let sum = self.sources.term(&mut self.terms, Source::Machine(state.drawn, name));
        state.drawn += 1;
        let start = self.terms.constant(64, (state.packet.start as u64).wrapping_add(offset));
        let bytes = alu::bytes(&mut self.terms, sum, 2);
        self.write_numbers(state, Pointer { region: Region::Packet, offset: start }, &bytes)?;
        Ok(self.returned(0))
    }

    fn copy_from_packet(&mut self, state: &mut State, start: i64, len: usize) -> Result<Value, GiveUp> {
        let to = self.pointer(state, Reg::R3)?;
        let offset = self.terms.constant(64, start as u64);
        let bytes = self.read_numbers(state, Pointer { region: Region::Packet, offset }, len)?;
        self.write_numbers(state, to, &bytes)?;
        Ok(self.returned(0))
    }

    fn store_bytes(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        let (start, len) = match self.span(state)? {
            Ok(span) => span,
            Err(errno) => return Ok(self.failed(errno)),
        };
        let from = self.pointer(state, Reg::R3)?;
        let bytes = self.read_numbers(state, from, len)?;
        let offset = self.terms.constant(64, start as u64);
        self.write_numbers(state, Pointer { region: Region::Packet, offset }, &bytes)?;
        Ok(self.returned(0))
    }

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
    fn bpf_loop(&mut self, state: &mut State, next: usize) -> Result<Next, GiveUp> {
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

    fn begin_round(&mut self, state: &mut State, callback: Callback, return_to: usize) {
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
