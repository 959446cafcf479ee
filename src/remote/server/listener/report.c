/* The answer to `heddle serve --status` for people: the server, its limits, its devices, and the
 * table of clients (table.c). The JSON of status.c says the same for programs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "remote/server/listener/listener.h"

#define LINE "  %-12s "
#define STEPS_WIDTH 60 /* columns */

/* The steps, in lines that fit into a terminal. */
static void
put_sandbox(const struct hed_server *s, struct hed_buf *b)
{
    size_t column = 0;

    hed_buf_addf(b, LINE "%s", "sandbox", s->sandbox.steps ? "" : "off");
    for (int i = 0; i < HED_STEP_COUNT; i++) {
        const char *name = hed_sandbox_step_name(i);

        if (!hed_confine_has(s, i))
            continue;
        if (column + strlen(name) > STEPS_WIDTH) {
            hed_buf_addf(b, ",\n" LINE "%s", "", name);
            column = 0;
        } else {
            hed_buf_addf(b, "%s%s", column ? ", " : "", name);
        }
        column += strlen(name) + 2;
    }
    hed_buf_addf(b, "\n");
}

static void
put_server(const struct hed_server *s, struct hed_buf *b)
{
    char text[HED_ADDRESS_TEXT], age[HED_AGE_TEXT];

    hed_buf_addf(b, "heddle " HED_VERSION ", process %d, serves --gpu %s for %s%s\n", (int)getpid(),
                 s->options->gpu, hed_age_text(hed_now_ns() - s->started_ns, age),
                 s->stopping ? ", and is stopping" : "");
    for (uint32_t i = 0; i < s->listener_count; i++) {
        hed_address_text(&s->listeners[i].address, text, sizeof text);
        hed_buf_addf(b, LINE "%s\n", i ? "" : "listens at", text);
    }
    put_sandbox(s, b);
}

static void
put_spares(const struct hed_server *s, struct hed_buf *b)
{
    uint32_t ready = 0;

    for (int i = 0; i < HED_LEDGER_WORKERS; i++)
        ready += hed_spare_is_ready(&s->children[i]);
    if (s->options->spare)
        hed_buf_addf(b, LINE "%u of %u are ready (--spare)\n", "spares", ready, s->options->spare);
}

/* How many clients may come. */
static void
put_arrivals(const struct hed_server *s, struct hed_buf *b)
{
    const struct hed_server_options *o = s->options;
    char rate[16] = "any number", source[16] = "any number";

    if (o->rate)
        (void)snprintf(rate, sizeof rate, "%u", o->rate);
    if (o->per_source)
        (void)snprintf(source, sizeof source, "%u", o->per_source);
    hed_buf_addf(b, LINE "%s a second (--rate), %s of one source (--per-source),\n", "arrivals",
                 rate, source);
    hed_buf_addf(b, LINE "%u at a time that have not begun (--startups)\n", "", o->startups);
}

static const char *
bytes_text(uint64_t bytes, char out[HED_SIZE_TEXT])
{
    return bytes ? hed_size_text(bytes, out) : "no limit";
}

static void
put_memory(const struct hed_server *s, struct hed_buf *b)
{
    const struct hed_server_options *o = s->options;
    char used[HED_SIZE_TEXT], total[HED_SIZE_TEXT], device[HED_SIZE_TEXT], host[HED_SIZE_TEXT],
        own[HED_SIZE_TEXT];
    uint64_t all = 0;

    for (int i = 0; i < HED_LEDGER_WORKERS; i++)
        all += s->children[i].pid > 0 ? hed_pressure_of(s, &s->children[i]) : 0;
    hed_buf_addf(b, LINE "workers use %s; limit: %s (--total-memory)\n", "memory",
                 hed_size_text(all, used), bytes_text(o->total_memory, total));
    hed_buf_addf(b, LINE "devices %s (--memory), pinned %s (--host-memory),\n", "each client",
                 o->memory ? hed_size_text(o->memory, device) : "as they have",
                 bytes_text(o->host_memory, host));
    hed_buf_addf(b, LINE "private %s (--worker-memory), %u channels (--channels)\n", "",
                 bytes_text(s->sandbox.memory, own), o->channels);
    if (o->worker_cpus)
        hed_buf_addf(b, LINE "%u processors (--worker-cpus)\n", "", o->worker_cpus);
}

/* " session 3600 s (--session)," if there is such a limit. */
static void
put_seconds(struct hed_buf *b, const char *name, uint32_t ms, const char *option, bool last)
{
    if (ms)
        hed_buf_addf(b, "%s %u s (%s)", name, ms / 1000, option);
    else
        hed_buf_addf(b, "%s no limit (%s)", name, option);
    hed_buf_addf(b, last ? "\n" : ", ");
}

static void
put_times(const struct hed_server *s, struct hed_buf *b)
{
    const struct hed_server_options *o = s->options;

    hed_buf_addf(b, LINE, "time");
    put_seconds(b, "session", o->session_ms, "--session", false);
    put_seconds(b, "silence", o->idle_ms, "--idle", true);
    hed_buf_addf(b, LINE, "");
    put_seconds(b, "kernel", o->kernel_ms, "--kernel-time", false);
    put_seconds(b, "compiling", o->compile_ms, "--compile-time", true);
}

static void
put_device_rows(const struct hed_server *s, struct hed_buf *b)
{
    char total[HED_SIZE_TEXT], leased[HED_SIZE_TEXT];
    bool any = false;

    for (int i = 0; i < HED_LEASE_SOCKET_DEVICES; i++) {
        if (s->ledger.total[i] == 0 && hed_ledger_leased(&s->ledger, i) == 0)
            continue;
        if (!any)
            hed_buf_addf(b, "\n%7s  %10s  %10s\n", "DEVICE", "MEMORY", "LEASED");
        any = true;
        hed_buf_addf(b, "%7d  %10s  %10s\n", i, hed_size_text(s->ledger.total[i], total),
                     hed_size_text(hed_ledger_leased(&s->ledger, i), leased));
    }
}

static void
put_guest_rows(const struct hed_server *s, struct hed_buf *b)
{
    char size[HED_SIZE_TEXT], used[HED_SIZE_TEXT];

    if (s->guests)
        hed_buf_addf(b, "\n%-24s  %10s  %10s  %s\n", "GUEST", "WINDOW", "USED", "QEMU");
    for (const struct hed_guest *g = s->guests; g; g = g->next)
        hed_buf_addf(b, "%-24.24s  %10s  %10s  %s\n", g->name, hed_size_text(g->size, size),
                     hed_size_text(hed_pieces_used(&g->pieces), used),
                     g->bridge >= 0 ? "connected" : "not connected");
}

void
hed_status_report(const struct hed_server *s, const uid_t *viewer, struct hed_buf *out)
{
    put_server(s, out);
    hed_buf_addf(out, LINE "%u of %u (--clients); %llu since the start; %llu connections refused\n",
                 "clients", s->child_count, s->options->clients, (unsigned long long)s->served,
                 (unsigned long long)s->refused);
    put_spares(s, out);
    put_arrivals(s, out);
    put_memory(s, out);
    put_times(s, out);
    put_device_rows(s, out);
    put_guest_rows(s, out);
    if (s->child_count) {
        hed_buf_addf(out, "\n");
        hed_status_list(s, viewer, out);
    }
}
