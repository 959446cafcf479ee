/* What a session may take: its control thread looks from time to time, and ends a session that
 * takes more. The client is told why. Memory of devices is limited by leases (lease.c). Kernels and
 * compilations on the CPU GPU are limited by the backend (kernel/engine/watch.h), which asks for
 * the end of the session if it has to.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "remote/server/status.h"
#include "remote/server/worker/worker.h"

#define HEAP_SLACK (UINT64_C(64) << 20) /* bytes over --host-memory that are tolerated */

void
hed_worker_end(struct hed_worker *w, const char *why)
{
    struct hed_end end = {.head = {.size = sizeof end, .kind = HED_MSG_END}};

    hed_warn(SERVER, "%s, so the session ends", why);
    (void)snprintf(end.text, sizeof end.text, "the server ended the session: %s", why);
    hed_worker_host_last(w, &end);
    hed_lock(&w->lock);
    for (struct hed_worker_channel *ch = w->channels; ch; ch = ch->next)
        hed_channel_last(ch->channel, &end);
    hed_unlock(&w->lock);
    hed_worker_exit(w, HED_ELIMIT);
}

/* A client that waits, for a long kernel perhaps, is not idle: a channel has taken its message and
 * not yet finished with it. */
static bool
is_idle(struct hed_worker *w, struct hed_worker_limits *l)
{
    uint64_t now = 0;
    bool busy = false;

    hed_lock(&w->lock);
    for (const struct hed_worker_channel *ch = w->channels; ch; ch = ch->next) {
        const uint64_t taken = atomic_load_explicit(&ch->taken, memory_order_relaxed);

        now += taken;
        busy = busy || taken % 2; /* relaxed: rarely read */
    }
    hed_unlock(&w->lock);
    if (now != l->messages || busy || !w->start->idle_ms) {
        if (now != l->messages && w->start->status)
            atomic_store_explicit(&w->start->status->last_ns, hed_now_ns(), memory_order_relaxed);
        l->messages = now;
        l->heard_ns = hed_now_ns();
    }
    return w->start->idle_ms &&
           hed_now_ns() - l->heard_ns > (uint64_t)w->start->idle_ms * HED_NS_PER_MS;
}

/* Pages of the shared heap appear as soon as the client touches them, even where it has mapped
 * nothing. So the pages that exist count, not what the client asked for. Pages of a heap that the
 * client has made are its own memory. */
static bool
exceeds_host_limit(const struct hed_worker *w)
{
    const uint64_t limit = w->start->host_limit;
    struct stat s;

    /* Acquire: pairs with the release in accept_base() of arena.c; the heap exists. */
    if (!limit || !atomic_load_explicit(&w->settled, memory_order_acquire) || w->heap < 0 ||
        w->clients_heap || fstat(w->heap, &s) != 0)
        return false;
    return (uint64_t)s.st_blocks * 512 > limit + HEAP_SLACK;
}

static bool
has_passed(uint64_t since_ns, uint32_t ms)
{
    return ms && hed_now_ns() - since_ns > ms * (uint64_t)HED_NS_PER_MS;
}

/* Is the client away for too long? While it is away, it is not idle. */
static bool
is_away_too_long(struct hed_worker *w, struct hed_worker_limits *l)
{
    hed_lock(&w->lock);

    const bool parked = w->parked;
    const uint64_t since_ns = w->parked_ns;

    hed_unlock(&w->lock);
    if (parked)
        l->heard_ns = hed_now_ns();
    return parked && has_passed(since_ns, w->start->park_ms);
}

void
hed_worker_check_limits(struct hed_worker *w, struct hed_worker_limits *l)
{
    const struct hed_worker_start *s = w->start;
    struct hed_why why = {""};

    /* Relaxed: only the word itself counts. */
    if (s->status && atomic_load_explicit(&s->status->evicted, memory_order_relaxed))
        hed_why_set(&why, "an operator of the server has evicted the client");
    else if (is_away_too_long(w, l))
        hed_why_set(&why, "its client did not return within %u s (--park-timeout)",
                    s->park_ms / 1000);
    else if (exceeds_host_limit(w))
        hed_why_set(&why, "the client uses more host memory than --host-memory allows");
    else if (is_idle(w, l))
        hed_why_set(&why, "no message came for %u s (--idle)", s->idle_ms / 1000);
    else if (hed_progress_is_overdue(w, hed_now_ns()))
        hed_why_set(&why, "a kernel ran for longer than %u s (--kernel-time)", s->kernel_ms / 1000);
    else if (has_passed(l->begin_ns, s->session_ms))
        hed_why_set(&why, "the client was served for %u s (--session)", s->session_ms / 1000);
    if (why.text[0])
        hed_worker_end(w, why.text);
}
