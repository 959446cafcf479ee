/* The agent's thread. See agent.h. */
#include "move/session/agent.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "driver/driver.h"

#define REQUEST_MS 5000 /* for a peer that has connected to say what it wants */
#define REST_MS 5000    /* between two looks at memory that the program does not use */

static int
count_object(void *arg, struct hed_object *o)
{
    (void)o;
    ++*(uint32_t *)arg;
    return 0;
}

static void
count_objects(struct hed_remote *r, uint32_t *out)
{
    static const struct {
        enum hed_kind kind;
        enum hed_talk_object object;
    } kinds[] = {
        {HED_KIND_STREAM, HED_TALK_STREAMS},     {HED_KIND_EVENT, HED_TALK_EVENTS},
        {HED_KIND_MODULE, HED_TALK_MODULES},     {HED_KIND_FUNCTION, HED_TALK_FUNCTIONS},
        {HED_KIND_PHYSICAL, HED_TALK_PHYSICALS}, {HED_KIND_ARRAY, HED_TALK_ARRAYS},
        {HED_KIND_TEXTURE, HED_TALK_TEXTURES},   {HED_KIND_SURFACE, HED_TALK_TEXTURES},
        {HED_KIND_POOL, HED_TALK_POOLS},         {HED_KIND_GRAPH, HED_TALK_GRAPHS},
        {HED_KIND_GRAPH_EXEC, HED_TALK_GRAPHS},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        (void)hed_handles_each(r->driver->handles, kinds[i].kind, count_object,
                               &out[kinds[i].object]);
    hed_lock(&r->driver->contexts_lock);
    for (const struct hed_context *c = r->driver->contexts; c; c = c->next)
        out[HED_TALK_CONTEXTS] += hed_context_alive(c);
    hed_unlock(&r->driver->contexts_lock);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Does the program part from its worker, and have no connection then? */
static bool
parts_from_worker(uint16_t kind)
{
    return kind == HED_TALK_CAPTURE || kind == HED_TALK_OUT || kind == HED_TALK_STAGE;
}

/* True: the connection is kept. */
static bool
serve_request(struct hed_remote_agent *a, int peer, struct hed_remote_request *q)
{
    const bool was_paused = a->state == HED_TALK_PAUSED;
    int err = hed_talk_receive(peer, REQUEST_MS, &q->asked, q->fds, &q->why);

    if (err)
        return false;
    q->peer = peer;
    q->why.text[0] = '\0';
    hed_talk_reply(&q->answer, &q->asked);
    if (parts_from_worker(q->asked.kind))
        hed_remote_orders_leave(a);
    if (q->asked.kind == HED_TALK_INFO)
        count_objects(a->remote, q->answer.objects);
    else
        err = hed_remote_agent_serve(a, q);
    hed_remote_agent_answer(a, q, err);
    for (uint32_t i = 0; i < q->asked.fds; i++)
        (void)close(q->fds[i]);
    (void)hed_talk_answer(peer, &q->answer);
    return hed_remote_reconnect_begin(a, q, was_paused);
}

static void
try_reconnect(struct hed_remote_agent *a)
{
    const bool entered = hed_remote_enter_any(a->remote);

    hed_remote_reconnect_try(a);
    if (entered)
        hed_thread_pop(a->remote->driver);
}

/* Somebody has connected. False: the socket is of no use any more. */
static bool
meet_peer(struct hed_remote_agent *a)
{
    struct hed_remote_request *q;
    int peer = -1;
    const int err = hed_talk_accept(a->listener, 0, &peer, NULL);

    if (err)
        return err == HED_ETIME;
    q = calloc(1, sizeof *q);
    if (!q || !serve_request(a, peer, q))
        (void)close(peer);
    free(q);
    return true;
}

/* The shorter of two times to wait; -1 is for ever. */
static int
sooner_of(int a, int b)
{
    return a < 0 ? b : b < 0 || a < b ? a : b;
}

/* A program that rests gives back memory that it has on lease and does not use. */
static void
tend_memory(struct hed_remote_agent *a)
{
    struct hed_remote *r = a->remote;
    const uint64_t now = hed_now_ns();

    if (now < a->rest_ns)
        return;
    a->rest_ns = now + REST_MS * HED_NS_PER_MS;
    /* Relaxed: what is noticed late fails, and does no harm. */
    if (a->state != HED_TALK_RUNNING || !r->driver || !r->memory ||
        atomic_load_explicit(&r->lost, memory_order_relaxed) ||
        atomic_load_explicit(&r->ended, memory_order_relaxed) || !hed_remote_enter_any(r))
        return;
    hed_remote_lease_rest(r, a->rest);
    hed_thread_pop(r->driver);
}

static void *
agent_thread(void *arg)
{
    struct hed_remote_agent *a = arg;

    for (;;) {
        hed_remote_orders_tend(a);
        tend_memory(a);

        struct pollfd p[] = {{.fd = a->listener, .events = POLLIN},
                             {.fd = hed_remote_orders_fd(a), .events = POLLIN}};
        const int n = poll(
            p, 2,
            sooner_of(REST_MS, sooner_of(hed_remote_reconnect_wait(a), hed_remote_orders_wait(a))));

        if (n < 0 && errno != EINTR)
            break;
        if (n == 0)
            try_reconnect(a);
        if (n > 0 && p[1].revents)
            hed_remote_orders_heard(a);
        if (n > 0 && p[0].revents && !meet_peer(a))
            break;
    }
    return NULL;
}

void
hed_remote_agent_start(struct hed_remote *r)
{
    struct hed_remote_agent *a = calloc(1, sizeof *a);
    struct hed_why why = {""};

    if (!a)
        return;
    a->remote = r;
    hed_remote_orders_init(a);
    if (getrandom(a->session, sizeof a->session, 0) != sizeof a->session ||
        hed_talk_listen(&a->listener, a->path, &why) != 0) {
        hed_info(REMOTE, "this program cannot be saved, nor be moved from here: %s", why.text);
        a->listener = -1;
        a->path[0] = '\0';
        if (!(r->capabilities & HED_CAN_ORDERS)) {
            free(a);
            return;
        }
    }
    r->moving->agent = a;
    if (hed_thread_detached(&(struct hed_thread_how){.name = "heddle-agent"}, agent_thread, a) !=
        0) {
        hed_info(REMOTE, "this program cannot be saved or moved: cannot start a thread");
        hed_remote_agent_ended(r);
    }
}

/* The socket's name belongs to the parent. */
void
hed_remote_agent_forked(struct hed_remote *r)
{
    if (r->moving->agent) {
        if (r->moving->agent->listener >= 0)
            (void)close(r->moving->agent->listener);
        hed_remote_orders_forked(r->moving->agent);
    }
    r->moving->agent = NULL;
}

void
hed_remote_agent_ended(struct hed_remote *r)
{
    if (r->moving->agent && r->moving->agent->path[0])
        (void)unlink(r->moving->agent->path);
}
