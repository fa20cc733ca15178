/* What generated programs share: types, helpers and maps. No other header is read, so that compiling is fast. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;

struct xdp_md {
	u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

#define SEC(name) __attribute__((section(name), used))
#define noinline __attribute__((noinline))
#define inlined __attribute__((always_inline))
#define __uint(name, val) int (*name)[val]
#define __type(name, val) __typeof__(val) *name
#define __array(name, val) __typeof__(val) *name[]

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_prandom_u32)(void) = (void *)7;
static u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static long (*bpf_redirect)(u32 ifindex, u64 flags) = (void *)23;
static s64 (*bpf_csum_diff)(u32 *from, u32 from_size, u32 *to, u32 to_size, u32 seed) = (void *)28;
static long (*bpf_xdp_adjust_head)(struct xdp_md *ctx, int delta) = (void *)44;
static long (*bpf_xdp_adjust_meta)(struct xdp_md *ctx, int delta) = (void *)54;
static long (*bpf_xdp_adjust_tail)(struct xdp_md *ctx, int delta) = (void *)65;
static long (*bpf_for_each_map_elem)(void *map, void *callback, void *context, u64 flags) = (void *)164;
static long (*bpf_loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;
static u64 (*bpf_xdp_get_buff_len)(struct xdp_md *ctx) = (void *)188;
static long (*bpf_xdp_load_bytes)(struct xdp_md *ctx, u32 offset, void *buf, u32 len) = (void *)189;
static long (*bpf_xdp_store_bytes)(struct xdp_md *ctx, u32 offset, void *buf, u32 len) = (void *)190;

struct val {
	u64 a;
	u32 b;
	u16 c;
	u8 d, e;
};
struct wide {
	u64 w[8];
};
struct key {
	u32 a;
	u16 b;
	u8 c, d;
};
struct prefix {
	u32 bits, address;
};
struct pair {
	u32 x, y;
};
struct bits {
	u32 low : 20, high : 12;
	u32 p : 3, q : 7, r : 13, s : 9;
};
struct signed_bits {
	s32 low : 11, middle : 5, high : 16;
};
struct local {
	u64 a;
	u32 b;
	s32 c;
	u16 d;
	u8 e, f;
	u32 g;
};

#define MAP(name, kind, keys, values, entries, bits)                                                                   \
	struct {                                                                                                       \
		__uint(type, kind);                                                                                    \
		__uint(max_entries, entries);                                                                          \
		__uint(map_flags, bits);                                                                               \
		__type(key, keys);                                                                                     \
		__type(value, values);                                                                                 \
	} name SEC(".maps")

MAP(m_array, 2, u32, struct val, 4, 0);
MAP(m_wide, 2, u32, struct wide, 3, 0);
MAP(m_hash, 1, u32, struct val, 8, 0);
MAP(m_hash8, 1, u64, struct val, 8, 0);
MAP(m_keyed, 1, struct key, struct val, 8, 0);
MAP(m_cpu_array, 6, u32, struct val, 2, 0);
MAP(m_cpu_hash, 5, u32, struct val, 8, 0);
/* Far more places than keys: which element goes first when it is full differs from the kernel. */
MAP(m_lru, 9, u32, struct val, 256, 0);
MAP(m_cpu_lru, 10, u32, struct val, 256, 0);
MAP(m_trie, 11, struct prefix, struct val, 16, 1);

struct inner {
	__uint(type, 2);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct val);
};
struct inner m_in0 SEC(".maps");
struct inner m_in1 SEC(".maps");
struct {
	__uint(type, 12);
	__uint(max_entries, 3);
	__type(key, u32);
	__array(values, struct inner);
} m_outer SEC(".maps") = { .values = { &m_in0, &m_in1 } };

u64 g64[4];
u32 g32[4];
s32 gs32[2] = { -7, 0x7fffffff };
u16 g16[4];
u8 g8[16];
const volatile u32 c32[4] = { 1, 0x80000000, 255, 0xfffffff0 };
char LICENSE[] SEC("license") = "GPL";
