//! The helpers, one function each, and the table that finds them by number.
//!
//! A helper takes the five argument registers as they are, so that generated code can call it without a wrapper.
//! Whoever calls one must have made sure that the arguments fit the helper's prototype in
//! [`paceline_spec::helper`]: the plain interpreter checks them on every call, other engines rely on the verifier.

mod args;
mod checksum;
mod classic;
mod connection;
mod dissector;
mod dynptr;
mod event;
mod fib;
mod format;
mod iterator;
mod map;
mod metadata;
mod number;
mod packet;
mod redirect;
mod ringbuf;
mod rounds;
mod skb;
mod socket;
mod spin_lock;
mod syncookie;
mod system;
mod text;
mod timer;

use paceline_spec::ProgramKind;
use paceline_spec::helper::{Helper, HelperId};

use crate::host::Host;

pub(crate) use dynptr::record_of;
pub(crate) use rounds::{Rounds, calls_back, words};
pub(crate) use skb::put_tag;
pub(crate) use spin_lock::release_held;
pub(crate) use timer::set_later;

/// A helper: `r1` to `r5` in, `r0` out.
///
/// # Safety
/// The arguments must fit the helper's prototype.
pub(crate) type HelperFn = unsafe extern "C" fn(u64, u64, u64, u64, u64, &mut Host) -> u64;

/// Whether programs of a type can call a helper, by its number.
pub(crate) fn can_call(id: HelperId, kind: ProgramKind) -> bool {
    // Engines make tail calls themselves.
    matches!(id, HelperId::TailCall) || helper_fn(id, kind).is_some()
}

/// Every supported helper has a function, and every function is that of a supported helper with a prototype.
const _: () = {
    let (all, mut index) = (Helper::all(), 0);
    while index < all.len() {
        let helper = &all[index];
        let is_implemented = matches!(helper.id, HelperId::TailCall)
            || common_fn(helper.id).is_some()
            || skb::helper_fn(helper.id).is_some();
        assert!(
            is_implemented == helper.is_supported(),
            "a supported helper needs a function, and no other has one"
        );
        assert!(!is_implemented || helper.prototype.is_some(), "a helper with a function needs a prototype");
        index += 1;
    }
};

/// The function of a helper for programs of a type, by its number; `None` for those that Paceline does not have. Those that call
/// a function of the program call native code: interpreters make these calls themselves.
pub(crate) fn helper_fn(id: HelperId, kind: ProgramKind) -> Option<HelperFn> {
    let own = match kind {
        ProgramKind::SchedCls => skb::helper_fn(id),
        _ => None,
    };
    own.or_else(|| common_fn(id))
}

/// All functions of a helper: types of programs may have their own.
pub(crate) fn functions_of(id: HelperId) -> impl Iterator<Item = HelperFn> {
    skb::helper_fn(id).into_iter().chain(common_fn(id))
}

/// The function of a helper for programs of types that have none of their own.
pub(crate) const fn common_fn(id: HelperId) -> Option<HelperFn> {
    Some(match id {
        HelperId::MapLookupElem => map::lookup_elem,
        HelperId::MapUpdateElem => map::update_elem,
        HelperId::MapDeleteElem => map::delete_elem,
        HelperId::KtimeGetNs => system::ktime_get_ns,
        HelperId::TracePrintk => format::trace_printk,
        HelperId::GetPrandomU32 => system::get_prandom_u32,
        HelperId::GetSmpProcessorId => system::get_smp_processor_id,
        HelperId::Redirect => redirect::redirect,
        HelperId::PerfEventOutput => event::perf_event_output,
        HelperId::SkbLoadBytes => packet::skb_load_bytes,
        HelperId::CsumDiff => checksum::csum_diff,
        HelperId::GetNumaNodeId => system::get_numa_node_id,
        HelperId::XdpAdjustHead => packet::adjust_head,
        HelperId::RedirectMap => redirect::redirect_map,
        HelperId::XdpAdjustMeta => packet::adjust_meta,
        HelperId::XdpAdjustTail => packet::adjust_tail,
        HelperId::SkbLoadBytesRelative => packet::skb_load_bytes_relative,
        HelperId::FibLookup => fib::fib_lookup,
        HelperId::SkLookupTcp => socket::look_up_tcp,
        HelperId::SkLookupUdp => socket::look_up_udp,
        HelperId::SkRelease => socket::release,
        HelperId::MapPushElem => map::push_elem,
        HelperId::MapPopElem => map::pop_elem,
        HelperId::MapPeekElem => map::peek_elem,
        HelperId::SpinLock => spin_lock::lock,
        HelperId::SpinUnlock => spin_lock::unlock,
        HelperId::SkcLookupTcp => socket::look_up_common,
        HelperId::TcpCheckSyncookie => socket::check_syncookie,
        HelperId::Strtol => number::signed,
        HelperId::Strtoul => number::unsigned,
        HelperId::TcpGenSyncookie => socket::gen_syncookie,
        HelperId::ProbeReadKernel => system::probe_read_kernel,
        HelperId::Jiffies64 => system::jiffies64,
        HelperId::KtimeGetBootNs => system::ktime_get_boot_ns,
        HelperId::RingbufOutput => ringbuf::output,
        HelperId::RingbufReserve => ringbuf::reserve,
        HelperId::RingbufSubmit => ringbuf::submit,
        HelperId::RingbufDiscard => ringbuf::discard,
        HelperId::RingbufQuery => ringbuf::query,
        HelperId::KtimeGetCoarseNs => system::ktime_get_coarse_ns,
        HelperId::CheckMtu => fib::check_mtu,
        HelperId::ForEachMapElem => rounds::elements,
        HelperId::Snprintf => format::snprintf,
        HelperId::TimerInit => timer::init,
        HelperId::TimerSetCallback => timer::set_callback,
        HelperId::TimerStart => timer::start,
        HelperId::TimerCancel => timer::cancel,
        HelperId::TraceVprintk => format::trace_vprintk,
        HelperId::Loop => rounds::count,
        HelperId::Strncmp => text::strncmp,
        HelperId::XdpGetBuffLen => packet::get_buff_len,
        HelperId::XdpLoadBytes => packet::load_bytes,
        HelperId::XdpStoreBytes => packet::store_bytes,
        HelperId::MapLookupPercpuElem => map::lookup_percpu_elem,
        HelperId::DynptrFromMem => dynptr::from_mem,
        HelperId::RingbufReserveDynptr => dynptr::reserve,
        HelperId::RingbufSubmitDynptr => dynptr::submit,
        HelperId::RingbufDiscardDynptr => dynptr::discard,
        HelperId::DynptrRead => dynptr::read,
        HelperId::DynptrWrite => dynptr::write,
        HelperId::DynptrData => dynptr::data,
        HelperId::TcpRawGenSyncookieIpv4 => syncookie::generate_v4,
        HelperId::TcpRawGenSyncookieIpv6 => syncookie::generate_v6,
        HelperId::TcpRawCheckSyncookieIpv4 => syncookie::check_v4,
        HelperId::TcpRawCheckSyncookieIpv6 => syncookie::check_v6,
        HelperId::KtimeGetTaiNs => system::ktime_get_tai_ns,
        _ => return None,
    })
}

/// The function of a kernel function, by its name; `None` for those that Paceline does not have.
pub(crate) fn kfunc_fn(name: &str) -> Option<HelperFn> {
    Some(match name {
        "bpf_iter_num_new" => iterator::new,
        "bpf_iter_num_next" => iterator::next,
        "bpf_iter_num_destroy" => iterator::destroy,
        "bpf_dynptr_from_xdp" => dynptr::from_xdp,
        "bpf_dynptr_slice" => dynptr::slice,
        "bpf_dynptr_slice_rdwr" => dynptr::slice_rdwr,
        "bpf_dynptr_size" => dynptr::size,
        "bpf_dynptr_is_null" => dynptr::is_null,
        "bpf_dynptr_is_rdonly" => dynptr::is_rdonly,
        "bpf_dynptr_adjust" => dynptr::adjust,
        "bpf_dynptr_clone" => dynptr::clone,
        "bpf_dynptr_copy" => dynptr::copy,
        "bpf_dynptr_memset" => dynptr::memset,
        "bpf_cast_to_kern_ctx" => metadata::kernel_context,
        "bpf_xdp_metadata_rx_timestamp" | "bpf_xdp_metadata_rx_hash" | "bpf_xdp_metadata_rx_vlan_tag" => {
            metadata::none
        }
        "bpf_xdp_ct_lookup" | "bpf_skb_ct_lookup" => connection::look_up,
        "bpf_xdp_ct_alloc" | "bpf_skb_ct_alloc" => connection::allocate,
        "bpf_ct_insert_entry" => connection::insert,
        "bpf_ct_release" => connection::release,
        "bpf_ct_set_timeout" => connection::set_timeout,
        "bpf_ct_change_timeout" => connection::change_timeout,
        "bpf_ct_set_status" | "bpf_ct_change_status" => connection::change_status,
        "bpf_skb_get_pay_offset" => classic::payload_offset,
        "bpf_skb_get_nlattr" => classic::attribute,
        "bpf_skb_get_nlattr_nest" => classic::nested_attribute,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use paceline_spec::kfunc::Kfunc;

    #[test]
    fn every_known_kernel_function_is_there() {
        for kfunc in Kfunc::all().iter().chain(Kfunc::converted()) {
            assert!(super::kfunc_fn(kfunc.name).is_some(), "{}", kfunc.name);
        }
    }
}
