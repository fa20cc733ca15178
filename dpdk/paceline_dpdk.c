/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "paceline_dpdk.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

/* Entries of a queue's ring, unless the driver has fewer. */
#define DESCRIPTORS 512
/* Mbufs of a queue with memory of its own: net_af_xdp takes 2,048 for its rings. */
#define OWN_MBUFS 8192
/* Free mbufs that each thread keeps. */
#define CACHE 64

struct paceline_dpdk_device {
	uint16_t port;
	uint16_t queues;
	uint16_t opened;
	uint16_t rx_descriptors;
	uint16_t tx_descriptors;
	/* Mbufs of each queue. */
	uint32_t mbufs;
	/* Whether chunks are exchanged. */
	int exchanges;
	struct paceline_dpdk_memory memory;
	struct rte_eth_conf conf;
	struct paceline_dpdk_queue *queue;
};

struct paceline_dpdk_queue {
	struct rte_mempool *pool;
	uint16_t port;
	uint16_t number;
	int exchanges;
	/* Whether packets of several mbufs are sent. */
	int has_segments;
	/* Distance from the start of a chunk to the buffer of its mbuf, whose packet begins RTE_PKTMBUF_HEADROOM later. */
	uint32_t shift;
	uint32_t buffer_len;
};

static int fail(struct paceline_dpdk_error error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error.text, error.size, format, arguments);
	va_end(arguments);
	return -1;
}

uint32_t paceline_dpdk_abi(void)
{
	return PACELINE_DPDK_ABI;
}

int paceline_dpdk_start(int argc, char **argv, struct paceline_dpdk_error error)
{
	cpu_set_t cpus;
	/* The initialization binds the calling thread to a CPU. */
	int known = pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus) == 0;
	int parsed = rte_eal_init(argc, argv);

	if (known)
		pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	if (parsed < 0)
		return fail(error, "cannot initialize DPDK: %s", rte_strerror(rte_errno));
	return 0;
}

/*
 * Drivers that compute the packet's address from the mbuf's, or share the pool's own memory with the other side. They get pools with
 * memory of their own.
 */
static int needs_own_memory(const char *driver, const char *devargs)
{
	if (strcmp(driver, "net_af_xdp") == 0)
		return 1;
	return strcmp(driver, "net_memif") == 0 && strstr(devargs, "zero-copy=yes") != NULL;
}

static uint32_t at_most(uint32_t value, uint32_t limit)
{
	return value < limit ? value : limit;
}

/* Spreads packets over queues by flow, as far as the device can. */
static int configure(struct paceline_dpdk_device *device, const struct rte_eth_dev_info *info, struct paceline_dpdk_error error)
{
	struct rte_eth_conf *conf = &device->conf;
	int result;

	if (device->queues > 1 && info->flow_type_rss_offloads != 0) {
		conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf->rx_adv_conf.rss_conf.rss_hf =
			info->flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
	}
	conf->txmode.offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	result = rte_eth_dev_configure(device->port, device->queues, device->queues, conf);
	if (result != 0)
		return fail(error, "cannot configure the device: %s", rte_strerror(-result));
	device->rx_descriptors = device->tx_descriptors = at_most(DESCRIPTORS, device->mbufs / 4);
	result = rte_eth_dev_adjust_nb_rx_tx_desc(device->port, &device->rx_descriptors, &device->tx_descriptors);
	if (result != 0)
		return fail(error, "cannot size the rings: %s", rte_strerror(-result));
	if ((uint32_t)device->rx_descriptors + device->tx_descriptors + PACELINE_DPDK_BURST > device->mbufs)
		return fail(error, "the device's rings take %u frames, more than %u", device->rx_descriptors + device->tx_descriptors,
			    device->mbufs);
	return 0;
}

/* Makes memory known to DPDK, and to the device. Virtual devices do not map memory. */
static int map_memory(const struct rte_eth_dev_info *info, const struct paceline_dpdk_memory *memory,
		      struct paceline_dpdk_error error)
{
	static const uint8_t *registered;
	const size_t page = 4096;

	if (registered != memory->start) {
		if (rte_extmem_register(memory->start, memory->len, NULL, memory->len / page, page) != 0 && rte_errno != EEXIST)
			return fail(error, "cannot register the packet memory: %s", rte_strerror(rte_errno));
		registered = memory->start;
	}
	if (rte_dev_dma_map(info->device, memory->start, (uintptr_t)memory->start, memory->len) != 0 && rte_errno != ENOTSUP &&
	    rte_errno != EEXIST)
		return fail(error, "cannot map the packet memory for the device: %s", rte_strerror(rte_errno));
	return 0;
}

/* Ports that are open. A device that is probed again is found again. */
static uint8_t is_open[RTE_MAX_ETHPORTS];

static int find_port(const char *devargs, uint16_t *port, struct paceline_dpdk_error error)
{
	struct rte_dev_iterator iterator;
	uint16_t id;
	int result = rte_dev_probe(devargs);

	if (result != 0)
		return fail(error, "cannot probe the device: %s", rte_strerror(-result));
	RTE_ETH_FOREACH_MATCHING_DEV(id, devargs, &iterator) {
		rte_eth_iterator_cleanup(&iterator);
		if (is_open[id])
			return fail(error, "the device is open already");
		is_open[id] = 1;
		*port = id;
		return 0;
	}
	return fail(error, "the device has no Ethernet port");
}

/* Undoes the probing. */
static void remove_port(uint16_t port)
{
	struct rte_eth_dev_info info;
	int known = rte_eth_dev_info_get(port, &info) == 0;

	rte_eth_dev_close(port);
	is_open[port] = 0;
	if (known && info.device != NULL)
		rte_dev_remove(info.device);
}

static int prepare(struct paceline_dpdk_device *device, const char *devargs, uint32_t queues,
		   struct paceline_dpdk_info *out, struct paceline_dpdk_error error)
{
	struct rte_eth_dev_info info;
	int result = rte_eth_dev_info_get(device->port, &info);

	if (result != 0)
		return fail(error, "cannot read the device's properties: %s", rte_strerror(-result));
	device->queues = at_most(queues, at_most(info.max_rx_queues, info.max_tx_queues));
	device->exchanges = !needs_own_memory(info.driver_name, devargs);
	if (!device->exchanges)
		device->mbufs = OWN_MBUFS;
	if (device->exchanges && rte_eal_iova_mode() != RTE_IOVA_VA)
		return fail(error, "DPDK uses physical addresses here, which need an IOMMU's: start it with --iova-mode=va");
	if (device->queues == 0)
		return fail(error, "the device has no pair of queues");
	if (configure(device, &info, error) != 0 || (device->exchanges && map_memory(&info, &device->memory, error) != 0))
		return -1;
	device->queue = calloc(device->queues, sizeof(*device->queue));
	if (device->queue == NULL)
		return fail(error, "out of memory");
	*out = (struct paceline_dpdk_info){
		.queues = device->queues,
		.ifindex = info.if_index,
		.chunks = device->exchanges ? device->mbufs : 0,
		.driver = info.driver_name,
	};
	return 0;
}

struct paceline_dpdk_device *paceline_dpdk_open(const char *devargs, uint32_t queues, uint32_t frames,
						const struct paceline_dpdk_memory *memory,
						struct paceline_dpdk_info *info, struct paceline_dpdk_error error)
{
	struct paceline_dpdk_device *device = calloc(1, sizeof(*device));

	if (device == NULL) {
		fail(error, "out of memory");
		return NULL;
	}
	device->memory = *memory;
	device->mbufs = frames;
	if (find_port(devargs, &device->port, error) != 0) {
		free(device);
		return NULL;
	}
	if (prepare(device, devargs, queues, info, error) != 0) {
		remove_port(device->port);
		free(device);
		return NULL;
	}
	return device;
}

/* A pool whose mbufs have these chunks as buffers. */
static struct rte_mempool *pool_of_chunks(const struct paceline_dpdk_device *device, const char *name, uint8_t *const *chunks,
					  uint32_t shift, uint32_t buffer_len)
{
	int socket = rte_eth_dev_socket_id(device->port);
	struct rte_pktmbuf_extmem *buffers = calloc(device->mbufs, sizeof(*buffers));
	struct rte_mempool *pool;

	if (buffers == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	for (uint32_t i = 0; i < device->mbufs; i++)
		buffers[i] = (struct rte_pktmbuf_extmem){
			.buf_ptr = chunks[i] + shift,
			.buf_iova = (uintptr_t)chunks[i] + shift,
			.buf_len = buffer_len,
			.elt_size = buffer_len,
		};
	pool = rte_pktmbuf_pool_create_extbuf(name, device->mbufs, CACHE, 0, buffer_len, socket, buffers, device->mbufs);
	free(buffers);
	return pool;
}

struct paceline_dpdk_queue *paceline_dpdk_queue(struct paceline_dpdk_device *device, uint8_t *const *chunks,
						struct paceline_dpdk_error error)
{
	const struct paceline_dpdk_memory *memory = &device->memory;
	int socket = rte_eth_dev_socket_id(device->port), result;
	struct paceline_dpdk_queue *queue;
	char name[RTE_MEMPOOL_NAMESIZE];

	if (device->opened == device->queues) {
		fail(error, "all queues are set up");
		return NULL;
	}
	queue = &device->queue[device->opened];
	queue->port = device->port;
	queue->number = device->opened;
	queue->exchanges = device->exchanges;
	queue->has_segments = device->conf.txmode.offloads != 0;
	queue->shift = memory->headroom - RTE_PKTMBUF_HEADROOM;
	queue->buffer_len = memory->chunk_len - queue->shift - memory->tailroom;
	snprintf(name, sizeof(name), "paceline %u.%u", device->port, device->opened);
	if (device->exchanges)
		queue->pool = pool_of_chunks(device, name, chunks, queue->shift, queue->buffer_len);
	else
		queue->pool = rte_pktmbuf_pool_create(name, device->mbufs, CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, socket);
	if (queue->pool == NULL) {
		fail(error, "cannot make a pool of %u mbufs: %s", device->mbufs, rte_strerror(rte_errno));
		return NULL;
	}
	result = rte_eth_rx_queue_setup(device->port, queue->number, device->rx_descriptors, socket, NULL, queue->pool);
	if (result == 0)
		result = rte_eth_tx_queue_setup(device->port, queue->number, device->tx_descriptors, socket, NULL);
	if (result != 0) {
		fail(error, "cannot set up queue %u: %s", queue->number, rte_strerror(-result));
		return NULL;
	}
	device->opened++;
	return queue;
}

int paceline_dpdk_run(struct paceline_dpdk_device *device, struct paceline_dpdk_error error)
{
	int result = rte_eth_dev_start(device->port);

	if (result != 0)
		return fail(error, "cannot start the device: %s", rte_strerror(-result));
	/* Some drivers cannot; they receive what they receive. */
	rte_eth_promiscuous_enable(device->port);
	return 0;
}

/* Gives the calling thread a cache of free mbufs, if DPDK knows fewer threads than it can. */
static inline void register_thread(void)
{
	static __thread int tried;

	if (unlikely(!tried)) {
		tried = 1;
		if (rte_lcore_id() == LCORE_ID_ANY)
			rte_thread_register();
	}
}

/* Gives an mbuf another chunk; returns the one that it had. */
static inline uint8_t *exchange(const struct paceline_dpdk_queue *queue, struct rte_mbuf *mbuf, uint8_t *chunk)
{
	uint8_t *before = (uint8_t *)mbuf->buf_addr - queue->shift;

	mbuf->buf_addr = chunk + queue->shift;
	rte_mbuf_iova_set(mbuf, (uintptr_t)mbuf->buf_addr);
	return before;
}

/* Whether the mbuf's buffer is a chunk that nothing else refers to. A driver may deliver mbufs of another queue's pool. */
static inline int has_chunk(const struct paceline_dpdk_queue *queue, const struct rte_mbuf *mbuf)
{
	return queue->exchanges && mbuf->pool == queue->pool && mbuf->nb_segs == 1 && rte_mbuf_refcnt_read(mbuf) == 1;
}

uint32_t paceline_dpdk_receive(struct paceline_dpdk_queue *queue, uint8_t *const *fresh, uint32_t *used,
			       struct paceline_dpdk_packet *packets, uint32_t count)
{
	struct rte_mbuf *mbufs[PACELINE_DPDK_BURST];
	uint32_t exchanged = 0, received;

	register_thread();
	received = rte_eth_rx_burst(queue->port, queue->number, mbufs, at_most(count, PACELINE_DPDK_BURST));
	for (uint32_t i = 0; i < received; i++) {
		struct rte_mbuf *mbuf = mbufs[i];
		struct paceline_dpdk_packet *packet = &packets[i];

		packet->len = rte_pktmbuf_pkt_len(mbuf);
		packet->data = rte_pktmbuf_mtod(mbuf, uint8_t *);
		if (likely(has_chunk(queue, mbuf))) {
			packet->chunk = exchange(queue, mbuf, fresh[exchanged]);
			packet->mbuf = NULL;
			mbufs[exchanged++] = mbuf;
		} else {
			packet->chunk = NULL;
			packet->mbuf = mbuf;
		}
	}
	rte_pktmbuf_free_bulk(mbufs, exchanged);
	*used = exchanged;
	return received;
}

uint32_t paceline_dpdk_read(void *mbuf, uint8_t *packet, uint32_t size)
{
	struct rte_mbuf *first = mbuf;
	uint32_t len = rte_pktmbuf_pkt_len(first), at = 0;

	for (const struct rte_mbuf *part = first; part != NULL && at < size; part = part->next) {
		uint32_t part_len = at_most(rte_pktmbuf_data_len(part), size - at);

		memcpy(packet + at, rte_pktmbuf_mtod(part, const uint8_t *), part_len);
		at += part_len;
	}
	rte_pktmbuf_free(first);
	return len;
}

/* Copies a packet into an mbuf, and into further ones that are appended, if the device sends such. */
static int copy(struct paceline_dpdk_queue *queue, struct rte_mbuf *mbuf, const uint8_t *data, uint32_t len)
{
	struct rte_mbuf *part = mbuf;

	if (len > rte_pktmbuf_tailroom(mbuf) && !queue->has_segments)
		return -1;
	while (part != NULL) {
		uint32_t part_len = at_most(len, rte_pktmbuf_tailroom(part));

		memcpy(rte_pktmbuf_append(part, part_len), data, part_len);
		data += part_len;
		len -= part_len;
		if (part != mbuf && rte_pktmbuf_chain(mbuf, part) != 0) {
			rte_pktmbuf_free(part);
			return -1;
		}
		if (len == 0)
			return 0;
		part = rte_pktmbuf_alloc(queue->pool);
	}
	return -1;
}

/* Free mbufs: as many as there are, after those of packets that have been sent came back. */
static uint32_t allocate(struct paceline_dpdk_queue *queue, struct rte_mbuf **mbufs, uint32_t count)
{
	uint32_t allocated = 0;

	if (likely(rte_pktmbuf_alloc_bulk(queue->pool, mbufs, count) == 0))
		return count;
	rte_eth_tx_done_cleanup(queue->port, queue->number, 0);
	while (allocated < count && (mbufs[allocated] = rte_pktmbuf_alloc(queue->pool)) != NULL)
		allocated++;
	return allocated;
}

/* Puts a packet into a free mbuf. */
static int fill(struct paceline_dpdk_queue *queue, struct rte_mbuf *mbuf, struct paceline_dpdk_packet *packet)
{
	uint8_t *chunk = packet->chunk;

	/* A packet that begins before the mbuf's buffer is copied. */
	if (unlikely(chunk == NULL || packet->data < chunk + queue->shift))
		return copy(queue, mbuf, packet->data, packet->len);
	packet->chunk = exchange(queue, mbuf, chunk);
	mbuf->data_off = packet->data - (chunk + queue->shift);
	mbuf->data_len = mbuf->pkt_len = packet->len;
	return 0;
}

uint32_t paceline_dpdk_send(struct paceline_dpdk_queue *queue, struct paceline_dpdk_packet *packets, uint32_t count)
{
	struct rte_mbuf *mbufs[PACELINE_DPDK_BURST];
	uint32_t allocated, ready = 0, sent;

	register_thread();
	count = at_most(count, PACELINE_DPDK_BURST);
	allocated = allocate(queue, mbufs, count);
	for (uint32_t i = 0; i < allocated; i++) {
		if (likely(fill(queue, mbufs[i], &packets[i]) == 0))
			mbufs[ready++] = mbufs[i];
		else
			rte_pktmbuf_free(mbufs[i]);
	}
	sent = rte_eth_tx_burst(queue->port, queue->number, mbufs, ready);
	rte_pktmbuf_free_bulk(mbufs + sent, ready - sent);
	return sent;
}

uint64_t paceline_dpdk_dropped(struct paceline_dpdk_device *device)
{
	struct rte_eth_stats stats;

	return rte_eth_stats_get(device->port, &stats) == 0 ? stats.imissed + stats.rx_nombuf : 0;
}

int paceline_dpdk_is_gone(struct paceline_dpdk_device *device)
{
	return rte_eth_dev_is_removed(device->port);
}

void paceline_dpdk_close(struct paceline_dpdk_device *device)
{
	rte_eth_dev_stop(device->port);
	remove_port(device->port);
	for (uint16_t i = 0; i < device->queues; i++)
		rte_mempool_free(device->queue[i].pool);
	free(device->queue);
	free(device);
}
