/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Packets through a program, without a copy: from a packet socket on an interface (root), or from a pcap file. Frames lie in memory of this
 * program, with the room before and after each packet that the library asks for.
 *   filter OBJECT[:PROGRAM] -i INTERFACE [COUNT]
 *   filter OBJECT[:PROGRAM] FILE.pcap
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <paceline.h>

enum { FRAMES = PACELINE_MAX_BURST, STRIDE = 65536, LONGEST = STRIDE - PACELINE_HEADROOM - PACELINE_TAILROOM };

static struct paceline_error *error;
static uint8_t *memory;
static struct paceline_packet packets[FRAMES];
static uint64_t verdicts[5];

static uint8_t *start_of(int frame)
{
    return memory + (size_t)frame * STRIDE + PACELINE_HEADROOM;
}

static int tell(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, paceline_error_message(error));
    paceline_error_free(error);
    return 1;
}

/* Fills packets from the socket: waits for the first, takes what is there. */
static int receive(int socket, uint32_t ifindex)
{
    struct mmsghdr messages[FRAMES] = { 0 };
    struct iovec places[FRAMES];
    for (int i = 0; i < FRAMES; i++) {
        places[i] = (struct iovec){ start_of(i), LONGEST };
        messages[i].msg_hdr.msg_iov = &places[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    int count = recvmmsg(socket, messages, FRAMES, MSG_WAITFORONE, NULL);
    for (int i = 0; i < count; i++)
        packets[i] = (struct paceline_packet){
            .size = sizeof *packets, .data = start_of(i), .length = messages[i].msg_len, .ingress_ifindex = ifindex,
        };
    return count;
}

/* Fills packets from the file, in this machine's byte order and in microseconds. 0 at the end. */
static int read_file(FILE *file)
{
    int count = 0;
    uint32_t header[4];
    while (count < FRAMES && fread(header, sizeof header, 1, file) == 1) {
        uint32_t length = header[2];
        if (length > LONGEST || fread(start_of(count), 1, length, file) != length)
            return -1;
        packets[count] = (struct paceline_packet){
            .size = sizeof *packets, .data = start_of(count), .length = length, .wire_length = header[3],
            .time_ns = header[0] * UINT64_C(1000000000) + header[1] * UINT64_C(1000),
        };
        count++;
    }
    return count;
}

static FILE *open_file(const char *path)
{
    uint32_t header[6];
    FILE *file = fopen(path, "rb");
    if (file && (fread(header, sizeof header, 1, file) != 1 || header[0] != 0xa1b2c3d4)) {
        fclose(file);
        errno = EINVAL;
        return NULL;
    }
    return file;
}

static int open_socket(const char *interface, uint32_t *ifindex)
{
    *ifindex = if_nametoindex(interface);
    struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)*ifindex };
    int fd = *ifindex ? socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)) : -1;
    return fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

/* One burst: placed, run, and given back. */
static int run(struct paceline_program *program, struct paceline_burst *burst, struct paceline_pool *pool,
               struct paceline_host *host, int count)
{
    struct paceline_frame frames[FRAMES];
    frames[0].size = sizeof frames[0];
    size_t there = 0;
    if (paceline_burst_place(burst, pool, packets, (size_t)count, NULL, &error) ||
        paceline_program_run_burst(program, burst, host, &error) ||
        paceline_burst_frames(burst, frames, FRAMES, &there, &error))
        return tell("run");
    for (size_t i = 0; i < there; i++)
        verdicts[frames[i].verdict]++;
    return paceline_burst_clear(burst, &error) ? tell("clear") : 0;
}

int main(int argc, char **argv)
{
    int live = argc >= 4 && !strcmp(argv[2], "-i");
    if (argc < 3 || (!live && argc != 3)) {
        fprintf(stderr, "usage: %s OBJECT[:PROGRAM] -i INTERFACE [COUNT] | FILE.pcap\n", argv[0]);
        return 2;
    }
    char *name = strchr(argv[1], ':');
    if (name)
        *name++ = 0;
    struct paceline_object *object = paceline_object_open(argv[1], NULL, &error);
    if (!object)
        return tell("open");
    struct paceline_collection *collection = paceline_object_load(object, NULL, &error);
    if (!collection)
        return tell(argv[1]);
    struct paceline_program *program = paceline_collection_program(collection, name, &error);
    if (!program)
        return tell(argv[1]);
    /* The program has all it needs. */
    paceline_collection_free(collection);
    paceline_object_free(object);

    memory = calloc(FRAMES, STRIDE);
    struct paceline_pool_options options = {
        .size = sizeof options, .memory = memory, .stride = STRIDE, .count = FRAMES, .buffer_length = STRIDE,
    };
    struct paceline_pool *pool = paceline_pool_new(&options, &error);
    if (!pool)
        return tell("pool");
    struct paceline_burst *burst = paceline_burst_new(FRAMES, &error);
    if (!burst)
        return tell("burst");
    struct paceline_host *host = paceline_host_new(0, &error);
    if (!host || paceline_host_set_time(host, PACELINE_TIME_PACKETS, &error))
        return tell("host");

    uint32_t ifindex = 0;
    FILE *file = live ? NULL : open_file(argv[2]);
    int fd = live ? open_socket(argv[3], &ifindex) : -1;
    if (!file && fd < 0) {
        perror(live ? argv[3] : argv[2]);
        return 1;
    }
    uint64_t left = live && argc > 4 ? strtoull(argv[4], NULL, 10) : UINT64_MAX;
    int count = 0, status = 0;
    while (left > 0 && status == 0 && (count = live ? receive(fd, ifindex) : read_file(file)) > 0) {
        count = (uint64_t)count < left ? count : (int)left;
        left -= (uint64_t)count;
        status = run(program, burst, pool, host, count);
    }
    if (count < 0) {
        fprintf(stderr, "%s: the packets end early\n", argv[2]);
        status = 1;
    }
    static const char *const names[] = { "aborted", "drop", "pass", "tx", "redirect" };
    for (int i = 0; i < 5; i++)
        printf("%-9s %8" PRIu64 "\n", names[i], verdicts[i]);
    paceline_burst_free(burst);
    paceline_pool_free(pool);
    paceline_host_free(host);
    paceline_program_free(program);
    free(memory);
    return status;
}
