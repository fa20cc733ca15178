//! Entries of helpers that format text, which set the stack that the helpers may read.

use crate::helpers::{HelperFn, common_fn};
use crate::host::Host;
use crate::stack::STACK_FRAME;
use paceline_spec::helper::{Helper, HelperId};

/// The function of a helper that reads memory at addresses in its arguments ([`Helper::prints`]).
pub(super) const fn printing(id: HelperId) -> Option<HelperFn> {
    Some(match id {
        HelperId::TracePrintk => print::<{ HelperId::TracePrintk.imm() }>,
        HelperId::Snprintf => print::<{ HelperId::Snprintf.imm() }>,
        HelperId::TraceVprintk => print::<{ HelperId::TraceVprintk.imm() }>,
        _ => return None,
    })
}

/// Every helper that formats text has such a function.
const _: () = {
    let (all, mut index) = (Helper::all(), 0);
    while index < all.len() {
        assert!(
            all[index].prints() == printing(all[index].id).is_some(),
            "a helper that formats text is missing"
        );
        index += 1;
    }
};

/// Calls a helper that may read the stack of the running function.
unsafe extern "C" fn print<const ID: i32>(
    r1: u64,
    r2: u64,
    r3: u64,
    r4: u64,
    r5: u64,
    host: &mut Host,
) -> u64 {
    host.run.readable.set_stack(host.machine.frame_pointer(), STACK_FRAME);
    // SAFETY: the arguments is guaranteed by the caller.
    HelperId::from_imm(ID)
        .and_then(common_fn)
        .map_or(0, |function| unsafe { function(r1, r2, r3, r4, r5, host) })
}
