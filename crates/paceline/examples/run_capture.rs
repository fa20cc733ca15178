//! Runs a program over a capture and counts the verdicts.

use std::error::Error;
use std::fs::File;
use std::ops::ControlFlow;

use paceline::capture::CaptureReader;
use paceline::{Host, LoadOptions, Object, Outputs, ReplayOptions, Verdict, replay};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

#[allow(clippy::print_stdout, reason = "the counts are what it is for")]
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let firewall = Object::open(format!("{EXAMPLES}/firewall.o"))?.load(&LoadOptions::default())?;
    let program = firewall.program(None)?;
    let mut capture = CaptureReader::new(File::open(format!("{EXAMPLES}/traffic.pcap"))?)?;

    let mut host = Host::default();
    let outputs = Outputs::default(); // none
    let options = ReplayOptions::default();
    let (tally, ended) =
        replay(program.program(), &mut host, &mut capture, outputs, options, |_| ControlFlow::Continue(()));
    ended?;
    for verdict in Verdict::ALL {
        println!("{verdict:?}: {}", tally.of(verdict));
    }
    assert_eq!(Verdict::ALL.map(|verdict| tally.of(verdict)).iter().sum::<u64>(), tally.packets);
    assert!(tally.of(Verdict::Drop) > 0);
    Ok(())
}
