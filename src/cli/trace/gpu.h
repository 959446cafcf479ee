/* GPU activity for `heddle trace summary`: kernels, copies, how busy the GPU was, and how long
 * calls waited until their work began there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
};

/* All traces together. */
struct hed_gpu {
    struct hed_table kernels;
    struct hed_table copies; /* and fills, by direction */
    struct hed_table waits;  /* from the beginning of a call to that of its first activity */
    bool full;               /* there was not enough memory to count everything */
};

/* Adds a trace. *devices becomes what its GPUs did; the caller gives it to hed_gpu_devices_fini. */
void hed_gpu_add(struct hed_gpu *g, const struct hed_trace *t, struct hed_gpu_devices *devices);
void hed_gpu_devices_fini(struct hed_gpu_devices *devices);

/* Lines for the head of a trace's summary: how busy each GPU was in `duration` ns. */
void hed_gpu_print_devices(const struct hed_gpu_devices *devices, uint64_t duration);

/* Prints the tables, after finish; nothing if there was no GPU activity. */
void hed_gpu_finish(struct hed_gpu *g, enum hed_table_sort sort);
void hed_gpu_print(const struct hed_gpu *g);

/* The same as members of a JSON object: `"gpus":[...]`, and `"kernels":[...],...`. */
void hed_gpu_json_devices(const struct hed_gpu_devices *devices, struct hed_buf *b);
void hed_gpu_print_json(const struct hed_gpu *g);

void hed_gpu_fini(struct hed_gpu *g);
