/* Ticket order: the messages of all channels are handled in the order of their tickets.
 *
 *   hed_ticket_wait(T): waits until next_ticket == T        hed_ticket_pass: next_ticket = T + 1
 *
 * A client with one thread never waits here, because its next message always has the next ticket.
 * A thread that has to wait spins for a moment and then sleeps on `ticket_wakeups`, which changes
 * only when a thread sleeps. The sleeper counts itself before it looks at next_ticket for the last
 * time, and the sleepers are woken after next_ticket has changed: one of the two sees the other.
 */
#include <limits.h>

#include "base/err.h"
#include "base/futex.h"
#include "base/relax.h"
#include "remote/server/worker/worker.h"

#define LOOKS 200                           /* at next_ticket, before the thread sleeps */
#define SLEEP_NS INT64_C(200 * 1000 * 1000) /* then it checks whether the session has ended */

static bool
is_next(struct hed_worker *w, uint64_t ticket)
{
    /* Sequentially consistent: ordered against ticket_waiters, as the head of this file says. It
     * also makes visible what the previous ticket's thread did. */
    return atomic_load_explicit(&w->next_ticket, memory_order_seq_cst) == ticket;
}

static int
sleep_until_next(struct hed_worker *w, uint64_t ticket)
{
    int err = 0;

    atomic_fetch_add_explicit(&w->ticket_waiters, 1, memory_order_seq_cst);
    for (;;) {
        /* Acquire: pairs with the release in hed_ticket_pass(). */
        const uint32_t wakeups = atomic_load_explicit(&w->ticket_wakeups, memory_order_acquire);

        if (is_next(w, ticket))
            break;
        (void)hed_futex_wait_private(&w->ticket_wakeups, wakeups, SLEEP_NS);
        /* Relaxed: it does not matter if the end is noticed a little later. */
        if (atomic_load_explicit(&w->ending, memory_order_relaxed)) {
            err = HED_EIO;
            break;
        }
    }
    atomic_fetch_sub_explicit(&w->ticket_waiters, 1, memory_order_relaxed);
    return err;
}

int
hed_ticket_wait(struct hed_worker_channel *ch, uint64_t ticket)
{
    struct hed_worker *w = ch->worker;

    /* Acquire: pairs with the store in hed_ticket_pass(); earlier tickets' effects are visible. */
    const uint64_t next = atomic_load_explicit(&w->next_ticket, memory_order_acquire);

    if (ticket < next || ticket == 0)
        return HED_EFORMAT;
    for (int i = 0; i < LOOKS && !is_next(w, ticket); i++)
        hed_relax();
    if (!is_next(w, ticket)) {
        const int err = sleep_until_next(w, ticket);

        if (err)
            return err;
    }
    if (hed_worker_is_left(ch)) /* it came on an old channel after the client has gone */
        return HED_EFORMAT;
    ch->ticket = ticket;
    return 0;
}

void
hed_ticket_pass(struct hed_worker_channel *ch)
{
    struct hed_worker *w = ch->worker;

    if (!ch->ticket)
        return;
    atomic_store_explicit(&w->next_ticket, ch->ticket + 1, memory_order_seq_cst);
    ch->ticket = 0;
    if (atomic_load_explicit(&w->ticket_waiters, memory_order_seq_cst) == 0)
        return;
    /* Release: a thread that is woken sees the new next_ticket. */
    atomic_fetch_add_explicit(&w->ticket_wakeups, 1, memory_order_release);
    (void)hed_futex_wake_private(&w->ticket_wakeups, INT_MAX);
}
