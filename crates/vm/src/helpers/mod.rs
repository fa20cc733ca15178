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
use paceline_spec::helper::Helper;

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
pub(crate) fn can_call(id: u32, kind: ProgramKind) -> bool {
    // Engines make tail calls themselves.
    id == Helper::TAIL_CALL as u32 || helper_fn(id, kind).is_some()
}

/// Whether programs of some type can call a helper, by its number. The table of prototypes, [`paceline_spec::helper`], knows more of
/// them: those can be verified, and are refused when a program that calls them is loaded.
#[must_use]
pub fn has_helper(id: u32) -> bool {
    id == Helper::TAIL_CALL as u32 || functions_of(id).next().is_some()
}

/// The function of a helper for programs of a type, by its number; `None` for those that Paceline does not have. Those that call
/// a function of the program call native code: interpreters make these calls themselves.
pub(crate) fn helper_fn(id: u32, kind: ProgramKind) -> Option<HelperFn> {
    let own = match kind {
        ProgramKind::SchedCls => skb::helper_fn(id),
        _ => None,
    };
    own.or_else(|| common_fn(id))
}

/// All functions of a helper: types of programs may have their own.
pub(crate) fn functions_of(id: u32) -> impl Iterator<Item = HelperFn> {
    skb::helper_fn(id).into_iter().chain(common_fn(id))
}

/// The function of a helper for programs of types that have none of their own.
pub(crate) fn common_fn(id: u32) -> Option<HelperFn> {
    Some(match id {
        1 => map::lookup_elem,
        2 => map::update_elem,
        3 => map::delete_elem,
        5 => system::ktime_get_ns,
        6 => format::trace_printk,
        7 => system::get_prandom_u32,
        8 => system::get_smp_processor_id,
        23 => redirect::redirect,
        25 => event::perf_event_output,
        26 => packet::skb_load_bytes,
        28 => checksum::csum_diff,
        42 => system::get_numa_node_id,
        44 => packet::adjust_head,
        51 => redirect::redirect_map,
        54 => packet::adjust_meta,
        65 => packet::adjust_tail,
        68 => packet::skb_load_bytes_relative,
        69 => fib::fib_lookup,
        84 => socket::look_up_tcp,
        85 => socket::look_up_udp,
        86 => socket::release,
        87 => map::push_elem,
        88 => map::pop_elem,
        89 => map::peek_elem,
        93 => spin_lock::lock,
        94 => spin_lock::unlock,
        99 => socket::look_up_common,
        100 => socket::check_syncookie,
        105 => number::signed,
        106 => number::unsigned,
        110 => socket::gen_syncookie,
        113 => system::probe_read_kernel,
        118 => system::jiffies64,
        125 => system::ktime_get_boot_ns,
        130 => ringbuf::output,
        131 => ringbuf::reserve,
        132 => ringbuf::submit,
        133 => ringbuf::discard,
        134 => ringbuf::query,
        160 => system::ktime_get_coarse_ns,
        163 => fib::check_mtu,
        164 => rounds::elements,
        165 => format::snprintf,
        169 => timer::init,
        170 => timer::set_callback,
        171 => timer::start,
        172 => timer::cancel,
        177 => format::trace_vprintk,
        181 => rounds::count,
        182 => text::strncmp,
        188 => packet::get_buff_len,
        189 => packet::load_bytes,
        190 => packet::store_bytes,
        195 => map::lookup_percpu_elem,
        197 => dynptr::from_mem,
        198 => dynptr::reserve,
        199 => dynptr::submit,
        200 => dynptr::discard,
        201 => dynptr::read,
        202 => dynptr::write,
        203 => dynptr::data,
        204 => syncookie::generate_v4,
        205 => syncookie::generate_v6,
        206 => syncookie::check_v4,
        207 => syncookie::check_v6,
        208 => system::ktime_get_tai_ns,
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
    use paceline_spec::helper::Helper;
    use paceline_spec::kfunc::Kfunc;

    #[test]
    fn every_known_kernel_function_is_there() {
        for kfunc in Kfunc::all().iter().chain(Kfunc::converted()) {
            assert!(super::kfunc_fn(kfunc.name).is_some(), "{}", kfunc.name);
        }
    }

    #[test]
    fn every_helper_with_a_function_has_a_prototype() {
        for helper in Helper::all().iter().filter(|helper| super::has_helper(helper.id)) {
            assert!(helper.prototype.is_some(), "{}", helper.name);
        }
    }
}
