//! Where the packet goes, and what is asked before.

use paceline_frame::{Redirect, RedirectTarget};
use paceline_isa::Size;
use paceline_spec::Errno;

use crate::helpers::{args, fib, redirect};
use crate::host::Host;
use crate::memory;

/// `TC_ACT_SHOT`
const SHOT: u64 = 2;
/// `TC_ACT_REDIRECT`
const REDIRECT: u64 = 7;
/// `BPF_F_INGRESS`: the packet comes in there.
const INGRESS: u64 = 1;
/// `BPF_F_PEER`: the packet comes in at the peer.
const PEER: u32 = 1 << 2;

/// `long bpf_redirect(ifindex, flags)`
pub(super) unsafe extern "C" fn redirect(
    ifindex: u64,
    flags: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    if flags & !INGRESS != 0 { SHOT } else { to_interface(host, ifindex as u32, flags as u32) }
}

/// `long bpf_redirect_peer(ifindex, flags)`
pub(super) unsafe extern "C" fn redirect_peer(
    ifindex: u64,
    flags: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    if flags != 0 { SHOT } else { to_interface(host, ifindex as u32, PEER) }
}

fn to_interface(host: &mut Host, ifindex: u32, flags: u32) -> u64 {
    redirect::set(host, Some(Redirect { target: RedirectTarget::Interface { ifindex }, flags }));
    REDIRECT
}

/// `long bpf_fib_lookup(skb, params, plen, flags)`: where the program gives no length, that of the packet is compared with the
/// MTU of the interface that is found (`is_skb_forwardable`).
pub(super) unsafe extern "C" fn fib_lookup(
    context: u64,
    params: u64,
    len: u64,
    flags: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    const FRAG_NEEDED: u64 = 8;
    /// Of `struct bpf_fib_lookup`: `tot_len`, later `mtu_result`, and `ifindex`.
    const TOTAL_LEN: u64 = 6;
    const IFINDEX: u64 = 8;
    const VLAN_HEADER: u32 = 4;
    let long_enough = len as i32 >= 12;
    // SAFETY: the arguments fit the prototype, and there are as many bytes as that.
    let asks = long_enough && unsafe { memory::load(params + TOTAL_LEN, Size::H) } != 0;
    // SAFETY: the prototype is the same.
    let result = unsafe { fib::fib_lookup(context, params, len, flags, 0, host) };
    if result != 0 || asks {
        return result;
    }
    // SAFETY: as above; a look-up that succeeds has been given all fields.
    let ifindex = unsafe { memory::load(params + IFINDEX, Size::W) };
    let Some(interface) = host.network().interface(ifindex as u32) else { return Errno::ENODEV.to_return() };
    // The MTU is a user's number of up to 32 bits.
    let (mtu, most) = (interface.mtu, interface.mtu.saturating_add(interface.header + VLAN_HEADER));
    // SAFETY: as above, and there is a context and thus a packet.
    unsafe {
        memory::store(params + TOTAL_LEN, Size::H, u64::from(mtu));
        if args::packet(host).len() > most as usize { FRAG_NEEDED } else { 0 }
    }
}

/// `long bpf_check_mtu(skb, ifindex, mtu_len, len_diff, flags)`: no packet stands for several segments, which the flag asks for.
pub(super) unsafe extern "C" fn check_mtu(
    context: u64,
    ifindex: u64,
    mtu_len: u64,
    difference: u64,
    flags: u64,
    host: &mut Host,
) -> u64 {
    const SEGMENTS: u64 = 1;
    // SAFETY: the arguments fit the prototype.
    let asked = unsafe { memory::load(mtu_len, Size::W) };
    if flags == SEGMENTS && (difference as i32 != 0 || asked != 0) {
        return Errno::EINVAL.to_return();
    }
    let flags = if flags == SEGMENTS { 0 } else { flags };
    // SAFETY: the prototype is the same.
    unsafe { fib::check_mtu(context, ifindex, mtu_len, difference, flags, host) }
}
