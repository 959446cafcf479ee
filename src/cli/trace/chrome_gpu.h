/* GPU activity as Chrome trace events: a process for each GPU, a track for each stream, and an
 * arrow from each call to the activity that it caused. For chrome.c. */
#pragma once

#include "cli/trace/chrome_event.h"
#include "cli/trace/link.h"

struct hed_trace;
struct hed_trace_record;

struct hed_chrome_gpu {
    const struct hed_trace *trace;
    uint64_t host;              /* pid of the calls */
    uint64_t base;              /* pid of GPU 0 */
    struct hed_cli_links links; /* calls and activity */
    struct hed_cli_contexts contexts;
    struct hed_chrome_tracks tracks;
};

/* False if there is no memory. *g must be given to fini in either case. */
bool hed_chrome_gpu_init(struct hed_chrome_gpu *g, const struct hed_trace *t, uint64_t host,
                         uint64_t base);

/* Writes one record of activity. */
void hed_chrome_gpu_put(struct hed_chrome_gpu *g, struct hed_chrome_out *o,
                        const struct hed_trace_record *r);

/* What this call caused on the GPU; NULL if that is not in the trace. */
const struct hed_cli_caller *hed_chrome_gpu_caused(const struct hed_chrome_gpu *g,
                                                   const struct hed_trace_record *call);

void hed_chrome_gpu_fini(struct hed_chrome_gpu *g);
