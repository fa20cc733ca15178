// The hot path of examples/balancer.bpf.c in C, over tables of the same layout: buckets of a cache line with a tag and a number for
// each element, and elements of key and value. Known flows to one virtual address, forwarded by MAC address.
//
// balancer_staged runs a burst in three loops: keys and buckets, elements, the rest, which has the hashes of the first.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define POSITIONS 12
#define FILL 8
#define BURST 64

// `Frame` of paceline-frame.
struct descriptor {
	uint8_t *data;
	uint8_t *end;
	uint8_t rest[20];
	uint32_t verdict;
	uint8_t more[24];
};

struct flow {
	uint32_t source, destination;
	uint16_t source_port, destination_port;
	uint32_t protocol;
};

struct element {
	struct flow flow;
	uint32_t backend, reserved;
	uint64_t packets;
};

struct bucket {
	uint8_t tags[POSITIONS];
	uint32_t passed;
	uint32_t numbers[POSITIONS];
} __attribute__((aligned(64)));

struct backend {
	uint8_t mac[6], enabled, reserved, address[4];
};

struct balancer {
	struct bucket *buckets;
	struct element *elements;
	uint64_t count, used;
	struct backend backends[256];
	struct { uint64_t packets, bytes; } traffic[256];
	uint64_t events[10];
};

static inline uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_of(const struct flow *flow)
{
	uint64_t words[2];

	memcpy(words, flow, sizeof(words));
	return fold(words[0] ^ 0x243f6a8885a308d3, words[1] ^ 0x13198a2e03707344) * 0x9e3779b97f4a7c15;
}

static inline uint64_t home(const struct balancer *b, uint64_t hash)
{
	return (hash >> 32) * b->count >> 32;
}

static inline uint8_t tag_of(uint64_t hash)
{
	uint8_t tag = hash >> 24;

	return tag ? tag : 1;
}

// The positions of a bucket whose tags fit, as bits.
static inline unsigned fits(const struct bucket *bucket, uint8_t tag)
{
	typedef uint8_t lanes __attribute__((vector_size(16)));
	lanes all, wanted = tag - (lanes){};
	uint64_t halves[2];
	unsigned bits = 0;

	memcpy(&all, bucket->tags, sizeof(all));
	all = (lanes)(all == wanted);
	memcpy(halves, &all, sizeof(halves));
	for (unsigned half = 0; half < 2; half++)
		bits |= (unsigned)((halves[half] & 0x0101010101010101) * 0x0102040810204080 >> 56) << 8 * half;
	return bits & ((1 << POSITIONS) - 1);
}

static inline struct element *find(struct balancer *b, const struct flow *flow, uint64_t hash)
{
	for (uint64_t at = home(b, hash);; at = at + 1 == b->count ? 0 : at + 1) {
		struct bucket *bucket = &b->buckets[at];

		for (unsigned bits = fits(bucket, tag_of(hash)); bits; bits &= bits - 1) {
			struct element *element = &b->elements[bucket->numbers[__builtin_ctz(bits)]];

			if (!memcmp(&element->flow, flow, sizeof(*flow)))
				return element;
		}
		if (!bucket->passed)
			return NULL;
	}
}

struct balancer *balancer_new(uint64_t flows)
{
	struct balancer *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->count = (flows + FILL - 1) / FILL;
	b->buckets = aligned_alloc(64, b->count * sizeof(struct bucket));
	b->elements = malloc(flows * sizeof(struct element));
	if (!b->buckets || !b->elements)
		return NULL;
	memset(b->buckets, 0, b->count * sizeof(struct bucket));
	b->backends[32] = (struct backend){ { 2, 0, 0, 0, 2, 1 }, 1 };
	return b;
}

void balancer_free(struct balancer *b)
{
	if (b) {
		free(b->buckets);
		free(b->elements);
		free(b);
	}
}

void balancer_add(struct balancer *b, const struct flow *flow)
{
	uint64_t hash = hash_of(flow);
	uint64_t at = home(b, hash);

	for (;;) {
		struct bucket *bucket = &b->buckets[at];

		for (unsigned i = 0; i < POSITIONS; i++) {
			if (bucket->tags[i])
				continue;
			bucket->tags[i] = tag_of(hash);
			bucket->numbers[i] = b->used;
			b->elements[b->used++] = (struct element){ *flow, 32, 0, 1 };
			return;
		}
		bucket->passed++;
		at = at + 1 == b->count ? 0 : at + 1;
	}
}

// Whether a packet is to the virtual address 192.0.2.53, UDP port 53.
static inline int parse(const struct descriptor *frame, struct flow *flow)
{
	const uint8_t *data = frame->data;
	uint16_t fragment, type;
	const uint8_t *udp;

	if (data + 34 > frame->end)
		return 0;
	memcpy(&type, data + 12, 2);
	memcpy(&fragment, data + 20, 2);
	if (type != 8 || data[14] >> 4 != 4 || (data[14] & 15) < 5 || (fragment & 0xff3f) || data[23] != 17)
		return 0;
	udp = data + 14 + (data[14] & 15) * 4;
	if (udp + 8 > frame->end)
		return 0;
	memcpy(&flow->source, data + 26, 8);
	memcpy(&flow->source_port, udp, 4);
	flow->protocol = 17;
	return flow->destination == 0x350200c0 && flow->destination_port == 0x3500;
}

static inline uint32_t forward(struct balancer *b, struct descriptor *frame, const struct flow *flow, uint64_t hash)
{
	struct element *element = find(b, flow, hash);
	struct backend *backend;

	if (!element || element->backend >= 256)
		return 1;
	backend = &b->backends[element->backend];
	if (!backend->enabled)
		return 1;
	__atomic_fetch_add(&element->packets, 1, __ATOMIC_SEQ_CST);
	memcpy(frame->data + 6, frame->data, 6);
	memcpy(frame->data, backend->mac, 6);
	b->traffic[element->backend].packets++;
	b->traffic[element->backend].bytes += frame->end - frame->data;
	b->events[3]++;
	return 3;
}

void balancer_plain(struct balancer *b, struct descriptor *first, struct descriptor *end)
{
	for (struct descriptor *frame = first; frame != end; frame++) {
		struct flow flow;

		frame->verdict = parse(frame, &flow) ? forward(b, frame, &flow, hash_of(&flow)) : 2;
	}
}

void balancer_staged(struct balancer *b, struct descriptor *first, struct descriptor *end)
{
	struct flow flows[BURST];
	uint64_t hashes[BURST];
	uint8_t ours[BURST];
	unsigned count = end - first;

	for (unsigned i = 0; i < count; i++) {
		ours[i] = parse(&first[i], &flows[i]);
		if (ours[i]) {
			hashes[i] = hash_of(&flows[i]);
			__builtin_prefetch(&b->buckets[home(b, hashes[i])]);
		}
	}
	for (unsigned i = 0; i < count; i++) {
		if (ours[i]) {
			struct bucket *bucket = &b->buckets[home(b, hashes[i])];
			unsigned bits = fits(bucket, tag_of(hashes[i]));

			if (bits)
				__builtin_prefetch(&b->elements[bucket->numbers[__builtin_ctz(bits)]]);
		}
	}
	for (unsigned i = 0; i < count; i++)
		first[i].verdict = ours[i] ? forward(b, &first[i], &flows[i], hashes[i]) : 2;
}
