// SPDX-License-Identifier: MIT OR Apache-2.0
// A socket filter: packets from or to the hosts and networks of a list, which may have millions of entries.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

struct v4_net {
	__u32 prefix_len;
	__u8 address[4];
};

struct v6_net {
	__u32 prefix_len;
	__u8 address[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, struct v4_net);
	__type(value, __u8);
} hosts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, struct v6_net);
	__type(value, __u8);
} hosts6 SEC(".maps");

// Bytes that are kept of a packet: 0 for all of them.
const volatile __u32 snaplen = 0;

static int is_listed(struct __sk_buff *skb, __u32 offset)
{
	struct v4_net net = { .prefix_len = 32 };

	return bpf_skb_load_bytes(skb, offset, net.address, sizeof(net.address)) == 0 &&
	       bpf_map_lookup_elem(&hosts, &net) != NULL;
}

static int is_listed6(struct __sk_buff *skb, __u32 offset)
{
	struct v6_net net = { .prefix_len = 128 };

	return bpf_skb_load_bytes(skb, offset, net.address, sizeof(net.address)) == 0 &&
	       bpf_map_lookup_elem(&hosts6, &net) != NULL;
}

SEC("socket")
int listed(struct __sk_buff *skb)
{
	__be16 protocol;
	int matches = 0;

	if (bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), &protocol, sizeof(protocol)))
		return 0;
	if (protocol == bpf_htons(ETH_P_IP))
		matches = is_listed(skb, ETH_HLEN + offsetof(struct iphdr, saddr)) ||
			  is_listed(skb, ETH_HLEN + offsetof(struct iphdr, daddr));
	else if (protocol == bpf_htons(ETH_P_IPV6))
		matches = is_listed6(skb, ETH_HLEN + offsetof(struct ipv6hdr, saddr)) ||
			  is_listed6(skb, ETH_HLEN + offsetof(struct ipv6hdr, daddr));
	if (!matches)
		return 0;
	return snaplen ? snaplen : -1;
}

char _license[] SEC("license") = "GPL";
