/* Tells the client what its kernels were refused while they ran. See worker.h.
 *
 * The client knows by itself which calls and launches heddle refuses. What a kernel comes to is
 * known only here, and a context's error does not say why. Lines are kept until the next answer,
 * and are sent before it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/str.h"
#include "core/refusal.h"
#include "remote/server/worker/worker.h"

#define KEPT 8 /* lines that wait for an answer; the client needs one */
#define LINE 512

struct hed_worker_refusals {
    struct hed_worker *worker;
    struct hed_lock lock;   /* rank HED_RANK_LOGS: guards lines, and changes of count */
    _Atomic uint32_t count; /* lines that are kept */
    char lines[KEPT][LINE];
};

static void
keep_line(void *state, const char *line)
{
    struct hed_worker_refusals *r = state;

    hed_lock(&r->lock);

    /* Relaxed: under the lock. What happened in a kernel is seen by those who have waited for it,
     * because the driver has ordered that. */
    const uint32_t n = atomic_load_explicit(&r->count, memory_order_relaxed);

    if (n < KEPT) {
        (void)hed_str_copy(r->lines[n], LINE, line);
        atomic_store_explicit(&r->count, n + 1, memory_order_relaxed);
    }
    hed_unlock(&r->lock);
    hed_worker_alert(r->worker);
}

void
hed_worker_refusals_init(struct hed_worker *w)
{
    struct hed_worker_refusals *r =
        w->capabilities & HED_CAN_REFUSALS ? calloc(1, sizeof *r) : NULL;

    if (!r)
        return;
    r->worker = w;
    hed_lock_init(&r->lock, HED_RANK_LOGS);
    w->refusals = r;
    hed_refusals_tell(keep_line, r);
}

/* Takes the oldest line. False if there is none. */
static bool
take_line(struct hed_worker_refusals *r, char *line)
{
    hed_lock(&r->lock);

    const uint32_t n = atomic_load_explicit(&r->count, memory_order_relaxed); /* under the lock */

    if (n) {
        memcpy(line, r->lines[0], LINE);
        memmove(r->lines[0], r->lines[1], (n - 1) * sizeof r->lines[0]);
        atomic_store_explicit(&r->count, n - 1, memory_order_relaxed);
    }
    hed_unlock(&r->lock);
    return n > 0;
}

int
hed_refusals_deliver(struct hed_worker_channel *ch)
{
    struct hed_worker_refusals *r = ch->worker->refusals;
    char line[LINE];
    int err = 0;

    /* Relaxed: as in keep_line(). */
    if (!r || atomic_load_explicit(&r->count, memory_order_relaxed) == 0)
        return 0;
    while (!err && take_line(r, line)) {
        const uint32_t size = (uint32_t)(sizeof(struct hed_msg) + strlen(line));
        struct hed_msg *m = hed_channel_begin(ch->channel, size);

        if (!m)
            return HED_EIO;
        memset(m, 0, sizeof *m);
        m->kind = HED_MSG_REFUSED;
        m->size = size;
        m->thread = ch->thread;
        memcpy(m + 1, line, size - sizeof *m);
        err = hed_channel_end(ch->channel, size, false);
    }
    return err;
}
