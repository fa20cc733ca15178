//! Replaces the program of an interface while packets run through it.

use std::error::Error;
use std::thread;

use paceline::port::MemoryPort;
use paceline::{FrameMeta, LoadOptions, Object, Pipeline, Target};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

#[allow(clippy::print_stdout, reason = "the counts are what it is for")]
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let options = LoadOptions::default();
    let counter = Object::open(format!("{EXAMPLES}/counter.o"))?.load(&options)?;
    let firewall = Object::open(format!("{EXAMPLES}/firewall.o"))?.load(&options)?;

    let pipeline = Pipeline::new();
    pipeline.set_program(1, Some(&Target::from(counter.program(None)?.program())))?;

    let (card, wire) = MemoryPort::link(256);
    let (stack, host) = MemoryPort::link(256);
    let traffic = || wire.push(&[0; 60], FrameMeta::default());
    let mut worker = pipeline.worker(0);
    worker.attach(1, 0, card);
    worker.deliver_to(stack);

    traffic();
    let before = worker.poll()?;
    // From any thread: workers run the new program from their next burst on. None of them waits, and no packet is lost.
    let replacement = Target::from(firewall.program(None)?.program());
    thread::scope(|scope| {
        scope.spawn(|| pipeline.set_program(1, Some(&replacement))).join().map_err(|_| "the thread panicked")
    })??;
    traffic();
    let after = worker.poll()?;
    println!("{before} packet before, {after} after; passed: {}", std::iter::from_fn(|| host.pop()).count());
    assert_eq!((before, after), (1, 1));
    Ok(())
}
