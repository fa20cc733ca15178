//! The helpers of the kernel's UAPI, one row each: number, name, prototype, which program types have the helper, and what is
//! special about it.
//!
//! The assembler, the verifier, the engines and the documentation read this table. A row with a prototype can be verified; a
//! row that is supported ([`Helper::is_supported`]) has a function in the runtime, which is checked at compile time there.
//! Numbers and names are those of `___BPF_FUNC_MAPPER` in `include/uapi/linux/bpf.h`. Prototypes and GPL flags are those of
//! each helper's `struct bpf_func_proto`. Program types follow `xdp_func_proto`, `sk_filter_func_proto`,
//! `tc_cls_act_func_proto` and `bpf_sk_base_func_proto` in `net/core/filter.c` and `bpf_base_func_proto` in
//! `kernel/bpf/helpers.c`, for a privileged loader.

use super::map_kind::MapKind;
use super::map_use::MapUse;
use super::program_kind::ProgramKind;
use crate::availability::{Callers, IMPLEMENTATION, SOCKETS, TASKS, TUNNELS, USER_RING_BUFFERS};
pub use crate::prototype::{Arg, Callback, Prototype, Return};

/// A helper function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Helper {
    /// Number in call instructions.
    pub id: HelperId,
    /// Name, with its `bpf_`.
    pub name: &'static str,
    /// Arguments and result; `None` for helpers that the verifier does not know.
    pub prototype: Option<Prototype>,
    callers: Callers,
    needs: Option<&'static str>,
    gpl_only: bool,
    packet_memory: bool,
    map_use: Option<MapUse>,
    changes_map: bool,
    callback: Option<Callback>,
    calls_later: bool,
    prints: bool,
    waits_for_end: bool,
    leaves_area: bool,
}

impl HelperId {
    /// The helper of the number in a call instruction.
    #[must_use]
    pub const fn from_imm(imm: i32) -> Option<Self> {
        match Helper::from_imm(imm) {
            Some(helper) => Some(helper.id),
            None => None,
        }
    }

    /// The number in call instructions.
    #[must_use]
    pub const fn imm(self) -> i32 {
        self as i32
    }

    /// Whether the number in a call instruction is this helper's.
    #[must_use]
    pub const fn is(self, imm: i32) -> bool {
        self as i32 == imm
    }

    /// The row of the helper.
    #[must_use]
    pub const fn row(self) -> &'static Helper {
        // Numbers are dense from 1, which the table checks at compile time.
        &HELPERS[self as usize - 1]
    }
}

impl Helper {
    /// The number of `bpf_tail_call`, for patterns: no function but a jump, which engines compile.
    pub const TAIL_CALL: i32 = HelperId::TailCall.imm();
    /// The number of `bpf_timer_set_callback`, for patterns.
    pub const TIMER_SET_CALLBACK: i32 = HelperId::TimerSetCallback.imm();
    /// The number of `bpf_redirect`, for patterns.
    pub const REDIRECT: i32 = HelperId::Redirect.imm();
    /// The number of `bpf_redirect_map`, for patterns.
    pub const REDIRECT_MAP: i32 = HelperId::RedirectMap.imm();

    /// The helper of the number in a call instruction.
    #[must_use]
    pub const fn from_imm(imm: i32) -> Option<&'static Self> {
        // Numbers are dense from 1.
        if imm >= 1 && imm as usize <= HELPERS.len() { Some(&HELPERS[imm as usize - 1]) } else { None }
    }

    /// The helper of a name, with or without its `bpf_`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<&'static Self> {
        let bare = name.strip_prefix("bpf_").unwrap_or(name);
        HELPERS.iter().find(|helper| &helper.name[4..] == bare)
    }

    /// All helpers, by rising number.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        HELPERS
    }

    /// Whether programs of a type may call the helper.
    #[must_use]
    pub const fn is_for(&self, kind: ProgramKind) -> bool {
        self.callers.has(kind)
    }

    /// Whether Paceline has the helper.
    #[must_use]
    pub const fn is_supported(&self) -> bool {
        self.needs.is_none()
    }

    /// Part that Paceline lacks for the helper; `None` where the helper is supported.
    #[must_use]
    pub const fn needs(&self) -> Option<&'static str> {
        self.needs
    }

    /// Whether only programs under a GPL-compatible license may call the helper.
    #[must_use]
    pub const fn is_gpl_only(&self) -> bool {
        self.gpl_only
    }

    /// Whether memory arguments may lie in the packet (`pkt_access`).
    #[must_use]
    pub const fn takes_packet_memory(&self) -> bool {
        self.packet_memory
    }

    /// Whether the helper can be called on a map of a kind (`check_map_func_compatibility` in `kernel/bpf/verifier.c`).
    #[must_use]
    pub fn takes_map(&self, kind: MapKind) -> bool {
        self.map_use.is_none_or(|by| kind.has_use(by))
    }

    /// The use that the helper makes of the map among its arguments; `None` if it takes maps of every kind, or none.
    #[must_use]
    pub const fn map_use(&self) -> Option<MapUse> {
        self.map_use
    }

    /// Whether the helper changes the elements of the map that it is called on.
    #[must_use]
    pub const fn changes_map(&self) -> bool {
        self.changes_map
    }

    /// Whether the helper formats text, and so reads memory at addresses that only the format tells of.
    #[must_use]
    pub const fn prints(&self) -> bool {
        self.prints
    }

    /// How the helper calls a function of the program, if it does (`set_loop_callback_state`,
    /// `set_map_elem_callback_state` in `kernel/bpf/verifier.c`).
    #[must_use]
    pub const fn callback(&self) -> Option<Callback> {
        self.callback
    }

    /// Whether the helper lets a timer call a function of the program when the timer is due: with the map, the key and the
    /// value that holds the timer, and without a packet (`set_timer_callback_state`).
    #[must_use]
    pub const fn calls_later(&self) -> bool {
        self.calls_later
    }

    /// Whether the helper defers work to the end of the run: a VLAN tag beside the packet.
    #[must_use]
    pub const fn waits_for_end(&self) -> bool {
        self.waits_for_end
    }

    /// Whether the helper may read what programs of a type have in the packet's own area ([`SkBuff`](crate::context::SkBuff)). A
    /// helper that only writes there does not count: if the program reads what it wrote, that access counts.
    #[must_use]
    pub fn uses_area(&self, kind: ProgramKind) -> bool {
        let takes_packet = self.prototype.is_none_or(|prototype| prototype.args.contains(&Arg::Context));
        kind.context().waits_for_end && takes_packet && !self.leaves_area
    }
}

/// Parts of a row: which program types have the helper, then what differs from a helper without a prototype.
impl Helper {
    const fn of(callers: Callers) -> Self {
        Self {
            // The row's own number and name replace these.
            id: HelperId::MapLookupElem,
            name: "",
            prototype: None,
            callers,
            needs: Some(IMPLEMENTATION),
            gpl_only: false,
            packet_memory: false,
            map_use: None,
            changes_map: false,
            callback: None,
            calls_later: false,
            prints: false,
            waits_for_end: false,
            leaves_area: false,
        }
    }

    /// The prototype's arguments. The helper is supported unless the row says [`needs`](Self::lacks) after this.
    const fn takes(self, args: &'static [Arg]) -> Self {
        let prototype = Prototype { args, returns: Return::Nothing, moves_packet: false };
        Self { prototype: Some(prototype), needs: None, ..self }
    }

    /// The prototype's result, [`Return::Nothing`] unless the row says it.
    const fn returns(self, returns: Return) -> Self {
        match self.prototype {
            Some(prototype) => Self { prototype: Some(Prototype { returns, ..prototype }), ..self },
            None => panic!("arguments come before the result"),
        }
    }

    /// The packet may lie elsewhere afterwards (`bpf_helper_changes_pkt_data`).
    const fn moves_packet(self) -> Self {
        match self.prototype {
            Some(prototype) => {
                Self { prototype: Some(Prototype { moves_packet: true, ..prototype }), ..self }
            }
            None => panic!("arguments come before the rest of the prototype"),
        }
    }

    const fn gpl_only(self) -> Self {
        Self { gpl_only: true, ..self }
    }

    const fn packet_memory(self) -> Self {
        Self { packet_memory: true, ..self }
    }

    const fn uses(self, by: MapUse) -> Self {
        Self { map_use: Some(by), ..self }
    }

    const fn changes_elements(self) -> Self {
        Self { changes_map: true, ..self }
    }

    const fn calls_back(self, callback: Callback) -> Self {
        Self { callback: Some(callback), ..self }
    }

    const fn lets_timer_call(self) -> Self {
        Self { calls_later: true, ..self }
    }

    const fn formats_text(self) -> Self {
        Self { prints: true, ..self }
    }

    const fn defers_work(self) -> Self {
        Self { waits_for_end: true, ..self }
    }

    /// It takes the packet, and reads nothing of its own area.
    const fn leaves_area(self) -> Self {
        Self { leaves_area: true, ..self }
    }

    const fn lacks(self, what: &'static str) -> Self {
        Self { needs: Some(what), ..self }
    }
}

/// A helper of all program types.
const fn all() -> Helper {
    Helper::of(Callers::All)
}

/// A helper of XDP programs.
const fn xdp() -> Helper {
    Helper::of(Callers::Xdp)
}

/// A helper of TC classifiers.
const fn tc() -> Helper {
    Helper::of(Callers::SchedCls)
}

/// A helper of XDP programs and TC classifiers.
const fn xdp_and_tc() -> Helper {
    Helper::of(Callers::XdpAndSchedCls)
}

/// A helper of the types whose context is a `__sk_buff`: socket filters and TC classifiers.
const fn skb() -> Helper {
    Helper::of(Callers::SkBuff)
}

/// A helper of none of the program types here.
const fn no_type() -> Helper {
    Helper::of(Callers::None)
}

macro_rules! helpers {
    ($($number:literal $id:ident $name:literal => $row:expr;)*) => {
        /// Number of a helper in call instructions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum HelperId {
            $(#[doc = concat!("`", $name, "`")] $id = $number,)*
        }

        static HELPERS: &[Helper] = {
            use Arg::*;
            use Callback::{Count, Elements};
            use Return::{
                DynptrMemoryOrNull, MapValueOrNull, Nothing, RecordOrNull, Scalar as Number, SockCommonOrNull,
                SocketOrNull,
            };
            &[$(Helper { id: HelperId::$id, name: $name, ..$row },)*]
        };
    };
}

/// Numbers are dense from 1, so that a number is an index.
const _: () = {
    let mut index = 0;
    while index < HELPERS.len() {
        assert!(HELPERS[index].id as usize == index + 1, "the rows are not in the order of their numbers");
        index += 1;
    }
};

helpers! {
    1 MapLookupElem "bpf_map_lookup_elem" =>
        all().takes(&[Map, MapKey]).uses(MapUse::Lookup).returns(MapValueOrNull).packet_memory();
    2 MapUpdateElem "bpf_map_update_elem" =>
        all().takes(&[Map, MapKey, MapValue, Scalar]).uses(MapUse::Update).returns(Number).packet_memory().changes_elements();
    3 MapDeleteElem "bpf_map_delete_elem" =>
        all().takes(&[Map, MapKey]).uses(MapUse::Delete).returns(Number).packet_memory().changes_elements();
    4 ProbeRead "bpf_probe_read" => no_type();
    5 KtimeGetNs "bpf_ktime_get_ns" => all().takes(&[]).returns(Number);
    6 TracePrintk "bpf_trace_printk" =>
        all().takes(&[ReadMem, Size, Unchecked, Unchecked, Unchecked]).returns(Number).gpl_only().formats_text();
    7 GetPrandomU32 "bpf_get_prandom_u32" => all().takes(&[]).returns(Number);
    8 GetSmpProcessorId "bpf_get_smp_processor_id" => all().takes(&[]).returns(Number);
    9 SkbStoreBytes "bpf_skb_store_bytes" =>
        tc().takes(&[Context, Scalar, ReadMem, Size, Scalar]).returns(Number).moves_packet().leaves_area();
    10 L3CsumReplace "bpf_l3_csum_replace" =>
        tc().takes(&[Context, Scalar, Scalar, Scalar, Scalar]).returns(Number).moves_packet().leaves_area();
    11 L4CsumReplace "bpf_l4_csum_replace" =>
        tc().takes(&[Context, Scalar, Scalar, Scalar, Scalar]).returns(Number).moves_packet().leaves_area();
    12 TailCall "bpf_tail_call" => all().takes(&[Context, Map, Scalar]).uses(MapUse::TailCall).returns(Nothing);
    13 CloneRedirect "bpf_clone_redirect" => tc();
    14 GetCurrentPidTgid "bpf_get_current_pid_tgid" => all().lacks(TASKS);
    15 GetCurrentUidGid "bpf_get_current_uid_gid" => all().lacks(TASKS);
    16 GetCurrentComm "bpf_get_current_comm" => all().lacks(TASKS);
    17 GetCgroupClassid "bpf_get_cgroup_classid" => all().lacks(TASKS);
    18 SkbVlanPush "bpf_skb_vlan_push" =>
        tc().takes(&[Context, Scalar, Scalar]).returns(Number).moves_packet().defers_work();
    19 SkbVlanPop "bpf_skb_vlan_pop" => tc().takes(&[Context]).returns(Number).moves_packet().defers_work();
    20 SkbGetTunnelKey "bpf_skb_get_tunnel_key" =>
        tc().takes(&[Context, WriteMem, Size, Scalar]).returns(Number);
    21 SkbSetTunnelKey "bpf_skb_set_tunnel_key" =>
        tc().takes(&[Context, ReadMem, Size, Scalar]).returns(Number);
    22 PerfEventRead "bpf_perf_event_read" => all().gpl_only().lacks(TASKS);
    23 Redirect "bpf_redirect" => xdp_and_tc().takes(&[Scalar, Scalar]).returns(Number);
    24 GetRouteRealm "bpf_get_route_realm" => tc().takes(&[Context]).returns(Number).leaves_area();
    25 PerfEventOutput "bpf_perf_event_output" =>
        all().takes(&[Context, Map, Scalar, ReadMem, SizeOrZero]).uses(MapUse::PerfEvent).returns(Number).gpl_only().leaves_area();
    26 SkbLoadBytes "bpf_skb_load_bytes" => skb().takes(&[Context, Scalar, WriteMem, Size]).returns(Number).leaves_area();
    27 GetStackid "bpf_get_stackid" => no_type();
    28 CsumDiff "bpf_csum_diff" =>
        xdp_and_tc().takes(&[ReadMemOrNull, SizeOrZero, ReadMemOrNull, SizeOrZero, Scalar])
            .returns(Number).packet_memory();
    29 SkbGetTunnelOpt "bpf_skb_get_tunnel_opt" => tc().takes(&[Context, WriteMem, Size]).returns(Number);
    30 SkbSetTunnelOpt "bpf_skb_set_tunnel_opt" => tc().takes(&[Context, ReadMem, Size]).returns(Number);
    31 SkbChangeProto "bpf_skb_change_proto" =>
        tc().takes(&[Context, Scalar, Scalar]).returns(Number).moves_packet();
    32 SkbChangeType "bpf_skb_change_type" => tc().takes(&[Context, Scalar]).returns(Number);
    33 SkbUnderCgroup "bpf_skb_under_cgroup" => tc().lacks(TASKS);
    34 GetHashRecalc "bpf_get_hash_recalc" => tc().takes(&[Context]).returns(Number);
    35 GetCurrentTask "bpf_get_current_task" => all().gpl_only().lacks(TASKS);
    36 ProbeWriteUser "bpf_probe_write_user" => no_type();
    37 CurrentTaskUnderCgroup "bpf_current_task_under_cgroup" => all().lacks(TASKS);
    38 SkbChangeTail "bpf_skb_change_tail" =>
        tc().takes(&[Context, Scalar, Scalar]).returns(Number).moves_packet();
    39 SkbPullData "bpf_skb_pull_data" => tc().takes(&[Context, Scalar]).returns(Number).moves_packet().leaves_area();
    40 CsumUpdate "bpf_csum_update" => tc().takes(&[Context, Scalar]).returns(Number).leaves_area();
    41 SetHashInvalid "bpf_set_hash_invalid" => tc().takes(&[Context]).returns(Number);
    42 GetNumaNodeId "bpf_get_numa_node_id" => all().takes(&[]).returns(Number);
    43 SkbChangeHead "bpf_skb_change_head" =>
        tc().takes(&[Context, Scalar, Scalar]).returns(Number).moves_packet();
    44 XdpAdjustHead "bpf_xdp_adjust_head" => xdp().takes(&[Context, Scalar]).returns(Number).moves_packet();
    45 ProbeReadStr "bpf_probe_read_str" => no_type();
    46 GetSocketCookie "bpf_get_socket_cookie" => skb().takes(&[Context]).returns(Number).lacks(SOCKETS);
    47 GetSocketUid "bpf_get_socket_uid" => skb().takes(&[Context]).returns(Number).lacks(SOCKETS);
    48 SetHash "bpf_set_hash" => tc().takes(&[Context, Scalar]).returns(Number);
    49 Setsockopt "bpf_setsockopt" => no_type();
    50 SkbAdjustRoom "bpf_skb_adjust_room" =>
        tc().takes(&[Context, Scalar, Scalar, Scalar]).returns(Number).moves_packet();
    51 RedirectMap "bpf_redirect_map" => xdp().takes(&[Map, Scalar, Scalar]).uses(MapUse::Redirect).returns(Number);
    52 SkRedirectMap "bpf_sk_redirect_map" => no_type();
    53 SockMapUpdate "bpf_sock_map_update" => no_type();
    54 XdpAdjustMeta "bpf_xdp_adjust_meta" => xdp().takes(&[Context, Scalar]).returns(Number).moves_packet();
    55 PerfEventReadValue "bpf_perf_event_read_value" => all().gpl_only().lacks(TASKS);
    56 PerfProgReadValue "bpf_perf_prog_read_value" => no_type();
    57 Getsockopt "bpf_getsockopt" => no_type();
    58 OverrideReturn "bpf_override_return" => no_type();
    59 SockOpsCbFlagsSet "bpf_sock_ops_cb_flags_set" => no_type();
    60 MsgRedirectMap "bpf_msg_redirect_map" => no_type();
    61 MsgApplyBytes "bpf_msg_apply_bytes" => no_type();
    62 MsgCorkBytes "bpf_msg_cork_bytes" => no_type();
    63 MsgPullData "bpf_msg_pull_data" => no_type();
    64 Bind "bpf_bind" => no_type();
    65 XdpAdjustTail "bpf_xdp_adjust_tail" => xdp().takes(&[Context, Scalar]).returns(Number).moves_packet();
    66 SkbGetXfrmState "bpf_skb_get_xfrm_state" => tc().lacks(TUNNELS);
    67 GetStack "bpf_get_stack" => no_type();
    68 SkbLoadBytesRelative "bpf_skb_load_bytes_relative" =>
        skb().takes(&[Context, Scalar, WriteMem, Size, Scalar]).returns(Number);
    69 FibLookup "bpf_fib_lookup" =>
        xdp_and_tc().takes(&[Context, ReadWriteMem, Size, Scalar]).returns(Number).gpl_only().leaves_area();
    70 SockHashUpdate "bpf_sock_hash_update" => no_type();
    71 MsgRedirectHash "bpf_msg_redirect_hash" => no_type();
    72 SkRedirectHash "bpf_sk_redirect_hash" => no_type();
    73 LwtPushEncap "bpf_lwt_push_encap" => no_type();
    74 LwtSeg6StoreBytes "bpf_lwt_seg6_store_bytes" => no_type();
    75 LwtSeg6AdjustSrh "bpf_lwt_seg6_adjust_srh" => no_type();
    76 LwtSeg6Action "bpf_lwt_seg6_action" => no_type();
    77 RcRepeat "bpf_rc_repeat" => no_type();
    78 RcKeydown "bpf_rc_keydown" => no_type();
    79 SkbCgroupId "bpf_skb_cgroup_id" => tc().lacks(TASKS);
    80 GetCurrentCgroupId "bpf_get_current_cgroup_id" => all().lacks(TASKS);
    81 GetLocalStorage "bpf_get_local_storage" => no_type();
    82 SkSelectReuseport "bpf_sk_select_reuseport" => no_type();
    83 SkbAncestorCgroupId "bpf_skb_ancestor_cgroup_id" => tc().lacks(TASKS);
    84 SkLookupTcp "bpf_sk_lookup_tcp" =>
        xdp_and_tc().takes(&[Context, ReadMem, SizeOrZero, Scalar, Scalar])
            .returns(SocketOrNull).packet_memory();
    85 SkLookupUdp "bpf_sk_lookup_udp" =>
        xdp_and_tc().takes(&[Context, ReadMem, SizeOrZero, Scalar, Scalar])
            .returns(SocketOrNull).packet_memory();
    86 SkRelease "bpf_sk_release" => xdp_and_tc().takes(&[ReleasedSocket]).returns(Number);
    87 MapPushElem "bpf_map_push_elem" =>
        all().takes(&[Map, MapValue, Scalar]).uses(MapUse::Push).returns(Number).packet_memory().changes_elements();
    88 MapPopElem "bpf_map_pop_elem" => all().takes(&[Map, NextValue]).uses(MapUse::Pop).returns(Number).changes_elements();
    89 MapPeekElem "bpf_map_peek_elem" => all().takes(&[Map, NextValue]).uses(MapUse::Peek).returns(Number);
    90 MsgPushData "bpf_msg_push_data" => no_type();
    91 MsgPopData "bpf_msg_pop_data" => no_type();
    92 RcPointerRel "bpf_rc_pointer_rel" => no_type();
    93 SpinLock "bpf_spin_lock" => all().takes(&[SpinLock]).returns(Nothing);
    94 SpinUnlock "bpf_spin_unlock" => all().takes(&[HeldSpinLock]).returns(Nothing);
    95 SkFullsock "bpf_sk_fullsock" => tc().lacks(SOCKETS);
    96 TcpSock "bpf_tcp_sock" => tc().lacks(SOCKETS);
    97 SkbEcnSetCe "bpf_skb_ecn_set_ce" => tc().takes(&[Context]).returns(Number);
    98 GetListenerSock "bpf_get_listener_sock" => tc().lacks(SOCKETS);
    99 SkcLookupTcp "bpf_skc_lookup_tcp" =>
        xdp_and_tc().takes(&[Context, ReadMem, SizeOrZero, Scalar, Scalar])
            .returns(SockCommonOrNull).packet_memory();
    100 TcpCheckSyncookie "bpf_tcp_check_syncookie" =>
        xdp_and_tc().takes(&[Socket, ReadMem, Size, ReadMem, Size])
            .returns(Number).gpl_only().packet_memory();
    101 SysctlGetName "bpf_sysctl_get_name" => no_type();
    102 SysctlGetCurrentValue "bpf_sysctl_get_current_value" => no_type();
    103 SysctlGetNewValue "bpf_sysctl_get_new_value" => no_type();
    104 SysctlSetNewValue "bpf_sysctl_set_new_value" => no_type();
    105 Strtol "bpf_strtol" => all().takes(&[ReadMem, Size, Scalar, WriteBytes(8)]).returns(Number);
    106 Strtoul "bpf_strtoul" => all().takes(&[ReadMem, Size, Scalar, WriteBytes(8)]).returns(Number);
    107 SkStorageGet "bpf_sk_storage_get" => tc().lacks(SOCKETS);
    108 SkStorageDelete "bpf_sk_storage_delete" => tc().lacks(SOCKETS);
    109 SendSignal "bpf_send_signal" => all().lacks(TASKS);
    110 TcpGenSyncookie "bpf_tcp_gen_syncookie" =>
        xdp_and_tc().takes(&[Socket, ReadMem, Size, ReadMem, Size])
            .returns(Number).gpl_only().packet_memory();
    111 SkbOutput "bpf_skb_output" => no_type();
    112 ProbeReadUser "bpf_probe_read_user" => all().gpl_only().lacks(TASKS);
    113 ProbeReadKernel "bpf_probe_read_kernel" =>
        all().takes(&[WriteMem, SizeOrZero, Scalar]).returns(Number).gpl_only();
    114 ProbeReadUserStr "bpf_probe_read_user_str" => all().gpl_only().lacks(TASKS);
    115 ProbeReadKernelStr "bpf_probe_read_kernel_str" => all().gpl_only().lacks(TASKS);
    116 TcpSendAck "bpf_tcp_send_ack" => no_type();
    117 SendSignalThread "bpf_send_signal_thread" => all().lacks(TASKS);
    118 Jiffies64 "bpf_jiffies64" => all().takes(&[]).returns(Number);
    119 ReadBranchRecords "bpf_read_branch_records" => no_type();
    120 GetNsCurrentPidTgid "bpf_get_ns_current_pid_tgid" => all().lacks(TASKS);
    121 XdpOutput "bpf_xdp_output" => no_type();
    122 GetNetnsCookie "bpf_get_netns_cookie" => skb().lacks(SOCKETS);
    123 GetCurrentAncestorCgroupId "bpf_get_current_ancestor_cgroup_id" => all().lacks(TASKS);
    124 SkAssign "bpf_sk_assign" => tc().takes(&[Context, Socket, Scalar]).returns(Number);
    125 KtimeGetBootNs "bpf_ktime_get_boot_ns" => all().takes(&[]).returns(Number);
    126 SeqPrintf "bpf_seq_printf" => no_type();
    127 SeqWrite "bpf_seq_write" => no_type();
    128 SkCgroupId "bpf_sk_cgroup_id" => no_type();
    129 SkAncestorCgroupId "bpf_sk_ancestor_cgroup_id" => no_type();
    130 RingbufOutput "bpf_ringbuf_output" =>
        all().takes(&[Map, ReadMem, SizeOrZero, Scalar]).uses(MapUse::RingBuffer).returns(Number);
    131 RingbufReserve "bpf_ringbuf_reserve" => all().takes(&[Map, RecordSize, Scalar]).uses(MapUse::RingBuffer).returns(RecordOrNull);
    132 RingbufSubmit "bpf_ringbuf_submit" => all().takes(&[Record, Scalar]).returns(Nothing);
    133 RingbufDiscard "bpf_ringbuf_discard" => all().takes(&[Record, Scalar]).returns(Nothing);
    134 RingbufQuery "bpf_ringbuf_query" => all().takes(&[Map, Scalar]).uses(MapUse::RingBuffer).returns(Number);
    135 CsumLevel "bpf_csum_level" => tc().takes(&[Context, Scalar]).returns(Number);
    136 SkcToTcp6Sock "bpf_skc_to_tcp6_sock" => all().lacks(SOCKETS);
    137 SkcToTcpSock "bpf_skc_to_tcp_sock" => all().lacks(SOCKETS);
    138 SkcToTcpTimewaitSock "bpf_skc_to_tcp_timewait_sock" => all().lacks(SOCKETS);
    139 SkcToTcpRequestSock "bpf_skc_to_tcp_request_sock" => all().lacks(SOCKETS);
    140 SkcToUdp6Sock "bpf_skc_to_udp6_sock" => all().lacks(SOCKETS);
    141 GetTaskStack "bpf_get_task_stack" => all().lacks(TASKS);
    142 LoadHdrOpt "bpf_load_hdr_opt" => no_type();
    143 StoreHdrOpt "bpf_store_hdr_opt" => no_type();
    144 ReserveHdrOpt "bpf_reserve_hdr_opt" => no_type();
    145 InodeStorageGet "bpf_inode_storage_get" => no_type();
    146 InodeStorageDelete "bpf_inode_storage_delete" => no_type();
    147 DPath "bpf_d_path" => no_type();
    148 CopyFromUser "bpf_copy_from_user" => all().lacks(TASKS);
    149 SnprintfBtf "bpf_snprintf_btf" => all().lacks(TASKS);
    150 SeqPrintfBtf "bpf_seq_printf_btf" => no_type();
    151 SkbCgroupClassid "bpf_skb_cgroup_classid" => tc().lacks(TASKS);
    152 RedirectNeigh "bpf_redirect_neigh" =>
        tc().takes(&[Scalar, ReadMemOrNull, SizeOrZero, Scalar]).returns(Number);
    153 PerCpuPtr "bpf_per_cpu_ptr" => all().lacks(TASKS);
    154 ThisCpuPtr "bpf_this_cpu_ptr" => all().lacks(TASKS);
    155 RedirectPeer "bpf_redirect_peer" => tc().takes(&[Scalar, Scalar]).returns(Number);
    156 TaskStorageGet "bpf_task_storage_get" => all().lacks(TASKS);
    157 TaskStorageDelete "bpf_task_storage_delete" => all().lacks(TASKS);
    158 GetCurrentTaskBtf "bpf_get_current_task_btf" => all().gpl_only().lacks(TASKS);
    159 BprmOptsSet "bpf_bprm_opts_set" => no_type();
    160 KtimeGetCoarseNs "bpf_ktime_get_coarse_ns" => all().takes(&[]).returns(Number);
    161 ImaInodeHash "bpf_ima_inode_hash" => no_type();
    162 SockFromFile "bpf_sock_from_file" => no_type();
    163 CheckMtu "bpf_check_mtu" =>
        xdp_and_tc().takes(&[Context, Scalar, ReadWriteBytes(4), Scalar, Scalar]).returns(Number).gpl_only().leaves_area();
    164 ForEachMapElem "bpf_for_each_map_elem" =>
        all().takes(&[Map, Function, StackOrNull, Scalar]).uses(MapUse::ForEach).returns(Number).calls_back(Elements);
    165 Snprintf "bpf_snprintf" =>
        all().takes(&[WriteMemOrNull, SizeOrZero, Text, ReadMemOrNull, SizeOrZero])
            .returns(Number).gpl_only().formats_text();
    166 SysBpf "bpf_sys_bpf" => no_type();
    167 BtfFindByNameKind "bpf_btf_find_by_name_kind" => no_type();
    168 SysClose "bpf_sys_close" => no_type();
    169 TimerInit "bpf_timer_init" => all().takes(&[Timer, Map, Scalar]).returns(Number).gpl_only();
    170 TimerSetCallback "bpf_timer_set_callback" =>
        all().takes(&[Timer, Function]).returns(Number).gpl_only().lets_timer_call();
    171 TimerStart "bpf_timer_start" => all().takes(&[Timer, Scalar, Scalar]).returns(Number).gpl_only();
    172 TimerCancel "bpf_timer_cancel" => all().takes(&[Timer]).returns(Number).gpl_only();
    173 GetFuncIp "bpf_get_func_ip" => no_type();
    174 GetAttachCookie "bpf_get_attach_cookie" => no_type();
    175 TaskPtRegs "bpf_task_pt_regs" => all().gpl_only().lacks(TASKS);
    176 GetBranchSnapshot "bpf_get_branch_snapshot" => all().gpl_only().lacks(TASKS);
    177 TraceVprintk "bpf_trace_vprintk" =>
        all().takes(&[ReadMem, Size, ReadMemOrNull, SizeOrZero]).returns(Number).gpl_only().formats_text();
    178 SkcToUnixSock "bpf_skc_to_unix_sock" => all().lacks(SOCKETS);
    179 KallsymsLookupName "bpf_kallsyms_lookup_name" => no_type();
    180 FindVma "bpf_find_vma" => all().lacks(TASKS);
    181 Loop "bpf_loop" =>
        all().takes(&[Scalar, Function, StackOrNull, Scalar]).returns(Number).calls_back(Count);
    182 Strncmp "bpf_strncmp" => all().takes(&[ReadMem, Size, Text]).returns(Number);
    183 GetFuncArg "bpf_get_func_arg" => no_type();
    184 GetFuncRet "bpf_get_func_ret" => no_type();
    185 GetFuncArgCnt "bpf_get_func_arg_cnt" => no_type();
    186 GetRetval "bpf_get_retval" => no_type();
    187 SetRetval "bpf_set_retval" => no_type();
    188 XdpGetBuffLen "bpf_xdp_get_buff_len" => xdp().takes(&[Context]).returns(Number);
    189 XdpLoadBytes "bpf_xdp_load_bytes" => xdp().takes(&[Context, Scalar, WriteMem, Size]).returns(Number);
    190 XdpStoreBytes "bpf_xdp_store_bytes" => xdp().takes(&[Context, Scalar, ReadMem, Size]).returns(Number);
    191 CopyFromUserTask "bpf_copy_from_user_task" => all().gpl_only().lacks(TASKS);
    192 SkbSetTstamp "bpf_skb_set_tstamp" => tc().takes(&[Context, Scalar, Scalar]).returns(Number);
    193 ImaFileHash "bpf_ima_file_hash" => no_type();
    194 KptrXchg "bpf_kptr_xchg" => all().lacks(TASKS);
    195 MapLookupPercpuElem "bpf_map_lookup_percpu_elem" =>
        all().takes(&[Map, MapKey, Scalar]).uses(MapUse::LookupPerCpu).returns(MapValueOrNull).packet_memory();
    196 SkcToMptcpSock "bpf_skc_to_mptcp_sock" => all().lacks(SOCKETS);
    197 DynptrFromMem "bpf_dynptr_from_mem" =>
        all().takes(&[ReadWriteMem, SizeOrZero, Scalar, NewValueDynptr]).returns(Number);
    198 RingbufReserveDynptr "bpf_ringbuf_reserve_dynptr" =>
        all().takes(&[Map, Scalar, Scalar, NewRecordDynptr]).uses(MapUse::RingBuffer).returns(Number);
    199 RingbufSubmitDynptr "bpf_ringbuf_submit_dynptr" =>
        all().takes(&[ReleasedDynptr, Scalar]).returns(Nothing);
    200 RingbufDiscardDynptr "bpf_ringbuf_discard_dynptr" =>
        all().takes(&[ReleasedDynptr, Scalar]).returns(Nothing);
    201 DynptrRead "bpf_dynptr_read" =>
        all().takes(&[WriteMem, SizeOrZero, Dynptr, Scalar, Scalar]).returns(Number);
    202 DynptrWrite "bpf_dynptr_write" =>
        all().takes(&[Dynptr, Scalar, ReadMem, SizeOrZero, Scalar]).returns(Number);
    203 DynptrData "bpf_dynptr_data" =>
        all().takes(&[Dynptr, Scalar, RecordSize]).returns(DynptrMemoryOrNull);
    204 TcpRawGenSyncookieIpv4 "bpf_tcp_raw_gen_syncookie_ipv4" =>
        xdp_and_tc().takes(&[ReadBytes(20), ReadMem, SizeOrZero]).returns(Number).gpl_only().packet_memory();
    205 TcpRawGenSyncookieIpv6 "bpf_tcp_raw_gen_syncookie_ipv6" =>
        xdp_and_tc().takes(&[ReadBytes(40), ReadMem, SizeOrZero]).returns(Number).gpl_only().packet_memory();
    206 TcpRawCheckSyncookieIpv4 "bpf_tcp_raw_check_syncookie_ipv4" =>
        xdp_and_tc().takes(&[ReadBytes(20), ReadBytes(20)]).returns(Number).gpl_only().packet_memory();
    207 TcpRawCheckSyncookieIpv6 "bpf_tcp_raw_check_syncookie_ipv6" =>
        xdp_and_tc().takes(&[ReadBytes(40), ReadBytes(20)]).returns(Number).gpl_only().packet_memory();
    208 KtimeGetTaiNs "bpf_ktime_get_tai_ns" => all().takes(&[]).returns(Number);
    209 UserRingbufDrain "bpf_user_ringbuf_drain" => all().lacks(USER_RING_BUFFERS);
    210 CgrpStorageGet "bpf_cgrp_storage_get" => all().lacks(TASKS);
    211 CgrpStorageDelete "bpf_cgrp_storage_delete" => all().lacks(TASKS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_found_by_number_and_name() {
        for helper in Helper::all() {
            assert_eq!(Helper::from_imm(helper.id.imm()), Some(helper));
            assert_eq!(helper.id.row(), helper);
            assert_eq!(Helper::from_name(helper.name), Some(helper));
        }
        assert_eq!([i32::MIN, 0, HELPERS.len() as i32 + 1].map(HelperId::from_imm), [None; 3]);
    }

    #[test]
    fn helpers_that_call_back_take_a_function() {
        for helper in Helper::all() {
            let takes = helper.prototype.is_some_and(|p| p.args.contains(&Arg::Function));
            assert_eq!(takes, helper.callback().is_some() || helper.calls_later(), "{}", helper.name);
        }
    }

    #[test]
    fn every_size_follows_its_memory() {
        for helper in Helper::all() {
            let args = helper.prototype.map_or(&[][..], |p| p.args);
            for pair in args.windows(2) {
                let memory = matches!(
                    pair[0],
                    Arg::ReadMem
                        | Arg::ReadMemOrNull
                        | Arg::WriteMem
                        | Arg::WriteMemOrNull
                        | Arg::ReadWriteMem
                );
                let size = matches!(pair[1], Arg::Size | Arg::SizeOrZero);
                assert_eq!(memory, size, "{}", helper.name);
            }
        }
    }
}
