//! Events and traces: what readers get of them, where two programs are compared.

use std::rc::Rc;

use crate::solver::Term;
use paceline_isa::Reg;
use paceline_spec::format::{Conversion, Piece, parse};
use paceline_spec::helper::HelperId;

use crate::symbolic::explorer::Explorer;
use crate::symbolic::give_up::{GiveUp, Place};
use crate::symbolic::state::{Sent, State};

/// Most arguments of `bpf_trace_printk`.
const ARGUMENTS: usize = 3;

impl Explorer<'_> {
    /// Notes what an event or a trace brings to its reader. What the helper returns is the machine's.
    pub(super) fn send(&mut self, state: &mut State, id: HelperId, name: &'static str) -> Result<(), GiveUp> {
        if self.twin.is_none() {
            return Ok(());
        }
        let sent = match id {
            HelperId::TracePrintk => Some(self.trace(state, name)?),
            HelperId::RingbufOutput => Some(self.record(state, name)?),
            _ => self.perf_event(state, name)?,
        };
        Rc::make_mut(&mut state.sent).extend(sent);
        Ok(())
    }

    fn trace(&mut self, state: &mut State, name: &'static str) -> Result<Sent, GiveUp> {
        let format = self.memory(state, Reg::R1, Reg::R2)?;
        let format: Option<Vec<u8>> =
            format.into_iter().map(|byte| self.terms.value(byte).map(|byte| byte as u8)).collect();
        let pieces = format.and_then(|format| parse(&format, ARGUMENTS));
        let mut pieces = pieces.ok_or(GiveUp::HelperUse(name, "with a format that is not known"))?;
        // A line ends once, also if its last character is an argument that ends it.
        let is_character = |piece: &Piece| matches!(piece, Piece::Argument(_, Conversion::Character));
        if let [before @ .., Piece::Byte(b'\n')] = pieces.as_slice()
            && !before.last().is_some_and(is_character)
        {
            pieces.pop();
        }
        if pieces.contains(&Piece::Byte(b'\n')) || pieces.len() > LONGEST {
            return Err(GiveUp::HelperUse(name, "with several lines, or a long one"));
        }
        if !tells_arguments_apart(&pieces) {
            return Err(GiveUp::HelperUse(name, "with arguments that nothing certain lies between"));
        }
        let conversions = pieces.iter().filter_map(|piece| match piece {
            Piece::Argument(_, conversion) => Some(*conversion),
            Piece::Byte(_) => None,
        });
        let mut arguments = Vec::new();
        for (conversion, reg) in conversions.zip([Reg::R3, Reg::R4, Reg::R5]) {
            let bits = match conversion {
                Conversion::Address | Conversion::Number { long: true, .. } => 64,
                Conversion::Number { long: false, .. } => 32,
                Conversion::Character => 8,
                Conversion::Text | Conversion::Ip { .. } => {
                    return Err(GiveUp::HelperUse(name, "of memory where two programs are compared"));
                }
            };
            let number = self.number(state, reg)?;
            arguments.push(self.terms.extract(number, 0, bits));
        }
        Ok(Sent::Trace { pieces, arguments })
    }

    /// `bpf_ringbuf_output`: a record, if there is room for it; whether it wakes the reader is not compared.
    fn record(&mut self, state: &mut State, name: &'static str) -> Result<Sent, GiveUp> {
        const FLAGS: u64 = 3;
        let map = self.map(state, Reg::R1)?;
        let flags = self.number(state, Reg::R4)?;
        let data = self.memory(state, Reg::R2, Reg::R3)?;
        let size = self.maps.get(map).map_or(0, |map| map.max_entries as usize);
        if self.terms.value(flags).is_none_or(|flags| flags > FLAGS) || data.len() + 8 > size {
            return Err(GiveUp::HelperUse(name, "with such arguments where two programs are compared"));
        }
        Ok(Sent::Event { map, data, captured: None })
    }

    /// Counts what records take: an input has room for each, but not for more of them than fit.
    pub(super) fn note_record(&mut self, state: &mut State, name: &'static str) -> Result<(), GiveUp> {
        let (map, size) = (self.map(state, Reg::R1)?, self.number(state, Reg::R3)?);
        let size = self.terms.extract(size, 0, 32);
        let (_, most) = self.terms.range(size);
        self.note_room(state, (map, most), name);
        Ok(())
    }

    /// Counts what a record of at most `most` bytes takes of a map.
    pub(super) fn note_room(&self, state: &mut State, (map, most): (usize, u64), name: &'static str) {
        const HEADER: u64 = 8;
        state.drawn.records += (HEADER + most).next_multiple_of(HEADER);
        let room = self.maps.get(map).map_or(0, |map| u64::from(map.max_entries));
        if state.drawn.records > room {
            let why = GiveUp::HelperUse(name, "of more records than fit together");
            state.guess.get_or_insert(Place { slot: state.slot, why });
        }
    }

    /// `bpf_perf_event_output`: bytes, and so many of the packet; none if the packet has less.
    fn perf_event(&mut self, state: &mut State, name: &'static str) -> Result<Option<Sent>, GiveUp> {
        const CURRENT_CPU: u64 = 0xffff_ffff;
        const LENGTH_BITS: u32 = 20;
        let map = self.map(state, Reg::R2)?;
        let flags = self.number(state, Reg::R3)?;
        let (cpu, length, rest) = (
            self.terms.extract(flags, 0, 32),
            self.terms.extract(flags, 32, LENGTH_BITS),
            self.terms.extract(flags, 32 + LENGTH_BITS, 32 - LENGTH_BITS),
        );
        if self.terms.value(cpu) != Some(CURRENT_CPU) || self.terms.value(rest) != Some(0) {
            return Err(GiveUp::HelperUse(name, "with such flags where two programs are compared"));
        }
        let length: Term = self.terms.resize(length, 64);
        let whole = self.packet_length(state);
        let fits = self.terms.ule(length, whole);
        if !self.decide(state, fits, 0) {
            return Ok(None);
        }
        let data = self.memory(state, Reg::R4, Reg::R5)?;
        Ok(Some(Sent::Event { map, data, captured: Some((state.packet.clone(), length)) }))
    }
}

/// Most pieces of a trace that is compared: what is longer with its numbers may be cut.
const LONGEST: usize = 900;

/// Whether equal text comes from equal arguments: between two of them is a byte that is part of none.
fn tells_arguments_apart(pieces: &[Piece]) -> bool {
    let is_argument = |piece: &Piece| matches!(piece, Piece::Argument(..));
    if pieces.iter().filter(|piece| is_argument(piece)).count() < 2 {
        return true;
    }
    let may_be_inside = |piece: &Piece| match piece {
        Piece::Byte(byte) => byte.is_ascii_hexdigit() || b"xX+- ()".contains(byte),
        Piece::Argument(_, conversion) => *conversion == Conversion::Character,
    };
    let has_character = pieces.iter().any(|piece| is_argument(piece) && may_be_inside(piece));
    let between = pieces.split(is_argument);
    let inner = between.skip(1).take(pieces.iter().filter(|piece| is_argument(piece)).count() - 1);
    !has_character && inner.into_iter().all(|bytes| bytes.iter().any(|byte| !may_be_inside(byte)))
}
