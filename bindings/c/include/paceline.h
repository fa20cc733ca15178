/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Paceline: XDP programs, TC classifiers and packet filters in user space.
 * Made by bindings/c/header.sh from bindings/c/src; docs/C.md is the manual.
 *
 * Handles
 *   A handle has one owner, who frees it once with the _free function of its kind. Freeing null does nothing. Handles may be freed in any
 *   order: a program keeps its maps, a chain its programs. A handle that is null, was freed, or is of another kind makes a call
 *   PACELINE_STATUS_HANDLE. A handle is a number and points to nothing.
 *
 * Threads
 *   Any number of threads may use the same object, collection, program, map, chain, pool, filter or error. A burst, host, worker or builder is
 *   for one thread at a time: a second user gets PACELINE_STATUS_BUSY. A thread that runs packets has a host and a burst of its own.
 *   After fork, the child may call exec and nothing of this library.
 *
 * Errors
 *   A call gives a status, or a handle that is null on failure. The last parameter, `error`, may be null; otherwise it gets null on
 *   success and an error handle on failure, which the caller frees. PACELINE_STATUS_NOT_FOUND is an answer and
 *   comes without an error handle.
 *
 * Structures
 *   begin with their size: set it to sizeof(struct ...), and zero what you do not set. In an array, the first has the size of each. A program
 *   that was compiled with an older header of the same PACELINE_ABI_VERSION runs with a newer library.
 *
 * Callbacks
 *   come on the thread of the call that was given or runs packets. They return: no longjmp, no C++ exception out of them. They may call the
 *   library, except with the host, burst and worker of the call that called back, which are PACELINE_STATUS_BUSY.
 *
 * All text is UTF-8. What is passed in by address is not used after the call, apart from the memory of pools.
 */

#ifndef PACELINE_H
#define PACELINE_H

#include <stddef.h>
#include <stdint.h>

// Maximum number of packets of a burst.
#define PACELINE_MAX_BURST 64

// Any revision of a chain.
#define PACELINE_ANY_REVISION UINT64_MAX

// All verdicts that have no edge of their own, and return values that are no verdicts.
#define PACELINE_ANY_VERDICT UINT32_MAX

// Bytes at the start of a frame's buffer that no packet and no metadata may use: sizeof(struct xdp_frame) in the kernel.
#define PACELINE_FRAME_KEPT 40

// Bytes that drivers leave before a packet, so that programs can add headers. Fewer are allowed, from PACELINE_FRAME_KEPT on.
#define PACELINE_HEADROOM 256

// Bytes at the end of a frame's buffer that no packet may use: sizeof(struct skb_shared_info) in the kernel.
#define PACELINE_TAILROOM 320

// A number that is not known: of a slot or an index.
#define PACELINE_UNKNOWN UINT64_MAX

// Version of the interface: the number in the soname, libpaceline.so.1. Programs that were compiled for one version run with every
// library of that version that is as new or newer.
#define PACELINE_ABI_VERSION 1

// How a call ended.
enum paceline_status {
    // It did what it says.
    PACELINE_STATUS_OK = 0,
    // There is no such element, or nothing is left. An answer, not an error: no error handle is made.
    PACELINE_STATUS_NOT_FOUND = 1,
    // An argument is wrong: a null pointer, a number that means nothing, text that is no UTF-8, a structure without its size.
    PACELINE_STATUS_ARGUMENT = 2,
    // A handle is null, was freed, or is of another kind.
    PACELINE_STATUS_HANDLE = 3,
    // The handle is in use: by another thread, or by the call whose callback this is.
    PACELINE_STATUS_BUSY = 4,
    // A file cannot be read.
    PACELINE_STATUS_IO = 5,
    // The bytes are no object.
    PACELINE_STATUS_OBJECT = 6,
    // There is no such program, or none was named and there are several.
    PACELINE_STATUS_NO_PROGRAM = 7,
    // The verifier refuses the program; the error names instruction, source line and cause.
    PACELINE_STATUS_REFUSED = 8,
    // Valid and not supported here: a helper, a kind of map, an engine.
    PACELINE_STATUS_UNSUPPORTED = 9,
    // A map cannot be made, or refuses an element. `error_number` of the error's details is that of bpf(2).
    PACELINE_STATUS_MAP = 10,
    // A program made an invalid access at run time, which those that were verified never do.
    PACELINE_STATUS_FAULT = 11,
    // There is no room: in a burst, in a frame, in the caller's buffer.
    PACELINE_STATUS_NO_ROOM = 12,
    // A change of a chain is refused.
    PACELINE_STATUS_CHAIN = 13,
    // A filter's expression, text or instructions are wrong, or libpcap cannot be loaded.
    PACELINE_STATUS_FILTER = 14,
    // The text is no network.
    PACELINE_STATUS_NETWORK = 15,
    // A bug of the library: it ended by a panic, which went to standard error too. The handles of the call that can change are
    // of no use any more, and can be freed.
    PACELINE_STATUS_PANIC = 16,
};

// How programs run. All engines give the same results.
enum paceline_engine {
    // The fastest of this machine.
    PACELINE_ENGINE_BEST = 0,
    // Native code, on x86-64.
    PACELINE_ENGINE_JIT = 1,
    // The fast interpreter.
    PACELINE_ENGINE_THREADED = 2,
    // The interpreter that checks everything.
    PACELINE_ENGINE_PLAIN = 3,
};

// Verdict of a packet: enum xdp_action.
enum paceline_verdict {
    // The program failed; the packet is dropped.
    PACELINE_VERDICT_ABORTED = 0,
    // The packet is dropped.
    PACELINE_VERDICT_DROP = 1,
    // The packet goes on to the network stack.
    PACELINE_VERDICT_PASS = 2,
    // The packet goes back out of the interface it came in on.
    PACELINE_VERDICT_TX = 3,
    // The packet goes to the frame's redirect target.
    PACELINE_VERDICT_REDIRECT = 4,
};

// The type of a program.
enum paceline_program_type {
    // XDP, attached to an interface.
    PACELINE_PROGRAM_TYPE_XDP = 0,
    // XDP, in an entry of a device map.
    PACELINE_PROGRAM_TYPE_XDP_DEVMAP = 1,
    // XDP, in an entry of a CPU map.
    PACELINE_PROGRAM_TYPE_XDP_CPUMAP = 2,
    // A socket filter.
    PACELINE_PROGRAM_TYPE_SOCKET_FILTER = 3,
    // A TC classifier.
    PACELINE_PROGRAM_TYPE_SCHED_CLS = 4,
};

// Where a redirected packet goes.
enum paceline_redirect {
    // Nowhere: no helper set a target.
    PACELINE_REDIRECT_NONE = 0,
    // Out of the interface of index `target`.
    PACELINE_REDIRECT_INTERFACE = 1,
    // To the element `key` of the map of number `target`.
    PACELINE_REDIRECT_MAP = 2,
};

// The clocks that programs see.
enum paceline_time {
    // The system's.
    PACELINE_TIME_SYSTEM = 0,
    // That of each packet (`time_ns`).
    PACELINE_TIME_PACKETS = 1,
};

// Order of the programs of a chain.
enum paceline_order {
    // The order in which they are given.
    PACELINE_ORDER_GIVEN = 0,
    // Their priorities, lower ones first, as in libxdp.
    PACELINE_ORDER_PRIORITY = 1,
};

// A place in a chain of given order.
enum paceline_place {
    // After all others, or where the priority puts it.
    PACELINE_PLACE_LAST = 0,
    // Before all others.
    PACELINE_PLACE_FIRST = 1,
    // Right before the member `other`.
    PACELINE_PLACE_BEFORE = 2,
    // Right after the member `other`.
    PACELINE_PLACE_AFTER = 3,
};

// Kind of a change.
enum paceline_change_kind {
    // Adds `member` at `place`, in a chain of edges without any.
    PACELINE_CHANGE_KIND_ADD = 0,
    // Removes the member `name`.
    PACELINE_CHANGE_KIND_REMOVE = 1,
    // Puts `member` in the place of the member `name`.
    PACELINE_CHANGE_KIND_REPLACE = 2,
    // Gives the member `name` the priority and actions of `member`.
    PACELINE_CHANGE_KIND_CONFIGURE = 3,
    // Takes the member `name` to `place`.
    PACELINE_CHANGE_KIND_REORDER = 4,
    // Replaces the edges that lead from the member `name`, in a chain of edges, by `edges`.
    PACELINE_CHANGE_KIND_LINK = 5,
};

// An object in the making: programs and maps that come from elsewhere than a file. One thread at a time.
struct paceline_builder;

// Up to 64 packets. One thread at a time.
struct paceline_burst;

// Programs that run one after the other, and can be changed while they do. Any number of threads may use it.
struct paceline_chain;

// The maps of an object, made and filled, and its programs, to be verified. Any number of threads may use it.
struct paceline_collection;

// Details of a call that failed. Any number of threads may read it.
struct paceline_error;

// A packet filter. Any number of threads may use it.
struct paceline_filter;

// State that programs observe besides packets and maps: CPU, time, chance, network; and who gets their events. One thread at a time.
struct paceline_host;

// A map. Any number of threads may use it, while programs do.
struct paceline_map;

// Contents of an object file: programs and maps, as the file describes them. Nothing is made yet. Any number of threads may use it.
struct paceline_object;

// The caller's memory, divided into frames that bursts can hold. Any number of threads may use it.
struct paceline_pool;

// A program, ready to run, with its maps. Any number of threads may use it.
struct paceline_program;

// Runner of a chain on one thread. One thread at a time.
struct paceline_worker;

// A map to add.
struct paceline_map_spec {
    // sizeof(struct paceline_map_spec)
    size_t size;
    // Its name.
    const char *name;
    // Number of its kind in enum bpf_map_type of linux/bpf.h.
    uint32_t kind;
    // Size of a key in bytes.
    uint32_t key_size;
    // Size of a value in bytes.
    uint32_t value_size;
    // Maximum number of elements.
    uint32_t max_entries;
    // BPF_F_ flags.
    uint32_t flags;
    // BTF type of keys; 0 without.
    uint32_t key_type;
    // BTF type of values; 0 without. Its bpf_spin_lock, bpf_timer and the like are found by it.
    uint32_t value_type;
    // Not 0 if the map is frozen once its first elements are there.
    uint32_t frozen;
    // map_extra.
    uint64_t extra;
    // For a map of maps: the map added earlier that inner maps are like, counted from 1; 0 for others.
    uint32_t inner;
    // 0.
    uint32_t reserved;
};

// An instruction: struct bpf_insn of linux/bpf.h.
struct paceline_instruction {
    // Operation.
    uint8_t code;
    // Destination register in the low four bits and source register in the high ones, on little-endian machines; the reverse on others.
    uint8_t registers;
    // Offset.
    int16_t offset;
    // Immediate. A 64-bit load of a map has its index, in the order in which maps were added: BPF_PSEUDO_MAP_IDX (5) in the source
    // register, or BPF_PSEUDO_MAP_IDX_VALUE (6) for the address of its value. A call of a kernel function (source register 2) has
    // the index of its name in `kernel_functions`.
    int32_t immediate;
};

// A function of a program: struct bpf_func_info of linux/bpf.h, with its name.
struct paceline_function {
    // sizeof(struct paceline_function)
    size_t size;
    // Its name.
    const char *name;
    // Slot of its first instruction.
    uint32_t slot;
    // Its BTF type; 0 without.
    uint32_t type_id;
    // Not 0 for a global function, which is verified once, on its own.
    uint32_t is_global;
    // 0.
    uint32_t reserved;
};

// A program to add.
struct paceline_program_spec {
    // sizeof(struct paceline_program_spec)
    size_t size;
    // Its name.
    const char *name;
    // Its licence, such as "GPL", which some helpers need; null for none.
    const char *license;
    // Its instructions.
    const struct paceline_instruction *instructions;
    // Slots of them.
    size_t instruction_count;
    // One of enum paceline_program_type.
    uint32_t program_type;
    // Not 0 if an XDP program takes packets in several buffers (xdp.frags).
    uint32_t frags;
    // Its functions, by rising slot: the program itself first. Null if there is only that.
    const struct paceline_function *functions;
    // Number of functions.
    size_t function_count;
    // Names of the kernel functions that it calls.
    const char *const *kernel_functions;
    // Number of names.
    size_t kernel_function_count;
};

// A packet. Several in a row are an array of these; the first has the size of each.
struct paceline_packet {
    // sizeof(struct paceline_packet)
    size_t size;
    // Its bytes, from the Ethernet header on.
    const uint8_t *data;
    // Their number.
    size_t length;
    // Metadata before the packet, at most 252 bytes and a multiple of 4: null and 0 without. For paceline_burst_place it must
    // lie right before the packet.
    const uint8_t *metadata;
    // Its length in bytes.
    size_t metadata_length;
    // Time of reception in nanoseconds since 1970, for hosts whose time comes from packets.
    uint64_t time_ns;
    // Length on the wire in bytes, if that is more; 0 if it is not.
    uint32_t wire_length;
    // Index of the interface it came in on; 0 for none.
    uint32_t ingress_ifindex;
    // Index of the interface it goes out of, for programs in device maps.
    uint32_t egress_ifindex;
    // Queue of the interface it came in on, at most 65535.
    uint32_t rx_queue;
};

// A packet in a burst, as a program left it. Several are an array of these; the first has the size of each.
struct paceline_frame {
    // sizeof(struct paceline_frame)
    size_t size;
    // The packet's bytes, which may be written: good until the burst is cleared, freed or run again.
    uint8_t *data;
    // Their number.
    size_t length;
    // Metadata before the packet.
    uint8_t *metadata;
    // Its length in bytes.
    size_t metadata_length;
    // Return value of the program: all 64 bits after paceline_program_run, the low 32 in bursts, and there for TC classifiers what their
    // action means (enum paceline_verdict).
    uint64_t return_value;
    // Fate of the packet, one of enum paceline_verdict, for programs whose return values are verdicts: others than these count as
    // aborted.
    uint32_t verdict;
    // One of enum paceline_redirect; of meaning if the verdict is PACELINE_VERDICT_REDIRECT.
    uint32_t redirect;
    // Interface or number of the map.
    uint32_t target;
    // Key in the map.
    uint32_t key;
    // Flags that the program gave with the target.
    uint32_t redirect_flags;
    // Length on the wire in bytes.
    uint32_t wire_length;
};

// A program of a chain. Several are an array of these; the first has the size of each.
struct paceline_member {
    // sizeof(struct paceline_member)
    size_t size;
    // Its name in the chain; null for the program's own.
    const char *name;
    // The program.
    const struct paceline_program *program;
    // Not 0 if `priority` and `actions` are given; 0 for what the object says with XDP_RUN_CONFIG, or 50 and pass.
    uint32_t is_configured;
    // Lower ones run earlier, in a chain that priorities order.
    uint32_t priority;
    // Verdicts after which the chain goes on: the sum of 1 << PACELINE_VERDICT_... of each.
    uint32_t actions;
    // 0.
    uint32_t reserved;
};

// An edge of a chain: what comes after a program and a verdict. Several are an array of these; the first has the size of each.
struct paceline_edge {
    // sizeof(struct paceline_edge)
    size_t size;
    // The member that it leads from; null in a change of a member, where it is that one.
    const char *from;
    // The member that it leads to; null for the end of the chain.
    const char *to;
    // The verdict after which it is taken, one of enum paceline_verdict, or PACELINE_ANY_VERDICT.
    uint32_t after;
    // The verdict with which the chain ends, one of enum paceline_verdict, if `to` is null; 0 otherwise.
    uint32_t end;
};

// A change of a chain. Several are an array of these; the first has the size of each.
struct paceline_change {
    // sizeof(struct paceline_change)
    size_t size;
    // One of enum paceline_change_kind.
    uint32_t kind;
    // One of enum paceline_place.
    uint32_t place;
    // The member that it is about; null for PACELINE_CHANGE_KIND_ADD.
    const char *name;
    // The member that `place` refers to.
    const char *other;
    // The new member or its configuration; null if there is none.
    const struct paceline_member *member;
    // All edges of the member, of which none says where it leads from.
    const struct paceline_edge *edges;
    // Number of edges.
    size_t edge_count;
};

// How an object is opened. All zero, apart from the size, is the default.
struct paceline_object_options {
    // sizeof(struct paceline_object_options)
    size_t size;
    // File with the types of a kernel for CO-RE: /sys/kernel/btf/vmlinux, or an ELF file with BTF. Null for none: fields keep the
    // offsets that the compiler saw.
    const char *kernel_types;
    // File with the configuration of a kernel, which may be packed by gzip, such as /proc/config.gz; null for none.
    const char *kernel_config;
    // Version of the kernel for LINUX_KERNEL_VERSION, such as "6.12"; null for the default.
    const char *kernel_version;
};

// How an object is loaded. All zero, apart from the size, is the default.
struct paceline_load_options {
    // sizeof(struct paceline_load_options)
    size_t size;
    // One of enum paceline_engine, for verified programs.
    uint32_t engine;
    // Number of CPUs (workers) that have values of their own in per-CPU maps; 0 for 1.
    uint32_t cpus;
    // Maximum number of bytes of one map; 0 for 4 GiB.
    uint64_t map_memory;
    // Instructions that a program may run for one packet, on engines that count them; 0 for the default.
    uint64_t budget;
    // A collection that this one takes the place of: maps of the same name and shape are kept, with their contents. Null for none.
    const struct paceline_collection *replaces;
};

// Details of a call that failed. Texts are null where nothing is known, and live as long as the error handle.
struct paceline_error_details {
    // sizeof(struct paceline_error_details)
    size_t size;
    // How the call ended.
    enum paceline_status status;
    // Error number of bpf(2), where the kernel has one for it; 0 otherwise.
    int32_t error_number;
    // One line that says what is wrong.
    const char *message;
    // The program.
    const char *program;
    // The map.
    const char *map;
    // The file: the object's, or the source file of a refused program, as the compiler saw it.
    const char *file;
    // The source line's text.
    const char *source;
    // How such a mistake is usually mended.
    const char *hint;
    // Source line from 1; 0 if not known.
    uint32_t line;
    // Column from 1; 0 if not known.
    uint32_t column;
    // Slot of the guilty instruction in the program, from 0; PACELINE_UNKNOWN if none is.
    uint64_t slot;
    // Index among several packets, elements or changes, from 0; PACELINE_UNKNOWN if there is only one.
    uint64_t index;
};

// How a filter is made. All zero, apart from the size, is the default.
struct paceline_filter_options {
    // sizeof(struct paceline_filter_options)
    size_t size;
    // One of enum paceline_engine.
    uint32_t engine;
    // LINKTYPE_ number of the packets; 0 for 1, Ethernet.
    uint32_t link_type;
    // Not 0 if the packets come from a capture and not from an interface, which affects some rules of libpcap. They are of this machine's
    // byte order.
    uint32_t is_capture;
    // 0.
    uint32_t reserved;
};

// An instruction of classic BPF: struct sock_filter of linux/filter.h, struct bpf_insn of pcap.h.
struct paceline_classic_instruction {
    // Operation.
    uint16_t code;
    // Instructions to skip if a jump is taken.
    uint8_t jt;
    // Instructions to skip if it is not taken.
    uint8_t jf;
    // Constant.
    uint32_t k;
};

// An event that a program sends with bpf_perf_event_output.
struct paceline_event {
    // sizeof(struct paceline_event) of the library, which may be larger than the caller's.
    size_t size;
    // Name of the map; lives during the callback.
    const char *map;
    // The program's data; lives during the callback.
    const uint8_t *data;
    // Its length in bytes.
    size_t length;
    // Bytes of the packet, as many as the program asked for; lives during the callback.
    const uint8_t *packet;
    // Their number.
    size_t packet_length;
    // Nanoseconds of the clock that programs see.
    uint64_t time_ns;
    // Number of the packet on its host, from 1; 0 if not known.
    uint64_t packet_number;
    // Index of the buffer, usually the program's CPU.
    uint32_t cpu;
    // 0.
    uint32_t reserved;
};

// A function of C that gets an event: `void (*)(void *data, const struct paceline_event *event)`.
typedef void (*paceline_event_function)(void *data, const struct paceline_event *event);

// A function of C that gets bytes: `void (*)(void *data, const uint8_t *bytes, size_t length)`.
typedef void (*paceline_bytes_function)(void *data, const uint8_t *bytes, size_t length);

// Fields of the sk_buff of a TC classifier.
struct paceline_sk_buff {
    // sizeof(struct paceline_sk_buff)
    size_t size;
    // mark
    uint32_t mark;
    // priority
    uint32_t priority;
    // cb
    uint32_t cb[5];
    // hash
    uint32_t hash;
    // tstamp, in nanoseconds
    uint64_t tstamp;
    // tc_index
    uint16_t tc_index;
    // tc_classid
    uint16_t tc_classid;
    // queue_mapping
    uint16_t queue_mapping;
    // 0
    uint16_t reserved;
};

// A map: of an object, where nothing is made yet and `id` is 0, or one that was made.
struct paceline_map_info {
    // sizeof(struct paceline_map_info)
    size_t size;
    // Its name; lives as long as the handle it was read from.
    const char *name;
    // Number of its kind in enum bpf_map_type of the kernel's linux/bpf.h.
    uint32_t kind;
    // Size of a key in bytes.
    uint32_t key_size;
    // Size of a value in bytes, as programs see it.
    uint32_t value_size;
    // Maximum number of elements.
    uint32_t max_entries;
    // BPF_F_ flags.
    uint32_t flags;
    // Number of the map, unique in the process: the value by which a map of maps holds it.
    uint32_t id;
    // Bytes of a value for paceline_map_lookup and paceline_map_update: in per-CPU kinds `value_size` rounded up to 8, once for each
    // CPU.
    size_t user_value_size;
};

// A program of an object.
struct paceline_program_info {
    // sizeof(struct paceline_program_info)
    size_t size;
    // Its name; lives as long as the handle it was read from.
    const char *name;
    // Its ELF section; empty if it does not come from a file. Lives as long as the handle.
    const char *section;
    // One of enum paceline_program_type.
    uint32_t program_type;
    // Slots of its instructions.
    uint32_t slots;
};

// The caller's memory for a pool: frames of equal size, one after the other.
struct paceline_pool_options {
    // sizeof(struct paceline_pool_options)
    size_t size;
    // The first frame. All `count * stride` bytes from there are readable, writable and initialized until the pool is freed.
    void *memory;
    // Bytes from one frame to the next.
    size_t stride;
    // Number of frames.
    uint32_t count;
    // Offset of the buffer in its frame: bytes before are the caller's alone, as in an AF_XDP UMEM or an mbuf.
    uint32_t offset;
    // Size of the buffer: at least PACELINE_HEADROOM and PACELINE_TAILROOM; with `offset` at most `stride`.
    uint32_t buffer_length;
    // 0.
    uint32_t reserved;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// A new builder of an object. `types` is BTF for its functions, keys and values; null and 0 without. Null on failure.
struct paceline_builder *paceline_builder_new(const uint8_t *types,
                                              size_t types_length,
                                              struct paceline_error **error);

// Frees a builder. Objects that it made stay. Null is allowed.
enum paceline_status paceline_builder_free(struct paceline_builder *builder);

// Adds a map.
enum paceline_status paceline_builder_add_map(struct paceline_builder *builder,
                                              const struct paceline_map_spec *map,
                                              struct paceline_error **error);

// Gives a map an element that it has from the start. A value that is shorter than the map's is filled with zeros. `map` is counted from
// 0.
enum paceline_status paceline_builder_set(struct paceline_builder *builder,
                                          uint32_t map,
                                          const uint8_t *key,
                                          size_t key_length,
                                          const uint8_t *value,
                                          size_t value_length,
                                          struct paceline_error **error);

// Adds a program.
enum paceline_status paceline_builder_add_program(struct paceline_builder *builder,
                                                  const struct paceline_program_spec *program,
                                                  struct paceline_error **error);

// The object of all that was added so far. Null on failure.
struct paceline_object *paceline_builder_object(const struct paceline_builder *builder, struct paceline_error **error);

// An empty burst for so many packets, 1 to PACELINE_MAX_BURST. Null on failure.
struct paceline_burst *paceline_burst_new(size_t capacity, struct paceline_error **error);

// Frees a burst; frames of the caller in it are the caller's again. Null is allowed.
enum paceline_status paceline_burst_free(struct paceline_burst *burst);

// Number of packets in a burst; 0 if it is no handle or in use.
size_t paceline_burst_length(struct paceline_burst *burst);

// Removes all packets; frames of the caller among them are the caller's again.
enum paceline_status paceline_burst_clear(struct paceline_burst *burst, struct paceline_error **error);

// Copies packets into a burst, after those that are there, which they may be. `pushed` gets how many; fewer than `count` on failure, with the
// `index` of the first that was not in the error's details.
enum paceline_status paceline_burst_push(struct paceline_burst *burst,
                                         const struct paceline_packet *packets,
                                         size_t count,
                                         size_t *pushed,
                                         struct paceline_error **error);

// Adds packets that lie in frames of a pool, after those that are there, without a copy: `data` of each is an address in the pool's
// memory. From now until the burst is cleared or freed, or the packet is taken back, the frame is the burst's: the caller may not
// touch it while packets run, and may read and write it between calls.
//
// A packet must begin after at least PACELINE_FRAME_KEPT bytes of its frame's buffer and its metadata, and end PACELINE_TAILROOM bytes
// before the buffer's end: PACELINE_STATUS_NO_ROOM otherwise. A frame that is in a burst already is
// PACELINE_STATUS_BUSY, an address outside of the pool PACELINE_STATUS_ARGUMENT. `placed` gets how many; fewer
// than `count` on failure.
enum paceline_status paceline_burst_place(struct paceline_burst *burst,
                                          const struct paceline_pool *pool,
                                          const struct paceline_packet *packets,
                                          size_t count,
                                          size_t *placed,
                                          struct paceline_error **error);

// Results of the packets of a burst: `frames` gets as many as there are, at most `capacity`, and `count` how many.
enum paceline_status paceline_burst_frames(struct paceline_burst *burst,
                                           struct paceline_frame *frames,
                                           size_t capacity,
                                           size_t *count,
                                           struct paceline_error **error);

// Makes a chain of programs. `order` is one of enum paceline_order. Null on failure.
struct paceline_chain *paceline_chain_new(const struct paceline_member *members,
                                          size_t count,
                                          uint32_t order,
                                          struct paceline_error **error);

// Makes a chain of programs by edges: packets enter at the member `first`, or at the first one given if it is null, and go on by the
// edges. A verdict without an edge ends the chain with it. Loops are allowed: a packet for which a 33rd program would run is aborted. Null
// on failure, where `index` of the error's details is that of the wrong member or edge, if it is about one.
struct paceline_chain *paceline_chain_new_edges(const struct paceline_member *members,
                                                size_t count,
                                                const char *first,
                                                const struct paceline_edge *edges,
                                                size_t edge_count,
                                                struct paceline_error **error);

// Frees a handle of a chain. Its workers go on. Null is allowed.
enum paceline_status paceline_chain_free(struct paceline_chain *chain);

// Changes a chain, while it runs or not: all of the changes or, on failure, none. Every worker runs the changed chain from its next burst
// on. `expected` is the revision that the changes are meant for, or PACELINE_ANY_REVISION; `revision` gets the new
// one.
enum paceline_status paceline_chain_change(const struct paceline_chain *chain,
                                           const struct paceline_change *changes,
                                           size_t count,
                                           uint64_t expected,
                                           uint64_t *revision,
                                           struct paceline_error **error);

// Status and counts of a chain as JSON: {"revision": 1, "programs": [{"name": ..., "id": ..., "verdicts": {"pass": 3, ...}, "others":
// 0}, ...]}, in the order in which they run. Counts are those of workers that count. Free the text with paceline_string_free. Null on
// failure.
char *paceline_chain_status(const struct paceline_chain *chain,
                            struct paceline_error **error);

// A worker that runs the chain on one thread. If `counts` is not 0, it counts what programs return. Null on failure.
struct paceline_worker *paceline_chain_worker(const struct paceline_chain *chain,
                                              uint32_t counts,
                                              struct paceline_error **error);

// Frees a worker, whose counts go to its chain. Null is allowed.
enum paceline_status paceline_worker_free(struct paceline_worker *worker);

// Runs the chain, as it is now, over the packets of a burst, in order. Fails as paceline_program_run_burst does.
enum paceline_status paceline_worker_run_burst(struct paceline_worker *worker,
                                               struct paceline_burst *burst,
                                               struct paceline_host *host,
                                               struct paceline_error **error);

// Loads a chain file, as docs/CHAINS.md describes it, with the objects, maps and filters that it names. Both options may be null;
// `replaces` of the second has to be. Null on failure: the error's details have file, line and column of what is wrong, as far as it has a place in
// the chain file; of a program that the verifier refuses those of its source.
struct paceline_chain *paceline_chain_load_file(const char *path,
                                                const struct paceline_object_options *object_options,
                                                const struct paceline_load_options *load_options,
                                                struct paceline_error **error);

// The object of a member of a chain that was loaded from a file: its maps and programs, which are those that the chain has.
// PACELINE_STATUS_NOT_FOUND, without an error handle, for members that came into the chain in another way. Null on failure.
struct paceline_collection *paceline_chain_collection(const struct paceline_chain *chain,
                                                      const char *member,
                                                      struct paceline_error **error);

// Makes the maps of an object and fills them with the values that it gives. `options` may be null. Null on failure.
struct paceline_collection *paceline_object_load(const struct paceline_object *object,
                                                 const struct paceline_load_options *options,
                                                 struct paceline_error **error);

// Frees a collection. Programs and maps that were taken from it stay. Null is allowed.
enum paceline_status paceline_collection_free(struct paceline_collection *collection);

// The engine that programs of the collection run on, one of enum paceline_engine other than PACELINE_ENGINE_BEST.
enum paceline_engine paceline_collection_engine(const struct paceline_collection *collection);

// A program, verified and bound to the collection's maps. `name` may be null if there is only one. Programs that the object gives to
// the program arrays it uses are verified and put there. Null on failure: PACELINE_STATUS_REFUSED has the instruction and
// the source line in the error's details.
struct paceline_program *paceline_collection_program(const struct paceline_collection *collection,
                                                     const char *name,
                                                     struct paceline_error **error);

// A program without a proof, for the plain interpreter, which checks every operation at run time: a wrong one makes the call that runs it
// PACELINE_STATUS_FAULT. Null on failure.
struct paceline_program *paceline_collection_program_unverified(const struct paceline_collection *collection,
                                                                const char *name,
                                                                struct paceline_error **error);

// The map of a name. Null on failure.
struct paceline_map *paceline_collection_map(const struct paceline_collection *collection,
                                             const char *name,
                                             struct paceline_error **error);

// A new map such as a map of maps holds, to be put there by the number in its paceline_map_info. Null on failure.
struct paceline_map *paceline_collection_inner_map(const struct paceline_collection *collection,
                                                   const struct paceline_map *outer,
                                                   struct paceline_error **error);

// Name of a field of the sk_buff by its index, from 0: those of `struct __sk_buff`, `cb[0]` to `cb[4]` for the words of `cb`. Null after the
// last. The text is not freed.
const char *paceline_context_name(size_t index);

// Sets a field of the sk_buff that packets arrive with at TC classifiers, from now on; all are 0 at first. Fields that are computed from
// the packet, and values that do not fit, are PACELINE_STATUS_ARGUMENT.
enum paceline_status paceline_host_set_context(struct paceline_host *host,
                                               const char *name,
                                               uint64_t value,
                                               struct paceline_error **error);

// A field of the sk_buff that a TC classifier left of a packet that ran alone.
enum paceline_status paceline_host_context(struct paceline_host *host,
                                           const char *name,
                                           uint64_t *value,
                                           struct paceline_error **error);

// Frees an error. Null is allowed.
enum paceline_status paceline_error_free(struct paceline_error *error);

// The message of an error: one line, which lives as long as the handle. An empty text if it is no error.
const char *paceline_error_message(const struct paceline_error *error);

// How the call ended that gave the error.
enum paceline_status paceline_error_status(const struct paceline_error *error);

// All that is known of an error.
enum paceline_status paceline_error_read(const struct paceline_error *error,
                                         struct paceline_error_details *details);

// Compiles an expression of tcpdump, such as "tcp port 22", with the libpcap of the system, which is loaded at the first call.
// `options` may be null. Null on failure.
struct paceline_filter *paceline_filter_compile(const char *expression,
                                                const struct paceline_filter_options *options,
                                                struct paceline_error **error);

// A filter from its instructions, such as those of pcap_compile, by the rules of the kernel's socket filters. `options` may be null. Null
// on failure.
struct paceline_filter *paceline_filter_from_instructions(const struct paceline_classic_instruction *instructions,
                                                          size_t count,
                                                          const struct paceline_filter_options *options,
                                                          struct paceline_error **error);

// A filter from text: what `tcpdump -d`, `-dd` or `-ddd` prints, or bpf_asm's language. `options` may be null. Null on failure.
struct paceline_filter *paceline_filter_from_text(const char *text,
                                                  const struct paceline_filter_options *options,
                                                  struct paceline_error **error);

// Frees a filter. Null is allowed.
enum paceline_status paceline_filter_free(struct paceline_filter *filter);

// Matching packets of a burst: `matches` gets a bit each, from the lowest.
enum paceline_status paceline_filter_matches(const struct paceline_filter *filter,
                                             struct paceline_burst *burst,
                                             struct paceline_host *host,
                                             uint64_t *matches,
                                             struct paceline_error **error);

// The filter as an XDP program that passes what matches and drops the rest, for chains. By the rules of libpcap the length of a packet
// is that of its bytes here. Null on failure.
struct paceline_program *paceline_filter_program(const struct paceline_filter *filter,
                                                 struct paceline_error **error);

// A host for the worker of a number, which programs see as their CPU and per-CPU maps go by: below `cpus` of the load options. Null on
// failure.
struct paceline_host *paceline_host_new(uint32_t cpu,
                                        struct paceline_error **error);

// Frees a host. Null is allowed.
enum paceline_status paceline_host_free(struct paceline_host *host);

// Sets the seed of random numbers, which come from the system's clock otherwise.
enum paceline_status paceline_host_seed(struct paceline_host *host, uint64_t seed, struct paceline_error **error);

// Sets the clocks that programs see: one of enum paceline_time.
enum paceline_status paceline_host_set_time(struct paceline_host *host, uint32_t time, struct paceline_error **error);

// Sets the network that programs see, from text: what `ip -j addr`, `ip -j route`, `ip -j rule`, `ip -j neigh`, `ss -tuan`, `conntrack -L`
// and `sysctl net.ipv4.tcp_syncookies` print, one after the other.
enum paceline_status paceline_host_set_network(struct paceline_host *host,
                                               const char *network,
                                               struct paceline_error **error);

// Sets the receiver of events of perf event arrays, without which programs see -ENOENT. It is called by the thread that runs packets,
// during the call that runs them, must return, and may not use the host or the burst of that call (they are
// PACELINE_STATUS_BUSY). `data` is passed to it, until another receiver is set or the host is freed.
enum paceline_status paceline_host_set_events(struct paceline_host *host,
                                              paceline_event_function function,
                                              void *data,
                                              struct paceline_error **error);

// Sets the receiver of what programs print with bpf_trace_printk, which goes to standard error otherwise; null for none. Called as that
// of events is; a line may come in parts.
enum paceline_status paceline_host_set_trace(struct paceline_host *host,
                                             paceline_bytes_function function,
                                             void *data,
                                             struct paceline_error **error);

// Calls the functions of all due timers that programs started on this host; `count` gets their number.
enum paceline_status paceline_host_fire_timers(struct paceline_host *host, uint64_t *count, struct paceline_error **error);

// The sk_buff of a packet that ran alone through a TC classifier.
enum paceline_status paceline_host_sk_buff(struct paceline_host *host,
                                           struct paceline_sk_buff *sk_buff,
                                           struct paceline_error **error);

// Frees a handle of a map. The map stays as long as its collection, its programs or other handles. Null is allowed.
enum paceline_status paceline_map_free(struct paceline_map *map);

// Properties of a map, with its number and the bytes of a value.
enum paceline_status paceline_map_read_info(const struct paceline_map *map,
                                            struct paceline_map_info *info,
                                            struct paceline_error **error);

// Copies the value of a key. `value` has room for the `user_value_size` of the map's info. PACELINE_STATUS_NOT_FOUND without an
// element.
enum paceline_status paceline_map_lookup(const struct paceline_map *map,
                                         const uint8_t *key,
                                         size_t key_length,
                                         uint8_t *value,
                                         size_t value_capacity,
                                         struct paceline_error **error);

// Sets the value of a key, with the flags of BPF_MAP_UPDATE_ELEM (0: whether there is one or not).
enum paceline_status paceline_map_update(const struct paceline_map *map,
                                         const uint8_t *key,
                                         size_t key_length,
                                         const uint8_t *value,
                                         size_t value_length,
                                         uint64_t flags,
                                         struct paceline_error **error);

// Removes the element of a key. PACELINE_STATUS_NOT_FOUND without one.
enum paceline_status paceline_map_delete(const struct paceline_map *map,
                                         const uint8_t *key,
                                         size_t key_length,
                                         struct paceline_error **error);

// Copies the key after a key: the first one if `key` is null or not there. `next` has room for a key. PACELINE_STATUS_NOT_FOUND after
// the last.
enum paceline_status paceline_map_next_key(const struct paceline_map *map,
                                           const uint8_t *key,
                                           size_t key_length,
                                           uint8_t *next,
                                           size_t next_capacity,
                                           struct paceline_error **error);

// Copies elements, keys and values each in a row: at most `capacity`, for which there must be room; `count` gets their number. Those
// that are removed meanwhile are left out.
enum paceline_status paceline_map_read(const struct paceline_map *map,
                                       uint8_t *keys,
                                       uint8_t *values,
                                       size_t capacity,
                                       size_t *count,
                                       struct paceline_error **error);

// As paceline_map_read, and each element is removed in the same step, so that no update of a program is lost. Others stay: call it again
// if there were as many as `capacity`.
enum paceline_status paceline_map_drain(const struct paceline_map *map,
                                        uint8_t *keys,
                                        uint8_t *values,
                                        size_t capacity,
                                        size_t *count,
                                        struct paceline_error **error);

// Sets `count` elements, keys and values each in a row, one after the other until one is refused; `done` gets the number before it.
enum paceline_status paceline_map_update_batch(const struct paceline_map *map,
                                               const uint8_t *keys,
                                               const uint8_t *values,
                                               size_t count,
                                               uint64_t flags,
                                               size_t *done,
                                               struct paceline_error **error);

// Removes `count` elements, keys in a row, one after the other until one is refused; `done` gets the number before it.
enum paceline_status paceline_map_delete_batch(const struct paceline_map *map,
                                               const uint8_t *keys,
                                               size_t count,
                                               size_t *done,
                                               struct paceline_error **error);

// Adds a value to a queue, a stack or a Bloom filter.
enum paceline_status paceline_map_push(const struct paceline_map *map,
                                       const uint8_t *value,
                                       size_t value_length,
                                       uint64_t flags,
                                       struct paceline_error **error);

// Takes the next value of a queue or stack. PACELINE_STATUS_NOT_FOUND if it is empty.
enum paceline_status paceline_map_pop(const struct paceline_map *map,
                                      uint8_t *value,
                                      size_t value_capacity,
                                      struct paceline_error **error);

// Keeps the caller from changing the map from now on (BPF_MAP_FREEZE); programs still can.
enum paceline_status paceline_map_freeze(const struct paceline_map *map, struct paceline_error **error);

// The value of a key, both as JSON by the types of the object: {"port": 22, "protocol": 6}. In per-CPU kinds a value is a list. Free the
// text with paceline_string_free. Null without an element, where `error` gets null, and on failure.
char *paceline_map_lookup_json(const struct paceline_map *map,
                               const char *key,
                               struct paceline_error **error);

// Sets the value of a key, both as JSON.
enum paceline_status paceline_map_update_json(const struct paceline_map *map,
                                              const char *key,
                                              const char *value,
                                              uint64_t flags,
                                              struct paceline_error **error);

// Removes the element of a key in JSON. PACELINE_STATUS_NOT_FOUND without one.
enum paceline_status paceline_map_delete_json(const struct paceline_map *map, const char *key, struct paceline_error **error);

// All elements as JSON: [{"key": ..., "value": ...}, ...]. Free the text with paceline_string_free. Null on failure.
char *paceline_map_read_json(const struct paceline_map *map,
                             struct paceline_error **error);

// Calls a function for each record that programs submitted to a ring buffer, up to the first that a program still holds; `count` gets
// their number. A record is gone from the ring before the function is called, which may use the map.
enum paceline_status paceline_map_consume(const struct paceline_map *map,
                                          paceline_bytes_function function,
                                          void *data,
                                          size_t *count,
                                          struct paceline_error **error);

// Waits until a ring buffer has a record to read, or a program wakes the reader, for at most so many milliseconds.
// PACELINE_STATUS_NOT_FOUND if neither happened.
enum paceline_status paceline_map_wait(const struct paceline_map *map,
                                       uint64_t milliseconds,
                                       struct paceline_error **error);

// Number of records that found no room in a ring buffer; 0 for other kinds.
uint64_t paceline_map_lost(const struct paceline_map *map);

// Opens an object file: ELF, as clang compiles it for the kernel. `options` may be null. Null on failure.
struct paceline_object *paceline_object_open(const char *path,
                                             const struct paceline_object_options *options,
                                             struct paceline_error **error);

// Opens an object from memory, which is not used after the call. `options` may be null. Null on failure.
struct paceline_object *paceline_object_parse(const uint8_t *bytes,
                                              size_t length,
                                              const struct paceline_object_options *options,
                                              struct paceline_error **error);

// Frees an object. Collections that were made from it stay. Null is allowed.
enum paceline_status paceline_object_free(struct paceline_object *object);

// Number of programs of the types that Paceline runs.
size_t paceline_object_programs(const struct paceline_object *object);

// Properties of a program of an object, by its place in the file from 0. PACELINE_STATUS_NOT_FOUND past the last.
enum paceline_status paceline_object_program(const struct paceline_object *object,
                                             size_t index,
                                             struct paceline_program_info *info,
                                             struct paceline_error **error);

// Number of maps.
size_t paceline_object_maps(const struct paceline_object *object);

// Properties of a map of an object, by its place in the file from 0. PACELINE_STATUS_NOT_FOUND past the last.
enum paceline_status paceline_object_map(const struct paceline_object *object,
                                         size_t index,
                                         struct paceline_map_info *info,
                                         struct paceline_error **error);

// Verifies a program without making its maps. `program` may be null if there is only one.
enum paceline_status paceline_object_verify(const struct paceline_object *object,
                                            const char *program,
                                            struct paceline_error **error);

// Makes a pool of the caller's memory, whose frames are the caller's until paceline_burst_place. Null on failure.
struct paceline_pool *paceline_pool_new(const struct paceline_pool_options *options,
                                        struct paceline_error **error);

// Frees a pool: PACELINE_STATUS_BUSY while a frame of it is in a burst, and nothing happens then. Once it is PACELINE_STATUS_OK, the
// library does not touch the memory any more. Null is allowed.
enum paceline_status paceline_pool_free(struct paceline_pool *pool);

// Where the buffer of a frame begins; null if there is no such frame.
uint8_t *paceline_pool_buffer(const struct paceline_pool *pool, uint32_t frame);

// Frees a program. It stays as long as it runs, in maps and in chains. Null is allowed.
enum paceline_status paceline_program_free(struct paceline_program *program);

// The name of a program, which lives as long as the handle; an empty text if it is no handle.
const char *paceline_program_name(const struct paceline_program *program);

// Properties of a program.
enum paceline_status paceline_program_read_info(const struct paceline_program *program,
                                                struct paceline_program_info *info,
                                                struct paceline_error **error);

// The engine that runs the program; PACELINE_ENGINE_BEST if it is no handle.
enum paceline_engine paceline_program_engine(const struct paceline_program *program);

// Number of the program, unique in the process, by which entries of device and CPU maps name it; 0 if it is no handle.
uint32_t paceline_program_id(const struct paceline_program *program);

// Puts a program into a program array, for tail calls.
enum paceline_status paceline_program_install(const struct paceline_program *program,
                                              const struct paceline_map *map,
                                              uint32_t index,
                                              struct paceline_error **error);

// Runs a program over one packet, which is copied. `frame` gets the packet as the program left it; its bytes are the host's, and good
// until the next call with the host, to which they may be passed: so a packet goes through several programs. `frame` may be null.
enum paceline_status paceline_program_run(const struct paceline_program *program,
                                          struct paceline_host *host,
                                          const struct paceline_packet *packet,
                                          struct paceline_frame *frame,
                                          struct paceline_error **error);

// Runs a program over the packets of a burst, in order; paceline_burst_frames has what became of them. On PACELINE_STATUS_FAULT
// `index` in the error's details is the packet's: those before it ran, those after it did not.
enum paceline_status paceline_program_run_burst(const struct paceline_program *program,
                                                struct paceline_burst *burst,
                                                struct paceline_host *host,
                                                struct paceline_error **error);

// Frees a text that a function of this library gave to the caller to free. Null is allowed. A text that is none, or was freed and is
// nobody's again, is `PACELINE_STATUS_HANDLE`.
enum paceline_status paceline_string_free(char *string);

// Version of the interface of the library that runs; compare it with PACELINE_ABI_VERSION of the header if the library was opened by
// dlopen.
uint32_t paceline_abi_version(void);

// Version of the library, such as "0.1.0".
const char *paceline_version(void);

// Whether this machine has an engine, one of enum paceline_engine: 1 or 0.
int32_t paceline_engine_is_available(uint32_t engine);

// Number of handles that were given out and not freed, of all kinds, to find those that a program forgets.
size_t paceline_live_handles(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PACELINE_H */
