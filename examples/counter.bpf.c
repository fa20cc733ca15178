// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//
// Counts packets and bytes, by EtherType, by IP protocol, and by packet size. Always passes the packet on.
//
// It shows the three ways in which a counter can be kept: a per-CPU array needs no atomic operation, an array or a
// hash is shared and needs one, and a global variable is an element of an array that libbpf makes.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAX_VLAN_TAGS 2
#define SIZE_BUCKETS 16
#define LARGEST_LENGTH 0x05ff // below an EtherType, the field is the length of an 802.3 frame

struct traffic {
	__u64 packets;
	__u64 bytes;
};

// By EtherType behind all VLAN tags, in host order. 0 stands for 802.3 frames, which have a length instead.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u16);
	__type(value, struct traffic);
} by_ethertype SEC(".maps");

// By the protocol field of the IPv4 header or the first next-header field of the IPv6 header.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct traffic);
} by_protocol SEC(".maps");

// By size: bucket n has the packets of 2^n to 2^(n+1) - 1 bytes.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SIZE_BUCKETS);
	__type(key, __u32);
	__type(value, __u64);
} by_size SEC(".maps");

// Global variables: .bss.
struct traffic total;
__u64 tagged; // packets with at least one VLAN tag
__u64 cut_short; // packets that end within the headers that are counted

struct vlan_header {
	__be16 tci;
	__be16 protocol;
};

static __always_inline bool is_vlan(__be16 protocol)
{
	return protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD);
}

static __always_inline void add_shared(struct traffic *traffic, __u64 bytes)
{
	__sync_fetch_and_add(&traffic->packets, 1);
	__sync_fetch_and_add(&traffic->bytes, bytes);
}

static __noinline void count_ethertype(__u16 ethertype, __u64 bytes)
{
	struct traffic *traffic = bpf_map_lookup_elem(&by_ethertype, &ethertype);
	struct traffic first = { .packets = 1, .bytes = bytes };

	if (traffic) {
		add_shared(traffic, bytes);
		return;
	}
	// Another CPU may insert the key between look-up and update: BPF_NOEXIST makes one of the two fail.
	if (bpf_map_update_elem(&by_ethertype, &ethertype, &first, BPF_NOEXIST) == 0)
		return;
	traffic = bpf_map_lookup_elem(&by_ethertype, &ethertype);
	if (traffic)
		add_shared(traffic, bytes);
}

static __always_inline void count_protocol(__u32 protocol, __u64 bytes)
{
	struct traffic *traffic = bpf_map_lookup_elem(&by_protocol, &protocol);

	if (!traffic)
		return;
	traffic->packets++;
	traffic->bytes += bytes;
}

// The position of the highest bit that is set. Not static: the verifier checks a global function once, for any
// argument, and not again at each call.
__noinline __u32 log2_of(__u32 value)
{
	__u32 log = 0;

	for (__u32 step = 16; step; step >>= 1) {
		if (value >> step) {
			value >>= step;
			log += step;
		}
	}
	return log;
}

static __always_inline void count_size(__u32 bytes)
{
	__u32 bucket = log2_of(bytes);
	__u64 *packets;

	if (bucket >= SIZE_BUCKETS)
		bucket = SIZE_BUCKETS - 1;
	packets = bpf_map_lookup_elem(&by_size, &bucket);
	if (packets)
		__sync_fetch_and_add(packets, 1);
}

SEC("xdp")
int counter(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u64 bytes = end - data;
	struct ethhdr *ethernet = data;
	void *next = ethernet + 1;
	__u16 ethertype;
	__be16 protocol;

	add_shared(&total, bytes);
	count_size(bytes);

	if (next > end)
		goto cut;
	protocol = ethernet->h_proto;
	if (is_vlan(protocol))
		__sync_fetch_and_add(&tagged, 1);

	for (int i = 0; i < MAX_VLAN_TAGS && is_vlan(protocol); i++) {
		struct vlan_header *tag = next;

		next = tag + 1;
		if (next > end)
			goto cut;
		protocol = tag->protocol;
	}

	ethertype = bpf_ntohs(protocol);
	count_ethertype(ethertype > LARGEST_LENGTH ? ethertype : 0, bytes);

	if (ethertype == ETH_P_IP) {
		struct iphdr *ip = next;

		if ((void *)(ip + 1) > end)
			goto cut;
		count_protocol(ip->protocol, bytes);
	} else if (ethertype == ETH_P_IPV6) {
		struct ipv6hdr *ip = next;

		if ((void *)(ip + 1) > end)
			goto cut;
		count_protocol(ip->nexthdr, bytes);
	}
	return XDP_PASS;

cut:
	__sync_fetch_and_add(&cut_short, 1);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
