// A program for coverage, with lines that the compiler keeps apart. With NATIVE it reads packets from
// standard input, each after its length, and clang counts its lines and branches.
struct xdp_md {
	unsigned data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};
#ifdef NATIVE
#define SEC(name)
#else
#define SEC(name) __attribute__((section(name), used))
#endif
typedef unsigned char u8;
static volatile unsigned sink;
// Different assembly around each store keeps the compiler from merging two of them.
#define EFFECT(n) do { __asm__ volatile("# " #n); sink = n; __asm__ volatile("# after " #n); } while (0)

static __attribute__((noinline)) int classify(u8 kind)
{
	switch (kind & 7) {
	case 0:
		EFFECT(1);
		return 2;
	case 1:
		EFFECT(2);
		return 3;
	case 2:
	case 3:
		EFFECT(3);
		break;
	default:
		EFFECT(4);
	}
	if (kind > 100)
		EFFECT(5);
	return 1;
}

static __attribute__((noinline)) int walk(const u8 *bytes, u8 most)
{
	int found = 0;
#pragma clang loop unroll(disable)
	for (unsigned i = 0; i < 16; i++) {
		u8 byte = bytes[i];
		if (byte == most) {
			EFFECT(6);
			break;
		}
		if (byte & 1 && byte > 20) {
			EFFECT(7);
			found++;
		} else {
			EFFECT(8);
		}
	}
	if (found > 3)
		EFFECT(9);
	return found;
}

SEC("xdp")
int program(struct xdp_md *ctx)
{
	const u8 *data = (void *)(long)ctx->data;
	const u8 *end = (void *)(long)ctx->data_end;
	if (data + 32 > end) {
		EFFECT(10);
		return 1;
	}
	int found = walk(data + 8, data[1]);
	if (found == 0) {
		EFFECT(11);
		return classify(data[0]);
	}
	EFFECT(12);
	if (found > 5 || data[2] == 9)
		EFFECT(13);
	return classify(data[3]) == 2 ? 2 : 1;
}
char LICENSE[] SEC("license") = "GPL";
#ifdef NATIVE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
int main(void)
{
	u8 *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	unsigned length;
	while (fread(&length, 4, 1, stdin) == 1 && fread(page, 1, length, stdin) == length) {
		unsigned start = (unsigned)(unsigned long)page;
		struct xdp_md ctx = { start, start + length, start, 0, 0, 0 };
		printf("%d\n", program(&ctx));
	}
	return 0;
}
#endif
