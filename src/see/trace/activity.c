/* GPU activity: into records, out of them, and as text. */
#include "see/trace/activity.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/demangle.h"
#include "base/pack.h"
#include "base/str.h"
#include "see/trace/format.h"
#include "see/trace/read.h"
#include "see/trace/write.h"

/* ---- writing --------------------------------------------------------------------------------- */

static void
put_kernel_shape(struct hed_enc *e, const struct hed_trace_activity *a)
{
    for (int i = 0; i < 3; i++)
        hed_put_u32(e, a->grid[i]);
    for (int i = 0; i < 3; i++)
        hed_put_u32(e, a->block[i]);
    hed_put_u32(e, a->static_shared);
    hed_put_u32(e, a->dynamic_shared);
    hed_put_u32(e, a->registers);
}

void
hed_trace_put_activity(struct hed_trace_writer *w, const struct hed_trace_activity *a)
{
    const size_t size = a->name && !a->name_size ? strlen(a->name) : a->name_size;
    struct hed_trace_put put;
    struct hed_enc *e = hed_trace_begin(w, &put);

    if (!e)
        return;
    e->max_text = HED_TRACE_NAME_MAX;
    hed_put_u64(e, a->correlation);
    hed_put_u32(e, a->device);
    hed_put_u32(e, a->context);
    hed_put_u32(e, a->stream);
    hed_put_textbuf(e, a->name, size);
    if (a->kind == HED_TRACE_KERNEL) {
        put_kernel_shape(e, a);
    } else if (a->kind == HED_TRACE_COPY || a->kind == HED_TRACE_FILL) {
        hed_put_u64(e, a->bytes);
        hed_put_u8(e, a->from);
        hed_put_u8(e, a->to);
    }
    hed_trace_end(w, &put,
                  &(struct hed_trace_head){
                      .kind = HED_TRACE_ACTIVITY,
                      .call = a->kind,
                      .start = a->start,
                      .duration = a->end > a->start ? a->end - a->start : 0,
                  });
}

/* ---- reading --------------------------------------------------------------------------------- */

static void
get_name(struct hed_dec *d, struct hed_trace_activity *a)
{
    const uint32_t length = hed_get_u32(d);
    const uint32_t stored = hed_get_u32(d);

    const uint8_t *name = hed_get_span(d, stored);

    if (!name || length == HED_PACK_NULL32)
        return; /* whatever is stored, there is no name */
    a->name = (const char *)name;
    a->name_size = stored;
}

static void
get_kernel(struct hed_dec *d, struct hed_trace_activity *a)
{
    for (int i = 0; i < 3; i++)
        a->grid[i] = hed_get_u32(d);
    for (int i = 0; i < 3; i++)
        a->block[i] = hed_get_u32(d);
    a->static_shared = hed_get_u32(d);
    a->dynamic_shared = hed_get_u32(d);
    a->registers = hed_get_u32(d);
}

bool
hed_trace_get_activity(const struct hed_trace_record *r, struct hed_trace_activity *a)
{
    struct hed_dec d = hed_dec_over(r->body, r->body_size, NULL);

    if (r->kind != HED_TRACE_ACTIVITY || (r->flags & HED_TRACE_CUT))
        return false;
    *a = (struct hed_trace_activity){.kind = r->call, .start = r->start};
    /* A file may hold any numbers: an end that wraps is none. */
    if (__builtin_add_overflow(r->start, r->duration, &a->end))
        a->end = r->start;
    a->correlation = hed_get_u64(&d);
    a->device = hed_get_u32(&d);
    a->context = hed_get_u32(&d);
    a->stream = hed_get_u32(&d);
    get_name(&d, a);
    if (a->kind == HED_TRACE_KERNEL) {
        get_kernel(&d, a);
    } else if (a->kind == HED_TRACE_COPY || a->kind == HED_TRACE_FILL) {
        a->bytes = hed_get_u64(&d);
        a->from = hed_get_u8(&d);
        a->to = hed_get_u8(&d);
    }
    return d.err == 0;
}

const char *
hed_trace_activity_name(unsigned kind)
{
    static const char *const names[] = {
        [HED_TRACE_KERNEL] = "kernel",
        [HED_TRACE_COPY] = "copy",
        [HED_TRACE_FILL] = "fill",
        [HED_TRACE_OTHER] = "other",
    };

    return kind < sizeof(names) / sizeof(names[0]) && names[kind] ? names[kind] : "unknown";
}

const char *
hed_trace_memory_name(unsigned memory)
{
    static const char *const names[] = {
        [HED_TRACE_MEMORY_UNKNOWN] = "memory", [HED_TRACE_MEMORY_HOST] = "host",
        [HED_TRACE_MEMORY_PINNED] = "pinned",  [HED_TRACE_MEMORY_DEVICE] = "device",
        [HED_TRACE_MEMORY_ARRAY] = "array",    [HED_TRACE_MEMORY_MANAGED] = "managed",
        [HED_TRACE_MEMORY_PEER] = "peer",
    };

    return memory < sizeof(names) / sizeof(names[0]) ? names[memory] : "memory";
}

/* ---- text and JSON --------------------------------------------------------------------------- */

static void
print_kernel(const struct hed_trace_activity *a, struct hed_buf *b)
{
    const uint32_t *g = a->grid;
    const uint32_t *t = a->block;

    hed_buf_addf(b, " grid %" PRIu32 "x%" PRIu32 "x%" PRIu32, g[0], g[1], g[2]);
    hed_buf_addf(b, " block %" PRIu32 "x%" PRIu32 "x%" PRIu32, t[0], t[1], t[2]);
    if (a->static_shared || a->dynamic_shared)
        hed_buf_addf(b, " shared %" PRIu32 "+%" PRIu32, a->static_shared, a->dynamic_shared);
    if (a->registers)
        hed_buf_addf(b, " registers %" PRIu32, a->registers);
}

void
hed_trace_add_readable(struct hed_buf *b, const struct hed_trace_activity *a)
{
    char name[HED_TRACE_NAME_MAX + 1], room[HED_TRACE_NAME_MAX + 1];
    const char *text;

    if (a->kind != HED_TRACE_KERNEL || a->name_size > HED_TRACE_NAME_MAX) {
        hed_str_escape(b, a->name, a->name_size);
        return;
    }
    memcpy(name, a->name, a->name_size);
    name[a->name_size] = '\0';
    text = strlen(name) == a->name_size ? hed_demangle(name, room, sizeof room) : name;
    if (text == name)
        hed_str_escape(b, a->name, a->name_size);
    else
        hed_str_escape(b, text, strlen(text));
}

void
hed_trace_print_activity(const struct hed_trace_record *r, struct hed_buf *b)
{
    struct hed_trace_activity a;

    hed_buf_addf(b, "%s", hed_trace_activity_name(r->call));
    if (!hed_trace_get_activity(r, &a)) {
        hed_buf_addf(b, " <cut>");
        return;
    }
    if (a.name_size) {
        hed_buf_addf(b, " ");
        hed_trace_add_readable(b, &a);
    }
    if (a.kind == HED_TRACE_KERNEL)
        print_kernel(&a, b);
    else if (a.kind == HED_TRACE_COPY)
        hed_buf_addf(b, " %s to %s", hed_trace_memory_name(a.from), hed_trace_memory_name(a.to));
    else if (a.kind == HED_TRACE_FILL)
        hed_buf_addf(b, " of %s", hed_trace_memory_name(a.to));
    if (a.kind == HED_TRACE_COPY || a.kind == HED_TRACE_FILL)
        hed_buf_addf(b, ", %" PRIu64 " bytes", a.bytes);
}

void
hed_trace_json_activity(const struct hed_trace_record *r, struct hed_buf *b)
{
    struct hed_trace_activity a;

    if (!hed_trace_get_activity(r, &a))
        return;
    hed_buf_addf(b,
                 "\"device\":%" PRIu32 ",\"context\":%" PRIu32 ",\"stream\":%" PRIu32
                 ",\"correlation\":%" PRIu64,
                 a.device, a.context, a.stream, a.correlation);
    if (a.kind == HED_TRACE_KERNEL) {
        hed_buf_addf(b, ",\"grid\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", a.grid[0], a.grid[1],
                     a.grid[2]);
        hed_buf_addf(b, ",\"block\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", a.block[0], a.block[1],
                     a.block[2]);
        hed_buf_addf(b,
                     ",\"static_shared\":%" PRIu32 ",\"dynamic_shared\":%" PRIu32
                     ",\"registers\":%" PRIu32,
                     a.static_shared, a.dynamic_shared, a.registers);
    } else if (a.kind == HED_TRACE_COPY) {
        hed_buf_addf(b, ",\"bytes\":%" PRIu64 ",\"from\":\"%s\",\"to\":\"%s\"", a.bytes,
                     hed_trace_memory_name(a.from), hed_trace_memory_name(a.to));
    } else if (a.kind == HED_TRACE_FILL) {
        hed_buf_addf(b, ",\"bytes\":%" PRIu64 ",\"to\":\"%s\"", a.bytes,
                     hed_trace_memory_name(a.to));
    }
}
