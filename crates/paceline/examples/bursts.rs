//! Runs a program in a loop of your own: bursts of up to 64 packets, verdicts and redirects by packet.

use std::error::Error;

use paceline::{Burst, FrameMeta, Host, LoadOptions, MAX_BURST, Object, Verdict};

const REFLECTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/reflector.o");

#[allow(clippy::print_stdout, reason = "the verdicts are what it is for")]
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let program = Object::open(REFLECTOR)?.load(&LoadOptions::default())?.program(None)?;
    // One of each for a thread; the memory is used again.
    let (mut burst, mut host) = (Burst::new(MAX_BURST), Host::default());
    let mut passed = 0;
    for round in 0..3_u8 {
        burst.clear();
        while !burst.is_full() {
            burst.push(&[round; 60], FrameMeta::default())?; // from your device
        }
        for mut frame in burst.iter_mut() {
            frame.set_ingress(1, 0); // interface and receive queue
        }
        program.run_burst(&mut burst, &mut host)?;
        for frame in burst.iter() {
            match frame.verdict() {
                Verdict::Pass => passed += 1,                // up the stack
                Verdict::Tx => drop(frame.packet().len()),   // back out, as the program changed it
                Verdict::Redirect => drop(frame.redirect()), // to where this says
                Verdict::Drop | Verdict::Aborted => {}
            }
        }
    }
    println!("{passed} packets passed");
    assert_eq!(passed, 3 * MAX_BURST);
    Ok(())
}
