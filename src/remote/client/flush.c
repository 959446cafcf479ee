/* For sockets: makes sure that messages buffered in a channel go out soon, even if the program
 * makes no further call.
 *
 * A thread sleeps until something is buffered, waits a moment for more, and sends it all. It is
 * started with the first buffered message. Shared memory does not need it.
 */
#include "base/clock.h"
#include "base/futex.h"
#include "base/thread.h"
#include "remote/client/remote.h"

#define MOMENT_NS 100000

/* The channel that buffers the lowest ticket below `below`, other than `but`; NULL if there is
 * none. */
static struct hed_remote_channel *
channel_with_lowest_ticket(struct hed_remote *r, const struct hed_remote_channel *but,
                           uint64_t below, uint64_t *ticket)
{
    struct hed_remote_channel *found = NULL;

    hed_lock(&r->channels_lock);
    for (struct hed_remote_channel *ch = r->channels; ch; ch = ch->next) {
        const uint64_t first = ch == but || !ch->channel ? 0 : hed_channel_first(ch->channel);

        if (first && first < below) {
            below = *ticket = first;
            found = ch;
        }
    }
    hed_unlock(&r->channels_lock);
    return found;
}

/* Flushes the lowest tickets first: the worker reads from a connection only when it has received
 * all messages with lower tickets, so writing other messages first could block for ever. For the
 * same reason no lock is held: another thread may have to write what this one waits for. Channels
 * are never freed. */
void
hed_remote_flush_others(struct hed_remote *r, struct hed_remote_channel *own, uint64_t below)
{
    struct hed_remote_channel *ch;
    uint64_t ticket = 0;

    /* Relaxed: a channel of this thread was added before. */
    if (!atomic_load_explicit(&r->buffers, memory_order_relaxed))
        return;
    while ((ch = channel_with_lowest_ticket(r, own, below, &ticket))) {
        if (own &&
            hed_channel_first(own->channel) - 1 < ticket - 1) /* 0 (none) wraps to the highest */
            (void)hed_channel_flush(own->channel);
        (void)hed_channel_flush(ch->channel);
    }
}

static void *
flush_channels(void *arg)
{
    struct hed_remote *r = arg;

    /* Relaxed: this is checked again and again. */
    while (!atomic_load_explicit(&r->lost, memory_order_relaxed)) {
        /* Acquire: pairs with the release in hed_remote_flush_soon(). */
        if (atomic_load_explicit(&r->flush_wanted, memory_order_acquire) == 0) {
            (void)hed_futex_wait_private(&r->flush_wanted, 0, -1);
            continue;
        }
        hed_sleep_ns(MOMENT_NS);
        /* Cleared before flushing: a message that is buffered from now on sets it again. */
        atomic_store_explicit(&r->flush_wanted, 0, memory_order_seq_cst);
        atomic_thread_fence(memory_order_seq_cst);
        /* Relaxed: a message that gets its ticket later asks again. The lock: no channel is closed
         * meanwhile. */
        hed_lock(&r->flush_lock);
        hed_remote_flush_others(r, NULL,
                                atomic_load_explicit(&r->tickets, memory_order_relaxed) + 1);
        hed_unlock(&r->flush_lock);
    }
    return NULL;
}

void
hed_remote_flush_soon(struct hed_remote_channel *channel)
{
    struct hed_remote *r = channel->remote;

    if (!atomic_load_explicit(&r->buffers, memory_order_relaxed))
        return;
    /* Pairs with the thread's fence: either the thread sees the buffered message, or this sees that
     * the thread has cleared the flag. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&r->flush_wanted, memory_order_seq_cst) != 0)
        return;
    if (!atomic_exchange_explicit(&r->flusher, true, memory_order_relaxed)) /* only one starts it */
        (void)hed_thread_detached(NULL, flush_channels, r);
    /* Release: pairs with the acquire in the thread. */
    atomic_store_explicit(&r->flush_wanted, 1, memory_order_release);
    (void)hed_futex_wake_private(&r->flush_wanted, 1);
}
