//! The stages of a test, one after the other: its programs, on whatever runs them.

use paceline_kernel::MAX_PACKET;

use super::find::TestInC;
use crate::common::failure::{CommandError, Failure};

/// Machine for the programs of a suite, which share maps.
pub(super) trait Machine {
    /// Members of the context that are kept between the programs of a test.
    type Context: Default;

    /// Runs a program, which changes the packet; returns its return value.
    fn run(&mut self, program: &str, packet: &mut Passing<Self::Context>) -> Result<u32, Failure>;

    /// The value of an array's first element.
    fn value(&self, map: &str) -> Result<Option<Vec<u8>>, Failure>;

    /// Sets it to zero.
    fn clear(&self, map: &str) -> Result<(), Failure>;
}

/// A packet on its way from program to program.
pub(super) struct Passing<C> {
    /// Metadata of XDP programs, which a test run of the kernel returns before the packet, and the packet.
    pub(super) data: Vec<u8>,
    pub(super) context: C,
}

/// Outcome of a test by a return value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Error,
    Passed,
    Failed,
    Skipped,
}

impl Status {
    /// The meaning of the numbers in Cilium's `bpf/tests/common.h`, and of those it had before, from 0 to 3.
    pub(super) fn of(number: u64) -> Option<Self> {
        match number {
            0 | 100 => Some(Self::Error),
            1 | 101 => Some(Self::Passed),
            2 | 102 => Some(Self::Failed),
            3 | 103 => Some(Self::Skipped),
            _ => None,
        }
    }
}

/// A program that prepares a test says that it could not. Verdicts are below 100, so that this is told from them.
#[derive(Debug, thiserror::Error)]
#[error("the {stage} program {program} returned {code}, which is {}", if *.code == 100 { "an error" } else { "a failure" })]
struct NotPrepared {
    stage: &'static str,
    program: String,
    code: u32,
}

impl CommandError for NotPrepared {}

/// Runs the programs of a test; returns what the check program returned.
///
/// The packet starts as zeros, as many as a buffer of a test run has room for. The setup program gets what the packet generator
/// left, and the check program what both left, behind the return value of the setup program as four bytes.
pub(super) fn run<M: Machine>(machine: &mut M, test: &TestInC) -> Result<u32, Failure> {
    let mut packet = Passing { data: vec![0; MAX_PACKET], context: M::Context::default() };
    if let Some(pktgen) = &test.pktgen {
        prepare(machine, "packet generator", pktgen, &mut packet)?;
    }
    if let Some(setup) = &test.setup {
        let code = prepare(machine, "setup", setup, &mut packet)?;
        packet.data.splice(..0, code.to_ne_bytes());
    }
    machine.run(&test.check, &mut packet)
}

fn prepare<M: Machine>(
    machine: &mut M,
    stage: &'static str,
    program: &str,
    packet: &mut Passing<M::Context>,
) -> Result<u32, Failure> {
    match machine.run(program, packet)? {
        code @ (100 | 102) => Err(NotPrepared { stage, program: program.to_owned(), code }.into()),
        code => Ok(code),
    }
}
