/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Chains by edges, and chain files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

/* The verdict of a chain for the packet. */
static uint32_t verdict_of(struct paceline_chain *chain)
{
    struct paceline_host *host = HANDLE(paceline_host_new(0, &error));
    struct paceline_burst *burst = HANDLE(paceline_burst_new(1, &error));
    struct paceline_worker *worker = HANDLE(paceline_chain_worker(chain, 0, &error));
    struct paceline_packet packet = STRUCT(paceline_packet, .data = ethernet, .length = sizeof ethernet);
    struct paceline_frame frame = STRUCT(paceline_frame);
    OK(paceline_burst_push(burst, &packet, 1, NULL, &error));
    OK(paceline_worker_run_burst(worker, burst, host, &error));
    OK(paceline_burst_frames(burst, &frame, 1, NULL, &error));
    paceline_worker_free(worker);
    paceline_burst_free(burst);
    paceline_host_free(host);
    return frame.verdict;
}

/* Chains whose order is edges: any graph, loops too. */
void chains_by_edges(void)
{
    struct paceline_collection *collection = load("counter.o", 1);
    struct paceline_program *counters[] = { HANDLE(paceline_collection_program(collection, NULL, &error)),
                                            HANDLE(paceline_collection_program(collection, NULL, &error)) };
    struct paceline_member members[] = { STRUCT(paceline_member, .name = "a", .program = counters[0]),
                                         STRUCT(paceline_member, .name = "b", .program = counters[1]) };
    struct paceline_edge edges[] = {
        STRUCT(paceline_edge, .from = "b", .to = "a", .after = PACELINE_VERDICT_PASS),
        STRUCT(paceline_edge, .from = "a", .after = PACELINE_ANY_VERDICT, .end = PACELINE_VERDICT_TX),
    };
    struct paceline_chain *chain = HANDLE(paceline_chain_new_edges(members, 2, "b", edges, 2, &error));
    CHECK(verdict_of(chain) == PACELINE_VERDICT_TX);

    /* All edges of a member are replaced: a loop, which ends aborted, and the end. */
    struct paceline_edge loop = STRUCT(paceline_edge, .to = "b", .after = PACELINE_VERDICT_PASS);
    struct paceline_change change =
        STRUCT(paceline_change, .kind = PACELINE_CHANGE_KIND_LINK, .name = "a", .edges = &loop, .edge_count = 1);
    uint64_t revision = 0;
    OK(paceline_chain_change(chain, &change, 1, PACELINE_ANY_REVISION, &revision, &error));
    CHECK(verdict_of(chain) == PACELINE_VERDICT_ABORTED);
    loop = STRUCT(paceline_edge, .after = PACELINE_VERDICT_PASS, .end = PACELINE_VERDICT_REDIRECT);
    OK(paceline_chain_change(chain, &change, 1, revision, &revision, &error));
    CHECK(verdict_of(chain) == PACELINE_VERDICT_REDIRECT);
    change.edge_count = 0;
    OK(paceline_chain_change(chain, &change, 1, revision, &revision, &error));
    CHECK(verdict_of(chain) == PACELINE_VERDICT_PASS);

    /* What leads to a member keeps it. */
    struct paceline_change removal = STRUCT(paceline_change, .kind = PACELINE_CHANGE_KIND_REMOVE, .name = "a");
    CHECK(paceline_chain_change(chain, &removal, 1, PACELINE_ANY_REVISION, NULL, &error) == PACELINE_STATUS_CHAIN);
    CHECK(fails(PACELINE_STATUS_CHAIN, "an edge of b leads to it"));
    change.edges = edges;
    change.edge_count = 1;
    CHECK(paceline_chain_change(chain, &change, 1, PACELINE_ANY_REVISION, NULL, &error) == PACELINE_STATUS_ARGUMENT);
    CHECK(fails(PACELINE_STATUS_ARGUMENT, "edges of a change"));
    change.edges = NULL;
    CHECK(paceline_chain_change(chain, &change, 1, PACELINE_ANY_REVISION, NULL, &error) == PACELINE_STATUS_ARGUMENT);
    paceline_error_free(error);
    CHECK(verdict_of(chain) == PACELINE_VERDICT_PASS);
    CHECK(!paceline_chain_collection(chain, "a", &error) && !error);

    /* `edges[1]` leads from a, too. */
    struct { struct paceline_edge edge; enum paceline_status status; const char *text; uint64_t index; } wrong[] = {
        { STRUCT(paceline_edge, .from = "c", .to = "a"), PACELINE_STATUS_CHAIN, "no program c", 0 },
        { STRUCT(paceline_edge, .from = "a", .to = "c"), PACELINE_STATUS_CHAIN, "no program c", 0 },
        { STRUCT(paceline_edge, .to = "a"), PACELINE_STATUS_ARGUMENT, "a member that it leads from", 0 },
        { STRUCT(paceline_edge, .from = "a", .to = "b", .end = PACELINE_VERDICT_TX), PACELINE_STATUS_ARGUMENT, "not both", 0 },
        { STRUCT(paceline_edge, .from = "a", .to = "b", .after = 5), PACELINE_STATUS_ARGUMENT, "5 is no enum", 0 },
        { STRUCT(paceline_edge, .from = "a", .end = 9), PACELINE_STATUS_ARGUMENT, "9 is no enum", 0 },
        { STRUCT(paceline_edge, .from = "a", .after = PACELINE_ANY_VERDICT), PACELINE_STATUS_CHAIN, "two edges", 1 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        edges[0] = wrong[i].edge;
        CHECK(!paceline_chain_new_edges(members, 2, NULL, edges, 2, &error) &&
              fails_at(wrong[i].index, wrong[i].status, wrong[i].text));
    }
    CHECK(!paceline_chain_new_edges(members, 2, "c", NULL, 0, &error) &&
          fails_at(PACELINE_UNKNOWN, PACELINE_STATUS_CHAIN, "no program c"));
    CHECK(!paceline_chain_new_edges(members, 2, NULL, NULL, 1, &error) && fails(PACELINE_STATUS_ARGUMENT, ""));
    CHECK(!paceline_chain_new_edges(NULL, 0, NULL, NULL, 0, &error) && fails(PACELINE_STATUS_CHAIN, ""));
    members[1].name = "a";
    CHECK(!paceline_chain_new_edges(members, 2, NULL, NULL, 0, &error) && fails_at(1, PACELINE_STATUS_CHAIN, "named a"));
    members[1].name = "b";
    members[1].program = counters[0];
    CHECK(!paceline_chain_new_edges(members, 2, NULL, NULL, 0, &error) && fails_at(1, PACELINE_STATUS_CHAIN, "already"));
    paceline_program_free(counters[0]);
    paceline_program_free(counters[1]);
    paceline_collection_free(collection);
    paceline_chain_free(chain);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Chain files, and the maps of their programs. */
void chain_files(void)
{
    char text[4096], path[64], *folder = realpath(examples, NULL);
    snprintf(path, sizeof path, "/tmp/paceline-chain-%ld.toml", (long)getpid());
    const char *form = "objects.counter.file = \"%s/counter.o\"\n"
                       "objects.fw = { file = \"%s/%s.o\", maps.rules.elements = [{ key = { port = 22, protocol = 6 }, "
                       "value = { action = %s } }] }\n"
                       "program = [{ name = \"counter\", next.pass = \"fw\" }, { name = \"fw\", end.drop = \"tx\" }]\n";
    snprintf(text, sizeof text, form, folder, folder, "firewall", "1");
    write_file(path, text);
    struct paceline_load_options options = STRUCT(paceline_load_options, .cpus = 2);
    struct paceline_chain *chain = HANDLE(paceline_chain_load_file(path, NULL, &options, &error));
    CHECK(verdict_of(chain) == PACELINE_VERDICT_TX);
    struct paceline_collection *fw = HANDLE(paceline_chain_collection(chain, "fw", &error));
    struct paceline_map *rules = HANDLE(paceline_collection_map(fw, "rules", &error));
    char *value = HANDLE(paceline_map_lookup_json(rules, "{\"port\": 22, \"protocol\": 6, \"reserved\": 0}", &error));
    CHECK(strstr(value, "\"action\":1"));
    paceline_string_free(value);
    paceline_map_free(rules);
    paceline_collection_free(fw);
    CHECK(!paceline_chain_collection(chain, "other", &error) && fails(PACELINE_STATUS_CHAIN, "no program other"));
    CHECK(!paceline_chain_collection(chain, NULL, &error) && fails(PACELINE_STATUS_ARGUMENT, ""));

    /* A member that is another program now has nothing of the file. */
    struct paceline_collection *collection = load("counter.o", 1);
    struct paceline_program *counter = HANDLE(paceline_collection_program(collection, NULL, &error));
    struct paceline_member member = STRUCT(paceline_member, .name = "fw", .program = counter);
    struct paceline_change change =
        STRUCT(paceline_change, .kind = PACELINE_CHANGE_KIND_REPLACE, .name = "fw", .member = &member);
    OK(paceline_chain_change(chain, &change, 1, PACELINE_ANY_REVISION, NULL, &error));
    CHECK(!paceline_chain_collection(chain, "fw", &error) && !error);
    paceline_program_free(counter);

    /* Wrong files. */
    options.replaces = collection;
    CHECK(!paceline_chain_load_file(path, NULL, &options, &error) && fails(PACELINE_STATUS_ARGUMENT, "replaces"));
    paceline_collection_free(collection);
    CHECK(!paceline_chain_load_file("/none.toml", NULL, NULL, &error) && fails(PACELINE_STATUS_IO, "/none.toml: No such"));
    CHECK(!paceline_chain_load_file(NULL, NULL, NULL, &error) && fails(PACELINE_STATUS_ARGUMENT, ""));
    snprintf(text, sizeof text, form, folder, folder, "firewal", "1");
    write_file(path, text);
    CHECK(!paceline_chain_load_file(path, NULL, NULL, &error) && fails(PACELINE_STATUS_IO, ".toml:2:23: "));
    snprintf(text, sizeof text, form, folder, folder, "firewall", "-1");
    write_file(path, text);
    CHECK(!paceline_chain_load_file(path, NULL, NULL, &error));
    struct paceline_error_details details = STRUCT(paceline_error_details);
    OK(paceline_error_read(error, &details));
    CHECK(details.status == PACELINE_STATUS_MAP && strcmp(details.file, path) == 0 && details.line == 2);
    CHECK(details.column > 1 && strstr(details.message, ".toml:2:"));
    paceline_error_free(error);
    write_file(path, "order = \"given\"\nobject = 7\n");
    CHECK(!paceline_chain_load_file(path, NULL, NULL, &error));
    OK(paceline_error_read(error, &details));
    CHECK(details.status == PACELINE_STATUS_CHAIN && strcmp(details.file, path) == 0);
    CHECK(details.line == 2 && details.column == 1 && strstr(details.message, "unknown key `object`"));
    paceline_error_free(error);
    remove(path);
    free(folder);
    CHECK(paceline_chain_free(chain) == PACELINE_STATUS_OK);
}
