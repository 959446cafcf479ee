/* See bounce.h. */
#include "move/session/bounce.h"

#include <sys/mman.h>

#include "base/err.h"
#include "driver/driver.h"
#include "move/session/extents.h"
#include "move/session/snap.h"
#include "remote/client.h"

static void
give_addresses(struct hed_driver *d, uint64_t at)
{
    hed_lock(&d->memory_lock);
    (void)hed_space_give(d->host_space, at);
    hed_unlock(&d->memory_lock);
}

/* Memory that the worker shares. It is no allocation of the driver, which would end with the
 * context in which it was made, whoever uses it then. The worker registers it in the context that
 * is current. Returns its address, or 0. */
static uint64_t
pin_memory(struct hed_remote *r, size_t size)
{
    struct hed_driver *d = r->driver;
    const bool entered = r->shares_heap && hed_remote_enter_any(r);
    uint64_t at;
    int err;

    if (!entered)
        return 0;
    hed_lock(&d->memory_lock);
    err = hed_space_take(d->host_space, size, HED_EXTENT_CHUNK, &at);
    hed_unlock(&d->memory_lock);
    if (!err) {
        err = hed_remote_map(r, at, size);
        if (err)
            give_addresses(d, at);
    }
    hed_thread_pop(d);
    return err ? 0 : at;
}

static void
unpin_memory(struct hed_remote *r, uint64_t at, size_t size)
{
    struct hed_driver *d = r->driver;
    const bool entered = hed_remote_enter_any(r);

    hed_remote_unmap(r, at, size);
    if (entered)
        hed_thread_pop(d);
    hed_remote_look(r); /* as at the end of a hold (pause.c): the worker frees the pages */
    give_addresses(d, at);
}

int
hed_remote_bounce_make(struct hed_remote *r, size_t size, struct hed_remote_bounce *out)
{
    const uint64_t pinned = pin_memory(r, size);
    void *at = pinned
                   ? (void *)(uintptr_t)pinned
                   : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return HED_ENOMEM;
    *out = (struct hed_remote_bounce){.at = at, .size = size, .pinned = pinned};
    return 0;
}

void
hed_remote_bounce_drop(struct hed_remote *r, const struct hed_remote_bounce *p)
{
    if (p->pinned)
        unpin_memory(r, p->pinned, p->size);
    else if (p->at)
        (void)munmap(p->at, p->size);
}
