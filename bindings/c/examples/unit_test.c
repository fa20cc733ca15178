/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A unit test of a program: its maps are set, packets run, verdicts and maps are compared. No root, no kernel.
 *   unit_test examples/firewall.o
 */
#include <stdio.h>
#include <string.h>

#include <paceline.h>

static struct paceline_error *error;
static int failed;

#define EXPECT_EQ(found, expected)                                                                           \
    do {                                                                                                     \
        long long found_ = (long long)(found), expected_ = (long long)(expected);                            \
        if (found_ != expected_) {                                                                           \
            printf("%s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, #found, found_, expected_);     \
            failed = 1;                                                                                      \
        }                                                                                                    \
    } while (0)

/* Says what went wrong, and where: for a refused program the source line and the instruction. */
static int tell(const char *what)
{
    struct paceline_error_details details = { .size = sizeof details };
    paceline_error_read(error, &details);
    printf("%s: %s\n", what, details.message);
    if (details.file && details.line)
        printf("  %s:%u: %s\n", details.file, details.line, details.source);
    paceline_error_free(error);
    return 1;
}

/* Ethernet, IPv4 without options, and the first bytes of TCP or UDP. */
static size_t make_packet(uint8_t *packet, uint8_t protocol, uint16_t port)
{
    static const uint8_t headers[] = {
        0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0x00,                                   /* Ethernet */
        0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 0, 0, 0, 192, 0, 2, 1, 198, 51, 100, 1,              /* IPv4 */
        0x30, 0x39, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* TCP */
    };
    memcpy(packet, headers, sizeof headers);
    packet[23] = protocol;
    packet[36] = port >> 8;
    packet[37] = port & 0xff;
    return sizeof headers;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s OBJECT\n", argv[0]);
        return 2;
    }
    struct paceline_object *object = paceline_object_open(argv[1], NULL, &error);
    if (!object)
        return tell("open");
    struct paceline_collection *collection = paceline_object_load(object, NULL, &error);
    if (!collection)
        return tell("load");
    struct paceline_program *program = paceline_collection_program(collection, "firewall", &error);
    if (!program)
        return tell("verify");
    struct paceline_map *rules = paceline_collection_map(collection, "rules", &error);
    if (!rules)
        return tell("map");
    struct paceline_host *host = paceline_host_new(0, &error);
    if (!host)
        return tell("host");

    /* Rule: drop what goes to TCP port 22. */
    const char *ssh = "{\"port\": 22, \"protocol\": 6, \"reserved\": 0}";
    if (paceline_map_update_json(rules, ssh, "{\"action\": 1, \"reserved\": 0, \"hits\": 0}", 0, &error))
        return tell("rule");

    uint8_t bytes[64];
    struct paceline_packet packet = { .size = sizeof packet, .data = bytes };
    struct paceline_frame frame = { .size = sizeof frame };
    packet.length = make_packet(bytes, 6, 22);
    if (paceline_program_run(program, host, &packet, &frame, &error))
        return tell("run");
    EXPECT_EQ(frame.verdict, PACELINE_VERDICT_DROP);
    packet.length = make_packet(bytes, 6, 443);
    if (paceline_program_run(program, host, &packet, &frame, &error))
        return tell("run");
    EXPECT_EQ(frame.verdict, PACELINE_VERDICT_PASS);
    EXPECT_EQ(frame.length, packet.length);

    char *rule = paceline_map_lookup_json(rules, ssh, &error);
    EXPECT_EQ(rule && strstr(rule, "\"hits\":1") != NULL, 1);
    paceline_string_free(rule);

    paceline_host_free(host);
    paceline_map_free(rules);
    paceline_program_free(program);
    paceline_collection_free(collection);
    paceline_object_free(object);
    EXPECT_EQ(paceline_live_handles(), 0);
    puts(failed ? "failed" : "passed");
    return failed;
}
