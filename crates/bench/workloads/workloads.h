/* The workloads of the benchmarks, once for BPF and for the machine itself: both are compiled from this text.
 * W2 and W3 are the two filters that the kernel's patches for the eBPF interpreter measure, as tcpdump's
 * compiler orders their tests. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { DROP = 1, PASS = 2 };

/* Loads byte by byte: a packet has no alignment. The compilers make one load of it where the machine can. */
ALWAYS_INLINE u16 be16(const u8 *at)
{
	return (u16)(at[0] << 8 | at[1]);
}

/* W1: nothing. */
ALWAYS_INLINE int drop(const u8 *data, const u8 *end)
{
	return DROP;
}

/* W2: `tcpdump port 22` */
ALWAYS_INLINE int port22(const u8 *data, const u8 *end)
{
	const u8 *ports;
	u8 protocol;

	if (data + 14 > end)
		return DROP;
	switch (be16(data + 12)) {
	case 0x86dd:
		if (data + 58 > end)
			return DROP;
		protocol = data[20];
		ports = data + 54;
		break;
	case 0x0800:
		if (data + 34 > end)
			return DROP;
		protocol = data[23];
		if (be16(data + 20) & 0x1fff)
			return DROP;
		ports = data + 14 + (data[14] & 0xf) * 4;
		if (ports + 4 > end)
			return DROP;
		break;
	default:
		return DROP;
	}
	if (protocol != 132 && protocol != 6 && protocol != 17)
		return DROP;
	return be16(ports) == 22 || be16(ports + 2) == 22 ? PASS : DROP;
}

/* W3: `tcpdump 'tcp port 22 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)'`: with a payload */
ALWAYS_INLINE int port22_payload(const u8 *data, const u8 *end)
{
	const u8 *tcp;
	u32 header;

	if (data + 34 > end || be16(data + 12) != 0x0800)
		return DROP;
	if (data[23] != 6 || be16(data + 20) & 0x1fff)
		return DROP;
	header = (data[14] & 0xf) * 4;
	tcp = data + 14 + header;
	if (tcp + 13 > end)
		return DROP;
	if (be16(tcp) != 22 && be16(tcp + 2) != 22)
		return DROP;
	return be16(data + 16) - header - ((tcp[12] & 0xf0) >> 2) != 0 ? PASS : DROP;
}

/* The key that W4 counts by: the protocol of an IPv4 or IPv6 packet, 255 for others. */
ALWAYS_INLINE u32 protocol_of(const u8 *data, const u8 *end)
{
	if (data + 34 > end)
		return 255;
	switch (be16(data + 12)) {
	case 0x0800:
		return data[23];
	case 0x86dd:
		return data[20];
	default:
		return 255;
	}
}

/* The key that xdp1 counts by: the protocol of an IPv4 or IPv6 packet, also behind one or two VLAN tags, 0 for others. */
ALWAYS_INLINE u32 xdp1_protocol(const u8 *data, const u8 *end)
{
	const u8 *next = data + 14;
	u16 type;

	if (next > end)
		return 0;
	type = be16(data + 12);
#pragma unroll
	for (int tag = 0; tag < 2; tag++) {
		if (type != 0x8100 && type != 0x88a8)
			break;
		if (next + 4 > end)
			return 0;
		type = be16(next + 2);
		next += 4;
	}
	switch (type) {
	case 0x0800:
		return next + 20 > end ? 0 : next[9];
	case 0x86dd:
		return next + 40 > end ? 0 : next[6];
	default:
		return 0;
	}
}
