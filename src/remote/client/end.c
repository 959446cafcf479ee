/* The process ends, or forks. See remote.h. */
#include "remote/client/mover.h"
#include "remote/client/remote.h"

void
hed_remote_forked(void *m)
{
    struct hed_remote *r = m;

    /* Relaxed: there is one thread. */
    atomic_store_explicit(&r->ended, true, memory_order_relaxed);
    hed_remote_channels_forked(r);
    hed_remote_host_forked(r);
    if (r->mover)
        r->mover->forked(r);
}

/* The process ends. Calls may still come; the worker will notice that the process is gone. */
void
hed_remote_fini(void *m)
{
    struct hed_remote *r = m;

    /* Relaxed: a thread that misses it finds the connection closed. */
    atomic_store_explicit(&r->ended, true, memory_order_relaxed);
    if (r->mover)
        r->mover->ended(r);
}
