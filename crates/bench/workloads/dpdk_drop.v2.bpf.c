// SPDX-License-Identifier: MIT OR Apache-2.0
// A filter for DPDK's testpmd (`bpf-load`) that takes no packet. Its packets are pointers; 0 means that the packet is freed.
int drop(void *packet)
{
	return 0;
}
