/* A worker whose client is away. See worker.h.
 *
 *   HED_MSG_PARK ──> is anything under way? ──> a key; the channels' life is over
 *       the client closes its connections; the worker keeps everything else and waits
 *   HED_CHANNEL_RETURN with the secret and the key ──> a new life: tickets begin at 1
 *
 * Invariants:
 * 1. A channel belongs to the life in which it was added. Its end is the end of the session only in
 *    that life; in a later one, only its thread ends.
 * 2. While the worker is parked it has no channel of its life, and hears no message.
 * 3. A key is good for one return, and is the secret of the life that begins with it. So a channel
 *    that comes late, from before, is refused.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "remote/server/status.h"
#include "remote/server/worker/copy.h"
#include "remote/server/worker/graph.h"
#include "remote/server/worker/worker.h"

bool
hed_worker_is_left(const struct hed_worker_channel *ch)
{
    /* Acquire: pairs with the release in begin_parking(). The client closes a channel after it has
     * the answer, which was sent after that. */
    return ch->life != atomic_load_explicit(&ch->worker->life, memory_order_acquire);
}

bool
hed_worker_knows(struct hed_worker *w, const struct hed_attach *a, uint32_t *life)
{
    hed_lock(&w->lock);

    const bool knows = hed_same_secret(a->secret, w->secret, sizeof w->secret) &&
                       w->parked == (a->purpose == HED_CHANNEL_RETURN);

    *life = atomic_load_explicit(&w->life, memory_order_relaxed); /* under the lock */
    hed_unlock(&w->lock);
    return knows;
}

/* ---- parking --------------------------------------------------------------------------------- */

/* Does no other channel have a message, and none a graph that is half described? */
static bool
are_channels_quiet(struct hed_worker_channel *own)
{
    struct hed_worker *w = own->worker;
    bool quiet = true;

    hed_lock(&w->lock);
    for (struct hed_worker_channel *ch = w->channels; ch && quiet; ch = ch->next)
        /* Relaxed: a message that has a lower ticket is visible, and one that comes only now is
         * refused. */
        quiet = hed_worker_is_left(ch) ||
                ((ch == own || atomic_load_explicit(&ch->taken, memory_order_relaxed) % 2 == 0) &&
                 !hed_worker_has_draft(ch));
    hed_unlock(&w->lock);
    return quiet;
}

static void
show_parked(const struct hed_worker *w, uint64_t ns)
{
    if (w->start->status) /* relaxed: only displayed */
        atomic_store_explicit(&w->start->status->parked_ns, ns, memory_order_relaxed);
}

/* From now on the end of the channels that exist is not the end of the client. */
static void
begin_parking(struct hed_worker *w, const uint8_t *key)
{
    hed_lock(&w->lock);
    w->parked = true;
    w->parked_ns = hed_now_ns();
    memcpy(w->key, key, sizeof w->key);
    /* Release: pairs with the acquire in hed_worker_is_left(). */
    atomic_fetch_add_explicit(&w->life, 1, memory_order_release);
    hed_unlock(&w->lock);
    show_parked(w, w->parked_ns);
    hed_info(SERVER, "the client has parked its session");
}

int
hed_do_park(struct hed_worker_channel *ch, struct hed_msg *m)
{
    struct hed_worker *w = ch->worker;
    struct hed_park_answer a;
    int err = hed_worker_before_answer(ch);

    memset(&a, 0, sizeof a);
    if (!(w->capabilities & HED_CAN_PARK) || !(m->flags & HED_MSG_WANTS_ANSWER))
        return HED_EFORMAT;
    if (err)
        return err;
    if (getrandom(a.key, sizeof a.key, 0) != (ssize_t)sizeof a.key)
        return hed_worker_answer(ch, m, CUDA_ERROR_OPERATING_SYSTEM, NULL, 0);
    if (hed_copies_are_deferred(w) || !are_channels_quiet(ch) || !hed_worker_host_is_quiet(w))
        return hed_worker_answer(ch, m, CUDA_ERROR_NOT_READY, NULL, 0);
    /* Before the answer: when the client returns, tickets begin anew. */
    hed_ticket_pass(ch);
    begin_parking(w, a.key);
    hed_worker_host_leave(w);
    err = hed_worker_answer_with(ch, m, CUDA_SUCCESS, &a, sizeof a, 0);
    explicit_bzero(&a, sizeof a);
    if (err) /* nobody knows the key */
        hed_worker_exit(w, HED_EIO);
    return 0;
}

/* ---- the end of a channel -------------------------------------------------------------------- */

void
hed_worker_leave(struct hed_worker_channel *ch)
{
    struct hed_worker *w = ch->worker;

    hed_copies_leave(ch);
    hed_worker_tell_counts(ch);
    hed_lock(&w->lock);
    for (struct hed_worker_channel **at = &w->channels; *at; at = &(*at)->next)
        if (*at == ch) {
            *at = ch->next;
            break;
        }
    if (w->start->status)
        w->start->status->channels--;
    hed_unlock(&w->lock);
    hed_channel_free(ch->channel);
    hed_arena_fini(&ch->arena);
    free(ch->drafts);
    free(ch);
}

/* ---- the return ------------------------------------------------------------------------------ */

/* The client has closed its old channels, or should have: none of them may stay. */
static int
begin_life(struct hed_worker *w, struct hed_channel *channel, const struct hed_attach *a)
{
    const bool in_window = hed_channel_window_of(channel, &(void *){NULL}) != NULL;

    hed_lock(&w->lock);

    const bool right = w->parked && in_window == w->in_window && a->head.size >= sizeof *a &&
                       hed_same_secret(a->key, w->key, sizeof w->key);

    if (right) {
        w->parked = false;
        memcpy(w->secret, w->key, sizeof w->secret);
        explicit_bzero(w->key, sizeof w->key);
        for (struct hed_worker_channel *ch = w->channels; ch; ch = ch->next)
            hed_channel_stop(ch->channel);
    }
    hed_unlock(&w->lock);
    return right ? 0 : HED_EACCESS;
}

int
hed_worker_take_back(struct hed_worker *w, struct hed_channel *channel, const struct hed_attach *a,
                     uint32_t life, struct hed_worker_channel **out)
{
    const struct hed_msg question = a->head;
    const int fd = w->slots_fd;
    int err = begin_life(w, channel, a);

    if (err)
        return err;
    show_parked(w, 0);
    hed_worker_host_return(w, channel);
    /* Release: the thread that waits for ticket 1 sees what was done before. */
    atomic_store_explicit(&w->next_ticket, 1, memory_order_release);
    *out = hed_worker_channel_add(w, channel, question.thread, life);
    err = *out ? hed_worker_answer(*out, &question, CUDA_SUCCESS, NULL, 0) : HED_ENOMEM;
    if (!err && fd >= 0)
        err = hed_conn_send_fds(hed_channel_conn(channel), &fd, 1);
    if (err) /* the key is used up */
        hed_worker_exit(w, err);
    hed_info(SERVER, "the client has returned");
    return 0;
}
