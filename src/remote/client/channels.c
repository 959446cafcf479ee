/* A channel for each thread that makes calls. See remote.h.
 *
 * A thread finds its channel through a thread-specific pointer. When the thread ends, its channel
 * is left for another thread. So there are as many channels as there have been threads at the same
 * time. None is closed before the process ends, and so the worker knows when it has.
 *
 * The program may leave its worker for another (snap/). Then all connections are closed while no
 * thread is in a call, and each thread that comes back opens its own again.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "remote/client/mover.h"
#include "remote/client/remote.h"

static _Thread_local struct hed_remote_channel *mine;
static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The thread ends: leaves its channel for another thread. */
static void
leave_channel(void *arg)
{
    struct hed_remote_channel *ch = arg;

    mine = NULL;
    hed_lock(&ch->remote->channels_lock);
    ch->taken = false;
    hed_unlock(&ch->remote->channels_lock);
    hed_remote_flush_soon(ch);
}

struct hed_remote_channel *
hed_remote_channel_aside(void)
{
    struct hed_remote_channel *ch = mine;

    mine = NULL;
    if (ch)
        (void)pthread_setspecific(at_end, NULL);
    return ch;
}

void
hed_remote_channel_back(struct hed_remote_channel *aside)
{
    struct hed_remote_channel *ch = hed_remote_channel_aside();

    if (ch)
        leave_channel(ch);
    mine = aside;
    if (aside)
        (void)pthread_setspecific(at_end, aside);
}

static void
make_channel_key(void)
{
    (void)pthread_key_create(&at_end, leave_channel);
}

int
hed_remote_say_attach(struct hed_remote *r, struct hed_channel *channel, uint32_t thread,
                      enum hed_channel_purpose purpose, const uint8_t *key)
{
    struct hed_attach *a = hed_channel_begin(channel, sizeof *a);

    if (!a)
        return HED_EIO;
    memset(a, 0, sizeof *a);
    a->head.size = sizeof *a;
    a->head.kind = HED_MSG_ATTACH;
    a->head.thread = thread;
    memcpy(a->session, r->session, sizeof a->session);
    memcpy(a->secret, r->secret, sizeof a->secret);
    if (key)
        memcpy(a->key, key, sizeof a->key);
    a->purpose = purpose;
    return hed_channel_end(channel, sizeof *a, true);
}

int
hed_remote_channel_open(struct hed_remote *r, uint32_t thread, enum hed_channel_purpose purpose,
                        struct hed_channel **out, struct hed_why *why)
{
    struct hed_conn *conn;
    int err = hed_remote_call_on(r, HED_PREFACE_CHANNEL, &conn, why);

    if (!err && r->in_window) /* it need not be looked for again */
        hed_conn_set_window(conn, &r->window);
    if (!err)
        err = hed_channel_create(conn, r->address.transport->channel, out, why);
    if (!err && purpose == HED_CHANNEL_CALLS)
        err = hed_remote_patience(r, *out);
    if (!err)
        err = hed_remote_say_attach(r, *out, thread, purpose, NULL);
    if (err && *out) {
        hed_channel_free(*out);
        *out = NULL;
    }
    return err;
}

void
hed_remote_channel_use(struct hed_remote_channel *ch, struct hed_channel *channel)
{
    hed_lock(&ch->remote->channels_lock);
    ch->channel = channel;
    hed_unlock(&ch->remote->channels_lock);
    if (channel && channel->ops->flush) /* relaxed: it stays set */
        atomic_store_explicit(&ch->remote->buffers, true, memory_order_relaxed);
}

static struct hed_remote_channel *
list_channel(struct hed_remote *r, struct hed_channel *channel, uint32_t thread, bool taken)
{
    struct hed_remote_channel *ch = calloc(1, sizeof *ch);

    if (!ch)
        return NULL;
    (void)pthread_once(&once, make_channel_key);
    ch->remote = r;
    ch->channel = channel;
    ch->thread = thread;
    ch->taken = taken;
    if (channel->ops->flush) /* relaxed: it stays set */
        atomic_store_explicit(&r->buffers, true, memory_order_relaxed);
    hed_lock(&r->channels_lock);
    ch->next = r->channels;
    r->channels = ch;
    hed_unlock(&r->channels_lock);
    return ch;
}

int
hed_remote_channel_adopt(struct hed_remote *r, struct hed_channel *channel)
{
    uint32_t thread;

    hed_lock(&r->channels_lock);
    thread = r->channels ? ++r->threads : 0;
    hed_unlock(&r->channels_lock);
    return list_channel(r, channel, thread, false) ? 0 : HED_ENOMEM;
}

void
hed_remote_channels_deal(struct hed_remote *r)
{
    struct hed_remote_channel *spare, *lacks;

    hed_lock(&r->channels_lock);
    do {
        for (spare = r->channels; spare && (spare->taken || !spare->channel); spare = spare->next)
            continue;
        for (lacks = r->channels; lacks && (!lacks->taken || lacks->channel); lacks = lacks->next)
            continue;
        if (spare && lacks) {
            lacks->channel = spare->channel;
            spare->channel = NULL;
        }
    } while (spare && lacks);
    hed_unlock(&r->channels_lock);
}

struct hed_remote_channel *
hed_remote_channel_add(struct hed_remote *r, struct hed_channel *channel, uint32_t thread)
{
    struct hed_remote_channel *ch = list_channel(r, channel, thread, true);

    if (!ch)
        return NULL;
    mine = ch;
    (void)pthread_setspecific(at_end, ch);
    return ch;
}

/* A channel that another thread has left. */
static struct hed_remote_channel *
take_left(struct hed_remote *r, uint32_t *thread)
{
    struct hed_remote_channel *ch;

    hed_lock(&r->channels_lock);
    for (ch = r->channels; ch && ch->taken; ch = ch->next)
        continue;
    if (ch)
        ch->taken = true;
    else
        *thread = ++r->threads;
    hed_unlock(&r->channels_lock);
    return ch;
}

/* The thread's channel, which may have no connection yet; NULL if there is none. */
static struct hed_remote_channel *
own_or_left(struct hed_remote *r, uint32_t *thread)
{
    struct hed_remote_channel *ch = mine && mine->remote == r ? mine : take_left(r, thread);

    if (ch && ch != mine) {
        mine = ch;
        (void)pthread_setspecific(at_end, ch);
    }
    return ch;
}

struct hed_remote_channel *
hed_remote_channel_of_thread(struct hed_remote *r)
{
    uint32_t thread = 0;

    return own_or_left(r, &thread);
}

static struct hed_remote_channel *
get_channel(struct hed_remote *r)
{
    struct hed_why why = {""};
    struct hed_channel *channel = NULL;
    struct hed_why lost;
    uint32_t thread = 0;
    struct hed_remote_channel *ch;

    if (r->mover)
        r->mover->await_worker(r);
    ch = own_or_left(r, &thread);
    if (ch && ch->channel)
        return ch;
    if (hed_remote_channel_open(r, ch ? ch->thread : thread, HED_CHANNEL_CALLS, &channel, &why) !=
        0)
        ch = NULL;
    else if (!ch)
        ch = hed_remote_channel_add(r, channel, thread);
    else
        hed_remote_channel_use(ch, channel);
    if (!ch) {
        hed_why_set(&lost, "no connection for thread %u (is the server's --channels reached?): %s",
                    thread + 1, why.text[0] ? why.text : hed_err_text(HED_ENOMEM));
        hed_remote_lose(r, lost.text);
    }
    return ch;
}

struct hed_remote_channel *
hed_remote_channel(struct hed_remote *r)
{
    struct hed_remote_channel *ch = mine;

    /* Relaxed, both: a channel that has ended fails when it is used. */
    if (atomic_load_explicit(&r->lost, memory_order_relaxed) ||
        atomic_load_explicit(&r->ended, memory_order_relaxed))
        return NULL;
    return ch && ch->remote == r && ch->channel ? ch : get_channel(r);
}

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

void
hed_remote_channels_forked(struct hed_remote *r)
{
    for (struct hed_remote_channel *ch = r->channels; ch; ch = ch->next)
        hed_channel_forked(ch->channel);
    mine = NULL;
}
