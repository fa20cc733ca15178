// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//
// A layer 4 load balancer for TCP and UDP over IPv4, with direct server return.
//
// A packet to a virtual address (map `vips`) goes to one of the service's backends (map `backends`) and leaves by the
// interface it came from. It gets there in one of two ways:
//   - FORWARD_L2 sets the destination MAC address: backends on the same segment, with the virtual address on `lo`;
//   - FORWARD_IPIP puts the packet in an IP packet to the backend: backends anywhere.
// Backends answer the client themselves, so the inner packet is not touched: its TTL and its checksums stay.
//
// New flows choose their backend by rendezvous hashing: each backend gets a score from the flow and its index, the
// highest wins. When a backend goes, only its own flows move. `connections` keeps a flow where it is even when a
// backend is added; if the map is full, the hash alone decides.
//
// Not balanced, but passed to the stack: fragments (only the first has ports), ICMP, IPv6, VLAN-tagged packets.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAX_BACKENDS 256
#define MAX_BACKENDS_OF_SERVICE 16
#define DEFAULT_BACKENDS 2
#define IP_DONT_FRAGMENT 0x4000
#define IP_MORE_FRAGMENTS 0x2000
#define IP_OFFSET 0x1fff
#define TUNNEL_TTL 64

enum mode {
	FORWARD_L2,
	FORWARD_IPIP,
};

// What happened to a packet: the index in `events`.
enum event {
	NOT_FOR_US,
	MALFORMED,
	FRAGMENT,
	FORWARDED_L2,
	FORWARDED_IPIP,
	NEW_CONNECTION,
	CONNECTIONS_FULL,
	NO_BACKEND,
	TOO_BIG,
	NO_HEADROOM,
	EVENTS,
};

// Ports are in host order and addresses byte by byte, so that people can write and read the maps.
struct vip {
	__u8 address[4];
	__u16 port;
	__u8 protocol;
	__u8 reserved; // zero: a hash map compares all bytes of a key
};

struct service {
	__u32 mode; // enum mode
	__u32 first_backend; // index in `backends`
	__u32 backends; // at most MAX_BACKENDS_OF_SERVICE
};

struct backend {
	__u8 mac[ETH_ALEN]; // of the backend, or of the router on the way to it
	__u8 enabled;
	__u8 reserved;
	__u8 address[4]; // of the tunnel's end, for FORWARD_IPIP
};

struct flow {
	__be32 source;
	__be32 destination;
	__be16 source_port;
	__be16 destination_port;
	__u32 protocol;
};

struct connection {
	__u32 backend;
	__u32 reserved;
	__u64 packets;
};

struct traffic {
	__u64 packets;
	__u64 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct vip);
	__type(value, struct service);
} vips SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_BACKENDS);
	__type(key, __u32);
	__type(value, struct backend);
} backends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow);
	__type(value, struct connection);
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_BACKENDS);
	__type(key, __u32);
	__type(value, struct traffic);
} backend_traffic SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EVENTS);
	__type(key, __u32); // enum event
	__type(value, __u64);
} events SEC(".maps");

// Settings. The default service is there for a first try without maps: protocol 0 turns it off.
const volatile __u8 tunnel_source[4] = { 192, 0, 2, 1 };
const volatile __u16 mtu = 1500;
const volatile struct vip default_vip = { .address = { 192, 0, 2, 10 }, .port = 80, .protocol = IPPROTO_TCP };
const volatile struct service default_service = { .mode = FORWARD_IPIP, .backends = DEFAULT_BACKENDS };

// Used where user space has put no backend in the map.
struct backend default_backends[DEFAULT_BACKENDS] = {
	{ .mac = { 0x02, 0, 0, 0, 0, 0x65 }, .enabled = 1, .address = { 198, 51, 100, 101 } },
	{ .mac = { 0x02, 0, 0, 0, 0, 0x66 }, .enabled = 1, .address = { 198, 51, 100, 102 } },
};

// What the parser finds out about a packet.
struct parsed {
	struct flow flow;
	__u16 length; // of the IP packet
	__u8 tos;
	bool reset; // TCP RST: the connection is over
};

static __always_inline void count(__u32 event)
{
	__u64 *counter = bpf_map_lookup_elem(&events, &event);

	if (counter)
		*counter += 1;
}

static __always_inline void count_backend(__u32 index, __u64 bytes)
{
	struct traffic *traffic = bpf_map_lookup_elem(&backend_traffic, &index);

	if (!traffic)
		return;
	traffic->packets++;
	traffic->bytes += bytes;
}

static __always_inline __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

// The finalizer of MurmurHash3: each bit of the input changes each bit of the result half of the time.
static __always_inline __u32 mix(__u32 hash)
{
	hash ^= hash >> 16;
	hash *= 0x85ebca6b;
	hash ^= hash >> 13;
	hash *= 0xc2b2ae35;
	hash ^= hash >> 16;
	return hash;
}

static __always_inline __u32 hash_flow(const struct flow *flow)
{
	__u32 ports = (__u32)flow->source_port << 16 | flow->destination_port;

	return mix(mix(mix(flow->source) ^ flow->destination) ^ ports) ^ flow->protocol;
}

static __always_inline struct backend *backend_at(__u32 index)
{
	struct backend *backend = bpf_map_lookup_elem(&backends, &index);

	if (backend && backend->enabled)
		return backend;
	if (index < DEFAULT_BACKENDS && default_backends[index].enabled)
		return &default_backends[index];
	return NULL;
}

// The index of the backend with the highest score, MAX_BACKENDS if none is enabled. A global function: the verifier
// checks its loop once, for any arguments, and not for each way that leads here.
__noinline __u32 choose_backend(__u32 hash, __u32 first, __u32 number)
{
	__u32 best = MAX_BACKENDS;
	__u32 best_score = 0;

	for (__u32 i = 0; i < MAX_BACKENDS_OF_SERVICE && i < number; i++) {
		__u32 score = mix(hash ^ mix(first + i + 1));

		if (score >= best_score && backend_at(first + i)) {
			best = first + i;
			best_score = score;
		}
	}
	return best;
}

// Reads the flow of an IPv4 packet. The event is NOT_FOR_US if all is well so far.
static __noinline enum event parse(struct xdp_md *ctx, struct parsed *parsed)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = data;
	struct iphdr *ip = (void *)(ethernet + 1);
	struct tcphdr *tcp;
	struct udphdr *udp;
	void *transport;

	parsed->flow.protocol = 0;
	if ((void *)(ethernet + 1) > end)
		return MALFORMED;
	if (ethernet->h_proto != bpf_htons(ETH_P_IP))
		return NOT_FOR_US;
	if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5)
		return MALFORMED;
	if (ip->frag_off & bpf_htons(IP_MORE_FRAGMENTS | IP_OFFSET))
		return FRAGMENT;

	parsed->length = bpf_ntohs(ip->tot_len);
	parsed->tos = ip->tos;
	parsed->reset = false;
	parsed->flow.source = ip->saddr;
	parsed->flow.destination = ip->daddr;
	transport = (void *)ip + ip->ihl * 4;

	switch (ip->protocol) {
	case IPPROTO_TCP:
		tcp = transport;
		if ((void *)(tcp + 1) > end)
			return MALFORMED;
		parsed->flow.source_port = tcp->source;
		parsed->flow.destination_port = tcp->dest;
		parsed->reset = tcp->rst;
		break;
	case IPPROTO_UDP:
		udp = transport;
		if ((void *)(udp + 1) > end)
			return MALFORMED;
		parsed->flow.source_port = udp->source;
		parsed->flow.destination_port = udp->dest;
		break;
	default:
		return NOT_FOR_US;
	}
	parsed->flow.protocol = ip->protocol;
	return NOT_FOR_US;
}

static __always_inline bool find_service(const struct flow *flow, struct service *service)
{
	struct vip vip = {
		.port = bpf_ntohs(flow->destination_port),
		.protocol = flow->protocol,
	};
	struct service *found;

	__builtin_memcpy(vip.address, &flow->destination, sizeof(vip.address));
	found = bpf_map_lookup_elem(&vips, &vip);
	if (found) {
		*service = *found;
		return true;
	}
	if (default_vip.protocol == vip.protocol && default_vip.port == vip.port &&
	    default_vip.address[0] == vip.address[0] && default_vip.address[1] == vip.address[1] &&
	    default_vip.address[2] == vip.address[2] && default_vip.address[3] == vip.address[3]) {
		service->mode = default_service.mode;
		service->first_backend = default_service.first_backend;
		service->backends = default_service.backends;
		return true;
	}
	return false;
}

// The backend that the flow has or gets, MAX_BACKENDS if there is none.
static __always_inline __u32 backend_of(const struct parsed *parsed, const struct service *service)
{
	struct connection *known = bpf_map_lookup_elem(&connections, &parsed->flow);
	struct connection connection = { .packets = 1 };

	if (known && backend_at(known->backend)) {
		__u32 backend = known->backend;

		__sync_fetch_and_add(&known->packets, 1);
		// The reset itself still has to reach the backend.
		if (parsed->reset)
			bpf_map_delete_elem(&connections, &parsed->flow);
		return backend;
	}

	connection.backend = choose_backend(hash_flow(&parsed->flow), service->first_backend, service->backends);
	if (connection.backend >= MAX_BACKENDS || parsed->reset)
		return connection.backend;
	count(bpf_map_update_elem(&connections, &parsed->flow, &connection, BPF_ANY) ? CONNECTIONS_FULL : NEW_CONNECTION);
	return connection.backend;
}

// The balancer becomes the source: a switch must not see the client's or the router's address from two sides.
static __always_inline void set_addresses(struct ethhdr *ethernet, const __u8 *own, const struct backend *backend)
{
	__builtin_memcpy(ethernet->h_source, own, ETH_ALEN);
	__builtin_memcpy(ethernet->h_dest, backend->mac, ETH_ALEN);
}

static __always_inline enum event forward_l2(struct xdp_md *ctx, const struct backend *backend)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = data;
	__u8 own[ETH_ALEN];

	if ((void *)(ethernet + 1) > end)
		return MALFORMED;
	__builtin_memcpy(own, ethernet->h_dest, ETH_ALEN);
	set_addresses(ethernet, own, backend);
	return FORWARDED_L2;
}

static __always_inline enum event forward_ipip(struct xdp_md *ctx, const struct parsed *parsed,
					       const struct backend *backend)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = data;
	__u8 own[ETH_ALEN];
	struct iphdr *ip;

	if (parsed->length + sizeof(*ip) > mtu)
		return TOO_BIG;
	if ((void *)(ethernet + 1) > end)
		return MALFORMED;
	__builtin_memcpy(own, ethernet->h_dest, ETH_ALEN);

	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(*ip)))
		return NO_HEADROOM;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	ethernet = data;
	ip = (void *)(ethernet + 1);
	if ((void *)(ip + 1) > end)
		return MALFORMED;

	set_addresses(ethernet, own, backend);
	ethernet->h_proto = bpf_htons(ETH_P_IP);

	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos = parsed->tos;
	ip->tot_len = bpf_htons(parsed->length + sizeof(*ip));
	ip->id = 0; // never fragmented, so it need not be unique (RFC 6864)
	ip->frag_off = bpf_htons(IP_DONT_FRAGMENT);
	ip->ttl = TUNNEL_TTL;
	ip->protocol = IPPROTO_IPIP;
	ip->check = 0;
	__builtin_memcpy(&ip->saddr, (const void *)tunnel_source, sizeof(ip->saddr));
	__builtin_memcpy(&ip->daddr, backend->address, sizeof(ip->daddr));
	ip->check = fold(bpf_csum_diff(NULL, 0, (void *)ip, sizeof(*ip), 0));
	return FORWARDED_IPIP;
}

static __always_inline enum event forward(struct xdp_md *ctx)
{
	__u64 bytes = (void *)(long)ctx->data_end - (void *)(long)ctx->data;
	struct parsed parsed;
	enum event event = parse(ctx, &parsed);
	struct backend *backend;
	struct service service;
	__u32 index;

	if (event != NOT_FOR_US || !parsed.flow.protocol)
		return event;
	if (!find_service(&parsed.flow, &service))
		return NOT_FOR_US;
	index = backend_of(&parsed, &service);
	backend = backend_at(index);
	if (!backend)
		return NO_BACKEND;

	event = service.mode == FORWARD_IPIP ? forward_ipip(ctx, &parsed, backend) : forward_l2(ctx, backend);
	if (event == FORWARDED_IPIP || event == FORWARDED_L2)
		count_backend(index, bytes);
	return event;
}

SEC("xdp")
int balancer(struct xdp_md *ctx)
{
	enum event event = forward(ctx);

	count(event);
	switch (event) {
	case FORWARDED_L2:
	case FORWARDED_IPIP:
		return XDP_TX;
	case NOT_FOR_US:
	case FRAGMENT:
		return XDP_PASS;
	default:
		return XDP_DROP;
	}
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
