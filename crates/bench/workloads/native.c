// The workloads as machine code by the C compiler, to be called through a pointer or inlined into a loop.
#include "workloads.h"

struct frame {
	const u8 *data, *end;
};

#define FUNCTION(name)                                       \
	int native_##name(const struct frame *frame)         \
	{                                                    \
		return name(frame->data, frame->end);        \
	}

FUNCTION(drop)
FUNCTION(port22)
FUNCTION(port22_payload)

u64 native_counts[256];

int native_count(const struct frame *frame)
{
	native_counts[protocol_of(frame->data, frame->end)] += 1;
	return PASS;
}

/* The same inlined into a loop, `count` times over `n` frames. */
#define LOOP(name)                                                                \
	u64 native_loop_##name(const struct frame *const *frames, u64 n, u64 count) \
	{                                                                         \
		u64 sum = 0, next = 0;                                            \
		while (count--) {                                                 \
			/* What one packet comes to is not kept for the next. */  \
			__asm__ volatile("" ::: "memory");                        \
			sum += (u64)native_##name(frames[next++]);                \
			if (next == n)                                            \
				next = 0;                                         \
		}                                                                 \
		return sum;                                                       \
	}

LOOP(drop)
LOOP(port22)
LOOP(port22_payload)
LOOP(count)
