// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//
// Takes VLAN tags off (`vlan_pop`) and puts them on (`vlan_push`): two programs in one object.
//
// Both move the MAC addresses and let bpf_xdp_adjust_head() move the start of the packet, so the payload stays where
// it is. Every pointer into the packet is void after that call and has to be checked anew.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define VLAN_VID_MASK 0x0fff
#define VLAN_PRIORITY_SHIFT 13
#define VLAN_IDS 4096

// Settings.
const volatile __u8 pop_tags = 1; // tags that vlan_pop takes off: 1 leaves the inner tag of QinQ, 2 takes both
const volatile __u16 push_vid = 100; // VLAN that vlan_push puts packets in
const volatile bool push_outer = true; // put a service tag before packets that have a tag already (QinQ)
const volatile bool priority_from_ip = true; // take the tag's priority from the IP precedence

// What happened to packets: .bss.
__u64 popped;
__u64 pushed;
__u64 retagged; // priority tags (VLAN 0) whose VLAN vlan_push filled in
__u64 untouched;
__u64 failed; // no room, or too short: dropped

// Packets by VLAN, as popped or pushed.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VLAN_IDS);
	__type(key, __u32);
	__type(value, __u64);
} vlans SEC(".maps");

struct mac_addresses {
	__u8 both[2 * ETH_ALEN];
};

struct vlan_header {
	__be16 tci; // priority, drop eligibility, VLAN
	__be16 protocol; // what follows the tag
};

struct tagged_header {
	struct mac_addresses macs;
	__be16 tpid;
	struct vlan_header tag;
};

static __always_inline bool is_vlan(__be16 protocol)
{
	return protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD);
}

static __always_inline void count(__u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

static __always_inline void count_vlan(__u16 tci)
{
	__u32 vid = tci & VLAN_VID_MASK;
	__u64 *packets = bpf_map_lookup_elem(&vlans, &vid);

	if (packets)
		count(packets);
}

enum popping {
	POPPED,
	NO_TAG,
	POP_FAILED,
};

static __noinline enum popping pop_outer(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	struct tagged_header *header = data;
	struct ethhdr *ethernet = data;

	if ((void *)(ethernet + 1) > end)
		return POP_FAILED;
	if (!is_vlan(ethernet->h_proto))
		return NO_TAG;
	if ((void *)(header + 1) > end)
		return POP_FAILED;

	count_vlan(bpf_ntohs(header->tag.tci));
	// The tag is the four bytes after the addresses, so its `protocol` is the new EtherType already.
	__builtin_memmove(data + sizeof(struct vlan_header), data, sizeof(struct mac_addresses));
	if (bpf_xdp_adjust_head(ctx, sizeof(struct vlan_header)))
		return POP_FAILED;
	return POPPED;
}

SEC("xdp")
int vlan_pop(struct xdp_md *ctx)
{
	bool any = false;

	for (int i = 0; i < 2 && i < pop_tags; i++) {
		switch (pop_outer(ctx)) {
		case POPPED:
			any = true;
			continue;
		case NO_TAG:
			count(any ? &popped : &untouched);
			return XDP_PASS;
		case POP_FAILED:
			count(&failed);
			return XDP_DROP;
		}
	}
	count(any ? &popped : &untouched);
	return XDP_PASS;
}

// The IP precedence of the packet: the three high bits of the field that is now the DSCP. 0 when it is not IP.
static __noinline __u16 ip_precedence(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = data;
	struct ipv6hdr *ipv6 = (void *)(ethernet + 1);
	struct iphdr *ipv4 = (void *)(ethernet + 1);

	if ((void *)(ipv4 + 1) > end)
		return 0;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP))
		return ipv4->tos >> 5;
	// The traffic class straddles the first two bytes: its three high bits are in `priority`.
	if (ethernet->h_proto == bpf_htons(ETH_P_IPV6))
		return ipv6->priority >> 1;
	return 0;
}

SEC("xdp")
int vlan_push(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u16 tci = push_vid & VLAN_VID_MASK;
	struct tagged_header *header = data;
	struct ethhdr *ethernet = data;
	struct mac_addresses macs;
	__be16 tpid = bpf_htons(ETH_P_8021Q);

	if ((void *)(ethernet + 1) > end)
		goto fail;

	if (is_vlan(ethernet->h_proto)) {
		if ((void *)(header + 1) > end)
			goto fail;
		// VLAN 0 says only a priority (802.1Q, 6.9.1): the packet belongs to the port's VLAN and gets no second tag.
		if (!(header->tag.tci & bpf_htons(VLAN_VID_MASK))) {
			header->tag.tci |= bpf_htons(tci);
			count_vlan(tci);
			count(&retagged);
			return XDP_PASS;
		}
		if (!push_outer) {
			count(&untouched);
			return XDP_PASS;
		}
		// The outer tag keeps the priority that the inner one has.
		tci |= bpf_ntohs(header->tag.tci) & ~VLAN_VID_MASK;
		tpid = bpf_htons(ETH_P_8021AD);
	} else if (priority_from_ip) {
		tci |= ip_precedence(ctx) << VLAN_PRIORITY_SHIFT;
	}

	__builtin_memcpy(&macs, data, sizeof(macs));
	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(struct vlan_header)))
		goto fail;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	header = data;
	if ((void *)(header + 1) > end)
		goto fail;

	// What was the EtherType is in `tag.protocol` now, untouched.
	header->macs = macs;
	header->tpid = tpid;
	header->tag.tci = bpf_htons(tci);
	count_vlan(tci);
	count(&pushed);
	return XDP_PASS;

fail:
	count(&failed);
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
