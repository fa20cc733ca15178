//! What values point to is found by whoever needs it first: construction for its own sake, or the passes.

use paceline_compiler::ir::{Module, Passes, Source, build, build_source, optimize};
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Options, Verified, verify};

/// A program whose second question about the packet's length the first one decides.
fn program() -> Verified {
    let text = "r2 = *(u32 *)(r1 + 0)
        r3 = *(u32 *)(r1 + 4)
        r4 = r2
        r4 += 14
        if r4 > r3 goto out
        r5 = r2
        r5 += 10
        if r5 > r3 goto out
        r0 = *(u8 *)(r2 + 3)
        exit
        out:
        r0 = 1
        exit";
    let insns = paceline_isa::assemble(text, &()).expect("valid").encode().expect("encodable");
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let spec = ProgramSpec::new("kinds", kind, insns);
    verify(&spec, &[], None, &Options::default()).expect("accepted")
}

fn optimized(mut module: Module) -> String {
    optimize(&mut module, &Passes::default()).expect("well formed");
    module.to_string()
}

#[test]
fn passes_find_kinds_that_construction_has_not() {
    let verified = program();
    let found = optimized(build(&verified).expect("buildable"));
    assert_eq!(found.matches("branch").count(), 1, "{found}");
    let source = Source::verified(&verified);
    assert_eq!(optimized(build_source(&source).expect("buildable")), found);
}
