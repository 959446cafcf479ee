/* Connections to the server: of a session that begins (join.c), and of each thread's channel.
 *
 *   a thread's first message to a worker:
 *       wait while the program is being moved ──> a channel that a thread has left, or a number
 *       ──> connect ──> ATTACH ──> the thread's channel
 *
 * hed_remote_channel_need() does this for a thread that has no channel.
 */
#include <poll.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/err.h"
#include "remote/client/mover.h"
#include "remote/client/remote.h"
#include "remote/wire/link/link.h"

#define RETRY_MS 1000 /* a client that was turned away waits for up to this time */

/* Waits up to RETRY_MS, so that clients that were turned away together do not return together. */
static void
pause_at_random(void)
{
    uint32_t random = 0;

    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
        random = (uint32_t)hed_now_ns(); /* early in a boot: good enough for a pause */
    (void)poll(NULL, 0, (int)(random % RETRY_MS));
}

int
hed_remote_call_on(const struct hed_remote *r, enum hed_preface_kind kind, struct hed_conn **out,
                   struct hed_why *why)
{
    struct hed_preface p = {.kind = kind};

    memcpy(p.magic, HED_PREFACE_MAGIC, sizeof p.magic);
    memcpy(p.session, r->session, sizeof p.session);

    int err = hed_conn_open(&r->address, &r->tls, &p, r->timeout_ms, out, why);

    /* A server that has too many clients at once hangs up on some of them. */
    if (err == HED_EIO && !r->address.transport->link->private) {
        pause_at_random();
        err = hed_conn_open(&r->address, &r->tls, &p, r->timeout_ms, out, why);
    }
    return err;
}

int
hed_remote_patience(const struct hed_remote *r, struct hed_channel *ch)
{
    /* Over a socket every worker gives signs of life; in shared memory those of older versions do
     * not. */
    if (hed_channel_shares(ch) && !(r->capabilities & HED_CAN_BEAT))
        return 0;
    return hed_channel_patience(ch, r->silent_ms);
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

struct hed_remote_channel *
hed_remote_channel_connect(struct hed_remote *r)
{
    struct hed_why why = {""};
    struct hed_channel *channel = NULL;
    struct hed_why lost;
    uint32_t thread = 0;
    struct hed_remote_channel *ch;

    /* Relaxed, both: a session that ends later is noticed when the channel is used. */
    if (atomic_load_explicit(&r->lost, memory_order_relaxed) ||
        atomic_load_explicit(&r->ended, memory_order_relaxed))
        return NULL;
    if (r->mover)
        r->mover->await_worker(r);
    ch = hed_remote_channel_claim(r, &thread);
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
