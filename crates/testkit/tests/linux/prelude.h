/* What the kernel's samples take from headers that only the kernel has. */
#include <linux/types.h>
#include <linux/if_ether.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define __force
#define __packed __attribute__((packed))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define htons bpf_htons
#define ntohs bpf_ntohs
#define htonl bpf_htonl
#define ntohl bpf_ntohl
#define memcpy __builtin_memcpy
#define memset __builtin_memset

struct vlan_hdr {
	__be16 h_vlan_TCI;
	__be16 h_vlan_encapsulated_proto;
};

#define AF_INET 2
#define AF_INET6 10
#define cpu_to_be32 __bpf_constant_htonl
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
