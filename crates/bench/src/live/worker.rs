//! Workers that give all packets one verdict.

use std::error::Error;

use paceline::port::Port;
use paceline::{Engine, Pipeline, Program, Target, Verdict, Worker, XdpAttach};
use paceline_testkit::text;

/// Pairs of rounds of ours and of testpmd's.
pub(super) const PAIRS: usize = 15;

/// A worker that drops the packets of a port.
pub(super) fn dropping_worker(port: impl Port + 'static) -> Result<Worker, Box<dyn Error>> {
    worker_returning(Verdict::Drop, port)
}

/// A worker whose program returns the same for each packet of a port.
pub(super) fn worker_returning(
    verdict: Verdict,
    port: impl Port + 'static,
) -> Result<Worker, Box<dyn Error>> {
    let pipeline = Pipeline::new();
    let verified = text::verified(&format!("r0 = {}\nexit", verdict as u32), XdpAttach::Interface, &[])?;
    pipeline.set_program(1, Some(&Target::from(&Program::load(&verified, Vec::new(), Engine::best())?)))?;
    let mut worker = pipeline.worker(0);
    worker.attach(1, 0, port);
    Ok(worker)
}
