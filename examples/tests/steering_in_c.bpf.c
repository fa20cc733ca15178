// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//
// Tests in C of the TC classifier: a class marks its packets, and one that is shut off drops them.
#include "../steering.bpf.c"
#include "in_c.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, int(struct __sk_buff *));
} under_test SEC(".maps") = { .values = { (void *)&steering } };

struct datagram {
	struct ethhdr ethernet;
	struct iphdr ip;
	__be16 source;
	__be16 dest;
	__be16 length;
	__be16 checksum;
} __attribute__((packed));

// Cuts the packet to a datagram to port 53.
static __always_inline int make(struct __sk_buff *skb)
{
	struct datagram datagram = {
		.ethernet = { .h_proto = bpf_htons(ETH_P_IP) },
		.ip = { .version = 4, .ihl = 5, .protocol = IPPROTO_UDP },
		.dest = bpf_htons(53),
	};

	if (bpf_skb_change_tail(skb, sizeof(datagram), 0))
		return TEST_ERROR;
	return bpf_skb_store_bytes(skb, 0, &datagram, sizeof(datagram), 0) ? TEST_ERROR : TEST_PASS;
}

static __always_inline int send(struct __sk_buff *skb, const struct class *class)
{
	__be16 port = bpf_htons(53);

	if (bpf_map_update_elem(&classes, &port, class, BPF_ANY))
		return TEST_ERROR;
	bpf_tail_call(skb, &under_test, 0);
	return TEST_ERROR;
}

static __always_inline __u32 verdict_of(struct __sk_buff *skb)
{
	__u32 verdict = TEST_ERROR;

	bpf_skb_load_bytes(skb, 0, &verdict, sizeof(verdict));
	return verdict;
}

PKTGEN("tc", "a class marks its packets")
int datagram(struct __sk_buff *skb)
{
	return make(skb);
}

SETUP("tc", "a class marks its packets")
int send_marked(struct __sk_buff *skb)
{
	struct class class = { .mark = 7, .priority = 3, .dscp = 46 };

	return send(skb, &class);
}

CHECK("tc", "a class marks its packets")
int check_marked(struct __sk_buff *skb)
{
	__u8 tos = 0;

	TEST_BEGIN();
	TEST_EXPECT(verdict_of(skb) == TC_ACT_OK, "verdict %d", verdict_of(skb));
	TEST_EXPECT(skb->mark == 7, "mark %u", skb->mark);
	TEST_EXPECT(skb->priority == 3, "priority %u", skb->priority);
	bpf_skb_load_bytes(skb, sizeof(__u32) + ETH_HLEN + offsetof(struct iphdr, tos), &tos, sizeof(tos));
	TEST_EXPECT(tos >> 2 == 46, "code point %u", tos >> 2);
	TEST_END();
}

PKTGEN("tc", "a class that is shut drops")
int another_datagram(struct __sk_buff *skb)
{
	return make(skb);
}

SETUP("tc", "a class that is shut drops")
int send_shut(struct __sk_buff *skb)
{
	struct class class = { .flags = SHUT };

	return send(skb, &class);
}

CHECK("tc", "a class that is shut drops")
int check_shut(struct __sk_buff *skb)
{
	TEST_BEGIN();
	TEST_EXPECT(verdict_of(skb) == TC_ACT_SHOT, "verdict %d", verdict_of(skb));
	TEST_END();
}
