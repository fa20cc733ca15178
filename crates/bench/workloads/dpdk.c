/* DPDK's rte_bpf with plain arguments: its structures stay in C. */
#include <rte_bpf.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_version.h>

/* Verifies a program over a buffer of `size` bytes, which may read and write `counts`, and compiles it. NULL if it is
 * refused, with the reason in `error`. */
struct rte_bpf *dpdk_load(const void *slots, uint32_t n, size_t size, void *counts, size_t counts_size, int *error)
{
	const struct rte_bpf_xsym symbols[] = { {
		.name = "counts",
		.type = RTE_BPF_XTYPE_VAR,
		.var = {
			.val = counts,
			.desc = { .type = RTE_BPF_ARG_PTR, .size = counts_size },
		},
	} };
	const struct rte_bpf_prm parameters = {
		.ins = slots,
		.nb_ins = n,
		.xsym = symbols,
		.nb_xsym = 1,
		.prog_arg = { .type = RTE_BPF_ARG_PTR, .size = size },
	};
	struct rte_bpf *program = rte_bpf_load(&parameters);

	*error = program ? 0 : rte_errno;
	return program;
}

/* The same for a program with packet loads, which take an mbuf. */
struct rte_bpf *dpdk_load_filter(const void *slots, uint32_t n, int *error)
{
	const struct rte_bpf_prm parameters = {
		.ins = slots,
		.nb_ins = n,
		.prog_arg = {
			.type = RTE_BPF_ARG_PTR_MBUF,
			.size = sizeof(struct rte_mbuf),
			.buf_size = RTE_MBUF_DEFAULT_BUF_SIZE,
		},
	};
	struct rte_bpf *program = rte_bpf_load(&parameters);

	*error = program ? 0 : rte_errno;
	return program;
}

/* Runs such a program over a packet: its native code, or if that is NULL the interpreter. */
uint64_t dpdk_filter(const struct rte_bpf *program, uint64_t (*native)(void *), void *packet, uint16_t len)
{
	static struct rte_mbuf mbuf = { .nb_segs = 1 };

	mbuf.buf_addr = packet;
	mbuf.buf_len = mbuf.data_len = len;
	mbuf.pkt_len = len;
	return native ? native(&mbuf) : rte_bpf_exec(program, &mbuf);
}

/* The native code; NULL if there is none. */
void *dpdk_native(const struct rte_bpf *program, size_t *len)
{
	struct rte_bpf_jit jit;

	if (rte_bpf_get_jit(program, &jit))
		return NULL;
	*len = jit.sz;
	return (void *)jit.func;
}

const char *dpdk_version(void)
{
	return rte_version();
}
