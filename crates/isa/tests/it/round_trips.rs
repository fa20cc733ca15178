//! Round trips: encoding and decoding, printing and parsing, of instructions and programs.

use crate::common::insn;
use paceline_isa::table::TABLE;
use paceline_isa::{Code, Insn, RawInsn, assemble, decode, decode_at, disassemble, encode};
use proptest::prelude::*;

fn raw_insn() -> impl Strategy<Value = RawInsn> {
    any::<[u8; 8]>().prop_map(RawInsn::from_le_bytes)
}

/// Slots that often decode: opcodes and selectors of the table, small or arbitrary numbers otherwise.
fn likely_raw_insn() -> impl Strategy<Value = RawInsn> {
    let small = prop_oneof![Just(0), 0..18, any::<i32>()];
    let selectors =
        proptest::sample::select(vec![0, 1, 8, 16, 32, 64, 0x40, 0x41, 0xa1, 0xe1, 0xf1, 0x100, 0x110]);
    let imm = prop_oneof![small, selectors];
    (0..TABLE.len(), 0..12u8, 0..12u8, prop_oneof![Just(0i16), 0i16..33, any::<i16>()], imm)
        .prop_map(|(row, dst, src, offset, imm)| RawInsn { opcode: TABLE[row].opcode, dst, src, offset, imm })
}

fn raw_program() -> impl Strategy<Value = Vec<RawInsn>> {
    proptest::collection::vec(prop_oneof![likely_raw_insn(), raw_insn(), Just(RawInsn::default())], 0..6)
}

/// Text similar to assembly: its words and characters in any order.
fn near_text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        proptest::sample::select(
            "r0 r1 w2 r10 r11 = += s>>= *( u8 s16 u64 *) ( ) + - 3 0x10 -1 99999999999999999999 goto if call \
             callx exit lock ll map[ map_value[ ] id: pc+3 : ; # // <x> <x>: (b7) 0: b7 00 00 00 02 00 00 00 \
             skb[ R_BPF_64_64 xchg_64( , \n \t out out: é \u{2028}"
                .split(' ')
                .collect::<Vec<_>>()
        )
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    proptest::collection::vec(word, 0..24).prop_map(|words| words.join(" "))
}

/// The number of cases, unless `PROPTEST_CASES` is set.
fn cases(cases: u32) -> ProptestConfig {
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() { default } else { ProptestConfig { cases, ..default } }
}

proptest! {
    #![proptest_config(cases(8192))]

    #[test]
    fn decode_reads_what_encode_writes(insn in insn()) {
        let raw: Vec<RawInsn> = encode(&insn).unwrap().into_iter().collect();
        prop_assert_eq!(raw.len(), insn.slots());
        prop_assert_eq!(decode_at(&raw, 0), Ok(insn));
    }

    #[test]
    fn encode_writes_what_decode_reads(raw in raw_program()) {
        if let Ok(code) = decode(&raw) {
            prop_assert_eq!(code.len(), raw.len());
            prop_assert_eq!(code.encode().unwrap(), raw);
        }
    }

    #[test]
    fn bytes_survive_in_both_orders(bytes: [u8; 8]) {
        prop_assert_eq!(RawInsn::from_le_bytes(bytes).to_le_bytes(), bytes);
        prop_assert_eq!(RawInsn::from_be_bytes(bytes).to_be_bytes(), bytes);
    }

    /// The disassembler processes arbitrary slots to the end.
    #[test]
    fn every_slot_is_disassembled(raw in raw_program()) {
        let lines = disassemble(&raw);
        let slots: usize = lines.iter().map(|line| line.insn.as_ref().map_or(1, Insn::slots)).sum();
        prop_assert_eq!(slots, raw.len());
    }
}

proptest! {
    #![proptest_config(cases(1024))]

    #[test]
    fn parse_reads_what_display_writes(insn in insn()) {
        prop_assert_eq!(insn.to_string().parse::<Insn>(), Ok(insn));
    }

    #[test]
    fn the_assembler_reads_what_the_disassembler_writes(insns in proptest::collection::vec(insn(), 0..8)) {
        let code: Code = insns.into_iter().collect();
        let lines = disassemble(&code.encode().unwrap());
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        prop_assert_eq!(assemble(&text, &()).unwrap(), code);
    }

    #[test]
    fn no_text_makes_the_assembler_panic(text in near_text()) {
        let _ = assemble(&text, &());
        let _ = text.parse::<Insn>();
    }

    /// Text that parses to an instruction prints as text that parses to the same instruction.
    #[test]
    fn what_parses_prints_and_parses_alike(text in near_text()) {
        if let Ok(insn) = text.parse::<Insn>() {
            prop_assert_eq!(insn.to_string().parse::<Insn>(), Ok(insn));
        }
    }
}
