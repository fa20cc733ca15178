//! Helpers on the packet.

use std::rc::Rc;

use crate::solver::Term;
use paceline_isa::Reg;
use paceline_spec::Errno;

use crate::symbolic::alu;
use crate::symbolic::bounds::Assumption;
use crate::symbolic::csum;
use crate::symbolic::explorer::Explorer;
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::source::Source;
use crate::symbolic::state::State;
use crate::symbolic::value::{Pointer, Region, Value};

/// Bytes before the packet that hold its frame (`sizeof(struct xdp_frame)`), and the headroom with them.
const KEPT: i64 = 40;
const HEADROOM: i64 = 256;
/// Shortest packet that helpers leave.
const SHORTEST: u64 = 14;

impl Explorer<'_> {
    pub(super) fn packet_length(&mut self, state: &State) -> Term {
        let start = self.terms.constant(64, state.packet.start as u64);
        self.terms.sub(state.packet.end, start)
    }

    /// A signed number of 32 bits as a concrete one.
    pub(super) fn delta(&mut self, state: &mut State) -> Result<i64, GiveUp> {
        let delta = self.number(state, Reg::R2)?;
        let low = self.terms.extract(delta, 0, 32);
        Ok(i64::from(self.concrete(state, low) as u32 as i32))
    }

    pub(super) fn adjust_head(&mut self, state: &mut State) -> Result<Value, GiveUp> {
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

    pub(super) fn adjust_meta(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        const LONGEST: i64 = 255;
        let delta = self.delta(state)?;
        self.assume(Assumption::NoMetadata);
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

    /// Most bytes of packet behind the ordinary headroom: buffers differ, but the packet that came in fits.
    fn capacity(&mut self) -> Term {
        let room = self.sources.term(&mut self.terms, Source::Capacity);
        let length = self.sources.term(&mut self.terms, Source::Length);
        let length = self.terms.resize(length, 32);
        let is_less = self.terms.ult(room, length);
        let capacity = self.terms.ite(is_less, length, room);
        self.terms.resize(capacity, 64)
    }

    pub(super) fn adjust_tail(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        let delta = self.number(state, Reg::R2)?;
        let low = self.terms.extract(delta, 0, 32);
        let by = self.terms.sign_extend(low, 64);
        let old = state.packet.end;
        let end = self.terms.add(old, by);
        let capacity = self.capacity();
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
                    let is_less = self.terms.slt(old, floor);
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
    pub(super) fn span(&mut self, state: &mut State) -> Result<Result<(i64, usize), Errno>, GiveUp> {
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

    pub(super) fn load_bytes(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        let (start, len) = match self.span(state)? {
            Ok(span) => span,
            Err(errno) => return Ok(self.failed(errno)),
        };
        self.copy_from_packet(state, start, len)
    }

    /// `bpf_skb_load_bytes`: zeros where the packet does not have all bytes.
    pub(super) fn skb_load_bytes(&mut self, state: &mut State) -> Result<Value, GiveUp> {
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

    /// `bpf_l3_csum_replace`, for two or four bytes that change.
    pub(super) fn l3_csum_replace(&mut self, state: &mut State, name: &'static str) -> Result<Value, GiveUp> {
        const FARTHEST: u64 = 0xffff;
        let (offset, flags) = (self.number(state, Reg::R2)?, self.number(state, Reg::R5)?);
        let low = self.terms.extract(offset, 0, 32);
        let offset = self.concrete(state, low);
        let is_wide = match self.terms.value(flags) {
            Some(2) => false,
            Some(4) => true,
            _ => return Err(GiveUp::HelperUse(name, "with such arguments")),
        };
        if offset > FARTHEST || !offset.is_multiple_of(2) {
            return Err(GiveUp::HelperUse(name, "with such arguments"));
        }
        let (end, length) = (self.terms.constant(64, offset + 2), self.packet_length(state));
        let fits = self.terms.ule(end, length);
        if !self.decide(state, fits, 0) {
            return Ok(self.failed(Errno::EFAULT));
        }
        let change = (self.number(state, Reg::R3)?, self.number(state, Reg::R4)?);
        let start = self.terms.constant(64, (state.packet.start as u64).wrapping_add(offset));
        let place = Pointer { region: Region::Packet, offset: start };
        let sum = self.read_numbers(state, place, 2)?;
        let sum = alu::word(&mut self.terms, &sum);
        let sum = csum::replaced(&mut self.terms, sum, change, is_wide);
        let bytes = alu::bytes(&mut self.terms, sum, 2);
        self.write_numbers(state, place, &bytes)?;
        Ok(self.returned(0))
    }

    pub(super) fn copy_from_packet(
        &mut self,
        state: &mut State,
        start: i64,
        len: usize,
    ) -> Result<Value, GiveUp> {
        let to = self.pointer(state, Reg::R3)?;
        let offset = self.terms.constant(64, start as u64);
        let bytes = self.read_numbers(state, Pointer { region: Region::Packet, offset }, len)?;
        self.write_numbers(state, to, &bytes)?;
        Ok(self.returned(0))
    }

    /// `bpf_skb_store_bytes`, with flags that change no byte.
    pub(super) fn skb_store_bytes(&mut self, state: &mut State, name: &'static str) -> Result<Value, GiveUp> {
        const RECOMPUTE_CSUM: u64 = 1;
        let flags = self.number(state, Reg::R5)?;
        match self.terms.value(flags) {
            Some(0 | RECOMPUTE_CSUM) => {}
            _ => return Err(GiveUp::HelperUse(name, "with such flags")),
        }
        match self.span(state)? {
            Ok(span) => self.copy_to_packet(state, span),
            Err(_) => Ok(self.failed(Errno::EFAULT)),
        }
    }

    pub(super) fn store_bytes(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        match self.span(state)? {
            Ok(span) => self.copy_to_packet(state, span),
            Err(errno) => Ok(self.failed(errno)),
        }
    }

    fn copy_to_packet(&mut self, state: &mut State, (start, len): (i64, usize)) -> Result<Value, GiveUp> {
        let from = self.pointer(state, Reg::R3)?;
        let bytes = self.read_numbers(state, from, len)?;
        let offset = self.terms.constant(64, start as u64);
        self.write_numbers(state, Pointer { region: Region::Packet, offset }, &bytes)?;
        Ok(self.returned(0))
    }
}
