/* GPU activity for `heddle trace summary`: kernels, copies, streams, ranges of the program, how
 * busy the GPU was, what the program did while it was not, and how long calls waited until their
 * work began there. gpu.c counts, gpu_print.c prints. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/trace/table.h"

struct hed_buf;
struct hed_trace;

struct hed_gpu_device {
    uint32_t device;
    uint64_t busy; /* ns during which anything ran */
    uint64_t kernels;
    uint64_t copies;
    uint64_t fills;
    uint64_t others;
};

/* The GPUs of one trace, by rising number. */
struct hed_gpu_devices {
    struct hed_gpu_device *list; /* owned */
    size_t count;
    uint64_t named; /* calls of which the trace has a kernel with its name and times */
};

/* All traces together. */
struct hed_gpu {
    struct hed_table kernels;
    struct hed_table streams; /* all that ran on each */
    struct hed_table ranges;  /* what calls inside the program's ranges have caused */
    struct hed_table copies;  /* and fills, by direction */
    struct hed_table idle;    /* cli/trace/idle.h */
    struct hed_table waits;   /* from the beginning of a call to that of its first activity */
    bool many;                /* several traces: streams are named with their process */
    bool full;                /* there was not enough memory to count everything */
};

/* Who has measured the times on the GPU: "executor", "cupti", or NULL if the trace has none. */
const char *hed_gpu_clock(const struct hed_trace *t);

/* Adds a trace. *devices becomes what its GPUs did; the caller gives it to hed_gpu_devices_fini. */
void hed_gpu_add(struct hed_gpu *g, const struct hed_trace *t, struct hed_gpu_devices *devices);
void hed_gpu_devices_fini(struct hed_gpu_devices *devices);

void hed_gpu_finish(struct hed_gpu *g, enum hed_table_sort sort);

/* Lines for the head of a trace's summary: how busy each GPU was in `duration` ns, where these
 * times are from, and of how many of the program's launches they are. */
void hed_gpu_print_devices(const struct hed_trace *t, const struct hed_gpu_devices *devices,
                           uint64_t duration, uint64_t launches);

/* Prints the tables, after finish; nothing if there was no GPU activity. */
void hed_gpu_print(const struct hed_gpu *g);

/* The same as members of a JSON object: `"gpus":[...]`, and `"kernels":[...],...`. */
void hed_gpu_json_devices(const struct hed_gpu_devices *devices, struct hed_buf *b);
void hed_gpu_json(const struct hed_gpu *g, FILE *out);

void hed_gpu_fini(struct hed_gpu *g);
