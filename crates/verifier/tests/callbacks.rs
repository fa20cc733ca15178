//! Facts about callbacks for a code generator.

use paceline_isa::{Names, assemble};
use paceline_spec::helper::Helper;
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{CallbackFact, Options, Verified, verify};

struct Helpers;

impl Names for Helpers {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }
}

fn verified(text: &str) -> Verified {
    let insns = assemble(text, &Helpers).unwrap().encode().unwrap();
    let program =
        ProgramSpec::new("p", ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false }, insns);
    verify(&program, &[], None, &Options::default()).unwrap()
}

#[test]
fn the_function_is_told_where_it_is_always_the_same() {
    let text = "r6 = *(u32 *)(r1 + 12)
        r1 = 5
        r2 = subprog[one] ll
        r3 = 0
        r4 = 0
        call bpf_loop
        r1 = 5
        r2 = subprog[one] ll
        if r6 == 1 goto go
        r2 = subprog[two] ll
        go: r3 = 0
        r4 = 0
        call bpf_loop
        r0 = 0
        exit
        one: r0 = 0
        exit
        two: r0 = 1
        exit";
    let verified = verified(text);
    let told: Vec<CallbackFact> = verified.facts().iter().filter_map(|fact| fact.callback).collect();
    let [main, one, two] = verified.functions() else { panic!("three functions") };
    assert_eq!(told, [CallbackFact::Always(one.start as u32), CallbackFact::Different]);
    assert_eq!([main, one, two].map(|function| function.is_callback), [false, true, true]);
}

/// A member of a structure on the stack is written over a spilled number, so that no other byte of these eight is known any more
/// (`scrub_spilled_slot` in the kernel): the second round of a callback that writes one starts as the first did.
#[test]
fn what_is_beside_an_overwritten_spill_is_not_known() {
    let text = "w1 = 0
        *(u8 *)(r10 - 6) = r1
        w1 = 15
        *(u16 *)(r10 - 8) = r1
        call bpf_get_prandom_u32
        *(u32 *)(r10 - 4) = r0
        r1 = 6
        r2 = subprog[parse] ll
        r3 = r10
        r3 += -8
        r4 = 0
        call bpf_loop
        r0 = *(u8 *)(r10 - 6)
        r0 &= 1
        exit
        parse: *(u8 *)(r2 + 2) = r1
        r0 = 0
        exit";
    // 15 of the main function, and the callback's 3 once.
    assert_eq!(verified(text).stats().instructions, 18);
}

/// A function that a helper calls, with a path past the end of two others: one leaves a number that is zero in its caller's stack,
/// the other writes any number there.
fn zero_or_any_number(third_path: &str) -> String {
    format!(
        "*(u64 *)(r10 - 8) = 0
        *(u64 *)(r10 - 16) = 0
        r1 = 3
        r2 = subprog[round] ll
        r3 = r10
        r4 = 0
        call bpf_loop
        r0 = 0
        exit
        round: r6 = r2
        call bpf_get_prandom_u32
        if r0 == 7 goto third
        call bpf_get_prandom_u32
        if r0 == 8 goto write
        r1 = 1
        r1 = 2
        r1 = 3
        r1 = 4
        join: r1 = 5
        r0 = 0
        exit
        write: call bpf_get_prandom_u32
        *(u64 *)(r6 - 8) = r0
        goto join
        third: {third_path}
        r0 = 0
        exit"
    )
}

/// The number decides nothing, so that no second round is walked (`states_equal` with `NOT_EXACT` in the kernel).
#[test]
fn a_number_that_decides_nothing_leads_to_no_other_round() {
    let verified = verified(&zero_or_any_number("r1 = 0"));
    assert_eq!(verified.stats().instructions, 27);
}

/// It is an offset on a path that is walked later: what was covered as long as it decided nothing is walked after all.
#[test]
fn a_number_that_decides_something_later_leads_to_another_round() {
    let text = zero_or_any_number(
        "r1 = *(u64 *)(r6 - 8)
        r2 = r6
        r2 += -16
        r2 += r1
        r0 = *(u8 *)(r2 + 0)",
    );
    let insns = assemble(&text, &Helpers).unwrap().encode().unwrap();
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let refusal = verify(&ProgramSpec::new("p", kind, insns), &[], None, &Options::default());
    assert!(refusal.is_err(), "the second round reads at any offset");
}
