//! `may_goto` goes on as often on every engine. The kernel cannot be asked: on x86-64 it goes by the clock.

use paceline_engine::{Engine, Host, Program};
use paceline_frame::{Burst, FrameMeta};
use paceline_isa::assemble;
use paceline_spec::{MAX_LOOPS, ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Options, verify};

/// The function's are spent together, and stay so; those of its caller are not.
const SPENDS_ALL: &str = "
    call spend
    r6 = r0
    may_goto out
    r6 += 1
    out: r0 = r6
    exit
    spend: r0 = 0
    again: may_goto second
    r0 += 1
    goto again
    second: may_goto third
    r0 += 1
    third: may_goto end
    r0 += 1
    end: exit
";

#[test]
fn every_engine_goes_on_as_often() {
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let insns = assemble(SPENDS_ALL, &()).expect("assembles").encode().expect("encodes");
    let spec = ProgramSpec::new("spends", kind, insns);
    let verified = verify(&spec, &[], None, &Options::default()).expect("is accepted");
    for engine in Engine::ALL.into_iter().filter(|engine| engine.is_available()) {
        let program = Program::load(&verified, Vec::new(), engine).expect("loads");
        let program = program.with_budget(4 * u64::from(MAX_LOOPS));
        let mut burst = Burst::new(1);
        burst.push(&[0; 64], FrameMeta::default()).expect("fits");
        let r0 = program.run_raw(&mut burst.frame_mut(0), &mut Host::new(0));
        assert_eq!(r0, Ok(u64::from(MAX_LOOPS) + 1), "{engine}");
    }
}
