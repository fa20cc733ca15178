// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//
// Tests in C of the reflector: an echo request comes back as an answer, other packets pass.
#include "../reflector.bpf.c"
#include "in_c.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, int(struct xdp_md *));
} under_test SEC(".maps") = { .values = { (void *)&reflector } };

struct echo {
	struct ethhdr ethernet;
	struct iphdr ip;
	struct icmp_header icmp;
} __attribute__((packed));

// Cuts the packet to an echo message of this type.
static __always_inline int make(struct xdp_md *ctx, __u8 type)
{
	int surplus = (ctx->data_end - ctx->data) - sizeof(struct echo);
	struct echo *echo;

	if (bpf_xdp_adjust_tail(ctx, -surplus))
		return TEST_ERROR;
	echo = (void *)(long)ctx->data;
	if ((void *)(echo + 1) > (void *)(long)ctx->data_end)
		return TEST_ERROR;
	echo->ethernet.h_dest[5] = 1;
	echo->ethernet.h_source[5] = 2;
	echo->ethernet.h_proto = bpf_htons(ETH_P_IP);
	echo->ip.version = 4;
	echo->ip.ihl = 5;
	echo->ip.protocol = IPPROTO_ICMP;
	echo->ip.saddr = bpf_htonl(0x0a000001);
	echo->ip.daddr = bpf_htonl(0x0a000002);
	echo->icmp.type = type;
	return TEST_PASS;
}

PKTGEN("xdp", "echo requests are answered")
int request(struct xdp_md *ctx)
{
	return make(ctx, ICMP_ECHO_REQUEST);
}

SETUP("xdp", "echo requests are answered")
int send_request(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &under_test, 0);
	return TEST_ERROR;
}

CHECK("xdp", "echo requests are answered")
int check_answer(struct xdp_md *ctx)
{
	__u32 *verdict = (void *)(long)ctx->data, answered = ANSWERED_ICMP;
	struct echo *echo = (void *)(verdict + 1);
	__u64 *counter;

	TEST_BEGIN();
	TEST_REQUIRE((void *)(echo + 1) <= (void *)(long)ctx->data_end, "the answer has %d bytes", ctx->data_end - ctx->data);
	TEST_EXPECT(*verdict == XDP_TX, "verdict %d", *verdict);
	TEST_EXPECT(echo->ethernet.h_dest[5] == 2, "sent to %x", echo->ethernet.h_dest[5]);
	TEST_EXPECT(echo->icmp.type == ICMP_ECHO_REPLY, "type %d", echo->icmp.type);
	TEST_EXPECT(echo->ip.daddr == bpf_htonl(0x0a000001), "to %x", bpf_ntohl(echo->ip.daddr));
	counter = bpf_map_lookup_elem(&answers, &answered);
	TEST_EXPECT(counter && *counter == 1, "answers are not counted");
	TEST_END();
}

PKTGEN("xdp", "replies pass")
int reply(struct xdp_md *ctx)
{
	return make(ctx, ICMP_ECHO_REPLY);
}

SETUP("xdp", "replies pass")
int send_reply(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &under_test, 0);
	return TEST_ERROR;
}

CHECK("xdp", "replies pass")
int check_reply(struct xdp_md *ctx)
{
	__u32 *verdict = (void *)(long)ctx->data;

	TEST_BEGIN();
	TEST_REQUIRE((void *)(verdict + 1) <= (void *)(long)ctx->data_end, "there is no verdict");
	TEST_EXPECT(*verdict == XDP_PASS, "verdict %d", *verdict);
	TEST_END();
}

PKTGEN("xdp", "metadata comes before the packet")
int unmarked(struct xdp_md *ctx)
{
	return make(ctx, ICMP_ECHO_REPLY);
}

SETUP("xdp", "metadata comes before the packet")
int mark(struct xdp_md *ctx)
{
	__u32 *mark;

	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*mark)))
		return TEST_ERROR;
	mark = (void *)(long)ctx->data_meta;
	if ((void *)(mark + 1) > (void *)(long)ctx->data)
		return TEST_ERROR;
	*mark = 7;
	return XDP_PASS;
}

CHECK("xdp", "metadata comes before the packet")
int check_mark(struct xdp_md *ctx)
{
	__u32 *verdict = (void *)(long)ctx->data, *mark = verdict + 1;
	struct echo *echo = (void *)(mark + 1);

	TEST_BEGIN();
	TEST_REQUIRE((void *)(echo + 1) <= (void *)(long)ctx->data_end, "there are %d bytes", ctx->data_end - ctx->data);
	TEST_EXPECT(*verdict == XDP_PASS && *mark == 7, "verdict %d, mark %d", *verdict, *mark);
	TEST_EXPECT(echo->ethernet.h_dest[5] == 1, "sent to %x", echo->ethernet.h_dest[5]);
	TEST_END();
}
