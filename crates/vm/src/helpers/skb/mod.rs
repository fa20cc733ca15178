//! Helpers of TC classifiers on their packet (`net/core/filter.c`). What the kernel has in its `sk_buff` besides the bytes is in
//! the packet's own area in the host ([`SkBuff`]).

mod bytes;
mod checksum;
mod facts;
mod redirect;
mod room;
mod vlan;

use paceline_frame::Frame;
use paceline_spec::Errno;
use paceline_spec::context::SkBuff;
use paceline_spec::helper::HelperId;

pub(crate) use vlan::put_tag;

use super::HelperFn;
use crate::context::ETHERNET_LEN;
use crate::host::Host;

/// Greatest length of a packet (`BPF_SKB_MAX_LEN` with pages of 4 KiB).
const MAX_LEN: usize = 16064;

/// `ETH_P_IP` and `ETH_P_IPV6`, and the lengths of their headers without options.
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;

/// The function of a helper, by its number, where TC classifiers have one of their own.
pub(super) const fn helper_fn(id: HelperId) -> Option<HelperFn> {
    Some(match id {
        HelperId::SkbStoreBytes => bytes::store,
        HelperId::L3CsumReplace => checksum::replace_l3,
        HelperId::L4CsumReplace => checksum::replace_l4,
        HelperId::SkbVlanPush => vlan::push,
        HelperId::SkbVlanPop => vlan::pop,
        HelperId::Redirect => redirect::redirect,
        HelperId::GetRouteRealm => facts::get_route_realm,
        HelperId::SkbChangeProto => room::change_proto,
        HelperId::SkbChangeType => facts::change_type,
        HelperId::GetHashRecalc => facts::get_hash_recalc,
        HelperId::SkbChangeTail => room::change_tail,
        HelperId::SkbPullData => bytes::pull,
        HelperId::CsumUpdate => checksum::update,
        HelperId::SetHashInvalid => facts::set_hash_invalid,
        HelperId::SkbChangeHead => room::change_head,
        HelperId::SetHash => facts::set_hash,
        HelperId::SkbAdjustRoom => room::adjust,
        HelperId::SkbLoadBytesRelative => bytes::load_relative,
        HelperId::FibLookup => redirect::fib_lookup,
        HelperId::SkbEcnSetCe => facts::set_congestion,
        HelperId::CsumLevel => checksum::level,
        HelperId::RedirectPeer => redirect::redirect_peer,
        HelperId::CheckMtu => redirect::check_mtu,
        HelperId::SkbSetTstamp => facts::set_time,
        _ => return None,
    })
}

/// A packet and what goes with it, as long as a helper works on it.
struct Packet<'a> {
    frame: &'a mut Frame,
    facts: SkBuff,
}

impl Packet<'_> {
    /// Bytes before the network's header.
    fn network(&self) -> usize {
        ETHERNET_LEN + usize::from(self.facts.network_moved)
    }

    /// The protocol, in host order.
    fn protocol(&self) -> u16 {
        u16::from_be(self.facts.protocol)
    }

    fn clear_hash(&mut self) {
        (self.facts.hash, self.facts.has_hash) = (0, 0);
    }

    /// The `len` bytes at `offset`, or `EFAULT` (`bpf_try_make_writable`).
    fn span(&mut self, offset: u64, len: usize) -> Result<&mut [u8], Errno> {
        let offset = offset as u32 as usize;
        let end = offset.checked_add(len).filter(|end| *end <= i32::MAX as usize);
        end.and_then(|end| self.frame.packet_mut().get_mut(offset..end)).ok_or(Errno::EFAULT)
    }

    /// Inserts zeros at an offset by moving the bytes before it (`bpf_skb_generic_push`). `ENOMEM` if the headroom is too short.
    fn insert(&mut self, offset: usize, len: usize) -> Result<(), Errno> {
        let delta = i32::try_from(len).map_err(|_| Errno::ENOMEM)?;
        self.frame.adjust_head(-delta).map_err(|_| Errno::ENOMEM)?;
        let packet = self.frame.packet_mut();
        packet.copy_within(len..(len + offset).min(packet.len()), 0);
        packet.iter_mut().skip(offset).take(len).for_each(|byte| *byte = 0);
        Ok(())
    }

    /// Removes bytes at an offset by moving those before it (`bpf_skb_generic_pop`). `ENOMEM` if there are not as many.
    fn remove(&mut self, offset: usize, len: usize) -> Result<(), Errno> {
        let delta = i32::try_from(len).map_err(|_| Errno::ENOMEM)?;
        let packet = self.frame.packet_mut();
        if packet.len() < offset + len {
            return Err(Errno::ENOMEM);
        }
        packet.copy_within(..offset, len);
        self.frame.adjust_head(delta).map_err(|_| Errno::ENOMEM)
    }
}

/// Lets a helper work on the packet of the run; gives what it returns.
///
/// # Safety
/// The program must run over a packet, and no other reference to its frame may be in use.
unsafe fn with_packet(host: &mut Host, work: impl FnOnce(&mut Packet<'_>) -> Result<u64, Errno>) -> u64 {
    // SAFETY: a run over a packet holds its frame.
    let mut packet = Packet { frame: unsafe { &mut *host.frame }, facts: host.sk_buff() };
    let result = work(&mut packet);
    let facts = packet.facts;
    host.set_sk_buff(facts);
    result.unwrap_or_else(Errno::to_return)
}
