//! Numbers in instructions.

use std::collections::{BTreeMap, BTreeSet};

use paceline_compiler::native::machine::aarch64::{Assembler, Gpr, Logic, Width, arith_imm, logic_imm};

use crate::llvm::assemble;

/// Every number that an operation on bits can have, of 64 bits.
fn patterns() -> BTreeSet<u64> {
    let mut all = BTreeSet::new();
    for size in [2_u32, 4, 8, 16, 32, 64] {
        let mask = u64::MAX >> (64 - size);
        for ones in 1..size {
            for rotation in 0..size {
                let run = (1_u64 << ones) - 1;
                let element = (run << rotation | run.checked_shr(size - rotation).unwrap_or(0)) & mask;
                let number = (0..64 / size).fold(0, |number, at| number | element << (at * size));
                all.insert(number);
            }
        }
    }
    all
}

#[test]
fn bit_patterns_are_what_llvm_assembles() {
    let patterns = patterns();
    // The number that the manual gives.
    assert_eq!(patterns.len(), 5334);
    let (mut asm, mut texts) = (Assembler::new(), Vec::new());
    for &number in &patterns {
        asm.logic_imm(Logic::Eor, Width::Q64, Gpr::X3, Gpr::X4, number);
        texts.push(format!("eor x3, x4, #{number:#x}"));
        if number >> 32 == number & 0xffff_ffff {
            let half = number & 0xffff_ffff;
            asm.logic_imm(Logic::Ands, Width::D32, Gpr::Zr, Gpr::X4, half);
            texts.push(format!("tst w4, #{half:#x}"));
        }
    }
    let bytes = asm.finish().expect("all are patterns").bytes;
    let Some(expected) = assemble("bit_patterns_are_what_llvm_assembles", &texts) else { return };
    let found = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
    for ((text, found), expected) in texts.iter().zip(found).zip(&expected) {
        assert_eq!(found, *expected, "{text}");
    }
    assert_eq!(expected.len(), texts.len());
}

#[test]
fn other_numbers_are_no_patterns() {
    let patterns = patterns();
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..100_000 {
        let number = rng.u64(..) >> rng.u32(0..64) & !(rng.u64(..) >> rng.u32(0..64));
        assert_eq!(logic_imm(Width::Q64, number).is_some(), patterns.contains(&number), "{number:#x}");
    }
    assert_eq!(
        [0, 1, 4095, 4096, 4097, 0xfff000, 0x1000000].map(|number| arith_imm(number).is_some()),
        [true, true, true, true, false, true, false]
    );
}

/// Instructions by their upper nine bits.
const MOVN_W: u32 = 0x025;
const MOVN: u32 = 0x125;
const MOVZ: u32 = 0x1a5;
const MOVK: u32 = 0x1e5;
const ORR: u32 = 0x164;

/// The value of a register after `movz`, `movn`, `movk` and `orr` with a number.
fn run(words: &[u32], patterns: &BTreeMap<u32, u64>) -> u64 {
    words.iter().fold(0x5555_aaaa_5555_aaaa, |before, word| {
        let (shift, bits) = (16 * (word >> 21 & 3), u64::from(word >> 5 & 0xffff));
        match word >> 23 {
            MOVN_W => !(bits << shift) & 0xffff_ffff,
            MOVN => !(bits << shift),
            MOVZ => bits << shift,
            MOVK => before & !(0xffff << shift) | bits << shift,
            ORR => patterns[&(word >> 10 & 0x1fff)],
            _ => panic!("{word:#x} sets no register to a number"),
        }
    })
}

#[test]
fn registers_are_set_to_any_number() {
    let fields = patterns()
        .into_iter()
        .map(|number| (logic_imm(Width::Q64, number).expect("a pattern") >> 10, number))
        .collect();
    let mut rng = fastrand::Rng::with_seed(2);
    let halves = [0, 1, 0x8000, 0x1234, 0xffff, 0xfffe];
    let mut numbers: Vec<u64> = (0..20_000).map(|_| rng.u64(..) >> rng.u32(0..64)).collect();
    for first in halves {
        for (second, third) in halves.into_iter().flat_map(|second| halves.map(|third| (second, third))) {
            numbers.extend(halves.map(|last| first | second << 16 | third << 32 | last << 48));
        }
    }
    let mut longest = 0;
    for number in numbers {
        let mut asm = Assembler::new();
        asm.mov_imm(Gpr::X7, number);
        let bytes = asm.finish().expect("any number can be set").bytes;
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
            .collect();
        assert!(words.iter().all(|word| word & 31 == 7), "{number:#x}: {words:x?}");
        assert_eq!(run(&words, &fields), number, "{number:#x}: {words:x?}");
        let halves = [0, 16, 32, 48].map(|shift| (number >> shift) as u16);
        let others = |rest: u16| halves.iter().filter(|half| **half != rest).count().max(1);
        assert!(words.len() <= others(0).min(others(u16::MAX)), "{number:#x}: {words:x?}");
        longest = longest.max(words.len());
    }
    assert_eq!(longest, 4);
}
