/* Copies to memory of this process for which no thread waits. Their bytes come before the answer to
 * some later message, on the channel of the thread that sent that message.
 *
 * Invariants:
 * 1. Only bytes that were requested are written: a piece is in the list from before it is requested
 *    until its bytes have been written, and bytes that fit no piece end the session.
 * 2. Pieces are numbered in the order in which the worker sends them, and an answer says how many
 *    pieces it has sent on all channels before it. The thread that reads the answer waits until all
 *    of those have been written. So a thread that waited for a stream finds its bytes, even if they
 *    came on another thread's channel. That thread is reading at this moment, so the wait is short.
 *    Counting pieces would not be enough: later ones may overtake on channels of their own.
 * 3. Of two pieces for the same memory, the one with the higher number is written last: before it
 *    is read, its thread waits until no other piece for that memory is left that has a lower number
 *    or none yet. Pieces with lower numbers are being read on their channels, so no two threads
 *    wait for each other.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "remote/client/memory.h"

#define LOOK_NS (50 * HED_NS_PER_MS) /* how often to check whether the session is lost */
#define COMPARED_MOST 256            /* pieces; with more, all lower numbers are waited for */

bool
hed_remote_deferred_room(struct hed_remote *r, uint64_t bytes)
{
    struct hed_remote_copies *c = r->copies;

    hed_lock(&c->lock);

    /* Relaxed: other threads may each add the pieces of one copy meanwhile, for which there is
     * room. */
    const bool room =
        bytes <= HED_DEFERRED_MAX && c->bytes <= HED_DEFERRED_MAX - bytes &&
        atomic_load_explicit(&c->count, memory_order_relaxed) <= HED_DEFERRED_PIECES_MAX;

    if (room)
        c->bytes += bytes;
    hed_unlock(&c->lock);
    return room;
}

bool
hed_remote_deferred_add(struct hed_remote *r, const struct hed_remote_deferred *piece)
{
    struct hed_remote_copies *c = r->copies;
    struct hed_remote_deferred *p = malloc(sizeof *p);

    if (!p)
        return false;
    *p = *piece;
    p->next = NULL;
    hed_lock(&c->lock);
    *c->last = p;
    c->last = &p->next;
    hed_unlock(&c->lock);
    /* Relaxed: a thread that reads it has requested the piece itself, or need not see it. */
    atomic_fetch_add_explicit(&c->count, 1, memory_order_relaxed);
    return true;
}

/* Finds the piece that the data belong to, which is being read from now on; NULL if they were not
 * requested. Of several for one place, any will do. */
static struct hed_remote_deferred *
open_piece(struct hed_remote_copies *c, const struct hed_data *d)
{
    struct hed_remote_deferred *p;

    hed_lock(&c->lock);
    for (p = c->first; p; p = p->next)
        if (p->number == 0 && p->to.at == d->to.at && p->to.pitch == d->to.pitch &&
            p->to.slice == d->to.slice && memcmp(&p->box, &d->box, sizeof p->box) == 0)
            break;
    if (p)
        p->number = d->head.number;
    hed_unlock(&c->lock);
    return p;
}

static bool
piece_overlaps(const struct hed_remote_deferred *p, uint64_t at, uint64_t size)
{
    uint64_t n = 0;

    (void)hed_side_span(&p->to, &p->box, &n); /* cannot fail: checked with the copy */
    return at < p->to.at + n && p->to.at < at + size;
}

/* Is no earlier piece left that may write to the memory of this one? */
static bool
is_next_locked(const struct hed_remote_copies *c, const struct hed_remote_deferred *p)
{
    uint64_t n = 0;

    /* Relaxed: it changes under the lock only. */
    if (atomic_load_explicit(&c->received, memory_order_relaxed) >= p->number - 1)
        return true;
    /* Relaxed: whether there are a few more or less does not matter. */
    if (atomic_load_explicit(&c->count, memory_order_relaxed) > COMPARED_MOST)
        return false;
    (void)hed_side_span(&p->to, &p->box, &n);
    for (const struct hed_remote_deferred *q = c->first; q; q = q->next)
        if (q != p && q->number <= p->number && piece_overlaps(q, p->to.at, n))
            return false;
    return true;
}

/* Waits for a moment until a piece has come. False if the session is over, so that none will. */
static bool
await_piece_locked(struct hed_remote *r)
{
    if (atomic_load_explicit(&r->lost, memory_order_relaxed) ||
        atomic_load_explicit(&r->ended, memory_order_relaxed))
        return false;
    (void)hed_lock_wait(&r->copies->lock, &r->copies->came, hed_now_ns() + LOOK_NS);
    return true;
}

/* Until it is the piece's turn, or the session is lost. */
static void
wait_for_turn(struct hed_remote *r, const struct hed_remote_deferred *p)
{
    hed_lock(&r->copies->lock);
    while (!is_next_locked(r->copies, p) && await_piece_locked(r))
        continue;
    hed_unlock(&r->copies->lock);
}

static int
read_rows(struct hed_channel *channel, const struct hed_remote_deferred *p)
{
    int err = 0;

    if (p->box.height == 1 && p->box.depth == 1)
        return hed_channel_bulk_read(channel, (void *)(uintptr_t)p->to.at, p->box.width);
    for (uint64_t z = 0; z < p->box.depth; z++)
        for (uint64_t y = 0; y < p->box.height && !err; y++)
            err = hed_channel_bulk_read(channel, (void *)(uintptr_t)hed_side_at(&p->to, 0, y, z),
                                        p->box.width);
    return err;
}

static bool
copy_has_come(const struct hed_remote_copies *c, uint64_t number)
{
    return c->come[number % HED_DEFERRED_AHEAD / 64] >> number % 64 & 1;
}

/* Notes that a piece has arrived, and advances the number up to which there is no gap. */
static int
note_locked(struct hed_remote_copies *c, uint64_t number)
{
    /* Relaxed: it changes under the lock only. */
    uint64_t all = atomic_load_explicit(&c->received, memory_order_relaxed);

    if (number <= all || number - all >= HED_DEFERRED_AHEAD || copy_has_come(c, number))
        return HED_EFORMAT;
    c->come[number % HED_DEFERRED_AHEAD / 64] |= UINT64_C(1) << number % 64;
    while (copy_has_come(c, all + 1)) {
        all++;
        c->come[all % HED_DEFERRED_AHEAD / 64] &= ~(UINT64_C(1) << all % 64);
    }
    /* Release: pairs with hed_remote_received(). */
    atomic_store_explicit(&c->received, all, memory_order_release);
    return 0;
}

/* The piece has arrived. The number is noted last: a thread that waits for it sees the bytes. */
static int
finish_copy(struct hed_remote_copies *c, struct hed_remote_deferred *p)
{
    struct hed_remote_deferred **link = &c->first;

    hed_lock(&c->lock);
    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    if (!*link)
        c->last = link;
    c->bytes -= hed_box_bytes(&p->box);
    /* Relaxed: as where it was added. */
    atomic_fetch_sub_explicit(&c->count, 1, memory_order_relaxed);

    const int err = note_locked(c, p->number);

    (void)pthread_cond_broadcast(&c->came);
    hed_unlock(&c->lock);
    free(p);
    return err;
}

int
hed_remote_data(struct hed_remote_channel *channel, const struct hed_data *d)
{
    struct hed_remote_copies *c = channel->remote->copies;
    struct hed_remote_deferred *p;
    int err = 0;

    if (d->to.pitch == 0)
        return hed_remote_mirror_data(channel, d);
    p = d->head.number ? open_piece(c, d) : NULL;
    if (!p || (d->head.bulk != 0 && d->head.bulk != hed_box_bytes(&p->box)))
        return HED_EFORMAT;
    if (d->head.bulk) {
        wait_for_turn(channel->remote, p);
        err = read_rows(channel->channel, p);
    }
    /* This comes before other threads, which wait for these bytes, are told to stop waiting. */
    if (err)
        hed_remote_lose_channel(channel->remote, channel->channel, err);

    const int noted = finish_copy(c, p);

    return err ? err : noted;
}

void
hed_remote_received(struct hed_remote *r, uint64_t pieces)
{
    struct hed_remote_copies *c = r->copies;

    /* Acquire: pairs with note_locked(). */
    if (atomic_load_explicit(&c->received, memory_order_acquire) >= pieces)
        return;
    hed_lock(&c->lock);
    while (atomic_load_explicit(&c->received, memory_order_acquire) < pieces &&
           await_piece_locked(r))
        continue;
    hed_unlock(&c->lock);
}

bool
hed_remote_deferred_touches(struct hed_remote *r, uint64_t at, uint64_t size)
{
    struct hed_remote_copies *c = r->copies;
    bool touches = false;

    /* Relaxed: see hed_remote_deferred_add(). */
    if (atomic_load_explicit(&c->count, memory_order_relaxed) == 0)
        return false;
    hed_lock(&c->lock);
    for (const struct hed_remote_deferred *p = c->first; p && !touches; p = p->next)
        touches = piece_overlaps(p, at, size);
    hed_unlock(&c->lock);
    return touches;
}
