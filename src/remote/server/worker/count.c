/* What a worker counts for --status. See worker.h.
 *
 * Each channel counts in its own struct, which only its thread writes, and now and then adds its
 * counts to the status that all channels share. So counting costs a message almost nothing. A
 * client that has waited for an answer finds everything counted.
 */
#include "remote/server/status.h"
#include "remote/server/worker/worker.h"
#include "remote/wire/dies.h"

#define COUNTED_MOST 256 /* messages of a channel that --status may not show yet */

/* Moves a channel's count to the shared one. Relaxed: the numbers are only displayed. */
static void
move_count(_Atomic uint64_t *from, _Atomic uint64_t *to)
{
    const uint64_t n = atomic_load_explicit(from, memory_order_relaxed);

    if (n == 0)
        return;
    atomic_store_explicit(from, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

void
hed_worker_tell_counts(struct hed_worker_channel *ch)
{
    struct hed_worker_status *s = ch->worker->start->status;

    if (!s)
        return;
    move_count(&ch->messages, &s->messages);
    move_count(&ch->launches, &s->launches);
    move_count(&ch->bytes_in, &s->bytes_in);
}

/* Relaxed, and not an atomic addition: no other thread writes it. */
static inline uint64_t
add_to_count(_Atomic uint64_t *number, uint64_t n)
{
    n += atomic_load_explicit(number, memory_order_relaxed);
    atomic_store_explicit(number, n, memory_order_relaxed);
    return n;
}

void
hed_worker_count(struct hed_worker_channel *ch, const struct hed_msg *m)
{
    const uint64_t n = add_to_count(&ch->messages, 1);

    hed_dies_count("HED_TEST_WORKER_DIES");
    if (m->kind == HED_MSG_LAUNCH)
        (void)add_to_count(&ch->launches, 1);
    if (m->bulk)
        (void)add_to_count(&ch->bytes_in, m->bulk);
    if (m->flags & HED_MSG_WANTS_ANSWER || n >= COUNTED_MOST)
        hed_worker_tell_counts(ch);
}
