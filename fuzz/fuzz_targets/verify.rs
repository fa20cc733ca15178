//! Random instructions: an accepted program runs without a fault, and to the same end on two engines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline::isa::RawInsn;
use paceline::{
    Burst, Engine, FrameMeta, Host, LoadOptions, Object, ProgramKind, ProgramSpec, TimeSource, XdpAttach,
};

const PACKET: [u8; 64] = [0x45; 64];

fn returned(object: &Object, engine: Engine) -> u64 {
    let collection = object.load(&LoadOptions::default().engine(engine)).expect("an object without maps");
    let program = collection.program(None).expect("an accepted program");
    let (mut burst, mut host) = (Burst::default(), Host::default());
    host.seed(1);
    host.set_time(TimeSource::Packets);
    burst.push(&PACKET, FrameMeta::default()).expect("a short packet");
    program.run(&mut burst.frame_mut(0), &mut host).expect("an accepted program does what it may")
}

fuzz_target!(|bytes: &[u8]| {
    let insns: Vec<RawInsn> =
        bytes.chunks_exact(8).map(|insn| RawInsn::from_le_bytes(insn.try_into().expect("8 bytes"))).collect();
    let object = Object::of_program(ProgramSpec::new(
        "fuzz",
        ProgramKind::Xdp { frags: false, attach: XdpAttach::Interface },
        insns,
    ));
    if object.verify(&object.programs()[0]).is_ok() {
        assert_eq!(returned(&object, Engine::Plain), returned(&object, Engine::best()));
    }
});
