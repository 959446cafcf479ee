/* Calls as text and JSON: the request, then what came back. */
#include "see/trace/print.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/names.h"
#include "base/str.h"
#include "see/trace/activity.h"
#include "see/trace/read.h"
#include "see/trace/schema.h"
#include "see/trace/value.h"

#define ARGS_MAX 64 /* of a call: CUDA's longest list has about 20 */

static const struct hed_schema_call *
find_call(const struct hed_trace *t, const struct hed_trace_record *r)
{
    const struct hed_schema_call *c = hed_schema_call(hed_trace_schema(t, r->api), r->call);

    return r->kind == HED_TRACE_CALL && c && c->arg_count <= ARGS_MAX ? c : NULL;
}

/* ---- request and reply ----------------------------------------------------------------------- */

/* One argument of the request. Is it an output, or both, and did the caller give a place for it? */
static bool
put_request_arg(struct hed_value_out *o, const struct hed_schema_field *a, bool *first)
{
    const bool counted = a->dir == 'o' || a->dir == 'b';
    const uint8_t present = counted ? hed_get_u8(&o->dec) : 1;

    if (o->dec.err) {
        hed_value_name(o, first, a->name);
        hed_value_lament(o);
        return false;
    }
    if (!present) {
        hed_value_name(o, first, a->name);
        hed_value_raw(o, o->json ? "null" : "NULL");
        return false;
    }
    if (a->dir != 'o') {
        hed_value_name(o, first, a->name);
        hed_value_put(o, &a->type);
    }
    return counted;
}

/* The request; which outputs the caller gave a place for, a bit an argument. */
static uint64_t
put_request(struct hed_value_out *o, const struct hed_schema_call *c)
{
    uint64_t wanted = 0;
    bool first = true;

    for (uint32_t i = 0; i < c->arg_count && !o->dec.err; i++) {
        /* The last argument may be no argument but part of the name. */
        if (c->suffix && i == c->arg_count - 1)
            hed_get_u8(&o->dec);
        else if (put_request_arg(o, &c->args[i], &first))
            wanted |= UINT64_C(1) << i;
    }
    return wanted;
}

static void
put_reply(struct hed_value_out *o, const struct hed_schema_call *c, uint64_t wanted)
{
    bool first = true;

    for (uint32_t i = 0; i < c->arg_count && !o->dec.err; i++) {
        if (wanted & (UINT64_C(1) << i)) {
            hed_value_name(o, &first, c->args[i].name);
            hed_value_put(o, &c->args[i].type);
        }
    }
}

/* Takes back what was added since `start` if it did not all fit, and says so instead. */
static void
settle_facts(struct hed_buf *b, size_t start, const char *instead)
{
    if (b->err != HED_ELIMIT)
        return;
    b->err = 0;
    b->size = start;
    if (b->data)
        b->data[start] = '\0';
    hed_buf_add(b, instead, strlen(instead));
}

/* ---- calls ----------------------------------------------------------------------------------- */

void
hed_trace_facts(const struct hed_trace *t, const struct hed_trace_record *r,
                struct hed_trace_facts *facts)
{
    const struct hed_schema_call *c = find_call(t, r);
    struct hed_value_out o = hed_value_over(r->body, r->body_size, NULL, false);

    *facts = (struct hed_trace_facts){.suffix = ""};
    if (!c)
        return;
    facts->name = c->name;
    for (uint32_t i = 0; i < c->arg_count && !o.dec.err; i++) {
        bool first = true;

        if (c->suffix && i == c->arg_count - 1) {
            const uint8_t per_thread = hed_get_u8(&o.dec);

            facts->suffix = per_thread && !o.dec.err ? c->suffix : "";
        } else {
            put_request_arg(&o, &c->args[i], &first);
        }
    }
    facts->has_stream = o.has_stream;
    facts->stream = o.stream;
}

void
hed_trace_print_name(const struct hed_trace *t, const struct hed_trace_record *r, struct hed_buf *b)
{
    const struct hed_schema *s = hed_trace_schema(t, r->api);
    struct hed_trace_facts facts;

    hed_trace_facts(t, r, &facts);
    if (facts.name)
        hed_buf_addf(b, "%s%s", facts.name, facts.suffix);
    else if (s)
        hed_buf_addf(b, "%s#%u", s->api, r->call);
    else
        hed_buf_addf(b, "api%u#%u", r->api, r->call);
}

void
hed_trace_print_args(const struct hed_trace *t, const struct hed_trace_record *r, struct hed_buf *b)
{
    const struct hed_schema_call *c = find_call(t, r);
    struct hed_value_out o = hed_value_over(r->body, r->body_size, b, false);

    hed_trace_print_name(t, r, b);

    const size_t start = b->size;

    if (!c) {
        hed_buf_addf(b, "(<no schema>)");
        return;
    }
    hed_value_raw(&o, "(");

    const uint64_t set = put_request(&o, c) & hed_schema_set(c, r->result);

    hed_value_raw(&o, ")");
    if (set && !o.dec.err) {
        hed_value_raw(&o, " -> ");
        put_reply(&o, c, set);
    }
    settle_facts(b, start, "(<too long>)");
}

void
hed_trace_json_args(const struct hed_trace *t, const struct hed_trace_record *r, struct hed_buf *b)
{
    const struct hed_schema_call *c = find_call(t, r);
    struct hed_value_out o = hed_value_over(r->body, r->body_size, b, true);
    const size_t start = b->size;

    if (!c) {
        hed_buf_addf(b, "{\"cut\":true}");
        return;
    }
    hed_value_raw(&o, "{\"in\":{");

    const uint64_t set = put_request(&o, c) & hed_schema_set(c, r->result);

    hed_value_raw(&o, "}");
    if (set && !o.dec.err) {
        hed_value_raw(&o, ",\"out\":{");
        put_reply(&o, c, set);
        hed_value_raw(&o, "}");
    }
    hed_value_raw(&o, o.dec.err ? ",\"cut\":true}" : "}");
    settle_facts(b, start, "{\"cut\":true}");
}

static const struct hed_enum_value *
find_result(const struct hed_trace *t, const struct hed_trace_record *r)
{
    const struct hed_schema *s = hed_trace_schema(t, r->api);

    return s && s->result ? hed_enum_find(s->result, r->result) : NULL;
}

void
hed_trace_print_result(const struct hed_trace *t, const struct hed_trace_record *r,
                       struct hed_buf *b)
{
    const struct hed_enum_value *e = find_result(t, r);

    if (e)
        hed_buf_addf(b, "%s", e->name);
    else
        hed_buf_addf(b, "%" PRId32, r->result);
}

bool
hed_trace_is_error(const struct hed_trace *t, const struct hed_trace_record *r)
{
    if (r->kind != HED_TRACE_CALL || r->result == 0)
        return false;

    const struct hed_enum_value *e = find_result(t, r);

    return !e || strcmp(e->name, "CUDA_ERROR_NOT_READY") != 0;
}

/* ---- the other kinds ------------------------------------------------------------------------- */

const char *
hed_trace_kind_name(unsigned kind)
{
    switch (kind) {
    case HED_TRACE_CALL:
        return "call";
    case HED_TRACE_MARK:
        return "mark";
    case HED_TRACE_RANGE_BEGIN:
        return "begin";
    case HED_TRACE_RANGE_END:
        return "end";
    case HED_TRACE_CLIENT:
        return "client";
    case HED_TRACE_DROPPED:
        return "dropped";
    case HED_TRACE_ACTIVITY:
        return "activity";
    default:
        return "unknown";
    }
}

uint64_t
hed_trace_dropped(const struct hed_trace_record *r)
{
    uint64_t n = 0;

    if (r->kind == HED_TRACE_DROPPED && r->body_size >= sizeof(n))
        memcpy(&n, r->body, sizeof(n));
    return n;
}

void
hed_trace_print_other(const struct hed_trace_record *r, struct hed_buf *b)
{
    const size_t start = b->size;

    switch (r->kind) {
    case HED_TRACE_MARK:
    case HED_TRACE_RANGE_BEGIN:
    case HED_TRACE_CLIENT:
        hed_buf_addf(b, "%s \"",
                     r->kind == HED_TRACE_RANGE_BEGIN ? "range begins:"
                     : r->kind == HED_TRACE_MARK      ? "mark:"
                                                      : "client:");
        hed_str_escape(b, (const char *)r->body, r->body_size);
        hed_buf_addf(b, "\"");
        break;
    case HED_TRACE_RANGE_END:
        hed_buf_addf(b, "range ends");
        break;
    case HED_TRACE_DROPPED:
        hed_buf_addf(b, "%" PRIu64 " records were dropped here", hed_trace_dropped(r));
        break;
    case HED_TRACE_ACTIVITY:
        hed_trace_print_activity(r, b);
        break;
    default:
        hed_buf_addf(b, "record of unknown kind %u", r->kind);
    }
    settle_facts(b, start, "<too long>");
}
