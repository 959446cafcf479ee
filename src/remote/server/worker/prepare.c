/* Before the client is heard: what the settings ask for, and loading it. See start.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/process.h"
#include "base/str.h"
#include "core/session.h"
#include "remote/server/start.h"
#include "remote/server/worker/worker.h"
#include "remote/wire/conn.h"
#include "remote/wire/link/link.h"

void
hed_worker_look(struct hed_worker_plan *out)
{
    static struct hed_session_plan plan; /* large; the listener has one thread */
    const char *given =
        secure_getenv("CUDA_CACHE_PATH"); /* where the driver keeps what it compiles */
    struct hed_why why = {""};

    memset(out, 0, sizeof *out);
    hed_session_stay_here(); /* as the workers do, so that both see the same settings */
    /* If the settings are wrong, every worker will say so, and no client is served. */
    if (hed_session_look(&plan, &why) != 0)
        return;
    out->driver = plan.driver;
    out->cpu = plan.cpu;
    out->shares = plan.shares;
    if (plan.driver && !hed_str_copy(out->cache, sizeof out->cache, given ? given : ""))
        out->cache[0] = '\0';
    if (plan.driver && !out->cache[0])
        (void)hed_cache_folder("driver", out->cache, sizeof out->cache);
    if (plan.no_cache || !plan.cpu)
        return;
    if (plan.cache[0])
        (void)hed_str_copy(out->cache, sizeof out->cache, plan.cache);
    else
        (void)hed_cache_folder("kernels", out->cache, sizeof out->cache);
}

/* The server's limits, whatever the settings say. */
static void
override_number(const char *key, uint64_t number)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    hed_session_override(key, text);
}

/* Clients that are processes of one program have one share of a GPU that the server schedules
 * (HEDDLE_SCHED), and so have all clients of one machine over TCP. */
static uint64_t
client_family(const struct hed_worker_start *start)
{
    const uint64_t family = start->link->local ? hed_process_family((pid_t)start->client_pid) : 0;
    const char *port = start->peer ? strrchr(start->peer, ':') : NULL;
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a: no secret depends on it */

    if (family)
        return family;
    if (start->link->local)
        return start->client_uid + UINT64_C(1);
    for (const char *at = start->peer; at && *at && at != port; at++)
        h = (h ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return h | 1;
}

int
hed_worker_prepare(const struct hed_worker_start *start, struct hed_why *why)
{
    hed_session_stay_here();
    if (start->cache && start->cache[0])
        hed_session_override("cache", start->cache);
    else if (start->cache)
        hed_session_override("cache_size", "0");
    if (start->group)
        hed_session_override("cache_trust", "group");
    if (start->memory_limit)
        override_number("mem", start->memory_limit + start->memory_room);
    if (start->link) /* there are no spares where it matters */
        override_number("sched_family", client_family(start));
    hed_progress_prepare();
    override_number("kernel_time",
                    hed_progress_is_used(start, false) ? 0 : start->kernel_ms / 1000);
    override_number("compile_time", start->compile_ms / 1000);
    (void)hed_top(); /* what is wrong with it is in the log, and the client will be told */
    return 0;
}
