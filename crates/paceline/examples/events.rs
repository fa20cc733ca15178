//! Reads the events that a program writes to a ring buffer.

use std::error::Error;

use paceline::isa::{Names, assemble};
use paceline::{
    Burst, FrameMeta, Host, LoadOptions, MapKind, MapSpec, Object, ProgramKind, ProgramSpec, XdpAttach,
};

/// The interface of each packet as a record of four bytes.
const REPORT: &str = "
    r2 = *(u32 *)(r1 + 12)  # xdp_md.ingress_ifindex
    *(u32 *)(r10 - 4) = r2
    r1 = map[events] ll
    r2 = r10
    r2 += -4
    r3 = 4
    r4 = 0
    call bpf_ringbuf_output
    r0 = 2                  # XDP_PASS
    exit
";

/// Names that the program text refers to.
struct Symbols;

impl Names for Symbols {
    fn helper(&self, name: &str) -> Option<i32> {
        (name == "bpf_ringbuf_output").then_some(130)
    }

    fn map(&self, name: &str) -> Option<i32> {
        (name == "events").then_some(0)
    }
}

#[allow(clippy::print_stdout, reason = "the events are what it is for")]
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // An object that was compiled with a ring buffer is loaded like any other.
    let xdp = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let code = assemble(REPORT, &Symbols)?.encode()?;
    let mut object = Object::of_program(ProgramSpec::new("report", xdp, code));
    object.specs_mut().maps.push(MapSpec::new("events", MapKind::RingBuf, 0, 0, 4096));
    let collection = object.load(&LoadOptions::default())?;
    let program = collection.program(None)?;

    let mut burst = Burst::default();
    for ifindex in [3, 4] {
        burst.push(&[0; 60], FrameMeta::default())?;
        burst.frame_mut(burst.len() - 1).set_ingress(ifindex, 0);
    }
    program.run_burst(&mut burst, &mut Host::default())?;

    let events = collection.ring_reader("events")?; // poll(2) waits for it: `AsFd`
    let mut seen = Vec::new();
    events.consume(|record| seen.extend_from_slice(record)); // from any thread, while programs write
    println!("{seen:?}");
    assert_eq!(seen, [3_u32, 4].map(u32::to_ne_bytes).concat());
    Ok(())
}
