/* A channel for each thread that makes calls. See remote.h.
 *
 * A thread finds its channel through a thread-specific pointer. When the thread ends, its channel
 * is left for another thread. So there are as many channels as there have been threads at the same
 * time. None is closed before the process ends, and so the worker knows when it has.
 *
 * The program may leave its worker for another (mover.h). Then all connections are closed while no
 * thread is in a call, and each thread that comes back opens its own again.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"
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

/* A channel that another thread has left; rather one that is connected. */
static struct hed_remote_channel *
take_left(struct hed_remote *r, uint32_t *thread)
{
    struct hed_remote_channel *ch = NULL;

    hed_lock(&r->channels_lock);
    for (struct hed_remote_channel *c = r->channels; c && !(ch && ch->channel); c = c->next)
        if (!c->taken && (c->channel || !ch))
            ch = c;
    if (ch)
        ch->taken = true;
    else
        *thread = ++r->threads;
    hed_unlock(&r->channels_lock);
    return ch;
}

struct hed_remote_channel *
hed_remote_channel_claim(struct hed_remote *r, uint32_t *thread)
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

    return hed_remote_channel_claim(r, &thread);
}

struct hed_remote_channel *
hed_remote_channel_own(struct hed_remote *r)
{
    struct hed_remote_channel *ch = mine;

    /* Relaxed, both: a channel that has ended fails when it is used. */
    if (atomic_load_explicit(&r->lost, memory_order_relaxed) ||
        atomic_load_explicit(&r->ended, memory_order_relaxed))
        return NULL;
    return ch && ch->remote == r && ch->channel ? ch : NULL;
}

bool
hed_remote_channel_is_own(const struct hed_remote *r)
{
    return mine && mine->remote == r;
}

void
hed_remote_channel_leave(void)
{
    hed_remote_channel_back(NULL);
}

void
hed_remote_channels_forked(struct hed_remote *r)
{
    for (struct hed_remote_channel *ch = r->channels; ch; ch = ch->next)
        hed_channel_forked(ch->channel);
    mine = NULL;
}
