// One helper, map operation or context field each, as real programs call them. The programs leave the packet as they found it, so
// that it can be run again and again. `empty_xdp` and `empty_tc` are what the others are measured against.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAP(name, map_type, key_type, value_type, entries, map_flags_) \
    struct { \
        __uint(type, map_type); \
        __type(key, key_type); \
        __type(value, value_type); \
        __uint(max_entries, entries); \
        __uint(map_flags, map_flags_); \
    } name SEC(".maps")

struct value { __u64 words[8]; };
struct route { __u32 len; __u32 address; };

MAP(array, BPF_MAP_TYPE_ARRAY, __u32, __u64, 16, 0);
MAP(per_cpu, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, __u64, 16, 0);
MAP(hash, BPF_MAP_TYPE_HASH, __u32, __u64, 1024, 0);
MAP(hash_64, BPF_MAP_TYPE_HASH, __u32, struct value, 1024, 0);
MAP(lru, BPF_MAP_TYPE_LRU_HASH, __u32, __u64, 1024, 0);
MAP(lpm, BPF_MAP_TYPE_LPM_TRIE, struct route, __u64, 1024, BPF_F_NO_PREALLOC);
MAP(cpus, BPF_MAP_TYPE_CPUMAP, __u32, __u32, 4, 0);

struct {
    __uint(type, BPF_MAP_TYPE_QUEUE);
    __type(value, __u64);
    __uint(max_entries, 64);
} queue SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} ring SEC(".maps");

// A number that the compiler does not know.
volatile const __u32 zero;

#define XDP(name) SEC("xdp") int name(struct xdp_md *ctx)
#define TC(name) SEC("tc") int name(struct __sk_buff *ctx)

XDP(empty_xdp) { return XDP_DROP; }

XDP(csum_diff_20) {
    __u32 header[5] = {0x45000054, ctx->ingress_ifindex, 0x40010000, 0x0a000001, 0x0a000002};
    return bpf_csum_diff(0, 0, header, sizeof(header), 0) == 0x7fffffff ? XDP_PASS : XDP_DROP;
}

XDP(csum_diff_4_4) {
    __u32 from = 0x0a000001, to = ctx->ingress_ifindex;
    return bpf_csum_diff(&from, 4, &to, 4, 0x1234) == 0x7fffffff ? XDP_PASS : XDP_DROP;
}

XDP(load_bytes_32) {
    __u8 bytes[32];
    return bpf_xdp_load_bytes(ctx, 14, bytes, sizeof(bytes)) ? XDP_ABORTED : XDP_DROP;
}

XDP(store_bytes_12) {
    __u32 bytes[3] = {1, 2, 3};
    return bpf_xdp_store_bytes(ctx, 0, bytes, sizeof(bytes)) ? XDP_ABORTED : XDP_DROP;
}

XDP(adjust_head) {
    return bpf_xdp_adjust_head(ctx, -14) || bpf_xdp_adjust_head(ctx, 14) ? XDP_ABORTED : XDP_DROP;
}

XDP(adjust_tail) {
    return bpf_xdp_adjust_tail(ctx, -4) || bpf_xdp_adjust_tail(ctx, 4) ? XDP_ABORTED : XDP_DROP;
}

XDP(adjust_meta) {
    return bpf_xdp_adjust_meta(ctx, -8) || bpf_xdp_adjust_meta(ctx, 8) ? XDP_ABORTED : XDP_DROP;
}

XDP(redirect_map) { return bpf_redirect_map(&cpus, zero, XDP_DROP); }

XDP(ktime) { return bpf_ktime_get_ns() == 1 ? XDP_PASS : XDP_DROP; }

XDP(prandom) { return bpf_get_prandom_u32() == 1 ? XDP_PASS : XDP_DROP; }

XDP(per_cpu_count) {
    __u32 key = zero;
    __u64 *value = bpf_map_lookup_elem(&per_cpu, &key);
    if (value)
        *value += 1;
    return XDP_DROP;
}

XDP(hash_look_up) {
    __u32 key = zero + 1;
    return bpf_map_lookup_elem(&hash, &key) ? XDP_DROP : XDP_PASS;
}

XDP(hash_update_same) {
    __u32 key = zero + 1;
    __u64 value = 7;
    return bpf_map_update_elem(&hash, &key, &value, BPF_ANY) ? XDP_ABORTED : XDP_DROP;
}

XDP(hash_update_64_same) {
    __u32 key = zero + 1;
    struct value value = {{7}};
    return bpf_map_update_elem(&hash_64, &key, &value, BPF_ANY) ? XDP_ABORTED : XDP_DROP;
}

XDP(hash_update_delete) {
    __u32 key = zero + 2;
    __u64 value = 7;
    return bpf_map_update_elem(&hash, &key, &value, BPF_ANY) || bpf_map_delete_elem(&hash, &key) ? XDP_ABORTED : XDP_DROP;
}

XDP(array_update) {
    __u32 key = zero;
    __u64 value = 7;
    return bpf_map_update_elem(&array, &key, &value, BPF_ANY) ? XDP_ABORTED : XDP_DROP;
}

XDP(lru_update_same) {
    __u32 key = zero + 1;
    __u64 value = 7;
    return bpf_map_update_elem(&lru, &key, &value, BPF_ANY) ? XDP_ABORTED : XDP_DROP;
}

XDP(lpm_update_same) {
    struct route key = {24, zero + 10};
    __u64 value = 7;
    return bpf_map_update_elem(&lpm, &key, &value, BPF_ANY) ? XDP_ABORTED : XDP_DROP;
}

XDP(queue_push_pop) {
    __u64 value = 7;
    return bpf_map_push_elem(&queue, &value, BPF_ANY) || bpf_map_pop_elem(&queue, &value) ? XDP_ABORTED : XDP_DROP;
}

XDP(ring_reserve_discard) {
    __u64 *record = bpf_ringbuf_reserve(&ring, 16, 0);
    if (record) {
        record[0] = 1;
        bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
    }
    return XDP_DROP;
}

XDP(fib_no_route) {
    struct bpf_fib_lookup params = {.family = 2, .ifindex = 1, .ipv4_dst = 0x01020304};
    return bpf_fib_lookup(ctx, &params, sizeof(params), 0) == -1 ? XDP_ABORTED : XDP_DROP;
}

TC(empty_tc) { return TC_ACT_SHOT; }

TC(tc_mark_cb) {
    ctx->mark = 7;
    ctx->cb[1] = ctx->mark + ctx->len;
    return TC_ACT_SHOT;
}

TC(tc_protocol) { return ctx->protocol == bpf_htons(ETH_P_ARP) ? TC_ACT_OK : TC_ACT_SHOT; }

TC(tc_parse) {
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct ethhdr *eth = data;
    struct iphdr *ip = (void *)(eth + 1);
    struct udphdr *udp = (void *)(ip + 1);
    if ((void *)(udp + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->protocol != 17)
        return TC_ACT_OK;
    return udp->dest == bpf_htons(53) ? TC_ACT_OK : TC_ACT_SHOT;
}

TC(tc_load_bytes_20) {
    __u8 bytes[20];
    return bpf_skb_load_bytes(ctx, 14, bytes, sizeof(bytes)) ? TC_ACT_OK : TC_ACT_SHOT;
}

TC(tc_store_bytes_12) {
    __u32 bytes[3] = {1, 2, 3};
    return bpf_skb_store_bytes(ctx, 0, bytes, sizeof(bytes), 0) ? TC_ACT_OK : TC_ACT_SHOT;
}

TC(tc_l3_csum_replace) { return bpf_l3_csum_replace(ctx, 24, 1, 2, 2) ? TC_ACT_OK : TC_ACT_SHOT; }

TC(tc_l4_csum_replace) { return bpf_l4_csum_replace(ctx, 40, 1, 2, BPF_F_PSEUDO_HDR | 4) ? TC_ACT_OK : TC_ACT_SHOT; }

TC(tc_hash_recalc) { return bpf_get_hash_recalc(ctx) == 1 ? TC_ACT_OK : TC_ACT_SHOT; }

TC(tc_vlan_push_pop) {
    return bpf_skb_vlan_push(ctx, bpf_htons(ETH_P_8021Q), 7) || bpf_skb_vlan_pop(ctx) ? TC_ACT_OK : TC_ACT_SHOT;
}

char _license[] SEC("license") = "GPL";
