/* Calls that wait for the GPU: when they return, its process may have no work any more, and
 * somebody else's turn comes. And captures, which the layer leaves alone. */
#include "base/clock.h"
#include "layers/sched/sched.h"

#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* ---- waiting for the GPU --------------------------------------------------------------------- */

void
hed_sched_quiet(struct hed_sched *s, struct hed_sched_gpu *g, uint64_t now)
{
    hed_lock(&s->lock);
    hed_pace_quiet_locked(s, g, now);
    hed_unlock(&s->lock);
    /* Only if somebody waits for it: others find out by the clock when they come. */
    if (GET(g->common->held) && GET(g->place->syncing) == 0)
        hed_sched_rest(g->meet, now);
}

struct hed_sched_gpu *
hed_sched_wait_begins(struct hed_layer *self)
{
    struct hed_sched *s = self->state;
    /* Acquire: as in hed_sched_open. */
    struct hed_sched_gpu *g = atomic_load_explicit(&s->only, memory_order_acquire) ? s->gpus[0]
                              : GET(s->count) ? hed_sched_here(self)
                                              : NULL;

    if (!g || !g->meet)
        return NULL;
    hed_sched_hurry(g);
    return g;
}

void
hed_sched_wait_ends(struct hed_layer *self, struct hed_sched_gpu *g, CUresult r, uint64_t stream)
{
    struct hed_sched *s = self->state;

    if (!g)
        return;

    hed_sched_hurried(g);
    if (!(GET(g->place->gate) & HED_GATE_WATCH))
        return;

    const uint64_t now = hed_now_ns();

    SET(g->place->last_call, now);
    if (r != CUDA_SUCCESS)
        return;
    hed_lock(&s->lock);

    const uint64_t one = g->pace.stream;

    hed_unlock(&s->lock);
    if (stream == 0 || one == stream)
        hed_sched_quiet(s, g, now);
    else
        hed_pace_poll(self, g, now);
}

CUcontext
hed_sched_context(struct hed_layer *at)
{
    CUcontext context = NULL;
    struct hed_cuCtxGetCurrent a = {&context};

    return at->cuda->cuCtxGetCurrent(at, &a) == CUDA_SUCCESS ? context : NULL;
}

uint64_t
hed_sched_of_context(struct hed_layer *self, CUcontext context)
{
    return context && context == hed_sched_context(self->next) ? 0 : UINT64_MAX;
}

/* ---- captures -------------------------------------------------------------------------------- */

void
hed_sched_keep_off(struct hed_sched *s)
{
    /* Sequentially consistent, with hed_sched_own_begin: of this count and its look at busy, and
     * of the other's, one sees the other. */
    atomic_fetch_add_explicit(&s->keep_off, 1, memory_order_seq_cst);
    while (atomic_load_explicit(&s->busy, memory_order_seq_cst) != 0)
        hed_sleep_ns(1000);
}

void
hed_sched_come_back(struct hed_sched *s)
{
    atomic_fetch_sub_explicit(&s->keep_off, 1, memory_order_seq_cst);
}

bool
hed_sched_own_begin(struct hed_sched *s)
{
    /* As in hed_sched_keep_off. */
    atomic_fetch_add_explicit(&s->busy, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&s->keep_off, memory_order_seq_cst) == 0)
        return true;
    hed_sched_own_end(s);
    return false;
}

void
hed_sched_own_end(struct hed_sched *s)
{
    atomic_fetch_sub_explicit(&s->busy, 1, memory_order_seq_cst);
}

/* Everybody keeps off from before the capture begins until it has ended. Captures for which there
 * is no room are never known to have ended. */
void
hed_sched_capture_began(struct hed_layer *self, uint64_t stream)
{
    struct hed_sched *s = self->state;
    CUcontext here = NULL;
    struct hed_cuCtxGetCurrent current = {&here};

    if (hed_next(self, cuCtxGetCurrent, &current) != CUDA_SUCCESS)
        here = NULL;
    hed_lock(&s->lock);
    for (int i = 0; i < HED_SCHED_CAPTURES; i++) {
        if (s->capturing[i].stream != 0)
            continue;
        s->capturing[i].stream = stream;
        s->capturing[i].context = here;
        break;
    }
    hed_unlock(&s->lock);
}

void
hed_sched_capture_ended(struct hed_sched *s, uint64_t stream)
{
    bool found = false;

    hed_lock(&s->lock);
    for (int i = 0; !found && i < HED_SCHED_CAPTURES; i++) {
        found = s->capturing[i].stream == stream;
        if (found)
            s->capturing[i].stream = 0;
    }
    hed_unlock(&s->lock);
    if (found)
        hed_sched_come_back(s);
}

void
hed_sched_context_ended(struct hed_sched *s, CUcontext context)
{
    unsigned ended = 0;

    hed_lock(&s->lock);
    for (int i = 0; context && i < HED_SCHED_CAPTURES; i++) {
        if (s->capturing[i].stream == 0 || s->capturing[i].context != context)
            continue;
        s->capturing[i].stream = 0;
        ended++;
    }
    hed_unlock(&s->lock);
    for (; ended; ended--)
        hed_sched_come_back(s);
}

/* Asks the driver: streams join captures by events, which nobody can follow from outside. */
bool
hed_sched_captures(struct hed_layer *at, CUstream stream, bool ptds)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    struct hed_cuStreamIsCapturing a = {stream, &status, ptds};

    return at->cuda->cuStreamIsCapturing(at, &a) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}
