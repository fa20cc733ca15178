//! What is told of callbacks to a code generator.

use paceline_isa::{Names, assemble};
use paceline_spec::helper::Helper;
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{CallbackFact, Options, verify};

struct Helpers;

impl Names for Helpers {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).and_then(|helper| i32::try_from(helper.id).ok())
    }
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
    let insns = assemble(text, &Helpers).unwrap().encode().unwrap();
    let program =
        ProgramSpec::new("p", ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false }, insns);
    let verified = verify(&program, &[], None, &Options::default()).unwrap();
    let told: Vec<CallbackFact> = verified.facts().iter().filter_map(|fact| fact.callback).collect();
    let [main, one, two] = verified.functions() else { panic!("three functions") };
    assert_eq!(told, [CallbackFact::Always(one.start as u32), CallbackFact::Different]);
    assert_eq!([main, one, two].map(|function| function.is_callback), [false, true, true]);
}
