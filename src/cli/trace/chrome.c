/* Writes Chrome trace events, one record at a time. */
#include "cli/trace/chrome.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/trace/chrome_event.h"
#include "cli/trace/chrome_gpu.h"
#include "cli/trace/util.h"
#include "core/call.h"
#include "see/see.h"

#define EVENT_MAX (4u << 20)           /* bytes of one record's events */
#define STREAMS_PID UINT64_C(10000000) /* added to the process's own, which is below 2^22 */
#define GPUS_PID UINT64_C(20000000)    /* the same, for GPU 0 */

struct thread {
    uint64_t id;
    uint64_t open; /* ranges begun and not ended */
};

struct hed_chrome {
    struct hed_chrome_out out;
    const struct hed_trace *trace;
    uint64_t pid;
    struct hed_cli_map thread_map; /* id -> index + 1 */
    struct thread *threads;        /* owned */
    struct hed_chrome_tracks streams;
    struct hed_chrome_gpu gpu;
};

/* ---- tracks ---------------------------------------------------------------------------------- */

static struct thread *
find_thread(struct hed_chrome *c, uint64_t id)
{
    void *array = c->threads;
    bool fresh;
    char label[80];
    const size_t i = hed_cli_map_index(&c->thread_map, id, &array, sizeof(*c->threads), &fresh);

    c->threads = array;
    if (i == SIZE_MAX) {
        c->out.failed = true;
        return NULL;
    }
    if (fresh) {
        const char *name = hed_trace_thread_name(c->trace, id);

        c->threads[i].id = id;
        snprintf(label, sizeof(label), "%s %" PRIu64, name && *name ? name : "thread", id);
        hed_chrome_name(&c->out, "thread_name", c->pid, id, label);
    }
    return &c->threads[i];
}

/* The label and the key of a stream. In a call that was made by its per-thread name, handle 0 means
 * the thread's own default stream, as handle 2 always does.
 */
static uint64_t
stream_key(const struct hed_trace_facts *f, uint64_t thread, char *label, size_t size)
{
    const bool per_thread = f->stream == 2 || (f->stream == 0 && f->suffix[0]);

    if (per_thread)
        snprintf(label, size, "stream 0x2 (per-thread default of %" PRIu64 ")", thread);
    else
        snprintf(label, size, "stream 0x%" PRIx64 "%s", f->stream,
                 f->stream == 0   ? " (default)"
                 : f->stream == 1 ? " (legacy default)"
                                  : "");
    /* No handle is that large: user space ends below. */
    return per_thread ? thread | UINT64_C(1) << 63 : f->stream;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const char *
area_of(const struct hed_trace_record *r, const char *name)
{
    const struct hed_call_info *info = hed_cli_trace_info(r, name);

    return info ? info->area : "other";
}

/* The parts that a call's slices have in common. */
static void
add_slice(struct hed_chrome *c, const struct hed_trace_record *r, const struct hed_trace_facts *f,
          uint64_t duration)
{
    hed_chrome_us(&c->out, "ts", hed_cli_trace_time(c->trace, r->start));
    hed_chrome_us(&c->out, "dur", duration);
    hed_buf_addf(&c->out.event, ",\"cat\":\"%s\",\"name\":\"", area_of(r, f->name));
    hed_trace_print_name(c->trace, r, &c->out.event);
    hed_buf_addf(&c->out.event, "\"");
    if (hed_trace_is_error(c->trace, r))
        hed_buf_addf(&c->out.event, ",\"cname\":\"terrible\"");
}

static void
add_result(struct hed_chrome *c, const struct hed_trace_record *r)
{
    hed_buf_addf(&c->out.event, "\"%s\":\"", hed_trace_is_error(c->trace, r) ? "error" : "result");
    hed_trace_print_result(c->trace, r, &c->out.event);
    hed_buf_addf(&c->out.event, "\"");
}

/* The slice on the stream's track, and the arrow to it. */
static void
put_stream(struct hed_chrome *c, const struct hed_trace_record *r, const struct hed_trace_facts *f,
           uint64_t duration)
{
    const uint64_t pid = c->pid + STREAMS_PID;
    const uint64_t time = hed_cli_trace_time(c->trace, r->start);
    char label[96];
    const uint64_t key = stream_key(f, r->thread, label, sizeof(label));
    const uint64_t tid =
        hed_chrome_track(&c->out, &c->streams, pid, key, label, r->start, r->start + duration);

    hed_chrome_begin(&c->out, 'X', pid, tid);
    add_slice(c, r, f, duration);
    hed_buf_addf(&c->out.event, ",\"args\":{\"thread\":%" PRIu64 ",", r->thread);
    add_result(c, r);
    hed_buf_addf(&c->out.event, "}");
    hed_chrome_end(&c->out);
    hed_chrome_arrow(&c->out, "issue", (struct hed_chrome_point){c->pid, r->thread, time},
                     (struct hed_chrome_point){pid, tid, time});
}

static void
put_call(struct hed_chrome *c, const struct hed_trace_record *r)
{
    const uint64_t last = hed_trace_state(c->trace)->last;
    const struct hed_cli_caller *caused = hed_chrome_gpu_caused(&c->gpu, r);
    struct hed_trace_facts f;
    uint64_t duration = r->duration;

    /* Only a damaged file has a duration beyond the end. */
    if (duration > last)
        duration = last > r->start ? last - r->start : 0;
    hed_trace_facts(c->trace, r, &f);
    hed_chrome_begin(&c->out, 'X', c->pid, r->thread);
    add_slice(c, r, &f, duration);
    hed_buf_addf(&c->out.event, ",\"args\":{");
    add_result(c, r);
    if (r->calls > 1)
        hed_buf_addf(&c->out.event, ",\"calls\":%" PRIu32, r->calls);
    if (caused && caused->kernel_size) {
        hed_buf_addf(&c->out.event, ",\"kernel\":\"");
        hed_trace_add_readable(&c->out.event,
                               &(struct hed_trace_activity){.kind = HED_TRACE_KERNEL,
                                                            .name = caused->kernel,
                                                            .name_size = caused->kernel_size});
        hed_buf_addf(&c->out.event, "\"");
    }
    hed_buf_addf(&c->out.event, ",");

    /* The members of this object go into "args": its opening brace is removed, and its closing
     * brace closes "args". */
    const size_t at = c->out.event.size;

    hed_trace_json_args(c->trace, r, &c->out.event);
    if (!c->out.event.err)
        c->out.event.data[at] = ' ';
    hed_chrome_end(&c->out);
    /* Where the trace has the GPU's activity, that is shown instead. */
    if (f.has_stream && !caused)
        put_stream(c, r, &f, duration);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void
put_instant(struct hed_chrome *c, const struct hed_trace_record *r)
{
    char text[64];

    hed_chrome_begin(&c->out, 'i', c->pid, r->thread);
    hed_chrome_us(&c->out, "ts", hed_cli_trace_time(c->trace, r->start));
    hed_buf_addf(&c->out.event, ",\"s\":\"%c\",\"cat\":\"%s\"",
                 r->kind == HED_TRACE_DROPPED ? 'p' : 't', hed_trace_kind_name(r->kind));
    if (r->kind == HED_TRACE_DROPPED) {
        snprintf(text, sizeof(text), "%" PRIu64 " records dropped", hed_trace_dropped(r));
        hed_chrome_text(&c->out, "name", text, strlen(text));
    } else {
        hed_chrome_text(&c->out, "name", (const char *)r->body, r->body_size);
    }
    hed_chrome_end(&c->out);
}

static void
put_range(struct hed_chrome *c, const struct hed_trace_record *r, struct thread *t)
{
    const bool begins = r->kind == HED_TRACE_RANGE_BEGIN;

    if (!begins && t->open == 0)
        return; /* its beginning was dropped or lost */
    t->open += begins ? 1 : UINT64_MAX;
    hed_chrome_begin(&c->out, begins ? 'B' : 'E', c->pid, r->thread);
    hed_chrome_us(&c->out, "ts", hed_cli_trace_time(c->trace, r->start));
    if (begins) {
        hed_buf_addf(&c->out.event, ",\"cat\":\"range\"");
        hed_chrome_text(&c->out, "name", (const char *)r->body, r->body_size);
    }
    hed_chrome_end(&c->out);
}

bool
hed_chrome_put(struct hed_chrome *c, const struct hed_trace_record *r)
{
    if (r->kind == HED_TRACE_ACTIVITY) {
        hed_chrome_gpu_put(&c->gpu, &c->out, r);
        return hed_chrome_flush(&c->out);
    }

    struct thread *t = find_thread(c, r->thread);

    if (!t)
        return false;
    if (r->kind == HED_TRACE_CALL)
        put_call(c, r);
    else if (r->kind == HED_TRACE_RANGE_BEGIN || r->kind == HED_TRACE_RANGE_END)
        put_range(c, r, t);
    else if (r->kind == HED_TRACE_MARK || r->kind == HED_TRACE_CLIENT ||
             r->kind == HED_TRACE_DROPPED)
        put_instant(c, r);
    return hed_chrome_flush(&c->out);
}

struct hed_chrome *
hed_chrome_create(FILE *file, const struct hed_trace *t)
{
    static const char *const keys[] = {"heddle", "exe", "host", "arch", "chain", "clock_wall"};
    struct hed_chrome *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->out.file = file;
    c->trace = t;
    c->pid = hed_trace_info_u64(t, "pid") % STREAMS_PID;
    c->pid = c->pid ? c->pid : 1;
    hed_buf_init(&c->out.event, EVENT_MAX);
    if (!hed_chrome_gpu_init(&c->gpu, t, c->pid, c->pid + GPUS_PID)) {
        hed_chrome_free(c);
        return NULL;
    }

    const char *program = hed_cli_trace_program(t, &c->out.event);
    char *name = strdup(program);

    hed_buf_reset(&c->out.event);
    hed_buf_addf(&c->out.event, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":");
    hed_cli_json_text(&c->out.event, name);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        hed_buf_addf(&c->out.event, ",\"%s\":", keys[i]);
        hed_cli_json_text(&c->out.event, hed_trace_info(t, keys[i]));
    }
    hed_buf_addf(&c->out.event, "},\n\"traceEvents\":[");
    hed_chrome_name(&c->out, "process_name", c->pid, 0, name);
    hed_chrome_order(&c->out, c->pid, 0);
    hed_chrome_name(&c->out, "process_name", c->pid + STREAMS_PID, 0, "Streams (host issue time)");
    hed_chrome_order(&c->out, c->pid + STREAMS_PID, 1);
    hed_chrome_flush(&c->out);
    free(name);
    return c;
}

bool
hed_chrome_finish(struct hed_chrome *c)
{
    const uint64_t last = hed_trace_state(c->trace)->last;

    for (size_t i = 0; i < c->thread_map.count; i++) {
        for (; c->threads[i].open > 0 && !c->out.failed; c->threads[i].open--) {
            hed_chrome_begin(&c->out, 'E', c->pid, c->threads[i].id);
            hed_chrome_us(&c->out, "ts", hed_cli_trace_time(c->trace, last));
            hed_chrome_end(&c->out);
            hed_chrome_flush(&c->out);
        }
    }
    hed_buf_addf(&c->out.event, "\n]}\n");
    return hed_chrome_flush(&c->out);
}

void
hed_chrome_free(struct hed_chrome *c)
{
    if (!c)
        return;
    hed_buf_fini(&c->out.event);
    hed_cli_map_fini(&c->thread_map);
    hed_chrome_tracks_fini(&c->streams);
    hed_chrome_gpu_fini(&c->gpu);
    free(c->threads);
    free(c);
}
