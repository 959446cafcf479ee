/* Leaving the worker, and coming to another one or back. See snap.h.
 *
 *               part                        arrive, return
 *   at a worker ─────> away: no connection ───────────────> at a worker
 *        └───────────────────────── arrive ────────────────────┘  the old one is kept until the end
 */
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/futex.h"
#include "base/log.h"
#include "driver/driver.h"
#include "move/session/park.h"
#include "move/session/reopen.h"
#include "move/session/snap.h"
#include "remote/client.h"

#define GONE_MS 5000                            /* that a worker may take to end */
#define SOON_NS (3 * HED_NS_PER_S)              /* after leaving a worker */
#define AGAIN_NS (UINT64_C(50) * HED_NS_PER_MS) /* between two attempts */

/* ---- the connection to one worker ------------------------------------------------------------ */

static size_t
count_channels(const struct hed_remote *r)
{
    size_t n = 0;

    for (const struct hed_remote_channel *ch = r->channels; ch; ch = ch->next)
        n++;
    return n;
}

/* What a worker has granted, and its devices. Relaxed: no other thread is in the driver. */
static void
leave_devices(struct hed_remote *r, struct hed_remote_attached_device *to)
{
    for (int i = 0; i < r->device_count; i++) {
        struct hed_remote_device *d = &r->devices[i];

        to[i] = (struct hed_remote_attached_device){
            .ordinal = d->ordinal,
            .real = d->real,
            .major = d->major,
            .minor = d->minor,
            .accepts_newer_ptx = d->accepts_newer_ptx,
            .lease = atomic_exchange_explicit(&d->lease, 0, memory_order_relaxed),
            .granted = atomic_exchange_explicit(&r->memory->granted[i], 0, memory_order_relaxed)};
    }
}

static void
take_devices_back(struct hed_remote *r, const struct hed_remote_attached_device *from)
{
    for (int i = 0; i < r->device_count; i++) {
        struct hed_remote_device *d = &r->devices[i];

        d->ordinal = from[i].ordinal;
        d->real = from[i].real;
        d->major = from[i].major;
        d->minor = from[i].minor;
        d->accepts_newer_ptx = from[i].accepts_newer_ptx;
        atomic_store_explicit(&d->lease, from[i].lease, memory_order_relaxed);
        atomic_store_explicit(&r->memory->granted[i], from[i].granted, memory_order_relaxed);
    }
}

/* Takes the connections away from the threads' channels. The lock keeps out the thread that
 * flushes. */
static void
leave_channels(struct hed_remote *r, struct hed_remote_attachment *s, size_t room)
{
    hed_lock(&r->flush_lock);
    for (struct hed_remote_channel *ch = r->channels; ch && s->count < room; ch = ch->next) {
        s->channels[s->count].owner = ch;
        s->channels[s->count++].channel = ch->channel;
        hed_remote_channel_use(ch, NULL);
    }
    hed_unlock(&r->flush_lock);
}

/* Moves everything that belongs to the present worker into `s`, so that there is none. No thread
 * but this one uses a channel; the lock keeps out the thread that flushes. */
static int
leave_worker(struct hed_remote *r, struct hed_remote_attachment *s)
{
    const size_t room = count_channels(r);

    *s = (struct hed_remote_attachment){.channels = calloc(room + 1, sizeof *s->channels)};
    if (!s->channels)
        return HED_ENOMEM;
    if (r->host) /* a standby has none */
        hed_remote_host_leave(r);
    leave_channels(r, s, room);
    s->address = r->address;
    memcpy(s->session, r->session, sizeof s->session);
    memcpy(s->secret, r->secret, sizeof s->secret);
    s->capabilities = r->capabilities;
    s->backend = r->backend;
    /* Relaxed, here and below: no other thread is in the driver. */
    s->tickets = atomic_exchange_explicit(&r->tickets, 0, memory_order_relaxed);
    memcpy(s->slot_used, r->slot_used, sizeof s->slot_used);
    memset(r->slot_used, 0, sizeof r->slot_used);
    s->slots = r->slots;
    s->slot_count = r->slot_count;
    s->failures_seen = atomic_exchange_explicit(&r->failures_seen, 0, memory_order_relaxed);
    s->received = atomic_exchange_explicit(&r->copies->received, 0, memory_order_relaxed);
    s->shares_heap = r->shares_heap;
    s->known = r->moving->known;
    r->moving->known = NULL;
    leave_devices(r, s->devices);
    r->slots = NULL;
    r->slot_count = 0;
    return 0;
}

/* Puts an attachment back. The present one has been left. */
static void
take_worker_back(struct hed_remote *r, struct hed_remote_attachment *s)
{
    r->address = s->address;
    memcpy(r->session, s->session, sizeof r->session);
    memcpy(r->secret, s->secret, sizeof r->secret);
    r->capabilities = s->capabilities;
    r->backend = s->backend;
    atomic_store_explicit(&r->tickets, s->tickets, memory_order_relaxed);
    memcpy(r->slot_used, s->slot_used, sizeof r->slot_used);
    r->slots = s->slots;
    r->slot_count = s->slot_count;
    atomic_store_explicit(&r->failures_seen, s->failures_seen, memory_order_relaxed);
    atomic_store_explicit(&r->copies->received, s->received, memory_order_relaxed);
    r->shares_heap = s->shares_heap;
    r->moving->known = s->known;
    take_devices_back(r, s->devices);
    for (size_t i = 0; i < s->count; i++)
        hed_remote_channel_use(s->channels[i].owner, s->channels[i].channel);
    free(s->channels);
    s->channels = NULL;
}

/* Ends the connection for good; the worker ends with it. */
static void
close_worker(struct hed_remote_attachment *s)
{
    for (size_t i = 0; i < s->count; i++)
        hed_channel_free(s->channels[i].channel);
    free(s->channels);
    s->channels = NULL;
    if (s->slots)
        (void)munmap((void *)s->slots, s->slot_count * sizeof *s->slots);
}

void
hed_remote_attachment_leave(struct hed_remote *r)
{
    if (r->moving->behind)
        close_worker(r->moving->behind);
    free(r->moving->behind);
    r->moving->behind = NULL;
}

/* Closing takes a while, which is for when the program goes on. */
static void
leave_behind(struct hed_remote *r, struct hed_remote_attachment *s)
{
    hed_remote_attachment_leave(r);
    r->moving->behind = malloc(sizeof *s);
    if (r->moving->behind)
        *r->moving->behind = *s;
    else
        close_worker(s);
}

static void
set_away(struct hed_remote *r, bool away)
{
    /* Release: pairs with the acquire in wait_while_away(). */
    atomic_store_explicit(&r->moving->away, away, memory_order_release);
    if (!away)
        (void)hed_futex_wake_private(&r->moving->away, INT_MAX);
}

static bool
is_away(const struct hed_remote *r)
{
    return atomic_load_explicit(&r->moving->away, memory_order_relaxed) != 0;
}

bool
hed_remote_enter_any(struct hed_remote *r)
{
    struct hed_driver *d = r->driver;
    struct hed_context *found = hed_context_living(d, -1);
    bool entered;

    entered = found && hed_thread_push(d, found);
    if (found)
        hed_context_unref(found);
    return entered;
}

/* The worker is told that this is the end. Its memory is free when it is gone, so waits for that,
 * but not for ever. */
static void
say_bye(struct hed_remote *r)
{
    struct hed_remote_channel *channel;
    struct hed_msg *m = hed_remote_begin(r, HED_MSG_BYE, sizeof *m, 0, 0, 0, &channel);

    if (!m)
        return;

    struct pollfd p = {.fd = hed_conn_fd(hed_channel_conn(channel->channel)), .events = POLLRDHUP};

    if (hed_remote_end(channel, m, sizeof *m) == 0 && hed_channel_flush(channel->channel) == 0)
        (void)poll(&p, 1, GONE_MS);
}

/* ---- part and return ------------------------------------------------------------------------- */

/* The worker that waits has no use any more, or has been returned to. */
static void
forget_waiting(struct hed_remote *r)
{
    free(r->moving->waiting);
    r->moving->waiting = NULL;
    r->moving->parked = false;
}

int
hed_remote_part(struct hed_remote *r, bool park, struct hed_why *why)
{
    struct hed_remote_attachment s;
    int err = is_away(r) ? HED_ESTATE : 0;

    if (!err && park && !(r->moving->waiting = malloc(sizeof s)))
        err = HED_ENOMEM;
    if (!err && park)
        err = hed_remote_say_park(r, r->moving->key, why);
    else if (!err) {
        hed_remote_host_stop(r); /* its thread must not take the end of the worker for a loss */
        say_bye(r);
    }
    if (!err)
        err = leave_worker(r, &s);
    if (err) {
        if (err == HED_ESTATE)
            hed_why_set(why, "it has no worker at the moment");
        else
            forget_waiting(r);
        return err;
    }
    hed_remote_host_stop(r);
    set_away(r, true);
    r->moving->parked = park;
    r->moving->parted_ns = hed_now_ns();
    close_worker(&s);
    if (park)
        *r->moving->waiting = s;
    (void)hed_remote_space_give(r); /* if it fails, CRIU takes longer */
    return 0;
}

/* Who the worker is. A move that failed meanwhile may have changed it. */
static void
recall_session(struct hed_remote *r)
{
    const struct hed_remote_attachment *s = r->moving->waiting;

    r->address = s->address;
    memcpy(r->session, s->session, sizeof r->session);
    memcpy(r->secret, s->secret, sizeof r->secret);
    r->capabilities = s->capabilities;
    r->backend = s->backend;
    r->slot_count = s->slot_count;
}

/* What the worker has granted, sent and written so far. Tickets begin anew. */
static void
recall_counts(struct hed_remote *r)
{
    const struct hed_remote_attachment *s = r->moving->waiting;

    memcpy(r->slot_used, s->slot_used, sizeof r->slot_used);
    atomic_store_explicit(&r->tickets, 0, memory_order_relaxed);
    atomic_store_explicit(&r->failures_seen, s->failures_seen, memory_order_relaxed);
    atomic_store_explicit(&r->copies->received, s->received, memory_order_relaxed);
    r->shares_heap = s->shares_heap;
    take_devices_back(r, s->devices);
}

int
hed_remote_return(struct hed_remote *r, struct hed_why *why)
{
    struct hed_channel *first = NULL;
    int err = is_away(r) && r->moving->parked ? 0 : HED_ESTATE;

    if (err)
        hed_why_set(why, "its worker is not waiting for it");
    /* Relaxed: no other thread is in the driver. */
    atomic_store_explicit(&r->lost, false, memory_order_relaxed);
    r->moving->trying = true;
    if (!err)
        err = hed_remote_space_take(r, why);
    if (!err) {
        recall_session(r);
        err = hed_remote_say_return(r, r->moving->key, &first, why);
        if (!err)
            err = hed_remote_first_channel(r, first);
        if (err) {
            r->slot_count = 0;
            (void)hed_remote_space_give(r);
        } else {
            recall_counts(r);
        }
    }
    r->moving->trying = false;
    if (err)
        return err;
    forget_waiting(r);
    set_away(r, false);
    return 0;
}

void
hed_remote_waited_in_vain(struct hed_remote *r, const char *why)
{
    hed_remote_lose(r, why);
    (void)hed_remote_space_take(r, NULL); /* nothing uses them any more */
    forget_waiting(r);
    set_away(r, false);
}

/* ---- arrive ---------------------------------------------------------------------------------- */

static int
begin_at_new(struct hed_remote *r, const char *address, struct hed_why *why)
{
    struct hed_channel *first = NULL;
    int err = address && address[0] ? hed_address_parse(address, &r->address, why) : 0;

    if (!err)
        err = hed_remote_join_again(r, &first, why);
    if (!err)
        err = hed_remote_first_channel(r, first);
    return err;
}

/* Takes over the standby's connection. The agent gets its first channel, and threads that come
 * later the others. */
static int
begin_at_standby(struct hed_remote *r, struct hed_remote *standby)
{
    struct hed_remote_attachment s;
    int err = leave_worker(standby, &s);

    if (err)
        return err;
    for (size_t i = 0; i < s.count; i++) {
        struct hed_channel *ch = s.channels[i].channel;

        if (!err && i == 0)
            err = hed_remote_first_channel(r, ch); /* frees it if it fails */
        else if (err || (err = hed_remote_channel_adopt(r, ch)) != 0)
            hed_channel_free(ch);
    }
    s.count = 0;
    take_worker_back(r, &s);
    r->map_unit = standby->map_unit;
    if (r->heap < 0)
        r->heap = standby->heap;
    return err;
}

void
hed_remote_attachment_close(struct hed_remote *standby)
{
    struct hed_remote_attachment s;

    if (leave_worker(standby, &s) == 0)
        close_worker(&s);
}

static int
settle_at_new(struct hed_remote *r, struct hed_remote_source *from, struct hed_why *why)
{
    int err = hed_remote_rebuild(r, from ? from->standby : NULL, why);

    if (!err && from)
        err = from->fill(from, r, why);
    hed_remote_lap(r, HED_TALK_COPY);
    /* Messages without an answer may have failed. */
    if (!err)
        hed_remote_look(r);
    if (atomic_load_explicit(&r->lost, memory_order_relaxed)) {
        hed_why_set(why, "the new worker is lost: %s", r->moving->trouble.text);
        err = HED_EIO;
    }
    return err;
}

/* The new worker has not been told about primary contexts that are not active. */
static void
forget_inactive(struct hed_remote *r)
{
    for (int i = 0; i < r->device_count; i++) {
        const struct hed_context *c = r->driver->devices[i].primary;

        if (!hed_context_alive(c))
            hed_remote_context(c)->made = false;
    }
}

static int
arrive_once(struct hed_remote *r, const char *address, struct hed_remote_source *from,
            struct hed_why *why)
{
    const struct hed_address before = r->address;
    const bool was_away = is_away(r);
    struct hed_remote_attachment old = {.channels = NULL}, new;
    int err = was_away ? hed_remote_space_take(r, why) : leave_worker(r, &old);

    if (err)
        return err;
    set_away(r, true);
    r->moving->trying = true;
    atomic_store_explicit(&r->lost, false, memory_order_relaxed);
    err =
        from && from->standby ? begin_at_standby(r, from->standby) : begin_at_new(r, address, why);
    hed_remote_lap(r, HED_TALK_CONNECTION);
    if (!err)
        err = settle_at_new(r, from, why);
    r->moving->trying = false;
    hed_remote_opened(r, err == 0);
    if (err) {
        if (leave_worker(r, &new) == 0)
            close_worker(&new);
        atomic_store_explicit(&r->lost, false, memory_order_relaxed);
        r->address = before;
        if (was_away) {
            (void)hed_remote_space_give(r);
            return err;
        }
        take_worker_back(r, &old);
    } else {
        forget_inactive(r);
        forget_waiting(r);
        if (!was_away) {
            hed_remote_host_stop(r); /* it has served the old one until now */
            leave_behind(r, &old);
        }
        hed_remote_channels_deal(r);
    }
    set_away(r, false);
    hed_remote_lap(r, HED_TALK_LEAVE);
    return err;
}

/* The memory of the worker that was left a moment ago may not have been given back yet: its server
 * has yet to notice that it is gone. */
int
hed_remote_arrive(struct hed_remote *r, const char *address, struct hed_remote_source *from,
                  struct hed_why *why)
{
    const bool was_away = is_away(r);
    int err = arrive_once(r, address, from, why);

    while (err == HED_ENOMEM && was_away && hed_now_ns() - r->moving->parted_ns < SOON_NS) {
        hed_sleep_ns(AGAIN_NS);
        err = arrive_once(r, address, from, why);
    }
    return err;
}
