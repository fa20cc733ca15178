/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The library as a C program uses it, rightly and wrongly: run alone, under Valgrind and under AddressSanitizer.
 *   library FOLDER_OF_EXAMPLES
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static int failures;
const char *examples;

void check(int holds, const char *what, const char *where, int line)
{
    if (!holds) {
        failures++;
        fprintf(stderr, "%s:%d: %s\n", where, line, what);
    }
}

struct paceline_error *error;

static void told(const char *what, int line)
{
    fprintf(stderr, "line %d: %s: %s\n", line, what, paceline_error_message(error));
    paceline_error_free(error);
    exit(1);
}

void ok(enum paceline_status status, const char *what, int line)
{
    if (status != PACELINE_STATUS_OK)
        told(what, line);
}

void *handle(void *handle, const char *what, int line)
{
    if (!handle)
        told(what, line);
    return handle;
}

int fails_at(uint64_t index, enum paceline_status wanted, const char *message)
{
    struct paceline_error_details details = STRUCT(paceline_error_details);
    int holds = error != NULL && paceline_error_read(error, &details) == PACELINE_STATUS_OK &&
                details.status == wanted && strstr(details.message, message) != NULL && details.index == index;
    if (!holds)
        fprintf(stderr, "status %d, index %" PRIu64 ": %s\n", (int)details.status, details.index, paceline_error_message(error));
    CHECK(paceline_error_free(error) == PACELINE_STATUS_OK);
    CHECK(paceline_error_free(error) == PACELINE_STATUS_HANDLE);
    error = NULL;
    return holds;
}

int fails(enum paceline_status wanted, const char *message)
{
    struct paceline_error_details details = STRUCT(paceline_error_details);
    if (error)
        paceline_error_read(error, &details);
    return fails_at(details.index, wanted, message);
}

struct paceline_collection *load(const char *name, uint32_t cpus)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", examples, name);
    struct paceline_object *object = HANDLE(paceline_object_open(path, NULL, &error));
    struct paceline_load_options options = STRUCT(paceline_load_options, .cpus = cpus);
    struct paceline_collection *collection = HANDLE(paceline_object_load(object, &options, &error));
    CHECK(paceline_object_free(object) == PACELINE_STATUS_OK);
    return collection;
}

const uint8_t ethernet[60] = { 0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0x00, 0x45 };

static void objects_are_described(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/vlan.o", examples);
    FILE *file = fopen(path, "rb");
    static uint8_t bytes[1 << 20];
    size_t length = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    struct paceline_object *object = HANDLE(paceline_object_parse(bytes, length, NULL, &error));
    size_t programs = paceline_object_programs(object);
    CHECK(programs > 1);
    struct paceline_program_info program = STRUCT(paceline_program_info);
    for (size_t i = 0; i < programs; i++) {
        OK(paceline_object_program(object, i, &program, &error));
        CHECK(program.name[0] && program.slots > 0 && program.program_type == PACELINE_PROGRAM_TYPE_XDP);
        OK(paceline_object_verify(object, program.name, &error));
    }
    CHECK(paceline_object_program(object, programs, &program, &error) == PACELINE_STATUS_NOT_FOUND && !error);
    struct paceline_map_info map = STRUCT(paceline_map_info);
    OK(paceline_object_map(object, 0, &map, &error));
    CHECK(map.name[0] && map.id == 0);
    CHECK(paceline_object_verify(object, NULL, &error) == PACELINE_STATUS_NO_PROGRAM);
    CHECK(fails(PACELINE_STATUS_NO_PROGRAM, "name one of"));
    CHECK(paceline_object_free(object) == PACELINE_STATUS_OK);

    for (size_t cut = 0; cut < length; cut += 97) {
        struct paceline_object *part = paceline_object_parse(bytes, cut, NULL, &error);
        CHECK((part == NULL) == (error != NULL));
        paceline_object_free(part);
        paceline_error_free(error);
        error = NULL;
    }
}

static void maps_by_bytes_and_json(void)
{
    struct paceline_collection *collection = load("firewall.o", 2);
    struct paceline_map *rules = HANDLE(paceline_collection_map(collection, "rules", &error));
    struct paceline_map *counters = HANDLE(paceline_collection_map(collection, "counters", &error));
    CHECK(paceline_collection_free(collection) == PACELINE_STATUS_OK);

    OK(paceline_map_update_json(rules, "{\"port\": 22, \"protocol\": 6, \"reserved\": 0}",
                                "{\"action\": 1, \"reserved\": 0, \"hits\": 7}", 0, &error));
    uint8_t key[4] = { 0, 22, 6, 0 }; /* network order */
    uint8_t value[16];
    struct paceline_map_info info = STRUCT(paceline_map_info);
    OK(paceline_map_read_info(rules, &info, &error));
    CHECK(info.key_size == sizeof key && info.user_value_size == sizeof value && !strcmp(info.name, "rules"));
    uint8_t first[4];
    OK(paceline_map_next_key(rules, NULL, 0, first, sizeof first, &error));
    memcpy(key, first, sizeof key);
    OK(paceline_map_lookup(rules, key, sizeof key, value, sizeof value, &error));
    uint64_t hits;
    memcpy(&hits, value + 8, sizeof hits);
    CHECK(hits == 7);
    CHECK(paceline_map_next_key(rules, key, sizeof key, first, sizeof first, NULL) == PACELINE_STATUS_NOT_FOUND);

    char *json = HANDLE(paceline_map_read_json(rules, &error));
    CHECK(strstr(json, "\"hits\":7") != NULL);
    CHECK(paceline_string_free(json) == PACELINE_STATUS_OK);
    CHECK(paceline_string_free(json) == PACELINE_STATUS_HANDLE);
    CHECK(paceline_map_lookup_json(rules, "{\"port\": 23, \"protocol\": 6, \"reserved\": 0}", &error) == NULL && !error);
    CHECK(paceline_map_update_json(rules, "{\"port\": 70000, \"protocol\": 6, \"reserved\": 0}", "{}", 0, &error) != 0);
    CHECK(fails(PACELINE_STATUS_ARGUMENT, "70000 does not fit"));
    CHECK(paceline_map_update_json(rules, "{", "{}", 0, &error) != 0);
    CHECK(fails(PACELINE_STATUS_ARGUMENT, "the key is no JSON"));

    /* A batch, and its elements taken out. */
    uint8_t keys[100][4], values[100][16] = { { 0 } };
    for (int i = 0; i < 100; i++)
        memcpy(keys[i], (uint8_t[]){ 1, (uint8_t)i, 17, 0 }, 4);
    size_t done = 0;
    OK(paceline_map_update_batch(rules, keys[0], values[0], 100, 0, &done, &error));
    CHECK(done == 100);
    uint8_t taken_keys[101][4], taken_values[101][16];
    OK(paceline_map_read(rules, taken_keys[0], taken_values[0], 101, &done, &error));
    CHECK(done == 101);
    OK(paceline_map_delete_batch(rules, keys[0], 50, &done, &error));
    CHECK(done == 50);
    CHECK(paceline_map_delete_batch(rules, keys[0], 1, &done, &error) == PACELINE_STATUS_NOT_FOUND && done == 0);
    /* Without room no element is lost. */
    CHECK(paceline_map_drain(rules, taken_keys[0], NULL, 101, &done, &error) == PACELINE_STATUS_ARGUMENT);
    CHECK(fails(PACELINE_STATUS_ARGUMENT, "room for bytes is null"));
    OK(paceline_map_drain(rules, taken_keys[0], taken_values[0], 101, &done, &error));
    CHECK(done == 51);
    CHECK(paceline_map_delete(rules, keys[99], 4, NULL) == PACELINE_STATUS_NOT_FOUND);

    /* A value for each of two CPUs. */
    OK(paceline_map_read_info(counters, &info, &error));
    CHECK(info.user_value_size == 2 * ((info.value_size + 7) / 8 * 8));
    OK(paceline_map_freeze(rules, &error));
    CHECK(paceline_map_update(rules, keys[0], 4, values[0], 16, 0, &error) == PACELINE_STATUS_MAP);
    CHECK(fails(PACELINE_STATUS_MAP, "EPERM"));
    CHECK(paceline_map_free(rules) == PACELINE_STATUS_OK && paceline_map_free(counters) == PACELINE_STATUS_OK);
    CHECK(paceline_map_free(rules) == PACELINE_STATUS_HANDLE);
}

/* What a callback of events tries. */
struct attempt {
    struct paceline_host *host;
    struct paceline_burst *burst;
    size_t calls, bytes;
};

static void on_event(void *data, const struct paceline_event *event)
{
    struct attempt *attempt = data;
    attempt->calls++;
    attempt->bytes += event->length + event->packet_length;
    CHECK(paceline_host_free(attempt->host) == PACELINE_STATUS_BUSY);
    CHECK(paceline_burst_clear(attempt->burst, NULL) == PACELINE_STATUS_BUSY);
}

static void on_record(void *data, const uint8_t *bytes, size_t length)
{
    struct attempt *attempt = data;
    attempt->calls++;
    attempt->bytes += length;
    (void)bytes;
}

#define INSN(operation, dst, src, off, imm) { .code = operation, .registers = (src) << 4 | (dst), .offset = off, .immediate = imm }

/* bpf_ringbuf_output and bpf_perf_event_output of eight bytes, into the maps 0 and 1. */
static const struct paceline_instruction sending[] = {
    INSN(0xbf, 6, 1, 0, 0), INSN(0x7a, 10, 0, -8, 42),
    INSN(0x18, 1, 5, 0, 0), INSN(0, 0, 0, 0, 0), INSN(0xbf, 2, 10, 0, 0), INSN(0x07, 2, 0, 0, -8),
    INSN(0xb7, 3, 0, 0, 8), INSN(0xb7, 4, 0, 0, 0), INSN(0x85, 0, 0, 0, 130),
    INSN(0xbf, 1, 6, 0, 0), INSN(0x18, 2, 5, 0, 1), INSN(0, 0, 0, 0, 0), INSN(0xb4, 3, 0, 0, -1),
    INSN(0xbf, 4, 10, 0, 0), INSN(0x07, 4, 0, 0, -8), INSN(0xb7, 5, 0, 0, 8), INSN(0x85, 0, 0, 0, 25),
    INSN(0xb7, 0, 0, 0, 2), INSN(0x95, 0, 0, 0, 0),
};

static struct paceline_collection *build(void)
{
    struct paceline_builder *builder = HANDLE(paceline_builder_new(NULL, 0, &error));
    struct paceline_map_spec ring = STRUCT(paceline_map_spec, .name = "ring", .kind = 27, .max_entries = 4096);
    struct paceline_map_spec perf = STRUCT(paceline_map_spec, .name = "perf", .kind = 4, .key_size = 4, .value_size = 4);
    OK(paceline_builder_add_map(builder, &ring, &error));
    OK(paceline_builder_add_map(builder, &perf, &error));
    struct paceline_program_spec program =
        STRUCT(paceline_program_spec, .name = "sending", .license = "GPL", .instructions = sending,
               .instruction_count = sizeof sending / sizeof *sending);
    OK(paceline_builder_add_program(builder, &program, &error));
    struct paceline_object *object = HANDLE(paceline_builder_object(builder, &error));
    CHECK(paceline_builder_free(builder) == PACELINE_STATUS_OK);
    struct paceline_collection *collection = HANDLE(paceline_object_load(object, NULL, &error));
    CHECK(paceline_object_free(object) == PACELINE_STATUS_OK);
    return collection;
}

static void events_reach_callbacks(void)
{
    struct paceline_collection *collection = build();
    struct paceline_program *program = HANDLE(paceline_collection_program(collection, NULL, &error));
    struct paceline_map *ring = HANDLE(paceline_collection_map(collection, "ring", &error));
    struct paceline_host *host = HANDLE(paceline_host_new(0, &error));
    struct paceline_burst *burst = HANDLE(paceline_burst_new(64, &error));
    struct attempt attempt = { .host = host, .burst = burst };
    OK(paceline_host_set_events(host, on_event, &attempt, &error));
    CHECK(paceline_host_set_events(host, NULL, NULL, &error) == PACELINE_STATUS_ARGUMENT);
    CHECK(fails(PACELINE_STATUS_ARGUMENT, "null"));
    struct paceline_packet packet = STRUCT(paceline_packet, .data = ethernet, .length = sizeof ethernet);
    for (int i = 0; i < 64; i++)
        OK(paceline_burst_push(burst, &packet, 1, NULL, &error));
    OK(paceline_program_run_burst(program, burst, host, &error));
    CHECK(attempt.calls == 64 && attempt.bytes == 64 * 8);

    struct attempt records = { 0 };
    size_t count = 0;
    OK(paceline_map_wait(ring, 0, &error));
    OK(paceline_map_consume(ring, on_record, &records, &count, &error));
    CHECK(count == 64 && records.calls == 64 && records.bytes == 64 * 8 && paceline_map_lost(ring) == 0);
    CHECK(paceline_map_wait(ring, 1, &error) == PACELINE_STATUS_NOT_FOUND);
    CHECK(paceline_map_consume(ring, NULL, NULL, NULL, &error) == PACELINE_STATUS_ARGUMENT);
    CHECK(fails(PACELINE_STATUS_ARGUMENT, "null"));
    paceline_map_free(ring);
    paceline_program_free(program);
    paceline_collection_free(collection);

    /* Lines of bpf_trace_printk: one for 100 samples, which are one of four packets. */
    struct attempt lines = { 0 };
    collection = load("sampler.o", 1);
    program = HANDLE(paceline_collection_program(collection, "sample_every", &error));
    OK(paceline_host_set_trace(host, on_record, &lines, &error));
    for (int i = 0; i < 7; i++) {
        OK(paceline_burst_clear(burst, &error));
        for (int j = 0; j < 64; j++)
            OK(paceline_burst_push(burst, &packet, 1, NULL, &error));
        OK(paceline_program_run_burst(program, burst, host, &error));
    }
    CHECK(lines.calls > 0 && lines.bytes > 40);
    struct paceline_frame frame = STRUCT(paceline_frame);
    OK(paceline_burst_frames(burst, &frame, 1, NULL, &error));
    CHECK(frame.verdict == PACELINE_VERDICT_REDIRECT && frame.redirect == PACELINE_REDIRECT_INTERFACE);
    CHECK(frame.target == 1 && frame.metadata_length == 16);
    paceline_program_free(program);
    paceline_burst_free(burst);
    paceline_host_free(host);
    paceline_collection_free(collection);
}

/* Time, chance and network are what the caller says. */
static void hosts_are_set(void)
{
    struct paceline_host *host = HANDLE(paceline_host_new(0, &error));
    OK(paceline_host_seed(host, 1, &error));
    OK(paceline_host_set_time(host, PACELINE_TIME_PACKETS, &error));
    CHECK(paceline_host_set_time(host, 7, &error) == PACELINE_STATUS_ARGUMENT);
    CHECK(fails(PACELINE_STATUS_ARGUMENT, "7 is no enum paceline_time"));
    OK(paceline_host_set_network(host, "[{\"ifindex\": 2, \"ifname\": \"eth0\", \"mtu\": 1500}]", &error));
    CHECK(paceline_host_set_network(host, "[{", &error) == PACELINE_STATUS_NETWORK);
    CHECK(fails(PACELINE_STATUS_NETWORK, "line 1"));
    struct paceline_collection *collection = load("sampler.o", 1);
    struct paceline_program *program = HANDLE(paceline_collection_program(collection, "sample_random", &error));
    struct paceline_packet packet = STRUCT(paceline_packet, .data = ethernet, .length = sizeof ethernet, .time_ns = 12345);
    struct paceline_frame frame = STRUCT(paceline_frame);
    int sampled = 0;
    for (int i = 0; i < 100; i++) {
        OK(paceline_program_run(program, host, &packet, &frame, &error));
        if (frame.verdict != PACELINE_VERDICT_REDIRECT)
            continue;
        uint64_t time;
        memcpy(&time, frame.metadata + 8, sizeof time);
        CHECK(time == packet.time_ns);
        sampled++;
    }
    CHECK(sampled > 5 && sampled < 60);
    uint64_t fired = 1;
    OK(paceline_host_fire_timers(host, &fired, &error));
    CHECK(fired == 0);
    struct paceline_sk_buff skb = STRUCT(paceline_sk_buff);
    OK(paceline_host_sk_buff(host, &skb, &error));
    OK(paceline_host_set_context(host, "mark", 7, &error));
    CHECK(paceline_host_set_context(host, "wire_len", 7, NULL) == PACELINE_STATUS_ARGUMENT);
    CHECK(paceline_host_set_context(host, "tc_index", 1 << 16, NULL) == PACELINE_STATUS_ARGUMENT);
    CHECK(paceline_host_set_context(host, "marks", 1, NULL) == PACELINE_STATUS_ARGUMENT);
    uint64_t mark = 1;
    CHECK(!strcmp(paceline_context_name(1), "mark") && !paceline_context_name(1000));
    OK(paceline_host_context(host, "mark", &mark, &error));
    CHECK(mark == skb.mark);
    paceline_program_free(program);
    paceline_collection_free(collection);
    paceline_host_free(host);
}

static void filters_match(void)
{
    struct paceline_filter *text = HANDLE(paceline_filter_from_text("ldh [12]\n jne #0x800, drop\n ret #-1\n drop: ret #0", NULL, &error));
    struct paceline_classic_instruction code[] = { { 0x28, 0, 0, 12 }, { 0x15, 0, 1, 0x86dd }, { 6, 0, 0, 65535 }, { 6, 0, 0, 0 } };
    struct paceline_filter *insns = HANDLE(paceline_filter_from_instructions(code, 4, NULL, &error));
    struct paceline_host *host = HANDLE(paceline_host_new(0, &error));
    struct paceline_burst *burst = HANDLE(paceline_burst_new(2, &error));
    struct paceline_packet packet = STRUCT(paceline_packet, .data = ethernet, .length = sizeof ethernet);
    OK(paceline_burst_push(burst, &packet, 1, NULL, &error));
    uint64_t matches = 7;
    OK(paceline_filter_matches(text, burst, host, &matches, &error));
    CHECK(matches == 1);
    OK(paceline_filter_matches(insns, burst, host, &matches, &error));
    CHECK(matches == 0);
    CHECK(!paceline_filter_from_instructions(code, 3, NULL, &error) && fails(PACELINE_STATUS_FILTER, ""));

    /* Where libpcap is installed. */
    struct paceline_filter *expression = paceline_filter_compile("ip and less 60", NULL, &error);
    if (expression) {
        OK(paceline_filter_matches(expression, burst, host, &matches, &error));
        CHECK(matches == 1);
        CHECK(!paceline_filter_compile("ip and", NULL, &error) && fails(PACELINE_STATUS_FILTER, "syntax error"));
    } else {
        CHECK(fails(PACELINE_STATUS_FILTER, "libpcap"));
    }

    /* Before a program, in a chain. */
    struct paceline_program *first = HANDLE(paceline_filter_program(insns, &error));
    struct paceline_collection *collection = load("counter.o", 1);
    struct paceline_program *second = HANDLE(paceline_collection_program(collection, NULL, &error));
    struct paceline_member members[] = { STRUCT(paceline_member, .name = "ipv6 only", .program = first),
                                         STRUCT(paceline_member, .program = second) };
    struct paceline_chain *chain = HANDLE(paceline_chain_new(members, 2, PACELINE_ORDER_GIVEN, &error));
    struct paceline_worker *worker = HANDLE(paceline_chain_worker(chain, 1, &error));
    paceline_program_free(first);
    paceline_program_free(second);
    paceline_collection_free(collection);
    OK(paceline_worker_run_burst(worker, burst, host, &error));
    struct paceline_frame frame = STRUCT(paceline_frame);
    size_t count = 0;
    OK(paceline_burst_frames(burst, &frame, 1, &count, &error));
    CHECK(count == 1 && frame.verdict == PACELINE_VERDICT_DROP && frame.length == sizeof ethernet);
    struct paceline_change change = STRUCT(paceline_change, .kind = PACELINE_CHANGE_KIND_REMOVE, .name = "ipv6 only");
    OK(paceline_chain_change(chain, &change, 1, PACELINE_ANY_REVISION, NULL, &error));
    OK(paceline_worker_run_burst(worker, burst, host, &error));
    OK(paceline_burst_frames(burst, &frame, 1, &count, &error));
    CHECK(frame.verdict == PACELINE_VERDICT_PASS);
    CHECK(paceline_chain_change(chain, &change, 1, PACELINE_ANY_REVISION, NULL, &error) == PACELINE_STATUS_CHAIN);
    CHECK(fails(PACELINE_STATUS_CHAIN, "no program ipv6 only"));
    CHECK(paceline_worker_free(worker) == PACELINE_STATUS_OK);
    char *status = HANDLE(paceline_chain_status(chain, &error));
    CHECK(strstr(status, "\"name\":\"counter\"") && strstr(status, "\"pass\":1"));
    paceline_string_free(status);
    CHECK(paceline_chain_free(chain) == PACELINE_STATUS_OK);
    paceline_filter_free(text);
    paceline_filter_free(insns);
    paceline_filter_free(expression);
    paceline_burst_free(burst);
    paceline_host_free(host);
}

/* A program that writes into the headroom, over frames of this program. */
static void frames_of_the_caller(void)
{
    enum { FRAMES = 64, STRIDE = 2048 };
    uint8_t *memory = calloc(FRAMES, STRIDE);
    struct paceline_pool_options options =
        STRUCT(paceline_pool_options, .memory = memory, .stride = STRIDE, .count = FRAMES, .buffer_length = STRIDE);
    struct paceline_pool *pool = HANDLE(paceline_pool_new(&options, &error));
    CHECK(paceline_pool_buffer(pool, 1) == memory + STRIDE && !paceline_pool_buffer(pool, FRAMES));
    struct paceline_collection *collection = load("vlan.o", 1);
    struct paceline_program *push = HANDLE(paceline_collection_program(collection, "vlan_push", &error));
    struct paceline_host *host = HANDLE(paceline_host_new(0, &error));
    struct paceline_burst *burst = HANDLE(paceline_burst_new(FRAMES, &error));
    struct paceline_packet packets[FRAMES];
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < FRAMES; i++) {
            uint8_t *data = paceline_pool_buffer(pool, i) + PACELINE_HEADROOM;
            memcpy(data, ethernet, sizeof ethernet);
            packets[i] = STRUCT(paceline_packet, .data = data, .length = sizeof ethernet);
        }
        size_t placed = 0;
        OK(paceline_burst_place(burst, pool, packets, FRAMES, &placed, &error));
        CHECK(placed == FRAMES);
        OK(paceline_program_run_burst(push, burst, host, &error));
        struct paceline_frame frames[FRAMES];
        frames[0].size = sizeof frames[0];
        size_t count = 0;
        OK(paceline_burst_frames(burst, frames, FRAMES, &count, &error));
        CHECK(count == FRAMES);
        for (size_t i = 0; i < count; i++) {
            CHECK(frames[i].data == packets[i].data - 4 && frames[i].length == sizeof ethernet + 4);
            CHECK(frames[i].data[12] == 0x81 && frames[i].data[13] == 0x00);
        }
        CHECK(paceline_pool_free(pool) == PACELINE_STATUS_BUSY);
        OK(paceline_burst_clear(burst, &error));
    }
    paceline_program_free(push);
    paceline_collection_free(collection);
    CHECK(paceline_pool_free(pool) == PACELINE_STATUS_OK);
    free(memory);
    paceline_burst_free(burst);
    paceline_host_free(host);
}

/* Handles that are null, freed, of another kind, or never were. */
static void wrong_handles(void)
{
    struct paceline_host *host = HANDLE(paceline_host_new(0, &error));
    struct paceline_packet packet = STRUCT(paceline_packet, .data = ethernet, .length = sizeof ethernet);
    CHECK(paceline_program_run(NULL, host, &packet, NULL, &error) == PACELINE_STATUS_HANDLE);
    CHECK(fails(PACELINE_STATUS_HANDLE, "null is given for a program"));
    CHECK(paceline_program_run((void *)host, host, &packet, NULL, &error) == PACELINE_STATUS_HANDLE);
    CHECK(fails(PACELINE_STATUS_HANDLE, "a handle of a host is given for a program"));
    CHECK(paceline_program_run((void *)&packet, host, &packet, NULL, &error) == PACELINE_STATUS_HANDLE);
    CHECK(fails(PACELINE_STATUS_HANDLE, "no handle"));
    CHECK(!strcmp(paceline_program_name((void *)&packet), "") && paceline_object_programs((void *)host) == 0);
    CHECK(paceline_host_free(host) == PACELINE_STATUS_OK);
    CHECK(paceline_host_free(host) == PACELINE_STATUS_HANDLE);
    CHECK(paceline_host_seed(host, 1, &error) == PACELINE_STATUS_HANDLE);
    CHECK(fails(PACELINE_STATUS_HANDLE, "a host was freed"));
    CHECK(!strcmp(paceline_error_message(NULL), ""));
    CHECK(paceline_string_free((char *)"text") == PACELINE_STATUS_HANDLE);
    srand(1);
    for (int i = 0; i < 10000; i++) {
        uint64_t number = (uint64_t)rand() << 40 ^ (uint64_t)rand() << 20 ^ (uint64_t)rand();
        number = i % 2 ? number : (uint64_t)(i % 16) << 56 | (number & 0x3ffffff);
        CHECK(paceline_burst_free((void *)(uintptr_t)number) != PACELINE_STATUS_OK || number == 0);
    }
}

/* What a program left goes through the next one. */
static void a_packet_through_several_programs(void)
{
    struct paceline_collection *collection = load("vlan.o", 1);
    struct paceline_program *push = HANDLE(paceline_collection_program(collection, "vlan_push", &error));
    struct paceline_program *pop = HANDLE(paceline_collection_program(collection, "vlan_pop", &error));
    struct paceline_host *host = HANDLE(paceline_host_new(0, &error));
    struct paceline_packet packet = STRUCT(paceline_packet, .data = ethernet, .length = sizeof ethernet);
    struct paceline_frame frame = STRUCT(paceline_frame);
    for (int i = 0; i < 5; i++) {
        OK(paceline_program_run(push, host, &packet, &frame, &error));
        CHECK(frame.length == sizeof ethernet + 4);
        packet.data = frame.data;
        packet.length = frame.length;
        OK(paceline_program_run(pop, host, &packet, &frame, &error));
        CHECK(frame.length == sizeof ethernet && !memcmp(frame.data, ethernet, sizeof ethernet));
        packet.data = frame.data;
        packet.length = frame.length;
    }
    paceline_host_free(host);
    paceline_program_free(push);
    paceline_program_free(pop);
    paceline_collection_free(collection);
}

/* Each thread: what it needs, used and freed, and a program that all of them share. */
static struct paceline_program *shared;

static void *work(void *number)
{
    struct paceline_error *mine = NULL;
    struct paceline_packet packet = STRUCT(paceline_packet, .data = ethernet, .length = sizeof ethernet);
    for (int round = 0; round < 50; round++) {
        struct paceline_host *host = paceline_host_new((uint32_t)(uintptr_t)number, &mine);
        struct paceline_burst *burst = paceline_burst_new(8, &mine);
        for (int i = 0; i < 8; i++)
            CHECK(paceline_burst_push(burst, &packet, 1, NULL, &mine) == PACELINE_STATUS_OK);
        CHECK(paceline_program_run_burst(shared, burst, host, &mine) == PACELINE_STATUS_OK);
        CHECK(paceline_burst_free(burst) == PACELINE_STATUS_OK && paceline_host_free(host) == PACELINE_STATUS_OK);
    }
    return NULL;
}

static void threads_share_a_program(void)
{
    enum { THREADS = 4 };
    struct paceline_collection *collection = load("counter.o", THREADS);
    shared = HANDLE(paceline_collection_program(collection, NULL, &error));
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    struct paceline_map *map = HANDLE(paceline_collection_map(collection, "by_ethertype", &error));
    char *json = HANDLE(paceline_map_lookup_json(map, "2048", &error));
    CHECK(!strcmp(json, "{\"packets\":1600,\"bytes\":96000}"));
    paceline_string_free(json);
    paceline_map_free(map);
    paceline_program_free(shared);
    paceline_collection_free(collection);
}

int main(int argc, char **argv)
{
    examples = argc > 1 ? argv[1] : "examples";
    CHECK(paceline_abi_version() == PACELINE_ABI_VERSION);
    CHECK(paceline_engine_is_available(PACELINE_ENGINE_PLAIN) && !paceline_engine_is_available(99));
    objects_are_described();
    maps_by_bytes_and_json();
    events_reach_callbacks();
    hosts_are_set();
    filters_match();
    chains_by_edges();
    chain_files();
    frames_of_the_caller();
    a_packet_through_several_programs();
    wrong_handles();
    threads_share_a_program();
    CHECK(paceline_live_handles() == 0);
    printf("%s: %d failures\n", paceline_version(), failures);
    return failures != 0;
}
