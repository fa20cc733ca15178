//! Programs as text, and the function of their chain.

use super::*;
use crate::ir::check::check;
use crate::ir::passes::{Passes, optimize_chain};
use crate::ir::text::parse;

/// Passes IPv4, and drops the rest.
const IPV4: &str = "function 0 \"ipv4\" (r1) {
    block0(v0: i64 context):
        v1: packet = context_load.u32 v0+0 @0
        v2: packet_end = context_load.u32 v0+4 @1
        v3 = const.i64 34 @2
        v4: packet = add.i64 v1, v3 @2
        branch.ugt.i64 v4, v2, block3, block1 @3
    block1:
        v5 = load.u16 packet v1+12 in 12..12 of 34 @4
        v6 = const.i64 8
        branch.ne.i64 v5, v6, block3, block2 @5
    block2:
        v7 = const.i64 2 @6
        return v7 @7
    block3:
        v8 = const.i64 1 @6
        return v8 @7
    }";

/// Passes TCP over IPv4, and aborts the rest; returns by one block.
const TCP: &str = "function 0 \"tcp\" (r1) {
    block0(v0: i64 context):
        v1: packet = context_load.u32 v0+0 @0
        v2: packet_end = context_load.u32 v0+4 @1
        v3 = const.i64 34 @2
        v4: packet = add.i64 v1, v3 @2
        v9 = const.i64 2
        v10 = const.i64 0
        branch.ugt.i64 v4, v2, block3(v10), block1 @3
    block1:
        v5 = load.u8 packet v1+23 in 23..23 of 34 @4
        v6 = const.i64 6
        branch.ne.i64 v5, v6, block3(v10), block2 @5
    block2:
        jump block3(v9)
    block3(v11: i64):
        return v11 @7
    }";

fn exits(pass: Next) -> Exits {
    let end = |verdict: u32| Exit { next: Next::End(verdict), counter: verdict };
    Exits {
        cases: vec![(1, end(1)), (2, Exit { next: pass, counter: 2 }), (3, end(3)), (4, end(4))],
        own: None,
        other: end(0),
    }
}

fn part(text: &str) -> Part {
    Part::of(parse(text).expect("valid"), Around::default()).expect("a program")
}

fn placed(part: &Part, exits: Exits) -> Placed<'_> {
    Placed { part, first: First::default(), exits }
}

fn made(texts: &[&str], rules: &Rules) -> Module {
    let parts: Vec<Part> = texts.iter().copied().map(part).collect();
    let next = |at: usize| if at + 1 == parts.len() { Next::End(2) } else { Next::Program(at + 1) };
    let programs: Vec<_> = parts.iter().enumerate().map(|(at, part)| placed(part, exits(next(at)))).collect();
    let mut module = chain(&programs, rules).expect("a chain");
    check(&module).expect("valid");
    optimize_chain(&mut module, &Passes::default().checked(true)).expect("valid");
    module
}

#[test]
fn the_second_program_does_not_parse_what_the_first_one_did() {
    let text = made(&[IPV4, TCP], &Rules::default()).to_string();
    for (what, count) in
        [("context_load", 2), ("branch.ugt", 1), ("load.u16", 1), ("load.u8", 1), ("branch.", 3)]
    {
        assert_eq!(text.matches(what).count(), count, "{what}:\n{text}");
    }
}

#[test]
fn exits_are_counted() {
    let text = made(&[IPV4, TCP], &Rules { counts: true, limit: None }).to_string();
    for counter in 0..3 {
        assert!(text.contains(&format!("count {counter}\n")), "{counter}:\n{text}");
    }
}

#[test]
fn runs_are_limited() {
    let limit = Limit { runs: 32, verdict: 0, counter: 99 };
    let part = part(IPV4);
    let programs = [placed(&part, exits(Next::Program(0)))];
    let mut module = chain(&programs, &Rules { counts: true, limit: Some(limit) }).expect("a chain");
    optimize_chain(&mut module, &Passes::default().checked(true)).expect("valid");
    let text = module.to_string();
    assert!(text.contains("count 99") && text.contains("const.i64 31"), "{text}");
}

#[test]
fn programs_that_are_not_there() {
    let part = part(IPV4);
    let programs = [placed(&part, exits(Next::Program(1)))];
    assert_eq!(chain(&programs, &Rules::default()).err(), Some(ChainError::NoProgram(1)));
    assert_eq!(chain(&[], &Rules::default()).err(), Some(ChainError::NoProgram(0)));
}

#[test]
fn programs_that_take_more_than_the_context() {
    let text = IPV4.replace("(r1)", "(r1, r2)").replace("(v0: i64 context)", "(v0: i64 context, v20: i64)");
    let module = parse(&text).expect("valid");
    assert_eq!(Part::of(module, Around::default()).err(), Some(PartError::Parameters));
    assert_eq!(Part::of(Module::default(), Around::default()).err(), Some(PartError::Empty));
}
