//! Random properties of a program's runs, from what is known of some.

use std::collections::BTreeSet;

use fastrand::Rng;
use paceline::generate::Confirmed;
use paceline::{Object, ProgramSpec};
use paceline_isa::{Imm64, Insn, decode_at};

use super::trial::is_watched;

const RELATIONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
const EQUALITIES: [&str; 2] = ["==", "!="];
const HEADERS: [&str; 8] = ["eth", "arp", "vlan", "ipv4", "ipv6", "tcp", "udp", "icmp"];
const FIELDS: [&str; 8] =
    ["eth.dst", "eth.src", "eth.type", "vlan.id", "ipv4.ttl", "ipv4.protocol", "ipv4.src", "udp.dport"];
const VERDICTS: [&str; 5] = ["aborted", "drop", "pass", "tx", "redirect"];

/// What properties are made of.
pub(super) struct Properties<'a> {
    known: &'a [Confirmed],
    /// Names of the maps that the program may change.
    maps: Vec<&'a str>,
}

impl<'a> Properties<'a> {
    pub(super) fn new(object: &'a Object, program: &ProgramSpec, known: &'a [Confirmed]) -> Self {
        let used = used_maps(program);
        let maps = used.into_iter().filter_map(|index| object.maps().get(index));
        Self { known, maps: maps.filter(|map| is_watched(map)).map(|map| map.name.as_str()).collect() }
    }

    /// A property as text.
    pub(super) fn make(&self, rng: &mut Rng) -> String {
        let mut atom = || self.atom(rng);
        let (a, b, c) = (atom(), atom(), atom());
        match rng.u8(..8) {
            0 => a,
            1 => format!("{a} or {b}"),
            2 => format!("not ({a} and {b})"),
            3 => format!("{a} and {b} implies {c}"),
            _ => format!("{a} implies {b}"),
        }
    }

    fn atom(&self, rng: &mut Rng) -> String {
        let relation = *pick(&RELATIONS, rng);
        let equality = *pick(&EQUALITIES, rng);
        match rng.u8(..12) {
            0 | 1 => format!("verdict {equality} {}", pick(&VERDICTS, rng)),
            2 => format!("returns {relation} {}", self.number(rng, |run| u64::from(run.returned))),
            3 => format!("in.len {relation} {}", self.number(rng, |run| run.input.packet.len() as u64)),
            4 if rng.bool() => format!("out.len {relation} in.len"),
            4 => format!("out.len {relation} in.len {} {}", pick(&["+", "-"], rng), rng.u8(..12)),
            5 => self.byte("in", relation, rng),
            6 => self.byte("out", relation, rng),
            7 => {
                let (at, from, len) = (offset(rng), offset(rng), rng.usize(1..12));
                let from = if rng.bool() { at } else { from };
                format!("out[{at}:{}] {equality} in[{from}:{}]", at + len, from + len)
            }
            8 => {
                let at = if rng.bool() { 0 } else { offset(rng) };
                let from = if rng.bool() { at } else { (at + rng.usize(..9)).saturating_sub(4) };
                format!("out[{at}:] {equality} in[{from}:]")
            }
            9 => format!("{}{}", pick(&["", "out."], rng), pick(&HEADERS, rng)),
            10 => {
                let field = pick(&FIELDS, rng);
                format!("out.{field} {equality} {field}")
            }
            _ => match rng.choice(&self.maps) {
                Some(map) => format!("changes({map})"),
                None => format!("verdict {equality} {}", pick(&VERDICTS, rng)),
            },
        }
    }

    /// A comparison of bytes of a packet, perhaps of some bits.
    fn byte(&self, packet: &str, relation: &str, rng: &mut Rng) -> String {
        let (at, len) = (offset(rng), *pick(&[1, 1, 2, 4], rng));
        let bytes = format!("{packet}[{at}:{}]", at + len);
        let value = self.number(rng, |run| {
            let packet = if packet == "in" { &run.input.packet } else { &run.bytes };
            let bytes = packet.get(at..at + len).unwrap_or_default();
            bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
        });
        match rng.u8(..4) {
            0 => {
                let mask = 1_u64 << rng.usize(..len * 8) | u64::from(rng.u8(..));
                format!("{bytes} & {mask} {relation} {}", value & mask)
            }
            1 => format!("{bytes} + {} {relation} {value}", rng.u8(..3)),
            _ => format!("{bytes} {relation} {value}"),
        }
    }

    /// A number that some run has, or one beside it.
    fn number(&self, rng: &mut Rng, of: impl Fn(&Confirmed) -> u64) -> u64 {
        let number = rng.choice(self.known).map_or(0, of);
        match rng.u8(..6) {
            0 => number.saturating_add(1),
            1 => number.saturating_sub(1),
            _ => number,
        }
    }
}

/// The indices of the maps that a program names.
fn used_maps(program: &ProgramSpec) -> BTreeSet<usize> {
    let (mut used, mut slot) = (BTreeSet::new(), 0);
    while let Ok(insn) = decode_at(&program.insns, slot) {
        if let Insn::LoadImm64 {
            value: Imm64::MapIndex(index) | Imm64::MapValueIndex { index, .. }, ..
        } = insn
        {
            used.extend(usize::try_from(index));
        }
        slot += insn.slots();
    }
    used
}

/// An offset, mostly in the headers.
fn offset(rng: &mut Rng) -> usize {
    if rng.u8(..8) == 0 { rng.usize(..200) } else { rng.usize(..44) }
}

fn pick<'t, T>(all: &'t [T], rng: &mut Rng) -> &'t T {
    &all[rng.usize(..all.len())]
}
