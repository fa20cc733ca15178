// W5: chains of tail calls. Program N calls index N of the array, where whoever makes a chain puts program N + 1, or the end.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 33);
	__type(key, __u32);
	__type(value, __u32);
} chain SEC(".maps");

#define LINK(n)                                 \
	SEC("xdp") int link_##n(struct xdp_md *ctx) \
	{                                           \
		bpf_tail_call(ctx, &chain, n);      \
		return XDP_ABORTED;                 \
	}

LINK(0)
LINK(1)
LINK(2)
LINK(3)
LINK(4)
LINK(5)
LINK(6)
LINK(7)
LINK(8)
LINK(9)
LINK(10)
LINK(11)
LINK(12)
LINK(13)
LINK(14)
LINK(15)
LINK(16)
LINK(17)
LINK(18)
LINK(19)
LINK(20)
LINK(21)
LINK(22)
LINK(23)
LINK(24)
LINK(25)
LINK(26)
LINK(27)
LINK(28)
LINK(29)
LINK(30)
LINK(31)
LINK(32)

SEC("xdp") int end(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
