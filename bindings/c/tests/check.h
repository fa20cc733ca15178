/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of the test in C have in common. */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>

#include "paceline.h"

extern const char *examples;
/* The error of the last call, told and freed. */
extern struct paceline_error *error;
extern const uint8_t ethernet[60];

#define CHECK(condition) check((condition) != 0, #condition, __func__, __LINE__)
#define OK(call) ok((call), #call, __LINE__)
#define HANDLE(call) handle((call), #call, __LINE__)
#define STRUCT(type, ...) ((struct type){ .size = sizeof(struct type), ##__VA_ARGS__ })

void check(int holds, const char *what, const char *where, int line);
void ok(enum paceline_status status, const char *what, int line);
void *handle(void *handle, const char *what, int line);
/* Whether a call fails with a status and a message; and at an index. */
int fails(enum paceline_status wanted, const char *message);
int fails_at(uint64_t index, enum paceline_status wanted, const char *message);
struct paceline_collection *load(const char *name, uint32_t cpus);

/* The tests of chains.c. */
void chains_by_edges(void);
void chain_files(void);

#endif
