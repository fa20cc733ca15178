// The workloads as XDP programs.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "workloads.h"

#define PROGRAM(name)                                                                     \
	SEC("xdp") int name##_program(struct xdp_md *ctx)                                 \
	{                                                                                 \
		return name((void *)(long)ctx->data, (void *)(long)ctx->data_end);        \
	}

PROGRAM(drop)
PROGRAM(port22)
PROGRAM(port22_payload)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

// W4: parse, and count the protocol.
SEC("xdp") int count_program(struct xdp_md *ctx)
{
	u32 key = protocol_of((void *)(long)ctx->data, (void *)(long)ctx->data_end);
	u64 *count = bpf_map_lookup_elem(&counts, &key);

	if (count)
		*count += 1;
	return PASS;
}

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 33);
	__type(key, u32);
	__type(value, u32);
} chain SEC(".maps");

// W5: a chain of tail calls, each program at the index after the one before; the last falls off its end.
SEC("xdp") int tail_program(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &chain, 0);
	return PASS;
}

char LICENSE[] SEC("license") = "GPL";
