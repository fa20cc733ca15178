/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * DPDK's ports for Paceline: the functions of libpaceline-dpdk.so, which the crate `device` loads at run time.
 *
 * The library exists because DPDK's receive and transmit functions are inline functions of C headers. It knows nothing of Paceline's
 * types: packets are addresses and lengths.
 *
 * Frames are chunks of Paceline's memory. Each mbuf of a queue's pool owns one. A received packet is handed over by exchange: the mbuf
 * gets a free chunk, and its own chunk, with the packet, goes to the caller. A sent packet is exchanged the other way. So the pool
 * holds the same number of chunks at any time, and no completion is tracked.
 */
#ifndef PACELINE_DPDK_H
#define PACELINE_DPDK_H

#include <stddef.h>
#include <stdint.h>

/* Version of this interface. */
#define PACELINE_DPDK_ABI 1

/* Maximum number of packets of a call. */
#define PACELINE_DPDK_BURST 64

struct paceline_dpdk_device;
struct paceline_dpdk_queue;

/* Texts of errors are written to `text`, of `size` bytes, and end with a zero byte. */
struct paceline_dpdk_error {
	char *text;
	size_t size;
};

/* Memory that chunks are of, and the place of packets in a chunk. Lengths are in bytes. */
struct paceline_dpdk_memory {
	uint8_t *start;
	uint64_t len;
	uint32_t chunk_len;
	/* Space before and after a received packet. */
	uint32_t headroom;
	uint32_t tailroom;
};

struct paceline_dpdk_info {
	uint32_t queues;
	/* Index of the interface that the device belongs to, or 0. */
	uint32_t ifindex;
	/* Number of chunks that each queue takes; 0 if the driver needs memory of its own, so that packets are copied. */
	uint32_t chunks;
	const char *driver;
};

/* A packet in the memory. */
struct paceline_dpdk_packet {
	/* First byte of its chunk. Received: NULL if the packet is in no chunk and has to be read from `mbuf`. Sent: NULL if the packet is
	 * in no chunk, so that it is copied. */
	uint8_t *chunk;
	uint8_t *data;
	uint32_t len;
	uint32_t reserved;
	void *mbuf;
};

uint32_t paceline_dpdk_abi(void);

/* Initializes DPDK with arguments of its command line; the first one is a name. Once in a process. */
int paceline_dpdk_start(int argc, char **argv, struct paceline_dpdk_error error);

/* Probes a device by its name and arguments, and determines the number of queues: at most `queues`. */
struct paceline_dpdk_device *paceline_dpdk_open(const char *devargs, uint32_t queues, uint32_t frames,
						const struct paceline_dpdk_memory *memory,
						struct paceline_dpdk_info *info, struct paceline_dpdk_error error);

/* Sets a queue up, with `info.chunks` chunks by their first bytes. Each queue once, in order, before the start. */
struct paceline_dpdk_queue *paceline_dpdk_queue(struct paceline_dpdk_device *device, uint8_t *const *chunks,
						struct paceline_dpdk_error error);

/* Starts the device, after all queues are set up. */
int paceline_dpdk_run(struct paceline_dpdk_device *device, struct paceline_dpdk_error error);

/* Receives at most `count` packets. `fresh` are as many free chunks; the first `*used` of them now belong to the queue. */
uint32_t paceline_dpdk_receive(struct paceline_dpdk_queue *queue, uint8_t *const *fresh, uint32_t *used,
			       struct paceline_dpdk_packet *packets, uint32_t count);

/* Copies the packet of an mbuf, as far as it fits, and releases the mbuf. Returns the length of the packet. */
uint32_t paceline_dpdk_read(void *mbuf, uint8_t *packet, uint32_t size);

/* Sends packets and returns the number of those that the device took. On return `chunk` of each packet is the chunk that the caller
 * owns now: the packet's own if it was not exchanged. */
uint32_t paceline_dpdk_send(struct paceline_dpdk_queue *queue, struct paceline_dpdk_packet *packets, uint32_t count);

/* Number of packets that the device dropped because no buffer was free or a queue was full. */
uint64_t paceline_dpdk_dropped(struct paceline_dpdk_device *device);

/* Whether the device has gone. */
int paceline_dpdk_is_gone(struct paceline_dpdk_device *device);

/* Closes the device and releases its queues; afterwards nothing uses their chunks. */
void paceline_dpdk_close(struct paceline_dpdk_device *device);

#endif
