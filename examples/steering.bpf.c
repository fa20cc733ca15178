// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//
// A TC classifier that sorts packets into classes by their destination port.
//
// What becomes of a class is a matter of the map: its packets get a mark and a priority, a code point in the IPv4 header
// (DSCP), a VLAN tag, or are sent out of another interface, and classes may be shut off. Attach it with
// `tc filter add dev DEV ingress bpf direct-action object-file steering.o section tcx/ingress`, or run it over a capture:
// `paceline run steering.o traffic.pcap`.
#include <stddef.h>

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define SHUT 1
#define ECN 3

struct class {
	__u32 mark;
	__u32 priority;
	__u32 ifindex; /* to send it out of, or 0 */
	__u16 vlan;    /* to tag it with, or 0 */
	__u8 dscp;     /* 0 to 63; 0 leaves the packet's own */
	__u8 flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __be16);
	__type(value, struct class);
} classes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

enum count { OTHER, SORTED, SHUT_OFF };

static __always_inline void count(__u32 what)
{
	__u64 *value = bpf_map_lookup_elem(&counts, &what);

	if (value)
		*value += 1;
}

/* The destination port of a TCP or UDP packet without IPv4 options, in network order; 0 for others. */
static __always_inline __be16 port_of(struct __sk_buff *skb)
{
	const struct iphdr *ip = (void *)(long)skb->data + ETH_HLEN;
	const __be16 *ports = (void *)(ip + 1);

	if (skb->protocol != bpf_htons(ETH_P_IP) || (void *)(ports + 2) > (void *)(long)skb->data_end)
		return 0;
	if (ip->ihl != 5 || (ip->protocol != IPPROTO_TCP && ip->protocol != IPPROTO_UDP))
		return 0;
	return ports[1];
}

static __always_inline long set_dscp(struct __sk_buff *skb, __u8 dscp)
{
	__u32 tos_at = ETH_HLEN + offsetof(struct iphdr, tos);
	__u32 sum_at = ETH_HLEN + offsetof(struct iphdr, check);
	__u8 old, tos;

	if (bpf_skb_load_bytes(skb, tos_at, &old, 1))
		return -1;
	tos = dscp << 2 | (old & ECN);
	if (bpf_l3_csum_replace(skb, sum_at, bpf_htons(old), bpf_htons(tos), 2))
		return -1;
	return bpf_skb_store_bytes(skb, tos_at, &tos, 1, 0);
}

SEC("tcx/ingress")
int steering(struct __sk_buff *skb)
{
	__be16 port = port_of(skb);
	struct class *class = bpf_map_lookup_elem(&classes, &port);

	if (!class) {
		count(OTHER);
		return TC_ACT_OK;
	}
	if (class->flags & SHUT) {
		count(SHUT_OFF);
		return TC_ACT_SHOT;
	}
	count(SORTED);
	skb->mark = class->mark;
	skb->priority = class->priority;
	if (class->dscp && set_dscp(skb, class->dscp))
		return TC_ACT_SHOT;
	if (class->vlan && bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), class->vlan))
		return TC_ACT_SHOT;
	return class->ifindex ? bpf_redirect(class->ifindex, 0) : TC_ACT_OK;
}

char _license[] SEC("license") = "Dual MIT/GPL";
