/* How far the streams of a worker have come, as this side knows it. See queue.h.
 *
 * What is known about the numbers of a stream, from weak to strong:
 *
 *   done      the worker has come so far: enough for queries (cuEventQuery, points)
 *   answered  an answer has said so: everything that comes with answers (copies to the program's
 *             memory, output of kernels) is here, so another wait can be skipped
 *
 * Both may lag behind. A wait for a whole context applies to all its streams without looking at
 * each: such waits are numbered (begun), and a stream knows how many had begun when it last got
 * work. A later one that has succeeded (synced) was also a wait for that work.
 *
 * Invariant: answered <= done <= submitted.
 */
#include "base/number.h"
#include "remote/client/queue.h"

/* ---- how far streams have come --------------------------------------------------------------- */

/* Takes waits for the whole context into account. Acquire: pairs with the release in
 * hed_remote_context_wait(), which makes visible what came with that answer. */
void
hed_remote_refresh_locked(struct hed_stream *s)
{
    struct hed_remote_stream *q = hed_remote_stream(s);

    if (q->begun < atomic_load_explicit(&hed_remote_context(s->ctx)->synced, memory_order_acquire))
        q->answered = s->submitted;
    if (s->done < q->answered)
        s->done = q->answered;
}

void
hed_remote_answered(struct hed_stream *s, uint64_t number)
{
    struct hed_remote_stream *q = hed_remote_stream(s);

    hed_lock(&s->lock);
    if (q->answered < number)
        q->answered = number;
    hed_remote_refresh_locked(s);
    hed_unlock(&s->lock);
}

void
hed_remote_told_locked(struct hed_stream *s, uint64_t number)
{
    const struct hed_remote_stream *q = hed_remote_stream(s);

    hed_remote_refresh_locked(s);
    if (number > s->submitted)
        number = s->submitted; /* the worker is not trusted */
    if (q->late > q->answered && number >= q->late)
        number = q->late - 1;
    if (s->done < number)
        s->done = number;
}

bool
hed_remote_is_known_done(struct hed_stream *s, uint64_t number, bool answered)
{
    hed_lock(&s->lock);
    hed_remote_refresh_locked(s);

    const uint64_t reached = answered ? hed_remote_stream(s)->answered : s->done;
    const bool known = reached >= hed_min(number, s->submitted);

    hed_unlock(&s->lock);
    return known;
}

/* The fence pairs with the one in hed_remote_context_wait(): if that wait comes before this work at
 * the worker, its `begun` is visible here. */
void
hed_remote_sent_locked(struct hed_stream *s)
{
    atomic_thread_fence(memory_order_seq_cst);
    hed_remote_stream(s)->begun =
        atomic_load_explicit(&hed_remote_context(s->ctx)->begun, memory_order_relaxed);
}

uint64_t
hed_remote_sent(struct hed_stream *s, bool late)
{
    hed_lock(&s->lock);
    hed_remote_refresh_locked(s);

    const uint64_t number = ++s->submitted;

    if (late)
        hed_remote_stream(s)->late = number;
    hed_remote_sent_locked(s);
    hed_unlock(&s->lock);
    return number;
}

/* ---- copies that the program considers done -------------------------------------------------- */

void
hed_remote_copied(struct hed_stream *s)
{
    hed_lock(&s->lock);
    hed_remote_stream(s)->copied = s->submitted;
    hed_unlock(&s->lock);
    /* Release: pairs with the acquire in hed_remote_settle(). */
    atomic_fetch_add_explicit(&hed_remote_context(s->ctx)->copies, 1, memory_order_release);
}

/* ---- events ---------------------------------------------------------------------------------- */

bool
hed_remote_is_last(struct hed_event *e, struct hed_point p)
{
    hed_lock(&e->lock);

    const bool same = e->point.stream == p.stream && e->point.number == p.number;

    hed_unlock(&e->lock);
    return same;
}
