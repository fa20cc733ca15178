//! Tests in the running kernel.

use paceline::Arrival;

use super::case::{Expectation, Step};
use super::check::Actual;
use crate::common::failure::Failure;
use crate::kernel_side::{KernelSide, tells_member};
use crate::subject::Subject;

/// Runs a step with its packet; the subject's maps have the contents of the kernel's afterwards.
pub(super) fn step(
    kernel: &KernelSide,
    subject: &Subject,
    step: &Step,
    packet: &Arrival<'_>,
) -> Result<Actual, Failure> {
    for _ in 1..step.repeat {
        kernel.run(packet)?;
    }
    let outcome = kernel.run(packet)?;
    kernel.read_maps(subject)?;
    Ok(Actual { input: step.packet.clone(), outcome, events: Vec::new() })
}

/// Whether a test run shows what an expectation is about: neither redirect targets nor events, and few members of the `sk_buff`.
pub(super) fn shows(expectation: &Expectation) -> bool {
    match expectation {
        Expectation::Redirect(..) | Expectation::Events(_) => false,
        Expectation::Context(members) => members.iter().all(|(name, _)| tells_member(name)),
        _ => true,
    }
}
