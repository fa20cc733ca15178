// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//
// A program for each protocol, one after the other by tail calls.
//
// `dispatch` finds the network protocol and calls its program, which finds the transport protocol and calls that one's.
// What a packet needs is a matter of the program arrays: the object gives them programs to start with, and whoever runs
// it may exchange or remove each of them while traffic runs.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define IP_OFFSET 0x1fff
#define ICMP_REDIRECT 5

// Index in `networks`.
enum network {
	NETWORK_IPV4,
	NETWORK_IPV6,
	NETWORKS,
};

// Index in `seen`.
enum place {
	SEEN_DISPATCH,
	SEEN_IPV4,
	SEEN_IPV6,
	SEEN_ICMP,
	SEEN_TCP,
	SEEN_UDP,
	SEEN_OTHER,
	PLACES,
};

int ipv4(struct xdp_md *ctx);
int ipv6(struct xdp_md *ctx);
int icmp(struct xdp_md *ctx);
int tcp(struct xdp_md *ctx);
int udp(struct xdp_md *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, NETWORKS);
	__type(key, __u32); // enum network
	__array(values, int(struct xdp_md *));
} networks SEC(".maps") = {
	.values = {
		[NETWORK_IPV4] = (void *)&ipv4,
		[NETWORK_IPV6] = (void *)&ipv6,
	},
};

// By the protocol number of IPv4, or the next header of IPv6.
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__array(values, int(struct xdp_md *));
} protocols SEC(".maps") = {
	.values = {
		[IPPROTO_ICMP] = (void *)&icmp,
		[IPPROTO_TCP] = (void *)&tcp,
		[IPPROTO_UDP] = (void *)&udp,
	},
};

// What one program tells the next: a tail call passes the context and nothing else.
struct cursor {
	__u32 offset; // of the header that the next program is for
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cursor);
} cursors SEC(".maps");

// How many packets came to each program; `other` counts those that no program was there for.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PLACES);
	__type(key, __u32); // enum place
	__type(value, __u64);
} seen SEC(".maps");

struct icmp_header {
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be32 rest;
};

static __always_inline void count(__u32 place)
{
	__u64 *packets = bpf_map_lookup_elem(&seen, &place);

	if (packets)
		*packets += 1;
}

static __always_inline void leave_at(__u32 offset)
{
	__u32 key = 0;
	struct cursor *cursor = bpf_map_lookup_elem(&cursors, &key);

	if (cursor)
		cursor->offset = offset;
}

// The header that the program before left us at, if `size` bytes of it are there.
static __always_inline void *header(struct xdp_md *ctx, __u32 size)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u32 key = 0;
	struct cursor *cursor = bpf_map_lookup_elem(&cursors, &key);
	__u32 offset;

	if (!cursor)
		return 0;
	offset = cursor->offset;
	// Far beyond any header, and a bound that the verifier sees.
	if (offset > 256)
		return 0;
	data += offset;
	return data + size > end ? 0 : data;
}

SEC("xdp")
int dispatch(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = data;

	count(SEEN_DISPATCH);
	if ((void *)(ethernet + 1) > end)
		return XDP_DROP;
	leave_at(sizeof(*ethernet));
	if (ethernet->h_proto == bpf_htons(ETH_P_IP))
		bpf_tail_call(ctx, &networks, NETWORK_IPV4);
	else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6))
		bpf_tail_call(ctx, &networks, NETWORK_IPV6);
	count(SEEN_OTHER);
	return XDP_PASS;
}

SEC("xdp")
int ipv4(struct xdp_md *ctx)
{
	struct iphdr *ip = header(ctx, sizeof(*ip));

	count(SEEN_IPV4);
	if (!ip || ip->version != 4 || ip->ihl < 5)
		return XDP_DROP;
	// Further fragments have no transport header.
	if (ip->frag_off & bpf_htons(IP_OFFSET))
		return XDP_PASS;
	leave_at(sizeof(struct ethhdr) + ip->ihl * 4);
	bpf_tail_call(ctx, &protocols, ip->protocol);
	count(SEEN_OTHER);
	return XDP_PASS;
}

SEC("xdp")
int ipv6(struct xdp_md *ctx)
{
	struct ipv6hdr *ip = header(ctx, sizeof(*ip));

	count(SEEN_IPV6);
	if (!ip || ip->version != 6)
		return XDP_DROP;
	leave_at(sizeof(struct ethhdr) + sizeof(*ip));
	bpf_tail_call(ctx, &protocols, ip->nexthdr);
	count(SEEN_OTHER);
	return XDP_PASS;
}

// No host here listens to redirects.
SEC("xdp")
int icmp(struct xdp_md *ctx)
{
	struct icmp_header *icmp = header(ctx, sizeof(*icmp));

	count(SEEN_ICMP);
	return !icmp || icmp->type == ICMP_REDIRECT ? XDP_DROP : XDP_PASS;
}

// Segments that begin and end a connection at once, or do nothing at all, are scans.
SEC("xdp")
int tcp(struct xdp_md *ctx)
{
	struct tcphdr *tcp = header(ctx, sizeof(*tcp));

	count(SEEN_TCP);
	if (!tcp || (tcp->syn && (tcp->fin || tcp->rst)))
		return XDP_DROP;
	return tcp->syn || tcp->ack || tcp->rst || tcp->fin ? XDP_PASS : XDP_DROP;
}

SEC("xdp")
int udp(struct xdp_md *ctx)
{
	struct udphdr *udp = header(ctx, sizeof(*udp));

	count(SEEN_UDP);
	return udp && udp->dest ? XDP_PASS : XDP_DROP;
}

// In no array to start with: for whoever wants a protocol dropped.
SEC("xdp")
int drop(struct xdp_md *ctx)
{
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
