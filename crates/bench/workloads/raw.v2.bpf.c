// The workloads for engines that know no XDP: programs over a packet in plain memory, in the instructions that all of them
// have (-mcpu=v2: DPDK and sbpf have no 32-bit jumps).
#include "workloads.h"

#define SECTION(name) __attribute__((section(name), used))

// W4 counts in plain memory: whoever loads the program puts its address in place of this symbol.
extern u64 counts[256];

ALWAYS_INLINE int count(const u8 *data, const u8 *end)
{
	counts[protocol_of(data, end)] += 1;
	return PASS;
}

// Start and end of the packet as pointers in memory, as Paceline's own frames have them: what rbpf and sbpf are called with.
struct frame {
	const u8 *data, *end;
};

#define FRAMED(name)                                                          \
	SECTION("framed/" #name) int framed_##name(const struct frame *frame) \
	{                                                                     \
		return name(frame->data, frame->end);                         \
	}

FRAMED(drop)
FRAMED(port22)
FRAMED(port22_payload)
FRAMED(count)

// DPDK gives a program one pointer to a buffer of a fixed size. Its verifier follows no pointer in it, so the length
// stands in the buffer before the packet.
struct sized {
	u64 len;
	u8 data[];
};

#define SIZED(name)                                                           \
	SECTION("sized/" #name) int sized_##name(const struct sized *packet)  \
	{                                                                     \
		return name(packet->data, packet->data + packet->len);        \
	}

SIZED(drop)
SIZED(port22)
SIZED(port22_payload)
SIZED(count)

// The same without the length: all of the buffer is taken for the packet, and the compiler leaves the checks out.
#define UNCHECKED(name)                                                       \
	SECTION("unchecked/" #name) int unchecked_##name(const u8 *buffer)    \
	{                                                                     \
		return name(buffer, buffer + 2048);                           \
	}

UNCHECKED(drop)
UNCHECKED(port22)
UNCHECKED(port22_payload)
UNCHECKED(count)
