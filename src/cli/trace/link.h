/* Which call caused which GPU activity, by the correlation ids in a trace, and in which of the
 * program's ranges the call was made. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/trace/range.h"
#include "cli/trace/util.h"

struct hed_trace;

/* A call that caused activity, and the activity that it caused. */
struct hed_cli_caller {
    uint64_t correlation;
    uint64_t first;       /* ns: when the first of its activity began */
    const char *kernel;   /* the name of its first kernel, in the trace; NULL: none */
    uint32_t kernel_size; /* bytes of the name */
    uint32_t kernels;     /* how many it caused */
    uint64_t kernel_time; /* ns: of all of them */
    bool found;           /* there is a record of the call: */
    uint8_t api;
    uint16_t call;
    uint64_t thread;
    uint64_t start;    /* ns */
    uint64_t duration; /* ns */
    uint32_t range;    /* in `ranges`; 0: none */
};

struct hed_cli_links {
    struct hed_cli_map map;         /* correlation -> index in callers + 1 */
    struct hed_cli_caller *callers; /* owned */
    size_t count;
    struct hed_ranges ranges;
};

/* Reads the trace. False if there is no memory. *l must be given to fini in either case. */
bool hed_cli_links_make(struct hed_cli_links *l, const struct hed_trace *t);

/* The call of a correlation id; NULL if the trace does not have it. */
const struct hed_cli_caller *hed_cli_links_find(const struct hed_cli_links *l,
                                                uint64_t correlation);

void hed_cli_links_fini(struct hed_cli_links *l);
