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
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, u64);
} rxcnt SEC(".maps");

// As the kernel's sample xdp1: looks behind up to two VLAN tags, counts the protocol on this CPU, drops.
SEC("xdp") int xdp1_program(struct xdp_md *ctx)
{
	u32 key = xdp1_protocol((void *)(long)ctx->data, (void *)(long)ctx->data_end);
	u64 *count = bpf_map_lookup_elem(&rxcnt, &key);

	if (count)
		*count += 1;
	return DROP;
}

char LICENSE[] SEC("license") = "GPL";
