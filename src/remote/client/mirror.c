/* The shadows of memory that this process and the worker each have (sync.c), and the bytes of the
 * worker's that arrive.
 *
 * Invariant: a mirror is in the list, oldest last, while its memory is mapped. Only memory in the
 * list is written, and only while this thread asks for it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "remote/client/memory.h"

/* The range about which this thread has asked the worker. */
static _Thread_local struct {
    uint64_t at, size;
} asked;

void
hed_remote_mirror_made(struct hed_remote *r, uint64_t at, uint64_t size)
{
    struct hed_remote_mirror *t = !r->shares_heap ? calloc(1, sizeof *t) : NULL;
    void *shadow;

    if (!t)
        return;
    /* The memory begins as zeros on both sides, and so does the shadow. */
    shadow = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
    if (shadow == MAP_FAILED) {
        free(t);
        return;
    }
    *t = (struct hed_remote_mirror){.at = at, .size = size, .shadow = shadow};
    hed_lock(&r->memory->lock);
    t->next = r->memory->mirrors;
    r->memory->mirrors = t;
    hed_unlock(&r->memory->lock);
}

void
hed_remote_mirror_gone(struct hed_remote *r, uint64_t at)
{
    struct hed_remote_mirror *t = NULL;

    hed_lock(&r->memory->lock);
    for (struct hed_remote_mirror **link = &r->memory->mirrors; *link; link = &(*link)->next)
        if ((*link)->at == at) {
            t = *link;
            *link = t->next;
            break;
        }
    hed_unlock(&r->memory->lock);
    if (t)
        (void)munmap(t->shadow, t->size);
    free(t);
}

uint8_t *
hed_remote_mirror_shadow(struct hed_remote *r, uint64_t at, uint64_t size)
{
    uint8_t *shadow = NULL;

    hed_lock(&r->memory->lock);
    for (const struct hed_remote_mirror *t = r->memory->mirrors; t && !shadow; t = t->next)
        if (at >= t->at && at - t->at < t->size && size <= t->size - (at - t->at))
            shadow = t->shadow + (at - t->at);
    hed_unlock(&r->memory->lock);
    return shadow;
}

void
hed_remote_mirror_expect(uint64_t at, uint64_t size)
{
    asked.at = at;
    asked.size = size;
}

int
hed_remote_mirror_data(struct hed_remote_channel *channel, const struct hed_data *d)
{
    const uint64_t n = d->head.bulk;
    uint8_t *here = (uint8_t *)(uintptr_t)d->to.at;
    uint8_t *shadow = NULL;
    uint8_t *from;
    int err;

    if (n > 0 && n <= HED_MIRROR_GRANULE && n == d->box.width && d->to.at >= asked.at &&
        d->to.at - asked.at < asked.size && n <= asked.size - (d->to.at - asked.at))
        shadow = hed_remote_mirror_shadow(channel->remote, d->to.at, n);
    if (!shadow)
        return HED_EFORMAT;
    from = malloc(n);
    err = from ? hed_channel_bulk_read(channel->channel, from, n) : HED_ENOMEM;
    for (uint64_t i = 0; !err && i < n; i++)
        if (from[i] != shadow[i])
            here[i] = shadow[i] = from[i];
    free(from);
    return err;
}
