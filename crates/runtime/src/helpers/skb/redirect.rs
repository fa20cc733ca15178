//! Redirects, and look-ups before them.

use paceline_frame::{Redirect, RedirectTarget};
use paceline_spec::Errno;

use super::packet::Skb;
use crate::helpers::mem::{ReadMem, ReadWriteMem, ReadWriteU32};
use crate::helpers::{fib, redirect};
use crate::host::Host;

/// `TC_ACT_SHOT`
const SHOT: u64 = 2;
/// `TC_ACT_REDIRECT`
const REDIRECT: u64 = 7;
/// `BPF_F_INGRESS`: the packet comes in there.
const INGRESS: u64 = 1;
/// Size of a `struct bpf_redir_neigh`: a family and an address.
const NEXT_HOP_LEN: usize = 20;
/// `BPF_F_PEER`: the packet comes in at the peer.
const PEER: u32 = 1 << 2;

/// `long bpf_redirect(ifindex, flags)`
pub(super) fn redirect(host: &mut Host, ifindex: u32, flags: u64) -> u64 {
    if flags & !INGRESS != 0 { SHOT } else { to_interface(host, ifindex, flags as u32) }
}

/// `long bpf_redirect_neigh(ifindex, params, plen, flags)`: the address of the next hop is not kept.
pub(super) fn redirect_neigh(host: &mut Host, ifindex: u32, params: ReadMem<'_>, flags: u64) -> u64 {
    let is_complete = params.len() == 0 || params.len() >= NEXT_HOP_LEN;
    if !is_complete || flags != 0 { SHOT } else { to_interface(host, ifindex, Redirect::NEIGHBOR) }
}

/// `long bpf_redirect_peer(ifindex, flags)`
pub(super) fn redirect_peer(host: &mut Host, ifindex: u32, flags: u64) -> u64 {
    if flags != 0 { SHOT } else { to_interface(host, ifindex, PEER) }
}

fn to_interface(host: &mut Host, ifindex: u32, flags: u32) -> u64 {
    redirect::set(host, Some(Redirect { target: RedirectTarget::Interface { ifindex }, flags }));
    REDIRECT
}

/// `long bpf_fib_lookup(skb, params, plen, flags)`: if the program passes no length, that of the packet is compared with the
/// MTU of the interface that is found (`is_skb_forwardable`).
pub(super) fn fib_lookup(
    host: &mut Host,
    skb: Skb<'_>,
    params: ReadWriteMem<'_>,
    flags: u32,
) -> Result<u64, Errno> {
    const FRAG_NEEDED: u64 = 8;
    /// Of `struct bpf_fib_lookup`: `tot_len`, later `mtu_result`, and `ifindex`.
    const TOTAL_LEN: usize = 6;
    const IFINDEX: usize = 8;
    const VLAN_HEADER: u32 = 4;
    let has_len = params.read_at(TOTAL_LEN).is_some_and(|len| len != [0; 2]);
    let outcome = fib::look_up(host, params, flags)?;
    if outcome != 0 || has_len {
        return Ok(outcome);
    }
    let ifindex = params.read_at(IFINDEX).map_or(0, u32::from_ne_bytes);
    let interface = host.world.network().interface(ifindex).ok_or(Errno::ENODEV)?;
    // The MTU is a user's number of up to 32 bits.
    let (mtu, most) = (interface.mtu, interface.mtu.saturating_add(interface.header + VLAN_HEADER));
    params.write_at(TOTAL_LEN, &(mtu as u16).to_ne_bytes());
    Ok(if skb.len() > most as usize { FRAG_NEEDED } else { 0 })
}

/// `long bpf_check_mtu(skb, ifindex, mtu_len, len_diff, flags)`: no packet stands for several segments, which the flag tests for.
pub(super) fn check_mtu(
    host: &mut Host,
    skb: Skb<'_>,
    ifindex: u32,
    mtu_len: ReadWriteU32<'_>,
    difference: i32,
    flags: u64,
) -> Result<u64, Errno> {
    const SEGMENTS: u64 = 1;
    if flags == SEGMENTS && (difference != 0 || mtu_len.load() != 0) {
        return Err(Errno::EINVAL);
    }
    let flags = if flags == SEGMENTS { 0 } else { flags };
    fib::check_mtu(host, skb.0, ifindex, mtu_len, difference, flags)
}
