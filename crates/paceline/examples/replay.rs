//! Writes the packets that a program passes to one capture and those it drops to another.

use std::error::Error;
use std::fs::File;
use std::ops::ControlFlow;

use paceline::capture::{CaptureReader, CaptureWriter};
use paceline::{Host, LoadOptions, Object, Outputs, ReplayOptions, Verdict, replay};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

#[allow(clippy::print_stdout, reason = "the sizes are what it is for")]
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let program =
        Object::open(format!("{EXAMPLES}/firewall.o"))?.load(&LoadOptions::default())?.program(None)?;
    let mut capture = CaptureReader::new(File::open(format!("{EXAMPLES}/traffic.pcap"))?)?;

    // Any `Write`: files, or memory as here.
    let (mut passed, mut dropped) = (Vec::new(), Vec::new());
    let outputs = Outputs {
        passed: Some(CaptureWriter::new(&mut passed, capture.header())?),
        dropped: Some(CaptureWriter::new(&mut dropped, capture.header())?),
    };
    let options = ReplayOptions::default().count(20);
    let (tally, ended) = replay(
        program.program(),
        &mut Host::default(),
        &mut capture,
        outputs,
        options,
        |_| ControlFlow::Continue(()), // after each burst; `Break` ends the run
    );
    ended?;
    println!("{} packets: {} bytes passed, {} dropped", tally.packets, passed.len(), dropped.len());

    let mut count = 0;
    let mut reader = CaptureReader::new(&*dropped)?;
    let mut burst = paceline::Burst::default();
    while reader.fill(&mut burst)? > 0 {
        count += burst.len() as u64;
    }
    assert_eq!(count, tally.of(Verdict::Drop) + tally.of(Verdict::Aborted));
    Ok(())
}
