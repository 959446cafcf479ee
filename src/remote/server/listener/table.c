/* The answer to `heddle serve --list`: the clients as a table for people. The JSON of status.c is
 * for programs. What workers tell about themselves is shown and not believed. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "remote/server/listener/listener.h"
#include "remote/server/status.h"
#include "remote/wire/link/link.h"

#define CELL 32

const char *
hed_age_text(uint64_t ns, char out[HED_AGE_TEXT])
{
    static const struct {
        uint64_t seconds;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    const uint64_t seconds = ns / HED_NS_PER_S;
    size_t i = 0;

    while (i + 1 < sizeof units / sizeof units[0] && seconds < units[i].seconds)
        i++;
    (void)snprintf(out, HED_AGE_TEXT, "%llu %s", (unsigned long long)(seconds / units[i].seconds),
                   units[i].name);
    return out;
}

const char *
hed_size_text(uint64_t bytes, char out[HED_SIZE_TEXT])
{
    if (bytes >= UINT64_C(1) << 30)
        (void)snprintf(out, HED_SIZE_TEXT, "%.1f GiB", (double)bytes / (double)(UINT64_C(1) << 30));
    else
        (void)snprintf(out, HED_SIZE_TEXT, "%.0f MiB", (double)bytes / (double)(UINT64_C(1) << 20));
    return out;
}

static const char *
memory_text(const uint64_t *leased, char out[HED_SIZE_TEXT])
{
    uint64_t sum = 0;

    for (int i = 0; i < HED_LEASE_SOCKET_DEVICES; i++)
        sum += leased[i];
    return hed_size_text(sum, out);
}

/* The name in a worker's page, with what a terminal could take for a command left out. */
static const char *
program_text(const struct hed_worker_status *w, char out[CELL])
{
    size_t n = 0;

    for (; n < CELL - 1 && n < sizeof w->program && w->program[n]; n++)
        out[n] = (char)(w->program[n] > ' ' && w->program[n] < 0x7f ? w->program[n] : '?');
    out[n] = '\0';
    return n ? out : "?";
}

static const char *
client_text(const struct hed_child *c, char *out, size_t size)
{
    if (c->link->local)
        (void)snprintf(out, size, "process %d of user %u", (int)c->user.pid, c->user.uid);
    else if (c->who.name[0])
        (void)snprintf(out, size, "%s at %s", c->who.name, c->peer);
    else
        (void)snprintf(out, size, "%s", c->peer);
    for (char *p = out; *p; p++)
        *p = (char)(*p >= ' ' && *p < 0x7f ? *p : '?'); /* a certificate may have any name */
    return out;
}

static void
put_row(const struct hed_server *s, const struct hed_child *c, struct hed_buf *out)
{
    const struct hed_worker_status *w = c->status;
    const uint64_t now = hed_now_ns();
    const uint64_t told = atomic_load(&w->last_ns);
    const uint64_t last = told > c->started_ns && told <= now ? told : c->started_ns;
    char program[CELL], since[HED_AGE_TEXT], idle[HED_AGE_TEXT], used[HED_SIZE_TEXT],
        memory[HED_SIZE_TEXT], client[136];

    hed_buf_addf(out, "%7d  %-16.16s  %-28.28s  %6s  %6s  %9s  %9s  %9llu\n", (int)c->pid,
                 program_text(w, program), client_text(c, client, sizeof client),
                 hed_age_text(now - c->started_ns, since),
                 atomic_load(&w->parked_ns) ? "parked" : hed_age_text(now - last, idle),
                 hed_size_text(hed_pressure_of(s, c), used),
                 memory_text(s->ledger.leased[c - s->children], memory),
                 (unsigned long long)atomic_load(&w->launches));
}

bool
hed_status_shows(const struct hed_child *c, const uid_t *viewer)
{
    return c->pid > 0 && !c->spare && (!viewer || (c->link->local && c->user.uid == *viewer));
}

void
hed_status_list(const struct hed_server *s, const uid_t *viewer, struct hed_buf *out)
{
    hed_buf_addf(out, "%7s  %-16s  %-28s  %6s  %6s  %9s  %9s  %9s\n", "WORKER", "PROGRAM", "CLIENT",
                 "SINCE", "IDLE", "USED", "LEASED", "LAUNCHES");
    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        if (hed_status_shows(&s->children[i], viewer))
            put_row(s, &s->children[i], out);
    }
}
