/* Host memory of which this process and the worker each have their own copy, at the same addresses.
 * Over sockets, pinned memory that kernels can reach (mapped, managed) is made equal when the
 * program may expect it: before work, and after waiting. See docs/internals/remote.md.
 *
 *   before work     what the program has changed goes to the worker
 *   after waiting   what devices have changed comes back
 *
 * A shadow holds the bytes that both sides last agreed on. A byte that differs from it was changed
 * on that side, and wins; so sides that change different bytes do not disturb each other.
 *
 * One thread at a time does this. The worker's data are as old as the question: comparing them with
 * a shadow that another thread has changed since would undo that thread's change.
 *
 * Invariant: a mirror is in the list, oldest last, while its memory is mapped. Only memory in the
 * list is written, and only while this thread asks for it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "driver/memory/memory.h"
#include "remote/client/memory.h"

#define GRANULE 65536u /* bytes that are compared and sent at once */

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

/* The shadow of a range, or NULL. It stays as long as the program's allocation there. */
static uint8_t *
mirror_shadow(struct hed_remote *r, uint64_t at, uint64_t size)
{
    uint8_t *shadow = NULL;

    hed_lock(&r->memory->lock);
    for (const struct hed_remote_mirror *t = r->memory->mirrors; t && !shadow; t = t->next)
        if (at >= t->at && at - t->at < t->size && size <= t->size - (at - t->at))
            shadow = t->shadow + (at - t->at);
    hed_unlock(&r->memory->lock);
    return shadow;
}

static void
send_mirror_granule(struct hed_remote *r, uint64_t at, uint8_t *shadow, uint64_t n)
{
    struct hed_remote_channel *channel;
    struct hed_data *d =
        hed_remote_begin(r, HED_MSG_SYNC_HOST, sizeof *d, hed_remote_current(r), 0, 0, &channel);
    int err;

    if (!d)
        return;
    memcpy(shadow, (const void *)(uintptr_t)at, n); /* once: the program may change it */
    d->to.at = at;
    d->box.width = n;
    d->box.height = d->box.depth = 1;
    d->head.bulk = n;
    err = hed_remote_end(channel, &d->head, sizeof *d);
    if (!err)
        err = hed_channel_bulk_write(channel->channel, shadow, n);
    if (err)
        hed_remote_lose(r, hed_err_text(err));
}

static void
send_changes(struct hed_remote *r, uint64_t at, uint64_t size)
{
    uint8_t *shadow = mirror_shadow(r, at, size);

    for (uint64_t done = 0; shadow && done < size;) {
        const uint64_t next = ((at + done) / GRANULE + 1) * GRANULE - at;
        const uint64_t n = (next < size ? next : size) - done;

        if (memcmp((const void *)(uintptr_t)(at + done), shadow + done, n) != 0)
            send_mirror_granule(r, at + done, shadow + done, n);
        done += n;
    }
}

static void
ask_changes(struct hed_remote *r, uint64_t at, uint64_t size)
{
    struct hed_remote_channel *channel;
    struct hed_data *d;

    if (!mirror_shadow(r, at, size))
        return;
    d = hed_remote_begin(r, HED_MSG_SYNC_HOST, sizeof *d, hed_remote_current(r), 0, 0, &channel);
    if (!d)
        return;
    d->head.flags = HED_MSG_WANTS_ANSWER;
    d->to.at = at;
    d->box.width = size;
    d->box.height = d->box.depth = 1;
    asked.at = at;
    asked.size = size;
    if (hed_remote_end(channel, &d->head, sizeof *d) == 0)
        (void)hed_remote_answer(channel);
    asked.size = 0;
}

int
hed_remote_mirror_data(struct hed_remote_channel *channel, const struct hed_data *d)
{
    const uint64_t n = d->head.bulk;
    uint8_t *here = (uint8_t *)(uintptr_t)d->to.at;
    uint8_t *shadow = NULL;
    uint8_t *from;
    int err;

    if (n > 0 && n <= GRANULE && n == d->box.width && d->to.at >= asked.at &&
        d->to.at - asked.at < asked.size && n <= asked.size - (d->to.at - asked.at))
        shadow = mirror_shadow(channel->remote, d->to.at, n);
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

/* Calls fn for all memory that kernels can reach. */
static void
for_each_mirror(struct hed_remote *r, void (*fn)(struct hed_remote *r, uint64_t at, uint64_t size))
{
    uint64_t at = 0, size;

    if (r->shares_heap || !r->driver || !hed_memory_has_mapped(r->driver))
        return;
    for (; hed_memory_next_mapped(r->driver, &at, &size); at++) {
        hed_lock(&r->memory->alike);
        fn(r, at, size);
        hed_unlock(&r->memory->alike);
    }
}

void
hed_remote_sync_out(struct hed_remote *r)
{
    for_each_mirror(r, send_changes);
}

void
hed_remote_sync_in(struct hed_remote *r)
{
    for_each_mirror(r, ask_changes);
}

/* ---- another worker -------------------------------------------------------------------------- */

static int
mirror_anew(void *arg, const struct hed_remote_mapping *m)
{
    struct hed_remote *r = arg;

    hed_remote_mirror_gone(r, m->at);
    hed_remote_mirror_made(r, m->at, m->size);
    return 0;
}

/* The new worker's memory is zeros, and so are the new shadows: whatever is not zero is sent. */
int
hed_remote_mirror_again(struct hed_remote *r)
{
    const int err = hed_remote_mappings_each(r, HED_MAP_HOST, mirror_anew, r);

    if (!err)
        hed_remote_sync_out(r);
    return err;
}
