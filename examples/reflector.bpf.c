// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//
// Answers from the driver: ARP requests, ICMP and ICMPv6 echo requests, and UDP datagrams to the echo port (RFC 862).
//
// An answer is the request with its addresses exchanged, sent back with XDP_TX. Exchanging words does not change an
// Internet checksum; for what does change, bpf_csum_diff() gives the difference and nothing is summed anew (RFC 1624).
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ARP_ETHERNET 1
#define ARP_REQUEST 1
#define ARP_REPLY 2
#define ICMP_ECHO_REPLY 0
#define ICMP_ECHO_REQUEST 8
#define ICMPV6_ECHO_REQUEST 128
#define ICMPV6_ECHO_REPLY 129
#define ECHO_PORT 7
#define ANSWER_TTL 64
#define IP_MORE_FRAGMENTS 0x2000
#define IP_OFFSET 0x1fff

// Settings. The address 0.0.0.0 answers ARP for every address: right on a test bench, harmful on a network.
const volatile __u8 own_mac[ETH_ALEN] = { 0x02, 0, 0, 0, 0, 0x01 };
const volatile __u32 own_ipv4 = 0; // in host order

// Index in `answers`.
enum answer {
	NOT_ANSWERED,
	ANSWERED_ARP,
	ANSWERED_ICMP,
	ANSWERED_ICMPV6,
	ANSWERED_UDP,
	ANSWERS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ANSWERS);
	__type(key, __u32); // enum answer
	__type(value, __u64);
} answers SEC(".maps");

struct vlan_header {
	__be16 tci;
	__be16 protocol;
};

// ARP for IPv4 over Ethernet. The addresses are not aligned to four bytes.
struct arp_packet {
	__be16 hardware;
	__be16 protocol;
	__u8 hardware_length;
	__u8 protocol_length;
	__be16 operation;
	__u8 sender_mac[ETH_ALEN];
	__u8 sender_ip[4];
	__u8 target_mac[ETH_ALEN];
	__u8 target_ip[4];
} __attribute__((packed));

// ICMP and ICMPv6 begin alike.
struct icmp_header {
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be32 rest;
};

static __always_inline void count(__u32 answer)
{
	__u64 *counter = bpf_map_lookup_elem(&answers, &answer);

	if (counter)
		*counter += 1;
}

static __always_inline __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

// The checksum after the 32-bit word `from`, in memory order, became `to`.
static __noinline __u16 update_checksum(__u16 checksum, __be32 from, __be32 to)
{
	return fold(bpf_csum_diff(&from, sizeof(from), &to, sizeof(to), (__u16)~checksum));
}

static __always_inline void swap_macs(struct ethhdr *ethernet)
{
	__u8 mac[ETH_ALEN];

	__builtin_memcpy(mac, ethernet->h_source, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, ethernet->h_dest, ETH_ALEN);
	__builtin_memcpy(ethernet->h_dest, mac, ETH_ALEN);
}

static __always_inline bool is_multicast_mac(const __u8 *mac)
{
	return mac[0] & 1;
}

static __always_inline void set_type(struct icmp_header *icmp, __u8 type)
{
	__be32 from = icmp->type;
	__be32 to = type;

	// The type is the first byte of its word in memory, whichever the byte order of the host.
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	from <<= 24;
	to <<= 24;
#endif
	icmp->type = type;
	icmp->checksum = update_checksum(icmp->checksum, from, to);
}

static __always_inline enum answer answer_arp(struct ethhdr *ethernet, struct arp_packet *arp, void *end)
{
	__u8 asked[4];
	__u32 address;

	if ((void *)(arp + 1) > end)
		return NOT_ANSWERED;
	if (arp->hardware != bpf_htons(ARP_ETHERNET) || arp->protocol != bpf_htons(ETH_P_IP) ||
	    arp->hardware_length != ETH_ALEN || arp->protocol_length != 4 || arp->operation != bpf_htons(ARP_REQUEST))
		return NOT_ANSWERED;
	__builtin_memcpy(asked, arp->target_ip, sizeof(asked));
	address = (__u32)asked[0] << 24 | asked[1] << 16 | asked[2] << 8 | asked[3];
	if (own_ipv4 && own_ipv4 != address)
		return NOT_ANSWERED;
	// A host that asks for its own address announces it (RFC 5227): an answer would say that somebody else has it.
	if (__builtin_memcmp(arp->sender_ip, asked, sizeof(asked)) == 0)
		return NOT_ANSWERED;

	arp->operation = bpf_htons(ARP_REPLY);
	__builtin_memcpy(arp->target_mac, arp->sender_mac, ETH_ALEN);
	__builtin_memcpy(arp->target_ip, arp->sender_ip, sizeof(asked));
	__builtin_memcpy(arp->sender_mac, (const void *)own_mac, ETH_ALEN);
	__builtin_memcpy(arp->sender_ip, asked, sizeof(asked));
	__builtin_memcpy(ethernet->h_dest, arp->target_mac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, (const void *)own_mac, ETH_ALEN);
	return ANSWERED_ARP;
}

// Turns a datagram to the echo port around.
static __always_inline enum answer answer_udp(struct udphdr *udp, void *end)
{
	__be16 port;

	if ((void *)(udp + 1) > end || udp->dest != bpf_htons(ECHO_PORT))
		return NOT_ANSWERED;
	// Two reflectors would send it to and fro for ever.
	if (udp->source == bpf_htons(ECHO_PORT))
		return NOT_ANSWERED;
	port = udp->source;
	udp->source = udp->dest;
	udp->dest = port;
	return ANSWERED_UDP;
}

static __always_inline enum answer answer_icmp(struct icmp_header *icmp, void *end)
{
	if ((void *)(icmp + 1) > end || icmp->type != ICMP_ECHO_REQUEST || icmp->code != 0)
		return NOT_ANSWERED;
	set_type(icmp, ICMP_ECHO_REPLY);
	return ANSWERED_ICMP;
}

static __always_inline enum answer answer_icmpv6(struct icmp_header *icmp, void *end)
{
	if ((void *)(icmp + 1) > end || icmp->type != ICMPV6_ECHO_REQUEST || icmp->code != 0)
		return NOT_ANSWERED;
	set_type(icmp, ICMPV6_ECHO_REPLY);
	return ANSWERED_ICMPV6;
}

static __always_inline void turn_ipv4(struct iphdr *ip)
{
	// The word of the header that has the TTL, its checksum left out.
	union {
		__u8 bytes[4];
		__be32 word;
	} from = { .bytes = { ip->ttl } }, to = { .bytes = { ANSWER_TTL } };
	__be32 address = ip->saddr;

	ip->saddr = ip->daddr;
	ip->daddr = address;
	ip->ttl = ANSWER_TTL;
	ip->check = update_checksum(ip->check, from.word, to.word);
}

static __always_inline enum answer answer_ipv4(struct iphdr *ip, void *end)
{
	enum answer answer = NOT_ANSWERED;
	void *transport;

	if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5)
		return NOT_ANSWERED;
	if (ip->frag_off & bpf_htons(IP_MORE_FRAGMENTS | IP_OFFSET))
		return NOT_ANSWERED;
	// Multicast, reserved and broadcast are 224.0.0.0 and above.
	if (bpf_ntohl(ip->daddr) >> 29 == 7)
		return NOT_ANSWERED;
	transport = (void *)ip + ip->ihl * 4;

	if (ip->protocol == IPPROTO_ICMP)
		answer = answer_icmp(transport, end);
	else if (ip->protocol == IPPROTO_UDP)
		answer = answer_udp(transport, end);
	if (answer != NOT_ANSWERED)
		turn_ipv4(ip);
	return answer;
}

static __always_inline enum answer answer_ipv6(struct ipv6hdr *ip, void *end)
{
	enum answer answer = NOT_ANSWERED;
	struct in6_addr address;

	if ((void *)(ip + 1) > end || ip->version != 6 || ip->daddr.in6_u.u6_addr8[0] == 0xff)
		return NOT_ANSWERED;
	if (ip->nexthdr == IPPROTO_ICMPV6)
		answer = answer_icmpv6((void *)(ip + 1), end);
	else if (ip->nexthdr == IPPROTO_UDP)
		answer = answer_udp((void *)(ip + 1), end);
	if (answer == NOT_ANSWERED)
		return answer;

	address = ip->saddr;
	ip->saddr = ip->daddr;
	ip->daddr = address;
	ip->hop_limit = ANSWER_TTL;
	return answer;
}

static __always_inline enum answer reflect(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = data;
	void *next = ethernet + 1;
	enum answer answer;
	__be16 protocol;

	if (next > end)
		return NOT_ANSWERED;
	protocol = ethernet->h_proto;
	// A tag goes back as it came.
	if (protocol == bpf_htons(ETH_P_8021Q)) {
		struct vlan_header *tag = next;

		next = tag + 1;
		if (next > end)
			return NOT_ANSWERED;
		protocol = tag->protocol;
	}
	if (protocol == bpf_htons(ETH_P_ARP))
		return answer_arp(ethernet, next, end);
	if (is_multicast_mac(ethernet->h_dest))
		return NOT_ANSWERED;

	if (protocol == bpf_htons(ETH_P_IP))
		answer = answer_ipv4(next, end);
	else if (protocol == bpf_htons(ETH_P_IPV6))
		answer = answer_ipv6(next, end);
	else
		return NOT_ANSWERED;
	if (answer != NOT_ANSWERED)
		swap_macs(ethernet);
	return answer;
}

SEC("xdp")
int reflector(struct xdp_md *ctx)
{
	enum answer answer = reflect(ctx);

	count(answer);
	return answer == NOT_ANSWERED ? XDP_PASS : XDP_TX;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
