/* What `heddle trace summary` counts, for it, for `heddle trace diff` and for the tables of a page.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "cli/trace/gpu.h"
#include "cli/trace/table.h"

struct hed_trace;

/* All traces together. */
struct hed_count {
    struct hed_table calls;
    struct hed_gpu gpu;
    struct hed_buf text; /* scratch */
    struct hed_buf json; /* one object for each trace */
    bool by_thread;
    bool full; /* there were more lines than are kept */
    bool many; /* there will be several traces */
};

/* One trace. */
struct hed_count_totals {
    uint64_t calls;
    uint64_t errors;
    uint64_t launches; /* calls that launched kernels or graphs, and did not fail */
    struct hed_gpu_devices gpus;
};

void hed_count_init(struct hed_count *s);

/* Counts a trace. The caller gives *totals to hed_gpu_devices_fini(&totals->gpus). */
void hed_count_add(struct hed_count *s, const struct hed_trace *t, struct hed_count_totals *totals);

/* Adds what a summary says of one trace to `json`. */
void hed_count_describe(struct hed_count *s, const char *path, const struct hed_trace *t,
                        const struct hed_count_totals *n);

/* Sorts the tables. Nothing can be added afterwards. */
void hed_count_finish(struct hed_count *s, enum hed_table_sort sort);

/* Writes everything as one JSON object. */
void hed_count_json(const struct hed_count *s, FILE *out);

void hed_count_fini(struct hed_count *s);
