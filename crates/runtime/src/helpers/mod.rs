//! The helpers and kernel functions, one typed function each, and the tables that find them by id or name.
//!
//! Parameters have types: `&Map`, `Key`, `ReadMem` (an address and its size in two registers), `&mut Frame` for the context. Values
//! of these types exist only where a register fits the prototype, so the functions are safe; the tables `common_fn` and `kfunc_fn`
//! make the C function that engines call, and compare parameters and result with the row at compile time.

mod argument;
mod checksum;
mod class;
mod classic;
mod connection;
mod dissector;
mod dynptr;
mod event;
mod fib;
mod format;
mod function;
mod iterator;
mod map;
mod map_argument;
mod mem;
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

use function::{helper_table, kfunc_table};

pub use dynptr::record_of;
pub use function::HelperFn;
pub use spin_lock::release_held;
pub use timer::set_timer_callback;

/// Whether programs of a type can call a helper, by its number.
pub fn can_call(id: HelperId, kind: ProgramKind) -> bool {
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
pub fn helper_fn(id: HelperId, kind: ProgramKind) -> Option<HelperFn> {
    let own = match kind {
        ProgramKind::SchedCls => skb::helper_fn(id),
        _ => None,
    };
    own.or_else(|| common_fn(id))
}

/// All functions of a helper: types of programs may have their own.
pub fn functions_of(id: HelperId) -> impl Iterator<Item = HelperFn> {
    skb::helper_fn(id).into_iter().chain(common_fn(id))
}

helper_table! {
    /// The function of a helper for programs of types that have none of their own.
    pub fn common_fn;
    MapLookupElem => map::lookup_elem,
    MapUpdateElem => map::update_elem,
    MapDeleteElem => map::delete_elem,
    KtimeGetNs => system::ktime_get_ns,
    TracePrintk => format::trace_printk,
    GetPrandomU32 => system::get_prandom_u32,
    GetSmpProcessorId => system::get_smp_processor_id,
    Redirect => redirect::redirect,
    PerfEventOutput => event::perf_event_output,
    SkbLoadBytes => packet::skb_load_bytes,
    CsumDiff => checksum::csum_diff,
    GetNumaNodeId => system::get_numa_node_id,
    XdpAdjustHead => packet::adjust_head,
    RedirectMap => redirect::redirect_map,
    XdpAdjustMeta => packet::adjust_meta,
    XdpAdjustTail => packet::adjust_tail,
    SkbLoadBytesRelative => packet::skb_load_bytes_relative,
    FibLookup => fib::fib_lookup,
    SkLookupTcp => socket::look_up_tcp,
    SkLookupUdp => socket::look_up_udp,
    SkRelease => socket::release,
    MapPushElem => map::push_elem,
    MapPopElem => map::pop_elem,
    MapPeekElem => map::peek_elem,
    SpinLock => spin_lock::lock,
    SpinUnlock => spin_lock::unlock,
    SkcLookupTcp => socket::look_up_common,
    TcpCheckSyncookie => socket::check_syncookie,
    Strtol => number::signed,
    Strtoul => number::unsigned,
    TcpGenSyncookie => socket::gen_syncookie,
    ProbeReadKernel => system::probe_read_kernel,
    Jiffies64 => system::jiffies64,
    KtimeGetBootNs => system::ktime_get_boot_ns,
    RingbufOutput => ringbuf::output,
    RingbufReserve => ringbuf::reserve,
    RingbufSubmit => ringbuf::submit,
    RingbufDiscard => ringbuf::discard,
    RingbufQuery => ringbuf::query,
    KtimeGetCoarseNs => system::ktime_get_coarse_ns,
    CheckMtu => fib::check_mtu,
    ForEachMapElem => rounds::elements,
    Snprintf => format::snprintf,
    TimerInit => timer::init,
    TimerSetCallback => timer::set_callback,
    TimerStart => timer::start,
    TimerCancel => timer::cancel,
    TraceVprintk => format::trace_vprintk,
    Loop => rounds::count,
    Strncmp => text::strncmp,
    XdpGetBuffLen => packet::get_buff_len,
    XdpLoadBytes => packet::load_bytes,
    XdpStoreBytes => packet::store_bytes,
    MapLookupPercpuElem => map::lookup_percpu_elem,
    DynptrFromMem => dynptr::from_mem,
    RingbufReserveDynptr => dynptr::reserve,
    RingbufSubmitDynptr => dynptr::submit,
    RingbufDiscardDynptr => dynptr::discard,
    DynptrRead => dynptr::read,
    DynptrWrite => dynptr::write,
    DynptrData => dynptr::data,
    TcpRawGenSyncookieIpv4 => syncookie::generate_v4,
    TcpRawGenSyncookieIpv6 => syncookie::generate_v6,
    TcpRawCheckSyncookieIpv4 => syncookie::check_v4,
    TcpRawCheckSyncookieIpv6 => syncookie::check_v6,
    KtimeGetTaiNs => system::ktime_get_tai_ns,
}

kfunc_table! {
    /// The function of a kernel function, by its name; `None` for those that Paceline does not support.
    pub fn kfunc_fn;
    "bpf_iter_num_new" => iterator::new,
    "bpf_iter_num_next" => iterator::next,
    "bpf_iter_num_destroy" => iterator::destroy,
    "bpf_dynptr_from_xdp" => dynptr::from_xdp,
    "bpf_dynptr_slice" => dynptr::slice,
    "bpf_dynptr_slice_rdwr" => dynptr::slice,
    "bpf_dynptr_size" => dynptr::size,
    "bpf_dynptr_is_null" => dynptr::is_null,
    "bpf_dynptr_is_rdonly" => dynptr::is_rdonly,
    "bpf_dynptr_adjust" => dynptr::adjust,
    "bpf_dynptr_clone" => dynptr::clone,
    "bpf_dynptr_copy" => dynptr::copy,
    "bpf_dynptr_memset" => dynptr::memset,
    "bpf_cast_to_kern_ctx" => metadata::kernel_context,
    "bpf_xdp_metadata_rx_timestamp" => metadata::timestamp,
    "bpf_xdp_metadata_rx_hash" => metadata::hash,
    "bpf_xdp_metadata_rx_vlan_tag" => metadata::vlan_tag,
    "bpf_xdp_ct_lookup" => connection::look_up,
    "bpf_skb_ct_lookup" => connection::look_up,
    "bpf_xdp_ct_alloc" => connection::allocate,
    "bpf_skb_ct_alloc" => connection::allocate,
    "bpf_ct_insert_entry" => connection::insert,
    "bpf_ct_release" => connection::release,
    "bpf_ct_set_timeout" => connection::set_timeout,
    "bpf_ct_change_timeout" => connection::change_timeout,
    "bpf_ct_set_status" => connection::change_status,
    "bpf_ct_change_status" => connection::change_status,
    "bpf_skb_get_pay_offset" => classic::payload_offset,
    "bpf_skb_get_nlattr" => classic::attribute,
    "bpf_skb_get_nlattr_nest" => classic::nested_attribute,
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
