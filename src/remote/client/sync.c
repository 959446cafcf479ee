/* Host memory of which this process and the worker each have their own copy, at the same addresses.
 * Over sockets, pinned memory that kernels can reach (mapped, managed) is made equal when the
 * program may expect it: before work, and after waiting. See docs/internals/remote.md.
 *
 *   before work     what the program has changed goes to the worker
 *   after waiting   what devices have changed comes back
 *
 * A shadow (mirror.c) holds the bytes that both sides last agreed on. A byte that differs from it
 * was changed on that side, and wins; so sides that change different bytes do not disturb each
 * other.
 *
 * One thread at a time does this. The worker's data are as old as the question: comparing them with
 * a shadow that another thread has changed since would undo that thread's change.
 */
#include <string.h>

#include "base/err.h"
#include "driver/driver.h"
#include "remote/client/memory.h"

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
    uint8_t *shadow = hed_remote_mirror_shadow(r, at, size);

    for (uint64_t done = 0; shadow && done < size;) {
        const uint64_t next = ((at + done) / HED_MIRROR_GRANULE + 1) * HED_MIRROR_GRANULE - at;
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

    if (!hed_remote_mirror_shadow(r, at, size))
        return;
    d = hed_remote_begin(r, HED_MSG_SYNC_HOST, sizeof *d, hed_remote_current(r), 0, 0, &channel);
    if (!d)
        return;
    d->head.flags = HED_MSG_WANTS_ANSWER;
    d->to.at = at;
    d->box.width = size;
    d->box.height = d->box.depth = 1;
    hed_remote_mirror_expect(at, size);
    if (hed_remote_end(channel, &d->head, sizeof *d) == 0)
        (void)hed_remote_answer(channel);
    hed_remote_mirror_expect(0, 0);
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
