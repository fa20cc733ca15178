//! What the verifier spends is bounded, and told.

use paceline_isa::assemble;
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Cause, MAX_BYTES, Options, verify};

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
    let insns = assemble(&text, &()).unwrap().encode().unwrap();
    ProgramSpec::new("branches", ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false }, insns)
}

#[test]
fn memory_is_told_and_no_more_than_allowed() {
    let program = branches(60);
    let verified = verify(&program, &[], None, &Options::default()).unwrap();
    let peak = verified.stats().peak_bytes;
    assert!(peak > 1000 && peak < MAX_BYTES, "{peak}");
    let enough = Options { max_bytes: peak, ..Options::default() };
    assert_eq!(verify(&program, &[], None, &enough).unwrap().stats().peak_bytes, peak);
    let too_little = Options { max_bytes: peak - 1, ..Options::default() };
    let refusal = verify(&program, &[], None, &too_little).unwrap_err();
    assert!(matches!(refusal.cause, Cause::TooMuchMemory(bytes) if bytes == peak), "{refusal}");
    assert!(refusal.cause.is_too_complex());
}

#[test]
fn instructions_are_no_more_than_allowed() {
    let program = branches(60);
    let options = Options { max_instructions: 100, ..Options::default() };
    let refusal = verify(&program, &[], None, &options).unwrap_err();
    assert!(matches!(refusal.cause, Cause::TooComplex(100)), "{refusal}");
}
