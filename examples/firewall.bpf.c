// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//
// A stateless firewall.
//
// What it refuses, in the order in which it looks:
//   - packets that are malformed: headers that do not fit, lengths that lie, impossible TCP flags, martian sources;
//   - sources in the block lists `blocked_v4` and `blocked_v6`;
//   - fragments, when `drop_fragments` is set: they hide the ports;
//   - services: the map `rules` decides by protocol and destination port, then the built-in table `denied`;
//   - echo requests that are larger than `max_echo_bytes`.
// Everything else passes, also what is not IP. The map `counters` says how often each reason applied.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ETH_P_8021Q_OLD 0x9100 // QinQ before 802.1ad gave it a number of its own
#define ICMP_ECHO 8 // <linux/icmp.h> drags in the C library, which a BPF program has not
#define ICMPV6_ECHO_REQUEST 128
#define MAX_VLAN_TAGS 2
#define MAX_EXTENSION_HEADERS 6
#define IP_MORE_FRAGMENTS 0x2000
#define IP_OFFSET 0x1fff

// Why a packet passed or was dropped: the index in `counters`.
enum reason {
	PASSED,
	PASSED_NOT_IP,
	PASSED_BY_RULE,
	LAST_PASS = PASSED_BY_RULE,
	MALFORMED,
	MARTIAN_SOURCE,
	BLOCKED_SOURCE,
	FRAGMENT,
	TOO_MANY_HEADERS,
	BAD_TCP_FLAGS,
	DENIED_SERVICE,
	DROPPED_BY_RULE,
	BIG_ECHO,
	REASONS,
};

enum action {
	ACTION_PASS,
	ACTION_DROP,
};

// A transport protocol and a destination port, in host order so that map dumps can be read.
struct service {
	__u16 port;
	__u8 protocol;
	__u8 reserved; // zero: a hash map compares all bytes of a key
};

struct rule {
	__u32 action; // enum action
	__u32 reserved;
	__u64 hits;
};

struct ipv4_source {
	__u8 octets[4];
};

struct ipv6_source {
	__u8 octets[16];
};

struct counter {
	__u64 packets;
	__u64 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct service);
	__type(value, struct rule);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ipv4_source);
	__type(value, __u64); // packets dropped
} blocked_v4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ipv6_source);
	__type(value, __u64); // packets dropped
} blocked_v6 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, REASONS);
	__type(key, __u32); // enum reason
	__type(value, struct counter);
} counters SEC(".maps");

// Settings. A loader may change .rodata before it loads the program; the verifier then removes what cannot happen.
const volatile bool drop_fragments = true;
const volatile __u32 max_echo_bytes = 1024;

// Denied unless a rule says otherwise: services that have no business on the open Internet.
const volatile struct service denied[] = {
	{ 19, IPPROTO_UDP }, // chargen, an amplifier
	{ 23, IPPROTO_TCP }, // telnet
	{ 69, IPPROTO_UDP }, // tftp
	{ 135, IPPROTO_TCP }, // Microsoft RPC
	{ 137, IPPROTO_UDP }, // NetBIOS names
	{ 139, IPPROTO_TCP }, // NetBIOS sessions
	{ 445, IPPROTO_TCP }, // SMB
	{ 1900, IPPROTO_UDP }, // SSDP, an amplifier
	{ 2323, IPPROTO_TCP }, // telnet, where scanners look next
	{ 11211, IPPROTO_UDP }, // memcached, an amplifier
};

#define DENIED_LEN (sizeof(denied) / sizeof(denied[0]))

struct vlan_header {
	__be16 tci;
	__be16 protocol;
};

struct extension_header {
	__u8 next;
	__u8 length; // in units of 8 bytes, the first not counted
};

// ICMP and ICMPv6 begin alike.
struct icmp_header {
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be32 rest;
};

struct fragment_header {
	__u8 next;
	__u8 reserved;
	__be16 offset_and_more;
	__be32 identification;
};

// What is left of the packet.
struct cursor {
	void *pos;
	void *end;
};

// The next `size` bytes, or NULL when there are fewer. `size` must be a constant for the verifier to learn from it.
static __always_inline void *take(struct cursor *cursor, __u32 size)
{
	void *start = cursor->pos;

	if (start + size > cursor->end)
		return NULL;
	cursor->pos = start + size;
	return start;
}

static __always_inline __u32 left(const struct cursor *cursor)
{
	return cursor->end - cursor->pos;
}

static __always_inline bool is_vlan(__be16 protocol)
{
	return protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD) ||
	       protocol == bpf_htons(ETH_P_8021Q_OLD);
}

// Whether the built-in table denies the service. Not inlined: one copy in the program, and a call to learn from.
static __noinline bool is_denied(const struct service *service)
{
	for (__u32 i = 0; i < DENIED_LEN; i++) {
		if (denied[i].port == service->port && denied[i].protocol == service->protocol)
			return true;
	}
	return false;
}

static __always_inline enum reason judge_service(__u8 protocol, __be16 port)
{
	struct service service = { .port = bpf_ntohs(port), .protocol = protocol };
	struct rule *rule = bpf_map_lookup_elem(&rules, &service);

	if (rule) {
		// Other CPUs count in the same element.
		__sync_fetch_and_add(&rule->hits, 1);
		return rule->action == ACTION_DROP ? DROPPED_BY_RULE : PASSED_BY_RULE;
	}
	return is_denied(&service) ? DENIED_SERVICE : PASSED;
}

static __always_inline enum reason judge_tcp(struct cursor *cursor)
{
	struct tcphdr *tcp = take(cursor, sizeof(*tcp));

	if (!tcp || tcp->doff < 5 || left(cursor) < tcp->doff * 4 - sizeof(*tcp))
		return MALFORMED;
	if ((tcp->syn && (tcp->fin || tcp->rst)) || !(tcp->syn || tcp->ack || tcp->rst))
		return BAD_TCP_FLAGS;
	return judge_service(IPPROTO_TCP, tcp->dest);
}

// `whole` tells that all of the datagram is here, so that its length can be checked.
static __always_inline enum reason judge_udp(struct cursor *cursor, bool whole)
{
	__u32 length = left(cursor);
	struct udphdr *udp = take(cursor, sizeof(*udp));

	if (!udp || bpf_ntohs(udp->len) < sizeof(*udp) || (whole && bpf_ntohs(udp->len) > length))
		return MALFORMED;
	return judge_service(IPPROTO_UDP, udp->dest);
}

static __always_inline enum reason judge_icmp(struct cursor *cursor, __u8 echo_request)
{
	__u32 length = left(cursor);
	struct icmp_header *icmp = take(cursor, sizeof(*icmp));

	if (!icmp)
		return MALFORMED;
	return icmp->type == echo_request && length > max_echo_bytes ? BIG_ECHO : PASSED;
}

static __always_inline enum reason judge_transport(struct cursor *cursor, __u8 protocol, bool whole)
{
	switch (protocol) {
	case IPPROTO_TCP:
		return judge_tcp(cursor);
	case IPPROTO_UDP:
		return judge_udp(cursor, whole);
	case IPPROTO_ICMP:
		return judge_icmp(cursor, ICMP_ECHO);
	case IPPROTO_ICMPV6:
		return judge_icmp(cursor, ICMPV6_ECHO_REQUEST);
	case IPPROTO_IPIP:
	case IPPROTO_IPV6:
	case IPPROTO_GRE:
	case IPPROTO_ESP:
	case IPPROTO_AH:
	case IPPROTO_SCTP:
	default:
		return judge_service(protocol, 0);
	}
}

// Sources that no packet on a wire may have (RFC 1122 section 3.2.1.3); 0.0.0.0 is a host that asks for its address.
static __always_inline bool is_martian_v4(__be32 address)
{
	__u32 host = bpf_ntohl(address);

	return host >> 24 == 127 || host >> 28 == 0xe || host == 0xffffffff;
}

static __always_inline enum reason judge_ipv4(struct cursor *cursor)
{
	struct iphdr *ip = take(cursor, sizeof(*ip));
	__u32 header, total, offset;
	__u64 *dropped;

	if (!ip || ip->version != 4)
		return MALFORMED;
	header = ip->ihl * 4;
	total = bpf_ntohs(ip->tot_len);
	if (header < sizeof(*ip) || total < header || total - sizeof(*ip) > left(cursor))
		return MALFORMED;
	if (is_martian_v4(ip->saddr))
		return MARTIAN_SOURCE;

	dropped = bpf_map_lookup_elem(&blocked_v4, &ip->saddr);
	if (dropped) {
		__sync_fetch_and_add(dropped, 1);
		return BLOCKED_SOURCE;
	}

	offset = bpf_ntohs(ip->frag_off) & (IP_MORE_FRAGMENTS | IP_OFFSET);
	if (offset && drop_fragments)
		return FRAGMENT;
	// RFC 1858: a fragment that starts 8 bytes in exists only to overwrite the TCP flags of the first one.
	if ((offset & IP_OFFSET) == 1 && ip->protocol == IPPROTO_TCP)
		return FRAGMENT;
	if (offset & IP_OFFSET)
		return PASSED;

	cursor->pos += header - sizeof(*ip);
	return judge_transport(cursor, ip->protocol, !offset);
}

// Walks the extension headers up to the transport header, whose protocol goes to `*protocol`.
static __always_inline enum reason skip_extensions(struct cursor *cursor, __u8 *protocol, bool *whole)
{
	for (int i = 0; i < MAX_EXTENSION_HEADERS; i++) {
		struct extension_header *extension;
		struct fragment_header *fragment;

		switch (*protocol) {
		case IPPROTO_HOPOPTS:
		case IPPROTO_ROUTING:
		case IPPROTO_DSTOPTS:
			extension = take(cursor, sizeof(*extension));
			if (!extension)
				return MALFORMED;
			*protocol = extension->next;
			cursor->pos += extension->length * 8 + 8 - sizeof(*extension);
			break;
		case IPPROTO_FRAGMENT:
			fragment = take(cursor, sizeof(*fragment));
			if (!fragment)
				return MALFORMED;
			if (drop_fragments)
				return FRAGMENT;
			*whole = false;
			*protocol = fragment->next;
			// The offset is above the three low bits. A later fragment starts with bytes, not with a header.
			if (fragment->offset_and_more & bpf_htons(0xfff8))
				*protocol = IPPROTO_NONE;
			break;
		default:
			return PASSED;
		}
	}
	return TOO_MANY_HEADERS;
}

static __always_inline enum reason judge_ipv6(struct cursor *cursor)
{
	struct ipv6hdr *ip = take(cursor, sizeof(*ip));
	enum reason reason;
	__u64 *dropped;
	bool whole = true;
	__u8 protocol;

	if (!ip || ip->version != 6 || bpf_ntohs(ip->payload_len) > left(cursor))
		return MALFORMED;
	if (ip->saddr.in6_u.u6_addr8[0] == 0xff)
		return MARTIAN_SOURCE;

	dropped = bpf_map_lookup_elem(&blocked_v6, &ip->saddr);
	if (dropped) {
		__sync_fetch_and_add(dropped, 1);
		return BLOCKED_SOURCE;
	}

	protocol = ip->nexthdr;
	reason = skip_extensions(cursor, &protocol, &whole);
	if (reason != PASSED)
		return reason;
	if (protocol == IPPROTO_NONE)
		return PASSED;
	return judge_transport(cursor, protocol, whole);
}

static __always_inline enum reason judge(struct cursor *cursor)
{
	struct ethhdr *ethernet = take(cursor, sizeof(*ethernet));
	__be16 protocol;

	if (!ethernet)
		return MALFORMED;
	protocol = ethernet->h_proto;

	for (int i = 0; i < MAX_VLAN_TAGS && is_vlan(protocol); i++) {
		struct vlan_header *tag = take(cursor, sizeof(*tag));

		if (!tag)
			return MALFORMED;
		protocol = tag->protocol;
	}

	switch (bpf_ntohs(protocol)) {
	case ETH_P_IP:
		return judge_ipv4(cursor);
	case ETH_P_IPV6:
		return judge_ipv6(cursor);
	case ETH_P_8021Q:
	case ETH_P_8021AD:
	case ETH_P_8021Q_OLD:
		return TOO_MANY_HEADERS;
	default:
		return PASSED_NOT_IP;
	}
}

SEC("xdp")
int firewall(struct xdp_md *ctx)
{
	struct cursor cursor = {
		.pos = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
	};
	__u64 bytes = cursor.end - cursor.pos;
	__u32 reason = judge(&cursor);
	struct counter *counter = bpf_map_lookup_elem(&counters, &reason);

	if (counter) {
		// This CPU's own element, so no atomics.
		counter->packets++;
		counter->bytes += bytes;
	}
	return reason <= LAST_PASS ? XDP_PASS : XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
