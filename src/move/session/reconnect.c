/* A program that was sent out of device memory for another one (HED_TALK_RETURN) comes back by
 * itself.
 *
 *   OUT ──> the peer still takes what it needs ──hangs up, or dies──> attempt ──no room──> pause ─┐
 *                                                                        ▲                        │
 *                                                                        └──────── 0.5 to 5 s ────┘
 *
 * An attempt takes memory only if there is enough of it (hed_remote_lease_again). Between attempts
 * the agent takes requests as ever; one that brings the program back, or saves it, ends this.
 *
 * A server that nobody can reach may be started again at its address, and then the program comes
 * back to that. After server_timeout it is lost, as it would be for a program that has a worker:
 * the program goes on, and its calls fail.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/session.h"
#include "move/session/agent.h"

#define FIRST_PAUSE_NS (500 * HED_NS_PER_MS)
#define PAUSE_MOST_NS (5 * HED_NS_PER_S)
#define PEER_NS (120 * HED_NS_PER_S) /* a peer that is stopped does not keep the program out */

static bool
has_hung_up(const struct hed_remote_reconnect *c)
{
    struct pollfd p = {.fd = c->peer, .events = POLLIN};

    /* It has nothing more to say, so whatever comes is the end. */
    return c->peer < 0 || hed_now_ns() >= c->latest || poll(&p, 1, 0) != 0;
}

static void
forget_peer(struct hed_remote_reconnect *c)
{
    if (c->wanted && c->peer >= 0)
        (void)close(c->peer);
    c->peer = -1;
}

bool
hed_remote_reconnect_begin(struct hed_remote_agent *a, const struct hed_remote_request *q,
                           bool was_paused)
{
    const uint64_t now = hed_now_ns();

    if (q->asked.kind != HED_TALK_OUT || !(q->asked.flags & HED_TALK_RETURN) || q->answer.err ||
        a->state != HED_TALK_SWAPPED)
        return false;
    forget_peer(&a->reconnect);
    a->reconnect = (struct hed_remote_reconnect){.wanted = true,
                                                 .paused = was_paused,
                                                 .peer = q->peer,
                                                 .latest = now + PEER_NS,
                                                 .next = now + FIRST_PAUSE_NS,
                                                 .pause_ns = FIRST_PAUSE_NS};
    return true;
}

int
hed_remote_reconnect_wait(struct hed_remote_agent *a)
{
    struct hed_remote_reconnect *c = &a->reconnect;
    const uint64_t now = hed_now_ns();

    if (!c->wanted)
        return -1;
    if (a->state != HED_TALK_SWAPPED) {
        forget_peer(c);
        c->wanted = false;
        return -1;
    }
    return c->next > now ? (int)((c->next - now) / HED_NS_PER_MS) + 1 : 0;
}

static int
come_back(struct hed_remote_agent *a, struct hed_remote_request *q)
{
    hed_talk_ask(&q->asked, HED_TALK_IN);
    hed_talk_reply(&q->answer, &q->asked);
    q->peer = -1;
    a->remote->moving->looks_for_room = true;

    int err = hed_remote_request(a, q);

    a->remote->moving->looks_for_room = false;

    if (!err && a->reconnect.paused) {
        hed_talk_ask(&q->asked, HED_TALK_PAUSE);
        err = hed_remote_request(a, q);
    }
    return err;
}

/* Was the server not to be reached, or did it leave the program alone in the middle? */
static bool
is_without_server(int err)
{
    return err == HED_EIO || err == HED_ENOTFOUND || err == HED_ETIME;
}

/* The server stays away. The program learns of it by its calls, unless it was paused before. */
static void
stay_without_server(struct hed_remote_agent *a, const char *reason)
{
    struct hed_remote_reconnect *c = &a->reconnect;
    struct hed_why why;

    hed_why_set(&why, "%s (the program was out of its memory, and could not come back)", reason);
    c->wanted = false;
    hed_remote_waited_in_vain(a->remote, why.text);
    hed_remote_pump_close(a->pump);
    a->pump = NULL;
    hed_remote_host_copy_free(a->host_copy);
    a->host_copy = NULL;
    a->state = c->paused ? HED_TALK_PAUSED : HED_TALK_RUNNING;
    hed_session_tell_away(false, 0);
    if (!c->paused)
        hed_remote_release(a->remote);
}

/* An attempt has failed: when is the next one? A server that refuses for another reason than its
 * memory will most likely do so again, so the user is told, once. */
static void
plan_next_attempt(struct hed_remote_agent *a, int err, const char *reason)
{
    struct hed_remote_reconnect *c = &a->reconnect;
    const uint64_t now = hed_now_ns();
    const uint64_t patience = (uint64_t)a->remote->silent_ms * HED_NS_PER_MS;

    if (!is_without_server(err))
        c->silent_since = 0;
    else if (c->silent_since == 0)
        c->silent_since = now;
    if (c->silent_since && now - c->silent_since >= patience) {
        stay_without_server(a, reason);
        return;
    }
    if (err != HED_ENOMEM && !is_without_server(err) && !c->warned)
        hed_warn(REMOTE, "the program is out of its server's memory and cannot come back yet: %s",
                 reason);
    else
        hed_info(REMOTE, "the program stays out of device memory: %s", reason);
    c->warned = c->warned || (err != HED_ENOMEM && !is_without_server(err));
    c->pause_ns = 2 * c->pause_ns < PAUSE_MOST_NS ? 2 * c->pause_ns : PAUSE_MOST_NS;
    c->next = now + c->pause_ns;
    if (c->silent_since && c->next > c->silent_since + patience)
        c->next = c->silent_since + patience;
}

void
hed_remote_reconnect_try(struct hed_remote_agent *a)
{
    struct hed_remote_reconnect *c = &a->reconnect;
    struct hed_remote_request *q;

    if (!c->wanted || a->state != HED_TALK_SWAPPED || hed_now_ns() < c->next)
        return;
    if (!has_hung_up(c)) {
        c->next = hed_now_ns() + FIRST_PAUSE_NS;
        return;
    }
    forget_peer(c);
    q = calloc(1, sizeof *q);

    const int err = q ? come_back(a, q) : HED_ENOMEM;

    if (a->state == HED_TALK_SWAPPED)
        plan_next_attempt(a, err, q && q->why.text[0] ? q->why.text : hed_err_text(err));
    free(q);
}
