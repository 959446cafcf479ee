/* Turns: a program may have more threads than its session may have channels (`--channels` of the
 * server). Then some threads have a channel only while they are in a call.
 *
 *   call begins: the thread has a turn ──────────────────────────> the call, with its channel
 *                it has none: a turn, when there is one to have ──╯
 *   call ends:   few threads keep theirs so far: it keeps turn and channel until it ends
 *                otherwise both are for the next thread
 *
 * Invariants:
 * 1. A thread of the program uses a channel only while it has a turn, and there are as many turns
 *    as channels. So a channel that is needed can always be had.
 * 2. A thread waits for a turn only when its call begins: it holds no lock then, and no channel.
 * 3. Those that have a turn and do not keep it are in a call. Some turns are never kept, so a
 *    thread that waits gets one when a call ends.
 */
#include "base/clock.h"
#include "base/log.h"
#include "remote/client/remote.h"

#define LOOK_NS (200 * HED_NS_PER_MS) /* how often a waiting thread looks whether all is lost */
#define OWN_CHANNELS 8u               /* of heddle's own threads, if there are enough */

static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local const struct hed_remote *turn_of; /* the thread has a turn there */
static _Thread_local bool keeps;
static _Thread_local unsigned depth; /* calls within calls */

void
hed_remote_turns_told(struct hed_remote *r, uint32_t channels)
{
    r->turns = channels > 2 * OWN_CHANNELS ? channels - OWN_CHANNELS : (channels + 1) / 2;
}

static uint32_t
most_kept(const struct hed_remote *r)
{
    return r->turns - (r->turns + 3) / 4;
}

/* The channel has been left. */
static void
leave_turn(struct hed_remote *r)
{
    hed_lock(&r->channels_lock);
    r->turns_taken--;
    r->turns_kept -= keeps;
    (void)pthread_cond_signal(&r->turn);
    hed_unlock(&r->channels_lock);
    turn_of = NULL;
    keeps = false;
    (void)pthread_setspecific(at_end, NULL);
}

/* The thread ends. Its channel must be left before its turn. */
static void
thread_ends(void *arg)
{
    hed_remote_channel_leave();
    leave_turn(arg);
}

static void
make_turn_key(void)
{
    (void)pthread_key_create(&at_end, thread_ends);
}

static void
take_turn(struct hed_remote *r)
{
    static _Atomic bool said;

    hed_lock(&r->channels_lock);
    /* Relaxed, both: they are looked at again soon. */
    while (r->turns_taken >= r->turns && !atomic_load_explicit(&r->lost, memory_order_relaxed) &&
           !atomic_load_explicit(&r->ended, memory_order_relaxed)) {
        if (!atomic_exchange_explicit(&said, true, memory_order_relaxed))
            hed_warn(REMOTE,
                     "%u threads are in a call, so others wait for them: the server allows no more "
                     "channels (--channels)",
                     r->turns_taken);
        (void)hed_lock_wait(&r->channels_lock, &r->turn, hed_now_ns() + LOOK_NS);
    }
    r->turns_taken++;
    hed_unlock(&r->channels_lock);
    turn_of = r;
    (void)pthread_once(&once, make_turn_key);
    (void)pthread_setspecific(at_end, r);
}

void
hed_remote_turn_begins(struct hed_remote *r)
{
    if (depth++ == 0 && r->turns && turn_of != r)
        take_turn(r);
}

void
hed_remote_turn_ends(struct hed_remote *r)
{
    if (--depth > 0 || keeps || turn_of != r)
        return;
    if (hed_remote_channel_is_own(r)) {
        hed_lock(&r->channels_lock);
        keeps = r->turns_kept < most_kept(r);
        r->turns_kept += keeps;
        hed_unlock(&r->channels_lock);
        if (keeps)
            return;
        hed_remote_channel_leave();
    }
    leave_turn(r);
}
