/* Clients: a process is one, and every name that its threads give themselves (heddle_set_client) is
 * another, with a place of its own on each GPU. Nearly always there is one client on one GPU, and
 * nothing here is on a call's way. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "layers/sched/sched.h"

#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

static _Thread_local struct {
    const struct hed_sched *s;
    const struct hed_sched_named *client;
} mine;

const struct hed_sched_named *
hed_sched_mine(const struct hed_sched *s)
{
    return mine.s == s ? mine.client : NULL;
}

/* The client of that name. Its settings count when it is made; `heddle sched set` changes them
 * later. */
static struct hed_sched_named *
find_locked(struct hed_sched *s, const struct hed_sched_named *what)
{
    struct hed_sched_named *c = NULL;

    for (uint32_t i = 0; !c && i < s->named_count; i++)
        if (strcmp(s->named[i]->name, what->name) == 0)
            c = s->named[i];
    if (c || s->named_count == HED_SCHED_CLIENTS || !(c = malloc(sizeof *c)))
        return c;
    *c = *what;
    s->named[s->named_count++] = c;
    /* From now on a call has to ask whose thread it is. Relaxed: this thread sees it. */
    atomic_store_explicit(&s->only, NULL, memory_order_relaxed);
    return c;
}

int
hed_sched_set_client(struct hed_layer *self, const char *text)
{
    struct hed_sched *s = self->state;
    struct hed_sched_named what = {.settings = s->settings};
    struct hed_why why = {""};
    int err;

    mine.s = s;
    mine.client = NULL;
    if (!text || !*text)
        return 0;
    /* What is common to all was the process's to say. */
    what.settings.given = 0;
    err = hed_sched_parse_client(text, what.name, &what.settings, &why);
    if (err) {
        hed_warn(SCHED, "heddle_set_client: %s", why.text);
        return err;
    }
    hed_lock(&s->lock);
    mine.client = find_locked(s, &what);
    hed_unlock(&s->lock);
    if (mine.client)
        return 0;
    hed_warn(SCHED, "heddle_set_client: more than %d clients: '%s' is the process's own",
             HED_SCHED_CLIENTS, what.name);
    return HED_ELIMIT;
}

bool
hed_sched_all_open(struct hed_sched *s)
{
    /* Acquire: as in hed_sched_open. */
    const uint32_t count = atomic_load_explicit(&s->count, memory_order_acquire);
    const struct hed_sched_named *client = hed_sched_mine(s);
    struct hed_sched_place *first = NULL;

    for (uint32_t i = 0; i < count; i++) {
        struct hed_sched_gpu *g = s->gpus[i];

        if (g->client != client)
            continue;
        if (GET(g->place->gate) != 0)
            return false;
        first = first ? first : g->place;
    }
    if (first)
        hed_sched_count(first);
    return first;
}

struct hed_sched_gpu *
hed_sched_here(struct hed_layer *self)
{
    struct hed_sched *s = self->state;
    const struct hed_sched_named *client = hed_sched_mine(s);
    CUdevice device = -1;
    struct hed_cuCtxGetDevice a = {&device};

    if (hed_next(self, cuCtxGetDevice, &a) != CUDA_SUCCESS)
        return NULL;

    /* Acquire: as in hed_sched_open. */
    const uint32_t count = atomic_load_explicit(&s->count, memory_order_acquire);

    for (uint32_t i = 0; i < count; i++)
        if (s->gpus[i]->device == device && s->gpus[i]->client == client)
            return s->gpus[i]->meet ? s->gpus[i] : NULL;

    struct hed_sched_gpu *g = hed_sched_join_gpu(self, device);

    return g && g->meet ? g : NULL;
}

/* ---- what record mode tells ------------------------------------------------------------------ */

static bool
cares(const struct hed_sched_gpu *g)
{
    return hed_policy_at(GET(g->common->policy))->asked_on_sync;
}

void
hed_sched_queue(struct hed_sched_gpu *g)
{
    atomic_fetch_add_explicit(&g->place->queued, 1, memory_order_seq_cst);
}

void
hed_sched_queued(struct hed_sched_gpu *g)
{
    struct hed_sched_place *p = g->place;

    /* Sequentially consistent, with the count in hed_sched_queue, against tell() in sched/decide.c:
     * who closes the gate after this look decides once more before it waits, and sees the count. */
    if (!(atomic_load_explicit(&p->gate, memory_order_seq_cst) & HED_GATE_CLOSED) || !cares(g))
        return;
    /* One more may be enough; of others' nobody knows but who decides. */
    if (GET(p->queued) + GET(p->waiting) >= GET(g->common->batch) || GET(g->common->held) > 1)
        (void)hed_sched_decide(g->meet, hed_now_ns());
}

void
hed_sched_unqueue(struct hed_sched_gpu *g)
{
    atomic_fetch_sub_explicit(&g->place->queued, 1, memory_order_relaxed);
}

void
hed_sched_hurry(struct hed_sched_gpu *g)
{
    atomic_fetch_add_explicit(&g->place->syncing, 1, memory_order_relaxed);
    if (cares(g))
        (void)hed_sched_decide(g->meet, hed_now_ns());
}

void
hed_sched_hurried(struct hed_sched_gpu *g)
{
    atomic_fetch_sub_explicit(&g->place->syncing, 1, memory_order_relaxed);
}

void
hed_sched_release(struct hed_sched_gpu *g)
{
    struct hed_sched_place *p = g->place;
    const struct hed_sched_change what = {.paused = -1, .release = 1};

    if (!(GET(p->gate) & (HED_GATE_CLOSED | HED_GATE_LIMIT)) || GET(p->paused) ||
        GET(g->common->paused) || hed_meet_lock(g->meet) != 0)
        return;
    hed_sched_change_locked(p, &what);
    hed_sched_decide_locked(g->meet, hed_now_ns());
    hed_meet_unlock(g->meet);
}
