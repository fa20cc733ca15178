//! Whether the kernel is available.

use paceline_isa::RawInsn;

use crate::error::KernelError;
use crate::program::{Packet, Program, Request};

/// Reason why the kernel is not available as oracle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the kernel does not run BPF programs for us: {0}")]
pub struct Unavailable(KernelError);

/// Whether XDP programs can be loaded and test-run here, found by trying it once.
///
/// # Errors
/// [`Unavailable`] with the failed call: no privilege, no such system call, a sandbox.
pub fn probe() -> Result<(), Unavailable> {
    let attempt = || {
        // r0 = 2; exit
        let pass = [[0xb7, 0, 0, 0, 2, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
        let insns = pass.map(RawInsn::from_le_bytes);
        Program::load(&Request::xdp(&insns))?.test_run(&Packet::new(&[0; 64]))
    };
    attempt().map(drop).map_err(Unavailable)
}
