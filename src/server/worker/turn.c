/* Turns: messages of all channels are done in the order of their tickets. See worker.h.
 *
 *   take(T): waits until turn == T        pass: turn = T + 1, wakes who waits
 *
 * A client with one thread never waits here: its next ticket is always the one whose turn it is.
 * A waiter looks for a moment and then sleeps on `turn_bell`, which is rung only when somebody
 * sleeps. The last look before sleeping comes after the waiter has been counted, and the bell is
 * rung after the turn has changed, so one of the two sees the other.
 */
#include <limits.h>

#include "base/err.h"
#include "base/futex.h"
#include "base/relax.h"
#include "server/worker/worker.h"

#define LOOKS 200                           /* before sleeping */
#define SLEEP_NS INT64_C(200 * 1000 * 1000) /* then the end of the session is looked for */

static bool
is_turn(struct hed_worker *w, uint64_t ticket)
{
    /* Sequentially consistent: against turn_waiters, as the head of this file says; and what the
     * last one did is seen. */
    return atomic_load_explicit(&w->turn, memory_order_seq_cst) == ticket;
}

static int
sleep_for(struct hed_worker *w, uint64_t ticket)
{
    int err = 0;

    atomic_fetch_add_explicit(&w->turn_waiters, 1, memory_order_seq_cst);
    for (;;) {
        /* Acquire: pairs with the ring in hed_turn_pass. */
        const uint32_t bell = atomic_load_explicit(&w->turn_bell, memory_order_acquire);

        if (is_turn(w, ticket))
            break;
        (void)hed_futex_wait_private(&w->turn_bell, bell, SLEEP_NS);
        /* Relaxed: seeing it a little later is as good. */
        if (atomic_load_explicit(&w->ending, memory_order_relaxed)) {
            err = HED_EIO;
            break;
        }
    }
    atomic_fetch_sub_explicit(&w->turn_waiters, 1, memory_order_relaxed);
    return err;
}

int
hed_turn_take(struct hed_worker_channel *ch, uint64_t ticket)
{
    struct hed_worker *w = ch->worker;

    /* Acquire: what was done in earlier turns is seen (pass). */
    const uint64_t turn = atomic_load_explicit(&w->turn, memory_order_acquire);

    if (ticket < turn || ticket == 0)
        return HED_EFORMAT;
    for (int i = 0; i < LOOKS && !is_turn(w, ticket); i++)
        hed_relax();
    if (!is_turn(w, ticket)) {
        const int err = sleep_for(w, ticket);

        if (err)
            return err;
    }
    ch->ticket = ticket;
    return 0;
}

void
hed_turn_pass(struct hed_worker_channel *ch)
{
    struct hed_worker *w = ch->worker;

    if (!ch->ticket)
        return;
    atomic_store_explicit(&w->turn, ch->ticket + 1, memory_order_seq_cst);
    ch->ticket = 0;
    if (atomic_load_explicit(&w->turn_waiters, memory_order_seq_cst) == 0)
        return;
    /* Release: who hears the bell sees the turn. */
    atomic_fetch_add_explicit(&w->turn_bell, 1, memory_order_release);
    (void)hed_futex_wake_private(&w->turn_bell, INT_MAX);
}
