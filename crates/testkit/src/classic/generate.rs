//! Random classic programs, most of them valid, with packets.

use fastrand::Rng;
use paceline_classic::table::{Form, Row, rows};
use paceline_classic::{
    ANCILLARY_OFFSET, Ancillary, LINK_LAYER_OFFSET, NETWORK_OFFSET, Operation, SockFilter,
};

use super::packets::packet;

/// A program and packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The program.
    pub insns: Vec<SockFilter>,
    /// The packets, of 14 to a few hundred bytes.
    pub packets: Vec<Vec<u8>>,
}

/// The sample of a seed.
#[must_use]
pub fn sample(seed: u64, packets: usize) -> Sample {
    let mut rng = Rng::with_seed(seed);
    let len = if rng.u8(..100) == 0 { rng.usize(200..600) } else { rng.usize(1..40) };
    let rows: Vec<&Row> = rows().collect();
    let returns: Vec<&Row> = rows.iter().copied().filter(|row| row.name == "ret").collect();
    let mut insns = Vec::new();
    // Loads from scratch memory mostly follow a store.
    let mut written = Vec::new();
    while insns.len() < len {
        if insns.len() + 4 < len && rng.u8(..32) == 0 {
            insns.extend(search(&mut rng));
        }
        let index = insns.len();
        let last = index + 1 == len;
        let row = match last {
            true => returns[rng.usize(..returns.len())],
            false => pick(&mut rng, &rows, &written),
        };
        let insn = insn(&mut rng, row, len - index - 1, &written);
        if matches!(row.operation, Operation::Store(_)) {
            written.push(insn.k);
        }
        insns.push(insn);
    }
    if rng.u8(..4) == 0 {
        mutate(&mut rng, &mut insns);
    }
    let packets = (0..packets).map(|_| packet(&mut rng)).collect();
    Sample { insns, packets }
}

/// The payload offset, or a netlink attribute: both registers must be set up.
fn search(rng: &mut Rng) -> [SockFilter; 3] {
    const LOAD: u16 = 0x20;
    const LOAD_NUMBER: u16 = 0x00;
    const LOAD_NUMBER_TO_INDEX: u16 = 0x01;
    let words = [Ancillary::PayloadOffset, Ancillary::NetlinkAttribute, Ancillary::NestedNetlinkAttribute];
    let place = 14 + 4 * rng.u32(..8);
    [
        SockFilter::new(LOAD_NUMBER_TO_INDEX, rng.u32(..9)),
        SockFilter::new(LOAD_NUMBER, place),
        SockFilter::new(LOAD, words[rng.usize(..words.len())].offset()),
    ]
}

/// An instruction; returns are rare, as are loads of scratch words that were not written.
fn pick<'a>(rng: &mut Rng, rows: &[&'a Row], written: &[u32]) -> &'a Row {
    loop {
        let row = rows[rng.usize(..rows.len())];
        let rare = match row.operation {
            Operation::Return | Operation::ReturnA => true,
            Operation::Load(..) if row.form == Form::Memory => written.is_empty(),
            _ => false,
        };
        if !rare || rng.u8(..20) == 0 {
            return row;
        }
    }
}

fn insn(rng: &mut Rng, row: &Row, left: usize, written: &[u32]) -> SockFilter {
    let near = left.saturating_sub(1);
    let skip = |rng: &mut Rng| {
        let farthest = if rng.bool() { 3 } else { 255 };
        rng.usize(..=near.min(farthest)) as u8
    };
    let mut insn = SockFilter::new(row.code, constant(rng));
    match row.form {
        Form::Absolute => insn.k = offset(rng, true),
        Form::HeaderLength => insn.k = offset(rng, false),
        Form::Indirect if rng.u8(..4) > 0 => insn.k = rng.u32(..40),
        Form::Memory => {
            let known = !matches!(row.operation, Operation::Store(_)) && !written.is_empty();
            insn.k = if known { written[rng.usize(..written.len())] } else { rng.u32(..16) };
        }
        Form::Target => insn.k = rng.usize(..=near.min(4)) as u32,
        _ => {}
    }
    match row.operation {
        Operation::JumpIf(..) => {
            insn.jt = skip(rng);
            insn.jf = skip(rng);
        }
        Operation::Alu(..) if matches!(row.name, "lsh" | "rsh") => insn.k = rng.u32(..32),
        Operation::Alu(..) if matches!(row.name, "div" | "mod") => insn.k = insn.k.max(1),
        _ => {}
    }
    insn
}

fn constant(rng: &mut Rng) -> u32 {
    match rng.u8(..8) {
        0 => rng.u32(..),
        1 => [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0xffff, 0x800][rng.usize(..7)],
        2 => rng.u32(..0x1_0000),
        _ => rng.u32(..80),
    }
}

/// An offset in the packet, or a special one.
fn offset(rng: &mut Rng, words: bool) -> u32 {
    match rng.u8(..16) {
        0 => constant(rng),
        1 => NETWORK_OFFSET + rng.u32(..40),
        2 => LINK_LAYER_OFFSET + rng.u32(..40),
        3 if words => ANCILLARY_OFFSET + 4 * rng.u32(..17),
        4 => rng.u32(0x7ff0..0x1_0010),
        5 => 14,
        _ => rng.u32(..80),
    }
}

fn mutate(rng: &mut Rng, insns: &mut [SockFilter]) {
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(..insns.len());
        let insn = &mut insns[at];
        match rng.u8(..5) {
            0 => insn.code = rng.u16(..0x100),
            1 => insn.code = rng.u16(..),
            2 => insn.k = constant(rng),
            3 => insn.jt = rng.u8(..),
            _ => insn.jf = rng.u8(..),
        }
    }
}

/// Whether the return value is independent of random numbers, the CPU, and the kind of interface.
#[must_use]
pub(super) fn is_comparable(insns: &[SockFilter]) -> bool {
    !insns.iter().any(|insn| {
        let word = insn.row().filter(|row| row.form == Form::Absolute).and_then(|_| Ancillary::at(insn.k));
        matches!(word, Some(Ancillary::Random | Ancillary::Cpu | Ancillary::HardwareType))
    })
}

/// The smallest sample found that still fails.
#[must_use]
pub fn shrink(sample: &Sample, mut fails: impl FnMut(&Sample) -> bool) -> Sample {
    let mut best = sample.clone();
    for packet in &sample.packets {
        let candidate = Sample { packets: vec![packet.clone()], ..best.clone() };
        if fails(&candidate) {
            best = candidate;
            break;
        }
    }
    loop {
        let before = best.clone();
        for at in (0..best.insns.len()).rev() {
            let mut candidate = best.clone();
            remove(&mut candidate.insns, at);
            if !candidate.insns.is_empty() && fails(&candidate) {
                best = candidate;
            }
        }
        for at in 0..best.insns.len() {
            let mut candidate = best.clone();
            candidate.insns[at].k = 0;
            if fails(&candidate) {
                best = candidate;
            }
        }
        if best == before {
            return best;
        }
    }
}

/// Removes an instruction; jumps over it become shorter.
fn remove(insns: &mut Vec<SockFilter>, at: usize) {
    for (index, insn) in insns.iter_mut().enumerate().take(at) {
        let over = |distance: usize| index + 1 + distance > at;
        match insn.row().map(|row| row.operation) {
            Some(Operation::Jump) if over(insn.k as usize) => insn.k -= 1,
            Some(Operation::JumpIf(..)) => {
                insn.jt -= u8::from(over(insn.jt.into()));
                insn.jf -= u8::from(over(insn.jf.into()));
            }
            _ => {}
        }
    }
    insns.remove(at);
}
