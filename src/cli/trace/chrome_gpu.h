/* GPU activity as Chrome trace events: a process a GPU, a track a stream, and an arrow from the
 * call to what it caused. For trace_chrome.c. */
#pragma once

#include "cli/trace/chrome_event.h"
#include "cli/trace/link.h"

struct hed_trace;
struct hed_trace_record;

struct hed_chrome_gpu {
    const struct hed_trace *trace;
    uint64_t host;               /* pid of the calls */
    uint64_t base;               /* pid of GPU 0 */
    struct hed_cli_links links;  /* calls and activity */
    struct hed_cli_map contexts; /* device and context -> place + 1 */
    struct hed_cli_map devices;  /* device -> the value of its first context */
    struct hed_chrome_lanes lanes;
};

/* False if there is no memory; *g is to be given to fini in any case. */
bool hed_chrome_gpu_init(struct hed_chrome_gpu *g, const struct hed_trace *t, uint64_t host,
                         uint64_t base);

/* One record of activity. */
void hed_chrome_gpu_put(struct hed_chrome_gpu *g, struct hed_chrome_out *o,
                        const struct hed_trace_record *r);

/* Did this call cause something that will be, or was, put? */
bool hed_chrome_gpu_caused(const struct hed_chrome_gpu *g, const struct hed_trace_record *call);

void hed_chrome_gpu_fini(struct hed_chrome_gpu *g);
