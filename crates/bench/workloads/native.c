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
