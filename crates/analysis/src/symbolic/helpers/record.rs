//! Records that are reserved in ring buffers.

use std::rc::Rc;

use paceline_isa::Reg;

use crate::symbolic::explorer::Explorer;
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::memory::{Byte, Memory};
use crate::symbolic::source::Source;
use crate::symbolic::state::{Initial, Object, Reservation, Sent, State};
use crate::symbolic::value::{Pointer, Region, Value};

const HEADER: u64 = 8;
/// A longer record is never reserved (`RINGBUF_MAX_RECORD_SZ`).
const LONGEST: u64 = u32::MAX as u64 >> 2;

impl Explorer<'_> {
    /// `bpf_ringbuf_reserve`: memory with unknown bytes, or null, if there is no room. Where two programs are compared, there is.
    pub(super) fn reserve(&mut self, state: &mut State, name: &'static str) -> Result<Value, GiveUp> {
        let map = self.map(state, Reg::R1)?;
        let (size, flags) = (self.number(state, Reg::R2)?, self.number(state, Reg::R3)?);
        let (size, flags) = (self.concrete(state, size), self.concrete(state, flags));
        let ring = self.maps.get(map).map_or(0, |map| u64::from(map.max_entries));
        let never_fits = size > LONGEST || (size + HEADER).next_multiple_of(HEADER) >= ring;
        if flags != 0 || never_fits {
            return Ok(self.returned(0));
        }
        if self.twin.is_none() {
            let fails = Source::ReserveFails(state.drawn.reserved);
            let fails = self.sources.term(&mut self.terms, fails);
            if self.decide(state, fails, 0) {
                return Ok(self.returned(0));
            }
        } else if !state.drawn.reservations.is_empty() {
            // Readers see records in the order of their reservations.
            return Err(GiveUp::HelperUse(
                name,
                "before another record is submitted, where two programs are compared",
            ));
        }
        self.note_room(state, (map, size), name);
        let record = state.drawn.reserved;
        state.drawn.reserved += 1;
        let object = state.new_object(Initial::Record(record));
        state.drawn.reservations.push(Reservation { map, object, size: size as usize });
        let offset = self.terms.constant(64, 0);
        Ok(Value::Pointer(Pointer { region: Region::Object(object), offset }))
    }

    /// `bpf_ringbuf_submit` and `bpf_ringbuf_discard`; whether they wake the reader is not compared.
    pub(super) fn give_back(&mut self, state: &mut State, is_read: bool) -> Result<Value, GiveUp> {
        let pointer = self.pointer(state, Reg::R1)?;
        let Region::Object(object) = pointer.region else { return Err(GiveUp::Address) };
        let is_it = |reservation: &Reservation| reservation.object == object;
        let Some(index) = state.drawn.reservations.iter().position(is_it) else {
            return Err(GiveUp::Address);
        };
        let Reservation { map, size, .. } = state.drawn.reservations.remove(index);
        if is_read && self.twin.is_some() {
            let data = self.read_numbers(state, pointer, size)?;
            Rc::make_mut(&mut state.sent).push(Sent::Event { map, data, captured: None });
        }
        // Nothing reads it from here on.
        if let Some(object) = state.object_mut(object) {
            *object = Object { written: Memory::default(), initial: Initial::Zero };
        }
        Ok(Value::Unset)
    }

    /// A byte of a record that was not written. It depends on all records before, which two programs need not have alike.
    pub(crate) fn record_byte(&mut self, record: usize, byte: usize) -> Result<Byte, GiveUp> {
        if self.twin.is_some() {
            let why = "with bytes that are not written, where two programs are compared";
            return Err(GiveUp::HelperUse("bpf_ringbuf_reserve", why));
        }
        let source = Source::Record { record, byte: byte as u32 };
        Ok(Byte::Number(self.sources.term(&mut self.terms, source)))
    }
}
