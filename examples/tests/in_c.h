// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//
// Tests in C: programs of an object that `paceline test` runs, and Cilium's runner (bpf/tests) as well.
//
// A test NAME has up to three programs. PKTGEN gets a packet of zeros and makes the packet, SETUP prepares maps and tail calls the
// program under test, and CHECK gets what came out, behind the return value of SETUP as four bytes. Include the source with
// the program under test, then this file.
#ifndef PACELINE_IN_C_H
#define PACELINE_IN_C_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

// `hook` is "xdp" or "tc".
#define PKTGEN(hook, name) SEC(hook "/test/" name "/pktgen")
#define SETUP(hook, name) SEC(hook "/test/" name "/setup")
#define CHECK(hook, name) SEC(hook "/test/" name "/check")

// Return values of PKTGEN, SETUP and CHECK. SETUP may return any verdict besides.
enum test_status {
	TEST_ERROR = 100, // the test cannot be run
	TEST_PASS,
	TEST_FAIL,
	TEST_SKIP, // the test does not apply
};

#define TEST_RESULTS_BYTES 8192

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, TEST_RESULTS_BYTES);
} suite_result_map SEC(".maps");

// Bytes that a line of the log takes at most, with all that is around it.
#define TEST_LINE_BYTES 256

// Begins a CHECK; TEST_END ends it.
#define TEST_BEGIN()                                                                           \
	__attribute__((unused)) __u32 test_key = 0, test_used = 0;                             \
	__attribute__((unused)) int test_status = TEST_PASS;                                   \
	char *test_results = bpf_map_lookup_elem(&suite_result_map, &test_key);                \
	if (!test_results)                                                                     \
		return TEST_ERROR

#define TEST_END() return test_status

// Writes a line to the log, with up to four numbers: `%d`, `%u`, `%x`, and `%lld`, `%llu`, `%llx` for 64 bits. In the encoding of Protocol
// Buffers it is a message with the format (field 1) and the numbers (field 2, 64 bits each), in field 2 of the map's value.
#define TEST_LOG(format, ...)                                                                  \
	do {                                                                                   \
		static const char test_format[] = format;                                      \
		const __u64 test_args[] = { __VA_ARGS__ };                                     \
		const __u32 test_count = sizeof(test_args) / sizeof(*test_args);               \
		_Static_assert(sizeof(test_format) <= 80 && test_count <= 4, "the line is too long"); \
		if (test_used < TEST_RESULTS_BYTES - TEST_LINE_BYTES) {                        \
			char *test_line = test_results + test_used;                            \
			test_line[0] = 2 << 3 | 2;                                             \
			test_line[1] = 2 + sizeof(test_format) + 9 * test_count;               \
			test_line[2] = 1 << 3 | 2;                                             \
			test_line[3] = sizeof(test_format);                                    \
			__builtin_memcpy(test_line + 4, test_format, sizeof(test_format));     \
			test_line += 4 + sizeof(test_format);                                  \
			for (__u32 test_arg = 0; test_arg < test_count; test_arg++) {          \
				*test_line++ = 2 << 3 | 1;                                     \
				__builtin_memcpy(test_line, &test_args[test_arg], 8);          \
				test_line += 8;                                                \
			}                                                                      \
			test_used += 4 + sizeof(test_format) + 9 * test_count;                 \
		}                                                                              \
	} while (0)

// Fails the test, with a line in its log, and goes on.
#define TEST_EXPECT(condition, format, ...)                                                    \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			TEST_LOG(format, ##__VA_ARGS__);                                       \
			test_status = TEST_FAIL;                                               \
		}                                                                              \
	} while (0)

// The same, and ends the test.
#define TEST_REQUIRE(condition, format, ...)                                                   \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			TEST_LOG(format, ##__VA_ARGS__);                                       \
			return TEST_FAIL;                                                      \
		}                                                                              \
	} while (0)

#endif
