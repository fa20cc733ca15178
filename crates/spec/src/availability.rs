//! Which programs may call which helper.
//!
//! The lists follow `xdp_func_proto`, `sk_filter_func_proto` and `bpf_sk_base_func_proto` in `net/core/filter.c` and
//! `bpf_base_func_proto` in `kernel/bpf/helpers.c`, for a privileged loader; the flags are those of
//! each helper's `struct bpf_func_proto`.

use crate::ProgramKind;
use crate::helper::Helper;

/// Helpers that XDP programs may call, by name without `bpf_`.
pub(crate) const XDP: &[&str] = &[
    "check_mtu",
    "csum_diff",
    "fib_lookup",
    "perf_event_output",
    "redirect",
    "redirect_map",
    "sk_lookup_tcp",
    "sk_lookup_udp",
    "sk_release",
    "skc_lookup_tcp",
    "tcp_check_syncookie",
    "tcp_gen_syncookie",
    "tcp_raw_check_syncookie_ipv4",
    "tcp_raw_check_syncookie_ipv6",
    "tcp_raw_gen_syncookie_ipv4",
    "tcp_raw_gen_syncookie_ipv6",
    "xdp_adjust_head",
    "xdp_adjust_meta",
    "xdp_adjust_tail",
    "xdp_get_buff_len",
    "xdp_load_bytes",
    "xdp_store_bytes",
];

/// Helpers that socket filters may call (`sk_filter_func_proto`), by name without `bpf_`.
pub(crate) const SOCKET_FILTER: &[&str] = &[
    "get_netns_cookie",
    "get_socket_cookie",
    "get_socket_uid",
    "perf_event_output",
    "skb_load_bytes",
    "skb_load_bytes_relative",
];

/// Helpers that TC classifiers may call (`tc_cls_act_func_proto`), by name without `bpf_`.
pub(crate) const SCHED_CLS: &[&str] = &[
    "check_mtu",
    "clone_redirect",
    "csum_diff",
    "csum_level",
    "csum_update",
    "fib_lookup",
    "get_hash_recalc",
    "get_listener_sock",
    "get_netns_cookie",
    "get_route_realm",
    "get_socket_cookie",
    "get_socket_uid",
    "l3_csum_replace",
    "l4_csum_replace",
    "perf_event_output",
    "redirect",
    "redirect_neigh",
    "redirect_peer",
    "set_hash",
    "set_hash_invalid",
    "sk_assign",
    "sk_fullsock",
    "sk_lookup_tcp",
    "sk_lookup_udp",
    "sk_release",
    "sk_storage_delete",
    "sk_storage_get",
    "skb_adjust_room",
    "skb_ancestor_cgroup_id",
    "skb_cgroup_classid",
    "skb_cgroup_id",
    "skb_change_head",
    "skb_change_proto",
    "skb_change_tail",
    "skb_change_type",
    "skb_ecn_set_ce",
    "skb_get_tunnel_key",
    "skb_get_tunnel_opt",
    "skb_get_xfrm_state",
    "skb_load_bytes",
    "skb_load_bytes_relative",
    "skb_pull_data",
    "skb_set_tstamp",
    "skb_set_tunnel_key",
    "skb_set_tunnel_opt",
    "skb_store_bytes",
    "skb_under_cgroup",
    "skb_vlan_pop",
    "skb_vlan_push",
    "skc_lookup_tcp",
    "tcp_check_syncookie",
    "tcp_gen_syncookie",
    "tcp_raw_check_syncookie_ipv4",
    "tcp_raw_check_syncookie_ipv6",
    "tcp_raw_gen_syncookie_ipv4",
    "tcp_raw_gen_syncookie_ipv6",
    "tcp_sock",
];

/// Helpers that programs of every network type may call.
pub(crate) const EVERYWHERE: &[&str] = &[
    "cgrp_storage_delete",
    "cgrp_storage_get",
    "copy_from_user",
    "copy_from_user_task",
    "current_task_under_cgroup",
    "dynptr_data",
    "dynptr_from_mem",
    "dynptr_read",
    "dynptr_write",
    "find_vma",
    "for_each_map_elem",
    "get_branch_snapshot",
    "get_cgroup_classid",
    "get_current_ancestor_cgroup_id",
    "get_current_cgroup_id",
    "get_current_comm",
    "get_current_pid_tgid",
    "get_current_task",
    "get_current_task_btf",
    "get_current_uid_gid",
    "get_ns_current_pid_tgid",
    "get_numa_node_id",
    "get_prandom_u32",
    "get_smp_processor_id",
    "get_task_stack",
    "jiffies64",
    "kptr_xchg",
    "ktime_get_boot_ns",
    "ktime_get_coarse_ns",
    "ktime_get_ns",
    "ktime_get_tai_ns",
    "loop",
    "map_delete_elem",
    "map_lookup_elem",
    "map_lookup_percpu_elem",
    "map_peek_elem",
    "map_pop_elem",
    "map_push_elem",
    "map_update_elem",
    "per_cpu_ptr",
    "perf_event_read",
    "perf_event_read_value",
    "probe_read_kernel",
    "probe_read_kernel_str",
    "probe_read_user",
    "probe_read_user_str",
    "ringbuf_discard",
    "ringbuf_discard_dynptr",
    "ringbuf_output",
    "ringbuf_query",
    "ringbuf_reserve",
    "ringbuf_reserve_dynptr",
    "ringbuf_submit",
    "ringbuf_submit_dynptr",
    "send_signal",
    "send_signal_thread",
    "skc_to_mptcp_sock",
    "skc_to_tcp6_sock",
    "skc_to_tcp_request_sock",
    "skc_to_tcp_sock",
    "skc_to_tcp_timewait_sock",
    "skc_to_udp6_sock",
    "skc_to_unix_sock",
    "snprintf",
    "snprintf_btf",
    "spin_lock",
    "spin_unlock",
    "strncmp",
    "strtol",
    "strtoul",
    "tail_call",
    "task_pt_regs",
    "task_storage_delete",
    "task_storage_get",
    "this_cpu_ptr",
    "timer_cancel",
    "timer_init",
    "timer_set_callback",
    "timer_start",
    "trace_printk",
    "trace_vprintk",
    "user_ringbuf_drain",
];

/// Helpers for programs under a license compatible with the GPL.
const GPL_ONLY: &[&str] = &[
    "check_mtu",
    "copy_from_user_task",
    "fib_lookup",
    "get_branch_snapshot",
    "get_current_task",
    "get_current_task_btf",
    "perf_event_output",
    "perf_event_read",
    "perf_event_read_value",
    "probe_read_kernel",
    "probe_read_kernel_str",
    "probe_read_user",
    "probe_read_user_str",
    "snprintf",
    "task_pt_regs",
    "tcp_check_syncookie",
    "tcp_gen_syncookie",
    "tcp_raw_check_syncookie_ipv4",
    "tcp_raw_check_syncookie_ipv6",
    "tcp_raw_gen_syncookie_ipv4",
    "tcp_raw_gen_syncookie_ipv6",
    "timer_cancel",
    "timer_init",
    "timer_set_callback",
    "timer_start",
    "trace_printk",
    "trace_vprintk",
];

const TASKS: &str = "a kernel's tasks, control groups and memory";
const SOCKETS: &str = "sockets of a kernel";
const TUNNELS: &str = "tunnel devices of a kernel";
const DYNPTRS: &str = "ring buffers that user space writes";

/// What helpers would take that Paceline does not have, by name without `bpf_` or by how the name starts.
const WOULD_TAKE: &[(&str, &[&str])] = &[
    (
        SOCKETS,
        &[
            "skc_",
            "get_listener_sock",
            "get_netns_cookie",
            "get_socket_",
            "sk_assign",
            "sk_fullsock",
            "sk_storage_",
            "tcp_sock",
        ],
    ),
    (TUNNELS, &["skb_get_tunnel_", "skb_set_tunnel_", "skb_get_xfrm_state"]),
    (
        TASKS,
        &[
            "cgrp_storage_",
            "copy_from_user",
            "current_task_",
            "find_vma",
            "get_branch_snapshot",
            "get_cgroup_classid",
            "get_current_",
            "get_ns_current_",
            "get_task_stack",
            "kptr_xchg",
            "per_cpu_ptr",
            "perf_event_read",
            "probe_read_user",
            "probe_read_kernel_str",
            "send_signal",
            "skb_ancestor_cgroup_id",
            "skb_cgroup_",
            "skb_under_cgroup",
            "snprintf_btf",
            "task_",
            "this_cpu_ptr",
        ],
    ),
    (DYNPTRS, &["user_ringbuf_"]),
];

/// Helpers whose memory arguments may lie in the packet.
const PACKET_ARGUMENTS: &[&str] = &[
    "csum_diff",
    "map_delete_elem",
    "map_lookup_elem",
    "map_lookup_percpu_elem",
    "map_push_elem",
    "map_update_elem",
    "sk_lookup_tcp",
    "sk_lookup_udp",
    "skc_lookup_tcp",
    "tcp_check_syncookie",
    "tcp_gen_syncookie",
    "tcp_raw_check_syncookie_ipv4",
    "tcp_raw_check_syncookie_ipv6",
    "tcp_raw_gen_syncookie_ipv4",
    "tcp_raw_gen_syncookie_ipv6",
];

/// Licenses the kernel counts as compatible (`license_is_gpl_compatible` in `include/linux/license.h`).
const GPL_COMPATIBLE: &[&str] =
    &["GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"];

/// Whether programs under a license may call helpers for GPL programs.
#[must_use]
pub fn is_gpl_compatible(license: &str) -> bool {
    GPL_COMPATIBLE.contains(&license)
}

impl Helper {
    fn is_in(&self, names: &[&str]) -> bool {
        self.name.strip_prefix("bpf_").is_some_and(|name| names.contains(&name))
    }

    /// Whether programs of a type may call it.
    #[must_use]
    pub fn is_for(&self, kind: ProgramKind) -> bool {
        kind.rules().helpers.iter().any(|list| self.is_in(list))
    }

    /// Whether only programs under a GPL-compatible license may call it.
    #[must_use]
    pub fn is_gpl_only(&self) -> bool {
        self.is_in(GPL_ONLY)
    }

    /// What it would take to have it, where it is not there.
    #[must_use]
    pub fn would_take(&self) -> &'static str {
        let name = self.name.strip_prefix("bpf_").unwrap_or(self.name);
        let found = WOULD_TAKE.iter().find(|(_, starts)| starts.iter().any(|start| name.starts_with(start)));
        found.map_or("an implementation", |(what, _)| what)
    }

    /// Whether its memory arguments may lie in the packet.
    #[must_use]
    pub fn takes_packet_memory(&self) -> bool {
        self.is_in(PACKET_ARGUMENTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_helper() {
        for name in XDP
            .iter()
            .chain(SOCKET_FILTER)
            .chain(SCHED_CLS)
            .chain(EVERYWHERE)
            .chain(GPL_ONLY)
            .chain(PACKET_ARGUMENTS)
        {
            assert!(Helper::from_name(name).is_some(), "{name}");
        }
    }
}
