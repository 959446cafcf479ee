/* See activity.h. */
#include "core/activity.h"

_Atomic(struct hed_watcher *) hed_activity_watcher;

static _Atomic bool is_offered;
static _Atomic uint64_t causes;
static _Thread_local uint64_t cause;

void
hed_activity_watch(struct hed_watcher *w)
{
    /* Release: who finds it sees what it was made of. */
    atomic_store_explicit(&hed_activity_watcher, w, memory_order_release);
}

/* Relaxed, both: it is set before the first call that could ask. */
void
hed_activity_offer(void)
{
    atomic_store_explicit(&is_offered, true, memory_order_relaxed);
}

bool
hed_activity_is_offered(void)
{
    return atomic_load_explicit(&is_offered, memory_order_relaxed);
}

uint64_t
hed_activity_begin_cause(uint64_t *before)
{
    *before = cause;
    /* Relaxed: numbers only have to differ. */
    cause = 1 + atomic_fetch_add_explicit(&causes, 1, memory_order_relaxed);
    return cause;
}

void
hed_activity_end_cause(uint64_t before)
{
    cause = before;
}

uint64_t
hed_activity_cause(void)
{
    return cause;
}
