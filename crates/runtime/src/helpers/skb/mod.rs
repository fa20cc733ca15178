//! Helpers of TC classifiers on their packet (`net/core/filter.c`). Facts of the kernel's `sk_buff` besides the bytes are in
//! the packet's own area in the host ([`SkBuff`](paceline_spec::context::SkBuff)).

mod bytes;
mod checksum;
mod facts;
mod packet;
mod redirect;
mod room;
mod tunnel;
mod vlan;

use super::function::helper_table;

helper_table! {
    /// The function of a helper where TC classifiers have one of their own.
    pub(super) fn helper_fn;
    SkbStoreBytes => bytes::store,
    L3CsumReplace => checksum::replace_l3,
    L4CsumReplace => checksum::replace_l4,
    SkbVlanPush => vlan::push,
    SkbVlanPop => vlan::pop,
    SkbGetTunnelKey => tunnel::get_key,
    SkbSetTunnelKey => tunnel::set_key,
    Redirect => redirect::redirect,
    GetRouteRealm => facts::get_route_realm,
    SkbGetTunnelOpt => tunnel::get_options,
    SkbSetTunnelOpt => tunnel::set_options,
    SkbChangeProto => room::change_proto,
    SkbChangeType => facts::change_type,
    GetHashRecalc => facts::get_hash_recalc,
    SkbChangeTail => room::change_tail,
    SkbPullData => bytes::pull,
    CsumUpdate => checksum::update,
    SetHashInvalid => facts::set_hash_invalid,
    SkbChangeHead => room::change_head,
    SetHash => facts::set_hash,
    SkbAdjustRoom => room::adjust,
    SkbLoadBytesRelative => bytes::load_relative,
    FibLookup => redirect::fib_lookup,
    SkbEcnSetCe => facts::set_congestion,
    CsumLevel => checksum::level,
    SkAssign => facts::assign,
    RedirectNeigh => redirect::redirect_neigh,
    RedirectPeer => redirect::redirect_peer,
    CheckMtu => redirect::check_mtu,
    SkbSetTstamp => facts::set_time,
}
