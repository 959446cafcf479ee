/* Writing Chrome trace events, one record at a time. */
#include "cli/trace_chrome.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/trace_util.h"
#include "trace/print.h"
#include "trace/read.h"

#define EVENT_MAX (4u << 20)           /* bytes of one record's events */
#define SPARE_LANES 8                  /* tracks a stream may need */
#define STREAMS_PID UINT64_C(10000000) /* added to the process's own, which is below 2^22 */

struct thread {
    uint64_t id;
    uint64_t open; /* ranges begun and not ended */
};

struct lane {
    uint64_t end[SPARE_LANES]; /* ns: when the last slice of the track ends */
    uint64_t tid[SPARE_LANES];
    unsigned count;
};

struct hed_chrome {
    FILE *file;
    const struct hed_trace *trace;
    uint64_t pid;
    bool any;    /* an event was written */
    bool failed; /* sticky */
    struct hed_buf event;
    struct hed_cli_map thread_map; /* id -> index + 1 */
    struct thread *threads;        /* owned */
    struct hed_cli_map lane_map;   /* stream -> index + 1 */
    struct lane *lanes;            /* owned */
    uint64_t next_tid;             /* of a stream's track */
    uint64_t next_flow;
};

/* ---- events ---------------------------------------------------------------------------------- */

/* Begins an event: everything that all have. */
static void
begin(struct hed_chrome *c, char phase, uint64_t pid, uint64_t tid)
{
    hed_buf_addf(&c->event, "%s\n{\"ph\":\"%c\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64,
                 c->any ? "," : "", phase, pid, tid);
    c->any = true;
}

static void
end(struct hed_chrome *c)
{
    hed_buf_addf(&c->event, "}");
}

static void
add_us(struct hed_chrome *c, const char *key, uint64_t ns)
{
    hed_buf_addf(&c->event, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void
add_text(struct hed_chrome *c, const char *key, const char *text, size_t n)
{
    hed_buf_addf(&c->event, ",");
    hed_str_field(&c->event, key, text, n);
}

/* Names a process or track: process_name, thread_name. */
static void
name_it(struct hed_chrome *c, const char *what, uint64_t pid, uint64_t tid, const char *name)
{
    begin(c, 'M', pid, tid);
    hed_buf_addf(&c->event, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    hed_cli_json_text(&c->event, name);
    hed_buf_addf(&c->event, "}");
    end(c);
}

static void
order_it(struct hed_chrome *c, uint64_t pid, unsigned index)
{
    begin(c, 'M', pid, 0);
    hed_buf_addf(&c->event, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%u}", index);
    end(c);
}

static bool
flush(struct hed_chrome *c)
{
    const size_t n = c->event.size;

    if (c->event.err || fwrite(hed_buf_cstr(&c->event), 1, n, c->file) != n)
        c->failed = true;
    hed_buf_reset(&c->event);
    return !c->failed;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

/* The index of a key in an array that grows with its map; SIZE_MAX without memory. *fresh: it is
 * new and cleared.
 */
static size_t
find(struct hed_cli_map *map, uint64_t key, void **array, size_t size, bool *fresh)
{
    const uint32_t known = hed_cli_map_get(map, key);
    const size_t n = map->count;

    *fresh = !known;
    if (known)
        return known - 1;
    if ((n & (n - 1)) == 0) {
        void *wide = reallocarray(*array, n ? n * 2 : 1, size);

        if (!wide)
            return SIZE_MAX;
        *array = wide;
    }
    memset((char *)*array + n * size, 0, size);
    return hed_cli_map_put(map, key, (uint32_t)n + 1) ? n : SIZE_MAX;
}

static struct thread *
find_thread(struct hed_chrome *c, uint64_t id)
{
    void *array = c->threads;
    bool fresh;
    char label[80];
    const size_t i = find(&c->thread_map, id, &array, sizeof(*c->threads), &fresh);

    c->threads = array;
    if (i == SIZE_MAX) {
        c->failed = true;
        return NULL;
    }
    if (fresh) {
        const char *name = hed_trace_thread_name(c->trace, id);

        c->threads[i].id = id;
        snprintf(label, sizeof(label), "%s %" PRIu64, name && *name ? name : "thread", id);
        name_it(c, "thread_name", c->pid, id, label);
    }
    return &c->threads[i];
}

/* What a stream is called, and what tells it from others. Handle 0 means another stream in a call
 * that was made by its per-thread name; that one, as handle 2, every thread has for itself.
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
    /* No handle is that high: user space ends below. */
    return per_thread ? thread | UINT64_C(1) << 63 : f->stream;
}

/* A track of the stream that is free from `start` on. */
static uint64_t
find_track(struct hed_chrome *c, const struct hed_trace_facts *f, uint64_t thread, uint64_t start,
           uint64_t until)
{
    void *array = c->lanes;
    bool fresh;
    char label[96];
    const uint64_t key = stream_key(f, thread, label, sizeof(label));
    const size_t i = find(&c->lane_map, key, &array, sizeof(*c->lanes), &fresh);
    unsigned n = 0;

    c->lanes = array;
    if (i == SIZE_MAX) {
        c->failed = true;
        return 0;
    }

    struct lane *l = &c->lanes[i];

    while (n < l->count && l->end[n] > start)
        n++;
    if (n == SPARE_LANES)
        n--; /* crowded: better a slice too wide than none */
    if (n == l->count) {
        const size_t used = strlen(label);

        l->tid[l->count++] = ++c->next_tid;
        if (n)
            snprintf(label + used, sizeof(label) - used, " #%u", n + 1);
        name_it(c, "thread_name", c->pid + STREAMS_PID, l->tid[n], label);
    }
    l->end[n] = until;
    return l->tid[n];
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const char *
area_of(const char *name)
{
    static const struct {
        const char *prefix;
        const char *area;
    } areas[] = {
        {"nvml", "nvml"},
        {"cuMemcpy", "copy"},
        {"cuMemset", "copy"},
        {"cuMem", "memory"},
        {"cuPointer", "memory"},
        {"cuLaunch", "launch"},
        {"cuStream", "stream"},
        {"cuEvent", "event"},
        {"cuModule", "module"},
        {"cuLibrary", "module"},
        {"cuLink", "module"},
        {"cuKernel", "module"},
        {"cuFunc", "module"},
        {"cuGraph", "graph"},
        {"cuUserObject", "graph"},
        {"cuCtx", "context"},
        {"cuDevicePrimaryCtx", "context"},
        {"cuGreenCtx", "context"},
        {"cuArray", "array"},
        {"cuMipmapped", "array"},
        {"cuTex", "array"},
        {"cuSurf", "array"},
        {"cuTensorMap", "array"},
        {"cuDevice", "device"},
        {"cuInit", "device"},
        {"cuDriver", "device"},
        {"cuGet", "device"},
    };

    for (size_t i = 0; name && i < sizeof(areas) / sizeof(areas[0]); i++) {
        if (strncmp(name, areas[i].prefix, strlen(areas[i].prefix)) == 0)
            return areas[i].area;
    }
    return "other";
}

/* The parts that a call's slices have in common. */
static void
add_slice(struct hed_chrome *c, const struct hed_trace_record *r, const struct hed_trace_facts *f,
          uint64_t duration)
{
    add_us(c, "ts", hed_cli_trace_time(c->trace, r->start));
    add_us(c, "dur", duration);
    hed_buf_addf(&c->event, ",\"cat\":\"%s\",\"name\":\"", area_of(f->name));
    hed_trace_print_name(c->trace, r, &c->event);
    hed_buf_addf(&c->event, "\"");
    if (hed_trace_is_error(c->trace, r))
        hed_buf_addf(&c->event, ",\"cname\":\"terrible\"");
}

static void
add_result(struct hed_chrome *c, const struct hed_trace_record *r)
{
    hed_buf_addf(&c->event, "\"%s\":\"", hed_trace_is_error(c->trace, r) ? "error" : "result");
    hed_trace_print_result(c->trace, r, &c->event);
    hed_buf_addf(&c->event, "\"");
}

/* The slice on the stream's track, and the arrow to it. */
static void
put_stream(struct hed_chrome *c, const struct hed_trace_record *r, const struct hed_trace_facts *f,
           uint64_t duration)
{
    const uint64_t pid = c->pid + STREAMS_PID;
    const uint64_t tid = find_track(c, f, r->thread, r->start, r->start + duration);
    const uint64_t time = hed_cli_trace_time(c->trace, r->start);

    begin(c, 'X', pid, tid);
    add_slice(c, r, f, duration);
    hed_buf_addf(&c->event, ",\"args\":{\"thread\":%" PRIu64 ",", r->thread);
    add_result(c, r);
    hed_buf_addf(&c->event, "}");
    end(c);
    c->next_flow++;
    for (int side = 0; side < 2; side++) {
        begin(c, side ? 'f' : 's', side ? pid : c->pid, side ? tid : r->thread);
        add_us(c, "ts", time);
        hed_buf_addf(&c->event, ",\"id\":%" PRIu64 ",\"cat\":\"issue\",\"name\":\"issue\"%s",
                     c->next_flow, side ? ",\"bp\":\"e\"" : "");
        end(c);
    }
}

static void
put_call(struct hed_chrome *c, const struct hed_trace_record *r)
{
    const uint64_t last = hed_trace_state(c->trace)->last;
    struct hed_trace_facts f;
    uint64_t duration = r->duration;

    /* What overflows is a file that lies. */
    if (duration > last)
        duration = last > r->start ? last - r->start : 0;
    hed_trace_facts(c->trace, r, &f);
    begin(c, 'X', c->pid, r->thread);
    add_slice(c, r, &f, duration);
    hed_buf_addf(&c->event, ",\"args\":{");
    add_result(c, r);
    hed_buf_addf(&c->event, ",");

    /* Its members become ours: the brace before them goes, the one after them closes "args". */
    const size_t at = c->event.size;

    hed_trace_json_args(c->trace, r, &c->event);
    if (!c->event.err)
        c->event.data[at] = ' ';
    end(c);
    if (f.has_stream)
        put_stream(c, r, &f, duration);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void
put_instant(struct hed_chrome *c, const struct hed_trace_record *r)
{
    char text[64];

    begin(c, 'i', c->pid, r->thread);
    add_us(c, "ts", hed_cli_trace_time(c->trace, r->start));
    hed_buf_addf(&c->event, ",\"s\":\"%c\",\"cat\":\"%s\"",
                 r->kind == HED_TRACE_DROPPED ? 'p' : 't', hed_trace_kind_name(r->kind));
    if (r->kind == HED_TRACE_DROPPED) {
        snprintf(text, sizeof(text), "%" PRIu64 " records dropped", hed_trace_dropped(r));
        add_text(c, "name", text, strlen(text));
    } else {
        add_text(c, "name", (const char *)r->body, r->body_size);
    }
    end(c);
}

static void
put_range(struct hed_chrome *c, const struct hed_trace_record *r, struct thread *t)
{
    const bool begins = r->kind == HED_TRACE_RANGE_BEGIN;

    if (!begins && t->open == 0)
        return; /* its begin was dropped or lost */
    t->open += begins ? 1 : UINT64_MAX;
    begin(c, begins ? 'B' : 'E', c->pid, r->thread);
    add_us(c, "ts", hed_cli_trace_time(c->trace, r->start));
    if (begins) {
        hed_buf_addf(&c->event, ",\"cat\":\"range\"");
        add_text(c, "name", (const char *)r->body, r->body_size);
    }
    end(c);
}

bool
hed_chrome_put(struct hed_chrome *c, const struct hed_trace_record *r)
{
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
    return flush(c);
}

struct hed_chrome *
hed_chrome_create(FILE *file, const struct hed_trace *t)
{
    static const char *const keys[] = {"heddle", "exe", "host", "arch", "chain", "clock_wall"};
    struct hed_chrome *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->file = file;
    c->trace = t;
    c->pid = hed_trace_info_u64(t, "pid") % STREAMS_PID;
    c->pid = c->pid ? c->pid : 1;
    hed_buf_init(&c->event, EVENT_MAX);

    const char *program = hed_cli_trace_program(t, &c->event);
    char *name = strdup(program);

    hed_buf_reset(&c->event);
    hed_buf_addf(&c->event, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":");
    hed_cli_json_text(&c->event, name);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        hed_buf_addf(&c->event, ",\"%s\":", keys[i]);
        hed_cli_json_text(&c->event, hed_trace_info(t, keys[i]));
    }
    hed_buf_addf(&c->event, "},\n\"traceEvents\":[");
    name_it(c, "process_name", c->pid, 0, name);
    order_it(c, c->pid, 0);
    name_it(c, "process_name", c->pid + STREAMS_PID, 0, "Streams (host issue time)");
    order_it(c, c->pid + STREAMS_PID, 1);
    flush(c);
    free(name);
    return c;
}

bool
hed_chrome_finish(struct hed_chrome *c)
{
    const uint64_t last = hed_trace_state(c->trace)->last;

    for (size_t i = 0; i < c->thread_map.count; i++) {
        for (; c->threads[i].open > 0 && !c->failed; c->threads[i].open--) {
            begin(c, 'E', c->pid, c->threads[i].id);
            add_us(c, "ts", hed_cli_trace_time(c->trace, last));
            end(c);
            flush(c);
        }
    }
    hed_buf_addf(&c->event, "\n]}\n");
    return flush(c);
}

void
hed_chrome_free(struct hed_chrome *c)
{
    if (!c)
        return;
    hed_buf_fini(&c->event);
    hed_cli_map_fini(&c->thread_map);
    hed_cli_map_fini(&c->lane_map);
    free(c->threads);
    free(c->lanes);
    free(c);
}
