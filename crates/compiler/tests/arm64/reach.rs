//! Jumps at the limits of their distances, and of long code in which some push others beyond them.

use paceline_compiler::native::machine::aarch64::{Assembler, Code, Cond, Gpr, Label, Width};

/// Instructions that a distance of 19 bits reaches, forward one less.
const NEAR: i32 = 1 << 18;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Far,
    Condition,
    Zero,
    Address,
}

const KINDS: [Kind; 4] = [Kind::Far, Kind::Condition, Kind::Zero, Kind::Address];

fn jump(asm: &mut Assembler, kind: Kind, label: Label) {
    match kind {
        Kind::Far => asm.bl(label),
        Kind::Condition => asm.b_cond(Cond::Hi, label),
        Kind::Zero => asm.cbnz(Width::Q64, Gpr::X9, label),
        Kind::Address => asm.adr(Gpr::X5, label),
    }
}

fn word(code: &Code, at: i64) -> u32 {
    let at = usize::try_from(at).expect("is within the code");
    u32::from_le_bytes(code.bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The number in some bits of an instruction, with its sign.
fn field(word: u32, start: u32, bits: u32) -> i64 {
    i64::from((word << (32 - start - bits)).cast_signed() >> (32 - bits))
}

/// Where a jump at an offset leads, and how many instructions it is.
fn target(code: &Code, kind: Kind, at: i64) -> (i64, i64) {
    let first = word(code, at);
    let branch = |at: i64| {
        assert_eq!(word(code, at) & 0x7c00_0000, 0x1400_0000, "no branch");
        at + 4 * field(word(code, at), 0, 26)
    };
    let near = at + 4 * field(first, 5, 19);
    // The bit that inverts the condition tells which of both sequences it is.
    let (plain, opcode) = match kind {
        Kind::Far => return (branch(at), 1),
        Kind::Condition => (0x5400_0000 | Cond::Hi as u32, first & 0xff00_001f),
        Kind::Zero => (0xb500_0009, first & 0xff00_001f),
        Kind::Address => return address(code, at),
    };
    if opcode == plain {
        return (near, 1);
    }
    let inverts = if kind == Kind::Zero { 1 << 24 } else { 1 };
    assert_eq!((opcode, near), (plain ^ inverts, at + 8), "the inverse one is around one instruction");
    (branch(at + 4), 2)
}

fn address(code: &Code, at: i64) -> (i64, i64) {
    let adr = word(code, at);
    assert_eq!(adr & 0x9f00_001f, 0x1000_0005, "no adr");
    let near = at + (field(adr, 5, 19) << 2 | i64::from(adr >> 29 & 3));
    // The next one is filling, or a movz.
    let [low, high, sum] = [4, 8, 12].map(|after| word(code, at + after));
    if low & 0xffe0_001f != 0xd280_0010 {
        return (near, 1);
    }
    assert_eq!((high & 0xffe0_001f, sum), (0xf2a0_0010, 0x8b30_c0a5), "no sum");
    let distance = (low >> 5 & 0xffff | (high >> 5 & 0xffff) << 16).cast_signed();
    (near + i64::from(distance), 4)
}

/// The instructions of a jump to a label so many instructions away.
fn len(kind: Kind, distance: i32) -> i64 {
    let mut asm = Assembler::new();
    let [label, at] = [(); 2].map(|()| asm.new_label());
    let between = if distance > 0 { distance - 1 } else { -distance };
    if distance <= 0 {
        asm.bind(label);
    } else {
        asm.bind(at);
        jump(&mut asm, kind, label);
    }
    (0..between).for_each(|_| asm.barrier());
    if distance <= 0 {
        asm.bind(at);
        jump(&mut asm, kind, label);
    } else {
        asm.bind(label);
    }
    (0..3).for_each(|_| asm.barrier());
    let code = asm.finish().expect("all labels are bound");
    let [label, at] = [label, at].map(|label| i64::from(code.offset(label).expect("is bound")));
    let (target, len) = target(&code, kind, at);
    assert_eq!(target, label, "{kind:?} by {distance}");
    len
}

#[test]
fn one_instruction_reaches_all_that_its_distance_can_be() {
    for (kind, long) in [(Kind::Far, 1), (Kind::Condition, 2), (Kind::Zero, 2), (Kind::Address, 4)] {
        let lens = [NEAR - 1, NEAR, -NEAR, -NEAR - 1].map(|distance| len(kind, distance));
        assert_eq!(lens, [1, long, 1, long], "{kind:?}");
    }
}

#[test]
fn one_that_grows_lengthens_those_around_it() {
    const COUNT: i32 = 5;
    let mut asm = Assembler::new();
    let labels: Vec<Label> = (0..COUNT).map(|_| asm.new_label()).collect();
    // Only the last one does not reach its label; as it grows, the one before does not, and so on.
    labels.iter().for_each(|label| jump(&mut asm, Kind::Condition, *label));
    (0..NEAR - 1 - COUNT).for_each(|_| asm.barrier());
    for (index, label) in (0..).zip(&labels) {
        (0..i32::from(index == COUNT - 1)).for_each(|_| asm.barrier());
        asm.bind(*label);
        asm.barrier();
    }
    let code = asm.finish().expect("all labels are bound");
    for (index, label) in (0..).zip(&labels) {
        let found = target(&code, Kind::Condition, 8 * index);
        assert_eq!(found, (code.offset(*label).expect("is bound").into(), 2), "{index}");
    }
}

#[test]
fn in_long_code_each_jump_reaches_its_label() {
    let mut grown = 0;
    for seed in 0..3 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut asm = Assembler::new();
        let labels: Vec<Label> = (0..300).map(|_| asm.new_label()).collect();
        let mut jumps = Vec::new();
        for (index, &label) in labels.iter().enumerate() {
            (0..rng.u32(1..2000)).for_each(|_| asm.barrier());
            if rng.u8(..) < 40 {
                asm.align(rng.u8(2..13));
            }
            asm.bind(label);
            for _ in 0..rng.u8(0..4) {
                // The far ends are near the limit from here, where a few more instructions in between matter.
                let ahead = rng.i32(-290..290) * i32::from(rng.bool());
                let other =
                    (index as i32 + if ahead == 0 { rng.i32(250..275) } else { ahead }).rem_euclid(300);
                let (at, kind) = (asm.new_label(), KINDS[rng.usize(..4)]);
                asm.bind(at);
                jump(&mut asm, kind, labels[other as usize]);
                jumps.push((at, kind, labels[other as usize]));
            }
        }
        (0..3).for_each(|_| asm.barrier());
        let code = asm.finish().expect("all labels are bound");
        assert!(code.bytes.len() > 4 * NEAR as usize);
        for (at, kind, label) in jumps {
            let [at, label] = [at, label].map(|label| i64::from(code.offset(label).expect("is bound")));
            let (target, len) = target(&code, kind, at);
            assert_eq!(target, label, "{kind:?} at {at} of seed {seed}");
            grown += usize::from(len > 1);
        }
    }
    assert!(grown > 50, "{grown} are long");
}
