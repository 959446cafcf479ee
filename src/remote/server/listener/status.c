/* The answer to `heddle serve --status`: one JSON object. Keys are only ever added; heddle-serve(1)
 * lists them. Workers write the numbers and texts of their status, so they are not trusted.
 */
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "remote/server/listener/listener.h"
#include "remote/server/status.h"
#include "remote/wire/link/link.h"

static void
put_text(struct hed_buf *b, const char *key, const char *value, size_t size)
{
    hed_str_field(b, key, value, strnlen(value, size));
}

static void
put_number(struct hed_buf *b, const char *key, uint64_t value)
{
    hed_buf_addf(b, ",\"%s\":%llu", key, (unsigned long long)value);
}

static double
seconds_of(uint64_t ns)
{
    return (double)ns / (double)HED_NS_PER_S;
}

static void
put_addresses(const struct hed_server *s, struct hed_buf *b)
{
    char text[HED_ADDRESS_TEXT];

    hed_buf_addf(b, ",\"addresses\":[");
    for (uint32_t i = 0; i < s->listener_count; i++) {
        hed_address_text(&s->listeners[i].address, text, sizeof text);
        hed_buf_addf(b, "%s\"", i ? "," : "");
        hed_str_escape(b, text, strlen(text));
        hed_buf_addf(b, "\"");
    }
    hed_buf_addf(b, "]");
}

static void
put_limits(const struct hed_server *s, struct hed_buf *b)
{
    const struct hed_server_options *o = s->options;

    hed_buf_addf(b, ",\"limits\":{\"clients\":%u", o->clients);
    put_number(b, "channels", o->channels);
    put_number(b, "spare", o->spare);
    put_number(b, "rate", o->rate);
    put_number(b, "per_source", o->per_source);
    put_number(b, "startups", o->startups);
    put_number(b, "memory", o->memory);
    put_number(b, "host_memory", o->host_memory);
    put_number(b, "total_memory", o->total_memory);
    put_number(b, "worker_memory", s->sandbox.memory);
    put_number(b, "worker_cpus", o->worker_cpus);
    put_number(b, "idle_seconds", o->idle_ms / 1000);
    put_number(b, "session_seconds", o->session_ms / 1000);
    put_number(b, "kernel_seconds", o->kernel_ms / 1000);
    put_number(b, "compile_seconds", o->compile_ms / 1000);
    put_number(b, "guest_seconds", o->guest_ms / 1000);
    put_number(b, "park_seconds", o->park_ms / 1000);
    hed_buf_addf(b, "}");
}

/* Devices become known shortly after the start. */
static void
put_devices(const struct hed_server *s, struct hed_buf *b)
{
    bool first = true;

    hed_buf_addf(b, ",\"devices\":[");
    for (int i = 0; i < HED_LEASE_SOCKET_DEVICES; i++) {
        const uint64_t total = s->ledger.total[i];
        const uint64_t leased = hed_ledger_leased(&s->ledger, i);

        if (total == 0 && leased == 0)
            continue;
        hed_buf_addf(b, "%s{\"index\":%d", first ? "" : ",", i);
        put_number(b, "total_bytes", total);
        put_number(b, "leased_bytes", leased);
        put_number(b, "spare_bytes", s->ledger.kept[i]);
        hed_buf_addf(b, "}");
        first = false;
    }
    hed_buf_addf(b, "]");
}

static uint32_t
count_guest_clients(const struct hed_server *s, const struct hed_guest *g)
{
    uint32_t n = 0;

    for (int i = 0; i < HED_LEDGER_WORKERS; i++)
        n += s->children[i].pid && s->children[i].guest == g;
    return n;
}

static void
put_guests(const struct hed_server *s, struct hed_buf *b)
{
    hed_buf_addf(b, ",\"guests\":[");
    for (const struct hed_guest *g = s->guests; g; g = g->next) {
        hed_buf_addf(b, "%s{", g == s->guests ? "" : ",");
        put_text(b, "name", g->name, sizeof g->name);
        hed_buf_addf(b, ",\"connected\":%s", g->bridge >= 0 ? "true" : "false");
        put_number(b, "window_bytes", g->size);
        put_number(b, "used_bytes", hed_pieces_used(&g->pieces));
        put_number(b, "clients", count_guest_clients(s, g));
        hed_buf_addf(b, "}");
    }
    hed_buf_addf(b, "]");
}

static void
put_leases(const uint64_t *leased, struct hed_buf *b)
{
    uint64_t sum = 0;
    int last = -1;

    for (int i = 0; i < HED_LEASE_SOCKET_DEVICES; i++) {
        if (leased[i])
            last = i;
    }
    hed_buf_addf(b, ",\"leased_bytes\":[");
    for (int i = 0; i <= last; i++) {
        hed_buf_addf(b, "%s%llu", i ? "," : "", (unsigned long long)leased[i]);
        sum += leased[i];
    }
    hed_buf_addf(b, "]");
    put_number(b, "leased_total_bytes", sum);
}

static void
put_client(const struct hed_server *s, const struct hed_child *c, struct hed_buf *b)
{
    const struct hed_worker_status *w = c->status;
    const uint64_t now = hed_now_ns();
    const uint64_t told = atomic_load(&w->last_ns);
    const uint64_t last = told ? told : c->started_ns;

    hed_buf_addf(b, "{\"worker\":%d", (int)c->pid);
    put_number(b, "worker_uid",
               hed_confine_has(s, HED_STEP_USER)
                   ? s->options->worker_uids[0] + (uint64_t)(c - s->children)
                   : geteuid());
    hed_confine_write(s, b);
    if (c->link->local)
        hed_buf_addf(b, ",\"pid\":%u,\"uid\":%u,", (unsigned)c->user.pid, c->user.uid);
    else
        hed_buf_addf(b, ",\"pid\":null,\"uid\":null,");
    put_text(b, "program", w->program, sizeof w->program);
    hed_buf_addf(b, ",");
    put_text(b, "peer", c->peer, sizeof c->peer);
    hed_buf_addf(b, ",");
    put_text(b, "certificate", c->who.name, sizeof c->who.name);
    hed_buf_addf(b, ",\"since\":%.3f", seconds_of(c->started_wall_ns));
    hed_buf_addf(b, ",\"seconds\":%.3f", seconds_of(now - c->started_ns));
    hed_buf_addf(b, ",\"idle_seconds\":%.3f", now > last ? seconds_of(now - last) : 0);
    hed_buf_addf(b, ",\"parked\":%s", atomic_load(&w->parked_ns) ? "true" : "false");
    hed_buf_addf(b, ",\"orders\":%s", atomic_load(&w->orders) ? "true" : "false");
    put_number(b, "channels", atomic_load(&w->channels));
    put_number(b, "messages", atomic_load(&w->messages));
    put_number(b, "bytes_in", atomic_load(&w->bytes_in));
    put_number(b, "bytes_out", atomic_load(&w->bytes_out));
    put_number(b, "launches", atomic_load(&w->launches));
    put_leases(s->ledger.leased[c - s->children], b);
    put_number(b, "host_bytes", s->ledger.leased[c - s->children][HED_LEASE_SOCKET_HOST]);
    put_number(b, "used_bytes", hed_pressure_of(s, c));
    put_number(b, "failure", atomic_load(&w->failed));
    hed_buf_addf(b, "}");
}

static void
put_spares_of(const struct hed_server *s, struct hed_buf *b)
{
    bool first = true;

    hed_buf_addf(b, ",\"spares\":[");
    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        const struct hed_child *c = &s->children[i];

        if (!c->pid || !c->spare)
            continue;
        hed_buf_addf(b, "%s{\"worker\":%d,\"ready\":%s", first ? "" : ",", (int)c->pid,
                     hed_spare_is_ready(c) ? "true" : "false");
        hed_buf_addf(b, ",\"seconds\":%.3f", seconds_of(hed_now_ns() - c->started_ns));
        hed_buf_addf(b, ",");
        put_text(b, "owner", c->owner, sizeof c->owner);
        put_number(b, "used_bytes", hed_pressure_of(s, c));
        hed_buf_addf(b, "}");
        first = false;
    }
    hed_buf_addf(b, "]");
}

void
hed_status_write(const struct hed_server *s, const uid_t *viewer, struct hed_buf *out)
{
    bool first = true;

    hed_buf_addf(out, "{");
    put_text(out, "version", HED_VERSION, sizeof HED_VERSION);
    put_number(out, "pid", (uint64_t)getpid());
    hed_buf_addf(out, ",\"uptime_seconds\":%.3f", seconds_of(hed_now_ns() - s->started_ns));
    put_addresses(s, out);
    hed_buf_addf(out, ",");
    put_text(out, "gpu", s->options->gpu, sizeof s->options->gpu);
    put_limits(s, out);
    put_devices(s, out);
    put_guests(s, out);
    put_spares_of(s, out);
    put_number(out, "connections", s->accepted);
    put_number(out, "refused", s->refused);
    put_number(out, "clients_ever", s->served);
    hed_buf_addf(out, ",\"stopping\":%s", s->stopping ? "true" : "false");
    hed_buf_addf(out, ",\"clients\":[");
    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        if (!hed_status_shows(&s->children[i], viewer))
            continue;
        hed_buf_addf(out, "%s\n", first ? "" : ",");
        put_client(s, &s->children[i], out);
        first = false;
    }
    hed_buf_addf(out, "]}\n");
}
