//! Tests in the running kernel.

use paceline::Verdict;
use paceline_kernel::Packet;

use super::case::{Expectation, Step};
use super::check::Actual;
use crate::common::failure::Failure;
use crate::kernel_side::KernelSide;
use crate::session::Outcome;
use crate::subject::Subject;

/// Runs a step; the subject's maps have the contents of the kernel's afterwards.
pub(super) fn step(
    kernel: &KernelSide,
    subject: &Subject,
    step: &Step,
    ingress: u32,
) -> Result<Actual, Failure> {
    let rx_queue = step.queue.into();
    let packet = Packet { data: &step.packet, meta: &[], ingress_ifindex: ingress, rx_queue };
    for _ in 1..step.repeat {
        kernel.run(&packet)?;
    }
    let (run, code) = kernel.run(&packet)?;
    kernel.read_maps(subject)?;
    let verdict = Verdict::from_code(code).unwrap_or(Verdict::Aborted);
    let outcome = Outcome { verdict, code, redirect: None, bytes: run.data, events: Vec::new() };
    Ok(Actual { input: step.packet.clone(), outcome })
}

/// Whether a test run shows what an expectation is about: neither redirect targets nor events.
pub(super) fn shows(expectation: &Expectation) -> bool {
    !matches!(expectation, Expectation::Redirect(_) | Expectation::Events(_))
}
