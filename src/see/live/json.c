/* A view as JSON. What is not known is null. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "see/live/parts.h"

static void
put_number(struct hed_buf *b, const char *key, uint64_t value)
{
    hed_buf_addf(b, ",\"%s\":%" PRIu64, key, value);
}

static void
put_known(struct hed_buf *b, const char *key, bool known, uint64_t value)
{
    if (known)
        put_number(b, key, value);
    else
        hed_buf_addf(b, ",\"%s\":null", key);
}

/* < 0: not known. Nor is what a server says that no number can be. */
static void
put_real(struct hed_buf *b, const char *key, double value)
{
    if (value < 0 || !isfinite(value))
        hed_buf_addf(b, ",\"%s\":null", key);
    else
        hed_buf_addf(b, ",\"%s\":%.4f", key, value);
}

static void
put_bool(struct hed_buf *b, const char *key, bool value)
{
    hed_buf_addf(b, ",\"%s\":%s", key, value ? "true" : "false");
}

static void
put_gpu(const struct hed_live_gpu *g, size_t index, struct hed_buf *b)
{
    hed_buf_addf(b, "%s{\"index\":%zu,\"uuid\":\"", index ? "," : "", index);
    hed_sched_put_uuid(b, g->uuid);
    hed_buf_addf(b, "\"");
    hed_str_next_field(b, "scope", g->scope);
    hed_str_next_field(b, "user", g->user);
    hed_str_next_field(b, "policy", g->policy);
    put_bool(b, "paused", g->paused);
    put_number(b, "programs", g->programs);
    put_real(b, "busy_ratio", g->busy);
    put_known(b, "memory_bytes", g->counted, g->memory);
    hed_buf_addf(b, "}");
}

static void
put_server(const struct hed_live_server *s, size_t index, struct hed_buf *b)
{
    hed_buf_addf(b, "%s{\"index\":%zu", index ? "," : "", index);
    hed_str_next_field(b, "address", s->address);
    put_bool(b, "answers", !s->why[0]);
    hed_str_next_field(b, "problem", s->why);
    put_number(b, "pid", s->pid > 0 ? (uint64_t)s->pid : 0);
    hed_str_next_field(b, "gpu", s->gpu);
    put_real(b, "uptime_seconds", s->uptime);
    put_number(b, "clients", s->clients);
    put_number(b, "clients_ever", s->clients_ever);
    put_number(b, "refused", s->refused);
    put_bool(b, "stopping", s->stopping);
    hed_buf_addf(b, "}");
}

static void
put_row(const struct hed_live_row *r, bool first, struct hed_buf *b)
{
    hed_buf_addf(b, "%s{\"%s\":%zu", first ? "" : ",", r->is_client ? "server" : "gpu", r->where);
    put_known(b, "pid", r->pid > 0, (uint64_t)r->pid);
    hed_str_next_field(b, "user", r->user);
    hed_str_next_field(b, "name", r->name);
    hed_str_next_field(b, "group", r->group);
    hed_str_next_field(b, "from", r->from);
    hed_str_next_field(b, "command", r->command);
    hed_str_next_field(b, "state", hed_live_state_name(r->state));
    if (r->is_client) {
        hed_buf_addf(b, ",\"priority\":null,\"share\":null");
    } else {
        hed_str_next_field(b, "priority", hed_sched_priority_name(r->priority));
        put_number(b, "share", r->share);
    }
    put_real(b, "busy_ratio", r->busy);
    put_real(b, "wait_ratio", r->wait);
    put_real(b, "wait_p99_seconds", r->p99 ? (double)r->p99 / HED_NS_PER_S : -1);
    put_real(b, "launches_per_second", r->rate);
    put_number(b, "launches", r->calls);
    put_real(b, "gpu_seconds", r->is_client ? -1 : (double)r->used / HED_NS_PER_S);
    put_real(b, "waited_seconds", r->is_client ? -1 : (double)r->waited / HED_NS_PER_S);
    put_known(b, "memory_bytes", r->memory_known, r->memory);
    put_known(b, "memory_limit_bytes", r->memory_limit, r->memory_limit);
    hed_buf_addf(b, "}");
}

void
hed_live_json(const struct hed_live_view *v, struct hed_buf *out)
{
    hed_buf_addf(out, "{\"time\":%.3f", (double)v->wall / HED_NS_PER_S);
    put_real(out, "interval_seconds", v->seconds > 0 ? v->seconds : -1);
    hed_str_next_field(out, "problem", v->problem.text);
    hed_buf_addf(out, ",\"gpus\":[");
    for (size_t i = 0; i < v->gpu_count; i++)
        put_gpu(&v->gpus[i], i, out);
    hed_buf_addf(out, "],\"servers\":[");
    for (size_t i = 0; i < v->server_count; i++)
        put_server(&v->servers[i], i, out);
    hed_buf_addf(out, "],\"programs\":[");
    for (size_t i = 0; i < v->row_count; i++)
        put_row(&v->rows[i], i == 0, out);
    hed_buf_addf(out, "]}");
}
