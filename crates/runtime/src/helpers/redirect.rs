//! Redirecting (`net/core/filter.c`). The target goes into the packet's own frame, so that the packets of a burst
//! can go to different targets.

use paceline_frame::{Redirect, RedirectTarget, Verdict};
use paceline_maps::Map;
use paceline_spec::ElementKind;

use crate::host::Host;

/// To all entries of a device map.
const BROADCAST: u64 = 1 << 3;
/// But not to where the packet came in.
const EXCLUDE_INGRESS: u64 = 1 << 4;
/// The verdict to return when the map has no such entry.
const ACTION: u64 = 3;

/// Sets or clears the redirect target of the packet that runs.
pub(super) fn set(host: &mut Host, redirect: Option<Redirect>) {
    // SAFETY: the frame is null or that of the running program, and no other reference to it is in use.
    if let Some(frame) = unsafe { host.frame().as_mut() } {
        frame.set_redirect(redirect);
    }
}

/// `long bpf_redirect(ifindex, flags)`
pub(super) fn redirect(host: &mut Host, ifindex: u32, flags: u64) -> u64 {
    if flags != 0 {
        return Verdict::Aborted as u64;
    }
    set(host, Some(Redirect { target: RedirectTarget::Interface { ifindex }, flags: 0 }));
    Verdict::Redirect as u64
}

/// `long bpf_redirect_map(map, key, flags)`
pub(super) fn redirect_map(host: &mut Host, map: &Map, key: u32, flags: u64) -> u64 {
    let allowed = match map.spec().kind.rules().elements {
        ElementKind::Devices => ACTION | BROADCAST | EXCLUDE_INGRESS,
        _ => ACTION,
    };
    if flags & !allowed != 0 {
        return Verdict::Aborted as u64;
    }
    if flags & BROADCAST == 0 && !map.for_programs().has_target(key) {
        set(host, None);
        return flags & ACTION;
    }
    set(host, Some(Redirect { target: RedirectTarget::Map { map: map.id(), key }, flags: flags as u32 }));
    Verdict::Redirect as u64
}
