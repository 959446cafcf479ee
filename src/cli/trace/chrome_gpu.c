/* GPU activity as Chrome trace events. */
#include "cli/trace/chrome_gpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "see/see.h"

#define DEVICES_MAX 1000000u /* numbers of processes that are ours; only a broken file has more */

static uint64_t
pid_of(const struct hed_chrome_gpu *g, uint32_t device)
{
    return g->base + device % DEVICES_MAX;
}

/* Makes a process for a GPU. */
static void
name_device(const struct hed_chrome_gpu *g, struct hed_chrome_out *o, uint32_t device)
{
    char name[32];

    snprintf(name, sizeof(name), "GPU %" PRIu32, device);
    hed_chrome_name(o, "process_name", pid_of(g, device), 0, name);
    hed_chrome_order(o, pid_of(g, device), 2 + device % DEVICES_MAX);
}

static uint64_t
find_track(struct hed_chrome_gpu *g, struct hed_chrome_out *o, const struct hed_trace_activity *a)
{
    const bool is_new = !hed_cli_map_get(&g->contexts.devices, a->device);
    bool first = false;
    const uint32_t context = hed_cli_context(&g->contexts, a, &first);
    char label[64];

    if (!context) {
        o->failed = true;
        return 0;
    }
    if (is_new)
        name_device(g, o, a->device);
    if (first)
        snprintf(label, sizeof(label), "stream %" PRIu32, a->stream);
    else
        snprintf(label, sizeof(label), "stream %" PRIu32 " of context %" PRIu32, a->stream,
                 a->context);
    return hed_chrome_track(o, &g->tracks, pid_of(g, a->device),
                            (uint64_t)context << 32 | a->stream, label, a->start, a->end);
}

static void
put_slice(const struct hed_chrome_gpu *g, struct hed_chrome_out *o, uint64_t tid,
          const struct hed_trace_record *r, const struct hed_trace_activity *a)
{
    const char *kind = hed_trace_activity_name(a->kind);
    char name[64];

    snprintf(name, sizeof(name), "%s", kind);
    if (a->kind == HED_TRACE_COPY)
        snprintf(name, sizeof(name), "copy %s to %s", hed_trace_memory_name(a->from),
                 hed_trace_memory_name(a->to));
    hed_chrome_begin(o, 'X', pid_of(g, a->device), tid);
    hed_chrome_us(o, "ts", hed_cli_trace_time(g->trace, a->start));
    hed_chrome_us(o, "dur", a->end - a->start);
    hed_buf_addf(&o->event, ",\"cat\":\"%s\"", kind);
    if (a->name_size) {
        hed_buf_addf(&o->event, ",\"name\":\"");
        hed_trace_add_readable(&o->event, a);
        hed_buf_addf(&o->event, "\"");
    } else
        hed_chrome_text(o, "name", name, strlen(name));
    hed_buf_addf(&o->event, ",\"args\":{");
    if (a->kind == HED_TRACE_KERNEL && a->name_size) {
        hed_str_field(&o->event, "symbol", a->name, a->name_size);
        hed_buf_addf(&o->event, ",");
    }
    hed_trace_json_activity(r, &o->event);
    hed_buf_addf(&o->event, "}");
    hed_chrome_end(o);
}

/* The arrow begins just inside the call, where the thread has no other slice. It never goes back in
 * time, because the clocks of a GPU and its host can differ a little. */
static void
put_arrow(const struct hed_chrome_gpu *g, struct hed_chrome_out *o, uint64_t tid,
          const struct hed_trace_activity *a)
{
    const struct hed_cli_caller *c = hed_cli_links_find(&g->links, a->correlation);

    if (!c)
        return;

    const uint64_t from = c->start + (c->duration > 1);
    const uint64_t to = a->start > from ? a->start : from;

    if (to > a->end)
        return;
    hed_chrome_arrow(
        o, "gpu", (struct hed_chrome_point){g->host, c->thread, hed_cli_trace_time(g->trace, from)},
        (struct hed_chrome_point){pid_of(g, a->device), tid, hed_cli_trace_time(g->trace, to)});
}

bool
hed_chrome_gpu_init(struct hed_chrome_gpu *g, const struct hed_trace *t, uint64_t host,
                    uint64_t base)
{
    g->trace = t;
    g->host = host;
    g->base = base;
    return hed_cli_links_make(&g->links, t);
}

void
hed_chrome_gpu_put(struct hed_chrome_gpu *g, struct hed_chrome_out *o,
                   const struct hed_trace_record *r)
{
    struct hed_trace_activity a;

    if (!hed_trace_get_activity(r, &a))
        return;

    const uint64_t tid = find_track(g, o, &a);

    if (o->failed)
        return;
    put_slice(g, o, tid, r, &a);
    put_arrow(g, o, tid, &a);
}

const struct hed_cli_caller *
hed_chrome_gpu_caused(const struct hed_chrome_gpu *g, const struct hed_trace_record *call)
{
    return hed_cli_links_find(&g->links, call->correlation);
}

void
hed_chrome_gpu_fini(struct hed_chrome_gpu *g)
{
    hed_cli_links_fini(&g->links);
    hed_cli_contexts_fini(&g->contexts);
    hed_chrome_tracks_fini(&g->tracks);
}
