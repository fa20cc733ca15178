/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Scenes of the campaign `doors` through the C library: reads names of files with scenes (languages.rs) from standard input, and prints a JSON
 * object for each packet, and an empty line at the end of a scene.
 *   cc door.c -o door $(pkg-config --cflags --libs paceline)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <paceline.h>

enum { MEMBERS = 2, MAPS = 64, LINE = 1 << 20, BYTES = 1 << 17 };

static struct paceline_error *error;

struct scene {
    struct paceline_collection *collections[MEMBERS];
    struct paceline_program *programs[MEMBERS];
    unsigned members;
    struct paceline_chain *chain;
    struct paceline_worker *worker;
    struct paceline_host *host;
    unsigned queue;
    int is_classifier, is_refused;
    /* The maps, by number, for the targets of redirects. */
    struct { uint32_t id; char *name; } maps[MAPS];
    unsigned map_count;
};

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, error ? paceline_error_message(error) : "no such thing");
    exit(1);
}

/* The library does not load what the command runs, such as a program whose tail calls lead to one that is not supported. */
static void refuse(struct scene *scene)
{
    scene->is_refused = 1;
    printf("{\"refused\":true}\n");
    paceline_error_free(error);
    error = NULL;
}

/* Loads an object, for each program anew, as commands do. */
static struct paceline_collection *load(struct scene *scene, const char *path)
{
    struct paceline_object *object = paceline_object_open(path, NULL, &error);
    struct paceline_collection *collection = object ? paceline_object_load(object, NULL, &error) : NULL;
    if (!collection) {
        refuse(scene);
        paceline_object_free(object);
        return NULL;
    }
    for (size_t i = 0; i < paceline_object_maps(object) && scene->map_count < MAPS; i++) {
        struct paceline_map_info info = { .size = sizeof info };
        if (paceline_object_map(object, i, &info, &error))
            fail("map");
        struct paceline_map *map = paceline_collection_map(collection, info.name, NULL);
        struct paceline_map_info made = { .size = sizeof made };
        /* One that cannot be created is none of the program's. */
        if (!map)
            continue;
        if (paceline_map_read_info(map, &made, &error))
            fail(info.name);
        scene->maps[scene->map_count].id = made.id;
        scene->maps[scene->map_count++].name = strdup(info.name);
        paceline_map_free(map);
    }
    paceline_object_free(object);
    return collection;
}

static void add_program(struct scene *scene, const char *path, const char *name)
{
    if (scene->members == MEMBERS)
        fail("members");
    struct paceline_collection *collection = load(scene, path);
    if (!collection)
        return;
    scene->collections[scene->members] = collection;
    scene->programs[scene->members] = paceline_collection_program(collection, name, &error);
    if (!scene->programs[scene->members++])
        refuse(scene);
}

static void set_element(struct scene *scene, const char *name, const char *key, const char *value)
{
    struct paceline_map *map = paceline_collection_map(scene->collections[0], name, &error);
    if (!map || paceline_map_update_json(map, key, value, 0, &error))
        fail(name);
    paceline_map_free(map);
}

/* The program, or the chain of both. */
static void build(struct scene *scene)
{
    if (scene->members < 2 || scene->worker)
        return;
    struct paceline_member members[MEMBERS] = { 0 };
    for (unsigned i = 0; i < scene->members; i++)
        members[i] = (struct paceline_member){ .size = sizeof members[i], .program = scene->programs[i] };
    scene->chain = paceline_chain_new(members, scene->members, PACELINE_ORDER_PRIORITY, &error);
    if (!scene->chain)
        fail("chain");
    scene->worker = paceline_chain_worker(scene->chain, 0, &error);
    if (!scene->worker)
        fail("worker");
}

static void print_target(struct scene *scene, const struct paceline_frame *frame)
{
    if (frame->redirect == PACELINE_REDIRECT_INTERFACE)
        printf("\"interface %u", frame->target);
    for (unsigned i = 0; frame->redirect == PACELINE_REDIRECT_MAP && i < scene->map_count; i++)
        if (scene->maps[i].id == frame->target)
            printf("\"%s[%u]", scene->maps[i].name, frame->key);
    if (frame->redirect_flags)
        printf(" with flags 0x%x", frame->redirect_flags);
    printf("\"");
}

static void print_context(struct scene *scene)
{
    const char *comma = "", *name;
    printf(",\"context\":{");
    for (size_t i = 0; (name = paceline_context_name(i)); i++) {
        uint64_t value;
        if (paceline_host_context(scene->host, name, &value, &error))
            fail(name);
        if (value) {
            printf("%s\"%s\":%" PRIu64, comma, name, value);
            comma = ",";
        }
    }
    printf("}");
}

static void run(struct scene *scene, uint64_t time_ns, uint32_t ingress, uint8_t *bytes, size_t length)
{
    static const char *const verdicts[] = { "aborted", "drop", "pass", "tx", "redirect" };
    struct paceline_packet packet = { .size = sizeof packet, .data = bytes, .length = length, .time_ns = time_ns,
                                      .ingress_ifindex = ingress, .rx_queue = scene->queue };
    struct paceline_frame frame = { .size = sizeof frame };
    if (!scene->worker) {
        enum paceline_status status = paceline_program_run(scene->programs[0], scene->host, &packet, &frame, &error);
        if (status == PACELINE_STATUS_FAULT) {
            paceline_error_free(error);
            printf("{\"verdict\":\"aborted\"}\n");
            return;
        }
        if (status)
            fail("run");
    } else {
        size_t count = 1;
        struct paceline_burst *burst = paceline_burst_new(1, &error);
        if (!burst || paceline_burst_push(burst, &packet, 1, &count, &error) ||
            paceline_worker_run_burst(scene->worker, burst, scene->host, &error) ||
            paceline_burst_frames(burst, &frame, 1, &count, &error))
            fail("run");
        paceline_burst_free(burst);
    }
    /* Those of a classifier are of type int. */
    int64_t returned = scene->is_classifier ? (int64_t)(int32_t)frame.return_value : (int64_t)(uint32_t)frame.return_value;
    printf("{\"verdict\":\"%s\",\"returns\":%" PRId64 ",\"length\":%zu", verdicts[frame.verdict], returned, frame.length);
    if (frame.verdict == PACELINE_VERDICT_REDIRECT && frame.redirect != PACELINE_REDIRECT_NONE) {
        printf(",\"redirect\":");
        print_target(scene, &frame);
    }
    if (scene->is_classifier)
        print_context(scene);
    printf(",\"data\":\"");
    for (size_t i = 0; i < frame.length; i++)
        printf("%02x", frame.data[i]);
    printf("\"}\n");
}

static void read_line(struct scene *scene, char *line)
{
    static uint8_t bytes[BYTES];
    char *word = strtok(line, "\t\n"), *a = strtok(NULL, "\t\n"), *b = strtok(NULL, "\t\n"), *c = strtok(NULL, "\t\n");
    if (!word || !a || scene->is_refused)
        return;
    uint64_t number = strtoull(a, NULL, 10);
    if (!strcmp(word, "program") && b) {
        add_program(scene, a, b);
    } else if (!strcmp(word, "classifier")) {
        scene->is_classifier = 1;
    } else if (!strcmp(word, "element") && c) {
        set_element(scene, a, b, c);
    } else if (!strcmp(word, "seed")) {
        if (paceline_host_seed(scene->host, number, &error))
            fail("seed");
    } else if (!strcmp(word, "queue")) {
        scene->queue = number;
    } else if (!strcmp(word, "context") && b) {
        if (paceline_host_set_context(scene->host, a, strtoull(b, NULL, 10), &error))
            fail(a);
    } else if (!strcmp(word, "packet") && c) {
        size_t length = strlen(c) / 2;
        for (size_t i = 0; i < length && i < sizeof bytes; i++)
            if (sscanf(c + 2 * i, "%2hhx", &bytes[i]) != 1)
                fail("packet");
        build(scene);
        run(scene, number, strtoul(b, NULL, 10), bytes, length);
    } else {
        fail(word);
    }
}

/* Programs see a receiver of events, as with commands. */
static void ignore(void *data, const struct paceline_event *event)
{
    (void)data, (void)event;
}

static void tell(const char *path)
{
    static char line[LINE];
    FILE *file = fopen(path, "r");
    struct scene scene = { 0 };
    scene.host = paceline_host_new(0, &error);
    if (!file || !scene.host || paceline_host_set_events(scene.host, ignore, NULL, &error) || paceline_host_set_time(scene.host, PACELINE_TIME_PACKETS, &error) ||
        paceline_host_set_trace(scene.host, NULL, NULL, &error))
        fail(path);
    while (fgets(line, sizeof line, file))
        read_line(&scene, line);
    fclose(file);
    paceline_worker_free(scene.worker);
    paceline_chain_free(scene.chain);
    paceline_host_free(scene.host);
    for (unsigned i = 0; i < scene.members; i++) {
        paceline_program_free(scene.programs[i]);
        paceline_collection_free(scene.collections[i]);
    }
    for (unsigned i = 0; i < scene.map_count; i++)
        free(scene.maps[i].name);
    printf("\n");
    fflush(stdout);
    if (paceline_live_handles())
        fail("a handle is left");
}

int main(void)
{
    static char path[4096];
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = 0;
        tell(path);
    }
    return 0;
}
