//! Helpers that call a function of the program, for native code.

use std::mem::transmute;
use std::sync::Arc;

use paceline_maps::Map;
use paceline_spec::Errno;

use super::argument::{Code, Passed};
use super::function::HelperFn;
use crate::host::Host;
use crate::rounds::Rounds;

/// Calls a function as a helper is called, with the host in the sixth argument, until it returns other than 0. The result is the
/// number of calls.
fn call_rounds(rounds: Result<Rounds, Errno>, function: Code, host: &mut Host) -> Result<u64, Errno> {
    let mut rounds = rounds?;
    // SAFETY: native code passes the address of a function of the running program, which is called as helpers are.
    let function = unsafe { transmute::<usize, HelperFn>(function.0 as usize) };
    while let Some([r1, r2, r3, r4, r5]) = rounds.next_arguments(host.cpu()) {
        // SAFETY: the function takes these arguments, as the verifier has shown.
        let r0 = unsafe { function(r1, r2, r3, r4, r5, host) };
        // The run may have ended in a program that the function tail called.
        if r0 != 0 || host.run.fault.is_some() {
            break;
        }
    }
    Ok(rounds.calls())
}

/// `long bpf_loop(u32 nr_loops, void *callback_fn, void *callback_ctx, u64 flags)`, for native code.
pub(super) fn count(
    host: &mut Host,
    count: u32,
    function: Code,
    given: Passed,
    flags: u64,
) -> Result<u64, Errno> {
    call_rounds(Rounds::counting(count, given.0, flags), function, host)
}

/// `long bpf_for_each_map_elem(struct bpf_map *map, void *callback_fn, void *callback_ctx, u64 flags)`, for native code.
pub(super) fn elements(
    host: &mut Host,
    map: Arc<Map>,
    function: Code,
    given: Passed,
    flags: u64,
) -> Result<u64, Errno> {
    call_rounds(Rounds::over(map, given.0, flags), function, host)
}
