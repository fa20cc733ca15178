//! Texts of filters and of system calls, changed at random: whatever is in them, reading and showing them comes to an end
//! without a panic.
//!
//! `PACELINE_MUTATIONS` is the number of mutants, `PACELINE_SEED` makes others.

use std::io;

use fastrand::Rng;
use paceline::filter::text::{Language, parse, to_c_array, to_decimal};
use paceline::filter::{ConvertOptions, Filter, Purpose};
use paceline::{Burst, Engine, FrameMeta, Host};

use super::wanted::{Compiled, Source, parse_list};
use super::{listing, syscalls};
use crate::common::failure::CommandError;
use crate::expression::ExpressionError;

const LIST: &str = "ssh: tcp port 22\n# all of it\n dns : udp port 53 or tcp port 53 # both\nall:\n";
const CALLS: &str =
    "# nr arch ip\n257 0xc000003e 0x7f0000001234 0xffffff9c 16\n60\n1 3 18446744073709551615\n";
const ASM: &str = "st M[3]\nldh [12]\njne #0x800, drop\nldx 4*([14]&0xf)\nldh [x + 14]\nst M[3]\nld #len\njgt #60, keep\n\
                   drop: ret #0\nkeep: ld M[3]\nsub x\nret a\n";

/// Pieces that mutants insert: parts of the languages, numbers at limits, characters longer than a byte.
const PIECES: [&str; 16] = [
    "#",
    ":",
    "\n",
    "0x",
    "4294967296",
    "4096",
    "-1",
    "[",
    "]",
    "{",
    "ld ",
    "jeq ",
    "M[16]",
    "\u{e4}",
    "\u{1f980}",
    "x: ",
];

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().expect("a number"))
}

fn mutate(text: &str, rng: &mut Rng) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..rng.usize(1..=4) {
        let at = rng.usize(..=chars.len());
        match rng.u8(..5) {
            0 => chars.truncate(at),
            1 => drop(chars.drain(at..chars.len().min(at + rng.usize(1..8)))),
            2 => chars.splice(at..at, std::iter::once(rng.char(..))).for_each(drop),
            3 => {
                let piece: Vec<char> = chars.iter().skip(at).take(rng.usize(1..20)).copied().collect();
                let to = rng.usize(..=chars.len());
                chars.splice(to..to, piece).for_each(drop);
            }
            _ => {
                let piece = rng.choice(PIECES).expect("there are some");
                chars.splice(at..at, piece.chars()).for_each(drop);
            }
        }
    }
    chars.into_iter().collect()
}

/// Mutates a text again and again.
fn mutants(text: &str, seed: u64, mut check: impl FnMut(&str, &mut Rng)) {
    for mutant in 0..setting("PACELINE_MUTATIONS", 300) {
        let mut rng = Rng::with_seed(setting("PACELINE_SEED", seed).wrapping_add(mutant));
        check(&mutate(text, &mut rng), &mut rng);
    }
}

#[test]
fn mutated_lists_of_filters_are_read_or_refused_with_a_place() {
    let (mut read, mut refused) = (0, 0);
    mutants(LIST, 1, |text, rng| match parse_list("list".to_owned(), text) {
        Err(failure) => {
            refused += 1;
            assert!(failure.to_string().starts_with("list:"), "{failure}");
        }
        Ok(filters) => {
            read += 1;
            for filter in filters {
                let Source::Expression(passage) = filter.source else { continue };
                // An error may be anywhere, also where no character begins.
                let (start, len) = (rng.usize(..=passage.span.len()), rng.usize(..4));
                let start = passage.span.start + start;
                let end = (start + len).min(passage.span.end);
                let whole = |at: usize| passage.source.is_char_boundary(at);
                let place = Some(start..end).filter(|place| whole(place.start) && whole(place.end));
                let error = ExpressionError { message: "wrong".to_owned(), passage, place };
                assert!(
                    error.to_string().starts_with("list:")
                        && error.render(false).is_some_and(|text| !text.is_empty())
                );
            }
        }
    });
    assert!(read > 0 && refused > 0, "{read} were read, {refused} refused");
}

#[test]
fn mutated_system_calls_are_read_or_refused_with_a_place() {
    let (mut read, mut refused) = (0, 0);
    mutants(CALLS, 2, |text, _| match syscalls::parse(text) {
        Ok(_) => read += 1,
        Err((line, column, _)) => {
            refused += 1;
            assert!(line >= 1 && column >= 1);
        }
    });
    assert!(read > 0 && refused > 0, "{read} were read, {refused} refused");
}

#[test]
fn mutated_programs_are_refused_or_shown_and_run() {
    let insns = parse(ASM).expect("it is assembly");
    let mut ran = 0;
    for text in [ASM.to_owned(), to_decimal(&insns), to_c_array(&insns)] {
        mutants(&text, 3, |text, rng| {
            let Ok(insns) = parse(text) else { return };
            let Ok(filter) = Filter::new(insns.clone(), Purpose::Socket) else { return };
            let Ok(converted) = filter.to_xdp_insns(&ConvertOptions::default()) else { return };
            let source = Source::Program { file: "program".to_owned(), insns };
            let compiled = Compiled { name: None, source, filter };
            listing::write_side_by_side(&mut io::sink(), &compiled, &converted).expect("a sink");
            listing::write_source(&mut io::sink(), &compiled, &converted, Language::C).expect("a sink");
            let loaded = compiled.load(Engine::Plain).expect("what is converted is safe");
            let mut burst = Burst::default();
            let len = rng.usize(1..80);
            let packet: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(len).collect();
            burst.push(&packet, FrameMeta::default()).expect("it fits");
            loaded.filter.matches(&mut burst, &mut Host::default()).expect("it is safe");
            ran += 1;
        });
    }
    assert!(ran > 0, "no mutant was a program");
}
