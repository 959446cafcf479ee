/* For tests: a new worker every so many calls, with everything that the program has. No program may
 * notice it.
 *
 *   HED_TEST_MOVES=N    after each N calls of the process; every third time it is the old one again
 */
#include "backends/remote/snap/trial.h"

#ifdef HED_DEBUG

#include <pthread.h>
#include <stdlib.h>

#include "backends/remote/memory.h"
#include "backends/remote/queue.h"
#include "backends/remote/snap/snap.h"
#include "base/copy.h"
#include "base/err.h"
#include "base/log.h"

#define DEADLINE_MS 20000

static pthread_once_t trial_once = PTHREAD_ONCE_INIT;
static long every; /* calls; 0: never */
static _Atomic long calls;
static struct hed_lock moving = HED_LOCK_INIT(HED_RANK_SESSION);

static void
read_every(void)
{
    const char *text = getenv("HED_TEST_MOVES");

    every = text ? strtol(text, NULL, 10) : 0;
}

struct piece {
    struct piece *next;
    uint64_t at, size;
    char bytes[];
};

struct carried {
    struct hed_remote_source source; /* must come first */
    struct hed_remote *remote;
    struct piece *pieces;
};

/* A context on the device. */
static struct hed_context *
any_context(struct hed_remote *r, int device)
{
    for (struct hed_context *c = r->driver->contexts; c; c = c->next)
        if (hed_context_alive(c) && c->device->ordinal == device)
            return c;
    return NULL;
}

static int
copy_carried(struct hed_remote *r, int device, const struct piece *p, bool to_host)
{
    const uint64_t here = (uint64_t)(uintptr_t)p->bytes;
    const struct hed_copy c = {
        .from = {.at = to_host ? p->at : here, .pitch = p->size, .slice = p->size},
        .to = {.at = to_host ? here : p->at, .pitch = p->size, .slice = p->size},
        .box = {p->size, 1, 1}};
    struct hed_context *ctx = any_context(r, device);

    if (!ctx)
        return 0;
    return hed_remote_copy_host(r, ctx->legacy, &c, to_host, true) == CUDA_SUCCESS ? 0 : HED_EIO;
}

static int
carry_mapping(void *arg, const struct hed_remote_mapping *m)
{
    struct carried *c = arg;
    struct piece *p = malloc(sizeof *p + m->size);

    if (!p)
        return HED_ENOMEM;
    p->at = m->at;
    p->size = m->size;
    p->next = c->pieces;
    c->pieces = p;
    return copy_carried(c->remote, m->device, p, true);
}

static int
fill_carried(struct hed_remote_source *self, struct hed_remote *r, struct hed_why *why)
{
    struct carried *c = (struct carried *)self;
    int err = 0;

    for (const struct piece *p = c->pieces; p && !err; p = p->next)
        err = copy_carried(r, (int)((p->at - r->base) / r->stride), p, false);
    if (err)
        hed_why_set(why, "memory could not be filled");
    return err;
}

/* Leaves the worker, which waits, and returns. */
static int
park_once(struct hed_remote *r, struct hed_why *why)
{
    const int err = hed_remote_part(r, true, why);

    return err ? err : hed_remote_return(r, why);
}

static void
move_once(struct hed_remote *r)
{
    static unsigned moves;
    struct carried c = {.source.fill = fill_carried, .remote = r};
    struct hed_why why = {""};
    int err = hed_remote_hold(r, DEADLINE_MS, &why);

    if (!err) {
        if (++moves % 3 == 0 && r->capabilities & HED_CAN_PARK) {
            err = park_once(r, &why);
        } else {
            err = hed_remote_mappings_each(r, HED_MAP_DEVICE, carry_mapping, &c);
            if (!err && moves % 3 == 1) /* once with a worker to come back to, once without */
                err = hed_remote_part(r, false, &why);
            if (!err)
                err = hed_remote_arrive(r, NULL, &c.source, &why);
        }
        hed_remote_release(r);
    }
    while (c.pieces) {
        struct piece *gone = c.pieces;

        c.pieces = gone->next;
        free(gone);
    }
    if (err)
        hed_warn(REMOTE, "a trial move failed: %s", why.text[0] ? why.text : hed_err_text(err));
    else
        hed_info(REMOTE, "a trial move is done");
}

void
hed_remote_trial(struct hed_remote *r)
{
    (void)pthread_once(&trial_once, read_every);
    if (every <= 0 || !r->driver || atomic_load(&r->lost) || atomic_fetch_add(&calls, 1) % every)
        return;
    if (hed_lock_try(&moving)) {
        move_once(r);
        hed_unlock(&moving);
    }
}

#else
typedef int hed_remote_trial_nothing; /* a file must not be empty */
#endif
