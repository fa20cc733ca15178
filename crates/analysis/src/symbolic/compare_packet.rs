//! Whether two packets differ.

use std::collections::BTreeSet;

use crate::solver::{Answer, Term};

use crate::symbolic::explorer::Explorer;
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::memory::{Byte, Memory};
use crate::symbolic::state::{Packet, State};

/// Most bytes by which a packet is longer than those that come in, where programs move its start differently.
pub(crate) const MOST_ADDED: i64 = 256;

/// A part of a packet: from an offset that counts from its start, to its length.
#[derive(Clone, Copy, Debug)]
struct Part {
    from: i64,
    len: Term,
}

impl Explorer<'_> {
    /// Adds whether two packets differ in length, bytes or metadata; also in the bytes before them, if another program goes on with it.
    pub(crate) fn other_packet(
        &mut self,
        a: &Packet,
        state: &State,
        go_on: bool,
        all: &mut Vec<Term>,
    ) -> Result<(), GiveUp> {
        let b = &state.packet;
        if go_on && is_moved(a, b) {
            return Err(GiveUp::HelperUse("bpf_tail_call", "after the packet's start was moved differently"));
        }
        let (len, other_len) = (self.length_of(a), self.length_of(b));
        all.push(self.unequal(len, other_len));
        if a.start - a.meta != b.start - b.meta {
            all.push(self.terms.bool(true));
            return Ok(());
        }
        let from = if go_on { i64::MIN } else { a.meta - a.start };
        self.other_bytes((a, b), state, Part { from, len }, all)
    }

    /// Adds whether the bytes differ that events took from two packets.
    pub(crate) fn other_captured(
        &mut self,
        (a, len): &(Packet, Term),
        (b, other): &(Packet, Term),
        state: &State,
        all: &mut Vec<Term>,
    ) -> Result<(), GiveUp> {
        all.push(self.unequal(*len, *other));
        self.other_bytes((a, b), state, Part { from: 0, len: *len }, all)
    }

    pub(crate) fn length_of(&mut self, packet: &Packet) -> Term {
        let start = self.terms.constant(64, packet.start as u64);
        self.terms.sub(packet.end, start)
    }

    fn other_bytes(
        &mut self,
        (a, b): (&Packet, &Packet),
        state: &State,
        Part { from, len }: Part,
        all: &mut Vec<Term>,
    ) -> Result<(), GiveUp> {
        let offsets: BTreeSet<i64> = match !is_moved(a, b) {
            true => {
                let written = |memory: &Memory| memory.offsets().collect::<Vec<_>>();
                let both = [written(&a.written), written(&b.written)].concat();
                both.into_iter().map(|offset| offset - a.start).filter(|offset| *offset >= from).collect()
            }
            false => {
                let most = i64::from(self.options.length.1) + MOST_ADDED;
                let end = self.terms.constant(64, most as u64);
                let is_longer = self.terms.slt(end, len);
                match self.ask(&state.path, &state.assignment.model, is_longer) {
                    Answer::Unsat => {}
                    Answer::Sat(_) => return Err(GiveUp::Instruction("a packet that grows and is moved")),
                    Answer::Unknown(unknown) => return Err(GiveUp::Solver(unknown)),
                }
                (from..most).collect()
            }
        };
        for offset in offsets {
            let (byte, other) = (self.packet_at(a, a.start + offset)?, self.packet_at(b, b.start + offset)?);
            let differs = self.unequal(byte, other);
            let place = self.terms.constant(64, offset as u64);
            let is_within = self.terms.slt(place, len);
            all.push(self.terms.and(is_within, differs));
        }
        Ok(())
    }

    /// A byte of a packet.
    pub(crate) fn packet_at(&mut self, packet: &Packet, offset: i64) -> Result<Term, GiveUp> {
        match packet.written.get(offset) {
            Some(Byte::Number(number)) => Ok(number),
            Some(Byte::Part(..)) => Err(GiveUp::Address),
            None => Ok(self.packet_byte(packet, offset)),
        }
    }
}

/// Whether bytes of one offset are at different places of two packets, or begin differently.
fn is_moved(a: &Packet, b: &Packet) -> bool {
    a.start != b.start || a.floor != b.floor
}
