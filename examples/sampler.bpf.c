// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//
// Samples packets for a collector, for an interface that gets copies (a mirror port): a sampled packet is cut to its
// first bytes and redirected to the collector's interface, all others are dropped.
//
// Two programs: `sample_every` takes each n-th packet, `sample_random` each with a chance of 1 in n, which traffic that
// repeats itself cannot fool (RFC 3176). A header of 16 bytes in the metadata area, before the packet, says what the
// collector cannot see: the number of the packet, its true length, and when it came.
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#define MAX_ATTEMPTS 8

// Settings.
const volatile __u32 one_in = 4;
const volatile __u32 snap_length = 64; // bytes kept of a packet, at least 14
const volatile __u32 collector_ifindex = 1;
const volatile __u32 report_every = 100; // samples per line in the trace; 0 for none

// In native byte order. `nanoseconds` is 0 from `sample_every`, whose output depends on its input alone.
struct sample {
	__u32 number;
	__u32 length;
	__u64 nanoseconds;
};

__u64 seen; // packets
__u64 sampled;
__u64 sampled_bytes; // as they came, not as cut
__u64 largest; // length of the largest packet seen
__u64 failed; // sampled, but the packet could not be changed

// Raises `largest` to `length`. Another CPU may raise it at the same time, so compare and exchange.
static __noinline void note_length(__u64 length)
{
	for (int i = 0; i < MAX_ATTEMPTS; i++) {
		__u64 known = *(volatile __u64 *)&largest;

		if (length <= known || __sync_val_compare_and_swap(&largest, known, length) == known)
			return;
	}
}

// Puts a header before the packet and cuts its tail; true if both worked.
static __always_inline bool prepare(struct xdp_md *ctx, const struct sample *sample)
{
	struct sample *header;
	void *data;

	// The tail first: both calls void the pointers, but only the header needs one.
	if (sample->length > snap_length && bpf_xdp_adjust_tail(ctx, (int)snap_length - (int)sample->length))
		return false;
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*header)))
		return false;
	header = (void *)(long)ctx->data_meta;
	data = (void *)(long)ctx->data;
	if ((void *)(header + 1) > data)
		return false;
	*header = *sample;
	return true;
}

static __always_inline __u32 length_of(struct xdp_md *ctx)
{
	return (void *)(long)ctx->data_end - (void *)(long)ctx->data;
}

static __always_inline int take_sample(struct xdp_md *ctx, __u64 number, __u64 nanoseconds)
{
	struct sample sample = {
		.number = number,
		.length = length_of(ctx),
		.nanoseconds = nanoseconds,
	};
	__u64 before;

	if (!prepare(ctx, &sample)) {
		__sync_fetch_and_add(&failed, 1);
		return XDP_ABORTED;
	}
	before = __sync_fetch_and_add(&sampled, 1);
	__sync_fetch_and_add(&sampled_bytes, sample.length);
	if (report_every && (before + 1) % report_every == 0)
		bpf_printk("%llu samples of %llu packets, largest %llu bytes", before + 1, number + 1, largest);
	return bpf_redirect(collector_ifindex, 0);
}

SEC("xdp")
int sample_every(struct xdp_md *ctx)
{
	__u64 number = __sync_fetch_and_add(&seen, 1);

	note_length(length_of(ctx));
	if (one_in == 0 || number % one_in)
		return XDP_DROP;
	return take_sample(ctx, number, 0);
}

SEC("xdp")
int sample_random(struct xdp_md *ctx)
{
	__u64 number = __sync_fetch_and_add(&seen, 1);

	note_length(length_of(ctx));
	// A random number below one_in without a division: the high half of the product.
	if (one_in == 0 || (__u64)bpf_get_prandom_u32() * one_in >> 32)
		return XDP_DROP;
	return take_sample(ctx, number, bpf_ktime_get_ns());
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
