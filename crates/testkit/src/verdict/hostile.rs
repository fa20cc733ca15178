//! Inputs that no compiler emits: arbitrary bytes, and real programs with some instructions changed.

use fastrand::Rng;
use paceline_isa::{RawInsn, decode_at};
use paceline_spec::{Linkage, ProgramKind, ProgramSpec, XdpAttach};

/// Maximum number of slots of an arbitrary program.
const MOST_SLOTS: usize = 64;

/// A program of arbitrary slots: any bytes, fields in range, or fields that form instructions.
#[must_use]
pub fn arbitrary(rng: &mut Rng) -> ProgramSpec {
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let slots = rng.usize(0..=MOST_SLOTS);
    let flavor = rng.u8(..3);
    let mut insns: Vec<RawInsn> = (0..slots)
        .map(|_| match flavor {
            0 => RawInsn::from_le_bytes(rng.u64(..).to_ne_bytes()),
            1 => small(rng),
            _ => instruction(rng),
        })
        .collect();
    if flavor != 0 && rng.u8(..8) != 0 {
        insns.push(RawInsn { opcode: 0x95, ..RawInsn::default() });
    }
    let mut spec = ProgramSpec::new("arbitrary", kind, insns);
    spec.license = "GPL".to_owned();
    spec
}

/// Any operation on fields of small values.
fn small(rng: &mut Rng) -> RawInsn {
    RawInsn {
        opcode: rng.u8(..),
        dst: rng.u8(..11),
        src: if rng.bool() { 0 } else { rng.u8(..11) },
        offset: if rng.bool() { 0 } else { rng.i16(-16..16) },
        imm: if rng.bool() { rng.i32(-4..220) } else { rng.i32(..) },
    }
}

/// One slot that decodes on its own.
fn instruction(rng: &mut Rng) -> RawInsn {
    loop {
        let insn = small(rng);
        if decode_at(&[insn], 0).is_ok() {
            return insn;
        }
    }
}

/// A program with one to four slots changed, removed, duplicated or exchanged.
#[must_use]
pub fn mutated(program: &ProgramSpec, rng: &mut Rng) -> ProgramSpec {
    let mut program = program.clone();
    for function in &mut program.functions {
        // Without types it has no global functions, in the kernel as well.
        function.linkage = Linkage::Static;
    }
    for _ in 0..rng.usize(1..=4) {
        let slots = program.insns.len();
        if slots == 0 {
            break;
        }
        let (slot, other) = (rng.usize(..slots), rng.usize(..slots));
        match rng.u8(..12) {
            0 => program.insns.swap(slot, other),
            1 => program.insns[slot] = program.insns[other],
            2 => program.insns[slot] = instruction(rng),
            3 => program.insns[slot] = small(rng),
            // A jump to the next instruction removes it and keeps all jump offsets valid.
            4 => program.insns[slot] = RawInsn { opcode: 0x05, ..RawInsn::default() },
            _ => change_field(&mut program.insns[slot], rng),
        }
    }
    program
}

fn change_field(insn: &mut RawInsn, rng: &mut Rng) {
    match rng.u8(..8) {
        0 => insn.dst = rng.u8(..11),
        1 => insn.src = rng.u8(..11),
        2 | 3 => insn.offset = insn.offset.wrapping_add(rng.i16(-8..=8)),
        4 => insn.imm = insn.imm.wrapping_add(rng.i32(-8..=8)),
        5 => insn.imm = rng.i32(..),
        6 => insn.opcode ^= 1 << rng.u8(..8),
        _ => insn.offset = rng.i16(..),
    }
}
