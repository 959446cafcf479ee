/* Mirrored host memory: over sockets, the client and this worker each have their own memory at the
 * same addresses. HED_MSG_SYNC_HOST.
 *
 *   with bulk                 bytes that the program has changed: written here
 *   with an answer wanted     bytes that devices have changed here go to the client first
 *
 * The shadow holds what both sides are known to have had. A byte counts as changed here if it
 * differs from the shadow, so bytes next to it that the other side changes meanwhile are kept.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "remote/server/worker/memory.h"

#define GRANULE 65536u /* bytes that are compared, and sent, at once */

static uint8_t *
shadow_of(struct hed_mapping *p)
{
    if (!p->shadow) /* the memory of both sides begins as zeros */
        p->shadow = calloc(1, p->size);
    return p->shadow;
}

/* The pinned mapping that contains a range. */
static struct hed_mapping *
find_pinned(struct hed_worker *w, uint64_t at, uint64_t size)
{
    struct hed_mapping *p = hed_mapping_find(w->memory, at);

    return p && p->kind == HED_MAPPING_HOST && size <= p->size - (at - p->at) ? p : NULL;
}

static int
take_changes(struct hed_worker_channel *ch, const struct hed_data *d)
{
    const uint64_t n = d->head.bulk;
    uint8_t *from = hed_arena_alloc(&ch->arena, n, 16);
    struct hed_mapping *p;
    int err = from ? hed_channel_bulk_read(ch->channel, from, n) : HED_ENOMEM;

    if (!err)
        err = hed_ticket_wait(ch, d->head.ticket);
    if (err)
        return err;
    p = find_pinned(ch->worker, d->to.at, n);
    if (!p)
        return HED_EFORMAT;

    uint8_t *shadow = shadow_of(p);
    uint8_t *here = (uint8_t *)(uintptr_t)d->to.at;

    if (!shadow)
        return HED_ENOMEM;
    shadow += d->to.at - p->at;
    for (uint64_t i = 0; i < n; i++)
        if (from[i] != shadow[i])
            here[i] = shadow[i] = from[i];
    return 0;
}

static int
send_granule(struct hed_worker_channel *ch, uint64_t at, uint8_t *shadow, uint64_t n)
{
    struct hed_data *d = hed_channel_begin(ch->channel, sizeof *d);

    if (!d)
        return HED_EIO;
    /* Copied once and sent from the copy, since a device may still be writing. */
    memcpy(shadow, (const void *)(uintptr_t)at, n);
    memset(d, 0, sizeof *d);
    d->head =
        (struct hed_msg){.size = sizeof *d, .kind = HED_MSG_DATA, .thread = ch->thread, .bulk = n};
    d->to.at = at;
    d->box.width = n;
    d->box.height = d->box.depth = 1;

    const int err = hed_channel_end(ch->channel, sizeof *d, false);

    return err ? err : hed_channel_bulk_write(ch->channel, shadow, n);
}

/* Sends what has changed here in a range. */
static int
answer_with_changes(struct hed_worker_channel *ch, const struct hed_data *d)
{
    struct hed_mapping *p = find_pinned(ch->worker, d->to.at, d->box.width);
    uint8_t *shadow = p ? shadow_of(p) : NULL;
    int err = 0;

    if (!p)
        return HED_EFORMAT;
    if (!shadow)
        return HED_ENOMEM;
    for (uint64_t at = d->to.at, end = at + d->box.width; at < end && !err;) {
        const uint64_t next = (at / GRANULE + 1) * GRANULE;
        const uint64_t n = (next < end ? next : end) - at;

        if (memcmp((const void *)(uintptr_t)at, shadow + (at - p->at), n) != 0)
            err = send_granule(ch, at, shadow + (at - p->at), n);
        at += n;
    }
    return err ? err : hed_worker_answer(ch, &d->head, CUDA_SUCCESS, NULL, 0);
}

int
hed_do_sync_host(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_data *d = (const struct hed_data *)m;
    int err;

    if (m->size < sizeof *d || !ch->worker->memory || ch->worker->heap >= 0)
        return HED_EFORMAT;
    if (m->bulk)
        return m->bulk <= GRANULE && !(m->flags & HED_MSG_WANTS_ANSWER) ? take_changes(ch, d)
                                                                        : HED_EFORMAT;
    err = hed_ticket_wait(ch, m->ticket);
    if (err)
        return err;
    return d->box.width && m->flags & HED_MSG_WANTS_ANSWER ? answer_with_changes(ch, d)
                                                           : HED_EFORMAT;
}
