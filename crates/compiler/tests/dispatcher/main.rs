//! Dispatchers, read by an independent decoder: the listing of the dispatcher proposal, and the targets of keys.

mod machine;

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, Mnemonic};
use paceline_compiler::native::{Case, Dispatcher, Otherwise, RUN, TokenArgument, dispatchers};
use proptest::prelude::*;

use machine::{Machine, Place};

/// Address of the code. All targets below are within 2 GiB of it.
const START: u64 = 0x5555_5000_0000;
const COUNT: i32 = 0x48;

fn indirect(retpoline: bool) -> Otherwise {
    Otherwise::Indirect { retpoline, count: COUNT }
}

/// The relocated code of one dispatcher at an address.
fn assemble(cases: &[Case], otherwise: Otherwise, token: TokenArgument, run: usize, start: u64) -> Vec<u8> {
    let (code, starts) = dispatchers(&[Dispatcher { cases, otherwise, token, run }]).unwrap();
    assert_eq!(starts, [0]);
    let mut bytes = code.bytes;
    for relocation in &code.relocations {
        let distance = relocation.distance(start).expect("within reach");
        bytes[relocation.offset as usize..][..4].copy_from_slice(&distance.to_le_bytes());
    }
    bytes
}

fn decode(bytes: &[u8], start: u64) -> Vec<Instruction> {
    Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).into_iter().collect()
}

/// The search as listed by the seed; targets by address.
fn listing(insns: &[Instruction], start: u64) -> Vec<String> {
    let below: BTreeSet<u64> = insns
        .iter()
        .filter(|insn| insn.mnemonic() == Mnemonic::Jg)
        .map(Instruction::near_branch_target)
        .collect();
    assert!(below.iter().all(|label| label % 16 == 0), "{below:x?}");
    let labels: BTreeMap<u64, String> =
        below.iter().zip(1..).map(|(&label, number)| (label, format!("above_{number}"))).collect();
    let mut text = Vec::new();
    let mut formatter = IntelFormatter::new();
    formatter.options_mut().set_signed_immediate_operands(true);
    formatter.options_mut().set_space_after_operand_separator(true);
    for insn in insns.iter().filter(|insn| insn.mnemonic() != Mnemonic::Int3) {
        text.extend(labels.get(&insn.ip()).map(|label| format!("{label}:")));
        let target = insn.near_branch_target();
        text.push(match insn.mnemonic() {
            Mnemonic::Jg => format!("  jg {}", labels[&target]),
            Mnemonic::Je => format!("  je {}", target.wrapping_sub(start).cast_signed()),
            Mnemonic::Jmp if target == THUNK => "  jmp otherwise".to_owned(),
            _ => {
                let mut line = String::new();
                formatter.format(insn, &mut line);
                let (mnemonic, operands) = line.split_once(' ').unwrap_or((&line, ""));
                format!("  {mnemonic} {}", operands.trim_start().replace("0FFFFFFFFFFFFFFFFh", "-1"))
            }
        });
    }
    text.iter().map(|line| unhex(line)).collect()
}

/// Numbers as in the seed's comments: `-9`, where the formatter prints `-9` or `-10h`.
fn unhex(line: &str) -> String {
    let Some((head, number)) = line.rsplit_once('-') else { return line.to_owned() };
    let digits = number.strip_suffix('h').map(|hex| i64::from_str_radix(hex, 16));
    match digits {
        Some(Ok(value)) => format!("{head}-{value}"),
        _ => line.to_owned(),
    }
}

/// Address of the seed kernel's retpoline, somewhere within reach.
const THUNK: u64 = 0x10000;

/// The seed's programs are at the highest addresses, and its dispatcher below. Here both are at the start, so that the addresses
/// print the same.
fn seed(entries: u64) -> Vec<String> {
    let address = |index: u64| index.wrapping_sub(entries);
    let cases: Vec<Case> =
        (0..entries).map(|index| Case { key: address(index), target: address(index), token: None }).collect();
    let bytes = assemble(&cases, Otherwise::Target(THUNK), TokenArgument::Second, 1, 0);
    listing(&decode(&bytes, 0), 0)
}

fn expected(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with(';')).collect()
}

#[test]
fn one_entry_is_what_the_seed_lists() {
    assert_eq!(seed(1), expected(include_str!("one.txt")));
}

#[test]
fn sixteen_entries_are_what_the_seed_lists() {
    assert_eq!(seed(16), expected(include_str!("sixteen.txt")));
}

/// The instructions of the default target.
fn way_out(otherwise: Otherwise) -> Vec<String> {
    let insns = decode(&assemble(&[], otherwise, TokenArgument::Second, 1, START), START);
    let mut formatter = IntelFormatter::new();
    let text = |insn: &Instruction| {
        let mut text = String::new();
        formatter.format(insn, &mut text);
        text
    };
    insns.iter().filter(|insn| insn.mnemonic() != Mnemonic::Int3).map(text).collect()
}

#[test]
fn ways_out() {
    assert_eq!(way_out(indirect(false)), ["inc qword ptr [r9+48h]", "jmp rcx"]);
    assert_eq!(
        way_out(indirect(true)),
        [
            "inc qword ptr [r9+48h]",
            "call 0000555550000010h",
            "lfence",
            "pause",
            "jmp short 0000555550000009h",
            "mov [rsp],rcx",
            "ret",
        ]
    );
    assert_eq!(way_out(Otherwise::Target(START + 0x1000)), ["jmp 0000555550001000h"]);
}

#[test]
fn dispatchers_share_a_block() {
    let case = |key| Case { key, target: START + 64 * key, token: None };
    let (first, second) = ([case(1), case(2), case(3)], [case(4)]);
    let dispatcher =
        |cases| Dispatcher { cases, otherwise: indirect(false), token: TokenArgument::Third, run: RUN };
    let (code, starts) = dispatchers(&[dispatcher(&first), dispatcher(&second)]).unwrap();
    assert_eq!(starts.len(), 2);
    assert!(starts[1] > starts[0] && starts[1] % 16 == 0 && (starts[1] as usize) < code.bytes.len());
}

#[test]
fn of_equal_keys_the_first_counts() {
    let case = |key, target| Case { key, target: START + 0x1000 + target, token: None };
    let cases = [case(5, 64), case(9, 128), case(5, 192)];
    let bytes = assemble(&cases, indirect(false), TokenArgument::Second, 1, START);
    assert_eq!(
        Machine::new(&bytes, START, 5).run(),
        Place { address: START + 0x1040, token: None, counted: 0 }
    );
}

/// Keys of all kinds: small, negative, addresses close together, arbitrary.
fn keys() -> impl Strategy<Value = Vec<u64>> {
    let number = 0..5000_u64;
    let negative = (0..5000_u64).prop_map(|key| key.wrapping_neg());
    let address = (0..0x4000_u64).prop_map(|key| 0x7f12_3456_0000 + 64 * key);
    let edges = prop::sample::select(vec![
        0,
        u64::MAX,
        i64::MAX as u64,
        i64::MIN as u64,
        i32::MAX as u64,
        i32::MAX as u64 + 1,
        i32::MIN as i64 as u64,
        (i32::MIN as i64 - 1) as u64,
    ]);
    let one_kind = prop_oneof![
        prop::collection::vec(number.clone(), 0..300),
        prop::collection::vec(address.clone(), 0..300),
    ];
    let any = prop_oneof![4 => number, 2 => negative, 4 => address, 1 => any::<u64>(), 1 => edges];
    prop_oneof![2 => one_kind, 3 => prop::collection::vec(any, 0..100)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every key reaches its case and every other one the default target, with all arguments preserved.
    #[test]
    fn keys_come_to_their_cases(keys in keys(), others in keys(), tokens in any::<bool>(), retpoline in any::<bool>(), run in 1..8_usize) {
        let cases: Vec<Case> = keys
            .iter()
            .enumerate()
            .map(|(index, &key)| Case {
                key,
                target: START + 0x10_0000 + 64 * index as u64,
                token: tokens.then_some(key ^ 0xaaaa_5555_aaaa_5555),
            })
            .collect();
        let default = START + 0x1000_0000;
        let otherwise = if tokens { Otherwise::Target(default) } else { indirect(retpoline) };
        let token = if retpoline { TokenArgument::Second } else { TokenArgument::Third };
        let bytes = assemble(&cases, otherwise, token, run, START);
        for key in keys.iter().chain(&others).flat_map(|&key| [key, key.wrapping_add(1), key.wrapping_sub(1)]) {
            let place = Machine::with_token(&bytes, START, key, token).run();
            // Reference: a linear search.
            match cases.iter().find(|case| case.key == key) {
                Some(case) => prop_assert_eq!(place, Place { address: case.target, token: case.token, counted: 0 }),
                None => {
                    let (address, counted) = if tokens { (default, 0) } else { (key, 1) };
                    prop_assert_eq!((place.address, place.counted), (address, counted));
                }
            }
        }
    }

    /// The number of comparisons is the depth of the tree.
    #[test]
    fn a_search_takes_the_logarithm(count in 1_usize..1500) {
        let cases: Vec<Case> = (0..count as u64)
            .map(|index| START + 0x10_0000 + 256 * index)
            .map(|address| Case { key: address, target: address, token: None })
            .collect();
        let bytes = assemble(&cases, indirect(false), TokenArgument::Second, 1, START);
        let most = count.next_power_of_two().trailing_zeros() as usize;
        for case in &cases {
            let mut machine = Machine::new(&bytes, START, case.key);
            prop_assert_eq!(machine.run().address, case.target);
            prop_assert!(machine.compared <= most + 1, "{} of {}", machine.compared, count);
        }
    }
}
