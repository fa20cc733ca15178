//! The helpers of the kernel's UAPI: number, name and, where Paceline knows it, the prototype.
//!
//! This is the one table that the assembler, the engines, the verifier and the documentation read. A helper with a
//! prototype can be verified; which can be called as well, the engine knows (`paceline_vm::has_helper`). One that
//! cannot is refused at load, by its name. Numbers and names are those of
//! `___BPF_FUNC_MAPPER` in `include/uapi/linux/bpf.h`; prototypes follow `struct bpf_func_proto` of each helper.

use crate::{MapKind, MapUse, ObjectKind};

/// What a helper takes in one of `r1` to `r5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arg {
    /// Any number; pointers as well, whose value is then taken as a number.
    Scalar,
    /// Whatever is there, even in a register that was never set.
    Unchecked,
    /// The program's context.
    Context,
    /// A map.
    Map,
    /// Pointer to a key of the map in an earlier argument.
    MapKey,
    /// Pointer to a value of the map in an earlier argument.
    MapValue,
    /// Pointer to memory for a value of the map in an earlier argument, which the helper writes; to the value that is looked
    /// for where the map is a Bloom filter.
    NextValue,
    /// Pointer to memory that is read; the next argument is its size.
    ReadMem,
    /// The same, or null: known to be null only with a size of zero, but a pointer that was not compared with null
    /// yet is taken with any size, and the helper reads nothing if it is null.
    ReadMemOrNull,
    /// Pointer to memory that is written; the next argument is its size.
    WriteMem,
    /// The same, or null, as for [`ReadMemOrNull`](Self::ReadMemOrNull).
    WriteMemOrNull,
    /// Pointer to memory that is read and written; the next argument is its size.
    ReadWriteMem,
    /// Pointer to so many bytes that are read.
    ReadBytes(u32),
    /// Pointer to so many bytes that are written, at a multiple of their number.
    WriteBytes(u32),
    /// Pointer to so many bytes that are read and written, at a multiple of their number.
    ReadWriteBytes(u32),
    /// Pointer to a dynptr on the stack.
    Dynptr,
    /// Pointer to stack that becomes a dynptr to the memory in the first argument, which must be of a map value.
    NewValueDynptr,
    /// Pointer to stack that becomes a dynptr to a new record of a ring buffer, which the program must give back.
    NewRecordDynptr,
    /// Pointer to a dynptr to a record of a ring buffer. The program no longer has it afterwards.
    ReleasedDynptr,
    /// Pointer to text in a value that nobody can change any more, which ends in a zero byte there.
    Text,
    /// Size in bytes of the memory in the argument before, at least 1.
    Size,
    /// Size in bytes of the memory in the argument before, which may be 0.
    SizeOrZero,
    /// Size in bytes of the record that is returned: a number that is known when the program is verified.
    RecordSize,
    /// Pointer to the `bpf_spin_lock` of a map value. The program has it afterwards.
    SpinLock,
    /// The same lock. The program no longer has it afterwards.
    HeldSpinLock,
    /// Pointer to the `bpf_timer` of a map value; a map in a later argument must be the value's.
    Timer,
    /// A ring buffer's record, as it was returned. The program no longer has it afterwards.
    Record,
    /// A socket, or the common part of one (`ARG_PTR_TO_BTF_ID_SOCK_COMMON`).
    Socket,
    /// The same, as it was returned. The program no longer has it afterwards.
    ReleasedSocket,
    /// A function of the program, which the helper calls ([`Helper::callback`]), or which is called later
    /// ([`Helper::calls_later`]).
    Function,
    /// Pointer to the stack, or null: what the function in the argument before is given.
    StackOrNull,
}

/// How a helper calls the function that it is given: until that returns 1, or there is no more to call it for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callback {
    /// As often as the first argument says, with the number of the call, from 0, and the third argument.
    Count,
    /// For each element of the map in the first argument, with the map, the key, the value and the third argument.
    Elements,
}

/// What a helper returns in `r0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Return {
    /// A number.
    Scalar,
    /// Nothing: `r0` is not set afterwards.
    Nothing,
    /// Pointer to a value of the map among the arguments, or null.
    MapValueOrNull,
    /// A ring buffer's record of the size among the arguments, or null. The program must give it back.
    RecordOrNull,
    /// Pointer to as many bytes of a dynptr as an argument says, or null.
    DynptrMemoryOrNull,
    /// A socket, or null. The program must give it back.
    SocketOrNull,
    /// The common part of a socket, or null. The program must give it back.
    SockCommonOrNull,
}

impl Return {
    /// The kind of the object that is returned, which the program must give back.
    #[must_use]
    pub const fn object(self) -> Option<ObjectKind> {
        match self {
            Self::SocketOrNull => Some(ObjectKind::Socket),
            Self::SockCommonOrNull => Some(ObjectKind::SockCommon),
            _ => None,
        }
    }
}

/// Arguments and result of a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prototype {
    /// Arguments in order, at most five.
    pub args: &'static [Arg],
    /// Result.
    pub returns: Return,
    /// Whether the packet may lie elsewhere afterwards, so that pointers to it are stale.
    pub moves_packet: bool,
}

/// A helper function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Helper {
    /// Number in call instructions.
    pub id: u32,
    /// Name, with its `bpf_`.
    pub name: &'static str,
    /// Arguments and result; `None` for helpers that the verifier does not know.
    pub prototype: Option<Prototype>,
}

impl Helper {
    /// Number of `bpf_tail_call`, which is no function but a jump: engines compile it.
    pub const TAIL_CALL: i32 = 12;
    /// Number of `bpf_timer_set_callback`.
    pub const TIMER_SET_CALLBACK: i32 = 170;
    /// Number of `bpf_redirect`.
    pub const REDIRECT: i32 = 23;
    /// Number of `bpf_redirect_map`.
    pub const REDIRECT_MAP: i32 = 51;

    /// The helper of a number.
    #[must_use]
    pub fn from_id(id: u32) -> Option<&'static Self> {
        // Numbers are dense from 1.
        HELPERS.get((id as usize).checked_sub(1)?)
    }

    /// The helper of a name, with or without its `bpf_`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<&'static Self> {
        let bare = name.strip_prefix("bpf_").unwrap_or(name);
        HELPERS.iter().find(|helper| &helper.name[4..] == bare)
    }

    /// Whether the helper can be called on a map of a kind (`check_map_func_compatibility` in `kernel/bpf/verifier.c`).
    #[must_use]
    pub fn takes_map(&self, kind: MapKind) -> bool {
        self.map_use().is_none_or(|by| kind.has_use(by))
    }

    /// The use that the helper makes of the map among its arguments; `None` if it takes maps of every kind, or none.
    #[must_use]
    pub fn map_use(&self) -> Option<MapUse> {
        Some(match self.name {
            "bpf_map_lookup_elem" => MapUse::Lookup,
            "bpf_map_lookup_percpu_elem" => MapUse::LookupPerCpu,
            "bpf_map_update_elem" => MapUse::Update,
            "bpf_map_delete_elem" => MapUse::Delete,
            "bpf_for_each_map_elem" => MapUse::ForEach,
            "bpf_map_push_elem" => MapUse::Push,
            "bpf_map_pop_elem" => MapUse::Pop,
            "bpf_map_peek_elem" => MapUse::Peek,
            "bpf_redirect_map" => MapUse::Redirect,
            "bpf_ringbuf_output"
            | "bpf_ringbuf_reserve"
            | "bpf_ringbuf_query"
            | "bpf_ringbuf_reserve_dynptr" => MapUse::RingBuffer,
            "bpf_perf_event_output" => MapUse::PerfEvent,
            "bpf_tail_call" => MapUse::TailCall,
            _ => return None,
        })
    }

    /// Whether it changes the elements of the map that it is called on.
    #[must_use]
    pub fn changes_map(&self) -> bool {
        matches!(
            self.name,
            "bpf_map_update_elem" | "bpf_map_delete_elem" | "bpf_map_push_elem" | "bpf_map_pop_elem"
        )
    }

    /// Whether it prints what lies at addresses that its format tells of: `bpf_trace_printk`, `bpf_snprintf`, `bpf_trace_vprintk`.
    #[must_use]
    pub const fn prints(id: i32) -> bool {
        matches!(id, 6 | 165 | 177)
    }

    /// How it calls a function of the program, if it does (`set_loop_callback_state`, `set_map_elem_callback_state` in
    /// `kernel/bpf/verifier.c`).
    #[must_use]
    pub fn callback(&self) -> Option<Callback> {
        match self.name {
            "bpf_loop" => Some(Callback::Count),
            "bpf_for_each_map_elem" => Some(Callback::Elements),
            _ => None,
        }
    }

    /// Whether it lets a timer call a function of the program when that is due: with the map, the key and the value that the
    /// timer is in, and without a packet (`set_timer_callback_state`).
    #[must_use]
    pub fn calls_later(&self) -> bool {
        self.id == Self::TIMER_SET_CALLBACK as u32
    }

    /// Whether it leaves something to the end of the run: a VLAN tag beside the packet.
    #[must_use]
    pub fn waits_for_end(&self) -> bool {
        matches!(self.name, "bpf_skb_vlan_push" | "bpf_skb_vlan_pop")
    }

    /// All helpers, by rising number.
    #[must_use]
    pub fn all() -> &'static [Self] {
        HELPERS
    }
}

macro_rules! helpers {
    ($($id:literal $name:ident $(: ($($arg:ident $(($bytes:literal))?),*) -> $ret:ident $(, $moves:ident packet)?)?;)*) => {
        static HELPERS: &[Helper] = &[$(Helper {
            id: $id,
            name: stringify!($name),
            prototype: helpers!(@prototype $(($($arg $(($bytes))?),*) -> $ret $(, $moves)?)?),
        },)*];
    };
    (@prototype) => { None };
    (@prototype ($($arg:ident $(($bytes:literal))?),*) -> $ret:ident $(, $moves:ident)?) => {
        Some(Prototype {
            args: &[$(Arg::$arg $(($bytes))?),*],
            returns: Return::$ret,
            moves_packet: helpers!(@moves $($moves)?),
        })
    };
    (@moves) => { false };
    (@moves moves) => { true };
}

helpers! {
    1 bpf_map_lookup_elem: (Map, MapKey) -> MapValueOrNull;
    2 bpf_map_update_elem: (Map, MapKey, MapValue, Scalar) -> Scalar;
    3 bpf_map_delete_elem: (Map, MapKey) -> Scalar;
    4 bpf_probe_read;
    5 bpf_ktime_get_ns: () -> Scalar;
    6 bpf_trace_printk: (ReadMem, Size, Unchecked, Unchecked, Unchecked) -> Scalar;
    7 bpf_get_prandom_u32: () -> Scalar;
    8 bpf_get_smp_processor_id: () -> Scalar;
    9 bpf_skb_store_bytes: (Context, Scalar, ReadMem, Size, Scalar) -> Scalar, moves packet;
    10 bpf_l3_csum_replace: (Context, Scalar, Scalar, Scalar, Scalar) -> Scalar, moves packet;
    11 bpf_l4_csum_replace: (Context, Scalar, Scalar, Scalar, Scalar) -> Scalar, moves packet;
    12 bpf_tail_call: (Context, Map, Scalar) -> Nothing;
    13 bpf_clone_redirect;
    14 bpf_get_current_pid_tgid;
    15 bpf_get_current_uid_gid;
    16 bpf_get_current_comm;
    17 bpf_get_cgroup_classid;
    18 bpf_skb_vlan_push: (Context, Scalar, Scalar) -> Scalar, moves packet;
    19 bpf_skb_vlan_pop: (Context) -> Scalar, moves packet;
    20 bpf_skb_get_tunnel_key;
    21 bpf_skb_set_tunnel_key;
    22 bpf_perf_event_read;
    23 bpf_redirect: (Scalar, Scalar) -> Scalar;
    24 bpf_get_route_realm: (Context) -> Scalar;
    25 bpf_perf_event_output: (Context, Map, Scalar, ReadMem, SizeOrZero) -> Scalar;
    26 bpf_skb_load_bytes: (Context, Scalar, WriteMem, Size) -> Scalar;
    27 bpf_get_stackid;
    28 bpf_csum_diff: (ReadMemOrNull, SizeOrZero, ReadMemOrNull, SizeOrZero, Scalar) -> Scalar;
    29 bpf_skb_get_tunnel_opt;
    30 bpf_skb_set_tunnel_opt;
    31 bpf_skb_change_proto: (Context, Scalar, Scalar) -> Scalar, moves packet;
    32 bpf_skb_change_type: (Context, Scalar) -> Scalar;
    33 bpf_skb_under_cgroup;
    34 bpf_get_hash_recalc: (Context) -> Scalar;
    35 bpf_get_current_task;
    36 bpf_probe_write_user;
    37 bpf_current_task_under_cgroup;
    38 bpf_skb_change_tail: (Context, Scalar, Scalar) -> Scalar, moves packet;
    39 bpf_skb_pull_data: (Context, Scalar) -> Scalar, moves packet;
    40 bpf_csum_update: (Context, Scalar) -> Scalar;
    41 bpf_set_hash_invalid: (Context) -> Scalar;
    42 bpf_get_numa_node_id: () -> Scalar;
    43 bpf_skb_change_head: (Context, Scalar, Scalar) -> Scalar, moves packet;
    44 bpf_xdp_adjust_head: (Context, Scalar) -> Scalar, moves packet;
    45 bpf_probe_read_str;
    46 bpf_get_socket_cookie: (Context) -> Scalar;
    47 bpf_get_socket_uid: (Context) -> Scalar;
    48 bpf_set_hash: (Context, Scalar) -> Scalar;
    49 bpf_setsockopt;
    50 bpf_skb_adjust_room: (Context, Scalar, Scalar, Scalar) -> Scalar, moves packet;
    51 bpf_redirect_map: (Map, Scalar, Scalar) -> Scalar;
    52 bpf_sk_redirect_map;
    53 bpf_sock_map_update;
    54 bpf_xdp_adjust_meta: (Context, Scalar) -> Scalar, moves packet;
    55 bpf_perf_event_read_value;
    56 bpf_perf_prog_read_value;
    57 bpf_getsockopt;
    58 bpf_override_return;
    59 bpf_sock_ops_cb_flags_set;
    60 bpf_msg_redirect_map;
    61 bpf_msg_apply_bytes;
    62 bpf_msg_cork_bytes;
    63 bpf_msg_pull_data;
    64 bpf_bind;
    65 bpf_xdp_adjust_tail: (Context, Scalar) -> Scalar, moves packet;
    66 bpf_skb_get_xfrm_state;
    67 bpf_get_stack;
    68 bpf_skb_load_bytes_relative: (Context, Scalar, WriteMem, Size, Scalar) -> Scalar;
    69 bpf_fib_lookup: (Context, ReadWriteMem, Size, Scalar) -> Scalar;
    70 bpf_sock_hash_update;
    71 bpf_msg_redirect_hash;
    72 bpf_sk_redirect_hash;
    73 bpf_lwt_push_encap;
    74 bpf_lwt_seg6_store_bytes;
    75 bpf_lwt_seg6_adjust_srh;
    76 bpf_lwt_seg6_action;
    77 bpf_rc_repeat;
    78 bpf_rc_keydown;
    79 bpf_skb_cgroup_id;
    80 bpf_get_current_cgroup_id;
    81 bpf_get_local_storage;
    82 bpf_sk_select_reuseport;
    83 bpf_skb_ancestor_cgroup_id;
    84 bpf_sk_lookup_tcp: (Context, ReadMem, SizeOrZero, Scalar, Scalar) -> SocketOrNull;
    85 bpf_sk_lookup_udp: (Context, ReadMem, SizeOrZero, Scalar, Scalar) -> SocketOrNull;
    86 bpf_sk_release: (ReleasedSocket) -> Scalar;
    87 bpf_map_push_elem: (Map, MapValue, Scalar) -> Scalar;
    88 bpf_map_pop_elem: (Map, NextValue) -> Scalar;
    89 bpf_map_peek_elem: (Map, NextValue) -> Scalar;
    90 bpf_msg_push_data;
    91 bpf_msg_pop_data;
    92 bpf_rc_pointer_rel;
    93 bpf_spin_lock: (SpinLock) -> Nothing;
    94 bpf_spin_unlock: (HeldSpinLock) -> Nothing;
    95 bpf_sk_fullsock;
    96 bpf_tcp_sock;
    97 bpf_skb_ecn_set_ce: (Context) -> Scalar;
    98 bpf_get_listener_sock;
    99 bpf_skc_lookup_tcp: (Context, ReadMem, SizeOrZero, Scalar, Scalar) -> SockCommonOrNull;
    100 bpf_tcp_check_syncookie: (Socket, ReadMem, Size, ReadMem, Size) -> Scalar;
    101 bpf_sysctl_get_name;
    102 bpf_sysctl_get_current_value;
    103 bpf_sysctl_get_new_value;
    104 bpf_sysctl_set_new_value;
    105 bpf_strtol: (ReadMem, Size, Scalar, WriteBytes(8)) -> Scalar;
    106 bpf_strtoul: (ReadMem, Size, Scalar, WriteBytes(8)) -> Scalar;
    107 bpf_sk_storage_get;
    108 bpf_sk_storage_delete;
    109 bpf_send_signal;
    110 bpf_tcp_gen_syncookie: (Socket, ReadMem, Size, ReadMem, Size) -> Scalar;
    111 bpf_skb_output;
    112 bpf_probe_read_user;
    113 bpf_probe_read_kernel: (WriteMem, SizeOrZero, Scalar) -> Scalar;
    114 bpf_probe_read_user_str;
    115 bpf_probe_read_kernel_str;
    116 bpf_tcp_send_ack;
    117 bpf_send_signal_thread;
    118 bpf_jiffies64: () -> Scalar;
    119 bpf_read_branch_records;
    120 bpf_get_ns_current_pid_tgid;
    121 bpf_xdp_output;
    122 bpf_get_netns_cookie;
    123 bpf_get_current_ancestor_cgroup_id;
    124 bpf_sk_assign;
    125 bpf_ktime_get_boot_ns: () -> Scalar;
    126 bpf_seq_printf;
    127 bpf_seq_write;
    128 bpf_sk_cgroup_id;
    129 bpf_sk_ancestor_cgroup_id;
    130 bpf_ringbuf_output: (Map, ReadMem, SizeOrZero, Scalar) -> Scalar;
    131 bpf_ringbuf_reserve: (Map, RecordSize, Scalar) -> RecordOrNull;
    132 bpf_ringbuf_submit: (Record, Scalar) -> Nothing;
    133 bpf_ringbuf_discard: (Record, Scalar) -> Nothing;
    134 bpf_ringbuf_query: (Map, Scalar) -> Scalar;
    135 bpf_csum_level: (Context, Scalar) -> Scalar;
    136 bpf_skc_to_tcp6_sock;
    137 bpf_skc_to_tcp_sock;
    138 bpf_skc_to_tcp_timewait_sock;
    139 bpf_skc_to_tcp_request_sock;
    140 bpf_skc_to_udp6_sock;
    141 bpf_get_task_stack;
    142 bpf_load_hdr_opt;
    143 bpf_store_hdr_opt;
    144 bpf_reserve_hdr_opt;
    145 bpf_inode_storage_get;
    146 bpf_inode_storage_delete;
    147 bpf_d_path;
    148 bpf_copy_from_user;
    149 bpf_snprintf_btf;
    150 bpf_seq_printf_btf;
    151 bpf_skb_cgroup_classid;
    152 bpf_redirect_neigh;
    153 bpf_per_cpu_ptr;
    154 bpf_this_cpu_ptr;
    155 bpf_redirect_peer: (Scalar, Scalar) -> Scalar;
    156 bpf_task_storage_get;
    157 bpf_task_storage_delete;
    158 bpf_get_current_task_btf;
    159 bpf_bprm_opts_set;
    160 bpf_ktime_get_coarse_ns: () -> Scalar;
    161 bpf_ima_inode_hash;
    162 bpf_sock_from_file;
    163 bpf_check_mtu: (Context, Scalar, ReadWriteBytes(4), Scalar, Scalar) -> Scalar;
    164 bpf_for_each_map_elem: (Map, Function, StackOrNull, Scalar) -> Scalar;
    165 bpf_snprintf: (WriteMemOrNull, SizeOrZero, Text, ReadMemOrNull, SizeOrZero) -> Scalar;
    166 bpf_sys_bpf;
    167 bpf_btf_find_by_name_kind;
    168 bpf_sys_close;
    169 bpf_timer_init: (Timer, Map, Scalar) -> Scalar;
    170 bpf_timer_set_callback: (Timer, Function) -> Scalar;
    171 bpf_timer_start: (Timer, Scalar, Scalar) -> Scalar;
    172 bpf_timer_cancel: (Timer) -> Scalar;
    173 bpf_get_func_ip;
    174 bpf_get_attach_cookie;
    175 bpf_task_pt_regs;
    176 bpf_get_branch_snapshot;
    177 bpf_trace_vprintk: (ReadMem, Size, ReadMemOrNull, SizeOrZero) -> Scalar;
    178 bpf_skc_to_unix_sock;
    179 bpf_kallsyms_lookup_name;
    180 bpf_find_vma;
    181 bpf_loop: (Scalar, Function, StackOrNull, Scalar) -> Scalar;
    182 bpf_strncmp: (ReadMem, Size, Text) -> Scalar;
    183 bpf_get_func_arg;
    184 bpf_get_func_ret;
    185 bpf_get_func_arg_cnt;
    186 bpf_get_retval;
    187 bpf_set_retval;
    188 bpf_xdp_get_buff_len: (Context) -> Scalar;
    189 bpf_xdp_load_bytes: (Context, Scalar, WriteMem, Size) -> Scalar;
    190 bpf_xdp_store_bytes: (Context, Scalar, ReadMem, Size) -> Scalar;
    191 bpf_copy_from_user_task;
    192 bpf_skb_set_tstamp: (Context, Scalar, Scalar) -> Scalar;
    193 bpf_ima_file_hash;
    194 bpf_kptr_xchg;
    195 bpf_map_lookup_percpu_elem: (Map, MapKey, Scalar) -> MapValueOrNull;
    196 bpf_skc_to_mptcp_sock;
    197 bpf_dynptr_from_mem: (ReadWriteMem, SizeOrZero, Scalar, NewValueDynptr) -> Scalar;
    198 bpf_ringbuf_reserve_dynptr: (Map, Scalar, Scalar, NewRecordDynptr) -> Scalar;
    199 bpf_ringbuf_submit_dynptr: (ReleasedDynptr, Scalar) -> Nothing;
    200 bpf_ringbuf_discard_dynptr: (ReleasedDynptr, Scalar) -> Nothing;
    201 bpf_dynptr_read: (WriteMem, SizeOrZero, Dynptr, Scalar, Scalar) -> Scalar;
    202 bpf_dynptr_write: (Dynptr, Scalar, ReadMem, SizeOrZero, Scalar) -> Scalar;
    203 bpf_dynptr_data: (Dynptr, Scalar, RecordSize) -> DynptrMemoryOrNull;
    204 bpf_tcp_raw_gen_syncookie_ipv4: (ReadBytes(20), ReadMem, SizeOrZero) -> Scalar;
    205 bpf_tcp_raw_gen_syncookie_ipv6: (ReadBytes(40), ReadMem, SizeOrZero) -> Scalar;
    206 bpf_tcp_raw_check_syncookie_ipv4: (ReadBytes(20), ReadBytes(20)) -> Scalar;
    207 bpf_tcp_raw_check_syncookie_ipv6: (ReadBytes(40), ReadBytes(20)) -> Scalar;
    208 bpf_ktime_get_tai_ns: () -> Scalar;
    209 bpf_user_ringbuf_drain;
    210 bpf_cgrp_storage_get;
    211 bpf_cgrp_storage_delete;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_dense_so_that_a_number_is_an_index() {
        for (i, helper) in Helper::all().iter().enumerate() {
            assert_eq!(helper.id as usize, i + 1, "{}", helper.name);
            assert_eq!(Helper::from_id(helper.id), Some(helper));
            assert_eq!(Helper::from_name(helper.name), Some(helper));
        }
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
