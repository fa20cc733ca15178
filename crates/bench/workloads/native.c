// The workloads as machine code by the C compiler, to be called through a pointer or inlined into a loop.
#include "workloads.h"

struct frame {
	const u8 *data, *end;
};

u64 native_counts[256];
u64 native_xdp1_counts[256];

ALWAYS_INLINE int count(const u8 *data, const u8 *end)
{
	native_counts[protocol_of(data, end)] += 1;
	return PASS;
}

ALWAYS_INLINE int xdp1(const u8 *data, const u8 *end)
{
	native_xdp1_counts[xdp1_protocol(data, end)] += 1;
	return DROP;
}

#define FUNCTION(name)                                       \
	int native_##name(const struct frame *frame)         \
	{                                                    \
		return name(frame->data, frame->end);        \
	}

FUNCTION(drop)
FUNCTION(port22)
FUNCTION(port22_payload)
FUNCTION(count)

/* The same inlined into a loop, for so many packets over `n` frames. */
#define LOOP(name)                                                                \
	u64 native_loop_##name(const struct frame *const *frames, u64 n, u64 times) \
	{                                                                         \
		u64 sum = 0, next = 0;                                            \
		while (times--) {                                                 \
			/* What one packet comes to is not kept for the next. */  \
			__asm__ volatile("" ::: "memory");                        \
			/* Not by way of the function, which code for shared    \
			 * libraries may not inline. */                         \
			sum += (u64)name(frames[next]->data, frames[next]->end);  \
			next++;                                                   \
			if (next == n)                                            \
				next = 0;                                         \
		}                                                                 \
		return sum;                                                       \
	}

LOOP(drop)
LOOP(port22)
LOOP(port22_payload)
LOOP(count)

/* The same inlined into a loop over the frames of a burst, which get the verdicts. */
struct descriptor {
	const u8 *data, *end;
	u8 other[20];
	u32 verdict;
	u8 rest[24];
};

#define BURST(name)                                                                        \
	void native_burst_##name(struct descriptor *frame, struct descriptor *end)         \
	{                                                                                  \
		for (; frame != end; frame++)                                              \
			frame->verdict = (u32)name(frame->data, frame->end);               \
	}                                                                                  \
	void native_prefetch_##name(struct descriptor *frame, struct descriptor *end,      \
				    unsigned ahead)                                        \
	{                                                                                  \
		for (unsigned i = 1; i < ahead && frame + i < end; i++)                    \
			__builtin_prefetch(frame[i].data);                                 \
		for (; frame != end; frame++) {                                            \
			__builtin_prefetch((frame + ahead < end ? frame + ahead : frame)->data); \
			frame->verdict = (u32)name(frame->data, frame->end);               \
		}                                                                          \
	}

BURST(drop)
BURST(port22)
BURST(port22_payload)
BURST(count)
BURST(xdp1)
