//! The work of the verifier is bounded, and told.

use paceline_isa::assemble;
use paceline_spec::{MapKind, MapSpec, ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Cause, Hint, MAX_BYTES, Options, verify};

/// Branches on packet bytes, each of which leaves a number of its own in a register.
fn branches(count: usize) -> ProgramSpec {
    let mut text = "r2 = *(u32 *)(r1 + 0)\n r3 = *(u32 *)(r1 + 4)\n r4 = r2\n r4 += 64\n r0 = 0\n r6 = 0\n \
                    if r4 > r3 goto out\n"
        .to_owned();
    for index in 0..count {
        let byte = index % 64;
        text += &format!("r5 = *(u8 *)(r2 + {byte})\n if r5 > {index} goto l{index}\n r6 += 1\n l{index}:\n");
    }
    text += "r2 += r6\n out: exit\n";
    program(&text)
}

fn program(text: &str) -> ProgramSpec {
    let insns = assemble(text, &()).unwrap().encode().unwrap();
    ProgramSpec::new("limits", ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false }, insns)
}

#[test]
fn memory_is_told_and_no_more_than_allowed() {
    let program = branches(60);
    let verified = verify(&program, &[], None, &Options::default()).unwrap();
    let peak = verified.stats().peak_bytes;
    assert!(peak > 1000 && peak < MAX_BYTES, "{peak}");
    let enough = Options::default().max_bytes(peak);
    assert_eq!(verify(&program, &[], None, &enough).unwrap().stats().peak_bytes, peak);
    let too_little = Options::default().max_bytes(peak - 1);
    let refusal = verify(&program, &[], None, &too_little).unwrap_err();
    assert!(matches!(refusal.cause, Cause::TooMuchMemory(bytes) if bytes == peak), "{refusal}");
    assert!(refusal.cause.is_too_complex());
}

#[test]
fn instructions_are_no_more_than_allowed() {
    let program = branches(60);
    let options = Options::default().max_instructions(100);
    let refusal = verify(&program, &[], None, &options).unwrap_err();
    assert!(matches!(refusal.cause, Cause::TooComplex(100)), "{refusal}");
}

#[test]
fn the_limit_that_a_program_meets_is_told_with_its_way_out() {
    let mut text = "r2 = *(u32 *)(r1 + 16)\n r6 = 0\n".to_owned();
    for index in 0..8193 {
        text += &format!("if r2 == {index} goto l{index}\n r6 += 1\n l{index}:\n");
    }
    let refusal = verify(&program(&(text + "r0 = r6\n exit\n")), &[], None, &Options::default()).unwrap_err();
    assert!(matches!(refusal.cause, Cause::TooManyBranches(8192)), "{refusal}");
    assert_eq!(refusal.hint, Some(Hint::FewerPaths), "{refusal}");
    assert!(refusal.cause.is_too_complex());

    let refusal = |text: &str, most| {
        verify(&program(text), &[], None, &Options::default().max_instructions(most)).unwrap_err()
    };
    let turns = "r2 = *(u32 *)(r1 + 16)\n r0 = 0\n loop: r0 += 1\n if r0 < r2 goto loop\n exit\n";
    assert_eq!(refusal(turns, 1000).hint, Some(Hint::BoundLoop));
    // A function that is called again and again makes no loop.
    let call = "r1 = 0\n call f\n r6 += r0\n";
    let calls =
        format!("r6 = 0\n{}r0 = r6\n exit\n f:\n if r1 == 1 goto +0\n r0 = 1\n exit\n", call.repeat(50));
    assert_eq!(refusal(&calls, 100).hint, Some(Hint::FewerPaths));
}

#[test]
fn steps_of_comparisons_are_no_more_than_allowed() {
    let program = branches(60);
    let work = verify(&program, &[], None, &Options::default()).unwrap().stats().work;
    let enough = Options::default().max_work(work);
    assert_eq!(verify(&program, &[], None, &enough).unwrap().stats().work, work);
    let refusal = verify(&program, &[], None, &Options::default().max_work(work / 2)).unwrap_err();
    assert!(matches!(refusal.cause, Cause::TooMuchWork(spent) if spent > work / 2), "{refusal}");
    assert!(refusal.cause.is_too_complex());
}

/// A program of so many functions, the main one included.
fn functions(count: usize) -> ProgramSpec {
    let mut text = String::new();
    (1..count).for_each(|i| text += &format!("call f{i}\n"));
    text += "r0 = 0\n exit\n";
    (1..count).for_each(|i| text += &format!("f{i}: r0 = {i}\n exit\n"));
    program(&text)
}

#[test]
fn functions_are_as_many_as_the_kernel_allows() {
    verify(&functions(256), &[], None, &Options::default()).unwrap();
    let refusal = verify(&functions(257), &[], None, &Options::default()).unwrap_err();
    assert!(matches!(refusal.cause, Cause::TooManyFunctions), "{refusal}");
    assert_eq!(refusal.slot, 255, "the call of the last");
}

#[test]
fn maps_are_as_many_as_the_kernel_allows() {
    let maps: Vec<_> = (0..65).map(|i| MapSpec::new(format!("m{i}"), MapKind::Array, 4, 8, 1)).collect();
    let text = |count: usize| {
        let loads: String = (0..count).map(|i| format!("r1 = map[{i}] ll\n r1 = map[{i}] ll\n")).collect();
        loads + "r0 = 0\n exit\n"
    };
    verify(&program(&text(64)), &maps, None, &Options::default()).unwrap();
    let refusal = verify(&program(&text(65)), &maps, None, &Options::default()).unwrap_err();
    assert!(matches!(refusal.cause, Cause::TooManyMaps), "{refusal}");
}

/// Beyond that, sums of offsets could wrap; and a larger one is no `i32`.
#[test]
fn addresses_in_map_values_are_as_far_as_the_kernel_allows() {
    let map = MapSpec::new("large", MapKind::Array, 4, 1 << 30, 1);
    let at =
        |offset: u32| program(&format!("r1 = map_value[0] + {offset} ll\n r0 = *(u8 *)(r1 + 0)\n exit\n"));
    let verdict = |offset| verify(&at(offset), std::slice::from_ref(&map), None, &Options::default());
    verdict((1 << 29) - 1).unwrap();
    let refusal = verdict(1 << 29).unwrap_err();
    assert!(matches!(refusal.cause, Cause::MapAddress(_, 0x2000_0000)), "{refusal}");
}

/// Seven layers of functions, each of which calls all of the next layer, where no path leads.
#[test]
fn chains_of_calls_are_checked_in_time_that_depends_on_the_calls_only() {
    let mut text = "r0 = 0\n if r0 == 0 goto out\n".to_owned();
    (0..36).for_each(|i| text += &format!("call f0_{i}\n"));
    text += "out: exit\n";
    for (layer, i) in (0..7).flat_map(|layer| (0..36).map(move |i| (layer, i))) {
        text += &format!("f{layer}_{i}: r0 = 0\n");
        if layer < 6 {
            (0..36).for_each(|i| text += &format!("call f{}_{i}\n", layer + 1));
        }
        text += "exit\n";
    }
    let verified = verify(&program(&text), &[], None, &Options::default()).unwrap();
    assert_eq!(verified.stats().instructions, 3);
}
